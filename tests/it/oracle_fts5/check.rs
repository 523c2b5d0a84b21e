//! Our check of an index against FTS5's own, on healthy tables with a history and on damaged ones.

use std::collections::BTreeMap;

use rootpage::finding::{Code, Findings, Site};
use rootpage::format::Value;
use rootpage::fts5::check::{Checked, Checker};
use rootpage::fts5::config::{Config, Content, Settings};
use rootpage::fts5::tokenizer::{Found, Tokenizer};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, params};

use super::real::{self, Numbers};

pub struct Shadow {
    pub data: BTreeMap<i64, Vec<u8>>,
    pub idx: Vec<(i64, Vec<u8>, i64)>,
    pub docsize: Vec<(i64, Vec<u8>)>,
    pub settings: Settings,
    pub content: Vec<(i64, Vec<Option<Vec<u8>>>)>,
}

fn text(v: ValueRef<'_>) -> Option<Vec<u8>> {
    match v {
        ValueRef::Null => None,
        ValueRef::Integer(n) => Some(n.to_string().into_bytes()),
        v => Some(real::bytes(v)),
    }
}

pub fn shadow(db: &Connection, table: &str, config: &Config) -> Shadow {
    let mut out =
        Shadow { data: BTreeMap::new(), idx: Vec::new(), docsize: Vec::new(), settings: Settings::default(), content: Vec::new() };
    let each = |sql: String, f: &mut dyn FnMut(&rusqlite::Row<'_>)| {
        let mut select = db.prepare(&sql).unwrap();
        let mut rows = select.query([]).unwrap();
        while let Some(r) = rows.next().unwrap() {
            f(r);
        }
    };
    each(format!("SELECT id, block FROM {table}_data"), &mut |r| {
        out.data.insert(r.get(0).unwrap(), real::bytes(r.get_ref(1).unwrap()));
    });
    each(format!("SELECT segid, term, pgno FROM {table}_idx"), &mut |r| {
        out.idx.push((r.get(0).unwrap(), real::bytes(r.get_ref(1).unwrap()), r.get(2).unwrap()));
    });
    if config.columnsize {
        each(format!("SELECT id, sz FROM {table}_docsize"), &mut |r| {
            out.docsize.push((r.get(0).unwrap(), real::bytes(r.get_ref(1).unwrap())))
        });
    }
    let mut rows = Vec::new();
    each(format!("SELECT k, v FROM {table}_config"), &mut |r| {
        rows.push((real::bytes(r.get_ref(0).unwrap()), r.get::<_, i64>(1).unwrap()));
    });
    out.settings = Settings::from_rows(rows.iter().map(|(k, v)| (k.as_slice(), Value::Int(*v))));
    let names: Vec<String> = config.columns.iter().map(|c| format!("\"{}\"", c.name)).collect();
    let sql = match &config.content {
        Content::Stored => {
            format!("SELECT id, {} FROM {table}_content", (0..names.len()).map(|i| format!("c{i}")).collect::<Vec<_>>().join(", "))
        }
        Content::External(from) => format!("SELECT {}, {} FROM {from}", config.content_rowid, names.join(", ")),
        _ => return out,
    };
    each(sql, &mut |r| {
        out.content.push((r.get(0).unwrap(), (1..=names.len()).map(|i| text(r.get_ref(i).unwrap())).collect()));
    });
    out
}

pub fn check(config: &Config, shadow: &Shadow) -> (Checked, Findings) {
    let tokenizer = match Tokenizer::find(&config.tokenizer).unwrap() {
        Found::BuiltIn(t) => Some(t),
        Found::Custom(_) => None,
    };
    let mut log = Findings::new(100);
    let mut checker = Checker::new(config, &shadow.settings, tokenizer.as_ref());
    for (segment, term, page) in &shadow.idx {
        checker.idx_row(*segment, term, *page);
    }
    for (id, sizes) in &shadow.docsize {
        checker.docsize_row(*id, sizes);
    }
    checker.index(&shadow.data, shadow.data.keys().copied());
    for (rowid, columns) in &shadow.content {
        let columns: Vec<Option<&[u8]>> = columns.iter().map(Option::as_deref).collect();
        checker.content_row(*rowid, &columns);
    }
    (checker.finish(&mut log, Site::default()), log)
}

