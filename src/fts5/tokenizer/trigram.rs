//! The `trigram` tokenizer: every run of three characters is a token.

use super::unicode61::{RemoveDiacritics, fold};
use super::{Token, utf8};

/// What a NUL in the text does to the trigram tokenizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NulRule {
    /// It is passed over as if it were not there: newer releases (3.54 is one).
    #[default]
    Skipped,
    /// Nothing behind it is indexed: older releases (3.40 is one).
    EndsText,
}

#[derive(Debug, Clone)]
pub struct Trigram {
    fold: Option<RemoveDiacritics>,
    pub nul: NulRule,
}

impl Trigram {
    pub fn new(arguments: &[(&str, &str)]) -> Option<Trigram> {
        let (mut folds, mut strips) = (true, false);
        for (name, value) in arguments {
            if name.eq_ignore_ascii_case("case_sensitive") {
                folds = match *value {
                    "0" => true,
                    "1" => false,
                    _ => return None,
                };
            } else if name.eq_ignore_ascii_case("remove_diacritics") {
                strips = match *value {
                    "0" => false,
                    "1" | "2" => true,
                    _ => return None,
                };
            } else {
                return None;
            }
        }
        if strips && !folds {
            return None;
        }
        let mode = if strips { RemoveDiacritics::Complex } else { RemoveDiacritics::Not };
        Some(Trigram { fold: folds.then_some(mode), nul: NulRule::default() })
    }

    /// How characters are folded, `None` for not at all.
    pub fn mode(&self) -> Option<RemoveDiacritics> {
        self.fold
    }

    /// The next character that is not dropped, folded, with its offset; `None` at the end of the text.
    #[inline]
    fn next(&self, text: &[u8], at: &mut usize) -> Option<(u32, usize)> {
        while *at < text.len() {
            let start = *at;
            let c = utf8::read(text, at);
            if c == 0 && self.nul == NulRule::EndsText {
                *at = text.len();
                return None;
            }
            let c = match self.fold {
                Some(mode) => fold(c, mode),
                None => c,
            };
            if c != 0 {
                return Some((c, start));
            }
        }
        None
    }

    pub fn tokenize(&self, text: &[u8], each: &mut impl FnMut(Token<'_>)) {
        let mut at = 0;
        let mut window = Window::default();
        let (Some(a), Some(b)) = (self.next(text, &mut at), self.next(text, &mut at)) else { return };
        let mut starts = (a.1, b.1);
        window.push(a.0);
        window.push(b.0);
        let mut third = self.next(text, &mut at);
        while let Some((c, start)) = third {
            window.push(c);
            third = self.next(text, &mut at);
            let end = third.map_or(text.len(), |(_, next)| next);
            each(Token { text: window.bytes(), start: starts.0, end });
            window.shift();
            starts = (starts.1, start);
        }
    }
}

/// The bytes of up to three characters.
#[derive(Default)]
struct Window {
    bytes: [u8; 12],
    used: usize,
    lengths: [usize; 3],
    count: usize,
}

impl Window {
    #[inline]
    fn push(&mut self, c: u32) {
        let (encoded, len) = utf8::encode(c);
        let end = self.used.saturating_add(len);
        if let (Some(place), Some(from)) = (self.bytes.get_mut(self.used..end), encoded.get(..len)) {
            place.copy_from_slice(from);
            self.used = end;
        }
        if let Some(place) = self.lengths.get_mut(self.count) {
            *place = len;
            self.count = self.count.saturating_add(1);
        }
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.used).unwrap_or_default()
    }

    #[inline]
    fn shift(&mut self) {
        let [first, second, third] = self.lengths;
        self.bytes.copy_within(first.min(12).., 0);
        self.used = self.used.saturating_sub(first);
        self.lengths = [second, third, 0];
        self.count = self.count.saturating_sub(1);
    }
}
