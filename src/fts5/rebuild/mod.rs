//! Builds an FTS5 index anew from rows: the rows of `%_data`, `%_idx` and `%_docsize` that FTS5's own `rebuild` would
//! answer searches from.
//!
//! Rows are gathered to chunks, chunks are tokenized on all cores, each to a sorted run of postings; runs beyond the memory limit
//! go to an unnamed temporary file; at the end they are merged into one segment. The result depends on the rows alone,
//! not on chunks, threads or the memory limit.

#![expect(clippy::arithmetic_side_effects, reason = "computes on counts of its own rows and buffers")]

mod built;
mod merge;
mod postings;
mod repack;
mod spool;

use std::path::{Path, PathBuf};

use rayon::prelude::*;

use self::built::Pieces;
pub use self::built::{Built, DataRows, DocsizeRows, IdxRows};
use self::merge::Runs;
use self::postings::Postings;
pub use self::repack::repack;
use self::spool::Spool;
use super::config::{Config, Detail};
use super::segment::MAIN_INDEX;
use super::segment::structure::Averages;
use super::segment::writer::SegmentWriter;
use super::tokenizer::{MAX_TOKEN, Scratch, Tokenizer, utf8};
use crate::bytes::{put_varint, put_varint_i64};
use crate::error::{Error, Result};
use crate::ids::wide;

/// How a rebuild goes about its work; the result is the same.
#[derive(Debug, Clone)]
pub struct Options {
    /// Bytes of memory to keep to, about.
    pub memory: usize,
    /// Where temporary files go.
    pub temp_folder: PathBuf,
    /// Size of a leaf, in bytes: the setting `pgsz`.
    pub page_size: u32,
    /// The cookie of the structure record; any will do.
    pub cookie: u32,
}

impl Options {
    /// Defaults that fit the limits of a run.
    #[must_use]
    pub fn new(limits: &crate::ctx::Limits, temp_folder: &Path) -> Options {
        Options { memory: limits.memory, temp_folder: temp_folder.to_path_buf(), page_size: 4050, cookie: 0 }
    }
}

/// Takes rows in order of their rowids.
#[derive(Debug)]
pub struct Rebuilder {
    job: Job,
    options: Options,
    chunk_limit: usize,
    batch_limit: usize,
    chunks: Vec<Chunk>,
    runs: Runs,
    docsize: Spool,
    averages: Averages,
    last: Option<i64>,
}

/// What every chunk needs to know.
#[derive(Debug)]
struct Job {
    tokenizer: Tokenizer,
    indexed: Vec<bool>,
    prefixes: Vec<u32>,
    detail: Detail,
    columnsize: bool,
    with_deletes: bool,
}

/// Rows not yet tokenized: the text of all, and where each value ends.
#[derive(Debug, Default)]
struct Chunk {
    rowids: Vec<i64>,
    /// Bytes of each indexed column of each row; `None` for NULL.
    values: Vec<Option<usize>>,
    text: Vec<u8>,
}

/// A chunk tokenized.
struct Tokenized {
    run: Vec<u8>,
    docsize: Vec<u8>,
    tokens: Vec<u64>,
    rows: u64,
}

impl Rebuilder {
    /// A rebuild of the index that a declaration asks for, with its tokenizer.
    #[must_use]
    pub fn new(config: &Config, tokenizer: Tokenizer, options: Options) -> Rebuilder {
        let threads = rayon::current_num_threads().max(1);
        let copies = 1 + config.prefixes.len();
        // A chunk is held as text, as growing lists and as a run, together about 12 times its text for trigrams.
        let chunk_limit = (options.memory / (threads * 16 * copies)).clamp(1 << 16, 4 << 20);
        Rebuilder {
            job: Job {
                tokenizer,
                indexed: config.columns.iter().map(|c| c.indexed).collect(),
                prefixes: config.prefixes.clone(),
                detail: config.detail,
                columnsize: config.columnsize,
                with_deletes: config.contentless_delete,
            },
            chunk_limit,
            batch_limit: threads,
            chunks: Vec::new(),
            runs: Runs::new(&options.temp_folder, options.memory / 4),
            docsize: Spool::new(&options.temp_folder, options.memory / 32),
            averages: Averages { rows: 0, tokens: vec![0; config.columns.len()] },
            options,
            last: None,
        }
    }

