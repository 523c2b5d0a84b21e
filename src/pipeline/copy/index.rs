//! An index into the copy: taken over entry by entry where it equals its table, built from the rows where it does not.

use std::io::{Seek, Write};

use crate::build::key::KeyOrder;
use crate::build::sort::Sorter;
use crate::build::{DatabaseWriter, IndexTree};
use crate::ctx::Ctx;
use crate::error::Result;
use crate::finding::{Findings, Site};
use crate::format::record::encode_record;
use crate::format::{Fields, Value};
use crate::ids::{ObjectId, RootPage, wide};
use crate::recover::live::{LiveRow, rows};
use crate::schema::{IndexSource, ObjectKind};
use crate::survey::compute::{Computer, Outcome};
use crate::survey::plan::{Constant, IndexPlan, Row, TablePlan};
use crate::survey::{Content, IndexFit, Survey};
use crate::tree::cells::visit;
use crate::tree::payload::PayloadReader;

use super::{Copied, Target, inconsistent, sort_memory};

/// Writes an index; nothing for other objects.
pub(crate) fn write<W: Write + Seek>(
    survey: &Survey<'_>,
    id: ObjectId,
    root: RootPage,
    copied: &Copied,
    target: &Target<'_>,
    db: &mut DatabaseWriter<W>,
    ctx: &Ctx,
) -> Result<()> {
    let Some(object) = survey.catalog.get(id).filter(|o| o.kind == ObjectKind::Index) else { return Ok(()) };
    let table = object.table.ok_or_else(|| inconsistent("an index without a table stands in the copy"))?;
    let mut tree = IndexTree::new(db, root);
    let selection = copied.selections.get(&table);
    let surveyed = survey.tree_of(id);
    if let Some((t, Content::Index { scan, fit: IndexFit::Equal, .. })) = surveyed.and_then(|t| Some((t, t.content.as_ref()?)))
        && scan.ordered
        && scan.duplicates == 0
        && selection.is_some_and(|s| s.is_all())
    {
        let mut reader = PayloadReader::new();
        visit(&survey.pages, &t.tree.slots, Site::default(), false, &mut Findings::new(0), ctx, |_, at| {
            match reader.read(&survey.pages, &at.cell) {
                Ok(payload) => tree.push(db, &[payload]),
                Err(_) => Err(inconsistent("an entry of a whole index does not read")),
            }
        })?;
        tree.finish(db)?;
        ctx.progress.advance(wide(t.tree.slots.len()));
        return Ok(());
    }
    let Some((t, Content::Table { plan, .. })) = survey.tree_of(table).and_then(|t| Some((t, t.content.as_ref()?))) else {
        // A table without a tree has no rows.
        tree.finish(db)?;
        return Ok(());
    };
    let Some(index) = plan.indexes.iter().find(|i| i.object == id) else {
        return Err(inconsistent("an index stands in the copy that its table does not know"));
    };
    let none = crate::recover::Selection::default();
    let mut sorter = Sorter::new(sort_memory(ctx), target.folder);
    let order = order(index, plan)?;
    let mut maker = EntryMaker::new(plan, index);
    let mut key = Vec::new();
    rows(&survey.pages, &t.tree.slots, plan, selection.unwrap_or(&none), ctx, |row| {
        if maker.make(&row) {
            key.clear();
            order.encode(&mut key, maker.values());
            sorter.push(&key, maker.record())?;
        }
        Ok(())
    })?;
    let mut sorted = sorter.finish()?;
    while let Some((_, record)) = sorted.next()? {
        tree.push(db, &[record])?;
    }
    tree.finish(db)?;
    ctx.progress.advance(surveyed.map_or(0, |t| wide(t.tree.slots.len())));
    Ok(())
}

/// The order of an index. Unknown collations count as BINARY: only automatic indexes come here with one, and a copy without
/// them would not open.
pub(crate) fn order(index: &IndexPlan, plan: &TablePlan) -> Result<KeyOrder> {
    let binary = crate::schema::Collation::Binary;
    let columns = index.columns.iter().map(|c| (if c.collation.is_known() { &c.collation } else { &binary }, c.desc));
    KeyOrder::new(columns, plan.encoding).ok_or_else(|| inconsistent("an order of known collations is not known"))
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
