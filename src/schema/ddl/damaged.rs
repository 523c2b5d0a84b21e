//! A tolerant reader for CREATE text that the SQL parser refuses: damaged bytes, or a form it does not know.
//!
//! It splits on commas outside parentheses, takes names as the bytes they are, and recognises the clauses that it can.
//! It never fails; what it could not read is simply not there.

use super::create::{default_value, unresolved};
use super::definition::{Conflict, Definition, IndexColumn, IndexDef, IndexTerm, TableDef, TriggerDef, ViewDef, VirtualDef};
use super::expression::number;
use super::table::{KeyTerm, MAX_COLUMNS, TableBuilder};
use super::token::{Kind, Token, tokens, unquote};
use crate::expr::Expr;
use crate::expr::name::{Collation, Name};

/// The verb of a CREATE text, and the tokens behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Table,
    Index { unique: bool },
    View,
    Trigger,
    Virtual,
    None,
}

/// What kind of object the text creates, and the position of the token behind the verb and IF NOT EXISTS.
pub(super) fn verb(list: &[Token<'_>]) -> (Verb, usize) {
    let word = |i: usize, w: &str| list.get(i).is_some_and(|t| t.is(w));
    let mut at = usize::from(word(0, "CREATE"));
    if word(at, "TEMP") || word(at, "TEMPORARY") {
        at = at.saturating_add(1);
    }
    let (verb, len) = if word(at, "TABLE") {
        (Verb::Table, 1)
    } else if word(at, "INDEX") {
        (Verb::Index { unique: false }, 1)
    } else if word(at, "UNIQUE") && word(at.saturating_add(1), "INDEX") {
        (Verb::Index { unique: true }, 2)
    } else if word(at, "VIEW") {
        (Verb::View, 1)
    } else if word(at, "TRIGGER") {
        (Verb::Trigger, 1)
    } else if word(at, "VIRTUAL") && word(at.saturating_add(1), "TABLE") {
        (Verb::Virtual, 2)
    } else {
        return (Verb::None, 0);
    };
    at = at.saturating_add(len);
    if word(at, "IF") && word(at.saturating_add(1), "NOT") && word(at.saturating_add(2), "EXISTS") {
        at = at.saturating_add(3);
    }
    (verb, at)
}

/// Reads what it can. `kind` is what the schema row says the object is, for text whose verb is damaged.
pub(super) fn read(sql: &[u8], list: &[Token<'_>], kind: Verb) -> Definition {
    let (found, at) = verb(list);
    let mut found = if found == Verb::None { kind } else { found };
    if found == Verb::Table && kind == Verb::Virtual {
        found = kind;
    }
    let rest = list.get(at..).unwrap_or_default();
    match found {
        Verb::Table => Definition::Table(Box::new(table(rest))),
        Verb::Index { unique } => Definition::Index(Box::new(index(rest, unique))),
        Verb::View => Definition::View(Box::new(view(rest))),
        Verb::Trigger => Definition::Trigger(Box::new(trigger(rest))),
        Verb::Virtual => Definition::Virtual(virtual_table(sql, rest)),
        Verb::None => Definition::Unknown,
    }
}

/// A name, possibly with a schema before it, and what follows.
fn qualified<'t, 'a>(list: &'t [Token<'a>]) -> (Name, &'t [Token<'a>]) {
    match list {
        [schema, dot, name, rest @ ..] if schema.is_name() && dot.byte(b'.') && name.is_name() => (name.name(), rest),
        [name, rest @ ..] if name.is_name() => (name.name(), rest),
        _ => (Name::default(), list),
    }
}

/// The tokens in the first parentheses, split at their own commas, and what follows them.
fn parenthesised<'t, 'a>(list: &'t [Token<'a>]) -> (Vec<&'t [Token<'a>]>, &'t [Token<'a>]) {
    let mut parts = Vec::new();
    let Some(open) = list.iter().position(|t| t.byte(b'(')) else { return (parts, &[]) };
    let mut depth = 0_usize;
    let mut start = open.saturating_add(1);
    for (i, token) in list.iter().enumerate().skip(open) {
        match token.kind {
            Kind::Byte(b'(') => depth = depth.saturating_add(1),
            Kind::Byte(b')') => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    parts.push(list.get(start..i).unwrap_or_default());
                    return (parts, list.get(i.saturating_add(1)..).unwrap_or_default());
                }
            }
            Kind::Byte(b',') if depth == 1 => {
                parts.push(list.get(start..i).unwrap_or_default());
                start = i.saturating_add(1);
            }
            _ => {}
        }
    }
    parts.push(list.get(start..).unwrap_or_default());
    (parts, &[])
}

