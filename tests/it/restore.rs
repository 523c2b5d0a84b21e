//! Set-aside rows back into a copy, and real SQLite as judge of it.

use std::path::{Path, PathBuf};

use rayon::prelude::*;
use rootpage::ctx::Ctx;
use rootpage::verbs::restore::{Restored, Wanted, restore};
use rootpage::verbs::{Inputs, Options, recover};
use rusqlite::Connection;

use crate::judge;

fn rows(c: &Connection, sql: &str) -> Vec<String> {
    let mut statement = c.prepare(sql).unwrap();
    let n = statement.column_count();
    let found = statement.query_map([], |r| {
        let values = (0..n).map(|i| {
            Ok(match r.get_ref(i)? {
                rusqlite::types::ValueRef::Null => "NULL".to_owned(),
                rusqlite::types::ValueRef::Integer(v) => v.to_string(),
                rusqlite::types::ValueRef::Real(v) => format!("{v:?}"),
                rusqlite::types::ValueRef::Text(t) | rusqlite::types::ValueRef::Blob(t) => String::from_utf8_lossy(t).into_owned(),
            })
        });
        Ok(values.collect::<rusqlite::Result<Vec<_>>>()?.join("|"))
    });
    found.unwrap().collect::<rusqlite::Result<_>>().unwrap()
}

/// What real SQLite has against a database.
fn complaints(path: &Path) -> Vec<String> {
    // The check of a search index is an INSERT.
    let dir = tempfile::tempdir().unwrap();
    let own = dir.path().join("own.db");
    std::fs::copy(path, &own).unwrap();
    let c = Connection::open(&own).unwrap();
    judge::extend(&c).unwrap();
    judge::complaints(&c)
}

fn run(copy: &Path, salvage: &Path, out: Option<&Path>, set: impl FnOnce(&mut Wanted)) -> Result<Restored, String> {
    let mut wanted = Wanted::default();
    set(&mut wanted);
    restore(&Inputs::at_path(copy), salvage, &wanted, &Options::default(), out, &Ctx::default()).map_err(|e| e.to_string())
}

/// A copy with search index, unique index, foreign key and autoincrement, and a salvage database for it.
struct Case {
    dir: tempfile::TempDir,
}

const PROVENANCE: &str =
    "rp_reason, rp_how, rp_trust, rp_source, rp_page, rp_cell, rp_offset, rp_length, rp_complete, rp_rowid, rp_restore";

impl Case {
    fn new() -> Case {
        let case = Case { dir: tempfile::tempdir().unwrap() };
        let c = Connection::open(case.copy()).unwrap();
        c.execute_batch(
            "CREATE TABLE room(id TEXT PRIMARY KEY, title TEXT UNIQUE, started REAL NOT NULL);
             CREATE TABLE msg(id INTEGER PRIMARY KEY AUTOINCREMENT, room TEXT NOT NULL REFERENCES room(id), body TEXT, n INT CHECK(n < 100),
                 twice INT GENERATED ALWAYS AS (n * 2) STORED);
             CREATE INDEX msg_room ON msg(room, n DESC);
             CREATE VIRTUAL TABLE msg_fts USING fts5(body, content='msg', content_rowid='id');
             CREATE TRIGGER ai AFTER INSERT ON msg BEGIN INSERT INTO msg_fts(rowid, body) VALUES(new.id, new.body); END;
             CREATE TRIGGER ad AFTER DELETE ON msg BEGIN INSERT INTO msg_fts(msg_fts, rowid, body) VALUES('delete', old.id, old.body); END;
             CREATE TABLE kv(k TEXT COLLATE NOCASE, v, PRIMARY KEY(k DESC)) WITHOUT ROWID;
             CREATE TABLE log(line TEXT);
             INSERT INTO room VALUES('a', 'first', 1.0), ('b', 'second', 2.5);
             INSERT INTO msg(id, room, body, n) VALUES(1, 'a', 'hello world', 1), (2, 'a', 'old text', 2), (5, 'b', 'other words', 3);
             INSERT INTO kv VALUES('x', 1), ('y', 2);
             INSERT INTO log VALUES('one'), ('two');",
        )
        .unwrap();
        let s = Connection::open(case.salvage()).unwrap();
        s.execute_batch(&format!(
            "CREATE TABLE room({PROVENANCE}, id, title, started, rp_surplus);
             CREATE TABLE msg({PROVENANCE}, id, room, body, n, twice, rp_surplus);
             CREATE TABLE kv({PROVENANCE}, k, v, rp_surplus);
             CREATE TABLE log({PROVENANCE}, line, rp_surplus);
             CREATE TABLE gone({PROVENANCE}, a, rp_surplus);
             CREATE TABLE lost_and_found_1(a, b);
             CREATE TABLE rootpage_findings(code);
             INSERT INTO gone(rp_how, rp_complete) VALUES('live', 1);
             INSERT INTO lost_and_found_1 VALUES(1, 2);"
        ))
        .unwrap();
        case
    }

