//! The reading pass: plain positioned reads that survive a failing medium, and who else has a file open.

use std::fs::{File, Metadata};
use std::io;
use std::ops::Range;
use std::path::Path;

use crate::ctx::Ctx;
use crate::error::Result;
use crate::ids::{narrow, wide};

/// Bytes a read; large enough for a disk, small enough to stay in the cache of a core.
pub const BLOCK: usize = 256 << 10;
/// The first retry reads pieces of a page of the system.
const PIECE: usize = 4096;
/// The last one reads sectors.
const SECTOR: usize = 512;
/// Unreadable bytes after which sectors are not tried one by one any more: a dead medium would take days.
const SECTOR_BUDGET: u64 = 1 << 20;

/// How a pass ended.
#[derive(Debug)]
pub enum Pass {
    /// Over the whole length, with the ranges that could not be read (given on as zeros).
    Whole(Vec<Range<u64>>),
    /// At this byte: the file is shorter than it was said to be.
    Short(u64),
}

/// Reads `len` bytes from the start, block by block in order, and hands each block on. What cannot be read is zero.
///
/// # Errors
/// What `sink` answers, and cancellation. A read error is no error here but a hole.
pub fn pass(
    read: &dyn Fn(&mut [u8], u64) -> io::Result<usize>,
    len: u64,
    ctx: &Ctx,
    sink: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<Pass> {
    let mut buf = vec![0_u8; BLOCK.min(narrow(len)).max(1)];
    let mut holes = Holes::default();
    let mut at = 0_u64;
    while at < len {
        ctx.check()?;
        let want = narrow(len.saturating_sub(at)).min(buf.len());
        let block = buf.get_mut(..want).unwrap_or_default();
        match full(read, block, at) {
            Ok(got) if got < want => return Ok(Pass::Short(at.saturating_add(wide(got)))),
            Ok(_) => {}
            Err(_) => pieces(read, block, at, &mut holes),
        }
        sink(block)?;
        ctx.progress.advance(wide(want));
        at = at.saturating_add(wide(want));
    }
    Ok(Pass::Whole(holes.ranges))
}

#[derive(Default)]
struct Holes {
    ranges: Vec<Range<u64>>,
    bytes: u64,
}

impl Holes {
    fn add(&mut self, range: Range<u64>) {
        self.bytes = self.bytes.saturating_add(range.end.saturating_sub(range.start));
        match self.ranges.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => self.ranges.push(range),
        }
    }
}

fn pieces(read: &dyn Fn(&mut [u8], u64) -> io::Result<usize>, block: &mut [u8], at: u64, holes: &mut Holes) {
    let mut place = at;
    for piece in block.chunks_mut(PIECE) {
        let end = place.saturating_add(wide(piece.len()));
        if !matches!(full(read, piece, place), Ok(got) if got == piece.len()) {
            if holes.bytes < SECTOR_BUDGET {
                let mut sector_at = place;
                for sector in piece.chunks_mut(SECTOR) {
                    let sector_end = sector_at.saturating_add(wide(sector.len()));
                    if !matches!(full(read, sector, sector_at), Ok(got) if got == sector.len()) {
                        sector.fill(0);
                        holes.add(sector_at..sector_end);
                    }
                    sector_at = sector_end;
                }
            } else {
                piece.fill(0);
                holes.add(place..end);
            }
        }
        place = end;
    }
}

/// Reads until the buffer is full or the file ends.
fn full(read: &dyn Fn(&mut [u8], u64) -> io::Result<usize>, buf: &mut [u8], at: u64) -> io::Result<usize> {
    let mut done = 0_usize;
    while done < buf.len() {
        match read(buf.get_mut(done..).unwrap_or_default(), at.saturating_add(wide(done))) {
            Ok(0) => break,
            Ok(got) => done = done.saturating_add(got),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(done)
}

/// Fills the buffer from a place in a file, as far as the file goes.
///
/// # Errors
/// What the system answers.
pub fn read_full(file: &File, buf: &mut [u8], at: u64) -> io::Result<usize> {
    full(&|b, a| read_at(file, b, a), buf, at)
}

/// Opens a file for reading. A pipe is opened without waiting for its writer, so that the wait can be cancelled.
///
/// # Errors
/// What the system answers.
#[cfg(unix)]
pub fn open(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
    let mut options = std::fs::OpenOptions::new();
    options.read(true);
    if std::fs::metadata(path).is_ok_and(|m| m.file_type().is_fifo()) {
        options.custom_flags(libc::O_NONBLOCK);
    }
    options.open(path)
}

/// Opens a file for reading.
///
/// # Errors
/// What the system answers.
#[cfg(not(unix))]
pub fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Whether a stream is a pipe with a name, whose writer may still come. The pipes of a shell have none.
#[cfg(unix)]
#[must_use]
pub fn may_wait_for_writer(path: &Path, file: &File) -> bool {
    use std::os::unix::fs::FileTypeExt;
    file.metadata().is_ok_and(|m| m.file_type().is_fifo()) && std::fs::canonicalize(path).is_ok()
}

/// Whether a stream is a pipe with a name, whose writer may still come.
#[cfg(not(unix))]
#[must_use]
pub fn may_wait_for_writer(_path: &Path, _file: &File) -> bool {
    false
}

/// One positioned read.
///
/// # Errors
/// What the system answers.
#[cfg(unix)]
pub fn read_at(file: &File, buf: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buf, at)
}

/// One positioned read.
///
/// # Errors
/// What the system answers.
#[cfg(windows)]
pub fn read_at(file: &File, buf: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buf, at)
}

