//! Trees that claim one page, and pages that stand twice: whose rows are they?
//!
//! Tests:    rows below a page against the declarations of its claimants, its keys against the places that they have for it,
//!           the height of its neighbours, the pointer map; pages of equal bytes.
//! Collects: references that are not to be followed, since another tree has the better claim or the page is a copy.
//! Leaves:   claims that nothing tells apart: the schema's own root keeps its page, else whoever came first; equal pages that
//!           both fit where they stand, as those of a table and its backup do.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;

use crate::ctx::Ctx;
use crate::error::Result;
use crate::format::ptrmap::PtrmapKind;
use crate::format::{Encoding, Page};
use crate::ids::{PageNo, idx};
use crate::schema::Catalog;
use crate::survey::pass2_trees::round::Round;
use crate::survey::pointer_map;
use crate::survey::rows::key::KeyOrder;
use crate::survey::rows::reader::{Reader, reader_of, shape_of_page};
use crate::tree::Pages;
use crate::tree::bounds::{Bounds, inside};
use crate::tree::claims::Owner;
use crate::tree::payload::PayloadReader;
use crate::tree::walk::{Denial, Denied, Reference, Slot, Tree, TreeKind};

/// Contested pages that are weighed in one round.
const CONTESTED: usize = 2_000;

/// Leaves below a page that are looked at.
const LEAVES: usize = 8;

/// Pages that are read to reach them: the trees may be anything.
const DESCENT: usize = 64;

/// Bytes at either end of a page that tell whether two pages may be equal: header and first pointers, and the oldest cells.
const ENDS: usize = 96;

/// By how much of the score of [`shape_of_page`] rows must fit one tree better than another: half of them.
const MARGIN: u32 = 50;

/// One claim on a page.
#[derive(Debug, Clone, Copy)]
struct Claim {
    owner: Owner,
    by: Option<Reference>,
    bounds: Bounds,
}

/// How well a page suits a claim.
#[derive(Debug, Clone, Copy)]
struct Suits {
    /// Its rows can be rows of the tree.
    shape: bool,
    /// Nothing about its keys and its height speaks against its place.
    place: bool,
    /// How well they do; only a wide margin counts.
    score: u32,
}

impl Suits {
    /// Whether the page can stand there.
    fn well(self) -> bool {
        self.shape && self.place
    }
}

/// Judges claims after a round of walks.
pub(super) struct Claimants<'s, 'a> {
    pages: &'s Pages<'a>,
    catalog: &'s Catalog,
    encoding: Encoding,
    /// Whether there is a pointer map.
    mapped: bool,
    walked: &'s Round,
    readers: BTreeMap<Owner, Option<Reader>>,
}

impl<'s, 'a> Claimants<'s, 'a> {
    /// A judge of these walks.
    pub(super) fn new(
        pages: &'s Pages<'a>,
        catalog: &'s Catalog,
        encoding: Encoding,
        mapped: bool,
        walked: &'s Round,
    ) -> Claimants<'s, 'a> {
        Claimants { pages, catalog, encoding, mapped, walked, readers: BTreeMap::new() }
    }

