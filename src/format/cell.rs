//! Cells of b-tree pages and the split between local payload and overflow chain (section 1.6).

use crate::bytes::{put_varint, put_varint_i64, u32_at, varint, varint_i64};
use crate::finding::{Code, Defect};
use crate::format::page_kind::PageKind;
use crate::ids::{idx, small, wide};

/// Rules by which a payload is split, for one usable page size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Split {
    usable: u32,
    max_index: u32,
    max_table: u32,
    min: u32,
}

impl Split {
    /// The rules for pages with `usable` bytes (page size less reserved bytes), at least 480.
    #[must_use]
    pub fn new(usable: u32) -> Split {
        let u = usable.max(64);
        let part = |n: u32| u.saturating_sub(12).saturating_mul(n).checked_div(255).unwrap_or(0).saturating_sub(23);
        Split { usable: u, max_index: part(64), max_table: u.saturating_sub(35), min: part(32) }
    }

    /// Usable bytes of a page.
    #[must_use]
    pub fn usable(&self) -> u32 {
        self.usable
    }

    /// The largest payload that stays whole on a page of this kind.
    #[must_use]
    #[inline]
    pub fn max_local(&self, kind: PageKind) -> u32 {
        if kind == PageKind::TableLeaf { self.max_table } else { self.max_index }
    }

    /// How many bytes of a payload lie on the page itself; the rest is in the overflow chain.
    #[must_use]
    #[inline]
    pub fn local_len(&self, kind: PageKind, payload: u64) -> u32 {
        let max = self.max_local(kind);
        if payload <= u64::from(max) {
            return u32::try_from(payload).unwrap_or(max);
        }
        let chunk = u64::from(self.usable.saturating_sub(4)).max(1);
        let spill = payload.saturating_sub(u64::from(self.min)).checked_rem(chunk).unwrap_or(0);
        let k = u64::from(self.min).saturating_add(spill);
        if k <= u64::from(max) { u32::try_from(k).unwrap_or(self.min) } else { self.min }
    }

    /// Bytes of payload on one overflow page.
    #[must_use]
    pub fn overflow_chunk(&self) -> u32 {
        self.usable.saturating_sub(4)
    }
}

/// A decoded cell, borrowed from the page image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell<'a> {
    /// Offset on the page.
    pub at: u32,
    /// Bytes it takes on the page, at least 4 as SQLite allots them.
    pub len: u32,
    /// Left child page of an interior cell, not judged.
    pub child: Option<u32>,
    /// Rowid of a table cell.
    pub rowid: Option<i64>,
    /// Length of the whole payload; 0 for interior table cells.
    pub payload_len: u64,
    /// The payload bytes on this page.
    pub local: &'a [u8],
    /// First page of the overflow chain, not judged.
    pub overflow: Option<u32>,
}

impl<'a> Cell<'a> {
    /// Decodes the cell at `at`. `page` ends at the usable size.
    ///
    /// # Errors
    /// `varint-cut`, `payload-size-absurd` (more than 2^31 - 1) or `cell-outside` when its bytes run over the page.
    #[inline]
    pub fn read(page: &'a [u8], at: usize, kind: PageKind, split: &Split) -> Result<Cell<'a>, Defect> {
        let end = page.len();
        let cut = |o: usize| Defect::new(Code::VarintCut, small(at), wide(o), wide(end));
        let outside = |o: usize| Defect::new(Code::CellOutside, small(at), wide(o), wide(end));
        let mut o = at;
        let mut child = None;
        if kind.is_interior() {
            child = Some(u32_at(page, o).ok_or_else(|| outside(at))?);
            o = o.saturating_add(4);
        }
        if kind == PageKind::TableInterior {
            let (rowid, n) = varint_i64(page, o).ok_or_else(|| cut(o))?;
            let len = small(o.saturating_add(n).saturating_sub(at));
            return Ok(Cell { at: small(at), len, child, rowid: Some(rowid), payload_len: 0, local: &[], overflow: None });
        }
        let (payload_len, n) = varint(page, o).ok_or_else(|| cut(o))?;
        o = o.saturating_add(n);
        let mut rowid = None;
        if kind == PageKind::TableLeaf {
            let (r, n) = varint_i64(page, o).ok_or_else(|| cut(o))?;
            rowid = Some(r);
            o = o.saturating_add(n);
        }
        if payload_len > 0x7fff_ffff {
            return Err(Defect::new(Code::PayloadSizeAbsurd, small(at), payload_len, 0x7fff_ffff));
        }
        let local_len = idx(split.local_len(kind, payload_len));
        let stop = o.saturating_add(local_len);
        let local = page.get(o..stop).ok_or_else(|| outside(at))?;
        let mut overflow = None;
        let mut last = stop;
        if payload_len > wide(local_len) {
            overflow = Some(u32_at(page, stop).ok_or_else(|| outside(at))?);
            last = stop.saturating_add(4);
        }
        let len = small(last.saturating_sub(at)).max(4);
        Ok(Cell { at: small(at), len, child, rowid, payload_len, local, overflow })
    }
}

/// Appends the bytes of a cell: child pointer, payload length, rowid, local payload, overflow pointer, each where given.
/// The caller has split the payload with [`Split::local_len`].
pub fn encode_cell(
    out: &mut Vec<u8>,
    child: Option<u32>,
    payload_len: Option<u64>,
    rowid: Option<i64>,
    local: &[u8],
    overflow: Option<u32>,
) {
    if let Some(child) = child {
        out.extend_from_slice(&child.to_be_bytes());
    }
    if let Some(n) = payload_len {
        put_varint(out, n);
    }
    if let Some(r) = rowid {
        put_varint_i64(out, r);
    }
    out.extend_from_slice(local);
    if let Some(page) = overflow {
        out.extend_from_slice(&page.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_follow_the_document() {
        // Worked by hand from section 1.6 for 4096 usable bytes: X = 4061, M = 489, index X = 1002.
        let s = Split::new(4096);
        assert_eq!(s.max_local(PageKind::TableLeaf), 4061);
        assert_eq!(s.max_local(PageKind::IndexLeaf), 1002);
        assert_eq!(s.local_len(PageKind::TableLeaf, 4061), 4061);
        assert_eq!(s.local_len(PageKind::TableLeaf, 4062), 489);
        assert_eq!(s.local_len(PageKind::TableLeaf, 489 + 4092), 489);
        assert_eq!(s.local_len(PageKind::IndexLeaf, 1003), 1003 - 514);
    }

    #[test]
    fn cells_round_trip() {
        let split = Split::new(512);
        for kind in [PageKind::TableLeaf, PageKind::IndexLeaf, PageKind::IndexInterior, PageKind::TableInterior] {
            for len in [0_usize, 1, 3, 40, 101, 102, 477, 478, 5000] {
                let payload = vec![7_u8; len];
                let local = idx(split.local_len(kind, wide(len)));
                let mut out = vec![0; 20];
                let child = kind.is_interior().then_some(9);
                let table_interior = kind == PageKind::TableInterior;
                let rowid = kind.is_table().then_some(-5);
                let overflow = (len > local && !table_interior).then_some(77);
                let body: &[u8] = if table_interior { &[] } else { &payload[..local] };
                encode_cell(&mut out, child, (!table_interior).then_some(wide(len)), rowid, body, overflow);
                out.resize(out.len().max(24), 0);
                let cell = Cell::read(&out, 20, kind, &split).unwrap();
                assert_eq!((cell.child, cell.rowid, cell.local, cell.overflow), (child, rowid, body, overflow));
                assert_eq!(cell.payload_len, if table_interior { 0 } else { wide(len) });
            }
        }
    }
}
