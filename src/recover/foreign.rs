//! Foreign keys over the rows that stay live.
//!
//! Tests:    every row whose foreign key has no NULL against the keys of its parent table.
//! Collects: orphans, counted for each key; children of parents that were set aside.
//! Leaves:   the rows as they are: SQLite does not ask for parents either unless `foreign_keys` is on.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;

use crate::ctx::Ctx;
use crate::error::Result;
use crate::expr::{Datum, apply_affinity, trim_spaces};
use crate::finding::{Code, Defect, Findings, Site};
use crate::format::{Cell, Encoding, Fields, Value};
use crate::ids::{ObjectId, PageNo, wide};
use crate::recover::Selection;
use crate::schema::ddl::{ForeignKey, TableDef};
use crate::schema::{Affinity, Collation, ObjectKind};
use crate::survey::entry::EntryHash;
use crate::survey::plan::{Row, TablePlan};
use crate::survey::{Content, Survey, SurveyedTree};
use crate::tree::cells::visit;
use crate::tree::payload::PayloadReader;
use crate::tree::{Pages, Slot};

/// Leaves that one worker takes at a time.
const RUN: usize = 256;

/// Keys of parents that are held at once, 8 bytes each; a larger parent is not checked, and that is a finding.
const KEYS: u64 = 1 << 27;

/// The place of a cell.
pub type Place = (PageNo, u16);

/// What foreign keys say.
#[derive(Debug, Clone, Default)]
pub struct Foreign {
    /// One finding for each orphan.
    pub log: Findings,
    /// Orphans of each foreign key that has some.
    pub orphans: Vec<Orphans>,
    /// For parents that were set aside: how many live rows of which table name them.
    pub children: BTreeMap<(ObjectId, Place), BTreeMap<ObjectId, u64>>,
}

/// The orphans of one foreign key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orphans {
    /// The table that they stand in.
    pub table: ObjectId,
    /// The columns of the key, in words.
    pub columns: String,
    /// The table that has no such row.
    pub parent: String,
    /// How many.
    pub count: u64,
}

/// Checks every foreign key. `selections` says which rows of a table are live; all, where it has none.
///
/// # Errors
/// Cancellation only.
pub fn check(survey: &Survey<'_>, selections: &BTreeMap<ObjectId, Selection>, ctx: &Ctx) -> Result<Foreign> {
    let mut out = Foreign { log: Findings::new(survey.findings.cap()), ..Foreign::default() };
    for t in &survey.trees {
        let Some(object) = survey.catalog.get(t.object).filter(|o| o.kind == ObjectKind::Table && o.problem.is_none()) else { continue };
        let (Some(def), Some(Content::Table { plan, .. })) = (object.table_def(), &t.content) else { continue };
        for key in &def.foreign_keys {
            one(survey, t, plan, key, selections, &mut out, ctx)?;
        }
    }
    Ok(out)
}

/// How values of a key are made alike: the affinity and the collation of the parent's column.
struct Sameness {
    affinity: Affinity,
    collation: Collation,
}

