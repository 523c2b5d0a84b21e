//! `printf()` and `format()`, and the layout of reals that other functions share.

use super::{c_string, owned};
use crate::expr::ast::Unknown;
use crate::expr::datum::{Datum, Fault, MAX_LENGTH, too_big};
use crate::expr::decimal::Decimal;
use crate::expr::meter::Meter;
use crate::expr::number;
use crate::ids::wide;

/// The longest result that is computed. SQLite itself goes on to [`MAX_LENGTH`]; a width of a gigabyte in a schema
/// would be paid for in every row.
const MAX_RESULT: usize = 16 << 20;

/// How the digits of a real are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Notation {
    Fixed,
    Exponent,
    General,
}

/// Flags of a conversion.
#[derive(Debug, Clone, Copy, Default)]
struct Flags {
    /// `-`
    left: bool,
    /// `+` or a space before numbers that are not negative.
    prefix: Option<u8>,
    /// `#`
    alternate: bool,
    /// `!`
    full: bool,
    /// `0`
    zeros: bool,
    /// `,`
    thousands: bool,
}

/// A real with this many digits behind the point, as `%!.Nf` without cutting zeros.
pub(super) fn fixed(x: f64, places: usize) -> String {
    let n = i32::try_from(places).unwrap_or(30);
    let d = Decimal::new(x.abs(), n.saturating_neg(), 20);
    let digit = |i: i32| usize::try_from(i).ok().and_then(|i| d.digits.get(i)).copied().map_or('0', char::from);
    let mut out = String::new();
    if x < 0.0 {
        out.push('-');
    }
    if d.point <= 0 {
        out.push('0');
    }
    (0..d.point).for_each(|i| out.push(digit(i)));
    if n > 0 {
        out.push('.');
        (0..n).for_each(|i| out.push(digit(d.point.saturating_add(i))));
    }
    out
}

/// A real as `%.Ng`.
pub(super) fn general(x: f64, precision: usize) -> String {
    String::from_utf8_lossy(&real(x, Notation::General, Some(precision), Flags::default(), false)).into_owned()
}

/// Zeros and digits of a real, with its sign; infinity as a word, or as a nine with zeros where zeros pad.
fn real(x: f64, notation: Notation, precision: Option<usize>, flags: Flags, upper: bool) -> Vec<u8> {
    let mut precision = i32::try_from(precision.unwrap_or(6)).unwrap_or(i32::MAX).min(100_000_000);
    let mut notation = notation;
    let asked = match notation {
        Notation::Fixed => precision.saturating_neg(),
        Notation::General => precision.max(1),
        Notation::Exponent => precision.saturating_add(1),
    };
    let plus = flags.prefix;
    let decimal = if x.is_infinite() {
        if !flags.zeros {
            let sign = if x < 0.0 { Some(b'-') } else { plus };
            return sign.into_iter().chain(*b"Inf").collect();
        }
        Decimal { digits: vec![b'9'], point: 1000 }
    } else {
        Decimal::new(x.abs(), asked, if flags.full { 20 } else { 16 })
    };
    let hidden = flags.alternate && plus.is_none() && notation == Notation::Fixed && decimal.point <= asked;
    let mut out: Vec<u8> = if x < 0.0 { (!hidden).then_some(b'-') } else { plus }.into_iter().collect();
    let exponent = decimal.point.saturating_sub(1);
    let trim = if notation == Notation::General {
        precision = precision.max(1).saturating_sub(1);
        if exponent < -4 || exponent > precision {
            notation = Notation::Exponent;
        } else {
            precision = precision.saturating_sub(exponent);
            notation = Notation::Fixed;
        }
        !flags.alternate
    } else {
        flags.full
    };
    let mut whole = if notation == Notation::Exponent { 0 } else { exponent };
    let point = precision > 0 || flags.alternate || flags.full;
    let mut digits = decimal.digits.iter().copied();
    if whole < 0 {
        out.push(b'0');
    }
    while whole >= 0 {
        out.push(digits.next().unwrap_or(b'0'));
        if flags.thousands && whole > 1 && whole.checked_rem(3) == Some(0) {
            out.push(b',');
        }
        whole = whole.saturating_sub(1);
    }
    if point {
        out.push(b'.');
    }
    let zeros = (-1_i32).saturating_sub(whole).clamp(0, precision.max(0));
    (0..zeros).for_each(|_| out.push(b'0'));
    for _ in zeros..precision {
        match digits.next() {
            Some(d) => out.push(d),
            None if trim => break,
            None => out.push(b'0'),
        }
    }
    if trim && point {
        while out.last() == Some(&b'0') {
            out.pop();
        }
        if out.last() == Some(&b'.') {
            if flags.full {
                out.push(b'0');
            } else {
                out.pop();
            }
        }
    }
    if notation == Notation::Exponent {
        out.push(if upper { b'E' } else { b'e' });
        out.push(if exponent < 0 { b'-' } else { b'+' });
        out.extend_from_slice(format!("{:02}", exponent.unsigned_abs()).as_bytes());
    }
    out
}

