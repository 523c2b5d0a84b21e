//! Root pages that two tables of the schema have from one another.
//!
//! Tests:    what stands in the columns of each table against what its declaration means.
//! Collects: pairs of tables that hold each what the other is declared for.
//! Leaves:   tables of one shape, for which nothing but their values says whose they are.

use crate::ctx::Ctx;
use crate::error::Result;
use crate::finding::{Code, Defect, Findings, Site};
use crate::ids::ObjectId;
use crate::schema::{Object, RowSource, SchemaRow};
use crate::survey::index_fit::IndexFit;
use crate::survey::rows::plan::TablePlan;
use crate::survey::rows::profile::Profile;
use crate::survey::stages::{Content, Survey};
use crate::tree::TreeKind;

/// Rows of a table below which its columns say nothing.
const FEW: u32 = 4;

/// Tables that are compared with one another; a schema with more of them that do not hold what they are declared for is no
/// schema of this file.
const MISFITS: usize = 50;

struct Table<'s> {
    object: &'s Object,
    plan: &'s TablePlan,
    kind: TreeKind,
    profile: Profile,
}

impl Table<'_> {
    /// Whether the rows of a tree are what the table is declared for.
    fn means(&self, profile: &Profile) -> bool {
        self.object.table_def().is_some_and(|def| profile.is_natural(self.plan) && profile.is_as_declared(self.plan, def))
    }
}

/// The rows of the schema with the roots of such pairs exchanged, and findings that say so; `None` where there is none. A pair
/// counts when both tables misfit as they are, both fit the other way round, and each fits no third.
///
/// # Errors
/// Cancellation only.
pub(super) fn find(survey: &Survey<'_>, rows: &[SchemaRow], log: &mut Findings, ctx: &Ctx) -> Result<Option<Vec<SchemaRow>>> {
    let mut misfits: Vec<Table<'_>> = Vec::new();
    for t in &survey.trees {
        let Some(Content::Table { plan, .. }) = &t.content else { continue };
        let Some(object) = survey.catalog.get(t.object).filter(|o| is_plain(survey, o)) else { continue };
        let table = Table { object, plan, kind: t.tree.kind, profile: Profile::of(&survey.pages, survey.encoding, &t.tree, ctx)? };
        if table.profile.rows() >= FEW && !table.means(&table.profile) {
            misfits.push(table);
        }
    }
    if misfits.len() < 2 || misfits.len() > MISFITS {
        return Ok(None);
    }
    let mut pairs: Vec<(&Object, &Object)> = Vec::new();
    for (i, a) in misfits.iter().enumerate() {
        let others = misfits.iter().skip(i.saturating_add(1));
        let fitting = others.filter(|b| a.kind == b.kind && a.means(&b.profile) && b.means(&a.profile));
        pairs.extend(fitting.map(|b| (a.object, b.object)));
    }
    let alone = |id: ObjectId| pairs.iter().filter(|(a, b)| a.id == id || b.id == id).count() == 1;
    let mut out = rows.to_vec();
    let mut any = false;
    for (a, b) in pairs.iter().filter(|(a, b)| alone(a.id) && alone(b.id)) {
        let (Some(first), Some(second)) = (place(rows, a), place(rows, b)) else { continue };
        let roots = (rows.get(first).and_then(|r| r.root), rows.get(second).and_then(|r| r.root));
        for (at, root, object, other) in [(first, roots.1, a, b), (second, roots.0, b, a)] {
            let Some(row) = out.get_mut(at) else { continue };
            let got = row.root.and_then(|r| u64::try_from(r).ok()).unwrap_or(0);
            let want = root.and_then(|r| u64::try_from(r).ok()).unwrap_or(0);
            row.root = root;
            let site = Site { object: Some(object.id), ..row.site };
            log.add_with(Defect::new(Code::RootsSwapped, 0, got, want), site, format!("{} and {}", object.name, other.name));
        }
        any = true;
    }
    Ok(any.then_some(out))
}

/// Whether the rows of a table are its own as far as the schema says, and no index vouches for them.
fn is_plain(survey: &Survey<'_>, object: &Object) -> bool {
    let from_tree = object.row.as_ref().is_some_and(|r| r.source == RowSource::Tree && r.root.is_some());
    let vouched = survey.catalog.indexes_of(object.id).any(|index| {
        survey.tree_of(index.id).is_some_and(|t| match &t.content {
            Some(Content::Index { scan, fit, .. }) => *fit == IndexFit::Equal && scan.sum.count > 0,
            _ => false,
        })
    });
    from_tree && !vouched && object.problem.is_none() && object.excluded.is_none() && object.family.virtual_table().is_none()
}

/// The row of an object. Rows of one name are told apart by nothing here.
fn place(rows: &[SchemaRow], object: &Object) -> Option<usize> {
    let row = object.row.as_ref()?;
    rows.iter().position(|r| r.rowid == row.rowid && r.name == row.name && r.root == row.root)
}
