//! Orphaned leaves come back through the holes of the trees that lost them.
//!
//! Tests:    key range against the bounds of the hole, number of values, storage classes, NOT NULL, pointer-map parents.
//! Collects: for each orphan the one tree and hole that it fits.
//! Leaves:   orphans that fit nothing, or two trees equally well; rows that a whole index does not know (they were deleted).

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;

use crate::ctx::Ctx;
use crate::error::Result;
use crate::finding::{Code, Defect, Site};
use crate::format::ptrmap::PtrmapKind;
use crate::format::{Page, PageKind};
use crate::ids::{ObjectId, PageNo, narrow, wide};
use crate::survey::pass5_restore::holes::{Extent, Holes};
use crate::survey::pass5_restore::places::is_vouched;
use crate::survey::pass5_restore::places::reader;
use crate::survey::pass5_restore::{branches, orphan_trees};
use crate::survey::pointer_map;
use crate::survey::rows::key::KeyOrder;
use crate::survey::rows::plan::IndexPlan;
use crate::survey::rows::profile::Profile;
use crate::survey::rows::reader::Reader;
use crate::survey::rows::reader::shape_of_page;
use crate::survey::stages::Scanned;
use crate::tree::payload::PayloadReader;
use crate::tree::{Role, Slot, Tree, TreeKind};

/// Orphans against trees with holes: enough for a million orphans and a hundred trees.
const COMPARISONS: u64 = 100_000_000;

/// Children that one interior page can have: its smallest cell and the pointer to it take seven bytes.
const CHILDREN: usize = 65_536 / 7;

/// An orphan that may be a leaf of some tree.
struct Orphan {
    page: PageNo,
    kind: PageKind,
    /// Lowest and highest rowid, on table leaves.
    range: Option<(i64, i64)>,
    /// The first record, for the order of index leaves.
    first: Vec<u8>,
}

impl Orphan {
    fn extent(&self) -> Extent<'_> {
        match self.range {
            Some((low, high)) => Extent::Rowids(low, high),
            None => Extent::Record(&self.first),
        }
    }
}

/// Where an orphan could go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    score: u32,
    tree: usize,
    slot: usize,
}

