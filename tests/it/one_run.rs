//! Every verb is the same run: the verdict does not depend on which one asks, and an input that changes is met alike.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rayon::prelude::*;
use rootpage::ctx::{Ctx, Limits, Progress};
use rootpage::error::{Error, Result};
use rootpage::ids::PageNo;
use rootpage::report::export::{RowSink, RowView, TableInfo};
use rootpage::verbs::{self, Inputs, Options};
use rusqlite::Connection;

/// Counts rows and keeps none.
#[derive(Default)]
struct Count(u64);

impl RowSink for Count {
    fn begin_table(&mut self, _: &TableInfo) -> Result<()> {
        Ok(())
    }
    fn row(&mut self, _: &RowView<'_>) -> Result<()> {
        self.0 += 1;
        Ok(())
    }
    fn end_table(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Search indexes, sidecars and foreign keys are what verbs used to differ in.
#[test]
fn the_verdict_is_the_same_whichever_verb_asks() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let of_interest = |name: &str| ["fts", "wal", "journal", "foreign"].iter().any(|part| name.contains(part));
    let cases: Vec<PathBuf> = fs::read_dir(corpus).unwrap().map(|e| e.unwrap().path()).filter(|p| p.join("db.sqlite").exists()).collect();
    let cases: Vec<PathBuf> = cases.into_iter().filter(|p| of_interest(&p.file_name().unwrap().to_string_lossy())).collect();
    assert!(cases.len() > 30, "{}", cases.len());
    cases.par_iter().for_each(|case| {
        let (inputs, options, ctx) = (Inputs::at_path(&case.join("db.sqlite")), Options::default(), Ctx::default());
        let Ok(checked) = verbs::check(&inputs, &options, &ctx) else { return };
        let rows = verbs::rows(&inputs, &options, None, &mut Count::default(), &ctx).unwrap();
        let map = verbs::map(&inputs, &options, &ctx).unwrap();
        for other in [&rows, &map] {
            assert_eq!(
                (other.exit_code, &other.findings, other.hidden_rows),
                (checked.exit_code, &checked.findings, checked.hidden_rows),
                "{case:?}"
            );
        }
        match verbs::page(&inputs, &options, PageNo::ONE, &ctx) {
            Ok(page) => assert_eq!(page.exit_code, checked.exit_code, "{case:?}"),
            Err(error) => assert!(matches!(error, Error::Usage { .. }), "{case:?}: {error}"),
        }
        let diff = verbs::diff(&inputs, &inputs, &options, &[], false, 1, &ctx).unwrap();
        assert_eq!((&diff.a.verdict, &diff.b.verdict), (&checked.verdict, &checked.verdict), "{case:?}");
    });
}

/// Adds a row each time that a phase of this name begins, so many times.
struct Writer {
    db: PathBuf,
    phase: &'static str,
    times: AtomicU32,
    runs: AtomicU32,
}

impl Progress for Writer {
    fn phase(&self, what: &'static str, _: u64) {
        if what == self.phase {
            self.runs.fetch_add(1, Ordering::SeqCst);
            if self.times.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)).is_ok() {
                Connection::open(&self.db).unwrap().execute_batch("INSERT INTO t(body) VALUES('late')").unwrap();
            }
        }
    }
    fn advance(&self, _: u64) {}
    fn finish(&self) {}
}

#[test]
fn a_change_during_rows_is_told_and_one_during_diff_or_page_is_met_by_a_second_run() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (dir.path().join("a.db"), dir.path().join("b.db"));
    for db in [&a, &b] {
        Connection::open(db)
            .unwrap()
            .execute_batch("CREATE TABLE t(id INTEGER PRIMARY KEY, body TEXT); INSERT INTO t(body) VALUES('one');")
            .unwrap();
    }
    let writing = |db: &Path| {
        let (times, runs) = (AtomicU32::new(1), AtomicU32::new(0));
        let writer = Arc::new(Writer { db: db.to_path_buf(), phase: "checking the input once more", times, runs });
        (Arc::clone(&writer), Ctx::new(Limits::default(), writer))
    };
    let (options, inputs) = (Options::default(), Inputs::at_path(&a));
    let (_, ctx) = writing(&b);
    let diff = verbs::diff(&inputs, &Inputs::at_path(&b), &options, &[], false, 9, &ctx).unwrap();
    assert_eq!((diff.tables[0].added, diff.tables[0].rows.len()), (1, 1), "the late row is in the second reading");

    let (writer, ctx) = writing(&a);
    verbs::page(&inputs, &options, PageNo::ONE, &ctx).unwrap();
    assert_eq!(writer.runs.load(Ordering::SeqCst), 2);

    let (writer, ctx) = writing(&a);
    let mut count = Count::default();
    let ended = verbs::rows(&inputs, &options, None, &mut count, &ctx);
    assert!(matches!(ended, Err(Error::Unstable { .. })), "{ended:?}");
    assert_eq!((count.0, writer.runs.load(Ordering::SeqCst)), (2, 1), "what the sink has been given is not given again");
}

/// The threads of a run are those that the limits ask for, and they do not change what it says.
#[test]
fn a_run_has_as_many_threads_as_its_limits_say() {
    struct Threads(AtomicU32);
    impl Progress for Threads {
        fn phase(&self, _: &'static str, _: u64) {
            self.0.fetch_max(u32::try_from(rayon::current_num_threads()).unwrap(), Ordering::SeqCst);
        }
        fn advance(&self, _: u64) {}
        fn finish(&self) {}
    }
    let inputs = Inputs::at_path(&Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/fts-segment-leaf/db.sqlite"));
    let mut told = Vec::new();
    for threads in [1, 3] {
        let mut limits = Limits::default();
        limits.threads = threads;
        let seen = Arc::new(Threads(AtomicU32::new(0)));
        let ctx = Ctx::new(limits, Arc::<Threads>::clone(&seen));
        told.push(verbs::check(&inputs, &Options::default(), &ctx).unwrap());
        assert_eq!(seen.0.load(Ordering::SeqCst), u32::try_from(threads).unwrap());
    }
    assert_eq!(told[0], told[1]);
}
