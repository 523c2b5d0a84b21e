//! `diff` against real SQLite: it makes both sides, and joins them to say what the answer has to be.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use rootpage::ctx::{Ctx, Limits, Silent};
use rootpage::report::diff::{Change, Diff, RowDiff, TableDiff, literal};
use rootpage::verbs::{self, Inputs, Options};
use rusqlite::Connection;

fn make(path: &Path, sql: &str) {
    Connection::open(path).unwrap().execute_batch(sql).unwrap();
}

fn diff_with(a: &Path, b: &Path, by_primary_key: bool, limit: u64, memory: Option<usize>) -> Diff {
    let mut limits = Limits::default();
    limits.memory = memory.unwrap_or(limits.memory);
    let ctx = Ctx::new(limits, Arc::new(Silent));
    verbs::diff(&Inputs::at_path(a), &Inputs::at_path(b), &Options::default(), &[], by_primary_key, limit, &ctx).unwrap()
}

fn diff(a: &Path, b: &Path) -> Diff {
    diff_with(a, b, false, u64::MAX, None)
}

fn table<'d>(diff: &'d Diff, name: &str) -> &'d TableDiff {
    diff.tables.iter().find(|t| t.name == name).unwrap_or_else(|| panic!("no {name} in {:?}", diff.tables))
}

/// What a row says: its key, then each column with its values as SQL literals.
fn line(row: &RowDiff) -> String {
    let key: Vec<String> = row.key.iter().map(|k| literal(&k.value)).collect();
    let mut out = key.join(",");
    for v in &row.values {
        write!(out, "|{}={}", v.column, literal(&v.value)).unwrap();
    }
    for c in &row.columns {
        write!(out, "|{}:{}->{}", c.column, literal(&c.a), literal(&c.b)).unwrap();
    }
    out
}

fn lines(table: &TableDiff, change: Change) -> Vec<String> {
    table.rows.iter().filter(|r| r.change == change).map(line).collect()
}

/// The value of a column as `literal` writes it, from real SQLite.
fn sqlite_literal(column: &str) -> String {
    format!(
        "CASE typeof({column}) WHEN 'real' THEN CASE WHEN abs({column}) > 1e308 THEN iif({column} > 0, '9e999', '-9e999') ELSE \
         printf('%!.17g', {column}) END WHEN 'blob' THEN 'x''' || lower(hex({column})) || '''' ELSE quote({column}) END"
    )
}

/// Pairs, by key and column, of the values that real SQLite finds to differ.
fn judge(a: &Path, b: &Path, table: &str, key: &str, columns: &[&str]) -> (Vec<String>, Vec<String>, BTreeMap<String, (String, String)>) {
    let db = Connection::open(a).unwrap();
    db.execute("ATTACH ?1 AS other", [b.to_str().unwrap()]).unwrap();
    let list = |sql: &str| -> Vec<String> {
        db.prepare(sql).unwrap().query_map([], |r| r.get::<_, String>(0)).unwrap().map(Result::unwrap).collect()
    };
    let k = sqlite_literal(key);
    let removed = list(&format!("SELECT {k} FROM main.{table} WHERE {key} NOT IN (SELECT {key} FROM other.{table}) ORDER BY {key}"));
    let added = list(&format!("SELECT {k} FROM other.{table} WHERE {key} NOT IN (SELECT {key} FROM main.{table}) ORDER BY {key}"));
    let mut changed = BTreeMap::new();
    for c in columns {
        let (x, y) = (format!("x.{c}"), format!("y.{c}"));
        let sql = format!(
            "SELECT {}, {}, {} FROM main.{table} x JOIN other.{table} y ON x.{key} = y.{key} \
             WHERE typeof({x}) <> typeof({y}) OR CAST({x} AS BLOB) IS NOT CAST({y} AS BLOB)",
            sqlite_literal(&format!("x.{key}")),
            sqlite_literal(&x),
            sqlite_literal(&y),
        );
        let mut statement = db.prepare(&sql).unwrap();
        let rows = statement.query_map([], |r| Ok((r.get::<_, String>(0)?, (r.get::<_, String>(1)?, r.get::<_, String>(2)?)))).unwrap();
        changed.extend(rows.map(Result::unwrap).map(|(key, values)| (format!("{key}.{c}"), values)));
    }
    (removed, added, changed)
}

