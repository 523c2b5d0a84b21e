//! `--map`: what somebody who knows better says about pages counts in every layer: report, copy, salvage, rows.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rusqlite::Connection;
use serde_json::Value;

const PAGE: usize = 1024;

struct Case {
    dir: tempfile::TempDir,
    db: PathBuf,
}

impl Case {
    /// Two tables of one shape, so that nothing but a person can tell their leaves apart.
    fn new(kind: &str) -> Case {
        let dir = tempfile::tempdir().unwrap();
        let db = dir.path().join("in.db");
        let mut sql = format!("PRAGMA page_size={PAGE};");
        for table in ["red", "blue"] {
            write!(sql, "CREATE TABLE {table}(k INTEGER PRIMARY KEY, v){kind};").unwrap();
            write!(
                sql,
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
                 INSERT INTO {table} SELECT i, '{table} value of row ' || i FROM n;"
            )
            .unwrap();
        }
        Connection::open(&db).unwrap().execute_batch(&sql).unwrap();
        Case { dir, db }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn run(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_rootpage")).args(args).current_dir(self.dir.path()).env("COLUMNS", "200").output().unwrap()
    }

    fn ok(&self, args: &[&str]) -> String {
        let out = self.run(args);
        assert!(matches!(out.status.code(), Some(0..=2)), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    }

    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.ok(args)).unwrap()
    }

    /// The map as printed, with one line put behind it.
    fn map(&self, line: &str) -> String {
        let text = self.ok(&["map", "in.db"]) + line + "\n";
        fs::write(self.path("my.map"), &text).unwrap();
        text
    }

    fn root(&self, table: &str) -> u32 {
        Connection::open(&self.db).unwrap().query_row("SELECT rootpage FROM sqlite_schema WHERE name = ?1", [table], |r| r.get(0)).unwrap()
    }
}

fn rows(db: &Path, table: &str) -> Vec<(i64, String)> {
    let db = Connection::open(db).unwrap();
    let mut statement = db.prepare(&format!("SELECT k, v FROM {table} ORDER BY k")).unwrap();
    statement.query_map([], |r| Ok((r.get(0)?, r.get(1)?))).unwrap().map(Result::unwrap).collect()
}

fn integrity(db: &Path) -> String {
    Connection::open(db).unwrap().query_row("PRAGMA integrity_check", [], |r| r.get(0)).unwrap()
}

/// Takes child `i` of an interior page out of it, cell and all: what it led to is an orphan, and no hole tells of it.
fn take_child_out(bytes: &mut [u8], root: u32, i: usize) -> u32 {
    let page = &mut bytes[(usize::try_from(root).unwrap() - 1) * PAGE..][..PAGE];
    let cells = usize::from(u16::from_be_bytes([page[3], page[4]]));
    let at = 12 + 2 * i;
    let cell = usize::from(u16::from_be_bytes([page[at], page[at + 1]]));
    let child = u32::from_be_bytes(page[cell..cell + 4].try_into().unwrap());
    page.copy_within(at + 2..12 + 2 * cells, at);
    page[3..5].copy_from_slice(&u16::try_from(cells - 1).unwrap().to_be_bytes());
    child
}

#[test]
fn a_map_that_is_given_back_unchanged_changes_nothing() {
    for kind in ["", " WITHOUT ROWID"] {
        let case = Case::new(kind);
        case.map("# a remark");
        let mut plain = case.json(&["recover", "in.db", "-o", "plain.db", "--json"]);
        let mut mapped = case.json(&["recover", "in.db", "-o", "mapped.db", "--json", "--map", "my.map"]);
        assert_eq!(fs::read(case.path("plain.db")).unwrap(), fs::read(case.path("mapped.db")).unwrap());
        assert_eq!(mapped["overruled"], Value::Array(vec![]));
        assert_eq!(mapped["inputs"].as_array().unwrap().last().unwrap()["role"], "map");
        for report in [&mut plain, &mut mapped] {
            for field in ["inputs", "command", "evidence_options", "recovery"] {
                report.as_object_mut().unwrap().remove(field);
            }
        }
        assert_eq!(plain, mapped);
    }
}

