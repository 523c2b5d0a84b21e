//! Committed rows that the default view does not show.
//!
//! Tests:    every other state that the files hold: with the commits that SQLite does not read, with the rollback that it does
//!           not finish, without a sidecar whose fit is undecided.
//! Collects: the rows that only such a state has, or has with other values.
//! Leaves:   which state is the right one: the view stays SQLite's, the rows go to the salvage database.

use crate::ctx::Ctx;
use crate::error::Result;
use crate::evidence::{OtherState, PageSource};
use crate::ids::wide;
use crate::report::model::TableRecovery;
use crate::survey::Survey;
use crate::verbs::diff::{self, Apart};
use crate::verbs::evidence::Viewed;

/// A state that is not shown, and the rows that it holds beyond the one that is.
#[derive(Debug)]
pub(crate) struct Other<'s> {
    /// Which state.
    pub(crate) state: OtherState,
    /// The branch of the log that it is; empty for what is none.
    pub(crate) branch: String,
    /// What stands in it.
    pub(crate) survey: Survey<'s>,
    /// The rows.
    pub(crate) tables: Vec<Apart>,
}

/// All other states with their rows.
///
/// # Errors
/// I/O of a sort; cancellation.
pub(crate) fn find<'v>(viewed: &'v Viewed<'_>, shown: &Survey<'_>, keep_violations: bool, ctx: &Ctx) -> Result<Vec<Other<'v>>> {
    let mut out = Vec::new();
    for (state, pages) in &viewed.view.others {
        let pages: &dyn PageSource = pages;
        let survey = viewed.survey_of(pages, ctx)?;
        let tables = diff::apart(shown, &survey, keep_violations, ctx)?;
        let branch = match state {
            OtherState::Branch(i) => viewed.view.branches.get(usize::from(*i)).map(|b| b.name.clone()).unwrap_or_default(),
            _ => String::new(),
        };
        out.push(Other { state: *state, branch, survey, tables });
    }
    Ok(out)
}

impl Other<'_> {
    /// How many rows are hidden.
    pub(crate) fn rows(&self) -> u64 {
        self.tables.iter().map(|t| wide(t.places.len())).fold(0, u64::saturating_add)
    }

    /// Why its rows are set aside.
    pub(crate) const fn reason(&self) -> &'static str {
        match self.state {
            OtherState::MainAlone => "hidden-by-undecided-sidecar",
            OtherState::RolledBack => "hidden-before-rollback",
            OtherState::Branch(_) => "hidden-commit",
        }
    }

    /// Enters its rows into the ledger.
    pub(crate) fn enter(&self, tables: &mut Vec<TableRecovery>) {
        for apart in &self.tables {
            let name = self.survey.catalog.get(apart.object).map(|o| o.name.text()).unwrap_or_default();
            let rows = wide(apart.places.len());
            let place = tables.iter().position(|t| t.name == name && t.object.is_some());
            let place = place.unwrap_or_else(|| {
                tables.push(TableRecovery { name, ..TableRecovery::default() });
                tables.len().saturating_sub(1)
            });
            let Some(table) = tables.get_mut(place) else { continue };
            table.rows_found = table.rows_found.saturating_add(rows);
            let sum = table.set_aside.entry(self.reason().to_owned()).or_insert(0);
            *sum = sum.saturating_add(rows);
        }
    }
}