/// Puts orphans back into holes; `true` when a tree changed, so that it has to be scanned anew.
///
/// # Errors
/// Cancellation only.
pub(super) fn adopt(survey: &mut Scanned<'_>, ctx: &Ctx) -> Result<bool> {
    let with_holes: Vec<usize> = survey
        .trees
        .iter()
        .enumerate()
        .filter(|(_, t)| t.object != ObjectId::SCHEMA && t.tree.slots.iter().any(|s| matches!(s, Slot::Hole { .. })))
        .map(|(i, _)| i)
        .collect();
    if with_holes.is_empty() || survey.orphans.is_empty() {
        return Ok(false);
    }
    let readers: BTreeMap<usize, Reader> = with_holes.iter().filter_map(|&i| Some((i, reader(survey, i)?))).collect();
    let open: Vec<(usize, Holes, &Reader)> =
        readers.iter().map(|(&i, reader)| (i, Holes::of(survey, i, reader), reader)).filter(|(_, holes, _)| !holes.is_empty()).collect();
    if open.is_empty() {
        return Ok(false);
    }
    let mut pages: Vec<PageNo> = survey.orphans.iter().copied().filter(|no| survey.may_come_back(*no)).collect();
    let most = COMPARISONS.checked_div(wide(open.len())).unwrap_or(0);
    if wide(pages.len()) > most {
        let what = "comparisons of lost leaves with damaged trees. Leaves beyond it stay out of the live tables; their rows are in lost_and_found tables of the salvage database";
        survey.findings.add_with(Defect::new(Code::LimitReached, 0, COMPARISONS, COMPARISONS), Site::default(), what);
        pages.truncate(narrow(most));
    }
    let this: &Scanned<'_> = survey;
    let candidates: Vec<(Orphan, Vec<Place>)> = pages
        .par_iter()
        .map_init(
            || open.iter().map(|(_, holes, _)| holes.order()).collect::<Vec<_>>(),
            |orders, &no| {
                ctx.check()?;
                let Some(orphan) = orphan(this, no) else { return Ok(None) };
                let places = open.iter().zip(orders).filter_map(|((tree, holes, reader), order)| {
                    let same_kind = this.trees.get(*tree)?.tree.kind.leaf() == orphan.kind;
                    let slot = same_kind.then(|| holes.find(&orphan.extent(), order)).flatten()?;
                    place(this, *tree, slot, reader, &orphan)
                });
                let places = places.collect();
                Ok(Some((orphan, places)))
            },
        )
        .filter_map(Result::transpose)
        .collect::<Result<_>>()?;
    // A freelist that is not whole names no free page for sure: only an index can tell a deleted leaf from a lost one. It is
    // not whole either where a leaf lies about that no tree can have lost: it was freed, and the list does not say so.
    let listed = survey.freelist.whole && !has_stray(survey, &candidates);
    let vouched: BTreeMap<usize, bool> = readers.iter().map(|(&i, reader)| (i, is_vouched(survey, reader, listed))).collect();
    let mut chosen: BTreeMap<(usize, usize), Vec<Orphan>> = BTreeMap::new();
    for (orphan, mut places) in candidates {
        places.retain(|p| vouched.get(&p.tree).copied().unwrap_or(false));
        if let Some(place) = best(&places) {
            chosen.entry((place.tree, place.slot)).or_default().push(orphan);
        }
    }
    let places = chosen.iter().flat_map(|(hole, orphans)| orphans.iter().map(|o| (o.page, *hole))).collect();
    let mut branches = branches::find(survey, &places, &readers, ctx)?;
    let mut fillings: BTreeMap<usize, BTreeMap<usize, Filling>> = BTreeMap::new();
    for ((tree, slot), orphans) in chosen {
        // Holes that nothing tells apart take one leaf each.
        let run = run_of(survey, tree, slot);
        if (2..=run.len()).contains(&orphans.len()) && !branches.contains_key(&(tree, slot)) {
            for (at, orphan) in run.into_iter().zip(in_order(survey, orphans, readers.get(&tree))) {
                if let Some(filling) = fill(survey, tree, at, vec![orphan], Vec::new(), readers.get(&tree)) {
                    fillings.entry(tree).or_default().insert(at, filling);
                }
            }
            continue;
        }
        let subtrees = branches.remove(&(tree, slot)).unwrap_or_default();
        if let Some(filling) = fill(survey, tree, slot, orphans, subtrees, readers.get(&tree)) {
            fillings.entry(tree).or_default().insert(slot, filling);
        }
    }
    let changed = !fillings.is_empty();
    for (tree, filling) in fillings {
        put(survey, tree, filling);
    }
    Ok(changed)
}

/// What comes into the place of a hole.
struct Filling {
    slots: Vec<Slot>,
    interiors: Vec<(PageNo, Option<PageNo>)>,
}

/// Puts pages in the place of holes, and claims them for the tree.
fn put(survey: &mut Scanned<'_>, tree: usize, mut filling: BTreeMap<usize, Filling>) {
    survey.changed(tree);
    let Scanned { known, trees, .. } = survey;
    let Some(t) = trees.get_mut(tree) else { return };
    let owner = t.tree.owner;
    let (leaf, interior) = match t.tree.kind {
        TreeKind::Table => (Role::TableLeaf, Role::TableInterior),
        TreeKind::Index => (Role::IndexLeaf, Role::IndexInterior),
    };
    for (i, slot) in std::mem::take(&mut t.tree.slots).into_iter().enumerate() {
        let Some(new) = filling.remove(&i) else {
            t.tree.slots.push(slot);
            continue;
        };
        let leaves = new.slots.iter().filter_map(|s| if let Slot::Leaf { page, .. } = s { Some((*page, leaf)) } else { None });
        for (page, role) in leaves.chain(new.interiors.iter().map(|(no, _)| (*no, interior))) {
            let _ = known.claims.claim(page, owner, role);
            known.adopted.insert(page);
        }
        t.tree.slots.extend(new.slots);
        t.tree.interiors.extend(new.interiors);
    }
}

/// Where an orphan goes; `None` when it fits nothing, or two trees equally well: neither gets it then.
fn best(places: &[Place]) -> Option<Place> {
    let best = places.iter().max()?;
    let rival = places.iter().any(|p| p.tree != best.tree && p.score == best.score);
    (!rival).then_some(*best)
}

