//! The side of the text: the content tokenized once, a sum over what the index should say of each row.

use rayon::prelude::*;

use super::Rules;
use super::rows::{ByRowid, Listed, PerRow};
use super::sums::{self, Expected, Sum};
use crate::fts5::config::Config;
use crate::fts5::segment::structure::Averages;
use crate::fts5::tokenizer::{Scratch, Tokenizer};

/// Content rows that are tokenized together, in bytes of text.
const BATCH: usize = 4 << 20;

/// What the text of a row should give.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Text {
    pub(super) sum: Sum,
    /// A number for the token counts.
    pub(super) counts: u64,
}

/// A text by the rules of older releases, where that makes a difference.
#[derive(Debug, Clone, Copy)]
pub(super) struct Older {
    pub(super) rules: Rules,
    pub(super) text: Text,
}

/// What the content says.
#[derive(Debug)]
pub(super) struct Texts<'a> {
    config: &'a Config,
    tokenizer: Option<&'a Tokenizer>,
    indexed: Vec<bool>,
    /// What the text of each row should give.
    pub(super) texts: PerRow<Option<Text>>,
    /// Rows, and tokens of each column.
    pub(super) totals: Averages,
    /// By the rules of older releases, where they make a difference.
    pub(super) older: ByRowid<Vec<Older>>,
    batch: Vec<(i64, bool, Vec<Option<Vec<u8>>>)>,
    batch_bytes: usize,
}

impl<'a> Texts<'a> {
    pub(super) fn new(config: &'a Config, tokenizer: Option<&'a Tokenizer>) -> Texts<'a> {
        Texts {
            config,
            tokenizer,
            indexed: config.columns.iter().map(|c| c.indexed).collect(),
            texts: PerRow::default(),
            totals: Averages { rows: 0, tokens: vec![0; config.columns.len()] },
            older: ByRowid::default(),
            batch: Vec::new(),
            batch_bytes: 0,
        }
    }

    /// A row of the content: each declared column's text as UTF-8, `None` for NULL. Rows that the application has not indexed
    /// yet, by its own markers, are not given.
    pub(super) fn row(&mut self, listed: &Listed, rowid: i64, columns: &[Option<&[u8]>]) {
        self.totals.rows = self.totals.rows.saturating_add(1);
        *self.texts.entry(listed, rowid) = Some(Text::default());
        self.take(listed, rowid, false, columns);
    }

    /// A row of the content once more, with its real numbers as older releases print them.
    pub(super) fn row_with_older_reals(&mut self, listed: &Listed, rowid: i64, columns: &[Option<&[u8]>]) {
        self.take(listed, rowid, true, columns);
    }

    fn take(&mut self, listed: &Listed, rowid: i64, older_reals: bool, columns: &[Option<&[u8]>]) {
        if self.tokenizer.is_none() {
            return;
        }
        let columns: Vec<Option<Vec<u8>>> = self
            .indexed
            .iter()
            .enumerate()
            .map(|(i, indexed)| columns.get(i).copied().flatten().filter(|_| *indexed).map(<[u8]>::to_vec))
            .collect();
        let bytes = columns.iter().flatten().map(Vec::len).fold(64, usize::saturating_add);
        self.batch_bytes = self.batch_bytes.saturating_add(bytes);
        self.batch.push((rowid, older_reals, columns));
        if self.batch_bytes > BATCH {
            self.tokenize(listed);
        }
    }

    /// Tokenizes the rows at hand.
    pub(super) fn tokenize(&mut self, listed: &Listed) {
        self.batch_bytes = 0;
        let batch = std::mem::take(&mut self.batch);
        let Some(tokenizer) = self.tokenizer else { return };
        let expected =
            |tokenizer| Expected { tokenizer, detail: self.config.detail, prefixes: &self.config.prefixes, indexed: &self.indexed };
        let older = tokenizer.older();
        let (now, before) = (expected(tokenizer), older.as_ref().map(expected));
        let done: Vec<(i64, bool, Text, Vec<u64>, Option<Text>)> = batch
            .into_par_iter()
            .map_init(
                || (Scratch::default(), Vec::new()),
                |(scratch, tokens), (rowid, older_reals, columns)| {
                    let columns: Vec<Option<&[u8]>> = columns.iter().map(Option::as_deref).collect();
                    let concerns = tokenizer.stems() || columns.iter().flatten().any(|t| t.contains(&0));
                    let mut text = |by: &Expected<'_>| {
                        let sum = by.row(&columns, scratch, tokens);
                        Text { sum, counts: sums::counts(tokens.iter().copied()) }
                    };
                    let older = before.as_ref().filter(|_| concerns).map(&mut text);
                    let text = text(&now);
                    (rowid, older_reals, text, tokens.clone(), older)
                },
            )
            .collect();
        for (rowid, older_reals, text, tokens, older) in done {
            let mut others = Vec::new();
            if let Some(text) = older.filter(|o| *o != text) {
                others.push(Older { rules: Rules { older_tokenizer: true, older_reals }, text });
            }
            if older_reals {
                others.push(Older { rules: Rules { older_tokenizer: false, older_reals }, text });
            } else {
                for (sum, n) in self.totals.tokens.iter_mut().zip(tokens) {
                    *sum = sum.saturating_add(n);
                }
                *self.texts.entry(listed, rowid) = Some(text);
            }
            if !others.is_empty() {
                self.older.entry(rowid).or_default().append(&mut others);
            }
        }
    }
}
