//! Each index against its table, in both directions.

use std::collections::BTreeSet;

use rayon::prelude::*;

use crate::ctx::Ctx;
use crate::error::Result;
use crate::finding::{Code, Defect, Findings, Site};
use crate::format::{Encoding, Fields, Value};
use crate::ids::{ObjectId, PageNo, wide};
use crate::schema::{IndexPart, IndexSource};
use crate::survey::index_fit::Absent;
use crate::survey::index_fit::NAMED;
use crate::survey::index_fit::{GoneEntry, GoneKey, IndexFit};
use crate::survey::rows::entry::EntryHash;
use crate::survey::rows::judge::Judge;
use crate::survey::rows::plan::{IndexPlan, Row, TablePlan};
use crate::survey::stages::{Content, Scanned};
use crate::tree::cells::visit;
use crate::tree::payload::PayloadReader;
use crate::tree::{Pages, Slot};

/// The slots of an index that can bear witness: read as a whole, without a condition.
pub(in crate::survey) fn witness<'s>(survey: &'s Scanned<'_>, plan: &IndexPlan) -> Option<&'s [Slot]> {
    let t = survey.tree_of(plan.object)?;
    let Some(Content::Index { scan, .. }) = &t.content else { return None };
    let whole = plan.computable && plan.condition.is_none() && scan.broken == 0 && scan.damaged.is_empty() && t.tree.holes() == 0;
    whole.then_some(&t.tree.slots)
}

/// Whether an index of a table can bear witness for or against its rows.
#[must_use]
pub(in crate::survey) fn has_witness(survey: &Scanned<'_>, plan: &TablePlan) -> bool {
    plan.indexes.iter().any(|p| witness(survey, p).is_some())
}

/// Memory for the hashes of one side, in entries of 8 bytes; more entries take more than one pass.
const HASHES_AT_ONCE: u64 = 4 << 20;

/// How a row or an entry is known in both a table and its indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Id {
    /// By its rowid.
    Rowid(i64),
    /// By the fingerprint of its primary key.
    Key(u64),
}

/// A row without its entry, or an entry without its row, before it is known whether the two belong together.
#[derive(Debug)]
pub(super) struct Told {
    /// Which row.
    pub(super) id: Option<Id>,
    /// The page of the row or entry.
    pub(super) page: PageNo,
    /// The cell.
    pub(super) cell: u16,
    /// It stands on the other side, but not once more.
    pub(super) copied: bool,
    /// It in words.
    words: String,
}

/// An index against its table: what is told of it.
#[derive(Debug, Default)]
pub(super) struct Compared {
    pub(super) fit: IndexFit,
    /// Rows without their entry, the first [`NAMED`].
    pub(super) absent: Vec<Told>,
    /// Entries without their row, the first [`NAMED`].
    pub(super) extra: Vec<Told>,
    /// How many more there are of both.
    pub(super) unnamed: (u64, u64),
}

impl Compared {
    /// Enters what is told into the findings.
    pub(super) fn note(&self, object: ObjectId, pages: &Pages<'_>, log: &mut Findings) {
        let (rows, entries) = self.unnamed;
        for (code, list, more) in [(Code::RowNotInIndex, &self.absent, rows), (Code::IndexEntryWithoutRow, &self.extra, entries)] {
            for told in list {
                let here = pages.site(Site::object(object), told.page).cell(told.cell);
                log.add_with(Defect::new(code, 0, u64::from(told.cell), 0), here, told.words.clone());
            }
            log.count_more(code, Some(object), more);
        }
    }
}

pub(in crate::survey) struct Sides<'s, 'a> {
    pub(in crate::survey) pages: &'s Pages<'a>,
    pub(in crate::survey) table_slots: &'s [Slot],
    pub(in crate::survey) table_plan: &'s TablePlan,
    pub(in crate::survey) index_slots: &'s [Slot],
    pub(in crate::survey) plan: &'s IndexPlan,
    pub(in crate::survey) encoding: Encoding,
}

/// A row or entry by its hash: what a pass over one side gives.
pub(in crate::survey) struct Seen<'r> {
    pub(in crate::survey) hash: u64,
    pub(in crate::survey) key: u64,
    pub(in crate::survey) page: PageNo,
    pub(in crate::survey) cell: u16,
    pub(in crate::survey) rowid: Option<i64>,
    /// The fingerprint of the primary key, in a table without rowids.
    pub(in crate::survey) row: Option<u64>,
    pub(in crate::survey) words: &'r dyn Fn() -> String,
}

