//! Leaves whose header lies: the cells are found through the pointer array and the accounting of bytes.

use crate::format::cell::Cell;
use crate::format::{Fields, Page, PageKind, Split};
use crate::ids::{small, wide};
use crate::tree::accounting::Coverage;

/// What the pointer array of a page shows when it is read until it stops making sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inferred {
    /// The kind of leaf whose cells it has.
    pub kind: PageKind,
    /// How many pointers in a row lead to cells that decode, do not overlap and, on table leaves, ascend.
    pub count: u16,
    /// Bytes of the page that these cells explain.
    pub covered: u32,
    /// Where the lowest of them starts.
    pub lowest: u32,
    /// Whether they explain just the bytes that were asked for.
    pub exact: bool,
}

/// Reads the pointer array behind the header as that of a page of `kind`, until the cells explain `want` bytes: pointers
/// behind those in use are stale, and often lead to cells that are whole.
#[must_use]
pub fn infer(bytes: &[u8], header_at: usize, kind: PageKind, split: &Split, want: Option<u32>) -> Inferred {
    let mut coverage = Coverage::default();
    coverage.reset(small(bytes.len()));
    let mut fields = Fields::new();
    let mut found = Inferred { kind, count: 0, covered: 0, lowest: small(bytes.len()), exact: false };
    let mut last: Option<i64> = None;
    let first = header_at.saturating_add(kind.header_len());
    while found.count < u16::MAX {
        if found.count > 0 && want == Some(coverage.covered()) {
            found.exact = true;
            break;
        }
        let at = first.saturating_add(usize::from(found.count) << 1);
        let floor = at.saturating_add(2);
        let Some(pointer) = crate::bytes::u16_at(bytes, at).map(usize::from) else { break };
        if pointer < floor || floor > crate::ids::idx(found.lowest) {
            break;
        }
        let Ok(cell) = Cell::read(bytes, pointer, kind, split) else { break };
        let sound = cell.child != Some(0) && (kind == PageKind::TableInterior || plausible(&cell, &mut fields));
        if !sound || last.zip(cell.rowid).is_some_and(|(a, b)| b <= a) || !coverage.mark(cell.at, cell.len) {
            break;
        }
        last = cell.rowid;
        found.lowest = found.lowest.min(cell.at);
        found.count = found.count.saturating_add(1);
    }
    found.covered = coverage.covered();
    found
}

/// Whether the record of a cell is one, as far as its local bytes tell.
pub(crate) fn plausible(cell: &Cell<'_>, fields: &mut Fields) -> bool {
    match fields.read(cell.local, cell.payload_len) {
        Ok(()) => u64::from(fields.body_end()) == cell.payload_len && !fields.is_empty() && fields.reserved().is_none(),
        // A header that itself runs into the overflow chain cannot be judged here.
        Err(d) => d.code == crate::finding::Code::HeaderSizeBad && cell.overflow.is_some() && d.want == wide(cell.local.len()),
    }
}

/// The page as a leaf although its header says otherwise; `None` when its cells do not show it either.
#[must_use]
pub fn leaf<'a>(bytes: &'a [u8], header_at: usize, split: &Split) -> Option<Page<'a>> {
    let best = [PageKind::TableLeaf, PageKind::IndexLeaf]
        .into_iter()
        .map(|kind| infer(bytes, header_at, kind, split, None))
        .max_by_key(|i| (i.count, i.kind == PageKind::TableLeaf))?;
    if best.count == 0 {
        return None;
    }
    let mut page = Page::with_kind(bytes, header_at, best.kind)?;
    // The count of the header is believed where the pointers go at least as far.
    if page.cell_count == 0 || page.cell_count > best.count {
        page.cell_count = best.count;
    }
    if crate::ids::idx(page.content_start) < page.pointers_end() || page.content_start > best.lowest {
        page.content_start = best.lowest;
    }
    Some(page)
}

/// Whether a page begins as one of its kind does: the first record of a leaf is one, and all cells of an interior page are.
/// An empty page has nothing to say against it.
#[must_use]
#[inline]
pub fn begins_well(page: &Page<'_>, split: &Split) -> bool {
    if page.cell_count == 0 {
        return true;
    }
    if page.kind.is_interior() {
        return page.cells(*split).all(|(_, c)| c.is_ok_and(|c| c.child != Some(0)));
    }
    page.cell(0, split).is_ok_and(|c| plausible(&c, &mut Fields::new()))
}

/// Whether all the cells that a page declares are those of a page of this kind.
#[must_use]
pub fn reads_as(bytes: &[u8], header_at: usize, kind: PageKind, split: &Split) -> bool {
    let declared = crate::bytes::u16_at(bytes, header_at.saturating_add(3)).unwrap_or(0);
    declared > 0 && infer(bytes, header_at, kind, split, None).count >= declared
}

