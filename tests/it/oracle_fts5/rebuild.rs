//! Indexes that we build, put into a real SQLite and judged by it.

use std::path::Path;

use rootpage::ctx::Limits;
use rootpage::fts5::Rebuilder;
use rootpage::fts5::config::{Config, Content};
use rootpage::fts5::rebuild::{Built, Options};
use rootpage::fts5::tokenizer::{Found, Tokenizer};
use rusqlite::types::Value;
use rusqlite::{Connection, params};

use super::real::{self, Numbers};

/// A row: rowid and the text of each column as bytes.
pub type Row = (i64, Vec<Option<Vec<u8>>>);

pub fn config(arguments: &[&str]) -> Config {
    Config::parse(arguments).unwrap()
}

pub fn build(config: &Config, rows: &[Row], memory: usize, page_size: u32) -> Built {
    let Found::BuiltIn(tokenizer) = Tokenizer::find(&config.tokenizer).unwrap() else { panic!() };
    let folder = std::env::temp_dir();
    let options = Options { page_size, memory, ..Options::new(&Limits::default(), &folder) };
    let mut rebuilder = Rebuilder::new(config, tokenizer, options);
    for (rowid, columns) in rows {
        let columns: Vec<Option<&[u8]>> = columns.iter().map(Option::as_deref).collect();
        rebuilder.push(*rowid, &columns).unwrap();
    }
    rebuilder.finish().unwrap()
}

/// Puts the rows of an index in place of those that are there.
pub fn install(db: &Connection, table: &str, built: Built) {
    db.execute_batch(&format!("BEGIN; DELETE FROM {table}_data; DELETE FROM {table}_idx")).unwrap();
    let mut insert = db.prepare(&format!("INSERT INTO {table}_data(id, block) VALUES(?, ?)")).unwrap();
    let mut before = i64::MIN;
    built
        .data
        .for_each(|id, block| {
            assert!(id > before);
            before = id;
            insert.execute(params![id, block]).unwrap();
            Ok(())
        })
        .unwrap();
    let mut insert = db.prepare(&format!("INSERT INTO {table}_idx(segid, term, pgno) VALUES(?, ?, ?)")).unwrap();
    built
        .idx
        .for_each(|segment, term, page| {
            insert.execute(params![segment, term, page]).unwrap();
            Ok(())
        })
        .unwrap();
    if let Some(docsize) = built.docsize {
        db.execute_batch(&format!("DELETE FROM {table}_docsize")).unwrap();
        docsize
            .for_each(|id, sizes, origin| {
                match origin {
                    None => db.execute(&format!("INSERT INTO {table}_docsize(id, sz) VALUES(?, ?)"), params![id, sizes]),
                    Some(origin) => {
                        db.execute(&format!("INSERT INTO {table}_docsize(id, sz, origin) VALUES(?, ?, ?)"), params![id, sizes, origin])
                    }
                }
                .unwrap();
                Ok(())
            })
            .unwrap();
    }
    db.execute_batch("COMMIT").unwrap();
}

fn text(bytes: Option<&[u8]>) -> Value {
    bytes.map_or(Value::Null, |b| Value::Blob(b.to_vec()))
}

/// A database file with a table `ft` as FTS5 makes it from the rows.
pub fn original(path: &Path, arguments: &[&str], rows: &[Row]) {
    let config = config(arguments);
    let db = Connection::open(path).unwrap();
    db.execute_batch("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF").unwrap();
    let names: Vec<String> = config.columns.iter().map(|c| format!("\"{}\"", c.name)).collect();
    if let Content::External(table) = &config.content {
        db.execute_batch(&format!("CREATE TABLE {table}({} INTEGER PRIMARY KEY, {})", config.content_rowid, names.join(", "))).unwrap();
    }
    db.execute_batch(&format!("CREATE VIRTUAL TABLE ft USING fts5({})", arguments.join(", "))).unwrap();
    let places: Vec<String> = config.columns.iter().map(|_| "CAST(? AS TEXT)".to_owned()).collect();
    let (target, key) = match &config.content {
        Content::External(table) => (table.as_str(), config.content_rowid.as_str()),
        _ => ("ft", "rowid"),
    };
    db.execute_batch("BEGIN").unwrap();
    let mut insert = db.prepare(&format!("INSERT INTO {target}({key}, {}) VALUES(?, {})", names.join(", "), places.join(", "))).unwrap();
    for (rowid, columns) in rows {
        let mut values = vec![Value::Integer(*rowid)];
        values.extend(columns.iter().map(|c| text(c.as_deref())));
        insert.execute(rusqlite::params_from_iter(values)).unwrap();
    }
    db.execute_batch("COMMIT").unwrap();
    if matches!(config.content, Content::External(_)) {
        db.execute_batch("INSERT INTO ft(ft) VALUES('rebuild')").unwrap();
    }
}

