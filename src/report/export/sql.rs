//! SQL statements that make the same rows again.

use std::fmt::Write as _;
use std::io::Write;

use super::literal::{name, sql, write_error};
use super::{RowSink, RowView, TableInfo};
use crate::error::Result;
use crate::format::Encoding;
use crate::schema::one_line;

/// Writes CREATE TABLE and INSERT statements in one transaction.
///
/// Generated columns are left to be computed. `sqlite_sequence` follows last, because inserts change it; `sqlite_stat1`
/// is made by ANALYZE; the rows of other internal tables are counted in a comment.
#[derive(Debug)]
pub struct Sql<W> {
    out: W,
    begun: bool,
    encoding: Encoding,
    /// `INSERT INTO t(...) VALUES(` of the current table.
    head: String,
    with_rowid: bool,
    /// Which values are inserted.
    keep: Vec<bool>,
    kind: Kind,
    /// Statements on `sqlite_sequence`, kept for the end.
    late: String,
    skipped: u64,
    line: String,
    table: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    Sequence,
    Skipped,
}

impl<W: Write> Sql<W> {
    /// A sink that writes to `out`.
    pub fn new(out: W) -> Sql<W> {
        Sql {
            out,
            begun: false,
            encoding: Encoding::Utf8,
            head: String::new(),
            with_rowid: false,
            keep: Vec::new(),
            kind: Kind::Plain,
            late: String::new(),
            skipped: 0,
            line: String::new(),
            table: String::new(),
        }
    }

    fn put(&mut self) -> Result<()> {
        self.out.write_all(self.line.as_bytes()).map_err(write_error)
    }
}

/// A name under which the rowid of a table can be reached: one that no column hides.
pub(super) fn rowid_name(table: &TableInfo) -> Option<&'static str> {
    ["rowid", "_rowid_", "oid"].into_iter().find(|n| !table.columns.iter().any(|c| c.name.eq_ignore_ascii_case(n)))
}

/// A declaration that has the names of a table and its columns, and nothing else.
fn bare(table: &TableInfo) -> String {
    let columns: Vec<String> = table.columns.iter().filter(|c| !c.generated).map(|c| crate::schema::quoted(&c.name)).collect();
    format!("CREATE TABLE {}({});\n", crate::schema::quoted(&table.name), columns.join(", "))
}

impl<W: Write + Send> RowSink for Sql<W> {
    fn begin_table(&mut self, table: &TableInfo) -> Result<()> {
        self.line.clear();
        self.encoding = table.encoding;
        if !self.begun {
            self.begun = true;
            self.line.push_str(match table.encoding {
                Encoding::Utf8 => "PRAGMA encoding='UTF-8';\n",
                Encoding::Utf16Le => "PRAGMA encoding='UTF-16le';\n",
                Encoding::Utf16Be => "PRAGMA encoding='UTF-16be';\n",
            });
            self.line.push_str("PRAGMA foreign_keys=OFF;\nBEGIN;\n");
        }
        self.kind = match table.name.to_ascii_lowercase().as_str() {
            "sqlite_sequence" => Kind::Sequence,
            "sqlite_stat1" => {
                self.line.push_str("ANALYZE sqlite_schema;\n");
                Kind::Plain
            }
            internal if internal.starts_with("sqlite_") => Kind::Skipped,
            _ => Kind::Plain,
        };
        if let Some(create) = table.sql.as_deref().filter(|_| !table.name.to_ascii_lowercase().starts_with("sqlite_")) {
            match one_line::declared(create.as_bytes(), false, one_line::Breaks::InNames) {
                Ok(create) => self.line.push_str(&create),
                // The rows are what matters: SQLite takes them into a table without constraints, too.
                Err(why) => self.line.push_str(&format!("-- a declaration without constraints, because {why}\n{}", bare(table))),
            }
        }
        self.table.clone_from(&table.name);
        self.skipped = 0;
        self.keep = table.columns.iter().map(|c| !c.generated).collect();
        let rowid = rowid_name(table).filter(|_| table.has_rowid && !table.columns.iter().any(|c| c.rowid_alias));
        self.with_rowid = rowid.is_some() && self.kind == Kind::Plain;
        self.head = "INSERT INTO ".to_owned();
        name(&mut self.head, &table.name);
        self.head.push('(');
        let mut first = true;
        if let Some(rowid) = rowid.filter(|_| self.with_rowid) {
            self.head.push_str(rowid);
            first = false;
        }
        for column in table.columns.iter().filter(|c| !c.generated) {
            if !std::mem::take(&mut first) {
                self.head.push(',');
            }
            name(&mut self.head, &column.name);
        }
        self.head.push_str(") VALUES(");
        if self.kind == Kind::Sequence {
            self.late.push_str("DELETE FROM sqlite_sequence;\n");
        }
        self.put()
    }

    fn row(&mut self, row: &RowView<'_>) -> Result<()> {
        if self.kind == Kind::Skipped {
            self.skipped = self.skipped.saturating_add(1);
            return Ok(());
        }
        self.line.clear();
        self.line.push_str(&self.head);
        let mut first = true;
        if self.with_rowid {
            match row.rowid {
                Some(rowid) => {
                    let _ = write!(self.line, "{rowid}");
                }
                None => self.line.push_str("NULL"),
            }
            first = false;
        }
        for (value, keep) in row.values.iter().zip(&self.keep) {
            if *keep {
                if !std::mem::take(&mut first) {
                    self.line.push(',');
                }
                sql(&mut self.line, *value, self.encoding);
            }
        }
        self.line.push_str(");\n");
        if self.kind == Kind::Sequence {
            self.late.push_str(&self.line);
            return Ok(());
        }
        self.put()
    }

    fn end_table(&mut self) -> Result<()> {
        if self.skipped == 0 {
            return Ok(());
        }
        self.line.clear();
        // Of an internal table the name is known, and holds no line feed unless it was forged.
        let _ = writeln!(self.line, "-- {}: {} rows of statistics left out", self.table.escape_default(), self.skipped);
        self.put()
    }

    fn finish(&mut self) -> Result<()> {
        if self.begun {
            self.line = std::mem::take(&mut self.late);
            self.line.push_str("COMMIT;\n");
            self.put()?;
        }
        self.out.flush().map_err(write_error)
    }
}
