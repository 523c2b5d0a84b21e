//! The rows of the salvage database that are chosen, each as the record that it would be in its table.

use std::collections::BTreeMap;

use crate::ctx::Ctx;
use crate::error::{Error, Result};
use crate::finding::{Code, Findings, Site};
use crate::format::record::encode_record;
use crate::format::{Encoding, Fields, Value};
use crate::ids::wide;
use crate::recover::{How, LiveRow, Selection, rows};
use crate::schema::{Family, FtsPart, ObjectKind};
use crate::sort::key::KeyOrder;
use crate::survey::compute::Computer;
use crate::survey::entry::EntrySum;
use crate::survey::judge::{Judge, Verdict};
use crate::survey::plan::{Constant, Row, TablePlan};
use crate::survey::{Content, Survey, SurveyedTree};

use super::Wanted;
use super::model::{NotRows, Restored};
use super::settle::Refusal;

/// What stands in front of the columns of a mirror.
const PROVENANCE: &str = "rp_";

/// How a row was found that comes from an ordinary database.
const PLAIN: &str = "database";

/// A table of the copy with the mirrors of it that the salvage database has.
pub(super) struct Target<'s> {
    pub(super) plan: &'s TablePlan,
    pub(super) tree: &'s SurveyedTree,
    /// The order of a WITHOUT ROWID table.
    pub(super) order: Option<KeyOrder>,
    /// Whether `sqlite_sequence` counts its rowids.
    pub(super) autoincrement: bool,
    pub(super) mirrors: Vec<Mirror<'s>>,
    /// Number of the first row of its first mirror; the numbers go on from mirror to mirror.
    first: u64,
}

/// A table of the salvage database.
pub(super) struct Mirror<'s> {
    pub(super) name: String,
    plan: &'s TablePlan,
    tree: &'s SurveyedTree,
    /// For each column of the table the one of the mirror.
    columns: Vec<Option<usize>>,
    /// It is a table of an ordinary database.
    plain: bool,
    reason: Option<usize>,
    how: Option<usize>,
    complete: Option<usize>,
    rowid: Option<usize>,
}

/// A chosen row.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    /// Its number among all rows of the mirrors of its table.
    pub(super) no: u64,
    /// The mirror and the rowid there.
    pub(super) mirror: usize,
    pub(super) row: i64,
    pub(super) how: String,
    /// Its rowid; `None` in a WITHOUT ROWID table.
    pub(super) rowid: Option<i64>,
    pub(super) record: Vec<u8>,
    /// Values are missing that the evidence did not give.
    pub(super) partial: bool,
}

