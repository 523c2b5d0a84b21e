//! The library calls behind the verbs: run the layers in order, return a report.

mod carve;
pub mod corpus;
mod describe;
mod diff;
mod evidence;
pub(crate) mod hidden;
mod history;
mod page;
mod page_map;
mod recover;
pub mod restore;
mod rows;
mod schema_source;

pub use carve::{carve, carve_rows};

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::ctx::Ctx;
use crate::error::{Error, Result};
use crate::evidence::Evidence;
use crate::ids::{ObjectId, PageNo};
use crate::recover::{Selection, foreign, search_index};
use crate::report::Report;
use crate::report::diff::{Diff, DiffSide};
use crate::report::export::RowSink;
use crate::report::human::shell;
use crate::report::model::Verb;
use crate::report::page::PageView;
use crate::survey::{Content, Survey};
use crate::verbs::evidence::Viewed;

pub use self::history::{generations as history_of_files, history};

/// Which files are the evidence and which version of them is read.
#[derive(Debug, Clone, Default)]
pub struct Inputs {
    /// The database file, or a WAL alone.
    pub db: PathBuf,
    /// Write-ahead logs named by the caller, several captures of one log in the order given; none: the one beside `db`.
    pub wal: Vec<PathBuf>,
    /// The rollback journal named by the caller; none: the one beside `db`.
    pub journal: Option<PathBuf>,
    /// The shared memory of the WAL named by the caller; none: the one beside `db`.
    pub shm: Option<PathBuf>,
    /// Read no WAL.
    pub no_wal: bool,
    /// Read no journal.
    pub no_journal: bool,
    /// Where the database begins in the file, in bytes.
    pub offset: u64,
    /// The snapshot to read; none: the one that SQLite would show.
    pub at: Option<Snapshot>,
    /// Settles a rollback that depends on a super-journal.
    pub super_journal: Option<SuperJournal>,
    /// A healthy database or SQL text that gives the schema when it is lost.
    pub schema: Option<PathBuf>,
    /// A page map that overrules the survey.
    pub map: Option<PathBuf>,
}

impl Inputs {
    /// The options that name this evidence, ready for a POSIX shell, so that the next command reads the same.
    #[must_use]
    pub fn again(&self) -> String {
        let mut words = Vec::new();
        let mut path = |name: &str, value: &Path| words.push(format!("{name} {}", shell(&value.to_string_lossy())));
        for wal in &self.wal {
            path("--wal", wal);
        }
        for (name, value) in [("--journal", &self.journal), ("--shm", &self.shm), ("--schema", &self.schema), ("--map", &self.map)] {
            if let Some(value) = value {
                path(name, value);
            }
        }
        if self.no_wal {
            words.push("--no-wal".to_owned());
        }
        if self.no_journal {
            words.push("--no-journal".to_owned());
        }
        match &self.at {
            Some(Snapshot::Commit(n)) => words.push(format!("--at commit:{n}")),
            Some(Snapshot::Frame(n)) => words.push(format!("--at frame:{n}")),
            Some(Snapshot::Branch(name)) => words.push(shell(&format!("--at=branch:{name}"))),
            None => {}
        }
        if self.offset > 0 {
            words.push(format!("--offset {}", self.offset));
        }
        match self.super_journal {
            Some(SuperJournal::Present) => words.push("--super-journal present".to_owned()),
            Some(SuperJournal::Absent) => words.push("--super-journal absent".to_owned()),
            None => {}
        }
        words.join(" ")
    }

    /// The command that makes the report of a verb again. `recover` finds its outputs there, so it is told to move them.
    fn command(&self, verb: Verb, options: &Options, out: Option<&Path>) -> String {
        let mut words = vec!["rootpage".to_owned(), verb.word().to_owned(), shell(&self.db.to_string_lossy()), self.again()];
        if let Some(out) = out {
            words.push(format!("-o {} --force", shell(&out.to_string_lossy())));
        }
        for (name, is_set) in [
            ("--keep-violations", options.keep_violations),
            ("--keep-wal", options.keep_wal),
            ("--redact", options.redact),
            ("--no-mmap", options.no_mmap),
        ] {
            if is_set {
                words.push(name.to_owned());
            }
        }
        words.retain(|w| !w.is_empty());
        words.join(" ")
    }

    /// The evidence at a path, sidecars as they lie beside it.
    #[must_use]
    pub fn at_path(db: &Path) -> Inputs {
        Inputs { db: db.to_path_buf(), ..Inputs::default() }
    }
}

