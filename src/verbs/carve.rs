//! `carve`: rows that are no longer live, with the places that hold them.

use std::path::Path;

use crate::carve::salvage::Salvage;
use crate::carve::{self, CarveSink, Outcome};
use crate::ctx::Ctx;
use crate::error::Result;
use crate::report::Report;
use crate::report::model::Verb;
use crate::verbs::evidence::{self, Viewed};
use crate::verbs::{Inputs, Options};
use crate::write::file::OutputFile;

/// Carves into a salvage database at `out`.
///
/// # Errors
/// What the tool cannot do; nothing is left half-written.
pub fn carve(inputs: &Inputs, options: &Options, table: Option<&str>, out: &Path, ctx: &Ctx) -> Result<(Report, Outcome)> {
    let named: Vec<&Path> = [Some(inputs.db.as_path()), inputs.journal.as_deref(), inputs.shm.as_deref(), inputs.schema.as_deref()]
        .into_iter()
        .flatten()
        .chain(inputs.wal.iter().map(std::path::PathBuf::as_path))
        .collect();
    let mut file = OutputFile::create(out, options.force, &named)?;
    let evidence = evidence::open(inputs, options, Some(file.folder()), ctx)?;
    file.permissions_of(&inputs.db)?;
    let done = (|| {
        let viewed = Viewed::new(&evidence, &inputs.db, ctx)?;
        let survey = viewed.survey(inputs, ctx)?;
        let mut sink = Salvage::new(&file, survey.encoding)?;
        let outcome = carve::carve(&survey, &viewed.view, table, file.folder(), &mut sink, ctx)?;
        sink.close_all()?;
        viewed.recheck(options, ctx)?;
        let report = super::reported(Verb::Carve, inputs, options, &viewed, &survey, &[]);
        Ok((report, outcome))
    })();
    let (report, outcome) = evidence::settled(&evidence, done, ctx)?;
    file.commit()?;
    Ok((report, outcome))
}

/// Carves into a sink. What it has been given cannot be taken back, so that there is no second run.
///
/// # Errors
/// What the tool cannot do, an unknown table, and whatever the sink returns.
pub fn carve_rows(
    inputs: &Inputs,
    options: &Options,
    table: Option<&str>,
    sink: &mut dyn CarveSink,
    ctx: &Ctx,
) -> Result<(Report, Outcome)> {
    let evidence = evidence::open(inputs, options, None, ctx)?;
    let viewed = Viewed::new(&evidence, &inputs.db, ctx)?;
    let survey = viewed.survey(inputs, ctx)?;
    let outcome = carve::carve(&survey, &viewed.view, table, &std::env::temp_dir(), sink, ctx)?;
    viewed.recheck(options, ctx)?;
    Ok((super::reported(Verb::Carve, inputs, options, &viewed, &survey, &[]), outcome))
}
