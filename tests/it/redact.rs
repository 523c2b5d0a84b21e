//! `--redact`: a database whose every value is a marker, damaged, through every verb: no output has a marker.

use std::path::Path;
use std::process::{Command, Output};

use rusqlite::Connection;

const MARKERS: [&str; 4] = ["canary", "63616e617279", "7771", "CANARY"];

fn make(path: &Path) {
    let con = Connection::open(path).unwrap();
    con.execute_batch(
        "PRAGMA page_size=512;
         CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT, note TEXT, raw BLOB);
         CREATE INDEX t_name ON t(name);
         WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM n WHERE i<60)
         INSERT INTO t SELECT 777100000+i*7, 'canary name '||i, 'canary note '||i, x'63616e617279' FROM n;
         CREATE TABLE w(k TEXT PRIMARY KEY, v TEXT, m TEXT) WITHOUT ROWID;
         CREATE INDEX w_v ON w(v);
         INSERT INTO w VALUES('canary key', 'canary value', NULL), ('canary other', 'canary v2', 'canary m');
         CREATE TABLE r(id INTEGER PRIMARY KEY, name TEXT, m TEXT);
         CREATE INDEX r_name ON r(name);
         INSERT INTO r VALUES(777199999, 'canary r', NULL), (777199998, 'canary r2', 'canary m');
         CREATE VIRTUAL TABLE f USING fts5(body);
         INSERT INTO f(rowid, body) VALUES(777188888, 'canary text'), (777188889, 'more canary text');
         DELETE FROM f_docsize WHERE id=777188888;
         PRAGMA writable_schema=ON;
         UPDATE sqlite_schema SET sql=replace(sql, 'm TEXT', 'm TEXT NOT NULL') WHERE name IN ('w', 'r');",
    )
    .unwrap();
}

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rootpage")).args(args).output().unwrap()
}

fn markers_in(what: &str, bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    // Numbers of a report are grouped for people.
    let plain = text.replace(',', "");
    let found = MARKERS.iter().find(|m| text.contains(**m) || plain.contains(**m))?;
    let at = plain.find(found).unwrap_or(0);
    let from = plain.floor_char_boundary(at.saturating_sub(80));
    let to = plain.floor_char_boundary((at + 80).min(plain.len()));
    Some(format!("{what}: {:?}", &plain[from..to]))
}

#[test]
fn no_output_has_a_marker() {
    let dir = tempfile::tempdir().unwrap();
    let whole = dir.path().join("whole.db");
    make(&whole);
    let bytes = std::fs::read(&whole).unwrap();
    let pages = bytes.len() / 512;
    let mut leaks = Vec::new();
    // As it is, and with a page wiped, a header overwritten or a cell pointer bent.
    for (no, kind) in [(0, "whole")].into_iter().chain((1..pages).flat_map(|p| [(p, "zero"), (p, "cells"), (p, "record")])) {
        // Each fourth page is enough for a quick test.
        if kind != "whole" && (no + kind.len()) % 4 != 0 {
            continue;
        }
        let mut bent = bytes.clone();
        let at = no * 512;
        match kind {
            "zero" => bent[at..at + 512].fill(0),
            "cells" => bent[at + 8..at + 14].fill(0x7f),
            "record" => bent[at + 480..at + 486].fill(0xee),
            _ => {}
        }
        let db = dir.path().join("in.db");
        std::fs::write(&db, &bent).unwrap();
        let (db, other) = (db.to_str().unwrap(), whole.to_str().unwrap());
        let out = dir.path().join("out.db");
        let out = out.to_str().unwrap();
        let page = (no + 1).to_string();
        let calls: [&[&str]; 12] = [
            &["check", "--redact", db],
            &["check", "--redact", "--json", db],
            &["recover", "--redact", "--force", db, "-o", out],
            &["rows", "--redact", db],
            &["rows", "--redact", db, "--format", "sql"],
            &["rows", "--redact", db, "t", "--format", "csv"],
            &["page", "--redact", db, &page],
            &["page", "--redact", "--json", db, &page],
            &["map", "--redact", db],
            &["map", "--redact", "--json", db],
            &["diff", "--redact", db, other],
            &["diff", "--redact", "--json", db, other],
        ];
        for args in calls {
            let ran = run(args);
            let what = format!("{kind} {no}: {}", args[..3].join(" "));
            leaks.extend(markers_in(&what, &ran.stdout));
            leaks.extend(markers_in(&format!("{what} stderr"), &ran.stderr));
        }
        for ending in [".report.json", ".report.html", ".finish.sql"] {
            if let Ok(text) = std::fs::read(format!("{out}{ending}")) {
                leaks.extend(markers_in(&format!("{kind} {no}: {ending}"), &text));
            }
        }
        for file in std::fs::read_dir(dir.path()).unwrap().flatten() {
            if file.file_name().to_string_lossy().starts_with("out.db") {
                std::fs::remove_file(file.path()).unwrap();
            }
        }
    }
    assert!(leaks.is_empty(), "{} leaks\n{}", leaks.len(), leaks[..leaks.len().min(20)].join("\n"));
}
