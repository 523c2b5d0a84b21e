//! Functions on text, BLOBs and single numbers.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::{Function, c_string, owned};
use crate::expr::compare::{char_at, chars};
use crate::expr::datum::{Datum, Fault, MAX_LENGTH, too_big};
use crate::expr::meter::Meter;
use crate::expr::number;
use crate::format::Encoding;
use crate::ids::wide;

pub(super) fn apply<'r>(
    f: Function,
    a: &Datum<'r>,
    b: Option<&Datum<'r>>,
    c: Option<&Datum<'r>>,
    args: &[Datum<'r>],
    encoding: Encoding,
    meter: &Meter,
) -> Result<Datum<'r>, Fault> {
    let null_if = |d: &Datum<'_>| d.is_null();
    Ok(match f {
        Function::Abs => match a {
            Datum::Null => Datum::Null,
            Datum::Int(n) => Datum::Int(n.checked_abs().ok_or_else(|| Fault::Raises("integer overflow".to_owned()))?),
            other => Datum::real(number::to_real(other).abs()),
        },
        Function::Sign => {
            let n = match a {
                Datum::Text(_) => number::numeric(a.by_ref()),
                other => other.by_ref(),
            };
            match n {
                Datum::Int(n) => Datum::Int(n.signum()),
                Datum::Real(x) => Datum::Int(if x > 0.0 {
                    1
                } else if x < 0.0 {
                    -1
                } else {
                    0
                }),
                _ => Datum::Null,
            }
        }
        Function::Char => {
            let mut out = String::new();
            for d in args {
                let n = u32::try_from(number::to_int(d)).ok().filter(|&n| n <= 0x10_ffff).unwrap_or(0xfffd);
                out.push(char::from_u32(n).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            // A surrogate is written as the three bytes of its code, which is not valid UTF-8.
            if args.iter().any(|d| (0xd800..0xe000).contains(&number::to_int(d))) {
                return Err(crate::expr::Unknown::Construct("char() of a surrogate").into());
            }
            owned(out.into_bytes())
        }
        Function::Concat | Function::ConcatWs => {
            let with = f == Function::ConcatWs;
            if with && null_if(a) {
                return Ok(Datum::Null);
            }
            let separator = if with { number::to_text(a) } else { Cow::Borrowed(&b""[..]) };
            let mut out = Vec::new();
            let mut first = true;
            for d in args.iter().skip(usize::from(with)).filter(|d| !d.is_null()) {
                if !std::mem::replace(&mut first, false) {
                    out.extend_from_slice(&separator);
                }
                let text = number::to_text(d);
                meter.bytes(text.len().saturating_add(separator.len()))?;
                out.extend_from_slice(&text);
                if out.len() > MAX_LENGTH {
                    return Err(too_big());
                }
            }
            owned(out)
        }
        Function::Glob => {
            let value = b.cloned().unwrap_or(Datum::Null);
            super::like(true, a, &value, None, meter)?.map_or(Datum::Null, Datum::bool)
        }
        Function::Like => {
            let value = b.cloned().unwrap_or(Datum::Null);
            super::like(false, a, &value, c, meter)?.map_or(Datum::Null, Datum::bool)
        }
        Function::Hex => {
            let bytes = match a {
                Datum::Text(t) => encoding.from_utf8(t),
                other => number::to_text(other),
            };
            if bytes.len() > MAX_LENGTH / 2 {
                return Err(too_big());
            }
            meter.bytes(bytes.len().saturating_mul(2))?;
            let mut out = Vec::with_capacity(bytes.len().saturating_mul(2));
            for &byte in bytes.iter() {
                out.extend([byte >> 4, byte & 15].map(|d| b"0123456789ABCDEF".get(usize::from(d)).copied().unwrap_or(b'0')));
            }
            owned(out)
        }
        Function::Unhex => unhex(a, b, meter)?,
        Function::Instr => instr(a, b.unwrap_or(&Datum::Null)),
        Function::Length => match a {
            Datum::Null => Datum::Null,
            Datum::Blob(bytes) => Datum::Int(len(bytes.len())),
            Datum::Text(t) => Datum::Int(len(character_count(c_string(t)))),
            other => Datum::Int(len(number::to_text(other).len())),
        },
        Function::OctetLength => match a {
            Datum::Null => Datum::Null,
            Datum::Blob(bytes) => Datum::Int(len(bytes.len())),
            other => Datum::Int(len(encoding.from_utf8(&number::to_text(other)).len())),
        },
        Function::Lower if !null_if(a) => owned(c_keep(&number::to_text(a)).to_ascii_lowercase()),
        Function::Upper if !null_if(a) => owned(c_keep(&number::to_text(a)).to_ascii_uppercase()),
        Function::Trim => trim(a, b, true, true, meter)?,
        Function::Ltrim => trim(a, b, true, false, meter)?,
        Function::Rtrim => trim(a, b, false, true, meter)?,
        Function::Quote => {
            meter.bytes(size(a).saturating_mul(3))?;
            quote(a)
        }
        Function::Replace => replace(a, b.unwrap_or(&Datum::Null), c.unwrap_or(&Datum::Null), meter)?,
        Function::Round => round(a, b),
        Function::Substr => substr(a, b.unwrap_or(&Datum::Null), c),
        Function::Typeof => Datum::Text(Cow::Borrowed(a.type_name().as_bytes())),
        Function::Unicode => {
            let text = number::to_text(a);
            match char_at(&text, 0) {
                Some((c, _)) if c != 0 && !a.is_null() => Datum::Int(i64::from(c)),
                _ => Datum::Null,
            }
        }
        Function::ZeroBlob => {
            let n = usize::try_from(number::to_int(a)).unwrap_or(0);
            if n > MAX_LENGTH {
                return Err(too_big());
            }
            meter.bytes(n)?;
            Datum::Blob(Cow::Owned(vec![0; n]))
        }
        _ => Datum::Null,
    })
}

fn size(d: &Datum<'_>) -> usize {
    match d {
        Datum::Text(t) | Datum::Blob(t) => t.len(),
        _ => 0,
    }
}

fn len(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// lower() and upper() go over all bytes, NUL included.
fn c_keep(t: &[u8]) -> &[u8] {
    t
}

fn character_count(t: &[u8]) -> usize {
    let mut n = 0_usize;
    let mut at = 0_usize;
    while let Some(&b) = t.get(at) {
        at = at.saturating_add(1);
        n = n.saturating_add(1);
        if b >= 0xc0 {
            while t.get(at).is_some_and(|b| b & 0xc0 == 0x80) {
                at = at.saturating_add(1);
            }
        }
    }
    n
}

fn unhex<'r>(a: &Datum<'r>, ignore: Option<&Datum<'r>>, meter: &Meter) -> Result<Datum<'r>, Fault> {
    if a.is_null() || ignore.is_some_and(Datum::is_null) {
        return Ok(Datum::Null);
    }
    let text = number::to_text(a);
    let pass: BTreeSet<u32> = ignore.map(|i| chars(&number::to_text(i)).into_iter().collect()).unwrap_or_default();
    meter.bytes(text.len())?;
    let mut out = Vec::with_capacity(text.len() / 2);
    let mut at = 0_usize;
    let t = c_string(&text);
    let digit = |b: Option<&u8>| b.and_then(|&b| char::from(b).to_digit(16)).and_then(|d| u8::try_from(d).ok());
    while at < t.len() {
        match digit(t.get(at)) {
            Some(high) => match digit(t.get(at.saturating_add(1))) {
                Some(low) => {
                    out.push((high << 4) | low);
                    at = at.saturating_add(2);
                }
                None => return Ok(Datum::Null),
            },
            None => match char_at(t, at) {
                Some((c, len)) if pass.contains(&c) => at = at.saturating_add(len),
                _ => return Ok(Datum::Null),
            },
        }
    }
    Ok(Datum::Blob(Cow::Owned(out)))
}

fn instr<'r>(hay: &Datum<'_>, needle: &Datum<'_>) -> Datum<'r> {
    if hay.is_null() || needle.is_null() {
        return Datum::Null;
    }
    let blobs = matches!((hay, needle), (Datum::Blob(_), Datum::Blob(_)));
    let (h, n) = (number::to_text(hay), number::to_text(needle));
    if n.is_empty() {
        return Datum::Int(1);
    }
    let Some(at) = find(&h, &n, 0) else { return Datum::Int(0) };
    let before = h.get(..at).unwrap_or_default();
    Datum::Int(len(if blobs { at } else { character_count(before) }).saturating_add(1))
}

fn find(hay: &[u8], needle: &[u8], from: usize) -> Option<usize> {
    memchr::memmem::find(hay.get(from..)?, needle)?.checked_add(from)
}

fn trim<'r>(a: &Datum<'r>, set: Option<&Datum<'r>>, left: bool, right: bool, meter: &Meter) -> Result<Datum<'r>, Fault> {
    if a.is_null() || set.is_some_and(Datum::is_null) {
        return Ok(Datum::Null);
    }
    let text = number::to_text(a);
    let set_text = set.map(|s| number::to_text(s)).unwrap_or(Cow::Borrowed(b" "));
    let mut members: Vec<&[u8]> = Vec::new();
    let mut at = 0_usize;
    let set_bytes = c_string(&set_text);
    while let Some((_, n)) = char_at(set_bytes, at) {
        members.extend(set_bytes.get(at..at.saturating_add(n)));
        at = at.saturating_add(n);
    }
    members.sort_unstable();
    members.dedup();
    // Each round compares with every member.
    let round = wide(members.len() / 8).saturating_add(1);
    let mut t: &[u8] = &text;
    while left && let Some(m) = members.iter().find(|m| t.starts_with(m)) {
        meter.steps(round)?;
        t = t.get(m.len()..).unwrap_or_default();
    }
    while right && let Some(m) = members.iter().find(|m| t.ends_with(m)) {
        meter.steps(round)?;
        t = t.get(..t.len().saturating_sub(m.len())).unwrap_or_default();
    }
    Ok(owned(t.to_vec()))
}

fn quote<'r>(a: &Datum<'_>) -> Datum<'r> {
    match a {
        Datum::Null => owned(b"NULL".to_vec()),
        Datum::Text(t) => {
            let mut out = vec![b'\''];
            for &b in c_string(t) {
                out.push(b);
                if b == b'\'' {
                    out.push(b);
                }
            }
            out.push(b'\'');
            owned(out)
        }
        Datum::Blob(b) => {
            let hex: String = b.iter().map(|b| format!("{b:02X}")).collect();
            owned(format!("X'{hex}'").into_bytes())
        }
        Datum::Real(x) if x.is_infinite() => owned(if *x > 0.0 { "9.0e+999" } else { "-9.0e+999" }.into()),
        other => owned(number::to_text(other).into_owned()),
    }
}

