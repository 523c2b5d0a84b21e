//! Cells that header and pointers of their leaf do not lead to any more.
//!
//! Tests:    bytes of damaged leaves that no cell, freeblock or fragment explains; children that read as no page.
//! Collects: whole cells that fit the table, as mended leaves.
//! Leaves:   whether a row was deleted before the damage, to the indexes of the table; rowids, to [`super::rowids`].

use std::collections::BTreeSet;

use crate::ctx::Ctx;
use crate::error::Result;
use crate::finding::{Code, Defect, Site};
use crate::format::{Cell, Fields, Page, PageKind, Value};
use crate::ids::{ObjectId, PageNo, idx, small, wide};
use crate::survey::pass4_compare::compare;
use crate::survey::pass5_restore::places::{edges, reader};
use crate::survey::rows::key::KeyOrder;
use crate::survey::rows::plan::Row;
use crate::survey::rows::reader::Reader;
use crate::survey::stages::{Content, Scanned};
use crate::tree::bounds::{self, Bounds};
use crate::tree::mend::{UNNAMED, explain, tile, unexplained};
use crate::tree::payload::PayloadReader;
use crate::tree::repair::plausible;
use crate::tree::{MendedCell, MendedLeaf, Role, Slot, TreeKind};

/// Leaves that are searched in one round; each costs a decoding attempt for every byte that is not explained.
const LEAVES: usize = 20_000;

/// A cell that has no number yet.
const NONE: u16 = u16::MAX;

/// Bytes that a record must have before two equal ones are taken for one row: shorter ones are equal by accident.
const TWIN: usize = 8;

/// Leaves whose records are counted for how many values those of a table have.
const WIDTH_SAMPLE: usize = 64;

/// Finds cells without a pointer; `true` when a leaf is read otherwise from now on.
///
/// # Errors
/// Cancellation only.
pub(super) fn cells(survey: &mut Scanned<'_>, ctx: &Ctx) -> Result<bool> {
    let mut found: Vec<(usize, PageNo, MendedLeaf, Vec<u16>, bool)> = Vec::new();
    for (i, t) in survey.trees.iter().enumerate() {
        let Some(Content::Table { plan, scan }) = &t.content else { continue };
        if t.object == ObjectId::SCHEMA || scan.damaged.is_empty() {
            continue;
        }
        let Some(reader) = reader(survey, i) else { continue };
        let witness = compare::has_witness(survey, plan);
        let bounds = bounds::of_leaves(&t.tree.slots);
        let widths = widths(survey, &t.tree.slots);
        for no in scan.damaged.iter().copied().filter(|no| survey.pages.mended(*no).is_none()) {
            ctx.check()?;
            if found.len() >= LEAVES {
                break;
            }
            let within = bounds.get(&no).copied().unwrap_or_default();
            let mut fit = Fit::new(survey, &reader, &widths, within);
            if let Some((leaf, stale, carved)) = search(survey, &mut fit, &t.tree.slots, no, witness) {
                found.push((i, no, leaf, stale, carved));
            }
        }
    }
    let any = !found.is_empty();
    for (i, no, leaf, stale, carved) in found {
        survey.changed(i);
        survey.stale.extend(stale.into_iter().map(|c| (no, c)));
        if carved {
            // Its header does not say what is free: an index may know better.
            survey.adopted.insert(no);
        }
        survey.unnamed.insert(no);
        survey.pages.mend(no, leaf);
    }
    Ok(any)
}

