//! JSON functions.

use super::Function;
use crate::schema::expr::ast::Unknown;
use crate::schema::expr::datum::{Datum, Fault};

pub(super) fn apply<'r>(f: Function, _args: &[Datum<'r>]) -> Result<Datum<'r>, Fault> {
    Err(Unknown::Function(f.name().into()).into())
}

/// x
pub(in crate::schema::expr) fn arrow<'r>(_a: &Datum<'_>, _b: &Datum<'_>, _long: bool) -> Result<Datum<'r>, Fault> {
    Err(Unknown::Construct("->").into())
}
