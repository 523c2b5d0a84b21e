//! One state after another, by the pages that each transaction wrote.
//!
//! Tests:    for each transaction which pages joined or left a tree, and which rows stand on the pages it wrote before and after.
//! Collects: rows added, removed and changed by table; objects created and dropped; versions of one row.
//! Leaves:   rows that moved from page to page without a change. A value whose overflow page was written in place, while its leaf
//!           was not, is counted as a page and not as a row.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::schema::Schema;
use crate::ctx::Ctx;
use crate::error::Result;
use crate::evidence::{PageRef, PageSource};
use crate::finding::Origin;
use crate::format::{Encoding, Fields, Value};
use crate::ids::{PageNo, PageSize};
use crate::report::diff::{Named, json, literal};
use crate::report::history::Touched;
use crate::survey::compute::Computer;
use crate::survey::plan::{Constant, Row, TablePlan};
use crate::tree::Pages;
use crate::tree::payload::PayloadReader;

/// A page image with where it stands.
pub(crate) type Image<'a> = (Origin, &'a [u8]);

/// A row that is followed.
#[derive(Debug, Clone)]
pub struct Target {
    /// The table.
    pub table: String,
    /// The rowid, or the values of the declared primary key as text.
    pub key: Vec<String>,
}

/// A state: a base, images over it, and those of the transaction that is looked at.
struct Moment<'x, 'a> {
    base: &'x dyn PageSource,
    images: &'x HashMap<u32, Image<'a>>,
    newer: Option<&'x BTreeMap<u32, Image<'a>>>,
    count: u32,
}

impl PageSource for Moment<'_, '_> {
    fn page(&self, no: PageNo) -> Option<PageRef<'_>> {
        if no.get() > self.count {
            return None;
        }
        let over = self.newer.and_then(|n| n.get(&no.get())).or_else(|| self.images.get(&no.get()));
        match over {
            Some((origin, bytes)) => Some(PageRef { no, bytes, origin: *origin }),
            None => self.base.page(no),
        }
    }

    fn page_size(&self) -> PageSize {
        self.base.page_size()
    }

    fn page_count(&self) -> u32 {
        self.count
    }
}

/// What a transaction did.
#[derive(Debug, Default)]
pub(super) struct Step {
    pub(super) objects: Vec<Touched>,
    pub(super) schema: Vec<String>,
    pub(super) other_pages: u32,
    /// What became of the row that is followed.
    pub(super) row: Option<Seen>,
}

/// A version of the row that is followed.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) change: &'static str,
    pub(super) origin: Origin,
    pub(super) page: PageNo,
    pub(super) cell: u16,
    pub(super) complete: bool,
    pub(super) values: Vec<Named>,
}

/// A row by what it is known by.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Key {
    Rowid(i64),
    Record(u64),
}

/// Rows of one side of a transaction: object and key, with a hash of the payload.
#[derive(Default)]
struct Side {
    rows: HashMap<(u32, Key), u64>,
    target: Option<(u32, Key, Seen)>,
}

/// The running state.
pub(super) struct Course<'x, 'a> {
    base: &'x dyn PageSource,
    images: HashMap<u32, Image<'a>>,
    count: u32,
    reserved: u8,
    encoding: Encoding,
    /// The page above each page of a tree; 0 above a root.
    parents: HashMap<u32, u32>,
    schema: Schema,
    target: Option<&'x Target>,
}

/// Levels of a tree that are climbed to its root; SQLite has at most 20.
const LEVELS: u32 = 40;

