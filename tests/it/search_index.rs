//! Full-text indexes: damage is named as damage to search, and real SQLite judges every index in the copy.

use std::path::{Path, PathBuf};
use std::process::Command;

use rusqlite::Connection;

const WORDS: [&str; 12] =
    ["harbour", "Größe", "ловля", "running", "tables", "日本語の本", "naïve", "e2e", "schedule", "lantern", "ΑΒΓδ", "zero"];

fn text(n: u32) -> String {
    (0..(n % 17 + 3)).map(|i| WORDS[usize::try_from((n * 7 + i * 5 + i * i) % 12).unwrap()]).collect::<Vec<_>>().join(" ")
}

struct Case {
    folder: tempfile::TempDir,
}

impl Case {
    fn new(statements: &str) -> (Case, Connection) {
        let folder = tempfile::tempdir().unwrap();
        let con = Connection::open(folder.path().join("x.db")).unwrap();
        con.execute_batch(statements).unwrap();
        (Case { folder }, con)
    }

    fn db(&self) -> PathBuf {
        self.folder.path().join("x.db")
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join("out.db")
    }

    fn run(&self, verb: &str) -> (i32, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rootpage"));
        command.arg(verb).arg(self.db());
        if verb == "recover" {
            command.arg("-o").arg(self.out()).arg("--force");
        }
        let done = command.output().unwrap();
        let text = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        (done.status.code().unwrap(), text)
    }

    /// `check` gives this exit code; the copy is one that SQLite finds nothing wrong with, search included.
    fn judged(&self, exit: i32) -> Connection {
        let (code, text) = self.run("check");
        assert_eq!(code, exit, "{text}");
        if exit == 1 {
            assert!(text.contains("search-index-only"), "{text}");
        }
        let (code, text) = self.run("recover");
        assert_eq!(code, exit, "{text}");
        sound(&self.out())
    }
}

fn sound(path: &Path) -> Connection {
    let con = Connection::open(path).unwrap();
    let ok: String = con.query_row("PRAGMA integrity_check", [], |r| r.get(0)).unwrap();
    assert_eq!(ok, "ok");
    for name in tables(&con) {
        con.execute(&format!("INSERT INTO {name}({name}, rank) VALUES('integrity-check', 1)"), [])
            .unwrap_or_else(|e| panic!("{name}: {e}"));
    }
    con
}

fn tables(con: &Connection) -> Vec<String> {
    let mut names = con.prepare("SELECT name FROM sqlite_schema WHERE sql LIKE 'CREATE VIRTUAL TABLE%fts5%'").unwrap();
    names.query_map([], |r| r.get(0)).unwrap().map(Result::unwrap).collect()
}

/// Rows that each word finds, in order of rank.
fn answers(con: &Connection, table: &str) -> Vec<Vec<i64>> {
    let mut all = Vec::new();
    for word in WORDS.iter().chain(&["run*", "har*", "\"日本語\""]) {
        let word = if word.contains(['*', '"']) { (*word).to_owned() } else { format!("\"{word}\"") };
        let mut query = con.prepare(&format!("SELECT rowid FROM {table} WHERE {table} MATCH ? ORDER BY rank, rowid")).unwrap();
        all.push(query.query_map([word], |r| r.get(0)).unwrap().map(Result::unwrap).collect());
    }
    all
}

fn fill(con: &Connection, table: &str, columns: &str) {
    let tx = con.unchecked_transaction().unwrap();
    for n in 1..=300_u32 {
        con.execute(&format!("INSERT INTO {table}(rowid, {columns}) VALUES(?1, ?2, ?3)"), (n * 3, text(n), text(n + 1000))).unwrap();
    }
    tx.commit().unwrap();
}

