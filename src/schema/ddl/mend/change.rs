//! Changes of one byte that may undo damage to a text.

use std::collections::BTreeSet;

use super::super::token::tokens;
use super::Known;
use super::words::WORDS;

/// Longest text whose own words are looked for in it.
const VOCABULARY: usize = 8 << 10;

pub(super) fn shown(byte: u8) -> String {
    if byte == b' ' { "a space".to_owned() } else { format!("`{}`", char::from(byte)) }
}

/// Another byte at one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Change {
    pub(super) cost: u32,
    pub(super) at: usize,
    pub(super) byte: u8,
    pub(super) word: bool,
}

impl Change {
    pub(super) fn apply(&self, text: &[u8]) -> Vec<u8> {
        let mut out = text.to_vec();
        if let Some(b) = out.get_mut(self.at) {
            *b = self.byte;
        }
        out
    }
}

/// The changes of one byte that may undo damage, the likeliest first: words of SQL and the names that the row has, with one
/// other letter; then what text is divided by, at bytes that no text has, at letters, at spaces.
pub(super) fn changes(text: &[u8], range: std::ops::Range<usize>, known: &Known<'_>) -> Vec<Change> {
    let mut out: BTreeSet<Change> = BTreeSet::new();
    let is_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b >= 0x80;
    let mut names: BTreeSet<Vec<u8>> = [known.name, known.table].iter().map(|n| n.to_vec()).collect();
    // A name that stands in the text more than once says what another place of it should be.
    if text.len() <= VOCABULARY {
        names.extend(tokens(text).filter(|t| t.is_name() && t.text.len() > 2).map(|t| t.name().as_bytes().to_vec()));
    }
    let words = WORDS.iter().map(|w| (w.as_bytes(), true)).chain(names.iter().filter(|n| n.len() > 1).map(|n| (n.as_slice(), false)));
    for (word, keyword) in words {
        for (at, window) in text.windows(word.len().max(1)).enumerate() {
            let mut differ = window.iter().zip(word).enumerate().filter(|(_, (a, b))| !a.eq_ignore_ascii_case(b));
            let (Some((place, (_, want))), None) = (differ.next(), differ.next()) else { continue };
            let edge = |b: Option<&u8>| b.is_none_or(|b| !is_word(*b));
            let before = at.checked_sub(1).and_then(|i| text.get(i));
            if !edge(before) || !edge(text.get(at.saturating_add(word.len()))) {
                continue;
            }
            let lower = window.iter().enumerate().any(|(i, b)| i != place && b.is_ascii_lowercase());
            let byte = if keyword && lower { want.to_ascii_lowercase() } else { *want };
            out.insert(Change { cost: 1, at: at.saturating_add(place), byte, word: true });
        }
    }
    let comment = if text.windows(2).any(|w| w == b"/*" || w == b"*/" || w == b"--") { b"*/-\n".as_slice() } else { b"" };
    for (at, old) in text.iter().enumerate() {
        // In a long text a letter is hardly what parted its columns.
        if text.len() > VOCABULARY && (old.is_ascii_alphanumeric() || old.is_ascii_whitespace()) {
            continue;
        }
        let cost: u32 = match old {
            b if b.is_ascii_whitespace() => 4,
            b if b.is_ascii_control() => 1,
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' => 3,
            _ => 2,
        };
        for byte in b", ()\"'`[]".iter().chain(comment).copied() {
            // A byte that does not belong there was most likely a separator, a quote seldom.
            let seldom = u32::from(!b", ()".contains(&byte));
            if byte != *old {
                out.insert(Change { cost: cost.saturating_add(seldom), at, byte, word: false });
            }
        }
    }
    out.into_iter().filter(|c| range.contains(&c.at)).collect()
}