fn replace<'r>(a: &Datum<'r>, from: &Datum<'_>, to: &Datum<'_>, meter: &Meter) -> Result<Datum<'r>, Fault> {
    if a.is_null() || from.is_null() {
        return Ok(Datum::Null);
    }
    let (text, pattern) = (number::to_text(a), number::to_text(from));
    if pattern.is_empty() || pattern.first() == Some(&0) {
        return Ok(owned(text.into_owned()));
    }
    if to.is_null() {
        return Ok(Datum::Null);
    }
    let with = number::to_text(to);
    let finder = memchr::memmem::Finder::new(pattern.as_ref());
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0_usize;
    while let Some(hit) = text.get(at..).and_then(|rest| finder.find(rest)?.checked_add(at)) {
        meter.bytes(hit.saturating_sub(at).saturating_add(with.len()))?;
        out.extend_from_slice(text.get(at..hit).unwrap_or_default());
        out.extend_from_slice(&with);
        at = hit.saturating_add(pattern.len());
        if out.len() > MAX_LENGTH {
            return Err(too_big());
        }
    }
    out.extend_from_slice(text.get(at..).unwrap_or_default());
    Ok(owned(out))
}

fn round<'r>(a: &Datum<'_>, digits: Option<&Datum<'_>>) -> Datum<'r> {
    if a.is_null() || digits.is_some_and(Datum::is_null) {
        return Datum::Null;
    }
    let n = digits.map_or(0, number::to_int).clamp(0, 30);
    let x = number::to_real(a);
    if !(-4_503_599_627_370_496.0..=4_503_599_627_370_496.0).contains(&x) {
        return Datum::real(x);
    }
    if n == 0 {
        let half = if x < 0.0 { -0.5 } else { 0.5 };
        return Datum::real(number::int_to_real(number::real_to_int(x + half)));
    }
    let text = super::format::fixed(x, usize::try_from(n).unwrap_or(0));
    Datum::real(text.parse().unwrap_or(x))
}

