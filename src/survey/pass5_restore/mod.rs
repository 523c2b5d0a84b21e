//! Pass 5: what damage cut off comes back, as far as the evidence says whose it is.
//!
//! Tests:    orphan trees against objects without a tree, unreadable children, orphaned leaves against holes, cells without a
//!           pointer, rowids against what indexes name.
//! Collects: trees, leaves, cells and rowids that came back; the trees that have them are read again.
//! Leaves:   what fits nothing, or two places as well: it stays an orphan.

mod adopt;
mod branches;
mod holes;
mod mend;
pub mod orphan_trees;
mod places;
pub(super) mod rowids;

use crate::ctx::Ctx;
use crate::error::Result;
use crate::survey::pass4_compare;
use crate::survey::stages::{Scanned, Walked};

/// What a round comes to.
pub(super) enum Round<'a> {
    /// Something came back: its trees have to be read again.
    Changed(Walked<'a>),
    /// Everything is in its place.
    Settled(Scanned<'a>),
}

/// One round of bringing back what damage cut off. Rowids come last, and once: they need everything else in its place.
///
/// # Errors
/// Cancellation only.
pub(super) fn restore<'a>(mut survey: Scanned<'a>, rowids_settled: &mut bool, ctx: &Ctx) -> Result<Round<'a>> {
    let came_back = orphan_trees::assign(&mut survey, ctx)?
        || mend::leaves(&mut survey, ctx)?
        || adopt::adopt(&mut survey, ctx)?
        || mend::cells(&mut survey, ctx)?;
    if came_back {
        return Ok(Round::Changed(survey.reopened()));
    }
    if *rowids_settled || !rowids::doubted(&survey) {
        return Ok(Round::Settled(survey));
    }
    *rowids_settled = true;
    let findings = survey.findings.clone();
    pass4_compare::indexes(&mut survey, ctx)?;
    survey.findings = findings;
    let restored = rowids::restore(&mut survey, ctx)?;
    Ok(if restored { Round::Changed(survey.reopened()) } else { Round::Settled(survey) })
}
