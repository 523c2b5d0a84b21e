//! `restore`: rows of a salvage database into a new copy, by the writer that wrote the copy.
//!
//! Passes: which rows are chosen and what each would be in its table (`chosen`); which of them may stand beside the rows
//! that are there, and beside one another (`settle`); a database with all of them, tables and indexes (`compose`); foreign
//! keys over it; the copy, in which `recover` builds the full-text indexes anew and reads everything back.

mod chosen;
mod compose;
mod merge;
mod model;
mod parents;
mod settle;
mod text;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use model::{Conflict, NotRows, Restored, RestoredTable};

use crate::ctx::Ctx;
use crate::error::{Error, Result};
use crate::ids::{ObjectId, wide};
use crate::report::model::Class;
use crate::survey::{Content, Survey};
use crate::verbs::examination::{once, steady};
use crate::verbs::{Inputs, Options};
use crate::write::file::OutputFile;

use chosen::Target;
use settle::Decisions;

/// Conflicts that are listed one by one; all are counted.
const LISTED: usize = 1000;

/// Rounds of taking rows out whose parents were taken out.
const ROUNDS: usize = 64;

/// Findings that are kept of a composed database: enough to name every row that foreign keys refuse.
const KEPT: usize = 1 << 22;

/// Which rows are chosen, and what is done where the copy has another row in their place.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Wanted {
    /// Tables of the copy; none: all.
    pub tables: Vec<String>,
    /// Words of `rp_how`; none: those of rows that are whole and were never deleted.
    pub hows: Vec<String>,
    /// Words of `rp_reason`; none: all but those of deleted rows.
    pub reasons: Vec<String>,
    /// Rowids in the tables of the salvage database; none: all.
    pub rows: Vec<i64>,
    /// A chosen row takes the place of the one with the same rowid or primary key.
    pub replace: bool,
    /// A chosen row of a table without INTEGER PRIMARY KEY whose rowid is taken gets a new one.
    pub renumber: bool,
}

/// Takes chosen rows of a salvage database into a new copy at `out`; without `out` it only says what it would do.
///
/// # Errors
/// What the tool cannot do; `Usage` when the copy is damaged or nothing is chosen; [`Error::Unstable`].
pub fn restore(copy: &Inputs, salvage: &Path, wanted: &Wanted, options: &Options, out: Option<&Path>, ctx: &Ctx) -> Result<Restored> {
    steady(ctx, None, || begun(copy, salvage, wanted, options, out, ctx))
}

/// Makes room for the output, then opens both databases.
fn begun(copy: &Inputs, salvage: &Path, wanted: &Wanted, options: &Options, out: Option<&Path>, ctx: &Ctx) -> Result<Restored> {
    let inputs: [&Path; 2] = [&copy.db, salvage];
    let target = out.map(|out| OutputFile::create(out, options.force, &inputs)).transpose()?;
    let finish_path = out.map(|out| beside(out, ".finish.sql"));
    let finish = finish_path.as_ref().map(|path| OutputFile::create(path, options.force, &inputs)).transpose()?;
    let folder = target.as_ref().map_or_else(std::env::temp_dir, |t| t.folder().to_path_buf());
    let work = tempfile::Builder::new()
        .prefix(".rootpage-restore-")
        .tempdir_in(&folder)
        .map_err(|e| Error::io(&folder, "create a folder in", e))?;

    let salvage_inputs = Inputs::at_path(salvage);
    once(copy, options, Some(work.path()), ctx, |base| {
        once(&salvage_inputs, options, Some(work.path()), ctx, |source| {
            sound(&base.survey, &copy.db)?;
            let composed = work.path().join("composed.db");
            let mut report = Restored::new(&copy.db, salvage, out, wanted);
            let targets = decide(&base.survey, &source.survey, wanted, &composed, work.path(), &mut report, options, ctx)?;
            // From here on only the composed database is read.
            base.settle()?;
            source.settle()?;
            if let (Some(mut file), Some(finish)) = (target, finish) {
                file.permissions_of(&copy.db)?;
                written(&composed, work.path(), &targets, &mut report, file, finish, options, ctx)?;
            }
            report.seal(options.redact);
            Ok(report)
        })
    })
}

