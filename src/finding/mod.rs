//! Damage as data: a [`Defect`] is what a decoder saw, a [`Finding`] is a defect with its place.
//!
//! A decoder returns `Result<T, Defect>` and does not know which page, tree or table it is in. The walker adds the
//! [`Site`] with [`Note::note`] and goes on.

mod codes;

use std::collections::{BTreeMap, BTreeSet};

pub use codes::{Bytes, Code, Effect, Problem, RowEffect, Subject, Weight};

use crate::ids::{CellNo, FrameNo, ObjectId, PageNo};

/// What a decoder saw: which problem, at which byte of what it was given, the value found and the bound it broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Defect {
    /// Which problem of the table.
    pub code: Code,
    /// Byte offset within the decoded structure.
    pub at: u32,
    /// The value found.
    pub got: u64,
    /// The bound or the expected value.
    pub want: u64,
}

impl Defect {
    /// A defect at a byte offset.
    #[must_use]
    pub const fn new(code: Code, at: u32, got: u64, want: u64) -> Defect {
        Defect { code, at, got, want }
    }
}

/// Which file, and which version in it, a page image came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[non_exhaustive]
pub enum Origin {
    /// The main database file.
    #[default]
    Main,
    /// A frame of the WAL.
    Wal {
        /// Which frame, from 1.
        frame: FrameNo,
    },
    /// A record of the rollback journal.
    Journal {
        /// Which record, from 1.
        record: u32,
    },
}

/// Where a defect is. Parts that do not apply stay empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Site {
    /// The file the bytes came from.
    pub origin: Origin,
    /// The page.
    pub page: Option<PageNo>,
    /// The cell on the page.
    pub cell: Option<CellNo>,
    /// The object of the schema that owns the page, found through rootpage.
    pub object: Option<ObjectId>,
}

impl Site {
    /// A page of an object.
    #[must_use]
    pub fn page(object: Option<ObjectId>, page: PageNo) -> Site {
        Site { page: Some(page), object, ..Site::default() }
    }

    /// The same place, narrowed to a cell.
    #[must_use]
    pub fn cell(self, cell: u16) -> Site {
        Site { cell: Some(CellNo(cell)), ..self }
    }

    /// An object as a whole.
    #[must_use]
    pub fn object(object: ObjectId) -> Site {
        Site { object: Some(object), ..Site::default() }
    }
}

/// A defect with its place and, where numbers do not say it, a detail in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What.
    pub defect: Defect,
    /// Where.
    pub site: Site,
    /// A name, a rowid, a value: raw text, escaped by whoever shows it.
    pub detail: Option<Box<str>>,
}

impl Finding {
    /// The sentence of the problem table with the values of this finding, and the detail behind it.
    #[must_use]
    pub fn sentence(&self) -> String {
        let p = self.defect.code.problem();
        let Defect { got, want, .. } = self.defect;
        let rowid = i64::from_ne_bytes(got.to_ne_bytes()).to_string();
        let mut s = p.sentence.replace("{got}", &got.to_string()).replace("{rowid}", &rowid).replace("{want}", &want.to_string());
        if let Some(d) = &self.detail {
            s.push_str(": ");
            s.push_str(d);
        }
        s
    }
}

/// Counts every finding and keeps the first of each (code, object) in full.
///
/// Workers own one each; [`Findings::merge`] in page order gives the same result for any number of threads.
#[derive(Debug, Clone, Default)]
pub struct Findings {
    cap: usize,
    counts: BTreeMap<(Code, Option<ObjectId>), u64>,
    kept: Vec<Finding>,
    /// Which codes name which page: of all findings, the cap takes none away.
    pages: BTreeSet<(PageNo, Code)>,
}

impl Findings {
    /// An empty collection that keeps `cap` findings of each (code, object).
    #[must_use]
    pub fn new(cap: usize) -> Findings {
        Findings { cap, counts: BTreeMap::new(), kept: Vec::new(), pages: BTreeSet::new() }
    }

    /// Adds a defect at a place.
    pub fn add(&mut self, defect: Defect, site: Site) {
        self.push(Finding { defect, site, detail: None });
    }

