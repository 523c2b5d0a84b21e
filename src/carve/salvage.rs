//! Carved rows as a salvage database: one mirror for each table, the columns of the provenance in front.
//!
//! The first columns are those of the salvage database of `recover`; what only carving knows follows them.

use std::collections::BTreeSet;
use std::fs::File;

use crate::carve::blob;
use crate::carve::{CarveSink, CarvedRow, CarvedTable};
use crate::error::Result;
use crate::format::record::encode_record;
use crate::format::{Encoding, Value};
use crate::ids::{PageNo, PageSize, RootPage, wide};
use crate::report::export::sql_literal;
use crate::schema::quoted;
use crate::survey::plan::Constant;
use crate::write::file::OutputFile;
use crate::write::{DatabaseWriter, Settings, TableTree};

/// The columns in front of a mirror's own.
const PROVENANCE: [&str; 17] = [
    "rp_reason",
    "rp_how",
    "rp_trust",
    "rp_source",
    "rp_page",
    "rp_cell",
    "rp_offset",
    "rp_length",
    "rp_complete",
    "rp_rowid",
    "rp_place",
    "rp_copies",
    "rp_places",
    "rp_solutions",
    "rp_candidates",
    "rp_gone",
    "rp_restore",
];

/// A table that is being written.
struct Open {
    name: String,
    table: String,
    columns: Vec<String>,
    tree: TableTree,
    rows: i64,
}

/// Writes the salvage database.
pub(crate) struct Salvage<'f> {
    db: DatabaseWriter<&'f File>,
    encoding: Encoding,
    schema: Vec<(String, RootPage, String)>,
    names: BTreeSet<String>,
    open: Option<Open>,
    blobs: Option<(RootPage, TableTree, i64)>,
    record: Vec<u8>,
}

impl<'f> Salvage<'f> {
    /// A salvage database in `file`, its texts in the encoding of the evidence.
    ///
    /// # Errors
    /// I/O.
    pub(crate) fn new(file: &'f OutputFile, encoding: Encoding) -> Result<Salvage<'f>> {
        let mut settings = Settings::new(PageSize::new(4096).unwrap_or(PageSize::SMALLEST));
        settings.encoding = encoding;
        let names = BTreeSet::from(["rootpage_blobs".to_owned(), "rootpage_dropped".to_owned()]);
        let db = DatabaseWriter::new(file.file(), file.temp_path(), settings)?;
        Ok(Salvage { db, encoding, schema: Vec::new(), names, open: None, blobs: None, record: Vec::new() })
    }

    fn text(&self, s: &str) -> Constant {
        Constant::Text(self.encoding.from_utf8(s.as_bytes()).into_owned())
    }

    fn free_name(&mut self, table: &str) -> String {
        let mut name = table.to_owned();
        while name.is_empty()
            || name.starts_with("lost_and_found_")
            || name.to_ascii_lowercase().starts_with("sqlite_")
            || !self.names.insert(name.to_ascii_lowercase())
        {
            name.insert_str(0, "rp_");
        }
        name
    }

    fn root(&mut self) -> Result<RootPage> {
        Ok(self.db.reserve_roots(1)?.first().copied().unwrap_or(RootPage(PageNo::ONE)))
    }

    fn close(&mut self) -> Result<()> {
        if let Some(open) = self.open.take() {
            open.tree.finish(&mut self.db)?;
        }
        Ok(())
    }

    /// Writes the schema and everything that is still in memory.
    ///
    /// # Errors
    /// I/O.
    pub(crate) fn close_all(mut self) -> Result<()> {
        self.close()?;
        if let Some((_, tree, _)) = self.blobs.take() {
            tree.finish(&mut self.db)?;
        }
        let mut tree = TableTree::new(&self.db, RootPage(PageNo::ONE));
        for (i, (name, root, sql)) in self.schema.iter().enumerate() {
            let (kind, name, sql) = (self.text("table"), self.text(name), self.text(sql));
            let values = [kind.value(), name.value(), name.value(), Value::Int(i64::from(root.0.get())), sql.value()];
            let mut record = Vec::new();
            encode_record(&mut record, values.into_iter());
            tree.push(&mut self.db, i64::try_from(wide(i)).unwrap_or(0).saturating_add(1), &[&record])?;
        }
        tree.finish(&mut self.db)?;
        self.db.finish()?;
        Ok(())
    }

    fn note_blob(&mut self, table: &str, row: i64, column: &str, bytes: &[u8]) -> Result<()> {
        let (root, mut tree, n) = match self.blobs.take() {
            Some(open) => open,
            None => {
                let root = self.root()?;
                let sql = "CREATE TABLE rootpage_blobs(\"table\", \"row\", \"column\", kind, bytes, sha256)";
                self.schema.push(("rootpage_blobs".to_owned(), root, sql.to_owned()));
                (root, TableTree::new(&self.db, root), 0)
            }
        };
        let n: i64 = n;
        let values = [
            self.text(table),
            Constant::Int(row),
            self.text(column),
            self.text(blob::kind(bytes)),
            Constant::Int(i64::try_from(wide(bytes.len())).unwrap_or(i64::MAX)),
            self.text(&blob::sha256(bytes)),
        ];
        self.record.clear();
        encode_record(&mut self.record, values.iter().map(Constant::value));
        let n = n.saturating_add(1);
        tree.push(&mut self.db, n, &[&self.record])?;
        self.blobs = Some((root, tree, n));
        Ok(())
    }
}

/// The statement that puts a row back.
fn restore(open: &Open, row: &CarvedRow<'_>) -> String {
    if !row.complete {
        return String::new();
    }
    let verb = if row.relation == crate::carve::Relation::Older { "INSERT OR REPLACE" } else { "INSERT" };
    let columns: Vec<String> = open.columns.iter().map(|c| quoted(c)).collect();
    format!(
        "{verb} INTO {}({columns}) SELECT {columns} FROM salvage.{} WHERE rowid = {};",
        quoted(&open.table),
        quoted(&open.name),
        open.rows,
        columns = columns.join(", ")
    )
}

impl CarveSink for Salvage<'_> {
    fn begin_table(&mut self, table: &CarvedTable<'_>) -> Result<()> {
        self.close()?;
        let name = self.free_name(table.name);
        let mut used: BTreeSet<String> = PROVENANCE.iter().map(|s| (*s).to_owned()).collect();
        let mut columns: Vec<String> = PROVENANCE.iter().map(|s| (*s).to_owned()).collect();
        let mut own = Vec::new();
        for column in &table.columns {
            let mut column = (*column).to_owned();
            while column.is_empty() || !used.insert(column.to_ascii_lowercase()) {
                column.push('_');
            }
            columns.push(quoted(&column));
            own.push(column);
        }
        columns.push("rp_surplus".to_owned());
        let root = self.root()?;
        self.schema.push((name.clone(), root, format!("CREATE TABLE {}({})", quoted(&name), columns.join(", "))));
        let tree = TableTree::new(&self.db, root);
        self.open = Some(Open { name, table: table.name.to_owned(), columns: own, tree, rows: 0 });
        Ok(())
    }

