//! Index b-trees, which are also the trees of WITHOUT ROWID tables: every entry stands once, on a leaf or as a divider.

use std::io::{Seek, Write};
use std::mem;

use crate::bytes::{put_varint, varint};
use crate::error::{Error, Result};
use crate::format::PageKind;
use crate::ids::{RootPage, idx, wide};

use super::DatabaseWriter;
use super::pack::Packing;
use super::pages::Pieces;
use super::tree::{Levels, TreeSummary, long_cell};

/// Builds an index b-tree from entries in key order. Order is the caller's: the builder does not know the collation.
#[derive(Debug)]
pub struct IndexTree {
    root: RootPage,
    leaf: Packing,
    /// The full leaf before, and the divider behind it; written when the open leaf has an entry.
    closed: Option<(Packing, Vec<u8>)>,
    spare: Option<Packing>,
    levels: Levels,
    entries: u64,
    leaves: u64,
    overflow: u64,
    max_local: usize,
    head: Vec<u8>,
    cell: Vec<u8>,
}

impl IndexTree {
    /// Begins an index at a reserved root.
    #[must_use]
    pub fn new<W: Write + Seek>(db: &DatabaseWriter<W>, root: RootPage) -> IndexTree {
        IndexTree {
            root,
            leaf: db.packing(PageKind::IndexLeaf),
            closed: None,
            spare: None,
            levels: Levels::new(PageKind::IndexInterior),
            entries: 0,
            leaves: 0,
            overflow: 0,
            max_local: idx(db.split().max_local(PageKind::IndexLeaf)),
            head: Vec::with_capacity(12),
            cell: Vec::new(),
        }
    }

    /// Entries so far.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// Adds an entry whose record is the concatenation of `payload`.
    ///
    /// # Errors
    /// I/O; `Limit` for a payload over 2^31 - 1 bytes or a full file.
    #[inline]
    pub fn push<W: Write + Seek>(&mut self, db: &mut DatabaseWriter<W>, payload: &[&[u8]]) -> Result<()> {
        let mut pieces = Pieces::new(payload);
        let total = pieces.left();
        self.head.clear();
        put_varint(&mut self.head, wide(total));
        let mut cell = mem::take(&mut self.cell);
        cell.clear();
        if total <= self.max_local {
            cell.extend_from_slice(&self.head);
            for piece in payload {
                cell.extend_from_slice(piece);
            }
        } else {
            cell = long_cell(db, PageKind::IndexLeaf, &self.head, &mut pieces, &mut self.overflow)?;
        }
        let placed = self.place(db, &cell);
        self.cell = cell;
        placed
    }

    /// Adds an entry as an encoded leaf cell without an overflow chain: payload length, payload. Bytes behind the payload
    /// are ignored. An interior cell is such a cell behind its child pointer.
    ///
    /// # Errors
    /// I/O; `Usage` when the bytes are no such cell.
    #[inline]
    pub fn push_cell<W: Write + Seek>(&mut self, db: &mut DatabaseWriter<W>, cell: &[u8]) -> Result<()> {
        let whole = varint(cell, 0).and_then(|(payload, n)| {
            let len = usize::try_from(payload).ok().filter(|&len| len <= self.max_local)?;
            cell.get(..n + len)
        });
        let Some(cell) = whole else {
            return Err(Error::Usage { what: "not an index cell that lies on its page as a whole".into() });
        };
        self.place(db, cell)
    }

    #[inline]
    fn place<W: Write + Seek>(&mut self, db: &mut DatabaseWriter<W>, cell: &[u8]) -> Result<()> {
        self.entries += 1;
        if !self.leaf.push(&[cell]) {
            // A page without room follows one that was written: an empty leaf takes any cell.
            let fresh = self.spare.take().unwrap_or_else(|| db.packing(PageKind::IndexLeaf));
            let full = mem::replace(&mut self.leaf, fresh);
            self.closed = Some((full, cell.to_vec()));
            return Ok(());
        }
        if self.closed.is_some() { self.write_closed(db) } else { Ok(()) }
    }

    #[cold]
    fn write_closed<W: Write + Seek>(&mut self, db: &mut DatabaseWriter<W>) -> Result<()> {
        if let Some((mut page, divider)) = self.closed.take() {
            let no = db.put_node(&mut page)?;
            self.leaves += 1;
            page.clear();
            self.spare = Some(page);
            self.levels.add(db, no, divider)?;
        }
        Ok(())
    }

    /// Writes what is left and the root.
    ///
    /// # Errors
    /// I/O; `Limit` for a full file; `Usage` when the root was not reserved or has a tree already.
    pub fn finish<W: Write + Seek>(mut self, db: &mut DatabaseWriter<W>) -> Result<TreeSummary> {
        if self.root.0 == crate::ids::PageNo::ONE {
            return Err(Error::Usage { what: "page 1 holds the schema table, not an index".into() });
        }
        if self.leaf.cells() == 0
            && let Some((before, divider)) = self.closed.as_mut()
            && let Some(tail) = before.cells().checked_sub(1)
        {
            // The last leaf must hold an entry: it takes the divider, and the entry before becomes the divider.
            self.leaf.push(&[divider]);
            *divider = before.entry(tail, db.split()).to_vec();
            before.pop();
        }
        self.write_closed(db)?;
        self.leaves += 1;
        if self.levels.is_empty() {
            db.put_root(self.root, &mut self.leaf)?;
        } else {
            let no = db.put_node(&mut self.leaf)?;
            self.levels.finish(db, no, self.root)?;
        }
        Ok(TreeSummary {
            root: self.root,
            entries: self.entries,
            leaf_pages: self.leaves,
            interior_pages: self.levels.pages,
            overflow_pages: self.overflow,
            depth: self.levels.depth(),
        })
    }
}
