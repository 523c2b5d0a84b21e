//! Databases, logs and journals inside a larger file: a disk image, a memory dump, a phone backup.
//!
//! Tests:    every offset for the magic numbers of the three kinds of file; every sector for a leaf page that belongs to none.
//! Collects: where each begins, how far it reaches, what its header says.
//! Leaves:   the verdict about a database to the survey, after its bytes were taken out.
//!
//! The image is read once, front to back, in blocks; what a find reaches is read with it. Memory does not depend on its size.
#![expect(
    clippy::arithmetic_side_effects,
    reason = "offsets of a file and counts of its own; numbers of the evidence are added saturating"
)]

mod extent;
mod finds;
mod image;
mod loose;

use memchr::memmem::Finder;

use crate::ctx::Ctx;
use crate::error::Result;
use crate::format::header::MAGIC;
use crate::format::journal::JOURNAL_MAGIC;
use crate::ids::wide;

pub use finds::{Find, Kind};
pub use image::Image;

/// Bytes that are searched at once.
const BLOCK: usize = 8 << 20;
/// Bytes of the next block that are looked at with a block: the longest page.
const OVERLAP: usize = 65_536;
/// Finds of one image; reaching it is said.
pub const FINDS: usize = 100_000;

/// Everything in an image, by offset.
///
/// # Errors
/// I/O, cancellation.
pub fn find(image: &mut Image, ctx: &Ctx) -> Result<Vec<Find>> {
    let log = [0x37, 0x7f, 0x06];
    let finders = [Finder::new(MAGIC), Finder::new(&log), Finder::new(&JOURNAL_MAGIC)];
    let mut finds: Vec<Find> = Vec::new();
    let mut loose = loose::Runs::default();
    let mut block = Vec::new();
    let mut offset = 0_u64;
    ctx.progress.phase("reading the image", image.len);
    while offset < image.len {
        ctx.check()?;
        image.read(offset, BLOCK + OVERLAP, &mut block)?;
        if block.is_empty() {
            break;
        }
        let own = block.len().min(BLOCK);
        let mut hits: Vec<(usize, usize)> = Vec::new();
        for (i, finder) in finders.iter().enumerate() {
            hits.extend(finder.find_iter(&block).take_while(|at| *at < own).map(|at| (at, i)));
        }
        hits.sort_unstable();
        for (at, i) in hits {
            let place = offset + wide(at);
            let bytes = block.get(at..).unwrap_or_default();
            let found = match i {
                0 => extent::database(bytes, place, image.len),
                1 => extent::log(image, bytes, place)?,
                _ => extent::journal(image, bytes, place)?,
            };
            if let Some(found) = found
                && finds.len() < FINDS
            {
                finds.push(found);
            }
        }
        loose.look(&block, own, offset);
        offset += wide(own);
        ctx.progress.advance(wide(own));
    }
    ctx.progress.finish();
    cut(&mut finds);
    finds.extend(loose.outside(&finds));
    finds.sort_by_key(|f| (f.offset, f.kind));
    finds.truncate(FINDS);
    Ok(finds)
}

/// A database that another begins within, at a sector of the disk, ends there: the rest of it lies elsewhere.
fn cut(finds: &mut [Find]) {
    let starts: Vec<u64> = finds.iter().map(|f| f.offset).filter(|o| o % 512 == 0).collect();
    for find in finds {
        let next = starts.partition_point(|o| *o <= find.offset);
        if let Some(start) = starts.get(next).filter(|s| **s < find.offset.saturating_add(find.bytes)) {
            find.bytes = start.saturating_sub(find.offset);
        }
    }
}