    fn row(&mut self, row: &CarvedRow<'_>) -> Result<()> {
        let Some(mut open) = self.open.take() else { return Ok(()) };
        open.rows = open.rows.saturating_add(1);
        let text_or_null = |s: &Salvage<'_>, t: &str| if t.is_empty() { Constant::Null } else { s.text(t) };
        let count = |n: u64| Constant::Int(i64::try_from(n).unwrap_or(i64::MAX));
        let mut values: Vec<Constant> = vec![
            self.text(row.relation.word()),
            self.text(row.how.word()),
            self.text(row.trust),
            self.text(&row.source),
            Constant::Int(i64::from(row.page)),
            Constant::Null,
            Constant::Int(i64::from(row.offset)),
            Constant::Int(i64::from(row.length)),
            Constant::Int(i64::from(row.complete)),
            row.rowid.map_or(Constant::Null, Constant::Int),
            self.text(&row.place),
            count(wide(row.more.len())),
            text_or_null(self, &row.more.join("; ")),
            count(u64::from(row.solutions)),
            text_or_null(self, &row.candidates.join(", ")),
            text_or_null(self, &row.gone),
            text_or_null(self, &restore(&open, row)),
        ];
        values.extend(row.values.iter().map(|v| v.map_or(Constant::Null, Constant::from)));
        let mut surplus = String::new();
        for v in &row.surplus {
            if !surplus.is_empty() {
                surplus.push_str(", ");
            }
            sql_literal(&mut surplus, *v, self.encoding);
        }
        values.push(text_or_null(self, &surplus));
        let mut record = std::mem::take(&mut self.record);
        record.clear();
        encode_record(&mut record, values.iter().map(Constant::value));
        open.tree.push(&mut self.db, open.rows, &[&record])?;
        self.record = record;
        for (column, value) in open.columns.iter().zip(&row.values) {
            if let Some(Value::Blob(bytes)) = value {
                self.note_blob(&open.name, open.rows, column, bytes)?;
            }
        }
        self.open = Some(open);
        Ok(())
    }
}
