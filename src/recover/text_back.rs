//! Text of lost rows, read back out of the full-text indexes that still have it.
//!
//! Tests:    rows that an index lists against the rows of its content that decode, where the content is damaged.
//! Collects: for each lost row and column the best text that any index of the table gives.
//! Leaves:   indexes without text elsewhere (they have lost nothing), unless a trigger fills them from a table, and those whose
//!           content cannot be read here.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::ctx::Ctx;
use crate::error::Result;
use crate::format::Value;
use crate::format::record::encode_record;
use crate::fts5::Content;
use crate::fts5::segment::merged::Merged;
use crate::fts5::witness::{self, Certainty, Form, TextBack, read_back};
use crate::ids::ObjectId;
use crate::recover::provenance::{How, Trust};
use crate::recover::search_index::{DataBlocks, Reals, SearchIndex, Source, each, is_whole, table_of};
use crate::schema::ddl::token::{Token, tokens};
use crate::schema::{FtsPart, Name, ObjectKind, quoted};
use crate::sort::{Sorted, Sorter};
use crate::survey::Survey;
use crate::survey::plan::Constant;

/// What came back of the rows of one table.
#[derive(Debug)]
pub(crate) struct Texts {
    /// The table that lost the rows.
    pub(crate) table: ObjectId,
    /// The table of the salvage database that holds the texts.
    pub(crate) name: String,
    /// Rows that are lost and in an index.
    pub(crate) lost: BTreeSet<i64>,
    /// The indexes that list them.
    pub(crate) indexes: Vec<String>,
    /// Rows of which some text came back.
    pub(crate) rows: u64,
    /// Texts that are complete.
    pub(crate) complete: u64,
    /// Texts in all.
    pub(crate) texts: u64,
    /// Characters, or words where only words came back.
    pub(crate) known: u64,
    /// The same as they were, as far as the index says.
    pub(crate) total: u64,
    records: Sorted,
}

/// What the indexes of one table give.
struct Gathered {
    lost: BTreeSet<i64>,
    indexes: Vec<String>,
    found: Sorter,
}

/// Reads back what the indexes have of lost rows. `folder` is for what does not fit into memory.
///
/// # Errors
/// Temporary files, cancellation.
pub(crate) fn find(survey: &Survey<'_>, searches: &[SearchIndex], folder: &Path, ctx: &Ctx) -> Result<Vec<Texts>> {
    let mut gathered: BTreeMap<ObjectId, Gathered> = BTreeMap::new();
    for index in searches {
        ctx.check()?;
        let (source, names) = match linked(survey, index) {
            Some((source, names)) => (source, names),
            None => (index.source.clone(), columns(index)),
        };
        if let Some(table) = base(&source)
            && source.tables().iter().any(|id| !is_whole(survey, *id))
        {
            let all = gathered.entry(table).or_insert_with(|| Gathered {
                lost: BTreeSet::new(),
                indexes: Vec::new(),
                found: Sorter::new(ctx.sort_memory() / 4, folder),
            });
            one(survey, index, &source, &names, all, ctx)?;
        }
    }
    let mut out = Vec::new();
    for (table, all) in gathered {
        if !all.lost.is_empty() {
            out.push(choose(survey, table, all, folder, ctx)?);
        }
    }
    Ok(out)
}

/// The table whose rows an index indexes.
fn base(source: &Source) -> Option<ObjectId> {
    match source {
        Source::Rows { table, .. } => Some(*table),
        Source::View { plan, .. } => plan.driver(),
        _ => None,
    }
}

/// The names of the columns of an index.
fn columns(index: &SearchIndex) -> Vec<String> {
    index.config.iter().flat_map(|c| &c.columns).map(|c| c.name.clone()).collect()
}

/// The table from which a trigger fills a contentless index, and the names of its columns there. Only a trigger that takes the
/// rowid from the rowid says which row an entry is of: `INSERT INTO ft(rowid, a) VALUES(new.id, new.a)`.
fn linked(survey: &Survey<'_>, index: &SearchIndex) -> Option<(Source, Vec<String>)> {
    let config = index.config.as_ref().filter(|c| matches!(c.content, Content::None | Content::Unindexed))?;
    survey.catalog.objects().iter().find_map(|object| {
        let def = object.trigger_def().filter(|d| d.sources.iter().any(|s| s.same(index.name.as_bytes())))?;
        let table = survey.catalog.by_name(def.table.as_bytes()).filter(|o| o.kind == ObjectKind::Table)?;
        let declared = table.table_def().filter(|t| !t.without_rowid)?;
        let values = inserted(object.sql()?, &index.name)?;
        let of = |column: &str| values.iter().find(|(into, _)| into.same(column.as_bytes())).map(|(_, from)| from);
        let key = of("rowid")?;
        let position = |name: &Name| declared.columns.iter().position(|c| c.name.same(name.as_bytes()));
        let is_rowid = match position(key) {
            Some(at) => declared.rowid_alias == Some(at),
            None => [b"rowid".as_slice(), b"oid", b"_rowid_"].iter().any(|n| key.same(n)),
        };
        if !is_rowid {
            return None;
        }
        let names = columns(index).into_iter().map(|c| of(&c).map_or_else(|| c.clone(), Name::text)).collect();
        let columns = vec![None; config.columns.len()];
        Some((Source::Rows { table: table.id, columns, not_yet: None }, names))
    })
}

