//! What stands at each position of the records of a tree, over a sample of its leaves, against what columns mean.

use std::collections::BTreeMap;

use crate::ctx::Ctx;
use crate::error::Result;
use crate::format::{Encoding, Fields, Value};
use crate::ids::PageNo;
use crate::schema::Affinity;
use crate::schema::ddl::TableDef;
use crate::survey::rows::compute::{Computer, Outcome};
use crate::survey::rows::plan::{ClassRule, Row, TablePlan};
use crate::tree::payload::PayloadReader;
use crate::tree::{Pages, Tree};

/// Rows that CHECK constraints are tried on, and how long each may be.
const SAMPLE: usize = 50;
const SAMPLE_BYTES: usize = 8 << 10;

/// Leaves of a tree whose rows are looked at.
const LEAVES: usize = 64;

/// What stands at one position of the records of a tree.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::survey) struct Position {
    rows: u32,
    nulls: u32,
    ints: u32,
    reals: u32,
    texts: u32,
    blobs: u32,
    /// Texts that a numeric affinity would have turned into numbers.
    numeric_texts: u32,
}

impl Position {
    fn add(&mut self, value: Value<'_>, encoding: Encoding) {
        let one = |n: &mut u32| *n = n.saturating_add(1);
        one(&mut self.rows);
        match value {
            Value::Null => one(&mut self.nulls),
            Value::Int(_) => one(&mut self.ints),
            Value::Real(_) => one(&mut self.reals),
            Value::Blob(_) => one(&mut self.blobs),
            Value::Text(t) => {
                one(&mut self.texts);
                if crate::expr::reads_as_number(&encoding.to_utf8(t)) {
                    one(&mut self.numeric_texts);
                }
            }
        }
    }

    /// Whether these are values that a writer puts into such a column: what SQLite lets stand, and, but for one in twenty,
    /// what the declared type means.
    pub(in crate::survey) fn suits(&self, plan: &TablePlan, column: usize) -> bool {
        let Some(c) = plan.columns.get(column) else { return false };
        let some = self.rows.saturating_sub(self.nulls);
        if plan.alias == Some(column) {
            return some == 0;
        }
        if c.not_null && self.nulls > 0 {
            return false;
        }
        let few = |n: u32| n.saturating_mul(20) <= some;
        match (c.class, c.affinity) {
            (ClassRule::Integer, _) => some == self.ints,
            (ClassRule::Real, _) => some == self.ints.saturating_add(self.reals),
            (ClassRule::Text, _) => some == self.texts,
            (ClassRule::Blob, _) => some == self.blobs,
            (_, Affinity::Text) => self.ints == 0 && self.reals == 0 && few(self.blobs),
            (_, Affinity::Integer) => self.numeric_texts == 0 && few(self.texts) && few(self.reals) && few(self.blobs),
            (_, Affinity::Real) => self.numeric_texts == 0 && few(self.texts) && few(self.blobs),
            (_, Affinity::Numeric) => self.numeric_texts == 0 && few(self.blobs),
            (_, Affinity::Blob) => true,
        }
    }
}

/// The positions of the records of a tree, over a sample of its leaves.
#[derive(Debug, Default)]
pub(in crate::survey) struct Profile {
    pub(in crate::survey) positions: Vec<Position>,
    /// Records by the number of their values.
    widths: BTreeMap<usize, u32>,
    /// Some of the rows: rowid and payload.
    sample: Vec<(Option<i64>, Vec<u8>)>,
}

impl Profile {
    /// Reads the sample.
    ///
    /// # Errors
    /// Cancellation only.
    pub(in crate::survey) fn of(pages: &Pages<'_>, encoding: Encoding, tree: &Tree, ctx: &Ctx) -> Result<Profile> {
        let leaves: Vec<PageNo> = tree.leaves().collect();
        let step = leaves.len().div_ceil(LEAVES).max(1);
        let mut profile = Profile::default();
        for no in leaves.into_iter().step_by(step) {
            ctx.check()?;
            profile.read(pages, encoding, no);
        }
        Ok(profile)
    }

    /// As [`Profile::of`], of one leaf.
    pub(in crate::survey) fn of_leaf(pages: &Pages<'_>, encoding: Encoding, no: PageNo) -> Profile {
        let mut profile = Profile::default();
        profile.read(pages, encoding, no);
        profile
    }

