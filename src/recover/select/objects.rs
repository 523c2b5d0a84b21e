//! Which objects of the schema stand in the copy.

use std::collections::{BTreeMap, BTreeSet};

use crate::finding::Code;
use crate::ids::ObjectId;
use crate::recover::rtree::Rtree;
use crate::recover::search_index::{Fate, SearchIndex};
use crate::schema::ddl::token::tokens;
use crate::schema::ddl::{Hint, IndexTerm, TableDef, mend, parse};
use crate::schema::{Catalog, Family, FtsModule, FtsPart, Name, Object, ObjectKind, RowSource, quoted};
use crate::survey::{Content, Survey};

/// What becomes of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Disposition {
    /// It stands in the copy.
    Kept,
    /// It stands in the copy under a declaration made anew from what could be read of its own. Names in it are the bytes of
    /// the evidence, which need not be UTF-8.
    Anew(Vec<u8>),
    /// It does not; why, and whether a statement in `finish.sql` brings it back.
    LeftOut {
        /// In a sentence.
        reason: String,
        /// Whether `finish.sql` has it.
        finish: bool,
    },
}

impl Disposition {
    /// Whether it stands in the copy.
    pub(crate) fn is_kept(&self) -> bool {
        matches!(self, Disposition::Kept | Disposition::Anew(_))
    }

    fn out(reason: impl Into<String>, finish: bool) -> Disposition {
        Disposition::LeftOut { reason: reason.into(), finish }
    }
}

/// Objects that cannot stand in a copy although nothing in the evidence says so, each with what was wrong with it there.
pub(crate) type Refused = BTreeMap<ObjectId, String>;

/// Decides for every object, tables first: what belongs to a table that is left out is left out with it. `refused` are objects
/// with which an earlier copy did not read back, and what was wrong.
pub(crate) fn decide(
    survey: &Survey<'_>,
    searches: &[SearchIndex],
    rtrees: &[Rtree],
    refused: &Refused,
) -> BTreeMap<ObjectId, Disposition> {
    let catalog = &survey.catalog;
    let mut all: BTreeMap<ObjectId, Disposition> = BTreeMap::new();
    // What is checked as an index: it is copied, written anew or left out by what that says.
    let judged = |of: ObjectId| searches.iter().any(|s| s.of == of) || rtrees.iter().any(|r| r.of == of);
    let bad = |object: &Object| {
        refused.get(&object.id).map(|what| Disposition::out(what.clone(), object.sql().is_some() && !is_over_expressions(object)))
    };
    for object in catalog.objects().iter().filter(|o| !matches!(o.kind, ObjectKind::Index | ObjectKind::Trigger)) {
        all.insert(object.id, bad(object).unwrap_or_else(|| of_table(survey, object)));
    }
    // A family stands or falls as a whole: its shadow tables are one index.
    for object in catalog.objects() {
        if let Some(of) = object.family.virtual_table()
            && let Some(reason) = refused.get(&of).cloned().or_else(|| family_is_out(survey, judged(of), of, &all))
        {
            if refused.contains_key(&of) || all.get(&of).is_some_and(Disposition::is_kept) {
                all.insert(of, Disposition::out(reason.clone(), true));
            }
            // The text of an FTS3 or FTS4 table is data: it stands as an ordinary table, from which `finish.sql` fills the
            // index anew.
            if !is_fts3_content(object) {
                all.insert(object.id, Disposition::out(reason, false));
            }
        }
    }
    for object in catalog.objects().iter().filter(|o| lacks_shadow(survey, o) && !judged(o.id)) {
        all.insert(object.id, Disposition::out(format!("the shadow tables of {} are not all there", object.name), true));
    }
    for index in searches.iter().filter(|i| !refused.contains_key(&i.of)) {
        of_search_index(survey, index, &mut all);
    }
    views(catalog, &mut all);
    for object in catalog.objects().iter().filter(|o| matches!(o.kind, ObjectKind::Index | ObjectKind::Trigger)) {
        let owner = object.table.and_then(|t| all.get(&t));
        let disposition = match (object.kind, owner) {
            (_, Some(owner)) if owner.is_kept() && refused.contains_key(&object.id) => bad(object).unwrap_or(Disposition::Kept),
            (_, None) => Disposition::out("the table that it belongs to is not in the schema", false),
            (_, Some(Disposition::LeftOut { reason, finish })) => {
                Disposition::out(format!("its table is left out: {reason}"), *finish && object.kind == ObjectKind::Trigger)
            }
            // Without its constraint a table has no use for the index that the constraint made.
            (ObjectKind::Index, Some(Disposition::Anew(sql))) if object.autoindex.is_some_and(|n| !makes_index(sql, n)) => {
                Disposition::out("its table is declared anew without the constraint", false)
            }
            // SQLite cannot work with a table that lacks the index of a constraint: it is built anew.
            (ObjectKind::Index, _) if object.autoindex.is_some() => of_index(object),
            (ObjectKind::Index, _) => without_tree(survey, object).unwrap_or_else(|| of_index(object)),
            _ => without_tree(survey, object).unwrap_or_else(|| of_trigger(catalog, object, &all)),
        };
        all.insert(object.id, disposition);
    }
    all
}

