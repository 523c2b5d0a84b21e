//! A finished index: the rows of the shadow tables, each table in the order of its key.

#![expect(clippy::arithmetic_side_effects, reason = "computes on counts of its own rows")]

use super::Options;
use super::spool::{Reader, Spool};
use crate::bytes::put_varint;
use crate::error::Result;
use crate::fts5::segment::structure::{Averages, Deletes, Level, Segment, Structure};
use crate::fts5::segment::writer::SegmentSink;
use crate::fts5::segment::{AVERAGES_ID, DataId, STRUCTURE_ID};
use crate::ids::{narrow, wide};

/// The one segment has this number.
pub const SEGMENT: u16 = 1;
/// The origin that all rows of a `contentless_delete=1` table get.
const ORIGIN: u64 = 1;
/// About as many leaves FTS5 writes to a segment of level 0 (its hash table takes 1 MiB).
const LEAVES_OF_LEVEL_0: u32 = 256;

/// Gathers the rows of a segment.
#[derive(Debug)]
pub struct Pieces {
    leaves: Spool,
    doclist_indexes: Vec<(i64, Vec<u8>)>,
    idx: Spool,
}

impl Pieces {
    pub fn new(options: &Options) -> Pieces {
        Pieces {
            leaves: Spool::new(&options.temp_folder, options.memory / 8),
            doclist_indexes: Vec::new(),
            idx: Spool::new(&options.temp_folder, options.memory / 32),
        }
    }

    pub fn built(mut self, leaves: u32, averages: Averages, docsize: Option<Spool>, with_deletes: bool, cookie: u32) -> Result<Built> {
        let structure = structure(leaves, averages.rows, with_deletes, cookie);
        self.doclist_indexes.sort_unstable_by_key(|(id, _)| *id);
        Ok(Built {
            data: DataRows {
                averages: averages.write(),
                structure: structure.write(),
                leaf_count: leaves,
                leaves: self.leaves.into_reader()?,
                doclist_indexes: self.doclist_indexes,
            },
            idx: IdxRows { rows: self.idx.into_reader()? },
            docsize: match docsize {
                Some(spool) => Some(DocsizeRows { rows: spool.into_reader()?, with_deletes }),
                None => None,
            },
            averages,
            leaves,
        })
    }
}

impl SegmentSink for Pieces {
    fn data(&mut self, id: DataId, block: &[u8]) -> Result<()> {
        if let DataId::Leaf { .. } = id {
            let tail = self.leaves.tail();
            put_varint(tail, wide(block.len()));
            tail.extend_from_slice(block);
            self.leaves.settle()
        } else {
            self.doclist_indexes.push((id.id(), block.to_vec()));
            Ok(())
        }
    }

    fn idx(&mut self, term: &[u8], page: i64) -> Result<()> {
        let tail = self.idx.tail();
        put_varint(tail, wide(term.len()));
        tail.extend_from_slice(term);
        put_varint(tail, u64::try_from(page).unwrap_or(0));
        self.idx.settle()
    }
}

/// The structure record of an index in one segment, on the level that FTS5 would have merged it to.
fn structure(leaves: u32, rows: u64, with_deletes: bool, cookie: u32) -> Structure {
    let mut levels = Vec::new();
    if leaves > 0 {
        let mut size = LEAVES_OF_LEVEL_0;
        while size < leaves && size < u32::MAX / 4 {
            levels.push(Level::default());
            size *= 4;
        }
        let deletes = if with_deletes {
            Deletes { lowest_origin: ORIGIN, highest_origin: ORIGIN, rows, ..Deletes::default() }
        } else {
            Deletes::default()
        };
        levels.push(Level { merging: 0, segments: vec![Segment { id: SEGMENT, first: 1, last: leaves, deletes }] });
    }
    Structure { cookie, with_deletes, writes: leaves.into(), levels }
}

/// The rows of the shadow tables of a finished index.
#[derive(Debug)]
pub struct Built {
    /// `%_data(id, block)`.
    pub data: DataRows,
    /// `%_idx(segid, term, pgno)`.
    pub idx: IdxRows,
    /// `%_docsize(id, sz)` or `(id, sz, origin)`; `None` for tables declared without.
    pub docsize: Option<DocsizeRows>,
    /// Rows and tokens.
    pub averages: Averages,
    /// Leaves of the segment.
    pub leaves: u32,
}

/// Rows of `%_data`.
#[derive(Debug)]
pub struct DataRows {
    averages: Vec<u8>,
    structure: Vec<u8>,
    leaf_count: u32,
    leaves: Reader,
    doclist_indexes: Vec<(i64, Vec<u8>)>,
}

impl DataRows {
    /// Gives every row to `each`, in order of `id`: id (an INTEGER PRIMARY KEY) and block (a BLOB).
    ///
    /// # Errors
    /// What `each` or temporary files raise.
    pub fn for_each(mut self, mut each: impl FnMut(i64, &[u8]) -> Result<()>) -> Result<()> {
        each(AVERAGES_ID, &self.averages)?;
        each(STRUCTURE_ID, &self.structure)?;
        for page in 1..=self.leaf_count {
            let len = narrow(self.leaves.varint()?.unwrap_or(0));
            each(DataId::Leaf { segment: SEGMENT, page }.id(), self.leaves.bytes(len)?)?;
        }
        for (id, block) in &self.doclist_indexes {
            each(*id, block)?;
        }
        Ok(())
    }
}

/// Rows of `%_idx`, a WITHOUT ROWID table with the key (segid, term).
#[derive(Debug)]
pub struct IdxRows {
    rows: Reader,
}

impl IdxRows {
    /// Gives every row to `each`, in order of the key: segid (INTEGER), term (a BLOB, also when it is empty), pgno (INTEGER).
    ///
    /// # Errors
    /// What `each` or temporary files raise.
    pub fn for_each(mut self, mut each: impl FnMut(i64, &[u8], i64) -> Result<()>) -> Result<()> {
        let mut term = Vec::new();
        while let Some(len) = self.rows.varint()? {
            term.clear();
            term.extend_from_slice(self.rows.bytes(narrow(len))?);
            let page = self.rows.varint()?.unwrap_or(0);
            each(SEGMENT.into(), &term, i64::try_from(page).unwrap_or(0))?;
        }
        Ok(())
    }
}

/// Rows of `%_docsize`.
#[derive(Debug)]
pub struct DocsizeRows {
    rows: Reader,
    with_deletes: bool,
}

impl DocsizeRows {
    /// Gives every row to `each`, in order of `id`: id (an INTEGER PRIMARY KEY), sz (a BLOB) and, for tables with
    /// `contentless_delete=1` only, origin (INTEGER).
    ///
    /// # Errors
    /// What `each` or temporary files raise.
    pub fn for_each(mut self, mut each: impl FnMut(i64, &[u8], Option<i64>) -> Result<()>) -> Result<()> {
        let origin = self.with_deletes.then_some(i64::try_from(ORIGIN).unwrap_or(1));
        while let Some(id) = self.rows.varint()? {
            let len = narrow(self.rows.varint()?.unwrap_or(0));
            each(i64::from_ne_bytes(id.to_ne_bytes()), self.rows.bytes(len)?, origin)?;
        }
        Ok(())
    }
}
