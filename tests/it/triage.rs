//! Incident bundles: the best source, what the others add, and archives that mean harm.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rootpage::ctx::Ctx;
use rootpage::triage::model::{FileLine, Relation, SourceLine, Triage};
use rootpage::triage::{Wanted, examine};
use rootpage::verbs::Options;
use rusqlite::Connection;

fn triage(path: &Path) -> Triage {
    examine(path, &Wanted::default(), &Options::default(), &Ctx::default()).unwrap()
}

fn file<'t>(t: &'t Triage, name: &str) -> &'t FileLine {
    t.files.iter().find(|f| f.name == name).unwrap_or_else(|| panic!("{name} of {:?}", t.files.iter().map(|f| &f.name).collect::<Vec<_>>()))
}

fn source<'t>(t: &'t Triage, name: &str) -> &'t SourceLine {
    t.sources
        .iter()
        .find(|s| s.name == name)
        .unwrap_or_else(|| panic!("{name} of {:?}", t.sources.iter().map(|s| &s.name).collect::<Vec<_>>()))
}

fn alone(s: &SourceLine) -> Vec<(String, u64)> {
    s.only_here.iter().map(|o| (o.table.clone(), o.rows)).collect()
}

/// A store in WAL mode, open, nothing checkpointed by itself.
struct Live {
    dir: tempfile::TempDir,
    db: Connection,
}

impl Live {
    fn new(rows: u32) -> Live {
        let dir = tempfile::tempdir().unwrap();
        let db = Connection::open(dir.path().join("live.db")).unwrap();
        db.execute_batch(
            "PRAGMA journal_mode=wal; PRAGMA wal_autocheckpoint=0;
             CREATE TABLE session(id TEXT PRIMARY KEY, title TEXT, started REAL NOT NULL);
             CREATE TABLE msg(id INTEGER PRIMARY KEY, session TEXT REFERENCES session(id), body TEXT);
             CREATE INDEX msg_session ON msg(session);
             CREATE TABLE meta(k TEXT PRIMARY KEY, v);",
        )
        .unwrap();
        let live = Live { dir, db };
        live.add(1, rows);
        live.checkpoint();
        live
    }

    fn add(&self, from: u32, to: u32) {
        self.db
            .execute_batch(&format!(
                "BEGIN; INSERT OR IGNORE INTO session VALUES('s{from}', 'title {from}', {from}.5);
                 WITH RECURSIVE n(i) AS (SELECT {from} UNION ALL SELECT i + 1 FROM n WHERE i < {to})
                 INSERT INTO msg SELECT i, 's{from}', printf('message %d %s', i, hex(randomblob(120))) FROM n; COMMIT"
            ))
            .unwrap();
    }

    fn checkpoint(&self) {
        self.db.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    }

    /// Copies the files under other names.
    fn copy(&self, to: &Path, main: &str, log: Option<&str>) {
        std::fs::copy(self.dir.path().join("live.db"), to.join(main)).unwrap();
        if let Some(log) = log {
            std::fs::copy(self.dir.path().join("live.db-wal"), to.join(log)).unwrap();
        }
    }
}

/// Overwrites a leaf of a table with zeros, in a file of 4,096-byte pages: the middle one of its rows.
fn damage(db: &Path, table: &str) {
    // SQLite leaves a -shm beside what it opens.
    let own = tempfile::tempdir().unwrap();
    std::fs::copy(db, own.path().join("x.db")).unwrap();
    let c = Connection::open(own.path().join("x.db")).unwrap();
    let root: u32 = c.query_row("SELECT rootpage FROM sqlite_schema WHERE name = ?1", [table], |r| r.get(0)).unwrap();
    drop(c);
    let mut b = std::fs::read(db).unwrap();
    let at = (root as usize - 1) * 4096;
    assert_eq!(b[at], 5, "the root is an interior page");
    let cell = u16::from_be_bytes([b[at + 12 + 2], b[at + 12 + 3]]) as usize;
    let child = u32::from_be_bytes(b[at + cell..at + cell + 4].try_into().unwrap()) as usize;
    b[(child - 1) * 4096..child * 4096].fill(0);
    std::fs::write(db, b).unwrap();
}

