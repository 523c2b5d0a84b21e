//! The order of records under the key of an index or of a WITHOUT ROWID table.

use std::cmp::Ordering;
use std::collections::VecDeque;

use crate::format::{Encoding, Fields, Value};
use crate::ids::wide;
use crate::schema::Collation;
use crate::schema::key_order::compare_values;
use crate::survey::rows::plan::IndexPlan;

/// Compares records column by column; keeps its buffers.
#[derive(Debug, Clone)]
pub struct KeyOrder {
    columns: Vec<(Collation, bool)>,
    unique: usize,
    encoding: Encoding,
    orderable: bool,
    left: Fields,
    right: Fields,
}

impl KeyOrder {
    /// The order of an index.
    #[must_use]
    pub fn new(index: &IndexPlan, encoding: Encoding) -> KeyOrder {
        KeyOrder {
            columns: index.columns.iter().map(|c| (c.collation.clone(), c.desc)).collect(),
            unique: index.unique,
            encoding,
            orderable: index.orderable,
            left: Fields::new(),
            right: Fields::new(),
        }
    }

    /// Whether record `b` stands behind record `a`; also `true` when a collation is unknown or a record does not decode, as
    /// there is nothing to complain about then.
    pub fn ascends(&mut self, a: &[u8], b: &[u8]) -> bool {
        let (mut left, mut right) = (std::mem::take(&mut self.left), std::mem::take(&mut self.right));
        let both = left.read(a, wide(a.len())).is_ok() && right.read(b, wide(b.len())).is_ok();
        let ascends = !both || self.compare(a, &left, b, &right).is_none_or(Ordering::is_lt);
        self.left = left;
        self.right = right;
        ascends
    }

    /// Whether a record stands between two others, where there are any, as [`KeyOrder::ascends`] sees it.
    pub fn is_between(&mut self, before: Option<&[u8]>, record: &[u8], behind: Option<&[u8]>) -> bool {
        before.is_none_or(|b| self.ascends(b, record)) && behind.is_none_or(|b| self.ascends(record, b))
    }

    /// Puts records in order, equal ones as they came. Records that do not decode have no place in any order, so this does
    /// not ask for one that is consistent, as the sorts of the standard library do.
    /// Runs are merged two by two, so that even a million records cost no more than a sort.
    pub fn in_order<T>(&mut self, items: Vec<(Vec<u8>, T)>) -> Vec<(Vec<u8>, T)> {
        let mut runs: VecDeque<Vec<(Vec<u8>, T)>> = items.into_iter().map(|item| vec![item]).collect();
        while runs.len() > 1 {
            let mut merged = VecDeque::with_capacity(runs.len().div_ceil(2));
            while let Some(left) = runs.pop_front() {
                merged.push_back(match runs.pop_front() {
                    Some(right) => self.merge(left, right),
                    None => left,
                });
            }
            runs = merged;
        }
        runs.pop_front().unwrap_or_default()
    }

    /// Two runs as one; of equal records that of the left one comes first.
    fn merge<T>(&mut self, left: Vec<(Vec<u8>, T)>, right: Vec<(Vec<u8>, T)>) -> Vec<(Vec<u8>, T)> {
        let mut out = Vec::with_capacity(left.len().saturating_add(right.len()));
        let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
        while let (Some(l), Some(r)) = (left.peek(), right.peek()) {
            let next = if self.ascends(&r.0, &l.0) { right.next() } else { left.next() };
            out.extend(next);
        }
        out.extend(left);
        out.extend(right);
        out
    }

    /// Record `a` against record `b` over all columns; `None` when a collation is unknown.
    #[must_use]
    pub fn compare(&self, a: &[u8], a_fields: &Fields, b: &[u8], b_fields: &Fields) -> Option<Ordering> {
        if !self.orderable {
            return None;
        }
        for (i, (collation, desc)) in self.columns.iter().enumerate() {
            let (x, y) = (a_fields.value(a, i).unwrap_or(Value::Null), b_fields.value(b, i).unwrap_or(Value::Null));
            let order = compare_values(x, y, collation, self.encoding)?;
            if order != Ordering::Equal {
                return Some(if *desc { order.reverse() } else { order });
            }
        }
        Some(Ordering::Equal)
    }

    /// Whether two records are the same under UNIQUE: equal in its columns and none of them NULL.
    #[must_use]
    pub fn same_unique(&self, a: &[u8], a_fields: &Fields, b: &[u8], b_fields: &Fields) -> bool {
        if self.unique == 0 {
            return false;
        }
        self.columns.iter().take(self.unique).enumerate().all(|(i, (collation, _))| {
            let (x, y) = (a_fields.value(a, i).unwrap_or(Value::Null), b_fields.value(b, i).unwrap_or(Value::Null));
            !x.is_null() && compare_values(x, y, collation, self.encoding) == Some(Ordering::Equal)
        })
    }
}
