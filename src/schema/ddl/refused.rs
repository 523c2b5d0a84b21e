//! What SQLite refuses when it loads a text that its grammar accepts, as far as the text alone decides it.
//!
//! SQLite runs every text of `sqlite_schema` when it opens the database; one that fails keeps it from opening at all. What other
//! rows decide is in `catalog/load.rs`.

use super::create::NOT_CONSTANT;
use super::damaged::{Verb, each_source, verb};
use super::token::Token;
use super::{Definition, parse_whole};
use crate::schema::ddl::Hint;

/// Why SQLite refuses the text, if it does.
pub(super) fn reason(list: &[Token<'_>]) -> Option<String> {
    let (verb, at) = verb(list);
    let rest = list.get(at..).unwrap_or_default();
    // A name with a database before it, `main` too: no SQLite stores such a text.
    if verb != Verb::None && matches!(rest, [database, dot, ..] if database.is_name() && dot.byte(b'.')) {
        return Some("the name of the object has a database before it".to_owned());
    }
    match verb {
        Verb::View => source_elsewhere(rest, false),
        Verb::Trigger => {
            let begin = rest.iter().position(|t| t.is("BEGIN")).unwrap_or(rest.len());
            let (head, body) = rest.split_at_checked(begin).unwrap_or_default();
            let when = head.iter().position(|t| t.is("WHEN")).unwrap_or(head.len());
            source_elsewhere(head.get(when..).unwrap_or_default(), false).or_else(|| source_elsewhere(body, true))
        }
        _ => None,
    }
}

/// A table of another database. What a trigger writes to may not even have `main` before it.
fn source_elsewhere(list: &[Token<'_>], trigger: bool) -> Option<String> {
    let mut found = None;
    each_source(list, &mut |source| {
        let Some(database) = source.database else { return true };
        if trigger && source.target {
            found = Some(format!("a trigger cannot write to a qualified name: {database}.{}", source.name));
        } else if !database.same(b"main") {
            found = Some(format!("it cannot reference objects in database {database}"));
        }
        found.is_none()
    });
    found
}

/// The text without those DEFAULT clauses that are not constant; `None` where it has none.
pub(super) fn without_bad_defaults(sql: &[u8], list: &[Token<'_>]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(sql.len());
    let mut kept = 0_usize;
    let mut depth = 0_usize;
    for (i, token) in list.iter().enumerate() {
        if token.byte(b'(') {
            depth = depth.saturating_add(1);
        } else if token.byte(b')') {
            depth = depth.saturating_sub(1);
        }
        let tail = list.get(i.saturating_add(1)..).unwrap_or_default();
        if depth != 1 || !token.is("DEFAULT") || !tail.first().is_some_and(|t| t.byte(b'(')) {
            continue;
        }
        let Some(close) = closing(tail) else { continue };
        let clause = sql.get(token.at..close.end())?;
        let alone = [b"CREATE TABLE x(a ".as_slice(), clause, b")"].concat();
        let parsed = parse_whole(&alone, Hint::Table);
        if matches!(parsed.definition, Definition::Table(_)) && parsed.problem.is_some_and(|p| p.words.ends_with(NOT_CONSTANT)) {
            out.extend_from_slice(sql.get(kept..token.at)?);
            kept = close.end();
        }
    }
    if kept == 0 {
        return None;
    }
    out.extend_from_slice(sql.get(kept..)?);
    Some(out)
}

/// The parenthesis that closes the one at the start.
fn closing<'t, 'a>(list: &'t [Token<'a>]) -> Option<&'t Token<'a>> {
    let mut depth = 0_usize;
    list.iter().find(|t| {
        if t.byte(b'(') {
            depth = depth.saturating_add(1);
        } else if t.byte(b')') {
            depth = depth.saturating_sub(1);
        }
        depth == 0
    })
}
