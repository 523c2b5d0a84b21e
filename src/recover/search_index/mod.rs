//! Full-text indexes against what they index.
//!
//! Tests:    each FTS5 index against itself and against its content, in one pass over each.
//! Collects: whether an index can be copied as it is, can be written anew, or neither.
//! Leaves:   the writing to the copy.

mod alone;
mod blocks;
mod fts3;
mod source;

use std::collections::BTreeMap;

use crate::ctx::Ctx;
use crate::error::Result;
use crate::finding::{Code, Defect, Findings, Site};
use crate::format::{Fields, Value};
use crate::fts5::check::{Checker, Rules};
use crate::fts5::tokenizer::Found;
use crate::fts5::{Config, Content as ContentMode, Settings, Tokenizer};
use crate::ids::{ObjectId, wide};
use crate::recover::Selection;
use crate::recover::live::{LiveRow, rows};
use crate::schema::{Family, FtsModule, FtsPart, Object, ObjectKind};
use crate::survey::plan::{Row, TablePlan};
use crate::survey::{Content, Survey, TableScan};

use self::alone::{Alone, structure_from_leaves, tokens_of};
pub(crate) use self::blocks::DataBlocks;
pub(crate) use self::source::{Reals, Source};

/// What becomes of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Its shadow tables are copied as they are.
    Copied,
    /// Its shadow tables are written anew.
    Rebuilt,
    /// It cannot stand in the copy; why.
    LeftOut(String),
}

/// An FTS5 table with what was found about it.
#[derive(Debug)]
pub(crate) struct SearchIndex {
    /// The virtual table.
    pub(crate) of: ObjectId,
    /// Its name as it is declared.
    pub(crate) name: String,
    /// Its declaration, when FTS5 accepts it.
    pub(crate) config: Option<Config>,
    /// Its tokenizer, when it is built into FTS5.
    pub(crate) tokenizer: Option<Tokenizer>,
    /// What `%_config` says.
    pub(crate) settings: Settings,
    /// Its shadow tables.
    pub(crate) parts: BTreeMap<FtsPart, ObjectId>,
    /// Where its text is.
    pub(crate) source: Source,
    /// Why its shadow tables cannot be copied as they are.
    wrong: Option<String>,
    /// Why it cannot be written anew.
    obstacle: Option<String>,
    /// Rows of the content that were set aside when it was compared.
    set_aside: BTreeMap<ObjectId, usize>,
    /// The rules by which most of its rows were indexed.
    pub(crate) rules: Rules,
    /// Of an index that is all there is of its text: what it is read by, and what is lost of it.
    pub(crate) alone: Alone,
}

impl SearchIndex {
    /// What becomes of it.
    pub(crate) fn fate(&self) -> Fate {
        match (&self.wrong, &self.obstacle) {
            (None, _) => Fate::Copied,
            (Some(_), None) => Fate::Rebuilt,
            (Some(wrong), Some(obstacle)) => Fate::LeftOut(format!("{wrong}, and {obstacle}")),
        }
    }

    /// Takes note of rows of the content that were set aside after the check.
    pub(crate) fn settle(&mut self, selections: &BTreeMap<ObjectId, Selection>) {
        let changed = |(id, n): (&ObjectId, &usize)| selections.get(id).is_some_and(|s| s.excluded.len() != *n || !s.nulled.is_empty());
        if self.set_aside.iter().any(changed) {
            self.wrong.get_or_insert_with(|| "rows that it indexes are set aside".to_owned());
        }
    }

    /// Whether the table is one of the shadow tables that its declaration asks for.
    pub(crate) fn declares(&self, part: FtsPart) -> bool {
        let Some(config) = &self.config else { return true };
        match part {
            FtsPart::Content => matches!(config.content, ContentMode::Stored | ContentMode::Unindexed),
            FtsPart::Docsize => config.columnsize,
            _ => true,
        }
    }

    /// Whether its text is in its own content table. A declaration that does not parse may say so or not, and a table of text
    /// is data either way.
    pub(crate) fn keeps_text(&self) -> bool {
        self.config.as_ref().is_none_or(|c| c.content == ContentMode::Stored)
    }

    /// Shadow tables that are written anew when the index is.
    pub(crate) fn anew(&self, survey: &Survey<'_>) -> Vec<FtsPart> {
        let mut parts = vec![FtsPart::Data, FtsPart::Idx];
        if self.declares(FtsPart::Docsize) {
            parts.push(FtsPart::Docsize);
        }
        let config = self.parts.get(&FtsPart::Config);
        if !self.settings.version_is_known() || !config.is_some_and(|id| is_whole(survey, *id) && has_shape(survey, *id, FtsPart::Config)) {
            parts.push(FtsPart::Config);
        }
        parts
    }
}

