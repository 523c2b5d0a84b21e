//! What a scan needs to know of a table or index, compiled from the catalog once: where each column lies in the record and
//! which rules a row has to keep.

use crate::expr::Expr;
use crate::format::{Encoding, Fields, Value};
use crate::ids::ObjectId;
use crate::schema::ddl::{ColumnDef, TableDef};
use crate::schema::{Affinity, Catalog, IndexPart, IndexSource, Object, StrictType};
use crate::survey::rows::constant;

pub use crate::survey::rows::constant::Constant;

/// Which storage classes `PRAGMA integrity_check` lets stand in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClassRule {
    /// Any.
    Any,
    /// TEXT affinity: no number.
    NoNumber,
    /// Numeric affinity: no text that reads as a number.
    NoNumericText,
    /// STRICT INTEGER.
    Integer,
    /// STRICT REAL: a double, or the integer that an integral double is stored as.
    Real,
    /// STRICT TEXT.
    Text,
    /// STRICT BLOB.
    Blob,
}

/// A column of a table.
#[derive(Debug, Clone)]
pub struct ColumnPlan {
    /// Its name, decoded lossily, for findings.
    pub name: String,
    /// Its place in the record; `None` for a VIRTUAL generated column.
    pub position: Option<usize>,
    /// Its affinity.
    pub affinity: Affinity,
    /// Which classes may stand in it.
    pub class: ClassRule,
    /// NOT NULL, also by being a key of a WITHOUT ROWID table.
    pub not_null: bool,
    /// What a record that ends before this column stands for.
    pub default: Constant,
    /// The expression of a generated column.
    pub generated: Option<Expr>,
}

/// A CHECK constraint.
#[derive(Debug, Clone)]
pub struct CheckPlan {
    /// Its name or text, for findings.
    pub name: String,
    /// The expression.
    pub expr: Expr,
}

/// An index, or the key of a WITHOUT ROWID table.
#[derive(Debug, Clone)]
pub struct IndexPlan {
    /// The index in the catalog.
    pub object: ObjectId,
    /// Its name, decoded lossily.
    pub name: String,
    /// The values of its entries in record order: key columns, then rowid or primary key.
    pub columns: Vec<IndexPart>,
    /// How many of them UNIQUE covers; 0 when it is not unique.
    pub unique: usize,
    /// The WHERE of a partial index.
    pub condition: Option<Expr>,
    /// Every value can be computed here: no unknown function in an expression or the condition.
    pub computable: bool,
    /// Every collation is known, so that order can be judged.
    pub orderable: bool,
}

/// A table.
#[derive(Debug, Clone)]
pub struct TablePlan {
    /// The table in the catalog.
    pub object: ObjectId,
    /// Its name, decoded lossily.
    pub name: String,
    /// The encoding of its text.
    pub encoding: Encoding,
    /// Its columns as declared.
    pub columns: Vec<ColumnPlan>,
    /// Record position to column.
    pub stored: Vec<usize>,
    /// The column that is the rowid.
    pub alias: Option<usize>,
    /// WITHOUT ROWID: the key, as an index on the table's own tree whose columns are all stored ones.
    pub key: Option<IndexPlan>,
    /// CHECK constraints that can be evaluated.
    pub checks: Vec<CheckPlan>,
    /// The indexes of the table, in catalog order.
    pub indexes: Vec<IndexPlan>,
    /// Whether what the DDL says is known well enough to judge rows by it.
    pub judged: bool,
}

impl IndexPlan {
    /// The plan of an index of the catalog; `None` when nothing says what its entries hold.
    #[must_use]
    pub fn compile(object: &Object) -> Option<IndexPlan> {
        let layout = object.index_layout.as_ref()?;
        Some(IndexPlan {
            object: object.id,
            name: object.name.text(),
            columns: layout.columns.clone(),
            unique: if layout.unique { layout.declared } else { 0 },
            condition: layout.filter.clone(),
            computable: layout.unknown_expression().is_none(),
            orderable: layout.unknown_collation().is_none(),
        })
    }

    /// Whether its entries end in a rowid, as those of an index on a rowid table do.
    #[must_use]
    pub fn by_rowid(&self) -> bool {
        matches!(self.columns.last().map(|c| &c.source), Some(IndexSource::Rowid))
    }

    /// Whether it can be built from the rows of its table.
    #[must_use]
    pub fn buildable(&self) -> bool {
        self.computable && self.orderable
    }

    /// A plan for an index of which nothing is known but how many values its entries have.
    #[must_use]
    pub fn unknown(object: ObjectId, name: String) -> IndexPlan {
        IndexPlan { object, name, columns: Vec::new(), unique: 0, condition: None, computable: false, orderable: false }
    }
}

