//! The front end on a terminal, in a pipe and without colours. `script` gives it a terminal; where that is missing the tests
//! say so and pass.

use std::path::Path;
use std::process::Command;

use rusqlite::Connection;

/// What a command writes to a terminal of this width, and what of that goes to standard error alone.
fn on_terminal(dir: &Path, columns: u32, before: &str, args: &str) -> Option<String> {
    let command = format!("stty rows 40 cols {columns}; {before} '{}' {args}", env!("CARGO_BIN_EXE_rootpage"));
    let out = Command::new("script").args(["-qec", &command, "/dev/null"]).current_dir(dir).env("TERM", "xterm").output();
    let Ok(out) = out else {
        eprintln!("skipped: no `script` on this machine");
        return None;
    };
    Some(String::from_utf8_lossy(&out.stdout).replace("\r\n", "\n"))
}

fn piped(dir: &Path, columns: &str, args: &[&str]) -> (String, String) {
    let out = Command::new(env!("CARGO_BIN_EXE_rootpage"))
        .args(args)
        .current_dir(dir)
        .env("COLUMNS", columns)
        .env("TERM", "xterm")
        .output()
        .unwrap();
    (String::from_utf8(out.stdout).unwrap(), String::from_utf8(out.stderr).unwrap())
}

/// Without colours.
fn plain(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| c.is_ascii_alphabetic()).unwrap_or_default();
        out.push_str(&part[end..][1..]);
    }
    out
}

fn damaged() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let case = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/leaf-zero/db.sqlite");
    std::fs::copy(case, dir.path().join("in.db")).unwrap();
    Connection::open(dir.path().join("b.db")).unwrap().execute_batch("CREATE TABLE orders(id INTEGER PRIMARY KEY)").unwrap();
    dir
}

#[test]
fn a_terminal_gets_its_width_and_colours_and_a_pipe_none() {
    let dir = damaged();
    for args in ["check -q in.db", "diff -q in.db b.db", "page -q in.db 20", "explain P009"] {
        let words: Vec<&str> = args.split(' ').collect();
        for columns in [80, 160] {
            let (out, err) = piped(dir.path(), &columns.to_string(), &words);
            assert!(!out.contains('\u{1b}') && err.is_empty(), "{args}: {err}");
            let Some(shown) = on_terminal(dir.path(), columns, "", args) else { return };
            assert_eq!(plain(&shown), out, "{args} at {columns}");
            let coloured = args.starts_with("check") || args.starts_with("diff");
            assert_eq!(shown.contains("\u{1b}[1;3"), coloured, "{args}: {shown:?}");
            assert_eq!(on_terminal(dir.path(), columns, "NO_COLOR=1", args).unwrap(), out, "{args}: NO_COLOR");
            assert_eq!(on_terminal(dir.path(), columns, "TERM=dumb", args).unwrap(), out, "{args}: a dumb terminal");
        }
    }
}

#[test]
fn progress_is_for_a_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let sql = "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT); CREATE INDEX i ON t(b);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000) INSERT INTO t SELECT i, 'text of row ' || i FROM n;";
    Connection::open(dir.path().join("in.db")).unwrap().execute_batch(sql).unwrap();
    let (_, err) = piped(dir.path(), "80", &["recover", "in.db", "-o", "piped.db"]);
    assert_eq!(err, "", "no progress in a pipe");
    let Some(shown) = on_terminal(dir.path(), 120, "", "recover in.db -o shown.db >out.txt") else { return };
    for (phase, unit) in [("reading", "MiB"), ("read pages", "pages"), ("write rows", "300,000 rows"), ("checking the input", "MiB")] {
        let lines = || shown.split(['\r', '\n', '\u{1b}']).filter(|l| l.contains(phase));
        assert!(lines().any(|l| l.contains(unit)), "{phase}: {:?}", lines().collect::<Vec<_>>());
    }
    let quiet = on_terminal(dir.path(), 120, "", "recover -q in.db -o quiet.db >out.txt").unwrap();
    assert_eq!(quiet, "");
    let copies = ["piped.db", "shown.db", "quiet.db"].map(|n| std::fs::read(dir.path().join(n)).unwrap());
    assert!(copies.iter().all(|c| *c == copies[0]));
}
