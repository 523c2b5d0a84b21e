//! Rows out of the evidence: the sink that a reading pipeline fills, and the formats, none of which loses anything.
//!
//! | value | JSON lines | CSV | SQL |
//! |---|---|---|---|
//! | NULL | `null` | empty field | `NULL` |
//! | integer | digits, all 64 bits | digits | digits |
//! | real | shortest digits that give the same double, always with a point or exponent; `{"real":"inf"}` | the same; `inf` | the same; `9e999` |
//! | text | string | always quoted | `'...'`; with a NUL or ill-formed: `CAST(x'..' AS TEXT)` |
//! | ill-formed text | `{"text":"hex of the stored bytes"}`, UTF-16 with `"encoding"` | `t'hex'`, not quoted | see above |
//! | BLOB | `{"blob":"hex"}` | `x'hex'`, not quoted | `x'hex'` |

mod csv;
mod folder;
mod json_lines;
mod literal;
#[cfg(feature = "parquet")]
mod parquet;
mod places;
mod redacted;
mod sql;

pub use self::csv::Csv;
pub use self::folder::Folder;
pub(crate) use self::json_lines::Json;
pub use self::json_lines::JsonLines;
pub use self::literal::sql as sql_literal;
#[cfg(feature = "parquet")]
pub use self::parquet::Parquet;
pub use self::places::{Place, WithPlaces};
pub use self::redacted::{Redacted, class_and_length};
pub use self::sql::Sql;

use crate::error::Result;
use crate::format::{Encoding, Value};

/// A table whose rows follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableInfo {
    /// Its name.
    pub name: String,
    /// Its columns in the order of the values.
    pub columns: Vec<ColumnInfo>,
    /// Whether its rows have rowids; false for WITHOUT ROWID tables.
    pub has_rowid: bool,
    /// The encoding in which text values are stored.
    pub encoding: Encoding,
    /// The CREATE statement as the schema holds it, when it does.
    pub sql: Option<String>,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ColumnInfo {
    /// Its name.
    pub name: String,
    /// Whether it is computed: it can be read, not inserted.
    pub generated: bool,
    /// Whether it is the rowid under another name (`INTEGER PRIMARY KEY`).
    pub rowid_alias: bool,
}

/// A row of the table that was begun last.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RowView<'a> {
    /// Its rowid, for tables that have them.
    pub rowid: Option<i64>,
    /// One value for each column, DEFAULT and REAL affinity already applied; the rowid alias holds the rowid.
    pub values: &'a [Value<'a>],
    /// Where it stands; empty unless the run was asked for it.
    pub place: Place<'a>,
}

/// Receives tables and their rows in order.
pub trait RowSink: Send {
    /// A table begins.
    ///
    /// # Errors
    /// When it cannot be written.
    fn begin_table(&mut self, table: &TableInfo) -> Result<()>;

    /// A row of that table.
    ///
    /// # Errors
    /// When it cannot be written.
    fn row(&mut self, row: &RowView<'_>) -> Result<()>;

    /// The table is over.
    ///
    /// # Errors
    /// When it cannot be written.
    fn end_table(&mut self) -> Result<()>;

    /// Nothing more follows. Called by the owner of the sink, not by the pipeline that fills it.
    ///
    /// # Errors
    /// When what was buffered cannot be written.
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}
