//! What SQLite refuses when it loads the schema, as far as other rows or the columns of the row decide it.
//!
//! Tests:    name, tbl_name and type of a row against its text; names and functions in CHECK, generated columns and indexes; the
//!           kind of what a trigger stands on.
//! Collects: a problem of the object, with a finding.
//! Leaves:   what the text alone decides (`ddl/refused.rs`), and tables that are not there.

use super::{Catalog, Object, ObjectKind, is_schema_name, site};
use crate::expr::{Expr, Unknown};
use crate::finding::{Code, Defect, Findings};
use crate::ids::ObjectId;
use crate::schema::ddl::{Definition, TextProblem, token};
use crate::schema::layout::IndexSource;

/// Functions of SQLite whose value is not decided by their arguments, and functions over several rows: an index or a generated
/// column with one is refused.
const NOT_OF_THE_ROW: [&[u8]; 20] = [
    b"random",
    b"randomblob",
    b"changes",
    b"total_changes",
    b"last_insert_rowid",
    b"load_extension",
    b"count",
    b"sum",
    b"total",
    b"avg",
    b"group_concat",
    b"json_group_array",
    b"json_group_object",
    b"row_number",
    b"rank",
    b"dense_rank",
    b"ntile",
    b"first_value",
    b"last_value",
    b"nth_value",
];

impl Catalog {
    /// Marks the objects for which SQLite does not open the database.
    pub(super) fn apply_load_rules(&mut self, findings: &mut Findings) {
        let open = self.objects.iter().filter(|o| o.row.is_some() && o.problem.is_none() && o.excluded.is_none());
        let refused: Vec<(ObjectId, String)> = open.filter_map(|o| Some((o.id, self.refusal(o)?))).collect();
        for (id, words) in refused {
            let Some(object) = self.objects.get_mut(id.index()) else { continue };
            let defect = Defect::new(Code::SqlNotParsed, 0, 0, 0);
            findings.add_with(defect, site(object), words.clone());
            object.problem = Some(TextProblem { defect, words });
        }
    }

    /// Why SQLite refuses the schema for an object whose text it would take alone.
    fn refusal(&self, object: &Object) -> Option<String> {
        let (name, table) = object.definition.names()?;
        if !object.name.same(name.as_bytes()) {
            return Some(format!("its row names it {}, its text {name}", object.name));
        }
        if !object.table_name.same(table.as_bytes()) {
            return Some(format!("its row says that it belongs to {}, its text to {table}", object.table_name));
        }
        match &object.definition {
            Definition::Table(def) => {
                let of_table = |u: &Unknown| matches!(u, Unknown::Column(_) | Unknown::Subquery | Unknown::Arguments(_));
                let generated = def.columns.iter().filter_map(|c| c.generated.as_ref()).find_map(|g| not_of_the_row(&g.expr));
                let checks = def.checks.iter().find_map(|c| over_rows(&c.expr));
                def.unknowns().find(of_table).or(generated).or(checks).map(|u| words(&u))
            }
            Definition::Index(_) => {
                let layout = object.index_layout.as_ref()?;
                let terms = layout.columns.iter().filter_map(|c| match &c.source {
                    IndexSource::Expr(expr) => Some(expr),
                    _ => None,
                });
                terms.chain(&layout.filter).find_map(not_of_the_row).map(|u| words(&u))
            }
            Definition::Trigger(def) => {
                if is_schema_name(def.table.as_bytes()) || def.table.folded().starts_with(b"sqlite_") {
                    return Some("cannot create trigger on system table".to_owned());
                }
                let on_view = object.table.and_then(|t| self.get(t)).map(|o| o.kind == ObjectKind::View)?;
                let instead = token::tokens(object.sql()?).take_while(|t| !t.is("ON")).any(|t| t.is("INSTEAD"));
                match (on_view, instead) {
                    (true, false) => Some(format!("a trigger on the view {} has to be INSTEAD OF", def.table)),
                    (false, true) => Some(format!("cannot create INSTEAD OF trigger on table: {}", def.table)),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

/// The first thing in an expression that SQLite does not allow where one row has to decide.
fn not_of_the_row(expr: &Expr) -> Option<Unknown> {
    expr.unknowns().into_iter().find(|u| match u {
        Unknown::Column(_) | Unknown::Subquery | Unknown::Arguments(_) => true,
        Unknown::Function(name) => NOT_OF_THE_ROW.iter().any(|n| name.same(n)),
        _ => false,
    })
}

/// The first function over several rows.
fn over_rows(expr: &Expr) -> Option<Unknown> {
    let from = NOT_OF_THE_ROW.iter().position(|n| *n == b"count").unwrap_or(0);
    let several = NOT_OF_THE_ROW.get(from..).unwrap_or_default();
    expr.unknowns().into_iter().find(|u| matches!(u, Unknown::Function(name) if several.iter().any(|n| name.same(n))))
}

fn words(unknown: &Unknown) -> String {
    match unknown {
        Unknown::Subquery => "subqueries prohibited here".to_owned(),
        Unknown::Function(name) => format!("function {name} prohibited here"),
        other => other.to_string(),
    }
}
