//! DEFAULT clauses that SQLite does not accept, taken out of a text.

use super::super::create::NOT_CONSTANT;
use super::super::token::Token;
use super::super::{Definition, Hint, parse_as};

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
        let parsed = parse_as(&alone, Hint::Table);
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
