//! FTS3 and FTS4: copied when whole, and when not, the text stands as data and the finish script makes the index from it.

use std::path::Path;

use rootpage::ctx::Ctx;
use rootpage::verbs::{self, Inputs, Options};
use rusqlite::Connection;

const PAGE: usize = 1024;

fn make(dir: &Path, module: &str) {
    let db = Connection::open(dir.join("x.db")).unwrap();
    db.execute_batch(&format!(
        "PRAGMA page_size={PAGE};
         CREATE TABLE base(id INTEGER PRIMARY KEY, t TEXT);
         CREATE VIRTUAL TABLE f USING {module}(title, \"body text\");
         CREATE TRIGGER tr AFTER INSERT ON base BEGIN INSERT INTO f(docid, title) VALUES(new.id, new.t); END;
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
         INSERT INTO f(title, \"body text\") SELECT 'hello ' || i, 'world ' || (i * 7) FROM n;"
    ))
    .unwrap();
}

/// Wipes the page that holds these bytes and is a leaf of a table.
fn wipe(dir: &Path, root_of: &str) {
    let path = dir.join("x.db");
    let root: u32 =
        Connection::open(&path).unwrap().query_row("SELECT rootpage FROM sqlite_schema WHERE name = ?1", [root_of], |r| r.get(0)).unwrap();
    let root = root as usize;
    let mut bytes = std::fs::read(&path).unwrap();
    let page = |n: usize| (n - 1) * PAGE;
    // The right child of an interior root, else the root itself.
    let at = page(root);
    let leaf = if bytes[at] == 5 { u32::from_be_bytes(bytes[at + 8..at + 12].try_into().unwrap()) as usize } else { root };
    bytes[page(leaf)..page(leaf + 1)].fill(0);
    std::fs::write(path, bytes).unwrap();
}

fn recover(dir: &Path) -> Connection {
    let out = dir.join("out.db");
    verbs::recover(&Inputs::at_path(&dir.join("x.db")), &Options::default(), &out, &Ctx::default()).unwrap();
    let db = Connection::open(out).unwrap();
    assert_eq!(db.query_row("PRAGMA integrity_check", [], |r| r.get::<_, String>(0)).unwrap(), "ok");
    db
}

fn count(db: &Connection, sql: &str) -> i64 {
    db.query_row(sql, [], |r| r.get(0)).unwrap()
}

fn works(db: &Connection, rows: i64) {
    db.execute_batch("INSERT INTO f(f) VALUES('integrity-check'); INSERT INTO base VALUES(9000, 'late hello');").unwrap();
    assert_eq!(count(db, "SELECT count(*) FROM f WHERE f MATCH 'hello'"), rows + 1);
    assert_eq!(count(db, "SELECT count(*) FROM f WHERE \"body text\" MATCH 'world'"), rows);
    assert_eq!(count(db, "SELECT count(*) FROM f WHERE title = 'hello ' || docid"), rows);
}

#[test]
fn a_whole_family_is_copied() {
    for module in ["fts3", "fts4"] {
        let dir = tempfile::tempdir().unwrap();
        make(dir.path(), module);
        works(&recover(dir.path()), 400);
        assert!(!dir.path().join("out.db.finish.sql").exists());
    }
}

#[test]
fn a_damaged_index_is_made_anew_by_the_finish_script() {
    for (module, damaged) in [("fts3", "f_segdir"), ("fts4", "f_segdir"), ("fts4", "f_segments"), ("fts4", "f_docsize")] {
        let dir = tempfile::tempdir().unwrap();
        make(dir.path(), module);
        wipe(dir.path(), damaged);
        let db = recover(dir.path());
        // Until the script has run, the text is there and writes to the base table work.
        assert_eq!(count(&db, "SELECT count(*) FROM f_content WHERE c0title = 'hello ' || docid"), 400);
        db.execute_batch("INSERT INTO base VALUES(8000, 'no trigger')").unwrap();
        db.execute_batch(&std::fs::read_to_string(dir.path().join("out.db.finish.sql")).unwrap()).unwrap();
        works(&db, 400);
    }
}

#[test]
fn segments_that_do_not_decode_are_made_anew_by_the_finish_script() {
    for damage in [
        "UPDATE f_segdir SET root = x'00'",
        "UPDATE f_segdir SET root = zeroblob(length(root))",
        "UPDATE f_segments SET block = zeroblob(length(block)) WHERE blockid = (SELECT min(blockid) FROM f_segments)",
        "DELETE FROM f_segments WHERE blockid = (SELECT min(blockid) FROM f_segments)",
    ] {
        let dir = tempfile::tempdir().unwrap();
        make(dir.path(), "fts4");
        let path = dir.path().join("x.db");
        Connection::open(&path).unwrap().execute_batch(damage).unwrap();
        let report = verbs::check(&Inputs::at_path(&path), &Options::default(), &Ctx::default()).unwrap();
        assert_eq!(report.exit_code, 1, "{damage}");
        let db = recover(dir.path());
        db.execute_batch(&std::fs::read_to_string(dir.path().join("out.db.finish.sql")).unwrap()).unwrap();
        works(&db, 400);
    }
}

#[test]
fn healthy_segments_with_a_history_are_sound() {
    for module in ["fts3(x, y)", "fts4(x, y, prefix='1,3')", "fts4(x, y, matchinfo=fts3, order=desc)"] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.db");
        let db = Connection::open(&path).unwrap();
        db.execute_batch(&format!("CREATE VIRTUAL TABLE f USING {module}")).unwrap();
        for round in 0..60 {
            db.execute_batch(&format!(
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60)
                 INSERT INTO f(x, y) SELECT 'word' || (i * {round}) || ' other' || i, hex(randomblob(9)) FROM n;
                 DELETE FROM f WHERE docid % 7 = {};",
                round % 7
            ))
            .unwrap();
            if module.starts_with("fts4") && round % 5 == 4 {
                db.execute_batch("INSERT INTO f(f) VALUES('merge=20,2')").unwrap();
            }
            if round % 10 == 9 {
                let report = verbs::check(&Inputs::at_path(&path), &Options::default(), &Ctx::default()).unwrap();
                assert_eq!(report.exit_code, 0, "{module} {round}");
            }
        }
    }
}

#[test]
fn damaged_content_costs_only_its_own_rows() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path(), "fts4");
    wipe(dir.path(), "f_content");
    let db = recover(dir.path());
    let rows = count(&db, "SELECT count(*) FROM f_content");
    assert!((300..400).contains(&rows), "{rows}");
    db.execute_batch(&std::fs::read_to_string(dir.path().join("out.db.finish.sql")).unwrap()).unwrap();
    works(&db, rows);
}
