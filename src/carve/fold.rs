//! From finds to rows: exact doubles folded, copies of live rows left out, each row compared with what is live.
//!
//! Tests:    every find against the other finds of its bytes, of its rowid, and against the live rows of its table.
//! Collects: one row each, with every place.
//! Leaves:   nothing; sums say what became of every find.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::carve::found::Found;
use crate::carve::live::{Answers, Asked, Live, ask, key_sum, sum, sum_of_first};
use crate::carve::pages::Carver;
use crate::carve::shape::Of;
use crate::ctx::Ctx;
use crate::error::{Error, Result};
use crate::format::record::encode_record;
use crate::format::{Fields, Value};
use crate::ids::{ObjectId, idx, small, wide};
use crate::sort::Sorter;
use crate::tree::payload::PayloadReader;

/// Versions of one rowid that are held at once.
const VERSIONS: usize = 20_000;

/// What a row is to the live ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Relation {
    /// No live row has its key.
    Deleted,
    /// A live row has its key and other values.
    Older,
    /// Its key is gone, and no live row has its values.
    Unknown,
}

impl Relation {
    /// The word that outputs use.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Relation::Deleted => "deleted",
            Relation::Older => "older-version",
            Relation::Unknown => "deleted-or-older",
        }
    }
}

/// What the finds of a table came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sums {
    /// Places at which something was found.
    pub places: u64,
    /// Places that hold a copy of a live row.
    pub live_copies: u64,
    /// Places that hold a row once more.
    pub doubles: u64,
    /// Index entries of rows that were found elsewhere, or that are live.
    pub entries: u64,
    /// Whole rows whose key no live row has.
    pub deleted: u64,
    /// Whole rows whose key a live row has with other values.
    pub older: u64,
    /// Whole rows whose key is gone.
    pub unknown: u64,
    /// Rows of which a part is gone.
    pub partial: u64,
    /// Rows that only index entries name.
    pub index_only: u64,
}

/// A row as it is given out.
#[derive(Debug)]
pub(crate) struct Carved {
    pub(crate) found: Found,
    pub(crate) relation: Relation,
    /// Further places of the same row.
    pub(crate) more: Vec<String>,
}

fn order(rowid: i64) -> [u8; 8] {
    // The sign bit turned over makes the order of bytes that of numbers.
    (u64::from_ne_bytes(rowid.to_ne_bytes()) ^ (1 << 63)).to_be_bytes()
}

fn place_key(f: &Found, out: &mut Vec<u8>) {
    let (kind, number) = match f.place.origin {
        crate::finding::Origin::Main => (0_u8, 0),
        crate::finding::Origin::Journal { record } => (1, record),
        crate::finding::Origin::Wal { frame } => (2, frame.0),
    };
    out.push(kind);
    out.extend_from_slice(&number.to_be_bytes());
    out.extend_from_slice(&f.place.page.get().to_be_bytes());
    out.extend_from_slice(&f.place.at.to_be_bytes());
}

/// The finds with their doubles side by side, and what has to be asked of the live rows.
fn gather(carver: &Carver<'_, '_>, folder: &Path, ctx: &Ctx) -> Result<(Sorter, BTreeMap<ObjectId, Asked>)> {
    let mut sorter = Sorter::new(ctx.sort_memory(), folder);
    let mut asked: BTreeMap<ObjectId, Asked> = BTreeMap::new();
    let (mut key, mut bytes) = (Vec::new(), Vec::new());
    let mut fields = Fields::new();
    carver.all(ctx, |found| {
        let whole = sum(&found.payload);
        key.clear();
        key.extend_from_slice(&small(found.shape).to_be_bytes());
        key.push(u8::from(!found.index.is_empty()));
        key.extend_from_slice(&whole.to_be_bytes());
        key.push(u8::from(found.rowid.is_none()));
        key.extend_from_slice(&order(found.rowid.unwrap_or(0)));
        key.push(u8::from(!found.complete));
        key.push(u8::from(found.place.source.is_version()));
        place_key(&found, &mut key);
        found.encode(&mut bytes);
        sorter.push(&key, &bytes)?;
        if found.rowid.is_none() {
            for shape in std::iter::once(found.shape).chain(found.others.iter().map(|o| idx(*o))) {
                let Some(shape) = carver.shapes.all.get(shape) else { continue };
                let Of::Table(object) = shape.of else { continue };
                let asked = asked.entry(object).or_default();
                if found.complete {
                    asked.whole.insert(whole);
                }
                read_partial(&mut fields, &found);
                if shape.plan.key.is_some()
                    && found.leading() >= shape.plan.key.as_ref().map_or(0, |k| k.columns.len())
                    && let Some(key) = key_sum(&shape.plan, &fields, &found.payload)
                {
                    asked.keys.insert(key);
                }
                if !found.complete
                    && let Some(first) = sum_of_first(&fields, &found.payload, found.leading())
                {
                    asked.first.insert((found.leading(), first));
                }
            }
        }
        Ok(())
    })?;
    Ok((sorter, asked))
}

