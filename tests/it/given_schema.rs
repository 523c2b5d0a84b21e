//! Page 1 is gone and the application's schema is at hand: tables find their trees, also where the columns of the file stand
//! in another order than in the newest CREATE text. Real SQLite makes the files and reads the copies.

use std::path::{Path, PathBuf};

use rootpage::ctx::Ctx;
use rootpage::report::Report;
use rootpage::verbs::{self, Inputs, Options};
use rusqlite::Connection;
use rusqlite::types::Value;

use crate::rng::Rng;

struct Case {
    dir: tempfile::TempDir,
    whole: PathBuf,
}

impl Case {
    /// A database made by `sql`, kept whole, and a copy of it whose first page is zero.
    fn new(sql: &str) -> Case {
        let dir = tempfile::tempdir().unwrap();
        let whole = dir.path().join("whole.db");
        let db = Connection::open(&whole).unwrap();
        db.execute_batch("PRAGMA page_size=1024").unwrap();
        db.execute_batch(sql).unwrap();
        drop(db);
        let mut bytes = std::fs::read(&whole).unwrap();
        bytes[..1024].fill(0);
        std::fs::write(dir.path().join("torn.db"), bytes).unwrap();
        Case { dir, whole }
    }

    fn recover(&self, schema: &str) -> (Connection, Report) {
        let given = self.dir.path().join("app.sql");
        std::fs::write(&given, schema).unwrap();
        let out = self.dir.path().join("out.db");
        let inputs = Inputs { schema: Some(given), ..Inputs::at_path(&self.dir.path().join("torn.db")) };
        let mut options = Options::default();
        options.force = true;
        let report = verbs::recover(&inputs, &options, &out, &Ctx::default()).unwrap();
        let db = Connection::open(&out).unwrap();
        let check: String = db.query_row("PRAGMA integrity_check", [], |r| r.get(0)).unwrap();
        assert_eq!(check, "ok");
        (db, report)
    }

    fn rows(&self, sql: &str) -> Vec<Vec<Value>> {
        query(&Connection::open(&self.whole).unwrap(), sql)
    }
}

fn query(db: &Connection, sql: &str) -> Vec<Vec<Value>> {
    let mut statement = db.prepare(sql).unwrap();
    let n = statement.column_count();
    let rows = statement.query_map([], |r| (0..n).map(|i| r.get(i)).collect::<Result<Vec<Value>, _>>()).unwrap();
    rows.map(Result::unwrap).collect()
}

fn has_code(report: &Report, id: &str) -> bool {
    report.findings.iter().any(|f| f.code.problem().id == id)
}

const FILL: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)";

/// An upgraded store: `started_at` was added last, a new installation has it in the middle.
fn upgraded() -> Case {
    Case::new(&format!(
        "CREATE TABLE sessions(id TEXT PRIMARY KEY, source TEXT NOT NULL, tokens INTEGER, title TEXT);
         ALTER TABLE sessions ADD COLUMN started_at REAL NOT NULL DEFAULT 0;
         CREATE TABLE messages(id INTEGER PRIMARY KEY, session_id TEXT NOT NULL, body TEXT);
         {FILL} INSERT INTO sessions SELECT 's' || i, 'cli', i * 3, 'title ' || i, 1700000000.5 + i FROM n;
         {FILL} INSERT INTO messages SELECT i, 's' || (1 + i % 7), 'message ' || i FROM n;"
    ))
}

const NEWEST: &str =
    "CREATE TABLE sessions(id TEXT PRIMARY KEY, source TEXT NOT NULL, started_at REAL NOT NULL DEFAULT 0, tokens INTEGER, title TEXT);
    CREATE INDEX by_start ON sessions(started_at);
    CREATE TABLE messages(id INTEGER PRIMARY KEY, session_id TEXT NOT NULL, body TEXT);";

#[test]
fn a_column_that_was_added_later_is_found_at_the_end() {
    let case = upgraded();
    let (db, report) = case.recover(NEWEST);
    for sql in ["SELECT id, source, started_at, tokens, title FROM sessions ORDER BY id", "SELECT * FROM messages ORDER BY id"] {
        assert_eq!(query(&db, sql), case.rows(sql), "{sql}");
    }
    assert_eq!(query(&db, "SELECT count(*) FROM sessions INDEXED BY by_start WHERE started_at > 0"), [[Value::Integer(300)]]);
    assert!(has_code(&report, "S008"), "the guess is marked");
}

