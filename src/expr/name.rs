//! Names, affinities and collations, as SQLite compares and derives them.

use std::fmt;

/// A name in a schema: bytes, usually UTF-8, compared without regard to ASCII case as SQLite does.
///
/// `Eq` and `Ord` compare exact bytes; [`Name::same`] is SQLite's comparison.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Name(Box<[u8]>);

impl Name {
    /// A name of these bytes.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Name {
        Name(bytes.into())
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The name for people: invalid UTF-8 becomes U+FFFD.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }

    /// Whether SQLite takes both for the same name.
    #[must_use]
    pub fn same(&self, other: &[u8]) -> bool {
        self.0.eq_ignore_ascii_case(other)
    }

    /// The name with ASCII letters in lower case: equal for names that are [`Name::same`].
    #[must_use]
    pub fn folded(&self) -> Vec<u8> {
        self.0.to_ascii_lowercase()
    }
}

impl From<&str> for Name {
    fn from(s: &str) -> Name {
        Name::new(s.as_bytes())
    }
}

impl From<Vec<u8>> for Name {
    fn from(bytes: Vec<u8>) -> Name {
        Name(bytes.into_boxed_slice())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&String::from_utf8_lossy(&self.0), f)
    }
}

/// What a column does to the values put into it (datatype document, section 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Affinity {
    /// Nothing.
    Blob,
    /// Numbers become text.
    Text,
    /// Text that is a number becomes one.
    Numeric,
    /// As NUMERIC; differs in CAST only.
    Integer,
    /// As NUMERIC, and integers are read back as reals.
    Real,
}

impl Affinity {
    /// The affinity of a declared type (datatype document, section 3.1). A column without a type has BLOB affinity.
    #[must_use]
    pub fn of_type(declared: &[u8]) -> Affinity {
        let text = declared.to_ascii_lowercase();
        if text.is_empty() {
            return Affinity::Blob;
        }
        let mut found = Affinity::Numeric;
        // The first INT decides; otherwise text beats BLOB, and BLOB beats REAL, in the order of appearance.
        for at in 0..text.len() {
            let rest = text.get(at..).unwrap_or_default();
            if rest.starts_with(b"int") {
                return Affinity::Integer;
            }
            if rest.starts_with(b"char") || rest.starts_with(b"clob") || rest.starts_with(b"text") {
                found = Affinity::Text;
            } else if rest.starts_with(b"blob") && matches!(found, Affinity::Numeric | Affinity::Real) {
                found = Affinity::Blob;
            } else if (rest.starts_with(b"real") || rest.starts_with(b"floa") || rest.starts_with(b"doub")) && found == Affinity::Numeric {
                found = Affinity::Real;
            }
        }
        found
    }

    /// Whether it is NUMERIC, INTEGER or REAL.
    #[must_use]
    pub fn is_numeric(self) -> bool {
        matches!(self, Affinity::Numeric | Affinity::Integer | Affinity::Real)
    }
}

/// The type of a column of a STRICT table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StrictType {
    /// `INT` or `INTEGER`.
    Integer,
    /// `REAL`.
    Real,
    /// `TEXT`.
    Text,
    /// `BLOB`.
    Blob,
    /// `ANY`: every storage class, kept as it is.
    Any,
}

impl StrictType {
    /// The type that a STRICT table knows by this name.
    #[must_use]
    pub fn of_type(declared: &[u8]) -> Option<StrictType> {
        match declared.to_ascii_uppercase().as_slice() {
            b"INT" | b"INTEGER" => Some(StrictType::Integer),
            b"REAL" => Some(StrictType::Real),
            b"TEXT" => Some(StrictType::Text),
            b"BLOB" => Some(StrictType::Blob),
            b"ANY" => Some(StrictType::Any),
            _ => None,
        }
    }
}

/// How two texts are ordered.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum Collation {
    /// Byte order of the stored text.
    #[default]
    Binary,
    /// As BINARY with ASCII letters folded.
    NoCase,
    /// As BINARY without regard to trailing spaces.
    RTrim,
    /// One that the application registers; its order cannot be known here.
    Other(Name),
}

/// A name in double quotes, as SQL wants it.
#[must_use]
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

impl Name {
    /// The name in double quotes, byte for byte up to its first NUL, where SQLite ends a text.
    #[must_use]
    pub fn quoted(&self) -> Vec<u8> {
        let mut out = vec![b'"'];
        for &b in self.as_bytes().iter().take_while(|&&b| b != 0) {
            out.push(b);
            if b == b'"' {
                out.push(b);
            }
        }
        out.push(b'"');
        out
    }
}

impl Collation {
    /// The collation of this name.
    #[must_use]
    pub fn named(name: &Name) -> Collation {
        match name.as_bytes().to_ascii_uppercase().as_slice() {
            b"BINARY" => Collation::Binary,
            b"NOCASE" => Collation::NoCase,
            b"RTRIM" => Collation::RTrim,
            _ => Collation::Other(name.clone()),
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Collation::Binary => "BINARY".to_owned(),
            Collation::NoCase => "NOCASE".to_owned(),
            Collation::RTrim => "RTRIM".to_owned(),
            Collation::Other(name) => name.text(),
        }
    }

    /// Whether its order is known here.
    #[must_use]
    pub fn is_known(&self) -> bool {
        !matches!(self, Collation::Other(_))
    }

    /// Whether SQLite takes both for the same collation.
    #[must_use]
    pub fn same(&self, other: &Collation) -> bool {
        match (self, other) {
            (Collation::Other(a), Collation::Other(b)) => a.same(b.as_bytes()),
            (a, b) => a == b,
        }
    }
}
