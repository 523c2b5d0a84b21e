//! Changes of the profile to a copy: a database with the rows of the copy and the changed ones, over which `recover` makes the
//! copy anew. Indexes of changed tables stand empty in it and search indexes as they were: `recover` builds both from the rows.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Seek, Write};
use std::path::Path;

use crate::ctx::Ctx;
use crate::error::{Error, Result};
use crate::finding::{Findings, Site};
use crate::format::record::encode_record;
use crate::format::{Encoding, Fields, Value};
use crate::ids::{ObjectId, PageNo, RootPage, wide};
use crate::recover::{Selection, rows};
use crate::schema::ObjectKind;
use crate::survey::plan::{Constant, Row, TablePlan};
use crate::survey::{Content, Survey};
use crate::tree::cells::visit;
use crate::tree::payload::PayloadReader;
use crate::write::copy::schema::in_order;
use crate::write::{DatabaseWriter, IndexTree, Settings, TableTree};

/// Changes to one table with rowids.
#[derive(Debug, Clone, Default)]
pub(crate) struct TableChange {
    /// Rows in the columns of the table, by rowid: new ones, and those that take the place of what stands there.
    pub(crate) rows: BTreeMap<i64, Vec<Constant>>,
    /// Rows that go.
    pub(crate) drop: BTreeSet<i64>,
    /// Columns in which NULL becomes this value.
    pub(crate) fill: BTreeMap<String, Constant>,
}

impl TableChange {
    /// Whether nothing changes.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.drop.is_empty() && self.fill.is_empty()
    }
}

/// Changes by the name of the table.
pub(crate) type Changes = BTreeMap<String, TableChange>;

/// Writes the changed database to `path` and returns how many rows each changed table has.
///
/// # Errors
/// I/O, limits, cancellation.
pub(crate) fn write(base: &Survey<'_>, changes: &Changes, path: &Path, ctx: &Ctx) -> Result<BTreeMap<String, u64>> {
    let settings =
        Settings::from_header(&base.header).ok_or_else(|| Error::inconsistent("the page size of the copy could not be settled"))?;
    let file = File::options().read(true).write(true).create_new(true).open(path).map_err(|e| Error::io(path, "create", e))?;
    let mut db = DatabaseWriter::new(&file, path, settings)?;
    let objects: Vec<ObjectId> =
        in_order(&base.catalog).into_iter().filter(|o| o.kind.has_tree() && o.id != ObjectId::SCHEMA).map(|o| o.id).collect();
    let roots: BTreeMap<ObjectId, RootPage> = objects.iter().copied().zip(db.reserve_roots(objects.len())?).collect();
    let changed = |id: ObjectId| {
        let name = base.catalog.get(id)?.name.text();
        changes.get(&name).filter(|c| !c.is_empty()).map(|c| (name, c))
    };
    let mut counts = BTreeMap::new();
    for (id, root) in &roots {
        let Some(object) = base.catalog.get(*id) else { continue };
        match object.kind {
            ObjectKind::Table if object.is_without_rowid() => keyed(base, *id, *root, &mut db, ctx)?,
            ObjectKind::Table => {
                let none = TableChange::default();
                let change = changed(*id);
                let rows = table(base, *id, change.as_ref().map_or(&none, |c| c.1), *root, &mut db, ctx)?;
                if let Some((name, _)) = change {
                    counts.insert(name, rows);
                }
            }
            _ => index(base, *id, object.table.and_then(changed).is_some(), *root, &mut db, ctx)?,
        }
    }
    schema(base, &roots, &mut db)?;
    db.finish()?;
    file.sync_data().map_err(|e| Error::io(path, "write", e))?;
    Ok(counts)
}

/// A row in the record order of its table, text in the encoding of the database.
fn record(plan: &TablePlan, values: &[Constant], encoding: Encoding, out: &mut Vec<u8>) {
    let stored: Vec<Constant> = plan
        .stored
        .iter()
        .map(|column| match values.get(*column) {
            _ if plan.alias == Some(*column) => Constant::Null,
            Some(Constant::Text(t)) if encoding != Encoding::Utf8 => Constant::Text(encoding.from_utf8(t).into_owned()),
            Some(other) => other.clone(),
            None => Constant::Null,
        })
        .collect();
    out.clear();
    encode_record(out, stored.iter().map(Constant::value));
}

