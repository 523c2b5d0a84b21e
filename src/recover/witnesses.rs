//! Rows that are known to be gone, and what is left of them.
//!
//! Tests:    entries of indexes whose rowid no row has, against the leaves and holes that damage covers; cell counts, bytes of
//!           no cell and missing children.
//! Collects: *lost* rows where a damaged page covers them, *unaccounted* ones where only an index names them; the values that
//!           indexes still give.
//! Leaves:   which of the unaccounted rows were simply deleted: nothing tells.

use std::collections::{BTreeMap, BTreeSet};

use crate::bytes::u16_at;
use crate::format::{Cell, Fields, Value};
use crate::ids::{PageNo, idx, wide};
use crate::recover::text_back::Texts;
use crate::report::model::Gone;
use crate::schema::IndexSource;
use crate::survey::plan::{Constant, IndexPlan, TablePlan};
use crate::survey::{Content, IndexFit, Survey, SurveyedTree, TableScan};
use crate::survey::{GoneEntry, GoneKey, NAMED};
use crate::tree::Slot;
use crate::tree::bounds::inside;
use crate::tree::payload::PayloadReader;

/// Bytes before the first cell of a leaf without header in which something is left of a cell that was cut off. Free space of a
/// leaf ends there in zeros, or in what an earlier cell left.
const CUT: usize = 2;

/// Disks lose data by sectors: a first cell right at the edge of one, on a leaf whose header is gone, was not the first.
const SECTOR: usize = 512;

/// Groups of rows that are named one by one.
const GROUPS: usize = 1000;

/// What indexes hold of one row that no page has.
#[derive(Debug, Clone)]
pub(crate) struct Partial {
    /// Its rowid; none in a WITHOUT ROWID table.
    pub(crate) rowid: Option<i64>,
    /// The entry that was read first.
    pub(crate) page: PageNo,
    pub(crate) cell: u16,
    /// Values by column.
    pub(crate) values: BTreeMap<usize, Constant>,
    /// The indexes that give them.
    pub(crate) indexes: Vec<String>,
    /// Whether the row stands in the table all the same, with other values.
    pub(crate) disputed: bool,
}

/// The indexes of a table that name rows which are gone, by their rowids and by their primary keys; a table has one of both.
fn naming<'s>(survey: &'s Survey<'_>, plan: &'s TablePlan) -> Vec<(&'s IndexPlan, &'s [GoneEntry], &'s [GoneKey])> {
    let named = plan.indexes.iter().filter_map(|p| match survey.tree_of(p.object)?.content.as_ref()? {
        Content::Index { fit: IndexFit::Differs { gone, gone_keys, .. }, .. } if !(gone.is_empty() && gone_keys.is_empty()) => {
            Some((p, gone.as_slice(), gone_keys.as_slice()))
        }
        _ => None,
    });
    named.collect()
}

/// What the indexes of a table still hold of rows that are gone, by rowid or by primary key.
pub(crate) fn partial_rows(survey: &Survey<'_>, t: &SurveyedTree) -> Vec<Partial> {
    let Some(Content::Table { plan, scan }) = &t.content else { return Vec::new() };
    if survey.catalog.get(t.object).is_none_or(|o| o.family.virtual_table().is_some()) {
        return Vec::new();
    }
    let aside: BTreeSet<i64> = scan.excluded.iter().filter_map(|e| e.rowid).collect();
    let mut by_rowid: BTreeMap<i64, Partial> = BTreeMap::new();
    let mut by_key: BTreeMap<u64, Partial> = BTreeMap::new();
    let mut reader = EntryReader::new(survey, plan);
    for (index, gone, gone_keys) in naming(survey, plan) {
        for g in gone.iter().filter(|g| !aside.contains(&g.rowid)) {
            let row = by_rowid.entry(g.rowid).or_insert_with(|| Partial::new(Some(g.rowid), g.page, g.cell));
            reader.add(row, index, g.page, g.cell);
        }
        for g in gone_keys {
            let row = by_key.entry(g.row).or_insert_with(|| Partial::new(None, g.page, g.cell));
            reader.add(row, index, g.page, g.cell);
        }
    }
    let mut out: Vec<Partial> = by_rowid.into_values().chain(by_key.into_values()).collect();
    for dispute in survey.disputes.iter().filter(|d| d.table == t.object) {
        let Some((_, page, cell)) = dispute.entries.first() else { continue };
        let mut row = Partial { disputed: true, ..Partial::new(dispute.rowid, *page, *cell) };
        for (object, page, cell) in &dispute.entries {
            if let Some(index) = plan.indexes.iter().find(|i| i.object == *object) {
                reader.add(&mut row, index, *page, *cell);
            }
        }
        out.push(row);
    }
    out.retain(|row| !row.indexes.is_empty());
    out
}

