//! The rows of simple views: one table, or joins of several on equality, with conditions and expressions.
//!
//! The caller streams the rows of the first table and has fed the others into [`Inner`] tables before. Everything that is
//! not evaluated exactly (aggregates, DISTINCT, subqueries, views on views) is refused when the plan is made.

use std::collections::BTreeMap;

use super::catalog::{Catalog, Object, ObjectKind};
use super::ddl::{Join, ResultTerm, TableDef, TableScope};
use crate::expr::name::{Collation, Name};
use crate::expr::{self, Binary, Datum, Expr, Fault, Meter, Row, Scope, reads_as_number};
use crate::format::Encoding;
use crate::ids::ObjectId;

/// How the rows of a view are computed.
#[derive(Debug, Clone)]
pub struct ViewPlan {
    names: Vec<Name>,
    results: Vec<Expr>,
    filter: Option<Expr>,
    tables: Vec<Part>,
}

/// One table of a view.
#[derive(Debug, Clone)]
struct Part {
    object: ObjectId,
    /// The position of its first column among all; its rowid stands behind its columns.
    base: usize,
    columns: usize,
    left: bool,
    on: Option<Expr>,
    /// What the rows to its left give, and the column of its own that must equal it.
    key: Option<(Expr, usize)>,
}

struct Names<'a> {
    tables: Vec<(TableScope<'a>, usize)>,
}

impl Scope for Names<'_> {
    fn lookup(&self, table: Option<&Name>, name: &Name) -> Option<Expr> {
        let mut found = None;
        for (scope, base) in &self.tables {
            let shifted = match scope.lookup(table, name) {
                Some(Expr::Column(mut c)) => {
                    c.index = c.index.saturating_add(*base);
                    Expr::Column(c)
                }
                Some(Expr::Rowid) => rowid_column(scope.table, *base),
                _ => continue,
            };
            if found.replace(shifted).is_some() {
                // SQLite calls the name ambiguous.
                return None;
            }
        }
        found
    }
}

fn rowid_column(table: &TableDef, base: usize) -> Expr {
    let index = base.saturating_add(table.columns.len());
    Expr::Column(Box::new(expr::ColumnRef { index, affinity: super::Affinity::Integer, collation: Collation::Binary }))
}

impl ViewPlan {
    /// The plan of a view.
    ///
    /// # Errors
    /// In words, why the view is not evaluated here.
    pub fn new(catalog: &Catalog, view: &Object) -> Result<ViewPlan, String> {
        let def = view.view_def().ok_or("it is not a view")?;
        let select = def.select.as_ref().map_err(Clone::clone)?;
        if select.distinct {
            return Err("DISTINCT is not evaluated here".to_owned());
        }
        let mut scope = Names { tables: Vec::new() };
        let mut tables: Vec<Part> = Vec::new();
        let mut base = 0_usize;
        for source in &select.from {
            let object = catalog.by_name(source.table.as_bytes()).ok_or_else(|| format!("no such table: {}", source.table))?;
            let table = object.table_def().filter(|_| object.kind == ObjectKind::Table && !object.is_without_rowid());
            let table = table.ok_or_else(|| format!("{} is not an ordinary table", source.table))?;
            let alias = source.alias.as_ref().or(Some(&object.name));
            let left_of = scope.tables.len();
            scope.tables.push((TableScope { table, alias, rowid: true }, base));
            let (on, left) = match &source.join {
                Join::Cross => (None, false),
                Join::Inner(e) => (Some(e.clone()), false),
                Join::Left(e) => (e.clone(), true),
                Join::Using(..) => return Err("USING is not evaluated here".to_owned()),
            };
            let on = on.map(|e| resolved(e, &scope)).transpose()?;
            let mut part = Part { object: object.id, base, columns: table.columns.len(), left, on, key: None };
            if left_of > 0 {
                // A comma join has its equality in WHERE.
                let condition = match (&part.on, &select.where_clause, left) {
                    (Some(on), ..) => Some(on.clone()),
                    (None, Some(w), false) => {
                        // Tables to the right are not in scope yet; only what is known counts.
                        let mut w = w.clone();
                        w.resolve(&scope);
                        Some(w)
                    }
                    _ => None,
                };
                part.key = condition.and_then(|c| equality(&c, base, part.columns));
                if part.key.is_none() {
                    return Err("a join without an equality is not evaluated here".to_owned());
                }
            }
            base = base.saturating_add(part.columns).saturating_add(1);
            tables.push(part);
        }
        let filter = select.where_clause.clone().map(|w| resolved(w, &scope)).transpose()?;
        let (mut names, mut results) = (Vec::new(), Vec::new());
        for term in &select.results {
            let only = match term {
                ResultTerm::Expr(e, alias) => {
                    let name = match (alias, e) {
                        (Some(a), _) => a.clone(),
                        (None, Expr::Name(n)) => n.name.clone(),
                        _ => Name::default(),
                    };
                    names.push(name);
                    results.push(resolved(e.clone(), &scope)?);
                    continue;
                }
                ResultTerm::Star => None,
                ResultTerm::TableStar(t) => Some(t),
            };
            for (scope, base) in &scope.tables {
                if only.is_some_and(|t| !scope.alias.is_some_and(|a| a.same(t.as_bytes()))) {
                    continue;
                }
                for (i, column) in scope.table.columns.iter().enumerate() {
                    names.push(column.name.clone());
                    let mut e = super::ddl::column_expr(scope.table, i).unwrap_or(Expr::Null);
                    if let Expr::Column(c) = &mut e {
                        c.index = c.index.saturating_add(*base);
                    }
                    results.push(e);
                }
            }
        }
        for (i, name) in def.columns.iter().enumerate() {
            if let Some(place) = names.get_mut(i) {
                *place = name.clone();
            }
        }
        Ok(ViewPlan { names, results, filter, tables })
    }

