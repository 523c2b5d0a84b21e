//! `rootpage rows`: rows straight from the evidence.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::PathBuf;

use clap::ValueEnum;
#[cfg(feature = "parquet")]
use rootpage::report::export::Parquet;
use rootpage::report::export::{Csv, Folder, JsonLines, RowSink, Sql};
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
  parquet  one table, typed by the values it holds; a column of several storage classes is
         a group with one field a class
  sql    CREATE TABLE and INSERT statements that give SQLite the same values again

Examples:
  rootpage rows state.db messages | jq .values
  rootpage rows state.db messages --format csv > messages.csv
  rootpage rows state.db --format sql | sqlite3 new.db
  rootpage rows state.db --format csv --folder tables      every table as a file
  rootpage rows state.db messages --format parquet > messages.parquet

Exit codes: as `rootpage check`.")]
pub(super) struct Args {
    /// The database; a -wal alone is read as one, too
    #[arg(value_name = "DB")]
    db: PathBuf,
    /// The table; all tables without it (csv and parquet hold one, unless --folder is given)
    #[arg(value_name = "TABLE")]
    table: Option<String>,
    /// How rows are written
    #[arg(long, short, value_enum, default_value_t = Format::Jsonl)]
    format: Format,
    /// Write each table as a file of its own into this folder; what is there already stays
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// Put the place of each row in front of its values: rp_how, rp_source, rp_page, rp_cell
    #[arg(long)]
    provenance: bool,
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
    /// Apache Parquet
    #[cfg(feature = "parquet")]
    Parquet,
}

impl Format {
    /// The name as it is given on the command line; also the ending of a file.
    const fn word(self) -> &'static str {
        match self {
            Format::Jsonl => "jsonl",
            Format::Csv => "csv",
            Format::Sql => "sql",
            #[cfg(feature = "parquet")]
            Format::Parquet => "parquet",
        }
    }

    /// Whether one output can hold several tables.
    const fn holds_all(self) -> bool {
        matches!(self, Format::Jsonl | Format::Sql)
    }

    fn sink<W: Write + Send + 'static>(self, out: W) -> Box<dyn RowSink> {
        match self {
            Format::Jsonl => Box::new(JsonLines::new(out)),
            Format::Csv => Box::new(Csv::new(out)),
            Format::Sql => Box::new(Sql::new(out)),
            #[cfg(feature = "parquet")]
            Format::Parquet => Box::new(Parquet::new(out, &std::env::temp_dir())),
        }
    }
}

impl Args {
    pub(super) fn run(self) -> Result<u8, Fail> {
        let word = self.format.word();
        if !self.format.holds_all() && self.table.is_none() && self.folder.is_none() {
            let what = format!("{word} holds one table: name it, as in `rootpage rows DB TABLE --format {word}`, or give --folder");
            return Err(Fail::Usage(what));
        }
        if self.provenance && self.format == Format::Sql {
            return Err(Fail::Usage(
                "--provenance adds columns that the tables do not have; sql would not run: take another format".to_owned(),
            ));
        }
        #[cfg(feature = "parquet")]
        if self.format == Format::Parquet && self.folder.is_none() && io::stdout().is_terminal() {
            return Err(Fail::Usage("parquet is no text for a terminal: send it into a file with >, or give --folder".to_owned()));
        }
        let ctx = self.running.ctx()?;
        let mut inputs = self.evidence.inputs(&self.db);
        inputs.schema.clone_from(&self.schema);
        let mut options = self.running.options();
        options.provenance = self.provenance;
        let format = self.format;
        let mut sink: Box<dyn RowSink> = match &self.folder {
            Some(folder) => Box::new(Folder::new(folder, word, move |out| format.sink(out))?),
            None => format.sink(BufWriter::with_capacity(1 << 16, io::stdout())),
        };
        let report = verbs::rows(&inputs, &options, self.table.as_deref(), &mut *sink, &ctx)?;
        sink.finish()?;
        Ok(report.exit_code)
    }
}
