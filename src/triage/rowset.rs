//! The rows of a source as sorted hashes: which it has that others lack, without a value kept.

use std::collections::BTreeMap;

use crate::ctx::Ctx;
use crate::error::{Error, Result};
use crate::ids::wide;
use crate::verbs::{self, Inputs, Options};

/// Bytes that a row takes.
const ROW: usize = 16;

/// Keys and values of the rows of each table.
#[derive(Debug, Clone, Default)]
pub(super) struct RowSet {
    tables: BTreeMap<String, Vec<(u64, u64)>>,
    /// The highest rowid of each table: rows are added at the end.
    highest: BTreeMap<String, i64>,
}

/// Reads the rows of a source; `None` when together with what is read already they pass the memory limit.
pub(super) fn read(inputs: &Inputs, options: &Options, room: &mut usize, ctx: &Ctx) -> Result<Option<RowSet>> {
    let mut set = RowSet::default();
    let mut left = *room;
    let done = verbs::inventory(inputs, options, ctx, |row| {
        left = left.checked_sub(ROW).ok_or_else(|| Error::Limit { what: "memory".to_owned() })?;
        if let Some(rowid) = row.rowid {
            match set.highest.get_mut(row.table) {
                Some(highest) => *highest = rowid.max(*highest),
                None => {
                    set.highest.insert(row.table.to_owned(), rowid);
                }
            }
        }
        match set.tables.get_mut(row.table) {
            Some(rows) => rows.push((row.key, row.value)),
            None => {
                set.tables.insert(row.table.to_owned(), vec![(row.key, row.value)]);
            }
        }
        Ok(())
    });
    match done {
        Ok(()) => {}
        Err(Error::Limit { .. }) => return Ok(None),
        Err(error) => return Err(error),
    }
    *room = left;
    for rows in set.tables.values_mut() {
        rows.sort_unstable();
        rows.dedup_by_key(|r| r.0);
    }
    Ok(Some(set))
}

impl RowSet {
    /// Rows of all tables.
    pub(super) fn rows(&self) -> u64 {
        self.tables.values().map(|r| wide(r.len())).fold(0, u64::saturating_add)
    }

    /// Rows that both have with the same values, and with others.
    pub(super) fn common(&self, other: &RowSet) -> (u64, u64) {
        let (mut same, mut clash) = (0_u64, 0_u64);
        for (table, (key, value)) in self.tables.iter().flat_map(|(t, rows)| rows.iter().map(move |r| (t, r))) {
            match other.value(table, *key) {
                Some(theirs) if theirs == *value => same = same.saturating_add(1),
                Some(_) => clash = clash.saturating_add(1),
                None => {}
            }
        }
        (same, clash)
    }

    /// A number that grows with the rows that were ever added: the sum of the highest rowids.
    pub(super) fn added(&self) -> u64 {
        self.highest.values().map(|n| u64::try_from(*n).unwrap_or(0)).fold(0, u64::saturating_add)
    }

    fn value(&self, table: &str, key: u64) -> Option<u64> {
        let rows = self.tables.get(table)?;
        let at = rows.binary_search_by_key(&key, |r| r.0).ok()?;
        rows.get(at).map(|r| r.1)
    }

    /// Whether it has a row of this key.
    pub(super) fn has(&self, table: &str, key: u64) -> bool {
        self.value(table, key).is_some()
    }

    /// Keys of each table that none of the others has.
    pub(super) fn alone(&self, others: &[&RowSet]) -> BTreeMap<String, Vec<u64>> {
        let mut out = BTreeMap::new();
        for (table, rows) in &self.tables {
            let keys: Vec<u64> = rows.iter().map(|r| r.0).filter(|key| !others.iter().any(|o| o.has(table, *key))).collect();
            if !keys.is_empty() {
                out.insert(table.clone(), keys);
            }
        }
        out
    }

    /// Rows that one of the newer sets has with other values.
    pub(super) fn older_than(&self, newer: &[&RowSet]) -> u64 {
        let rows = self.tables.iter().flat_map(|(table, rows)| rows.iter().map(move |r| (table, r)));
        let older = rows.filter(|(table, (key, value))| newer.iter().any(|n| n.value(table, *key).is_some_and(|v| v != *value)));
        wide(older.count())
    }
}