#[test]
fn a_script_with_alter_table_says_the_order_itself() {
    let case = upgraded();
    let script = "CREATE TABLE sessions(id TEXT PRIMARY KEY, source TEXT NOT NULL, tokens INTEGER, name TEXT, old BLOB);
        ALTER TABLE sessions DROP COLUMN old;
        ALTER TABLE sessions RENAME COLUMN name TO title;
        ALTER TABLE main.sessions ADD COLUMN started_at REAL NOT NULL DEFAULT 0;
        CREATE TABLE messages(id INTEGER PRIMARY KEY, session_id TEXT NOT NULL, body TEXT);";
    let (db, report) = case.recover(script);
    let sql = "SELECT id, source, started_at, tokens, title FROM sessions ORDER BY id";
    assert_eq!(query(&db, sql), case.rows(sql));
    assert!(!has_code(&report, "S008"), "nothing had to be guessed");
}

#[test]
fn an_older_text_of_the_table_may_be_given_as_well() {
    // Three texts change places: the types alone would not tell them apart.
    let case = Case::new(&format!(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, c TEXT, n INTEGER NOT NULL, a TEXT, b TEXT);
         {FILL} INSERT INTO t SELECT i, 'c' || i, i, 'a' || i, 'b' || i FROM n;"
    ));
    let newest = "CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT, b TEXT, c TEXT, n INTEGER NOT NULL);";
    let older = "CREATE TABLE t(id INTEGER PRIMARY KEY, c TEXT, n INTEGER NOT NULL, a TEXT, b TEXT);";
    let (db, _) = case.recover(&format!("{newest}\n{older}"));
    let sql = "SELECT id, a, b, c, n FROM t ORDER BY id";
    assert_eq!(query(&db, sql), case.rows(sql));
}

#[test]
fn what_several_columns_could_be_gets_no_name() {
    // `n` moved in front of one of three texts: which of them stands where cannot be told.
    let case = Case::new(&format!(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, k BLOB NOT NULL, x TEXT, y TEXT, n INTEGER NOT NULL, z TEXT);
         {FILL} INSERT INTO t SELECT i, x'00', 'x' || i, 'y' || i, i, 'z' || i FROM n;"
    ));
    let (db, report) = case.recover("CREATE TABLE t(id INTEGER PRIMARY KEY, k BLOB NOT NULL, n INTEGER NOT NULL, x TEXT, y TEXT, z TEXT);");
    let sql = "SELECT id, k, n FROM t ORDER BY id";
    assert_eq!(query(&db, sql), case.rows(sql));
    // Wherever a text has its name back, it is the right one.
    for column in ["x", "y", "z"] {
        let sql = format!("SELECT {column} FROM t ORDER BY id");
        let (got, want) = (query(&db, &sql), case.rows(&sql));
        assert!(got.iter().all(|r| r[0] == Value::Null) || got == want, "{column}");
    }
    // And no value is lost.
    let all = |db: &Connection| {
        let mut texts: Vec<String> = query(db, "SELECT * FROM t")
            .into_iter()
            .flatten()
            .filter_map(|v| if let Value::Text(t) = v { Some(t) } else { None })
            .collect();
        texts.sort();
        texts
    };
    assert_eq!(all(&db), all(&Connection::open(&case.whole).unwrap()));
    assert!(has_code(&report, "S008"));
}

#[test]
fn a_table_of_another_shape_is_not_forced_into_the_schema() {
    let case = Case::new(&format!(
        "CREATE TABLE other(id INTEGER PRIMARY KEY, a REAL, b REAL, c BLOB);
         {FILL} INSERT INTO other SELECT i, i / 7.0, i / 3.0, randomblob(9) FROM n;"
    ));
    let (db, report) = case.recover("CREATE TABLE mine(id INTEGER PRIMARY KEY, name TEXT NOT NULL, mail TEXT NOT NULL, n INTEGER);");
    assert_eq!(query(&db, "SELECT count(*) FROM mine"), [[Value::Integer(0)]]);
    let salvage = Connection::open(Path::new(&format!("{}.salvage.db", case.dir.path().join("out.db").display()))).unwrap();
    assert_eq!(query(&salvage, "SELECT count(*) FROM lost_and_found_2"), [[Value::Integer(300)]]);
    assert!(!has_code(&report, "S008"));
}

