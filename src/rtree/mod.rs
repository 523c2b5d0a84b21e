//! The R-tree as data: nodes read and written, and a whole tree built from boxes.
//!
//! `%_node` holds one blob for each node, all of one size; node 1 is the root. A node begins with two bytes that are the depth of
//! the tree in the root, and the number of its cells in two more. A cell is a 64-bit id (of a row in a leaf, of a node above)
//! and the bounds of its box, lower and upper for each dimension, as 32-bit floats or integers. All numbers are big-endian.
//! `%_rowid` says for each row in which leaf it stands, `%_parent` for each node but the root which node is above.

use std::cmp::Ordering;

use crate::bytes::{u16_at, u32_at, u64_at};
use crate::schema::ddl::VirtualDef;

/// Bytes before the first cell.
const HEADER: usize = 4;
/// Most dimensions.
const MAX_DIMENSIONS: usize = 5;

/// How the cells of a tree are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Dimensions, 1 to 5.
    pub dimensions: usize,
    /// Whether bounds are integers.
    pub integers: bool,
}

/// A cell: an id and the bounds of its box, as they are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// The row or the node.
    pub id: i64,
    /// Lower and upper bound of each dimension.
    pub bounds: Vec<u32>,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its number.
    pub no: i64,
    /// Levels below, of the root.
    pub depth: u16,
    /// Its cells.
    pub cells: Vec<Cell>,
}

impl Shape {
    /// What a declaration asks for; `None` when the module is none of these or refuses it.
    #[must_use]
    pub fn of(def: &VirtualDef) -> Option<Shape> {
        let word = def.module.folded();
        if word == b"geopoly" {
            return Some(Shape { dimensions: 2, integers: false });
        }
        // Columns that begin with a plus are stored in `%_rowid`.
        let columns = def.args.iter().filter(|a| a.trim_ascii().first() != Some(&b'+')).count();
        let bounds = columns.checked_sub(1).filter(|n| *n > 0 && n.is_multiple_of(2))?;
        let dimensions = bounds.checked_div(2).filter(|d| *d <= MAX_DIMENSIONS)?;
        Some(Shape { dimensions, integers: word == b"rtree_i32" })
    }

    fn cell_size(self) -> usize {
        self.dimensions.saturating_mul(8).saturating_add(8)
    }

    /// How many cells a node of this size holds.
    #[must_use]
    pub fn capacity(self, size: usize) -> usize {
        size.saturating_sub(HEADER).checked_div(self.cell_size()).unwrap_or(0)
    }

    /// The cell in a place of a node, whether the node counts it or not.
    #[must_use]
    pub fn cell(self, node: &[u8], place: usize) -> Option<Cell> {
        let at = place.checked_mul(self.cell_size())?.checked_add(HEADER)?;
        let cell = node.get(at..at.checked_add(self.cell_size())?)?;
        let id = i64::from_be_bytes(u64_at(cell, 0)?.to_be_bytes());
        let bounds = (0..self.dimensions.saturating_mul(2)).map(|i| u32_at(cell, i.saturating_mul(4).saturating_add(8)));
        Some(Cell { id, bounds: bounds.collect::<Option<Vec<u32>>>()? })
    }

    /// A node as it stands; `None` when it counts more cells than it holds.
    #[must_use]
    pub fn node(self, no: i64, bytes: &[u8]) -> Option<Node> {
        let (depth, count) = (u16_at(bytes, 0)?, u16_at(bytes, 2)?);
        let count = usize::from(count);
        (count <= self.capacity(bytes.len())).then_some(())?;
        let cells = (0..count).map(|place| self.cell(bytes, place)).collect::<Option<Vec<Cell>>>()?;
        Some(Node { no, depth, cells })
    }

    /// The bytes of a node of this size.
    #[must_use]
    pub fn encode(self, node: &Node, size: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(size);
        out.extend_from_slice(&node.depth.to_be_bytes());
        out.extend_from_slice(&u16::try_from(node.cells.len()).unwrap_or(u16::MAX).to_be_bytes());
        for cell in &node.cells {
            out.extend_from_slice(&cell.id.to_be_bytes());
            for bound in &cell.bounds {
                out.extend_from_slice(&bound.to_be_bytes());
            }
        }
        out.resize(size, 0);
        out
    }

    fn order(self, a: u32, b: u32) -> Option<Ordering> {
        if self.integers { Some(a.cast_signed().cmp(&b.cast_signed())) } else { f32::from_bits(a).partial_cmp(&f32::from_bits(b)) }
    }

    /// Whether no lower bound is above its upper one, and none is not a number.
    #[must_use]
    pub fn is_box(self, bounds: &[u32]) -> bool {
        bounds.as_chunks::<2>().0.iter().all(|&[low, high]| self.order(low, high).is_some_and(Ordering::is_le))
    }

    /// Whether a box lies within another.
    #[must_use]
    pub fn is_within(self, inner: &[u32], outer: &[u32]) -> bool {
        let pairs = inner.as_chunks::<2>().0.iter().zip(outer.as_chunks::<2>().0);
        pairs.into_iter().all(|(&[low, high], &[from, to])| {
            self.order(from, low).is_some_and(Ordering::is_le) && self.order(high, to).is_some_and(Ordering::is_le)
        })
    }

