//! Page 1 and the geometry of the file: every header field is checked against other evidence, never trusted.
//!
//! One place decides, all layers read its answer; each decision says what it rests on.

use super::geometry::site_one;
use super::page_fit::{self, Vote};
use super::{displaced, extent, text_encoding};
use crate::bytes::u16_at;
use crate::finding::{Code, Defect, Findings, Origin, Site};
use crate::format::header::{HEADER_LEN, MAGIC};
use crate::format::{DatabaseHeader, Encoding};
use crate::ids::{PageNo, PageSize, idx, narrow, small, wide};

pub use super::geometry::{Decision, Geometry, PageOne, grade};

/// What there is to decide from.
#[derive(Debug, Clone, Copy, Default)]
pub struct Clues<'a> {
    /// The main file.
    pub main: &'a [u8],
    /// Page size in the header of a WAL whose header checksum is right.
    pub wal_page_size: Option<PageSize>,
    /// The newest committed image of page 1 in the WAL.
    pub wal_page_one: Option<&'a [u8]>,
    /// Page size in the header of a rollback journal.
    pub journal_page_size: Option<PageSize>,
    /// The image of page 1 in the rollback journal.
    pub journal_page_one: Option<&'a [u8]>,
    /// Whether the journal is rolled back, so that its image of page 1 is the current one.
    pub journal_is_hot: bool,
}

/// The least grade of a header that is one.
const PLAUSIBLE: u32 = 5;

/// Decides the geometry. `None` when neither a header nor any page of any size can be made out.
#[must_use]
pub fn reconcile(clues: &Clues<'_>, log: &mut Findings) -> Option<Geometry> {
    let main = clues.main;
    let in_wal = clues.wal_page_one.filter(|b| grade(b) >= PLAUSIBLE).map(|b| (b, "page 1 in the WAL"));
    let in_journal = clues.journal_page_one.filter(|b| grade(b) >= PLAUSIBLE).map(|b| (b, "page 1 in the rollback journal"));
    let in_place = (grade(main) >= PLAUSIBLE).then_some((main, "the header"));
    let rolled_back = in_journal.filter(|_| clues.journal_is_hot);
    let source = in_wal.or(rolled_back).or(in_place).or(in_journal);
    let found = source.and_then(|(b, name)| Some((DatabaseHeader::read(b).ok()?, name)));
    let named: Vec<(PageSize, &'static str)> = [
        (clues.wal_page_size, "the WAL header"),
        (found.and_then(|(h, _)| h.page_size()), found.map_or("", |(_, name)| name)),
        (clues.journal_page_size, "the journal header"),
        (DatabaseHeader::read(main).ok().filter(DatabaseHeader::magic_ok).and_then(|h| h.page_size()), "the header"),
    ]
    .into_iter()
    .filter_map(|(size, why)| Some((size?, why)))
    .collect();

    let known_reserved = found.map(|(h, _)| h.reserved);
    let first_has_header = in_place.is_some() || page_one_tree_in_place(main, &named);
    let chosen = choose_size(main, &named, known_reserved, first_has_header);
    let mut geometry = match chosen {
        Some((size, reserved, vote, why)) => Geometry {
            page_size: size,
            reserved,
            encoding: Encoding::Utf8,
            page_count: 0,
            byte_shift: 0,
            shift_from: PageNo::new(2)?,
            spliced: None,
            page_shift: 0,
            header: None,
            page_one: PageOne::InPlace,
            trailing: 0,
            second_database: None,
            decisions: vec![Decision::new(
                "page size",
                size.get(),
                format!("{why}; {} of {} sampled pages close at this size", vote.agree, vote.seen),
            )],
        },
        None => shifted(main)?.0,
    };
    if let Some((size, why)) = named.first()
        && *size != geometry.page_size
    {
        let at = Defect::new(Code::PageSizeDiffers, 16, u64::from(size.get()), u64::from(geometry.page_size.get()));
        log.add_with(at, site_one(), *why);
    }
    if geometry.byte_shift == 0 {
        settle_displaced(main, &mut geometry, first_has_header, log);
    } else if let Some(from) = displaced::begin(main, geometry.page_size, geometry.usable(), geometry.byte_shift)
        && let Some(from) = PageNo::new(small(from).saturating_add(1)).filter(|no| no.get() > 2)
    {
        geometry.shift_from = from;
        note_displaced(main, &mut geometry, log);
    }
    find_page_one(clues, &mut geometry, log);
    let header = settle_header(clues, &mut geometry, log);
    settle_reserved(&mut geometry, header.as_ref(), log);
    settle_encoding(clues, &mut geometry, header.as_ref(), log);
    // Under a log or a rolled back journal the header in force is not the main file's, and the commit gives the page count.
    let covered = clues.wal_page_size.is_some() || clues.journal_is_hot;
    if !covered && let Some(h) = header.as_ref().filter(|h| h.page_count_is_current()) {
        settle_moved(main, &mut geometry, h.page_count, log);
    }
    extent::settle(main, &mut geometry, header.as_ref().filter(|_| !covered), covered, log);
    geometry.header = header;
    let said = found.map(|(h, _)| h).or_else(|| DatabaseHeader::read(main).ok().filter(DatabaseHeader::magic_ok));
    for decision in &mut geometry.decisions {
        decision.overrules = !said.as_ref().is_some_and(|h| decision.agrees(h));
    }
    Some(geometry)
}