/// A table through random ALTERs with rows between them, and its columns at the end, each with its type.
fn history(rng: &mut Rng) -> (String, Vec<(String, &'static str)>) {
    let mut serial = 0;
    let mut column = |rng: &mut Rng| {
        serial += 1;
        (format!("c{serial}"), *rng.pick(&["TEXT", "INTEGER", "REAL", "BLOB"]))
    };
    let mut columns: Vec<(String, &'static str)> = (0..2 + rng.below(4)).map(|_| column(rng)).collect();
    let list = |columns: &[(String, &str)]| columns.iter().map(|(n, t)| format!("{n} {t}")).collect::<Vec<_>>().join(", ");
    let mut sql = format!("CREATE TABLE t(id INTEGER PRIMARY KEY, {});", list(&columns));
    let mut rows = 0;
    for _ in 0..10 + rng.below(20) {
        match rng.below(5) {
            0 | 1 => {
                let (name, kind) = column(rng);
                sql.push_str(&format!("ALTER TABLE t ADD COLUMN {name} {kind};"));
                columns.push((name, kind));
            }
            2 if columns.len() > 2 => {
                let (name, _) = columns.remove(rng.below(columns.len()));
                sql.push_str(&format!("ALTER TABLE t DROP COLUMN {name};"));
            }
            3 => {
                let at = rng.below(columns.len());
                let (name, _) = column(rng);
                sql.push_str(&format!("ALTER TABLE t RENAME COLUMN {} TO {name};", columns[at].0));
                columns[at].0 = name;
            }
            _ => {}
        }
        let more = 1 + rng.below(25);
        let values = columns.iter().map(|(name, kind)| {
            let value = match *kind {
                "TEXT" => format!("'{name} ' || i"),
                "INTEGER" => "i".to_owned(),
                "REAL" => "i + 0.5".to_owned(),
                _ => format!("CAST('{name} ' || i AS BLOB)"),
            };
            format!("CASE WHEN i % 9 THEN {value} END")
        });
        sql.push_str(&format!(
            "WITH RECURSIVE n(i) AS (SELECT {} UNION ALL SELECT i + 1 FROM n WHERE i < {}) INSERT INTO t SELECT i, {} FROM n;",
            rows + 1,
            rows + more,
            values.collect::<Vec<_>>().join(", ")
        ));
        rows += more;
    }
    (sql, columns)
}

#[test]
fn no_value_gets_the_name_of_a_column_of_another_class() {
    for seed in 0..16 {
        let mut rng = Rng::new(&format!("history {seed}"));
        let (sql, mut columns) = history(&mut rng);
        let case = Case::new(&sql);
        let declare = |columns: &[(String, &str)]| {
            let list = columns.iter().map(|(n, t)| format!("{n} {t}")).collect::<Vec<_>>().join(", ");
            format!("CREATE TABLE t(id INTEGER PRIMARY KEY, {list});")
        };
        // In the order of the file everything comes back.
        let (db, _) = case.recover(&declare(&columns));
        let all = "SELECT * FROM t ORDER BY id";
        assert_eq!(query(&db, all), case.rows(all), "seed {seed}");
        // A new installation has the last columns elsewhere.
        for _ in 0..1 + rng.below(2) {
            let last = columns.pop().unwrap();
            columns.insert(rng.below(columns.len()), last);
        }
        let (db, _) = case.recover(&declare(&columns));
        // A column of type BLOB may hold any class: nothing tells it from one that was moved.
        for (name, kind) in columns.iter().filter(|(_, kind)| *kind != "BLOB") {
            let sql = format!("SELECT count(*) FROM t WHERE {name} IS NOT NULL AND typeof({name}) <> lower('{kind}')");
            assert_eq!(query(&db, &sql), [[Value::Integer(0)]], "seed {seed}: column {name} {kind}");
        }
    }
}