impl<'x, 'a> Course<'x, 'a> {
    /// Begins at a base with images over it.
    ///
    /// # Errors
    /// Cancellation.
    pub(super) fn begin(
        base: &'x dyn PageSource,
        images: HashMap<u32, Image<'a>>,
        count: u32,
        (reserved, encoding): (u8, Encoding),
        target: Option<&'x Target>,
        ctx: &Ctx,
    ) -> Result<Course<'x, 'a>> {
        let mut out = Course { base, images, count, reserved, encoding, parents: HashMap::new(), schema: Schema::default(), target };
        let now = out.moment(None, count);
        let pages = Pages::new(&now, reserved);
        let schema = Schema::read(&pages, encoding, ctx)?;
        let mut parents: HashMap<u32, u32> = HashMap::new();
        let mut todo: Vec<PageNo> = Vec::new();
        for root in schema.rooted.keys() {
            parents.insert(*root, 0);
            todo.extend(PageNo::new(*root));
        }
        while let Some(no) = todo.pop() {
            ctx.check()?;
            let kids = children(&pages, no);
            // All children of a page are on one level: one that is a leaf says it for the rest.
            let leaves = kids.first().and_then(|k| PageNo::new(*k)).is_some_and(|k| pages.page(k).is_ok_and(|p| !p.kind.is_interior()));
            for kid in kids {
                if parents.contains_key(&kid) {
                    continue;
                }
                parents.insert(kid, no.get());
                if !leaves {
                    todo.extend(PageNo::new(kid));
                }
            }
        }
        (out.schema, out.parents) = (schema, parents);
        Ok(out)
    }

