//! Mounts by the text of mountinfo, and processes that hold a database.

use std::path::Path;

use rootpage::host::mounts::{MountClass, MountTable, WalSafety};

/// Lines as they stand on real machines (numbers and names changed), and the class of each.
const LINES: &str = r"
Native      | 24 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro
Native      | 27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard,resuid=65534
Native      | 25 1 253:0 / / rw,relatime shared:1 - xfs /dev/mapper/rhel-root rw,attr2,inode64,logbufs=8,noquota
Native      | 29 1 0:25 /@ / rw,relatime shared:1 - btrfs /dev/nvme0n1p2 rw,compress=zstd:3,ssd,subvolid=256,subvol=/@
Native      | 61 29 0:25 /@home /home rw,relatime shared:32 - btrfs /dev/nvme0n1p2 rw,ssd,subvolid=257,subvol=/@home
Native      | 36 1 0:30 / / rw,relatime shared:1 - zfs rpool/ROOT/ubuntu_1x2y rw,xattr,posixacl
Native      | 90 36 0:44 / /tank/data rw,noatime shared:44 - zfs tank/data rw,xattr,noacl
Native      | 31 1 259:7 / /data rw,nosuid,nodev,noatime shared:20 - f2fs /dev/block/dm-8 rw,lazytime,background_gc=on
Native      | 44 1 8:33 / /media/stick rw,nosuid,nodev shared:99 - vfat /dev/sdc1 rw,uid=1000,iocharset=iso8859-1
Native      | 45 1 8:34 / /media/stick2 rw,nosuid,nodev shared:99 - exfat /dev/sdc2 rw,uid=1000
Native      | 46 1 8:49 / /mnt/win rw,relatime shared:101 - ntfs3 /dev/sdd1 rw,uid=0,gid=0
Native      | 47 1 254:16 / /boot ro,relatime - ext2 /dev/vdb ro
Native      | 48 1 0:51 / /pool rw,relatime shared:7 - bcachefs /dev/sda:/dev/sdb rw
Native      | 718 717 7:3 / /snap/core/1 ro,nodev,relatime shared:52 - squashfs /dev/loop3 ro,errors=continue
Memory      | 26 24 0:24 / /run rw,nosuid,nodev,size=1626060k,mode=755 shared:5 - tmpfs tmpfs rw,size=1626060k
Memory      | 812 790 0:130 / /dev/shm rw,nosuid,nodev,noexec - tmpfs shm rw,size=65536k
Memory      | 1 1 0:1 / / rw - rootfs rootfs rw
Overlay     | 1023 876 0:301 / / rw,relatime master:512 - overlay overlay rw,lowerdir=/var/lib/docker/overlay2/l/AB:/var/lib/docker/overlay2/l/CD,upperdir=/u,workdir=/w
Overlay     | 500 400 0:77 / / rw,nodev,relatime - fuse.fuse-overlayfs fuse-overlayfs rw,user_id=0,group_id=0,default_permissions,allow_other
Overlay     | 63 24 0:58 / /srv/pool rw,relatime shared:33 - fuse.mergerfs a:b rw,user_id=0,group_id=0,allow_other
HostShare   | 91 1 0:35 / /workspace rw,relatime - virtiofs workspace rw
HostShare   | 92 1 0:36 / /Users rw,nosuid,nodev,relatime - fuse.virtiofs mount0 rw,user_id=0,group_id=0
HostShare   | 93 1 0:37 / /mnt/share rw,relatime - 9p hostshare rw,sync,dirsync,access=client,trans=virtio
HostShare   | 94 1 0:52 / /mnt/c rw,noatime - 9p C:\134 rw,dirsync,aname=drvfs;path=C:\;uid=1000;gid=1000;symlinkroot=/mnt/,mmap,access=client,msize=262144,trans=fd,rfd=5,wfd=5
HostShare   | 95 1 0:53 / / rw - 9p none rw,trans=fd,rfdno=4,wfdno=4,aname=/,dfltuid=4294967294,cache=remote_revalidating
HostShare   | 96 1 0:54 / /mnt/l rw,relatime - 9p2000.L share rw
HostShare   | 97 1 0:55 / /mnt/u rw,relatime - 9p2000.u share rw
HostShare   | 98 1 0:56 / /media/sf_work rw,nodev,relatime shared:60 - vboxsf work rw,iocharset=utf8,uid=0,gid=998
HostShare   | 99 1 0:57 / /mnt/hgfs rw,nosuid,nodev,relatime shared:61 - fuse.vmhgfs-fuse vmhgfs-fuse rw,user_id=0,group_id=0,allow_other
HostShare   | 100 1 0:58 / /host_mnt rw,relatime - fuse.grpcfuse grpcfuse rw,user_id=0,group_id=0,allow_other,max_read=1048576
HostShare   | 101 1 0:59 /Users/a/proj /app rw,relatime - fakeowner grpcfuse rw,fakeowner
HostShare   | 102 1 0:60 / /host_mnt rw,nosuid,nodev - fuse.osxfs osxfs rw,user_id=0,allow_other
HostShare   | 103 1 0:61 / /media/psf rw,nosuid,nodev - prl_fs none rw,sync,nodev,share
Nfs         | 110 24 0:62 / /mnt/nfs rw,relatime shared:70 - nfs4 10.0.0.5:/export/home rw,vers=4.2,rsize=1048576,proto=tcp,addr=10.0.0.5
Nfs         | 111 24 0:63 / /net/old rw,relatime shared:71 - nfs filer:/vol/vol0 rw,vers=3,proto=udp,nolock
Smb         | 112 24 0:64 / /mnt/smb rw,relatime shared:72 - cifs //nas/share rw,vers=3.1.1,cache=strict,username=u,uid=0
Smb         | 113 24 0:65 / /mnt/smb3 rw,relatime shared:73 - smb3 //nas/share\040two rw,vers=3.0
Network     | 114 24 0:66 / /mnt/ssh rw,nosuid,nodev,relatime shared:74 - fuse.sshfs user@host:/srv rw,user_id=1000,group_id=1000
Network     | 115 24 0:67 / /mnt/ceph rw,relatime shared:75 - ceph 10.1.1.1:6789:/ rw,name=admin,secret=<hidden>,acl
Network     | 116 24 0:68 / /mnt/gluster rw,relatime shared:76 - fuse.glusterfs gl1:/vol rw,user_id=0,allow_other,max_read=131072
Network     | 117 24 0:69 / /mnt/efs2 rw,relatime - lustre 10.0.0.1@tcp:/fsx rw,flock,lazystatfs
Network     | 118 24 0:70 / /mnt/bucket rw,nosuid,nodev,relatime shared:77 - fuse.s3fs s3fs rw,user_id=0,group_id=0
Network     | 119 24 8:17 / /mnt/cluster rw,relatime - gfs2 /dev/mapper/vg-lv rw,hostdata=jid=0
Fuse        | 120 24 0:71 / /home/u/crypt rw,nosuid,nodev,relatime shared:78 - fuse.gocryptfs /home/u/.crypt rw,user_id=1000,group_id=1000
Fuse        | 121 24 8:65 / /mnt/usb rw,relatime shared:79 - fuseblk /dev/sde1 rw,user_id=0,group_id=0,allow_other,blksize=4096
Fuse        | 122 24 0:72 / /run/user/1000/doc rw,nosuid,nodev,relatime shared:80 - fuse.portal portal rw,user_id=1000
Unknown     | 123 24 0:73 / /mnt/new rw,relatime shared:81 - newfs2030 thing rw
Unknown     | 124 24 0:74 / /mnt/plain rw,relatime - shiftfs /x rw
";

