//! The library's face: one database, and what can be asked of it.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;

use crate::ctx::{Ctx, Limits, Progress, Silent};
use crate::error::{Error, Result};
use crate::format::{Encoding, Value};
use crate::ids::PageNo;
use crate::report::Report;
use crate::report::diff::Diff;
use crate::report::export::{RowSink, RowView, TableInfo};
use crate::report::page::PageView;
use crate::verbs::{self, Inputs, Options};

/// Rows that wait between the thread that reads and the one that asks.
const AHEAD: usize = 256;

/// A database to look into: the file, its `-wal`, `-journal` and `-shm`, and how a run behaves.
///
/// Nothing is read before a method asks for it, and each method reads anew. The evidence is opened read-only, nothing is made
/// beside it. Damage is never an error: it is in the [`Report`].
///
/// ```
/// let database = rootpage::open("corpus/leaf-zero/db.sqlite");
/// let report = database.check()?;
/// assert_eq!(report.exit_code, 2); // data is damaged
/// println!("{}", report.verdict.sentence);
/// # Ok::<(), rootpage::error::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Database {
    /// Which files are read, and which version of the database in them.
    pub inputs: Inputs,
    /// How a run behaves.
    pub options: Options,
    /// Limits, progress and cancellation of every run.
    pub ctx: Ctx,
}

/// The database at a path, with the sidecars that lie beside it.
///
/// Files are read by plain reads: mapping them needs a handler of SIGBUS, which is a matter of the program. Set
/// `options.no_mmap` to `false` where that is wanted; it is faster.
#[must_use]
pub fn open(path: impl AsRef<Path>) -> Database {
    let options = Options { no_mmap: true, ..Options::default() };
    Database { inputs: Inputs::at_path(path.as_ref()), options, ctx: Ctx::new(Limits::default(), Arc::new(Silent)) }
}

impl Database {
    /// Takes other bounds of memory and threads.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Database {
        self.ctx = Ctx::new(limits, Arc::clone(&self.ctx.progress));
        self
    }

    /// Tells this what a long run is doing.
    #[must_use]
    pub fn progress(mut self, progress: Arc<dyn Progress>) -> Database {
        self.ctx = Ctx::new(self.ctx.limits, progress);
        self
    }

    /// Verdict and findings, as `rootpage check` gives them. Reads every page.
    ///
    /// # Errors
    /// [`Error::NotADatabase`], [`Error::Io`], [`Error::Unstable`] when an input changed during the run twice,
    /// [`Error::Cancelled`].
    pub fn check(&self) -> Result<Report> {
        verbs::check(&self.inputs, &self.options, &self.ctx)
    }

    /// Writes the clean copy to `out`, and beside it the reports, the salvage database and the finish script.
    ///
    /// ```
    /// let folder = tempfile::tempdir()?;
    /// let copy = folder.path().join("copy.db");
    /// let report = rootpage::open("corpus/leaf-zero/db.sqlite").recover(&copy)?;
    /// let written: u64 = report.recovery.iter().flat_map(|r| &r.tables).map(|t| t.rows_written).sum();
    /// assert!(written > 0 && copy.exists());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Database::check`]; [`Error::Exists`] when an output is there already and `options.force` is not set.
    pub fn recover(&self, out: impl AsRef<Path>) -> Result<Report> {
        verbs::recover(&self.inputs, &self.options, out.as_ref(), &self.ctx)
    }

    /// The rows of one table, or of all, straight from the evidence. A thread reads ahead; dropping the iterator ends it.
    ///
    /// ```
    /// for row in rootpage::open("corpus/leaf-zero/db.sqlite").rows(Some("orders")) {
    ///     let row = row?;
    ///     println!("{:?} {:?}", row.rowid, row.get("note"));
    /// }
    /// # Ok::<(), rootpage::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// The first item is an error when the table is not known or the files cannot be read, as with [`Database::check`]; the
    /// last one is [`Error::Unstable`] when an input changed.
    #[must_use]
    pub fn rows(&self, table: Option<&str>) -> Rows {
        let (send, rows) = sync_channel(AHEAD);
        let (database, table) = (self.clone(), table.map(str::to_owned));
        let reader = std::thread::spawn(move || {
            let mut sink = Channel { send: send.clone(), table: None };
            if let Err(error) = verbs::rows(&database.inputs, &database.options, table.as_deref(), &mut sink, &database.ctx) {
                // Nobody may be there to hear it.
                let _ = send.send(Err(error));
            }
        });
        Rows { rows: Some(rows), reader: Some(reader) }
    }

    /// How this database and another differ, row by row; at most `limit` rows are listed for each table.
    ///
    /// # Errors
    /// As [`Database::check`], for either of them.
    pub fn diff(&self, other: &Database, limit: u64) -> Result<Diff> {
        verbs::diff(&self.inputs, &other.inputs, &self.options, &[], false, limit, &self.ctx)
    }

    /// The report of [`Database::check`] with every page, its role and its owner.
    ///
    /// # Errors
    /// As [`Database::check`].
    pub fn map(&self) -> Result<Report> {
        verbs::map(&self.inputs, &self.options, &self.ctx)
    }

    /// One page explained; pages count from 1.
    ///
    /// # Errors
    /// As [`Database::check`]; [`Error::Usage`] when there is no such page.
    pub fn page(&self, number: u32) -> Result<PageView> {
        let number = PageNo::new(number).ok_or_else(|| Error::Usage { what: "pages count from 1".to_owned() })?;
        verbs::page(&self.inputs, &self.options, number, &self.ctx)
    }

    /// The path of the database file.
    #[must_use]
    pub fn path(&self) -> &PathBuf {
        &self.inputs.db
    }
}

