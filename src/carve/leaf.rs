//! The bytes of one page that no live cell has, as rows.
//!
//! Tests:    every offset for a whole cell; every place where a freeblock begins or once began for a cell without its head.
//! Collects: the choice of cells that explains most of the bytes and does not overlap.
//! Leaves:   overflow chains, doubles and the comparison with live rows.

use std::collections::BTreeSet;

use crate::bytes::{u8_at, u16_at, varint};
use crate::carve::fit::{self, Fit, Prior, Shapes};
use crate::carve::heads::{Head, Tried};
use crate::carve::shape::Shape;
use crate::carve::spans::{best_apart, complement, read_cell};
use crate::format::{Fields, Page, PageKind, Split};
use crate::ids::{idx, wide};
use crate::tree::TreeKind;

/// What a payload length, a rowid and a record header that agree with one another count for, in bits.
const AGREES: i32 = 14;
/// What a cell pointer that names the cell counts for.
const NAMED: i32 = 16;
/// What a pointer behind the array counts for.
const HINTED: i32 = 8;
/// Bits from which on bytes are a row.
const ENOUGH: i32 = 24;
/// Bits from which on a beginning is the beginning of a row.
const ENOUGH_CUT: i32 = 28;
/// Bits from which on a head inside another cell is that of a later one.
const LATER: i32 = 34;
/// The same for cells whose head is gone.
const ENOUGH_HEADLESS: i32 = 22;
/// How far below what is usual for a table the serial types of a whole cell may stay.
const USUAL: i32 = 16;
/// The same for a cell whose head is gone.
const USUAL_HEADLESS: i32 = 4;
/// Shapes that are tried for cells without head on a page that nothing is known of.
const SHAPES: usize = 12;
/// Cells without head that are weighed against each other in one region.
const WEIGHED: usize = 2000;
/// Places within one region where a freeblock may once have begun.
const STARTS: usize = 400;

/// Where on its page a row lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Spot {
    /// A cell that a pointer of its page names.
    Cell,
    /// A freeblock.
    Freeblock,
    /// Between the pointers and the first cell.
    Gap,
    /// Between cells, in no freeblock.
    Between,
}

impl Spot {
    pub(crate) const ALL: [Spot; 4] = [Spot::Cell, Spot::Freeblock, Spot::Gap, Spot::Between];

    pub(crate) const fn word(self) -> &'static str {
        match self {
            Spot::Cell => "cell",
            Spot::Freeblock => "freeblock",
            Spot::Gap => "gap",
            Spot::Between => "between cells",
        }
    }
}

/// A row as it lies on a page, its overflow chain not yet followed.
#[derive(Debug, Clone)]
pub(crate) struct Raw {
    /// The shapes that it fits, best first; never empty.
    pub(crate) fits: Vec<Fit>,
    pub(crate) rowid: Option<i64>,
    pub(crate) at: usize,
    pub(crate) end: usize,
    pub(crate) spot: Spot,
    /// The record header where it had to be put together again.
    pub(crate) header: Option<Vec<u8>>,
    /// Where the local bytes of the record begin: with the header, or behind it where that was put together.
    pub(crate) local_at: usize,
    /// Where its local bytes end.
    pub(crate) local_end: usize,
    /// The first byte that belongs to something else; not below `local_end`: nothing is gone.
    pub(crate) limit: usize,
    pub(crate) payload_len: u64,
    pub(crate) overflow: Option<u32>,
    pub(crate) solutions: u32,
    pub(crate) clean: bool,
}

impl Raw {
    /// Whether all local bytes are its own.
    pub(crate) fn is_whole(&self) -> bool {
        self.limit >= self.end
    }
}

