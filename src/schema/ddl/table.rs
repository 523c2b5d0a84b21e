//! Puts a table together from its clauses in the order in which SQLite reads them.
//!
//! The order matters: it gives the numbers of the automatic indexes, and decides which of two equal keys stays.

use std::collections::BTreeMap;

use super::definition::{Check, ColumnDef, Conflict, DefaultClause, ForeignKey, Generated, KeyColumn, PrimaryKey, TableDef, UniqueKey};
use crate::expr::name::{Affinity, Collation, Name, StrictType};
use crate::expr::{ColumnRef, Expr, Scope};

/// SQLite's own bound on the columns of a table (`SQLITE_MAX_COLUMN` can be raised to this, not further).
pub const MAX_COLUMNS: usize = 32_767;

/// A column of a key as written: its name, `COLLATE`, `DESC`.
#[derive(Debug, Clone)]
pub(super) struct KeyTerm {
    pub name: Name,
    pub collation: Option<Name>,
    pub desc: bool,
}

/// A table under construction.
#[derive(Debug, Default)]
pub(super) struct TableBuilder {
    table: TableDef,
    by_name: BTreeMap<Vec<u8>, usize>,
    primary_seen: bool,
    pk_conflict: Conflict,
    pk_desc: bool,
    problem: Option<String>,
}

impl TableBuilder {
    pub fn new(name: Name) -> TableBuilder {
        TableBuilder { table: TableDef { name, ..TableDef::default() }, ..TableBuilder::default() }
    }

    /// Records why SQLite would refuse the table; the first reason stays.
    pub fn problem(&mut self, words: impl Into<String>) {
        if self.problem.is_none() {
            self.problem = Some(words.into());
        }
    }

    pub fn column_count(&self) -> usize {
        self.table.columns.len()
    }

    pub fn column_index(&self, name: &[u8]) -> Option<usize> {
        self.by_name.get(&name.to_ascii_lowercase()).copied()
    }

    /// Adds a column; a second one of the same name is kept, and is a problem.
    pub fn add_column(&mut self, name: Name, decl_type: Option<Vec<u8>>) {
        if self.table.columns.len() >= MAX_COLUMNS {
            self.problem("more columns than a table can have");
            return;
        }
        let index = self.table.columns.len();
        if self.by_name.insert(name.folded(), index).is_some() {
            self.problem(format!("duplicate column name: {name}"));
        }
        let decl_type = decl_type.map(unquote_type).filter(|t| !t.is_empty());
        let affinity = Affinity::of_type(decl_type.as_deref().unwrap_or_default());
        self.table.columns.push(ColumnDef {
            name,
            affinity,
            strict_type: None,
            decl_type,
            not_null: None,
            default: None,
            collation: Collation::Binary,
            generated: None,
            primary: false,
        });
    }

    fn last(&mut self) -> Option<&mut ColumnDef> {
        self.table.columns.last_mut()
    }

    pub fn not_null(&mut self, conflict: Conflict) {
        if let Some(column) = self.last() {
            column.not_null = Some(conflict);
        }
    }

    pub fn default_clause(&mut self, expr: Expr) {
        if self.last().is_some_and(|c| c.generated.is_some()) {
            self.problem("cannot use DEFAULT on a generated column");
        }
        if let Some(column) = self.last() {
            column.default = Some(DefaultClause { expr });
        }
    }

    pub fn generated(&mut self, expr: Expr, stored: bool) {
        if self.last().is_some_and(|c| c.default.is_some() || c.primary || c.generated.is_some()) {
            self.problem("a generated column cannot have DEFAULT or be part of the PRIMARY KEY");
        }
        if let Some(column) = self.last() {
            column.generated = Some(Generated { expr, stored });
        }
    }

    /// `COLLATE` of the last column. An index that a UNIQUE or PRIMARY KEY before it made takes it over.
    pub fn collate(&mut self, name: &Name) {
        let collation = Collation::named(name);
        let Some(index) = self.table.columns.len().checked_sub(1) else { return };
        if let Some(column) = self.last() {
            column.collation = collation.clone();
        }
        for key in &mut self.table.unique {
            if let Some(first) = key.columns.first_mut()
                && first.column == index
            {
                first.collation = collation.clone();
            }
        }
    }

    pub fn check(&mut self, name: Option<Name>, expr: Expr) {
        self.table.checks.push(Check { name, expr, text: Vec::new() });
    }

    pub fn foreign_key(&mut self, columns: Option<Vec<Name>>, parent: Name, parent_columns: Vec<Name>, delete_cascades: bool) {
        let columns: Vec<usize> = match columns {
            None => self.table.columns.len().checked_sub(1).into_iter().collect(),
            Some(names) => {
                let found: Vec<_> = names.iter().map(|n| self.column_index(n.as_bytes())).collect();
                if found.iter().any(Option::is_none) {
                    self.problem("unknown column in foreign key definition");
                }
                found.into_iter().flatten().collect()
            }
        };
        if !parent_columns.is_empty() && parent_columns.len() != columns.len() {
            self.problem("number of columns in foreign key does not match the number of columns in the referenced table");
        }
        self.table.foreign_keys.push(ForeignKey { columns, parent, parent_columns, delete_cascades });
    }