    fn moment<'m>(&'m self, newer: Option<&'m BTreeMap<u32, Image<'a>>>, count: u32) -> Moment<'m, 'a> {
        Moment { base: self.base, images: &self.images, newer, count }
    }

    /// The root of the tree that has a page.
    fn root_of(parents: &HashMap<u32, u32>, page: u32) -> Option<u32> {
        let mut at = page;
        for _ in 0..LEVELS {
            match parents.get(&at)? {
                0 => return Some(at),
                above => at = *above,
            }
        }
        None
    }

    /// As [`Course::root_of`], with edges that a transaction changed.
    fn root_after(&self, edits: &HashMap<u32, Option<u32>>, page: u32) -> Option<u32> {
        let mut at = page;
        for _ in 0..LEVELS {
            match edits.get(&at).copied().unwrap_or_else(|| self.parents.get(&at).copied())? {
                0 => return Some(at),
                above => at = above,
            }
        }
        None
    }

    /// The version of the followed row in the state as it stands.
    ///
    /// # Errors
    /// Cancellation.
    pub(super) fn look(&self, ctx: &Ctx) -> Result<Option<Seen>> {
        let Some(target) = self.target else { return Ok(None) };
        let Some((root, _)) = self.schema.rooted.iter().find(|(_, o)| o.name.eq_ignore_ascii_case(&target.table)) else { return Ok(None) };
        let now = self.moment(None, self.count);
        let pages = Pages::new(&now, self.reserved);
        let mut side = Side::default();
        let mut reader = Reader::default();
        let mut seen = BTreeSet::new();
        let mut todo = vec![*root];
        while let Some(no) = todo.pop().and_then(PageNo::new) {
            ctx.check()?;
            if !seen.insert(no) {
                continue;
            }
            reader.rows(&pages, no, *root, &self.schema, Some(target), &mut side);
            side.rows.clear();
            todo.extend(children(&pages, no));
        }
        Ok(side.target.map(|(_, _, seen)| Seen { change: "present", ..seen }))
    }

    /// The followed row on a page that stands in no state: of an older generation, by the tree that has its page now.
    pub(super) fn glance(&self, no: PageNo, image: Image<'a>, ctx: &Ctx) -> Result<Option<Seen>> {
        ctx.check()?;
        let Some(root) = Self::root_of(&self.parents, no.get()) else { return Ok(None) };
        let one = BTreeMap::from([(no.get(), image)]);
        let then = self.moment(Some(&one), self.count.max(no.get()));
        let pages = Pages::new(&then, self.reserved);
        let mut side = Side::default();
        Reader::default().rows(&pages, no, root, &self.schema, self.target, &mut side);
        Ok(side.target.map(|(_, _, seen)| Seen { change: "present", ..seen }))
    }

    /// Goes over one transaction.
    ///
    /// # Errors
    /// Cancellation.
    pub(super) fn step(&mut self, touched: &BTreeMap<u32, Image<'a>>, count: u32, ctx: &Ctx) -> Result<Step> {
        ctx.check()?;
        let mut step = Step::default();
        let (before_side, after_side, edits, schema);
        {
            let (before, after) = (self.moment(None, self.count), self.moment(Some(touched), count));
            let (then, now) = (Pages::new(&before, self.reserved), Pages::new(&after, self.reserved));
            schema = self.schema_after(touched, &then, &now, ctx)?;
            let new_schema = schema.as_ref().unwrap_or(&self.schema);
            (before_side, after_side, edits, step.other_pages) = self.sides(touched, &then, &now, new_schema, &mut step.objects, ctx)?;
        }
        let new_schema = schema.as_ref().unwrap_or(&self.schema);
        let name = |schema: &Schema, root: u32| schema.rooted.get(&root).map(|o| (o.kind, o.name.clone()));
        let mut changes: BTreeMap<(&'static str, String), [u64; 3]> = BTreeMap::new();
        let mut by_name: HashMap<(String, Key), u64> = HashMap::new();
        for ((root, key), hash) in before_side.rows {
            if let Some((_, name)) = name(&self.schema, root) {
                by_name.insert((name, key), hash);
            }
        }
        for ((root, key), hash) in after_side.rows {
            let Some((kind, name)) = name(new_schema, root) else { continue };
            let place = match by_name.remove(&(name.clone(), key)) {
                Some(old) if old == hash => continue,
                Some(_) => 2,
                None => 0,
            };
            count_one(changes.entry((kind, name)).or_default(), place);
        }
        for ((name, _), _) in by_name {
            count_one(changes.entry(("table", name)).or_default(), 1);
        }
        for ((kind, name), [added, removed, changed]) in changes {
            let place = step.objects.iter().position(|o| o.name == name);
            let place = place.unwrap_or_else(|| {
                step.objects.push(Touched { kind: kind.to_owned(), name, ..Touched::default() });
                step.objects.len().saturating_sub(1)
            });
            if let Some(o) = step.objects.get_mut(place) {
                (o.added, o.removed, o.changed) = (added, removed, changed);
            }
        }
        step.objects.sort_by(|a, b| b.kind.cmp(&a.kind).then_with(|| a.name.cmp(&b.name)));
        step.row = match (before_side.target, after_side.target) {
            (Some((_, _, old)), Some((_, _, new))) if old.values == new.values => None,
            (Some(_), Some((_, _, new))) => Some(Seen { change: "changed", ..new }),
            (None, Some((_, _, new))) => Some(Seen { change: "added", ..new }),
            (Some((_, _, old)), None) => Some(Seen { change: "removed", values: Vec::new(), ..old }),
            (None, None) => None,
        };
        if let Some(new) = &schema {
            for (key, sql) in &new.objects {
                match self.schema.objects.get(key) {
                    None => step.schema.push(format!("created {} {}", key.0, key.1)),
                    Some(old) if old != sql => step.schema.push(format!("changed {} {}", key.0, key.1)),
                    Some(_) => {}
                }
            }
            for key in self.schema.objects.keys().filter(|k| !new.objects.contains_key(*k)) {
                step.schema.push(format!("dropped {} {}", key.0, key.1));
            }
        }
        for (page, above) in edits {
            match above {
                Some(above) => self.parents.insert(page, above),
                None => self.parents.remove(&page),
            };
        }
        if let Some(schema) = schema {
            self.schema = schema;
        }
        for (page, image) in touched {
            self.images.insert(*page, *image);
        }
        self.count = count;
        Ok(step)
    }

    /// The schema after a transaction, when it wrote a page of it that says something else.
    fn schema_after(&self, touched: &BTreeMap<u32, Image<'a>>, then: &Pages<'_>, now: &Pages<'_>, ctx: &Ctx) -> Result<Option<Schema>> {
        let differs = touched.keys().filter_map(|p| PageNo::new(*p)).any(|no| {
            Self::root_of(&self.parents, no.get()) == Some(1) && {
                let cells = |pages: &Pages<'_>| -> Option<(bool, Vec<Vec<u8>>)> {
                    let (kind, cells) = pages.cells(no).ok()?;
                    Some((kind.is_interior(), cells.iter().map(|(_, c)| c.local.to_vec()).collect()))
                };
                cells(then) != cells(now)
            }
        });
        if !differs && !self.schema.rooted.is_empty() && self.count > 0 {
            return Ok(None);
        }
        Schema::read(now, self.encoding, ctx).map(Some)
    }

    /// The rows of both sides, the tree edges after the transaction, and how many pages are of no tree.
    #[expect(clippy::type_complexity, reason = "one pass gives all four")]
    fn sides(
        &self,
        touched: &BTreeMap<u32, Image<'a>>,
        then: &Pages<'_>,
        now: &Pages<'_>,
        schema: &Schema,
        objects: &mut Vec<Touched>,
        ctx: &Ctx,
    ) -> Result<(Side, Side, HashMap<u32, Option<u32>>, u32)> {
        let mut edits: HashMap<u32, Option<u32>> = HashMap::new();
        let (mut removed, mut added): (BTreeSet<u32>, BTreeMap<u32, u32>) = (BTreeSet::new(), BTreeMap::new());
        // Edges before.
        for page in touched.keys().filter(|p| self.parents.contains_key(p)) {
            let Some(no) = PageNo::new(*page) else { continue };
            removed.extend(children(then, no).into_iter().filter(|kid| self.parents.get(kid) == Some(page)));
        }
        removed.extend(self.schema.rooted.keys().copied());
        // Edges after, from pages that are in a tree.
        for root in schema.rooted.keys() {
            added.insert(*root, 0);
        }
        let mut accepted: BTreeSet<u32> = BTreeSet::new();
        let mut todo: Vec<u32> =
            touched.keys().copied().filter(|p| self.parents.contains_key(p) || schema.rooted.contains_key(p)).collect();
        todo.extend(schema.rooted.keys().filter(|r| !self.parents.contains_key(r)));
        while let Some(page) = todo.pop() {
            ctx.check()?;
            let Some(no) = PageNo::new(page).filter(|_| accepted.insert(page)) else { continue };
            for kid in children(now, no) {
                if kid == page || added.contains_key(&kid) {
                    continue;
                }
                added.insert(kid, page);
                if touched.contains_key(&kid) || !self.parents.contains_key(&kid) {
                    todo.push(kid);
                }
            }
        }
        let mut before = Side::default();
        let mut reader = Reader::default();
        // Rows before: on the pages written, and below pages that left their tree.
        let mut gone: Vec<u32> = Vec::new();
        for page in touched.keys() {
            if let (Some(no), Some(root)) = (PageNo::new(*page), Self::root_of(&self.parents, *page)) {
                reader.rows(then, no, root, &self.schema, self.target, &mut before);
            }
        }
        for page in removed.iter().filter(|p| !added.contains_key(p)) {
            gone.push(*page);
        }
        let roots: BTreeMap<u32, u32> = gone.iter().filter_map(|p| Some((*p, Self::root_of(&self.parents, *p)?))).collect();
        let mut below: Vec<(u32, u32)> = roots.into_iter().collect();
        while let Some((page, root)) = below.pop() {
            ctx.check()?;
            let Some(no) = PageNo::new(page) else { continue };
            if edits.insert(page, None).is_some() {
                continue;
            }
            if touched.contains_key(&page) {
                continue;
            }
            reader.rows(then, no, root, &self.schema, self.target, &mut before);
            below.extend(children(then, no).into_iter().filter(|kid| !added.contains_key(kid)).map(|kid| (kid, root)));
        }
        let fresh: Vec<u32> = added.keys().copied().filter(|p| !self.parents.contains_key(p) && !touched.contains_key(p)).collect();
        edits.extend(added.into_iter().map(|(kid, above)| (kid, Some(above))));
        let mut after = Side::default();
        let mut pages: BTreeMap<u32, u32> = BTreeMap::new();
        let mut in_trees = 0_u32;
        for page in touched.keys().copied().chain(fresh) {
            let Some(no) = PageNo::new(page) else { continue };
            let root = self.root_after(&edits, page);
            if let Some(root) = root {
                reader.rows(now, no, root, schema, self.target, &mut after);
            }
            if let Some(root) = root.filter(|r| touched.contains_key(&page) && schema.rooted.contains_key(r)) {
                in_trees = in_trees.saturating_add(1);
                let n = pages.entry(root).or_insert(0);
                *n = n.saturating_add(1);
            }
        }
        for (root, n) in pages {
            if let Some(o) = schema.rooted.get(&root) {
                objects.push(Touched { kind: o.kind.to_owned(), name: o.name.clone(), pages: n, ..Touched::default() });
            }
        }
        Ok((before, after, edits, crate::ids::small(touched.len()).saturating_sub(in_trees)))
    }
}