    fn tree(&self, owner: Owner) -> Option<&'s Tree> {
        self.walked.trees.get(idx(owner.0)).map(|(_, t)| t)
    }

    fn reader(&mut self, owner: Owner) -> Option<&Reader> {
        let object = self.walked.trees.get(idx(owner.0))?.0;
        self.readers.entry(owner).or_insert_with(|| reader_of(self.catalog, object, self.encoding)).as_ref()
    }

    /// Of two references to one page, denies the first where the second suits better.
    ///
    /// # Errors
    /// Cancellation only.
    pub(super) fn deny_worse(&mut self, denied: &mut Denied, ctx: &Ctx) -> Result<()> {
        let contested = self.walked.contested.iter().take(CONTESTED);
        let pages: BTreeSet<PageNo> = contested.clone().map(|c| c.page).collect();
        if pages.is_empty() {
            return Ok(());
        }
        let held = self.claims(&pages);
        for c in contested {
            ctx.check()?;
            let Some(first) = held.get(&c.page).and_then(|all| all.iter().find(|h| h.owner == c.first)).copied() else { continue };
            let second = Claim { owner: c.second, by: c.second_by, bounds: c.second_bounds };
            if self.is_better(c.page, second, first) {
                denied.insert((first.owner, first.by), Denial::Better(second.owner));
            }
        }
        Ok(())
    }

    /// Whether the second claim on a page is better than the first.
    fn is_better(&mut self, page: PageNo, second: Claim, first: Claim) -> bool {
        let (a, b) = (self.suits(page, first), self.suits(page, second));
        if (a.shape, a.place) != (b.shape, b.place) {
            return (b.shape, b.place) > (a.shape, a.place);
        }
        if !a.shape {
            return false;
        }
        if let Some((kind, parent)) = pointer_map::lookup(self.pages, page).filter(|_| self.mapped) {
            let says = |c: &Claim| match c.by {
                None => kind == Some(PtrmapKind::Root),
                Some((no, _)) => kind == Some(PtrmapKind::Btree) && no.get() == parent,
            };
            if says(&first) != says(&second) {
                return says(&second);
            }
        }
        if a.score.abs_diff(b.score) > MARGIN {
            return b.score > a.score;
        }
        // A root that the schema names against a child with bounds that its rows keep: the rows of another tree would hardly.
        let bounded = |c: &Claim| c.by.is_some() && (c.bounds.0.is_some() || c.bounds.1.is_some());
        a.place && first.by.is_none() && bounded(&second)
    }

    /// Denies the references to pages that have the bytes of another page and suit their place worse than that one does its
    /// own.
    ///
    /// # Errors
    /// Cancellation only.
    pub(super) fn deny_copies(&mut self, denied: &mut Denied, ctx: &Ctx) -> Result<()> {
        let groups = equal_pages(self.pages, &self.walked.trees);
        if groups.is_empty() {
            return Ok(());
        }
        let pages: BTreeSet<PageNo> = groups.iter().flatten().copied().collect();
        let held = self.claims(&pages);
        for group in groups {
            ctx.check()?;
            let mut judged: Vec<(Suits, PageNo, Claim)> = Vec::new();
            for no in group {
                if let Some(claim) = held.get(&no).and_then(|c| c.first()).copied() {
                    judged.push((self.suits(no, claim), no, claim));
                }
            }
            let Some(original) = judged.iter().find(|(s, ..)| s.well()).map(|(_, no, _)| *no) else { continue };
            for (_, _, claim) in judged.iter().filter(|(s, ..)| !s.well()) {
                denied.insert((claim.owner, claim.by), Denial::CopyOf(original));
            }
        }
        Ok(())
    }

    /// The references that were followed to these pages.
    fn claims(&self, pages: &BTreeSet<PageNo>) -> BTreeMap<PageNo, Vec<Claim>> {
        let mut out: BTreeMap<PageNo, Vec<Claim>> = BTreeMap::new();
        for (_, tree) in &self.walked.trees {
            let mut add = |page: PageNo, by, bounds| {
                if pages.contains(&page) {
                    out.entry(page).or_default().push(Claim { owner: tree.owner, by, bounds });
                }
            };
            for slot in &tree.slots {
                if let Slot::Leaf { page, by, above, upto } = *slot {
                    add(page, by, (above, upto));
                }
            }
            for (page, _) in &tree.interiors {
                let (by, bounds) = self.walked.places.get(page).copied().unwrap_or_default();
                add(*page, by, bounds);
            }
        }
        // A root that is named and was not reached yet when another tree came to it.
        for page in pages {
            for (_, tree) in self.walked.trees.iter().filter(|(_, t)| t.root == *page) {
                let all = out.entry(*page).or_default();
                if !all.iter().any(|c| c.owner == tree.owner) {
                    all.push(Claim { owner: tree.owner, by: None, bounds: (None, None) });
                }
            }
        }
        out
    }

    fn suits(&mut self, page: PageNo, claim: Claim) -> Suits {
        let kind = self.tree(claim.owner).map(|t| t.kind);
        let Some(kind) = kind else { return Suits { shape: false, place: false, score: 0 } };
        let leaves = below(self.pages, page, kind);
        let pages = self.pages;
        let encoding = self.encoding;
        let Some(reader) = self.reader(claim.owner) else { return Suits { shape: true, place: true, score: 0 } };
        let scores: Vec<u32> = leaves.iter().filter_map(|no| shape_of_page(pages, reader, *no)).collect();
        // One damaged leaf must not cost a tree.
        let shape = scores.len().saturating_mul(2) > leaves.len();
        let sum = scores.iter().fold(0_u32, |sum, n| sum.saturating_add(*n));
        let score = sum.checked_div(crate::ids::small(scores.len())).unwrap_or(0);
        let place = match kind {
            TreeKind::Table => within(pages, &leaves, claim.bounds),
            TreeKind::Index => between(pages, reader, encoding, page, claim.by),
        };
        Suits { shape, place: place && claim.by.is_none_or(|by| as_high_as_others(pages, page, by)), score }
    }
}

/// Leaves below a page, from both of its ends, or the page itself.
fn below(pages: &Pages<'_>, no: PageNo, kind: TreeKind) -> Vec<PageNo> {
    let mut out = Vec::new();
    let mut seen: BTreeSet<PageNo> = BTreeSet::from([no]);
    // Of each interior page the first and last children are taken before those between.
    let mut queue = std::collections::VecDeque::from([no]);
    for _ in 0..DESCENT {
        let Some(no) = queue.pop_front().filter(|_| out.len() < LEAVES) else { break };
        let Ok(page) = pages.leaf(no) else { continue };
        if TreeKind::of(page.kind) != kind {
            continue;
        }
        if !page.kind.is_interior() {
            if page.cell_count > 0 {
                out.push(no);
            }
            continue;
        }
        let count = page.pointer_count();
        let last = count.saturating_sub(1);
        let mut wanted: Vec<u32> = page.right_child.into_iter().collect();
        for i in [0, last, count >> 1, count >> 2, last.saturating_sub(1), 1] {
            wanted.extend(page.cell(i, &pages.split).ok().and_then(|c| c.child));
        }
        queue.extend(wanted.into_iter().filter_map(PageNo::new).filter(|c| c.get() <= pages.count() && seen.insert(*c)));
    }
    out
}