fn table(list: &[Token<'_>]) -> TableDef {
    let (name, rest) = qualified(list);
    let (parts, options) = parenthesised(rest);
    let mut builder = TableBuilder::new(name);
    for part in parts.into_iter().take(MAX_COLUMNS.saturating_mul(2)) {
        entry(&mut builder, part);
    }
    let without_rowid = options.windows(2).any(|w| matches!(w, [a, b] if a.is("WITHOUT") && b.is("ROWID")));
    let strict = options.iter().any(|t| t.is("STRICT"));
    builder.finish(without_rowid, strict).0
}

const TABLE_CLAUSES: [&str; 5] = ["CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN"];
const COLUMN_CLAUSES: [&str; 12] =
    ["CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "NOT", "NULL", "DEFAULT", "COLLATE", "REFERENCES", "GENERATED", "AS", "DEFERRABLE"];

/// One entry of the list in parentheses: a column or a table constraint.
fn entry(builder: &mut TableBuilder, part: &[Token<'_>]) {
    let Some(first) = part.first() else { return };
    if first.kind == Kind::Word && TABLE_CLAUSES.iter().any(|c| first.is(c)) && builder.column_count() > 0 {
        table_constraint(builder, part);
        return;
    }
    // A damaged byte before a name is part of it: the bytes up to the next white space.
    let mut name = Vec::new();
    let mut used = 0_usize;
    let mut end = first.at;
    for token in part {
        if used > 0 && token.at != end {
            break;
        }
        if used > 0 && (token.byte(b'(') || matches!(token.kind, Kind::Quoted(_))) {
            break;
        }
        if matches!(token.kind, Kind::Quoted(_)) {
            name = unquote(token.text)
        } else {
            name.extend_from_slice(token.text)
        }
        end = token.end();
        used = used.saturating_add(1);
    }
    let mut rest = part.get(used..).unwrap_or_default();
    let mut words: Vec<u8> = Vec::new();
    while let Some((token, tail)) = rest.split_first() {
        let is_clause = token.kind == Kind::Word && COLUMN_CLAUSES.iter().any(|c| token.is(c));
        if is_clause || matches!(token.kind, Kind::Quoted(b'\'')) {
            break;
        }
        if token.byte(b'(') {
            let close = tail.iter().position(|t| t.byte(b')')).map_or(tail.len(), |i| i.saturating_add(1));
            words.push(b'(');
            tail.iter().take(close).for_each(|t| words.extend_from_slice(t.text));
            rest = tail.get(close..).unwrap_or_default();
            break;
        }
        if !words.is_empty() {
            words.push(b' ');
        }
        words.extend_from_slice(token.text);
        rest = tail;
    }
    builder.add_column(Name::from(name), if words.is_empty() { None } else { Some(words) });
    column_constraints(builder, rest);
}

fn column_constraints(builder: &mut TableBuilder, list: &[Token<'_>]) {
    let mut rest = list;
    while let Some((token, tail)) = rest.split_first() {
        rest = match tail {
            [a, tail @ ..] if token.is("PRIMARY") && a.is("KEY") => {
                let desc = tail.first().is_some_and(|t| t.is("DESC"));
                builder.primary_key(None, desc, Conflict::Default, tail.iter().take(6).any(|t| t.is("AUTOINCREMENT")));
                tail
            }
            _ if token.is("UNIQUE") => {
                builder.unique(None, Conflict::Default);
                tail
            }
            [a, tail @ ..] if token.is("NOT") && a.is("NULL") => {
                builder.not_null(Conflict::Default);
                tail
            }
            [a, tail @ ..] if token.is("COLLATE") && a.is_name() => {
                builder.collate(&a.name());
                tail
            }
            [a, tail @ ..] if token.is("CONSTRAINT") && a.is_name() => tail,
            _ if token.is("DEFAULT") => {
                let (expr, tail) = default(tail);
                builder.default_clause(expr);
                tail
            }
            _ if token.is("CHECK") => {
                builder.check(None, unresolved());
                parenthesised(tail).1
            }
            _ if token.is("AS") => {
                let (_, after) = parenthesised(tail);
                builder.generated(unresolved(), after.first().is_some_and(|t| t.is("STORED")));
                after
            }
            [parent, tail @ ..] if token.is("REFERENCES") && parent.is_name() => {
                let names = match tail.first() {
                    Some(t) if t.byte(b'(') => names(&parenthesised(tail).0),
                    _ => Vec::new(),
                };
                builder.foreign_key(None, parent.name(), names, false);
                tail
            }
            _ => tail,
        };
    }
}

fn default<'t, 'a>(list: &'t [Token<'a>]) -> (Expr, &'t [Token<'a>]) {
    let literal = |token: &Token<'_>, negative: bool| match token.kind {
        Kind::Number => number(&String::from_utf8_lossy(token.text), negative),
        Kind::Quoted(_) => Expr::Text(unquote(token.text).into()),
        Kind::Word if token.is("NULL") => Expr::Null,
        Kind::Word if token.text.to_ascii_uppercase().starts_with(b"CURRENT_") => unresolved(),
        Kind::Word => default_value(match token.name() {
            n if n.same(b"true") => Expr::Int(1),
            n if n.same(b"false") => Expr::Int(0),
            n => Expr::Text(n.as_bytes().into()),
        }),
        Kind::Byte(_) => unresolved(),
    };
    match list {
        [open, ..] if open.byte(b'(') => {
            let (parts, rest) = parenthesised(list);
            match parts.as_slice() {
                [[one]] => (literal(one, false), rest),
                [[sign, one]] if sign.byte(b'-') => (literal(one, true), rest),
                _ => (unresolved(), rest),
            }
        }
        [sign, one, rest @ ..] if sign.byte(b'-') => (literal(one, true), rest),
        [sign, one, rest @ ..] if sign.byte(b'+') => (literal(one, false), rest),
        [one, rest @ ..] => (literal(one, false), rest),
        [] => (unresolved(), list),
    }
}

fn table_constraint(builder: &mut TableBuilder, part: &[Token<'_>]) {
    let body = match part {
        [c, name, rest @ ..] if c.is("CONSTRAINT") && name.is_name() => rest,
        _ => part,
    };
    let Some(first) = body.first() else { return };
    if first.is("CHECK") {
        builder.check(None, unresolved());
        return;
    }
    let (parts, after) = parenthesised(body);
    if first.is("PRIMARY") || first.is("UNIQUE") {
        let auto = parts.iter().any(|p| p.iter().any(|t| t.is("AUTOINCREMENT")));
        let terms: Vec<_> = parts.iter().filter_map(|p| term(p)).map(|(name, collation, desc)| KeyTerm { name, collation, desc }).collect();
        if first.is("PRIMARY") {
            builder.primary_key(Some(&terms), false, Conflict::Default, auto);
        } else {
            builder.unique(Some(&terms), Conflict::Default);
        }
    } else if first.is("FOREIGN")
        && let [references, parent, rest @ ..] = after
        && references.is("REFERENCES")
        && parent.is_name()
    {
        let parents = if rest.first().is_some_and(|t| t.byte(b'(')) { names(&parenthesised(rest).0) } else { Vec::new() };
        builder.foreign_key(Some(names(&parts)), parent.name(), parents, false);
    }
}

fn names(parts: &[&[Token<'_>]]) -> Vec<Name> {
    parts.iter().filter_map(|p| p.first()).filter(|t| t.is_name()).map(Token::name).collect()
}

/// A key term that is only a name with COLLATE and an order.
fn term(part: &[Token<'_>]) -> Option<(Name, Option<Name>, bool)> {
    let first = part.first().filter(|t| t.is_name())?;
    let collation = part.windows(2).find_map(|w| match w {
        [c, n] if c.is("COLLATE") && n.is_name() => Some(n.name()),
        _ => None,
    });
    Some((first.name(), collation, part.iter().skip(1).any(|t| t.is("DESC"))))
}

fn index(list: &[Token<'_>], unique: bool) -> IndexDef {
    let (name, rest) = qualified(list);
    let on = rest.iter().position(|t| t.is("ON")).map_or(0, |i| i.saturating_add(1));
    let (table, rest) = qualified(rest.get(on..).unwrap_or_default());
    let (parts, after) = parenthesised(rest);
    let columns = parts
        .iter()
        .map(|part| {
            let plain = part.get(1).is_none_or(|t| t.is("COLLATE") || t.is("ASC") || t.is("DESC"));
            match term(part) {
                Some((name, collation, desc)) if plain => {
                    IndexColumn { what: IndexTerm::Column(name, false), collation: collation.as_ref().map(Collation::named), desc }
                }
                _ => IndexColumn { what: IndexTerm::Expr(unresolved()), collation: None, desc: part.last().is_some_and(|t| t.is("DESC")) },
            }
        })
        .collect();
    let where_clause = after.iter().any(|t| t.is("WHERE")).then(unresolved);
    IndexDef { name, table, unique, columns, where_clause }
}

fn view(list: &[Token<'_>]) -> ViewDef {
    let (name, rest) = qualified(list);
    let columns = match rest.first() {
        Some(t) if t.byte(b'(') => names(&parenthesised(rest).0),
        _ => Vec::new(),
    };
    ViewDef { name, columns, select: Err("the text is damaged".to_owned()), sources: sources(list) }
}

fn trigger(list: &[Token<'_>]) -> TriggerDef {
    let (name, rest) = qualified(list);
    let on = rest.iter().position(|t| t.is("ON")).map_or(rest.len(), |i| i.saturating_add(1));
    let (table, body) = qualified(rest.get(on..).unwrap_or_default());
    TriggerDef { name, table, sources: sources(body) }
}

/// More tables than SQLite joins (64) times more statements than a trigger has; keeps the look-ups of hostile text short.
const MAX_SOURCES: usize = 1000;

/// The tables and views that a query or trigger body names: what stands behind FROM, JOIN, INTO, UPDATE and commas of a FROM
/// list, without the names that WITH defines. Each once, in the order of the text.
pub(super) fn sources(list: &[Token<'_>]) -> Vec<Name> {
    let mut out: Vec<Name> = Vec::new();
    each_source(list, &mut |source| {
        if !out.iter().any(|o| o.same(source.name.as_bytes())) {
            out.push(source.name);
        }
        out.len() < MAX_SOURCES
    });
    out
}

/// A table or view as a query or trigger body names it.
pub(super) struct NamedSource {
    /// The database before the dot.
    pub database: Option<Name>,
    /// Its name.
    pub name: Name,
    /// Whether rows are put into it, changed or taken out.
    pub target: bool,
}

/// Gives every place of a text that names a table or view, until the callback has enough.
pub(super) fn each_source(list: &[Token<'_>], f: &mut dyn FnMut(NamedSource) -> bool) {
    let mut defined: Vec<Name> = Vec::new();
    for w in list.windows(3) {
        if let [name, a, b] = w
            && name.is_name()
            && a.is("AS")
            && (b.byte(b'(') || b.is("MATERIALIZED") || b.is("NOT"))
        {
            defined.push(name.name());
            if defined.len() >= MAX_SOURCES {
                break;
            }
        }
    }
    let mut expect = false;
    let mut in_from = false;
    let mut target = false;
    let mut after_delete = false;
    let mut rest = list;
    while let Some((token, tail)) = rest.split_first() {
        rest = tail;
        let was_delete = std::mem::replace(&mut after_delete, token.is("DELETE"));
        if token.is("FROM") || token.is("JOIN") || token.is("INTO") {
            // IS [NOT] DISTINCT FROM names no table, and neither does a FROM that is followed by a bracket.
            expect = true;
            in_from = token.is("FROM");
            target = token.is("INTO") || was_delete;
            continue;
        }
        if token.is("UPDATE") {
            expect = !tail.first().is_some_and(|t| t.is("OF") || t.is("ON") || t.is("SET"));
            target = true;
            continue;
        }
        if expect && token.is("OR") {
            // UPDATE OR IGNORE t
            rest = tail.get(1..).unwrap_or_default();
            continue;
        }
        if expect {
            expect = false;
            if token.is_name() && !token.is("SELECT") {
                let (database, name, after) = match tail {
                    [dot, name, after @ ..] if dot.byte(b'.') && name.is_name() => (Some(token.name()), name.name(), after),
                    _ => (None, token.name(), tail),
                };
                rest = after;
                if !defined.iter().any(|d| d.same(name.as_bytes())) && !f(NamedSource { database, name, target }) {
                    return;
                }
            }
            continue;
        }
        if in_from && token.byte(b',') {
            expect = true;
            target = false;
        } else if ["WHERE", "ON", "GROUP", "ORDER", "SET", "SELECT", "UNION", "LIMIT", "USING"].iter().any(|w| token.is(w))
            || token.byte(b')')
            || token.byte(b';')
        {
            in_from = false;
        }
    }
}

/// A virtual table: the text behind USING, its arguments split at their own commas.
pub(super) fn virtual_table(sql: &[u8], list: &[Token<'_>]) -> VirtualDef {
    let (name, rest) = qualified(list);
    let using = rest.iter().position(|t| t.is("USING")).map_or(rest.len(), |i| i.saturating_add(1));
    let rest = rest.get(using..).unwrap_or_default();
    let module = rest.first().filter(|t| t.is_name()).map(Token::name).unwrap_or_default();
    let (parts, _) = parenthesised(rest);
    let args = parts
        .iter()
        .filter_map(|part| match (part.first(), part.last()) {
            (Some(a), Some(b)) => sql.get(a.at..b.end()).map(<[u8]>::to_vec),
            _ => None,
        })
        .collect();
    VirtualDef { name, module, args }
}

/// All tokens of a text.
pub(super) fn all(sql: &[u8]) -> Vec<Token<'_>> {
    tokens(sql).collect()
}
