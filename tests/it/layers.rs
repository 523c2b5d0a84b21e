//! The shape of the source: data flows one way through the layers, files stay readable in one sitting, and the product
//! does not link the library whose damage it judges.
//!
//! The table below is the one of the crate documentation. A module may name what its row allows, and itself.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

const BASE: &[&str] = &["ids", "bytes", "finding", "error", "ctx"];

/// Module, and the modules above the base layer that it may import.
const LAYERS: &[(&str, &[&str])] = &[
    ("ids", &[]),
    ("bytes", &[]),
    ("finding", &[]),
    ("error", &[]),
    ("ctx", &[]),
    ("format", &[]),
    ("evidence", &["format"]),
    ("tree", &["format", "evidence"]),
    ("expr", &["format"]),
    ("schema", &["format", "evidence", "tree", "expr"]),
    ("sort", &["format", "expr", "schema"]),
    ("survey", &["format", "evidence", "tree", "expr", "schema"]),
    ("fts5", &["format", "expr", "schema", "sort"]),
    ("rtree", &["expr", "schema"]),
    // What a row is called in reports, and what was written, are still named across these two rooms.
    ("recover", &["format", "evidence", "tree", "expr", "schema", "sort", "survey", "fts5", "rtree", "write", "report"]),
    ("write", &["format", "evidence", "tree", "expr", "schema", "sort", "survey", "fts5", "rtree", "recover", "report", "verbs"]),
    ("carve", &["format", "evidence", "tree", "expr", "schema", "sort", "survey", "fts5", "recover", "write", "report"]),
    // What a commit did is told in the words of the report.
    ("history", &["format", "evidence", "tree", "schema", "survey", "report"]),
    ("report", &["format", "expr", "schema", "survey", "recover"]),
    (
        "verbs",
        &[
            "format", "evidence", "tree", "expr", "schema", "sort", "survey", "fts5", "recover", "write", "report", "carve", "scan",
            "history",
        ],
    ),
    // The face of the library.
    ("database", &["format", "report", "verbs"]),
    ("scan", &["format"]),
    ("host", &["format", "evidence", "write", "report", "verbs"]),
    ("triage", &["format", "evidence", "survey", "recover", "report", "verbs", "host"]),
    ("hermes", &["format", "evidence", "tree", "expr", "schema", "sort", "survey", "fts5", "recover", "write", "report", "verbs"]),
];

/// Files that may import less than their folder: the readers of SQL know values and nothing of pages or trees.
const NARROWER: &[(&str, &[&str])] = &[("schema/ddl", &["format", "expr"])];

