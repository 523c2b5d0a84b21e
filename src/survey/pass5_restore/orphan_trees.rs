//! Whole trees that nothing reaches any more: their pages are sound, what is lost is the name that led to them.
//!
//! Tests:    which orphans lead to which; the shape of their records against tables and indexes that lost their tree.
//! Collects: orphan trees, and for each object without a tree the one that fits it and nothing else as well.
//! Leaves:   trees without a name, for the salvage database: one table each, never mixed.

use std::collections::BTreeSet;

use crate::ctx::Ctx;
use crate::error::Result;
use crate::finding::{Findings, Site};
use crate::ids::{ObjectId, PageNo};
use crate::schema::RowSource;
use crate::survey::pass5_restore::places::is_vouched;
use crate::survey::pass5_restore::places::reader;
use crate::survey::rows::profile::Profile;
use crate::survey::rows::reader::{Reader, shape_of_page};
use crate::survey::stages::Scanned;
use crate::tree::claims::{Claims, Owner, Role};
use crate::tree::walk::{Denied, Slot, Tree, TreeKind, Walker};

/// What a root page that an old schema row names counts for, beside a shape that fits: more than any shape.
const NAMED: u32 = 1000;

/// Leaves of an orphan tree that are looked at to tell whose it is.
const LEAVES: usize = 8;

/// Finds the orphan trees, largest first.
///
/// # Errors
/// Cancellation only.
pub(in crate::survey) fn find(survey: &Scanned<'_>, ctx: &Ctx) -> Result<Vec<Tree>> {
    let orphans: BTreeSet<PageNo> = survey.orphans.iter().copied().collect();
    let mut children: BTreeSet<PageNo> = BTreeSet::new();
    let mut roots: Vec<(PageNo, TreeKind)> = Vec::new();
    for no in &orphans {
        ctx.check()?;
        let Ok(page) = survey.pages.leaf(*no) else { continue };
        if page.cell_count == 0 {
            continue;
        }
        roots.push((*no, TreeKind::of(page.kind)));
        if !page.kind.is_interior() {
            continue;
        }
        let named = page.children(survey.pages.split).filter_map(PageNo::new);
        children.extend(named.filter(|c| orphans.contains(c) && c != no));
    }
    let claims = Claims::new(survey.pages.count());
    let denied = Denied::new();
    let mut trees = Vec::new();
    let mut log = Findings::new(0);
    // A cycle of pages has no root outside itself; its pages are then taken one by one.
    let ordered = roots.iter().filter(|(no, _)| !children.contains(no)).chain(roots.iter().filter(|(no, _)| children.contains(no)));
    let mut owners = Owner::of_trees();
    for (no, kind) in ordered {
        if claims.owner(*no).is_some() {
            continue;
        }
        // There are fewer pages than owners.
        let Some(owner) = owners.next() else { break };
        let mut tree = Walker::new(&survey.pages, &claims, &mut log, &denied, ctx).walk(*no, *kind, owner, Site::default(), ctx)?;
        // What the tree leads to beyond the orphans belongs to others.
        tree.slots.retain(|s| match s {
            Slot::Leaf { page, .. } => orphans.contains(page),
            _ => true,
        });
        trees.push(tree);
    }
    trees.sort_by_key(|t| (std::cmp::Reverse(t.leaves().count()), t.root));
    Ok(trees)
}

