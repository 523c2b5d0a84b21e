//! A store as the examination shows it: the one file of this folder that knows how the library looks at evidence.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::ctx::Ctx;
use crate::error::Result;
use crate::finding::{Code, Findings, Site};
use crate::format::{Encoding, Fields, Value};
use crate::ids::{ObjectId, PageNo, wide};
use crate::recover::search_index::{self, SearchIndex};
use crate::recover::witnesses::{self, Partial};
use crate::recover::{Selection, breakers, rows, text_back};
use crate::report::Report;
use crate::report::model::Verb;
use crate::schema::{Family, FtsPart, ObjectKind};
use crate::survey::plan::{Constant, Row, TablePlan};
use crate::survey::{Content, Survey};
use crate::tree::Slot;
use crate::tree::cells::visit;
use crate::tree::payload::PayloadReader;
use crate::verbs::examination::once;
use crate::verbs::hidden::Other;
use crate::verbs::{Inputs, Options};

/// Where a row comes from, as exports and lists say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Label {
    /// Where its table has it.
    Live,
    /// On a leaf that damage cut off and that came back.
    Adopted,
    /// Of a session whose entries in an index disagree with the declaration: a NULL that the table forbids, confirmed.
    Breaker,
    /// In commits of the log that SQLite does not read.
    HiddenCommit,
    /// In a state before a rollback, or without a sidecar whose fit is undecided.
    HiddenState,
    /// Put together from index entries; the row itself is lost.
    Index,
    /// Its text is from the content table of a search index, exact.
    SearchContent,
    /// Its text is from a search index: letters folded, what lies between the words lost where only words are known.
    SearchText,
    /// From a text fallback of the application beside the store.
    Fallback,
}

impl Label {
    /// The word of exports and lists; `None` for a row that needs none.
    pub(crate) const fn word(self) -> Option<&'static str> {
        Some(match self {
            Label::Live => return None,
            Label::Adopted => "adopted",
            Label::Breaker => "recovered",
            Label::HiddenCommit => "hidden-commit",
            Label::HiddenState => "hidden-state",
            Label::Index => "partial",
            Label::SearchContent => "text-exact",
            Label::SearchText => "text-folded",
            Label::Fallback => "fallback-file",
        })
    }

    /// The label with this number; `None` for a number that none has.
    pub(crate) fn of_number(n: u8) -> Option<Label> {
        use Label::*;
        [Live, Adopted, Breaker, HiddenCommit, HiddenState, Index, SearchContent, SearchText, Fallback]
            .into_iter()
            .find(|l| l.number() == n)
    }

    /// A number for records of sorts.
    pub(crate) const fn number(self) -> u8 {
        match self {
            Label::Live => 0,
            Label::Adopted => 1,
            Label::Breaker => 2,
            Label::HiddenCommit => 3,
            Label::HiddenState => 4,
            Label::Index => 5,
            Label::SearchContent => 6,
            Label::SearchText => 7,
            Label::Fallback => 8,
        }
    }
}

/// The place of a row: the state of the evidence (0: the one shown), its page and cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// Which state.
    pub(crate) state: u8,
    /// The page.
    pub(crate) page: PageNo,
    /// The cell.
    pub(crate) cell: u16,
}

/// Names of columns in the order of the declaration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Columns {
    /// The names.
    pub(crate) names: Vec<String>,
}

impl Columns {
    fn of(plan: &TablePlan) -> Columns {
        Columns { names: plan.columns.iter().map(|c| c.name.clone()).collect() }
    }

    /// The place of a column.
    pub(crate) fn at(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|n| n.eq_ignore_ascii_case(name))
    }
}

/// A row with its values in the order of the declaration, text in UTF-8 (bytes that are none stay as they are).
#[derive(Debug, Clone)]
pub(crate) struct Record {
    /// Its rowid.
    pub(crate) rowid: Option<i64>,
    /// Its values.
    pub(crate) values: Vec<Constant>,
    /// Where it is from.
    pub(crate) label: Label,
}

