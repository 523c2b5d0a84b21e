//! Inputs as bytes that hold still: the reading pass, the mapping, private snapshots, fingerprints.
//!
//! An input is opened read-only and nothing is created beside it. A pass with plain positioned reads goes over the whole
//! file first: it finds ranges that the medium does not give back, and takes a CRC-32. A regular file that is readable
//! throughout and that no process holds open for writing is then mapped; everything else (live, failing, a pipe, a device)
//! becomes a private snapshot, in memory up to a limit and then in an unnamed temporary file. What is above this module
//! borrows from `&[u8]`, and neither a bad sector nor a shrinking file is ever a signal: what goes away under a mapping reads
//! as zeros, and [`InputFile::recheck`] says that the input changed.
//!
//! SHA-256 runs on its own thread over those bytes, beside the work; [`InputFile::fingerprint`] waits for it.
//!
//! **POSIX locks.** Closing *any* descriptor of a file drops all POSIX locks that the process holds on it. In a process
//! where SQLite itself has the database open, hand over a descriptor that lives as long as that connection
//! ([`InputFile::from_file`]) instead of a path, otherwise SQLite loses its locks when the [`InputFile`] is dropped.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};

use super::mapping::Mapping;
use super::reading::{self, BLOCK};
use crate::bytes::slice;
use crate::ctx::Ctx;
use crate::error::{Error, Result};
use crate::ids::{narrow, wide};

/// How an input shall be read.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OpenOptions {
    /// Never map a file; always take a private snapshot.
    pub no_mmap: bool,
    /// Take SHA-256 as well as CRC-32.
    pub hash: bool,
    /// Bytes of a private snapshot kept in memory; larger ones go to a temporary file.
    pub memory: usize,
    /// The file was made by this process and nobody else knows it: it is mapped although it is open for writing.
    pub own: bool,
    /// Folder of that temporary file; the system's own when empty. Never the folder of the input unless given here.
    pub temp_dir: Option<PathBuf>,
}

impl Default for OpenOptions {
    fn default() -> Self {
        OpenOptions { no_mmap: false, hash: true, memory: 64 << 20, own: false, temp_dir: None }
    }
}

impl OpenOptions {
    /// The defaults: mapped where that is safe, hashed.
    #[must_use]
    pub fn new() -> OpenOptions {
        OpenOptions::default()
    }
}

/// The path of a sidecar: the name of the database and a suffix.
pub(super) fn beside(db: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(db.as_os_str());
    name.push(suffix);
    PathBuf::from(name)
}

/// Opens a sidecar; one that was not named may be absent.
pub(super) fn sidecar(named: Option<&PathBuf>, default: PathBuf, ctx: &Ctx, options: &OpenOptions) -> Result<Option<InputFile>> {
    match named {
        Some(path) => InputFile::open(path, ctx, options).map(Some),
        None if default.is_file() => InputFile::open(&default, ctx, options).map(Some),
        None => Ok(None),
    }
}

/// Where the bytes of an input are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// Mapped from the input itself.
    Mapped,
    /// A copy in memory.
    Memory,
    /// A copy in an unnamed temporary file, mapped.
    TempFile,
}

/// What identifies the content of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint {
    /// Length in bytes.
    pub len: u64,
    /// CRC-32 (IEEE) of all bytes; unreadable ones count as zero.
    pub crc32: u32,
    /// SHA-256 of the same bytes, when it was asked for.
    pub sha256: Option<[u8; 32]>,
}

impl Fingerprint {
    /// The SHA-256 as lower-case hex.
    #[must_use]
    pub fn sha256_hex(&self) -> Option<String> {
        use std::fmt::Write as _;
        self.sha256.map(|hash| {
            hash.iter().fold(String::with_capacity(64), |mut text, byte| {
                // Writing to a String never fails.
                let _ = write!(text, "{byte:02x}");
                text
            })
        })
    }
}

#[derive(Debug)]
enum Store {
    Map(Mapping),
    Memory(Vec<u8>),
}

impl Store {
    fn bytes(&self) -> &[u8] {
        match self {
            Store::Map(map) => map,
            Store::Memory(bytes) => bytes,
        }
    }
}

