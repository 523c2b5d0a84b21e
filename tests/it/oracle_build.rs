//! Databases that `build` writes, judged by real SQLite: integrity, contents, and that it can go on writing in them.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use rootpage::error::Error;
use rootpage::format::record::encode_record;
use rootpage::format::{DatabaseHeader, Encoding, PageKind, Split, Value};
use rootpage::ids::{PageNo, PageSize, RootPage};
use rootpage::write::file::OutputFile;
use rootpage::write::{AutoVacuum, DatabaseWriter, FileSummary, IndexTree, Settings, TableTree, TreeSummary};
use rusqlite::Connection;

type Writer<'f> = DatabaseWriter<&'f File>;

/// A row of the test table: rowid and a BLOB; the BLOB starts with the rowid, so that its order is that of the rowid.
fn blob(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut out = seed.to_be_bytes().to_vec();
    out.resize_with(len.max(8), || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    });
    out.truncate(len);
    out
}

fn record(values: &[Value<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    encode_record(&mut out, values.iter().copied());
    out
}

fn schema(db: &mut Writer<'_>, rows: &[(&str, &str, &str, RootPage, &str)]) -> TreeSummary {
    let encoding = db.settings().encoding;
    let mut tree = TableTree::new(db, RootPage(PageNo::ONE));
    for (i, (kind, name, table, root, sql)) in rows.iter().enumerate() {
        let texts: Vec<_> = [kind, name, table, sql].iter().map(|t| encoding.from_utf8(t.as_bytes()).into_owned()).collect();
        let [kind, name, table, sql] = texts.try_into().unwrap();
        let root = Value::Int(i64::from(root.0.get()));
        let sql = if sql.is_empty() { Value::Null } else { Value::Text(&sql) };
        let payload = record(&[Value::Text(&kind), Value::Text(&name), Value::Text(&table), root, sql]);
        tree.push(db, i as i64 + 1, &[&payload]).unwrap();
    }
    tree.finish(db).unwrap()
}

/// Writes a table, a secondary index and a WITHOUT ROWID table over blobs of these lengths.
fn write(path: &Path, settings: Settings, lengths: &[usize]) -> (FileSummary, [TreeSummary; 4]) {
    let file = File::create(path).unwrap();
    let mut db = DatabaseWriter::new(&file, path, settings).unwrap();
    let roots = db.reserve_roots(3).unwrap();
    let mut t = TableTree::new(&db, roots[0]);
    for (i, &len) in lengths.iter().enumerate() {
        let b = blob(i as u64, len);
        let payload = record(&[Value::Null, Value::Blob(&b)]);
        let cut = payload.len() / 3;
        t.push(&mut db, rowid(i), &[&payload[..cut], &payload[cut..]]).unwrap();
    }
    let t = t.finish(&mut db).unwrap();
    let mut index = IndexTree::new(&db, roots[1]);
    let mut keys: Vec<_> = lengths.iter().enumerate().map(|(i, &len)| (blob(i as u64, len), rowid(i))).collect();
    keys.sort();
    for (key, rowid) in &keys {
        let payload = record(&[Value::Blob(key), Value::Int(*rowid)]);
        index.push(&mut db, &[&payload]).unwrap();
    }
    let index = index.finish(&mut db).unwrap();
    let mut w = IndexTree::new(&db, roots[2]);
    for (key, rowid) in &keys {
        w.push(&mut db, &[&record(&[Value::Blob(key), Value::Int(*rowid), Value::Text(&settings.encoding.from_utf8(b"x"))])]).unwrap();
    }
    let w = w.finish(&mut db).unwrap();
    let s = schema(
        &mut db,
        &[
            ("table", "t", "t", roots[0], "CREATE TABLE t(id INTEGER PRIMARY KEY, b)"),
            ("index", "i", "t", roots[1], "CREATE INDEX i ON t(b)"),
            ("table", "w", "w", roots[2], "CREATE TABLE w(k, id, v, PRIMARY KEY(k, id)) WITHOUT ROWID"),
        ],
    );
    let (_, summary) = db.finish().unwrap();
    (summary, [t, index, w, s])
}

/// Negative, small and very large rowids, ascending.
fn rowid(i: usize) -> i64 {
    let i = i as i64;
    match i {
        0 => i64::MIN,
        1 => -3_000_000_000,
        2 => -1,
        _ if i % 1000 == 999 => i + (1 << 40) * i,
        _ => i + (1 << 40) * (i / 1000 * 1000),
    }
}

fn ok(c: &Connection, what: &str) {
    let text: String = c.query_row("PRAGMA integrity_check(5)", [], |r| r.get(0)).unwrap();
    assert_eq!(text, "ok", "{what}");
}

fn one<T: rusqlite::types::FromSql>(c: &Connection, sql: &str) -> T {
    c.query_row(sql, [], |r| r.get(0)).unwrap_or_else(|e| panic!("{sql}: {e}"))
}

fn same_rows(c: &Connection, lengths: &[usize], what: &str) {
    let want: Vec<(i64, Vec<u8>)> = lengths.iter().enumerate().map(|(i, &len)| (rowid(i), blob(i as u64, len))).collect();
    let mut st = c.prepare("SELECT id, b FROM t ORDER BY id").unwrap();
    let got: Vec<(i64, Vec<u8>)> = st.query_map([], |r| Ok((r.get(0)?, r.get(1)?))).unwrap().map(Result::unwrap).collect();
    assert!(got == want, "rows differ: {what}");
    let mut want: Vec<_> = want.into_iter().map(|(id, b)| (b, id)).collect();
    want.sort();
    let mut st = c.prepare("SELECT k, id FROM w").unwrap();
    let got: Vec<(Vec<u8>, i64)> = st.query_map([], |r| Ok((r.get(0)?, r.get(1)?))).unwrap().map(Result::unwrap).collect();
    assert!(got == want, "entries differ: {what}");
    let n: i64 = one(c, "SELECT count(*) FROM t INDEXED BY i WHERE b >= x''");
    assert_eq!(n, lengths.len() as i64, "{what}");
    assert_eq!(one::<i64>(c, "SELECT count(*) FROM w WHERE v = 'x'"), lengths.len() as i64, "{what}");
}

/// Everything an application may do with the copy afterwards.
fn goes_on(c: &Connection, what: &str) {
    c.execute_batch(
        "BEGIN;
         INSERT INTO t(b) SELECT randomblob(abs(random() % 3000)) FROM w LIMIT 300;
         UPDATE t SET b = b || x'00112233445566778899' WHERE id % 3 = 0;
         INSERT OR REPLACE INTO w SELECT b, id, 'y' FROM t WHERE id % 2 = 0;
         DELETE FROM w WHERE id % 5 = 1;
         DELETE FROM t WHERE id % 7 = 2;
         CREATE TABLE extra(a UNIQUE, b); INSERT INTO extra SELECT id, b FROM t;
         ALTER TABLE t ADD COLUMN late DEFAULT 'd';
         COMMIT;",
    )
    .unwrap_or_else(|e| panic!("{what}: {e}"));
    ok(c, what);
    c.execute_batch("DROP TABLE w; DELETE FROM extra WHERE rowid % 2; PRAGMA incremental_vacuum(7)")
        .unwrap_or_else(|e| panic!("{what}: {e}"));
    ok(c, what);
    c.execute_batch("PRAGMA incremental_vacuum").unwrap();
    ok(c, what);
    c.execute_batch("VACUUM").unwrap();
    ok(c, what);
}

/// Blob lengths around every threshold of table and index cells, for some usable size.
fn edges(usable: u32) -> Vec<usize> {
    let split = Split::new(usable);
    let mut out: Vec<usize> = (0..40).collect();
    for kind in [PageKind::TableLeaf, PageKind::IndexLeaf] {
        let max = split.max_local(kind) as usize;
        let chunk = usable as usize - 4;
        let min = ((usable as usize - 12) * 32 / 255) - 23;
        // What stands before the blob in a payload takes 4 to 16 bytes.
        let more = if usable > 9000 { 1 } else { 8 };
        for at in [max, min + chunk, min, max + chunk, min + 2 * chunk, max + 2 * chunk, 3 * chunk, usable as usize].into_iter().take(more)
        {
            out.extend(at.saturating_sub(17)..at + 1);
        }
    }
    out
}

#[test]
fn every_page_size_reserve_vacuum_and_encoding() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    for (n, size) in PageSize::ALL.into_iter().enumerate() {
        for (m, reserved) in [0_u8, 8, 32, 255].into_iter().enumerate() {
            if size - u32::from(reserved) < 480 {
                continue;
            }
            for (k, auto_vacuum) in [AutoVacuum::None, AutoVacuum::Full, AutoVacuum::Incremental].into_iter().enumerate() {
                let encoding = [Encoding::Utf8, Encoding::Utf16Le, Encoding::Utf16Be][(n + m + k) % 3];
                let settings = Settings {
                    reserved,
                    encoding,
                    auto_vacuum,
                    user_version: 77,
                    application_id: 0xdead_beef,
                    schema_cookie: 12,
                    page_checksums: reserved == 8,
                    ..Settings::new(PageSize::new(size).unwrap())
                };
                let what = format!("{settings:?}");
                let lengths = edges(size - u32::from(reserved));
                let (summary, trees) = write(&path, settings, &lengths);
                assert_eq!(std::fs::metadata(&path).unwrap().len(), u64::from(summary.pages) * u64::from(size), "{what}");
                let used: u64 = trees.iter().map(|t| t.leaf_pages + t.interior_pages + t.overflow_pages).sum();
                assert_eq!(u64::from(summary.pages), used + summary.map_pages, "{what}");
                let c = Connection::open(&path).unwrap();
                ok(&c, &what);
                same_rows(&c, &lengths, &what);
                assert_eq!(one::<i64>(&c, "PRAGMA user_version"), 77);
                assert_eq!(one::<i64>(&c, "PRAGMA application_id"), i64::from(0xdead_beef_u32 as i32));
                assert_eq!(one::<i64>(&c, "PRAGMA schema_version"), 12);
                assert_eq!(one::<i64>(&c, "PRAGMA page_count"), i64::from(summary.pages));
                assert_eq!(one::<i64>(&c, "PRAGMA freelist_count"), 0);
                assert_eq!(one::<i64>(&c, "PRAGMA auto_vacuum"), k as i64);
                assert_eq!(one::<String>(&c, "PRAGMA encoding"), ["UTF-8", "UTF-16le", "UTF-16be"][(n + m + k) % 3]);
                if (n + m + k) % 2 == 0 || size < 4096 {
                    goes_on(&c, &what);
                }
                drop(c);
                std::fs::remove_file(&path).unwrap();
            }
        }
    }
}

