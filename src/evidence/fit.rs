//! Whether a sidecar belongs to the file it lies beside: same, foreign, or undecided, with reasons.
//!
//! SQLite blends any log whose checksums are right and rolls back any journal with a header. Only a sidecar that positively
//! contradicts the file is not blended; where the evidence is thin, SQLite is followed and the doubt is said.

use std::collections::BTreeSet;

use super::page_fit::{child_fits, closes};
use super::page_one::grade;
use super::source::{PageRef, PageSource};
use crate::bytes::u32_at;
use crate::finding::Origin;
use crate::format::DatabaseHeader;
use crate::format::cell::Split;
use crate::format::header::HEADER_LEN;
use crate::format::page::{Page, PageKind};
use crate::format::record::Fields;
use crate::ids::PageNo;

/// How a sidecar fits the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// It is this database's.
    Same,
    /// Nothing decides it.
    Undecided,
    /// It is another database's.
    Foreign,
}

/// The verdict and what it rests on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fit {
    /// Same, undecided or foreign.
    pub verdict: Verdict,
    /// What speaks for or against it, in words.
    pub reasons: Vec<String>,
}

impl Fit {
    /// The reasons in one line.
    #[must_use]
    pub fn text(&self) -> String {
        self.reasons.join("; ")
    }
}

/// Parent-child edges of which one end lies in the sidecar and the other in the main file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Edges {
    hold: u32,
    contradict: u32,
}

/// Interior pages looked at for one verdict; a log that touches more says enough with these.
const PARENTS: u32 = 4096;

/// Goes over interior pages of the blended state and tests each edge that crosses between the files: the child must be of
/// its parent's tree kind, and in table trees its rowids must lie within its parent's bounds. Only pages that are sound in
/// themselves testify, so damage is not taken for another database.
fn edges(blended: &dyn PageSource, usable: u32) -> Edges {
    let split = Split::new(usable);
    let mut out = Edges::default();
    let mut parents = 0_u32;
    let sound = |p: &PageRef<'_>| closes(p.bytes, header_at(p.no), usable);
    for n in 1..=blended.page_count() {
        let Some(parent) = PageNo::new(n).and_then(|no| blended.page(no)) else { continue };
        let at = header_at(parent.no);
        if !matches!(parent.bytes.get(at), Some(2 | 5)) || !sound(&parent) {
            continue;
        }
        let Ok(page) = Page::read_at(parent.bytes, at, usable) else { continue };
        parents = parents.saturating_add(1);
        if parents > PARENTS {
            break;
        }
        let from_main = parent.origin == Origin::Main;
        let mut low = i64::MIN;
        let last = page.right_child.map(|c| (c, i64::MAX));
        let cells = page.cells(split).filter_map(|(_, c)| c.ok()).filter_map(|c| Some((c.child?, c.rowid.unwrap_or(i64::MAX))));
        for (child, high) in cells.chain(last) {
            let bounds = (low, high);
            low = if page.kind == PageKind::TableInterior { high } else { i64::MIN };
            let Some(child) = PageNo::new(child).and_then(|no| blended.page(no)) else { continue };
            if (child.origin == Origin::Main) == from_main || !sound(&child) {
                continue;
            }
            let empty = Page::read_at(child.bytes, 0, usable).is_ok_and(|p| p.cell_count == 0);
            if empty {
                continue;
            }
            if child_fits(child.bytes, page.kind, &split, bounds.0, bounds.1) {
                out.hold = out.hold.saturating_add(1);
            } else {
                out.contradict = out.contradict.saturating_add(1);
            }
        }
    }
    out
}

fn header_at(no: PageNo) -> usize {
    if no == PageNo::ONE { HEADER_LEN } else { 0 }
}

/// (type, name, rootpage) of schema rows, raw.
type SchemaRows = BTreeSet<(Vec<u8>, Vec<u8>, i64)>;

