//! The library calls behind the verbs: run the layers in order, return a report.

mod copy;
pub mod corpus;
mod describe;
mod diff;
mod evidence;
mod ledger;
mod nameless;
mod page;
mod recover;
mod rows;
mod salvage;
mod schema_source;
mod search_index;

use std::path::{Path, PathBuf};

use crate::ctx::Ctx;
use crate::error::{Error, Result};
use crate::ids::PageNo;
use crate::pipeline::evidence::Viewed;
use crate::report::Report;
use crate::report::diff::{Diff, DiffSide};
use crate::report::export::RowSink;
use crate::report::model::Verb;
use crate::report::page::PageView;
use crate::survey::Survey;

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
    /// Tables whose deleted rows are put back into the copy.
    pub include_deleted: Vec<String>,
    /// Merge the branches of a forked WAL.
    pub merge_branches: bool,
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

fn not_built<T>() -> Result<T> {
    Err(Error::Usage { what: "not built yet".to_owned() })
}

/// Verdict and findings.
///
/// # Errors
/// What the tool cannot do; damage is never an error.
pub fn check(inputs: &Inputs, options: &Options, ctx: &Ctx) -> Result<Report> {
    let evidence = evidence::open(inputs, options, None, ctx)?;
    let viewed = Viewed::new(&evidence, &inputs.db, ctx)?;
    let mut survey = viewed.survey(inputs, ctx)?;
    search_index::check(&mut survey, options.keep_violations, ctx)?;
    viewed.recheck(options, ctx)?;
    let mut report = reported(Verb::Check, &viewed, &survey, ctx)?;
    if options.redact {
        report.redact();
    }
    Ok(report)
}

fn reported(verb: Verb, viewed: &Viewed<'_>, survey: &Survey<'_>, ctx: &Ctx) -> Result<Report> {
    let mut report = Report::new(verb);
    viewed.describe(survey, &mut report, ctx)?;
    describe::survey(survey, &mut report);
    report.seal();
    Ok(report)
}

/// Writes the clean copy to `out` and, beside it, the salvage database, `finish.sql` and both reports.
///
/// # Errors
/// What the tool cannot do; nothing is left half-written.
pub fn recover(inputs: &Inputs, options: &Options, out: &Path, ctx: &Ctx) -> Result<Report> {
    recover::run(inputs, options, out, ctx)
}

/// Streams the live rows of one table, or of all.
///
/// # Errors
/// What the tool cannot do, an unknown table, and whatever the sink returns.
pub fn rows(inputs: &Inputs, options: &Options, table: Option<&str>, sink: &mut dyn RowSink, ctx: &Ctx) -> Result<Report> {
    let evidence = evidence::open(inputs, options, None, ctx)?;
    let viewed = Viewed::new(&evidence, &inputs.db, ctx)?;
    let survey = viewed.survey(inputs, ctx)?;
    rows::stream(&survey, table, options.keep_violations, sink, ctx)?;
    viewed.recheck(options, ctx)?;
    reported(Verb::Rows, &viewed, &survey, ctx)
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
    let side = |viewed: &Viewed<'_>, survey: &Survey<'_>| {
        let report = reported(Verb::Rows, viewed, survey, ctx)?;
        Ok::<_, Error>(DiffSide { inputs: report.inputs, snapshot: report.snapshot, verdict: report.verdict })
    };
    let mut diff = Diff { a: side(&viewed_a, &survey_a)?, b: side(&viewed_b, &survey_b)?, ..found };
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
    let evidence = evidence::open(inputs, options, None, ctx)?;
    let viewed = Viewed::new(&evidence, &inputs.db, ctx)?;
    let survey = viewed.survey(inputs, ctx)?;
    let view = page::view(&survey, page, viewed.view.geometry.offset(page))?;
    viewed.recheck(options, ctx)?;
    Ok(view)
}

/// A role and an owner for every page: a report whose map is filled.
///
/// # Errors
/// What the tool cannot do.
pub fn map(inputs: &Inputs, options: &Options, ctx: &Ctx) -> Result<Report> {
    let evidence = evidence::open(inputs, options, None, ctx)?;
    let viewed = Viewed::new(&evidence, &inputs.db, ctx)?;
    let survey = viewed.survey(inputs, ctx)?;
    viewed.recheck(options, ctx)?;
    reported(Verb::Map, &viewed, &survey, ctx)
}

/// Deleted and old rows with provenance, written to a salvage database at `out`.
///
/// # Errors
/// What the tool cannot do.
pub fn carve(_inputs: &Inputs, _options: &Options, _out: &Path, _ctx: &Ctx) -> Result<Report> {
    not_built()
}
