//! A row and its index entry under one rowid, or one primary key, that do not say the same.
//!
//! Tests:    rows without an entry against entries without a row, of the same index and the same rowid or key.
//! Collects: the pairs, each as one finding that names both values; whether the indexes outvote the row.
//! Leaves:   the live value, which stays; the index's version, for the salvage database.

use std::collections::{BTreeMap, BTreeSet};

use crate::finding::{Code, Defect, Findings, Site};
use crate::format::{Fields, Value};
use crate::ids::{PageNo, wide};
use crate::schema::IndexSource;
use crate::survey::index_fit::Dispute;
use crate::survey::pass4_compare::compare::{Compared, Id, words};
use crate::survey::rows::constant::Constant;
use crate::survey::rows::plan::{IndexPlan, Row, TablePlan};
use crate::survey::stages::{Content, Scanned};
use crate::tree::payload::PayloadReader;

/// One index that contradicts a row.
struct Pair {
    /// The place of the index in the survey.
    tree: usize,
    row: (PageNo, u16),
    entry: (PageNo, u16),
    /// The columns in which they differ: number, value in the row, value in the entry.
    columns: Vec<(usize, Constant, Constant)>,
}

/// Takes the pairs out of what the comparison of the indexes found, and notes each.
pub(super) fn find(survey: &Scanned<'_>, found: &mut BTreeMap<usize, Compared>, log: &mut Findings) -> Vec<Dispute> {
    let mut out = Vec::new();
    if found.values().all(|c| c.absent.is_empty() || c.extra.is_empty()) {
        return out;
    }
    for t in &survey.trees {
        let Some(Content::Table { plan, scan }) = &t.content else { continue };
        let mut pairs: BTreeMap<Id, Vec<Pair>> = BTreeMap::new();
        let mut told_of: BTreeMap<usize, BTreeSet<Place>> = BTreeMap::new();
        for index in &plan.indexes {
            let Some(at) = survey.trees.iter().position(|t| t.object == index.object) else { continue };
            let Some(compared) = found.get(&at) else { continue };
            for (id, row, entry) in matched(compared) {
                if scan.is_excluded(row.0, row.1) {
                    continue;
                }
                if let Some(columns) = columns_apart(survey, plan, index, row, entry) {
                    pairs.entry(id).or_default().push(Pair { tree: at, row, entry, columns });
                }
            }
        }
        for (id, mut pairs) in pairs {
            let readable = |p: &Pair| p.columns.iter().any(|(_, row, entry)| !is_text(survey, row) && is_text(survey, entry));
            let against_row = pairs.len() > 1 || pairs.iter().any(readable);
            // Where another index has the row as it stands, the entry is what is wrong.
            pairs.retain(|p| against_row || !confirmed(survey, plan, found, p));
            let Some(first) = pairs.first() else { continue };
            let (page, cell) = first.row;
            let object = if against_row { Some(t.object) } else { survey.trees.get(first.tree).map(|t| t.object) };
            let site = survey.pages.site(Site { object, ..Site::default() }, page).cell(cell);
            let code = if against_row { Code::RowAgainstIndexes } else { Code::RowAgainstIndex };
            log.add_with(Defect::new(code, 0, wide(pairs.len()), 0), site, told(survey, plan, id, &pairs));
            let mut entries = Vec::new();
            for p in &pairs {
                told_of.entry(p.tree).or_default().extend([p.row, p.entry]);
                entries.extend(survey.trees.get(p.tree).map(|t| (t.object, p.entry.0, p.entry.1)));
            }
            let rowid = if let Id::Rowid(rowid) = id { Some(rowid) } else { None };
            out.push(Dispute { table: t.object, place: (page, cell), rowid, entries, against_row });
        }
        for (tree, places) in told_of {
            if let Some(compared) = found.get_mut(&tree) {
                compared.absent.retain(|t| !places.contains(&(t.page, t.cell)));
                compared.extra.retain(|t| !places.contains(&(t.page, t.cell)));
            }
        }
    }
    out
}

/// The page and cell of a row or an entry.
type Place = (PageNo, u16);

