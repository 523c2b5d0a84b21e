//! The tables that rows can belong to: those of the schema, and those that the schema no longer has.
//!
//! Tests:    rows of `sqlite_schema` in free bytes and in older images.
//! Collects: a shape for each table and index, with what its live rows hold; which free page hung on which root.
//! Leaves:   the rows.

use std::collections::{BTreeMap, BTreeSet};

use memchr::memmem;
use rayon::prelude::*;

use crate::bytes::{u16_at, u32_at};
use crate::carve::fit::Shapes;
use crate::carve::found::Found;
use crate::carve::pages::Carver;
use crate::carve::shape::{Of, Shape};
use crate::ctx::Ctx;
use crate::error::Result;
use crate::finding::{Findings, Site};
use crate::format::{Encoding, Fields, Page, PageKind};
use crate::ids::{ObjectId, PageNo};
use crate::schema::{Catalog, Family, FtsPart, ObjectKind, SchemaRow};
use crate::survey::schema_rows::schema_row;
use crate::survey::{Content, Survey, SurveyedTree, TablePlan};
use crate::tree::Slot;

/// Leaves of a table that are looked at for what its rows hold.
const SAMPLED: usize = 160;
/// Declarations of tables that are gone which are followed.
const DROPPED: usize = 200;
/// Live rows below which a table learns from what is found.
const POOR: u32 = 40;
/// Pages that such a table learns from.
const TEACHERS: usize = 600;
/// Bits from which on a find is good enough to learn from.
const SURE: i32 = 20;
/// Shapes of indexes.
const INDEXES: usize = 400;

/// Whether rows of a table are given out.
fn is_reported(family: Family) -> bool {
    match family {
        Family::Table | Family::Schema => true,
        Family::FtsShadow { part, .. } | Family::OrphanShadow { part, .. } => part == FtsPart::Content,
        _ => false,
    }
}

/// The shapes of everything that the schema has.
///
/// # Errors
/// Cancellation.
pub(crate) fn live(survey: &Survey<'_>, ctx: &Ctx) -> Result<Shapes> {
    let mut shapes = Shapes { all: Vec::new(), encoding: survey.encoding };
    let tables: Vec<&SurveyedTree> = survey.trees.iter().filter(|t| matches!(t.content, Some(Content::Table { .. }))).collect();
    let made: Vec<Option<Vec<Shape>>> = tables
        .par_iter()
        .map(|t| {
            if ctx.is_cancelled() {
                return None;
            }
            let Some(Content::Table { plan, .. }) = &t.content else { return None };
            let object = survey.catalog.get(t.object)?;
            let mut shape = Shape::of_table(Of::Table(t.object), plan, is_reported(object.family));
            learn(survey, t, &mut shape);
            shape.settle();
            let mut all = vec![shape];
            for (i, index) in plan.indexes.iter().enumerate() {
                let Some(mut shape) = Shape::of_index(Of::Index(t.object, i), plan, index, is_reported(object.family)) else { continue };
                if let Some(tree) = survey.tree_of(index.object) {
                    learn(survey, tree, &mut shape);
                }
                shape.settle();
                all.push(shape);
            }
            Some(all)
        })
        .collect();
    ctx.check()?;
    let made: Vec<Vec<Shape>> = made.into_iter().flatten().collect();
    let indexes: usize = made.iter().map(|m| m.len().saturating_sub(1)).sum();
    for mut of_table in made {
        if indexes > INDEXES {
            of_table.truncate(1);
        }
        shapes.all.append(&mut of_table);
    }
    Ok(shapes)
}

