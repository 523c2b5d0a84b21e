//! The rows of `sqlite_schema` as objects.
//!
//! No row is refused: what is wrong with one is a finding on that object, and every other object goes on.

pub(super) mod autoindex;
mod load;

use std::collections::{BTreeMap, BTreeSet};

use super::ddl::{self, Definition, Hint, IndexDef, TableDef, TextProblem, TriggerDef, ViewDef, VirtualDef};
use super::families::{self, Family};
use super::layout::{IndexLayout, TableLayout};
use crate::expr::name::Name;
use crate::finding::{Code, Defect, Findings, Site};
use crate::ids::{ObjectId, PageNo, RootPage, wide};

/// A row of `sqlite_schema`, its text converted to UTF-8.
#[derive(Debug, Clone, Default)]
pub struct SchemaRow {
    /// Its rowid.
    pub rowid: i64,
    /// `type`.
    pub kind: Vec<u8>,
    /// `name`.
    pub name: Vec<u8>,
    /// `tbl_name`.
    pub table: Vec<u8>,
    /// `rootpage`, if it is an integer.
    pub root: Option<i64>,
    /// `sql`; NULL for an automatic index.
    pub sql: Option<Vec<u8>>,
    /// Where the row was read.
    pub site: Site,
    /// How it was come by.
    pub source: RowSource,
    /// The root page that it names, where that is not taken at its word.
    pub hint: Option<PageNo>,
    /// Other CREATE texts of the table, for other orders of its columns.
    pub layouts: Vec<Vec<u8>>,
    /// It may be an old one: its object stands only if a tree of the file belongs to it.
    pub needs_tree: bool,
}

/// How a row of `sqlite_schema` was come by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RowSource {
    /// From the tree at page 1.
    #[default]
    Tree,
    /// From a leaf that the tree does not lead to.
    Leaf,
    /// From the bytes of page 1.
    PageOne,
    /// From bytes elsewhere in the files of the evidence.
    Bytes,
    /// From the file that the caller gives.
    Given,
}

impl RowSource {
    /// The finding that marks such a row, with words for the place.
    fn mark(self) -> Option<(Code, &'static str)> {
        match self {
            RowSource::Tree => None,
            RowSource::Leaf => Some((Code::SchemaRowElsewhere, "on a leaf that the tree lost")),
            RowSource::PageOne => Some((Code::SchemaRowElsewhere, "in the bytes of page 1")),
            RowSource::Bytes => Some((Code::SchemaRowElsewhere, "in bytes that no tree uses")),
            RowSource::Given => Some((Code::SchemaRowGiven, "")),
        }
    }
}

/// What an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectKind {
    /// An ordinary table.
    Table,
    /// An index.
    Index,
    /// A view.
    View,
    /// A trigger.
    Trigger,
    /// A virtual table.
    Virtual,
}

impl ObjectKind {
    /// What reports call it.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            ObjectKind::Table => "table",
            ObjectKind::Index => "index",
            ObjectKind::View => "view",
            ObjectKind::Trigger => "trigger",
            ObjectKind::Virtual => "virtual-table",
        }
    }

    /// Whether it has a b-tree of its own.
    #[must_use]
    pub fn has_tree(self) -> bool {
        matches!(self, ObjectKind::Table | ObjectKind::Index)
    }

    /// What `type` of its schema row says; SQLite refuses a schema where it says something else.
    #[must_use]
    pub fn word(self) -> &'static [u8] {
        match self {
            ObjectKind::Table | ObjectKind::Virtual => b"table",
            ObjectKind::Index => b"index",
            ObjectKind::View => b"view",
            ObjectKind::Trigger => b"trigger",
        }
    }
}

