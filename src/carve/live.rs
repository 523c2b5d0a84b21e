//! What is live: whether a row that was found stands in its table all the same.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hasher};

use rayon::prelude::*;

use crate::ctx::Ctx;
use crate::error::Result;
use crate::format::{Fields, Value};
use crate::ids::{ObjectId, PageNo};
use crate::survey::plan::TablePlan;
use crate::survey::{Content, Survey};
use crate::tree::Slot;
use crate::tree::payload::PayloadReader;

/// The sum of a record.
pub(crate) fn sum(payload: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(payload);
    hasher.finish()
}

/// The sum of the first `n` values of a record, by their serial types and bytes.
pub(crate) fn sum_of_first(fields: &Fields, payload: &[u8], n: usize) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    for i in 0..n {
        let f = fields.as_slice().get(i)?;
        hasher.write_u64(f.serial);
        let start = crate::ids::idx(f.start);
        hasher.write(payload.get(start..start.saturating_add(crate::ids::idx(f.len)))?);
    }
    Some(hasher.finish())
}

/// What is asked of the live rows of a table, and the answers.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    /// Sums of whole records.
    pub(crate) whole: HashSet<u64>,
    /// Sums of beginnings, with their number of values.
    pub(crate) first: HashSet<(usize, u64)>,
    /// Sums of keys of a WITHOUT ROWID table.
    pub(crate) keys: HashSet<u64>,
}

/// Sums that live rows have.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    pub(crate) whole: HashSet<u64>,
    pub(crate) first: HashSet<(usize, u64)>,
    /// The record by the sum of its key.
    pub(crate) keys: HashMap<u64, Vec<u8>>,
}

/// Finds live rows by rowid.
#[derive(Debug)]
pub(crate) struct Live<'s> {
    survey: &'s Survey<'s>,
    tables: BTreeMap<ObjectId, Leaves>,
}

/// The leaves of a table with the first rowid of each; `None` where they are out of order.
#[derive(Debug)]
struct Leaves {
    first: Vec<(i64, PageNo)>,
    /// Every rowid, where the order of the leaves says nothing.
    all: Option<HashMap<i64, (PageNo, u16)>>,
}

impl<'s> Live<'s> {
    /// Looks at the leaves of every table with rowids.
    ///
    /// # Errors
    /// Cancellation.
    pub(crate) fn new(survey: &'s Survey<'s>, ctx: &Ctx) -> Result<Live<'s>> {
        let mut tables = BTreeMap::new();
        for t in &survey.trees {
            ctx.check()?;
            let Some(Content::Table { plan, scan }) = &t.content else { continue };
            if plan.key.is_some() {
                continue;
            }
            let leaves: Vec<PageNo> = t.tree.leaves().collect();
            let first: Vec<(i64, PageNo)> = leaves
                .par_iter()
                .filter_map(|no| {
                    let page = survey.pages.cells(*no).ok()?;
                    page.1.first().and_then(|(_, c)| c.rowid).map(|r| (r, *no))
                })
                .collect();
            let sorted = scan.ordered && first.is_sorted_by(|a, b| a.0 < b.0);
            let all = (!sorted).then(|| {
                let mut all = HashMap::new();
                for no in &leaves {
                    for (i, cell) in survey.pages.cells(*no).map(|(_, cells)| cells).unwrap_or_default() {
                        if let Some(rowid) = cell.rowid {
                            all.entry(rowid).or_insert((*no, i));
                        }
                    }
                }
                all
            });
            tables.insert(t.object, Leaves { first, all });
        }
        Ok(Live { survey, tables })
    }

    /// The record of the live row with this rowid.
    pub(crate) fn record(&self, table: ObjectId, rowid: i64, reader: &mut PayloadReader) -> Option<Vec<u8>> {
        let leaves = self.tables.get(&table)?;
        let (no, cell) = match &leaves.all {
            Some(all) => *all.get(&rowid)?,
            None => {
                let at = leaves.first.partition_point(|(first, _)| *first <= rowid).checked_sub(1)?;
                let (_, no) = leaves.first.get(at)?;
                let cells = self.survey.pages.cells(*no).ok()?.1;
                let at = cells.binary_search_by_key(&Some(rowid), |(_, c)| c.rowid).ok()?;
                (*no, cells.get(at)?.0)
            }
        };
        let cell = self.survey.pages.cell(no, cell).ok()?;
        match reader.read(&self.survey.pages, &cell) {
            Ok(payload) => Some(payload.to_vec()),
            Err(_) => Some(reader.partial().to_vec()),
        }
    }
}