/// What befalls the index, as SQL on its shadow tables.
const DAMAGE: [&str; 8] = [
    "DELETE FROM ft_data WHERE id = 10",
    "UPDATE ft_data SET block = x'DEADBEEFDEADBEEF'",
    "UPDATE ft_data SET block = zeroblob(length(block)) WHERE id = (SELECT max(id) FROM ft_data)",
    "DELETE FROM ft_data WHERE id = (SELECT max(id) FROM ft_data)",
    "DELETE FROM ft_data",
    "DELETE FROM ft_idx",
    "DELETE FROM ft_config",
    "INSERT INTO ft_idx SELECT max(segid) + 1, x'30', 2 FROM ft_idx",
];

const WITH_TEXT: [&str; 10] = [
    "a, b",
    "a, b, tokenize='porter unicode61 remove_diacritics 2'",
    "a, b, tokenize='trigram'",
    "a, b, tokenize='ascii', prefix='2 3'",
    "a, b, detail=column",
    "a, b, detail=none",
    "a, b UNINDEXED, columnsize=0",
    "a, b, content='t', content_rowid='id'",
    "a, b, content='t', content_rowid='id', tokenize='trigram case_sensitive 1'",
    "b, a, content='t', prefix='1'",
];

fn made(arguments: &str, encoding: &str) -> (Case, Connection) {
    let (case, con) = Case::new(&format!("PRAGMA encoding='{encoding}'; CREATE VIRTUAL TABLE ft USING fts5({arguments});"));
    if arguments.contains("'t'") {
        con.execute_batch(
            "CREATE TABLE t(id INTEGER PRIMARY KEY, a, b);
             CREATE TRIGGER ti AFTER INSERT ON t BEGIN INSERT INTO ft(rowid, a, b) VALUES(new.id, new.a, new.b); END;
             CREATE TRIGGER td AFTER DELETE ON t BEGIN
               INSERT INTO ft(ft, rowid, a, b) VALUES('delete', old.id, old.a, old.b); END;",
        )
        .unwrap();
        fill(&con, "t", "a, b");
    } else {
        fill(&con, "ft", "a, b");
    }
    (case, con)
}

#[test]
fn a_whole_index_is_copied_as_it_is() {
    for arguments in WITH_TEXT {
        let (case, con) = made(arguments, "UTF-8");
        let blocks = |con: &Connection| -> Vec<(i64, Vec<u8>)> {
            let mut all = con.prepare("SELECT id, block FROM ft_data ORDER BY id").unwrap();
            all.query_map([], |r| Ok((r.get(0)?, r.get(1)?))).unwrap().map(Result::unwrap).collect()
        };
        let before = blocks(&con);
        drop(con);
        assert!(before == blocks(&case.judged(0)), "{arguments}");
    }
}

#[test]
fn a_damaged_index_is_written_anew_from_its_content() {
    for (i, arguments) in WITH_TEXT.iter().enumerate() {
        for (k, damage) in DAMAGE.iter().enumerate() {
            let encoding = if (i + k) % 3 == 0 { "UTF-16le" } else { "UTF-8" };
            let (case, con) = made(arguments, encoding);
            let before = answers(&con, "ft");
            con.execute_batch(damage).unwrap();
            drop(con);
            let copy = case.judged(1);
            assert_eq!(answers(&copy, "ft"), before, "{arguments}: {damage}");
            goes_on(&copy, arguments);
        }
    }
}

/// Inserts, deletes and FTS5's own commands work.
fn goes_on(con: &Connection, arguments: &str) {
    let table = if arguments.contains("'t'") { "t" } else { "ft" };
    con.execute(&format!("INSERT INTO {table}(rowid, a, b) VALUES(5000, 'harbour new', 'lantern')"), []).unwrap();
    if !arguments.contains("'v'") {
        con.execute(&format!("DELETE FROM {table} WHERE rowid = 6"), []).unwrap();
    }
    con.execute_batch("INSERT INTO ft(ft) VALUES('optimize'); INSERT INTO ft(ft, rank) VALUES('integrity-check', 1)").unwrap();
    con.execute_batch("INSERT INTO ft(ft) VALUES('rebuild'); INSERT INTO ft(ft, rank) VALUES('integrity-check', 1)").unwrap();
}