impl Record {
    /// The value of a column; NULL for one that the table does not have.
    pub(crate) fn get(&self, columns: &Columns, name: &str) -> &Constant {
        columns.at(name).and_then(|i| self.values.get(i)).unwrap_or(&Constant::Null)
    }
}

/// A row while its table is read.
pub(crate) struct Seen<'r> {
    /// Its rowid.
    pub(crate) rowid: Option<i64>,
    /// Its place.
    pub(crate) place: Place,
    /// Where it is from.
    pub(crate) label: Label,
    plan: &'r TablePlan,
    row: Row<'r>,
    encoding: Encoding,
}

impl Seen<'_> {
    /// The stored value of a column by its place; NULL for none.
    pub(crate) fn value(&self, column: Option<usize>) -> Value<'_> {
        column.and_then(|c| self.plan.stored_value(&self.row, c)).unwrap_or(Value::Null)
    }

    /// As [`Seen::value`], with text in UTF-8.
    pub(crate) fn owned(&self, column: Option<usize>) -> Constant {
        owned(self.value(column), self.encoding)
    }

    /// All of it.
    pub(crate) fn record(&self) -> Record {
        let values = (0..self.plan.columns.len()).map(|i| self.owned(Some(i))).collect();
        Record { rowid: self.rowid, values, label: self.label }
    }
}

/// A value with its text in UTF-8.
pub(crate) fn owned(value: Value<'_>, encoding: Encoding) -> Constant {
    match (value, encoding) {
        (Value::Text(t), Encoding::Utf16Le | Encoding::Utf16Be) => Constant::Text(encoding.to_utf8(t).into_owned()),
        (value, _) => Constant::from(value),
    }
}

/// One store under examination.
pub(crate) struct Store<'e> {
    /// What the examination says of it.
    pub(crate) report: &'e Report,
    survey: &'e Survey<'e>,
    others: &'e [Other<'e>],
    searches: &'e [SearchIndex],
    /// Limits and cancellation.
    pub(crate) ctx: &'e Ctx,
    folder: PathBuf,
}

