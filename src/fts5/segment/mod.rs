//! The rows of `%_data` and `%_idx`: the index itself.
//!
//! `%_data(id INTEGER PRIMARY KEY, block BLOB)` holds, told apart by their ids ([`DataId`]):
//!
//! | record | id | content |
//! |---|---|---|
//! | averages | 1 | varints: rows, then tokens of each column |
//! | structure | 10 | which segments there are, see [`structure`] |
//! | leaf | segment, page from 1 | terms and doclists, see below |
//! | doclist index | segment, height, page | first rowids of the leaves that one long doclist covers |
//! | tombstones | segment, page from 0 | deleted rowids of `contentless_delete=1` tables |
//!
//! A leaf:
//!
//! | offset | size | content |
//! |---|---|---|
//! | 0 | 2 | offset of the first rowid that stands before the first term, 0 for none |
//! | 2 | 2 | offset of the footer, equal to the length when no term begins on the leaf |
//! | 4 | | the rest of the doclist from the leaf before, then terms with their doclists |
//! | footer | | varints: offset of the first term, then the distance of each further one |
//!
//! A term: (only if not the first of its leaf: varint length shared with the term before), varint length of the rest, the
//! rest. Its first byte is `0` for the main index, `1` and so on for the prefix indexes. A doclist: varint rowid (the first of
//! the list, and the first on each leaf), otherwise the distance to the one before; then, unless `detail=none`, a varint
//! of twice the bytes of the position list, plus 1 for a deleted entry; then the list. A position list: varints of the distance
//! to the position before, plus 2; the byte 1 and a varint start another column. Under `detail=column` the columns
//! stand in place of positions. Under `detail=none` one 0 behind a rowid marks a deletion, two a deletion and a new entry.
//! No varint is cut by the end of a leaf, and the length of a position list stands on the leaf of its rowid.
//!
//! `%_idx(segid, term, pgno)` has, for each leaf on which a term begins, the shortest prefix of its first term that tells it
//! from the terms before (empty for the first leaf), and twice the page number, plus 1 if the leaf's last term has a
//! doclist index.

pub mod cursor;
pub mod leaf;
pub mod merged;
pub mod structure;
pub mod tombstones;
pub mod writer;

/// The id of the averages record.
pub const AVERAGES_ID: i64 = 1;
/// The id of the structure record.
pub const STRUCTURE_ID: i64 = 10;
/// The byte that a term of the main index begins with; those of the prefix indexes follow it.
pub const MAIN_INDEX: u8 = b'0';
/// The length of a leaf's header.
pub const LEAF_HEADER: usize = 4;

const PAGE_BITS: u32 = 31;
const HEIGHT_BITS: u32 = 5;
const DOCLIST_INDEX_SHIFT: u32 = PAGE_BITS + HEIGHT_BITS;
const SEGMENT_SHIFT: u32 = DOCLIST_INDEX_SHIFT + 1;
const PAGE_MASK: u64 = (1 << PAGE_BITS) - 1;

/// What a row of `%_data` is, by its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DataId {
    /// Rows and tokens of each column.
    Averages,
    /// The list of segments.
    Structure,
    /// A leaf of a segment.
    Leaf {
        /// The segment.
        segment: u16,
        /// The page, from 1.
        page: u32,
    },
    /// A page of a doclist index.
    DoclistIndex {
        /// The segment.
        segment: u16,
        /// 0 for the pages that name leaves.
        height: u8,
        /// Of height 0, the leaf on which the term stands, or a following number.
        page: u32,
    },
    /// A page of the hash of deleted rowids.
    Tombstones {
        /// The segment.
        segment: u16,
        /// The page, from 0.
        page: u32,
    },
    /// No id that FTS5 gives.
    Other(i64),
}

impl DataId {
    /// What the row with this id is.
    #[must_use]
    pub fn of(id: i64) -> DataId {
        match id {
            AVERAGES_ID => return DataId::Averages,
            STRUCTURE_ID => return DataId::Structure,
            _ => {}
        }
        let Ok(bits) = u64::try_from(id) else { return DataId::Other(id) };
        let page = u32::try_from(bits & PAGE_MASK).unwrap_or(0);
        let height = u8::try_from(bits >> PAGE_BITS & 0x1f).unwrap_or(0);
        let doclist_index = bits >> DOCLIST_INDEX_SHIFT & 1 == 1;
        let high = bits >> SEGMENT_SHIFT;
        let segment = u16::try_from(high & 0xffff).unwrap_or(0);
        match (high >> 16, doclist_index) {
            _ if segment == 0 => DataId::Other(id),
            (0, true) => DataId::DoclistIndex { segment, height, page },
            (0, false) if height == 0 => DataId::Leaf { segment, page },
            (1, false) if height == 0 => DataId::Tombstones { segment, page },
            _ => DataId::Other(id),
        }
    }

    /// The id of the row.
    #[must_use]
    pub fn id(self) -> i64 {
        let bits = |segment: u64, index: u64, height: u8, page: u32| {
            let bits = segment << SEGMENT_SHIFT | index << DOCLIST_INDEX_SHIFT | u64::from(height) << PAGE_BITS | u64::from(page);
            i64::try_from(bits).unwrap_or(i64::MAX)
        };
        match self {
            DataId::Averages => AVERAGES_ID,
            DataId::Structure => STRUCTURE_ID,
            DataId::Leaf { segment, page } => bits(segment.into(), 0, 0, page),
            DataId::DoclistIndex { segment, height, page } => bits(segment.into(), 1, height, page),
            DataId::Tombstones { segment, page } => bits(u64::from(segment) | 1 << 16, 0, 0, page),
            DataId::Other(id) => id,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_round_trip() {
        for id in [
            DataId::Averages,
            DataId::Structure,
            DataId::Leaf { segment: 1, page: 1 },
            DataId::Leaf { segment: 65535, page: 0x7fff_ff00 },
            DataId::DoclistIndex { segment: 3, height: 2, page: 77 },
            DataId::Tombstones { segment: 9, page: 0 },
        ] {
            assert_eq!(DataId::of(id.id()), id);
        }
        assert_eq!(DataId::Leaf { segment: 1, page: 1 }.id(), 137_438_953_473);
        assert_eq!(DataId::of(-5), DataId::Other(-5));
        assert_eq!(DataId::of(11), DataId::Other(11));
    }
}
