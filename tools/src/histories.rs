//! Histories of databases with every row that ever lived: inserts, updates, deletes, drops, by real SQLite, over page sizes,
//! encodings and kinds of tables. And the score of rows that were carved out of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::types::Value;
use rusqlite::{Connection, Result, params};

use super::rng::Rng;

/// A value that can be compared and ordered.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cell {
    /// NULL.
    Null,
    /// An integer.
    Int(i64),
    /// A double, by its bits.
    Real(u64),
    /// Text.
    Text(String),
    /// A BLOB.
    Blob(Vec<u8>),
}

impl From<Value> for Cell {
    fn from(v: Value) -> Cell {
        match v {
            Value::Null => Cell::Null,
            Value::Integer(n) => Cell::Int(n),
            Value::Real(r) => Cell::Real(r.to_bits()),
            Value::Text(t) => Cell::Text(t),
            Value::Blob(b) => Cell::Blob(b),
        }
    }
}

/// A row at some time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    /// Its rowid; none in a WITHOUT ROWID table.
    pub rowid: Option<i64>,
    /// Its values as declared.
    pub values: Vec<Cell>,
}

/// A table that lived at some time.
#[derive(Debug, Clone, Default)]
pub struct Table {
    /// Its columns.
    pub columns: Vec<String>,
    /// The column that is the rowid.
    pub alias: Option<usize>,
    /// The columns of the key, where it has no rowids.
    pub key: Vec<usize>,
    /// Every row that ever lived.
    pub ever: BTreeSet<Row>,
    /// Those that live.
    pub live: BTreeSet<Row>,
}

/// Everything that ever lived.
#[derive(Debug, Clone, Default)]
pub struct Truth {
    /// By name.
    pub tables: BTreeMap<String, Table>,
    /// Text encoding.
    pub encoding: String,
    /// Nothing may be found: the bytes of deleted rows were wiped.
    pub wiped: bool,
}

/// What a history does, and to what.
#[derive(Debug, Clone)]
pub struct Kind {
    /// A name that says it.
    pub name: String,
    /// Page size.
    pub page_size: u32,
    /// Text encoding.
    pub encoding: &'static str,
    /// Auto-vacuum mode.
    pub auto_vacuum: u32,
    /// What happens.
    pub acts: &'static [&'static str],
    /// Wipes deleted bytes.
    pub secure: bool,
    /// Journal mode.
    pub journal: &'static str,
}

/// Histories over all kinds for one seed.
pub fn kinds(seed: u64) -> Vec<Kind> {
    let mut rng = Rng::new(&format!("kinds {seed}"));
    const ACTS: &[(&str, &[&str])] = &[
        ("scattered", &["fill", "scatter"]),
        ("runs", &["fill", "run", "run"]),
        ("all", &["fill", "all"]),
        ("drop", &["fill", "drop"]),
        ("update", &["fill", "update"]),
        ("reuse", &["fill", "scatter", "more"]),
        ("mixed", &["fill", "scatter", "update", "more", "run"]),
        ("altered", &["fill", "alter", "more", "scatter"]),
        ("wal", &["fill", "update", "scatter", "run"]),
        ("persist", &["fill", "commit", "update", "scatter"]),
        ("recreated", &["fill", "recreate"]),
        ("secure", &["fill", "scatter", "run"]),
        ("vacuum", &["fill", "scatter", "vacuum"]),
    ];
    let mut out = Vec::new();
    for (name, acts) in ACTS {
        let page_size = *rng.pick(&[512, 1024, 4096, 4096, 8192, 65536]);
        let encoding = *rng.pick(&["UTF-8", "UTF-8", "UTF-8", "UTF-16le", "UTF-16be"]);
        out.push(Kind {
            name: format!("{name}-{page_size}-{encoding}-{seed}"),
            page_size,
            encoding,
            auto_vacuum: *rng.pick(&[0, 0, 1, 2]),
            acts,
            secure: *name == "secure",
            journal: match *name {
                "wal" => "WAL",
                "persist" => "PERSIST",
                _ => "DELETE",
            },
        });
    }
    out
}

