//! JSON functions (JSON document, section 4). JSONB is not evaluated.

mod parse;

use super::{Function, c_string, owned};
use crate::expr::ast::Unknown;
use crate::expr::compare::char_at;
use crate::expr::datum::{Datum, Fault, MAX_LENGTH, too_big};
use crate::expr::meter::Meter;
use crate::expr::number;
use parse::{Document, Kind, MAX_DEPTH, Node, parse};

/// What a character is that an escape does not give.
const NO_CHARACTER: u32 = 0x9_9999;

fn malformed() -> Fault {
    Fault::Raises("malformed JSON".to_owned())
}

fn bad_path(path: &[u8]) -> Fault {
    Fault::Raises(format!("bad JSON path: '{}'", String::from_utf8_lossy(path).replace('\'', "''")))
}

/// The value of a JSON function.
pub(super) fn apply<'r>(f: Function, args: &[Datum<'r>], meter: &Meter) -> Result<Datum<'r>, Fault> {
    let Some(first) = args.first() else { return Ok(Datum::Null) };
    if f == Function::JsonValid {
        return valid(first, args.get(1));
    }
    if first.is_null() || (f == Function::JsonExtract && args.len() < 2) {
        return Ok(Datum::Null);
    }
    let text = source(first)?;
    // It is parsed once and searched once for each path.
    meter.bytes(text.len().saturating_mul(args.len().saturating_add(2)))?;
    let document = parse(&text).ok_or_else(malformed)?;
    match f {
        Function::Json => document.json(0).map(owned),
        Function::JsonArrayLength => {
            let node = match args.get(1) {
                None => Some(0),
                Some(Datum::Null) => return Ok(Datum::Null),
                Some(path) => document.find(&number::to_text(path))?,
            };
            Ok(node.map_or(Datum::Null, |n| Datum::Int(document.elements(n))))
        }
        Function::JsonType => {
            let node = match args.get(1) {
                None => Some(0),
                Some(Datum::Null) => return Ok(Datum::Null),
                Some(path) => document.find(&number::to_text(path))?,
            };
            Ok(node.and_then(|n| document.nodes.get(n)).map_or(Datum::Null, |n| Datum::text(type_name(n.kind))))
        }
        Function::JsonExtract => extract(&document, args.get(1..).unwrap_or_default()),
        other => Err(Unknown::Function(other.name().into()).into()),
    }
}

/// `a -> b` and `a ->> b`.
pub(in crate::expr) fn arrow<'r>(a: &Datum<'_>, b: &Datum<'_>, long: bool) -> Result<Datum<'r>, Fault> {
    if a.is_null() {
        return Ok(Datum::Null);
    }
    let text = source(a)?;
    let document = parse(&text).ok_or_else(malformed)?;
    if b.is_null() {
        return Ok(Datum::Null);
    }
    let given = number::to_text(b);
    let given = c_string(&given);
    let mut path = b"$".to_vec();
    let plain = given.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_');
    match (b, given) {
        (_, [b'$', ..]) => path = given.to_vec(),
        (Datum::Int(n), _) => path.extend_from_slice(format!("[{}{n}]", if *n < 0 { "#" } else { "" }).as_bytes()),
        _ if plain => {
            path.push(b'.');
            path.extend_from_slice(given);
        }
        (_, [b'[', _, .., b']']) => path.extend_from_slice(given),
        _ => {
            path.extend_from_slice(b".\"");
            path.extend_from_slice(given);
            path.push(b'"');
        }
    }
    match document.find(&path)? {
        None => Ok(Datum::Null),
        Some(n) if long => document.value(n),
        Some(n) => document.json(n).map(owned),
    }
}

/// The text of a JSON argument. A BLOB counts as text where it cannot be JSONB.
fn source<'d>(d: &'d Datum<'_>) -> Result<std::borrow::Cow<'d, [u8]>, Fault> {
    match d {
        Datum::Blob(b) if looks_like_jsonb(b) => Err(Unknown::Construct("JSONB").into()),
        other => Ok(number::to_text(other)),
    }
}

/// Whether the header of a BLOB agrees with its length as JSONB has it (JSONB document, section 3).
fn looks_like_jsonb(b: &[u8]) -> bool {
    let Some((&first, rest)) = b.split_first() else { return false };
    let wide = match first >> 4 {
        small @ 0..=11 => return usize::from(small) == rest.len() && (first & 0x0f > 2 || small == 0) && first & 0x0f <= 12,
        12 => 1,
        13 => 2,
        14 => 4,
        _ => 8,
    };
    let Some((size, payload)) = rest.split_at_checked(wide) else { return false };
    let size = size.iter().fold(0_u64, |n, &b| n.wrapping_shl(8) | u64::from(b));
    first & 0x0f <= 12 && size == crate::ids::wide(payload.len())
}

