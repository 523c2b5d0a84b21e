//! Checked reads of big-endian numbers and varints; the one place that knows byte orders.
//!
//! Every read takes an offset and answers `None` when the bytes are not there, so that no caller indexes evidence.

use byteorder::{BigEndian, ByteOrder, LittleEndian};

use crate::ids::idx;

/// `len` bytes from `at`, or `None` when they are not all there.
#[must_use]
#[inline]
pub fn slice(b: &[u8], at: usize, len: usize) -> Option<&[u8]> {
    b.get(at..at.checked_add(len)?)
}

/// The byte at `at`.
#[must_use]
#[inline]
pub fn u8_at(b: &[u8], at: usize) -> Option<u8> {
    b.get(at).copied()
}

/// The big-endian 16-bit number at `at`.
#[must_use]
#[inline]
pub fn u16_at(b: &[u8], at: usize) -> Option<u16> {
    slice(b, at, 2).map(BigEndian::read_u16)
}

/// The big-endian 32-bit number at `at`.
#[must_use]
#[inline]
pub fn u32_at(b: &[u8], at: usize) -> Option<u32> {
    slice(b, at, 4).map(BigEndian::read_u32)
}

/// The little-endian 32-bit number at `at` (WAL checksums written on such machines, `-shm`).
#[must_use]
#[inline]
pub fn u32_le_at(b: &[u8], at: usize) -> Option<u32> {
    slice(b, at, 4).map(LittleEndian::read_u32)
}

/// The little-endian 16-bit number at `at` (FTS5 segment leaves do not use it; `-shm` does).
#[must_use]
#[inline]
pub fn u16_le_at(b: &[u8], at: usize) -> Option<u16> {
    slice(b, at, 2).map(LittleEndian::read_u16)
}

/// The big-endian 64-bit number at `at`.
#[must_use]
#[inline]
pub fn u64_at(b: &[u8], at: usize) -> Option<u64> {
    slice(b, at, 8).map(BigEndian::read_u64)
}

/// A big-endian two's-complement integer that fills the whole slice of 1 to 8 bytes; 0 for an empty slice.
#[must_use]
#[inline]
pub fn int_be(b: &[u8]) -> i64 {
    if b.is_empty() { 0 } else { BigEndian::read_int(b, b.len().min(8)) }
}

/// The IEEE 754 double in 8 big-endian bytes at `at`.
#[must_use]
#[inline]
pub fn f64_at(b: &[u8], at: usize) -> Option<f64> {
    slice(b, at, 8).map(BigEndian::read_f64)
}

/// Writes a big-endian 16-bit number; `false` when it does not fit.
pub fn put_u16(b: &mut [u8], at: usize, n: u16) -> bool {
    match at.checked_add(2).and_then(|end| b.get_mut(at..end)) {
        Some(place) => {
            BigEndian::write_u16(place, n);
            true
        }
        None => false,
    }
}

/// Writes a big-endian 32-bit number; `false` when it does not fit.
pub fn put_u32(b: &mut [u8], at: usize, n: u32) -> bool {
    match at.checked_add(4).and_then(|end| b.get_mut(at..end)) {
        Some(place) => {
            BigEndian::write_u32(place, n);
            true
        }
        None => false,
    }
}

/// The varint at `at` and its length in bytes, 1 to 9 (file format document, section 1.6).
///
/// The first eight bytes carry seven bits each, the ninth all eight. `None` when the slice ends within it.
#[must_use]
#[inline]
pub fn varint(b: &[u8], at: usize) -> Option<(u64, usize)> {
    let rest = b.get(at..)?;
    let first = *rest.first()?;
    if first < 0x80 {
        return Some((u64::from(first), 1));
    }
    varint_long(rest)
}

fn varint_long(rest: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0_u64;
    for (i, &byte) in rest.iter().take(8).enumerate() {
        value = (value << 7) | u64::from(byte & 0x7f);
        if byte < 0x80 {
            return Some((value, i.saturating_add(1)));
        }
    }
    Some(((value << 8) | u64::from(*rest.get(8)?), 9))
}

/// The varint at `at` as the two's-complement number it is for rowids and integer keys.
#[must_use]
#[inline]
pub fn varint_i64(b: &[u8], at: usize) -> Option<(i64, usize)> {
    varint(b, at).map(|(n, len)| (i64::from_ne_bytes(n.to_ne_bytes()), len))
}

/// How many bytes the varint of `n` takes.
#[must_use]
#[inline]
pub fn varint_len(n: u64) -> usize {
    match n {
        0..=0x7f => 1,
        0x80..=0x3fff => 2,
        0x4000..=0x1f_ffff => 3,
        0x20_0000..=0x0fff_ffff => 4,
        0x1000_0000..=0x07_ffff_ffff => 5,
        0x08_0000_0000..=0x03ff_ffff_ffff => 6,
        0x0400_0000_0000..=0x01_ffff_ffff_ffff => 7,
        0x02_0000_0000_0000..=0xff_ffff_ffff_ffff => 8,
        _ => 9,
    }
}

/// Appends the varint of `n`, in the shortest form, as SQLite writes it.
#[inline]
pub fn put_varint(out: &mut Vec<u8>, n: u64) {
    let [.., low] = n.to_be_bytes();
    if n < 0x80 {
        out.push(low);
        return;
    }
    let len = varint_len(n);
    let mut buf = [0_u8; 9];
    let mut rest = n;
    if len == 9 {
        buf[8] = low;
        rest >>= 8;
        for place in buf.iter_mut().take(8).rev() {
            let [.., byte] = rest.to_be_bytes();
            *place = byte | 0x80;
            rest >>= 7;
        }
        out.extend_from_slice(&buf);
        return;
    }
    let mut last = true;
    for place in buf.iter_mut().take(len).rev() {
        let [.., byte] = rest.to_be_bytes();
        *place = if last { byte & 0x7f } else { byte | 0x80 };
        last = false;
        rest >>= 7;
    }
    out.extend_from_slice(buf.get(..len).unwrap_or_default());
}

/// Appends the varint of a signed number (rowids).
#[inline]
pub fn put_varint_i64(out: &mut Vec<u8>, n: i64) {
    put_varint(out, u64::from_ne_bytes(n.to_ne_bytes()));
}

/// A 32-bit number as an offset; a convenience beside the reads above.
#[must_use]
#[inline]
pub fn usize_at(b: &[u8], at: usize) -> Option<usize> {
    u32_at(b, at).map(idx)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_round_trip_at_every_length() {
        let mut edges = vec![0, u64::MAX];
        for bits in 0..64 {
            edges.extend([1_u64 << bits, (1_u64 << bits) - 1, (1_u64 << bits) + 1]);
        }
        for n in edges {
            let mut out = Vec::new();
            put_varint(&mut out, n);
            assert_eq!(out.len(), varint_len(n), "{n:#x}");
            assert_eq!(varint(&out, 0), Some((n, out.len())), "{n:#x}");
            for cut in 0..out.len() {
                assert_eq!(varint(&out[..cut], 0), None);
            }
        }
    }

    #[test]
    fn reads_end_at_the_slice() {
        let b = [1, 2, 3];
        assert_eq!(u16_at(&b, 1), Some(0x0203));
        assert_eq!(u16_at(&b, 2), None);
        assert_eq!(u32_at(&b, 0), None);
        assert_eq!(u16_at(&b, usize::MAX), None);
        assert_eq!(int_be(&[0xff, 0xfe]), -2);
    }
}