/// The schema rows on an image of page 1 that is a leaf; `None` when it is none or holds none.
fn schema_rows(image: &[u8], usable: u32) -> Option<SchemaRows> {
    let page = Page::read_at(image, HEADER_LEN, usable).ok().filter(|p| p.kind == PageKind::TableLeaf)?;
    let mut fields = Fields::new();
    let mut out = BTreeSet::new();
    for (_, cell) in page.cells(Split::new(usable)) {
        let Ok(cell) = cell else { continue };
        // Long SQL overflows; the first four values lie in front of it.
        let _ = fields.read(cell.local, cell.payload_len);
        let value = |i: usize| fields.value(cell.local, i);
        if let (Some(kind), Some(name), Some(root)) =
            (value(0).and_then(|v| v.as_text()), value(1).and_then(|v| v.as_text()), value(3).and_then(|v| v.as_int()))
        {
            out.insert((kind.to_vec(), name.to_vec(), root));
        }
    }
    (!out.is_empty()).then_some(out)
}

/// Root pages that the schema of the main file names, against the kinds of their images in the sidecar.
fn roots(schema: &SchemaRows, blended: &dyn PageSource, usable: u32) -> Edges {
    let mut out = Edges::default();
    for (kind, _, root) in schema {
        let Some(page) = u32::try_from(*root).ok().and_then(PageNo::new).and_then(|no| blended.page(no)) else { continue };
        if page.origin == Origin::Main || !closes(page.bytes, header_at(page.no), usable) {
            continue;
        }
        let Some(found) = page.bytes.first().copied().and_then(PageKind::from_byte) else { continue };
        // "index" in any encoding begins with or contains an i; a table WITHOUT ROWID has an index tree and says nothing.
        let says_index = kind.contains(&b'x');
        if says_index && found.is_table() {
            out.contradict = out.contradict.saturating_add(1);
        } else if says_index || found.is_table() {
            out.hold = out.hold.saturating_add(1);
        }
    }
    out
}

/// What two images of page 1 say about each other.
#[derive(Debug, Default)]
struct PageOnes {
    for_same: Vec<String>,
    against: Vec<String>,
    /// The schemas have no row in common.
    disjoint: bool,
}

fn compare_page_ones(main: &[u8], other: &[u8], usable: u32) -> PageOnes {
    let mut out = PageOnes::default();
    if grade(main) < 5 || grade(other) < 5 {
        return out;
    }
    let (Ok(a), Ok(b)) = (DatabaseHeader::read(main), DatabaseHeader::read(other)) else { return out };
    if a.encoding_raw != b.encoding_raw && a.encoding_raw != 0 && b.encoding_raw != 0 {
        out.against.push(format!("text encoding {} against {}", a.encoding_raw, b.encoding_raw));
    }
    if a.application_id != b.application_id && a.application_id != 0 {
        out.against.push(format!("application id {} against {}", a.application_id, b.application_id));
    }
    if let (Some(x), Some(y)) = (schema_rows(main, usable), schema_rows(other, usable)) {
        let common = x.intersection(&y).count();
        if common > 0 {
            out.for_same.push(format!("{common} schema rows in common"));
        } else {
            out.disjoint = true;
            out.against.push("no schema row in common".to_owned());
        }
    }
    out
}

fn counter(image: Option<&[u8]>) -> Option<u32> {
    u32_at(image.filter(|b| grade(b) >= 5)?, 24)
}

/// What there is to judge a sidecar by.
#[derive(Clone, Copy)]
pub struct Case<'x> {
    /// The state with the sidecar blended in.
    pub blended: &'x dyn PageSource,
    /// The main file's own page 1.
    pub main_page_one: Option<&'x [u8]>,
    /// The sidecar's image of page 1: the oldest of a log, the one of a journal.
    pub other_page_one: Option<&'x [u8]>,
    /// Usable bytes of a page.
    pub usable: u32,
    /// Pages of the database by the sidecar: of the last commit, or before the transaction.
    pub other_pages: u32,
    /// Whole pages of the main file.
    pub main_pages: u32,
}

