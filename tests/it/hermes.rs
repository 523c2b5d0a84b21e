//! `rootpage hermes`: stores made by real SQLite under schemas of several years, damaged as in incidents, and what its verbs say
//! of them. Values are compared, not counts alone.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rusqlite::{Connection, params};
use serde_json::Value as Json;

const PAGE: usize = 4096;

fn rootpage(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rootpage")).args(args).env_remove("COLUMNS").output().unwrap()
}

fn out(args: &[&str]) -> (i32, String) {
    let done = rootpage(args);
    (done.status.code().unwrap(), String::from_utf8(done.stdout).unwrap())
}

/// How a store is laid out.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Era {
    /// 14 columns of sessions, 9 of messages, contentful search index.
    Oldest,
    /// Created as the oldest, then upgraded at once to the columns of June: physical order is not the declared one.
    Upgraded,
    /// 26 columns of messages, index over a view.
    Newest,
}

const OLD_SESSIONS: &str = "id TEXT PRIMARY KEY, source TEXT NOT NULL, user_id TEXT, model TEXT, model_config TEXT, system_prompt TEXT, parent_session_id TEXT, started_at REAL NOT NULL, ended_at REAL, end_reason TEXT, message_count INTEGER DEFAULT 0, tool_call_count INTEGER DEFAULT 0, input_tokens INTEGER DEFAULT 0, output_tokens INTEGER DEFAULT 0";
const OLD_MESSAGES: &str = "id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL REFERENCES sessions(id), role TEXT NOT NULL, content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, timestamp REAL NOT NULL, token_count INTEGER";

struct Store {
    dir: tempfile::TempDir,
    path: PathBuf,
    era: Era,
}

type Messages = BTreeMap<i64, (String, String, Option<String>, f64)>;

