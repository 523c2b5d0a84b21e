//! Values that are not stored: generated columns, expressions of indexes, conditions.

use crate::expr::{self, Datum, Expr, Fault, Unknown};
use crate::format::Encoding;
use crate::schema::Affinity;
use crate::survey::plan::{Constant, Row, TablePlan};

/// How deep generated columns may depend on one another.
const MAX_CHAIN: u8 = 30;

/// What a condition comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// True: not zero.
    True,
    /// False: zero.
    False,
    /// NULL.
    Null,
    /// It cannot be evaluated here, or raises an error for this row.
    Unknown,
}

/// Evaluates expressions over the rows of one table.
#[derive(Debug)]
pub struct Computer<'p> {
    plan: &'p TablePlan,
}

/// A row as expressions see it.
struct Seen<'r> {
    plan: &'r TablePlan,
    row: &'r Row<'r>,
    depth: u8,
}

impl<'r> Seen<'r> {
    fn generated(&self, column: usize, expr: &Expr) -> Result<Datum<'static>, Fault> {
        if self.depth >= MAX_CHAIN {
            return Err(Unknown::TooDeep.into());
        }
        let deeper = Seen { depth: self.depth.saturating_add(1), ..*self };
        let value = expr::eval(expr, &deeper)?.into_owned();
        let affinity = self.plan.columns.get(column).map_or(Affinity::Blob, |c| c.affinity);
        Ok(expr::apply_affinity(value, affinity))
    }
}

impl expr::Row for Seen<'_> {
    fn column(&self, index: usize) -> Result<Datum<'_>, Fault> {
        match self.plan.stored_value(self.row, index) {
            Some(value) => Ok(Datum::of_value(value, self.plan.encoding)),
            None => match self.plan.columns.get(index) {
                Some(c) => match &c.generated {
                    Some(e) => {
                        let value = self.generated(index, e)?;
                        // A REAL column is read as reals.
                        Ok(if c.affinity == Affinity::Real { expr::cast(value, Affinity::Real) } else { value })
                    }
                    None => Err(Unknown::Construct("a generated column that cannot be computed").into()),
                },
                None => Ok(Datum::Null),
            },
        }
    }

    fn rowid(&self) -> Option<i64> {
        self.row.rowid
    }

    fn encoding(&self) -> Encoding {
        self.plan.encoding
    }
}

impl<'p> Computer<'p> {
    /// For the rows of a table.
    #[must_use]
    pub fn new(plan: &'p TablePlan) -> Computer<'p> {
        Computer { plan }
    }

    /// A row as expressions see it.
    #[must_use]
    pub fn seen<'r>(&'r self, row: &'r Row<'r>) -> impl expr::Row + 'r {
        Seen { plan: self.plan, row, depth: 0 }
    }

    /// The value of an expression, its text in the encoding of the database; `None` when it cannot be evaluated.
    #[must_use]
    pub fn value(&self, row: &Row<'_>, expr: &Expr) -> Option<Constant> {
        let seen = Seen { plan: self.plan, row, depth: 0 };
        expr::eval(expr, &seen).ok().map(|d| owned(d, self.plan.encoding))
    }

    /// The value of a generated column as an index or a record holds it, with the affinity of the column applied.
    #[must_use]
    pub fn column(&self, row: &Row<'_>, column: usize) -> Option<Constant> {
        let plan = self.plan.columns.get(column)?;
        let seen = Seen { plan: self.plan, row, depth: 0 };
        seen.generated(column, plan.generated.as_ref()?).ok().map(|d| owned(d, self.plan.encoding))
    }

    /// The value of a generated column as a query gives it: a REAL column gives reals.
    #[must_use]
    pub fn read(&self, row: &Row<'_>, column: usize) -> Option<Constant> {
        let value = self.column(row, column)?;
        let real = self.plan.columns.get(column).is_some_and(|c| c.affinity == Affinity::Real);
        Some(match value {
            Constant::Int(n) if real => Constant::Real(super::plan::real_of(n)),
            other => other,
        })
    }

    /// Why an expression has no value for a row; `None` when it has one.
    #[must_use]
    pub fn fault(&self, row: &Row<'_>, expr: &Expr) -> Option<Fault> {
        let seen = Seen { plan: self.plan, row, depth: 0 };
        expr::eval(expr, &seen).err()
    }

    /// Why a generated column has no value for a row; `None` when it has one.
    #[must_use]
    pub fn column_fault(&self, row: &Row<'_>, column: usize) -> Option<Fault> {
        let expr = self.plan.columns.get(column)?.generated.as_ref()?;
        Seen { plan: self.plan, row, depth: 0 }.generated(column, expr).err()
    }

    /// What a condition comes to for a row.
    #[must_use]
    pub fn truth(&self, row: &Row<'_>, expr: &Expr) -> Outcome {
        let seen = Seen { plan: self.plan, row, depth: 0 };
        match expr::eval(expr, &seen).map(|d| expr::truth(&d)) {
            Ok(Some(true)) => Outcome::True,
            Ok(Some(false)) => Outcome::False,
            Ok(None) => Outcome::Null,
            Err(_) => Outcome::Unknown,
        }
    }
}

fn owned(d: Datum<'_>, encoding: Encoding) -> Constant {
    match d {
        Datum::Null => Constant::Null,
        Datum::Int(n) => Constant::Int(n),
        Datum::Real(r) => Constant::Real(r),
        Datum::Text(t) => Constant::Text(encoding.from_utf8(&t).into_owned()),
        Datum::Blob(b) => Constant::Blob(b.into_owned()),
    }
}

/// A constant expression, such as a DEFAULT, with the affinity of its column applied. NULL when it is none.
#[must_use]
pub fn constant(expr: &Expr, affinity: Affinity, encoding: Encoding) -> Constant {
    expr::constant(expr).map_or(Constant::Null, |d| owned(expr::apply_affinity(d, affinity), encoding))
}
