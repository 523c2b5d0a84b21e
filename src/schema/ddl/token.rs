//! A tokenizer of SQL text that never gives up: for guards before a parser runs, and for damaged text.

use crate::expr::name::Name;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A bare word: identifier or keyword.
    Word,
    /// An identifier in `"`, `` ` `` or `[`, or a string in `'`; the byte is the opening quote.
    Quoted(u8),
    /// A number.
    Number,
    /// One byte of punctuation or of an operator, or a byte that no token begins with.
    Byte(u8),
}

/// A token with its place in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'a> {
    /// What it is.
    pub kind: Kind,
    /// Where it begins.
    pub at: usize,
    /// Its bytes, quotes included.
    pub text: &'a [u8],
    /// A quote that is not closed, or a byte that no SQL token begins with.
    pub odd: bool,
}

impl Token<'_> {
    /// Whether it is this keyword (in capitals).
    #[must_use]
    pub fn is(&self, keyword: &str) -> bool {
        self.kind == Kind::Word && self.text.eq_ignore_ascii_case(keyword.as_bytes())
    }

    /// Whether it is this byte of punctuation.
    #[must_use]
    pub fn byte(&self, b: u8) -> bool {
        self.kind == Kind::Byte(b)
    }

    /// Whether it can stand for a name.
    #[must_use]
    pub fn is_name(&self) -> bool {
        matches!(self.kind, Kind::Word | Kind::Quoted(_))
    }

    /// The name it stands for.
    #[must_use]
    pub fn name(&self) -> Name {
        Name::from(unquote(self.text))
    }

    /// Where it ends.
    #[must_use]
    pub fn end(&self) -> usize {
        self.at.saturating_add(self.text.len())
    }
}

/// The bytes of an identifier or string without its quotes, doubled quotes halved; other text as it is.
#[must_use]
pub fn unquote(text: &[u8]) -> Vec<u8> {
    let Some((&open, rest)) = text.split_first() else { return Vec::new() };
    let close = match open {
        b'"' | b'\'' | b'`' => open,
        b'[' => b']',
        _ => return text.to_vec(),
    };
    let mut out = Vec::with_capacity(rest.len());
    let mut bytes = rest.iter().copied().peekable();
    while let Some(b) = bytes.next() {
        if b == close {
            if bytes.peek() == Some(&close) && open != b'[' {
                bytes.next();
            } else {
                break;
            }
        }
        out.push(b);
    }
    out
}

/// *Resync*: the tokens of a text; white space and comments are skipped, every step consumes at least one byte.
#[derive(Debug, Clone)]
pub struct Tokens<'a> {
    text: &'a [u8],
    at: usize,
}

/// The tokens of a text.
#[must_use]
pub fn tokens(text: &[u8]) -> Tokens<'_> {
    Tokens { text, at: 0 }
}

fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b == b'$' || b >= 0x80
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        loop {
            let rest = self.text.get(self.at..)?;
            let first = *rest.first()?;
            let take = |pred: fn(u8) -> bool| rest.iter().position(|&b| !pred(b)).unwrap_or(rest.len());
            let skip = if first.is_ascii_whitespace() {
                take(|b| b.is_ascii_whitespace())
            } else if rest.starts_with(b"--") {
                rest.iter().position(|&b| b == b'\n').map_or(rest.len(), |i| i.saturating_add(1))
            } else if rest.starts_with(b"/*") {
                rest.get(2..).unwrap_or_default().windows(2).position(|w| w == b"*/").map_or(rest.len(), |i| i.saturating_add(4))
            } else {
                0
            };
            if skip > 0 {
                self.at = self.at.saturating_add(skip);
                continue;
            }
            let (kind, len, odd) = match first {
                b'"' | b'\'' | b'`' | b'[' => {
                    let (len, closed) = quoted_len(rest, first);
                    (Kind::Quoted(first), len, !closed)
                }
                b'0'..=b'9' => (Kind::Number, number_len(rest), false),
                b'.' if rest.get(1).is_some_and(u8::is_ascii_digit) => (Kind::Number, number_len(rest), false),
                b if is_word(b) => (Kind::Word, take(is_word), b == b'$'),
                b => (Kind::Byte(b), 1, !b"()+-*/%=<>!|&~,;.?@:#".contains(&b)),
            };
            let token = Token { kind, at: self.at, text: rest.get(..len).unwrap_or(rest), odd };
            self.at = self.at.saturating_add(len.max(1));
            return Some(token);
        }
    }
}

fn quoted_len(rest: &[u8], open: u8) -> (usize, bool) {
    let close = if open == b'[' { b']' } else { open };
    let mut at = 1_usize;
    while let Some(&b) = rest.get(at) {
        if b == close {
            if open != b'[' && rest.get(at.saturating_add(1)) == Some(&close) {
                at = at.saturating_add(2);
                continue;
            }
            return (at.saturating_add(1), true);
        }
        at = at.saturating_add(1);
    }
    (rest.len(), false)
}

fn number_len(rest: &[u8]) -> usize {
    let mut at = 0_usize;
    let mut previous = 0_u8;
    while let Some(&b) = rest.get(at) {
        let sign =
            (b == b'+' || b == b'-') && (previous == b'e' || previous == b'E') && !rest.starts_with(b"0x") && !rest.starts_with(b"0X");
        if !(is_word(b) || b == b'.' || sign) {
            break;
        }
        previous = b;
        at = at.saturating_add(1);
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_cover_every_kind_of_quote() {
        let text = b"CREATE \"a\"\"b\" [c]] 'd''e' `f` -- x\n /* y */ 1.5e-3 ->> \xff\x01 'open";
        let got: Vec<_> = tokens(text).map(|t| (t.kind, t.odd)).collect();
        assert_eq!(got.len(), 13);
        assert_eq!(unquote(b"\"a\"\"b\""), b"a\"b");
        assert_eq!(unquote(b"[c]"), b"c");
        assert_eq!(unquote(b"'d''e'"), b"d'e");
        assert!(got.last().unwrap().1);
        assert!(tokens(b"").next().is_none());
    }
}
