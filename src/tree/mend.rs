//! Leaves whose cells are not where their header and pointers say: which cells they have, settled once for all readers.
//!
//! The bytes stay as they are. A mended leaf is a list of places of cells in key order, some with a rowid that a witness
//! restored; everything that reads rows asks [`crate::tree::Pages`] for cells and gets these.

use crate::format::cell::Cell;
use crate::format::{Fields, Page, PageKind, Split};
use crate::ids::{idx, small, wide};
use crate::tree::accounting::Coverage;
use crate::tree::repair::plausible;

/// Cells that no pointer names are numbered from here on; a page of the largest size has room for fewer pointers.
pub const UNNAMED: u16 = 0x8000;

/// Bytes that may lie between two cells without a freeblock (section 1.6: fragments).
const FRAGMENT: usize = 3;

/// A cell of a mended leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MendedCell {
    /// Its pointer on the page, or a number from [`UNNAMED`] on.
    pub no: u16,
    /// Its offset on the page.
    pub at: u32,
    /// The rowid that a witness gives it in place of the one in its bytes.
    pub rowid: Option<i64>,
}

/// A leaf as it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MendedLeaf {
    /// The kind of its cells, which its header may not say any more.
    pub kind: PageKind,
    /// Its cells in key order.
    pub cells: Vec<MendedCell>,
}

impl MendedLeaf {
    /// A cell by its number.
    #[must_use]
    pub fn find(&self, no: u16) -> Option<&MendedCell> {
        self.cells.iter().find(|c| c.no == no)
    }
}

/// Where free space of a page begins and which of its bytes named cells and freeblocks explain.
#[derive(Debug, Clone)]
pub struct Explained {
    /// Bytes of cells and freeblocks.
    pub coverage: Coverage,
    /// The first byte of the content area.
    pub start: u32,
    /// Whether the header can be believed where it says what is free.
    pub trusted: bool,
}

/// What the named cells and the freeblocks of a leaf explain. `header` says whether its header was read as it stands.
#[must_use]
pub fn explain(page: &Page<'_>, split: &Split, header: bool) -> Explained {
    let len = small(page.bytes().len());
    let mut coverage = Coverage::default();
    coverage.reset(len);
    let mut lowest = len;
    let mut fields = Fields::new();
    for (_, cell) in page.cells(*split) {
        let Ok(cell) = cell else { continue };
        // A pointer that is off by a few bytes reads as a cell with a senseless record, over the bytes of the true one.
        if plausible(&cell, &mut fields) {
            let _ = coverage.mark(cell.at, cell.len);
        }
        lowest = lowest.min(cell.at);
    }
    let mut trusted = header;
    if header {
        for block in page.freeblocks() {
            match block {
                Ok((at, n)) => {
                    let _ = coverage.mark(at, n);
                }
                Err(_) => trusted = false,
            }
        }
    }
    let floor = small(page.pointers_end());
    let sane = header && page.content_start >= floor && page.content_start <= len;
    // Without a header to believe, all behind the pointers may have been cells.
    let start = match (sane, lowest < len) {
        (true, _) => page.content_start,
        (false, true) => lowest.max(floor),
        (false, false) => floor,
    };
    Explained { coverage, start, trusted: trusted && sane }
}

