//! Sums that tell whether the index says of a row what its text says: order does not matter, so one pass over each side
//! is enough.

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

/// Spreads every bit over the whole number: the two halves of a product of twice the width, folded.
pub fn spread(h: u64) -> u64 {
    let product = u128::from(h ^ 0xd6e8_feb8_6659_fd93).wrapping_mul(u128::from(K));
    let (low, high) = (product & u128::from(u64::MAX), product >> 64);
    u64::try_from(low ^ high).unwrap_or(0)
}

/// A number for a term with its index byte.
pub fn term(index: u8, token: &[u8]) -> u64 {
    let mut h = u64::from(index).wrapping_add(1).wrapping_mul(K);
    let (words, rest) = token.as_chunks::<8>();
    for w in words {
        h = spread(h ^ u64::from_le_bytes(*w)).wrapping_mul(K);
    }
    spread(h ^ tail(rest) ^ wide(token.len()).rotate_left(48))
}

/// Fewer than eight bytes as a number; with their count it says all of them. Read in two halves that may overlap.
fn tail(bytes: &[u8]) -> u64 {
    match (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        (Some(first), Some(last)) => u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << 32,
        _ => bytes.iter().fold(0, |n, b| n << 8 | u64::from(*b)),
    }
}

/// A number for an entry.
pub fn entry(term: u64, column: u32, position: u32) -> u64 {
    spread(term ^ (u64::from(column) << 32 | u64::from(position)).wrapping_mul(K))
}

/// A number for the token counts of a row.
pub fn counts(counts: impl IntoIterator<Item = u64>) -> u64 {
    counts.into_iter().fold(K, |h, n| spread(h ^ n).wrapping_mul(K))
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
