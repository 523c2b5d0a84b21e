//! Writes a segment: leaves, `%_idx` rows and doclist indexes from terms in order with their doclists in order.
//!
//! What stands on which leaf depends on the postings alone, not on the pieces in which they come.

#![expect(clippy::arithmetic_side_effects, reason = "computes on lengths of its own buffers, a leaf is below 64 KiB")]

use super::{DataId, LEAF_HEADER};
use crate::bytes::{put_u16, put_varint, varint, varint_len};
use crate::error::{Error, Result};
use crate::fts5::config::Detail;
use crate::ids::{idx, narrow, wide};

/// Leaves without a term from which on a doclist gets an index, as in FTS5.
const LEAVES_FOR_INDEX: u32 = 4;
/// The largest leaf size that is aimed at; offsets on a leaf have 16 bits, and a last entry may stand over.
const LARGEST_PAGE: usize = 65_000;
/// The highest leaf number that FTS5 accepts.
const SEGMENT_PAGES: u32 = 0x7fff_ff00;

/// Receives the rows of a segment.
pub trait SegmentSink {
    /// A row of `%_data`. Leaves come in order of their ids; pages of doclist indexes come between them.
    ///
    /// # Errors
    /// What the receiver cannot do.
    fn data(&mut self, id: DataId, block: &[u8]) -> Result<()>;

    /// A row of `%_idx` of this segment, in order of terms.
    ///
    /// # Errors
    /// What the receiver cannot do.
    fn idx(&mut self, term: &[u8], page: i64) -> Result<()>;
}

/// Writes one segment.
#[derive(Debug)]
pub struct SegmentWriter {
    segment: u16,
    detail: Detail,
    page_size: usize,
    page: u32,
    leaf: Vec<u8>,
    footer: Vec<u8>,
    last_term_at: usize,
    term: Vec<u8>,
    first_term_on_leaf: bool,
    first_rowid_on_leaf: bool,
    first_rowid_of_term: bool,
    last_rowid: i64,
    split_term: Vec<u8>,
    split_page: Option<u32>,
    termless: u32,
    index: Vec<IndexLevel>,
}

/// A page of a doclist index in the making, one a level.
#[derive(Debug, Default)]
struct IndexLevel {
    page: u32,
    block: Vec<u8>,
    first: i64,
    last: i64,
}

impl SegmentWriter {
    /// A writer of the segment with this id; leaves have about `page_size` bytes.
    #[must_use]
    pub fn new(segment: u16, detail: Detail, page_size: u32) -> SegmentWriter {
        SegmentWriter {
            segment,
            detail,
            page_size: idx(page_size).clamp(32, LARGEST_PAGE),
            page: 1,
            leaf: vec![0; LEAF_HEADER],
            footer: Vec::new(),
            last_term_at: 0,
            term: Vec::new(),
            first_term_on_leaf: true,
            first_rowid_on_leaf: true,
            first_rowid_of_term: true,
            last_rowid: 0,
            split_term: Vec::new(),
            split_page: Some(1),
            termless: 0,
            index: vec![IndexLevel::default()],
        }
    }

    fn used(&self) -> usize {
        self.leaf.len() + self.footer.len()
    }

    /// Begins a term, which must be above the one before. At least one entry follows.
    ///
    /// # Errors
    /// What the sink cannot do; more leaves than a segment can have.
    pub fn term(&mut self, term: &[u8], sink: &mut impl SegmentSink) -> Result<()> {
        if self.used() + term.len() + 2 >= self.page_size && self.leaf.len() > LEAF_HEADER {
            self.flush(sink)?;
        }
        put_varint(&mut self.footer, wide(self.leaf.len() - self.last_term_at));
        self.last_term_at = self.leaf.len();
        let common = common_prefix(&self.term, term);
        let kept = if self.first_term_on_leaf {
            if self.page > 1 {
                self.end_split(sink)?;
                self.split_term.clear();
                self.split_term.extend_from_slice(term.get(..=common).unwrap_or(term));
                self.split_page = Some(self.page);
            }
            0
        } else {
            put_varint(&mut self.leaf, wide(common));
            common
        };
        let rest = term.get(kept..).unwrap_or_default();
        put_varint(&mut self.leaf, wide(rest.len()));
        self.leaf.extend_from_slice(rest);
        self.term.clear();
        self.term.extend_from_slice(term);
        self.first_term_on_leaf = false;
        self.first_rowid_on_leaf = false;
        self.first_rowid_of_term = true;
        if let Some(level) = self.index.first_mut() {
            level.page = self.page;
        }
        Ok(())
    }