const TABLES: [(&str, &str, Option<usize>, &[usize]); 7] = [
    (
        "people",
        "CREATE TABLE people(id INTEGER PRIMARY KEY, name TEXT NOT NULL, mail TEXT, age INTEGER, score REAL, note TEXT)",
        Some(0),
        &[],
    ),
    ("bare", "CREATE TABLE bare(a TEXT, b INTEGER)", None, &[]),
    (
        "events",
        "CREATE TABLE events(kind TEXT, at INTEGER NOT NULL, level INTEGER, host TEXT, body TEXT, extra BLOB, id INTEGER PRIMARY KEY)",
        Some(6),
        &[],
    ),
    ("pairs", "CREATE TABLE pairs(k TEXT PRIMARY KEY, v TEXT, n INTEGER) WITHOUT ROWID", None, &[0]),
    ("links", "CREATE TABLE links(src INTEGER, dst INTEGER, label TEXT, PRIMARY KEY(src, dst)) WITHOUT ROWID", None, &[0, 1]),
    ("long", "CREATE TABLE long(id INTEGER PRIMARY KEY, title TEXT, body TEXT)", Some(0), &[]),
    ("numbers", "CREATE TABLE numbers(x INTEGER, y REAL, z INTEGER, w NUMERIC)", None, &[]),
];

struct Maker<'r> {
    con: Connection,
    rng: &'r mut Rng,
    truth: Truth,
    serial: i64,
    scale: i64,
}

/// Writes a history to `db`.
///
/// # Errors
/// Those of SQLite.
pub fn make(db: &Path, kind: &Kind) -> Result<Truth> {
    let mut rng = Rng::new(&kind.name);
    let con = Connection::open(db)?;
    con.execute_batch(&format!(
        "PRAGMA page_size={}; PRAGMA encoding='{}'; PRAGMA auto_vacuum={}; PRAGMA secure_delete={}; PRAGMA journal_mode={};
         PRAGMA wal_autocheckpoint=0; PRAGMA synchronous=OFF;",
        kind.page_size,
        kind.encoding,
        kind.auto_vacuum,
        i32::from(kind.secure),
        kind.journal
    ))?;
    let mut maker = Maker {
        con,
        truth: Truth { encoding: kind.encoding.to_owned(), wiped: kind.secure, ..Truth::default() },
        serial: 0,
        scale: if kind.page_size >= 4096 { 500 } else { 160 },
        rng: &mut rng,
    };
    for (name, sql, alias, key) in TABLES {
        maker.con.execute_batch(sql)?;
        let table = Table { alias, key: key.to_vec(), ..Table::default() };
        maker.truth.tables.insert(name.to_owned(), table);
    }
    maker.con.execute_batch("CREATE INDEX people_mail ON people(mail); CREATE INDEX events_at ON events(at, level);")?;
    for act in kind.acts {
        maker.act(act)?;
        maker.note()?;
    }
    let Maker { con, truth, .. } = maker;
    if kind.journal == "WAL" {
        // The log stays: its content is copied before the last connection closes.
        let wal = PathBuf::from(format!("{}-wal", db.display()));
        let keep = (fs::read(db), fs::read(&wal));
        drop(con);
        if let (Ok(main), Ok(log)) = keep {
            let _ = fs::write(db, main);
            let _ = fs::write(&wal, log);
        }
        let _ = fs::remove_file(format!("{}-shm", db.display()));
    }
    Ok(truth)
}