fn valid<'r>(value: &Datum<'_>, flags: Option<&Datum<'_>>) -> Result<Datum<'r>, Fault> {
    let flags = match flags {
        None => 1,
        Some(f) => number::to_int(f),
    };
    if !(1..=15).contains(&flags) {
        return Err(Fault::Raises("FLAGS parameter to json_valid() must be between 1 and 15".to_owned()));
    }
    if value.is_null() {
        return Ok(Datum::Null);
    }
    let text = source(value)?;
    let good = flags & 3 != 0 && parse(&text).is_some_and(|d| flags & 2 != 0 || !d.nonstandard);
    Ok(Datum::bool(good))
}

fn type_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Null => "null",
        Kind::True => "true",
        Kind::False => "false",
        Kind::Int | Kind::Int5 => "integer",
        Kind::Float | Kind::Float5 | Kind::Infinite(_) => "real",
        Kind::Text | Kind::TextJ | Kind::Text5 => "text",
        Kind::Array => "array",
        Kind::Object => "object",
    }
}

fn extract<'r>(document: &Document<'_>, paths: &[Datum<'_>]) -> Result<Datum<'r>, Fault> {
    if let [path] = paths {
        if path.is_null() {
            return Ok(Datum::Null);
        }
        return match document.find(&number::to_text(path))? {
            None => Ok(Datum::Null),
            Some(n) => document.value(n),
        };
    }
    let mut out = b"[".to_vec();
    for (i, path) in paths.iter().enumerate() {
        if path.is_null() {
            return Ok(Datum::Null);
        }
        if i > 0 {
            out.push(b',');
        }
        match document.find(&number::to_text(path))? {
            None => out.extend_from_slice(b"null"),
            Some(n) => out.extend_from_slice(&document.json(n)?),
        }
        if out.len() > MAX_LENGTH {
            return Err(too_big());
        }
    }
    out.push(b']');
    Ok(owned(out))
}

impl Document<'_> {
    fn bytes(&self, node: &Node) -> &[u8] {
        self.text.get(node.start..node.end).unwrap_or_default()
    }

    /// How many elements an array has, 0 for what is none.
    fn elements(&self, index: usize) -> i64 {
        let Some(array) = self.nodes.get(index).filter(|n| n.kind == Kind::Array) else { return 0 };
        let mut at = index.saturating_add(1);
        let mut count = 0_i64;
        while at < array.next {
            count = count.saturating_add(1);
            at = self.after(at);
        }
        count
    }

    fn after(&self, index: usize) -> usize {
        self.nodes.get(index).map_or(usize::MAX, |n| n.next)
    }

    /// The node at a path that begins with `$`.
    fn find(&self, path: &[u8]) -> Result<Option<usize>, Fault> {
        let path = c_string(path);
        let Some(mut rest) = path.strip_prefix(b"$") else { return Err(bad_path(path)) };
        let mut index = 0_usize;
        let mut depth = 0_usize;
        while let Some((&step, tail)) = rest.split_first() {
            let Some(node) = self.nodes.get(index) else { return Ok(None) };
            let found = match step {
                b'.' => {
                    let (key, after) = key(tail).ok_or_else(|| bad_path(path))?;
                    rest = after;
                    if node.kind == Kind::Object { self.member(index, node.next, key) } else { None }
                }
                b'[' => {
                    if node.kind != Kind::Array {
                        return Ok(None);
                    }
                    let (place, after) = self.place(index, tail).ok_or_else(|| bad_path(path))?;
                    rest = after;
                    place.and_then(|n| self.element(index, node.next, n))
                }
                _ => return Err(bad_path(path)),
            };
            match found {
                None => return Ok(None),
                Some(n) => index = n,
            }
            depth = depth.saturating_add(1);
            if depth >= MAX_DEPTH {
                return Err(Fault::Raises("JSON path too deep".to_owned()));
            }
        }
        Ok(Some(index))
    }

    fn member(&self, object: usize, end: usize, key: &[u8]) -> Option<usize> {
        let mut at = object.saturating_add(1);
        while at < end {
            let label = self.nodes.get(at)?;
            let value = label.next;
            if same_label(key, !key.contains(&b'\\'), self.bytes(label), label.kind == Kind::Text) {
                return Some(value);
            }
            at = self.after(value);
        }
        None
    }

    fn element(&self, array: usize, end: usize, place: u64) -> Option<usize> {
        let mut at = array.saturating_add(1);
        let mut left = place;
        while at < end {
            if left == 0 {
                return Some(at);
            }
            left = left.saturating_sub(1);
            at = self.after(at);
        }
        None
    }

    /// The number in brackets, and what follows them; no number when it lies before the first element.
    fn place<'p>(&self, array: usize, tail: &'p [u8]) -> Option<(Option<u64>, &'p [u8])> {
        let digits = |from: &'p [u8]| {
            let len = from.iter().take_while(|b| b.is_ascii_digit()).count();
            let (digits, after) = from.split_at_checked(len).unwrap_or((from, &[]));
            let n = digits.iter().fold(0_u64, |n, &b| n.saturating_mul(10).saturating_add(u64::from(b.wrapping_sub(b'0'))));
            (len, n, after)
        };
        let (len, n, after) = digits(tail);
        if len > 0
            && let Some(rest) = after.strip_prefix(b"]")
        {
            return Some((Some(n), rest));
        }
        let after = tail.strip_prefix(b"#")?;
        let count = u64::try_from(self.elements(array)).unwrap_or(0);
        let mut place = Some(count);
        let mut after = after;
        if let [b'-', from @ ..] = after
            && from.first().is_some_and(u8::is_ascii_digit)
        {
            let (_, back, rest) = digits(from);
            place = count.checked_sub(back);
            after = rest;
            if place.is_none() {
                return Some((None, after));
            }
        }
        after.strip_prefix(b"]").map(|rest| (place, rest))
    }

    /// The SQL value of a node.
    fn value<'r>(&self, index: usize) -> Result<Datum<'r>, Fault> {
        let Some(node) = self.nodes.get(index) else { return Ok(Datum::Null) };
        let bytes = self.bytes(node);
        let real = |bytes: &[u8]| {
            let read = number::read(bytes);
            if read.whole { Ok(Datum::Real(read.real)) } else { Err(malformed()) }
        };
        Ok(match node.kind {
            Kind::Null => Datum::Null,
            Kind::True => Datum::Int(1),
            Kind::False => Datum::Int(0),
            Kind::Infinite(negative) => Datum::Real(if negative { f64::NEG_INFINITY } else { f64::INFINITY }),
            Kind::Int => {
                let read = number::read(bytes);
                if read.overflow { real(bytes)? } else { Datum::Int(read.int) }
            }
            Kind::Int5 => {
                let (negative, hex) = hex(bytes);
                let significant = hex.iter().position(|&b| b != b'0').and_then(|i| hex.get(i..)).unwrap_or_default();
                if significant.len() > 16 {
                    return Err(malformed());
                }
                let size = hex_value(significant);
                match i64::try_from(size) {
                    Ok(n) => Datum::Int(if negative { n.wrapping_neg() } else { n }),
                    Err(_) => {
                        #[expect(clippy::as_conversions, reason = "u64 has no From into f64; the cast rounds to nearest")]
                        let x = size as f64;
                        Datum::Real(if negative { -x } else { x })
                    }
                }
            }
            Kind::Float | Kind::Float5 => real(bytes)?,
            Kind::Text => owned(bytes.to_vec()),
            Kind::TextJ | Kind::Text5 => owned(unescape(bytes)),
            Kind::Array | Kind::Object => owned(self.json(index)?),
        })
    }

    /// The text of a node, without white space, in plain JSON.
    fn json(&self, index: usize) -> Result<Vec<u8>, Fault> {
        let Some(top) = self.nodes.get(index) else { return Ok(Vec::new()) };
        let mut out = Vec::new();
        // Open arrays and objects: where they end, and whether a colon is due.
        let mut open: Vec<(usize, Kind, bool)> = Vec::new();
        let mut at = index;
        while at < top.next {
            let Some(node) = self.nodes.get(at) else { break };
            if out.len() > MAX_LENGTH {
                return Err(too_big());
            }
            match node.kind {
                Kind::Array | Kind::Object => {
                    out.push(if node.kind == Kind::Array { b'[' } else { b'{' });
                    open.push((node.next, node.kind, true));
                }
                _ => self.scalar(node, &mut out),
            }
            at = at.saturating_add(1);
            let mut fresh = matches!(node.kind, Kind::Array | Kind::Object);
            loop {
                match open.last_mut() {
                    Some((end, kind, _)) if *end <= at => {
                        out.push(if *kind == Kind::Array { b']' } else { b'}' });
                        open.pop();
                        fresh = false;
                    }
                    Some((_, Kind::Object, key)) if !fresh => {
                        // Behind a key comes a colon, behind a value a comma.
                        out.push(if *key { b':' } else { b',' });
                        *key = !*key;
                        break;
                    }
                    Some(_) if !fresh => {
                        out.push(b',');
                        break;
                    }
                    _ => break,
                }
            }
        }
        Ok(out)
    }

    fn scalar(&self, node: &Node, out: &mut Vec<u8>) {
        let bytes = self.bytes(node);
        match node.kind {
            Kind::Null => out.extend_from_slice(b"null"),
            Kind::True => out.extend_from_slice(b"true"),
            Kind::False => out.extend_from_slice(b"false"),
            Kind::Infinite(negative) => out.extend_from_slice(if negative { b"-9e999" } else { b"9e999" }),
            Kind::Int | Kind::Float => out.extend_from_slice(bytes),
            Kind::Int5 => {
                let (negative, hex) = hex(bytes);
                if negative {
                    out.push(b'-');
                }
                let significant = hex.iter().position(|&b| b != b'0').and_then(|i| hex.get(i..)).unwrap_or_default();
                if significant.len() > 16 {
                    out.extend_from_slice(b"9.0e999");
                } else {
                    out.extend_from_slice(hex_value(significant).to_string().as_bytes());
                }
            }
            Kind::Float5 => {
                let (negative, digits) = match bytes {
                    [b'-', rest @ ..] => (true, rest),
                    _ => (false, bytes),
                };
                if negative {
                    out.push(b'-');
                }
                if digits.first() == Some(&b'.') {
                    out.push(b'0');
                }
                for (i, &b) in digits.iter().enumerate() {
                    out.push(b);
                    if b == b'.' && !digits.get(i.saturating_add(1)).is_some_and(u8::is_ascii_digit) {
                        out.push(b'0');
                    }
                }
            }
            Kind::Text | Kind::TextJ => {
                out.push(b'"');
                out.extend_from_slice(bytes);
                out.push(b'"');
            }
            Kind::Text5 => {
                out.push(b'"');
                plain_escapes(bytes, out);
                out.push(b'"');
            }
            Kind::Array | Kind::Object => {}
        }
    }
}