pub fn passes(db: &Connection, table: &str) {
    db.execute_batch(&format!("INSERT INTO {table}({table}, rank) VALUES('integrity-check', 1)")).unwrap();
    let ok: String = db.query_row("PRAGMA integrity_check", [], |r| r.get(0)).unwrap();
    assert_eq!(ok, "ok");
}

const QUERIES: &[&str] = &[
    "the",
    "quick OR lazy",
    "data*",
    "naive",
    "\"the quick\"",
    "NEAR(fox dog, 5)",
    "fo*",
    "a*",
    "1*",
    "\"lazy data\"*",
    "NOT_A_WORD",
    "αθηνα",
    "мир",
    "日本語",
    "over NOT the",
    "x",
    "tool",
];

/// Rowids and, where there are positions, ranks of queries.
fn answers(db: &Connection, ranked: bool) -> Vec<(String, Vec<(i64, String)>)> {
    let mut out = Vec::new();
    for query in QUERIES {
        let rank = if ranked { "printf('%.12g', bm25(ft))" } else { "''" };
        let mut select =
            db.prepare(&format!("SELECT rowid, {rank} FROM ft(?) ORDER BY {} rowid", if ranked { "rank," } else { "" })).unwrap();
        let rows: Result<Vec<(i64, String)>, _> = select.query_map([query], |r| Ok((r.get(0)?, r.get(1)?))).unwrap().collect();
        out.push(((*query).to_owned(), rows.unwrap_or_default()));
    }
    out
}

pub fn rows(n: &mut Numbers, count: usize, columns: usize, words: usize, dirty: bool) -> Vec<Row> {
    let mut rowid = -40;
    (0..count)
        .map(|_| {
            rowid += 1 + if n.below(10) == 0 { n.below(100_000) as i64 } else { 0 };
            let columns = (0..columns)
                .map(|_| {
                    let words = n.below(words);
                    (n.below(15) != 0).then(|| real::text(n, words, dirty))
                })
                .collect();
            (rowid, columns)
        })
        .collect()
}

/// Builds, installs and judges one table, then lets real SQLite work on it.
fn judge(arguments: &[&str], rows: &[Row], memory: usize, page_size: u32) {
    let what = arguments.join(", ");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    original(&path, arguments, rows);
    let config = config(arguments);
    let names: Vec<&str> = config.columns.iter().map(|c| c.name.as_str()).collect();
    let full = config.detail == rootpage::fts5::Detail::Full;
    let (before, answers_before) = {
        let db = Connection::open(&path).unwrap();
        passes(&db, "ft");
        (real::instances(&db, "ft", &names), answers(&db, full))
    };
    install(&Connection::open(&path).unwrap(), "ft", build(&config, rows, memory, page_size));
    let db = Connection::open(&path).unwrap();
    passes(&db, "ft");
    assert!(real::instances(&db, "ft", &names) == before, "{what}");
    assert_eq!(answers(&db, full), answers_before, "{what}");
    // Changes on top.
    let columns: Vec<String> = names.iter().map(|n| format!("\"{n}\"")).collect();
    let row = "'changed lazy text'".to_owned();
    let values = vec![row; names.len()].join(", ");
    match &config.content {
        Content::External(table) => {
            db.execute_batch(&format!(
                "INSERT INTO {table}({}, {}) VALUES(99999999, {values}); INSERT INTO ft(rowid, {}) VALUES(99999999, {values});",
                config.content_rowid,
                columns.join(", "),
                columns.join(", ")
            ))
            .unwrap();
            let first = rows[0].0;
            let copy = format!(
                "SELECT 'delete', {}, {} FROM {table} WHERE {} = {first}",
                config.content_rowid,
                columns.join(", "),
                config.content_rowid
            );
            db.execute_batch(&format!(
                "INSERT INTO ft(ft, rowid, {}) {copy}; DELETE FROM {table} WHERE {} = {first}",
                columns.join(", "),
                config.content_rowid
            ))
            .unwrap();
        }
        Content::Stored => {
            db.execute_batch(&format!(
                "INSERT INTO ft(rowid, {}) VALUES(99999999, {values}); DELETE FROM ft WHERE rowid IN (SELECT rowid FROM ft LIMIT 5);
                 UPDATE ft SET {} = 'other' WHERE rowid = (SELECT max(rowid) FROM ft)",
                columns.join(", "),
                columns[0]
            ))
            .unwrap();
        }
        Content::None | Content::Unindexed => {
            db.execute_batch(&format!("INSERT INTO ft(rowid, {}) VALUES(99999999, {values})", columns.join(", "))).unwrap();
            if config.contentless_delete {
                db.execute_batch(&format!("DELETE FROM ft WHERE rowid = {}", rows[0].0)).unwrap();
            }
        }
    }
    passes(&db, "ft");
    db.execute_batch("INSERT INTO ft(ft) VALUES('optimize')").unwrap();
    passes(&db, "ft");
    if matches!(config.content, Content::External(_) | Content::Stored) {
        let optimized = real::instances(&db, "ft", &names);
        db.execute_batch("INSERT INTO ft(ft) VALUES('rebuild')").unwrap();
        passes(&db, "ft");
        assert!(real::instances(&db, "ft", &names) == optimized, "{what}");
    }
}