/// The fields of a find; those of a partial one as far as its header says them.
fn read_partial(fields: &mut Fields, found: &Found) {
    let _partial = fields.read(&found.payload, 0x7fff_ffff);
}

fn decode(bytes: &[u8]) -> Result<Found> {
    Found::decode(bytes).ok_or_else(|| Error::inconsistent("a find that was sorted does not read back"))
}

fn list(places: &[String]) -> Vec<u8> {
    places.join("; ").into_bytes()
}

/// Folds finds of the same bytes; the result is in the order of tables and rowids.
fn fold_doubles(sorter: Sorter, folder: &Path, sums: &mut [Sums], ctx: &Ctx) -> Result<Sorter> {
    let mut out = Sorter::new(ctx.sort_memory(), folder);
    let mut sorted = sorter.finish()?;
    let mut current: Option<(Vec<u8>, Found, Vec<String>)> = None;
    let mut seen = 0_u64;
    while let Some((key, bytes)) = sorted.next()? {
        seen = seen.saturating_add(1);
        if seen & 0xfff == 0 {
            ctx.check()?;
        }
        let found = decode(bytes)?;
        if let Some(sums) = sums.get_mut(found.shape) {
            sums.places = sums.places.saturating_add(1);
        }
        let same = key.get(..13).unwrap_or_default();
        if let Some((of, first, more)) = &mut current
            && of == same
            && (found.rowid.is_none() || found.rowid == first.rowid)
        {
            more.push(found.place.words());
            if let Some(sums) = sums.get_mut(found.shape) {
                sums.doubles = sums.doubles.saturating_add(1);
            }
            continue;
        }
        let same = same.to_vec();
        if let Some((_, first, more)) = current.replace((same, found, Vec::new())) {
            push(&mut out, &first, &more)?;
        }
    }
    if let Some((_, first, more)) = current {
        push(&mut out, &first, &more)?;
    }
    Ok(out)
}

fn push(out: &mut Sorter, found: &Found, more: &[String]) -> Result<()> {
    let mut key = Vec::new();
    key.extend_from_slice(&small(found.shape).to_be_bytes());
    key.push(u8::from(found.rowid.is_none()));
    key.extend_from_slice(&order(found.rowid.unwrap_or(0)));
    key.push(u8::from(!found.index.is_empty()));
    key.push(u8::from(!found.complete));
    place_key(found, &mut key);
    let mut bytes = Vec::new();
    found.encode(&mut bytes);
    let more = list(more);
    let mut record = Vec::new();
    encode_record(&mut record, [Value::Blob(&bytes), Value::Text(&more)].into_iter());
    out.push(&key, &record)
}

fn unpack(record: &[u8]) -> Result<(Found, Vec<String>)> {
    let mut fields = Fields::new();
    let broken = || Error::inconsistent("a row that was sorted does not read back");
    fields.read(record, wide(record.len())).map_err(|_| broken())?;
    let (Some(Value::Blob(found)), Some(Value::Text(more))) = (fields.value(record, 0), fields.value(record, 1)) else {
        return Err(broken());
    };
    let more = String::from_utf8_lossy(more);
    Ok((decode(found)?, more.split("; ").filter(|p| !p.is_empty()).map(str::to_owned).collect()))
}

/// Carves everything and hands each row to `each`, table by table. The sums are by shape.
///
/// # Errors
/// I/O on temporary files, cancellation, and what `each` returns.
pub(crate) fn run(carver: &Carver<'_, '_>, folder: &Path, ctx: &Ctx, mut each: impl FnMut(Carved) -> Result<()>) -> Result<Vec<Sums>> {
    let mut sums = vec![Sums::default(); carver.shapes.all.len()];
    let (sorter, asked) = gather(carver, folder, ctx)?;
    let rows = fold_doubles(sorter, folder, &mut sums, ctx)?;
    let live = Live::new(carver.survey, ctx)?;
    let mut answers: BTreeMap<ObjectId, Answers> = BTreeMap::new();
    for (object, asked) in &asked {
        answers.insert(*object, ask(carver.survey, *object, asked, ctx)?);
    }
    let mut folding = Folding { carver, live, answers, reader: PayloadReader::new(), fields: Fields::new(), sums: &mut sums };
    let mut sorted = rows.finish()?;
    let mut group: Vec<(Found, Vec<String>)> = Vec::new();
    let mut of: Vec<u8> = Vec::new();
    let mut seen = 0_u64;
    while let Some((key, record)) = sorted.next()? {
        seen = seen.saturating_add(1);
        if seen & 0xff == 0 {
            ctx.check()?;
        }
        let head = key.get(..13).unwrap_or_default();
        let has_key = key.get(4) == Some(&0);
        if !has_key || head != of || group.len() >= VERSIONS {
            folding.settle(std::mem::take(&mut group), &mut each)?;
            of = head.to_vec();
        }
        group.push(unpack(record)?);
    }
    folding.settle(group, &mut each)?;
    Ok(sums)
}