/// Lines of a file; tables (first lines say "generated") and the problem table may be longer.
const LINES: usize = 600;
const LONG_BY_NATURE: &[&str] = &["src/finding/codes.rs"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn rust_files(dir: &Path, out: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if path.file_name().is_some_and(|n| n != "target") {
                rust_files(&path, out);
            }
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
    out.sort();
}

/// The source with comments, strings and character literals blanked out; line breaks stay.
fn code_only(text: &str) -> String {
    let b = text.as_bytes();
    let mut out = Vec::with_capacity(b.len());
    let mut i = 0;
    let blank_to = |out: &mut Vec<u8>, from: usize, to: usize| {
        out.extend(b[from..to].iter().map(|&c| if c == b'\n' { b'\n' } else { b' ' }));
    };
    let find = |from: usize, what: &str| text.as_bytes()[from..].windows(what.len()).position(|w| w == what.as_bytes()).map(|p| from + p);
    while i < b.len() {
        let end = if b[i..].starts_with(b"//") {
            find(i, "\n").unwrap_or(b.len())
        } else if b[i..].starts_with(b"/*") {
            let mut depth = 0;
            let mut j = i;
            loop {
                if b[j..].starts_with(b"/*") {
                    depth += 1;
                    j += 2;
                } else if b[j..].starts_with(b"*/") {
                    depth -= 1;
                    j += 2;
                } else {
                    j += 1;
                }
                if depth == 0 || j >= b.len() {
                    break j.min(b.len());
                }
            }
        } else if b[i] == b'r' && (b[i..].starts_with(b"r\"") || b[i..].starts_with(b"r#\"") || b[i..].starts_with(b"r##\"")) {
            let hashes = b[i + 1..].iter().take_while(|&&c| c == b'#').count();
            let close = format!("\"{}", "#".repeat(hashes));
            find(i + 2 + hashes, &close).map_or(b.len(), |p| p + close.len())
        } else if b[i] == b'"' {
            let mut j = i + 1;
            while j < b.len() && b[j] != b'"' {
                j += if b[j] == b'\\' { 2 } else { 1 };
            }
            (j + 1).min(b.len())
        } else if b[i] == b'\'' {
            // A character literal closes within a few bytes; a lifetime does not.
            let close = if b.get(i + 1) == Some(&b'\\') { find(i + 3, "'") } else { find(i + 1, "'") };
            match close {
                Some(p)
                    if p > i + 1 && p <= i + 12 && (b[i + 1] == b'\\' || text.get(i + 1..p).is_some_and(|s| s.chars().count() == 1)) =>
                {
                    p + 1
                }
                _ => {
                    out.push(b[i]);
                    i += 1;
                    continue;
                }
            }
        } else {
            out.push(b[i]);
            i += 1;
            continue;
        };
        blank_to(&mut out, i, end);
        i = end;
    }
    String::from_utf8(out).unwrap()
}

/// First segments of a use tree `{a::b, c, super::d}` or of a plain path.
fn heads(after: &str) -> Vec<String> {
    let after = after.trim_start();
    if let Some(inner) = after.strip_prefix('{') {
        let mut depth = 0;
        let mut start = 0;
        let mut out = Vec::new();
        for (at, c) in inner.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => {
                    out.extend(heads(&inner[start..at]));
                    break;
                }
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    out.extend(heads(&inner[start..at]));
                    start = at + 1;
                }
                _ => {}
            }
        }
        return out;
    }
    let word: String = after.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    if word.is_empty() { vec![] } else { vec![word] }
}

/// Every top-level module that a file names through `crate::` or `super::`, with its line.
fn imports(module: &[String], text: &str) -> Vec<(usize, String)> {
    let code = code_only(text);
    let mut out = Vec::new();
    let mut inline: Vec<usize> = Vec::new();
    let mut depth = 0_usize;
    for (number, line) in code.lines().enumerate() {
        // Blocks `mod name {` add a level to `super`.
        let opens_mod = line.trim_start().trim_start_matches("pub ").starts_with("mod ") && line.contains('{');
        if opens_mod {
            inline.push(depth);
        }
        let rest_of_file = || code.lines().skip(number + 1).take(40).collect::<Vec<_>>().join("\n");
        for (word, ups) in [("crate::", None), ("super::", Some(1))] {
            let mut from = 0;
            while let Some(p) = line[from..].find(word) {
                let at = from + p;
                from = at + word.len();
                let before = line[..at].chars().next_back();
                if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') || (before == Some('$')) {
                    continue;
                }
                let mut after = format!("{}\n{}", &line[from..], rest_of_file());
                let mut levels = ups;
                while let (Some(n), Some(rest)) = (levels, after.strip_prefix("super::")) {
                    levels = Some(n + 1);
                    after = rest.to_owned();
                }
                let depth_here = module.len() + inline.len();
                match levels {
                    None => out.extend(heads(&after).into_iter().map(|h| (number + 1, h))),
                    Some(n) if n >= depth_here => out.extend(heads(&after).into_iter().map(|h| (number + 1, h))),
                    Some(_) => {}
                }
            }
        }
        for c in line.chars() {
            match c {
                '{' => depth += 1,
                '}' => {
                    depth = depth.saturating_sub(1);
                    if inline.last() == Some(&depth) {
                        inline.pop();
                    }
                }
                _ => {}
            }
        }
    }
    out
}

fn module_of(relative: &Path) -> Vec<String> {
    let mut parts: Vec<String> = relative.with_extension("").iter().map(|p| p.to_string_lossy().into_owned()).collect();
    if parts.last().is_some_and(|p| p == "mod") {
        parts.pop();
    }
    parts
}

