//! stub
use super::Collation;
use crate::format::{Encoding, Value};
use std::cmp::Ordering;
/// stub
pub fn compare_values(x: Value<'_>, y: Value<'_>, c: &Collation, e: Encoding) -> Option<Ordering> {
    let rank = |v: Value<'_>| match v {
        Value::Null => 0,
        Value::Int(_) | Value::Real(_) => 1,
        Value::Text(_) => 2,
        Value::Blob(_) => 3,
    };
    Some(match (x, y) {
        (Value::Int(a), Value::Int(b)) => a.cmp(&b),
        (Value::Int(a), Value::Real(b)) => (a as f64).total_cmp(&b),
        (Value::Real(a), Value::Int(b)) => a.total_cmp(&(b as f64)),
        (Value::Real(a), Value::Real(b)) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
        (Value::Text(a), Value::Text(b)) => match c {
            Collation::Binary => a.cmp(b),
            Collation::NoCase => a.to_ascii_lowercase().cmp(&b.to_ascii_lowercase()),
            _ => a.trim_ascii_end().cmp(b.trim_ascii_end()),
        },
        (Value::Blob(a), Value::Blob(b)) => a.cmp(b),
        _ => rank(x).cmp(&rank(y)),
    })
}
