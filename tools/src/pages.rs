//! A small reader of *healthy* files, independent of the product: where in the file does each row live?
//!
//! It trusts its input and knows no damage. Used to aim damage at a structure, and to know which rows a damage touched.

use std::collections::BTreeMap;

/// The bytes of a healthy database.
#[derive(Debug, Clone, Copy)]
pub struct File<'a> {
    /// All of them.
    pub data: &'a [u8],
    /// Bytes of a page.
    pub page_size: usize,
    /// Bytes of a page less the reserved ones.
    pub usable: usize,
}

/// A cell and all bytes that belong to its row.
#[derive(Debug, Clone)]
pub struct Cell {
    /// The page it stands on.
    pub page: u32,
    /// Its number there.
    pub number: usize,
    /// Its offset in the page.
    pub at: usize,
    /// Its length in the page.
    pub len: usize,
    /// The rowid, in a table tree.
    pub rowid: Option<i64>,
    /// Offset of the rowid in the page and its length, in a table tree.
    pub rowid_at: (usize, usize),
    /// Its overflow pages.
    pub overflow: Vec<u32>,
}

/// A b-tree.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    /// Interior pages from the root on, each before its children.
    pub interiors: Vec<u32>,
    /// Leaves in key order.
    pub leaves: Vec<u32>,
    /// Overflow pages in key order.
    pub overflows: Vec<u32>,
    /// Rows in key order (of an index tree also those on interior pages).
    pub cells: Vec<Cell>,
}

/// A variable-length integer and its length.
pub fn varint(b: &[u8], at: usize) -> (u64, usize) {
    let mut v = 0_u64;
    for i in 0..8 {
        let c = b[at + i];
        v = (v << 7) | u64::from(c & 0x7f);
        if c < 0x80 {
            return (v, i + 1);
        }
    }
    ((v << 8) | u64::from(b[at + 8]), 9)
}

