//! The geometry of damaged files against what real SQLite wrote.
#![allow(unsafe_code)]

use rootpage::evidence::page_one::reconcile;
use rootpage::evidence::{Clues, Geometry, PageOne};
use rootpage::finding::{Code, Findings};
use rootpage::format::Encoding;
use rootpage::ids::{PageNo, PageSize};

fn database(size: u32, encoding: &str, rows: u32) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.db");
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute_batch(&format!("PRAGMA page_size={size}; PRAGMA encoding='{encoding}'; CREATE TABLE msg(id INTEGER PRIMARY KEY, s TEXT, body TEXT); CREATE INDEX msg_s ON msg(s); BEGIN;")).unwrap();
    for i in 0..rows {
        db.execute(
            "INSERT INTO msg VALUES(?1, ?2, ?3)",
            rusqlite::params![i, format!("s{}", i % 7), format!("body of row {i} ").repeat(1 + (i as usize * 7) % 20)],
        )
        .unwrap();
    }
    db.execute_batch("COMMIT").unwrap();
    drop(db);
    std::fs::read(&path).unwrap()
}

fn decide(main: &[u8]) -> (Option<Geometry>, Findings) {
    let mut log = Findings::new(10);
    let geometry = reconcile(&Clues { main, ..Clues::default() }, &mut log);
    (geometry, log)
}

fn each(test: impl Fn(&str, u32, Encoding, &[u8])) {
    for size in PageSize::ALL {
        for (name, encoding) in [("UTF-8", Encoding::Utf8), ("UTF-16le", Encoding::Utf16Le), ("UTF-16be", Encoding::Utf16Be)] {
            let rows = 600.max(size / 16);
            test(&format!("{size} {name}"), size, encoding, &database(size, name, rows));
        }
    }
}

#[test]
fn a_healthy_header_is_taken_as_it_is() {
    each(|name, size, encoding, db| {
        let (g, log) = decide(db);
        let g = g.unwrap();
        assert_eq!((g.page_size.get(), g.encoding, g.reserved), (size, encoding, 0), "{name}");
        assert_eq!(g.page_count as usize, db.len() / size as usize, "{name}");
        assert!(log.is_empty(), "{name}: {:?}", log.kept());
        assert_eq!(g.page_one, PageOne::InPlace);
        assert_eq!(g.header.unwrap().encode(), db[..100]);
    });
}

#[test]
fn a_torn_header_is_made_out_from_the_pages() {
    each(|name, size, encoding, db| {
        for (what, from, to, fill) in [
            ("magic", 0, 16, 0_u8),
            ("half", 0, 50, 0xee),
            ("100", 0, 100, 0),
            ("100 ff", 0, 100, 0xff),
            ("512", 0, 512, 0),
            ("page", 0, size as usize, 0x41),
            ("page zero", 0, size as usize, 0),
        ] {
            let mut bad = db.to_vec();
            bad[from..to].fill(fill);
            let (g, _) = decide(&bad);
            let g = g.unwrap_or_else(|| panic!("{name} {what}: no geometry"));
            assert_eq!(g.page_size.get(), size, "{name} {what}: {:?}", g.decisions);
            assert_eq!((g.reserved, g.byte_shift, g.page_shift), (0, 0, 0), "{name} {what}");
            assert_eq!(g.page_count as usize, db.len() / size as usize, "{name} {what}");
            if to <= 100 {
                assert_eq!(g.encoding, encoding, "{name} {what}");
            }
        }
    });
}

#[test]
fn single_fields_are_corrected() {
    each(|name, size, encoding, db| {
        for (at, bytes) in [
            (16, [0_u8, 0].as_slice()),
            (16, &[0x10, 0]),
            (16, &[2, 0]),
            (16, &[0, 1]),
            (18, &[9, 9]),
            (20, &[77]),
            (20, &[8]),
            (21, &[0, 0, 0]),
            (44, &[0, 0, 9, 9]),
            (56, &[0, 0, 0, 9]),
            (56, &[0, 0, 0, 1]),
            (56, &[0, 0, 0, 2]),
            (28, &[0, 0, 0, 1]),
            (28, &[9, 0, 0, 1]),
        ] {
            let mut bad = db.to_vec();
            bad[at..at + bytes.len()].copy_from_slice(bytes);
            let (g, log) = decide(&bad);
            let g = g.unwrap();
            assert_eq!((g.page_size.get(), g.encoding, g.reserved), (size, encoding, 0), "{name} {at} {bytes:?} {:?}", g.decisions);
            assert_eq!(g.page_count as usize, db.len() / size as usize, "{name} {at} {bytes:?}");
            assert_eq!(bad == db, log.is_empty(), "{name} {at} {bytes:?}: {:?}", log.kept());
        }
    });
}