fn count_one(counts: &mut [u64; 3], place: usize) {
    if let Some(n) = counts.get_mut(place) {
        *n = n.saturating_add(1);
    }
}

/// The children of an interior page that lie in the database; none for any other page.
fn children(pages: &Pages<'_>, no: PageNo) -> Vec<u32> {
    let Ok(page) = pages.page(no) else { return Vec::new() };
    if !page.kind.is_interior() {
        return Vec::new();
    }
    page.children(pages.split).filter(|kid| *kid > 0 && *kid <= pages.count()).collect()
}

/// Reads rows; keeps its buffers.
#[derive(Default)]
struct Reader {
    payload: PayloadReader,
    fields: Fields,
}

impl Reader {
    /// The rows that stand on a page of a tree, entered into a side.
    fn rows(&mut self, pages: &Pages<'_>, no: PageNo, root: u32, schema: &Schema, target: Option<&Target>, side: &mut Side) {
        let Some(object) = schema.rooted.get(&root) else { return };
        let Some(plan) = &object.plan else { return };
        let Ok((kind, cells)) = pages.cells(no) else { return };
        if kind.is_table() == plan.key.is_some() || (kind.is_table() && kind.is_interior()) {
            return;
        }
        let followed = target.filter(|t| t.table.eq_ignore_ascii_case(&object.name));
        for (cell_no, cell) in cells {
            let (payload, complete) = match self.payload.read(pages, &cell) {
                Ok(payload) => (payload, true),
                Err(_) => (self.payload.partial(), false),
            };
            let mut hasher = DefaultHasher::new();
            (payload, cell.rowid).hash(&mut hasher);
            let by_key = plan.key.is_some() || !object.key.is_empty();
            let decoded = if followed.is_some() || by_key { self.fields.read(payload, cell.payload_len).is_ok() } else { false };
            let row = Row { rowid: cell.rowid, payload, fields: &self.fields };
            let key = match (&plan.key, cell.rowid) {
                // A declared key names a row better than a rowid that it was given anew; a NULL in it names nothing.
                (None, Some(rowid)) if !by_key || !decoded || has_null(plan, &object.key, &row) => Key::Rowid(rowid),
                _ => Key::Record(key_hash(plan, &object.key, &row)),
            };
            if let Some(target) = followed.filter(|_| decoded || !complete)
                && matches(target, plan, &object.key, &row)
            {
                let origin = pages.origin(no);
                let values = named(plan, &row);
                let seen = Seen { change: "", origin, page: no, cell: cell_no, complete: complete && decoded, values };
                side.target = Some((root, key.clone(), seen));
            }
            side.rows.insert((root, key), hasher.finish());
        }
    }
}

