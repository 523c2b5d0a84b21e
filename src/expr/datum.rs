//! Values while an expression is evaluated, and where they come from.

use std::borrow::Cow;

use super::ast::Unknown;
use super::meter::Meter;
use crate::format::{Encoding, Value};

/// A value; text is UTF-8 bytes, valid or not.
#[derive(Debug, Clone, PartialEq)]
pub enum Datum<'a> {
    /// NULL.
    Null,
    /// An integer.
    Int(i64),
    /// A real; never NaN.
    Real(f64),
    /// Text in UTF-8.
    Text(Cow<'a, [u8]>),
    /// A BLOB.
    Blob(Cow<'a, [u8]>),
}

impl<'a> Datum<'a> {
    /// A stored value, its text converted from the encoding of the database.
    #[must_use]
    pub fn of_value(value: Value<'a>, encoding: Encoding) -> Datum<'a> {
        match value {
            Value::Null => Datum::Null,
            Value::Int(n) => Datum::Int(n),
            Value::Real(x) => Datum::real(x),
            Value::Text(t) => Datum::Text(encoding.to_utf8(t)),
            Value::Blob(b) => Datum::Blob(Cow::Borrowed(b)),
        }
    }

    /// A real, or NULL for NaN, as SQLite has it.
    #[must_use]
    pub fn real(x: f64) -> Datum<'a> {
        if x.is_nan() { Datum::Null } else { Datum::Real(x) }
    }

    /// A truth value.
    #[must_use]
    pub fn bool(b: bool) -> Datum<'a> {
        Datum::Int(i64::from(b))
    }

    /// Text that is owned.
    #[must_use]
    pub fn text(bytes: impl Into<Vec<u8>>) -> Datum<'static> {
        Datum::Text(Cow::Owned(bytes.into()))
    }

    /// Whether it is NULL.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Datum::Null)
    }

    /// The same value, borrowed from this one.
    #[must_use]
    pub fn by_ref(&self) -> Datum<'_> {
        match self {
            Datum::Null => Datum::Null,
            Datum::Int(n) => Datum::Int(*n),
            Datum::Real(x) => Datum::Real(*x),
            Datum::Text(t) => Datum::Text(Cow::Borrowed(t)),
            Datum::Blob(b) => Datum::Blob(Cow::Borrowed(b)),
        }
    }

    /// The same value, owning its bytes.
    #[must_use]
    pub fn into_owned(self) -> Datum<'static> {
        match self {
            Datum::Null => Datum::Null,
            Datum::Int(n) => Datum::Int(n),
            Datum::Real(x) => Datum::Real(x),
            Datum::Text(t) => Datum::Text(Cow::Owned(t.into_owned())),
            Datum::Blob(b) => Datum::Blob(Cow::Owned(b.into_owned())),
        }
    }

    /// The value as it is stored in a database of this encoding; `text` receives converted text.
    pub fn to_value<'v>(&'v self, encoding: Encoding, text: &'v mut Vec<u8>) -> Value<'v> {
        match self {
            Datum::Null => Value::Null,
            Datum::Int(n) => Value::Int(*n),
            Datum::Real(x) => Value::Real(*x),
            Datum::Blob(b) => Value::Blob(b),
            Datum::Text(t) => match encoding.from_utf8(t) {
                Cow::Borrowed(b) => Value::Text(b),
                Cow::Owned(b) => {
                    *text = b;
                    Value::Text(text)
                }
            },
        }
    }

    /// What `typeof` says.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Datum::Null => "null",
            Datum::Int(_) => "integer",
            Datum::Real(_) => "real",
            Datum::Text(_) => "text",
            Datum::Blob(_) => "blob",
        }
    }
}

/// A row that an expression is evaluated over.
pub trait Row {
    /// The value of a column, by its declared position; reals of REAL columns are reals, missing values their DEFAULT.
    ///
    /// # Errors
    /// When the column is generated and its own expression cannot be evaluated.
    fn column(&self, index: usize) -> Result<Datum<'_>, Fault>;

    /// The rowid, if there is one.
    fn rowid(&self) -> Option<i64>;

    /// What its evaluation may still cost.
    fn meter(&self) -> &Meter;

    /// The encoding of the database: what BLOB casts and `hex` of text show.
    fn encoding(&self) -> Encoding {
        Encoding::Utf8
    }
}

/// A row without columns, for constants.
#[derive(Debug, Default)]
pub struct NoRow(Meter);

impl Row for NoRow {
    fn column(&self, _: usize) -> Result<Datum<'_>, Fault> {
        Ok(Datum::Null)
    }

    fn rowid(&self) -> Option<i64> {
        None
    }

    fn meter(&self) -> &Meter {
        &self.0
    }
}

/// Why there is no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The expression uses what is not known here; says nothing about the row.
    Unknown(Unknown),
    /// SQLite raises an error for this row: its text.
    Raises(String),
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Fault::Unknown(u) => u.fmt(f),
            Fault::Raises(text) => f.write_str(text),
        }
    }
}

impl From<Unknown> for Fault {
    fn from(u: Unknown) -> Fault {
        Fault::Unknown(u)
    }
}

/// SQLite's limit on the length of a text or BLOB, so that no expression makes more: `SQLITE_MAX_LENGTH`.
pub const MAX_LENGTH: usize = 1_000_000_000;

/// The error of a result beyond [`MAX_LENGTH`].
#[must_use]
pub fn too_big() -> Fault {
    Fault::Raises("string or blob too big".to_owned())
}
