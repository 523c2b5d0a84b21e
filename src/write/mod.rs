//! L7: writes a whole database file bottom-up from sorted streams. It reads no evidence.
//!
//! The order of work: [`DatabaseWriter::new`], [`DatabaseWriter::reserve_roots`] for all trees (their page numbers are
//! then known, for the schema rows), each [`TableTree`] and [`IndexTree`] in turn, the schema as a [`TableTree`] at page 1,
//! [`DatabaseWriter::finish`]. The file is written front to back, apart from the reserved roots, pointer-map pages and
//! page 1. The same calls give the same bytes.
//!
//! Around it: [`mod@file`] puts the finished file in its place or leaves nothing behind; [`crate::sort`] brings index entries
//! in order before they come here.

#![expect(clippy::arithmetic_side_effects, reason = "computes on sizes and counts of its own, all far below the type's limits")]

pub(crate) mod copy;
pub mod file;
pub(crate) mod finish;
mod index;
mod pack;
mod pages;
pub(crate) mod salvage;
mod tree;

use std::io::{Seek, Write};
use std::path::Path;

pub use index::IndexTree;
pub(crate) use pages::stamp;
pub use tree::{TableTree, TreeSummary};

use crate::error::{Error, Result};
use crate::format::ptrmap::PtrmapKind;
use crate::format::{DatabaseHeader, Encoding, PageKind, Split};
use crate::ids::{PageNo, PageSize, RootPage, idx, small};

use pack::Packing;
use pages::Pages;

/// The version number that copies carry at offset 96 unless told otherwise: 3.45.0.
pub const SQLITE_VERSION: u32 = 3_045_000;

/// Whether and how freed pages are given back (header offsets 52 and 64).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AutoVacuum {
    /// No pointer map.
    #[default]
    None,
    /// At every commit.
    Full,
    /// On `PRAGMA incremental_vacuum`.
    Incremental,
}

/// What the header of the database says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Page size.
    pub page_size: PageSize,
    /// Bytes left free at the end of every page; at least 480 must remain.
    pub reserved: u8,
    /// Text encoding. The writer takes records as they are; it only notes it.
    pub encoding: Encoding,
    /// Pointer map or none.
    pub auto_vacuum: AutoVacuum,
    /// `PRAGMA user_version`.
    pub user_version: u32,
    /// `PRAGMA application_id`.
    pub application_id: u32,
    /// `PRAGMA schema_version`.
    pub schema_cookie: u32,
    /// Schema format, 1 to 4.
    pub schema_format: u32,
    /// `PRAGMA default_cache_size`.
    pub default_cache_size: u32,
    /// Change counter, also written as version-valid-for.
    pub change_counter: u32,
    /// Version number at offset 96.
    pub sqlite_version: u32,
    /// Header bytes 18 and 19 are 2: SQLite opens the file in WAL mode.
    pub wal: bool,
    /// The last eight bytes of every page hold the checksum of SQLite's checksum VFS; `reserved` must be 8.
    pub page_checksums: bool,
}

impl Settings {
    /// An empty database of this page size, everything else as SQLite sets it.
    #[must_use]
    pub fn new(page_size: PageSize) -> Settings {
        Settings {
            page_size,
            reserved: 0,
            encoding: Encoding::Utf8,
            auto_vacuum: AutoVacuum::None,
            user_version: 0,
            application_id: 0,
            schema_cookie: 1,
            schema_format: 4,
            default_cache_size: 0,
            change_counter: 1,
            sqlite_version: SQLITE_VERSION,
            wal: false,
            page_checksums: false,
        }
    }

    /// The settings of a database with this header, in rollback mode and without page checksums. `None` when the page size
    /// or the encoding is none. A schema format outside 1 to 4 becomes 4.
    #[must_use]
    pub fn from_header(header: &DatabaseHeader) -> Option<Settings> {
        Some(Settings {
            reserved: header.reserved,
            encoding: header.encoding()?,
            auto_vacuum: match (header.largest_root, header.incremental_vacuum) {
                (0, _) => AutoVacuum::None,
                (_, 0) => AutoVacuum::Full,
                _ => AutoVacuum::Incremental,
            },
            user_version: header.user_version,
            application_id: header.application_id,
            schema_cookie: header.schema_cookie,
            schema_format: if (1..=4).contains(&header.schema_format) { header.schema_format } else { 4 },
            default_cache_size: header.default_cache_size,
            change_counter: header.change_counter,
            ..Settings::new(header.page_size()?)
        })
    }
}