#[test]
fn a_stale_leaf_is_dropped_from_its_table() {
    for (word, kept) in [("orphan", true), ("free", false), ("unreadable", false)] {
        let case = Case::new("");
        let all = rows(&case.db, "red");
        let map = case.ok(&["map", "in.db"]);
        let red = case.root("red");
        let run = map.lines().find(|l| l.contains("table-leaf") && l.contains(&format!("root:{red}("))).unwrap();
        let leaf = run.split(' ').next().unwrap().parse::<u32>().unwrap() + 1;
        // The role alone is edited, as a person does it; the owner is left as it stands.
        case.map(&format!("{leaf} 1 {word} root:{red}(red) main"));
        let report = case.json(&["recover", "in.db", "-o", "out.db", "--json", "--map", "my.map"]);
        assert_eq!(integrity(&case.path("out.db")), "ok");
        let left = rows(&case.path("out.db"), "red");
        let gone: Vec<&(i64, String)> = all.iter().filter(|r| !left.contains(r)).collect();
        assert!(gone.len() > 10 && left.len() + gone.len() == 400, "{word}: {} rows are left", left.len());
        assert_eq!(rows(&case.path("out.db"), "blue").len(), 400);
        let overruled = &report["overruled"][0];
        assert_eq!((overruled["first"].as_u64(), overruled["count"].as_u64()), (Some(u64::from(leaf)), Some(1)));
        assert_eq!((overruled["was_role"].as_str(), overruled["was_owner"].as_str()), (Some("table-leaf"), Some("table red")));
        let lost = &report["recovery"]["tables"][0]["lost"][0];
        assert_eq!(lost["rowids"][0], serde_json::json!([gone[0].0, gone.last().unwrap().0]), "{report:#}");
        // An orphan's rows are kept in the salvage database, exactly those.
        let salvage = case.path("out.db.salvage.db");
        assert_eq!(salvage.exists(), kept, "{word}");
        if kept {
            let db = Connection::open(&salvage).unwrap();
            let sql = format!("SELECT count(*) FROM lost_and_found_{leaf}");
            let n: i64 = db.query_row(&sql, [], |r| r.get(0)).unwrap();
            assert_eq!(usize::try_from(n).unwrap(), gone.len());
        }
        let html = fs::read_to_string(case.path("out.db.report.html")).unwrap();
        assert!(html.contains("Pages that the given map overrules") && html.contains("not table-leaf of table red"));
        let text = case.ok(&["check", "in.db", "--map", "my.map"]);
        assert!(text.contains("not table-leaf of table red") && text.contains("X008 page-overruled"), "{text}");
        assert!(text.contains("rootpage recover in.db --map my.map -o"), "the next command keeps the map: {text}");
        assert_eq!(case.ok(&["rows", "in.db", "red", "--map", "my.map"]).lines().count(), left.len());
        let map_now = case.ok(&["map", "in.db", "--map", "my.map"]);
        let role = if word == "free" { "freelist-leaf" } else { word };
        // What the map says of a page is no damage to its bytes.
        let mark = if word == "unreadable" { "!" } else { "" };
        assert!(map_now.lines().any(|l| l.starts_with(&format!("{leaf} 1 {role}{mark} - "))), "{word}: {map_now}");
    }
}

#[test]
fn a_page_is_given_to_a_table() {
    for kind in ["", " WITHOUT ROWID"] {
        let case = Case::new(kind);
        let all = rows(&case.db, "red");
        let red = case.root("red");
        let mut bytes = fs::read(&case.db).unwrap();
        let child = take_child_out(&mut bytes, red, 2);
        fs::write(&case.db, bytes).unwrap();
        let without = case.json(&["recover", "in.db", "-o", "without.db", "--json"]);
        assert!(rows(&case.path("without.db"), "red").len() < 400, "{without:#}");
        let role = if kind.is_empty() { "table-leaf" } else { "index-leaf" };
        case.map(&format!("{child} 1 {role} root:{red} main"));
        case.ok(&["recover", "in.db", "-o", "out.db", "--map", "my.map"]);
        assert_eq!(integrity(&case.path("out.db")), "ok");
        let back = rows(&case.path("out.db"), "red");
        let expected = if kind.is_empty() {
            all
        } else {
            // The cell that was taken out of an interior page of this kind of tree held a row itself.
            let cell: Vec<_> = all.iter().filter(|r| !back.contains(r)).cloned().collect();
            assert_eq!(cell.len(), 1);
            all.into_iter().filter(|r| !cell.contains(r)).collect()
        };
        assert_eq!(back, expected);
        assert_eq!(rows(&case.path("out.db"), "blue").len(), 400);
        let json = case.json(&["check", "in.db", "--json", "--map", "my.map"]);
        assert_eq!(json["overruled"][0]["owner"], "table red");
        assert_eq!(json["overruled"][0]["was_role"], "orphan");
    }
}

