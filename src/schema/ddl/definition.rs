//! What CREATE text declares, as owned data.

use crate::expr::name::{Affinity, Collation, Name, StrictType};
use crate::expr::{Expr, Unknown};
use crate::finding::Defect;

/// What was read from CREATE text: always something, and what was wrong with it.
#[derive(Debug, Clone)]
pub struct Parsed {
    /// What the text declares.
    pub definition: Definition,
    /// Why SQLite would not accept the text, if it would not.
    pub problem: Option<TextProblem>,
}

/// Why SQLite does not accept a CREATE text.
#[derive(Debug, Clone)]
pub struct TextProblem {
    /// Finding `sql-not-parsed`; `at` is the byte offset in the text, where it is known.
    pub defect: Defect,
    /// The reason in words.
    pub words: String,
}

/// An object as its CREATE text declares it.
#[derive(Debug, Clone)]
pub enum Definition {
    /// `CREATE TABLE`.
    Table(Box<TableDef>),
    /// `CREATE INDEX`.
    Index(Box<IndexDef>),
    /// `CREATE VIEW`.
    View(Box<ViewDef>),
    /// `CREATE TRIGGER`.
    Trigger(Box<TriggerDef>),
    /// `CREATE VIRTUAL TABLE`.
    Virtual(VirtualDef),
    /// The text is none of these.
    Unknown,
}

/// What SQLite does with a row that breaks a constraint (`ON CONFLICT`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Conflict {
    /// Not declared; the same as ABORT.
    #[default]
    Default,
    /// `ROLLBACK`.
    Rollback,
    /// `ABORT`.
    Abort,
    /// `FAIL`.
    Fail,
    /// `IGNORE`.
    Ignore,
    /// `REPLACE`.
    Replace,
}

/// A table.
#[derive(Debug, Clone, Default)]
pub struct TableDef {
    /// The name in the text; after ALTER TABLE RENAME it is the same as in the schema row.
    pub name: Name,
    /// The columns in declared order.
    pub columns: Vec<ColumnDef>,
    /// The primary key, if one is declared.
    pub primary_key: Option<PrimaryKey>,
    /// The column that is another name of the rowid.
    pub rowid_alias: Option<usize>,
    /// `WITHOUT ROWID`.
    pub without_rowid: bool,
    /// `STRICT`.
    pub strict: bool,
    /// `AUTOINCREMENT`.
    pub autoincrement: bool,
    /// CHECK constraints in the order of the text.
    pub checks: Vec<Check>,
    /// UNIQUE and PRIMARY KEY constraints that have an index, in the order in which SQLite numbers `sqlite_autoindex_T_N`.
    pub unique: Vec<UniqueKey>,
    /// Foreign keys in the order of the text.
    pub foreign_keys: Vec<ForeignKey>,
}

impl TableDef {
    /// The column of this name.
    #[must_use]
    pub fn column(&self, name: &[u8]) -> Option<usize> {
        self.columns.iter().position(|c| c.name.same(name))
    }

    /// What the expressions of its CHECKs and generated columns have that cannot be computed here.
    pub fn unknowns(&self) -> impl Iterator<Item = Unknown> + '_ {
        let checks = self.checks.iter().map(|c| &c.expr);
        let generated = self.columns.iter().filter_map(|c| c.generated.as_ref()).map(|g| &g.expr);
        checks.chain(generated).flat_map(Expr::unknowns)
    }

    /// Whether SQLite refuses the table for one of these: it looks up names when it reads the schema, and allows no subquery.
    #[must_use]
    pub fn has_unresolved(&self) -> bool {
        self.unknowns().any(|u| matches!(u, Unknown::Column(_) | Unknown::Subquery | Unknown::Arguments(_)))
    }
}

/// A column.
#[derive(Debug, Clone)]
pub struct ColumnDef {
    /// Its name.
    pub name: Name,
    /// The declared type as SQLite keeps it, but for white space: runs of it are one space.
    pub decl_type: Option<Vec<u8>>,
    /// What follows from the type.
    pub affinity: Affinity,
    /// The type in a STRICT table.
    pub strict_type: Option<StrictType>,
    /// `NOT NULL`, declared or implied (WITHOUT ROWID and STRICT primary keys).
    pub not_null: Option<Conflict>,
    /// `DEFAULT`.
    pub default: Option<DefaultClause>,
    /// `COLLATE`, BINARY when not declared.
    pub collation: Collation,
    /// `GENERATED ALWAYS AS`.
    pub generated: Option<Generated>,
    /// Whether it is part of the primary key.
    pub primary: bool,
}

impl ColumnDef {
    /// The `hidden` number of `PRAGMA table_xinfo`: 0 ordinary, 2 virtual generated, 3 stored generated.
    #[must_use]
    pub fn hidden(&self) -> u8 {
        match &self.generated {
            None => 0,
            Some(g) if g.stored => 3,
            Some(_) => 2,
        }
    }

    /// Whether records hold a value for it.
    #[must_use]
    pub fn is_stored(&self) -> bool {
        self.generated.as_ref().is_none_or(|g| g.stored)
    }
}

/// A DEFAULT clause.
#[derive(Debug, Clone)]
pub struct DefaultClause {
    /// Its value; constant wherever a short record may need it.
    pub expr: Expr,
}