/// Opens a store and hands it to `f`. `folder` is for sorts that do not fit into memory.
///
/// # Errors
/// What the tool cannot do, and what `f` returns.
pub(crate) fn open<T>(inputs: &Inputs, options: &Options, folder: &Path, ctx: &Ctx, f: impl FnOnce(&Store<'_>) -> Result<T>) -> Result<T> {
    once(inputs, options, None, ctx, |e| {
        let searches = e.complete()?;
        let report = e.sealed(Verb::Check)?;
        let folder = folder.to_path_buf();
        f(&Store { report: &report, survey: &e.survey, others: &e.others, searches: &searches, ctx, folder })
    })
}

impl Store<'_> {
    /// A sorter of the store's memory and folder.
    pub(crate) fn sorter(&self) -> crate::sort::Sorter {
        crate::sort::Sorter::new(self.ctx.sort_memory() / 4, &self.folder)
    }

    /// Whether the schema names a table (with a tree).
    pub(crate) fn has(&self, table: &str) -> bool {
        shown(self.survey, table).is_some()
    }

    /// The columns of a table.
    pub(crate) fn columns(&self, table: &str) -> Columns {
        shown(self.survey, table).map(|t| Columns::of(t.0)).unwrap_or_default()
    }

    /// Rows of a table that are shown; `None` when there is no such table.
    pub(crate) fn count(&self, table: &str) -> Option<u64> {
        shown(self.survey, table).map(|(_, _, object)| match self.survey.tree_of(object).and_then(|t| t.content.as_ref()) {
            Some(Content::Table { scan, .. }) => scan.rows,
            _ => 0,
        })
    }

    /// Whether a table reads in full.
    pub(crate) fn is_whole(&self, table: &str) -> bool {
        shown(self.survey, table).is_some_and(|(_, _, object)| search_index::is_whole(self.survey, object))
    }

    /// `application_id` of the header.
    pub(crate) fn application_id(&self) -> u32 {
        self.survey.header.application_id
    }

    /// The CREATE text of an object.
    pub(crate) fn sql(&self, name: &str) -> Option<String> {
        let object = self.survey.catalog.by_name(name.as_bytes())?;
        object.sql().map(|s| String::from_utf8_lossy(s).into_owned())
    }

    /// Names of all objects of the schema.
    pub(crate) fn names(&self) -> impl Iterator<Item = String> + '_ {
        self.survey.catalog.objects().iter().map(|o| o.name.text())
    }

    /// Shadow tables whose index is not declared: what `.recover` leaves behind.
    pub(crate) fn orphan_shadows(&self) -> Vec<String> {
        let orphans = self.survey.catalog.objects().iter().filter(|o| matches!(o.family, Family::OrphanShadow { .. }));
        orphans.map(|o| o.name.text()).collect()
    }

    /// The search index that a shadow table belongs to.
    pub(crate) fn index_of_shadow(&self, id: u32) -> Option<String> {
        let object = self.survey.catalog.get(ObjectId(id))?;
        self.survey.catalog.get(object.family.virtual_table()?).map(|o| o.name.text())
    }

    /// Every row of a table that a list or export shows: those that are shown, those that came back, rows that break the
    /// declaration and that an index confirms, rows of other states of the evidence.
    ///
    /// # Errors
    /// Cancellation, and what `f` returns.
    pub(crate) fn each(&self, table: &str, mut f: impl FnMut(&Seen<'_>) -> Result<()>) -> Result<()> {
        if let Some((plan, slots, object)) = shown(self.survey, table)
            && let Some(Content::Table { scan, .. }) = self.survey.tree_of(object).and_then(|t| t.content.as_ref())
        {
            let selection = Selection::of(scan, false);
            let mut fields = Fields::new();
            let encoding = self.survey.encoding;
            rows(&self.survey.pages, slots, plan, &selection, self.ctx, |row| {
                if fields.read(row.record, wide(row.record.len())).is_err() {
                    return Ok(());
                }
                let label = if self.survey.adopted.contains(&row.page) { Label::Adopted } else { Label::Live };
                let place = Place { state: 0, page: row.page, cell: row.cell };
                let seen = Row { rowid: row.rowid, payload: row.record, fields: &fields };
                f(&Seen { rowid: row.rowid, place, label, plan, row: seen, encoding })
            })?;
            let absent: Vec<BTreeSet<(PageNo, u16)>> = breakers::indexes(self.survey, plan).into_iter().map(|(_, a)| a).collect();
            for e in scan.excluded.iter().filter(|e| matches!(e.code, Code::NullInNotNull | Code::CheckFalse)) {
                if absent.iter().any(|a| !a.contains(&(e.page, e.cell))) {
                    let place = Place { state: 0, page: e.page, cell: e.cell };
                    read_cell(self.survey, plan, place, Label::Breaker, &mut f)?;
                }
            }
        }
        for (i, other) in self.others.iter().enumerate() {
            let label = if other.reason() == "hidden-commit" { Label::HiddenCommit } else { Label::HiddenState };
            let Ok(state) = u8::try_from(i.saturating_add(1)) else { continue };
            for apart in &other.tables {
                let Some((plan, _, object)) = shown(&other.survey, table) else { continue };
                if object != apart.object {
                    continue;
                }
                for (page, cell) in &apart.places {
                    self.ctx.check()?;
                    read_cell(&other.survey, plan, Place { state, page: *page, cell: *cell }, label, &mut f)?;
                }
            }
        }
        Ok(())
    }

    /// The row at a place that [`Store::each`] gave, in the columns of the state that is shown.
    pub(crate) fn at(&self, table: &str, place: Place, label: Label) -> Option<Record> {
        let other = place.state.checked_sub(1).map(|i| self.others.get(usize::from(i)));
        let survey: &Survey<'_> = match other {
            None => self.survey,
            Some(other) => &other?.survey,
        };
        let (plan, _, _) = shown(survey, table)?;
        let mut out = None;
        let _ = read_cell(survey, plan, place, label, &mut |seen: &Seen<'_>| {
            out = Some(seen.record());
            Ok(())
        });
        let (mut record, columns, wanted) = (out?, Columns::of(plan), self.columns(table));
        if columns != wanted {
            let values = wanted.names.iter().map(|n| record.get(&columns, n).clone()).collect();
            record.values = values;
        }
        Some(record)
    }

    /// What indexes still hold of rows of a table that are lost, in the columns of the table.
    pub(crate) fn gone(&self, table: &str) -> BTreeMap<i64, Record> {
        let Some((plan, _, object)) = shown(self.survey, table) else { return BTreeMap::new() };
        let Some(t) = self.survey.tree_of(object) else { return BTreeMap::new() };
        // A table that is whole has lost nothing: what an index names beside it was deleted, or is wrong in the index.
        if self.is_whole(table) {
            return BTreeMap::new();
        }
        let record = |p: Partial| {
            let rowid = p.rowid?;
            let value = |i| p.values.get(&i).map_or(Constant::Null, |v| owned(v.value(), self.survey.encoding));
            let mut values: Vec<Constant> = (0..plan.columns.len()).map(value).collect();
            if let Some(alias) = plan.alias.and_then(|a| values.get_mut(a)) {
                *alias = Constant::Int(rowid);
            }
            Some((rowid, Record { rowid: Some(rowid), values, label: Label::Index }))
        };
        witnesses::partial_rows(self.survey, t).into_iter().filter(|p| !p.disputed).filter_map(record).collect()
    }

    /// Texts of lost messages that search indexes still hold: message id, column, text, whether it is whole and only folded.
    ///
    /// # Errors
    /// Temporary files, cancellation, and what `f` returns.
    pub(crate) fn texts(&self, mut f: impl FnMut(i64, &str, &[u8]) -> Result<()>) -> Result<()> {
        if self.is_whole("messages") {
            return Ok(());
        }
        let Some((_, _, object)) = shown(self.survey, "messages") else { return Ok(()) };
        let mut fields = Fields::new();
        for mut texts in text_back::find(self.survey, self.searches, &self.folder, self.ctx)? {
            if texts.table != object {
                continue;
            }
            texts.records(|record| {
                if fields.read(record, wide(record.len())).is_err() {
                    return Ok(());
                }
                let at = |i| fields.value(record, i).unwrap_or(Value::Null);
                let (Value::Int(rowid), Value::Text(column), Value::Text(text)) = (at(4), at(5), at(6)) else { return Ok(()) };
                let e = self.survey.encoding;
                f(rowid, &String::from_utf8_lossy(&e.to_utf8(column)), &e.to_utf8(text))
            })?;
        }
        Ok(())
    }

    /// Names of content tables of search indexes over messages: they hold a full copy of the text, also without the
    /// declaration of their index.
    pub(crate) fn content_tables(&self) -> Vec<String> {
        let is = |family: Family| {
            matches!(family, Family::FtsShadow { part: FtsPart::Content, .. } | Family::OrphanShadow { part: FtsPart::Content, .. })
        };
        let objects = self.survey.catalog.objects().iter().filter(|o| o.kind == ObjectKind::Table && is(o.family));
        objects.map(|o| o.name.text()).filter(|n| n.to_ascii_lowercase().starts_with("messages_fts")).collect()
    }

    /// Records of trees that no object names: the leading values of rows, for who knows their shape. At most `most` a tree.
    ///
    /// # Errors
    /// Cancellation.
    pub(crate) fn nameless(&self, most: usize) -> Result<Vec<Vec<Vec<Constant>>>> {
        let mut out = Vec::new();
        for tree in self.survey.nameless_trees(self.ctx)? {
            let mut sample = Vec::new();
            let (mut reader, mut fields) = (PayloadReader::new(), Fields::new());
            let step = tree.slots.len().div_ceil(most).max(1);
            let slots: Vec<Slot> = tree.slots.iter().step_by(step).copied().collect();
            visit(&self.survey.pages, &slots, Site::default(), false, &mut Findings::new(0), self.ctx, |_, at| {
                if sample.len() < most
                    && let Ok(payload) = reader.read(&self.survey.pages, &at.cell)
                    && fields.read(payload, at.cell.payload_len).is_ok()
                    && u64::from(fields.body_end()) == at.cell.payload_len
                {
                    sample.push(fields.values(payload).map(|v| clipped(owned(v, self.survey.encoding))).collect());
                }
                Ok(())
            })?;
            if !sample.is_empty() {
                out.push(sample);
            }
        }
        Ok(out)
    }
}

