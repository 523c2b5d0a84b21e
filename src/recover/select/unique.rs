//! Rows that UNIQUE does not let stand together, settled before anything is written.
//!
//! Tests:    keys of tables that are out of order, keys of UNIQUE indexes that are not whole.
//! Collects: rows to exclude, values that become NULL.
//! Leaves:   nothing: after it every key stands once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::ctx::Ctx;
use crate::error::Result;
use crate::finding::{Code, Defect, Findings, Site};
use crate::format::Fields;
use crate::ids::{ObjectId, PageNo, wide};
use crate::recover::Selection;
use crate::recover::entries::{EntryMaker, order};
use crate::recover::live::{RowReader, rows};
use crate::recover::stream::place_of;
use crate::schema::IndexSource;
use crate::sort::Sorter;
use crate::survey::judge::{Judge, Verdict};
use crate::survey::plan::{IndexPlan, Row, TablePlan};
use crate::survey::table::Excluded;
use crate::survey::{Content, IndexFit, Survey};
use crate::tree::Slot;

use super::rivals::twice;

/// Settles all tables.
pub(crate) fn settle(
    survey: &Survey<'_>,
    selections: &mut BTreeMap<ObjectId, Selection>,
    log: &mut Findings,
    folder: &Path,
    ctx: &Ctx,
) -> Result<()> {
    for t in &survey.trees {
        let Some(Content::Table { plan, scan }) = &t.content else { continue };
        let Some(selection) = selections.get_mut(&t.object) else { continue };
        let mut table = Table { survey, plan, slots: &t.tree.slots, selection, log, folder };
        if !scan.ordered {
            twice(survey, plan, &t.tree.slots, table.selection, folder, ctx)?;
        }
        let doubtful = || plan.indexes.iter().filter(|i| i.unique > 0 && i.computable && !is_whole(survey, i.object));
        for index in doubtful() {
            table.settle(index, true, ctx)?;
        }
        // A value that became NULL may bring its row under the condition of another index.
        if !table.selection.nulled.is_empty() {
            for index in plan.indexes.iter().filter(|i| i.unique > 0 && i.computable && i.condition.is_some()) {
                table.settle(index, false, ctx)?;
            }
        }
    }
    Ok(())
}

fn is_whole(survey: &Survey<'_>, index: ObjectId) -> bool {
    survey.tree_of(index).is_some_and(|t| match &t.content {
        Some(Content::Index { scan, fit, .. }) => *fit == IndexFit::Equal && scan.ordered && scan.duplicates == 0,
        _ => false,
    })
}

/// Rows that an index, which was compared with its table, has no entry for. Of rows that are the same to the index it does not
/// say which is absent.
pub(crate) fn absent(survey: &Survey<'_>, index: ObjectId) -> BTreeSet<(PageNo, u16)> {
    match survey.tree_of(index).and_then(|t| t.content.as_ref()) {
        Some(Content::Index { fit: IndexFit::Differs { absent, .. }, .. }) => {
            absent.iter().filter(|a| !a.copied).map(|a| (a.page, a.cell)).collect()
        }
        _ => BTreeSet::new(),
    }
}

struct Table<'t, 's, 'a> {
    survey: &'s Survey<'a>,
    plan: &'s TablePlan,
    slots: &'s [Slot],
    selection: &'t mut Selection,
    log: &'t mut Findings,
    folder: &'t Path,
}

/// A row with the key of another: its place and rowid.
type Twin = ((PageNo, u16), i64);

