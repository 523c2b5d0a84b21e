//! The payload of a cell, with its overflow chain (section 1.6).

use crate::finding::{Code, Defect};
use crate::format::Cell;
use crate::format::freelist::overflow_page;
use crate::ids::{PageNo, narrow, wide};
use crate::tree::Pages;

/// Reads payloads; keeps its buffers from one cell to the next.
#[derive(Debug, Clone, Default)]
pub struct PayloadReader {
    buffer: Vec<u8>,
    chain: Vec<PageNo>,
    /// Overflow pages read so far, for all cells together.
    followed: u64,
}

/// How often one reader goes over all pages of the file: an overflow page belongs to one cell, so that a reader that has followed
/// so many follows chains that cells share.
const ROUNDS: u64 = 8;

impl PayloadReader {
    /// A reader with empty buffers.
    #[must_use]
    pub fn new() -> PayloadReader {
        PayloadReader::default()
    }

    /// The whole payload of a cell: its local bytes when that is all, else gathered into the reader's buffer.
    /// [`PayloadReader::chain`] then holds the overflow pages.
    ///
    /// # Errors
    /// `payload-size-absurd`, `overflow-outside`, `overflow-loop`, `overflow-ends-early`. [`PayloadReader::partial`] then
    /// holds the bytes up to the break.
    #[inline]
    pub fn read<'s, 'a: 's>(&'s mut self, pages: &Pages<'a>, cell: &Cell<'a>) -> Result<&'s [u8], Defect> {
        self.read_claiming(pages, cell, |_| true)
    }

    /// As [`PayloadReader::read`], asking for each page of the chain whether it may be used. A refused page ends the chain,
    /// which bounds the work of all chains together by the number of pages.
    ///
    /// # Errors
    /// Those of [`PayloadReader::read`], and `overflow-shared` for a refused page.
    #[inline]
    pub fn read_claiming<'s, 'a: 's>(
        &'s mut self,
        pages: &Pages<'a>,
        cell: &Cell<'a>,
        claim: impl FnMut(PageNo) -> bool,
    ) -> Result<&'s [u8], Defect> {
        self.chain.clear();
        let Some(first) = cell.overflow else { return Ok(cell.local) };
        self.gather(pages, cell, first, claim)?;
        Ok(&self.buffer)
    }

    /// The overflow pages of the last cell, in order; empty when it had none.
    #[must_use]
    pub fn chain(&self) -> &[PageNo] {
        &self.chain
    }

    /// What was gathered of the last cell that has an overflow chain, also when the chain broke.
    #[must_use]
    pub fn partial(&self) -> &[u8] {
        &self.buffer
    }

    fn gather(&mut self, pages: &Pages<'_>, cell: &Cell<'_>, first: u32, mut claim: impl FnMut(PageNo) -> bool) -> Result<(), Defect> {
        self.buffer.clear();
        self.buffer.extend_from_slice(cell.local);
        let total = narrow(cell.payload_len);
        let chunk = crate::ids::idx(pages.split.overflow_chunk()).max(1);
        let needed = total.saturating_sub(cell.local.len()).div_ceil(chunk);
        if wide(needed) > u64::from(pages.count()) {
            let held = u64::from(pages.count()).saturating_mul(wide(chunk));
            return Err(Defect::new(Code::PayloadSizeAbsurd, cell.at, cell.payload_len, held));
        }
        let mut next = first;
        while self.buffer.len() < total {
            let missing = wide(total.saturating_sub(self.buffer.len()));
            if next == 0 {
                return Err(Defect::new(Code::OverflowEndsEarly, cell.at, missing, cell.payload_len));
            }
            let no = pages.resolve(next, Code::OverflowOutside, cell.at)?;
            if self.chain.last() == Some(&no) {
                return Err(Defect::new(Code::OverflowLoop, cell.at, u64::from(next), wide(self.chain.len())));
            }
            self.followed = self.followed.saturating_add(1);
            if self.followed > u64::from(pages.count()).saturating_mul(ROUNDS).saturating_add(1000) || !claim(no) {
                let code = if self.chain.contains(&no) { Code::OverflowLoop } else { Code::OverflowShared };
                return Err(Defect::new(code, cell.at, u64::from(next), wide(self.chain.len())));
            }
            let image = pages.image(no).map_or(&[][..], |p| p.bytes);
            let Some((after, body)) = overflow_page(image, pages.usable) else {
                return Err(Defect::new(Code::OverflowEndsEarly, cell.at, missing, cell.payload_len));
            };
            self.chain.push(no);
            let want = total.saturating_sub(self.buffer.len()).min(chunk);
            let Some(part) = body.get(..want) else {
                self.buffer.extend_from_slice(body);
                let missing = wide(total.saturating_sub(self.buffer.len()));
                return Err(Defect::new(Code::OverflowEndsEarly, cell.at, missing, cell.payload_len));
            };
            self.buffer.extend_from_slice(part);
            next = after;
        }
        // The length bounds the chain, so a loop ends all the same; what it gathered is not the row.
        if let Some(twice) = first_repeated(&self.chain) {
            return Err(Defect::new(Code::OverflowLoop, cell.at, u64::from(twice.get()), wide(self.chain.len())));
        }
        Ok(())
    }

    /// The page number behind the last page of the chain just read; 0 in a sound chain.
    #[must_use]
    pub fn behind_chain(&self, pages: &Pages<'_>) -> u32 {
        self.chain.last().and_then(|&no| overflow_page(pages.usable_bytes(no), pages.usable)).map_or(0, |(next, _)| next)
    }

    /// A defect that says the chain goes on although all bytes were read, if it does.
    #[must_use]
    pub fn surplus(&self, pages: &Pages<'_>) -> Option<Defect> {
        let next = self.behind_chain(pages);
        (next != 0).then(|| Defect::new(Code::OverflowTooLong, 0, self.chain.last().map_or(0, |p| u64::from(p.get())), u64::from(next)))
    }
}

fn first_repeated(chain: &[PageNo]) -> Option<PageNo> {
    if chain.len() < 2 || chain.is_sorted_by(|a, b| a < b) {
        return None;
    }
    let mut sorted = chain.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).find_map(|w| match w {
        [a, b] if a == b => Some(*a),
        _ => None,
    })
}
