//! How the records of a tree are read, and how well those of a page fit it.

use crate::format::{Encoding, Fields, Value};
use crate::ids::{ObjectId, PageNo};
use crate::schema::Catalog;
use crate::survey::rows::judge::{fits_declaration, is_natural};
use crate::survey::rows::plan::{IndexPlan, Row, TablePlan};
use crate::tree::Pages;
use crate::tree::payload::PayloadReader;

/// Rows of a page that are looked at to tell whose it is.
const SAMPLE: usize = 64;

/// How a tree reads what an orphan holds.
pub(in crate::survey) enum Reader {
    /// A table by its declaration.
    Table(Box<TablePlan>),
    /// An index by its layout.
    Index(IndexPlan),
}

impl Reader {
    /// The key by which its records are in order; none for a rowid table.
    pub(in crate::survey) fn key(&self) -> Option<&IndexPlan> {
        match self {
            Reader::Table(plan) => plan.key.as_ref(),
            Reader::Index(plan) => Some(plan),
        }
    }

    /// Whether a record can be one of the tree by its shape.
    pub(in crate::survey) fn fits(&self, row: &Row<'_>) -> bool {
        match self {
            Reader::Table(plan) => fits_declaration(plan, row),
            Reader::Index(plan) => {
                let last = row.fields.values(row.payload).last();
                self.is_full(row) && (!plan.by_rowid() || matches!(last, Some(Value::Int(_))))
            }
        }
    }

    /// Whether the values of a record are of the classes that the columns are named for.
    fn is_natural(&self, row: &Row<'_>) -> bool {
        match self {
            Reader::Table(plan) => is_natural(plan, row),
            Reader::Index(_) => true,
        }
    }

    /// Whether a record has as many values as the tree has columns.
    pub(in crate::survey) fn is_full(&self, row: &Row<'_>) -> bool {
        row.fields.len()
            == match self {
                Reader::Table(plan) => plan.stored.len(),
                Reader::Index(plan) => plan.columns.len(),
            }
    }
}

/// How the tree of an object is read; `None` when nothing says it.
pub(in crate::survey) fn reader_of(catalog: &Catalog, object: ObjectId, encoding: Encoding) -> Option<Reader> {
    let object = catalog.get(object)?;
    match TablePlan::compile(catalog, object, encoding) {
        Some(plan) => Some(Reader::Table(Box::new(plan))),
        None => Some(Reader::Index(IndexPlan::compile(object)?)),
    }
}

/// How well the records of a leaf fit a tree, 0 to 350; `None` when they do not.
pub(in crate::survey) fn shape_of_page(pages: &Pages<'_>, reader: &Reader, no: PageNo) -> Option<u32> {
    let page = pages.leaf(no).ok()?;
    let mut payloads = PayloadReader::new();
    let mut fields = Fields::new();
    let (mut seen, mut good, mut full, mut natural) = (0_u32, 0_u32, 0_u32, 0_u32);
    for (_, cell) in page.cells(pages.split).take(SAMPLE) {
        let Ok(cell) = cell else { continue };
        seen = seen.saturating_add(1);
        let Ok(payload) = payloads.read(pages, &cell) else { continue };
        if fields.read(payload, cell.payload_len).is_err() || fields.reserved().is_some() {
            continue;
        }
        let row = Row { rowid: cell.rowid, payload, fields: &fields };
        let (fits, whole) = (reader.fits(&row), reader.is_full(&row));
        good = good.saturating_add(u32::from(fits));
        full = full.saturating_add(u32::from(fits && whole));
        natural = natural.saturating_add(u32::from(fits && reader.is_natural(&row)));
    }
    // Nine of ten: a damaged cell must not cost the leaf.
    if seen == 0 || good.saturating_mul(10) < seen.saturating_mul(9) {
        return None;
    }
    let share = |n: u32| n.saturating_mul(100).checked_div(seen).unwrap_or(0);
    let typed = match reader {
        Reader::Table(plan) => u32::try_from(plan.columns.iter().filter(|c| c.not_null).count()).unwrap_or(0).min(50),
        Reader::Index(_) => 0,
    };
    Some(share(good).saturating_add(share(full)).saturating_add(share(natural)).saturating_add(typed))
}