/// A value of a row with its storage class.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum SqlValue {
    /// NULL.
    Null,
    /// An integer.
    Integer(i64),
    /// A real.
    Real(f64),
    /// Text, whatever the encoding of the database is.
    Text(String),
    /// Text that is not well-formed in the encoding of the database, as it is stored.
    IllFormedText(Vec<u8>),
    /// A BLOB.
    Blob(Vec<u8>),
}

impl SqlValue {
    fn of(value: Value<'_>, encoding: Encoding) -> SqlValue {
        match value {
            Value::Null => SqlValue::Null,
            Value::Int(n) => SqlValue::Integer(n),
            Value::Real(r) => SqlValue::Real(r),
            Value::Text(stored) if encoding.is_valid(stored) => {
                SqlValue::Text(String::from_utf8_lossy(&encoding.to_utf8(stored)).into_owned())
            }
            Value::Text(stored) => SqlValue::IllFormedText(stored.to_vec()),
            Value::Blob(bytes) => SqlValue::Blob(bytes.to_vec()),
        }
    }
}

/// A table whose rows are read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Table {
    /// Its name.
    pub name: String,
    /// The names of its columns in the order of the values.
    pub columns: Vec<String>,
}

/// A row, straight from the evidence.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Row {
    /// Its table.
    pub table: Arc<Table>,
    /// Its rowid; `None` in a WITHOUT ROWID table.
    pub rowid: Option<i64>,
    /// One value for each column of the table.
    pub values: Vec<SqlValue>,
}

impl Row {
    /// The value of a column; case is ignored, as SQLite does.
    #[must_use]
    pub fn get(&self, column: &str) -> Option<&SqlValue> {
        self.values.get(self.table.columns.iter().position(|c| c.eq_ignore_ascii_case(column))?)
    }
}

/// The rows of [`Database::rows`].
#[derive(Debug)]
pub struct Rows {
    rows: Option<Receiver<Result<Row>>>,
    reader: Option<JoinHandle<()>>,
}

impl Iterator for Rows {
    type Item = Result<Row>;

    fn next(&mut self) -> Option<Result<Row>> {
        self.rows.as_ref()?.recv().ok()
    }
}

impl Drop for Rows {
    fn drop(&mut self) {
        // The reader sees that nobody takes its rows, and ends.
        self.rows = None;
        if let Some(reader) = self.reader.take() {
            let _ = reader.join().map_err(PoisonError::new);
        }
    }
}

/// The sink of the reading thread.
struct Channel {
    send: SyncSender<Result<Row>>,
    table: Option<(Arc<Table>, Encoding)>,
}

impl RowSink for Channel {
    fn begin_table(&mut self, table: &TableInfo) -> Result<()> {
        let columns = table.columns.iter().map(|c| c.name.clone()).collect();
        self.table = Some((Arc::new(Table { name: table.name.clone(), columns }), table.encoding));
        Ok(())
    }

    fn row(&mut self, row: &RowView<'_>) -> Result<()> {
        let Some((table, encoding)) = &self.table else { return Ok(()) };
        let values = row.values.iter().map(|v| SqlValue::of(*v, *encoding)).collect();
        let row = Row { table: Arc::clone(table), rowid: row.rowid, values };
        self.send.send(Ok(row)).map_err(|_| Error::Cancelled)
    }

    fn end_table(&mut self) -> Result<()> {
        Ok(())
    }
}
