//! Order of values, and patterns.

use std::cmp::Ordering;

use super::ast::Unknown;
use super::datum::{Datum, Fault};
use super::meter::Meter;
use super::number::{int_to_real, real_to_int};
use crate::expr::name::Collation;

/// Compares an integer with a real exactly.
#[must_use]
pub fn int_real(n: i64, x: f64) -> Ordering {
    if x < -9_223_372_036_854_775_808.0 {
        return Ordering::Greater;
    }
    if x >= 9_223_372_036_854_775_808.0 {
        return Ordering::Less;
    }
    n.cmp(&real_to_int(x)).then_with(|| int_to_real(n).partial_cmp(&x).unwrap_or(Ordering::Equal))
}

/// Compares texts under a collation that is known here.
///
/// # Errors
/// For other collations.
pub fn texts(a: &[u8], b: &[u8], collation: &Collation) -> Result<Ordering, Fault> {
    Ok(match collation {
        Collation::Binary => a.cmp(b),
        Collation::NoCase => no_case(a, b),
        Collation::RTrim => trim_spaces(a).cmp(trim_spaces(b)),
        Collation::Other(name) => return Err(Unknown::Collation(name.clone()).into()),
    })
}

/// Byte order with ASCII letters folded; a NUL in both ends the look at the bytes, then the lengths decide.
#[must_use]
pub fn no_case(a: &[u8], b: &[u8]) -> Ordering {
    for (x, y) in a.iter().zip(b) {
        match x.to_ascii_lowercase().cmp(&y.to_ascii_lowercase()) {
            Ordering::Equal if *x == 0 => break,
            Ordering::Equal => {}
            order => return order,
        }
    }
    a.len().cmp(&b.len())
}

/// Text without its trailing spaces.
#[must_use]
pub fn trim_spaces(t: &[u8]) -> &[u8] {
    let end = t.iter().rposition(|&b| b != b' ').map_or(0, |i| i.saturating_add(1));
    t.get(..end).unwrap_or(t)
}

/// Compares two values: NULL, then numbers, then text, then BLOBs.
///
/// # Errors
/// For text under a collation that is not known here.
pub fn data(a: &Datum<'_>, b: &Datum<'_>, collation: &Collation) -> Result<Ordering, Fault> {
    Ok(match (a, b) {
        (Datum::Int(x), Datum::Int(y)) => x.cmp(y),
        (Datum::Real(x), Datum::Real(y)) => x.partial_cmp(y).unwrap_or(Ordering::Equal),
        (Datum::Int(x), Datum::Real(y)) => int_real(*x, *y),
        (Datum::Real(x), Datum::Int(y)) => int_real(*y, *x).reverse(),
        (Datum::Text(x), Datum::Text(y)) => return texts(x, y, collation),
        (Datum::Blob(x), Datum::Blob(y)) => x.cmp(y),
        _ => class(a).cmp(&class(b)),
    })
}

fn class(d: &Datum<'_>) -> u8 {
    match d {
        Datum::Null => 0,
        Datum::Int(_) | Datum::Real(_) => 1,
        Datum::Text(_) => 2,
        Datum::Blob(_) => 3,
    }
}

/// The next character of UTF-8 text as SQLite reads it, and its length: bytes that are not UTF-8 make some character, too.
#[must_use]
pub fn char_at(t: &[u8], at: usize) -> Option<(u32, usize)> {
    let first = *t.get(at)?;
    if first < 0xc0 {
        return Some((u32::from(first), 1));
    }
    let mut c = u32::from(match first {
        0xc0..=0xdf => first & 0x1f,
        0xe0..=0xef => first & 0x0f,
        0xf0..=0xf7 => first & 0x07,
        0xf8..=0xfb => first & 0x03,
        _ => first & 0x01,
    });
    let mut len = 1_usize;
    while let Some(&b) = t.get(at.saturating_add(len)).filter(|&&b| b & 0xc0 == 0x80) {
        c = c.wrapping_shl(6).wrapping_add(u32::from(b & 0x3f));
        len = len.saturating_add(1);
    }
    if c < 0x80 || c & 0xffff_f800 == 0xd800 || c & 0xffff_fffe == 0xfffe {
        c = 0xfffd;
    }
    Some((c, len))
}

/// The characters of UTF-8 text as SQLite reads them.
#[must_use]
pub fn chars(t: &[u8]) -> Vec<u32> {
    let mut out = Vec::with_capacity(t.len());
    let mut at = 0_usize;
    while let Some((c, len)) = char_at(t, at) {
        out.push(c);
        at = at.saturating_add(len);
    }
    out
}

