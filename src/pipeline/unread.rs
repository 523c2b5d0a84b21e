//! Committed rows in a log that SQLite does not read.
//!
//! A log whose header checksum is wrong is ignored as a whole, and so the default view ignores it. Where its frames are sound by
//! themselves they end in a commit all the same: the application was told that this was written.
//!
//! Tests:    the rows on pages of such a log against the rows of the view.
//! Collects: rows that the view does not have, new ones and new versions; one table each in the salvage database.
//! Leaves:   rows that the log deleted: they stand in the view.

use std::collections::BTreeMap;

use crate::ctx::Ctx;
use crate::error::Result;
use crate::finding::{Findings, Origin, Site};
use crate::format::record::encode_record;
use crate::format::{Fields, Value};
use crate::ids::{ObjectId, PageNo, wide};
use crate::recover::live::rows;
use crate::recover::provenance::{How, Trust};
use crate::recover::{LiveRow, Selection};
use crate::report::collect;
use crate::schema::quoted;
use crate::survey::entry::EntryHash;
use crate::survey::plan::{Constant, Row, TablePlan};
use crate::survey::{Content, Survey};
use crate::tree::cells::visit;
use crate::tree::payload::PayloadReader;

/// The rows of one table.
#[derive(Debug)]
pub(super) struct Unread {
    /// The table they become in the salvage database.
    pub(super) name: String,
    /// The table they are of.
    pub(super) table: String,
    object: ObjectId,
    places: Vec<(PageNo, u16)>,
}

/// The rows of the state `log` that `view` does not have, by table; both are states of one database.
///
/// # Errors
/// Cancellation.
pub(super) fn find(log: &Survey<'_>, view: &Survey<'_>, ctx: &Ctx) -> Result<Vec<Unread>> {
    let mut out = Vec::new();
    for t in log.trees.iter().filter(|t| t.object != ObjectId::SCHEMA) {
        let Some(Content::Table { plan, scan }) = &t.content else { continue };
        let Some(object) = log.catalog.get(t.object).filter(|o| o.family.virtual_table().is_none() && o.excluded.is_none()) else {
            continue;
        };
        let mut found: BTreeMap<EntryHash, Vec<(PageNo, u16)>> = BTreeMap::new();
        let mut reader = PayloadReader::new();
        visit(&log.pages, &t.tree.slots, Site::default(), false, &mut Findings::new(0), ctx, |_, at| {
            if matches!(log.pages.origin(at.page), Origin::Wal { .. })
                && !scan.is_excluded(at.page, at.no)
                && let Ok(payload) = reader.read(&log.pages, &at.cell)
            {
                found.entry(hash_of(at.cell.rowid, payload)).or_default().push((at.page, at.no));
            }
            Ok(())
        })?;
        let there = view.catalog.by_name(object.name.as_bytes()).and_then(|o| view.tree_of(o.id));
        if let Some((known, Content::Table { plan, .. })) = there.and_then(|t| Some((t, t.content.as_ref()?))) {
            rows(&view.pages, &known.tree.slots, plan, &Selection::default(), ctx, |row: LiveRow<'_>| {
                let hash = hash_of(row.rowid, row.record);
                if let Some(places) = found.get_mut(&hash) {
                    places.pop();
                    if places.is_empty() {
                        found.remove(&hash);
                    }
                }
                Ok(())
            })?;
        }
        let mut places: Vec<(PageNo, u16)> = found.into_values().flatten().collect();
        places.sort_unstable();
        if !places.is_empty() {
            out.push(Unread { name: format!("unread_{}", plan.name), table: plan.name.clone(), object: object.id, places });
        }
    }
    Ok(out)
}

fn hash_of(rowid: Option<i64>, record: &[u8]) -> EntryHash {
    EntryHash::default().add(rowid.map_or(Value::Null, Value::Int)).add(Value::Blob(record))
}

impl Unread {
    /// How many rows.
    pub(super) fn count(&self) -> u64 {
        wide(self.places.len())
    }

    fn plan<'s>(&self, log: &'s Survey<'_>) -> Option<&'s TablePlan> {
        match log.tree_of(self.object)?.content.as_ref()? {
            Content::Table { plan, .. } => Some(plan),
            Content::Index { .. } => None,
        }
    }

    /// The declaration of its salvage table under a name.
    pub(super) fn sql(&self, log: &Survey<'_>, name: &str) -> String {
        let columns = self.plan(log).map(|plan| plan.columns.iter().filter(|c| c.position.is_some()).map(|c| c.name.clone()).collect());
        let columns: Vec<String> = columns.unwrap_or_default();
        let mut used: Vec<String> = OWN.iter().map(|s| (*s).to_owned()).collect();
        for mut name in columns {
            while name.is_empty() || used.iter().any(|u| u.eq_ignore_ascii_case(&name)) {
                name.push('_');
            }
            used.push(name);
        }
        let list: Vec<String> = used.iter().map(|name| quoted(name)).collect();
        format!("CREATE TABLE {}({})", quoted(name), list.join(", "))
    }

    /// The records of its salvage table.
    ///
    /// # Errors
    /// Cancellation, and what `f` returns.
    pub(super) fn records(&self, log: &Survey<'_>, ctx: &Ctx, mut f: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let Some(plan) = self.plan(log) else { return Ok(()) };
        let text = |s: &str| Constant::Text(log.encoding.from_utf8(s.as_bytes()).into_owned());
        let (mut reader, mut fields, mut record) = (PayloadReader::new(), Fields::new(), Vec::new());
        for &(page, no) in &self.places {
            ctx.check()?;
            let Ok(cell) = log.pages.cell(page, no) else { continue };
            let Ok(payload) = reader.read(&log.pages, &cell) else { continue };
            if fields.read(payload, cell.payload_len).is_err() {
                continue;
            }
            let row = Row { rowid: cell.rowid, payload, fields: &fields };
            let mut values = vec![
                text("committed in a log that SQLite does not read"),
                text(How::UnreadLog.word()),
                text(Trust::Linked.word()),
                text(&collect::origin(log.pages.origin(page))),
                Constant::Int(i64::from(page.get())),
                Constant::Int(i64::from(no)),
                cell.rowid.map_or(Constant::Null, Constant::Int),
            ];
            let stored = plan.columns.iter().enumerate().filter(|(_, c)| c.position.is_some());
            values.extend(stored.map(|(i, _)| plan.raw_value(&row, i).map_or(Constant::Null, Constant::from)));
            record.clear();
            encode_record(&mut record, values.iter().map(Constant::value));
            f(&record)?;
        }
        Ok(())
    }
}

/// The columns in front of the table's own.
const OWN: [&str; 7] = ["rp_reason", "rp_how", "rp_trust", "rp_source", "rp_page", "rp_cell", "rp_rowid"];
