//! The scan of a table: every row is read once, judged by its declaration and added to the sums of its indexes.

use std::collections::BTreeSet;

use rayon::prelude::*;

use crate::bytes::u32_at;
use crate::ctx::Ctx;
use crate::error::Result;
use crate::finding::{Code, Defect, Findings, RowEffect, Site};
use crate::format::record::Field;
use crate::format::{Encoding, Fields, Value};
use crate::ids::{PageNo, idx, wide};
use crate::survey::rows::entry::EntrySum;
use crate::survey::rows::judge::{Judge, Verdict};
use crate::survey::rows::key::KeyOrder;
use crate::survey::rows::plan::{Row, TablePlan};
use crate::tree::bounds::{Bounds, inside};
use crate::tree::cells::{CellAt, visit};
use crate::tree::mend::UNNAMED;
use crate::tree::payload::PayloadReader;
use crate::tree::{Claims, Owner, Pages, Role, Slot, Tree};

/// How many slots one worker takes at a time: about a megabyte of pages of usual size.
const RUN: usize = 256;

/// Rows with texts that are not valid in the encoding that are kept by place; a table with more of them is written so.
const ODD_TEXT: usize = 1000;

/// A row that is not to be written as it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Excluded {
    /// The page of its cell.
    pub page: PageNo,
    /// The cell.
    pub cell: u16,
    /// Its rowid, when the table has one.
    pub rowid: Option<i64>,
    /// Why.
    pub code: Code,
    /// The value of the defect: a column, a page.
    pub got: u64,
}

/// What the scan of a table found.
#[derive(Debug, Clone, Default)]
pub struct TableScan {
    /// Cells that decode, excluded ones included.
    pub cells: u64,
    /// Rows that can be written.
    pub rows: u64,
    /// Rows that can not, in key order.
    pub excluded: Vec<Excluded>,
    /// Rows that are written in another form: surplus values cut, a generated value computed anew, a reserved serial type
    /// written as the NULL it reads as.
    pub rewritten: BTreeSet<(PageNo, u16)>,
    /// Whether the keys of all rows ascend.
    pub ordered: bool,
    /// Sums of the entries that the indexes should have, in the order of the plan.
    pub sums: Vec<EntrySum>,
    /// Pages with a finding of their structure, in key order.
    pub damaged: Vec<PageNo>,
    /// Cells that do not decode, by page.
    pub skipped: Vec<(PageNo, u32)>,
    /// Bytes of leaves that nothing explains, by page: what damage left of cells that are gone.
    pub unexplained: Vec<(PageNo, u32)>,
    /// Rows with a text that is not valid in the encoding.
    pub undecodable: u64,
    /// The first of them.
    pub odd_text: Vec<(PageNo, u16, Option<i64>)>,
    /// Leaves with rows outside the bounds that parents set.
    pub outside: BTreeSet<PageNo>,
    /// Rows that two chains of overflow pages made depend on the order of the scan.
    pub contested: bool,
    first: Option<i64>,
    last: Option<i64>,
    first_key: Option<Vec<u8>>,
    last_key: Option<Vec<u8>>,
}

impl TableScan {
    /// The rowid of the last row that was read, in the order of the tree.
    #[must_use]
    pub fn last_rowid(&self) -> Option<i64> {
        self.last
    }

    /// Rows with texts that damage overwrote: bytes that are no text stand only on leaves of which other cells are broken,
    /// while all other rows of the table are text throughout.
    #[must_use]
    pub fn overwritten(&self) -> Vec<(PageNo, u16, Option<i64>)> {
        let broken = |page: PageNo| {
            let excluded = self.excluded.iter().any(|e| e.page == page && is_broken(e.code));
            excluded || self.skipped.iter().any(|(p, _)| *p == page)
        };
        let all = wide(self.odd_text.len()) == self.undecodable && self.odd_text.iter().all(|(page, ..)| broken(*page));
        let free = |(page, cell, _): &(PageNo, u16, Option<i64>)| !self.is_excluded(*page, *cell);
        if all { self.odd_text.iter().filter(|r| free(r)).copied().collect() } else { Vec::new() }
    }

    /// Whether the row at this place is excluded.
    #[must_use]
    pub fn is_excluded(&self, page: PageNo, cell: u16) -> bool {
        !self.excluded.is_empty() && self.excluded.iter().any(|e| e.page == page && e.cell == cell)
    }
}

