//! The freelist: a chain of trunk pages, each naming leaves (section 1.5).

use std::collections::{BTreeMap, BTreeSet};

use crate::ctx::Ctx;
use crate::error::Result;
use crate::finding::{Code, Defect, Findings, Note, Site};
use crate::format::freelist::Trunk;
use crate::ids::{PageNo, wide};
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

impl Freelist {
    /// Looks for trunks that the chain does not reach, because the header or a trunk before them is damaged: orphans that
    /// read as a trunk and name orphans only. Gives all pages that were free by them. A trunk that names none has eight zero
    /// bytes where the header of the page was that it had been before. Where one trunk leads to another that is not there, or
    /// where there is more than one chain, the freelist is not whole.
    #[must_use]
    pub fn forgotten(&mut self, pages: &Pages<'_>, claims: &Claims, orphans: &[PageNo], log: &mut Findings) -> BTreeSet<PageNo> {
        let lost: BTreeSet<PageNo> = orphans.iter().copied().collect();
        let mut trunks: BTreeMap<PageNo, (Option<PageNo>, Vec<PageNo>)> = BTreeMap::new();
        for &no in orphans {
            let Some(trunk) = pages.image(no).and_then(|p| Trunk::read(p.bytes, pages.usable).ok()) else { continue };
            let next = PageNo::new(trunk.next);
            let follows = next.is_none_or(|n| n != no && (lost.contains(&n) || claims.owner(n) == Some(Owner::FREELIST)));
            let leaves: Option<Vec<PageNo>> = trunk.leaves().map(|n| PageNo::new(n).filter(|n| *n != no && lost.contains(n))).collect();
            let Some(leaves) = leaves.filter(|_| follows) else { continue };
            if leaves.iter().collect::<BTreeSet<_>>().len() == leaves.len() {
                trunks.insert(no, (next, leaves));
            }
        }
        let followed: BTreeSet<PageNo> = trunks.values().filter_map(|(next, _)| *next).collect();
        let heads = trunks.iter().filter(|(no, (_, leaves))| !leaves.is_empty() && !followed.contains(no)).count();
        let broken = followed.iter().any(|no| lost.contains(no) && !trunks.contains_key(no));
        self.whole &= heads <= 1 && !broken;
        let mut freed = BTreeSet::new();
        for (no, (_, leaves)) in trunks {
            if !leaves.is_empty() {
                log.add(Defect::new(Code::TrunkForgotten, 0, wide(leaves.len()), 0), pages.site(Site::default(), no));
            }
            freed.insert(no);
            freed.extend(leaves);
        }
        freed
    }
}
