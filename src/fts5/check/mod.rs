//! Checks an FTS5 index against itself and against its content, in one pass over each.
//!
//! Tests: structure record, leaves, order of terms, `%_idx`, doclist indexes, tombstones, averages; `%_docsize` against the content
//! both ways; for each row the sum over its index entries against the sum over the tokens of its text.
//! Collects: rows that differ, rows that only one side has.
//! Leaves: what to do about it.
//!
//! Memory: about 60 bytes a row and 100 bytes a leaf.

mod layout;
pub mod order;
mod sums;

use rayon::prelude::*;

pub use self::layout::IdxRow;
use self::sums::{ByRowid, Expected, Sum};
use super::config::{Config, Content, Detail, Settings, VERSION, VERSION_SECURE_DELETE};
use super::segment::cursor::{Blocks, Positions};
use super::segment::merged::Merged;
use super::segment::structure::{Averages, Structure};
use super::segment::{AVERAGES_ID, DataId, MAIN_INDEX, STRUCTURE_ID};
use super::tokenizer::{Scratch, Tokenizer};
use crate::bytes::varint;
use crate::finding::{Code, Defect, Findings, Site};

/// Content rows that are tokenized together, in bytes of text.
const BATCH: usize = 4 << 20;

/// What both sides say of a row.
#[derive(Debug, Clone, Copy, Default)]
struct RowState {
    index: Sum,
    /// A number for the counts of `%_docsize`, and their total.
    docsize: Option<(u64, u64)>,
    text: Option<Text>,
}

/// What the text of a row should give.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Text {
    sum: Sum,
    /// A number for the token counts.
    counts: u64,
}

/// A text by the rules of older releases, where that makes a difference.
#[derive(Debug, Clone, Copy)]
struct Older {
    rules: Rules,
    text: Text,
}

/// The rules by which an index was made: those of older releases, or today's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rules {
    /// What [`Tokenizer::older`] does.
    pub older_tokenizer: bool,
    /// Real numbers have 15 digits rather than 17.
    pub older_reals: bool,
}

/// Rows that only the older, and rows that only the newer rule explains.
#[derive(Debug, Clone, Copy, Default)]
struct Votes {
    older: u64,
    newer: u64,
}

impl Votes {
    fn add(&mut self, older: bool) {
        let n = if older { &mut self.older } else { &mut self.newer };
        *n = n.saturating_add(1);
    }
}

/// What a check came to, beside the findings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checked {
    /// The structure record, when it decodes.
    pub structure: Option<Structure>,
    /// Whether nothing is wrong with the index in itself: structure, leaves, `%_idx`, doclist indexes, tombstones.
    pub sound: bool,
    /// Rows whose index entries are not those of their text, ascending.
    pub differing: Vec<i64>,
    /// Rows of the index that the content does not have, ascending.
    pub without_content: Vec<i64>,
    /// Rows with text that the index does not have, ascending.
    pub without_index: Vec<i64>,
    /// Rows whose `%_docsize` row is missing or wrong, ascending. Of a table without content: those whose row can be made anew
    /// from the index.
    pub docsize_differs: Vec<i64>,
    /// Of a table without content: rows of which entries are lost, ascending.
    pub incomplete: Vec<i64>,
    /// Of a table without content: rows that the damaged index holds and `%_docsize` does not list, ascending. They may have been
    /// deleted.
    pub unlisted: Vec<i64>,
    /// Segment leaves that are missing or cannot be read to their end.
    pub bad_leaves: u64,
    /// Whether deletions may be lost: tombstones are, or the structure record is not the one that was written.
    pub deletions_lost: bool,
    /// Rows that the content gave.
    pub content_rows: u64,
    /// Rows that `%_docsize` gave.
    pub docsize_rows: u64,
    /// Rows whose entries end at the first NUL of the text, as older releases write them.
    pub older_nul_rule: u64,
    /// Rows whose entries are otherwise those of older releases.
    pub older_release: u64,
    /// The rules that more rows follow.
    pub rules: Rules,
}

impl Checked {
    /// Whether index and content agree and the index is sound.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.sound
            && self.differing.is_empty()
            && self.without_content.is_empty()
            && self.without_index.is_empty()
            && self.docsize_differs.is_empty()
            && self.incomplete.is_empty()
            && self.unlisted.is_empty()
    }
}

