//! Rows of one table that have the same key: one stands at most.
//!
//! Tests:    the indexes, the bounds of the parents, whether the page was ever lost, what the indexes say of its other rows.
//! Collects: rows to exclude.
//! Leaves:   keys of UNIQUE indexes, which two rows of different keys may share.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::ctx::Ctx;
use crate::error::Result;
use crate::finding::Code;
use crate::ids::PageNo;
use crate::recover::Selection;
use crate::recover::live::RowReader;
use crate::recover::stream::{by_reference, place_of};
use crate::survey::Survey;
use crate::survey::plan::TablePlan;
use crate::survey::table::Excluded;
use crate::tree::Slot;
use crate::tree::bounds::{self, Bounds};

/// Rows whose key stands more than once in a table that is out of order: all but one are excluded. What speaks for a row, in
/// this order: that an index has it, that it lies within the bounds of its parents, that its page was never lost, that no index
/// denies a row of its page. Of linked pages that are equal in all this the first wins; of pages that came back none does,
/// unless they hold the same: one of them was freed, and nothing says which.
pub(crate) fn twice(
    survey: &Survey<'_>,
    plan: &TablePlan,
    slots: &[Slot],
    selection: &mut Selection,
    folder: &Path,
    ctx: &Ctx,
) -> Result<()> {
    let mut sorted = by_reference(survey, plan, slots, selection, folder, ctx)?;
    let mut losers: Vec<Excluded> = Vec::new();
    {
        let mut rivals = Rivals::new(survey, plan, slots, selection);
        let mut key: Vec<u8> = Vec::new();
        let mut group: Vec<(PageNo, u16)> = Vec::new();
        while let Some((next, place)) = sorted.next()? {
            ctx.check()?;
            let Some(place) = place_of(place) else { continue };
            if next != key.as_slice() {
                rivals.settle(&key, &group, &mut losers);
                group.clear();
                key.clear();
                key.extend_from_slice(next);
            }
            group.push(place);
        }
        rivals.settle(&key, &group, &mut losers);
    }
    for e in losers {
        selection.exclude(e);
    }
    Ok(())
}

/// Rows of one key, and what speaks for each.
struct Rivals<'s, 'a> {
    survey: &'s Survey<'a>,
    bounds: BTreeMap<PageNo, Bounds>,
    absent: BTreeSet<(PageNo, u16)>,
    /// Pages with a row that an index denies.
    denied: BTreeSet<PageNo>,
    by_rowid: bool,
    reader: RowReader<'s, 'a>,
}

impl<'s, 'a> Rivals<'s, 'a> {
    fn new(survey: &'s Survey<'a>, plan: &'s TablePlan, slots: &[Slot], selection: &'s Selection) -> Rivals<'s, 'a> {
        let denied = selection.excluded.values().filter(|e| e.code == Code::DeletedRow).map(|e| e.page);
        Rivals {
            survey,
            bounds: bounds::of_leaves(slots),
            absent: plan.indexes.iter().flat_map(|i| super::unique::absent(survey, i.object)).collect(),
            denied: denied.collect(),
            by_rowid: plan.key.is_none(),
            reader: RowReader::new(&survey.pages, plan, selection),
        }
    }

    /// What speaks against a row, weightiest first.
    fn doubts(&self, place: (PageNo, u16), rowid: Option<i64>) -> [bool; 4] {
        let (page, _) = place;
        let bounds = self.bounds.get(&page).copied().unwrap_or_default();
        let outside = rowid.is_some_and(|r| !bounds::inside(bounds, r));
        let came_back = self.survey.adopted.contains(&page);
        [self.absent.contains(&place), outside, came_back, came_back && self.denied.contains(&page)]
    }

    /// Excludes all rows of a key but the one that stands.
    fn settle(&mut self, key: &[u8], group: &[(PageNo, u16)], losers: &mut Vec<Excluded>) {
        if group.len() < 2 {
            return;
        }
        let rowid = self.by_rowid.then(|| rowid_of(key));
        let weighed: Vec<[bool; 4]> = group.iter().map(|p| self.doubts(*p, rowid)).collect();
        let least = weighed.iter().min().copied().unwrap_or_default();
        let mut best = group.iter().zip(&weighed).filter(|(_, w)| **w == least).map(|(p, _)| *p);
        let first = best.next();
        let mut record = |p: (PageNo, u16)| self.reader.at(p.0, p.1).map(|r| r.record.to_vec());
        let [_, _, came_back, _] = least;
        let keeper = first.filter(|f| {
            !came_back || {
                let mine = record(*f);
                best.all(|p| record(p) == mine)
            }
        });
        for &(page, cell) in group.iter().filter(|p| Some(**p) != keeper) {
            losers.push(Excluded { page, cell, rowid, code: Code::RowidTwice, got: 0 });
        }
    }
}

fn rowid_of(key: &[u8]) -> i64 {
    crate::bytes::u64_at(key, 0).map_or(0, |n| i64::from_ne_bytes((n ^ (1 << 63)).to_ne_bytes()))
}