/// Runs the commands of the last steps in a shell, with the program of this build; returns the last database that they make.
fn follow(t: &Triage, dir: &Path) -> PathBuf {
    let bin = Path::new(env!("CARGO_BIN_EXE_rootpage")).parent().unwrap();
    let path =
        std::env::join_paths(std::iter::once(bin.to_path_buf()).chain(std::env::split_paths(&std::env::var_os("PATH").unwrap()))).unwrap();
    for command in t.steps.iter().flat_map(|s| &s.commands) {
        let out = Command::new("bash").args(["-c", command]).current_dir(dir).env("PATH", &path).output().unwrap();
        assert!(matches!(out.status.code(), Some(0..=2)), "{command}: {}", String::from_utf8_lossy(&out.stderr));
    }
    let mut last = dir.join("union-0.db");
    for n in 1.. {
        let next = dir.join(format!("union-{n}.db"));
        if !next.is_file() {
            break;
        }
        last = next;
    }
    last
}

fn rows(db: &Path, sql: &str) -> i64 {
    let c = Connection::open(db).unwrap();
    let ok: String = c.query_row("PRAGMA integrity_check", [], |r| r.get(0)).unwrap();
    assert_eq!(ok, "ok");
    c.query_row(sql, [], |r| r.get(0)).unwrap()
}

#[test]
fn a_damaged_store_with_its_log_and_an_older_backup() {
    let live = Live::new(200);
    let dir = tempfile::tempdir().unwrap();
    live.copy(dir.path(), "state.db.bak", None);
    live.add(201, 230);
    live.checkpoint();
    live.add(231, 260);
    live.copy(dir.path(), "state.db", Some("state.db-wal"));
    damage(&dir.path().join("state.db"), "msg");
    let t = triage(dir.path());
    assert_eq!(
        (t.sources[0].name.as_str(), t.sources[0].log.as_deref()),
        ("state.db", Some("state.db-wal")),
        "{}",
        t.text(&Default::default())
    );
    assert_eq!(file(&t, "state.db.bak").role, "a backup");
    assert!(!alone(source(&t, "state.db.bak")).is_empty() && !alone(&t.sources[0]).is_empty());
    assert_eq!(t.exit_code, 2);
    let out = follow(&t, dir.path());
    assert_eq!(rows(&out, "SELECT count(*) FROM msg"), 260);
    assert_eq!(rows(&out, "SELECT count(*) FROM session"), 3);
}

#[test]
fn sidecars_are_matched_by_fit_and_not_by_name() {
    let live = Live::new(100);
    let other = Live::new(90);
    let dir = tempfile::tempdir().unwrap();
    live.add(101, 130);
    other.add(91, 120);
    // The logs lie beside the wrong files, under names of their own.
    live.copy(dir.path(), "a.db", Some("retired.1"));
    other.copy(dir.path(), "b.db", Some("b.db.bak-wal"));
    std::fs::rename(dir.path().join("retired.1"), dir.path().join("b.db-wal")).unwrap();
    let t = triage(dir.path());
    assert_eq!(source(&t, "a.db").log.as_deref(), Some("b.db-wal"), "{}", t.text(&Default::default()));
    assert_eq!(source(&t, "b.db").log.as_deref(), Some("b.db.bak-wal"));
    assert_eq!((source(&t, "a.db").tables["msg"], source(&t, "b.db").tables["msg"]), (130, 120));
    // Two stores of one application with other rows are no union.
    let second = &t.sources[1];
    assert_eq!(second.relation, Relation::OtherStore, "{:?}", t.sources);
    assert!(t.steps.iter().any(|s| s.words.contains("by itself")));
}

#[test]
fn a_store_that_was_begun_anew_is_not_the_best() {
    let live = Live::new(300);
    let fresh = Live::new(3);
    let dir = tempfile::tempdir().unwrap();
    live.copy(dir.path(), "state.db.malformed-backup-20260901_101010", None);
    damage(&dir.path().join("state.db.malformed-backup-20260901_101010"), "msg");
    fresh.copy(dir.path(), "state.db", None);
    let t = triage(dir.path());
    assert_eq!(t.sources[0].name, "state.db.malformed-backup-20260901_101010");
    assert_eq!(file(&t, "state.db").role, "a store of the same application with other rows");
    assert!(t.missing.iter().any(|m| m.contains("-wal")), "{:?}", t.missing);
}

