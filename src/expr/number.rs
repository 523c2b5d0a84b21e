//! Numbers to text and back, casts and affinities, as SQLite converts them.

use std::borrow::Cow;

use super::datum::Datum;
use super::decimal::{self, Decimal};
use crate::expr::name::Affinity;

/// What a text gives as a number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reading {
    /// The value of the longest prefix that is a number, 0 without one.
    pub real: f64,
    /// The integer of that prefix, clamped; digits only.
    pub int: i64,
    /// Whether `int` was clamped.
    pub overflow: bool,
    /// Whether the prefix has a point or an exponent.
    pub fractional: bool,
    /// Whether the whole text is a number, but for white space around it and what follows a NUL.
    pub whole: bool,
    /// Whether the text has a NUL.
    pub nul: bool,
}

fn is_space(b: u8) -> bool {
    matches!(b, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r')
}

/// Reads a number at the start of a text.
#[must_use]
pub fn read(text: &[u8]) -> Reading {
    let nul = text.contains(&0);
    let text = text.split(|&b| b == 0).next().unwrap_or(text);
    let start = text.iter().position(|&b| !is_space(b)).unwrap_or(text.len());
    let t = text.get(start..).unwrap_or_default();
    let signed = usize::from(matches!(t.first(), Some(b'-' | b'+')));
    let digits = |from: usize| t.get(from..).unwrap_or_default().iter().take_while(|b| b.is_ascii_digit()).count();
    let whole_digits = digits(signed);
    let mut end = signed.saturating_add(whole_digits);
    let int_end = end;
    let mut fractional = false;
    let mut any = whole_digits > 0;
    if t.get(end) == Some(&b'.') {
        let fraction = digits(end.saturating_add(1));
        if any || fraction > 0 {
            any = true;
            fractional = true;
            end = end.saturating_add(1).saturating_add(fraction);
        }
    }
    let mut broken = false;
    if any && matches!(t.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(t.get(end.saturating_add(1)), Some(b'-' | b'+')));
        let from = end.saturating_add(1).saturating_add(sign);
        let exponent = digits(from);
        if exponent > 0 {
            fractional = true;
            end = from.saturating_add(exponent);
        } else {
            broken = true;
        }
    }
    if !any {
        return Reading { real: 0.0, int: 0, overflow: false, fractional: false, whole: false, nul };
    }
    let rest = t.get(end..).unwrap_or_default();
    let whole = !broken && rest.iter().all(|&b| is_space(b));
    let ascii = |from: usize, to: usize| std::str::from_utf8(t.get(from..to).unwrap_or_default()).unwrap_or_default();
    let (int, overflow) = match ascii(0, int_end).parse::<i64>() {
        Ok(n) => (n, false),
        Err(_) if whole_digits == 0 => (0, false),
        Err(_) => (if t.first() == Some(&b'-') { i64::MIN } else { i64::MAX }, true),
    };
    let real = ascii(0, end).parse::<f64>().unwrap_or(0.0);
    Reading { real, int, overflow, fractional, whole, nul }
}

/// A real cut to an integer, clamped.
#[must_use]
pub fn real_to_int(x: f64) -> i64 {
    #[expect(clippy::as_conversions, reason = "float to int casts of Rust cut and clamp, as SQLite does; NaN does not occur")]
    {
        x as i64
    }
}

/// An integer as the nearest real.
#[must_use]
pub fn int_to_real(n: i64) -> f64 {
    #[expect(clippy::as_conversions, reason = "int to float casts round to nearest, as C does")]
    {
        n as f64
    }
}

/// Whether a real is an integer small enough that SQLite takes it for one: below 2^51 in size.
fn same_as_int(x: f64) -> Option<i64> {
    let n = real_to_int(x);
    let same = x == 0.0 || (int_to_real(n).to_bits() == x.to_bits() && (-2_251_799_813_685_248..2_251_799_813_685_248).contains(&n));
    same.then_some(n)
}

/// A real as an integer where that is exact and not at the ends of the range.
#[must_use]
pub fn exact_int(x: f64) -> Option<i64> {
    let n = real_to_int(x);
    (int_to_real(n) == x && n > i64::MIN && n < i64::MAX).then_some(n)
}

/// The number that arithmetic takes for a value; `None` for NULL.
#[must_use]
pub fn arithmetic<'a>(d: &Datum<'_>) -> Option<Datum<'a>> {
    match d {
        Datum::Null => None,
        Datum::Int(n) => Some(Datum::Int(*n)),
        Datum::Real(x) => Some(Datum::Real(*x)),
        Datum::Text(t) | Datum::Blob(t) => {
            let r = read(t);
            Some(if r.fractional || r.overflow || (r.whole && r.nul) { Datum::Real(r.real) } else { Datum::Int(r.int) })
        }
    }
}

/// The value as an integer, by force.
#[must_use]
pub fn to_int(d: &Datum<'_>) -> i64 {
    match d {
        Datum::Null => 0,
        Datum::Int(n) => *n,
        Datum::Real(x) => real_to_int(*x),
        Datum::Text(t) | Datum::Blob(t) => read(t).int,
    }
}

/// The value as a real, by force.
#[must_use]
pub fn to_real(d: &Datum<'_>) -> f64 {
    match d {
        Datum::Null => 0.0,
        Datum::Int(n) => int_to_real(*n),
        Datum::Real(x) => *x,
        Datum::Text(t) | Datum::Blob(t) => read(t).real,
    }
}

/// Whether it counts as true; `None` for NULL.
#[must_use]
pub fn truth(d: &Datum<'_>) -> Option<bool> {
    match d {
        Datum::Null => None,
        Datum::Int(n) => Some(*n != 0),
        other => Some(to_real(other) != 0.0),
    }
}

