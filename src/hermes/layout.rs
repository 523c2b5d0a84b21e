//! The columns of a store that has no readable schema.
//!
//! The application adds columns at the end of a table that is there (ALTER TABLE), and in the middle of the CREATE text of a new
//! one; so the physical order says when a store was made and when it was upgraded. Rows are never rewritten: an old row has the
//! first columns of its time.
//!
//! Tests:    every order that the dated history of the application can make, against what the rows hold at each position.
//! Collects: for each table the orders that are left; columns on which they agree.
//! Leaves:   positions on which they disagree: they get a name that says so and no meaning.

mod history;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::cells::Epoch;
use super::store::{self, Store};
use crate::ctx::Ctx;
use crate::error::{Error, Result};
use crate::survey::plan::Constant;
use crate::verbs::{Inputs, Options};
use history::{Column, History};

/// Rows of one tree that are looked at.
const SAMPLE: usize = 400;

/// Orders of one table that are followed at a time; pruning keeps them far fewer.
const ORDERS: usize = 20_000;

/// What was inferred.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Inferred {
    /// CREATE statements of the tables.
    pub(super) sql: String,
    /// What was found, for the ledger.
    pub(super) words: Vec<String>,
}

/// The schema of a store that shows neither sessions nor messages, from what its rows hold; `None` where it shows them, or
/// where a schema was given.
///
/// # Errors
/// What the tool cannot do.
pub(super) fn of_lost_schema(inputs: &Inputs, options: &Options, folder: &Path, ctx: &Ctx) -> Result<Option<Inferred>> {
    if inputs.schema.is_some() {
        return Ok(None);
    }
    let mut quick = options.clone();
    quick.no_hash = true;
    match store::open(inputs, &quick, folder, ctx, infer) {
        Err(Error::NotADatabase { .. }) => Ok(None),
        other => other,
    }
}

/// As [`of_lost_schema`], of a store that is open.
///
/// # Errors
/// Cancellation.
pub(super) fn infer(store: &Store<'_>) -> Result<Option<Inferred>> {
    let shows = |name: &str| store.has(name) && store.count(name).is_some_and(|n| n > 0);
    if shows("sessions") || shows("messages") {
        return Ok(None);
    }
    let mut groups: BTreeMap<&'static str, Vec<Vec<Constant>>> = BTreeMap::new();
    for rows in store.nameless(SAMPLE)? {
        let mut votes: BTreeMap<&'static str, usize> = BTreeMap::new();
        for row in &rows {
            if let Some(name) = history::table_of(row) {
                let n = votes.entry(name).or_insert(0);
                *n = n.saturating_add(1);
            }
        }
        // Nearly all rows of a tree are of one table.
        if let Some((name, n)) = votes.into_iter().max_by_key(|(_, n)| *n)
            && n.saturating_mul(10) >= rows.len().saturating_mul(9)
        {
            groups.entry(name).or_default().extend(rows.into_iter().filter(|r| history::table_of(r) == Some(name)));
        }
    }
    if !groups.contains_key("sessions") && !groups.contains_key("messages") {
        return Ok(None);
    }
    let mut out = Inferred { sql: String::new(), words: Vec::new() };
    let mut columns: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
    for history in history::all() {
        let rows = groups.remove(history.table).unwrap_or_default();
        let width = rows.iter().map(Vec::len).max().unwrap_or(0);
        let names = if rows.is_empty() {
            history.newest()
        } else {
            let mut orders = orders(&history, &rows);
            if orders.is_empty() {
                orders.push(certain(&history, &rows));
            }
            out.words.push(words(&history, &rows, width, &orders));
            settled(&orders, width)
        };
        out.sql.push_str(&create(&history, &names));
        columns.insert(history.table, names.into_iter().flatten().map(|c| c.name.to_owned()).collect());
    }
    out.sql.push_str(history::OTHERS);
    for (table, on, sql) in history::INDEXES {
        let has = |c: &str| columns.get(table).is_none_or(|names| names.iter().any(|n| n == c));
        if on.iter().all(|c| has(c)) {
            out.sql.push_str(sql);
            out.sql.push_str(";\n");
        }
    }
    Ok(Some(out))
}

/// For each position the column on which all orders agree.
fn settled(orders: &[Vec<Column>], width: usize) -> Vec<Option<Column>> {
    (0..width)
        .map(|at| {
            let mut first = None;
            for order in orders {
                let column = order.get(at).copied().filter(|c| !c.is_unknown())?;
                if *first.get_or_insert(column) != column {
                    return None;
                }
            }
            first
        })
        .collect()
}

