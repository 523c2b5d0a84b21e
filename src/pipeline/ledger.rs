//! The ledger: rows found = rows written + rows set aside, and what is not in the copy.

use std::collections::BTreeMap;

use crate::finding::Code;
use crate::ids::{PageNo, wide};
use crate::pipeline::copy::{Copied, Disposition};
use crate::pipeline::describe;
use crate::pipeline::text_back::Texts;
use crate::report::model::{Gone, LeftOut, TableRecovery};
use crate::schema::{Family, FtsPart, Object, ObjectKind};
use crate::survey::{Content, IndexFit, Survey, SurveyedTree, TableScan};
use crate::tree::Slot;

/// One entry for each table that has a tree, `sqlite_schema` excepted.
pub(super) fn tables(survey: &Survey<'_>, copied: &Copied) -> Vec<TableRecovery> {
    let mut tables = Vec::new();
    for t in &survey.trees {
        let Some(Content::Table { scan, .. }) = &t.content else { continue };
        let Some(object) = survey.catalog.get(t.object).filter(|o| o.id != crate::ids::ObjectId::SCHEMA) else { continue };
        let kept = copied.dispositions.get(&t.object).is_some_and(Disposition::is_kept);
        // A table that only another file knows of has lost nothing here.
        if !kept && scan.cells == 0 && object.row.as_ref().is_some_and(|r| r.needs_tree) {
            continue;
        }
        let mut table = TableRecovery { name: object.name.text(), object: Some(object.id.0), ..TableRecovery::default() };
        let selection = copied.selections.get(&t.object);
        let written = copied.tables.get(&t.object).map_or(0, |w| w.rows);
        table.rows_written = written;
        table.rows_found = scan.cells;
        if copied.shadows.iter().any(|s| s.object == Some(t.object)) {
            // Derived rows: what the evidence had of them says nothing about what the copy has to have.
            table.rows_found = written;
            table.values_changed.insert("search-index-rebuilt".to_owned(), written);
            table.notes.push("written anew: the search index did not hold what its content says".to_owned());
            tables.push(table);
            continue;
        }
        if kept {
            for e in selection.iter().flat_map(|s| s.excluded.values()) {
                add(&mut table.set_aside, e.code.problem().name);
            }
        } else if scan.cells > 0 {
            table.set_aside.insert("object-left-out".to_owned(), scan.cells);
        }
        for _ in selection.iter().flat_map(|s| &s.rewritten) {
            add(&mut table.values_changed, "record-made-anew");
        }
        if let Some(Disposition::Anew(sql)) = copied.dispositions.get(&t.object) {
            let old = String::from_utf8_lossy(object.sql().unwrap_or_default()).into_owned();
            table.notes.push(format!("declared anew, its own text is damaged: {old} became {}", String::from_utf8_lossy(sql)));
        }
        let holds_data = matches!(object.family, Family::FtsShadow { part: FtsPart::Content, .. } | Family::VirtualShadow { .. });
        if (object.family.virtual_table().is_none() || holds_data) && !is_duplicate(survey, object) {
            (table.lost, table.unaccounted) = gone(survey, t, scan, written);
        }
        tables.push(table);
    }
    tables
}

/// Notes on each table how much text of its lost rows came back from search indexes.
pub(super) fn note_texts(tables: &mut [TableRecovery], texts: &[Texts]) {
    for text in texts {
        if let Some(table) = tables.iter_mut().find(|t| t.object == Some(text.table.0)) {
            table.notes.push(text.note());
        }
    }
}

/// Whether an object is a second row of the schema for what stands there already: its tree is that of the first.
fn is_duplicate(survey: &Survey<'_>, object: &Object) -> bool {
    let first = survey.catalog.by_name(object.name.as_bytes());
    object.excluded == Some(Code::NameTwice) && first.is_some_and(|o| o.id != object.id && o.root == object.root)
}

/// Rows that are known to be gone: lost where damage covers them, unaccounted where only an index names them.
fn gone(survey: &Survey<'_>, t: &SurveyedTree, scan: &TableScan, written: u64) -> (Vec<Gone>, Vec<Gone>) {
    let mut named: Vec<Gone> = Vec::new();
    let mut whole_witness = false;
    for index in survey
        .trees
        .iter()
        .filter(|i| survey.catalog.get(i.object).is_some_and(|o| o.table == Some(t.object) && i.object != o.table.unwrap_or(i.object)))
    {
        let Some(Content::Index { plan, scan: index_scan, fit }) = &index.content else { continue };
        let readable = index_scan.broken == 0 && index_scan.damaged.is_empty() && index.tree.holes() == 0 && plan.condition.is_none();
        match fit {
            IndexFit::Equal if readable => whole_witness = true,
            IndexFit::Differs { gone, .. } => {
                // All rows that a whole index names and the table lacks are named; others are not missing.
                whole_witness |= readable && gone.is_empty() && scan.excluded.is_empty();
                if !gone.is_empty() {
                    let mut rowids: Vec<i64> = gone.iter().map(|g| g.rowid).collect();
                    rowids.dedup();
                    named.push(Gone {
                        rowids: ranges(&rowids),
                        count: Some(wide(rowids.len())),
                        witness: format!("index {}", plan.name),
                        page: None,
                    });
                }
            }
            _ => {}
        }
    }
    let holes = holes(survey, t, written);
    let damaged = !scan.damaged.is_empty() || t.tree.holes() > 0;
    // One index is enough to name rows; the others repeat it.
    named.truncate(1);
    if !damaged {
        return (Vec::new(), named);
    }
    let mut lost = named;
    if !whole_witness {
        lost.extend(holes);
        for page in scan.unexplained.iter().map(|(no, _)| *no).chain(carved(survey, t)) {
            let rowids = missing_on(survey, t, page);
            if scan.skipped.iter().any(|(no, _)| *no == page) || (survey.pages.leaf(page).is_err() && rowids.is_empty()) {
                continue;
            }
            let witness = "bytes of the page that belong to no cell".to_owned();
            lost.push(Gone { rowids, count: None, witness, page: Some(page.get()) });
        }
        for (page, cells) in &scan.skipped {
            lost.push(Gone {
                rowids: Vec::new(),
                count: Some(u64::from(*cells)),
                witness: "cell pointers of the page".to_owned(),
                page: Some(page.get()),
            });
        }
    }
    (lost, Vec::new())
}

