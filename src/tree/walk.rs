//! The iterative walk: interior pages to a sequence of leaves, entries and holes in key order.

use std::collections::BTreeMap;

use crate::ctx::Ctx;
use crate::error::Result;
use crate::finding::{Code, Defect, Findings, Note, Site};
use crate::format::{Page, PageKind};
use crate::ids::{PageNo, wide};
use crate::tree::bounds::Bounds;
use crate::tree::claims::{Claims, Owner, Role};
use crate::tree::{Pages, repair};

/// Table trees have rowids as keys, index trees records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TreeKind {
    /// Pages of type 5 and 13.
    Table,
    /// Pages of type 2 and 10.
    Index,
}

impl TreeKind {
    /// The kind of tree that has pages of this kind.
    #[must_use]
    pub fn of(kind: PageKind) -> TreeKind {
        if kind.is_table() { TreeKind::Table } else { TreeKind::Index }
    }

    /// The kinds of its pages.
    #[must_use]
    pub fn both(self) -> [PageKind; 2] {
        match self {
            TreeKind::Table => [PageKind::TableLeaf, PageKind::TableInterior],
            TreeKind::Index => [PageKind::IndexLeaf, PageKind::IndexInterior],
        }
    }

    /// The kind of its leaves.
    #[must_use]
    pub fn leaf(self) -> PageKind {
        if self == TreeKind::Table { PageKind::TableLeaf } else { PageKind::IndexLeaf }
    }
}

/// A reference from an interior page to a child: the page and the place of the pointer (cell number, or the number of
/// cells for the right-most pointer).
pub type Reference = (PageNo, u16);

/// Why a reference is not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denial {
    /// This tree has the better claim on the page.
    Better(Owner),
    /// The page has the bytes of this one, which stands where it belongs: it was written to the wrong place.
    CopyOf(PageNo),
}

/// References that are not to be followed, each with the tree that makes it; without a reference, the root of the tree.
pub type Denied = BTreeMap<(Owner, Option<Reference>), Denial>;

/// One place of a tree in key order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// A leaf page.
    Leaf {
        /// The page.
        page: PageNo,
        /// The pointer that leads to it; `None` for a root.
        by: Option<Reference>,
        /// Table trees: rowids on it are above this bound, where the parents set one.
        above: Option<i64>,
        /// Table trees: rowids on it are at most this bound, where the parents set one.
        upto: Option<i64>,
    },
    /// An entry that an interior page of an index tree holds.
    Entry {
        /// The interior page.
        page: PageNo,
        /// The cell on it.
        cell: u16,
    },
    /// A child that is missing.
    Hole {
        /// The pointer that leads nowhere; `None` when the root itself is missing.
        by: Option<Reference>,
        /// The page number it holds.
        child: u32,
        /// As for a leaf.
        above: Option<i64>,
        /// As for a leaf.
        upto: Option<i64>,
        /// How many levels lie below the missing page, where the walk knows it: 0, it would be a leaf.
        height: Option<u32>,
    },
}

impl Slot {
    /// The slot of a subtree as part of a tree: where its own parents set no bound, those around it do, and its root hangs
    /// on the pointer `by`.
    #[must_use]
    pub fn within(self, by: Option<Reference>, above: Option<i64>, upto: Option<i64>) -> Slot {
        match self {
            Slot::Leaf { page, by: b, above: a, upto: u } => Slot::Leaf { page, by: b.or(by), above: a.or(above), upto: u.or(upto) },
            Slot::Hole { by: b, child, above: a, upto: u, height } => {
                Slot::Hole { by: b.or(by), child, above: a.or(above), upto: u.or(upto), height }
            }
            Slot::Entry { .. } => self,
        }
    }
}

/// A page that two references lead to; the second was not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contested {
    /// The page.
    pub page: PageNo,
    /// The tree that has it.
    pub first: Owner,
    /// The tree that came second.
    pub second: Owner,
    /// The reference of the second; `None` for a root.
    pub second_by: Option<Reference>,
    /// The bounds that it sets.
    pub second_bounds: Bounds,
}

