//! A database with the rows of the copy and the chosen ones: tables merged, indexes over them built anew, everything else as
//! it is. Full-text indexes over the changed tables are stale in it; `recover` builds them when it makes the copy.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Seek, Write};
use std::path::Path;

use crate::ctx::Ctx;
use crate::error::{Error, Result};
use crate::finding::{Findings, Site};
use crate::format::record::encode_record;
use crate::format::{Fields, Value};
use crate::ids::{ObjectId, PageNo, RootPage, wide};
use crate::recover::entries::{EntryMaker, order};
use crate::recover::{Selection, rows};
use crate::schema::{Family, ObjectKind};
use crate::sort::Sorter;
use crate::survey::plan::Row;
use crate::survey::{Content, Survey, SurveyedTree};
use crate::tree::cells::visit;
use crate::tree::payload::PayloadReader;
use crate::write::copy::schema::in_order;
use crate::write::{DatabaseWriter, IndexTree, Settings, TableTree};

use super::chosen::Target;
use super::merge::{Extras, merged};
use super::settle::Decisions;
use super::{Highest, Wanted};

/// Writes it to `path`.
pub(super) fn write(
    base: &Survey<'_>,
    aside: &Survey<'_>,
    targets: &[Target<'_>],
    wanted: &Wanted,
    decisions: &Decisions,
    path: &Path,
    folder: &Path,
    ctx: &Ctx,
) -> Result<()> {
    let settings = Settings::from_header(&base.header)
        .ok_or_else(|| Error::Usage { what: "the page size of the copy could not be settled".to_owned() })?;
    let file = File::options().read(true).write(true).create(true).truncate(true).open(path).map_err(|e| Error::io(path, "create", e))?;
    let mut db = DatabaseWriter::new(&file, path, settings)?;
    let objects: Vec<ObjectId> =
        in_order(&base.catalog).into_iter().filter(|o| o.kind.has_tree() && o.id != ObjectId::SCHEMA).map(|o| o.id).collect();
    let roots: BTreeMap<ObjectId, RootPage> = objects.iter().copied().zip(db.reserve_roots(objects.len())?).collect();
    let work = Work { base, aside, wanted, decisions, folder };
    for (id, root) in &roots {
        let Some(object) = base.catalog.get(*id) else { continue };
        let tree = base.tree_of(*id);
        let of = |table: ObjectId| targets.iter().find(|t| t.plan.object == table);
        match object.kind {
            ObjectKind::Table => match (of(*id), tree) {
                (Some(target), _) => work.table(target, *root, &mut db, ctx)?,
                (None, tree) => work.same_table(object.is_without_rowid(), tree, object.family == Family::Sequence, *root, &mut db, ctx)?,
            },
            _ => match object.table.and_then(of) {
                Some(target) => work.index(target, *id, *root, &mut db, ctx)?,
                None => work.same_index(tree, *root, &mut db, ctx)?,
            },
        }
    }
    schema(base, &roots, &mut db)?;
    db.finish()?;
    file.sync_data().map_err(|e| Error::io(path, "write", e))
}

struct Work<'w, 'a> {
    base: &'w Survey<'a>,
    aside: &'w Survey<'a>,
    wanted: &'w Wanted,
    decisions: &'w Decisions,
    folder: &'w Path,
}

impl Work<'_, '_> {
    fn extras(&self, target: &Target<'_>, ctx: &Ctx) -> Result<Extras> {
        Extras::new(self.aside, target, self.wanted, self.decisions, self.folder, ctx)
    }

    fn table<W: Write + Seek>(&self, target: &Target<'_>, root: RootPage, db: &mut DatabaseWriter<W>, ctx: &Ctx) -> Result<()> {
        let mut extras = self.extras(target, ctx)?;
        if target.order.is_some() {
            let mut tree = IndexTree::new(db, root);
            merged(self.base, target, &mut extras, ctx, |row, _| tree.push(db, &[row.record]))?;
            tree.finish(db)?;
        } else {
            let mut tree = TableTree::new(db, root);
            merged(self.base, target, &mut extras, ctx, |row, _| tree.push(db, row.rowid.unwrap_or(0), &[row.record]))?;
            tree.finish(db)?;
        }
        Ok(())
    }

    fn index<W: Write + Seek>(
        &self,
        target: &Target<'_>,
        id: ObjectId,
        root: RootPage,
        db: &mut DatabaseWriter<W>,
        ctx: &Ctx,
    ) -> Result<()> {
        let Some(index) = target.plan.indexes.iter().find(|i| i.object == id) else {
            return Err(Error::Usage { what: "the table has an index that cannot be read; rows of it cannot be restored".to_owned() });
        };
        let mut extras = self.extras(target, ctx)?;
        let mut sorter = Sorter::new(ctx.sort_memory(), self.folder);
        let order = order(index, target.plan)?;
        let mut maker = EntryMaker::new(target.plan, index);
        let mut key = Vec::new();
        merged(self.base, target, &mut extras, ctx, |row, _| {
            if maker.make(&row) {
                key.clear();
                order.encode(&mut key, maker.values());
                sorter.push(&key, maker.record())?;
            }
            Ok(())
        })?;
        let mut sorted = sorter.finish()?;
        let mut tree = IndexTree::new(db, root);
        while let Some((_, record)) = sorted.next()? {
            tree.push(db, &[record])?;
        }
        tree.finish(db)?;
        Ok(())
    }

    fn same_table<W: Write + Seek>(
        &self,
        without_rowid: bool,
        tree: Option<&SurveyedTree>,
        is_sequence: bool,
        root: RootPage,
        db: &mut DatabaseWriter<W>,
        ctx: &Ctx,
    ) -> Result<()> {
        let content = tree.and_then(|t| match &t.content {
            Some(Content::Table { plan, .. }) => Some((plan, &t.tree.slots)),
            _ => None,
        });
        if without_rowid {
            let mut out = IndexTree::new(db, root);
            if let Some((plan, slots)) = content {
                rows(&self.base.pages, slots, plan, &Selection::default(), ctx, |row| out.push(db, &[row.record]))?;
            }
            out.finish(db)?;
            return Ok(());
        }
        let mut raised = if is_sequence { by_name(self.base, &self.decisions.highest) } else { BTreeMap::new() };
        let mut out = TableTree::new(db, root);
        let mut last = 0_i64;
        if let Some((plan, slots)) = content {
            let (mut fields, mut record) = (Fields::new(), Vec::new());
            rows(&self.base.pages, slots, plan, &Selection::default(), ctx, |row| {
                let rowid = row.rowid.unwrap_or(0);
                last = last.max(rowid);
                if !raised.is_empty() && fields.read(row.record, wide(row.record.len())).is_ok() {
                    let seen = Row { rowid: row.rowid, payload: row.record, fields: &fields };
                    if let (Some(Value::Text(name)), Some(Value::Int(seq))) = (plan.raw_value(&seen, 0), plan.raw_value(&seen, 1))
                        && let Some(highest) = raised.remove(name)
                        && highest > seq
                    {
                        record.clear();
                        encode_record(&mut record, [Value::Text(name), Value::Int(highest)].into_iter());
                        return out.push(db, rowid, &[&record]);
                    }
                }
                out.push(db, rowid, &[row.record])
            })?;
        }
        for (name, highest) in raised {
            let mut record = Vec::new();
            encode_record(&mut record, [Value::Text(&name), Value::Int(highest)].into_iter());
            last = last.saturating_add(1);
            out.push(db, last, &[&record])?;
        }
        out.finish(db)?;
        Ok(())
    }

    fn same_index<W: Write + Seek>(
        &self,
        tree: Option<&SurveyedTree>,
        root: RootPage,
        db: &mut DatabaseWriter<W>,
        ctx: &Ctx,
    ) -> Result<()> {
        let mut out = IndexTree::new(db, root);
        if let Some(t) = tree {
            let mut reader = PayloadReader::new();
            visit(&self.base.pages, &t.tree.slots, Site::default(), false, &mut Findings::new(0), ctx, |_, at| {
                match reader.read(&self.base.pages, &at.cell) {
                    Ok(payload) => out.push(db, &[payload]),
                    // The entry is built anew with its index when the copy is made.
                    Err(_) => Ok(()),
                }
            })?;
        }
        out.finish(db)?;
        Ok(())
    }
}

/// The highest rowids by the stored name of the table.
fn by_name(base: &Survey<'_>, highest: &Highest) -> BTreeMap<Vec<u8>, i64> {
    let name = |id: &ObjectId| base.catalog.get(*id).map(|o| base.encoding.from_utf8(o.name.text().as_bytes()).into_owned());
    highest.iter().filter_map(|(id, n)| Some((name(id)?, *n))).collect()
}

/// `sqlite_schema` with the new roots.
fn schema<W: Write + Seek>(base: &Survey<'_>, roots: &BTreeMap<ObjectId, RootPage>, db: &mut DatabaseWriter<W>) -> Result<()> {
    let mut tree = TableTree::new(db, RootPage(PageNo::ONE));
    let mut last = 0_i64;
    let mut record = Vec::new();
    for object in in_order(&base.catalog) {
        let Some(row) = &object.row else { continue };
        let text = |b: &[u8]| base.encoding.from_utf8(b).into_owned();
        let (kind, name, table, sql) = (text(&row.kind), text(&row.name), text(&row.table), row.sql.as_deref().map(text));
        let root = roots.get(&object.id).map_or(0, |r| i64::from(r.0.get()));
        let values = [
            Value::Text(&kind),
            Value::Text(&name),
            Value::Text(&table),
            Value::Int(root),
            sql.as_deref().map_or(Value::Null, Value::Text),
        ];
        record.clear();
        encode_record(&mut record, values.into_iter());
        last = if row.rowid > last { row.rowid } else { last.saturating_add(1) };
        tree.push(db, last, &[&record])?;
    }
    tree.finish(db)?;
    Ok(())
}