#[test]
fn missing_shadow_tables_are_made() {
    for part in ["data", "idx", "docsize", "config"] {
        let (case, con) = made("a, b, content='t', content_rowid='id'", "UTF-8");
        let before = answers(&con, "ft");
        con.execute_batch(&format!(
            "CREATE TABLE keep(a); INSERT INTO keep VALUES(1); PRAGMA writable_schema=1;
             DELETE FROM sqlite_schema WHERE name = 'ft_{part}';"
        ))
        .unwrap();
        drop(con);
        let (_, text) = case.run("recover");
        let copy = sound(&case.out());
        assert_eq!(answers(&copy, "ft"), before, "{text}");
        goes_on(&copy, "'t'");
    }
}

#[test]
fn rows_that_the_content_lost_leave_the_index() {
    let (case, con) = made("a, b, content='t', content_rowid='id'", "UTF-8");
    con.execute_batch("DROP TRIGGER td; DELETE FROM t WHERE id BETWEEN 30 AND 60").unwrap();
    drop(con);
    let copy = case.judged(1);
    let found: i64 = copy.query_row("SELECT count(*) FROM ft_docsize WHERE id BETWEEN 30 AND 60", [], |r| r.get(0)).unwrap();
    assert_eq!(found, 0);
}

#[test]
fn a_contentless_index_comes_back_from_its_postings() {
    for arguments in ["a, b, content=''", "a, b, content='', contentless_delete=1", "a, b, content='', detail=none"] {
        let (case, con) = made(arguments, "UTF-8");
        let before = answers(&con, "ft");
        con.execute_batch("INSERT INTO ft_idx SELECT max(segid) + 1, x'30', 2 FROM ft_idx").unwrap();
        drop(con);
        let (_, text) = case.run("recover");
        assert_eq!(answers(&sound(&case.out()), "ft"), before, "{arguments}: {text}");
    }
}

#[test]
fn an_unknown_tokenizer_is_copied_or_left_to_the_script() {
    for damaged in [false, true] {
        let (case, con) = made("a, b, content='t', content_rowid='id', tokenize='unicode61'", "UTF-8");
        if damaged {
            con.execute_batch("DELETE FROM ft_data WHERE id = 10").unwrap();
        }
        con.execute_batch("PRAGMA writable_schema=1; UPDATE sqlite_schema SET sql = replace(sql, 'unicode61', 'cjk_words')").unwrap();
        drop(con);
        let (code, text) = case.run("check");
        assert_eq!(code, i32::from(damaged), "{text}");
        case.run("recover");
        let copy = Connection::open(case.out()).unwrap();
        let there: i64 = copy.query_row("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'ft%'", [], |r| r.get(0)).unwrap();
        assert_eq!(there, if damaged { 0 } else { 5 });
        let script = std::fs::read_to_string(case.folder.path().join("out.db.finish.sql"));
        assert_eq!(script.is_ok(), damaged);
        if let Ok(script) = script {
            assert!(script.contains("cjk_words") && script.contains("CREATE TRIGGER ti") && script.contains("'rebuild'"), "{script}");
            // Nothing in the way of the application's inserts.
            copy.execute_batch("INSERT INTO t(a, b) VALUES('x', 'y')").unwrap();
        }
    }
}

