//! Rows whose rowid contradicts their place and that no index confirms.
//!
//! Tests:    rowids against their neighbours, the bounds of their leaf, and the free space of their page.
//! Collects: phantoms, with what their neighbours leave room for.
//! Leaves:   rows whose rowid merely stands out of order: they are sorted.

use std::collections::BTreeMap;

use crate::ctx::Ctx;
use crate::error::Result;
use crate::finding::{Code, Defect, Site};
use crate::ids::ObjectId;
use crate::survey::pass5_restore::rowids::{Place, ascending, in_pointer_order, narrowed, room, witnesses};
use crate::survey::scans::table::Excluded;
use crate::survey::stages::{Content, Scanned, SurveyedTree};
use crate::tree::Slot;
use crate::tree::bounds;

/// A row whose rowid contradicts its leaf.
#[derive(Debug, Clone, Copy)]
struct Suspect {
    rowid: i64,
    /// The rowids between its neighbours, first and last; `None` when there is none.
    room: Option<(i64, i64)>,
}

/// Sets phantoms aside: rows that contradict their place and that no index confirms.
///
/// # Errors
/// Cancellation only.
pub(super) fn set_aside(survey: &mut Scanned<'_>, ctx: &Ctx) -> Result<()> {
    let mut phantoms: Vec<(usize, Place, Suspect)> = Vec::new();
    for (i, t) in survey.trees.iter().enumerate() {
        let Some(Content::Table { plan, scan }) = &t.content else { continue };
        if t.object == ObjectId::SCHEMA || plan.key.is_some() || (scan.ordered && scan.outside.is_empty() && survey.stale.is_empty()) {
            continue;
        }
        let witnesses = witnesses(survey, t);
        for (place, suspect) in suspects(survey, t, ctx)? {
            if !scan.is_excluded(place.0, place.1) && !witnesses.iter().any(|w| w.confirms(place)) {
                phantoms.push((i, place, suspect));
            }
        }
    }
    for (i, (page, cell), suspect) in phantoms {
        let Scanned { known, trees, findings, .. } = &mut *survey;
        let Some(t) = trees.get_mut(i) else { continue };
        let site = known.pages.site(Site::object(t.object), page).cell(cell);
        let Some(Content::Table { scan, .. }) = &mut t.content else { continue };
        let words = match suspect.room {
            Some((low, high)) if low == high => format!("rowid {}, its neighbours leave room for {low} only", suspect.rowid),
            Some((low, high)) if low > i64::MIN && high < i64::MAX => {
                format!("rowid {}, its neighbours leave room for {low} to {high}", suspect.rowid)
            }
            _ => format!("rowid {}", suspect.rowid),
        };
        findings.add_with(Defect::new(Code::PhantomRow, 0, 0, 0), site, words);
        t.due = true;
        scan.excluded.push(Excluded { page, cell, rowid: Some(suspect.rowid), code: Code::PhantomRow, got: 0 });
        scan.rows = scan.rows.saturating_sub(1);
        if let Some((low, _)) = suspect.room.filter(|(low, high)| low == high) {
            known.suggested.insert((page, cell), low);
        }
    }
    Ok(())
}

/// Rows of a table that contradict their place: in free space, outside the bounds of a leaf whose other rows keep them, or
/// out of order and no rowid of the leaf at all.
fn suspects(survey: &Scanned<'_>, t: &SurveyedTree, ctx: &Ctx) -> Result<BTreeMap<Place, Suspect>> {
    let mut out = BTreeMap::new();
    for (i, slot) in t.tree.slots.iter().enumerate() {
        ctx.check()?;
        let Slot::Leaf { page, above, upto, .. } = *slot else { continue };
        let Ok((_, cells)) = survey.pages.cells(page) else { continue };
        let stale = survey.stale.range((page, 0)..=(page, u16::MAX)).next().is_some();
        let inside = |r: i64| bounds::inside((above, upto), r);
        let ascends = cells.windows(2).all(|w| matches!(w, [a, b] if a.1.rowid < b.1.rowid));
        if !stale && ascends && cells.iter().all(|(_, c)| c.rowid.is_none_or(inside)) {
            continue;
        }
        let rowids = in_pointer_order(&cells);
        let kept = rowids.iter().filter(|(_, r)| inside(*r)).count();
        // Most rows outside: the separators are wrong, or the page is of another time.
        let believed = kept.saturating_mul(2) > rowids.len();
        let (above, upto) = if believed { narrowed(survey, &t.tree.slots, i, above, upto) } else { (None, None) };
        let sure = ascending(&rowids, above, upto);
        let (low, high) = (above.or(sure.first().map(|s| s.1)), upto.or(sure.last().map(|s| s.1)));
        for &(no, rowid) in &rowids {
            let lies_free = survey.stale.contains(&(page, no));
            let foreign = low.is_some_and(|l| rowid < l || above == Some(rowid)) || high.is_some_and(|h| rowid > h);
            let run = sure.len().saturating_mul(2) > rowids.len();
            let out_of_run = !sure.contains(&(no, rowid));
            let room = room(&sure.iter().filter(|s| s.0 != no).copied().collect::<Vec<_>>(), no, above, upto);
            if lies_free || (run && out_of_run && foreign && room.is_some()) {
                out.insert((page, no), Suspect { rowid, room });
            }
        }
    }
    Ok(out)
}
