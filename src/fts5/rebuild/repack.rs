//! Writes an index anew from its own postings, for tables whose text is nowhere else, and for tokenizers that cannot be run.

use std::collections::{BTreeMap, BTreeSet};

use super::built::{Built, Pieces};
use super::spool::Spool;
use super::{Config, Options};
use crate::bytes::{put_varint, put_varint_i64, varint};
use crate::error::Result;
use crate::fts5::config::Detail;
use crate::fts5::segment::cursor::{Blocks, Positions, Posting};
use crate::fts5::segment::merged::{Found, Merged};
use crate::fts5::segment::structure::{Averages, Structure};
use crate::fts5::segment::writer::SegmentWriter;
use crate::fts5::segment::{AVERAGES_ID, MAIN_INDEX};
use crate::ids::{idx, wide};

/// The index that the readable postings make, merged to one segment, with what was wrong on the way.
///
/// `docsize` gives the rows `(id, sz)` of `%_docsize`; postings of rows for which `keep` says no are left out, and so are their
/// counts. Those of the rows in `recount` are counted anew: tokens of each column or, where the index does not say how
/// often a token occurs, different tokens.
///
/// # Errors
/// What temporary files can raise.
pub fn repack(
    config: &Config,
    blocks: &dyn Blocks,
    structure: &Structure,
    mut docsize: BTreeMap<i64, Vec<u8>>,
    keep: impl Fn(i64) -> bool,
    recount: &BTreeSet<i64>,
    options: &Options,
) -> Result<(Built, Vec<Found>)> {
    let mut pieces = Pieces::new(options);
    let mut writer = SegmentWriter::new(1, config.detail, options.page_size);
    let mut merged = Merged::new(blocks, structure, config.detail);
    let mut term: Vec<u8> = Vec::new();
    let mut after: Option<i64> = None;
    let mut list = Vec::new();
    let mut counted = Counted::new(config, recount, !config.columnsize && blocks.block(AVERAGES_ID).is_none());
    while let Some(posting) = merged.step() {
        if !keep(posting.rowid) {
            continue;
        }
        if posting.term < term {
            // Out of order through damage: it cannot be written.
            continue;
        }
        if posting.term != term {
            term.clone_from(&posting.term);
            after = None;
        }
        let broken = config.detail != Detail::None && Positions::new(&posting.positions, config.detail).any(|p| p.is_err());
        if broken || after.is_some_and(|a| posting.rowid <= a) {
            continue;
        }
        if after.is_none() {
            writer.term(&term, &mut pieces)?;
        }
        after = Some(posting.rowid);
        counted.add(posting);
        list.clear();
        if config.detail != Detail::None {
            put_varint(&mut list, wide(posting.positions.len()).saturating_mul(2));
            list.extend_from_slice(&posting.positions);
        }
        writer.doclist(posting.rowid, posting.rowid, &list, &mut pieces)?;
    }
    let leaves = writer.finish(&mut pieces)?;
    let (defects, _) = merged.finish();
    let mut averages = Averages { rows: 0, tokens: vec![0; config.columns.len()] };
    let mut sizes = Spool::new(&options.temp_folder, options.memory.checked_div(32).unwrap_or(0));
    for (id, counts) in &counted.rows {
        let mut sz = Vec::new();
        counts.iter().for_each(|n| put_varint(&mut sz, *n));
        docsize.insert(*id, sz);
    }
    for (id, sz) in docsize {
        if !keep(id) {
            continue;
        }
        averages.rows = averages.rows.saturating_add(1);
        let mut at = 0_usize;
        for sum in &mut averages.tokens {
            let Some((n, len)) = varint(&sz, at) else { break };
            at = at.saturating_add(len);
            *sum = sum.saturating_add(n);
        }
        let tail = sizes.tail();
        put_varint_i64(tail, id);
        put_varint(tail, wide(sz.len()));
        tail.extend_from_slice(&sz);
        sizes.settle()?;
    }
    if !config.columnsize
        && let Some(block) = blocks.block(AVERAGES_ID)
    {
        averages = Averages::read(&block, config.columns.len());
    }
    let sizes = config.columnsize.then_some(sizes);
    Ok((pieces.built(leaves, averages, sizes, config.contentless_delete, options.cookie)?, defects))
}

/// The tokens of rows, counted from their postings.
struct Counted {
    detail: Detail,
    columns: usize,
    rows: BTreeMap<i64, Vec<u64>>,
    /// Every row is counted, not only those that are there from the start.
    all: bool,
}

impl Counted {
    fn new(config: &Config, recount: &BTreeSet<i64>, all: bool) -> Counted {
        let columns = config.columns.len();
        Counted { detail: config.detail, columns, rows: recount.iter().map(|id| (*id, vec![0; columns])).collect(), all }
    }

    fn add(&mut self, posting: &Posting) {
        if posting.term.first() != Some(&MAIN_INDEX) {
            return;
        }
        if self.all {
            self.rows.entry(posting.rowid).or_insert_with(|| vec![0; self.columns]);
        }
        let Some(counts) = self.rows.get_mut(&posting.rowid) else { return };
        let mut one = |column: u32| {
            if let Some(n) = counts.get_mut(idx(column)) {
                *n = n.saturating_add(1);
            }
        };
        if self.detail == Detail::None {
            one(0);
            return;
        }
        for (column, _) in Positions::new(&posting.positions, self.detail).flatten() {
            one(column);
        }
    }
}