impl Maker<'_> {
    /// Takes down every row that lives now.
    fn note(&mut self) -> Result<()> {
        for (name, table) in &mut self.truth.tables {
            table.live.clear();
            let exists: i64 = self.con.query_row("SELECT count(*) FROM sqlite_schema WHERE name = ?1", [name], |r| r.get(0))?;
            if exists == 0 {
                continue;
            }
            let with_rowid = table.key.is_empty();
            let sql = if with_rowid { format!("SELECT rowid, * FROM {name}") } else { format!("SELECT NULL, * FROM {name}") };
            let mut statement = self.con.prepare(&sql)?;
            table.columns = statement.column_names().skip(1).map(str::to_owned).collect();
            let n = table.columns.len();
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let values = (1..=n).map(|i| Ok(Cell::from(row.get::<_, Value>(i)?))).collect::<Result<Vec<_>>>()?;
                table.live.insert(Row { rowid: row.get(0)?, values });
            }
            // A column that came later: the rows before it had its default, which is NULL here.
            let ever = std::mem::take(&mut table.ever);
            table.ever = ever
                .into_iter()
                .map(|mut r| {
                    r.values.resize(n, Cell::Null);
                    r
                })
                .collect();
            table.ever.extend(table.live.iter().cloned());
        }
        Ok(())
    }

    fn fill(&mut self, n: i64) -> Result<()> {
        self.con.execute_batch("BEGIN")?;
        for _ in 0..n {
            self.serial += 1;
            let s = self.serial;
            let rng = &mut *self.rng;
            let (w1, w2, w3) = (1 + rng.below(3), 1 + rng.below(9), 2 + rng.below(4));
            let (name, note, label) = (rng.words(w1), rng.words(w2), rng.words(w3));
            self.con.execute(
                "INSERT INTO people(name, mail, age, score, note) VALUES(?,?,?,?,?)",
                params![
                    format!("{name} {s}"),
                    if rng.one_in(9) { None } else { Some(format!("user{s}@example.org")) },
                    rng.range(0, 99),
                    rng.range(0, 100_000) as f64 / 7.0,
                    note
                ],
            )?;
            self.con.execute("INSERT INTO bare(a, b) VALUES(?,?)", params![format!("bare {s} {name}"), rng.range(-300, 100_000)])?;
            let extra: Option<Vec<u8>> = match rng.below(3) {
                0 => Some(rng.bytes(20)),
                _ => None,
            };
            self.con.execute(
                "INSERT INTO events(kind, at, level, host, body, extra) VALUES(?,?,?,?,?,?)",
                params![
                    *rng.pick(&["login", "logout", "error", "message"]),
                    1_700_000_000 + s * 7,
                    rng.range(0, 4),
                    format!("host-{}", rng.below(40)),
                    format!("event {s}: {note}"),
                    extra
                ],
            )?;
            self.con.execute(
                "INSERT INTO pairs VALUES(?,?,?)",
                params![format!("{:08x}", (s * 2_654_435_761) & 0xffff_ffff), format!("value {s} {label}"), s % 1000],
            )?;
            self.con.execute(
                "INSERT OR IGNORE INTO links VALUES(?,?,?)",
                params![rng.range(1, 2000), rng.range(1, 2000), format!("link {s} {label}")],
            )?;
            self.con.execute(
                "INSERT INTO numbers VALUES(?,?,?,?)",
                params![
                    rng.range(1_000_000, 900_000_000),
                    rng.range(1, 1_000_000) as f64 / 3.0,
                    rng.range(100_000_000, 4_000_000_000),
                    rng.range(300, 60_000)
                ],
            )?;
            if s % 12 == 0 {
                let words = 40 + rng.below(700);
                let body = rng.words(words);
                self.con.execute("INSERT INTO long(title, body) VALUES(?,?)", params![format!("long {s}"), body])?;
            }
        }
        self.con.execute_batch("COMMIT")
    }

    fn act(&mut self, act: &str) -> Result<()> {
        match act {
            "fill" => self.fill(self.scale)?,
            "more" => self.fill(self.scale / 3)?,
            "scatter" => {
                let k = self.rng.range(3, 7);
                self.con.execute_batch(&format!(
                    "BEGIN; DELETE FROM people WHERE id % {k} = 1; DELETE FROM bare WHERE rowid % {k} = 2; DELETE FROM events WHERE id % {k} = 0;
                     DELETE FROM pairs WHERE n % {k} = 1; DELETE FROM links WHERE (src + dst) % {k} = 1; DELETE FROM long WHERE id % 3 = 1;
                     DELETE FROM numbers WHERE rowid % {k} = 1; COMMIT;"
                ))?;
            }
            "run" => {
                let from = self.rng.range(0, self.serial);
                let to = from + self.rng.range(20, 120);
                self.con.execute_batch(&format!(
                    "BEGIN; DELETE FROM people WHERE id BETWEEN {from} AND {to}; DELETE FROM bare WHERE rowid BETWEEN {from} AND {to};
                     DELETE FROM events WHERE id BETWEEN {from} AND {to}; DELETE FROM pairs WHERE n BETWEEN {from} AND {to};
                     DELETE FROM links WHERE src BETWEEN {from} AND {to}; DELETE FROM long WHERE id BETWEEN {from} / 12 AND {to} / 12;
                     DELETE FROM numbers WHERE rowid BETWEEN {from} AND {to}; COMMIT;"
                ))?;
            }
            "all" => self.con.execute_batch(
                "BEGIN; DELETE FROM people; DELETE FROM bare; DELETE FROM events; DELETE FROM pairs; DELETE FROM links; DELETE FROM long; COMMIT;",
            )?,
            "drop" => self.con.execute_batch("DROP TABLE people; DROP TABLE bare; DROP TABLE pairs; DROP TABLE long;")?,
            "update" => self.con.execute_batch(
                "BEGIN; UPDATE people SET note = note || ' changed', age = age + 1 WHERE id % 4 = 2; UPDATE bare SET a = a || ' again' WHERE rowid % 3 = 0;
                 UPDATE events SET body = 'rewritten ' || id WHERE id % 5 = 1; UPDATE pairs SET v = v || ' more' WHERE n % 4 = 0;
                 UPDATE links SET label = 'relabelled ' || src WHERE dst % 4 = 0; COMMIT;",
            )?,
            "alter" => self.con.execute_batch("ALTER TABLE people ADD COLUMN added TEXT; ALTER TABLE bare ADD COLUMN c INTEGER;")?,
            "recreate" => {
                self.con.execute_batch(&format!("DROP TABLE people; DROP TABLE bare; {}; {};", TABLES[0].1, TABLES[1].1))?;
                self.con.execute_batch(
                    "INSERT INTO people(name, mail, age, score, note) VALUES('new one', 'n@example.org', 3, 1.5, 'first of the second life');
                     INSERT INTO bare(a, b) VALUES('the second life', 17);",
                )?;
            }
            "vacuum" => {
                self.con.execute_batch("VACUUM")?;
                self.truth.wiped = true;
            }
            _ => {}
        }
        Ok(())
    }
}

