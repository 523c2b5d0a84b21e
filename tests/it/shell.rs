//! What is printed for a shell is safe in it: a database whose every name, text and value would be a command if a shell ever
//! took it for one goes through the real shell of the system and the real shell of SQLite.

use std::path::Path;
use std::process::{Command, Output};

use rootpage::report::next;
use rusqlite::Connection;

/// Makes a file `PWN…` wherever it is executed.
const SENTINELS: [&str; 7] = [
    "\n.shell touch PWN1\n",
    ";\n.system touch PWN2\n",
    "$(touch PWN3)",
    "`touch PWN4`",
    "';touch PWN5;'",
    "\n#\n.shell touch PWN6\n/\ngo\n",
    "\r\n.once PWN7\n",
];

fn shell_of_sqlite() -> bool {
    let there = Command::new("sqlite3").arg("--version").output().is_ok_and(|o| o.status.success());
    if !there {
        eprintln!("skipped: no sqlite3 shell on this machine");
    }
    there
}

fn pwned(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned());
    names.filter(|n| n.contains("PWN") && !n.contains(".db")).collect()
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A database with a sentinel in every name, value and text, and objects that no copy can hold.
fn hostile(path: &Path, sentinel: &str) {
    let con = Connection::open(path).unwrap();
    let text = sentinel.replace('\'', "''");
    let name = quoted(&format!("n{sentinel}"));
    con.execute_batch(&format!(
        "CREATE TABLE {name}(a, {name} TEXT, b);
         CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT);
         INSERT INTO {name} VALUES('{text}', 'x{text}y', CAST('{text}' AS BLOB));
         INSERT INTO t VALUES(1, '{text}'), (2, 'plain'), (3, 'a' || char(13, 10) || 'b' || char(13)), (4, char(10) || '.quit' || char(10));
         CREATE VIEW v1 AS SELECT '{text}' AS x, b FROM t -- comment
         ;
         CREATE TRIGGER g1 AFTER INSERT ON t BEGIN UPDATE t SET b = b || '{text}' WHERE a = new.a; END;"
    ))
    .unwrap();
    // What SQLite would not accept goes in behind its back.
    let rows = [
        ("trigger", "g2", "t", format!("CREATE TRIGGER g2 AFTER INSERT ON t BEGIN SELECT 1; END;{sentinel}")),
        ("trigger", "g3", "t", format!("CREATE TRIGGER g3 AFTER INSERT ON t BEGIN INSERT INTO nosuch VALUES('{text}'); END{sentinel}")),
        ("view", "v2", "v2", format!("CREATE VIEW v2 AS SELECT a FROM t wherre;{sentinel}select 1")),
        ("view", "v3", "v3", format!("CREATE VIEW v3 AS SELECT nosuch('{text}') FROM nosuch{sentinel}")),
        ("trigger", "g4", "t", format!("CREATE TRIGGER g4 AFTER INSERT ON t BEGIN SELECT 'open{sentinel}")),
    ];
    con.execute_batch("PRAGMA writable_schema=ON").unwrap();
    for (kind, name, table, sql) in rows {
        con.execute("INSERT INTO sqlite_schema VALUES(?, ?, ?, 0, ?)", (kind, name, table, sql)).unwrap();
    }
}

fn in_shell(folder: &Path, command: &str) -> Output {
    let program = Path::new(env!("CARGO_BIN_EXE_rootpage")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    Command::new("bash").args(["-c", command]).current_dir(folder).env("PATH", path).output().unwrap()
}

fn rootpage(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rootpage")).args(args).current_dir(folder).output().unwrap()
}

fn values(path: &Path, table: &str) -> Vec<Vec<rusqlite::types::Value>> {
    let con = Connection::open(path).unwrap();
    let mut query = con.prepare(&format!("SELECT * FROM {table}")).unwrap();
    let columns = query.column_count();
    query.query_map([], |r| (0..columns).map(|i| r.get(i)).collect()).unwrap().map(Result::unwrap).collect()
}

#[test]
fn the_finish_script_runs_nothing_but_its_own_statements() {
    if !shell_of_sqlite() {
        return;
    }
    for (i, sentinel) in SENTINELS.iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        hostile(&folder.join("in.db"), sentinel);
        let done = rootpage(folder, &["recover", "in.db", "-o", "out.db"]);
        assert!(matches!(done.status.code(), Some(0..=2)), "{i}: {}", String::from_utf8_lossy(&done.stderr));
        let script = std::fs::read_to_string(folder.join("out.db.finish.sql")).unwrap();
        for line in script.lines() {
            let sound = ["-- ", "CREATE ", "INSERT INTO ", "ALTER TABLE "].iter().any(|begin| line.starts_with(begin));
            assert!(sound, "{i}: {line:?}");
        }
        in_shell(folder, "sqlite3 out.db < out.db.finish.sql");
        assert_eq!(pwned(folder), Vec::<String>::new(), "{i}: {script}");
        // What could not stand in the copy for its tail alone is there now, with the value that its text had.
        let con = Connection::open(folder.join("out.db")).unwrap();
        let ok: String = con.query_row("PRAGMA integrity_check", [], |r| r.get(0)).unwrap();
        assert_eq!(ok, "ok", "{i}");
        con.execute_batch("DROP TRIGGER IF EXISTS g3; INSERT INTO t VALUES(9, 'new ')").unwrap();
        let now: String = con.query_row("SELECT b FROM t WHERE a = 9", [], |r| r.get(0)).unwrap();
        assert_eq!(now, format!("new {sentinel}"), "{i}: the trigger that is whole works as before");
    }
}

