//! Healthy databases by recipe, made by real SQLite: every page size, encoding and auto-vacuum mode, and everything that
//! a schema can hold. The same recipe gives the same database.

use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{Connection, Result, params};

use crate::rng::Rng;

/// What a database is made of.
#[derive(Debug, Clone)]
pub struct Recipe {
    /// Unique among the recipes; also the seed.
    pub name: String,
    /// 512 to 65536.
    pub page_size: u32,
    /// "UTF-8", "UTF-16le", "UTF-16be".
    pub encoding: &'static str,
    /// 0 none, 1 full, 2 incremental.
    pub auto_vacuum: u32,
    /// Reserved bytes at the end of every page.
    pub reserved: u8,
    /// Parts that are put into it, in this order.
    pub parts: Vec<&'static Part>,
}

/// A group of tables that show one side of the format.
pub struct Part {
    /// Its name.
    pub name: &'static str,
    make: fn(&Connection, &mut Rng, u32) -> Result<()>,
}

impl std::fmt::Debug for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// All parts.
pub static PARTS: &[Part] = &[
    Part { name: "plain", make: plain },
    Part { name: "overflow", make: overflow },
    Part { name: "without-rowid", make: without_rowid },
    Part { name: "strict", make: strict },
    Part { name: "generated", make: generated },
    Part { name: "indexes", make: indexes },
    Part { name: "alter", make: alter },
    Part { name: "keys", make: keys },
    Part { name: "odd", make: odd },
    Part { name: "holes", make: holes },
    Part { name: "virtual", make: virtual_tables },
    Part { name: "many", make: many },
    Part { name: "statistics", make: statistics },
];

const SIZES: [u32; 8] = [512, 1024, 2048, 4096, 8192, 16384, 32768, 65536];
const ENCODINGS: [&str; 3] = ["UTF-8", "UTF-16le", "UTF-16be"];

/// Each part alone in three settings, all parts together in every page size and encoding, and the special ones.
pub fn recipes() -> Vec<Recipe> {
    let mut out = Vec::new();
    for (n, part) in PARTS.iter().enumerate() {
        for round in 0..3 {
            let (page_size, encoding, auto_vacuum) = (SIZES[(n + 3 * round) % 8], ENCODINGS[(n + round) % 3], ((n + round) % 3) as u32);
            out.push(Recipe {
                name: format!("{}-{page_size}-{encoding}-av{auto_vacuum}", part.name),
                page_size,
                encoding,
                auto_vacuum,
                reserved: 0,
                parts: vec![part],
            });
        }
    }
    for (n, &page_size) in SIZES.iter().enumerate() {
        for (m, &encoding) in ENCODINGS.iter().enumerate() {
            let auto_vacuum = ((n + m) % 3) as u32;
            out.push(Recipe {
                name: format!("all-{page_size}-{encoding}-av{auto_vacuum}"),
                page_size,
                encoding,
                auto_vacuum,
                reserved: 0,
                parts: PARTS.iter().collect(),
            });
        }
    }
    for (n, reserved) in [8_u8, 16, 32, 255].into_iter().enumerate() {
        let page_size = [512, 1024, 4096, 65536][n];
        // The format wants 480 usable bytes on a page.
        let reserved = if page_size == 512 { 32 } else { reserved };
        out.push(Recipe {
            name: format!("reserved-{reserved}-{page_size}"),
            page_size,
            encoding: ENCODINGS[n % 3],
            auto_vacuum: (n % 3) as u32,
            reserved,
            parts: PARTS.iter().filter(|p| matches!(p.name, "plain" | "overflow" | "without-rowid" | "indexes" | "holes")).collect(),
        });
    }
    for auto_vacuum in 0..3 {
        out.push(Recipe {
            name: format!("empty-av{auto_vacuum}"),
            page_size: 4096,
            encoding: "UTF-8",
            auto_vacuum,
            reserved: 0,
            parts: vec![],
        });
    }
    out
}

