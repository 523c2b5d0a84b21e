//! Whether the rows of `%_idx` and the doclist indexes lead to the right leaves.

use std::collections::BTreeMap;

use crate::bytes::varint;
use crate::finding::{Code, Defect};
use crate::fts5::segment::DataId;
use crate::fts5::segment::cursor::{Blocks, LeafSeen};
use crate::fts5::segment::merged::SegmentSeen;
use crate::ids::wide;

/// A row of `%_idx`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdxRow {
    /// `segid`.
    pub segment: i64,
    /// `term`.
    pub term: Vec<u8>,
    /// `pgno`: twice the leaf, plus 1 with a doclist index.
    pub page: i64,
}

/// Checks the rows of all segments; every defect with the numbers of leaf and segment.
pub fn check(idx: &[IdxRow], seen: &[SegmentSeen], blocks: &dyn Blocks, secure_delete: bool) -> Vec<Defect> {
    let mut out = Vec::new();
    let mut by_segment: BTreeMap<i64, Vec<&IdxRow>> = BTreeMap::new();
    for row in idx {
        by_segment.entry(row.segment).or_default().push(row);
    }
    for segment in seen {
        let rows = by_segment.remove(&i64::from(segment.segment.id)).unwrap_or_default();
        one(segment, &rows, blocks, secure_delete, &mut out);
    }
    for row in by_segment.into_values().flatten() {
        let number = |n: i64| u64::try_from(n).unwrap_or(0);
        out.push(Defect::new(Code::IdxStale, 0, number(row.page >> 1), number(row.segment)));
    }
    out
}

fn one(seen: &SegmentSeen, rows: &[&IdxRow], blocks: &dyn Blocks, secure_delete: bool, out: &mut Vec<Defect>) {
    let segment = &seen.segment;
    if segment.first == 0 {
        return;
    }
    let leaf = |page: u32| seen.leaves.binary_search_by_key(&page, |l| l.page).ok().and_then(|i| seen.leaves.get(i));
    let mut by_page: BTreeMap<u32, &IdxRow> = BTreeMap::new();
    let mut before: Option<&IdxRow> = None;
    for row in rows {
        let page = row.page >> 1;
        let disagrees = Defect::new(Code::IdxDisagrees, 0, u64::try_from(page).unwrap_or(0), segment.id.into());
        if before.is_some_and(|b| b.term >= row.term || b.page >= row.page) {
            out.push(disagrees);
        }
        before = Some(row);
        match u32::try_from(page) {
            // Its leaf was used up by a running merge.
            Ok(page) if page < segment.first => {}
            Ok(page) if page <= segment.last => {
                if by_page.insert(page, row).is_some() {
                    out.push(disagrees);
                }
            }
            _ => out.push(disagrees),
        }
    }
    for l in seen.leaves.iter().filter(|l| l.sound) {
        let disagrees = Defect::new(Code::IdxDisagrees, 0, l.page.into(), segment.id.into());
        match (by_page.get(&l.page), &l.first_term) {
            (None, None) => {}
            (Some(row), Some(first)) => {
                let above = row.term > l.term_before || l.term_before.is_empty();
                if row.term > *first || !above {
                    out.push(disagrees);
                }
            }
            // The row of the first leaf stays when deletions have emptied it.
            (Some(row), None) if secure_delete && row.term.is_empty() => {}
            _ => out.push(disagrees),
        }
    }
    for (&page, row) in by_page.iter().filter(|(_, row)| row.page & 1 == 1) {
        let after = page.saturating_add(1);
        let end = by_page.range(after..).next().map_or(segment.last, |(p, _)| *p);
        let expected: Vec<(u32, i64)> = (after..=end).filter_map(|p| Some((p, leaf(p)?.first_rowid?))).collect();
        if leaf(page).is_some_and(|l: &LeafSeen| l.sound) && !doclist_index(segment.id, page, end, &expected, blocks, secure_delete) {
            out.push(Defect::new(Code::DoclistIndexBad, 0, page.into(), segment.id.into()));
        }
        let _ = row;
    }
}

/// Whether a doclist index names the leaves with their first rowids.
fn doclist_index(segment: u16, first: u32, end: u32, expected: &[(u32, i64)], blocks: &dyn Blocks, secure_delete: bool) -> bool {
    let mut named = Vec::new();
    let mut page = first;
    loop {
        let Some(block) = blocks.block(DataId::DoclistIndex { segment, height: 0, page }.id()) else { return false };
        let Some(more) = read_index_page(&block, end, &mut named) else { return false };
        // The last page that is not the root is not marked; it is the one that reaches the last leaf with a rowid.
        let reached = named.last().map(|n: &(u32, i64)| n.0) >= expected.last().map(|e| e.0);
        if !more || reached || wide(named.len()) > u64::from(end) {
            break;
        }
        page = page.saturating_add(1);
    }
    if secure_delete {
        let leaf = |page: u32| expected.binary_search_by_key(&page, |e| e.0).ok().and_then(|i| expected.get(i));
        return named.iter().all(|(page, rowid)| leaf(*page).is_none_or(|(_, r)| r >= rowid));
    }
    named == expected
}

/// Adds what a page of height 0 names; whether it is one of several.
fn read_index_page(block: &[u8], end: u32, named: &mut Vec<(u32, i64)>) -> Option<bool> {
    let flags = *block.first()?;
    let (page, len) = varint(block, 1)?;
    let mut page = u32::try_from(page).ok()?;
    let mut at = len.checked_add(1)?;
    let mut rowid = 0_i64;
    let mut first = true;
    while at < block.len() {
        let (n, len) = varint(block, at)?;
        at = at.checked_add(len)?;
        if first || n != 0 {
            rowid = if first { i64::from_ne_bytes(n.to_ne_bytes()) } else { rowid.wrapping_add_unsigned(n) };
            if page > end {
                return None;
            }
            named.push((page, rowid));
        }
        first = false;
        page = page.checked_add(1)?;
    }
    Some(flags & 1 == 1)
}
