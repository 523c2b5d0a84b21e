//! Rowids that contradict their place.
//!
//! Tests:    the order of rowids on each leaf and the bounds of its parents; rows that an index does not know against entries
//!           that no row has.
//! Collects: the true rowid where an index pairs it with the values of the row; phantoms, with what their neighbours leave
//!           room for.
//! Leaves:   rows whose rowid merely stands out of order: they are sorted.

use std::collections::{BTreeMap, BTreeSet};

use crate::ctx::Ctx;
use crate::error::Result;
use crate::finding::{Code, Defect, Site};
use crate::ids::{ObjectId, PageNo};
use crate::survey::index_fit::{Absent, GoneEntry, IndexFit, NAMED};
use crate::survey::stages::{Content, Scanned, SurveyedTree};
use crate::tree::bounds;
use crate::tree::mend::UNNAMED;
use crate::tree::{MendedCell, MendedLeaf, Slot};

/// The place of a cell.
pub(in crate::survey) type Place = (PageNo, u16);

/// Whether some table has rows that an index may know better.
pub(super) fn doubted(survey: &Scanned<'_>) -> bool {
    survey.trees.iter().any(|t| match &t.content {
        Some(Content::Table { plan, scan }) if plan.key.is_none() && t.object != ObjectId::SCHEMA => {
            !scan.ordered
                || !scan.outside.is_empty()
                || plan.indexes.iter().zip(&scan.sums).any(|(p, sum)| {
                    let there = survey.tree_of(p.object).and_then(|i| i.content.as_ref());
                    p.computable && matches!(there, Some(Content::Index { scan, .. }) if scan.sum != *sum)
                })
        }
        _ => false,
    })
}

/// Restores rowids that an index names; `true` when one was. The indexes must have been compared.
///
/// # Errors
/// Cancellation only.
pub(super) fn restore(survey: &mut Scanned<'_>, ctx: &Ctx) -> Result<bool> {
    let mut restored: Vec<(usize, Place, i64)> = Vec::new();
    let mut twice: Vec<(Defect, Site)> = Vec::new();
    for (i, t) in survey.trees.iter().enumerate() {
        let Some(Content::Table { plan, .. }) = &t.content else { continue };
        if t.object == ObjectId::SCHEMA || plan.key.is_some() {
            continue;
        }
        let witnesses = witnesses(survey, t);
        if witnesses.iter().all(|w| w.gone.is_empty() || w.absent.is_empty()) {
            continue;
        }
        let wanted: BTreeSet<Place> = witnesses.iter().flat_map(|w| w.absent.iter().map(|a| (a.page, a.cell))).collect();
        let crowded = crowded(survey, &wanted);
        let rooms = rooms(survey, t, &wanted, ctx)?;
        let mut named: BTreeMap<Place, Option<i64>> = BTreeMap::new();
        for w in &witnesses {
            for a in w.absent {
                let place = (a.page, a.cell);
                // Another index that has the row under its own rowid confirms it.
                if witnesses.iter().any(|o| o.confirms(place)) {
                    continue;
                }
                let mut fits = w.gone.iter().filter(|g| g.key == a.key);
                let (Some(g), None) = (fits.next(), fits.next()) else { continue };
                // A second image of a row, or a row that some index does not pair with this rowid, was not changed like that.
                if w.absent.iter().filter(|o| o.key == a.key).count() != 1 || !witnesses.iter().all(|o| o.names(place, g.rowid)) {
                    continue;
                }
                if crowded.contains(&a.page) {
                    continue;
                }
                let between = rooms.get(&place).copied().flatten().is_some_and(|(low, high)| (low..=high).contains(&g.rowid));
                if between {
                    let entry = named.entry(place).or_insert(Some(g.rowid));
                    // Two indexes that name two rowids settle nothing.
                    if *entry != Some(g.rowid) {
                        *entry = None;
                    }
                }
            }
        }
        let named: BTreeMap<Place, i64> = named.into_iter().filter_map(|(place, rowid)| Some((place, rowid?))).collect();
        let stood = witnesses.iter().flat_map(|w| w.absent).filter(|a| named.contains_key(&(a.page, a.cell)));
        let stood: BTreeMap<i64, Place> = stood.filter_map(|a| Some((a.rowid?, (a.page, a.cell)))).collect();
        twice.extend(shared(survey, t, &stood, ctx)?);
        restored.extend(named.into_iter().map(|(place, rowid)| (i, place, rowid)));
    }
    survey.noted.extend(twice);
    for (i, (page, cell), rowid) in &restored {
        survey.changed(*i);
        let mut leaf = match survey.pages.mended(*page) {
            Some(leaf) => leaf.clone(),
            None => {
                let Ok((kind, cells)) = survey.pages.cells(*page) else { continue };
                MendedLeaf { kind, cells: cells.iter().map(|(no, c)| MendedCell { no: *no, at: c.at, rowid: None }).collect() }
            }
        };
        if let Some(m) = leaf.cells.iter_mut().find(|m| m.no == *cell) {
            m.rowid = Some(*rowid);
        }
        survey.pages.mend(*page, leaf);
    }
    Ok(!restored.is_empty())
}

