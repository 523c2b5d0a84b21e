//! A full-text index into the copy, written anew: from the rows that stand in the copy, or, where the text is nowhere else,
//! from the postings that can be read.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Seek, Write};

use crate::ctx::Ctx;
use crate::error::{Error, Result};
use crate::format::Value;
use crate::format::record::encode_record;
use crate::fts5::config::VERSION;
use crate::fts5::rebuild::{Built, Options, Rebuilder, repack};
use crate::ids::{ObjectId, RootPage};
use crate::recover::search_index::{DataBlocks, Reals, SearchIndex, each, has_shape, suffix, table_of};
use crate::recover::witnesses::ranges;
use crate::report::model::Gone;
use crate::schema::families::fts5_sql;
use crate::schema::{Collation, FtsPart};
use crate::sort::key::KeyOrder;
use crate::survey::Survey;
use crate::survey::entry::EntrySum;
use crate::write::{DatabaseWriter, IndexTree, TableTree};

use super::table::hash_of;
use super::{Copied, Target, Written};
use crate::recover::select::objects::refused;

/// A shadow table that is written anew.
#[derive(Debug, Clone)]
pub(crate) struct Shadow {
    /// Which one of a full-text index; none of an R-tree.
    pub(crate) part: Option<FtsPart>,
    /// The table of the evidence that it stands for; none where that is missing.
    pub(crate) object: Option<ObjectId>,
    /// Its name.
    pub(crate) name: String,
    /// Its CREATE text, as FTS5 writes it.
    pub(crate) sql: String,
    /// Whether the CREATE text of the evidence stays.
    pub(crate) keeps_text: bool,
    /// Its root in the copy.
    pub(crate) root: RootPage,
    /// What was written.
    pub(crate) written: Written,
    /// What the report says of it.
    pub(crate) note: &'static str,
    /// Rows of which something is lost, and rows that may have been deleted.
    pub(crate) gone: (Vec<Gone>, Vec<Gone>),
}

/// The shadow tables of an index that are written anew, their roots still to be given.
pub(crate) fn shadows(survey: &Survey<'_>, index: &SearchIndex) -> Vec<Shadow> {
    let contentless_delete = index.config.as_ref().is_some_and(|c| c.contentless_delete);
    index
        .anew(survey)
        .into_iter()
        .map(|part| {
            let name = format!("{}{}", index.name, suffix(part));
            let sql = fts5_sql(&name, part, 0, contentless_delete);
            let object = index.parts.get(&part).copied();
            let keeps_text = object.is_some_and(|id| has_shape(survey, id, part) && !survey.catalog.get(id).is_some_and(refused));
            let note = if index.source.is_readable() {
                "written anew: the search index did not hold what its content says"
            } else {
                "written anew from what of the search index can be read: its text is nowhere else"
            };
            let gone = if part == FtsPart::Data { gone(index) } else { (Vec::new(), Vec::new()) };
            let root = RootPage(crate::ids::PageNo::ONE);
            Shadow { part: Some(part), object, name, sql, keeps_text, root, written: Written::default(), note, gone }
        })
        .collect()
}

/// What is lost of an index without content: rows that lack entries, and rows that only its damaged parts name.
fn gone(index: &SearchIndex) -> (Vec<Gone>, Vec<Gone>) {
    let alone = &index.alone;
    let entry = |rows: &[i64], witness: &str| {
        let count = Some(crate::ids::wide(rows.len()));
        let some = Gone { rowids: ranges(rows), count, witness: witness.to_owned(), page: None };
        if rows.is_empty() { Vec::new() } else { vec![some] }
    };
    let mut lost = entry(&alone.incomplete, "its token counts: entries of these rows stood on segment leaves that are lost");
    if alone.leaves > 0 {
        let witness = format!("{} segment leaves that are lost; which rows had entries on them, nothing says", alone.leaves);
        lost.push(Gone { rowids: Vec::new(), count: None, witness, page: None });
    }
    let unlisted = "damaged parts of the search index, which its list of rows does not confirm";
    (lost, entry(&alone.unlisted, unlisted))
}

