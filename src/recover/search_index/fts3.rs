//! The segments of FTS3 and FTS4 tables.
//!
//! Tests:    rows of `%_segdir`, the blocks they name, the b-trees of terms.
//! Collects: findings; a family with one is not whole.
//! Leaves:   what the lists of rows say: they are not compared with the text.
//!
//! A segment is a b-tree of terms. `%_segdir.root` is its root: a leaf when `start_block` is 0, otherwise the leaves are the
//! blocks of `%_segments` from `start_block` to `leaves_end_block`. A node begins with its height as a varint. A leaf: for each
//! term the length shared with the one before (not for the first), the length of the rest, the rest, the length of its list of rows,
//! the list, which ends with a 0. An inner node: the number of its first child, then terms without lists, each of which
//! begins one more child.

use std::collections::BTreeSet;

use crate::ctx::Ctx;
use crate::error::Result;
use crate::finding::{Code, Defect, Findings, Site};
use crate::format::Value;
use crate::fts5::segment::cursor::Blocks;
use crate::ids::{ObjectId, wide};
use crate::schema::{Family, FtsModule, FtsPart, ObjectKind};
use crate::survey::Survey;

use super::{DataBlocks, each, table_of};

/// Levels of a b-tree; FTS3 itself gets nowhere near.
const MAX_HEIGHT: u64 = 64;

/// Checks the segments of every FTS3 and FTS4 table.
///
/// # Errors
/// Cancellation only.
pub(crate) fn check(survey: &Survey<'_>, log: &mut Findings, ctx: &Ctx) -> Result<()> {
    let part = |of: ObjectId, wanted: FtsPart| {
        let is = |f: Family| matches!(f, Family::FtsShadow { of: o, module: FtsModule::Fts3, part } if o == of && part == wanted);
        survey.catalog.objects().iter().find(|o| o.kind == ObjectKind::Table && is(o.family)).map(|o| o.id)
    };
    for object in survey.catalog.objects().iter().filter(|o| o.kind == ObjectKind::Virtual && o.excluded.is_none()) {
        let Some(segdir_id) = part(object.id, FtsPart::Segdir) else { continue };
        let (Some(segdir), Some(segments)) =
            (table_of(survey, segdir_id), part(object.id, FtsPart::Segments).and_then(|id| table_of(survey, id)))
        else {
            continue;
        };
        let blocks = DataBlocks::read(survey, segments, ctx)?;
        each(survey, segdir, ctx, |_, values| {
            let number = |i: usize| match values.get(i) {
                Some(Value::Int(n)) => u64::try_from(*n).ok(),
                // `end_block` may carry the size of the segment behind a space.
                Some(Value::Text(t)) => std::str::from_utf8(&survey.encoding.to_utf8(t)).ok()?.split(' ').next()?.parse().ok(),
                _ => None,
            };
            let root = match values.get(5) {
                Some(Value::Blob(root)) => Some(*root),
                _ => None,
            };
            let level = number(0);
            let segment = || Some(Segment { first: number(2)?, last_leaf: number(3)?, last: number(4)?, root: root? });
            let sound = level.is_some() && number(1).is_some() && segment().is_some_and(|s| s.is_sound(&blocks));
            if !sound {
                log.add(Defect::new(Code::Fts3SegmentBad, 0, number(1).unwrap_or(0), level.unwrap_or(0)), Site::object(segdir_id));
            }
        })?;
    }
    Ok(())
}

/// A row of `%_segdir`.
struct Segment<'r> {
    first: u64,
    last_leaf: u64,
    last: u64,
    root: &'r [u8],
}