#[test]
fn displaced_pages_are_followed() {
    each(|name, size, encoding, db| {
        let n = size as usize;
        let (g, log) = decide(&db[n..]);
        let g = g.unwrap();
        assert_eq!((g.page_size.get(), g.page_shift, g.page_one.clone()), (size, -1, PageOne::Lost), "{name} {:?}", g.decisions);
        assert_eq!(g.page_count as usize, db.len() / n, "{name}");
        assert_eq!(log.count(Code::PagesShifted), 1);
        assert_eq!(g.offset(PageNo::new(2).unwrap()), Some(0));

        let mut front = vec![0xaa_u8; 2 * n];
        front.extend_from_slice(db);
        let g = decide(&front).0.unwrap();
        assert_eq!((g.page_size.get(), g.page_shift, g.encoding), (size, 2, encoding), "{name} {:?}", g.decisions);
        assert_eq!(g.page_count as usize, db.len() / n, "{name}");

        for cut in [1_usize, 3, 100] {
            for at in [0_usize, 15, 40] {
                let mut short = db.to_vec();
                short.drain(at..at + cut);
                let g = decide(&short).0.unwrap();
                assert_eq!((g.page_size.get(), g.byte_shift), (size, -(cut as i64)), "{name} cut {cut} at {at} {:?}", g.decisions);
                let page = g.offset(PageNo::new(2).unwrap()).unwrap() as usize;
                assert_eq!(short[page..page + n], db[n..2 * n], "{name}");
                assert_eq!(g.page_count as usize, db.len() / n, "{name}");
            }
        }
        let mut long = b"xy".to_vec();
        long.extend_from_slice(db);
        let g = decide(&long).0.unwrap();
        assert_eq!((g.page_size.get(), g.byte_shift), (size, 2), "{name}");
        assert_eq!(g.page_one, PageOne::Rebuilt(db[..n].to_vec()), "{name}");
    });
}

#[test]
fn page_one_is_found_where_it_was_misdirected_to() {
    each(|name, size, _, db| {
        let n = size as usize;
        let mut bad = db.to_vec();
        let last = db.len() - n;
        bad.copy_within(0..n, last);
        bad.copy_within(3 * n..4 * n, 0);
        let g = decide(&bad).0.unwrap();
        assert_eq!((g.page_size.get(), g.page_one.clone()), (size, PageOne::At(last as u64)), "{name} {:?}", g.decisions);
        assert_eq!(g.page_shift, 0);
        assert!(g.header.is_some());
    });
}

#[test]
fn what_lies_behind_the_database_is_told_apart() {
    let db = database(1024, "UTF-8", 300);
    let mut two = db.clone();
    two.extend_from_slice(&database(1024, "UTF-8", 100));
    let (g, log) = decide(&two);
    let g = g.unwrap();
    assert_eq!((g.page_count as usize, g.second_database), (db.len() / 1024, Some(db.len() as u64)));
    assert_eq!(log.count(Code::SecondDatabase), 1);

    let mut junk = db.clone();
    junk.extend("a line of text\n".repeat(200).bytes());
    let g = decide(&junk).0.unwrap();
    assert_eq!((g.page_count as usize, g.trailing), (db.len() / 1024, 3000));

    let mut cut = db.clone();
    cut.truncate(db.len() - 700);
    let (g, log) = decide(&cut);
    assert_eq!(g.unwrap().page_count as usize, db.len() / 1024);
    assert_eq!(log.count(Code::FileNotWholePages), 1);

    let mut short = db.clone();
    short.truncate(db.len() - 5 * 1024);
    let (g, log) = decide(&short);
    assert_eq!(g.unwrap().page_count as usize, db.len() / 1024 - 5);
    assert_eq!(log.count(Code::PageCountStale), 1);
}

#[test]
fn reserved_bytes_are_seen() {
    for reserved in [0_u8, 8, 32] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.db");
        let db = rusqlite::Connection::open(&path).unwrap();
        let mut value = i32::from(reserved);
        unsafe {
            rusqlite::ffi::sqlite3_file_control(
                db.handle(),
                std::ptr::null(),
                rusqlite::ffi::SQLITE_FCNTL_RESERVE_BYTES,
                (&raw mut value).cast(),
            )
        };
        db.execute_batch("CREATE TABLE t(a, b); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) INSERT INTO t SELECT i, 'value ' || i FROM n; CREATE INDEX t_b ON t(b)").unwrap();
        drop(db);
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes[20], reserved);
        let mut bad = bytes.clone();
        bad[..100].fill(0);
        for b in [&bytes, &bad] {
            assert_eq!(decide(b).0.unwrap().reserved, reserved);
        }
    }
}

#[test]
fn what_is_no_database_has_no_geometry() {
    assert!(decide(&[]).0.is_none());
    assert!(decide(&vec![0; 100_000]).0.is_none());
    assert!(decide("some text\n".repeat(9000).as_bytes()).0.is_none());
    let mut x = 7_u64;
    let noise: Vec<u8> = (0..200_000)
        .map(|_| {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (x >> 33) as u8
        })
        .collect();
    assert!(decide(&noise).0.is_none());
}