/// The bytes of a value as text; empty for NULL.
#[must_use]
pub fn to_text<'d>(d: &'d Datum<'_>) -> Cow<'d, [u8]> {
    match d {
        Datum::Null => Cow::Borrowed(b""),
        Datum::Int(n) => Cow::Owned(n.to_string().into_bytes()),
        Datum::Real(x) => Cow::Owned(real_text(*x).into_bytes()),
        Datum::Text(t) | Datum::Blob(t) => Cow::Borrowed(t),
    }
}

/// The value as text, by force; NULL stays.
#[must_use]
pub fn stringify(d: Datum<'_>) -> Datum<'_> {
    match d {
        Datum::Int(_) | Datum::Real(_) => Datum::Text(Cow::Owned(to_text(&d).into_owned())),
        Datum::Blob(b) => Datum::Text(b),
        other => other,
    }
}

/// What a column of this affinity does to a value. Integers of a REAL column stay integers here, as in its records.
#[must_use]
pub fn apply(d: Datum<'_>, affinity: Affinity) -> Datum<'_> {
    match (affinity, d) {
        (Affinity::Text, d @ (Datum::Int(_) | Datum::Real(_))) => stringify(d),
        (Affinity::Numeric | Affinity::Integer | Affinity::Real, Datum::Text(t)) => numeric(Datum::Text(t)),
        (Affinity::Numeric | Affinity::Integer | Affinity::Real, Datum::Real(x)) => exact_int(x).map_or(Datum::Real(x), Datum::Int),
        (_, d) => d,
    }
}

/// Text that is a number becomes one, an integer where it can.
#[must_use]
pub fn numeric(d: Datum<'_>) -> Datum<'_> {
    let Datum::Text(t) = &d else { return d };
    let r = read(t);
    if !r.whole {
        return d;
    }
    if !r.fractional {
        if let Some(n) = same_as_int(r.real) {
            return Datum::Int(n);
        }
        if !r.overflow {
            return Datum::Int(r.int);
        }
    }
    exact_int(r.real).map_or(Datum::Real(r.real), Datum::Int)
}

/// `CAST`, but for text to BLOB in a UTF-16 database.
#[must_use]
pub fn cast(d: Datum<'_>, affinity: Affinity) -> Datum<'_> {
    match (affinity, d) {
        (_, Datum::Null) => Datum::Null,
        (Affinity::Blob, d) => match stringify_keep_blob(d) {
            Datum::Text(t) | Datum::Blob(t) => Datum::Blob(t),
            other => other,
        },
        (Affinity::Text, d) => stringify(d),
        (Affinity::Integer, d) => Datum::Int(to_int(&d)),
        (Affinity::Real, d) => Datum::Real(to_real(&d)),
        (Affinity::Numeric, Datum::Text(t) | Datum::Blob(t)) => {
            let r = read(&t);
            if !r.fractional && !r.overflow { Datum::Int(r.int) } else { same_as_int(r.real).map_or(Datum::Real(r.real), Datum::Int) }
        }
        (Affinity::Numeric, d) => d,
    }
}

fn stringify_keep_blob(d: Datum<'_>) -> Datum<'_> {
    match d {
        Datum::Blob(b) => Datum::Blob(b),
        other => stringify(other),
    }
}

/// A real as text, as today's SQLite prints it (`%!.17g`, fewer digits where they read back the same).
#[must_use]
pub fn real_text(x: f64) -> String {
    print(x, 17, |x| Decimal::new(x, 17, 20))
}

/// A real as text, as releases of SQLite before today's print it (`%!.15g`).
#[must_use]
pub fn older_real_text(x: f64) -> String {
    print(x, 15, |x| {
        // Twenty exact digits, of which halves go up.
        let exact = format!("{x:.19e}");
        let (digits, exponent) = exact.split_once('e').unwrap_or((&exact, "0"));
        let mut digits: Vec<u8> = digits.bytes().filter(u8::is_ascii_digit).collect();
        let mut point = exponent.parse::<i32>().unwrap_or(0).saturating_add(1);
        decimal::round(&mut digits, &mut point, 15);
        while digits.len() > 1 && digits.last() == Some(&b'0') {
            digits.pop();
        }
        Decimal { digits, point }
    })
}

fn print(x: f64, significant: i32, decimal: impl Fn(f64) -> Decimal) -> String {
    if x.is_infinite() {
        return if x > 0.0 { "Inf" } else { "-Inf" }.to_owned();
    }
    let d = decimal(x.abs());
    let mut out = String::with_capacity(24);
    if x < 0.0 {
        out.push('-');
    }
    let exponent = d.point.saturating_sub(1);
    let digits = std::str::from_utf8(&d.digits).unwrap_or("0");
    if !(-4..significant).contains(&exponent) {
        let (first, rest) = digits.split_at_checked(1).unwrap_or(("0", ""));
        out.push_str(first);
        out.push('.');
        out.push_str(if rest.is_empty() { "0" } else { rest });
        let sign = if exponent < 0 { '-' } else { '+' };
        out.push_str(&format!("e{sign}{:02}", exponent.unsigned_abs()));
    } else if d.point <= 0 {
        out.push_str("0.");
        (d.point..0).for_each(|_| out.push('0'));
        out.push_str(digits);
    } else {
        let point = usize::try_from(d.point).unwrap_or(0);
        match digits.split_at_checked(point) {
            Some((whole, rest)) => {
                out.push_str(whole);
                out.push('.');
                out.push_str(if rest.is_empty() { "0" } else { rest });
            }
            None => {
                out.push_str(digits);
                (digits.len()..point).for_each(|_| out.push('0'));
                out.push_str(".0");
            }
        }
    }
    out
}
