//! Bytes that were lost or inserted within the file: everything behind them stands off the page boundaries, or, where they
//! were whole pages, has another number.
//!
//! Tests:    from the end backwards, which pages close where they should; where the others close instead. Where the file has
//!           more or fewer pages than its header says: which children fit their parents as numbered, which displaced.
//! Collects: the shift, and the page from which it holds.
//! Leaves:   the page that the damage goes through; a second shift behind the first.

use std::collections::BTreeMap;

use super::page_fit;
use crate::format::cell::Split;
use crate::format::header::HEADER_LEN;
use crate::format::page::Page;
use crate::ids::{PageNo, PageSize, idx, small};

/// Pages at the end that are looked at for one that closes. Behind the last that does there may be a long chain of overflow
/// pages, which never close.
const TAIL: usize = 1 << 16;

/// Bytes behind the last page that closes in which displaced pages are looked for.
const WINDOW: usize = 4 << 20;

/// Displaced pages that must be found: one or two may be chance.
const LEAST: u32 = 3;

/// A displacement that begins within the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Displaced {
    /// By how many bytes: negative where bytes were lost.
    pub(super) shift: i64,
    /// The first page that it applies to, counted from 0.
    pub(super) from: usize,
    /// Displaced pages that were found.
    pub(super) pages: u32,
}

/// Finds a displacement behind the second page. `first_has_header` as in [`page_fit::vote`].
pub(super) fn find(main: &[u8], size: PageSize, reserved: u8, first_has_header: bool) -> Option<Displaced> {
    let usable = size.get().saturating_sub(u32::from(reserved));
    let pages = main.len().checked_div(size.len())?;
    let closes_at =
        |at: usize, header_at: usize| main.get(at..at.checked_add(size.len())?).filter(|p| page_fit::closes(p, header_at, usable));
    let in_place = |i: usize| closes_at(i.saturating_mul(size.len()), if i == 0 && first_has_header { 100 } else { 0 }).is_some();
    let last_good = (0..pages).rev().take(TAIL).find(|&i| in_place(i))?;
    let behind = last_good.checked_add(1)?;
    if pages.checked_sub(behind)? < idx(LEAST) {
        return None;
    }
    let tail = main.get(behind.checked_mul(size.len())?..)?;
    let (rest, found) = page_fit::off_grid(tail, size, reserved, WINDOW)?;
    if rest == 0 || found < LEAST {
        return None;
    }
    let shift = shift_of(rest, size)?;
    Some(Displaced { shift, from: begin(main, size, usable, shift)?, pages: found })
}

/// The shift of pages that start `rest` bytes behind a page boundary: a remainder in the upper half means that bytes are
/// missing, one in the lower half that there are too many.
pub(super) fn shift_of(rest: usize, size: PageSize) -> Option<i64> {
    let shift = i64::try_from(rest).ok()?;
    if rest > size.len() >> 1 { shift.checked_sub(i64::from(size.get())) } else { Some(shift) }
}

/// The first page, counted from 0, that a shift applies to: behind the pages that close where they should.
pub(super) fn begin(main: &[u8], size: PageSize, usable: u32, shift: i64) -> Option<usize> {
    let pages = main.len().checked_div(size.len())?;
    let closes =
        |at: Option<usize>| at.and_then(|at| main.get(at..at.checked_add(size.len())?)).is_some_and(|p| page_fit::closes(p, 0, usable));
    let in_place = |i: usize| closes(i.checked_mul(size.len()));
    let moved = |i: usize| closes(moved_start(size, i, shift));
    let first = (1..pages).find(|&i| moved(i) && !in_place(i))?;
    let last_good = (1..first).rev().find(|&i| in_place(i)).unwrap_or(0);
    // The damage goes through one page; overflow pages behind it do not close anywhere.
    Some(first.min(last_good.saturating_add(2)).max(1))
}

fn moved_start(size: PageSize, index: usize, shift: i64) -> Option<usize> {
    usize::try_from(i64::try_from(index.checked_mul(size.len())?).ok()?.checked_add(shift)?).ok()
}

/// References to children that are followed to tell whether pages are displaced by whole pages.
const REFERENCES: usize = 1 << 17;

/// Whole pages that were lost or inserted within the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moved {
    /// By how many pages those behind are displaced: negative where pages were lost.
    pub(super) pages: i64,
    /// The first page that stands displaced.
    pub(super) from: u32,
    /// Children that fit their parents only with the displacement.
    pub(super) hits: u32,
}

