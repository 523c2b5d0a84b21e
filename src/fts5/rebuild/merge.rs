//! Runs of postings, kept in memory or spilled, and their merge.
//!
//! Runs are numbered in the order of their rowids, so that the doclist of a term is the concatenation of its parts in the order
//! of the runs.

#![expect(clippy::arithmetic_side_effects, reason = "computes on counts of its own, bounded by memory")]

use std::cmp::Ordering;
use std::path::{Path, PathBuf};

use super::postings::{put_record, sort_key};
use super::spool::{Reader, Shared, Stored};
use crate::error::Result;
use crate::ids::{narrow, wide};

/// Bytes that are read at a time from each spilled run.
const STEP: usize = 64 << 10;

/// The runs written so far.
#[derive(Debug)]
pub struct Runs {
    folder: PathBuf,
    limit: usize,
    in_memory: usize,
    file: Option<Shared>,
    file_end: u64,
    runs: Vec<Stored>,
}

impl Runs {
    /// Runs that take about `limit` bytes of memory, before and while they are merged.
    pub fn new(folder: &Path, limit: usize) -> Runs {
        Runs { folder: folder.to_path_buf(), limit: limit.max(1 << 20), in_memory: 0, file: None, file_end: 0, runs: Vec::new() }
    }

    /// Adds a run whose rowids are above those of all runs before it.
    pub fn push(&mut self, run: Vec<u8>) -> Result<()> {
        self.in_memory += run.len();
        self.runs.push(Stored::Memory(run));
        if self.in_memory > self.limit {
            self.spill()?;
        }
        Ok(())
    }

    fn shared(&mut self) -> Result<Shared> {
        match &self.file {
            Some(file) => Ok(file.clone()),
            None => Ok(self.file.insert(Shared::new(&self.folder)?).clone()),
        }
    }

    fn spill(&mut self) -> Result<()> {
        let shared = self.shared()?;
        for run in &mut self.runs {
            if let Stored::Memory(bytes) = run {
                shared.write(self.file_end, bytes)?;
                let len = wide(bytes.len());
                *run = Stored::File { shared: shared.clone(), at: self.file_end, len };
                self.file_end += len;
            }
        }
        self.in_memory = 0;
        Ok(())
    }

    /// How many runs can be merged at once.
    fn fan_in(&self) -> usize {
        (self.limit / STEP).clamp(16, 1024)
    }

    /// All records in order of term, then run.
    pub fn merge(mut self) -> Result<Merge> {
        // Neighbours are merged to longer runs until all can be read at once.
        while self.runs.len() > self.fan_in() {
            self.spill()?;
            let fan_in = self.fan_in();
            let mut longer = Vec::new();
            let mut runs = std::mem::take(&mut self.runs).into_iter();
            loop {
                let group: Vec<Stored> = runs.by_ref().take(fan_in).collect();
                if group.is_empty() {
                    break;
                }
                longer.push(self.merge_group(group)?);
            }
            self.runs = longer;
        }
        Merge::new(self.runs)
    }

    fn merge_group(&mut self, group: Vec<Stored>) -> Result<Stored> {
        // Into a new place of the same file; the old places are not used again.
        let shared = self.shared()?;
        let at = self.file_end;
        let mut merge = Merge::new(group)?;
        let mut out = Vec::new();
        while let Some(record) = merge.next()? {
            put_record(&mut out, record.term, record.first, record.last, record.doclist);
            if out.len() > 1 << 20 {
                shared.write(self.file_end, &out)?;
                self.file_end += wide(out.len());
                out.clear();
            }
        }
        shared.write(self.file_end, &out)?;
        self.file_end += wide(out.len());
        Ok(Stored::File { shared, at, len: self.file_end - at })
    }
}

/// A part of a term's doclist.
#[derive(Debug)]
pub struct Record<'a> {
    pub term: &'a [u8],
    pub first: i64,
    pub last: i64,
    pub doclist: &'a [u8],
}

#[derive(Debug)]
struct Head {
    reader: Reader,
    key: u64,
    term: Vec<u8>,
}

/// *Chained*: the records of several runs in order.
#[derive(Debug)]
pub struct Merge {
    heads: Vec<Head>,
    /// A binary heap of places in `heads`, the smallest first.
    heap: Vec<usize>,
    used: bool,
}

impl Merge {
    fn new(runs: Vec<Stored>) -> Result<Merge> {
        let mut merge = Merge { heads: Vec::new(), heap: Vec::new(), used: false };
        for run in runs {
            if run.len() == 0 {
                continue;
            }
            let mut head = Head { reader: Reader::new(run, STEP), key: 0, term: Vec::new() };
            if head.advance()? {
                merge.heap.push(merge.heads.len());
                merge.heads.push(head);
            }
        }
        // In order of terms a list is a heap.
        let heads = &merge.heads;
        merge.heap.sort_by(|&a, &b| order(heads, a, b));
        Ok(merge)
    }

    /// The next record.
    pub fn next(&mut self) -> Result<Option<Record<'_>>> {
        if self.used {
            self.used = false;
            let Some(&top) = self.heap.first() else { return Ok(None) };
            let more = match self.heads.get_mut(top) {
                Some(head) => head.advance()?,
                None => false,
            };
            if !more {
                self.heap.swap_remove(0);
            }
            self.sift_down();
        }
        let Some(&top) = self.heap.first() else { return Ok(None) };
        let Some(Head { reader, term, .. }) = self.heads.get_mut(top) else { return Ok(None) };
        self.used = true;
        let signed = |n: Option<u64>| i64::from_ne_bytes(n.unwrap_or(0).to_ne_bytes());
        let first = signed(reader.varint()?);
        let last = signed(reader.varint()?);
        let len = narrow(reader.varint()?.unwrap_or(0));
        Ok(Some(Record { term, first, last, doclist: reader.bytes(len)? }))
    }

    fn sift_down(&mut self) {
        let mut at = 0;
        loop {
            let mut least = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if let (Some(&c), Some(&l)) = (self.heap.get(child), self.heap.get(least))
                    && order(&self.heads, c, l) == Ordering::Less
                {
                    least = child;
                }
            }
            if least == at {
                return;
            }
            self.heap.swap(at, least);
            at = least;
        }
    }
}

fn order(heads: &[Head], a: usize, b: usize) -> Ordering {
    match (heads.get(a), heads.get(b)) {
        (Some(x), Some(y)) => x.key.cmp(&y.key).then_with(|| x.term.cmp(&y.term)).then(a.cmp(&b)),
        _ => a.cmp(&b),
    }
}

impl Head {
    /// Reads the term of the next record; `false` at the end of the run.
    fn advance(&mut self) -> Result<bool> {
        let Some(len) = self.reader.varint()? else { return Ok(false) };
        let term = self.reader.bytes(narrow(len))?;
        self.key = sort_key(term);
        self.term.clear();
        self.term.extend_from_slice(term);
        Ok(true)
    }
}