/// An object of the schema.
#[derive(Debug, Clone)]
pub struct Object {
    /// Its place in the catalog.
    pub id: ObjectId,
    /// What it is.
    pub kind: ObjectKind,
    /// Its name, as the schema row has it.
    pub name: Name,
    /// `tbl_name` of the schema row.
    pub table_name: Name,
    /// The table of an index or trigger; the object itself for tables and views. `None` where the table is not there.
    pub table: Option<ObjectId>,
    /// Its root page, where the row names a possible one.
    pub root: Option<RootPage>,
    /// What its text declares. For an automatic index [`Definition::Unknown`].
    pub definition: Definition,
    /// Why SQLite would refuse its text.
    pub problem: Option<TextProblem>,
    /// What it is a part of.
    pub family: Family,
    /// Why it cannot stand in a copy, if so: a finding with this code was made.
    pub excluded: Option<Code>,
    /// How its records are laid out, if it is a table.
    pub table_layout: Option<TableLayout>,
    /// How its records are laid out, if it is an index of a table that is there.
    pub index_layout: Option<IndexLayout>,
    /// The number N of `sqlite_autoindex_T_N`.
    pub autoindex: Option<u32>,
    /// The schema row; `None` for `sqlite_schema` itself.
    pub row: Option<SchemaRow>,
}

impl Object {
    /// Its definition, if it is a table.
    #[must_use]
    pub fn table_def(&self) -> Option<&TableDef> {
        match &self.definition {
            Definition::Table(t) => Some(t),
            _ => None,
        }
    }

    /// Its definition, if it is an index made by CREATE INDEX.
    #[must_use]
    pub fn index_def(&self) -> Option<&IndexDef> {
        match &self.definition {
            Definition::Index(t) => Some(t),
            _ => None,
        }
    }

    /// Its definition, if it is a view.
    #[must_use]
    pub fn view_def(&self) -> Option<&ViewDef> {
        match &self.definition {
            Definition::View(t) => Some(t),
            _ => None,
        }
    }

    /// Its definition, if it is a trigger.
    #[must_use]
    pub fn trigger_def(&self) -> Option<&TriggerDef> {
        match &self.definition {
            Definition::Trigger(t) => Some(t),
            _ => None,
        }
    }

    /// Its definition, if it is a virtual table.
    #[must_use]
    pub fn virtual_def(&self) -> Option<&VirtualDef> {
        match &self.definition {
            Definition::Virtual(t) => Some(t),
            _ => None,
        }
    }

    /// Its CREATE text.
    #[must_use]
    pub fn sql(&self) -> Option<&[u8]> {
        self.row.as_ref()?.sql.as_deref()
    }

    /// Whether it is a table without rowids, whose tree is of the index kind.
    #[must_use]
    pub fn is_without_rowid(&self) -> bool {
        self.table_def().is_some_and(|t| t.without_rowid)
    }
}

/// What else decides how a schema is read.
#[derive(Debug, Clone, Copy)]
pub struct CatalogOptions {
    /// The schema format number of the header (offset 44). Below 4, DESC in an index means nothing.
    pub schema_format: u32,
}

impl Default for CatalogOptions {
    fn default() -> Self {
        CatalogOptions { schema_format: 4 }
    }
}

/// All objects of a schema: 0 is `sqlite_schema` itself, then the rows in the order given.
#[derive(Debug, Clone)]
pub struct Catalog {
    objects: Vec<Object>,
    /// Tables, virtual tables, views and indexes by folded name; the first of a name.
    names: BTreeMap<Vec<u8>, ObjectId>,
    /// Indexes and triggers of each table, in schema order.
    dependents: BTreeMap<ObjectId, Vec<ObjectId>>,
}

/// The declaration of `sqlite_schema`.
const SCHEMA_SQL: &[u8] = b"CREATE TABLE sqlite_schema(type text,name text,tbl_name text,rootpage int,sql text)";

