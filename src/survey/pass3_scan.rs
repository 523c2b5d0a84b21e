//! Pass 3: what every tree holds, and what no tree has.
//!
//! Tests:    every cell, every row against its declaration, the order of every tree, overflow chains, the freelist.
//! Collects: for each tree its sums, excluded rows and damaged pages; the freelist; orphans.
//! Leaves:   indexes against their tables; whose the orphans are.

use crate::ctx::Ctx;
use crate::error::Result;
use crate::finding::Findings;
use crate::ids::{PageNo, wide};
use crate::schema::ObjectKind;
use crate::survey::freelist;
use crate::survey::index_fit::IndexFit;
use crate::survey::rows::plan::{IndexPlan, TablePlan};
use crate::survey::scans::{index, table};
use crate::survey::stages::{Content, Known, Reading, Scanned, SurveyedTree, Walked, WalkedTree};
use crate::tree::{Claims, Role};

/// Reads every tree that was not read, or not as it is now.
///
/// # Errors
/// Cancellation only.
pub(super) fn scan<'a>(walked: Walked<'a>, ctx: &Ctx) -> Result<Scanned<'a>> {
    let Walked { mut known, mut trees } = walked;
    let slots = |trees: &[WalkedTree]| trees.iter().filter(|t| t.reading.is_none()).map(|t| wide(t.tree.slots.len())).sum();
    ctx.progress.phase("read pages", slots(&trees));
    known.contested = !read_due(&known, &mut trees, true, ctx)?;
    if known.contested {
        // Overflow chains contest pages: which one has them must not depend on which worker was first.
        known.claims.release_all(Role::Overflow);
        for t in &mut trees {
            t.reading = None;
        }
        read_due(&known, &mut trees, false, ctx)?;
    }
    let mut findings = known.walked.clone();
    let mut read = Vec::with_capacity(trees.len());
    for WalkedTree { object, tree, reading } in trees {
        let Reading { content, log } = reading.unwrap_or_else(|| Reading { content: None, log: Findings::new(findings.cap()) });
        findings.merge(log.clone());
        read.push(SurveyedTree { object, tree, content, log, due: false });
    }
    let (trunk, count) = (known.header.freelist_trunk, known.header.freelist_count);
    let mut freelist = freelist::walk(&known.pages, trunk, count, &known.claims, &mut findings, ctx)?;
    let orphans = orphans(known.pages.count(), &known.claims);
    let freed = freelist.forgotten(&known.pages, &known.claims, &orphans, &mut findings);
    Ok(Scanned { known, trees: read, freelist, orphans, freed, findings })
}

/// Reads the trees that are due; `false` when chains contested pages, so that nothing of it can be kept.
fn read_due(known: &Known<'_>, trees: &mut [WalkedTree], parallel: bool, ctx: &Ctx) -> Result<bool> {
    for t in trees.iter_mut().filter(|t| t.reading.is_none()) {
        let reading = read_tree(known, t, parallel, ctx)?;
        let contested = match &reading.content {
            Some(Content::Table { scan, .. }) => scan.contested,
            Some(Content::Index { scan, .. }) => scan.contested,
            None => false,
        };
        if contested && parallel {
            return Ok(false);
        }
        t.reading = Some(reading);
    }
    Ok(true)
}

fn read_tree(known: &Known<'_>, t: &WalkedTree, parallel: bool, ctx: &Ctx) -> Result<Reading> {
    let mut log = Findings::new(known.walked.cap());
    let Some(object) = known.catalog.get(t.object) else { return Ok(Reading { content: None, log }) };
    let (pages, claims) = (&known.pages, &known.claims);
    let content = if let Some(plan) = TablePlan::compile(&known.catalog, object, known.encoding) {
        let scan = table::scan(pages, &t.tree, &plan, claims, parallel, &mut log, ctx)?;
        Some(Content::Table { plan: Box::new(plan), scan })
    } else if object.kind == ObjectKind::Index {
        let plan = IndexPlan::compile(object).unwrap_or_else(|| IndexPlan::unknown(object.id, object.name.text()));
        let scan = index::scan(pages, &t.tree, &plan, known.encoding, claims, parallel, &mut log, ctx)?;
        Some(Content::Index { plan, scan, fit: IndexFit::Unknown })
    } else {
        None
    };
    Ok(Reading { content, log })
}

/// The pages of a file that nothing claims.
fn orphans(count: u32, claims: &Claims) -> Vec<PageNo> {
    let mut out = Vec::new();
    let mut at = Some(PageNo::ONE);
    while let Some(no) = at.filter(|no| no.get() <= count) {
        if claims.role(no) == Role::Orphan {
            out.push(no);
        }
        at = no.next();
    }
    out
}