/// Counts what a spread of the live records holds.
fn learn(survey: &Survey<'_>, t: &SurveyedTree, shape: &mut Shape) {
    let leaves: Vec<PageNo> = t
        .tree
        .slots
        .iter()
        .filter_map(|s| match s {
            Slot::Leaf { page, .. } => Some(*page),
            _ => None,
        })
        .collect();
    let step = leaves.len().div_ceil(SAMPLED).max(1);
    let mut fields = Fields::new();
    let last = leaves.last().copied();
    for no in leaves.iter().copied().step_by(step).chain(last) {
        for (_, cell) in survey.pages.cells(no).map(|(_, cells)| cells).unwrap_or_default() {
            if fields.read(cell.local, cell.payload_len).is_err() || u64::from(fields.body_end()) != cell.payload_len {
                continue;
            }
            shape.learn(fields.as_slice(), cell.local, cell.rowid);
            for (column, f) in shape.columns.iter_mut().zip(fields.as_slice()) {
                if f.serial >= 13 && f.serial & 1 == 1 && !column.odd_text {
                    let start = crate::ids::idx(f.start);
                    let text = cell.local.get(start..start.saturating_add(crate::ids::idx(f.len))).unwrap_or_default();
                    column.odd_text = match survey.encoding {
                        Encoding::Utf8 => !survey.encoding.is_valid(text) || text.iter().any(|b| *b < 0x20 && !matches!(b, 9 | 10 | 13)),
                        _ => !survey.encoding.is_valid(text),
                    };
                }
            }
        }
    }
}

/// A table that the schema no longer has.
#[derive(Debug, Clone)]
pub(crate) struct Dropped {
    pub(crate) sql: String,
    /// Where its declaration was found.
    pub(crate) place: String,
}

/// Finds declarations of tables that are gone, adds their shapes, and says which free page belonged to which table.
///
/// # Errors
/// Cancellation.
pub(crate) fn dropped(carver: &mut Carver<'_, '_>, ctx: &Ctx) -> Result<Vec<Dropped>> {
    let survey = carver.survey;
    let needles: Vec<Vec<u8>> = [&b"CREATE "[..], b"create "].iter().map(|n| survey.encoding.from_utf8(n).into_owned()).collect();
    let finders: Vec<memmem::Finder<'_>> = needles.iter().map(memmem::Finder::new).collect();
    let Some(schema) = carver.shapes.all.iter().position(|s| s.of == Of::Table(ObjectId::SCHEMA)) else { return Ok(Vec::new()) };
    // Only the schema's own shape counts for these pages: everything else on them is found later.
    let only = Shapes { all: vec![carver.shapes.all.get(schema).cloned()].into_iter().flatten().collect(), encoding: survey.encoding };
    let last = carver.last_page();
    let numbers: Vec<u32> = (1..=last).collect();
    let parts: Vec<Vec<(SchemaRow, String)>> = numbers
        .par_chunks(256)
        .map(|chunk| {
            let mut out = Vec::new();
            for no in chunk.iter().copied().filter_map(PageNo::new) {
                if ctx.is_cancelled() {
                    break;
                }
                let mut take = |bytes: &[u8]| finders.iter().any(|f| f.find(bytes).is_some());
                for found in carver.page_with(no, &only, true, &mut take) {
                    if !found.complete {
                        continue;
                    }
                    let mut fields = Fields::new();
                    if fields.read(&found.payload, crate::ids::wide(found.payload.len())).is_err() {
                        continue;
                    }
                    if let Some(row) = schema_row(&fields, &found.payload, found.rowid.unwrap_or(0), survey.encoding, Site::default())
                        && matches!(row.kind.as_slice(), b"table" | b"index")
                    {
                        out.push((row, found.place.words()));
                    }
                }
            }
            out
        })
        .collect();
    ctx.check()?;
    let mut out: Vec<Dropped> = Vec::new();
    let mut roots: Vec<(PageNo, usize)> = Vec::new();
    let mut seen: BTreeSet<(Vec<u8>, Vec<u8>, Option<i64>)> = BTreeSet::new();
    let found: Vec<(SchemaRow, String)> = parts.into_iter().flatten().collect();
    let indexes: Vec<SchemaRow> = found.iter().filter(|(r, _)| r.kind == b"index").map(|(r, _)| r.clone()).collect();
    for (row, place) in found {
        if row.kind != b"table" {
            continue;
        }
        if out.len() >= DROPPED {
            break;
        }
        let Some(sql) = row.sql.clone() else { continue };
        if !seen.insert((row.name.clone(), sql.clone(), row.root)) {
            continue;
        }
        add(carver, (row, &indexes), sql, place, &mut out, &mut roots);
    }
    carver.lineage = lineage(carver, &roots);
    let gone = |s: &usize| carver.shapes.all.get(*s).is_some_and(|s| matches!(s.of, Of::Dropped(_)));
    carver.roots = roots.iter().filter(|(_, s)| gone(s)).copied().collect();
    Ok(out)
}