/// Checks every FTS5 index and adds what is wrong to the findings of the survey.
///
/// # Errors
/// Cancellation only.
pub(crate) fn check(survey: &mut Survey<'_>, keep_violations: bool, ctx: &Ctx) -> Result<Vec<SearchIndex>> {
    let mut log = Findings::new(survey.findings.cap());
    let mut out = Vec::new();
    for object in survey.catalog.objects().iter().filter(|o| is_fts5(o)) {
        ctx.check()?;
        out.push(one(survey, object, keep_violations, &mut log, ctx)?);
    }
    orphans(survey, &mut log);
    fts3::check(survey, &mut log, ctx)?;
    survey.findings.merge(log);
    Ok(out)
}

/// What is left of indexes whose declaration is gone: text that is data, and postings that may be all there is of a text.
fn orphans(survey: &Survey<'_>, log: &mut Findings) {
    let objects = survey.catalog.objects();
    let part_of = |o: &Object| match o.family {
        Family::OrphanShadow { part, .. } if o.kind == ObjectKind::Table => {
            Some((part, o.name.folded().strip_suffix(suffix(part).as_bytes())?.to_vec()))
        }
        _ => None,
    };
    for object in objects {
        let Some((part, base)) = part_of(object) else { continue };
        let cells = table_of(survey, object.id).map_or(0, |(_, scan, _)| scan.cells);
        let empty = match part {
            FtsPart::Content | FtsPart::Segdir => 0,
            // An index without rows has its averages and its structure record.
            FtsPart::Data => 2,
            _ => continue,
        };
        if cells <= empty && is_whole(survey, object.id) {
            continue;
        }
        let site = Site::object(object.id);
        if part == FtsPart::Content {
            log.add(Defect::new(Code::OrphanContent, 0, cells, 0), site);
            continue;
        }
        // A trigger that filled the index took its text from a table.
        let fed = objects.iter().filter_map(Object::trigger_def).any(|t| t.sources.iter().any(|s| s.folded() == base));
        let has_content = objects.iter().filter_map(part_of).any(|(p, b)| p == FtsPart::Content && b == base);
        if !fed && !has_content {
            log.add(Defect::new(Code::OrphanPostings, 0, cells, 0), site);
        }
    }
}

fn is_fts5(object: &Object) -> bool {
    object.kind == ObjectKind::Virtual
        && object.excluded.is_none()
        && object.problem.is_none()
        && object.virtual_def().is_some_and(|d| d.module.same(b"fts5"))
}

fn one(survey: &Survey<'_>, object: &Object, keep: bool, log: &mut Findings, ctx: &Ctx) -> Result<SearchIndex> {
    let mut parts = BTreeMap::new();
    for o in survey.catalog.objects().iter().filter(|o| o.kind == ObjectKind::Table) {
        if let Family::FtsShadow { of, module: FtsModule::Fts5, part } = o.family
            && of == object.id
        {
            parts.entry(part).or_insert(o.id);
        }
    }
    let first = [FtsPart::Data, FtsPart::Idx, FtsPart::Docsize, FtsPart::Config].iter().find_map(|p| parts.get(p));
    let site = Site::object(first.copied().unwrap_or(object.id));
    let mut index = SearchIndex {
        of: object.id,
        name: object.name.text(),
        config: None,
        tokenizer: None,
        settings: Settings::default(),
        parts,
        source: Source::None,
        wrong: None,
        obstacle: None,
        set_aside: BTreeMap::new(),
        rules: Rules::default(),
        alone: Alone::default(),
    };
    index.settings = settings(survey, index.parts.get(&FtsPart::Config).copied(), ctx)?;
    match declaration(object) {
        Ok((config, Found::BuiltIn(tokenizer))) => {
            index.config = Some(config);
            index.tokenizer = Some(tokenizer);
        }
        Ok((config, Found::Custom(name))) => {
            log.add_with(Defect::new(Code::FtsTokenizerUnknown, 0, 0, 0), site, name.clone());
            index.obstacle = Some(format!("its tokenizer {name} is known only to the application"));
            index.config = Some(config);
        }
        Err(what) => {
            log.add_with(Defect::new(Code::FtsDeclarationBad, 0, 0, 0), site, what);
            index.obstacle = Some("its declaration is not one that FTS5 accepts".to_owned());
        }
    }
    index.wrong = parts_wrong(survey, &index);
    let Some(config) = index.config.clone() else {
        index.wrong.get_or_insert_with(|| "it cannot be checked".to_owned());
        return Ok(index);
    };
    index.source = Source::of(survey, object, &config, index.parts.get(&FtsPart::Content).copied(), ctx)?;
    let judged = compare(survey, &config, &mut index, keep, log, site, ctx)?;
    if index.obstacle.is_none() {
        index.obstacle = obstacle(survey, &config, &index, judged);
    }
    Ok(index)
}