/// A variable-length integer in exactly `len` bytes where it fits, else in as many as it needs.
pub fn to_varint(v: u64, len: usize) -> Vec<u8> {
    if v >> 56 != 0 {
        let mut out: Vec<u8> = (0..8).map(|i| (v >> (8 + 7 * (7 - i))) as u8 | 0x80).collect();
        out.push(v as u8);
        return out;
    }
    let mut groups = vec![(v & 0x7f) as u8];
    let mut rest = v >> 7;
    while rest > 0 || groups.len() < len.min(8) {
        groups.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    groups.reverse();
    groups
}

fn be(b: &[u8], at: usize, n: usize) -> usize {
    b[at..at + n].iter().fold(0, |v, &c| v << 8 | usize::from(c))
}

impl<'a> File<'a> {
    /// Reads the header.
    pub fn new(data: &'a [u8]) -> File<'a> {
        let n = be(data, 16, 2);
        let page_size = if n == 1 { 65536 } else { n };
        File { data, page_size, usable: page_size - usize::from(data[20]) }
    }

    /// Pages of the file.
    pub fn count(&self) -> u32 {
        (self.data.len() / self.page_size) as u32
    }

    /// The bytes of a page.
    pub fn page(&self, no: u32) -> &'a [u8] {
        let from = (no as usize - 1) * self.page_size;
        &self.data[from..from + self.page_size]
    }

    /// Offset of the b-tree header in a page.
    pub fn head(no: u32) -> usize {
        if no == 1 { 100 } else { 0 }
    }

    /// Offset in the page of the cell pointer array.
    pub fn pointers(&self, no: u32) -> usize {
        let h = Self::head(no);
        h + if matches!(self.page(no)[h], 2 | 5) { 12 } else { 8 }
    }

    /// Cells that the header of a page declares.
    pub fn cell_count(&self, no: u32) -> usize {
        be(self.page(no), Self::head(no) + 3, 2)
    }

    fn chain(&self, mut no: u32) -> Vec<u32> {
        let mut out = Vec::new();
        while no != 0 {
            out.push(no);
            no = be(self.page(no), 0, 4) as u32;
        }
        out
    }

    /// A cell of a page; `None` for the cells of table-interior pages, which hold no row.
    pub fn cell(&self, no: u32, number: usize) -> Option<Cell> {
        let p = self.page(no);
        let kind = p[Self::head(no)];
        let at = be(p, self.pointers(no) + 2 * number, 2);
        if kind == 5 {
            return None;
        }
        let mut o = at + if kind == 2 { 4 } else { 0 };
        let (size, n) = varint(p, o);
        o += n;
        let (mut rowid, mut rowid_at) = (None, (o, 0));
        if kind == 13 {
            let (id, n) = varint(p, o);
            rowid = Some(id as i64);
            rowid_at = (o, n);
            o += n;
        }
        let max = if kind == 13 { self.usable - 35 } else { (self.usable - 12) * 64 / 255 - 23 };
        let min = (self.usable - 12) * 32 / 255 - 23;
        let size = size as usize;
        let (end, overflow) = if size <= max {
            (o + size, Vec::new())
        } else {
            let k = min + (size - min) % (self.usable - 4);
            let local = if k <= max { k } else { min };
            (o + local + 4, self.chain(be(p, o + local, 4) as u32))
        };
        Some(Cell { page: no, number, at, len: end - at, rowid, rowid_at, overflow })
    }

    /// Everything below a root page.
    pub fn tree(&self, root: u32) -> Tree {
        let mut out = Tree::default();
        self.walk(root, &mut out);
        out
    }

    fn walk(&self, no: u32, out: &mut Tree) {
        let p = self.page(no);
        let h = Self::head(no);
        let interior = matches!(p[h], 2 | 5);
        if interior {
            out.interiors.push(no)
        } else {
            out.leaves.push(no)
        }
        for number in 0..self.cell_count(no) {
            if interior {
                self.walk(be(p, be(p, self.pointers(no) + 2 * number, 2), 4) as u32, out);
            }
            if let Some(cell) = self.cell(no, number) {
                out.overflows.extend(&cell.overflow);
                out.cells.push(cell);
            }
        }
        if interior {
            self.walk(be(p, h + 8, 4) as u32, out);
        }
    }

    /// Trunk pages and leaf pages of the freelist.
    pub fn freelist(&self) -> (Vec<u32>, Vec<u32>) {
        let (mut trunks, mut leaves) = (Vec::new(), Vec::new());
        let mut no = be(self.data, 32, 4) as u32;
        while no != 0 {
            trunks.push(no);
            let p = self.page(no);
            leaves.extend((0..be(p, 4, 4)).map(|i| be(p, 8 + 4 * i, 4) as u32));
            no = be(p, 0, 4) as u32;
        }
        (trunks, leaves)
    }

    /// Pointer-map pages of an auto-vacuum file.
    pub fn pointer_maps(&self) -> Vec<u32> {
        (2..=self.count()).step_by(self.usable / 5 + 1).collect()
    }

    /// Root pages by object name, `sqlite_schema` included.
    pub fn roots(&self, schema: &[(String, u32)]) -> BTreeMap<String, u32> {
        let mut out: BTreeMap<String, u32> = schema.iter().filter(|(_, root)| *root > 0).cloned().collect();
        out.insert("sqlite_schema".to_owned(), 1);
        out
    }
}

impl Cell {
    /// Whether any byte of the row differs between two versions of a file; bytes that are no longer there differ.
    pub fn touched(&self, file: &File<'_>, after: &[u8]) -> bool {
        let ranges = std::iter::once((self.page, self.at, self.at + self.len)).chain(self.overflow.iter().map(|&no| (no, 0, file.usable)));
        for (no, from, to) in ranges {
            let base = (no as usize - 1) * file.page_size;
            if after.get(base + from..base + to) != Some(&file.data[base + from..base + to]) {
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_come_back() {
        for v in [0, 1, 127, 128, 16383, 16384, 1 << 28, 1 << 55, 1 << 56, u64::MAX] {
            for len in 0..9 {
                let bytes = [to_varint(v, len), vec![0; 9]].concat();
                assert_eq!(varint(&bytes, 0).0, v);
            }
        }
    }
}