/// Leaves out views on what is left out, and views on those: SQLite refuses some statements on a schema with such a view.
fn views(catalog: &Catalog, all: &mut BTreeMap<ObjectId, Disposition>) {
    // As deep as SQLite lets views stand on views.
    for _ in 0..100 {
        let mut out = Vec::new();
        for object in catalog.objects().iter().filter(|o| all.get(&o.id).is_some_and(Disposition::is_kept)) {
            let Some(view) = object.view_def() else { continue };
            if let Some(name) = left_out(catalog, &view.sources, all) {
                out.push((object.id, Disposition::out(format!("it uses {name}, which is left out"), true)));
            }
        }
        if out.is_empty() {
            return;
        }
        all.extend(out);
    }
}

/// The first of these names whose object is left out.
fn left_out<'n>(catalog: &Catalog, names: &'n [Name], all: &BTreeMap<ObjectId, Disposition>) -> Option<&'n Name> {
    names.iter().find(|n| catalog.by_name(n.as_bytes()).is_some_and(|o| all.get(&o.id).is_some_and(|d| !d.is_kept())))
}

/// Whether a virtual table lacks a table that its module made for it.
fn lacks_shadow(survey: &Survey<'_>, object: &Object) -> bool {
    object.kind == ObjectKind::Virtual && survey.findings.counts().contains_key(&(Code::ShadowTableMissing, Some(object.id)))
}

/// Why the shadow tables of a virtual table do not stand, where they are not those of a search index that is judged as one.
fn family_is_out(survey: &Survey<'_>, judged: bool, of: ObjectId, all: &BTreeMap<ObjectId, Disposition>) -> Option<String> {
    let family = survey.catalog.get(of).map_or_else(String::new, |o| o.name.text());
    match all.get(&of) {
        _ if judged => None,
        _ if !family_is_whole(survey, of) => Some(format!("the shadow tables of {family} are not whole")),
        Some(Disposition::LeftOut { reason, .. }) => Some(format!("{family} is left out: {reason}")),
        _ => None,
    }
}

