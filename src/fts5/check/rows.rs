//! What is kept for each row of an index, by rowid.
//!
//! The rows that `%_docsize` lists come in ascending order and have a place in an array; the rowids of a posting list ascend, too,
//! so that the place of the next one is near. All others are in a hash map.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::sums::spread;
use crate::ids::narrow;

/// Hashes rowids; they are no secret and their order is sorted away.
#[derive(Debug, Default, Clone, Copy)]
pub struct RowidHasher(u64);

impl Hasher for RowidHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &b in bytes {
            self.0 = spread(self.0 ^ u64::from(b));
        }
    }

    fn write_i64(&mut self, n: i64) {
        self.0 = spread(u64::from_ne_bytes(n.to_ne_bytes()));
    }
}

/// A map by rowid.
pub type ByRowid<T> = HashMap<i64, T, BuildHasherDefault<RowidHasher>>;

/// Rowids that have a place, ascending.
#[derive(Debug, Default)]
pub struct Listed(Vec<i64>);

impl Listed {
    /// Lists a rowid; one that does not ascend gets no place.
    pub fn push(&mut self, rowid: i64) {
        if self.0.last().is_none_or(|last| *last < rowid) {
            self.0.push(rowid);
        }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = i64> {
        self.0.iter().copied()
    }

    /// The place of a rowid, looked for from the place `near` on.
    fn find(&self, near: usize, rowid: i64) -> Option<usize> {
        let from = *self.0.get(near)?;
        if rowid < from {
            return self.0.get(..near)?.binary_search(&rowid).ok();
        }
        // Rowids are whole numbers and ascend: one that is so much greater stands at most so many places behind.
        let ahead = rowid.abs_diff(from);
        let most = near.saturating_add(narrow(ahead)).min(self.0.len().saturating_sub(1));
        if self.0.get(most) == Some(&rowid) {
            return Some(most);
        }
        let found = self.0.get(near..most)?.binary_search(&rowid).ok()?;
        Some(near.saturating_add(found))
    }
}

/// A value for each row.
#[derive(Debug, Default)]
pub struct PerRow<T> {
    placed: Vec<T>,
    others: ByRowid<T>,
    near: usize,
}

impl<T: Default + Clone> PerRow<T> {
    /// The value of a row, made if it has none.
    pub fn entry(&mut self, listed: &Listed, rowid: i64) -> &mut T {
        if self.placed.len() < listed.0.len() {
            self.placed.resize(listed.0.len(), T::default());
        }
        if let Some(place) = listed.find(self.near, rowid) {
            self.near = place;
            if let Some(value) = self.placed.get_mut(place) {
                return value;
            }
        }
        self.others.entry(rowid).or_default()
    }

    /// The values that a row has: one that got its place late may have two.
    pub fn of(&self, place: Option<usize>, rowid: i64) -> impl Iterator<Item = &T> {
        place.and_then(|p| self.placed.get(p)).into_iter().chain(self.others.get(&rowid))
    }

    /// Rows without a place that have a value, in no order.
    pub fn others(&self) -> impl Iterator<Item = i64> {
        self.others.keys().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_stays_with_its_row_whatever_the_order() {
        let mut listed = Listed::default();
        let mut sums: PerRow<u64> = PerRow::default();
        *sums.entry(&listed, 7) += 1;
        for rowid in [i64::MIN, -5, 7, 8, 9, 1000, i64::MAX] {
            listed.push(rowid);
        }
        listed.push(3);
        let order = [9, 7, i64::MAX, -5, 8, 3, 1000, i64::MIN, 7, 8, 10];
        for rowid in order {
            *sums.entry(&listed, rowid) += 10;
        }
        let of = |rowid: i64| sums.of(listed.iter().position(|r| r == rowid), rowid).sum::<u64>();
        assert_eq!([7, 8, 9, 3, 10, 11, i64::MIN, i64::MAX].map(of), [21, 20, 10, 10, 10, 0, 10, 10]);
        let mut others: Vec<i64> = sums.others().collect();
        others.sort_unstable();
        assert_eq!(others, [3, 7, 10]);
    }
}
