//! Indexes that are all there is of their text: contentless tables.

use std::collections::{BTreeMap, BTreeSet};

use crate::bytes::varint;
use crate::fts5::Config;
use crate::fts5::check::Checked;
use crate::fts5::check::order::settle;
use crate::fts5::config::Detail;
use crate::fts5::segment::structure::{Structure, segments_of};

use super::DataBlocks;

/// What is known of an index without content.
#[derive(Debug, Default)]
pub(crate) struct Alone {
    /// Its segments, where the structure record does not say them.
    pub(crate) structure: Option<Structure>,
    /// Rows whose token counts are made anew.
    pub(crate) recount: BTreeSet<i64>,
    /// Rows of which entries are lost.
    pub(crate) incomplete: Vec<i64>,
    /// Rows that only damaged parts of the index name.
    pub(crate) unlisted: Vec<i64>,
    /// Leaves that are lost when nothing says which rows had entries on them.
    pub(crate) leaves: u64,
}

impl Alone {
    /// What a check says of it. `docsize_is_whole`: no row of `%_docsize` can be missing.
    pub(crate) fn take(&mut self, checked: Checked, config: &Config, docsize_is_whole: bool) {
        // Counts that agree prove that every entry is there; those of prefixes are not counted.
        let proven = docsize_is_whole && config.columnsize && config.detail == Detail::Full && config.prefixes.is_empty();
        self.leaves = if proven || !checked.incomplete.is_empty() { 0 } else { checked.bad_leaves };
        self.recount = checked.docsize_differs.into_iter().collect();
        self.incomplete = checked.incomplete;
        self.unlisted = checked.unlisted;
    }
}

/// The tokens of a row by its `%_docsize`.
pub(crate) fn tokens_of(sizes: &[u8]) -> u64 {
    let mut at = 0_usize;
    let counts = std::iter::from_fn(|| {
        let (n, len) = varint(sizes, at)?;
        at = at.saturating_add(len);
        Some(n)
    });
    counts.fold(0, u64::saturating_add)
}

/// The structure of an index that is all there is of its text, where its record cannot be read or leaves out segments that are
/// there. `None`: the record stands, or nothing decides.
pub(crate) fn structure_from_leaves(
    config: &Config,
    blocks: &DataBlocks<'_, '_>,
    idx: Vec<(i64, i64)>,
    counts: Option<&BTreeMap<i64, u64>>,
) -> Option<Structure> {
    let recorded = blocks.structure();
    let segments = segments_of(blocks.ids(), idx);
    let is_listed = |id: u16| recorded.as_ref().is_some_and(|r| r.segments().any(|s| s.id == id));
    if recorded.is_some() && segments.iter().all(|s| is_listed(s.id)) {
        return None;
    }
    let found = settle(config, blocks, &segments, recorded.as_ref(), counts)?;
    Some(found).filter(|f| Some(f) != recorded.as_ref())
}
