//! `rootpage recover`: the clean copy and its reports.

use std::path::PathBuf;

use rootpage::error::Error;
use rootpage::report::model::Verb;
use rootpage::report::text;
use rootpage::verbs;

use super::check::not_a_database;
use super::io::{Fail, emit, style};
use super::options::{Evidence, Running};

/// Write a clean copy with every row that the bytes prove, and a report of every loss
///
/// The copy passes SQLite's integrity check, with its indexes and full-text indexes built anew. What is doubtful
/// (deleted, partial, contradicting its table) goes to OUT.salvage.db with its place and the reason. OUT.report.json and
/// OUT.report.html say what was found, kept, set aside and lost. The inputs are never written to.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rootpage recover state.db -o state.clean.db
  rootpage recover state.db --wal saved/state.db-wal -o /tmp/out.db
  rootpage recover state.db --schema healthy.db -o out.db   when the schema is lost

Writes OUT, OUT.report.json and OUT.report.html; OUT.salvage.db and OUT.finish.sql
when there is something to put into them.

Exit codes: 0 nothing was wrong, 1 damage but every row is in the copy, 2 rows were
lost, hidden or set aside (the copy is written), 3 no copy, 64 wrong arguments,
74 a path cannot be read or written, 75 the input changed, 130 cancelled.")]
pub(super) struct Args {
    /// The damaged database; a -wal alone is read as one, too
    #[arg(value_name = "DB")]
    db: PathBuf,
    /// Where to write the copy; must not exist
    #[arg(long, short, value_name = "OUT")]
    out: PathBuf,
    /// Move existing outputs aside instead of refusing to start
    #[arg(long)]
    force: bool,
    /// Print the report as JSON (the same as OUT.report.json)
    #[arg(long)]
    json: bool,
    /// Take the schema from this healthy database or SQL text when it is lost
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// Keep rows live that break their table's declaration (NOT NULL, CHECK, STRICT)
    #[arg(long)]
    keep_violations: bool,
    /// Take whole deleted rows of this table back in where nothing conflicts; may be given several times
    #[arg(long, value_name = "TABLE")]
    include_deleted: Vec<String>,
    /// Leave the copy in WAL mode if the database was
    #[arg(long)]
    keep_wal: bool,
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
        options.keep_violations = self.keep_violations;
        options.keep_wal = self.keep_wal;
        let done = if self.include_deleted.is_empty() {
            verbs::recover(&inputs, &options, &self.out, &ctx)
        } else {
            verbs::recover_including(&inputs, &options, &self.include_deleted, &self.out, &ctx)
        };
        let report = match done {
            Ok(report) => report,
            Err(Error::NotADatabase { what, .. }) if self.json => not_a_database(Verb::Recover, &self.db, what),
            Err(error) => return Err(error.into()),
        };
        emit(&if self.json { report.to_json() } else { text::render(&report, &style()) })?;
        Ok(report.exit_code)
    }
}