/// Scans a table, in parallel, or on one thread where chains contest pages.
///
/// # Errors
/// Cancellation only.
pub fn scan(
    pages: &Pages<'_>,
    tree: &Tree,
    plan: &TablePlan,
    claims: &Claims,
    parallel: bool,
    log: &mut Findings,
    ctx: &Ctx,
) -> Result<TableScan> {
    let part = |slots: &[Slot]| -> Result<(TableScan, Findings)> {
        let mut findings = Findings::new(log.cap());
        let scan = scan_run(pages, tree.owner, slots, plan, claims, &mut findings, ctx)?;
        ctx.progress.advance(wide(slots.len()));
        Ok((scan, findings))
    };
    let parts: Vec<(TableScan, Findings)> = if parallel && tree.slots.len() > RUN {
        tree.slots.par_chunks(RUN).map(part).collect::<Result<_>>()?
    } else {
        tree.slots.chunks(RUN).map(part).collect::<Result<_>>()?
    };
    let mut whole = TableScan { ordered: true, sums: vec![EntrySum::default(); plan.indexes.len()], ..TableScan::default() };
    let mut order = plan.key.as_ref().map(|key| KeyOrder::new(key, plan.encoding));
    for (part, findings) in parts {
        log.merge(findings);
        whole.append(part, order.as_mut(), plan, log);
    }
    Ok(whole)
}

impl TableScan {
    fn append(&mut self, part: TableScan, order: Option<&mut KeyOrder>, plan: &TablePlan, log: &mut Findings) {
        self.cells = self.cells.saturating_add(part.cells);
        self.rows = self.rows.saturating_add(part.rows);
        self.excluded.extend(part.excluded);
        self.rewritten.extend(part.rewritten);
        self.damaged.extend(part.damaged);
        self.skipped.extend(part.skipped);
        self.unexplained.extend(part.unexplained);
        self.contested |= part.contested;
        for (sum, more) in self.sums.iter_mut().zip(&part.sums) {
            sum.merge(*more);
        }
        let mut ascends = match (self.last, part.first) {
            (Some(last), Some(first)) => last < first,
            _ => true,
        };
        if let (Some(order), Some(last), Some(first)) = (order, &self.last_key, &part.first_key) {
            ascends &= order.ascends(last, first);
        }
        if !ascends {
            log.add(Defect::new(Code::KeyOrder, 0, 0, 0), Site::object(plan.object));
        }
        self.ordered &= ascends && part.ordered;
        self.undecodable = self.undecodable.saturating_add(part.undecodable);
        self.odd_text.extend(part.odd_text.into_iter().take(ODD_TEXT.saturating_sub(self.odd_text.len())));
        self.outside.extend(part.outside);
        self.first = self.first.or(part.first);
        self.last = part.last.or(self.last);
        if self.first_key.is_none() {
            self.first_key = part.first_key;
        }
        if part.last_key.is_some() {
            self.last_key = part.last_key;
        }
    }
}