/// The length of something that can be read at any place; `None` for pipes and the like.
#[cfg(unix)]
#[must_use]
pub fn length(file: &File, meta: &Metadata) -> Option<u64> {
    use std::os::unix::fs::FileTypeExt;
    if meta.is_file() {
        Some(meta.len())
    } else if meta.file_type().is_block_device() {
        io::Seek::seek(&mut &*file, io::SeekFrom::End(0)).ok()
    } else {
        None
    }
}

/// The length of something that can be read at any place; `None` for pipes and the like.
#[cfg(not(unix))]
#[must_use]
pub fn length(_file: &File, meta: &Metadata) -> Option<u64> {
    meta.is_file().then(|| meta.len())
}

/// Whether some process, this one included, holds the file open for writing, as far as `/proc` lets one see.
///
/// Processes of other users may be hidden; the stability checks stand behind this one.
#[cfg(target_os = "linux")]
#[must_use]
pub fn open_for_writing(file: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    let Ok(meta) = file.metadata() else { return true };
    let same = |m: &Metadata| m.dev() == meta.dev() && m.ino() == meta.ino();
    let Ok(processes) = std::fs::read_dir("/proc") else { return false };
    for process in processes.flatten() {
        if !process.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit) {
            continue;
        }
        let folder = process.path();
        let Ok(descriptors) = std::fs::read_dir(folder.join("fd")) else { continue };
        for descriptor in descriptors.flatten() {
            if !std::fs::metadata(descriptor.path()).is_ok_and(|m| same(&m)) {
                continue;
            }
            let info = std::fs::read_to_string(folder.join("fdinfo").join(descriptor.file_name())).unwrap_or_default();
            let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).map(str::trim);
            // The access mode is the last two bits: 0 reads only. What cannot be read may be a writer.
            if flags.and_then(|f| u32::from_str_radix(f, 8).ok()).is_none_or(|f| f & 3 != 0) {
                return true;
            }
        }
    }
    false
}

/// Whether some process holds the file open for writing: not known on this system, so assumed not.
#[cfg(not(target_os = "linux"))]
#[must_use]
pub fn open_for_writing(_file: &File) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_sector_costs_its_own_bytes() {
        let content: Vec<u8> = (0..600_000_u32).map(|i| u8::try_from(i % 251).unwrap()).collect();
        let bad = 300_032_u64..300_544;
        let read = |buf: &mut [u8], at: u64| {
            let end = (at + wide(buf.len())).min(wide(content.len()));
            if at < bad.end && end > bad.start {
                return Err(io::Error::from_raw_os_error(5));
            }
            let part = &content[narrow(at)..narrow(end)];
            buf[..part.len()].copy_from_slice(part);
            Ok(part.len())
        };
        let mut seen = Vec::new();
        let pass = pass(&read, wide(content.len()), &Ctx::default(), &mut |b| {
            seen.extend_from_slice(b);
            Ok(())
        })
        .unwrap();
        let Pass::Whole(holes) = pass else { panic!("{pass:?}") };
        assert_eq!(holes, std::iter::once(300_032_u64..300_544).collect::<Vec<_>>());
        assert_eq!(seen.len(), content.len());
        for (i, (a, b)) in seen.iter().zip(&content).enumerate() {
            let lost = holes.iter().any(|h| h.contains(&wide(i)));
            assert_eq!(*a, if lost { 0 } else { *b }, "byte {i}");
        }
    }

    #[test]
    fn a_shrunken_file_is_noticed() {
        let read = |buf: &mut [u8], at: u64| Ok(if at >= 100 { 0 } else { buf.len().min(narrow(100 - at)) });
        let pass = pass(&read, 200, &Ctx::default(), &mut |_| Ok(())).unwrap();
        assert!(matches!(pass, Pass::Short(100)));
    }
}
