//! What a CREATE text may have said before bytes of it were damaged.
//!
//! Tests:    texts that differ in one byte where that byte keeps the text from being SQL, or hides a column; then the pieces
//!           of the text, each read for itself.
//! Collects: every such text that SQLite accepts, with words for what was assumed.
//! Leaves:   the choice between them to who knows the records.

mod change;
mod defaults;
mod likely;
mod pieces;
mod words;

use std::collections::BTreeSet;

pub use likely::{is_odd, stands, style};

use change::{changes, shown};
use pieces::{body, has, is_constraint, parts, sturdy};
use words::is_type_word;

use super::damaged::{self, Verb};
use super::token::{Kind, Token, tokens};
use super::{Definition, Hint, limits, parse_as};
use crate::expr::Unknown;
use crate::expr::name::Name;
use crate::schema::layout::TableLayout;

/// Bytes of SQL that are parsed to mend one text: all readings of a text of usual size, the likelier ones of a long one.
const BUDGET: usize = 3 << 20;

/// What mending a text may cost, in bytes that are parsed.
#[must_use]
pub fn cost(sql: &[u8]) -> usize {
    sql.len().saturating_mul(sql.len()).saturating_mul(10).min(BUDGET)
}

/// Longest text that is mended. No table of an application has a longer one.
const MAX_TEXT: usize = 256 << 10;

/// The cost from which on a text is put together from pieces, and not read with one other byte.
pub const PIECES: u32 = 7;

/// Columns that are tried for one that a key names and that is not there.
const KEYS: usize = 40;

/// What is known of an object beside its text.
#[derive(Debug, Clone, Copy)]
pub struct Known<'k> {
    /// What the schema row says that it is.
    pub hint: Hint,
    /// `name` of the schema row.
    pub name: &'k [u8],
    /// `tbl_name` of the schema row.
    pub table: &'k [u8],
    /// How many values the records of the table have; 0 where nothing says it.
    pub width: usize,
    /// Whether its tree is of the index kind, where it is known.
    pub without_rowid: Option<bool>,
    /// Whether the first value of every record is NULL, as that of a rowid alias is.
    pub alias: bool,
}

/// A text that SQLite accepts.
#[derive(Debug, Clone)]
pub struct Reading {
    /// The text.
    pub sql: Vec<u8>,
    /// What it declares.
    pub definition: Definition,
    /// What was assumed.
    pub words: String,
    /// How far its types are from those that people write.
    pub style: u32,
    /// How much was assumed.
    pub cost: u32,
}

/// The values that records of a definition have.
fn stored(definition: &Definition) -> usize {
    definition.as_table().map_or(0, |t| TableLayout::new(t, 4).record.len())
}

/// All readings of a text that is damaged, in the order in which they were tried.
#[must_use]
pub fn readings(sql: &[u8], known: &Known<'_>) -> Vec<Reading> {
    let list = damaged::all(sql.get(..MAX_TEXT).unwrap_or(sql));
    // No other byte brings it within them.
    if limits::within(&list).is_err() {
        return Vec::new();
    }
    let calls = list.windows(2).filter(|w| matches!(w, [name, open] if name.is_name() && open.byte(b'(')));
    let calls = calls.filter_map(|w| w.first()).map(|t| t.name().folded()).collect();
    let mut all = Mender { known: *known, left: BUDGET, seen: BTreeSet::new(), calls, found: Vec::new() };
    // What was wiped at the end of a text is not part of it.
    let end = sql.iter().rposition(|b| *b != 0).map_or(0, |i| i.saturating_add(1));
    let text = sql.get(..end.min(MAX_TEXT)).unwrap_or(sql);
    let table = matches!(known.hint, Hint::Table | Hint::None);
    all.offer(text, "its name is read as that of its row".to_owned(), 0);
    if let Some(sql) = defaults::without_bad_defaults(text, &damaged::all(text)).filter(|_| table) {
        all.offer(&sql, "a DEFAULT that is not constant is left out".to_owned(), 0);
    }
    for change in changes(text, 0..text.len(), known) {
        if all.left == 0 {
            break;
        }
        // What else a query or an index says cannot be held against anything: only words, names and gaps are put right.
        if table || change.word || b" (),".contains(&change.byte) {
            let words = format!("byte {} of the text is read as {}", change.at, shown(change.byte));
            all.offer(&change.apply(text), words, change.cost);
        }
    }
    if table {
        all.left = all.left.saturating_add(BUDGET / 4);
        all.pieces(text);
    }
    all.found
}

