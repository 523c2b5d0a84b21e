//! One survey from first to last pass.

use crate::ctx::Ctx;
use crate::error::Result;
use crate::finding::Findings;
use crate::format::DatabaseHeader;
use crate::survey::pass1_schema::{self, Hints};
use crate::survey::pass5_restore::{self, Round, orphan_trees};
use crate::survey::pass7_declare::{QUESTIONS, Schema};
use crate::survey::stages::{Declared, Former, Survey};
use crate::survey::verdict::{self, Class};
use crate::survey::{pass2_trees, pass3_scan, pass6_settle};
use crate::tree::{Pages, Tree};

/// How often trees are read anew because something came back: a leaf brings no further holes, so the second round settles
/// all but overflow chains that the first took for orphans.
const ROUNDS: usize = 6;

impl<'a> Survey<'a> {
    /// Reads everything once. `header` is the header as it was settled; what was found while settling it is in `findings`.
    ///
    /// # Errors
    /// Cancellation only.
    pub fn run(pages: Pages<'a>, header: DatabaseHeader, findings: Findings, ctx: &Ctx) -> Result<Survey<'a>> {
        Survey::with_hints(pages, header, &Hints::default(), findings, ctx)
    }

    /// As [`Survey::run`], with what may stand in for a schema that is damaged, and with rulings about pages: every claim on a
    /// page asks for them, so all that is made of the survey follows them.
    ///
    /// # Errors
    /// Cancellation only.
    pub fn with_hints(
        pages: Pages<'a>,
        header: DatabaseHeader,
        hints: &Hints<'_>,
        mut findings: Findings,
        ctx: &Ctx,
    ) -> Result<Survey<'a>> {
        let encoding = header.encoding().unwrap_or_default();
        let rows = pass1_schema::collect(&pages, encoding, header.freelist_trunk, hints, &mut findings, ctx)?;
        let mut schema = Schema { header, rows };
        let declared = |pages: Pages<'a>, schema: &Schema, findings: &Findings| Declared {
            pages,
            header: schema.header,
            rows: schema.rows.clone(),
            rulings: hints.rulings.clone(),
            findings: findings.clone(),
        };
        let mut survey = Survey::of_schema(declared(pages, &schema, &findings), None, ctx)?;
        for question in QUESTIONS {
            if let Some(meant) = question.ask(&survey, &schema, &mut findings, ctx)? {
                let (pages, former) = survey.given_up();
                survey = Survey::of_schema(declared(pages, &meant, &findings), Some(former), ctx)?;
                schema = meant;
            }
        }
        Ok(survey)
    }

    /// Passes 2 to 6 under one schema.
    fn of_schema(declared: Declared<'a>, former: Option<Former>, ctx: &Ctx) -> Result<Survey<'a>> {
        let mut walked = pass2_trees::walk(declared, former, ctx)?;
        let mut rowids_settled = false;
        for _ in 1..ROUNDS {
            let scanned = pass3_scan::scan(walked, ctx)?;
            match pass5_restore::restore(scanned, &mut rowids_settled, ctx)? {
                Round::Changed(changed) => walked = changed,
                Round::Settled(scanned) => return pass6_settle::settle(scanned, ctx),
            }
        }
        pass6_settle::settle(pass3_scan::scan(walked, ctx)?, ctx)
    }

    /// Trees of orphaned pages that no object of the schema took, largest first.
    ///
    /// # Errors
    /// Cancellation only.
    pub fn nameless_trees(&self, ctx: &Ctx) -> Result<Vec<Tree>> {
        orphan_trees::find(self, ctx)
    }

    /// What the findings come to.
    #[must_use]
    pub fn class(&self) -> Class {
        verdict::class(&self.findings, &self.catalog)
    }
}
