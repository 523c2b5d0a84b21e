//! One table of one side: its rows in the order in which they are paired, and their values.

use crate::ctx::Ctx;
use crate::error::Result;
use crate::format::{Encoding, Fields, Value};
use crate::ids::{PageNo, wide};
use crate::recover::live::{self, RowReader};
use crate::recover::stream::{place_of, rowid_key, sorted_by};
use crate::recover::{LiveRow, Selection};
use crate::report::diff::{Change, ColumnChange, Named, RowDiff, TableSide, json};
use crate::schema::Object;
use crate::sort::Sorted;
use crate::survey::compute::Computer;
use crate::survey::plan::{Constant, Row, TablePlan};
use crate::survey::{Content, Survey, SurveyedTree, TableScan};
use crate::verbs::rows::values;

use super::Wanted;
use super::pairing::{Pairing, Which};

/// Rows between two reports of progress.
const STEP: u64 = 4096;

/// A table of one side.
pub(crate) struct Table<'s> {
    survey: &'s Survey<'s>,
    tree: &'s SurveyedTree,
    scan: &'s TableScan,
    selection: Selection,
    /// How its rows are read.
    pub(crate) plan: &'s TablePlan,
    /// The columns of its declared primary key.
    pub(crate) primary_key: Vec<String>,
}

impl<'s> Table<'s> {
    /// `None` when nothing says how its rows are read.
    pub(crate) fn new(survey: &'s Survey<'s>, object: &'s Object, wanted: &Wanted<'_>) -> Option<Table<'s>> {
        let tree = survey.tree_of(object.id)?;
        let Some(Content::Table { plan, scan }) = &tree.content else { return None };
        let key = object.table_def().and_then(|t| t.primary_key.as_ref());
        let name = |i: usize| plan.columns.get(i).map(|c| c.name.clone());
        Some(Table {
            survey,
            tree,
            scan,
            selection: Selection::of(scan, wanted.keep_violations),
            plan,
            primary_key: key.into_iter().flat_map(|k| &k.columns).filter_map(|c| name(c.column)).collect(),
        })
    }

    /// Rows that `rows` gives, as the scan counted them.
    pub(crate) fn rows(&self) -> u64 {
        self.scan.cells.saturating_sub(wide(self.selection.excluded.len()))
    }

    /// What is said of the table on this side.
    pub(crate) fn side(&self, rows: u64) -> TableSide {
        let damaged = !self.scan.damaged.is_empty() || self.tree.tree.holes() > 0;
        TableSide { rows, set_aside: wide(self.selection.excluded.len()), damaged }
    }
}

/// The rows of a table, one at a time, with their keys.
pub(crate) struct Rows<'t> {
    table: &'t Table<'t>,
    pairing: &'t Pairing,
    which: Which,
    source: Source<'t>,
    fields: Fields,
    last: Vec<u8>,
    told: u64,
    /// The key of the current row: bytes that order as SQLite orders the values.
    pub(crate) key: Vec<u8>,
    /// Its rowid.
    pub(crate) rowid: Option<i64>,
    /// Its record.
    pub(crate) record: Vec<u8>,
    /// Where it stands: the page of its cell, and the cell.
    pub(crate) place: (PageNo, u16),
    /// Whether a key was below the one before.
    pub(crate) descends: bool,
}

enum Source<'t> {
    Tree(live::Rows<'t, 't>),
    Sorted(Sorted, RowReader<'t, 't>),
}

impl<'t> Rows<'t> {
    /// The rows in the order of the pairing: as the tree has them where that is this order, else sorted.
    pub(crate) fn new(table: &'t Table<'t>, pairing: &'t Pairing, which: Which, sorted: bool, ctx: &Ctx) -> Result<Rows<'t>> {
        let (survey, plan, slots, selection) = (table.survey, table.plan, &table.tree.tree.slots, &table.selection);
        let source = if table.scan.ordered && pairing.natural_order() && !sorted {
            Source::Tree(live::Rows::new(&survey.pages, slots, plan, selection))
        } else {
            let mut fields = Fields::new();
            let folder = std::env::temp_dir();
            let entries = sorted_by(survey, plan, slots, selection, &folder, ctx, |row, key| {
                put_key(plan, pairing, which, row.rowid, row.record, &mut fields, key);
            })?;
            Source::Sorted(entries, RowReader::new(&survey.pages, plan, selection))
        };
        Ok(Rows {
            table,
            pairing,
            which,
            source,
            fields: Fields::new(),
            last: Vec::new(),
            told: 0,
            key: Vec::new(),
            rowid: None,
            record: Vec::new(),
            place: (PageNo::ONE, 0),
            descends: false,
        })
    }

    /// Goes to the next row; `false` when there is none.
    pub(crate) fn advance(&mut self, ctx: &Ctx) -> Result<bool> {
        let (record, rowid, at) = (&mut self.record, &mut self.rowid, &mut self.place);
        let mut take = |row: LiveRow<'_>| {
            *at = (row.page, row.cell);
            record.clear();
            record.extend_from_slice(row.record);
            *rowid = row.rowid;
        };
        let more = match &mut self.source {
            Source::Tree(rows) => rows.next(ctx, take)?.is_some(),
            Source::Sorted(entries, reader) => loop {
                let Some((_, place)) = entries.next()? else { break false };
                if let Some(row) = place_of(place).and_then(|(page, cell)| reader.at(page, cell)) {
                    take(row);
                    break true;
                }
            },
        };
        if !more {
            ctx.progress.advance(self.told);
            self.told = 0;
            return Ok(false);
        }
        self.told = self.told.saturating_add(1);
        if self.told == STEP {
            ctx.check()?;
            ctx.progress.advance(self.told);
            self.told = 0;
        }
        std::mem::swap(&mut self.last, &mut self.key);
        self.key.clear();
        put_key(self.table.plan, self.pairing, self.which, self.rowid, &self.record, &mut self.fields, &mut self.key);
        self.descends |= self.key < self.last;
        Ok(true)
    }

