//! Pass 6: the last word on every row, page and index.
//!
//! Tests:    rows that came back against whole indexes, the bytes of interior pages, the pointer map, every index against its
//!           table, rowids against their place.
//! Collects: rows that are set aside; what all indexes come to; orphans by page.
//! Leaves:   words to the report, rows to recovery.

mod deleted;
mod phantoms;

use rayon::prelude::*;

use crate::ctx::Ctx;
use crate::error::Result;
use crate::finding::{Code, Defect, Findings, Site};
use crate::survey::scans::table::Excluded;
use crate::survey::stages::{Content, Scanned, Survey};
use crate::survey::{pass4_compare, pointer_map};
use crate::tree::Tree;
use crate::tree::cells::account_interior;

/// Settles everything once nothing comes back any more.
///
/// # Errors
/// Cancellation only.
pub(super) fn settle<'a>(mut scanned: Scanned<'a>, ctx: &Ctx) -> Result<Survey<'a>> {
    let Scanned { known, orphans, findings, .. } = &mut scanned;
    for no in orphans {
        findings.add(Defect::new(Code::PageWithoutOwner, 0, u64::from(no.get()), 0), known.pages.site(Site::default(), *no));
    }
    for (defect, site) in std::mem::take(&mut known.noted) {
        findings.add(defect, site);
    }
    deleted::set_aside(&mut scanned, ctx)?;
    interiors(&mut scanned, ctx)?;
    if scanned.header.largest_root != 0 {
        let Scanned { known, trees, findings, .. } = &mut scanned;
        let trees: Vec<&Tree> = trees.iter().map(|t| &t.tree).collect();
        pointer_map::compare(&known.pages, &trees, &known.adopted, findings, ctx)?;
    }
    let disputes = pass4_compare::indexes(&mut scanned, ctx)?;
    phantoms::set_aside(&mut scanned, ctx)?;
    overwritten(&mut scanned);
    ctx.progress.finish();
    let findings = std::mem::replace(&mut scanned.findings, Findings::new(0));
    Ok(Survey { scanned, disputes, findings })
}

/// Accounts for the bytes of every interior page.
fn interiors(survey: &mut Scanned<'_>, ctx: &Ctx) -> Result<()> {
    for t in &survey.trees {
        ctx.check()?;
        let site = Site::object(t.object);
        let pages = &survey.known.pages;
        let cap = survey.findings.cap();
        let parts: Vec<Findings> = t
            .tree
            .interiors
            .par_chunks(64)
            .map(|chunk| {
                let mut log = Findings::new(cap);
                for (no, _) in chunk {
                    account_interior(pages, *no, site, &mut log);
                }
                log
            })
            .collect();
        for part in parts {
            survey.findings.merge(part);
        }
    }
    Ok(())
}

/// Sets rows aside whose text was overwritten together with other cells of their leaf.
fn overwritten(survey: &mut Scanned<'_>) {
    for t in &mut survey.trees {
        let Some(Content::Table { scan, .. }) = &mut t.content else { continue };
        for (page, cell, rowid) in scan.overwritten() {
            t.due = true;
            scan.excluded.push(Excluded { page, cell, rowid, code: Code::TextNotDecodable, got: 0 });
            scan.rows = scan.rows.saturating_sub(1);
        }
    }
}
