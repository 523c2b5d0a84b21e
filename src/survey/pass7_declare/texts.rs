//! CREATE texts that damage changed: read as they were most likely meant.
//!
//! A text is doubted when it is no SQL, when most records of the tree have more values than it has columns, when its tree is
//! of the other kind, or when its key holds nothing but NULL. Where columns stand must not shift: under a wrong name a value
//! is worse off than under none.
//!
//! Tests:    each reading of the text, and texts of the same name from elsewhere, against the records of the tree.
//! Collects: the reading with as many columns as the records have values, whose types and rules suit them best.
//! Leaves:   texts that no reading makes better.

use crate::ctx::Ctx;
use crate::error::Result;
use crate::finding::{Code, Defect, Findings, Site};
use crate::ids::wide;
use crate::schema::catalog::{hint_of, internal_sql};
use crate::schema::ddl::mend::{self, Known, Reading};
use crate::schema::ddl::{Definition, Hint, IndexTerm, TableDef, parse_as};
use crate::schema::{Catalog, Object, ObjectKind, SchemaRow};
use crate::survey::rows::plan::TablePlan;
use crate::survey::rows::profile::Profile;
use crate::survey::stages::Survey;
use crate::tree::claims::{Claims, Owner};
use crate::tree::walk::{Denied, Tree, TreeKind, Walker};

/// Bytes that are parsed to mend the texts of one schema: some dozens of long ones, a thousand of usual size. With more of
/// them damaged nothing is left to be put right by single bytes.
const BUDGET: usize = 128 << 20;

/// Bytes in which two copies of one text may differ.
const SAME: usize = 64;

/// Readings of one text that are compared with the records.
const READINGS: usize = 200;

/// The rows of the schema with mended texts, and findings that say what was assumed. `None` where every text is as it was.
///
/// # Errors
/// Cancellation only.
pub(super) fn find(survey: &Survey<'_>, log: &mut Findings, ctx: &Ctx) -> Result<Option<Vec<SchemaRow>>> {
    let mut mended: Vec<(&Object, Vec<u8>, String)> = Vec::new();
    let mut left = BUDGET;
    for object in survey.catalog.objects() {
        ctx.check()?;
        let Some(row) = object.row.as_ref().filter(|_| object.excluded.is_none() || object.problem.is_some()) else { continue };
        let found = match hint_of(row) {
            _ if left == 0 => None,
            Hint::Table if object.autoindex.is_none() => table(survey, object, row, &mut left, ctx)?,
            hint if object.problem.is_some() || wrong_name(object) => {
                let known = Known { hint, name: &row.name, table: &row.table, width: 0, without_rowid: None, alias: false };
                left = left.saturating_sub(mend::cost(row.sql.as_deref().unwrap_or_default()));
                // One byte of it; where two readings are as likely neither is taken.
                let all = mend::readings(row.sql.as_deref().unwrap_or_default(), &known);
                let good: Vec<&Reading> = all.iter().filter(|r| columns_exist(survey, &r.definition)).collect();
                let least = good.iter().map(|r| r.cost).min();
                let mut best = good.iter().filter(|r| Some(r.cost) == least);
                best.next().filter(|_| best.next().is_none()).map(|one| (one.sql.clone(), one.words.clone()))
            }
            _ => None,
        };
        if let Some((sql, words)) = found {
            mended.push((object, sql, words));
        }
    }
    if left == 0 {
        let what = "bytes of SQL parsed to mend damaged CREATE texts. Those beyond it are read as they stand";
        log.add_with(Defect::new(Code::LimitReached, 0, wide(BUDGET), wide(BUDGET)), Site::default(), what);
    }
    if mended.is_empty() {
        return Ok(None);
    }
    let mut rows: Vec<SchemaRow> = survey.catalog.objects().iter().filter_map(|o| o.row.clone()).collect();
    for (object, sql, words) in mended {
        let Some(row) =
            rows.iter_mut().find(|r| object.row.as_ref().is_some_and(|o| o.rowid == r.rowid && o.name == r.name && o.kind == r.kind))
        else {
            continue;
        };
        let site = Site { object: Some(object.id), ..row.site };
        if let Some(problem) = &object.problem {
            log.add_with(problem.defect, site, problem.words.clone());
        }
        log.add_with(Defect::new(Code::TextMended, 0, 0, 0), site, words);
        row.sql = Some(sql);
    }
    Ok(Some(rows))
}

