//! The order of values in keys, as SQLite compares them.

use std::cmp::Ordering;

use super::{Collation, KeyPart};
use crate::expr::trim_spaces;
use crate::format::value::integral;
use crate::format::{Encoding, Value};

/// Compares two values: NULL, numbers, text, BLOBs, in this order; numbers by value, exactly; text by its collation (BINARY
/// over the stored bytes, the others over UTF-8). `None` when two texts meet under an unknown collation.
#[must_use]
#[inline]
pub fn compare_values(x: Value<'_>, y: Value<'_>, collation: &Collation, encoding: Encoding) -> Option<Ordering> {
    Some(match (x, y) {
        (Value::Int(a), Value::Int(b)) => a.cmp(&b),
        (Value::Text(a), Value::Text(b)) => return compare_text(a, b, collation, encoding),
        (Value::Blob(a), Value::Blob(b)) => a.cmp(b),
        (Value::Real(a), Value::Real(b)) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
        (Value::Int(a), Value::Real(b)) => int_against_real(a, b),
        (Value::Real(a), Value::Int(b)) => int_against_real(b, a).reverse(),
        _ => rank(x).cmp(&rank(y)),
    })
}

/// Compares two keys. Values behind the shorter of both, or without a [`KeyPart`], are not looked at.
///
/// `None` when two texts stand under a collation whose order is not known here and nothing before them decided.
#[must_use]
pub fn compare(a: &[Value<'_>], b: &[Value<'_>], key: &[KeyPart], encoding: Encoding) -> Option<Ordering> {
    for ((x, y), part) in a.iter().zip(b).zip(key) {
        let order = compare_values(*x, *y, &part.collation, encoding)?;
        if order != Ordering::Equal {
            return Some(if part.desc { order.reverse() } else { order });
        }
    }
    Some(Ordering::Equal)
}

fn rank(v: Value<'_>) -> u8 {
    match v {
        Value::Null => 0,
        Value::Int(_) | Value::Real(_) => 1,
        Value::Text(_) => 2,
        Value::Blob(_) => 3,
    }
}

fn int_against_real(a: i64, b: f64) -> Ordering {
    if b >= 9_223_372_036_854_775_808.0 {
        return Ordering::Less;
    }
    if b < -9_223_372_036_854_775_808.0 {
        return Ordering::Greater;
    }
    let whole = b.trunc();
    let order = a.cmp(&integral(whole).unwrap_or(0));
    order.then_with(|| 0.0_f64.partial_cmp(&(b - whole)).unwrap_or(Ordering::Equal))
}

fn compare_text(a: &[u8], b: &[u8], collation: &Collation, encoding: Encoding) -> Option<Ordering> {
    match collation {
        Collation::Binary => Some(a.cmp(b)),
        Collation::NoCase => {
            let (a, b) = (encoding.to_utf8_as_sqlite(a), encoding.to_utf8_as_sqlite(b));
            // SQLite stops at a NUL under NOCASE and then compares lengths.
            let pairs = a.iter().zip(b.iter()).take_while(|(x, y)| **x != 0 || **y != 0);
            for (x, y) in pairs {
                match x.to_ascii_lowercase().cmp(&y.to_ascii_lowercase()) {
                    Ordering::Equal if *x == 0 => break,
                    Ordering::Equal => {}
                    order => return Some(order),
                }
            }
            Some(a.len().cmp(&b.len()))
        }
        Collation::RTrim => {
            let (a, b) = (encoding.to_utf8_as_sqlite(a), encoding.to_utf8_as_sqlite(b));
            Some(trim_spaces(&a).cmp(trim_spaces(&b)))
        }
        Collation::Other(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_and_doubles_compare_exactly() {
        let cmp = |a, b| compare_values(a, b, &Collation::Binary, Encoding::Utf8).unwrap();
        let big = (1_i64 << 53) + 1;
        assert_eq!(cmp(Value::Int(big), Value::Real(9_007_199_254_740_992.0)), Ordering::Greater);
        assert_eq!(cmp(Value::Int(2), Value::Real(2.5)), Ordering::Less);
        assert_eq!(cmp(Value::Int(-2), Value::Real(-2.5)), Ordering::Greater);
        assert_eq!(cmp(Value::Real(3.0), Value::Int(3)), Ordering::Equal);
        assert_eq!(cmp(Value::Int(i64::MAX), Value::Real(f64::INFINITY)), Ordering::Less);
        assert_eq!(cmp(Value::Int(i64::MIN), Value::Real(-9_223_372_036_854_775_808.0)), Ordering::Equal);
    }
}