/// A tree as the walk found it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// Which of the trees it is.
    pub owner: Owner,
    /// Its root page.
    pub root: PageNo,
    /// What kind of tree.
    pub kind: TreeKind,
    /// Leaves, entries and holes in key order.
    pub slots: Vec<Slot>,
    /// Interior pages, each with its parent.
    pub interiors: Vec<(PageNo, Option<PageNo>)>,
    /// Levels above the leaves.
    pub height: u32,
}

impl Tree {
    /// A tree of which nothing is known but that it was there.
    #[must_use]
    pub fn lost(owner: Owner, kind: TreeKind) -> Tree {
        let hole = Slot::Hole { by: None, child: 0, above: None, upto: None, height: None };
        Tree { owner, root: PageNo::ONE, kind, slots: vec![hole], interiors: Vec::new(), height: 0 }
    }

    /// How many children are missing.
    #[must_use]
    pub fn holes(&self) -> usize {
        self.slots.iter().filter(|s| matches!(s, Slot::Hole { .. })).count()
    }

    /// Its leaf pages in key order.
    pub fn leaves(&self) -> impl Iterator<Item = PageNo> + '_ {
        self.slots.iter().filter_map(|s| match s {
            Slot::Leaf { page, .. } => Some(*page),
            _ => None,
        })
    }
}

/// What a walk needs and what it leaves: claims, findings, contested pages.
#[derive(Debug)]
pub struct Walker<'p, 'a> {
    pages: &'p Pages<'a>,
    /// Who has which page.
    pub claims: &'p Claims,
    /// Where findings go.
    pub log: &'p mut Findings,
    /// References that are not to be followed.
    pub denied: &'p Denied,
    /// Root pages that the schema names, with the first tree that has them as its root: no child pointer of another takes
    /// them, whoever is walked first.
    pub roots: BTreeMap<PageNo, Owner>,
    /// Pages that two references lead to.
    pub contested: Vec<Contested>,
    /// The reference to each interior page, with its bounds.
    pub places: BTreeMap<PageNo, (Option<Reference>, Bounds)>,
    /// Pages whose cells are of another kind than their type byte says; `None` when they are not looked for, as the caller
    /// does not settle them with [`Pages::retype`].
    pub retyped: Option<BTreeMap<PageNo, PageKind>>,
    depth_limit: u32,
}

struct Frame<'a> {
    no: PageNo,
    page: Page<'a>,
    step: u32,
    cell_reads: bool,
    above: Option<i64>,
    upto: Option<i64>,
    last_key: Option<i64>,
    /// The bounds of each child, where not all separators can be believed.
    limits: Option<Vec<Bounds>>,
}

/// What one walk notes on its way.
#[derive(Default)]
struct Trail {
    /// The depth of the first leaf.
    leaf_depth: Option<usize>,
    /// Holes found before any leaf, with their depth.
    holes: Vec<(usize, usize)>,
}

impl<'p, 'a> Walker<'p, 'a> {
    /// A walker over these pages.
    pub fn new(pages: &'p Pages<'a>, claims: &'p Claims, log: &'p mut Findings, denied: &'p Denied, ctx: &Ctx) -> Walker<'p, 'a> {
        Walker {
            pages,
            claims,
            log,
            denied,
            roots: BTreeMap::new(),
            contested: Vec::new(),
            places: BTreeMap::new(),
            retyped: None,
            depth_limit: ctx.limits.depth,
        }
    }

    /// The same, looking for pages whose type byte lies: the caller settles them with [`Pages::retype`].
    #[must_use]
    pub fn retyping(self) -> Walker<'p, 'a> {
        Walker { retyped: Some(BTreeMap::new()), ..self }
    }

