//! `--schema FILE`: a healthy database or SQL text of the application, for evidence that has no schema left.

use std::path::Path;

use crate::ctx::Ctx;
use crate::error::{Error, Result};
use crate::evidence::{Evidence, OpenOptions, Sources};
use crate::finding::Findings;
use crate::format::header::MAGIC;
use crate::schema::{SchemaRow, script};
use crate::survey::schema_rows;
use crate::tree::{Pages, Rulings};
use crate::verbs::evidence::Viewed;

/// The rows of the schema that a file gives, without root pages.
///
/// # Errors
/// I/O; `Usage` when the file gives no table.
pub(crate) fn read(path: &Path, ctx: &Ctx) -> Result<Vec<SchemaRow>> {
    let sources = Sources { db: path.to_path_buf(), ..Sources::default() };
    let evidence = Evidence::open(&sources, ctx, &OpenOptions::new())?;
    let mut rows = if evidence.main_bytes().starts_with(MAGIC) {
        let viewed = Viewed::new(&evidence, path, ctx)?;
        let pages = Pages::new(&viewed.view.snapshot, viewed.view.geometry.reserved);
        schema_rows::read(&pages, viewed.view.geometry.encoding, &Rulings::new(), &mut Findings::new(0), ctx)?
    } else {
        script::rows(evidence.main_bytes())
    };
    for row in &mut rows {
        row.root = None;
    }
    if !rows.iter().any(|r| r.kind == b"table") {
        return Err(Error::Usage { what: format!("{}: gives no CREATE TABLE; name a database or SQL text", path.display()) });
    }
    Ok(rows)
}
