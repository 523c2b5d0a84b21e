//! Which chosen rows may stand beside the rows that are there, and beside one another.
//!
//! Tests:    rowids and primary keys, then the keys of every UNIQUE index.
//! Collects: rows that are refused, with the reason; rows that are there already; rows that take the place of another.
//! Leaves:   foreign keys, which need all tables.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::bytes::{u8_at, u64_at};
use crate::ctx::Ctx;
use crate::error::Result;
use crate::format::{Fields, Value};
use crate::ids::{ObjectId, wide};
use crate::recover::entries::{EntryMaker, order};
use crate::recover::{LiveRow, Selection, rows};
use crate::sort::Sorter;
use crate::survey::Survey;
use crate::survey::compare::words;
use crate::survey::plan::{Row, TablePlan};

use super::chosen::Target;
use super::merge::{Extra, Extras, Merged, merged};
use super::model::{Conflict, Restored, RestoredTable};
use super::{Highest, LISTED, Wanted, n};

/// Why a row is not restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    /// A stable word.
    pub(super) kind: &'static str,
    /// What stands against it.
    pub(super) detail: String,
}

impl Refusal {
    pub(super) fn new(kind: &'static str, detail: &str) -> Refusal {
        Refusal { kind, detail: detail.to_owned() }
    }
}

/// What was decided about the chosen rows, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Decisions {
    /// Not restored, by the word for it.
    pub(super) refused: BTreeMap<u64, &'static str>,
    /// There already, or the same as another chosen row.
    pub(super) same: BTreeSet<u64>,
    /// They take the place of a row that is there.
    pub(super) replaced: BTreeSet<u64>,
    /// They get another rowid.
    pub(super) renumbered: BTreeMap<u64, i64>,
    /// The highest rowid that each table gets.
    pub(super) highest: Highest,
    tables: BTreeMap<ObjectId, RestoredTable>,
    /// The first refusals of each table in words.
    told: BTreeMap<ObjectId, Vec<(u64, Conflict)>>,
}

impl Decisions {
    /// Whether a row does not enter the table: refused, or there already.
    pub(super) fn is_out(&self, no: u64) -> bool {
        self.refused.contains_key(&no) || self.same.contains(&no)
    }

    pub(super) fn refuse(&mut self, target: &Target<'_>, no: u64, place: Option<(usize, i64)>, refusal: &Refusal) {
        self.replaced.remove(&no);
        self.renumbered.remove(&no);
        if self.refused.insert(no, refusal.kind).is_some() {
            return;
        }
        let told = self.told.entry(target.plan.object).or_default();
        if told.len() < LISTED {
            let (mirror, salvage_row) = place.unwrap_or((0, 0));
            let salvage_table = target.mirrors.get(mirror).map(|m| m.name.clone()).unwrap_or_default();
            let (table, kind) = (target.plan.name.clone(), refusal.kind);
            told.push((no, Conflict { table, salvage_table, salvage_row, kind, detail: Some(refusal.detail.clone()) }));
        }
    }

    /// Enters what was decided about a table into the report.
    pub(super) fn tell(&mut self, base: &Survey<'_>, target: &Target<'_>, report: &mut Restored) {
        let Some(mut table) = self.tables.remove(&target.plan.object) else { return };
        let mine = |no: &u64| target.numbers().contains(no);
        if table.chosen == 0 {
            return;
        }
        table.table.clone_from(&target.plan.name);
        table.already_there = n(self.same.iter().filter(|no| mine(no)).count());
        table.replaced = n(self.replaced.iter().filter(|no| mine(no)).count());
        table.renumbered = n(self.renumbered.keys().filter(|no| mine(no)).count());
        for (_, kind) in self.refused.iter().filter(|(no, _)| mine(no)) {
            let sum = table.refused.entry((*kind).to_owned()).or_insert(0);
            *sum = sum.saturating_add(1);
        }
        let refused = table.refused.values().fold(0_u64, |sum, n| sum.saturating_add(*n));
        table.restored = table.chosen.saturating_sub(table.already_there).saturating_sub(refused);
        let there = match base.tree_of(target.plan.object).and_then(|t| t.content.as_ref()) {
            Some(crate::survey::Content::Table { scan, .. }) => scan.cells,
            _ => 0,
        };
        table.rows_after = there.saturating_add(table.restored).saturating_sub(table.replaced);
        let mut told = self.told.remove(&target.plan.object).unwrap_or_default();
        told.sort_by_key(|(no, _)| *no);
        report.conflicts.extend(told.into_iter().map(|(_, c)| c));
        report.tables.push(table);
    }
}

