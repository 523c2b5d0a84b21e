//! Pass 4: every index against its table, in both directions.
//!
//! Tests:    the sum of the entries that the rows should have against those that the index has; where they differ, row by row.
//! Collects: what each index comes to; rows and entries of one rowid or key that do not say the same.
//! Leaves:   whether a row or its index is wrong, but for rows that two indexes contradict.

pub mod compare;
mod disputes;

use std::collections::{BTreeMap, BTreeSet};

use crate::ctx::Ctx;
use crate::error::Result;
use crate::finding::{Code, Defect, Findings, Site};
use crate::ids::{ObjectId, PageNo};
use crate::survey::index_fit::{Dispute, IndexFit};
use crate::survey::rows::plan::TablePlan;
use crate::survey::scans::table::TableScan;
use crate::survey::stages::{Content, Scanned};
use crate::tree::Slot;

use compare::{Compared, Sides};

/// Compares all indexes. Sums that are equal settle it; where they differ both sides are read again to name the rows.
///
/// # Errors
/// Cancellation only.
pub(super) fn indexes(survey: &mut Scanned<'_>, ctx: &Ctx) -> Result<Vec<Dispute>> {
    let mut found: BTreeMap<usize, Compared> = BTreeMap::new();
    let mut log = Findings::new(survey.findings.cap());
    for (i, t) in survey.trees.iter().enumerate() {
        let Some(Content::Index { plan, scan, .. }) = &t.content else { continue };
        let table = survey.catalog.get(t.object).and_then(|o| o.table);
        let Some((table_slots, table_plan, table_scan)) = table.and_then(|id| table_content(survey, id)) else { continue };
        let Some(at) = table_plan.indexes.iter().position(|p| p.object == t.object) else { continue };
        if !plan.computable {
            continue;
        }
        let want = table_scan.sums.get(at).copied().unwrap_or_default();
        if want == scan.sum && scan.broken == 0 {
            found.insert(i, Compared { fit: IndexFit::Equal, ..Compared::default() });
            continue;
        }
        let sides = Sides { pages: &survey.pages, table_slots, table_plan, index_slots: &t.tree.slots, plan, encoding: survey.encoding };
        // An index is right not to have a row that was deleted, and that only came back with a lost leaf.
        let deleted: BTreeSet<(PageNo, u16)> =
            table_scan.excluded.iter().filter(|e| e.code == Code::DeletedRow).map(|e| (e.page, e.cell)).collect();
        let (mut compared, right) = sides.differ(want.count.max(scan.sum.count), &deleted, ctx)?;
        let rows = want.count.saturating_sub(right);
        if rows != scan.sum.count {
            log.add(Defect::new(Code::IndexCountDiffers, 0, scan.sum.count, rows), Site::object(t.object));
        }
        if right > 0 && scan.broken == 0 && matches!(compared.fit, IndexFit::Differs { missing: 0, surplus: 0, .. }) {
            compared.fit = IndexFit::Equal;
        }
        found.insert(i, compared);
    }
    let disputes = disputes::find(survey, &mut found, &mut log);
    for (i, compared) in &found {
        if let Some(t) = survey.trees.get(*i) {
            compared.note(t.object, &survey.pages, &mut log);
        }
    }
    survey.findings.merge(log);
    for (i, compared) in found {
        if let Some(Content::Index { fit, .. }) = survey.trees.get_mut(i).and_then(|t| t.content.as_mut()) {
            *fit = compared.fit;
        }
    }
    Ok(disputes)
}

fn table_content<'s>(survey: &'s Scanned<'_>, id: ObjectId) -> Option<(&'s [Slot], &'s TablePlan, &'s TableScan)> {
    let t = survey.tree_of(id)?;
    match &t.content {
        Some(Content::Table { plan, scan }) => Some((&t.tree.slots, plan, scan)),
        _ => None,
    }
}
