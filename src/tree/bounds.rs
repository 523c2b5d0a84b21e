//! Bounds that parents set for the rowids below them (section 1.6: the key of a cell is the largest rowid of its child).

use std::collections::BTreeMap;

use crate::ids::PageNo;
use crate::tree::walk::Slot;

/// Rowids lie above the first and are at most the second; `None` where no parent sets one.
pub type Bounds = (Option<i64>, Option<i64>);

/// Whether a rowid keeps its bounds.
#[must_use]
#[inline]
pub fn inside((above, upto): Bounds, rowid: i64) -> bool {
    above.is_none_or(|a| rowid > a) && upto.is_none_or(|u| rowid <= u)
}

/// The bounds of the leaves among these slots.
#[must_use]
pub fn of_leaves(slots: &[Slot]) -> BTreeMap<PageNo, Bounds> {
    let leaves = slots.iter().filter_map(|s| match *s {
        Slot::Leaf { page, above, upto, .. } => Some((page, (above, upto))),
        _ => None,
    });
    leaves.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_upper_bound_belongs_to_the_leaf_and_the_lower_does_not() {
        assert_eq!([4, 5, 9, 10].map(|r| inside((Some(4), Some(9)), r)), [false, true, true, false]);
        assert!(inside((None, None), i64::MIN) && inside((None, Some(i64::MAX)), i64::MAX));
    }
}