/// Settles rowids and primary keys.
pub(super) fn keys(
    base: &Survey<'_>,
    aside: &Survey<'_>,
    target: &Target<'_>,
    wanted: &Wanted,
    decisions: &mut Decisions,
    folder: &Path,
    ctx: &Ctx,
) -> Result<()> {
    // What no row of the table can be is out before anything is compared.
    let mut places: BTreeMap<u64, (usize, i64)> = BTreeMap::new();
    let mut table = RestoredTable::default();
    target.each(aside, wanted, ctx, |c, refusal| {
        table.chosen = table.chosen.saturating_add(1);
        if let Some(refusal) = refusal {
            decisions.refuse(target, c.no, Some((c.mirror, c.row)), &refusal);
        }
        Ok(())
    })?;
    decisions.tables.insert(target.plan.object, table);
    let mut extras = Extras::new(aside, target, wanted, decisions, folder, ctx)?;
    let by_rowid = target.order.is_none();
    let (mut key, mut fields) = (Vec::new(), Fields::new());
    let mut last: Option<Extra> = None;
    let mut highest = None;
    let mut refusals: Vec<(u64, Refusal)> = Vec::new();
    let mut renumber: Vec<u64> = Vec::new();
    let may_renumber = wanted.renumber && by_rowid && target.plan.alias.is_none();
    let mut among = |extra: Extra, refusals: &mut Vec<(u64, Refusal)>, renumber: &mut Vec<u64>, same_set: &mut BTreeSet<u64>| {
        // The first of one key stands, the others are the same or in its way.
        match &last {
            Some(first) if first.key == extra.key => {
                if same(target.plan, &first.live(), &extra.live(), extra.partial) {
                    same_set.insert(extra.no);
                } else if may_renumber {
                    renumber.push(extra.no);
                } else {
                    refusals.push((extra.no, Refusal::new("twice", &format!("{}: another chosen row has this key", name(target, &extra)))));
                }
            }
            _ => last = Some(extra),
        }
    };
    let mut same_set = std::mem::take(&mut decisions.same);
    let mut replaced: BTreeSet<u64> = BTreeSet::new();
    rows(&base.pages, &target.tree.tree.slots, target.plan, &Selection::default(), ctx, |row| {
        key.clear();
        target.key(&row, &mut fields, &mut key);
        highest = highest.max(row.rowid);
        while let Some(extra) = extras.up_to(Some(&key), by_rowid)? {
            if extra.key != key {
                among(extra, &mut refusals, &mut renumber, &mut same_set);
            } else if same(target.plan, &row, &extra.live(), extra.partial) {
                same_set.insert(extra.no);
            } else if wanted.replace && !extra.partial {
                // Only the first may take the place.
                let no = extra.no;
                let (before, moved) = (refusals.len(), renumber.len());
                let known = same_set.len();
                among(extra, &mut refusals, &mut renumber, &mut same_set);
                if (before, moved, known) == (refusals.len(), renumber.len(), same_set.len()) {
                    replaced.insert(no);
                }
            } else if may_renumber {
                renumber.push(extra.no);
            } else {
                refusals.push((extra.no, Refusal::new("key-taken", &format!("{}: the copy has another row there", name(target, &extra)))));
            }
        }
        Ok(())
    })?;
    while let Some(extra) = extras.up_to(None, by_rowid)? {
        highest = highest.max(extra.rowid);
        among(extra, &mut refusals, &mut renumber, &mut same_set);
    }
    decisions.same = same_set;
    decisions.replaced.extend(replaced);
    let mut next = highest.unwrap_or(0).max(0);
    for no in renumber {
        match next.checked_add(1) {
            Some(free) => {
                next = free;
                decisions.renumbered.insert(no, free);
            }
            None => refusals.push((no, Refusal::new("key-taken", "no rowid is free"))),
        }
    }
    place_of(aside, target, wanted, refusals.iter().map(|(no, _)| *no).collect(), &mut places, ctx)?;
    for (no, refusal) in refusals {
        decisions.refuse(target, no, places.get(&no).copied(), &refusal);
    }
    Ok(())
}