/// A generated column.
#[derive(Debug, Clone)]
pub struct Generated {
    /// What it is computed from; names are resolved to columns.
    pub expr: Expr,
    /// `STORED` rather than `VIRTUAL`.
    pub stored: bool,
}

/// A CHECK constraint.
#[derive(Debug, Clone)]
pub struct Check {
    /// `CONSTRAINT name`.
    pub name: Option<Name>,
    /// The condition; names are resolved to columns. NULL passes.
    pub expr: Expr,
    /// The condition as written.
    pub text: Vec<u8>,
}

/// A column of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyColumn {
    /// Position of the column in the table.
    pub column: usize,
    /// How its text is compared.
    pub collation: Collation,
    /// `DESC`.
    pub desc: bool,
}

/// The primary key of a table.
#[derive(Debug, Clone)]
pub struct PrimaryKey {
    /// Its columns; in a WITHOUT ROWID table without duplicates.
    pub columns: Vec<KeyColumn>,
    /// `ON CONFLICT`.
    pub conflict: Conflict,
}

/// A UNIQUE or PRIMARY KEY constraint with an index.
#[derive(Debug, Clone)]
pub struct UniqueKey {
    /// The N of `sqlite_autoindex_T_N`.
    pub number: u32,
    /// Its columns.
    pub columns: Vec<KeyColumn>,
    /// Whether it is the primary key. In a WITHOUT ROWID table that index is the table itself and has no schema row.
    pub primary: bool,
    /// `ON CONFLICT`.
    pub conflict: Conflict,
}

/// A foreign key.
#[derive(Debug, Clone)]
pub struct ForeignKey {
    /// The columns of this table.
    pub columns: Vec<usize>,
    /// The parent table.
    pub parent: Name,
    /// The columns of the parent; empty means its primary key.
    pub parent_columns: Vec<Name>,
    /// `ON DELETE CASCADE`.
    pub delete_cascades: bool,
}

/// An index made by CREATE INDEX.
#[derive(Debug, Clone)]
pub struct IndexDef {
    /// Its name in the text.
    pub name: Name,
    /// Its table in the text.
    pub table: Name,
    /// `UNIQUE`.
    pub unique: bool,
    /// What it is over, in order.
    pub columns: Vec<IndexColumn>,
    /// The condition of a partial index; names not yet resolved.
    pub where_clause: Option<Expr>,
}

/// One term of an index.
#[derive(Debug, Clone)]
pub struct IndexColumn {
    /// A column or an expression.
    pub what: IndexTerm,
    /// `COLLATE` at the top of the term.
    pub collation: Option<Collation>,
    /// `DESC`.
    pub desc: bool,
}

/// What an index term is over.
#[derive(Debug, Clone)]
pub enum IndexTerm {
    /// A plain name: a column of the table, or (if there is none and the flag says it is in double quotes) a string.
    Column(Name, bool),
    /// An expression; names not yet resolved.
    Expr(Expr),
}

/// A virtual table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VirtualDef {
    /// Its name in the text.
    pub name: Name,
    /// The module.
    pub module: Name,
    /// The arguments as written, without the white space around them.
    pub args: Vec<Vec<u8>>,
}

/// A view.
#[derive(Debug, Clone)]
pub struct ViewDef {
    /// Its name in the text.
    pub name: Name,
    /// Column names in parentheses behind the name.
    pub columns: Vec<Name>,
    /// The query, where it is of a kind that can be evaluated here; else the reason.
    pub select: Result<Select, String>,
    /// The tables and views it reads, as far as they can be told from the text.
    pub sources: Vec<Name>,
}

/// A query that can be evaluated here: one table, or joins of a few, with a condition.
#[derive(Debug, Clone)]
pub struct Select {
    /// `DISTINCT`.
    pub distinct: bool,
    /// What it yields.
    pub results: Vec<ResultTerm>,
    /// What it reads, left to right.
    pub from: Vec<Source>,
    /// `WHERE`; names not yet resolved.
    pub where_clause: Option<Expr>,
}

/// One result of a query.
#[derive(Debug, Clone)]
pub enum ResultTerm {
    /// An expression with its alias and, for its name without an alias, its text.
    Expr(Expr, Option<Name>),
    /// `*`.
    Star,
    /// `table.*`.
    TableStar(Name),
}

/// One table of a FROM clause.
#[derive(Debug, Clone)]
pub struct Source {
    /// The table or view.
    pub table: Name,
    /// Its alias.
    pub alias: Option<Name>,
    /// How it is joined to what stands left of it.
    pub join: Join,
}

/// How a table is joined.
#[derive(Debug, Clone)]
pub enum Join {
    /// The first table, or a comma, CROSS or INNER JOIN without a condition.
    Cross,
    /// `INNER JOIN … ON`.
    Inner(Expr),
    /// `LEFT JOIN … ON`.
    Left(Option<Expr>),
    /// `[INNER] JOIN … USING (…)`, or LEFT when the flag is set.
    Using(Vec<Name>, bool),
}

/// A trigger.
#[derive(Debug, Clone)]
pub struct TriggerDef {
    /// Its name in the text.
    pub name: Name,
    /// Its table in the text.
    pub table: Name,
    /// The tables and views that its body reads and writes, as far as they can be told from the text.
    pub sources: Vec<Name>,
}