/// Takes the rows of the shadow tables and of the content, in any order of tables.
#[derive(Debug)]
pub struct Checker<'a> {
    config: &'a Config,
    settings: &'a Settings,
    tokenizer: Option<&'a Tokenizer>,
    indexed: Vec<bool>,
    idx: Vec<IdxRow>,
    rows: ByRowid<RowState>,
    totals: Averages,
    /// By the rules of older releases, where they make a difference.
    older: ByRowid<Vec<Older>>,
    batch: Vec<(i64, bool, Vec<Option<Vec<u8>>>)>,
    batch_bytes: usize,
    found: Vec<Defect>,
    averages: Option<Averages>,
    assumed: Option<Structure>,
    docsize_whole: bool,
    out: Checked,
}

impl<'a> Checker<'a> {
    /// A check of the table with this declaration. Without a tokenizer (it is not built in), texts are not compared.
    #[must_use]
    pub fn new(config: &'a Config, settings: &'a Settings, tokenizer: Option<&'a Tokenizer>) -> Checker<'a> {
        Checker {
            config,
            settings,
            tokenizer,
            indexed: config.columns.iter().map(|c| c.indexed).collect(),
            idx: Vec::new(),
            rows: ByRowid::default(),
            totals: Averages { rows: 0, tokens: vec![0; config.columns.len()] },
            older: ByRowid::default(),
            batch: Vec::new(),
            batch_bytes: 0,
            found: Vec::new(),
            averages: None,
            assumed: None,
            docsize_whole: true,
            out: Checked { sound: true, ..Checked::default() },
        }
    }

    /// A row of `%_idx`.
    pub fn idx_row(&mut self, segment: i64, term: &[u8], page: i64) {
        self.idx.push(IdxRow { segment, term: term.to_vec(), page });
    }

    /// A row of `%_docsize`.
    pub fn docsize_row(&mut self, id: i64, sizes: &[u8]) {
        let mut at = 0_usize;
        let counts: Vec<u64> = std::iter::from_fn(|| {
            let (n, len) = varint(sizes, at)?;
            at = at.saturating_add(len);
            Some(n)
        })
        .collect();
        let total = counts.iter().copied().fold(0, u64::saturating_add);
        self.rows.entry(id).or_default().docsize = Some((sums::counts(counts), total));
        self.out.docsize_rows = self.out.docsize_rows.saturating_add(1);
    }

    /// A row of the content: each declared column's text as UTF-8, `None` for NULL. Rows that the application has not indexed
    /// yet, by its own markers, are not given.
    pub fn content_row(&mut self, rowid: i64, columns: &[Option<&[u8]>]) {
        self.out.content_rows = self.out.content_rows.saturating_add(1);
        self.totals.rows = self.totals.rows.saturating_add(1);
        self.rows.entry(rowid).or_default().text = Some(Text::default());
        self.take(rowid, false, columns);
    }

    /// A row of the content once more, with its real numbers as older releases print them.
    pub fn content_row_with_older_reals(&mut self, rowid: i64, columns: &[Option<&[u8]>]) {
        self.take(rowid, true, columns);
    }

    fn take(&mut self, rowid: i64, older_reals: bool, columns: &[Option<&[u8]>]) {
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
            self.tokenize();
        }
    }

