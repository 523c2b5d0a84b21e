//! How the tree at a place of the survey is read, and what stands around a place of it.

use crate::survey::pass4_compare::compare;
use crate::survey::rows::reader::{Reader, reader_of};
use crate::survey::stages::Scanned;
use crate::tree::Slot;
use crate::tree::payload::PayloadReader;

/// Slots around a hole that are searched for an entry to compare with.
const NEIGHBOURS: usize = 64;

/// How the tree at a place is read; `None` when nothing says it.
pub(super) fn reader(survey: &Scanned<'_>, tree: usize) -> Option<Reader> {
    let t = survey.trees.get(tree)?;
    reader_of(&survey.catalog, t.object, survey.encoding)
}

/// Whether what came back to a tree can be told from what was deleted: the freelist says which pages were free (`listed`), or
/// an index of the table says which rows were there.
pub(super) fn is_vouched(survey: &Scanned<'_>, reader: &Reader, listed: bool) -> bool {
    match reader {
        Reader::Table(plan) => listed || compare::has_witness(survey, plan),
        Reader::Index(_) => true,
    }
}

/// The records before and behind a slot of an index-like tree.
pub(super) fn edges(survey: &Scanned<'_>, slots: &[Slot], at: usize) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
    let before = slots.get(..at).and_then(|s| s.iter().rev().take(NEIGHBOURS).find_map(|s| edge(survey, s, true)));
    let behind = slots.get(at.saturating_add(1)..).and_then(|s| s.iter().take(NEIGHBOURS).find_map(|s| edge(survey, s, false)));
    (before, behind)
}

/// The last or first record of a slot.
fn edge(survey: &Scanned<'_>, slot: &Slot, last: bool) -> Option<Vec<u8>> {
    let (no, cell) = match *slot {
        Slot::Entry { page, cell } => (page, Some(cell)),
        Slot::Leaf { page, .. } => (page, None),
        Slot::Hole { .. } => return None,
    };
    let page = survey.pages.leaf(no).ok()?;
    let i = cell.unwrap_or_else(|| if last { page.pointer_count().saturating_sub(1) } else { 0 });
    let cell = page.cell(i, &survey.pages.split).ok()?;
    PayloadReader::new().read(&survey.pages, &cell).ok().map(<[u8]>::to_vec)
}