/// What tells a file apart from its later self without reading it through.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    len: u64,
    modified: Option<SystemTime>,
    /// The first 100 bytes: the change counter of a database, the salts of a WAL, both header copies of a `-shm`.
    head: Vec<u8>,
}

impl Stamp {
    fn take(file: &File, len: u64) -> io::Result<Stamp> {
        let mut head = vec![0_u8; 100];
        let got = reading::read_full(file, &mut head, 0).unwrap_or(0);
        head.truncate(got);
        Ok(Stamp { len, modified: file.metadata()?.modified().ok(), head })
    }

    /// What differs, in words.
    fn difference(&self, later: &Stamp) -> Option<String> {
        if self.len != later.len {
            return Some(format!("size {} became {}", self.len, later.len));
        }
        if self.head != later.head {
            let counter = |s: &Stamp| crate::bytes::u32_at(&s.head, 24);
            return Some(match (counter(self), counter(later)) {
                (Some(a), Some(b)) if a != b && slice(&self.head, 0, 6) == Some(b"SQLite") => format!("change counter {a} became {b}"),
                _ => "its header changed".to_owned(),
            });
        }
        (self.modified != later.modified).then(|| "its modification time changed".to_owned())
    }
}

/// An input, opened read-only, its bytes at hand.
#[derive(Debug)]
pub struct InputFile {
    path: PathBuf,
    file: Option<Arc<File>>,
    store: Arc<Store>,
    held: Held,
    stamp: Option<Stamp>,
    holes: Vec<Range<u64>>,
    crc32: u32,
    hash: bool,
    sha256: OnceLock<[u8; 32]>,
    pending: Mutex<Option<JoinHandle<[u8; 32]>>>,
}

impl InputFile {
    /// Opens a path and reads it through.
    ///
    /// # Errors
    /// [`Error::Io`] when it cannot be opened, is a folder, or a temporary file fails; [`Error::Unstable`] when it changes
    /// during the pass, twice; [`Error::Cancelled`].
    pub fn open(path: &Path, ctx: &Ctx, options: &OpenOptions) -> Result<InputFile> {
        let file = reading::open(path).map_err(|e| Error::io(path, "open", e))?;
        InputFile::from_file(path, Arc::new(file), ctx, options)
    }

    /// Reads a file through that the caller has open; `path` only names it in messages.
    ///
    /// The descriptor is neither closed nor duplicated while the caller keeps its own `Arc`, so the POSIX locks of a SQLite
    /// in the same process stay (see the module's notes). Its position is not used and not moved, except for pipes.
    ///
    /// # Errors
    /// As [`InputFile::open`].
    pub fn from_file(path: &Path, file: Arc<File>, ctx: &Ctx, options: &OpenOptions) -> Result<InputFile> {
        let meta = file.metadata().map_err(|e| Error::io(path, "read", e))?;
        if meta.is_dir() {
            return Err(Error::io(path, "read", io::Error::from(io::ErrorKind::IsADirectory)));
        }
        let Some(len) = reading::length(&file, &meta) else {
            return InputFile::from_stream(path, &file, ctx, options);
        };
        let first = InputFile::positioned(path, &file, len, meta.is_file(), ctx, options);
        match first {
            Err(Error::Unstable { .. }) => {
                let meta = file.metadata().map_err(|e| Error::io(path, "read", e))?;
                let len = reading::length(&file, &meta).unwrap_or(len);
                InputFile::positioned(path, &file, len, meta.is_file(), ctx, options)
            }
            other => other,
        }
    }

    /// Bytes of the caller; `name` stands for them in messages.
    #[must_use]
    pub fn from_bytes(name: &Path, bytes: Vec<u8>, options: &OpenOptions) -> InputFile {
        let crc32 = crc32fast::hash(&bytes);
        InputFile::with(name, None, Store::Memory(bytes), Held::Memory, None, Vec::new(), crc32, options.hash)
    }