/// The tables of a full-text index, by what becomes of it.
fn of_search_index(survey: &Survey<'_>, index: &SearchIndex, all: &mut BTreeMap<ObjectId, Disposition>) {
    let content_out = index.source.needs().into_iter().find(|t| !all.get(t).is_some_and(Disposition::is_kept));
    let fate = match (index.fate(), content_out) {
        (Fate::LeftOut(reason), _) => Fate::LeftOut(reason),
        (_, Some(_)) => Fate::LeftOut("its content is left out".to_owned()),
        (fate, None) => fate,
    };
    match fate {
        Fate::Copied => {}
        Fate::Rebuilt => {
            for part in index.anew(survey) {
                if let Some(id) = index.parts.get(&part) {
                    all.insert(*id, Disposition::Kept);
                }
            }
        }
        Fate::LeftOut(reason) => {
            let reason = format!("{}: {reason}", index.name);
            // The text of a table that keeps it itself is data: it stands as an ordinary table, from which `finish.sql` fills
            // the index anew.
            let is_text = |part: FtsPart| part == FtsPart::Content && index.keeps_text();
            for (_, id) in index.parts.iter().filter(|(part, _)| index.declares(**part) && !is_text(**part)) {
                all.insert(*id, Disposition::out(reason.clone(), false));
            }
            all.insert(index.of, Disposition::out(reason, true));
        }
    }
}

/// Whether an index is over expressions. One that did not read back costs more to compute than a run allows: SQLite, which has no
/// such bound, is not asked to do it.
fn is_over_expressions(object: &Object) -> bool {
    object.index_def().is_some_and(|d| d.where_clause.is_some() || d.columns.iter().any(|c| matches!(c.what, IndexTerm::Expr(_))))
}

fn excluded(object: &Object) -> Option<Disposition> {
    let code = object.excluded?;
    let finish = matches!(code, Code::DependsOnMissing | Code::SqlNotParsed);
    Some(Disposition::out(code.problem().sentence.replace("{got}", "it"), finish))
}

fn of_table(survey: &Survey<'_>, object: &Object) -> Disposition {
    if object.id == ObjectId::SCHEMA {
        return Disposition::Kept;
    }
    if let Some(out) = excluded(object) {
        return out;
    }
    if matches!(object.family, Family::OrphanShadow { part, .. } if part != FtsPart::Content) {
        return Disposition::out("a shadow table without its virtual table; its rows are in the salvage database", false);
    }
    if let Some(out) = without_tree(survey, object) {
        return out;
    }
    match object.kind {
        ObjectKind::Table => {
            let readable = survey.tree_of(object.id).is_some_and(|t| matches!(t.content, Some(Content::Table { .. })));
            if object.problem.is_some() || (!readable && object.table_def().is_none()) || refused(object) {
                if let Some(sql) = object.sql().filter(|sql| is_own_text(object, sql)) {
                    return Disposition::Anew(sql.to_vec());
                }
                if let (true, Some(sql)) = (readable, content_of_fts5(object)) {
                    return Disposition::Anew(sql);
                }
                return match object.table_def().filter(|t| readable && !t.columns.is_empty()).and_then(|def| declaration(object, def)) {
                    Some(sql) => Disposition::Anew(sql),
                    None => Disposition::out("its CREATE text is not SQL that SQLite accepts", false),
                };
            }
            content_of_fts5(object).map_or(Disposition::Kept, Disposition::Anew)
        }
        _ if object.sql().is_some_and(|sql| is_own_text(object, sql)) && object.problem.is_some() => {
            Disposition::Anew(object.sql().unwrap_or_default().to_vec())
        }
        _ if object.problem.is_some() || refused(object) => Disposition::out("its CREATE text is not SQL that SQLite accepts", true),
        _ => Disposition::Kept,
    }
}

/// Whether SQLite takes the text of a table or view as it stands, and only `tbl_name` of its row says another name: the text keeps
/// all that it declares.
fn is_own_text(object: &Object, sql: &[u8]) -> bool {
    let parsed = parse(sql);
    let alone = mend::Known {
        hint: Hint::None,
        name: object.name.as_bytes(),
        table: object.name.as_bytes(),
        width: 0,
        without_rowid: None,
        alias: false,
    };
    parsed.problem.is_none() && mend::stands(sql, &parsed.definition, &alone)
}

