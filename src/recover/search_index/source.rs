//! Where the text of a full-text index comes from, and the text of a row as FTS5 reads it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use crate::ctx::Ctx;
use crate::error::Result;
use crate::expr::{Datum, older_real_text, real_text};
use crate::format::{Fields, Value};
use crate::fts5::config::ContentColumn;
use crate::fts5::{Config, Content as ContentMode};
use crate::ids::{ObjectId, wide};
use crate::recover::Selection;
use crate::recover::live::{LiveRow, rows};
use crate::recover::stream::each_in_order;
use crate::schema::view::{Inner, ViewPlan};
use crate::schema::{Catalog, Object, ObjectKind};
use crate::survey::Survey;
use crate::survey::compute::Computer;
use crate::survey::plan::{Constant, Row, TablePlan};

use super::{each, is_whole, table_of};

/// How deep views may lie over views.
const VIEWS: usize = 100;

/// How real numbers become text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reals {
    /// As SQLite prints them today.
    Newer,
    /// As older releases did.
    Older,
    /// As older releases did, and only rows for which that makes a difference.
    OnlyOlder,
}

impl Reals {
    /// The text of a number, and whether the other rule gives another.
    fn text(self, x: f64) -> (String, bool) {
        let (newer, older) = (real_text(x), older_real_text(x));
        let differs = newer != older;
        (if self == Reals::Newer { newer } else { older }, differs)
    }
}

/// Where the text of the rows is.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// Nowhere but in the index.
    None,
    /// In a table: for each declared column its column there, none for columns that are not indexed.
    Rows {
        /// The table.
        table: ObjectId,
        /// Its columns.
        columns: Vec<Option<usize>>,
        /// Rows that the application has not indexed yet: ids above the first and up to the second number.
        not_yet: Option<(i64, i64)>,
    },
    /// In a view that is evaluated here.
    View {
        /// How.
        plan: Box<ViewPlan>,
        /// The view.
        view: ObjectId,
        /// For each declared column its column there, none for columns that are not indexed.
        columns: Vec<Option<usize>>,
        /// The column that is the rowid.
        rowid: usize,
        /// As in [`Source::Rows`].
        not_yet: Option<(i64, i64)>,
    },
    /// Somewhere that cannot be read here; why.
    Unknown {
        /// In a clause.
        reason: String,
        /// Whether rows below it are damaged, so that the index cannot be trusted to fit them.
        damaged: bool,
    },
}

impl Source {
    /// Where the text of an index is.
    ///
    /// # Errors
    /// Cancellation only.
    pub(crate) fn of(survey: &Survey<'_>, index: &Object, config: &Config, content: Option<ObjectId>, ctx: &Ctx) -> Result<Source> {
        Ok(match &config.content {
            ContentMode::None | ContentMode::Unindexed => Source::None,
            ContentMode::Stored => match content {
                None => unknown("its content is gone", true),
                Some(table) => stored(survey, config, table),
            },
            ContentMode::External(name) => {
                let mut source = external(survey, config, name);
                if let Source::Rows { not_yet, .. } | Source::View { not_yet, .. } = &mut source {
                    *not_yet = markers(survey, index, ctx)?;
                }
                source
            }
        })
    }

    /// The tables that the text is in, the one whose rows are streamed first.
    pub(crate) fn tables(&self) -> Vec<ObjectId> {
        match self {
            Source::Rows { table, .. } => vec![*table],
            Source::View { plan, .. } => plan.driver().into_iter().chain(plan.inner_tables()).collect(),
            _ => Vec::new(),
        }
    }

    /// The tables and the view that have to stand in the copy.
    pub(crate) fn needs(&self) -> Vec<ObjectId> {
        let mut all = self.tables();
        if let Source::View { view, .. } = self {
            all.push(*view);
        }
        all
    }

    /// Whether the index is all there is of the text.
    pub(crate) fn is_nowhere(&self) -> bool {
        matches!(self, Source::None)
    }