/// Whether the tree header of page 1 stands at byte 100 although the database header is gone.
fn page_one_tree_in_place(main: &[u8], named: &[(PageSize, &'static str)]) -> bool {
    let sizes = named.iter().map(|(s, _)| s.get()).chain(PageSize::ALL);
    sizes.filter_map(PageSize::new).any(|size| main.get(..size.len()).is_some_and(|page| page_fit::closes(page, HEADER_LEN, size.get())))
}

/// The page size and reserved bytes that the pages vote for. `None` when no page closes at any size and nothing names one.
fn choose_size(
    main: &[u8],
    named: &[(PageSize, &'static str)],
    reserved: Option<u8>,
    first_has_header: bool,
) -> Option<(PageSize, u8, Vote, String)> {
    let vote = |size: PageSize, r: u8| page_fit::vote(main, 0, size, r, first_has_header);
    // A first page that leads to others is not outvoted: most pages of a file may hold BLOBs, and those any bytes.
    let all = || PageSize::ALL.into_iter().filter_map(PageSize::new).map(|s| (s, "the page headers"));
    for (size, why) in named.iter().copied().chain(all()) {
        if let Some(r) = [reserved, Some(0)].into_iter().flatten().find(|&r| page_fit::leads(main, size, r)) {
            return Some((size, r, vote(size, r), why.to_owned()));
        }
    }
    // The usual case next: what is named is what the pages show.
    if let Some(&(size, why)) = named.first() {
        let r = reserved.filter(|&r| page_fit::leaves_enough(size, r)).unwrap_or(0);
        let v = vote(size, r);
        if v.agree > 0 && v.agree.saturating_mul(2) >= v.seen {
            return Some((size, r, v, why.to_owned()));
        }
    }
    let mut best: Option<(PageSize, u8, Vote, String)> = None;
    for (size, why) in named.iter().copied().chain(all()) {
        for r in page_fit::reserved_candidates(main, 0, size, first_has_header, reserved) {
            let v = vote(size, r);
            if v.agree > 0 && best.as_ref().is_none_or(|(_, _, b, _)| v.beats(b)) {
                best = Some((size, r, v, why.to_owned()));
            }
        }
    }
    let agree = best.as_ref().map_or(0, |(_, _, v, _)| v.agree);
    if best.as_ref().is_some_and(|(_, _, v, _)| v.agree.saturating_mul(10) >= v.seen || v.seen < 4) {
        return best;
    }
    // Hardly a page closes at any size. A header or a sidecar that names one is enough, unless the bytes are merely displaced.
    // Under a header that is whole, a page or two off the boundaries may be chance or one misplaced write.
    let least = if grade(main) >= 9 { 3 } else { 1 };
    if shifted(main).is_some_and(|(_, n)| n >= least && n > agree.saturating_mul(4)) {
        return None;
    }
    if best.is_some() {
        return best;
    }
    let &(size, why) = named.first()?;
    let reserved = reserved.filter(|&r| page_fit::leaves_enough(size, r)).unwrap_or(0);
    Some((size, reserved, Vote::default(), why.to_owned()))
}

/// The geometry of a file whose pages start off the page boundaries, and how many pages say so.
fn shifted(main: &[u8]) -> Option<(Geometry, u32)> {
    const BUDGET: usize = 4 << 20;
    let mut best: Option<(PageSize, usize, u32)> = None;
    for size in PageSize::ALL.into_iter().filter_map(PageSize::new) {
        if let Some((rest, n)) = page_fit::off_grid(main, size, 0, BUDGET)
            && best.is_none_or(|(b_size, _, b)| {
                wide(idx(n)).saturating_mul(u64::from(size.get())) > u64::from(b).saturating_mul(u64::from(b_size.get()))
            })
        {
            best = Some((size, rest, n));
        }
    }
    let (size, rest, n) = best?;
    let byte_shift = displaced::shift_of(rest, size).filter(|shift| *shift != 0)?;
    let geometry = Geometry {
        page_size: size,
        reserved: 0,
        encoding: Encoding::Utf8,
        page_count: 0,
        byte_shift,
        shift_from: PageNo::new(2)?,
        spliced: None,
        page_shift: 0,
        header: None,
        page_one: PageOne::Lost,
        trailing: 0,
        second_database: None,
        decisions: vec![
            Decision::new("page size", size.get(), format!("{n} pages close at this size, off the page boundaries")),
            Decision::new("byte shift", byte_shift, format!("{n} pages start {rest} bytes behind a page boundary")),
        ],
    };
    Some((geometry, n))
}

/// Bytes lost or inserted behind the second page, so that the front stands where it should.
fn settle_displaced(main: &[u8], geometry: &mut Geometry, first_has_header: bool, log: &mut Findings) {
    let Some(found) = displaced::find(main, geometry.page_size, geometry.reserved, first_has_header) else { return };
    let Some(from) = PageNo::new(small(found.from).saturating_add(1)).filter(|no| no.get() > 2) else { return };
    geometry.byte_shift = found.shift;
    geometry.shift_from = from;
    geometry.decide(
        "byte shift",
        format!("{} from page {from} on", found.shift),
        format!("{} pages close there, none at its place", found.pages),
    );
    note_displaced(main, geometry, log);
}

/// Whole pages lost or inserted behind the first, so that the front stands where it should.
fn settle_moved(main: &[u8], geometry: &mut Geometry, declared: u32, log: &mut Findings) {
    if geometry.byte_shift != 0 || geometry.page_shift != 0 || geometry.page_one != PageOne::InPlace {
        return;
    }
    let Some(found) = displaced::whole_pages(main, geometry.page_size, geometry.reserved, declared) else { return };
    let Some(from) = PageNo::new(found.from).filter(|no| no.get() > 1) else { return };
    geometry.byte_shift = found.pages.saturating_mul(i64::from(geometry.page_size.get()));
    geometry.shift_from = from;
    let evidence = format!("{} child pointers hit their pages there and not where they should", found.hits);
    geometry.decide("page shift", format!("{} from page {from} on", found.pages), evidence);
    let what = if found.pages < 0 { "pages are missing before it" } else { "pages were inserted before it" };
    let site = Site { origin: Origin::Main, page: Some(from), ..Site::default() };
    log.add_with(Defect::new(Code::PagesMoved, 0, u64::from(from.get()), found.pages.unsigned_abs()), site, what);
}

/// A shift that does not begin with the second page: the finding, and the page that the damage goes through.
fn note_displaced(main: &[u8], geometry: &mut Geometry, log: &mut Findings) {
    let from = geometry.shift_from;
    let Some(through) = from.get().checked_sub(1).and_then(PageNo::new) else { return };
    let site = Site { origin: Origin::Main, page: Some(through), ..Site::default() };
    let what = if geometry.byte_shift < 0 { "bytes are missing on this page" } else { "bytes were inserted on this page" };
    log.add_with(Defect::new(Code::BytesShifted, 0, geometry.byte_shift.unsigned_abs(), 0), site, what);
    let mended = displaced::mended(main, geometry.page_size, geometry.usable(), through.index(), geometry.byte_shift);
    geometry.spliced = mended.map(|image| (through, image));
}

/// Finds the image of page 1: in place, shifted, elsewhere, or nowhere; and whether all pages are displaced by whole pages.
fn find_page_one(clues: &Clues<'_>, geometry: &mut Geometry, log: &mut Findings) {
    let main = clues.main;
    let size = geometry.page_size;
    if geometry.byte_shift != 0 && geometry.shift_from.get() <= 2 {
        let at = Defect::new(Code::BytesShifted, 0, geometry.byte_shift.unsigned_abs(), 0);
        log.add_with(
            at,
            site_one(),
            if geometry.byte_shift < 0 { "bytes are missing near the front" } else { "bytes were inserted near the front" },
        );
        geometry.page_one = extent::splice(main, size, geometry.byte_shift).map_or(PageOne::Lost, PageOne::Rebuilt);
        return;
    }
    let first = main.get(..size.len()).unwrap_or(main);
    let usable = geometry.usable();
    let is_header = grade(first) >= PLAUSIBLE;
    let tree_at_100 = page_fit::shape(first, HEADER_LEN, usable).is_some();
    if is_header || tree_at_100 || first.is_empty() {
        return;
    }
    // Some other page, or nothing, stands where page 1 should be.
    let covered = clues.wal_page_one.is_some() || (clues.journal_is_hot && clues.journal_page_one.is_some());
    let pages: Vec<usize> = extent::headers_on_pages(main, size).filter(|&at| at > 0).take(2).collect();
    let hits = |delta: i64| page_fit::child_hits(main, 0, size, geometry.reserved, delta);
    let straight = hits(0);
    let moved = [-1_i64, 1, -2, 2].into_iter().map(|d| (d, hits(d))).max_by_key(|&(d, n)| (n, std::cmp::Reverse(d.unsigned_abs())));
    let clearly = |n: u32| n >= 2 && n > straight.saturating_mul(2);
    let by_header = pages.first().and_then(|&at| i64::try_from(at.checked_div(size.len())?).ok());
    if let Some(delta) = by_header.filter(|&d| clearly(hits(d))) {
        geometry.page_shift = i32::try_from(delta).unwrap_or(0);
        geometry.decide(
            "page shift",
            delta,
            format!("a database header stands at page {}, and child pointers lead there", delta.saturating_add(1)),
        );
        log.add(Defect::new(Code::PagesShifted, 0, delta.unsigned_abs(), 0), site_one());
        return;
    }
    if let Some((delta, n)) = moved.filter(|&(_, n)| clearly(n)) {
        geometry.page_shift = i32::try_from(delta).unwrap_or(0);
        geometry.decide("page shift", delta, format!("{n} child pointers hit their pages there, {straight} where they should"));
        log.add(Defect::new(Code::PagesShifted, 0, delta.unsigned_abs(), 0), site_one());
        geometry.page_one = PageOne::Lost;
        return;
    }
    match pages.first() {
        Some(&at) if !covered => {
            log.add(Defect::new(Code::PageOneElsewhere, 0, u64::from(page_fit::page_at(at, size)), 1), site_one());
            geometry.decide("page 1", format!("at byte {at}"), "the only database header of the file stands there");
            geometry.page_one = PageOne::At(wide(at));
        }
        _ => {
            log.add(Defect::new(Code::PageOneReplaced, 0, first.first().copied().map_or(0, u64::from), 0), site_one());
            geometry.page_one = if covered { PageOne::InPlace } else { PageOne::Lost };
        }
    }
}

/// The header fields from the best image of page 1, each checked.
fn settle_header(clues: &Clues<'_>, geometry: &mut Geometry, log: &mut Findings) -> Option<DatabaseHeader> {
    let main_image = match &geometry.page_one {
        PageOne::Rebuilt(image) => image.as_slice(),
        PageOne::At(at) => clues.main.get(narrow(*at)..).unwrap_or_default(),
        PageOne::InPlace | PageOne::Lost if geometry.page_shift > 0 => {
            let at = narrow(geometry.offset(PageNo::ONE).unwrap_or(0));
            clues.main.get(at..).unwrap_or_default()
        }
        PageOne::InPlace | PageOne::Lost => clues.main,
    };
    let hot = clues.journal_page_one.filter(|_| clues.journal_is_hot);
    let order = [
        (clues.wal_page_one, "page 1 in the WAL"),
        (hot, "page 1 in the rollback journal"),
        (Some(main_image), "the header"),
        (clues.journal_page_one, "page 1 in the rollback journal (history)"),
    ];
    let Some((image, name)) = order.into_iter().filter_map(|(b, n)| Some((b?, n))).find(|(b, _)| grade(b) >= PLAUSIBLE) else {
        // Page 1 is there, its header is not: what is wrong with it is said all the same.
        if matches!(geometry.page_one, PageOne::InPlace) {
            let h = DatabaseHeader::read(main_image).ok();
            if !h.as_ref().is_some_and(DatabaseHeader::magic_ok) {
                log.add(Defect::new(Code::MagicBad, 0, 0, 0), site_one());
            }
            if h.as_ref().is_none_or(|h| h.page_size().is_none()) {
                log.add(Defect::new(Code::PageSizeBad, 16, h.map_or(0, |h| u64::from(h.page_size_raw)), 0), site_one());
            }
        }
        return None;
    };
    let mut h = DatabaseHeader::read(image).ok()?;
    if !h.magic_ok() {
        log.add(Defect::new(Code::MagicBad, 0, 0, 0), site_one());
        geometry.decide("magic", "SQLite format 3", "the other fields of the header are a database's");
        h.magic = *MAGIC;
    }
    if h.page_size().is_none() {
        log.add(Defect::new(Code::PageSizeBad, 16, u64::from(h.page_size_raw), 0), site_one());
    }
    h.page_size_raw = DatabaseHeader::page_size_field(geometry.page_size);
    for version in [&mut h.write_version, &mut h.read_version] {
        if !matches!(*version, 1 | 2) {
            log.add(Defect::new(Code::FileVersionUnknown, 18, u64::from(*version), 2), site_one());
            geometry.decide("file format version", 1, format!("{} is none", *version));
            *version = 1;
        }
    }
    if h.fractions != [64, 32, 32] {
        let [a, b, c] = h.fractions;
        log.add_with(
            Defect::new(Code::PayloadFractionsBad, 21, u64::from(a), 64),
            site_one(),
            format!("{a}, {b}, {c} instead of 64, 32, 32"),
        );
        h.fractions = [64, 32, 32];
    }
    if h.schema_format > 4 {
        log.add(Defect::new(Code::SchemaFormatBad, 44, u64::from(h.schema_format), 4), site_one());
        geometry.decide("schema format", 4, format!("{} is none", h.schema_format));
        h.schema_format = 4;
    }
    h.expansion = [0; 20];
    geometry.decide("other header fields", "as they stand", name);
    Some(h)
}

fn settle_reserved(geometry: &mut Geometry, header: Option<&DatabaseHeader>, log: &mut Findings) {
    let Some(h) = header else {
        geometry.decide("reserved bytes", geometry.reserved, "where the cells of the sampled pages end");
        return;
    };
    if !page_fit::leaves_enough(geometry.page_size, h.reserved) {
        let usable = geometry.page_size.get().saturating_sub(u32::from(h.reserved));
        log.add(Defect::new(Code::UsableSizeTooSmall, 20, u64::from(usable), 480), site_one());
    } else if h.reserved != geometry.reserved {
        log.add(Defect::new(Code::ReservedDiffers, 20, u64::from(h.reserved), u64::from(geometry.reserved)), site_one());
    } else {
        return;
    }
    geometry.decide("reserved bytes", geometry.reserved, "where the cells of the sampled pages end");
}

fn settle_encoding(clues: &Clues<'_>, geometry: &mut Geometry, header: Option<&DatabaseHeader>, log: &mut Findings) {
    let image = match &geometry.page_one {
        PageOne::Rebuilt(image) => image.as_slice(),
        PageOne::At(at) => clues.main.get(narrow(*at)..).unwrap_or_default(),
        _ => clues.wal_page_one.unwrap_or(clues.main),
    };
    // SQLite writes the field with the first table: a schema without a row, also after a VACUUM, may have 0 there.
    let is_empty = header.is_some_and(|h| h.encoding_raw == 0) && image.get(100) == Some(&13) && u16_at(image, 103) == Some(0);
    let named = if is_empty { Some(Encoding::Utf8) } else { header.and_then(DatabaseHeader::encoding) };
    if let Some(h) = header.filter(|_| named.is_none()) {
        log.add(Defect::new(Code::EncodingBad, 56, u64::from(h.encoding_raw), 0), site_one());
    }
    let on_page_one = extent::encoding_votes(image.get(..geometry.page_size.len()).unwrap_or(image));
    let mut by_schema = true;
    // The schema may lie on other pages: 8 MiB are read for it where page 1 says nothing and the header is of no help.
    let votes = if on_page_one.iter().all(|&(_, n)| n == 0) && named.is_none() {
        let in_schema = extent::encoding_votes(clues.main.get(..8 << 20).unwrap_or(clues.main));
        by_schema = in_schema.iter().any(|&(_, n)| n > 0);
        if by_schema { in_schema } else { text_encoding::votes(clues.main, geometry) }
    } else {
        on_page_one
    };
    let count = |e: Encoding| votes.iter().find(|(v, _)| *v == e).map_or(0, |(_, n)| *n);
    let best = votes.iter().copied().max_by_key(|&(e, n)| (n, std::cmp::Reverse(e.number()))).filter(|&(_, n)| n > 0);
    geometry.encoding = match (named, best) {
        (Some(e), Some((b, n))) if b != e && count(e) == 0 => {
            log.add(Defect::new(Code::EncodingDiffers, 56, u64::from(e.number()), u64::from(b.number())), site_one());
            geometry.decide("encoding", b.number(), format!("{n} schema texts are written in it, none in {}", e.number()));
            b
        }
        (Some(e), _) => e,
        (None, Some((b, n))) => {
            let whose = if by_schema { "schema" } else { "sampled" };
            geometry.decide("encoding", b.number(), format!("{n} {whose} texts are written in it"));
            b
        }
        (None, None) => {
            geometry.decide("encoding", 1, "nothing says otherwise");
            Encoding::Utf8
        }
    };
}