    /// Appends part of the term's doclist: a first rowid, above all rowids of the term before it, what stands behind it (position
    /// list, then distances with their position lists), and the last rowid of the part.
    ///
    /// # Errors
    /// What the sink cannot do; more leaves than a segment can have.
    pub fn doclist(&mut self, first: i64, last: i64, rest: &[u8], sink: &mut impl SegmentSink) -> Result<()> {
        // All of it fits on the leaf: the same bytes that the loop below would write.
        let head = self.rowid_number(first);
        if !self.first_rowid_on_leaf && self.used() + varint_len(head) + rest.len() <= self.page_size {
            put_varint(&mut self.leaf, head);
            self.leaf.extend_from_slice(rest);
            self.first_rowid_of_term = false;
            self.last_rowid = last;
            return Ok(());
        }
        let mut rowid = first;
        let mut at = 0;
        loop {
            let list = match self.detail {
                Detail::None => &[],
                _ => {
                    let (twice, len) = varint(rest, at).unwrap_or((0, 1));
                    let end = (at + len + narrow(twice >> 1)).min(rest.len());
                    let list = rest.get(at..end).unwrap_or_default();
                    at = end;
                    list
                }
            };
            self.entry(rowid, list, sink)?;
            let Some((distance, len)) = varint(rest, at) else { return Ok(()) };
            at += len;
            rowid = rowid.wrapping_add_unsigned(distance);
        }
    }

    /// The number that stands for the rowid behind what was written last.
    fn rowid_number(&self, rowid: i64) -> u64 {
        let n = if self.first_rowid_of_term || self.first_rowid_on_leaf { rowid } else { rowid.wrapping_sub(self.last_rowid) };
        u64::from_ne_bytes(n.to_ne_bytes())
    }

    /// One posting: rowid and its position list with the length before it.
    fn entry(&mut self, rowid: i64, list: &[u8], sink: &mut impl SegmentSink) -> Result<()> {
        if !self.first_rowid_of_term && self.used() >= self.page_size {
            self.flush(sink)?;
        }
        if self.first_rowid_on_leaf {
            let at = u16::try_from(self.leaf.len()).unwrap_or(0);
            put_u16(&mut self.leaf, 0, at);
            self.index_append(rowid, sink)?;
        }
        let n = self.rowid_number(rowid);
        put_varint(&mut self.leaf, n);
        self.last_rowid = rowid;
        self.first_rowid_of_term = false;
        self.first_rowid_on_leaf = false;
        if self.used() + list.len() <= self.page_size {
            self.leaf.extend_from_slice(list);
            return Ok(());
        }
        // The length stays with its rowid; varints stay whole.
        let mut rest = list;
        let (_, len) = varint(rest, 0).unwrap_or((0, 1));
        self.leaf.extend_from_slice(rest.get(..len).unwrap_or(rest));
        rest = rest.get(len..).unwrap_or_default();
        while self.used() + rest.len() > self.page_size {
            let room = self.page_size.saturating_sub(self.used());
            let take = whole_varints(rest, room);
            let (now, later) = rest.split_at_checked(take).unwrap_or((rest, &[]));
            self.leaf.extend_from_slice(now);
            rest = later;
            self.flush(sink)?;
        }
        self.leaf.extend_from_slice(rest);
        Ok(())
    }

