//! The encoding of a database by its text values, for files that lost header and schema.

use super::Geometry;
use super::page_fit;
use crate::format::cell::Split;
use crate::format::page::Page;
use crate::format::{Encoding, Fields, PageKind};
use crate::ids::{PageNo, idx, small};

/// Pages that are looked at.
const PAGES: u32 = 512;

/// Votes of the text values on sampled table leaves, each text one.
pub(super) fn votes(main: &[u8], geometry: &Geometry) -> [(Encoding, u32); 3] {
    let (mut utf8, mut le, mut be) = (0_u32, 0_u32, 0_u32);
    let usable = geometry.usable();
    let split = Split::new(usable);
    let mut fields = Fields::new();
    let pages = small(main.len().checked_div(geometry.page_size.len()).unwrap_or(0));
    let step = pages.div_ceil(PAGES).max(1);
    // The first page, too: where the real one is missing, another stands there.
    let mut no = 1_u32;
    while no <= pages {
        let image = PageNo::new(no).and_then(|n| geometry.offset(n)).and_then(|at| {
            let at = usize::try_from(at).ok()?;
            main.get(at..at.checked_add(geometry.page_size.len())?)
        });
        no = no.saturating_add(step);
        let Some(image) = image.filter(|b| page_fit::closes(b, 0, usable)) else { continue };
        let Some(page) =
            Page::with_kind(image.get(..idx(usable)).unwrap_or(image), 0, PageKind::TableLeaf).filter(|_| image.first() == Some(&13))
        else {
            continue;
        };
        for (_, cell) in page.cells(split) {
            let Ok(cell) = cell else { continue };
            if fields.read(cell.local, cell.payload_len).is_err() {
                continue;
            }
            for field in fields.as_slice().iter().filter(|f| f.serial >= 15 && f.serial & 1 == 1) {
                let start = idx(field.start);
                let Some(text) = cell.local.get(start..start.saturating_add(idx(field.len))) else { continue };
                let vote = match of(text) {
                    Some(Encoding::Utf8) => &mut utf8,
                    Some(Encoding::Utf16Le) => &mut le,
                    Some(Encoding::Utf16Be) => &mut be,
                    None => continue,
                };
                *vote = vote.saturating_add(1);
            }
        }
    }
    [(Encoding::Utf8, utf8), (Encoding::Utf16Le, le), (Encoding::Utf16Be, be)]
}

/// What one text looks like; `None` where it could be several.
fn of(text: &[u8]) -> Option<Encoding> {
    let (pairs, rest) = text.as_chunks::<2>();
    // Control characters are no text; they are the high bytes of Greek, Cyrillic and others in UTF-16.
    let control = |b: &u8| *b < 0x20 && !b.is_ascii_whitespace();
    let valid = Encoding::Utf8.is_valid(text) && !text.iter().any(control);
    if !rest.is_empty() || pairs.is_empty() {
        return valid.then_some(Encoding::Utf8);
    }
    let zeros = |at: usize| pairs.iter().filter(|p| p.get(at) == Some(&0)).count();
    match (zeros(0), zeros(1)) {
        (0, 0) if valid => Some(Encoding::Utf8),
        (0, 0) => {
            // Text of one script shares its high bytes.
            let distinct = |at: usize| pairs.iter().filter_map(|p| p.get(at)).collect::<std::collections::BTreeSet<_>>().len();
            match distinct(0).cmp(&distinct(1)) {
                std::cmp::Ordering::Greater => Some(Encoding::Utf16Le),
                std::cmp::Ordering::Less => Some(Encoding::Utf16Be),
                std::cmp::Ordering::Equal => None,
            }
        }
        (high, low) if low > high => Some(Encoding::Utf16Le),
        (high, low) if high > low => Some(Encoding::Utf16Be),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_shows_its_encoding() {
        for text in ["plain", "näme 12", "Привет", "日本語の文章", "x"] {
            for e in [Encoding::Utf8, Encoding::Utf16Le, Encoding::Utf16Be] {
                let seen = of(&e.from_utf8(text.as_bytes()));
                assert!(seen == Some(e) || seen.is_none(), "{text} {e:?}: {seen:?}");
            }
        }
    }
}
