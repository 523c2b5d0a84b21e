//! Inputs that change while they are read: one more run from the start, and no verdict when they change again.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rootpage::ctx::{Ctx, Limits, Progress};
use rootpage::error::Error;
use rootpage::verbs::{self, Inputs, Options};
use rusqlite::Connection;

/// Another process, as it were: adds a row each time that an input is about to be read for the last time.
struct Writer {
    db: PathBuf,
    times: AtomicU32,
    runs: AtomicU32,
}

impl Progress for Writer {
    fn phase(&self, what: &'static str, _: u64) {
        if what == "checking the input once more" {
            self.runs.fetch_add(1, Ordering::SeqCst);
            if self.times.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)).is_ok() {
                Connection::open(&self.db).unwrap().execute_batch("INSERT INTO t(body) VALUES('late')").unwrap();
            }
        }
    }
    fn advance(&self, _: u64) {}
    fn finish(&self) {}
}

fn made(dir: &Path) -> PathBuf {
    let db = dir.join("in.db");
    let sql = "CREATE TABLE t(id INTEGER PRIMARY KEY, body TEXT); INSERT INTO t(body) VALUES('one'),('two'),('three');";
    Connection::open(&db).unwrap().execute_batch(sql).unwrap();
    db
}

fn writing(db: &Path, times: u32) -> (Arc<Writer>, Ctx) {
    let writer = Arc::new(Writer { db: db.to_path_buf(), times: AtomicU32::new(times), runs: AtomicU32::new(0) });
    let ctx = Ctx::new(Limits::default(), Arc::<Writer>::clone(&writer));
    (writer, ctx)
}

fn names(dir: &Path) -> Vec<String> {
    let mut out: Vec<String> = fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    out.sort();
    out
}

#[test]
fn a_change_under_the_run_is_met_by_a_second_run() {
    let dir = tempfile::tempdir().unwrap();
    let db = made(dir.path());
    let (writer, ctx) = writing(&db, 1);
    let report = verbs::check(&Inputs::at_path(&db), &Options::default(), &ctx).unwrap();
    assert_eq!((report.exit_code, writer.runs.load(Ordering::SeqCst)), (0, 2));

    let (writer, ctx) = writing(&db, 1);
    let out = dir.path().join("out.db");
    verbs::recover(&Inputs::at_path(&db), &Options::default(), &out, &ctx).unwrap();
    assert_eq!(writer.runs.load(Ordering::SeqCst), 2);
    let rows: i64 = Connection::open(&out).unwrap().query_row("SELECT count(*) FROM t", [], |r| r.get(0)).unwrap();
    assert_eq!(rows, 5, "both late rows: the copy is of the second reading");
    assert_eq!(names(dir.path()), ["in.db", "out.db", "out.db.report.html", "out.db.report.json"]);
}

#[test]
fn what_changes_twice_gets_no_verdict_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let db = made(dir.path());
    let inputs = Inputs::at_path(&db);
    for verb in ["check", "recover", "map"] {
        let (writer, ctx) = writing(&db, 2);
        let out = dir.path().join("out.db");
        let outcome = match verb {
            "check" => verbs::check(&inputs, &Options::default(), &ctx),
            "recover" => verbs::recover(&inputs, &Options::default(), &out, &ctx),
            _ => verbs::map(&inputs, &Options::default(), &ctx),
        };
        assert!(matches!(&outcome, Err(Error::Unstable { path, .. }) if *path == db), "{verb}: {outcome:?}");
        assert_eq!((verb, writer.runs.load(Ordering::SeqCst)), (verb, 2));
        assert_eq!(names(dir.path()), ["in.db"], "{verb}");
    }
}