    /// Walks a tree from its root. Every page it reaches is claimed for `owner`; one that is claimed already becomes a hole
    /// and a contested page. The number of pages bounds the walk, since each is entered once.
    ///
    /// # Errors
    /// Cancellation only.
    pub fn walk(&mut self, root: PageNo, kind: TreeKind, owner: Owner, site: Site, ctx: &Ctx) -> Result<Tree> {
        let mut tree = Tree { owner, root, kind, slots: Vec::new(), interiors: Vec::new(), height: 0 };
        self.walk_into(&mut tree, root, site, ctx)?;
        Ok(tree)
    }

    /// Walks from a page and appends what it finds to a tree.
    fn walk_into(&mut self, tree: &mut Tree, from: PageNo, site: Site, ctx: &Ctx) -> Result<()> {
        let kind = tree.kind;
        let mut stack: Vec<Frame<'a>> = Vec::new();
        let mut trail = Trail::default();
        self.enter(tree, &mut stack, None, from.get(), (None, None), site, &mut trail);
        while let Some(frame) = stack.last_mut() {
            ctx.check()?;
            let count = frame.page.pointer_count();
            // Even steps lead to children, odd ones to the entry between two of them.
            let (i, at_entry) = (frame.step >> 1, frame.step & 1 == 1);
            frame.step = frame.step.saturating_add(1);
            let no = frame.no;
            let here = Site { page: Some(no), ..site };
            let Ok(i) = u16::try_from(i) else {
                stack.pop();
                continue;
            };
            if i > count || (i == count && at_entry) {
                stack.pop();
                continue;
            }
            if at_entry {
                if kind == TreeKind::Index && frame.cell_reads {
                    tree.slots.push(Slot::Entry { page: no, cell: i });
                }
                continue;
            }
            if i == count {
                let right = frame.page.right_child.unwrap_or(0);
                let bounds = frame.limits.as_ref().and_then(|l| l.get(usize::from(i))).copied().unwrap_or((frame.above, frame.upto));
                self.enter(tree, &mut stack, Some((no, i)), right, bounds, site, &mut trail);
                continue;
            }
            let cell = frame.page.cell(i, &self.pages.split).note(self.log, here.cell(i));
            frame.cell_reads = cell.is_some();
            let mut bounds = (frame.above, frame.upto);
            let limits = frame.limits.as_ref().map(|l| l.get(usize::from(i)).copied().unwrap_or(bounds));
            let Some(cell) = cell else {
                let (above, upto) = limits.unwrap_or(bounds);
                hole(tree, &mut trail, stack.len(), Slot::Hole { by: Some((no, i)), child: 0, above, upto, height: None });
                continue;
            };
            if let (TreeKind::Table, Some(key)) = (kind, cell.rowid) {
                let code = if frame.last_key.is_some_and(|last| key <= last) {
                    Some(Code::KeyOrder)
                } else if frame.above.is_some_and(|a| key < a) || frame.upto.is_some_and(|u| key > u) {
                    Some(Code::KeyOutsideParent)
                } else {
                    None
                };
                if let Some(code) = code {
                    self.log.add_with(Defect::new(code, cell.at, u64::from(i), 0), here.cell(i), format!("separator {key}"));
                }
                bounds.1 = Some(key);
                frame.last_key = Some(key);
                frame.above = Some(key);
            }
            let bounds = limits.unwrap_or(bounds);
            self.enter(tree, &mut stack, Some((no, i)), cell.child.unwrap_or(0), bounds, site, &mut trail);
        }
        if let Some(d) = trail.leaf_depth {
            for (at, depth) in trail.holes {
                if let Some(Slot::Hole { height, .. }) = tree.slots.get_mut(at) {
                    *height = Some(height_below(d, depth));
                }
            }
        }
        tree.height = tree.height.max(u32::try_from(trail.leaf_depth.unwrap_or(0)).unwrap_or(0));
        Ok(())
    }

