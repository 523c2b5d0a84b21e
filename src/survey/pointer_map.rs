//! The pointer map of an auto-vacuum database against the trees (section 1.8).

use std::collections::BTreeSet;

use crate::ctx::Ctx;
use crate::error::Result;
use crate::finding::{Code, Defect, Findings, Site};
use crate::format::ptrmap::{PtrmapGeometry, PtrmapKind, entry};
use crate::format::{DatabaseHeader, PageKind};
use crate::ids::PageNo;
use crate::tree::{Claims, Owner, Pages, Role, Slot, Tree, repair};

/// Pages of a map that are looked at to tell whether there is one.
const MAPS: usize = 16;

/// Entries of a page that are compared with the trees for it.
const ENTRIES: u32 = 64;

/// Entries that must agree before a map is believed that the header does not know.
const LEAST: u32 = 4;

/// Settles whether the file has a pointer map, and with it the largest root in the header: a page where a map page would be
/// and that is a page of a tree speaks against it, one whose entries agree with the trees for it. `roots` are those that the
/// schema names.
#[must_use]
pub fn settle(pages: &Pages<'_>, mut header: DatabaseHeader, roots: &BTreeSet<PageNo>, log: &mut Findings) -> DatabaseHeader {
    let (mut maps, mut trees, mut named, mut largest) = (0_u32, 0_u32, 0_u32, 0_u32);
    for no in map_pages(pages).into_iter().take(MAPS) {
        let (agree, seen, root) = agreement(pages, no);
        if agree >= LEAST.min(seen.max(1)) && agree.saturating_mul(10) >= seen.saturating_mul(9) {
            maps = maps.saturating_add(u32::from(agree >= LEAST || header.largest_root != 0));
            largest = largest.max(root);
        } else if is_tree_page(pages, no) {
            trees = trees.saturating_add(1);
            named = named.saturating_add(u32::from(roots.contains(&no)));
        }
    }
    let said = header.largest_root;
    // One page of a tree where the only map page should be may be a misdirected write, but not where the schema leads to it.
    if said != 0 && (named > maps || (trees > 1 && maps == 0)) {
        header.largest_root = 0;
        header.incremental_vacuum = 0;
    } else if said == 0 && maps > trees && largest > 1 {
        header.largest_root = largest;
    } else {
        return header;
    }
    let defect = Defect::new(Code::AutoVacuumLies, 52, u64::from(said), u64::from(header.largest_root));
    log.add(defect, pages.site(Site::default(), PageNo::ONE));
    header
}

/// How many of the first entries of what would be a page of the map agree with the trees, of how many, and the largest root.
fn agreement(pages: &Pages<'_>, map: PageNo) -> (u32, u32, u32) {
    let (mut agree, mut seen, mut largest) = (0_u32, 0_u32, 0_u32);
    let geometry = PtrmapGeometry::new(pages.usable, pages.lock_page());
    let mut at = map.next();
    while let Some(no) = at.filter(|no| no.get() <= pages.count() && seen < ENTRIES && geometry.map_page(*no) == Some(map)) {
        at = no.next();
        let Some((kind, parent)) = lookup(pages, no) else { break };
        let child_of = |p: &crate::format::Page<'_>| {
            p.right_child == Some(no.get()) || p.cells(pages.split).any(|(_, c)| c.is_ok_and(|c| c.child == Some(no.get())))
        };
        let says = match kind {
            Some(PtrmapKind::Root) => parent == 0 && pages.page(no).is_ok(),
            Some(PtrmapKind::Btree) => {
                PageNo::new(parent).filter(|p| p.get() <= pages.count()).is_some_and(|p| pages.page(p).is_ok_and(|p| child_of(&p)))
            }
            // Nothing can be said of these without reading chains; they only must not be nonsense.
            Some(PtrmapKind::Free) => {
                if parent == 0 {
                    continue;
                }
                false
            }
            Some(PtrmapKind::Overflow1 | PtrmapKind::Overflow2) => {
                if (2..=pages.count()).contains(&parent) {
                    continue;
                }
                false
            }
            None => false,
        };
        seen = seen.saturating_add(1);
        agree = agree.saturating_add(u32::from(says));
        if says && kind == Some(PtrmapKind::Root) {
            largest = largest.max(no.get());
        }
    }
    (agree, seen, largest)
}