    /// Whether the text can be read here.
    pub(crate) fn is_readable(&self) -> bool {
        matches!(self, Source::Rows { .. } | Source::View { .. })
    }

    /// Gives the text of every row, as FTS5 reads it, to `f`. With a folder, tables that are out of order are sorted there.
    ///
    /// # Errors
    /// Cancellation, temporary files, and what `f` returns.
    pub(crate) fn each(
        &self,
        survey: &Survey<'_>,
        selections: &BTreeMap<ObjectId, Selection>,
        folder: Option<&Path>,
        reals: Reals,
        ctx: &Ctx,
        f: &mut dyn FnMut(i64, &[Option<&[u8]>]) -> Result<()>,
    ) -> Result<Read> {
        let from = From { survey, selections, folder, ctx };
        let mut read = Read { unread: 0, first_unread: None, ordered: true, reals_differ: false };
        let mut last: Option<i64> = None;
        let mut give = |rowid: i64, columns: &[Option<&[u8]>], differs: bool, read: &mut Read| {
            read.reals_differ |= differs;
            if reals == Reals::OnlyOlder && !differs {
                return Ok(());
            }
            if last.is_some_and(|last| rowid <= last) {
                read.ordered = false;
            }
            last = Some(rowid);
            f(rowid, columns)
        };
        match self {
            Source::Rows { table, .. } => {
                let Some((plan, ..)) = table_of(survey, *table) else { return Ok(read) };
                let mut text = RowText::new(plan, self, reals);
                from.stream(*table, |row| match text.read(&row) {
                    Some(rowid) => give(rowid, &text.columns(), text.differs, &mut read),
                    None => Ok(()),
                })?;
                (read.unread, read.first_unread) = (text.unread, text.first_unread);
            }
            Source::View { plan, columns, rowid, not_yet, .. } => {
                let inners = from.inners(plan, &mut read)?;
                let Some(driver) = plan.driver() else { return Ok(read) };
                let Some((table, ..)) = table_of(survey, driver) else { return Ok(read) };
                let computer = Computer::new(table);
                let mut fields = Fields::new();
                from.stream(driver, |row| {
                    if fields.read(row.record, wide(row.record.len())).is_err() {
                        read.skip(row.rowid);
                        return Ok(());
                    }
                    let r = Row { rowid: row.rowid, payload: row.record, fields: &fields };
                    let mut out: Vec<Vec<Datum<'static>>> = Vec::new();
                    if plan.rows(&computer.seen(&r), &inners, &mut |values| out.push(values)).is_err() {
                        read.skip(row.rowid);
                        return Ok(());
                    }
                    for values in &out {
                        let Some(Datum::Int(id)) = values.get(*rowid) else {
                            read.skip(row.rowid);
                            continue;
                        };
                        if is_waiting(*not_yet, *id) {
                            continue;
                        }
                        let mut differs = false;
                        let mut text = |c: &Option<usize>| datum_text(values.get((*c)?)?, table, reals, &mut differs);
                        let texts: Vec<Option<Cow<'_, [u8]>>> = columns.iter().map(&mut text).collect();
                        let texts: Vec<Option<&[u8]>> = texts.iter().map(Option::as_deref).collect();
                        give(*id, &texts, differs, &mut read)?;
                    }
                    Ok(())
                })?;
            }
            _ => {}
        }
        Ok(read)
    }

    /// Whether the text cannot be read here and is not known to be whole.
    pub(crate) fn is_doubtful(&self) -> bool {
        matches!(self, Source::Unknown { damaged: true, .. })
    }
}

/// How the text was read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Read {
    /// Rows whose text cannot be computed here, or for which SQLite raises an error as well.
    pub(crate) unread: u64,
    /// The first of them, where it has a rowid.
    pub(crate) first_unread: Option<i64>,
    /// Whether rowids ascended, each once.
    pub(crate) ordered: bool,
    /// Whether rows have real numbers that older releases print otherwise.
    pub(crate) reals_differ: bool,
}

