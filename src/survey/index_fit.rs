//! What the comparison of an index with its table comes to.

use crate::ids::{ObjectId, PageNo};

/// Whether an index agrees with its table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum IndexFit {
    /// Its table is not there, or its entries cannot be computed.
    #[default]
    Unknown,
    /// Every row has its entry and every entry its row.
    Equal,
    /// They differ.
    Differs {
        /// Rows without their entry.
        missing: u64,
        /// Entries without their row.
        surplus: u64,
        /// The rows without their entry that are named one by one, in tree order.
        absent: Vec<Absent>,
        /// Entries whose rowid no row has, by rowid.
        gone: Vec<GoneEntry>,
        /// The same in a table without rowids: entries whose primary key no row has.
        gone_keys: Vec<GoneKey>,
    },
}

/// A row that an index has no entry for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Absent {
    /// The page of its cell.
    pub page: PageNo,
    /// The cell.
    pub cell: u16,
    /// Its rowid.
    pub rowid: Option<i64>,
    /// The fingerprint of its values in the index, without the rowid.
    pub key: u64,
    /// The index has the entry, but not once more: another row is the same.
    pub copied: bool,
}

/// An entry whose rowid no row has: what is left of a row that was lost or deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct GoneEntry {
    /// The rowid that it names.
    pub rowid: i64,
    /// The fingerprint of its other values.
    pub key: u64,
    /// The page of the entry.
    pub page: PageNo,
    /// The cell of the entry.
    pub cell: u16,
}

/// An entry whose primary key no row of its WITHOUT ROWID table has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct GoneKey {
    /// The fingerprint of the primary key.
    pub row: u64,
    /// The page of the entry.
    pub page: PageNo,
    /// The cell of the entry.
    pub cell: u16,
}

/// Rows and entries of one index that are named one by one.
pub const NAMED: usize = 10_000;

/// A row that one or more indexes contradict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dispute {
    /// The table.
    pub table: ObjectId,
    /// The page and cell of the row.
    pub place: (PageNo, u16),
    /// Its rowid; `None` in a WITHOUT ROWID table.
    pub rowid: Option<i64>,
    /// The indexes, and the place of their entries.
    pub entries: Vec<(ObjectId, PageNo, u16)>,
    /// Whether the indexes are the better witness: two of them speak against the row, or its text is none.
    pub against_row: bool,
}
