//! External merge sort of entries (key, payload) by the bytes of the key, stable, within a memory limit.
//!
//! Entries gather in one block of memory. When it is full they are sorted on all cores and appended to an unnamed temporary
//! file as a run; at the end the runs are merged. The result depends on nothing but the entries and their order.

#![expect(clippy::arithmetic_side_effects, reason = "computes on sizes and counts of its own, all far below the type's limits")]

pub mod key;

use std::cmp::Ordering;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use rayon::slice::ParallelSliceMut;

use crate::error::{Error, Result};
use crate::ids::{idx, narrow, wide};

/// Least bytes read at once from a run while merging.
const LEAST_READ: usize = 16 << 10;
/// Most bytes read at once from a run while merging.
const MOST_READ: usize = 1 << 20;
/// Bytes written at once to the temporary file.
const WRITE: usize = 256 << 10;
/// Fewer entries than this are sorted on one core.
const SMALL: usize = 4096;

/// Where an entry lies in the block: key, then payload, from `at`.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// The first eight bytes of the key, so that most comparisons need not look at the block.
    prefix: u64,
    at: usize,
    key: u32,
    payload: u32,
}

impl Entry {
    fn key<'b>(&self, block: &'b [u8]) -> &'b [u8] {
        block.get(self.at..self.at + idx(self.key)).unwrap_or_default()
    }

    fn payload<'b>(&self, block: &'b [u8]) -> &'b [u8] {
        let start = self.at + idx(self.key);
        block.get(start..start + idx(self.payload)).unwrap_or_default()
    }

    fn order(&self, other: &Entry, block: &[u8]) -> Ordering {
        // Entries lie in the block in the order they came in, which decides between equal keys.
        self.prefix.cmp(&other.prefix).then_with(|| self.key(block).cmp(other.key(block))).then_with(|| self.at.cmp(&other.at))
    }
}

fn prefix(key: &[u8]) -> u64 {
    if let Some(first) = key.first_chunk::<8>() {
        return u64::from_be_bytes(*first);
    }
    key.iter().chain(std::iter::repeat(&0)).take(8).fold(0, |n, &b| n << 8 | u64::from(b))
}

/// Takes entries in any order and gives them back in the order of their keys.
#[derive(Debug)]
pub struct Sorter {
    limit: usize,
    folder: PathBuf,
    block: Vec<u8>,
    entries: Vec<Entry>,
    spill: Option<Spill>,
    count: u64,
}

impl Sorter {
    /// A sorter that keeps to about `memory` bytes and puts its temporary file, if it needs one, in `folder`.
    #[must_use]
    pub fn new(memory: usize, folder: &Path) -> Sorter {
        Sorter { limit: memory, folder: folder.to_path_buf(), block: Vec::new(), entries: Vec::new(), spill: None, count: 0 }
    }

    /// Entries so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether entries have gone to the temporary file.
    #[must_use]
    pub fn has_spilled(&self) -> bool {
        self.spill.is_some()
    }

    /// Adds an entry. Entries with equal keys keep their order.
    ///
    /// # Errors
    /// I/O on the temporary file; `Limit` for a key or payload of 4 GiB.
    #[inline]
    pub fn push(&mut self, key: &[u8], payload: &[u8]) -> Result<()> {
        let (Ok(key_len), Ok(payload_len)) = (u32::try_from(key.len()), u32::try_from(payload.len())) else {
            return Err(Error::Limit { what: "an index entry of 4 GiB".into() });
        };
        let more = key.len() + payload.len();
        let used = self.block.len() + self.entries.len() * size_of::<Entry>();
        if used + more + size_of::<Entry>() > self.limit && !self.entries.is_empty() {
            self.spill()?;
        }
        if self.block.capacity() - self.block.len() < more {
            self.grow(more);
        }
        self.entries.push(Entry { prefix: prefix(key), at: self.block.len(), key: key_len, payload: payload_len });
        self.block.extend_from_slice(key);
        self.block.extend_from_slice(payload);
        self.count += 1;
        Ok(())
    }

