//! JSON text to a list of nodes, with the JSON5 forms that SQLite takes (JSON document, section 3).

/// Arrays and objects in one another before text counts as malformed: SQLite's `JSON_MAX_DEPTH`.
pub(super) const MAX_DEPTH: usize = 1000;

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// `null`, and `NaN`.
    Null,
    /// `true`
    True,
    /// `false`
    False,
    /// A decimal integer.
    Int,
    /// A hexadecimal integer.
    Int5,
    /// A number with a point or an exponent.
    Float,
    /// One that JSON does not allow: no digit on one side of the point.
    Float5,
    /// Infinity; below zero when the flag is set.
    Infinite(bool),
    /// A string without escapes.
    Text,
    /// A string with escapes of JSON.
    TextJ,
    /// A string with escapes or characters that only JSON5 allows.
    Text5,
    /// An array.
    Array,
    /// An object: a string node and a value node in turn.
    Object,
}

impl Kind {
    pub fn is_text(self) -> bool {
        matches!(self, Kind::Text | Kind::TextJ | Kind::Text5)
    }
}

/// A node.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node {
    pub kind: Kind,
    /// Its bytes in the text, without quotes and without a leading plus; empty for arrays and objects.
    pub start: usize,
    /// Behind its bytes.
    pub end: usize,
    /// The node behind this one and all that is in it.
    pub next: usize,
}

/// Text that was read. Node 0 is the whole.
#[derive(Debug)]
pub(super) struct Document<'t> {
    pub text: &'t [u8],
    pub nodes: Vec<Node>,
    /// Whether it needs JSON5.
    pub nonstandard: bool,
}

/// The next thing in the text.
enum Token {
    Value,
    Open(Kind),
    CloseObject,
    CloseArray,
    Comma,
    Colon,
    Nothing,
}

struct Parser<'t> {
    text: &'t [u8],
    at: usize,
    nodes: Vec<Node>,
    nonstandard: bool,
}

/// What may come next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expect {
    Value,
    ElementOrEnd,
    KeyOrEnd,
    Colon,
    CommaOrEnd,
    Done,
}

/// Reads JSON text; bytes from the first NUL on do not count. `None` if it is malformed.
pub(super) fn parse(text: &[u8]) -> Option<Document<'_>> {
    let text = super::super::c_string(text);
    let mut p = Parser { text, at: 0, nodes: Vec::new(), nonstandard: false };
    let mut open: Vec<usize> = Vec::new();
    let mut expect = Expect::Value;
    while expect != Expect::Done {
        let container = open.last().and_then(|&n| p.nodes.get(n)).map(|n| n.kind);
        let empty = open.last().is_some_and(|&n| n.saturating_add(1) == p.nodes.len());
        if expect == Expect::KeyOrEnd {
            p.spaces();
        }
        let (mark, count) = (p.at, p.nodes.len());
        let token = p.token();
        let after_value = if open.is_empty() { Expect::Done } else { Expect::CommaOrEnd };
        expect = match (expect, token) {
            (Expect::Value | Expect::ElementOrEnd, Token::Value) => after_value,
            (Expect::Value | Expect::ElementOrEnd, Token::Open(kind)) => {
                if open.len() >= MAX_DEPTH {
                    return None;
                }
                open.push(count);
                if kind == Kind::Array { Expect::ElementOrEnd } else { Expect::KeyOrEnd }
            }
            (Expect::KeyOrEnd, Token::Value) => {
                if !p.nodes.last().is_some_and(|n| n.kind.is_text()) {
                    return None;
                }
                Expect::Colon
            }
            (Expect::KeyOrEnd, Token::Nothing) => {
                p.at = mark;
                p.nodes.truncate(count);
                p.identifier()?;
                Expect::Colon
            }
            (Expect::Colon, Token::Colon) => Expect::Value,
            (Expect::CommaOrEnd, Token::Comma) => {
                if container == Some(Kind::Array) {
                    Expect::ElementOrEnd
                } else {
                    Expect::KeyOrEnd
                }
            }
            (Expect::KeyOrEnd | Expect::ElementOrEnd | Expect::CommaOrEnd, end @ (Token::CloseArray | Token::CloseObject)) => {
                let closes = if matches!(end, Token::CloseArray) { Kind::Array } else { Kind::Object };
                if container != Some(closes) {
                    return None;
                }
                // A comma before the end is JSON5.
                p.nonstandard |= expect != Expect::CommaOrEnd && !empty;
                let next = p.nodes.len();
                if let Some(node) = open.pop().and_then(|n| p.nodes.get_mut(n)) {
                    node.next = next;
                }
                if open.is_empty() { Expect::Done } else { Expect::CommaOrEnd }
            }
            _ => return None,
        };
    }
    p.spaces();
    (p.at == text.len()).then_some(Document { text, nodes: p.nodes, nonstandard: p.nonstandard })
}