struct Mender<'k> {
    known: Known<'k>,
    left: usize,
    seen: BTreeSet<Vec<u8>>,
    /// Names that the text has before a parenthesis.
    calls: BTreeSet<Vec<u8>>,
    found: Vec<Reading>,
}

/// A column of a text that is put together from pieces.
#[derive(Debug, Clone)]
struct Piece {
    name: Name,
    text: Vec<u8>,
    /// Its text as the evidence has it was not SQL.
    bad: bool,
}

impl Mender<'_> {
    fn parse(&mut self, sql: &[u8]) -> Option<Definition> {
        if self.left == 0 {
            return None;
        }
        self.left = self.left.saturating_sub(sql.len().saturating_add(20));
        let parsed = parse_as(sql, self.known.hint);
        if parsed.problem.is_none() && !sql.contains(&0) { Some(parsed.definition) } else { None }
    }

    /// Takes a text if it stands, under the name that the row has.
    fn offer(&mut self, sql: &[u8], words: String, cost: u32) -> bool {
        let Some(definition) = self.parse(sql) else { return false };
        if stands(sql, &definition, &self.known) {
            self.take(sql.to_vec(), definition, words, cost);
            return true;
        }
        let Some(named) = renamed(sql, self.known.name) else { return false };
        let Some(definition) = self.parse(&named).filter(|d| stands(&named, d, &self.known)) else { return false };
        self.take(named, definition, words, cost.saturating_add(1));
        true
    }

    fn take(&mut self, sql: Vec<u8>, definition: Definition, words: String, cost: u32) {
        // A function that nobody knows, and that the text did not call, is made of what was a name.
        let no_call = |u| matches!(u, Unknown::Function(name) if !self.calls.contains(&name.folded()));
        let invented = definition.as_table().is_some_and(|t| t.unknowns().any(no_call));
        if invented {
            return;
        }
        if self.seen.insert(sql.clone()) {
            let style = definition.as_table().map_or(0, |t| style(&sql, t));
            self.found.push(Reading { sql, definition, words, style, cost });
        }
    }

    /// Puts the text together from its pieces, each as far as it can be read.
    fn pieces(&mut self, text: &[u8]) {
        let list = sturdy(text);
        let (body, tail) = body(&list, self.known.name);
        let mut columns: Vec<Piece> = Vec::new();
        let mut constraints: Vec<Vec<u8>> = Vec::new();
        let mut split: Vec<Piece> = Vec::new();
        let mut hand: Vec<Piece> = Vec::new();
        let mut words: Vec<String> = Vec::new();
        for part in parts(body) {
            let Some((first, last)) = part.first().zip(part.last()) else { continue };
            let bytes = text.get(first.at..last.end()).unwrap_or_default();
            if !columns.is_empty() && is_constraint(part) {
                constraints.push(bytes.to_vec());
                continue;
            }
            let column = self.column(part, bytes, columns.is_empty());
            // A run of bytes that no text has may have been a comma with what stood around it.
            if column.bad
                && let Some(odd) = part.iter().position(|t| t.odd)
            {
                let after = part.iter().skip(odd).position(|t| !t.odd).map_or(part.len(), |n| odd.saturating_add(n));
                let halves = [part.get(..odd), part.get(after..)].into_iter().flatten().filter(|h| !h.is_empty());
                for half in halves {
                    let (a, b) = (half.first().map_or(0, |t| t.at), half.last().map_or(0, Token::end));
                    let bytes = text.get(a..b).unwrap_or_default();
                    split.push(self.column(half, bytes, columns.is_empty() && split.is_empty()));
                }
            } else {
                split.push(column.clone());
            }
            hand.push(if column.bad { self.by_hand(part, columns.is_empty()) } else { column.clone() });
            columns.push(column);
        }
        for c in columns.iter().filter(|c| c.bad) {
            words.push(format!("column {} is read as far as it can be", c.name));
        }
        let rest = Rest {
            constraints,
            without_rowid: self.known.without_rowid.unwrap_or_else(|| has(tail, "ROWID")),
            strict: has(tail, "STRICT"),
        };
        let plain = split.len() == columns.len();
        for constraints in keys(&rest, &columns) {
            let rest = Rest { constraints, ..rest };
            let words = [words.as_slice(), &["a column of the key is read by its values".to_owned()]].concat();
            self.widened(&columns, &rest, &words, PIECES);
        }
        self.widened(&columns, &rest, &words, PIECES.saturating_add(1));
        if columns.iter().any(|c| c.bad) {
            self.widened(&hand, &rest, &words, PIECES.saturating_add(3));
        }
        if !plain {
            words.push("bytes that are no text are read as a comma".to_owned());
            self.widened(&split, &rest, &words, PIECES.saturating_add(2));
        }
    }

    /// Offers columns, with others beside them where records have more values: behind each column that is not whole, or at
    /// the end.
    fn widened(&mut self, columns: &[Piece], rest: &Rest, words: &[String], cost: u32) {
        let Some(now) = self.assemble(columns, rest) else { return };
        let missing = self.known.width.saturating_sub(stored(&now.1)).min(super::MAX_COLUMNS);
        if missing == 0 {
            self.take(now.0, now.1, said(words), cost);
            return;
        }
        let places = columns.iter().enumerate().filter(|(_, c)| c.bad).map(|(i, _)| i.saturating_add(1)).take(8);
        let places: BTreeSet<usize> = places.chain([columns.len()]).collect();
        for place in places {
            let mut more: Vec<Piece> = columns.get(..place).unwrap_or_default().to_vec();
            let mut named = Vec::new();
            for n in 0..missing {
                let name = format!("column_{}", place.saturating_add(n).saturating_add(1));
                more.push(Piece { name: Name::from(name.as_str()), text: name.clone().into_bytes(), bad: false });
                named.push(name);
            }
            more.extend(columns.get(place..).unwrap_or_default().iter().cloned());
            let Some((sql, definition)) = self.assemble(&more, rest) else { continue };
            let added = match (named.first(), named.last()) {
                (Some(a), Some(b)) if a != b => format!("{a} to {b} stand for values that the text has no columns for"),
                (Some(a), _) => format!("{a} stands for values that the text has no column for"),
                _ => String::new(),
            };
            let end = u32::from(place == columns.len());
            self.take(sql, definition, said(&[words, &[added]].concat()), cost.saturating_add(1).saturating_add(end));
        }
    }

    /// One column: as it is written, or with one other byte, or its name and what of its type can be read.
    fn column(&mut self, part: &[Token<'_>], bytes: &[u8], first: bool) -> Piece {
        // A generated column cannot stand alone.
        let head = b"CREATE TABLE x(rp_x INT,";
        let wrapped = [head.as_slice(), bytes, b")"].concat();
        let range = head.len()..head.len().saturating_add(bytes.len());
        let one = |definition: Option<Definition>| {
            definition.and_then(|d| match d.as_table().map(|t| t.columns.as_slice()) {
                Some([_, column]) => Some(column.name.clone()),
                _ => None,
            })
        };
        let own = self.parse(&wrapped);
        let odd = tokens(&wrapped).any(|t| t.odd);
        let own_style = own.as_ref().and_then(Definition::as_table).map_or(u32::MAX, |t| style(&wrapped, t));
        if let Some(name) = one(own).filter(|_| !odd) {
            // A word of SQL in a type is damage that the grammar lets pass.
            if own_style == 0 || !part.iter().any(|t| t.odd) {
                return Piece { name, text: bytes.to_vec(), bad: false };
            }
        }
        let mut best: Option<(u32, u32, Piece)> = None;
        let known = Known { name: b"", table: b"", ..self.known };
        for change in changes(&wrapped, range.clone(), &known).into_iter().take(4000) {
            if self.left < BUDGET / 16 {
                break;
            }
            let changed = change.apply(&wrapped);
            let Some(definition) = self.parse(&changed) else { continue };
            if tokens(&changed).any(|t| t.odd) {
                continue;
            }
            let style = definition.as_table().map_or(u32::MAX, |t| style(&changed, t));
            let Some(name) = one(Some(definition)) else { continue };
            if style < 2 && best.as_ref().is_none_or(|b| (style, change.cost) < (b.0, b.1)) {
                let text = changed.get(range.clone()).unwrap_or_default().to_vec();
                best = Some((style, change.cost, Piece { name, text, bad: true }));
            }
        }
        if let Some((_, _, piece)) = best {
            return piece;
        }
        self.by_hand(part, first)
    }

    /// The name of a column, up to the first white space, and a word of its type. A first column whose values are all NULL is
    /// the rowid alias.
    fn by_hand(&self, part: &[Token<'_>], first: bool) -> Piece {
        let mut name: Vec<u8> = Vec::new();
        let mut rest = part;
        let mut end = None;
        while let Some((token, tail)) = rest.split_first() {
            if end.is_some_and(|end| end != token.at) || token.byte(b'(') {
                break;
            }
            match token.kind {
                Kind::Quoted(_) if !token.odd => name.extend_from_slice(token.name().as_bytes()),
                _ => name.extend_from_slice(token.text),
            }
            end = Some(token.end());
            rest = tail;
        }
        name.retain(|b| *b != 0);
        let name = Name::from(name);
        let mut text = name.quoted();
        let kind = rest.iter().take(3).find(|t| t.kind == Kind::Word && is_type_word(t.text));
        let key = rest.windows(2).any(|w| matches!(w, [a, b] if a.is("PRIMARY") || b.is("KEY")));
        if (key || first) && self.known.alias && self.known.without_rowid != Some(true) {
            text.extend_from_slice(b" INTEGER PRIMARY KEY");
        } else if let Some(kind) = kind {
            text.push(b' ');
            text.extend_from_slice(kind.text);
            if key {
                text.extend_from_slice(b" PRIMARY KEY");
            }
        }
        Piece { name, text, bad: true }
    }

    /// The text of these columns with as much of the rest as SQLite accepts beside them.
    fn assemble(&mut self, columns: &[Piece], rest: &Rest) -> Option<(Vec<u8>, Definition)> {
        let mut used: BTreeSet<Vec<u8>> = BTreeSet::new();
        let mut named: Vec<Piece> = Vec::with_capacity(columns.len());
        for (i, piece) in columns.iter().enumerate() {
            let mut piece = piece.clone();
            if piece.name.as_bytes().is_empty() || !used.insert(piece.name.folded()) {
                let mut n = i.saturating_add(1);
                while !used.insert(format!("column_{n}").into_bytes()) {
                    n = n.saturating_add(1);
                }
                let name = Name::from(format!("column_{n}").as_str());
                let after = tokens(&piece.text).next().map_or(0, |t| t.end());
                piece.text = [name.as_bytes(), piece.text.get(after..).unwrap_or_default()].concat();
                piece.name = name;
            }
            named.push(piece);
        }
        let key = named.first().map(|p| [b"PRIMARY KEY(".as_slice(), &p.name.quoted(), b")"].concat());
        if let Some(done) = self.fitted(&named, rest, key.as_deref()) {
            return Some(done);
        }
        // Rules that name what is not there go; a virtual column is nothing but its rule.
        let simple: Vec<Piece> = named.iter().filter_map(|p| self.simple(p)).collect();
        if let Some(done) = self.fitted(&simple, rest, key.as_deref()) {
            return Some(done);
        }
        let alias = |i: usize| if i == 0 && self.known.alias && !rest.without_rowid { b" INTEGER PRIMARY KEY".as_slice() } else { b"" };
        let bare: Vec<Piece> =
            simple.iter().enumerate().map(|(i, p)| Piece { text: [&p.name.quoted(), alias(i)].concat(), ..p.clone() }).collect();
        self.left = self.left.max(1);
        let keys: Vec<Vec<u8>> = if rest.without_rowid { key.into_iter().collect() } else { Vec::new() };
        self.whole(&bare, &keys, rest.without_rowid, false)
    }

    /// A column without CHECK and without the expression that generates it; `None` for one that is not stored.
    fn simple(&mut self, piece: &Piece) -> Option<Piece> {
        if !tokens(&piece.text).any(|t| t.is("CHECK") || t.is("AS")) {
            return Some(piece.clone());
        }
        let parsed = self.parse(&[b"CREATE TABLE x(rp_x INT,".as_slice(), &piece.text, b")"].concat());
        let column = parsed.as_ref().and_then(Definition::as_table).and_then(|t| t.columns.get(1));
        if column.is_some_and(|c| !c.is_stored()) {
            return None;
        }
        let mut text = piece.name.quoted();
        if let Some(c) = column {
            text.push(b' ');
            text.extend_from_slice(c.decl_type.as_deref().unwrap_or_default());
            text.extend_from_slice(if c.primary { b" PRIMARY KEY" } else { b"" });
        }
        Some(Piece { text, ..piece.clone() })
    }

    /// These columns with as many of the constraints as can stand beside them. `key` is the key of a table without rowids
    /// of which none can be read.
    fn fitted(&mut self, columns: &[Piece], rest: &Rest, key: Option<&[u8]>) -> Option<(Vec<u8>, Definition)> {
        for strict in [true, false].into_iter().filter(|s| !*s || rest.strict) {
            // All of it; then constraint by constraint, each if it can stay.
            if let Some(done) = self.whole(columns, &rest.constraints, rest.without_rowid, strict) {
                return Some(done);
            }
            let mut kept: Vec<Vec<u8>> = Vec::new();
            // A table without rowids needs its key before anything else is tried.
            let forced = rest.without_rowid && self.whole(columns, &kept, true, strict).is_none();
            let own = rest.constraints.iter().find(|c| tokens(c).any(|t| t.is("PRIMARY")));
            let own = own.filter(|c| self.whole(columns, std::slice::from_ref(*c), true, strict).is_some());
            if forced {
                kept.extend(own.cloned().or_else(|| key.map(<[u8]>::to_vec)));
            }
            let mut best = self.whole(columns, &kept, rest.without_rowid, strict);
            if best.is_none() {
                continue;
            }
            for constraint in rest.constraints.iter().filter(|c| !forced || Some(*c) != own) {
                kept.push(constraint.clone());
                match self.whole(columns, &kept, rest.without_rowid, strict) {
                    None => {
                        kept.pop();
                    }
                    more => best = more,
                }
            }
            return best;
        }
        None
    }

    fn whole(&mut self, columns: &[Piece], constraints: &[Vec<u8>], without_rowid: bool, strict: bool) -> Option<(Vec<u8>, Definition)> {
        let mut sql = [b"CREATE TABLE ".as_slice(), &Name::new(self.known.name).quoted(), b"("].concat();
        for (i, item) in columns.iter().map(|c| &c.text).chain(constraints).enumerate() {
            if i > 0 {
                sql.extend_from_slice(b", ");
            }
            sql.extend_from_slice(item);
        }
        sql.extend_from_slice(match (without_rowid, strict) {
            (false, false) => b")".as_slice(),
            (true, false) => b") WITHOUT ROWID",
            (false, true) => b") STRICT",
            (true, true) => b") STRICT, WITHOUT ROWID",
        });
        let definition = self.parse(&sql)?;
        let right = definition.as_table().is_some_and(|t| t.columns.len() == columns.len());
        (right && stands(&sql, &definition, &self.known)).then_some((sql, definition))
    }
}

/// What a table has beside its columns.
struct Rest {
    constraints: Vec<Vec<u8>>,
    without_rowid: bool,
    strict: bool,
}

/// The constraints of a table without rowids with another column in its key, where the key names one that is not there.
fn keys(rest: &Rest, columns: &[Piece]) -> Vec<Vec<Vec<u8>>> {
    let mut out = Vec::new();
    let primary = rest.constraints.iter().position(|c| tokens(c).any(|t| t.is("PRIMARY"))).filter(|_| rest.without_rowid);
    let Some((at, text)) = primary.and_then(|at| Some((at, rest.constraints.get(at)?))) else { return out };
    let list = sturdy(text);
    let open = list.iter().position(|t| t.byte(b'(')).map_or(list.len(), |i| i.saturating_add(1));
    let terms = list.get(open..).unwrap_or_default();
    let terms: Vec<&Token<'_>> =
        terms.iter().filter(|t| !t.byte(b',') && !t.byte(b')') && !t.is("ASC") && !t.is("DESC") && !t.is("COLLATE")).collect();
    let is_column = |t: &Token<'_>| columns.iter().any(|c| t.is_name() && t.name().same(c.name.as_bytes()));
    let mut unknown = terms.iter().filter(|t| !is_column(t));
    let (Some(term), None) = (unknown.next(), unknown.next()) else { return out };
    let free = columns.iter().filter(|c| !terms.iter().any(|t| t.is_name() && t.name().same(c.name.as_bytes())));
    for column in free.take(KEYS) {
        let before = text.get(..term.at).unwrap_or_default();
        let named = [before, &column.name.quoted(), text.get(term.end()..).unwrap_or_default()].concat();
        let mut constraints = rest.constraints.clone();
        if let Some(c) = constraints.get_mut(at) {
            *c = named;
        }
        out.push(constraints);
    }
    out
}

fn said(words: &[String]) -> String {
    let words: Vec<&str> = words.iter().map(String::as_str).filter(|w| !w.is_empty()).collect();
    if words.is_empty() { "its pieces are put together anew".to_owned() } else { words.join("; ") }
}

/// The text under another name of its object.
fn renamed(sql: &[u8], name: &[u8]) -> Option<Vec<u8>> {
    let list = damaged::all(sql);
    let (verb, at) = damaged::verb(&list);
    if verb == Verb::None {
        return None;
    }
    let first = list.get(at)?;
    let last = match list.get(at.saturating_add(1)) {
        Some(dot) if dot.byte(b'.') => list.get(at.saturating_add(2))?,
        _ => first,
    };
    Some([sql.get(..first.at)?, &Name::new(name).quoted(), sql.get(last.end()..)?].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(width: usize) -> Known<'static> {
        Known { hint: Hint::Table, name: b"t", table: b"t", width, without_rowid: Some(false), alias: true }
    }

    fn best(sql: &[u8], width: usize) -> String {
        let all = readings(sql, &known(width));
        let best = all.iter().filter(|r| stored(&r.definition) == width).min_by_key(|r| (r.style, r.cost));
        String::from_utf8_lossy(&best.map(|r| r.sql.clone()).unwrap_or_default()).into_owned()
    }

    #[test]
    fn one_byte_is_put_right_and_names_are_kept() {
        let sound = "CREATE TABLE t(id integer primary key, name text not null, total real, note text)";
        for (from, to) in [
            ("real,", "realx"),
            ("real,", "real\x07"),
            ("t(", "t\""),
            ("name text", "name\"text"),
            ("primary", "prim\x07ry"),
            ("TABLE", "TA\x07LE"),
        ] {
            assert_eq!(best(sound.replacen(from, to, 1).as_bytes(), 4), sound, "{from} {to}");
        }
        let named = best(sound.replace("name", "na\x07e").as_bytes(), 4);
        assert!(named.contains("\"na\x07e\" text not null") || named.contains("\"na\x07e\" text"), "{named}");
    }

    #[test]
    fn what_is_wiped_becomes_columns_without_types() {
        let sql = best(b"CREATE TABLE t(id integer primary key, name text, tot\0\0\0\0\0\0", 5);
        assert_eq!(sql, "CREATE TABLE \"t\"(id integer primary key, name text, tot, column_4, column_5)");
    }
}
