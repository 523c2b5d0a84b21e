//! The rows of a table that enter the copy, in the order of the tree.
//!
//! Tests:    nothing; the survey has judged every row.
//! Collects: the record of each row as it is to be written.
//! Leaves:   rows that the selection excludes, for the salvage database.

use std::collections::{BTreeMap, BTreeSet};

use crate::ctx::Ctx;
use crate::error::Result;
use crate::finding::{Code, RowEffect};
use crate::format::record::{copy_fields, encode_record};
use crate::format::{Cell, Fields, Value};
use crate::ids::PageNo;
use crate::survey::compute::Computer;
use crate::survey::plan::{Constant, Row, TablePlan};
use crate::survey::{TableScan, table::Excluded};
use crate::tree::payload::PayloadReader;
use crate::tree::{Pages, Slot};

/// Which rows of a table are written as they stand, in another form, or not at all.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Rows that are not written, with the reason.
    pub excluded: BTreeMap<(PageNo, u16), Excluded>,
    /// Rows whose record is made anew.
    pub rewritten: BTreeSet<(PageNo, u16)>,
    /// Columns of rows that are written as NULL: a value that UNIQUE does not let stand twice.
    pub nulled: BTreeMap<(PageNo, u16), BTreeSet<usize>>,
}

impl Selection {
    /// What the scan of a table says. With `keep_violations` rows that only break a NOT NULL or a CHECK stay.
    #[must_use]
    pub fn of(scan: &TableScan, keep_violations: bool) -> Selection {
        let keeps = |code: Code| keep_violations && code.problem().row == RowEffect::Violation;
        Selection {
            excluded: scan.excluded.iter().filter(|e| !keeps(e.code)).map(|e| ((e.page, e.cell), *e)).collect(),
            rewritten: scan.rewritten.clone(),
            nulled: BTreeMap::new(),
        }
    }

    /// Whether every row is written as it stands.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.excluded.is_empty() && self.rewritten.is_empty() && self.nulled.is_empty()
    }

    /// Excludes one more row.
    pub fn exclude(&mut self, e: Excluded) {
        self.excluded.entry((e.page, e.cell)).or_insert(e);
    }
}

/// A row as it is written.
#[derive(Debug, Clone, Copy)]
pub struct LiveRow<'r> {
    /// The page of its cell.
    pub page: PageNo,
    /// The cell.
    pub cell: u16,
    /// Its rowid; `None` in a WITHOUT ROWID table.
    pub rowid: Option<i64>,
    /// Its record.
    pub record: &'r [u8],
}

/// Reads rows one by one, in any order; keeps its buffers.
#[derive(Debug)]
pub struct RowReader<'p, 'a> {
    pages: &'p Pages<'a>,
    plan: &'p TablePlan,
    selection: &'p Selection,
    payload: PayloadReader,
    fields: Fields,
    record: Vec<u8>,
}

impl<'p, 'a> RowReader<'p, 'a> {
    /// A reader for the rows of one table.
    #[must_use]
    pub fn new(pages: &'p Pages<'a>, plan: &'p TablePlan, selection: &'p Selection) -> RowReader<'p, 'a> {
        RowReader { pages, plan, selection, payload: PayloadReader::new(), fields: Fields::new(), record: Vec::new() }
    }

    /// The row of a cell as it is written; `None` when it is excluded or does not decode (the survey has noted that).
    pub fn row<'s>(&'s mut self, page: PageNo, no: u16, cell: &Cell<'a>) -> Option<LiveRow<'s>>
    where
        'a: 's,
    {
        let place = (page, no);
        if !self.selection.excluded.is_empty() && self.selection.excluded.contains_key(&place) {
            return None;
        }
        let RowReader { pages, plan, selection, payload, fields, record } = self;
        let payload = payload.read(pages, cell).ok()?;
        let nulled = if selection.nulled.is_empty() { None } else { selection.nulled.get(&place) };
        if nulled.is_none() && (selection.rewritten.is_empty() || !selection.rewritten.contains(&place)) {
            return Some(LiveRow { page, cell: no, rowid: cell.rowid, record: payload });
        }
        fields.read(payload, cell.payload_len).ok()?;
        record.clear();
        if let Some(columns) = nulled {
            let mut with = Vec::new();
            without_values(plan, &Row { rowid: cell.rowid, payload, fields }, columns, &mut with);
            fields.read(&with, crate::ids::wide(with.len())).ok()?;
            rewrite(plan, &Row { rowid: cell.rowid, payload: &with, fields }, record);
            return Some(LiveRow { page, cell: no, rowid: cell.rowid, record });
        }
        rewrite(plan, &Row { rowid: cell.rowid, payload, fields }, record);
        // A generated column may be made from another that had to be computed first.
        let generated = plan.columns.iter().filter(|c| c.generated.is_some() && c.position.is_some()).count();
        for _ in 1..generated {
            let last = std::mem::take(record);
            fields.read(&last, crate::ids::wide(last.len())).ok()?;
            rewrite(plan, &Row { rowid: cell.rowid, payload: &last, fields }, record);
            if *record == last {
                break;
            }
        }
        Some(LiveRow { page, cell: no, rowid: cell.rowid, record })
    }