/// The key behind a dot, and what follows it.
fn key(tail: &[u8]) -> Option<(&[u8], &[u8])> {
    if let [b'"', quoted @ ..] = tail {
        let mut at = 0_usize;
        loop {
            match quoted.get(at)? {
                b'"' => break,
                b'\\' if quoted.get(at.saturating_add(1)).is_some() => at = at.saturating_add(2),
                _ => at = at.saturating_add(1),
            }
        }
        return Some((quoted.get(..at)?, quoted.get(at.saturating_add(1)..)?));
    }
    let len = tail.iter().position(|b| matches!(b, b'.' | b'[')).unwrap_or(tail.len());
    tail.split_at_checked(len).filter(|(key, _)| !key.is_empty())
}

/// Sign and digits of a hexadecimal number.
fn hex(bytes: &[u8]) -> (bool, &[u8]) {
    match bytes {
        [b'-', b'0', _, digits @ ..] => (true, digits),
        [b'0', _, digits @ ..] => (false, digits),
        _ => (false, &[]),
    }
}

fn hex_digit(b: u8) -> u32 {
    char::from(b).to_digit(16).unwrap_or(0)
}

fn hex_value(digits: &[u8]) -> u64 {
    digits.iter().fold(0_u64, |n, &b| n.wrapping_shl(4) | u64::from(hex_digit(b)))
}

