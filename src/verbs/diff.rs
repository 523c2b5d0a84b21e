//! `diff`: two databases, table by table, in one pass over the rows of both.
//!
//! Tests:    which tables and columns are in both; whether both trees are in the order in which rows are paired.
//! Collects: rows that one side lacks or that differ, the first of them in full; what differs in schema and header.
//! Leaves:   rows that `rows` leaves out as well; the inner tables of search indexes, unless they are asked for by name.

mod pairing;
mod side;

use std::cmp::Ordering;

use crate::ctx::Ctx;
use crate::error::{Error, Result};
use crate::ids::{ObjectId, PageNo, wide};
use crate::report::diff::{Change, Diff, DiffSide, NotCompared, RowDiff, SchemaDiff, SettingDiff, TableDiff};
use crate::report::model::Verb;
use crate::schema::{Family, FtsPart, Object, ObjectKind};
use crate::survey::{Content, Survey};
use crate::verbs::examination::{Examination, once, steady};
use crate::verbs::{Inputs, Options};
use pairing::{Pairing, Which};
use side::{Rows, Table};

/// How two databases differ, row by row. `tables` names those to compare (none: all but the inner tables of search
/// indexes); at most `limit` rows a table are listed, all are counted. With `by_primary_key` rows are paired by the primary
/// key that their table declares, also where it has rowids.
///
/// # Errors
/// As `check`, and a table that neither has.
pub fn diff(a: &Inputs, b: &Inputs, options: &Options, tables: &[String], by_primary_key: bool, limit: u64, ctx: &Ctx) -> Result<Diff> {
    let wanted = Wanted { tables, by_primary_key, limit, keep_violations: options.keep_violations };
    steady(ctx, None, || once(a, options, None, ctx, |a| once(b, options, None, ctx, |b| examined(a, b, &wanted, options.redact, ctx))))
}

fn examined(a: &mut Examination<'_>, b: &mut Examination<'_>, wanted: &Wanted<'_>, redact: bool, ctx: &Ctx) -> Result<Diff> {
    let found = compare(&a.survey, &b.survey, wanted, ctx)?;
    let side = |e: &mut Examination<'_>| -> Result<DiffSide> {
        e.complete()?;
        let report = e.sealed(Verb::Check)?;
        Ok(DiffSide { inputs: report.inputs, snapshot: report.snapshot, verdict: report.verdict })
    };
    let mut diff = Diff { a: side(a)?, b: side(b)?, ..found };
    diff.seal();
    if redact {
        diff.redact();
    }
    Ok(diff)
}

/// What is asked for.
pub(crate) struct Wanted<'w> {
    /// Tables by name; none: all.
    pub(crate) tables: &'w [String],
    /// Pair rows by the declared primary key.
    pub(crate) by_primary_key: bool,
    /// Rows a table that are listed.
    pub(crate) limit: u64,
    /// As for `rows`.
    pub(crate) keep_violations: bool,
}

