//! The fingerprint of index entries: an order-independent sum by which an index is compared with its table in one pass.
//!
//! Both sides hash the values of (key columns, rowid or primary key) and add the hashes up. Equal sums and counts mean equal
//! multisets of entries, short of an accident of 2^-64. Values that SQLite holds equal in every collation hash alike: 1 and
//! 1.0 do, `A` and `a` do not, since an index that holds another spelling than its row disagrees with it.

use crate::format::Value;
use crate::format::value::integral;
use crate::ids::wide;

const K0: u64 = 0x9e37_79b9_7f4a_7c15;
const K1: u64 = 0xd6e8_feb8_6659_fd93;
const K2: u64 = 0xa076_1d64_78bd_642f;
const K3: u64 = 0xe703_7ed1_a0b4_28db;

#[inline]
fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a).wrapping_mul(u128::from(b));
    let low = u64::try_from(product & u128::from(u64::MAX)).unwrap_or(0);
    let high = u64::try_from(product >> 64).unwrap_or(0);
    low ^ high
}

/// The hash of one entry in the making.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntryHash(u64);

impl Default for EntryHash {
    fn default() -> Self {
        EntryHash(K0)
    }
}

impl EntryHash {
    /// Adds the next value of the entry.
    #[inline]
    #[must_use]
    pub fn add(self, value: Value<'_>) -> EntryHash {
        let h = self.0;
        EntryHash(match value {
            Value::Null => mix(h ^ K1, K3),
            Value::Int(n) => mix(h ^ u64::from_ne_bytes(n.to_ne_bytes()), K2),
            Value::Real(r) => match integral(r) {
                Some(n) => mix(h ^ u64::from_ne_bytes(n.to_ne_bytes()), K2),
                None => mix(h ^ r.to_bits(), K3),
            },
            Value::Text(b) => bytes(h ^ K0, b),
            Value::Blob(b) => bytes(h ^ K1, b),
        })
    }

    /// The hash as a number.
    #[must_use]
    pub fn get(self) -> u64 {
        self.0
    }
}

#[inline]
fn bytes(seed: u64, b: &[u8]) -> u64 {
    let mut h = mix(seed ^ wide(b.len()), K1);
    let (words, rest) = b.as_chunks::<8>();
    for word in words {
        h = mix(h ^ u64::from_le_bytes(*word), K2);
    }
    let mut last = [0_u8; 8];
    for (place, byte) in last.iter_mut().zip(rest) {
        *place = *byte;
    }
    mix(h ^ u64::from_le_bytes(last), K3)
}

/// How many entries there are and the sum of their hashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EntrySum {
    /// Entries added.
    pub count: u64,
    sum: u128,
}

impl EntrySum {
    /// Adds an entry.
    #[inline]
    pub fn add(&mut self, entry: EntryHash) {
        self.count = self.count.saturating_add(1);
        let spread = u128::from(entry.0 | 1).wrapping_mul(0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645);
        self.sum = self.sum.wrapping_add(spread ^ (spread >> 64));
    }

    /// Adds the entries that another worker counted.
    pub fn merge(&mut self, other: EntrySum) {
        self.count = self.count.saturating_add(other.count);
        self.sum = self.sum.wrapping_add(other.sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(entries: &[&[Value<'_>]]) -> EntrySum {
        let mut s = EntrySum::default();
        for e in entries {
            s.add(e.iter().fold(EntryHash::default(), |h, v| h.add(*v)));
        }
        s
    }

    #[test]
    fn sums_tell_multisets_apart_and_ignore_order() {
        let a: &[Value<'_>] = &[Value::Text(b"x"), Value::Int(1)];
        let b: &[Value<'_>] = &[Value::Text(b"x"), Value::Int(2)];
        let c: &[Value<'_>] = &[Value::Blob(b"x"), Value::Int(2)];
        let d: &[Value<'_>] = &[Value::Text(b"x"), Value::Real(2.0)];
        assert_eq!(sum(&[a, b]), sum(&[b, a]));
        assert_ne!(sum(&[a, b]), sum(&[a, c]));
        assert_ne!(sum(&[a, a]), sum(&[b, b]));
        assert_eq!(sum(&[a, b]), sum(&[d, a]));
        assert_ne!(sum(&[&[Value::Text(b"a"), Value::Text(b"")]]), sum(&[&[Value::Text(b""), Value::Text(b"a")]]));
    }
}
