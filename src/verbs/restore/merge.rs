//! The rows of a table and the chosen ones beside them, in the order of their keys.

use std::path::Path;

use crate::bytes::u64_at;
use crate::ctx::Ctx;
use crate::error::Result;
use crate::format::Fields;
use crate::ids::PageNo;
use crate::recover::{LiveRow, Selection, rows};
use crate::sort::{Sorted, Sorter};
use crate::survey::Survey;

use super::Wanted;
use super::chosen::Target;
use super::settle::Decisions;

/// The chosen rows of a table, sorted by key, those out that were refused or are there already.
pub(super) struct Extras {
    sorted: Sorted,
    head: Option<Extra>,
}

/// A chosen row with its key.
#[derive(Debug, Clone, Default)]
pub(super) struct Extra {
    pub(super) key: Vec<u8>,
    pub(super) no: u64,
    pub(super) partial: bool,
    pub(super) rowid: Option<i64>,
    pub(super) record: Vec<u8>,
}

impl Extra {
    pub(super) fn live(&self) -> LiveRow<'_> {
        LiveRow { page: PageNo::ONE, cell: 0, rowid: self.rowid, record: &self.record }
    }
}

impl Extras {
    /// Sorts the chosen rows of a table.
    pub(super) fn new(
        aside: &Survey<'_>,
        target: &Target<'_>,
        wanted: &Wanted,
        decisions: &Decisions,
        folder: &Path,
        ctx: &Ctx,
    ) -> Result<Extras> {
        let mut sorter = Sorter::new(ctx.sort_memory(), folder);
        let (mut key, mut payload, mut fields) = (Vec::new(), Vec::new(), Fields::new());
        target.each(aside, wanted, ctx, |c, refusal| {
            if refusal.is_some() || decisions.is_out(c.no) {
                return Ok(());
            }
            let rowid = decisions.renumbered.get(&c.no).copied().or(c.rowid);
            let row = LiveRow { page: PageNo::ONE, cell: 0, rowid, record: &c.record };
            key.clear();
            if !target.key(&row, &mut fields, &mut key) {
                return Ok(());
            }
            payload.clear();
            payload.extend_from_slice(&c.no.to_be_bytes());
            payload.extend_from_slice(&rowid.unwrap_or(0).to_be_bytes());
            payload.push(u8::from(c.partial));
            payload.extend_from_slice(&c.record);
            sorter.push(&key, &payload)
        })?;
        let mut extras = Extras { sorted: sorter.finish()?, head: None };
        extras.advance(target.order.is_none())?;
        Ok(extras)
    }

    fn advance(&mut self, by_rowid: bool) -> Result<()> {
        self.head = self.sorted.next()?.and_then(|(key, payload)| {
            let rowid = i64::from_be_bytes(u64_at(payload, 8)?.to_be_bytes());
            Some(Extra {
                key: key.to_vec(),
                no: u64_at(payload, 0)?,
                partial: *payload.get(16)? != 0,
                rowid: by_rowid.then_some(rowid),
                record: payload.get(17..)?.to_vec(),
            })
        });
        Ok(())
    }

    /// The next row whose key is at most `key` (any, without one).
    pub(super) fn up_to(&mut self, key: Option<&[u8]>, by_rowid: bool) -> Result<Option<Extra>> {
        if self.head.as_ref().is_none_or(|h| key.is_some_and(|key| h.key.as_slice() > key)) {
            return Ok(None);
        }
        let head = self.head.take();
        self.advance(by_rowid)?;
        Ok(head)
    }
}

/// A row of the merged table.
pub(super) enum Merged<'r> {
    /// It was there.
    Base,
    /// It is a chosen one.
    Chosen(&'r Extra),
}

/// Hands on the rows of a table with the chosen ones in their places; a chosen row stands for the one with its key.
pub(super) fn merged(
    base: &Survey<'_>,
    target: &Target<'_>,
    extras: &mut Extras,
    ctx: &Ctx,
    mut f: impl FnMut(LiveRow<'_>, Merged<'_>) -> Result<()>,
) -> Result<()> {
    let (mut key, mut fields) = (Vec::new(), Fields::new());
    let by_rowid = target.order.is_none();
    rows(&base.pages, &target.tree.tree.slots, target.plan, &Selection::default(), ctx, |row| {
        key.clear();
        target.key(&row, &mut fields, &mut key);
        let mut covered = false;
        while let Some(extra) = extras.up_to(Some(&key), by_rowid)? {
            covered = extra.key == key;
            f(extra.live(), Merged::Chosen(&extra))?;
        }
        if covered { Ok(()) } else { f(row, Merged::Base) }
    })?;
    while let Some(extra) = extras.up_to(None, by_rowid)? {
        f(extra.live(), Merged::Chosen(&extra))?;
    }
    Ok(())
}