fn has_null(plan: &TablePlan, key: &[usize], row: &Row<'_>) -> bool {
    key.iter().any(|c| plan.stored_value(row, *c).is_none_or(|v| matches!(v, Value::Null)))
}

/// The primary key of a row as one number.
fn key_hash(plan: &TablePlan, key: &[usize], row: &Row<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    for column in key {
        let value = plan.stored_value(row, *column).map(|v| literal(&json(v, plan.encoding)));
        value.hash(&mut hasher);
    }
    hasher.finish()
}

/// Whether a row is the one that is followed.
fn matches(target: &Target, plan: &TablePlan, key: &[usize], row: &Row<'_>) -> bool {
    if plan.key.is_none()
        && target.key.len() == 1
        && target.key.first().and_then(|k| k.parse::<i64>().ok()).is_some_and(|k| row.rowid == Some(k))
    {
        return true;
    }
    !key.is_empty()
        && key.len() == target.key.len()
        && key.iter().zip(&target.key).all(|(column, text)| {
            plan.stored_value(row, *column).is_some_and(|value| match value {
                Value::Text(t) => plan.encoding.to_utf8(t).as_ref() == text.as_bytes(),
                other => literal(&json(other, plan.encoding)) == *text,
            })
        })
}

/// All values of a row by the names of their columns.
fn named(plan: &TablePlan, row: &Row<'_>) -> Vec<Named> {
    let computer = Computer::new(plan);
    let value = |i: usize| -> serde_json::Value {
        match plan.stored_value(row, i) {
            Some(value) => json(value, plan.encoding),
            None => {
                let computed: Constant = computer.read(row, i).unwrap_or_default();
                json(computed.value(), plan.encoding)
            }
        }
    };
    plan.columns.iter().enumerate().map(|(i, c)| Named { column: c.name.clone(), value: value(i) }).collect()
}