impl Partial {
    fn new(rowid: Option<i64>, page: PageNo, cell: u16) -> Partial {
        Partial { rowid, page, cell, values: BTreeMap::new(), indexes: Vec::new(), disputed: false }
    }
}

/// Reads the values that index entries have of a row.
struct EntryReader<'s, 'a> {
    survey: &'s Survey<'a>,
    plan: &'s TablePlan,
    payload: PayloadReader,
    fields: Fields,
}

impl<'s, 'a> EntryReader<'s, 'a> {
    fn new(survey: &'s Survey<'a>, plan: &'s TablePlan) -> EntryReader<'s, 'a> {
        EntryReader { survey, plan, payload: PayloadReader::new(), fields: Fields::new() }
    }

    fn add(&mut self, row: &mut Partial, index: &IndexPlan, page: PageNo, cell: u16) {
        let Ok(cell) = self.survey.pages.cell(page, cell) else { return };
        let Ok(record) = self.payload.read(&self.survey.pages, &cell) else { return };
        if self.fields.read(record, cell.payload_len).is_err() {
            return;
        }
        row.indexes.push(index.name.clone());
        for (part, value) in index.columns.iter().zip(self.fields.values(record)) {
            if let IndexSource::Column(c) = part.source
                && self.plan.columns.get(c).is_some_and(|c| c.position.is_some())
            {
                row.values.entry(c).or_insert_with(|| Constant::from(value));
            }
        }
    }
}

/// A leaf or a hole that damage covers: the rowids that it may have held, and its page.
#[derive(Debug, Clone, Copy)]
struct Covered {
    above: Option<i64>,
    upto: Option<i64>,
    page: Option<PageNo>,
}

/// What damage covers, in key order.
fn covered(survey: &Survey<'_>, t: &SurveyedTree, scan: &TableScan) -> Vec<Covered> {
    let damaged: BTreeSet<PageNo> = scan.damaged.iter().chain(&scan.outside).copied().collect();
    let slots = t.tree.slots.iter().filter_map(|s| match *s {
        Slot::Leaf { page, above, upto, .. } if damaged.contains(&page) => Some(Covered { above, upto, page: Some(page) }),
        Slot::Hole { child, above, upto, .. } => {
            let page = PageNo::new(child).filter(|p| p.get() <= survey.pages.count());
            Some(Covered { above, upto, page })
        }
        _ => None,
    });
    slots.collect()
}

