//! What becomes of rows that damage or a broken declaration puts in doubt: the values in the copy and in the salvage
//! database, judged by real SQLite.

use std::path::{Path, PathBuf};

use rootpage::ctx::Ctx;
use rootpage::report::Report;
use rootpage::verbs::{Inputs, Options, recover};
use rusqlite::Connection;

struct Case {
    _dir: tempfile::TempDir,
    out: PathBuf,
    report: Report,
}

impl Case {
    fn of_file(db: &Path, options: &Options) -> Case {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out.db");
        let report = recover(&Inputs::at_path(db), options, &out, &Ctx::default()).unwrap();
        Case { _dir: dir, out, report }
    }

    fn of_corpus(name: &str) -> Case {
        let db = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name).join("db.sqlite");
        Case::of_file(&db, &Options::default())
    }

    /// A database made by SQL; what breaks a declaration is put in with a writable schema.
    fn of_sql(sql: &str, options: &Options) -> Case {
        let dir = tempfile::tempdir().unwrap();
        let db = dir.path().join("in.db");
        let con = Connection::open(&db).unwrap();
        con.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_DEFENSIVE, false).unwrap();
        con.execute_batch(sql).unwrap();
        drop(con);
        Case::of_file(&db, options)
    }

    fn copy(&self) -> Connection {
        let con = Connection::open(&self.out).unwrap();
        let ok: String = con.query_row("PRAGMA integrity_check", [], |r| r.get(0)).unwrap();
        assert_eq!(ok, "ok");
        con
    }

    fn salvage(&self) -> Connection {
        Connection::open(PathBuf::from(format!("{}.salvage.db", self.out.display()))).unwrap()
    }

    fn table(&self, name: &str) -> &rootpage::report::model::TableRecovery {
        self.report.recovery.as_ref().unwrap().tables.iter().find(|t| t.name == name).unwrap()
    }
}

/// All rows of a query as text, values parted by `|`.
fn rows(con: &Connection, sql: &str) -> Vec<String> {
    let mut statement = con.prepare(sql).unwrap();
    let n = statement.column_count();
    let found = statement.query_map([], |r| {
        let values = (0..n).map(|i| match r.get_ref(i)? {
            rusqlite::types::ValueRef::Null => Ok("NULL".to_owned()),
            rusqlite::types::ValueRef::Integer(v) => Ok(v.to_string()),
            rusqlite::types::ValueRef::Real(v) => Ok(v.to_string()),
            rusqlite::types::ValueRef::Text(t) | rusqlite::types::ValueRef::Blob(t) => Ok(String::from_utf8_lossy(t).into_owned()),
        });
        Ok(values.collect::<rusqlite::Result<Vec<_>>>()?.join("|"))
    });
    found.unwrap().collect::<rusqlite::Result<_>>().unwrap()
}

#[test]
fn a_stale_cell_is_set_aside_and_the_cell_without_pointer_is_live() {
    let case = Case::of_corpus("cell-pointer-stale");
    assert_eq!(rows(&case.copy(), "SELECT * FROM msg WHERE id >= 4 AND id <= 6"), ["4|0|text 4", "5|0|text 5", "6|0|text 6"]);
    assert_eq!(rows(&case.copy(), "SELECT count(*), max(id) FROM msg"), ["9|9"]);
    let aside = rows(&case.salvage(), "SELECT rp_reason, rp_rowid, who, body FROM msg");
    assert_eq!(aside, ["phantom-row|3700000000000|ghost|deleted long ago"]);
    assert_eq!(case.report.exit_code, 2);
}