impl TablePlan {
    /// The plan of a table of the catalog and its indexes; `None` when nothing says what its rows hold.
    #[must_use]
    pub fn compile(catalog: &Catalog, object: &Object, encoding: Encoding) -> Option<TablePlan> {
        let def = object.table_def()?;
        let layout = object.table_layout.as_ref()?;
        let scope = crate::schema::ddl::TableScope { table: def, alias: None, rowid: true };
        let resolved = |expr: &Expr| {
            let mut expr = expr.clone();
            expr.resolve(&scope);
            expr
        };
        let columns = def
            .columns
            .iter()
            .enumerate()
            .map(|(i, c)| ColumnPlan {
                name: c.name.text(),
                position: layout.position.get(i).copied().flatten(),
                affinity: c.affinity,
                class: class_rule(def, c),
                not_null: (c.not_null.is_some() || (def.without_rowid && in_key(def, i))) && layout.rowid_alias != Some(i),
                default: c.default.as_ref().map(|d| constant::of(&d.expr, c.affinity, encoding)).unwrap_or_default(),
                generated: c.generated.as_ref().map(|g| resolved(&g.expr)).filter(|e| e.unknown().is_none()),
            })
            .collect();
        let key = def.without_rowid.then(|| IndexPlan {
            object: object.id,
            name: object.name.text(),
            columns: layout
                .key
                .iter()
                .zip(&layout.record)
                .map(|(part, column)| IndexPart {
                    source: IndexSource::Column(*column),
                    collation: part.collation.clone(),
                    desc: part.desc,
                })
                .collect(),
            unique: layout.key.len(),
            condition: None,
            computable: true,
            orderable: layout.key.iter().all(|k| k.collation.is_known()),
        });
        let checks = def
            .checks
            .iter()
            .map(|c| CheckPlan {
                name: c.name.as_ref().map_or_else(|| String::from_utf8_lossy(&c.text).into_owned(), |n| n.text()),
                expr: resolved(&c.expr),
            })
            .filter(|c| c.expr.unknown().is_none())
            .collect();
        Some(TablePlan {
            object: object.id,
            name: object.name.text(),
            encoding,
            columns,
            stored: layout.record.clone(),
            alias: layout.rowid_alias,
            key,
            checks,
            indexes: catalog.indexes_of(object.id).filter_map(IndexPlan::compile).collect(),
            judged: object.problem.is_none(),
        })
    }
}

fn in_key(def: &TableDef, column: usize) -> bool {
    def.primary_key.as_ref().is_some_and(|k| k.columns.iter().any(|c| c.column == column))
}

fn class_rule(def: &TableDef, column: &ColumnDef) -> ClassRule {
    if def.strict {
        return match column.strict_type {
            Some(StrictType::Integer) => ClassRule::Integer,
            Some(StrictType::Real) => ClassRule::Real,
            Some(StrictType::Text) => ClassRule::Text,
            Some(StrictType::Blob) => ClassRule::Blob,
            Some(StrictType::Any) | None => ClassRule::Any,
        };
    }
    match column.affinity {
        Affinity::Text => ClassRule::NoNumber,
        Affinity::Blob => ClassRule::Any,
        Affinity::Numeric | Affinity::Integer | Affinity::Real => ClassRule::NoNumericText,
    }
}

/// A row as it lies in a payload.
#[derive(Debug, Clone, Copy)]
pub struct Row<'r> {
    /// Its rowid; `None` in a WITHOUT ROWID table.
    pub rowid: Option<i64>,
    /// The whole payload.
    pub payload: &'r [u8],
    /// Its fields.
    pub fields: &'r Fields,
}

impl TablePlan {
    /// The value of a column that is stored, or the rowid, or a default; `None` for a VIRTUAL generated column, which has
    /// to be computed.
    #[must_use]
    #[inline]
    pub fn stored_value<'v>(&'v self, row: &Row<'v>, column: usize) -> Option<Value<'v>> {
        let value = self.raw_value(row, column)?;
        // A REAL column stores integral doubles as integers (section 2.1); they are doubles all the same.
        Some(match value {
            Value::Int(n) if self.columns.get(column)?.affinity == Affinity::Real => Value::Real(real_of(n)),
            other => other,
        })
    }

    /// As [`TablePlan::stored_value`], in the form that the record has it in, which is also the form of index entries.
    #[must_use]
    #[inline]
    pub fn raw_value<'v>(&'v self, row: &Row<'v>, column: usize) -> Option<Value<'v>> {
        if self.alias == Some(column)
            && let Some(rowid) = row.rowid
        {
            return Some(Value::Int(rowid));
        }
        let plan = self.columns.get(column)?;
        let position = plan.position?;
        Some(row.fields.value(row.payload, position).unwrap_or_else(|| plan.default.value()))
    }
}

/// An integer as the double that a REAL column means by it.
#[must_use]
pub fn real_of(n: i64) -> f64 {
    #[expect(clippy::as_conversions, reason = "rounds as SQLite does when it reads an integer from a REAL column")]
    {
        n as f64
    }
}
