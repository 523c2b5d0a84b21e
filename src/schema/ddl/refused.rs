//! What SQLite refuses when it loads a text that its grammar accepts, as far as the text alone decides it.
//!
//! SQLite runs every text of `sqlite_schema` when it opens the database; one that fails keeps it from opening at all. What other
//! rows decide is in `catalog/load.rs`.

use super::damaged::{Verb, each_source, verb};
use super::token::Token;

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
