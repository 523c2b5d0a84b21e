//! Freelist trunk pages (section 1.5) and overflow pages (section 1.6).

use crate::bytes::u32_at;
use crate::finding::{Code, Defect};
use crate::ids::idx;

/// A freelist trunk page: the next trunk and the leaves it names. Numbers are not judged.
#[derive(Debug, Clone, Copy)]
pub struct Trunk<'a> {
    bytes: &'a [u8],
    /// Next trunk page, 0 for none.
    pub next: u32,
    /// Leaves declared.
    pub count: u32,
}

impl<'a> Trunk<'a> {
    /// Reads a trunk page; `bytes` is the page image, of which `usable` bytes count.
    ///
    /// # Errors
    /// `page-cut` when the two head words are not there, `trunk-count-too-big` when more leaves are declared than fit.
    pub fn read(bytes: &'a [u8], usable: u32) -> Result<Trunk<'a>, Defect> {
        let b = bytes.get(..idx(usable)).unwrap_or(bytes);
        let cut = Defect::new(Code::PageCut, 0, crate::ids::wide(b.len()), u64::from(usable));
        let (Some(next), Some(count)) = (u32_at(b, 0), u32_at(b, 4)) else { return Err(cut) };
        let room = (usable >> 2).saturating_sub(2);
        if count > room {
            return Err(Defect::new(Code::TrunkCountTooBig, 4, u64::from(count), u64::from(room)));
        }
        Ok(Trunk { bytes: b, next, count })
    }

    /// *Indexed*: every item stands for itself. The page numbers of the leaves.
    pub fn leaves(&self) -> impl Iterator<Item = u32> + use<'a> {
        let bytes = self.bytes;
        (0..idx(self.count)).map_while(move |i| u32_at(bytes, (i << 2).saturating_add(8)))
    }
}

/// The head of an overflow page: number of the next page (0 for none) and the payload bytes behind it.
#[must_use]
#[inline]
pub fn overflow_page(bytes: &[u8], usable: u32) -> Option<(u32, &[u8])> {
    let b = bytes.get(..idx(usable)).unwrap_or(bytes);
    Some((u32_at(b, 0)?, b.get(4..)?))
}
