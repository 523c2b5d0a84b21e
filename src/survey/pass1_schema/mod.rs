//! Pass 1: the rows of `sqlite_schema`, from the tree at page 1, and where that is damaged from wherever else they stand.
//!
//! One place decides which row of a name is taken: the tree, then leaves that the tree lost, then the bytes of page 1, then
//! bytes anywhere in the evidence, then the file that the caller gives. Every row says where it is from.
//!
//! Tests:    the tree at page 1; lost leaves, page 1 and all bytes for rows of a schema, where that tree is damaged.
//! Collects: one row for each name.
//! Leaves:   what the texts mean, and whether the roots are right.

mod elsewhere;
mod row;

pub use row::schema_row;

use std::collections::BTreeSet;

use crate::ctx::Ctx;
use crate::error::Result;
use crate::finding::{Code, Defect, Effect, Findings, Note, Site};
use crate::format::{Encoding, Fields};
use crate::ids::{ObjectId, PageNo};
use crate::schema::ddl::parse;
use crate::schema::{RowSource, SchemaRow};
use crate::tree::cells::visit;
use crate::tree::payload::PayloadReader;
use crate::tree::walk::{Denied, TreeKind, Walker, give};
use crate::tree::{Claims, Owner, Pages, Rulings};

/// What may stand in for a damaged schema.
#[derive(Debug, Clone, Default)]
pub struct Hints<'h> {
    /// The files of the evidence, whole: main file, logs, journal.
    pub bytes: Vec<&'h [u8]>,
    /// Rows of a healthy database or of SQL text that the caller gives.
    pub given: Vec<SchemaRow>,
    /// What somebody who knows better says of pages.
    pub rulings: Rulings,
}

/// The rows of the schema. What is not from the tree at page 1 is taken only where that tree is damaged, and only for names
/// that it does not have.
///
/// # Errors
/// Cancellation only.
pub fn collect(
    pages: &Pages<'_>,
    encoding: Encoding,
    first_trunk: u32,
    hints: &Hints<'_>,
    log: &mut Findings,
    ctx: &Ctx,
) -> Result<Vec<SchemaRow>> {
    let mut seen = Findings::new(log.cap());
    let mut rows = read(pages, encoding, &hints.rulings, &mut seen, ctx)?;
    // The scan of the schema tree notes its pages and cells; only what a row does not say is new.
    for f in seen.kept().iter().filter(|f| f.defect.code == Code::SchemaRowBad) {
        log.add(f.defect, f.site);
    }
    // A sound page 1 without cells is an empty schema: what stale bytes say was dropped.
    let sound_and_empty = pages.page(PageNo::ONE).is_ok_and(|p| !p.kind.is_interior() && p.cell_count == 0);
    let broken = seen.counts().keys().any(|(code, _)| code.problem().effect != Effect::Note);
    let lost = rows.is_empty() && !sound_and_empty;
    // A text that is no SQL is looked for elsewhere, too.
    let doubtful: BTreeSet<Vec<u8>> = rows.iter().filter(|r| is_damaged_table(r)).map(|r| r.name.to_ascii_lowercase()).collect();
    if pages.count() == 0 || (!lost && !broken && doubtful.is_empty()) {
        return Ok(rows);
    }
    if lost {
        log.add(Defect::new(Code::SchemaTreeLost, 0, 0, 0), pages.site(Site::object(ObjectId::SCHEMA), PageNo::ONE));
    }
    let mut names: BTreeSet<Vec<u8>> = rows.iter().map(|r| r.name.to_ascii_lowercase()).collect();
    let mut add = |found: Vec<SchemaRow>, source: RowSource| {
        for mut row in found {
            let name = row.name.to_ascii_lowercase();
            if names.contains(&name) {
                if doubtful.contains(&name)
                    && let Some(known) = rows.iter_mut().find(|r| r.kind == b"table" && r.name.eq_ignore_ascii_case(&name))
                {
                    known.layouts.extend(row.sql.into_iter().chain(row.layouts));
                }
                continue;
            }
            if !lost && !broken {
                continue;
            }
            names.insert(name);
            row.source = source;
            // Beside a tree that still has rows, free space of page 1 holds what was dropped.
            let doubtful = source == RowSource::Bytes || (source != RowSource::Leaf && !lost);
            let taken = row.root.is_some_and(|root| rows.iter().any(|r| r.root == Some(root)));
            if doubtful || source == RowSource::Given || (taken && row.root != Some(0)) {
                row.hint = row.root.take().and_then(|r| u32::try_from(r).ok()).and_then(PageNo::new);
            }
            row.needs_tree = doubtful;
            rows.push(row);
        }
    };
    add(elsewhere::on_leaves(pages, encoding, first_trunk, ctx)?, RowSource::Leaf);
    add(elsewhere::on_page_one(pages, encoding, ctx)?, RowSource::PageOne);
    add(elsewhere::in_bytes(&hints.bytes, &pages.split, encoding, ctx)?, RowSource::Bytes);
    add(hints.given.clone(), RowSource::Given);
    // Rows that belong together keep the order in which they were made; what the caller gives comes last.
    rows.sort_by_key(|r| (r.source == RowSource::Given, r.rowid));
    Ok(rows)
}

/// Reads every row that decodes, in rowid order of the tree. Rows that lack a column are a finding and are left.
///
/// # Errors
/// Cancellation only.
pub fn read(pages: &Pages<'_>, encoding: Encoding, rulings: &Rulings, log: &mut Findings, ctx: &Ctx) -> Result<Vec<SchemaRow>> {
    if pages.count() == 0 {
        return Ok(Vec::new());
    }
    // Claims of its own: the walk of all trees comes later and claims these pages again.
    let claims = Claims::with_rulings(pages.count(), rulings.clone());
    let denied = Denied::new();
    let site = Site::object(ObjectId::SCHEMA);
    let mut walker = Walker::new(pages, &claims, log, &denied, ctx).retyping();
    let mut tree = walker.walk(PageNo::ONE, TreeKind::Table, Owner(0), site, ctx)?;
    give(&mut walker, &mut tree, site, ctx)?;
    let mut pages = pages.clone();
    pages.retype(walker.retyped.take().unwrap_or_default());
    let pages = &pages;
    let mut rows = Vec::new();
    let mut reader = PayloadReader::new();
    let mut fields = Fields::new();
    visit(pages, &tree.slots, site, false, log, ctx, |log, at| {
        let here = pages.site(site, at.page).cell(at.no);
        let Some(payload) = reader.read(pages, &at.cell).note(log, here) else { return Ok(()) };
        if fields.read(payload, at.cell.payload_len).note(log, here).is_none() {
            return Ok(());
        }
        match schema_row(&fields, payload, at.cell.rowid.unwrap_or(0), encoding, here) {
            Some(row) => rows.push(row),
            None => log.add(Defect::new(Code::SchemaRowBad, 0, crate::ids::wide(fields.len()), 5), here),
        }
        Ok(())
    })?;
    Ok(rows)
}

/// Whether a row is a table whose text is no SQL.
fn is_damaged_table(row: &SchemaRow) -> bool {
    row.kind == b"table" && row.sql.as_ref().is_some_and(|sql| parse(sql).problem.is_some())
}
