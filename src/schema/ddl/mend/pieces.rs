//! The pieces of a text whose quotes and parentheses may be damaged.

use std::collections::BTreeSet;

use super::super::MAX_COLUMNS;
use super::super::token::{Kind, Token, tokens};

/// Quotes without an end that are set aside in one text.
const STRAY_QUOTES: usize = 64;

/// The tokens of a text in which a quote without an end is only a byte.
pub(super) fn sturdy(text: &[u8]) -> Vec<Token<'_>> {
    let mut out: Vec<Token<'_>> = Vec::new();
    let mut from = 0_usize;
    for _ in 0..STRAY_QUOTES {
        let mut again = None;
        for token in tokens(text.get(from..).unwrap_or_default()) {
            let token = Token { at: token.at.saturating_add(from), ..token };
            if let (Kind::Quoted(quote), true) = (token.kind, token.odd) {
                out.push(Token { kind: Kind::Byte(quote), text: token.text.get(..1).unwrap_or_default(), ..token });
                again = Some(token.at.saturating_add(1));
                break;
            }
            out.push(token);
        }
        match again {
            Some(at) => from = at,
            None => break,
        }
    }
    out
}

/// The tokens of the list of columns and constraints, and those behind it. The name that the row has tells where it begins
/// when its parenthesis is gone.
pub(super) fn body<'t, 'a>(list: &'t [Token<'a>], name: &[u8]) -> (&'t [Token<'a>], &'t [Token<'a>]) {
    let named = list.iter().take(12).position(|t| t.is_name() && t.name().same(name)).map(|i| i.saturating_add(1));
    let open = list.iter().position(|t| t.byte(b'('));
    let from = match (named, open) {
        (Some(named), Some(open)) if open == named => open.saturating_add(1),
        (Some(named), _) if list.get(named).is_some_and(|t| t.odd) => named.saturating_add(1),
        (Some(named), Some(open)) if open > named.saturating_add(1) => named,
        (_, Some(open)) => open.saturating_add(1),
        (Some(named), None) => named,
        (None, None) => 3,
    };
    let rest = list.get(from..).unwrap_or_default();
    let options = |t: &Token<'_>| t.is("WITHOUT") || t.is("ROWID") || t.is("STRICT");
    // Without a parenthesis at the end the options say where the list ends.
    let close = rest.iter().rposition(|t| t.byte(b')')).filter(|i| rest.len().saturating_sub(*i) < 6);
    let end = close.or_else(|| rest.iter().rposition(|t| !options(t)).map(|i| i.saturating_add(1))).unwrap_or(rest.len());
    (rest.get(..end).unwrap_or_default(), rest.get(end..).unwrap_or_default())
}

/// The tokens between commas that stand in no pair of parentheses.
pub(super) fn parts<'t, 'a>(list: &'t [Token<'a>]) -> Vec<&'t [Token<'a>]> {
    let mut open: Vec<usize> = Vec::new();
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    for (i, token) in list.iter().enumerate() {
        if token.byte(b'(') {
            open.push(i);
        } else if token.byte(b')')
            && let Some(from) = open.pop()
            && open.is_empty()
        {
            pairs.push((from, i));
        }
    }
    // An opening one that nothing closes does not count, what is paired behind it does.
    if !open.is_empty() {
        pairs.clear();
        let stray: BTreeSet<usize> = open.iter().copied().collect();
        let mut stack: Vec<usize> = Vec::new();
        for (i, token) in list.iter().enumerate() {
            if token.byte(b'(') && !stray.contains(&i) {
                stack.push(i);
            } else if token.byte(b')')
                && let Some(from) = stack.pop()
                && stack.is_empty()
            {
                pairs.push((from, i));
            }
        }
    }
    let mut out = Vec::new();
    let mut start = 0_usize;
    let mut pair = pairs.iter().peekable();
    for (i, token) in list.iter().enumerate() {
        while pair.peek().is_some_and(|p| p.1 < i) {
            pair.next();
        }
        let inside = pair.peek().is_some_and(|p| p.0 < i && i < p.1);
        if token.byte(b',') && !inside {
            out.push(list.get(start..i).unwrap_or_default());
            start = i.saturating_add(1);
        }
    }
    out.push(list.get(start..).unwrap_or_default());
    out.truncate(MAX_COLUMNS);
    out
}

/// Whether a piece is a table constraint; one other letter in its first word is no matter.
pub(super) fn is_constraint(part: &[Token<'_>]) -> bool {
    let near = |token: Option<&Token<'_>>, word: &str| {
        token.is_some_and(|t| {
            let differ = t.text.iter().zip(word.as_bytes()).filter(|(a, b)| !a.eq_ignore_ascii_case(b)).count();
            t.text.len() == word.len() && differ <= 1
        })
    };
    let (first, second, third) = (part.first(), part.get(1), part.get(2));
    let open = |t: Option<&Token<'_>>| t.is_some_and(|t| t.byte(b'('));
    (near(first, "PRIMARY") && near(second, "KEY") && open(third))
        || (near(first, "FOREIGN") && near(second, "KEY") && open(third))
        || (near(first, "UNIQUE") && open(second))
        || (near(first, "CHECK") && open(second))
        || near(first, "CONSTRAINT")
}

pub(super) fn has(list: &[Token<'_>], word: &str) -> bool {
    list.iter().any(|t| {
        let differ = t.text.iter().zip(word.as_bytes()).filter(|(a, b)| !a.eq_ignore_ascii_case(b)).count();
        t.kind == Kind::Word && t.text.len() == word.len() && differ <= 1
    })
}
