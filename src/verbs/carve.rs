//! `carve`: rows that are no longer live, with the places that hold them.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::carve::salvage::Salvage;
use crate::carve::{self, CarveSink, Outcome};
use crate::ctx::Ctx;
use crate::error::Result;
use crate::report::Report;
use crate::report::model::Verb;
use crate::verbs::examination::{once, steady};
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
    steady(ctx, None, || {
        let mut file = OutputFile::create(out, options.force, &named)?;
        let folder = file.folder().to_path_buf();
        let done = once(inputs, options, Some(&folder), ctx, |e| {
            file.permissions_of(&inputs.db)?;
            let mut sink = Salvage::new(&file, e.survey.encoding)?;
            let outcome = carve::carve(&e.survey, &e.viewed.view, table, &folder, &mut sink, ctx)?;
            sink.close_all()?;
            Ok((e.sealed(Verb::Carve)?, outcome))
        })?;
        file.commit()?;
        Ok(done)
    })
}

/// Carves into a sink. What it has been given cannot be taken back, so that there is no second run once it has begun.
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
    let given = AtomicBool::new(false);
    steady(ctx, Some(&given), || {
        once(inputs, options, None, ctx, |e| {
            given.store(true, Ordering::Relaxed);
            let outcome = carve::carve(&e.survey, &e.viewed.view, table, &std::env::temp_dir(), sink, ctx)?;
            Ok((e.sealed(Verb::Carve)?, outcome))
        })
    })
}
