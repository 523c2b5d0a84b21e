//! Values that a plan or a computation owns.

use crate::expr::{self, Datum, Expr};
use crate::format::{Encoding, Value};
use crate::schema::Affinity;

/// A value that a plan owns: the DEFAULT of a column, in the encoding of the database.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Constant {
    /// NULL.
    #[default]
    Null,
    /// An integer.
    Int(i64),
    /// A double.
    Real(f64),
    /// Text, stored bytes.
    Text(Vec<u8>),
    /// A BLOB.
    Blob(Vec<u8>),
}

impl Constant {
    /// The value, borrowed.
    #[must_use]
    pub fn value(&self) -> Value<'_> {
        match self {
            Constant::Null => Value::Null,
            Constant::Int(n) => Value::Int(*n),
            Constant::Real(r) => Value::Real(*r),
            Constant::Text(t) => Value::Text(t),
            Constant::Blob(b) => Value::Blob(b),
        }
    }
}

impl From<Value<'_>> for Constant {
    fn from(v: Value<'_>) -> Constant {
        match v {
            Value::Null => Constant::Null,
            Value::Int(n) => Constant::Int(n),
            Value::Real(r) => Constant::Real(r),
            Value::Text(t) => Constant::Text(t.to_vec()),
            Value::Blob(b) => Constant::Blob(b.to_vec()),
        }
    }
}

/// A computed value, its text in the encoding of the database.
pub(super) fn owned(d: Datum<'_>, encoding: Encoding) -> Constant {
    match d {
        Datum::Null => Constant::Null,
        Datum::Int(n) => Constant::Int(n),
        Datum::Real(r) => Constant::Real(r),
        Datum::Text(t) => Constant::Text(encoding.from_utf8(&t).into_owned()),
        Datum::Blob(b) => Constant::Blob(b.into_owned()),
    }
}

/// A constant expression, such as a DEFAULT, with the affinity of its column applied. NULL when it is none.
#[must_use]
pub fn of(expr: &Expr, affinity: Affinity, encoding: Encoding) -> Constant {
    expr::constant(expr).map_or(Constant::Null, |d| owned(expr::apply_affinity(d, affinity), encoding))
}
