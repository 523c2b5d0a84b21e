//! Rows that are no longer live, or not in this form: deleted, older, cut, each with the place it was found at.
//!
//! Tests:    every byte of every image of every page that no live cell has: freeblocks, gaps, free and lost pages, pages of
//!           earlier states in the log and the journal.
//! Collects: rows with their table, their values as far as they are there, and every place that holds them.
//! Leaves:   the decision to take any of them back: nothing that is carved enters a copy by itself.
//!
//! The order of work: `declared` says what rows look like, `leaf` finds them on one image of a page (`heads` where a
//! freeblock took the first bytes of a cell, `chain` where they go on elsewhere), `pages` goes over all images, `fold`
//! folds doubles and compares with what is `live`.
#![expect(
    clippy::arithmetic_side_effects,
    reason = "computes on bits, on offsets within one page and on counts of its own; numbers of the evidence are added saturating"
)]

pub mod blob;
mod chain;
mod declared;
mod fit;
pub(crate) mod fold;
pub(crate) mod found;
mod heads;
mod hints;
mod leaf;
mod live;
mod pages;
pub(crate) mod salvage;
mod shape;
mod spans;
pub mod text;
pub(crate) mod watched;

use std::path::Path;

pub use fold::{Relation, Sums};
pub use found::Source;

use crate::carve::fold::Carved;
use crate::carve::shape::{Of, Shape};
use crate::ctx::Ctx;
use crate::error::{Error, Result};
use crate::evidence::View;
use crate::format::{Encoding, Fields, Value};
use crate::ids::wide;
use crate::recover::How;
use crate::survey::plan::Row;
use crate::survey::{Content, Survey, TablePlan};

/// A table whose rows follow.
#[derive(Debug)]
pub struct CarvedTable<'t> {
    /// A number that no other table of the run has.
    pub no: usize,
    /// Its name.
    pub name: &'t str,
    /// The names of its columns that are stored, as declared.
    pub columns: Vec<&'t str>,
    /// The encoding of its texts.
    pub encoding: Encoding,
    /// The CREATE text of a table that the schema no longer has.
    pub dropped: Option<&'t str>,
}

/// A row as outputs show it.
#[derive(Debug)]
pub struct CarvedRow<'r> {
    /// What it is to the live rows.
    pub relation: Relation,
    /// How it was found.
    pub how: How,
    /// How far it can be trusted, in a word.
    pub trust: &'static str,
    /// The file and the image in it.
    pub source: String,
    /// The kind of place.
    pub place: String,
    /// The page.
    pub page: u32,
    /// The first byte on the page.
    pub offset: u32,
    /// Bytes there.
    pub length: u32,
    /// Every value is known.
    pub complete: bool,
    /// Its rowid, where that is known.
    pub rowid: Option<i64>,
    /// Readings of its head that are about as good.
    pub solutions: u32,
    /// Further places that hold it.
    pub more: &'r [String],
    /// Other tables that it fits about as well.
    pub candidates: Vec<&'r str>,
    /// What of it is gone, or which index it is known from.
    pub gone: String,
    /// By column; `None`: not known.
    pub values: Vec<Option<Value<'r>>>,
    /// Values behind the last column.
    pub surplus: Vec<Value<'r>>,
}

