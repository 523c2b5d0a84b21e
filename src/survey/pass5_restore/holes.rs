//! The holes of a tree in key order, and which of them an orphan can go into.

use crate::survey::pass5_restore::places::edges;
use crate::survey::rows::key::KeyOrder;
use crate::survey::rows::reader::Reader;
use crate::survey::stages::Scanned;
use crate::tree::Slot;
use crate::tree::bounds::{Bounds, inside};

/// Holes that are looked at beside the one that the order points to. Damage may have the bounds of some out of order.
const BESIDE: usize = 32;

/// The holes of one tree.
pub(super) struct Holes {
    holes: Vec<Hole>,
    order: Option<KeyOrder>,
}

struct Hole {
    slot: usize,
    bounds: Bounds,
    /// The records before and behind it, in an index-like tree.
    before: Option<Vec<u8>>,
    behind: Option<Vec<u8>>,
}

/// What an orphan is placed by.
pub(super) enum Extent<'o> {
    /// Its lowest and highest rowid.
    Rowids(i64, i64),
    /// Its first record.
    Record(&'o [u8]),
}

impl Holes {
    /// The holes of a tree that some page of the file can go into.
    pub(super) fn of(survey: &Scanned<'_>, tree: usize, reader: &Reader) -> Holes {
        let slots = survey.trees.get(tree).map_or(&[][..], |t| t.tree.slots.as_slice());
        let key = reader.key();
        let open = slots.iter().enumerate().filter_map(|(slot, s)| match *s {
            Slot::Hole { above, upto, .. } if !is_cut_off(survey, s) => {
                let (before, behind) = if key.is_some() { edges(survey, slots, slot) } else { (None, None) };
                Some(Hole { slot, bounds: (above, upto), before, behind })
            }
            _ => None,
        });
        Holes { holes: open.collect(), order: key.map(|key| KeyOrder::new(key, survey.encoding)) }
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.holes.is_empty()
    }

    /// The comparison of records that [`Holes::find`] needs; one for each thread.
    pub(super) fn order(&self) -> Option<KeyOrder> {
        self.order.clone()
    }

    /// The slot of the first hole that takes an orphan.
    pub(super) fn find(&self, extent: &Extent<'_>, order: &mut Option<KeyOrder>) -> Option<usize> {
        let at = match *extent {
            Extent::Rowids(_, high) => self.holes.partition_point(|h| h.bounds.1.is_some_and(|u| u < high)),
            Extent::Record(first) => {
                let below = |h: &Hole| h.before.as_ref().zip(order.as_mut()).is_none_or(|(b, o)| o.ascends(b, first));
                self.holes.partition_point(below).saturating_sub(1)
            }
        };
        let near = at.saturating_sub(BESIDE)..at.saturating_add(BESIDE).min(self.holes.len());
        let mut takes = |h: &&Hole| match *extent {
            Extent::Rowids(low, high) => inside(h.bounds, low) && inside(h.bounds, high),
            Extent::Record(first) => order.as_mut().is_none_or(|o| o.is_between(h.before.as_deref(), first, h.behind.as_deref())),
        };
        let exact = self.holes.get(at).filter(|h| takes(h));
        exact.or_else(|| self.holes.get(near)?.iter().find(takes)).map(|h| h.slot)
    }
}

/// Whether the missing leaf of a hole lies behind the end of the file where the header counts more pages: it was cut off, and no
/// page that is there can be it.
fn is_cut_off(survey: &Scanned<'_>, hole: &Slot) -> bool {
    let behind = survey.pages.count().saturating_add(1)..=survey.header.page_count;
    matches!(hole, Slot::Hole { by: Some(_), child, height: Some(0), .. } if behind.contains(child))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holes(bounds: &[Bounds]) -> Holes {
        let holes = bounds.iter().enumerate().map(|(slot, &bounds)| Hole { slot, bounds, before: None, behind: None });
        Holes { holes: holes.collect(), order: None }
    }

    #[test]
    fn rowids_lead_to_the_hole_around_them() {
        let all = holes(&[(None, Some(10)), (Some(20), Some(30)), (Some(50), None)]);
        let find = |low, high| all.find(&Extent::Rowids(low, high), &mut None);
        assert_eq!([find(1, 10), find(21, 30), find(60, 900)], [Some(0), Some(1), Some(2)]);
        assert_eq!([find(10, 11), find(20, 25), find(40, 45)], [None, None, None]);
    }

    #[test]
    fn bounds_that_are_out_of_order_do_not_hide_a_hole() {
        let all = holes(&[(Some(100), Some(200)), (Some(20), Some(30)), (Some(500), None)]);
        assert_eq!(all.find(&Extent::Rowids(25, 26), &mut None), Some(1));
        assert_eq!(all.find(&Extent::Rowids(150, 160), &mut None), Some(0));
    }
}