    /// `PRIMARY KEY` on the last column (`terms` is `None`, with its order) or as a table constraint.
    pub fn primary_key(&mut self, terms: Option<&[KeyTerm]>, desc: bool, conflict: Conflict, autoincrement: bool) {
        if std::mem::replace(&mut self.primary_seen, true) {
            let words = format!("table \"{}\" has more than one primary key", self.table.name);
            self.problem(words);
            return;
        }
        let columns = self.key_columns(terms, desc);
        for key in &columns {
            let Some(column) = self.table.columns.get_mut(key.column) else { continue };
            column.primary = true;
            if column.generated.is_some() {
                self.problem("generated columns cannot be part of the PRIMARY KEY");
            }
        }
        let single = terms.is_none_or(|t| t.len() == 1);
        let alias = columns.first().filter(|_| single).map(|k| k.column).filter(|&c| {
            self.table.columns.get(c).and_then(|c| c.decl_type.as_deref()).is_some_and(|t| t.eq_ignore_ascii_case(b"INTEGER"))
        });
        // Only the order written on the column itself keeps INTEGER PRIMARY KEY from being the rowid.
        if let Some(alias) = alias
            && !(desc && terms.is_none())
        {
            self.table.rowid_alias = Some(alias);
            self.table.autoincrement = autoincrement;
            self.pk_conflict = conflict;
            self.pk_desc = columns.first().is_some_and(|k| k.desc);
        } else {
            if autoincrement {
                self.problem("AUTOINCREMENT is only allowed on an INTEGER PRIMARY KEY");
            }
            self.add_key(columns.clone(), true, conflict);
        }
        self.table.primary_key = Some(PrimaryKey { columns, conflict });
    }

    /// `UNIQUE` on the last column (`terms` is `None`) or as a table constraint.
    pub fn unique(&mut self, terms: Option<&[KeyTerm]>, conflict: Conflict) {
        let columns = self.key_columns(terms, false);
        self.add_key(columns, false, conflict);
    }

    fn key_columns(&mut self, terms: Option<&[KeyTerm]>, desc: bool) -> Vec<KeyColumn> {
        let Some(terms) = terms else {
            let Some(index) = self.table.columns.len().checked_sub(1) else { return Vec::new() };
            let collation = self.table.columns.get(index).map(|c| c.collation.clone()).unwrap_or_default();
            return vec![KeyColumn { column: index, collation, desc }];
        };
        let mut out = Vec::with_capacity(terms.len());
        for term in terms {
            match self.column_index(term.name.as_bytes()) {
                Some(column) => {
                    let declared = self.table.columns.get(column).map(|c| c.collation.clone()).unwrap_or_default();
                    let collation = term.collation.as_ref().map_or(declared, Collation::named);
                    out.push(KeyColumn { column, collation, desc: term.desc });
                }
                None => self.problem(format!("table {} has no column named {}", self.table.name, term.name)),
            }
        }
        out
    }

    /// Adds an automatic index unless an equal one is there: same columns and collations in the same order, whatever DESC says.
    fn add_key(&mut self, columns: Vec<KeyColumn>, primary: bool, conflict: Conflict) {
        if columns.is_empty() {
            return;
        }
        let equal = self.table.unique.iter().position(|key| {
            key.columns.len() == columns.len()
                && key.columns.iter().zip(&columns).all(|(a, b)| a.column == b.column && a.collation.same(&b.collation))
        });
        if let Some(key) = equal.and_then(|i| self.table.unique.get_mut(i)) {
            let differs = key.conflict != conflict && key.conflict != Conflict::Default && conflict != Conflict::Default;
            if key.conflict == Conflict::Default {
                key.conflict = conflict;
            }
            key.primary |= primary;
            if differs {
                self.problem("conflicting ON CONFLICT clauses specified");
            }
            return;
        }
        let number = u32::try_from(self.table.unique.len()).unwrap_or(u32::MAX).saturating_add(1);
        self.table.unique.push(UniqueKey { number, columns, primary, conflict });
    }

    /// Applies the table options and resolves the names in its expressions.
    pub fn finish(mut self, without_rowid: bool, strict: bool) -> (TableDef, Option<String>) {
        self.table.without_rowid = without_rowid;
        self.table.strict = strict;
        if strict {
            self.apply_strict();
        }
        if without_rowid {
            self.apply_without_rowid();
        }
        if !self.table.columns.is_empty() && self.table.columns.iter().all(|c| c.generated.is_some()) {
            self.problem("must have at least one non-generated column");
        }
        let scope = Columns { table: &self.table, by_name: &self.by_name, rowid: false };
        let with_rowid = Columns { rowid: !without_rowid, ..scope };
        let mut checks = self.table.checks.clone();
        for check in &mut checks {
            check.expr.resolve(&with_rowid);
        }
        let generated: Vec<_> = self
            .table
            .columns
            .iter()
            .map(|c| {
                let mut g = c.generated.clone();
                if let Some(g) = &mut g {
                    g.expr.resolve(&scope);
                }
                g
            })
            .collect();
        self.table.checks = checks;
        for (column, generated) in self.table.columns.iter_mut().zip(generated) {
            column.generated = generated;
        }
        (self.table, self.problem)
    }