#[test]
fn the_newest_whole_state_wins_although_older_ones_hold_more() {
    let live = Live::new(200);
    let dir = tempfile::tempdir().unwrap();
    live.copy(dir.path(), "yesterday.db", None);
    live.db
        .execute_batch(
            "DELETE FROM msg WHERE id <= 40; UPDATE msg SET body = 'edited' WHERE id = 50; INSERT INTO msg VALUES(500, 's1', 'new')",
        )
        .unwrap();
    live.checkpoint();
    live.copy(dir.path(), "today.db", None);
    let t = triage(dir.path());
    assert_eq!(t.sources[0].name, "today.db");
    let older = source(&t, "yesterday.db");
    assert_eq!((alone(older), older.older_versions), (vec![("msg".to_owned(), 40)], 1));
    assert_eq!(older.only_here[0].keys[..3], ["1", "2", "3"]);
    assert!(t.steps[0].words.contains("deleted on purpose"));
    assert_eq!(file(&t, "yesterday.db").role, "an older state");
    // With --redact no key is named.
    let mut options = Options::default();
    options.redact = true;
    let hidden = examine(dir.path(), &Wanted::default(), &options, &Ctx::default()).unwrap();
    assert!(hidden.sources.iter().flat_map(|s| &s.only_here).all(|o| o.keys.is_empty() && o.rows > 0));
}

#[test]
fn a_store_without_a_byte_and_its_log() {
    let live = Live::new(1);
    let dir = tempfile::tempdir().unwrap();
    // Every page of the store is in the log.
    live.db.execute_batch("VACUUM").unwrap();
    live.add(2, 80);
    live.copy(dir.path(), "state.db", Some("state.db-wal"));
    std::fs::write(dir.path().join("state.db"), b"").unwrap();
    let t = triage(dir.path());
    assert_eq!(
        (t.sources[0].name.as_str(), t.sources[0].log.as_deref()),
        ("state.db", Some("state.db-wal")),
        "{}",
        t.text(&Default::default())
    );
    assert_eq!(t.sources[0].tables["msg"], 80);
    let out = follow(&t, dir.path());
    assert_eq!(rows(&out, "SELECT count(*) FROM msg"), 80);
}

#[test]
fn a_log_without_its_store() {
    let live = Live::new(50);
    let dir = tempfile::tempdir().unwrap();
    live.add(51, 90);
    live.copy(dir.path(), "x", Some("state.db-wal"));
    std::fs::remove_file(dir.path().join("x")).unwrap();
    let t = triage(dir.path());
    assert_eq!(file(&t, "state.db-wal").kind, "wal");
    assert!(t.missing.iter().any(|m| m.contains("the database of this log")), "{:?}", t.missing);
}

#[test]
fn a_hot_journal_under_another_name() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("state.db");
    let c = Connection::open(&db).unwrap();
    c.execute_batch(
        "PRAGMA cache_size=2; CREATE TABLE t(a INTEGER PRIMARY KEY, b);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400) INSERT INTO t SELECT i, hex(randomblob(100)) FROM n;
         BEGIN; UPDATE t SET b = 'half of a transaction'",
    )
    .unwrap();
    let bundle = tempfile::tempdir().unwrap();
    std::fs::copy(&db, bundle.path().join("state.db")).unwrap();
    std::fs::copy(dir.path().join("state.db-journal"), bundle.path().join("saved.journal")).unwrap();
    let t = triage(bundle.path());
    assert_eq!(t.sources[0].journal.as_deref(), Some("saved.journal"), "{}", t.text(&Default::default()));
    let out = follow(&t, bundle.path());
    assert_eq!(rows(&out, "SELECT count(*) FROM t WHERE length(b) = 200"), 400);
}