/// Opens a new database with settings that must come before its first page.
pub fn create(path: &Path, page_size: u32, encoding: &str, auto_vacuum: u32, reserved: u8) -> Result<Connection> {
    let con = Connection::open(path)?;
    con.execute_batch(&format!(
        "PRAGMA page_size={page_size}; PRAGMA encoding='{encoding}'; PRAGMA auto_vacuum={auto_vacuum}; PRAGMA journal_mode=MEMORY;
         PRAGMA synchronous=OFF; PRAGMA secure_delete=OFF; PRAGMA foreign_keys=OFF;"
    ))?;
    if reserved > 0 {
        reserve(&con, reserved)?;
    }
    Ok(con)
}

/// Asks for reserved bytes at the end of each page of a database that has no pages yet.
#[allow(unsafe_code)]
fn reserve(con: &Connection, bytes: u8) -> Result<()> {
    let mut n: std::os::raw::c_int = bytes.into();
    // SAFETY: the handle lives as long as `con`; the control reads and writes one int.
    let rc = unsafe {
        rusqlite::ffi::sqlite3_file_control(
            con.handle(),
            c"main".as_ptr(),
            rusqlite::ffi::SQLITE_FCNTL_RESERVE_BYTES,
            (&raw mut n).cast::<std::os::raw::c_void>(),
        )
    };
    if rc == rusqlite::ffi::SQLITE_OK { Ok(()) } else { Err(rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rc), None)) }
}

/// Makes a database at a path that is not there yet.
pub fn build(path: &Path, recipe: &Recipe) -> Result<()> {
    let con = create(path, recipe.page_size, recipe.encoding, recipe.auto_vacuum, recipe.reserved)?;
    con.execute_batch("PRAGMA user_version=77; PRAGMA application_id=-559038737;")?;
    let mut rng = Rng::new(&recipe.name);
    for part in &recipe.parts {
        con.execute_batch("BEGIN")?;
        (part.make)(&con, &mut rng, recipe.page_size)?;
        con.execute_batch("COMMIT")?;
    }
    if recipe.parts.is_empty() {
        // A file with one page and no object.
        con.execute_batch("CREATE TABLE gone(x); DROP TABLE gone;")?;
    }
    con.close().map_err(|(_, e)| e)
}

/// Integers at the edges of all storage widths, and values of all classes.
fn plain(con: &Connection, rng: &mut Rng, _: u32) -> Result<()> {
    con.execute_batch(
        "CREATE TABLE plain(id INTEGER PRIMARY KEY, i INTEGER, r REAL, t TEXT, b BLOB, n NUMERIC, x, d TEXT DEFAULT 'déf');
         CREATE TABLE bare(a, b);
         CREATE TABLE vacant(a);
         CREATE TABLE desc_pk(k INTEGER PRIMARY KEY DESC, v);
         CREATE TABLE desc_alias(k INTEGER, v, PRIMARY KEY(k DESC));",
    )?;
    let mut edges = vec![0_i64, 1, 2, -1, i64::MAX, i64::MIN];
    for bits in [7, 8, 15, 16, 23, 24, 31, 32, 47, 48, 62] {
        let p = 1_i64 << bits;
        edges.extend([p - 1, p, p + 1, -p, -p - 1, -p + 1]);
    }
    let mut insert = con.prepare("INSERT INTO plain VALUES(?,?,?,?,?,?,?,?)")?;
    let mut bare = con.prepare("INSERT INTO bare(rowid, a, b) VALUES(?,?,?)")?;
    let reals = [0.0, -0.0, 1.0, -2.5, 1e300, f64::MIN_POSITIVE, f64::INFINITY, f64::NEG_INFINITY, 4e15, -9.007_199_254_740_993e15];
    for (n, &e) in edges.iter().enumerate() {
        insert.execute(params![
            e,
            edges[(n * 7) % edges.len()],
            reals[n % reals.len()],
            rng.words(n % 9),
            rng.bytes(n % 40),
            Value::Text(["12", "1.5", "-0", "9223372036854775808", "abc", "0x10", ""][n % 7].to_owned()),
            any(rng),
            if n % 3 == 0 { None } else { Some(rng.words(2)) }
        ])?;
        bare.execute(params![e.wrapping_sub(1), any(rng), any(rng)]).or_else(not_null)?;
    }
    for n in 0..300_i64 {
        insert.execute(params![
            1_000_000 + n * 3,
            any(rng),
            rng.range(-99, 99) as f64 / 4.0,
            rng.words(3),
            rng.bytes(5),
            any(rng),
            any(rng),
            "d"
        ])?;
    }
    con.execute_batch(
        "INSERT INTO desc_pk VALUES(7,'a'),(3,'b'),(NULL,'c'),(900,'d'); INSERT INTO desc_alias VALUES(7,'a'),(3,'b'),(900,'d');",
    )
}

