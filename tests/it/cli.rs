//! The command line as a stranger and a script meet it: exit codes, streams, pipes, messages.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn rootpage(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rootpage")).args(args).env_remove("COLUMNS").output().unwrap()
}

fn told(out: &Output) -> String {
    String::from_utf8(out.stderr.clone()).unwrap()
}

#[test]
fn wrong_arguments_are_64_and_say_what_is_wrong() {
    for args in [
        &[][..],
        &["chek", "x"],
        &["check"],
        &["recover", "x"],
        &["check", "x", "--at", "yesterday"],
        &["check", "x", "--memory", "lots"],
        &["check", "x", "--wal", "w", "--no-wal"],
        &["check", "a", "b", "--wal", "w"],
        &["page", "x", "0"],
        &["page", "x", "many"],
        &["rows", "x", "--format", "csv"],
        &["explain", "Z999"],
        &["explain"],
    ] {
        let out = rootpage(args);
        assert_eq!(out.status.code(), Some(64), "{args:?}");
        assert!(out.stdout.is_empty(), "{args:?}");
        assert!(!out.stderr.is_empty() && !told(&out).contains("panicked"), "{args:?}: {}", told(&out));
    }
}

#[test]
fn help_is_a_result() {
    for args in [&["--help"][..], &["-h"], &["help", "recover"], &["check", "--help"], &["--version"]] {
        let out = rootpage(args);
        assert_eq!(out.status.code(), Some(0), "{args:?}");
        assert!(!out.stdout.is_empty() && out.stderr.is_empty(), "{args:?}");
    }
    let recover = String::from_utf8(rootpage(&["recover", "--help"]).stdout).unwrap();
    for word in ["Examples:", "Exit codes:", "--force", "--wal"] {
        assert!(recover.contains(word), "{word}");
    }
    for hidden in ["  completions ", "  man "] {
        assert!(!String::from_utf8(rootpage(&["--help"]).stdout).unwrap().contains(hidden));
    }
    assert!(String::from_utf8(rootpage(&["completions", "bash"]).stdout).unwrap().contains("_rootpage()"));
    assert!(String::from_utf8(rootpage(&["man"]).stdout).unwrap().contains(".TH rootpage"));
}

