//! SQL text of an application as the rows that `sqlite_schema` would have: for databases whose own schema is lost.

use super::catalog::{SchemaRow, autoindex};
use super::ddl::pieces::Pieces;
use super::ddl::token::{Token, tokens};
use super::ddl::{Definition, TableDef, VirtualDef, parse};
use super::families::{FtsPart, fts5_sql, option};
use crate::expr::name::Name;

/// Statements of one script: more than any application has.
const MAX_STATEMENTS: usize = 100_000;

/// The CREATE statements of a script as schema rows without root pages, with what SQLite makes along with them: automatic
/// indexes, `sqlite_sequence`, the shadow tables of FTS5. ALTER TABLE changes the text of its table as SQLite would. A table
/// that is created again gives another layout of the first. Other statements are passed over.
#[must_use]
pub fn rows(script: &[u8]) -> Vec<SchemaRow> {
    let mut out = Rows::default();
    for statement in statements(script) {
        out.statement(&statement);
    }
    out.rows
}

/// The statements of a script, each as SQLite would store it: from CREATE on, without the semicolon.
fn statements(script: &[u8]) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    let mut start: Option<usize> = None;
    let mut words: Vec<Vec<u8>> = Vec::new();
    let mut last: Option<Token<'_>> = None;
    for token in tokens(script) {
        let begin = *start.get_or_insert(token.at);
        if token.byte(b';') {
            let trigger = words.iter().any(|w| w.eq_ignore_ascii_case(b"trigger"));
            // The body of a trigger has semicolons of its own; its END is followed by the last one.
            if !trigger || last.as_ref().is_some_and(|t| t.is("END")) {
                out.extend(script.get(begin..token.at).map(<[u8]>::to_vec));
                start = None;
                words.clear();
                last = None;
                if out.len() >= MAX_STATEMENTS {
                    break;
                }
                continue;
            }
        }
        if words.len() < 3 {
            words.push(token.text.to_vec());
        }
        last = Some(token);
    }
    if let (Some(begin), Some(token)) = (start, last) {
        out.extend(script.get(begin..token.end()).map(<[u8]>::to_vec));
    }
    out
}

#[derive(Default)]
struct Rows {
    rows: Vec<SchemaRow>,
}

impl Rows {
    fn push(&mut self, kind: &[u8], name: &Name, table: &Name, sql: Option<Vec<u8>>) {
        let rowid = i64::try_from(self.rows.len()).unwrap_or(i64::MAX).saturating_add(1);
        let (name, table) = (name.as_bytes().to_vec(), table.as_bytes().to_vec());
        self.rows.push(SchemaRow { rowid, kind: kind.to_vec(), name, table, root: None, sql, ..SchemaRow::default() });
    }

    fn has(&self, name: &[u8]) -> bool {
        self.rows.iter().any(|r| r.name.eq_ignore_ascii_case(name))
    }

    /// ADD, DROP and RENAME of columns; what is no such statement, or leads to a text that is none, changes nothing.
    fn alter(&mut self, sql: &[u8]) -> Option<()> {
        let words: Vec<Token<'_>> = tokens(sql).collect();
        let mut at = 2_usize;
        if words.get(3).is_some_and(|t| t.byte(b'.')) {
            at = 4;
        }
        let table = words.get(at).filter(|t| t.is_name())?.name();
        let rest = words.get(at.checked_add(1)?..)?;
        let (verb, rest) = rest.split_first()?;
        let rest = rest.strip_prefix(rest.first().filter(|t| t.is("COLUMN")).map(std::slice::from_ref).unwrap_or_default())?;
        let first = rest.first().filter(|t| t.is_name())?;
        let row = self.rows.iter_mut().find(|r| r.kind == b"table" && r.name.eq_ignore_ascii_case(table.as_bytes()))?;
        let mut pieces = Pieces::of(row.sql.as_deref()?)?;
        if verb.is("ADD") {
            pieces.add(first.name(), sql.get(first.at..rest.last()?.end())?.to_vec());
        } else if verb.is("DROP") {
            pieces.remove(pieces.position(&first.name())?);
        } else if verb.is("RENAME") && rest.get(1).is_some_and(|t| t.is("TO")) {
            pieces.rename(pieces.position(&first.name())?, &rest.get(2).filter(|t| t.is_name())?.name());
        } else {
            return None;
        }
        let text = pieces.text();
        if parse(&text).problem.is_none() {
            row.sql = Some(text);
        }
        Some(())
    }

