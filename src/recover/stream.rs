//! The live rows of a table as a stream: in key order, or sorted by a key that the caller makes, by reference to their cells.

use std::path::Path;

use crate::bytes::{u16_at, u32_at};
use crate::ctx::Ctx;
use crate::error::Result;
use crate::format::Fields;
use crate::ids::{PageNo, wide};
use crate::recover::Selection;
use crate::recover::live::{LiveRow, RowReader, rows};
use crate::sort::key::KeyOrder;
use crate::sort::{Sorted, Sorter};
use crate::survey::Survey;
use crate::survey::plan::TablePlan;
use crate::tree::Slot;

/// The rows of a table in key order. A tree whose keys ascend is streamed; another is sorted by reference first.
pub(crate) fn each_in_order(
    survey: &Survey<'_>,
    plan: &TablePlan,
    slots: &[Slot],
    ordered: bool,
    selection: &Selection,
    folder: &Path,
    ctx: &Ctx,
    mut f: impl FnMut(LiveRow<'_>) -> Result<()>,
) -> Result<()> {
    if ordered {
        return rows(&survey.pages, slots, plan, selection, ctx, f);
    }
    let mut sorted = by_reference(survey, plan, slots, selection, folder, ctx)?;
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
    folder: &Path,
    ctx: &Ctx,
) -> Result<Sorted> {
    let order = key_order(plan);
    let mut fields = Fields::new();
    sorted_by(survey, plan, slots, selection, folder, ctx, |row, key| match (&order, row.rowid) {
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
    let mut sorter = Sorter::new(ctx.sort_memory(), folder);
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