/// The bytes that values have in a record.
fn body(values: &[Cell], table: &Table, encoding: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let order: Vec<usize> = table.key.iter().copied().chain((0..values.len()).filter(|i| !table.key.contains(i))).collect();
    for i in order {
        if table.alias == Some(i) {
            continue;
        }
        match &values[i] {
            Cell::Null | Cell::Int(0 | 1) => {}
            Cell::Int(n) => {
                let len = [1_usize, 2, 3, 4, 6, 8]
                    .into_iter()
                    .find(|len| *len == 8 || (-(1_i64 << (8 * len - 1))..1 << (8 * len - 1)).contains(n))
                    .unwrap_or(8);
                out.extend_from_slice(&n.to_be_bytes()[8 - len..]);
            }
            Cell::Real(bits) => {
                let r = f64::from_bits(*bits);
                // A REAL column stores whole numbers as integers.
                if r.fract() == 0.0 && r.abs() < 1e14 {
                    out.extend(body(&[Cell::Int(r as i64)], &Table::default(), encoding))
                } else {
                    out.extend_from_slice(&bits.to_be_bytes())
                }
            }
            Cell::Text(t) => match encoding {
                "UTF-16le" => out.extend(t.encode_utf16().flat_map(u16::to_le_bytes)),
                "UTF-16be" => out.extend(t.encode_utf16().flat_map(u16::to_be_bytes)),
                _ => out.extend_from_slice(t.as_bytes()),
            },
            Cell::Blob(b) => out.extend_from_slice(b),
        }
    }
    out
}

