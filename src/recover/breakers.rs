//! Rows that the declaration of their table forbids although other structures confirm them: data, not damage.
//!
//! Tests:    rows set aside for NOT NULL, a type, a CHECK or a UNIQUE key against the indexes of their table and against rows
//!           that name them by a foreign key.
//! Collects: the confirmed ones, with the statement that brings each back.
//! Leaves:   rows that nothing confirms to the salvage database, without a word more.

use std::collections::BTreeSet;

use crate::finding::Code;
use crate::format::Fields;
use crate::ids::PageNo;
use crate::recover::foreign::Foreign;
use crate::recover::select::unique;
use crate::report::model::Breaker;
use crate::schema::quoted;
use crate::survey::compare::words;
use crate::survey::plan::{ClassRule, Constant, TablePlan};
use crate::survey::table::Excluded;
use crate::survey::{Content, IndexFit, Survey};
use crate::tree::payload::PayloadReader;
use crate::write::copy::Copied;

/// Breakers that the report names one by one.
const NAMED: usize = 100;

/// The breakers that something confirms, in the order of the schema and of the trees.
pub(crate) fn confirmed(survey: &Survey<'_>, copied: &Copied, foreign: &Foreign) -> Vec<Breaker> {
    let mut out = Vec::new();
    for t in &survey.trees {
        let Some(Content::Table { plan, .. }) = &t.content else { continue };
        let Some(selection) = copied.selections.get(&t.object) else { continue };
        let broken: Vec<&Excluded> = selection.excluded.values().filter(|e| e.code.problem().row.breaks_declaration()).collect();
        if broken.is_empty() {
            continue;
        }
        let indexes = indexes(survey, plan);
        for e in broken {
            let place = (e.page, e.cell);
            let mut witnesses: Vec<String> = Vec::new();
            // The index that refuses the row as a duplicate is no witness of it.
            let refuses = |name: &str| e.code == Code::UniqueBroken && survey_name(survey, e.got) == name;
            witnesses.extend(
                indexes.iter().filter(|(n, absent)| !absent.contains(&place) && !refuses(n)).map(|(name, _)| format!("index {name}")),
            );
            for (table, n) in foreign.children.get(&(t.object, place)).into_iter().flatten() {
                let name = survey.catalog.get(*table).map(|o| o.name.text()).unwrap_or_default();
                let rows = if *n == 1 { "1 row".to_owned() } else { format!("{n} rows") };
                witnesses.push(format!("{rows} of {name} that name it"));
            }
            if witnesses.is_empty() || out.len() >= NAMED {
                continue;
            }
            out.push(Breaker {
                table: plan.name.clone(),
                row: row_words(survey, plan, e),
                rule: rule(survey, plan, e),
                witnesses,
                restore: restore(plan, &plan.name, e.page, e.cell, Some(*e), None),
            });
        }
    }
    out
}

fn survey_name(survey: &Survey<'_>, object: u64) -> String {
    survey.catalog.objects().iter().find(|o| u64::from(o.id.0) == object).map(|o| o.name.text()).unwrap_or_default()
}

/// The indexes of a table that were compared with it, with the rows that they do not have.
pub(crate) fn indexes(survey: &Survey<'_>, plan: &TablePlan) -> Vec<(String, BTreeSet<(PageNo, u16)>)> {
    let compared = plan.indexes.iter().filter(|i| {
        i.condition.is_none()
            && survey.tree_of(i.object).is_some_and(|t| match &t.content {
                Some(Content::Index { fit, .. }) => *fit != IndexFit::Unknown,
                _ => false,
            })
    });
    compared.map(|i| (i.name.clone(), unique::absent(survey, i.object))).collect()
}

/// A row by its rowid, else by its key.
fn row_words(survey: &Survey<'_>, plan: &TablePlan, e: &Excluded) -> String {
    if let Some(rowid) = e.rowid {
        return format!("rowid {rowid}");
    }
    let mut payload = PayloadReader::new();
    let mut fields = Fields::new();
    let Ok(cell) = survey.pages.cell(e.page, e.cell) else { return String::new() };
    match payload.read(&survey.pages, &cell) {
        Ok(record) if fields.read(record, cell.payload_len).is_ok() => {
            words(fields.values(record).take(plan.key.as_ref().map_or(1, |k| k.columns.len())), survey.encoding)
        }
        _ => String::new(),
    }
}