    fn copy(&self) -> PathBuf {
        self.dir.path().join("out.db")
    }

    fn salvage(&self) -> PathBuf {
        self.dir.path().join("out.db.salvage.db")
    }

    fn out(&self) -> PathBuf {
        self.dir.path().join("out2.db")
    }

    fn aside(&self, table: &str, how: &str, complete: i64, rowid: Option<i64>, columns: &str, values: &str) {
        let s = Connection::open(self.salvage()).unwrap();
        let rowid = rowid.map_or("NULL".to_owned(), |r| r.to_string());
        s.execute_batch(&format!(
            "INSERT INTO {table}(rp_reason, rp_how, rp_complete, rp_rowid, {columns}) VALUES('hidden-commit', '{how}', {complete}, {rowid}, {values})"
        ))
        .unwrap();
    }

    /// Restores, and lets real SQLite judge the result.
    fn restored(&self, set: impl FnOnce(&mut Wanted)) -> (Restored, Connection) {
        let before = std::fs::read(self.copy()).unwrap();
        let done = run(&self.copy(), &self.salvage(), Some(&self.out()), set).unwrap();
        assert_eq!(std::fs::read(self.copy()).unwrap(), before);
        assert_eq!(complaints(&self.out()), Vec::<String>::new());
        let c = Connection::open(self.out()).unwrap();
        c.execute_batch("INSERT INTO msg_fts(msg_fts, rank) VALUES('integrity-check', 1)").unwrap();
        assert_eq!(rows(&c, "PRAGMA foreign_key_check"), Vec::<String>::new());
        (done, c)
    }
}

fn refused(done: &Restored, table: &str) -> Vec<(String, u64)> {
    let t = done.tables.iter().find(|t| t.table == table);
    t.map(|t| t.refused.iter().map(|(k, n)| (k.clone(), *n)).collect()).unwrap_or_default()
}

#[test]
fn rows_come_back_with_their_indexes_and_their_search_index() {
    let case = Case::new();
    case.aside("msg", "hidden", 1, Some(9), "id, room, body, n, twice", "9, 'a', 'hidden treasure', 7, 14");
    case.aside("msg", "hidden", 1, Some(3), "id, room, body, n, twice", "3, 'c', NULL, NULL, NULL");
    case.aside("room", "live", 1, Some(3), "id, title, started", "'c', NULL, 3");
    case.aside("kv", "live", 1, None, "k, v", "'Z', x'0102'");
    case.aside("log", "live", 1, Some(7), "line", "'seven'");
    let (done, c) = case.restored(|_| {});
    assert_eq!(done.exit_code, 0, "{done:?}");
    assert_eq!(rows(&c, "SELECT id, room, body, n, twice FROM msg WHERE id IN (3, 9)"), ["3|c|NULL|NULL|NULL", "9|a|hidden treasure|7|14"]);
    assert_eq!(rows(&c, "SELECT rowid FROM msg_fts WHERE msg_fts MATCH 'treasure'"), ["9"]);
    assert_eq!(rows(&c, "SELECT id FROM msg INDEXED BY msg_room WHERE room = 'a' ORDER BY n DESC"), ["9", "2", "1"]);
    assert_eq!(rows(&c, "SELECT id, title, started, typeof(started) FROM room WHERE id = 'c'"), ["c|NULL|3.0|real"]);
    assert_eq!(rows(&c, "SELECT k, hex(v) FROM kv WHERE k = 'z'"), ["Z|0102"]);
    assert_eq!(rows(&c, "SELECT rowid, line FROM log"), ["1|one", "2|two", "7|seven"]);
    // AUTOINCREMENT goes on behind it.
    assert_eq!(rows(&c, "SELECT seq FROM sqlite_sequence WHERE name = 'msg'"), ["9"]);
    // Triggers still keep the search index.
    c.execute_batch("DELETE FROM msg WHERE id = 9; INSERT INTO msg_fts(msg_fts, rank) VALUES('integrity-check', 1)").unwrap();
    let left: Vec<&str> = done.not_rows.iter().map(|t| t.salvage_table.as_str()).collect();
    assert_eq!(left, ["gone", "lost_and_found_1"]);
}