fn one(
    survey: &Survey<'_>,
    t: &SurveyedTree,
    plan: &TablePlan,
    key: &ForeignKey,
    selections: &BTreeMap<ObjectId, Selection>,
    out: &mut Foreign,
    ctx: &Ctx,
) -> Result<()> {
    let Some(parent) = survey.catalog.by_name(key.parent.as_bytes()).filter(|o| o.kind == ObjectKind::Table) else { return Ok(()) };
    let Some(def) = parent.table_def() else { return Ok(()) };
    let Some((pt, Content::Table { plan: parent_plan, scan })) = survey.tree_of(parent.id).and_then(|t| Some((t, t.content.as_ref()?)))
    else {
        return Ok(());
    };
    let Some(columns) = parent_columns(def, parent_plan, key).filter(|c| c.len() == key.columns.len()) else { return Ok(()) };
    if scan.cells > KEYS {
        let words = format!(
            "rows of {}, which foreign keys of this table name. These keys are not checked; PRAGMA foreign_key_check on the copy does it",
            parent.name.text()
        );
        out.log.add_with(Defect::new(Code::LimitReached, 0, scan.cells, KEYS), Site::object(t.object), words);
        return Ok(());
    }
    let same: Vec<Sameness> = columns
        .iter()
        .map(|c| Sameness {
            affinity: parent_plan.columns.get(*c).map_or(Affinity::Blob, |c| c.affinity),
            collation: def.columns.get(*c).map_or(Collation::Binary, |c| c.collation.clone()),
        })
        .collect();
    if same.iter().any(|s| !s.collation.is_known()) {
        return Ok(());
    }
    let none = Selection::default();
    let side = |plan, slots, columns, id| Side {
        pages: &survey.pages,
        plan,
        slots,
        columns,
        same: &same,
        selection: selections.get(&id).unwrap_or(&none),
    };
    let parents = side(parent_plan, &pt.tree.slots, &columns, parent.id);
    let children = side(plan, &t.tree.slots, &key.columns, t.object);
    let mut known: Vec<u64> = parents.fold(false, ctx, |all: &mut Vec<u64>, k| all.push(k.hash))?.concat();
    known.par_sort_unstable();
    let mut aside: BTreeMap<u64, Place> = BTreeMap::new();
    if !parents.selection.excluded.is_empty() {
        aside.extend(parents.fold(true, ctx, |all: &mut Vec<(u64, Place)>, k| all.push((k.hash, k.place)))?.concat());
    }
    let cap = survey.findings.cap();
    let found = children.fold(false, ctx, |orphans: &mut Found, k| {
        if known.binary_search(&k.hash).is_ok() {
            return;
        }
        orphans.count = orphans.count.saturating_add(1);
        if orphans.first.len() < cap {
            orphans.first.push(k);
        }
        if let Some(place) = aside.get(&k.hash) {
            let n = orphans.of.entry(*place).or_insert(0);
            *n = n.saturating_add(1);
        }
    })?;
    let count = found.iter().map(|f| f.count).fold(0, u64::saturating_add);
    if count == 0 {
        return Ok(());
    }
    let names = |plan: &TablePlan, columns: &[usize]| {
        columns.iter().filter_map(|c| plan.columns.get(*c)).map(|c| c.name.clone()).collect::<Vec<_>>().join(", ")
    };
    let (name, words) = (parent.name.text(), names(plan, &key.columns));
    let mut named = 0_u64;
    for orphan in found.iter().flat_map(|f| &f.first).take(cap) {
        let site = survey.pages.site(Site::object(t.object), orphan.place.0).cell(orphan.place.1);
        let row = orphan.rowid.map_or_else(String::new, |r| format!("rowid {r}, "));
        out.log.add_with(Defect::new(Code::ForeignKeyBroken, 0, 0, 0), site, format!("{row}{words} names no row of {name}"));
        named = named.saturating_add(1);
    }
    out.log.count_more(Code::ForeignKeyBroken, Some(t.object), count.saturating_sub(named));
    for (place, n) in found.iter().flat_map(|f| &f.of) {
        let sum = out.children.entry((parent.id, *place)).or_default().entry(t.object).or_default();
        *sum = sum.saturating_add(*n);
    }
    out.orphans.push(Orphans { table: t.object, columns: words, parent: name, count });
    Ok(())
}

/// The columns of the parent that a foreign key names; its primary key where it names none.
fn parent_columns(def: &TableDef, plan: &TablePlan, key: &ForeignKey) -> Option<Vec<usize>> {
    if !key.parent_columns.is_empty() {
        return key.parent_columns.iter().map(|n| def.column(n.as_bytes())).collect();
    }
    match (&def.primary_key, plan.alias) {
        (Some(primary), _) => Some(primary.columns.iter().map(|c| c.column).collect()),
        (None, Some(alias)) => Some(vec![alias]),
        (None, None) => None,
    }
}

/// A key of a row, as a fingerprint.
#[derive(Debug, Clone, Copy)]
struct Key {
    hash: u64,
    place: Place,
    rowid: Option<i64>,
}

/// Orphans of one run of leaves.
#[derive(Debug, Default)]
struct Found {
    count: u64,
    first: Vec<Key>,
    of: BTreeMap<Place, u64>,
}

