//! Date and time functions.

use super::Function;
use crate::schema::expr::ast::Unknown;
use crate::schema::expr::datum::{Datum, Fault};

pub(super) fn apply<'r>(f: Function, _args: &[Datum<'r>]) -> Result<Datum<'r>, Fault> {
    Err(Unknown::Function(f.name().into()).into())
}
