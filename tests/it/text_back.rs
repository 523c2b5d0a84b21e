//! Leaves of a table are gone, its search indexes are not: the text comes back, measured against what real SQLite wrote.

use std::collections::BTreeMap;
use std::path::Path;

use rootpage::ctx::Ctx;
use rootpage::report::Report;
use rootpage::verbs::{self, Inputs, Options};
use rusqlite::Connection;

const PAGE: usize = 1024;

fn text_of(i: i64) -> String {
    let extra = ["ÄÖÜ naïve Straße", "Ελλάδα και θάλασσα", "Привет, МИР", "日本語の文章", "emoji 🌊🌊 end", "plain words only"];
    format!(
        "Message {i}: {} {}",
        extra[usize::try_from(i).unwrap() % extra.len()],
        "Lorem Ipsum dolor ".repeat(usize::try_from(i).unwrap() % 9)
    )
}

/// A store of 300 messages, of which those on some leaves are lost; the rows that are lost.
fn damaged(dir: &Path, indexes: &str) -> Vec<i64> {
    let path = dir.join("x.db");
    let db = Connection::open(&path).unwrap();
    db.execute_batch(&format!("PRAGMA page_size={PAGE}; CREATE TABLE messages(id INTEGER PRIMARY KEY, role TEXT NOT NULL, content TEXT);"))
        .unwrap();
    let mut insert = db.prepare("INSERT INTO messages VALUES(?1, ?2, ?3)").unwrap();
    for i in 1..=300 {
        insert.execute(rusqlite::params![i, if i % 5 == 0 { "tool" } else { "user" }, text_of(i)]).unwrap();
    }
    drop(insert);
    db.execute_batch(indexes).unwrap();
    drop(db);
    let mut bytes = std::fs::read(&path).unwrap();
    let mut lost = Vec::new();
    for page in bytes.chunks_mut(PAGE) {
        let holds = |i: i64| memchr::memmem::find(page, format!("Message {i}: ").as_bytes()).is_some();
        let rows: Vec<i64> = (1..=300).filter(|i| holds(*i)).collect();
        if page[0] == 13 && rows.iter().any(|i| [40, 150, 151, 290].contains(i)) {
            lost.extend(rows);
            page.fill(0);
        }
    }
    assert!(lost.len() > 3);
    std::fs::write(&path, bytes).unwrap();
    lost
}

fn recover(dir: &Path) -> (Connection, Report) {
    let out = dir.join("out.db");
    let report = verbs::recover(&Inputs::at_path(&dir.join("x.db")), &Options::default(), &out, &Ctx::default()).unwrap();
    (Connection::open(dir.join("out.db.salvage.db")).unwrap(), report)
}

fn texts(salvage: &Connection) -> BTreeMap<i64, (String, String, bool)> {
    let mut statement =
        salvage.prepare("SELECT rp_rowid, text, form, complete FROM rp_text_of_messages WHERE column_name = 'content'").unwrap();
    let rows = statement.query_map([], |r| Ok((r.get(0)?, (r.get(1)?, r.get(2)?, r.get(3)?)))).unwrap();
    rows.map(Result::unwrap).collect()
}

#[test]
fn trigrams_give_every_character_back() {
    let dir = tempfile::tempdir().unwrap();
    let lost = damaged(
        dir.path(),
        "CREATE VIRTUAL TABLE tri USING fts5(content, content='messages', content_rowid='id', tokenize='trigram');
         INSERT INTO tri(tri) VALUES('rebuild');",
    );
    let (salvage, report) = recover(dir.path());
    let back = texts(&salvage);
    assert_eq!(back.keys().copied().collect::<Vec<_>>(), lost);
    let (mut characters, mut returned) = (0, 0);
    for (id, (text, form, complete)) in &back {
        // The trigram tokenizer folds as to_lowercase does for these texts.
        let want = text_of(*id).to_lowercase();
        assert_eq!((text.as_str(), form.as_str(), *complete), (want.as_str(), "characters, folded", true), "{id}");
        characters += want.chars().count();
        returned += text.chars().count();
    }
    eprintln!("characters returned / lost: {returned} / {characters}");
    let table = report.recovery.unwrap().tables.into_iter().find(|t| t.name == "messages").unwrap();
    // The index names the rows that are lost, each on the page that had it.
    let listed = table.lost.iter().filter(|g| g.witness.starts_with("search index tri") && g.page.is_some());
    let named: Vec<i64> = listed.flat_map(|g| &g.rowids).flat_map(|r| r[0]..=r[1]).collect();
    assert_eq!(named, lost);
    let notes = &table.notes;
    let said = format!("text of {} of {} lost rows came back", lost.len(), lost.len());
    assert!(notes.iter().any(|n| n.contains(&said)), "{notes:?}");
}