fn add(
    carver: &mut Carver<'_, '_>,
    (row, indexes): (SchemaRow, &[SchemaRow]),
    sql: Vec<u8>,
    place: String,
    out: &mut Vec<Dropped>,
    roots: &mut Vec<(PageNo, usize)>,
) {
    let survey = carver.survey;
    let root = row.root.and_then(|r| u32::try_from(r).ok()).and_then(PageNo::new);
    let live = survey.catalog.by_name(&row.name).filter(|o| o.kind == ObjectKind::Table);
    let live_shape = live.and_then(|o| carver.shapes.all.iter().position(|s| s.of == Of::Table(o.id)));
    let mut names: BTreeSet<&[u8]> = BTreeSet::new();
    let own = indexes.iter().filter(|i| i.table.eq_ignore_ascii_case(&row.name) && names.insert(&i.name)).cloned();
    let rows: Vec<SchemaRow> = std::iter::once(row.clone()).chain(own.take(64)).collect();
    let catalog = Catalog::from_rows(rows, &mut Findings::new(0));
    let Some(object) = catalog.objects().iter().find(|o| o.kind == ObjectKind::Table && o.id != ObjectId::SCHEMA) else { return };
    if object.problem.is_some() {
        return;
    }
    let Some(plan) = TablePlan::compile(&catalog, object, survey.encoding) else { return };
    let columns = |plan: &TablePlan| -> Vec<String> { plan.columns.iter().map(|c| c.name.to_lowercase()).collect() };
    let begins = |shape: &Shape| columns(&shape.plan).starts_with(&columns(&plan)) && shape.plan.key.is_some() == plan.key.is_some();
    // An earlier text of a table that is still there: columns were added, or it was made anew.
    if let Some(at) = live_shape.filter(|at| carver.shapes.all.get(*at).is_some_and(begins)) {
        if let Some(root) = root {
            roots.push((root, at));
        }
        return;
    }
    let renamed = root.and_then(|r| {
        let object = survey.catalog.at_root(r).find(|o| o.kind == ObjectKind::Table)?;
        carver.shapes.all.iter().position(|s| s.of == Of::Table(object.id))
    });
    if renamed.and_then(|at| carver.shapes.all.get(at)).is_some_and(|s| columns(&s.plan) == columns(&plan)) {
        return;
    }
    if let Some(known) = carver.shapes.all.iter().position(|s| matches!(s.of, Of::Dropped(_)) && s.plan.name == plan.name && begins(s)) {
        if let Some(root) = root {
            roots.push((root, known));
        }
        return;
    }
    let mut shape = Shape::of_table(Of::Dropped(out.len()), &plan, is_reported(object.family));
    shape.settle();
    if let Some(root) = root {
        roots.push((root, carver.shapes.all.len()));
    }
    let no = out.len();
    let of_indexes = plan.indexes.iter().enumerate();
    let of_indexes: Vec<Shape> = of_indexes
        .filter_map(|(i, index)| Shape::of_index(Of::DroppedIndex(no, i), &plan, index, false))
        .map(|mut s| {
            s.settle();
            s
        })
        .collect();
    out.push(Dropped { sql: String::from_utf8_lossy(&sql).into_owned(), place });
    carver.shapes.all.push(shape);
    carver.shapes.all.extend(of_indexes);
}