/// Declarations of the tables that SQLite makes itself, for rows whose text is damaged.
const INTERNAL: [(&[u8], &[u8]); 5] = [
    (b"sqlite_sequence", b"CREATE TABLE sqlite_sequence(name,seq)"),
    (b"sqlite_stat1", b"CREATE TABLE sqlite_stat1(tbl,idx,stat)"),
    (b"sqlite_stat2", b"CREATE TABLE sqlite_stat2(tbl,idx,sampleno,sample)"),
    (b"sqlite_stat3", b"CREATE TABLE sqlite_stat3(tbl,idx,neq,nlt,ndlt,sample)"),
    (b"sqlite_stat4", b"CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)"),
];

impl Catalog {
    /// Reads the rows of a schema whose format number is 4, as every SQLite of the last fifteen years writes it.
    pub fn from_rows(rows: Vec<SchemaRow>, findings: &mut Findings) -> Catalog {
        Catalog::with_options(rows, CatalogOptions::default(), findings)
    }

    /// Reads the rows of a schema.
    ///
    /// Passes: names and text of each row; names of automatic indexes; automatic indexes without a row; the table of each index and trigger; families;
    /// layouts; dependencies.
    pub fn with_options(rows: Vec<SchemaRow>, options: CatalogOptions, findings: &mut Findings) -> Catalog {
        let mut catalog = Catalog { objects: vec![schema_object()], names: BTreeMap::new(), dependents: BTreeMap::new() };
        let mut triggers: BTreeMap<Vec<u8>, ObjectId> = BTreeMap::new();
        for row in rows {
            let Ok(number) = u32::try_from(catalog.objects.len()) else { break };
            let object = read_row(ObjectId(number), row, findings);
            let names = if object.kind == ObjectKind::Trigger { &mut triggers } else { &mut catalog.names };
            catalog.objects.push(claim_name(names, object, findings));
        }
        catalog.mend_autoindexes(findings);
        catalog.add_missing_autoindexes(findings);
        catalog.assign_tables(findings);
        catalog.note_dependents();
        families::assign(&mut catalog.objects, &catalog.names, findings);
        catalog.lay_out(options, findings);
        catalog.apply_load_rules(findings);
        catalog.check_dependencies(findings);
        catalog
    }

    /// All objects, in order.
    pub fn objects(&self) -> &[Object] {
        &self.objects
    }

    /// The object at a place.
    #[must_use]
    pub fn get(&self, id: ObjectId) -> Option<&Object> {
        self.objects.get(id.index())
    }

    /// The table, virtual table, view or index of a name; the first, if there are several.
    #[must_use]
    pub fn by_name(&self, name: &[u8]) -> Option<&Object> {
        if is_schema_name(name) {
            return self.objects.first();
        }
        self.get(*self.names.get(&name.to_ascii_lowercase())?)
    }

    /// The indexes of a table that can stand in a copy, in schema order. SQLite's automatic ones are among them.
    pub fn indexes_of(&self, table: ObjectId) -> impl Iterator<Item = &Object> {
        self.dependents_of(table).filter(|o| o.kind == ObjectKind::Index && o.excluded.is_none())
    }

    fn dependents_of(&self, table: ObjectId) -> impl Iterator<Item = &Object> {
        self.dependents.get(&table).into_iter().flatten().filter_map(|id| self.get(*id))
    }

    /// Notes which objects belong to which table.
    fn note_dependents(&mut self) {
        for object in self.objects.iter().filter(|o| matches!(o.kind, ObjectKind::Index | ObjectKind::Trigger)) {
            self.dependents.entry(object.table.unwrap_or(object.id)).or_default().push(object.id);
        }
    }

    /// The triggers of a table or view.
    pub fn triggers_of(&self, table: ObjectId) -> impl Iterator<Item = &Object> {
        self.dependents_of(table).filter(|o| o.kind == ObjectKind::Trigger)
    }

    /// The objects whose b-tree begins at a page.
    pub fn at_root(&self, root: PageNo) -> impl Iterator<Item = &Object> {
        self.objects.iter().filter(move |o| o.root == Some(RootPage(root)))
    }