#[test]
fn everything_has_its_name() {
    let live = Live::new(120);
    let dir = tempfile::tempdir().unwrap();
    let p = dir.path();
    live.add(121, 140);
    live.copy(p, "state.db", Some("state.db-wal"));
    std::fs::copy(live.dir.path().join("live.db-shm"), p.join("shm.bin")).unwrap();
    std::fs::create_dir_all(p.join("logs/old")).unwrap();
    std::fs::copy(p.join("state.db"), p.join("logs/old/copy of state.db")).unwrap();
    std::fs::write(p.join("logs/agent.log"), "12:00 database is locked\n12:01 database is locked\n").unwrap();
    std::fs::write(p.join("logs/fallback.jsonl"), "{\"a\": 1}\n{\"a\": 2}\n").unwrap();
    std::fs::write(
        p.join("mountinfo.txt"),
        std::fs::read("/proc/self/mountinfo").unwrap_or_else(|_| b"1 0 8:1 / / rw - ext4 /dev/sda1 rw\n".to_vec()),
    )
    .unwrap();
    std::fs::write(p.join("photo.png"), b"\x89PNG\r\n\x1a\n0000").unwrap();
    std::fs::write(p.join("zero.db"), vec![0_u8; 8192]).unwrap();
    let c = Connection::open(p.join("browser.sqlite")).unwrap();
    c.execute_batch("CREATE TABLE visits(id INTEGER PRIMARY KEY, url); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900) INSERT INTO visits SELECT i, 'u' FROM n").unwrap();
    drop(c);
    let mut wanted = Wanted::default();
    wanted.tables = vec!["session".to_owned(), "msg".to_owned()];
    let t = examine(p, &wanted, &Options::default(), &Ctx::default()).unwrap();
    assert_eq!(t.sources[0].name, "state.db", "{}", t.text(&Default::default()));
    let role = |name: &str| file(&t, name).role.clone();
    assert_eq!(
        (file(&t, "state.db").same_as.as_deref(), file(&t, "logs/old/copy of state.db").same_as.as_deref()),
        (None, Some("state.db"))
    );
    assert_eq!(role("browser.sqlite"), "another database");
    assert!(role("shm.bin").contains("state.db"), "{}", role("shm.bin"));
    assert!(file(&t, "logs/agent.log").what.contains("\"database is locked\" 2 times"));
    assert_eq!(file(&t, "logs/fallback.jsonl").kind, "json-lines");
    assert_eq!(file(&t, "mountinfo.txt").kind, "mountinfo");
    assert!(file(&t, "photo.png").what.contains("PNG"));
    assert!(file(&t, "zero.db").what.contains("zero-filled"));
    let html = t.html().unwrap();
    assert!(html.contains("browser.sqlite") && !html.contains("<script"));
    let json: serde_json::Value = serde_json::from_str(&t.to_json()).unwrap();
    assert_eq!(json["files"].as_array().unwrap().len(), t.files.len());
    for width in [60, 80, 160] {
        let mut style = rootpage::report::text::Style::default();
        style.width = width;
        let text = t.text(&style);
        assert!(text.lines().filter(|l| !l.starts_with("       ")).all(|l| l.chars().count() <= width.max(75)), "{text}");
    }
}

fn tar_gz(dir: &Path, out: &Path) {
    let file = flate2_writer(out);
    let mut tar = tar::Builder::new(file);
    tar.append_dir_all("incident", dir).unwrap();
    tar.into_inner().unwrap().finish().unwrap();
}

fn flate2_writer(out: &Path) -> flate2::write::GzEncoder<std::fs::File> {
    flate2::write::GzEncoder::new(std::fs::File::create(out).unwrap(), flate2::Compression::fast())
}

#[test]
fn archives_give_the_same_answer() {
    let live = Live::new(200);
    let dir = tempfile::tempdir().unwrap();
    live.copy(dir.path(), "state.db.bak", None);
    live.add(201, 230);
    live.checkpoint();
    live.add(231, 260);
    live.copy(dir.path(), "state.db", Some("state.db-wal"));
    damage(&dir.path().join("state.db"), "msg");
    let out = tempfile::tempdir().unwrap();
    let (targz, zip, nested) = (out.path().join("incident.tar.gz"), out.path().join("incident.zip"), out.path().join("nested.zip"));
    tar_gz(dir.path(), &targz);
    let mut z = zip::ZipWriter::new(std::fs::File::create(&zip).unwrap());
    for entry in std::fs::read_dir(dir.path()).unwrap() {
        let entry = entry.unwrap();
        z.start_file(
            format!("incident/{}", entry.file_name().to_string_lossy()),
            zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored),
        )
        .unwrap();
        z.write_all(&std::fs::read(entry.path()).unwrap()).unwrap();
    }
    z.finish().unwrap();
    let mut z = zip::ZipWriter::new(std::fs::File::create(&nested).unwrap());
    z.start_file("deep/incident.tar.gz", zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored))
        .unwrap();
    z.write_all(&std::fs::read(&targz).unwrap()).unwrap();
    z.finish().unwrap();
    for (archive, prefix) in [(&targz, "incident/"), (&zip, "incident/"), (&nested, "deep/incident.tar.gz!incident/")] {
        let t = triage(archive);
        assert_eq!(t.sources[0].name, format!("{prefix}state.db"), "{}", t.text(&Default::default()));
        assert_eq!(t.sources[0].log, Some(format!("{prefix}state.db-wal")));
        let work = tempfile::tempdir().unwrap();
        let done = follow(&t, work.path());
        assert_eq!(rows(&done, "SELECT count(*) FROM msg"), 260, "{archive:?}");
        assert!(work.path().join("bundle").is_dir());
    }
    // Nothing stays behind without --extract.
    assert_eq!(std::fs::read_dir(out.path()).unwrap().count(), 3);
}