    /// The names of its columns; empty for an expression without an alias.
    #[must_use]
    pub fn columns(&self) -> &[Name] {
        &self.names
    }

    /// The position of a column.
    #[must_use]
    pub fn column(&self, name: &[u8]) -> Option<usize> {
        self.names.iter().position(|n| n.same(name))
    }

    /// The table whose rows are streamed.
    #[must_use]
    pub fn driver(&self) -> Option<ObjectId> {
        self.tables.first().map(|t| t.object)
    }

    /// The other tables, each to be filled into an [`Inner`] in this order.
    #[must_use]
    pub fn inner_tables(&self) -> Vec<ObjectId> {
        self.tables.iter().skip(1).map(|t| t.object).collect()
    }

    /// An empty table for the `i`-th of [`ViewPlan::inner_tables`].
    #[must_use]
    pub fn inner(&self, i: usize) -> Inner {
        let part = self.tables.get(i.saturating_add(1));
        let (base, columns) = part.map_or((0, 0), |p| (p.base, p.columns));
        let mut used: Vec<usize> = self
            .results
            .iter()
            .chain(&self.filter)
            .chain(self.tables.iter().filter_map(|t| t.on.as_ref()))
            .flat_map(Expr::columns)
            .collect();
        used.extend(self.tables.iter().filter_map(|t| t.key.as_ref()).flat_map(|(e, _)| e.columns()));
        let mut kept: Vec<usize> = used.into_iter().filter_map(|c| c.checked_sub(base)).filter(|&c| c <= columns).collect();
        kept.sort_unstable();
        kept.dedup();
        let key = part.and_then(|p| p.key.as_ref()).map_or(0, |k| k.1);
        Inner { key, columns, kept, rows: Vec::new(), by_key: BTreeMap::new(), bytes: 0 }
    }

    /// Calls `emit` with every row of the view that a row of the first table gives.
    ///
    /// # Errors
    /// When an expression raises for the row, or cannot be evaluated.
    pub fn rows(&self, driver: &dyn Row, inners: &[Inner], emit: &mut dyn FnMut(Vec<Datum<'static>>)) -> Result<(), Fault> {
        self.step(&Joined { plan: self, driver, inners, chosen: Vec::new() }, emit)
    }

    fn step(&self, row: &Joined<'_>, emit: &mut dyn FnMut(Vec<Datum<'static>>)) -> Result<(), Fault> {
        let n = row.chosen.len();
        let Some(part) = self.tables.get(n.saturating_add(1)) else {
            if let Some(filter) = &self.filter
                && expr::truth(&expr::eval(filter, row)?) != Some(true)
            {
                return Ok(());
            }
            emit(self.results.iter().map(|e| Ok(expr::eval(e, row)?.into_owned())).collect::<Result<_, Fault>>()?);
            return Ok(());
        };
        let with = |choice| {
            let mut chosen = row.chosen.clone();
            chosen.push(choice);
            Joined { plan: self, driver: row.driver, inners: row.inners, chosen }
        };
        let mut any = false;
        if let (Some((e, _)), Some(inner)) = (&part.key, row.inners.get(n))
            && let Some(key) = coarse(&expr::eval(e, row)?)
        {
            for &candidate in inner.by_key.get(&key).into_iter().flatten() {
                let next = with(Some(candidate));
                let fits = match &part.on {
                    Some(on) => expr::truth(&expr::eval(on, &next)?) == Some(true),
                    None => true,
                };
                if fits {
                    any = true;
                    self.step(&next, emit)?;
                }
            }
        }
        if !any && part.left {
            self.step(&with(None), emit)?;
        }
        Ok(())
    }
}

