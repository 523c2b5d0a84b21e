//! Checks an FTS5 index against itself and against its content, in one pass over each.
//!
//! Tests: structure record, leaves, order of terms, `%_idx`, doclist indexes, tombstones, averages; `%_docsize` against the content
//! both ways; for each row the sum over its index entries against the sum over the tokens of its text.
//! Collects: rows that differ, rows that only one side has.
//! Leaves: what to do about it.
//!
//! Memory: about 60 bytes a row and 100 bytes a leaf.

mod content;
mod layout;
pub mod order;
mod postings;
mod rows;
mod sums;

use self::content::{Text, Texts};
pub use self::layout::IdxRow;
use self::postings::Postings;
use self::rows::{Listed, PerRow};
use self::sums::Sum;
use super::config::{Config, Content, Detail, Settings, VERSION};
use super::segment::cursor::Blocks;
use super::segment::structure::Structure;
use super::tokenizer::Tokenizer;
use crate::bytes::varint;
use crate::finding::{Code, Defect, Findings, Site};

/// What both sides say of a row.
#[derive(Debug, Clone, Copy, Default)]
struct RowState {
    index: Sum,
    docsize: Docsize,
    text: Option<Text>,
}

/// A number for the counts that `%_docsize` has of a row, and their total.
type Docsize = Option<(u64, u64)>;

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

/// Takes the rows of the shadow tables and of the content. `%_docsize` is best given first.
#[derive(Debug)]
pub struct Checker<'a> {
    config: &'a Config,
    settings: &'a Settings,
    tokenizer: Option<&'a Tokenizer>,
    /// Rows of `%_docsize`.
    listed: Listed,
    docsize: PerRow<Docsize>,
    docsize_rows: u64,
    docsize_whole: bool,
    postings: Postings<'a>,
    texts: Texts<'a>,
    out: Checked,
}

/// Takes the rows of the content while the index is read.
#[derive(Debug)]
pub struct ContentRows<'c, 'a> {
    listed: &'c Listed,
    texts: &'c mut Texts<'a>,
}

impl ContentRows<'_, '_> {
    /// As [`Checker::content_row`].
    pub fn row(&mut self, rowid: i64, columns: &[Option<&[u8]>]) {
        self.texts.row(self.listed, rowid, columns);
    }

    /// As [`Checker::content_row_with_older_reals`].
    pub fn row_with_older_reals(&mut self, rowid: i64, columns: &[Option<&[u8]>]) {
        self.texts.row_with_older_reals(self.listed, rowid, columns);
    }
}

