//! Orphaned interior pages come back with the leaves below them: in an index-like tree they hold entries of their own.
//!
//! Tests:    that all leaves of an orphaned subtree go into one hole, that nothing else has a page it leads to, and that the
//!           entries of its interior pages have the shape of the tree.
//! Collects: for each hole the subtrees that it takes whole.
//! Leaves:   stale interior pages; their leaves come back one by one, or not at all.

use std::collections::BTreeMap;

use crate::ctx::Ctx;
use crate::error::Result;
use crate::ids::PageNo;
use crate::survey::pass5_restore::orphan_trees;
use crate::survey::rows::reader::{Reader, shape_of_page};
use crate::survey::stages::Scanned;
use crate::tree::{Slot, Tree};

/// A tree of the survey and one of its slots.
pub(super) type HoleAt = (usize, usize);

/// The subtrees that go into each hole. `leaves` says which orphaned leaf goes where.
///
/// # Errors
/// Cancellation only.
pub(super) fn find(
    survey: &Scanned<'_>,
    leaves: &BTreeMap<PageNo, HoleAt>,
    readers: &BTreeMap<usize, Reader>,
    ctx: &Ctx,
) -> Result<BTreeMap<HoleAt, Vec<Tree>>> {
    let mut found: BTreeMap<HoleAt, Vec<Tree>> = BTreeMap::new();
    if leaves.is_empty() {
        return Ok(found);
    }
    for tree in orphan_trees::find(survey, ctx)? {
        let Some(&hole) = tree.leaves().next().and_then(|no| leaves.get(&no)) else { continue };
        if tree.interiors.is_empty() || tree.leaves().any(|no| leaves.get(&no) != Some(&hole)) {
            continue;
        }
        let fits = |no: PageNo| readers.get(&hole.0).is_some_and(|r| r.key().is_none() || shape_of_page(&survey.pages, r, no).is_some());
        let below = height_of(survey, hole).is_none_or(|h| tree.height <= h);
        if below && tree.interiors.iter().all(|(no, _)| survey.may_come_back(*no) && orphan_trees::is_current(survey, *no) && fits(*no)) {
            found.entry(hole).or_default().push(tree);
        }
    }
    Ok(found)
}

/// How many levels lay below what is missing, where the walk knows it.
fn height_of(survey: &Scanned<'_>, (tree, slot): HoleAt) -> Option<u32> {
    match survey.trees.get(tree)?.tree.slots.get(slot)? {
        Slot::Hole { height, .. } => *height,
        _ => None,
    }
}