fn raw_tar(out: &Path, entries: &[(&str, u8, &str, &[u8])]) {
    let mut bytes = Vec::new();
    for (name, kind, link, data) in entries {
        let mut header = [0_u8; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[100..108].copy_from_slice(b"0000644\0");
        header[124..136].copy_from_slice(format!("{:011o}\0", data.len()).as_bytes());
        header[148..156].fill(b' ');
        header[156] = *kind;
        header[157..157 + link.len()].copy_from_slice(link.as_bytes());
        header[257..265].copy_from_slice(b"ustar\x0000");
        let sum: u32 = header.iter().map(|b| u32::from(*b)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        bytes.extend_from_slice(&header);
        bytes.extend_from_slice(data);
        bytes.resize(bytes.len().div_ceil(512) * 512, 0);
    }
    bytes.extend_from_slice(&[0; 1024]);
    std::fs::write(out, bytes).unwrap();
}

#[test]
fn hostile_archives_are_bounded_and_told() {
    let dir = tempfile::tempdir().unwrap();
    let p = dir.path();
    // Names that lead elsewhere, links, devices.
    raw_tar(
        &p.join("paths.tar"),
        &[
            ("../../escape.db", b'0', "", b"x"),
            ("a/../../b.db", b'0', "", b"x"),
            ("/etc/cron.d/root", b'0', "", b"ok"),
            ("link", b'2', "/etc/passwd", b""),
            ("hard", b'1', "/etc/shadow", b""),
            ("dev", b'3', "", b""),
            ("link", b'0', "", b"over the link"),
            ("bell\u{7}\u{1b}[2J", b'0', "", b"y"),
        ],
    );
    let t = triage(&p.join("paths.tar"));
    let names: Vec<&str> = t.files.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(names, ["/etc/cron.d/root", "bell\u{7}\u{1b}[2J", "link"]);
    let why = |name: &str| t.skipped.iter().filter(|s| s.name == name).map(|s| s.why.as_str()).collect::<Vec<_>>().join("|");
    assert!(why("../../escape.db").contains("leads out") && why("a/../../b.db").contains("leads out"));
    assert!(why("link").contains("link") && why("hard").contains("link") && why("dev").contains("no regular file"));
    assert!(!Path::new("/etc/cron.d/root").exists() || std::fs::read("/etc/cron.d/root").unwrap() != b"ok");
    assert!(!t.text(&Default::default()).contains('\u{1b}') && !t.html().unwrap().contains('\u{1b}'));
    assert_eq!(t.exit_code, 3);
    // Ten gigabytes of zeros, in a tar.gz and as a zip.
    let zeros = p.join("zeros.gz");
    let mut gz = flate2_writer(&zeros);
    let block = vec![0_u8; 1 << 20];
    for _ in 0..600 {
        gz.write_all(&block).unwrap();
    }
    let mut small = gz.finish().unwrap();
    small.flush().unwrap();
    drop(small);
    // The same member again and again: what comes out of one gzip file of many members.
    let one = std::fs::read(&zeros).unwrap();
    let mut many = std::fs::File::create(p.join("many.gz")).unwrap();
    for _ in 0..17 {
        many.write_all(&one).unwrap();
    }
    drop(many);
    for name in ["zeros.gz", "many.gz"] {
        let t = triage(&p.join(name));
        assert!(t.files.is_empty() && t.skipped[0].why.contains("bomb"), "{name}: {:?}", t.skipped);
    }
    // A bound of the caller.
    let mut wanted = Wanted::default();
    wanted.most = 1 << 20;
    std::fs::write(p.join("big.bin"), vec![7_u8; 3 << 20]).unwrap();
    let sub = p.join("sub");
    std::fs::create_dir(&sub).unwrap();
    std::fs::rename(p.join("big.bin"), sub.join("big.bin")).unwrap();
    tar_gz(&sub, &p.join("big.tar.gz"));
    let t = examine(&p.join("big.tar.gz"), &wanted, &Options::default(), &Ctx::default()).unwrap();
    assert!(t.files.is_empty() && t.skipped.iter().any(|s| s.why.contains("--max-size")), "{:?}", t.skipped);
    // Archives within archives end.
    let mut inner = b"hello".to_vec();
    for _ in 0..6 {
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(&inner).unwrap();
        inner = gz.finish().unwrap();
    }
    std::fs::write(p.join("deep.gz"), &inner).unwrap();
    let t = triage(&p.join("deep.gz"));
    assert!(t.files.is_empty() && t.skipped[0].why.contains("within archives"), "{:?}", t.skipped);
    // Encrypted: the flag of a member of a zip archive, and one that is cut.
    let mut z = zip::ZipWriter::new(std::fs::File::create(p.join("e.zip")).unwrap());
    z.start_file("secret.db", zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored)).unwrap();
    z.write_all(b"secret").unwrap();
    z.finish().unwrap();
    let mut b = std::fs::read(p.join("e.zip")).unwrap();
    let central = b.windows(4).position(|w| w == b"PK\x01\x02").unwrap();
    b[6] |= 1;
    b[central + 8] |= 1;
    std::fs::write(p.join("e.zip"), &b).unwrap();
    let t = triage(&p.join("e.zip"));
    assert!(t.skipped.iter().any(|s| s.name == "secret.db" && s.why.contains("encrypted")), "{:?} {:?}", t.skipped, t.files);
    std::fs::write(p.join("cut.zip"), &b[..20]).unwrap();
    assert!(triage(&p.join("cut.zip")).skipped[0].why.contains("cannot be read"));
    // Links of a folder are not followed, and something that is no bundle is said to be none.
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("/etc", sub.join("etc")).unwrap();
        let t = triage(&sub);
        assert!(t.skipped.iter().any(|s| s.name == "etc" && s.why.contains("link")));
    }
    assert!(examine(&sub.join("big.bin"), &Wanted::default(), &Options::default(), &Ctx::default()).is_err());
}

