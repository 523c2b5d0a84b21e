//! The side of the index: its segments read once, a sum over the entries of each row.

use super::layout::{self, IdxRow};
use super::rows::{Listed, PerRow};
use super::sums::{self, Sum};
use crate::finding::{Code, Defect};
use crate::fts5::config::{Config, Detail, Settings, VERSION_SECURE_DELETE};
use crate::fts5::segment::cursor::{Blocks, Positions};
use crate::fts5::segment::merged::Merged;
use crate::fts5::segment::structure::{Averages, Structure};
use crate::fts5::segment::{AVERAGES_ID, DataId, MAIN_INDEX, STRUCTURE_ID};

/// What the segments hold, and what is wrong with them.
#[derive(Debug)]
pub(super) struct Postings<'a> {
    config: &'a Config,
    settings: &'a Settings,
    /// Rows of `%_idx`.
    pub(super) idx: Vec<IdxRow>,
    /// The sum over the entries of each row.
    pub(super) sums: PerRow<Sum>,
    /// What was found, in order.
    pub(super) found: Vec<Defect>,
    /// Whether nothing is wrong with the index in itself.
    pub(super) sound: bool,
    /// The structure record, when it decodes, or what is read in its stead.
    pub(super) structure: Option<Structure>,
    /// Segment leaves that are missing or cannot be read to their end.
    pub(super) bad_leaves: u64,
    /// Whether deletions may be lost.
    pub(super) deletions_lost: bool,
    /// The averages record.
    pub(super) averages: Option<Averages>,
    /// Read by this structure instead of the record, which is still checked.
    pub(super) assumed: Option<Structure>,
}

impl<'a> Postings<'a> {
    pub(super) fn new(config: &'a Config, settings: &'a Settings) -> Postings<'a> {
        Postings {
            config,
            settings,
            idx: Vec::new(),
            sums: PerRow::default(),
            found: Vec::new(),
            sound: true,
            structure: None,
            bad_leaves: 0,
            deletions_lost: false,
            averages: None,
            assumed: None,
        }
    }

    fn unsound(&mut self, defect: Defect) {
        self.sound = false;
        match defect.code {
            Code::SegmentLeafMissing | Code::SegmentLeafBad | Code::TermOrder => {
                self.bad_leaves = self.bad_leaves.saturating_add(1);
            }
            Code::TombstonesBad => self.deletions_lost = true,
            _ => {}
        }
        self.found.push(defect);
    }

    /// Reads the index. `ids` are all ids of `%_data`, in order.
    pub(super) fn read(&mut self, listed: &Listed, blocks: &dyn Blocks, ids: impl IntoIterator<Item = i64>) {
        match blocks.block(STRUCTURE_ID) {
            None => self.unsound(Defect::new(Code::StructureRecordMissing, 0, 0, 0)),
            Some(block) => match Structure::read(&block) {
                Ok(structure) => self.structure = Some(structure),
                Err(defect) => self.unsound(defect),
            },
        }
        if let Some(assumed) = self.assumed.take() {
            // The record decodes and cannot be right.
            if self.structure.is_some() {
                self.unsound(Defect::new(Code::StructureRecordBad, 0, 0, 0));
            }
            self.structure = Some(assumed);
            self.deletions_lost = true;
        }
        let structure = self.structure.clone().unwrap_or_default();
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
            let row = self.sums.entry(listed, posting.rowid);
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
        if self.structure.is_some() {
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
}
