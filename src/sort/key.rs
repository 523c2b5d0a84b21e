//! Index keys as bytes: `memcmp` of two encoded keys is SQLite's order of the values.
//!
//! Each column encodes to a string of bytes none of which is a prefix of another, so that columns can stand one behind the
//! other. NULL comes first, then numbers by their exact value, text by the collation, BLOBs by their bytes. A descending
//! column is the same string with every bit turned.

use crate::expr::trim_spaces;
use crate::format::{Encoding, Value};
use crate::ids::wide;
use crate::schema::Collation;

const NULL: u8 = 0x10;
const NUMBER: u8 = 0x20;
const TEXT: u8 = 0x30;
const BLOB: u8 = 0x40;

/// Numbers from here to 2^63 may be integers that no double holds.
const EXACT: f64 = 9_007_199_254_740_992.0;
const BEYOND: f64 = 9_223_372_036_854_775_808.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextOrder {
    Binary,
    NoCase,
    RTrim,
}

/// The order of an index: collation and direction of every column, and the encoding that text is stored in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyOrder {
    columns: Vec<(TextOrder, bool)>,
    encoding: Encoding,
}

impl KeyOrder {
    /// The order of these columns, each with its collation and whether it is descending. Columns behind the last are
    /// BINARY and ascending, as the rowid at the end of an index entry is. `None` when a collation is one that only the
    /// application knows.
    pub fn new<'a>(columns: impl IntoIterator<Item = (&'a Collation, bool)>, encoding: Encoding) -> Option<KeyOrder> {
        let columns = columns.into_iter().map(|(collation, desc)| {
            let text = match collation {
                Collation::Binary => TextOrder::Binary,
                Collation::NoCase => TextOrder::NoCase,
                Collation::RTrim => TextOrder::RTrim,
                Collation::Other(_) => return None,
            };
            Some((text, desc))
        });
        Some(KeyOrder { columns: columns.collect::<Option<_>>()?, encoding })
    }

    /// All columns BINARY and ascending.
    #[must_use]
    pub fn binary(encoding: Encoding) -> KeyOrder {
        KeyOrder { columns: Vec::new(), encoding }
    }

    /// Appends the keys of these values, the first in column 0.
    pub fn encode<'v>(&self, out: &mut Vec<u8>, values: impl IntoIterator<Item = Value<'v>>) {
        for (column, value) in values.into_iter().enumerate() {
            self.push(out, column, value);
        }
    }

    /// Appends the key of one value in this column. Two rows are the same under UNIQUE when the keys of its columns are the
    /// same and none of the values is NULL.
    pub fn push(&self, out: &mut Vec<u8>, column: usize, value: Value<'_>) {
        let (text, desc) = self.columns.get(column).copied().unwrap_or((TextOrder::Binary, false));
        let start = out.len();
        match value {
            Value::Null => out.push(NULL),
            Value::Int(n) => put_int(out, n),
            // SQLite reads a NaN as NULL.
            Value::Real(r) if r.is_nan() => out.push(NULL),
            Value::Real(r) => put_number(out, r, 0),
            Value::Text(t) => put_text(out, t, text, self.encoding),
            Value::Blob(b) => {
                out.push(BLOB);
                put_bytes(out, b);
            }
        }
        if desc {
            for byte in out.iter_mut().skip(start) {
                *byte = !*byte;
            }
        }
    }
}

/// An integer: the largest double that is not above it, then what is missing.
fn put_int(out: &mut Vec<u8>, n: i64) {
    #[expect(clippy::as_conversions, reason = "rounding to the nearest double is meant; the next lines correct it")]
    let near = n as f64;
    #[expect(clippy::as_conversions, reason = "every double near an i64 is a whole number that i128 holds")]
    let whole = |f: f64| f as i128;
    let floor = if whole(near) > i128::from(n) { near.next_down() } else { near };
    put_number(out, floor, u16::try_from(i128::from(n) - whole(floor)).unwrap_or(0));
}

/// A double in an order of bits that is the order of the values, and a distance from it where integers can have one.
fn put_number(out: &mut Vec<u8>, number: f64, above: u16) {
    // Adding zero turns -0.0 into 0.0.
    let bits = (number + 0.0).to_bits();
    let ordered = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
    out.push(NUMBER);
    out.extend_from_slice(&ordered.to_be_bytes());
    if (EXACT..=BEYOND).contains(&number.abs()) {
        out.extend_from_slice(&above.to_be_bytes());
    }
}

