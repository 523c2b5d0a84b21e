//! `rootpage restore`: set-aside rows into a new copy.

use std::path::PathBuf;

use rootpage::verbs::{self, Inputs, restore::Wanted};

use super::io::{Fail, emit, style};
use super::options::Running;

/// Take rows of a salvage database into a new copy
///
/// Writes a copy of COPY with the chosen rows of its salvage database in their tables: indexes and full-text indexes are
/// right, keys stay unique, a row without its parent is not taken. What is not restored is listed with the reason. Without
/// options the rows are those that are whole and were never deleted; what was deleted or is put together from an index comes
/// back only when --how asks for it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rootpage restore out.db --from out.db.salvage.db --dry-run
  rootpage restore out.db --from out.db.salvage.db -o out2.db
  rootpage restore out.db --from out.db.salvage.db --table messages --how hidden --replace -o out2.db

Exit codes: 0 every chosen row is in the copy, 2 some are not (the copy is written),
64 wrong arguments or a damaged copy, 74 a path cannot be read or written, 75 an
input changed, 130 cancelled.")]
pub(super) struct Args {
    /// The clean copy that recover wrote
    #[arg(value_name = "COPY")]
    copy: PathBuf,
    /// Its salvage database
    #[arg(long, value_name = "SALVAGE")]
    from: PathBuf,
    /// Where to write the new copy; must not exist
    #[arg(long, short, value_name = "OUT", required_unless_present = "dry_run")]
    out: Option<PathBuf>,
    /// Only rows of this table; may be given several times
    #[arg(long, value_name = "TABLE")]
    table: Vec<String>,
    /// Only rows found so: hidden, live, adopted, index-only, old-version, uncommitted, carved (freeblock, gap, free-page, lost-page), all
    #[arg(long, value_name = "HOW", value_delimiter = ',')]
    how: Vec<String>,
    /// Only rows set aside for this reason (rp_reason)
    #[arg(long, value_name = "REASON", value_delimiter = ',')]
    reason: Vec<String>,
    /// Only these rows of the salvage tables, by rowid there
    #[arg(long, value_name = "N", value_delimiter = ',', requires = "table")]
    row: Vec<i64>,
    /// Let a chosen row take the place of the row with the same rowid or primary key
    #[arg(long, conflicts_with = "renumber")]
    replace: bool,
    /// Give a chosen row a new rowid where its own is taken (tables without INTEGER PRIMARY KEY)
    #[arg(long)]
    renumber: bool,
    /// Say what would be restored and what conflicts; write nothing
    #[arg(long, conflicts_with = "out")]
    dry_run: bool,
    /// Move an existing output aside instead of refusing to start
    #[arg(long)]
    force: bool,
    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    running: Running,
}

/// What `--how` knows.
const HOWS: [&str; 13] = [
    "live",
    "adopted",
    "hidden",
    "old-version",
    "uncommitted",
    "freeblock",
    "gap",
    "free-page",
    "lost-page",
    "index-only",
    "fts-text",
    "carved",
    "all",
];

impl Args {
    pub(super) fn run(self) -> Result<u8, Fail> {
        if let Some(how) = self.how.iter().find(|h| !HOWS.contains(&h.as_str())) {
            return Err(Fail::Usage(format!("--how {how}: expected one of {}", HOWS.join(", "))));
        }
        let ctx = self.running.ctx()?;
        let mut options = self.running.options();
        options.force = self.force;
        let mut wanted = Wanted::default();
        (wanted.tables, wanted.hows, wanted.reasons, wanted.rows) = (self.table, self.how, self.reason, self.row);
        (wanted.replace, wanted.renumber) = (self.replace, self.renumber);
        let done = verbs::restore::restore(&Inputs::at_path(&self.copy), &self.from, &wanted, &options, self.out.as_deref(), &ctx)?;
        emit(&if self.json { done.to_json() } else { done.text(&style()) })?;
        Ok(done.exit_code)
    }
}
