//! B-tree pages: header, cell pointer array, free space (section 1.6).

use crate::bytes::{u8_at, u16_at, u32_at};
use crate::finding::{Code, Defect};
use crate::format::cell::{Cell, Split};
use crate::format::header::HEADER_LEN;
use crate::ids::{PageNo, idx, small, wide};

pub use crate::format::page_kind::PageKind;

/// A b-tree page, borrowed from its image. All numbers are as they stand; nothing but the kind is judged.
#[derive(Debug, Clone, Copy)]
pub struct Page<'a> {
    bytes: &'a [u8],
    header_at: usize,
    /// What kind of page.
    pub kind: PageKind,
    /// Offset of the first freeblock, 0 for none.
    pub first_freeblock: u16,
    /// Cells declared.
    pub cell_count: u16,
    /// Where cell content starts; 65536 when the field holds 0.
    pub content_start: u32,
    /// Free bytes in fragments of 1 to 3 bytes.
    pub fragments: u8,
    /// Right-most child of an interior page, not judged.
    pub right_child: Option<u32>,
}

impl<'a> Page<'a> {
    /// Reads the page header. `bytes` is the page image; what lies behind `usable` is not looked at. On page 1 the header
    /// starts behind the database header.
    ///
    /// # Errors
    /// `page-all-zero`, `page-kind-bad`, or `page-cut` when the header is not all there.
    #[inline]
    pub fn read(bytes: &'a [u8], no: PageNo, usable: u32) -> Result<Page<'a>, Defect> {
        let header_at = if no == PageNo::ONE { HEADER_LEN } else { 0 };
        Page::read_at(bytes, header_at, usable)
    }

    /// Reads a page header that starts `header_at` bytes into the page, for pages out of place.
    ///
    /// # Errors
    /// As [`Page::read`].
    #[inline]
    pub fn read_at(bytes: &'a [u8], header_at: usize, usable: u32) -> Result<Page<'a>, Defect> {
        let b = bytes.get(..idx(usable)).unwrap_or(bytes);
        let cut = || Defect::new(Code::PageCut, small(header_at), wide(bytes.len()), u64::from(usable));
        let kind_byte = u8_at(b, header_at).ok_or_else(cut)?;
        let Some(kind) = PageKind::from_byte(kind_byte) else {
            if b.iter().all(|&x| x == 0) {
                return Err(Defect::new(Code::PageAllZero, 0, wide(b.len()), 0));
            }
            return Err(Defect::new(Code::PageKindBad, small(header_at), u64::from(kind_byte), 0));
        };
        Page::with_kind(b, header_at, kind).ok_or_else(cut)
    }

    /// Reads a page as if its type byte were `kind`, for pages whose type byte is damaged. `bytes` must end at the usable size.
    #[must_use]
    pub fn with_kind(bytes: &'a [u8], header_at: usize, kind: PageKind) -> Option<Page<'a>> {
        let at = |n: usize| header_at.saturating_add(n);
        let content = u16_at(bytes, at(5))?;
        Some(Page {
            bytes,
            header_at,
            kind,
            first_freeblock: u16_at(bytes, at(1))?,
            cell_count: u16_at(bytes, at(3))?,
            content_start: if content == 0 { 65536 } else { u32::from(content) },
            fragments: u8_at(bytes, at(7))?,
            right_child: if kind.is_interior() { Some(u32_at(bytes, at(8))?) } else { None },
        })
    }

    /// The page image up to the usable size.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Offset of the cell pointer array.
    #[must_use]
    #[inline]
    pub fn pointers_at(&self) -> usize {
        self.header_at.saturating_add(self.kind.header_len())
    }

    /// Where the header says that cell content starts, whatever was taken instead; `None` when the page is too short.
    #[must_use]
    pub fn stored_content_start(&self) -> Option<u32> {
        let content = u16_at(self.bytes, self.header_at.saturating_add(5))?;
        Some(if content == 0 { 65536 } else { u32::from(content) })
    }

    /// How many of the declared cells have room for their pointers; one cell takes at least 6 bytes with its pointer.
    #[must_use]
    #[inline]
    pub fn pointer_count(&self) -> u16 {
        let room = self.bytes.len().saturating_sub(self.pointers_at());
        self.cell_count.min(u16::try_from(room >> 1).unwrap_or(u16::MAX))
    }

    /// Where the pointers end.
    #[must_use]
    #[inline]
    pub fn pointers_end(&self) -> usize {
        self.pointers_at().saturating_add(usize::from(self.pointer_count()) << 1)
    }

    /// The offset that cell pointer `i` holds.
    #[must_use]
    #[inline]
    pub fn pointer(&self, i: u16) -> Option<u16> {
        if i >= self.pointer_count() {
            return None;
        }
        u16_at(self.bytes, self.pointers_at().saturating_add(usize::from(i) << 1))
    }

    /// Cell `i` by its pointer.
    ///
    /// # Errors
    /// `cell-outside` when the pointer leads into the header or out of the page; what [`Cell::read`] says otherwise.
    #[inline]
    pub fn cell(&self, i: u16, split: &Split) -> Result<Cell<'a>, Defect> {
        let end = wide(self.bytes.len());
        let Some(at) = self.pointer(i) else {
            return Err(Defect::new(Code::CellOutside, 0, u64::from(i), end));
        };
        let at = usize::from(at);
        if at < self.pointers_end() || at >= self.bytes.len() {
            return Err(Defect::new(Code::CellOutside, small(at), wide(at), end));
        }
        Cell::read(self.bytes, at, self.kind, split)
    }

    /// *Indexed*: an `Err` says nothing about the next item. Every cell that has a pointer, in key order.
    pub fn cells(&self, split: Split) -> impl Iterator<Item = (u16, Result<Cell<'a>, Defect>)> + use<'a> {
        let page = *self;
        (0..page.pointer_count()).map(move |i| (i, page.cell(i, &split)))
    }

    /// The children of an interior page as it names them, in key order; cells that do not read give none.
    pub fn children(&self, split: Split) -> impl Iterator<Item = u32> + use<'a> {
        self.cells(split).filter_map(|(_, cell)| cell.ok()?.child).chain(self.right_child)
    }

    /// *Chained*: ends after its first `Err`. The freeblocks as (offset, length).
    #[must_use]
    pub fn freeblocks(&self) -> Freeblocks<'a> {
        Freeblocks { bytes: self.bytes, next: self.first_freeblock, floor: self.pointers_end() }
    }
}

/// *Chained*: ends after its first `Err`. Freeblocks of a page in ascending order; each lies behind the one before, so
/// the chain is bounded by the page.
#[derive(Debug, Clone)]
pub struct Freeblocks<'a> {
    bytes: &'a [u8],
    next: u16,
    floor: usize,
}

