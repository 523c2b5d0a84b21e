//! One b-tree page being filled: cells from the end of the page downwards, pointers behind the header, no gaps.

use crate::bytes::{put_u16, put_u32, u16_at, u32_at, varint, varint_i64};
use crate::format::PageKind;
use crate::format::Split;
use crate::ids::{idx, narrow};

/// A b-tree page that takes cells in key order until it is full.
#[derive(Debug)]
pub(crate) struct Packing {
    kind: PageKind,
    image: Vec<u8>,
    usable: usize,
    cells: usize,
    top: usize,
    /// Right-most child of an interior page, 0 on leaves.
    pub(crate) right: u32,
}

impl Packing {
    /// An empty page of `size` bytes of which `usable` may hold content.
    pub(crate) fn new(kind: PageKind, size: usize, usable: u32) -> Packing {
        let usable = idx(usable);
        Packing { kind, image: vec![0; size], usable, cells: 0, top: usable, right: 0 }
    }

    /// Takes all cells off; the memory is used again.
    pub(crate) fn clear(&mut self) {
        self.cells = 0;
        self.top = self.usable;
        self.right = 0;
    }

    pub(crate) fn kind(&self) -> PageKind {
        self.kind
    }

    pub(crate) fn cells(&self) -> usize {
        self.cells
    }

    /// Room for a cell of `len` bytes, at least four of which are allotted, or `None` when the page is full.
    #[inline]
    pub(crate) fn place(&mut self, len: usize) -> Option<&mut [u8]> {
        let pointer = self.kind.header_len() + 2 * self.cells;
        let top = self.top.checked_sub(len.max(4))?;
        if top < pointer + 2 {
            return None;
        }
        if !put_u16(&mut self.image, pointer, u16::try_from(top).ok()?) {
            return None;
        }
        let place = self.image.get_mut(top..self.top)?;
        self.top = top;
        self.cells += 1;
        let (cell, pad) = place.split_at_mut_checked(len)?;
        pad.fill(0);
        Some(cell)
    }

    /// Adds a cell made of these parts; `false` when the page is full.
    #[inline]
    pub(crate) fn push(&mut self, parts: &[&[u8]]) -> bool {
        let len = parts.iter().map(|p| p.len()).sum();
        let Some(mut place) = self.place(len) else { return false };
        for part in parts {
            let Some((to, behind)) = place.split_at_mut_checked(part.len()) else { return false };
            to.copy_from_slice(part);
            place = behind;
        }
        true
    }

    /// The bytes of cell `i`, padding included.
    pub(crate) fn cell(&self, i: usize) -> &[u8] {
        let at = |i: usize| u16_at(&self.image, self.kind.header_len() + 2 * i).map(usize::from);
        let start = if i < self.cells { at(i).unwrap_or(self.usable) } else { self.usable };
        let end = i.checked_sub(1).and_then(at).unwrap_or(self.usable);
        self.image.get(start..end).unwrap_or_default()
    }

    /// Child pointer of cell `i` of an interior page.
    pub(crate) fn child(&self, i: usize) -> u32 {
        u32_at(self.cell(i), 0).unwrap_or(0)
    }

    /// What cell `i` carries up when it becomes a divider: the whole entry of an index, the rowid of a table.
    pub(crate) fn entry(&self, i: usize, split: &Split) -> &[u8] {
        let cell = self.cell(i);
        match self.kind {
            PageKind::TableLeaf => {
                let skip = varint(cell, 0).map_or(0, |(_, n)| n);
                let len = varint_i64(cell, skip).map_or(0, |(_, n)| n);
                cell.get(skip..skip + len).unwrap_or_default()
            }
            PageKind::TableInterior => cell.get(4..).and_then(|c| c.get(..varint(c, 0)?.1)).unwrap_or_default(),
            PageKind::IndexLeaf => unpadded(cell, self.kind, split),
            PageKind::IndexInterior => unpadded(cell.get(4..).unwrap_or_default(), self.kind, split),
        }
    }

    /// First page of the overflow chain of cell `i`, if it has one.
    pub(crate) fn overflow(&self, i: usize, split: &Split) -> Option<u32> {
        let cell = self.cell(i);
        let skip = if self.kind.is_interior() { 4 } else { 0 };
        if self.kind == PageKind::TableInterior {
            return None;
        }
        let (payload, n) = varint(cell, skip)?;
        let local = split.local_len(self.kind, payload);
        if payload <= u64::from(local) {
            return None;
        }
        let mut at = skip + n;
        if self.kind == PageKind::TableLeaf {
            at += varint(cell, at)?.1;
        }
        u32_at(cell, at + idx(local))
    }

    /// Takes the last cell off.
    pub(crate) fn pop(&mut self) {
        if let Some(last) = self.cells.checked_sub(1) {
            self.top += self.cell(last).len();
            self.cells = last;
        }
    }

    /// Whether the page, with its header moved back by `base` bytes, still has room for its pointers.
    pub(crate) fn fits_at(&self, base: usize) -> bool {
        base + self.kind.header_len() + 2 * self.cells <= self.top
    }

    /// Writes the page header `base` bytes into the page (100 on page 1, else 0), zeros between pointers and content, and
    /// gives the finished image.
    pub(crate) fn seal(&mut self, base: usize) -> &mut [u8] {
        let header = self.kind.header_len();
        let pointers = 2 * self.cells;
        if base > 0 && self.fits_at(base) {
            self.image.copy_within(header..header + pointers, base + header);
        }
        if let Some(gap) = self.image.get_mut(base + header + pointers..self.top) {
            gap.fill(0);
        }
        if let Some(place) = self.image.get_mut(base..base + header) {
            place.fill(0);
            if let Some(kind) = place.first_mut() {
                *kind = self.kind.byte();
            }
            put_u16(place, 3, u16::try_from(self.cells).unwrap_or(u16::MAX));
            // 65536, the end of an empty page of that size, is stored as 0.
            put_u16(place, 5, u16::try_from(self.top).unwrap_or(0));
            if self.kind.is_interior() {
                put_u32(place, 8, self.right);
            }
        }
        &mut self.image
    }
}

/// An index entry without the padding that fills a short cell to four bytes.
fn unpadded<'a>(entry: &'a [u8], kind: PageKind, split: &Split) -> &'a [u8] {
    let Some((payload, n)) = varint(entry, 0) else { return entry };
    let local = split.local_len(kind, payload);
    let link = if payload > u64::from(local) { 4 } else { 0 };
    entry.get(..n + narrow(u64::from(local)) + link).unwrap_or(entry)
}