#[test]
fn no_module_imports_upward() {
    let src = root().join("src");
    let mut files = Vec::new();
    rust_files(&src, &mut files);
    assert!(files.len() > 5, "no source found below {}", src.display());
    let mut bad = String::new();
    for file in files {
        let relative = file.strip_prefix(&src).unwrap();
        let module = module_of(relative);
        let own = module[0].as_str();
        if matches!(own, "lib" | "main" | "cli") {
            continue;
        }
        let Some((_, folder_allows)) = LAYERS.iter().find(|(name, _)| *name == own) else {
            let _ = writeln!(
                bad,
                "src/{}: module `{own}` is in no layer; give it a row in LAYERS and in the crate documentation",
                relative.display()
            );
            continue;
        };
        let path = module.join("/");
        let narrower = NARROWER.iter().find(|(prefix, _)| path.starts_with(prefix)).map(|(_, allows)| *allows);
        let text = std::fs::read_to_string(&file).unwrap();
        for (line, named) in imports(&module, &text) {
            let known = LAYERS.iter().any(|(name, _)| *name == named) || named == "cli";
            let allowed = named == own
                || (BASE.contains(&named.as_str()) && !BASE.contains(&own))
                || narrower.unwrap_or(folder_allows).contains(&named.as_str());
            // Within the base layer everything may see everything: it is one layer.
            let within_base = BASE.contains(&own) && BASE.contains(&named.as_str());
            if known && !allowed && !within_base {
                let _ = writeln!(bad, "src/{}:{line}: `{own}` imports `{named}`, which lies above it or beside it", relative.display());
            }
        }
    }
    assert!(bad.is_empty(), "imports against the layers:\n{bad}");
}

/// The front end decides nothing about damage: it may only use what the library makes public, so it sits in the binary.
#[test]
fn the_front_end_is_no_part_of_the_library() {
    let lib = code_only(&std::fs::read_to_string(root().join("src/lib.rs")).unwrap());
    assert!(!lib.contains("mod cli"), "src/lib.rs declares `cli`: the front end belongs to the binary");
}

#[test]
fn files_can_be_read_in_one_sitting() {
    let mut files = Vec::new();
    for dir in ["src", "tools", "tests"] {
        rust_files(&root().join(dir), &mut files);
    }
    let mut bad = String::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let relative = file.strip_prefix(root()).unwrap().to_string_lossy().replace('\\', "/");
        let table = text.lines().take(3).any(|l| l.starts_with("//") && l.to_lowercase().contains("generated"));
        let lines = text.lines().count();
        if lines > LINES && !table && !LONG_BY_NATURE.contains(&relative.as_str()) {
            let _ = writeln!(bad, "{relative}: {lines} lines, at most {LINES}");
        }
    }
    assert!(bad.is_empty(), "too long for one sitting; split by a noun of the field:\n{bad}");
}

#[test]
fn the_product_does_not_link_sqlite() {
    let out = Command::new(env!("CARGO"))
        .args(["tree", "-e", "normal", "-p", "rootpage", "--prefix", "none", "--locked", "--offline"])
        .current_dir(root())
        .output()
        .expect("cargo tree runs");
    assert!(out.status.success(), "cargo tree: {}", String::from_utf8_lossy(&out.stderr));
    let tree = String::from_utf8_lossy(&out.stdout);
    assert!(tree.contains("byteorder"), "this is not the tree of the product:\n{tree}");
    for name in ["libsqlite3-sys", "rusqlite", "sqlite3-src"] {
        assert!(!tree.contains(name), "the product depends on {name}:\n{tree}");
    }
}

#[test]
fn the_reader_of_imports_sees_what_the_compiler_sees() {
    let file = "use crate::{ids::PageNo, format::{self, Value}};\nuse super::tree;\n// crate::verbs\nlet s = \"crate::cli\";\nuse super::super::report;\nmod tests {\n use super::walk;\n use super::super::super::write;\n}\n";
    let module = ["survey".to_owned(), "fit".to_owned()];
    let seen: Vec<String> = imports(&module, file).into_iter().map(|(_, name)| name).collect();
    assert_eq!(seen, ["ids", "format", "report", "write"]);
}