/// A value of any class.
fn any(rng: &mut Rng) -> Value {
    match rng.below(8) {
        0 => Value::Null,
        1 => Value::Integer(rng.range(-2, 2)),
        2 => Value::Integer(rng.bits() as i64 >> rng.below(64)),
        3 => Value::Real(rng.range(-1000, 1000) as f64),
        4 => Value::Real(f64::from(rng.bits() as u32) / 7.0),
        5 => {
            let n = rng.below(30);
            Value::Blob(rng.bytes(n))
        }
        6 => Value::Text(String::new()),
        _ => {
            let n = 1 + rng.below(5);
            Value::Text(rng.words(n))
        }
    }
}

/// Payload lengths around every border between local and overflow bytes, and chains of many pages.
fn overflow(con: &Connection, rng: &mut Rng, page_size: u32) -> Result<()> {
    con.execute_batch(
        "CREATE TABLE over(id INTEGER PRIMARY KEY, data BLOB, tail TEXT);
         CREATE TABLE over_key(k BLOB PRIMARY KEY, v) WITHOUT ROWID;
         CREATE TABLE over_index(t TEXT); CREATE INDEX over_i ON over_index(t);",
    )?;
    let u = page_size as usize;
    let max_leaf = u - 35;
    let max_index = (u - 12) * 64 / 255 - 23;
    let min_local = (u - 12) * 32 / 255 - 23;
    let mut lengths = vec![0, 1];
    for border in [min_local, max_index, max_leaf, u - 4, u, min_local + (u - 4), max_leaf + (u - 4), 2 * u, 3 * (u - 4) + min_local] {
        lengths.extend((0..24).map(|d| (border + d).saturating_sub(18)));
    }
    lengths.extend([5 * u + 3, 11 * u]);
    if u <= 1024 {
        lengths.push(300_000);
    }
    let keep = if u >= 16384 { 7 } else { 1 };
    let mut a = con.prepare("INSERT INTO over(data, tail) VALUES(?,?)")?;
    let mut k = con.prepare("INSERT OR IGNORE INTO over_key VALUES(?,?)")?;
    let mut i = con.prepare("INSERT INTO over_index VALUES(?)")?;
    for (n, &length) in lengths.iter().enumerate().filter(|(n, _)| n % keep == 0) {
        a.execute(params![rng.bytes(length), format!("tail {n}")])?;
        k.execute(params![rng.bytes(length), n as i64])?;
        i.execute(params!["k".repeat(length / 2) + &n.to_string()])?;
    }
    Ok(())
}

fn without_rowid(con: &Connection, rng: &mut Rng, page_size: u32) -> Result<()> {
    con.execute_batch(
        "CREATE TABLE wr(ns TEXT COLLATE NOCASE, v BLOB, k INTEGER, note TEXT, PRIMARY KEY(ns, k DESC)) WITHOUT ROWID;
         CREATE INDEX wr_note ON wr(note COLLATE RTRIM);
         CREATE UNIQUE INDEX wr_u ON wr(k, ns);
         CREATE TABLE wr_one(name TEXT PRIMARY KEY) WITHOUT ROWID;
         CREATE TABLE wr_real(a REAL, b, PRIMARY KEY(a, b)) WITHOUT ROWID;
         CREATE TABLE wr_dup(a, b, c, PRIMARY KEY(b, a, b)) WITHOUT ROWID;
         CREATE INDEX wr_dup_c ON wr_dup(c, a);",
    )?;
    for n in 0..400_i64 {
        let ns = if n % 2 == 0 { rng.words(1) } else { rng.words(1).to_uppercase() };
        let len = if n % 61 == 0 { 3 * page_size as usize } else { rng.below(50) };
        con.execute(
            "INSERT OR IGNORE INTO wr VALUES(?,?,?,?)",
            params![ns, rng.bytes(len), rng.range(-100_000, 100_000), (n % 3 > 0).then(|| rng.words(2) + "  ")],
        )?;
        con.execute("INSERT OR IGNORE INTO wr_one VALUES(?)", [rng.words(2)])?;
        con.execute("INSERT OR IGNORE INTO wr_real VALUES(?,?)", params![n as f64 / 2.0, any(rng)]).or_else(not_null)?;
        con.execute("INSERT OR IGNORE INTO wr_dup VALUES(?,?,?)", params![n, n % 7, any(rng)])?;
    }
    Ok(())
}

