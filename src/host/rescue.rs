//! A file that was deleted while a process has it open, copied out of `/proc/PID/fd` while that process lives.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use crate::ctx::Ctx;
use crate::error::{Error, Result};

use super::holders::Holder;

/// How often a file is copied that grows while it is copied.
const TRIES: usize = 4;

/// A file that was copied out.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Rescued {
    /// The process and descriptor that it was copied from.
    pub holder: Holder,
    /// Where the copy is.
    pub path: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
    /// Whether two passes read the same; otherwise the process wrote to it meanwhile.
    pub steady: bool,
}

/// Copies what each holder in `gone` has open into `folder`, each inode once. The folder is made when it is not there; a
/// file of it is never written over.
///
/// # Errors
/// I/O, with the path; cancellation.
pub fn copy(db: &Path, gone: &[&Holder], folder: &Path, ctx: &Ctx) -> Result<Vec<Rescued>> {
    std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, "create", e))?;
    let mut done: Vec<(u64, u64)> = Vec::new();
    let mut out = Vec::new();
    for holder in gone {
        if done.contains(&holder.inode) {
            continue;
        }
        done.push(holder.inode);
        let mut name = db.file_name().unwrap_or(db.as_os_str()).to_owned();
        name.push(format!(".rescued-{}-{}{}", holder.pid, holder.fd, holder.file.ending()));
        let path = folder.join(name);
        let source = PathBuf::from(format!("/proc/{}/fd/{}", holder.pid, holder.fd));
        let (bytes, steady) = copy_one(&source, &path, ctx)?;
        out.push(Rescued { holder: (*holder).clone(), path, bytes, steady });
    }
    Ok(out)
}

fn copy_one(source: &Path, path: &Path, ctx: &Ctx) -> Result<(u64, bool)> {
    let mut from = File::open(source).map_err(|e| Error::io(source, "open", e))?;
    let exists = |e: std::io::Error| match e.kind() {
        std::io::ErrorKind::AlreadyExists => Error::Exists { path: path.to_path_buf() },
        _ => Error::io(path, "create", e),
    };
    let mut to = File::options().write(true).create_new(true).open(path).map_err(exists)?;
    let mut last = None;
    let mut bytes = 0;
    for _ in 0..TRIES {
        let (crc, len) = pass(&mut from, source, None, path, ctx)?;
        if last == Some((crc, len)) {
            to.sync_all().map_err(|e| Error::io(path, "write", e))?;
            return Ok((bytes, true));
        }
        to.set_len(0).and_then(|()| to.seek(SeekFrom::Start(0))).map_err(|e| Error::io(path, "write", e))?;
        let copied = pass(&mut from, source, Some(&mut to), path, ctx)?;
        last = Some(copied);
        bytes = copied.1;
        if copied == (crc, len) {
            to.sync_all().map_err(|e| Error::io(path, "write", e))?;
            return Ok((bytes, true));
        }
    }
    to.sync_all().map_err(|e| Error::io(path, "write", e))?;
    Ok((bytes, false))
}

/// Reads a file through, and writes it to `to`: the CRC-32 and the length of what was read.
fn pass(from: &mut File, source: &Path, mut to: Option<&mut File>, path: &Path, ctx: &Ctx) -> Result<(u32, u64)> {
    from.seek(SeekFrom::Start(0)).map_err(|e| Error::io(source, "read", e))?;
    let mut crc = crc32fast::Hasher::new();
    let mut len = 0_u64;
    let mut block = vec![0_u8; 1 << 20];
    loop {
        ctx.check()?;
        let got = from.read(&mut block).map_err(|e| Error::io(source, "read", e))?;
        if got == 0 {
            return Ok((crc.finalize(), len));
        }
        let part = block.get(..got).unwrap_or_default();
        crc.update(part);
        if let Some(to) = &mut to {
            to.write_all(part).map_err(|e| Error::io(path, "write", e))?;
        }
        len = len.saturating_add(crate::ids::wide(got));
    }
}
