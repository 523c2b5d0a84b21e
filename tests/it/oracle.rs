//! Healthy databases of every kind: what we read is what SQLite reads, what we write is what SQLite accepts and works on.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rayon::prelude::*;
use rootpage::ctx::Ctx;
use rootpage::format::Value;
use rootpage::report::export::{RowSink, RowView, TableInfo};
use rootpage::verbs::{self, Inputs, Options};
use rusqlite::Connection;

use crate::dbgen;
use crate::judge;
use crate::judge::{Cell, Tables};

/// Runs a test over every recipe and names all that fail.
fn each(what: &str, test: impl Fn(&Path, &Path, &dbgen::Recipe) -> Result<(), String> + Sync) {
    let only = std::env::var("ONLY").unwrap_or_default();
    let recipes: Vec<_> = dbgen::recipes().into_iter().filter(|r| r.name.contains(&only)).collect();
    let failures: Vec<(String, String)> = recipes
        .par_iter()
        .filter_map(|recipe| {
            let dir = tempfile::tempdir().unwrap();
            let db = dir.path().join("in.db");
            let made = dbgen::build(&db, recipe).map_err(|e| format!("the recipe fails: {e}"));
            made.and_then(|()| test(dir.path(), &db, recipe))
                .err()
                .map(|e| (recipe.name.clone(), e.replace(&*dir.path().to_string_lossy(), "DIR")))
        })
        .collect();
    // The same complaint about many recipes is said once.
    let mut grouped: Vec<(&str, Vec<&str>)> = Vec::new();
    for (name, complaint) in &failures {
        match grouped.iter_mut().find(|(c, _)| c == complaint) {
            Some((_, names)) => names.push(name),
            None => grouped.push((complaint, vec![name])),
        }
    }
    let mut text = String::new();
    for (complaint, names) in grouped.iter().take(15) {
        let _ = writeln!(
            text,
            "- {}{}: {complaint}",
            names[0],
            if names.len() > 1 { format!(" and {} more", names.len() - 1) } else { String::new() }
        );
    }
    assert!(failures.is_empty(), "{what}: {} of {} recipes fail\n{text}", failures.len(), recipes.len());
}

fn rootpage(args: &[&dyn AsRef<std::ffi::OsStr>]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rootpage")).args(args).output().expect("the binary runs")
}

/// The findings of a JSON report in a line each; other output as it is.
fn findings(stdout: &[u8]) -> String {
    let Ok(report) = serde_json::from_slice::<serde_json::Value>(stdout) else {
        return String::from_utf8_lossy(stdout).chars().take(1500).collect();
    };
    let mut text = format!("    verdict {}", report["verdict"]["class"]);
    for group in report["findings"].as_array().into_iter().flatten().take(12) {
        let first = &group["kept"][0];
        let _ = write!(
            text,
            "\n    {} {} x{} page {} cell {}: {} {}",
            group["code"], group["object_name"], group["count"], first["page"], first["cell"], first["sentence"], first["detail"]
        );
    }
    text
}

fn code(out: &Output, want: i32) -> Result<(), String> {
    if out.status.code() == Some(want) {
        return Ok(());
    }
    let e = String::from_utf8_lossy(&out.stderr);
    Err(format!("exit {:?}, expected {want}\n{}\n{}", out.status.code(), findings(&out.stdout), e.trim()))
}

fn recovered(db: &Path, dir: &Path, name: &str) -> Result<PathBuf, String> {
    let copy = dir.join(name);
    code(&rootpage(&[&"recover", &db, &"-o", &copy]), 0)?;
    Ok(copy)
}

/// Keeps every row it is given.
#[derive(Default)]
struct Keep {
    tables: Tables,
    current: String,
}

impl RowSink for Keep {
    fn begin_table(&mut self, table: &TableInfo) -> rootpage::error::Result<()> {
        self.current = table.name.clone();
        self.tables.insert(table.name.clone(), Vec::new());
        Ok(())
    }

    fn row(&mut self, row: &RowView<'_>) -> rootpage::error::Result<()> {
        let values = row
            .values
            .iter()
            .map(|v| match v {
                Value::Null => Cell::Null,
                Value::Int(i) => Cell::Int(*i),
                Value::Real(f) => Cell::Real(f.to_bits()),
                Value::Text(t) => Cell::Text(t.to_vec()),
                Value::Blob(b) => Cell::Blob(b.to_vec()),
            })
            .collect();
        self.tables.get_mut(&self.current).unwrap().push((row.rowid, values));
        Ok(())
    }

    fn end_table(&mut self) -> rootpage::error::Result<()> {
        Ok(())
    }
}

#[test]
fn the_recipes_are_healthy() {
    each("SQLite on the recipes", |_, db, _| {
        let con = Connection::open(db).map_err(|e| e.to_string())?;
        let said = judge::complaints(&con);
        if said.is_empty() { Ok(()) } else { Err(said.join("; ")) }
    });
}

#[test]
fn check_says_healthy() {
    each("check", |_, db, _| {
        let out = rootpage(&[&"check", &"--json", &db]);
        code(&out, 0)?;
        let report: serde_json::Value = serde_json::from_slice(&out.stdout).map_err(|e| e.to_string())?;
        if report["verdict"]["class"] == "healthy" { Ok(()) } else { Err(format!("verdict {}", report["verdict"])) }
    });
}

