//! L3: b-trees that may be damaged: the walk, overflow chains, the accounting of a page's bytes.
//!
//! A walk reads interior pages only and gives the tree as a sequence of [`Slot`]s in key order: leaves, the entries that
//! interior pages of an index tree hold between them, and holes where a child is missing. Whoever reads rows then takes
//! runs of slots, also in parallel, and never descends a tree again.

pub mod accounting;
pub mod bounds;
pub mod cells;
pub mod claims;
pub mod mend;
pub mod payload;
pub mod repair;
pub mod walk;

use std::collections::BTreeMap;

use crate::evidence::{PageRef, PageSource};
use crate::finding::{Code, Defect, Origin, Site};
use crate::format::{Cell, Page, PageKind, Split};
use crate::ids::{PageNo, idx};

pub use claims::{Claims, Given, Owner, Role, Ruling, Rulings};
pub use mend::{MendedCell, MendedLeaf};
pub use walk::{Slot, Tree, TreeKind};

/// The pages of a database with the numbers that reading them needs.
#[derive(Clone)]
pub struct Pages<'a> {
    source: &'a dyn PageSource,
    /// The local/overflow split of this usable size.
    pub split: Split,
    /// Usable bytes a page.
    pub usable: u32,
    count: u32,
    lock_page: PageNo,
    /// Page 1 has no database header (a tree page that stands where page 1 should be is read from offset 0).
    bare_first_page: bool,
    /// Leaves that are read otherwise than their header and pointers say.
    mended: BTreeMap<PageNo, MendedLeaf>,
    /// Pages whose type byte lies, with the kind that they have.
    retyped: BTreeMap<PageNo, PageKind>,
}

impl std::fmt::Debug for Pages<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pages").field("usable", &self.usable).field("count", &self.count).finish_non_exhaustive()
    }
}

impl<'a> Pages<'a> {
    /// The pages of a source with this many reserved bytes a page.
    #[must_use]
    pub fn new(source: &'a dyn PageSource, reserved: u8) -> Pages<'a> {
        let usable = source.page_size().get().saturating_sub(u32::from(reserved)).max(64);
        Pages {
            source,
            split: Split::new(usable),
            usable,
            count: source.page_count(),
            lock_page: source.page_size().lock_byte_page(),
            bare_first_page: false,
            mended: BTreeMap::new(),
            retyped: BTreeMap::new(),
        }
    }

    /// The same pages, with page 1 read as a page without database header.
    #[must_use]
    pub fn with_bare_first_page(self) -> Pages<'a> {
        Pages { bare_first_page: true, ..self }
    }

    /// How many pages there are.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Bytes of a whole page.
    #[must_use]
    pub fn page_size(&self) -> u32 {
        self.source.page_size().get()
    }

    /// The lock-byte page, which holds no content.
    #[must_use]
    pub fn lock_page(&self) -> PageNo {
        self.lock_page
    }

