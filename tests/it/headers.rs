//! Every damage to the header, in every page size and encoding: all rows come back.

use std::fs;
use std::process::Command;

use rayon::prelude::*;
use rusqlite::{Connection, params};

use crate::dbgen;
use crate::judge;
use crate::rng::Rng;

/// A name, an offset, and the bytes that are written there.
const DAMAGES: &[(&str, usize, &[u8])] = &[
    ("magic torn", 0, &[0; 16]),
    ("magic byte", 5, &[0]),
    ("header zero", 0, &[0; 100]),
    ("page size zero", 16, &[0, 0]),
    ("page size odd", 16, &[0x0c, 0xb2]),
    ("page size 512", 16, &[2, 0]),
    ("page size 65536", 16, &[0, 1]),
    ("versions", 18, &[9, 9]),
    ("reserved bytes", 20, &[200]),
    ("fractions", 21, &[1, 2, 3]),
    ("page count 1", 28, &[0, 0, 0, 1]),
    ("page count huge", 28, &[0x7f, 0xff, 0xff, 0xff]),
    ("schema format", 44, &[0, 0, 0, 99]),
    ("encoding 0", 56, &[0; 4]),
    ("encoding 7", 56, &[0, 0, 0, 7]),
    ("encoding 1", 56, &[0, 0, 0, 1]),
    ("encoding 2", 56, &[0, 0, 0, 2]),
    ("encoding 3", 56, &[0, 0, 0, 3]),
    ("garbage", 0, &[0xa5; 100]),
];

#[test]
fn rows_come_back_under_every_damage_to_the_header() {
    let mut settings = Vec::new();
    for page_size in [512, 1024, 2048, 4096, 8192, 16384, 32768, 65536] {
        for encoding in ["UTF-8", "UTF-16le", "UTF-16be"] {
            for auto_vacuum in [0, 1] {
                settings.push((page_size, encoding, auto_vacuum));
            }
        }
    }
    let failures: Vec<String> = settings
        .par_iter()
        .flat_map(|&(page_size, encoding, auto_vacuum)| {
            let dir = tempfile::tempdir().unwrap();
            let db = dir.path().join("db.sqlite");
            let con = dbgen::create(&db, page_size, encoding, auto_vacuum, 0).unwrap();
            con.execute_batch("CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT, b REAL); CREATE INDEX t_a ON t(a); CREATE TABLE w(k TEXT PRIMARY KEY) WITHOUT ROWID; BEGIN;").unwrap();
            let mut rng = Rng::new("headers");
            for n in 0..(2 * page_size / 20).clamp(200, 2000) {
                con.execute("INSERT INTO t VALUES(?,?,?)", params![n, rng.words(4), f64::from(n) / 2.0]).unwrap();
                con.execute("INSERT OR IGNORE INTO w VALUES(?)", [rng.words(2)]).unwrap();
            }
            con.execute_batch("COMMIT").unwrap();
            drop(con);
            let want = judge::tables(&judge::open(&db).unwrap()).unwrap();
            let healthy = fs::read(&db).unwrap();
            let mut bad = Vec::new();
            for (name, at, bytes) in DAMAGES {
                let mut data = healthy.clone();
                data[*at..at + bytes.len()].copy_from_slice(bytes);
                if data == healthy {
                    continue;
                }
                fs::write(&db, &data).unwrap();
                let out = dir.path().join("out.db");
                let ran = Command::new(env!("CARGO_BIN_EXE_rootpage")).arg("recover").arg("--force").arg(&db).arg("-o").arg(&out).output().unwrap();
                let verdict = (|| {
                    if !matches!(ran.status.code(), Some(1..=2)) {
                        return Err(format!("exit {:?}: {}", ran.status.code(), String::from_utf8_lossy(&ran.stderr).trim()));
                    }
                    let con = Connection::open(&out).map_err(|e| e.to_string())?;
                    let said = judge::complaints(&con);
                    if !said.is_empty() {
                        return Err(said.join("; "));
                    }
                    let got = judge::tables(&con).map_err(|e| e.to_string())?;
                    judge::table_difference(&want, &got, &[]).map_or(Ok(()), Err)
                })();
                if let Err(e) = verdict {
                    bad.push(format!("- {page_size} {encoding} auto_vacuum {auto_vacuum}, {name}: {e}"));
                }
            }
            bad
        })
        .collect();
    assert!(failures.is_empty(), "{} fail\n{}", failures.len(), failures.iter().take(30).cloned().collect::<Vec<_>>().join("\n"));
}