/// Whether a table with this text makes an automatic index of this number.
fn makes_index(sql: &[u8], number: u32) -> bool {
    let parsed = parse(sql);
    let table = parsed.definition.as_table();
    table.is_some_and(|t| t.unique.iter().any(|k| k.number == number && !(k.primary && t.without_rowid)))
}

/// Why an object does not stand whose schema row may be an old one, when no tree of the file belongs to it.
fn without_tree(survey: &Survey<'_>, object: &Object) -> Option<Disposition> {
    let row = object.row.as_ref().filter(|r| r.needs_tree)?;
    let has_leaves = |o: &Object| survey.tree_of(o.id).is_some_and(|t| t.tree.leaves().next().is_some());
    let found = has_leaves(object) || survey.catalog.objects().iter().any(|o| o.family.virtual_table() == Some(object.id) && has_leaves(o));
    let reason = match row.source {
        _ if found => return None,
        RowSource::Given => "the file given with --schema has it, and no tree of this file fits it",
        _ => "its schema row was found in unused bytes, and no tree of the file fits it: it may have been dropped",
    };
    Some(Disposition::out(reason, object.kind != ObjectKind::Table && object.sql().is_some()))
}

/// Whether SQLite refuses the schema for this row although its text parses: the names of the row and of the text differ,
/// the text has a token that is none, or an expression of a CHECK or a generated column has a subquery or names a column
/// that is not there.
pub(crate) fn refused(object: &Object) -> bool {
    let Some((name, table)) = object.definition.names() else { return false };
    let differs = !object.name.same(name.as_bytes()) || !object.table_name.same(table.as_bytes());
    let odd = object.sql().is_some_and(|sql| tokens(sql).any(|t| t.odd));
    differs || odd || object.table_def().is_some_and(TableDef::has_unresolved)
}

/// A declaration that SQLite accepts, with the columns that the records hold, in their order: names as they are read, the
/// rowid alias or the primary key of a WITHOUT ROWID table, no other constraint. `None` when its key or its name cannot be
/// declared.
fn declaration(object: &Object, def: &TableDef) -> Option<Vec<u8>> {
    // A text ends at its first NUL: such a name cannot be written.
    if object.name.as_bytes().contains(&0) {
        return None;
    }
    let layout = object.table_layout.as_ref()?;
    let mut used: BTreeSet<String> = BTreeSet::new();
    let mut names: Vec<String> = Vec::new();
    let mut columns: Vec<String> = Vec::new();
    for column in &layout.record {
        let declared = def.columns.get(*column)?;
        let mut name: String = declared.name.text().chars().filter(|c| *c != '\0').collect();
        if name.is_empty() || !used.insert(name.to_lowercase()) {
            name = format!("c{}", column.saturating_add(1));
            used.insert(name.clone());
        }
        let alias = if layout.rowid_alias == Some(*column) { " INTEGER PRIMARY KEY" } else { "" };
        columns.push(format!("{}{alias}", quoted(&name)));
        names.push(quoted(&name));
    }
    let mut end = String::new();
    if def.without_rowid {
        let mut key = Vec::new();
        for (part, name) in layout.key.iter().zip(&names) {
            if !part.collation.is_known() {
                return None;
            }
            key.push(format!("{name} COLLATE {}{}", part.collation.name(), if part.desc { " DESC" } else { "" }));
        }
        columns.push(format!("PRIMARY KEY({})", key.join(", ")));
        end.push_str(" WITHOUT ROWID");
    }
    let body = format!("({}){end}", columns.join(", "));
    Some([b"CREATE TABLE ".as_slice(), &object.name.quoted(), body.as_bytes()].concat())
}