#[test]
fn a_second_restore_changes_nothing() {
    let case = Case::new();
    case.aside("msg", "hidden", 1, Some(9), "id, room, body, n, twice", "9, 'a', 'hidden treasure', 7, 14");
    case.aside("msg", "hidden", 1, Some(2), "id, room, body, n, twice", "2, 'a', 'new text', 2, 4");
    let (done, c) = case.restored(|w| w.replace = true);
    assert_eq!((done.exit_code, done.tables[0].restored, done.tables[0].replaced), (0, 2, 1));
    assert_eq!(rows(&c, "SELECT rowid FROM msg_fts WHERE msg_fts MATCH 'new'"), ["2"]);
    assert_eq!(rows(&c, "SELECT rowid FROM msg_fts WHERE msg_fts MATCH 'old'"), Vec::<String>::new());
    drop(c);
    let third = case.dir.path().join("out3.db");
    let again = run(&case.out(), &case.salvage(), Some(&third), |w| w.replace = true).unwrap();
    assert_eq!((again.exit_code, again.tables[0].restored, again.tables[0].already_there), (0, 0, 2));
    assert_eq!(std::fs::read(&third).unwrap(), std::fs::read(case.out()).unwrap());
}

#[test]
fn what_may_not_stand_is_listed_with_the_reason() {
    let case = Case::new();
    let msg = |how, complete, id: i64, values: &str| case.aside("msg", how, complete, Some(id), "id, room, body, n, twice", values);
    msg("hidden", 1, 1, "1, 'a', 'another text', 1, 2"); // The rowid is taken.
    msg("hidden", 1, 2, "2, 'a', 'old text', 2, 4"); // There already.
    msg("hidden", 1, 20, "20, 'nowhere', 'no parent', 1, 2");
    msg("hidden", 1, 21, "21, 'a', 'check', 500, 1000");
    msg("hidden", 1, 22, "22, NULL, 'no room', 1, 2");
    msg("hidden", 0, 23, "23, NULL, 'half a row', NULL, NULL");
    msg("hidden", 1, 24, "24, 'a', 'first', 1, 2");
    msg("hidden", 1, 24, "24, 'a', 'second', 1, 2"); // Twice.
    msg("hidden", 1, 25, "25, 'lonely', 'child of one that is refused', 1, 2");
    case.aside("room", "live", 1, Some(8), "id, title, started", "'lonely', 'first', 4.0"); // Its title is taken.
    case.aside("kv", "live", 1, None, "k, v", "'X', 9");
    case.aside("log", "live", 1, Some(2), "line", "'another two'");
    let (done, c) = case.restored(|_| {});
    assert_eq!(done.exit_code, 2);
    let kinds = |list: &[(&str, u64)]| list.iter().map(|(k, n)| ((*k).to_owned(), *n)).collect::<Vec<_>>();
    assert_eq!(
        refused(&done, "msg"),
        kinds(&[("breaks-declaration", 2), ("incomplete", 1), ("key-taken", 1), ("no-parent", 2), ("twice", 1)])
    );
    assert_eq!(refused(&done, "room"), kinds(&[("unique", 1)]));
    assert_eq!(refused(&done, "kv"), kinds(&[("key-taken", 1)]));
    assert_eq!(refused(&done, "log"), kinds(&[("key-taken", 1)]));
    assert_eq!(rows(&c, "SELECT id, body FROM msg WHERE id > 5"), ["24|first"]);
    let msg = done.tables.iter().find(|t| t.table == "msg").unwrap();
    assert_eq!((msg.chosen, msg.restored, msg.already_there, msg.rows_after), (9, 1, 1, 4));
    assert_eq!(done.conflicts.len(), 10);
    let named = done.conflicts.iter().find(|c| c.kind == "twice").unwrap();
    assert_eq!((named.salvage_table.as_str(), named.salvage_row), ("msg", 8));
    // A table without INTEGER PRIMARY KEY may give a new rowid; nothing is taken twice.
    drop(c);
    std::fs::remove_file(case.out()).unwrap();
    let (done, c) = case.restored(|w| {
        w.renumber = true;
        w.tables = vec!["log".to_owned()];
    });
    assert_eq!((done.exit_code, done.tables[0].renumbered), (0, 1));
    assert_eq!(rows(&c, "SELECT rowid, line FROM log"), ["1|one", "2|two", "3|another two"]);
}