impl Segment<'_> {
    fn is_sound(&self, blocks: &dyn Blocks) -> bool {
        let mut before = Vec::new();
        if self.first == 0 {
            return leaf(self.root, &mut before).is_some();
        }
        if self.first > self.last_leaf || self.last_leaf > self.last {
            return false;
        }
        self.inner_nodes(blocks).is_some() && self.leaves(blocks).is_some()
    }

    /// Every leaf is there and its terms are above those of the leaf before. The blocks that are there bound the work.
    fn leaves(&self, blocks: &dyn Blocks) -> Option<()> {
        let mut before = Vec::new();
        for no in self.first..=self.last_leaf {
            leaf(&blocks.block(i64::try_from(no).ok()?)?, &mut before)?;
        }
        Some(())
    }

    /// The inner nodes, from the root down: each child is a block of the segment and one level lower.
    fn inner_nodes(&self, blocks: &dyn Blocks) -> Option<()> {
        let mut seen = BTreeSet::new();
        let mut open = inner(self.root, None)?;
        while let Some((child, height)) = open.pop() {
            if height == 0 {
                (self.first..=self.last_leaf).contains(&child).then_some(())?;
                continue;
            }
            if child <= self.last_leaf || child > self.last || !seen.insert(child) {
                return None;
            }
            open.extend(inner(&blocks.block(i64::try_from(child).ok()?)?, Some(height))?);
        }
        Some(())
    }
}

/// Reads the terms of a leaf, at least one, each above the one before.
fn leaf(node: &[u8], before: &mut Vec<u8>) -> Option<()> {
    let mut reader = Reader { node, at: 0 };
    (reader.varint()? == 0).then_some(())?;
    let mut first = true;
    while first || reader.at < node.len() {
        reader.term(first, before)?;
        let len = reader.varint()?;
        let list = reader.bytes(len)?;
        if list.last().is_some_and(|b| *b != 0) {
            return None;
        }
        first = false;
    }
    Some(())
}

/// The children of an inner node, each with its height.
fn inner(node: &[u8], height: Option<u64>) -> Option<Vec<(u64, u64)>> {
    let mut reader = Reader { node, at: 0 };
    let own = reader.varint()?;
    if own == 0 || own > MAX_HEIGHT || height.is_some_and(|h| h != own) {
        return None;
    }
    let below = own.checked_sub(1)?;
    let mut child = reader.varint()?;
    let mut children = vec![(child, below)];
    let mut before = Vec::new();
    let mut first = true;
    while reader.at < node.len() {
        reader.term(first, &mut before)?;
        child = child.checked_add(1)?;
        children.push((child, below));
        first = false;
    }
    Some(children)
}

/// *Chained*: what stands in a node, one behind the other.
struct Reader<'n> {
    node: &'n [u8],
    at: usize,
}

impl<'n> Reader<'n> {
    /// FTS3 writes the low bits first.
    fn varint(&mut self) -> Option<u64> {
        let mut n = 0_u64;
        for (shift, at) in (0_u32..64).step_by(7).zip(self.at..) {
            let b = *self.node.get(at)?;
            n |= u64::from(b & 0x7f).checked_shl(shift)?;
            if b & 0x80 == 0 {
                self.at = at.checked_add(1)?;
                return Some(n);
            }
        }
        None
    }

    fn bytes(&mut self, len: u64) -> Option<&'n [u8]> {
        let end = self.at.checked_add(usize::try_from(len).ok()?)?;
        let bytes = self.node.get(self.at..end)?;
        self.at = end;
        Some(bytes)
    }

    /// The next term in place of the one before, which it has to be above.
    fn term(&mut self, first: bool, term: &mut Vec<u8>) -> Option<()> {
        let shared = if first { 0 } else { self.varint()? };
        let rest = self.varint()?;
        if rest == 0 || shared > wide(term.len()) {
            return None;
        }
        let rest = self.bytes(rest)?;
        let (kept, cut) = term.split_at_checked(usize::try_from(shared).ok()?)?;
        if rest <= cut && !(first && kept.is_empty() && cut.is_empty()) {
            return None;
        }
        term.truncate(usize::try_from(shared).ok()?);
        term.extend_from_slice(rest);
        Some(())
    }
}
