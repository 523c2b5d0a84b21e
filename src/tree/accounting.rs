//! The accounting of a page's bytes: every byte behind the pointer array is of a cell, a freeblock, a fragment or the gap
//! (section 1.6). What overlaps, and what nothing explains, says which cells are stale and where lost cells lie.

use crate::finding::{Code, Defect};
use crate::format::Page;
use crate::ids::{idx, small, wide};

/// One bit for each byte of a page, set where a cell or a freeblock lies.
#[derive(Debug, Clone, Default)]
pub struct Coverage {
    words: Vec<u64>,
    len: u32,
    covered: u32,
}

impl Coverage {
    /// Starts anew for a page of `len` bytes.
    pub fn reset(&mut self, len: u32) {
        self.words.clear();
        self.words.resize(idx(len.div_ceil(64)), 0);
        self.len = len;
        self.covered = 0;
    }

    /// Marks `len` bytes from `at`; `false` when one of them was marked before.
    #[inline]
    pub fn mark(&mut self, at: u32, len: u32) -> bool {
        let end = at.saturating_add(len).min(self.len);
        if at >= end {
            return true;
        }
        self.covered = self.covered.saturating_add(end.saturating_sub(at));
        let (first, last) = (idx(at >> 6), idx(end.saturating_sub(1) >> 6));
        let head = u64::MAX << (at & 63);
        let tail = u64::MAX >> (63_u32.saturating_sub(end.saturating_sub(1) & 63));
        let mut free = true;
        let Some(words) = self.words.get_mut(first..=last) else { return true };
        let n = words.len().saturating_sub(1);
        for (i, word) in words.iter_mut().enumerate() {
            let mut mask = u64::MAX;
            if i == 0 {
                mask &= head;
            }
            if i == n {
                mask &= tail;
            }
            free &= *word & mask == 0;
            *word |= mask;
        }
        free
    }

    /// Whether the byte at `at` is marked.
    #[must_use]
    pub fn is_marked(&self, at: u32) -> bool {
        self.words.get(idx(at >> 6)).is_some_and(|w| w >> (at & 63) & 1 == 1)
    }

    /// Bytes marked, those marked twice counted twice.
    #[must_use]
    pub fn covered(&self) -> u32 {
        self.covered
    }

    /// Ranges from `from` on that are not marked, in ascending order.
    #[must_use]
    pub fn gaps(&self, from: u32) -> Vec<(u32, u32)> {
        let mut gaps = Vec::new();
        let mut at = from;
        while at < self.len {
            if self.is_marked(at) {
                at = at.saturating_add(1);
                continue;
            }
            let start = at;
            while at < self.len && !self.is_marked(at) {
                at = at.saturating_add(1);
            }
            gaps.push((start, at.saturating_sub(start)));
        }
        gaps
    }
}

/// Judges the free space of a page whose cells are marked in `coverage`: adds the freeblocks and compares the rest with
/// the fragment count. Reports defects to `defect`; `content_start` is judged against the pointer array and the cells.
pub fn free_space(page: &Page<'_>, coverage: &mut Coverage, mut defect: impl FnMut(Defect)) {
    let len = small(page.bytes().len());
    let floor = small(page.pointers_end());
    if page.content_start < floor || page.content_start > len.max(65536) || (page.content_start > len && page.content_start != 65536) {
        defect(Defect::new(Code::ContentStartBad, 5, u64::from(page.content_start), u64::from(len)));
    }
    let cells = coverage.covered();
    let mut chain_whole = true;
    let mut free = 0_u32;
    for block in page.freeblocks() {
        match block {
            Ok((at, n)) => {
                free = free.saturating_add(n);
                if !coverage.mark(at, n) {
                    defect(Defect::new(Code::CellsOverlapFree, at, u64::from(at), u64::from(at.saturating_add(n))));
                }
            }
            Err(d) => {
                chain_whole = false;
                defect(d);
            }
        }
    }
    let start = page.content_start.min(len).max(floor);
    let inside = len.saturating_sub(start);
    let explained = cells.saturating_add(free);
    if chain_whole {
        let rest = i64::from(inside).saturating_sub(i64::from(explained));
        if rest != i64::from(page.fragments) {
            let found = wide(usize::try_from(rest.max(0)).unwrap_or(0));
            defect(Defect::new(Code::FragmentsWrong, 7, u64::from(page.fragments), found));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_and_gaps() {
        let mut c = Coverage::default();
        c.reset(200);
        assert!(c.mark(10, 100));
        assert!(c.mark(110, 20));
        assert!(!c.mark(129, 1));
        assert!(c.mark(130, 64));
        assert!(c.is_marked(193) && !c.is_marked(194) && !c.is_marked(9));
        assert_eq!(c.gaps(0), vec![(0, 10), (194, 6)]);
        assert_eq!(c.gaps(5), vec![(5, 5), (194, 6)]);
        assert!(c.mark(190, 0));
        assert!(!c.mark(150, 200));
    }
}