/// The declaration of a table and its tokenizer.
fn declaration(object: &Object) -> std::result::Result<(Config, Found), String> {
    let Some(def) = object.virtual_def() else { return Err("no declaration".to_owned()) };
    let arguments: Vec<&str> =
        def.args.iter().map(|a| std::str::from_utf8(a)).collect::<std::result::Result<_, _>>().map_err(|e| e.to_string())?;
    let config = Config::parse(&arguments).map_err(|e| e.to_string())?;
    let tokenizer = Tokenizer::find(&config.tokenizer).map_err(|e| e.to_string())?;
    Ok((config, tokenizer))
}

/// The rows of a table as the survey found them.
pub(crate) fn table_of<'s>(
    survey: &'s Survey<'_>,
    id: ObjectId,
) -> Option<(&'s TablePlan, &'s TableScan, &'s crate::survey::SurveyedTree)> {
    survey.tree_of(id).and_then(|t| match &t.content {
        Some(Content::Table { plan, scan }) => Some((plan.as_ref(), scan, t)),
        _ => None,
    })
}

/// Whether a table was read without a finding that may have cost a row.
pub(crate) fn is_whole(survey: &Survey<'_>, id: ObjectId) -> bool {
    table_of(survey, id).is_some_and(|(_, scan, t)| {
        scan.excluded.is_empty()
            && scan.damaged.is_empty()
            && scan.skipped.is_empty()
            && scan.ordered
            && t.tree.holes() == 0
            && !t.tree.leaves().any(|no| survey.adopted.contains(&no))
    })
}

/// Whether a shadow table is declared as FTS5 declares it.
pub(crate) fn has_shape(survey: &Survey<'_>, id: ObjectId, part: FtsPart) -> bool {
    let Some(object) = survey.catalog.get(id).filter(|o| o.problem.is_none() && o.excluded.is_none()) else { return false };
    let Some(def) = object.table_def() else { return false };
    let names: &[&str] = match part {
        FtsPart::Data => &["id", "block"],
        FtsPart::Idx => &["segid", "term", "pgno"],
        FtsPart::Docsize => &["id", "sz", "origin"],
        FtsPart::Config => &["k", "v"],
        _ => return true,
    };
    let keyed = matches!(part, FtsPart::Idx | FtsPart::Config);
    let fewer = if part == FtsPart::Docsize { 1 } else { 0 };
    (def.columns.len() == names.len() || def.columns.len().saturating_add(fewer) == names.len())
        && def.columns.iter().zip(names).all(|(c, n)| c.name.same(n.as_bytes()))
        && def.without_rowid == keyed
        && (keyed || def.rowid_alias == Some(0))
}

/// What is wrong with the shadow tables as tables.
fn parts_wrong(survey: &Survey<'_>, index: &SearchIndex) -> Option<String> {
    for part in [FtsPart::Data, FtsPart::Idx, FtsPart::Docsize, FtsPart::Config, FtsPart::Content] {
        if !index.declares(part) {
            continue;
        }
        match index.parts.get(&part) {
            // Without a declaration nothing says which of them there have to be.
            None if index.config.is_none() && matches!(part, FtsPart::Docsize | FtsPart::Content) => {}
            None => return Some(format!("{}{} is missing", index.name, suffix(part))),
            Some(id) if !is_whole(survey, *id) && part != FtsPart::Content => return Some("its shadow tables are damaged".to_owned()),
            Some(id) if !has_shape(survey, *id, part) => {
                return Some("its shadow tables are not declared as FTS5 declares them".to_owned());
            }
            Some(id) if part == FtsPart::Content && !is_whole(survey, *id) => return Some("its content is damaged".to_owned()),
            Some(_) => {}
        }
    }
    None
}

/// What a shadow table's name ends in.
pub(crate) fn suffix(part: FtsPart) -> &'static str {
    match part {
        FtsPart::Content => "_content",
        FtsPart::Data => "_data",
        FtsPart::Idx => "_idx",
        FtsPart::Docsize => "_docsize",
        FtsPart::Config => "_config",
        FtsPart::Segments => "_segments",
        FtsPart::Segdir => "_segdir",
        FtsPart::Stat => "_stat",
    }
}

