//! One JSON object a row.

use std::io::Write;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::literal::{hex, write_error};
use super::{RowSink, RowView, TableInfo};
use crate::error::Result;
use crate::format::{Encoding, Value};

/// Writes `{"table":"t","rowid":1,"values":{"a":1,"b":null}}`, one line a row. Rows of a WITHOUT ROWID table have no `rowid`.
#[derive(Debug)]
pub struct JsonLines<W> {
    out: W,
    /// Everything before the rowid or the values: the same for all rows of a table.
    head: Vec<u8>,
    columns: Vec<Vec<u8>>,
    encoding: Encoding,
    line: Vec<u8>,
}

impl<W: Write> JsonLines<W> {
    /// A sink that writes to `out`.
    pub fn new(out: W) -> JsonLines<W> {
        JsonLines { out, head: Vec::new(), columns: Vec::new(), encoding: Encoding::Utf8, line: Vec::new() }
    }
}

/// A value as JSON has it: NULL, numbers and sound text as such, all else as an object that names its class.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Json<'v>(pub(crate) Value<'v>, pub(crate) Encoding);

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> std::result::Result<S::Ok, S::Error> {
        let hexed = |bytes: &[u8]| {
            let mut text = String::new();
            hex(&mut text, bytes);
            text
        };
        let object = |out: S, fields: &[(&str, &str)]| {
            let mut map = out.serialize_map(Some(fields.len()))?;
            for (key, value) in fields {
                map.serialize_entry(key, value)?;
            }
            map.end()
        };
        match self.0 {
            Value::Null => out.serialize_none(),
            Value::Int(n) => out.serialize_i64(n),
            Value::Real(r) if r.is_nan() => object(out, &[("real", "nan")]),
            Value::Real(r) if r.is_infinite() => object(out, &[("real", if r > 0.0 { "inf" } else { "-inf" })]),
            Value::Real(r) => out.serialize_f64(r),
            Value::Text(stored) => {
                let utf8 = self.1.to_utf8(stored);
                match (std::str::from_utf8(&utf8), self.1) {
                    (Ok(text), encoding) if encoding.is_valid(stored) => out.serialize_str(text),
                    (_, Encoding::Utf8) => object(out, &[("text", &hexed(stored))]),
                    (_, Encoding::Utf16Le) => object(out, &[("text", &hexed(stored)), ("encoding", "utf-16le")]),
                    (_, Encoding::Utf16Be) => object(out, &[("text", &hexed(stored)), ("encoding", "utf-16be")]),
                }
            }
            Value::Blob(bytes) => object(out, &[("blob", &hexed(bytes))]),
        }
    }
}

/// Appends something that always has a JSON form.
fn put(out: &mut Vec<u8>, what: &impl Serialize) {
    // Plain values into memory: serialising them cannot fail.
    let _ = serde_json::to_writer(out, what);
}

impl<W: Write + Send> RowSink for JsonLines<W> {
    fn begin_table(&mut self, table: &TableInfo) -> Result<()> {
        self.head.clear();
        self.head.extend_from_slice(br#"{"table":"#);
        put(&mut self.head, &table.name);
        self.columns = table
            .columns
            .iter()
            .map(|c| {
                let mut key = Vec::new();
                put(&mut key, &c.name);
                key
            })
            .collect();
        self.encoding = table.encoding;
        Ok(())
    }

    fn row(&mut self, row: &RowView<'_>) -> Result<()> {
        self.line.clear();
        self.line.extend_from_slice(&self.head);
        if let Some(rowid) = row.rowid {
            self.line.extend_from_slice(br#","rowid":"#);
            put(&mut self.line, &rowid);
        }
        self.line.extend_from_slice(br#","values":{"#);
        for (i, (key, v)) in self.columns.iter().zip(row.values).enumerate() {
            if i > 0 {
                self.line.push(b',');
            }
            self.line.extend_from_slice(key);
            self.line.push(b':');
            put(&mut self.line, &Json(*v, self.encoding));
        }
        self.line.extend_from_slice(b"}}\n");
        self.out.write_all(&self.line).map_err(write_error)
    }

    fn end_table(&mut self) -> Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        self.out.flush().map_err(write_error)
    }
}