struct Side<'s, 'a> {
    pages: &'s Pages<'a>,
    plan: &'s TablePlan,
    slots: &'s [Slot],
    columns: &'s [usize],
    same: &'s [Sameness],
    selection: &'s Selection,
}

impl Side<'_, '_> {
    /// The keys of all rows that are live, or of those that are set aside, gathered by each run of leaves in key order. Keys
    /// with a NULL name nobody.
    fn fold<T: Default + Send>(&self, aside: bool, ctx: &Ctx, add: impl Fn(&mut T, Key) + Sync) -> Result<Vec<T>> {
        self.slots.par_chunks(RUN).map(|slots| self.run(slots, aside, ctx, &add)).collect()
    }

    fn run<T: Default>(&self, slots: &[Slot], aside: bool, ctx: &Ctx, add: impl Fn(&mut T, Key)) -> Result<T> {
        let mut keys = T::default();
        let mut reader = PayloadReader::new();
        let mut fields = Fields::new();
        visit(self.pages, slots, Site::default(), false, &mut Findings::new(0), ctx, |_, at| {
            let place = (at.page, at.no);
            if self.selection.excluded.contains_key(&place) != aside {
                return Ok(());
            }
            let nulled = self.selection.nulled.get(&place);
            if let Some(hash) = self.key(&at.cell, &mut reader, &mut fields, nulled) {
                add(&mut keys, Key { hash, place, rowid: at.cell.rowid });
            }
            Ok(())
        })?;
        Ok(keys)
    }

    fn key(&self, cell: &Cell<'_>, reader: &mut PayloadReader, fields: &mut Fields, nulled: Option<&BTreeSet<usize>>) -> Option<u64> {
        if nulled.is_some_and(|n| self.columns.iter().any(|c| n.contains(c))) {
            return None;
        }
        // Keys mostly lie in front: the overflow chain is read only when they do not.
        let local =
            fields.read(cell.local, cell.payload_len).is_ok() && self.columns.iter().all(|c| self.is_within(*c, fields, cell.local));
        let payload = if local { cell.local } else { reader.read(self.pages, cell).ok()? };
        if !local {
            fields.read(payload, cell.payload_len).ok()?;
        }
        let row = Row { rowid: cell.rowid, payload, fields };
        let mut hash = EntryHash::default();
        for (column, same) in self.columns.iter().zip(self.same) {
            let value = self.plan.stored_value(&row, *column)?;
            if value.is_null() {
                return None;
            }
            hash = same.add(hash, value, self.plan.encoding);
        }
        Some(hash.get())
    }

    fn is_within(&self, column: usize, fields: &Fields, local: &[u8]) -> bool {
        let Some(position) = self.plan.columns.get(column).and_then(|c| c.position) else { return true };
        fields.as_slice().get(position).is_none_or(|f| u64::from(f.start).saturating_add(u64::from(f.len)) <= wide(local.len()))
    }
}

impl Sameness {
    fn add(&self, hash: EntryHash, value: Value<'_>, encoding: Encoding) -> EntryHash {
        let plain = match (self.affinity, value) {
            (Affinity::Text | Affinity::Blob, Value::Text(_)) => self.collation == Collation::Binary,
            (Affinity::Integer | Affinity::Numeric | Affinity::Real, Value::Int(_) | Value::Real(_)) | (_, Value::Blob(_)) => true,
            _ => false,
        };
        if plain {
            return hash.add(value);
        }
        match apply_affinity(Datum::of_value(value, encoding), self.affinity) {
            Datum::Int(n) => hash.add(Value::Int(n)),
            Datum::Real(r) => hash.add(Value::Real(r)),
            Datum::Text(t) => {
                let folded = match self.collation {
                    Collation::NoCase => t.to_ascii_lowercase(),
                    Collation::RTrim => trim_spaces(&t).to_vec(),
                    _ => t.to_vec(),
                };
                hash.add(Value::Text(&encoding.from_utf8(&folded)))
            }
            _ => hash.add(value),
        }
    }
}
