//! The documents tell the truth: the table of codes is the problem table, and every transcript is what happens.
//! `UPDATE=1` writes both anew.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use rootpage::finding::{Code, Effect};

fn update() -> bool {
    std::env::var_os("UPDATE").is_some()
}

#[test]
fn the_list_of_codes_is_the_problem_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/codes.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut table = "<!-- codes -->\n| code | name | effect | what was found | what is done |\n|---|---|---|---|---|\n".to_owned();
    for code in Code::ALL {
        let p = code.problem();
        let effect = match p.effect {
            Effect::Note => "note",
            Effect::SkipItem => "skip",
            Effect::StopHere => "stop",
        };
        let found = p.sentence.replace("{got}", "*n*").replace("{rowid}", "*n*").replace("{want}", "*m*").replace('|', "\\|");
        writeln!(table, "| {} | {} | {effect} | {found} | {} |", p.id, p.name, p.action.replace('|', "\\|")).unwrap();
    }
    let (head, rest) = text.split_once("<!-- codes -->\n").expect("a place for the codes");
    let (_, tail) = rest.split_once("<!-- /codes -->").expect("the end of the codes");
    let want = format!("{head}{table}<!-- /codes -->{tail}");
    if update() {
        std::fs::write(&path, want).unwrap();
    } else {
        assert!(text == want, "docs/codes.md and src/finding/codes.rs differ: run this test with UPDATE=1");
    }
}

#[test]
fn the_index_of_the_corpus_lists_every_case() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let path = root.join("README.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut cases: Vec<_> =
        std::fs::read_dir(&root).unwrap().map(|e| e.unwrap().path()).filter(|p| p.join("case.toml").is_file()).collect();
    cases.sort();
    let mut table = "<!-- cases -->\n| case | what happened | check, recover |\n|---|---|---|\n".to_owned();
    for case in &cases {
        let recipe: toml::Table = std::fs::read_to_string(case.join("case.toml")).unwrap().parse().unwrap();
        let code = |verb: &str| recipe["expect"].get(verb).map_or_else(|| "-".to_owned(), ToString::to_string);
        let about = recipe["about"].as_str().unwrap().replace('|', "\\|");
        let name = case.file_name().unwrap().to_string_lossy();
        writeln!(table, "| [{name}]({name}/case.toml) | {about} | {}, {} |", code("check"), code("recover")).unwrap();
    }
    let (head, rest) = text.split_once("<!-- cases -->\n").expect("a place for the cases");
    let (_, tail) = rest.split_once("<!-- /cases -->").expect("the end of the cases");
    let want = format!("{head}{table}<!-- /cases -->{tail}");
    if update() {
        std::fs::write(&path, want).unwrap();
    } else {
        assert!(text == want, "corpus/README.md does not list the cases as they are: run this test with UPDATE=1");
    }
}

/// Names of fields, at any depth; the keys of maps whose keys are data are none.
fn fields(value: &serde_json::Value, out: &mut std::collections::BTreeSet<String>) {
    match value {
        serde_json::Value::Object(map) => {
            for (key, value) in map {
                out.insert(key.clone());
                if !["pages_by_role", "set_aside", "values_changed", "value"].contains(&key.as_str()) {
                    fields(value, out);
                }
            }
        }
        serde_json::Value::Array(list) => list.iter().for_each(|v| fields(v, out)),
        _ => {}
    }
}

#[test]
fn every_field_of_the_json_is_documented() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = ["docs/report.md", "RECOVERY.md"].map(|f| std::fs::read_to_string(root.join(f)).unwrap()).concat();
    let dir = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| -> serde_json::Value {
        let out = Command::new(env!("CARGO_BIN_EXE_rootpage")).args(args).current_dir(dir.path()).output().unwrap();
        serde_json::from_slice(&out.stdout).unwrap_or_else(|e| panic!("{args:?}: {e} {}", String::from_utf8_lossy(&out.stderr)))
    };
    let db = |case: &str| root.join("corpus").join(case).join("db.sqlite").display().to_string();
    let mut names = std::collections::BTreeSet::new();
    fields(&run(&["recover", &db("leaf-zero"), "-o", "out.db", "--json"]), &mut names);
    fields(&run(&["diff", &db("healthy-shop"), "out.db", "--json"]), &mut names);
    assert!(names.len() > 60, "{names:?}");
    let told = |name: &String| {
        ["`", ".", "…"].iter().any(|before| ["`", "[]", "."].iter().any(|after| text.contains(&format!("{before}{name}{after}"))))
    };
    let missing: Vec<&String> = names.iter().filter(|name| !told(name)).collect();
    assert!(missing.is_empty(), "docs/report.md and RECOVERY.md do not name {missing:?}");
}

/// Runs the `console` blocks of a document in one folder that holds `corpus/`, and returns the document with what they print.
fn transcribe(text: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus"), dir.path().join("corpus")).unwrap();
    let bin = Path::new(env!("CARGO_BIN_EXE_rootpage")).parent().unwrap();
    let path =
        std::env::join_paths(std::iter::once(bin.to_path_buf()).chain(std::env::split_paths(&std::env::var_os("PATH").unwrap()))).unwrap();
    let mut out = String::new();
    let mut inside = false;
    for line in text.lines() {
        match line {
            "```console" => inside = true,
            "```" => inside = false,
            _ if inside => {
                let Some(command) = line.strip_prefix("$ ") else { continue };
                // The machine that runs the tests may have no shell of SQLite: the library stands in for it.
                if let Some((db, sql)) = command.strip_prefix("sqlite3 ").and_then(|rest| rest.split_once(' ')) {
                    let db = rusqlite::Connection::open(dir.path().join(db)).unwrap();
                    db.execute_batch(sql.trim_matches('"')).unwrap();
                    writeln!(out, "{line}").unwrap();
                    continue;
                }
                let run = Command::new("bash")
                    .args(["-c", command])
                    .current_dir(dir.path())
                    .env("PATH", &path)
                    .env("COLUMNS", "100")
                    .env("NO_COLOR", "1")
                    .output()
                    .unwrap();
                writeln!(out, "{line}").unwrap();
                out.push_str(&String::from_utf8_lossy(&run.stdout));
                out.push_str(&String::from_utf8_lossy(&run.stderr));
                if let Some(code) = run.status.code().filter(|c| *c != 0) {
                    writeln!(out, "[exit {code}]").unwrap();
                }
                continue;
            }
            _ => {}
        }
        writeln!(out, "{line}").unwrap();
    }
    out
}

#[test]
fn transcripts_are_what_happens() {
    for name in ["README.md", "RECOVERY.md"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
        let text = std::fs::read_to_string(&path).unwrap();
        let now = transcribe(&text);
        if update() {
            std::fs::write(&path, now).unwrap();
            continue;
        }
        for (n, (was, is)) in text.lines().zip(now.lines()).enumerate() {
            assert_eq!(was, is, "{name}, line {} of the new transcript (UPDATE=1 writes it)", n + 1);
        }
        assert_eq!(text, now, "{name}");
    }
}
