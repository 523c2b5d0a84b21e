//! Files that no one here wrote. They are not part of the repository: without them the test says so and passes.
//!
//! `PUBLIC=folder` in the environment names another tree of files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::judge;
use rayon::prelude::*;
use rusqlite::Connection;

const SIDES: [&str; 4] = ["", "-wal", "-journal", "-shm"];

/// A guard against hanging, not a measurement.
const GUARD: Duration = Duration::from_secs(60);

/// Complaints that are no failure: a module or collation that this SQLite does not have, and the inside of indexes that are
/// copied as they stand because only their modules know it.
const NOT_CHECKED: [&str; 3] = ["no such", "In RTree", "malformed inverted index for FTS3"];

fn collect(dir: &Path, out: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries {
        let path = entry.unwrap().path();
        let name = path.to_string_lossy().into_owned();
        if path.is_dir() {
            collect(&path, out);
        } else if !["-wal", "-journal", "-shm", ".sql", ".xml", ".txt", ".md", ".tsv"].iter().any(|s| name.ends_with(s)) {
            out.push(path);
        }
    }
    out.sort();
}

/// Exit code of a verb; an error when it hangs or panics.
fn run(args: &[&Path], verb: &str) -> Result<i32, String> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_rootpage"))
        .arg(verb)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if start.elapsed() > GUARD {
            child.kill().unwrap();
            return Err(format!("{verb} hangs"));
        }
        std::thread::sleep(Duration::from_millis(3));
    };
    let mut said = String::new();
    std::io::Read::read_to_string(child.stderr.as_mut().unwrap(), &mut said).unwrap_or_default();
    match status.code() {
        Some(code @ 0..=3) if !said.contains("panicked at") => Ok(code),
        other => Err(format!("{verb} ends with {other:?}: {said}")),
    }
}

/// Rows of a database that SQLite finds healthy, by table; shadow tables of virtual tables are left out.
fn healthy_rows(db: &Path) -> Option<BTreeMap<String, Vec<judge::Row>>> {
    let con = Connection::open(db).ok()?;
    if !judge::complaints(&con).is_empty() {
        return None;
    }
    let virtuals: Vec<String> = judge::schema(&con)
        .ok()?
        .into_iter()
        .filter(|r| r.3.as_ref().is_some_and(|s| s.to_uppercase().starts_with("CREATE VIRTUAL")))
        .map(|r| r.1)
        .collect();
    let mut tables = judge::tables(&con).ok()?;
    tables.retain(|name, _| {
        !virtuals.iter().any(|v| name.strip_prefix(v.as_str()).is_some_and(|rest| rest.starts_with('_')))
            && !name.starts_with("sqlite_stat")
    });
    Some(tables)
}

fn try_file(file: &Path) -> Vec<String> {
    let mut bad = Vec::new();
    let dir = tempfile::tempdir().unwrap();
    let (db, out, probe) = (dir.path().join("in.db"), dir.path().join("out.db"), dir.path().join("probe"));
    fs::create_dir(&probe).unwrap();
    for side in SIDES {
        let source = PathBuf::from(format!("{}{side}", file.display()));
        if let Ok(data) = fs::read(&source) {
            fs::write(dir.path().join(format!("in.db{side}")), &data).unwrap();
            fs::write(probe.join(format!("in.db{side}")), &data).unwrap();
        }
    }
    let state = || SIDES.map(|s| fs::read(dir.path().join(format!("in.db{s}"))).ok());
    let before = state();
    for (verb, args) in [("check", vec![db.as_path()]), ("recover", vec![&db, Path::new("-o"), &out]), ("rows", vec![&db])] {
        if let Err(e) = run(&args, verb) {
            bad.push(e);
        }
    }
    if state() != before {
        bad.push("an input was changed".to_owned());
    }
    for entry in fs::read_dir(dir.path()).unwrap() {
        let name = entry.unwrap().file_name().to_string_lossy().into_owned();
        if name != "probe" && !name.starts_with("out.db") && !SIDES.iter().any(|s| name == format!("in.db{s}")) {
            bad.push(format!("{name} was left behind"));
        }
    }
    let want = healthy_rows(&probe.join("in.db"));
    if out.exists() {
        let con = Connection::open(&out).unwrap();
        let said = judge::complaints(&con);
        if said.iter().any(|s| !NOT_CHECKED.iter().any(|n| s.contains(n))) {
            bad.push(format!("the copy: {}", said.join("; ")));
        }
        drop(con);
        if let (Some(want), Some(got)) = (want, healthy_rows(&out)) {
            for (table, rows) in &want {
                let mut rows = rows.clone();
                let mut other = got.get(table).cloned().unwrap_or_default();
                rows.sort();
                other.sort();
                if rows != other {
                    bad.push(format!("table {table}: {} rows, the copy has {}, and they are not the same", rows.len(), other.len()));
                }
            }
        }
    } else if want.is_some() && before[0].as_ref().is_some_and(|d| !d.is_empty()) {
        bad.push("SQLite reads it, no copy was written".to_owned());
    }
    bad.into_iter().map(|b| format!("- {}: {b}", file.display())).collect()
}

#[test]
fn public_files_do_no_harm_and_healthy_ones_come_back() {
    let dir = std::env::var_os("PUBLIC").map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/public"), PathBuf::from);
    if !dir.is_dir() {
        eprintln!("skipped: no public files at {}", dir.display());
        return;
    }
    let mut files = Vec::new();
    collect(&dir, &mut files);
    let bad: Vec<String> = files.par_iter().flat_map(|f| try_file(f)).collect();
    assert!(
        bad.is_empty(),
        "{} complaints over {} files\n{}",
        bad.len(),
        files.len(),
        bad.iter().take(40).cloned().collect::<Vec<_>>().join("\n")
    );
}
