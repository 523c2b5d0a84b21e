//! `rootpage journal-mode`: a copy in another journal mode.

use std::path::PathBuf;

use clap::ValueEnum;
use rootpage::host::journal_mode::{self, Mode};
use rootpage::host::text;

use super::io::{Fail, emit, style};
use super::options::Running;

/// The journal mode of the copy.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum To {
    /// A rollback journal: right for shared folders of virtual machines and containers
    Delete,
    /// A write-ahead log
    Wal,
}

/// Write a copy of a database in another journal mode, its log folded in
///
/// Every page is copied as SQLite would read it, the log over the file; only the mode, the change counter and the page
/// count in the header are new. Refused while a process has the database open for writing, and when it is damaged.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rootpage journal-mode state.db delete -o state.delete.db

Exit codes: 0 written, 1 written, and an index or bookkeeping is damaged as before,
3 refused, 64 wrong arguments, 74 a path cannot be read or written, 75 the input
changed, 130 cancelled.")]
pub(super) struct Args {
    /// The database
    #[arg(value_name = "DB")]
    db: PathBuf,
    /// The mode of the copy
    #[arg(value_name = "MODE", value_enum)]
    mode: To,
    /// Where to write the copy; must not exist
    #[arg(long, short, value_name = "OUT")]
    out: PathBuf,
    /// Move an existing output aside instead of refusing to start
    #[arg(long)]
    force: bool,
    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    running: Running,
}

impl Args {
    pub(super) fn run(self) -> Result<u8, Fail> {
        let ctx = self.running.ctx()?;
        let mut options = self.running.options();
        options.force = self.force;
        let mode = match self.mode {
            To::Delete => Mode::Delete,
            To::Wal => Mode::Wal,
        };
        let done = journal_mode::convert(&self.db, mode, &self.out, &options, &ctx)?;
        emit(&if self.json { done.to_json() } else { text::converted(&done, &style()) })?;
        Ok(done.exit_code)
    }
}
