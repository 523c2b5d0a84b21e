//! Which structure an index has whose structure record is lost: the order of its segments that its token counts bear out.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::rows::ByRowid;
use crate::fts5::config::{Config, Detail};
use crate::fts5::segment::MAIN_INDEX;
use crate::fts5::segment::cursor::{Blocks, Positions};
use crate::fts5::segment::merged::Merged;
use crate::fts5::segment::structure::{Level, Segment, Structure};

/// The structure that these segments make, the newest word where two of them speak of the same term and row being that of the
/// order that the counts fit best. `counts`: the tokens of each row by `%_docsize`; `None`: nothing counts them, and then
/// nothing decides between two segments. `recorded` is what the structure record says, if it can be read.
#[must_use]
pub fn settle(
    config: &Config,
    blocks: &dyn Blocks,
    segments: &[Segment],
    recorded: Option<&Structure>,
    counts: Option<&BTreeMap<i64, u64>>,
) -> Option<Structure> {
    if segments.is_empty() {
        // An index without entries, or one of which nothing is left.
        let with_deletes = config.contentless_delete;
        return recorded.is_none().then(|| Structure { with_deletes, ..Structure::default() });
    }
    // FTS5 gives the lowest free id, mostly in turn; what was merged is large and old.
    let mut by_size = segments.to_vec();
    by_size.sort_by_key(|s| (Reverse(s.last.saturating_sub(s.first)), s.id));
    let orders = [segments.to_vec(), by_size, segments.iter().rev().copied().collect()];
    let structure = |segments: Vec<Segment>| Structure {
        cookie: recorded.map_or(0, |r| r.cookie),
        with_deletes: config.contentless_delete,
        writes: 0,
        levels: vec![Level { merging: 0, segments }],
    };
    let Some(counts) = counts else {
        let structure = structure(segments.to_vec());
        return recorded.is_none().then_some(structure).filter(|s| misfits(config, blocks, s, None) == 0);
    };
    let mut best: Option<(u64, Structure)> = None;
    for candidate in recorded.cloned().into_iter().chain(orders.map(structure)) {
        let misfits = misfits(config, blocks, &candidate, Some(counts));
        if best.as_ref().is_none_or(|(least, _)| misfits < *least) {
            best = Some((misfits, candidate));
        }
        if misfits == 0 {
            break;
        }
    }
    best.map(|(_, structure)| structure)
}

/// Rows whose entries do not come to their counts; without counts, entries of which two segments say something.
fn misfits(config: &Config, blocks: &dyn Blocks, structure: &Structure, counts: Option<&BTreeMap<i64, u64>>) -> u64 {
    let mut rows: ByRowid<u64> = ByRowid::default();
    let mut merged = Merged::new(blocks, structure, config.detail);
    while let Some(posting) = merged.step() {
        if counts.is_none() || posting.term.first() != Some(&MAIN_INDEX) {
            continue;
        }
        let tokens = match config.detail {
            Detail::Full => Positions::new(&posting.positions, config.detail).filter(Result::is_ok).count(),
            _ => 1,
        };
        let sum = rows.entry(posting.rowid).or_insert(0);
        *sum = sum.saturating_add(crate::ids::wide(tokens));
    }
    let Some(counts) = counts else { return merged.overruled() };
    let fits = |count: u64, found: u64| if config.detail == Detail::Full { count == found } else { (count == 0) == (found == 0) };
    let listed = counts.iter().filter(|(rowid, count)| !fits(**count, rows.get(rowid).copied().unwrap_or(0)));
    let unlisted = rows.keys().filter(|rowid| !counts.contains_key(rowid));
    crate::ids::wide(listed.count().saturating_add(unlisted.count()))
}
