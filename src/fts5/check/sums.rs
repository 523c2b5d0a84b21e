//! Sums that tell whether the index says of a row what its text says: order does not matter, so one pass over each side
//! is enough.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::fts5::config::Detail;
use crate::fts5::segment::MAIN_INDEX;
use crate::fts5::tokenizer::{MAX_TOKEN, Scratch, Tokenizer, utf8};
use crate::ids::wide;

/// What one side says of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sum {
    /// Over all entries, wrapping.
    pub hash: u64,
    /// Entries of the main index.
    pub tokens: u64,
}

const K: u64 = 0x9e37_79b9_7f4a_7c15;

fn finish(mut h: u64) -> u64 {
    h ^= h >> 32;
    h = h.wrapping_mul(0xd6e8_feb8_6659_fd93);
    h ^= h >> 29;
    h = h.wrapping_mul(0xd6e8_feb8_6659_fd93);
    h ^ h >> 32
}

/// A number for a term with its index byte.
pub fn term(index: u8, token: &[u8]) -> u64 {
    let mut h = u64::from(index).wrapping_add(1).wrapping_mul(K);
    let (words, rest) = token.as_chunks::<8>();
    for w in words {
        h = finish(h ^ u64::from_le_bytes(*w)).wrapping_mul(K);
    }
    let mut last = [0; 8];
    for (place, b) in last.iter_mut().zip(rest) {
        *place = *b;
    }
    finish(h ^ u64::from_le_bytes(last) ^ wide(token.len()).rotate_left(48))
}

/// A number for an entry.
pub fn entry(term: u64, column: u32, position: u32) -> u64 {
    finish(term ^ (u64::from(column) << 32 | u64::from(position)).wrapping_mul(K))
}

/// A number for the token counts of a row.
pub fn counts(counts: impl IntoIterator<Item = u64>) -> u64 {
    counts.into_iter().fold(K, |h, n| finish(h ^ n).wrapping_mul(K))
}

/// What the index should say of a row.
#[derive(Debug)]
pub struct Expected<'a> {
    pub tokenizer: &'a Tokenizer,
    pub detail: Detail,
    pub prefixes: &'a [u32],
    pub indexed: &'a [bool],
}

impl Expected<'_> {
    /// The sum over a row and its token counts.
    pub fn row(&self, columns: &[Option<&[u8]>], scratch: &mut Scratch, tokens: &mut Vec<u64>) -> Sum {
        let mut sum = Sum::default();
        let mut set = Vec::new();
        tokens.clear();
        for ((column, indexed), value) in (0_u32..).zip(self.indexed).zip(columns) {
            let mut position = 0_u32;
            if let Some(text) = value.filter(|_| *indexed) {
                self.tokenizer.tokenize(text, scratch, |t| {
                    let token = t.text.get(..MAX_TOKEN).unwrap_or(t.text);
                    self.add(MAIN_INDEX, token, column, position, &mut sum, &mut set);
                    for (index, &length) in (MAIN_INDEX.saturating_add(1)..).zip(self.prefixes) {
                        if let Some(prefix) = utf8::prefix(token, length).filter(|p| !p.is_empty()) {
                            self.add(index, prefix, column, position, &mut sum, &mut set);
                        }
                    }
                    position = position.saturating_add(1);
                });
            }
            sum.tokens = sum.tokens.wrapping_add(position.into());
            tokens.push(position.into());
        }
        set.sort_unstable();
        set.dedup();
        sum.hash = set.into_iter().fold(sum.hash, u64::wrapping_add);
        sum
    }

    fn add(&self, index: u8, token: &[u8], column: u32, position: u32, sum: &mut Sum, set: &mut Vec<u64>) {
        let term = term(index, token);
        match self.detail {
            Detail::Full => sum.hash = sum.hash.wrapping_add(entry(term, column, position)),
            // Said once, however often it occurs.
            Detail::Columns => set.push(entry(term, column, 0)),
            Detail::None => set.push(entry(term, 0, 0)),
        }
    }
}

/// Hashes rowids; they are no secret and their order is sorted away.
#[derive(Debug, Default, Clone, Copy)]
pub struct RowidHasher(u64);

impl Hasher for RowidHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &b in bytes {
            self.0 = (self.0 ^ u64::from(b)).wrapping_mul(K);
        }
    }

    fn write_i64(&mut self, n: i64) {
        self.0 = finish(u64::from_ne_bytes(n.to_ne_bytes()));
    }
}

/// A map by rowid.
pub type ByRowid<T> = HashMap<i64, T, BuildHasherDefault<RowidHasher>>;
