//! One JSON object a row.

use std::fmt::Write as _;
use std::io::Write;

use super::literal::{hex, real, write_error};
use super::{RowSink, RowView, TableInfo};
use crate::error::Result;
use crate::format::{Encoding, Value};

/// Writes `{"table":"t","rowid":1,"values":{"a":1,"b":null}}`, one line a row. Rows of a WITHOUT ROWID table have no `rowid`.
#[derive(Debug)]
pub struct JsonLines<W> {
    out: W,
    /// Everything before the rowid or the values: the same for all rows of a table.
    head: String,
    columns: Vec<String>,
    encoding: Encoding,
    line: String,
}

impl<W: Write> JsonLines<W> {
    /// A sink that writes to `out`.
    pub fn new(out: W) -> JsonLines<W> {
        JsonLines { out, head: String::new(), columns: Vec::new(), encoding: Encoding::Utf8, line: String::new() }
    }
}

fn string(out: &mut String, text: &str) {
    // Serialising text to a string cannot fail.
    out.push_str(&serde_json::to_string(text).unwrap_or_default());
}

fn value(out: &mut String, value: Value<'_>, encoding: Encoding) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Int(n) => {
            let _ = write!(out, "{n}");
        }
        Value::Real(r) if r.is_nan() => out.push_str(r#"{"real":"nan"}"#),
        Value::Real(r) if r.is_infinite() => out.push_str(if r > 0.0 { r#"{"real":"inf"}"# } else { r#"{"real":"-inf"}"# }),
        Value::Real(r) => real(out, r),
        Value::Text(stored) => {
            let utf8 = encoding.to_utf8(stored);
            match std::str::from_utf8(&utf8) {
                Ok(text) if encoding.is_valid(stored) => string(out, text),
                _ => {
                    out.push_str(r#"{"text":""#);
                    hex(out, stored);
                    out.push_str(match encoding {
                        Encoding::Utf8 => r#""}"#,
                        Encoding::Utf16Le => r#"","encoding":"utf-16le"}"#,
                        Encoding::Utf16Be => r#"","encoding":"utf-16be"}"#,
                    });
                }
            }
        }
        Value::Blob(bytes) => {
            out.push_str(r#"{"blob":""#);
            hex(out, bytes);
            out.push_str(r#""}"#);
        }
    }
}

impl<W: Write> RowSink for JsonLines<W> {
    fn begin_table(&mut self, table: &TableInfo) -> Result<()> {
        self.head.clear();
        self.head.push_str(r#"{"table":"#);
        string(&mut self.head, &table.name);
        self.columns = table
            .columns
            .iter()
            .map(|c| {
                let mut key = String::new();
                string(&mut key, &c.name);
                key
            })
            .collect();
        self.encoding = table.encoding;
        Ok(())
    }

    fn row(&mut self, row: &RowView<'_>) -> Result<()> {
        self.line.clear();
        self.line.push_str(&self.head);
        if let Some(rowid) = row.rowid {
            let _ = write!(self.line, r#","rowid":{rowid}"#);
        }
        self.line.push_str(r#","values":{"#);
        for (i, (key, v)) in self.columns.iter().zip(row.values).enumerate() {
            if i > 0 {
                self.line.push(',');
            }
            self.line.push_str(key);
            self.line.push(':');
            value(&mut self.line, *v, self.encoding);
        }
        self.line.push_str("}}\n");
        self.out.write_all(self.line.as_bytes()).map_err(write_error)
    }

    fn end_table(&mut self) -> Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        self.out.flush().map_err(write_error)
    }
}
