//! `rootpage diff`: how two databases differ.

use std::path::PathBuf;

use clap::ValueEnum;
use rootpage::report::text_diff;
use rootpage::verbs::{self, Inputs, Snapshot};

use super::io::{Fail, emit, style};
use super::options::{Running, snapshot};

/// Compare two databases row by row: what is only in A, only in B, or has other values
///
/// Counts come first, then the rows with their keys and both values. Damaged files are read as `rootpage rows` reads them: a row
/// that cannot be read is not compared, and the answer says which side is damaged.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Rows are paired by rowid, rows of a WITHOUT ROWID table by its primary key. Values
are the same when class and content are: NULL, '', x'', 1 and 1.0 are five values.
The inner tables of a search index are compared only when they are named.

Examples:
  rootpage diff damaged.db out.db                 what the copy has, and what it lacks
  rootpage diff backup.db out.db messages --json  one table, for a script
  rootpage diff state.db state.db --no-wal=b      what only the -wal holds
  rootpage diff A --at commit:3 A --at commit:9   two times of one database
  rootpage diff state.db --at commit:3            what came after the third commit

Exit codes: 0 equal, 1 different, 3 one of them is not a database, 64 wrong
arguments, 74 a path cannot be read, 75 an input changed, 130 cancelled. Equal
means: nothing that could be read differs. Whether all could be read is said by
the answer, and by the exit code of `rootpage check`.")]
pub(super) struct Args {
    /// The first database, such as the damaged one; its -wal and -journal are read with it
    #[arg(value_name = "A")]
    a: PathBuf,
    /// The second, such as the copy; without it the first at another time, see --at
    #[arg(value_name = "B")]
    b: Option<PathBuf>,
    /// Only these tables; without them all, the schema and the header
    #[arg(value_name = "TABLE")]
    tables: Vec<String>,
    /// The version to read, commit:N, frame:N or branch:NAME: the first --at is that of A, the second that of B
    #[arg(long, value_name = "SNAPSHOT", value_parser = snapshot, help_heading = "Evidence")]
    at: Vec<Snapshot>,
    /// Print the difference as JSON (docs/report.md documents it)
    #[arg(long)]
    json: bool,
    /// List at most so many rows of each table; all are counted
    #[arg(long, value_name = "ROWS", default_value_t = 20)]
    limit: u64,
    /// Pair rows by the primary key that their table declares: for copies that numbered their rows anew
    #[arg(long)]
    primary_key: bool,
    /// Read no write-ahead log: of A, of B, or of both
    #[arg(long, value_name = "SIDE", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "both", help_heading = "Evidence")]
    no_wal: Option<Side>,
    /// Read no rollback journal: of A, of B, or of both
    #[arg(long, value_name = "SIDE", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "both", help_heading = "Evidence")]
    no_journal: Option<Side>,
    #[command(flatten)]
    running: Running,
}

/// Which of the two databases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Side {
    /// The first
    A,
    /// The second
    B,
    /// Both
    Both,
}

impl Args {
    pub(super) fn run(self) -> Result<u8, Fail> {
        let ctx = self.running.ctx()?;
        if self.at.len() > 2 {
            return Err(Fail::Usage("--at is given once for A and once for B".to_owned()));
        }
        let Some(b) = self.b.as_ref().or(Some(&self.a).filter(|_| !self.at.is_empty())) else {
            return Err(Fail::Usage("name a second database, or --at to compare the first with itself at another time".to_owned()));
        };
        let inputs = |db: &PathBuf, side: Side, at: Option<&Snapshot>| {
            let mut inputs = Inputs::at_path(db);
            inputs.at = at.cloned();
            let named = |option: Option<Side>| option.is_some_and(|s| s == side || s == Side::Both);
            (inputs.no_wal, inputs.no_journal) = (named(self.no_wal), named(self.no_journal));
            inputs
        };
        let (a, b) = (inputs(&self.a, Side::A, self.at.first()), inputs(b, Side::B, self.at.get(1)));
        let diff = verbs::diff(&a, &b, &self.running.options(), &self.tables, self.primary_key, self.limit, &ctx)?;
        emit(&if self.json { diff.to_json() } else { text_diff::render(&diff, &style()) })?;
        Ok(diff.exit_code)
    }
}