    fn enter(
        &mut self,
        tree: &mut Tree,
        stack: &mut Vec<Frame<'a>>,
        by: Option<Reference>,
        raw: u32,
        bounds: Bounds,
        site: Site,
        trail: &mut Trail,
    ) {
        let (above, upto) = bounds;
        let depth = stack.len();
        let missing = Slot::Hole { by, child: raw, above, upto, height: None };
        let parent_site = match by {
            Some((page, cell)) => Site { page: Some(page), ..site }.cell(cell),
            None => site,
        };
        let code = match (by, raw) {
            (None, _) => Code::RootOutside,
            (_, 0) => Code::ChildZero,
            _ => Code::ChildOutside,
        };
        let Some(no) = self.pages.resolve(raw, code, 0).note(self.log, parent_site) else {
            return hole(tree, trail, depth, missing);
        };
        let here = Site { page: Some(no), ..site };
        if let Some(denial) = self.denied.get(&(tree.owner, by)) {
            match *denial {
                Denial::Better(owner) => {
                    self.log.add(Defect::new(Code::PageSeenTwice, 0, u64::from(no.get()), u64::from(owner.0)), parent_site);
                }
                Denial::CopyOf(page) => {
                    // Its bytes are another's: nobody may take them for an orphan either.
                    let _ = self.claims.claim(no, Owner::FILE, Role::Unreadable);
                    self.log.add(Defect::new(Code::PageCopied, 0, u64::from(page.get()), 0), here);
                }
            }
            return hole(tree, trail, depth, missing);
        }
        let ruling = self.claims.ruling(no);
        if ruling.is_some_and(|r| !r.lets(tree.root, site)) {
            self.log.add(Defect::new(Code::PageOverruled, 0, u64::from(no.get()), 0), here);
            return hole(tree, trail, depth, missing);
        }
        if let Err(d) = self.pages.page(no) {
            self.log.add(d, here);
        }
        let stated = self.pages.leaf(no);
        let page = match stated {
            Ok(page) if TreeKind::of(page.kind) == tree.kind && repair::begins_well(&page, &self.pages.split) => page,
            _ => match self.own_kind(no, tree.kind, here) {
                Some(page) => page,
                None => match stated {
                    Ok(page) => page,
                    Err(_) => {
                        // The page is this tree's although nothing is read through it: no other may take it for an orphan.
                        let _ = self.claims.claim(no, tree.owner, Role::Unreadable);
                        return hole(tree, trail, depth, missing);
                    }
                },
            },
        };
        if TreeKind::of(page.kind) != tree.kind {
            self.log.add(Defect::new(Code::KindMixed, 0, u64::from(page.kind.byte()), u64::from(tree.kind.leaf().byte())), here);
            return hole(tree, trail, depth, missing);
        }
        let role = Role::of_page(page.kind);
        let reserved = self.roots.get(&no).copied().filter(|o| by.is_some() && *o != tree.owner && ruling.is_none());
        if let Err(first) = reserved.map_or_else(|| self.claims.claim(no, tree.owner, role), Err) {
            self.log.add(Defect::new(Code::PageSeenTwice, 0, u64::from(no.get()), u64::from(first.0)), parent_site);
            self.contested.push(Contested { page: no, first, second: tree.owner, second_by: by, second_bounds: bounds });
            return hole(tree, trail, depth, missing);
        }
        if !page.kind.is_interior() {
            match trail.leaf_depth {
                None => trail.leaf_depth = Some(depth),
                Some(d) if d != depth => self.log.add(Defect::new(Code::DepthDiffers, 0, wide(depth), wide(d)), here),
                Some(_) => {}
            }
            tree.slots.push(Slot::Leaf { page: no, by, above, upto });
            return;
        }
        if wide(depth) >= u64::from(self.depth_limit) {
            self.log.add(Defect::new(Code::DepthOverLimit, 0, wide(depth), u64::from(self.depth_limit)), here);
            return hole(tree, trail, depth, missing);
        }
        let (declared, fit) = (self.pages.declared_cells(no).unwrap_or(page.cell_count), page.pointer_count());
        if declared != fit {
            let code = if declared > fit { Code::CellCountTooBig } else { Code::CellCountTooSmall };
            self.log.add(Defect::new(code, 3, u64::from(declared), u64::from(fit)), here);
        }
        if page.cell_count == 0 && by.is_some() {
            self.log.add(Defect::new(Code::InteriorEmpty, 3, 0, 1), here);
        }
        tree.interiors.push((no, by.map(|(p, _)| p)));
        self.places.insert(no, (by, bounds));
        let limits = if tree.kind == TreeKind::Table { limits(&page, self.pages, bounds) } else { None };
        stack.push(Frame { no, page, step: 0, cell_reads: false, above, upto, last_key: None, limits });
    }