/// What stands in the way of writing an index anew.
fn obstacle(survey: &Survey<'_>, config: &Config, index: &SearchIndex, judged: Judged) -> Option<String> {
    if index.parts.iter().any(|(part, id)| *part != FtsPart::Content && survey.catalog.indexes_of(*id).next().is_some()) {
        return Some("its shadow tables have indexes of their own".to_owned());
    }
    let content = index.parts.get(&FtsPart::Content);
    match (&config.content, &index.source) {
        (_, Source::Unknown { reason, .. }) => Some(reason.clone()),
        (ContentMode::Stored | ContentMode::External(_), _) if judged.unread > 0 => Some(unread(survey, index, judged)),
        (ContentMode::External(_), Source::View { .. }) if judged.unordered => {
            Some("the rows of its view do not come in the order of their ids".to_owned())
        }
        (ContentMode::Stored | ContentMode::External(_), _) => None,
        (ContentMode::Unindexed, _) if content.is_none() => Some("its content is gone".to_owned()),
        (ContentMode::None | ContentMode::Unindexed, _) if !judged.structure => {
            Some("its text is nowhere but in the index, whose structure is lost".to_owned())
        }
        (ContentMode::None | ContentMode::Unindexed, _)
            if config.contentless_delete && index.parts.get(&FtsPart::Docsize).is_none_or(|id| table_of(survey, *id).is_none()) =>
        {
            Some("its text is nowhere but in the index, and what lists its rows is lost".to_owned())
        }
        (ContentMode::None | ContentMode::Unindexed, _) => None,
    }
}

/// Names the rows whose text cannot be computed: the application has to look at them before its index can be built.
fn unread(survey: &Survey<'_>, index: &SearchIndex, judged: Judged) -> String {
    let table = index.source.tables().first().and_then(|id| survey.catalog.get(*id)).map(|o| o.name.text()).unwrap_or_default();
    let rows = if judged.unread == 1 { "1 row".to_owned() } else { format!("{} rows", judged.unread) };
    match judged.first_unread {
        Some(rowid) => {
            format!("its content raises an error or cannot be evaluated here for {rows} of {table}, the first has rowid {rowid}")
        }
        None => format!("its content raises an error or cannot be evaluated here for {rows} of {table}"),
    }
}

/// What the comparison says about writing anew.
#[derive(Debug, Clone, Copy, Default)]
struct Judged {
    /// The structure record was read.
    structure: bool,
    /// Rows of the content whose text cannot be computed here.
    unread: u64,
    /// The first of them.
    first_unread: Option<i64>,
    /// Rowids of the content did not ascend.
    unordered: bool,
}