/// A generated NULL in a key column is no failure of the recipe.
fn not_null(e: rusqlite::Error) -> Result<usize> {
    if e.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation) { Ok(0) } else { Err(e) }
}

fn strict(con: &Connection, rng: &mut Rng, _: u32) -> Result<()> {
    con.execute_batch(
        "CREATE TABLE st(id INTEGER PRIMARY KEY, i INT NOT NULL, r REAL, t TEXT UNIQUE, b BLOB, a ANY, CHECK(i > -5000)) STRICT;
         CREATE TABLE st_wr(a ANY PRIMARY KEY, n INTEGER) STRICT, WITHOUT ROWID;",
    )?;
    for n in 0..250_i64 {
        con.execute(
            "INSERT INTO st VALUES(?,?,?,?,?,?)",
            params![n * 5 - 300, n, n as f64, (n % 4 > 0).then(|| format!("{} {n}", rng.words(1))), rng.bytes(3), any(rng)],
        )?;
        con.execute("INSERT OR IGNORE INTO st_wr VALUES(?,?)", params![any(rng), n]).or_else(not_null)?;
    }
    Ok(())
}

fn generated(con: &Connection, rng: &mut Rng, _: u32) -> Result<()> {
    con.execute_batch(
        "CREATE TABLE gen(a INTEGER, v INTEGER AS (a * 2) VIRTUAL, s TEXT GENERATED ALWAYS AS (coalesce(w, '') || '!') STORED, w TEXT, n INT AS (length(w)));
         CREATE INDEX gen_v ON gen(v);
         CREATE INDEX gen_s ON gen(s DESC) WHERE a > 0;
         CREATE TABLE gen_doc(id INTEGER PRIMARY KEY, doc TEXT, kind TEXT AS (json_extract(doc, '$.kind')) STORED, size INT AS (doc ->> '$.size'));
         CREATE INDEX gen_doc_kind ON gen_doc(kind, size);",
    )?;
    for n in 0..220_i64 {
        con.execute("INSERT INTO gen(a, w) VALUES(?,?)", params![rng.range(-500, 500), (n % 5 > 0).then(|| rng.words(3))])?;
        con.execute(
            "INSERT INTO gen_doc(doc) VALUES(?)",
            [format!("{{\"kind\": \"{}\", \"size\": {}}}", ["a", "b", "ü"][n as usize % 3], n)],
        )?;
    }
    Ok(())
}

fn indexes(con: &Connection, rng: &mut Rng, _: u32) -> Result<()> {
    con.execute_batch(
        "CREATE TABLE ix(id INTEGER PRIMARY KEY, name TEXT, mail TEXT UNIQUE, city TEXT COLLATE NOCASE, score REAL, at INTEGER, doc TEXT, UNIQUE(city, name, id));
         CREATE INDEX ix_nocase ON ix(name COLLATE NOCASE, score DESC);
         CREATE INDEX ix_rtrim ON ix(name COLLATE RTRIM);
         CREATE INDEX ix_partial ON ix(at) WHERE at IS NOT NULL AND score > 10;
         CREATE INDEX ix_in ON ix(city) WHERE city IN ('moss', 'pine', 'tide');
         CREATE INDEX ix_lower ON ix(lower(name), abs(at));
         CREATE INDEX ix_json ON ix(json_extract(doc, '$.a'), doc ->> '$.b');
         CREATE INDEX ix_case ON ix(CASE WHEN at % 2 THEN 'odd' ELSE substr(name, 1, 3) END);
         CREATE UNIQUE INDEX ix_upper ON ix(upper(mail)) WHERE mail LIKE '%@%';
         CREATE INDEX ix_all ON ix(score DESC, city, name DESC, at);",
    )?;
    for n in 0..350_i64 {
        con.execute(
            "INSERT INTO ix(name, mail, city, score, at, doc) VALUES(?,?,?,?,?,?)",
            params![
                (n % 11 > 0).then(|| format!("{}{}", rng.words(2), " ".repeat(n as usize % 3))),
                (n % 4 > 0).then(|| format!("user{n}@{}.example", ["a", "B"][n as usize % 2])),
                rng.words(1),
                if n % 9 == 0 { Value::Null } else { Value::Real(rng.range(-40, 200) as f64 / 2.0) },
                (n % 6 > 0).then(|| rng.range(-5000, 5000)),
                format!("{{\"a\": {}, \"b\": \"{}\"}}", rng.below(50), ["x", "y"][n as usize % 2])
            ],
        )?;
    }
    Ok(())
}