fn scan_run(
    pages: &Pages<'_>,
    owner: Owner,
    slots: &[Slot],
    plan: &TablePlan,
    claims: &Claims,
    log: &mut Findings,
    ctx: &Ctx,
) -> Result<TableScan> {
    let mut scan = TableScan { ordered: true, sums: vec![EntrySum::default(); plan.indexes.len()], ..TableScan::default() };
    let mut reader = PayloadReader::new();
    let mut fields = Fields::new();
    let judge = Judge::new(plan);
    let mut order = plan.key.as_ref().map(|key| KeyOrder::new(key, plan.encoding));
    let site = Site::object(plan.object);
    let bounds = leaf_bounds(slots);
    let mut bound_at = 0_usize;
    let mut last_stood: Option<i64> = None;
    let seen = visit(pages, slots, site, true, log, ctx, |log, at: CellAt<'_>| {
        scan.cells = scan.cells.saturating_add(1);
        let mut here = pages.site(site, at.page);
        if at.no < UNNAMED {
            here = here.cell(at.no);
        } else {
            log.add(Defect::new(Code::CellUnnamed, at.cell.at, u64::from(at.cell.at), 0), here);
        }
        let mut exclude = |code: Code, got: u64| {
            scan.excluded.push(Excluded { page: at.page, cell: at.no, rowid: at.cell.rowid, code, got });
        };
        if let Err(d) = reader.read_claiming(pages, &at.cell, |page| claims.claim(page, owner, Role::Overflow).is_ok()) {
            scan.contested |= d.code == Code::OverflowShared;
            log.add(d, here);
            exclude(d.code, d.got);
            return Ok(());
        }
        let mut surplus = None;
        let payload = match at.cell.overflow {
            None => at.cell.local,
            Some(_) => {
                surplus = reader.surplus(pages);
                if let Some(d) = surplus {
                    log.add(d, here);
                }
                reader.partial()
            }
        };
        if let Err(d) = fields.read(payload, at.cell.payload_len) {
            log.add(d, here);
            exclude(d.code, d.got);
            return Ok(());
        }
        let too_long = u64::from(fields.body_end()) < at.cell.payload_len;
        let reserved = fields.reserved();
        if let Some(serial) = reserved {
            log.add(Defect::new(Code::SerialTypeReserved, 0, serial, 0), here);
            if too_long {
                exclude(Code::SerialTypeReserved, serial);
                return Ok(());
            }
        }
        if too_long {
            log.add(Defect::new(Code::BodyLong, 0, at.cell.payload_len, u64::from(fields.body_end())), here);
        }
        if at.cell.overflow.is_some()
            && let Some(wiped) = wiped_page(&fields, at.cell.local.len(), payload, reader.chain(), pages)
        {
            let rowid = at.cell.rowid.map_or_else(String::new, |r| format!(", rowid {r}"));
            let words = format!("an overflow page of page {}, cell {}{rowid}", at.page.get(), at.no);
            log.add_with(Defect::new(Code::PageAllZero, 0, u64::from(pages.usable), 0), pages.site(site, wiped), words);
            exclude(Code::PageAllZero, u64::from(wiped.get()));
            return Ok(());
        }
        if at.cell.overflow.is_some()
            && let Some(d) = wiped(&fields, payload, at.cell.local.len(), pages, surplus, plan.encoding)
        {
            log.add(d, here);
            exclude(d.code, d.got);
            return Ok(());
        }
        let row = Row { rowid: at.cell.rowid, payload, fields: &fields };
        if judge.undecodable(&row, here, log) {
            scan.undecodable = scan.undecodable.saturating_add(1);
            if scan.odd_text.len() < ODD_TEXT {
                scan.odd_text.push((at.page, at.no, at.cell.rowid));
            }
        }
        let verdict = judge.judge(&row, here, log, &mut scan.sums);
        if let Some(rowid) = at.cell.rowid {
            while bounds.get(bound_at).is_some_and(|b| b.0 != at.page) {
                bound_at = bound_at.saturating_add(1);
            }
            if bounds.get(bound_at).is_some_and(|(_, bounds)| !inside(*bounds, rowid)) {
                log.add_with(Defect::new(Code::KeyOutsideParent, at.cell.at, u64::from(at.no), 0), here, format!("rowid {rowid}"));
                scan.outside.insert(at.page);
            }
            let stood = at.stood.unwrap_or(rowid);
            if last_stood.is_some_and(|last| stood <= last) {
                let code = if last_stood == Some(stood) { Code::RowidTwice } else { Code::KeyOrder };
                let got = if code == Code::RowidTwice { u64::from_ne_bytes(stood.to_ne_bytes()) } else { u64::from(at.no) };
                log.add_with(Defect::new(code, at.cell.at, got, 0), here, format!("rowid {stood}"));
            }
            last_stood = Some(stood);
            if at.stood.is_some() {
                let words = format!("rowid {stood} is {rowid} again");
                log.add_with(Defect::new(Code::RowidRestored, at.cell.at, u64::from(at.no), 0), here, words);
            }
            scan.ordered &= scan.last.is_none_or(|last| rowid > last);
            scan.first = scan.first.or(Some(rowid));
            scan.last = Some(rowid);
        }
        if let Some(order) = &mut order {
            if scan.last_key.as_ref().is_some_and(|last| !order.ascends(last, payload)) {
                log.add(Defect::new(Code::KeyOrder, at.cell.at, u64::from(at.no), 0), here);
                scan.ordered = false;
            }
            if scan.first_key.is_none() {
                scan.first_key = Some(payload.to_vec());
            }
            let last = scan.last_key.get_or_insert_with(Vec::new);
            last.clear();
            last.extend_from_slice(payload);
        }
        match verdict {
            Verdict::Good if !too_long && reserved.is_none() => scan.rows = scan.rows.saturating_add(1),
            Verdict::Good | Verdict::Rewrite => {
                scan.rows = scan.rows.saturating_add(1);
                scan.rewritten.insert((at.page, at.no));
            }
            Verdict::Breaks(code, column) => {
                exclude(code, wide(column));
                return Ok(());
            }
        }
        Ok(())
    })?;
    scan.damaged = seen.damaged;
    scan.skipped = seen.skipped;
    scan.unexplained = seen.unexplained;
    Ok(scan)
}

