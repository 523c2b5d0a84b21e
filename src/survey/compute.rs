//! Values that are not stored: generated columns, expressions of indexes, conditions.

use crate::format::Encoding;
use crate::schema::Affinity;
use crate::schema::expr::Expr;
use crate::survey::plan::{Constant, Row, TablePlan};

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

impl<'p> Computer<'p> {
    /// For the rows of a table.
    #[must_use]
    pub fn new(plan: &'p TablePlan) -> Computer<'p> {
        Computer { plan }
    }

    /// The value of an expression, its text in the encoding of the database; `None` when it cannot be evaluated.
    #[must_use]
    pub fn value(&self, _row: &Row<'_>, _expr: &Expr) -> Option<Constant> {
        None
    }

    /// The value of a generated column, with the affinity of the column applied.
    #[must_use]
    pub fn column(&self, row: &Row<'_>, column: usize) -> Option<Constant> {
        let plan = self.plan.columns.get(column)?;
        self.value(row, plan.generated.as_ref()?)
    }

    /// What a condition comes to for a row.
    #[must_use]
    pub fn truth(&self, _row: &Row<'_>, _expr: &Expr) -> Outcome {
        Outcome::Unknown
    }
}

/// A constant expression, such as a DEFAULT, with the affinity of its column applied.
#[must_use]
pub fn constant(_expr: &Expr, _affinity: Affinity, _encoding: Encoding) -> Constant {
    Constant::Null
}