/// Compares everything. The sides of the result are empty.
///
/// # Errors
/// `Usage` for a table that neither has; I/O of a sort; cancellation.
pub(crate) fn compare(a: &Survey<'_>, b: &Survey<'_>, wanted: &Wanted<'_>, ctx: &Ctx) -> Result<Diff> {
    let mut diff = Diff::new(DiffSide::default(), DiffSide::default());
    for name in wanted.tables {
        if table(a, name.as_bytes()).is_none() && table(b, name.as_bytes()).is_none() {
            return Err(Error::Usage { what: format!("no table {name:?} in either database") });
        }
    }
    if wanted.tables.is_empty() {
        diff.settings = settings(a, b);
        diff.schema = schema(a, b);
    }
    let rows = |s: &Survey<'_>| s.trees.iter().map(|t| table_rows(t.content.as_ref())).fold(0_u64, u64::saturating_add);
    ctx.progress.phase("compare rows", rows(a).saturating_add(rows(b)));
    // Rows that are listed are kept in memory: together they stay under the limit for sorts.
    let mut room = ctx.limits.memory;
    for (name, object_a, object_b) in tables(a, b) {
        let asked = wanted.tables.iter().any(|t| t.as_bytes().eq_ignore_ascii_case(&name));
        if !wanted.tables.is_empty() && !asked {
            continue;
        }
        let shown = object_a.or(object_b).map(|o| o.name.text()).unwrap_or_default();
        if !asked && (object_a.is_some_and(is_search_index) || object_b.is_some_and(is_search_index)) {
            let reason = format!("part of a search index, made from other tables; `diff A B {shown}` compares it");
            diff.not_compared.push(NotCompared { table: shown, reason });
            continue;
        }
        let (table_a, table_b) = (object_a.map(|o| Table::new(a, o, wanted)), object_b.map(|o| Table::new(b, o, wanted)));
        match (table_a, table_b) {
            (Some(Some(x)), Some(Some(y))) => {
                let found = pair(&x, &y, wanted, &mut room, ctx)?;
                diff.tables.push(found);
            }
            (Some(Some(x)), None) => {
                let rows = x.rows();
                let table = TableDiff { name: shown, a: Some(x.side(rows)), removed: rows, not_listed: rows, ..TableDiff::default() };
                diff.tables.push(table);
            }
            (None, Some(Some(y))) => {
                let rows = y.rows();
                let table = TableDiff { name: shown, b: Some(y.side(rows)), added: rows, not_listed: rows, ..TableDiff::default() };
                diff.tables.push(table);
            }
            (x, _) => {
                let which = if matches!(x, Some(None)) { "A" } else { "B" };
                let reason = format!("its declaration cannot be read in {which}");
                diff.not_compared.push(NotCompared { table: shown, reason });
            }
        }
    }
    ctx.progress.finish();
    Ok(diff)
}

fn table_rows(content: Option<&Content>) -> u64 {
    match content {
        Some(Content::Table { scan, .. }) => scan.cells,
        _ => 0,
    }
}

fn table<'s>(survey: &'s Survey<'_>, name: &[u8]) -> Option<&'s Object> {
    survey.catalog.objects().iter().find(|o| o.kind == ObjectKind::Table && o.name.same(name))
}

/// The tables of both by name, in the order of A, then those that only B has.
fn tables<'s>(a: &'s Survey<'_>, b: &'s Survey<'_>) -> Vec<(Vec<u8>, Option<&'s Object>, Option<&'s Object>)> {
    let list = |s: &'s Survey<'_>| s.catalog.objects().iter().filter(|o| o.kind == ObjectKind::Table && o.id != ObjectId::SCHEMA);
    let mut in_b: std::collections::BTreeMap<Vec<u8>, &Object> = std::collections::BTreeMap::new();
    for object in list(b) {
        in_b.entry(object.name.folded()).or_insert(object);
    }
    let mut seen = std::collections::BTreeSet::new();
    let mut out = Vec::new();
    for object in list(a) {
        let name = object.name.folded();
        if seen.insert(name.clone()) {
            let other = in_b.get(&name).copied();
            out.push((name, Some(object), other));
        }
    }
    for object in list(b) {
        let name = object.name.folded();
        if seen.insert(name.clone()) {
            out.push((name, None, Some(object)));
        }
    }
    out
}

/// Tables that say nothing that other tables do not say, and say it differently after every rebuild.
fn is_search_index(object: &Object) -> bool {
    matches!(object.family, Family::FtsShadow { part, .. } if part != FtsPart::Content)
}

fn settings(a: &Survey<'_>, b: &Survey<'_>) -> Vec<SettingDiff> {
    let encoding = |s: &Survey<'_>| match s.encoding {
        crate::format::Encoding::Utf8 => "UTF-8",
        crate::format::Encoding::Utf16Le => "UTF-16le",
        crate::format::Encoding::Utf16Be => "UTF-16be",
    };
    [
        ("user_version", a.header.user_version.to_string(), b.header.user_version.to_string()),
        ("application_id", a.header.application_id.to_string(), b.header.application_id.to_string()),
        ("encoding", encoding(a).to_owned(), encoding(b).to_owned()),
    ]
    .into_iter()
    .filter(|(_, x, y)| x != y)
    .map(|(name, a, b)| SettingDiff { name: name.to_owned(), a, b })
    .collect()
}

