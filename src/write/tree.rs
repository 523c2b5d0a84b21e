//! Table b-trees, and the interior levels that table and index trees share, built from their leaves upwards.

use std::io::{Seek, Write};
use std::mem;

use crate::bytes::{put_varint, put_varint_i64, varint, varint_i64};
use crate::error::{Error, Result};
use crate::format::PageKind;
use crate::ids::{PageNo, RootPage, idx, small, wide};

use super::DatabaseWriter;
use super::pack::Packing;
use super::pages::Pieces;

/// The largest payload that SQLite knows.
const MAX_PAYLOAD: u64 = 0x7fff_ffff;

/// What a finished tree consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeSummary {
    /// Its root.
    pub root: RootPage,
    /// Rows of a table, entries of an index.
    pub entries: u64,
    /// Leaf pages.
    pub leaf_pages: u64,
    /// Interior pages.
    pub interior_pages: u64,
    /// Pages of overflow chains.
    pub overflow_pages: u64,
    /// Levels, 1 for a tree that is one page.
    pub depth: u32,
}

/// The interior pages of a tree: one open page a level, and the full one before it.
///
/// A full page stays in memory until the page behind it has a cell, so that the last page of a level is never left
/// without one: at the end it takes the last cell of the page before.
#[derive(Debug)]
pub(crate) struct Levels {
    kind: PageKind,
    list: Vec<Level>,
    spare: Vec<Packing>,
    pub(crate) pages: u64,
}

#[derive(Debug)]
struct Level {
    open: Packing,
    closed: Option<Closed>,
}

/// A full page and the divider that goes up behind it.
#[derive(Debug)]
struct Closed {
    page: Packing,
    divider: Vec<u8>,
}

