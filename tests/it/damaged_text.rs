//! One damaged byte in a CREATE text costs no row and no value: columns keep their places, the copy is valid, and a copy of
//! the copy is the same file. Real SQLite makes the files and reads the copies.
//!
//! `SEED=n` and `ROUNDS=n` in the environment widen the search.

use std::fs;
use std::path::Path;
use std::process::Command;

use rayon::prelude::*;
use rusqlite::Connection;
use rusqlite::types::Value;

use crate::judge;
use crate::rng::Rng;

const ROWS: usize = 40;

/// Texts of one table, and how a row of it is made: `i` counts.
const TABLES: &[(&str, &str)] = &[
    ("CREATE TABLE t(id integer primary key, name text not null, total real, note text)", "i, 'n' || i, i * 1.25, 'note ' || i"),
    ("CREATE TABLE t(k TEXT, n INTEGER, v BLOB, note TEXT, PRIMARY KEY(n, k)) WITHOUT ROWID", "'k' || i, i, x'01ff', 'note ' || i"),
    ("CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT NOT NULL, total REAL, raw BLOB) STRICT", "i, 'n' || i, i * 1.25, x'01ff'"),
    (
        "CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT, a INT, s INT AS (a + 1) STORED, v TEXT AS (upper(name)), z TEXT)",
        "i, 'n' || i, i * 3, 'z' || i",
    ),
    (
        "CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT CHECK(length(name) < 100), total REAL DEFAULT 1.5, note TEXT COLLATE NOCASE, CHECK(name <> note))",
        "i, 'n' || i, i * 1.25, 'note ' || i",
    ),
    (
        "CREATE TABLE t(\"the id\" INTEGER PRIMARY KEY, \"na,me\" TEXT, [to tal] DECIMAL(10,2), `note` TEXT DEFAULT 'a,b')",
        "i, 'n' || i, i * 1.25, 'note ' || i",
    ),
    (
        "CREATE TABLE t(\n  id INTEGER PRIMARY KEY, -- the key\n  name TEXT NOT NULL, /* who, when */\n  note TEXT -- free\n)",
        "i, 'n' || i, 'note ' || i",
    ),
    ("CREATE TABLE t(a, b, c, d)", "'a' || i, i, 'c' || i, i * 1.25"),
];

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

/// All values that are stored, column by column; whole reals count as integers, since a type may be lost.
fn values(db: &Path) -> Result<Vec<Vec<Value>>, String> {
    let con = Connection::open(db).map_err(|e| e.to_string())?;
    let words = |e: rusqlite::Error| e.to_string();
    let stored: Vec<bool> = {
        let mut s = con.prepare("SELECT hidden FROM pragma_table_xinfo('t') ORDER BY cid").map_err(words)?;
        s.query_map([], |r| r.get::<_, i64>(0)).map_err(words)?.map(|h| h.is_ok_and(|h| h != 2)).collect()
    };
    let mut s = con.prepare("SELECT * FROM t").map_err(words)?;
    let mut out = Vec::new();
    let mut rows = s.query([]).map_err(words)?;
    while let Some(row) = rows.next().map_err(words)? {
        let mut one = Vec::new();
        for (i, _) in stored.iter().enumerate().filter(|(_, s)| **s) {
            one.push(match row.get::<_, Value>(i).map_err(words)? {
                Value::Integer(n) => Value::Real(f64::from(i32::try_from(n).unwrap())),
                other => other,
            });
        }
        out.push(one);
    }
    Ok(out)
}

fn recover(db: &Path, out: &Path) -> Option<i32> {
    let ran = Command::new(env!("CARGO_BIN_EXE_rootpage")).arg("recover").arg("--force").arg(db).arg("-o").arg(out).output().unwrap();
    ran.status.code()
}

/// What is wrong with the recovery of a file.
fn wrong(dir: &Path, want: &[Vec<Value>]) -> Result<(), String> {
    let (out, again) = (dir.join("out.db"), dir.join("again.db"));
    let code = recover(&dir.join("damaged.db"), &out);
    let con = Connection::open(&out).unwrap();
    let said = judge::complaints(&con);
    if !said.is_empty() {
        return Err(said.join("; "));
    }
    match code {
        Some(0 | 1) => {
            let got = values(&out)?;
            if got != want {
                return Err(format!("exit {code:?}, {} rows, first {:?}", got.len(), got.first()));
            }
        }
        Some(2) => {
            let count = |db: &Path| -> usize {
                let con = Connection::open(db).unwrap();
                con.query_row("SELECT count(*) FROM t", [], |r| r.get::<_, i64>(0)).map_or(0, |n| usize::try_from(n).unwrap())
            };
            let salvage = dir.join("out.db.salvage.db");
            let aside = if salvage.exists() { count(&salvage) } else { 0 };
            if count(&out) + aside < want.len() {
                return Err(format!("exit 2, {} live, {aside} in salvage", count(&out)));
            }
        }
        other => return Err(format!("exit {other:?}")),
    }
    recover(&out, &again);
    if fs::read(&out).unwrap() != fs::read(&again).unwrap() {
        return Err("a copy of the copy differs".to_owned());
    }
    Ok(())
}

#[test]
fn one_damaged_byte_in_a_text_costs_no_value() {
    let rounds = number("ROUNDS", 14);
    let failures: Vec<String> = TABLES
        .par_iter()
        .enumerate()
        .flat_map_iter(|(n, (sql, row))| {
            let mut rng = Rng::new(&format!("text {} {n}", number("SEED", 1)));
            let dir = tempfile::tempdir().unwrap();
            let whole = dir.path().join("whole.db");
            let con = Connection::open(&whole).unwrap();
            con.execute_batch(sql).unwrap();
            let columns: Vec<String> = {
                let mut s = con.prepare("SELECT name FROM pragma_table_xinfo('t') WHERE hidden = 0 ORDER BY cid").unwrap();
                s.query_map([], |r| r.get::<_, String>(0)).unwrap().map(|c| format!("\"{}\"", c.unwrap())).collect()
            };
            let into = columns.join(", ");
            con.execute_batch(&format!(
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS}) INSERT INTO t({into}) SELECT {row} FROM n"
            ))
            .unwrap();
            drop(con);
            let want = values(&whole).unwrap();
            let bytes = fs::read(&whole).unwrap();
            let at = bytes.windows(sql.len()).position(|w| w == sql.as_bytes()).unwrap();
            let mut failures = Vec::new();
            for _ in 0..rounds {
                let place = at + rng.below(sql.len());
                let byte = rng.bytes(1)[0];
                let mut damaged = bytes.clone();
                damaged[place] = byte;
                fs::write(dir.path().join("damaged.db"), &damaged).unwrap();
                if let Err(words) = wrong(dir.path(), &want) {
                    let text = String::from_utf8_lossy(&damaged[at..at + sql.len()]).into_owned();
                    failures.push(format!("byte {} = {byte:#x}: {words}\n  {text}", place - at));
                }
            }
            failures
        })
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
