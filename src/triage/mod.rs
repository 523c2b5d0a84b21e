//! `triage`: what an incident bundle holds, and which of its files is the best source.
//!
//! Passes: the files, unpacked with bounds ([`bundle`]); what each is, by its bytes (`kind`); which log, journal and
//! shared memory fits which database, and what each pair holds (`sources`); which is the best and what the others add
//! (`choice`). The evidence is only read; archives are unpacked into a private temporary folder.

pub mod bundle;
mod choice;
mod html;
mod kind;
mod member;
pub mod model;
mod rowset;
mod sources;
mod text;
mod unpack;
mod wanted;

use std::path::Path;

pub use model::Triage;
pub use wanted::Wanted;

use crate::ctx::Ctx;
use crate::error::Result;
use crate::verbs::Options;

use bundle::Bundle;

/// Looks at a folder or archive.
///
/// # Errors
/// What the tool cannot do; `Usage` when the path is neither. What a hostile archive does is a line of the result.
pub fn examine(path: &Path, wanted: &Wanted, options: &Options, ctx: &Ctx) -> Result<Triage> {
    let bundle = Bundle::open(path, wanted, ctx)?;
    let mut triage = Triage::new(path, &bundle);
    let seen = kind::recognise(&bundle, &mut triage, ctx)?;
    let found = sources::find(&bundle, &seen, options, ctx)?;
    choice::settle(&bundle, &seen, found, path, wanted, options, &mut triage, ctx)?;
    if options.redact {
        triage.redact();
    }
    Ok(triage)
}