/// Whether most leaves have their rowids within bounds.
fn within(pages: &Pages<'_>, leaves: &[PageNo], bounds: Bounds) -> bool {
    let keeps = |no: &&PageNo| {
        let rowids: Vec<i64> =
            pages.leaf(**no).map(|p| p.cells(pages.split).filter_map(|(_, c)| c.ok()?.rowid).collect()).unwrap_or_default();
        let kept = rowids.iter().filter(|r| inside(bounds, **r)).count();
        // A damaged rowid must not cost the leaf.
        kept.saturating_mul(10) >= rowids.len().saturating_mul(9)
    };
    leaves.iter().filter(keeps).count().saturating_mul(2) >= leaves.len()
}

/// Whether the first record of an index-like page stands between the entries around the pointer that leads to it.
fn between(pages: &Pages<'_>, reader: &Reader, encoding: Encoding, no: PageNo, by: Option<Reference>) -> bool {
    let (Some(key), Some((parent, i))) = (reader.key(), by) else { return true };
    let (Ok(page), Ok(parent)) = (pages.leaf(no), pages.leaf(parent)) else { return true };
    let record = |page: &Page<'_>, i: u16| -> Option<Vec<u8>> {
        let cell = page.cell(i, &pages.split).ok()?;
        PayloadReader::new().read(pages, &cell).ok().map(<[u8]>::to_vec)
    };
    let Some(first) = record(&page, 0) else { return true };
    let mut order = KeyOrder::new(key, encoding);
    let before = i.checked_sub(1).and_then(|i| record(&parent, i));
    let behind = if i < parent.pointer_count() { record(&parent, i) } else { None };
    order.is_between(before.as_deref(), &first, behind.as_deref())
}

/// Whether a page is a leaf where the other children of its parent are, or an interior page where they are.
fn as_high_as_others(pages: &Pages<'_>, no: PageNo, (parent, i): Reference) -> bool {
    let interior = |no: PageNo| pages.leaf(no).ok().map(|p| p.kind.is_interior());
    let (Some(own), Ok(parent)) = (interior(no), pages.leaf(parent)) else { return true };
    let child = |i: u16| match i < parent.pointer_count() {
        true => parent.cell(i, &pages.split).ok()?.child.and_then(PageNo::new),
        false => parent.right_child.and_then(PageNo::new),
    };
    let others = [i.checked_sub(2), i.checked_sub(1), i.checked_add(1), i.checked_add(2)];
    let others = others.into_iter().flatten().filter(|i| *i <= parent.pointer_count());
    let heights: Vec<bool> = others.filter_map(child).filter(|c| *c != no).filter_map(interior).collect();
    heights.is_empty() || heights.contains(&own)
}

/// Groups of pages of trees that have the same bytes; empty pages have nothing to tell.
fn equal_pages(pages: &Pages<'_>, trees: &[(crate::ids::ObjectId, Tree)]) -> Vec<Vec<PageNo>> {
    let mut prints: Vec<(u32, PageNo)> = Vec::new();
    for (_, tree) in trees {
        let all: Vec<PageNo> = tree.leaves().chain(tree.interiors.iter().map(|(no, _)| *no)).collect();
        let some = all.par_iter().filter(|no| **no != PageNo::ONE).filter_map(|no| Some((ends(pages.usable_bytes(*no))?, *no)));
        prints.extend(some.collect::<Vec<_>>());
    }
    // The ends alone are alike on many pages of records of one size.
    let likely = groups(prints)
        .into_iter()
        .flat_map(|group| groups(group.into_iter().map(|no| (crc32fast::hash(pages.usable_bytes(no)), no)).collect()));
    likely
        .filter_map(|mut group| {
            let first = pages.usable_bytes(*group.first()?);
            group.retain(|no| pages.usable_bytes(*no) == first);
            (group.len() > 1).then_some(group)
        })
        .collect()
}

/// Pages of the same fingerprint, where there are several.
fn groups(mut prints: Vec<(u32, PageNo)>) -> Vec<Vec<PageNo>> {
    prints.sort_unstable();
    prints.chunk_by(|a, b| a.0 == b.0).filter(|g| g.len() > 1).map(|g| g.iter().map(|(_, no)| *no).collect()).collect()
}

/// The fingerprint of both ends of a page; `None` when it has no cells.
fn ends(bytes: &[u8]) -> Option<u32> {
    if crate::bytes::u16_at(bytes, 3)? == 0 {
        return None;
    }
    let mut hash = crc32fast::Hasher::new();
    hash.update(bytes.get(..ENDS).unwrap_or(bytes));
    hash.update(bytes.get(bytes.len().saturating_sub(ENDS)..).unwrap_or_default());
    Some(hash.finalize())
}