    fn encoding(&self) -> Encoding {
        self.table.plan.encoding
    }

    /// The current row with its key and all its values; what became of it is for the caller to say.
    pub(crate) fn told(&mut self) -> RowDiff {
        let (plan, encoding) = (self.table.plan, self.encoding());
        let mut computed = Vec::new();
        let _ = self.fields.read(&self.record, wide(self.record.len()));
        let row = Row { rowid: self.rowid, payload: &self.record, fields: &self.fields };
        let all = values(plan, &row, &mut computed);
        let named = |i: usize| {
            Some(Named { column: plan.columns.get(i)?.name.clone(), value: json(all.get(i).copied().unwrap_or(Value::Null), encoding) })
        };
        let key = match self.pairing.key_columns(self.which) {
            Some(columns) => columns.filter_map(named).collect(),
            None => self.pairing.names.iter().map(|n| Named { column: n.clone(), value: self.rowid.into() }).collect(),
        };
        RowDiff { change: Change::Changed, key, values: (0..all.len()).filter_map(named).collect(), columns: Vec::new() }
    }
}

/// Appends the key of a row.
fn put_key(plan: &TablePlan, pairing: &Pairing, which: Which, rowid: Option<i64>, record: &[u8], fields: &mut Fields, out: &mut Vec<u8>) {
    let Some(columns) = pairing.key_columns(which) else {
        out.extend_from_slice(&rowid_key(rowid.unwrap_or(0)));
        return;
    };
    if fields.read(record, wide(record.len())).is_err() {
        return;
    }
    let row = Row { rowid, payload: record, fields };
    let computer = Computer::new(plan);
    let key: Vec<Constant> =
        columns.map(|i| plan.stored_value(&row, i).map_or_else(|| computer.read(&row, i).unwrap_or_default(), Constant::from)).collect();
    pairing.encode(out, key.iter().map(Constant::value), plan.encoding);
}

/// The columns in which the current rows of both sides differ; `None` when they do not.
pub(crate) fn changes(a: &mut Rows<'_>, b: &mut Rows<'_>) -> Option<RowDiff> {
    // A record that does not decode has no fields, and all its values are NULL or defaults.
    let _ = a.fields.read(&a.record, wide(a.record.len()));
    let _ = b.fields.read(&b.record, wide(b.record.len()));
    let (row_a, row_b) =
        (Row { rowid: a.rowid, payload: &a.record, fields: &a.fields }, Row { rowid: b.rowid, payload: &b.record, fields: &b.fields });
    let (mut computed_a, mut computed_b) = (Vec::new(), Vec::new());
    let (values_a, values_b) = (values(a.table.plan, &row_a, &mut computed_a), values(b.table.plan, &row_b, &mut computed_b));
    let (e, f) = (a.encoding(), b.encoding());
    let mut columns = Vec::new();
    for (name, i, j) in &a.pairing.common {
        let (x, y) = (values_a.get(*i).copied().unwrap_or(Value::Null), values_b.get(*j).copied().unwrap_or(Value::Null));
        if !same(x, e, y, f) {
            columns.push(ColumnChange { column: name.clone(), a: json(x, e), b: json(y, f) });
        }
    }
    if columns.is_empty() {
        return None;
    }
    Some(RowDiff { values: Vec::new(), columns, ..a.told() })
}

/// Whether two values are the same: class and content. Text is compared as text where both files hold it well-formed.
fn same(a: Value<'_>, e: Encoding, b: Value<'_>, f: Encoding) -> bool {
    match (a, b) {
        (Value::Real(x), Value::Real(y)) => x.to_bits() == y.to_bits(),
        (Value::Text(x), Value::Text(y)) if e != f => e.is_valid(x) && f.is_valid(y) && e.to_utf8(x) == f.to_utf8(y),
        _ => a == b,
    }
}

/// About how much memory a listed row takes.
pub(crate) fn size(row: &RowDiff) -> usize {
    let value = |v: &serde_json::Value| match v {
        serde_json::Value::String(s) => s.len(),
        serde_json::Value::Object(o) => o.values().filter_map(serde_json::Value::as_str).map(str::len).sum(),
        _ => 8,
    };
    let named: usize = row.key.iter().chain(&row.values).map(|n| n.column.len().saturating_add(value(&n.value)).saturating_add(64)).sum();
    let columns: usize =
        row.columns.iter().map(|c| c.column.len().saturating_add(value(&c.a)).saturating_add(value(&c.b)).saturating_add(96)).sum();
    named.saturating_add(columns).saturating_add(96)
}
