//! The entries that an index should have for the rows of its table.

use crate::error::{Error, Result};
use crate::format::record::encode_record;
use crate::format::{Fields, Value};
use crate::ids::wide;
use crate::recover::live::LiveRow;
use crate::schema::IndexSource;
use crate::sort::key::KeyOrder;
use crate::survey::compute::{Computer, Outcome};
use crate::survey::plan::{Constant, IndexPlan, Row, TablePlan};

/// The order of an index. Unknown collations count as BINARY: only automatic indexes come here with one, and a copy without
/// them would not open.
pub(crate) fn order(index: &IndexPlan, plan: &TablePlan) -> Result<KeyOrder> {
    let binary = crate::schema::Collation::Binary;
    let columns = index.columns.iter().map(|c| (if c.collation.is_known() { &c.collation } else { &binary }, c.desc));
    KeyOrder::new(columns, plan.encoding).ok_or_else(|| Error::inconsistent("an order of known collations is not known"))
}

/// Makes the entries of one index; keeps its buffers.
#[derive(Debug)]
pub(crate) struct EntryMaker<'p> {
    plan: &'p TablePlan,
    index: &'p IndexPlan,
    computer: Computer<'p>,
    fields: Fields,
    values: Vec<Constant>,
    record: Vec<u8>,
}

impl<'p> EntryMaker<'p> {
    /// For the rows of one table.
    pub(crate) fn new(plan: &'p TablePlan, index: &'p IndexPlan) -> EntryMaker<'p> {
        EntryMaker { plan, index, computer: Computer::new(plan), fields: Fields::new(), values: Vec::new(), record: Vec::new() }
    }

    /// Makes the entry of a row; `false` when a partial index has none for it.
    pub(crate) fn make(&mut self, row: &LiveRow<'_>) -> bool {
        if self.fields.read(row.record, wide(row.record.len())).is_err() {
            return false;
        }
        let r = Row { rowid: row.rowid, payload: row.record, fields: &self.fields };
        if let Some(condition) = &self.index.condition
            && self.computer.truth(&r, condition) != Outcome::True
        {
            return false;
        }
        self.values.clear();
        for column in &self.index.columns {
            let value = match &column.source {
                IndexSource::Rowid => Constant::from(r.rowid.map_or(Value::Null, Value::Int)),
                IndexSource::Column(i) => match self.plan.raw_value(&r, *i) {
                    Some(value) => Constant::from(value),
                    None => self.computer.column(&r, *i).unwrap_or_default(),
                },
                IndexSource::Expr(expr) => self.computer.value(&r, expr).unwrap_or_default(),
            };
            self.values.push(value);
        }
        self.record.clear();
        encode_record(&mut self.record, self.values.iter().map(Constant::value));
        true
    }

    /// The values of the entry just made.
    pub(crate) fn values(&self) -> impl Iterator<Item = Value<'_>> {
        self.values.iter().map(Constant::value)
    }

    /// The values that UNIQUE covers.
    pub(crate) fn unique_values(&self) -> impl Iterator<Item = Value<'_>> {
        self.values.iter().take(self.index.unique).map(Constant::value)
    }

    /// The record of the entry just made.
    pub(crate) fn record(&self) -> &[u8] {
        &self.record
    }
}
