//! Rows without their values: what is left is the class and the length of each.

use super::{ColumnInfo, RowSink, RowView, TableInfo};
use crate::error::Result;
use crate::format::{Encoding, Value};
use crate::ids::wide;
use crate::report::human::counted;

/// The class and the length of a value in words; NULL stays NULL.
#[must_use]
pub fn class_and_length(value: Value<'_>, encoding: Encoding) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Int(_) => "an integer".to_owned(),
        Value::Real(_) => "a real".to_owned(),
        Value::Text(stored) => match std::str::from_utf8(&encoding.to_utf8(stored)) {
            Ok(text) if encoding.is_valid(stored) => format!("text of {}", counted(wide(text.chars().count()), "character")),
            _ => format!("ill-formed text of {}", counted(wide(stored.len()), "byte")),
        },
        Value::Blob(bytes) => format!("a BLOB of {}", counted(wide(bytes.len()), "byte")),
    }
}

/// A sink between a reading pipeline and another one: it hands on no value and no rowid, which is a value under another name.
#[expect(missing_debug_implementations, reason = "the sink behind it has none")]
pub struct Redacted<'s> {
    to: &'s mut dyn RowSink,
    encoding: Encoding,
}

impl<'s> Redacted<'s> {
    /// A sink that hands on to `to`.
    pub fn new(to: &'s mut dyn RowSink) -> Redacted<'s> {
        Redacted { to, encoding: Encoding::Utf8 }
    }
}

impl RowSink for Redacted<'_> {
    fn begin_table(&mut self, table: &TableInfo) -> Result<()> {
        self.encoding = table.encoding;
        // The text of the declaration may hold values (DEFAULT, CHECK), and the words have no place in typed columns.
        let columns = table.columns.iter().map(|c| ColumnInfo { rowid_alias: false, generated: false, ..c.clone() }).collect();
        self.to.begin_table(&TableInfo { encoding: Encoding::Utf8, has_rowid: false, sql: None, columns, ..table.clone() })
    }

    fn row(&mut self, row: &RowView<'_>) -> Result<()> {
        let words: Vec<Option<String>> =
            row.values.iter().map(|v| (!matches!(v, Value::Null)).then(|| class_and_length(*v, self.encoding))).collect();
        let values: Vec<Value<'_>> = words.iter().map(|w| w.as_ref().map_or(Value::Null, |w| Value::Text(w.as_bytes()))).collect();
        self.to.row(&RowView { rowid: None, values: &values, ..*row })
    }

    fn end_table(&mut self) -> Result<()> {
        self.to.end_table()
    }
}
