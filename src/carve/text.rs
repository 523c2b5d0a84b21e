//! Carved rows as lines: JSON or comma-separated values.

use std::io::Write;

use serde::Serialize;

use crate::carve::blob;
use crate::carve::{CarveSink, CarvedRow, CarvedTable};
use crate::error::{Error, Result};
use crate::format::{Encoding, Value};
use crate::report::export::{Json, sql_literal};

fn write_error(e: std::io::Error) -> Error {
    Error::io(std::path::Path::new("standard output"), "write", e)
}

/// A BLOB with what it is.
#[derive(Serialize)]
struct Blob {
    column: String,
    kind: &'static str,
    bytes: u64,
    sha256: String,
}

fn blobs(columns: &[String], row: &CarvedRow<'_>) -> Vec<Blob> {
    let values = columns.iter().zip(&row.values);
    values
        .filter_map(|(column, v)| match v {
            Some(Value::Blob(b)) => {
                Some(Blob { column: column.clone(), kind: blob::kind(b), bytes: crate::ids::wide(b.len()), sha256: blob::sha256(b) })
            }
            _ => None,
        })
        .collect()
}

/// One JSON object a row.
#[derive(Debug)]
pub struct Lines<W> {
    out: W,
    table: String,
    columns: Vec<String>,
    encoding: Encoding,
    line: Vec<u8>,
}

impl<W: Write> Lines<W> {
    /// A sink that writes to `out`.
    pub fn new(out: W) -> Lines<W> {
        Lines { out, table: String::new(), columns: Vec::new(), encoding: Encoding::Utf8, line: Vec::new() }
    }

    fn put(&mut self, what: &impl Serialize) {
        // Plain values into memory: serialising them cannot fail.
        let _ = serde_json::to_writer(&mut self.line, what);
    }

    fn field(&mut self, name: &str, what: &impl Serialize) {
        self.line.push(b',');
        self.put(&name);
        self.line.push(b':');
        self.put(what);
    }
}

impl<W: Write + Send> CarveSink for Lines<W> {
    fn begin_table(&mut self, table: &CarvedTable<'_>) -> Result<()> {
        table.name.clone_into(&mut self.table);
        self.columns = table.columns.iter().map(|c| (*c).to_owned()).collect();
        self.encoding = table.encoding;
        Ok(())
    }

    fn row(&mut self, row: &CarvedRow<'_>) -> Result<()> {
        self.line.clear();
        self.line.extend_from_slice(br#"{"table":"#);
        let table = std::mem::take(&mut self.table);
        self.put(&table);
        self.table = table;
        if let Some(rowid) = row.rowid {
            self.field("rowid", &rowid);
        }
        self.line.extend_from_slice(br#","values":{"#);
        let columns = std::mem::take(&mut self.columns);
        let mut first = true;
        for (column, value) in columns.iter().zip(&row.values) {
            let Some(value) = value else { continue };
            if !first {
                self.line.push(b',');
            }
            first = false;
            self.put(column);
            self.line.push(b':');
            self.put(&Json(*value, self.encoding));
        }
        self.line.push(b'}');
        self.field("relation", &row.relation.word());
        self.field("complete", &row.complete);
        self.field("how", &row.how.word());
        self.field("trust", &row.trust);
        self.field("source", &row.source);
        self.field("place", &row.place);
        self.field("page", &row.page);
        self.field("offset", &row.offset);
        self.field("length", &row.length);
        if row.solutions > 1 {
            self.field("solutions", &row.solutions);
        }
        if !row.candidates.is_empty() {
            self.field("candidates", &row.candidates);
        }
        if !row.gone.is_empty() {
            self.field("gone", &row.gone);
        }
        if !row.more.is_empty() {
            self.field("copies", &row.more);
        }
        if !row.surplus.is_empty() {
            let surplus: Vec<Json<'_>> = row.surplus.iter().map(|v| Json(*v, self.encoding)).collect();
            self.field("surplus", &surplus);
        }
        let blobs = blobs(&columns, row);
        if !blobs.is_empty() {
            self.field("blobs", &blobs);
        }
        self.columns = columns;
        self.line.extend_from_slice(b"}\n");
        self.out.write_all(&self.line).map_err(write_error)
    }

    fn finish(&mut self) -> Result<()> {
        self.out.flush().map_err(write_error)
    }
}

/// RFC 4180, one table.
#[derive(Debug)]
pub struct Table<W> {
    out: W,
    encoding: Encoding,
    line: String,
}

impl<W: Write> Table<W> {
    /// A sink that writes to `out`.
    pub fn new(out: W) -> Table<W> {
        Table { out, encoding: Encoding::Utf8, line: String::new() }
    }

    fn quoted(&mut self, text: &str) {
        self.line.push('"');
        self.line.push_str(&text.replace('"', "\"\""));
        self.line.push('"');
    }

    fn value(&mut self, value: Value<'_>) {
        match value {
            Value::Null => {}
            Value::Text(t) => {
                let utf8 = self.encoding.to_utf8(t);
                match std::str::from_utf8(&utf8) {
                    Ok(text) => self.quoted(text),
                    Err(_) => sql_literal(&mut self.line, Value::Blob(t), self.encoding),
                }
            }
            other => sql_literal(&mut self.line, other, self.encoding),
        }
    }

    fn send(&mut self) -> Result<()> {
        self.line.push_str("\r\n");
        self.out.write_all(self.line.as_bytes()).map_err(write_error)?;
        self.line.clear();
        Ok(())
    }
}

impl<W: Write + Send> CarveSink for Table<W> {
    fn begin_table(&mut self, table: &CarvedTable<'_>) -> Result<()> {
        self.encoding = table.encoding;
        self.line
            .push_str("rp_relation,rp_complete,rp_how,rp_trust,rp_source,rp_place,rp_page,rp_offset,rp_length,rp_copies,rp_gone,rp_rowid");
        for column in &table.columns {
            self.line.push(',');
            let column = (*column).to_owned();
            self.quoted(&column);
        }
        self.send()
    }

    fn row(&mut self, row: &CarvedRow<'_>) -> Result<()> {
        for word in [row.relation.word(), if row.complete { "1" } else { "0" }, row.how.word(), row.trust] {
            self.line.push_str(word);
            self.line.push(',');
        }
        self.quoted(&row.source.clone());
        self.line.push(',');
        self.quoted(&row.place.clone());
        self.line.push_str(&format!(",{},{},{},{},", row.page, row.offset, row.length, row.more.len()));
        self.quoted(&row.gone.clone());
        self.line.push(',');
        self.line.push_str(&row.rowid.map(|r| r.to_string()).unwrap_or_default());
        for value in &row.values {
            self.line.push(',');
            if let Some(value) = value {
                self.value(*value);
            }
        }
        self.send()
    }

    fn finish(&mut self) -> Result<()> {
        self.out.flush().map_err(write_error)
    }
}