fn compare(
    survey: &Survey<'_>,
    config: &Config,
    index: &mut SearchIndex,
    keep: bool,
    log: &mut Findings,
    site: Site,
    ctx: &Ctx,
) -> Result<Judged> {
    let mut judged = Judged::default();
    if index.source.is_doubtful() {
        index.wrong.get_or_insert_with(|| "what it indexes is damaged".to_owned());
    }
    let Some(blocks) = index.parts.get(&FtsPart::Data).and_then(|id| table_of(survey, *id)) else { return Ok(judged) };
    let blocks = DataBlocks::read(survey, blocks, ctx)?;
    // Where the text cannot be read here, the index is compared with itself.
    let mut config = config.clone();
    if !index.source.is_readable() && config.content != ContentMode::Unindexed {
        config.content = ContentMode::None;
    }
    let mut checker = Checker::new(&config, &index.settings, index.tokenizer.as_ref());
    let is_alone = matches!(config.content, ContentMode::None | ContentMode::Unindexed) && index.source.is_nowhere();
    let mut idx_leaves: Vec<(i64, i64)> = Vec::new();
    if let Some((plan, scan, t)) = index.parts.get(&FtsPart::Idx).and_then(|id| table_of(survey, *id)) {
        each(survey, (plan, scan, t), ctx, |_, values| {
            if is_alone && let (Some(Value::Int(segid)), Some(Value::Int(page))) = (values.first(), values.get(2)) {
                idx_leaves.push((*segid, *page >> 1));
            }
            if let (Some(segid), Some(term), Some(page)) = (values.first(), values.get(1), values.get(2)) {
                let term = match *term {
                    Value::Blob(b) | Value::Text(b) => b,
                    _ => &[],
                };
                checker.idx_row(segid.as_int().unwrap_or(-1), term, page.as_int().unwrap_or(-1));
            }
        })?;
    }
    let mut counts: BTreeMap<i64, u64> = BTreeMap::new();
    let docsize = index.parts.get(&FtsPart::Docsize).filter(|_| config.columnsize);
    if let Some(docsize) = docsize.and_then(|id| table_of(survey, *id)) {
        each(survey, docsize, ctx, |row, values| {
            if let (Some(id), Some(Value::Blob(sizes))) = (row.rowid, values.get(1)) {
                checker.docsize_row(id, sizes);
                if is_alone {
                    counts.insert(id, tokens_of(sizes));
                }
            }
        })?;
    }
    if docsize.is_none_or(|id| !is_whole(survey, *id)) {
        checker.docsize_is_damaged();
    }
    if is_alone {
        index.alone.structure = structure_from_leaves(&config, &blocks, idx_leaves, docsize.map(|_| &counts));
        if let Some(structure) = &index.alone.structure {
            checker.assume(structure.clone());
        }
    }
    let mut selections = BTreeMap::new();
    for id in index.source.tables() {
        if let Some((_, scan, _)) = table_of(survey, id) {
            let selection = Selection::of(scan, keep);
            index.set_aside.insert(id, selection.excluded.len());
            selections.insert(id, selection);
        }
    }
    let source = &index.source;
    let read = checker.index_beside(&blocks, blocks.ids(), |content| {
        let read = source.each(survey, &selections, None, Reals::Newer, ctx, &mut |rowid, columns| {
            content.row(rowid, columns);
            Ok(())
        })?;
        if read.reals_differ {
            source.each(survey, &selections, None, Reals::OnlyOlder, ctx, &mut |rowid, columns| {
                content.row_with_older_reals(rowid, columns);
                Ok(())
            })?;
        }
        Ok(read)
    })?;
    (judged.unread, judged.first_unread) = (read.unread, read.first_unread);
    judged.unordered = !read.ordered;
    ctx.check()?;
    let mut own = Findings::new(log.cap());
    let checked = checker.finish(&mut own, site);
    // Without the text of a row nothing is said about its entries.
    if judged.unread == 0 {
        log.merge(own);
        if !checked.is_clean() || !index.settings.version_is_known() {
            let alone = "its parts do not say the same";
            let wrong = if is_alone { alone } else { "its entries are not those of its content" };
            index.wrong.get_or_insert_with(|| wrong.to_owned());
        }
    } else if index.source.tables().iter().any(|id| !is_whole(survey, *id)) {
        index.wrong.get_or_insert_with(|| "what it indexes is damaged".to_owned());
    } else if !checked.sound {
        index.wrong.get_or_insert_with(|| "its segments are damaged".to_owned());
    }
    judged.structure = checked.structure.is_some();
    index.rules = checked.rules;
    if is_alone {
        let docsize_is_whole = docsize.is_some_and(|id| is_whole(survey, *id));
        index.alone.take(checked, &config, docsize_is_whole);
    }
    Ok(judged)
}

/// Gives each row of a shadow table with its values.
pub(crate) fn each<'s>(
    survey: &Survey<'_>,
    (plan, scan, t): (&'s TablePlan, &'s TableScan, &'s crate::survey::SurveyedTree),
    ctx: &Ctx,
    mut f: impl FnMut(&LiveRow<'_>, &[Value<'_>]),
) -> Result<()> {
    let mut fields = Fields::new();
    let selection = Selection::of(scan, false);
    rows(&survey.pages, &t.tree.slots, plan, &selection, ctx, |row| {
        if fields.read(row.record, wide(row.record.len())).is_err() {
            return Ok(());
        }
        let r = Row { rowid: row.rowid, payload: row.record, fields: &fields };
        let values: Vec<Value<'_>> = (0..plan.columns.len()).map(|c| plan.raw_value(&r, c).unwrap_or(Value::Null)).collect();
        f(&row, &values);
        Ok(())
    })
}

fn settings(survey: &Survey<'_>, config: Option<ObjectId>, ctx: &Ctx) -> Result<Settings> {
    let mut list: Vec<(Vec<u8>, crate::survey::plan::Constant)> = Vec::new();
    if let Some(table) = config.and_then(|id| table_of(survey, id)) {
        each(survey, table, ctx, |_, values| {
            if let (Some(Value::Text(key)), Some(value)) = (values.first(), values.get(1))
                && list.len() < 64
            {
                let value = match *value {
                    Value::Text(t) => Value::Text(&survey.encoding.to_utf8(t)).into(),
                    other => other.into(),
                };
                list.push((survey.encoding.to_utf8(key).into_owned(), value));
            }
        })?;
    }
    Ok(Settings::from_rows(list.iter().map(|(k, v)| (k.as_slice(), v.value()))))
}
