//! The four kinds of b-tree pages (section 1.6).

/// The four kinds of b-tree pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PageKind {
    /// Type byte 2.
    IndexInterior,
    /// Type byte 5.
    TableInterior,
    /// Type byte 10.
    IndexLeaf,
    /// Type byte 13.
    TableLeaf,
}

impl PageKind {
    /// The kind with this type byte.
    #[must_use]
    #[inline]
    pub const fn from_byte(b: u8) -> Option<PageKind> {
        match b {
            2 => Some(PageKind::IndexInterior),
            5 => Some(PageKind::TableInterior),
            10 => Some(PageKind::IndexLeaf),
            13 => Some(PageKind::TableLeaf),
            _ => None,
        }
    }

    /// Its type byte.
    #[must_use]
    pub const fn byte(self) -> u8 {
        match self {
            PageKind::IndexInterior => 2,
            PageKind::TableInterior => 5,
            PageKind::IndexLeaf => 10,
            PageKind::TableLeaf => 13,
        }
    }

    /// Whether its cells have children.
    #[must_use]
    #[inline]
    pub const fn is_interior(self) -> bool {
        matches!(self, PageKind::IndexInterior | PageKind::TableInterior)
    }

    /// Whether it belongs to a table tree (keys are rowids).
    #[must_use]
    #[inline]
    pub const fn is_table(self) -> bool {
        matches!(self, PageKind::TableInterior | PageKind::TableLeaf)
    }

    /// Length of the page header in bytes.
    #[must_use]
    #[inline]
    pub const fn header_len(self) -> usize {
        if self.is_interior() { 12 } else { 8 }
    }
}