impl Store {
    fn new(era: Era) -> Store {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.db");
        let c = Connection::open(&path).unwrap();
        c.execute_batch("PRAGMA foreign_keys=OFF; CREATE TABLE schema_version(version INTEGER NOT NULL); CREATE TABLE state_meta(key TEXT PRIMARY KEY, value TEXT);").unwrap();
        c.execute_batch(&format!("CREATE TABLE sessions({OLD_SESSIONS}); CREATE TABLE messages({OLD_MESSAGES});")).unwrap();
        let store = Store { dir, path, era };
        if era == Era::Upgraded {
            store.rows(&c, 0, 4);
        }
        if era != Era::Oldest {
            c.execute_batch(
                "ALTER TABLE sessions ADD COLUMN title TEXT;
                 ALTER TABLE messages ADD COLUMN finish_reason TEXT; ALTER TABLE messages ADD COLUMN reasoning TEXT;
                 ALTER TABLE messages ADD COLUMN reasoning_details TEXT; ALTER TABLE messages ADD COLUMN codex_reasoning_items TEXT;
                 CREATE UNIQUE INDEX idx_sessions_title_unique ON sessions(title) WHERE title IS NOT NULL;",
            )
            .unwrap();
        }
        c.execute_batch("CREATE INDEX idx_sessions_source ON sessions(source); CREATE INDEX idx_sessions_started ON sessions(started_at DESC); CREATE INDEX idx_messages_session ON messages(session_id, timestamp);").unwrap();
        match era {
            Era::Oldest => c.execute_batch("CREATE VIRTUAL TABLE messages_fts USING fts5(content);
                CREATE TRIGGER messages_fts_insert AFTER INSERT ON messages BEGIN INSERT INTO messages_fts(rowid, content) VALUES(new.id, coalesce(new.content,'')||' '||coalesce(new.tool_name,'')||' '||coalesce(new.tool_calls,'')); END;"),
            Era::Upgraded | Era::Newest => c.execute_batch("CREATE VIEW messages_fts_src AS SELECT id, CASE WHEN role='tool' THEN substr(content,1,8192) ELSE content END AS content, tool_name, tool_calls FROM messages;
                INSERT INTO state_meta VALUES('fts_storage_version','3');
                CREATE VIRTUAL TABLE messages_fts USING fts5(content, tool_name, tool_calls, content='messages_fts_src', content_rowid='id');
                CREATE TRIGGER messages_fts_insert AFTER INSERT ON messages BEGIN INSERT INTO messages_fts(rowid, content, tool_name, tool_calls) VALUES(new.id, CASE WHEN new.role='tool' THEN substr(new.content,1,8192) ELSE new.content END, new.tool_name, new.tool_calls); END;
                INSERT INTO messages_fts(messages_fts) VALUES('rebuild');"),
        }
        .unwrap();
        c.execute("INSERT INTO schema_version VALUES(?)", [if era == Era::Oldest { 11 } else { 30 }]).unwrap();
        store.rows(&c, if era == Era::Upgraded { 4 } else { 0 }, 12);
        c.execute_batch("VACUUM").unwrap();
        store
    }

    fn rows(&self, c: &Connection, from: i64, to: i64) {
        let titled = c.prepare("SELECT title FROM sessions").is_ok();
        for s in from..to {
            let id = format!("202609{:02}_1015{:02}_{:06x}", 1 + s, s, s * 7919 + 1);
            let start = 1_788_000_000.5 + s as f64 * 86_400.0;
            c.execute(
                "INSERT INTO sessions(id, source, model, model_config, started_at, message_count) VALUES(?,?,?,?,?,?)",
                params![id, ["cli", "telegram", "cron"][s as usize % 3], "m-1", r#"{"a":1}"#, start, 24],
            )
            .unwrap();
            if titled {
                c.execute("UPDATE sessions SET title=? WHERE id=?", params![format!("Trip {s} <b>&"), id]).unwrap();
            }
            for m in 0..24_i64 {
                let role = ["user", "assistant", "tool", "assistant"][m as usize % 4];
                let words: Vec<String> = (0..60)
                    .map(|w| ["alpha", "bravo", "charlie", "delta", "echo"][((s * 31 + m * 7 + w * w) % 5) as usize].to_owned())
                    .collect();
                let content = format!("s{s}m{m} {}", words.join(" "));
                let calls = (m % 4 == 1).then_some(r#"[{"function":{"name":"ls","arguments":"{}"}}]"#);
                c.execute(
                    "INSERT INTO messages(session_id, role, content, tool_calls, tool_name, timestamp) VALUES(?,?,?,?,?,?)",
                    params![id, role, content, calls, (role == "tool").then_some("ls"), start + m as f64 + 0.25],
                )
                .unwrap();
            }
        }
    }

    fn p(&self) -> &str {
        self.path.to_str().unwrap()
    }

    fn out(&self) -> String {
        self.dir.path().join("out.db").to_str().unwrap().to_owned()
    }

    fn sql(&self, sql: &str) {
        let c = Connection::open(&self.path).unwrap();
        c.execute_batch(&format!("PRAGMA foreign_keys=OFF; {sql}")).unwrap();
    }

    fn bytes(&self, change: impl FnOnce(&mut Vec<u8>)) {
        let mut b = std::fs::read(&self.path).unwrap();
        change(&mut b);
        std::fs::write(&self.path, b).unwrap();
    }

    fn root(&self, name: &str) -> usize {
        let c = Connection::open(&self.path).unwrap();
        c.query_row("SELECT rootpage FROM sqlite_schema WHERE name=?", [name], |r| r.get::<_, i64>(0)).unwrap() as usize
    }

    /// The pages of the children of a root.
    fn children(&self, name: &str) -> Vec<usize> {
        let at = (self.root(name) - 1) * PAGE;
        let b = std::fs::read(&self.path).unwrap();
        let n = |o: usize| usize::from(b[o]) << 8 | usize::from(b[o + 1]);
        assert_eq!(b[at], 5, "{name} has interior pages");
        (0..n(at + 3)).map(|i| at + n(at + 12 + 2 * i)).map(|o| u32::from_be_bytes(b[o..o + 4].try_into().unwrap()) as usize).collect()
    }
}

fn messages(path: &str) -> Messages {
    let c = Connection::open(path).unwrap();
    let mut q = c.prepare("SELECT id, session_id, role, content, timestamp FROM messages").unwrap();
    let rows = q.query_map([], |r| Ok((r.get(0)?, (r.get(1)?, r.get(2)?, r.get(3)?, r.get(4)?)))).unwrap();
    rows.map(Result::unwrap).collect()
}

fn sessions(path: &str) -> BTreeMap<String, (String, f64)> {
    let c = Connection::open(path).unwrap();
    let mut q = c.prepare("SELECT id, source, started_at FROM sessions").unwrap();
    let rows = q.query_map([], |r| Ok((r.get(0)?, (r.get(1)?, r.get(2)?)))).unwrap();
    rows.map(Result::unwrap).collect()
}

/// The copy is what SQLite accepts, its search index included.
fn sound(path: &str) {
    let c = Connection::open(path).unwrap();
    let said: String = c.query_row("PRAGMA integrity_check", [], |r| r.get(0)).unwrap();
    assert_eq!(said, "ok");
    if c.prepare("SELECT * FROM messages_fts").is_ok() {
        c.execute("INSERT INTO messages_fts(messages_fts, rank) VALUES('integrity-check', 1)", []).unwrap();
    }
}

fn listed(path: &str) -> Vec<Json> {
    let (_, text) = out(&["hermes", "list", "--json", "--all", path]);
    text.lines().map(|l| serde_json::from_str::<Json>(l).unwrap()["session"].clone()).collect()
}

fn exported(path: &str) -> Vec<Json> {
    let (code, text) = out(&["hermes", "export", path]);
    assert_eq!(code, 0);
    text.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

#[test]
fn a_healthy_store_of_each_era_is_listed_and_exported_value_by_value() {
    for era in [Era::Oldest, Era::Upgraded, Era::Newest] {
        let s = Store::new(era);
        let before = std::fs::read(&s.path).unwrap();
        let (code, said) = out(&["hermes", "check", s.p()]);
        assert_eq!(code, 0, "{era:?} {said}");
        assert!(said.starts_with("default: ") && said.contains("Healthy, all 288 messages of 12 sessions are intact."), "{said}");
        let list = listed(s.p());
        assert_eq!(list.len(), 12);
        assert!(list.windows(2).all(|w| w[0]["last_active"].as_f64() >= w[1]["last_active"].as_f64()));
        let (want, mut seen) = (messages(s.p()), 0);
        for session in exported(s.p()) {
            assert_eq!(session["started_at"].as_f64().unwrap(), sessions(s.p())[session["id"].as_str().unwrap()].1);
            for m in session["messages"].as_array().unwrap() {
                let (sid, role, content, at) = &want[&m["id"].as_i64().unwrap()];
                assert_eq!((m["session_id"].as_str(), m["role"].as_str()), (Some(sid.as_str()), Some(role.as_str())));
                assert_eq!((m["content"].as_str(), m["timestamp"].as_f64()), (content.as_deref(), Some(*at)));
                seen += 1;
            }
        }
        assert_eq!(seen, want.len());
        assert_eq!(std::fs::read(&s.path).unwrap(), before);
    }
}

#[test]
fn a_search_index_that_does_not_read_is_degraded_search() {
    for block in ["DEADBEEFDEADBEEF", "BADC0FFEE0DDF00D"] {
        let s = Store::new(Era::Newest);
        s.sql(&format!("UPDATE messages_fts_data SET block = X'{block}'"));
        let (code, said) = out(&["hermes", "check", s.p()]);
        assert_eq!(code, 1, "{said}");
        assert!(
            said.contains("Search is degraded, all 288 messages of 12 sessions are intact.") && said.contains("cause: fts_index"),
            "{said}"
        );
        let want = messages(s.p());
        assert_eq!(out(&["hermes", "recover", s.p(), "-o", &s.out()]).0, 1);
        sound(&s.out());
        assert_eq!(messages(&s.out()), want);
    }
}

#[test]
fn cell_counts_and_roots_that_are_clobbered_lose_nothing() {
    for (table, edge) in [("messages", 2), ("messages", usize::MAX), ("sessions", 0)] {
        let s = Store::new(Era::Newest);
        let (want, names) = (messages(s.p()), sessions(s.p()));
        let page = match edge {
            usize::MAX => *s.children(table).last().unwrap(),
            n => {
                if table == "sessions" {
                    s.root(table)
                } else {
                    s.children(table)[n]
                }
            }
        };
        s.bytes(|b| b[(page - 1) * PAGE + 3..(page - 1) * PAGE + 5].fill(0xff));
        assert_eq!(out(&["hermes", "check", s.p()]).0, 2);
        assert_eq!(listed(s.p()).len(), 12);
        out(&["hermes", "recover", s.p(), "-o", &s.out()]);
        sound(&s.out());
        assert_eq!((messages(&s.out()), sessions(&s.out())), (want, names), "{table}");
    }
}

#[test]
fn text_of_lost_messages_comes_back_exact_from_a_copy_and_folded_from_an_index() {
    for era in [Era::Oldest, Era::Newest] {
        let s = Store::new(era);
        let want = messages(s.p());
        let page = s.children("messages")[1];
        s.bytes(|b| b[(page - 1) * PAGE..page * PAGE].fill(0));
        assert_eq!(out(&["hermes", "check", s.p()]).0, 2);
        let (_, said) = out(&["hermes", "recover", s.p(), "-o", &s.out()]);
        assert!(said.contains("lost messages whose text a search index still had"), "{said}");
        sound(&s.out());
        let got = messages(&s.out());
        let mut lost = 0;
        for (id, (sid, role, content, at)) in &want {
            let (g_sid, g_role, g_content, g_at) = got.get(id).unwrap_or_else(|| panic!("{era:?}: message {id} is not there"));
            assert_eq!((g_sid, g_at), (sid, at));
            assert_eq!(g_content.as_ref().map(|c| c.to_lowercase()), content.as_ref().map(|c| c.to_lowercase()), "{era:?} {id}");
            if g_role != role {
                lost += 1;
                assert_eq!(g_role, "system");
            }
        }
        assert!(lost > 0);
        let labels: Vec<String> = exported(s.p())
            .iter()
            .flat_map(|e| e["messages"].as_array().unwrap().clone())
            .filter_map(|m| Some(m.get("_rootpage")?["labels"].to_string()))
            .collect();
        let word = if era == Era::Oldest { "text-exact" } else { "text-folded" };
        assert!(labels.iter().any(|l| l.contains(word)), "{labels:?}");
    }
}

#[test]
fn messages_without_their_sessions_get_placeholders_with_a_start_of_their_own() {
    let s = Store::new(Era::Newest);
    s.sql("DELETE FROM sessions");
    let (code, said) = out(&["hermes", "check", s.p()]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("session_row_missing"), "{said}");
    assert_eq!(listed(s.p()).len(), 12);
    let want = messages(s.p());
    out(&["hermes", "recover", s.p(), "-o", &s.out()]);
    sound(&s.out());
    assert_eq!(messages(&s.out()), want);
    let made = sessions(&s.out());
    assert_eq!(made.len(), 12);
    for (id, (source, start)) in made {
        assert_eq!(source, "recovered");
        let first = want.values().filter(|m| m.0 == id).map(|m| m.3).fold(f64::MAX, f64::min);
        assert_eq!(start, first);
    }
}

#[test]
fn one_bad_cell_never_ends_a_command() {
    let s = Store::new(Era::Newest);
    s.sql("UPDATE sessions SET started_at='not-a-timestamp' WHERE rowid=1; UPDATE sessions SET started_at=8.4e252, parent_session_id='gone' WHERE rowid=2;
        UPDATE sessions SET model_config='{\"keep\": \"yes\" BROKEN', system_prompt=CAST(X'61E29C' AS TEXT) WHERE rowid=3;
        UPDATE messages SET timestamp=1e30 WHERE id=30; UPDATE messages SET content=CAST(X'006A736F6E3A5B7B2274797065223A2274657874222C2274657874223A226869227D5D' AS TEXT) WHERE id=31;
        UPDATE messages SET content=X'FF00' WHERE id=32;");
    let done = rootpage(&["hermes", "list", s.p()]);
    assert!(String::from_utf8_lossy(&done.stderr).contains("Ignoring corrupt started_at not-a-timestamp on session"), "{done:?}");
    assert_eq!(listed(s.p()).len(), 12);
    let all = exported(s.p());
    let find = |id: i64| all.iter().flat_map(|e| e["messages"].as_array().unwrap()).find(|m| m["id"] == id).unwrap();
    assert_eq!(find(31)["content"], serde_json::json!([{"type": "text", "text": "hi"}]));
    assert!(find(30)["timestamp"].is_null() && find(30)["_rootpage"]["raw"]["timestamp"].is_number());
    assert!(all.iter().any(|e| e["model_config"] == "{\"keep\": \"yes\" BROKEN"));
    for format in ["md", "html"] {
        let (code, text) = out(&["hermes", "export", s.p(), "--format", format]);
        assert!(code == 0 && text.contains("s0m0"));
        assert!(!text.contains("Trip 5 <b>"), "markup of a title takes effect");
    }
    let (_, said) = out(&["hermes", "recover", s.p(), "-o", &s.out()]);
    assert!(
        said.contains("references to a parent session that is gone") && said.contains("starts of sessions taken from the first message"),
        "{said}"
    );
    sound(&s.out());
    assert!(sessions(&s.out()).values().all(|v| v.1 >= 1e9));
}

#[test]
fn columns_of_a_store_without_a_schema_are_inferred_from_its_history() {
    for era in [Era::Oldest, Era::Upgraded] {
        let s = Store::new(era);
        let (want, names) = (messages(s.p()), sessions(s.p()));
        s.bytes(|b| {
            b[..PAGE].fill(0);
            // Whatever schema text stands elsewhere goes, too.
            while let Some(at) = b.windows(7).position(|w| w == b"CREATE ") {
                b[at..at + 7].fill(0);
            }
        });
        assert_eq!(listed(s.p()).len(), 12, "{era:?}");
        let (_, said) = out(&["hermes", "recover", s.p(), "-o", &s.out()]);
        assert!(said.contains("columns were inferred") && !said.contains("NOT VERIFIED"), "{said}");
        assert_eq!((messages(&s.out()), sessions(&s.out())), (want, names), "{era:?} {said}");
    }
}

#[test]
fn fallback_files_and_profiles_are_found() {
    let s = Store::new(Era::Newest);
    let home = s.dir.path().to_path_buf();
    std::fs::create_dir_all(home.join("sessions")).unwrap();
    std::fs::write(
        home.join("sessions/20260930_101500_abcdef.jsonl"),
        "{\"role\":\"user\",\"content\":\"only here\",\"timestamp\":1790000000.5}\nnot json\n",
    )
    .unwrap();
    std::fs::create_dir_all(home.join("profiles/work")).unwrap();
    std::fs::copy(&s.path, home.join("profiles/work/state.db")).unwrap();
    let (code, said) = out(&["hermes", "check", "--home", home.to_str().unwrap()]);
    assert!(code == 0 && said.contains("default: ") && said.contains("work: "), "{said}");
    assert_eq!(out(&["hermes", "list", "--home", home.to_str().unwrap(), "--profile", "../x"]).0, 64);
    out(&["hermes", "recover", s.p(), "-o", &s.out()]);
    sound(&s.out());
    assert!(messages(&s.out()).values().any(|m| m.2.as_deref() == Some("only here")));
    assert_eq!(sessions(&s.out())["20260930_101500_abcdef"].1, 1_790_000_000.5);
}

#[test]
fn redaction_hides_every_value() {
    let s = Store::new(Era::Newest);
    let page = s.children("messages")[1];
    s.bytes(|b| b[(page - 1) * PAGE..page * PAGE].fill(0));
    let o = s.out();
    let mut all = String::new();
    for args in [
        vec!["check"],
        vec!["check", "--json"],
        vec!["list"],
        vec!["list", "--json"],
        vec!["export"],
        vec!["export", "-f", "md"],
        vec!["export", "-f", "html"],
        vec!["recover", "-o", &o],
    ] {
        let mut words = vec!["hermes"];
        words.extend(args);
        words.extend(["--redact", s.p()]);
        let done = rootpage(&words);
        all.push_str(&String::from_utf8_lossy(&done.stdout));
        all.push_str(&String::from_utf8_lossy(&done.stderr));
    }
    for side in [".hermes.json", ".report.json", ".report.html"] {
        all.push_str(&std::fs::read_to_string(Path::new(&format!("{o}{side}"))).unwrap());
    }
    for value in ["Trip", "bravo", "_1015", "s1m1"] {
        assert!(!all.contains(value), "{value}");
    }
}