/// Matches the tables of the salvage database with those of the copy.
pub(super) fn targets<'s>(base: &'s Survey<'_>, aside: &'s Survey<'_>, wanted: &Wanted, report: &mut Restored) -> Result<Vec<Target<'s>>> {
    let mut out: BTreeMap<crate::ids::ObjectId, Target<'s>> = BTreeMap::new();
    for name in &wanted.tables {
        if base.catalog.by_name(name.as_bytes()).is_none_or(|o| o.kind != ObjectKind::Table) {
            return Err(Error::Usage { what: format!("the copy has no table {name:?}") });
        }
    }
    let mut first = 0_u64;
    for t in &aside.trees {
        let Some(Content::Table { plan, scan }) = &t.content else { continue };
        let name = plan.name.clone();
        if t.object == crate::ids::ObjectId::SCHEMA || name.starts_with("rootpage_") {
            continue;
        }
        let mut none = |why| report.not_rows.push(NotRows { salvage_table: name.clone(), rows: scan.cells, why });
        let place = |wanted: &str| plan.columns.iter().position(|c| c.name.eq_ignore_ascii_case(wanted));
        let (reason, how, complete, rowid) = (place("rp_reason"), place("rp_how"), place("rp_complete"), place("rp_rowid"));
        // A table of another database has none of the columns that say where a row comes from: all its rows are whole.
        let plain = how.is_none() && complete.is_none() && reason.is_none();
        if !plain && (how.is_none() || complete.is_none()) || name.starts_with("lost_and_found_") {
            none("it is no table of set-aside rows");
            continue;
        }
        let Some(object) = counterpart(base, &name, plain) else {
            none("the copy has no table of this name");
            continue;
        };
        match object.family {
            Family::Table => {}
            Family::FtsShadow { part: FtsPart::Content, .. } => {}
            Family::Sequence | Family::Stat | Family::Schema => {
                none("bookkeeping that the copy has anew");
                continue;
            }
            _ => {
                none("a part of a search or spatial index, which is built anew from its rows");
                continue;
            }
        }
        if !wanted.tables.is_empty() && !wanted.tables.iter().any(|w| w.eq_ignore_ascii_case(&object.name.text())) {
            continue;
        }
        let Some((tree, Content::Table { plan: of, .. })) = base.tree_of(object.id).and_then(|t| Some((t, t.content.as_ref()?))) else {
            none("the table of the copy has no tree");
            continue;
        };
        if of.indexes.iter().any(|i| !i.buildable()) || !of.judged {
            none("an index of the table uses a collation or function that is not known here");
            continue;
        }
        let order = match &of.key {
            None => None,
            Some(key) => {
                let order = KeyOrder::new(key.columns.iter().map(|c| (&c.collation, c.desc)), of.encoding);
                if order.is_none() {
                    none("the key of the table uses a collation that is not known here");
                    continue;
                }
                order
            }
        };
        let columns = of.columns.iter().map(|c| column_of(plan, &c.name)).collect();
        let mirror = Mirror { name, plan, tree: t, columns, plain, reason, how, complete, rowid };
        let autoincrement = object.table_def().is_some_and(|d| d.autoincrement);
        let target = out.entry(object.id).or_insert_with(|| Target { plan: of, tree, order, autoincrement, mirrors: Vec::new(), first: 0 });
        target.mirrors.push(mirror);
    }
    let mut out: Vec<Target<'s>> = out.into_values().collect();
    for target in &mut out {
        target.first = first;
        for mirror in &target.mirrors {
            if let Some(Content::Table { scan, .. }) = &mirror.tree.content {
                first = first.saturating_add(scan.cells);
            }
        }
    }
    Ok(out)
}

/// The table of the copy that a mirror is named for: by its name, else without the `rp_` that keeps names apart.
fn counterpart<'s>(base: &'s Survey<'_>, name: &str, plain: bool) -> Option<&'s crate::schema::Object> {
    let mut name = name;
    loop {
        if let Some(object) = base.catalog.by_name(name.as_bytes()).filter(|o| o.kind == ObjectKind::Table) {
            return Some(object);
        }
        name = name.strip_prefix(PROVENANCE).filter(|_| !plain)?;
    }
}

/// The column of a mirror for a column of the table: behind the provenance, by its name, or with the marks that keep names
/// apart.
fn column_of(mirror: &TablePlan, name: &str) -> Option<usize> {
    let own = mirror.columns.iter().position(|c| c.name == "rp_restore").map_or(0, |i| i.saturating_add(1));
    let find =
        |wanted: &dyn Fn(&str) -> bool| (own..mirror.columns.len()).find(|i| mirror.columns.get(*i).is_some_and(|c| wanted(&c.name)));
    find(&|c| c.eq_ignore_ascii_case(name)).or_else(|| find(&|c| c.trim_end_matches('_').eq_ignore_ascii_case(name)))
}

impl Wanted {
    /// Whether a row is chosen by how it was found and why it was set aside.
    fn takes(&self, how: &str, reason: &str, row: i64) -> bool {
        let carved = [How::Freeblock, How::Gap, How::FreePage, How::LostPage].map(How::word);
        let by_how = if self.hows.is_empty() {
            how == PLAIN || [How::Live, How::Adopted, How::Hidden].map(How::word).contains(&how)
        } else {
            self.hows.iter().any(|w| w == how || w == "all" || (w == "carved" && carved.contains(&how)))
        };
        let by_reason = if self.reasons.is_empty() {
            // What was deleted comes back only when it is asked for by its name.
            !self.hows.is_empty() || reason != Code::DeletedRow.problem().name
        } else {
            self.reasons.iter().any(|w| reason == w || reason.strip_prefix(w.as_str()).is_some_and(|r| r.starts_with(',')))
        };
        by_how && by_reason && (self.rows.is_empty() || self.rows.contains(&row))
    }
}