/// Folders whose files still import one another in a circle; each goes when the owner of the room is done.
const CIRCLES: &[&str] = &[
    "evidence",
    "expr",
    "expr/functions",
    "fts5/check",
    "fts5/rebuild",
    "fts5/tokenizer",
    "host",
    "recover/search_index",
    "recover/select",
    "report",
    "schema",
    "tree",
    "verbs",
    "verbs/restore",
    "write/copy",
];

/// Every path `crate::…`, `super::…` or `self::…` of a file as segments from the root of the crate, with its line.
fn paths(module: &[String], is_mod: bool, code: &str) -> Vec<(usize, Vec<String>)> {
    fn tree(prefix: &[String], after: &str, out: &mut Vec<Vec<String>>) -> usize {
        let mut at = prefix.to_vec();
        let mut i = 0;
        loop {
            i += after[i..].len() - after[i..].trim_start().len();
            if after[i..].starts_with('{') {
                i += 1;
                while !after[i..].trim_start().starts_with('}') && !after[i..].is_empty() {
                    i += tree(&at, &after[i..], out).max(1);
                    i += after[i..].len() - after[i..].trim_start_matches([',', ' ', '\n']).len();
                }
                return i + 1;
            }
            let word: String = after[i..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            i += word.len();
            if !word.is_empty() {
                at.push(word);
            }
            if !after[i..].starts_with("::") {
                out.push(at);
                return i;
            }
            i += 2;
        }
    }
    let home = if is_mod { module } else { &module[..module.len() - 1] };
    let mut out = Vec::new();
    for (number, line) in code.lines().enumerate() {
        let rest = || code.lines().skip(number + 1).take(40).collect::<Vec<_>>().join("\n");
        for word in ["crate::", "super::", "self::"] {
            for (at, _) in line.match_indices(word) {
                let before = line[..at].chars().next_back();
                if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':' || c == '$') {
                    continue;
                }
                let mut after = format!("{}\n{}", &line[at + word.len()..], rest());
                let mut from: Vec<String> = match word {
                    "crate::" => Vec::new(),
                    // `super` of `a/mod.rs` is above `a`, of `a/b.rs` it is `a`.
                    "super::" => {
                        if is_mod {
                            module[..module.len() - 1].to_vec()
                        } else {
                            home.to_vec()
                        }
                    }
                    _ => module.to_vec(),
                };
                while let Some(rest) = after.strip_prefix("super::") {
                    from.pop();
                    after = rest.to_owned();
                }
                let mut found = Vec::new();
                tree(&from, &after, &mut found);
                out.extend(found.into_iter().map(|p| (number + 1, p)));
            }
        }
    }
    out
}

/// For each name that a `mod.rs` gives on from a file below it: that file.
fn given_on(children: &[String], mod_code: &str) -> Vec<(String, String)> {
    let mut out = Vec::new();
    for statement in mod_code.split(';') {
        let statement = statement.trim_start();
        let Some(at) = statement.find("use ").filter(|_| statement.starts_with("pub")) else { continue };
        let tail = statement[at + 4..].trim_start_matches("self::");
        if let Some(child) = children.iter().find(|c| tail.starts_with(&format!("{c}::"))) {
            let words = tail[child.len()..].split(|c: char| !c.is_alphanumeric() && c != '_').filter(|w| !w.is_empty());
            out.extend(words.map(|w| (w.to_owned(), child.clone())));
        }
    }
    out
}

/// A circle in a graph of imports, if there is one.
fn circle(edges: &std::collections::BTreeMap<String, std::collections::BTreeSet<String>>) -> Option<Vec<String>> {
    for start in edges.keys() {
        // The shortest way back to where it begins.
        let mut queue = std::collections::VecDeque::from([vec![start.clone()]]);
        let mut seen = std::collections::BTreeSet::new();
        while let Some(way) = queue.pop_front() {
            for next in edges.get(way.last().unwrap()).into_iter().flatten() {
                if next == start {
                    return Some(way);
                }
                if seen.insert(next.clone()) {
                    queue.push_back(way.iter().chain([next]).cloned().collect());
                }
            }
        }
    }
    None
}

