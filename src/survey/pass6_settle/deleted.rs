//! Rows that came back and that a whole index does not know.
//!
//! Tests:    each row of an adopted leaf, and each cell without a pointer, against the indexes of its table.
//! Collects: rows that were deleted before the damage; they are set aside.
//! Leaves:   rows of tables without a whole index: nothing speaks against them.

use std::collections::BTreeMap;

use rayon::prelude::*;

use crate::ctx::Ctx;
use crate::error::Result;
use crate::finding::{Code, Defect, Site};
use crate::ids::PageNo;
use crate::survey::pass4_compare::compare::{Sides, witness};
use crate::survey::scans::table::Excluded;
use crate::survey::stages::{Content, Scanned};
use crate::tree::Slot;
use crate::tree::mend::UNNAMED;

/// Rows of adopted leaves that a whole index of their table does not know were deleted: they are excluded. Where no whole
/// index stands, nothing speaks against them.
///
/// # Errors
/// Cancellation only.
pub(super) fn set_aside(survey: &mut Scanned<'_>, ctx: &Ctx) -> Result<()> {
    if survey.adopted.is_empty() && survey.unnamed.is_empty() {
        return Ok(());
    }
    let mut excluded: Vec<(usize, Vec<Excluded>)> = Vec::new();
    for (i, t) in survey.trees.iter().enumerate() {
        let Some(Content::Table { plan, .. }) = &t.content else { continue };
        let came_back = |no: &PageNo| survey.adopted.contains(no) || survey.unnamed.contains(no);
        let slots: Vec<Slot> = t
            .tree
            .slots
            .iter()
            .filter(|s| matches!(s, Slot::Leaf { page, .. } | Slot::Entry { page, .. } if came_back(page)))
            .copied()
            .collect();
        let mut gone: BTreeMap<(PageNo, u16), Excluded> = BTreeMap::new();
        for (index, index_slots) in plan.indexes.iter().filter_map(|p| Some((p, witness(survey, p)?))).filter(|_| !slots.is_empty()) {
            let sides =
                Sides { pages: &survey.pages, table_slots: &slots, table_plan: plan, index_slots, plan: index, encoding: survey.encoding };
            let mut known: Vec<u64> = Vec::new();
            sides.each_entry(ctx, &mut |s| known.push(s.hash))?;
            known.par_sort_unstable();
            sides.each_row(ctx, &mut |s| {
                // A cell that its pointer names is live, whatever the index says.
                let doubtful = survey.adopted.contains(&s.page) || s.cell >= UNNAMED;
                if doubtful && known.binary_search(&s.hash).is_err() {
                    let got = u64::from(index.object.0);
                    let row = Excluded { page: s.page, cell: s.cell, rowid: s.rowid, code: Code::DeletedRow, got };
                    gone.entry((s.page, s.cell)).or_insert(row);
                }
            })?;
        }
        excluded.push((i, gone.into_values().collect::<Vec<_>>()));
    }
    for (i, gone) in excluded {
        let Scanned { known, trees, findings, .. } = &mut *survey;
        let Some(t) = trees.get_mut(i) else { continue };
        let object = t.object;
        if let Some(Content::Table { scan, .. }) = &mut t.content {
            for e in gone {
                let (defect, site) =
                    (Defect::new(Code::DeletedRow, 0, e.got, 0), known.pages.site(Site::object(object), e.page).cell(e.cell));
                match e.rowid {
                    Some(rowid) => findings.add_with(defect, site, format!("rowid {rowid}")),
                    None => findings.add(defect, site),
                }
                t.due = true;
                scan.excluded.push(e);
                scan.rows = scan.rows.saturating_sub(1);
            }
        }
    }
    Ok(())
}
