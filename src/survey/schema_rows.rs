//! The rows of `sqlite_schema`, read from the tree at page 1.

use std::collections::BTreeSet;

use crate::ctx::Ctx;
use crate::error::Result;
use crate::finding::{Code, Defect, Findings, Note, Site};
use crate::format::{Cell, Encoding, Fields, PageKind, Value};
use crate::ids::{ObjectId, PageNo};
use crate::schema::SchemaRow;
use crate::tree::cells::visit;
use crate::tree::payload::PayloadReader;
use crate::tree::walk::{TreeKind, Walker};
use crate::tree::{Claims, Owner, Pages};

/// Reads every row that decodes, in rowid order of the tree. Rows that lack a column are a finding and are left.
///
/// # Errors
/// Cancellation only.
pub fn read(pages: &Pages<'_>, encoding: Encoding, log: &mut Findings, ctx: &Ctx) -> Result<Vec<SchemaRow>> {
    if pages.count() == 0 {
        return Ok(Vec::new());
    }
    // Claims of its own: the walk of all trees comes later and claims these pages again.
    let claims = Claims::new(pages.count());
    let denied = BTreeSet::new();
    let site = Site::object(ObjectId::SCHEMA);
    let tree = Walker::new(pages, &claims, log, &denied, ctx).walk(PageNo::ONE, TreeKind::Table, Owner(0), site, ctx)?;
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

/// Rows of `sqlite_schema` on table leaves that the tree at page 1 does not reach: what is left of a schema whose first page
/// or interior page is gone. Only rows that cannot be anything else are taken.
///
/// # Errors
/// Cancellation only.
pub fn scattered(pages: &Pages<'_>, encoding: Encoding, ctx: &Ctx) -> Result<Vec<SchemaRow>> {
    let mut rows: Vec<SchemaRow> = Vec::new();
    let mut reader = PayloadReader::new();
    let mut fields = Fields::new();
    let mut at = Some(PageNo::ONE);
    while let Some(no) = at.filter(|no| no.get() <= pages.count()) {
        ctx.check()?;
        at = no.next();
        let Ok(page) = pages.leaf(no) else { continue };
        if page.kind != PageKind::TableLeaf {
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
    rows.extend(carved(pages, encoding, ctx)?);
    let mut seen: BTreeSet<(Vec<u8>, Vec<u8>)> = BTreeSet::new();
    rows.retain(|r| seen.insert((r.kind.clone(), r.name.to_ascii_lowercase())));
    // Rows that belong together keep the order in which they were made.
    rows.sort_by_key(|r| r.rowid);
    Ok(rows)
}

/// *Resync*: rows of `sqlite_schema` on page 1 by their bytes alone, for a page whose header or pointers are gone. A cell is
/// taken when its declared sizes add up exactly and it says what only a row of `sqlite_schema` says. Where two have one
/// name the lower on the page stays: cells are written downwards, so it is the newer one.
///
/// # Errors
/// Cancellation only.
pub fn carved(pages: &Pages<'_>, encoding: Encoding, ctx: &Ctx) -> Result<Vec<SchemaRow>> {
    let bytes = pages.usable_bytes(PageNo::ONE);
    let site = pages.site(Site::object(ObjectId::SCHEMA), PageNo::ONE);
    let mut rows: Vec<SchemaRow> = Vec::new();
    let mut reader = PayloadReader::new();
    let mut fields = Fields::new();
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
                rows.push(row);
                at = at.saturating_add(crate::ids::idx(len).max(1));
            }
            None => at = at.saturating_add(1),
        }
    }
    Ok(rows)
}

/// Whether a row says what only a row of `sqlite_schema` says.
fn is_schema_row(row: &SchemaRow) -> bool {
    let kind: &[u8] = &row.kind;
    let kinds: [&[u8]; 4] = [b"table", b"index", b"view", b"trigger"];
    kinds.contains(&kind) && row.sql.as_ref().is_none_or(|s| s.get(..6).is_some_and(|verb| verb.eq_ignore_ascii_case(b"CREATE")))
}

/// A record as a row of `sqlite_schema`; `None` when its first three columns are not text.
#[must_use]
pub fn schema_row(fields: &Fields, payload: &[u8], rowid: i64, encoding: Encoding, site: Site) -> Option<SchemaRow> {
    let text = |i: usize| match fields.value(payload, i) {
        Some(Value::Text(t)) => Some(encoding.to_utf8(t).into_owned()),
        _ => None,
    };
    Some(SchemaRow {
        rowid,
        kind: text(0)?,
        name: text(1)?,
        table: text(2)?,
        root: fields.value(payload, 3).and_then(Value::as_int),
        sql: text(4),
        site,
    })
}
