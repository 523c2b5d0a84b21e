//! What the pages of a sidecar and of the main file say about each other: tree edges that cross between the files, the rows of
//! both schemas, and pages that are free in one and in use in the other.

use std::collections::BTreeSet;

use super::page_fit::{child_fits, closes};
use super::source::{PageRef, PageSource};
use super::wal::WalIndex;
use crate::bytes::{u16_at, u32_at};
use crate::finding::Origin;
use crate::format::cell::Split;
use crate::format::freelist::Trunk;
use crate::format::header::HEADER_LEN;
use crate::format::page::{Page, PageKind};
use crate::format::record::Fields;
use crate::ids::{PageNo, idx, wide};

/// Parent-child edges of which one end lies in the sidecar and the other in the main file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Edges {
    /// The child fits its parent, in a table tree by its rowids.
    pub(super) hold: u32,
    /// Parent and child are of index trees: they need not be of the same.
    pub(super) index: u32,
    /// It does not.
    pub(super) contradict: u32,
    /// It does not, and its place in the main file alone is right: the main file is whole there, so that the contradiction
    /// is no damage.
    pub(super) broken: u32,
}

/// Interior pages looked at for one verdict; a log that touches more says enough with these.
const PARENTS: u32 = 4096;
/// Pages of a schema that are compared: 64 leaves of 512 bytes hold some hundred objects, enough to know a database by.
const SCHEMA_PAGES: usize = 64;
/// Trunk pages of a freelist that is believed: more than a million free pages of 4096 bytes.
const TRUNKS: u32 = 1024;

fn header_at(no: PageNo) -> usize {
    if no == PageNo::ONE { HEADER_LEN } else { 0 }
}

fn sound(page: &PageRef<'_>, usable: u32) -> bool {
    closes(page.bytes, header_at(page.no), usable)
}

/// Calls `see` with each edge between sound pages with cells: parent, its kind, child, and the bounds of its rowids.
fn each_edge<'s>(pages: &'s dyn PageSource, usable: u32, see: &mut dyn FnMut(&PageRef<'s>, PageKind, &PageRef<'s>, (i64, i64))) {
    let split = Split::new(usable);
    let mut parents = 0_u32;
    for n in 1..=pages.page_count() {
        let Some(parent) = PageNo::new(n).and_then(|no| pages.page(no)) else { continue };
        let at = header_at(parent.no);
        if !matches!(parent.bytes.get(at), Some(2 | 5)) || !sound(&parent, usable) {
            continue;
        }
        let Ok(page) = Page::read_at(parent.bytes, at, usable) else { continue };
        parents = parents.saturating_add(1);
        if parents > PARENTS {
            break;
        }
        let mut low = i64::MIN;
        let last = page.right_child.map(|c| (c, i64::MAX));
        let cells = page.cells(split).filter_map(|(_, c)| c.ok()).filter_map(|c| Some((c.child?, c.rowid.unwrap_or(i64::MAX))));
        for (child, high) in cells.chain(last) {
            let bounds = (low, high);
            low = if page.kind == PageKind::TableInterior { high } else { i64::MIN };
            let Some(child) = PageNo::new(child).and_then(|no| pages.page(no)) else { continue };
            let empty = Page::read_at(child.bytes, 0, usable).is_ok_and(|p| p.cell_count == 0);
            if !empty && sound(&child, usable) {
                see(&parent, page.kind, &child, bounds);
            }
        }
    }
}

/// Tests each edge of the blended state that crosses between the files: the child must be of its parent's tree kind, and in
/// table trees its rowids must lie within its parent's bounds. Only pages that are sound in themselves testify, so damage is
/// not taken for another database.
pub(super) fn crossing(blended: &dyn PageSource, alone: Option<&dyn PageSource>, usable: u32) -> Edges {
    let split = Split::new(usable);
    let mut out = Edges::default();
    let mut contradicted = Vec::new();
    each_edge(blended, usable, &mut |parent, kind, child, (low, high)| {
        if (child.origin == Origin::Main) == (parent.origin == Origin::Main) {
            return;
        }
        if !child_fits(child.bytes, kind, &split, low, high) {
            out.contradict = out.contradict.saturating_add(1);
            contradicted.push(child.no);
        } else if kind.is_table() {
            out.hold = out.hold.saturating_add(1);
        } else {
            out.index = out.index.saturating_add(1);
        }
    });
    if let (Some(alone), false) = (alone, contradicted.is_empty()) {
        let mut held = BTreeSet::new();
        each_edge(alone, usable, &mut |_, kind, child, (low, high)| {
            if child_fits(child.bytes, kind, &split, low, high) {
                held.insert(child.no);
            }
        });
        let broken = contradicted.iter().filter(|no| held.contains(no)).count();
        out.broken = u32::try_from(broken).unwrap_or(u32::MAX);
    }
    out
}

