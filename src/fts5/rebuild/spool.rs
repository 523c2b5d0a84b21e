//! Bytes that wait: in memory up to a bound, then in an unnamed temporary file.

#![expect(clippy::arithmetic_side_effects, reason = "computes on lengths of its own buffers and files")]

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::bytes::varint;
use crate::error::{Error, Result};
use crate::ids::{narrow, wide};

/// A temporary file that several readers share.
#[derive(Debug, Clone)]
pub struct Shared {
    file: Arc<Mutex<File>>,
    folder: PathBuf,
}

impl Shared {
    pub fn new(folder: &Path) -> Result<Shared> {
        let file = tempfile::tempfile_in(folder).map_err(|e| Error::io(folder, "create a temporary file in", e))?;
        Ok(Shared { file: Arc::new(Mutex::new(file)), folder: folder.to_path_buf() })
    }

    /// Writes at a place.
    pub fn write(&self, at: u64, bytes: &[u8]) -> Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(at))
            .and_then(|_| file.write_all(bytes))
            .map_err(|e| Error::io(&self.folder, "write a temporary file in", e))
    }

    fn read(&self, at: u64, buffer: &mut [u8]) -> Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(at))
            .and_then(|_| file.read_exact(buffer))
            .map_err(|e| Error::io(&self.folder, "read a temporary file in", e))
    }
}

/// A range of stored bytes.
#[derive(Debug)]
pub enum Stored {
    Memory(Vec<u8>),
    File { shared: Shared, at: u64, len: u64 },
}

impl Stored {
    pub fn len(&self) -> u64 {
        match self {
            Stored::Memory(bytes) => wide(bytes.len()),
            Stored::File { len, .. } => *len,
        }
    }
}

/// Reads stored bytes front to back.
#[derive(Debug)]
pub struct Reader {
    from: Option<(Shared, u64, u64)>,
    step: usize,
    buffer: Vec<u8>,
    at: usize,
}

impl Reader {
    /// A reader that fetches `step` bytes at a time.
    pub fn new(stored: Stored, step: usize) -> Reader {
        match stored {
            Stored::Memory(buffer) => Reader { from: None, step, buffer, at: 0 },
            Stored::File { shared, at, len } => Reader { from: Some((shared, at, at + len)), step, buffer: Vec::new(), at: 0 },
        }
    }

    /// Makes at least `n` bytes available, or all that are left.
    fn fill(&mut self, n: usize) -> Result<()> {
        if self.buffer.len() - self.at >= n {
            return Ok(());
        }
        let Some((shared, next, end)) = &mut self.from else { return Ok(()) };
        self.buffer.drain(..self.at);
        self.at = 0;
        let have = self.buffer.len();
        let more = narrow(*end - *next).min((n - have).max(self.step));
        self.buffer.resize(have + more, 0);
        shared.read(*next, self.buffer.get_mut(have..).unwrap_or_default())?;
        *next += wide(more);
        Ok(())
    }

    /// The next varint; `None` at the end.
    #[inline]
    pub fn varint(&mut self) -> Result<Option<u64>> {
        self.fill(9)?;
        let Some((n, len)) = varint(&self.buffer, self.at) else { return Ok(None) };
        self.at += len;
        Ok(Some(n))
    }

    /// The next `n` bytes, fewer at the end.
    #[inline]
    pub fn bytes(&mut self, n: usize) -> Result<&[u8]> {
        self.fill(n)?;
        let start = self.at;
        self.at = (start + n).min(self.buffer.len());
        Ok(self.buffer.get(start..self.at).unwrap_or_default())
    }
}

/// Bytes that are written once and then read once.
#[derive(Debug)]
pub struct Spool {
    folder: PathBuf,
    limit: usize,
    memory: Vec<u8>,
    file: Option<(Shared, u64)>,
}

impl Spool {
    /// A spool that keeps up to `limit` bytes in memory.
    pub fn new(folder: &Path, limit: usize) -> Spool {
        Spool { folder: folder.to_path_buf(), limit: limit.max(1 << 16), memory: Vec::new(), file: None }
    }

    /// The place for more bytes; [`Spool::settle`] follows.
    pub fn tail(&mut self) -> &mut Vec<u8> {
        &mut self.memory
    }

    /// Moves what is in memory to the file when it is over the limit.
    pub fn settle(&mut self) -> Result<()> {
        if self.memory.len() < self.limit {
            return Ok(());
        }
        let (shared, end) = match &mut self.file {
            Some(file) => file,
            None => self.file.insert((Shared::new(&self.folder)?, 0)),
        };
        shared.write(*end, &self.memory)?;
        *end += wide(self.memory.len());
        self.memory.clear();
        Ok(())
    }

    /// All bytes, to read.
    pub fn into_reader(mut self) -> Result<Reader> {
        let stored = match self.file.take() {
            None => Stored::Memory(self.memory),
            Some((shared, end)) => {
                shared.write(end, &self.memory)?;
                Stored::File { shared, at: 0, len: end + wide(self.memory.len()) }
            }
        };
        Ok(Reader::new(stored, 1 << 18))
    }
}