#[test]
fn trees_from_no_row_to_thousands_of_pages() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    for auto_vacuum in [AutoVacuum::None, AutoVacuum::Incremental] {
        let settings = Settings { auto_vacuum, ..Settings::new(PageSize::new(512).unwrap()) };
        let mut depths = std::collections::BTreeSet::new();
        // Every count up to a few leaves: each way a last page can come out.
        for count in (0..260).chain([1000, 3333, 20_000]) {
            for len in [10, 92, 300] {
                if count > 100 && count < 1000 && len != 10 {
                    continue;
                }
                let lengths = vec![len; count];
                let what = format!("{count} of {len}, {auto_vacuum:?}");
                let (_, trees) = write(&path, settings, &lengths);
                depths.extend(trees.iter().map(|t| t.depth));
                let c = Connection::open(&path).unwrap();
                ok(&c, &what);
                same_rows(&c, &lengths, &what);
                if count % 50 == 3 {
                    goes_on(&c, &what);
                }
            }
        }
        assert!(depths.contains(&1) && depths.contains(&4) && depths.last() >= Some(&5), "{depths:?}");
    }
}

#[test]
fn last_pages_of_interior_levels_are_never_empty() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let settings = Settings::new(PageSize::new(512).unwrap());
    // One row a leaf, four index entries a leaf: counts run over the ends of interior pages of several levels.
    for count in (1..700).step_by(3).chain(2480..2530) {
        let lengths = vec![440; count];
        write(&path, settings, &lengths);
        let c = Connection::open(&path).unwrap();
        ok(&c, &format!("{count}"));
        assert_eq!(one::<i64>(&c, "SELECT count(*) FROM w"), count as i64);
    }
}

