//! The order of columns in the records of a table whose declaration comes from elsewhere.
//!
//! An application that has been updated in place has its newer columns at the end, a new installation has them where its
//! CREATE text says. A table of that text then fits no tree of an older file as it stands.
//!
//! Tests:    storage classes, NULL and NOT NULL at each position of the records, against each column.
//! Collects: the other CREATE texts of the table that fit; else the order with the fewest columns moved to the end.
//! Leaves:   positions for which several columns are as likely: they get no name, since a wrong one is worse than none.

use std::collections::{BTreeMap, BTreeSet};

use crate::ctx::Ctx;
use crate::error::Result;
use crate::finding::{Code, Defect, Findings, Site};
use crate::format::{Encoding, Fields, Value};
use crate::ids::{ObjectId, PageNo};
use crate::schema::ddl::TableDef;
use crate::schema::ddl::pieces::Pieces;
use crate::schema::{Affinity, Catalog, Name, Object, RowSource, SchemaRow};
use crate::survey::compute::{Computer, Outcome};
use crate::survey::plan::{ClassRule, Row, TablePlan};
use crate::survey::{Survey, orphan_trees};
use crate::tree::payload::PayloadReader;
use crate::tree::{Tree, TreeKind};

/// Rows that CHECK constraints are tried on, and how long each may be.
const SAMPLE: usize = 50;
const SAMPLE_BYTES: usize = 8 << 10;

/// Leaves of a tree whose rows are looked at.
const LEAVES: usize = 64;

/// Columns that may stand behind the others. More of them leave no order that the types alone could prove.
const MOVED: usize = 6;

/// Steps of the search for one table and tree.
const STEPS: usize = 200_000;

/// Orders of one table that are compared; with more of them hardly a position is certain.
const ORDERS: usize = 500;

/// What stands at one position of the records of a tree.
#[derive(Debug, Clone, Copy, Default)]
struct Position {
    rows: u32,
    nulls: u32,
    ints: u32,
    reals: u32,
    texts: u32,
    blobs: u32,
    /// Texts that a numeric affinity would have turned into numbers.
    numeric_texts: u32,
}

impl Position {
    fn add(&mut self, value: Value<'_>, encoding: Encoding) {
        let one = |n: &mut u32| *n = n.saturating_add(1);
        one(&mut self.rows);
        match value {
            Value::Null => one(&mut self.nulls),
            Value::Int(_) => one(&mut self.ints),
            Value::Real(_) => one(&mut self.reals),
            Value::Blob(_) => one(&mut self.blobs),
            Value::Text(t) => {
                one(&mut self.texts);
                if crate::expr::reads_as_number(&encoding.to_utf8(t)) {
                    one(&mut self.numeric_texts);
                }
            }
        }
    }

    /// Whether these are values that a writer puts into such a column: what SQLite lets stand, and, but for one in twenty,
    /// what the declared type means.
    fn suits(&self, plan: &TablePlan, column: usize) -> bool {
        let Some(c) = plan.columns.get(column) else { return false };
        let some = self.rows.saturating_sub(self.nulls);
        if plan.alias == Some(column) {
            return some == 0;
        }
        if c.not_null && self.nulls > 0 {
            return false;
        }
        let few = |n: u32| n.saturating_mul(20) <= some;
        match (c.class, c.affinity) {
            (ClassRule::Integer, _) => some == self.ints,
            (ClassRule::Real, _) => some == self.ints.saturating_add(self.reals),
            (ClassRule::Text, _) => some == self.texts,
            (ClassRule::Blob, _) => some == self.blobs,
            (_, Affinity::Text) => self.ints == 0 && self.reals == 0 && few(self.blobs),
            (_, Affinity::Integer) => self.numeric_texts == 0 && few(self.texts) && few(self.reals) && few(self.blobs),
            (_, Affinity::Real) => self.numeric_texts == 0 && few(self.texts) && few(self.blobs),
            (_, Affinity::Numeric) => self.numeric_texts == 0 && few(self.blobs),
            (_, Affinity::Blob) => true,
        }
    }
}

/// The positions of the records of a tree, over a sample of its leaves.
#[derive(Debug, Default)]
pub(super) struct Profile {
    positions: Vec<Position>,
    /// Records by the number of their values.
    widths: BTreeMap<usize, u32>,
    /// Some of the rows: rowid and payload.
    sample: Vec<(Option<i64>, Vec<u8>)>,
}

impl Profile {
    /// Reads the sample.
    ///
    /// # Errors
    /// Cancellation only.
    pub(super) fn of(survey: &Survey<'_>, tree: &Tree, ctx: &Ctx) -> Result<Profile> {
        let leaves: Vec<PageNo> = tree.leaves().collect();
        let step = leaves.len().div_ceil(LEAVES).max(1);
        let mut profile = Profile::default();
        for no in leaves.into_iter().step_by(step) {
            ctx.check()?;
            profile.read(survey, no);
        }
        Ok(profile)
    }