/// The outcome of one history.
#[derive(Debug, Clone, Default)]
pub struct Score {
    /// Rows that are not live and whose values stand in the files in one piece.
    pub there: u64,
    /// Those of them that were given with all values.
    pub found: u64,
    /// Rows given as complete.
    pub given: u64,
    /// Those of them that never lived.
    pub wrong: u64,
    /// Live rows called deleted.
    pub live_called_deleted: u64,
    /// By table: there, found, given, wrong.
    pub tables: BTreeMap<String, [u64; 4]>,
    /// Samples of what is wrong or missing.
    pub samples: Vec<String>,
}

impl Score {
    /// Adds another.
    pub fn add(&mut self, other: &Score) {
        self.there += other.there;
        self.found += other.found;
        self.given += other.given;
        self.wrong += other.wrong;
        self.live_called_deleted += other.live_called_deleted;
        for (name, n) in &other.tables {
            let sum = self.tables.entry(name.clone()).or_default();
            for (a, b) in sum.iter_mut().zip(n) {
                *a += b;
            }
        }
        self.samples.extend(other.samples.iter().cloned());
    }
}

fn cell(v: &serde_json::Value) -> Cell {
    let unhex = |s: &str| (0..s.len() / 2).filter_map(|i| u8::from_str_radix(&s[2 * i..2 * i + 2], 16).ok()).collect::<Vec<u8>>();
    match v {
        serde_json::Value::Null => Cell::Null,
        serde_json::Value::Number(n) if n.is_i64() => Cell::Int(n.as_i64().unwrap_or(0)),
        serde_json::Value::Number(n) => Cell::Real(n.as_f64().unwrap_or(0.0).to_bits()),
        serde_json::Value::String(s) => Cell::Text(s.clone()),
        serde_json::Value::Object(o) => match o.get("blob").and_then(|b| b.as_str()) {
            Some(hex) => Cell::Blob(unhex(hex)),
            None => Cell::Text(format!("?{v}")),
        },
        _ => Cell::Null,
    }
}

/// A REAL column may hold a whole number as an integer.
fn alike(a: &Cell, b: &Cell) -> bool {
    match (a, b) {
        (Cell::Real(r), Cell::Int(n)) | (Cell::Int(n), Cell::Real(r)) => f64::from_bits(*r) == *n as f64,
        (Cell::Real(a), Cell::Real(b)) => (f64::from_bits(*a) - f64::from_bits(*b)).abs() <= f64::EPSILON * f64::from_bits(*a).abs(),
        _ => a == b,
    }
}