    /// Doubles the block, but not past the limit.
    #[cold]
    fn grow(&mut self, more: usize) {
        let wanted = (self.block.capacity() * 2).clamp(64 << 10, self.limit.max(64 << 10)).max(self.block.len() + more);
        self.block.reserve_exact(wanted - self.block.len());
    }

    fn sort(&mut self) {
        let block = &self.block;
        if self.entries.len() < SMALL {
            self.entries.sort_unstable_by(|a, b| a.order(b, block));
        } else {
            self.entries.par_sort_unstable_by(|a, b| a.order(b, block));
        }
    }

    #[cold]
    fn spill(&mut self) -> Result<()> {
        self.sort();
        let folder = &self.folder;
        let spill = match self.spill.as_mut() {
            Some(spill) => spill,
            None => self.spill.insert(Spill::new(folder)?),
        };
        spill.run(|out| {
            for e in &self.entries {
                put_entry(out, e.key(&self.block), e.payload(&self.block))?;
            }
            Ok(())
        })?;
        self.block.clear();
        self.entries.clear();
        Ok(())
    }

    /// Ends the input and begins the output.
    ///
    /// # Errors
    /// I/O on the temporary file.
    pub fn finish(mut self) -> Result<Sorted> {
        if self.spill.is_some() && !self.entries.is_empty() {
            self.spill()?;
        }
        let Sorter { limit, folder, block, entries, spill, .. } = {
            if self.spill.is_none() {
                self.sort();
            }
            self
        };
        let Some(mut spill) = spill else {
            return Ok(Sorted { source: Source::Memory { block, entries, next: 0 } });
        };
        drop((block, entries));
        let fan_in = (limit / LEAST_READ).clamp(8, 1024);
        while spill.runs.len() > fan_in {
            let mut merged = Spill::new(&folder)?;
            let runs = std::mem::take(&mut spill.runs);
            for group in runs.chunks(fan_in) {
                let mut merge = Merge::new(&mut spill.file, group, limit, &folder)?;
                merged.run(|out| {
                    while let Some((key, payload)) = merge.next(&mut spill.file)? {
                        put_entry(out, key, payload)?;
                    }
                    Ok(())
                })?;
            }
            spill = merged;
        }
        let merge = Merge::new(&mut spill.file, &spill.runs, limit, &folder)?;
        Ok(Sorted { source: Source::Runs { file: spill.file, merge, folder } })
    }
}

fn put_entry(out: &mut impl Write, key: &[u8], payload: &[u8]) -> io::Result<()> {
    let len = |b: &[u8]| u32::try_from(b.len()).unwrap_or(u32::MAX).to_le_bytes();
    out.write_all(&len(key))?;
    out.write_all(&len(payload))?;
    out.write_all(key)?;
    out.write_all(payload)
}

/// Sorted runs in one unnamed temporary file.
#[derive(Debug)]
struct Spill {
    file: File,
    folder: PathBuf,
    end: u64,
    runs: Vec<Run>,
}

/// Bytes of the temporary file.
#[derive(Debug, Clone, Copy)]
struct Run {
    start: u64,
    end: u64,
}

impl Spill {
    fn new(folder: &Path) -> Result<Spill> {
        let file = tempfile::tempfile_in(folder).map_err(|e| Error::io(folder, "create a temporary file in", e))?;
        Ok(Spill { file, folder: folder.to_path_buf(), end: 0, runs: Vec::new() })
    }

    /// Appends a run that `write` writes.
    fn run(&mut self, write: impl FnOnce(&mut BufWriter<&mut File>) -> io::Result<()>) -> Result<()> {
        let start = self.end;
        let written = self.file.seek(SeekFrom::Start(start)).and_then(|_| {
            let mut out = BufWriter::with_capacity(WRITE, &mut self.file);
            write(&mut out)?;
            out.flush()?;
            drop(out);
            self.file.stream_position()
        });
        self.end = written.map_err(|e| Error::io(&self.folder, "write a temporary file in", e))?;
        self.runs.push(Run { start, end: self.end });
        Ok(())
    }
}

/// The entries of one run, read through a buffer.
#[derive(Debug)]
struct Reader {
    at: u64,
    end: u64,
    step: usize,
    buffer: Vec<u8>,
    /// Start of the current entry in the buffer.
    pos: usize,
    prefix: u64,
    key: usize,
    payload: usize,
}

