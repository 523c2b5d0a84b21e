//! `scan`: databases, logs and journals inside a disk image, each with a verdict, and as files of their own.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

use serde::Serialize;

use crate::ctx::{Ctx, Silent};
use crate::error::{Error, Result};
use crate::ids::{narrow, wide};
use crate::scan::{self, Find, Image, Kind};
use crate::verbs::{Inputs, Options};

/// Bytes that are copied at once.
const CHUNK: u64 = 4 << 20;

/// A find with its verdict.
#[derive(Debug, Clone, Serialize)]
pub struct Scanned {
    /// "database", "log", "journal" or "loose pages".
    pub kind: String,
    /// Its first byte in the image.
    pub offset: u64,
    /// Bytes that lie there in one piece.
    pub bytes: u64,
    /// Bytes that its header asks for.
    pub declared: u64,
    /// Page size.
    pub page_size: u32,
    /// Whether all of it lies there in one piece.
    pub whole: bool,
    /// One line about it.
    pub verdict: String,
    /// The file that it was copied to.
    pub file: Option<String>,
}

/// Scans an image. With `extract`, each find becomes a file in that folder, which must not exist or be empty.
///
/// # Errors
/// I/O, a folder that is not empty, cancellation.
pub fn scan(path: &Path, extract: Option<&Path>, options: &Options, ctx: &Ctx) -> Result<Vec<Scanned>> {
    let mut image = Image::open(path)?;
    if let Some(dir) = extract {
        prepare(dir)?;
    }
    let finds = scan::find(&mut image, ctx)?;
    let temp = tempfile::tempdir().map_err(|e| Error::io(&std::env::temp_dir(), "write", e))?;
    let dir = extract.unwrap_or(temp.path());
    ctx.progress.phase("checking what was found", wide(finds.len()));
    let mut out = Vec::with_capacity(finds.len());
    for (i, found) in finds.iter().enumerate() {
        ctx.check()?;
        out.push(one(&mut image, found, i, dir, extract.is_some(), options, ctx)?);
        ctx.progress.advance(1);
    }
    ctx.progress.finish();
    Ok(out)
}

fn prepare(dir: &Path) -> Result<()> {
    match fs::read_dir(dir) {
        Ok(mut entries) => match entries.next() {
            Some(_) => Err(Error::Usage { what: format!("{}: not empty; give a new folder", dir.display()) }),
            None => Ok(()),
        },
        Err(_) => fs::create_dir_all(dir).map_err(|e| Error::io(dir, "write", e)),
    }
}

fn one(image: &mut Image, found: &Find, no: usize, dir: &Path, keep: bool, options: &Options, ctx: &Ctx) -> Result<Scanned> {
    let name = format!("{:05}-{:012x}.{}", no.saturating_add(1), found.offset, found.kind.ending());
    let file = dir.join(name);
    if keep || found.kind == Kind::Database {
        copy(image, found, &file, ctx)?;
    }
    let mut verdict = found.words.clone();
    let mut whole = found.is_whole();
    if found.kind == Kind::Database {
        let (words, damaged) = judge(&file, options, ctx)?;
        whole &= !damaged;
        verdict = format!("{verdict}; {words}");
    }
    if found.bytes < found.declared {
        verdict = format!("{verdict}; {} of {} bytes are here", found.bytes, found.declared);
    }
    if !keep && found.kind == Kind::Database {
        fs::remove_file(&file).map_err(|e| Error::io(&file, "write", e))?;
    }
    Ok(Scanned {
        kind: found.kind.word().to_owned(),
        offset: found.offset,
        bytes: found.bytes,
        declared: found.declared,
        page_size: found.page_size,
        whole,
        verdict,
        file: keep.then(|| file.display().to_string()),
    })
}

/// What `check` says of a copy, and whether its data are damaged.
fn judge(file: &Path, options: &Options, ctx: &Ctx) -> Result<(String, bool)> {
    let mut options = options.clone();
    // The copy is our own: nobody changes it under us.
    options.no_hash = true;
    let quiet = Ctx::new(ctx.limits, std::sync::Arc::new(Silent));
    match super::check(&Inputs::at_path(file), &options, &quiet) {
        Ok(report) => Ok((report.verdict.sentence.clone(), report.exit_code >= 2)),
        Err(Error::Cancelled) => Err(Error::Cancelled),
        Err(error @ Error::Io { .. }) => Err(error),
        Err(error) => Ok((error.to_string(), true)),
    }
}

fn copy(image: &mut Image, found: &Find, to: &Path, ctx: &Ctx) -> Result<()> {
    let mut out = File::create_new(to).map_err(|e| Error::io(to, "write", e))?;
    let mut buffer = Vec::new();
    let mut done = 0_u64;
    while done < found.bytes {
        ctx.check()?;
        let want = CHUNK.min(found.bytes.saturating_sub(done));
        image.read(found.offset.saturating_add(done), narrow(want), &mut buffer)?;
        if buffer.is_empty() {
            break;
        }
        out.write_all(&buffer).map_err(|e| Error::io(to, "write", e))?;
        done = done.saturating_add(wide(buffer.len()));
    }
    Ok(())
}