/// Where the lowest cell of a page starts, when more than half of the cells that it declares stand behind its pointers, decode, and
/// do not overlap.
fn lowest_of_most(page: &Page<'_>, split: &Split) -> Option<u32> {
    let pointers_end = small(page.pointers_end());
    let (mut coverage, mut fields) = (Coverage::default(), Fields::new());
    coverage.reset(small(page.bytes().len()));
    let (mut sound, mut lowest) = (0_u16, u32::MAX);
    for cell in page.cells(*split).filter_map(|(_, cell)| cell.ok()) {
        let is_cell = if page.kind == PageKind::TableInterior { cell.child != Some(0) } else { plausible(&cell, &mut fields) };
        if is_cell && cell.at >= pointers_end && coverage.mark(cell.at, cell.len) {
            sound = sound.saturating_add(1);
            lowest = lowest.min(cell.at);
        }
    }
    (sound > page.cell_count >> 1).then_some(lowest)
}

/// Mends the cell count of a page where the accounting of its bytes shows another: a page with more cells than it has room
/// for, or with fewer than its bytes are in use by.
#[must_use]
pub fn count<'a>(mut page: Page<'a>, header_at: usize, split: &Split) -> Page<'a> {
    let len = small(page.bytes().len());
    let start = page.content_start.min(len);
    let pointers_at = small(page.pointers_at());
    let room = u16::try_from(start.saturating_sub(pointers_at) >> 1).unwrap_or(u16::MAX);
    // A start of the content before the first pointer speaks of itself, and not of the count.
    if page.cell_count > 0
        && room == 0
        && let Some(lowest) = lowest_of_most(&page, split)
    {
        page.content_start = lowest;
        return page;
    }
    let too_big = page.cell_count > room;
    // The freeblocks do not depend on the count, but for where they may start.
    let mut chain = page;
    chain.cell_count = 0;
    let free = chain.freeblocks().try_fold(0_u32, |n, block| block.ok().map(|(_, l)| n.saturating_add(l)));
    let in_use = free.and_then(|f| len.saturating_sub(start).checked_sub(f.saturating_add(u32::from(page.fragments))));
    if too_big {
        let found = infer(page.bytes(), header_at, page.kind, split, in_use);
        page.cell_count = found.count;
        return page;
    }
    // What a leaf has beyond its count is looked for with all that is known of its table.
    if page.cell_count > 0 && !page.kind.is_interior() {
        return page;
    }
    let Some(in_use) = in_use.filter(|&n| n > 0) else { return page };
    let declared = page.cells(*split).try_fold(0_u32, |n, (_, cell)| cell.ok().map(|c| n.saturating_add(c.len)));
    if declared.is_some_and(|n| n < in_use) {
        let found = infer(page.bytes(), header_at, page.kind, split, Some(in_use));
        if found.exact && found.lowest >= start && found.count > page.cell_count {
            page.cell_count = found.count;
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> Vec<u8> {
        let mut b = vec![0_u8; 512];
        b[..8].copy_from_slice(&[13, 0, 0, 0, 2, 1, 0xf8, 0]);
        b[8..12].copy_from_slice(&[1, 0xfc, 1, 0xf8]);
        b[0x1fc..].copy_from_slice(&[2, 1, 2, 8]);
        b[0x1f8..0x1fc].copy_from_slice(&[2, 2, 2, 9]);
        b
    }

    #[test]
    fn a_clobbered_header_is_read_from_the_pointers() {
        let mut b = page();
        b[..8].copy_from_slice(&[0xee; 8]);
        let leaf = leaf(&b, 0, &Split::new(512)).unwrap();
        assert_eq!((leaf.kind, leaf.cell_count, leaf.content_start), (PageKind::TableLeaf, 2, 0x1f8));
    }

    #[test]
    fn a_content_start_before_the_pointers_leaves_the_count() {
        let mut b = page();
        b[5..7].copy_from_slice(&9_u16.to_be_bytes());
        // The first cell is bad, too; a third one follows.
        b[3..5].copy_from_slice(&3_u16.to_be_bytes());
        b[12..14].copy_from_slice(&0x1f4_u16.to_be_bytes());
        b[0x1f4..0x1f8].copy_from_slice(&[2, 3, 2, 9]);
        b[0x1fc..0x200].copy_from_slice(&[0xff; 4]);
        let page = Page::read_at(&b, 0, 512).unwrap();
        let mended = count(page, 0, &Split::new(512));
        assert_eq!((mended.cell_count, mended.content_start), (3, 0x1f4));
    }

    #[test]
    fn an_impossible_count_is_mended() {
        let mut b = page();
        for n in [0xffff_u16, 0] {
            b[3..5].copy_from_slice(&n.to_be_bytes());
            let page = Page::read_at(&b, 0, 512).unwrap();
            assert_eq!(count(page, 0, &Split::new(512)).cell_count, 2);
        }
    }
}
