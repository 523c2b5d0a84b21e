//! `rootpage carve`: deleted and older rows.

use std::io::{self, BufWriter};
use std::path::PathBuf;

use clap::ValueEnum;
use rootpage::carve::CarveSink;
use rootpage::carve::text::{Lines, Table};
use rootpage::report::human::{count, escape};
use rootpage::report::model::Carving;
use rootpage::verbs;

use super::io::{Fail, emit};
use super::options::{Evidence, Running};

/// Find deleted and older rows in the free bytes of the files
///
/// Every row comes with the place that holds it and with what it is to the live rows: deleted, an older version of a live
/// row, or, where its key is gone, one of both. Copies of live rows are left out. Nothing that is carved is certain: free
/// bytes carry no checksum.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Outputs:
  -o SALVAGE      a database with a table for each table, the columns rp_... in front
  --format jsonl  one JSON object a row on standard output
  --format csv    comma-separated values, one table

Examples:
  rootpage carve state.db -o state.carved.db
  rootpage carve state.db messages --format jsonl | jq .values

Exit codes: 0 done, whether or not rows were found; 3 not a database; 64, 74, 75 and 130 as all verbs.")]
pub(super) struct Args {
    /// The database; a -wal alone is read as one, too
    #[arg(value_name = "DB")]
    db: PathBuf,
    /// Only this table; also one that was dropped
    #[arg(value_name = "TABLE")]
    table: Option<String>,
    /// Write the rows into a new database; both reports go beside it
    #[arg(short, long, value_name = "SALVAGE", conflicts_with = "format", required_unless_present = "format")]
    output: Option<PathBuf>,
    /// Print the rows instead
    #[arg(long, short, value_enum)]
    format: Option<Format>,
    /// Move existing output files aside instead of refusing
    #[arg(long, requires = "output")]
    force: bool,
    /// Print the JSON report instead of text
    #[arg(long, requires = "output")]
    json: bool,
    /// Take the schema from this healthy database or SQL text when it is lost
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    #[command(flatten)]
    evidence: Evidence,
    #[command(flatten)]
    running: Running,
}

/// The formats of `carve`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// JSON lines
    Jsonl,
    /// Comma-separated values
    Csv,
}

impl Args {
    pub(super) fn run(self) -> Result<u8, Fail> {
        if self.format == Some(Format::Csv) && self.table.is_none() {
            return Err(Fail::Usage("csv holds one table: name it, as in `rootpage carve DB TABLE --format csv`".to_owned()));
        }
        let ctx = self.running.ctx()?;
        let mut inputs = self.evidence.inputs(&self.db);
        inputs.schema.clone_from(&self.schema);
        let mut options = self.running.options();
        options.force = self.force;
        if let Some(out) = &self.output {
            let report = verbs::carve(&inputs, &options, self.table.as_deref(), out, &ctx)?;
            if self.json {
                emit(&report.to_json())?;
                return Ok(0);
            }
            emit(&report.carving.as_ref().map(told).unwrap_or_default())?;
            let out = escape(&out.to_string_lossy());
            emit(&format!("\nwritten: {out}, {out}.report.json, {out}.report.html\n"))?;
            return Ok(0);
        }
        let out = BufWriter::with_capacity(1 << 16, io::stdout());
        let mut sink: Box<dyn CarveSink> = match self.format {
            Some(Format::Csv) => Box::new(Table::new(out)),
            _ => Box::new(Lines::new(out)),
        };
        verbs::carve_rows(&inputs, &options, self.table.as_deref(), &mut *sink, &ctx)?;
        Ok(0)
    }
}

/// What was found, as a table.
fn told(outcome: &Carving) -> String {
    let mut out = String::new();
    let head = ["table", "live", "deleted", "older", "key gone", "partial", "index only"];
    let mut rows: Vec<[String; 7]> = vec![head.map(str::to_owned)];
    for t in &outcome.tables {
        let found = [t.deleted, t.older, t.key_gone, t.partial, t.index_only];
        if found.iter().all(|n| *n == 0) && t.declaration.is_none() {
            continue;
        }
        let name = escape(&t.name);
        let name = if t.declaration.is_some() { format!("{name} (dropped)") } else { name };
        let [deleted, older, unknown, partial, index] = found.map(count);
        rows.push([name, count(t.live), deleted, older, unknown, partial, index]);
    }
    if rows.len() == 1 {
        out.push_str("no row was found that is not live\n");
    } else {
        let widths: Vec<usize> =
            (0..7).map(|i| rows.iter().filter_map(|r| r.get(i)).map(|c| c.chars().count()).max().unwrap_or(0)).collect();
        for row in &rows {
            for (i, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let pad = " ".repeat(width.saturating_sub(cell.chars().count()));
                if i == 0 {
                    out.push_str(&format!("{cell}{pad}"));
                } else {
                    out.push_str(&format!("  {pad}{cell}"));
                }
            }
            out.push('\n');
        }
    }
    for hint in &outcome.hints {
        out.push_str(&format!("\nhint: {}", escape(hint)));
    }
    if !outcome.hints.is_empty() {
        out.push('\n');
    }
    out
}
