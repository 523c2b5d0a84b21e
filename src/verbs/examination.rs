//! One run over one database: opened, surveyed, and at its end proved to be what it was at its beginning.
//!
//! # How a verb uses it
//!
//! ```text
//! pub fn map(inputs: &Inputs, options: &Options, ctx: &Ctx) -> Result<Report> {
//!     examine(inputs, options, ctx, |e| {
//!         e.complete()?;             // search indexes, foreign keys, hidden commits: the findings of `check`
//!         e.sealed(Verb::Map)        // asks whether the inputs are still the same, then describes them
//!     })
//! }
//! ```
//!
//! - [`examine`] is the whole frame: worker threads, opening, geometry, survey, the last look at the inputs, and a second run
//!   from the start when an input changed under the first. What the function returns is given to the caller only when the
//!   inputs held; it therefore puts nothing in place before [`Examination::settle`] or one of the reports.
//! - Two databases, or a folder for private snapshots: [`steady`] around one [`once`] in the other (`diff`, `restore`).
//! - A verb that gives rows away before the end says so to [`steady`]: there is no second run after the first row (`rows`).
//! - [`Examination::complete`] makes the verdict that of `check`. Every verb whose exit code is the verdict calls it. A verb that
//!   decides about rows itself takes the steps one by one, as `recover` does: [`Examination::search_indexes`],
//!   [`Examination::hide`].
//! - [`Examination::survey`] is what stands in the database, [`Examination::viewed`] where it came from.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::ctx::Ctx;
use crate::error::{Error, Result};
use crate::ids::ObjectId;
use crate::recover::rtree;
use crate::recover::search_index::{self, SearchIndex};
use crate::recover::{Selection, foreign};
use crate::report::Report;
use crate::report::model::Verb;
use crate::survey::{Content, Survey};
use crate::verbs::evidence::{self, Viewed};
use crate::verbs::hidden::{self, Other};
use crate::verbs::{Inputs, Options, describe};

/// Stack of a worker thread in bytes: what the first thread of a program has on the systems that we run on.
const STACK: usize = 8 << 20;

/// A database that is open and surveyed.
#[derive(Debug)]
pub(crate) struct Examination<'v> {
    /// The state that is read, and the files that it comes from.
    pub(crate) viewed: &'v Viewed<'v>,
    /// What stands in it. Findings of later steps are added here.
    pub(crate) survey: Survey<'v>,
    /// Other states with rows that this one does not have; filled by [`Examination::hide`].
    pub(crate) others: Vec<Other<'v>>,
    inputs: &'v Inputs,
    options: &'v Options,
    ctx: &'v Ctx,
}

