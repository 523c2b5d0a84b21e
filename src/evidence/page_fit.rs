//! Whether bytes are a b-tree page of a given size: the page's own accounting as a vote on the geometry of a file.
//!
//! SQLite fills a page from its end, so on a page in use some cell or freeblock ends exactly where the usable bytes end.
//! A page read at the wrong size, with the wrong number of reserved bytes or from the wrong place does not close like that.

use crate::format::cell::{Cell, Split};
use crate::format::header::HEADER_LEN;
use crate::format::page::{Page, PageKind};
use crate::format::record::Fields;
use crate::ids::{PageSize, idx, small};

/// What the cells of a page add up to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Its kind.
    pub kind: PageKind,
    /// Cells with a pointer.
    pub cells: u16,
    /// Where the last cell or freeblock ends, in bytes from the start of the page.
    pub end: u32,
    /// Whether that end depends on how the payload of the last cell was split.
    pub end_is_split: bool,
}

/// The shape of a page whose header starts at `header_at`, or `None` when anything in it contradicts itself.
#[must_use]
pub fn shape(bytes: &[u8], header_at: usize, usable: u32) -> Option<Shape> {
    let kind = PageKind::from_byte(*bytes.get(header_at)?)?;
    let page = Page::with_kind(bytes.get(..idx(usable)).unwrap_or(bytes), header_at, kind)?;
    // The smallest cell takes 4 bytes and its pointer 2; more do not fit.
    let room = idx(usable).saturating_sub(page.pointers_at());
    if usize::from(page.cell_count).saturating_mul(6) > room || page.fragments > 60 {
        return None;
    }
    if usize::try_from(page.content_start).ok()? < page.pointers_end() || (page.content_start > usable && page.content_start != 65536) {
        return None;
    }
    if page.cell_count == 0 {
        let empty = page.first_freeblock == 0 && page.fragments == 0 && !kind.is_interior();
        return empty.then_some(Shape { kind, cells: 0, end: page.content_start, end_is_split: false });
    }
    let split = Split::new(usable);
    let (mut end, mut end_is_split) = (0_u32, false);
    for (_, cell) in page.cells(split) {
        let cell = cell.ok()?;
        if cell.at < page.content_start || cell.child == Some(0) || cell.overflow == Some(0) {
            return None;
        }
        let cell_end = cell.at.checked_add(cell.len)?;
        if cell_end > end {
            (end, end_is_split) = (cell_end, cell.overflow.is_some());
        }
    }
    for block in page.freeblocks() {
        let (at, len) = block.ok()?;
        let block_end = at.checked_add(len)?;
        if block_end > end {
            (end, end_is_split) = (block_end, false);
        }
    }
    Some(Shape { kind, cells: page.cell_count, end, end_is_split })
}

/// Whether the page closes exactly at the end of its usable bytes.
#[must_use]
pub fn closes(bytes: &[u8], header_at: usize, usable: u32) -> bool {
    shape(bytes, header_at, usable).is_some_and(|s| s.end == usable)
}

/// Whether the first page of a database closes, and what it leads to stands where it says: the roots that its schema records
/// name or, on an interior page, its children. At least one of them closes, and no more fail than close. A BLOB may hold pages
/// of any size; none of its pages is led to.
#[must_use]
pub fn leads(bytes: &[u8], size: PageSize, reserved: u8) -> bool {
    let usable = size.get().saturating_sub(u32::from(reserved));
    let first = bytes.get(..size.len()).filter(|page| leaves_enough(size, reserved) && closes(page, HEADER_LEN, usable));
    let Some(page) = first.and_then(|first| Page::with_kind(first, HEADER_LEN, PageKind::from_byte(*first.get(HEADER_LEN)?)?)) else {
        return false;
    };
    let mut fields = Fields::new();
    let mut root = |cell: &Cell<'_>| {
        fields.read(cell.local, cell.payload_len).ok()?;
        fields.value(cell.local, 3)?.as_int().and_then(|n| u32::try_from(n).ok())
    };
    let led = page.cells(Split::new(usable)).filter_map(|(_, cell)| cell.ok().and_then(|c| c.child.or_else(|| root(&c))));
    let (mut close, mut fail) = (0_u32, 0_u32);
    for no in led.chain(page.right_child).filter(|&no| no > 1) {
        let at = u64::from(no).saturating_sub(1).saturating_mul(u64::from(size.get()));
        let child = usize::try_from(at).ok().and_then(|at| bytes.get(at..at.checked_add(size.len())?));
        let count = if child.is_some_and(|page| closes(page, 0, usable)) { &mut close } else { &mut fail };
        *count = count.saturating_add(1);
    }
    close > 0 && close >= fail
}

