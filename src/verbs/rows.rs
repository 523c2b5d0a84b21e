//! `rows`: live rows straight from the evidence.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::ctx::Ctx;
use crate::error::{Error, Result};
use crate::format::{Fields, Value};
use crate::ids::{ObjectId, wide};
use crate::recover::Selection;
use crate::recover::live;
use crate::recover::provenance::How;
use crate::report::Report;
use crate::report::collect;
use crate::report::export::{ColumnInfo, Place, Redacted, RowSink, RowView, TableInfo, WithPlaces};
use crate::report::model::Verb;
use crate::schema::ObjectKind;
use crate::survey::compute::Computer;
use crate::survey::plan::{Constant, Row, TablePlan};
use crate::survey::{Content, Survey};
use crate::verbs::examination::{once, steady};
use crate::verbs::{Inputs, Options};

/// Streams the live rows of one table, or of all. The report says what `check` says.
///
/// # Errors
/// As `check`; an unknown table; whatever the sink returns. What the sink has been given cannot be taken
/// back: there is no second run when an input changed after its first table.
pub fn rows(inputs: &Inputs, options: &Options, table: Option<&str>, sink: &mut dyn RowSink, ctx: &Ctx) -> Result<Report> {
    let given = AtomicBool::new(false);
    steady(ctx, Some(&given), || {
        once(inputs, options, None, ctx, |e| {
            given.store(true, Ordering::Relaxed);
            let mut redacted;
            let mut sink: &mut dyn RowSink = &mut *sink;
            let mut placed;
            if options.provenance {
                placed = WithPlaces::new(sink);
                sink = &mut placed;
            }
            if options.redact {
                redacted = Redacted::new(sink);
                sink = &mut redacted;
            }
            stream(&e.survey, table, options, sink, ctx)?;
            e.complete()?;
            e.sealed(Verb::Rows)
        })
    })
}

/// Streams one table, or all ordinary ones, into a sink. Rows come in the order of the tree.
///
/// # Errors
/// `Usage` for an unknown table; what the sink returns; cancellation.
fn stream(survey: &Survey<'_>, table: Option<&str>, options: &Options, sink: &mut dyn RowSink, ctx: &Ctx) -> Result<()> {
    let mut any = false;
    for object in survey.catalog.objects() {
        if object.kind != ObjectKind::Table {
            continue;
        }
        match table {
            Some(name) if !object.name.same(name.as_bytes()) => continue,
            None if object.id == ObjectId::SCHEMA => continue,
            _ => {}
        }
        let Some(t) = survey.tree_of(object.id) else { continue };
        let Some(Content::Table { plan, scan }) = &t.content else { continue };
        any = true;
        sink.begin_table(&info(survey, object, plan))?;
        let selection = Selection::of(scan, options.keep_violations);
        let mut fields = Fields::new();
        let mut computed = Vec::new();
        let (mut page, mut source, mut how) = (None, String::new(), "");
        live::rows(&survey.pages, &t.tree.slots, plan, &selection, ctx, |row| {
            if fields.read(row.record, wide(row.record.len())).is_err() {
                return Ok(());
            }
            let r = Row { rowid: row.rowid, payload: row.record, fields: &fields };
            if options.provenance && page != Some(row.page) {
                page = Some(row.page);
                source = collect::origin(survey.pages.origin(row.page));
                how = if survey.adopted.contains(&row.page) { How::Adopted.word() } else { How::Live.word() };
            }
            let place = Place { how, source: &source, page: row.page.get(), cell: row.cell };
            sink.row(&RowView { rowid: row.rowid, values: &values(plan, &r, &mut computed), place })
        })?;
        sink.end_table()?;
    }
    match table {
        Some(name) if !any => {
            let known: Vec<String> =
                survey.catalog.objects().iter().filter(|o| o.kind == ObjectKind::Table).map(|o| o.name.text()).collect();
            Err(Error::Usage { what: format!("no table {name:?}; there are: {}", known.join(", ")) })
        }
        _ => Ok(()),
    }
}

/// The values of a row as a query gives them, one for each column. `computed` holds those that are not stored.
pub(crate) fn values<'v>(plan: &'v TablePlan, row: &Row<'v>, computed: &'v mut Vec<Constant>) -> Vec<Value<'v>> {
    let computer = Computer::new(plan);
    let columns = plan.columns.len();
    computed.clear();
    computed.extend((0..columns).filter(|i| plan.stored_value(row, *i).is_none()).map(|i| computer.read(row, i).unwrap_or_default()));
    let mut computed = computed.iter();
    (0..columns).map(|i| plan.stored_value(row, i).unwrap_or_else(|| computed.next().map_or(Value::Null, Constant::value))).collect()
}

fn info(survey: &Survey<'_>, object: &crate::schema::Object, plan: &TablePlan) -> TableInfo {
    TableInfo {
        name: object.name.text(),
        columns: plan
            .columns
            .iter()
            .enumerate()
            .map(|(i, c)| ColumnInfo {
                name: c.name.clone(),
                generated: object.table_def().and_then(|t| t.columns.get(i)).is_some_and(|c| c.generated.is_some()),
                rowid_alias: plan.alias == Some(i),
            })
            .collect(),
        has_rowid: plan.key.is_none(),
        encoding: survey.encoding,
        sql: object.sql().map(|s| String::from_utf8_lossy(s).into_owned()),
    }
}