/// The arguments, taken one after another; behind the last come NULLs.
struct Arguments<'d, 'r> {
    rest: std::slice::Iter<'d, Datum<'r>>,
}

impl<'d, 'r> Arguments<'d, 'r> {
    fn int(&mut self) -> i64 {
        self.rest.next().map_or(0, number::to_int)
    }

    fn real(&mut self) -> f64 {
        self.rest.next().map_or(0.0, number::to_real)
    }

    fn text(&mut self) -> Option<Vec<u8>> {
        let d = self.rest.next().filter(|d| !d.is_null())?;
        Some(c_string(&number::to_text(d)).to_vec())
    }
}

/// A number of the format; SQLite keeps 31 bits of it.
fn count(format: &[u8], at: &mut usize) -> usize {
    let mut n = 0_u32;
    while let Some(d) = format.get(*at).filter(|b| b.is_ascii_digit()) {
        n = n.wrapping_mul(10).wrapping_add(u32::from(d.wrapping_sub(b'0')));
        *at = at.saturating_add(1);
    }
    crate::ids::idx(n & 0x7fff_ffff)
}

/// The low 32 bits of an integer argument, as C takes them for a width.
fn narrow_width(n: i64) -> i64 {
    let low = u32::try_from(n & 0xffff_ffff).unwrap_or(0);
    i64::from(i32::from_ne_bytes(low.to_ne_bytes()))
}

/// A conversion that has been read.
struct Conversion {
    flags: Flags,
    width: usize,
    precision: Option<usize>,
    kind: u8,
}

/// Reads a conversion behind its `%`, up to and with its letter; 0 is the letter at the end of the format.
fn conversion(format: &[u8], at: &mut usize, args: &mut Arguments<'_, '_>) -> Conversion {
    let mut c = Conversion { flags: Flags::default(), width: 0, precision: None, kind: 0 };
    loop {
        let Some(&b) = format.get(*at) else { return c };
        match b {
            b'-' => c.flags.left = true,
            b'+' | b' ' => c.flags.prefix = Some(b),
            b'#' => c.flags.alternate = true,
            b'!' => c.flags.full = true,
            b'0' => c.flags.zeros = true,
            b',' => c.flags.thousands = true,
            b'1'..=b'9' => {
                c.width = count(format, at);
                if matches!(format.get(*at), Some(b'.' | b'l')) {
                    continue;
                }
                break;
            }
            b'*' => {
                let n = narrow_width(args.int());
                c.flags.left |= n < 0;
                c.width = if n < -2_147_483_647 { 0 } else { usize::try_from(n.unsigned_abs()).unwrap_or(0) };
                *at = at.saturating_add(1);
                if matches!(format.get(*at), Some(b'.' | b'l')) {
                    continue;
                }
                break;
            }
            b'.' => {
                *at = at.saturating_add(1);
                if format.get(*at) == Some(&b'*') {
                    let n = narrow_width(args.int());
                    c.precision = if n < -2_147_483_647 { None } else { usize::try_from(n.unsigned_abs()).ok() };
                    *at = at.saturating_add(1);
                } else {
                    c.precision = Some(count(format, at));
                }
                if format.get(*at) == Some(&b'l') {
                    continue;
                }
                break;
            }
            b'l' => {
                let more = format.get(at.saturating_add(1)) == Some(&b'l');
                *at = at.saturating_add(if more { 2 } else { 1 });
                break;
            }
            _ => break,
        }
        *at = at.saturating_add(1);
    }
    if let Some(&kind) = format.get(*at) {
        c.kind = kind;
        *at = at.saturating_add(1);
    }
    c
}