    /// A page whose type byte says otherwise as one of the tree, where its cells are.
    fn own_kind(&mut self, no: PageNo, kind: TreeKind, here: Site) -> Option<Page<'a>> {
        let retyped = self.retyped.as_mut()?;
        let page = self.pages.as_kind_of(no, kind)?;
        let said = self.pages.usable_bytes(no).get(self.pages.header_at(no)).copied().unwrap_or(0);
        self.log.add(Defect::new(Code::PageKindLies, 0, u64::from(said), u64::from(page.kind.byte())), here);
        retyped.insert(no, page.kind);
        Some(page)
    }
}

/// Adds a hole. How many levels are missing there is known where a leaf was seen, at the latest when the walk is over.
fn hole(tree: &mut Tree, trail: &mut Trail, depth: usize, mut missing: Slot) {
    match (&mut missing, trail.leaf_depth) {
        (Slot::Hole { height, .. }, Some(d)) => *height = Some(height_below(d, depth)),
        _ => trail.holes.push((tree.slots.len(), depth)),
    }
    tree.slots.push(missing);
}

/// The bounds of the children of a table's interior page by those of its separators that can be believed: the longest chain
/// of them that ascends within the bounds of the parent. `None` when all do.
fn limits(page: &Page<'_>, pages: &Pages<'_>, (above, upto): Bounds) -> Option<Vec<Bounds>> {
    let keys: Vec<Option<i64>> = (0..page.pointer_count())
        .map(|i| page.cell(i, &pages.split).ok().filter(|c| c.child != Some(0)).and_then(|c| c.rowid))
        .map(|key| key.filter(|k| above.is_none_or(|a| *k >= a) && upto.is_none_or(|u| *k <= u)))
        .collect();
    let in_order = keys.iter().all(Option::is_some) && keys.iter().zip(keys.iter().skip(1)).all(|(a, b)| a < b);
    if in_order {
        return None;
    }
    let mut out: Vec<Bounds> = Vec::with_capacity(keys.len().saturating_add(1));
    let mut low = above;
    for trusted in ascending(&keys) {
        // For now the own separator of each child; which one counts shows from behind.
        out.push((low, trusted));
        low = trusted.or(low);
    }
    out.push((low, upto));
    let mut high = upto;
    for bounds in out.iter_mut().rev() {
        high = bounds.1.or(high);
        bounds.1 = high;
    }
    Some(out)
}

/// Of a row of keys those of a longest chain that ascends; the others are `None`.
fn ascending(keys: &[Option<i64>]) -> Vec<Option<i64>> {
    // For each length of a chain the place of the lowest key that ends one, and for each place the one before it in its chain.
    let mut ends: Vec<(i64, usize)> = Vec::new();
    let mut before: Vec<Option<usize>> = vec![None; keys.len()];
    for (i, key) in keys.iter().enumerate() {
        let Some(key) = *key else { continue };
        let length = ends.partition_point(|(k, _)| *k < key);
        if let (Some(slot), Some(at)) = (before.get_mut(i), length.checked_sub(1)) {
            *slot = ends.get(at).map(|(_, at)| *at);
        }
        match ends.get_mut(length) {
            Some(end) => *end = (key, i),
            None => ends.push((key, i)),
        }
    }
    let mut out = vec![None; keys.len()];
    let mut at = ends.last().map(|(_, at)| *at);
    // Each step leads to an earlier place.
    while let Some(i) = at {
        if let (Some(slot), Some(key)) = (out.get_mut(i), keys.get(i)) {
            *slot = *key;
        }
        at = before.get(i).copied().flatten().filter(|b| *b < i);
    }
    out
}

