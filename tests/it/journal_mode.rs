//! A copy in another journal mode is the database that SQLite sees.

use std::path::Path;

use rootpage::ctx::Ctx;
use rootpage::host::journal_mode::{Converted, Mode, convert};
use rootpage::verbs::Options;
use rusqlite::Connection;

use crate::judge;

fn to(db: &Path, mode: Mode, out: &Path) -> Converted {
    convert(db, mode, out, &Options::default(), &Ctx::default()).unwrap()
}

/// A database in WAL mode with a log that is not in the file, as a process that was killed leaves it.
fn store(dir: &Path, page_size: u32) -> std::path::PathBuf {
    let (live, copy) = (dir.join("live.db"), dir.join("state.db"));
    let c = Connection::open(&live).unwrap();
    c.execute_batch(&format!(
        "PRAGMA page_size={page_size}; PRAGMA auto_vacuum=2; PRAGMA journal_mode=wal; PRAGMA wal_autocheckpoint=0;
         CREATE TABLE t(a INTEGER PRIMARY KEY, b); CREATE INDEX tb ON t(b);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50) INSERT INTO t SELECT i, hex(randomblob(300)) FROM n"
    ))
    .unwrap();
    c.execute_batch("PRAGMA wal_checkpoint(PASSIVE); DELETE FROM t WHERE a > 40; INSERT INTO t VALUES(99, 'in the log')").unwrap();
    for ending in ["", "-wal"] {
        let name = |p: &Path| format!("{}{ending}", p.display());
        std::fs::copy(name(&live), name(&copy)).unwrap();
    }
    copy
}

#[test]
fn the_log_is_folded_in_and_the_mode_is_another() {
    for page_size in [512, 4096, 65536] {
        let dir = tempfile::tempdir().unwrap();
        let db = store(dir.path(), page_size);
        let before: Vec<Vec<u8>> = ["", "-wal"].iter().map(|e| std::fs::read(format!("{}{e}", db.display())).unwrap()).collect();
        let out = dir.path().join("delete.db");
        let done = to(&db, Mode::Delete, &out);
        assert!(done.out.is_some() && done.from_log > 0 && done.exit_code == 0, "{done:?}");
        let names: Vec<String> = std::fs::read_dir(dir.path())
            .unwrap()
            .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
            .filter(|n| n.starts_with("delete"))
            .collect();
        assert_eq!(names, ["delete.db"]);
        let c = judge::open(&out).unwrap();
        assert_eq!(judge::complaints(&c), Vec::<String>::new());
        let mode: String = c.query_row("PRAGMA journal_mode", [], |r| r.get(0)).unwrap();
        assert_eq!(mode, "delete");
        drop(c);
        // Back again, and the same rows all the way.
        let back = dir.path().join("wal.db");
        assert_eq!(to(&out, Mode::Wal, &back).from_log, 0);
        let mode: String = Connection::open(&back).unwrap().query_row("PRAGMA journal_mode", [], |r| r.get(0)).unwrap();
        assert_eq!(mode, "wal");
        let (a, b) = (judge::dump(&out).unwrap(), judge::dump(&back).unwrap());
        assert_eq!(judge::difference(&a, &b, &[]), None);
        assert_eq!(before, ["", "-wal"].map(|e| std::fs::read(format!("{}{e}", db.display())).unwrap()));
        // What SQLite itself sees with the log is what the copy holds.
        let truth = judge::dump(&db).unwrap();
        assert_eq!(judge::difference(&truth, &a, &[]), None);
        // Old sidecars go first.
        let commands = &done.steps[0].commands;
        assert!(commands[0].contains("-wal") && commands.last().unwrap().starts_with("mv -n"), "{commands:?}");
    }
}

#[test]
fn damage_and_doubt_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out.db");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for case in ["leaf-zero", "wal-foreign"] {
        let db = root.join(case).join("db.sqlite");
        if !db.is_file() {
            continue;
        }
        let done = to(&db, Mode::Delete, &out);
        assert_eq!((done.exit_code, done.out.is_none()), (3, true), "{case}: {done:?}");
        assert!(!out.exists());
    }
    // Never over something that is there.
    let db = store(dir.path(), 4096);
    std::fs::write(&out, b"here").unwrap();
    assert!(convert(&db, Mode::Delete, &out, &Options::default(), &Ctx::default()).is_err());
    assert_eq!(std::fs::read(&out).unwrap(), b"here");
}