/// Pages looked at for one vote: enough for a clear result, few enough to cost nothing on a large file.
const SAMPLES: usize = 256;

/// The outcome of a vote over sampled pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Vote {
    /// Pages that close.
    pub agree: u32,
    /// Pages looked at that are not all zero.
    pub seen: u32,
    /// Pages that close and have cells.
    pub full: u32,
}

impl Vote {
    /// Whether this vote speaks more clearly than another: by share of pages, and by number.
    #[must_use]
    pub fn beats(&self, other: &Vote) -> bool {
        let share = |a: &Vote, b: &Vote| u64::from(a.agree).saturating_mul(u64::from(b.seen.max(1)));
        let (mine, theirs) = (share(self, other), share(other, self));
        mine > theirs || (mine == theirs && self.agree > other.agree)
    }
}

/// Byte offsets of evenly spread pages: `start`, `start + size`, … up to the end, at most [`SAMPLES`] of them.
fn sample_starts(len: usize, start: usize, size: usize) -> impl Iterator<Item = (usize, usize)> {
    let pages = len.saturating_sub(start).checked_div(size).unwrap_or(0);
    let step = pages.div_ceil(SAMPLES).max(1);
    (0..pages).step_by(step).map(move |i| (i, start.saturating_add(i.saturating_mul(size))))
}

/// Votes on pages of `size` bytes with `reserved` unused ones, the first at byte `start`; `first_has_header` says that
/// page headers of the first one lie behind a database header.
#[must_use]
pub fn vote(bytes: &[u8], start: usize, size: PageSize, reserved: u8, first_has_header: bool) -> Vote {
    let usable = size.get().saturating_sub(u32::from(reserved));
    let mut vote = Vote::default();
    for (i, at) in sample_starts(bytes.len(), start, size.len()) {
        let Some(page) = bytes.get(at..at.saturating_add(size.len())) else { continue };
        if page.iter().all(|&b| b == 0) {
            continue;
        }
        vote.seen = vote.seen.saturating_add(1);
        let header_at = if i == 0 && first_has_header { 100 } else { 0 };
        if let Some(shape) = shape(page, header_at, usable)
            && shape.end == usable
        {
            vote.agree = vote.agree.saturating_add(1);
            vote.full = vote.full.saturating_add(u32::from(shape.cells > 0));
        }
    }
    vote
}

/// Whether the usable size of a page with this many reserved bytes is one that the format allows (section 1.3.4).
#[must_use]
pub fn leaves_enough(size: PageSize, reserved: u8) -> bool {
    size.get().saturating_sub(u32::from(reserved)) >= 480
}

/// Numbers of reserved bytes that the pages show, the most frequent first, at most four. Zero is included, and `known` where
/// the format allows it.
#[must_use]
pub fn reserved_candidates(bytes: &[u8], start: usize, size: PageSize, first_has_header: bool, known: Option<u8>) -> Vec<u8> {
    let mut seen = [0_u32; 256];
    for (i, at) in sample_starts(bytes.len(), start, size.len()) {
        let Some(page) = bytes.get(at..at.saturating_add(size.len())) else { continue };
        let header_at = if i == 0 && first_has_header { 100 } else { 0 };
        let Some(shape) = shape(page, header_at, size.get()).filter(|s| !s.end_is_split) else { continue };
        let rest = idx(size.get().saturating_sub(shape.end));
        if let Some(count) = seen.get_mut(rest) {
            *count = count.saturating_add(1);
        }
    }
    let mut order: Vec<(u32, u8)> = seen.iter().zip(0..=u8::MAX).map(|(&n, r)| (n, r)).filter(|&(n, _)| n > 0).collect();
    order.sort_by_key(|&(n, r)| (std::cmp::Reverse(n), r));
    let mut unique = Vec::new();
    for r in known.into_iter().chain([0]).chain(order.into_iter().take(4).map(|(_, r)| r)) {
        if leaves_enough(size, r) && !unique.contains(&r) {
            unique.push(r);
        }
    }
    unique
}

/// Whether some page of some size closes somewhere on a page boundary: traces of a database.
#[must_use]
pub fn any_page(bytes: &[u8]) -> bool {
    PageSize::ALL.iter().filter_map(|&n| PageSize::new(n)).any(|size| {
        let found = vote(bytes, 0, size, 0, false);
        let with_header = vote(bytes, 0, size, 0, true);
        found.agree > 0 || with_header.agree > 0
    })
}