/// A page to look at.
pub(crate) struct Leaf<'a> {
    /// Its usable bytes.
    pub(crate) bytes: &'a [u8],
    /// Its header, where it has one.
    pub(crate) page: Option<Page<'a>>,
    /// Bytes of live cells, ascending and apart; empty on a page that is not live.
    pub(crate) taken: Vec<(usize, usize)>,
    /// The cells that its pointers name are live.
    pub(crate) live: bool,
    /// The first byte that can be part of a cell.
    pub(crate) from: usize,
    /// The shape of its owner.
    pub(crate) owner: Option<usize>,
    /// The shape of a table that is gone and had its root here: what lies in the gap may be its.
    pub(crate) before: Option<usize>,
    /// The owner is known for certain, and of another kind than tables that rows are given out of.
    pub(crate) foreign: bool,
}

struct Intact {
    raw: Raw,
    score: i32,
}

/// The search on one page.
pub(crate) struct Search<'a> {
    pub(crate) leaf: &'a Leaf<'a>,
    pub(crate) shapes: &'a Shapes,
    pub(crate) split: &'a Split,
    fields: Fields,
}

impl<'a> Search<'a> {
    pub(crate) fn new(leaf: &'a Leaf<'a>, shapes: &'a Shapes, split: &'a Split) -> Search<'a> {
        Search { leaf, shapes, split, fields: Fields::new() }
    }

    /// All rows of the page, by offset.
    pub(crate) fn rows(mut self) -> Vec<Raw> {
        let mut prior = Prior { bits: vec![0; self.shapes.all.len()] };
        if let Some(owner) = self.leaf.owner
            && let Some(bits) = prior.bits.get_mut(owner)
        {
            *bits = 8;
        }
        let blocks: Vec<(usize, usize)> = match &self.leaf.page {
            Some(page) => page.freeblocks().map_while(|b| b.ok()).map(|(at, len)| (idx(at), idx(len))).collect(),
            None => Vec::new(),
        };
        let named = self.named(&prior);
        self.vote(&named, &mut prior);
        let hinted = self.hinted();
        let regions = self.regions(&named);
        let mut intacts = named;
        let starts: BTreeSet<usize> = intacts.iter().map(|i| i.raw.at).collect();
        for region in &regions {
            self.scan(*region, &starts, &hinted, &prior, &blocks, &mut intacts);
        }
        let before = intacts.len();
        let mut rows = self.settle(intacts);
        if before > 0 {
            let votes: Vec<usize> = rows.iter().filter(|r| r.is_whole()).filter_map(|r| r.fits.first().map(|f| f.shape)).collect();
            for shape in votes {
                if let Some(bits) = prior.bits.get_mut(shape) {
                    *bits = (*bits + 2).min(10);
                }
            }
        }
        let shapes = self.headless_shapes(&rows);
        if !shapes.is_empty() {
            let mut winners: Vec<(usize, usize)> = rows.iter().map(|r| (r.at, r.end.min(r.limit))).collect();
            winners.sort_unstable();
            let mut heads = Vec::new();
            for region in &regions {
                for free in complement(*region, &winners) {
                    self.headless(free, region.1, &shapes, &blocks, &mut heads);
                }
            }
            rows.append(&mut heads);
        }
        rows.sort_by_key(|r| (r.at, r.end));
        rows
    }

    /// What is left beside the cells that pointers name, from the end of the pointers on.
    fn regions(&self, named: &[Intact]) -> Vec<(usize, usize)> {
        let floor = match &self.leaf.page {
            Some(page) => page.pointers_end(),
            None => self.leaf.from,
        };
        let range = (floor.max(self.leaf.from), self.leaf.bytes.len());
        if self.leaf.live {
            return complement(range, &self.leaf.taken);
        }
        let mut taken: Vec<(usize, usize)> = named.iter().map(|i| (i.raw.at, i.raw.end.min(i.raw.limit))).collect();
        taken.sort_unstable();
        complement(range, &taken)
    }

    /// The cells that the pointers of a page name which is not live.
    fn named(&mut self, prior: &Prior) -> Vec<Intact> {
        let mut out = Vec::new();
        if self.leaf.live {
            return out;
        }
        let Some(page) = self.leaf.page else { return out };
        for (_, cell) in page.cells(*self.split) {
            let Ok(cell) = cell else { continue };
            let skip = if page.kind.is_interior() { 4 } else { 0 };
            if page.kind == PageKind::TableInterior {
                continue;
            }
            let kind = if page.kind == PageKind::TableLeaf { PageKind::TableLeaf } else { PageKind::IndexLeaf };
            if let Some(found) = self.intact(idx(cell.at).saturating_add(skip), kind, self.leaf.bytes.len(), NAMED, prior, Spot::Cell) {
                out.push(found);
            }
        }
        out
    }

    /// What the named cells are makes it likely that the others are the same.
    fn vote(&self, named: &[Intact], prior: &mut Prior) {
        for intact in named {
            if let Some(bits) = intact.raw.fits.first().and_then(|f| prior.bits.get_mut(f.shape)) {
                *bits = (*bits + 2).min(10);
            }
        }
    }

    /// Offsets that stand behind the last pointer: cells that the page once had.
    fn hinted(&self) -> BTreeSet<usize> {
        let mut out = BTreeSet::new();
        let Some(page) = &self.leaf.page else { return out };
        let mut at = page.pointers_end();
        // An interior page that became a leaf has its pointers four bytes on.
        for start in [at, at.saturating_add(4)] {
            at = start;
            for _ in 0..STARTS {
                let Some(pointer) = u16_at(self.leaf.bytes, at).map(usize::from) else { break };
                if pointer <= at || pointer >= self.leaf.bytes.len() {
                    break;
                }
                out.insert(pointer);
                at = at.saturating_add(2);
            }
        }
        out
    }

    fn spot(&self, at: usize, blocks: &[(usize, usize)]) -> Spot {
        if blocks.iter().any(|(start, len)| (*start..start.saturating_add(*len)).contains(&at)) {
            return Spot::Freeblock;
        }
        match &self.leaf.page {
            Some(page) if at < idx(page.content_start) => Spot::Gap,
            _ => Spot::Between,
        }
    }

    fn scan(
        &mut self,
        region: (usize, usize),
        known: &BTreeSet<usize>,
        hinted: &BTreeSet<usize>,
        prior: &Prior,
        blocks: &[(usize, usize)],
        out: &mut Vec<Intact>,
    ) {
        let (from, to) = region;
        // Bytes of another kind of tree are those of the page's last life but one.
        let other = if known.is_empty() && !self.leaf.live { -10 } else { -16 };
        let kinds = match self.leaf.page.map(|p| p.kind) {
            Some(PageKind::TableLeaf | PageKind::TableInterior) => [(PageKind::TableLeaf, 0), (PageKind::IndexLeaf, other)],
            Some(_) => [(PageKind::IndexLeaf, 0), (PageKind::TableLeaf, other)],
            None => [(PageKind::TableLeaf, 0), (PageKind::IndexLeaf, -4)],
        };
        for at in from..to.saturating_sub(3) {
            let Some(&first) = self.leaf.bytes.get(at) else { break };
            if first < 2 || known.contains(&at) {
                continue;
            }
            for (kind, bits) in kinds {
                if !self.may_begin(at, kind) {
                    continue;
                }
                let hint = if hinted.contains(&at) { HINTED } else { 0 };
                if let Some(mut found) = self.intact(at, kind, to, bits + hint, prior, Spot::Between) {
                    found.raw.spot = self.spot(at, blocks);
                    out.push(found);
                }
            }
        }
    }

    /// A quick look whether a payload length, a rowid and the length of a record header can stand here.
    #[inline]
    fn may_begin(&self, at: usize, kind: PageKind) -> bool {
        let b = self.leaf.bytes;
        let Some((payload, n)) = varint(b, at) else { return false };
        if payload > 0x7fff_ffff {
            return false;
        }
        let mut at = at.saturating_add(n);
        if kind == PageKind::TableLeaf {
            let Some((_, n)) = varint(b, at) else { return false };
            at = at.saturating_add(n);
        }
        u8_at(b, at).is_some_and(|h| h >= 2 && (u64::from(h) <= payload || h >= 0x80))
    }

    /// A whole cell at an offset, if one is there. `to` is the first byte that is not free.
    fn intact(&mut self, at: usize, kind: PageKind, to: usize, bonus: i32, prior: &Prior, spot: Spot) -> Option<Intact> {
        let cell = read_cell(self.leaf.bytes, at, kind, self.split)?;
        if cell.payload_len < 2 {
            return None;
        }
        self.fields.read(cell.local, cell.payload_len).ok()?;
        if self.fields.is_empty() || u64::from(self.fields.body_end()) != cell.payload_len || self.fields.reserved().is_some() {
            return None;
        }
        let local_end = cell.end;
        let end = if cell.overflow_at.is_some() { local_end.saturating_add(4) } else { local_end };
        let local = self.leaf.bytes.get(cell.record_at..local_end.min(to)).unwrap_or_default();
        let fields = self.fields.as_slice();
        // The header has to be there, and something behind it.
        if local.len() <= idx(self.fields.header_len()) && wide(local.len()) < cell.payload_len {
            return None;
        }
        let mut fits = fit::all(self.shapes, kind, fields, local, cell.rowid, prior);
        fits.retain(|f| self.shapes.all.get(f.shape).is_some_and(|s| s.is_usual(f.serials, USUAL)));
        let best = *fits.first()?;
        let cut = end > to;
        let score = AGREES + bonus + best.bits - if best.clean { 0 } else { 12 };
        let tells = spot == Spot::Cell || fields.iter().any(|f| !matches!(f.serial, 0 | 8 | 9));
        if score < if cut { ENOUGH_CUT } else { ENOUGH } || !tells {
            return None;
        }
        let raw = Raw {
            fits,
            rowid: cell.rowid,
            at,
            end,
            spot,
            header: None,
            local_at: cell.record_at,
            local_end,
            limit: if cut { to } else { end },
            payload_len: cell.payload_len,
            overflow: cell.overflow_at.and_then(|o| crate::bytes::u32_at(self.leaf.bytes, o)),
            solutions: 1,
            clean: best.clean,
        };
        Some(Intact { raw, score })
    }

    /// The choice of cells that do not overlap and together count for most. A cell that another was written into keeps its
    /// beginning.
    fn settle(&self, mut all: Vec<Intact>) -> Vec<Raw> {
        if all.is_empty() {
            return Vec::new();
        }
        all.sort_by_key(|i| (i.raw.at, i.raw.end));
        // A whole head inside another cell, whose cell reaches as far or farther: it was written later.
        let strong: Vec<(usize, usize)> = all.iter().filter(|i| i.score >= LATER).map(|i| (i.raw.at, i.raw.end)).collect();
        for intact in &mut all {
            let from = strong.partition_point(|(at, _)| *at <= intact.raw.local_at);
            let inside = strong.iter().skip(from).take_while(|(at, _)| *at < intact.raw.end.min(intact.raw.limit));
            if let Some((at, _)) = inside.clone().find(|(_, end)| *end >= intact.raw.end) {
                intact.raw.limit = (*at).min(intact.raw.limit);
            }
        }
        all.retain(|i| i.raw.is_whole() || i.score >= ENOUGH_CUT);
        all.sort_by_key(|i| (i.raw.end.min(i.raw.limit), i.raw.at));
        let ends: Vec<usize> = all.iter().map(|i| i.raw.end.min(i.raw.limit)).collect();
        let weights: Vec<(usize, i64)> = all.iter().map(|i| (i.raw.at, i64::from(i.score))).collect();
        let chosen = best_apart(&weights, &ends);
        let winners: Vec<(usize, usize)> =
            all.iter().zip(&chosen).filter(|(_, c)| **c).map(|(i, _)| (i.raw.at, i.raw.end.min(i.raw.limit))).collect();
        let mut out = Vec::new();
        for (mut intact, chosen) in all.into_iter().zip(chosen) {
            if chosen {
                out.push(intact.raw);
                continue;
            }
            let (at, end) = (intact.raw.at, intact.raw.end);
            let inside = winners.iter().any(|(s, e)| *s <= at && at < *e);
            let over = winners.iter().find(|(s, _)| *s > at && *s < end);
            if let (false, Some((start, _))) = (inside, over)
                && intact.score >= ENOUGH_CUT + 4
                && *start > intact.raw.local_at.saturating_add(8)
            {
                intact.raw.limit = *start;
                out.push(intact.raw);
            }
        }
        out
    }

    /// The shapes that cells without head are tried for.
    fn headless_shapes(&self, rows: &[Raw]) -> Vec<usize> {
        if self.leaf.foreign {
            return Vec::new();
        }
        let kind = self.leaf.page.map(|p| p.kind);
        let of_kind = |s: &Shape| kind.is_none_or(|k| TreeKind::of(k) == TreeKind::of(s.kind));
        let fits = |i: &usize| self.shapes.all.get(*i).is_some_and(|s| s.reported && !s.is_index() && of_kind(s));
        if let Some(owner) = self.leaf.owner {
            return Some(owner).filter(fits).into_iter().collect();
        }
        let mut counts: Vec<(usize, usize)> = Vec::new();
        for shape in rows.iter().filter_map(|r| r.fits.first()).map(|f| f.shape) {
            match counts.iter_mut().find(|(s, _)| *s == shape) {
                Some((_, n)) => *n += 1,
                None => counts.push((shape, 1)),
            }
        }
        counts.sort_by_key(|(shape, n)| (std::cmp::Reverse(*n), *shape));
        let most = counts.first().map_or(0, |(_, n)| *n);
        counts.retain(|(_, n)| n * 3 >= most);
        if most > 0 {
            return counts.into_iter().map(|(s, _)| s).filter(fits).take(3).collect();
        }
        // Nothing on the page is known: only one that was a leaf is worth the work.
        let Some(page) = &self.leaf.page else { return Vec::new() };
        if page.kind.is_interior() {
            return Vec::new();
        }
        (0..self.shapes.all.len()).filter(fits).take(SHAPES).collect()
    }

    /// Whether a freeblock may once have begun here: two numbers that could be its link and its length.
    fn stale(&self, at: usize) -> Option<usize> {
        let (next, len) = (u16_at(self.leaf.bytes, at)?, u16_at(self.leaf.bytes, at.saturating_add(2))?);
        let (next, len, usable) = (usize::from(next), usize::from(len), self.leaf.bytes.len());
        let linked = next == 0 || (next > at.saturating_add(3) && next.saturating_add(3) < usable);
        (linked && len >= 4 && at.saturating_add(len) <= usable).then_some(len)
    }

    /// Cells without head in a region that nothing else explains. `to` is the first byte behind it that is not free.
    fn headless(&self, free: (usize, usize), to: usize, shapes: &[usize], blocks: &[(usize, usize)], out: &mut Vec<Raw>) {
        let (from, end) = free;
        if end.saturating_sub(from) < 6 {
            return;
        }
        let known = |at: usize| blocks.iter().find(|(s, _)| *s == at).map(|(_, len)| *len);
        let mut starts: Vec<(usize, usize, bool)> = Vec::new();
        for at in from..end.saturating_sub(5) {
            if starts.len() >= STARTS {
                break;
            }
            match (known(at), self.stale(at)) {
                (Some(len), _) => starts.push((at, len, true)),
                (None, Some(len)) => starts.push((at, len, false)),
                _ => {}
            }
        }
        if starts.is_empty() {
            return;
        }
        let mut heads: Vec<(usize, i64, Head)> = Vec::new();
        let mut cut: Vec<(usize, i64, Head)> = Vec::new();
        for (place, (at, len, is_known)) in starts.iter().enumerate() {
            let mut ends: Vec<usize> = vec![at.saturating_add(*len), end];
            ends.extend(starts.iter().skip(place.saturating_add(1)).map(|(s, _, _)| *s).filter(|s| *s > at.saturating_add(5)).take(8));
            ends.retain(|e| *e <= end);
            ends.sort_unstable();
            ends.dedup();
            let mut found = Vec::new();
            for shape in shapes {
                Tried {
                    bytes: self.leaf.bytes,
                    split: self.split,
                    shapes: self.shapes,
                    shape: *shape,
                    start: *at,
                    ends: &ends,
                    limit: end,
                    is_known: *is_known,
                }
                .solve(&mut found);
            }
            for head in found {
                if !self.shapes.all.get(head.shape).is_some_and(|s| s.is_usual(head.serials, USUAL_HEADLESS)) || !head.tells() {
                    continue;
                }
                let mut score = head.bits + if *is_known { 12 } else { 6 };
                if head.end > end {
                    cut.push((*at, i64::from(score), head));
                    continue;
                }
                let near = |e: usize| head.end <= e && e.saturating_sub(head.end) < 4;
                if near(at.saturating_add(*len)) || near(end) || starts.iter().any(|(s, _, _)| *s == head.end) {
                    score += 8;
                }
                score -= if head.clean { 0 } else { 16 };
                if head.end.saturating_sub(*at) > *len {
                    // The block that began here never was so long.
                    score -= 12;
                }
                if score >= ENOUGH_HEADLESS && heads.len() < WEIGHED {
                    heads.push((*at, i64::from(score), head));
                }
            }
        }
        heads.sort_by_key(|(at, score, h)| (h.end, *at, *score));
        let ends: Vec<usize> = heads.iter().map(|(_, _, h)| h.end).collect();
        let weights: Vec<(usize, i64)> = heads.iter().map(|(at, score, _)| (*at, *score)).collect();
        let chosen = best_apart(&weights, &ends);
        let mut covered: Vec<(usize, usize)> = Vec::new();
        for ((at, _, head), chosen) in heads.into_iter().zip(chosen) {
            if chosen {
                covered.push((at, head.end));
                let limit = head.end;
                out.push(self.raw_of(at, head, limit, blocks));
            }
        }
        // What was cut off behind: only where a freeblock begins for certain.
        cut.retain(|(at, score, h)| {
            let room = end.saturating_sub(h.body_at.min(end));
            let whole = h.fields.iter().filter(|f| idx(f.start).saturating_add(idx(f.len)) <= h.header.len().saturating_add(room)).count();
            known(*at).is_some() && *score >= i64::from(ENOUGH_CUT) && h.clean && whole >= 1 && h.body_at < end
        });
        cut.sort_by_key(|(at, score, _)| (*at, std::cmp::Reverse(*score)));
        cut.dedup_by_key(|(at, _, _)| *at);
        for (at, _, head) in cut {
            let next = covered.iter().map(|(s, _)| *s).filter(|s| *s > at).min().unwrap_or(end).min(end);
            if !covered.iter().any(|(s, e)| *s <= at && at < *e) && next > head.body_at {
                out.push(self.raw_of(at, head, next.min(to), blocks));
            }
        }
    }

    fn raw_of(&self, at: usize, head: Head, limit: usize, blocks: &[(usize, usize)]) -> Raw {
        let overflow =
            (head.end > head.local_end && limit >= head.end).then(|| crate::bytes::u32_at(self.leaf.bytes, head.local_end)).flatten();
        Raw {
            fits: vec![Fit { shape: head.shape, bits: head.bits, serials: head.serials, clean: head.clean, near: true }],
            rowid: None,
            at,
            end: head.end,
            spot: self.spot(at, blocks),
            header: Some(head.header),
            local_at: head.body_at,
            local_end: head.local_end,
            limit,
            payload_len: head.payload_len,
            overflow,
            solutions: head.solutions,
            clean: head.clean,
        }
    }
}
