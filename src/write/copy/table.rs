//! A table into the copy: its rows in key order, each once.

use std::io::{Seek, Write};

use crate::ctx::Ctx;
use crate::error::Result;
use crate::format::Value;
use crate::ids::{ObjectId, RootPage};
use crate::recover::Selection;
use crate::recover::live::LiveRow;
use crate::recover::stream::each_in_order;
use crate::survey::entry::{EntryHash, EntrySum};
use crate::survey::plan::TablePlan;
use crate::survey::{Content, Survey};
use crate::tree::Slot;
use crate::write::{DatabaseWriter, IndexTree, TableTree};

use super::{Copied, Target, Written};

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
            each_in_order(survey, plan, slots, ordered, selection, target.folder, ctx, |row| {
                sum.add(row_hash(&row));
                step(&sum, ctx);
                tree.push(db, &[row.record])
            })?;
        }
        tree.finish(db)?;
    } else {
        let mut tree = TableTree::new(db, root);
        if let Some(plan) = plan {
            each_in_order(survey, plan, slots, ordered, selection, target.folder, ctx, |row| {
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