#[test]
fn rows_that_the_application_has_not_indexed_yet_are_no_damage() {
    let (case, con) = Case::new(
        "CREATE TABLE messages(id INTEGER PRIMARY KEY, content);
         CREATE VIRTUAL TABLE messages_fts USING fts5(content, content='messages', content_rowid='id');
         CREATE TABLE state_meta(key TEXT PRIMARY KEY, value TEXT);
         INSERT INTO state_meta VALUES('fts_rebuild_high_water', '200'), ('fts_rebuild_progress', '50');",
    );
    for n in 1..=250_u32 {
        con.execute("INSERT INTO messages(id, content) VALUES(?1, ?2)", (n, text(n))).unwrap();
    }
    con.execute_batch("INSERT INTO messages_fts(rowid, content) SELECT id, content FROM messages WHERE id <= 50 OR id > 200").unwrap();
    let (code, text) = case.run("check");
    assert_eq!(code, 0, "{text}");
    let before = answers(&con, "messages_fts");
    con.execute_batch("DELETE FROM messages_fts_data WHERE id = 10").unwrap();
    drop(con);
    case.run("recover");
    let copy = Connection::open(case.out()).unwrap();
    assert_eq!(answers(&copy, "messages_fts"), before);
    let rows: i64 = copy.query_row("SELECT count(*) FROM messages_fts_docsize", [], |r| r.get(0)).unwrap();
    assert_eq!(rows, 100);
}

#[test]
fn an_index_over_a_view_is_copied_when_whole() {
    for damaged in [false, true] {
        let (case, con) = Case::new(
            "CREATE TABLE t(id INTEGER PRIMARY KEY, a, b);
             CREATE VIEW v AS SELECT id, a, b FROM t WHERE length(a) > 2;
             CREATE VIRTUAL TABLE ft USING fts5(a, b, content='v', content_rowid='id');
             CREATE TRIGGER ti AFTER INSERT ON t BEGIN INSERT INTO ft(rowid, a, b) VALUES(new.id, new.a, new.b); END;",
        );
        fill(&con, "t", "a, b");
        if damaged {
            con.execute_batch("UPDATE ft_data SET block = x'00' WHERE id = 10").unwrap();
        }
        drop(con);
        let (code, text) = case.run("check");
        assert_eq!(code, i32::from(damaged), "{text}");
        case.run("recover");
        let copy = Connection::open(case.out()).unwrap();
        if damaged && let Ok(script) = std::fs::read_to_string(case.folder.path().join("out.db.finish.sql")) {
            copy.execute_batch(&script).unwrap();
        }
        drop(copy);
        goes_on(&sound(&case.out()), "'t' over 'v'");
    }
}

#[test]
fn an_index_over_a_joined_view_is_written_anew() {
    for damage in ["DELETE FROM ft_data WHERE id = 10", "DELETE FROM m WHERE id BETWEEN 100 AND 120"] {
        let (case, con) = Case::new(
            "CREATE TABLE s(id TEXT PRIMARY KEY, source TEXT, config TEXT);
             INSERT INTO s VALUES('s0', 'cli', NULL), ('s1', 'cron', '{}'), ('s2', 'web', '{\"_from\":1}'), ('s3', 'web', '{\"a\":2}');
             CREATE TABLE m(id INTEGER PRIMARY KEY, session TEXT, role TEXT, a, b);
             CREATE VIEW v AS SELECT m.id AS id, CASE WHEN m.role = 'tool' THEN substr(m.a, 1, 9) ELSE m.a END AS a, m.b AS b
               FROM m JOIN s ON s.id = m.session
               WHERE s.source NOT IN ('cron', 'subagent') AND json_extract(s.config, '$._from') IS NULL;
             CREATE VIRTUAL TABLE ft USING fts5(a, b, content='v', content_rowid='id', tokenize='trigram');",
        );
        for n in 1..=300_u32 {
            let (session, role) = (format!("s{}", n % 5), if n % 3 == 0 { "tool" } else { "user" });
            con.execute("INSERT INTO m VALUES(?1, ?2, ?3, ?4, ?5)", (n, session, role, text(n), text(n + 9))).unwrap();
        }
        con.execute_batch("INSERT INTO ft(ft) VALUES('rebuild')").unwrap();
        let (code, report) = case.run("check");
        assert_eq!(code, 0, "{report}");
        con.execute_batch(damage).unwrap();
        drop(con);
        let copy = case.judged(1);
        assert_eq!(tables(&copy), ["ft"]);
    }
}