#[test]
fn every_kind_of_mount_has_its_class() {
    let mut seen = 0;
    for line in LINES.lines().filter(|l| !l.is_empty()) {
        let (class, text) = line.split_once('|').unwrap();
        let table = MountTable::parse(text.as_bytes());
        assert_eq!((table.mounts().len(), table.unread), (1, 0), "{line}");
        let mount = &table.mounts()[0];
        assert_eq!(format!("{:?}", mount.class()), class.trim(), "{line}");
        let point = String::from_utf8(mount.point.clone()).unwrap();
        let found = table.covering(&Path::new(&point).join("state.db")).unwrap();
        assert_eq!(found.fstype, mount.fstype, "{line}");
        assert_eq!(found.class().wal() == WalSafety::Unsafe, class.trim() == "HostShare", "{line}");
        seen += 1;
    }
    assert!(seen >= 40, "{seen}");
}

fn class_of(text: &str, path: &str) -> MountClass {
    MountTable::parse(text.as_bytes()).covering(Path::new(path)).unwrap().class()
}

const ROOT: &str = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n";

#[test]
fn the_mount_that_a_path_lies_on_is_the_kernels() {
    let with = |lines: &str| format!("{ROOT}{lines}");
    // A prefix of a name is no folder.
    let t = with("2 1 0:9 / /opt/data rw - virtiofs x rw\n");
    assert_eq!(class_of(&t, "/opt/data/state.db"), MountClass::HostShare);
    assert_eq!(class_of(&t, "/opt/database/state.db"), MountClass::Native);
    assert_eq!(class_of(&t, "/opt/data"), MountClass::HostShare);
    // Over-mounts: the later one hides the earlier, whatever the order of the classes.
    let t = with("2 1 0:9 / /opt/data rw - virtiofs x rw\n3 2 8:2 / /opt/data rw - ext4 /dev/sdb rw\n");
    assert_eq!(class_of(&t, "/opt/data/state.db"), MountClass::Native);
    let t = with("2 1 8:2 / /opt/data rw - ext4 /dev/sdb rw\n3 2 0:9 / /opt/data rw - virtiofs x rw\n");
    assert_eq!(class_of(&t, "/opt/data/state.db"), MountClass::HostShare);
    // A mount over a folder hides what was mounted below it.
    let t = with("2 1 0:9 / /opt/data rw - virtiofs x rw\n3 1 8:2 / /opt rw - ext4 /dev/sdb rw\n");
    assert_eq!(class_of(&t, "/opt/data/state.db"), MountClass::Native);
    // Lines in an order that is not that of mounting: the parents say it.
    let t = "3 2 8:2 / /opt/data rw - ext4 /dev/sdb rw\n2 1 0:9 / /opt rw - virtiofs x rw\n1 0 8:1 / / rw - xfs /dev/sda1 rw\n";
    assert_eq!(class_of(t, "/opt/data/state.db"), MountClass::Native);
    assert_eq!(class_of(t, "/opt/state.db"), MountClass::HostShare);
    // Octal escapes: a space, a tab, a backslash.
    let t = with("2 1 0:9 / /opt/my\\040data\\134x rw - 9p x rw\n");
    assert_eq!(class_of(&t, "/opt/my data\\x/state.db"), MountClass::HostShare);
    // A bind mount is what is behind it; the root field does not matter.
    let t = with("2 1 0:9 / /mnt/share rw - virtiofs x rw\n3 1 0:9 /proj /home/u/proj rw - virtiofs x rw\n");
    assert_eq!(class_of(&t, "/home/u/proj/state.db"), MountClass::HostShare);
    // A single file that is bound into a container.
    let t = with("2 1 0:9 /state.db /app/state.db rw - virtiofs x rw\n");
    assert_eq!(class_of(&t, "/app/state.db"), MountClass::HostShare);
    assert_eq!(class_of(&t, "/app/state.db-wal"), MountClass::Native);
    // A text that was cut: no root, or parents that are not there.
    let t = "2 1 0:9 / /opt/data rw - virtiofs x rw\n7 6 8:2 / /opt rw - ext4 /dev/sdb rw\n";
    assert_eq!(class_of(t, "/opt/data/x"), MountClass::Native);
    let t = with("9 8 0:9 / /opt/data rw - virtiofs x rw\n");
    assert_eq!(class_of(&t, "/opt/data/state.db"), MountClass::HostShare);
    // The root of a container, over which another was mounted.
    let t = "1 0 0:1 / / rw - rootfs rootfs rw\n2 1 0:40 / / rw - overlay overlay rw\n";
    assert_eq!(class_of(t, "/opt/state.db"), MountClass::Overlay);
    // A text that names itself as its parent ends.
    let t = "2 2 0:1 / / rw - ext4 a rw\n3 3 0:9 / /a rw - virtiofs x rw\n3 2 0:9 / /a rw - virtiofs x rw\n";
    assert_eq!(class_of(t, "/a/state.db"), MountClass::HostShare);
    assert!(MountTable::parse(b"").covering(Path::new("/a")).is_none());
    assert!(MountTable::parse(ROOT.as_bytes()).covering(Path::new("a")).is_none());
    assert_eq!(MountTable::parse(b"junk\n\xff\xfe\n1 0 8:1 / / rw - ext4 x rw\n").unread, 2);
}