/// Tables whose older rows are shorter or were written under other columns.
fn alter(con: &Connection, rng: &mut Rng, _: u32) -> Result<()> {
    con.execute_batch("CREATE TABLE al(id INTEGER PRIMARY KEY, a TEXT, b INTEGER, c TEXT); CREATE INDEX al_b ON al(b); CREATE TABLE al_wr(k TEXT PRIMARY KEY, v) WITHOUT ROWID;")?;
    let mut fill = |sql: &str, n: usize| -> Result<()> {
        for _ in 0..n {
            con.execute(sql, params![rng.words(2), rng.range(0, 999)])?;
        }
        Ok(())
    };
    fill("INSERT INTO al(a, b) VALUES(?,?)", 60)?;
    fill("INSERT OR IGNORE INTO al_wr VALUES(?,?)", 30)?;
    con.execute_batch(
        "ALTER TABLE al ADD COLUMN d INTEGER NOT NULL DEFAULT 42; ALTER TABLE al ADD COLUMN e TEXT DEFAULT 'it''s'; ALTER TABLE al ADD COLUMN f REAL DEFAULT 7;
         ALTER TABLE al ADD COLUMN g BLOB DEFAULT x'00ff'; ALTER TABLE al ADD COLUMN h DEFAULT -1.5e3; ALTER TABLE al_wr ADD COLUMN w INT DEFAULT 9;",
    )?;
    fill("INSERT INTO al(a, b) VALUES(?,?)", 40)?;
    con.execute_batch("CREATE INDEX al_e ON al(e, d); ALTER TABLE al DROP COLUMN c; ALTER TABLE al RENAME COLUMN a TO alpha; ALTER TABLE al ADD COLUMN i AS (b + d);")?;
    fill("INSERT INTO al(alpha, b) VALUES(?,?)", 40)?;
    con.execute_batch("ALTER TABLE al RENAME TO \"al renamed\"; ALTER TABLE al_wr ADD COLUMN x TEXT CHECK(x IS NULL OR length(x) < 99);")?;
    fill("INSERT OR IGNORE INTO al_wr(k, v) VALUES(?,?)", 30)
}

/// AUTOINCREMENT, foreign keys, views, triggers.
fn keys(con: &Connection, rng: &mut Rng, _: u32) -> Result<()> {
    con.execute_batch(
        "CREATE TABLE parent(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE ON CONFLICT IGNORE);
         CREATE TABLE child(id INTEGER PRIMARY KEY AUTOINCREMENT, parent_id INTEGER NOT NULL REFERENCES parent(id) ON DELETE CASCADE, n INTEGER CHECK(n BETWEEN 0 AND 100));
         CREATE TABLE log(at INTEGER, what TEXT);
         CREATE INDEX child_parent ON child(parent_id);
         CREATE VIEW \"per parent\" AS SELECT p.name, count(*) AS c FROM parent p JOIN child ON child.parent_id = p.id GROUP BY 1;
         CREATE TRIGGER child_log AFTER INSERT ON child BEGIN INSERT INTO log VALUES(new.id, 'added ' || new.n); END;
         CREATE TRIGGER view_insert INSTEAD OF INSERT ON \"per parent\" BEGIN INSERT INTO parent(name) VALUES(new.name); END;",
    )?;
    for n in 0..80_i64 {
        con.execute("INSERT INTO parent(name) VALUES(?)", [format!("{} {n}", rng.words(1))])?;
        for _ in 0..rng.below(4) {
            con.execute("INSERT INTO child(parent_id, n) VALUES(?,?)", params![1 + rng.below(n as usize + 1) as i64, rng.range(0, 100)])?;
        }
    }
    con.execute_batch("DELETE FROM child WHERE id > 100; UPDATE sqlite_sequence SET seq = 5000 WHERE name = 'parent';")
}

