//! The cells of a run of slots, in key order, with the accounting of each leaf on the way.

use crate::ctx::Ctx;
use crate::error::Result;
use crate::finding::{Code, Defect, Findings, Note, Site};
use crate::format::{Cell, Page};
use crate::ids::{PageNo, small, wide};
use crate::tree::accounting::{Coverage, free_space};
use crate::tree::mend::{MendedLeaf, UNNAMED, cell_at, explain, unexplained};
use crate::tree::{Pages, Slot};

/// A cell with its place.
#[derive(Debug, Clone, Copy)]
pub struct CellAt<'a> {
    /// The page it is on.
    pub page: PageNo,
    /// Its pointer on the page.
    pub no: u16,
    /// The cell.
    pub cell: Cell<'a>,
    /// The first cell of its leaf in this visit.
    pub first_on_page: bool,
    /// The rowid that its bytes hold, where a witness gave it another.
    pub stood: Option<i64>,
}

/// What a visit found out about the pages.
#[derive(Debug, Clone, Default)]
pub struct Visited {
    /// Pages with a finding of their own structure, in key order: cells may be missing from them.
    pub damaged: Vec<PageNo>,
    /// Cells that do not decode, by page.
    pub skipped: Vec<(PageNo, u32)>,
    /// Bytes of leaves that no cell, freeblock or fragment explains, by page.
    pub unexplained: Vec<(PageNo, u32)>,
}

/// Visits every cell of the slots that decodes. Findings of pages and cells go to `log`; `account` asks for the accounting
/// of bytes, which costs a bit map a page.
///
/// # Errors
/// Cancellation, and what `visit` returns.
pub fn visit<'a>(
    pages: &Pages<'a>,
    slots: &[Slot],
    site: Site,
    account: bool,
    log: &mut Findings,
    ctx: &Ctx,
    mut visit: impl FnMut(&mut Findings, CellAt<'a>) -> Result<()>,
) -> Result<Visited> {
    let mut coverage = Coverage::default();
    let mut seen = Visited::default();
    for slot in slots {
        ctx.check()?;
        match *slot {
            Slot::Leaf { page: no, by, .. } => {
                let here = pages.site(site, no);
                let read = pages.page(no);
                let mended = pages.mended(no);
                // The walk has noted a leaf whose header is clobbered.
                let page = if mended.is_some() { pages.leaf(no).ok() } else { pages.leaf(no).note(log, here) };
                let Some(page) = page else {
                    seen.damaged.push(no);
                    if let Some(leaf) = mended {
                        mended_cells(pages, no, leaf, log, &mut visit)?;
                    }
                    continue;
                };
                let mut sound = read.is_ok();
                let head = head(&page, pages, by.is_some(), here, log);
                sound &= head;
                if account {
                    coverage.reset(small(page.bytes().len()));
                }
                let mut first = true;
                let mut skipped = 0_u32;
                for (i, cell) in page.cells(pages.split) {
                    let Some(cell) = cell.note(log, here.cell(i)) else {
                        sound = false;
                        skipped = skipped.saturating_add(1);
                        continue;
                    };
                    if account && !coverage.mark(cell.at, cell.len) {
                        let end = cell.at.saturating_add(cell.len);
                        log.add(Defect::new(Code::CellOverlap, cell.at, u64::from(cell.at), u64::from(end)), here.cell(i));
                        sound = false;
                    }
                    if mended.is_none() {
                        visit(log, CellAt { page: no, no: i, cell, first_on_page: first, stood: None })?;
                    }
                    first = false;
                }
                if let Some(leaf) = mended {
                    sound = false;
                    let found = leaf.cells.iter().filter(|c| c.no >= UNNAMED).count();
                    skipped = skipped.saturating_sub(small(found));
                    mended_cells(pages, no, leaf, log, &mut visit)?;
                }
                if account && read.is_ok() {
                    free_space(&page, &mut coverage, |d| {
                        sound = false;
                        log.add(d, here);
                    });
                }
                if !sound {
                    seen.damaged.push(no);
                    // Where the count of cells is sound, no cell is missing.
                    let counted = head && read.is_ok();
                    let left = if account && !counted { left_over(pages, no, &page, read.is_ok()) } else { 0 };
                    if left > 0 {
                        seen.unexplained.push((no, left));
                    }
                }
                if skipped > 0 {
                    seen.skipped.push((no, skipped));
                }
            }
            Slot::Entry { page: no, cell: i } => {
                // The walk has read this cell once, so it decodes and its defects are noted.
                if let Ok(cell) = pages.page(no).and_then(|p| p.cell(i, &pages.split)) {
                    visit(log, CellAt { page: no, no: i, cell, first_on_page: false, stood: None })?;
                }
            }
            Slot::Hole { .. } => {}
        }
    }
    Ok(seen)
}