/// How many bytes of white space and comments begin the text.
fn space(text: &[u8]) -> usize {
    let mut n = 0_usize;
    loop {
        let rest = text.get(n..).unwrap_or_default();
        let len = match rest {
            [9..=13 | b' ', ..] => 1,
            [b'/', b'*', tail @ ..] => {
                // The star of the opening does not close the comment.
                let Some(end) = tail.windows(2).position(|w| w == b"*/") else { return n };
                end.saturating_add(4)
            }
            [b'/', b'/', tail @ ..] => {
                let mut len = 2_usize;
                let mut tail = tail;
                loop {
                    match tail {
                        [] => break,
                        [b'\n' | b'\r', ..] => {
                            len = len.saturating_add(1);
                            break;
                        }
                        [0xe2, 0x80, 0xa8 | 0xa9, ..] => {
                            len = len.saturating_add(3);
                            break;
                        }
                        [_, rest @ ..] => {
                            len = len.saturating_add(1);
                            tail = rest;
                        }
                    }
                }
                len
            }
            [0xc2, 0xa0, ..] => 2,
            [0xe1, 0x9a, 0x80, ..]
            | [0xe2, 0x80, 0x80..=0x8a | 0xa8 | 0xa9 | 0xaf, ..]
            | [0xe2, 0x81, 0x9f, ..]
            | [0xe3, 0x80, 0x80, ..]
            | [0xef, 0xbb, 0xbf, ..] => 3,
            _ => return n,
        };
        n = n.saturating_add(len);
    }
}

fn starts_with_no_case(text: &[u8], word: &[u8]) -> bool {
    text.get(..word.len()).is_some_and(|t| t.eq_ignore_ascii_case(word))
}

