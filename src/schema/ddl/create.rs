//! Statements of the SQL parser, taken over into our own definitions.

use sqlite3_parser::ast;

use super::definition::{Conflict, Definition, IndexColumn, IndexDef, IndexTerm, Join, ResultTerm, Select, Source, TableDef};
use super::expression::Taker;
use super::table::{KeyTerm, TableBuilder};
use super::token::Kind;
use crate::expr::name::{Collation, Name};
use crate::expr::{Expr, Unknown};

impl Taker {
    /// `CREATE TABLE`, with the reason why SQLite would refuse it although it parses.
    pub fn table(self, name: &ast::QualifiedName<'_>, body: &ast::CreateTableBody<'_>) -> (TableDef, Option<String>) {
        let mut builder = TableBuilder::new(self.name(name.name.0));
        match body {
            ast::CreateTableBody::AsSelect(_) => {
                // SQLite never stores this form: it writes the plain column list that results.
                builder.problem("CREATE TABLE AS SELECT in the schema");
                builder.finish(false, false)
            }
            ast::CreateTableBody::ColumnsAndConstraints { columns, constraints, flags } => {
                for column in columns {
                    self.column_definition(&mut builder, column);
                }
                for constraint in constraints.unwrap_or_default() {
                    self.table_constraint(&mut builder, constraint);
                }
                builder.finish(flags.contains(ast::TabFlags::WithoutRowid), flags.contains(ast::TabFlags::Strict))
            }
        }
    }

    fn column_definition(self, builder: &mut TableBuilder, column: &ast::ColumnDefinition<'_>) {
        builder.add_column(self.name(column.col_name.0), column.col_type.as_ref().and_then(|t| self.type_text(t)));
        for named in column.constraints {
            match &named.constraint {
                ast::ColumnConstraint::PrimaryKey { order, conflict_clause, auto_increment } => {
                    builder.primary_key(None, *order == Some(ast::SortOrder::Desc), conflict(*conflict_clause), *auto_increment);
                }
                ast::ColumnConstraint::NotNull { nullable: false, conflict_clause } => builder.not_null(conflict(*conflict_clause)),
                ast::ColumnConstraint::NotNull { nullable: true, .. } | ast::ColumnConstraint::Defer(_) => {}
                ast::ColumnConstraint::Unique(conflict_clause) => builder.unique(None, conflict(*conflict_clause)),
                ast::ColumnConstraint::Check(expr) => builder.check(named.name.as_ref().map(|n| self.name(n.0)), self.expr(expr)),
                ast::ColumnConstraint::Default(expr) => {
                    let value = self.expr(expr);
                    // Only without parentheses is a name a string.
                    let plain = matches!(value, Expr::Name(_)) && !matches!(expr, ast::Expr::Parenthesized(_));
                    if !plain && depends_on_row(&value) {
                        builder.problem(not_constant(&self.name(column.col_name.0)));
                    }
                    builder.default_clause(default_value(value));
                }
                ast::ColumnConstraint::Collate { collation_name } => builder.collate(&self.name(collation_name.0)),
                ast::ColumnConstraint::ForeignKey { clause, .. } => self.foreign_key(builder, None, clause),
                ast::ColumnConstraint::Generated { expr, typ } => {
                    let stored = match typ {
                        Some(id) if id.0.eq_ignore_ascii_case("stored") => true,
                        Some(id) if id.0.eq_ignore_ascii_case("virtual") => false,
                        None => false,
                        Some(_) => {
                            builder.problem("error in generated column");
                            false
                        }
                    };
                    builder.generated(self.expr(expr), stored);
                }
            }
        }
    }

    fn table_constraint(self, builder: &mut TableBuilder, named: &ast::NamedTableConstraint<'_>) {
        match &named.constraint {
            ast::TableConstraint::PrimaryKey { columns, auto_increment, conflict_clause } => {
                let terms = self.key_terms(builder, columns);
                builder.primary_key(Some(&terms), false, conflict(*conflict_clause), *auto_increment);
            }
            ast::TableConstraint::Unique { columns, conflict_clause } => {
                let terms = self.key_terms(builder, columns);
                builder.unique(Some(&terms), conflict(*conflict_clause));
            }
            ast::TableConstraint::Check(expr, _) => builder.check(named.name.as_ref().map(|n| self.name(n.0)), self.expr(expr)),
            ast::TableConstraint::ForeignKey { columns, clause, .. } => {
                self.foreign_key(builder, Some(columns.iter().map(|c| self.name(c.col_name.0)).collect()), clause);
            }
        }
    }

    fn foreign_key(self, builder: &mut TableBuilder, columns: Option<Vec<Name>>, clause: &ast::ForeignKeyClause<'_>) {
        let parents = clause.columns.unwrap_or_default().iter().map(|c| self.name(c.col_name.0)).collect();
        let cascades = clause.args.iter().any(|a| matches!(a, ast::RefArg::OnDelete(ast::RefAct::Cascade)));
        builder.foreign_key(columns, self.name(clause.tbl_name.0), parents, cascades);
    }

