//! The profile of Hermes Agent: what a support engineer does with a `state.db`. Nothing below knows that it is there.
//!
//! | file | owns |
//! |---|---|
//! | `homes` | which stores a person means |
//! | `store` | how the library looks at evidence: the only file that knows it |
//! | `cells` `content` | what single cells mean |
//! | `facts` | versions, rebuild markers, the generation stamp |
//! | `transcript` | sessions with their messages, in bounded memory |
//! | `check` `list` `export` | the verbs that read |
//! | `layout` | columns of a store that has no readable schema |
//! | `recover` `amend` `fallback` | the copy, made so that the application can open it |

mod amend;
mod cells;
mod check;
mod content;
mod export;
mod facts;
mod fallback;
mod homes;
mod layout;
mod list;
mod recover;
mod store;
mod transcript;

use std::io::Write;
use std::path::Path;

pub use check::{DamagedObject, StoreReport};
pub use export::{ExportFormat, ExportOptions, Exported};
pub use facts::{FORMAT, Facts};
pub use homes::{StorePath, stores};
pub use list::SessionLine;
pub use recover::{Recovered, Repair};

use crate::ctx::Ctx;
use crate::error::{Error, Result};
use crate::verbs::{Inputs, Options};
use crate::write::file::OutputFile;
use store::Store;

/// Opens a store and hands it to `f`.
fn with_store<T>(inputs: &Inputs, options: &Options, ctx: &Ctx, f: impl FnOnce(&Store<'_>) -> Result<T>) -> Result<T> {
    let work = tempfile::Builder::new()
        .prefix("rootpage-hermes-")
        .tempdir()
        .map_err(|e| Error::io(&std::env::temp_dir(), "create a folder in", e))?;
    let mut f = Some(f);
    // A store that shows its transcript is examined once; one that does not, again under the schema that its rows tell.
    let first = store::open(inputs, options, work.path(), ctx, |store| {
        let inferred = if inputs.schema.is_none() { layout::infer(store)? } else { None };
        Ok(match (inferred, f.take()) {
            (Some(found), f) => Err((found, f)),
            (None, Some(f)) => Ok(f(store)?),
            (None, None) => return Err(Error::inconsistent("a store is examined once")),
        })
    })?;
    match first {
        Ok(done) => Ok(done),
        Err((found, Some(f))) => {
            let path = work.path().join("schema.sql");
            std::fs::write(&path, &found.sql).map_err(|e| Error::io(&path, "write", e))?;
            let inputs = Inputs { schema: Some(path), ..inputs.clone() };
            store::open(&inputs, options, work.path(), ctx, f)
        }
        Err((_, None)) => Err(Error::inconsistent("a store is examined once")),
    }
}

/// What the state of a store means for the person whose sessions are in it.
///
/// # Errors
/// What the tool cannot do.
pub fn check(profile: &str, inputs: &Inputs, options: &Options, ctx: &Ctx) -> Result<StoreReport> {
    match with_store(inputs, options, ctx, |store| check::check(store, profile, &inputs.db, options.redact)) {
        Err(Error::NotADatabase { what, .. }) => Ok(StoreReport::unreadable(profile, &inputs.db, &what)),
        other => other,
    }
}

/// The sessions of a store, newest activity first, each handed to `f`. Returns the exit code of `check`.
///
/// # Errors
/// What the tool cannot do, and what `f` returns.
pub fn list(inputs: &Inputs, options: &Options, ctx: &Ctx, mut f: impl FnMut(SessionLine) -> Result<()>) -> Result<u8> {
    with_store(inputs, options, ctx, |store| {
        let mut number = 0_u64;
        list::each(store, |mut line| {
            number = number.saturating_add(1);
            if options.redact {
                line.redact(number);
            }
            f(line)
        })?;
        Ok(store.report.exit_code)
    })
}

/// Writes the transcripts of a store to `out`.
///
/// # Errors
/// What the tool cannot do.
pub fn export(
    profile: &str,
    inputs: &Inputs,
    options: &Options,
    wanted: &ExportOptions,
    out: &mut dyn Write,
    ctx: &Ctx,
) -> Result<Exported> {
    with_store(inputs, options, ctx, |store| export::write(store, profile, wanted, out))
}

/// Writes a copy of a store that the application opens, with its ledger beside it.
///
/// # Errors
/// What the tool cannot do.
pub fn recover(profile: &str, inputs: &Inputs, options: &Options, out: &Path, ctx: &Ctx) -> Result<Recovered> {
    recover::run(profile, inputs, options, out, ctx)
}

/// As `export`, into a new file. A failure leaves nothing behind.
///
/// # Errors
/// What the tool cannot do; `Exists` when the file is there.
pub fn export_to(profile: &str, inputs: &Inputs, options: &Options, wanted: &ExportOptions, path: &Path, ctx: &Ctx) -> Result<Exported> {
    let mut file = OutputFile::create(path, options.force, &[&inputs.db])?;
    file.permissions_of(&inputs.db)?;
    let done = {
        let mut out = std::io::BufWriter::with_capacity(1 << 16, file.file());
        export(profile, inputs, options, wanted, &mut out, ctx)?
    };
    file.commit()?;
    Ok(done)
}

/// A time in UTC: 2026-09-28 14:03:09.
#[must_use]
pub fn utc(seconds: f64) -> String {
    cells::utc(seconds)
}

/// The name of the output of a store in a folder: its profile, made a plain file name.
#[must_use]
pub fn file_name(profile: &str, ending: &str) -> String {
    let plain: String =
        profile.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '_' }).take(100).collect();
    let plain = plain.trim_start_matches('.');
    format!("{}{ending}", if plain.is_empty() { "store" } else { plain })
}

/// Whether a path is a folder that several outputs go to.
#[must_use]
pub fn is_folder(path: &Path) -> bool {
    path.is_dir()
}
