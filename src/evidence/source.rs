//! Page access: what every layer above reads pages through, whatever files they came from.

use crate::finding::Origin;
use crate::ids::{PageNo, PageSize, idx};

/// The image of one page, borrowed from the evidence.
#[derive(Debug, Clone, Copy)]
pub struct PageRef<'a> {
    /// The page.
    pub no: PageNo,
    /// Its bytes: a whole page, or fewer where the file ends within it.
    pub bytes: &'a [u8],
    /// The file, and the version in it, that the bytes came from.
    pub origin: Origin,
}

impl PageRef<'_> {
    /// Whether fewer bytes than a page are there.
    #[must_use]
    pub fn is_cut(&self, size: PageSize) -> bool {
        self.bytes.len() < size.len()
    }
}

/// A database as a numbered set of page images: one state of it, as of one commit.
///
/// [`PageSource::page`] costs a table look-up at most, so walkers call it as often as they like.
pub trait PageSource: Sync {
    /// The image of a page; `None` when no byte of it is there. A page above [`PageSource::page_count`] is never there.
    fn page(&self, no: PageNo) -> Option<PageRef<'_>>;

    /// The size of a whole page.
    fn page_size(&self) -> PageSize;

    /// How many pages this state has, the last one possibly cut short. 0: there is nothing to read.
    fn page_count(&self) -> u32;
}

/// The main file alone, over its bytes: page N starts at (N - 1) x page size.
#[derive(Debug, Clone, Copy)]
pub struct MainOnly<'a> {
    bytes: &'a [u8],
    size: PageSize,
    count: u32,
}

impl<'a> MainOnly<'a> {
    /// All pages that the bytes hold, a last partial one included.
    #[must_use]
    pub fn new(bytes: &'a [u8], size: PageSize) -> MainOnly<'a> {
        let len = crate::ids::wide(bytes.len());
        let count = size.whole_pages(len).saturating_add(u32::from(size.rest(len) != 0));
        MainOnly { bytes, size, count }
    }

    /// The image of a page, for as long as the bytes live.
    #[must_use]
    #[inline]
    pub fn image(&self, no: PageNo) -> Option<&'a [u8]> {
        if no.get() > self.count {
            return None;
        }
        let start = no.index().checked_mul(idx(self.size.get()))?;
        let rest = self.bytes.get(start..)?;
        Some(rest.get(..self.size.len()).unwrap_or(rest))
    }
}

impl PageSource for MainOnly<'_> {
    #[inline]
    fn page(&self, no: PageNo) -> Option<PageRef<'_>> {
        Some(PageRef { no, bytes: self.image(no)?, origin: Origin::Main })
    }

    fn page_size(&self) -> PageSize {
        self.size
    }

    fn page_count(&self) -> u32 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_page_may_be_cut() {
        let bytes = vec![7_u8; 1024 + 100];
        let source = MainOnly::new(&bytes, PageSize::new(512).unwrap());
        assert_eq!(source.page_count(), 3);
        assert_eq!(source.page(PageNo::new(2).unwrap()).unwrap().bytes.len(), 512);
        let cut = source.page(PageNo::new(3).unwrap()).unwrap();
        assert_eq!(cut.bytes.len(), 100);
        assert!(cut.is_cut(source.page_size()));
        assert!(source.page(PageNo::new(4).unwrap()).is_none());
        assert_eq!(MainOnly::new(&[], PageSize::new(512).unwrap()).page_count(), 0);
    }
}