/// Rows that are known to be gone: lost where damage covers them, unaccounted where only an index names them. `texts`: the rows
/// that search indexes list and the table does not have.
pub(crate) fn gone(survey: &Survey<'_>, t: &SurveyedTree, scan: &TableScan, written: u64, texts: Option<&Texts>) -> (Vec<Gone>, Vec<Gone>) {
    let Some(Content::Table { plan, .. }) = &t.content else { return (Vec::new(), Vec::new()) };
    let covered = covered(survey, t, scan);
    let named = naming(survey, plan);
    let witness = words_of(plan, named.iter().map(|(index, ..)| *index));
    // Rows that were set aside are not gone.
    let aside: BTreeSet<i64> = scan.excluded.iter().filter_map(|e| e.rowid).collect();
    let rowids: BTreeSet<i64> = named.iter().flat_map(|(_, gone, _)| gone.iter().map(|g| g.rowid)).filter(|r| !aside.contains(r)).collect();
    let (mut lost, mut unaccounted) = (Vec::new(), Vec::new());
    let mut add = |rowids: &BTreeSet<i64>, witness: &str| {
        for (by, list) in by_page(&covered, rowids) {
            let gone = Gone {
                rowids: ranges(&list),
                count: Some(wide(list.len())),
                witness: witness.to_owned(),
                page: by.and_then(|c| c.page).map(PageNo::get),
            };
            if by.is_some() { lost.push(gone) } else { unaccounted.push(gone) }
        }
    };
    add(&rowids, &witness);
    let keys: BTreeSet<u64> = named.iter().flat_map(|(_, _, keys)| keys.iter().map(|g| g.row)).collect();
    if let Some(texts) = texts {
        let listed: BTreeSet<i64> = texts.lost.iter().copied().filter(|r| !aside.contains(r) && !rowids.contains(r)).collect();
        add(&listed, &format!("search index {}, which lists them", texts.indexes.join(", ")));
    }
    if !keys.is_empty() {
        let gone = Gone { rowids: Vec::new(), count: Some(wide(keys.len())), witness, page: None };
        if covered.is_empty() { unaccounted.push(gone) } else { lost.push(gone) }
    }
    if !names_all(survey, plan)
        && let Some((from, upto)) = above_the_last(survey, t, scan)
    {
        let known: u64 = lost.iter().filter(|g| g.rowids.iter().all(|r| r[0] >= from)).filter_map(|g| g.count).fold(0, u64::saturating_add);
        if known == 0 {
            let page = covered.last().and_then(|c| c.page).map(PageNo::get);
            lost.push(Gone { rowids: vec![[from, upto]], count: None, witness: "sqlite_sequence".to_owned(), page });
        }
    }
    if !covered.is_empty() && !names_all(survey, plan) {
        lost.extend(holes(survey, t, written));
        lost.extend(between_leaves(plan, t, wide(keys.len())));
        for page in scan.unexplained.iter().map(|(no, _)| *no).chain(carved(survey, t)) {
            let rowids = missing_on(survey, t, page);
            let all_there = survey.pages.leaf(page).is_err() && rowids.as_ref().map_or_else(|| !is_cut(survey, page), Vec::is_empty);
            if scan.skipped.iter().any(|(no, _)| *no == page) || all_there {
                continue;
            }
            let rowids = rowids.unwrap_or_default();
            let witness = "bytes of the page that belong to no cell".to_owned();
            lost.push(Gone { rowids, count: None, witness, page: Some(page.get()) });
        }
        for (page, cells) in &scan.skipped {
            let witness = "cell pointers of the page".to_owned();
            lost.push(Gone { rowids: Vec::new(), count: Some(u64::from(*cells)), witness, page: Some(page.get()) });
        }
    }
    (lost, unaccounted)
}

/// Rowids by the leaf or hole that covers them.
fn by_page(covered: &[Covered], rowids: &BTreeSet<i64>) -> Vec<(Option<Covered>, Vec<i64>)> {
    let mut groups: Vec<(Option<Covered>, Vec<i64>)> = Vec::new();
    for &rowid in rowids {
        let by = covered.iter().find(|c| inside((c.above, c.upto), rowid)).copied();
        let page = by.map(|c| c.page);
        let place = groups.iter().position(|(b, _)| b.map(|c| c.page) == page);
        if place.is_none() && groups.len() < GROUPS {
            groups.push((by, Vec::new()));
        }
        let last = groups.len().saturating_sub(1);
        if let Some((_, list)) = groups.get_mut(place.unwrap_or(last)) {
            list.push(rowid);
        }
    }
    groups
}

/// Rowids that an AUTOINCREMENT table gave behind its last row, where damage covers that end.
fn above_the_last(survey: &Survey<'_>, t: &SurveyedTree, scan: &TableScan) -> Option<(i64, i64)> {
    let object = survey.catalog.get(t.object).filter(|o| o.table_def().is_some_and(|d| d.autoincrement))?;
    let damaged = match *t.tree.slots.last()? {
        Slot::Hole { .. } => true,
        Slot::Leaf { page, .. } => scan.damaged.contains(&page),
        Slot::Entry { .. } => false,
    };
    let sequence = survey.catalog.by_name(b"sqlite_sequence").and_then(|o| survey.tree_of(o.id)).filter(|_| damaged)?;
    let mut given: Option<i64> = None;
    let mut payload = PayloadReader::new();
    let mut fields = Fields::new();
    for no in sequence.tree.leaves() {
        let Ok(page) = survey.pages.leaf(no) else { continue };
        for (_, cell) in page.cells(survey.pages.split) {
            let Ok(cell) = cell else { continue };
            let Ok(record) = payload.read(&survey.pages, &cell) else { continue };
            if fields.read(record, cell.payload_len).is_err() {
                continue;
            }
            if let (Some(Value::Text(name)), Some(Value::Int(seq))) = (fields.value(record, 0), fields.value(record, 1))
                && object.name.same(&survey.encoding.to_utf8(name))
            {
                given = given.max(Some(seq));
            }
        }
    }
    let last = scan.last_rowid().unwrap_or(0);
    let highest = scan.excluded.iter().filter_map(|e| e.rowid).max().unwrap_or(last).max(last);
    given.filter(|g| *g > highest).map(|g| (highest.saturating_add(1), g))
}

