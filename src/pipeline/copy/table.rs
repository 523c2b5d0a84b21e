//! A table into the copy: its rows in key order, each once.

use std::io::{Seek, Write};
use std::path::Path;

use crate::build::key::KeyOrder;
use crate::build::sort::{Sorted, Sorter};
use crate::build::{DatabaseWriter, IndexTree, TableTree};
use crate::bytes::{u16_at, u32_at};
use crate::ctx::Ctx;
use crate::error::Result;
use crate::format::{Fields, Value};
use crate::ids::{ObjectId, PageNo, RootPage, wide};
use crate::recover::Selection;
use crate::recover::live::{LiveRow, RowReader, rows};
use crate::survey::entry::{EntryHash, EntrySum};
use crate::survey::plan::TablePlan;
use crate::survey::{Content, Survey};
use crate::tree::Slot;

use super::{Copied, Target, Written, sort_memory};

/// Writes a table; `None` when the object is none, or nothing is known of its rows.
pub(crate) fn write<W: Write + Seek>(
    survey: &Survey<'_>,
    id: ObjectId,
    root: RootPage,
    copied: &Copied,
    target: &Target<'_>,
    db: &mut DatabaseWriter<W>,
    ctx: &Ctx,
) -> Result<Option<Written>> {
    let Some(object) = survey.catalog.get(id).filter(|o| o.kind == crate::schema::ObjectKind::Table) else { return Ok(None) };
    let none = Selection::default();
    let selection = copied.selections.get(&id).unwrap_or(&none);
    let mut sum = EntrySum::default();
    let empty: (Option<&TablePlan>, &[Slot], bool) = (None, &[], true);
    let (plan, slots, ordered) = match survey.tree_of(id).and_then(|t| Some((t, t.content.as_ref()?))) {
        Some((t, Content::Table { plan, scan })) => (Some(plan.as_ref()), t.tree.slots.as_slice(), scan.ordered),
        _ => empty,
    };
    if object.is_without_rowid() {
        let mut tree = IndexTree::new(db, root);
        if let Some(plan) = plan {
            each_in_order(survey, plan, slots, ordered, selection, target, ctx, |row| {
                sum.add(row_hash(&row));
                step(&sum, ctx);
                tree.push(db, &[row.record])
            })?;
        }
        tree.finish(db)?;
    } else {
        let mut tree = TableTree::new(db, root);
        if let Some(plan) = plan {
            each_in_order(survey, plan, slots, ordered, selection, target, ctx, |row| {
                sum.add(row_hash(&row));
                step(&sum, ctx);
                tree.push(db, row.rowid.unwrap_or(0), &[row.record])
            })?;
        }
        tree.finish(db)?;
    }
    ctx.progress.advance(sum.count % STEP);
    Ok(Some(Written { rows: sum.count, sum }))
}

/// Rows between two reports of progress.
const STEP: u64 = 4096;

fn step(sum: &EntrySum, ctx: &Ctx) {
    if sum.count.is_multiple_of(STEP) {
        ctx.progress.advance(STEP);
    }
}

/// What the read-back compares: the rowid and every byte of the record.
pub(crate) fn row_hash(row: &LiveRow<'_>) -> EntryHash {
    hash_of(row.rowid, row.record)
}

/// As [`row_hash`], of a row that is in no page yet.
pub(crate) fn hash_of(rowid: Option<i64>, record: &[u8]) -> EntryHash {
    EntryHash::default().add(rowid.map_or(Value::Null, Value::Int)).add(Value::Blob(record))
}

/// The rows of a table in key order. A tree whose keys ascend is streamed; another is sorted by reference first.
pub(crate) fn each_in_order(
    survey: &Survey<'_>,
    plan: &TablePlan,
    slots: &[Slot],
    ordered: bool,
    selection: &Selection,
    target: &Target<'_>,
    ctx: &Ctx,
    mut f: impl FnMut(LiveRow<'_>) -> Result<()>,
) -> Result<()> {
    if ordered {
        return rows(&survey.pages, slots, plan, selection, ctx, f);
    }
    let mut sorted = by_reference(survey, plan, slots, selection, target, ctx)?;
    let mut reader = RowReader::new(&survey.pages, plan, selection);
    while let Some((_, place)) = sorted.next()? {
        ctx.check()?;
        let Some((page, cell)) = place_of(place) else { continue };
        if let Some(row) = reader.at(page, cell) {
            f(row)?;
        }
    }
    Ok(())
}

/// All rows as (key, place), sorted by key; equal keys in the order of the tree.
pub(crate) fn by_reference(
    survey: &Survey<'_>,
    plan: &TablePlan,
    slots: &[Slot],
    selection: &Selection,
    target: &Target<'_>,
    ctx: &Ctx,
) -> Result<Sorted> {
    let order = key_order(plan);
    let mut fields = Fields::new();
    sorted_by(survey, plan, slots, selection, target.folder, ctx, |row, key| match (&order, row.rowid) {
        (Some(order), None) if fields.read(row.record, wide(row.record.len())).is_ok() => {
            order.encode(key, fields.values(row.record).take(plan.key.as_ref().map_or(0, |k| k.columns.len())));
        }
        (_, rowid) => key.extend_from_slice(&rowid_key(rowid.unwrap_or(0))),
    })
}

/// All rows as (key, place), sorted by the key that `key_of` appends; equal keys in the order of the tree.
pub(crate) fn sorted_by(
    survey: &Survey<'_>,
    plan: &TablePlan,
    slots: &[Slot],
    selection: &Selection,
    folder: &Path,
    ctx: &Ctx,
    mut key_of: impl FnMut(&LiveRow<'_>, &mut Vec<u8>),
) -> Result<Sorted> {
    let mut sorter = Sorter::new(sort_memory(ctx), folder);
    let mut key = Vec::new();
    let mut place = Vec::new();
    rows(&survey.pages, slots, plan, selection, ctx, |row| {
        key.clear();
        key_of(&row, &mut key);
        place.clear();
        place.extend_from_slice(&row.page.get().to_be_bytes());
        place.extend_from_slice(&row.cell.to_be_bytes());
        sorter.push(&key, &place)
    })?;
    sorter.finish()
}

/// A rowid as bytes that order as the number.
pub(crate) fn rowid_key(rowid: i64) -> [u8; 8] {
    (u64::from_ne_bytes(rowid.to_ne_bytes()) ^ (1 << 63)).to_be_bytes()
}

/// The key of a WITHOUT ROWID table; `None` for a rowid table, or under an unknown collation.
pub(crate) fn key_order(plan: &TablePlan) -> Option<KeyOrder> {
    let key = plan.key.as_ref()?;
    KeyOrder::new(key.columns.iter().map(|c| (&c.collation, c.desc)), plan.encoding)
}

pub(crate) fn place_of(b: &[u8]) -> Option<(PageNo, u16)> {
    Some((PageNo::new(u32_at(b, 0)?)?, u16_at(b, 4)?))
}