/// `printf(FORMAT, …)`.
pub(super) fn printf<'r>(args: &[Datum<'r>], meter: &Meter) -> Result<Datum<'r>, Fault> {
    let Some((first, rest)) = args.split_first() else { return Ok(Datum::Null) };
    if first.is_null() {
        return Ok(Datum::Null);
    }
    let format = number::to_text(first);
    let format = c_string(&format);
    let mut args = Arguments { rest: rest.iter() };
    let mut out = Vec::with_capacity(format.len());
    let mut at = 0_usize;
    while let Some(&b) = format.get(at) {
        at = at.saturating_add(1);
        if b != b'%' {
            out.push(b);
            continue;
        }
        if at >= format.len() {
            out.push(b'%');
            break;
        }
        let c = conversion(format, &mut at, &mut args);
        let longest = c.width.max(c.precision.unwrap_or(0)).saturating_add(out.len());
        if longest > MAX_LENGTH {
            return Err(too_big());
        }
        if longest > MAX_RESULT {
            return Err(Unknown::Construct("a result of printf() of this length").into());
        }
        // Digits take several steps each, so that width and precision are paid in whole bytes.
        meter.steps(wide(c.width.max(c.precision.unwrap_or(0))).saturating_add(8))?;
        let before = out.len();
        let goes_on = one(&c, &mut args, &mut out)?;
        meter.bytes(out.len().saturating_sub(before))?;
        if !goes_on {
            break;
        }
    }
    Ok(owned(out))
}

/// Writes one conversion; `false` when SQLite stops at it.
fn one(c: &Conversion, args: &mut Arguments<'_, '_>, out: &mut Vec<u8>) -> Result<bool, Fault> {
    let mut flags = c.flags;
    let mut width = c.width;
    let text = match c.kind {
        b'd' | b'i' | b'r' | b'u' | b'x' | b'X' | b'o' | b'p' => integer(c, args),
        b'e' | b'E' | b'f' | b'g' | b'G' => {
            let notation = match c.kind {
                b'f' => Notation::Fixed,
                b'g' | b'G' => Notation::General,
                _ => Notation::Exponent,
            };
            let x = args.real();
            let text = real(x, notation, c.precision, flags, c.kind.is_ascii_uppercase());
            let word = x.is_infinite() && !flags.zeros;
            if flags.zeros && !flags.left && !word && text.len() < width {
                let sign = usize::from(matches!(text.first(), Some(b'+' | b'-' | b' ')));
                let (sign, digits) = text.split_at_checked(sign).unwrap_or((&[], &text));
                out.extend_from_slice(sign);
                out.extend(std::iter::repeat_n(b'0', width.saturating_sub(text.len())));
                out.extend_from_slice(digits);
                return Ok(true);
            }
            text
        }
        b'n' => return Ok(true),
        b'%' => b"%".to_vec(),
        b'c' => return character(c, args, out),
        b's' | b'z' => {
            let text = args.text().unwrap_or_default();
            let len = match c.precision {
                None => text.len(),
                Some(n) if flags.full => text_len(&text, n),
                Some(n) => n.min(text.len()),
            };
            widen(&mut width, flags, text.get(..len).unwrap_or(&text));
            text.get(..len).map(<[u8]>::to_vec).unwrap_or_default()
        }
        b'q' | b'Q' | b'w' => {
            if c.kind != b'w' && flags.alternate {
                return Err(Unknown::Construct("%#q and %#Q of printf()").into());
            }
            let text = quoted(c, args);
            widen(&mut width, flags, &text);
            text
        }
        b'j' | b'J' => return Err(Unknown::Construct("%j and %J of printf()").into()),
        _ => return Ok(false),
    };
    flags.zeros = false;
    let padding = width.saturating_sub(text.len());
    if flags.left {
        out.extend_from_slice(&text);
    }
    out.extend(std::iter::repeat_n(b' ', padding));
    if !flags.left {
        out.extend_from_slice(&text);
    }
    Ok(true)
}

/// How many bytes so many characters take.
fn text_len(text: &[u8], characters: usize) -> usize {
    let mut at = 0_usize;
    for _ in 0..characters {
        let Some(&first) = text.get(at) else { break };
        at = at.saturating_add(1);
        if first >= 0xc0 {
            while text.get(at).is_some_and(|b| b & 0xc0 == 0x80) {
                at = at.saturating_add(1);
            }
        }
    }
    at
}

/// With `!`, widths count characters.
fn widen(width: &mut usize, flags: Flags, text: &[u8]) {
    if flags.full && *width > 0 {
        *width = width.saturating_add(text.iter().filter(|&b| b & 0xc0 == 0x80).count());
    }
}