#[test]
fn a_view_that_raises_leaves_the_index_to_the_script_and_names_the_row() {
    let (case, con) = Case::new(
        "CREATE TABLE s(id TEXT PRIMARY KEY, config TEXT);
         INSERT INTO s VALUES('s0', NULL), ('s1', '{\"a\":1}');
         CREATE TABLE m(id INTEGER PRIMARY KEY, session TEXT, a, b);
         CREATE VIEW v AS SELECT m.id AS id, m.a AS a, m.b AS b FROM m JOIN s ON s.id = m.session WHERE json_extract(s.config, '$.x') IS NULL;
         CREATE VIRTUAL TABLE ft USING fts5(a, b, content='v', content_rowid='id');
         CREATE TRIGGER tr AFTER INSERT ON m BEGIN INSERT INTO ft(rowid, a, b) VALUES(new.id, new.a, new.b); END;",
    );
    for n in 1..=60_u32 {
        con.execute("INSERT INTO m VALUES(?1, ?2, ?3, ?4)", (n, format!("s{}", n % 2), text(n), text(n + 9))).unwrap();
    }
    // The application stored broken JSON for the session of row 77; from here on SQLite's own rebuild raises as well.
    con.execute_batch(
        "INSERT INTO s VALUES('bad', '{\"a\": BROKEN'); INSERT INTO m VALUES(77, 'bad', 'x', 'y'); DELETE FROM ft_data WHERE id = 10;",
    )
    .unwrap();
    drop(con);
    let (code, report) = case.run("recover");
    assert_eq!(code, 2, "{report}");
    let script = std::fs::read_to_string(case.folder.path().join("out.db.finish.sql")).unwrap();
    assert!(script.contains("1 row of m, the first has rowid 77"), "{script}");
    let copy = Connection::open(case.out()).unwrap();
    assert!(tables(&copy).is_empty());
    copy.execute_batch("INSERT INTO m VALUES(100, 's0', 'a', 'b')").unwrap();
    // When the row has been mended the script makes the index.
    copy.execute_batch("UPDATE s SET config = NULL WHERE id = 'bad'").unwrap();
    copy.execute_batch(&script).unwrap();
    copy.execute_batch("INSERT INTO ft(ft, rank) VALUES('integrity-check', 1); INSERT INTO m VALUES(101, 's0', 'a', 'b')").unwrap();
}

const OLDER: &str = r#"
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("CREATE VIRTUAL TABLE ft USING fts5(a, b, tokenize='porter porter ascii')")
for i in range(40):
    db.execute("INSERT INTO ft VALUES(?, ?)", ("generalizations oscillators happinesses %d" % i, i / 7.0))
db.commit()
"#;