/// What a finished file consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileSummary {
    /// Pages of the file.
    pub pages: u32,
    /// Pointer-map pages.
    pub map_pages: u64,
    /// Reserved roots that no tree was built at; they are on the freelist.
    pub free_pages: u32,
}

/// Writes a database file. See the module for the order of work.
#[derive(Debug)]
pub struct DatabaseWriter<W> {
    pages: Pages<W>,
    settings: Settings,
    split: Split,
    /// Reserved roots that have no tree yet, ascending.
    open_roots: Vec<PageNo>,
    largest_root: PageNo,
    page_one: Option<Vec<u8>>,
    in_content: bool,
}

impl<W: Write + Seek> DatabaseWriter<W> {
    /// A writer into `out`, which is empty. `path` is for error messages only.
    ///
    /// # Errors
    /// `Usage` when the reserved bytes leave less than 480 of a page, or page checksums are asked for without 8 of them.
    pub fn new(out: W, path: &Path, settings: Settings) -> Result<DatabaseWriter<W>> {
        let usable = settings.page_size.get() - u32::from(settings.reserved);
        if usable < 480 {
            let what = format!("{} reserved bytes leave less than 480 of a page of {}", settings.reserved, settings.page_size.get());
            return Err(Error::Usage { what });
        }
        if settings.page_checksums && settings.reserved != 8 {
            return Err(Error::Usage { what: "page checksums need exactly 8 reserved bytes".into() });
        }
        let mapped = settings.auto_vacuum != AutoVacuum::None;
        Ok(DatabaseWriter {
            pages: Pages::new(out, path.to_path_buf(), settings.page_size, usable, mapped, settings.page_checksums),
            settings,
            split: Split::new(usable),
            open_roots: Vec::new(),
            largest_root: PageNo::ONE,
            page_one: None,
            in_content: false,
        })
    }

    /// Gives the next `count` pages to trees to come, in ascending order.
    ///
    /// # Errors
    /// `Usage` in an auto-vacuum file once a page of content was written: there roots come before all other pages.
    /// `Limit` for a full file.
    pub fn reserve_roots(&mut self, count: usize) -> Result<Vec<RootPage>> {
        if self.pages.mapped() && self.in_content {
            return Err(Error::Usage { what: "root pages of an auto-vacuum database are reserved before all content".into() });
        }
        let mut roots = Vec::with_capacity(count.min(1 << 16));
        for _ in 0..count {
            let no = self.pages.alloc()?;
            self.open_roots.push(no);
            roots.push(RootPage(no));
        }
        Ok(roots)
    }

    /// Lets page numbers go on behind page `last` and leaves the pages between unwritten, which a database does not allow:
    /// only to test what happens beyond 1 GiB without writing it.
    #[doc(hidden)]
    pub fn skip_pages_for_test(&mut self, last: u32) {
        self.pages.skip_to(last);
    }

    /// How payloads are split at this usable page size; cells from a file with an equal split may be taken over as bytes.
    #[must_use]
    pub fn split(&self) -> &Split {
        &self.split
    }

    /// The settings it was made with.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Pages handed out so far.
    #[must_use]
    pub fn page_count(&self) -> u32 {
        self.pages.last()
    }

    fn packing(&self, kind: PageKind) -> Packing {
        Packing::new(kind, self.settings.page_size.len(), self.split.usable())
    }

    /// Writes a complete page at the next number.
    fn put_node(&mut self, page: &mut Packing) -> Result<PageNo> {
        self.in_content = true;
        let no = self.pages.alloc()?;
        self.note_below(no, page)?;
        self.pages.put(no, page.seal(0))?;
        Ok(no)
    }

    fn fits_root(&self, root: RootPage, page: &Packing) -> bool {
        root.0 != PageNo::ONE || page.fits_at(100)
    }

    /// Writes the page that a tree starts at. Page 1 is kept for [`DatabaseWriter::finish`].
    fn put_root(&mut self, root: RootPage, page: &mut Packing) -> Result<()> {
        let no = root.0;
        let taken = |no: PageNo| Error::Usage { what: format!("page {no} is not a root that waits for its tree") };
        if no == PageNo::ONE {
            if self.page_one.is_some() || !page.fits_at(100) {
                return Err(taken(no));
            }
            self.note_below(no, page)?;
            self.page_one = Some(page.seal(100).to_vec());
            return Ok(());
        }
        let at = self.open_roots.binary_search(&no).map_err(|_| taken(no))?;
        self.open_roots.remove(at);
        self.largest_root = self.largest_root.max(no);
        self.pages.note(no, PtrmapKind::Root, 0)?;
        self.note_below(no, page)?;
        self.pages.put(no, page.seal(0))
    }