#[test]
fn payloads_of_megabytes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    for (size, auto_vacuum) in [(512, AutoVacuum::Full), (4096, AutoVacuum::None), (65536, AutoVacuum::Incremental)] {
        let settings = Settings { auto_vacuum, ..Settings::new(PageSize::new(size).unwrap()) };
        let lengths = [3, 5_000_000, 0, 70_000, 2_000_003, 1];
        write(&path, settings, &lengths);
        let c = Connection::open(&path).unwrap();
        ok(&c, "megabytes");
        same_rows(&c, &lengths, "megabytes");
        goes_on(&c, "megabytes");
    }
}

#[test]
fn schemas_that_do_not_fit_on_page_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    for size in [512, 1024, 4096] {
        for auto_vacuum in [AutoVacuum::None, AutoVacuum::Full] {
            let settings = Settings { auto_vacuum, ..Settings::new(PageSize::new(size).unwrap()) };
            let mut counts: Vec<usize> = (0..30).chain([31, 60, 100, 200, 400]).collect();
            if size == 512 {
                counts.extend(150..190);
            }
            for count in counts {
                // Comments of growing length, up to a cell that fills a page other than page 1 to the brim.
                for pad in [0, size as usize - 190, size as usize - 130, size as usize * 3] {
                    if count > 40 && pad > 0 && pad != size as usize - 130 {
                        continue;
                    }
                    let file = File::create(&path).unwrap();
                    let mut db = DatabaseWriter::new(&file, &path, settings).unwrap();
                    let roots = db.reserve_roots(count).unwrap();
                    for &root in &roots {
                        let mut t = TableTree::new(&db, root);
                        t.push(&mut db, 5, &[&record(&[Value::Int(3)])]).unwrap();
                        t.finish(&mut db).unwrap();
                    }
                    let texts: Vec<_> =
                        (0..count).map(|i| (format!("t{i}"), format!("CREATE TABLE t{i}(a /*{}*/)", "x".repeat(pad)))).collect();
                    let rows: Vec<_> = texts.iter().zip(&roots).map(|((n, sql), &r)| ("table", &n[..], &n[..], r, &sql[..])).collect();
                    let summary = schema(&mut db, &rows);
                    let (_, all) = db.finish().unwrap();
                    assert_eq!(
                        u64::from(all.pages),
                        count as u64 + all.map_pages + summary.leaf_pages + summary.interior_pages + summary.overflow_pages
                    );
                    let c = Connection::open(&path).unwrap();
                    let what = format!("{count} tables, {pad} more, {settings:?}");
                    ok(&c, &what);
                    assert_eq!(one::<i64>(&c, "SELECT count(*) FROM sqlite_schema"), count as i64);
                    if count > 0 {
                        assert_eq!(one::<i64>(&c, &format!("SELECT sum(a) FROM t{}", count - 1)), 3);
                        c.execute_batch("INSERT INTO t0 VALUES(1); CREATE TABLE more(x); DROP TABLE t0;").unwrap();
                    } else {
                        c.execute_batch("CREATE TABLE more(x)").unwrap();
                    }
                    ok(&c, &what);
                }
            }
        }
    }
}