struct Folding<'c, 's, 'v> {
    carver: &'c Carver<'s, 'v>,
    live: Live<'c>,
    answers: BTreeMap<ObjectId, Answers>,
    reader: PayloadReader,
    fields: Fields,
    sums: &'c mut [Sums],
}

impl Folding<'_, '_, '_> {
    fn objects(&self, found: &Found) -> Vec<(usize, ObjectId)> {
        let shapes = std::iter::once(found.shape).chain(found.others.iter().map(|o| idx(*o)));
        shapes
            .filter_map(|s| match self.carver.shapes.all.get(s)?.of {
                Of::Table(object) => Some((s, object)),
                _ => None,
            })
            .collect()
    }

    /// The rows of one rowid, or one row without.
    fn settle(&mut self, group: Vec<(Found, Vec<String>)>, each: &mut impl FnMut(Carved) -> Result<()>) -> Result<()> {
        let Some((first, _)) = group.first() else { return Ok(()) };
        if first.rowid.is_none() {
            for (found, more) in group {
                self.keyless(found, more, each)?;
            }
            return Ok(());
        }
        let mut kept: Vec<Carved> = Vec::new();
        let mut entry: Option<Carved> = None;
        for (found, more) in group {
            let shape = found.shape;
            let copies = wide(more.len()).saturating_add(1);
            let live = self.live_record(&found);
            if let Some(live) = &live
                && same_as_live(&found, live)
            {
                self.count(shape, |s| s.live_copies = s.live_copies.saturating_add(copies));
                continue;
            }
            let is_other = self.is_live_elsewhere(&found);
            if is_other {
                self.count(shape, |s| s.live_copies = s.live_copies.saturating_add(copies));
                continue;
            }
            let relation = if live.is_some() { Relation::Older } else { Relation::Deleted };
            if !found.index.is_empty() {
                // An entry says nothing new of a row that was found, nor of one that is live.
                if live.is_some() || !kept.is_empty() {
                    self.count(shape, |s| s.entries = s.entries.saturating_add(copies));
                    continue;
                }
                match &mut entry {
                    None => entry = Some(Carved { found, relation, more }),
                    Some(row) => join(row, &found, more),
                }
                continue;
            }
            if !found.complete
                && let Some(whole) = kept.iter_mut().find(|k| contains(&k.found, &found))
            {
                whole.more.push(found.place.words());
                whole.more.extend(more);
                self.count(shape, |s| s.doubles = s.doubles.saturating_add(1));
                continue;
            }
            kept.push(Carved { found, relation, more });
        }
        for row in kept.into_iter().chain(entry) {
            self.give(row, each)?;
        }
        Ok(())
    }

    fn live_record(&mut self, found: &Found) -> Option<Vec<u8>> {
        let Of::Table(object) = self.carver.shapes.all.get(found.shape)?.of else { return None };
        self.live.record(object, found.rowid?, &mut self.reader)
    }

    /// Whether another table that the row fits as well has it live.
    fn is_live_elsewhere(&mut self, found: &Found) -> bool {
        let Some(rowid) = found.rowid else { return false };
        let objects = self.objects(found);
        objects
            .into_iter()
            .skip(1)
            .any(|(_, object)| self.live.record(object, rowid, &mut self.reader).is_some_and(|live| same_as_live(found, &live)))
    }

    fn keyless(&mut self, found: Found, more: Vec<String>, each: &mut impl FnMut(Carved) -> Result<()>) -> Result<()> {
        let copies = wide(more.len()).saturating_add(1);
        let whole = sum(&found.payload);
        read_partial(&mut self.fields, &found);
        let mut relation = Relation::Unknown;
        for (place, (shape, object)) in self.objects(&found).into_iter().enumerate() {
            let Some(answers) = self.answers.get(&object) else { continue };
            let first = (found.leading(), sum_of_first(&self.fields, &found.payload, found.leading()).unwrap_or(0));
            if (found.complete && answers.whole.contains(&whole)) || (!found.complete && answers.first.contains(&first)) {
                self.count(found.shape, |s| s.live_copies = s.live_copies.saturating_add(copies));
                return Ok(());
            }
            let Some(plan) = self.carver.shapes.all.get(shape).map(|s| &s.plan).filter(|p| p.key.is_some() && place == 0) else { continue };
            if found.leading() < plan.key.as_ref().map_or(0, |k| k.columns.len()) {
                continue;
            }
            if let Some(key) = key_sum(plan, &self.fields, &found.payload) {
                let live = answers.keys.get(&key);
                if live.is_some_and(|live| found.made_up && is_cut_copy(&found, &self.fields, live)) {
                    self.count(found.shape, |s| s.live_copies = s.live_copies.saturating_add(copies));
                    return Ok(());
                }
                relation = if live.is_some() { Relation::Older } else { Relation::Deleted };
            }
        }
        let is_dropped = self.carver.shapes.all.get(found.shape).is_some_and(|s| matches!(s.of, Of::Dropped(_)));
        if is_dropped {
            relation = Relation::Deleted;
        }
        self.give(Carved { found, relation, more }, each)
    }

    fn count(&mut self, shape: usize, f: impl FnOnce(&mut Sums)) {
        if let Some(sums) = self.sums.get_mut(shape) {
            f(sums);
        }
    }

    fn give(&mut self, row: Carved, each: &mut impl FnMut(Carved) -> Result<()>) -> Result<()> {
        let (complete, index, relation) = (row.found.complete, !row.found.index.is_empty(), row.relation);
        self.count(row.found.shape, |s| {
            let sum = match (index, complete, relation) {
                (true, _, _) => &mut s.index_only,
                (_, false, _) => &mut s.partial,
                (_, _, Relation::Deleted) => &mut s.deleted,
                (_, _, Relation::Older) => &mut s.older,
                (_, _, Relation::Unknown) => &mut s.unknown,
            };
            *sum = sum.saturating_add(1);
        });
        each(row)
    }
}