fn put_text(out: &mut Vec<u8>, stored: &[u8], order: TextOrder, encoding: Encoding) {
    out.push(TEXT);
    match order {
        // Byte order of the stored text, whatever the encoding.
        TextOrder::Binary => put_bytes(out, stored),
        TextOrder::RTrim => {
            put_bytes(out, trim_spaces(&encoding.to_utf8_as_sqlite(stored)));
        }
        TextOrder::NoCase => {
            // NOCASE compares up to the first NUL byte and then by length.
            let text = encoding.to_utf8_as_sqlite(stored);
            let head = text.split(|&b| b == 0).next().unwrap_or_default();
            out.extend(head.iter().map(u8::to_ascii_lowercase));
            if head.len() == text.len() {
                out.extend_from_slice(&[0, 0]);
            } else {
                out.extend_from_slice(&[0, 1]);
                out.extend_from_slice(&wide(text.len()).to_be_bytes());
            }
        }
    }
}

/// Bytes with an end mark that sorts before every longer string: a zero byte becomes 00 FF, the end is 00 00.
fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    let mut parts = bytes.split(|&b| b == 0);
    out.extend_from_slice(parts.next().unwrap_or_default());
    for part in parts {
        out.extend_from_slice(&[0, 0xff]);
        out.extend_from_slice(part);
    }
    out.extend_from_slice(&[0, 0]);
}

#[cfg(test)]
#[allow(clippy::as_conversions, reason = "the tests compute the answer in another way")]
mod tests {
    use std::cmp::Ordering;

    use proptest::prelude::*;

    use super::*;

    fn key(value: Value<'_>, desc: bool) -> Vec<u8> {
        let order = KeyOrder::new([(&Collation::Binary, desc)], Encoding::Utf8).unwrap();
        let mut out = Vec::new();
        order.push(&mut out, 0, value);
        out
    }

    /// An integer against a double without rounding either.
    fn exact(n: i64, r: f64) -> Ordering {
        if r >= 9.3e18 {
            Ordering::Less
        } else if r <= -9.3e18 {
            Ordering::Greater
        } else {
            i128::from(n).cmp(&(r.floor() as i128)).then(if r.fract() == 0.0 { Ordering::Equal } else { Ordering::Less })
        }
    }

    #[test]
    fn numbers_at_the_edges() {
        let mut ints = vec![0, i64::MIN, i64::MAX];
        for bits in 0..63 {
            let n = 1_i64 << bits;
            ints.extend([n, -n, n - 1, n + 1, 1 - n, -1 - n, n.saturating_add(1 << 9), n.saturating_add(3)]);
        }
        let mut reals = vec![0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN, f64::MIN_POSITIVE, 5e-324, 0.5];
        for &n in &ints {
            let r = n as f64;
            reals.extend([r, r.next_up(), r.next_down(), r + 0.5]);
        }
        for &a in &ints {
            for &b in &ints {
                assert_eq!(key(Value::Int(a), false).cmp(&key(Value::Int(b), false)), a.cmp(&b), "{a} {b}");
                assert_eq!(key(Value::Int(a), true).cmp(&key(Value::Int(b), true)), b.cmp(&a), "{a} {b}");
            }
            for &r in &reals {
                assert_eq!(key(Value::Int(a), false).cmp(&key(Value::Real(r), false)), exact(a, r), "{a} {r}");
            }
        }
        for &a in &reals {
            for &b in &reals {
                assert_eq!(Some(key(Value::Real(a), false).cmp(&key(Value::Real(b), false))), a.partial_cmp(&b), "{a} {b}");
            }
        }
        assert_eq!(key(Value::Real(f64::NAN), false), key(Value::Null, false));
    }

    #[test]
    fn classes_come_in_the_order_of_the_document() {
        let values = [Value::Null, Value::Real(f64::NEG_INFINITY), Value::Int(7), Value::Text(b""), Value::Text(b"\0"), Value::Blob(b"")];
        for pair in values.windows(2) {
            assert!(key(pair[0], false) < key(pair[1], false));
            assert!(key(pair[0], true) > key(pair[1], true));
        }
    }

    proptest! {
        #[test]
        fn strings_of_columns_order_as_their_columns(
            a in prop::collection::vec(prop::collection::vec(0_u8..3, 0..5), 2),
            b in prop::collection::vec(prop::collection::vec(0_u8..3, 0..5), 2),
            desc in any::<bool>(),
        ) {
            let order = KeyOrder::new([(&Collation::Binary, desc)], Encoding::Utf8).unwrap();
            let encode = |v: &[Vec<u8>]| {
                let mut out = Vec::new();
                order.encode(&mut out, v.iter().map(|b| Value::Blob(b)));
                out
            };
            let first = a[0].cmp(&b[0]);
            let want = if desc { first.reverse() } else { first }.then(a[1].cmp(&b[1]));
            prop_assert_eq!(encode(&a).cmp(&encode(&b)), want);
        }
    }
}