/// Whether a whole index covers every row of a table: what it does not name is not missing.
fn names_all(survey: &Survey<'_>, plan: &TablePlan) -> bool {
    plan.indexes.iter().any(|p| {
        survey.tree_of(p.object).is_some_and(|t| match &t.content {
            Some(Content::Index { scan, fit, .. }) => {
                let whole = scan.broken == 0 && scan.damaged.is_empty() && t.tree.holes() == 0 && p.condition.is_none();
                let known = match fit {
                    IndexFit::Equal => true,
                    IndexFit::Differs { gone, gone_keys, .. } => gone.len() < NAMED && gone_keys.len() < NAMED,
                    IndexFit::Unknown => false,
                };
                whole && known
            }
            _ => false,
        })
    })
}

/// The indexes that name rows, with the columns that they still give.
fn words_of<'p>(plan: &TablePlan, named: impl Iterator<Item = &'p IndexPlan>) -> String {
    let one = |index: &IndexPlan| {
        let columns: Vec<&str> = index
            .columns
            .iter()
            .filter_map(|part| match part.source {
                IndexSource::Column(c) => plan.columns.get(c).map(|c| c.name.as_str()),
                _ => None,
            })
            .collect();
        match columns.split_last() {
            Some((last, [])) => format!("index {}, which still gives {last}", index.name),
            Some((last, others)) => format!("index {}, which still gives {} and {last}", index.name, others.join(", ")),
            None => format!("index {}", index.name),
        }
    };
    named.map(one).collect::<Vec<_>>().join("; ")
}

/// Leaves that were read without header and pointers.
fn carved<'s>(survey: &'s Survey<'_>, t: &'s SurveyedTree) -> impl Iterator<Item = PageNo> + 's {
    t.tree.leaves().filter(|no| survey.pages.mended(*no).is_some() && survey.pages.leaf(*no).is_err())
}

/// Whether a leaf that was read without header and pointers has bytes that neither a cell nor a free block explains: what is
/// left of a cell that was cut off, right before the first whole one, or overwritten, between two.
fn is_cut(survey: &Survey<'_>, no: PageNo) -> bool {
    let Ok((kind, cells)) = survey.pages.cells(no) else { return true };
    let bytes = survey.pages.usable_bytes(no);
    let mut fields = Fields::new();
    // The end of a whole cell at a place; one that was deleted explains its bytes, too.
    let mut end_of = |at: usize| {
        let cell = Cell::read(bytes, at, kind, &survey.pages.split).ok()?;
        fields.read(cell.local, cell.payload_len).ok()?;
        let whole = cell.overflow.is_some() || u64::from(fields.body_end()) == cell.payload_len;
        (whole && !fields.is_empty()).then(|| at.saturating_add(idx(cell.len)))
    };
    let mut spans: Vec<(usize, usize)> = cells.iter().map(|(_, c)| (idx(c.at), idx(c.at.saturating_add(c.len)))).collect();
    spans.sort_unstable();
    let mut first = spans.first().map_or(bytes.len(), |s| s.0);
    while let Some(at) = (0..first).rev().take(bytes.len() >> 2).find(|at| end_of(*at) == Some(first)) {
        first = at;
    }
    if first.is_multiple_of(SECTOR) || bytes.get(first.saturating_sub(CUT)..first).is_some_and(|b| b.iter().any(|b| *b != 0)) {
        return true;
    }
    let mut free = spans.first().map_or(first, |s| s.0);
    spans.push((bytes.len(), bytes.len()));
    spans.into_iter().any(|(at, end)| {
        let gap = bytes.get(free..at).unwrap_or_default();
        let is_free_block = u16_at(gap, 2).is_some_and(|size| gap.len().wrapping_sub(usize::from(size)) < 4);
        let mut behind = free;
        while let Some(next) = end_of(behind).filter(|next| *next <= at) {
            behind = next;
        }
        let deleted = at.saturating_sub(behind) < 4;
        free = free.max(end);
        // Up to three bytes between cells are fragments.
        gap.len() > 3 && !is_free_block && !deleted && gap.iter().any(|b| *b != 0)
    })
}