/// A table with a history: inserts in many transactions, deletions, updates, merges.
pub fn with_history(arguments: &[&str], settings: &str, seed: u64) -> Connection {
    let config = Config::parse(arguments).unwrap();
    let db = Connection::open_in_memory().unwrap();
    let mut n = Numbers(seed);
    let names: Vec<String> = config.columns.iter().map(|c| format!("\"{}\"", c.name)).collect();
    let names_list = names.join(", ");
    if let Content::External(from) = &config.content {
        let new = names.iter().map(|c| format!("new.{c}")).collect::<Vec<_>>().join(", ");
        let old = names.iter().map(|c| format!("old.{c}")).collect::<Vec<_>>().join(", ");
        db.execute_batch(&format!(
            "CREATE TABLE {from}(id INTEGER PRIMARY KEY, {names_list}); CREATE VIRTUAL TABLE ft USING fts5({});
             CREATE TRIGGER ai AFTER INSERT ON {from} BEGIN INSERT INTO ft(rowid, {names_list}) VALUES(new.id, {new}); END;
             CREATE TRIGGER ad AFTER DELETE ON {from} BEGIN INSERT INTO ft(ft, rowid, {names_list}) VALUES('delete', old.id, {old}); END;
             CREATE TRIGGER au AFTER UPDATE ON {from} BEGIN INSERT INTO ft(ft, rowid, {names_list}) VALUES('delete', old.id, {old});
               INSERT INTO ft(rowid, {names_list}) VALUES(new.id, {new}); END;",
            arguments.join(", ")
        ))
        .unwrap();
    } else {
        db.execute_batch(&format!("CREATE VIRTUAL TABLE ft USING fts5({})", arguments.join(", "))).unwrap();
    }
    db.execute_batch("INSERT INTO ft(ft, rank) VALUES('pgsz', 200)").unwrap();
    db.execute_batch(settings).unwrap();
    let (into, key) = match &config.content {
        Content::External(from) => (from.clone(), "id"),
        _ => ("ft".to_owned(), "rowid"),
    };
    let can_delete = !matches!(config.content, Content::None | Content::Unindexed) || config.contentless_delete;
    let places = names.iter().map(|_| "CAST(? AS TEXT)").collect::<Vec<_>>().join(", ");
    let mut rowid = 0;
    for _ in 0..25 {
        db.execute_batch("BEGIN").unwrap();
        for _ in 0..n.below(25) {
            rowid += 1 + n.below(3) as i64;
            let mut values = vec![rusqlite::types::Value::Integer(rowid)];
            values.extend(names.iter().map(|_| {
                let words = n.below(30);
                rusqlite::types::Value::Blob(real::text(&mut n, words, false))
            }));
            db.execute(&format!("INSERT INTO {into}({key}, {names_list}) VALUES(?, {places})"), rusqlite::params_from_iter(values))
                .unwrap();
        }
        if can_delete {
            for _ in 0..n.below(8) {
                db.execute(&format!("DELETE FROM {into} WHERE {key} = ?"), params![n.below(rowid as usize + 1) as i64]).unwrap();
            }
            if !matches!(config.content, Content::None | Content::Unindexed) {
                for _ in 0..n.below(4) {
                    db.execute(
                        &format!("UPDATE {into} SET {} = 'new lazy text' WHERE {key} = ?", names[0]),
                        params![n.below(rowid as usize + 1) as i64],
                    )
                    .unwrap();
                }
            }
        }
        db.execute_batch("COMMIT").unwrap();
        if n.below(6) == 0 {
            db.execute_batch("INSERT INTO ft(ft, rank) VALUES('merge', 3)").unwrap();
        }
    }
    db
}

const KINDS: &[(&[&str], &str)] = &[
    (&["a", "b"], ""),
    (&["a", "b UNINDEXED", "c", "prefix='1 2'"], ""),
    (&["a", "b", "content='docs'", "content_rowid='id'"], ""),
    (&["a", "content='docs'", "content_rowid='id'", "tokenize='trigram'"], ""),
    (&["a", "b", "content='docs'", "content_rowid='id'", "detail=none"], ""),
    (&["a", "b", "detail=column", "tokenize=porter"], ""),
    (&["a", "b", "detail=none", "columnsize=0"], ""),
    (&["a", "b"], "INSERT INTO ft(ft, rank) VALUES('secure-delete', 1)"),
    (&["a", "b", "content='docs'", "content_rowid='id'", "detail=none"], "INSERT INTO ft(ft, rank) VALUES('secure-delete', 1)"),
    (&["a", "b", "content='docs'", "content_rowid='id'", "tokenize=trigram"], "INSERT INTO ft(ft, rank) VALUES('secure-delete', 1)"),
    (&["a", "b", "content=''"], ""),
    (&["a", "b", "content=''", "contentless_delete=1"], ""),
    (&["a", "b UNINDEXED", "content=''", "contentless_delete=1", "contentless_unindexed=1"], ""),
    (&["a", "b"], "INSERT INTO ft(ft, rank) VALUES('automerge', 0)"),
];

#[test]
fn healthy_tables_with_a_history_are_clean() {
    for (arguments, settings) in KINDS {
        for seed in [11, 12, 13, 14] {
            let db = with_history(arguments, settings, seed);
            db.execute_batch("INSERT INTO ft(ft, rank) VALUES('integrity-check', 1)").unwrap();
            let config = Config::parse(arguments).unwrap();
            let (checked, log) = check(&config, &shadow(&db, "ft", &config));
            let said: Vec<String> = log.kept().iter().map(|f| f.sentence()).collect();
            assert!(checked.is_clean() && log.is_empty(), "{arguments:?} {settings} {seed}: {said:?}");
        }
    }
}

