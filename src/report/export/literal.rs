//! Values as text without loss.

use std::fmt::Write as _;
use std::path::Path;

use crate::error::Error;
use crate::format::{Encoding, Value};
use crate::schema::one_line;

/// Appends bytes as lower-case hex.
pub(super) fn hex(out: &mut String, bytes: &[u8]) {
    const DIGITS: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    out.reserve(bytes.len().saturating_mul(2));
    for byte in bytes {
        for nibble in [byte >> 4, byte & 15] {
            out.push(DIGITS.get(usize::from(nibble)).copied().unwrap_or('?'));
        }
    }
}

/// Appends a double that is finite: the shortest digits that give it again, with a point or an exponent.
pub(super) fn real(out: &mut String, value: f64) {
    let _ = write!(out, "{value:?}");
}

/// Appends a name in double quotes, as SQL wants it.
pub(super) fn name(out: &mut String, name: &str) {
    out.push_str(&crate::schema::quoted(name));
}

/// Appends a value as an SQL literal that real SQLite reads back as the same value with the same storage class, in a
/// database of the same encoding. NaN, which SQLite shows as NULL, becomes NULL.
pub fn sql(out: &mut String, value: Value<'_>, encoding: Encoding) {
    match value {
        Value::Null => out.push_str("NULL"),
        Value::Int(n) => {
            let _ = write!(out, "{n}");
        }
        Value::Real(r) if r.is_nan() => out.push_str("NULL"),
        Value::Real(r) if r.is_infinite() => out.push_str(if r > 0.0 { "9e999" } else { "-9e999" }),
        Value::Real(r) => real(out, r),
        Value::Text(stored) => {
            let utf8 = encoding.to_utf8(stored);
            match std::str::from_utf8(&utf8) {
                Ok(text) if encoding.is_valid(stored) && !text.contains('\0') => {
                    out.push_str(&one_line::string(&text.replace('\'', "''")));
                }
                _ => {
                    out.push_str("CAST(x'");
                    hex(out, stored);
                    out.push_str("' AS TEXT)");
                }
            }
        }
        Value::Blob(bytes) => {
            out.push_str("x'");
            hex(out, bytes);
            out.push('\'');
        }
    }
}

/// A failure to write, told as one of standard output: all sinks of the front end write there.
pub(super) fn write_error(source: std::io::Error) -> Error {
    Error::io(Path::new("output"), "write", source)
}