/// The cells among these whose rowid another row of the table has as well.
fn shared(survey: &Scanned<'_>, t: &SurveyedTree, stood: &BTreeMap<i64, Place>, ctx: &Ctx) -> Result<Vec<(Defect, Site)>> {
    let mut out = Vec::new();
    for slot in t.tree.slots.iter().filter(|_| !stood.is_empty()) {
        ctx.check()?;
        let Slot::Leaf { page, .. } = *slot else { continue };
        let Ok((_, cells)) = survey.pages.cells(page) else { continue };
        for (no, rowid) in cells.iter().filter_map(|(no, c)| Some((*no, c.rowid?))) {
            if let Some(place) = stood.get(&rowid).filter(|p| **p != (page, no)) {
                let site = survey.pages.site(Site::object(t.object), place.0).cell(place.1);
                out.push((Defect::new(Code::RowidTwice, 0, u64::from_ne_bytes(rowid.to_ne_bytes()), 0), site));
            }
        }
    }
    Ok(out)
}

/// What one index says about the rows of its table.
pub(in crate::survey) struct Witness<'s> {
    absent: &'s [Absent],
    gone: &'s [GoneEntry],
    /// Every row that is not in `absent` has its entry.
    complete: bool,
}

impl Witness<'_> {
    /// Whether the index pairs the values of a row that it does not have with this rowid.
    fn names(&self, (page, cell): Place, rowid: i64) -> bool {
        let row = self.absent.iter().find(|a| a.page == page && a.cell == cell && !a.copied);
        row.is_some_and(|a| self.gone.iter().any(|g| g.key == a.key && g.rowid == rowid))
    }

    pub(in crate::survey) fn confirms(&self, (page, cell): Place) -> bool {
        self.complete && !self.absent.iter().any(|a| a.page == page && a.cell == cell)
    }
}

/// Leaves of which at least half the rows are in doubt: a page of another time or place, not one of changed rowids.
fn crowded(survey: &Scanned<'_>, wanted: &BTreeSet<Place>) -> BTreeSet<PageNo> {
    let mut counts: BTreeMap<PageNo, usize> = BTreeMap::new();
    for (page, _) in wanted {
        let n = counts.entry(*page).or_insert(0);
        *n = n.saturating_add(1);
    }
    let half = |page: PageNo, n: usize| survey.pages.cells(page).is_ok_and(|(_, cells)| n > 1 && n.saturating_mul(2) >= cells.len());
    counts.into_iter().filter(|(page, n)| half(*page, *n)).map(|(page, _)| page).collect()
}

/// The indexes of a table that pair values with rowids and cover every row.
pub(in crate::survey) fn witnesses<'s>(survey: &'s Scanned<'_>, t: &SurveyedTree) -> Vec<Witness<'s>> {
    let Some(Content::Table { plan, .. }) = &t.content else { return Vec::new() };
    let comparable = plan.indexes.iter().filter(|p| p.computable && p.condition.is_none() && p.by_rowid());
    comparable
        .filter_map(|p| match &survey.tree_of(p.object)?.content {
            Some(Content::Index { fit: IndexFit::Equal, .. }) => Some(Witness { absent: &[], gone: &[], complete: true }),
            Some(Content::Index { fit: IndexFit::Differs { absent, gone, .. }, .. }) => {
                Some(Witness { absent, gone, complete: absent.len() < NAMED })
            }
            _ => None,
        })
        .collect()
}

/// For each of these cells the rowids that its neighbours on the leaf, else the bounds of the parents, leave room for.
/// Neighbours that are themselves asked for, or contradict the order, do not count.
fn rooms(survey: &Scanned<'_>, t: &SurveyedTree, wanted: &BTreeSet<Place>, ctx: &Ctx) -> Result<BTreeMap<Place, Option<(i64, i64)>>> {
    let mut out = BTreeMap::new();
    for (i, slot) in t.tree.slots.iter().enumerate() {
        ctx.check()?;
        let Slot::Leaf { page, above, upto, .. } = *slot else { continue };
        if wanted.range((page, 0)..=(page, u16::MAX)).next().is_none() {
            continue;
        }
        let Ok((_, cells)) = survey.pages.cells(page) else { continue };
        let (above, upto) = narrowed(survey, &t.tree.slots, i, above, upto);
        let by_pointer = in_pointer_order(&cells);
        let sure: Vec<(u16, i64)> = by_pointer.iter().filter(|(no, _)| !wanted.contains(&(page, *no))).copied().collect();
        let sure = ascending(&sure, above, upto);
        for &(no, _) in by_pointer.iter().filter(|(no, _)| wanted.contains(&(page, *no))) {
            out.insert((page, no), room(&sure, no, above, upto));
        }
    }
    Ok(out)
}

