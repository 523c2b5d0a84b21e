//! Cells whose first four bytes a freeblock header took: what they were, from the bytes behind, the declaration and the
//! length.
//!
//! A cell of a table is (payload length, rowid, record); of a WITHOUT ROWID table (payload length, record). Four bytes of
//! that are gone, so that, by the lengths of the two numbers in front, the record's header is whole, lacks its length, or
//! lacks its length and one or two bytes of serial types. What is missing follows from the length of the cell where one
//! serial type is gone, and is ranked by what the columns hold elsewhere where two are.

use crate::bytes::{put_varint, u8_at, varint, varint_len};
use crate::carve::fit::{self, Shapes};
use crate::format::record::{MAX_HEADER, serial_len};
use crate::format::{Field, PageKind, Split};
use crate::ids::{idx, narrow, small, wide};

/// Solutions of two unknown serial types that are looked at value by value.
const LOOKED_AT: usize = 24;
/// Solutions as good as the best up to so many bits are counted.
const CLOSE: i32 = 6;

/// A record whose header was put together again.
#[derive(Debug, Clone)]
pub(crate) struct Head {
    /// Where its cell ends, the page number of an overflow chain included.
    pub(crate) end: usize,
    /// The header, as it was.
    pub(crate) header: Vec<u8>,
    /// Where the values begin.
    pub(crate) body_at: usize,
    /// Where the local part of the payload ends.
    pub(crate) local_end: usize,
    pub(crate) payload_len: u64,
    pub(crate) shape: usize,
    pub(crate) bits: i32,
    pub(crate) serials: i32,
    pub(crate) clean: bool,
    /// How many solutions are about as good.
    pub(crate) solutions: u32,
    pub(crate) fields: Vec<Field>,
}

impl Head {
    /// Whether any value of it is more than a NULL or one of two numbers.
    pub(crate) fn tells(&self) -> bool {
        self.fields.iter().any(|f| !matches!(f.serial, 0 | 8 | 9))
    }
}

/// The fields of a record with these serial types.
fn fields_of(serials: &[u64], header_len: u64) -> Vec<Field> {
    let mut at = header_len;
    serials
        .iter()
        .map(|&serial| {
            let len = serial_len(serial);
            let field = Field { serial, start: u32::try_from(at).unwrap_or(u32::MAX), len: u32::try_from(len).unwrap_or(u32::MAX) };
            at = at.saturating_add(len);
            field
        })
        .collect()
}

/// What is tried at one place.
pub(crate) struct Tried<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) split: &'a Split,
    pub(crate) shapes: &'a Shapes,
    pub(crate) shape: usize,
    /// Where the cell begins.
    pub(crate) start: usize,
    /// Where it may end, if nothing in it says so.
    pub(crate) ends: &'a [usize],
    /// The first byte that is not its own for certain.
    pub(crate) limit: usize,
    /// A freeblock begins here now.
    pub(crate) is_known: bool,
}

