//! The pure decoders on hostile bytes: whatever they are given, they answer. No file is needed, so many inputs are tried.

use std::fs;

use rootpage::finding::Findings;
use rootpage::format::cell::Split;
use rootpage::format::freelist::Trunk;
use rootpage::format::header::DatabaseHeader;
use rootpage::format::page::Page;
use rootpage::format::record::Fields;
use rootpage::ids::PageNo;
use rootpage::schema::{Catalog, SchemaRow, ddl};

use crate::dbgen;
use crate::rng::Rng;

/// The CREATE texts and the pages of a database that has everything.
fn everything() -> (Vec<String>, Vec<u8>) {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    let recipe = dbgen::recipes().into_iter().find(|r| r.name.starts_with("all-1024-UTF-8")).unwrap();
    dbgen::build(&db, &recipe).unwrap();
    let con = rusqlite::Connection::open(&db).unwrap();
    let texts = con
        .prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'many%'")
        .unwrap()
        .query_map([], |r| r.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    (texts, fs::read(&db).unwrap())
}

/// Some bytes of a text are changed, doubled, cut or exchanged.
fn scramble(bytes: &mut Vec<u8>, rng: &mut Rng) {
    const TOKENS: &[&str] = &[
        "(",
        ")",
        ",",
        "'",
        "\"",
        "[",
        "`",
        "--",
        "/*",
        "\0",
        "x'",
        "AS",
        "CASE",
        "NOT",
        "1e999",
        "\u{e9}",
        ";",
        " WITHOUT ROWID",
        "COLLATE",
        "->>",
        "9223372036854775808",
    ];
    for _ in 0..1 + rng.below(4) {
        let at = rng.below(bytes.len() + 1);
        match rng.below(6) {
            0 if at < bytes.len() => bytes[at] = rng.bits() as u8,
            1 => bytes.truncate(at),
            2 => drop(bytes.splice(at..at, rng.pick(TOKENS).bytes())),
            3 => {
                let to = (at + rng.below(20)).min(bytes.len());
                drop(bytes.drain(at..to));
            }
            4 => {
                let to = (at + rng.below(30)).min(bytes.len());
                let piece = bytes[at..to].to_vec();
                for _ in 0..rng.below(40) {
                    bytes.splice(at..at, piece.iter().copied());
                }
            }
            _ => {}
        }
        bytes.truncate(20_000);
    }
}

#[test]
fn create_text_of_any_bytes_is_read() {
    let (texts, _) = everything();
    let mut rng = Rng::new("ddl");
    for round in 0..40 {
        for text in &texts {
            let mut bytes = text.clone().into_bytes();
            if round > 0 {
                scramble(&mut bytes, &mut rng);
            }
            for hint in [ddl::Hint::None, ddl::Hint::Table, ddl::Hint::Virtual, ddl::Hint::Index, ddl::Hint::View, ddl::Hint::Trigger] {
                let parsed = ddl::parse_as(&bytes, hint);
                assert!(round > 0 || parsed.problem.is_none(), "SQLite accepts it, we do not: {text}: {:?}", parsed.problem);
            }
        }
    }
}

#[test]
fn deep_nesting_does_not_overflow_the_stack() {
    for open in ["(", "((", "NOT ", "-", "CASE WHEN ", "abs(", "x IN (", "a->", "SELECT ("] {
        let deep = open.repeat(200_000);
        for text in [
            format!("CREATE TABLE t(a CHECK({deep}"),
            format!("CREATE INDEX i ON t({deep}"),
            format!("CREATE VIEW v AS SELECT {deep}"),
            deep.clone(),
        ] {
            let _ = ddl::parse(text.as_bytes());
        }
    }
}

#[test]
fn a_schema_of_scrambled_rows_is_a_catalog() {
    let (texts, _) = everything();
    let mut rng = Rng::new("catalog");
    for _ in 0..60 {
        let rows: Vec<SchemaRow> = texts
            .iter()
            .enumerate()
            .map(|(n, text)| {
                let mut sql = text.clone().into_bytes();
                if rng.one_in(3) {
                    scramble(&mut sql, &mut rng);
                }
                let mut row = SchemaRow::default();
                row.rowid = n as i64 + 1;
                row.kind = rng.pick(&["table", "index", "view", "trigger", "", "TABLE", "x"]).as_bytes().to_vec();
                row.name = format!("n{}", rng.below(30)).into_bytes();
                row.table = format!("n{}", rng.below(30)).into_bytes();
                row.root = (!rng.one_in(9)).then(|| rng.range(-3, 60));
                row.sql = (!rng.one_in(9)).then_some(sql);
                row
            })
            .collect();
        let count = rows.len();
        let catalog = Catalog::from_rows(rows, &mut Findings::new(100));
        // Automatic indexes that a constraint asks for are added, nothing else is.
        let own = catalog.objects().iter().filter(|o| o.autoindex.is_none()).count();
        assert!(own <= count + 1);
    }
}

#[test]
fn pages_cells_and_records_of_any_bytes_are_decoded() {
    let (_, healthy) = everything();
    let mut rng = Rng::new("pages");
    let mut decoded = 0_u64;
    for (n, chunk) in healthy.chunks_exact(1024).cycle().enumerate().take(30_000) {
        let mut page = chunk.to_vec();
        if n >= healthy.len() / 1024 {
            for _ in 0..1 + rng.below(6) {
                let at = if rng.one_in(2) { rng.below(40) } else { rng.below(page.len()) };
                page[at] = rng.bits() as u8;
            }
            let cut = page.len() - if rng.one_in(8) { rng.below(page.len()) } else { 0 };
            page.truncate(cut);
        }
        let usable = 1024 - *rng.pick(&[0, 0, 0, 8, 255, 544]);
        let split = Split::new(usable);
        let _ = DatabaseHeader::read(&page);
        if let Ok(trunk) = Trunk::read(&page, usable) {
            decoded += trunk.leaves().count() as u64;
        }
        let Ok(view) = Page::read(&page, PageNo::new(2).unwrap(), usable) else { continue };
        let mut fields = Fields::new();
        for i in 0..view.pointer_count() {
            if let Ok(cell) = view.cell(i, &split) {
                if fields.read(cell.local, cell.payload_len).is_ok() {
                    decoded += fields.values(cell.local).count() as u64;
                }
            }
        }
    }
    assert!(decoded > 10_000, "{decoded} values");
}
