//! One leaf: header, footer, and where its terms and its first rowid stand.

use crate::bytes::{u16_at, varint};
use crate::finding::{Code, Defect};
use crate::ids::{narrow, small, wide};

use super::LEAF_HEADER;

/// A leaf whose header and footer hold together.
#[derive(Debug, Clone, Copy)]
pub struct Leaf<'a> {
    bytes: &'a [u8],
    first_rowid: usize,
    footer: usize,
}

impl<'a> Leaf<'a> {
    /// Reads header and footer.
    ///
    /// # Errors
    /// `segment-leaf-bad` when an offset leads out of the leaf or the first rowid does not stand before the first term.
    pub fn read(bytes: &'a [u8]) -> Result<Leaf<'a>, Defect> {
        let bad = |at: usize, got: usize, want: usize| Defect::new(Code::SegmentLeafBad, small(at), wide(got), wide(want));
        let (Some(first_rowid), Some(footer)) = (u16_at(bytes, 0), u16_at(bytes, 2)) else {
            return Err(bad(0, bytes.len(), LEAF_HEADER));
        };
        let (first_rowid, footer) = (usize::from(first_rowid), usize::from(footer));
        if footer < LEAF_HEADER || footer > bytes.len() {
            return Err(bad(2, footer, bytes.len()));
        }
        let leaf = Leaf { bytes, first_rowid, footer };
        if first_rowid != 0 && (first_rowid < LEAF_HEADER || first_rowid >= footer) {
            return Err(bad(0, first_rowid, footer));
        }
        let mut offsets = leaf.term_offsets();
        if let Some(first) = offsets.next() {
            let first = first?;
            if first_rowid >= first {
                return Err(bad(0, first_rowid, first));
            }
        }
        for offset in offsets {
            offset?;
        }
        Ok(leaf)
    }

    /// *Chained*: offsets of the terms, ascending.
    #[must_use]
    pub fn term_offsets(&self) -> TermOffsets<'a> {
        TermOffsets { footer: self.bytes.get(self.footer..).unwrap_or_default(), at: 0, offset: 0, end: self.footer, start: self.footer }
    }

    /// The offset of the first term.
    #[must_use]
    pub fn first_term(&self) -> Option<usize> {
        self.term_offsets().next()?.ok()
    }

    /// The offset of the first rowid, if it stands before the first term.
    #[must_use]
    pub fn first_rowid(&self) -> Option<usize> {
        (self.first_rowid != 0).then_some(self.first_rowid)
    }

    /// Header, terms and doclists, without the footer.
    #[must_use]
    pub fn content(&self) -> &'a [u8] {
        self.bytes.get(..self.footer).unwrap_or_default()
    }

    /// Where the rest of a position list from the leaf before must end.
    #[must_use]
    pub fn rest_ends(&self) -> usize {
        self.first_rowid().or(self.first_term()).unwrap_or(self.footer)
    }
}

/// *Chained*: offsets of the terms of a leaf, from its footer.
#[derive(Debug, Clone)]
pub struct TermOffsets<'a> {
    footer: &'a [u8],
    at: usize,
    offset: usize,
    end: usize,
    start: usize,
}

impl Iterator for TermOffsets<'_> {
    type Item = Result<usize, Defect>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.footer.len() {
            return None;
        }
        let place = self.start.saturating_add(self.at);
        let bad = |got: u64, want: usize| Some(Err(Defect::new(Code::SegmentLeafBad, small(place), got, wide(want))));
        let Some((distance, len)) = varint(self.footer, self.at) else {
            self.at = self.footer.len();
            return bad(0, 1);
        };
        self.at = self.at.saturating_add(len);
        let offset = self.offset.saturating_add(narrow(distance));
        if distance == 0 || offset < LEAF_HEADER || offset >= self.end {
            self.at = self.footer.len();
            return bad(distance, self.end);
        }
        self.offset = offset;
        Some(Ok(offset))
    }
}
