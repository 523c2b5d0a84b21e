//! How well values read as those of a table: the bytes of texts and numbers, beyond their serial types.

use crate::carve::shape::{NEVER, Shape};
use crate::format::{Encoding, Field, PageKind};
use crate::ids::idx;

/// Bits that all texts of a record count for at most.
const TEXT_BITS: i32 = 28;

/// What a place speaks for beside the bytes: who has the page, and what else lies on it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Prior {
    /// Bits by shape; a shape that is not named has none.
    pub(crate) bits: Vec<i32>,
}

impl Prior {
    pub(crate) fn of(&self, shape: usize) -> i32 {
        self.bits.get(shape).copied().unwrap_or(0)
    }
}

/// All shapes, and which of them have how many columns.
#[derive(Debug, Default)]
pub(crate) struct Shapes {
    pub(crate) all: Vec<Shape>,
    pub(crate) encoding: Encoding,
}

/// A shape that a record fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fit {
    pub(crate) shape: usize,
    pub(crate) bits: i32,
    /// Those of the serial types alone.
    pub(crate) serials: i32,
    /// Its texts read as texts.
    pub(crate) clean: bool,
    /// Its integers are not far from those of the live rows.
    pub(crate) near: bool,
}

/// How a text reads: bits, and whether it is one.
fn text(bytes: &[u8], whole: bool, encoding: Encoding, odd: bool) -> (i32, bool) {
    let (mut printable, mut control, mut valid) = (0_i32, 0_i32, true);
    let mut count = |c: u32| match c {
        9 | 10 | 13 => {}
        0..0x20 | 0x7f..0xa0 | 0xfffd..=0xffff => control += 1,
        _ => printable += 1,
    };
    match encoding {
        Encoding::Utf8 => match std::str::from_utf8(bytes) {
            Ok(s) => s.chars().take(64).for_each(|c| count(u32::from(c))),
            Err(e) if !whole && e.error_len().is_none() => {
                let good = bytes.get(..e.valid_up_to()).unwrap_or_default();
                String::from_utf8_lossy(good).chars().take(64).for_each(|c| count(u32::from(c)));
            }
            Err(_) => valid = false,
        },
        Encoding::Utf16Le | Encoding::Utf16Be => {
            valid = !whole || bytes.len() & 1 == 0;
            let pairs = bytes.as_chunks::<2>().0.iter();
            let unit = |p: &[u8; 2]| if encoding == Encoding::Utf16Le { u16::from_le_bytes(*p) } else { u16::from_be_bytes(*p) };
            let units: Vec<u16> = pairs.map(unit).collect();
            let mut last = false;
            for c in char::decode_utf16(units.iter().copied()) {
                match c {
                    Ok(c) => count(u32::from(c)),
                    Err(_) => last = true,
                }
            }
            valid &= !last || !whole;
            // Scripts differ little within a text; bytes that are no text are spread over all of them.
            let mut blocks: std::collections::BTreeMap<u16, usize> = std::collections::BTreeMap::new();
            for unit in &units {
                let block = match unit >> 8 {
                    0x4e..=0x9f => 0x4e,
                    0xac..=0xd7 => 0xac,
                    0xd8..=0xdf => 0xd8,
                    0x20..=0x23 | 0xfe => 0x20,
                    other => other,
                };
                *blocks.entry(block).or_default() += 1;
            }
            let lone = blocks.iter().filter(|(b, n)| **n <= 2 && **b != 0xd8).count();
            if blocks.len() > 4 && blocks.len() * 3 > units.len() || lone >= 3 {
                control += 1;
            }
        }
    }
    if !valid {
        return (-12, odd);
    }
    // Control characters beyond those seen later in a long text are counted there.
    if encoding == Encoding::Utf8 && control == 0 && bytes.len() > 64 {
        control = i32::from(bytes.iter().any(|&b| b < 0x20 && !matches!(b, 9 | 10 | 13)));
    }
    // Few texts begin or end with a space; pieces of texts do.
    let edge = if bytes.first() == Some(&b' ') || (whole && bytes.last() == Some(&b' ')) { 3 } else { 0 };
    if control > 0 && !odd { (-8, false) } else { (printable / 2 - edge, true) }
}

