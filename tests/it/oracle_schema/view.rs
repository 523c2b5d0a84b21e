//! Views against the rows that SQLite gives for them.

use super::row::StoredRow;
use rootpage::expr::Datum;
use rootpage::finding::Findings;
use rootpage::format::{Encoding, Value};
use rootpage::schema::{Catalog, Object, ViewPlan};
use rusqlite::Connection;

type Rows = Vec<(i64, Vec<rusqlite::types::Value>)>;

fn table_rows(db: &Connection, object: &Object) -> Rows {
    let n = object.table_def().unwrap().columns.len();
    let mut q = db.prepare(&format!("SELECT rowid, * FROM \"{}\"", object.name.text())).unwrap();
    q.query_map([], |r| Ok((r.get(0)?, (1..=n).map(|i| r.get(i).unwrap()).collect()))).unwrap().map(Result::unwrap).collect()
}

fn each(object: &Object, rows: &Rows, f: &mut dyn FnMut(&StoredRow<'_>)) {
    for (rowid, row) in rows {
        let values: Vec<Value<'_>> = row
            .iter()
            .map(|v| match v {
                rusqlite::types::Value::Null => Value::Null,
                rusqlite::types::Value::Integer(n) => Value::Int(*n),
                rusqlite::types::Value::Real(x) => Value::Real(*x),
                rusqlite::types::Value::Text(t) => Value::Text(t.as_bytes()),
                rusqlite::types::Value::Blob(b) => Value::Blob(b),
            })
            .collect();
        f(&StoredRow::new(object.table_def().unwrap(), object.table_layout.as_ref().unwrap(), &values, Some(*rowid), Encoding::Utf8));
    }
}

const SETUP: &str = "
CREATE TABLE sessions(id TEXT PRIMARY KEY, source TEXT, model_config TEXT);
CREATE TABLE messages(id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT, tool_name TEXT);
CREATE TABLE num(k REAL, v);
INSERT INTO sessions VALUES('s1','cli',NULL),('s2','cron','{}'),('s3','tg','{\"_delegate_from\":\"x\"}'),('S1','web','{\"a\":1}'),('7','n',NULL);
INSERT INTO messages VALUES(1,'s1','user','hello',NULL),(2,'s1','tool','0123456789','t'),(3,'s2','user','b',NULL),
 (4,'s3','assistant',NULL,'q'),(5,'S1','user','c','z'),(6,NULL,'user','d',NULL),(7,'gone','tool','e',NULL),(8,'7','user',x'00ff',1);
INSERT INTO num VALUES(7,'seven'),(1,'one'),(1.0,'uno'),(NULL,'null'),(8,'eight');
";

#[test]
fn views_agree_with_sqlite() {
    let views = [
        "SELECT id, CASE WHEN role='tool' THEN substr(content,1,4) ELSE content END AS content, tool_name FROM messages",
        "SELECT m.id, m.content, m.tool_name FROM messages m JOIN sessions s ON s.id = m.session_id WHERE m.role <> 'tool' AND s.source NOT IN ('cron','subagent') AND json_extract(s.model_config, '$._delegate_from') IS NULL",
        "SELECT m.id AS id, s.source FROM messages AS m LEFT JOIN sessions AS s ON m.session_id = s.id AND s.source <> 'cron'",
    ];
    for sql in views {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(SETUP).unwrap();
        db.execute_batch(&format!("CREATE VIEW w AS {sql}")).unwrap();
        let catalog = Catalog::from_rows(super::ddl::rows(&db), &mut Findings::new(10));
        let plan = ViewPlan::new(&catalog, catalog.by_name(b"w").unwrap()).unwrap_or_else(|e| panic!("{sql}: {e}"));
        let inners: Vec<_> = plan
            .inner_tables()
            .into_iter()
            .enumerate()
            .map(|(i, id)| {
                let object = catalog.get(id).unwrap();
                let mut inner = plan.inner(i);
                each(object, &table_rows(&db, object), &mut |row| inner.add(row).unwrap());
                inner
            })
            .collect();
        let mut got = Vec::new();
        let driver = catalog.get(plan.driver().unwrap()).unwrap();
        each(driver, &table_rows(&db, driver), &mut |row| plan.rows(row, &inners, &mut |r| got.push(format!("{r:?}"))).unwrap());
        let n = plan.columns().len();
        let mut q = db.prepare("SELECT * FROM w").unwrap();
        assert_eq!(q.column_count(), n);
        let mut want: Vec<String> = q
            .query_map([], |r| {
                let row: Vec<Datum<'static>> = (0..n)
                    .map(|i| match r.get_ref(i).unwrap() {
                        rusqlite::types::ValueRef::Null => Datum::Null,
                        rusqlite::types::ValueRef::Integer(n) => Datum::Int(n),
                        rusqlite::types::ValueRef::Real(x) => Datum::Real(x),
                        rusqlite::types::ValueRef::Text(t) => Datum::text(t),
                        rusqlite::types::ValueRef::Blob(b) => Datum::Blob(b.to_vec().into()),
                    })
                    .collect();
                Ok(format!("{row:?}"))
            })
            .unwrap()
            .map(Result::unwrap)
            .collect();
        got.sort();
        want.sort();
        assert_eq!(got, want, "{sql}");
        assert!(!got.is_empty(), "{sql}");
    }
}

#[test]
fn other_views_are_refused() {
    for sql in [
        "SELECT count(*) FROM messages",
        "SELECT max(id) FROM messages",
        "SELECT DISTINCT role FROM messages",
        "SELECT id FROM messages LIMIT 2",
        "SELECT id FROM messages UNION ALL SELECT 1",
        "SELECT id FROM messages GROUP BY role",
        "SELECT (SELECT 1) FROM messages",
        "SELECT m.id FROM messages m, sessions s",
        "SELECT random() FROM messages",
        "SELECT id FROM messages WHERE id IN (SELECT k FROM num)",
        "SELECT x FROM (SELECT id AS x FROM messages)",
    ] {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(SETUP).unwrap();
        db.execute_batch(&format!("CREATE VIEW w AS {sql}")).unwrap();
        let catalog = Catalog::from_rows(super::ddl::rows(&db), &mut Findings::new(10));
        assert!(ViewPlan::new(&catalog, catalog.by_name(b"w").unwrap()).is_err(), "{sql}");
    }
}