    /// Adds a row: its rowid, above all before it, and for each declared column its text as UTF-8 (what SQLite's
    /// `CAST(x AS TEXT)` gives), `None` for NULL. Columns that are not indexed are ignored.
    ///
    /// # Errors
    /// A rowid out of order, and what temporary files can raise.
    pub fn push(&mut self, rowid: i64, columns: &[Option<&[u8]>]) -> Result<()> {
        if self.last.is_some_and(|last| rowid <= last) {
            return Err(Error::Usage { what: format!("search index rows must come in order of rowid, {rowid} does not") });
        }
        self.last = Some(rowid);
        if self.chunks.last().is_none_or(|c| c.text.len() >= self.chunk_limit || c.rowids.len() >= self.chunk_limit / 16) {
            if self.chunks.len() >= self.batch_limit {
                self.work()?;
            }
            self.chunks.push(Chunk::default());
        }
        let Some(chunk) = self.chunks.last_mut() else { return Ok(()) };
        chunk.rowids.push(rowid);
        for (i, _) in self.job.indexed.iter().enumerate().filter(|(_, indexed)| **indexed) {
            let text = columns.get(i).copied().flatten();
            chunk.values.push(text.map(<[u8]>::len));
            chunk.text.extend_from_slice(text.unwrap_or_default());
        }
        Ok(())
    }

    fn work(&mut self) -> Result<()> {
        let job = &self.job;
        let done: Vec<Tokenized> = std::mem::take(&mut self.chunks).into_par_iter().map(|c| job.tokenize(&c)).collect();
        for t in done {
            self.averages.rows += t.rows;
            for (sum, n) in self.averages.tokens.iter_mut().zip(t.tokens) {
                *sum += n;
            }
            self.docsize.tail().extend_from_slice(&t.docsize);
            self.docsize.settle()?;
            self.runs.push(t.run)?;
        }
        Ok(())
    }

    /// Merges everything into one segment.
    ///
    /// # Errors
    /// What temporary files can raise.
    pub fn finish(mut self) -> Result<Built> {
        self.work()?;
        let mut pieces = Pieces::new(&self.options);
        let mut writer = SegmentWriter::new(1, self.job.detail, self.options.page_size);
        let mut merge = self.runs.merge()?;
        let mut term: Vec<u8> = Vec::new();
        while let Some(record) = merge.next()? {
            if term.is_empty() || record.term != term {
                term.clear();
                term.extend_from_slice(record.term);
                writer.term(&term, &mut pieces)?;
            }
            writer.doclist(record.first, record.last, record.doclist, &mut pieces)?;
        }
        let leaves = writer.finish(&mut pieces)?;
        let docsize = self.job.columnsize.then_some(self.docsize);
        pieces.built(leaves, self.averages, docsize, self.job.with_deletes, self.options.cookie)
    }
}

impl Job {
    fn tokenize(&self, chunk: &Chunk) -> Tokenized {
        let mut postings = Postings::new(self.detail);
        let mut scratch = Scratch::default();
        let mut docsize = Vec::new();
        let mut tokens = vec![0_u64; self.indexed.len()];
        let mut values = chunk.values.iter();
        let mut text = chunk.text.as_slice();
        for &rowid in &chunk.rowids {
            let sizes_at = docsize.len();
            if self.columnsize {
                put_varint_i64(&mut docsize, rowid);
            }
            let mut sizes = Vec::with_capacity(self.indexed.len());
            for ((column, indexed), sum) in (0_u32..).zip(&self.indexed).zip(&mut tokens) {
                let mut position = 0_u32;
                if *indexed && let Some(Some(len)) = values.next() {
                    let (value, rest) = text.split_at_checked(*len).unwrap_or((text, &[]));
                    text = rest;
                    self.tokenizer.tokenize(value, &mut scratch, |token| {
                        let token = token.text.get(..MAX_TOKEN).unwrap_or(token.text);
                        postings.add(MAIN_INDEX, token, rowid, column, position);
                        for (index, &length) in (MAIN_INDEX + 1..).zip(&self.prefixes) {
                            if let Some(prefix) = utf8::prefix(token, length)
                                && !prefix.is_empty()
                            {
                                postings.add(index, prefix, rowid, column, position);
                            }
                        }
                        position += 1;
                    });
                }
                *sum += u64::from(position);
                put_varint(&mut sizes, position.into());
            }
            if self.columnsize {
                put_varint(&mut docsize, wide(sizes.len()));
                docsize.extend_from_slice(&sizes);
            } else {
                docsize.truncate(sizes_at);
            }
        }
        Tokenized { run: postings.into_run(), docsize, tokens, rows: wide(chunk.rowids.len()) }
    }
}
