//! Rows of `sqlite_schema` that the tree at page 1 does not lead to.
//!
//! Tests:    table leaves that nothing but schema rows stand on, the bytes of page 1, the bytes of every file.
//! Collects: rows that cannot be anything else.
//! Leaves:   the choice between rows of one name, and whether a tree of the file belongs to a row.

use std::collections::BTreeSet;

use memchr::memmem;

use super::row::{is_schema_row, schema_row};
use crate::bytes::slice;
use crate::ctx::Ctx;
use crate::error::Result;
use crate::finding::{Findings, Site};
use crate::format::cell::Split;
use crate::format::{Cell, Encoding, Fields, PageKind, Value};
use crate::ids::{ObjectId, PageNo, idx};
use crate::schema::{Name, SchemaRow, ddl};
use crate::survey::freelist;
use crate::tree::payload::PayloadReader;
use crate::tree::{Claims, Owner, Pages};

/// Bytes before a CREATE text in which its cell begins: the sizes, the type, and two names of a length that is seen.
const HEAD: usize = 600;

/// Places with the word CREATE that are tried in one file: a schema has some hundreds.
const PLACES: usize = 100_000;

/// Rows on table leaves that hold nothing else: a schema whose first page or interior page is gone. Free pages are passed
/// over, what stands on them was dropped.
///
/// # Errors
/// Cancellation only.
pub(super) fn on_leaves(pages: &Pages<'_>, encoding: Encoding, first_trunk: u32, ctx: &Ctx) -> Result<Vec<SchemaRow>> {
    let free = Claims::new(pages.count());
    freelist::walk(pages, first_trunk, 0, &free, &mut Findings::new(0), ctx)?;
    let mut rows: Vec<SchemaRow> = Vec::new();
    let mut reader = PayloadReader::new();
    let mut fields = Fields::new();
    let mut at = Some(PageNo::ONE);
    while let Some(no) = at.filter(|no| no.get() <= pages.count()) {
        ctx.check()?;
        at = no.next();
        let Ok(page) = pages.leaf(no) else { continue };
        if page.kind != PageKind::TableLeaf || free.owner(no) == Some(Owner::FREELIST) {
            continue;
        }
        let site = pages.site(Site::object(ObjectId::SCHEMA), no);
        let mut found = Vec::new();
        let mut all = true;
        for (i, cell) in page.cells(pages.split) {
            let Ok(cell) = cell else { continue };
            let row = reader.read(pages, &cell).ok().and_then(|payload| {
                fields.read(payload, cell.payload_len).ok()?;
                let row = schema_row(&fields, payload, cell.rowid.unwrap_or(0), encoding, site.cell(i))?;
                (fields.len() == 5 && is_schema_row(&row)).then_some(row)
            });
            match row {
                Some(row) => found.push(row),
                None => {
                    all = false;
                    break;
                }
            }
        }
        if all {
            rows.extend(found);
        }
    }
    let mut seen: BTreeSet<(Vec<u8>, Vec<u8>)> = BTreeSet::new();
    rows.retain(|r| seen.insert((r.kind.clone(), r.name.to_ascii_lowercase())));
    Ok(rows)
}

/// *Resync*: rows of `sqlite_schema` on page 1 by their bytes alone, for a page whose header or pointers are gone. A cell is
/// taken when its declared sizes add up exactly and it says what only a row of `sqlite_schema` says. Where two have one
/// name the lower on the page stays: cells are written downwards, so it is the newer one.
///
/// # Errors
/// Cancellation only.
pub(super) fn on_page_one(pages: &Pages<'_>, encoding: Encoding, ctx: &Ctx) -> Result<Vec<SchemaRow>> {
    let bytes = pages.usable_bytes(PageNo::ONE);
    let site = pages.site(Site::object(ObjectId::SCHEMA), PageNo::ONE);
    let mut rows: Vec<SchemaRow> = Vec::new();
    let mut reader = PayloadReader::new();
    let mut fields = Fields::new();
    let mut first_cell = bytes.len();
    let mut at = 0_usize;
    while at < bytes.len() {
        ctx.check()?;
        let row = Cell::read(bytes, at, PageKind::TableLeaf, &pages.split).ok().and_then(|cell| {
            let payload = reader.read(pages, &cell).ok()?;
            fields.read(payload, cell.payload_len).ok()?;
            if fields.len() != 5 || u64::from(fields.body_end()) != cell.payload_len {
                return None;
            }
            let row = schema_row(&fields, payload, cell.rowid?, encoding, site)?;
            is_schema_row(&row).then_some((row, cell.len))
        });
        match row {
            Some((row, len)) => {
                first_cell = first_cell.min(at);
                rows.push(row);
                at = at.saturating_add(idx(len).max(1));
            }
            None => at = at.saturating_add(1),
        }
    }
    if encoding == Encoding::Utf8 {
        rows.extend(cut_table(bytes.get(..first_cell).unwrap_or_default(), &rows, site));
    }
    Ok(rows)
}

