//! The ledger of a recovery: what was written, set aside and lost.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What `recover` wrote and what it could not.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Recovery {
    /// The files that were written.
    pub outputs: Vec<Output>,
    /// One entry a table with rows.
    pub tables: Vec<TableRecovery>,
    /// Rows that are set aside because their table's declaration forbids them, although other structures confirm them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub breakers: Vec<Breaker>,
    /// Objects of the schema that are not in the copy.
    pub left_out: Vec<LeftOut>,
    /// What reading the copy back gave; `None` when no copy was written.
    pub read_back: Option<ReadBack>,
    /// Files that `--force` moved aside, old path and new path.
    pub moved_aside: Vec<[String; 2]>,
}

/// A row of the salvage database that is data all the same.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Breaker {
    /// Its table.
    pub table: String,
    /// The row, by its rowid or key.
    pub row: String,
    /// The rule that it breaks.
    pub rule: String,
    /// What confirms it: indexes, and rows that name it.
    pub witnesses: Vec<String>,
    /// The statement that brings it back, with the salvage database attached to the copy as `salvage`.
    pub restore: String,
}

/// A file that was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// What it is.
    pub role: OutputRole,
    /// Where it is.
    pub path: String,
    /// Its size in bytes; 0 for the reports, which cannot know their own.
    pub bytes: u64,
    /// Its SHA-256 in hex, `None` for the reports.
    pub sha256: Option<String>,
}

impl Breaker {
    /// Takes the rowid or the key of the row out.
    pub(crate) fn redact(&mut self) {
        "a row (redacted)".clone_into(&mut self.row);
    }
}

/// What an output is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutputRole {
    /// The clean copy.
    Copy,
    /// `OUT.salvage.db`: what must not stand in the copy, each row with its provenance.
    Salvage,
    /// `OUT.finish.sql`: statements to run with the application's own SQLite.
    FinishSql,
    /// `OUT.report.json`.
    ReportJson,
    /// `OUT.report.html`.
    ReportHtml,
}

/// The ledger of one table: rows found = rows written + rows set aside.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TableRecovery {
    /// Its name; for rows of no known table the name of their salvage table.
    pub name: String,
    /// Its id in [`super::Report::objects`].
    pub object: Option<u32>,
    /// Rows that the bytes prove.
    pub rows_found: u64,
    /// Rows in the copy.
    pub rows_written: u64,
    /// Rows in the salvage database, by reason ("deleted", "partial", "not-null-broken", ...).
    pub set_aside: BTreeMap<String, u64>,
    /// Rows known to be gone, covered by a damaged page.
    pub lost: Vec<Gone>,
    /// Rows that a witness names and no page holds; they may simply have been deleted.
    pub unaccounted: Vec<Gone>,
    /// Values that stand in the copy other than in the evidence, by reason ("unique-value-nulled", "surplus-fields-cut", ...).
    pub values_changed: BTreeMap<String, u64>,
    /// What a person should know about this table, most important first.
    pub notes: Vec<String>,
}

/// Rows that are not there, as far as something names them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Gone {
    /// Inclusive ranges of rowids; empty when they have no rowids or nothing names them.
    pub rowids: Vec<[i64; 2]>,
    /// How many, `None` when nothing tells.
    pub count: Option<u64>,
    /// What says so: "index orders_by_date", "page header", "fts docsize".
    pub witness: String,
    /// The damaged page that held them.
    pub page: Option<u32>,
}

/// An object of the schema that is not in the copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// "table", "index", "view", "trigger".
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Why, in a sentence.
    pub reason: String,
    /// Whether `OUT.finish.sql` holds the statement that makes it.
    pub in_finish_sql: bool,
    /// Rows that are therefore not live in the copy.
    pub rows: u64,
}

/// What reading the copy back with our own reader gave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadBack {
    /// Rows that were compared.
    pub rows_compared: u64,
    /// Whether all were equal.
    pub equal: bool,
}

impl Recovery {
    /// Whether a row is lost, or set aside, or in an object that was left out, or a value gave way to another row's. What lies on
    /// free pages was deleted.
    #[must_use]
    pub fn loses_rows(&self) -> bool {
        let aside = |t: &TableRecovery| t.rows_set_aside() > t.set_aside.get(FREE_PAGE).copied().unwrap_or(0);
        let loses = |t: &TableRecovery| !t.lost.is_empty() || aside(t) || t.values_changed.contains_key("unique-value-nulled");
        self.tables.iter().any(loses) || self.left_out.iter().any(|l| l.rows > 0)
    }

    /// The path of an output.
    #[must_use]
    pub fn output(&self, role: OutputRole) -> Option<&Output> {
        self.outputs.iter().find(|o| o.role == role)
    }
}

/// The reason under which the version of a row that indexes have is set aside, where they contradict the row.
pub const DISPUTED: &str = "row-and-indexes-disagree";

/// The reason under which rows of free pages are set aside.
pub const FREE_PAGE: &str = "free-page";

impl TableRecovery {
    /// Rows in the salvage database.
    #[must_use]
    pub fn rows_set_aside(&self) -> u64 {
        self.set_aside.values().fold(0, |sum, n| sum.saturating_add(*n))
    }
}
