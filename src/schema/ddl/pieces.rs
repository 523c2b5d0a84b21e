//! The text of CREATE TABLE in pieces: its columns and constraints as they are written, to put them together anew.

use std::ops::Range;

use super::token::{Kind, Token, tokens};
use crate::expr::name::Name;

/// A CREATE TABLE text, cut at the commas of its list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pieces {
    /// Up to and with the opening parenthesis.
    head: Vec<u8>,
    /// The column definitions, each with its name.
    columns: Vec<(Name, Vec<u8>)>,
    /// The table constraints.
    constraints: Vec<Vec<u8>>,
    /// From the closing parenthesis on.
    tail: Vec<u8>,
}

impl Pieces {
    /// Cuts a text; `None` where it has no list that closes.
    #[must_use]
    pub fn of(sql: &[u8]) -> Option<Pieces> {
        let tokens: Vec<Token<'_>> = tokens(sql).collect();
        let open = tokens.iter().position(|t| t.byte(b'('))?;
        let mut depth = 0_usize;
        let mut close = None;
        let mut items: Vec<Range<usize>> = Vec::new();
        let mut first = open.checked_add(1)?;
        for (i, token) in tokens.iter().enumerate().skip(open) {
            match token.kind {
                Kind::Byte(b'(') => depth = depth.saturating_add(1),
                Kind::Byte(b')') => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        items.push(first..i);
                        close = Some(i);
                        break;
                    }
                }
                Kind::Byte(b',') if depth == 1 => {
                    items.push(first..i);
                    first = i.saturating_add(1);
                }
                _ => {}
            }
        }
        let close = tokens.get(close?)?.at;
        let head = sql.get(..tokens.get(open)?.end())?.to_vec();
        let mut pieces = Pieces { head, columns: Vec::new(), constraints: Vec::new(), tail: sql.get(close..)?.to_vec() };
        for item in items {
            let item = tokens.get(item)?;
            let (begin, end) = (item.first()?, item.last()?);
            let text = sql.get(begin.at..end.end())?.to_vec();
            if ["CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN"].iter().any(|k| begin.is(k)) {
                pieces.constraints.push(text);
            } else {
                pieces.columns.push((begin.name(), text));
            }
        }
        Some(pieces)
    }

    /// The columns by name, in order.
    pub fn names(&self) -> impl Iterator<Item = &Name> {
        self.columns.iter().map(|(name, _)| name)
    }

    /// The place of a column.
    #[must_use]
    pub fn position(&self, name: &Name) -> Option<usize> {
        self.names().position(|n| n.same(name.as_bytes()))
    }

    /// Puts a column definition behind the others, as ALTER TABLE ADD COLUMN does.
    pub fn add(&mut self, name: Name, text: Vec<u8>) {
        self.columns.push((name, text));
    }

    /// Takes a column away.
    pub fn remove(&mut self, at: usize) {
        if at < self.columns.len() {
            self.columns.remove(at);
        }
    }

    /// Gives a column another name.
    pub fn rename(&mut self, at: usize, to: &Name) {
        let Some((name, text)) = self.columns.get_mut(at) else { return };
        let end = tokens(text).next().map_or(0, |t| t.end());
        *text = [to.quoted().as_slice(), text.get(end..).unwrap_or_default()].concat();
        *name = to.clone();
    }

    /// Puts the columns into another order: each by its former place. Columns that are not named are left out.
    pub fn reorder(&mut self, order: &[usize]) {
        self.columns = order.iter().filter_map(|&i| self.columns.get(i).cloned()).collect();
    }

    /// The text as a whole.
    #[must_use]
    pub fn text(&self) -> Vec<u8> {
        let mut out = self.head.clone();
        for (i, item) in self.columns.iter().map(|(_, text)| text).chain(&self.constraints).enumerate() {
            if i > 0 {
                out.extend_from_slice(b", ");
            }
            out.extend_from_slice(item);
        }
        out.extend_from_slice(&self.tail);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_at_the_commas_of_its_list() {
        let sql = b"CREATE TABLE t(a TEXT DEFAULT ',(', \"b, c\" REAL CHECK(max(b, 1) > 0), PRIMARY KEY(a, \"b, c\")) WITHOUT ROWID";
        let mut p = Pieces::of(sql).unwrap();
        assert_eq!(p.names().map(Name::text).collect::<Vec<_>>(), ["a", "b, c"]);
        assert_eq!(p.text(), sql);
        p.reorder(&[1, 0]);
        p.rename(1, &Name::from("z"));
        p.add(Name::from("d"), b"d INT".to_vec());
        let want =
            "CREATE TABLE t(\"b, c\" REAL CHECK(max(b, 1) > 0), \"z\" TEXT DEFAULT ',(', d INT, PRIMARY KEY(a, \"b, c\")) WITHOUT ROWID";
        assert_eq!(String::from_utf8(p.text()).unwrap(), want);
        assert_eq!(Pieces::of(b"CREATE TABLE t(a, b"), None);
        assert_eq!(Pieces::of(b"CREATE TABLE t(a,, b)"), None);
    }
}