impl Target<'_> {
    /// The numbers of the rows of its mirrors.
    pub(super) fn numbers(&self) -> std::ops::Range<u64> {
        let rows = self.mirrors.iter().map(|m| match &m.tree.content {
            Some(Content::Table { scan, .. }) => scan.cells,
            _ => 0,
        });
        self.first..rows.fold(self.first, u64::saturating_add)
    }

    /// Hands every chosen row to `f`, in the order of the salvage database; what cannot be made a row of the table comes with
    /// the reason.
    pub(super) fn each(
        &self,
        aside: &Survey<'_>,
        wanted: &Wanted,
        ctx: &Ctx,
        mut f: impl FnMut(Candidate, Option<Refusal>) -> Result<()>,
    ) -> Result<()> {
        let mut no = self.first;
        let judge = Judge::new(self.plan);
        for (i, mirror) in self.mirrors.iter().enumerate() {
            let Some(Content::Table { scan, .. }) = &mirror.tree.content else { continue };
            let all = Selection::of(scan, true);
            let mut fields = Fields::new();
            let start = no;
            rows(&aside.pages, &mirror.tree.tree.slots, mirror.plan, &all, ctx, |row| {
                let this = no;
                no = no.saturating_add(1);
                if fields.read(row.record, wide(row.record.len())).is_err() {
                    return Ok(());
                }
                let seen = Row { rowid: row.rowid, payload: row.record, fields: &fields };
                let text = |c: Option<usize>| {
                    c.and_then(|c| mirror.plan.raw_value(&seen, c)).map(|v| words(v, aside.encoding)).unwrap_or_default()
                };
                let (mut how, reason) = (text(mirror.how), text(mirror.reason));
                if mirror.plain {
                    how = PLAIN.to_owned();
                }
                let number = row.rowid.unwrap_or(0);
                if !wanted.takes(&how, &reason, number) {
                    return Ok(());
                }
                let (candidate, refusal) = self.candidate(mirror, &seen, aside.encoding, &judge);
                f(Candidate { no: this, mirror: i, row: number, how, ..candidate }, refusal)
            })?;
            no = start.saturating_add(scan.cells);
        }
        Ok(())
    }

    /// The row of the table that a row of a mirror stands for.
    fn candidate(&self, mirror: &Mirror<'_>, seen: &Row<'_>, encoding: Encoding, judge: &Judge<'_>) -> (Candidate, Option<Refusal>) {
        let plan = self.plan;
        let value = |column: usize| -> Constant {
            let place = mirror.columns.get(column).copied().flatten();
            let Some(value) = place.and_then(|c| mirror.plan.raw_value(seen, c)) else {
                return plan.columns.get(column).map(|c| c.default.clone()).unwrap_or_default();
            };
            in_encoding(value, encoding, plan.encoding)
        };
        let int = |c: Option<usize>| match c.and_then(|c| mirror.plan.raw_value(seen, c)) {
            Some(Value::Int(n)) => Some(n),
            _ => None,
        };
        let stored_rowid = || if mirror.plain { seen.rowid } else { int(mirror.rowid) };
        let rowid = match (plan.key.is_some(), plan.alias) {
            (true, _) => None,
            (false, Some(alias)) => match value(alias) {
                Constant::Int(n) => Some(n),
                _ => stored_rowid(),
            },
            (false, None) => stored_rowid(),
        };
        let mut values: Vec<Constant> =
            plan.stored.iter().map(|c| if plan.alias == Some(*c) { Constant::Null } else { value(*c) }).collect();
        let mut record = Vec::new();
        encode(&values, &mut record);
        // A stored generated column may need another that is computed first.
        let generated: Vec<(usize, usize)> = plan
            .stored
            .iter()
            .enumerate()
            .filter(|(_, c)| plan.columns.get(**c).is_some_and(|c| c.generated.is_some()))
            .map(|(p, c)| (p, *c))
            .collect();
        let computer = Computer::new(plan);
        for _ in &generated {
            let mut fields = Fields::new();
            if fields.read(&record, wide(record.len())).is_err() {
                break;
            }
            let row = Row { rowid, payload: &record, fields: &fields };
            let computed: Vec<(usize, Option<Constant>)> = generated.iter().map(|(p, c)| (*p, computer.column(&row, *c))).collect();
            for (position, value) in computed {
                if let (Some(place), Some(value)) = (values.get_mut(position), value) {
                    *place = value;
                }
            }
            encode(&values, &mut record);
        }
        let partial = !mirror.plain && int(mirror.complete) != Some(1);
        let refusal = self.refusal(mirror, rowid, &record, partial, judge);
        (Candidate { no: 0, mirror: 0, row: 0, how: String::new(), rowid, record, partial }, refusal)
    }

    /// Why a row cannot stand in the table, whatever else is in it.
    fn refusal(&self, mirror: &Mirror<'_>, rowid: Option<i64>, record: &[u8], partial: bool, judge: &Judge<'_>) -> Option<Refusal> {
        let plan = self.plan;
        if plan.key.is_none() && rowid.is_none() {
            return Some(Refusal::new("no-rowid", "its rowid is not known"));
        }
        let mut fields = Fields::new();
        if fields.read(record, wide(record.len())).is_err() {
            return Some(Refusal::new("incomplete", "its record cannot be made"));
        }
        let row = Row { rowid, payload: record, fields: &fields };
        if partial {
            // What an index still has is a row when nothing is missing that the table asks for.
            let missing = plan.columns.iter().enumerate().find(|(i, c)| {
                c.not_null && c.position.is_some_and(|p| row.fields.value(record, p).is_none_or(Value::is_null)) && plan.alias != Some(*i)
            });
            if let Some((_, c)) = missing {
                return Some(Refusal::new("incomplete", &format!("its {} is not known", c.name)));
            }
            if mirror.columns.iter().zip(&plan.columns).all(|(place, c)| place.is_none() || c.position.is_none()) {
                return Some(Refusal::new("incomplete", "no value of it is known"));
            }
        }
        let mut sums = vec![EntrySum::default(); plan.indexes.len()];
        match judge.judge(&row, Site::default(), &mut Findings::new(0), &mut sums) {
            Verdict::Good => None,
            Verdict::Rewrite => Some(Refusal::new("breaks-declaration", "its values are not those of the table")),
            Verdict::Breaks(code, i) => {
                let column = plan.columns.get(i).map_or("", |c| c.name.as_str());
                let detail = match code {
                    Code::NullInNotNull => format!("{column} is NULL and declared NOT NULL"),
                    Code::TypeBroken => format!("{column} holds a value of a class that its declaration excludes"),
                    Code::CheckFalse => format!("CHECK {} is false", plan.checks.get(i).map_or("", |c| c.name.as_str())),
                    code => code.problem().name.to_owned(),
                };
                Some(Refusal::new("breaks-declaration", &detail))
            }
        }
    }

    /// Appends the key that rows of the table are ordered by; `false` when the record gives none.
    pub(super) fn key(&self, row: &LiveRow<'_>, fields: &mut Fields, out: &mut Vec<u8>) -> bool {
        match &self.order {
            None => {
                out.extend_from_slice(&crate::recover::stream::rowid_key(row.rowid.unwrap_or(0)));
                true
            }
            Some(order) => {
                if fields.read(row.record, wide(row.record.len())).is_err() {
                    return false;
                }
                let n = self.plan.key.as_ref().map_or(0, |k| k.columns.len());
                order.encode(out, fields.values(row.record).take(n));
                true
            }
        }
    }
}

fn encode(values: &[Constant], record: &mut Vec<u8>) {
    record.clear();
    encode_record(record, values.iter().map(Constant::value));
}

/// A value with its text in another encoding.
fn in_encoding(value: Value<'_>, from: Encoding, to: Encoding) -> Constant {
    match value {
        Value::Text(t) if from != to && from.is_valid(t) => Constant::Text(to.from_utf8(&from.to_utf8(t)).into_owned()),
        other => Constant::from(other),
    }
}

fn words(value: Value<'_>, encoding: Encoding) -> String {
    match value {
        Value::Text(t) => String::from_utf8_lossy(&encoding.to_utf8(t)).into_owned(),
        _ => String::new(),
    }
}