/// Tables without live rows to speak of learn from rows that are whole where they lie.
///
/// # Errors
/// Cancellation.
pub(crate) fn learn_from_finds(carver: &mut Carver<'_, '_>, ctx: &Ctx) -> Result<()> {
    let poor = |s: &Shape| s.sampled < POOR && !s.is_index();
    if !carver.shapes.all.iter().any(|s| poor(s) && s.reported) {
        return Ok(());
    }
    let pages: Vec<PageNo> = (1..=carver.last_page()).filter_map(PageNo::new).filter(|no| carver.may_teach(*no)).collect();
    let step = pages.len().div_ceil(TEACHERS).max(1);
    let chosen: Vec<PageNo> = pages.into_iter().step_by(step).collect();
    let finds: Vec<Vec<Found>> = chosen
        .par_iter()
        .map(|no| if ctx.is_cancelled() { Vec::new() } else { carver.page_with(*no, &carver.shapes, false, &mut |_| true) })
        .collect();
    ctx.check()?;
    let mut fields = Fields::new();
    let mut taught = BTreeSet::new();
    for found in finds.into_iter().flatten() {
        if !found.complete || found.made_up || !found.index.is_empty() || found.bits < SURE {
            continue;
        }
        let Some(shape) = carver.shapes.all.get_mut(found.shape).filter(|s| taught.contains(&found.shape) || poor(s)) else { continue };
        if fields.read(&found.payload, crate::ids::wide(found.payload.len())).is_ok() {
            taught.insert(found.shape);
            shape.learn(fields.as_slice(), &found.payload, found.rowid);
        }
    }
    for at in taught {
        if let Some(shape) = carver.shapes.all.get_mut(at) {
            shape.settle();
        }
    }
    Ok(())
}

/// The children that an interior page names, or named before its root was emptied.
fn children(bytes: &[u8], no: PageNo, usable: u32) -> Vec<PageNo> {
    let Ok(page) = Page::read(bytes, no, usable) else { return Vec::new() };
    let mut out: Vec<PageNo> = Vec::new();
    if page.kind.is_interior() {
        out.extend(page.children(crate::format::Split::new(usable)).filter_map(PageNo::new));
        return out;
    }
    if page.cell_count > 0 {
        return out;
    }
    // A root that was emptied becomes a leaf; the pointers of the interior page that it was follow four bytes on.
    let head = page.pointers_at();
    out.extend(u32_at(bytes, head).and_then(PageNo::new));
    let mut at = head.saturating_add(4);
    while let Some(pointer) = u16_at(bytes, at).map(usize::from) {
        if pointer <= at || pointer >= crate::ids::idx(usable) {
            break;
        }
        out.extend(u32_at(bytes, pointer).and_then(PageNo::new));
        at = at.saturating_add(2);
    }
    out
}

/// Which page that is free now hung on which root, by the interior pages that still lead there.
fn lineage(carver: &Carver<'_, '_>, roots: &[(PageNo, usize)]) -> BTreeMap<PageNo, usize> {
    let survey = carver.survey;
    let free = |no: PageNo| carver.is_free(no);
    let mut out = BTreeMap::new();
    let mut open: Vec<(PageNo, usize)> = roots.iter().copied().filter(|(no, _)| free(*no)).rev().collect();
    for t in &survey.trees {
        // A root without a row: what it led to before it was emptied.
        let emptied = survey.pages.page(t.tree.root).is_ok_and(|p| p.cell_count == 0 && !p.kind.is_interior());
        let Some(shape) = carver.shapes.all.iter().position(|s| s.of == Of::Table(t.object)).filter(|_| emptied) else { continue };
        let named = children(survey.pages.usable_bytes(t.tree.root), t.tree.root, survey.pages.usable);
        open.extend(named.into_iter().filter(|no| free(*no)).map(|no| (no, shape)));
    }
    while let Some((no, shape)) = open.pop() {
        if out.contains_key(&no) {
            continue;
        }
        out.insert(no, shape);
        let named = children(survey.pages.usable_bytes(no), no, survey.pages.usable);
        open.extend(named.into_iter().filter(|c| free(*c) && !out.contains_key(c)).map(|c| (c, shape)));
    }
    // Leaves of another kind than the table's are pages that something else used since.
    out.retain(|no, shape| {
        let kind = Page::read(survey.pages.usable_bytes(*no), *no, survey.pages.usable).map(|p| p.kind);
        match (kind, carver.shapes.all.get(*shape).map(|s| s.kind)) {
            (Ok(kind), Some(PageKind::TableLeaf)) => kind.is_table(),
            (Ok(kind), Some(_)) => !kind.is_table(),
            _ => true,
        }
    });
    out
}