#[test]
fn cells_taken_over_as_bytes_give_the_same_file() {
    let dir = tempfile::tempdir().unwrap();
    let settings = Settings::new(PageSize::new(1024).unwrap());
    let mut images = Vec::new();
    for as_cells in [false, true] {
        let path = dir.path().join("a.db");
        let file = File::create(&path).unwrap();
        let mut db = DatabaseWriter::new(&file, &path, settings).unwrap();
        let roots = db.reserve_roots(2).unwrap();
        let mut t = TableTree::new(&db, roots[0]);
        let mut w = IndexTree::new(&db, roots[1]);
        for i in 0..500_u64 {
            let b = blob(i, 8 + i as usize % 90);
            let payload = record(&[Value::Null, Value::Blob(&b)]);
            let key = record(&[Value::Blob(&b), Value::Int(i as i64)]);
            if as_cells {
                let mut cell = Vec::new();
                rootpage::format::cell::encode_cell(&mut cell, None, Some(payload.len() as u64), Some(i as i64), &payload, None);
                cell.extend_from_slice(b"page content behind the cell");
                t.push_cell(&mut db, &cell).unwrap();
                cell.clear();
                rootpage::format::cell::encode_cell(&mut cell, None, Some(key.len() as u64), None, &key, None);
                w.push_cell(&mut db, &cell).unwrap();
            } else {
                t.push(&mut db, i as i64, &[&payload]).unwrap();
                w.push(&mut db, &[&key]).unwrap();
            }
        }
        t.finish(&mut db).unwrap();
        w.finish(&mut db).unwrap();
        schema(
            &mut db,
            &[
                ("table", "t", "t", roots[0], "CREATE TABLE t(id INTEGER PRIMARY KEY, b)"),
                ("index", "i", "t", roots[1], "CREATE INDEX i ON t(b)"),
            ],
        );
        db.finish().unwrap();
        let c = Connection::open(&path).unwrap();
        ok(&c, "cells");
        assert_eq!(one::<i64>(&c, "SELECT count(*) FROM t INDEXED BY i WHERE b >= x''"), 500);
        drop(c);
        images.push(std::fs::read(&path).unwrap());
    }
    assert!(images[0] == images[1]);
}

