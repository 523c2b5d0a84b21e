//! The blocks of an index, read out of the evidence one by one.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::ctx::Ctx;
use crate::error::Result;
use crate::format::{Fields, Value};
use crate::fts5::segment::STRUCTURE_ID;
use crate::fts5::segment::cursor::Blocks;
use crate::fts5::segment::structure::Structure;
use crate::ids::PageNo;
use crate::recover::Selection;
use crate::recover::live::rows;
use crate::survey::plan::TablePlan;
use crate::survey::{Survey, TableScan};
use crate::tree::Pages;
use crate::tree::payload::PayloadReader;

/// The blocks of `%_data`, read from the evidence when they are asked for. Memory: about 30 bytes a block.
#[derive(Debug)]
pub(crate) struct DataBlocks<'s, 'a> {
    pages: &'s Pages<'a>,
    places: BTreeMap<i64, (PageNo, u16)>,
}

impl<'s, 'a> DataBlocks<'s, 'a> {
    /// The blocks of a `%_data` table.
    pub(crate) fn read(
        survey: &'s Survey<'a>,
        (plan, scan, t): (&TablePlan, &TableScan, &crate::survey::SurveyedTree),
        ctx: &Ctx,
    ) -> Result<DataBlocks<'s, 'a>> {
        let mut places = BTreeMap::new();
        let selection = Selection::of(scan, false);
        rows(&survey.pages, &t.tree.slots, plan, &selection, ctx, |row| {
            if let Some(id) = row.rowid {
                places.entry(id).or_insert((row.page, row.cell));
            }
            Ok(())
        })?;
        Ok(DataBlocks { pages: &survey.pages, places })
    }

    /// All ids, ascending.
    pub(crate) fn ids(&self) -> impl Iterator<Item = i64> + '_ {
        self.places.keys().copied()
    }

    /// The structure record.
    pub(crate) fn structure(&self) -> Option<Structure> {
        Structure::read(&self.block(STRUCTURE_ID)?).ok()
    }
}

impl Blocks for DataBlocks<'_, '_> {
    fn block(&self, id: i64) -> Option<Cow<'_, [u8]>> {
        let (page, no) = *self.places.get(&id)?;
        let cell = self.pages.cell(page, no).ok()?;
        let mut reader = PayloadReader::new();
        let payload = reader.read(self.pages, &cell).ok()?;
        let mut fields = Fields::new();
        fields.read(payload, cell.payload_len).ok()?;
        match fields.value(payload, 1)? {
            Value::Blob(block) => Some(Cow::Owned(block.to_vec())),
            _ => None,
        }
    }

    fn next_id(&self, from: i64) -> Option<i64> {
        self.places.range(from..).next().map(|(id, _)| *id)
    }
}