/// A table whose schema row lost its beginning to what wiped the front of page 1: the end of its CREATE text, from within the
/// name on, stands right before the first whole cell, and a row of one of its indexes says the name.
fn cut_table(front: &[u8], rows: &[SchemaRow], site: Site) -> Option<SchemaRow> {
    let open =
        front.iter().rposition(|b| !(b.is_ascii_graphic() || b.is_ascii_whitespace() || *b >= 0x80)).map_or(0, |i| i.saturating_add(1));
    let text = front.get(open..)?;
    let list = text.iter().position(|b| *b == b'(')?;
    let before = text.get(..list)?.trim_ascii_end();
    let orphans =
        rows.iter().filter(|r| r.kind == b"index" && !rows.iter().any(|t| t.kind == b"table" && t.name.eq_ignore_ascii_case(&r.table)));
    orphans.filter(|_| !before.is_empty()).find_map(|index| {
        let name = Name::new(&index.table);
        let heads = [[b"CREATE TABLE ", index.table.as_slice()].concat(), [b"CREATE TABLE ", name.quoted().as_slice()].concat()];
        let head = heads.iter().find(|h| h.ends_with(before))?;
        let sql = [head.as_slice(), text.get(list..)?].concat();
        ddl::parse(&sql).problem.is_none().then(|| SchemaRow {
            rowid: index.rowid.saturating_sub(1),
            kind: b"table".to_vec(),
            name: index.table.clone(),
            table: index.table.clone(),
            sql: Some(sql),
            site,
            ..SchemaRow::default()
        })
    })
}

/// Rows whose CREATE text stands anywhere in the files of the evidence: on old pages, in free space, in frames of a log. Text
/// that runs into an overflow chain is left. Where a file has several rows of a name, the one with the highest rowid and
/// then the last is taken: a name that is made anew gets a new row.
///
/// # Errors
/// Cancellation only.
pub(super) fn in_bytes(files: &[&[u8]], split: &Split, encoding: Encoding, ctx: &Ctx) -> Result<Vec<SchemaRow>> {
    let needle = encoding.from_utf8(b"CREATE ").into_owned();
    let finder = memmem::Finder::new(&needle);
    let mut rows: Vec<SchemaRow> = Vec::new();
    let mut fields = Fields::new();
    for file in files {
        for text_at in finder.find_iter(file).take(PLACES) {
            ctx.check()?;
            let first = text_at.saturating_sub(HEAD);
            let row = (first..text_at).rev().find_map(|at| row_before(file, at, text_at, split, encoding, &mut fields));
            let Some(row) = row else { continue };
            match rows.iter_mut().find(|r| r.kind == row.kind && r.name.eq_ignore_ascii_case(&row.name)) {
                Some(known) if known.rowid <= row.rowid => *known = row,
                Some(_) => {}
                None => rows.push(row),
            }
        }
    }
    Ok(rows)
}

/// The row whose cell begins at `at` and whose text begins at `text_at`, both in bytes of the file.
fn row_before(file: &[u8], at: usize, text_at: usize, split: &Split, encoding: Encoding, fields: &mut Fields) -> Option<SchemaRow> {
    let window = file.get(at..file.len().min(at.saturating_add(idx(split.usable()))))?;
    let cell = Cell::read(window, 0, PageKind::TableLeaf, split).ok().filter(|c| c.overflow.is_none())?;
    fields.read(cell.local, cell.payload_len).ok()?;
    if fields.len() != 5 || u64::from(fields.body_end()) != cell.payload_len {
        return None;
    }
    let text = *fields.as_slice().get(4)?;
    let payload_at = idx(cell.len).checked_sub(cell.local.len())?;
    let begins = at.saturating_add(payload_at).saturating_add(idx(text.start)) == text_at;
    let whole = slice(cell.local, idx(text.start), idx(text.len)).is_some() && matches!(fields.value(cell.local, 4), Some(Value::Text(_)));
    let row = schema_row(fields, cell.local, cell.rowid?, encoding, Site::object(ObjectId::SCHEMA)).filter(|_| begins && whole)?;
    is_schema_row(&row).then_some(row)
}
