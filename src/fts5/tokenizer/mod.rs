//! FTS5's built-in tokenizers: ascii, unicode61, trigram, and porter over any of them.
//!
//! They take any bytes. What they do with NUL and with invalid UTF-8 is what SQLite 3.54 does (older releases end a
//! trigram text at its first NUL, see [`NulRule`]).

mod ascii;
mod porter;
mod trigram;
mod unicode61;
pub mod utf8;

pub use trigram::NulRule;
pub use unicode61::{RemoveDiacritics, fold};

use super::config::ConfigError;

/// The longest token that is indexed, in bytes; longer ones are cut.
pub const MAX_TOKEN: usize = 32_768;

/// No word changes any more that was stemmed so often.
const MAX_STEMS: usize = 32;

/// A token and where it stands in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'a> {
    /// Its bytes as they are indexed, before the cut to [`MAX_TOKEN`]. May be empty.
    pub text: &'a [u8],
    /// Byte offset of its first character.
    pub start: usize,
    /// Byte offset behind its last character.
    pub end: usize,
}

#[derive(Debug, Clone)]
enum Base {
    Ascii(ascii::Ascii),
    Unicode61(Box<unicode61::Unicode61>),
    Trigram(trigram::Trigram),
}

/// Buffers of a tokenizer in use; one for each thread.
#[derive(Debug, Default, Clone)]
pub struct Scratch {
    token: Vec<u8>,
    stem: Vec<u8>,
}

/// A built-in tokenizer with its arguments.
#[derive(Debug, Clone)]
pub struct Tokenizer {
    base: Base,
    /// How often a word is stemmed.
    porter: usize,
    /// How often `porter` is named: older releases stem as often, newer ones once.
    porter_named: usize,
}

/// What a tokenizer specification names.
#[derive(Debug, Clone)]
pub enum Found {
    /// A built-in tokenizer.
    BuiltIn(Tokenizer),
    /// A tokenizer that an application registers; it cannot be run here.
    Custom(String),
}

impl Tokenizer {
    /// The tokenizer that a specification (name and arguments, as in [`super::Config::tokenizer`]) names.
    ///
    /// # Errors
    /// When a built-in tokenizer refuses its arguments.
    pub fn find<S: AsRef<str>>(spec: &[S]) -> Result<Found, ConfigError> {
        let mut words: Vec<&str> = spec.iter().map(AsRef::as_ref).collect();
        let porter = words.first().is_some_and(|w| w.eq_ignore_ascii_case("porter"));
        let first_base = words.iter().position(|w| !(porter && w.eq_ignore_ascii_case("porter"))).unwrap_or(words.len());
        words.drain(..first_base);
        let name = words.first().copied().unwrap_or("unicode61");
        let pairs = pairs(words.get(1..).unwrap_or_default());
        let refused = || ConfigError::TokenizerArguments(name.to_owned());
        let base = if name.eq_ignore_ascii_case("unicode61") {
            pairs.and_then(|p| unicode61::Unicode61::new(&p)).map(|u| Base::Unicode61(Box::new(u)))
        } else if name.eq_ignore_ascii_case("ascii") {
            pairs.and_then(|p| ascii::Ascii::new(&p)).map(Base::Ascii)
        } else if name.eq_ignore_ascii_case("trigram") {
            pairs.and_then(|p| trigram::Trigram::new(&p)).map(Base::Trigram)
        } else {
            return Ok(Found::Custom(name.to_owned()));
        };
        Ok(Found::BuiltIn(Tokenizer { base: base.ok_or_else(refused)?, porter: first_base.min(1), porter_named: first_base }))
    }

    /// The same tokenizer by the rules of older releases (3.40 is one), where those can make a difference: trigrams of a text
    /// end at its first NUL, and words are stemmed as often as porter is named.
    #[must_use]
    pub fn older(&self) -> Option<Tokenizer> {
        let mut older = self.clone();
        match &mut older.base {
            Base::Trigram(t) => t.nul = NulRule::EndsText,
            _ if self.porter == self.porter_named => return None,
            _ => {}
        }
        older.porter = self.porter_named;
        Some(older)
    }

    /// Whether the older rule ends a text at its first NUL.
    #[must_use]
    pub fn ends_at_nul(&self) -> bool {
        matches!(self.base, Base::Trigram(_))
    }

    /// Whether tokens are runs of three characters, so that text can be chained back from them.
    #[must_use]
    pub fn is_trigram(&self) -> bool {
        matches!(self.base, Base::Trigram(_)) && self.porter == 0
    }

    /// Whether a character of a token was the same character in the text, and not one that folds to it. U+FFFD may have been
    /// any bytes that are no UTF-8.
    #[must_use]
    pub fn is_exact(&self, c: u32) -> bool {
        let alike = |mode| !unicode61::is_folded_to(c, mode);
        c != 0xfffd
            && self.porter == 0
            && match &self.base {
                Base::Ascii(_) => !(0x61..=0x7a).contains(&c),
                Base::Unicode61(t) => alike(t.mode()),
                Base::Trigram(t) => t.mode().is_none_or(alike),
            }
    }

    /// Whether tokens are stems rather than words.
    #[must_use]
    pub fn stems(&self) -> bool {
        self.porter > 0
    }

    /// Gives every token of the text to `each`, in order.
    #[inline]
    pub fn tokenize(&self, text: &[u8], scratch: &mut Scratch, mut each: impl FnMut(Token<'_>)) {
        let Scratch { token, stem } = scratch;
        match self.porter {
            0 => self.base(text, token, &mut each),
            1 => self.base(text, token, &mut |t: Token<'_>| each(Token { text: porter::stem(t.text, stem), ..t })),
            times => self.base(text, token, &mut |t: Token<'_>| {
                let mut word = t.text.to_vec();
                for _ in 0..times.min(MAX_STEMS) {
                    word = porter::stem(&word, stem).to_vec();
                }
                each(Token { text: &word, ..t });
            }),
        }
    }

    #[inline]
    fn base(&self, text: &[u8], buffer: &mut Vec<u8>, each: &mut impl FnMut(Token<'_>)) {
        match &self.base {
            Base::Ascii(t) => t.tokenize(text, buffer, each),
            Base::Unicode61(t) => t.tokenize(text, buffer, each),
            Base::Trigram(t) => t.tokenize(text, each),
        }
    }
}

/// Arguments two by two; `None` when one is left over.
fn pairs<'a>(words: &[&'a str]) -> Option<Vec<(&'a str, &'a str)>> {
    let (pairs, rest) = words.as_chunks::<2>();
    rest.is_empty().then(|| pairs.iter().map(|&[k, v]| (k, v)).collect())
}