/// A version of the database.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Snapshot {
    /// After this commit of the WAL, from 1; 0 is the main file alone.
    Commit(u32),
    /// After this frame, which should end a transaction.
    Frame(u32),
    /// At the head of a branch that `history` names.
    Branch(String),
}

/// Whether the super-journal that a rollback journal names is taken as there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SuperJournal {
    /// It is there: the transaction is rolled back.
    Present,
    /// It is gone: the transaction was committed.
    Absent,
}

/// How a run behaves.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Options {
    /// Keep rows live that break their table's declaration.
    pub keep_violations: bool,
    /// Leave the copy in WAL mode when the evidence was.
    pub keep_wal: bool,
    /// Move existing outputs aside.
    pub force: bool,
    /// Read by plain reads, map nothing.
    pub no_mmap: bool,
    /// Replace values of the evidence in reports by their class and length.
    pub redact: bool,
    /// Take no SHA-256 of the inputs (for measuring).
    pub no_hash: bool,
}

/// Runs a verb, and once more from the start when an input changed under it. What changes twice is under way, and no
/// verdict about it would hold.
fn steady<T>(ctx: &Ctx, mut verb: impl FnMut() -> Result<T>) -> Result<T> {
    match verb() {
        Err(Error::Unstable { .. }) => {
            ctx.progress.phase("an input changed: once more from the start", 0);
            ctx.progress.finish();
            verb()
        }
        other => other,
    }
}

/// Verdict and findings.
///
/// # Errors
/// What the tool cannot do; damage is never an error. [`Error::Unstable`] when an input changes during the run, twice.
pub fn check(inputs: &Inputs, options: &Options, ctx: &Ctx) -> Result<Report> {
    steady(ctx, || check_once(inputs, options, ctx))
}

fn check_once(inputs: &Inputs, options: &Options, ctx: &Ctx) -> Result<Report> {
    let evidence = evidence::open(inputs, options, None, ctx)?;
    evidence::settled(&evidence, checked(&evidence, inputs, options, ctx), ctx)
}

fn checked(evidence: &Evidence, inputs: &Inputs, options: &Options, ctx: &Ctx) -> Result<Report> {
    let viewed = Viewed::new(evidence, &inputs.db, ctx)?;
    let mut survey = viewed.survey(inputs, ctx)?;
    search_index::check(&mut survey, options.keep_violations, ctx)?;
    let foreign = foreign::check(&survey, &selections(&survey, options.keep_violations), ctx)?;
    survey.findings.merge(foreign.log);
    let others = hidden::find(&viewed, &survey, options.keep_violations, ctx)?;
    viewed.recheck(options, ctx)?;
    let mut report = reported(Verb::Check, inputs, options, &viewed, &survey, &others);
    if options.redact {
        report.redact();
    }
    Ok(report)
}

/// Which rows of each table are live as far as the survey alone says it.
fn selections(survey: &Survey<'_>, keep_violations: bool) -> BTreeMap<ObjectId, Selection> {
    let tables = survey.trees.iter().filter_map(|t| match &t.content {
        Some(Content::Table { scan, .. }) => Some((t.object, Selection::of(scan, keep_violations))),
        _ => None,
    });
    tables.collect()
}