    fn statement(&mut self, sql: &[u8]) {
        let mut words = tokens(sql);
        if words.next().is_some_and(|t| t.is("ALTER")) && words.next().is_some_and(|t| t.is("TABLE")) {
            let _ = self.alter(sql);
            return;
        }
        let parsed = parse(sql);
        match &parsed.definition {
            Definition::Table(t) => self.table(t, sql),
            Definition::Index(i) => self.push(b"index", &i.name, &i.table, Some(sql.to_vec())),
            Definition::View(v) => self.push(b"view", &v.name, &v.name, Some(sql.to_vec())),
            Definition::Trigger(t) => self.push(b"trigger", &t.name, &t.table, Some(sql.to_vec())),
            Definition::Virtual(v) => {
                self.push(b"table", &v.name, &v.name, Some(sql.to_vec()));
                self.shadows(v);
            }
            Definition::Unknown => {}
        }
    }

    fn table(&mut self, t: &TableDef, sql: &[u8]) {
        if let Some(known) = self.rows.iter_mut().find(|r| r.name.eq_ignore_ascii_case(t.name.as_bytes())) {
            known.layouts.push(sql.to_vec());
            return;
        }
        self.push(b"table", &t.name, &t.name, Some(sql.to_vec()));
        for key in &t.unique {
            if key.primary && t.without_rowid {
                continue;
            }
            let name = autoindex::name_of(t.name.as_bytes(), key.number);
            self.push(b"index", &Name::new(&name), &t.name, None);
        }
        if t.autoincrement && !self.has(b"sqlite_sequence") {
            let name = Name::from("sqlite_sequence");
            self.push(b"table", &name, &name, Some(b"CREATE TABLE sqlite_sequence(name,seq)".to_vec()));
        }
    }

    /// The shadow tables of an FTS5 table, in the order and with the text that FTS5 gives them.
    fn shadows(&mut self, v: &VirtualDef) {
        if !v.module.same(b"fts5") {
            return;
        }
        let columns = v.args.iter().filter(|a| !a.contains(&b'=')).count();
        let name = v.name.text();
        let wanted = [
            ("data", FtsPart::Data, true),
            ("idx", FtsPart::Idx, true),
            ("content", FtsPart::Content, option(v, "content").is_none()),
            ("docsize", FtsPart::Docsize, option(v, "columnsize").is_none_or(|n| n != b"0")),
            ("config", FtsPart::Config, true),
        ];
        for (suffix, part, _) in wanted.into_iter().filter(|w| w.2) {
            let full = format!("{name}_{suffix}");
            if !self.has(full.as_bytes()) {
                let full_name = Name::new(full.as_bytes());
                self.push(b"table", &full_name, &full_name, Some(fts5_sql(&full, part, columns, false).into_bytes()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_gives_the_rows_that_sqlite_would() {
        let script = b"-- app\nPRAGMA foreign_keys=ON;\nCREATE TABLE a(id INTEGER PRIMARY KEY AUTOINCREMENT, s TEXT UNIQUE);\n\
            CREATE TRIGGER t AFTER INSERT ON a BEGIN SELECT 'x;y'; SELECT 1; END;\nCREATE INDEX i ON a(s)";
        let rows = rows(script);
        let names: Vec<_> = rows.iter().map(|r| String::from_utf8_lossy(&r.name).into_owned()).collect();
        assert_eq!(names, ["a", "sqlite_autoindex_a_1", "sqlite_sequence", "t", "i"]);
        assert!(rows[3].sql.as_ref().unwrap().ends_with(b"END"));
        assert_eq!(rows[4].sql.as_deref(), Some(&b"CREATE INDEX i ON a(s)"[..]));
    }
}
