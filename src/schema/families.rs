//! What belongs together: a virtual table and its shadow tables, SQLite's own tables, tables and their indexes.

use std::collections::BTreeMap;

use super::catalog::{Object, ObjectKind, site};
use super::ddl::{TableDef, VirtualDef};
use crate::expr::name::Name;
use crate::finding::{Code, Defect, Findings};
use crate::ids::ObjectId;

/// What an object is a part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// An ordinary table.
    Table,
    /// An index of an ordinary table.
    Index,
    /// A table in which a full-text index keeps its content (or an index of such a table).
    FtsShadow {
        /// The virtual table.
        of: ObjectId,
        /// Which module.
        module: FtsModule,
        /// Which of its tables.
        part: FtsPart,
    },
    /// A table in which another virtual table keeps its content.
    VirtualShadow {
        /// The virtual table.
        of: ObjectId,
    },
    /// A table that looks exactly like part of a full-text index whose virtual table is gone.
    OrphanShadow {
        /// Which module made it.
        module: FtsModule,
        /// Which of its tables.
        part: FtsPart,
    },
    /// `sqlite_schema`.
    Schema,
    /// `sqlite_sequence`.
    Sequence,
    /// `sqlite_stat1` to `sqlite_stat4`.
    Stat,
    /// Without a tree: a view, trigger or virtual table.
    None,
}

impl Family {
    /// The virtual table it is part of.
    #[must_use]
    pub fn virtual_table(self) -> Option<ObjectId> {
        match self {
            Family::FtsShadow { of, .. } | Family::VirtualShadow { of } => Some(of),
            _ => None,
        }
    }
}

/// Which full-text module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FtsModule {
    /// FTS5.
    Fts5,
    /// FTS3 or FTS4.
    Fts3,
}

/// Which shadow table of a full-text index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FtsPart {
    /// `_content`: user data, where it is there.
    Content,
    /// `_data` of FTS5.
    Data,
    /// `_idx` of FTS5.
    Idx,
    /// `_docsize`.
    Docsize,
    /// `_config` of FTS5.
    Config,
    /// `_segments` of FTS3 and FTS4.
    Segments,
    /// `_segdir` of FTS3 and FTS4.
    Segdir,
    /// `_stat` of FTS4.
    Stat,
}

const FTS5: [(&[u8], FtsPart); 5] = [
    (b"_data", FtsPart::Data),
    (b"_idx", FtsPart::Idx),
    (b"_content", FtsPart::Content),
    (b"_docsize", FtsPart::Docsize),
    (b"_config", FtsPart::Config),
];
const FTS3: [(&[u8], FtsPart); 5] = [
    (b"_content", FtsPart::Content),
    (b"_segments", FtsPart::Segments),
    (b"_segdir", FtsPart::Segdir),
    (b"_docsize", FtsPart::Docsize),
    (b"_stat", FtsPart::Stat),
];
const RTREE: [&[u8]; 3] = [b"_node", b"_parent", b"_rowid"];

/// What a module is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Module {
    Fts5,
    Fts3,
    Fts4,
    Rtree,
    /// Built into SQLite, without tables of its own.
    Bare,
    Unknown,
}

fn module(name: &Name) -> Module {
    match name.as_bytes().to_ascii_lowercase().as_slice() {
        b"fts5" => Module::Fts5,
        b"fts4" => Module::Fts4,
        b"fts3" => Module::Fts3,
        b"rtree" | b"rtree_i32" | b"geopoly" => Module::Rtree,
        b"fts5vocab" | b"fts4aux" | b"fts3tokenize" | b"dbstat" | b"sqlite_dbpage" => Module::Bare,
        _ => Module::Unknown,
    }
}

/// Whether a query can read it without a row in the schema: table-valued functions and SQLite's own names. NEW and OLD are
/// not tables, but stand where one can in damaged text.
pub(super) fn is_builtin_source(name: &Name) -> bool {
    const NAMES: [&[u8]; 14] = [
        b"sqlite_temp_master",
        b"sqlite_temp_schema",
        b"sqlite_master",
        b"sqlite_schema",
        b"json_each",
        b"json_tree",
        b"jsonb_each",
        b"jsonb_tree",
        b"dbstat",
        b"generate_series",
        b"new",
        b"old",
        b"sqlite_stmt",
        b"sqlite_dbpage",
    ];
    NAMES.iter().any(|n| name.same(n)) || name.folded().starts_with(b"pragma_")
}