/// Ranges of rowids that the parents of a leaf leave to it and none of its rows has; `None` where the bounds are not known.
fn missing_on(survey: &Survey<'_>, t: &SurveyedTree, page: PageNo) -> Option<Vec<[i64; 2]>> {
    let bounds = t.tree.slots.iter().find_map(|s| match *s {
        Slot::Leaf { page: p, above, upto, .. } if p == page => Some((above?, upto?)),
        _ => None,
    });
    let (Some((above, upto)), Ok((_, cells))) = (bounds, survey.pages.cells(page)) else { return None };
    let mut rowids: Vec<i64> = cells.iter().filter_map(|(_, c)| c.rowid).filter(|r| *r > above && *r <= upto).collect();
    rowids.sort_unstable();
    let mut out = Vec::new();
    let mut next = above.saturating_add(1);
    for r in rowids {
        if r > next {
            out.push([next, r.saturating_sub(1)]);
        }
        next = r.saturating_add(1);
    }
    if next <= upto {
        out.push([next, upto]);
    }
    Some(out)
}

/// Rows of a WITHOUT ROWID table that stood on an interior page which is gone: one between each two leaves that follow one
/// another with nothing between them, less those that an index names. A whole subtree that came back brought its own along.
fn between_leaves(plan: &TablePlan, t: &SurveyedTree, known: u64) -> Option<Gone> {
    plan.key.as_ref()?;
    let slots = &t.tree.slots;
    let both = |(a, b): (&Slot, &Slot)| matches!((a, b), (Slot::Leaf { .. }, Slot::Leaf { .. }));
    let count = wide(slots.iter().zip(slots.iter().skip(1)).filter(|pair| both(*pair)).count()).saturating_sub(known);
    let witness = "rows between leaves whose parent is gone".to_owned();
    (count > 0).then(|| Gone { rowids: Vec::new(), count: Some(count), witness, page: None })
}

/// Holes of a tree that nothing came back through, or through which more may be missing.
fn holes(survey: &Survey<'_>, t: &SurveyedTree, written: u64) -> Vec<Gone> {
    // An orphan that holds nothing readable, or a file that ends early, may be what an interior page pointed to.
    let unread = survey.orphans.iter().any(|no| survey.pages.leaf(*no).is_err()) || survey.header.page_count > survey.pages.count();
    let mut out = Vec::new();
    let mut last_was_filled = false;
    for slot in &t.tree.slots {
        match *slot {
            Slot::Leaf { page, .. } => last_was_filled = survey.adopted.contains(&page),
            Slot::Entry { .. } => last_was_filled = false,
            Slot::Hole { child, above, upto, .. } => {
                if last_was_filled && !unread && written > 0 {
                    continue;
                }
                let rowids = match (above, upto) {
                    (Some(a), Some(u)) => vec![[a.saturating_add(1), u]],
                    _ => Vec::new(),
                };
                let page = (child != 0 && child <= survey.pages.count()).then_some(child);
                out.push(Gone { rowids, count: None, witness: "the pointer of the page above".to_owned(), page });
            }
        }
    }
    out
}

/// Ascending numbers as inclusive ranges.
pub(crate) fn ranges(sorted: &[i64]) -> Vec<[i64; 2]> {
    let mut out: Vec<[i64; 2]> = Vec::new();
    for &n in sorted {
        match out.last_mut() {
            Some([_, last]) if last.checked_add(1) == Some(n) => *last = n,
            _ => out.push([n, n]),
        }
    }
    out
}