impl Tried<'_> {
    /// Everything that the bytes may have been, best first. Those that end behind `limit` are cut.
    pub(crate) fn solve(&self, out: &mut Vec<Head>) {
        let Some(shape) = self.shapes.all.get(self.shape) else { return };
        let table = shape.kind == PageKind::TableLeaf;
        if table {
            for hp in 4..=12 {
                self.with_length(hp, out);
            }
        }
        let mut widths: Vec<usize> = vec![shape.columns.len()];
        widths.extend(shape.widths.iter().rev().copied().filter(|n| shape.fits_width(*n) && *n != shape.columns.len()).take(3));
        for n in widths {
            self.without_length(3, n, out);
            if table {
                self.lost(2, 2, n, out);
            } else {
                self.lost(2, 2, n, out);
                self.lost(1, 1, n, out);
            }
        }
    }

    /// The varints from `at`, `n` of them or up to `end`.
    fn serials(&self, mut at: usize, n: Option<usize>, end: Option<usize>) -> Option<(Vec<u64>, usize)> {
        let mut out = Vec::new();
        loop {
            if n.is_some_and(|n| out.len() >= n) || end.is_some_and(|e| at >= e) {
                break;
            }
            let (serial, len) = varint(self.bytes, at)?;
            at = at.saturating_add(len);
            out.push(serial);
        }
        (end.is_none() || end == Some(at)).then_some((out, at))
    }

    /// The record header is whole: it begins `hp` bytes behind the start.
    fn with_length(&self, hp: usize, out: &mut Vec<Head>) -> Option<()> {
        let shape = self.shapes.all.get(self.shape)?;
        let at = self.start.saturating_add(hp);
        let first = u8_at(self.bytes, at)?;
        if usize::from(first) < shape.fewest.saturating_add(1).min(0x80) {
            return None;
        }
        let (header_len, n) = varint(self.bytes, at)?;
        if header_len > MAX_HEADER {
            return None;
        }
        let (serials, body_at) = self.serials(at.saturating_add(n), None, Some(at.saturating_add(narrow(header_len))))?;
        if !shape.fits_width(serials.len()) {
            return None;
        }
        let payload_len = serials.iter().fold(header_len, |sum, s| sum.saturating_add(serial_len(*s)));
        let rowid_len = hp.checked_sub(varint_len(payload_len)).filter(|b| (1..=9).contains(b))?;
        // What is left of the rowid is the end of a varint.
        for i in 4..hp {
            let byte = u8_at(self.bytes, self.start.saturating_add(i))?;
            let last = i == hp.saturating_sub(1);
            if (last && rowid_len < 9 && byte >= 0x80) || (!last && byte < 0x80) {
                return None;
            }
        }
        let header = self.bytes.get(at..body_at)?.to_vec();
        self.add(header, &serials, header_len, body_at, payload_len, 8, 1, out)
    }

    /// Only the length of the record header is gone.
    fn without_length(&self, hp: usize, n: usize, out: &mut Vec<Head>) -> Option<()> {
        let shape = self.shapes.all.get(self.shape)?;
        let table = shape.kind == PageKind::TableLeaf;
        let long = n > 125;
        let from = self.start.saturating_add(if long { 5 } else { 4 });
        let (serials, body_at) = self.serials(from, Some(n), None)?;
        let header_len = wide(body_at.checked_sub(self.start.saturating_add(hp))?);
        if varint_len(header_len) != if long { 2 } else { 1 } {
            return None;
        }
        if long && u64::from(u8_at(self.bytes, self.start.saturating_add(4))?) != header_len & 0x7f {
            return None;
        }
        let payload_len = serials.iter().fold(header_len, |sum, s| sum.saturating_add(serial_len(*s)));
        let a = varint_len(payload_len);
        if if table { !(1..=2).contains(&a) } else { a != hp } {
            return None;
        }
        let mut header = Vec::new();
        put_varint(&mut header, header_len);
        header.extend_from_slice(self.bytes.get(from..body_at)?);
        self.add(header, &serials, header_len, body_at, payload_len, 0, 1, out)
    }

    /// The length of the record header and one or two bytes of serial types are gone. `a` is the length of the payload's
    /// length.
    fn lost(&self, hp: usize, a: usize, n: usize, out: &mut Vec<Head>) -> Option<()> {
        let shape = self.shapes.all.get(self.shape)?;
        let table = shape.kind == PageKind::TableLeaf;
        let a = if table { 1 } else { a };
        // (bytes of the serial type, how many of them are gone), for each that is touched.
        let patterns: &[&[(usize, usize)]] = if 3_usize.saturating_sub(hp) == 1 {
            &[&[(1, 1)], &[(2, 1)], &[(3, 1)]]
        } else {
            &[&[(1, 1), (1, 1)], &[(1, 1), (2, 1)], &[(2, 2)]]
        };
        for pattern in patterns {
            self.by_length(hp, a, n, pattern, out);
        }
        Some(())
    }

    fn by_length(&self, hp: usize, a: usize, n: usize, pattern: &[(usize, usize)], out: &mut Vec<Head>) -> Option<()> {
        let shape = self.shapes.all.get(self.shape)?;
        if pattern.len() > n {
            return None;
        }
        // The bytes that are left of touched serial types follow the gap directly; only the last of them has any.
        let left: usize = pattern.iter().map(|(len, gone)| len.saturating_sub(*gone)).sum();
        let from = self.start.saturating_add(4);
        let rest_at = from.saturating_add(left);
        let (known, body_at) = self.serials(rest_at, Some(n.saturating_sub(pattern.len())), None)?;
        let header_len = wide(body_at.checked_sub(self.start.saturating_add(hp))?);
        if header_len > 0x7f {
            return None;
        }
        let tail = match left {
            0 => None,
            _ => Some(self.tail(from, left)?),
        };
        let known_len = known.iter().fold(0, |sum: u64, s| sum.saturating_add(serial_len(*s)));
        let known_bits: i32 = shape.columns.iter().skip(pattern.len()).zip(&known).map(|(c, s)| c.bits(*s)).sum();
        if known_bits <= -500 {
            return None;
        }
        if let (true, [one]) = (self.is_known, pattern) {
            self.cut_off((hp, a), *one, tail, (header_len, body_at), &known, out);
        }
        for &end in self.ends {
            let payload_len = wide(end.saturating_sub(self.start.saturating_add(hp)));
            if varint_len(payload_len) != a || payload_len > u64::from(self.split.max_local(shape.kind)) {
                continue;
            }
            let Some(rest) = payload_len.checked_sub(header_len.saturating_add(known_len)) else { continue };
            let mut found: Vec<(i32, Vec<u64>)> = Vec::new();
            match pattern {
                [one] => self.singles(0, *one, tail, rest, &mut |s, bits| found.push((bits, vec![s]))),
                [one, two] => {
                    for first in 0..=rest {
                        self.singles(0, *one, None, first, &mut |s0, b0| {
                            self.singles(1, *two, tail, rest.saturating_sub(first), &mut |s1, b1| found.push((b0 + b1, vec![s0, s1])));
                        });
                    }
                }
                _ => {}
            }
            found.sort_by_key(|(bits, serials)| (std::cmp::Reverse(*bits), serials.clone()));
            found.truncate(LOOKED_AT);
            let mut heads = Vec::new();
            for (_, unknown) in found {
                let serials: Vec<u64> = unknown.iter().chain(&known).copied().collect();
                let mut header = Vec::new();
                put_varint(&mut header, header_len);
                for s in &serials {
                    put_varint(&mut header, *s);
                }
                self.add(header, &serials, header_len, body_at, payload_len, 0, 1, &mut heads);
            }
            heads.sort_by_key(|h| (!h.clean, std::cmp::Reverse(h.bits)));
            let close =
                heads.first().map_or(0, |best| heads.iter().filter(|h| h.clean == best.clean && h.bits + CLOSE >= best.bits).count());
            if let Some(mut best) = heads.into_iter().next() {
                best.solutions = small(close).max(1);
                out.push(best);
            }
        }
        Some(())
    }

    /// A cell of which the end is gone as well: its first value is a number of the size that is usual.
    fn cut_off(
        &self,
        (hp, a): (usize, usize),
        pattern: (usize, usize),
        tail: Option<u64>,
        (header_len, body_at): (u64, usize),
        known: &[u64],
        out: &mut Vec<Head>,
    ) -> Option<()> {
        let known_len = known.iter().fold(0, |sum: u64, s| sum.saturating_add(serial_len(*s)));
        let mut best: Option<(i32, u64)> = None;
        for len in [0, 1, 2, 3, 4, 6, 8] {
            let payload_len = header_len.saturating_add(known_len).saturating_add(len);
            if varint_len(payload_len) != a {
                continue;
            }
            self.singles(0, pattern, tail, len, &mut |serial, bits| {
                if serial < 12 && best.is_none_or(|(b, _)| bits > b) {
                    best = Some((bits, serial));
                }
            });
        }
        let (_, first) = best.filter(|(bits, _)| *bits > 0)?;
        let payload_len = header_len.saturating_add(known_len).saturating_add(serial_len(first));
        let end = self.start.saturating_add(hp).saturating_add(narrow(payload_len));
        if end <= self.limit {
            return None;
        }
        let serials: Vec<u64> = std::iter::once(first).chain(known.iter().copied()).collect();
        let mut header = Vec::new();
        put_varint(&mut header, header_len);
        for s in &serials {
            put_varint(&mut header, *s);
        }
        self.add(header, &serials, header_len, body_at, payload_len, 0, 1, out)
    }

    /// The low bits that are left of a serial type: the last bytes of its varint.
    fn tail(&self, at: usize, len: usize) -> Option<u64> {
        let mut value = 0;
        for i in 0..len {
            let byte = u8_at(self.bytes, at.saturating_add(i))?;
            if (byte >= 0x80) == (i == len.saturating_sub(1)) {
                return None;
            }
            value = (value << 7) | u64::from(byte & 0x7f);
        }
        Some(value)
    }

    /// The serial types of a length that column `column` may have, written in the bytes of the pattern.
    fn singles(&self, column: usize, pattern: (usize, usize), tail: Option<u64>, len: u64, each: &mut dyn FnMut(u64, i32)) {
        let Some(column) = self.shapes.all.get(self.shape).and_then(|s| s.columns.get(column)) else { return };
        let fixed: &[u64] = match len {
            0 => &[0, 8, 9],
            1 => &[1],
            2 => &[2],
            3 => &[3],
            4 => &[4],
            6 => &[5],
            8 => &[6, 7],
            _ => &[],
        };
        let text = len.saturating_mul(2).saturating_add(13);
        for serial in fixed.iter().copied().chain([text, text.saturating_sub(1)]) {
            if varint_len(serial) != pattern.0 {
                continue;
            }
            let shift = small(pattern.0.saturating_sub(pattern.1)).saturating_mul(7);
            if tail.is_some_and(|t| serial & ((1 << shift) - 1) != t) {
                continue;
            }
            let bits = column.bits(serial);
            if bits > -500 {
                each(serial, bits);
            }
        }
    }

    fn add(
        &self,
        header: Vec<u8>,
        serials: &[u64],
        header_len: u64,
        body_at: usize,
        payload_len: u64,
        bonus: i32,
        solutions: u32,
        out: &mut Vec<Head>,
    ) -> Option<()> {
        let shape = self.shapes.all.get(self.shape)?;
        if payload_len > 0x7fff_ffff {
            return None;
        }
        let fields = fields_of(serials, header_len);
        let local = idx(self.split.local_len(shape.kind, payload_len));
        let local_end = body_at.saturating_add(local).checked_sub(narrow(header_len))?;
        let end = if payload_len > wide(local) { local_end.saturating_add(4) } else { local_end };
        let have = self.bytes.get(body_at..local_end.min(self.limit).max(body_at))?;
        let mut payload = header.clone();
        payload.extend_from_slice(have);
        let fit = fit::one(self.shapes, self.shape, &fields, &payload)?;
        let bits = fit.bits + bonus;
        out.push(Head {
            end,
            header,
            body_at,
            local_end,
            payload_len,
            shape: self.shape,
            bits,
            serials: fit.serials,
            // Nothing but the values speaks for a head that was made up.
            clean: fit.clean && fit.near,
            solutions,
            fields,
        });
        Some(())
    }
}
