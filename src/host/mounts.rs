//! Mounts from the text of `/proc/PID/mountinfo` (proc_pid_mountinfo(5)), and what SQLite may do on each kind.
//!
//! A path is walked as the kernel walks it: from the root mount, component by component, into the mount that stands on top
//! of each. A later mount on the same point hides the earlier one, and a mount over a folder hides every mount below it.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// Bytes of a mountinfo file that are read: a host with thousands of containers stays far below.
const BYTES: u64 = 16 << 20;

/// Mounts that may lie on one another at one point before the walk gives up: a text that names itself as its parent ends here.
const STACKED: usize = 256;

/// What kind of file system a mount is, by what matters for SQLite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MountClass {
    /// A file system of this kernel on a local device.
    Native,
    /// A file system in memory: gone after a restart.
    Memory,
    /// Layers of a container image: one kernel, but gone with the container.
    Overlay,
    /// A folder of the host shared into a virtual machine or container: virtiofs, 9p and their kin.
    HostShare,
    /// NFS.
    Nfs,
    /// SMB or CIFS.
    Smb,
    /// Another file system over a network or cluster.
    Network,
    /// A file system of a user program.
    Fuse,
    /// No file system that is known here.
    Unknown,
}

/// Whether a write-ahead log works on a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WalSafety {
    /// All processes share the memory of the `-shm`.
    Safe,
    /// Safe while every process runs on one machine; two machines do not share memory.
    OneMachine,
    /// Depends on the program behind it; nothing here can tell.
    Unknown,
    /// Processes on both sides do not share memory and may not see each other's locks.
    Unsafe,
}

impl MountClass {
    /// The class of a file system by its type, as mountinfo writes it.
    #[must_use]
    pub fn of(fstype: &str) -> MountClass {
        let name = fstype.to_ascii_lowercase();
        let sub = name.strip_prefix("fuse.").or_else(|| name.strip_prefix("fuse3."));
        if name.starts_with("9p") {
            return MountClass::HostShare;
        }
        match sub.unwrap_or(&name) {
            "virtiofs" | "virtio-fs" | "vboxsf" | "vmhgfs" | "vmhgfs-fuse" | "prl_fs" | "prl_fsd" | "drvfs" | "wslfs" | "grpcfuse"
            | "fakeowner" | "osxfs" | "macfs" | "gofer" | "hgfs" => MountClass::HostShare,
            "nfs" | "nfs3" | "nfs4" => MountClass::Nfs,
            "cifs" | "smb" | "smb2" | "smb3" | "smbfs" | "smbnetfs" | "smbclient" => MountClass::Smb,
            "overlay" | "overlayfs" | "fuse-overlayfs" | "aufs" | "unionfs" | "unionfs-fuse" | "mergerfs" => MountClass::Overlay,
            "ceph" | "ceph-fuse" | "glusterfs" | "lustre" | "afs" | "kafs" | "coda" | "beegfs" | "beegfs_nodev" | "gpfs" | "mmfs"
            | "gfs2" | "ocfs2" | "orangefs" | "pvfs2" | "moosefs" | "mfsmount" | "juicefs" | "sshfs" | "rclone" | "s3fs" | "gcsfuse"
            | "goofys" | "blobfuse" | "blobfuse2" | "mountpoint-s3" | "davfs" | "webdav" | "curlftpfs" | "ncpfs" | "seaweedfs"
            | "panfs" | "ntfs-ads" => MountClass::Network,
            "tmpfs" | "ramfs" | "rootfs" | "devtmpfs" | "hugetlbfs" => MountClass::Memory,
            _ if sub.is_some() => MountClass::Fuse,
            "fuse" | "fuseblk" | "fusectl" => MountClass::Fuse,
            "ext2" | "ext3" | "ext4" | "xfs" | "btrfs" | "zfs" | "f2fs" | "bcachefs" | "jfs" | "reiserfs" | "reiser4" | "nilfs2"
            | "ufs" | "ffs" | "apfs" | "hfs" | "hfsplus" | "ntfs" | "ntfs3" | "vfat" | "msdos" | "exfat" | "udf" | "iso9660"
            | "squashfs" | "erofs" | "ubifs" | "jffs2" | "minix" | "cramfs" | "romfs" | "ecryptfs" | "sdcardfs" => MountClass::Native,
            _ => MountClass::Unknown,
        }
    }