fn reported(
    verb: Verb,
    inputs: &Inputs,
    options: &Options,
    viewed: &Viewed<'_>,
    survey: &Survey<'_>,
    others: &[hidden::Other<'_>],
) -> Report {
    let mut report = Report::new(verb);
    (report.evidence_options, report.command) = (inputs.again(), inputs.command(verb, options, None));
    viewed.describe(survey, others, &mut report);
    describe::survey(survey, &mut report);
    report.seal();
    report
}

/// Writes the clean copy to `out` and, beside it, the salvage database, `finish.sql` and both reports.
///
/// # Errors
/// What the tool cannot do; nothing is left half-written. [`Error::Unstable`] when an input changes during the run, twice.
pub fn recover(inputs: &Inputs, options: &Options, out: &Path, ctx: &Ctx) -> Result<Report> {
    steady(ctx, || recover::run(inputs, options, out, ctx))
}

/// Streams the live rows of one table, or of all.
///
/// # Errors
/// What the tool cannot do, an unknown table, and whatever the sink returns. [`Error::Unstable`] when an input changed:
/// what the sink has been given cannot be taken back, so that there is no second run.
pub fn rows(inputs: &Inputs, options: &Options, table: Option<&str>, sink: &mut dyn RowSink, ctx: &Ctx) -> Result<Report> {
    let evidence = evidence::open(inputs, options, None, ctx)?;
    let viewed = Viewed::new(&evidence, &inputs.db, ctx)?;
    let survey = viewed.survey(inputs, ctx)?;
    rows::stream(&survey, table, options.keep_violations, sink, ctx)?;
    viewed.recheck(options, ctx)?;
    Ok(reported(Verb::Rows, inputs, options, &viewed, &survey, &[]))
}

/// How two databases differ, row by row. `tables` names those to compare (none: all but the inner tables of search
/// indexes); at most `limit` rows a table are listed, all are counted. With `by_primary_key` rows are paired by the primary
/// key that their table declares, also where it has rowids.
///
/// # Errors
/// What the tool cannot do, and a table that neither has.
pub fn diff(a: &Inputs, b: &Inputs, options: &Options, tables: &[String], by_primary_key: bool, limit: u64, ctx: &Ctx) -> Result<Diff> {
    let (evidence_a, evidence_b) = (evidence::open(a, options, None, ctx)?, evidence::open(b, options, None, ctx)?);
    let (viewed_a, viewed_b) = (Viewed::new(&evidence_a, &a.db, ctx)?, Viewed::new(&evidence_b, &b.db, ctx)?);
    let (survey_a, survey_b) = (viewed_a.survey(a, ctx)?, viewed_b.survey(b, ctx)?);
    let wanted = diff::Wanted { tables, by_primary_key, limit, keep_violations: options.keep_violations };
    let found = diff::compare(&survey_a, &survey_b, &wanted, ctx)?;
    viewed_a.recheck(options, ctx)?;
    viewed_b.recheck(options, ctx)?;
    let side = |inputs: &Inputs, viewed: &Viewed<'_>, survey: &Survey<'_>| {
        let report = reported(Verb::Rows, inputs, options, viewed, survey, &[]);
        DiffSide { inputs: report.inputs, snapshot: report.snapshot, verdict: report.verdict }
    };
    let mut diff = Diff { a: side(a, &viewed_a, &survey_a), b: side(b, &viewed_b, &survey_b), ..found };
    diff.seal();
    if options.redact {
        diff.redact();
    }
    Ok(diff)
}

/// One page explained.
///
/// # Errors
/// What the tool cannot do, and a page outside the database.
pub fn page(inputs: &Inputs, options: &Options, page: PageNo, ctx: &Ctx) -> Result<PageView> {
    steady(ctx, || {
        let evidence = evidence::open(inputs, options, None, ctx)?;
        let viewed = Viewed::new(&evidence, &inputs.db, ctx)?;
        let survey = viewed.survey(inputs, ctx)?;
        let view = page::view(&survey, page, viewed.view.geometry.offset(page))?;
        viewed.recheck(options, ctx)?;
        Ok(view)
    })
}

/// A role and an owner for every page: a report whose map is filled.
///
/// # Errors
/// What the tool cannot do.
pub fn map(inputs: &Inputs, options: &Options, ctx: &Ctx) -> Result<Report> {
    steady(ctx, || {
        let evidence = evidence::open(inputs, options, None, ctx)?;
        let viewed = Viewed::new(&evidence, &inputs.db, ctx)?;
        let survey = viewed.survey(inputs, ctx)?;
        viewed.recheck(options, ctx)?;
        Ok(reported(Verb::Map, inputs, options, &viewed, &survey, &[]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_reads_the_same_evidence_again() {
        let inputs = Inputs {
            wal: vec!["my wal".into()],
            no_journal: true,
            at: Some(Snapshot::Branch("a b".to_owned())),
            offset: 512,
            map: Some("x.map".into()),
            ..Inputs::at_path(Path::new("it's.db"))
        };
        let evidence = "--wal 'my wal' --map x.map --no-journal '--at=branch:a b' --offset 512";
        assert_eq!(inputs.again(), evidence);
        let options = Options { keep_wal: true, ..Options::default() };
        let command = inputs.command(Verb::Recover, &options, Some(Path::new("out.db")));
        assert_eq!(command, format!(r"rootpage recover 'it'\''s.db' {evidence} -o out.db --force --keep-wal"));
    }
}