impl Read {
    fn skip(&mut self, rowid: Option<i64>) {
        self.unread = self.unread.saturating_add(1);
        self.first_unread = self.first_unread.or(rowid);
    }
}

/// What the rows of a content table come from.
struct From<'f, 'e> {
    survey: &'f Survey<'e>,
    selections: &'f BTreeMap<ObjectId, Selection>,
    folder: Option<&'f Path>,
    ctx: &'f Ctx,
}

impl From<'_, '_> {
    fn stream(&self, table: ObjectId, f: impl FnMut(LiveRow<'_>) -> Result<()>) -> Result<()> {
        let Some((plan, scan, t)) = table_of(self.survey, table) else { return Ok(()) };
        let none = Selection::default();
        let selection = self.selections.get(&table).unwrap_or(&none);
        match self.folder {
            Some(folder) => each_in_order(self.survey, plan, &t.tree.slots, scan.ordered, selection, folder, self.ctx, f),
            None => rows(&self.survey.pages, &t.tree.slots, plan, selection, self.ctx, f),
        }
    }

    /// The joined tables of a view, in memory.
    fn inners(&self, plan: &ViewPlan, read: &mut Read) -> Result<Vec<Inner>> {
        let mut inners = Vec::new();
        for (i, id) in plan.inner_tables().into_iter().enumerate() {
            let mut inner = plan.inner(i);
            if let Some((table, ..)) = table_of(self.survey, id) {
                let computer = Computer::new(table);
                let mut fields = Fields::new();
                self.stream(id, |row| {
                    let there = inner.bytes() <= self.ctx.limits.memory
                        && fields.read(row.record, wide(row.record.len())).is_ok()
                        && inner.add(&computer.seen(&Row { rowid: row.rowid, payload: row.record, fields: &fields })).is_ok();
                    if !there {
                        read.skip(None);
                    }
                    Ok(())
                })?;
            }
            inners.push(inner);
        }
        Ok(inners)
    }
}

fn is_waiting(not_yet: Option<(i64, i64)>, rowid: i64) -> bool {
    not_yet.is_some_and(|(progress, high)| rowid > progress && rowid <= high)
}

fn datum_text<'d>(d: &'d Datum<'_>, plan: &TablePlan, reals: Reals, differs: &mut bool) -> Option<Cow<'d, [u8]>> {
    match d {
        Datum::Null => None,
        Datum::Int(n) => Some(Cow::Owned(n.to_string().into_bytes())),
        Datum::Real(r) => {
            let (text, other) = reals.text(*r);
            *differs |= other;
            Some(Cow::Owned(text.into_bytes()))
        }
        Datum::Text(t) => Some(Cow::Borrowed(t)),
        Datum::Blob(b) => Some(plan.encoding.to_utf8(b)),
    }
}

fn unknown(reason: impl Into<String>, damaged: bool) -> Source {
    Source::Unknown { reason: reason.into(), damaged }
}

fn stored(survey: &Survey<'_>, config: &Config, table: ObjectId) -> Source {
    let declared = survey.catalog.get(table).filter(|o| o.problem.is_none()).and_then(|o| o.table_def());
    let Some(def) = declared else { return unknown("its content is not declared as FTS5 declares it", true) };
    let mut columns = vec![None; config.columns.len()];
    for (at, column) in config.content_columns().into_iter().enumerate() {
        let at = at.saturating_add(1);
        if at >= def.columns.len() {
            return unknown("its content has too few columns", true);
        }
        if let ContentColumn::Text(i) = column
            && config.columns.get(i).is_some_and(|c| c.indexed)
            && let Some(slot) = columns.get_mut(i)
        {
            *slot = Some(at);
        }
    }
    Source::Rows { table, columns, not_yet: None }
}

fn external(survey: &Survey<'_>, config: &Config, name: &str) -> Source {
    let Some(object) = survey.catalog.by_name(name.as_bytes()) else { return unknown(format!("its content table {name} is gone"), true) };
    if object.kind == ObjectKind::View {
        return match ViewPlan::new(&survey.catalog, object) {
            Ok(plan) => view(object, config, plan),
            Err(reason) => match changed_below(survey, object, VIEWS) {
                Some(table) => unknown(format!("its content is the view {name} over {table}, which is damaged ({reason})"), true),
                None => unknown(format!("its content is the view {name}: {reason}"), false),
            },
        };
    }
    let Some(def) = object.table_def().filter(|_| object.kind == ObjectKind::Table && object.problem.is_none()) else {
        return unknown(format!("its content {name} is no table that can be read here"), true);
    };
    let position = |wanted: &str| def.columns.iter().position(|c| c.name.same(wanted.as_bytes()));
    let rowid = match position(&config.content_rowid) {
        Some(at) => def.rowid_alias == Some(at),
        None => ["rowid", "oid", "_rowid_"].iter().any(|n| config.content_rowid.eq_ignore_ascii_case(n)),
    };
    if def.without_rowid || !rowid {
        return unknown(format!("column {} of {name} is not its rowid", config.content_rowid), !is_whole(survey, object.id));
    }
    let mut columns = Vec::new();
    for column in &config.columns {
        let Some(at) = position(&column.name) else { return unknown(format!("{name} has no column {}", column.name), true) };
        columns.push(column.indexed.then_some(at));
    }
    Source::Rows { table: object.id, columns, not_yet: None }
}

fn view(object: &Object, config: &Config, plan: ViewPlan) -> Source {
    let Some(rowid) = plan.column(config.content_rowid.as_bytes()) else {
        return unknown(format!("{} has no column {}", object.name.text(), config.content_rowid), true);
    };
    let mut columns = Vec::new();
    for column in &config.columns {
        let Some(at) = plan.column(column.name.as_bytes()) else {
            return unknown(format!("{} has no column {}", object.name.text(), column.name), true);
        };
        columns.push(column.indexed.then_some(at));
    }
    Source::View { plan: Box::new(plan), view: object.id, columns, rowid, not_yet: None }
}

/// The first table below a view that is not whole.
fn changed_below(survey: &Survey<'_>, view: &Object, depth: usize) -> Option<String> {
    let depth = depth.checked_sub(1)?;
    view.view_def()?.sources.iter().find_map(|name| {
        let object = survey.catalog.by_name(name.as_bytes())?;
        match object.kind {
            ObjectKind::View => changed_below(survey, object, depth),
            ObjectKind::Table if !is_whole(survey, object.id) => Some(object.name.text()),
            _ => None,
        }
    })
}

/// The bounds between which Hermes has not indexed its messages yet, while it builds an index in steps.
fn markers(survey: &Survey<'_>, index: &Object, ctx: &Ctx) -> Result<Option<(i64, i64)>> {
    let name = index.name.folded();
    if !name.starts_with(b"messages_fts") {
        return Ok(None);
    }
    let keys = if name.ends_with(b"_cjk") {
        ["fts_cjk_rebuild_progress", "fts_cjk_rebuild_high_water"]
    } else {
        ["fts_rebuild_progress", "fts_rebuild_high_water"]
    };
    let Some(table) = meta(&survey.catalog).and_then(|id| table_of(survey, id)) else { return Ok(None) };
    let mut found = [None, None];
    each(survey, table, ctx, |_, values| {
        let Some(Value::Text(key)) = values.first() else { return };
        let key = survey.encoding.to_utf8(key);
        for (slot, wanted) in found.iter_mut().zip(keys) {
            if *key == *wanted.as_bytes() {
                *slot = match values.get(1) {
                    Some(Value::Int(n)) => Some(*n),
                    Some(Value::Text(t)) => std::str::from_utf8(&survey.encoding.to_utf8(t)).ok().and_then(|t| t.trim().parse().ok()),
                    _ => None,
                };
            }
        }
    })?;
    Ok(match found {
        [Some(progress), Some(high)] => Some((progress, high)),
        _ => None,
    })
}

fn meta(catalog: &Catalog) -> Option<ObjectId> {
    let object = catalog.by_name(b"state_meta").filter(|o| o.kind == ObjectKind::Table)?;
    let def = object.table_def()?;
    let named = |at: usize, name: &[u8]| def.columns.get(at).is_some_and(|c| c.name.same(name));
    (named(0, b"key") && named(1, b"value")).then_some(object.id)
}

/// The text of rows as FTS5 reads it; keeps its buffers.
#[derive(Debug)]
struct RowText<'p> {
    plan: &'p TablePlan,
    source: &'p Source,
    computer: Computer<'p>,
    fields: Fields,
    text: Vec<u8>,
    values: Vec<Option<Range<usize>>>,
    unread: u64,
    first_unread: Option<i64>,
    reals: Reals,
    /// Whether the row read last has a real number that the other rule prints otherwise.
    differs: bool,
}