impl std::fmt::Debug for Case<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Case").field("other_pages", &self.other_pages).field("main_pages", &self.main_pages).finish_non_exhaustive()
    }
}

fn weigh(case: &Case<'_>, hard: &mut Vec<String>, soft: &mut Vec<String>, same: &mut Vec<String>) {
    let mut found = edges(case.blended, case.usable);
    let mut disjoint = false;
    if let (Some(main), Some(other)) = (case.main_page_one, case.other_page_one) {
        let ones = compare_page_ones(main, other, case.usable);
        disjoint = ones.disjoint;
        same.extend(ones.for_same);
        soft.extend(ones.against);
    } else if let Some(schema) = case.main_page_one.and_then(|m| schema_rows(m, case.usable)) {
        let r = roots(&schema, case.blended, case.usable);
        found.hold = found.hold.saturating_add(r.hold);
        found.contradict = found.contradict.saturating_add(r.contradict);
    }
    if found.hold > 0 {
        same.push(format!("{} tree edges between the files hold", found.hold));
    }
    if found.contradict > 0 {
        let text = format!("{} tree edges between the files contradict each other", found.contradict);
        let clearly = found.contradict >= 2 && found.contradict > found.hold.saturating_mul(2);
        if clearly || (disjoint && found.contradict > found.hold) { hard.push(text) } else { soft.push(text) }
    }
    if disjoint && found.hold == 0 {
        hard.push("the schema on its page 1 is another".to_owned());
    }
}

fn settle(hard: Vec<String>, soft: Vec<String>, same: Vec<String>) -> Fit {
    let verdict = match (hard.is_empty(), soft.is_empty(), same.is_empty()) {
        (false, _, _) => Verdict::Foreign,
        (true, false, true) => Verdict::Undecided,
        // One contradiction among things that agree is damage, not another database.
        (true, false, false) | (true, true, _) => Verdict::Same,
    };
    let reasons = if verdict == Verdict::Same && !same.is_empty() { same } else { hard.into_iter().chain(soft).chain(same).collect() };
    Fit { verdict, reasons }
}

/// Judges a log against its main file.
#[must_use]
pub fn wal(case: &Case<'_>) -> Fit {
    let (mut hard, mut soft, mut same) = (Vec::new(), Vec::new(), Vec::new());
    weigh(case, &mut hard, &mut soft, &mut same);
    let header = case.main_page_one.filter(|b| grade(b) >= 8).and_then(|b| DatabaseHeader::read(b).ok());
    if let Some(h) = header {
        // A commit that changes the number of pages writes page 1; without page 1 in the log the number stands in the main file.
        if case.other_page_one.is_none() && h.page_count_is_current() && h.page_count == case.main_pages && case.other_pages != h.page_count
        {
            hard.push(format!("its commits give {} pages without a page 1, the main file has {}", case.other_pages, h.page_count));
        }
        if let Some(c) = counter(case.other_page_one)
            && c.wrapping_add(0x1000_0000) < h.change_counter.wrapping_add(0x1000_0000)
        {
            soft.push(format!("its oldest page 1 has change counter {c}, the main file is at {}", h.change_counter));
        }
    }
    settle(hard, soft, same)
}

/// Judges a journal against its main file.
#[must_use]
pub fn journal(case: &Case<'_>) -> Fit {
    let (mut hard, mut soft, mut same) = (Vec::new(), Vec::new(), Vec::new());
    weigh(case, &mut hard, &mut soft, &mut same);
    if let (Some(main), Some(before)) = (counter(case.main_page_one), counter(case.other_page_one)) {
        // The transaction counts up by one, when it writes page 1 at all.
        match main.wrapping_sub(before) {
            0 | 1 => same.push("the change counters follow one another".to_owned()),
            _ if !same.iter().any(|s| s.contains("tree edges")) => {
                hard.push(format!("its page 1 has change counter {before}, the main file is at {main}"));
            }
            _ => soft.push(format!("its page 1 has change counter {before}, the main file is at {main}")),
        }
    }
    settle(hard, soft, same)
}