    fn key_terms(self, builder: &mut TableBuilder, columns: &[ast::SortedColumn<'_>]) -> Vec<KeyTerm> {
        let mut out = Vec::with_capacity(columns.len());
        for column in columns {
            if column.nulls.is_some() {
                builder.problem("unsupported use of NULLS FIRST or LAST");
            }
            let (inner, collation) = peel_collate(&column.expr);
            match plain_name(inner) {
                Some(token) => out.push(KeyTerm {
                    name: self.name(token),
                    collation: collation.map(|c| self.name(c)),
                    desc: column.order == Some(ast::SortOrder::Desc),
                }),
                None => builder.problem("expressions prohibited in PRIMARY KEY and UNIQUE constraints"),
            }
        }
        out
    }

    /// `CREATE INDEX`.
    pub fn index(
        self,
        unique: bool,
        name: &ast::QualifiedName<'_>,
        table: &ast::Name<'_>,
        columns: &[ast::SortedColumn<'_>],
        where_clause: Option<&ast::Expr<'_>>,
    ) -> (IndexDef, Option<String>) {
        let mut problem = None;
        let columns = columns
            .iter()
            .map(|column| {
                if column.nulls.is_some() {
                    problem = Some("unsupported use of NULLS FIRST or LAST".to_owned());
                }
                let (inner, collation) = peel_collate(&column.expr);
                let what = match plain_name(inner) {
                    Some(token) => IndexTerm::Column(self.name(token), token.starts_with('"')),
                    None => IndexTerm::Expr(self.expr(inner)),
                };
                let collation = collation.map(|c| Collation::named(&self.name(c)));
                IndexColumn { what, collation, desc: column.order == Some(ast::SortOrder::Desc) }
            })
            .collect();
        let where_clause = where_clause.map(|w| self.expr(w));
        (IndexDef { name: self.name(name.name.0), table: self.name(table.0), unique, columns, where_clause }, problem)
    }

    /// The query of a view, if it is of a kind that can be evaluated here.
    pub fn select(self, select: &ast::Select<'_>) -> Result<Select, String> {
        if select.with.is_some() {
            return Err("WITH is not evaluated here".to_owned());
        }
        if select.limit.is_some() {
            return Err("LIMIT is not evaluated here".to_owned());
        }
        if select.body.compounds.is_some() {
            return Err("UNION, INTERSECT and EXCEPT are not evaluated here".to_owned());
        }
        let ast::OneSelect::Select { distinctness, columns, from, where_clause, group_by, having, window_clause } = &select.body.select
        else {
            return Err("VALUES is not evaluated here".to_owned());
        };
        if group_by.is_some() || having.is_some() || window_clause.is_some() {
            return Err("GROUP BY, HAVING and WINDOW are not evaluated here".to_owned());
        }
        let Some(from) = from else { return Err("a query without FROM is not evaluated here".to_owned()) };
        let results = columns
            .iter()
            .map(|c| match c {
                ast::ResultColumn::Star => ResultTerm::Star,
                ast::ResultColumn::TableStar(t) => ResultTerm::TableStar(self.name(t.0)),
                ast::ResultColumn::Expr(e, alias) => {
                    let alias = alias.as_ref().map(|(ast::As::As(n) | ast::As::Elided(n))| self.name(n.0));
                    ResultTerm::Expr(self.expr(e), alias)
                }
            })
            .collect();
        let mut sources = Vec::new();
        if let Some(first) = from.select {
            sources.push(self.source(first, Join::Cross)?);
        }
        for joined in from.joins.iter().flatten() {
            let join = self.join(joined)?;
            sources.push(self.source(&joined.table, join)?);
        }
        Ok(Select {
            distinct: *distinctness == Some(ast::Distinctness::Distinct),
            results,
            from: sources,
            where_clause: where_clause.map(|w| self.expr(w)),
        })
    }

    fn source(self, table: &ast::SelectTable<'_>, join: Join) -> Result<Source, String> {
        match table {
            ast::SelectTable::Table(name, alias, _) => {
                let alias = alias.as_ref().map(|(ast::As::As(n) | ast::As::Elided(n))| self.name(n.0));
                Ok(Source { table: self.name(name.name.0), alias, join })
            }
            ast::SelectTable::TableCall(..) => Err("a table-valued function is not evaluated here".to_owned()),
            ast::SelectTable::Select(..) | ast::SelectTable::Sub(..) => Err("a subquery in FROM is not evaluated here".to_owned()),
        }
    }

    fn join(self, joined: &ast::JoinedSelectTable<'_>) -> Result<Join, String> {
        let left = match joined.operator {
            ast::JoinOperator::Comma => false,
            ast::JoinOperator::TypedJoin(None) => false,
            ast::JoinOperator::TypedJoin(Some(kind)) => {
                if kind.intersects(ast::JoinType::RIGHT | ast::JoinType::NATURAL) {
                    return Err("RIGHT, FULL and NATURAL joins are not evaluated here".to_owned());
                }
                kind.contains(ast::JoinType::LEFT)
            }
        };
        Ok(match &joined.constraint {
            None if left => Join::Left(None),
            None => Join::Cross,
            Some(ast::JoinConstraint::On(e)) if left => Join::Left(Some(self.expr(e))),
            Some(ast::JoinConstraint::On(e)) => Join::Inner(self.expr(e)),
            Some(ast::JoinConstraint::Using(names)) => Join::Using(names.iter().map(|n| self.name(n.0)).collect(), left),
        })
    }
}

/// The term without `COLLATE` around it, and the outermost collation.
fn peel_collate<'a, 'b>(e: &'a ast::Expr<'b>) -> (&'a ast::Expr<'b>, Option<&'a str>) {
    let mut rest = e;
    let mut collation = None;
    loop {
        match rest {
            ast::Expr::Collate(inner, name) => {
                collation.get_or_insert(*name);
                rest = inner;
            }
            ast::Expr::Parenthesized(list) => match list.as_slice() {
                [one] => rest = one,
                _ => return (rest, collation),
            },
            _ => return (rest, collation),
        }
    }
}

/// The token of a term that is only a name. SQLite takes a string in quotes there for a name, too.
fn plain_name<'a>(e: &'a ast::Expr<'_>) -> Option<&'a str> {
    match e {
        ast::Expr::Id(id) => Some(id.0),
        ast::Expr::Name(name) => Some(name.0),
        ast::Expr::Literal(ast::Literal::String(text)) => Some(text),
        _ => None,
    }
}

fn conflict(c: Option<ast::ResolveType>) -> Conflict {
    match c {
        None => Conflict::Default,
        Some(ast::ResolveType::Rollback) => Conflict::Rollback,
        Some(ast::ResolveType::Abort) => Conflict::Abort,
        Some(ast::ResolveType::Fail) => Conflict::Fail,
        Some(ast::ResolveType::Ignore) => Conflict::Ignore,
        Some(ast::ResolveType::Replace) => Conflict::Replace,
    }
}

/// A bare word behind DEFAULT is a string, `true` and `false` are numbers.
pub(super) fn default_value(expr: Expr) -> Expr {
    match expr {
        Expr::Name(n) if n.table.is_none() && n.name.same(b"true") && !n.double_quoted => Expr::Int(1),
        Expr::Name(n) if n.table.is_none() && n.name.same(b"false") && !n.double_quoted => Expr::Int(0),
        Expr::Name(n) if n.table.is_none() => Expr::Text(n.name.as_bytes().into()),
        other => other,
    }
}

/// Whether SQLite refuses a DEFAULT: it names a column or has a subquery.
fn depends_on_row(expr: &Expr) -> bool {
    let mut found = false;
    expr.walk(&mut |e| {
        found |= match e {
            Expr::Name(n) => n.table.is_some() || n.double_quoted || !(n.name.same(b"true") || n.name.same(b"false")),
            Expr::Unknown(Unknown::Subquery) => true,
            _ => false,
        };
    });
    found
}

/// The texts between the parentheses of the CHECK clauses of a CREATE TABLE, in order.
pub(super) fn check_texts(sql: &[u8]) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    let mut depth = 0_usize;
    let mut after_check = false;
    let mut open: Option<(usize, usize)> = None;
    for token in super::token::tokens(sql) {
        match token.kind {
            Kind::Byte(b'(') => {
                if after_check && depth == 1 && open.is_none() {
                    open = Some((depth, token.end()));
                }
                depth = depth.saturating_add(1);
            }
            Kind::Byte(b')') => {
                depth = depth.saturating_sub(1);
                if let Some((at, start)) = open
                    && at == depth
                {
                    out.push(sql.get(start..token.at).unwrap_or_default().trim_ascii().to_vec());
                    open = None;
                }
            }
            _ => {}
        }
        after_check = token.is("CHECK");
    }
    out
}

/// A definition of a kind that cannot be evaluated, for expressions that stand nowhere.
pub(super) fn unresolved() -> Expr {
    Expr::Unknown(Unknown::Construct("damaged text"))
}

impl Definition {
    /// The table, if it is one.
    #[must_use]
    pub fn as_table(&self) -> Option<&TableDef> {
        match self {
            Definition::Table(t) => Some(t),
            _ => None,
        }
    }

    /// Its name and the name of the table that it belongs to, which may be its own.
    #[must_use]
    pub fn names(&self) -> Option<(&Name, &Name)> {
        match self {
            Definition::Table(t) => Some((&t.name, &t.name)),
            Definition::Index(i) => Some((&i.name, &i.table)),
            Definition::View(v) => Some((&v.name, &v.name)),
            Definition::Trigger(t) => Some((&t.name, &t.table)),
            Definition::Virtual(v) => Some((&v.name, &v.name)),
            Definition::Unknown => None,
        }
    }
}

/// How the words end.
pub(super) const NOT_CONSTANT: &str = "is not constant";

/// SQLite's words for a DEFAULT that depends on a row.
fn not_constant(column: &Name) -> String {
    format!("default value of column [{column}] {NOT_CONSTANT}")
}
