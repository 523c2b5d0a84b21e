//! `OUT.finish.sql`: statements for objects that could not be made here, each with the reason.

use crate::pipeline::copy::objects::is_fts3_content;
use crate::pipeline::copy::{Copied, Disposition};
use crate::schema::families::option;
use crate::schema::{Object, ObjectKind, quoted};
use crate::survey::Survey;

/// The statements that bring back what could not be written natively; `None` when there are none.
pub(super) fn script(survey: &Survey<'_>, copied: &Copied) -> Option<String> {
    let mut text = String::new();
    // Tables and virtual tables first, then indexes, views, triggers: each finds what it needs.
    let order = [ObjectKind::Table, ObjectKind::Virtual, ObjectKind::Index, ObjectKind::View, ObjectKind::Trigger];
    for kind in order {
        for object in survey.catalog.objects().iter().filter(|o| o.kind == kind) {
            let Some(Disposition::LeftOut { reason, finish: true }) = copied.dispositions.get(&object.id) else { continue };
            let Some(sql) = object.sql() else { continue };
            let reason: String = reason.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            let create = format!("{};\n", String::from_utf8_lossy(sql).trim_end_matches(';'));
            text.push_str(&format!("-- {reason}\n"));
            text.push_str(&fill_from_content(survey, copied, object, &create).unwrap_or_else(|| create + &rebuild(object)));
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

/// The statement that fills a full-text index whose content is elsewhere; empty for others.
fn rebuild(object: &Object) -> String {
    let Some(def) = object.virtual_def().filter(|d| d.module.same(b"fts5") || d.module.same(b"fts4")) else { return String::new() };
    let external = option(def, "content").is_some_and(|source| !source.is_empty());
    let name = quoted(&object.name.text());
    if external { format!("INSERT INTO {name}({name}) VALUES('rebuild');\n") } else { String::new() }
}

/// The statements for an FTS3 or FTS4 table whose text stands in the copy as an ordinary table: that one makes way and then
/// fills the new one.
fn fill_from_content(survey: &Survey<'_>, copied: &Copied, object: &Object, create: &str) -> Option<String> {
    let def = object.virtual_def()?;
    let content = survey.catalog.objects().iter().find(|o| {
        is_fts3_content(o)
            && o.family.virtual_table() == Some(object.id)
            && copied.dispositions.get(&o.id).is_some_and(Disposition::is_kept)
    })?;
    let word = |name: &str| option(def, name).map(|v| String::from_utf8_lossy(&v).into_owned());
    let (language, uncompress) = (word("languageid"), word("uncompress"));
    let (mut into, mut from) = (vec!["docid".to_owned()], vec!["docid".to_owned()]);
    for column in content.table_def()?.columns.iter().skip(1) {
        let stored = column.name.text();
        if let (true, Some(language)) = (stored.eq_ignore_ascii_case("langid"), &language) {
            into.push(quoted(language));
            from.push(quoted(&stored));
            continue;
        }
        // `c0title`: a letter, the number of the column, its name.
        let name = stored.get(1..)?.trim_start_matches(|c: char| c.is_ascii_digit());
        into.push(quoted(name));
        from.push(match &uncompress {
            Some(function) => format!("{function}({})", quoted(&stored)),
            None => quoted(&stored),
        });
    }
    let (table, old, aside) = (quoted(&object.name.text()), quoted(&content.name.text()), quoted(&format!("rp_{}", content.name.text())));
    Some(format!(
        "ALTER TABLE {old} RENAME TO {aside};\n{create}INSERT INTO {table}({}) SELECT {} FROM {aside};\nDROP TABLE {aside};\n",
        into.join(", "),
        from.join(", ")
    ))
}