#[test]
fn records_shorter_than_the_table() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let file = File::create(&path).unwrap();
    let mut db = DatabaseWriter::new(&file, &path, Settings::new(PageSize::new(512).unwrap())).unwrap();
    let roots = db.reserve_roots(1).unwrap();
    let mut t = TableTree::new(&db, roots[0]);
    // Empty payloads: cells of two and three bytes, of which four are allotted.
    for i in 0..1000 {
        t.push(&mut db, i, &[]).unwrap();
    }
    t.finish(&mut db).unwrap();
    schema(&mut db, &[("table", "t", "t", roots[0], "CREATE TABLE t(a DEFAULT 5, b)")]);
    db.finish().unwrap();
    let c = Connection::open(&path).unwrap();
    ok(&c, "short records");
    assert_eq!(one::<i64>(&c, "SELECT sum(a) FROM t"), 5000);
    c.execute_batch("UPDATE t SET b = 1 WHERE rowid % 2; DELETE FROM t WHERE rowid % 3 = 0").unwrap();
    ok(&c, "short records");
}

#[test]
fn roots_without_a_tree_go_to_the_freelist() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    for (auto_vacuum, used) in
        [(AutoVacuum::None, 3), (AutoVacuum::Full, 0), (AutoVacuum::Incremental, 0), (AutoVacuum::Full, 3), (AutoVacuum::Incremental, 3)]
    {
        let file = File::create(&path).unwrap();
        let settings = Settings { auto_vacuum, ..Settings::new(PageSize::new(512).unwrap()) };
        let mut db = DatabaseWriter::new(&file, &path, settings).unwrap();
        let roots = db.reserve_roots(400).unwrap();
        let mut t = TableTree::new(&db, roots[used]);
        t.push(&mut db, 1, &[&record(&[Value::Int(1)])]).unwrap();
        t.finish(&mut db).unwrap();
        schema(&mut db, &[("table", "t", "t", roots[used], "CREATE TABLE t(a)")]);
        if auto_vacuum != AutoVacuum::None && used > 0 {
            assert!(matches!(db.finish(), Err(Error::Usage { .. })));
            continue;
        }
        let (_, summary) = db.finish().unwrap();
        assert_eq!(summary.free_pages, 399);
        let c = Connection::open(&path).unwrap();
        ok(&c, "freelist");
        assert_eq!(one::<i64>(&c, "PRAGMA freelist_count"), 399);
        for sql in ["CREATE TABLE u(a UNIQUE)", "INSERT INTO u VALUES(1),(2)", "PRAGMA incremental_vacuum"] {
            c.execute_batch(sql).unwrap_or_else(|e| panic!("{auto_vacuum:?}: {sql}: {e}"));
        }
        ok(&c, "freelist");
    }
}

#[test]
fn files_beyond_the_lock_byte_page() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    for (size, auto_vacuum) in [(65536, AutoVacuum::None), (4096, AutoVacuum::Full), (1024, AutoVacuum::Incremental)] {
        let size = PageSize::new(size).unwrap();
        let settings = Settings { auto_vacuum, ..Settings::new(size) };
        let lock = size.lock_byte_page();
        let file = File::create(&path).unwrap();
        let mut db = DatabaseWriter::new(&file, &path, settings).unwrap();
        let roots = db.reserve_roots(2).unwrap();
        db.skip_pages_for_test(lock.get() - 20);
        let mut t = TableTree::new(&db, roots[0]);
        for i in 0..200 {
            let b = blob(i, size.len() / 3 * (i as usize % 10));
            t.push(&mut db, i as i64, &[&record(&[Value::Blob(&b)])]).unwrap();
        }
        t.finish(&mut db).unwrap();
        // The second part lies beyond 4 GiB.
        let beyond = u32::try_from((5_u64 << 30) / u64::from(size.get())).unwrap();
        db.skip_pages_for_test(beyond);
        let mut u = TableTree::new(&db, roots[1]);
        for i in 0..200 {
            u.push(&mut db, i as i64, &[&record(&[Value::Blob(&blob(i, 900))])]).unwrap();
        }
        u.finish(&mut db).unwrap();
        schema(&mut db, &[("table", "t", "t", roots[0], "CREATE TABLE t(b)"), ("table", "u", "u", roots[1], "CREATE TABLE u(b)")]);
        db.finish().unwrap();
        let c = Connection::open(&path).unwrap();
        // The pages that the test left out are reported as never used; nothing else may be wrong.
        for table in ["t", "u"] {
            let mut st = c.prepare(&format!("PRAGMA integrity_check({table})")).unwrap();
            let lines: Vec<String> = st.query_map([], |r| r.get(0)).unwrap().map(Result::unwrap).collect();
            assert_eq!(lines, ["ok"], "{size:?}");
            let mut st = c.prepare(&format!("SELECT b FROM {table} ORDER BY rowid")).unwrap();
            for (i, b) in st.query_map([], |r| r.get::<_, Vec<u8>>(0)).unwrap().enumerate() {
                let len = if table == "t" { size.len() / 3 * (i % 10) } else { 900 };
                assert!(b.unwrap() == blob(i as u64, len));
            }
        }
        let mut page = vec![1; size.len()];
        let mut f = File::open(&path).unwrap();
        f.seek(SeekFrom::Start(lock.file_range(size).start)).unwrap();
        f.read_exact(&mut page).unwrap();
        assert!(page.iter().all(|&b| b == 0), "lock-byte page is left alone");
        assert!(std::fs::metadata(&path).unwrap().len() > 5 << 30);
    }
}