/// Objects with a text of their own, by kind and name. Indexes that a UNIQUE makes are part of their table's text.
fn schema(a: &Survey<'_>, b: &Survey<'_>) -> Vec<SchemaDiff> {
    type Key = (&'static str, Vec<u8>);
    let list = |s: &Survey<'_>| -> std::collections::BTreeMap<Key, (String, String)> {
        let mut out = std::collections::BTreeMap::new();
        for o in s.catalog.objects() {
            if let Some(sql) = o.sql() {
                let text = (o.name.text(), String::from_utf8_lossy(sql).into_owned());
                out.entry((o.kind.label(), o.name.folded())).or_insert(text);
            }
        }
        out
    };
    let (in_a, in_b) = (list(a), list(b));
    let keys: std::collections::BTreeSet<&Key> = in_a.keys().chain(in_b.keys()).collect();
    let of = |list: &std::collections::BTreeMap<Key, (String, String)>, key: &Key| list.get(key).cloned();
    keys.into_iter()
        .filter_map(|key| {
            let (x, y) = (of(&in_a, key), of(&in_b, key));
            let name = x.as_ref().or(y.as_ref()).map(|t| t.0.clone()).unwrap_or_default();
            let (a, b) = (x.map(|t| t.1), y.map(|t| t.1));
            (a != b).then(|| SchemaDiff { kind: key.0.to_owned(), name, a, b })
        })
        .collect()
}

/// Rows of a table of another state that the state which is read does not have, or has with other values.
#[derive(Debug)]
pub(crate) struct Apart {
    /// The table, in the catalog of the other state.
    pub(crate) object: ObjectId,
    /// Where the rows stand in the other state.
    pub(crate) places: Vec<(PageNo, u16)>,
}

/// The rows of `other` that `shown` does not have, or has with other values, in the order of the schema. What is made from
/// other tables is passed over.
///
/// # Errors
/// I/O of a sort; cancellation.
pub(crate) fn apart(shown: &Survey<'_>, other: &Survey<'_>, keep_violations: bool, ctx: &Ctx) -> Result<Vec<Apart>> {
    let wanted = Wanted { tables: &[], by_primary_key: false, limit: 0, keep_violations };
    let mut out = Vec::new();
    for (_, object_a, object_b) in tables(shown, other) {
        let Some(object) = object_b.filter(|o| !is_search_index(o)) else { continue };
        let Some(b) = Table::new(other, object, &wanted) else { continue };
        let a = object_a.and_then(|o| Table::new(shown, o, &wanted));
        let mut places = Vec::new();
        for sorted in [false, true] {
            places.clear();
            if places_apart(a.as_ref(), &b, sorted, &mut places, ctx)? {
                break;
            }
        }
        if !places.is_empty() {
            out.push(Apart { object: object.id, places });
        }
    }
    Ok(out)
}

