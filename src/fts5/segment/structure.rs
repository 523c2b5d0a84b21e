//! The structure record (which segments there are) and the averages record.
//!
//! Structure: 4 bytes cookie; for tables with `contentless_delete=1` the bytes `ff 00 00 01`; varints: levels, segments,
//! write counter; for each level: segments that a running merge reads, segments; for each segment, oldest first: id, first
//! leaf, last leaf, and in the second version: lowest and highest origin, tombstone pages, deleted rows, rows.

use std::collections::BTreeMap;

use super::DataId;
use crate::bytes::{put_varint, u32_at, varint};
use crate::finding::{Code, Defect};
use crate::ids::{narrow, small, wide};

/// FTS5 refuses more segments or levels.
pub const MAX_SEGMENTS: u64 = 2000;
/// FTS5 refuses higher leaf numbers.
pub const MAX_PAGE: u64 = 0x7fff_ff00;
const SECOND_VERSION: &[u8] = &[0xff, 0, 0, 1];

/// A segment of the structure record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Segment {
    /// Its id, from 1.
    pub id: u16,
    /// Its first leaf; 0 when a running merge has used it up.
    pub first: u32,
    /// Its last leaf.
    pub last: u32,
    /// What the second version adds.
    pub deletes: Deletes,
}

/// What the second version of the structure record says of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Deletes {
    /// Lowest value of `%_docsize.origin` of its rows.
    pub lowest_origin: u64,
    /// Highest value.
    pub highest_origin: u64,
    /// Pages of its tombstone hash.
    pub tombstone_pages: u32,
    /// Rows of it that were deleted.
    pub deleted: u64,
    /// Rows written to it.
    pub rows: u64,
}

/// A level of the structure record.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Level {
    /// How many of its first segments a running merge reads.
    pub merging: u32,
    /// Its segments, oldest first.
    pub segments: Vec<Segment>,
}

/// The structure record.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Structure {
    /// The cookie; it changes with the configuration.
    pub cookie: u32,
    /// Whether it is of the second version.
    pub with_deletes: bool,
    /// Leaves written so far.
    pub writes: u64,
    /// The levels, newest segments on level 0.
    pub levels: Vec<Level>,
}

impl Structure {
    /// Decodes the record.
    ///
    /// # Errors
    /// `structure-record-bad` at the byte that FTS5 would refuse it for.
    pub fn read(block: &[u8]) -> Result<Structure, Defect> {
        let mut r = Varints { block, at: 4 };
        let cookie = u32_at(block, 0).ok_or(Defect::new(Code::StructureRecordBad, 0, wide(block.len()), 4))?;
        let with_deletes = block.get(4..8) == Some(SECOND_VERSION);
        if with_deletes {
            r.at = 8;
        }
        let level_count = r.next(0, MAX_SEGMENTS)?;
        let mut segment_count = r.next(0, MAX_SEGMENTS)?;
        let writes = r.any()?;
        let mut levels = Vec::new();
        let mut merging_before = false;
        for _ in 0..level_count {
            let merging = r.next(0, MAX_SEGMENTS)?;
            let count = r.next(merging, segment_count)?;
            segment_count = segment_count.saturating_sub(count);
            if merging_before && count == 0 {
                return Err(r.bad(count, 1));
            }
            merging_before = merging > 0;
            let mut segments = Vec::new();
            for _ in 0..count {
                segments.push(segment(&mut r, with_deletes)?);
            }
            levels.push(Level { merging: u32::try_from(merging).unwrap_or(0), segments });
        }
        if merging_before || segment_count != 0 {
            return Err(r.bad(segment_count, 0));
        }
        Ok(Structure { cookie, with_deletes, writes, levels })
    }

    /// Encodes the record.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        let mut out = self.cookie.to_be_bytes().to_vec();
        if self.with_deletes {
            out.extend_from_slice(SECOND_VERSION);
        }
        put_varint(&mut out, wide(self.levels.len()));
        put_varint(&mut out, wide(self.segments().count()));
        put_varint(&mut out, self.writes);
        for level in &self.levels {
            put_varint(&mut out, level.merging.into());
            put_varint(&mut out, wide(level.segments.len()));
            for s in &level.segments {
                for n in [s.id.into(), s.first, s.last] {
                    put_varint(&mut out, n.into());
                }
                if self.with_deletes {
                    let d = &s.deletes;
                    for n in [d.lowest_origin, d.highest_origin, d.tombstone_pages.into(), d.deleted, d.rows] {
                        put_varint(&mut out, n);
                    }
                }
            }
        }
        out
    }

    /// All segments in the order that decides between entries of one term and rowid: newest first.
    pub fn segments(&self) -> impl Iterator<Item = &Segment> {
        self.levels.iter().flat_map(|l| l.segments.iter().rev())
    }
}

