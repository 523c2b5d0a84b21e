//! One record as a row of `sqlite_schema`.

use crate::finding::Site;
use crate::format::{Encoding, Fields, Value};
use crate::schema::SchemaRow;

/// Whether a row says what only a row of `sqlite_schema` says.
pub(super) fn is_schema_row(row: &SchemaRow) -> bool {
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
        ..SchemaRow::default()
    })
}
