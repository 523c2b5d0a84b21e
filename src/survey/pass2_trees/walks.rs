//! The walks of all trees, and who keeps a page that two references lead to.

use crate::ctx::Ctx;
use crate::error::Result;
use crate::finding::{Findings, Site};
use crate::format::Encoding;
use crate::ids::{ObjectId, PageNo, RootPage};
use crate::schema::{Catalog, Object};
use crate::survey::pass2_trees::claimants::Claimants;
use crate::survey::pass2_trees::round::Round;
use crate::tree::Pages;
use crate::tree::claims::{Claims, Owner, Role};
use crate::tree::walk::{Denied, Tree, TreeKind, Walker, give};

/// How often a better claim may send the walks back to the start. Each round settles at least one page; what is still
/// contested then stays with whoever came first.
const ROUNDS: usize = 16;

/// Walks `sqlite_schema` and every object that has a root page. Pages whose type byte lies are settled.
///
/// # Errors
/// Cancellation only.
pub(super) fn walk_all(
    pages: &mut Pages<'_>,
    catalog: &Catalog,
    (encoding, mapped): (Encoding, bool),
    claims: &Claims,
    log: &mut Findings,
    ctx: &Ctx,
) -> Result<Vec<(ObjectId, Tree)>> {
    let mut denied = Denied::new();
    let mut round = 0_usize;
    loop {
        let mut found = Findings::new(log.cap());
        let walked = walk_once(pages, catalog, claims, &denied, &mut found, ctx)?;
        round = round.saturating_add(1);
        let before = denied.len();
        if round < ROUNDS {
            let mut claimants = Claimants::new(pages, catalog, encoding, mapped, &walked);
            // Under a copy of an interior page everything is contested: what is a copy comes first.
            claimants.deny_copies(&mut denied, ctx)?;
            if denied.len() == before {
                claimants.deny_worse(&mut denied, ctx)?;
            }
        }
        if denied.len() == before {
            log.merge(found);
            pages.retype(walked.retyped);
            return Ok(walked.trees);
        }
        for role in [Role::TableInterior, Role::TableLeaf, Role::IndexInterior, Role::IndexLeaf, Role::Unreadable] {
            claims.release_all(role);
        }
    }
}

/// The kind of tree of an object that has one.
fn kind_of(pages: &Pages<'_>, object: &Object) -> TreeKind {
    match object.table_def() {
        Some(t) if t.without_rowid => TreeKind::Index,
        Some(_) => TreeKind::Table,
        None if object.kind == crate::schema::ObjectKind::Index => TreeKind::Index,
        // A table whose text says nothing: its root says what kind of tree it is.
        None => object.root.and_then(|r| pages.page(r.0).ok()).map_or(TreeKind::Table, |p| TreeKind::of(p.kind)),
    }
}

fn walk_once(pages: &Pages<'_>, catalog: &Catalog, claims: &Claims, denied: &Denied, log: &mut Findings, ctx: &Ctx) -> Result<Round> {
    let objects: Vec<(Owner, &Object, TreeKind)> = catalog
        .objects()
        .iter()
        .filter(|o| o.kind.has_tree())
        .zip(Owner::of_trees())
        .map(|(o, owner)| (owner, o, kind_of(pages, o)))
        .collect();
    let mut walker = Walker::new(pages, claims, log, denied, ctx).retyping();
    for (owner, object, kind) in &objects {
        if let Some(RootPage(root)) = object.root
            && !denied.contains_key(&(*owner, None))
            && may_be_root(pages, root, *kind)
        {
            walker.roots.entry(root).or_insert(*owner);
        }
    }
    let mut trees = Vec::with_capacity(objects.len());
    for (owner, object, kind) in objects {
        let site = Site::object(object.id);
        let mut tree = match object.root {
            Some(RootPage(root)) => walker.walk(root, kind, owner, site, ctx)?,
            None => Tree::lost(owner, kind),
        };
        give(&mut walker, &mut tree, site, ctx)?;
        trees.push((object.id, tree));
    }
    Ok(Round { trees, contested: walker.contested, places: walker.places, retyped: walker.retyped.unwrap_or_default() })
}

/// Whether nothing on a page speaks against its being the root of a tree of this kind.
fn may_be_root(pages: &Pages<'_>, root: PageNo, kind: TreeKind) -> bool {
    pages.leaf(root).map_or(true, |page| TreeKind::of(page.kind) == kind) || pages.as_kind_of(root, kind).is_some()
}
