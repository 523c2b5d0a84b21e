//! `OUT.finish.sql`: statements for objects that could not be made here, each with the reason.

use crate::fts5::{Config, Content};
use crate::recover::select::objects::is_fts3_content;
use crate::schema::families::option;
use crate::schema::{Family, FtsModule, FtsPart, Object, ObjectKind, one_line, quoted};
use crate::survey::Survey;
use crate::write::copy::{Copied, Disposition};

/// The statements that bring back what could not be written natively; `None` when there are none. They are safe to give to the
/// `sqlite3` shell: each stands on one line, and no text of the evidence stands outside of them.
pub(crate) fn script(survey: &Survey<'_>, copied: &Copied) -> Option<String> {
    let mut text = String::new();
    // Tables and virtual tables first, then indexes, views, triggers: each finds what it needs.
    let order = [ObjectKind::Table, ObjectKind::Virtual, ObjectKind::Index, ObjectKind::View, ObjectKind::Trigger];
    for kind in order {
        for object in survey.catalog.objects().iter().filter(|o| o.kind == kind) {
            let Some(Disposition::LeftOut { reason, finish: true }) = copied.dispositions.get(&object.id) else { continue };
            text.push_str(&format!("-- {}\n", commentable(reason)));
            match statements(survey, copied, object) {
                Ok(statements) => text.push_str(&statements),
                Err(why) => text.push_str(&format!(
                    "-- {} {}: {why}, so that it cannot stand in a script. Its text: rootpage rows DB sqlite_schema\n",
                    commentable(kind.label()),
                    commentable(&quoted(&object.name.text()))
                )),
            }
        }
    }
    for object in survey.catalog.objects().iter().filter(|o| copied.dispositions.get(&o.id).is_some_and(Disposition::is_kept)) {
        text.push_str(&without_declaration(object).unwrap_or_default());
    }
    if text.is_empty() {
        return None;
    }
    Some(format!(
        "-- Statements that rootpage could not carry out itself. Run them on the copy with the application's own SQLite\n\
         -- (its collations, functions, modules and tokenizers loaded).\n{text}"
    ))
}

/// The lines that make one object; why there can be none.
pub(crate) fn statements(survey: &Survey<'_>, copied: &Copied, object: &Object) -> Result<String, &'static str> {
    let create =
        one_line::declared(object.sql().ok_or("its text is lost")?, object.kind == ObjectKind::Trigger, one_line::Breaks::Refused)?;
    match fill_from_content(survey, copied, object, &create) {
        Some(filled) => filled,
        None => Ok(create + &rebuild(object)?),
    }
}

/// The statement that fills a full-text index whose content is elsewhere; empty for others.
fn rebuild(object: &Object) -> Result<String, &'static str> {
    let Some(def) = object.virtual_def().filter(|d| d.module.same(b"fts5") || d.module.same(b"fts4")) else { return Ok(String::new()) };
    let external = option(def, "content").is_some_and(|source| !source.is_empty());
    let name = quoted(&object.name.text());
    if external { one_line::made(&format!("INSERT INTO {name}({name}) VALUES('rebuild')")) } else { Ok(String::new()) }
}

/// How the index is made for text whose full-text table has lost its declaration. Only the application knows the statement and
/// the names of the columns, so that nothing of it is to be carried out as it stands.
fn without_declaration(object: &Object) -> Option<String> {
    let Family::OrphanShadow { module, part: FtsPart::Content } = object.family else { return None };
    let def = object.table_def().filter(|_| object.kind == ObjectKind::Table)?;
    let content = object.name.text();
    let table = content.get(..content.len().checked_sub("_content".len())?)?;
    let columns: Vec<String> = def.columns.iter().skip(1).map(|c| quoted(&c.name.text())).collect();
    let (using, key, id) = match module {
        FtsModule::Fts5 => ("fts5", "rowid", "id"),
        FtsModule::Fts3 => ("fts4", "docid", "docid"),
    };
    let (columns, old, aside, table) = (columns.join(", "), quoted(&content), quoted(&format!("rp_{content}")), quoted(table));
    let lines = [
        format!("{old} holds the text of a full-text table whose declaration is lost. These statements make that table anew"),
        "when the declaration of the application, and its names of the columns, stand in them:".to_owned(),
        format!("ALTER TABLE {old} RENAME TO {aside};"),
        format!("CREATE VIRTUAL TABLE {table} USING {using}({columns});"),
        format!("INSERT INTO {table}({key}, {columns}) SELECT {id}, {columns} FROM {aside};"),
        format!("DROP TABLE {aside};"),
    ];
    Some(lines.iter().map(|l| commented(l)).collect())
}