/// The declaration of the content table of a search index as FTS5 writes it, where its own names a column otherwise: FTS5
/// asks for its columns by these names.
fn content_of_fts5(object: &Object) -> Option<Vec<u8>> {
    if !matches!(object.family, Family::FtsShadow { module: FtsModule::Fts5, part: FtsPart::Content, .. }) {
        return None;
    }
    let columns = &object.table_def()?.columns;
    // `c0`, `c1` and so on, some left out where columns are unindexed without content; then `l0` and so on for locales.
    let number = |name: &[u8]| {
        let (kind, digits) = name.split_first()?;
        let n: u32 = std::str::from_utf8(digits).ok().filter(|d| d.bytes().all(|b| b.is_ascii_digit()))?.parse().ok()?;
        matches!(kind.to_ascii_lowercase(), b'c' | b'l').then_some((kind.to_ascii_lowercase(), n))
    };
    let numbers: Vec<Option<(u8, u32)>> = columns.iter().skip(1).map(|c| number(c.name.as_bytes())).collect();
    if numbers.iter().all(Option::is_some) && numbers.is_sorted_by(|a, b| a < b) {
        return None;
    }
    let names: String = (0..columns.len().saturating_sub(1)).map(|i| format!(", c{i}")).collect();
    let body = format!("(id INTEGER PRIMARY KEY{names})");
    Some([b"CREATE TABLE ".as_slice(), &object.name.quoted(), body.as_bytes()].concat())
}

fn of_index(object: &Object) -> Disposition {
    if let Some(out) = excluded(object) {
        return out;
    }
    if object.problem.is_some() || refused(object) {
        return Disposition::out("its CREATE text is not SQL that SQLite accepts", true);
    }
    let Some(layout) = &object.index_layout else {
        return Disposition::out("nothing says what it indexes", true);
    };
    if layout.is_computable() || object.autoindex.is_some() {
        return Disposition::Kept;
    }
    // Order under an unknown collation cannot be vouched for: even a whole index is built anew by who knows it.
    let what = layout
        .unknown_collation()
        .map(|c| format!("collation {} is known only to the application", c.name()))
        .or_else(|| layout.unknown_expression().map(|u| u.to_string()))
        .unwrap_or_default();
    Disposition::out(what, true)
}

fn of_trigger(catalog: &Catalog, object: &Object, all: &BTreeMap<ObjectId, Disposition>) -> Disposition {
    if let Some(out) = excluded(object) {
        return out;
    }
    if object.problem.is_some() || refused(object) {
        return Disposition::out("its CREATE text is not SQL that SQLite accepts", true);
    }
    // A trigger that writes to what is left out would make every write to its table fail.
    match object.trigger_def().and_then(|t| left_out(catalog, &t.sources, all)) {
        Some(name) => Disposition::out(format!("it uses {name}, which is left out"), true),
        None => Disposition::Kept,
    }
}

/// Whether an object is the table that holds the text of an FTS3 or FTS4 table.
pub(crate) fn is_fts3_content(object: &Object) -> bool {
    matches!(object.family, Family::FtsShadow { module: FtsModule::Fts3, part: FtsPart::Content, .. }) && object.kind == ObjectKind::Table
}

/// Whether every shadow table of a virtual table was read without a finding that may have cost a row, and nothing is wrong
/// with the segments of an FTS3 or FTS4 table.
fn family_is_whole(survey: &Survey<'_>, of: ObjectId) -> bool {
    if survey.catalog.get(of).is_some_and(|o| lacks_shadow(survey, o)) {
        return false;
    }
    let parts = survey.catalog.objects().iter().filter(|o| o.kind == ObjectKind::Table && o.family.virtual_table() == Some(of));
    parts.into_iter().all(|o| {
        if survey.findings.counts().contains_key(&(Code::Fts3SegmentBad, Some(o.id))) {
            return false;
        }
        survey.tree_of(o.id).is_some_and(|t| match &t.content {
            Some(Content::Table { scan, .. }) => scan.excluded.is_empty() && scan.damaged.is_empty() && scan.ordered && t.tree.holes() == 0,
            _ => false,
        })
    })
}