    /// Whether a write-ahead log works there.
    #[must_use]
    pub const fn wal(self) -> WalSafety {
        match self {
            MountClass::Native | MountClass::Memory | MountClass::Overlay => WalSafety::Safe,
            MountClass::HostShare => WalSafety::Unsafe,
            MountClass::Nfs | MountClass::Smb | MountClass::Network => WalSafety::OneMachine,
            MountClass::Fuse | MountClass::Unknown => WalSafety::Unknown,
        }
    }

    /// What it is, for a sentence.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            MountClass::Native => "a native file system of this machine",
            MountClass::Memory => "a file system in memory: what is in it is gone after a restart",
            MountClass::Overlay => "the layers of a container: safe for a log, but gone with the container",
            MountClass::HostShare => "a folder shared between a host and a virtual machine or container",
            MountClass::Nfs => "NFS",
            MountClass::Smb => "SMB/CIFS",
            MountClass::Network => "a network or cluster file system",
            MountClass::Fuse => "a file system of a user program (FUSE)",
            MountClass::Unknown => "a file system that is not known here",
        }
    }
}

/// One line of mountinfo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Its number.
    pub id: u64,
    /// The mount that it stands on.
    pub parent: u64,
    /// Device, as `major:minor` gives it.
    pub device: (u32, u32),
    /// The folder of the file system that is shown: other than `/` for a bind mount or subvolume.
    pub root: Vec<u8>,
    /// Where it is mounted, octal escapes undone.
    pub point: Vec<u8>,
    /// The type, as it stands there.
    pub fstype: String,
    /// The source: a device, a share, a tag.
    pub source: String,
    /// Options of the mount and of the file system.
    pub options: String,
    /// The line, from 1.
    pub line: usize,
}

impl Mount {
    /// What kind it is.
    #[must_use]
    pub fn class(&self) -> MountClass {
        MountClass::of(&self.fstype)
    }

    /// Whether it shows a part of its file system only: a bind mount, a subvolume.
    #[must_use]
    pub fn is_part(&self) -> bool {
        self.root != b"/"
    }

    /// Whether nothing can be written through it.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.options.split(',').next() == Some("ro")
    }

    fn read(text: &str, line: usize) -> Option<Mount> {
        let mut fields = text.split_ascii_whitespace();
        let (id, parent) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        let (major, minor) = fields.next()?.split_once(':')?;
        let device = (major.parse().ok()?, minor.parse().ok()?);
        let (root, point) = (unescape(fields.next()?), unescape(fields.next()?));
        let mut options = fields.next()?.to_owned();
        // Optional fields follow, in any number, up to a lone hyphen.
        fields.by_ref().find(|f| *f == "-")?;
        let fstype = String::from_utf8_lossy(&unescape(fields.next()?)).into_owned();
        let source = fields.next().map(|s| String::from_utf8_lossy(&unescape(s)).into_owned()).unwrap_or_default();
        if let Some(more) = fields.next() {
            options = format!("{options},{more}");
        }
        (point.first() == Some(&b'/')).then_some(Mount { id, parent, device, root, point, fstype, source, options, line })
    }
}

/// Undoes the octal escapes of mountinfo (`\040` is a space) in one pass.
fn unescape(field: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let octal = after.get(..3).filter(|d| first == b'\\' && d.iter().all(|c| (b'0'..=b'7').contains(c)));
        let byte = octal.and_then(|d| u8::from_str_radix(std::str::from_utf8(d).ok()?, 8).ok());
        match byte {
            Some(byte) => {
                out.push(byte);
                rest = after.get(3..).unwrap_or_default();
            }
            None => {
                out.push(first);
                rest = after;
            }
        }
    }
    out
}

/// All mounts that a process sees.
#[derive(Debug, Clone, Default)]
pub struct MountTable {
    mounts: Vec<Mount>,
    /// Lines that are no line of mountinfo.
    pub unread: usize,
}

impl MountTable {
    /// Reads the text of a mountinfo file; lines that are none are counted.
    #[must_use]
    pub fn parse(text: &[u8]) -> MountTable {
        let mut table = MountTable::default();
        for (i, line) in text.split(|b| *b == b'\n').enumerate() {
            let line = String::from_utf8_lossy(line);
            let line = line.trim();
            if line.is_empty() {
                continue;
            }
            match Mount::read(line, i.saturating_add(1)) {
                Some(mount) => table.mounts.push(mount),
                None => table.unread = table.unread.saturating_add(1),
            }
        }
        table
    }

    /// Whether a text is that of a mountinfo file: most of its lines are.
    #[must_use]
    pub fn recognises(text: &[u8]) -> bool {
        let table = MountTable::parse(text.get(..64 << 10).unwrap_or(text));
        table.mounts.len() > table.unread.saturating_mul(2)
    }

