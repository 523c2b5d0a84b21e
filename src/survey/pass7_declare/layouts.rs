//! The order of columns in the records of a table whose declaration comes from elsewhere.
//!
//! An application that has been updated in place has its newer columns at the end, a new installation has them where its
//! CREATE text says. A table of that text then fits no tree of an older file as it stands.
//!
//! Tests:    storage classes, NULL and NOT NULL at each position of the records, against each column.
//! Collects: the other CREATE texts of the table that fit; else the order with the fewest columns moved to the end.
//! Leaves:   positions for which several columns are as likely: they get no name, since a wrong one is worse than none.

use std::collections::BTreeSet;

use crate::ctx::Ctx;
use crate::error::Result;
use crate::finding::{Code, Defect, Findings, Site};
use crate::ids::{ObjectId, PageNo};
use crate::schema::ddl::pieces::Pieces;
use crate::schema::{Catalog, Name, Object, RowSource, SchemaRow};
use crate::survey::pass5_restore::orphan_trees;
use crate::survey::rows::plan::TablePlan;
use crate::survey::rows::profile::Profile;
use crate::survey::rows::profile::optional;
use crate::survey::stages::Survey;
use crate::tree::{Tree, TreeKind};

/// Columns that may stand behind the others. More of them leave no order that the types alone could prove.
const MOVED: usize = 6;

/// Steps of the search for one table and tree.
const STEPS: usize = 200_000;

/// Orders of one table that are compared; with more of them hardly a position is certain.
const ORDERS: usize = 500;

/// Tables from elsewhere that have no tree, with another CREATE text under which one fits: the rows of the schema with these
/// texts, and findings that say so. `None` where there is none.
///
/// # Errors
/// Cancellation only.
pub(super) fn find(survey: &Survey<'_>, log: &mut Findings, ctx: &Ctx) -> Result<Option<Vec<SchemaRow>>> {
    let lost: Vec<&Object> = survey.trees.iter().filter_map(|t| without_tree(survey, t.object, &t.tree)).collect();
    if lost.is_empty() {
        return Ok(None);
    }
    // (table, tree, text, words)
    let mut found: Vec<(ObjectId, PageNo, Vec<u8>, String)> = Vec::new();
    for tree in orphan_trees::find(survey, ctx)?.iter().filter(|t| t.kind == TreeKind::Table) {
        let profile = Profile::of(&survey.pages, survey.encoding, tree, ctx)?;
        // One or two columns say nothing about whose they are.
        if profile.positions.len() < 3 {
            continue;
        }
        for object in &lost {
            ctx.check()?;
            if let Some((text, words)) = other_text(survey, object, &profile) {
                found.push((object.id, tree.root, text, words));
            }
        }
    }
    let alone = |f: &&(ObjectId, PageNo, Vec<u8>, String)| found.iter().filter(|o| o.0 == f.0 || o.1 == f.1).count() == 1;
    let chosen: Vec<_> = found.iter().filter(alone).collect();
    if chosen.is_empty() {
        return Ok(None);
    }
    let mut rows = Vec::new();
    for object in survey.catalog.objects() {
        let Some(mut row) = object.row.clone() else { continue };
        if let Some((_, root, text, words)) = chosen.iter().find(|f| f.0 == object.id) {
            log.add_with(Defect::new(Code::ColumnsGuessed, 0, 0, 0), Site { object: Some(object.id), ..row.site }, words);
            row.sql = Some(text.clone());
            row.hint = Some(*root);
        }
        rows.push(row);
    }
    Ok(Some(rows))
}

/// A table whose declaration comes from elsewhere and that no tree fits.
fn without_tree<'s>(survey: &'s Survey<'_>, id: ObjectId, tree: &Tree) -> Option<&'s Object> {
    let object = survey.catalog.get(id)?;
    let row = object.row.as_ref()?;
    let elsewhere = matches!(row.source, RowSource::Given | RowSource::Bytes);
    let plain = object.table_def().is_some_and(|t| !t.without_rowid) && object.problem.is_none() && object.excluded.is_none();
    (elsewhere && plain && tree.leaves().next().is_none()).then_some(object)
}

/// The text under which a table fits a tree, with words for the report.
fn other_text(survey: &Survey<'_>, object: &Object, profile: &Profile) -> Option<(Vec<u8>, String)> {
    let plan = TablePlan::compile(&survey.catalog, object, survey.encoding)?;
    if profile.is_natural(&plan) {
        return None;
    }
    let row = object.row.as_ref()?;
    let fitting: Vec<&Vec<u8>> =
        row.layouts.iter().filter(|sql| compiled(row, sql, survey).is_some_and(|p| profile.is_natural(&p))).collect();
    match fitting.as_slice() {
        [] => {}
        [sql] => return Some(((*sql).clone(), "by an older text of the schema given".to_owned())),
        _ => return None,
    }
    let order = order(&plan, profile)?;
    declare(row.sql.as_deref()?, &plan, &order)
}

fn compiled(row: &SchemaRow, sql: &[u8], survey: &Survey<'_>) -> Option<TablePlan> {
    let row = SchemaRow { sql: Some(sql.to_vec()), ..row.clone() };
    let catalog = Catalog::from_rows(vec![row], &mut Findings::new(0));
    let object = catalog.objects().get(1).filter(|o| o.problem.is_none())?;
    TablePlan::compile(&catalog, object, survey.encoding)
}

