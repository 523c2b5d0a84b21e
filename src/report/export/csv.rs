//! Comma-separated values that still tell NULL from empty and text from numbers.

use std::fmt::Write as _;
use std::io::Write;

use super::literal::{hex, real, write_error};
use super::{RowSink, RowView, TableInfo};
use crate::error::Result;
use crate::format::{Encoding, Value};

/// Writes a header line and one record a row (RFC 4180, lines end with a line feed).
///
/// Quotes carry meaning: text is always quoted and nothing else ever is. An empty field is NULL, `""` is empty text, `12`
/// is a number and `"12"` text, `x'00ff'` a BLOB and `"x'00ff'"` text. The first column is the rowid, unless a column
/// of the table is the rowid or the table has none.
#[derive(Debug)]
pub struct Csv<W> {
    out: W,
    encoding: Encoding,
    with_rowid: bool,
    line: String,
}

impl<W: Write> Csv<W> {
    /// A sink that writes to `out`.
    pub fn new(out: W) -> Csv<W> {
        Csv { out, encoding: Encoding::Utf8, with_rowid: false, line: String::new() }
    }
}

fn quoted(out: &mut String, text: &str) {
    out.push('"');
    out.push_str(&text.replace('"', "\"\""));
    out.push('"');
}

fn field(out: &mut String, value: Value<'_>, encoding: Encoding) {
    match value {
        Value::Null => {}
        Value::Int(n) => {
            let _ = write!(out, "{n}");
        }
        Value::Real(r) if r.is_nan() => out.push_str("nan"),
        Value::Real(r) if r.is_infinite() => out.push_str(if r > 0.0 { "inf" } else { "-inf" }),
        Value::Real(r) => real(out, r),
        Value::Text(stored) => {
            let utf8 = encoding.to_utf8(stored);
            match std::str::from_utf8(&utf8) {
                Ok(text) if encoding.is_valid(stored) => quoted(out, text),
                _ => {
                    out.push_str("t'");
                    hex(out, stored);
                    out.push('\'');
                }
            }
        }
        Value::Blob(bytes) => {
            out.push_str("x'");
            hex(out, bytes);
            out.push('\'');
        }
    }
}

impl<W: Write + Send> RowSink for Csv<W> {
    fn begin_table(&mut self, table: &TableInfo) -> Result<()> {
        self.encoding = table.encoding;
        self.with_rowid = table.has_rowid && !table.columns.iter().any(|c| c.rowid_alias);
        self.line.clear();
        let rowid = self.with_rowid.then_some(super::sql::rowid_name(table)).flatten().or(self.with_rowid.then_some("rowid"));
        for (i, name) in rowid.into_iter().chain(table.columns.iter().map(|c| c.name.as_str())).enumerate() {
            if i > 0 {
                self.line.push(',');
            }
            quoted(&mut self.line, name);
        }
        self.line.push('\n');
        self.out.write_all(self.line.as_bytes()).map_err(write_error)
    }

    fn row(&mut self, row: &RowView<'_>) -> Result<()> {
        self.line.clear();
        if self.with_rowid {
            if let Some(rowid) = row.rowid {
                let _ = write!(self.line, "{rowid}");
            }
            self.line.push(',');
        }
        for (i, value) in row.values.iter().enumerate() {
            if i > 0 {
                self.line.push(',');
            }
            field(&mut self.line, *value, self.encoding);
        }
        self.line.push('\n');
        self.out.write_all(self.line.as_bytes()).map_err(write_error)
    }

    fn end_table(&mut self) -> Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        self.out.flush().map_err(write_error)
    }
}
