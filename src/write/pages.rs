//! Pages of the file that is written: numbers handed out in order, one buffered output, the pointer map beside it.

use std::collections::BTreeMap;
use std::io::{Seek, SeekFrom, Write};
use std::path::PathBuf;

use crate::error::{Error, Result};
use crate::format::ptrmap::{PtrmapGeometry, PtrmapKind};
use crate::ids::{PageNo, PageSize, idx, narrow, wide};

/// The last page number that SQLite uses (file format document, section 1.3).
const LAST_PAGE: u32 = 0xffff_fffe;

/// Bytes gathered before they go to the file.
const BUFFER: usize = 1 << 20;

/// A pointer-map page of which not all entries are known yet.
#[derive(Debug)]
struct OpenMap {
    image: Vec<u8>,
    missing: u32,
}

/// Hands out page numbers and writes page images, mostly one behind the other.
///
/// A page gets its number when it is complete, so that the output is sequential. Only reserved roots, pointer-map pages
/// and page 1 are written out of turn. Pages that are handed out and never written would read as zeros.
#[derive(Debug)]
pub(crate) struct Pages<W> {
    out: W,
    path: PathBuf,
    size: PageSize,
    usable: u32,
    last: u32,
    lock_page: PageNo,
    map: Option<PtrmapGeometry>,
    open_maps: BTreeMap<u32, OpenMap>,
    checksums: bool,
    buffer: Vec<u8>,
    buffer_at: u64,
    position: Option<u64>,
    scratch: Vec<u8>,
    overflow: Vec<u8>,
    /// Overflow pages written.
    pub(crate) overflow_pages: u64,
    /// Pointer-map pages written.
    pub(crate) map_pages: u64,
}

impl<W: Write + Seek> Pages<W> {
    pub(crate) fn new(out: W, path: PathBuf, size: PageSize, usable: u32, mapped: bool, checksums: bool) -> Pages<W> {
        let lock_page = size.lock_byte_page();
        Pages {
            out,
            path,
            size,
            usable,
            last: 1,
            lock_page,
            map: mapped.then(|| PtrmapGeometry::new(usable, lock_page)),
            open_maps: BTreeMap::new(),
            checksums,
            buffer: Vec::with_capacity(BUFFER.max(size.len())),
            buffer_at: 0,
            position: None,
            scratch: Vec::new(),
            overflow: vec![0; size.len()],
            overflow_pages: 0,
            map_pages: 0,
        }
    }

    /// Lets numbering go on behind page `last`, for tests of large files; the pages before stay zero.
    pub(crate) fn skip_to(&mut self, last: u32) {
        self.last = self.last.max(last);
        // Entries of the pages to come may belong to a map page that was passed over.
        let map_page = PageNo::new(self.last).and_then(PageNo::next).and_then(|no| self.map?.map_page(no));
        if let Some(no) = map_page.filter(|no| no.get() <= self.last) {
            let image = vec![0; self.size.len()];
            self.open_maps.entry(no.get()).or_insert(OpenMap { image, missing: u32::MAX });
        }
    }

    /// The last page handed out, which is the number of pages in the file.
    pub(crate) fn last(&self) -> u32 {
        self.last
    }

    /// Whether there is a pointer map to fill.
    pub(crate) fn mapped(&self) -> bool {
        self.map.is_some()
    }

    /// The next page. The lock-byte page and pointer-map pages are passed over.
    pub(crate) fn alloc(&mut self) -> Result<PageNo> {
        loop {
            let next = self.last.checked_add(1).filter(|&n| n <= LAST_PAGE).and_then(PageNo::new);
            let Some(no) = next else {
                return Err(Error::Limit { what: format!("{}: a database has at most {LAST_PAGE} pages", self.path.display()) });
            };
            self.last = no.get();
            if no == self.lock_page {
                continue;
            }
            if self.map.is_some_and(|m| m.is_map(no)) {
                let missing = self.covered(no);
                self.open_maps.insert(no.get(), OpenMap { image: vec![0; self.size.len()], missing });
                self.map_pages += 1;
                continue;
            }
            return Ok(no);
        }
    }

    /// How many pages have their entry on pointer-map page `map`.
    fn covered(&self, map: PageNo) -> u32 {
        let span = self.usable / 5 + 1;
        let first = (map.get() - 2) / span * span + 2;
        let last = first.saturating_add(span - 1);
        let lock = self.lock_page.get();
        last.saturating_sub(map.get()) - u32::from(lock > map.get() && lock <= last)
    }

    /// Notes in the pointer map what a page is and who its parent is (0: none). Each page is noted once.
    pub(crate) fn note(&mut self, page: PageNo, kind: PtrmapKind, parent: u32) -> Result<()> {
        let Some(map) = self.map else { return Ok(()) };
        let (Some(at), Some(map_page)) = (map.entry_at(page), map.map_page(page)) else { return Ok(()) };
        let Some(open) = self.open_maps.get_mut(&map_page.get()) else { return Ok(()) };
        if let Some([place, rest @ ..]) = open.image.get_mut(at..at + 5) {
            *place = kind.byte();
            rest.copy_from_slice(&parent.to_be_bytes());
        }
        open.missing = open.missing.saturating_sub(1);
        if open.missing == 0
            && let Some(full) = self.open_maps.remove(&map_page.get())
        {
            self.put(map_page, &full.image)?;
        }
        Ok(())
    }

