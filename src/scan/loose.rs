//! Leaf pages without a database around them: what is left of files whose other parts were overwritten or lie elsewhere.

use crate::format::{Page, PageKind, Split};
use crate::ids::{PageSize, idx, wide};
use crate::scan::finds::{Find, Kind};

/// Sectors of disks: no page begins elsewhere.
const SECTOR: usize = 512;
/// Sizes in the order in which they are tried: the usual ones first.
const SIZES: [u32; 8] = [4096, 1024, 8192, 2048, 512, 16384, 32768, 65536];
/// Runs that are kept.
const RUNS: usize = 50_000;

#[derive(Debug, Clone, Copy)]
struct Run {
    offset: u64,
    pages: u64,
    size: u32,
}

/// Runs of loose pages.
#[derive(Debug, Default)]
pub(super) struct Runs {
    runs: Vec<Run>,
    /// The end of what was already taken.
    next: u64,
}

impl Runs {
    /// Looks at every sector of the first `own` bytes of a block.
    pub(super) fn look(&mut self, block: &[u8], own: usize, offset: u64) {
        let skip = usize::try_from(self.next.saturating_sub(offset)).unwrap_or(usize::MAX);
        let mut at = skip.div_ceil(SECTOR).saturating_mul(SECTOR);
        while at < own {
            let step = match block.get(at) {
                Some(2 | 10 | 13) => self.page(block, at, offset),
                _ => None,
            };
            at += step.unwrap_or(SECTOR);
        }
        self.next = self.next.max(offset + wide(at));
    }

    fn page(&mut self, block: &[u8], at: usize, offset: u64) -> Option<usize> {
        let size = size_of(block.get(at..)?)?;
        let place = offset + wide(at);
        let full = self.runs.len() >= RUNS;
        match self.runs.last_mut().filter(|r| r.size == size && r.offset + r.pages * u64::from(size) == place) {
            Some(run) => run.pages += 1,
            None if !full => self.runs.push(Run { offset: place, pages: 1, size }),
            None => {}
        }
        Some(idx(size))
    }

    /// Those that lie in no file that was found.
    pub(super) fn outside(&self, finds: &[Find]) -> Vec<Find> {
        let mut reach: Vec<(u64, u64)> = finds.iter().map(|f| (f.offset, f.offset.saturating_add(f.bytes))).collect();
        reach.sort_unstable();
        // Of ranges that begin before a place, the one that reaches farthest decides.
        let mut farthest = 0;
        for range in &mut reach {
            farthest = range.1.max(farthest);
            range.1 = farthest;
        }
        let mut out = Vec::new();
        for run in &self.runs {
            let size = u64::from(run.size);
            let mut open: Option<(u64, u64)> = None;
            for i in 0..run.pages {
                let place = run.offset + i * size;
                let before = reach.partition_point(|(start, _)| *start <= place);
                let covered = before.checked_sub(1).and_then(|b| reach.get(b)).is_some_and(|(_, end)| place < *end);
                match (&mut open, covered) {
                    (Some((_, n)), false) => *n += 1,
                    (None, false) => open = Some((place, 1)),
                    (_, true) => out.extend(open.take().map(|o| find(o, run.size))),
                }
            }
            out.extend(open.map(|o| find(o, run.size)));
        }
        out
    }
}

fn find((offset, pages): (u64, u64), size: u32) -> Find {
    let bytes = pages * u64::from(size);
    let words = format!("{pages} b-tree pages without a header");
    Find { kind: Kind::LoosePages, offset, bytes, declared: bytes, page_size: size, words }
}

/// The size at which the bytes are a page with cells: its pointers lead to cells that decode and the last of them ends where
/// the page does.
fn size_of(bytes: &[u8]) -> Option<u32> {
    let count = crate::bytes::u16_at(bytes, 3)?;
    let content = crate::bytes::u16_at(bytes, 5)?;
    if count == 0 || u32::from(count) * 2 + 8 > u32::from(content).max(8) || bytes.get(7)? > &60 {
        return None;
    }
    SIZES.into_iter().find(|&size| fits(bytes, size, count).unwrap_or(false))
}

fn fits(bytes: &[u8], size: u32, count: u16) -> Option<bool> {
    let image = bytes.get(..idx(PageSize::new(size)?.get()))?;
    let page = Page::read_at(image, 0, size).ok()?;
    if page.kind == PageKind::TableInterior || idx(page.content_start) > image.len() || page.pointers_end() > idx(page.content_start) {
        return None;
    }
    let split = Split::new(size);
    let mut cells: Vec<(u32, u32)> = Vec::with_capacity(usize::from(count));
    for (_, cell) in page.cells(split) {
        let cell = cell.ok().filter(|c| c.at >= page.content_start && c.payload_len > 1)?;
        cells.push((cell.at, cell.at.checked_add(cell.len)?));
    }
    cells.sort_unstable();
    if cells.windows(2).any(|w| matches!(w, [a, b] if a.1 > b.0)) {
        return None;
    }
    let last = cells.last()?.1;
    let block = page.freeblocks().map_while(|b| b.ok()).last().map_or(0, |(at, len)| at + len);
    // Reserved bytes at the end of pages are few.
    Some(cells.first()?.0 == page.content_start && size.saturating_sub(last.max(block)) <= 32)
}