impl Parser<'_> {
    fn rest(&self) -> &[u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn byte(&self, at: usize) -> u8 {
        self.text.get(at).copied().unwrap_or(0)
    }

    fn push(&mut self, kind: Kind, start: usize, end: usize) {
        let next = self.nodes.len().saturating_add(1);
        self.nodes.push(Node { kind, start, end, next });
    }

    fn spaces(&mut self) {
        let n = space(self.rest());
        let plain = self.rest().iter().take_while(|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r')).count();
        self.nonstandard |= n > plain;
        self.at = self.at.saturating_add(n);
    }

    /// Reads one token; [`Token::Nothing`] at the end and for what is none.
    fn token(&mut self) -> Token {
        self.spaces();
        let start = self.at;
        let one = start.saturating_add(1);
        let (token, end) = match self.byte(start) {
            b'{' => {
                self.push(Kind::Object, start, start);
                (Token::Open(Kind::Object), one)
            }
            b'[' => {
                self.push(Kind::Array, start, start);
                (Token::Open(Kind::Array), one)
            }
            b'}' => (Token::CloseObject, one),
            b']' => (Token::CloseArray, one),
            b',' => (Token::Comma, one),
            b':' => (Token::Colon, one),
            quote @ (b'"' | b'\'') => {
                self.nonstandard |= quote == b'\'';
                return self.string(quote);
            }
            b'+' | b'-' | b'.' | b'0'..=b'9' => return self.number().map_or(Token::Nothing, |()| Token::Value),
            _ => return self.word(),
        };
        self.at = end;
        token
    }

    fn word(&mut self) -> Token {
        const WORDS: [(&[u8], Kind, bool); 8] = [
            (b"true", Kind::True, true),
            (b"false", Kind::False, true),
            (b"null", Kind::Null, true),
            (b"inf", Kind::Infinite(false), false),
            (b"infinity", Kind::Infinite(false), false),
            (b"nan", Kind::Null, false),
            (b"qnan", Kind::Null, false),
            (b"snan", Kind::Null, false),
        ];
        for (word, kind, exact) in WORDS {
            let rest = self.rest();
            let here = if exact { rest.starts_with(word) } else { starts_with_no_case(rest, word) };
            if here && !rest.get(word.len()).is_some_and(u8::is_ascii_alphanumeric) {
                self.nonstandard |= !exact;
                self.push(kind, self.at, self.at);
                self.at = self.at.saturating_add(word.len());
                return Token::Value;
            }
        }
        Token::Nothing
    }

    fn string(&mut self, quote: u8) -> Token {
        let start = self.at.saturating_add(1);
        let mut kind = Kind::Text;
        let mut at = start;
        loop {
            let c = self.byte(at);
            if c == quote {
                break;
            }
            if c == b'\\' {
                at = at.saturating_add(1);
                let hex = |from: usize, n: usize| {
                    let digits = self.text.get(from..from.saturating_add(n));
                    digits.is_some_and(|d| d.iter().all(u8::is_ascii_hexdigit))
                };
                let next = at.saturating_add(1);
                match self.byte(at) {
                    b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {
                        if kind == Kind::Text {
                            kind = Kind::TextJ;
                        }
                    }
                    b'u' if hex(next, 4) => {
                        if kind == Kind::Text {
                            kind = Kind::TextJ;
                        }
                    }
                    c => {
                        let line = c == 0xe2 && self.byte(next) == 0x80 && matches!(self.byte(next.saturating_add(1)), 0xa8 | 0xa9);
                        let zero = c == b'0' && !self.byte(next).is_ascii_digit();
                        if !(matches!(c, b'\'' | b'v' | b'\n' | b'\r') || zero || line || (c == b'x' && hex(next, 2))) {
                            return Token::Nothing;
                        }
                        if c == b'\r' && self.byte(next) == b'\n' {
                            at = next;
                        }
                        kind = Kind::Text5;
                        self.nonstandard = true;
                    }
                }
            } else if c <= 0x1f {
                if c == 0 {
                    return Token::Nothing;
                }
                kind = Kind::Text5;
                self.nonstandard = true;
            } else if c == b'"' {
                kind = Kind::Text5;
            }
            at = at.saturating_add(1);
        }
        self.push(kind, start, at);
        self.at = at.saturating_add(1);
        Token::Value
    }

    /// A name without quotes before a colon.
    fn identifier(&mut self) -> Option<()> {
        let start = self.at;
        let first = |b: u8| b.is_ascii_alphabetic() || matches!(b, b'_' | b'$') || b >= 0x80;
        let mut kind = Kind::Text;
        let mut at = start;
        loop {
            let c = self.byte(at);
            if c == b'\\' {
                let digits = self.text.get(at.saturating_add(2)..at.saturating_add(6));
                if self.byte(at.saturating_add(1)) != b'u' || !digits.is_some_and(|d| d.iter().all(u8::is_ascii_hexdigit)) {
                    break;
                }
                kind = Kind::TextJ;
            } else if at == start {
                if !first(c) {
                    break;
                }
            } else if !(first(c) || c.is_ascii_digit()) || space(self.text.get(at..).unwrap_or_default()) > 0 {
                break;
            }
            at = at.saturating_add(1);
        }
        if at == start {
            return None;
        }
        self.nonstandard = true;
        self.push(kind, start, at);
        self.at = at;
        Some(())
    }

    /// A number. The cursor stays where it is if there is none.
    fn number(&mut self) -> Option<()> {
        let start = self.at;
        let at = |n: usize| self.byte(start.saturating_add(n));
        let signed = matches!(at(0), b'+' | b'-');
        let sign = usize::from(signed);
        let (mut five, mut real) = (false, false);
        let mut standard = at(0) != b'+';
        let first = at(sign);
        if signed && starts_with_no_case(self.text.get(start.saturating_add(1)..).unwrap_or_default(), b"inf") {
            let tail = self.text.get(start.saturating_add(4)..).unwrap_or_default();
            let len = if starts_with_no_case(tail, b"inity") { 9 } else { 4 };
            self.nonstandard = true;
            self.push(Kind::Infinite(at_is_minus(self.text, start)), start, start);
            self.at = start.saturating_add(len);
            return Some(());
        }
        if first == b'0' {
            let second = at(sign.saturating_add(1));
            if matches!(second, b'x' | b'X') && at(sign.saturating_add(2)).is_ascii_hexdigit() {
                let from = start.saturating_add(sign).saturating_add(2);
                let len = self.text.get(from..).unwrap_or_default().iter().take_while(|b| b.is_ascii_hexdigit()).count();
                self.nonstandard = true;
                return self.finish(Kind::Int5, start, from.saturating_add(len));
            }
            if second.is_ascii_digit() {
                return None;
            }
        } else if first == b'.' {
            if !signed && !at(1).is_ascii_digit() {
                return None;
            }
            standard = false;
            five = true;
            real = !signed;
        } else if !first.is_ascii_digit() {
            return None;
        }
        // A point in first place is counted above or, behind a sign, in the loop.
        let mut end = start.saturating_add(1);
        let mut exponent = false;
        let point_after_digit = |end: usize| {
            self.byte(end.saturating_sub(1)) == b'.' && end.saturating_sub(2) >= start && self.byte(end.saturating_sub(2)).is_ascii_digit()
        };
        loop {
            match self.byte(end) {
                b'0'..=b'9' => {}
                b'.' => {
                    if real {
                        return None;
                    }
                    real = true;
                }
                b'e' | b'E' => {
                    if self.byte(end.saturating_sub(1)) < b'0' {
                        if !point_after_digit(end) {
                            return None;
                        }
                        standard = false;
                        five = true;
                    }
                    if exponent {
                        return None;
                    }
                    real = true;
                    exponent = true;
                    if matches!(self.byte(end.saturating_add(1)), b'+' | b'-') {
                        end = end.saturating_add(1);
                    }
                    if !self.byte(end.saturating_add(1)).is_ascii_digit() {
                        return None;
                    }
                }
                _ => break,
            }
            end = end.saturating_add(1);
        }
        if self.byte(end.saturating_sub(1)) < b'0' {
            if !point_after_digit(end) {
                return None;
            }
            standard = false;
            five = true;
        }
        self.nonstandard |= !standard;
        let kind = match (real, five) {
            (false, false) => Kind::Int,
            (false, true) => Kind::Int5,
            (true, false) => Kind::Float,
            (true, true) => Kind::Float5,
        };
        self.finish(kind, start, end)
    }

    fn finish(&mut self, kind: Kind, start: usize, end: usize) -> Option<()> {
        let plus = usize::from(self.byte(start) == b'+');
        self.push(kind, start.saturating_add(plus), end);
        self.at = end;
        Some(())
    }
}

fn at_is_minus(text: &[u8], at: usize) -> bool {
    text.get(at) == Some(&b'-')
}
