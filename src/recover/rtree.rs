//! R-trees against themselves.
//!
//! Tests:    nodes from the root down, the two tables that name them, each box within the box above it.
//! Collects: the boxes of the rows that can be read, and the rows whose box is lost.
//! Leaves:   the writing to the copy.

use std::collections::{BTreeMap, BTreeSet};

use crate::ctx::Ctx;
use crate::error::Result;
use crate::finding::{Code, Defect, Findings, Site};
use crate::format::Value;
use crate::ids::{ObjectId, wide};
use crate::rtree::{Cell, Node, Shape};
use crate::schema::{Family, Object, ObjectKind};
use crate::survey::Survey;

use super::search_index::{each, is_whole, table_of};

/// Levels of an R-tree; SQLite refuses more.
const MAX_DEPTH: u16 = 40;

/// The shadow tables of an R-tree, in the order in which they are written.
pub(crate) const PARTS: [&str; 3] = ["_node", "_parent", "_rowid"];

/// An R-tree that cannot be copied as it is.
#[derive(Debug)]
pub(crate) struct Rtree {
    /// The virtual table.
    pub(crate) of: ObjectId,
    /// Its name as it is declared.
    pub(crate) name: String,
    /// How its cells are made.
    pub(crate) shape: Shape,
    /// Bytes of a node.
    pub(crate) size: usize,
    /// Its shadow tables, as in [`PARTS`]; those that are missing are made.
    pub(crate) parts: [Option<ObjectId>; 3],
    /// The boxes of the rows that can be read.
    pub(crate) cells: Vec<Cell>,
    /// Rows that `%_rowid` names and whose box is lost.
    pub(crate) lost: Vec<i64>,
}

/// What the three tables of an R-tree hold.
struct Tables {
    nodes: BTreeMap<i64, Vec<u8>>,
    parents: BTreeMap<i64, i64>,
    rowids: BTreeMap<i64, i64>,
    /// Bytes of a node: what most of them have.
    size: usize,
    /// A node stands as text: its bytes may be whole, but SQLite counts its characters and refuses the tree.
    has_text: bool,
}

/// Checks every R-tree and adds a finding for each whose tables contradict one another.
///
/// # Errors
/// Cancellation only.
pub(crate) fn check(survey: &mut Survey<'_>, ctx: &Ctx) -> Result<()> {
    let mut log = Findings::new(survey.findings.cap());
    for (object, shape, parts) in all(survey) {
        let tables = Tables::read(survey, &parts, ctx)?;
        if tables.walk(shape).is_none() {
            let site = parts.iter().flatten().next().copied().unwrap_or(object.id);
            log.add_with(Defect::new(Code::RtreeDiffers, 0, 0, 0), Site::object(site), object.name.text());
        }
    }
    survey.findings.merge(log);
    Ok(())
}

/// The R-trees that have to be built anew, and can be.
///
/// # Errors
/// Cancellation only.
pub(crate) fn damaged(survey: &Survey<'_>, ctx: &Ctx) -> Result<Vec<Rtree>> {
    let mut out = Vec::new();
    for (object, shape, parts) in all(survey) {
        // Without a table of nodes there are no boxes, and no table may have an index of its own.
        let usable = |id: &ObjectId| {
            let declared = survey.catalog.get(*id).filter(|o| o.problem.is_none() && o.excluded.is_none()).and_then(|o| o.table_def());
            table_of(survey, *id).is_some()
                && declared.is_some_and(|t| t.rowid_alias == Some(0) && !t.without_rowid && t.columns.len() > 1)
                && survey.catalog.indexes_of(*id).next().is_none()
        };
        let [nodes, parents, rowids] = parts;
        if !nodes.as_ref().is_some_and(usable) || !parents.iter().chain(rowids.iter()).all(usable) {
            continue;
        }
        let tables = Tables::read(survey, &parts, ctx)?;
        let whole = parts.iter().all(|p| p.is_some_and(|id| is_whole(survey, id)));
        if whole && tables.walk(shape).is_some() {
            continue;
        }
        if shape.capacity(tables.size) < 2 {
            continue;
        }
        let listed = rowids.is_some_and(|id| is_whole(survey, id));
        let cells = tables.cells(shape, listed);
        let found: BTreeSet<i64> = cells.iter().map(|c| c.id).collect();
        let lost = tables.rowids.keys().copied().filter(|id| !found.contains(id)).collect();
        out.push(Rtree { of: object.id, name: object.name.text(), shape, size: tables.size, parts, cells, lost });
    }
    Ok(out)
}

/// Every R-tree with its shadow tables.
fn all<'s>(survey: &'s Survey<'_>) -> Vec<(&'s Object, Shape, [Option<ObjectId>; 3])> {
    const MODULES: [&[u8]; 3] = [b"rtree", b"rtree_i32", b"geopoly"];
    let objects = survey.catalog.objects();
    let virtuals = objects.iter().filter(|o| o.kind == ObjectKind::Virtual && o.excluded.is_none() && o.problem.is_none());
    let shapes = virtuals.filter_map(|o| {
        let def = o.virtual_def().filter(|d| MODULES.iter().any(|m| d.module.same(m)))?;
        Some((o, Shape::of(def)?))
    });
    let with_parts = shapes.map(|(object, shape)| {
        let part = |suffix: &str| {
            let ends = |o: &Object| o.name.folded().ends_with(suffix.as_bytes());
            let is = |o: &&Object| o.kind == ObjectKind::Table && o.family == (Family::VirtualShadow { of: object.id }) && ends(o);
            objects.iter().find(is).map(|o| o.id)
        };
        (object, shape, PARTS.map(part))
    });
    with_parts.collect()
}