/// The rule that a row breaks, in words.
fn rule(survey: &Survey<'_>, plan: &TablePlan, e: &Excluded) -> String {
    let at = usize::try_from(e.got).unwrap_or(usize::MAX);
    let column = plan.columns.get(at).map_or("", |c| c.name.as_str());
    match e.code {
        Code::NullInNotNull => format!("{column} is NULL and declared NOT NULL"),
        Code::TypeBroken => format!("{column} holds a value of a class that its declaration excludes"),
        Code::CheckFalse => format!("CHECK {} is false", plan.checks.get(at).map_or("", |c| c.name.as_str())),
        Code::UniqueBroken => format!("its key stands twice in {}", survey_name(survey, e.got)),
        code => code.problem().name.to_owned(),
    }
}

/// The statement that brings a row of the salvage database back into the copy. What the declaration of the table forbids is
/// replaced by what it allows; a rowid that neighbours suggest takes the place of the one in the bytes.
pub(crate) fn restore(plan: &TablePlan, mirror: &str, page: PageNo, cell: u16, broken: Option<Excluded>, rowid: Option<i64>) -> String {
    let mut columns = Vec::new();
    let mut values = Vec::new();
    let bad = |code: Code, i: usize| broken.is_some_and(|e| e.code == code && usize::try_from(e.got) == Ok(i));
    if let Some(rowid) = rowid
        && plan.alias.is_none()
        && plan.key.is_none()
    {
        columns.push("rowid".to_owned());
        values.push(rowid.to_string());
    }
    for (i, c) in plan.columns.iter().enumerate().filter(|(_, c)| c.position.is_some() && c.generated.is_none()) {
        let name = quoted(&c.name);
        let value = match rowid {
            Some(rowid) if plan.alias == Some(i) => rowid.to_string(),
            // The rowid is another row's: SQLite gives a new one.
            None if plan.alias == Some(i) && broken.is_some_and(|e| e.code == Code::RowidTwice) => "NULL".to_owned(),
            _ if bad(Code::NullInNotNull, i) => format!("coalesce({name}, {})", stand_in(plan, i)),
            _ if bad(Code::TypeBroken, i) => format!("CAST({name} AS {})", class_word(plan, i)),
            _ => name.clone(),
        };
        columns.push(name);
        values.push(value);
    }
    let insert = format!(
        "INSERT INTO main.{}({}) SELECT {} FROM salvage.{} WHERE rp_page={page} AND rp_cell={cell};",
        quoted(&plan.name),
        columns.join(", "),
        values.join(", "),
        quoted(mirror),
    );
    match broken.map(|e| e.code) {
        Some(Code::CheckFalse) => {
            format!("PRAGMA ignore_check_constraints=ON; {insert} PRAGMA ignore_check_constraints=OFF;")
        }
        _ => insert,
    }
}

/// What stands for a value that is missing in a NOT NULL column: its DEFAULT, else an empty value of its class.
fn stand_in(plan: &TablePlan, column: usize) -> String {
    let Some(c) = plan.columns.get(column) else { return "''".to_owned() };
    if c.default != Constant::Null {
        let mut out = String::new();
        crate::report::export::sql_literal(&mut out, c.default.value(), plan.encoding);
        return out;
    }
    match class_word(plan, column) {
        "INTEGER" | "NUMERIC" => "0".to_owned(),
        "REAL" => "0.0".to_owned(),
        "BLOB" => "x''".to_owned(),
        _ => "''".to_owned(),
    }
}

fn class_word(plan: &TablePlan, column: usize) -> &'static str {
    use crate::schema::Affinity;
    let Some(c) = plan.columns.get(column) else { return "BLOB" };
    match (c.class, c.affinity) {
        (ClassRule::Integer, _) | (_, Affinity::Integer) => "INTEGER",
        (ClassRule::Real, _) | (_, Affinity::Real) => "REAL",
        (ClassRule::Text, _) | (_, Affinity::Text) => "TEXT",
        (_, Affinity::Numeric) => "NUMERIC",
        _ => "BLOB",
    }
}