impl Reader {
    /// Length of the two numbers before an entry.
    const HEAD: usize = 8;

    fn key(&self) -> &[u8] {
        let start = self.pos + Self::HEAD;
        self.buffer.get(start..start + self.key).unwrap_or_default()
    }

    fn payload(&self) -> &[u8] {
        let start = self.pos + Self::HEAD + self.key;
        self.buffer.get(start..start + self.payload).unwrap_or_default()
    }

    /// Goes to the entry at `pos`; `false` at the end of the run.
    fn load(&mut self, file: &mut File) -> io::Result<bool> {
        if self.pos == self.buffer.len() && self.at == self.end {
            return Ok(false);
        }
        self.need(file, Self::HEAD)?;
        let len = |at: usize| crate::bytes::u32_le_at(&self.buffer, at).map(idx).ok_or(io::ErrorKind::UnexpectedEof);
        let (key, payload) = (len(self.pos)?, len(self.pos + 4)?);
        self.need(file, Self::HEAD + key + payload)?;
        self.key = key;
        self.payload = payload;
        self.prefix = prefix(self.key());
        Ok(true)
    }

    fn advance(&mut self, file: &mut File) -> io::Result<bool> {
        self.pos += Self::HEAD + self.key + self.payload;
        self.load(file)
    }

    /// Makes `len` bytes from `pos` available.
    fn need(&mut self, file: &mut File, len: usize) -> io::Result<()> {
        let have = self.buffer.len() - self.pos;
        if have >= len {
            return Ok(());
        }
        self.buffer.drain(..self.pos);
        self.pos = 0;
        let missing = wide(len - have);
        let room = self.end - self.at;
        if missing > room {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let n = missing.max(wide(self.step.saturating_sub(have))).min(room);
        if self.buffer.capacity() > self.step * 2 && len <= self.step {
            self.buffer.shrink_to(self.step);
        }
        file.seek(SeekFrom::Start(self.at))?;
        self.buffer.resize(have + narrow(n), 0);
        file.read_exact(self.buffer.get_mut(have..).unwrap_or_default())?;
        self.at += n;
        Ok(())
    }
}

/// The runs of one merge; the reader with the least entry is on top of a heap.
#[derive(Debug)]
struct Merge {
    readers: Vec<Reader>,
    heap: Vec<usize>,
    started: bool,
}

impl Merge {
    fn new(file: &mut File, runs: &[Run], memory: usize, folder: &Path) -> Result<Merge> {
        let step = (memory / runs.len().max(1)).clamp(LEAST_READ, MOST_READ);
        let mut merge = Merge { readers: Vec::with_capacity(runs.len()), heap: Vec::with_capacity(runs.len()), started: false };
        for run in runs {
            let mut reader = Reader { at: run.start, end: run.end, step, buffer: Vec::new(), pos: 0, prefix: 0, key: 0, payload: 0 };
            if reader.load(file).map_err(|e| Error::io(folder, "read a temporary file in", e))? {
                merge.heap.push(merge.readers.len());
            }
            merge.readers.push(reader);
        }
        for i in (0..merge.heap.len() / 2).rev() {
            merge.sink(i);
        }
        Ok(merge)
    }

    fn before(&self, a: usize, b: usize) -> bool {
        match (self.readers.get(a), self.readers.get(b)) {
            // Runs are in the order their entries came in, which decides between equal keys.
            (Some(x), Some(y)) => x.prefix.cmp(&y.prefix).then_with(|| x.key().cmp(y.key())).then(a.cmp(&b)).is_lt(),
            _ => false,
        }
    }

    fn sink(&mut self, mut i: usize) {
        loop {
            let mut least = i;
            for child in [2 * i + 1, 2 * i + 2] {
                if let (Some(&c), Some(&l)) = (self.heap.get(child), self.heap.get(least))
                    && self.before(c, l)
                {
                    least = child;
                }
            }
            if least == i {
                return;
            }
            self.heap.swap(i, least);
            i = least;
        }
    }