/// Frames of a log that stand byte for byte in the main file, as a checkpoint of it leaves them; empty pages do not count.
pub(super) fn checkpointed(wal: &WalIndex<'_>, alone: &dyn PageSource) -> u32 {
    let mut out = 0_u32;
    for frame in (0..wal.frames.len()).take(idx(PARENTS)).filter_map(|i| wal.frame_at(i)) {
        let Some(page) = PageNo::new(frame.page_raw).and_then(|no| alone.page(no)) else { continue };
        let at = header_at(page.no);
        let has_cells = matches!(page.bytes.get(at), Some(2 | 5 | 10 | 13)) && u16_at(page.bytes, at.saturating_add(3)) > Some(0);
        out = out.saturating_add(u32::from(has_cells && page.bytes == frame.image));
    }
    out
}

/// (type, name, rootpage) of schema rows, raw.
pub(super) type SchemaRows = BTreeSet<(Vec<u8>, Vec<u8>, i64)>;

/// Adds the schema rows on a leaf.
pub(super) fn leaf_rows(image: &[u8], header_at: usize, usable: u32, out: &mut SchemaRows) {
    let Some(page) = Page::read_at(image, header_at, usable).ok().filter(|p| p.kind == PageKind::TableLeaf) else { return };
    let mut fields = Fields::new();
    for (_, cell) in page.cells(Split::new(usable)) {
        let Ok(cell) = cell else { continue };
        // Long SQL overflows; the first four values lie in front of it.
        let _ = fields.read(cell.local, cell.payload_len);
        let value = |i: usize| fields.value(cell.local, i);
        if let (Some(kind), Some(name), Some(root)) =
            (value(0).and_then(|v| v.as_text()), value(1).and_then(|v| v.as_text()), value(3).and_then(|v| v.as_int()))
        {
            out.insert((kind.to_vec(), name.to_vec(), root));
        }
    }
}

/// The schema rows of a state, as far as [`SCHEMA_PAGES`] pages of its schema tree hold them.
pub(super) fn schema_rows(pages: &dyn PageSource, usable: u32) -> SchemaRows {
    let mut out = SchemaRows::new();
    let (mut todo, mut seen) = (vec![PageNo::ONE], BTreeSet::new());
    while let Some(no) = todo.pop() {
        if seen.len() >= SCHEMA_PAGES || !seen.insert(no) {
            continue;
        }
        let Some(image) = pages.page(no) else { continue };
        let Ok(page) = Page::read_at(image.bytes, header_at(no), usable) else { continue };
        match page.kind {
            PageKind::TableLeaf => leaf_rows(image.bytes, header_at(no), usable, &mut out),
            PageKind::TableInterior => {
                todo.extend(page.children(Split::new(usable)).filter_map(PageNo::new).take(SCHEMA_PAGES));
            }
            PageKind::IndexLeaf | PageKind::IndexInterior => {}
        }
    }
    out
}

/// Root pages that the schema of the main file names, against the kinds of their images in the sidecar.
pub(super) fn roots(schema: &SchemaRows, blended: &dyn PageSource, usable: u32) -> Edges {
    let mut out = Edges::default();
    for (kind, _, root) in schema {
        let Some(page) = u32::try_from(*root).ok().and_then(PageNo::new).and_then(|no| blended.page(no)) else { continue };
        if page.origin == Origin::Main || !sound(&page, usable) {
            continue;
        }
        let Some(found) = page.bytes.first().copied().and_then(PageKind::from_byte) else { continue };
        // "index" in any encoding begins with or contains an i; a table WITHOUT ROWID has an index tree and says nothing.
        let says_index = kind.contains(&b'x');
        if says_index && found.is_table() {
            out.contradict = out.contradict.saturating_add(1);
        } else if says_index || found.is_table() {
            out.hold = out.hold.saturating_add(1);
        }
    }
    out
}

/// The free pages that a main file lists, when its freelist agrees with its own count; `None` when it does not.
fn free_pages(main: &dyn PageSource, usable: u32) -> Option<BTreeSet<PageNo>> {
    let header = main.page(PageNo::ONE)?.bytes;
    let (mut next, count) = (u32_at(header, 32)?, u32_at(header, 36)?);
    let mut out = BTreeSet::new();
    for _ in 0..TRUNKS {
        let Some(no) = PageNo::new(next) else {
            return (wide(out.len()) == u64::from(count)).then_some(out);
        };
        let page = main.page(no)?;
        let trunk = Trunk::read(page.bytes, usable).ok()?;
        for leaf in [no.get()].into_iter().chain(trunk.leaves()) {
            let leaf = PageNo::new(leaf).filter(|p| p.get() <= main.page_count())?;
            if !out.insert(leaf) {
                return None;
            }
        }
        next = trunk.next;
    }
    None
}

/// Pages that are free in the main file and b-tree pages with cells in the sidecar. Who takes a page from the freelist
/// writes page 1, so that a sidecar without one cannot hold such a page.
pub(super) fn free_in_use(main: &dyn PageSource, blended: &dyn PageSource, usable: u32) -> u32 {
    let Some(free) = free_pages(main, usable) else { return 0 };
    let used = free.into_iter().filter_map(|no| blended.page(no)).filter(|p| p.origin != Origin::Main && sound(p, usable));
    u32::try_from(used.count()).unwrap_or(u32::MAX)
}