/// The segments that the rows of `%_data` and `%_idx` show, for an index whose structure record is lost: each with its range of
/// leaves, by id. Which of them is newer does not show. `idx` gives segment and leaf of the rows of `%_idx`.
#[must_use]
pub fn segments_of(ids: impl IntoIterator<Item = i64>, idx: impl IntoIterator<Item = (i64, i64)>) -> Vec<Segment> {
    let mut found: BTreeMap<u16, Segment> = BTreeMap::new();
    let mut tombstones: BTreeMap<u16, u32> = BTreeMap::new();
    for id in ids {
        match DataId::of(id) {
            DataId::Leaf { segment, page } if (1..=MAX_PAGE).contains(&page.into()) => {
                let s = found.entry(segment).or_insert(Segment { id: segment, first: page, last: page, deletes: Deletes::default() });
                (s.first, s.last) = (s.first.min(page), s.last.max(page));
            }
            DataId::Tombstones { segment, page } if u64::from(page) < MAX_PAGE => {
                let pages = tombstones.entry(segment).or_insert(0);
                *pages = page.saturating_add(1).max(*pages);
            }
            _ => {}
        }
    }
    // A last leaf that is gone still has its row in `%_idx`.
    for (segment, leaf) in idx {
        if let (Ok(segment), Ok(leaf)) = (u16::try_from(segment), u32::try_from(leaf))
            && u64::from(leaf) <= MAX_PAGE
            && let Some(s) = found.get_mut(&segment)
        {
            s.last = s.last.max(leaf);
        }
    }
    let segments = found.into_values().take(narrow(MAX_SEGMENTS));
    segments
        .map(|s| Segment { deletes: Deletes { tombstone_pages: tombstones.get(&s.id).copied().unwrap_or(0), ..s.deletes }, ..s })
        .collect()
}

fn segment(r: &mut Varints<'_>, with_deletes: bool) -> Result<Segment, Defect> {
    // The id is not checked by FTS5 here; ids of %_data rows have room for 16 bits.
    let id = r.next(1, 0xffff)?;
    let first = r.next(0, MAX_PAGE)?;
    let last = r.next(first, MAX_PAGE)?;
    let narrow = |n: u64| u32::try_from(n).unwrap_or(0);
    let deletes = if with_deletes {
        Deletes {
            lowest_origin: r.any()?,
            highest_origin: r.any()?,
            tombstone_pages: narrow(r.next(0, MAX_PAGE)?),
            deleted: r.any()?,
            rows: r.any()?,
        }
    } else {
        Deletes::default()
    };
    Ok(Segment { id: u16::try_from(id).unwrap_or(0), first: narrow(first), last: narrow(last), deletes })
}

/// *Chained*: varints one behind the other.
struct Varints<'a> {
    block: &'a [u8],
    at: usize,
}

impl Varints<'_> {
    fn bad(&self, got: u64, want: u64) -> Defect {
        Defect::new(Code::StructureRecordBad, small(self.at), got, want)
    }

    fn any(&mut self) -> Result<u64, Defect> {
        let (n, len) = varint(self.block, self.at).ok_or(self.bad(wide(self.block.len()), 0))?;
        self.at = self.at.saturating_add(len);
        Ok(n)
    }

    fn next(&mut self, low: u64, high: u64) -> Result<u64, Defect> {
        let at = self.at;
        let n = self.any()?;
        if n < low {
            return Err(Defect::new(Code::StructureRecordBad, small(at), n, low));
        }
        if n > high {
            return Err(Defect::new(Code::StructureRecordBad, small(at), n, high));
        }
        Ok(n)
    }
}

/// The averages record: rows of the table and tokens of each column.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Averages {
    /// Rows in the index.
    pub rows: u64,
    /// Tokens of each column over all rows.
    pub tokens: Vec<u64>,
}

impl Averages {
    /// Decodes the record for a table of `columns` columns; an empty record is that of a table without rows.
    #[must_use]
    pub fn read(block: &[u8], columns: usize) -> Averages {
        let mut at = 0_usize;
        let mut next = || {
            let (n, len) = varint(block, at)?;
            at = at.saturating_add(len);
            Some(n)
        };
        let rows = next().unwrap_or(0);
        Averages { rows, tokens: (0..columns).map(|_| next().unwrap_or(0)).collect() }
    }

    /// Encodes the record.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, self.rows);
        for &n in &self.tokens {
            put_varint(&mut out, n);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_round_trip_and_cuts_are_defects() {
        let segment = Segment { id: 3, first: 1, last: 700, deletes: Deletes { rows: 9, highest_origin: 4, ..Deletes::default() } };
        let levels = vec![Level::default(), Level { merging: 0, segments: vec![segment] }];
        let s = Structure { cookie: 7, with_deletes: true, writes: 1000, levels };
        let bytes = s.write();
        assert_eq!(Structure::read(&bytes), Ok(s));
        for cut in 0..bytes.len() {
            assert!(Structure::read(&bytes[..cut]).is_err(), "{cut}");
        }
        assert!(Structure::read(b"\xde\xad\xbe\xef\xde\xad\xbe\xef").is_err());
        assert_eq!(Structure::read(&[0; 7]), Ok(Structure::default()));
    }
}