#[test]
fn of_two_indexes_the_better_text_is_kept_and_a_view_says_what_it_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let lost = damaged(
        dir.path(),
        "CREATE VIEW said AS SELECT id, content FROM messages WHERE role <> 'tool';
         CREATE VIRTUAL TABLE tri USING fts5(content, content='said', content_rowid='id', tokenize='trigram');
         CREATE VIRTUAL TABLE words USING fts5(content, content='messages', content_rowid='id');
         INSERT INTO tri(tri) VALUES('rebuild'); INSERT INTO words(words) VALUES('rebuild');",
    );
    let (salvage, _) = recover(dir.path());
    let back = texts(&salvage);
    assert_eq!(back.keys().copied().collect::<Vec<_>>(), lost);
    for (id, (text, form, _)) in &back {
        if id % 5 == 0 {
            assert_eq!(form, "words in order, folded", "{id}: only the index of words has it");
            assert!(text.starts_with(&format!("message {id} ")), "{text}");
        } else {
            assert_eq!((text, form.as_str()), (&text_of(*id).to_lowercase(), "characters, folded"), "{id}");
        }
    }
}

#[test]
fn a_contentless_index_that_a_trigger_fills_gives_text_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut lost = damaged(
        dir.path(),
        "CREATE VIRTUAL TABLE tri USING fts5(body, who UNINDEXED, content='', tokenize='trigram');
         CREATE TRIGGER ai AFTER INSERT ON messages WHEN new.role <> 'x' BEGIN
           INSERT INTO tri(rowid, who, body) VALUES (new.id, upper(new.role), new.content);
         END;
         CREATE TEMP TABLE old AS SELECT * FROM messages; DELETE FROM messages; INSERT INTO messages SELECT * FROM old;",
    );
    lost.sort_unstable();
    let (salvage, _) = recover(dir.path());
    let back = texts(&salvage);
    assert_eq!(back.keys().copied().collect::<Vec<_>>(), lost);
    for (id, (text, form, complete)) in &back {
        let want = text_of(*id).to_lowercase();
        assert_eq!((text.as_str(), form.as_str(), *complete), (want.as_str(), "characters, folded", true), "{id}");
    }
}

#[test]
fn rows_that_were_deleted_do_not_come_back_as_text() {
    let dir = tempfile::tempdir().unwrap();
    let lost = damaged(
        dir.path(),
        "CREATE VIRTUAL TABLE tri USING fts5(content, content='messages', content_rowid='id', tokenize='trigram');
         INSERT INTO tri(tri) VALUES('rebuild');
         CREATE TRIGGER gone AFTER DELETE ON messages BEGIN INSERT INTO tri(tri, rowid, content) VALUES('delete', old.id, old.content); END;
         DELETE FROM messages WHERE id IN (40, 41, 100);",
    );
    let (salvage, _) = recover(dir.path());
    let back = texts(&salvage);
    let want: Vec<i64> = lost.into_iter().filter(|i| ![40, 41, 100].contains(i)).collect();
    assert_eq!(back.keys().copied().collect::<Vec<_>>(), want);
}

#[test]
fn sqlite_sequence_says_which_rows_are_gone_from_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.db");
    let db = Connection::open(&path).unwrap();
    db.execute_batch(&format!(
        "PRAGMA page_size={PAGE}; CREATE TABLE messages(id INTEGER PRIMARY KEY AUTOINCREMENT, content TEXT);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300) INSERT INTO messages SELECT i, 'Message ' || i || ': ' FROM n;"
    ))
    .unwrap();
    drop(db);
    let mut bytes = std::fs::read(&path).unwrap();
    let last = bytes.chunks_mut(PAGE).find(|p| p[0] == 13 && memchr::memmem::find(p, b"Message 300: ").is_some()).unwrap();
    let first_lost = (1..=300).find(|i| memchr::memmem::find(last, format!("Message {i}: ").as_bytes()).is_some()).unwrap();
    last.fill(0);
    std::fs::write(&path, bytes).unwrap();
    let out = dir.path().join("out.db");
    let report = verbs::recover(&Inputs::at_path(&path), &Options::default(), &out, &Ctx::default()).unwrap();
    let table = report.recovery.unwrap().tables.into_iter().find(|t| t.name == "messages").unwrap();
    let gone: Vec<_> = table.lost.iter().filter(|g| g.witness == "sqlite_sequence").collect();
    assert_eq!(gone.iter().map(|g| g.rowids.clone()).collect::<Vec<_>>(), [vec![[first_lost, 300]]], "{:?}", table.lost);
}