/// What each file (or folder) of a folder imports from its neighbours; the folder's own `mod.rs` is one of them.
fn neighbours(src: &Path, folder: &[String]) -> std::collections::BTreeMap<String, std::collections::BTreeSet<String>> {
    let dir = folder.iter().fold(src.to_path_buf(), |d, p| d.join(p));
    let source = |p: &Path| code_only(&std::fs::read_to_string(p).unwrap()).split("#[cfg(test)]").next().unwrap().to_owned();
    let mut files = Vec::new();
    rust_files(&dir, &mut files);
    let mut children: Vec<String> =
        files.iter().map(|f| module_of(f.strip_prefix(src).unwrap())).filter_map(|m| m.get(folder.len()).cloned()).collect();
    children.dedup();
    let mod_code = source(&dir.join("mod.rs"));
    let given = given_on(&children, &mod_code);
    let mut edges: std::collections::BTreeMap<String, std::collections::BTreeSet<String>> = Default::default();
    for file in &files {
        let module = module_of(file.strip_prefix(src).unwrap());
        let own = module.get(folder.len()).cloned().unwrap_or_else(|| "mod".to_owned());
        let is_mod = file.ends_with("mod.rs");
        for (_, path) in paths(&module, is_mod, &source(file)) {
            let Some(next) = path.strip_prefix(folder).and_then(|p| p.first()) else { continue };
            let to = if children.contains(next) {
                next.clone()
            } else {
                given.iter().find(|(name, _)| name == next).map_or_else(|| "mod".to_owned(), |(_, child)| child.clone())
            };
            if to != own && next != "self" {
                edges.entry(own.clone()).or_default().insert(to);
            }
        }
    }
    // What `mod.rs` itself calls, beside what it gives on.
    for statement in mod_code.split(';').filter(|s| !s.trim_start().starts_with("pub use") && !s.trim_start().starts_with("pub(crate) use"))
    {
        for child in &children {
            let named = statement
                .match_indices(&format!("{child}::"))
                .any(|(at, _)| !statement[..at].chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':'));
            if named {
                edges.entry("mod".to_owned()).or_default().insert(child.clone());
            }
        }
    }
    edges
}

#[test]
fn files_of_one_folder_import_in_one_direction() {
    let src = root().join("src");
    let mut files = Vec::new();
    rust_files(&src, &mut files);
    let mut bad = String::new();
    for file in files.iter().filter(|f| f.ends_with("mod.rs")) {
        let folder = module_of(file.strip_prefix(&src).unwrap());
        let name = folder.join("/");
        match (circle(&neighbours(&src, &folder)), CIRCLES.contains(&name.as_str())) {
            (Some(way), false) => {
                let _ = writeln!(bad, "src/{name}: {} -> {}", way.join(" -> "), way[0]);
            }
            (None, true) => {
                let _ = writeln!(bad, "src/{name} has no circle any more: take it off the list");
            }
            _ => {}
        }
    }
    assert!(bad.is_empty(), "circles of imports:\n{bad}");
}

#[test]
fn circles_are_seen() {
    let code = "use crate::a::{b::{c, D}, E};\nuse super::f;\nuse super::super::g::h;\n";
    let seen: Vec<String> = paths(&["a".into(), "x".into()], false, code).into_iter().map(|(_, p)| p.join("::")).collect();
    assert_eq!(seen, ["a::b::c", "a::b::D", "a::E", "a::f", "g::h"]);
    let edge = |a: &str, b: &str| (a.to_owned(), std::collections::BTreeSet::from([b.to_owned()]));
    assert_eq!(circle(&[edge("a", "b"), edge("b", "c"), edge("c", "a")].into()).unwrap().len(), 3);
    assert_eq!(circle(&[edge("a", "b"), edge("b", "c")].into()), None);
    assert_eq!(given_on(&["one".into()], "pub use one::{A, B};\nuse one::C"), [("A".into(), "one".into()), ("B".into(), "one".to_owned())]);
}
