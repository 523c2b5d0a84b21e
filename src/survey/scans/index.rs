//! The scan of an index tree: order, uniqueness, and the sum of its entries to compare with the table's.

use rayon::prelude::*;

use crate::ctx::Ctx;
use crate::error::Result;
use crate::finding::{Code, Defect, Findings, Site};
use crate::format::Fields;
use crate::ids::{PageNo, wide};
use crate::survey::rows::entry::{EntryHash, EntrySum};
use crate::survey::rows::key::KeyOrder;
use crate::survey::rows::plan::IndexPlan;
use crate::tree::cells::{CellAt, visit};
use crate::tree::payload::PayloadReader;
use crate::tree::{Claims, Owner, Pages, Role, Slot, Tree};

const RUN: usize = 512;

/// What the scan of an index found.
#[derive(Debug, Clone, Default)]
pub struct IndexScan {
    /// Entries that decode.
    pub sum: EntrySum,
    /// Whether all entries are in order, as far as their collations are known.
    pub ordered: bool,
    /// Entries that do not decode.
    pub broken: u64,
    /// Pairs of entries that are the same under UNIQUE.
    pub duplicates: u64,
    /// Pages with a finding of their structure.
    pub damaged: Vec<PageNo>,
    /// As for a table.
    pub contested: bool,
    first: Option<Vec<u8>>,
    last: Option<Vec<u8>>,
}

/// Scans an index, in parallel, or on one thread where chains contest pages.
///
/// # Errors
/// Cancellation only.
pub fn scan(
    pages: &Pages<'_>,
    tree: &Tree,
    plan: &IndexPlan,
    encoding: crate::format::Encoding,
    claims: &Claims,
    parallel: bool,
    log: &mut Findings,
    ctx: &Ctx,
) -> Result<IndexScan> {
    let order = KeyOrder::new(plan, encoding);
    let part = |slots: &[Slot]| -> Result<(IndexScan, Findings)> {
        let mut findings = Findings::new(log.cap());
        let scan = scan_run(pages, tree.owner, slots, plan, &order, claims, &mut findings, ctx)?;
        ctx.progress.advance(wide(slots.len()));
        Ok((scan, findings))
    };
    let parts: Vec<(IndexScan, Findings)> = if parallel && tree.slots.len() > RUN {
        tree.slots.par_chunks(RUN).map(part).collect::<Result<_>>()?
    } else {
        tree.slots.chunks(RUN).map(part).collect::<Result<_>>()?
    };
    let mut whole = IndexScan { ordered: true, ..IndexScan::default() };
    let mut order = order;
    let (mut left, mut right) = (Fields::new(), Fields::new());
    for (part, findings) in parts {
        log.merge(findings);
        if let (Some(a), Some(b)) = (&whole.last, &part.first) {
            if !order.ascends(a, b) {
                whole.ordered = false;
                log.add(Defect::new(Code::IndexOrder, 0, 0, 0), Site::object(plan.object));
            }
            let both = left.read(a, wide(a.len())).is_ok() && right.read(b, wide(b.len())).is_ok();
            if both && order.same_unique(a, &left, b, &right) {
                whole.duplicates = whole.duplicates.saturating_add(1);
                log.add(Defect::new(Code::UniqueBroken, 0, 0, 0), Site::object(plan.object));
            }
        }
        whole.sum.merge(part.sum);
        whole.ordered &= part.ordered;
        whole.broken = whole.broken.saturating_add(part.broken);
        whole.duplicates = whole.duplicates.saturating_add(part.duplicates);
        whole.damaged.extend(part.damaged);
        whole.contested |= part.contested;
        if whole.first.is_none() {
            whole.first = part.first;
        }
        if part.last.is_some() {
            whole.last = part.last;
        }
    }
    Ok(whole)
}

fn scan_run(
    pages: &Pages<'_>,
    owner: Owner,
    slots: &[Slot],
    plan: &IndexPlan,
    order: &KeyOrder,
    claims: &Claims,
    log: &mut Findings,
    ctx: &Ctx,
) -> Result<IndexScan> {
    let mut scan = IndexScan { ordered: true, ..IndexScan::default() };
    let mut reader = PayloadReader::new();
    let (mut fields, mut last_fields) = (Fields::new(), Fields::new());
    let mut last: Vec<u8> = Vec::new();
    let mut any = false;
    let site = Site::object(plan.object);
    let seen = visit(pages, slots, site, true, log, ctx, |log, at: CellAt<'_>| {
        let here = pages.site(site, at.page).cell(at.no);
        let payload = match reader.read_claiming(pages, &at.cell, |page| claims.claim(page, owner, Role::Overflow).is_ok()) {
            Ok(payload) => payload,
            Err(d) => {
                scan.contested |= d.code == Code::OverflowShared;
                scan.broken = scan.broken.saturating_add(1);
                log.add(d, here);
                return Ok(());
            }
        };
        if let Err(d) = fields.read(payload, at.cell.payload_len) {
            scan.broken = scan.broken.saturating_add(1);
            log.add(d, here);
            return Ok(());
        }
        if let Some(serial) = fields.reserved() {
            log.add(Defect::new(Code::SerialTypeReserved, 0, serial, 0), here);
        }
        if fields.len() != plan.columns.len() {
            scan.broken = scan.broken.saturating_add(1);
            let code = if fields.len() < plan.columns.len() { Code::FewerKeyValues } else { Code::MoreValuesThanColumns };
            log.add(Defect::new(code, 0, wide(fields.len()), wide(plan.columns.len())), here);
            return Ok(());
        }
        if u64::from(fields.body_end()) < at.cell.payload_len {
            scan.broken = scan.broken.saturating_add(1);
            log.add(Defect::new(Code::BodyLong, 0, at.cell.payload_len, u64::from(fields.body_end())), here);
            return Ok(());
        }
        scan.sum.add(fields.values(payload).fold(EntryHash::default(), EntryHash::add));
        if any {
            if order.compare(&last, &last_fields, payload, &fields).is_some_and(|o| o.is_ge()) {
                scan.ordered = false;
                log.add(Defect::new(Code::IndexOrder, at.cell.at, u64::from(at.no), 0), here);
            }
            if order.same_unique(&last, &last_fields, payload, &fields) {
                scan.duplicates = scan.duplicates.saturating_add(1);
                log.add(Defect::new(Code::UniqueBroken, at.cell.at, u64::from(at.no), 0), here);
            }
        } else {
            scan.first = Some(payload.to_vec());
        }
        any = true;
        last.clear();
        last.extend_from_slice(payload);
        std::mem::swap(&mut last_fields, &mut fields);
        Ok(())
    })?;
    if any {
        scan.last = Some(last);
    }
    scan.damaged = seen.damaged;
    Ok(scan)
}