/// Gives every object its family, and finds shadow tables that are missing or alone.
pub(super) fn assign(objects: &mut [Object], names: &BTreeMap<Vec<u8>, ObjectId>, findings: &mut Findings) {
    for object in objects.iter_mut() {
        object.family = match object.kind {
            ObjectKind::Table if object.id == ObjectId::SCHEMA => Family::Schema,
            ObjectKind::Table if object.name.same(b"sqlite_sequence") => Family::Sequence,
            ObjectKind::Table if is_stat(&object.name) => Family::Stat,
            ObjectKind::Table => Family::Table,
            ObjectKind::Index => Family::Index,
            _ => Family::None,
        };
    }
    let table = |objects: &[Object], base: &Name, suffix: &[u8]| {
        let mut name = base.folded();
        name.extend_from_slice(suffix);
        names.get(&name).copied().filter(|id| objects.get(id.index()).is_some_and(|o| o.kind == ObjectKind::Table))
    };
    let virtuals: Vec<(ObjectId, Name, VirtualDef)> =
        objects.iter().filter(|o| o.excluded.is_none()).filter_map(|o| Some((o.id, o.name.clone(), o.virtual_def()?.clone()))).collect();
    for (id, name, def) in virtuals {
        let mut missing = Vec::new();
        let mut found = Vec::new();
        let mut part = |objects: &[Object], suffix: &[u8], family: Family, needed: bool| match table(objects, &name, suffix) {
            Some(shadow) => found.push((shadow, family)),
            None if needed => missing.push(String::from_utf8_lossy(suffix).into_owned()),
            None => {}
        };
        match module(&def.module) {
            Module::Fts5 => {
                for (suffix, p) in FTS5 {
                    part(objects, suffix, Family::FtsShadow { of: id, module: FtsModule::Fts5, part: p }, fts5_needs(&def, p));
                }
            }
            kind @ (Module::Fts3 | Module::Fts4) => {
                for (suffix, p) in FTS3 {
                    let needed = fts3_needs(&def, p, kind == Module::Fts4);
                    part(objects, suffix, Family::FtsShadow { of: id, module: FtsModule::Fts3, part: p }, needed);
                }
            }
            Module::Rtree => {
                for suffix in RTREE {
                    part(objects, suffix, Family::VirtualShadow { of: id }, true);
                }
            }
            Module::Bare => {}
            Module::Unknown => {
                if let Some(object) = objects.get(id.index()) {
                    findings.add_with(Defect::new(Code::ModuleUnknown, 0, 0, 0), site(object), def.module.text());
                }
            }
        }
        for (shadow, family) in found {
            if let Some(object) = objects.get_mut(shadow.index()) {
                object.family = family;
            }
        }
        if let Some(object) = objects.get(id.index()) {
            for suffix in missing {
                findings.add_with(Defect::new(Code::ShadowTableMissing, 0, 0, 0), site(object), format!("{name}{suffix}"));
            }
        }
    }
    orphans(objects, names, findings);
    // An index is of the family of its table.
    let families: Vec<Family> = objects.iter().map(|o| o.family).collect();
    for object in objects.iter_mut().filter(|o| o.kind == ObjectKind::Index) {
        let of_table = object.table.and_then(|t| families.get(t.index())).copied();
        if let Some(family @ (Family::FtsShadow { .. } | Family::VirtualShadow { .. } | Family::OrphanShadow { .. })) = of_table {
            object.family = family;
        }
    }
}

fn is_stat(name: &Name) -> bool {
    [b"sqlite_stat1", b"sqlite_stat2", b"sqlite_stat3", b"sqlite_stat4"].iter().any(|n| name.same(*n))
}

/// The options of FTS5 in the order in which it compares a name with them: any start of one names it.
const FTS5_OPTIONS: [&str; 10] = [
    "prefix",
    "tokenize",
    "content",
    "contentless_delete",
    "contentless_unindexed",
    "content_rowid",
    "columnsize",
    "locale",
    "detail",
    "tokendata",
];

