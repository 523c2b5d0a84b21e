//! `rootpage history`: what the sidecars know of other times.

use std::path::PathBuf;

use rootpage::history::Target;
use rootpage::report::text_history;
use rootpage::verbs::{self, Inputs};

use super::io::{Fail, emit, style};
use super::options::{Evidence, Running};

/// Show the timeline: commits, branches and generations of the -wal, the transaction of the -journal
///
/// Each commit is listed with its pages and with the rows it added (+), removed (-) and changed (~). The commit numbers are
/// those that `--at commit:N` takes for every verb, branch names those of `--at branch:NAME`. What SQLite does not read is listed
/// as well: commits of a writer that another one did not see, commits behind damage, uncommitted tails, older generations.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rootpage history state.db                            the timeline
  rootpage history state.db --row messages 41          every version of one row
  rootpage rows state.db messages --at commit:3        the rows as they were then
  rootpage diff state.db --at commit:3 state.db --at commit:9
  rootpage history state.db state.db.bak backups/*.db  several files of one store
  rootpage history state.db --wal a-wal --wal b-wal    several captures of its log

Exit codes: 0 SQLite shows all that is committed, 2 committed work is hidden
from it or a journal is in doubt, 3 not a database, 64 wrong arguments, 74 a
path cannot be read, 75 an input changed, 130 cancelled.")]
pub(super) struct Args {
    /// The database, or a -wal alone; several main files are put in order
    #[arg(value_name = "DB", required = true)]
    db: Vec<PathBuf>,
    /// Follow one row: its table, and its rowid or primary key
    #[arg(long, value_names = ["TABLE", "KEY"], num_args = 2..)]
    row: Vec<String>,
    /// Print the history as JSON (docs/report.md documents it)
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    evidence: Evidence,
    #[command(flatten)]
    running: Running,
}

impl Args {
    pub(super) fn run(self) -> Result<u8, Fail> {
        let ctx = self.running.ctx()?;
        let options = self.running.options();
        let target = self.row.split_first().map(|(table, key)| Target { table: table.clone(), key: key.to_vec() });
        let history = match self.db.as_slice() {
            [db] => verbs::history(&self.evidence.inputs(db), &options, target.as_ref(), &ctx)?,
            several => {
                if self.evidence.names_files() || self.evidence.at.is_some() || target.is_some() {
                    return Err(Fail::Usage("--wal, --journal, --shm, --map, --at and --row go with one database".to_owned()));
                }
                let inputs: Vec<Inputs> = several.iter().map(|db| self.evidence.inputs(db)).collect();
                verbs::history_of_files(&inputs, &options, &ctx)?
            }
        };
        emit(&if self.json { history.to_json() } else { text_history::render(&history, &style()) })?;
        Ok(history.exit_code)
    }
}
