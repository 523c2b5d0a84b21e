//! Text read back out of indexes, and indexes written anew from their own postings.

use std::collections::{BTreeMap, BTreeSet};

use rootpage::ctx::Limits;
use rootpage::fts5::config::Config;
use rootpage::fts5::rebuild::{Options, repack};
use rootpage::fts5::segment::structure::Structure;
use rootpage::fts5::tokenizer::{Found, RemoveDiacritics, Tokenizer, fold, utf8};
use rootpage::fts5::witness::{Certainty, Form, Source, TextBack, read_back};
use rusqlite::Connection;

use super::check::{Shadow, shadow, with_history};
use super::real::{self, Numbers};
use super::rebuild::{install, original, passes, rows};

fn texts(config: &Config, shadow: &Shadow, lost: &[i64], memory: usize) -> Vec<TextBack> {
    let Found::BuiltIn(tokenizer) = Tokenizer::find(&config.tokenizer).unwrap() else { panic!() };
    let structure = Structure::read(&shadow.data[&10]).unwrap();
    let source = Source { config, tokenizer: Some(&tokenizer), blocks: &shadow.data, structure: &structure };
    let docsize: BTreeMap<i64, Vec<u8>> = shadow.docsize.iter().cloned().collect();
    let mut out = Vec::new();
    read_back(&source, lost, |id| docsize.get(&id).cloned(), memory, |t| out.push(t));
    out
}

/// The text as the trigram tokenizer sees it.
fn folded(text: &[u8]) -> Vec<u8> {
    let mut at = 0;
    let mut out = Vec::new();
    while at < text.len() {
        let c = fold(utf8::read(text, &mut at), RemoveDiacritics::Not);
        if c != 0 {
            // A number beyond Unicode is indexed in four bytes that are no UTF-8 either.
            let (bytes, len) = utf8::encode(c);
            let c = utf8::read(&bytes[..len], &mut 0);
            utf8::write(&mut out, if c > 0x10_ffff { 0xfffd } else { c });
        }
    }
    out
}

fn open(arguments: &[&str], rows: &[super::rebuild::Row]) -> (tempfile::TempDir, Connection, Config) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    original(&path, arguments, rows);
    (folder, Connection::open(path).unwrap(), Config::parse(arguments).unwrap())
}

#[test]
fn trigrams_give_the_whole_text_back() {
    let mut n = Numbers(41);
    let rows = rows(&mut n, 200, 2, 200, true);
    let (_folder, db, config) = open(&["a", "b", "content='docs'", "content_rowid='id'", "tokenize=trigram"], &rows);
    let shadow = shadow(&db, "ft", &config);
    let lost: Vec<i64> = rows.iter().map(|r| r.0).step_by(3).collect();
    let (mut lost_characters, mut back) = (0, 0);
    for memory in [1 << 30, 1] {
        let found = texts(&config, &shadow, &lost, memory);
        let by_place: BTreeMap<(i64, usize), &TextBack> = found.iter().map(|t| ((t.rowid, t.column), t)).collect();
        assert_eq!(by_place.len(), found.len());
        assert!(found.is_sorted_by_key(|t| (t.rowid, t.column)));
        for (rowid, columns) in rows.iter().filter(|(r, _)| lost.contains(r)) {
            for (i, text) in columns.iter().enumerate() {
                let expected = folded(text.as_deref().unwrap_or_default());
                let characters = String::from_utf8_lossy(&expected).chars().count();
                if characters < 3 {
                    assert!(!by_place.contains_key(&(*rowid, i)));
                    continue;
                }
                let t = by_place[&(*rowid, i)];
                assert_eq!((t.form, t.is_complete(), &t.text), (Form::Characters, true, &expected));
                assert_eq!(t.runs.iter().map(|r| r.bytes as usize).sum::<usize>(), t.text.len());
                lost_characters += characters;
                back += t.known as usize;
            }
        }
    }
    eprintln!("characters returned / lost: {back} / {lost_characters}");
    assert_eq!(back, lost_characters);
}

#[test]
fn words_come_back_in_order_and_sets_of_words() {
    let rows = vec![(5, vec![Some("The café, at 2026-11-29: Straße NO".as_bytes().to_vec())])];
    let words = |arguments: &[&str]| {
        let (_folder, db, config) = open(arguments, &rows);
        texts(&config, &shadow(&db, "ft", &config), &[5], 1 << 20).remove(0)
    };
    let t = words(&["a", "content='docs'", "content_rowid='id'"]);
    assert_eq!(String::from_utf8(t.text.clone()).unwrap(), "the cafe at 2026 11 29 straße no");
    assert!(t.is_complete() && t.form == Form::Sequence);
    let mut at = 0;
    for run in &t.runs {
        let part = &t.text[at..at + run.bytes as usize];
        at += run.bytes as usize;
        match run.certainty {
            Certainty::Unknown => assert_eq!(part, b" "),
            Certainty::Exact => assert!(part.iter().all(|b| b.is_ascii_digit() || *b >= 0x80), "{part:?}"),
            Certainty::Folded => {}
        }
    }
    let t = words(&["a", "content='docs'", "content_rowid='id'", "detail=none"]);
    assert_eq!((t.form, String::from_utf8(t.text).unwrap().as_str()), (Form::Words, "11 2026 29 at cafe no straße the"));
}

