//! Ranges of bytes on one page: what a cell takes, what others leave, which of them stand beside each other.

use crate::bytes::varint;
use crate::format::{PageKind, Split};
use crate::ids::{idx, wide};

/// A cell without its borrowed bytes.
pub(super) struct Begun<'a> {
    pub(super) rowid: Option<i64>,
    pub(super) payload_len: u64,
    pub(super) record_at: usize,
    /// Where its local bytes end; behind the page for a cell that was cut.
    pub(super) end: usize,
    pub(super) overflow_at: Option<usize>,
    pub(super) local: &'a [u8],
}

/// As [`Cell::read`], also for a cell that ends behind the page.
pub(super) fn read_cell<'a>(bytes: &'a [u8], at: usize, kind: PageKind, split: &Split) -> Option<Begun<'a>> {
    let (payload_len, n) = varint(bytes, at)?;
    if payload_len > 0x7fff_ffff {
        return None;
    }
    let mut o = at.saturating_add(n);
    let mut rowid = None;
    if kind == PageKind::TableLeaf {
        let (r, n) = crate::bytes::varint_i64(bytes, o)?;
        rowid = Some(r);
        o = o.saturating_add(n);
    }
    let local_len = idx(split.local_len(kind, payload_len));
    let end = o.saturating_add(local_len);
    let local = bytes.get(o..end.min(bytes.len()))?;
    let overflow_at = (payload_len > wide(local_len)).then_some(end);
    Some(Begun { rowid, payload_len, record_at: o, end, overflow_at, local })
}

/// What of a range the others, ascending, leave.
pub(super) fn complement(range: (usize, usize), taken: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let mut out = Vec::new();
    let mut at = range.0;
    for (start, end) in taken {
        if *start > at {
            out.push((at, (*start).min(range.1)));
        }
        at = at.max(*end);
        if at >= range.1 {
            break;
        }
    }
    if at < range.1 {
        out.push((at, range.1));
    }
    out.retain(|(s, e)| s < e);
    out
}

/// Which of the intervals, sorted by their ends, do not overlap and weigh most together. Of two that weigh the same the
/// later one: it was written into the other.
pub(super) fn best_apart(items: &[(usize, i64)], ends: &[usize]) -> Vec<bool> {
    let n = items.len();
    let mut best = vec![0_i64; n.saturating_add(1)];
    let mut takes = vec![false; n];
    let before: Vec<usize> = items.iter().map(|(start, _)| ends.partition_point(|e| e <= start)).collect();
    for i in 0..n {
        let (Some((_, weight)), Some(&p)) = (items.get(i), before.get(i)) else { continue };
        let with = weight.saturating_add(best.get(p.min(i)).copied().unwrap_or(0));
        let without = best.get(i).copied().unwrap_or(0);
        let take = with >= without;
        if let Some(place) = best.get_mut(i.saturating_add(1)) {
            *place = if take { with } else { without };
        }
        if let Some(place) = takes.get_mut(i) {
            *place = take;
        }
    }
    let mut chosen = vec![false; n];
    let mut i = n;
    while let Some(last) = i.checked_sub(1) {
        if takes.get(last).copied().unwrap_or(false) {
            if let Some(place) = chosen.get_mut(last) {
                *place = true;
            }
            i = before.get(last).copied().unwrap_or(0).min(last);
        } else {
            i = last;
        }
    }
    chosen
}