    /// Other bytes in the place of this file's, `len` of them, in memory or in an unnamed temporary file. Whether the file changes
    /// is asked of the original.
    ///
    /// # Errors
    /// A temporary file that cannot be written, and cancellation.
    pub(super) fn made_anew(
        &self,
        len: u64,
        pieces: &mut dyn Iterator<Item = &[u8]>,
        ctx: &Ctx,
        options: &OpenOptions,
    ) -> Result<InputFile> {
        let mut copy = Copy::new(len, options);
        for piece in pieces {
            ctx.check()?;
            copy.push(&self.path, piece)?;
        }
        let (store, held) = copy.finish(&self.path)?;
        Ok(InputFile::with(&self.path, None, store, held, None, Vec::new(), 0, false))
    }

    fn with(
        path: &Path,
        file: Option<Arc<File>>,
        store: Store,
        held: Held,
        stamp: Option<Stamp>,
        holes: Vec<Range<u64>>,
        crc32: u32,
        hash: bool,
    ) -> InputFile {
        let input = InputFile {
            path: path.to_path_buf(),
            file,
            store: Arc::new(store),
            held,
            stamp,
            holes,
            crc32,
            hash,
            sha256: OnceLock::new(),
            pending: Mutex::new(None),
        };
        if hash {
            let store = Arc::clone(&input.store);
            let work = move || sha256(store.bytes());
            // Without a thread the hash is computed when it is asked for.
            if let (Ok(handle), Ok(mut place)) = (thread::Builder::new().name("sha256".to_owned()).spawn(work), input.pending.lock()) {
                *place = Some(handle);
            }
        }
        input
    }

    fn positioned(path: &Path, file: &Arc<File>, len: u64, regular: bool, ctx: &Ctx, options: &OpenOptions) -> Result<InputFile> {
        let unstable = |what: String| Error::Unstable { path: path.to_path_buf(), what };
        let before = Stamp::take(file, len).map_err(|e| Error::io(path, "read", e))?;
        let mappable = regular && !options.no_mmap && len > 0 && (options.own || !reading::open_for_writing(file));
        let mut crc = crc32fast::Hasher::new();
        let mut copy = if mappable { None } else { Some(Copy::new(len, options)) };
        ctx.progress.phase("reading", len);
        let pass = reading::pass(&|buf, at| reading::read_at(file, buf, at), len, ctx, &mut |block| {
            crc.update(block);
            match &mut copy {
                Some(copy) => copy.push(path, block),
                None => Ok(()),
            }
        });
        ctx.progress.finish();
        let mut holes = match pass? {
            reading::Pass::Whole(holes) => holes,
            reading::Pass::Short(at) => return Err(unstable(format!("it ended at byte {at} of {len}"))),
        };
        let mut crc32 = crc.finalize();
        if copy.is_none() && !holes.is_empty() {
            // A mapping of a failing medium would end in a signal: copy after all.
            let mut again = Copy::new(len, options);
            let mut crc = crc32fast::Hasher::new();
            let pass = reading::pass(&|buf, at| reading::read_at(file, buf, at), len, ctx, &mut |block| {
                crc.update(block);
                again.push(path, block)
            })?;
            if let reading::Pass::Whole(found) = pass {
                holes = found;
            }
            crc32 = crc.finalize();
            copy = Some(again);
        }
        let (store, held) = match copy {
            Some(copy) => copy.finish(path)?,
            None => match Mapping::new(file).map_err(|e| Error::io(path, "map", e))? {
                Some(map) => (Store::Map(map), Held::Mapped),
                None => {
                    let plain = OpenOptions { no_mmap: true, ..options.clone() };
                    return InputFile::positioned(path, file, len, regular, ctx, &plain);
                }
            },
        };
        let meta = file.metadata().map_err(|e| Error::io(path, "read", e))?;
        let after = Stamp::take(file, reading::length(file, &meta).unwrap_or(len)).map_err(|e| Error::io(path, "read", e))?;
        if let Some(what) = before.difference(&after) {
            return Err(unstable(what));
        }
        if wide(store.bytes().len()) != len {
            return Err(unstable(format!("size {len} became {}", store.bytes().len())));
        }
        Ok(InputFile::with(path, Some(Arc::clone(file)), store, held, Some(before), holes, crc32, options.hash))
    }

