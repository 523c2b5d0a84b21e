//! The pointer map of an auto-vacuum database against the trees (section 1.8).

use std::collections::BTreeSet;

use crate::ctx::Ctx;
use crate::error::Result;
use crate::finding::{Code, Defect, Findings, Site};
use crate::format::ptrmap::{PtrmapGeometry, PtrmapKind, entry};
use crate::ids::PageNo;
use crate::tree::{Claims, Owner, Pages, Role, Slot, Tree};

/// Claims the pages of the map and the lock-byte page for the file itself. Comes before the walks: no tree may have them.
pub fn claim(pages: &Pages<'_>, auto_vacuum: bool, claims: &Claims) {
    if pages.lock_page().get() <= pages.count() {
        let _ = claims.claim(pages.lock_page(), Owner::FILE, Role::LockByte);
    }
    if !auto_vacuum {
        return;
    }
    let geometry = PtrmapGeometry::new(pages.usable, pages.lock_page());
    let mut at = PageNo::new(2);
    while let Some(no) = at {
        if no.get() > pages.count() {
            break;
        }
        let map = geometry.map_page(no).unwrap_or(no);
        let _ = claims.claim(map, Owner::FILE, Role::PointerMap);
        at = PageNo::new(map.get().saturating_add(pages.usable.checked_div(5).unwrap_or(1)).saturating_add(1));
        // A map page that made way for the lock-byte page shifts only itself.
        if map.get() > no.get() {
            at = PageNo::new(no.get().saturating_add(pages.usable.checked_div(5).unwrap_or(1)).saturating_add(1));
        }
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
