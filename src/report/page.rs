//! One page explained.

use serde::{Deserialize, Serialize};

use super::model::FindingItem;

/// A page, what it is and every structure on it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PageView {
    /// [`super::model::FORMAT`].
    pub format: u32,
    /// What `check` says of the whole database, as its exit code.
    pub exit_code: u8,
    /// Its number.
    pub page: u32,
    /// Pages of the database.
    pub page_count: u64,
    /// "main", "wal frame 7", "journal record 3".
    pub origin: String,
    /// Offset of its first byte in that file.
    pub file_offset: u64,
    /// What it is used as, as in the page map.
    pub role: String,
    /// Kind and name of the object that owns it.
    pub owner: Option<String>,
    /// The page that points to it.
    pub parent: Option<u32>,
    /// Fields of its header (and of the database header on page 1): name, byte offset, value in words.
    pub fields: Vec<PageField>,
    /// Its cells in the order of the pointer array.
    pub cells: Vec<CellView>,
    /// Free ranges: offset and length, in chain order.
    pub freeblocks: Vec<[u32; 2]>,
    /// Findings on this page.
    pub findings: Vec<FindingItem>,
    /// All other versions of this page that the evidence holds, as origins.
    pub versions: Vec<String>,
    /// Its bytes in hex, two digits a byte.
    pub hex: String,
}

/// A field of a page header.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PageField {
    /// Its name.
    pub name: String,
    /// Byte offset on the page.
    pub offset: u32,
    /// Its length in bytes.
    pub length: u32,
    /// Its value, in words where a number does not say it.
    pub value: String,
}

/// A cell of a b-tree page, or an entry of another page kind.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CellView {
    /// Place in the pointer array, from 0.
    pub no: u16,
    /// Where it lies on the page, and its length there.
    pub offset: u32,
    /// Bytes it takes on the page.
    pub length: u32,
    /// The page left of it, on interior pages.
    pub child: Option<u32>,
    /// Its rowid, on table pages.
    pub rowid: Option<i64>,
    /// Bytes of its whole payload.
    pub payload: Option<u64>,
    /// The first page of its overflow chain.
    pub overflow: Option<u32>,
    /// Its values, each as an SQL literal, long ones shortened.
    pub values: Vec<String>,
    /// What is wrong with it.
    pub defect: Option<String>,
}

impl PageView {
    /// Takes out what holds values as they are: the bytes, rowids, and what findings say of a value. The values of cells are
    /// given as class and length by whoever fills them.
    pub(crate) fn redact(&mut self) {
        self.hex.clear();
        self.cells.iter_mut().for_each(|c| c.rowid = None);
        self.findings.iter_mut().for_each(|f| f.redact(None));
    }

    /// The page as JSON, indented, with a line feed at the end.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut json = serde_json::to_string_pretty(self).unwrap_or_default();
        json.push('\n');
        json
    }
}