    /// The row at a place.
    pub fn at<'s>(&'s mut self, page: PageNo, no: u16) -> Option<LiveRow<'s>>
    where
        'a: 's,
    {
        let cell = self.pages.cell(page, no).ok()?;
        self.row(page, no, &cell)
    }
}

/// The record of a row with NULL in these columns.
fn without_values(plan: &TablePlan, row: &Row<'_>, columns: &BTreeSet<usize>, out: &mut Vec<u8>) {
    let positions: BTreeSet<usize> = columns.iter().filter_map(|c| plan.columns.get(*c)?.position).collect();
    let values = row.fields.values(row.payload).enumerate();
    let values: Vec<Value<'_>> = values.map(|(i, v)| if positions.contains(&i) { Value::Null } else { v }).collect();
    encode_record(out, values.iter().copied());
}

/// The record of a row without surplus values and with generated columns computed.
fn rewrite(plan: &TablePlan, row: &Row<'_>, out: &mut Vec<u8>) {
    let fields = row.fields.as_slice();
    let kept = fields.get(..plan.stored.len()).unwrap_or(fields);
    let computer = Computer::new(plan);
    let mut computed: BTreeMap<usize, Constant> = BTreeMap::new();
    for (position, column) in plan.stored.iter().enumerate().take(kept.len()) {
        if plan.columns.get(*column).is_some_and(|c| c.generated.is_some())
            && let Some(value) = computer.column(row, *column)
        {
            computed.insert(position, value);
        }
    }
    if computed.is_empty() {
        copy_fields(out, row.payload, kept);
        return;
    }
    let values = kept.iter().enumerate().map(|(i, f)| match computed.get(&i) {
        Some(value) => value.value(),
        None => f.value(row.payload),
    });
    let values: Vec<Value<'_>> = values.collect();
    encode_record(out, values.iter().copied());
}

/// The rows of a table that are written, in the order of the tree, one at a time: for who reads two tables side by side.
#[derive(Debug)]
pub struct Rows<'p, 'a> {
    slots: std::slice::Iter<'p, Slot>,
    leaf: PageNo,
    /// The cells of the current leaf that are still to come.
    cells: std::vec::IntoIter<(u16, Cell<'a>)>,
    reader: RowReader<'p, 'a>,
}

impl<'p, 'a> Rows<'p, 'a> {
    /// The rows of these slots.
    #[must_use]
    pub fn new(pages: &'p Pages<'a>, slots: &'p [Slot], plan: &'p TablePlan, selection: &'p Selection) -> Rows<'p, 'a> {
        let reader = RowReader::new(pages, plan, selection);
        Rows { slots: slots.iter(), leaf: PageNo::ONE, cells: Vec::new().into_iter(), reader }
    }

    /// Hands the next row to `f`; `None` when there is none left.
    ///
    /// # Errors
    /// Cancellation.
    #[inline]
    pub fn next<R>(&mut self, ctx: &Ctx, mut f: impl FnMut(LiveRow<'_>) -> R) -> Result<Option<R>> {
        let pages = self.reader.pages;
        loop {
            for (i, cell) in self.cells.by_ref() {
                if let Some(row) = self.reader.row(self.leaf, i, &cell) {
                    return Ok(Some(f(row)));
                }
            }
            ctx.check()?;
            match self.slots.next() {
                None => return Ok(None),
                Some(Slot::Hole { .. }) => {}
                Some(Slot::Leaf { page: no, .. }) => {
                    self.leaf = *no;
                    self.cells = pages.cells(*no).map(|(_, cells)| cells).unwrap_or_default().into_iter();
                }
                Some(Slot::Entry { page: no, cell: i }) => {
                    let cell = pages.page(*no).and_then(|p| p.cell(*i, &pages.split));
                    if let Some(row) = cell.ok().and_then(|cell| self.reader.row(*no, *i, &cell)) {
                        return Ok(Some(f(row)));
                    }
                }
            }
        }
    }
}

/// Every row of a table that is written, in the order of the tree.
///
/// # Errors
/// Cancellation, and what `f` returns.
pub fn rows(
    pages: &Pages<'_>,
    slots: &[Slot],
    plan: &TablePlan,
    selection: &Selection,
    ctx: &Ctx,
    mut f: impl FnMut(LiveRow<'_>) -> Result<()>,
) -> Result<()> {
    let mut rows = Rows::new(pages, slots, plan, selection);
    while let Some(done) = rows.next(ctx, &mut f)? {
        done?;
    }
    Ok(())
}