/// The statements for a full-text table whose text stands in the copy as an ordinary table: that one makes way and then fills
/// the new one. It is not dropped: where the application's tokenizer is not loaded, nothing is filled.
fn fill_from_content(survey: &Survey<'_>, copied: &Copied, object: &Object, create: &str) -> Option<Result<String, &'static str>> {
    let def = object.virtual_def()?;
    let content = survey.catalog.objects().iter().find(|o| {
        matches!(o.family, Family::FtsShadow { of, part: FtsPart::Content, .. } if of == object.id)
            && o.kind == ObjectKind::Table
            && copied.dispositions.get(&o.id).is_some_and(Disposition::is_kept)
    })?;
    // Functions that the evidence names are not called: `load_extension` would be one. Who knows them makes the statement.
    if ["compress", "uncompress"].iter().any(|name| option(def, name).is_some()) {
        let text = format!(
            "-- It calls functions of the application (compress, uncompress), so that nothing is carried out here; its text is in {}:\n{}",
            commentable(&content.name.text()),
            commented(create)
        );
        return Some(Ok(text));
    }
    let stored = content.table_def()?.columns.iter().skip(1);
    let (key, id, pairs) = if is_fts3_content(content) {
        let word = |name: &str| option(def, name).map(|v| String::from_utf8_lossy(&v).into_owned());
        let language = word("languageid");
        let mut pairs = Vec::new();
        for column in stored {
            let stored = column.name.text();
            if let (true, Some(language)) = (stored.eq_ignore_ascii_case("langid"), &language) {
                pairs.push((quoted(language), quoted(&stored)));
                continue;
            }
            // `c0title`: a letter, the number of the column, its name.
            let name = stored.get(1..)?.trim_start_matches(|c: char| c.is_ascii_digit());
            pairs.push((quoted(name), quoted(&stored)));
        }
        ("docid", "docid", pairs)
    } else {
        let arguments: Option<Vec<&str>> = def.args.iter().map(|a| std::str::from_utf8(a).ok()).collect();
        let config = Config::parse(&arguments?).ok().filter(|c| c.content == Content::Stored);
        // FTS5 does not accept this declaration, and nothing else names the columns.
        let Some(config) = config else {
            let text = format!("-- FTS5 does not accept it; its text is in {}:\n{}", commentable(&content.name.text()), commented(create));
            return Some(Ok(text));
        };
        // Locales of the values, if there are any, stand behind them and are not needed by FTS5's own tokenizers.
        let pairs = config.columns.iter().zip(stored).map(|(c, s)| (quoted(&c.name), quoted(&s.name.text()))).collect();
        ("rowid", "id", pairs)
    };
    let (into, from): (Vec<String>, Vec<String>) = pairs.into_iter().unzip();
    let (table, old, aside) = (quoted(&object.name.text()), quoted(&content.name.text()), quoted(&format!("rp_{}", content.name.text())));
    let fill = || {
        let rename = one_line::made(&format!("ALTER TABLE {old} RENAME TO {aside}"))?;
        let insert =
            one_line::made(&format!("INSERT INTO {table}({key}, {}) SELECT {id}, {} FROM {aside}", into.join(", "), from.join(", ")))?;
        let last = commented(&format!("DROP TABLE {aside};"));
        Ok(format!("{rename}{create}{insert}-- When all went well, the old table can go:\n{last}"))
    };
    Some(fill())
}

/// Text without the line breaks that would end a comment.
fn commentable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// A statement as a comment.
fn commented(statement: &str) -> String {
    format!("-- {}\n", commentable(statement).trim_end())
}