/// Statements for one side; `seed` varies which rows are there and what they hold.
fn script(rows: u32, seed: u32, table: &str) -> String {
    let mut sql = format!("BEGIN;{table}");
    let mut state = seed;
    let mut next = |bound: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) % bound
    };
    for i in 0..rows {
        let gone = next(17) == 0;
        let odd = next(9) == 0;
        let value = match if odd { next(9) } else { 9 } {
            0 => "NULL".to_owned(),
            1 => "''".to_owned(),
            2 => "x''".to_owned(),
            3 => "1".to_owned(),
            4 => "1.0".to_owned(),
            5 => "'1'".to_owned(),
            6 => "x'00ff'".to_owned(),
            7 => "9e999".to_owned(),
            8 => "'it''s  größe 日本'".to_owned(),
            _ => format!("'value {i}'"),
        };
        if !gone {
            write!(sql, "INSERT INTO t VALUES({}, {value}, {}, {});", i * 3, i % 5, i % 7).unwrap();
        }
    }
    sql + "COMMIT;"
}

#[test]
fn every_difference_that_sqlite_finds_and_no_other() {
    for (create, key) in [
        ("CREATE TABLE t(id INTEGER PRIMARY KEY, v, n INT, r REAL);", "id"),
        ("CREATE TABLE t(id INT, v, n INT, r REAL, PRIMARY KEY(id DESC)) WITHOUT ROWID;", "id"),
        ("CREATE TABLE t(id TEXT PRIMARY KEY COLLATE NOCASE, v, n INT, r REAL) WITHOUT ROWID;", "id"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (dir.path().join("a.db"), dir.path().join("b.db"));
        make(&a, &script(3000, 1, create));
        make(&b, &script(3000, 2, create));
        let found = diff(&a, &b);
        let t = table(&found, "t");
        let (removed, added, changed) = judge(&a, &b, "t", key, &["v", "n", "r"]);
        let keys = |change| {
            let mut keys: Vec<String> = lines(t, change).iter().map(|l| l.split('|').next().unwrap().to_owned()).collect();
            keys.sort();
            keys
        };
        let sorted = |mut list: Vec<String>| {
            list.sort();
            list
        };
        assert!(removed.len() > 100 && added.len() > 100 && changed.len() > 300, "{create}: the sides differ");
        assert_eq!(keys(Change::Removed), sorted(removed), "{create}");
        assert_eq!(keys(Change::Added), sorted(added), "{create}");
        let mut told = BTreeMap::new();
        for row in t.rows.iter().filter(|r| r.change == Change::Changed) {
            for c in &row.columns {
                told.insert(format!("{}.{}", literal(&row.key[0].value), c.column), (literal(&c.a), literal(&c.b)));
            }
        }
        assert_eq!(told, changed, "{create}");
        assert_eq!((t.removed, t.added), (keys(Change::Removed).len() as u64, keys(Change::Added).len() as u64));
        assert_eq!((t.not_listed, found.exit_code, found.equal), (0, 1, false));
        let same = diff(&a, &a);
        assert_eq!((same.exit_code, same.equal), (0, true), "{}", same.sentence);
    }
}

#[test]
fn a_damaged_side_lacks_exactly_what_stood_on_the_page() {
    let dir = tempfile::tempdir().unwrap();
    let (whole, damaged) = (dir.path().join("whole.db"), dir.path().join("damaged.db"));
    make(&whole, &format!("PRAGMA page_size=1024;{}", script(2000, 5, "CREATE TABLE t(id INTEGER PRIMARY KEY, v, n INT, r REAL);")));
    let mut bytes = std::fs::read(&whole).unwrap();
    let leaf = bytes.chunks(1024).enumerate().skip(5).find(|(_, page)| page[0] == 13).unwrap().0;
    let page = bytes[leaf * 1024..(leaf + 1) * 1024].to_vec();
    // The rows on it: behind a length of one byte (records are short) stands the rowid, one or two bytes.
    let cells = usize::from(u16::from_be_bytes([page[3], page[4]]));
    let rowid = |i: usize| {
        let at = usize::from(u16::from_be_bytes([page[8 + 2 * i], page[9 + 2 * i]])) + 1;
        let (high, low) = (u32::from(page[at]), u32::from(page[at + 1]));
        if high < 128 { high } else { (high & 127) << 7 | low }
    };
    let removed: Vec<String> = (0..cells).map(|i| rowid(i).to_string()).collect();
    assert!(removed.len() > 5);
    bytes[leaf * 1024..(leaf + 1) * 1024].fill(0);
    std::fs::write(&damaged, bytes).unwrap();

    let found = diff(&whole, &damaged);
    let t = table(&found, "t");
    let keys: Vec<String> = lines(t, Change::Removed).iter().map(|l| l.split('|').next().unwrap().to_owned()).collect();
    assert_eq!(keys, removed);
    assert_eq!((t.added, t.changed, found.exit_code), (0, 0, 1));
    assert!(t.b.unwrap().damaged && !t.a.unwrap().damaged);
    assert!(found.sentence.ends_with("B is damaged: rows that cannot be read are not compared."), "{}", found.sentence);
}

#[test]
fn leaves_out_of_order_are_paired_all_the_same() {
    let dir = tempfile::tempdir().unwrap();
    for create in
        ["CREATE TABLE t(id INTEGER PRIMARY KEY, v, n INT, r REAL);", "CREATE TABLE t(id INT PRIMARY KEY, v, n INT, r REAL) WITHOUT ROWID;"]
    {
        let (whole, swapped) = (dir.path().join("whole.db"), dir.path().join("swapped.db"));
        let _ = (std::fs::remove_file(&whole), std::fs::remove_file(&swapped));
        make(&whole, &format!("PRAGMA page_size=1024;{}", script(2000, 5, create)));
        let mut bytes = std::fs::read(&whole).unwrap();
        let kind = if create.contains("WITHOUT") { 10 } else { 13 };
        let leaves: Vec<usize> = bytes.chunks(1024).enumerate().skip(5).filter(|(_, page)| page[0] == kind).map(|(i, _)| i).collect();
        let (x, y) = (leaves[2], leaves[6]);
        for i in 0..1024 {
            bytes.swap(x * 1024 + i, y * 1024 + i);
        }
        std::fs::write(&swapped, bytes).unwrap();
        let found = diff(&whole, &swapped);
        let t = table(&found, "t");
        assert_eq!((t.removed, t.added, t.changed), (0, 0, 0), "{create}: {}", found.sentence);
    }
}

#[test]
fn encodings_kinds_of_table_and_numbering_do_not_matter_to_the_rows() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let rows = "INSERT INTO t VALUES('b', 'größe', 1),('a', '', 2),('日本', NULL, 2.5),('c', x'00', '')";
    let by_rowid = "CREATE TABLE t(k TEXT PRIMARY KEY, v, n);";
    make(&path("8.db"), &format!("{by_rowid}{rows}"));
    make(&path("16.db"), &format!("PRAGMA encoding='UTF-16be';{by_rowid}{rows}"));
    make(
        &path("without.db"),
        "PRAGMA encoding='UTF-16le';CREATE TABLE t(v, k TEXT PRIMARY KEY, n) WITHOUT ROWID;INSERT INTO t(k, v, n) VALUES('b', 'größe', 1),('a', '', 2),('日本', NULL, 2.5),('c', x'00', '')",
    );
    make(&path("anew.db"), &format!("{by_rowid}{rows};UPDATE t SET rowid = 100 - rowid; UPDATE t SET n = 7 WHERE k = 'a'"));
    for other in ["16.db", "without.db"] {
        let found = diff(&path("8.db"), &path(other));
        let t = table(&found, "t");
        assert_eq!((t.removed, t.added, t.changed), (0, 0, 0), "{other}: {found:?}");
        assert_eq!(found.settings.len(), 1, "the encoding differs");
    }
    let by_number = diff(&path("8.db"), &path("anew.db"));
    assert_eq!((by_number.removed, by_number.added), (4, 4));
    let by_key = diff_with(&path("8.db"), &path("anew.db"), true, 10, None);
    let t = table(&by_key, "t");
    assert_eq!((t.removed, t.added, lines(t, Change::Changed)), (0, 0, vec!["'a'|n:2->7".to_owned()]));
    assert_eq!(t.key, ["k"]);
}

