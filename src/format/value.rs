//! Values of records and the text encodings.

use std::borrow::Cow;

/// The text encoding of a database (header offset 56, file format document section 1.3.13).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Encoding {
    /// UTF-8, number 1.
    #[default]
    Utf8,
    /// UTF-16 little-endian, number 2.
    Utf16Le,
    /// UTF-16 big-endian, number 3.
    Utf16Be,
}

impl Encoding {
    /// The encoding with this number in the header.
    #[must_use]
    pub const fn from_number(n: u32) -> Option<Encoding> {
        match n {
            1 => Some(Encoding::Utf8),
            2 => Some(Encoding::Utf16Le),
            3 => Some(Encoding::Utf16Be),
            _ => None,
        }
    }

    /// Its number in the header.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Encoding::Utf8 => 1,
            Encoding::Utf16Le => 2,
            Encoding::Utf16Be => 3,
        }
    }

    /// Stored text as UTF-8 bytes. UTF-8 text is handed through as it is, valid or not; an unpaired surrogate or an odd
    /// byte of UTF-16 becomes U+FFFD, for people to read.
    #[must_use]
    pub fn to_utf8(self, stored: &[u8]) -> Cow<'_, [u8]> {
        match self {
            Encoding::Utf8 => Cow::Borrowed(stored),
            Encoding::Utf16Le => Cow::Owned(utf16(stored, u16::from_le_bytes)),
            Encoding::Utf16Be => Cow::Owned(utf16(stored, u16::from_be_bytes)),
        }
    }

    /// Stored text as the UTF-8 that SQLite makes of it, for NOCASE and RTRIM. It differs from [`Encoding::to_utf8`] in
    /// malformed UTF-16: SQLite joins a surrogate with whatever unit follows it and drops an odd byte, and indexes are
    /// sorted by that.
    #[must_use]
    pub fn to_utf8_as_sqlite(self, stored: &[u8]) -> Cow<'_, [u8]> {
        let unit = match self {
            Encoding::Utf8 => return Cow::Borrowed(stored),
            Encoding::Utf16Le => u16::from_le_bytes,
            Encoding::Utf16Be => u16::from_be_bytes,
        };
        let mut units = stored.as_chunks::<2>().0.iter().map(|&pair| u32::from(unit(pair)));
        let mut out = Vec::with_capacity(stored.len());
        while let Some(first) = units.next() {
            let mut c = first;
            if (0xd800..0xe000).contains(&first)
                && let Some(second) = units.next()
            {
                let high = ((first & 0x3f) << 10).saturating_add((first & 0x3c0).saturating_add(0x40) << 10);
                c = high.saturating_add(second & 0x3ff);
            }
            put_utf8(&mut out, c);
        }
        Cow::Owned(out)
    }

    /// UTF-8 text as this encoding stores it. Invalid UTF-8 becomes U+FFFD when the encoding is UTF-16.
    #[must_use]
    pub fn from_utf8(self, text: &[u8]) -> Cow<'_, [u8]> {
        match self {
            Encoding::Utf8 => Cow::Borrowed(text),
            Encoding::Utf16Le => Cow::Owned(String::from_utf8_lossy(text).encode_utf16().flat_map(u16::to_le_bytes).collect()),
            Encoding::Utf16Be => Cow::Owned(String::from_utf8_lossy(text).encode_utf16().flat_map(u16::to_be_bytes).collect()),
        }
    }

    /// Whether stored text is well-formed in this encoding.
    #[must_use]
    pub fn is_valid(self, stored: &[u8]) -> bool {
        let units = |f: fn([u8; 2]) -> u16| {
            let (pairs, rest) = stored.as_chunks::<2>();
            rest.is_empty() && char::decode_utf16(pairs.iter().map(|&p| f(p))).all(|c| c.is_ok())
        };
        match self {
            Encoding::Utf8 => simdutf8::basic::from_utf8(stored).is_ok(),
            Encoding::Utf16Le => units(u16::from_le_bytes),
            Encoding::Utf16Be => units(u16::from_be_bytes),
        }
    }
}

/// UTF-8 of any number below 2^21, surrogates included.
fn put_utf8(out: &mut Vec<u8>, c: u32) {
    let low = |n: u32| {
        let [.., byte] = n.to_be_bytes();
        byte
    };
    let tail = |shift: u32| low(0x80 | ((c >> shift) & 0x3f));
    match c {
        0..0x80 => out.push(low(c)),
        0x80..0x800 => out.extend_from_slice(&[low(0xc0 | (c >> 6)), tail(0)]),
        0x800..0x1_0000 => out.extend_from_slice(&[low(0xe0 | (c >> 12)), tail(6), tail(0)]),
        _ => out.extend_from_slice(&[low(0xf0 | ((c >> 18) & 0x07)), tail(12), tail(6), tail(0)]),
    }
}

fn utf16(stored: &[u8], unit: fn([u8; 2]) -> u16) -> Vec<u8> {
    let (pairs, _odd) = stored.as_chunks::<2>();
    char::decode_utf16(pairs.iter().map(|&p| unit(p))).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect::<String>().into_bytes()
}

/// A value of a record, borrowed from the page image (section 2.1).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// NULL, serial type 0.
    Null,
    /// An integer, serial types 1 to 6, 8 and 9.
    Int(i64),
    /// A double, serial type 7.
    Real(f64),
    /// Text, its bytes in the encoding of the database, not checked.
    Text(&'a [u8]),
    /// A BLOB.
    Blob(&'a [u8]),
}

impl<'a> Value<'a> {
    /// The integer, if it is one.
    #[must_use]
    pub fn as_int(self) -> Option<i64> {
        match self {
            Value::Int(n) => Some(n),
            _ => None,
        }
    }

    /// The stored bytes of text, if it is text.
    #[must_use]
    pub fn as_text(self) -> Option<&'a [u8]> {
        match self {
            Value::Text(t) => Some(t),
            _ => None,
        }
    }

    /// Whether it is NULL.
    #[must_use]
    pub fn is_null(self) -> bool {
        matches!(self, Value::Null)
    }
}

/// The integer that a double is equal to, when there is one in the range of 64 bits: SQLite compares and stores such
/// numbers as equals.
#[must_use]
#[inline]
pub fn integral(r: f64) -> Option<i64> {
    // 2^63 as a double; every double below it in magnitude without a fraction is exact as i64.
    if !(-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&r) {
        return None;
    }
    #[expect(clippy::as_conversions, reason = "in range, checked above; a fraction is caught by the comparison")]
    let n = r as i64;
    #[expect(clippy::as_conversions, reason = "exact when the numbers are equal, which is what is asked")]
    let back = n as f64;
    (back == r).then_some(n)
}
