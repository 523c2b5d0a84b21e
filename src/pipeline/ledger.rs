//! The ledger: rows found = rows written + rows set aside, and what is not in the copy.

use std::collections::BTreeMap;

use crate::pipeline::copy::{Copied, Disposition};
use crate::pipeline::describe;
use crate::report::model::{LeftOut, TableRecovery};
use crate::schema::ObjectKind;
use crate::survey::{Content, Survey};

/// One entry for each table that has a tree, `sqlite_schema` excepted.
pub(super) fn tables(survey: &Survey<'_>, copied: &Copied) -> Vec<TableRecovery> {
    let mut tables = Vec::new();
    for t in &survey.trees {
        let Some(Content::Table { scan, .. }) = &t.content else { continue };
        let Some(object) = survey.catalog.get(t.object).filter(|o| o.id != crate::ids::ObjectId::SCHEMA) else { continue };
        let mut table = TableRecovery { name: object.name.text(), object: Some(object.id.0), ..TableRecovery::default() };
        let selection = copied.selections.get(&t.object);
        let written = copied.tables.get(&t.object).map_or(0, |w| w.rows);
        table.rows_written = written;
        table.rows_found = scan.cells;
        if copied.dispositions.get(&t.object).is_some_and(Disposition::is_kept) {
            for e in selection.iter().flat_map(|s| s.excluded.values()) {
                add(&mut table.set_aside, e.code.problem().name);
            }
        } else if scan.cells > 0 {
            table.set_aside.insert("object-left-out".to_owned(), scan.cells);
        }
        for _ in selection.iter().flat_map(|s| &s.rewritten) {
            add(&mut table.values_changed, "record-made-anew");
        }
        tables.push(table);
    }
    tables
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

/// The statements that bring back what could not be written natively; `None` when there are none.
pub(super) fn finish_sql(survey: &Survey<'_>, copied: &Copied) -> Option<String> {
    let mut text = String::new();
    // Tables and virtual tables first, then indexes, views, triggers: each finds what it needs.
    let order = [ObjectKind::Table, ObjectKind::Virtual, ObjectKind::Index, ObjectKind::View, ObjectKind::Trigger];
    for kind in order {
        for object in survey.catalog.objects().iter().filter(|o| o.kind == kind) {
            let Some(Disposition::LeftOut { reason, finish: true }) = copied.dispositions.get(&object.id) else { continue };
            let Some(sql) = object.sql() else { continue };
            let reason: String = reason.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            text.push_str(&format!("-- {}\n{};\n", reason, String::from_utf8_lossy(sql).trim_end_matches(';')));
            if kind == ObjectKind::Virtual
                && let Some(rebuild) = rebuild(object)
            {
                text.push_str(&rebuild);
            }
        }
    }
    if text.is_empty() {
        return None;
    }
    Some(format!(
        "-- Statements that rootpage could not carry out itself. Run them on the copy with the application's own SQLite\n\
         -- (its collations, functions, modules and tokenizers loaded).\n{text}"
    ))
}

/// The statement that fills a full-text index whose content is elsewhere.
fn rebuild(object: &crate::schema::Object) -> Option<String> {
    let def = object.virtual_def()?;
    if !def.module.same(b"fts5") && !def.module.same(b"fts4") {
        return None;
    }
    let external = def.args.iter().any(|a| {
        let text: Vec<u8> = a.iter().filter(|b| !b.is_ascii_whitespace()).map(u8::to_ascii_lowercase).collect();
        text.starts_with(b"content=") && text != b"content=''" && text != b"content=\"\""
    });
    let name = object.name.text().replace('"', "\"\"");
    external.then(|| format!("INSERT INTO \"{name}\"(\"{name}\") VALUES('rebuild');\n"))
}
