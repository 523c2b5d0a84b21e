//! Deleted rows stay deleted: generated histories of inserts, updates, deletes, drops and vacuums, then structural damage.
//! Whatever comes back into a live table was live before the damage.
//!
//! `SEED=n` and `ROUNDS=n` in the environment widen the search.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use rayon::prelude::*;
use rusqlite::{Connection, params};

use crate::dbgen;
use crate::judge;
use crate::pages::File;
use crate::rng::Rng;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

/// A history: every text is written once in its life, so that a row that comes back tells which version it is.
fn history(db: &Path, rng: &mut Rng) -> rusqlite::Result<()> {
    let (page_size, auto_vacuum) = (*rng.pick(&[512, 1024, 4096]), *rng.pick(&[0, 0, 1, 2]));
    let con = dbgen::create(db, page_size, "UTF-8", auto_vacuum, 0)?;
    con.execute_batch(
        "CREATE TABLE keyed(id INTEGER PRIMARY KEY, mail TEXT UNIQUE, n INTEGER NOT NULL, body TEXT);
         CREATE INDEX keyed_n ON keyed(n);
         CREATE TABLE bare(a TEXT, b INTEGER);
         CREATE TABLE pairs(k TEXT PRIMARY KEY, v TEXT) WITHOUT ROWID;
         CREATE TABLE twin(id INTEGER PRIMARY KEY, mail TEXT, n INTEGER NOT NULL, body TEXT);",
    )?;
    let mut serial = 0;
    let scale = if page_size == 4096 { 4 } else { 1 };
    for _ in 0..4 + rng.below(8) {
        con.execute_batch("BEGIN")?;
        match rng.below(9) {
            0..4 => {
                for _ in 0..scale * (40 + rng.below(150)) {
                    serial += 1;
                    let words = 1 + rng.below(12);
                    con.execute(
                        "INSERT INTO keyed(mail, n, body) VALUES(?,?,?)",
                        params![format!("u{serial}@x"), serial % 17, format!("{serial} {}", rng.words(words))],
                    )?;
                    con.execute("INSERT INTO bare VALUES(?,?)", params![format!("bare {serial} {}", rng.words(3)), serial])?;
                    con.execute(
                        "INSERT INTO pairs VALUES(?,?)",
                        params![format!("{:08x}", (serial * 2_654_435) % 0xffff_ffff_i64), format!("pair {serial}")],
                    )?;
                    con.execute(
                        "INSERT INTO twin(mail, n, body) VALUES(?,?,?)",
                        params![format!("t{serial}@x"), serial, format!("twin {serial}")],
                    )?;
                }
            }
            4 | 5 => {
                // A range goes: whole pages become free.
                let from = rng.range(0, serial.max(1));
                let to = from + rng.range(10, 200);
                con.execute("DELETE FROM keyed WHERE id BETWEEN ? AND ?", [from, to])?;
                con.execute("DELETE FROM bare WHERE rowid BETWEEN ? AND ?", [from, to])?;
                con.execute("DELETE FROM twin WHERE id BETWEEN ? AND ?", [from, to])?;
            }
            6 => {
                let k = rng.range(2, 7);
                con.execute("DELETE FROM keyed WHERE id % ?1 = 0", [k])?;
                con.execute("DELETE FROM pairs WHERE length(v) % ?1 = 0", [k])?;
            }
            7 => {
                serial += 1;
                con.execute("UPDATE keyed SET body = 'changed ' || ?1 || ' ' || id WHERE id % 5 = 1", [serial])?;
                con.execute("UPDATE bare SET a = 'changed ' || ?1 || ' ' || rowid WHERE rowid % 4 = 1", [serial])?;
            }
            _ => {
                con.execute_batch("DROP TABLE twin; CREATE TABLE twin(id INTEGER PRIMARY KEY, mail TEXT, n INTEGER NOT NULL, body TEXT);")?;
            }
        }
        con.execute_batch("COMMIT")?;
        if rng.one_in(12) {
            con.execute_batch("VACUUM")?;
        }
        if auto_vacuum == 2 && rng.one_in(3) {
            con.execute_batch("PRAGMA incremental_vacuum(5)")?;
        }
    }
    con.close().map_err(|(_, e)| e)
}

