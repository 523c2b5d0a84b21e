//! Pass 2: which pages every tree of the schema has.
//!
//! Tests:    the pointer map and the lock-byte page, which no tree may have; every interior page; pages that two trees claim.
//! Collects: the trees as slots, and who has which page. A tree that an earlier survey has read keeps what was read.
//! Leaves:   the content of leaves, overflow chains and the freelist.

mod claimants;
mod round;
mod walks;

use std::collections::{BTreeMap, BTreeSet};

use crate::ctx::Ctx;
use crate::error::Result;
use crate::ids::{ObjectId, PageNo};
use crate::schema::{Catalog, CatalogOptions, Object, SchemaRow};
use crate::survey::pointer_map;
use crate::survey::stages::{Declared, Former, Known, Walked, WalkedTree};
use crate::tree::{Claims, Owner, Role};

/// Walks every tree. What `former` has read of a tree that is declared as it was and has the same pages is taken over.
///
/// # Errors
/// Cancellation only.
pub(super) fn walk<'a>(declared: Declared<'a>, former: Option<Former>, ctx: &Ctx) -> Result<Walked<'a>> {
    let Declared { mut pages, header, rows, rulings, mut findings } = declared;
    let encoding = header.encoding().unwrap_or_default();
    let roots = rows.iter().filter_map(|r| u32::try_from(r.root?).ok().and_then(PageNo::new)).collect();
    let header = pointer_map::settle(&pages, header, &roots, &mut findings);
    let auto_vacuum = header.largest_root != 0;
    let claims = Claims::with_rulings(pages.count(), rulings);
    pointer_map::claim(&pages, auto_vacuum, &claims);
    let options = CatalogOptions { schema_format: header.schema_format.clamp(1, 4) };
    let catalog = Catalog::with_options(rows, options, &mut findings);
    ctx.progress.phase("walk", 0);
    let trees = walks::walk_all(&mut pages, &catalog, (encoding, auto_vacuum), &claims, &mut findings, ctx)?;
    let known = Known {
        pages,
        header,
        encoding,
        catalog,
        claims,
        adopted: BTreeSet::new(),
        unnamed: BTreeSet::new(),
        stale: BTreeSet::new(),
        suggested: BTreeMap::new(),
        noted: Vec::new(),
        walked: findings,
        contested: false,
    };
    let mut trees: Vec<WalkedTree> = trees.into_iter().map(|(object, tree)| WalkedTree { object, tree, reading: None }).collect();
    if let Some(former) = former {
        keep(&known, &mut trees, former);
    }
    Ok(Walked { known, trees })
}

/// Takes over what an earlier survey has read of the trees that are the same.
fn keep(known: &Known<'_>, trees: &mut [WalkedTree], former: Former) {
    let Former { header, catalog, claims, contested, trees: old } = former;
    // The format says whether DESC counts, in any of the trees.
    if contested || header.schema_format != known.header.schema_format || header.encoding() != known.header.encoding() {
        return;
    }
    let mut kept: BTreeSet<Owner> = BTreeSet::new();
    for (t, was) in trees.iter_mut().zip(old) {
        let same = t.object == was.object && t.tree == was.tree && as_declared(&known.catalog, &catalog, t.object);
        if let (true, (_, tree, Some(reading))) = (same, was.reading()) {
            kept.insert(tree.owner);
            t.reading = Some(reading);
        }
    }
    // Their chains are theirs already. Where another tree has such a page now, all have to be read in their order.
    if !known.claims.take_over(&claims, Role::Overflow, &kept) {
        known.claims.release_all(Role::Overflow);
        for t in trees {
            t.reading = None;
        }
    }
}

/// Whether two catalogs declare an object alike, with everything that says how its rows are read and judged: its table, and
/// all indexes of that.
fn as_declared(a: &Catalog, b: &Catalog, id: ObjectId) -> bool {
    let family = |catalog: &'_ Catalog| -> Option<Vec<ObjectId>> {
        let table = catalog.get(id)?.table.unwrap_or(id);
        Some([id, table].into_iter().chain(catalog.indexes_of(table).map(|o| o.id)).collect())
    };
    let (Some(ids), Some(others)) = (family(a), family(b)) else { return false };
    ids == others && ids.iter().all(|id| a.get(*id).zip(b.get(*id)).is_some_and(|(a, b)| alike(a, b)))
}

fn alike(a: &Object, b: &Object) -> bool {
    let text = |o: &Object| o.row.as_ref().map(|r: &SchemaRow| (r.rowid, r.kind.clone(), r.name.clone(), r.table.clone(), r.sql.clone()));
    (a.kind, a.root, a.table, a.family, a.excluded, a.autoindex) == (b.kind, b.root, b.table, b.family, b.excluded, b.autoindex)
        && a.problem.is_some() == b.problem.is_some()
        && text(a) == text(b)
}