    /// Writes the image of a page, which has the length of a page.
    pub(crate) fn put(&mut self, no: PageNo, image: &[u8]) -> Result<()> {
        debug_assert_eq!(image.len(), self.size.len());
        let at = no.file_range(self.size).start;
        let end = self.buffer_at + wide(self.buffer.len());
        if at >= end {
            if at > end {
                self.flush()?;
                self.buffer_at = at;
            }
            let start = self.buffer.len();
            self.buffer.extend_from_slice(image);
            if self.checksums {
                stamp(self.buffer.get_mut(start..).unwrap_or_default());
            }
            if self.buffer.len() >= BUFFER {
                self.flush()?;
            }
            return Ok(());
        }
        if at >= self.buffer_at {
            let start = narrow(at - self.buffer_at);
            if let Some(place) = self.buffer.get_mut(start..start + image.len()) {
                place.copy_from_slice(image);
                if self.checksums {
                    stamp(place);
                }
            }
            return Ok(());
        }
        self.scratch.clear();
        self.scratch.extend_from_slice(image);
        if self.checksums {
            stamp(&mut self.scratch);
        }
        self.position = None;
        self.out.seek(SeekFrom::Start(at)).and_then(|_| self.out.write_all(&self.scratch)).map_err(|e| Error::io(&self.path, "write", e))
    }

    fn flush(&mut self) -> Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let failed = |e| Error::io(&self.path, "write", e);
        if self.position != Some(self.buffer_at) {
            self.out.seek(SeekFrom::Start(self.buffer_at)).map_err(failed)?;
        }
        self.out.write_all(&self.buffer).map_err(failed)?;
        self.buffer_at += wide(self.buffer.len());
        self.position = Some(self.buffer_at);
        self.buffer.clear();
        Ok(())
    }

    /// Writes what is left of a payload as an overflow chain and gives its first page. The pointer-map entry of that page
    /// is left to whoever places the cell.
    pub(crate) fn overflow(&mut self, rest: &mut Pieces<'_>) -> Result<PageNo> {
        let chunk = idx(self.usable) - 4;
        let head = self.alloc()?;
        let mut no = head;
        let mut before = None;
        let mut image = std::mem::take(&mut self.overflow);
        loop {
            let n = rest.left().min(chunk);
            let next = if rest.left() > n { Some(self.alloc()?) } else { None };
            if let Some((link, body)) = image.split_first_chunk_mut::<4>() {
                *link = next.map_or(0, PageNo::get).to_be_bytes();
                if let Some((used, free)) = body.split_at_mut_checked(n) {
                    rest.copy_to(used);
                    free.fill(0);
                }
            }
            self.put(no, &image)?;
            self.overflow_pages += 1;
            if let Some(parent) = before {
                self.note(no, PtrmapKind::Overflow2, parent)?;
            }
            match next {
                Some(next) => {
                    before = Some(no.get());
                    no = next;
                }
                None => break,
            }
        }
        self.overflow = image;
        Ok(head)
    }

    /// Writes everything that is still in memory and gives the output back. No sync to the device.
    pub(crate) fn finish(mut self) -> Result<W> {
        self.flush()?;
        for (no, map) in std::mem::take(&mut self.open_maps) {
            if let Some(no) = PageNo::new(no) {
                self.put(no, &map.image)?;
            }
        }
        self.flush()?;
        self.out.flush().map_err(|e| Error::io(&self.path, "write", e))?;
        Ok(self.out)
    }
}

/// A payload in several slices, read front to back.
#[derive(Debug)]
pub(crate) struct Pieces<'a> {
    pieces: &'a [&'a [u8]],
    offset: usize,
    left: usize,
}

impl<'a> Pieces<'a> {
    pub(crate) fn new(pieces: &'a [&'a [u8]]) -> Pieces<'a> {
        Pieces { pieces, offset: 0, left: pieces.iter().fold(0, |n, p| n.saturating_add(p.len())) }
    }

    /// Bytes not read yet.
    pub(crate) fn left(&self) -> usize {
        self.left
    }

    /// Fills `place` with the next bytes; what lies behind the end stays as it is.
    pub(crate) fn copy_to(&mut self, mut place: &mut [u8]) {
        while !place.is_empty() {
            let Some((first, rest)) = self.pieces.split_first() else { return };
            let piece = first.get(self.offset..).unwrap_or_default();
            let n = piece.len().min(place.len());
            if let (Some(from), Some((to, behind))) = (piece.get(..n), place.split_at_mut_checked(n)) {
                to.copy_from_slice(from);
                place = behind;
            } else {
                return;
            }
            self.left = self.left.saturating_sub(n);
            if n == piece.len() {
                self.pieces = rest;
                self.offset = 0;
            } else {
                self.offset += n;
            }
        }
    }
}

/// Writes the checksum of SQLite's checksum VFS into the last 8 bytes of a page that reserves them: two running sums over
/// pairs of little-endian words, each sum taking in the other.
pub(crate) fn stamp(page: &mut [u8]) {
    let Some((body, tail)) = page.split_last_chunk_mut::<8>() else { return };
    let (mut s1, mut s2) = (0_u32, 0_u32);
    for [a, b, c, d, e, f, g, h] in body.as_chunks::<8>().0 {
        s1 = s1.wrapping_add(u32::from_le_bytes([*a, *b, *c, *d])).wrapping_add(s2);
        s2 = s2.wrapping_add(u32::from_le_bytes([*e, *f, *g, *h])).wrapping_add(s1);
    }
    let [a, b, c, d] = s1.to_le_bytes();
    let [e, f, g, h] = s2.to_le_bytes();
    *tail = [a, b, c, d, e, f, g, h];
}
