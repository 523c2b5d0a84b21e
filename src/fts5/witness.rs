//! Reads text back out of an index: the last copy of rows that the content lost.
//!
//! Trigrams overlap, so that each character stands in three tokens and the text comes back character by character, up to what the
//! tokenizer folded and dropped. Words come back in order, without what stood between them. Under `detail=column` and
//! `detail=none` only the set of words is there.

use std::collections::BTreeMap;

use super::config::{Config, Detail};
use super::segment::MAIN_INDEX;
use super::segment::cursor::{Blocks, Positions};
use super::segment::merged::Merged;
use super::segment::structure::Structure;
use super::tokenizer::{Tokenizer, utf8};
use crate::bytes::varint;
use crate::ids::{idx, small, wide};

/// Characters written for one gap at most; its true length is in the runs.
const SHOWN_OF_A_GAP: u64 = 64;

/// In what form a text came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    /// Its words, each once, sorted.
    Words,
    /// Its words in order, a space between two.
    Sequence,
    /// Its characters.
    Characters,
}

/// How sure a run of bytes of the text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Certainty {
    /// The same character stood there.
    Exact,
    /// A character stood there that folds to this one: upper case, or with a diacritic.
    Folded,
    /// Something stood there, or nothing: what is written is a placeholder.
    Unknown,
}

/// A run of bytes of the text of one certainty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Bytes of the text.
    pub bytes: u32,
    /// How sure they are.
    pub certainty: Certainty,
}

/// The text of one column of one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextBack {
    /// The row.
    pub rowid: i64,
    /// The declared column.
    pub column: usize,
    /// Its form.
    pub form: Form,
    /// The text; U+FFFD stands for what is missing.
    pub text: Vec<u8>,
    /// How sure each part of it is.
    pub runs: Vec<Run>,
    /// Characters (or words) that came back.
    pub known: u64,
    /// Characters (or words) there were, by `%_docsize`. Of a text of fewer than three characters trigrams say nothing.
    pub total: Option<u64>,
}

impl TextBack {
    /// Whether nothing is missing, within the form.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.form != Form::Words && self.total == Some(self.known)
    }

    /// How good it is among texts of one value, the best highest: whole characters, then whatever is whole, characters before
    /// words, more before less.
    #[must_use]
    pub fn rank(&self) -> (bool, bool, Form, u64) {
        (self.form == Form::Characters && self.is_complete(), self.is_complete(), self.form, self.known)
    }
}

/// What is known of the values of an index.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// The declaration.
    pub config: &'a Config,
    /// The tokenizer, to say what it folds; `None` for a custom one.
    pub tokenizer: Option<&'a Tokenizer>,
    /// The blocks of `%_data`.
    pub blocks: &'a dyn Blocks,
    /// The structure record.
    pub structure: &'a Structure,
}

impl std::fmt::Debug for Source<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").field("config", self.config).field("structure", self.structure).finish_non_exhaustive()
    }
}

/// A token of a lost row: column, position, number of the term.
type Token = (u32, u32, u32);

/// Terms by number.
#[derive(Debug, Default)]
struct Terms {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Terms {
    fn push(&mut self, term: &[u8]) -> u32 {
        let n = small(self.ends.len());
        self.bytes.extend_from_slice(term);
        self.ends.push(self.bytes.len());
        n
    }

    fn get(&self, n: u32) -> &[u8] {
        let end = self.ends.get(idx(n)).copied().unwrap_or(0);
        let start = idx(n).checked_sub(1).and_then(|b| self.ends.get(b)).copied().unwrap_or(0);
        self.bytes.get(start..end).unwrap_or_default()
    }
}

/// Gives the texts of lost rows to `each`, in order of rowid and column. `docsize` answers with the `sz` of a `%_docsize` row.
///
/// Keeps to about `memory` bytes by reading the index again for the rows that did not fit.
pub fn read_back(
    source: &Source<'_>,
    lost: &[i64],
    docsize: impl Fn(i64) -> Option<Vec<u8>>,
    memory: usize,
    mut each: impl FnMut(TextBack),
) {
    let mut lost = lost.to_vec();
    lost.sort_unstable();
    lost.dedup();
    let mut rest = lost.as_slice();
    while !rest.is_empty() {
        let (tokens, terms, done) = gather(source, rest, memory);
        let (now, later) = rest.split_at_checked(done.max(1)).unwrap_or((rest, &[]));
        for &rowid in now {
            let Some(found) = tokens.get(&rowid) else { continue };
            let sizes = docsize(rowid).map(|sz| counts(&sz));
            row(source, rowid, found, &terms, sizes.as_deref(), &mut each);
        }
        rest = later;
    }
}

fn counts(sizes: &[u8]) -> Vec<u64> {
    let mut at = 0_usize;
    std::iter::from_fn(|| {
        let (n, len) = varint(sizes, at)?;
        at = at.saturating_add(len);
        Some(n)
    })
    .collect()
}

/// The tokens of as many of the rows, from the first on, as fit the memory; how many rows that is.
fn gather(source: &Source<'_>, lost: &[i64], memory: usize) -> (BTreeMap<i64, Vec<Token>>, Terms, usize) {
    let room = memory.checked_div(size_of::<Token>().saturating_mul(2)).unwrap_or(0).max(1 << 16);
    let mut rows = lost.len();
    let mut found: BTreeMap<i64, Vec<Token>> = BTreeMap::new();
    let mut terms = Terms::default();
    let mut held = 0_usize;
    let mut merged = Merged::new(source.blocks, source.structure, source.config.detail);
    let mut last: Option<u32> = None;
    while let Some(posting) = merged.step() {
        let Some((&MAIN_INDEX, term)) = posting.term.split_first() else { continue };
        let wanted = lost.get(..rows).unwrap_or_default();
        if wanted.binary_search(&posting.rowid).is_err() {
            continue;
        }
        let number = match last {
            Some(n) if terms.get(n) == term => n,
            _ => terms.push(term),
        };
        last = Some(number);
        let list = found.entry(posting.rowid).or_default();
        let before = list.len();
        match source.config.detail {
            Detail::None => list.push((0, 0, number)),
            detail => list.extend(Positions::new(&posting.positions, detail).filter_map(Result::ok).map(|(c, p)| (c, p, number))),
        }
        held = held.saturating_add(list.len().saturating_sub(before));
        if held > room && rows > 1 && found.len() > 1 {
            // The upper half waits for the next pass.
            let middle = found.keys().nth(found.len() / 2).copied().unwrap_or(i64::MAX);
            rows = wanted.partition_point(|r| *r < middle).max(1);
            drop(found.split_off(&middle));
            held = found.values().map(Vec::len).fold(0, usize::saturating_add);
        }
    }
    (found, terms, rows)
}

fn row(source: &Source<'_>, rowid: i64, tokens: &[Token], terms: &Terms, sizes: Option<&[u64]>, each: &mut impl FnMut(TextBack)) {
    let mut tokens = tokens.to_vec();
    tokens.sort_unstable();
    let trigram = source.tokenizer.is_some_and(Tokenizer::is_trigram);
    for column in tokens.chunk_by(|a, b| a.0 == b.0) {
        let Some(&(number, ..)) = column.first() else { continue };
        let total = match source.config.detail {
            Detail::None => None,
            _ => sizes.and_then(|s| s.get(idx(number))).copied(),
        };
        let mut text = Builder { tokenizer: source.tokenizer, text: Vec::new(), runs: Vec::new() };
        let (form, known, total) = match source.config.detail {
            Detail::Full if trigram => {
                let known = text.characters(column, terms, total.map(|n| n.saturating_add(2)));
                (Form::Characters, known, total.map(|n| n.saturating_add(2)))
            }
            Detail::Full => (Form::Sequence, text.sequence(column, terms, total), total),
            _ => (Form::Words, text.words(column, terms), total),
        };
        each(TextBack { rowid, column: idx(number), form, text: text.text, runs: text.runs, known, total });
    }
}

struct Builder<'a> {
    tokenizer: Option<&'a Tokenizer>,
    text: Vec<u8>,
    runs: Vec<Run>,
}