/// Bytes of a damaged leaf that nothing explains, cells that were found without a pointer taken into account.
fn left_over(pages: &Pages<'_>, no: PageNo, page: &Page<'_>, header: bool) -> u32 {
    let mut explained = explain(page, &pages.split, header);
    if let Some(leaf) = pages.mended(no) {
        let bytes = pages.usable_bytes(no);
        for cell in leaf.cells.iter().filter_map(|m| cell_at(bytes, leaf.kind, &pages.split, m)) {
            let _ = explained.coverage.mark(cell.at, cell.len);
        }
    }
    unexplained(&explained).iter().fold(0, |n, (from, to)| n.saturating_add(to.saturating_sub(*from)))
}

/// The cells of a leaf that is read otherwise than its header and pointers say.
fn mended_cells<'a>(
    pages: &Pages<'a>,
    no: PageNo,
    leaf: &MendedLeaf,
    log: &mut Findings,
    visit: &mut impl FnMut(&mut Findings, CellAt<'a>) -> Result<()>,
) -> Result<()> {
    let bytes = pages.usable_bytes(no);
    let mut first = true;
    for m in &leaf.cells {
        let Ok(raw) = Cell::read(bytes, crate::ids::idx(m.at), leaf.kind, &pages.split) else { continue };
        let (cell, stood) = match m.rowid {
            Some(rowid) => (Cell { rowid: Some(rowid), ..raw }, raw.rowid),
            None => (raw, None),
        };
        visit(log, CellAt { page: no, no: m.no, cell, first_on_page: first, stood })?;
        first = false;
    }
    Ok(())
}

/// Judges the head of a leaf; `false` when cells may be missing.
fn head(page: &Page<'_>, pages: &Pages<'_>, has_parent: bool, here: Site, log: &mut Findings) -> bool {
    let mut sound = true;
    if page.bytes().len() < crate::ids::idx(pages.usable) {
        log.add(Defect::new(Code::PageCut, 0, wide(page.bytes().len()), u64::from(pages.usable)), here);
        sound = false;
    }
    if let Some(stored) = page.stored_content_start().filter(|&s| s != page.content_start && s < small(page.pointers_end())) {
        log.add(Defect::new(Code::ContentStartBad, 5, u64::from(stored), wide(page.bytes().len())), here);
    }
    let declared = here.page.and_then(|no| pages.declared_cells(no)).unwrap_or(page.cell_count);
    let fit = page.pointer_count();
    if declared > fit {
        log.add(Defect::new(Code::CellCountTooBig, 3, u64::from(declared), u64::from(fit)), here);
        sound = false;
    } else if declared < fit {
        log.add(Defect::new(Code::CellCountTooSmall, 3, u64::from(declared), u64::from(fit)), here);
        sound = false;
    }
    if page.cell_count == 0 && has_parent {
        log.add(Defect::new(Code::LeafEmpty, 3, 0, 1), here);
        sound = false;
    }
    sound
}

/// The accounting of an interior page, whose cells the walk has read. `false` when it has a finding.
pub fn account_interior(pages: &Pages<'_>, no: PageNo, site: Site, log: &mut Findings) -> bool {
    let here = pages.site(site, no);
    let Ok(page) = pages.page(no) else { return false };
    let mut coverage = Coverage::default();
    coverage.reset(small(page.bytes().len()));
    let mut sound = true;
    for (i, cell) in page.cells(pages.split) {
        let Ok(cell) = cell else {
            sound = false;
            continue;
        };
        if !coverage.mark(cell.at, cell.len) {
            let end = cell.at.saturating_add(cell.len);
            log.add(Defect::new(Code::CellOverlap, cell.at, u64::from(cell.at), u64::from(end)), here.cell(i));
            sound = false;
        }
    }
    if sound {
        free_space(&page, &mut coverage, |d| {
            sound = false;
            log.add(d, here);
        });
    }
    sound
}