#[cfg(target_os = "linux")]
mod live {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::path::{Path, PathBuf};
    use std::process::{Child, Command, Stdio};

    use rootpage::ctx::Ctx;
    use rootpage::host::doctor::{Diagnosis, Patient, Urgency, Wanted, examine};
    use rootpage::verbs::Options;
    use rusqlite::Connection;

    /// What the other process does, by the variable that names it.
    const ROLE: &str = "ROOTPAGE_TEST_ROLE";

    /// Runs in a process of its own and is skipped in this one: holds a database until its standard input ends.
    #[test]
    fn other_process() {
        let Ok(role) = std::env::var(ROLE) else { return };
        let (what, db) = role.split_once(' ').unwrap();
        let path = Path::new(db);
        let c = Connection::open(path).unwrap();
        match what {
            "write" => c.execute_batch("BEGIN IMMEDIATE; INSERT INTO t VALUES(2, 'two')").unwrap(),
            "commit" => c.execute_batch("PRAGMA wal_autocheckpoint=0; INSERT INTO t VALUES(2, 'two')").unwrap(),
            other => panic!("{other}"),
        }
        let mut out = std::io::stdout();
        out.write_all(b"ready\n").unwrap();
        out.flush().unwrap();
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).unwrap();
        // Ends without closing the connection, so that nothing is checkpointed.
        std::process::exit(0);
    }

    struct Other(Child);

    impl Other {
        fn start(what: &str, db: &Path) -> Other {
            let mut child = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "host::live::other_process", "--nocapture", "--test-threads=1"])
                .env(ROLE, format!("{what} {}", db.display()))
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
            assert!(lines.any(|l| l.unwrap().contains("ready")), "the other process did not start");
            Other(child)
        }
    }

    impl Drop for Other {
        fn drop(&mut self) {
            drop(self.0.stdin.take());
            let _ = self.0.wait();
        }
    }

    fn store(dir: &Path, mode: &str) -> PathBuf {
        let path = dir.join("state.db");
        let c = Connection::open(&path).unwrap();
        c.execute_batch(&format!(
            "PRAGMA journal_mode={mode}; CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT); INSERT INTO t VALUES(1, 'one')"
        ))
        .unwrap();
        path
    }

    fn look(path: &Path, rescue: Option<&Path>) -> Diagnosis {
        let mut wanted = Wanted::default();
        wanted.rescue = rescue.map(Path::to_path_buf);
        examine(&[Patient::at(path)], &wanted, &Options::default(), &Ctx::default()).unwrap()
    }

    fn kinds(d: &Diagnosis) -> Vec<&'static str> {
        d.stores[0].findings.iter().map(|f| f.kind).collect()
    }

    fn sentence<'d>(d: &'d Diagnosis, kind: &str) -> &'d str {
        &d.stores[0].findings.iter().find(|f| f.kind == kind).unwrap_or_else(|| panic!("{kind} of {:?}", kinds(d))).sentence
    }

    #[test]
    fn a_writer_and_its_lock_are_seen() {
        for mode in ["wal", "delete"] {
            let dir = tempfile::tempdir().unwrap();
            let path = store(dir.path(), mode);
            assert!(!kinds(&look(&path, None)).contains(&"held"));
            let other = Other::start("write", &path);
            let d = look(&path, None);
            let pid = other.0.id();
            assert!(sentence(&d, "held").contains(&format!("({pid})")), "{}", sentence(&d, "held"));
            assert!(d.stores[0].processes.holders.iter().all(|h| h.pid == pid && !h.gone), "{:?}", d.stores[0].processes);
            let lock = sentence(&d, "write-lock");
            assert!(lock.contains(&pid.to_string()) && lock.contains("database is locked"), "{lock}");
            drop(other);
            assert!(!kinds(&look(&path, None)).contains(&"write-lock"));
        }
    }

    #[test]
    fn a_deleted_log_is_copied_out_of_the_process() {
        let dir = tempfile::tempdir().unwrap();
        let path = store(dir.path(), "wal");
        let other = Other::start("commit", &path);
        let wal = dir.path().join("state.db-wal");
        let truth = std::fs::read(&wal).unwrap();
        assert!(!kinds(&look(&path, None)).contains(&"deleted-but-open"));
        std::fs::remove_file(&wal).unwrap();
        std::fs::remove_file(dir.path().join("state.db-shm")).unwrap();
        let d = look(&path, None);
        assert_eq!((d.exit_code, kinds(&d)[0]), (2, "deleted-but-open"));
        assert!(d.stores[0].findings[0].steps[0].commands[0].contains("--rescue"));
        // Another log under the same name does not hide the first: it is told by its inode.
        std::fs::write(&wal, b"").unwrap();
        let saved = dir.path().join("saved");
        let d = look(&path, Some(&saved));
        assert_eq!(kinds(&d)[0], "deleted-but-open");
        let rescued = d.stores[0].rescued.iter().find(|r| r.path.to_string_lossy().ends_with("-wal")).unwrap();
        assert!(rescued.steady);
        assert_eq!(std::fs::read(&rescued.path).unwrap(), truth);
        // The row that was only there is there again.
        let mut inputs = rootpage::verbs::Inputs::at_path(&path);
        inputs.wal = vec![rescued.path.clone()];
        let report = rootpage::verbs::check(&inputs, &Options::default(), &Ctx::default()).unwrap();
        assert_eq!(report.objects.iter().find(|o| o.name == "t").unwrap().rows, Some(2));
        // A rescue never writes over an earlier one.
        assert!(examine_again(&path, &saved).is_err());
        drop(other);
    }

    fn examine_again(path: &Path, saved: &Path) -> rootpage::error::Result<Diagnosis> {
        let mut wanted = Wanted::default();
        wanted.rescue = Some(saved.to_path_buf());
        examine(&[Patient::at(path)], &wanted, &Options::default(), &Ctx::default())
    }

    #[test]
    fn a_store_that_is_held_is_not_converted() {
        use rootpage::host::journal_mode::{Mode, convert};
        let dir = tempfile::tempdir().unwrap();
        let path = store(dir.path(), "wal");
        let other = Other::start("commit", &path);
        let out = dir.path().join("out.db");
        let go = || convert(&path, Mode::Delete, &out, &Options::default(), &Ctx::default()).unwrap();
        let done = go();
        assert!(done.exit_code == 3 && done.refused.as_ref().unwrap().contains(&other.0.id().to_string()), "{done:?}");
        assert!(!out.exists());
        drop(other);
        let done = go();
        assert!(done.exit_code == 0 && done.from_log > 0, "{done:?}");
        let n: i64 = Connection::open(&out).unwrap().query_row("SELECT count(*) FROM t", [], |r| r.get(0)).unwrap();
        assert_eq!(n, 2);
    }

    #[test]
    fn a_name_that_ends_like_a_deleted_file_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = store(dir.path(), "delete");
        let odd = dir.path().join("state.db (deleted)");
        std::fs::rename(&path, &odd).unwrap();
        let other = Other::start("write", &odd);
        let d = look(&odd, None);
        assert!(!kinds(&d).contains(&"deleted-but-open") && kinds(&d).contains(&"held"), "{:?}", kinds(&d));
        drop(other);
    }

    #[test]
    fn a_file_bound_over_the_path_does_not_hide_who_has_the_first() {
        let dir = tempfile::tempdir().unwrap();
        let path = store(dir.path(), "delete");
        let second = dir.path().join("other.db");
        std::fs::copy(&path, &second).unwrap();
        let other = Other::start("write", &path);
        let bind = |args: &[&std::ffi::OsStr]| Command::new("mount").args(args).stderr(Stdio::null()).status().is_ok_and(|s| s.success());
        if !bind(&["--bind".as_ref(), second.as_os_str(), path.as_os_str()]) {
            return; // Not allowed here.
        }
        let d = look(&path, None);
        let undone = Command::new("umount").arg(&path).status().unwrap().success();
        drop(other);
        assert!(undone);
        assert!(kinds(&d).contains(&"deleted-but-open"), "{:?}", kinds(&d));
        assert!(kinds(&d).contains(&"file-is-a-mount"), "{:?}", kinds(&d));
    }

    #[test]
    fn who_waits_for_whom() {
        use rootpage::host::holders::{Holder, Seen, Which};
        use rootpage::host::locks::on;
        let holder =
            |pid, fd, file, inode| Holder { pid, name: "app".into(), fd, file, writes: true, gone: false, bytes: 1, inode: (0x801, inode) };
        let holders = vec![
            holder(10, 3, Which::Main, 77),
            holder(11, 3, Which::Main, 77),
            holder(12, 4, Which::Shm, 78),
            holder(13, 4, Which::Shm, 78),
        ];
        let seen = Seen { supported: true, holders, unseen: 0 };
        let text = "1: POSIX  ADVISORY  WRITE 10 08:01:77 1073741825 1073741825\n\
                    1: -> POSIX  ADVISORY  WRITE 11 08:01:77 1073741825 1073741825\n\
                    2: OFDLCK ADVISORY  READ  -1 08:01:77 1073741826 1073742335\n\
                    3: POSIX  ADVISORY  WRITE 12 08:01:78 120 120\n\
                    3: -> POSIX  ADVISORY  WRITE 13 08:01:78 120 120\n\
                    4: FLOCK  ADVISORY  WRITE 99 08:01:5 0 EOF\n\
                    5: POSIX  ADVISORY  READ  12 00:2f:78 128 128\n";
        let locks = on(text, &seen);
        assert_eq!(locks.len(), 6, "{locks:?}");
        assert!(locks[0].blocks_writers && locks[0].meaning.starts_with("RESERVED"));
        assert!(locks[1].waits && locks[1].waits_for == [10] && !locks[1].blocks_writers);
        assert_eq!(locks[2].pids, [10, 11]);
        assert!(locks[3].blocks_writers && locks[4].waits_for == [12]);
        assert!(locks[5].meaning.contains("in use"));
    }

    #[test]
    fn one_held_one_waiting() {
        let dir = tempfile::tempdir().unwrap();
        let path = store(dir.path(), "delete");
        let held =
            Command::new("flock").arg(&path).args(["sh", "-c", "echo ready; read x"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let Ok(mut held) = held else { return };
        let mut line = String::new();
        BufReader::new(held.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let mut waiting = Command::new("flock").arg(&path).arg("true").spawn().unwrap();
        let mut said = String::new();
        // Until the second process has come to its lock.
        for _ in 0..500 {
            let d = look(&path, None);
            if let Some(f) = d.stores[0].findings.iter().find(|f| f.kind == "lock-wait") {
                said.clone_from(&f.sentence);
                assert_eq!(f.urgency, Urgency::Warning);
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let (holder, waiter) = (held.id().to_string(), waiting.id().to_string());
        drop(held.stdin.take());
        held.wait().unwrap();
        waiting.wait().unwrap();
        assert!(said.contains(&waiter) && said.contains(&holder), "{said:?} {holder} {waiter}");
    }

    #[test]
    fn a_log_on_a_shared_folder_comes_first() {
        let dir = tempfile::tempdir().unwrap();
        let path = store(dir.path(), "wal");
        let info = dir.path().join("mountinfo");
        std::fs::write(&info, "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:9 / /opt/data rw - virtiofs x rw\n").unwrap();
        let mut wanted = Wanted::default();
        (wanted.mountinfo, wanted.was_at) = (Some(info.clone()), Some("/opt/data/state.db".into()));
        let look = |wanted: &Wanted| examine(&[Patient::at(&path)], wanted, &Options::default(), &Ctx::default()).unwrap();
        let d = look(&wanted);
        assert_eq!((kinds(&d)[0], d.exit_code), ("wal-on-unsafe-mount", 2));
        let steps = &d.stores[0].findings[0].steps;
        assert!(steps[0].commands.join("\n").contains("mv -n") && steps[1].commands[0].contains("journal-mode"), "{steps:?}");
        wanted.was_at = Some("/opt/database/state.db".into());
        assert!(!kinds(&look(&wanted)).contains(&"wal-on-unsafe-mount"));
        // The mode is that of the header, not of a name or a guess.
        Connection::open(&path).unwrap().execute_batch("PRAGMA journal_mode=delete").unwrap();
        wanted.was_at = Some("/opt/data/state.db".into());
        assert_eq!(look(&wanted).exit_code, 0);
        // Several names of one file are one.
        std::os::unix::fs::symlink(&path, dir.path().join("link.db")).unwrap();
        let patients = [Patient::at(&path), Patient::at(&dir.path().join("link.db")), Patient::at(&dir.path().join("none.db"))];
        let d = examine(&patients, &Wanted::default(), &Options::default(), &Ctx::default()).unwrap();
        assert_eq!((d.stores.len(), d.exit_code), (2, 2));
    }
}

#[test]
fn profiles_of_hermes_are_named_with_the_lines_of_their_settings() {
    let dir = tempfile::tempdir().unwrap();
    for profile in ["", "profiles/work"] {
        let folder = dir.path().join(profile);
        std::fs::create_dir_all(&folder).unwrap();
        let c = rusqlite::Connection::open(folder.join("state.db")).unwrap();
        c.execute_batch(
            "PRAGMA journal_mode=wal; CREATE TABLE sessions(id TEXT PRIMARY KEY); CREATE TABLE messages(id INTEGER PRIMARY KEY)",
        )
        .unwrap();
    }
    let run = |args: &[&str]| {
        let out = std::process::Command::new(env!("CARGO_BIN_EXE_rootpage")).args(args).current_dir(dir.path()).output().unwrap();
        (out.status.code(), String::from_utf8(out.stdout).unwrap())
    };
    let (_, text) = run(&["hermes", "doctor", "--home", "."]);
    assert!(text.contains("(profile default)") && text.contains("(profile work)"), "{text}");
    std::fs::write(dir.path().join("mountinfo"), format!("{ROOT}2 1 0:9 / /opt/data rw - 9p x rw\n")).unwrap();
    let (code, text) = run(&["hermes", "doctor", "state.db", "--mountinfo", "mountinfo", "--was-at", "/opt/data/state.db"]);
    assert!(code == Some(2) && text.contains("config.yaml") && text.contains("journal_mode: delete"), "{text}");
    let (code, text) = run(&["hermes", "triage", "."]);
    assert!(code == Some(1) && text.contains("Best source"), "{text}");
}