/// Writes the shadow tables of an index, and notes in each what was written.
///
/// # Errors
/// I/O, limits, cancellation.
pub(crate) fn write<W: Write + Seek>(
    survey: &Survey<'_>,
    index: &SearchIndex,
    shadows: &mut [Shadow],
    copied: &Copied,
    target: &Target<'_>,
    db: &mut DatabaseWriter<W>,
    ctx: &Ctx,
) -> Result<()> {
    let Built { data, idx, docsize, .. } = build(survey, index, copied, target, ctx)?;
    let (mut data, mut idx, mut docsize) = (Some(data), Some(idx), docsize);
    for shadow in shadows {
        ctx.check()?;
        shadow.written = match shadow.part {
            Some(FtsPart::Data) => {
                let mut tree = Numbered::new(db, shadow.root);
                if let Some(rows) = data.take() {
                    rows.for_each(|id, block| tree.push(db, id, &[Value::Null, Value::Blob(block)]))?;
                }
                tree.finish(db)?
            }
            Some(FtsPart::Docsize) => {
                let mut tree = Numbered::new(db, shadow.root);
                if let Some(rows) = docsize.take() {
                    rows.for_each(|id, sizes, origin| match origin {
                        Some(origin) => tree.push(db, id, &[Value::Null, Value::Blob(sizes), Value::Int(origin)]),
                        None => tree.push(db, id, &[Value::Null, Value::Blob(sizes)]),
                    })?;
                }
                tree.finish(db)?
            }
            Some(FtsPart::Idx) => {
                let mut tree = Keyed::new(db, shadow.root);
                if let Some(rows) = idx.take() {
                    rows.for_each(|segid, term, page| tree.push(db, &[Value::Int(segid), Value::Blob(term), Value::Int(page)]))?;
                }
                tree.finish(db)?
            }
            _ => config(survey, index, shadow.root, db, ctx)?,
        };
    }
    Ok(())
}

/// The index, from its content or from its own postings.
fn build(survey: &Survey<'_>, index: &SearchIndex, copied: &Copied, target: &Target<'_>, ctx: &Ctx) -> Result<Built> {
    let config = index.config.as_ref().ok_or_else(|| Error::inconsistent("a search index without a declaration is written anew"))?;
    let mut options = Options::new(&ctx.limits, target.folder);
    options.page_size = index.settings.pgsz;
    if index.source.is_readable() {
        let tokenizer = index.tokenizer.clone().ok_or_else(|| Error::inconsistent("an unknown tokenizer is to be run"))?;
        // The rules that the index had stay: the application's own SQLite is the one to compare it with.
        let older = if index.rules.older_tokenizer { tokenizer.older() } else { None };
        let mut rebuilder = Rebuilder::new(config, older.unwrap_or(tokenizer), options);
        let reals = if index.rules.older_reals { Reals::Older } else { Reals::Newer };
        index
            .source
            .each(survey, &copied.selections, Some(target.folder), reals, ctx, &mut |rowid, columns| rebuilder.push(rowid, columns))?;
        return rebuilder.finish();
    }
    let blocks = index.parts.get(&FtsPart::Data).and_then(|id| table_of(survey, *id));
    let blocks =
        DataBlocks::read(survey, blocks.ok_or_else(|| Error::inconsistent("postings that cannot be read are written anew"))?, ctx)?;
    let alone = &index.alone;
    let structure = alone.structure.clone().or_else(|| blocks.structure());
    let structure = structure.ok_or_else(|| Error::inconsistent("segments that nothing lists are written anew"))?;
    let mut sizes: BTreeMap<i64, Vec<u8>> = BTreeMap::new();
    if let Some(docsize) = index.parts.get(&FtsPart::Docsize).filter(|_| config.columnsize).and_then(|id| table_of(survey, *id)) {
        each(survey, docsize, ctx, |row, values| {
            if let (Some(id), Some(Value::Blob(size))) = (row.rowid, values.get(1)) {
                sizes.entry(id).or_insert_with(|| size.to_vec());
            }
        })?;
    }
    let listed: BTreeSet<i64> = sizes.keys().copied().collect();
    let keep = |rowid: i64| !config.columnsize || listed.contains(&rowid) || alone.recount.contains(&rowid);
    let (built, _) = repack(config, &blocks, &structure, sizes, keep, &alone.recount, &options)?;
    Ok(built)
}