/// The longest pattern of LIKE and GLOB: `SQLITE_MAX_LIKE_PATTERN_LENGTH`.
pub const MAX_PATTERN: usize = 50_000;

/// Steps of a match that are taken from the meter together.
const STEPS: u64 = 64;

fn fold(c: u32) -> u32 {
    if (65..=90).contains(&c) { c.wrapping_add(32) } else { c }
}

/// Whether text matches a LIKE pattern. NUL ends both, as it does in SQLite.
///
/// # Errors
/// When the pattern takes too long.
pub fn like(pattern: &[u8], text: &[u8], escape: Option<u32>, meter: &Meter) -> Result<bool, Fault> {
    let mut items = Vec::new();
    let mut p = chars(to_nul(pattern)).into_iter();
    while let Some(c) = p.next() {
        items.push(if Some(c) == escape {
            match p.next() {
                Some(c) => Item::Char(fold(c)),
                None => Item::Never,
            }
        } else if c == u32::from(b'%') {
            Item::Many
        } else if c == u32::from(b'_') {
            Item::One
        } else {
            Item::Char(fold(c))
        });
    }
    let text: Vec<u32> = chars(to_nul(text)).into_iter().map(fold).collect();
    run(&items, &text, meter)
}

/// Whether text matches a GLOB pattern.
///
/// # Errors
/// When the pattern takes too long.
pub fn glob(pattern: &[u8], text: &[u8], meter: &Meter) -> Result<bool, Fault> {
    let p = chars(to_nul(pattern));
    let mut items = Vec::new();
    let mut at = 0_usize;
    let ch = |i: usize| p.get(i).copied();
    while let Some(c) = ch(at) {
        at = at.saturating_add(1);
        items.push(match char::from_u32(c) {
            Some('*') => Item::Many,
            Some('?') => Item::One,
            Some('[') => {
                let mut ranges = Vec::new();
                let mut prior = None;
                let not = ch(at) == Some(u32::from(b'^'));
                at = at.saturating_add(usize::from(not));
                if ch(at) == Some(u32::from(b']')) {
                    ranges.push((u32::from(b']'), u32::from(b']')));
                    at = at.saturating_add(1);
                }
                let mut closed = false;
                while let Some(c) = ch(at) {
                    at = at.saturating_add(1);
                    if c == u32::from(b']') {
                        closed = true;
                        break;
                    }
                    match (c == u32::from(b'-'), prior, ch(at)) {
                        (true, Some(low), Some(high)) if high != u32::from(b']') => {
                            at = at.saturating_add(1);
                            ranges.push((low, high));
                            prior = None;
                        }
                        _ => {
                            ranges.push((c, c));
                            prior = Some(c);
                        }
                    }
                }
                if closed { Item::Set(not, ranges) } else { Item::Never }
            }
            _ => Item::Char(c),
        });
    }
    run(&items, &chars(to_nul(text)), meter)
}

fn to_nul(t: &[u8]) -> &[u8] {
    t.split(|&b| b == 0).next().unwrap_or(t)
}

enum Item {
    Char(u32),
    One,
    Many,
    Set(bool, Vec<(u32, u32)>),
    Never,
}

fn run(items: &[Item], text: &[u32], meter: &Meter) -> Result<bool, Fault> {
    let (mut i, mut t) = (0_usize, 0_usize);
    let mut back: Option<(usize, usize)> = None;
    let mut steps = 0_u64;
    loop {
        steps = steps.saturating_add(1);
        if steps.is_multiple_of(STEPS) {
            meter.steps(STEPS)?;
        }
        let c = text.get(t).copied();
        let ok = match (items.get(i), c) {
            (Some(Item::Many), _) => {
                back = Some((i, t));
                i = i.saturating_add(1);
                continue;
            }
            (Some(Item::One), Some(_)) => true,
            (Some(Item::Char(want)), Some(c)) => *want == c,
            (Some(Item::Set(not, ranges)), Some(c)) => ranges.iter().any(|&(low, high)| (low..=high).contains(&c)) != *not,
            (None, None) => return Ok(true),
            _ => false,
        };
        if ok {
            i = i.saturating_add(1);
            t = t.saturating_add(1);
            continue;
        }
        match back {
            Some((item, from)) if from < text.len() => {
                back = Some((item, from.saturating_add(1)));
                i = item.saturating_add(1);
                t = from.saturating_add(1);
            }
            _ => return Ok(false),
        }
    }
}
