//! One table as an Apache Parquet file, typed by the values that it holds.
//!
//! A column of SQLite may hold values of several storage classes, a column of Parquet has one type. So the rows go to a
//! temporary file first, and the type of each column follows from what was seen:
//!
//! | storage classes seen, NULL apart | column |
//! |---|---|
//! | none, or well-formed text | `STRING` |
//! | integers | `INT64` |
//! | reals | `DOUBLE` |
//! | integers and reals, every integer exact as a double | `DOUBLE` |
//! | BLOBs | `BYTE_ARRAY` |
//! | any other mixture | a group with one optional field for each class: `integer`, `real`, `text`, `blob`, `ill_formed_text` |
//!
//! No value is changed or left out. Text is UTF-8 whatever the database's encoding is; `ill_formed_text` has the stored bytes.

mod column;
mod spool;

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, Repetition};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

use self::column::Column;
use self::spool::Spool;
use super::{RowSink, RowView, TableInfo};
use crate::error::{Error, Result};
use crate::format::{Encoding, Value};

/// Rows of a row group at most.
const GROUP_ROWS: usize = 64 << 10;
/// Bytes of values of a row group at most, but for the last row.
const GROUP_BYTES: usize = 32 << 20;

/// Writes one table as a Parquet file. The first column is the rowid, unless a column of the table is the rowid or the
/// table has none. The file is written when the table ends.
#[derive(Debug)]
pub struct Parquet<W: Write + Send> {
    out: Option<W>,
    temporary: std::path::PathBuf,
    table: Option<Open>,
}

/// The table whose rows come in.
#[derive(Debug)]
struct Open {
    name: String,
    encoding: Encoding,
    with_rowid: bool,
    columns: Vec<Column>,
    spool: Spool,
}

impl<W: Write + Send> Parquet<W> {
    /// A sink that writes to `out`; the rows of the table wait in an unnamed file in the folder `temporary`.
    pub fn new(out: W, temporary: &Path) -> Parquet<W> {
        Parquet { out: Some(out), temporary: temporary.to_path_buf(), table: None }
    }
}

impl<W: Write + Send> RowSink for Parquet<W> {
    fn begin_table(&mut self, table: &TableInfo) -> Result<()> {
        if self.out.is_none() || self.table.is_some() {
            return Err(Error::Usage { what: "a Parquet file holds one table".to_owned() });
        }
        let with_rowid = table.has_rowid && !table.columns.iter().any(|c| c.rowid_alias);
        let rowid = with_rowid.then(|| super::sql::rowid_name(table).unwrap_or("rowid"));
        let mut columns: Vec<Column> = Vec::new();
        for name in rowid.into_iter().chain(table.columns.iter().map(|c| c.name.as_str())) {
            columns.push(Column::new(free_name(name, &columns)));
        }
        let spool = Spool::new(&self.temporary)?;
        self.table = Some(Open { name: table.name.clone(), encoding: table.encoding, with_rowid, columns, spool });
        Ok(())
    }

    fn row(&mut self, row: &RowView<'_>) -> Result<()> {
        let Some(table) = &mut self.table else { return Ok(()) };
        let rowid = table.with_rowid.then_some(row.rowid.map_or(Value::Null, Value::Int));
        let values = rowid.into_iter().chain(row.values.iter().copied());
        for (column, value) in table.columns.iter_mut().zip(values.clone()) {
            column.see(value, table.encoding);
        }
        table.spool.push(values)
    }

    fn end_table(&mut self) -> Result<()> {
        let (Some(table), Some(out)) = (self.table.take(), self.out.take()) else { return Ok(()) };
        table.write(out)
    }
}

impl Open {
    fn write(mut self, out: impl Write + Send) -> Result<()> {
        let fields = self.columns.iter_mut().map(|c| c.settle().map(Arc::new)).collect::<std::result::Result<_, _>>().map_err(failed)?;
        // The root of a Parquet schema has a name that nobody sees; `repetition` is for inner groups alone.
        let schema = Type::group_type_builder("table").with_fields(fields).build().map_err(failed)?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(concat!("rootpage ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_key_value_metadata(Some(vec![KeyValue::new("rootpage.table".to_owned(), self.name.clone())]))
            .build();
        let mut file = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties)).map_err(failed)?;
        let mut rows = self.spool.read()?;
        loop {
            let (mut count, mut bytes) = (0_usize, 0_usize);
            while count < GROUP_ROWS && bytes < GROUP_BYTES {
                let columns = &mut self.columns;
                let encoding = self.encoding;
                let Some(len) = rows.next(|values| {
                    for (column, value) in columns.iter_mut().zip(values) {
                        column.push(value, encoding);
                    }
                })?
                else {
                    break;
                };
                count = count.saturating_add(1);
                bytes = bytes.saturating_add(len);
            }
            if count == 0 {
                break;
            }
            let mut group = file.next_row_group().map_err(failed)?;
            for column in &mut self.columns {
                column.flush(&mut group).map_err(failed)?;
            }
            group.close().map_err(failed)?;
        }
        file.close().map_err(failed)?;
        Ok(())
    }
}

/// A name that no column before it has, whatever the case: damage can make two columns of one name.
fn free_name(name: &str, taken: &[Column]) -> String {
    let mut out = name.to_owned();
    let mut n = 2_u32;
    while taken.iter().any(|c| c.name().eq_ignore_ascii_case(&out)) {
        out = format!("{name}_{n}");
        n = n.saturating_add(1);
    }
    out
}

/// What the Parquet writer answered, as a failure to write.
fn failed(error: ParquetError) -> Error {
    let source = match error {
        ParquetError::External(inner) => match inner.downcast::<std::io::Error>() {
            Ok(io) => *io,
            Err(other) => std::io::Error::other(other.to_string()),
        },
        other => std::io::Error::other(other.to_string()),
    };
    super::literal::write_error(source)
}

/// Whether a value can be absent; all of ours can.
const OPTIONAL: Repetition = Repetition::OPTIONAL;