    /// Reads a mountinfo file.
    ///
    /// # Errors
    /// I/O; `Usage` when no line of it is one of mountinfo.
    pub fn read(path: &Path) -> Result<MountTable> {
        let file = std::fs::File::open(path).map_err(|e| Error::io(path, "open", e))?;
        let mut text = Vec::new();
        file.take(BYTES).read_to_end(&mut text).map_err(|e| Error::io(path, "read", e))?;
        let table = MountTable::parse(&text);
        if table.mounts.is_empty() {
            return Err(Error::Usage { what: format!("{}: holds no line of mountinfo", path.display()) });
        }
        Ok(table)
    }

    /// The mounts of this process; `None` on a system without `/proc/self/mountinfo`.
    #[must_use]
    pub fn live() -> Option<MountTable> {
        MountTable::read(Path::new("/proc/self/mountinfo")).ok()
    }

    /// All mounts, in the order of the text.
    #[must_use]
    pub fn mounts(&self) -> &[Mount] {
        &self.mounts
    }

    /// The mount that an absolute path lies on, `.` and symbolic links resolved by the caller. A mount on the path itself, such
    /// as a single file that is bound into a container, counts.
    #[must_use]
    pub fn covering(&self, path: &Path) -> Option<&Mount> {
        let path = path.as_os_str().as_encoded_bytes();
        if path.first() != Some(&b'/') {
            return None;
        }
        self.walked(path).or_else(|| self.by_order(path))
    }

    /// The walk of the kernel; `None` when the text has no root mount or its numbers do not hang together.
    fn walked(&self, path: &[u8]) -> Option<&Mount> {
        let mut ids: BTreeMap<u64, usize> = BTreeMap::new();
        for m in &self.mounts {
            // A number that stands twice says nothing about who stands on whom.
            if ids.insert(m.id, m.line).is_some() {
                return None;
            }
        }
        let is_root = |m: &&Mount| m.point == b"/" && (!ids.contains_key(&m.parent) || m.parent == m.id);
        let mut at = self.mounts.iter().rfind(is_root)?;
        // Every listed mount must be reachable by its parents, else lines are missing.
        let mut walked = 0_usize;
        let ends = path.iter().enumerate().skip(1).filter(|(_, b)| **b == b'/').map(|(i, _)| i).chain([path.len()]);
        for end in std::iter::once(1).chain(ends) {
            let here = path.get(..end)?;
            let here = if here.len() > 1 { here.strip_suffix(b"/").unwrap_or(here) } else { here };
            while let Some(next) = self.mounts.iter().rfind(|m| m.parent == at.id && m.id != at.id && m.point == here) {
                walked = walked.saturating_add(1);
                if walked > STACKED {
                    return None;
                }
                at = next;
            }
        }
        // A longer point whose parents are not listed: the text was cut, the walk could not get there.
        let orphaned = self.mounts.iter().any(|m| below(path, &m.point) && m.point.len() > at.point.len() && !ids.contains_key(&m.parent));
        (!orphaned).then_some(at)
    }

    /// By the order of the lines alone: the deepest point wins, of equals the later, and a mount that a later one covers is
    /// hidden.
    fn by_order(&self, path: &[u8]) -> Option<&Mount> {
        let mut best: Option<&Mount> = None;
        for m in self.mounts.iter().filter(|m| below(path, &m.point)) {
            // Whatever comes later on the way to the path stands on top of it or below it.
            let deeper = best.is_none_or(|b| m.point.len() >= b.point.len() || below(&b.point, &m.point));
            if deeper {
                best = Some(m);
            }
        }
        best
    }
}

/// Whether a path is a mount point or lies below it.
fn below(path: &[u8], point: &[u8]) -> bool {
    point == b"/" || path.strip_prefix(point).is_some_and(|rest| rest.is_empty() || rest.first() == Some(&b'/'))
}

/// An absolute path without symbolic links: of the file, or of its folder where the file is not there.
#[must_use]
pub fn real(path: &Path) -> PathBuf {
    if let Ok(found) = std::fs::canonicalize(path) {
        return found;
    }
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (std::fs::canonicalize(folder), path.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_undone_once() {
        assert_eq!(unescape(r"/a\040b\011c\012d\134040"), b"/a b\tc\nd\\040");
        assert_eq!(unescape(r"/x\9\04"), br"/x\9\04");
    }
}
