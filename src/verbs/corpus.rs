//! The regression corpus: runs `check` and `recover` on a case and compares with what its `expect.json` says.
//!
//! Expectations are made from the truth (real SQLite reads the database before it is damaged), never from what this
//! product says; `tools/` makes them. The rows of the copy are read by our own reader: the judge by real SQLite is a test.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Inputs, Options};
use crate::ctx::Ctx;
use crate::error::{Error, Result};
use crate::finding::Code;
use crate::format::Value;
use crate::ids::wide;
use crate::report::Report;
use crate::report::export::{RowSink, RowView, TableInfo};
use crate::report::model::TableRecovery;

/// What the reports on a case must say, `expect.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expect {
    /// What happened to the file.
    pub about: String,
    /// A file of the case that is given with `--schema`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// Exit code of check; `None`: not said.
    pub check: Option<u8>,
    /// Exit code of recover; `None`: not said.
    pub recover: Option<u8>,
    /// The verdict in a word; `None`: not said.
    pub class: Option<String>,
    /// Ids of problems that must be among the findings.
    pub codes: Vec<String>,
    /// Tables of the copy.
    pub tables: BTreeMap<String, ExpectTable>,
    /// Objects that must be listed as left out of the copy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Why this is not met yet: a difference is then told, but is no failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<String>,
}

/// What a table of the copy must hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpectTable {
    /// Live rows.
    pub rows: u64,
    /// The sum of their [`row_hash`]es in 16 hex digits; `None`: not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// At least so many rows are in the salvage database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aside: Option<u64>,
}

/// How a case went.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// The name of its folder.
    pub name: String,
    /// Why differences are known, from `expect.json`.
    pub open: Option<String>,
    /// Where the reports, or the copy, differ from what is expected.
    pub differences: Vec<String>,
    /// Ids of all problems that were found.
    pub codes: BTreeSet<String>,
}