/// `%_config`: the rows that can be read, and the version.
fn config<W: Write + Seek>(
    survey: &Survey<'_>,
    index: &SearchIndex,
    root: RootPage,
    db: &mut DatabaseWriter<W>,
    ctx: &Ctx,
) -> Result<Written> {
    let order = KeyOrder::new([(&Collation::Binary, false)], survey.encoding).ok_or_else(|| Error::inconsistent("no binary order"))?;
    let mut list: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    let mut add = |key: &[u8], value: Value<'_>| {
        let key = Value::Text(key);
        let (mut at, mut record) = (Vec::new(), Vec::new());
        order.encode(&mut at, [key]);
        encode_record(&mut record, [key, value].into_iter());
        list.insert(at, record);
    };
    if let Some(table) = index.parts.get(&FtsPart::Config).and_then(|id| table_of(survey, *id)) {
        each(survey, table, ctx, |_, values| {
            if let (Some(Value::Text(key)), Some(value)) = (values.first(), values.get(1))
                && NAMES.iter().any(|n| survey.encoding.to_utf8(key).eq_ignore_ascii_case(n))
            {
                add(key, *value);
            }
        })?;
    }
    if !index.settings.version_is_known() {
        add(&survey.encoding.from_utf8(b"version"), Value::Int(VERSION));
    }
    let mut tree = Keyed::new(db, root);
    for record in list.values() {
        tree.push_record(db, record)?;
    }
    tree.finish(db)
}

/// The settings that FTS5 knows.
const NAMES: [&[u8]; 11] = [
    b"version",
    b"pgsz",
    b"hashsize",
    b"automerge",
    b"usermerge",
    b"crisismerge",
    b"deletemerge",
    b"rank",
    b"secure-delete",
    b"insttoken",
    b"tokenize",
];

/// A rowid table in the making, with its sum.
pub(super) struct Numbered {
    tree: TableTree,
    sum: EntrySum,
    record: Vec<u8>,
}

impl Numbered {
    pub(super) fn new<W: Write + Seek>(db: &DatabaseWriter<W>, root: RootPage) -> Numbered {
        Numbered { tree: TableTree::new(db, root), sum: EntrySum::default(), record: Vec::new() }
    }

    pub(super) fn push<W: Write + Seek>(&mut self, db: &mut DatabaseWriter<W>, rowid: i64, values: &[Value<'_>]) -> Result<()> {
        self.record.clear();
        encode_record(&mut self.record, values.iter().copied());
        self.sum.add(hash_of(Some(rowid), &self.record));
        self.tree.push(db, rowid, &[&self.record])
    }

    pub(super) fn finish<W: Write + Seek>(self, db: &mut DatabaseWriter<W>) -> Result<Written> {
        self.tree.finish(db)?;
        Ok(Written { rows: self.sum.count, sum: self.sum })
    }
}

/// A WITHOUT ROWID table in the making, with its sum.
struct Keyed {
    tree: IndexTree,
    sum: EntrySum,
    record: Vec<u8>,
}

impl Keyed {
    fn new<W: Write + Seek>(db: &DatabaseWriter<W>, root: RootPage) -> Keyed {
        Keyed { tree: IndexTree::new(db, root), sum: EntrySum::default(), record: Vec::new() }
    }

    fn push<W: Write + Seek>(&mut self, db: &mut DatabaseWriter<W>, values: &[Value<'_>]) -> Result<()> {
        let mut record = std::mem::take(&mut self.record);
        record.clear();
        encode_record(&mut record, values.iter().copied());
        let done = self.push_record(db, &record);
        self.record = record;
        done
    }

    fn push_record<W: Write + Seek>(&mut self, db: &mut DatabaseWriter<W>, record: &[u8]) -> Result<()> {
        self.sum.add(hash_of(None, record));
        self.tree.push(db, &[record])
    }

    fn finish<W: Write + Seek>(self, db: &mut DatabaseWriter<W>) -> Result<Written> {
        self.tree.finish(db)?;
        Ok(Written { rows: self.sum.count, sum: self.sum })
    }
}