    fn assign_tables(&mut self, findings: &mut Findings) {
        let mut decided = Vec::with_capacity(self.objects.len());
        for object in &self.objects {
            let owner = self.by_name(object.table_name.as_bytes()).filter(|o| match object.kind {
                ObjectKind::Index => o.kind == ObjectKind::Table,
                ObjectKind::Trigger => matches!(o.kind, ObjectKind::Table | ObjectKind::View),
                _ => false,
            });
            let id = match object.kind {
                ObjectKind::Index | ObjectKind::Trigger => {
                    if owner.is_none() {
                        let detail = format!("{} on {}", object.name, object.table_name);
                        findings.add_with(Defect::new(Code::IndexWithoutTable, 0, 0, 0), site(object), detail);
                    }
                    let of_tree = |o: &Object| o.row.as_ref().is_some_and(|r| r.source == RowSource::Tree);
                    if let Some(o) = owner.filter(|o| o.id > object.id && of_tree(o) && of_tree(object)) {
                        let detail = format!("{} on {}", object.name, o.name);
                        findings.add_with(Defect::new(Code::SchemaRowEarly, 0, 0, 0), site(object), detail);
                    }
                    owner.map(|o| o.id)
                }
                _ => Some(object.id),
            };
            decided.push(id);
        }
        for (object, table) in self.objects.iter_mut().zip(decided) {
            object.table = table;
            if table.is_none() {
                object.excluded.get_or_insert(Code::IndexWithoutTable);
            }
        }
    }

    fn lay_out(&mut self, options: CatalogOptions, findings: &mut Findings) {
        for object in &mut self.objects {
            if object.kind == ObjectKind::Table
                && let Definition::Table(table) = &object.definition
            {
                object.table_layout = Some(TableLayout::new(table, options.schema_format));
            }
        }
        let mut layouts = Vec::new();
        for object in self.objects.iter().filter(|o| o.kind == ObjectKind::Index) {
            let Some(table) = object.table.and_then(|t| self.get(t)).and_then(Object::table_def) else { continue };
            let key = |k| IndexLayout::of_key(table, k, options.schema_format);
            let layout = match (&object.definition, object.autoindex) {
                (Definition::Index(index), _) => Some(IndexLayout::of_index(table, index, options.schema_format)),
                (_, Some(n)) => table.unique.iter().find(|k| k.number == n && !(k.primary && table.without_rowid)).map(key),
                _ => None,
            };
            layouts.push((object.id, layout));
        }
        for (id, layout) in layouts {
            let Some(object) = self.objects.get_mut(id.index()) else { continue };
            match layout {
                None if object.autoindex.is_some() => {
                    let detail = format!("no constraint of {} makes {}", object.table_name, object.name);
                    findings.add_with(Defect::new(Code::IndexWithoutTable, 0, 0, 0), site(object), detail);
                    object.excluded.get_or_insert(Code::IndexWithoutTable);
                }
                None => {}
                Some(layout) => {
                    for column in &layout.columns {
                        if !column.collation.is_known() {
                            let defect = Defect::new(Code::CollationUnknown, 0, 0, 0);
                            findings.add_with(defect, site(object), column.collation.name());
                        }
                    }
                    if let Some(unknown) = layout.unknown_expression() {
                        findings.add_with(Defect::new(Code::ExpressionUnknown, 0, 0, 0), site(object), unknown.to_string());
                    }
                    object.index_layout = Some(layout);
                }
            }
        }
        for object in &self.objects {
            let Some(table) = object.table_def() else { continue };
            let checks = table.checks.iter().map(|c| &c.expr);
            let generated = table.columns.iter().filter_map(|c| c.generated.as_ref()).map(|g| &g.expr);
            for unknown in checks.chain(generated).filter_map(crate::expr::Expr::unknown) {
                findings.add_with(Defect::new(Code::ExpressionUnknown, 0, 0, 0), site(object), unknown.to_string());
            }
        }
    }

