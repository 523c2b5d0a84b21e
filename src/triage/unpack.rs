//! Archives, unpacked with bounds: nothing of them decides where a file lies, how much is written, or how long it takes.
//!
//! Only regular files come out. A name that leads out of the folder, a link, a device, an encrypted member is a line of the
//! result. Bytes are bounded for each member and for all, by what went in and in total; zeros are written as holes.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use flate2::read::MultiGzDecoder;

use crate::ctx::Ctx;
use crate::error::{Error, Result};
use crate::ids::wide;

use super::member::{Bundle, FILES, Member};

/// Archives within archives that are opened.
pub(super) const DEPTH: usize = 3;

/// Bytes that may come out of any archive.
const MOST: u64 = 64 << 30;

/// What may come out of a member whatever went in: a database of zeros of this size is still a database of zeros.
const FREE: u64 = 256 << 20;

/// Bytes out for one byte in, beyond that: databases and logs stay far below.
const RATIO: u64 = 200;

/// Parts of a name that are kept, and bytes of each.
const PARTS: usize = 32;
const PART: usize = 120;

/// What an archive is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Zip,
    Tar,
    Gzip,
}

/// How much may still come out.
#[derive(Debug)]
pub(super) struct Budget {
    left: u64,
    most: u64,
}

impl Budget {
    pub(super) fn new(most: u64) -> Budget {
        let most = if most == 0 { MOST } else { most };
        Budget { left: most, most }
    }
}

/// What kind of archive a file is, by its bytes.
pub(super) fn kind_of(path: &Path) -> Result<Option<Kind>> {
    let mut head = Vec::new();
    let file = File::open(path).map_err(|e| Error::io(path, "open", e))?;
    file.take(512).read_to_end(&mut head).map_err(|e| Error::io(path, "read", e))?;
    Ok(kind_of_bytes(&head))
}

fn kind_of_bytes(head: &[u8]) -> Option<Kind> {
    if head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06") {
        return Some(Kind::Zip);
    }
    if head.starts_with(b"\x1f\x8b\x08") {
        return Some(Kind::Gzip);
    }
    (head.get(257..262) == Some(b"ustar")).then_some(Kind::Tar)
}

/// Unpacks an archive into a folder. What is wrong with it is noted in the bundle; what came out before stays.
pub(super) fn unpack(
    path: &Path,
    prefix: &str,
    kind: Kind,
    folder: &Path,
    depth: usize,
    budget: &mut Budget,
    bundle: &mut Bundle,
    ctx: &Ctx,
) -> Result<()> {
    let file = File::open(path).map_err(|e| Error::io(path, "open", e))?;
    let folder = if depth == 0 { folder.to_path_buf() } else { folder.join(".nested").join(bundle.members.len().to_string()) };
    std::fs::create_dir_all(&folder).map_err(|e| Error::io(&folder, "create", e))?;
    let mut sink = Sink { prefix, folder: &folder, budget, bundle, ctx };
    match kind {
        Kind::Zip => sink.zip(file),
        Kind::Tar => {
            let taken = Rc::new(Cell::new(0));
            sink.tar(Counted { inner: BufReader::new(file), taken: Rc::clone(&taken) }, &taken)
        }
        Kind::Gzip => {
            let taken = Rc::new(Cell::new(0));
            let mut plain = BufReader::new(MultiGzDecoder::new(Counted { inner: BufReader::new(file), taken: Rc::clone(&taken) }));
            let head = std::io::BufRead::fill_buf(&mut plain).map(<[u8]>::to_vec).unwrap_or_default();
            if kind_of_bytes(&head) == Some(Kind::Tar) {
                return sink.tar(plain, &taken);
            }
            let name = path.file_name().map_or_else(|| "file".to_owned(), |n| n.to_string_lossy().into_owned());
            let name = if prefix.is_empty() { name } else { prefix.trim_end_matches('!').rsplit('/').next().unwrap_or("file").to_owned() };
            let name = name.strip_suffix(".gz").unwrap_or(&name).to_owned();
            sink.member(&name, &mut plain, &|| taken.get())
        }
    }
}

/// Counts what is read.
struct Counted<R> {
    inner: R,
    taken: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let got = self.inner.read(buf)?;
        self.taken.set(self.taken.get().saturating_add(wide(got)));
        Ok(got)
    }
}

struct Sink<'s> {
    prefix: &'s str,
    folder: &'s Path,
    budget: &'s mut Budget,
    bundle: &'s mut Bundle,
    ctx: &'s Ctx,
}