    /// Notes in the pointer map the children and overflow chains of a page.
    fn note_below(&mut self, no: PageNo, page: &Packing) -> Result<()> {
        if !self.pages.mapped() {
            return Ok(());
        }
        for i in 0..page.cells() {
            if page.kind().is_interior()
                && let Some(child) = PageNo::new(page.child(i))
            {
                self.pages.note(child, PtrmapKind::Btree, no.get())?;
            }
            if let Some(first) = page.overflow(i, &self.split).and_then(PageNo::new) {
                self.pages.note(first, PtrmapKind::Overflow1, no.get())?;
            }
        }
        match PageNo::new(page.right) {
            Some(child) => self.pages.note(child, PtrmapKind::Btree, no.get()),
            None => Ok(()),
        }
    }

    /// Puts reserved roots without a tree on the freelist and gives its first trunk.
    fn put_freelist(&mut self) -> Result<Option<PageNo>> {
        let free = std::mem::take(&mut self.open_roots);
        let size = self.settings.page_size.len();
        // SQLite itself leaves the last six places of a trunk empty.
        let room = idx(self.split.usable() / 4) - 8;
        let trunks: Vec<&[PageNo]> = free.chunks(room + 1).collect();
        let first = |chunk: Option<&&[PageNo]>| chunk.and_then(|c| c.first()).copied();
        for (i, chunk) in trunks.iter().enumerate() {
            let Some((trunk, leaves)) = chunk.split_first() else { continue };
            let mut image = Vec::with_capacity(size);
            image.extend_from_slice(&first(trunks.get(i + 1)).map_or(0, PageNo::get).to_be_bytes());
            image.extend_from_slice(&small(leaves.len()).to_be_bytes());
            for leaf in leaves {
                image.extend_from_slice(&leaf.get().to_be_bytes());
                self.pages.put(*leaf, &vec![0; size])?;
            }
            image.resize(size, 0);
            self.pages.put(*trunk, &image)?;
        }
        for no in &free {
            self.pages.note(*no, PtrmapKind::Free, 0)?;
        }
        Ok(first(trunks.first()))
    }

    /// Writes page 1 and everything that is still in memory, and gives the output back. Syncing it to the device is left
    /// to the caller ([`file::OutputFile`] does it).
    ///
    /// Reserved roots that got no tree go to the freelist.
    ///
    /// # Errors
    /// I/O; `Usage` in an auto-vacuum file when so many reserved roots got no tree that the file, once SQLite cuts the free
    /// pages off, would end before its last root.
    pub fn finish(mut self) -> Result<(W, FileSummary)> {
        let free_pages = small(self.open_roots.len());
        let kept = self.pages.last().saturating_sub(free_pages).saturating_sub(u32::try_from(self.pages.map_pages).unwrap_or(0));
        if self.pages.mapped() && free_pages > 0 && kept.saturating_add(1) < self.largest_root.get() {
            let what = format!("{free_pages} reserved roots without a tree, and page {} is a root", self.largest_root);
            return Err(Error::Usage { what });
        }
        let trunk = self.put_freelist()?;
        if self.page_one.is_none() {
            let mut empty = self.packing(PageKind::TableLeaf);
            self.put_root(RootPage(PageNo::ONE), &mut empty)?;
        }
        let pages = self.pages.last();
        let s = &self.settings;
        let version = if s.wal { 2 } else { 1 };
        let header = DatabaseHeader {
            page_size_raw: u16::try_from(s.page_size.get()).unwrap_or(1),
            write_version: version,
            read_version: version,
            reserved: s.reserved,
            change_counter: s.change_counter,
            page_count: pages,
            freelist_trunk: trunk.map_or(0, PageNo::get),
            freelist_count: free_pages,
            schema_cookie: s.schema_cookie,
            schema_format: s.schema_format,
            default_cache_size: s.default_cache_size,
            largest_root: if s.auto_vacuum == AutoVacuum::None { 0 } else { self.largest_root.get() },
            encoding_raw: s.encoding.number(),
            user_version: s.user_version,
            incremental_vacuum: u32::from(s.auto_vacuum == AutoVacuum::Incremental),
            application_id: s.application_id,
            version_valid_for: s.change_counter,
            sqlite_version: s.sqlite_version,
            ..DatabaseHeader::default()
        };
        let mut image = self.page_one.take().unwrap_or_default();
        if let Some(place) = image.get_mut(..100) {
            place.copy_from_slice(&header.encode());
        }
        self.pages.put(PageNo::ONE, &image)?;
        let summary = FileSummary { pages, map_pages: self.pages.map_pages, free_pages };
        Ok((self.pages.finish()?, summary))
    }
}
