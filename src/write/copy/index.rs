//! An index into the copy: taken over entry by entry where it equals its table, built from the rows where it does not.

use std::io::{Seek, Write};

use crate::ctx::Ctx;
use crate::error::{Error, Result};
use crate::finding::{Findings, Site};
use crate::ids::{ObjectId, RootPage, wide};
use crate::recover::entries::{EntryMaker, order};
use crate::recover::live::rows;
use crate::schema::ObjectKind;
use crate::sort::Sorter;
use crate::survey::{Content, IndexFit, Survey};
use crate::tree::cells::visit;
use crate::tree::payload::PayloadReader;
use crate::write::{DatabaseWriter, IndexTree};

use super::{Copied, Target};

/// Writes an index; nothing for other objects.
pub(crate) fn write<W: Write + Seek>(
    survey: &Survey<'_>,
    id: ObjectId,
    root: RootPage,
    copied: &Copied,
    target: &Target<'_>,
    db: &mut DatabaseWriter<W>,
    ctx: &Ctx,
) -> Result<()> {
    let Some(object) = survey.catalog.get(id).filter(|o| o.kind == ObjectKind::Index) else { return Ok(()) };
    let table = object.table.ok_or_else(|| Error::inconsistent("an index without a table stands in the copy"))?;
    let mut tree = IndexTree::new(db, root);
    let selection = copied.selections.get(&table);
    let surveyed = survey.tree_of(id);
    if let Some((t, Content::Index { scan, fit: IndexFit::Equal, .. })) = surveyed.and_then(|t| Some((t, t.content.as_ref()?)))
        && scan.ordered
        && scan.duplicates == 0
        && selection.is_some_and(|s| s.is_all())
    {
        let mut reader = PayloadReader::new();
        visit(&survey.pages, &t.tree.slots, Site::default(), false, &mut Findings::new(0), ctx, |_, at| {
            match reader.read(&survey.pages, &at.cell) {
                Ok(payload) => tree.push(db, &[payload]),
                Err(_) => Err(Error::inconsistent("an entry of a whole index does not read")),
            }
        })?;
        tree.finish(db)?;
        ctx.progress.advance(wide(t.tree.slots.len()));
        return Ok(());
    }
    let Some((t, Content::Table { plan, .. })) = survey.tree_of(table).and_then(|t| Some((t, t.content.as_ref()?))) else {
        // A table without a tree has no rows.
        tree.finish(db)?;
        return Ok(());
    };
    let Some(index) = plan.indexes.iter().find(|i| i.object == id) else {
        return Err(Error::inconsistent("an index stands in the copy that its table does not know"));
    };
    let none = crate::recover::Selection::default();
    let mut sorter = Sorter::new(ctx.sort_memory(), target.folder);
    let order = order(index, plan)?;
    let mut maker = EntryMaker::new(plan, index);
    let mut key = Vec::new();
    rows(&survey.pages, &t.tree.slots, plan, selection.unwrap_or(&none), ctx, |row| {
        if maker.make(&row) {
            key.clear();
            order.encode(&mut key, maker.values());
            sorter.push(&key, maker.record())?;
        }
        Ok(())
    })?;
    let mut sorted = sorter.finish()?;
    while let Some((_, record)) = sorted.next()? {
        tree.push(db, &[record])?;
    }
    tree.finish(db)?;
    ctx.progress.advance(surveyed.map_or(0, |t| wide(t.tree.slots.len())));
    Ok(())
}
