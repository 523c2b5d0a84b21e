//! Rows that UNIQUE does not let stand together, settled before anything is written.
//!
//! Tests:    keys of tables that are out of order, keys of UNIQUE indexes that are not whole.
//! Collects: rows to exclude.
//! Leaves:   nothing: after it every key stands once.

use crate::build::sort::Sorter;
use crate::ctx::Ctx;
use crate::error::Result;
use crate::finding::Code;
use crate::ids::{ObjectId, PageNo};
use crate::recover::Selection;
use crate::recover::live::rows;
use crate::survey::plan::{IndexPlan, TablePlan};
use crate::survey::table::Excluded;
use crate::survey::{Content, IndexFit, Survey};
use crate::tree::Slot;

use super::index::{EntryMaker, order};
use super::table::{place_of, twice};
use super::{Copied, Target, sort_memory};

/// Settles all tables.
pub(crate) fn settle(survey: &Survey<'_>, copied: &mut Copied, target: &Target<'_>, ctx: &Ctx) -> Result<()> {
    for t in &survey.trees {
        let Some(Content::Table { plan, scan }) = &t.content else { continue };
        let Some(selection) = copied.selections.get_mut(&t.object) else { continue };
        if !scan.ordered {
            twice(survey, plan, &t.tree.slots, selection, target, ctx)?;
        }
        for index in plan.indexes.iter().filter(|i| i.unique > 0 && i.computable) {
            if !is_whole(survey, index.object) {
                one_index(survey, plan, index, &t.tree.slots, selection, target, ctx)?;
            }
        }
    }
    Ok(())
}

fn is_whole(survey: &Survey<'_>, index: ObjectId) -> bool {
    survey.tree_of(index).is_some_and(|t| match &t.content {
        Some(Content::Index { scan, fit, .. }) => *fit == IndexFit::Equal && scan.ordered && scan.duplicates == 0,
        _ => false,
    })
}

fn one_index(
    survey: &Survey<'_>,
    plan: &TablePlan,
    index: &IndexPlan,
    slots: &[Slot],
    selection: &mut Selection,
    target: &Target<'_>,
    ctx: &Ctx,
) -> Result<()> {
    let mut sorter = Sorter::new(sort_memory(ctx), target.folder);
    let order = order(index, plan)?;
    let mut maker = EntryMaker::new(plan, index);
    let (mut key, mut place) = (Vec::new(), Vec::new());
    rows(&survey.pages, slots, plan, selection, ctx, |row| {
        // NULL is never equal to another NULL under UNIQUE.
        if !maker.make(&row) || maker.unique_values().any(|v| v.is_null()) {
            return Ok(());
        }
        key.clear();
        order.encode(&mut key, maker.unique_values());
        place.clear();
        place.extend_from_slice(&row.page.get().to_be_bytes());
        place.extend_from_slice(&row.cell.to_be_bytes());
        place.extend_from_slice(&row.rowid.unwrap_or(0).to_be_bytes());
        sorter.push(&key, &place)
    })?;
    let mut sorted = sorter.finish()?;
    let mut last: Option<Vec<u8>> = None;
    let mut losers: Vec<((PageNo, u16), i64)> = Vec::new();
    while let Some((key, place)) = sorted.next()? {
        if last.as_deref() == Some(key) {
            let rowid = crate::bytes::u64_at(place, 6).map_or(0, |n| i64::from_ne_bytes(n.to_ne_bytes()));
            losers.extend(place_of(place).map(|p| (p, rowid)));
        } else {
            last = Some(key.to_vec());
        }
    }
    for ((page, cell), rowid) in losers {
        let rowid = plan.key.is_none().then_some(rowid);
        selection.exclude(Excluded { page, cell, rowid, code: Code::UniqueBroken, got: u64::from(index.object.0) });
    }
    Ok(())
}