#[test]
fn every_code_is_explained() {
    let all = String::from_utf8(rootpage(&["explain", "--all"]).stdout).unwrap();
    assert!(all.lines().count() > 50);
    for line in all.lines() {
        let id = line.split_whitespace().next().unwrap();
        if id.ends_with('7') {
            let out = rootpage(&["explain", &id.to_lowercase()]);
            assert_eq!(out.status.code(), Some(0), "{id}");
            assert!(String::from_utf8(out.stdout).unwrap().contains("Meaning:"));
        }
    }
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_rootpage"))
        .args(["completions", "zsh"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(stderr, "");
}

fn built() -> bool {
    let dir = tempfile::tempdir().unwrap();
    !told(&rootpage(&["check", dir.path().join("missing").to_str().unwrap()])).contains("not built")
}

#[test]
fn paths_that_cannot_be_read_are_74_in_one_line() {
    if !built() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("evil\u{1b}[2J\nname");
    let out_path = dir.path().join("out");
    for path in [missing.as_path(), dir.path()] {
        for verb in ["check", "rows", "recover", "page", "map"] {
            let path = path.to_str().unwrap();
            let args: Vec<&str> = match verb {
                "recover" => vec![verb, path, "-o", out_path.to_str().unwrap()],
                "page" => vec![verb, path, "1"],
                _ => vec![verb, path],
            };
            let out = rootpage(&args);
            assert_eq!(out.status.code(), Some(74), "{args:?}: {}", told(&out));
            let told = told(&out);
            assert!(told.starts_with("rootpage: ") && told.lines().count() == 1 && !told.contains('\u{1b}'), "{told:?}");
            assert!(out.stdout.is_empty());
        }
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "litter");
}

#[test]
fn wrong_content_is_3_and_says_what_it_is() {
    if !built() {
        return;
    }
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let dir = tempfile::tempdir().unwrap();
    let out_path = dir.path().join("out");
    for case in ["not-empty", "not-zero", "not-text", "not-sql", "not-gzip", "not-lfs", "not-random"] {
        let db = corpus.join(case).join("db.sqlite");
        let db = db.to_str().unwrap();
        for args in [vec!["check", db], vec!["check", "--json", db], vec!["recover", db, "-o", out_path.to_str().unwrap()]] {
            let out = rootpage(&args);
            assert_eq!(out.status.code(), Some(3), "{args:?}: {}", told(&out));
            if args.contains(&"--json") {
                let json: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
                assert_eq!(json["verdict"]["class"], "not-a-database");
                assert_eq!(json["exit_code"], 3);
            }
        }
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "litter");
}

#[test]
fn several_paths_give_the_highest_code_and_all_answers() {
    if !built() {
        return;
    }
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let db = |case: &str| corpus.join(case).join("db.sqlite").to_str().unwrap().to_owned();
    let out = rootpage(&["check", &db("healthy-shop"), &db("leaf-zero"), &db("not-gzip")]);
    assert_eq!(out.status.code(), Some(3), "{}", told(&out));
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(text.contains("healthy-shop") && text.contains("leaf-zero"), "{text}");
    let one = rootpage(&["check", &db("healthy-shop"), "/nonexistent/x"]);
    assert_eq!(one.status.code(), Some(74));
}

#[test]
fn a_second_recovery_says_what_it_moved_and_how_to_run_again() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let db = corpus.join("leaf-zero").join("db.sqlite");
    let args = ["recover", db.to_str().unwrap(), "-o", &path("it's out"), "--no-wal"];
    assert_eq!(rootpage(&args).status.code(), Some(2));
    for stale in ["it's out-wal", "it's out.salvage.db", "it's out.finish.sql"] {
        std::fs::write(path(stale), stale).unwrap();
    }
    assert_eq!(rootpage(&args).status.code(), Some(74), "something is in the way");
    let out = rootpage(&[&args[..], &["--force"]].concat());
    assert_eq!(out.status.code(), Some(2), "{}", told(&out));
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(path("it's out.report.json")).unwrap()).unwrap();
    let html = std::fs::read_to_string(path("it's out.report.html")).unwrap();
    // Lines are broken at the blanks of names, too.
    let text = String::from_utf8(out.stdout).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    let moved = report["recovery"]["moved_aside"].as_array().unwrap();
    assert_eq!(moved.len(), 6, "copy, its WAL, two reports, the salvage database, a script that this run does not have: {moved:?}");
    for pair in moved {
        let (from, to) = (pair[0].as_str().unwrap(), pair[1].as_str().unwrap());
        assert!(std::fs::exists(to).unwrap(), "{to}");
        let file = |path: &str| path.rsplit('/').next().unwrap().to_owned();
        assert!(html.contains(&file(to).replace('\'', "&#39;")) && text.contains(&file(to)), "{to}");
        let replaced = ["it's out", "it's out.salvage.db", "it's out.report.json", "it's out.report.html"].contains(&file(from).as_str());
        assert_eq!(std::fs::exists(from).unwrap(), replaced, "{from}");
    }
    // The command in the report does the same again, in a real shell.
    let command = report["command"].as_str().unwrap();
    let bin = Path::new(env!("CARGO_BIN_EXE_rootpage")).parent().unwrap().to_str().unwrap().to_owned();
    let again = Command::new("bash").arg("-c").arg(format!("PATH='{bin}':$PATH; {command}")).output().unwrap();
    assert_eq!(again.status.code(), Some(2), "{command}: {}", told(&again));
    assert!(std::fs::exists(path("it's out.moved-aside-2")).unwrap());
}

fn corpus(case: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(case).join("db.sqlite").display().to_string()
}

#[test]
fn a_page_that_is_not_there_is_told_from_one_that_is_missing() {
    for (page, why) in [("1", "page 1 is missing: of the 39 pages"), ("40", "page 40 is not there: the database has 39 pages")] {
        let out = rootpage(&["page", &corpus("page1-missing"), page]);
        assert_eq!(out.status.code(), Some(64));
        assert!(told(&out).contains(why), "{}", told(&out));
    }
}

#[test]
fn only_a_page_whose_own_bytes_are_damaged_is_marked() {
    let out = rootpage(&["map", &corpus("leaf-zero")]);
    let map = String::from_utf8(out.stdout).unwrap();
    let marked: Vec<&str> = map.lines().filter(|l| l.contains('!')).collect();
    assert_eq!(marked, ["20 1 unreadable! root:4(orders) main"], "pages of an index that bears witness are not damaged");
    // What they are witness of is told all the same.
    let out = rootpage(&["map", "--json", &corpus("leaf-zero")]);
    let json: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let codes_of = |page: u64| {
        json["findings"].as_array().unwrap().iter().find(|f| {
            let first = f["first"].as_u64().unwrap();
            (first..first + f["count"].as_u64().unwrap()).contains(&page)
        })
    };
    assert_eq!(codes_of(20).unwrap()["codes"], serde_json::json!(["P009"]));
    assert_eq!(codes_of(18).unwrap()["codes"], serde_json::json!(["I002"]));
    assert!(codes_of(2).is_none());
}

#[test]
fn an_index_is_right_not_to_have_a_row_that_was_deleted() {
    let out = rootpage(&["check", &corpus("freelist-trunk-zero-interior-zero"), "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let codes: Vec<&str> = json["findings"].as_array().unwrap().iter().map(|f| f["code"].as_str().unwrap()).collect();
    assert!(codes.contains(&"V002") && !codes.contains(&"I001") && !codes.contains(&"I005"), "{codes:?}");
    let index = json["objects"].as_array().unwrap().iter().find(|o| o["name"] == "orders_customer").unwrap();
    assert_eq!(index["status"], "whole");
}
