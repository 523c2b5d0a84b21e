//! The walks of all trees, and who keeps a page that two references lead to.

use std::collections::BTreeSet;

use crate::ctx::Ctx;
use crate::error::Result;
use crate::finding::{Findings, Site};
use crate::format::PageKind;
use crate::ids::{ObjectId, PageNo, RootPage};
use crate::schema::{Catalog, Object};
use crate::tree::claims::{Claims, Owner, Role};
use crate::tree::walk::{Contested, Reference, Tree, TreeKind, Walker, give};
use crate::tree::{Pages, Slot};

/// How often a better claim may send the walks back to the start. Each round settles at least one page; what is still
/// contested then stays with whoever came first.
const ROUNDS: usize = 16;

/// Contested pages that are weighed in one round, each at the cost of a look through two trees.
const CONTESTED: usize = 500;

/// Walks `sqlite_schema` and every object that has a root page.
///
/// # Errors
/// Cancellation only.
pub(super) fn walk_all(
    pages: &Pages<'_>,
    catalog: &Catalog,
    claims: &Claims,
    log: &mut Findings,
    ctx: &Ctx,
) -> Result<Vec<(ObjectId, Tree)>> {
    let mut denied: BTreeSet<(Owner, Reference)> = BTreeSet::new();
    let mut round = 0_usize;
    loop {
        let mut found = Findings::new(log.cap());
        let (trees, contested) = walk_once(pages, catalog, claims, &denied, &mut found, ctx)?;
        round = round.saturating_add(1);
        let before = denied.len();
        if round < ROUNDS {
            deny_worse(pages, &trees, &contested, &mut denied);
        }
        if denied.len() == before {
            log.merge(found);
            return Ok(trees);
        }
        for role in [Role::TableInterior, Role::TableLeaf, Role::IndexInterior, Role::IndexLeaf, Role::Unreadable] {
            claims.release_all(role);
        }
    }
}

fn kind_of(object: &Object) -> TreeKind {
    if object.table_def().is_some_and(|t| !t.without_rowid) { TreeKind::Table } else { TreeKind::Index }
}

fn walk_once(
    pages: &Pages<'_>,
    catalog: &Catalog,
    claims: &Claims,
    denied: &BTreeSet<(Owner, Reference)>,
    log: &mut Findings,
    ctx: &Ctx,
) -> Result<(Vec<(ObjectId, Tree)>, Vec<Contested>)> {
    let mut trees = Vec::new();
    let mut walker = Walker::new(pages, claims, log, denied, ctx);
    for object in catalog.objects() {
        if !object.kind.has_tree() {
            continue;
        }
        let kind = match object.kind {
            _ if object.table_def().is_some() => kind_of(object),
            crate::schema::ObjectKind::Index => TreeKind::Index,
            // A table whose text says nothing: its root says what kind of tree it is.
            _ => object.root.and_then(|r| pages.page(r.0).ok()).map_or(TreeKind::Table, |p| TreeKind::of(p.kind)),
        };
        let owner = Owner(u32::try_from(trees.len()).unwrap_or(0));
        let Some(RootPage(root)) = object.root else {
            let mut tree = Tree::lost(owner, kind);
            give(&mut walker, &mut tree, Site::object(object.id), ctx)?;
            trees.push((object.id, tree));
            continue;
        };
        let mut tree = walker.walk(root, kind, owner, Site::object(object.id), ctx)?;
        give(&mut walker, &mut tree, Site::object(object.id), ctx)?;
        trees.push((object.id, tree));
    }
    let contested = std::mem::take(&mut walker.contested);
    Ok((trees, contested))
}

/// Of two references to one page, denies the one whose bounds the rows of the page do not keep.
fn deny_worse(pages: &Pages<'_>, trees: &[(ObjectId, Tree)], contested: &[Contested], denied: &mut BTreeSet<(Owner, Reference)>) {
    for c in contested.iter().take(CONTESTED) {
        let first = trees.get(crate::ids::idx(c.first.0)).and_then(|(_, t)| reference_to(t, c.page));
        let second = trees.get(crate::ids::idx(c.second.0)).and_then(|(_, t)| hole_at(t, c.second_by));
        let (Some((Some(first_by), a)), Some(b)) = (first, second) else { continue };
        let Some(range) = rowid_range(pages, c.page) else { continue };
        if !within(range, a) && within(range, b) {
            denied.insert((c.first, first_by));
        }
    }
}

type Bounds = (Option<i64>, Option<i64>);

fn within((low, high): (i64, i64), (above, upto): Bounds) -> bool {
    above.is_none_or(|a| low > a) && upto.is_none_or(|u| high <= u)
}

fn reference_to(tree: &Tree, page: PageNo) -> Option<(Option<Reference>, Bounds)> {
    tree.slots.iter().find_map(|s| match *s {
        Slot::Leaf { page: p, by, above, upto } if p == page => Some((by, (above, upto))),
        _ => None,
    })
}

fn hole_at(tree: &Tree, by: Option<Reference>) -> Option<Bounds> {
    tree.slots.iter().find_map(|s| match *s {
        Slot::Hole { by: b, above, upto, .. } if b == by => Some((above, upto)),
        _ => None,
    })
}

/// The lowest and highest rowid on a table leaf.
fn rowid_range(pages: &Pages<'_>, no: PageNo) -> Option<(i64, i64)> {
    let page = pages.page(no).ok()?;
    if page.kind != PageKind::TableLeaf {
        return None;
    }
    let rowids = page.cells(pages.split).filter_map(|(_, c)| c.ok()?.rowid);
    rowids.fold(None, |range: Option<(i64, i64)>, r| Some(range.map_or((r, r), |(low, high)| (low.min(r), high.max(r)))))
}