/// A leaf with its cells, those of them that lie in free space, and whether it was read without its header.
fn search(survey: &Scanned<'_>, fit: &mut Fit<'_, '_>, slots: &[Slot], no: PageNo, witness: bool) -> Option<(MendedLeaf, Vec<u16>, bool)> {
    let (pages, reader) = (&survey.pages, fit.reader);
    let page = pages.leaf(no).ok()?;
    if page.kind.is_interior() {
        return None;
    }
    let sound = pages.page(no).is_ok();
    let named: Vec<(u16, Cell<'_>)> = page.cells(pages.split).filter_map(|(i, c)| Some((i, c.ok()?))).collect();
    let explained = explain(&page, &pages.split, sound);
    if !explained.trusted {
        let mut carved = carve(survey, page.bytes(), page.pointers_at(), page.kind, fit);
        if let Some(at) = slots.iter().position(|s| matches!(s, Slot::Leaf { page, .. } if *page == no)) {
            between(survey, reader, slots, at, &mut carved);
        }
        if carved.len() > named.len().saturating_mul(2) {
            return Some((leaf_of(survey, reader, page.kind, carved), Vec::new(), true));
        }
        if !witness {
            return None;
        }
    }
    let mut places: Vec<u32> = Vec::new();
    for range in unexplained(&explained) {
        places.extend(tile(page.bytes(), range, page.kind, &pages.split, false, &mut |c| fit.fits(c)));
    }
    let rowids: BTreeSet<i64> = named.iter().filter_map(|(_, c)| c.rowid).collect();
    let mut cells: Vec<(MendedCell, Cell<'_>)> = Vec::new();
    let mut seen = BTreeSet::new();
    for (i, cell) in named {
        if seen.insert(cell.at) {
            cells.push((MendedCell { no: i, at: cell.at, rowid: None }, cell));
        }
    }
    let before = cells.len();
    let mut next = UNNAMED;
    let mut twins = false;
    for at in places {
        let Ok(cell) = Cell::read(page.bytes(), idx(at), page.kind, &pages.split) else { continue };
        if cell.rowid.is_some_and(|r| rowids.contains(&r)) || !seen.insert(at) {
            continue;
        }
        // A named cell with the same record was this cell before its rowid was changed.
        let twin = |c: &Cell<'_>| c.overflow.is_none() && c.local == cell.local && c.local.len() >= TWIN;
        if let (Some(rowid), Some((m, _))) = (cell.rowid, cells.iter_mut().take(before).find(|(m, c)| m.rowid.is_none() && twin(c))) {
            m.rowid = Some(rowid);
            twins = true;
            continue;
        }
        cells.push((MendedCell { no: next, at, rowid: None }, cell));
        next = next.saturating_add(1);
    }
    if cells.len() == before && !twins {
        return None;
    }
    let misread = drop_misread(&mut cells, before);
    // A pointer that leads nowhere, to free space or to a cell of another pointer has lost its cell. More cells than such
    // pointers lie in free space whose chain was cut: only an index can tell that they are live.
    let free = cells.iter().take(before).filter(|(m, _)| explained.trusted && m.at < explained.start).count();
    let before = before.saturating_sub(misread);
    let astray = usize::from(page.pointer_count()).saturating_sub(before).saturating_add(free);
    let behind = |at: u32| (0..=astray).any(|i| pointer_behind(&page, i) == Some(at));
    let counted = pages.declared_cells(no) == Some(page.cell_count);
    if counted && !witness && !twins && cells.len().saturating_sub(before) > astray && !cells.iter().skip(before).all(|(m, _)| behind(m.at))
    {
        return None;
    }
    let stale: Vec<u16> = cells.iter().filter(|(m, _)| explained.trusted && m.at < explained.start).map(|(m, _)| m.no).collect();
    Some((leaf_of(survey, reader, page.kind, cells), stale, false))
}

/// Takes cells out whose record makes no sense and that lie over a cell which was found: their pointer missed it. The first
/// `named` of the cells have a pointer. How many were taken out.
fn drop_misread(cells: &mut Vec<(MendedCell, Cell<'_>)>, named: usize) -> usize {
    let end = |c: &Cell<'_>| c.at.saturating_add(c.len);
    let found: Vec<(u32, u32)> = cells.iter().skip(named).map(|(_, c)| (c.at, end(c))).collect();
    let (mut fields, mut i, before) = (Fields::new(), 0_usize, cells.len());
    cells.retain(|(_, c)| {
        i = i.saturating_add(1);
        i > named || plausible(c, &mut fields) || !found.iter().any(|&(from, to)| c.at < to && from < end(c))
    });
    before.saturating_sub(cells.len())
}

/// What stands where the pointer array would go on, were the count of cells higher.
fn pointer_behind(page: &Page<'_>, i: usize) -> Option<u32> {
    crate::bytes::u16_at(page.bytes(), page.pointers_end().saturating_add(i << 1)).map(u32::from)
}

/// Whether cells fit a table or index; keeps buffers.
struct Fit<'s, 'a> {
    survey: &'s Scanned<'a>,
    reader: &'s Reader,
    /// How many values other records of the tree have.
    widths: &'s BTreeSet<usize>,
    bounds: Bounds,
    payload: PayloadReader,
    fields: Fields,
}

impl<'s, 'a> Fit<'s, 'a> {
    fn new(survey: &'s Scanned<'a>, reader: &'s Reader, widths: &'s BTreeSet<usize>, bounds: Bounds) -> Fit<'s, 'a> {
        Fit { survey, reader, widths, bounds, payload: PayloadReader::new(), fields: Fields::new() }
    }

    /// Whether a cell can be a row of the table: every value in its class, as many values as the table has columns or had
    /// when other rows of it were written, and the rowid within the bounds of the leaf.
    fn fits(&mut self, cell: &Cell<'_>) -> bool {
        if cell.rowid.is_some_and(|r| !bounds::inside(self.bounds, r)) {
            return false;
        }
        let Ok(payload) = self.payload.read(&self.survey.pages, cell) else { return false };
        if self.fields.read(payload, cell.payload_len).is_err() {
            return false;
        }
        // Nothing but its shape speaks for the cell: text that is none was overwritten.
        let encoding = self.survey.encoding;
        if self.fields.values(payload).any(|v| matches!(v, Value::Text(t) if !encoding.is_valid(t))) {
            return false;
        }
        let row = Row { rowid: cell.rowid, payload, fields: &self.fields };
        (self.reader.is_full(&row) || self.widths.contains(&row.fields.len())) && self.reader.fits(&row)
    }
}

/// How many values the records of a table have, over a sample of its leaves: rows from before ADD COLUMN have fewer.
fn widths(survey: &Scanned<'_>, slots: &[Slot]) -> BTreeSet<usize> {
    let mut widths = BTreeSet::new();
    let mut fields = Fields::new();
    let leaves: Vec<PageNo> = slots.iter().filter_map(|s| if let Slot::Leaf { page, .. } = s { Some(*page) } else { None }).collect();
    for no in leaves.iter().step_by(leaves.len().div_ceil(WIDTH_SAMPLE).max(1)) {
        let Ok(page) = survey.pages.page(*no) else { continue };
        for (_, cell) in page.cells(survey.pages.split) {
            if let Ok(cell) = cell
                && plausible(&cell, &mut fields)
            {
                widths.insert(fields.len());
            }
        }
    }
    widths
}

/// The cells of a leaf whose header and pointers are gone. When bounds of the parents let none through they are taken for
/// wrong: separators are hints.
fn carve<'a>(survey: &Scanned<'a>, bytes: &'a [u8], from: usize, kind: PageKind, fit: &mut Fit<'_, '_>) -> Vec<(MendedCell, Cell<'a>)> {
    let range = (small(from), small(bytes.len()));
    let split = survey.pages.split;
    let mut places = tile(bytes, range, kind, &split, true, &mut |c| fit.fits(c));
    if places.is_empty() && fit.bounds != (None, None) {
        fit.bounds = (None, None);
        places = tile(bytes, range, kind, &split, true, &mut |c| fit.fits(c));
    }
    let mut out: Vec<(MendedCell, Cell<'a>)> = Vec::new();
    let mut rowids = BTreeSet::new();
    // Of two cells with one rowid the one that was written later lies lower.
    for at in places {
        let Ok(cell) = Cell::read(bytes, idx(at), kind, &split) else { continue };
        if cell.rowid.is_none_or(|r| rowids.insert(r)) {
            out.push((MendedCell { no: NONE, at, rowid: None }, cell));
        }
    }
    out
}

/// Leaves of cells that were carved from an index-like leaf those whose keys lie between the keys around the leaf. What a
/// split moved to another leaf still stands in the bytes.
fn between(survey: &Scanned<'_>, reader: &Reader, slots: &[Slot], at: usize, cells: &mut Vec<(MendedCell, Cell<'_>)>) {
    let Some(key) = reader.key() else { return };
    let mut order = KeyOrder::new(key, survey.encoding);
    let (before, behind) = edges(survey, slots, at);
    let mut payload = PayloadReader::new();
    cells.retain(|(_, c)| {
        let Ok(record) = payload.read(&survey.pages, c) else { return false };
        order.is_between(before.as_deref(), record, behind.as_deref())
    });
}

/// Cells in key order; those without a number get one. Cells of a rowid table that have a pointer keep the order of their
/// pointers, so that a rowid that breaks it still shows.
fn leaf_of(survey: &Scanned<'_>, reader: &Reader, kind: PageKind, mut cells: Vec<(MendedCell, Cell<'_>)>) -> MendedLeaf {
    if let Some(key) = reader.key() {
        let mut order = KeyOrder::new(key, survey.encoding);
        let mut payload = PayloadReader::new();
        let with: Vec<(Vec<u8>, (MendedCell, Cell<'_>))> =
            cells.into_iter().map(|c| (payload.read(&survey.pages, &c.1).map(<[u8]>::to_vec).unwrap_or_default(), c)).collect();
        cells = order.in_order(with).into_iter().map(|(_, c)| c).collect();
    } else {
        let (named, mut others): (Vec<_>, Vec<_>) = cells.into_iter().partition(|(m, _)| m.no < UNNAMED && m.no != NONE);
        others.sort_by_key(|(_, c)| c.rowid);
        cells = named;
        for other in others {
            let at = cells.iter().position(|(_, c)| c.rowid > other.1.rowid).unwrap_or(cells.len());
            cells.insert(at, other);
        }
    }
    let cells = cells.iter().enumerate().map(|(i, (m, _))| match m.no {
        NONE => MendedCell { no: u16::try_from(i).unwrap_or(0), ..*m },
        _ => *m,
    });
    MendedLeaf { kind, cells: cells.collect() }
}

/// Children that read as no page although their cells are whole: header and pointers destroyed. `true` when one came back.
///
/// # Errors
/// Cancellation only.
pub(super) fn leaves(survey: &mut Scanned<'_>, ctx: &Ctx) -> Result<bool> {
    let mut found: Vec<(usize, usize, PageNo, Bounds, Option<(PageNo, u16)>, MendedLeaf)> = Vec::new();
    for (i, t) in survey.trees.iter().enumerate() {
        if t.object == ObjectId::SCHEMA || t.tree.holes() == 0 {
            continue;
        }
        let Some(reader) = reader(survey, i) else { continue };
        let widths = widths(survey, &t.tree.slots);
        for (at, slot) in t.tree.slots.iter().enumerate() {
            ctx.check()?;
            let Slot::Hole { by, child, above, upto, height } = *slot else { continue };
            let Some(no) = PageNo::new(child).filter(|_| height.is_none_or(|h| h == 0) && found.len() < LEAVES) else { continue };
            let mine = survey.claims.owner(no).is_some_and(|o| wide(i) == u64::from(o.0));
            if !mine || survey.claims.role(no) != Role::Unreadable {
                continue;
            }
            let kind = t.tree.kind.leaf();
            let bytes = survey.pages.usable_bytes(no);
            let from = survey.pages.header_at(no).saturating_add(kind.header_len());
            let mut fit = Fit::new(survey, &reader, &widths, (above, upto));
            let mut cells = carve(survey, bytes, from, kind, &mut fit);
            between(survey, &reader, &t.tree.slots, at, &mut cells);
            if !cells.is_empty() {
                found.push((i, at, no, (above, upto), by, leaf_of(survey, &reader, kind, cells)));
            }
        }
    }
    let any = !found.is_empty();
    for (i, at, no, (above, upto), by, leaf) in found {
        survey.changed(i);
        let Scanned { known, trees, .. } = &mut *survey;
        let Some(t) = trees.get_mut(i) else { continue };
        let site = known.pages.site(Site::object(t.object), no);
        known.noted.push((Defect::new(Code::LeafCarved, 0, wide(leaf.cells.len()), 0), site));
        if let Some(slot) = t.tree.slots.get_mut(at) {
            *slot = Slot::Leaf { page: no, by, above, upto };
        }
        let role = if t.tree.kind == TreeKind::Table { Role::TableLeaf } else { Role::IndexLeaf };
        known.claims.release(no);
        let _ = known.claims.claim(no, t.tree.owner, role);
        known.adopted.insert(no);
        known.pages.mend(no, leaf);
    }
    Ok(any)
}