#[test]
fn what_an_index_has_comes_back_only_when_asked_for() {
    let case = Case::new();
    case.aside("room", "index-only", 0, Some(5), "id, title, started", "'r', 'from an index', NULL");
    case.aside("msg", "index-only", 0, Some(30), "id, room, body, n, twice", "30, 'b', NULL, 4, NULL");
    case.aside("msg", "freeblock", 1, Some(31), "id, room, body, n, twice", "31, 'b', 'deleted', 4, 8");
    let (done, _) = case.restored(|_| {});
    assert_eq!(done.tables.iter().map(|t| t.chosen).sum::<u64>(), 0);
    std::fs::remove_file(case.out()).unwrap();
    let (done, c) = case.restored(|w| w.hows = vec!["index-only".to_owned()]);
    assert_eq!(rows(&c, "SELECT id, room, body, n, twice FROM msg WHERE id > 5"), ["30|b|NULL|4|8"]);
    let msg = done.tables.iter().find(|t| t.table == "msg").unwrap();
    assert_eq!(msg.how.get("index-only"), Some(&1));
    assert_eq!(refused(&done, "room"), [("incomplete".to_owned(), 1)]);
    drop(c);
    std::fs::remove_file(case.out()).unwrap();
    let (_, c) = case.restored(|w| w.hows = vec!["carved".to_owned()]);
    assert_eq!(rows(&c, "SELECT id, body FROM msg WHERE id > 5"), ["31|deleted"]);
}

#[test]
fn another_database_gives_the_rows_that_the_copy_lacks() {
    let case = Case::new();
    let other = case.dir.path().join("backup.db");
    let c = Connection::open(case.copy()).unwrap();
    c.execute("VACUUM INTO ?1", [other.to_str().unwrap()]).unwrap();
    c.execute_batch("DELETE FROM msg WHERE id = 5; UPDATE msg SET body = 'newer text' WHERE id = 2; INSERT INTO msg(room, body, n) VALUES('a', 'late', 8)").unwrap();
    drop(c);
    let done = run(&case.copy(), &other, Some(&case.out()), |_| {}).unwrap();
    assert_eq!(complaints(&case.out()), Vec::<String>::new());
    let c = Connection::open(case.out()).unwrap();
    let all = rows(&c, "SELECT id, body FROM msg");
    assert_eq!(all, ["1|hello world", "2|newer text", "5|other words", "6|late"]);
    assert_eq!(rows(&c, "SELECT rowid FROM msg_fts WHERE msg_fts MATCH 'words'"), ["5"]);
    let msg = done.tables.iter().find(|t| t.table == "msg").unwrap();
    assert_eq!((msg.restored, msg.already_there), (1, 1));
    assert_eq!(refused(&done, "msg"), [("key-taken".to_owned(), 1)]);
    assert_eq!(msg.how.get("database"), Some(&1));
}