#[test]
fn damage_is_found_and_named() {
    let arguments = &["a", "b", "content='docs'", "content_rowid='id'"];
    let config = Config::parse(arguments).unwrap();
    let damages: &[(&str, Code)] = &[
        ("UPDATE ft_data SET block = X'DEADBEEFDEADBEEF' WHERE id = 10", Code::StructureRecordBad),
        ("DELETE FROM ft_data WHERE id = 10", Code::StructureRecordMissing),
        (
            "UPDATE ft_data SET block = X'BADC0FFEE0DDF00D' WHERE id = (SELECT max(id) FROM ft_data WHERE id < 1 << 60)",
            Code::SegmentLeafBad,
        ),
        ("DELETE FROM ft_data WHERE id = (SELECT id FROM ft_data WHERE id > 10 LIMIT 1 OFFSET 2)", Code::SegmentLeafMissing),
        ("INSERT INTO ft_idx(segid, term, pgno) VALUES(1999, x'30', 2)", Code::IdxStale),
        (
            "UPDATE ft_idx SET term = x'7a7a' WHERE (segid, term) = (SELECT segid, term FROM ft_idx ORDER BY 1 DESC, 2 DESC LIMIT 1)",
            Code::IdxDisagrees,
        ),
        ("DELETE FROM ft_idx WHERE rowid_of = 1", Code::IdxDisagrees),
        ("DELETE FROM ft_docsize WHERE id = (SELECT max(id) FROM ft_docsize)", Code::RowWithoutDocsize),
        ("UPDATE ft_docsize SET sz = x'0101' WHERE id = (SELECT max(id) FROM ft_docsize)", Code::DocsizeDiffers),
        ("DROP TRIGGER ad; DELETE FROM docs WHERE id = (SELECT max(id) FROM docs)", Code::PostingsWithoutRow),
        ("DROP TRIGGER au; UPDATE docs SET b = 'something else' WHERE id = (SELECT max(id) FROM docs)", Code::IndexDiffersFromContent),
        ("DROP TRIGGER ai; INSERT INTO docs(id, a, b) VALUES(999999, 'new', 'row')", Code::RowWithoutDocsize),
        ("UPDATE ft_data SET block = x'0506' WHERE id = 1", Code::AveragesDiffer),
        ("INSERT INTO ft_data(id, block) VALUES(7 << 40, x'00000004')", Code::FtsDataStray),
        ("UPDATE ft_config SET v = 9 WHERE k = 'version'", Code::FtsVersionBad),
    ];
    for (sql, code) in damages {
        let db = with_history(arguments, "", 21);
        if sql.contains("rowid_of") {
            let (segment, term): (i64, Vec<u8>) =
                db.query_row("SELECT segid, term FROM ft_idx ORDER BY 1 DESC, 2 DESC LIMIT 1", [], |r| Ok((r.get(0)?, r.get(1)?))).unwrap();
            db.execute("DELETE FROM ft_idx WHERE segid = ? AND term = ?", params![segment, term]).unwrap();
        } else {
            db.execute_batch(sql).unwrap();
        }
        let (_, log) = check(&config, &shadow(&db, "ft", &config));
        assert!(log.count(*code) > 0, "{sql}: {:?}", log.counts());
    }
}

#[test]
fn any_damage_of_a_block_is_survived() {
    let mut n = Numbers(77);
    for (i, (arguments, settings)) in KINDS.iter().enumerate() {
        let config = Config::parse(arguments).unwrap();
        let healthy = shadow(&with_history(arguments, settings, 31 + i as u64), "ft", &config);
        for _ in 0..60 {
            let mut data = healthy.data.clone();
            for _ in 0..1 + n.below(3) {
                let keys: Vec<i64> = data.keys().copied().collect();
                let key = n.pick(&keys);
                let block = data.get_mut(&key).unwrap();
                match n.below(4) {
                    0 => {
                        data.remove(&key);
                    }
                    1 => block.truncate(n.below(block.len() + 1)),
                    _ if block.is_empty() => {}
                    2 => {
                        let at = n.below(block.len());
                        block[at] ^= 1 << n.below(8);
                    }
                    _ => {
                        let at = n.below(block.len());
                        let noise: Vec<u8> = (0..16).map(|_| n.next() as u8).collect();
                        let end = (at + 16).min(block.len());
                        block[at..end].copy_from_slice(&noise[..end - at]);
                    }
                }
            }
            let damaged = Shadow {
                data,
                idx: healthy.idx.clone(),
                docsize: healthy.docsize.clone(),
                settings: healthy.settings.clone(),
                content: healthy.content.clone(),
            };
            check(&config, &damaged);
        }
    }
}
