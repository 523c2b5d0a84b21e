//! Reads the postings of one segment, leaf after leaf, past damage.

use std::borrow::Cow;

use super::leaf::Leaf;
use super::structure::Segment;
use super::{DataId, LEAF_HEADER};
use crate::bytes::{varint, varint_i64};
use crate::finding::{Code, Defect};
use crate::fts5::config::Detail;
use crate::ids::{narrow, small, wide};

/// Gives the blocks of `%_data` by id.
pub trait Blocks: Sync {
    /// The block of the row with this id.
    fn block(&self, id: i64) -> Option<Cow<'_, [u8]>>;

    /// The lowest id there is from `from` on, so that a gap of any size is passed in one step.
    fn next_id(&self, from: i64) -> Option<i64>;
}

/// Owned blocks, or blocks borrowed from page images (`&[u8]`, `Cow<[u8]>`).
impl<B: AsRef<[u8]> + Sync> Blocks for std::collections::BTreeMap<i64, B> {
    fn block(&self, id: i64) -> Option<Cow<'_, [u8]>> {
        self.get(&id).map(|b| Cow::Borrowed(b.as_ref()))
    }

    fn next_id(&self, from: i64) -> Option<i64> {
        self.range(from..).next().map(|(id, _)| *id)
    }
}

/// The longest term that can be in an index: the longest token and its index byte.
const MAX_TERM: usize = crate::fts5::tokenizer::MAX_TOKEN + 1;

/// What the cursor saw of a leaf.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LeafSeen {
    /// Its number.
    pub page: u32,
    /// Its first term, unless none begins on it.
    pub first_term: Option<Vec<u8>>,
    /// The last term before it that could be read; empty on the first leaf.
    pub term_before: Vec<u8>,
    /// The rowid that stands before its first term.
    pub first_rowid: Option<i64>,
    /// Whether it was there and held together.
    pub sound: bool,
}

/// A posting of a segment: the place of the cursor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Posting {
    /// The term, with its index byte.
    pub term: Vec<u8>,
    /// The row.
    pub rowid: i64,
    /// Whether it takes away what older segments say of this term and row.
    pub deletes: bool,
    /// Whether it says something itself.
    pub present: bool,
    /// The position list without its length. Empty under `detail=none`.
    pub positions: Vec<u8>,
}

/// *Chained* within a leaf, *Indexed* over leaves: a bad leaf costs itself, the list that runs into it, and what behind it cannot be
/// given to a term until the next term begins.
pub struct Cursor<'a> {
    blocks: &'a dyn Blocks,
    segment: Segment,
    detail: Detail,
    page: u32,
    bytes: Cow<'a, [u8]>,
    /// Offsets of terms still to come on this leaf, last first.
    terms: Vec<usize>,
    at: usize,
    end: usize,
    /// The next rowid is written whole.
    whole_rowid: bool,
    /// The current term is known; not so behind a gap.
    term_known: bool,
    rowid_known: bool,
    posting: Posting,
    term_before: Vec<u8>,
    /// No term of this leaf was read yet: its first one stands whole.
    first_term: bool,
    watch: bool,
    seen: Vec<LeafSeen>,
    defects: Vec<(u32, Defect)>,
}

impl std::fmt::Debug for Cursor<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cursor").field("segment", &self.segment).field("page", &self.page).field("at", &self.at).finish_non_exhaustive()
    }
}

/// Defects kept of a segment; a segment with more is no better known by them.
const MAX_DEFECTS: usize = 10_000;

impl<'a> Cursor<'a> {
    /// A cursor before the first posting of a segment.
    #[must_use]
    pub fn new(blocks: &'a dyn Blocks, segment: Segment, detail: Detail) -> Cursor<'a> {
        Cursor {
            blocks,
            segment,
            detail,
            page: segment.first.saturating_sub(1),
            bytes: Cow::Borrowed(&[]),
            terms: Vec::new(),
            at: 0,
            end: 0,
            whole_rowid: true,
            term_known: false,
            rowid_known: false,
            posting: Posting::default(),
            term_before: Vec::new(),
            first_term: true,
            watch: false,
            seen: Vec::new(),
            defects: Vec::new(),
        }
    }

    /// Notes what is on each leaf, for [`Cursor::seen`].
    #[must_use]
    pub fn watching(mut self) -> Cursor<'a> {
        self.watch = true;
        self
    }

    /// The segment.
    #[must_use]
    pub fn segment(&self) -> &Segment {
        &self.segment
    }

    /// What was on the leaves so far, in order of their numbers; those that are missing are not listed.
    #[must_use]
    pub fn seen(&self) -> &[LeafSeen] {
        &self.seen
    }

    /// What was wrong so far, with the leaf.
    pub fn take_defects(&mut self) -> Vec<(u32, Defect)> {
        std::mem::take(&mut self.defects)
    }

    /// The posting that the last call of [`Cursor::step`] came to.
    #[must_use]
    pub fn posting(&self) -> &Posting {
        &self.posting
    }