    /// As [`Profile::of`], of one leaf.
    pub(super) fn of_leaf(survey: &Survey<'_>, no: PageNo) -> Profile {
        let mut profile = Profile::default();
        profile.read(survey, no);
        profile
    }

    fn read(&mut self, survey: &Survey<'_>, no: PageNo) {
        let Ok(page) = survey.pages.leaf(no) else { return };
        let (mut reader, mut fields) = (PayloadReader::new(), Fields::new());
        for (_, cell) in page.cells(survey.pages.split) {
            let Ok(cell) = cell else { continue };
            let Ok(payload) = reader.read(&survey.pages, &cell) else { continue };
            if fields.read(payload, cell.payload_len).is_err() || fields.reserved().is_some() {
                continue;
            }
            if self.sample.len() < SAMPLE && payload.len() <= SAMPLE_BYTES {
                self.sample.push((cell.rowid, payload.to_vec()));
            }
            let rows = self.widths.entry(fields.len()).or_default();
            *rows = rows.saturating_add(1);
            if self.positions.len() < fields.len() {
                self.positions.resize(fields.len(), Position::default());
            }
            for (position, value) in self.positions.iter_mut().zip(fields.values(payload)) {
                position.add(value, survey.encoding);
            }
        }
    }

    /// How many columns the records stand for: the most values that more than single ones of them have, and of a table whose
    /// text is sound at least half of them.
    pub(super) fn width(&self, broken: bool) -> usize {
        let least = if broken { self.rows().div_ceil(20) } else { self.rows().div_ceil(2) };
        self.widths.iter().rev().find(|(_, rows)| **rows >= least).map_or(0, |(width, _)| *width)
    }

    /// Whether a value is NULL in every record, of which there are several.
    pub(super) fn all_null(&self, at: usize) -> bool {
        self.positions.get(at).is_some_and(|p| p.rows > 1 && p.nulls == p.rows)
    }

    /// Positions whose values do not suit their column, with columns that records must not lack, and a key that is NULL
    /// throughout and yet not the rowid.
    pub(super) fn misfits(&self, plan: &TablePlan) -> usize {
        let odd = self.positions.iter().zip(&plan.stored).filter(|(p, column)| !p.suits(plan, **column)).count();
        let lacking = plan.stored.iter().skip(self.positions.len()).filter(|c| !optional(plan, **c)).count();
        let key = usize::from(plan.key.is_none() && plan.alias.is_none() && self.all_null(0));
        odd.saturating_add(lacking).saturating_add(key).saturating_add(self.false_checks(plan))
    }

    /// CHECK constraints that are false for most rows: no writer could have put these in.
    fn false_checks(&self, plan: &TablePlan) -> usize {
        let computer = Computer::new(plan);
        let mut fields = Fields::new();
        let mut false_for = vec![0_usize; plan.checks.len()];
        for (rowid, payload) in &self.sample {
            if fields.read(payload, crate::ids::wide(payload.len())).is_err() {
                continue;
            }
            let row = Row { rowid: *rowid, payload, fields: &fields };
            for (n, check) in false_for.iter_mut().zip(&plan.checks) {
                if matches!(computer.truth(&row, &check.expr), Outcome::False) {
                    *n = n.saturating_add(1);
                }
            }
        }
        false_for.iter().filter(|n| n.saturating_mul(2) > self.sample.len()).count()
    }

    /// Whether the records have the columns of a table in its own order, by what the columns mean and not by what they may hold.
    pub(super) fn is_natural(&self, plan: &TablePlan) -> bool {
        self.positions.len() <= plan.stored.len()
            && self.positions.iter().zip(&plan.stored).all(|(p, column)| p.suits(plan, *column))
            && plan.stored.iter().skip(self.positions.len()).all(|c| optional(plan, *c))
    }

    /// Rows that were looked at.
    pub(super) fn rows(&self) -> u32 {
        self.positions.first().map_or(0, |p| p.rows)
    }

    /// Whether columns that are declared BLOB hold such values, as far as they hold any: the affinity lets everything stand.
    pub(super) fn is_as_declared(&self, plan: &TablePlan, def: &TableDef) -> bool {
        let blob = |column: usize| {
            let declared = def.columns.get(column).and_then(|c| c.decl_type.as_ref());
            declared.is_some_and(|t| t.trim_ascii().eq_ignore_ascii_case(b"blob"))
        };
        let some = |p: &Position| p.rows.saturating_sub(p.nulls);
        self.positions.iter().zip(&plan.stored).all(|(p, column)| !blob(*column) || some(p) == 0 || p.blobs > 0)
    }
}

/// Whether records may end before a column: ADD COLUMN takes no other.
fn optional(plan: &TablePlan, column: usize) -> bool {
    plan.columns.get(column).is_some_and(|c| !c.not_null || !c.default.value().is_null()) && plan.alias != Some(column)
}

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
        let profile = Profile::of(survey, tree, ctx)?;
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
