//! `check`: verdict and findings.

use crate::ctx::Ctx;
use crate::error::Result;
use crate::report::Report;
use crate::report::model::Verb;
use crate::verbs::examination::examine;
use crate::verbs::{Inputs, Options};

/// Verdict and findings.
///
/// # Errors
/// What the tool cannot do; damage is never an error. [`Error::Unstable`](crate::error::Error::Unstable) when an input changes
/// during the run, twice.
pub fn check(inputs: &Inputs, options: &Options, ctx: &Ctx) -> Result<Report> {
    examine(inputs, options, ctx, |e| {
        e.complete()?;
        e.sealed(Verb::Check)
    })
}
