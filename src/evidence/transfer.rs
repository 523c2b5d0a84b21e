//! A transfer in text mode: a program that took the file for text put a CR before every LF. Nothing is lost by it, and when every
//! LF of a file has a CR before it, and the file without them has the length that its header names, that is what happened.

use super::open::{InputFile, OpenOptions};
use crate::ctx::Ctx;
use crate::error::Result;
use crate::format::DatabaseHeader;
use crate::format::header::MAGIC;
use crate::ids::wide;

/// Line ends between two looks at cancellation.
const STRIDE: u64 = 1 << 16;

/// The file as it was before the transfer.
#[derive(Debug)]
pub(super) struct Undone {
    /// Its bytes, in memory or in an unnamed temporary file.
    pub(super) file: InputFile,
    /// How many CR were taken out.
    pub(super) taken: u64,
}

/// The bytes of a file as they were before a transfer in text mode; `None` when there was none.
///
/// # Errors
/// Cancellation; a temporary file that cannot be written.
pub(super) fn undo(input: &InputFile, ctx: &Ctx, options: &OpenOptions) -> Result<Option<Undone>> {
    let bytes = input.bytes();
    let Some(taken) = line_ends(bytes, ctx)? else { return Ok(None) };
    let mut head = Vec::new();
    for piece in Pieces::of(bytes.get(..4096).unwrap_or(bytes)) {
        head.extend_from_slice(piece);
    }
    let Some(header) = DatabaseHeader::read(&head).ok().filter(DatabaseHeader::magic_ok) else { return Ok(None) };
    let Some(size) = header.page_size().map(|s| u64::from(s.get())) else { return Ok(None) };
    let (len, as_named) = (wide(bytes.len()), u64::from(header.page_count).saturating_mul(size));
    let before = len.saturating_sub(taken);
    if len == as_named || !before.is_multiple_of(size) || (header.page_count > 0 && before != as_named) {
        return Ok(None);
    }
    let file = input.made_anew(before, &mut Pieces::of(bytes), ctx, options)?;
    Ok(Some(Undone { file, taken }))
}

/// How many LF a database file has, when each has a CR before it and there is at least one.
fn line_ends(bytes: &[u8], ctx: &Ctx) -> Result<Option<u64>> {
    if !bytes.starts_with(MAGIC) {
        return Ok(None);
    }
    let mut found = 0_u64;
    for at in memchr::memchr_iter(b'\n', bytes) {
        if at.checked_sub(1).and_then(|i| bytes.get(i)) != Some(&b'\r') {
            return Ok(None);
        }
        found = found.saturating_add(1);
        if found.is_multiple_of(STRIDE) {
            ctx.check()?;
        }
    }
    Ok((found > 0).then_some(found))
}

/// A text without the byte before each LF.
struct Pieces<'a> {
    rest: &'a [u8],
    /// Where to look for the next LF: the one that a piece begins with is behind it.
    from: usize,
}

impl<'a> Pieces<'a> {
    fn of(bytes: &'a [u8]) -> Pieces<'a> {
        Pieces { rest: bytes, from: 0 }
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        let found = self.rest.get(self.from..).and_then(|r| memchr::memchr(b'\n', r)).and_then(|i| i.checked_add(self.from));
        let Some(at) = found else {
            return Some(std::mem::take(&mut self.rest));
        };
        let piece = self.rest.get(..at.saturating_sub(1)).unwrap_or_default();
        self.rest = self.rest.get(at..).unwrap_or_default();
        self.from = 1;
        Some(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cr_before_each_lf_is_taken_out() {
        let text = b"\r\na\r\r\n\r\n\r\nb\r";
        assert_eq!(Pieces::of(text).collect::<Vec<_>>().concat(), b"\na\r\n\n\nb\r");
        assert_eq!(Pieces::of(b"").count(), 0);
    }
}
