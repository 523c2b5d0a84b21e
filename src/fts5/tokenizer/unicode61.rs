//! The `unicode61` tokenizer, on FTS5's own frozen tables.

use std::sync::OnceLock;

use super::{Token, utf8};
use crate::fts5::unicode61_table::{BASES_1, BASES_2, CATEGORIES, DIACRITICS, FOLDS, NAMES};
use crate::ids::idx;

/// The argument `remove_diacritics`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RemoveDiacritics {
    /// 0: letters keep them.
    Not,
    /// 1: letters with one diacritic lose it, those with several keep all. The default.
    #[default]
    Simple,
    /// 2: all letters lose all.
    Complex,
}

/// All code points below this are in the tables of folds; the others fold to themselves.
const FOLDED: usize = 0x1_0450;
const CODE_POINTS: usize = 0x11_0000;
/// The category of the table that stands for upper and lower case letters in turn.
const ALTERNATING: u8 = 31;

fn table(mode: RemoveDiacritics) -> &'static [u32] {
    static TABLES: [OnceLock<Vec<u32>>; 3] = [const { OnceLock::new() }; 3];
    let [not, simple, complex] = &TABLES;
    let (cell, bases): (_, &[(u32, u8)]) = match mode {
        RemoveDiacritics::Not => (not, &[]),
        RemoveDiacritics::Simple => (simple, BASES_1),
        RemoveDiacritics::Complex => (complex, BASES_2),
    };
    cell.get_or_init(|| {
        let mut table: Vec<u32> = (0_u32..).take(FOLDED).collect();
        for &(first, length, step, add) in FOLDS {
            for c in (first..first.saturating_add(length)).step_by(idx(step)) {
                if let Some(place) = table.get_mut(idx(c)) {
                    *place = c.saturating_add_signed(add);
                }
            }
        }
        for &(c, base) in bases {
            if let Some(place) = table.get_mut(idx(c)) {
                *place = u32::from(base);
            }
        }
        table
    })
}

/// The lower-case form of a code point, without its diacritics as far as the mode says; 0 for one that vanishes.
#[must_use]
#[inline]
pub fn fold(c: u32, mode: RemoveDiacritics) -> u32 {
    table(mode).get(idx(c)).copied().unwrap_or(c)
}

/// Whether another code point than itself folds to this one, so that it may stand for that.
#[must_use]
pub fn is_folded_to(c: u32, mode: RemoveDiacritics) -> bool {
    static IMAGES: [OnceLock<Vec<u32>>; 3] = [const { OnceLock::new() }; 3];
    let [not, simple, complex] = &IMAGES;
    let cell = match mode {
        RemoveDiacritics::Not => not,
        RemoveDiacritics::Simple => simple,
        RemoveDiacritics::Complex => complex,
    };
    let images = cell.get_or_init(|| {
        let mut images: Vec<u32> = (0_u32..).zip(table(mode)).filter(|(c, f)| c != *f).map(|(_, f)| *f).collect();
        images.sort_unstable();
        images.dedup();
        images
    });
    images.binary_search(&c).is_ok()
}

/// A set of code points.
#[derive(Debug, Clone)]
struct Set(Vec<u64>);

impl Set {
    #[inline]
    fn has(&self, c: u32) -> bool {
        self.0.get(idx(c >> 6)).is_some_and(|word| word >> (c & 63) & 1 == 1)
    }

    fn put(&mut self, c: u32, is: bool) {
        if let Some(word) = self.0.get_mut(idx(c >> 6)) {
            let bit = 1_u64 << (c & 63);
            *word = if is { *word | bit } else { *word & !bit };
        }
    }
}

/// What the tokenizer does with a byte below 0x80: 0 separates, others are the folded character.
type Ascii = [u8; 128];

#[derive(Debug, Clone)]
pub struct Unicode61 {
    ascii: Ascii,
    token: Set,
    /// Whether numbers beyond Unicode, which broken UTF-8 can make, are token characters: as unassigned ones are.
    unassigned: bool,
    mode: RemoveDiacritics,
}

impl Unicode61 {
    pub fn new(arguments: &[(&str, &str)]) -> Option<Unicode61> {
        let is = |name: &str, wanted: &str| name.eq_ignore_ascii_case(wanted);
        let categories = arguments.iter().rfind(|(name, _)| is(name, "categories")).map_or("L* N* Co", |(_, value)| value);
        let wanted = wanted(categories)?;
        let mut out = Unicode61::of_categories(&wanted);
        let by_category = out.token.clone();
        for (name, value) in arguments {
            if is(name, "remove_diacritics") {
                out.mode = match *value {
                    "0" => RemoveDiacritics::Not,
                    "1" => RemoveDiacritics::Simple,
                    "2" => RemoveDiacritics::Complex,
                    _ => return None,
                };
            } else if is(name, "tokenchars") {
                out.exceptions(value, true, &by_category);
            } else if is(name, "separators") {
                out.exceptions(value, false, &by_category);
            } else if !is(name, "categories") {
                return None;
            }
        }
        Some(out)
    }