#[test]
fn a_page_of_another_table_changes_hands() {
    let case = Case::new("");
    let (red, blue) = (case.root("red"), case.root("blue"));
    let map = case.ok(&["map", "in.db"]);
    let last = map.lines().rfind(|l| l.contains("table-leaf") && l.contains(&format!("root:{blue}("))).unwrap();
    let mut fields = last.split(' ');
    let (first, count): (u32, u32) = (fields.next().unwrap().parse().unwrap(), fields.next().unwrap().parse().unwrap());
    let page = first + count - 1;
    case.map(&format!("{page} 1 table-leaf root:{red} main"));
    let report = case.json(&["recover", "in.db", "-o", "out.db", "--json", "--map", "my.map"]);
    assert_eq!(integrity(&case.path("out.db")), "ok");
    let blue_rows = rows(&case.path("out.db"), "blue");
    // Its rowids are those of rows that red has: each rowid stands once, and nothing vanishes.
    let tables = report["recovery"]["tables"].as_array().unwrap();
    let sum = |field: &str| tables.iter().map(|t| t[field].as_u64().unwrap()).sum::<u64>();
    assert_eq!(sum("rows_found"), 800, "{report:#}");
    assert!(blue_rows.len() < 400 && rows(&case.path("out.db"), "red").len() == 400);
}

#[test]
fn a_line_that_cannot_be_followed_is_named() {
    let case = Case::new("");
    let red = case.root("red");
    let lines = case.ok(&["map", "in.db"]).lines().count() + 1;
    for (line, why) in [
        ("3 one table-leaf - main".to_owned(), "\"one\" is no number"),
        ("0 1 orphan - main".to_owned(), "there is no page 0"),
        ("3 1 orphan".to_owned(), "3 fields"),
        ("3 1 orphan nobody main".to_owned(), "\"nobody\" is none"),
        ("3 1 leaf root:2 main".to_owned(), "no role"),
        ("900 1 orphan - main".to_owned(), "not in the database"),
        ("4294967295 1 orphan - main".to_owned(), "not in the database"),
        ("5 1 table-leaf root:77 main".to_owned(), "no object has root page 77"),
        ("5 1 table-leaf object:77 main".to_owned(), "number 77"),
        (format!("{red} 1 table-leaf root:{red} main"), "is a table-interior"),
        ("5 1 index-leaf root:2 main".to_owned(), "index-leaf"),
        ("5 1 table-leaf - main".to_owned(), "needs an owner"),
        ("5 1 overflow root:2 main".to_owned(), "by hand"),
        ("5 1 pointer-map - main".to_owned(), "by hand"),
    ] {
        case.map(&line);
        for args in [vec!["check", "in.db"], vec!["rows", "in.db", "red"], vec!["recover", "in.db", "-o", "never.db"]] {
            let out = case.run(&[args.clone(), vec!["--map", "my.map"]].concat());
            let told = String::from_utf8(out.stderr).unwrap();
            assert_eq!(out.status.code(), Some(64), "{args:?} {line}: {told}");
            assert!(told.contains(&format!("my.map: line {lines}:")) && told.contains(why), "{line}: {told}");
            assert_eq!(told.lines().count(), 1, "{told}");
        }
    }
    fs::write(case.path("my.map"), b"# rootpage page map 1\n# fine\n3 1 \xff").unwrap();
    let out = case.run(&["check", "in.db", "--map", "my.map"]);
    assert!(String::from_utf8(out.stderr).unwrap().contains("line 3: not UTF-8"));
    assert_eq!(case.run(&["check", "in.db", "--map", "in.db"]).status.code(), Some(64));
    assert_eq!(case.run(&["check", "in.db", "--map", "none"]).status.code(), Some(74));
    assert!(!case.path("never.db").exists());
}
