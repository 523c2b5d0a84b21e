//! `rootpage carve`: deleted and old rows.

use std::path::PathBuf;

use rootpage::pipeline;
use rootpage::report::text;

use super::io::{Fail, emit, style};
use super::options::{Evidence, Running};

/// Search free space and old pages for deleted and older rows, each with its place
///
/// The result is a database with one table for each table of the evidence (and lost_and_found for rows of no known
/// table). Every row carries where it was found, how, and how far it can be trusted.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rootpage carve state.db -o deleted.db")]
pub(super) struct Args {
    /// The database; a -wal alone is read as one, too
    #[arg(value_name = "DB")]
    db: PathBuf,
    /// Where to write the salvage database; must not exist
    #[arg(long, short, value_name = "SALVAGE")]
    out: PathBuf,
    /// Move an existing output aside instead of refusing to start
    #[arg(long)]
    force: bool,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    /// Take the schema from this healthy database or SQL text when it is lost
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    #[command(flatten)]
    evidence: Evidence,
    #[command(flatten)]
    running: Running,
}

impl Args {
    pub(super) fn run(self) -> Result<u8, Fail> {
        let ctx = self.running.ctx()?;
        let mut inputs = self.evidence.inputs(&self.db);
        inputs.schema.clone_from(&self.schema);
        let mut options = self.running.options();
        options.force = self.force;
        let report = pipeline::carve(&inputs, &options, &self.out, &ctx)?;
        emit(&if self.json { report.to_json() } else { text::render(&report, &style(self.evidence.again())) })?;
        Ok(report.exit_code)
    }
}
