//! The machine's own, older SQLite (python3's) judges indexes that we build.

use std::process::Command;

use rootpage::fts5::config::Config;

use super::real::Numbers;
use super::rebuild::{build, install, original, rows};

const SCRIPT: &str = r#"
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("INSERT INTO ft(ft, rank) VALUES('integrity-check', 1)")
assert db.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
before = db.execute("SELECT rowid FROM ft('the OR quick OR laz*') ORDER BY rank, rowid").fetchall()
db.execute("INSERT INTO ft(rowid, a) VALUES(77777777, 'the new row')")
db.execute("INSERT INTO ft(ft, rowid, a) VALUES('delete', 77777777, 'the new row')" if sys.argv[2] == "external" else "DELETE FROM ft WHERE rowid = 77777777")
db.execute("INSERT INTO ft(ft) VALUES('optimize')")
db.execute("INSERT INTO ft(ft, rank) VALUES('integrity-check', 1)")
db.execute("INSERT INTO ft(ft) VALUES('rebuild')")
db.execute("INSERT INTO ft(ft, rank) VALUES('integrity-check', 1)")
assert before == db.execute("SELECT rowid FROM ft('the OR quick OR laz*') ORDER BY rank, rowid").fetchall()
db.commit()
print(sqlite3.sqlite_version, len(before))
"#;

#[test]
fn an_older_sqlite_accepts_our_indexes() {
    match Command::new("python3")
        .args(["-c", "import sqlite3; sqlite3.connect(':memory:').execute('CREATE VIRTUAL TABLE t USING fts5(x, tokenize=trigram)')"])
        .output()
    {
        Ok(out) if out.status.success() => {}
        _ => {
            eprintln!("skipped: no python3 with FTS5 and trigrams here");
            return;
        }
    }
    let mut n = Numbers(61);
    let rows = rows(&mut n, 400, 2, 80, false);
    let kinds: &[&[&str]] = &[
        &["a", "b"],
        &["a", "b", "content='docs'", "content_rowid='id'"],
        &["a", "b", "content='docs'", "content_rowid='id'", "tokenize=trigram"],
        &["a", "b", "content='docs'", "content_rowid='id'", "tokenize='trigram case_sensitive 1'"],
        &["a", "b", "tokenize='porter unicode61 remove_diacritics 2'", "prefix='2 3'"],
        &["a", "b UNINDEXED", "detail=column", "tokenize=ascii"],
        &["a", "b", "detail=none"],
    ];
    for arguments in kinds {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        original(&path, arguments, &rows);
        let config = Config::parse(arguments).unwrap();
        install(&rusqlite::Connection::open(&path).unwrap(), "ft", build(&config, &rows, 128 << 20, 4050));
        let kind = if arguments.iter().any(|a| a.starts_with("content=")) { "external" } else { "stored" };
        let out = Command::new("python3").args(["-c", SCRIPT]).arg(&path).arg(kind).output().unwrap();
        assert!(out.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&out.stderr));
    }
}

const WITH_NUL: &str = r#"
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("CREATE TABLE docs(id INTEGER PRIMARY KEY, a TEXT)")
db.execute("CREATE VIRTUAL TABLE ft USING fts5(a, content='docs', content_rowid='id', tokenize=trigram)")
db.execute("INSERT INTO docs VALUES(1, 'plain text'), (2, char(0) || 'json:[1,2,3]'), (3, 'before' || char(0) || 'behind'), (4, 'ab' || char(0))")
db.execute("INSERT INTO ft(ft) VALUES('rebuild')")
db.commit()
print(sqlite3.sqlite_version)
"#;

#[test]
fn the_nul_rule_of_older_releases_is_no_damage() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let version = match Command::new("python3").args(["-c", WITH_NUL]).arg(&path).output() {
        Ok(out) if out.status.success() => String::from_utf8(out.stdout).unwrap(),
        _ => {
            eprintln!("skipped: no python3 with FTS5 and trigrams here");
            return;
        }
    };
    let config = Config::parse(&["a", "content='docs'", "content_rowid='id'", "tokenize=trigram"]).unwrap();
    let db = rusqlite::Connection::open(&path).unwrap();
    let (checked, log) = super::check::check(&config, &super::check::shadow(&db, "ft", &config));
    assert!(checked.is_clean());
    let newer = db.execute_batch("INSERT INTO ft(ft, rank) VALUES('integrity-check', 1)").is_ok();
    assert_eq!(checked.older_nul_rule, if newer { 0 } else { 2 }, "written by {version}");
    assert_eq!(log.is_empty(), newer);
}