    /// Tokenizes the rows at hand.
    fn tokenize(&mut self) {
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
                self.rows.entry(rowid).or_default().text = Some(text);
            }
            if !others.is_empty() {
                self.older.entry(rowid).or_default().append(&mut others);
            }
        }
    }

    /// Reads the index by this structure instead of its record, which is still checked.
    pub fn assume(&mut self, structure: Structure) {
        self.assumed = Some(structure);
    }

    /// Rows of `%_docsize` may be lost: a row that it does not list was not necessarily deleted.
    pub fn docsize_is_damaged(&mut self) {
        self.docsize_whole = false;
    }

    fn unsound(&mut self, defect: Defect) {
        self.out.sound = false;
        match defect.code {
            Code::SegmentLeafMissing | Code::SegmentLeafBad | Code::TermOrder => {
                self.out.bad_leaves = self.out.bad_leaves.saturating_add(1);
            }
            Code::TombstonesBad => self.out.deletions_lost = true,
            _ => {}
        }
        self.found.push(defect);
    }

    /// Reads the index. `ids` are all ids of `%_data`, in order. To be called once, at any time.
    pub fn index(&mut self, blocks: &dyn Blocks, ids: impl IntoIterator<Item = i64>) {
        match blocks.block(STRUCTURE_ID) {
            None => self.unsound(Defect::new(Code::StructureRecordMissing, 0, 0, 0)),
            Some(block) => match Structure::read(&block) {
                Ok(structure) => self.out.structure = Some(structure),
                Err(defect) => self.unsound(defect),
            },
        }
        if let Some(assumed) = self.assumed.take() {
            // The record decodes and cannot be right.
            if self.out.structure.is_some() {
                self.unsound(Defect::new(Code::StructureRecordBad, 0, 0, 0));
            }
            self.out.structure = Some(assumed);
            self.out.deletions_lost = true;
        }
        let structure = self.out.structure.clone().unwrap_or_default();
        let detail = self.config.detail;
        let mut merged = Merged::new(blocks, &structure, detail);
        let mut bad_list = None;
        let (mut term, mut hash) = (Vec::new(), 0);
        while let Some(posting) = merged.step() {
            if posting.term != term {
                term.clone_from(&posting.term);
                let (index, token) = term.split_first().map_or((0, &[][..]), |(i, t)| (*i, t));
                hash = sums::term(index, token);
            }
            let row = &mut self.rows.entry(posting.rowid).or_default().index;
            let main = term.first() == Some(&MAIN_INDEX);
            let mut add = |column, position| {
                row.hash = row.hash.wrapping_add(sums::entry(hash, column, position));
                row.tokens = row.tokens.wrapping_add(u64::from(main));
            };
            if detail == Detail::None {
                add(0, 0);
                continue;
            }
            for position in Positions::new(&posting.positions, detail) {
                match position {
                    Ok((column, position)) => add(column, position),
                    Err(defect) => bad_list = bad_list.or(Some(defect)),
                }
            }
        }
        let secure = self.settings.version == Some(VERSION_SECURE_DELETE);
        let (defects, seen) = merged.finish();
        for found in defects {
            self.unsound(found.defect);
        }
        if let Some(defect) = bad_list {
            self.unsound(defect);
        }
        if self.out.structure.is_some() {
            for defect in layout::check(&self.idx, &seen, blocks, secure) {
                self.unsound(defect);
            }
            for id in ids {
                let known = match DataId::of(id) {
                    DataId::Averages | DataId::Structure => true,
                    // FTS5 itself leaves the last leaf of a segment that a running merge has used up.
                    DataId::Leaf { segment, page } => {
                        structure.segments().any(|s| s.id == segment && (s.first == 0 || (s.first..=s.last).contains(&page)))
                    }
                    DataId::DoclistIndex { segment, .. } | DataId::Tombstones { segment, .. } => {
                        structure.segments().any(|s| s.id == segment)
                    }
                    DataId::Other(_) => false,
                };
                // Nothing reads it, so that nothing is wrong with the index.
                if !known {
                    self.found.push(Defect::new(Code::FtsDataStray, 0, u64::from_ne_bytes(id.to_ne_bytes()), 0));
                }
            }
        }
        if blocks.block(AVERAGES_ID).is_none() {
            self.unsound(Defect::new(Code::AveragesMissing, 0, 0, 0));
        }
        self.averages = blocks.block(AVERAGES_ID).map(|b| Averages::read(&b, self.config.columns.len()));
    }

    /// A row of an index that is all there is: it can only be compared with its own counts.
    fn without_content(&mut self, rowid: i64, row: &RowState, log: &mut Findings, site: Site) {
        if self.out.structure.is_none() || !self.config.columnsize {
            return;
        }
        let got = u64::from_ne_bytes(rowid.to_ne_bytes());
        let indexed = row.index != Sum::default();
        let full = self.config.detail == Detail::Full;
        let damaged = self.out.bad_leaves > 0 || self.out.deletions_lost;
        let Some((_, counted)) = row.docsize else {
            if !indexed {
                return;
            }
            log.add(Defect::new(Code::PostingsWithoutDocsize, 0, got, row.index.tokens), site);
            // What damaged leaves hold may be no row at all, and a row whose deletion is lost is deleted.
            if damaged && (self.docsize_whole || self.out.deletions_lost) {
                self.out.unlisted.push(rowid);
            } else {
                self.out.docsize_differs.push(rowid);
            }
            return;
        };
        let differs = if full { counted != row.index.tokens } else { counted > 0 && !indexed };
        if differs {
            log.add(Defect::new(Code::DocsizeDiffersFromPostings, 0, got, row.index.tokens), site);
            self.out.docsize_differs.push(rowid);
            if counted > row.index.tokens && damaged {
                self.out.incomplete.push(rowid);
            }
        }
    }

    /// Compares what was given, and notes what was found at `site`.
    #[must_use]
    pub fn finish(mut self, log: &mut Findings, site: Site) -> Checked {
        self.tokenize();
        if !self.settings.version_is_known() {
            let got = self.settings.version.and_then(|v| u64::try_from(v).ok()).unwrap_or(0);
            log.add(Defect::new(Code::FtsVersionBad, 0, got, u64::try_from(VERSION).unwrap_or(0)), site);
        }
        for defect in &self.found {
            log.add(*defect, site);
        }
        let has_content = matches!(self.config.content, Content::Stored | Content::External(_));
        let readable = self.out.structure.is_some();
        let mut rows: Vec<(i64, RowState)> = self.rows.drain().collect();
        rows.sort_unstable_by_key(|(rowid, _)| *rowid);
        let (mut tokenizer_votes, mut real_votes) = (Votes::default(), Votes::default());
        for (rowid, row) in rows {
            let got = u64::from_ne_bytes(rowid.to_ne_bytes());
            let add = |log: &mut Findings, code, want| log.add_with(Defect::new(code, 0, got, want), site, format!("rowid {rowid}"));
            let indexed = row.index != Sum::default();
            if !has_content {
                self.without_content(rowid, &row, log, site);
                continue;
            }
            let Some(text) = row.text else {
                self.out.without_content.push(rowid);
                add(log, if indexed { Code::PostingsWithoutRow } else { Code::DocsizeWithoutRow }, 0);
                continue;
            };
            let variants = self.older.get(&rowid).map_or(&[][..], Vec::as_slice);
            let other = variants.iter().find(|o| o.text.sum.hash == row.index.hash).filter(|_| row.index.hash != text.sum.hash).copied();
            if readable {
                let named = |f: fn(&Rules) -> bool| variants.iter().any(|o| f(&o.rules) && o.text.sum.hash != text.sum.hash);
                let fits = other.is_some() || row.index.hash == text.sum.hash;
                if fits && named(|r| r.older_tokenizer) {
                    tokenizer_votes.add(other.is_some_and(|o| o.rules.older_tokenizer));
                }
                if fits && named(|r| r.older_reals) {
                    real_votes.add(other.is_some_and(|o| o.rules.older_reals));
                }
            }
            if let Some(other) = other {
                let by_nul = other.rules.older_tokenizer && self.tokenizer.is_some_and(Tokenizer::ends_at_nul);
                let n = if by_nul && !other.rules.older_reals { &mut self.out.older_nul_rule } else { &mut self.out.older_release };
                *n = n.saturating_add(1);
            }
            let text = other.map_or(text, |o| o.text);
            if self.tokenizer.is_some() && readable && row.index.hash != text.sum.hash {
                if indexed {
                    self.out.differing.push(rowid);
                    add(log, Code::IndexDiffersFromContent, 0);
                } else {
                    self.out.without_index.push(rowid);
                    add(log, Code::RowWithoutDocsize, 0);
                }
            } else if self.config.columnsize {
                match row.docsize {
                    None => {
                        self.out.docsize_differs.push(rowid);
                        add(log, Code::RowWithoutDocsize, 0);
                    }
                    Some((counts, _)) if self.tokenizer.is_some() && counts != text.counts => {
                        self.out.docsize_differs.push(rowid);
                        add(log, Code::DocsizeDiffers, text.sum.tokens);
                    }
                    Some(_) => {}
                }
            }
        }
        if self.out.older_nul_rule > 0 {
            log.add(Defect::new(Code::FtsOlderNulRule, 0, self.out.older_nul_rule, self.out.content_rows), site);
        }
        if self.out.older_release > 0 {
            log.add(Defect::new(Code::FtsOlderRelease, 0, self.out.older_release, self.out.content_rows), site);
        }
        let (by_tokenizer, by_reals) = (tokenizer_votes, real_votes);
        self.out.rules = Rules { older_tokenizer: by_tokenizer.older > by_tokenizer.newer, older_reals: by_reals.older > by_reals.newer };
        let by_one_rule = self.out.older_nul_rule == 0 && self.out.older_release == 0;
        if has_content && self.tokenizer.is_some() && self.out.is_clean() && by_one_rule {
            let averages = self.averages.clone().unwrap_or_default();
            if averages.rows != self.totals.rows {
                self.out.sound = false;
                log.add(Defect::new(Code::AveragesDiffer, 0, averages.rows, self.totals.rows), site);
            } else if let Some((got, want)) = averages.tokens.iter().zip(&self.totals.tokens).find(|(a, b)| a != b) {
                self.out.sound = false;
                log.add(Defect::new(Code::AveragesDiffer, 0, *got, *want), site);
            }
        }
        self.out
    }
}