    /// A pipe or a character device: read to its end, once.
    fn from_stream(path: &Path, file: &File, ctx: &Ctx, options: &OpenOptions) -> Result<InputFile> {
        let mut copy = Copy::new(0, options);
        let mut crc = crc32fast::Hasher::new();
        let mut buf = vec![0_u8; BLOCK];
        ctx.progress.phase("reading", 0);
        // A named pipe that nobody writes to yet reads as if it had ended.
        let mut waits = reading::may_wait_for_writer(path, file);
        loop {
            ctx.check()?;
            let got = match io::Read::read(&mut &*file, &mut buf) {
                Ok(0) if !waits => break,
                Ok(0) => {
                    thread::sleep(Duration::from_millis(20));
                    continue;
                }
                Ok(got) => got,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    // A writer is there.
                    waits = false;
                    thread::sleep(Duration::from_micros(500));
                    continue;
                }
                Err(e) => return Err(Error::io(path, "read", e)),
            };
            waits = false;
            let block = buf.get(..got).unwrap_or_default();
            crc.update(block);
            copy.push(path, block)?;
            ctx.progress.advance(wide(got));
        }
        ctx.progress.finish();
        let (store, held) = copy.finish(path)?;
        Ok(InputFile::with(path, None, store, held, None, Vec::new(), crc.finalize(), options.hash))
    }

    /// The bytes. Unreadable ranges are zero; see [`InputFile::holes`].
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.store.bytes()
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        wide(self.bytes().len())
    }

    /// Whether it has no byte.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes().is_empty()
    }

    /// The name it was opened under.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the bytes are.
    #[must_use]
    pub fn held(&self) -> Held {
        self.held
    }

    /// Byte ranges that the medium did not give back, ascending, not touching.
    #[must_use]
    pub fn holes(&self) -> &[Range<u64>] {
        &self.holes
    }

    /// Length and checksums; waits for the hash if it is still being computed.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        let sha256 = self.hash.then(|| *self.sha256.get_or_init(|| self.join_hash()));
        Fingerprint { len: self.len(), crc32: self.crc32, sha256 }
    }

    fn join_hash(&self) -> [u8; 32] {
        let handle = self.pending.lock().ok().and_then(|mut place| place.take());
        match handle.map(JoinHandle::join) {
            Some(Ok(hash)) => hash,
            _ => sha256(self.bytes()),
        }
    }

    /// Whether a part of the input was gone when it was to be read: nothing that was made of it holds.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        matches!(&*self.store, Store::Map(map) if map.is_lost())
    }

    /// Reads the input once more and says what changed since it was opened, `None` when nothing did.
    ///
    /// The caller runs once more when something changed; if that is in vain too, the result is [`Error::Unstable`].
    /// A pipe, and bytes of the caller, cannot change.
    ///
    /// # Errors
    /// [`Error::Io`] when the file cannot be looked at any more, [`Error::Cancelled`].
    pub fn recheck(&self, ctx: &Ctx) -> Result<Option<String>> {
        let (Some(file), Some(stamp)) = (&self.file, &self.stamp) else { return Ok(None) };
        if self.is_lost() {
            return Ok(Some("it shrank".to_owned()));
        }
        let meta = file.metadata().map_err(|e| Error::io(&self.path, "read", e))?;
        let len = reading::length(file, &meta).unwrap_or(0);
        let now = Stamp::take(file, len).map_err(|e| Error::io(&self.path, "read", e))?;
        if let Some(what) = stamp.difference(&now) {
            return Ok(Some(what));
        }
        let mut crc = crc32fast::Hasher::new();
        let mut sha = self.hash.then(Sha256::new);
        ctx.progress.phase("checking the input once more", len);
        let pass = reading::pass(&|buf, at| reading::read_at(file, buf, at), len, ctx, &mut |block| {
            crc.update(block);
            if let Some(sha) = &mut sha {
                sha.update(block);
            }
            Ok(())
        });
        ctx.progress.finish();
        if let reading::Pass::Short(at) = pass? {
            return Ok(Some(format!("it ended at byte {at} of {len}")));
        }
        let fingerprint = Fingerprint { len, crc32: crc.finalize(), sha256: sha.map(|s| s.finalize().into()) };
        Ok((fingerprint != self.fingerprint()).then(|| "its content changed".to_owned()))
    }
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// A private snapshot while it grows.
struct Copy {
    memory: Vec<u8>,
    limit: usize,
    temp_dir: Option<PathBuf>,
    file: Option<File>,
}

