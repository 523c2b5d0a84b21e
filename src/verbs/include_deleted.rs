//! `recover --include-deleted=TABLE`: whole deleted rows of a table back into the copy, where nothing speaks against them.
//!
//! The rows are carved first, the copy is made as always, and what was carved is then restored into it under the rules of
//! `restore`: a row whose key or unique value is taken, or whose parent is missing, stays out.

use std::fs;
use std::path::{Path, PathBuf};

use crate::carve::salvage::Salvage;
use crate::carve::{self, CarveSink, CarvedRow, CarvedTable, Relation};
use crate::ctx::Ctx;
use crate::error::{Error, Result};
use crate::evidence::{InputFile, OpenOptions};
use crate::recover::How;
use crate::report::Report;
use crate::report::human::{counted, shell_word};
use crate::report::model::OutputRole;
use crate::verbs::evidence::{self, Viewed};
use crate::verbs::restore::{Wanted, restore};
use crate::verbs::{Inputs, Options};
use crate::write::file::OutputFile;

/// Lets only rows through that are whole, have their key, have one reading, and are of a table that is wanted.
struct Sure<'s, 'f> {
    inner: &'s mut Salvage<'f>,
    tables: &'s [String],
    open: bool,
    rows: u64,
}

impl CarveSink for Sure<'_, '_> {
    fn begin_table(&mut self, table: &CarvedTable<'_>) -> Result<()> {
        self.open = table.dropped.is_none() && self.tables.iter().any(|t| t.eq_ignore_ascii_case(table.name));
        if self.open { self.inner.begin_table(table) } else { Ok(()) }
    }

    fn row(&mut self, row: &CarvedRow<'_>) -> Result<()> {
        let sure = row.complete && row.relation == Relation::Deleted && row.solutions <= 1 && row.candidates.is_empty();
        if !self.open || !sure || row.how == How::IndexOnly || row.how == How::Uncommitted {
            return Ok(());
        }
        self.rows = self.rows.saturating_add(1);
        self.inner.row(row)
    }
}

/// Recovers, and takes deleted rows of these tables back in.
///
/// # Errors
/// What `recover` says; `Usage` for a table that the schema does not have.
pub fn recover_including(inputs: &Inputs, options: &Options, tables: &[String], out: &Path, ctx: &Ctx) -> Result<Report> {
    let folder = out.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let work =
        tempfile::Builder::new().prefix(".rootpage-deleted-").tempdir_in(folder).map_err(|e| Error::io(folder, "create a folder in", e))?;
    let salvage = work.path().join("carved.db");
    let rows = carved(inputs, options, tables, &salvage, ctx)?;
    let mut report = super::recover(inputs, options, out, ctx)?;
    for table in tables {
        report.command.push_str(&format!(" {}", shell_word(&format!("--include-deleted={table}"))));
    }
    if rows > 0 {
        taken(options, tables, &salvage, work.path(), out, &mut report, ctx)?;
    }
    for (ending, text) in [(".report.json", report.to_json()), (".report.html", crate::report::html::render(&report)?)] {
        let path = beside(out, ending);
        fs::write(&path, text).map_err(|e| Error::io(&path, "write", e))?;
    }
    Ok(report)
}

fn beside(out: &Path, ending: &str) -> PathBuf {
    let mut name = out.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// Carves the rows that may come back into a salvage database; how many there are.
fn carved(inputs: &Inputs, options: &Options, tables: &[String], salvage: &Path, ctx: &Ctx) -> Result<u64> {
    let file = OutputFile::create(salvage, false, &[])?;
    let evidence = evidence::open(inputs, options, Some(file.folder()), ctx)?;
    let viewed = Viewed::new(&evidence, &inputs.db, ctx)?;
    let survey = viewed.survey(inputs, ctx)?;
    for table in tables {
        if survey.catalog.by_name(table.as_bytes()).is_none_or(|o| o.root.is_none()) {
            return Err(Error::Usage { what: format!("--include-deleted={table}: the schema has no such table") });
        }
    }
    let mut inner = Salvage::new(&file, survey.encoding)?;
    let mut sure = Sure { inner: &mut inner, tables, open: false, rows: 0 };
    carve::carve(&survey, &viewed.view, None, file.folder(), &mut sure, ctx)?;
    let rows = sure.rows;
    inner.close_all()?;
    file.commit()?;
    Ok(rows)
}

/// Restores what was carved into the copy and enters it into the ledger.
fn taken(options: &Options, tables: &[String], salvage: &Path, work: &Path, out: &Path, report: &mut Report, ctx: &Ctx) -> Result<()> {
    let wanted = Wanted {
        tables: tables.to_vec(),
        hows: vec!["all".to_owned()],
        reasons: vec![Relation::Deleted.word().to_owned()],
        ..Wanted::default()
    };
    let made = work.join("with.db");
    let mut plain = options.clone();
    plain.force = false;
    let restored = restore(&Inputs::at_path(out), salvage, &wanted, &plain, Some(&made), ctx)?;
    fs::rename(&made, out).map_err(|e| Error::io(out, "write", e))?;
    let script = beside(&made, ".finish.sql");
    if script.is_file() {
        let to = beside(out, ".finish.sql");
        fs::rename(&script, &to).map_err(|e| Error::io(&to, "write", e))?;
    }
    let Some(recovery) = &mut report.recovery else { return Ok(()) };
    for table in &restored.tables {
        let Some(entry) = recovery.tables.iter_mut().find(|t| t.name.eq_ignore_ascii_case(&table.table) && t.object.is_some()) else {
            continue;
        };
        entry.rows_found = entry.rows_found.saturating_add(table.restored);
        entry.rows_written = entry.rows_written.saturating_add(table.restored);
        let left: u64 = table.refused.values().fold(0, |sum: u64, n| sum.saturating_add(*n));
        let mut note = format!("{} taken back in, as --include-deleted asked", counted(table.restored, "deleted row"));
        if left > 0 {
            note.push_str(&format!("; {} conflict with rows that are there", counted(left, "other")));
        }
        entry.notes.push(note);
    }
    if let Some(output) = recovery.outputs.iter_mut().find(|o| o.role == OutputRole::Copy) {
        let mut open = OpenOptions::new();
        open.hash = !options.no_hash;
        let read = InputFile::open(out, ctx, &open)?;
        let print = read.fingerprint();
        (output.bytes, output.sha256) = (print.len, print.sha256_hex());
    }
    report.balance().map_err(|what| Error::SelfCheck { what })
}
