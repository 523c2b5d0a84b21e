//! Chosen rows whose parent is neither in the copy nor chosen are not restored.

use std::collections::BTreeMap;
use std::path::Path;

use crate::ctx::Ctx;
use crate::error::{Error, Result};
use crate::finding::{Code, Finding};
use crate::format::Fields;
use crate::ids::ObjectId;
use crate::recover::Selection;
use crate::recover::foreign;
use crate::recover::live::RowReader;
use crate::report::model::Class;
use crate::survey::plan::TablePlan;
use crate::survey::{Survey, verdict};
use crate::verbs::examination::{Examination, once};
use crate::verbs::{Inputs, Options, describe};

use super::chosen::Target;
use super::merge::{Extras, Merged, merged};
use super::settle::{Decisions, Refusal, count_how, place_of};
use super::{KEPT, Wanted};

/// Checks the foreign keys of a composed database, and takes out the chosen rows that have no parent in it.
pub(super) fn refuse(
    base: &Survey<'_>,
    aside: &Survey<'_>,
    targets: &[Target<'_>],
    wanted: &Wanted,
    decisions: &mut Decisions,
    composed: &Path,
    options: &Options,
    folder: &Path,
    ctx: &Ctx,
) -> Result<()> {
    let mut wide = ctx.clone();
    wide.limits.findings_per_code = KEPT;
    let inputs = Inputs::at_path(composed);
    let mut plain = options.clone();
    plain.no_hash = true;
    once(&inputs, &plain, Some(folder), &wide, |e| check(e, base, aside, targets, wanted, decisions, folder, &wide, ctx))
}

fn check(
    e: &Examination<'_>,
    base: &Survey<'_>,
    aside: &Survey<'_>,
    targets: &[Target<'_>],
    wanted: &Wanted,
    decisions: &mut Decisions,
    folder: &Path,
    wide: &Ctx,
    ctx: &Ctx,
) -> Result<()> {
    let survey = &e.survey;
    let found = foreign::check(survey, &BTreeMap::new(), wide)?;
    let mut bad = Bad { base, survey, targets, rows: BTreeMap::new() };
    for finding in found.log.kept().iter().filter(|f| f.defect.code != Code::LimitReached) {
        bad.add(finding, &Refusal::new("no-parent", "the row that its foreign key names is not there"));
    }
    let orphans = bad.count();
    // What looks like damage beside the rows that are there is none of them.
    for finding in survey.findings.kept() {
        if describe::class(verdict::class_of(finding.defect.code, finding.site.object, &survey.catalog)) > Class::IndexOnly {
            bad.add(finding, &Refusal::new("looks-damaged", &finding.sentence()));
        }
    }
    let mut taken_out = 0_usize;
    for target in targets {
        let Some(keys) = bad.rows.get(&target.plan.object) else { continue };
        let mut extras = Extras::new(aside, target, wanted, decisions, folder, ctx)?;
        let mut losers: BTreeMap<u64, Refusal> = BTreeMap::new();
        merged(base, target, &mut extras, ctx, |_, what| {
            if let Merged::Chosen(extra) = what
                && let Some(refusal) = keys.get(&extra.key)
            {
                let detail = format!("{}: {}", super::settle::name(target, extra), refusal.detail);
                losers.insert(extra.no, Refusal::new(refusal.kind, &detail));
            }
            Ok(())
        })?;
        let mut places = BTreeMap::new();
        place_of(aside, target, wanted, losers.keys().copied().collect(), &mut places, ctx)?;
        taken_out = taken_out.saturating_add(losers.len());
        for (no, refusal) in losers {
            decisions.refuse(target, no, places.get(&no).copied(), &refusal);
        }
        count_how(aside, target, wanted, decisions, ctx)?;
    }
    let class = describe::class(survey.class());
    if class > Class::IndexOnly && taken_out == 0 {
        let first = survey.findings.kept().first().map(|f| f.sentence()).unwrap_or_default();
        return Err(Error::SelfCheck { what: format!("the composed database is {}: {first}", class.word()) });
    }
    // A row that was replaced may have been the parent of another.
    let before = foreign::check(base, &BTreeMap::new(), ctx)?;
    let sum = |f: &foreign::Foreign| f.orphans.iter().map(|o| o.count).fold(0_u64, u64::saturating_add);
    if wanted.replace && sum(&found) > sum(&before).saturating_add(orphans) {
        return Err(Error::Usage {
            what: "a replaced row is the parent of others; restore without --replace, or choose other rows".to_owned(),
        });
    }
    Ok(())
}

/// Rows of the composed database that may not stay, by the key of their table.
struct Bad<'x, 'a> {
    base: &'x Survey<'a>,
    survey: &'x Survey<'x>,
    targets: &'x [Target<'x>],
    rows: BTreeMap<ObjectId, BTreeMap<Vec<u8>, Refusal>>,
}

impl Bad<'_, '_> {
    /// Notes the row that a finding names, if it is one of a table with chosen rows.
    fn add(&mut self, finding: &Finding, refusal: &Refusal) {
        let survey = self.survey;
        let (Some(page), Some(cell), Some(object)) = (finding.site.page, finding.site.cell, finding.site.object) else { return };
        let Some(of) = survey.catalog.get(object).and_then(|o| self.base.catalog.by_name(o.name.text().as_bytes())) else { return };
        let Some(target) = self.targets.iter().find(|t| t.plan.object == of.id) else { return };
        let Some(plan) = survey.tree_of(object).and_then(|t| plan_of(t.content.as_ref()?)) else { return };
        let all = Selection::default();
        let mut reader = RowReader::new(&survey.pages, plan, &all);
        let Some(row) = reader.at(page, cell.0) else { return };
        let mut key = Vec::new();
        if target.key(&row, &mut Fields::new(), &mut key) {
            self.rows.entry(of.id).or_default().entry(key).or_insert_with(|| refusal.clone());
        }
    }

    fn count(&self) -> u64 {
        self.rows.values().map(BTreeMap::len).fold(0, |s, n| s.saturating_add(crate::ids::wide(n)))
    }
}

fn plan_of(content: &crate::survey::Content) -> Option<&TablePlan> {
    match content {
        crate::survey::Content::Table { plan, .. } => Some(plan),
        crate::survey::Content::Index { .. } => None,
    }
}