impl Table<'_, '_, '_> {
    /// Lets one row of each key stand: the one that the index names, else the first. Another loses the value where it may be
    /// NULL, else it is set aside.
    fn settle(&mut self, index: &IndexPlan, may_null: bool, ctx: &Ctx) -> Result<()> {
        let groups = self.groups(index, ctx)?;
        if groups.is_empty() {
            return Ok(());
        }
        let absent = absent(self.survey, index.object);
        let column = if may_null { self.nullable(index) } else { None };
        for group in groups {
            let winner = group.iter().position(|(place, _)| !absent.contains(place)).unwrap_or(0);
            for (i, (place, rowid)) in group.iter().enumerate() {
                if i == winner {
                    continue;
                }
                let site = self.survey.pages.site(Site::object(index.object), place.0).cell(place.1);
                let rowid = self.plan.key.is_none().then_some(*rowid);
                let words = rowid.map_or_else(String::new, |r| format!("rowid {r}"));
                self.log.add_with(Defect::new(Code::UniqueBroken, 0, u64::from(place.1), 0), site, words);
                if column.is_some_and(|c| self.null(*place, c)) {
                    continue;
                }
                let got = u64::from(index.object.0);
                self.selection.exclude(Excluded { page: place.0, cell: place.1, rowid, code: Code::UniqueBroken, got });
            }
        }
        Ok(())
    }

    /// The rows that share a key, in the order of the tree.
    fn groups(&self, index: &IndexPlan, ctx: &Ctx) -> Result<Vec<Vec<Twin>>> {
        let mut sorter = Sorter::new(ctx.sort_memory(), self.folder);
        let order = order(index, self.plan)?;
        let mut maker = EntryMaker::new(self.plan, index);
        let (mut key, mut place) = (Vec::new(), Vec::new());
        rows(&self.survey.pages, self.slots, self.plan, self.selection, ctx, |row| {
            // NULL is never equal to another NULL under UNIQUE.
            if !maker.make(&row) || maker.unique_values().any(|v| v.is_null()) {
                return Ok(());
            }
            key.clear();
            order.encode(&mut key, maker.unique_values());
            place.clear();
            place.extend_from_slice(&row.page.get().to_be_bytes());
            place.extend_from_slice(&row.cell.to_be_bytes());
            place.extend_from_slice(&row.rowid.unwrap_or(0).to_be_bytes());
            sorter.push(&key, &place)
        })?;
        let mut sorted = sorter.finish()?;
        let mut last: Option<Vec<u8>> = None;
        let mut open: Vec<Twin> = Vec::new();
        let mut groups = Vec::new();
        while let Some((key, place)) = sorted.next()? {
            let rowid = crate::bytes::u64_at(place, 6).map_or(0, |n| i64::from_ne_bytes(n.to_ne_bytes()));
            let Some(at) = place_of(place) else { continue };
            if last.as_deref() != Some(key) {
                last = Some(key.to_vec());
                if open.len() > 1 {
                    groups.push(std::mem::take(&mut open));
                }
                open.clear();
            }
            open.push((at, rowid));
        }
        if open.len() > 1 {
            groups.push(open);
        }
        Ok(groups)
    }

    /// The column of an index whose value may give way: stored, nullable, and no part of a primary key.
    fn nullable(&self, index: &IndexPlan) -> Option<usize> {
        let def = self.survey.catalog.get(self.plan.object)?.table_def()?;
        let key = index.columns.get(..index.unique)?;
        key.iter().rev().find_map(|part| {
            let IndexSource::Column(c) = part.source else { return None };
            let column = self.plan.columns.get(c)?;
            let primary = def.columns.get(c)?.primary || self.plan.alias == Some(c);
            (column.position.is_some() && column.generated.is_none() && !column.not_null && !primary).then_some(c)
        })
    }

    /// Writes NULL for a value of a row; `false` when the row would then break the declaration of its table.
    fn null(&mut self, place: (PageNo, u16), column: usize) -> bool {
        self.selection.nulled.entry(place).or_default().insert(column);
        let judge = Judge::new(self.plan);
        let good = {
            let mut reader = RowReader::new(&self.survey.pages, self.plan, self.selection);
            let mut fields = Fields::new();
            reader.at(place.0, place.1).is_some_and(|row| {
                fields.read(row.record, wide(row.record.len())).is_ok() && {
                    let row = Row { rowid: row.rowid, payload: row.record, fields: &fields };
                    !matches!(judge.judge(&row, Site::default(), &mut Findings::new(0), &mut []), Verdict::Breaks(..))
                }
            })
        };
        if !good {
            self.selection.nulled.remove(&place);
        }
        good
    }
}