fn integer(c: &Conversion, args: &mut Arguments<'_, '_>) -> Vec<u8> {
    let n = args.int();
    let signed = matches!(c.kind, b'd' | b'i' | b'r');
    let (size, prefix) = if signed {
        (n.unsigned_abs(), if n < 0 { Some(b'-') } else { c.flags.prefix })
    } else {
        (u64::from_ne_bytes(n.to_ne_bytes()), None)
    };
    let mut digits = match c.kind {
        b'x' | b'p' => format!("{size:x}"),
        b'X' => format!("{size:X}"),
        b'o' => format!("{size:o}"),
        _ => size.to_string(),
    }
    .into_bytes();
    // Pointers are written in capitals.
    if c.kind == b'p' {
        digits.make_ascii_uppercase();
    }
    if c.kind == b'r' {
        let last = size.checked_rem(10).unwrap_or(0);
        let teen = size.checked_div(10).and_then(|n| n.checked_rem(10)) == Some(1);
        digits.extend_from_slice(match last {
            1 if !teen => b"st",
            2 if !teen => b"nd",
            3 if !teen => b"rd",
            _ => b"th",
        });
    }
    let mut precision = c.precision.unwrap_or(0);
    if c.flags.zeros {
        precision = precision.max(c.width.saturating_sub(usize::from(prefix.is_some())));
    }
    let mut out: Vec<u8> = std::iter::repeat_n(b'0', precision.saturating_sub(digits.len())).collect();
    out.append(&mut digits);
    if c.flags.thousands && matches!(c.kind, b'd' | b'i' | b'u') {
        let mut grouped = Vec::with_capacity(out.len().saturating_mul(2));
        for (i, &d) in out.iter().enumerate() {
            if i > 0 && out.len().saturating_sub(i).checked_rem(3) == Some(0) {
                grouped.push(b',');
            }
            grouped.push(d);
        }
        out = grouped;
    }
    if let Some(sign) = prefix {
        out.insert(0, sign);
    }
    if c.flags.alternate && size != 0 {
        let mark: &[u8] = match c.kind {
            b'x' | b'p' => b"0x",
            b'X' => b"0X",
            b'o' => b"0",
            _ => b"",
        };
        out.splice(0..0, mark.iter().copied());
    }
    out
}

/// `%c`: the first character of a text, as often as the precision says.
fn character(c: &Conversion, args: &mut Arguments<'_, '_>, out: &mut Vec<u8>) -> Result<bool, Fault> {
    let text = args.text().unwrap_or_default();
    let len = match text.first() {
        // Without a character there is one NUL.
        None => 1,
        Some(&first) if first & 0xc0 == 0xc0 => text.iter().skip(1).take(3).take_while(|&b| b & 0xc0 == 0x80).count().saturating_add(1),
        Some(_) => 1,
    };
    let unit = text.get(..len).unwrap_or(b"\0");
    let mut width = c.width;
    let mut times = c.precision.unwrap_or(1).max(1);
    if times.saturating_mul(unit.len()) > MAX_RESULT {
        return Err(Unknown::Construct("a result of printf() of this length").into());
    }
    if times > 1 {
        let extra = times.saturating_sub(1);
        // A width smaller than the copies is none.
        let left = width.saturating_sub(extra);
        width = left;
        if left > 1 && !c.flags.left {
            out.extend(std::iter::repeat_n(b' ', left.saturating_sub(1)));
            width = 0;
        }
        while times > 1 {
            out.extend_from_slice(unit);
            times = times.saturating_sub(1);
        }
    }
    if width > 0 {
        width = width.saturating_add(unit.iter().filter(|&b| b & 0xc0 == 0x80).count());
    }
    let padding = width.saturating_sub(unit.len());
    if c.flags.left {
        out.extend_from_slice(unit);
    }
    out.extend(std::iter::repeat_n(b' ', padding));
    if !c.flags.left {
        out.extend_from_slice(unit);
    }
    Ok(true)
}

/// `%q`, `%Q` and `%w`: text with its quotes doubled.
fn quoted(c: &Conversion, args: &mut Arguments<'_, '_>) -> Vec<u8> {
    let text = args.text();
    let mark = if c.kind == b'w' { b'"' } else { b'\'' };
    let around = c.kind == b'Q' && text.is_some();
    let text = text.unwrap_or_else(|| if c.kind == b'Q' { b"NULL".to_vec() } else { b"(NULL)".to_vec() });
    let len = match c.precision {
        None => text.len(),
        Some(n) if c.flags.full => text_len(&text, n),
        Some(n) => n.min(text.len()),
    };
    let mut out = Vec::with_capacity(len.saturating_add(2));
    if around {
        out.push(mark);
    }
    for &b in text.get(..len).unwrap_or(&text) {
        out.push(b);
        if b == mark {
            out.push(b);
        }
    }
    if around {
        out.push(mark);
    }
    out
}