    /// The image of a page.
    #[must_use]
    #[inline]
    pub fn image(&self, no: PageNo) -> Option<PageRef<'a>> {
        self.source.page(no)
    }

    /// Where the image of a page comes from.
    #[must_use]
    pub fn origin(&self, no: PageNo) -> Origin {
        self.source.page(no).map(|p| p.origin).unwrap_or_default()
    }

    /// A site narrowed to a page, with the origin of the image that is read for it.
    #[must_use]
    #[inline]
    pub fn site(&self, site: Site, no: PageNo) -> Site {
        Site { origin: self.origin(no), page: Some(no), cell: None, ..site }
    }

    /// The image of a page up to its usable size; empty when it is not there.
    #[must_use]
    #[inline]
    pub fn usable_bytes(&self, no: PageNo) -> &'a [u8] {
        match self.source.page(no) {
            Some(p) => p.bytes.get(..idx(self.usable)).unwrap_or(p.bytes),
            None => &[],
        }
    }

    /// A page number from the evidence as a page that can be read.
    ///
    /// # Errors
    /// The code given when the number leads out of the file or to no page; `lock-byte-page-used`.
    #[inline]
    pub fn resolve(&self, raw: u32, code: Code, at: u32) -> Result<PageNo, Defect> {
        let outside = Defect::new(code, at, u64::from(raw), u64::from(self.count));
        let no = PageNo::new(raw).ok_or(outside)?;
        if no.get() > self.count {
            return Err(outside);
        }
        if no == self.lock_page {
            return Err(Defect::new(Code::LockBytePageUsed, at, u64::from(raw), 0));
        }
        Ok(no)
    }

    /// A b-tree page. One whose count is impossible is mended by its pointers, so that it reads the same everywhere.
    ///
    /// # Errors
    /// What [`Page::read`] says; `page-cut` when nothing of it is there.
    #[inline]
    pub fn page(&self, no: PageNo) -> Result<Page<'a>, Defect> {
        let bytes = self.source.page(no).map_or(&[][..], |p| p.bytes);
        if bytes.is_empty() {
            return Err(Defect::new(Code::PageCut, 0, 0, u64::from(self.usable)));
        }
        let retyped = if self.retyped.is_empty() { None } else { self.retyped.get(&no) };
        let page = match retyped.and_then(|kind| Page::with_kind(self.usable_bytes(no), self.header_at(no), *kind)) {
            Some(page) => page,
            None => Page::read_at(bytes, self.header_at(no), self.usable)?,
        };
        if page.cell_count == 0 || page.pointers_end() > idx(page.content_start) || self.goes_on(&page) {
            return Ok(repair::count(page, self.header_at(no), &self.split));
        }
        Ok(page)
    }

    /// Whether a pointer that leads to where cells lie follows the last one of an interior page: a stale one, or the count is
    /// too low.
    #[inline]
    fn goes_on(&self, page: &Page<'_>) -> bool {
        let end = page.pointers_end();
        page.kind.is_interior()
            && end.saturating_add(2) <= idx(page.content_start)
            && crate::bytes::u16_at(page.bytes(), end).is_some_and(|p| u32::from(p) >= page.content_start && u32::from(p) < self.usable)
    }

    /// The count of cells that a page declares, mended or not.
    #[must_use]
    pub fn declared_cells(&self, no: PageNo) -> Option<u16> {
        crate::bytes::u16_at(self.usable_bytes(no), self.header_at(no).saturating_add(3))
    }

    /// A leaf, also one whose header is clobbered while its pointers and cells are intact.
    ///
    /// # Errors
    /// As [`Pages::page`].
    #[inline]
    pub fn leaf(&self, no: PageNo) -> Result<Page<'a>, Defect> {
        match self.page(no) {
            Err(d) if d.code == Code::PageKindBad => repair::leaf(self.usable_bytes(no), self.header_at(no), &self.split).ok_or(d),
            other => other,
        }
    }

    /// A page as one of a tree of this kind although its type byte says otherwise: all its cells are of one of the two kinds
    /// of such a tree, and not of the kind that it states.
    #[must_use]
    pub fn as_kind_of(&self, no: PageNo, kind: TreeKind) -> Option<Page<'a>> {
        let (bytes, at) = (self.usable_bytes(no), self.header_at(no));
        let reads = |kind: PageKind| repair::reads_as(bytes, at, kind, &self.split);
        let stated = bytes.get(at).and_then(|b| PageKind::from_byte(*b));
        if stated.is_some_and(reads) {
            return None;
        }
        let mut own = kind.both().into_iter().filter(|k| Some(*k) != stated && reads(*k));
        match (own.next(), own.next()) {
            (Some(only), None) => Page::with_kind(bytes, at, only),
            _ => None,
        }
    }

    /// Settles the kinds of pages whose type byte lies.
    pub fn retype(&mut self, kinds: BTreeMap<PageNo, PageKind>) {
        self.retyped.extend(kinds);
    }

    /// Settles how a leaf is read.
    pub fn mend(&mut self, no: PageNo, leaf: MendedLeaf) {
        self.mended.insert(no, leaf);
    }

    /// How a leaf is read, where that is not as its header and pointers say.
    #[must_use]
    #[inline]
    pub fn mended(&self, no: PageNo) -> Option<&MendedLeaf> {
        if self.mended.is_empty() { None } else { self.mended.get(&no) }
    }

    /// A cell of a page by its number, as it was settled.
    ///
    /// # Errors
    /// As [`Pages::leaf`] and [`Page::cell`]; `cell-outside` when a mended leaf has no such cell.
    pub fn cell(&self, no: PageNo, i: u16) -> Result<Cell<'a>, Defect> {
        let Some(leaf) = self.mended(no) else { return self.leaf(no)?.cell(i, &self.split) };
        let gone = Defect::new(Code::CellOutside, 0, u64::from(i), 0);
        let cell = leaf.find(i).ok_or(gone)?;
        mend::cell_at(self.usable_bytes(no), leaf.kind, &self.split, cell).ok_or(gone)
    }

    /// The cells of a leaf that decode, with their numbers, in key order and as they were settled; and the kind of the leaf.
    ///
    /// # Errors
    /// As [`Pages::leaf`].
    pub fn cells(&self, no: PageNo) -> Result<(PageKind, Vec<(u16, Cell<'a>)>), Defect> {
        if let Some(leaf) = self.mended(no) {
            let bytes = self.usable_bytes(no);
            let cells = leaf.cells.iter().filter_map(|m| Some((m.no, mend::cell_at(bytes, leaf.kind, &self.split, m)?)));
            return Ok((leaf.kind, cells.collect()));
        }
        let page = self.leaf(no)?;
        Ok((page.kind, page.cells(self.split).filter_map(|(i, c)| Some((i, c.ok()?))).collect()))
    }

    /// Where the header of a page begins.
    #[must_use]
    pub fn header_at(&self, no: PageNo) -> usize {
        if no == PageNo::ONE && !self.bare_first_page { crate::format::header::HEADER_LEN } else { 0 }
    }
}