    fn apply_strict(&mut self) {
        let alias = self.table.rowid_alias;
        let mut problem = None;
        for (i, column) in self.table.columns.iter_mut().enumerate() {
            column.strict_type = column.decl_type.as_deref().and_then(StrictType::of_type);
            match column.strict_type {
                None => {
                    let what = match &column.decl_type {
                        None => format!("missing datatype for {}", column.name),
                        Some(t) => format!("unknown datatype for {}: \"{}\"", column.name, String::from_utf8_lossy(t)),
                    };
                    problem.get_or_insert(what);
                }
                Some(StrictType::Any) => column.affinity = Affinity::Blob,
                Some(_) => {}
            }
            if column.primary && alias != Some(i) && column.not_null.is_none() {
                column.not_null = Some(Conflict::Abort);
            }
        }
        if let Some(words) = problem {
            self.problem(words);
        }
    }

    fn apply_without_rowid(&mut self) {
        if self.table.autoincrement {
            self.problem("AUTOINCREMENT not allowed on WITHOUT ROWID tables");
        }
        if !self.primary_seen {
            let words = format!("PRIMARY KEY missing on table {}", self.table.name);
            self.problem(words);
        }
        for column in self.table.columns.iter_mut().filter(|c| c.primary && c.not_null.is_none()) {
            column.not_null = Some(Conflict::Abort);
        }
        if let Some(alias) = self.table.rowid_alias.take() {
            // The key becomes an index only now, behind all others.
            let collation = self.table.columns.get(alias).map(|c| c.collation.clone()).unwrap_or_default();
            let columns = vec![KeyColumn { column: alias, collation, desc: self.pk_desc }];
            self.add_key(columns, true, self.pk_conflict);
        }
        let mut deduplicated = None;
        if let Some(key) = self.table.unique.iter_mut().find(|k| k.primary) {
            let mut kept: Vec<KeyColumn> = Vec::with_capacity(key.columns.len());
            for column in &key.columns {
                if !kept.iter().any(|k| k.column == column.column && k.collation.same(&column.collation)) {
                    kept.push(column.clone());
                }
            }
            key.columns.clone_from(&kept);
            deduplicated = Some(kept);
        }
        if let (Some(key), Some(columns)) = (&mut self.table.primary_key, deduplicated) {
            key.columns = columns;
        }
    }
}

/// A type that is one quoted token loses its quotes, unless there are others in it.
fn unquote_type(text: Vec<u8>) -> Vec<u8> {
    let is_quote = |b: &u8| matches!(b, b'"' | b'\'' | b'`' | b'[');
    match text.as_slice() {
        [first, inner @ .., _] if is_quote(first) && !inner.iter().any(is_quote) => inner.to_vec(),
        _ => text,
    }
}

/// The columns of a table as a scope for its own expressions.
#[derive(Clone, Copy)]
struct Columns<'a> {
    table: &'a TableDef,
    by_name: &'a BTreeMap<Vec<u8>, usize>,
    rowid: bool,
}

impl Scope for Columns<'_> {
    fn lookup(&self, table: Option<&Name>, name: &Name) -> Option<Expr> {
        if table.is_some_and(|t| !t.same(self.table.name.as_bytes())) {
            return None;
        }
        match self.by_name.get(&name.folded()) {
            Some(&index) => column_expr(self.table, index),
            None if self.rowid && is_rowid_name(name) => Some(Expr::Rowid),
            None => None,
        }
    }
}

/// The expression that reads a column of a table.
pub(crate) fn column_expr(table: &TableDef, index: usize) -> Option<Expr> {
    let column = table.columns.get(index)?;
    let affinity = if table.rowid_alias == Some(index) { Affinity::Integer } else { column.affinity };
    Some(Expr::Column(Box::new(ColumnRef { index, affinity, collation: column.collation.clone() })))
}

/// Whether a name means the rowid where no column has it.
pub(crate) fn is_rowid_name(name: &Name) -> bool {
    name.same(b"rowid") || name.same(b"oid") || name.same(b"_rowid_")
}

/// A table as a scope for expressions from elsewhere: indexes, views, triggers.
#[derive(Debug, Clone, Copy)]
pub struct TableScope<'a> {
    /// The table.
    pub table: &'a TableDef,
    /// Another name it has there.
    pub alias: Option<&'a Name>,
    /// Whether `rowid` means its rowid.
    pub rowid: bool,
}

impl Scope for TableScope<'_> {
    fn lookup(&self, table: Option<&Name>, name: &Name) -> Option<Expr> {
        let called = self.alias.unwrap_or(&self.table.name);
        if table.is_some_and(|t| !t.same(called.as_bytes())) {
            return None;
        }
        match self.table.column(name.as_bytes()) {
            Some(index) => column_expr(self.table, index),
            None if self.rowid && !self.table.without_rowid && is_rowid_name(name) => Some(Expr::Rowid),
            None => None,
        }
    }
}