#[test]
fn a_missing_leaf_leaves_gaps_only() {
    let mut n = Numbers(43);
    let rows = rows(&mut n, 60, 1, 300, false);
    let (_folder, db, config) = open(&["a", "content='docs'", "content_rowid='id'", "tokenize=trigram"], &rows);
    let mut shadow = shadow(&db, "ft", &config);
    let leaves: Vec<i64> = shadow.data.keys().copied().filter(|id| *id > 10 && *id < 1 << 38).collect();
    let gone = leaves[leaves.len() / 2];
    shadow.data.remove(&gone);
    let lost: Vec<i64> = rows.iter().map(|r| r.0).collect();
    let found = texts(&config, &shadow, &lost, 1 << 30);
    let (mut known, mut total) = (0, 0);
    for t in &found {
        known += t.known;
        total += t.total.unwrap();
        let expected = folded(rows.iter().find(|r| r.0 == t.rowid).unwrap().1[0].as_deref().unwrap());
        let (expected, got) = (String::from_utf8(expected).unwrap(), String::from_utf8(t.text.clone()).unwrap());
        assert_eq!(expected.chars().count(), got.chars().count());
        assert!(expected.chars().zip(got.chars()).all(|(e, g)| e == g || g == '\u{fffd}'));
    }
    eprintln!("one of {} leaves gone: {known} of {total} characters known", leaves.len());
    assert!(known < total && known * 10 > total * 9);
}

#[test]
fn an_index_is_written_anew_from_its_postings() {
    let folder = std::env::temp_dir();
    let kinds: &[(&[&str], &str)] = &[
        (&["a", "b", "content=''"], ""),
        (&["a", "b", "content=''", "detail=none"], ""),
        (&["a", "b", "content=''", "detail=column", "prefix=2"], ""),
        (&["a", "b", "content=''", "contentless_delete=1"], ""),
        (&["a", "b UNINDEXED", "content=''", "contentless_delete=1", "contentless_unindexed=1"], ""),
        (&["a", "b", "content='docs'", "content_rowid='id'"], "INSERT INTO ft(ft, rank) VALUES('secure-delete', 1)"),
        (&["a", "b", "content='docs'", "content_rowid='id'", "detail=none"], "INSERT INTO ft(ft, rank) VALUES('secure-delete', 1)"),
        (&["a", "b", "columnsize=0"], ""),
    ];
    for (arguments, settings) in kinds {
        let db = with_history(arguments, settings, 51);
        let config = Config::parse(arguments).unwrap();
        let names: Vec<&str> = config.columns.iter().map(|c| c.name.as_str()).collect();
        let before = real::instances(&db, "ft", &names);
        let shadow = shadow(&db, "ft", &config);
        let structure = Structure::read(&shadow.data[&10]).unwrap();
        let options = Options { page_size: 200, cookie: structure.cookie, ..Options::new(&Limits::default(), &folder) };
        let docsize = shadow.docsize.iter().cloned().collect();
        let (built, defects) = repack(&config, &shadow.data, &structure, docsize, |_| true, &BTreeSet::new(), &options).unwrap();
        assert!(defects.is_empty());
        // The connection holds the old structure: a new one reads the new rows.
        let file = tempfile::NamedTempFile::new().unwrap();
        db.backup("main", file.path(), None::<fn(rusqlite::backup::Progress)>).unwrap();
        install(&Connection::open(file.path()).unwrap(), "ft", built);
        let db = Connection::open(file.path()).unwrap();
        passes(&db, "ft");
        assert!(real::instances(&db, "ft", &names) == before, "{arguments:?}");
        if config.contentless_delete {
            let some: Vec<i64> = before.iter().map(|i| i.1).collect::<BTreeSet<_>>().into_iter().take(9).collect();
            for rowid in &some {
                db.execute("DELETE FROM ft WHERE rowid = ?", [rowid]).unwrap();
            }
            let expected: Vec<_> = before.iter().filter(|i| !some.contains(&i.1)).cloned().collect();
            assert!(real::instances(&db, "ft", &names) == expected, "{arguments:?}");
            passes(&db, "ft");
        }
    }
}