/// Names that need quoting, text that is not valid, values that look like others.
fn odd(con: &Connection, rng: &mut Rng, _: u32) -> Result<()> {
    con.execute_batch(
        "CREATE TABLE \"sel\"\"ect\"(\"from\" TEXT, [group by] INTEGER, `a``b` BLOB, 'quoted' TEXT, \"\" TEXT);
         CREATE INDEX \"index of \"\"all\"\"\" ON \"sel\"\"ect\"([group by], \"from\");
         CREATE TABLE 表(列 TEXT PRIMARY KEY, ключ INTEGER);
         CREATE TABLE /* comment ( */ spaced -- another )
           (  a /* x */ DOUBLE PRECISION, b VARCHAR(20), c DECIMAL(10,5), d FLOATING POINT, e CHARINT, f UNSIGNED BIG INT, g \"my type\", h );
         CREATE TABLE hidden_rowid(rowid TEXT, x);
         CREATE TABLE texts(id INTEGER PRIMARY KEY, t TEXT);
         CREATE TABLE as_select AS SELECT 1 AS a, 'x' AS \"b c\", 2.5 AS d;",
    )?;
    for n in 0..60_i64 {
        con.execute("INSERT INTO \"sel\"\"ect\" VALUES(?,?,?,?,?)", params![rng.words(1), n % 9, rng.bytes(4), any(rng), any(rng)])?;
        con.execute("INSERT OR IGNORE INTO 表 VALUES(?,?)", params![format!("{}{n}", rng.words(1)), n])?;
        con.execute(
            "INSERT INTO spaced VALUES(?,?,?,?,?,?,?,?)",
            params![any(rng), any(rng), any(rng), any(rng), any(rng), any(rng), any(rng), any(rng)],
        )?;
        con.execute("INSERT INTO hidden_rowid VALUES(?,?)", params![any(rng), n])?;
    }
    for bytes in ["ff", "c3", "e29c", "ed a0 80", "61 00 62", "f4 90 80 80", "00", "fe ff 00 61", "c0 af", "d8 00"] {
        con.execute_batch(&format!("INSERT INTO texts(t) VALUES(CAST(x'{}' AS TEXT));", bytes.replace(' ', "")))?;
    }
    con.execute_batch("INSERT INTO texts(t) VALUES('a' || char(0) || 'b'), (x'0102'), (''), (NULL), (printf('%.*c', 5000, 'z'));")
}

/// Deleted rows, freed pages, fragmented leaves, a table that became empty, dropped objects.
fn holes(con: &Connection, rng: &mut Rng, page_size: u32) -> Result<()> {
    con.execute_batch(
        "CREATE TABLE hole(id INTEGER PRIMARY KEY, t TEXT); CREATE INDEX hole_t ON hole(t); CREATE TABLE emptied(a, b); CREATE TABLE dropped(a);",
    )?;
    for n in 0..500_i64 {
        let len = 1 + rng.below(30);
        con.execute("INSERT INTO hole VALUES(?,?)", params![n, rng.words(len)])?;
        con.execute("INSERT INTO emptied VALUES(?,?)", params![n, rng.bytes(30)])?;
        con.execute("INSERT INTO dropped VALUES(?)", [rng.bytes(page_size as usize / 3)])?;
    }
    con.execute_batch(
        "DELETE FROM hole WHERE id % 3 = 0; DELETE FROM hole WHERE id BETWEEN 200 AND 320; UPDATE hole SET t = substr(t, 2) WHERE id % 7 = 1;
         UPDATE hole SET t = t || t WHERE id % 11 = 2; DELETE FROM emptied; DROP TABLE dropped;",
    )
}