/// Receives tables and their rows in order.
pub trait CarveSink: Send {
    /// A table begins.
    ///
    /// # Errors
    /// When it cannot be written.
    fn begin_table(&mut self, table: &CarvedTable<'_>) -> Result<()>;

    /// A row of that table.
    ///
    /// # Errors
    /// When it cannot be written.
    fn row(&mut self, row: &CarvedRow<'_>) -> Result<()>;

    /// Nothing more follows.
    ///
    /// # Errors
    /// When what was buffered cannot be written.
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

/// What became of one table.
#[derive(Debug, Clone)]
pub struct TableSums {
    /// Its name.
    pub name: String,
    /// Its number, as [`CarvedTable::no`].
    pub no: usize,
    /// The object in the catalog; `None` for a table that is gone.
    pub object: Option<u32>,
    /// Live rows.
    pub live: u64,
    /// What was found of it.
    pub sums: Sums,
    /// The CREATE text of a table that is gone.
    pub dropped: Option<String>,
    /// Where that text was found.
    pub place: Option<String>,
}

/// What a run of carving came to.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Tables in the order of the schema, then those that are gone.
    pub tables: Vec<TableSums>,
    /// What the file says of how rows were deleted.
    pub hints: Vec<String>,
}

impl Outcome {
    /// Rows that were given out.
    #[must_use]
    pub fn rows(&self) -> u64 {
        let of = |s: &Sums| [s.deleted, s.older, s.unknown, s.partial, s.index_only].into_iter().fold(0, u64::saturating_add);
        self.tables.iter().map(|t| of(&t.sums)).fold(0, u64::saturating_add)
    }
}

/// The name of a shape's table in outputs.
fn name_of(shape: &Shape) -> &str {
    &shape.plan.name
}

/// The columns that records have, as declared.
fn columns(plan: &TablePlan) -> Vec<usize> {
    (0..plan.columns.len()).filter(|c| plan.columns.get(*c).is_some_and(|c| c.position.is_some())).collect()
}

/// Carves a state of the evidence. With `only`, rows of that table alone are given out. Temporary files go to `folder`.
///
/// # Errors
/// `Usage` for an unknown table; I/O, cancellation, what the sink returns.
pub fn carve(
    survey: &Survey<'_>,
    view: &View<'_>,
    only: Option<&str>,
    folder: &Path,
    sink: &mut dyn CarveSink,
    ctx: &Ctx,
) -> Result<Outcome> {
    let shapes = declared::live(survey, ctx)?;
    let mut carver = pages::Carver::new(survey, view, shapes);
    let dropped = declared::dropped(&mut carver, ctx)?;
    declared::learn_from_finds(&mut carver, ctx)?;
    if let Some(name) = only
        && !carver.shapes.all.iter().any(|s| s.plan.name.eq_ignore_ascii_case(name))
    {
        return Err(Error::Usage { what: format!("no table {name:?}, neither in the schema nor among those that are gone") });
    }
    let mut current: Option<usize> = None;
    let sums = fold::run(&carver, folder, ctx, |row| {
        let Some(shape) = carver.shapes.all.get(row.found.shape) else { return Ok(()) };
        if only.is_some_and(|name| !shape.plan.name.eq_ignore_ascii_case(name)) {
            return Ok(());
        }
        let columns = columns(&shape.plan);
        if current != Some(row.found.shape) {
            current = Some(row.found.shape);
            let text = match shape.of {
                Of::Dropped(i) => dropped.get(i).map(|d| d.sql.as_str()),
                _ => None,
            };
            sink.begin_table(&CarvedTable {
                no: row.found.shape,
                name: name_of(shape),
                columns: columns.iter().filter_map(|c| shape.plan.columns.get(*c)).map(|c| c.name.as_str()).collect(),
                encoding: survey.encoding,
                dropped: text,
            })?;
        }
        give(&carver, shape, &columns, &row, sink)
    })?;
    sink.finish()?;
    let mut out = Outcome { tables: Vec::new(), hints: hints::find(survey, &carver.shapes.all, &sums) };
    for (no, (shape, sums)) in carver.shapes.all.iter().zip(&sums).enumerate() {
        let (object, dropped) = match shape.of {
            Of::Table(object) => (Some(object), None),
            Of::Dropped(i) => (None, dropped.get(i)),
            Of::Index(..) | Of::DroppedIndex(..) => continue,
        };
        if !shape.reported || (only.is_some_and(|name| !shape.plan.name.eq_ignore_ascii_case(name))) {
            continue;
        }
        let live = object.and_then(|o| survey.tree_of(o)).map_or(0, |t| match &t.content {
            Some(Content::Table { scan, .. }) => scan.rows,
            _ => 0,
        });
        out.tables.push(TableSums {
            no,
            name: name_of(shape).to_owned(),
            object: object.map(|o| o.0),
            live,
            sums: *sums,
            dropped: dropped.map(|d| d.sql.clone()),
            place: dropped.map(|d| d.place.clone()),
        });
    }
    Ok(out)
}

/// Hands a row to the sink.
fn give(carver: &pages::Carver<'_, '_>, shape: &Shape, columns: &[usize], row: &Carved, sink: &mut dyn CarveSink) -> Result<()> {
    let found = &row.found;
    let mut fields = Fields::new();
    let _partial = fields.read(&found.payload, if found.complete { wide(found.payload.len()) } else { 0x7fff_ffff });
    let view = Row { rowid: found.rowid, payload: &found.payload, fields: &fields };
    let value = |c: &usize| -> Option<Value<'_>> {
        if shape.plan.alias == Some(*c) {
            return found.rowid.map(Value::Int);
        }
        let position = shape.plan.columns.get(*c)?.position?;
        match found.known.get(position) {
            Some(true) => shape.plan.raw_value(&view, *c),
            Some(false) => None,
            // A whole record that ends before the column was written before the column was added.
            None => found.complete.then(|| shape.plan.raw_value(&view, *c)).flatten(),
        }
    };
    let gone = if found.index.is_empty() { found.gone.clone() } else { format!("all but what index {} holds", found.index) };
    let place = &found.place;
    let candidates = found.others.iter().filter_map(|o| carver.shapes.all.get(crate::ids::idx(*o))).map(name_of).collect();
    sink.row(&CarvedRow {
        relation: row.relation,
        how: if found.index.is_empty() { place.how() } else { How::IndexOnly },
        trust: found.trust.word(),
        source: crate::report::collect::origin(place.origin),
        place: format!("{}, {}", place.source.word(), place.spot.word()),
        page: place.page.get(),
        offset: place.at,
        length: place.len,
        complete: found.complete,
        rowid: found.rowid,
        solutions: found.solutions,
        more: &row.more,
        candidates,
        gone,
        values: columns.iter().map(value).collect(),
        surplus: fields.values(&found.payload).skip(shape.plan.stored.len()).collect(),
    })
}