/// Whether a cell with this defect was overwritten.
fn is_broken(code: Code) -> bool {
    code.problem().row == RowEffect::Unreadable
}

/// What wiped or overwrote a text on overflow pages: a page or a sector of nothing but zeros, or bytes that are no text on a last
/// page that does not end its chain.
fn wiped(fields: &Fields, payload: &[u8], local: usize, pages: &Pages<'_>, surplus: Option<Defect>, encoding: Encoding) -> Option<Defect> {
    let chunk = idx(pages.split.overflow_chunk()).max(1);
    let texts = || {
        let texts = fields.as_slice().iter().filter(|f| f.serial >= 13 && f.serial & 1 == 1);
        let places = texts.map(|f| (idx(f.start), idx(f.start).saturating_add(idx(f.len)).min(payload.len())));
        // A text that is NUL from start to end is a value.
        places.filter(|(start, end)| payload.get(*start..*end).is_some_and(|t| t.iter().any(|b| *b != 0)))
    };
    let spilled = payload.get(local..).unwrap_or_default();
    for (i, part) in spilled.chunks(chunk).enumerate() {
        let from = local.saturating_add(i.saturating_mul(chunk));
        let slack = if encoding == Encoding::Utf8 { 0 } else { 1 };
        let in_texts = texts().filter_map(|(start, end)| {
            let (a, b) = (start.max(from), end.min(from.saturating_add(part.len())));
            (a < b).then(|| (a.saturating_sub(from), b.saturating_sub(from)))
        });
        for (a, b) in in_texts {
            let text = part.get(a..b).unwrap_or_default();
            // What wipes a page from its start takes the number of the next page with it.
            let has_next = from.saturating_add(part.len()) < payload.len();
            if let Some((at, len)) = zero_sectors(text, a, has_next, b == part.len(), slack) {
                return Some(Defect::new(Code::OverflowSectorZero, 0, wide(from.saturating_add(at)), wide(len)));
            }
        }
    }
    // On the last page.
    let surplus = surplus?;
    let from = local.saturating_add(spilled.len().saturating_sub(1).checked_div(chunk)?.saturating_mul(chunk));
    let mut last = texts().filter_map(|(start, end)| payload.get(start.max(from)..end));
    // A page filled with one byte has it in the pointer, too.
    let [a, rest @ ..] = u32::try_from(surplus.want).unwrap_or(0).to_be_bytes();
    let filled = |text: &[u8]| rest.iter().chain(text).all(|b| *b == a);
    let damaged = last.any(|text| text.len() >= SHORT && (filled(text) || is_no_text(text, encoding)));
    damaged.then(|| Defect::new(Code::OverflowOverwritten, 0, surplus.got, surplus.want))
}

/// Fewer bytes of a text on an overflow page say nothing about it.
const SHORT: usize = 16;

/// Bytes of a sector; disks lose data by them.
const SECTOR: usize = 512;