    fn flush(&mut self, sink: &mut impl SegmentSink) -> Result<()> {
        let size = u16::try_from(self.leaf.len()).map_err(|_| Error::Limit { what: "a leaf of a search index over 64 KiB".into() })?;
        put_u16(&mut self.leaf, 2, size);
        if self.first_term_on_leaf {
            // A leaf within a doclist; when it has no rowid either, the index notes that.
            if self.first_rowid_on_leaf
                && let Some(level) = self.index.first_mut()
                && !level.block.is_empty()
            {
                level.block.push(0);
            }
            self.termless += 1;
        } else {
            self.leaf.extend_from_slice(&self.footer);
        }
        sink.data(DataId::Leaf { segment: self.segment, page: self.page }, &self.leaf)?;
        self.leaf.clear();
        self.leaf.resize(LEAF_HEADER, 0);
        self.footer.clear();
        self.last_term_at = 0;
        self.page += 1;
        if self.page > SEGMENT_PAGES {
            return Err(Error::Limit { what: "leaves of one segment of a search index".into() });
        }
        self.first_term_on_leaf = true;
        self.first_rowid_on_leaf = true;
        Ok(())
    }

    /// Writes the `%_idx` row of the last leaf with a term, and the index of its last doclist if that was long.
    fn end_split(&mut self, sink: &mut impl SegmentSink) -> Result<()> {
        let Some(page) = self.split_page.take() else { return Ok(()) };
        let indexed = self.termless >= LEAVES_FOR_INDEX && self.index.first().is_some_and(|l| !l.block.is_empty());
        for (height, level) in self.index.iter_mut().enumerate() {
            if level.block.is_empty() {
                break;
            }
            if indexed {
                let height = u8::try_from(height).unwrap_or(u8::MAX);
                sink.data(DataId::DoclistIndex { segment: self.segment, height, page: level.page }, &level.block)?;
            }
            level.block.clear();
        }
        self.termless = 0;
        sink.idx(&self.split_term, i64::from(page) << 1 | i64::from(indexed))
    }

    /// Notes in the doclist index that the current leaf begins with this rowid.
    fn index_append(&mut self, rowid: i64, sink: &mut impl SegmentSink) -> Result<()> {
        let mut height = 0;
        let mut child = self.page;
        loop {
            if self.index.len() <= height + 1 {
                self.index.push(IndexLevel::default());
            }
            let Some([level, above]) = self.index.get_mut(height..height + 2) else { return Ok(()) };
            let full = level.block.len() >= self.page_size;
            if full {
                if let Some(flags) = level.block.first_mut() {
                    *flags = 1;
                }
                let id = DataId::DoclistIndex { segment: self.segment, height: u8::try_from(height).unwrap_or(u8::MAX), page: level.page };
                sink.data(id, &level.block)?;
                if above.block.is_empty() {
                    // It was the root: the new root begins with it.
                    above.page = level.page;
                    above.block.push(0);
                    put_varint(&mut above.block, level.page.into());
                    put_varint(&mut above.block, u64::from_ne_bytes(level.first.to_ne_bytes()));
                    above.first = level.first;
                    above.last = level.first;
                }
                level.block.clear();
                level.page += 1;
            }
            let n = if level.block.is_empty() {
                level.block.push(u8::from(full));
                put_varint(&mut level.block, child.into());
                level.first = rowid;
                rowid
            } else {
                rowid.wrapping_sub(level.last)
            };
            put_varint(&mut level.block, u64::from_ne_bytes(n.to_ne_bytes()));
            level.last = rowid;
            if !full {
                return Ok(());
            }
            child = level.page;
            height += 1;
        }
    }

    /// Writes what is left; the number of leaves, 0 for a segment without terms.
    ///
    /// # Errors
    /// What the sink cannot do.
    pub fn finish(mut self, sink: &mut impl SegmentSink) -> Result<u32> {
        if self.leaf.len() > LEAF_HEADER {
            self.flush(sink)?;
        }
        if self.page > 1 {
            self.end_split(sink)?;
        }
        Ok(self.page - 1)
    }
}

fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// The shortest run of whole varints that is at least `room` bytes long, at least one.
fn whole_varints(bytes: &[u8], room: usize) -> usize {
    let mut at = 0;
    loop {
        match varint(bytes, at) {
            Some((_, len)) => at += len,
            None => return bytes.len(),
        }
        if at >= room {
            return at;
        }
    }
}