/// What a trigger puts into which column of a table, of values that are columns of the new row.
fn inserted(sql: &[u8], table: &str) -> Option<Vec<(Name, Name)>> {
    let all: Vec<Token<'_>> = tokens(sql).collect();
    let at = all.windows(3).position(
        |w| matches!(w, [into, name, open] if into.is("INTO") && name.is_name() && name.name().same(table.as_bytes()) && open.byte(b'(')),
    )?;
    let rest = all.get(at.checked_add(3)?..)?;
    let close = rest.iter().position(|t| t.byte(b')'))?;
    let into: Vec<Name> = rest.get(..close)?.split(|t| t.byte(b',')).map(|c| c.first().map(Token::name)).collect::<Option<_>>()?;
    let rest = rest.get(close.checked_add(1)?..)?;
    let [values, open, rest @ ..] = rest else { return None };
    if !values.is("VALUES") || !open.byte(b'(') {
        return None;
    }
    let mut depth = 0_usize;
    let mut from: Vec<Vec<Token<'_>>> = vec![Vec::new()];
    for token in rest {
        match token {
            t if t.byte(b'(') => depth = depth.saturating_add(1),
            t if t.byte(b')') && depth == 0 => break,
            t if t.byte(b')') => depth = depth.saturating_sub(1),
            t if t.byte(b',') && depth == 0 => {
                from.push(Vec::new());
                continue;
            }
            _ => {}
        }
        from.last_mut()?.push(*token);
    }
    let new = |tokens: &Vec<Token<'_>>| match tokens.as_slice() {
        [new, dot, column] if new.is("NEW") && dot.byte(b'.') && column.is_name() => Some(column.name()),
        _ => None,
    };
    Some(into.into_iter().zip(&from).filter_map(|(into, from)| Some((into, new(from)?))).collect())
}

/// What one index has of rows that its content does not have any more.
fn one(survey: &Survey<'_>, index: &SearchIndex, source: &Source, names: &[String], all: &mut Gathered, ctx: &Ctx) -> Result<()> {
    let Some(config) = &index.config else { return Ok(()) };
    let Some(data) = index.parts.get(&FtsPart::Data).and_then(|id| table_of(survey, *id)) else { return Ok(()) };
    let blocks = DataBlocks::read(survey, data, ctx)?;
    let Some(structure) = blocks.structure() else { return Ok(()) };
    // Rows that were set aside are known; only those that no page has any more are lost.
    let mut there: Vec<i64> = Vec::new();
    let read = source.each(survey, &BTreeMap::new(), None, Reals::Newer, ctx, &mut |rowid, _| {
        there.push(rowid);
        Ok(())
    })?;
    if read.unread > 0 {
        return Ok(());
    }
    there.sort_unstable();
    let is_lost = |id: i64| there.binary_search(&id).is_err();
    let mut lost: BTreeSet<i64> = BTreeSet::new();
    let mut sizes: BTreeMap<i64, Vec<u8>> = BTreeMap::new();
    match index.parts.get(&FtsPart::Docsize).filter(|_| config.columnsize).and_then(|id| table_of(survey, *id)) {
        Some(docsize) => each(survey, docsize, ctx, |row, values| {
            if let (Some(id), Some(Value::Blob(sz))) = (row.rowid, values.get(1))
                && is_lost(id)
            {
                lost.insert(id);
                sizes.insert(id, sz.to_vec());
            }
        })?,
        None => {
            let mut merged = Merged::new(&blocks, &structure, config.detail);
            while let Some(posting) = merged.step() {
                ctx.check()?;
                if is_lost(posting.rowid) {
                    lost.insert(posting.rowid);
                }
            }
        }
    }
    let source = witness::Source { config, tokenizer: index.tokenizer.as_ref(), blocks: &blocks, structure: &structure };
    let rowids: Vec<i64> = lost.iter().copied().collect();
    let mut failed = None;
    read_back(
        &source,
        &rowids,
        |id| sizes.get(&id).cloned(),
        ctx.sort_memory() / 2,
        |text| {
            let column = names.get(text.column).map_or("", String::as_str);
            if failed.is_none() {
                failed = push(survey, &mut all.found, index, column, &text).err();
            }
        },
    );
    if !lost.is_empty() {
        all.indexes.push(index.name.clone());
    }
    all.lost.append(&mut lost);
    failed.map_or(Ok(()), Err)
}