/// The value of an option `name=value` among the arguments of a virtual table, without its quotes. FTS5 takes names that are
/// cut short.
#[must_use]
pub fn option(def: &VirtualDef, name: &str) -> Option<Vec<u8>> {
    let cut_short = module(&def.module) == Module::Fts5;
    def.args.iter().find_map(|arg| {
        let (key, value) = key_and_value(arg)?;
        let starts = |full: &&&str| full.as_bytes().get(..key.len()).is_some_and(|start| start.eq_ignore_ascii_case(key));
        let means = if cut_short { FTS5_OPTIONS.iter().find(starts).is_some_and(|full| *full == name) } else { false };
        if !means && !key.eq_ignore_ascii_case(name.as_bytes()) {
            return None;
        }
        Some(super::ddl::token::unquote(value))
    })
}

/// An argument that is an option, at its `=`. What begins with a quote is a column.
fn key_and_value(arg: &[u8]) -> Option<(&[u8], &[u8])> {
    let (key, value) = arg.split_at_checked(arg.iter().position(|&b| b == b'=')?)?;
    let key = key.trim_ascii();
    let is_word = !key.is_empty() && key.iter().all(|&b| b >= 0x80 || b == b'_' || b.is_ascii_alphanumeric());
    is_word.then(|| (key, value.get(1..).unwrap_or_default().trim_ascii()))
}

/// Whether a column of an FTS5 table is UNINDEXED.
fn has_unindexed(def: &VirtualDef) -> bool {
    const WORD: &[u8] = b"unindexed";
    def.args.iter().filter(|a| key_and_value(a).is_none()).any(|arg| {
        let arg = arg.trim_ascii();
        let (name, word) = arg.split_at_checked(arg.len().saturating_sub(WORD.len())).unwrap_or_default();
        word.eq_ignore_ascii_case(WORD) && name.last().is_some_and(|b| b" \"'`]".contains(b))
    })
}

/// Whether a full-text table keeps its text nowhere but in its index.
#[must_use]
pub fn is_contentless(def: &VirtualDef) -> bool {
    matches!(module(&def.module), Module::Fts5 | Module::Fts4) && option(def, "content").is_some_and(|c| c.is_empty())
}

/// The CREATE text that FTS5 gives a shadow table of this name. `values` counts the columns of `%_content` behind the id;
/// `origin` is for the `%_docsize` of a contentless table that takes deletes.
#[must_use]
pub fn fts5_sql(table: &str, part: FtsPart, values: usize, origin: bool) -> String {
    let body = match part {
        FtsPart::Data => "(id INTEGER PRIMARY KEY, block BLOB)".to_owned(),
        FtsPart::Idx => "(segid, term, pgno, PRIMARY KEY(segid, term)) WITHOUT ROWID".to_owned(),
        FtsPart::Content => format!("(id INTEGER PRIMARY KEY{})", (0..values).map(|i| format!(", c{i}")).collect::<String>()),
        FtsPart::Docsize if origin => "(id INTEGER PRIMARY KEY, sz BLOB, origin INTEGER)".to_owned(),
        FtsPart::Docsize => "(id INTEGER PRIMARY KEY, sz BLOB)".to_owned(),
        _ => "(k PRIMARY KEY, v) WITHOUT ROWID".to_owned(),
    };
    format!("CREATE TABLE '{}'{body}", table.replace('\'', "''"))
}

fn fts5_needs(def: &VirtualDef, part: FtsPart) -> bool {
    match part {
        FtsPart::Content => match option(def, "content") {
            None => true,
            // Only values of UNINDEXED columns would be in it.
            Some(source) => source.is_empty() && option(def, "contentless_unindexed").is_some_and(|v| v != b"0") && has_unindexed(def),
        },
        FtsPart::Docsize => option(def, "columnsize").is_none_or(|v| v != b"0"),
        _ => true,
    }
}

