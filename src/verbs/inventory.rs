//! What rows a source holds, as hashes: to compare many sources without keeping their rows.

use crate::ctx::Ctx;
use crate::error::Result;
use crate::format::{Encoding, Fields, Value};
use crate::ids::{ObjectId, wide};
use crate::recover::Selection;
use crate::recover::live::rows;
use crate::schema::{Family, ObjectKind};
use crate::survey::Content;
use crate::survey::entry::EntryHash;
use crate::survey::plan::Row;
use crate::verbs::evidence::{self, Viewed};
use crate::verbs::rows::values;
use crate::verbs::{Inputs, Options};

/// A row of an ordinary table.
#[derive(Debug, Clone, Copy)]
pub struct Held<'r> {
    /// The table.
    pub table: &'r str,
    /// The hash of its declared primary key, else of its rowid.
    pub key: u64,
    /// The hash of all its values.
    pub value: u64,
    /// Its rowid; `None` in a WITHOUT ROWID table.
    pub rowid: Option<i64>,
    /// The values of that key.
    names: &'r [Value<'r>],
    encoding: Encoding,
}

impl Held<'_> {
    /// The key in words, cut where it is long.
    #[must_use]
    pub fn words(&self) -> String {
        let mut out = String::new();
        for value in self.names {
            if !out.is_empty() {
                out.push_str(", ");
            }
            match value {
                Value::Text(t) => {
                    let text = self.encoding.to_utf8(t);
                    out.push_str(&crate::report::human::clip(&String::from_utf8_lossy(&text), 60));
                }
                Value::Blob(b) => out.push_str(&format!("a BLOB of {} bytes", b.len())),
                Value::Null => out.push_str("NULL"),
                Value::Int(n) => out.push_str(&n.to_string()),
                Value::Real(r) => out.push_str(&r.to_string()),
            }
        }
        out
    }
}

/// Hands every row of every ordinary table to `f`, in the order of the schema and the trees. Shadow tables of search and
/// spatial indexes and SQLite's own tables are left out.
///
/// # Errors
/// What the tool cannot do, and what `f` returns.
pub fn inventory(inputs: &Inputs, options: &Options, ctx: &Ctx, mut f: impl FnMut(Held<'_>) -> Result<()>) -> Result<()> {
    let evidence = evidence::open(inputs, options, None, ctx)?;
    let viewed = Viewed::new(&evidence, &inputs.db, ctx)?;
    let survey = viewed.survey(inputs, ctx)?;
    for object in survey.catalog.objects() {
        if object.kind != ObjectKind::Table || object.id == ObjectId::SCHEMA || object.family != Family::Table {
            continue;
        }
        let Some(Content::Table { plan, scan }) = survey.tree_of(object.id).and_then(|t| t.content.as_ref()) else { continue };
        let Some(tree) = survey.tree_of(object.id) else { continue };
        let table = object.name.text();
        let declared: Vec<usize> = match object.table_def().and_then(|t| t.primary_key.as_ref()) {
            Some(key) => key.columns.iter().map(|c| c.column).collect(),
            None => Vec::new(),
        };
        let selection = Selection::of(scan, true);
        let (mut fields, mut computed) = (Fields::new(), Vec::new());
        rows(&survey.pages, &tree.tree.slots, plan, &selection, ctx, |row| {
            if fields.read(row.record, wide(row.record.len())).is_err() {
                return Ok(());
            }
            let seen = Row { rowid: row.rowid, payload: row.record, fields: &fields };
            let all = values(plan, &seen, &mut computed);
            let mut names: Vec<Value<'_>> = declared.iter().map(|c| all.get(*c).copied().unwrap_or(Value::Null)).collect();
            if names.is_empty() {
                names.push(row.rowid.map_or(Value::Null, Value::Int));
            }
            let hash = |of: &[Value<'_>]| of.iter().fold(EntryHash::default(), |h, v| h.add(*v)).get();
            f(Held { table: &table, key: hash(&names), value: hash(&all), rowid: row.rowid, names: &names, encoding: survey.encoding })
        })?;
    }
    Ok(())
}