/// Whether all of a page says that it is one of a tree.
fn is_tree_page(pages: &Pages<'_>, no: PageNo) -> bool {
    let bytes = pages.usable_bytes(no);
    let Some(kind) = bytes.first().and_then(|b| PageKind::from_byte(*b)) else { return false };
    match pages.page(no) {
        Ok(page) if page.cell_count == 0 => !kind.is_interior(),
        Ok(_) => repair::reads_as(bytes, 0, kind, &pages.split),
        Err(_) => false,
    }
}

/// The places of the pages of a map.
fn map_pages(pages: &Pages<'_>) -> Vec<PageNo> {
    let geometry = PtrmapGeometry::new(pages.usable, pages.lock_page());
    let span = pages.usable.checked_div(5).unwrap_or(1).saturating_add(1);
    let mut out = Vec::new();
    let mut at = 2_u32;
    // A map page that made way for the lock-byte page shifts only itself.
    while let Some(no) = PageNo::new(at).filter(|no| no.get() <= pages.count()) {
        out.extend(geometry.map_page(no));
        let Some(next) = at.checked_add(span) else { break };
        at = next;
    }
    out
}

/// Claims the pages of the map and the lock-byte page for the file itself. Comes before the walks: no tree may have them.
pub fn claim(pages: &Pages<'_>, auto_vacuum: bool, claims: &Claims) {
    if pages.lock_page().get() <= pages.count() {
        let _ = claims.claim(pages.lock_page(), Owner::FILE, Role::LockByte);
    }
    if !auto_vacuum {
        return;
    }
    for map in map_pages(pages) {
        let _ = claims.claim(map, Owner::FILE, Role::PointerMap);
    }
}

/// The entry that the map has for a page.
#[must_use]
pub fn lookup(pages: &Pages<'_>, no: PageNo) -> Option<(Option<PtrmapKind>, u32)> {
    let geometry = PtrmapGeometry::new(pages.usable, pages.lock_page());
    let map = geometry.map_page(no)?;
    entry(pages.usable_bytes(map), geometry.entry_at(no)?)
}

/// Compares the map with the roots, interior pages and leaves of the trees. Overflow chains are compared where they are read.
///
/// # Errors
/// Cancellation only.
pub fn compare(pages: &Pages<'_>, trees: &[&Tree], adopted: &BTreeSet<PageNo>, log: &mut Findings, ctx: &Ctx) -> Result<()> {
    for tree in trees {
        ctx.check()?;
        let mut judge = |no: PageNo, parent: Option<PageNo>| {
            if no == PageNo::ONE {
                return;
            }
            let want = match parent {
                None => (PtrmapKind::Root, 0),
                Some(p) => (PtrmapKind::Btree, p.get()),
            };
            let got = lookup(pages, no);
            if got != Some((Some(want.0), want.1)) {
                let code = |kind: u8, parent: u32| (u64::from(kind) << 32) | u64::from(parent);
                let (kind, of) = got.map_or((0, 0), |(k, p)| (k.map_or(0, PtrmapKind::byte), p));
                let d = Defect::new(Code::PtrmapWrong, 0, code(kind, of), code(want.0.byte(), want.1));
                log.add_with(d, pages.site(Site::default(), no), format!("page {no}: type {kind} parent {of}"));
            }
        };
        for &(no, parent) in &tree.interiors {
            judge(no, parent);
        }
        for slot in &tree.slots {
            if let Slot::Leaf { page, by, .. } = slot {
                // The parent of an adopted leaf is gone, and with it what the map should say.
                if !adopted.contains(page) {
                    judge(*page, by.map(|b| b.0));
                }
            }
        }
    }
    Ok(())
}