#[test]
fn the_rules_of_an_older_release_are_no_damage_and_stay() {
    let folder = tempfile::tempdir().unwrap();
    let case = Case { folder };
    match Command::new("python3").args(["-c", OLDER]).arg(case.db()).output() {
        Ok(out) if out.status.success() => {}
        _ => return,
    }
    let blocks = |path: &Path| -> Vec<(i64, Vec<u8>)> {
        let con = Connection::open(path).unwrap();
        let mut all = con.prepare("SELECT id, block FROM ft_data ORDER BY id").unwrap();
        all.query_map([], |r| Ok((r.get(0)?, r.get(1)?))).unwrap().map(Result::unwrap).collect()
    };
    let terms = |path: &Path| -> Vec<String> {
        let con = Connection::open(path).unwrap();
        con.execute_batch("CREATE VIRTUAL TABLE temp.v USING fts5vocab(main, ft, row)").unwrap();
        let mut all = con.prepare("SELECT term FROM temp.v").unwrap();
        all.query_map([], |r| r.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let (before, words) = (blocks(&case.db()), terms(&case.db()));
    assert_eq!(case.run("check").0, 0);
    assert_eq!(case.run("recover").0, 0);
    assert!(before == blocks(&case.out()));
    // A rebuild keeps the rules.
    Connection::open(case.db()).unwrap().execute_batch("DELETE FROM ft_docsize WHERE id = 3").unwrap();
    assert_eq!(case.run("check").0, 1);
    assert_eq!(case.run("recover").0, 1);
    assert_eq!(words, terms(&case.out()));
}

#[test]
fn an_external_table_with_locales_is_compared_and_rebuilt() {
    let (case, con) = made("a, b, content='t', content_rowid='id', locale=1", "UTF-8");
    case.judged(0);
    con.execute_batch("UPDATE t SET a = 'elsewhere' WHERE id < 40; INSERT INTO ft_idx SELECT max(segid) + 1, x'30', 2 FROM ft_idx")
        .unwrap();
    let copy = case.judged(1);
    let found: i64 = copy.query_row("SELECT count(*) FROM ft('elsewhere')", [], |r| r.get(0)).unwrap();
    assert_eq!(found, 13);
}

/// What befalls a contentless index, and how many rows a word finds afterwards.
#[test]
fn a_contentless_index_keeps_what_can_be_read_of_it() {
    for (arguments, damage, exit, rows) in [
        ("a, b, content=''", "DELETE FROM ft_docsize WHERE id IN (30, 33)", 1, 300),
        ("a, b, content='', contentless_delete=1", "DELETE FROM ft_docsize WHERE id IN (30, 33)", 1, 300),
        ("a, b, content=''", "DELETE FROM ft_docsize", 1, 300),
        ("a, b, content=''", "DELETE FROM ft_data WHERE id = 10", 1, 300),
        ("a, b, content='', detail=none", "DELETE FROM ft_docsize WHERE id = 30", 1, 300),
        ("a, b, content='', contentless_delete=1", "DELETE FROM ft WHERE rowid = 30; DELETE FROM ft_data WHERE id = 10", 1, 299),
        ("a, b, content=''", "DELETE FROM ft_data WHERE id = (SELECT id FROM ft_data WHERE id > 10 LIMIT 1 OFFSET 1)", 2, 300),
    ] {
        let (case, con) = made(arguments, "UTF-8");
        con.execute_batch(damage).unwrap();
        drop(con);
        assert_eq!(case.run("check").0, 2, "{arguments} {damage}");
        let (code, text) = case.run("recover");
        assert_eq!(code, exit, "{arguments} {damage}: {text}");
        let copy = sound(&case.out());
        let listed: i64 = copy.query_row("SELECT count(*) FROM ft_docsize", [], |r| r.get(0)).unwrap();
        assert_eq!(listed, rows, "{arguments} {damage}");
        drop(copy);
        std::fs::rename(case.out(), case.db()).unwrap();
        assert_eq!(case.run("check").0, 0, "{arguments} {damage}");
    }
}

#[test]
fn what_a_merge_leaves_behind_is_no_damage() {
    let (case, con) = Case::new("CREATE VIRTUAL TABLE ft USING fts5(x, content='')");
    for sql in [
        "INSERT INTO ft(ft, rank) VALUES('pgsz', 32)",
        "INSERT INTO ft(rowid, x) VALUES(1, 'bbc dab cda aad dbc cdb dcd add bac bcc ddc bad cbb cdb abc dcd abd ccd bba aac')",
        "INSERT INTO ft(rowid, x) VALUES(2, 'cdd')",
        "INSERT INTO ft(ft, rank) VALUES('merge', 1)",
        "INSERT INTO ft(ft, rank) VALUES('merge', -4)",
    ] {
        con.execute_batch(sql).unwrap();
    }
    drop(con);
    case.judged(0);
}