#[test]
fn tables_of_every_kind() {
    let mut n = Numbers(3);
    let one = rows(&mut n, 300, 1, 60, false);
    let three = rows(&mut n, 300, 3, 40, true);
    let memory = 128 << 20;
    for tokenize in [
        "tokenize='unicode61'",
        "tokenize='unicode61 remove_diacritics 2 tokenchars ''-_'''",
        "tokenize='porter'",
        "tokenize='trigram'",
        "tokenize='trigram case_sensitive 1'",
        "tokenize='trigram remove_diacritics 1'",
        "tokenize='ascii'",
    ] {
        for other in ["content='docs'", "detail=column", "detail=none", "columnsize=0", "prefix='1 3'", "content=''"] {
            judge(&["body", tokenize, other], &one, memory, 4050);
            judge(&["a", "b UNINDEXED", "c", tokenize, other], &three, memory, 4050);
        }
    }
    judge(&["a", "b", "c", "content=''", "contentless_delete=1"], &three, memory, 4050);
    judge(&["a", "b UNINDEXED", "c", "content=''", "contentless_unindexed=1", "contentless_delete=1"], &three, memory, 4050);
    judge(&["a", "b", "c", "locale=1"], &three, memory, 4050);
    judge(&["a", "b", "c", "tokendata=1", "prefix=2"], &three, memory, 4050);
    judge(&["a", "b", "c", "prefix='1 2 3'", "detail=none", "content='docs'", "content_rowid='id'"], &three, memory, 4050);
    judge(&["body"], &[(7, vec![None])], memory, 4050);
}

#[test]
fn small_leaves_and_long_doclists() {
    // Doclists over many leaves with indexes of several levels, long position lists, long terms.
    let mut n = Numbers(17);
    let mut many: Vec<Row> = (1..=3000).map(|i| (i * 7, vec![Some(b"common the quick".to_vec())])).collect();
    many.extend((0..5).map(|i| (50_000 + i, vec![Some("the ".repeat(5000).into_bytes())])));
    many.push((60_000, vec![Some(vec![b'w'; 5000])]));
    many.push((60_001, vec![Some(vec![b'w'; 40_000])]));
    many.extend((0..50).map(|i| (70_000 + i, vec![Some(real::text(&mut n, 100, true))])));
    for page_size in [32, 64, 100, 1000, 65536] {
        for other in ["detail=full", "detail=column", "detail=none", "prefix=2"] {
            judge(&["body", other], &many, 1 << 20, page_size);
        }
    }
    judge(&["body", "tokenize=trigram"], &many, 1 << 20, 128);
}

#[test]
fn values_of_a_megabyte() {
    let mut n = Numbers(19);
    let rows: Vec<Row> = (1..4).map(|i| (i, vec![Some(real::text(&mut n, 130_000, i == 2))])).collect();
    assert!(rows.iter().all(|r| r.1[0].as_ref().unwrap().len() > 1 << 20));
    for tokenize in ["tokenize=unicode61", "tokenize=trigram"] {
        judge(&["body", tokenize, "content='docs'"], &rows, 1 << 20, 4050);
    }
}

#[test]
fn the_result_depends_on_the_rows_alone() {
    let mut n = Numbers(5);
    let rows = rows(&mut n, 3000, 2, 400, true);
    let config = config(&["a", "b", "prefix=2"]);
    let bytes = |memory, threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut out = Vec::new();
            build(&config, &rows, memory, 4050)
                .data
                .for_each(|id, block| {
                    out.push((id, block.to_vec()));
                    Ok(())
                })
                .unwrap();
            out
        })
    };
    let whole = bytes(1 << 30, 1);
    assert!(whole.len() > 100);
    assert!(bytes(1 << 20, 1) == whole);
    assert!(bytes(1 << 20, 3) == whole);
}