impl Iterator for Freeblocks<'_> {
    type Item = Result<(u32, u32), Defect>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next == 0 {
            return None;
        }
        let at = usize::from(self.next);
        self.next = 0;
        if at < self.floor {
            return Some(Err(Defect::new(Code::FreeblockOrder, small(at), wide(at), wide(self.floor))));
        }
        let outside = Defect::new(Code::FreeblockOutside, small(at), wide(at), wide(self.bytes.len()));
        let (Some(next), Some(len)) = (u16_at(self.bytes, at), u16_at(self.bytes, at.saturating_add(2))) else {
            return Some(Err(outside));
        };
        let end = at.saturating_add(usize::from(len));
        if len < 4 || end > self.bytes.len() {
            return Some(Err(outside));
        }
        self.next = next;
        // The next block starts at least 4 bytes on: closer ones would have been merged.
        self.floor = end.saturating_add(4);
        Some(Ok((small(at), u32::from(len))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf() -> Vec<u8> {
        let mut b = vec![0_u8; 512];
        b[..8].copy_from_slice(&[13, 0, 0, 0, 2, 1, 0xf0, 0]);
        b[8..12].copy_from_slice(&[1, 0xf8, 1, 0xf0]);
        b[0x1f8..0x1fc].copy_from_slice(&[2, 1, 1, 0]);
        b[0x1f0..0x1f4].copy_from_slice(&[2, 2, 1, 0]);
        b
    }

    #[test]
    fn a_bad_pointer_costs_one_cell() {
        let mut b = leaf();
        b[8] = 0xff;
        let page = Page::read(&b, PageNo::new(2).unwrap(), 512).unwrap();
        let cells: Vec<_> = page.cells(Split::new(512)).collect();
        assert_eq!(cells[0].1.unwrap_err().code, Code::CellOutside);
        assert_eq!(cells[1].1.unwrap().rowid, Some(2));
    }

    #[test]
    fn page_one_starts_behind_the_database_header() {
        let mut b = vec![0_u8; 512];
        b[100] = 13;
        assert_eq!(Page::read(&b, PageNo::ONE, 512).unwrap().kind, PageKind::TableLeaf);
        assert_eq!(Page::read(&b, PageNo::new(2).unwrap(), 512).unwrap_err().code, Code::PageKindBad);
        assert_eq!(Page::read(&[0; 512], PageNo::ONE, 512).unwrap_err().code, Code::PageAllZero);
    }

    #[test]
    fn freeblock_chains_end_at_the_first_bad_link() {
        let mut b = leaf();
        b[1..3].copy_from_slice(&[1, 0]);
        b[0x100..0x104].copy_from_slice(&[0, 0xf0, 0, 8]);
        let page = Page::read(&b, PageNo::new(2).unwrap(), 512).unwrap();
        let blocks: Vec<_> = page.freeblocks().collect();
        assert_eq!(blocks[0], Ok((0x100, 8)));
        assert_eq!(blocks[1].unwrap_err().code, Code::FreeblockOrder);
        assert_eq!(blocks.len(), 2);
    }
}