/// Long texts say no more about their column than their beginning.
fn clipped(value: Constant) -> Constant {
    match value {
        Constant::Text(mut t) => {
            t.truncate(400);
            Constant::Text(t)
        }
        Constant::Blob(mut b) => {
            b.truncate(16);
            Constant::Blob(b)
        }
        other => other,
    }
}

/// A table of a state, by its name.
fn shown<'s>(survey: &'s Survey<'_>, name: &str) -> Option<(&'s TablePlan, &'s [Slot], ObjectId)> {
    let object = survey.catalog.by_name(name.as_bytes()).filter(|o| o.kind == ObjectKind::Table)?;
    let t = survey.tree_of(object.id)?;
    match &t.content {
        Some(Content::Table { plan, .. }) => Some((plan, &t.tree.slots, object.id)),
        _ => None,
    }
}

fn read_cell(survey: &Survey<'_>, plan: &TablePlan, place: Place, label: Label, f: &mut dyn FnMut(&Seen<'_>) -> Result<()>) -> Result<()> {
    let Ok(cell) = survey.pages.cell(place.page, place.cell) else { return Ok(()) };
    let (mut reader, mut fields) = (PayloadReader::new(), Fields::new());
    let Ok(payload) = reader.read(&survey.pages, &cell) else { return Ok(()) };
    if fields.read(payload, cell.payload_len).is_err() {
        return Ok(());
    }
    let row = Row { rowid: cell.rowid, payload, fields: &fields };
    f(&Seen { rowid: cell.rowid, place, label, plan, row, encoding: survey.encoding })
}