/// Places of whole cells in `from..to`, found by exact accounting: cells that follow one another without a gap from the
/// first byte of the range on, and cells that follow one another up to its last byte. `fits` says whether a cell can be one
/// of the table. With `freeblocks`, free ranges that are chained may lie between them.
#[must_use]
pub fn tile(
    bytes: &[u8],
    (from, to): (u32, u32),
    kind: PageKind,
    split: &Split,
    freeblocks: bool,
    fits: &mut dyn FnMut(&Cell<'_>) -> bool,
) -> Vec<u32> {
    let (from, to) = (idx(from), idx(to).min(bytes.len()));
    let Some(len) = to.checked_sub(from).filter(|n| *n >= 4) else { return Vec::new() };
    let mut fields = Fields::new();
    // For each place: the bytes of cells from there to the end when a cell or a freeblock begins there, and where the next
    // one begins; counted from `from`.
    let mut best: Vec<Option<(usize, usize, bool)>> = vec![None; len.saturating_add(1)];
    for at in (0..len.saturating_sub(3)).rev() {
        let place = from.saturating_add(at);
        let here = Cell::read(bytes, place, kind, split)
            .ok()
            .filter(|c| place.saturating_add(idx(c.len)) <= to && plausible(c, &mut fields) && fits(c));
        let cell = here.and_then(|c| {
            let n = idx(c.len);
            let (behind, next) = follow(&best, at.saturating_add(n), len)?;
            Some((behind.saturating_add(n), next, true))
        });
        let block = freeblocks.then(|| free_range(bytes, place, to)).flatten().and_then(|n| {
            let (behind, next) = follow(&best, at.saturating_add(n), len)?;
            Some((behind, next, false))
        });
        let step = match (cell, block) {
            (Some(c), Some(b)) => Some(if b.0 > c.0 { b } else { c }),
            (c, b) => c.or(b),
        };
        if let Some(slot) = best.get_mut(at) {
            *slot = step;
        }
    }
    let mut found = Vec::new();
    let longest = best.iter().enumerate().filter_map(|(i, b)| Some((b.as_ref()?.0, std::cmp::Reverse(i)))).max();
    let mut low = len;
    if let Some((_, std::cmp::Reverse(start))) = longest {
        low = start;
        let mut at = start;
        while let Some((_, next, is_cell)) = best.get(at).copied().flatten() {
            if is_cell {
                found.push(small(from.saturating_add(at)));
            }
            // Each step leads forward, so the page bounds it.
            at = next.max(at.saturating_add(1));
        }
    }
    if !freeblocks {
        let mut at = 0_usize;
        while at < low {
            let place = from.saturating_add(at);
            let Ok(cell) = Cell::read(bytes, place, kind, split) else { break };
            let end = at.saturating_add(idx(cell.len));
            if end > low || !plausible(&cell, &mut fields) || !fits(&cell) {
                break;
            }
            found.push(small(place));
            at = end.max(at.saturating_add(1));
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// What follows at or up to three bytes behind a place: bytes of cells to the end, and where the next begins.
fn follow(best: &[Option<(usize, usize, bool)>], at: usize, len: usize) -> Option<(usize, usize)> {
    for skip in 0..=FRAGMENT {
        let next = at.saturating_add(skip);
        if next == len {
            return Some((0, len));
        }
        if let Some((covered, ..)) = best.get(next).copied().flatten() {
            return Some((covered, next));
        }
    }
    None
}

/// The length of a freeblock at a place, when its four bytes can be one.
fn free_range(bytes: &[u8], at: usize, to: usize) -> Option<usize> {
    let next = usize::from(crate::bytes::u16_at(bytes, at)?);
    let len = usize::from(crate::bytes::u16_at(bytes, at.saturating_add(2))?);
    let end = at.saturating_add(len);
    (len >= 4 && end <= to && (next == 0 || (next >= end.saturating_add(4) && next < to))).then_some(len)
}

/// The cell at a place of a mended leaf.
#[must_use]
pub fn cell_at<'a>(bytes: &'a [u8], kind: PageKind, split: &Split, mended: &MendedCell) -> Option<Cell<'a>> {
    let mut cell = Cell::read(bytes, idx(mended.at), kind, split).ok()?;
    if mended.rowid.is_some() {
        cell.rowid = mended.rowid;
    }
    Some(cell)
}

/// Bytes of a page that nothing explains, behind the start of its content.
#[must_use]
pub fn unexplained(e: &Explained) -> Vec<(u32, u32)> {
    e.coverage.gaps(e.start).into_iter().filter(|(_, n)| wide(idx(*n)) > wide(FRAGMENT)).map(|(at, n)| (at, at.saturating_add(n))).collect()
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects)]
mod tests {
    use super::*;

    /// A page of three cells (rowids 1 to 3, one integer each) that end at its last byte, and nothing else on it.
    fn page() -> Vec<u8> {
        let mut b = vec![0xee_u8; 512];
        for (i, at) in [507_usize, 502, 497].into_iter().enumerate() {
            b[at..at + 5].copy_from_slice(&[3, 1 + u8::try_from(i).unwrap(), 2, 1, 40]);
        }
        b
    }

    #[test]
    fn cells_are_found_from_the_end_of_the_page() {
        let found = tile(&page(), (8, 512), PageKind::TableLeaf, &Split::new(512), true, &mut |_| true);
        assert_eq!(found, vec![497, 502, 507]);
    }

    #[test]
    fn cells_are_found_from_the_start_of_a_gap_too() {
        let mut b = page();
        b[502..507].fill(0xee);
        let found = tile(&b, (497, 512), PageKind::TableLeaf, &Split::new(512), false, &mut |_| true);
        assert_eq!(found, vec![497, 507]);
        let none = tile(&b, (497, 512), PageKind::TableLeaf, &Split::new(512), false, &mut |c| c.rowid == Some(9));
        assert!(none.is_empty());
    }

    #[test]
    fn a_freeblock_and_a_fragment_may_lie_between() {
        let mut b = page();
        b[502..507].copy_from_slice(&[0, 0, 0, 5, 77]);
        b[490..497].copy_from_slice(&[3, 9, 2, 1, 40, 0xee, 0xee]);
        let found = tile(&b, (8, 512), PageKind::TableLeaf, &Split::new(512), true, &mut |_| true);
        assert_eq!(found, vec![490, 497, 507]);
    }
}