/// The bounds of a leaf, narrowed by the leaves beside it.
pub(in crate::survey) fn narrowed(
    survey: &Scanned<'_>,
    slots: &[Slot],
    i: usize,
    above: Option<i64>,
    upto: Option<i64>,
) -> (Option<i64>, Option<i64>) {
    let before = edge(survey, slots.get(..i).unwrap_or_default().iter().rev(), true);
    let behind = edge(survey, slots.get(i.saturating_add(1)..).unwrap_or_default().iter(), false);
    (above.max(before), upto.map_or(behind.map(|b| b.saturating_sub(1)), Some))
}

/// The last or first rowid of the nearest leaf, when it is its largest or smallest.
fn edge<'s>(survey: &Scanned<'_>, slots: impl Iterator<Item = &'s Slot>, last: bool) -> Option<i64> {
    let page = slots.take(1).find_map(|s| match s {
        Slot::Leaf { page, .. } => Some(*page),
        _ => None,
    })?;
    let rowids = survey.pages.cells(page).ok()?.1.into_iter().filter_map(|(_, c)| c.rowid);
    let all: Vec<i64> = rowids.collect();
    // One that is not was changed itself, or the leaf is out of order: it bounds nothing.
    if last {
        all.last().copied().filter(|l| all.iter().max() == Some(l))
    } else {
        all.first().copied().filter(|f| all.iter().min() == Some(f))
    }
}

/// Rowids of a leaf by the number of their pointer; cells without one have no place among them.
pub(in crate::survey) fn in_pointer_order(cells: &[(u16, crate::format::Cell<'_>)]) -> Vec<(u16, i64)> {
    let named = cells.iter().filter(|(no, _)| *no < UNNAMED);
    let mut out: Vec<(u16, i64)> = named.filter_map(|(no, c)| Some((*no, c.rowid?))).collect();
    out.sort_unstable();
    out
}

/// The rowids between the neighbours of a pointer in an ascending list, and within the bounds.
pub(in crate::survey) fn room(sure: &[(u16, i64)], no: u16, above: Option<i64>, upto: Option<i64>) -> Option<(i64, i64)> {
    let low = sure.iter().rev().find(|s| s.0 < no).map(|s| s.1).max(above);
    let high = sure.iter().find(|s| s.0 > no).map(|s| s.1.saturating_sub(1));
    let high = match (high, upto) {
        (Some(h), Some(u)) => h.min(u),
        (h, u) => h.or(u).unwrap_or(i64::MAX),
    };
    let low = low.map_or(i64::MIN, |l| l.saturating_add(1));
    (low <= high).then_some((low, high))
}

/// The longest ascending run of rowids within the bounds, in pointer order.
pub(in crate::survey) fn ascending(rowids: &[(u16, i64)], above: Option<i64>, upto: Option<i64>) -> Vec<(u16, i64)> {
    let inside: Vec<(u16, i64)> = rowids.iter().filter(|(_, r)| bounds::inside((above, upto), *r)).copied().collect();
    // Patience sorting: the end of the best run of each length, and for each element the one before it.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(inside.len());
    for (i, (_, r)) in inside.iter().enumerate() {
        let at = ends.partition_point(|e| inside.get(*e).is_some_and(|x| x.1 < *r));
        before.push(at.checked_sub(1).and_then(|p| ends.get(p).copied()));
        match ends.get_mut(at) {
            Some(place) => *place = i,
            None => ends.push(i),
        }
    }
    let mut out = Vec::with_capacity(ends.len());
    let mut at = ends.last().copied();
    while let Some(i) = at {
        out.extend(inside.get(i).copied());
        // Each element points to an earlier one.
        at = before.get(i).copied().flatten().filter(|p| *p < i);
    }
    out.reverse();
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_run_leaves_out_what_does_not_fit() {
        let rows = [(0, 10), (1, 412_316_860_418), (2, 12), (3, 13), (4, 11)];
        assert_eq!(ascending(&rows, None, None), vec![(0, 10), (2, 12), (3, 13)]);
        assert_eq!(ascending(&rows, Some(10), Some(12)), vec![(4, 11)]);
        assert!(ascending(&[], None, None).is_empty());
    }

    #[test]
    fn neighbours_leave_room() {
        let sure = [(0, 10), (2, 12), (3, 13)];
        assert_eq!(room(&sure, 1, None, None), Some((11, 11)));
        assert_eq!(room(&sure, 4, None, Some(20)), Some((14, 20)));
        assert_eq!(room(&[(0, 10), (2, 11)], 1, None, None), None);
        assert_eq!(room(&[], 1, None, None), Some((i64::MIN, i64::MAX)));
    }
}
