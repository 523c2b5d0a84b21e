//! How the records of a table or index are laid out.

use super::ddl::{IndexDef, IndexTerm, TableDef, TableScope, UniqueKey};
use crate::expr::name::Collation;
use crate::expr::name::Name;
use crate::expr::{Expr, Scope as _, Unknown};

/// The records of a table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TableLayout {
    /// What the values of a record are, in record order: positions of columns in the declaration. In a rowid table all
    /// columns but virtual generated ones, the rowid alias among them (its value is NULL, the rowid counts); in a WITHOUT
    /// ROWID table the primary key first, then the rest.
    pub record: Vec<usize>,
    /// For each declared column its position in the record; `None` for virtual generated columns.
    pub position: Vec<Option<usize>>,
    /// WITHOUT ROWID: how the leading values of the record, the primary key, are ordered. Empty in a rowid table.
    pub key: Vec<KeyPart>,
    /// The column that is another name of the rowid.
    pub rowid_alias: Option<usize>,
}

/// How one value of a key is compared.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeyPart {
    /// How text is compared.
    pub collation: Collation,
    /// Whether the order is reversed.
    pub desc: bool,
}

/// The records of an index.
#[derive(Debug, Clone)]
pub struct IndexLayout {
    /// The values of a record in order: the declared terms, then what SQLite appends to make the key unique.
    pub columns: Vec<IndexPart>,
    /// How many of them are declared; the rest is the rowid, or the columns of the primary key that are not yet there.
    pub declared: usize,
    /// Whether two entries may not have the same declared terms, unless one of these is NULL.
    pub unique: bool,
    /// The condition of a partial index. Entries exist for rows for which it is true.
    pub filter: Option<Expr>,
}

/// One value of an index record.
#[derive(Debug, Clone)]
pub struct IndexPart {
    /// Where it comes from.
    pub source: IndexSource,
    /// How it is compared.
    pub collation: Collation,
    /// Whether the order is reversed.
    pub desc: bool,
}

/// Where a value of an index record comes from.
#[derive(Debug, Clone)]
pub enum IndexSource {
    /// A column of the table, by its declared position. A rowid alias gives the rowid.
    Column(usize),
    /// The rowid.
    Rowid,
    /// An expression over the row.
    Expr(Expr),
}

impl TableLayout {
    /// The layout of a table under a schema format: below 4, DESC in a key means nothing.
    #[must_use]
    pub fn new(table: &TableDef, schema_format: u32) -> TableLayout {
        let mut layout =
            TableLayout { position: vec![None; table.columns.len()], rowid_alias: table.rowid_alias, ..TableLayout::default() };
        if table.without_rowid
            && let Some(key) = table.unique.iter().find(|k| k.primary)
        {
            for column in &key.columns {
                layout.push(column.column);
                layout.key.push(KeyPart { collation: column.collation.clone(), desc: column.desc && schema_format >= 4 });
            }
        }
        for (i, column) in table.columns.iter().enumerate() {
            if column.is_stored() && layout.position.get(i) == Some(&None) {
                layout.push(i);
            }
        }
        layout
    }

    fn push(&mut self, column: usize) {
        let at = self.record.len();
        self.record.push(column);
        if let Some(place @ None) = self.position.get_mut(column) {
            *place = Some(at);
        }
    }
}

impl IndexLayout {
    /// The layout of an index that a UNIQUE or PRIMARY KEY constraint made.
    #[must_use]
    pub fn of_key(table: &TableDef, key: &UniqueKey, schema_format: u32) -> IndexLayout {
        let desc = |d: bool| d && schema_format >= 4;
        let columns = key
            .columns
            .iter()
            .map(|c| IndexPart { source: IndexSource::Column(c.column), collation: c.collation.clone(), desc: desc(c.desc) })
            .collect();
        let mut layout = IndexLayout { columns, declared: key.columns.len(), unique: true, filter: None };
        // SQLite appends the primary key to these before it knows its order: always ascending.
        layout.append_row_key(table, |_| false);
        layout
    }

    /// The layout of an index made by CREATE INDEX.
    #[must_use]
    pub fn of_index(table: &TableDef, index: &IndexDef, schema_format: u32) -> IndexLayout {
        let scope = TableScope { table, alias: None, rowid: false };
        let desc = |d: bool| d && schema_format >= 4;
        let mut columns = Vec::with_capacity(index.columns.len());
        for term in &index.columns {
            let source = match &term.what {
                IndexTerm::Column(name, quoted) => match table.column(name.as_bytes()) {
                    Some(i) => IndexSource::Column(i),
                    None if *quoted => IndexSource::Expr(Expr::Text(name.as_bytes().into())),
                    None => IndexSource::Expr(not_a_column(&scope, name)),
                },
                IndexTerm::Expr(expr) => {
                    let mut expr = expr.clone();
                    expr.resolve(&scope);
                    match expr {
                        // A qualified name is still only a column.
                        Expr::Column(c) => IndexSource::Column(c.index),
                        expr => IndexSource::Expr(expr),
                    }
                }
            };
            let declared = match &source {
                IndexSource::Column(i) => table.columns.get(*i).map(|c| c.collation.clone()),
                _ => None,
            };
            let collation = term.collation.clone().or(declared).unwrap_or_default();
            columns.push(IndexPart { source, collation, desc: desc(term.desc) });
        }
        let filter = index.where_clause.clone().map(|mut expr| {
            expr.resolve(&TableScope { rowid: true, ..scope });
            expr
        });
        let mut layout = IndexLayout { declared: columns.len(), columns, unique: index.unique, filter };
        layout.append_row_key(table, desc);
        layout
    }

    fn append_row_key(&mut self, table: &TableDef, desc: impl Fn(bool) -> bool) {
        if !table.without_rowid {
            self.columns.push(IndexPart { source: IndexSource::Rowid, collation: Collation::Binary, desc: false });
            return;
        }
        let declared = self.declared;
        for key in table.unique.iter().filter(|k| k.primary).flat_map(|k| &k.columns) {
            let there = self
                .columns
                .iter()
                .take(declared)
                .any(|part| matches!(part.source, IndexSource::Column(i) if i == key.column) && part.collation.same(&key.collation));
            if !there {
                let source = IndexSource::Column(key.column);
                self.columns.push(IndexPart { source, collation: key.collation.clone(), desc: desc(key.desc) });
            }
        }
    }

    /// How the values of a record are compared, in order.
    #[must_use]
    pub fn key(&self) -> Vec<KeyPart> {
        self.columns.iter().map(|c| KeyPart { collation: c.collation.clone(), desc: c.desc }).collect()
    }

    /// The first thing in its expressions and its condition that cannot be evaluated here.
    #[must_use]
    pub fn unknown_expression(&self) -> Option<Unknown> {
        let terms = self.columns.iter().filter_map(|c| match &c.source {
            IndexSource::Expr(e) => Some(e),
            _ => None,
        });
        terms.chain(&self.filter).find_map(Expr::unknown)
    }

    /// The first collation of its terms whose order is not known here.
    #[must_use]
    pub fn unknown_collation(&self) -> Option<&Collation> {
        self.columns.iter().map(|c| &c.collation).find(|c| !c.is_known())
    }

    /// Whether its entries can be computed and put in order here.
    #[must_use]
    pub fn is_computable(&self) -> bool {
        self.unknown_expression().is_none() && self.unknown_collation().is_none()
    }
}

fn not_a_column(scope: &TableScope<'_>, name: &Name) -> Expr {
    scope.lookup(None, name).unwrap_or_else(|| Expr::Unknown(Unknown::Column(name.clone())))
}