#[test]
fn a_dry_run_says_the_same_and_writes_nothing() {
    let case = Case::new();
    case.aside("msg", "hidden", 1, Some(9), "id, room, body, n, twice", "9, 'a', 'hidden treasure', 7, 14");
    case.aside("msg", "hidden", 1, Some(1), "id, room, body, n, twice", "1, 'a', 'taken', 7, 14");
    let before: Vec<_> = std::fs::read_dir(case.dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    let dry = run(&case.copy(), &case.salvage(), None, |_| {}).unwrap();
    let after: Vec<_> = std::fs::read_dir(case.dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(before.len(), after.len());
    let (wet, _) = case.restored(|_| {});
    assert_eq!(dry.conflicts, wet.conflicts);
    assert_eq!((dry.tables[0].restored, dry.out), (wet.tables[0].restored, None));
    // Names of the evidence do not reach the terminal unescaped, and values not at all with --redact.
    let mut options = Options::default();
    options.redact = true;
    let hidden = restore(&Inputs::at_path(&case.copy()), &case.salvage(), &Wanted::default(), &options, None, &Ctx::default()).unwrap();
    assert!(hidden.conflicts.iter().all(|c| c.detail.is_none()));
    assert!(run(&case.copy(), &case.salvage(), None, |w| w.tables = vec!["none".to_owned()]).is_err());
}

/// Everything that the corpus sets aside: copies pass, restored rows are those of the evidence, a second run changes nothing.
#[test]
fn everything_that_the_corpus_sets_aside() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let mut cases: Vec<PathBuf> =
        std::fs::read_dir(&root).unwrap().map(|e| e.unwrap().path()).filter(|p| p.join("db.sqlite").is_file()).collect();
    cases.sort();
    let restored: u64 = cases.par_iter().map(|case| of_case(case)).sum();
    assert!(restored > 200, "{restored} rows were restored");
}

fn of_case(case: &Path) -> u64 {
    let what = case.file_name().unwrap().to_string_lossy().into_owned();
    let dir = tempfile::tempdir().unwrap();
    let copy = dir.path().join("out.db");
    if recover(&Inputs::at_path(&case.join("db.sqlite")), &Options::default(), &copy, &Ctx::default()).is_err() {
        return 0;
    }
    let salvage = dir.path().join("out.db.salvage.db");
    if !salvage.is_file() || !complaints(&copy).is_empty() {
        return 0;
    }
    let (second, third) = (dir.path().join("out2.db"), dir.path().join("out3.db"));
    let all = |w: &mut Wanted| {
        w.hows = vec!["all".to_owned()];
        w.replace = true;
    };
    let done = run(&copy, &salvage, Some(&second), all).unwrap_or_else(|e| panic!("{what}: {e}"));
    assert_eq!(complaints(&second), Vec::<String>::new(), "{what}");
    let orphans = |path: &Path| judge::orphans(&judge::open(path).unwrap()).unwrap().len();
    assert!(orphans(&second) <= orphans(&copy), "{what}");
    // What was restored stands in the copy as it stands in the salvage database.
    let c = judge::open(&second).unwrap();
    c.execute_batch(&format!("ATTACH '{}' AS aside", salvage.display())).unwrap();
    for t in done.tables.iter().filter(|t| t.refused.is_empty() && t.chosen > 0) {
        let quoted = judge::quoted(&t.table);
        let columns = rows(&c, &format!("SELECT name FROM pragma_table_xinfo('{}') WHERE hidden = 0", t.table.replace('\'', "''")));
        let list: Vec<String> = columns.iter().map(|c| judge::quoted(c)).collect();
        let sql = format!(
            "SELECT count(*) FROM (SELECT {0} FROM aside.{quoted} WHERE rp_complete = 1 EXCEPT SELECT {0} FROM main.{quoted})",
            list.join(", ")
        );
        // A column that bears the name of a provenance column has another name in the salvage database.
        if let Ok(missing) = c.query_row(&sql, [], |r| r.get::<_, i64>(0)) {
            assert_eq!(missing, 0, "{what}: {}", t.table);
        }
    }
    drop(c);
    let again = run(&second, &salvage, Some(&third), all).unwrap_or_else(|e| panic!("{what}: {e}"));
    assert_eq!(again.tables.iter().map(|t| t.restored).sum::<u64>(), 0, "{what}");
    assert_eq!(std::fs::read(&second).unwrap(), std::fs::read(&third).unwrap(), "{what}");
    done.tables.iter().map(|t| t.restored).sum()
}