/// The next character of a string; `raw` strings have no escapes.
fn next_character(text: &[u8], raw: bool) -> (u32, &[u8]) {
    let Some(&first) = text.first() else { return (0, &[]) };
    let (c, len) = if raw || first != b'\\' { char_at(text, 0).unwrap_or((0, 1)) } else { escape(text) };
    (c, text.get(len..).unwrap_or_default())
}

/// Whether two labels name the same member: by their characters, whatever escapes they are written with.
fn same_label(mut a: &[u8], raw_a: bool, mut b: &[u8], raw_b: bool) -> bool {
    if raw_a && raw_b {
        return a == b;
    }
    loop {
        let (x, rest_a) = next_character(a, raw_a);
        let (y, rest_b) = next_character(b, raw_b);
        if x != y {
            return false;
        }
        if x == 0 {
            return true;
        }
        (a, b) = (rest_a, rest_b);
    }
}

/// The character of the escape that the text begins with, and the length of the escape.
fn escape(text: &[u8]) -> (u32, usize) {
    let mut skipped = 0_usize;
    // Line ends behind a backslash stand for nothing.
    loop {
        let rest = text.get(skipped..).unwrap_or_default();
        let len = match rest {
            [b'\\', b'\r', b'\n', ..] => 3,
            [b'\\', b'\n' | b'\r', ..] => 2,
            [b'\\', 0xe2, 0x80, 0xa8 | 0xa9, ..] => 4,
            _ => break,
        };
        skipped = skipped.saturating_add(len);
    }
    let rest = text.get(skipped..).unwrap_or_default();
    let (c, len) = match rest {
        [] => (0, 0),
        [b'\\', b'u', a, b, c, d, tail @ ..] => {
            let four = |d: [&u8; 4]| d.into_iter().fold(0_u32, |n, &b| n.wrapping_shl(4) | hex_digit(b));
            let high = four([a, b, c, d]);
            let low = match tail {
                [b'\\', b'u', a, b, c, d, ..] => four([a, b, c, d]),
                _ => 0,
            };
            if high & 0xfc00 == 0xd800 && low & 0xfc00 == 0xdc00 {
                ((high & 0x3ff).wrapping_shl(10).wrapping_add(low & 0x3ff).wrapping_add(0x1_0000), 12)
            } else {
                (high, 6)
            }
        }
        [b'\\', b'x', a, b, ..] => (hex_digit(*a).wrapping_shl(4) | hex_digit(*b), 4),
        [b'\\', b'u' | b'x', ..] | [b'\\'] => (NO_CHARACTER, rest.len()),
        [b'\\', c, tail @ ..] => {
            let c = match c {
                b'b' => 8,
                b'f' => 12,
                b'n' => 10,
                b'r' => 13,
                b't' => 9,
                b'v' => 11,
                b'0' if !tail.first().is_some_and(u8::is_ascii_digit) => 0,
                b'\'' | b'"' | b'/' | b'\\' => u32::from(*c),
                _ => NO_CHARACTER,
            };
            (c, 2)
        }
        _ => char_at(rest, 0).unwrap_or((0, 1)),
    };
    (c, skipped.saturating_add(len).max(1))
}