#[test]
fn neighbours_only_suggest_a_rowid_and_the_statement_brings_the_row_back() {
    let case = Case::of_corpus("rowid-implausible");
    assert_eq!(rows(&case.copy(), "SELECT count(*) FROM log WHERE rowid IN (4, 127)"), ["0"]);
    let salvage = case.salvage();
    assert_eq!(rows(&salvage, "SELECT rp_rowid, line FROM log"), ["127|line 4, nothing else to say"]);
    let restore: String = salvage.query_row("SELECT rp_restore FROM log", [], |r| r.get(0)).unwrap();
    let copy = case.copy();
    copy.execute_batch(&format!("ATTACH '{}.salvage.db' AS salvage; {restore}", case.out.display())).unwrap();
    assert_eq!(rows(&copy, "SELECT rowid, line FROM main.log WHERE rowid = 4"), ["4|line 4, nothing else to say"]);
}

#[test]
fn a_rowid_that_an_index_names_is_restored_in_place() {
    let case = Case::of_corpus("rowid-duplicate");
    assert_eq!(rows(&case.copy(), "SELECT count(*), count(DISTINCT id), max(id) FROM orders"), ["110|110|110"]);
    assert!(case.report.findings.iter().any(|g| g.code.problem().id == "T014" && g.count == 1));
    assert_eq!(case.report.exit_code, 1);
}

#[test]
fn a_nullable_unique_value_gives_way_and_its_row_stays() {
    let case = Case::of_corpus("index-unique-broken");
    assert_eq!(rows(&case.copy(), "SELECT * FROM pair ORDER BY id"), ["1|x|1", "2|y|2", "3|NULL|3"]);
    assert_eq!(rows(&case.salvage(), "SELECT rp_reason, id, a, b FROM pair WHERE rp_complete"), ["unique-value-nulled|3|x|3"]);
    assert_eq!(case.table("pair").values_changed.get("unique-value-nulled"), Some(&1));
    case.report.balance().unwrap();
}

/// A parent row with NULL in a column that a later declaration calls NOT NULL; its children name it.
const BREAKER: &str = "
    CREATE TABLE parent(id INTEGER PRIMARY KEY, code TEXT, started REAL);
    CREATE INDEX parent_code ON parent(code);
    CREATE TABLE child(id INTEGER PRIMARY KEY, parent_id INTEGER REFERENCES parent(id));
    INSERT INTO parent VALUES(1, 'a', 1.5), (2, 'b', NULL), (3, 'c', 2.5);
    INSERT INTO child VALUES(10, 1), (11, 2), (12, 2), (13, 3);
    PRAGMA writable_schema=ON;
    UPDATE sqlite_schema SET sql = replace(sql, 'started REAL', 'started REAL NOT NULL') WHERE name = 'parent';";

#[test]
fn a_confirmed_breaker_is_named_with_its_children_and_comes_back() {
    let case = Case::of_sql(BREAKER, &Options::default());
    let recovery = case.report.recovery.as_ref().unwrap();
    let b = &recovery.breakers[0];
    assert_eq!((recovery.breakers.len(), b.table.as_str(), b.row.as_str()), (1, "parent", "rowid 2"));
    assert_eq!(b.rule, "started is NULL and declared NOT NULL");
    assert_eq!(b.witnesses, ["index parent_code", "2 rows of child that name it"]);
    assert_eq!(case.report.exit_code, 2);
    let orphans = case.report.findings.iter().find(|g| g.code.problem().id == "V001").unwrap();
    assert_eq!((orphans.count, orphans.object_name.as_deref()), (2, Some("child")));
    let copy = case.copy();
    assert_eq!(rows(&copy, "SELECT id FROM parent"), ["1", "3"]);
    assert_eq!(rows(&copy, "SELECT count(*) FROM child"), ["4"]);
    copy.execute_batch(&format!("ATTACH '{}.salvage.db' AS salvage; {}", case.out.display(), b.restore)).unwrap();
    assert_eq!(rows(&copy, "SELECT id, code, started FROM main.parent WHERE id = 2"), ["2|b|0"]);
    assert_eq!(rows(&copy, "PRAGMA foreign_key_check"), Vec::<String>::new());
}