/// Whether the name in the text is not the one of its row.
fn wrong_name(object: &Object) -> bool {
    let Some((name, table)) = object.definition.names() else { return false };
    let of_table = matches!(object.definition, Definition::Index(_) | Definition::Trigger(_));
    !object.name.same(name.as_bytes()) || (of_table && !object.table_name.same(table.as_bytes()))
}

fn columns_exist(survey: &Survey<'_>, definition: &Definition) -> bool {
    let Definition::Index(index) = definition else { return true };
    let Some(table) = survey.catalog.by_name(index.table.as_bytes()).and_then(Object::table_def) else { return false };
    index.columns.iter().all(|c| match &c.what {
        IndexTerm::Column(name, _) => table.column(name.as_bytes()).is_some(),
        IndexTerm::Expr(_) => true,
    })
}

/// The tree of a table, by the kind that its root page says where the text says another.
fn tree_of(survey: &Survey<'_>, object: &Object, ctx: &Ctx) -> Result<Option<Tree>> {
    let own = survey.tree_of(object.id).map(|t| &t.tree).filter(|t| t.leaves().next().is_some());
    if let Some(own) = own {
        return Ok(Some(own.clone()));
    }
    let Some(root) = object.root else { return Ok(None) };
    let Ok(page) = survey.pages.leaf(root.0) else { return Ok(None) };
    let claims = Claims::new(survey.pages.count());
    let (mut log, denied) = (Findings::new(0), Denied::new());
    let kind = TreeKind::of(page.kind);
    Walker::new(&survey.pages, &claims, &mut log, &denied, ctx).walk(root.0, kind, Owner(0), Site::default(), ctx).map(Some)
}

/// The text of a table as it was most likely meant, with words; `None` where it stays as it is.
fn table(survey: &Survey<'_>, object: &Object, row: &SchemaRow, left: &mut usize, ctx: &Ctx) -> Result<Option<(Vec<u8>, String)>> {
    let sql = row.sql.as_deref().unwrap_or_default();
    let own = object.table_def();
    let surplus = survey.findings.counts().contains_key(&(Code::MoreValuesThanColumns, Some(object.id)));
    let plain = Known { hint: Hint::Table, name: &row.name, table: &row.table, width: 0, without_rowid: None, alias: false };
    let broken = object.problem.is_some() || !mend::stands(sql, &object.definition, &plain);
    let Some(tree) = tree_of(survey, object, ctx)? else {
        *left = left.saturating_sub(if broken { mend::cost(sql) } else { 0 });
        return Ok(if broken { without_records(object, &plain, row, sql) } else { None });
    };
    let other_kind = own.is_some_and(|t| t.without_rowid != (tree.kind == TreeKind::Index));
    if !(broken || surplus || other_kind || own.is_some_and(|t| mend::is_odd(sql, t))) {
        return Ok(None);
    }
    let profile = Profile::of(&survey.pages, survey.encoding, &tree, ctx)?;
    if profile.rows() == 0 {
        return Ok(if broken { without_records(object, &plain, row, sql) } else { None });
    }
    let known = Known {
        hint: Hint::Table,
        name: &row.name,
        table: &row.table,
        width: profile.width(broken),
        without_rowid: Some(tree.kind == TreeKind::Index),
        alias: tree.kind == TreeKind::Table && profile.all_null(0),
    };
    let own_rank = match own.filter(|_| !broken && !other_kind) {
        Some(t) => rank(survey, object, row, sql, t, 1, &profile, &known),
        None => None,
    };
    // Nothing is wrong with a text that the records fit.
    if own_rank.as_ref().is_some_and(|r| r.width == 0 && r.misfits == 0) {
        return Ok(None);
    }
    *left = left.saturating_sub(mend::cost(sql));
    let mut readings = given(row, &known);
    readings.extend(mend::readings(sql, &known));
    readings.sort_by_key(|r| (width_of(r) != known.width, r.style, r.cost));
    readings.truncate(READINGS);
    let mut best: Option<(Rank, &Reading)> = None;
    for reading in &readings {
        ctx.check()?;
        let Definition::Table(def) = &reading.definition else { continue };
        let Some(rank) = rank(survey, object, row, &reading.sql, def, reading.cost, &profile, &known) else { continue };
        if best.as_ref().is_none_or(|(b, _)| rank < *b) {
            best = Some((rank, reading));
        }
    }
    let Some((rank, reading)) = best else { return Ok(None) };
    // A text that is SQL is changed only for what the records prove: values without a column, or values of another class.
    let better = match &own_rank {
        None => true,
        // Where no byte of the text explains them, they are surplus.
        Some(own) if own.width == 2 => rank.width == 0 && rank.cost < mend::PIECES && rank.style < own.style,
        Some(own) => rank.width <= own.width && rank.misfits < own.misfits && rank.style <= own.style,
    };
    Ok((better && reading.sql != sql).then(|| (reading.sql.clone(), reading.words.clone())))
}

