//! Transfers that change a whole file and can be undone: what comes back is the file as it was, row for row.

use std::path::Path;
use std::process::Command;

use rusqlite::Connection;

use crate::rng::Rng;

fn make(path: &Path, page_size: u32, encoding: &str, rng: &mut Rng, lone: bool) {
    let con = Connection::open(path).unwrap();
    con.execute_batch(&format!(
        "PRAGMA page_size={page_size}; PRAGMA encoding='{encoding}';
         CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT, b BLOB); CREATE INDEX t_a ON t(a); CREATE TABLE w(k TEXT PRIMARY KEY, v) WITHOUT ROWID;"
    ))
    .unwrap();
    for i in 0..200_i64 {
        let end = if lone { *rng.pick(&["\n", "\r\n", "\r", "\n\n\r\n"]) } else { "" };
        let text = format!("row {i}{end}more{end}").repeat(1 + rng.below(9));
        let size = rng.below(300);
        let mut blob = rng.bytes(size);
        blob.retain(|&b| lone || b != b'\n');
        con.execute("INSERT INTO t(a, b) VALUES(?, ?)", (&text, &blob)).unwrap();
        con.execute("INSERT INTO w VALUES(?, ?)", (format!("{i}{end}"), i)).unwrap();
    }
}

fn rows(path: &Path) -> Vec<String> {
    let con = Connection::open(path).unwrap();
    let mut out = Vec::new();
    for sql in ["SELECT quote(id)||quote(a)||quote(b) FROM t ORDER BY id", "SELECT quote(k)||quote(v) FROM w ORDER BY k"] {
        let mut query = con.prepare(sql).unwrap();
        out.extend(query.query_map([], |r| r.get::<_, String>(0)).unwrap().map(Result::unwrap));
    }
    out
}

fn in_text_mode(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().flat_map(|&b| if b == b'\n' { vec![b'\r', b'\n'] } else { vec![b] }).collect()
}

fn run(verb: &[&str], folder: &Path) -> Option<i32> {
    Command::new(env!("CARGO_BIN_EXE_rootpage")).args(verb).current_dir(folder).output().unwrap().status.code()
}

#[test]
fn a_transfer_in_text_mode_is_undone() {
    let mut rng = Rng::new("text mode");
    for (page_size, encoding) in [(512, "UTF-8"), (1024, "UTF-16le"), (4096, "UTF-8"), (4096, "UTF-16be"), (65536, "UTF-8")] {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        make(&folder.join("whole.db"), page_size, encoding, &mut rng, true);
        let whole = std::fs::read(folder.join("whole.db")).unwrap();
        let sent = in_text_mode(&whole);
        assert!(sent.len() > whole.len());
        std::fs::write(folder.join("sent.db"), &sent).unwrap();
        assert_eq!(run(&["check", "sent.db"], folder), Some(2));
        for again in [&["recover", "sent.db", "-o", "copy.db"][..], &["recover", "sent.db", "-o", "plain.db", "--no-mmap"]] {
            assert_eq!(run(again, folder), Some(1), "{page_size} {encoding}");
        }
        for copy in ["copy.db", "plain.db"] {
            assert_eq!(rows(&folder.join(copy)), rows(&folder.join("whole.db")), "{page_size} {encoding} {copy}");
        }
        assert!(!folder.join("copy.db.salvage.db").exists());
        assert_eq!(std::fs::read(folder.join("sent.db")).unwrap(), sent, "the evidence is as it was");
    }
}

#[test]
fn a_whole_file_is_not_taken_for_one_that_was_sent_as_text() {
    let mut rng = Rng::new("whole");
    for round in 0..6 {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let path = folder.join("whole.db");
        make(&path, 512, "UTF-8", &mut rng, false);
        // Every LF that there may be has a CR before it, and the file is whole.
        let con = Connection::open(&path).unwrap();
        con.execute("INSERT INTO t(a) VALUES(?)", ["a\r\nb\r\n".repeat(1 + round)]).unwrap();
        drop(con);
        assert_eq!(run(&["check", "whole.db"], folder), Some(0), "{round}");
        let out = Command::new(env!("CARGO_BIN_EXE_rootpage")).args(["rows", "whole.db", "t"]).current_dir(folder).output().unwrap();
        assert!(String::from_utf8(out.stdout).unwrap().contains(r"a\r\nb\r\n"), "{round}");
    }
}