impl Levels {
    pub(crate) fn new(kind: PageKind) -> Levels {
        Levels { kind, list: Vec::new(), spare: Vec::new(), pages: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Levels including that of the leaves.
    pub(crate) fn depth(&self) -> u32 {
        small(self.list.len()).saturating_add(1)
    }

    fn page<W: Write + Seek>(&mut self, db: &DatabaseWriter<W>) -> Packing {
        self.spare.pop().unwrap_or_else(|| db.packing(self.kind))
    }

    /// Adds a child page that has a sibling behind it, with the divider between the two.
    pub(crate) fn add<W: Write + Seek>(&mut self, db: &mut DatabaseWriter<W>, child: PageNo, divider: Vec<u8>) -> Result<()> {
        self.add_at(db, 0, child, divider)
    }

    fn add_at<W: Write + Seek>(&mut self, db: &mut DatabaseWriter<W>, level: usize, child: PageNo, divider: Vec<u8>) -> Result<()> {
        let (mut level, mut child, mut divider) = (level, child, divider);
        loop {
            if level >= self.list.len() {
                let open = self.page(db);
                self.list.push(Level { open, closed: None });
            }
            let fresh = self.page(db);
            let Some(here) = self.list.get_mut(level) else { return Ok(()) };
            if here.open.push(&[&child.get().to_be_bytes(), &divider]) {
                self.spare.push(fresh);
                let Some(Closed { mut page, divider: up }) = here.closed.take() else { return Ok(()) };
                child = db.put_node(&mut page)?;
                self.pages += 1;
                page.clear();
                self.spare.push(page);
                divider = up;
                level += 1;
            } else {
                let mut page = mem::replace(&mut here.open, fresh);
                page.right = child.get();
                here.closed = Some(Closed { page, divider });
                return Ok(());
            }
        }
    }

    /// Adds the last child and closes all levels; the topmost page becomes the root.
    pub(crate) fn finish<W: Write + Seek>(&mut self, db: &mut DatabaseWriter<W>, last: PageNo, root: RootPage) -> Result<()> {
        let mut child = last;
        let mut level = 0;
        loop {
            let count = self.list.len();
            let Some(here) = self.list.get_mut(level) else { return Ok(()) };
            if here.open.cells() == 0
                && let Some(before) = here.closed.as_mut()
            {
                // The open page gets the last child of the page before and the divider behind it.
                let Some(tail) = before.page.cells().checked_sub(1) else { return Ok(()) };
                here.open.push(&[&before.page.right.to_be_bytes(), &before.divider]);
                before.divider = before.page.entry(tail, db.split()).to_vec();
                before.page.right = before.page.child(tail);
                before.page.pop();
            }
            here.open.right = child.get();
            if let Some(Closed { mut page, divider }) = here.closed.take() {
                let no = db.put_node(&mut page)?;
                self.pages += 1;
                self.add_at(db, level + 1, no, divider)?;
            } else if level + 1 == count {
                self.pages += 1;
                let mut top = mem::replace(&mut here.open, db.packing(self.kind));
                return self.put_root(db, root, &mut top);
            }
            let Some(here) = self.list.get_mut(level) else { return Ok(()) };
            child = db.put_node(&mut here.open)?;
            self.pages += 1;
            level += 1;
        }
    }

    /// Writes the topmost page as the root. Page 1 is shorter by the database header: what does not fit there goes to one
    /// or two pages below it.
    pub(crate) fn put_root<W: Write + Seek>(&mut self, db: &mut DatabaseWriter<W>, root: RootPage, top: &mut Packing) -> Result<()> {
        if db.fits_root(root, top) {
            return db.put_root(root, top);
        }
        let mut up = db.packing(PageKind::TableInterior);
        let leaf = top.kind() == PageKind::TableLeaf;
        let half = top.cells() / 2;
        if half > 0 {
            let divider = if leaf { half - 1 } else { half };
            let mut left = db.packing(top.kind());
            let mut right = db.packing(top.kind());
            for i in 0..half {
                left.push(&[top.cell(i)]);
            }
            for i in divider + 1..top.cells() {
                right.push(&[top.cell(i)]);
            }
            left.right = if leaf { 0 } else { top.child(half) };
            right.right = top.right;
            let no = db.put_node(&mut left)?;
            up.push(&[&no.get().to_be_bytes(), top.entry(divider, db.split())]);
            up.right = db.put_node(&mut right)?.get();
        } else {
            // SQLite too lets page 1, and only page 1, be an interior page without a cell.
            up.right = db.put_node(top)?.get();
        }
        self.pages += if leaf { 1 } else { 2 };
        self.list.push(Level { open: db.packing(PageKind::TableInterior), closed: None });
        db.put_root(root, &mut up)
    }
}

/// Builds a table b-tree from rows in ascending order of their rowids.
///
/// Several trees may be open at once; their pages then lie mixed in the file.
#[derive(Debug)]
pub struct TableTree {
    root: RootPage,
    leaf: Packing,
    levels: Levels,
    last: Option<i64>,
    rows: u64,
    leaves: u64,
    overflow: u64,
    max_local: usize,
    head: Vec<u8>,
}

impl TableTree {
    /// Begins a table at a reserved root, or at page 1 for `sqlite_schema`.
    #[must_use]
    pub fn new<W: Write + Seek>(db: &DatabaseWriter<W>, root: RootPage) -> TableTree {
        TableTree {
            root,
            leaf: db.packing(PageKind::TableLeaf),
            levels: Levels::new(PageKind::TableInterior),
            last: None,
            rows: 0,
            leaves: 0,
            overflow: 0,
            max_local: idx(db.split().max_local(PageKind::TableLeaf)),
            head: Vec::with_capacity(24),
        }
    }

    /// Rows so far.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Adds a row. The payload is the concatenation of `payload`, copied as it is; what does not fit on the page goes to
    /// an overflow chain that is written at once.
    ///
    /// # Errors
    /// I/O; `Limit` for a payload over 2^31 - 1 bytes or a full file; `Usage` when the rowid is not above the one before.
    #[inline]
    pub fn push<W: Write + Seek>(&mut self, db: &mut DatabaseWriter<W>, rowid: i64, payload: &[&[u8]]) -> Result<()> {
        self.check_order(rowid)?;
        let mut pieces = Pieces::new(payload);
        let total = pieces.left();
        self.head.clear();
        put_varint(&mut self.head, wide(total));
        put_varint_i64(&mut self.head, rowid);
        if total <= self.max_local {
            let len = self.head.len() + total;
            if let Some(place) = self.leaf.place(len) {
                fill(place, &self.head, &mut pieces);
            } else {
                self.turn(db)?;
                if let Some(place) = self.leaf.place(len) {
                    fill(place, &self.head, &mut pieces);
                }
            }
        } else {
            self.push_long(db, &mut pieces)?;
        }
        self.last = Some(rowid);
        self.rows += 1;
        Ok(())
    }

    fn push_long<W: Write + Seek>(&mut self, db: &mut DatabaseWriter<W>, pieces: &mut Pieces<'_>) -> Result<()> {
        let cell = long_cell(db, PageKind::TableLeaf, &self.head, pieces, &mut self.overflow)?;
        if !self.leaf.push(&[&cell]) {
            self.turn(db)?;
            self.leaf.push(&[&cell]);
        }
        Ok(())
    }

    /// Adds a row as an encoded cell without an overflow chain: payload length, rowid, payload, taken over from a page with
    /// the same usable size (a longer one may also come from a page where it had no chain, if it fits a page here).
    /// Bytes behind the payload are ignored.
    ///
    /// # Errors
    /// I/O; `Usage` when the bytes are no such cell or the rowid is not above the one before.
    #[inline]
    pub fn push_cell<W: Write + Seek>(&mut self, db: &mut DatabaseWriter<W>, cell: &[u8]) -> Result<()> {
        let whole = varint(cell, 0).and_then(|(payload, a)| {
            let (rowid, b) = varint_i64(cell, a)?;
            let len = usize::try_from(payload).ok().filter(|&n| n <= self.max_local)?;
            Some((rowid, cell.get(..a + b + len)?))
        });
        let Some((rowid, cell)) = whole else {
            return Err(Error::Usage { what: "not a table leaf cell that lies on its page as a whole".into() });
        };
        self.check_order(rowid)?;
        if !self.leaf.push(&[cell]) {
            self.turn(db)?;
            self.leaf.push(&[cell]);
        }
        self.last = Some(rowid);
        self.rows += 1;
        Ok(())
    }

    #[inline]
    fn check_order(&self, rowid: i64) -> Result<()> {
        match self.last {
            Some(last) if last >= rowid => Err(Error::Usage { what: format!("row {rowid} comes behind row {last}") }),
            _ => Ok(()),
        }
    }

    /// Writes the full leaf and begins the next.
    #[cold]
    fn turn<W: Write + Seek>(&mut self, db: &mut DatabaseWriter<W>) -> Result<()> {
        let no = db.put_node(&mut self.leaf)?;
        self.leaf.clear();
        self.leaves += 1;
        let mut divider = Vec::with_capacity(9);
        put_varint_i64(&mut divider, self.last.unwrap_or(i64::MIN));
        self.levels.add(db, no, divider)
    }

    /// Writes what is left and the root.
    ///
    /// # Errors
    /// I/O; `Limit` for a full file; `Usage` when the root was not reserved or has a tree already.
    pub fn finish<W: Write + Seek>(mut self, db: &mut DatabaseWriter<W>) -> Result<TreeSummary> {
        self.leaves += 1;
        if self.levels.is_empty() {
            self.levels.put_root(db, self.root, &mut self.leaf)?;
        } else {
            let no = db.put_node(&mut self.leaf)?;
            self.levels.finish(db, no, self.root)?;
        }
        // A table of one leaf that page 1 had no room for has become two leaves, or one below an interior page.
        let halves = u64::from(self.leaves == 1 && self.levels.pages > 0 && self.leaf.cells() > 1);
        Ok(TreeSummary {
            root: self.root,
            entries: self.rows,
            leaf_pages: self.leaves + halves,
            interior_pages: self.levels.pages,
            overflow_pages: self.overflow,
            depth: self.levels.depth(),
        })
    }
}

#[inline]
fn fill(place: &mut [u8], head: &[u8], pieces: &mut Pieces<'_>) {
    if let Some((front, body)) = place.split_at_mut_checked(head.len()) {
        front.copy_from_slice(head);
        pieces.copy_to(body);
    }
}

/// The cell of a payload that needs an overflow chain: head, local bytes, number of the first overflow page.
pub(crate) fn long_cell<W: Write + Seek>(
    db: &mut DatabaseWriter<W>,
    kind: PageKind,
    head: &[u8],
    pieces: &mut Pieces<'_>,
    overflow_pages: &mut u64,
) -> Result<Vec<u8>> {
    let total = wide(pieces.left());
    if total > MAX_PAYLOAD {
        return Err(Error::Limit { what: format!("a row of {total} bytes; SQLite reads at most {MAX_PAYLOAD}") });
    }
    let local = idx(db.split().local_len(kind, total));
    let mut cell = vec![0; head.len() + local];
    fill(&mut cell, head, pieces);
    let before = db.pages.overflow_pages;
    let first = db.pages.overflow(pieces)?;
    *overflow_pages += db.pages.overflow_pages - before;
    cell.extend_from_slice(&first.get().to_be_bytes());
    Ok(cell)
}