impl Sink<'_> {
    fn skip(&mut self, name: &str, why: &str) {
        self.bundle.skip(format!("{}{name}", self.prefix), why);
    }

    fn full(&self) -> bool {
        self.bundle.members.len() >= FILES || self.bundle.skipped.len() >= FILES || self.budget.left == 0
    }

    fn zip(&mut self, file: File) -> Result<()> {
        let mut zip = match zip::ZipArchive::new(BufReader::new(file)) {
            Ok(zip) => zip,
            Err(e) => {
                self.skip("", &format!("the zip archive cannot be read: {e}"));
                return Ok(());
            }
        };
        for i in 0..zip.len() {
            self.ctx.check()?;
            if self.full() {
                self.skip("", "the rest of the archive is not looked at: the bound is reached");
                return Ok(());
            }
            let (name, encrypted, is_dir, is_link, packed) = match zip.by_index_raw(i) {
                Ok(f) => {
                    (String::from_utf8_lossy(f.name_raw()).into_owned(), f.encrypted(), f.is_dir(), f.is_symlink(), f.compressed_size())
                }
                Err(e) => {
                    self.skip(&format!("member {i}"), &format!("cannot be read: {e}"));
                    continue;
                }
            };
            if is_dir {
                continue;
            }
            if encrypted {
                self.skip(&name, "encrypted: unpack it with its password first");
            } else if is_link {
                self.skip(&name, "a symbolic link, not followed");
            } else {
                match zip.by_index(i) {
                    Ok(mut f) => self.member(&name, &mut f, &|| packed)?,
                    Err(e) => self.skip(&name, &format!("cannot be unpacked: {e}")),
                }
            }
        }
        Ok(())
    }

    fn tar(&mut self, reader: impl Read, taken: &Rc<Cell<u64>>) -> Result<()> {
        let mut tar = tar::Archive::new(reader);
        let entries = match tar.entries() {
            Ok(entries) => entries,
            Err(e) => {
                self.skip("", &format!("the tar archive cannot be read: {e}"));
                return Ok(());
            }
        };
        for entry in entries {
            self.ctx.check()?;
            if self.full() {
                self.skip("", "the rest of the archive is not looked at: the bound is reached");
                return Ok(());
            }
            let mut entry = match entry {
                Ok(entry) => entry,
                Err(e) => {
                    self.skip("", &format!("the archive ends or breaks here: {e}"));
                    return Ok(());
                }
            };
            let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            let kind = entry.header().entry_type();
            if kind.is_dir() || kind.is_pax_global_extensions() {
                continue;
            }
            if kind.is_symlink() || kind.is_hard_link() {
                self.skip(&name, "a link, not followed");
            } else if !(kind.is_file() || kind.is_contiguous() || kind.is_gnu_sparse()) {
                self.skip(&name, "no regular file");
            } else {
                let before = taken.get();
                self.member(&name, &mut entry, &|| taken.get().saturating_sub(before))?;
            }
        }
        Ok(())
    }

    /// Writes a member. `packed` says how many bytes of the archive went into it so far.
    fn member(&mut self, name: &str, from: &mut dyn Read, packed: &dyn Fn() -> u64) -> Result<()> {
        let Some(relative) = safe(name) else {
            self.skip(name, "its name leads out of the bundle: not unpacked");
            return Ok(());
        };
        let path = free(self.folder.join(relative));
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, "create", e))?;
        }
        let mut to = File::options().write(true).create_new(true).open(&path).map_err(|e| Error::io(&path, "create", e))?;
        let mut block = vec![0_u8; 256 << 10];
        let mut written = 0_u64;
        let mut wrong = None;
        loop {
            self.ctx.check()?;
            let got = match from.read(&mut block) {
                Ok(0) => break,
                Ok(got) => got,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => {
                    wrong = Some(format!("the archive ends or breaks within it, {written} bytes came out: {e}"));
                    break;
                }
            };
            let part = block.get(..got).unwrap_or_default();
            written = written.saturating_add(wide(got));
            if written > FREE && written > packed().saturating_mul(RATIO) {
                wrong = Some(format!("a bomb: {written} bytes came out of {} of the archive; the rest is not unpacked", packed()));
                break;
            }
            if wide(got) > self.budget.left {
                self.budget.left = 0;
                wrong = Some(format!(
                    "the bound of {} bytes for the whole bundle is reached; the rest is not unpacked (--max-size)",
                    self.budget.most
                ));
                break;
            }
            self.budget.left = self.budget.left.saturating_sub(wide(got));
            let step = if part.iter().all(|b| *b == 0) {
                to.seek(SeekFrom::Current(i64::try_from(got).unwrap_or(0))).map(|_| ())
            } else {
                to.write_all(part)
            };
            step.map_err(|e| Error::io(&path, "write", e))?;
        }
        if let Some(why) = wrong {
            let is_bomb = why.starts_with("a bomb") || self.budget.left == 0;
            self.skip(name, &why);
            if is_bomb || written == 0 {
                drop(to);
                std::fs::remove_file(&path).map_err(|e| Error::io(&path, "remove", e))?;
                return Ok(());
            }
        }
        to.set_len(written).map_err(|e| Error::io(&path, "write", e))?;
        self.bundle.members.push(Member { name: format!("{}{name}", self.prefix), path, bytes: written });
        Ok(())
    }
}

/// A name of an archive as a path below a folder: parts of harmless characters; `None` when it leads upward or is no name.
fn safe(name: &str) -> Option<PathBuf> {
    let mut out = PathBuf::new();
    for part in name.split(['/', '\\']).filter(|p| !p.is_empty() && *p != ".") {
        if part == ".." || out.components().count() >= PARTS {
            return None;
        }
        let mut clean: String = part.chars().map(|c| if c.is_ascii_alphanumeric() || "._-+ ".contains(c) { c } else { '_' }).collect();
        clean.truncate(PART);
        out.push(clean);
    }
    (out.file_name().is_some()).then_some(out)
}

/// A path that nothing has yet.
fn free(path: PathBuf) -> PathBuf {
    let mut n = 1_u32;
    let mut out = path.clone();
    while out.symlink_metadata().is_ok() {
        n = n.saturating_add(1);
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{n}"));
        out = PathBuf::from(name);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_nowhere_else() {
        for bad in ["", "/", "..", "a/../b", "../x", "..\\x", "a/..", "./.", "x/".repeat(40).as_str()] {
            assert_eq!(safe(bad), None, "{bad}");
        }
        assert_eq!(safe("/opt/data/state.db"), Some(PathBuf::from("opt/data/state.db")));
        assert_eq!(safe("C:\\a\\b c.db"), Some(PathBuf::from("C_/a/b c.db")));
        assert_eq!(safe("a\u{202e}b\n/$(x)"), Some(PathBuf::from("a_b_/__x_")));
        assert_eq!(safe(&"x".repeat(500)).unwrap().as_os_str().len(), PART);
    }
}
