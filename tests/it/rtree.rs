//! R-trees: copied when whole, and built anew from their own boxes when not; real SQLite judges with `rtreecheck`.

use std::path::Path;

use rootpage::ctx::Ctx;
use rootpage::verbs::{self, Inputs, Options};
use rusqlite::Connection;

const ROWS: i64 = 900;

fn make(dir: &Path, page: usize, columns: &str, module: &str, after: &str) {
    let db = Connection::open(dir.join("x.db")).unwrap();
    db.execute_batch(&format!(
        "PRAGMA page_size={page};
         CREATE TABLE base(id INTEGER PRIMARY KEY, t TEXT);
         CREATE VIRTUAL TABLE r USING {module}({columns});
         CREATE TRIGGER tr AFTER INSERT ON base BEGIN INSERT INTO r(id) VALUES(new.id); END;
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS})
         INSERT INTO r SELECT {} FROM n;
         {after}",
        columns
            .split(',')
            .map(|c| match c.trim() {
                "id" => "i".to_owned(),
                c if c.starts_with('+') => format!("'{} ' || i", &c[1..]),
                c if c.ends_with('1') => format!("(i * 7919) % {} + 3", 500 + c.len()),
                c => format!("(i * 7919) % {}", 500 + c.len()),
            })
            .collect::<Vec<_>>()
            .join(", ")
    ))
    .unwrap();
}

fn damage(dir: &Path, sql: &str) {
    let db = Connection::open(dir.join("x.db")).unwrap();
    db.execute_batch(sql).unwrap();
}

fn rows(db: &Connection, columns: &str) -> Vec<(i64, String)> {
    let listed: Vec<&str> = columns.split(',').map(|c| c.trim().trim_start_matches('+')).collect();
    let sql = format!("SELECT id, {} FROM r ORDER BY id", listed.iter().map(|c| format!("quote({c})")).collect::<Vec<_>>().join("||' '||"));
    let mut rows = db.prepare(&sql).unwrap();
    rows.query_map([], |r| Ok((r.get(0)?, r.get(1)?))).unwrap().map(Result::unwrap).collect()
}

fn recover(dir: &Path) -> Connection {
    let out = dir.join("out.db");
    verbs::recover(&Inputs::at_path(&dir.join("x.db")), &Options::default(), &out, &Ctx::default()).unwrap();
    let db = Connection::open(out).unwrap();
    let one = |sql: &str| db.query_row(sql, [], |r| r.get::<_, String>(0)).unwrap();
    assert_eq!(one("PRAGMA integrity_check"), "ok");
    assert_eq!(one("SELECT rtreecheck('r')"), "ok");
    db
}

/// What real SQLite does with the tree afterwards leaves it valid.
fn takes_writes(db: &Connection) {
    db.execute_batch(
        "WITH RECURSIVE n(i) AS (SELECT 5001 UNION ALL SELECT i + 1 FROM n WHERE i < 5300) INSERT INTO r(id) SELECT i FROM n;
         DELETE FROM r WHERE id % 3 = 0; INSERT INTO base VALUES(9000, 'late');",
    )
    .unwrap();
    assert_eq!(db.query_row("SELECT rtreecheck('r')", [], |r| r.get::<_, String>(0)).unwrap(), "ok");
}

const SHAPES: [(&str, &str); 4] = [
    ("rtree", "id, x0, x1, y0, y1"),
    ("rtree_i32", "id, x0, x1, y0, y1, z0, z1"),
    ("rtree", "id, x0, x1, +name, +other"),
    ("rtree", "id, a0, a1, b0, b1, c0, c1, d0, d1, e0, e1"),
];

#[test]
fn inner_nodes_and_their_table_are_no_loss() {
    let losses = [
        "UPDATE r_parent SET parentnode = 77",
        "DELETE FROM r_parent",
        "UPDATE r_node SET data = zeroblob(length(data)) WHERE nodeno = 1",
        "UPDATE r_node SET data = CAST(substr(data, 1, 2) || x'ffff' || substr(data, 5) AS BLOB)",
        "UPDATE r_node SET data = CAST(data AS TEXT) WHERE nodeno = 1",
        "UPDATE r_node SET data = x'00' WHERE nodeno = 1",
    ];
    for (module, columns) in SHAPES {
        for page in [512, 1024, 4096] {
            for loss in losses {
                let dir = tempfile::tempdir().unwrap();
                make(dir.path(), page, columns, module, "DELETE FROM r WHERE id BETWEEN 100 AND 300;");
                let before = rows(&Connection::open(dir.path().join("x.db")).unwrap(), columns);
                // With few rows the root is a leaf.
                let levels: i64 =
                    Connection::open(dir.path().join("x.db")).unwrap().query_row("SELECT count(*) FROM r_node", [], |r| r.get(0)).unwrap();
                assert!(levels > 1);
                damage(dir.path(), loss);
                let copy = recover(dir.path());
                assert_eq!(rows(&copy, columns), before, "{module}({columns}), {page}: {loss}");
                takes_writes(&copy);
            }
        }
    }
}

#[test]
fn rows_of_a_lost_leaf_are_named() {
    for (module, columns) in SHAPES {
        let dir = tempfile::tempdir().unwrap();
        make(dir.path(), 1024, columns, module, "");
        let db = Connection::open(dir.path().join("x.db")).unwrap();
        let before = rows(&db, columns);
        let leaf: i64 = db.query_row("SELECT nodeno FROM r_rowid WHERE rowid = 450", [], |r| r.get(0)).unwrap();
        let gone: Vec<i64> = {
            let mut rows = db.prepare("SELECT rowid FROM r_rowid WHERE nodeno = ?1 ORDER BY rowid").unwrap();
            rows.query_map([leaf], |r| r.get(0)).unwrap().map(Result::unwrap).collect()
        };
        db.execute("UPDATE r_node SET data = zeroblob(length(data)) WHERE nodeno = ?1", [leaf]).unwrap();
        drop(db);
        let copy = recover(dir.path());
        let want: Vec<(i64, String)> = before.into_iter().filter(|(id, _)| !gone.contains(id)).collect();
        assert_eq!(rows(&copy, columns), want, "{module}({columns})");
        takes_writes(&copy);
    }
}

#[test]
fn a_whole_tree_is_copied_as_it_is() {
    for (module, columns) in SHAPES {
        let dir = tempfile::tempdir().unwrap();
        make(dir.path(), 1024, columns, module, "UPDATE r SET x0 = 3, x1 = 9 WHERE id % 5 = 0;".replace('x', &columns[4..5]).as_str());
        let db = Connection::open(dir.path().join("x.db")).unwrap();
        let nodes = |db: &Connection| {
            let mut rows = db.prepare("SELECT nodeno, hex(data) FROM r_node ORDER BY 1").unwrap();
            let all: Vec<(i64, String)> = rows.query_map([], |r| Ok((r.get(0)?, r.get(1)?))).unwrap().map(Result::unwrap).collect();
            all
        };
        let report = verbs::check(&Inputs::at_path(&dir.path().join("x.db")), &Options::default(), &Ctx::default()).unwrap();
        assert!(report.findings.is_empty(), "{:?}", report.findings);
        assert_eq!(nodes(&recover(dir.path())), nodes(&db));
    }
}