fn resolved(mut e: Expr, scope: &Names<'_>) -> Result<Expr, String> {
    e.resolve(scope);
    match e.unknown() {
        Some(unknown) => Err(unknown.to_string()),
        None => Ok(e),
    }
}

/// `left = column`, or the reverse, among the conjuncts of a condition, where `left` reads only columns before `base`.
fn equality(condition: &Expr, base: usize, columns: usize) -> Option<(Expr, usize)> {
    let conjuncts = match condition {
        Expr::And(list) => list.as_slice(),
        one => std::slice::from_ref(one),
    };
    conjuncts.iter().find_map(|e| {
        let Expr::Binary(Binary::Equal, sides) = e else { return None };
        [(&sides.0, &sides.1), (&sides.1, &sides.0)].into_iter().find_map(|(left, own)| {
            let Expr::Column(c) = own else { return None };
            let own = c.index.checked_sub(base).filter(|&i| i <= columns)?;
            let before = left.unknown().is_none() && !left.is_constant() && left.columns().iter().all(|&i| i < base);
            (before && c.collation.is_known()).then(|| (left.clone(), own))
        })
    })
}

/// A key that is the same for values that SQLite can find equal; different values may share it. `None` for NULL.
fn coarse(d: &Datum<'_>) -> Option<Vec<u8>> {
    let number = |d: &Datum<'_>| match expr::cast(d.by_ref(), super::Affinity::Real) {
        Datum::Real(x) => [b"n", (x + 0.0).to_bits().to_be_bytes().as_slice()].concat(),
        _ => b"n".to_vec(),
    };
    match d {
        Datum::Null => None,
        Datum::Int(_) | Datum::Real(_) => Some(number(d)),
        Datum::Text(t) if reads_as_number(t) => Some(number(d)),
        Datum::Text(t) => {
            let end = t.iter().rposition(|&b| b != b' ').map_or(0, |i| i.saturating_add(1));
            Some([b"t", t.get(..end).unwrap_or_default().to_ascii_lowercase().as_slice()].concat())
        }
        Datum::Blob(b) => Some([b"b", b.as_ref()].concat()),
    }
}

/// The rows of a joined table, with only the columns that the view uses, by join key.
#[derive(Debug, Clone)]
pub struct Inner {
    key: usize,
    columns: usize,
    kept: Vec<usize>,
    rows: Vec<Vec<Datum<'static>>>,
    by_key: BTreeMap<Vec<u8>, Vec<usize>>,
    bytes: usize,
}

impl Inner {
    /// Takes a row of the table in.
    ///
    /// # Errors
    /// When a generated column that the view uses cannot be computed.
    pub fn add(&mut self, row: &dyn Row) -> Result<(), Fault> {
        let get = |i: usize| {
            if i == self.columns { Ok(row.rowid().map_or(Datum::Null, Datum::Int)) } else { row.column(i) }
        };
        let Some(key) = coarse(&get(self.key)?) else { return Ok(()) };
        let values = self.kept.iter().map(|&i| Ok(get(i)?.into_owned())).collect::<Result<Vec<_>, Fault>>()?;
        let text: usize = values.iter().map(|v| if let Datum::Text(t) | Datum::Blob(t) = v { t.len() } else { 0 }).sum();
        self.bytes = self.bytes.saturating_add(text).saturating_add(key.len()).saturating_add(64);
        self.by_key.entry(key).or_default().push(self.rows.len());
        self.rows.push(values);
        Ok(())
    }

    /// About how much memory its rows take, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// The rows chosen so far, as one row of all columns.
struct Joined<'a> {
    plan: &'a ViewPlan,
    driver: &'a dyn Row,
    inners: &'a [Inner],
    chosen: Vec<Option<usize>>,
}

impl Row for Joined<'_> {
    fn column(&self, index: usize) -> Result<Datum<'_>, Fault> {
        let Some(at) = self.plan.tables.iter().rposition(|t| t.base <= index) else { return Ok(Datum::Null) };
        let Some(part) = self.plan.tables.get(at) else { return Ok(Datum::Null) };
        let own = index.saturating_sub(part.base);
        let Some(inner) = at.checked_sub(1) else {
            return if own == part.columns { Ok(self.driver.rowid().map_or(Datum::Null, Datum::Int)) } else { self.driver.column(own) };
        };
        let value = (|| {
            let table = self.inners.get(inner)?;
            let row = table.rows.get((*self.chosen.get(inner)?)?)?;
            row.get(table.kept.binary_search(&own).ok()?)
        })();
        Ok(value.map_or(Datum::Null, Datum::by_ref))
    }

    fn rowid(&self) -> Option<i64> {
        None
    }

    fn meter(&self) -> &Meter {
        self.driver.meter()
    }

    fn encoding(&self) -> Encoding {
        self.driver.encoding()
    }
}