    /// Goes to the next posting; `false` behind the last.
    pub fn step(&mut self) -> bool {
        loop {
            if self.at >= self.end {
                if !self.next_leaf() {
                    return false;
                }
                continue;
            }
            match self.entry() {
                Ok(true) => return true,
                Ok(false) => {}
                Err(defect) => {
                    self.note(defect);
                    self.skip_list();
                }
            }
        }
    }

    fn note(&mut self, defect: Defect) {
        if self.defects.len() < MAX_DEFECTS {
            self.defects.push((self.page, defect));
        }
    }

    fn bad(&self, got: u64, want: u64) -> Defect {
        Defect::new(Code::SegmentLeafBad, small(self.at), got, want)
    }

    /// Where the doclist at hand ends on this leaf.
    fn list_end(&self) -> usize {
        self.terms.last().copied().unwrap_or(self.end)
    }

    /// Gives up what is before the next term of the leaf.
    fn skip_list(&mut self) {
        self.at = self.list_end();
        self.rowid_known = false;
    }

    /// Makes the next leaf the current one; `false` when there is none.
    fn next_leaf(&mut self) -> bool {
        loop {
            if self.segment.first == 0 || self.page >= self.segment.last {
                return false;
            }
            self.page = self.page.saturating_add(1);
            self.terms.clear();
            match self.load() {
                Ok(rest_ends) => {
                    // Bytes of a position list that nobody asked for.
                    if rest_ends > LEAF_HEADER && self.rowid_known {
                        self.at = LEAF_HEADER;
                        let d = self.bad(wide(rest_ends), wide(LEAF_HEADER));
                        self.note(d);
                    }
                    self.at = rest_ends;
                    return true;
                }
                Err(defect) => {
                    self.gap(defect);
                }
            }
        }
    }

    /// A leaf that cannot be read: what follows belongs to a term that may have begun on it.
    fn gap(&mut self, defect: Defect) {
        self.note(defect);
        self.at = 0;
        self.end = 0;
        self.term_known = false;
        self.rowid_known = false;
        if self.watch {
            self.seen.push(LeafSeen { page: self.page, ..LeafSeen::default() });
        }
        if self.blocks.block(DataId::Leaf { segment: self.segment.id, page: self.page }.id()).is_none() {
            self.seen.pop_if(|s| s.page == self.page);
            // On to the last missing one.
            let after = self.page.saturating_add(1);
            let next = self.blocks.next_id(DataId::Leaf { segment: self.segment.id, page: after }.id()).map(DataId::of);
            self.page = match next {
                Some(DataId::Leaf { segment, page }) if segment == self.segment.id && page <= self.segment.last => page.saturating_sub(1),
                _ => self.segment.last,
            };
        }
    }

    /// Reads the leaf `self.page`; where the rest of a list from the leaf before ends on it.
    fn load(&mut self) -> Result<usize, Defect> {
        let id = DataId::Leaf { segment: self.segment.id, page: self.page }.id();
        let blocks: &'a dyn Blocks = self.blocks;
        let bytes = blocks.block(id).ok_or(Defect::new(Code::SegmentLeafMissing, 0, self.page.into(), self.segment.id.into()))?;
        let leaf = Leaf::read(&bytes)?;
        let (rest_ends, end) = (leaf.rest_ends(), leaf.content().len());
        self.terms.extend(leaf.term_offsets().filter_map(Result::ok));
        self.terms.reverse();
        let first_rowid = leaf.first_rowid().and_then(|at| varint_i64(leaf.content(), at)).map(|(n, _)| n);
        if self.watch {
            self.seen.push(LeafSeen { page: self.page, first_rowid, sound: true, ..LeafSeen::default() });
        }
        self.end = end;
        self.bytes = bytes;
        self.whole_rowid = true;
        self.first_term = true;
        Ok(rest_ends)
    }

    fn varint(&mut self) -> Result<u64, Defect> {
        let content = self.bytes.get(..self.end).unwrap_or_default();
        let (n, len) = varint(content, self.at).ok_or(self.bad(wide(self.end), wide(self.at)))?;
        self.at = self.at.saturating_add(len);
        Ok(n)
    }

    /// Reads a term or a posting; `true` when the cursor stands on a posting.
    fn entry(&mut self) -> Result<bool, Defect> {
        if self.terms.last() == Some(&self.at) {
            self.term()?;
            return Ok(false);
        }
        let limit = self.list_end();
        let n = self.varint()?;
        let signed = i64::from_ne_bytes(n.to_ne_bytes());
        if self.whole_rowid {
            self.posting.rowid = signed;
            self.whole_rowid = false;
            self.rowid_known = true;
        } else {
            let next = self.posting.rowid.wrapping_add(signed);
            if self.rowid_known && next <= self.posting.rowid {
                return Err(self.bad(n, 1));
            }
            self.posting.rowid = next;
        }
        self.posting.positions.clear();
        let known = self.term_known && self.rowid_known;
        if self.detail == Detail::None {
            let zero = |c: &Self| c.at < limit && c.bytes.get(c.at) == Some(&0);
            self.posting.deletes = zero(self);
            self.posting.present = !self.posting.deletes;
            if self.posting.deletes {
                self.at = self.at.saturating_add(1);
                if zero(self) {
                    self.posting.present = true;
                    self.at = self.at.saturating_add(1);
                }
            }
            return Ok(known);
        }
        let twice = self.varint()?;
        self.posting.deletes = twice & 1 == 1;
        let length = narrow(twice >> 1);
        self.posting.present = length > 0;
        self.positions(length)?;
        Ok(known)
    }