    fn read(&mut self, pages: &Pages<'_>, encoding: Encoding, no: PageNo) {
        let Ok(page) = pages.leaf(no) else { return };
        let (mut reader, mut fields) = (PayloadReader::new(), Fields::new());
        for (_, cell) in page.cells(pages.split) {
            let Ok(cell) = cell else { continue };
            let Ok(payload) = reader.read(pages, &cell) else { continue };
            if fields.read(payload, cell.payload_len).is_err() || fields.reserved().is_some() {
                continue;
            }
            if self.sample.len() < SAMPLE && payload.len() <= SAMPLE_BYTES {
                self.sample.push((cell.rowid, payload.to_vec()));
            }
            let rows = self.widths.entry(fields.len()).or_default();
            *rows = rows.saturating_add(1);
            if self.positions.len() < fields.len() {
                self.positions.resize(fields.len(), Position::default());
            }
            for (position, value) in self.positions.iter_mut().zip(fields.values(payload)) {
                position.add(value, encoding);
            }
        }
    }

    /// How many columns the records stand for: the most values that more than single ones of them have, and of a table whose
    /// text is sound at least half of them.
    pub(in crate::survey) fn width(&self, broken: bool) -> usize {
        let least = if broken { self.rows().div_ceil(20) } else { self.rows().div_ceil(2) };
        self.widths.iter().rev().find(|(_, rows)| **rows >= least).map_or(0, |(width, _)| *width)
    }

    /// Whether a value is NULL in every record, of which there are several.
    pub(in crate::survey) fn all_null(&self, at: usize) -> bool {
        self.positions.get(at).is_some_and(|p| p.rows > 1 && p.nulls == p.rows)
    }

    /// Positions whose values do not suit their column, with columns that records must not lack, and a key that is NULL
    /// throughout and yet not the rowid.
    pub(in crate::survey) fn misfits(&self, plan: &TablePlan) -> usize {
        let odd = self.positions.iter().zip(&plan.stored).filter(|(p, column)| !p.suits(plan, **column)).count();
        let lacking = plan.stored.iter().skip(self.positions.len()).filter(|c| !optional(plan, **c)).count();
        let key = usize::from(plan.key.is_none() && plan.alias.is_none() && self.all_null(0));
        odd.saturating_add(lacking).saturating_add(key).saturating_add(self.false_checks(plan))
    }

    /// CHECK constraints that are false for most rows: no writer could have put these in.
    fn false_checks(&self, plan: &TablePlan) -> usize {
        let computer = Computer::new(plan);
        let mut fields = Fields::new();
        let mut false_for = vec![0_usize; plan.checks.len()];
        for (rowid, payload) in &self.sample {
            if fields.read(payload, crate::ids::wide(payload.len())).is_err() {
                continue;
            }
            let row = Row { rowid: *rowid, payload, fields: &fields };
            for (n, check) in false_for.iter_mut().zip(&plan.checks) {
                if matches!(computer.truth(&row, &check.expr), Outcome::False) {
                    *n = n.saturating_add(1);
                }
            }
        }
        false_for.iter().filter(|n| n.saturating_mul(2) > self.sample.len()).count()
    }

    /// Whether the records have the columns of a table in its own order, by what the columns mean and not by what they may hold.
    pub(in crate::survey) fn is_natural(&self, plan: &TablePlan) -> bool {
        self.positions.len() <= plan.stored.len()
            && self.positions.iter().zip(&plan.stored).all(|(p, column)| p.suits(plan, *column))
            && plan.stored.iter().skip(self.positions.len()).all(|c| optional(plan, *c))
    }

    /// Rows that were looked at.
    pub(in crate::survey) fn rows(&self) -> u32 {
        self.positions.first().map_or(0, |p| p.rows)
    }

    /// Whether columns that are declared BLOB hold such values, as far as they hold any: the affinity lets everything stand.
    pub(in crate::survey) fn is_as_declared(&self, plan: &TablePlan, def: &TableDef) -> bool {
        let blob = |column: usize| {
            let declared = def.columns.get(column).and_then(|c| c.decl_type.as_ref());
            declared.is_some_and(|t| t.trim_ascii().eq_ignore_ascii_case(b"blob"))
        };
        let some = |p: &Position| p.rows.saturating_sub(p.nulls);
        self.positions.iter().zip(&plan.stored).all(|(p, column)| !blob(*column) || some(p) == 0 || p.blobs > 0)
    }
}

/// Whether records may end before a column: ADD COLUMN takes no other.
pub(in crate::survey) fn optional(plan: &TablePlan, column: usize) -> bool {
    plan.columns.get(column).is_some_and(|c| !c.not_null || !c.default.value().is_null()) && plan.alias != Some(column)
}