#[test]
fn schema_header_and_tables_of_one_file() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (dir.path().join("a.db"), dir.path().join("b.db"));
    make(
        &a,
        "CREATE TABLE t(x, y); INSERT INTO t VALUES(1, 2); CREATE INDEX i ON t(x); CREATE TABLE gone(x); INSERT INTO gone VALUES(1),(2);",
    );
    make(
        &b,
        "CREATE TABLE t(x, z); INSERT INTO t VALUES(1, 3); CREATE INDEX i ON t(z); CREATE TABLE fresh(x); PRAGMA user_version=4; CREATE VIRTUAL TABLE f USING fts5(x); INSERT INTO f VALUES('found');",
    );
    let found = diff(&a, &b);
    let schema: Vec<(&str, &str, bool, bool)> =
        found.schema.iter().map(|s| (s.kind.as_str(), s.name.as_str(), s.a.is_some(), s.b.is_some())).collect();
    assert!(schema.contains(&("index", "i", true, true)) && schema.contains(&("table", "gone", true, false)), "{schema:?}");
    assert!(schema.contains(&("table", "fresh", false, true)) && schema.contains(&("virtual-table", "f", false, true)), "{schema:?}");
    assert_eq!((found.settings[0].name.as_str(), found.settings[0].a.as_str(), found.settings[0].b.as_str()), ("user_version", "0", "4"));
    let t = table(&found, "t");
    assert_eq!((t.columns_only_a.as_slice(), t.columns_only_b.as_slice()), (&["y".to_owned()][..], &["z".to_owned()][..]));
    assert_eq!((t.changed, t.is_equal()), (0, false));
    let gone = table(&found, "gone");
    assert_eq!((gone.removed, gone.not_listed, gone.b.is_none()), (2, 2, true));
    assert_eq!(table(&found, "f_content").added, 1, "the text of a search index is data");
    let left: Vec<&str> = found.not_compared.iter().map(|n| n.table.as_str()).collect();
    assert_eq!(left, ["f_data", "f_idx", "f_docsize", "f_config"]);
}