    /// Adds a defect at a place with words.
    pub fn add_with(&mut self, defect: Defect, site: Site, detail: impl Into<String>) {
        // The detail of a finding that is only counted is not kept.
        self.push(Finding { defect, site, detail: Some(detail.into().into_boxed_str()) });
    }

    /// Counts findings that are kept nowhere in full.
    pub fn count_more(&mut self, code: Code, object: Option<ObjectId>, n: u64) {
        if n > 0 {
            let sum = self.counts.entry((code, object)).or_insert(0);
            *sum = sum.saturating_add(n);
        }
    }

    fn push(&mut self, finding: Finding) {
        let n = self.counts.entry((finding.defect.code, finding.site.object)).or_insert(0);
        *n = n.saturating_add(1);
        if let Some(page) = finding.site.page.filter(|_| self.cap > 0) {
            self.pages.insert((page, finding.defect.code));
        }
        if *n <= crate::ids::wide(self.cap) {
            self.kept.push(finding);
        }
    }

    /// Takes over the findings of a worker whose share of the evidence lies behind everything added so far.
    pub fn merge(&mut self, other: Findings) {
        let Findings { counts, kept, pages, .. } = other;
        self.pages.extend(pages);
        let mut room: BTreeMap<(Code, Option<ObjectId>), u64> = BTreeMap::new();
        for finding in kept {
            let key = (finding.defect.code, finding.site.object);
            let used = self.counts.get(&key).copied().unwrap_or(0);
            let more = room.entry(key).or_insert(0);
            if used.saturating_add(*more) < crate::ids::wide(self.cap) {
                *more = more.saturating_add(1);
                self.kept.push(finding);
            }
        }
        for (key, n) in counts {
            let sum = self.counts.entry(key).or_insert(0);
            *sum = sum.saturating_add(n);
        }
    }

    /// How often each code was seen on each object, without a cap.
    #[must_use]
    pub fn counts(&self) -> &BTreeMap<(Code, Option<ObjectId>), u64> {
        &self.counts
    }

    /// How often a code was seen.
    #[must_use]
    pub fn count(&self, code: Code) -> u64 {
        self.counts.iter().filter(|((c, _), _)| *c == code).map(|(_, n)| *n).fold(0, u64::saturating_add)
    }

    /// The findings kept in full, in the order they were made.
    #[must_use]
    pub fn kept(&self) -> &[Finding] {
        &self.kept
    }

    /// Which codes name which page, in page order.
    pub fn pages(&self) -> impl Iterator<Item = (PageNo, Code)> + '_ {
        self.pages.iter().copied()
    }

    /// Whether nothing was found.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// The cap this collection was made with, for workers that shall use the same.
    #[must_use]
    pub fn cap(&self) -> usize {
        self.cap
    }
}

/// Turns what a decoder saw into a finding at a place, and the result into an option.
pub trait Note<T> {
    /// Records the defect, if there is one, and yields `None` for it.
    fn note(self, log: &mut Findings, site: Site) -> Option<T>;
}

impl<T> Note<T> for Result<T, Defect> {
    #[inline]
    fn note(self, log: &mut Findings, site: Site) -> Option<T> {
        match self {
            Ok(value) => Some(value),
            Err(defect) => {
                log.add(defect, site);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_counted_and_the_first_are_kept() {
        let site = Site::default();
        let mut all = Findings::new(2);
        let mut parts = Findings::new(2);
        for chunk in 0..3 {
            let mut worker = Findings::new(2);
            for i in 0..3 {
                let d = Defect::new(Code::VarintCut, chunk * 3 + i, 0, 0);
                let site = Site { page: PageNo::new(chunk * 3 + i + 1), ..site };
                all.add(d, site);
                worker.add(d, site);
            }
            parts.merge(worker);
        }
        assert_eq!(all.count(Code::VarintCut), 9);
        assert_eq!(all.counts(), parts.counts());
        assert_eq!(all.kept(), parts.kept());
        assert_eq!(all.kept().len(), 2);
        assert_eq!(all.pages().count(), 9, "every page is named, whatever is kept");
        assert!(all.pages().eq(parts.pages()));
    }
}