/// Puts the pages that a ruling gives to a tree where their rowids belong; `true` when there are any. In a tree without
/// rowids they fill its only hole, or stand at its end: the rows are then sorted.
///
/// # Errors
/// Cancellation only.
pub fn give(walker: &mut Walker<'_, '_>, tree: &mut Tree, site: Site, ctx: &Ctx) -> Result<bool> {
    let claims = walker.claims;
    let mut any = false;
    for (no, ruling) in claims.rulings() {
        if !ruling.lets(tree.root, site) || claims.owner(*no).is_some() {
            continue;
        }
        // A page of this tree may rule the walk of the pages below it: they are of one root.
        let mut part = Tree { root: tree.root, ..Tree::lost(tree.owner, tree.kind) };
        part.slots.clear();
        walker.walk_into(&mut part, *no, site, ctx)?;
        if part.slots.is_empty() {
            continue;
        }
        any = true;
        walker.log.add(Defect::new(Code::PageOverruled, 0, u64::from(no.get()), 0), Site { page: Some(*no), ..site });
        let (at, replaced) = place(walker.pages, tree, *no);
        tree.slots.splice(at..at.saturating_add(usize::from(replaced)), part.slots);
        tree.interiors.append(&mut part.interiors);
    }
    Ok(any)
}

/// Where the slots of a given page go, and whether they replace the slot there.
fn place(pages: &Pages<'_>, tree: &Tree, no: PageNo) -> (usize, bool) {
    let first = |no: PageNo| pages.leaf(no).ok().and_then(|p| p.cells(pages.split).find_map(|(_, c)| c.ok()?.rowid));
    let leaf_hole = |s: &Slot| matches!(s, Slot::Hole { height: None | Some(0), .. });
    let Some(low) = first(no).filter(|_| tree.kind == TreeKind::Table) else {
        let mut holes = tree.slots.iter().enumerate().filter(|(_, s)| leaf_hole(s)).map(|(i, _)| i);
        return match (holes.next(), holes.next()) {
            (Some(only), None) => (only, true),
            _ => (tree.slots.len(), false),
        };
    };
    let bounds = |s: &Slot| match *s {
        Slot::Leaf { above, upto, .. } | Slot::Hole { above, upto, .. } => (above, upto),
        Slot::Entry { .. } => (None, None),
    };
    for (i, slot) in tree.slots.iter().enumerate() {
        let (above, upto) = bounds(slot);
        if upto.is_some_and(|u| low > u) {
            continue;
        }
        return match *slot {
            Slot::Hole { .. } => (i, leaf_hole(slot) && above.is_none_or(|a| low > a)),
            Slot::Leaf { page, .. } if first(page).is_some_and(|f| f <= low) => (i.saturating_add(1), false),
            _ => (i, false),
        };
    }
    (tree.slots.len(), false)
}

fn height_below(leaf_depth: usize, depth: usize) -> u32 {
    u32::try_from(leaf_depth.saturating_sub(depth)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_chain_of_keys_is_believed() {
        let keys = |list: &[i64]| list.iter().map(|k| Some(*k)).collect::<Vec<_>>();
        assert_eq!(ascending(&keys(&[48, 96, 16, 192])), vec![Some(48), Some(96), None, Some(192)]);
        assert_eq!(ascending(&keys(&[10, 40, 30, 40, 50])).iter().flatten().copied().collect::<Vec<_>>(), [10, 30, 40, 50]);
        assert_eq!(ascending(&[None, Some(3), None]), vec![None, Some(3), None]);
        assert_eq!(ascending(&[]), Vec::<Option<i64>>::new());
    }
}
