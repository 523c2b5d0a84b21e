//! Expressions: their data and their values, exactly as SQLite computes them.

mod ast;
mod compare;
mod datum;
mod decimal;
mod eval;
mod functions;
mod meter;
pub(crate) mod name;
mod number;

pub use ast::*;
pub use compare::trim_spaces;
pub use datum::{Datum, Fault, NoRow, Row};
pub use eval::{constant, eval};
pub use functions::Function;
pub use meter::Meter;
pub use name::{Affinity, Collation, Name, StrictType, quoted};
pub use number::{apply as apply_affinity, cast, numeric, older_real_text, real_text, truth};

/// Whether a column of NUMERIC, INTEGER or REAL affinity would turn this UTF-8 text into a number, so that it never holds it.
#[must_use]
pub fn reads_as_number(text: &[u8]) -> bool {
    number::read(text).whole
}
