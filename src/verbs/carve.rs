//! `carve`: rows that are no longer live, with the places that hold them.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::carve::salvage::Salvage;
use crate::carve::watched::Watched;
use crate::carve::{self, CarveSink, Outcome};
use crate::ctx::Ctx;
use crate::error::{Error, Result};
use crate::report::Report;
use crate::report::model::{CarvedCounts, Carving, Verb};
use crate::verbs::examination::{once, steady};
use crate::verbs::{Inputs, Options};
use crate::write::file::OutputFile;

/// Carves into a salvage database at `out`, with both reports beside it.
///
/// # Errors
/// What the tool cannot do; nothing is left half-written.
pub fn carve(inputs: &Inputs, options: &Options, table: Option<&str>, out: &Path, ctx: &Ctx) -> Result<Report> {
    let named: Vec<&Path> = [Some(inputs.db.as_path()), inputs.journal.as_deref(), inputs.shm.as_deref(), inputs.schema.as_deref()]
        .into_iter()
        .flatten()
        .chain(inputs.wal.iter().map(PathBuf::as_path))
        .collect();
    let beside = |ending: &str| {
        let mut name = out.as_os_str().to_owned();
        name.push(ending);
        OutputFile::create(Path::new(&name), options.force, &named)
    };
    steady(ctx, None, || {
        let mut file = OutputFile::create(out, options.force, &named)?;
        let (mut json, mut html) = (beside(".report.json")?, beside(".report.html")?);
        let folder = file.folder().to_path_buf();
        let report = once(inputs, options, Some(&folder), ctx, |e| {
            for file in [&mut file, &mut json, &mut html] {
                file.permissions_of(&inputs.db)?;
            }
            let mut salvage = Salvage::new(&file, e.survey.encoding)?;
            let mut watched = Watched::new(&mut salvage, options.redact);
            let outcome = carve::carve(&e.survey, &e.viewed.view, table, &folder, &mut watched, ctx)?;
            let samples = std::mem::take(&mut watched.samples);
            salvage.close_all()?;
            let mut report = e.report(Verb::Carve, Some(out))?;
            report.seal();
            report.exit_code = 0;
            let mut carving = carving(&outcome, samples, options.redact);
            carving.salvage = Some(file.path().display().to_string());
            report.carving = Some(carving);
            if options.redact {
                report.redact();
            }
            write_text(&json, &report.to_json())?;
            write_text(&html, &crate::report::html::render(&report)?)?;
            Ok(report)
        })?;
        for file in [file, json, html] {
            file.commit()?;
        }
        Ok(report)
    })
}

fn write_text(file: &OutputFile, text: &str) -> Result<()> {
    let mut f: &File = file.file();
    f.write_all(text.as_bytes()).map_err(|e| Error::io(file.path(), "write", e))
}

/// The outcome as the report tells it.
fn carving(
    outcome: &Outcome,
    mut samples: std::collections::BTreeMap<usize, Vec<crate::report::model::CarvedSample>>,
    redact: bool,
) -> Carving {
    let tables = outcome.tables.iter().map(|t| CarvedCounts {
        name: t.name.clone(),
        object: t.object,
        // A declaration may hold values: defaults, CHECKs.
        declaration: t
            .dropped
            .as_ref()
            .map(|sql| if redact { format!("({} characters redacted)", sql.chars().count()) } else { sql.clone() }),
        declared_at: t.place.clone(),
        live: t.live,
        deleted: t.sums.deleted,
        older: t.sums.older,
        key_gone: t.sums.unknown,
        partial: t.sums.partial,
        index_only: t.sums.index_only,
        live_copies: t.sums.live_copies,
        preview: samples.remove(&t.no).unwrap_or_default(),
    });
    Carving { tables: tables.collect(), hints: outcome.hints.clone(), salvage: None }
}

/// Carves into a sink. What it has been given cannot be taken back, so that there is no second run.
///
/// # Errors
/// What the tool cannot do, an unknown table, and whatever the sink returns.
pub fn carve_rows(inputs: &Inputs, options: &Options, table: Option<&str>, sink: &mut dyn CarveSink, ctx: &Ctx) -> Result<Report> {
    let given = AtomicBool::new(false);
    steady(ctx, Some(&given), || {
        once(inputs, options, None, ctx, |e| {
            given.store(true, Ordering::Relaxed);
            let mut watched = Watched::new(sink, options.redact);
            let outcome = carve::carve(&e.survey, &e.viewed.view, table, &std::env::temp_dir(), &mut watched, ctx)?;
            let samples = std::mem::take(&mut watched.samples);
            let mut report = e.sealed(Verb::Carve)?;
            report.carving = Some(carving(&outcome, samples, options.redact));
            Ok(report)
        })
    })
}