/// Leaves that were read without header and pointers.
fn carved<'s>(survey: &'s Survey<'_>, t: &'s SurveyedTree) -> impl Iterator<Item = PageNo> + 's {
    t.tree.leaves().filter(|no| survey.pages.mended(*no).is_some() && survey.pages.leaf(*no).is_err())
}

/// Ranges of rowids that the parents of a leaf leave to it and none of its rows has; empty where the bounds are not known.
fn missing_on(survey: &Survey<'_>, t: &SurveyedTree, page: PageNo) -> Vec<[i64; 2]> {
    let bounds = t.tree.slots.iter().find_map(|s| match *s {
        Slot::Leaf { page: p, above, upto, .. } if p == page => Some((above?, upto?)),
        _ => None,
    });
    let (Some((above, upto)), Ok((_, cells))) = (bounds, survey.pages.cells(page)) else { return Vec::new() };
    let mut rowids: Vec<i64> = cells.iter().filter_map(|(_, c)| c.rowid).filter(|r| *r > above && *r <= upto).collect();
    rowids.sort_unstable();
    let mut out = Vec::new();
    let mut next = above.saturating_add(1);
    for r in rowids {
        if r > next {
            out.push([next, r.saturating_sub(1)]);
        }
        next = r.saturating_add(1);
    }
    if next <= upto {
        out.push([next, upto]);
    }
    out
}

/// Holes of a tree that nothing came back through, or through which more may be missing.
fn holes(survey: &Survey<'_>, t: &SurveyedTree, written: u64) -> Vec<Gone> {
    // An orphan that holds nothing readable, or a file that ends early, may be what an interior page pointed to.
    let unread = survey.orphans.iter().any(|no| survey.pages.leaf(*no).is_err()) || survey.header.page_count > survey.pages.count();
    let mut out = Vec::new();
    let mut last_was_filled = false;
    for slot in &t.tree.slots {
        match *slot {
            Slot::Leaf { page, .. } => last_was_filled = survey.adopted.contains(&page),
            Slot::Entry { .. } => last_was_filled = false,
            Slot::Hole { child, above, upto, .. } => {
                if last_was_filled && !unread && written > 0 {
                    continue;
                }
                let rowids = match (above, upto) {
                    (Some(a), Some(u)) => vec![[a.saturating_add(1), u]],
                    _ => Vec::new(),
                };
                let page = (child != 0 && child <= survey.pages.count()).then_some(child);
                out.push(Gone { rowids, count: None, witness: "the pointer of the page above".to_owned(), page });
            }
        }
    }
    out
}

/// Ascending numbers as inclusive ranges.
fn ranges(sorted: &[i64]) -> Vec<[i64; 2]> {
    let mut out: Vec<[i64; 2]> = Vec::new();
    for &n in sorted {
        match out.last_mut() {
            Some([_, last]) if last.checked_add(1) == Some(n) => *last = n,
            _ => out.push([n, n]),
        }
    }
    out
}

fn add(counts: &mut BTreeMap<String, u64>, reason: &str) {
    let n = counts.entry(reason.to_owned()).or_insert(0);
    *n = n.saturating_add(1);
}

/// Every object that is not in the copy, in schema order.
pub(super) fn left_out(survey: &Survey<'_>, copied: &Copied) -> Vec<LeftOut> {
    let mut out = Vec::new();
    for object in survey.catalog.objects() {
        let Some(Disposition::LeftOut { reason, finish }) = copied.dispositions.get(&object.id) else { continue };
        let rows = match survey.tree_of(object.id).and_then(|t| t.content.as_ref()) {
            Some(Content::Table { scan, .. }) if object.kind == ObjectKind::Table && object.family.virtual_table().is_none() => scan.cells,
            _ => 0,
        };
        out.push(LeftOut {
            kind: describe::kind(object.kind).to_owned(),
            name: object.name.text(),
            reason: reason.clone(),
            in_finish_sql: *finish,
            rows,
        });
    }
    out
}