impl<'p> RowText<'p> {
    /// For the rows of the content table of a source.
    fn new(plan: &'p TablePlan, source: &'p Source, reals: Reals) -> RowText<'p> {
        RowText {
            plan,
            source,
            computer: Computer::new(plan),
            fields: Fields::new(),
            text: Vec::new(),
            values: Vec::new(),
            unread: 0,
            first_unread: None,
            reals,
            differs: false,
        }
    }

    /// Reads a row; its rowid, or `None` when it is none to index.
    fn read(&mut self, row: &LiveRow<'_>) -> Option<i64> {
        let Source::Rows { columns, not_yet, .. } = self.source else { return None };
        let rowid = row.rowid?;
        if is_waiting(*not_yet, rowid) {
            return None;
        }
        self.fields.read(row.record, wide(row.record.len())).ok()?;
        let r = Row { rowid: Some(rowid), payload: row.record, fields: &self.fields };
        self.text.clear();
        self.values.clear();
        self.differs = false;
        for column in columns {
            let Some(column) = *column else {
                self.values.push(None);
                continue;
            };
            let start = self.text.len();
            let computed;
            let value = if let Some(value) = self.plan.stored_value(&r, column) {
                value
            } else if let Some(found) = self.computer.read(&r, column) {
                computed = found;
                Constant::value(&computed)
            } else {
                self.unread = self.unread.saturating_add(1);
                self.first_unread = self.first_unread.or(Some(rowid));
                return None;
            };
            let (there, differs) = put_text(&mut self.text, value, self.plan, self.reals);
            self.differs |= differs;
            self.values.push(there.then_some(start..self.text.len()));
        }
        Some(rowid)
    }

    /// The values of the row read last, as UTF-8.
    fn columns(&self) -> Vec<Option<&[u8]>> {
        self.values.iter().map(|v| v.clone().and_then(|range| self.text.get(range))).collect()
    }
}

/// Appends what `CAST(value AS TEXT)` gives, as UTF-8: whether it is not NULL, and whether the other rule for real numbers gives
/// another text.
fn put_text(out: &mut Vec<u8>, value: Value<'_>, plan: &TablePlan, reals: Reals) -> (bool, bool) {
    match value {
        Value::Null => return (false, false),
        Value::Int(n) => out.extend_from_slice(n.to_string().as_bytes()),
        Value::Real(r) => {
            let (text, differs) = reals.text(r);
            out.extend_from_slice(text.as_bytes());
            return (true, differs);
        }
        Value::Text(t) | Value::Blob(t) => out.extend_from_slice(&plan.encoding.to_utf8(t)),
    }
    (true, false)
}
