//! One expression over one row, here and in SQLite.

use std::borrow::Cow;

use rootpage::expr::{Datum, Expr, Fault, Meter, Row, eval};
use rootpage::schema::ddl::{Definition, parse};
use rusqlite::Connection;
use rusqlite::types::ValueRef;

/// The columns of the test table; the CREATE text for SQLite and for us.
pub const COLUMNS: &str = "a, b TEXT, c INTEGER, d REAL, e NUMERIC, f TEXT COLLATE NOCASE, g COLLATE RTRIM";

/// A numbering without a clock: the same on every run.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % sides
    }

    pub fn pick<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.roll(list.len())]
    }
}

fn datum(v: ValueRef<'_>) -> Datum<'static> {
    match v {
        ValueRef::Null => Datum::Null,
        ValueRef::Integer(n) => Datum::Int(n),
        ValueRef::Real(x) => Datum::Real(x),
        ValueRef::Text(t) => Datum::Text(Cow::Owned(t.to_vec())),
        ValueRef::Blob(b) => Datum::Blob(Cow::Owned(b.to_vec())),
    }
}

/// A value for people.
fn words(d: &Datum<'_>) -> String {
    match d {
        Datum::Text(t) => format!("'{}'", String::from_utf8_lossy(t)),
        other => format!("{other:?}"),
    }
}

struct Stored(Vec<Datum<'static>>, Meter);

impl Row for Stored {
    fn column(&self, index: usize) -> Result<Datum<'_>, Fault> {
        Ok(self.0[index].by_ref())
    }

    fn rowid(&self) -> Option<i64> {
        Some(1)
    }

    fn meter(&self) -> &Meter {
        &self.1
    }
}

/// A table of one row in SQLite, and the same row for us.
pub struct Bench {
    pub db: Connection,
    row: Stored,
    /// Expressions compared.
    pub compared: usize,
    /// Expressions that we do not know.
    pub unknown: Vec<String>,
    failures: Vec<String>,
}

impl Bench {
    pub fn new() -> Bench {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(&format!("CREATE TABLE t({COLUMNS}); INSERT INTO t DEFAULT VALUES")).unwrap();
        Bench { db, row: Stored(vec![Datum::Null; 7], Meter::new(u64::MAX)), compared: 0, unknown: Vec::new(), failures: Vec::new() }
    }

    /// Stores other values: SQL literals, one for each column.
    pub fn store(&mut self, literals: &[&str]) {
        let list = literals.join(",");
        self.db.execute_batch(&format!("DELETE FROM t; INSERT INTO t(rowid,a,b,c,d,e,f,g) VALUES(1,{list})")).unwrap();
        self.row.0 = self.db.query_row("SELECT * FROM t", [], |r| Ok((0..7).map(|i| datum(r.get_ref(i).unwrap())).collect())).unwrap();
    }

    pub fn expr(text: &str) -> Option<Expr> {
        let sql = format!("CREATE TABLE t({COLUMNS}, CHECK(({text})))");
        let parsed = parse(sql.as_bytes());
        match parsed.definition {
            Definition::Table(t) if parsed.problem.is_none() => t.checks.first().map(|c| c.expr.clone()),
            _ => None,
        }
    }

    /// Compares one expression. What SQLite does not prepare is left out.
    pub fn check(&mut self, text: &str) {
        let Ok(mut statement) = self.db.prepare(&format!("SELECT {text} FROM t")) else { return };
        let theirs = statement.query_row([], |r| Ok(datum(r.get_ref(0).unwrap()))).map_err(|e| e.to_string());
        let Some(expr) = Bench::expr(text) else {
            self.unknown.push(format!("{text}: not parsed"));
            return;
        };
        self.compared += 1;
        let ours = match expr.unknown() {
            Some(u) => Err(Fault::Unknown(u)),
            None => eval(&expr, &self.row),
        };
        let same = match (&ours, &theirs) {
            (Err(Fault::Unknown(u)), _) => {
                self.unknown.push(format!("{text}: {u}"));
                return;
            }
            (Ok(Datum::Real(x)), Ok(Datum::Real(y))) => x.to_bits() == y.to_bits() || (*x == 0.0 && *y == 0.0),
            (Ok(x), Ok(y)) => x == y,
            (Err(Fault::Raises(_)), Err(_)) => true,
            _ => false,
        };
        if !same {
            let show = |r: String| r.chars().take(300).collect::<String>();
            let ours = ours.as_ref().map(words).map_err(|e| format!("{e:?}"));
            let theirs = theirs.as_ref().map(words).map_err(String::clone);
            let row = words(&self.row.0[0]);
            self.failures.push(format!(
                "{text}\n  a      {}\n  ours   {}\n  SQLite {}",
                show(row),
                show(format!("{ours:?}")),
                show(format!("{theirs:?}"))
            ));
        }
    }

    /// Fails on any difference, and on more unknown expressions than that.
    pub fn finish(self, most_unknown: usize) {
        assert!(self.compared > 0, "nothing was compared");
        assert!(self.failures.is_empty(), "{} differ:\n{}", self.failures.len(), self.failures[..self.failures.len().min(25)].join("\n"));
        assert!(self.unknown.len() <= most_unknown, "unknown: {}", self.unknown[..self.unknown.len().min(25)].join("\n"));
    }
}

/// A string literal of SQL.
pub fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
