//! Typed numbers of the file format and all page arithmetic.
//!
//! Zero is "no page" and therefore never a [`PageNo`]. Nothing outside this file multiplies a page number by a page size.

use std::fmt;
use std::num::NonZeroU32;
use std::ops::Range;

/// Widens a `u32` to `usize`; exact on the 64-bit targets that the product supports.
#[must_use]
#[inline]
pub const fn idx(n: u32) -> usize {
    const { assert!(usize::BITS >= 64, "rootpage needs a 64-bit target") };
    #[expect(clippy::as_conversions, reason = "usize has at least 64 bits, asserted above")]
    {
        n as usize
    }
}

/// Widens a `usize` to `u64`; exact on every supported target.
#[must_use]
#[inline]
pub const fn wide(n: usize) -> u64 {
    #[expect(clippy::as_conversions, reason = "usize has at most 64 bits on every target of Rust")]
    {
        n as u64
    }
}

/// Narrows a `u64` to `usize`; exact on the 64-bit targets that the product supports.
#[must_use]
#[inline]
pub const fn narrow(n: u64) -> usize {
    const { assert!(usize::BITS >= 64, "rootpage needs a 64-bit target") };
    #[expect(clippy::as_conversions, reason = "usize has at least 64 bits, asserted above")]
    {
        n as usize
    }
}

/// Narrows a `usize` to `u32`, saturating: for offsets and counts within one page or record that a finding reports.
#[must_use]
#[inline]
pub fn small(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// The number of a page, counted from 1 as in the file format document, section 1.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageNo(NonZeroU32);

impl PageNo {
    /// Page 1: the page with the database header and the root of `sqlite_schema`.
    pub const ONE: PageNo = PageNo(NonZeroU32::MIN);

    /// The page with this number, or `None` for 0, which the format uses for "no page".
    #[must_use]
    #[inline]
    pub const fn new(n: u32) -> Option<PageNo> {
        match NonZeroU32::new(n) {
            Some(n) => Some(PageNo(n)),
            None => None,
        }
    }

    /// The number itself, at least 1.
    #[must_use]
    #[inline]
    pub const fn get(self) -> u32 {
        self.0.get()
    }

    /// Position in a table with one entry a page: page 1 is entry 0.
    #[must_use]
    #[inline]
    pub const fn index(self) -> usize {
        idx(self.0.get().saturating_sub(1))
    }

    /// The page whose entry in a table of pages is `index`; `None` past the format's last page.
    #[must_use]
    #[inline]
    pub fn from_index(index: usize) -> Option<PageNo> {
        PageNo::new(u32::try_from(index).ok()?.checked_add(1)?)
    }

    /// The next page, `None` behind the last number.
    #[must_use]
    #[inline]
    pub fn next(self) -> Option<PageNo> {
        PageNo::new(self.get().checked_add(1)?)
    }

    /// Where the page lies in a database file of this page size, in bytes.
    #[must_use]
    #[inline]
    pub fn file_range(self, size: PageSize) -> Range<u64> {
        let bytes = u64::from(size.get());
        let start = u64::from(self.get().saturating_sub(1)).saturating_mul(bytes);
        start..start.saturating_add(bytes)
    }
}

impl fmt::Display for PageNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The page a b-tree starts at. Made from `sqlite_schema.rootpage`, or by the survey for a tree without a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RootPage(pub PageNo);

/// The size of a page in bytes: a power of two from 512 to 65536 (file format document, section 1.3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageSize(NonZeroU32);

impl PageSize {
    /// 512 bytes.
    pub const SMALLEST: PageSize = PageSize(NonZeroU32::MIN.saturating_add(511));

    /// All eight sizes the format knows, smallest first.
    pub const ALL: [u32; 8] = [512, 1024, 2048, 4096, 8192, 16384, 32768, 65536];

    /// The page size of `bytes` bytes, `None` unless the format allows it.
    #[must_use]
    pub const fn new(bytes: u32) -> Option<PageSize> {
        if bytes.is_power_of_two() && bytes >= 512 && bytes <= 65536 {
            match NonZeroU32::new(bytes) {
                Some(n) => Some(PageSize(n)),
                None => None,
            }
        } else {
            None
        }
    }

    /// The size in bytes.
    #[must_use]
    #[inline]
    pub const fn get(self) -> u32 {
        self.0.get()
    }

    /// The size in bytes, as a length of slices.
    #[must_use]
    #[inline]
    pub const fn len(self) -> usize {
        idx(self.0.get())
    }

    /// Never: a page has at least 512 bytes. Here because `len` is.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        false
    }

    /// The page whose byte range covers the lock bytes at 1 GiB; no content lies on it (section 1.4).
    #[must_use]
    pub fn lock_byte_page(self) -> PageNo {
        let n = 0x4000_0000_u32.checked_div(self.get()).unwrap_or(0).saturating_add(1);
        PageNo::new(n).unwrap_or(PageNo::ONE)
    }

    /// How many whole pages `bytes` bytes hold, capped at the format's limit.
    #[must_use]
    pub fn whole_pages(self, bytes: u64) -> u32 {
        u32::try_from(bytes.checked_div(u64::from(self.get())).unwrap_or(0)).unwrap_or(u32::MAX)
    }

    /// How many bytes behind the last whole page remain.
    #[must_use]
    pub fn rest(self, bytes: u64) -> u64 {
        bytes.checked_rem(u64::from(self.get())).unwrap_or(0)
    }
}

/// A rowid: the signed 64-bit key of a table b-tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowId(pub i64);

/// The position of a cell in its page's cell pointer array, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CellNo(pub u16);

/// The position of a frame in a WAL, counted from 1 as SQLite does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameNo(pub u32);

/// An object of the schema by its place in the catalog; place 0 is `sqlite_schema` itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(pub u32);

impl ObjectId {
    /// `sqlite_schema` itself.
    pub const SCHEMA: ObjectId = ObjectId(0);

    /// Position in a table with one entry an object.
    #[must_use]
    pub const fn index(self) -> usize {
        idx(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_numbers_start_at_one() {
        assert_eq!(PageNo::new(0), None);
        assert_eq!(PageNo::ONE.index(), 0);
        assert_eq!(PageNo::from_index(0), Some(PageNo::ONE));
        let size = PageSize::new(4096).unwrap();
        assert_eq!(PageNo::new(3).unwrap().file_range(size), 8192..12288);
        assert_eq!(size.lock_byte_page().get(), 262_145);
    }

    #[test]
    fn page_sizes_are_the_eight_of_the_format() {
        let ok: Vec<u32> = (0..=70_000).filter(|&n| PageSize::new(n).is_some()).collect();
        assert_eq!(ok, PageSize::ALL);
    }
}