/// Whether a find is nothing but what the live record holds; of a partial one, as far as it goes.
fn same_as_live(found: &Found, live: &[u8]) -> bool {
    if found.complete {
        return found.payload == live;
    }
    let (mut a, mut b) = (Fields::new(), Fields::new());
    read_partial(&mut a, found);
    let _partial = b.read(live, 0x7fff_ffff);
    let known = found.known.iter().enumerate().filter(|(_, k)| **k);
    let mut any = false;
    for (i, _) in known {
        any = true;
        if a.value(&found.payload, i) != b.value(live, i) {
            return false;
        }
    }
    any
}

/// Whether a row whose head was made up is a copy of the live one that was cut within a text: what follows is of another cell.
fn is_cut_copy(found: &Found, fields: &Fields, live: &[u8]) -> bool {
    let mut other = Fields::new();
    let _partial = other.read(live, 0x7fff_ffff);
    for i in 0..fields.len() {
        match (fields.value(&found.payload, i), other.value(live, i)) {
            (a, b) if a == b => {}
            // With all that follows the same, a shorter text is what stood there before it was made longer.
            (Some(Value::Text(a)), Some(Value::Text(b))) if b.starts_with(a) => {
                return (i.saturating_add(1)..fields.len()).any(|j| fields.value(&found.payload, j) != other.value(live, j));
            }
            _ => return false,
        }
    }
    false
}

/// Whether a whole row holds everything that a partial one does.
fn contains(whole: &Found, part: &Found) -> bool {
    let (mut a, mut b) = (Fields::new(), Fields::new());
    read_partial(&mut a, whole);
    read_partial(&mut b, part);
    part.known
        .iter()
        .enumerate()
        .filter(|(_, k)| **k)
        .all(|(i, _)| whole.known.get(i) == Some(&true) && a.value(&whole.payload, i) == b.value(&part.payload, i))
}

/// Adds to what one index says of a row what another says.
fn join(row: &mut Carved, found: &Found, more: Vec<String>) {
    let (mut a, mut b) = (Fields::new(), Fields::new());
    read_partial(&mut a, &row.found);
    read_partial(&mut b, found);
    let n = row.found.known.len().max(found.known.len());
    let is = |f: &Found, i: usize| f.known.get(i) == Some(&true);
    let values: Vec<Value<'_>> = (0..n)
        .map(|i| {
            let value = if is(&row.found, i) { a.value(&row.found.payload, i) } else { b.value(&found.payload, i) };
            value.unwrap_or(Value::Null)
        })
        .collect();
    let mut payload = Vec::new();
    encode_record(&mut payload, values.iter().copied());
    let known = (0..n).map(|i| is(&row.found, i) || is(found, i)).collect();
    row.found.payload = payload;
    row.found.known = known;
    let names: BTreeSet<&str> = row.found.index.split(", ").chain([found.index.as_str()]).collect();
    row.found.index = names.into_iter().collect::<Vec<_>>().join(", ");
    row.more.push(found.place.words());
    row.more.extend(more);
}
