//! What stands around a sink: the first rows kept for the report, values hidden where that is asked for.

use std::collections::BTreeMap;

use crate::carve::{CarveSink, CarvedRow, CarvedTable};
use crate::error::Result;
use crate::format::{Encoding, Value};
use crate::report::export::sql_literal;
use crate::report::model::CarvedSample;

/// Rows of a table that are kept.
const KEPT: usize = 8;
/// Characters of a value that are kept.
const LONG: usize = 60;

/// Keeps the first rows of each table, and hides values.
pub struct Watched<'s> {
    inner: &'s mut dyn CarveSink,
    redact: bool,
    encoding: Encoding,
    /// Which table the rows belong to, counted from 0.
    table: Option<usize>,
    /// The first rows, by table in the order of the run.
    pub samples: BTreeMap<usize, Vec<CarvedSample>>,
}

impl std::fmt::Debug for Watched<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watched").field("redact", &self.redact).finish_non_exhaustive()
    }
}

impl<'s> Watched<'s> {
    /// Around a sink.
    pub fn new(inner: &'s mut dyn CarveSink, redact: bool) -> Watched<'s> {
        Watched { inner, redact, encoding: Encoding::Utf8, table: None, samples: BTreeMap::new() }
    }
}

/// The class and the length of a value.
fn hidden(value: Value<'_>) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Int(_) => "(integer)".to_owned(),
        Value::Real(_) => "(real)".to_owned(),
        Value::Text(t) => format!("(text, {} bytes)", t.len()),
        Value::Blob(b) => format!("(blob, {} bytes)", b.len()),
    }
}

impl CarveSink for Watched<'_> {
    fn begin_table(&mut self, table: &CarvedTable<'_>) -> Result<()> {
        self.encoding = table.encoding;
        self.table = Some(table.no);
        self.inner.begin_table(table)
    }

    fn row(&mut self, row: &CarvedRow<'_>) -> Result<()> {
        let kept = self.samples.entry(self.table.unwrap_or(0)).or_default();
        if kept.len() < KEPT {
            let literal = |v: &Option<Value<'_>>| match v {
                None => "?".to_owned(),
                Some(v) if self.redact => hidden(*v),
                Some(v) => {
                    let mut text = String::new();
                    sql_literal(&mut text, *v, self.encoding);
                    if text.chars().count() > LONG { text.chars().take(LONG).chain("...".chars()).collect() } else { text }
                }
            };
            kept.push(CarvedSample {
                rowid: row.rowid.filter(|_| !self.redact),
                relation: row.relation.word().to_owned(),
                page: row.page,
                place: format!("{}, offset {}, {} bytes", row.place, row.offset, row.length),
                values: row.values.iter().map(literal).collect(),
            });
        }
        if !self.redact {
            return self.inner.row(row);
        }
        let hide = |v: &Value<'_>| self.encoding.from_utf8(hidden(*v).as_bytes()).into_owned();
        let values: Vec<Option<Vec<u8>>> = row.values.iter().map(|v| v.as_ref().map(hide)).collect();
        let surplus: Vec<Vec<u8>> = row.surplus.iter().map(hide).collect();
        self.inner.row(&CarvedRow {
            values: values.iter().map(|v| v.as_deref().map(Value::Text)).collect(),
            surplus: surplus.iter().map(|v| Value::Text(v)).collect(),
            source: row.source.clone(),
            place: row.place.clone(),
            candidates: row.candidates.clone(),
            gone: row.gone.clone(),
            // A rowid may be a value that was entered.
            rowid: None,
            ..*row
        })
    }

    fn finish(&mut self) -> Result<()> {
        self.inner.finish()
    }
}