/// Whether some orphan fits no hole of any tree and hangs under no orphaned interior page, as the leaves of a tree would
/// whose schema row is lost; or whether two that fit one hole overlap, as leaves of one tree never do.
fn has_stray(survey: &Scanned<'_>, candidates: &[(Orphan, Vec<Place>)]) -> bool {
    let mut ranges: Vec<(usize, usize, i64, i64)> = candidates
        .iter()
        .filter_map(|(o, places)| {
            let (place, (low, high)) = (best(places)?, o.range?);
            Some((place.tree, place.slot, low, high))
        })
        .collect();
    ranges.sort_unstable();
    let overlap = |a: &(usize, usize, i64, i64), b: &(usize, usize, i64, i64)| (a.0, a.1) == (b.0, b.1) && b.2 <= a.3;
    if ranges.iter().zip(ranges.iter().skip(1)).any(|(a, b)| overlap(a, b)) {
        return true;
    }
    let mut strays: BTreeSet<PageNo> = candidates.iter().filter(|(_, places)| places.is_empty()).map(|(o, _)| o.page).collect();
    if strays.is_empty() {
        return false;
    }
    for &no in &survey.orphans {
        let Ok(page) = survey.pages.page(no) else { continue };
        if page.kind.is_interior() {
            for child in page.children(survey.pages.split).filter_map(PageNo::new) {
                strays.remove(&child);
            }
        }
    }
    !strays.is_empty()
}

fn orphan(survey: &Scanned<'_>, no: PageNo) -> Option<Orphan> {
    let page = survey.pages.leaf(no).ok()?;
    if page.cell_count == 0 || page.kind.is_interior() || !is_full_of_cells(survey, no, &page) {
        return None;
    }
    let mut range: Option<(i64, i64)> = None;
    let mut first = Vec::new();
    let mut reader = PayloadReader::new();
    for (_, cell) in page.cells(survey.pages.split) {
        let Ok(cell) = cell else { continue };
        if let Some(r) = cell.rowid {
            range = Some(range.map_or((r, r), |(low, high)| (low.min(r), high.max(r))));
        }
        if first.is_empty()
            && let Ok(payload) = reader.read(&survey.pages, &cell)
        {
            first = payload.to_vec();
        }
    }
    (!first.is_empty()).then_some(Orphan { page: no, kind: page.kind, range, first })
}

/// Whether the cells of an orphan whose header is clobbered fill it to its end, as those of a leaf do: an overflow page may
/// hold a page of another database, which only a part of it is.
fn is_full_of_cells(survey: &Scanned<'_>, no: PageNo, page: &Page<'_>) -> bool {
    if survey.pages.page(no).is_ok() {
        return true;
    }
    let cells = page.cells(survey.pages.split).filter_map(|(_, c)| c.ok());
    let (lowest, covered) = cells.fold((survey.pages.usable, 0_u32), |(l, n), c| (l.min(c.at), n.saturating_add(c.len)));
    let room = survey.pages.usable.saturating_sub(lowest);
    covered.saturating_mul(10) >= room.saturating_mul(9)
}

/// How well an orphan fits a hole of a tree that takes its keys; `None` when it does not.
fn place(survey: &Scanned<'_>, tree: usize, slot: usize, reader: &Reader, orphan: &Orphan) -> Option<Place> {
    let parent = match pointer_map::lookup(&survey.pages, orphan.page).filter(|_| survey.header.largest_root != 0) {
        Some((Some(PtrmapKind::Btree), parent)) => PageNo::new(parent),
        // The map says that the page is free, or a root: no leaf of a tree with a hole.
        Some((Some(PtrmapKind::Free | PtrmapKind::Overflow1 | PtrmapKind::Overflow2), _)) => return None,
        _ => None,
    };
    let mapped = match parent.and_then(|p| survey.claims.owner(p)) {
        Some(owner) if wide(tree) != u64::from(owner.0) => return None,
        owner => u32::from(owner.is_some()).saturating_mul(1000),
    };
    let score = shape_of_page(&survey.pages, reader, orphan.page)?.saturating_add(mapped);
    // A declaration from elsewhere may have its columns in another order than the file.
    if let Reader::Table(plan) = reader
        && orphan_trees::from_elsewhere(survey, tree)
        && !Profile::of_leaf(&survey.pages, survey.encoding, orphan.page).is_natural(plan)
    {
        return None;
    }
    Some(Place { score, tree, slot })
}

