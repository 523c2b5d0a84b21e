//! The ledger: rows found = rows written + rows set aside, and what is not in the copy.

use std::collections::BTreeMap;

use crate::finding::Code;
use crate::recover::foreign::Foreign;
use crate::recover::text_back::Texts;
use crate::recover::witnesses;
use crate::report::model::{DISPUTED, LeftOut, TableRecovery};
use crate::schema::{Family, FtsPart, Object, ObjectKind};
use crate::survey::{Content, Survey};
use crate::write::copy::{Copied, Disposition};

/// One entry for each table that has a tree, `sqlite_schema` excepted.
pub(crate) fn tables(survey: &Survey<'_>, copied: &Copied, foreign: &Foreign, texts: &[Texts]) -> Vec<TableRecovery> {
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
        if let Some(shadow) = copied.shadows.iter().find(|s| s.object == Some(t.object)) {
            // Derived rows: what the evidence had of them says nothing about what the copy has to have.
            table.rows_found = written;
            table.values_changed.insert("search-index-rebuilt".to_owned(), written);
            table.notes.push(shadow.note.to_owned());
            (table.lost, table.unaccounted) = shadow.gone.clone();
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
        for _ in survey.disputes.iter().filter(|d| kept && d.table == t.object && d.against_row) {
            // Two versions of one row were found: the table's is written, the indexes' is set aside.
            table.rows_found = table.rows_found.saturating_add(1);
            add(&mut table.set_aside, DISPUTED);
        }
        for _ in selection.iter().flat_map(|s| &s.rewritten) {
            add(&mut table.values_changed, "record-made-anew");
        }
        for _ in selection.iter().flat_map(|s| s.nulled.keys()) {
            add(&mut table.values_changed, "unique-value-nulled");
        }
        let kept_broken = scan.excluded.iter().filter(|e| selection.is_some_and(|s| !s.excluded.contains_key(&(e.page, e.cell)))).count();
        if kept_broken > 0 {
            table.notes.push(format!(
                "{kept_broken} rows that break NOT NULL or CHECK stay in the copy (--keep-violations): PRAGMA integrity_check reports them"
            ));
        }
        for o in foreign.orphans.iter().filter(|o| o.table == t.object) {
            let rows = if o.count == 1 { "1 row names".to_owned() } else { format!("{} rows name", o.count) };
            table.notes.push(format!("{rows} by {} a row of {} that is not in the copy", o.columns, o.parent));
        }
        if let Some(Disposition::Anew(sql)) = copied.dispositions.get(&t.object) {
            let old = String::from_utf8_lossy(object.sql().unwrap_or_default()).into_owned();
            table.notes.push(format!("declared anew, its own text is damaged: {old} became {}", String::from_utf8_lossy(sql)));
        }
        let holds_data = matches!(object.family, Family::FtsShadow { part: FtsPart::Content, .. } | Family::VirtualShadow { .. });
        if (object.family.virtual_table().is_none() || holds_data) && !is_duplicate(survey, object) {
            (table.lost, table.unaccounted) = witnesses::gone(survey, t, scan, written, texts.iter().find(|x| x.table == t.object));
        }
        tables.push(table);
    }
    tables
}

/// Notes on each table how much text of its lost rows came back from search indexes.
pub(crate) fn note_texts(tables: &mut [TableRecovery], texts: &[Texts]) {
    for text in texts.iter().filter(|t| t.texts > 0) {
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

fn add(counts: &mut BTreeMap<String, u64>, reason: &str) {
    let n = counts.entry(reason.to_owned()).or_insert(0);
    *n = n.saturating_add(1);
}

/// Every object that is not in the copy, in schema order.
pub(crate) fn left_out(survey: &Survey<'_>, copied: &Copied) -> Vec<LeftOut> {
    let mut out = Vec::new();
    for object in survey.catalog.objects() {
        let Some(Disposition::LeftOut { reason, finish }) = copied.dispositions.get(&object.id) else { continue };
        let rows = match survey.tree_of(object.id).and_then(|t| t.content.as_ref()) {
            Some(Content::Table { scan, .. }) if object.kind == ObjectKind::Table && object.family.virtual_table().is_none() => scan.cells,
            _ => 0,
        };
        out.push(LeftOut {
            kind: object.kind.label().to_owned(),
            name: object.name.text(),
            reason: reason.clone(),
            in_finish_sql: *finish && crate::write::finish::statements(survey, copied, object).is_ok(),
            rows,
        });
    }
    out
}
