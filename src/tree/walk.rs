//! The iterative walk: interior pages to a sequence of leaves, entries and holes in key order.

use std::collections::BTreeSet;

use crate::ctx::Ctx;
use crate::error::Result;
use crate::finding::{Code, Defect, Findings, Note, Site};
use crate::format::{Page, PageKind};
use crate::ids::{PageNo, wide};
use crate::tree::Pages;
use crate::tree::claims::{Claims, Owner, Role};

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

    /// The kind of its leaves.
    #[must_use]
    pub fn leaf(self) -> PageKind {
        if self == TreeKind::Table { PageKind::TableLeaf } else { PageKind::IndexLeaf }
    }
}

/// A reference from an interior page to a child: the page and the place of the pointer (cell number, or the number of
/// cells for the right-most pointer).
pub type Reference = (PageNo, u16);

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
}

/// A tree as the walk found it.
#[derive(Debug, Clone)]
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
    /// References that are not to be followed: they lost the page to a better claim.
    pub denied: &'p BTreeSet<(Owner, Reference)>,
    /// Pages that two references lead to.
    pub contested: Vec<Contested>,
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
}

impl<'p, 'a> Walker<'p, 'a> {
    /// A walker over these pages.
    pub fn new(
        pages: &'p Pages<'a>,
        claims: &'p Claims,
        log: &'p mut Findings,
        denied: &'p BTreeSet<(Owner, Reference)>,
        ctx: &Ctx,
    ) -> Walker<'p, 'a> {
        Walker { pages, claims, log, denied, contested: Vec::new(), depth_limit: ctx.limits.depth }
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
        let mut leaf_depth: Option<usize> = None;
        self.enter(tree, &mut stack, None, from.get(), (None, None), site, &mut leaf_depth);
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
                let (bounds, right) = ((frame.above, frame.upto), frame.page.right_child.unwrap_or(0));
                self.enter(tree, &mut stack, Some((no, i)), right, bounds, site, &mut leaf_depth);
                continue;
            }
            let cell = frame.page.cell(i, &self.pages.split).note(self.log, here.cell(i));
            frame.cell_reads = cell.is_some();
            let mut bounds = (frame.above, frame.upto);
            let Some(cell) = cell else {
                let height = leaf_depth.map(|d| height_below(d, stack.len()));
                tree.slots.push(Slot::Hole { by: Some((no, i)), child: 0, above: bounds.0, upto: bounds.1, height });
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
            self.enter(tree, &mut stack, Some((no, i)), cell.child.unwrap_or(0), bounds, site, &mut leaf_depth);
        }
        tree.height = tree.height.max(u32::try_from(leaf_depth.unwrap_or(0)).unwrap_or(0));
        Ok(())
    }

    fn enter(
        &mut self,
        tree: &mut Tree,
        stack: &mut Vec<Frame<'a>>,
        by: Option<Reference>,
        raw: u32,
        bounds: (Option<i64>, Option<i64>),
        site: Site,
        leaf_depth: &mut Option<usize>,
    ) {
        let (above, upto) = bounds;
        let height = leaf_depth.map(|d| height_below(d, stack.len()));
        let hole = Slot::Hole { by, child: raw, above, upto, height };
        let parent_site = match by {
            Some((page, cell)) => Site { page: Some(page), ..site }.cell(cell),
            None => site,
        };
        if by.is_some_and(|by| self.denied.contains(&(tree.owner, by))) {
            tree.slots.push(hole);
            return;
        }
        let code = match (by, raw) {
            (None, _) => Code::RootOutside,
            (_, 0) => Code::ChildZero,
            _ => Code::ChildOutside,
        };
        let Some(no) = self.pages.resolve(raw, code, 0).note(self.log, parent_site) else {
            tree.slots.push(hole);
            return;
        };
        let here = Site { page: Some(no), ..site };
        if self.claims.ruling(no).is_some_and(|r| !r.lets(tree.root, site)) {
            self.log.add(Defect::new(Code::PageOverruled, 0, u64::from(no.get()), 0), here);
            tree.slots.push(hole);
            return;
        }
        let read = self.pages.page(no);
        if let Err(d) = read {
            self.log.add(d, here);
        }
        let Ok(page) = self.pages.leaf(no) else {
            // The page is this tree's although nothing is read through it: no other may take it for an orphan.
            let _ = self.claims.claim(no, tree.owner, Role::Unreadable);
            tree.slots.push(hole);
            return;
        };
        if TreeKind::of(page.kind) != tree.kind {
            self.log.add(Defect::new(Code::KindMixed, 0, u64::from(page.kind.byte()), u64::from(tree.kind.leaf().byte())), here);
            tree.slots.push(hole);
            return;
        }
        let role = Role::of_page(page.kind);
        if let Err(first) = self.claims.claim(no, tree.owner, role) {
            self.log.add(Defect::new(Code::PageSeenTwice, 0, u64::from(no.get()), u64::from(first.0)), parent_site);
            self.contested.push(Contested { page: no, first, second: tree.owner, second_by: by });
            tree.slots.push(hole);
            return;
        }
        if !page.kind.is_interior() {
            let depth = stack.len();
            match *leaf_depth {
                None => *leaf_depth = Some(depth),
                Some(d) if d != depth => self.log.add(Defect::new(Code::DepthDiffers, 0, wide(depth), wide(d)), here),
                Some(_) => {}
            }
            tree.slots.push(Slot::Leaf { page: no, by, above, upto });
            return;
        }
        if wide(stack.len()) >= u64::from(self.depth_limit) {
            self.log.add(Defect::new(Code::DepthOverLimit, 0, wide(stack.len()), u64::from(self.depth_limit)), here);
            tree.slots.push(hole);
            return;
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
        stack.push(Frame { no, page, step: 0, cell_reads: false, above, upto, last_key: None });
    }
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
