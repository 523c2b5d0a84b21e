//! The objects of a state by their root pages.

use std::collections::BTreeMap;

use crate::ctx::Ctx;
use crate::error::Result;
use crate::finding::Findings;
use crate::format::Encoding;
use crate::ids::PageNo;
use crate::schema::{Catalog, ObjectKind};
use crate::survey::plan::TablePlan;
use crate::survey::schema_rows;
use crate::tree::{Pages, Rulings};

/// An object that has a tree.
#[derive(Debug, Clone)]
pub(super) struct Rooted {
    /// Its kind in words.
    pub(super) kind: &'static str,
    /// Its name.
    pub(super) name: String,
    /// How its rows are read, for tables.
    pub(super) plan: Option<TablePlan>,
    /// The columns of its declared primary key, where that is not the rowid.
    pub(super) key: Vec<usize>,
}

/// The objects of a state.
#[derive(Debug, Clone, Default)]
pub(super) struct Schema {
    /// By root page.
    pub(super) rooted: BTreeMap<u32, Rooted>,
    /// Kind and name of every object, with its text.
    pub(super) objects: BTreeMap<(String, String), Vec<u8>>,
}

impl Schema {
    /// Reads the schema of a state.
    ///
    /// # Errors
    /// Cancellation.
    pub(super) fn read(pages: &Pages<'_>, encoding: Encoding, ctx: &Ctx) -> Result<Schema> {
        let mut quiet = Findings::new(0);
        let rows = schema_rows::read(pages, encoding, &Rulings::new(), &mut quiet, ctx)?;
        let catalog = Catalog::from_rows(rows, &mut quiet);
        let mut out = Schema::default();
        for object in catalog.objects() {
            let name = object.name.text();
            if object.id != crate::ids::ObjectId::SCHEMA {
                out.objects.insert((object.kind.label().to_owned(), name.clone()), object.sql().unwrap_or_default().to_vec());
            }
            let Some(root) = object.root.map(|r| r.0.get()) else { continue };
            let plan = if object.kind == ObjectKind::Table { TablePlan::compile(&catalog, object, encoding) } else { None };
            let key = match (&plan, object.table_def()) {
                (Some(plan), Some(_)) => primary_key(&catalog, object.id, plan),
                _ => Vec::new(),
            };
            out.rooted.insert(root, Rooted { kind: object.kind.label(), name, plan, key });
        }
        out.rooted.entry(PageNo::ONE.get()).or_insert_with(|| Rooted {
            kind: "table",
            name: "sqlite_schema".to_owned(),
            plan: None,
            key: Vec::new(),
        });
        Ok(out)
    }
}

/// The columns of the primary key: of the tree of a WITHOUT ROWID table, else of the unique index that the key makes.
fn primary_key(catalog: &Catalog, table: crate::ids::ObjectId, plan: &TablePlan) -> Vec<usize> {
    let columns = |parts: &[crate::schema::IndexPart], most: usize| -> Vec<usize> {
        parts
            .iter()
            .take(most)
            .filter_map(|p| match p.source {
                crate::schema::IndexSource::Column(i) => Some(i),
                _ => None,
            })
            .collect()
    };
    if let Some(key) = &plan.key {
        return columns(&key.columns, key.unique.max(1));
    }
    if plan.alias.is_some() {
        return Vec::new();
    }
    let automatic = catalog.indexes_of(table).find(|o| o.name.text().starts_with("sqlite_autoindex_"));
    let index = automatic.and_then(|o| plan.indexes.iter().find(|i| i.object == o.id));
    index.map(|i| columns(&i.columns, i.unique)).unwrap_or_default()
}
