//! The clean copy: tables and indexes from the survey into a new file.
//!
//! Passes: which objects stand in the copy; which rows each table keeps (a UNIQUE index that is not whole is settled
//! before the table is written); tables; indexes; the schema; the read-back.

pub(crate) mod fts;
pub(crate) mod index;
pub(crate) mod read_back;
pub(crate) mod rtree;
pub(crate) mod schema;
pub(crate) mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;

use crate::ctx::Ctx;
use crate::error::{Error, Result};
use crate::finding::Findings;
use crate::ids::{ObjectId, RootPage, wide};
use crate::recover::rtree::{PARTS, Rtree, damaged};
use crate::recover::search_index::{Fate, SearchIndex};
use crate::recover::{Selection, select};
use crate::schema::{Family, FtsModule, FtsPart};
use crate::survey::entry::EntrySum;
use crate::survey::{Content, Survey};
use crate::write::{DatabaseWriter, Settings};

use crate::recover::select::objects;
pub(crate) use crate::recover::select::{Disposition, Refused};
pub(crate) use fts::Shadow;

/// A table as it was written.
#[derive(Debug, Clone, Default)]
pub(crate) struct Written {
    /// Rows in the copy.
    pub(crate) rows: u64,
    /// The sum over rowids and records.
    pub(crate) sum: EntrySum,
}

/// What was written, and which rows were not.
#[derive(Debug, Default)]
pub(crate) struct Copied {
    /// Each table that stands in the copy.
    pub(crate) tables: BTreeMap<ObjectId, Written>,
    /// Which rows each table keeps, for all tables with rows.
    pub(crate) selections: BTreeMap<ObjectId, Selection>,
    /// What becomes of each object.
    pub(crate) dispositions: BTreeMap<ObjectId, Disposition>,
    /// Shadow tables of full-text indexes that were written anew.
    pub(crate) shadows: Vec<Shadow>,
    /// What was found while rows were settled that may not stand together.
    pub(crate) log: Findings,
}

/// Where a copy is written and what it may use.
pub(crate) struct Target<'t> {
    /// The open file.
    pub(crate) file: &'t File,
    /// Its path, for messages.
    pub(crate) path: &'t Path,
    /// Folder for sorts that spill.
    pub(crate) folder: &'t Path,
}

