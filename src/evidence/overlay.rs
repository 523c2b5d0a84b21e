//! One state of the database as page images: main file, rolled back journal over it, frames of the log over both.

use std::collections::{BTreeSet, HashMap};

use super::journal::{JournalIndex, JournalState};
use super::page_one::{Geometry, PageOne};
use super::source::{PageRef, PageSource};
use super::wal::{FrameClass, WalIndex};
use crate::finding::Origin;
use crate::ids::{FrameNo, PageNo, PageSize, idx, narrow, small, wide};

/// Why an image is a version of its page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum VersionClass {
    /// The one that the snapshot shows.
    Live,
    /// Committed, and written over by a later commit.
    Superseded,
    /// In the main file, under a frame or a rolled back image.
    UnderOverlay,
    /// Of a transaction that did not commit.
    Uncommitted,
    /// In frames that the chain of the log does not reach.
    Detached,
    /// Of an earlier generation of the log.
    OlderGeneration,
    /// In a journal that is not rolled back: the page before some transaction.
    BeforeImage,
}

/// An image of a page and what it is.
#[derive(Debug, Clone, Copy)]
pub struct Version<'a> {
    /// The image.
    pub page: PageRef<'a>,
    /// What it is.
    pub class: VersionClass,
}

/// Which image covers which page: 0 is the main file, n is image n - 1.
#[derive(Debug, Clone)]
enum Table {
    None,
    Dense(Vec<u32>),
    /// For page numbers far above what the files hold.
    Sparse(HashMap<u32, u32>),
}

impl Table {
    #[inline]
    fn get(&self, no: PageNo) -> u32 {
        match self {
            Table::None => 0,
            Table::Dense(v) => v.get(no.index()).copied().unwrap_or(0),
            Table::Sparse(m) => m.get(&no.get()).copied().unwrap_or(0),
        }
    }

    fn set(&mut self, no: u32, image: u32) {
        match self {
            Table::None => {}
            Table::Dense(v) => {
                if let Some(place) = no.checked_sub(1).and_then(|i| v.get_mut(idx(i))) {
                    *place = image;
                }
            }
            Table::Sparse(m) => {
                m.insert(no, image);
            }
        }
    }
}

/// The main file's pages where the geometry says they are.
#[derive(Debug, Clone)]
struct MainPages<'a> {
    bytes: &'a [u8],
    size: PageSize,
    count: u32,
    /// Byte displacement of pages below and from `shift_from`.
    shift_low: i64,
    shift_high: i64,
    shift_from: PageNo,
    /// Pages right before `shift_from` that are not in the file.
    lost: u32,
    first: FirstPage,
    spliced: Option<(PageNo, Vec<u8>)>,
}

#[derive(Debug, Clone)]
enum FirstPage {
    InPlace,
    At(usize),
    Rebuilt(Vec<u8>),
}

impl MainPages<'_> {
    #[inline]
    fn image(&self, no: PageNo) -> Option<&[u8]> {
        if no.get() > self.count {
            return None;
        }
        if let Some((_, image)) = self.spliced.as_ref().filter(|(at, _)| *at == no) {
            return Some(image);
        }
        if no < self.shift_from && no.get() >= self.shift_from.get().saturating_sub(self.lost) {
            return None;
        }
        let shift = if no >= self.shift_from { self.shift_high } else { self.shift_low };
        let mut start = no.index().checked_mul(self.size.len())?;
        if shift != 0 {
            start = usize::try_from(i64::try_from(start).ok()?.checked_add(shift)?).ok()?;
        }
        if no == PageNo::ONE {
            match &self.first {
                FirstPage::InPlace => {}
                FirstPage::At(at) => start = *at,
                FirstPage::Rebuilt(image) => return Some(image),
            }
        }
        let rest = self.bytes.get(start..)?;
        let image = rest.get(..self.size.len()).unwrap_or(rest);
        (!image.is_empty()).then_some(image)
    }
}