    /// Views and triggers that read or write what is not there. A view whose view is such a one is one, too.
    ///
    /// Such a view stands in no other statement's way and stays; such a trigger makes every write to its table fail.
    fn check_dependencies(&mut self, findings: &mut Findings) {
        let mut views: BTreeSet<ObjectId> = BTreeSet::new();
        // Views on views: SQLite stops at 100 as well; each round of a longer chain would cost a pass over all objects.
        for _ in 0..100 {
            let mut broken = Vec::new();
            for object in self.objects.iter().filter(|o| o.excluded.is_none() && !views.contains(&o.id)) {
                let (sources, of_view) = match &object.definition {
                    Definition::View(v) => (&v.sources, false),
                    Definition::Trigger(t) => {
                        (&t.sources, object.table.and_then(|t| self.get(t)).is_some_and(|t| t.kind == ObjectKind::View))
                    }
                    _ => continue,
                };
                // A trigger on a view runs for no write to a table.
                if of_view {
                    continue;
                }
                let gone = |name: &Name| match self.by_name(name.as_bytes()) {
                    Some(o) => views.contains(&o.id),
                    None => !families::is_builtin_source(name),
                };
                if let Some(what) = sources.iter().find(|n| gone(n)).map(Name::text) {
                    broken.push((object.id, what));
                }
            }
            if broken.is_empty() {
                return;
            }
            for (id, what) in broken {
                let Some(object) = self.objects.get_mut(id.index()) else { continue };
                let code = if object.kind == ObjectKind::View { Code::ViewOfMissing } else { Code::DependsOnMissing };
                if code == Code::ViewOfMissing {
                    views.insert(id);
                } else {
                    object.excluded = Some(code);
                }
                findings.add_with(Defect::new(code, 0, 0, 0), site(object), what);
            }
        }
    }
}

/// Whether a name is one of the names of `sqlite_schema`.
#[must_use]
pub fn is_schema_name(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"sqlite_schema") || name.eq_ignore_ascii_case(b"sqlite_master")
}

pub(super) fn site(object: &Object) -> Site {
    let base = object.row.as_ref().map(|r| r.site).unwrap_or_default();
    Site { object: Some(object.id), ..base }
}

fn schema_object() -> Object {
    let definition = ddl::parse(SCHEMA_SQL).definition;
    Object {
        id: ObjectId::SCHEMA,
        kind: ObjectKind::Table,
        name: Name::from("sqlite_schema"),
        table_name: Name::from("sqlite_schema"),
        table: Some(ObjectId::SCHEMA),
        root: Some(RootPage(PageNo::ONE)),
        definition,
        problem: None,
        family: Family::Schema,
        excluded: None,
        table_layout: None,
        index_layout: None,
        autoindex: None,
        row: None,
    }
}

/// What a schema row says that its object is.
#[must_use]
pub fn hint_of(row: &SchemaRow) -> Hint {
    match row.kind.to_ascii_lowercase().as_slice() {
        b"table" if row.root.is_none_or(|r| r == 0) && row.sql.as_ref().is_some_and(|s| mentions_virtual(s)) => Hint::Virtual,
        b"table" => Hint::Table,
        b"index" => Hint::Index,
        b"view" => Hint::View,
        b"trigger" => Hint::Trigger,
        _ => Hint::None,
    }
}

/// The declaration of a table that SQLite makes itself.
#[must_use]
pub fn internal_sql(name: &[u8]) -> Option<&'static [u8]> {
    INTERNAL.iter().find(|(n, _)| name.eq_ignore_ascii_case(n)).map(|(_, sql)| *sql)
}