    fn term(&mut self) -> Result<(), Defect> {
        self.terms.pop();
        let first_on_leaf = std::mem::take(&mut self.first_term);
        self.rowid_known = false;
        if !first_on_leaf && !self.term_known {
            // It is written as the difference to a term that could not be read.
            self.at = self.list_end();
            return Ok(());
        }
        self.term_known = false;
        let kept = if first_on_leaf { 0 } else { narrow(self.varint()?) };
        let added = narrow(self.varint()?);
        let limit = self.list_end();
        let total = kept.saturating_add(added);
        let end = self.at.saturating_add(added);
        if end > limit || total == 0 || total > MAX_TERM || kept > self.posting.term.len() {
            return Err(self.bad(wide(total), wide(limit)));
        }
        self.term_before.clear();
        self.term_before.extend_from_slice(&self.posting.term);
        self.posting.term.truncate(kept);
        let rest = self.bytes.get(self.at..end).unwrap_or_default();
        self.posting.term.extend_from_slice(rest);
        self.at = end;
        self.whole_rowid = true;
        self.term_known = true;
        if !self.term_before.is_empty() && self.posting.term <= self.term_before {
            let d = Defect::new(Code::TermOrder, small(self.at), self.page.into(), self.segment.id.into());
            self.note(d);
        }
        if first_on_leaf
            && self.watch
            && let Some(seen) = self.seen.last_mut()
        {
            seen.first_term = Some(self.posting.term.clone());
            seen.term_before.clone_from(&self.term_before);
        }
        Ok(())
    }

    /// Gathers a position list, which may go on over several leaves.
    fn positions(&mut self, length: usize) -> Result<(), Defect> {
        let mut missing = length;
        let mut limit = self.list_end();
        let mut continued = false;
        loop {
            let end = self.at.saturating_add(missing).min(limit);
            let part = self.bytes.get(self.at..end).unwrap_or_default();
            missing = missing.saturating_sub(part.len());
            self.posting.positions.extend_from_slice(part);
            self.at = end;
            if missing == 0 {
                if continued && self.at < limit {
                    return Err(self.bad(wide(self.at), wide(limit)));
                }
                return Ok(());
            }
            if limit < self.end || self.page >= self.segment.last {
                return Err(self.bad(wide(length), wide(length.saturating_sub(missing))));
            }
            self.page = self.page.saturating_add(1);
            self.terms.clear();
            match self.load() {
                Ok(rest_ends) => {
                    self.at = LEAF_HEADER;
                    limit = rest_ends;
                    continued = true;
                }
                Err(defect) => {
                    self.gap(defect);
                    return Err(self.bad(wide(length), wide(length.saturating_sub(missing))));
                }
            }
        }
    }
}

/// *Chained*: the positions of a list as (column, position); under `detail=column` (column, 0).
#[derive(Debug, Clone)]
pub struct Positions<'a> {
    list: &'a [u8],
    at: usize,
    detail: Detail,
    column: u64,
    position: u64,
}

impl<'a> Positions<'a> {
    /// The positions of a list without its length.
    #[must_use]
    pub fn new(list: &'a [u8], detail: Detail) -> Positions<'a> {
        Positions { list, at: 0, detail, column: 0, position: 0 }
    }

    fn varint(&mut self) -> Option<u64> {
        let (n, len) = varint(self.list, self.at)?;
        self.at = self.at.saturating_add(len);
        Some(n)
    }
}

impl Iterator for Positions<'_> {
    type Item = Result<(u32, u32), Defect>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.list.len() {
            return None;
        }
        let start = self.at;
        let mut read = || {
            let mut n = self.varint()?;
            if n == 1 && self.detail == Detail::Full {
                self.column = self.varint()?;
                self.position = 0;
                n = self.varint()?;
            }
            let step = n.checked_sub(2)?;
            self.position = self.position.checked_add(step)?;
            Some(())
        };
        let narrow = |n: u64| u32::try_from(n).ok();
        let found = match read() {
            Some(()) if self.detail == Detail::Columns => narrow(self.position).map(|c| (c, 0)),
            Some(()) => narrow(self.column).zip(narrow(self.position)),
            None => None,
        };
        match found {
            Some(found) => Some(Ok(found)),
            None => {
                self.at = self.list.len();
                Some(Err(Defect::new(Code::SegmentLeafBad, small(start), wide(start), wide(self.list.len()))))
            }
        }
    }
}
