//! The compiled half of the Python package: `python/rootpage/__init__.py` is what people import.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyFileExistsError, PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};
use rootpage::ctx::Limits;
use rootpage::{Database, Report, Rows, Snapshot, SqlValue, error};

create_exception!(rootpage, Error, PyException, "A file cannot be read or written.");
create_exception!(rootpage, NotADatabase, Error, "The file is no database, nor anything that was one.");
create_exception!(rootpage, Unstable, Error, "The input changed while it was read.");

fn raised(error: error::Error) -> PyErr {
    let text = error.to_string();
    match error {
        error::Error::NotADatabase { .. } => NotADatabase::new_err(text),
        error::Error::Unstable { .. } => Unstable::new_err(text),
        error::Error::Exists { .. } => PyFileExistsError::new_err(text),
        error::Error::Usage { .. } => PyValueError::new_err(text),
        error::Error::Cancelled => PyKeyboardInterrupt::new_err(text),
        _ => Error::new_err(text),
    }
}

fn snapshot(text: &str) -> PyResult<Snapshot> {
    let wrong = || PyValueError::new_err(format!("at={text:?}: expected commit:N, frame:N or branch:NAME"));
    let (kind, value) = text.split_once(':').ok_or_else(wrong)?;
    match kind {
        "commit" => value.parse().map(Snapshot::Commit).map_err(|_| wrong()),
        "frame" => value.parse().map(Snapshot::Frame).map_err(|_| wrong()),
        "branch" if !value.is_empty() => Ok(Snapshot::Branch(value.to_owned())),
        _ => Err(wrong()),
    }
}

/// A database with the keyword arguments that all calls share; those of `more` are handed to it.
fn database(
    path: PathBuf,
    options: Option<&Bound<'_, PyDict>>,
    more: &mut dyn FnMut(&mut Database, &str, &Bound<'_, PyAny>) -> PyResult<bool>,
) -> PyResult<Database> {
    let mut database = rootpage::open(path);
    let mut limits = Limits::default();
    for (key, value) in options.into_iter().flatten() {
        let key: String = key.extract()?;
        if value.is_none() {
            continue;
        }
        let inputs = &mut database.inputs;
        match key.as_str() {
            "wal" => inputs.wal = value.extract::<Vec<PathBuf>>()?,
            "journal" => inputs.journal = Some(value.extract()?),
            "schema" => inputs.schema = Some(value.extract()?),
            "no_wal" => inputs.no_wal = value.extract()?,
            "no_journal" => inputs.no_journal = value.extract()?,
            "offset" => inputs.offset = value.extract()?,
            "at" => inputs.at = Some(snapshot(&value.extract::<String>()?)?),
            "redact" => database.options.redact = value.extract()?,
            "threads" => limits.threads = value.extract()?,
            "memory" => limits.memory = value.extract()?,
            _ => {
                if !more(&mut database, &key, &value)? {
                    return Err(PyValueError::new_err(format!("there is no option {key:?}")));
                }
            }
        }
    }
    Ok(database.limits(limits))
}

/// Runs something long on a thread of its own, so that Ctrl-C reaches Python and ends it.
fn run(py: Python<'_>, database: Database, work: impl FnOnce(&Database) -> error::Result<Report> + Send + 'static) -> PyResult<String> {
    let cancel = database.ctx.cancel_flag();
    let (send, mut done) = channel();
    let thread = std::thread::spawn(move || {
        let _ = send.send(work(&database).map(|report| report.to_json()));
    });
    let result = loop {
        let receiver = &mut done;
        let waited = py.detach(move || receiver.recv_timeout(Duration::from_millis(100)));
        match waited {
            Ok(result) => break result,
            Err(RecvTimeoutError::Disconnected) => return Err(Error::new_err("the run ended without a result")),
            Err(RecvTimeoutError::Timeout) => {
                if let Err(interrupt) = py.check_signals() {
                    cancel.store(true, Ordering::Relaxed);
                    let _ = py.detach(|| thread.join());
                    return Err(interrupt);
                }
            }
        }
    };
    let _ = py.detach(|| thread.join());
    result.map_err(raised)
}

#[pyfunction]
#[pyo3(signature = (path, **options))]
fn check(py: Python<'_>, path: PathBuf, options: Option<&Bound<'_, PyDict>>) -> PyResult<String> {
    let database = database(path, options, &mut |_, _, _| Ok(false))?;
    run(py, database, Database::check)
}

#[pyfunction]
#[pyo3(signature = (path, out, **options))]
fn recover(py: Python<'_>, path: PathBuf, out: PathBuf, options: Option<&Bound<'_, PyDict>>) -> PyResult<String> {
    let database = database(path, options, &mut |database, key, value| {
        match key {
            "force" => database.options.force = value.extract()?,
            "keep_violations" => database.options.keep_violations = value.extract()?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    run(py, database, move |d| d.recover(&out))
}

/// The rows of a table, one at a time.
#[pyclass]
struct Reader {
    rows: Option<std::sync::Mutex<Rows>>,
}

#[pymethods]
impl Reader {
    #[new]
    #[pyo3(signature = (path, table, **options))]
    fn new(path: PathBuf, table: Option<String>, options: Option<&Bound<'_, PyDict>>) -> PyResult<Reader> {
        let database = database(path, options, &mut |_, _, _| Ok(false))?;
        Ok(Reader { rows: Some(std::sync::Mutex::new(database.rows(table.as_deref()))) })
    }

    /// Table, columns, rowid and values of the next row; `None` behind the last. Ill-formed text comes as a tuple of its bytes.
    fn read<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let Some(rows) = &mut self.rows else { return Ok(None) };
        let next = py.detach(|| rows.get_mut().ok().and_then(Iterator::next));
        let Some(row) = next else {
            self.rows = None;
            return Ok(None);
        };
        let row = row.map_err(raised)?;
        let values = PyList::empty(py);
        for value in &row.values {
            match value {
                SqlValue::Null => values.append(py.None())?,
                SqlValue::Integer(n) => values.append(n)?,
                SqlValue::Real(r) => values.append(r)?,
                SqlValue::Text(text) => values.append(text)?,
                SqlValue::IllFormedText(bytes) => values.append((PyBytes::new(py, bytes),))?,
                SqlValue::Blob(bytes) => values.append(PyBytes::new(py, bytes))?,
                _ => values.append(py.None())?,
            }
        }
        let all = (row.table.name.as_str(), row.table.columns.clone(), row.rowid, values);
        Ok(Some(all.into_pyobject(py)?))
    }
}

#[pymodule]
fn _rootpage(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("Error", py.get_type::<Error>())?;
    module.add("NotADatabase", py.get_type::<NotADatabase>())?;
    module.add("Unstable", py.get_type::<Unstable>())?;
    module.add_function(wrap_pyfunction!(check, module)?)?;
    module.add_function(wrap_pyfunction!(recover, module)?)?;
    module.add_class::<Reader>()
}
