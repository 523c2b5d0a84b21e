//! `map`: a role and an owner for every page.

use crate::ctx::Ctx;
use crate::error::Result;
use crate::report::Report;
use crate::report::model::Verb;
use crate::verbs::examination::examine;
use crate::verbs::{Inputs, Options};

/// A role and an owner for every page: the report of `check`, whose map is filled.
///
/// # Errors
/// As `check`.
pub fn map(inputs: &Inputs, options: &Options, ctx: &Ctx) -> Result<Report> {
    examine(inputs, options, ctx, |e| {
        e.complete()?;
        e.sealed(Verb::Map)
    })
}