impl Builder<'_> {
    fn run(&mut self, bytes: usize, certainty: Certainty) {
        let bytes = small(bytes);
        match self.runs.last_mut() {
            Some(run) if run.certainty == certainty => run.bytes = run.bytes.saturating_add(bytes),
            _ => self.runs.push(Run { bytes, certainty }),
        }
    }

    fn character(&mut self, c: u32, sure: bool) {
        // Broken UTF-8 can make numbers beyond Unicode.
        let c = if c > 0x10_ffff { 0xfffd } else { c };
        let (bytes, len) = utf8::encode(c);
        self.text.extend_from_slice(bytes.get(..len).unwrap_or_default());
        let exact = self.tokenizer.is_some_and(|t| t.is_exact(c));
        let certainty = match (sure, exact) {
            (false, _) => Certainty::Unknown,
            (true, true) => Certainty::Exact,
            (true, false) => Certainty::Folded,
        };
        self.run(len, certainty);
    }

    fn gap(&mut self, characters: u64) {
        for _ in 0..characters.min(SHOWN_OF_A_GAP) {
            self.character(0xfffd, false);
        }
    }

    /// Chains trigrams; how many characters are known.
    fn characters(&mut self, tokens: &[Token], terms: &Terms, total: Option<u64>) -> u64 {
        let mut next = 0_u64;
        let mut known = 0_u64;
        for &(_, position, term) in tokens {
            let term = terms.get(term);
            let mut at = 0;
            for place in 0..3_u64 {
                if at >= term.len() {
                    break;
                }
                let c = utf8::read(term, &mut at);
                let place = u64::from(position).saturating_add(place);
                if place < next {
                    continue;
                }
                self.gap(place.saturating_sub(next));
                self.character(c, true);
                next = place.saturating_add(1);
                known = known.saturating_add(1);
            }
        }
        if let Some(total) = total.filter(|t| *t > next) {
            self.gap(total.saturating_sub(next));
        }
        known
    }

    /// Puts words in order; how many are known.
    fn sequence(&mut self, tokens: &[Token], terms: &Terms, total: Option<u64>) -> u64 {
        let mut next = 0_u64;
        let mut known = 0_u64;
        for &(_, position, term) in tokens {
            let place = u64::from(position);
            if place < next {
                continue;
            }
            self.missing_words(place.saturating_sub(next));
            self.separator();
            self.word(terms.get(term));
            next = place.saturating_add(1);
            known = known.saturating_add(1);
        }
        if let Some(total) = total.filter(|t| *t > next) {
            self.missing_words(total.saturating_sub(next));
        }
        known
    }

    fn missing_words(&mut self, words: u64) {
        for _ in 0..words.min(SHOWN_OF_A_GAP) {
            self.separator();
            self.character(0xfffd, false);
        }
    }

    fn separator(&mut self) {
        if !self.text.is_empty() {
            self.character(u32::from(b' '), false);
        }
    }

    fn words(&mut self, tokens: &[Token], terms: &Terms) -> u64 {
        for &(_, _, term) in tokens {
            self.separator();
            self.word(terms.get(term));
        }
        wide(tokens.len())
    }

    fn word(&mut self, term: &[u8]) {
        let mut at = 0;
        while at < term.len() {
            let c = utf8::read(term, &mut at);
            self.character(c, true);
        }
    }
}
