//! `rootpage check`: verdict and findings.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;

use rootpage::ctx::Ctx;
use rootpage::error::Error;
use rootpage::host::folders;
use rootpage::report::Report;
use rootpage::report::human::{escape, passage, shell};
use rootpage::report::model::{Access, Class, Input, InputRole, Verb};
use rootpage::report::text;
use rootpage::verbs;

use super::io::{Fail, complain, emit, style};
use super::options::{Evidence, Running};

/// Say what is damaged and what that means for the data, most severe first
///
/// Reads every page of the database (and its -wal and -journal), compares every index with its table, and gives one
/// verdict. Changes nothing and writes no file.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rootpage check state.db
  rootpage check --json state.db | jq .verdict
  rootpage check backups/*           the exit code is that of the worst; a -wal beside its
                                     database is read with it, not as a second one
  rootpage check --recursive /srv    one line for every database in a folder
  rootpage check --recursive /srv --jobs 8 --json    a fleet, as JSON lines

Exit codes: 0 healthy, 1 only an index, a search index or bookkeeping, 2 data is
damaged, 3 not a database, 64 wrong arguments, 74 cannot read, 75 the input
changed while it was read, 130 cancelled.")]
pub(super) struct Args {
    /// The database; a -wal alone is read as one, too; folders with --recursive
    #[arg(value_name = "DB", required = true)]
    db: Vec<PathBuf>,
    /// Walk folders: one line for every database in them, JSON lines with --json
    #[arg(long)]
    recursive: bool,
    /// How many databases of a folder are read side by side, each on one thread unless --threads says otherwise
    #[arg(long, value_name = "N", requires = "recursive", default_value = "1")]
    jobs: std::num::NonZeroUsize,
    /// Print the report as JSON (docs/report.md documents it); one document for each DB
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    evidence: Evidence,
    #[command(flatten)]
    running: Running,
}

impl Args {
    pub(super) fn run(self) -> Result<u8, Fail> {
        if self.db.len() > 1 && self.evidence.names_files() {
            return Err(Fail::Usage("--wal, --journal, --shm and --map go with one database; check them one by one".to_owned()));
        }
        if self.recursive {
            let mut running = self.running.clone();
            if self.jobs.get() > 1 {
                // Several runs in one progress bar would tell of none.
                running.quiet = true;
                running.threads = running.threads.or(std::num::NonZeroUsize::new(1));
            }
            return self.walk(&running.ctx()?);
        }
        let ctx = self.running.ctx()?;
        if let Some(folder) = self.db.iter().find(|p| p.is_dir()) {
            let shown = shell(&folder.to_string_lossy());
            let what = format!("it is a folder; rootpage check --recursive {shown} walks it");
            let source = std::io::Error::new(std::io::ErrorKind::IsADirectory, what);
            return Err(Fail::Tool(Error::io(folder, "read", source)));
        }
        let mut worst = 0;
        // A name that a shell gave beside its database is its sidecar.
        let named = if self.db.len() > 1 { folders::without_sidecars(&self.db) } else { self.db.clone() };
        for (i, db) in named.iter().enumerate() {
            let code = match self.one(db, i > 0, &ctx) {
                Ok(code) => code,
                // The other paths still deserve an answer, unless nobody is there to read it.
                Err(fail @ (Fail::Tool(Error::Cancelled) | Fail::Pipe | Fail::Output(_))) => return Err(fail),
                Err(fail) => {
                    if self.json {
                        emit(&not_read(db, &fail).to_json())?;
                    }
                    complain(&fail)
                }
            };
            worst = worst.max(code);
        }
        Ok(worst)
    }

    /// One line for each database below the paths that were given.
    fn walk(&self, ctx: &Ctx) -> Result<u8, Fail> {
        if self.evidence.names_files() {
            return Err(Fail::Usage("--wal, --journal, --shm and --map go with one database; check them one by one".to_owned()));
        }
        let found = folders::stores(&self.db, ctx)?;
        for path in &found.unread {
            emit(&if self.json { String::new() } else { format!("{}: cannot be read\n", escape(&path.to_string_lossy())) })?;
        }
        let mut worst = if found.unread.is_empty() { 0 } else { 74 };
        in_order(
            &found.stores,
            self.jobs.get(),
            |db| self.of_store(db, ctx),
            |db, report| {
                let report = report?;
                worst = worst.max(report.exit_code);
                if self.json {
                    let mut line = serde_json::to_string(&report).unwrap_or_default();
                    line.push('\n');
                    emit(&line)
                } else {
                    let (path, said) = (escape(&db.to_string_lossy()), passage(&report.verdict.sentence));
                    emit(&format!("{path}: {} (exit {}). {said}\n", report.verdict.class.word(), report.exit_code))
                }
            },
        )?;
        if found.stores.is_empty() && !self.json {
            emit("no database was found\n")?;
        }
        Ok(worst)
    }

    /// The report of one database of a folder; what cannot be read has one, too.
    fn of_store(&self, db: &Path, ctx: &Ctx) -> Result<Report, Fail> {
        match verbs::check(&self.evidence.inputs(db), &self.running.options(), ctx) {
            Ok(report) => Ok(report),
            Err(Error::NotADatabase { what, .. }) => Ok(not_a_database(Verb::Check, db, what)),
            Err(error @ Error::Cancelled) => Err(error.into()),
            Err(error) => Ok(not_read(db, &error.into())),
        }
    }

    fn one(&self, db: &Path, gap: bool, ctx: &Ctx) -> Result<u8, Fail> {
        let inputs = self.evidence.inputs(db);
        let report = match verbs::check(&inputs, &self.running.options(), ctx) {
            Ok(report) => report,
            Err(Error::NotADatabase { what, .. }) if self.json => not_a_database(Verb::Check, db, what),
            Err(error) => return Err(error.into()),
        };
        if self.json {
            emit(&report.to_json())?;
        } else {
            let text = text::render(&report, &style());
            emit(&if gap { format!("\n{text}") } else { text })?;
        }
        Ok(report.exit_code)
    }
}

/// Works on paths with several threads, and hands on what came out in the order of the paths.
fn in_order<T: Send>(
    paths: &[PathBuf],
    jobs: usize,
    work: impl Fn(&Path) -> T + Sync,
    mut done: impl FnMut(&Path, T) -> Result<(), Fail>,
) -> Result<(), Fail> {
    let next = AtomicUsize::new(0);
    // A full channel holds the workers back while an early path takes its time.
    let (send, results) = sync_channel(jobs);
    std::thread::scope(|scope| {
        for _ in 0..jobs.min(paths.len()) {
            let (send, next, work) = (send.clone(), &next, &work);
            scope.spawn(move || {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    let Some(path) = paths.get(i) else { break };
                    if send.send((i, work(path))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(send);
        let mut waiting = BTreeMap::new();
        let mut shown = 0_usize;
        // Leaving this loop drops the receiver, and the workers end with what they have in hand.
        for (i, result) in results {
            waiting.insert(i, result);
            while let Some(result) = waiting.remove(&shown) {
                if let Some(path) = paths.get(shown) {
                    done(path, result)?;
                }
                shown = shown.saturating_add(1);
            }
        }
        Ok(())
    })
}

/// The report of a file that is no database, for `--json`.
pub(super) fn not_a_database(verb: Verb, path: &Path, what: String) -> Report {
    let mut report = Report::new(verb);
    report.inputs.push(named(path));
    report.verdict.class = Class::NotADatabase;
    report.verdict.sentence = what;
    report.seal();
    report
}

/// The report of a path of which nothing can be said, for `--json`: the error, and the exit code that goes with it.
fn not_read(path: &Path, fail: &Fail) -> Report {
    let mut report = not_a_database(Verb::Check, path, fail.to_string());
    report.error = Some(fail.to_string());
    report.exit_code = fail.code();
    report
}

/// An input of which only the name and the size are known.
fn named(path: &Path) -> Input {
    Input {
        path: path.display().to_string(),
        role: InputRole::Main,
        bytes: std::fs::metadata(path).map_or(0, |m| m.len()),
        sha256_before: None,
        sha256_after: None,
        access: Access::Snapshot,
        unreadable: Vec::new(),
    }
}
