//! The hash of deleted rowids that each segment of a `contentless_delete=1` table may have.
//!
//! A page: 1 byte key size (4 or 8), 1 byte "rowid 0 is deleted" (valid on page 0), 2 bytes unused, 4 bytes count, then slots of
//! the key size, 0 for an empty one.

use std::collections::HashSet;

use super::DataId;
use super::cursor::Blocks;
use super::structure::Segment;
use crate::bytes::{u32_at, u64_at};
use crate::finding::{Code, Defect};
use crate::ids::wide;

const HEADER: usize = 8;

/// The deleted rowids of a segment, and what was wrong with their pages.
#[must_use]
pub fn read(blocks: &dyn Blocks, segment: &Segment) -> (HashSet<i64>, Vec<Defect>) {
    let mut rowids = HashSet::new();
    let mut defects = Vec::new();
    for page in 0..segment.deletes.tombstone_pages {
        let bad = Defect::new(Code::TombstonesBad, 0, page.into(), segment.id.into());
        let Some(block) = blocks.block(DataId::Tombstones { segment: segment.id, page }.id()) else {
            defects.push(bad);
            // A damaged count could name two thousand million pages.
            if defects.len() > 100 {
                break;
            }
            continue;
        };
        let found = rowids.len();
        if page == 0 && block.get(1).is_some_and(|&b| b != 0) {
            rowids.insert(0);
        }
        let slots = block.get(HEADER..).unwrap_or_default();
        let four = block.first() == Some(&4);
        let size = if four { 4 } else { 8 };
        for slot in slots.chunks_exact(size) {
            let n = if four { u32_at(slot, 0).map(u64::from) } else { u64_at(slot, 0) };
            if let Some(n) = n.filter(|&n| n != 0) {
                rowids.insert(i64::from_ne_bytes(n.to_ne_bytes()));
            }
        }
        let counted = u32_at(&block, 4).map(u64::from);
        let on_page = rowids.len().saturating_sub(found);
        if !matches!(block.first(), Some(4 | 8)) || counted.is_none_or(|c| c > wide(on_page).saturating_add(1)) {
            defects.push(bad);
        }
    }
    (rowids, defects)
}
