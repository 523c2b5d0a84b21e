//! `rootpage diff`: how two databases differ.

use std::path::PathBuf;

use clap::ValueEnum;
use rootpage::report::text_diff;
use rootpage::verbs::{self, Inputs};

use super::io::{Fail, emit, style};
use super::options::Running;

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

Exit codes: 0 equal, 1 different, 3 one of them is not a database, 64 wrong
arguments, 74 a path cannot be read, 75 an input changed, 130 cancelled. Equal
means: nothing that could be read differs. Whether all could be read is said by
the answer, and by the exit code of `rootpage check`.")]
pub(super) struct Args {
    /// The first database, such as the damaged one; its -wal and -journal are read with it
    #[arg(value_name = "A")]
    a: PathBuf,
    /// The second, such as the copy
    #[arg(value_name = "B")]
    b: PathBuf,
    /// Only these tables; without them all, the schema and the header
    #[arg(value_name = "TABLE")]
    tables: Vec<String>,
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
        let inputs = |db: &PathBuf, side: Side| {
            let mut inputs = Inputs::at_path(db);
            let named = |option: Option<Side>| option.is_some_and(|s| s == side || s == Side::Both);
            (inputs.no_wal, inputs.no_journal) = (named(self.no_wal), named(self.no_journal));
            inputs
        };
        let (a, b) = (inputs(&self.a, Side::A), inputs(&self.b, Side::B));
        let diff = verbs::diff(&a, &b, &self.running.options(), &self.tables, self.primary_key, self.limit, &ctx)?;
        emit(&if self.json { diff.to_json() } else { text_diff::render(&diff, &style()) })?;
        Ok(diff.exit_code)
    }
}
