//! Rebuild of an FTS5 index: ours beside SQLite's own `rebuild`, and our check beside its `integrity-check`, in one run.
//!
//! `cargo run --release -p rootpage-tools --bin fts5-bench -- [MIB]`: text of that size (default 64).
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::as_conversions, clippy::arithmetic_side_effects, clippy::print_stdout)]

use std::collections::BTreeMap;
use std::time::Instant;

use rootpage::ctx::Limits;
use rootpage::finding::{Findings, Site};
use rootpage::fts5::Rebuilder;
use rootpage::fts5::check::Checker;
use rootpage::fts5::config::{Config, Settings};
use rootpage::fts5::rebuild::Options;
use rootpage::fts5::tokenizer::{Found, Tokenizer};
use rusqlite::{Connection, params};

fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Text with the word frequencies of a language: few words often, many seldom.
fn text(state: &mut u64, bytes: usize) -> String {
    let mut out = String::new();
    while out.len() < bytes {
        let r = (next(state) % 1_000_000) as f64 / 1_000_000.0;
        let rank = (40_000_f64.powf(r) as u64).wrapping_mul(0x9e37_79b9);
        for _ in 0..2 + rank % 4 {
            let i = (rank >> (next(&mut { rank.max(1) }) % 8)) % 20;
            out.push_str(
                ["er", "th", "on", "a", "in", "re", "st", "en", "o", "ti", "le", "no", "be", "ma", "se", "ka", "lü", "да", "s", "ing"]
                    [i as usize],
            );
        }
        let word = format!("{:x}", rank % 40_000);
        out.push_str(&word);
        out.push(if next(state).is_multiple_of(12) { '\n' } else { ' ' });
    }
    out
}

/// Peak resident memory of this process in MiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmHWM")).unwrap_or("0");
    line.split_whitespace().nth(1).and_then(|n| n.parse::<u64>().ok()).unwrap_or(0) / 1024
}