/// The merge join of [`apart`]; `false` when a side turned out not to be in order.
fn places_apart(a: Option<&Table<'_>>, b: &Table<'_>, sorted: bool, places: &mut Vec<(PageNo, u16)>, ctx: &Ctx) -> Result<bool> {
    let pairing = Pairing::of(a.unwrap_or(b), b, false);
    let mut left = a.map(|a| Rows::new(a, &pairing, Which::A, sorted, ctx)).transpose()?;
    let mut right = Rows::new(b, &pairing, Which::B, sorted, ctx)?;
    let mut more_a = left.as_mut().map_or(Ok(false), |l| l.advance(ctx))?;
    let mut more_b = right.advance(ctx)?;
    while more_b {
        if right.descends || left.as_ref().is_some_and(|l| l.descends) {
            return Ok(false);
        }
        let order = left.as_ref().filter(|_| more_a).map_or(Ordering::Greater, |l| l.key.cmp(&right.key));
        match (order, left.as_mut()) {
            (Ordering::Greater, _) => places.push(right.place),
            (Ordering::Equal, Some(left)) => {
                let equal = pairing.same_layout && left.record == right.record && left.rowid == right.rowid;
                if !equal && side::changes(left, &mut right).is_some() {
                    places.push(right.place);
                }
            }
            _ => {}
        }
        if let Some(left) = left.as_mut().filter(|_| order.is_le()) {
            more_a = left.advance(ctx)?;
        }
        if order.is_ge() {
            more_b = right.advance(ctx)?;
        }
    }
    Ok(true)
}

/// The rows of a table that both have.
fn pair(a: &Table<'_>, b: &Table<'_>, wanted: &Wanted<'_>, room: &mut usize, ctx: &Ctx) -> Result<TableDiff> {
    let pairing = Pairing::of(a, b, wanted.by_primary_key);
    let before = *room;
    // A tree whose keys do not ascend although its scan says so would pair nothing: it is sorted on the second try.
    for sorted in [false, true] {
        if let Some(found) = merge(a, b, &pairing, sorted, wanted, room, ctx)? {
            return Ok(found);
        }
        *room = before;
    }
    Err(Error::Limit { what: format!("the rows of {} cannot be brought into an order", a.plan.name) })
}

/// The merge join; `None` when a side turned out not to be in order.
fn merge(
    a: &Table<'_>,
    b: &Table<'_>,
    pairing: &Pairing,
    sorted: bool,
    wanted: &Wanted<'_>,
    room: &mut usize,
    ctx: &Ctx,
) -> Result<Option<TableDiff>> {
    let mut diff = TableDiff { name: a.plan.name.clone(), key: pairing.names.clone(), ..TableDiff::default() };
    (diff.columns_only_a, diff.columns_only_b) = (pairing.only_a.clone(), pairing.only_b.clone());
    let mut left = Rows::new(a, pairing, Which::A, sorted, ctx)?;
    let mut right = Rows::new(b, pairing, Which::B, sorted, ctx)?;
    let same_layout = pairing.same_layout;
    let (mut seen_a, mut seen_b) = (0_u64, 0_u64);
    let (mut more_a, mut more_b) = (left.advance(ctx)?, right.advance(ctx)?);
    while more_a || more_b {
        if left.descends || right.descends {
            return Ok(None);
        }
        let order = match (more_a, more_b) {
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            _ => left.key.cmp(&right.key),
        };
        let changed = order == Ordering::Equal && !(same_layout && left.record == right.record && left.rowid == right.rowid);
        let found = match order {
            Ordering::Less => Some(RowDiff { change: Change::Removed, ..left.told() }),
            Ordering::Greater => Some(RowDiff { change: Change::Added, ..right.told() }),
            Ordering::Equal if changed => side::changes(&mut left, &mut right),
            Ordering::Equal => None,
        };
        if let Some(row) = found {
            let count = match row.change {
                Change::Removed => &mut diff.removed,
                Change::Added => &mut diff.added,
                Change::Changed => &mut diff.changed,
            };
            *count = count.saturating_add(1);
            let size = side::size(&row);
            if wide(diff.rows.len()) < wanted.limit && size <= *room {
                *room = room.saturating_sub(size);
                diff.rows.push(row);
            } else {
                diff.not_listed = diff.not_listed.saturating_add(1);
            }
        }
        if order.is_le() {
            seen_a = seen_a.saturating_add(1);
            more_a = left.advance(ctx)?;
        }
        if order.is_ge() {
            seen_b = seen_b.saturating_add(1);
            more_b = right.advance(ctx)?;
        }
    }
    (diff.a, diff.b) = (Some(a.side(seen_a)), Some(b.side(seen_b)));
    Ok(Some(diff))
}