/// Writes the copy, without the objects in `refused`. The file is complete but not synced when this returns.
///
/// # Errors
/// I/O, limits, cancellation.
pub(crate) fn write(
    survey: &Survey<'_>,
    searches: &mut [SearchIndex],
    target: &Target<'_>,
    settings: Settings,
    keep_violations: bool,
    refused: &Refused,
    ctx: &Ctx,
) -> Result<Copied> {
    target.file.set_len(0).map_err(|e| Error::io(target.path, "write", e))?;
    let mut copied = Copied { log: Findings::new(survey.findings.cap()), ..Copied::default() };
    for t in &survey.trees {
        if let Some(Content::Table { scan, .. }) = &t.content {
            copied.selections.insert(t.object, Selection::of(scan, keep_violations));
        }
    }
    select::settle(survey, &mut copied.selections, &mut copied.log, target.folder, ctx)?;
    for index in &mut *searches {
        index.settle(&copied.selections);
    }
    let rtrees = damaged(survey, ctx)?;
    copied.dispositions = objects::decide(survey, searches, &rtrees, refused);
    let stands = |i: &SearchIndex| i.fate() == Fate::Rebuilt && copied.dispositions.get(&i.of).is_some_and(Disposition::is_kept);
    let mut anew: Vec<(Anew<'_>, Vec<Shadow>)> =
        searches.iter().filter(|i| stands(i)).map(|i| (Anew::Search(i), fts::shadows(survey, i))).collect();
    let stands = |r: &&Rtree| copied.dispositions.get(&r.of).is_some_and(Disposition::is_kept);
    anew.extend(rtrees.iter().filter(stands).map(|r| (Anew::Rtree(r), rtree::shadows(r))));
    let taken: BTreeSet<ObjectId> = anew.iter().flat_map(|(_, s)| s).filter_map(|s| s.object).collect();
    let mut db = DatabaseWriter::new(target.file, target.path, settings)?;
    // In the order in which their rows stand in the copy, so that a copy of the copy has the same pages in the same places.
    let with_tree: Vec<ObjectId> = schema::in_order(&survey.catalog)
        .into_iter()
        .filter(|o| o.kind.has_tree() && o.id != ObjectId::SCHEMA && copied.dispositions.get(&o.id).is_some_and(Disposition::is_kept))
        .map(|o| o.id)
        .collect();
    let missing = anew.iter().flat_map(|(_, s)| s).filter(|s| s.object.is_none()).count();
    let mut free = db.reserve_roots(with_tree.len().saturating_add(missing))?.into_iter();
    let roots: BTreeMap<ObjectId, RootPage> = with_tree.iter().copied().zip(free.by_ref()).collect();
    for shadow in anew.iter_mut().flat_map(|(_, s)| s) {
        let root = match shadow.object {
            Some(id) => roots.get(&id).copied(),
            None => free.next(),
        };
        shadow.root = root.ok_or_else(|| Error::inconsistent("a shadow table has no root"))?;
    }
    let rows = survey.trees.iter().filter(|t| roots.contains_key(&t.object)).map(|t| match &t.content {
        Some(Content::Table { scan, .. }) => scan.cells,
        _ => 0,
    });
    ctx.progress.phase("write rows", rows.fold(0, u64::saturating_add));
    // Ordinary tables first, then each search index in the order in which it would be built, so that a copy of the copy has
    // the same pages in the same places whether an index was taken over or built.
    let mut copied_anew: Vec<(ObjectId, RootPage)> = Vec::new();
    let mut families: BTreeMap<(ObjectId, usize), (ObjectId, RootPage)> = BTreeMap::new();
    for (id, root) in with_tree.iter().filter(|id| !taken.contains(id)).filter_map(|id| Some((id, roots.get(id)?))) {
        match search_part(survey, *id) {
            Some((of, place)) => {
                families.insert((of, place), (*id, *root));
            }
            None => copied_anew.push((*id, *root)),
        }
    }
    let mut groups: BTreeMap<ObjectId, Vec<(ObjectId, RootPage)>> = BTreeMap::new();
    for ((of, _), tree) in families {
        groups.entry(of).or_default().push(tree);
    }
    let mut built: BTreeMap<ObjectId, (Anew<'_>, Vec<Shadow>)> = anew.into_iter().map(|(i, s)| (i.of(), (i, s))).collect();
    let order: BTreeSet<ObjectId> = groups.keys().chain(built.keys()).copied().collect();
    for (id, root) in &copied_anew {
        write_table(survey, *id, *root, &mut copied, target, &mut db, ctx)?;
    }
    for of in order {
        for (id, root) in groups.remove(&of).unwrap_or_default() {
            write_table(survey, id, root, &mut copied, target, &mut db, ctx)?;
        }
        let Some((index, mut shadows)) = built.remove(&of) else { continue };
        match index {
            Anew::Search(index) => fts::write(survey, index, &mut shadows, &copied, target, &mut db, ctx)?,
            Anew::Rtree(tree) => rtree::write(survey, tree, &mut shadows, &mut db, ctx)?,
        }
        for shadow in &shadows {
            if let Some(id) = shadow.object {
                copied.selections.remove(&id);
                copied.tables.insert(id, shadow.written.clone());
            }
        }
        copied.shadows.extend(shadows);
    }
    let indexes = survey.trees.iter().filter(|t| matches!(t.content, Some(Content::Index { .. })));
    ctx.progress.phase("write indexes", indexes.map(|t| wide(t.tree.slots.len())).fold(0, u64::saturating_add));
    for (id, root) in with_tree.iter().filter_map(|id| Some((id, roots.get(id)?))) {
        index::write(survey, *id, *root, &copied, target, &mut db, ctx)?;
    }
    schema::write(survey, &roots, &copied, &mut db)?;
    let (_, _) = db.finish()?;
    ctx.progress.finish();
    Ok(copied)
}

/// What is written anew as a whole.
#[derive(Clone, Copy)]
enum Anew<'a> {
    Search(&'a SearchIndex),
    Rtree(&'a Rtree),
}

impl Anew<'_> {
    fn of(self) -> ObjectId {
        match self {
            Anew::Search(index) => index.of,
            Anew::Rtree(tree) => tree.of,
        }
    }
}

fn write_table<W: std::io::Write + std::io::Seek>(
    survey: &Survey<'_>,
    id: ObjectId,
    root: RootPage,
    copied: &mut Copied,
    target: &Target<'_>,
    db: &mut DatabaseWriter<W>,
    ctx: &Ctx,
) -> Result<()> {
    if let Some(written) = table::write(survey, id, root, copied, target, db, ctx)? {
        copied.tables.insert(id, written);
    }
    Ok(())
}

/// The FTS5 table or R-tree that a shadow table of an index belongs to, and its place in the order of building. `%_content` is data
/// and stands with the ordinary tables.
fn search_part(survey: &Survey<'_>, id: ObjectId) -> Option<(ObjectId, usize)> {
    match survey.catalog.get(id)?.family {
        Family::FtsShadow { of, module: FtsModule::Fts5, part } => {
            let order = [FtsPart::Data, FtsPart::Idx, FtsPart::Docsize, FtsPart::Config];
            Some((of, order.iter().position(|p| *p == part)?))
        }
        Family::VirtualShadow { of } => {
            let name = survey.catalog.get(id)?.name.folded();
            let is_rtree = survey.catalog.get(of)?.virtual_def().is_some_and(|d| crate::rtree::Shape::of(d).is_some());
            Some((of, PARTS.iter().position(|p| is_rtree && name.ends_with(p.as_bytes()))?))
        }
        _ => None,
    }
}
