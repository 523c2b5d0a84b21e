//! Pointer-map pages of auto-vacuum databases (section 1.8).

use crate::bytes::{u8_at, u32_at};
use crate::ids::{PageNo, idx};

/// What a pointer-map entry says about its page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PtrmapKind {
    /// 1: root page of a b-tree.
    Root,
    /// 2: page of the freelist.
    Free,
    /// 3: first page of an overflow chain; parent is the page with the cell.
    Overflow1,
    /// 4: later page of an overflow chain; parent is the page before.
    Overflow2,
    /// 5: page of a b-tree that is no root; parent is its parent.
    Btree,
}

impl PtrmapKind {
    /// The kind with this number.
    #[must_use]
    pub const fn from_byte(b: u8) -> Option<PtrmapKind> {
        match b {
            1 => Some(PtrmapKind::Root),
            2 => Some(PtrmapKind::Free),
            3 => Some(PtrmapKind::Overflow1),
            4 => Some(PtrmapKind::Overflow2),
            5 => Some(PtrmapKind::Btree),
            _ => None,
        }
    }

    /// Its number.
    #[must_use]
    pub const fn byte(self) -> u8 {
        match self {
            PtrmapKind::Root => 1,
            PtrmapKind::Free => 2,
            PtrmapKind::Overflow1 => 3,
            PtrmapKind::Overflow2 => 4,
            PtrmapKind::Btree => 5,
        }
    }
}

/// Where pointer-map pages lie, for one usable page size.
#[derive(Debug, Clone, Copy)]
pub struct PtrmapGeometry {
    per_page: u32,
    lock_page: u32,
}

impl PtrmapGeometry {
    /// For pages with `usable` bytes and this lock-byte page.
    #[must_use]
    pub fn new(usable: u32, lock_page: PageNo) -> PtrmapGeometry {
        PtrmapGeometry { per_page: usable.checked_div(5).unwrap_or(1).max(1), lock_page: lock_page.get() }
    }

    /// The pointer-map page that holds the entry of `page`; `None` for page 1, which has none.
    #[must_use]
    pub fn map_page(&self, page: PageNo) -> Option<PageNo> {
        let n = page.get();
        if n < 2 {
            return None;
        }
        let span = self.per_page.saturating_add(1);
        let group = n.saturating_sub(2).checked_div(span)?;
        let mut map = group.saturating_mul(span).saturating_add(2);
        if map == self.lock_page {
            map = map.saturating_add(1);
        }
        PageNo::new(map)
    }

    /// Whether `page` is a pointer-map page itself.
    #[must_use]
    pub fn is_map(&self, page: PageNo) -> bool {
        self.map_page(page) == Some(page)
    }

    /// Offset of the entry of `page` on its pointer-map page.
    #[must_use]
    pub fn entry_at(&self, page: PageNo) -> Option<usize> {
        let map = self.map_page(page)?;
        let i = page.get().checked_sub(map.get())?.checked_sub(1)?;
        Some(idx(i.saturating_mul(5)))
    }
}

/// The entry at `at`: kind (`None` when the byte is no kind) and parent, not judged.
#[must_use]
pub fn entry(bytes: &[u8], at: usize) -> Option<(Option<PtrmapKind>, u32)> {
    Some((PtrmapKind::from_byte(u8_at(bytes, at)?), u32_at(bytes, at.saturating_add(1))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn map_pages_stand_where_the_document_puts_them() {
        // 512 usable bytes: 102 entries a page, maps at 2, 105, 208.
        let g = PtrmapGeometry::new(512, PageNo::new(2_097_153).unwrap());
        let page = |n| PageNo::new(n).unwrap();
        assert_eq!(g.map_page(page(1)), None);
        assert!(g.is_map(page(2)) && g.is_map(page(105)) && g.is_map(page(208)));
        assert!(!g.is_map(page(3)) && !g.is_map(page(104)));
        assert_eq!(g.entry_at(page(3)), Some(0));
        assert_eq!(g.entry_at(page(104)), Some(505));
        assert_eq!(g.entry_at(page(106)), Some(0));
    }
}