fn substr<'r>(a: &Datum<'r>, start: &Datum<'_>, count: Option<&Datum<'_>>) -> Datum<'r> {
    if a.is_null() || start.is_null() || count.is_some_and(Datum::is_null) {
        return Datum::Null;
    }
    let blob = matches!(a, Datum::Blob(_));
    let all = number::to_text(a);
    let bytes: &[u8] = if blob { &all } else { c_string(&all) };
    if blob && bytes.is_empty() {
        // SQLite has no pointer to an empty BLOB here.
        return Datum::Null;
    }
    let mut p1 = i128::from(number::to_int(start));
    let total = || i128::from(len(if blob { bytes.len() } else { character_count(bytes) }));
    let mut p2 = count.map_or(i128::from(i64::MAX), |c| i128::from(number::to_int(c)));
    let negative = p2 < 0;
    p2 = p2.abs();
    if p1 < 0 {
        p1 = p1.saturating_add(total());
        if p1 < 0 {
            p2 = if negative { p2 } else { p2.saturating_add(p1).max(0) };
            if negative {
                return piece(bytes, blob, 0, 0);
            }
            p1 = 0;
        }
    } else if p1 > 0 {
        p1 = p1.saturating_sub(1);
    } else if p2 > 0 && !negative {
        p2 = p2.saturating_sub(1);
    }
    if negative {
        if p1 < p2 {
            p2 = p1;
            p1 = 0;
        } else {
            p1 = p1.saturating_sub(p2);
        }
    }
    let size = |n: i128| usize::try_from(n).unwrap_or(usize::MAX);
    piece(bytes, blob, size(p1.max(0)), size(p2.max(0)))
}

fn piece<'r>(bytes: &[u8], blob: bool, skip: usize, take: usize) -> Datum<'r> {
    if blob {
        let from = skip.min(bytes.len());
        let to = from.saturating_add(take).min(bytes.len());
        return Datum::Blob(Cow::Owned(bytes.get(from..to).unwrap_or_default().to_vec()));
    }
    let step = |mut at: usize, n: usize| {
        for _ in 0..n {
            let Some(&b) = bytes.get(at) else { break };
            at = at.saturating_add(1);
            if b >= 0xc0 {
                while bytes.get(at).is_some_and(|b| b & 0xc0 == 0x80) {
                    at = at.saturating_add(1);
                }
            }
        }
        at
    };
    let from = step(0, skip);
    let to = step(from, take);
    owned(bytes.get(from..to).unwrap_or_default().to_vec())
}