/// What takes the place of a hole; `None` when nothing does.
fn fill(
    survey: &Scanned<'_>,
    tree: usize,
    slot: usize,
    mut orphans: Vec<Orphan>,
    branches: Vec<Tree>,
    reader: Option<&Reader>,
) -> Option<Filling> {
    let hole = survey.trees.get(tree)?.tree.slots.get(slot).copied()?;
    let Slot::Hole { by, above, upto, height, .. } = hole else { return None };
    // A missing leaf is one leaf. When several orphans fit, nothing says which of them it was.
    if height == Some(0) && orphans.len() > 1 {
        return None;
    }
    orphans = in_order(survey, orphans, reader);
    let mut branch_of: BTreeMap<PageNo, usize> = BTreeMap::new();
    for (i, branch) in branches.iter().enumerate() {
        branch_of.extend(branch.leaves().map(|no| (no, i)));
    }
    let mut filling = Filling { slots: Vec::new(), interiors: Vec::new() };
    let mut placed: BTreeSet<usize> = BTreeSet::new();
    let mut children = 0_usize;
    for o in &orphans {
        let branch = branch_of.get(&o.page).copied();
        match branch.and_then(|i| branches.get(i)) {
            Some(subtree) if branch.is_some_and(|i| placed.insert(i)) => {
                filling.slots.extend(subtree.slots.iter().map(|s| s.within(by, above, upto)));
                let parent = |p: Option<PageNo>| p.or(by.map(|(no, _)| no));
                filling.interiors.extend(subtree.interiors.iter().map(|(no, p)| (*no, parent(*p))));
            }
            Some(_) => continue,
            None => filling.slots.push(Slot::Leaf { page: o.page, by, above, upto }),
        }
        children = children.saturating_add(1);
    }
    let whole = match branches.first() {
        Some(only) => children == 1 && height == Some(only.height),
        None => height == Some(0),
    };
    if !whole {
        // What the interior page held besides is not known; for index trees its own entries are gone.
        filling.slots.push(hole);
    }
    Some(filling)
}

/// Orphans in the order of their keys.
fn in_order(survey: &Scanned<'_>, mut orphans: Vec<Orphan>, reader: Option<&Reader>) -> Vec<Orphan> {
    match reader.map(Reader::key) {
        Some(Some(key)) => sort_by_key(&mut orphans, key, survey),
        Some(None) => orphans.sort_by_key(|o| (o.range, o.page)),
        None => {}
    }
    orphans
}

/// The missing leaves that hang on one page and that no separator between them tells apart, this one among them: those of a
/// table have the same bounds, those of an index follow one another.
fn run_of(survey: &Scanned<'_>, tree: usize, slot: usize) -> Vec<usize> {
    let Some(t) = survey.trees.get(tree) else { return Vec::new() };
    let place = |s: &Slot| match *s {
        Slot::Hole { by: Some((page, _)), above, upto, height: Some(0), .. } => Some((page, above, upto)),
        _ => None,
    };
    let slots = &t.tree.slots;
    let Some(first) = slots.get(slot).and_then(place) else { return Vec::new() };
    let alike = |s: &Slot| place(s) == Some(first);
    match t.tree.kind {
        // Children of one page lie close together, and the first of those alike is found.
        TreeKind::Table => slots.iter().enumerate().skip(slot).take(CHILDREN).filter(|(_, s)| alike(s)).map(|(i, _)| i).collect(),
        TreeKind::Index => {
            let before = slots.iter().take(slot).rev().take_while(|s| alike(s)).count();
            let from = slot.saturating_sub(before);
            slots.iter().enumerate().skip(from).take_while(|(_, s)| alike(s)).map(|(i, _)| i).collect()
        }
    }
}

fn sort_by_key(orphans: &mut Vec<Orphan>, key: &IndexPlan, survey: &Scanned<'_>) {
    orphans.sort_by_key(|o| o.page);
    let with = std::mem::take(orphans).into_iter().map(|o| (o.first.clone(), o)).collect();
    orphans.extend(KeyOrder::new(key, survey.encoding).in_order(with).into_iter().map(|(_, o)| o));
}