#[test]
fn a_large_table_in_little_memory() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (dir.path().join("a.db"), dir.path().join("b.db"));
    let rows = |order: &str| {
        format!(
            "CREATE TABLE t(k TEXT PRIMARY KEY, v);
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000)
             INSERT INTO t SELECT printf('key %06d', i), 'value ' || i FROM n ORDER BY {order};"
        )
    };
    make(&a, &rows("i"));
    make(&b, &format!("{}DELETE FROM t WHERE k = 'key 077777'; UPDATE t SET v = 7 WHERE k = 'key 150000';", rows("-i")));
    // A sort of 200,000 keys does not fit into a megabyte: it spills, and what differs stays the same.
    for memory in [None, Some(1 << 20)] {
        let found = diff_with(&a, &b, true, 5, memory);
        let t = table(&found, "t");
        assert_eq!(lines(t, Change::Removed), ["'key 077777'|k='key 077777'|v='value 77777'"]);
        assert_eq!(lines(t, Change::Changed), ["'key 150000'|v:'value 150000'->7"]);
        assert_eq!((t.added, t.a.unwrap().rows, t.b.unwrap().rows), (0, 200_000, 199_999));
    }
    // Everything differs: all is counted, little is kept.
    let found = diff_with(&a, &b, false, u64::MAX, Some(1 << 20));
    let t = table(&found, "t");
    assert_eq!(t.changed + t.removed, 200_000);
    assert!(t.rows.len() < 10_000 && t.not_listed > 190_000, "{}", t.rows.len());
    assert_eq!(t.rows.len() as u64 + t.not_listed, 200_000);
}

fn rootpage(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rootpage")).args(args).env_remove("COLUMNS").output().unwrap()
}

#[test]
fn the_verb_answers_with_text_json_and_a_code() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    make(&dir.path().join("a.db"), "CREATE TABLE t(x); INSERT INTO t VALUES('a' || char(27, 10) || '  b'),(NULL),(3);");
    make(&dir.path().join("b.db"), "CREATE TABLE t(x); INSERT INTO t VALUES('a' || char(27, 10) || ' b'),(''),(3.5);");
    std::fs::write(path("text"), "no database, but long enough to be looked at").unwrap();
    let (a, b) = (path("a.db"), path("b.db"));
    let code = |args: &[&str]| rootpage(args).status.code();
    assert_eq!(code(&["diff", &a, &a]), Some(0));
    assert_eq!(code(&["diff", &a, &b]), Some(1));
    assert_eq!(code(&["diff", &a, &path("text")]), Some(3));
    assert_eq!(code(&["diff", &a, &path("missing")]), Some(74));
    assert_eq!(code(&["diff", &a, &b, "nothing"]), Some(64));
    assert_eq!(code(&["diff", &a]), Some(64));
    let text = String::from_utf8(rootpage(&["diff", &a, &b]).stdout).unwrap();
    assert!(text.starts_with("Different: 0 rows only in A, 0 only in B, 3 changed."), "{text}");
    assert!(!text.contains('\u{1b}') && text.contains(r"x: 'a\u{1b}\n  b' -> 'a\u{1b}\n b'"), "{text}");
    assert!(text.contains("x: NULL -> ''") && text.contains("x: 3 -> 3.5"), "{text}");
    let json = rootpage(&["diff", "--json", "--limit", "2", &a, &b]).stdout;
    let model: Diff = serde_json::from_slice(&json).unwrap();
    assert_eq!(model.to_json().as_bytes(), json, "the JSON is the model");
    assert_eq!((model.format, model.changed, model.tables[0].rows.len(), model.tables[0].not_listed), (1, 3, 2, 1));
    let redacted = String::from_utf8(rootpage(&["diff", "--json", "--redact", &a, &b]).stdout).unwrap();
    assert!(!redacted.contains("\\n  b") && redacted.contains("text of 6 characters"), "{redacted}");
}
