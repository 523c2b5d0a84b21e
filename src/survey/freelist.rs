//! The freelist: a chain of trunk pages, each naming leaves (section 1.5).

use crate::ctx::Ctx;
use crate::error::Result;
use crate::finding::{Code, Defect, Findings, Note, Site};
use crate::format::freelist::Trunk;
use crate::tree::{Claims, Owner, Pages, Role};

/// What the freelist holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Freelist {
    /// Trunk pages reached.
    pub trunks: u32,
    /// Leaves named that no tree uses.
    pub leaves: u32,
    /// Whether the chain is whole and agrees with the header: what is free is then known.
    pub whole: bool,
}

/// Walks the freelist and claims its pages; a page that a tree has stays the tree's. Each trunk is entered once, which
/// bounds the walk by the number of pages.
///
/// # Errors
/// Cancellation only.
pub fn walk(pages: &Pages<'_>, first: u32, declared: u32, claims: &Claims, log: &mut Findings, ctx: &Ctx) -> Result<Freelist> {
    let mut list = Freelist { whole: true, ..Freelist::default() };
    let mut next = first;
    let mut named = 0_u32;
    while next != 0 {
        ctx.check()?;
        let Some(no) = pages.resolve(next, Code::TrunkOutside, 32).note(log, Site::default()) else {
            list.whole = false;
            break;
        };
        let here = pages.site(Site::default(), no);
        match claims.claim(no, Owner::FREELIST, Role::FreelistTrunk) {
            Ok(()) => {}
            Err(Owner::FREELIST) => {
                log.add(Defect::new(Code::TrunkLoop, 0, u64::from(next), 0), here);
                list.whole = false;
                break;
            }
            Err(_) => {
                log.add(Defect::new(Code::FreePageInUse, 0, u64::from(next), 0), here);
                list.whole = false;
                break;
            }
        }
        list.trunks = list.trunks.saturating_add(1);
        named = named.saturating_add(1);
        let image = pages.image(no).map_or(&[][..], |p| p.bytes);
        let Some(trunk) = Trunk::read(image, pages.usable).note(log, here) else {
            list.whole = false;
            // The count is wrong; the next trunk still stands in front of it.
            next = crate::bytes::u32_at(image, 0).unwrap_or(0);
            continue;
        };
        for raw in trunk.leaves() {
            named = named.saturating_add(1);
            let Some(leaf) = pages.resolve(raw, Code::FreeLeafOutside, 8).note(log, here) else {
                list.whole = false;
                continue;
            };
            if claims.claim(leaf, Owner::FREELIST, Role::FreelistLeaf).is_err() {
                log.add(Defect::new(Code::FreePageInUse, 0, u64::from(raw), 0), here);
                list.whole = false;
            } else {
                list.leaves = list.leaves.saturating_add(1);
            }
        }
        next = trunk.next;
    }
    if named != declared {
        log.add(Defect::new(Code::FreelistCountWrong, 36, u64::from(declared), u64::from(named)), Site::default());
        list.whole = false;
    }
    Ok(list)
}