fn virtual_tables(con: &Connection, rng: &mut Rng, _: u32) -> Result<()> {
    con.execute_batch(
        "CREATE TABLE doc(id INTEGER PRIMARY KEY, title TEXT, body TEXT);
         CREATE VIRTUAL TABLE doc_fts USING fts5(title, body, content='doc', content_rowid='id');
         CREATE VIRTUAL TABLE doc_tri USING fts5(body, content='doc', content_rowid='id', tokenize='trigram');
         CREATE VIRTUAL TABLE own_fts USING fts5(a, b UNINDEXED, prefix='2 3', tokenize=\"porter unicode61 remove_diacritics 2\");
         CREATE VIRTUAL TABLE less_fts USING fts5(a, content='', contentless_delete=1, detail=column);
         CREATE VIRTUAL TABLE old_fts USING fts4(a, b);
         CREATE VIRTUAL TABLE box USING rtree(id, x0, x1, y0, y1, +label);
         CREATE TRIGGER doc_ai AFTER INSERT ON doc BEGIN INSERT INTO doc_fts(rowid, title, body) VALUES(new.id, new.title, new.body);
           INSERT INTO doc_tri(rowid, body) VALUES(new.id, new.body); END;
         CREATE TRIGGER doc_ad AFTER DELETE ON doc BEGIN INSERT INTO doc_fts(doc_fts, rowid, title, body) VALUES('delete', old.id, old.title, old.body);
           INSERT INTO doc_tri(doc_tri, rowid, body) VALUES('delete', old.id, old.body); END;",
    )?;
    for n in 0..120_i64 {
        let (a, b) = (rng.words(2), rng.words(if n % 20 == 0 { 300 } else { 12 }));
        con.execute("INSERT INTO doc(title, body) VALUES(?,?)", params![(n % 7 > 0).then_some(&a), &b])?;
        con.execute("INSERT INTO own_fts VALUES(?,?)", params![&b, &a])?;
        con.execute("INSERT INTO less_fts(rowid, a) VALUES(?,?)", params![n * 2 + 1, &b])?;
        con.execute("INSERT INTO old_fts VALUES(?,?)", params![&a, &b])?;
        let (x, y) = (rng.range(0, 900) as f64, rng.range(0, 900) as f64);
        con.execute("INSERT INTO box VALUES(?,?,?,?,?,?)", params![n + 1, x, x + 9.0, y, y + 5.0, a])?;
    }
    con.execute_batch(
        "DELETE FROM doc WHERE id % 10 = 3; DELETE FROM own_fts WHERE rowid % 9 = 4; DELETE FROM less_fts WHERE rowid % 13 = 5;",
    )
}

/// A schema that needs a tree of its own.
fn many(con: &Connection, rng: &mut Rng, page_size: u32) -> Result<()> {
    let n = if page_size >= 16384 { 40 } else { 120 };
    for i in 0..n {
        con.execute_batch(&format!(
            "CREATE TABLE many_{i}(id INTEGER PRIMARY KEY, a TEXT /* {} */, b); INSERT INTO many_{i} VALUES({i}, 'row of {i}', NULL);",
            "x".repeat(if i % 17 == 0 { page_size as usize } else { 20 + rng.below(100) })
        ))?;
        if i % 3 == 0 {
            con.execute_batch(&format!("CREATE INDEX many_i_{i} ON many_{i}(a, b)"))?;
        }
    }
    Ok(())
}

fn statistics(con: &Connection, rng: &mut Rng, _: u32) -> Result<()> {
    con.execute_batch(
        "CREATE TABLE stat(a INTEGER, b TEXT, c BLOB); CREATE INDEX stat_ab ON stat(a, b); CREATE INDEX stat_c ON stat(c) WHERE a > 3;",
    )?;
    for n in 0..300_i64 {
        con.execute("INSERT INTO stat VALUES(?,?,?)", params![n % 13, rng.words(1), rng.bytes(n as usize % 5)])?;
    }
    con.execute_batch("ANALYZE")
}