/// Finds a displacement by whole pages in a file that should have `declared` ones. Children before the break fit their
/// parents where they should stand, those behind it only displaced.
pub(super) fn whole_pages(main: &[u8], size: PageSize, reserved: u8, declared: u32) -> Option<Moved> {
    let there = main.len().checked_div(size.len())?;
    let by = i64::try_from(there).ok()?.checked_sub(i64::from(declared))?;
    if by == 0 || size.rest(crate::ids::wide(main.len())) != 0 {
        return None;
    }
    let gains = gains(main, size, size.get().saturating_sub(u32::from(reserved)), declared, by);
    // The place from which on the displacement gains most.
    let (mut sum, mut best, mut from) = (0_i64, 0_i64, None);
    let (mut straight, mut moved, mut neither, mut at_best) = (0_u32, 0_u32, 0_u32, (0_u32, 0_u32, 0_u32));
    for (&child, gain) in gains.iter().rev() {
        sum = sum.saturating_add(i64::from(*gain));
        straight = straight.saturating_add(u32::from(*gain < 0));
        moved = moved.saturating_add(u32::from(*gain > 0));
        neither = neither.saturating_add(u32::from(*gain == 0));
        if sum > best {
            (best, from, at_best) = (sum, Some(child), (straight, moved, neither));
        }
    }
    let from = from?;
    let before: i64 = gains.range(..from).map(|(_, g)| i64::from(*g)).sum();
    let (straight, hits, neither) = at_best;
    // Of a file that was cut the children behind the end fit nowhere; of one that lost pages these alone do not.
    let lost = u32::try_from(by.min(0).unsigned_abs()).unwrap_or(u32::MAX);
    let missing = || gains.range(from.saturating_sub(lost)..from).map(|(_, g)| *g);
    if before > 0 || missing().any(|g| g < 0) || neither > (hits >> 1).saturating_add(lost.min(hits)) {
        return None;
    }
    // A few may be chance, and damage of another kind must not look like this; but where nothing behind the break stands as
    // numbered, the rows of one leaf that lie between its bounds are enough, as the number of pages is off by the same. Of
    // lost pages one must be known not to be what stands there.
    let sole = straight == 0 && gains.range(..from).all(|(_, g)| *g <= 0) && (by > 0 || missing().any(|g| g == 0));
    if (hits < LEAST && !sole) || hits < straight.saturating_mul(4) {
        return None;
    }
    // Between the last page that stands where it should and the first that does not nothing tells where the break is, but
    // that a page of zeros was inserted.
    let last_good = gains.range(..from).rev().find(|(_, g)| **g < 0).map_or(1, |(c, _)| *c);
    let zero = |no: &u32| {
        let start = PageNo::new(*no).map_or(0, |no| no.index().saturating_mul(size.len()));
        main.get(start..start.saturating_add(size.len())).is_some_and(|p| p.iter().all(|&b| b == 0))
    };
    let from = if by > 0 { (last_good.saturating_add(1)..=from).find(zero).unwrap_or(from) } else { from };
    Some(Moved { pages: by, from, hits })
}

/// For each child of a table what its rowids say, against the bounds that its parent sets: 1 when the page that stands
/// displaced keeps them, -1 when the one with its number does, 0 when neither or both do. One page of an index looks like
/// another.
fn gains(main: &[u8], size: PageSize, usable: u32, declared: u32, by: i64) -> BTreeMap<u32, i8> {
    let split = Split::new(usable);
    let at_page = |no: i64| -> Option<&[u8]> {
        let start = usize::try_from(no.checked_sub(1)?).ok()?.checked_mul(size.len())?;
        main.get(start..start.checked_add(size.len())?)
    };
    let mut out = BTreeMap::new();
    let mut left = REFERENCES;
    for (i, image) in main.chunks_exact(size.len()).enumerate() {
        let header_at = if i == 0 { HEADER_LEN } else { 0 };
        if image.get(header_at) != Some(&5) || !page_fit::closes(image, header_at, usable) {
            continue;
        }
        let Ok(page) = Page::read_at(image, header_at, usable) else { continue };
        let mut low = i64::MIN;
        let cells = page.cells(split).filter_map(|(_, c)| c.ok()).map(|c| (c.child, c.rowid));
        for (child, key) in cells.chain([(page.right_child, None)]) {
            let (above, upto) = (low, key.unwrap_or(i64::MAX));
            low = key.unwrap_or(low);
            let Some(child) = child.filter(|c| (2..=declared).contains(c)) else { continue };
            let Some(rest) = left.checked_sub(1) else { return out };
            left = rest;
            let fits = |no: i64| at_page(no).is_some_and(|p| page_fit::child_fits(p, page.kind, &split, above, upto));
            let gain = match (fits(i64::from(child)), fits(i64::from(child).saturating_add(by))) {
                (false, true) => 1,
                (true, false) => -1,
                _ => 0,
            };
            out.insert(child, gain);
        }
    }
    out
}

/// The page that the damage goes through, put together from the bytes before and behind it, if it is an interior page with
/// cells that then decode. Of a leaf the missing bytes were values: it is read as it stands.
pub(super) fn mended(main: &[u8], size: PageSize, usable: u32, index: usize, shift: i64) -> Option<Vec<u8>> {
    let start = index.checked_mul(size.len())?;
    let head = main.get(start..start.checked_add(size.len())?.min(main.len()))?;
    if !matches!(head.first(), Some(2 | 5)) {
        return None;
    }
    let candidate = |p: usize| -> Option<Vec<u8>> {
        let mut out = head.get(..p)?.to_vec();
        let tail_at = usize::try_from(i64::try_from(start.checked_add(p)?).ok()?.checked_add(shift.max(0))?).ok()?;
        let lost = usize::try_from(shift.min(0).unsigned_abs()).ok()?;
        out.resize(p.checked_add(lost)?, 0);
        let rest = size.len().checked_sub(out.len())?;
        out.extend_from_slice(main.get(tail_at..tail_at.checked_add(rest)?)?);
        Some(out)
    };
    // Pointers that were lost themselves are found later by what the cells cover.
    let split = Split::new(usable);
    let pages = small(main.len().div_ceil(size.len()));
    let in_file = |child: u32| child > 1 && child <= pages;
    let sound = |b: &[u8]| {
        let Ok(page) = Page::read_at(b, 0, usable) else { return (0, 0) };
        let whole = page_fit::shape(b, 0, usable).filter(|s| s.end == usable).map_or(0, |s| s.cells);
        let cells =
            page.cells(split).filter(|(_, c)| c.as_ref().is_ok_and(|c| c.at >= page.content_start && c.child.is_some_and(in_file))).count();
        (cells, whole)
    };
    let best = (1..size.len()).filter_map(candidate).max_by_key(|b| sound(b))?;
    (sound(&best).0 > 0).then_some(best)
}