/// The hash of a row: SHA-256 over "i" and the rowid, where there is one, then over each value its class letter (N I R T B)
/// and its bytes (numbers as 8 bytes, text and blobs as stored after their length in 8 bytes, all big-endian). The first
/// 8 bytes count.
#[must_use]
pub fn row_hash(rowid: Option<i64>, values: &[Value<'_>]) -> u64 {
    let mut h = Sha256::new();
    if let Some(id) = rowid {
        h.update(b"i");
        h.update(id.to_be_bytes());
    }
    for value in values {
        match value {
            Value::Null => h.update(b"N"),
            Value::Int(i) => {
                h.update(b"I");
                h.update(i.to_be_bytes());
            }
            Value::Real(f) => {
                h.update(b"R");
                h.update(f.to_bits().to_be_bytes());
            }
            Value::Text(bytes) | Value::Blob(bytes) => {
                h.update(if matches!(value, Value::Text(_)) { b"T" } else { b"B" });
                h.update(wide(bytes.len()).to_be_bytes());
                h.update(bytes);
            }
        }
    }
    h.finalize().iter().take(8).fold(0, |n, &b| n << 8 | u64::from(b))
}

/// Counts and hashes the rows of every table.
#[derive(Debug, Default)]
struct Hashes {
    tables: BTreeMap<String, (u64, u64)>,
    current: String,
}

impl RowSink for Hashes {
    fn begin_table(&mut self, table: &TableInfo) -> Result<()> {
        self.current.clone_from(&table.name);
        self.tables.insert(table.name.clone(), (0, 0));
        Ok(())
    }

    fn row(&mut self, row: &RowView<'_>) -> Result<()> {
        if let Some((count, sum)) = self.tables.get_mut(&self.current) {
            *count = count.saturating_add(1);
            *sum = sum.wrapping_add(row_hash(row.rowid, row.values));
        }
        Ok(())
    }

    fn end_table(&mut self) -> Result<()> {
        Ok(())
    }
}

/// The case folders below a folder, in order of their names.
///
/// # Errors
/// When the folder cannot be read.
pub fn cases(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut out = Vec::new();
    for entry in fs::read_dir(dir).map_err(|e| Error::io(dir, "read", e))? {
        let path = entry.map_err(|e| Error::io(dir, "read", e))?.path();
        if path.join("expect.json").exists() {
            out.push(path);
        }
    }
    out.sort();
    Ok(out)
}

/// Runs a case: `check` and `recover` on its `db.sqlite` and whatever lies beside it, the copy in a temporary folder.
///
/// # Errors
/// When the case cannot be read, or the tool itself fails.
pub fn run(case: &Path, ctx: &Ctx) -> Result<Outcome> {
    let path = case.join("expect.json");
    let text = fs::read(&path).map_err(|e| Error::io(&path, "read", e))?;
    let expect: Expect = serde_json::from_slice(&text).map_err(|e| Error::Usage { what: format!("{}: {e}", path.display()) })?;
    let mut inputs = Inputs::at_path(&case.join("db.sqlite"));
    inputs.schema = expect.schema.as_ref().map(|name| case.join(name));
    let options = Options::default();
    let dir = tempfile::tempdir().map_err(|e| Error::io(&std::env::temp_dir(), "create a folder in", e))?;
    let out = dir.path().join("out.db");
    let checked = super::check(&inputs, &options, ctx);
    let recovered = super::recover(&inputs, &options, &out, ctx);

    let name = case.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let mut outcome = Outcome { name, open: expect.open.clone(), ..Outcome::default() };
    let checked = report("check", checked, &mut outcome)?;
    let recovered = report("recover", recovered, &mut outcome)?;
    compare_report(&expect, "check", expect.check, checked.as_ref(), &mut outcome);
    compare_report(&expect, "recover", expect.recover, recovered.as_ref(), &mut outcome);
    for code in &expect.codes {
        if !outcome.codes.contains(code) {
            outcome.differences.push(format!("{code} is not among the findings {:?}", outcome.codes));
        }
    }
    if let Some(recovered) = &recovered {
        compare_ledger(&expect, recovered, &mut outcome.differences);
    }
    let mut hashes = Hashes::default();
    if out.exists() {
        super::rows(&Inputs::at_path(&out), &options, None, &mut hashes, ctx)?;
    }
    for (table, want) in &expect.tables {
        match hashes.tables.get(table) {
            None => outcome.differences.push(format!("table {table} is not in the copy, {} rows are expected", want.rows)),
            Some((rows, _)) if *rows != want.rows => {
                outcome.differences.push(format!("table {table} has {rows} rows in the copy, {} are expected", want.rows))
            }
            Some((_, sum)) if want.hash.as_ref().is_some_and(|h| *h != format!("{sum:016x}")) => {
                outcome.differences.push(format!("table {table} has other values in the copy than are expected"));
            }
            Some(_) => {}
        }
    }
    Ok(outcome)
}

/// The report of a run; `None` when there is none, because the input is no database or the copy did not pass.
fn report(verb: &str, result: Result<Report>, outcome: &mut Outcome) -> Result<Option<Report>> {
    match result {
        Ok(report) => Ok(Some(report)),
        Err(Error::NotADatabase { .. }) => Ok(None),
        Err(Error::Cancelled) => Err(Error::Cancelled),
        Err(error) => {
            outcome.differences.push(format!("{verb}: {error}"));
            Ok(None)
        }
    }
}

fn compare_report(expect: &Expect, verb: &str, code: Option<u8>, report: Option<&Report>, outcome: &mut Outcome) {
    let (exit, class) = report.map_or((3, "not-a-database"), |r| (r.exit_code, r.verdict.class.word()));
    if code.is_some_and(|c| c != exit) {
        outcome.differences.push(format!("{verb} ends with {exit}, {} is expected", code.unwrap_or_default()));
    }
    if expect.class.as_ref().is_some_and(|c| c != class) {
        outcome.differences.push(format!("{verb} says {class}, {} is expected", expect.class.as_deref().unwrap_or_default()));
    }
    match report {
        None => {
            outcome.codes.insert(Code::NotSqliteContent.problem().id.to_owned());
        }
        Some(report) => {
            outcome.codes.extend(report.findings.iter().map(|g| g.code.problem().id.to_owned()));
            if let Err(what) = report.balance() {
                outcome.differences.push(format!("the ledger of {verb} does not balance: {what}"));
            }
        }
    }
}

fn compare_ledger(expect: &Expect, report: &Report, differences: &mut Vec<String>) {
    let Some(recovery) = &report.recovery else { return };
    if recovery.read_back.as_ref().is_some_and(|r| !r.equal) {
        differences.push("the copy does not read back as it was written".to_owned());
    }
    for (table, want) in &expect.tables {
        let aside = recovery.tables.iter().filter(|t| t.name == *table).map(TableRecovery::rows_set_aside).fold(0, u64::saturating_add);
        if want.aside.is_some_and(|n| aside < n) {
            differences
                .push(format!("table {table}: {aside} rows are set aside, at least {} are expected", want.aside.unwrap_or_default()));
        }
    }
    for name in &expect.left_out {
        if !recovery.left_out.iter().any(|l| l.name == *name) {
            differences.push(format!("{name} is not listed as left out"));
        }
    }
}
