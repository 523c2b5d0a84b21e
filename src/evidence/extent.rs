//! How far the database reaches in its file: page count, foreign bytes behind it, other databases, displaced bytes.

use super::geometry::{Geometry, PageOne, grade, site_one};
use super::page_fit;
use crate::bytes::u32_at;
use crate::finding::{Code, Defect, Findings};
use crate::format::cell::Split;
use crate::format::header::{HEADER_LEN, MAGIC};
use crate::format::page::Page;
use crate::format::{DatabaseHeader, Encoding};
use crate::ids::{PageNo, PageSize, narrow, small, wide};

/// Byte offsets of database headers on page boundaries.
pub fn headers_on_pages(main: &[u8], size: PageSize) -> impl Iterator<Item = usize> {
    let pages = main.len().checked_div(size.len()).unwrap_or(0);
    (0..pages)
        .map(move |i| i.saturating_mul(size.len()))
        .filter(|&at| main.get(at..at.saturating_add(HEADER_LEN)).is_some_and(|b| b.starts_with(MAGIC) && grade(b) >= 5))
}

/// How many records of a schema stand in the bytes, in each encoding: a record header whose first text is `table`, `index`,
/// `view` or `trigger`. Cell pointers are not used, so this works on pages that lost them.
pub fn encoding_votes(bytes: &[u8]) -> [(Encoding, u32); 3] {
    let mut votes = [(Encoding::Utf8, 0_u32), (Encoding::Utf16Le, 0), (Encoding::Utf16Be, 0)];
    let words: Vec<(usize, u8, Vec<u8>)> = ["table", "index", "view", "trigger"]
        .iter()
        .flat_map(|word| {
            [Encoding::Utf8, Encoding::Utf16Le, Encoding::Utf16Be].iter().enumerate().filter_map(|(i, e)| {
                let text = e.from_utf8(word.as_bytes()).into_owned();
                let serial = u8::try_from(text.len().checked_mul(2)?.checked_add(13)?).ok()?;
                Some((i, serial, text))
            })
        })
        .collect();
    for (at, pair) in bytes.windows(2).enumerate() {
        let &[header_len, serial] = pair else { continue };
        // Five serial types of one to three bytes each, and the length itself.
        if !(6..=20).contains(&header_len) || !matches!(serial, 0x15..=0x29) {
            continue;
        }
        let body = bytes.get(at.saturating_add(usize::from(header_len))..).unwrap_or_default();
        for (i, s, text) in &words {
            if *s == serial
                && body.starts_with(text)
                && let Some(vote) = votes.get_mut(*i)
            {
                vote.1 = vote.1.saturating_add(1);
            }
        }
    }
    votes
}

/// Page 1 put together from bytes of which `shift` were lost (negative) or inserted (positive) somewhere on it: the place
/// is the one where header and tree agree best. `None` when not even the header does.
pub fn splice(main: &[u8], size: PageSize, shift: i64) -> Option<Vec<u8>> {
    let k = usize::try_from(shift.unsigned_abs()).ok()?;
    let image = |p: usize| -> Option<Vec<u8>> {
        let mut out = main.get(..p)?.to_vec();
        if shift < 0 {
            out.resize(p.saturating_add(k), 0);
            out.extend_from_slice(main.get(p..size.len().checked_sub(k)?)?);
        } else {
            out.extend_from_slice(main.get(p.checked_add(k)?..size.len().checked_add(k)?)?);
        }
        Some(out)
    };
    let split = Split::new(size.get());
    let cells = |b: &[u8]| Page::read_at(b, HEADER_LEN, size.get()).map_or(0, |p| p.cells(split).filter(|(_, c)| c.is_ok()).count());
    let step = if size.get() > 4096 { 16 } else { 1 };
    let places = (0..=HEADER_LEN).chain((HEADER_LEN..size.len()).step_by(step));
    let mut best: Option<(u32, usize, Vec<u8>)> = None;
    for p in places {
        let Some(candidate) = image(p) else { continue };
        let key = (grade(&candidate), cells(&candidate));
        if best.as_ref().is_none_or(|b| key > (b.0, b.1)) {
            best = Some((key.0, key.1, candidate));
        }
    }
    let (points, _, mut out) = best.filter(|b| b.0 >= 4)?;
    if points < 9
        && let Some(place) = out.get_mut(..MAGIC.len())
    {
        place.copy_from_slice(MAGIC);
    }
    Some(out)
}