/// Adds a text, so that the best of a row and column comes first.
fn push(survey: &Survey<'_>, found: &mut Sorter, index: &SearchIndex, column: &str, text: &TextBack) -> Result<()> {
    let encoding = survey.encoding;
    let word = |s: &str| Constant::Text(encoding.from_utf8(s.as_bytes()).into_owned());
    let number = |n: u64| Constant::Int(i64::try_from(n).unwrap_or(i64::MAX));
    let form = match text.form {
        Form::Characters => "characters, folded",
        Form::Sequence => "words in order, folded",
        Form::Words => "words, sorted",
    };
    let values = [
        word("row-gone, its text is in the search index"),
        word(How::FtsText.word()),
        word(Trust::Linked.word()),
        word(&index.name),
        Constant::Int(text.rowid),
        word(column),
        Constant::Text(encoding.from_utf8(&text.text).into_owned()),
        word(form),
        number(u64::from(text.is_complete())),
        number(text.known),
        text.total.map_or(Constant::Null, number),
        word(&certainty(text)),
    ];
    let mut record = Vec::new();
    encode_record(&mut record, values.iter().map(Constant::value));
    // Rowids in order, then columns, then the better text first.
    let signed = u64::from_ne_bytes(text.rowid.to_ne_bytes()) ^ (1 << 63);
    let (whole_characters, whole, form, known) = text.rank();
    let worse = match form {
        Form::Characters => 0_u8,
        Form::Sequence => 1,
        Form::Words => 2,
    };
    let mut key = signed.to_be_bytes().to_vec();
    key.extend_from_slice(column.to_lowercase().as_bytes());
    key.extend_from_slice(&[0, u8::from(!whole_characters), u8::from(!whole), worse]);
    key.extend_from_slice(&(u64::MAX ^ known).to_be_bytes());
    // What the report counts stands in front of the record.
    let mut payload = vec![u8::from(text.is_complete())];
    payload.extend_from_slice(&text.known.to_be_bytes());
    payload.extend_from_slice(&text.total.unwrap_or(text.known).to_be_bytes());
    payload.extend_from_slice(&record);
    found.push(&key, &payload)
}

/// How sure each part of a text is, in bytes of its UTF-8 form.
fn certainty(text: &TextBack) -> String {
    let mut out = String::new();
    for run in &text.runs {
        if !out.is_empty() {
            out.push_str(", ");
        }
        let word = match run.certainty {
            Certainty::Exact => "exact",
            Certainty::Folded => "folded",
            Certainty::Unknown => "unknown",
        };
        out.push_str(&format!("{} {word}", run.bytes));
    }
    out
}

/// Bytes of a sort key behind row and column: the rank.
const KEY_END: usize = 1 + 1 + 1 + 8;

/// Keeps the best text of each row and column.
fn choose(survey: &Survey<'_>, table: ObjectId, all: Gathered, folder: &Path, ctx: &Ctx) -> Result<Texts> {
    let object = survey.catalog.get(table);
    let of = object.map(|o| o.family.virtual_table().and_then(|v| survey.catalog.get(v)).unwrap_or(o).name.text()).unwrap_or_default();
    let mut kept = Sorter::new(ctx.sort_memory() / 4, folder);
    let (mut rows, mut complete, mut texts, mut known, mut total) = (0_u64, 0_u64, 0_u64, 0_u64, 0_u64);
    let Gathered { lost, indexes, found } = all;
    let mut sorted = found.finish()?;
    let mut last: Vec<u8> = Vec::new();
    while let Some((key, payload)) = sorted.next()? {
        let place = key.get(..key.len().saturating_sub(KEY_END)).unwrap_or(key);
        if place == last.as_slice() {
            continue;
        }
        let number = |at: usize| crate::bytes::u64_at(payload, at).unwrap_or(0);
        rows = rows.saturating_add(u64::from(place.get(..8) != last.get(..8)));
        complete = complete.saturating_add(u64::from(payload.first() == Some(&1)));
        texts = texts.saturating_add(1);
        known = known.saturating_add(number(1));
        total = total.saturating_add(number(9));
        kept.push(place, payload.get(17..).unwrap_or_default())?;
        last.clear();
        last.extend_from_slice(place);
    }
    let name = format!("rp_text_of_{of}");
    Ok(Texts { table, name, lost, indexes, rows, complete, texts, known, total, records: kept.finish()? })
}

impl Texts {
    /// The declaration of its salvage table.
    pub(crate) fn sql(&self) -> String {
        format!(
            "CREATE TABLE {}(rp_reason, rp_how, rp_trust, rp_source, rp_rowid, column_name, text, form, complete, known, total, certainty)",
            quoted(&self.name)
        )
    }

    /// Gives the records of its salvage table.
    ///
    /// # Errors
    /// Temporary files, and what `f` returns.
    pub(crate) fn records(&mut self, mut f: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        while let Some((_, record)) = self.records.next()? {
            f(record)?;
        }
        Ok(())
    }

    /// What the report says of it.
    pub(crate) fn note(&self) -> String {
        format!(
            "text of {} of {} lost rows came back from the search index: {} of {} characters or words, {} of {} texts whole; it is in table {} of the salvage database",
            self.rows,
            self.lost.len(),
            self.known,
            self.total,
            self.complete,
            self.texts,
            self.name
        )
    }
}
