//! The schema format, which says whether DESC in a key means anything.
//!
//! Tests:    neighbouring entries of every tree whose key has a DESC column, in both orders.
//! Collects: the format that they prove, else that of the header, else 4.
//! Leaves:   formats 2 and 3, which differ from 1 in what a record may lack and not in the order of any tree.

use crate::ctx::Ctx;
use crate::error::Result;
use crate::finding::{Code, Defect, Findings, Site};
use crate::ids::{ObjectId, PageNo};
use crate::schema::layout::{IndexLayout, TableLayout};
use crate::schema::{Catalog, Object};
use crate::survey::rows::key::KeyOrder;
use crate::survey::rows::plan::{IndexPlan, TablePlan};
use crate::survey::stages::Survey;
use crate::tree::Tree;
use crate::tree::payload::PayloadReader;

/// The first format under which DESC counts; what every SQLite of the last fifteen years writes.
const DESCENDING: u32 = 4;

/// Leaves of a tree that are looked at.
const LEAVES: usize = 64;

/// Neighbours that are in order under one reading and not under the other, before the header is overruled.
const PROOF: u32 = 3;

/// The format to read the schema with, where it is not the one that the header gives. A sound header is not overruled by a few
/// entries out of order: nearly all neighbours have to say so.
///
/// # Errors
/// Cancellation only.
pub(super) fn settle(survey: &Survey<'_>, log: &mut Findings, ctx: &Ctx) -> Result<Option<u32>> {
    let given = survey.header.schema_format;
    let (mut descending, mut ascending) = (0_u32, 0_u32);
    for t in &survey.trees {
        let Some((up, down)) = survey.catalog.get(t.object).and_then(|o| orders(survey, o)) else { continue };
        let (rising, falling) = neighbours(survey, &t.tree, up, down, ctx)?;
        ascending = ascending.saturating_add(rising);
        descending = descending.saturating_add(falling);
    }
    let outweighs = |a: u32, b: u32| a >= PROOF && a > b.saturating_mul(10);
    let format = if outweighs(descending, ascending) {
        DESCENDING
    } else if outweighs(ascending, descending) {
        if (1..DESCENDING).contains(&given) { given } else { 1 }
    } else if given == 0 && survey.catalog.objects().len() > 1 {
        // SQLite gives a database its format with the first object.
        DESCENDING
    } else {
        return Ok(None);
    };
    if format == given {
        return Ok(None);
    }
    let words = if descending > ascending { "entries stand in descending order" } else { "no entry stands in descending order" };
    let site = survey.pages.site(Site::object(ObjectId::SCHEMA), PageNo::ONE);
    let site = Site { object: None, ..site };
    log.add_with(Defect::new(Code::SchemaFormatBad, 44, u64::from(given), u64::from(format)), site, words);
    Ok(Some(format))
}

/// The two orders that the key of a tree has with and without DESC; `None` when it makes no difference.
fn orders(survey: &Survey<'_>, object: &Object) -> Option<(KeyOrder, KeyOrder)> {
    let (plan, descends) = match object.table_def() {
        Some(def) if def.without_rowid => {
            let plan = TablePlan::compile(&survey.catalog, object, survey.encoding)?.key?;
            (plan, TableLayout::new(def, DESCENDING).key.iter().map(|k| k.desc).collect())
        }
        Some(_) => return None,
        None => (IndexPlan::compile(object)?, descends(&survey.catalog, object)?),
    };
    if !plan.orderable || !descends.contains(&true) {
        return None;
    }
    let order = |desc: &dyn Fn(usize) -> bool| {
        let mut plan = plan.clone();
        for (i, column) in plan.columns.iter_mut().enumerate() {
            column.desc = desc(i);
        }
        KeyOrder::new(&plan, survey.encoding)
    };
    Some((order(&|_| false), order(&|i| descends.get(i).copied().unwrap_or(false))))
}

/// Which columns of an index are declared DESC.
fn descends(catalog: &Catalog, object: &Object) -> Option<Vec<bool>> {
    let table = catalog.get(object.table?)?.table_def()?;
    let layout = match (object.index_def(), object.autoindex) {
        (Some(index), _) => IndexLayout::of_index(table, index, DESCENDING),
        (None, Some(n)) => IndexLayout::of_key(table, table.unique.iter().find(|k| k.number == n)?, DESCENDING),
        (None, None) => return None,
    };
    Some(layout.columns.iter().map(|c| c.desc).collect())
}

/// Neighbours on the leaves of a tree that are in order only without DESC, and only with it.
fn neighbours(survey: &Survey<'_>, tree: &Tree, mut up: KeyOrder, mut down: KeyOrder, ctx: &Ctx) -> Result<(u32, u32)> {
    let (mut rising, mut falling) = (0_u32, 0_u32);
    let mut reader = PayloadReader::new();
    for no in tree.leaves().take(LEAVES) {
        ctx.check()?;
        let Ok(page) = survey.pages.leaf(no) else { continue };
        let mut last: Option<Vec<u8>> = None;
        for (_, cell) in page.cells(survey.pages.split) {
            let Ok(payload) = cell.and_then(|cell| reader.read(&survey.pages, &cell)) else {
                last = None;
                continue;
            };
            if let Some(last) = &last {
                match (up.ascends(last, payload), down.ascends(last, payload)) {
                    (true, false) => rising = rising.saturating_add(1),
                    (false, true) => falling = falling.saturating_add(1),
                    _ => {}
                }
            }
            last = Some(payload.to_vec());
        }
    }
    Ok((rising, falling))
}
