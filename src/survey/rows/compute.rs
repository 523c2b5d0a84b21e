//! Values that are not stored: generated columns, expressions of indexes, conditions.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use crate::expr::{self, Datum, Expr, Fault, Meter, Unknown};
use crate::format::Encoding;
use crate::ids::wide;
use crate::schema::Affinity;
use crate::survey::rows::constant::{Constant, owned};
use crate::survey::rows::plan::{Row, TablePlan, real_of};

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
    /// Steps spent so far.
    spent: Cell<u64>,
}

/// Steps that the first expressions of a table may take, each; then [`LEAST`] and what the row's own bytes ask for.
const MOST: u64 = 2_000_000;

/// Steps that one [`Computer`] gives out before it becomes sparing: about a tenth of a second.
const GENEROUS: u64 = 20_000_000;

/// Steps of an expression when the table has been generous enough; with eight for each byte of the row, which is more than
/// any expression over its values takes that people write.
const LEAST: u64 = 2_000;

/// What one evaluation spends and what it has computed.
#[derive(Debug)]
struct State {
    meter: Meter,
    /// Values of generated columns that others are made of: each is computed once, however often it is named.
    computed: RefCell<BTreeMap<usize, Datum<'static>>>,
}

/// A row as expressions see it.
struct Seen<'r> {
    plan: &'r TablePlan,
    row: &'r Row<'r>,
    depth: u8,
    state: &'r State,
}

/// A row as expressions see it, with its own allowance.
struct Alone<'r> {
    plan: &'r TablePlan,
    row: &'r Row<'r>,
    state: State,
    allowed: u64,
    spent: &'r Cell<u64>,
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        let taken = self.allowed.saturating_sub(self.state.meter.left());
        self.spent.set(self.spent.get().saturating_add(taken));
    }
}

impl Alone<'_> {
    fn seen(&self) -> Seen<'_> {
        Seen { plan: self.plan, row: self.row, depth: 0, state: &self.state }
    }
}

impl expr::Row for Alone<'_> {
    fn column(&self, index: usize) -> Result<Datum<'_>, Fault> {
        self.seen().read(index)
    }

    fn rowid(&self) -> Option<i64> {
        self.row.rowid
    }

    fn meter(&self) -> &Meter {
        &self.state.meter
    }

    fn encoding(&self) -> Encoding {
        self.plan.encoding
    }
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

    fn read(&self, index: usize) -> Result<Datum<'r>, Fault> {
        if let Some(value) = self.plan.stored_value(self.row, index) {
            return Ok(Datum::of_value(value, self.plan.encoding));
        }
        let Some(c) = self.plan.columns.get(index) else { return Ok(Datum::Null) };
        let Some(e) = &c.generated else {
            return Err(Unknown::Construct("a generated column that cannot be computed").into());
        };
        if let Some(value) = self.state.computed.borrow().get(&index) {
            return Ok(value.clone());
        }
        let value = self.generated(index, e)?;
        // A REAL column is read as reals.
        let value = if c.affinity == Affinity::Real { expr::cast(value, Affinity::Real) } else { value };
        self.state.computed.borrow_mut().insert(index, value.clone());
        Ok(value)
    }
}

impl expr::Row for Seen<'_> {
    fn column(&self, index: usize) -> Result<Datum<'_>, Fault> {
        self.read(index)
    }

    fn rowid(&self) -> Option<i64> {
        self.row.rowid
    }

    fn meter(&self) -> &Meter {
        &self.state.meter
    }

    fn encoding(&self) -> Encoding {
        self.plan.encoding
    }
}

impl<'p> Computer<'p> {
    /// For the rows of a table.
    #[must_use]
    pub fn new(plan: &'p TablePlan) -> Computer<'p> {
        Computer { plan, spent: Cell::new(0) }
    }

    /// A row as expressions see it.
    #[must_use]
    pub fn seen<'r>(&'r self, row: &'r Row<'r>) -> impl expr::Row + 'r {
        self.alone(row)
    }

    fn alone<'r>(&'r self, row: &'r Row<'r>) -> Alone<'r> {
        let least = LEAST.saturating_add(wide(row.payload.len()).saturating_mul(8));
        let allowed = if self.spent.get() < GENEROUS { MOST.max(least) } else { least };
        let state = State { meter: Meter::new(allowed), computed: RefCell::default() };
        Alone { plan: self.plan, row, state, allowed, spent: &self.spent }
    }

    /// The value of an expression, its text in the encoding of the database; `None` when it cannot be evaluated.
    #[must_use]
    pub fn value(&self, row: &Row<'_>, expr: &Expr) -> Option<Constant> {
        expr::eval(expr, &self.alone(row)).ok().map(|d| owned(d, self.plan.encoding))
    }

    /// The value of a generated column as an index or a record holds it, with the affinity of the column applied.
    #[must_use]
    pub fn column(&self, row: &Row<'_>, column: usize) -> Option<Constant> {
        let plan = self.plan.columns.get(column)?;
        let expr = plan.generated.as_ref()?;
        self.alone(row).seen().generated(column, expr).ok().map(|d| owned(d, self.plan.encoding))
    }

    /// The value of a generated column as a query gives it: a REAL column gives reals.
    #[must_use]
    pub fn read(&self, row: &Row<'_>, column: usize) -> Option<Constant> {
        let value = self.column(row, column)?;
        let real = self.plan.columns.get(column).is_some_and(|c| c.affinity == Affinity::Real);
        Some(match value {
            Constant::Int(n) if real => Constant::Real(real_of(n)),
            other => other,
        })
    }

    /// Why an expression has no value for a row; `None` when it has one.
    #[must_use]
    pub fn fault(&self, row: &Row<'_>, expr: &Expr) -> Option<Fault> {
        expr::eval(expr, &self.alone(row)).err()
    }

    /// Why a generated column has no value for a row; `None` when it has one.
    #[must_use]
    pub fn column_fault(&self, row: &Row<'_>, column: usize) -> Option<Fault> {
        let expr = self.plan.columns.get(column)?.generated.as_ref()?;
        self.alone(row).seen().generated(column, expr).err()
    }

    /// What a condition comes to for a row.
    #[must_use]
    pub fn truth(&self, row: &Row<'_>, expr: &Expr) -> Outcome {
        match expr::eval(expr, &self.alone(row)).map(|d| expr::truth(&d)) {
            Ok(Some(true)) => Outcome::True,
            Ok(Some(false)) => Outcome::False,
            Ok(None) => Outcome::Null,
            Err(_) => Outcome::Unknown,
        }
    }
}
