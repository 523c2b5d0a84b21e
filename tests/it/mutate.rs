//! Damage that nobody aimed: seeded bit flips, zeroed and exchanged pages, cuts, over generated databases and the corpus.
//! Nothing may panic, hang, change an input, unbalance the ledger, or give a copy that SQLite refuses.
//!
//! `SEED=n` and `ROUNDS=n` in the environment widen the search.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use rayon::prelude::*;
use rootpage::ctx::{Ctx, Limits, Silent};
use rootpage::error::{Error, Result};
use rootpage::report::Report;
use rootpage::report::export::{RowSink, RowView, TableInfo};
use rootpage::verbs::{self, Inputs, Options};
use rusqlite::Connection;

use crate::dbgen;
use crate::judge;
use crate::rng::Rng;

/// A guard against hanging, not a measurement.
const GUARD: Duration = Duration::from_secs(60);

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

/// Reads every row and keeps none.
struct Drain;

impl RowSink for Drain {
    fn begin_table(&mut self, _: &TableInfo) -> Result<()> {
        Ok(())
    }
    fn row(&mut self, _: &RowView<'_>) -> Result<()> {
        Ok(())
    }
    fn end_table(&mut self) -> Result<()> {
        Ok(())
    }
}

/// One to four damages.
fn damage(data: &mut Vec<u8>, rng: &mut Rng) -> String {
    let page = if data.len() > 17 { usize::from(data[16]) << 8 | usize::from(data[17]) } else { 0 };
    let page = if page.is_power_of_two() && page >= 512 { page } else { 1024 };
    let mut told = Vec::new();
    for _ in 0..1 + rng.below(4) {
        let len = data.len();
        if len < 64 {
            break;
        }
        let pages = len.div_ceil(page);
        let start = rng.below(pages) * page;
        let end = (start + page).min(len);
        match rng.below(10) {
            0..3 => {
                let (at, bit) = (rng.below(len), rng.below(8));
                data[at] ^= 1 << bit;
                told.push(format!("flip {at}.{bit}"));
            }
            // Where structure is: the b-tree header and the pointers of a page.
            3..5 => {
                let at = (start + if start == 0 { 100 } else { 0 } + rng.below(24)).min(len - 1);
                data[at] = rng.bits() as u8;
                told.push(format!("byte {at}"));
            }
            5 => {
                data[start..end].fill(0);
                told.push(format!("zero page at {start}"));
            }
            6 => {
                let (from, to) = (start + rng.below(end - start), end);
                let junk = rng.bytes(to - from);
                data[from..to].copy_from_slice(&junk);
                told.push(format!("junk {from}..{to}"));
            }
            7 => {
                let other = rng.below(pages) * page;
                let n = (end - start).min(len - other);
                data.copy_within(other..other + n, start);
                told.push(format!("page at {other} over {start}"));
            }
            8 => {
                // A number that a structure may take for a page, a count, a length.
                let at = rng.below(len - 4);
                let n = *rng.pick(&[0_u32, 1, 2, 0xffff_ffff, 0x7fff_ffff, 0x8000_0000, 200, 0x0100_0000]);
                data[at..at + 4].copy_from_slice(&n.to_be_bytes());
                told.push(format!("u32 {n} at {at}"));
            }
            _ => {
                let keep = len - rng.below(len / 2 + 1);
                data.truncate(keep);
                told.push(format!("cut to {keep}"));
            }
        }
    }
    told.join(", ")
}

fn balanced(what: &str, report: &Report) -> std::result::Result<(), String> {
    report.balance().map_err(|e| format!("the ledger of {what} does not balance: {e}"))
}

/// All verbs over a damaged file.
fn trial(db: &Path, out: &Path) -> std::result::Result<(), String> {
    let ctx = Ctx::new(Limits::default(), std::sync::Arc::new(Silent));
    let (inputs, options) = (Inputs::at_path(db), Options::default());
    let before = fs::read(db).unwrap();
    let tolerate = |what: &str, e: Error| match e {
        Error::NotADatabase { .. } => Ok(()),
        e => Err(format!("{what}: {e}")),
    };
    match verbs::check(&inputs, &options, &ctx) {
        Ok(report) => balanced("check", &report)?,
        Err(e) => tolerate("check", e)?,
    }
    match verbs::rows(&inputs, &options, None, &mut Drain, &ctx) {
        Ok(_) => {}
        Err(e) => tolerate("rows", e)?,
    }
    match verbs::recover(&inputs, &options, out, &ctx) {
        Ok(report) => {
            balanced("recover", &report)?;
            if report.exit_code < 3 {
                let con = Connection::open(out).map_err(|e| e.to_string())?;
                judge::extend(&con).map_err(|e| e.to_string())?;
                let said = judge::complaints(&con);
                if !said.is_empty() {
                    return Err(format!("SQLite refuses the copy: {}", said.join("; ")));
                }
                judge::tables(&con).map_err(|e| format!("the copy: {e}"))?;
            }
        }
        Err(e) => tolerate("recover", e)?,
    }
    if fs::read(db).unwrap() != before { Err("the input was changed".to_owned()) } else { Ok(()) }
}