    fn next(&mut self, file: &mut File) -> io::Result<Option<(&[u8], &[u8])>> {
        if self.started {
            let more = match self.heap.first().and_then(|&top| self.readers.get_mut(top)) {
                Some(reader) => reader.advance(file)?,
                None => return Ok(None),
            };
            if !more {
                self.heap.swap_remove(0);
            }
            self.sink(0);
        }
        self.started = true;
        Ok(self.heap.first().and_then(|&top| self.readers.get(top)).map(|r| (r.key(), r.payload())))
    }
}

/// The entries in the order of their keys.
#[derive(Debug)]
pub struct Sorted {
    source: Source,
}

#[derive(Debug)]
enum Source {
    Memory { block: Vec<u8>, entries: Vec<Entry>, next: usize },
    Runs { file: File, merge: Merge, folder: PathBuf },
}

impl Sorted {
    /// The next entry as (key, payload), valid until the next call; `None` at the end.
    ///
    /// # Errors
    /// I/O on the temporary file.
    #[expect(clippy::should_implement_trait, reason = "the entry borrows from the sorter, which no Iterator can say")]
    pub fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        match &mut self.source {
            Source::Memory { block, entries, next } => {
                let Some(entry) = entries.get(*next) else { return Ok(None) };
                *next += 1;
                Ok(Some((entry.key(block), entry.payload(block))))
            }
            Source::Runs { file, merge, folder } => merge.next(file).map_err(|e| Error::io(folder, "read a temporary file in", e)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(memory: usize, entries: &[(Vec<u8>, Vec<u8>)]) -> (bool, Vec<(Vec<u8>, Vec<u8>)>) {
        let dir = tempfile::tempdir().unwrap();
        let mut sorter = Sorter::new(memory, dir.path());
        for (k, p) in entries {
            sorter.push(k, p).unwrap();
        }
        assert_eq!(sorter.count(), wide(entries.len()));
        let spilled = sorter.has_spilled();
        let mut sorted = sorter.finish().unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "the temporary file has no name");
        let mut out = Vec::new();
        while let Some((k, p)) = sorted.next().unwrap() {
            out.push((k.to_vec(), p.to_vec()));
        }
        assert!(sorted.next().unwrap().is_none());
        (spilled, out)
    }

    fn entries(n: usize, key_len: usize, alphabet: u64) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut state = 88_172_645_463_325_252_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        (0..n)
            .map(|i| {
                let len = usize::try_from(next()).unwrap() % (key_len + 1);
                ((0..len).map(|_| u8::try_from(next() % alphabet).unwrap()).collect(), i.to_string().into_bytes())
            })
            .collect()
    }

    #[test]
    fn any_memory_gives_the_same_stable_order() {
        for (n, key_len, alphabet) in [(0, 3, 2), (1, 3, 2), (5000, 3, 2), (20_000, 12, 256), (3000, 40, 3)] {
            let input = entries(n, key_len, alphabet);
            let mut want = input.clone();
            want.sort_by(|a, b| a.0.cmp(&b.0));
            for memory in [0, 100, 1000, 30_000, 200_000, 100 << 20] {
                if memory < 1000 && n > 5000 {
                    continue;
                }
                let (spilled, got) = run(memory, &input);
                assert!(got == want, "{n} entries in {memory} bytes");
                assert_eq!(spilled, n > 1 && memory < 100 << 20 && memory < n * 24, "{n} {memory}");
            }
        }
    }

    #[test]
    fn entries_longer_than_the_buffers() {
        let mut input = entries(50, 3, 4);
        for (i, (_, payload)) in input.iter_mut().enumerate() {
            payload.resize(i * 7000 % 100_000, 7);
        }
        let mut want = input.clone();
        want.sort_by(|a, b| a.0.cmp(&b.0));
        assert!(run(50_000, &input).1 == want);
    }

    #[test]
    fn a_missing_folder_is_an_error() {
        let mut sorter = Sorter::new(0, Path::new("/nowhere/at/all"));
        sorter.push(b"b", b"").unwrap();
        assert!(matches!(sorter.push(b"a", b""), Err(Error::Io { .. })));
    }
}
