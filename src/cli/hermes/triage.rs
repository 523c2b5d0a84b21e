//! `rootpage hermes triage`: what a bundle of Hermes holds.

use std::path::PathBuf;

use rootpage::triage::{self, Wanted};

use super::super::io::{Fail, emit, style};
use super::super::options::Running;

/// Say what every file of an incident bundle of Hermes is, which store is the best source, and what the others add
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rootpage hermes triage incident.zip

Exit codes: 0 the best store is whole and holds everything, 1 others add to it or
something is missing, 2 its data is damaged, 3 no database, 64 wrong arguments,
74 cannot read or write, 130 cancelled.")]
pub(crate) struct Args {
    /// The folder or archive
    #[arg(value_name = "BUNDLE")]
    path: PathBuf,
    /// Unpack an archive into this folder, which must be new or empty, and leave it there
    #[arg(long, value_name = "DIR")]
    extract: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    running: Running,
}

impl Args {
    pub(super) fn run(self) -> Result<u8, Fail> {
        let ctx = self.running.ctx()?;
        let mut wanted = Wanted::default();
        wanted.extract = self.extract;
        // What makes a database a store of Hermes, whatever its release.
        wanted.tables = ["sessions", "messages"].map(str::to_owned).to_vec();
        let found = triage::examine(&self.path, &wanted, &self.running.options(), &ctx)?;
        emit(&if self.json { found.to_json() } else { found.text(&style()) })?;
        Ok(found.exit_code)
    }
}
