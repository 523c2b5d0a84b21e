//! A stored row as its table declares it.

use std::rc::Rc;

use rootpage::expr::{self, Affinity, Datum, Expr, Fault, Meter, Row, Unknown};
use rootpage::format::{Encoding, Value};
use rootpage::schema::ddl::TableDef;
use rootpage::schema::{IndexLayout, IndexSource, TableLayout};

/// How deep generated columns may depend on one another before the row counts as not computable. SQLite refuses loops, and
/// its parser would not take a longer chain than this in any real schema.
const MAX_CHAIN: u8 = 30;

/// A record of a table, seen as the columns of its declaration.
#[derive(Debug, Clone)]
pub struct StoredRow<'a> {
    table: &'a TableDef,
    layout: &'a TableLayout,
    values: &'a [Value<'a>],
    rowid: Option<i64>,
    encoding: Encoding,
    depth: u8,
    meter: Rc<Meter>,
}

impl<'a> StoredRow<'a> {
    /// A row of a table: the values of its record in record order, and its rowid unless the table has none.
    #[must_use]
    pub fn new(
        table: &'a TableDef,
        layout: &'a TableLayout,
        values: &'a [Value<'a>],
        rowid: Option<i64>,
        encoding: Encoding,
    ) -> StoredRow<'a> {
        StoredRow { table, layout, values, rowid, encoding, depth: 0, meter: Rc::new(Meter::new(10_000_000)) }
    }

    fn generated(&self, index: usize, expr: &'a Expr) -> Result<Datum<'static>, Fault> {
        if self.depth >= MAX_CHAIN {
            return Err(Unknown::TooDeep.into());
        }
        let deeper = StoredRow { depth: self.depth.saturating_add(1), ..self.clone() };
        let value = expr::eval(expr, &deeper)?.into_owned();
        let affinity = self.table.columns.get(index).map_or(Affinity::Blob, |c| c.affinity);
        Ok(as_read(expr::apply_affinity(value, affinity), affinity))
    }

    /// The value of a generated column by its expression, also of a STORED one; with the affinity of the column.
    ///
    /// # Errors
    /// When the column is not generated, or its expression cannot be evaluated or raises.
    pub fn computed(&self, index: usize) -> Result<Datum<'static>, Fault> {
        match self.table.columns.get(index).and_then(|c| c.generated.as_ref()) {
            Some(g) => self.generated(index, &g.expr),
            None => Err(Unknown::Construct("a column that is not generated").into()),
        }
    }

    /// Whether a partial index has an entry for the row.
    ///
    /// # Errors
    /// When its condition cannot be evaluated or raises.
    pub fn is_in(&self, index: &IndexLayout) -> Result<bool, Fault> {
        match &index.filter {
            None => Ok(true),
            Some(filter) => Ok(expr::truth(&expr::eval(filter, self)?) == Some(true)),
        }
    }

    /// The entry that an index has for the row. Reals of REAL columns that are integers are integers in it, as SQLite stores them.
    ///
    /// # Errors
    /// When an expression cannot be evaluated or raises.
    pub fn index_key(&self, index: &'a IndexLayout) -> Result<Vec<Datum<'static>>, Fault> {
        index
            .columns
            .iter()
            .map(|part| match &part.source {
                IndexSource::Rowid => Ok(self.rowid.map_or(Datum::Null, Datum::Int)),
                IndexSource::Column(i) => {
                    let value = self.column(*i)?.into_owned();
                    Ok(match self.table.columns.get(*i).map(|c| c.affinity) {
                        Some(Affinity::Real) => expr::apply_affinity(value, Affinity::Real),
                        _ => value,
                    })
                }
                IndexSource::Expr(e) => Ok(expr::eval(e, self)?.into_owned()),
            })
            .collect()
    }

    /// The CHECK constraints that are false for the row, by their position. Those that cannot be evaluated are not among them.
    #[must_use]
    pub fn broken_checks(&self) -> Vec<usize> {
        let broken = |e: &Expr| expr::eval(e, self).is_ok_and(|d| expr::truth(&d) == Some(false));
        self.table.checks.iter().enumerate().filter(|(_, c)| broken(&c.expr)).map(|(i, _)| i).collect()
    }
}

/// Integers of a REAL column are read as reals.
fn as_read(d: Datum<'_>, affinity: Affinity) -> Datum<'_> {
    match (affinity, d) {
        (Affinity::Real, d @ Datum::Int(_)) => expr::cast(d, Affinity::Real),
        (_, d) => d,
    }
}

impl Row for StoredRow<'_> {
    fn column(&self, index: usize) -> Result<Datum<'_>, Fault> {
        let Some(column) = self.table.columns.get(index) else { return Ok(Datum::Null) };
        if self.layout.rowid_alias == Some(index)
            && let Some(rowid) = self.rowid
        {
            return Ok(Datum::Int(rowid));
        }
        let Some(Some(position)) = self.layout.position.get(index) else {
            return match &column.generated {
                Some(g) => self.generated(index, &g.expr),
                None => Ok(Datum::Null),
            };
        };
        match self.values.get(*position) {
            Some(value) => Ok(as_read(Datum::of_value(*value, self.encoding), column.affinity)),
            None => Ok(missing(self.table, index)),
        }
    }

    fn meter(&self) -> &Meter {
        &self.meter
    }

    fn rowid(&self) -> Option<i64> {
        self.rowid
    }

    fn encoding(&self) -> Encoding {
        self.encoding
    }
}

/// What a column holds in a record that is too short for it: its DEFAULT, as ALTER TABLE ADD COLUMN promises. NULL when the
/// default is not constant.
#[must_use]
pub fn missing(table: &TableDef, index: usize) -> Datum<'static> {
    let Some(column) = table.columns.get(index) else { return Datum::Null };
    let Some(default) = &column.default else { return Datum::Null };
    match expr::constant(&default.expr) {
        Ok(value) => as_read(expr::apply_affinity(value, column.affinity), column.affinity),
        Err(_) => Datum::Null,
    }
}