impl<'a> Checker<'a> {
    /// A check of the table with this declaration. Without a tokenizer (it is not built in), texts are not compared.
    #[must_use]
    pub fn new(config: &'a Config, settings: &'a Settings, tokenizer: Option<&'a Tokenizer>) -> Checker<'a> {
        Checker {
            config,
            settings,
            tokenizer,
            listed: Listed::default(),
            docsize: PerRow::default(),
            docsize_rows: 0,
            docsize_whole: true,
            postings: Postings::new(config, settings),
            texts: Texts::new(config, tokenizer),
            out: Checked { sound: true, ..Checked::default() },
        }
    }

    /// A row of `%_idx`.
    pub fn idx_row(&mut self, segment: i64, term: &[u8], page: i64) {
        self.postings.idx.push(IdxRow { segment, term: term.to_vec(), page });
    }

    /// A row of the content: each declared column's text as UTF-8, `None` for NULL. Rows that the application has not indexed
    /// yet, by its own markers, are not given.
    pub fn content_row(&mut self, rowid: i64, columns: &[Option<&[u8]>]) {
        self.texts.row(&self.listed, rowid, columns);
    }

    /// A row of the content once more, with its real numbers as older releases print them.
    pub fn content_row_with_older_reals(&mut self, rowid: i64, columns: &[Option<&[u8]>]) {
        self.texts.row_with_older_reals(&self.listed, rowid, columns);
    }

    /// Reads the index. `ids` are all ids of `%_data`, in order. To be called once, at any time.
    pub fn index(&mut self, blocks: &dyn Blocks, ids: impl IntoIterator<Item = i64>) {
        self.postings.read(&self.listed, blocks, ids);
    }

    /// Reads the index on another core while `content` gives the rows of the content.
    pub fn index_beside<R: Send>(
        &mut self,
        blocks: &dyn Blocks,
        ids: impl IntoIterator<Item = i64> + Send,
        content: impl FnOnce(&mut ContentRows<'_, 'a>) -> R + Send,
    ) -> R {
        let Checker { listed, postings, texts, .. } = self;
        let mut rows = ContentRows { listed, texts };
        rayon::join(|| content(&mut rows), || postings.read(listed, blocks, ids)).0
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
        self.listed.push(id);
        *self.docsize.entry(&self.listed, id) = Some((sums::counts(counts), total));
        self.docsize_rows = self.docsize_rows.saturating_add(1);
    }

    /// Reads the index by this structure instead of its record, which is still checked.
    pub fn assume(&mut self, structure: Structure) {
        self.postings.assumed = Some(structure);
    }

    /// Rows of `%_docsize` may be lost: a row that it does not list was not necessarily deleted.
    pub fn docsize_is_damaged(&mut self) {
        self.docsize_whole = false;
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

    /// What was given of each row, ascending.
    fn rows(&self) -> Vec<(i64, RowState)> {
        let mut unlisted: Vec<i64> = self.docsize.others().chain(self.postings.sums.others()).chain(self.texts.texts.others()).collect();
        unlisted.sort_unstable();
        unlisted.dedup();
        let listed = self.listed.iter().enumerate().map(|(place, rowid)| (rowid, Some(place)));
        let listed_ids: Vec<i64> = self.listed.iter().collect();
        let unlisted = unlisted.into_iter().filter(|r| listed_ids.binary_search(r).is_err()).map(|rowid| (rowid, None));
        let mut rows: Vec<(i64, RowState)> = listed
            .chain(unlisted)
            .map(|(rowid, place)| {
                let mut index = Sum::default();
                for sum in self.postings.sums.of(place, rowid) {
                    index.hash = index.hash.wrapping_add(sum.hash);
                    index.tokens = index.tokens.wrapping_add(sum.tokens);
                }
                let docsize = self.docsize.of(place, rowid).find_map(|d| *d);
                let text = self.texts.texts.of(place, rowid).find_map(|t| *t);
                (rowid, RowState { index, docsize, text })
            })
            .collect();
        rows.sort_unstable_by_key(|(rowid, _)| *rowid);
        rows
    }

    /// Compares what was given, and notes what was found at `site`.
    #[must_use]
    pub fn finish(mut self, log: &mut Findings, site: Site) -> Checked {
        self.texts.tokenize(&self.listed);
        self.out.structure = self.postings.structure.take();
        self.out.sound = self.postings.sound;
        (self.out.bad_leaves, self.out.deletions_lost) = (self.postings.bad_leaves, self.postings.deletions_lost);
        (self.out.content_rows, self.out.docsize_rows) = (self.texts.totals.rows, self.docsize_rows);
        if !self.settings.version_is_known() {
            let got = self.settings.version.and_then(|v| u64::try_from(v).ok()).unwrap_or(0);
            log.add(Defect::new(Code::FtsVersionBad, 0, got, u64::try_from(VERSION).unwrap_or(0)), site);
        }
        for defect in &self.postings.found {
            log.add(*defect, site);
        }
        let has_content = matches!(self.config.content, Content::Stored | Content::External(_));
        let readable = self.out.structure.is_some();
        let rows = self.rows();
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
            let variants = self.texts.older.get(&rowid).map_or(&[][..], Vec::as_slice);
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
            let averages = self.postings.averages.clone().unwrap_or_default();
            if averages.rows != self.texts.totals.rows {
                self.out.sound = false;
                log.add(Defect::new(Code::AveragesDiffer, 0, averages.rows, self.texts.totals.rows), site);
            } else if let Some((got, want)) = averages.tokens.iter().zip(&self.texts.totals.tokens).find(|(a, b)| a != b) {
                self.out.sound = false;
                log.add(Defect::new(Code::AveragesDiffer, 0, *got, *want), site);
            }
        }
        self.out
    }
}