impl Tables {
    fn read(survey: &Survey<'_>, parts: &[Option<ObjectId>; 3], ctx: &Ctx) -> Result<Tables> {
        let mut tables = Tables { nodes: BTreeMap::new(), parents: BTreeMap::new(), rowids: BTreeMap::new(), size: 0, has_text: false };
        let [nodes, parents, rowids] = *parts;
        if let Some(table) = nodes.and_then(|id| table_of(survey, id)) {
            each(survey, table, ctx, |row, values| {
                if let (Some(no), Some(Value::Blob(node) | Value::Text(node))) = (row.rowid, values.get(1)) {
                    tables.nodes.entry(no).or_insert_with(|| node.to_vec());
                    tables.has_text |= matches!(values.get(1), Some(Value::Text(_)));
                }
            })?;
        }
        for (part, map) in [(parents, &mut tables.parents), (rowids, &mut tables.rowids)] {
            if let Some(table) = part.and_then(|id| table_of(survey, id)) {
                each(survey, table, ctx, |row, values| {
                    if let (Some(no), Some(Value::Int(other))) = (row.rowid, values.get(1)) {
                        map.entry(no).or_insert(*other);
                    }
                })?;
            }
        }
        let mut sizes: BTreeMap<usize, u64> = BTreeMap::new();
        for node in tables.nodes.values() {
            let n = sizes.entry(node.len()).or_default();
            *n = n.saturating_add(1);
        }
        tables.size = sizes.into_iter().max_by_key(|(_, n)| *n).map_or(0, |(size, _)| size);
        Ok(tables)
    }

    fn node(&self, shape: Shape, no: i64) -> Option<Node> {
        shape.node(no, self.nodes.get(&no).filter(|n| n.len() == self.size)?)
    }

    /// Goes through the tree from its root; `None` where its tables contradict one another.
    fn walk(&self, shape: Shape) -> Option<()> {
        let root = self.node(shape, 1).filter(|_| !self.has_text)?;
        let depth = root.depth;
        (depth <= MAX_DEPTH).then_some(())?;
        let (mut seen, mut rows) = (BTreeSet::from([1_i64]), 0_usize);
        let mut open = vec![(root, depth, None::<Vec<u32>>)];
        while let Some((node, depth, outer)) = open.pop() {
            for cell in node.cells {
                let fits = shape.is_box(&cell.bounds) && outer.as_ref().is_none_or(|o| shape.is_within(&cell.bounds, o));
                let named = if depth == 0 { &self.rowids } else { &self.parents }.get(&cell.id) == Some(&node.no);
                if !fits || !named {
                    return None;
                }
                let Some(below) = depth.checked_sub(1) else {
                    rows = rows.checked_add(1)?;
                    continue;
                };
                if !seen.insert(cell.id) {
                    return None;
                }
                open.push((self.node(shape, cell.id)?, below, Some(cell.bounds)));
            }
        }
        let agree = rows == self.rowids.len() && seen.len() == self.nodes.len() && seen.len() == self.parents.len().checked_add(1)?;
        agree.then_some(())
    }

    /// The boxes of rows, each once. `listed`: `%_rowid` is whole, so that a cell of another id is damaged.
    fn cells(&self, shape: Shape, listed: bool) -> Vec<Cell> {
        let leaves: BTreeSet<i64> = self.rowids.values().copied().chain(self.lowest(shape)).collect();
        let inner: BTreeSet<i64> = self.parents.values().copied().collect();
        let mut found: BTreeMap<i64, Cell> = BTreeMap::new();
        for (&no, bytes) in self.nodes.iter().filter(|(no, bytes)| leaves.contains(no) && bytes.len() == self.size) {
            let counted = shape.node(no, bytes).map(|n| n.cells.len());
            let mut here: Vec<Cell> = Vec::new();
            // Cells behind the counted ones are what deleted rows left, unless the count itself is damaged: they stand for rows
            // that nothing else has.
            for place in 0..shape.capacity(self.size) {
                let Some(cell) = shape.cell(bytes, place) else { break };
                let named = self.rowids.get(&cell.id);
                let is_counted = counted.is_some_and(|n| place < n);
                let stands = named == Some(&no) || (named.is_none() && !listed && is_counted && !inner.contains(&no));
                let twice = found.contains_key(&cell.id) || here.iter().any(|c| c.id == cell.id);
                if stands && !twice && shape.is_box(&cell.bounds) {
                    here.push(cell);
                }
            }
            // A box outside of the box of its node, when most lie in it, is not what it was.
            if let Some(outer) = self.outer(shape, no) {
                let inside = here.iter().filter(|c| shape.is_within(&c.bounds, &outer)).count();
                if wide(inside).saturating_mul(2) > wide(here.len()) {
                    here.retain(|c| shape.is_within(&c.bounds, &outer));
                }
            }
            found.extend(here.into_iter().map(|c| (c.id, c)));
        }
        found.into_values().collect()
    }

    /// The box of a node in the node above it.
    fn outer(&self, shape: Shape, no: i64) -> Option<Vec<u32>> {
        let above = self.node(shape, *self.parents.get(&no)?)?;
        above.cells.into_iter().find(|c| c.id == no && shape.is_box(&c.bounds)).map(|c| c.bounds)
    }

    /// The nodes that the walk from the root finds at its lowest level.
    fn lowest(&self, shape: Shape) -> Vec<i64> {
        let Some(root) = self.node(shape, 1).filter(|r| r.depth <= MAX_DEPTH) else { return Vec::new() };
        let mut seen = BTreeSet::from([1_i64]);
        let mut level = vec![1_i64];
        for _ in 0..root.depth {
            let nodes = level.iter().filter_map(|no| self.node(shape, *no));
            level = nodes.flat_map(|n| n.cells).map(|c| c.id).filter(|id| seen.insert(*id)).collect();
        }
        level
    }
}