#[test]
fn a_folder_and_a_glob_are_checked_store_by_store() {
    let live = Live::new(50);
    let dir = tempfile::tempdir().unwrap();
    live.add(51, 60);
    std::fs::create_dir(dir.path().join("sub")).unwrap();
    live.copy(dir.path(), "a.db", Some("a.db-wal"));
    live.copy(&dir.path().join("sub"), "b.db", None);
    let run = |args: &[&str]| Command::new(env!("CARGO_BIN_EXE_rootpage")).args(args).current_dir(dir.path()).output().unwrap();
    let text = |out: &std::process::Output| String::from_utf8(out.stdout.clone()).unwrap();
    let out = run(&["check", "--recursive", "."]);
    assert_eq!((out.status.code(), text(&out).lines().count()), (Some(0), 2), "{}", text(&out));
    let out = run(&["check", "--recursive", "--json", "."]);
    for line in text(&out).lines() {
        let report: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(report["verdict"]["class"], "healthy");
    }
    // Side by side they come in the same order with the same words, and one that is damaged decides the code.
    for i in 0..20 {
        std::fs::write(dir.path().join(format!("sub/{i}.db")), vec![0_u8; 4096]).unwrap();
        live.copy(&dir.path().join("sub"), &format!("{i}-whole.db"), None);
    }
    let (alone, together) = (run(&["check", "--recursive", "."]), run(&["check", "--recursive", "--jobs", "4", "."]));
    assert!(text(&alone).lines().count() >= 22, "{}", text(&alone));
    assert_eq!((text(&alone), alone.status.code()), (text(&together), together.status.code()));
    // The log is read with its database, not as a second one.
    let out = run(&["check", "a.db", "a.db-wal", "--json"]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out));
    assert_eq!(text(&out).matches("\"verb\": \"check\"").count(), 1);
    let out = run(&["check", "."]);
    assert_eq!(out.status.code(), Some(74));
    assert!(String::from_utf8_lossy(&out.stderr).contains("--recursive"));
}