/// Gives orphan trees to objects that have lost theirs; `true` when one was given.
///
/// # Errors
/// Cancellation only.
pub(super) fn assign(survey: &mut Scanned<'_>, ctx: &Ctx) -> Result<bool> {
    let lost: Vec<usize> = survey
        .trees
        .iter()
        .enumerate()
        .filter(|(_, t)| t.object != ObjectId::SCHEMA && t.tree.leaves().next().is_none() && root_is_unknown(survey, &t.tree))
        .map(|(i, _)| i)
        .collect();
    if lost.is_empty() || survey.orphans.is_empty() {
        return Ok(false);
    }
    let trees = find(survey, ctx)?;
    let readers: Vec<(usize, bool, Reader)> = lost
        .iter()
        .filter_map(|&i| {
            let reader = reader(survey, i)?;
            Some((i, is_vouched(survey, &reader, survey.freelist.whole), reader))
        })
        .collect();
    // (score, leaves, orphan tree, object's tree)
    let mut fits: Vec<(u32, usize, usize, usize)> = Vec::new();
    for (at, tree) in trees.iter().enumerate() {
        ctx.check()?;
        if tree.leaves().chain(tree.interiors.iter().map(|(no, _)| *no)).any(|no| !survey.may_come_back(no)) {
            continue;
        }
        let current = tree.interiors.iter().all(|(no, _)| is_current(survey, *no));
        let mut profile: Option<Profile> = None;
        for (place, vouched, reader) in &readers {
            let named = hint(survey, *place) == Some(tree.root);
            if !(named || *vouched && current) {
                continue;
            }
            let same_kind = survey.trees.get(*place).is_some_and(|t| t.tree.kind == tree.kind);
            // A declaration from elsewhere has to fit by what its columns mean: its order may be another one.
            if let (true, Reader::Table(plan), true) = (same_kind, reader, from_elsewhere(survey, *place)) {
                let profile = match &mut profile {
                    Some(profile) => profile,
                    none => none.insert(Profile::of(&survey.pages, survey.encoding, tree, ctx)?),
                };
                if !profile.is_natural(plan) {
                    continue;
                }
            }
            if let Some(score) = same_kind.then(|| score(survey, reader, tree)).flatten() {
                let score = if named { score.saturating_add(NAMED) } else { score };
                fits.push((score, tree.leaves().count(), at, *place));
            }
        }
    }
    let mut taken_trees = BTreeSet::new();
    let mut taken_objects = BTreeSet::new();
    let mut given: Vec<(usize, usize)> = Vec::new();
    fits.sort_unstable_by(|a, b| b.cmp(a));
    for &(score, leaves, at, place) in &fits {
        if taken_trees.contains(&at) || taken_objects.contains(&place) {
            continue;
        }
        let rivals_for_tree = fits.iter().any(|f| f.2 == at && f.3 != place && f.0 == score && !taken_objects.contains(&f.3));
        let rivals_for_object =
            fits.iter().any(|f| f.3 == place && f.2 != at && f.0 == score && f.1 == leaves && !taken_trees.contains(&f.2));
        if rivals_for_tree || rivals_for_object {
            // Nothing tells the two apart: a wrong name is worse than none.
            continue;
        }
        taken_trees.insert(at);
        taken_objects.insert(place);
        given.push((at, place));
    }
    for (at, place) in &given {
        survey.changed(*place);
        let Scanned { known, trees: all, .. } = &mut *survey;
        let (Some(found), Some(t)) = (trees.get(*at), all.get_mut(*place)) else { continue };
        let owner = t.tree.owner;
        t.tree = Tree { owner, ..found.clone() };
        let index = t.tree.kind == TreeKind::Index;
        for (no, _) in &t.tree.interiors {
            let _ = known.claims.claim(*no, owner, if index { Role::IndexInterior } else { Role::TableInterior });
            known.adopted.insert(*no);
        }
        let leaves: Vec<PageNo> = t.tree.leaves().collect();
        for no in leaves {
            let _ = known.claims.claim(no, owner, if index { Role::IndexLeaf } else { Role::TableLeaf });
            known.adopted.insert(no);
        }
    }
    Ok(!given.is_empty())
}

/// Whether no child of an orphaned interior page has found another parent since: a freed page still names them.
pub(super) fn is_current(survey: &Scanned<'_>, no: PageNo) -> bool {
    let Ok(page) = survey.pages.leaf(no) else { return false };
    page.children(survey.pages.split).filter_map(PageNo::new).all(|child| survey.claims.owner(child).is_none())
}

/// Whether the declaration of a tree's object is not the evidence's own.
pub(super) fn from_elsewhere(survey: &Scanned<'_>, place: usize) -> bool {
    let row = survey.trees.get(place).and_then(|t| survey.catalog.get(t.object)?.row.as_ref());
    row.is_some_and(|r| matches!(r.source, RowSource::Given | RowSource::Bytes))
}

/// The root page that the schema row of a tree's object names without being taken at its word.
fn hint(survey: &Scanned<'_>, place: usize) -> Option<PageNo> {
    survey.catalog.get(survey.trees.get(place)?.object)?.row.as_ref()?.hint
}

/// Whether nothing says where the tree of an object begins: its root page is outside, or it is a sound page that is not its
/// own. A root that is named and wiped, or overwritten, led to several orphan trees; they come back through its hole.
fn root_is_unknown(survey: &Scanned<'_>, tree: &Tree) -> bool {
    tree.slots.iter().all(|s| match s {
        Slot::Hole { by: None, child, .. } => *child == 0 || *child > survey.pages.count() || survey.pages.page(tree.root).is_ok(),
        _ => false,
    })
}

/// How well an orphan tree fits an object, over a sample of its leaves; `None` when one of them does not.
fn score(survey: &Scanned<'_>, reader: &Reader, tree: &Tree) -> Option<u32> {
    let leaves: Vec<PageNo> = tree.leaves().collect();
    let step = leaves.len().div_ceil(LEAVES).max(1);
    let mut lowest: Option<u32> = None;
    for no in leaves.into_iter().step_by(step) {
        let score = shape_of_page(&survey.pages, reader, no)?;
        lowest = Some(lowest.map_or(score, |l| l.min(score)));
    }
    lowest
}