    fn of_categories(wanted: &[bool; 32]) -> Unicode61 {
        let want = |category: u8| wanted.get(usize::from(category)).copied().unwrap_or(false);
        let unassigned = want(0);
        let mut token = Set(vec![if unassigned { u64::MAX } else { 0 }; CODE_POINTS >> 6]);
        for &(first, length, category) in CATEGORIES {
            for (turn, c) in (first..first.saturating_add(length)).enumerate() {
                let category = match category {
                    ALTERNATING if turn.is_multiple_of(2) => UPPER,
                    ALTERNATING => LOWER,
                    _ => category,
                };
                token.put(c, want(category));
            }
        }
        let mut ascii = [0; 128];
        for (b, place) in (0_u8..).zip(ascii.iter_mut()) {
            // NUL is never a token character.
            *place = if b != 0 && token.has(u32::from(b)) { b.to_ascii_lowercase() } else { 0 };
        }
        Unicode61 { ascii, token, unassigned, mode: RemoveDiacritics::default() }
    }

    /// Makes characters token characters or separators. Beyond ASCII only what its category did not say already counts,
    /// and what was turned once stays turned.
    fn exceptions(&mut self, value: &str, is: bool, by_category: &Set) {
        for c in value.chars().map(u32::from) {
            if let Some(place) = self.ascii.get_mut(idx(c)) {
                let [.., b] = c.to_be_bytes();
                *place = if is { b.to_ascii_lowercase() } else { 0 };
            } else if by_category.has(c) != is && !is_diacritic(c) {
                self.token.put(c, is);
            }
        }
    }

    pub fn mode(&self) -> RemoveDiacritics {
        self.mode
    }

    #[inline]
    fn is_token(&self, c: u32) -> bool {
        if idx(c) < CODE_POINTS { self.token.has(c) } else { self.unassigned }
    }

    #[inline]
    fn ascii(&self, b: u8) -> u8 {
        self.ascii.get(usize::from(b)).copied().unwrap_or(0)
    }

    pub fn tokenize(&self, text: &[u8], token: &mut Vec<u8>, each: &mut impl FnMut(Token<'_>)) {
        let folds = table(self.mode);
        let fold = |c: u32| folds.get(idx(c)).copied().unwrap_or(c);
        let mut at = 0_usize;
        loop {
            // Up to the first token character.
            let start;
            token.clear();
            loop {
                let Some(&b) = text.get(at) else { return };
                if b < 0x80 {
                    if self.ascii(b) != 0 {
                        start = at;
                        break;
                    }
                    at = at.saturating_add(1);
                } else {
                    let before = at;
                    let c = utf8::read(text, &mut at);
                    if self.is_token(c) {
                        start = before;
                        push(token, fold(c));
                        break;
                    }
                }
            }
            // Through the token; a separator behind it is used up.
            let mut end = at;
            while let Some(&b) = text.get(at) {
                if b < 0x80 {
                    let folded = self.ascii(b);
                    if folded == 0 {
                        break;
                    }
                    token.push(folded);
                    at = at.saturating_add(1);
                } else {
                    let c = utf8::read(text, &mut at);
                    if !self.is_token(c) && !is_diacritic(c) {
                        break;
                    }
                    push(token, fold(c));
                }
                end = at;
            }
            each(Token { text: token, start, end });
        }
    }
}

#[inline]
fn push(token: &mut Vec<u8>, c: u32) {
    if c != 0 {
        utf8::write(token, c);
    }
}

#[inline]
fn is_diacritic(c: u32) -> bool {
    (0x300..0x340).contains(&c) && DIACRITICS.binary_search(&c).is_ok()
}

const LOWER: u8 = 6;
const UPPER: u8 = 10;

/// The categories that a list such as `L* N* Co` names, by number. Any name makes unassigned code points token characters.
fn wanted(list: &str) -> Option<[bool; 32]> {
    let mut wanted = [false; 32];
    for word in list.split([' ', '\t']).filter(|w| !w.is_empty()) {
        // Only the first two characters count. Case letters "LC" are a category that no code point has by itself.
        let [major, minor, ..] = word.as_bytes() else { return None };
        let mut found = word.starts_with("LC");
        for (place, name) in wanted.iter_mut().zip(NAMES) {
            if let [a, b] = name.as_bytes()
                && a == major
                && (b == minor || *minor == b'*')
            {
                *place = true;
                found = true;
            }
        }
        if !found {
            return None;
        }
        wanted[0] = true;
    }
    Some(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_sound() {
        assert_eq!((NAMES[usize::from(LOWER)], NAMES[usize::from(UPPER)]), ("Ll", "Lu"));
        assert!(CATEGORIES.iter().zip(CATEGORIES.iter().skip(1)).all(|(a, b)| a.0 + a.1 <= b.0));
        assert!(FOLDS.iter().all(|&(first, length, ..)| idx(first + length) <= FOLDED));
        assert!(BASES_1.iter().chain(BASES_2).all(|&(c, _)| idx(c) < FOLDED));
        assert!(DIACRITICS.iter().all(|c| (0x300..0x340).contains(c)));
    }
}
