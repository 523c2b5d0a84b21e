//! The postings of a whole index: all segments merged, the newest word on a term and row counts.

use std::cmp::Ordering;
use std::collections::HashSet;

use super::cursor::{Blocks, Cursor, LeafSeen, Posting};
use super::structure::{Segment, Structure};
use super::tombstones;
use crate::finding::{Code, Defect};
use crate::fts5::config::Detail;

/// A defect and where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// The segment.
    pub segment: u16,
    /// The leaf, 0 for none.
    pub page: u32,
    /// What.
    pub defect: Defect,
}

#[derive(Debug)]
struct Source<'a> {
    cursor: Cursor<'a>,
    deleted: HashSet<i64>,
}

impl Source<'_> {
    /// Goes to the next posting that has no tombstone.
    fn step(&mut self) -> bool {
        while self.cursor.step() {
            if self.deleted.is_empty() || !self.deleted.contains(&self.cursor.posting().rowid) {
                return true;
            }
        }
        false
    }
}

/// *Chained*: the postings that hold, in order of term and rowid. Damage of a leaf costs that leaf.
#[derive(Debug)]
pub struct Merged<'a> {
    /// Newest first.
    sources: Vec<Source<'a>>,
    /// A binary heap of places in `sources`.
    heap: Vec<usize>,
    started: bool,
    /// Term and row that the newest word was last given on; kept only when there are several sources.
    settled: Option<(Vec<u8>, i64)>,
    /// Entries that were not given because a newer segment has the word.
    overruled: u64,
    defects: Vec<Found>,
}

/// What was on the leaves of a segment.
#[derive(Debug, Clone)]
pub struct SegmentSeen {
    /// The segment.
    pub segment: Segment,
    /// Its leaves from its first on, as far as they were reached.
    pub leaves: Vec<LeafSeen>,
}

impl<'a> Merged<'a> {
    /// The postings of the segments of a structure record.
    #[must_use]
    pub fn new(blocks: &'a dyn Blocks, structure: &Structure, detail: Detail) -> Merged<'a> {
        let mut defects = Vec::new();
        let mut sources = Vec::new();
        let mut ids = HashSet::new();
        for segment in structure.segments() {
            // FTS5 gives no id twice; reading a segment once more for each mention could take for ever.
            if !ids.insert(segment.id) {
                let defect = Defect::new(Code::StructureRecordBad, 0, segment.id.into(), 1);
                defects.push(Found { segment: segment.id, page: 0, defect });
                continue;
            }
            let (deleted, bad) = tombstones::read(blocks, segment);
            defects.extend(bad.into_iter().map(|defect| Found { segment: segment.id, page: 0, defect }));
            sources.push(Source { cursor: Cursor::new(blocks, *segment, detail).watching(), deleted });
        }
        Merged { sources, heap: Vec::new(), started: false, settled: None, overruled: 0, defects }
    }

    /// The next posting.
    pub fn step(&mut self) -> Option<&Posting> {
        loop {
            self.advance();
            let &top = self.heap.first()?;
            let posting = self.sources.get(top)?.cursor.posting();
            if self.sources.len() > 1 {
                match &mut self.settled {
                    Some((term, rowid)) if *rowid == posting.rowid && *term == posting.term => {
                        self.overruled = self.overruled.saturating_add(1);
                        continue;
                    }
                    Some((term, rowid)) => {
                        *rowid = posting.rowid;
                        term.clone_from(&posting.term);
                    }
                    None => self.settled = Some((posting.term.clone(), posting.rowid)),
                }
            }
            if posting.present {
                break;
            }
        }
        let &top = self.heap.first()?;
        Some(self.sources.get(top)?.cursor.posting())
    }

    /// How many entries were not given so far because a newer segment has the word on their term and row.
    #[must_use]
    pub fn overruled(&self) -> u64 {
        self.overruled
    }

    /// Moves the source at the top on.
    fn advance(&mut self) {
        if !self.started {
            self.started = true;
            for (i, source) in self.sources.iter_mut().enumerate() {
                if source.step() {
                    self.heap.push(i);
                }
            }
            let sources = &self.sources;
            self.heap.sort_by(|&a, &b| order(sources, a, b));
            return;
        }
        let Some(&top) = self.heap.first() else { return };
        if !self.sources.get_mut(top).is_some_and(Source::step) {
            self.heap.swap_remove(0);
        }
        let mut at = 0_usize;
        loop {
            let mut least = at;
            let first = at.saturating_mul(2).saturating_add(1);
            for child in [first, first.saturating_add(1)] {
                if let (Some(&c), Some(&l)) = (self.heap.get(child), self.heap.get(least))
                    && order(&self.sources, c, l) == Ordering::Less
                {
                    least = child;
                }
            }
            if least == at {
                return;
            }
            self.heap.swap(at, least);
            at = least;
        }
    }

    /// What was wrong, and for each segment what was on its leaves. To be asked for at the end.
    #[must_use]
    pub fn finish(mut self) -> (Vec<Found>, Vec<SegmentSeen>) {
        let mut seen = Vec::new();
        for source in &mut self.sources {
            let segment = *source.cursor.segment();
            self.defects.extend(source.cursor.take_defects().into_iter().map(|(page, defect)| Found { segment: segment.id, page, defect }));
            seen.push(SegmentSeen { segment, leaves: source.cursor.seen().to_vec() });
        }
        (self.defects, seen)
    }
}

fn order(sources: &[Source<'_>], a: usize, b: usize) -> Ordering {
    match (sources.get(a), sources.get(b)) {
        (Some(x), Some(y)) => {
            let (x, y) = (x.cursor.posting(), y.cursor.posting());
            x.term.cmp(&y.term).then(x.rowid.cmp(&y.rowid)).then(a.cmp(&b))
        }
        _ => a.cmp(&b),
    }
}