fn read_row(id: ObjectId, row: SchemaRow, findings: &mut Findings) -> Object {
    let at = Site { object: Some(id), ..row.site };
    // SQLite compares it without regard to case.
    let declared = match row.kind.to_ascii_lowercase().as_slice() {
        b"table" => Some(ObjectKind::Table),
        b"index" => Some(ObjectKind::Index),
        b"view" => Some(ObjectKind::View),
        b"trigger" => Some(ObjectKind::Trigger),
        _ => None,
    };
    let hint = hint_of(&row);
    let autoindex = if row.sql.is_none() { autoindex::number(&row.name) } else { None };
    let (mut definition, mut problem) = match &row.sql {
        Some(sql) => {
            let parsed = ddl::parse_as(sql, hint);
            (parsed.definition, parsed.problem)
        }
        None => (Definition::Unknown, None),
    };
    if row.sql.is_none() && autoindex.is_none() {
        let defect = Defect::new(Code::SqlNotParsed, 0, 0, 0);
        problem = Some(TextProblem { defect, words: "there is no text".to_owned() });
    }
    if problem.is_some()
        && let Some(sql) = internal_sql(&row.name)
    {
        definition = ddl::parse(sql).definition;
    }
    if let Some(problem) = &problem {
        findings.add_with(problem.defect, at, problem.words.clone());
    }
    let by_text = match &definition {
        Definition::Table(_) => Some(ObjectKind::Table),
        Definition::Index(_) => Some(ObjectKind::Index),
        Definition::View(_) => Some(ObjectKind::View),
        Definition::Trigger(_) => Some(ObjectKind::Trigger),
        Definition::Virtual(_) => Some(ObjectKind::Virtual),
        Definition::Unknown => None,
    };
    let excluded = (declared.is_none() && by_text.is_none()).then_some(Code::TypeUnknown);
    // The text decides; the type column where the text says nothing. SQLite wants both to say the same.
    let kind = by_text.or(declared).unwrap_or(if autoindex.is_some() { ObjectKind::Index } else { ObjectKind::Table });
    if !row.kind.eq_ignore_ascii_case(kind.word()) {
        findings.add_with(Defect::new(Code::TypeUnknown, 0, 0, 0), at, String::from_utf8_lossy(&row.kind));
    }
    if kind == ObjectKind::Table && !matches!(definition, Definition::Table(_)) {
        definition = Definition::Table(Box::default());
    }
    let root = row.root.and_then(|r| u32::try_from(r).ok()).and_then(PageNo::new).filter(|&p| p != PageNo::ONE).map(RootPage);
    if let Some((code, place)) = row.source.mark() {
        let defect = Defect::new(code, 0, 0, 0);
        if place.is_empty() { findings.add(defect, at) } else { findings.add_with(defect, at, place) }
    }
    if kind.has_tree()
        && root.is_none()
        && matches!(row.source, RowSource::Tree | RowSource::Leaf | RowSource::PageOne)
        && row.hint.is_none()
    {
        let got = row.root.map_or(0, |r| u64::from_ne_bytes(r.to_ne_bytes()));
        findings.add(Defect::new(Code::RootPageBad, 0, got, wide(0)), at);
    }
    let (name, table_name) = (Name::new(&row.name), Name::new(&row.table));
    Object {
        id,
        kind,
        name,
        table_name,
        table: None,
        root: if kind.has_tree() { root } else { None },
        definition,
        problem,
        family: Family::None,
        excluded,
        table_layout: None,
        index_layout: None,
        autoindex,
        row: Some(row),
    }
}

fn mentions_virtual(sql: &[u8]) -> bool {
    ddl::token::tokens(sql).take(40).any(|t| t.is("VIRTUAL") || t.is("USING"))
}

fn claim_name(names: &mut BTreeMap<Vec<u8>, ObjectId>, mut object: Object, findings: &mut Findings) -> Object {
    if object.excluded.is_some() {
        return object;
    }
    match names.entry(object.name.folded()) {
        std::collections::btree_map::Entry::Vacant(free) => {
            free.insert(object.id);
        }
        std::collections::btree_map::Entry::Occupied(_) => {
            findings.add_with(Defect::new(Code::NameTwice, 0, 0, 0), site(&object), object.name.text());
            object.excluded = Some(Code::NameTwice);
        }
    }
    object
}
