//! The rows of `sqlite_schema`, read from the tree at page 1.

use std::collections::BTreeSet;

use crate::ctx::Ctx;
use crate::error::Result;
use crate::finding::{Code, Defect, Findings, Note, Site};
use crate::format::{Encoding, Fields, Value};
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
