//! What `carve` found, as the report tells it.

use serde::{Deserialize, Serialize};

/// Rows that are no longer live.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Carving {
    /// Tables with their counts, those of the schema first.
    pub tables: Vec<CarvedCounts>,
    /// What the file itself says of how rows were deleted.
    pub hints: Vec<String>,
    /// The salvage database.
    pub salvage: Option<String>,
}

/// What was found of one table.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CarvedCounts {
    /// Its name.
    pub name: String,
    /// The object of the schema; `None`: the table is gone.
    pub object: Option<u32>,
    /// The CREATE text of a table that is gone.
    pub declaration: Option<String>,
    /// Where that text was found.
    pub declared_at: Option<String>,
    /// Live rows.
    pub live: u64,
    /// Whole rows whose key no live row has.
    pub deleted: u64,
    /// Whole rows whose key a live row has with other values.
    pub older: u64,
    /// Whole rows whose key is gone.
    pub key_gone: u64,
    /// Rows of which a part is gone.
    pub partial: u64,
    /// Rows that only index entries name.
    pub index_only: u64,
    /// Places that hold copies of live rows; they are not given out.
    pub live_copies: u64,
    /// The first rows.
    pub preview: Vec<CarvedSample>,
}

/// A row of the preview.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CarvedSample {
    /// Its rowid, where that is known.
    pub rowid: Option<i64>,
    /// What it is to the live rows.
    pub relation: String,
    /// The page that holds it.
    pub page: u32,
    /// The place on it.
    pub place: String,
    /// Its values as SQL literals, cut; "?" for one that is gone.
    pub values: Vec<String>,
}