#[test]
fn rows_as_sql_come_back_through_the_shell_value_by_value() {
    if !shell_of_sqlite() {
        return;
    }
    for (i, sentinel) in SENTINELS.iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        hostile(&folder.join("in.db"), sentinel);
        let made = in_shell(folder, "rootpage rows in.db --format sql | sqlite3 out.db");
        assert_eq!(String::from_utf8_lossy(&made.stderr), "", "{i}");
        assert_eq!(pwned(folder), Vec::<String>::new(), "{i}");
        // The schema of the evidence does not load in SQLite: the values are compared with those that went in.
        let text = |s: &str| rusqlite::types::Value::Text(s.to_owned());
        let number = rusqlite::types::Value::Integer;
        assert_eq!(
            values(&folder.join("out.db"), "t"),
            [
                vec![number(1), text(sentinel)],
                vec![number(2), text("plain")],
                vec![number(3), text("a\r\nb\r")],
                vec![number(4), text("\n.quit\n")]
            ],
            "{i}"
        );
        // A CR before a LF in a name does not reach SQLite through its shell.
        let name = quoted(&format!("n{}", sentinel.replace("\r\n", "\n")));
        let blob = rusqlite::types::Value::Blob(sentinel.as_bytes().to_vec());
        assert_eq!(values(&folder.join("out.db"), &name), [vec![text(sentinel), text(&format!("x{sentinel}y")), blob]], "{i}");
    }
}

#[test]
fn printed_commands_reach_the_files_that_they_mean() {
    if !shell_of_sqlite() {
        return;
    }
    for name in [
        "-v.db",
        "a b.db",
        "it's.db",
        "$(touch PWN8).db",
        "line\nbreak.db",
        ":memory:",
        "file:x.db?mode=memory",
        "ü \u{1b}[31m.db",
        "--help",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        hostile(&folder.join(name), SENTINELS[1]);
        let check = rootpage(folder, &["check", "--json", "--", name]);
        let report: serde_json::Value = serde_json::from_slice(&check.stdout).unwrap();
        assert_eq!(report["inputs"][0]["path"], name);
        // The steps of `check` as the terminal prints them, run one after the other; then those of `recover`.
        let mut inputs = rootpage::verbs::Inputs::default();
        inputs.db = folder.join(name);
        let here = |command: &str| command.replace(&format!("{}/", folder.display()), "");
        let ctx = rootpage::ctx::Ctx::default();
        let report = rootpage::verbs::check(&inputs, &rootpage::verbs::Options::default(), &ctx).unwrap();
        let mut relative = report.clone();
        for input in &mut relative.inputs {
            input.path = here(&input.path);
        }
        let commands: Vec<String> = next::steps(&relative).into_iter().flat_map(|s| s.commands).collect();
        assert!(!commands.is_empty(), "{name:?}");
        for command in &commands {
            let done = in_shell(folder, command);
            assert!(matches!(done.status.code(), Some(0..=2)), "{command}: {}", String::from_utf8_lossy(&done.stderr));
        }
        assert!(folder.join(format!("{name}.recovered")).exists(), "{name:?}: {commands:?}");
        let report = std::fs::read(folder.join(format!("{name}.recovered.report.json"))).unwrap();
        let report: rootpage::report::Report = serde_json::from_slice(&report).unwrap();
        for command in next::steps(&report).into_iter().flat_map(|s| s.commands) {
            let done = in_shell(folder, &command);
            // The finish script has statements that SQLite refuses, and says so.
            assert!(done.status.success() || command.contains(".finish.sql"), "{command}: {}", String::from_utf8_lossy(&done.stderr));
        }
        assert!(folder.join(format!("{name}.damaged")).exists(), "{name:?}");
        let ok: String = Connection::open(folder.join(name)).unwrap().query_row("PRAGMA integrity_check", [], |r| r.get(0)).unwrap();
        assert_eq!(ok, "ok");
        assert_eq!(pwned(folder).iter().filter(|n| **n != name && !n.contains(name)).count(), 0, "{name:?}");
    }
}

#[test]
fn functions_that_the_evidence_names_are_not_called() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let con = Connection::open(folder.join("in.db")).unwrap();
    con.execute_batch(
        "CREATE VIRTUAL TABLE t USING fts4(a, compress=lower, uncompress=upper);
         INSERT INTO t(a) VALUES('./ev.so'), ('other');
         UPDATE t_segdir SET root = x'00ff';",
    )
    .unwrap();
    drop(con);
    let done = rootpage(folder, &["recover", "in.db", "-o", "out.db"]);
    assert!(matches!(done.status.code(), Some(0..=2)), "{}", String::from_utf8_lossy(&done.stderr));
    let script = std::fs::read_to_string(folder.join("out.db.finish.sql")).unwrap();
    assert!(script.contains("compress=lower"), "{script}");
    for line in script.lines().filter(|l| !l.starts_with("--")) {
        assert!(!line.contains("lower") && !line.contains("upper"), "{line}");
    }
}