/// Settles the keys of UNIQUE indexes: a row that is there wins, of chosen rows the first.
pub(super) fn unique(
    base: &Survey<'_>,
    aside: &Survey<'_>,
    target: &Target<'_>,
    wanted: &Wanted,
    decisions: &mut Decisions,
    folder: &Path,
    ctx: &Ctx,
) -> Result<()> {
    for index in target.plan.indexes.iter().filter(|i| i.unique > 0) {
        let mut extras = Extras::new(aside, target, wanted, decisions, folder, ctx)?;
        let mut sorter = Sorter::new(ctx.sort_memory(), folder);
        let order = order(index, target.plan)?;
        let mut maker = EntryMaker::new(target.plan, index);
        let mut key = Vec::new();
        merged(base, target, &mut extras, ctx, |row, what| {
            // NULL is never equal to another NULL under UNIQUE.
            if !maker.make(&row) || maker.unique_values().any(Value::is_null) {
                return Ok(());
            }
            key.clear();
            order.encode(&mut key, maker.unique_values());
            let no = match what {
                Merged::Base => 0,
                Merged::Chosen(extra) => extra.no.saturating_add(1),
            };
            let mut payload = vec![u8::from(no > 0)];
            payload.extend_from_slice(&no.to_be_bytes());
            sorter.push(&key, &payload)
        })?;
        let mut sorted = sorter.finish()?;
        let mut group: Vec<(bool, u64)> = Vec::new();
        let mut last: Vec<u8> = Vec::new();
        let mut losers: Vec<u64> = Vec::new();
        let mut close = |group: &mut Vec<(bool, u64)>| {
            let taken = group.iter().any(|(chosen, _)| !*chosen);
            let mut chosen: Vec<u64> = group.drain(..).filter(|(chosen, _)| *chosen).map(|(_, no)| no).collect();
            chosen.sort_unstable();
            losers.extend(chosen.into_iter().skip(usize::from(!taken)));
        };
        while let Some((key, payload)) = sorted.next()? {
            if key != last.as_slice() {
                close(&mut group);
                last.clear();
                last.extend_from_slice(key);
            }
            let chosen = u8_at(payload, 0) == Some(1);
            group.push((chosen, u64_at(payload, 1).unwrap_or(0).saturating_sub(1)));
        }
        close(&mut group);
        let mut places = BTreeMap::new();
        place_of(aside, target, wanted, losers.iter().copied().collect(), &mut places, ctx)?;
        for no in losers {
            let detail = format!("{} has this key already", index.name);
            decisions.refuse(target, no, places.get(&no).copied(), &Refusal::new("unique", &detail));
        }
    }
    count_how(aside, target, wanted, decisions, ctx)
}

/// Counts the rows that stay by how they were found, and notes the highest rowid.
pub(super) fn count_how(aside: &Survey<'_>, target: &Target<'_>, wanted: &Wanted, decisions: &mut Decisions, ctx: &Ctx) -> Result<()> {
    let mut how: BTreeMap<String, u64> = BTreeMap::new();
    let mut highest: Option<i64> = None;
    target.each(aside, wanted, ctx, |c, refusal| {
        if refusal.is_none() && !decisions.is_out(c.no) {
            highest = highest.max(decisions.renumbered.get(&c.no).copied().or(c.rowid));
            let sum = how.entry(c.how).or_insert(0);
            *sum = sum.saturating_add(1);
        }
        Ok(())
    })?;
    if let Some(table) = decisions.tables.get_mut(&target.plan.object) {
        table.how = how;
    }
    decisions.highest.remove(&target.plan.object);
    if let (Some(highest), true) = (highest, target.autoincrement) {
        decisions.highest.insert(target.plan.object, highest);
    }
    Ok(())
}

/// Where rows stand in the salvage database.
pub(super) fn place_of(
    aside: &Survey<'_>,
    target: &Target<'_>,
    wanted: &Wanted,
    numbers: BTreeSet<u64>,
    out: &mut BTreeMap<u64, (usize, i64)>,
    ctx: &Ctx,
) -> Result<()> {
    if numbers.is_empty() {
        return Ok(());
    }
    target.each(aside, wanted, ctx, |c, _| {
        if numbers.contains(&c.no) && out.len() < LISTED {
            out.insert(c.no, (c.mirror, c.row));
        }
        Ok(())
    })
}

/// Whether two rows have the same values; of a partial one only those count that it has.
fn same(plan: &TablePlan, a: &LiveRow<'_>, b: &LiveRow<'_>, partial: bool) -> bool {
    let (mut f, mut g) = (Fields::new(), Fields::new());
    if f.read(a.record, wide(a.record.len())).is_err() || g.read(b.record, wide(b.record.len())).is_err() {
        return false;
    }
    let (a, b) = (Row { rowid: a.rowid, payload: a.record, fields: &f }, Row { rowid: b.rowid, payload: b.record, fields: &g });
    plan.stored.iter().all(|c| {
        let (x, y) = (plan.stored_value(&a, *c), plan.stored_value(&b, *c));
        match (x, y) {
            (Some(Value::Real(x)), Some(Value::Real(y))) => x.to_bits() == y.to_bits(),
            (_, Some(Value::Null)) if partial => true,
            (x, y) => x == y,
        }
    })
}

/// A row in words.
pub(super) fn name(target: &Target<'_>, extra: &Extra) -> String {
    if let Some(rowid) = extra.rowid {
        return format!("rowid {rowid}");
    }
    let mut fields = Fields::new();
    if fields.read(&extra.record, wide(extra.record.len())).is_err() {
        return String::new();
    }
    let n = target.plan.key.as_ref().map_or(1, |k| k.columns.len());
    words(fields.values(&extra.record).take(n), target.plan.encoding)
}