fn main() {
    let mib: usize = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(64);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bench.db");
    let db = Connection::open(&path).unwrap();
    db.execute_batch("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; CREATE TABLE docs(id INTEGER PRIMARY KEY, a TEXT); BEGIN").unwrap();
    let mut state = 4711;
    let mut size = 0;
    let mut insert = db.prepare("INSERT INTO docs VALUES(NULL, ?)").unwrap();
    while size < mib << 20 {
        let bytes = 200 + (next(&mut state) % 4000) as usize;
        let t = text(&mut state, bytes);
        size += t.len();
        insert.execute([t]).unwrap();
    }
    drop(insert);
    db.execute_batch("COMMIT").unwrap();
    println!("{} MiB of text, {} threads", size >> 20, std::thread::available_parallelism().unwrap());
    for tokenize in ["unicode61", "trigram"] {
        let arguments = ["a", "content='docs'", "content_rowid='id'", &format!("tokenize={tokenize}")].map(str::to_owned);
        db.execute_batch(&format!("DROP TABLE IF EXISTS ft; CREATE VIRTUAL TABLE ft USING fts5({})", arguments.join(", "))).unwrap();
        let start = Instant::now();
        db.execute_batch("BEGIN; INSERT INTO ft(ft) VALUES('rebuild'); COMMIT").unwrap();
        let theirs = start.elapsed();

        // Ours writes the same tables through SQL in the same way, so that both pay for them.
        let start = Instant::now();
        let config = Config::parse(&arguments).unwrap();
        let Found::BuiltIn(tokenizer) = Tokenizer::find(&config.tokenizer).unwrap() else { return };
        let mut rebuilder = Rebuilder::new(&config, tokenizer.clone(), Options::new(&Limits::default(), folder.path()));
        {
            let mut select = db.prepare("SELECT id, a FROM docs ORDER BY id").unwrap();
            let mut rows = select.query([]).unwrap();
            while let Some(r) = rows.next().unwrap() {
                let a = r.get_ref(1).unwrap().as_bytes().unwrap();
                rebuilder.push(r.get(0).unwrap(), &[Some(a)]).unwrap();
            }
        }
        let pushed = start.elapsed();
        let built = rebuilder.finish().unwrap();
        let finished = start.elapsed();
        db.execute_batch("BEGIN; DELETE FROM ft_data; DELETE FROM ft_idx; DELETE FROM ft_docsize").unwrap();
        let mut data = BTreeMap::new();
        {
            let mut insert = db.prepare("INSERT INTO ft_data VALUES(?, ?)").unwrap();
            built.data.for_each(|id, block| insert.execute(params![id, block]).map(|_| ()).map_err(sql)).unwrap();
            let mut insert = db.prepare("INSERT INTO ft_idx VALUES(?, ?, ?)").unwrap();
            built.idx.for_each(|s, t, p| insert.execute(params![s, t, p]).map(|_| ()).map_err(sql)).unwrap();
            let mut insert = db.prepare("INSERT INTO ft_docsize VALUES(?, ?)").unwrap();
            built.docsize.unwrap().for_each(|id, sz, _| insert.execute(params![id, sz]).map(|_| ()).map_err(sql)).unwrap();
        }
        db.execute_batch("COMMIT").unwrap();
        let ours = start.elapsed();
        println!(
            "{tokenize}: rebuild SQLite {theirs:.2?}, ours {ours:.2?} (rows {pushed:.2?}, merged {finished:.2?}): {:.2} times as fast; peak {} MiB",
            theirs.as_secs_f64() / ours.as_secs_f64(),
            peak()
        );

        let other = Connection::open(&path).unwrap();
        let start = Instant::now();
        other.execute_batch("INSERT INTO ft(ft, rank) VALUES('integrity-check', 1)").unwrap();
        let theirs = start.elapsed();
        let start = Instant::now();
        let settings = Settings { version: Some(4), ..Settings::default() };
        let mut checker = Checker::new(&config, &settings, Some(&tokenizer));
        let mut select = other.prepare("SELECT id, block FROM ft_data").unwrap();
        let mut rows = select.query([]).unwrap();
        while let Some(r) = rows.next().unwrap() {
            data.insert(r.get(0).unwrap(), r.get_ref(1).unwrap().as_bytes().unwrap().to_vec());
        }
        let mut select = other.prepare("SELECT segid, term, pgno FROM ft_idx").unwrap();
        let mut rows = select.query([]).unwrap();
        while let Some(r) = rows.next().unwrap() {
            checker.idx_row(r.get(0).unwrap(), r.get_ref(1).unwrap().as_bytes().unwrap(), r.get(2).unwrap());
        }
        let mut select = other.prepare("SELECT id, sz FROM ft_docsize").unwrap();
        let mut rows = select.query([]).unwrap();
        while let Some(r) = rows.next().unwrap() {
            checker.docsize_row(r.get(0).unwrap(), r.get_ref(1).unwrap().as_bytes().unwrap());
        }
        let read = start.elapsed();
        checker.index(&data, data.keys().copied());
        println!("{tokenize}: shadow rows {read:.2?}, index {:.2?}", start.elapsed() - read);
        let mut select = other.prepare("SELECT id, a FROM docs").unwrap();
        let mut rows = select.query([]).unwrap();
        while let Some(r) = rows.next().unwrap() {
            checker.content_row(r.get(0).unwrap(), &[Some(r.get_ref(1).unwrap().as_bytes().unwrap())]);
        }
        let mut log = Findings::new(10);
        let checked = checker.finish(&mut log, Site::default());
        let ours = start.elapsed();
        println!(
            "{tokenize}: check SQLite {theirs:.2?}, ours {ours:.2?}: {:.2} times as fast; clean: {}",
            theirs.as_secs_f64() / ours.as_secs_f64(),
            checked.is_clean()
        );
    }
}

fn sql(e: rusqlite::Error) -> rootpage::error::Error {
    rootpage::error::Error::Usage { what: e.to_string() }
}
