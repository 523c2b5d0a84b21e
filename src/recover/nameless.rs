//! Trees of pages that no object of the schema reaches: one table each in the salvage database, never mixed.

use crate::ctx::Ctx;
use crate::error::Result;
use crate::finding::{Findings, Site};
use crate::format::Fields;
use crate::format::record::encode_record;
use crate::ids::wide;
use crate::recover::provenance::{How, Trust};
use crate::report::collect;
use crate::report::model::{FREE_PAGE, TableRecovery};
use crate::survey::Survey;
use crate::survey::plan::Constant;
use crate::tree::Tree;
use crate::tree::cells::visit;
use crate::tree::payload::PayloadReader;

/// Columns of one salvage table: SQLite's own default limit.
const MAX_COLUMNS: usize = 2000;

/// A tree without a name.
#[derive(Debug)]
pub(crate) struct Nameless {
    /// The table it becomes, by its root page.
    pub(crate) name: String,
    tree: Tree,
    /// Cells that decode.
    pub(crate) rows: u64,
    width: usize,
    /// Whether its pages are those that the header counts as free and no list names: its rows were deleted.
    free: bool,
}

/// The trees that hold rows, largest first.
///
/// # Errors
/// Cancellation.
pub(crate) fn find(survey: &Survey<'_>, ctx: &Ctx) -> Result<Vec<Nameless>> {
    let mut out = Vec::new();
    let listed =
        wide(survey.orphans.len()).saturating_add(u64::from(survey.freelist.trunks)).saturating_add(u64::from(survey.freelist.leaves));
    let free =
        !survey.freelist.whole && listed == u64::from(survey.header.freelist_count) && survey.trees.iter().all(|t| t.tree.holes() == 0);
    for tree in survey.nameless_trees(ctx)? {
        let mut found = Nameless { name: format!("lost_and_found_{}", tree.root), tree, rows: 0, width: 0, free };
        let (mut rows, mut width) = (0_u64, 0_usize);
        found.each(survey, ctx, |_, fields, _, _| {
            rows = rows.saturating_add(1);
            width = width.max(fields.len()).min(MAX_COLUMNS);
            Ok(())
        })?;
        if rows > 0 {
            found.rows = rows;
            found.width = width;
            out.push(found);
        }
    }
    Ok(out)
}

impl Nameless {
    /// The declaration of its salvage table.
    pub(crate) fn sql(&self) -> String {
        let columns: String = (0..self.width).map(|i| format!(", c{i}")).collect();
        format!(
            "CREATE TABLE \"{}\"(rp_reason, rp_how, rp_trust, rp_source, rp_page, rp_cell, rp_offset, rp_length, rp_rowid{columns})",
            self.name
        )
    }

    fn reason(&self) -> &'static str {
        if self.free { FREE_PAGE } else { "page-without-owner" }
    }

    /// Its entry in the ledger: everything is set aside.
    pub(crate) fn ledger(&self) -> TableRecovery {
        let mut table = TableRecovery { name: self.name.clone(), rows_found: self.rows, ..TableRecovery::default() };
        table.set_aside.insert(self.reason().to_owned(), self.rows);
        table.notes.push(if self.free {
            format!("deleted rows at page {}: the header counts its pages as free, the freelist that named them is damaged", self.tree.root)
        } else {
            format!("rows of a tree at page {} that no object of the schema names", self.tree.root)
        });
        table
    }

    /// The records of its salvage table.
    ///
    /// # Errors
    /// Cancellation, and what `f` returns.
    pub(crate) fn records(&self, survey: &Survey<'_>, ctx: &Ctx, mut f: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let e = survey.encoding;
        let text = |s: &str| Constant::Text(e.from_utf8(s.as_bytes()).into_owned());
        let mut record = Vec::new();
        self.each(survey, ctx, |payload, fields, at, rowid| {
            let mut values = vec![
                text(self.reason()),
                text(if self.free { How::FreePage.word() } else { How::LostPage.word() }),
                text(Trust::Plausible.word()),
                text(&collect::origin(survey.pages.origin(at.page))),
                Constant::Int(i64::from(at.page.get())),
                Constant::Int(i64::from(at.no)),
                Constant::Int(i64::from(at.cell.at)),
                Constant::Int(i64::from(at.cell.len)),
                rowid.map_or(Constant::Null, Constant::Int),
            ];
            values.extend((0..self.width).map(|i| fields.value(payload, i).map_or(Constant::Null, Constant::from)));
            record.clear();
            encode_record(&mut record, values.iter().map(Constant::value));
            f(&record)
        })
    }

    fn each(
        &self,
        survey: &Survey<'_>,
        ctx: &Ctx,
        mut f: impl FnMut(&[u8], &Fields, &crate::tree::cells::CellAt<'_>, Option<i64>) -> Result<()>,
    ) -> Result<()> {
        let mut reader = PayloadReader::new();
        let mut fields = Fields::new();
        visit(&survey.pages, &self.tree.slots, Site::default(), false, &mut Findings::new(0), ctx, |_, at| {
            let Ok(payload) = reader.read(&survey.pages, &at.cell) else { return Ok(()) };
            if fields.read(payload, at.cell.payload_len).is_err() || u64::from(fields.body_end()) != at.cell.payload_len {
                return Ok(());
            }
            f(payload, &fields, &at, at.cell.rowid)
        })?;
        Ok(())
    }
}
