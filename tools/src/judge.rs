//! Real SQLite as judge: what it reads out of a database, and whether it finds anything wrong with it.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::functions::FunctionFlags;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, Result};

/// A value with its storage class. Text is the bytes as they are stored, in the encoding of the database.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cell {
    /// NULL.
    Null,
    /// INTEGER.
    Int(i64),
    /// REAL, by its bits.
    Real(u64),
    /// TEXT.
    Text(Vec<u8>),
    /// BLOB.
    Blob(Vec<u8>),
}

/// A row: its rowid where there is one, and its values.
pub type Row = (Option<i64>, Vec<Cell>);

/// Tables by name.
pub type Tables = BTreeMap<String, Vec<Row>>;

/// Rows of `sqlite_schema` in their order: type, name, table, text.
pub type Schema = Vec<(String, String, String, Option<String>)>;

/// Everything that must be the same in a clean copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dump {
    /// The schema in its order.
    pub schema: Schema,
    /// Header values that have a pragma.
    pub pragmas: BTreeMap<&'static str, String>,
    /// Rows of every table with a root page.
    pub tables: Tables,
}

/// Opens a database that SQLite may only read.
pub fn open(path: &Path) -> Result<Connection> {
    let con = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    extend(&con)?;
    Ok(con)
}

/// Registers what the application of some cases brings along: a collation DE_PHONE (as BINARY, from the end) and a function `half`.
pub fn extend(con: &Connection) -> Result<()> {
    con.create_collation("DE_PHONE", |a: &str, b: &str| b.cmp(a))?;
    // Any other that is asked for came out of NOCASE by damage.
    con.collation_needed(|con, name| con.create_collation(name, |a: &str, b: &str| a.to_ascii_lowercase().cmp(&b.to_ascii_lowercase())))?;
    con.create_scalar_function("half", 1, FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_UTF8, |ctx| {
        Ok(ctx.get::<Option<i64>>(0)?.map(|n| n / 2))
    })
}

/// A text that damage may have left without an encoding, as a name is that was kept as it is.
fn lossy(row: &rusqlite::Row<'_>, column: usize) -> Result<String> {
    Ok(String::from_utf8_lossy(row.get_ref(column)?.as_bytes()?).into_owned())
}

/// An identifier in quotes.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The schema in its order.
pub fn schema(con: &Connection) -> Result<Schema> {
    // Damaged names need not be UTF-8.
    let text = |r: &rusqlite::Row<'_>, i: usize| -> Result<Option<String>> {
        Ok(r.get_ref(i)?.as_bytes_or_null()?.map(|b| String::from_utf8_lossy(b).into_owned()))
    };
    con.prepare("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY rowid")?
        .query_map([], |r| {
            Ok((text(r, 0)?.unwrap_or_default(), text(r, 1)?.unwrap_or_default(), text(r, 2)?.unwrap_or_default(), text(r, 3)?))
        })?
        .collect()
}

/// Names of the FTS5 tables.
pub fn fts5_tables(con: &Connection) -> Result<Vec<String>> {
    let all = schema(con)?;
    Ok(all
        .into_iter()
        .filter(|(kind, _, _, sql)| {
            kind == "table"
                && sql.as_ref().is_some_and(|s| {
                    s.to_lowercase().starts_with("create virtual table")
                        && s.to_lowercase().contains("using fts5")
                        && !s.to_lowercase().contains("using fts5vocab")
                })
        })
        .map(|r| r.1)
        .collect())
}

/// Whether a table is the index of an FTS table: its bytes may differ where its meaning does not.
pub fn is_fts_index(name: &str, fts: &[String]) -> bool {
    fts.iter().any(|f| name.strip_prefix(f.as_str()).is_some_and(|rest| rest == "_data" || rest == "_idx"))
}

/// Rows of a table in the order of its key.
pub fn rows(con: &Connection, table: &str) -> Result<Vec<Row>> {
    let mut names: Vec<String> = Vec::new();
    let mut stmt = con.prepare("SELECT name, hidden FROM pragma_table_xinfo(?)")?;
    let mut found = stmt.query([table])?;
    while let Some(r) = found.next()? {
        if r.get::<_, i64>(1)? != 1 {
            names.push(lossy(r, 0)?.to_lowercase());
        }
    }
    let without: bool = con.query_row("SELECT wr FROM pragma_table_list(?) WHERE schema='main'", [table], |r| r.get(0))?;
    let rowid = if without { None } else { ["rowid", "_rowid_", "oid"].into_iter().find(|n| !names.iter().any(|m| m == n)) };
    let first = usize::from(rowid.is_some());
    let width = names.len() + first;
    // Names of our own: those of the table may be empty or twice there.
    let columns: Vec<String> = (0..width).map(|n| format!("c{n}")).collect();
    let wanted: Vec<String> = columns.iter().map(|c| format!("{c}, CASE typeof({c}) WHEN 'text' THEN CAST({c} AS BLOB) END")).collect();
    let inner = format!("SELECT {}* FROM {} NOT INDEXED", rowid.map(|r| format!("{r}, ")).unwrap_or_default(), quoted(table));
    let mut stmt = con.prepare(&format!("WITH x({}) AS ({inner}) SELECT {} FROM x", columns.join(","), wanted.join(",")))?;
    let mut out = Vec::new();
    let mut found = stmt.query([])?;
    while let Some(r) = found.next()? {
        let mut values = Vec::with_capacity(names.len());
        for c in first..width {
            values.push(match r.get_ref(2 * c)? {
                ValueRef::Null => Cell::Null,
                ValueRef::Integer(i) => Cell::Int(i),
                ValueRef::Real(f) => Cell::Real(f.to_bits()),
                ValueRef::Blob(b) => Cell::Blob(b.to_vec()),
                ValueRef::Text(_) => Cell::Text(r.get(2 * c + 1)?),
            });
        }
        out.push((if rowid.is_some() { Some(r.get(0)?) } else { None }, values));
    }
    Ok(out)
}

