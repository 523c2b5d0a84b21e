//! A row against the declaration of its table: what `PRAGMA integrity_check` judges, and what a copy must keep.

use crate::expr::Fault;
use crate::finding::{Code, Defect, Findings, Site};
use crate::format::Value;
use crate::ids::wide;
use crate::schema::{Affinity, IndexSource};
use crate::survey::rows::compute::{Computer, Outcome};
use crate::survey::rows::entry::{EntryHash, EntrySum};
use crate::survey::rows::plan::{ClassRule, IndexPlan, Row, TablePlan};

/// What becomes of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is written byte for byte.
    Good,
    /// It is written in another form.
    Rewrite,
    /// It breaks the declaration: the code, and the column or CHECK by number.
    Breaks(Code, usize),
}

/// Judges the rows of one table; keeps buffers from row to row.
#[derive(Debug)]
pub struct Judge<'p> {
    plan: &'p TablePlan,
    computer: Computer<'p>,
    /// Columns with a rule, so that a table without rules costs nothing.
    ruled: Vec<(usize, ClassRule, bool)>,
    generated: Vec<usize>,
}

impl<'p> Judge<'p> {
    /// A judge for the rows of a table.
    #[must_use]
    pub fn new(plan: &'p TablePlan) -> Judge<'p> {
        let ruled = plan
            .columns
            .iter()
            .enumerate()
            .filter(|(i, c)| c.position.is_some() && plan.alias != Some(*i) && (c.not_null || c.class != ClassRule::Any))
            .map(|(i, c)| (i, c.class, c.not_null))
            .collect();
        let generated = plan.columns.iter().enumerate().filter(|(_, c)| c.generated.is_some()).map(|(i, _)| i).collect();
        Judge { plan, computer: Computer::new(plan), ruled, generated }
    }

    /// Judges a row. Findings go to `log`; the entries that its indexes should have are added to `sums`, also for a row that
    /// breaks the declaration, since SQLite's own indexes hold it too.
    pub fn judge(&self, row: &Row<'_>, here: Site, log: &mut Findings, sums: &mut [EntrySum]) -> Verdict {
        let plan = self.plan;
        let mut verdict = Verdict::Good;
        let breaks = |code: Code, column: usize, v: &mut Verdict| {
            if !matches!(v, Verdict::Breaks(..)) {
                *v = Verdict::Breaks(code, column);
            }
        };
        if row.fields.len() > plan.stored.len() && !plan.stored.is_empty() {
            log.add(Defect::new(Code::MoreValuesThanColumns, 0, wide(row.fields.len()), wide(plan.stored.len())), here);
            verdict = Verdict::Rewrite;
        }
        if let Some(key) = &plan.key
            && row.fields.len() < key.columns.len()
        {
            let d = Defect::new(Code::FewerKeyValues, 0, wide(row.fields.len()), wide(key.columns.len()));
            log.add(d, here);
            return Verdict::Breaks(Code::FewerKeyValues, 0);
        }
        for &(column, class, not_null) in &self.ruled {
            let Some(value) = plan.stored_value(row, column) else { continue };
            if not_null && value.is_null() {
                log.add_with(Defect::new(Code::NullInNotNull, 0, wide(column), 0), here, self.words(row, column));
                breaks(Code::NullInNotNull, column, &mut verdict);
            } else if !class_fits(class, value, plan) {
                log.add_with(Defect::new(Code::TypeBroken, 0, wide(column), 0), here, self.words(row, column));
                breaks(Code::TypeBroken, column, &mut verdict);
            }
        }
        for &column in &self.generated {
            self.generated_column(row, column, here, log, &mut verdict);
        }
        for (i, check) in plan.checks.iter().enumerate() {
            if matches!(self.computer.truth(row, &check.expr), Outcome::False) {
                log.add_with(Defect::new(Code::CheckFalse, 0, wide(i), 0), here, check.name.clone());
                breaks(Code::CheckFalse, i, &mut verdict);
            }
        }
        for (index, sum) in plan.indexes.iter().zip(sums) {
            match self.entry_hash(row, index) {
                Some(hash) => sum.add(hash),
                None => {
                    if let Some(words) = self.raises(row, index) {
                        log.add_with(Defect::new(Code::ExpressionRaises, 0, u64::from(index.object.0), 0), here, words);
                        breaks(Code::ExpressionRaises, 0, &mut verdict);
                    }
                }
            }
        }
        verdict
    }

    /// Notes texts that are not valid in the encoding; `true` when there is one.
    pub fn undecodable(&self, row: &Row<'_>, here: Site, log: &mut Findings) -> bool {
        let mut any = false;
        for field in row.fields.as_slice() {
            if field.serial >= 13
                && field.serial & 1 == 1
                && let Value::Text(t) = field.value(row.payload)
                && !self.plan.encoding.is_valid(t)
            {
                log.add(Defect::new(Code::TextNotDecodable, field.start, 0, 0), here);
                any = true;
            }
        }
        any
    }

    /// The hash of the entry that an index should have for a row; `None` when it should have none, or it cannot be computed.
    #[must_use]
    pub fn entry_hash(&self, row: &Row<'_>, index: &IndexPlan) -> Option<EntryHash> {
        self.entry_hashes(row, index).map(|(_, whole)| whole)
    }

    /// As [`Judge::entry_hash`], with the hash of all values but the last, which is the rowid in an index of a rowid table.
    #[must_use]
    pub fn entry_hashes(&self, row: &Row<'_>, index: &IndexPlan) -> Option<(EntryHash, EntryHash)> {
        if !index.computable {
            return None;
        }
        if let Some(condition) = &index.condition
            && !matches!(self.computer.truth(row, condition), Outcome::True)
        {
            return None;
        }
        let mut hash = EntryHash::default();
        let mut key = hash;
        for column in &index.columns {
            key = hash;
            hash = match &column.source {
                IndexSource::Rowid => hash.add(row.rowid.map_or(Value::Null, Value::Int)),
                IndexSource::Column(i) => match self.plan.stored_value(row, *i) {
                    Some(value) => hash.add(value),
                    None => hash.add(self.computer.column(row, *i)?.value()),
                },
                IndexSource::Expr(expr) => hash.add(self.computer.value(row, expr)?.value()),
            };
        }
        Some((key, hash))
    }

    /// The error that SQLite raises when it computes the entry of an index for a row.
    fn raises(&self, row: &Row<'_>, index: &IndexPlan) -> Option<String> {
        if !index.computable {
            return None;
        }
        let condition = index.condition.as_ref().map(|c| self.computer.fault(row, c));
        let sources = index.columns.iter().map(|column| match &column.source {
            IndexSource::Rowid => None,
            IndexSource::Column(i) if self.plan.stored_value(row, *i).is_some() => None,
            IndexSource::Column(i) => self.computer.column_fault(row, *i),
            IndexSource::Expr(expr) => self.computer.fault(row, expr),
        });
        condition.into_iter().chain(sources).flatten().find_map(|fault| match fault {
            Fault::Raises(words) => Some(words),
            Fault::Unknown(_) => None,
        })
    }

    fn generated_column(&self, row: &Row<'_>, column: usize, here: Site, log: &mut Findings, verdict: &mut Verdict) {
        let Some(plan) = self.plan.columns.get(column) else { return };
        let Some(computed) = self.computer.column(row, column) else { return };
        if plan.not_null && computed.value().is_null() {
            log.add_with(Defect::new(Code::NullInNotNull, 0, wide(column), 0), here, plan.name.clone());
            *verdict = Verdict::Breaks(Code::NullInNotNull, column);
        }
        let Some(stored) = self.plan.stored_value(row, column) else { return };
        // ADD COLUMN makes no stored generated column: a record that ends before one is of another table.
        if plan.position.is_some_and(|p| p >= row.fields.len()) {
            log.add_with(Defect::new(Code::GeneratedDiffers, 0, wide(column), 0), here, self.words(row, column));
            if !matches!(verdict, Verdict::Breaks(..)) {
                *verdict = Verdict::Breaks(Code::GeneratedDiffers, column);
            }
            return;
        }
        if EntryHash::default().add(stored) != EntryHash::default().add(computed.value()) {
            log.add_with(Defect::new(Code::GeneratedDiffers, 0, wide(column), 0), here, self.words(row, column));
            if *verdict == Verdict::Good {
                *verdict = Verdict::Rewrite;
            }
        }
    }

    fn words(&self, row: &Row<'_>, column: usize) -> String {
        let name = self.plan.columns.get(column).map_or("", |c| c.name.as_str());
        match row.rowid {
            Some(rowid) => format!("column {name} of rowid {rowid}"),
            None => format!("column {name}"),
        }
    }
}

/// Whether a row could stand in a table: number of values, alias NULL in the record, NOT NULL, storage classes.
#[must_use]
pub fn fits_declaration(plan: &TablePlan, row: &Row<'_>) -> bool {
    if row.fields.len() > plan.stored.len() || (row.rowid.is_some() == plan.key.is_some()) {
        return false;
    }
    if plan.key.as_ref().is_some_and(|k| row.fields.len() < k.columns.len()) {
        return false;
    }
    plan.columns.iter().enumerate().all(|(i, c)| {
        let Some(position) = c.position else { return true };
        let Some(value) = row.fields.value(row.payload, position) else { return true };
        if plan.alias == Some(i) {
            return value.is_null();
        }
        !(c.not_null && value.is_null()) && class_fits(c.class, plan.stored_value(row, i).unwrap_or(value), plan)
    })
}

/// Whether every value of a record has the storage class that its column's affinity is named for. Others may stand there too;
/// that they all do speaks for another table.
pub fn is_natural(plan: &TablePlan, row: &Row<'_>) -> bool {
    plan.columns.iter().all(|c| {
        let value = c.position.and_then(|p| row.fields.value(row.payload, p)).unwrap_or(Value::Null);
        match (c.affinity, value) {
            (_, Value::Null) | (Affinity::Blob | Affinity::Numeric, _) => true,
            (Affinity::Integer, value) => matches!(value, Value::Int(_)),
            (Affinity::Real, value) => matches!(value, Value::Real(_)),
            (Affinity::Text, value) => matches!(value, Value::Text(_)),
        }
    })
}

fn class_fits(class: ClassRule, value: Value<'_>, plan: &TablePlan) -> bool {
    match (class, value) {
        (_, Value::Null)
        | (ClassRule::Any, _)
        | (ClassRule::NoNumber, Value::Text(_) | Value::Blob(_))
        | (ClassRule::Integer, Value::Int(_))
        | (ClassRule::Real, Value::Real(_))
        | (ClassRule::Text, Value::Text(_))
        | (ClassRule::Blob, Value::Blob(_)) => true,
        (ClassRule::NoNumericText, Value::Text(t)) => !crate::expr::reads_as_number(&plan.encoding.to_utf8(t)),
        (ClassRule::NoNumericText, _) => true,
        _ => false,
    }
}