/// How an integer or a double reads: those that SQLite writes take no more bytes than they need.
fn number(serial: u64, bytes: &[u8]) -> i32 {
    let n = crate::bytes::int_be(bytes);
    let fits = |bits: u32| n >= -(1_i64 << (bits - 1)) && n < 1_i64 << (bits - 1);
    match serial {
        1 if n == 0 || n == 1 => -6,
        2 if fits(8) => -8,
        3 if fits(16) => -8,
        4 if fits(24) => -8,
        5 if fits(32) => -8,
        6 if fits(48) => -8,
        7 => match crate::bytes::f64_at(bytes, 0) {
            Some(r) if r == 0.0 || (1e-12..1e18).contains(&r.abs()) => 2,
            Some(r) if r.is_finite() && (1e-60..1e60).contains(&r.abs()) => -4,
            _ => -14,
        },
        _ => 0,
    }
}

/// How the values of a record read: bits, whether texts are texts, whether integers are near the live ones. `payload` may end before the record does.
pub(crate) fn values(shape: &Shape, fields: &[Field], payload: &[u8], encoding: Encoding) -> (i32, bool, bool) {
    let (mut texts, mut bits, mut clean, mut near) = (0, 0, true, true);
    for (column, f) in shape.columns.iter().zip(fields) {
        let (start, len) = (idx(f.start), idx(f.len));
        let Some(rest) = payload.get(start..) else { break };
        let whole = rest.len() >= len;
        let bytes = rest.get(..len).unwrap_or(rest);
        if f.serial >= 13 && f.serial & 1 == 1 {
            let (b, ok) = text(bytes, whole, encoding, column.odd_text);
            if b < 0 {
                bits += b;
            } else {
                texts += b;
            }
            clean &= ok;
        } else if whole && (1..=7).contains(&f.serial) {
            let b = number(f.serial, bytes);
            bits += b;
            if f.serial != 7 {
                let b = column.int_bits(crate::bytes::int_be(bytes));
                bits += b;
                near &= b > -7;
            }
            // SQLite never writes an integer in more bytes than it needs.
            clean &= b > -8;
        }
    }
    (bits + texts.min(TEXT_BITS), clean, near)
}

/// Bits of serial types and values together for one shape.
pub(crate) fn one(shapes: &Shapes, at: usize, fields: &[Field], payload: &[u8]) -> Option<Fit> {
    let shape = shapes.all.get(at)?;
    let serial_bits = shape.bits(fields.iter().map(|f| f.serial), fields.len())?;
    if serial_bits <= NEVER {
        return None;
    }
    let (value_bits, clean, near) = values(shape, fields, payload, shapes.encoding);
    Some(Fit { shape: at, bits: serial_bits + value_bits, serials: serial_bits, clean, near })
}

/// The shapes that a whole record fits, best first; at most four.
pub(crate) fn all(shapes: &Shapes, kind: PageKind, fields: &[Field], payload: &[u8], rowid: Option<i64>, prior: &Prior) -> Vec<Fit> {
    let mut out: Vec<Fit> = Vec::new();
    for (i, shape) in shapes.all.iter().enumerate() {
        if shape.kind != kind || !shape.fits_width(fields.len()) {
            continue;
        }
        let Some(mut fit) = one(shapes, i, fields, payload) else { continue };
        fit.bits += prior.of(i) + rowid.map_or(0, |r| shape.rowid_bits(r));
        out.push(fit);
    }
    out.sort_by_key(|f| (std::cmp::Reverse(f.bits), f.shape));
    out.truncate(4);
    out
}