/// Rows of every table that has a root page.
pub fn tables(con: &Connection) -> Result<Tables> {
    // A damaged name that is no UTF-8 cannot be asked for through this interface.
    let names: Vec<Option<String>> = con
        .prepare("SELECT name FROM sqlite_schema WHERE type='table' AND rootpage > 0")?
        .query_map([], |r| Ok(r.get_ref(0)?.as_bytes()?.to_vec()))?
        .map(|name| Ok(String::from_utf8(name?).ok()))
        .collect::<Result<_>>()?;
    names.into_iter().flatten().map(|n| Ok((n.clone(), rows(con, &n)?))).collect()
}

/// Everything that must be the same in a clean copy.
pub fn dump(path: &Path) -> Result<Dump> {
    let con = open(path)?;
    let mut pragmas = BTreeMap::new();
    for name in ["page_size", "encoding", "auto_vacuum", "user_version", "application_id", "schema_version"] {
        let value: rusqlite::types::Value = con.query_row(&format!("PRAGMA {name}"), [], |r| r.get(0))?;
        pragmas.insert(name, format!("{value:?}"));
    }
    Ok(Dump { schema: schema(&con)?, pragmas, tables: tables(&con)? })
}

/// What integrity_check and the integrity-check of every FTS5 table say: empty when all is well.
pub fn complaints(con: &Connection) -> Vec<String> {
    let mut out = Vec::new();
    let said = con.prepare("PRAGMA integrity_check(20)").and_then(|mut s| s.query_map([], |r| lossy(r, 0))?.collect::<Result<Vec<_>>>());
    match said {
        Ok(lines) => out.extend(lines.into_iter().filter(|l| l != "ok")),
        Err(e) => out.push(format!("integrity_check: {e}")),
    }
    match fts5_tables(con) {
        Ok(names) => {
            for name in names {
                let q = quoted(&name);
                if let Err(e) = con.execute_batch(&format!("INSERT INTO {q}({q}, rank) VALUES('integrity-check', 1)")) {
                    out.push(format!("fts5 table {name}: {e}"));
                }
            }
        }
        Err(e) => out.push(format!("schema: {e}")),
    }
    out
}

/// Rows that name a parent which is not there: child table, rowid, parent table.
pub fn orphans(con: &Connection) -> Result<Vec<(String, Option<i64>, String)>> {
    con.prepare("PRAGMA foreign_key_check")?.query_map([], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?)))?.collect()
}

/// Every (term, document, column, offset) of the FTS5 tables: what their indexes mean, however they are packed.
pub fn fts_meaning(con: &Connection) -> Result<BTreeMap<String, Vec<String>>> {
    let mut out = BTreeMap::new();
    for name in fts5_tables(con)? {
        con.execute_batch(&format!("CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab(main, {}, instance)", quoted(&name)))?;
        let lines = con
            .prepare("SELECT hex(CAST(term AS BLOB)) || ' ' || doc || ' ' || coalesce(col, '-') || ' ' || coalesce(offset, '-') FROM temp.vocabulary ORDER BY 1")?
            .query_map([], |r| r.get(0))?
            .collect::<Result<Vec<String>>>()?;
        con.execute_batch("DROP TABLE temp.vocabulary")?;
        out.insert(name, lines);
    }
    Ok(out)
}

/// The first difference between two dumps, in words; `None` when they are equal. The bytes of FTS5 indexes are left out.
pub fn difference(want: &Dump, got: &Dump, fts: &[String]) -> Option<String> {
    for (a, b) in want.schema.iter().zip(&got.schema) {
        if a != b {
            return Some(format!("schema row differs:\n  want {a:?}\n  got  {b:?}"));
        }
    }
    if want.schema.len() != got.schema.len() {
        return Some(format!("{} schema rows, {} in the copy", want.schema.len(), got.schema.len()));
    }
    if want.pragmas != got.pragmas {
        return Some(format!("pragmas differ:\n  want {:?}\n  got  {:?}", want.pragmas, got.pragmas));
    }
    table_difference(&want.tables, &got.tables, fts)
}

/// The first difference between two sets of tables.
pub fn table_difference(want: &Tables, got: &Tables, fts: &[String]) -> Option<String> {
    for (name, rows) in want {
        if is_fts_index(name, fts) {
            continue;
        }
        let Some(other) = got.get(name) else { return Some(format!("table {name} is missing")) };
        let (mut rows, mut other) = (rows.clone(), other.clone());
        if rows.iter().chain(&other).any(|r| r.0.is_none()) {
            // Without rowids SQLite may read in the order of an index that covers the table.
            rows.sort();
            other.sort();
        }
        if let Some((a, b)) = rows.iter().zip(&other).find(|(a, b)| a != b) {
            return Some(format!("table {name}: a row differs:\n  want {}\n  got  {}", short(a), short(b)));
        }
        if rows.len() != other.len() {
            let more = if rows.len() > other.len() { rows.get(other.len()) } else { other.get(rows.len()) };
            return Some(format!(
                "table {name}: {} rows, {} in the copy; the first surplus one: {}",
                rows.len(),
                other.len(),
                more.map(short).unwrap_or_default()
            ));
        }
    }
    got.keys().find(|n| !want.contains_key(*n)).map(|n| format!("table {n} is new"))
}

fn short(row: &Row) -> String {
    let text = format!("{row:?}");
    if text.len() > 400 { format!("{}… ({} bytes)", text.chars().take(400).collect::<String>(), text.len()) } else { text }
}