/// Settles the page count, and what lies behind the last page. `covered`: a sidecar says how many pages there are.
pub fn settle(main: &[u8], geometry: &mut Geometry, header: Option<&DatabaseHeader>, covered: bool, log: &mut Findings) {
    let size = geometry.page_size;
    let displaced = geometry.byte_shift.saturating_add(i64::from(geometry.page_shift).saturating_mul(i64::from(size.get())));
    let len = u64::try_from(i64::try_from(main.len()).unwrap_or(i64::MAX).saturating_sub(displaced)).unwrap_or(0);
    let whole = size.whole_pages(len);
    let rest = size.rest(len);
    let declared = header.filter(|h| h.page_count > 0).map(|h| h.page_count);
    let current = header.is_some_and(DatabaseHeader::page_count_is_current);
    geometry.page_count = whole.saturating_add(u32::from(rest > 0));

    if covered {
        geometry.decide("page count", geometry.page_count, "the size of the main file; the last commit of the sidecar decides");
        note_rest(geometry, rest, log);
        return;
    }
    let second = (geometry.page_one == PageOne::InPlace && geometry.page_shift == 0 && declared.is_none_or(|n| n != whole || rest > 0))
        .then(|| headers_on_pages(main, size).find(|&at| at > 0).or_else(|| second_off_grid(main, size, declared)))
        .flatten();
    if let Some(at) = second {
        geometry.second_database = Some(wide(at));
        geometry.trailing = wide(main.len().saturating_sub(at));
        geometry.page_count = small(at.div_ceil(size.len()));
        log.add(Defect::new(Code::SecondDatabase, 0, wide(at), 0), site_one());
        geometry.decide("page count", geometry.page_count, format!("another database begins at byte {at}"));
        return;
    }
    let Some(declared) = declared else {
        geometry.decide("page count", geometry.page_count, "the size of the file");
        note_rest(geometry, rest, log);
        return;
    };
    if declared == geometry.page_count && rest == 0 {
        return;
    }
    if declared < geometry.page_count && !used_beyond(main, geometry, declared) {
        // Nothing points behind the declared end, and nothing there is a page: the bytes are not the database's.
        let end = geometry.offset(PageNo::new(declared.saturating_add(1)).unwrap_or(PageNo::ONE)).unwrap_or(0);
        geometry.trailing = wide(main.len()).saturating_sub(end);
        geometry.page_count = declared;
        // A file that grows by chunks has a tail of zeros.
        let zeros = main.get(narrow(end)..).is_none_or(|tail| tail.iter().all(|&b| b == 0));
        let code = if zeros { Code::TrailingZeros } else { Code::TrailingBytes };
        log.add(Defect::new(code, 0, geometry.trailing, 0), site_one());
        geometry.decide("page count", declared, "the header; nothing behind it is a page, and no pointer leads there");
        return;
    }
    if declared != geometry.page_count && (current || declared > geometry.page_count) {
        log.add(Defect::new(Code::PageCountStale, 28, u64::from(declared), u64::from(geometry.page_count)), site_one());
    }
    geometry.decide(
        "page count",
        geometry.page_count,
        if current { "the size of the file; the header says otherwise" } else { "the size of the file" },
    );
    note_rest(geometry, rest, log);
}

fn note_rest(geometry: &Geometry, rest: u64, log: &mut Findings) {
    if rest > 0 {
        log.add(Defect::new(Code::FileNotWholePages, 0, rest, u64::from(geometry.page_size.get())), site_one());
    }
}

/// Another database that was appended to one that is no whole number of pages long, or of another page size.
fn second_off_grid(main: &[u8], size: PageSize, declared: Option<u32>) -> Option<usize> {
    let end = narrow(PageNo::new(declared?.checked_add(1)?)?.file_range(size).start);
    // Only the place right behind the declared end, on sector boundaries, is worth a look; 4096 of them are enough.
    let rest = main.get(end..)?;
    (0..rest.len().min(512 << 12))
        .step_by(512)
        .map(|i| end.saturating_add(i))
        .find(|&at| grade(main.get(at..).unwrap_or_default()) >= 7 && main.get(at..).is_some_and(|b| b.starts_with(MAGIC)))
}

/// Whether pages behind the declared end are in use: some pointer leads there, or they are b-tree pages that close.
fn used_beyond(main: &[u8], geometry: &Geometry, declared: u32) -> bool {
    let size = geometry.page_size;
    let split = Split::new(geometry.usable());
    let image = |no: PageNo| {
        let at = narrow(geometry.offset(no)?);
        main.get(at..at.checked_add(size.len())?)
    };
    let beyond = |n: u32| n > declared && n <= geometry.page_count;
    for n in declared.saturating_add(1)..=geometry.page_count {
        let Some(page) = PageNo::new(n).and_then(image) else { continue };
        if page_fit::shape(page, 0, geometry.usable()).is_some_and(|s| s.cells > 0) {
            return true;
        }
    }
    for n in 1..=declared.min(geometry.page_count) {
        let Some(bytes) = PageNo::new(n).and_then(image) else { continue };
        let header_at = if n == 1 { HEADER_LEN } else { 0 };
        let Ok(page) = Page::read_at(bytes, header_at, geometry.usable()) else { continue };
        if page.right_child.is_some_and(beyond) {
            return true;
        }
        if page.cells(split).any(|(_, c)| c.is_ok_and(|c| c.child.is_some_and(beyond) || c.overflow.is_some_and(beyond))) {
            return true;
        }
    }
    // The freelist lies beyond only if its first trunk does.
    u32_at(main, 32).is_some_and(beyond)
}