impl Store<'_> {
    /// Writes the store with changes to `path`; see [`super::amend::write`].
    ///
    /// # Errors
    /// I/O, limits, cancellation.
    pub(crate) fn amend(&self, changes: &super::amend::Changes, path: &Path) -> Result<BTreeMap<String, u64>> {
        super::amend::write(self.survey, changes, path, self.ctx)
    }
}

impl Store<'_> {
    /// What a row of a table holds that says nothing: the DEFAULT of each column.
    pub(crate) fn defaults(&self, table: &str) -> Vec<Constant> {
        shown(self.survey, table)
            .map(|(plan, _, _)| plan.columns.iter().map(|c| owned(c.default.value(), self.survey.encoding)).collect())
            .unwrap_or_default()
    }

    /// Messages whose session has no row. Ids are compared by their hash; of very many sessions the question is not asked.
    ///
    /// # Errors
    /// Cancellation.
    pub(crate) fn without_session(&self) -> Result<u64> {
        if !self.has("sessions") || !self.has("messages") || self.count("sessions").is_some_and(|n| n > SESSIONS) {
            return Ok(0);
        }
        let hash = |value: Value<'_>| match value {
            Value::Text(t) | Value::Blob(t) => Some(id_hash(t)),
            _ => None,
        };
        let mut known: BTreeSet<u64> = BTreeSet::new();
        let (id, session) = (self.columns("sessions").at("id"), self.columns("messages").at("session_id"));
        self.each("sessions", |seen| {
            known.extend(hash(seen.value(id)));
            Ok(())
        })?;
        let mut out = 0_u64;
        self.each("messages", |seen| {
            let lost = hash(seen.value(session)).is_some_and(|h| !known.contains(&h));
            out = out.saturating_add(u64::from(lost && matches!(seen.label, Label::Live | Label::Adopted)));
            Ok(())
        })?;
        Ok(out)
    }
}

/// Sessions up to which messages without one are counted.
const SESSIONS: u64 = 4_000_000;

/// Two checksums of a text as one number.
fn id_hash(t: &[u8]) -> u64 {
    let (a, b) = (crc32fast::hash(t), t.iter().fold(5381_u32, |h, b| h.wrapping_mul(33) ^ u32::from(*b)));
    u64::from(a) << 32 | u64::from(b)
}