#[test]
fn our_rows_are_the_rows_of_sqlite() {
    each("rows", |_, db, _| {
        let con = judge::open(db).map_err(|e| e.to_string())?;
        let mut want = judge::tables(&con).map_err(|e| e.to_string())?;
        let mut keep = Keep::default();
        verbs::rows(&Inputs::at_path(db), &Options::default(), None, &mut keep, &Ctx::default()).map_err(|e| e.to_string())?;
        // A column named rowid hides the rowid from SQL, not from us.
        for (name, rows) in &mut want {
            if let Some(ours) = keep.tables.get_mut(name)
                && rows.first().is_some_and(|r| r.0.is_none())
            {
                ours.iter_mut().for_each(|r| r.0 = None);
                rows.iter_mut().for_each(|r| r.0 = None);
            }
        }
        keep.tables.retain(|name, _| want.contains_key(name));
        judge::table_difference(&want, &keep.tables, &[]).map_or(Ok(()), Err)
    });
}

#[test]
fn the_copy_is_equal_and_valid() {
    each("recover", |dir, db, _| {
        let before = std::fs::read(db).unwrap();
        let copy = recovered(db, dir, "out.db")?;
        if std::fs::read(db).unwrap() != before {
            return Err("the input was changed".into());
        }
        let mut left: Vec<_> = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        left.retain(|n| n != "in.db" && !n.starts_with("out.db"));
        if !left.is_empty() || dir.join("out.db.salvage.db").exists() || dir.join("out.db.finish.sql").exists() {
            return Err(format!("files that should not be there: {left:?}, or a salvage database or finish script"));
        }
        let sql = |e: rusqlite::Error| e.to_string();
        let (source, target) = (judge::open(db).map_err(sql)?, Connection::open(&copy).map_err(sql)?);
        let said = judge::complaints(&target);
        if !said.is_empty() {
            return Err(said.join("; "));
        }
        let fts = judge::fts5_tables(&source).map_err(sql)?;
        if let Some(d) = judge::difference(&judge::dump(db).map_err(sql)?, &judge::dump(&copy).map_err(sql)?, &fts) {
            return Err(d);
        }
        if judge::fts_meaning(&source).map_err(sql)? != judge::fts_meaning(&target).map_err(sql)? {
            return Err("an FTS5 index means something else".into());
        }
        if std::fs::read(&copy).unwrap()[18..20] != [1, 1] {
            return Err("header bytes 18 and 19 are not 1".into());
        }
        Ok(())
    });
}

#[test]
fn a_second_run_finds_nothing_and_writes_the_same_bytes() {
    each("second recover", |dir, db, _| {
        let first = recovered(db, dir, "one.db")?;
        let second = recovered(&first, dir, "two.db")?;
        if std::fs::read(first).unwrap() != std::fs::read(second).unwrap() {
            return Err("the copy of the copy has other bytes".into());
        }
        Ok(())
    });
}

#[test]
fn sqlite_can_work_on_the_copy() {
    each("writes", |dir, db, recipe| {
        let copy = recovered(db, dir, "out.db")?;
        let con = Connection::open(&copy).map_err(|e| e.to_string())?;
        let valid = |step: &str| {
            let said = judge::complaints(&con);
            if said.is_empty() { Ok(()) } else { Err(format!("after {step}: {}", said.join("; "))) }
        };
        let ordinary: Vec<(String, String)> = judge::schema(&con)
            .map_err(|e| e.to_string())?
            .into_iter()
            .filter(|(kind, name, _, sql)| {
                kind == "table" && !name.starts_with("sqlite_") && !sql.as_ref().unwrap().starts_with("CREATE VIRTUAL") && !is_shadow(name)
            })
            .map(|r| (r.1, r.3.unwrap()))
            .take(60)
            .collect();
        con.execute_batch("PRAGMA foreign_keys=OFF; BEGIN").unwrap();
        for (table, _) in &ordinary {
            let q = judge::quoted(table);
            let columns: Vec<String> = con
                .prepare("SELECT name FROM pragma_table_xinfo(?) WHERE hidden = 0")
                .and_then(|mut s| s.query_map([table], |r| r.get::<_, String>(0))?.collect())
                .map_err(|e| e.to_string())?;
            let list = columns.iter().map(|c| judge::quoted(c)).collect::<Vec<_>>().join(",");
            con.execute_batch(&format!(
                "CREATE TEMP TABLE aside AS SELECT {list} FROM {q} LIMIT 5;
                 DELETE FROM {q} WHERE ({list}) IN (SELECT * FROM temp.aside);
                 INSERT OR IGNORE INTO {q}({list}) SELECT * FROM temp.aside;
                 UPDATE {q} SET {0} = {0};
                 DROP TABLE temp.aside;",
                judge::quoted(&columns[0])
            ))
            .map_err(|e| format!("writes to {table}: {e}"))?;
        }
        con.execute_batch("COMMIT").map_err(|e| e.to_string())?;
        valid("insert, update, delete")?;
        for (table, _) in &ordinary {
            con.execute_batch(&format!("ALTER TABLE {} ADD COLUMN added_later TEXT DEFAULT 'later'", judge::quoted(table)))
                .map_err(|e| format!("ALTER TABLE {table}: {e}"))?;
        }
        valid("ALTER TABLE ADD COLUMN")?;
        if let Some((table, _)) = ordinary.first() {
            con.execute_batch(&format!("DELETE FROM {}", judge::quoted(table))).map_err(|e| e.to_string())?;
            valid("DELETE of a whole table")?;
        }
        if recipe.auto_vacuum == 2 {
            con.execute_batch("PRAGMA incremental_vacuum").map_err(|e| e.to_string())?;
            valid("incremental_vacuum")?;
        }
        con.execute_batch("REINDEX").map_err(|e| format!("REINDEX: {e}"))?;
        con.execute_batch("VACUUM").map_err(|e| format!("VACUUM: {e}"))?;
        valid("VACUUM")
    });
}

fn is_shadow(name: &str) -> bool {
    ["doc_fts_", "doc_tri_", "own_fts_", "less_fts_", "old_fts_", "box_"].iter().any(|p| name.starts_with(p))
}