/// The sum of the key of a row of a WITHOUT ROWID table.
pub(crate) fn key_sum(plan: &TablePlan, fields: &Fields, payload: &[u8]) -> Option<u64> {
    let n = plan.key.as_ref()?.columns.len();
    let mut hasher = DefaultHasher::new();
    for i in 0..n {
        match fields.value(payload, i)? {
            Value::Int(n) => hasher.write_i64(n),
            Value::Real(r) => match crate::format::value::integral(r) {
                Some(n) => hasher.write_i64(n),
                None => hasher.write_u64(r.to_bits()),
            },
            Value::Text(t) => {
                hasher.write_u8(1);
                hasher.write(t);
            }
            Value::Blob(b) => {
                hasher.write_u8(2);
                hasher.write(b);
            }
            Value::Null => hasher.write_u8(3),
        }
    }
    Some(hasher.finish())
}

/// Goes over the live rows of a table once and answers what was asked.
///
/// # Errors
/// Cancellation.
pub(crate) fn ask(survey: &Survey<'_>, table: ObjectId, asked: &Asked, ctx: &Ctx) -> Result<Answers> {
    let Some(t) = survey.tree_of(table) else { return Ok(Answers::default()) };
    let Some(Content::Table { plan, .. }) = &t.content else { return Ok(Answers::default()) };
    let counts: Vec<usize> = {
        let mut counts: Vec<usize> = asked.first.iter().map(|(n, _)| *n).collect();
        counts.sort_unstable();
        counts.dedup();
        counts
    };
    let parts: Vec<Result<Answers>> = t
        .tree
        .slots
        .par_chunks(64)
        .map(|slots| {
            ctx.check()?;
            let mut out = Answers::default();
            let mut reader = PayloadReader::new();
            let mut fields = Fields::new();
            for slot in slots {
                let cells = match slot {
                    Slot::Leaf { page, .. } => survey.pages.cells(*page).map(|(_, cells)| cells).unwrap_or_default(),
                    Slot::Entry { page, cell } => survey
                        .pages
                        .page(*page)
                        .and_then(|p| p.cell(*cell, &survey.pages.split))
                        .map(|c| vec![(*cell, c)])
                        .unwrap_or_default(),
                    Slot::Hole { .. } => continue,
                };
                for (_, cell) in cells {
                    let Ok(payload) = reader.read(&survey.pages, &cell) else { continue };
                    let whole = sum(payload);
                    if asked.whole.contains(&whole) {
                        out.whole.insert(whole);
                    }
                    if counts.is_empty() && asked.keys.is_empty() {
                        continue;
                    }
                    if fields.read(payload, cell.payload_len).is_err() {
                        continue;
                    }
                    for n in &counts {
                        if let Some(first) = sum_of_first(&fields, payload, *n)
                            && asked.first.contains(&(*n, first))
                        {
                            out.first.insert((*n, first));
                        }
                    }
                    if !asked.keys.is_empty()
                        && let Some(key) = key_sum(plan, &fields, payload)
                        && asked.keys.contains(&key)
                    {
                        out.keys.insert(key, payload.to_vec());
                    }
                }
            }
            Ok(out)
        })
        .collect();
    let mut all = Answers::default();
    for part in parts {
        let part = part?;
        all.whole.extend(part.whole);
        all.first.extend(part.first);
        all.keys.extend(part.keys);
    }
    Ok(all)
}