fn words(history: &History, rows: &[Vec<Constant>], width: usize, orders: &[Vec<Column>]) -> String {
    let widths: BTreeSet<usize> = rows.iter().map(Vec::len).collect();
    let widths: Vec<String> = widths.iter().map(usize::to_string).collect();
    let known = settled(orders, width).iter().flatten().count();
    format!(
        "{}: records of {} values; {} orders of the application's history fit; {known} of {width} columns have their name",
        history.table,
        widths.join(", "),
        orders.len()
    )
}

fn create(history: &History, names: &[Option<Column>]) -> String {
    let mut seen = BTreeSet::new();
    let columns: Vec<String> = names
        .iter()
        .enumerate()
        .map(|(at, c)| match c {
            Some(c) if seen.insert(c.name) => format!("{} {}", c.name, c.decl),
            _ => format!("rootpage_unknown_{at}"),
        })
        .collect();
    let tail: String = if history.key.iter().all(|k| seen.contains(k)) { history.tail.to_owned() } else { String::new() };
    format!("CREATE TABLE {} ({}{tail});\n", history.table, columns.join(", "))
}

/// Columns of rows that no order of the history fits: those that every version has in front, as far as the rows allow them, and
/// the one position that holds moments like no other.
fn certain(history: &History, rows: &[Vec<Constant>]) -> Vec<Column> {
    let widest = rows.iter().map(Vec::len).max().unwrap_or(0);
    let versions = history.versions();
    let base = versions.first().cloned().unwrap_or_default();
    let values = |at: usize| rows.iter().filter_map(move |r| r.get(at));
    let mut out = vec![Column::UNKNOWN; widest];
    for (at, cell) in out.iter_mut().enumerate() {
        let Some(column) = base.get(at).filter(|c| versions.iter().all(|v| v.get(at) == Some(c))) else { break };
        if !values(at).all(|v| column.allows(v)) {
            break;
        }
        *cell = *column;
    }
    let is_moment = |v: &Constant| Epoch::of(v).seconds().is_some_and(|s| s >= 1e9) && matches!(v, Constant::Real(_));
    let moments: Vec<usize> = (0..widest).filter(|at| values(*at).all(is_moment)).collect();
    if let [at] = moments.as_slice()
        && let Some(column) = base.iter().find(|c| matches!(c.name, "started_at" | "timestamp"))
        && let Some(cell) = out.get_mut(*at)
    {
        *cell = *column;
    }
    out
}

/// The orders that the history can make and that the rows allow, each as long as the widest row.
fn orders(history: &History, rows: &[Vec<Constant>]) -> Vec<Vec<Column>> {
    let widths: BTreeSet<usize> = rows.iter().map(Vec::len).collect();
    let Some(widest) = widths.last().copied() else { return Vec::new() };
    let fits = |order: &[Column], from: usize| {
        order.iter().enumerate().take(widest).skip(from).all(|(at, column)| rows.iter().filter_map(|r| r.get(at)).all(|v| column.allows(v)))
    };
    let mut found: BTreeSet<Vec<Column>> = BTreeSet::new();
    let mut open: BTreeSet<(usize, Vec<Column>, Vec<usize>)> = BTreeSet::new();
    let versions = history.versions();
    for (v, declared) in versions.iter().enumerate() {
        if fits(declared, 0) {
            open.insert((v, declared.clone(), vec![declared.len()]));
        }
    }
    let mut steps = ORDERS;
    let mut best = 0_usize;
    while let Some((v, order, lengths)) = open.pop_first() {
        let Some(left) = steps.checked_sub(1) else { break };
        steps = left;
        if order.len() >= widest {
            // A row of each width was once as wide as the table; one that never was speaks against the order.
            let explained = widths.iter().filter(|w| lengths.contains(w)).count();
            if explained > best {
                best = explained;
                found.clear();
            }
            if explained == best {
                let mut order = order;
                order.truncate(widest);
                found.insert(order);
            }
            continue;
        }
        for (next, declared) in versions.iter().enumerate().skip(v.saturating_add(1)) {
            let have: BTreeSet<&str> = order.iter().map(|c| c.name).collect();
            let fresh: Vec<Column> = declared.iter().filter(|c| !have.contains(c.name)).copied().collect();
            if fresh.is_empty() {
                continue;
            }
            let from = order.len();
            let mut longer = order.clone();
            longer.extend(fresh);
            // A jump that passes over a width that rows have can still be the right one only if no other explains it.
            if fits(&longer, from) {
                let mut lengths = lengths.clone();
                lengths.push(longer.len());
                open.insert((next, longer, lengths));
            }
        }
    }
    found.into_iter().collect()
}
