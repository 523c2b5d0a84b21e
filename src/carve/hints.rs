//! What the file itself says of how rows were deleted.

use crate::carve::fold::Sums;
use crate::carve::shape::{Of, Shape};
use crate::ids::{PageNo, wide};
use crate::survey::plan::Row;
use crate::survey::{Content, Role, Survey};
use crate::tree::payload::PayloadReader;

/// Leaves whose free bytes are looked at.
const LOOKED_AT: usize = 2000;

/// Hints in sentences; only what the bytes show.
pub(crate) fn find(survey: &Survey<'_>, shapes: &[Shape], sums: &[Sums]) -> Vec<String> {
    let mut out = Vec::new();
    wiped(survey, &mut out);
    free_pages(survey, &mut out);
    for (shape, sums) in shapes.iter().zip(sums) {
        if let Of::Table(object) = shape.of
            && shape.reported
        {
            sequence(survey, shape, object, sums, &mut out);
        }
    }
    out
}

/// Free bytes on leaves that are all zero: `secure_delete`, or nothing was ever deleted there.
fn wiped(survey: &Survey<'_>, out: &mut Vec<String>) {
    let (mut blocks, mut zeroed) = (0_u64, 0_u64);
    let leaves = survey.trees.iter().flat_map(|t| t.tree.leaves());
    for no in leaves.take(LOOKED_AT) {
        let Ok(page) = survey.pages.leaf(no) else { continue };
        for (at, len) in page.freeblocks().map_while(|b| b.ok()) {
            if len < 8 {
                continue;
            }
            let start = crate::ids::idx(at).saturating_add(4);
            let body = page.bytes().get(start..crate::ids::idx(at.saturating_add(len))).unwrap_or_default();
            blocks = blocks.saturating_add(1);
            if body.iter().all(|b| *b == 0) {
                zeroed = zeroed.saturating_add(1);
            }
        }
    }
    if blocks >= 4 && zeroed.saturating_mul(10) >= blocks.saturating_mul(9) {
        out.push(format!("{zeroed} of {blocks} freeblocks hold zeros only: rows were deleted with secure_delete on"));
    }
}

/// Free pages: how many, and how many of them are wiped.
fn free_pages(survey: &Survey<'_>, out: &mut Vec<String>) {
    let (mut free, mut zeroed) = (0_u64, 0_u64);
    for no in (1..=survey.pages.count()).filter_map(PageNo::new) {
        if survey.claims.role(no) != Role::FreelistLeaf {
            continue;
        }
        free = free.saturating_add(1);
        if survey.pages.usable_bytes(no).iter().all(|b| *b == 0) {
            zeroed = zeroed.saturating_add(1);
        }
    }
    if free > 0 && zeroed == free {
        out.push(format!("all {free} free pages hold zeros only: they were wiped when they became free (secure_delete)"));
    }
    if survey.freelist.trunks == 0 && survey.header.change_counter > 1 && survey.header.largest_root == 0 {
        out.push("the freelist is empty: no page became free since the file was made or last vacuumed, or all were used again".to_owned());
    }
}

/// A rowid that AUTOINCREMENT has given out and that no live row has.
fn sequence(survey: &Survey<'_>, shape: &Shape, object: crate::ids::ObjectId, sums: &Sums, out: &mut Vec<String>) {
    let Some(table) = survey.catalog.by_name(b"sqlite_sequence") else { return };
    let Some(tree) = survey.tree_of(table.id) else { return };
    let Some(Content::Table { plan, .. }) = &tree.content else { return };
    let Some(t) = survey.tree_of(object) else { return };
    let Some(Content::Table { scan, .. }) = &t.content else { return };
    let mut reader = PayloadReader::new();
    let mut fields = crate::format::Fields::new();
    for no in tree.tree.leaves().take(64) {
        for (_, cell) in survey.pages.cells(no).map(|(_, cells)| cells).unwrap_or_default() {
            let Ok(payload) = reader.read(&survey.pages, &cell) else { continue };
            if fields.read(payload, cell.payload_len).is_err() {
                continue;
            }
            let row = Row { rowid: cell.rowid, payload, fields: &fields };
            let name = plan.raw_value(&row, 0).and_then(crate::format::Value::as_text);
            let Some(given) = plan.raw_value(&row, 1).and_then(crate::format::Value::as_int) else { continue };
            if name.is_none_or(|n| survey.encoding.to_utf8(n) != shape.plan.name.as_bytes()) {
                continue;
            }
            let rows = i64::try_from(scan.rows).unwrap_or(i64::MAX);
            let last = scan.last_rowid().unwrap_or(0);
            if given > last {
                out.push(format!(
                    "{}: sqlite_sequence has given out rowid {given}, the highest live one is {last}: rows from the end were deleted",
                    shape.plan.name
                ));
            } else if given > rows {
                let missing = wide(usize::try_from(given.saturating_sub(rows)).unwrap_or(0));
                let found = sums.deleted.saturating_add(sums.unknown);
                out.push(format!(
                    "{}: {given} rowids were given out, {rows} are live: up to {missing} rows were deleted, {found} of them were found",
                    shape.plan.name
                ));
            }
        }
    }
}