/// Decides about every chosen row, and writes a database with all of them.
fn decide<'s>(
    base: &'s Survey<'_>,
    source: &'s Survey<'_>,
    wanted: &Wanted,
    composed: &Path,
    work: &Path,
    report: &mut Restored,
    options: &Options,
    ctx: &Ctx,
) -> Result<Vec<Target<'s>>> {
    let targets = chosen::targets(base, source, wanted, report)?;
    let mut decisions = Decisions::default();
    for target in &targets {
        settle::keys(base, source, target, wanted, &mut decisions, work, ctx)?;
        settle::unique(base, source, target, wanted, &mut decisions, work, ctx)?;
    }
    for round in 0..=ROUNDS {
        compose::write(base, source, &targets, wanted, &decisions, composed, work, ctx)?;
        let refused = decisions.refused.len();
        parents::refuse(base, source, &targets, wanted, &mut decisions, composed, options, work, ctx)?;
        if decisions.refused.len() == refused {
            break;
        }
        if round == ROUNDS {
            return Err(Error::Limit { what: format!("foreign keys were not settled after {ROUNDS} rounds") });
        }
    }
    for target in &targets {
        decisions.tell(base, target, report);
    }
    Ok(targets)
}

/// Refuses a copy that has damage of its own.
fn sound(base: &Survey<'_>, path: &Path) -> Result<()> {
    let class = crate::verbs::describe::class(base.class());
    let odd = base.trees.iter().find(|t| match &t.content {
        Some(Content::Table { scan, .. }) => !scan.excluded.is_empty() || !scan.ordered,
        Some(Content::Index { .. }) => false,
        None => true,
    });
    if class > Class::IndexOnly || odd.is_some() {
        let what =
            format!("{}: is damaged ({}); run rootpage recover on it first, and restore into its copy", path.display(), class.word());
        return Err(Error::Usage { what });
    }
    Ok(())
}

/// Lets `recover` make the copy out of the composed database, and puts it in its place.
fn written(
    composed: &Path,
    work: &Path,
    targets: &[Target<'_>],
    report: &mut Restored,
    mut file: OutputFile,
    finish: OutputFile,
    options: &Options,
    ctx: &Ctx,
) -> Result<()> {
    let made = work.join("copy.db");
    let mut plain = options.clone();
    (plain.force, plain.redact) = (false, false);
    let recovered = crate::verbs::recover(&Inputs::at_path(composed), &plain, &made, ctx)?;
    let fail = |what: String| Err(Error::SelfCheck { what });
    let Some(recovery) = &recovered.recovery else { return fail("no copy was made".to_owned()) };
    for target in targets {
        let name = &target.plan.name;
        let rows = recovery.tables.iter().filter(|t| t.name == *name).map(|t| (t.rows_written, t.rows_set_aside()));
        let (rows, aside) = rows.fold((0, 0), |sum: (u64, u64), t| (sum.0.saturating_add(t.0), sum.1.saturating_add(t.1)));
        let Some(want) = report.tables.iter().find(|t| t.table == *name).map(|t| t.rows_after) else { continue };
        if (rows, aside) != (want, 0) {
            return fail(format!("table {name} of the copy has {rows} rows and {aside} set aside, {want} were meant"));
        }
    }
    report.left_out = recovery.left_out.iter().map(|l| l.name.clone()).collect();
    report.rebuilt = recovered.verdict.class > Class::Healthy;
    let copied = |from: &Path, to: &OutputFile| -> Result<()> {
        let mut source = std::fs::File::open(from).map_err(|e| Error::io(from, "open", e))?;
        let mut sink = to.file();
        std::io::copy(&mut source, &mut sink).map_err(|e| Error::io(to.path(), "write", e))?;
        Ok(())
    };
    copied(&made, &file)?;
    let script = beside(&made, ".finish.sql");
    for moved in file.moves()? {
        report.moved_aside.push([moved.from.display().to_string(), moved.to.display().to_string()]);
    }
    if script.is_file() {
        copied(&script, &finish)?;
        report.finish = Some(finish.path().display().to_string());
        finish.commit()?;
    } else {
        finish.clear()?;
    }
    file.commit()?;
    Ok(())
}

/// `OUT` with an ending behind its whole name.
fn beside(out: &Path, ending: &str) -> PathBuf {
    let mut name = out.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// Highest rowid that each table gets, for `sqlite_sequence`.
type Highest = BTreeMap<ObjectId, i64>;

/// A count as the report has it.
fn n(count: usize) -> u64 {
    wide(count)
}