/// Runs a trial in a thread of its own; a hang or a panic is a failure with the file kept.
fn guarded(name: &str, told: &str, data: &[u8], sidecars: &[(String, Vec<u8>)]) -> std::result::Result<(), String> {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db.sqlite");
    fs::write(&db, data).unwrap();
    for (file, data) in sidecars {
        fs::write(dir.path().join(file), data).unwrap();
    }
    let (send, receive) = mpsc::channel();
    let (db2, out) = (db, dir.path().join("out.db"));
    std::thread::spawn(move || {
        let outcome = catch_unwind(AssertUnwindSafe(|| trial(&db2, &out))).unwrap_or_else(|p| {
            Err(format!(
                "panic: {}",
                p.downcast_ref::<String>().cloned().or_else(|| p.downcast_ref::<&str>().map(|s| (*s).to_owned())).unwrap_or_default()
            ))
        });
        let _ = send.send(outcome);
    });
    let outcome = receive.recv_timeout(GUARD).unwrap_or_else(|_| Err(format!("not done in {} s", GUARD.as_secs())));
    outcome.map_err(|e| {
        let kept = std::env::temp_dir().join("rootpage-mutate");
        fs::create_dir_all(&kept).unwrap();
        let file = kept.join(format!("{}.sqlite", name.replace(['/', ' '], "-")));
        fs::write(&file, data).unwrap();
        for (side, data) in sidecars {
            fs::write(file.with_file_name(side.replace("db", &file.file_stem().unwrap().to_string_lossy())), data).unwrap();
        }
        format!("- {name} [{told}]: {e}\n    kept as {}", file.display())
    })
}

/// A name, a database, and its sidecars by file name.
type Subject = (String, Vec<u8>, Vec<(String, Vec<u8>)>);

/// Databases to damage: small ones of every kind, and the corpus.
fn subjects() -> Vec<Subject> {
    let mut out = Vec::new();
    let dir = tempfile::tempdir().unwrap();
    for recipe in dbgen::recipes().into_iter().filter(|r| r.page_size <= 2048 && (r.parts.len() < 6 || r.page_size == 1024)) {
        let db = dir.path().join("db");
        let _ = fs::remove_file(&db);
        dbgen::build(&db, &recipe).unwrap();
        out.push((recipe.name, fs::read(&db).unwrap(), Vec::new()));
    }
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let mut cases: Vec<PathBuf> =
        fs::read_dir(corpus).unwrap().map(|e| e.unwrap().path()).filter(|p| p.join("db.sqlite").exists()).collect();
    cases.sort();
    for case in cases {
        let side =
            ["db.sqlite-wal", "db.sqlite-journal"].into_iter().filter_map(|f| Some((f.to_owned(), fs::read(case.join(f)).ok()?))).collect();
        out.push((case.file_name().unwrap().to_string_lossy().into_owned(), fs::read(case.join("db.sqlite")).unwrap(), side));
    }
    out
}

#[test]
fn nothing_panics_hangs_or_gives_a_bad_copy() {
    let (seed, rounds) = (number("SEED", 1), number("ROUNDS", 2));
    let only = std::env::var("ONLY").unwrap_or_default();
    let subjects: Vec<_> = subjects().into_iter().filter(|s| s.0.contains(&only)).collect();
    let many = AtomicBool::new(false);
    let trials: Vec<_> = (0..rounds).flat_map(|round| subjects.iter().map(move |s| (round, s))).collect();
    let one = |(round, (subject, healthy, sidecars)): (u64, &Subject)| {
        if many.load(Ordering::Relaxed) {
            return None;
        }
        let name = format!("{subject}/{seed}/{round}");
        let mut rng = Rng::new(&name);
        let (mut data, mut sidecars) = (healthy.clone(), sidecars.clone());
        let mut told = damage(&mut data, &mut rng);
        // Half of the time the log is damaged too.
        for (file, side) in &mut sidecars {
            if rng.one_in(2) && !side.is_empty() {
                let at = rng.below(side.len());
                side[at] ^= 1 << rng.below(8);
                told.push_str(&format!(", flip {at} of {file}"));
            }
        }
        guarded(&name, &told, &data, &sidecars).err()
    };
    // A pool of its own: these threads wait for trials, which need the threads of the common pool.
    let pool = rayon::ThreadPoolBuilder::new().build().unwrap();
    let failures: Vec<String> = pool.install(|| trials.into_par_iter().filter_map(one).collect());
    assert!(failures.is_empty(), "{} trials fail\n{}", failures.len(), failures.iter().take(20).cloned().collect::<Vec<_>>().join("\n"));
}