#[test]
fn misuse_is_an_error() {
    let file = tempfile::tempfile().unwrap();
    let path = Path::new("x.db");
    let size = PageSize::new(512).unwrap();
    let usage = |e: Error| assert!(matches!(e, Error::Usage { .. }), "{e}");
    usage(DatabaseWriter::new(&file, path, Settings { reserved: 33, ..Settings::new(size) }).unwrap_err());
    usage(DatabaseWriter::new(&file, path, Settings { page_checksums: true, ..Settings::new(size) }).unwrap_err());
    let mut db = DatabaseWriter::new(&file, path, Settings { auto_vacuum: AutoVacuum::Full, ..Settings::new(size) }).unwrap();
    let root = db.reserve_roots(1).unwrap()[0];
    let mut t = TableTree::new(&db, root);
    t.push(&mut db, 5, &[&[1]]).unwrap();
    usage(t.push(&mut db, 5, &[&[1]]).unwrap_err());
    usage(t.push(&mut db, -5, &[&[1]]).unwrap_err());
    for strange in [&[][..], &[0xff; 3], &[0xff; 40], &[0x83, 0xff, 1, 9], &[200, 1]] {
        usage(t.push_cell(&mut db, strange).unwrap_err());
    }
    t.finish(&mut db).unwrap();
    usage(TableTree::new(&db, root).finish(&mut db).unwrap_err());
    usage(IndexTree::new(&db, RootPage(PageNo::ONE)).finish(&mut db).unwrap_err());
    let big = TableTree::new(&db, RootPage(PageNo::new(99).unwrap()));
    usage(big.finish(&mut db).unwrap_err());
    let mut late = IndexTree::new(&db, root);
    for i in 0..200 {
        late.push(&mut db, &[&record(&[Value::Int(i)])]).unwrap();
    }
    usage(db.reserve_roots(1).unwrap_err());
    db.skip_pages_for_test(0xffff_fffd);
    let many = vec![7; 100_000];
    assert!(matches!(late.push(&mut db, &[&many]), Err(Error::Limit { .. })));
}

#[test]
fn a_whole_output_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out.db");
    let out = OutputFile::create(&path, false, &[]).unwrap();
    let mut db =
        DatabaseWriter::new(out.file(), out.path(), Settings { wal: true, ..Settings::new(PageSize::new(4096).unwrap()) }).unwrap();
    let roots = db.reserve_roots(1).unwrap();
    TableTree::new(&db, roots[0]).finish(&mut db).unwrap();
    schema(&mut db, &[("table", "t", "t", roots[0], "CREATE TABLE t(a)")]);
    db.finish().unwrap();
    out.commit().unwrap();
    let header = std::fs::read(&path).unwrap();
    let header = DatabaseHeader::read(&header).unwrap();
    assert_eq!((header.read_version, header.page_count, header.version_valid_for), (2, 3 - 1, 1));
    let again = Settings::from_header(&header).unwrap();
    assert_eq!(again, Settings { wal: false, ..Settings::new(PageSize::new(4096).unwrap()) });
    let c = Connection::open(&path).unwrap();
    ok(&c, "out");
    assert_eq!(one::<String>(&c, "PRAGMA journal_mode"), "wal");
    drop(c);
    assert!(OpenOptions::new().read(true).open(&path).is_ok());
    assert!(matches!(OutputFile::create(&path, false, &[]), Err(Error::Exists { .. })));
}