fn fts3_needs(def: &VirtualDef, part: FtsPart, fts4: bool) -> bool {
    match part {
        FtsPart::Content => option(def, "content").is_none(),
        FtsPart::Docsize => fts4 && option(def, "matchinfo").is_none_or(|v| !v.eq_ignore_ascii_case(b"fts3")),
        FtsPart::Stat => fts4,
        _ => true,
    }
}

/// Sets of tables that have exactly the names and declarations of the shadow tables of one full-text index, without it.
fn orphans(objects: &mut [Object], names: &BTreeMap<Vec<u8>, ObjectId>, findings: &mut Findings) {
    let mut found: Vec<(ObjectId, Family)> = Vec::new();
    for object in objects.iter().filter(|o| o.family == Family::Table) {
        let (suffix, module, needed, all): (&[u8], _, &[&[u8]], _) = if object.name.folded().ends_with(b"_data") {
            (b"_data", FtsModule::Fts5, &[b"_data", b"_idx", b"_config"], FTS5)
        } else if object.name.folded().ends_with(b"_segdir") {
            (b"_segdir", FtsModule::Fts3, &[b"_segdir", b"_segments"], FTS3)
        } else {
            continue;
        };
        let folded = object.name.folded();
        let Some(base) = folded.strip_suffix(suffix) else { continue };
        let member = |suffix: &[u8], part: FtsPart| {
            let id = *names.get(&[base, suffix].concat())?;
            let o = objects.get(id.index())?;
            (o.family == Family::Table && has_shape(o.table_def()?, module, part)).then_some(id)
        };
        let whole = all.iter().filter(|(s, _)| needed.contains(s)).all(|(s, p)| member(s, *p).is_some());
        if whole {
            found.extend(all.iter().filter_map(|(s, p)| Some((member(s, *p)?, Family::OrphanShadow { module, part: *p }))));
        }
    }
    for (id, family) in found {
        let Some(object) = objects.get_mut(id.index()) else { continue };
        object.family = family;
        // The text is data: it stays as the ordinary table that it is without its virtual table.
        if matches!(family, Family::OrphanShadow { part: FtsPart::Content, .. }) {
            continue;
        }
        object.excluded.get_or_insert(Code::ShadowOrphan);
        findings.add_with(Defect::new(Code::ShadowOrphan, 0, 0, 0), site(object), object.name.text());
    }
}

/// Whether a table is declared exactly as the module declares this shadow table.
fn has_shape(table: &TableDef, module: FtsModule, part: FtsPart) -> bool {
    let columns = |expected: &[&str]| {
        table.columns.len() == expected.len() && table.columns.iter().zip(expected).all(|(c, n)| c.name.same(n.as_bytes()))
    };
    let rowid = table.rowid_alias == Some(0) && !table.without_rowid;
    let numbered = |key: &str| {
        rowid
            && table.columns.len() > 1
            && table.columns.iter().enumerate().all(|(i, c)| {
                if i == 0 { c.name.same(key.as_bytes()) } else { matches!(c.name.as_bytes(), [b'c' | b'l', b'0'..=b'9', ..]) }
            })
    };
    match (module, part) {
        (FtsModule::Fts5, FtsPart::Data) => rowid && columns(&["id", "block"]),
        (FtsModule::Fts5, FtsPart::Idx) => table.without_rowid && columns(&["segid", "term", "pgno"]),
        (FtsModule::Fts5, FtsPart::Docsize) => rowid && (columns(&["id", "sz"]) || columns(&["id", "sz", "origin"])),
        (FtsModule::Fts5, FtsPart::Config) => table.without_rowid && columns(&["k", "v"]),
        (FtsModule::Fts5, FtsPart::Content) => numbered("id"),
        (FtsModule::Fts3, FtsPart::Content) => numbered("docid"),
        (FtsModule::Fts3, FtsPart::Segments) => rowid && columns(&["blockid", "block"]),
        (FtsModule::Fts3, FtsPart::Segdir) => columns(&["level", "idx", "start_block", "leaves_end_block", "end_block", "root"]),
        (FtsModule::Fts3, FtsPart::Docsize) => rowid && columns(&["docid", "size"]),
        (FtsModule::Fts3, FtsPart::Stat) => rowid && columns(&["id", "value"]),
        _ => false,
    }
}
