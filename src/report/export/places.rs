//! Rows with the place that holds them, in columns in front of their own.

use super::{ColumnInfo, RowSink, RowView, TableInfo};
use crate::error::Result;
use crate::format::{Encoding, Value};

/// Where the cell of a row stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Place<'a> {
    /// How its page came to its table: `live` or `adopted`.
    pub how: &'a str,
    /// What the page was read from: `main`, `wal frame 7`, `journal record 3`.
    pub source: &'a str,
    /// The page's number, from 1.
    pub page: u32,
    /// The cell's index in the page, from 0.
    pub cell: u16,
}

/// The columns that come first, named as in the salvage database.
const COLUMNS: [&str; 4] = ["rp_how", "rp_source", "rp_page", "rp_cell"];

/// A sink between a reading pipeline and another one: it hands on each row with its place in front.
#[expect(missing_debug_implementations, reason = "the sink behind it has none")]
pub struct WithPlaces<'s> {
    to: &'s mut dyn RowSink,
    encoding: Encoding,
}

impl<'s> WithPlaces<'s> {
    /// A sink that hands on to `to`.
    pub fn new(to: &'s mut dyn RowSink) -> WithPlaces<'s> {
        WithPlaces { to, encoding: Encoding::Utf8 }
    }
}

impl RowSink for WithPlaces<'_> {
    fn begin_table(&mut self, table: &TableInfo) -> Result<()> {
        self.encoding = table.encoding;
        let mut columns: Vec<ColumnInfo> = Vec::new();
        for name in COLUMNS {
            let mut name = name.to_owned();
            while table.columns.iter().any(|c| c.name.eq_ignore_ascii_case(&name)) {
                name.insert_str(0, "rp_");
            }
            columns.push(ColumnInfo { name, ..ColumnInfo::default() });
        }
        columns.extend(table.columns.iter().cloned());
        self.to.begin_table(&TableInfo { columns, ..table.clone() })
    }

    fn row(&mut self, row: &RowView<'_>) -> Result<()> {
        let (how, source) = (self.encoding.from_utf8(row.place.how.as_bytes()), self.encoding.from_utf8(row.place.source.as_bytes()));
        let (page, cell) = (Value::Int(i64::from(row.place.page)), Value::Int(i64::from(row.place.cell)));
        let place = [Value::Text(&how), Value::Text(&source), page, cell];
        let values: Vec<Value<'_>> = place.into_iter().chain(row.values.iter().copied()).collect();
        self.to.row(&RowView { values: &values, ..*row })
    }

    fn end_table(&mut self) -> Result<()> {
        self.to.end_table()
    }
}