impl Copy {
    fn new(expected: u64, options: &OpenOptions) -> Copy {
        let limit = options.memory;
        let memory = if expected <= wide(limit) { Vec::with_capacity(narrow(expected)) } else { Vec::new() };
        Copy { memory, limit, temp_dir: options.temp_dir.clone(), file: None }
    }

    fn dir(&self) -> PathBuf {
        self.temp_dir.clone().unwrap_or_else(std::env::temp_dir)
    }

    fn push(&mut self, path: &Path, block: &[u8]) -> Result<()> {
        if self.file.is_none() && self.memory.len().saturating_add(block.len()) > self.limit {
            let dir = self.dir();
            let mut file = tempfile::tempfile_in(&dir).map_err(|e| Error::io(&dir, "create a temporary file in", e))?;
            file.write_all(&self.memory).map_err(|e| Error::io(&dir, "write a snapshot to", e))?;
            self.memory = Vec::new();
            self.file = Some(file);
        }
        match &mut self.file {
            Some(file) => file.write_all(block).map_err(|e| Error::io(path, "write a snapshot of", e)),
            None => {
                self.memory.extend_from_slice(block);
                Ok(())
            }
        }
    }

    fn finish(self, path: &Path) -> Result<(Store, Held)> {
        match self.file {
            Some(file) => {
                let full = || io::Error::other("no more files can be mapped");
                let map = Mapping::new(&file).and_then(|m| m.ok_or_else(full)).map_err(|e| Error::io(path, "map a snapshot of", e))?;
                Ok((Store::Map(map), Held::TempFile))
            }
            None => Ok((Store::Memory(self.memory), Held::Memory)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file_of(dir: &Path, bytes: &[u8]) -> PathBuf {
        let path = dir.join("in.db");
        std::fs::write(&path, bytes).unwrap();
        path
    }

    #[test]
    fn a_quiet_file_is_mapped_and_hashed() {
        let dir = tempfile::tempdir().unwrap();
        let path = file_of(dir.path(), b"abc");
        let input = InputFile::open(&path, &Ctx::default(), &OpenOptions::new()).unwrap();
        assert_eq!(input.held(), Held::Mapped);
        assert_eq!(input.bytes(), b"abc");
        assert_eq!(input.fingerprint().sha256_hex().unwrap(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(input.recheck(&Ctx::default()).unwrap(), None);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_with_a_writer_is_copied() {
        let dir = tempfile::tempdir().unwrap();
        let path = file_of(dir.path(), &vec![1; 5000]);
        let writer = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        let input = InputFile::open(&path, &Ctx::default(), &OpenOptions::new()).unwrap();
        assert_eq!(input.held(), Held::Memory);
        let small = OpenOptions { memory: 1000, ..OpenOptions::new() };
        let input2 = InputFile::open(&path, &Ctx::default(), &small).unwrap();
        assert_eq!(input2.held(), Held::TempFile);
        assert_eq!(input.bytes(), input2.bytes());
        assert_eq!(input.fingerprint(), input2.fingerprint());
        (&writer).write_all(b"more").unwrap();
        assert!(input.recheck(&Ctx::default()).unwrap().unwrap().contains("size 5000 became 5004"));
    }

    #[test]
    fn folders_and_missing_files_are_errors_of_the_tool() {
        let dir = tempfile::tempdir().unwrap();
        let open = |p: &Path| InputFile::open(p, &Ctx::default(), &OpenOptions::new());
        assert!(matches!(open(dir.path()), Err(Error::Io { .. })));
        assert!(matches!(open(&dir.path().join("none")), Err(Error::Io { action: "open", .. })));
        assert!(open(&file_of(dir.path(), b"")).unwrap().is_empty());
    }
}