    /// The smallest box around all cells.
    fn around(self, cells: &[Cell]) -> Vec<u32> {
        let mut bounds = cells.first().map(|c| c.bounds.clone()).unwrap_or_default();
        for cell in cells {
            for (i, (have, new)) in bounds.iter_mut().zip(&cell.bounds).enumerate() {
                let wider = if i.is_multiple_of(2) { Ordering::Less } else { Ordering::Greater };
                if self.order(*new, *have) == Some(wider) {
                    *have = *new;
                }
            }
        }
        bounds
    }

    /// The bounds of a box in words.
    #[must_use]
    pub fn text(self, bounds: &[u32]) -> String {
        let number = |b: u32| if self.integers { b.cast_signed().to_string() } else { f32::from_bits(b).to_string() };
        let pairs = bounds.as_chunks::<2>().0.iter().map(|&[low, high]| format!("{} to {}", number(low), number(high)));
        pairs.collect::<Vec<String>>().join(", ")
    }
}

/// A tree built anew.
#[derive(Debug, Default)]
pub struct Built {
    /// The rows of `%_node`, in order.
    pub nodes: Vec<Node>,
    /// The rows of `%_parent`: node, the one above; in order.
    pub parents: Vec<(i64, i64)>,
    /// The rows of `%_rowid`: row, its leaf; in order.
    pub rowids: Vec<(i64, i64)>,
}

/// Builds a tree from the cells of its leaves: sorted by one dimension after another and cut into tiles, so that the boxes of a
/// node lie together.
#[must_use]
pub fn build(shape: Shape, size: usize, mut cells: Vec<Cell>) -> Built {
    let capacity = shape.capacity(size).max(2);
    let mut built = Built::default();
    // Levels from the leaves up, each a list of nodes by their cells.
    let mut levels: Vec<Vec<Vec<Cell>>> = Vec::new();
    loop {
        let nodes = tiles(shape, capacity, std::mem::take(&mut cells));
        let above: Vec<Cell> = nodes.iter().map(|n| Cell { id: 0, bounds: shape.around(n) }).collect();
        levels.push(nodes);
        if above.len() <= 1 {
            break;
        }
        cells = above;
        // The order of the nodes of a level is that of the cells above them only until these are sorted: ids say which is which.
        for (cell, i) in cells.iter_mut().zip(0_i64..) {
            cell.id = i;
        }
    }
    let depth = u16::try_from(levels.len().saturating_sub(1)).unwrap_or(u16::MAX);
    // Numbers from the root down; a node is numbered when the cell that names it is.
    let mut next = 2_i64;
    let mut numbered: Vec<(i64, usize)> = vec![(1, 0)];
    for (height, mut nodes) in levels.into_iter().enumerate().rev() {
        let mut below: Vec<(i64, usize)> = Vec::new();
        for (no, place) in numbered {
            let mut cells = nodes.get_mut(place).map(std::mem::take).unwrap_or_default();
            for cell in &mut cells {
                if height == 0 {
                    built.rowids.push((cell.id, no));
                    continue;
                }
                below.push((next, usize::try_from(cell.id).unwrap_or(0)));
                built.parents.push((next, no));
                cell.id = next;
                next = next.saturating_add(1);
            }
            built.nodes.push(Node { no, depth: if no == 1 { depth } else { 0 }, cells });
        }
        numbered = below;
    }
    built.nodes.sort_unstable_by_key(|n| n.no);
    built.parents.sort_unstable();
    built.rowids.sort_unstable();
    built
}

/// Cuts cells into nodes of at most `capacity` cells each, at least one node, none nearly empty.
fn tiles(shape: Shape, capacity: usize, mut cells: Vec<Cell>) -> Vec<Vec<Cell>> {
    if cells.len() <= capacity {
        cells.sort_by_key(|c| c.id);
        return vec![cells];
    }
    let by = |at: usize| {
        move |a: &Cell, b: &Cell| {
            let bound = |c: &Cell| c.bounds.get(at).copied().unwrap_or(0);
            shape.order(bound(a), bound(b)).unwrap_or(Ordering::Equal).then(a.id.cmp(&b.id))
        }
    };
    let nodes = cells.len().div_ceil(capacity);
    let slices = if shape.dimensions > 1 { nodes.isqrt().max(1) } else { 1 };
    cells.sort_by(by(0));
    let mut out = Vec::with_capacity(nodes);
    for mut slice in evenly(cells, slices) {
        if shape.dimensions > 1 {
            slice.sort_by(by(2));
        }
        let parts = slice.len().div_ceil(capacity);
        out.extend(evenly(slice, parts));
    }
    out
}

/// Cuts a list into so many parts whose lengths differ by one at most.
fn evenly(mut list: Vec<Cell>, parts: usize) -> Vec<Vec<Cell>> {
    let mut out = Vec::with_capacity(parts);
    for left in (1..=parts.max(1)).rev() {
        let rest = list.split_off(list.len().div_ceil(left).min(list.len()));
        out.push(std::mem::replace(&mut list, rest));
    }
    out
}