impl Sides<'_, '_> {
    /// How both sides differ, and how many of the deleted rows the index does not have.
    pub(super) fn differ(&self, entries: u64, deleted: &BTreeSet<(PageNo, u16)>, ctx: &Ctx) -> Result<(Compared, u64)> {
        let mut right = 0_u64;
        let parts = entries.div_ceil(HASHES_AT_ONCE).max(1);
        let (mut missing, mut surplus) = (0_u64, 0_u64);
        let mut named: BTreeSet<GoneEntry> = BTreeSet::new();
        let mut keys: BTreeSet<GoneKey> = BTreeSet::new();
        let mut unknown: Vec<Absent> = Vec::new();
        let (mut told_absent, mut told_extra) = (Vec::new(), Vec::new());
        let by_rowid = self.plan.by_rowid();
        for part in 0..parts {
            let mine = |hash: u64| hash.checked_rem(parts) == Some(part);
            let mut rows: Vec<u64> = Vec::new();
            self.each_row(ctx, &mut |s| {
                if mine(s.hash) {
                    rows.push(s.hash);
                }
            })?;
            let mut held: Vec<u64> = Vec::new();
            self.each_entry(ctx, &mut |s| {
                if mine(s.hash) {
                    held.push(s.hash);
                }
            })?;
            rows.par_sort_unstable();
            held.par_sort_unstable();
            let mut absent = difference(&rows, &held);
            let mut extra = difference(&held, &rows);
            missing = missing.saturating_add(absent.total());
            surplus = surplus.saturating_add(extra.total());
            let tell = |s: &Seen<'_>, copied: bool| Told {
                id: if by_rowid { s.rowid.map(Id::Rowid) } else { s.row.map(Id::Key) },
                page: s.page,
                cell: s.cell,
                copied,
                words: (s.words)(),
            };
            if absent.total() > 0 {
                self.each_row(ctx, &mut |s| {
                    if absent.take(s.hash) {
                        if deleted.contains(&(s.page, s.cell)) {
                            right = right.saturating_add(1);
                            return;
                        }
                        let copied = held.binary_search(&s.hash).is_ok();
                        if unknown.len() < NAMED {
                            told_absent.push(tell(&s, copied));
                            unknown.push(Absent { page: s.page, cell: s.cell, rowid: s.rowid, key: s.key, copied });
                        }
                    }
                })?;
            }
            if extra.total() > 0 {
                self.each_entry(ctx, &mut |s| {
                    if extra.take(s.hash) {
                        if told_extra.len() < NAMED {
                            told_extra.push(tell(&s, rows.binary_search(&s.hash).is_ok()));
                        }
                        if let Some(rowid) = s.rowid.filter(|_| by_rowid && named.len() < NAMED) {
                            named.insert(GoneEntry { rowid, key: s.key, page: s.page, cell: s.cell });
                        }
                        if let Some(row) = s.row.filter(|_| keys.len() < NAMED) {
                            keys.insert(GoneKey { row, page: s.page, cell: s.cell });
                        }
                    }
                })?;
            }
        }
        let there = self.there(named.iter().map(|g| g.rowid).collect(), |s| s.rowid, ctx)?;
        named.retain(|g| !there.contains(&g.rowid));
        let there = self.there(keys.iter().map(|g| g.row).collect(), |s| s.row, ctx)?;
        keys.retain(|g| !there.contains(&g.row));
        let (gone, gone_keys) = (named.into_iter().collect(), keys.into_iter().collect());
        let missing = missing.saturating_sub(right);
        let fit = IndexFit::Differs { missing, surplus, absent: unknown, gone, gone_keys };
        let unnamed = (missing.saturating_sub(wide(told_absent.len())), surplus.saturating_sub(wide(told_extra.len())));
        Ok((Compared { fit, absent: told_absent, extra: told_extra, unnamed }, right))
    }

    /// Which of these some row of the table has.
    fn there<K: Ord>(&self, wanted: BTreeSet<K>, of: impl Fn(&Seen<'_>) -> Option<K>, ctx: &Ctx) -> Result<BTreeSet<K>> {
        let mut there = BTreeSet::new();
        if !wanted.is_empty() {
            self.each_row(ctx, &mut |s| there.extend(of(&s).filter(|k| wanted.contains(k))))?;
        }
        Ok(there)
    }

    pub(in crate::survey) fn each_row(&self, ctx: &Ctx, f: &mut dyn FnMut(Seen<'_>)) -> Result<()> {
        let judge = Judge::new(self.table_plan);
        let mut reader = PayloadReader::new();
        let mut fields = Fields::new();
        visit(self.pages, self.table_slots, Site::default(), false, &mut Findings::new(0), ctx, |_, at| {
            let Ok(payload) = reader.read(self.pages, &at.cell) else { return Ok(()) };
            if fields.read(payload, at.cell.payload_len).is_err() {
                return Ok(());
            }
            let row = Row { rowid: at.cell.rowid, payload, fields: &fields };
            if let Some((key, hash)) = judge.entry_hashes(&row, self.plan) {
                let words = || match row.rowid {
                    Some(rowid) => format!("rowid {rowid}"),
                    None => words(fields.values(payload).take(self.table_plan.key.as_ref().map_or(1, |k| k.columns.len())), self.encoding),
                };
                let parts = self.table_plan.key.as_ref().map(|k| k.columns.len());
                let row = parts.map(|n| fields.values(payload).take(n).fold(EntryHash::default(), EntryHash::add).get());
                f(Seen { hash: hash.get(), key: key.get(), page: at.page, cell: at.no, rowid: at.cell.rowid, row, words: &words });
            }
            Ok(())
        })?;
        Ok(())
    }

    pub(in crate::survey) fn each_entry(&self, ctx: &Ctx, f: &mut dyn FnMut(Seen<'_>)) -> Result<()> {
        let mut reader = PayloadReader::new();
        let mut fields = Fields::new();
        let parts = self.key_parts();
        visit(self.pages, self.index_slots, Site::default(), false, &mut Findings::new(0), ctx, |_, at| {
            let Ok(payload) = reader.read(self.pages, &at.cell) else { return Ok(()) };
            if fields.read(payload, at.cell.payload_len).is_err() || fields.len() != self.plan.columns.len() {
                return Ok(());
            }
            let (key, hash) = fields.values(payload).fold((EntryHash::default(), EntryHash::default()), |(_, h), v| (h, h.add(v)));
            let rowid = fields.values(payload).last().and_then(Value::as_int);
            let words = || words(fields.values(payload), self.encoding);
            let value = |at: &usize| fields.value(payload, *at).unwrap_or(Value::Null);
            let row = parts.as_ref().map(|p| p.iter().map(value).fold(EntryHash::default(), EntryHash::add).get());
            f(Seen { hash: hash.get(), key: key.get(), page: at.page, cell: at.no, rowid, row, words: &words });
            Ok(())
        })?;
        Ok(())
    }

    /// Where the primary key of a table without rowids stands in the entries; `None` for other tables.
    fn key_parts(&self) -> Option<Vec<usize>> {
        let key = self.table_plan.key.as_ref()?;
        let place = |part: &IndexPart| self.plan.columns.iter().position(|c| same_column(&c.source, &part.source));
        key.columns.iter().map(place).collect()
    }
}

fn same_column(a: &IndexSource, b: &IndexSource) -> bool {
    matches!((a, b), (IndexSource::Column(a), IndexSource::Column(b)) if a == b)
}

/// Hashes in order, each with how often it stands.
struct Bag(Vec<(u64, u32)>);

impl Bag {
    fn total(&self) -> u64 {
        self.0.iter().map(|(_, n)| u64::from(*n)).sum()
    }

    /// Takes a hash out once, if it is there.
    fn take(&mut self, hash: u64) -> bool {
        let found = self.0.binary_search_by_key(&hash, |(h, _)| *h).ok().and_then(|i| self.0.get_mut(i)).filter(|(_, n)| *n > 0);
        found.is_some_and(|(_, n)| {
            *n = n.saturating_sub(1);
            true
        })
    }
}

/// What stands in `a` more often than in `b`; both sorted.
fn difference(a: &[u64], b: &[u64]) -> Bag {
    let mut out: Vec<(u64, u32)> = Vec::new();
    let mut b = b.iter().copied().peekable();
    for &x in a {
        while b.next_if(|&y| y < x).is_some() {}
        if b.next_if_eq(&x).is_none() {
            match out.last_mut().filter(|(h, _)| *h == x) {
                Some((_, n)) => *n = n.saturating_add(1),
                None => out.push((x, 1)),
            }
        }
    }
    Bag(out)
}

/// Values as a person reads them, at most 60 characters each.
pub(crate) fn words<'v>(values: impl Iterator<Item = Value<'v>>, encoding: Encoding) -> String {
    let mut out = String::new();
    for v in values {
        if !out.is_empty() {
            out.push_str(", ");
        }
        let word = match v {
            Value::Null => "NULL".to_owned(),
            Value::Int(n) => n.to_string(),
            Value::Real(r) => r.to_string(),
            Value::Text(t) => format!("'{}'", String::from_utf8_lossy(&encoding.to_utf8(t.get(..240).unwrap_or(t)))),
            Value::Blob(b) => format!("blob of {} bytes", b.len()),
        };
        out.extend(word.chars().take(60));
    }
    out
}
