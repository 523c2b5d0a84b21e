//! `rootpage rows`: rows straight from the evidence.

use std::io::{self, BufWriter};
use std::path::PathBuf;

use clap::ValueEnum;
use rootpage::report::export::{Csv, JsonLines, RowSink, Sql};
use rootpage::verbs;

use super::io::Fail;
use super::options::{Evidence, Running};

/// Print the rows of one table, or of all, straight from the evidence
///
/// Nothing is lost on the way: NULL and empty differ, 64-bit integers and reals are exact, BLOBs and text that is not
/// valid UTF-8 come as hex. Damaged parts are skipped; `rootpage check` says which.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Formats:
  jsonl  one JSON object a row: {\"table\":…,\"rowid\":…,\"values\":{…}}. A BLOB is
         {\"blob\":\"hex\"}, text that is not valid in its encoding {\"text\":\"hex\"}, a real
         always has a point or an exponent, infinities are {\"real\":\"inf\"}, {\"real\":\"-inf\"}
  csv    a header line, then one line a row, RFC 4180. NULL is an empty field, empty text
         is \"\", text is always quoted and numbers never; a BLOB is x'hex'
  sql    CREATE TABLE and INSERT statements that give SQLite the same values again

Examples:
  rootpage rows state.db messages | jq .values
  rootpage rows state.db messages --format csv > messages.csv
  rootpage rows state.db --format sql | sqlite3 new.db

Exit codes: as `rootpage check`.")]
pub(super) struct Args {
    /// The database; a -wal alone is read as one, too
    #[arg(value_name = "DB")]
    db: PathBuf,
    /// The table; all tables without it (csv needs one)
    #[arg(value_name = "TABLE")]
    table: Option<String>,
    /// How rows are written
    #[arg(long, short, value_enum, default_value_t = Format::Jsonl)]
    format: Format,
    /// Take the schema from this healthy database or SQL text when it is lost
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    #[command(flatten)]
    evidence: Evidence,
    #[command(flatten)]
    running: Running,
}

/// The formats of `rows`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// JSON lines
    Jsonl,
    /// Comma-separated values
    Csv,
    /// SQL statements
    Sql,
}

impl Args {
    pub(super) fn run(self) -> Result<u8, Fail> {
        if self.format == Format::Csv && self.table.is_none() {
            return Err(Fail::Usage("csv holds one table: name it, as in `rootpage rows DB TABLE --format csv`".to_owned()));
        }
        let ctx = self.running.ctx()?;
        let mut inputs = self.evidence.inputs(&self.db);
        inputs.schema.clone_from(&self.schema);
        let out = BufWriter::with_capacity(1 << 16, io::stdout());
        let mut sink: Box<dyn RowSink> = match self.format {
            Format::Jsonl => Box::new(JsonLines::new(out)),
            Format::Csv => Box::new(Csv::new(out)),
            Format::Sql => Box::new(Sql::new(out)),
        };
        let report = verbs::rows(&inputs, &self.running.options(), self.table.as_deref(), &mut *sink, &ctx)?;
        sink.finish()?;
        Ok(report.exit_code)
    }
}