/// Runs a verb over one database.
///
/// # Errors
/// Those of the verb; what opening and surveying says; [`Error::Unstable`] when an input changes during the run, twice.
pub(crate) fn examine<T: Send>(
    inputs: &Inputs,
    options: &Options,
    ctx: &Ctx,
    mut verb: impl FnMut(&mut Examination<'_>) -> Result<T> + Send,
) -> Result<T> {
    steady(ctx, None, || once(inputs, options, None, ctx, &mut verb))
}

/// Does a run, and once more from the start when an input changed under it. What changes twice is under way, and no verdict
/// about it would hold. Nor is there a second run when the first has given something away that cannot be taken back.
///
/// All of it is done by the worker threads that the limits ask for.
///
/// # Errors
/// Those of the run; `Limit` when the threads cannot be had.
pub(crate) fn steady<T: Send>(ctx: &Ctx, given: Option<&AtomicBool>, mut run: impl FnMut() -> Result<T> + Send) -> Result<T> {
    threaded(ctx, || match run() {
        Err(Error::Unstable { .. }) if !given.is_some_and(|g| g.load(Ordering::Relaxed)) => {
            ctx.progress.phase("an input changed: once more from the start", 0);
            ctx.progress.finish();
            run()
        }
        other => other,
    })
}

/// The one pool of a run. A run within a run has the pool already.
fn threaded<T: Send>(ctx: &Ctx, run: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    let threads = ctx.limits.threads;
    if threads == 0 || rayon::current_num_threads() == threads {
        return run();
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).stack_size(STACK).build();
    let pool = pool.map_err(|e| Error::Limit { what: format!("{threads} worker threads: {e}") })?;
    pool.install(run)
}

/// One try: opens, surveys, runs the verb, and looks at the inputs once more. `folder` is where a private snapshot may lie.
///
/// # Errors
/// Those of the verb, unless an input changed: then its own error says nothing, and it is [`Error::Unstable`].
pub(crate) fn once<T>(
    inputs: &Inputs,
    options: &Options,
    folder: Option<&Path>,
    ctx: &Ctx,
    verb: impl FnOnce(&mut Examination<'_>) -> Result<T>,
) -> Result<T> {
    let evidence = evidence::open(inputs, options, folder, ctx)?;
    let run = || {
        let viewed = Viewed::new(&evidence, &inputs.db, ctx)?;
        let survey = viewed.survey(inputs, ctx)?;
        let mut examination = Examination { viewed: &viewed, survey, others: Vec::new(), inputs, options, ctx };
        let done = verb(&mut examination)?;
        examination.settle()?;
        Ok(done)
    };
    evidence::settled(&evidence, run(), ctx)
}

impl<'v> Examination<'v> {
    /// Everything that `check` asks: search indexes, which are given back, foreign keys, commits that SQLite does not show.
    ///
    /// # Errors
    /// I/O of a sort; cancellation.
    pub(crate) fn complete(&mut self) -> Result<Vec<SearchIndex>> {
        let searches = self.search_indexes()?;
        let foreign = foreign::check(&self.survey, &self.selections(), self.ctx)?;
        self.survey.findings.merge(foreign.log);
        self.hide()?;
        Ok(searches)
    }

    /// Compares each full-text index with what it indexes.
    ///
    /// # Errors
    /// Cancellation.
    pub(crate) fn search_indexes(&mut self) -> Result<Vec<SearchIndex>> {
        let searches = search_index::check(&mut self.survey, self.options.keep_violations, self.ctx)?;
        rtree::check(&mut self.survey, self.ctx)?;
        Ok(searches)
    }

    /// Looks for rows of other states, which the one that is read does not show.
    ///
    /// # Errors
    /// I/O of a sort; cancellation.
    pub(crate) fn hide(&mut self) -> Result<()> {
        self.others = hidden::find(self.viewed, &self.survey, self.options.keep_violations, self.ctx)?;
        Ok(())
    }

    /// Reads all inputs once more, the first time that it is asked. Comes before anything is put in place.
    ///
    /// # Errors
    /// `Unstable` when one changed.
    pub(crate) fn settle(&self) -> Result<()> {
        self.viewed.recheck(self.options, self.ctx)
    }

    /// The report of a verb that adds nothing of its own.
    ///
    /// # Errors
    /// `Unstable` when an input changed.
    pub(crate) fn sealed(&self, verb: Verb) -> Result<Report> {
        let mut report = self.report(verb, None)?;
        report.seal();
        if self.options.redact {
            report.redact();
        }
        Ok(report)
    }

    /// A report with inputs, decisions, findings, objects and pages; the verb adds the rest and seals it. `out` is where
    /// `recover` writes.
    ///
    /// # Errors
    /// `Unstable` when an input changed.
    pub(crate) fn report(&self, verb: Verb, out: Option<&Path>) -> Result<Report> {
        self.settle()?;
        let mut report = Report::new(verb);
        (report.evidence_options, report.command) = (self.inputs.again(), self.inputs.command(verb, self.options, out));
        self.viewed.describe(&self.survey, &self.others, &mut report);
        describe::survey(&self.survey, &mut report);
        Ok(report)
    }

    /// Which rows of each table are live as far as the survey alone says it.
    fn selections(&self) -> BTreeMap<ObjectId, Selection> {
        let tables = self.survey.trees.iter().filter_map(|t| match &t.content {
            Some(Content::Table { scan, .. }) => Some((t.object, Selection::of(scan, self.options.keep_violations))),
            _ => None,
        });
        tables.collect()
    }
}