fn table<W: Write + Seek>(
    base: &Survey<'_>,
    id: ObjectId,
    change: &TableChange,
    root: RootPage,
    db: &mut DatabaseWriter<W>,
    ctx: &Ctx,
) -> Result<u64> {
    let mut out = TableTree::new(db, root);
    let mut count = 0_u64;
    let mut fresh = change.rows.iter().peekable();
    let Some((plan, slots)) = base.tree_of(id).and_then(|t| match &t.content {
        Some(Content::Table { plan, .. }) => Some((plan.as_ref(), t.tree.slots.as_slice())),
        _ => None,
    }) else {
        out.finish(db)?;
        return Ok(0);
    };
    let fill: BTreeMap<usize, &Constant> =
        change.fill.iter().filter_map(|(name, v)| Some((plan.columns.iter().position(|c| c.name == *name)?, v))).collect();
    let (mut made, mut fields) = (Vec::new(), Fields::new());
    rows(&base.pages, slots, plan, &Selection::default(), ctx, |row| {
        let rowid = row.rowid.unwrap_or(0);
        while let Some((at, values)) = fresh.next_if(|(at, _)| **at < rowid) {
            record(plan, values, base.encoding, &mut made);
            count = count.saturating_add(1);
            out.push(db, *at, &[&made])?;
        }
        if let Some((at, values)) = fresh.next_if(|(at, _)| **at == rowid) {
            record(plan, values, base.encoding, &mut made);
            count = count.saturating_add(1);
            return out.push(db, *at, &[&made]);
        }
        if change.drop.contains(&rowid) {
            return Ok(());
        }
        count = count.saturating_add(1);
        if !fill.is_empty() && fields.read(row.record, wide(row.record.len())).is_ok() {
            let seen = Row { rowid: row.rowid, payload: row.record, fields: &fields };
            if fill.keys().any(|c| plan.raw_value(&seen, *c).is_some_and(Value::is_null)) {
                let columns = plan.stored.iter().map(|c| match plan.raw_value(&seen, *c) {
                    _ if plan.alias == Some(*c) => Value::Null,
                    Some(Value::Null) | None => fill.get(c).map_or(Value::Null, |v| v.value()),
                    Some(other) => other,
                });
                let columns: Vec<Value<'_>> = columns.collect();
                made.clear();
                encode_record(&mut made, columns.into_iter());
                return out.push(db, rowid, &[&made]);
            }
        }
        out.push(db, rowid, &[row.record])
    })?;
    for (at, values) in fresh {
        record(plan, values, base.encoding, &mut made);
        count = count.saturating_add(1);
        out.push(db, *at, &[&made])?;
    }
    out.finish(db)?;
    Ok(count)
}

fn keyed<W: Write + Seek>(base: &Survey<'_>, id: ObjectId, root: RootPage, db: &mut DatabaseWriter<W>, ctx: &Ctx) -> Result<()> {
    let mut out = IndexTree::new(db, root);
    if let Some(t) = base.tree_of(id)
        && let Some(Content::Table { plan, .. }) = &t.content
    {
        rows(&base.pages, &t.tree.slots, plan, &Selection::default(), ctx, |row| out.push(db, &[row.record]))?;
    }
    out.finish(db)?;
    Ok(())
}

fn index<W: Write + Seek>(
    base: &Survey<'_>,
    id: ObjectId,
    stale: bool,
    root: RootPage,
    db: &mut DatabaseWriter<W>,
    ctx: &Ctx,
) -> Result<()> {
    let mut out = IndexTree::new(db, root);
    if let Some(t) = base.tree_of(id).filter(|_| !stale) {
        let mut reader = PayloadReader::new();
        visit(&base.pages, &t.tree.slots, Site::default(), false, &mut Findings::new(0), ctx, |_, at| {
            match reader.read(&base.pages, &at.cell) {
                Ok(payload) => out.push(db, &[payload]),
                // The entry is built anew with its index.
                Err(_) => Ok(()),
            }
        })?;
    }
    out.finish(db)?;
    Ok(())
}

/// `sqlite_schema` with the new roots.
fn schema<W: Write + Seek>(base: &Survey<'_>, roots: &BTreeMap<ObjectId, RootPage>, db: &mut DatabaseWriter<W>) -> Result<()> {
    let mut tree = TableTree::new(db, RootPage(PageNo::ONE));
    let (mut last, mut made) = (0_i64, Vec::new());
    for object in in_order(&base.catalog) {
        let Some(row) = &object.row else { continue };
        let text = |b: &[u8]| base.encoding.from_utf8(b).into_owned();
        let (kind, name, table, sql) = (text(&row.kind), text(&row.name), text(&row.table), row.sql.as_deref().map(text));
        let root = roots.get(&object.id).map_or(0, |r| i64::from(r.0.get()));
        let sql = sql.as_deref().map_or(Value::Null, Value::Text);
        made.clear();
        encode_record(&mut made, [Value::Text(&kind), Value::Text(&name), Value::Text(&table), Value::Int(root), sql].into_iter());
        last = if row.rowid > last { row.rowid } else { last.saturating_add(1) };
        tree.push(db, last, &[&made])?;
    }
    tree.finish(db)?;
    Ok(())
}
