//! `sqlite_schema` of the copy: the rows in their order, their text byte for byte, their roots new.
//!
//! SQLite reads the rows one by one and refuses the whole schema at an index or trigger whose table did not come before it.
//! Damage turns the order round, and a row that comes from elsewhere stands behind those that were there.

use std::collections::BTreeMap;
use std::io::{Seek, Write};

use crate::error::Result;
use crate::format::Value;
use crate::format::record::encode_record;
use crate::ids::{ObjectId, PageNo, RootPage};
use crate::schema::{Catalog, Object};
use crate::survey::Survey;
use crate::write::{DatabaseWriter, TableTree};

use super::{Copied, Disposition};

/// Writes the rows of all objects that stand in the copy.
pub(crate) fn write<W: Write + Seek>(
    survey: &Survey<'_>,
    roots: &BTreeMap<ObjectId, RootPage>,
    copied: &Copied,
    db: &mut DatabaseWriter<W>,
) -> Result<()> {
    let mut tree = TableTree::new(db, RootPage(PageNo::ONE));
    let mut last = 0_i64;
    let mut record = Vec::new();
    for object in in_order(&survey.catalog) {
        let Some(row) = &object.row else { continue };
        let shadow = copied.shadows.iter().find(|s| s.object == Some(object.id) && !s.keeps_text);
        let anew = match (copied.dispositions.get(&object.id), shadow) {
            (Some(Disposition::Kept), None) => None,
            (Some(Disposition::Kept | Disposition::Anew(_)), Some(shadow)) => Some(shadow.sql.as_bytes()),
            (Some(Disposition::Anew(sql)), None) => Some(sql.as_slice()),
            _ => continue,
        };
        let text = |b: &[u8]| survey.encoding.from_utf8(b).into_owned();
        // A table under a new declaration belongs to itself by the name in it.
        let owner = if anew.is_some() { &row.name } else { &row.table };
        let kind = if row.kind.eq_ignore_ascii_case(object.kind.word()) { &row.kind } else { object.kind.word() };
        let (kind, name, table, sql) = (text(kind), text(&row.name), text(owner), anew.or(row.sql.as_deref()).map(text));
        let root = roots.get(&object.id).map_or(0, |r| i64::from(r.0.get()));
        let values = [
            Value::Text(&kind),
            Value::Text(&name),
            Value::Text(&table),
            Value::Int(root),
            sql.as_deref().map_or(Value::Null, Value::Text),
        ];
        record.clear();
        encode_record(&mut record, values.into_iter());
        // Rowids are kept while they ascend; the order of the rows counts, not their numbers.
        last = if row.rowid > last { row.rowid } else { last.saturating_add(1) };
        tree.push(db, last, &[&record])?;
    }
    // Shadow tables that the evidence does not have.
    for shadow in copied.shadows.iter().filter(|s| s.object.is_none()) {
        let text = |b: &str| survey.encoding.from_utf8(b.as_bytes()).into_owned();
        let (kind, name, sql) = (text("table"), text(&shadow.name), text(&shadow.sql));
        let root = i64::from(shadow.root.0.get());
        record.clear();
        let values = [Value::Text(&kind), Value::Text(&name), Value::Text(&name), Value::Int(root), Value::Text(&sql)];
        encode_record(&mut record, values.into_iter());
        last = last.saturating_add(1);
        tree.push(db, last, &[&record])?;
    }
    tree.finish(db)?;
    Ok(())
}

/// The objects in the order of their rows, but what belongs to a table or view that comes later right behind it.
pub(crate) fn in_order(catalog: &Catalog) -> Vec<&Object> {
    let mut waiting: BTreeMap<ObjectId, Vec<&Object>> = BTreeMap::new();
    let mut out: Vec<&Object> = Vec::with_capacity(catalog.objects().len());
    for object in catalog.objects() {
        match object.table.filter(|table| *table > object.id) {
            Some(table) => waiting.entry(table).or_default().push(object),
            None => {
                out.push(object);
                out.extend(waiting.remove(&object.id).unwrap_or_default());
            }
        }
    }
    out
}