/// For each position the columns that stand there in some order with the fewest columns moved; `None` when no order fits, or
/// too many do.
fn order(plan: &TablePlan, profile: &Profile) -> Option<Vec<BTreeSet<usize>>> {
    let mut steps = STEPS;
    for moved in 1..=MOVED {
        let orders = orders(plan, profile, moved, &mut steps)?;
        if orders.is_empty() {
            continue;
        }
        let mut at: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); profile.positions.len()];
        for order in &orders {
            for (set, column) in at.iter_mut().zip(order) {
                set.insert(*column);
            }
        }
        return Some(at);
    }
    None
}

/// All orders in which exactly `moved` columns stand behind the others or are not there yet; `None` when the search takes
/// too long or finds too many.
fn orders(plan: &TablePlan, profile: &Profile, moved: usize, steps: &mut usize) -> Option<Vec<Vec<usize>>> {
    let width = profile.positions.len();
    let suits = |at: usize, column: usize| profile.positions.get(at).is_some_and(|p| p.suits(plan, column));
    let mut found: Vec<Vec<usize>> = Vec::new();
    // Each entry: columns in place so far, columns moved, the next column in the order of the declaration.
    let mut open: Vec<(Vec<usize>, Vec<usize>, usize)> = vec![(Vec::new(), Vec::new(), 0)];
    while let Some((placed, skipped, next)) = open.pop() {
        *steps = steps.checked_sub(1)?;
        let column = plan.stored.get(next).copied().filter(|_| placed.len() < width);
        let Some(column) = column else {
            let rest = plan.stored.get(next..).unwrap_or_default();
            if skipped.len() == moved && rest.iter().all(|c| optional(plan, *c)) {
                behind(plan, width, placed, &skipped, &suits, steps, &mut found)?;
            }
            continue;
        };
        let onward = next.saturating_add(1);
        if skipped.len() < moved {
            let mut more = skipped.clone();
            more.push(column);
            open.push((placed.clone(), more, onward));
        }
        if suits(placed.len(), column) {
            let mut placed = placed;
            placed.push(column);
            open.push((placed, skipped, onward));
        }
    }
    Some(found)
}

/// Completes an order with the moved columns behind the others, in every way that suits.
fn behind(
    plan: &TablePlan,
    width: usize,
    placed: Vec<usize>,
    skipped: &[usize],
    suits: &dyn Fn(usize, usize) -> bool,
    steps: &mut usize,
    found: &mut Vec<Vec<usize>>,
) -> Option<()> {
    let mut open = vec![placed];
    while let Some(placed) = open.pop() {
        *steps = steps.checked_sub(1)?;
        let left = || skipped.iter().copied().filter(|c| !placed.contains(c));
        if placed.len() == width {
            if left().all(|c| optional(plan, c)) {
                found.push(placed);
                if found.len() > ORDERS {
                    return None;
                }
            }
            continue;
        }
        for column in left().filter(|c| suits(placed.len(), *c)) {
            let mut more = placed.clone();
            more.push(column);
            open.push(more);
        }
    }
    Some(())
}

/// The CREATE text with the columns in the order of the records. Positions that several columns could have get names of
/// their own, and these columns stand behind the others, without values.
fn declare(sql: &[u8], plan: &TablePlan, order: &[BTreeSet<usize>]) -> Option<(Vec<u8>, String)> {
    let mut pieces = Pieces::of(sql).filter(|p| p.names().count() == plan.columns.len())?;
    let declared: Vec<Name> = pieces.names().cloned().collect();
    let unsure: BTreeSet<usize> = order.iter().filter(|set| set.len() > 1).flatten().copied().collect();
    // What a key or an index is made of must be certain.
    let keys = plan.indexes.iter().flat_map(|i| &i.columns).filter_map(|part| match part.source {
        crate::schema::IndexSource::Column(c) => Some(c),
        _ => None,
    });
    if keys.chain(plan.alias).any(|c| unsure.contains(&c)) {
        return None;
    }
    let certain = |set: &BTreeSet<usize>| set.first().copied().filter(|_| set.len() == 1);
    let mut places: Vec<usize> = Vec::new();
    let mut words: Vec<String> = Vec::new();
    for (at, set) in order.iter().enumerate() {
        let name = match certain(set) {
            Some(column) => {
                places.push(column);
                declared.get(column)?.text()
            }
            None => {
                let name = format!("rp_unsure_{}", at.checked_add(1)?);
                places.push(pieces.names().count());
                pieces.add(Name::from(name.as_str()), name.clone().into_bytes());
                name
            }
        };
        words.push(name);
    }
    let behind: Vec<usize> = (0..declared.len()).filter(|c| !places.contains(c) && !unsure.contains(c)).collect();
    places.extend(behind);
    for column in &unsure {
        let name = declared.get(*column)?;
        places.push(pieces.names().count());
        pieces.add(name.clone(), name.quoted());
    }
    pieces.reorder(&places);
    Some((pieces.text(), format!("in the order {}", words.join(", "))))
}