/// Scores the lines that `carve --format jsonl` printed against the truth.
pub fn score(db: &Path, truth: &Truth, lines: &str) -> Score {
    let mut out = Score::default();
    let mut bytes = fs::read(db).unwrap_or_default();
    for end in ["-wal", "-journal"] {
        bytes.push(0);
        bytes.extend(fs::read(format!("{}{end}", db.display())).unwrap_or_default());
    }
    let mut given: BTreeMap<&str, Vec<Row>> = BTreeMap::new();
    for line in lines.lines() {
        let Ok(v) = serde_json::from_str::<serde_json::Value>(line) else { continue };
        let name = v["table"].as_str().unwrap_or_default();
        let Some((name, table)) = truth.tables.get_key_value(name) else { continue };
        let (complete, relation) = (v["complete"].as_bool().unwrap_or(false), v["relation"].as_str().unwrap_or_default());
        let rowid = v["rowid"].as_i64();
        let known: Vec<Option<Cell>> = table.columns.iter().map(|c| v["values"].get(c).map(cell)).collect();
        let fits = |row: &Row| {
            (rowid.is_none() || row.rowid == rowid)
                && row.values.iter().zip(&known).enumerate().all(|(i, (a, b))| match b {
                    Some(b) => alike(a, b) || (table.alias == Some(i) && rowid.is_none()),
                    None => !complete || table.alias == Some(i),
                })
        };
        let is_live = table.live.iter().any(fits);
        let same_key = rowid.is_some() && relation == "deleted" && table.live.iter().any(|r| r.rowid == rowid);
        if (is_live && v["how"] != "index-only") || same_key {
            out.live_called_deleted += 1;
            out.samples.push(format!("live: {line}"));
        }
        if !complete {
            continue;
        }
        let sum = out.tables.entry(name.clone()).or_default();
        sum[2] += 1;
        out.given += 1;
        // A row of a table with candidates may be any of theirs.
        let candidates: Vec<&Table> =
            v["candidates"].as_array().into_iter().flatten().filter_map(|c| truth.tables.get(c.as_str()?)).collect();
        let as_candidate =
            candidates.iter().any(|t| t.ever.iter().any(|r| r.values.iter().zip(known.iter().flatten()).all(|(a, b)| alike(a, b))));
        if !table.ever.iter().any(fits) && !as_candidate {
            sum[3] += 1;
            out.wrong += 1;
            out.samples.push(format!("wrong: {line}"));
        }
        let values = known.into_iter().map(|k| k.unwrap_or(Cell::Null)).collect();
        given.entry(name.as_str()).or_default().push(Row { rowid, values });
    }
    for (name, table) in &truth.tables {
        let mut by_first: BTreeMap<String, Vec<&Row>> = BTreeMap::new();
        let label = |row: &Row| {
            row.values
                .iter()
                .enumerate()
                .filter(|(i, _)| table.alias != Some(*i))
                .find_map(|(_, c)| match c {
                    Cell::Text(t) => Some(t.clone()),
                    Cell::Int(n) => Some(n.to_string()),
                    _ => None,
                })
                .unwrap_or_default()
        };
        for row in given.get(name.as_str()).into_iter().flatten() {
            by_first.entry(label(row)).or_default().push(row);
        }
        let same = |a: &Row, b: &Row| {
            (a.rowid.is_none() || b.rowid.is_none() || a.rowid == b.rowid)
                && a.values.iter().zip(&b.values).enumerate().all(|(i, (x, y))| table.alias == Some(i) || alike(x, y))
        };
        let same_values = |a: &Row, b: &Row| a.values.iter().zip(&b.values).all(|(x, y)| alike(x, y));
        let finder = |needle: &[u8]| memmem(&bytes, needle);
        for row in table.ever.difference(&table.live) {
            let body = body(&row.values, table, &truth.encoding);
            if body.len() < 8
                || !finder(&body)
                || table.live.iter().any(|l| (table.alias.is_none() || l.rowid == row.rowid) && same_values(l, row))
            {
                continue;
            }
            let sum = out.tables.entry(name.clone()).or_default();
            sum[0] += 1;
            out.there += 1;
            if by_first.get(&label(row)).into_iter().flatten().any(|g| same(g, row)) {
                sum[1] += 1;
                out.found += 1;
            } else {
                out.samples.push(format!("missing: {name} {row:?}"));
            }
        }
    }
    out
}

fn memmem(haystack: &[u8], needle: &[u8]) -> bool {
    let Some(first) = needle.first() else { return false };
    let mut at = 0;
    while let Some(found) = haystack[at..].iter().position(|b| b == first) {
        at += found;
        if haystack[at..].starts_with(needle) {
            return true;
        }
        at += 1;
    }
    false
}