/// A run of zeros within the part of a text that stands at `at` of the body of an overflow page, from the edge of a sector, or
/// where the body of a last page begins, to the edge of a sector, or where the payload ends on the page. `slack`: zeros beside the run that
/// belong to the characters around it.
fn zero_sectors(text: &[u8], at: usize, has_next: bool, ends: bool, slack: usize) -> Option<(usize, usize)> {
    // The body begins behind the number of the next page.
    let edge = |place: usize| place.saturating_add(4) % SECTOR;
    let mut from = 0_usize;
    while let Some(start) = text.get(from..)?.iter().position(|b| *b == 0).map(|i| from.saturating_add(i)) {
        let len = text.get(start..)?.iter().take_while(|b| **b == 0).count();
        let end = start.saturating_add(len);
        from = end;
        let (begins, stops) = (at.saturating_add(start), at.saturating_add(end));
        let opens = (begins == 0 && !has_next) || (0..=slack).any(|s| edge(begins.saturating_add(s)) == 0);
        let closes = (ends && end == text.len()) || (0..=slack).any(|s| stops.checked_sub(s).is_some_and(|p| edge(p) == 0));
        if len >= SECTOR / 8 && opens && closes {
            return Some((begins, len));
        }
    }
    None
}

/// Whether bytes cannot be text: not valid but for a character cut at their edges, or with control characters.
fn is_no_text(bytes: &[u8], encoding: Encoding) -> bool {
    if encoding != Encoding::Utf8 {
        return false;
    }
    let control = |b: &u8| *b == 0x7f || (*b < 0x20 && !matches!(*b, b'\t' | b'\n' | b'\r' | 0x0c | 0x1b));
    let start = bytes.iter().take(3).position(|b| b & 0xc0 != 0x80).unwrap_or(3);
    let valid = match std::str::from_utf8(bytes.get(start..).unwrap_or_default()) {
        Ok(_) => true,
        Err(e) => e.error_len().is_none(),
    };
    !valid || bytes.iter().any(control)
}

/// The last overflow page of a row when it was wiped. A page that is zero before the end of its chain breaks the chain; the
/// last one has no next page anyway, so that its zeros can only be told by what they stand for:
///
/// - an integer that SQLite would have stored in fewer bytes (zero takes none at all) was not written so;
/// - a text with other characters in front of the page does not go on in NULs. One that is NUL from its start is a value.
fn wiped_page(fields: &Fields, local: usize, payload: &[u8], chain: &[PageNo], pages: &Pages<'_>) -> Option<PageNo> {
    let last = *chain.last()?;
    let bytes = pages.usable_bytes(last);
    if bytes.is_empty() || bytes.iter().any(|&b| b != 0) {
        return None;
    }
    let chunk = idx(pages.split.overflow_chunk()).max(1);
    let before = chain.len().saturating_sub(1).saturating_mul(chunk);
    // All pages in front of the last are full.
    let start = local.saturating_add(before);
    let by_writer = |f: &Field| match (f.serial, f.value(payload)) {
        (1..=6, Value::Int(i)) => minimal(f.serial, i, pages),
        _ => true,
    };
    let cut = |f: &Field| {
        let (from, end) = (idx(f.start), idx(f.start).saturating_add(idx(f.len)));
        let inside = end.saturating_sub(from.max(start));
        if end <= start || inside == 0 {
            return false;
        }
        let is_text = f.serial >= 13 && f.serial & 1 == 1;
        let in_front = payload.get(from..start).unwrap_or_default();
        !by_writer(f) || (is_text && inside >= 16 && (in_front.is_empty() || in_front.iter().any(|&b| b != 0)))
    };
    fields.as_slice().iter().any(cut).then_some(last)
}

/// Whether SQLite stores this integer under this serial type. Before schema format 4 there were no types for 0 and 1.
fn minimal(serial: u64, value: i64, pages: &Pages<'_>) -> bool {
    let needed = match value {
        0 | 1 => {
            let format = pages.image(PageNo::ONE).and_then(|p| u32_at(p.bytes, 44));
            if matches!(format, Some(1..=3)) { 1 } else { 0 }
        }
        -0x80..=0x7f => 1,
        -0x8000..=0x7fff => 2,
        -0x80_0000..=0x7f_ffff => 3,
        -0x8000_0000..=0x7fff_ffff => 4,
        -0x8000_0000_0000..=0x7fff_ffff_ffff => 5,
        _ => 6,
    };
    serial == needed
}

/// The leaves in the order of the scan, each with its bounds.
fn leaf_bounds(slots: &[Slot]) -> Vec<(PageNo, Bounds)> {
    slots
        .iter()
        .filter_map(|s| match *s {
            Slot::Leaf { page, above, upto, .. } => Some((page, (above, upto))),
            _ => None,
        })
        .collect()
}
