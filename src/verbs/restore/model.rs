//! What a restore did, or would do.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use super::{LISTED, Wanted};

/// What became of the chosen rows.
#[derive(Debug, Clone, Serialize)]
pub struct Restored {
    /// The number of this format; grows when a field changes its meaning.
    pub format: u32,
    /// The version of rootpage.
    pub tool_version: &'static str,
    /// The copy that rows were restored into.
    pub copy: String,
    /// The salvage database.
    pub salvage: String,
    /// The new copy; `None`: nothing was written.
    pub out: Option<String>,
    /// Whether a chosen row takes the place of another.
    pub replace: bool,
    /// Each table with chosen rows.
    pub tables: Vec<RestoredTable>,
    /// The first chosen rows that were not restored, each with the reason.
    pub conflicts: Vec<Conflict>,
    /// Tables of the salvage database whose rows belong to no table of the copy.
    pub not_rows: Vec<NotRows>,
    /// Whether a full-text index or an index was built anew.
    pub rebuilt: bool,
    /// Objects that could not be built over the new rows: they are in the finish script.
    pub left_out: Vec<String>,
    /// The finish script.
    pub finish: Option<String>,
    /// What was in the way, and where it is now.
    pub moved_aside: Vec<[String; 2]>,
    /// 0 every chosen row is in the copy, 2 some are not.
    pub exit_code: u8,
}

/// The chosen rows of a table.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RestoredTable {
    /// The table of the copy.
    pub table: String,
    /// Rows that were chosen.
    pub chosen: u64,
    /// Rows that were added.
    pub restored: u64,
    /// Of those, rows that took the place of another.
    pub replaced: u64,
    /// Of those, rows that got a new rowid.
    pub renumbered: u64,
    /// Rows that were there already, or are chosen twice.
    pub already_there: u64,
    /// Restored rows by `rp_how`: what is put together from an index says so here.
    pub how: BTreeMap<String, u64>,
    /// Rows that were not restored, by reason.
    pub refused: BTreeMap<String, u64>,
    /// Rows of the table afterwards.
    pub rows_after: u64,
}

/// A chosen row that was not restored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Conflict {
    /// The table of the copy.
    pub table: String,
    /// The table of the salvage database.
    pub salvage_table: String,
    /// Its rowid there.
    pub salvage_row: i64,
    /// Why: a stable word.
    pub kind: &'static str,
    /// The rowid or key, and what stands against it; `None` when redacted.
    pub detail: Option<String>,
}

/// A table of the salvage database that has no counterpart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NotRows {
    /// Its name.
    pub salvage_table: String,
    /// Its rows.
    pub rows: u64,
    /// Why they cannot be restored.
    pub why: &'static str,
}

impl Restored {
    pub(super) fn new(copy: &Path, salvage: &Path, out: Option<&Path>, wanted: &Wanted) -> Restored {
        Restored {
            format: 1,
            tool_version: env!("CARGO_PKG_VERSION"),
            copy: copy.display().to_string(),
            salvage: salvage.display().to_string(),
            out: out.map(|p| p.display().to_string()),
            replace: wanted.replace,
            tables: Vec::new(),
            conflicts: Vec::new(),
            not_rows: Vec::new(),
            rebuilt: false,
            left_out: Vec::new(),
            finish: None,
            moved_aside: Vec::new(),
            exit_code: 0,
        }
    }

    /// Sets the exit code, cuts what is too long to read, and takes values out when asked.
    pub(super) fn seal(&mut self, redact: bool) {
        let refused = self.tables.iter().any(|t| !t.refused.is_empty());
        self.exit_code = if refused || !self.left_out.is_empty() { 2 } else { 0 };
        self.conflicts.truncate(LISTED);
        if redact {
            for conflict in &mut self.conflicts {
                conflict.detail = None;
            }
        }
    }

    /// As JSON, indented, with a line feed at the end.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Plain data with text keys: serialisation cannot fail.
        let mut json = serde_json::to_string_pretty(self).unwrap_or_default();
        json.push('\n');
        json
    }
}