/// One state of the database.
#[derive(Debug, Clone)]
pub struct Snapshot<'a> {
    main: MainPages<'a>,
    table: Table,
    images: Vec<(Origin, &'a [u8])>,
    count: u32,
    /// (page, position in `others`), sorted: images that are not live.
    others: Vec<(u32, u32)>,
    other_images: Vec<(Origin, &'a [u8], VersionClass)>,
    /// Images of frames with a damaged word put right; they stand above all others of their pages.
    mended: Vec<(PageNo, Origin, Vec<u8>)>,
}

/// What is laid over the main file.
#[derive(Debug, Clone, Copy, Default)]
pub struct Layers<'x, 'a> {
    /// A journal; rolled back when `roll_back` is set, otherwise its images are history.
    pub journal: Option<&'x JournalIndex<'a>>,
    /// Whether to roll it back.
    pub roll_back: bool,
    /// Whether to roll back also what SQLite would not: records behind a break, or under no header.
    pub roll_back_all: bool,
    /// A log; its images up to `upto` are blended, all others are history.
    pub wal: Option<&'x WalIndex<'a>>,
    /// The last frame that is blended; `None` blends nothing.
    pub upto: Option<FrameNo>,
    /// Pages of the database after that frame.
    pub pages: u32,
}

impl<'a> Snapshot<'a> {
    /// The main file as the geometry sees it, under the layers.
    #[must_use]
    pub fn new(bytes: &'a [u8], geometry: &Geometry, layers: &Layers<'_, 'a>) -> Snapshot<'a> {
        let size = geometry.page_size;
        let pages = i64::from(geometry.page_shift).saturating_mul(i64::from(size.get()));
        let first = match &geometry.page_one {
            PageOne::InPlace | PageOne::Lost => FirstPage::InPlace,
            PageOne::At(at) => FirstPage::At(narrow(*at)),
            PageOne::Rebuilt(image) => FirstPage::Rebuilt(image.clone()),
        };
        let main = MainPages {
            bytes,
            size,
            count: geometry.page_count,
            shift_low: pages,
            shift_high: pages.saturating_add(geometry.byte_shift),
            shift_from: geometry.shift_from,
            lost: geometry.lost_pages(),
            spliced: geometry.spliced.clone(),
            first,
        };
        let count = main.count;
        let mut snapshot = Snapshot {
            main,
            table: Table::None,
            images: Vec::new(),
            count,
            others: Vec::new(),
            other_images: Vec::new(),
            mended: Vec::new(),
        };
        snapshot.lay(layers);
        snapshot
    }

    fn lay(&mut self, layers: &Layers<'_, 'a>) {
        let journal = layers.journal.filter(|j| j.page_size == self.main.size);
        let wal = layers.wal.filter(|w| w.page_size == self.main.size);
        if journal.is_none() && wal.is_none() {
            return;
        }
        let highest = journal
            .iter()
            .flat_map(|j| j.records.iter().map(|r| r.page))
            .chain(wal.iter().flat_map(|w| w.frames.iter().map(|f| f.page)))
            .max()
            .unwrap_or(0);
        let frames = wal.map_or(0, |w| wide(w.frames.len())).saturating_add(journal.map_or(0, |j| wide(j.records.len())));
        let dense_limit = u64::from(self.main.count).saturating_add(frames.saturating_mul(16)).saturating_add(4096);
        self.table = if u64::from(highest) <= dense_limit { Table::Dense(vec![0; idx(highest)]) } else { Table::Sparse(HashMap::new()) };
        if let Some(journal) = journal {
            self.lay_journal(journal, layers.roll_back, layers.roll_back_all);
        }
        if let Some(wal) = wal {
            self.lay_wal(wal, layers);
        }
        self.others.sort_unstable();
    }

    fn push_image(&mut self, page: u32, origin: Origin, image: &'a [u8]) {
        self.images.push((origin, image));
        self.table.set(page, small(self.images.len()));
    }

    fn push_other(&mut self, page: u32, origin: Origin, image: &'a [u8], class: VersionClass) {
        self.others.push((page, small(self.other_images.len())));
        self.other_images.push((origin, image, class));
    }

    fn lay_journal(&mut self, journal: &JournalIndex<'a>, roll_back: bool, all: bool) {
        let mut highest = 0;
        let mut done = BTreeSet::new();
        for (i, record) in journal.records.iter().enumerate() {
            let Some(image) = journal.image(record) else { continue };
            let origin = Origin::Journal { record: small(i).saturating_add(1) };
            let first = done.insert(record.page);
            if (roll_back && record.counts) || (all && first) {
                self.push_image(record.page, origin, image);
                highest = highest.max(record.page);
            } else {
                self.push_other(record.page, origin, image, VersionClass::BeforeImage);
            }
        }
        if roll_back || (all && journal.pages_before > 0) {
            // Pages that are neither in the journal nor in the file do not come into being by the old size.
            self.count = journal.pages_before.min(self.main.count.max(highest));
        }
    }

    fn lay_wal(&mut self, wal: &WalIndex<'a>, layers: &Layers<'_, 'a>) {
        let last = layers.upto.map_or(0, |f| idx(f.0));
        let mut highest = self.count;
        // Backwards: the first image met of a page is the newest.
        let mut seen = Table::None;
        match &self.table {
            Table::Dense(v) => seen = Table::Dense(vec![0; v.len()]),
            _ => {
                if last > 0 {
                    seen = Table::Sparse(HashMap::new());
                }
            }
        }
        for (i, info) in wal.frames.iter().enumerate().rev() {
            let (Some(no), Some(frame)) = (PageNo::new(info.page), wal.frame_at(i)) else { continue };
            let origin = Origin::Wal { frame: wal.number(i) };
            if i < last && !matches!(info.class, FrameClass::Junk) {
                if no.get() > layers.pages {
                    self.push_other(info.page, origin, frame.image, VersionClass::Superseded);
                } else if seen.get(no) == 0 {
                    seen.set(info.page, 1);
                    self.push_image(info.page, origin, frame.image);
                    highest = highest.max(info.page);
                } else {
                    self.push_other(info.page, origin, frame.image, VersionClass::Superseded);
                }
                continue;
            }
            let class = match info.class {
                FrameClass::Committed | FrameClass::Uncommitted => VersionClass::Uncommitted,
                FrameClass::Detached => VersionClass::Detached,
                FrameClass::Older => VersionClass::OlderGeneration,
                FrameClass::Junk => continue,
            };
            self.push_other(info.page, origin, frame.image, class);
        }
        if last > 0 {
            self.count = layers.pages.min(highest);
        }
    }

    /// Takes a frame as it was before a word of it was damaged, where no later frame holds its page.
    pub(super) fn mend(&mut self, wal: &WalIndex<'a>, upto: FrameNo, frame: FrameNo, page: u32, image: Vec<u8>) {
        let Some(no) = PageNo::new(page).filter(|no| no.get() <= self.count) else { return };
        if wal.newest(no, upto).is_none_or(|(newest, _)| newest <= frame) {
            self.mended.push((no, Origin::Wal { frame: wal.number(idx(frame.0.saturating_sub(1))) }, image));
        }
    }

    /// Every image of a page that the evidence holds, the live one first, then the others in file order.
    pub fn versions(&self, no: PageNo) -> impl Iterator<Item = Version<'_>> + '_ {
        let live = self.page(no).map(|page| Version { page, class: VersionClass::Live });
        let covered = self.table.get(no) != 0 || no.get() > self.count;
        let under = self
            .main
            .image(no)
            .filter(|_| covered)
            .map(|bytes| Version { page: PageRef { no, bytes, origin: Origin::Main }, class: VersionClass::UnderOverlay });
        let from = self.others.partition_point(|&(p, _)| p < no.get());
        let rest = self.others.get(from..).unwrap_or_default().iter().take_while(move |&&(p, _)| p == no.get());
        let others = rest.filter_map(move |&(_, i)| {
            let &(origin, bytes, class) = self.other_images.get(idx(i))?;
            Some(Version { page: PageRef { no, bytes, origin }, class })
        });
        live.into_iter().chain(under).chain(others)
    }

    /// Pages that have an image which is not live, ascending, each once.
    pub fn pages_with_history(&self) -> impl Iterator<Item = PageNo> + '_ {
        let mut last = 0;
        self.others.iter().filter_map(move |&(page, _)| {
            let new = page != last;
            last = page;
            PageNo::new(page).filter(|_| new)
        })
    }

    /// Whether some page of the snapshot comes from a sidecar.
    #[must_use]
    pub fn is_overlaid(&self) -> bool {
        !self.images.is_empty()
    }

    /// Pages of the main file that lie above the snapshot's end, if any: a transaction shrank the database.
    #[must_use]
    pub fn main_pages(&self) -> u32 {
        self.main.count
    }
}

impl PageSource for Snapshot<'_> {
    #[inline]
    fn page(&self, no: PageNo) -> Option<PageRef<'_>> {
        if no.get() > self.count {
            return None;
        }
        if let Some((_, origin, image)) = self.mended.iter().rev().find(|m| m.0 == no) {
            return Some(PageRef { no, bytes: image, origin: *origin });
        }
        match self.table.get(no) {
            0 => Some(PageRef { no, bytes: self.main.image(no)?, origin: Origin::Main }),
            n => {
                let &(origin, bytes) = self.images.get(idx(n.saturating_sub(1)))?;
                Some(PageRef { no, bytes, origin })
            }
        }
    }

    fn page_size(&self) -> PageSize {
        self.main.size
    }

    fn page_count(&self) -> u32 {
        self.count
    }
}

/// Whether the journal's own state says that SQLite would roll it back.
#[must_use]
pub fn rolls_back(journal: &JournalIndex<'_>) -> bool {
    journal.state == JournalState::Hot
}