/// Whether the child pointers of interior pages hit pages that fit, when page N stands where page N + `delta` is looked for.
///
/// A hit is a child of the right kind whose rowids, in a table tree, lie within the bounds of its parent.
#[must_use]
pub fn child_hits(bytes: &[u8], start: usize, size: PageSize, reserved: u8, delta: i64) -> u32 {
    let usable = size.get().saturating_sub(u32::from(reserved));
    let split = Split::new(usable);
    let at_page = |no: i64| -> Option<&[u8]> {
        let index = usize::try_from(no.checked_sub(1)?).ok()?;
        let from = start.checked_add(index.checked_mul(size.len())?)?;
        bytes.get(from..from.checked_add(size.len())?)
    };
    let mut hits = 0_u32;
    let mut parents = 0_usize;
    let pages = bytes.len().saturating_sub(start).checked_div(size.len()).unwrap_or(0);
    for i in 0..pages.min(1 << 16) {
        let from = start.saturating_add(i.saturating_mul(size.len()));
        let Some(image) = bytes.get(from..from.saturating_add(size.len())) else { break };
        let header_at = if image.starts_with(b"SQLite format 3\0") { 100 } else { 0 };
        if !matches!(image.get(header_at), Some(2 | 5)) || !closes(image, header_at, usable) {
            continue;
        }
        let Ok(page) = Page::read_at(image, header_at, usable) else { continue };
        parents = parents.saturating_add(1);
        if parents > 64 {
            break;
        }
        let mut low = i64::MIN;
        for (_, cell) in page.cells(split).take(64) {
            let Ok(cell) = cell else { break };
            let Some(child) = cell.child.and_then(|c| at_page(i64::from(c).saturating_add(delta))) else { continue };
            let high = cell.rowid.unwrap_or(i64::MAX);
            hits = hits.saturating_add(u32::from(child_fits(child, page.kind, &split, low, high)));
            low = cell.rowid.unwrap_or(i64::MIN);
        }
        if page.cell_count < 64
            && let Some(child) = page.right_child.and_then(|c| at_page(i64::from(c).saturating_add(delta)))
        {
            hits = hits.saturating_add(u32::from(child_fits(child, page.kind, &split, low, i64::MAX)));
        }
    }
    hits
}

pub fn child_fits(bytes: &[u8], parent: PageKind, split: &Split, low: i64, high: i64) -> bool {
    let Ok(page) = Page::read_at(bytes, 0, split.usable()) else { return false };
    if page.kind.is_table() != parent.is_table() || page.cell_count == 0 || !closes(bytes, 0, split.usable()) {
        return false;
    }
    if !parent.is_table() {
        return true;
    }
    let rowid = |i: u16| page.cell(i, split).ok().and_then(|c| c.rowid);
    let (first, last) = (rowid(0), rowid(page.cell_count.saturating_sub(1)));
    matches!((first, last), (Some(a), Some(b)) if a <= b && (low == i64::MIN || a > low) && b <= high)
}

/// Where in the file, in bytes, pages of some size start that do not start on a page boundary: the most frequent remainder
/// of the offsets of closing pages, with how many pages show it. Looks at the first `budget` bytes.
#[must_use]
pub fn off_grid(bytes: &[u8], size: PageSize, reserved: u8, budget: usize) -> Option<(usize, u32)> {
    let usable = size.get().saturating_sub(u32::from(reserved));
    let mut seen = vec![0_u32; size.len()];
    let end = bytes.len().min(budget);
    let mut at = 0_usize;
    while at.saturating_add(size.len()) <= end {
        let Some(window) = bytes.get(at..at.saturating_add(size.len())) else { break };
        if matches!(window.first(), Some(2 | 5 | 10 | 13))
            && shape(window, 0, usable).is_some_and(|s| s.end == usable && s.cells > 0)
            && let Some(count) = at.checked_rem(size.len()).and_then(|r| seen.get_mut(r))
        {
            *count = count.saturating_add(1);
        }
        at = at.saturating_add(1);
    }
    let best = seen.iter().enumerate().max_by_key(|&(i, &n)| (n, std::cmp::Reverse(i)))?;
    (*best.1 > 0).then_some((best.0, *best.1))
}

/// A page number as the report shows it for a byte offset.
#[must_use]
pub fn page_at(offset: usize, size: PageSize) -> u32 {
    small(offset.checked_div(size.len()).unwrap_or(0)).saturating_add(1)
}