/// A text without records to compare with: the reading that assumes least.
fn without_records(object: &Object, known: &Known<'_>, row: &SchemaRow, sql: &[u8]) -> Option<(Vec<u8>, String)> {
    // A tree may still be found by its shape; a wrong one must not be.
    object.root?;
    let mut readings = given(row, known);
    readings.extend(mend::readings(sql, known));
    let filled = |r: &&Reading| r.definition.as_table().is_some_and(|t| !t.columns.is_empty());
    readings.iter().filter(filled).min_by_key(|r| (r.style, r.cost)).map(|r| (r.sql.clone(), r.words.clone()))
}

/// Texts of the same table from elsewhere: what SQLite itself declares, and what other copies of the schema row say. One of
/// these may be older than the text, unless all of this that is left is also in it.
fn given(row: &SchemaRow, known: &Known<'_>) -> Vec<Reading> {
    let own = row.sql.as_deref().unwrap_or_default();
    let left = own.iter().rposition(|b| *b != 0).and_then(|end| own.get(..=end)).unwrap_or_default();
    let same = |sql: &[u8]| {
        let differ = sql.iter().zip(own).filter(|(a, b)| a != b).count();
        sql.starts_with(left) || (sql.len() == own.len() && differ <= SAME.min(own.len() / 4))
    };
    let internal = internal_sql(&row.name).map(|sql| (sql.to_vec(), "SQLite itself makes the table"));
    let others = row.layouts.iter().map(|sql| (sql.clone(), "its text stands elsewhere"));
    internal
        .into_iter()
        .chain(others)
        .filter_map(|(sql, words)| {
            let parsed = parse_as(&sql, known.hint);
            let good = parsed.problem.is_none() && mend::stands(&sql, &parsed.definition, known);
            let sure = same(&sql) || internal_sql(&row.name).is_some();
            let (style, cost) = match parsed.definition.as_table() {
                Some(table) if !sure => (mend::style(&sql, table), mend::PIECES.saturating_sub(1)),
                _ => (0, 0),
            };
            good.then(|| Reading { sql, definition: parsed.definition, words: words.to_owned(), style, cost })
        })
        .collect()
}

fn width_of(reading: &Reading) -> usize {
    reading.definition.as_table().map_or(0, |t| crate::schema::TableLayout::new(t, 4).record.len())
}

/// How badly a text suits the records; less is better.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    /// 0 as many columns as values, 1 columns that may have come later, 2 too few.
    width: u8,
    /// Positions whose values do not suit their column.
    misfits: usize,
    /// Columns that indexes name and the text has not.
    unnamed: usize,
    style: u32,
    cost: u32,
}

fn rank(
    survey: &Survey<'_>,
    object: &Object,
    row: &SchemaRow,
    sql: &[u8],
    def: &TableDef,
    cost: u32,
    profile: &Profile,
    known: &Known<'_>,
) -> Option<Rank> {
    let row = SchemaRow { sql: Some(sql.to_vec()), layouts: Vec::new(), source: crate::schema::RowSource::Tree, ..row.clone() };
    let catalog = Catalog::from_rows(vec![row], &mut Findings::new(0));
    let plan = TablePlan::compile(&catalog, catalog.objects().get(1)?, survey.encoding)?;
    let indexes = survey.catalog.objects().iter().filter(|o| o.kind == ObjectKind::Index && o.table_name.same(object.name.as_bytes()));
    let names = indexes.filter_map(Object::index_def).flat_map(|i| &i.columns).filter_map(|c| match &c.what {
        IndexTerm::Column(name, false) => Some(name),
        _ => None,
    });
    Some(Rank {
        width: match plan.stored.len().cmp(&known.width) {
            std::cmp::Ordering::Equal => 0,
            std::cmp::Ordering::Greater => 1,
            std::cmp::Ordering::Less => 2,
        },
        misfits: profile.misfits(&plan),
        unnamed: names.filter(|n| def.column(n.as_bytes()).is_none()).count(),
        style: if cost == 0 { 0 } else { mend::style(sql, def) },
        cost,
    })
}