/// Rows and entries of one rowid or key, where it stands once on both sides.
fn matched(compared: &Compared) -> Vec<(Id, Place, Place)> {
    let mut sides: BTreeMap<Id, (Vec<Place>, Vec<Place>)> = BTreeMap::new();
    for t in compared.absent.iter().filter(|t| !t.copied) {
        if let Some(id) = t.id {
            sides.entry(id).or_default().0.push((t.page, t.cell));
        }
    }
    for t in compared.extra.iter().filter(|t| !t.copied) {
        if let Some((_, entries)) = t.id.and_then(|id| sides.get_mut(&id)) {
            entries.push((t.page, t.cell));
        }
    }
    let mut out = Vec::new();
    for (id, (rows, entries)) in sides {
        if let ([row], [entry]) = (rows.as_slice(), entries.as_slice()) {
            out.push((id, *row, *entry));
        }
    }
    out
}

/// The columns in which a row and an entry differ; `None` when one of them cannot be read.
fn columns_apart(
    survey: &Scanned<'_>,
    plan: &TablePlan,
    index: &IndexPlan,
    row: (PageNo, u16),
    entry: (PageNo, u16),
) -> Option<Vec<(usize, Constant, Constant)>> {
    let (mut of_row, mut of_entry) = (PayloadReader::new(), PayloadReader::new());
    let (mut row_fields, mut entry_fields) = (Fields::new(), Fields::new());
    let row_cell = survey.pages.cell(row.0, row.1).ok()?;
    let entry_cell = survey.pages.cell(entry.0, entry.1).ok()?;
    let record = of_row.read(&survey.pages, &row_cell).ok()?;
    row_fields.read(record, row_cell.payload_len).ok()?;
    let held = of_entry.read(&survey.pages, &entry_cell).ok()?;
    entry_fields.read(held, entry_cell.payload_len).ok()?;
    let row = Row { rowid: row_cell.rowid, payload: record, fields: &row_fields };
    let mut out = Vec::new();
    for (part, value) in index.columns.iter().zip(entry_fields.values(held)) {
        let IndexSource::Column(c) = part.source else { continue };
        let Some(own) = plan.raw_value(&row, c) else { continue };
        if own != value {
            out.push((c, Constant::from(own), Constant::from(value)));
        }
    }
    Some(out)
}

fn is_text(survey: &Scanned<'_>, value: &Constant) -> bool {
    match value.value() {
        Value::Text(stored) => survey.encoding.is_valid(stored),
        _ => true,
    }
}

/// Whether another index that was compared has the row, with a column that is in dispute.
fn confirmed(survey: &Scanned<'_>, plan: &TablePlan, found: &BTreeMap<usize, Compared>, pair: &Pair) -> bool {
    plan.indexes.iter().filter(|i| i.computable && i.condition.is_none()).any(|index| {
        let at = survey.trees.iter().position(|t| t.object == index.object);
        let Some((at, compared)) = at.and_then(|at| Some((at, found.get(&at)?))) else { return false };
        let covers = pair.columns.iter().any(|(c, ..)| index.columns.iter().any(|p| matches!(p.source, IndexSource::Column(i) if i == *c)));
        at != pair.tree && covers && !compared.absent.iter().any(|t| (t.page, t.cell) == pair.row)
    })
}

/// Both versions in words.
fn told(survey: &Scanned<'_>, plan: &TablePlan, id: Id, pairs: &[Pair]) -> String {
    let mut out = match id {
        Id::Rowid(rowid) => format!("rowid {rowid}"),
        Id::Key(_) => "the row of this key".to_owned(),
    };
    let word = |c: &Constant| words(std::iter::once(c.value()), survey.encoding);
    for p in pairs {
        let name = survey.trees.get(p.tree).and_then(|t| survey.catalog.get(t.object)).map(|o| o.name.text()).unwrap_or_default();
        if p.columns.is_empty() {
            out.push_str(&format!("; {name} has another entry"));
        }
        for (column, row, entry) in &p.columns {
            let column = plan.columns.get(*column).map_or("", |c| c.name.as_str());
            out.push_str(&format!("; {column} is {} in the row, {} in {name}", word(row), word(entry)));
        }
    }
    out
}