/// The text that a string with escapes stands for.
fn unescape(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, tail)) = rest.split_first() {
        if first != b'\\' {
            out.push(first);
            rest = tail;
            continue;
        }
        let (c, len) = escape(rest);
        rest = rest.get(len..).unwrap_or_default();
        if c != NO_CHARACTER {
            super::push_character(c, &mut out);
        }
    }
    out
}

/// A JSON5 string as JSON writes it.
fn plain_escapes(text: &[u8], out: &mut Vec<u8>) {
    let mut rest = text;
    while let Some((&first, tail)) = rest.split_first() {
        let (escaped, len): (&[u8], usize) = match rest {
            [b'"', ..] => (b"\\\"", 1),
            [0..=0x1f, ..] => {
                control(first, out);
                (b"", 1)
            }
            [b'\\', b'\'', ..] => (b"'", 2),
            [b'\\', b'v', ..] => (b"\\u000b", 2),
            [b'\\', b'x', a, b, ..] => {
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&[*a, *b]);
                (b"", 4)
            }
            [b'\\', b'0', ..] => (b"\\u0000", 2),
            [b'\\', b'\r', b'\n', ..] => (b"", 3),
            [b'\\', b'\r' | b'\n', ..] => (b"", 2),
            [b'\\', 0xe2, 0x80, 0xa8 | 0xa9, ..] => (b"", 4),
            [b'\\', _, ..] => (rest.get(..2).unwrap_or_default(), 2),
            _ => {
                out.push(first);
                rest = tail;
                continue;
            }
        };
        out.extend_from_slice(escaped);
        rest = rest.get(len..).unwrap_or_default();
    }
}

fn control(b: u8, out: &mut Vec<u8>) {
    match b {
        8 => out.extend_from_slice(b"\\b"),
        9 => out.extend_from_slice(b"\\t"),
        10 => out.extend_from_slice(b"\\n"),
        12 => out.extend_from_slice(b"\\f"),
        13 => out.extend_from_slice(b"\\r"),
        _ => out.extend_from_slice(format!("\\u{b:04x}").as_bytes()),
    }
}