/// Structural damage to one or two tables, and often to the freelist too. Bytes of rows are lost, never changed.
fn damage(data: &mut [u8], roots: &[(String, u32)], rng: &mut Rng) -> String {
    let healthy = data.to_vec();
    let file = File::new(&healthy);
    let mut told = Vec::new();
    let base = |no: u32| (no as usize - 1) * file.page_size;
    for _ in 0..1 + rng.below(2) {
        let (name, root) = rng.pick(roots);
        let tree = file.tree(*root);
        let interior = (!tree.interiors.is_empty()).then(|| *rng.pick(&tree.interiors));
        let leaf = *rng.pick(&tree.leaves);
        match (rng.below(12), interior) {
            (0 | 1, Some(no)) => {
                data[base(no)..base(no) + file.page_size].fill(0);
                told.push(format!("interior {no} of {name} zero"));
            }
            (2, Some(no)) => {
                let junk = rng.bytes(file.page_size);
                data[base(no)..base(no) + file.page_size].copy_from_slice(&junk);
                told.push(format!("interior {no} of {name} random"));
            }
            (3, Some(no)) => {
                data[base(no) + 8..base(no) + 12].copy_from_slice(&0x7fff_fff0_u32.to_be_bytes());
                told.push(format!("right child of {no} of {name}"));
            }
            (4, Some(no)) => {
                data[base(no) + 3..base(no) + 5].fill(0xff);
                told.push(format!("cell count of interior {no} of {name}"));
            }
            (5, _) => {
                data[base(leaf) + 3..base(leaf) + 5].fill(0xff);
                told.push(format!("cell count of leaf {leaf} of {name}"));
            }
            (6, _) => {
                data[base(leaf)..base(leaf) + file.page_size].fill(0);
                told.push(format!("leaf {leaf} of {name} zero"));
            }
            (7, Some(no)) => {
                data[base(no) + 8..base(no) + 12].copy_from_slice(&no.to_be_bytes());
                told.push(format!("right child of {no} of {name} is itself"));
            }
            (8, Some(no)) => {
                data[base(no) + 8..base(no) + 12].copy_from_slice(&leaf.to_be_bytes());
                told.push(format!("right child of {no} of {name} is leaf {leaf}"));
            }
            (9, _) => {
                data[base(leaf) + 8..base(leaf) + 24].fill(0);
                told.push(format!("cell pointers of leaf {leaf} of {name} zero"));
            }
            (10, Some(no)) => {
                // What an interior page held before its tree grew: a write that was lost.
                let other = *rng.pick(&tree.leaves);
                data.copy_within(base(other)..base(other) + file.page_size, base(no));
                told.push(format!("leaf {other} over interior {no} of {name}"));
            }
            _ => {
                let other = *rng.pick(&tree.leaves);
                data.copy_within(base(other)..base(other) + file.page_size, base(leaf));
                told.push(format!("leaf {other} of {name} over {leaf}"));
            }
        }
    }
    match rng.below(4) {
        0 => {
            data[32..40].fill(0);
            told.push("freelist forgotten".to_owned());
        }
        1 => {
            if let Some(&no) = file.freelist().0.first() {
                let junk = rng.bytes(file.page_size);
                let (what, page) = if rng.one_in(3) { ("random", junk) } else { ("zero", vec![0; file.page_size]) };
                data[base(no)..base(no) + file.page_size].copy_from_slice(&page);
                told.push(format!("freelist trunk {no} {what}"));
            }
        }
        _ => {}
    }
    told.join(", ")
}

fn trial(name: &str) -> Result<(), String> {
    let dir = tempfile::tempdir().unwrap();
    let (db, out) = (dir.path().join("db.sqlite"), dir.path().join("out.db"));
    let mut rng = Rng::new(name);
    history(&db, &mut rng).unwrap();
    let con = judge::open(&db).unwrap();
    let truth = judge::tables(&con).unwrap();
    let roots: Vec<(String, u32)> = con
        .prepare("SELECT name, rootpage FROM sqlite_schema WHERE type='table'")
        .unwrap()
        .query_map([], |r| Ok((r.get(0)?, r.get(1)?)))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    drop(con);
    let mut data = fs::read(&db).unwrap();
    let told = damage(&mut data, &roots, &mut rng);
    fs::write(&db, &data).unwrap();
    let verdict = (|| {
        let ran = Command::new(env!("CARGO_BIN_EXE_rootpage")).arg("recover").arg(&db).arg("-o").arg(&out).output().unwrap();
        if !matches!(ran.status.code(), Some(0..=2)) {
            return Err(format!("exit {:?}: {}", ran.status.code(), String::from_utf8_lossy(&ran.stderr)));
        }
        let con = Connection::open(&out).map_err(|e| e.to_string())?;
        let said = judge::complaints(&con);
        if !said.is_empty() {
            return Err(said.join("; "));
        }
        for (table, rows) in judge::tables(&con).map_err(|e| e.to_string())? {
            let live: BTreeSet<&judge::Row> = truth.get(&table).ok_or_else(|| format!("table {table} is new"))?.iter().collect();
            let back: Vec<&judge::Row> = rows.iter().filter(|r| !live.contains(r)).collect();
            if let Some(first) = back.first() {
                return Err(format!("{} rows of {table} were not live before the damage, the first: {first:?}", back.len()));
            }
        }
        Ok(())
    })();
    verdict.map_err(|e: String| {
        let kept = std::env::temp_dir().join("rootpage-deleted");
        fs::create_dir_all(&kept).unwrap();
        let file = kept.join(format!("{}.sqlite", name.replace('/', "-")));
        fs::write(&file, &data).unwrap();
        format!("- {name} [{told}]: {e}\n    kept as {}", file.display())
    })
}

#[test]
fn no_deleted_row_comes_back() {
    let (seed, rounds) = (number("SEED", 1), number("ROUNDS", 120));
    let failures: Vec<String> = (0..rounds).into_par_iter().filter_map(|n| trial(&format!("deleted/{seed}/{n}")).err()).collect();
    assert!(
        failures.is_empty(),
        "{} of {rounds} histories\n{}",
        failures.len(),
        failures.iter().take(12).cloned().collect::<Vec<_>>().join("\n")
    );
}