#[test]
fn keep_violations_keeps_it_live_and_says_so() {
    let mut options = Options::default();
    options.keep_violations = true;
    let case = Case::of_sql(BREAKER, &options);
    let con = Connection::open(&case.out).unwrap();
    assert_eq!(rows(&con, "SELECT id, code, started FROM parent WHERE id = 2"), ["2|b|NULL"]);
    assert!(case.table("parent").notes.iter().any(|n| n.contains("integrity_check reports them")), "{:?}", case.table("parent").notes);
    assert!(case.report.recovery.as_ref().unwrap().breakers.is_empty());
}

#[test]
fn what_an_index_holds_of_a_lost_row_is_in_the_salvage_database() {
    let case = Case::of_corpus("leaf-zero");
    let gone = &case.table("orders").lost;
    let rowids: Vec<[i64; 2]> = gone.iter().flat_map(|g| g.rowids.clone()).collect();
    let [first, last] = rowids[0];
    assert_eq!(rowids.len(), 1);
    assert!(gone[0].page.is_some() && gone[0].witness.contains("index orders_customer, which still gives customer_id and total"));
    let n = last - first + 1;
    let salvage = case.salvage();
    let held = rows(&salvage, "SELECT count(*), min(rp_rowid), max(rp_rowid), count(note) FROM orders WHERE rp_how = 'index-only'");
    assert_eq!(held, [format!("{n}|{first}|{last}|0")]);
    // The recipe of the shop says what they were.
    let sql =
        "SELECT count(*) FROM orders WHERE rp_how = 'index-only' AND customer_id = 1 + (id * 7) % 45 AND total = (id * 37 % 1000) / 10.0";
    assert_eq!(rows(&salvage, sql), [n.to_string()]);
}

#[test]
fn a_leaf_without_header_and_pointers_is_read_by_its_cells() {
    for name in ["leaf-carved", "leaf-carved-key"] {
        let case = Case::of_corpus(name);
        assert_eq!(case.report.exit_code, 1, "{name}");
        let copy = case.copy();
        assert_eq!(rows(&copy, "SELECT count(*), sum(id) FROM orders"), ["110|6105"], "{name}");
        assert_eq!(rows(&copy, "SELECT count(*), count(DISTINCT k) FROM kv"), ["40|40"], "{name}");
    }
}

#[test]
fn a_lost_row_without_rowid_is_named_by_its_key() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("in.db");
    let con = Connection::open(&db).unwrap();
    con.execute_batch(
        "PRAGMA page_size=512; CREATE TABLE kv(ns TEXT, k TEXT, v TEXT, n INTEGER, PRIMARY KEY(ns, k)) WITHOUT ROWID; CREATE INDEX kv_n ON kv(n);
         WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 60)
         INSERT INTO kv SELECT 'ns' || (i % 3), printf('key %03d', i), printf('value %d of some length', i), i * 10 FROM c;
         UPDATE kv SET v = 'changed' WHERE n = 30;",
    )
    .unwrap();
    let all = rows(&con, "SELECT ns, k, n FROM kv ORDER BY n");
    drop(con);
    let mut bytes = std::fs::read(&db).unwrap();
    let page = bytes.chunks_mut(512).find(|p| p[0] == 10 && memchr::memmem::find(p, b"value 34 of").is_some()).unwrap();
    page.fill(0);
    std::fs::write(&db, bytes).unwrap();
    let case = Case::of_file(&db, &Options::default());
    let live = rows(&case.copy(), "SELECT ns, k, n FROM kv ORDER BY n");
    let gone: Vec<String> = all.iter().filter(|r| !live.contains(r)).cloned().collect();
    assert!(!gone.is_empty());
    assert_eq!(rows(&case.salvage(), "SELECT ns, k, n FROM kv WHERE rp_how = 'index-only' ORDER BY n"), gone);
    let table = case.table("kv");
    let named: u64 = table.lost.iter().filter(|g| g.witness.starts_with("index kv_n, which still gives n")).filter_map(|g| g.count).sum();
    assert_eq!(named, u64::try_from(gone.len()).unwrap(), "{:?}", table.lost);
}
