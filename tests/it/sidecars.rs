//! The state that the evidence shows against the state that real SQLite shows: WAL and rollback journal.

use std::path::{Path, PathBuf};

use rootpage::ctx::Ctx;
use rootpage::evidence::{Evidence, OpenOptions, OtherState, PageSource, Sources, Verdict, VersionClass, View};
use rootpage::finding::{Code, Findings};
use rootpage::ids::PageNo;
use rusqlite::{Connection, params};

struct Capture {
    main: Vec<u8>,
    wal: Option<Vec<u8>>,
    journal: Option<Vec<u8>>,
}

struct Bench {
    dir: tempfile::TempDir,
    db: Connection,
}

impl Bench {
    fn new(size: u32, mode: &str) -> Bench {
        let dir = tempfile::tempdir().unwrap();
        let db = Connection::open(dir.path().join("b.db")).unwrap();
        db.execute_batch(&format!("PRAGMA page_size={size}; PRAGMA journal_mode={mode}; PRAGMA wal_autocheckpoint=0; CREATE TABLE m(id INTEGER PRIMARY KEY, s TEXT, body TEXT); CREATE INDEX m_s ON m(s); CREATE TABLE k(key TEXT PRIMARY KEY, n) WITHOUT ROWID;")).unwrap();
        Bench { dir, db }
    }

    fn fill(&self, from: i64, to: i64, tag: &str) {
        for i in from..to {
            self.db
                .execute(
                    "INSERT OR REPLACE INTO m VALUES(?1, ?2, ?3)",
                    params![i, format!("{tag}{}", i % 7), format!("{tag} body {i} ").repeat(1 + (i as usize * 13) % 40)],
                )
                .unwrap();
            self.db.execute("INSERT OR REPLACE INTO k VALUES(?1, ?2)", params![format!("{tag}-{i}"), i]).unwrap();
        }
    }

    fn commit(&self, from: i64, to: i64, tag: &str) {
        self.db.execute_batch("BEGIN").unwrap();
        self.fill(from, to, tag);
        self.db.execute_batch("COMMIT").unwrap();
    }

    fn read(&self, suffix: &str) -> Vec<u8> {
        std::fs::read(self.dir.path().join(format!("b.db{suffix}"))).unwrap_or_default()
    }

    fn capture(&self) -> Capture {
        let some = |b: Vec<u8>| (!b.is_empty()).then_some(b);
        Capture { main: self.read(""), wal: some(self.read("-wal")), journal: some(self.read("-journal")) }
    }
}

impl Capture {
    fn put(&self, dir: &Path) -> PathBuf {
        let path = dir.join("in.db");
        std::fs::write(&path, &self.main).unwrap();
        for (suffix, bytes) in [("-wal", &self.wal), ("-journal", &self.journal)] {
            if let Some(b) = bytes {
                std::fs::write(dir.join(format!("in.db{suffix}")), b).unwrap();
            }
        }
        path
    }

    /// The file as SQLite leaves it after recovery and a full checkpoint on a private copy.
    fn by_sqlite(&self) -> Vec<u8> {
        let dir = tempfile::tempdir().unwrap();
        let path = self.put(dir.path());
        let db = Connection::open(&path).unwrap();
        let _: i64 = db.query_row("SELECT count(*) FROM sqlite_master", [], |r| r.get(0)).unwrap();
        let _ = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |r| r.get::<_, i64>(0));
        drop(db);
        std::fs::read(&path).unwrap()
    }

    fn view<T>(&self, look: impl FnOnce(&View<'_>, &Findings) -> T) -> T {
        self.view_at(|_| {}, look)
    }

    fn view_at<T>(&self, set: impl FnOnce(&mut Sources), look: impl FnOnce(&View<'_>, &Findings) -> T) -> T {
        let dir = tempfile::tempdir().unwrap();
        let path = self.put(dir.path());
        let before: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        let mut sources = Sources { db: path, ..Sources::default() };
        set(&mut sources);
        let evidence = Evidence::open(&sources, &Ctx::default(), &OpenOptions::new()).unwrap();
        let mut log = Findings::new(20);
        let view = evidence.view(&mut log).unwrap().expect("a view");
        let out = look(&view, &log);
        assert_eq!(evidence.recheck(&Ctx::default()).unwrap(), None);
        assert_eq!(before.len(), std::fs::read_dir(dir.path()).unwrap().count());
        out
    }
}

fn same_pages(view: &View<'_>, file: &[u8], what: &str) {
    let size = view.snapshot.page_size().len();
    assert_eq!(view.snapshot.page_count() as usize, file.len() / size, "{what}: pages");
    for (i, image) in file.chunks(size).enumerate() {
        let page = view.snapshot.page(PageNo::from_index(i).unwrap()).unwrap();
        assert!(page.bytes == image, "{what}: page {} from {:?} differs", i + 1, page.origin);
    }
}

fn agrees(capture: &Capture, what: &str) {
    let file = capture.by_sqlite();
    capture.view(|view, log| {
        same_pages(view, &file, what);
        for fit in [&view.wal_fit, &view.journal_fit].into_iter().flatten() {
            assert_eq!(fit.verdict, Verdict::Same, "{what}: {fit:?} {:?}", log.kept());
        }
    });
}

const SIZES: [u32; 4] = [512, 1024, 4096, 65536];

fn wal_bench(size: u32) -> (Bench, Vec<usize>) {
    let b = Bench::new(size, "WAL");
    b.commit(0, 300, "w");
    b.db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    let mut ends = Vec::new();
    for k in 0..6 {
        b.commit(300 + 40 * k, 340 + 40 * k, "x");
        b.db.execute("DELETE FROM m WHERE id % 17 = ?1", [k]).unwrap();
        ends.push(b.read("-wal").len());
    }
    (b, ends)
}

#[test]
fn committed_torn_flipped_and_extended_logs() {
    for size in SIZES {
        let (b, ends) = wal_bench(size);
        let whole = b.capture();
        let frame = size as usize + 24;
        agrees(&whole, &format!("{size} committed"));
        let wal = whole.wal.clone().unwrap();
        let with = |wal: Vec<u8>| Capture { main: whole.main.clone(), wal: Some(wal), journal: None };
        agrees(&with(wal[..wal.len() - size as usize / 2].to_vec()), &format!("{size} short frame"));
        for (at, what) in [
            (ends[3] - frame + 24 + 100, "flip in image"),
            (ends[3] - frame + 1, "flip in page number"),
            (ends[2] - frame + 9, "flip in salt"),
            (ends[4] - 3 * frame + 6, "flip in commit word"),
        ] {
            let mut bad = wal.clone();
            bad[at] ^= 4;
            agrees(&with(bad.clone()), &format!("{size} {what}"));
            with(bad).view(|_, log| {
                assert!(
                    log.count(Code::FrameChecksum) + log.count(Code::WalJunk) + log.count(Code::FrameOlder) > 0,
                    "{what} {:?}",
                    log.kept()
                )
            });
        }
        let mut junk = wal.clone();
        junk.extend((0..3 * frame + 11).map(|i| (i * 7 % 251) as u8));
        agrees(&with(junk), &format!("{size} junk tail"));
        let mut zeros = wal.clone();
        zeros.resize(wal.len() + 5 * frame, 0);
        agrees(&with(zeros), &format!("{size} zero tail"));
        agrees(&with(Vec::new()), &format!("{size} empty"));
        agrees(&Capture { main: whole.main.clone(), wal: None, journal: None }, &format!("{size} missing"));
        let mut header = wal.clone();
        header[..32].fill(0x5a);
        agrees(&with(header.clone()), &format!("{size} header garbage"));
        with(header).view(|view, log| {
            assert_eq!(log.count(Code::WalHeaderBad), 1);
            let history: usize = view
                .snapshot
                .pages_with_history()
                .map(|no| view.snapshot.versions(no).filter(|v| v.class == VersionClass::Detached).count())
                .sum();
            assert_eq!(history, (wal.len() - 32) / frame, "{size}: every frame stays reachable");
        });
        agrees(&with(b"this is text, not a log\n".repeat(60).to_vec()), &format!("{size} text"));
        // Whatever bytes 18 and 19 say.
        let mut legacy = whole.main.clone();
        legacy[18..20].fill(1);
        let file = Capture { main: legacy.clone(), ..with(wal.clone()) };
        file.view(|view, _| same_pages(view, &whole.by_sqlite(), "legacy header"));
    }
}

#[test]
fn uncommitted_tails_and_older_generations() {
    for size in SIZES {
        let (b, _) = wal_bench(size);
        let committed = b.capture().wal.unwrap().len();
        b.db.execute_batch("PRAGMA cache_size=5; BEGIN").unwrap();
        b.fill(5000, 5400, "u");
        let spilled = b.capture();
        if size < 65536 {
            assert!(spilled.wal.as_ref().unwrap().len() > committed);
            spilled.view(|_, log| assert_eq!(log.count(Code::FramesUncommitted), 1));
        }
        agrees(&spilled, &format!("{size} uncommitted"));
        b.db.execute_batch("ROLLBACK; PRAGMA cache_size=-2000").unwrap();
        b.db.query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(())).unwrap();
        b.commit(900, 910, "g");
        let second = b.capture();
        agrees(&second, &format!("{size} older generation"));
        second.view(|view, log| {
            assert!(log.count(Code::FrameOlder) == 1, "{:?}", log.kept());
            let older =
                view.snapshot.pages_with_history().any(|no| view.snapshot.versions(no).any(|v| v.class == VersionClass::OlderGeneration));
            assert!(older);
        });
    }
}

#[test]
fn every_commit_is_a_state() {
    let (b, ends) = wal_bench(1024);
    let whole = b.capture();
    // Two commits a round: one by the inserts, one by the DELETE.
    for (i, end) in ends.iter().enumerate() {
        let cut = Capture { wal: Some(whole.wal.as_ref().unwrap()[..*end].to_vec()), main: whole.main.clone(), journal: None };
        let file = cut.by_sqlite();
        let commit = 2 * (i as u32 + 1);
        whole.view_at(
            |s| s.at = Some(rootpage::evidence::At::Commit(commit)),
            |view, _| same_pages(view, &file, &format!("commit {commit}")),
        );
    }
    whole.view_at(|s| s.no_wal = true, |view, _| same_pages(view, &whole.main, "no wal"));
}

#[test]
fn a_shrunken_database() {
    let b = Bench::new(1024, "WAL");
    b.commit(0, 600, "w");
    b.db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    b.db.execute_batch("DELETE FROM m WHERE id > 20; VACUUM").unwrap();
    agrees(&b.capture(), "vacuum in the log");
}

fn hot(size: u32) -> (Bench, Capture) {
    let b = Bench::new(size, "DELETE");
    b.commit(0, 400, "w");
    b.db.execute_batch("PRAGMA cache_size=5; BEGIN; UPDATE m SET body = 'x' || body; DELETE FROM m WHERE id % 3 = 0;").unwrap();
    b.fill(9000, 9400, "n");
    let c = b.capture();
    (b, c)
}

#[test]
fn hot_journals_are_rolled_back() {
    for size in SIZES {
        let (_b, c) = hot(size);
        assert!(c.journal.is_some());
        agrees(&c, &format!("{size} hot"));
        let journal = c.journal.clone().unwrap();
        let with = |j: Vec<u8>| Capture { main: c.main.clone(), journal: Some(j), wal: None };
        // A torn or flipped journal cannot be asked of SQLite's opinion on sound pages: it rolls back as far as it goes.
        for cut in [journal.len() - 10, journal.len() / 2, journal.len() / 3] {
            let part = with(journal[..cut].to_vec());
            let file = part.by_sqlite_rough();
            part.view(|view, _| same_bytes(view, &file, &format!("{size} cut at {cut}")));
        }
        let sector = u32::from_be_bytes(journal[20..24].try_into().unwrap()) as usize;
        let record = size as usize + 8;
        let mut flip = journal.clone();
        flip[sector + record - 1] ^= 1;
        let part = with(flip);
        let file = part.by_sqlite_rough();
        part.view(|view, log| {
            same_bytes(view, &file, &format!("{size} flipped checksum"));
            assert_eq!(log.count(Code::JournalChecksum), 1);
        });
        let mut finished = journal.clone();
        finished[..28].fill(0);
        with(finished).view(|view, log| {
            assert_eq!(view.snapshot.page(PageNo::new(2).unwrap()).unwrap().bytes, &c.main[size as usize..2 * size as usize]);
            assert_eq!(log.count(Code::JournalHot), 0);
            let history: usize = view
                .snapshot
                .pages_with_history()
                .map(|no| view.snapshot.versions(no).filter(|v| v.class == VersionClass::BeforeImage).count())
                .sum();
            let all = c.view(|v, _| v.journal.as_ref().unwrap().records.len());
            assert_eq!(history, all, "{size}: images found without the first header");
        });
    }
}

impl Capture {
    /// As [`Capture::by_sqlite`], for journals whose rollback leaves a file that SQLite may not read.
    fn by_sqlite_rough(&self) -> Vec<u8> {
        let dir = tempfile::tempdir().unwrap();
        let path = self.put(dir.path());
        let db = Connection::open(&path).unwrap();
        let _ = db.query_row("SELECT count(*) FROM sqlite_master", [], |r| r.get::<_, i64>(0));
        drop(db);
        std::fs::read(&path).unwrap()
    }
}

fn same_bytes(view: &View<'_>, file: &[u8], what: &str) {
    same_pages(view, file, what);
}

#[test]
fn super_journals_leave_both_states() {
    let (_b, c) = hot(1024);
    let mut journal = c.journal.clone().unwrap();
    rootpage::format::journal::encode_super_journal(
        &mut journal,
        b"/nowhere/x-mj1",
        rootpage::ids::PageSize::new(1024).unwrap().lock_byte_page(),
    );
    let named = Capture { main: c.main.clone(), journal: Some(journal), wal: None };
    let rolled = c.by_sqlite();
    let kept = named.by_sqlite_rough();
    named.view(|view, log| {
        assert_eq!(log.count(Code::SuperJournalAbsent), 1);
        assert_eq!(view.snapshot.page(PageNo::ONE).unwrap().bytes, &kept[..1024]);
        let other = &view.others.iter().find(|(s, _)| *s == OtherState::RolledBack).unwrap().1;
        assert_eq!(other.page_count() as usize, rolled.len() / 1024);
        assert_eq!(other.page(PageNo::new(3).unwrap()).unwrap().bytes, &rolled[2048..3072]);
    });
    named.view_at(|s| s.super_journal = Some(true), |view, _| same_pages(view, &rolled, "present"));
}

fn stranger(size: u32, mode: &str, tables: u32) -> Bench {
    let b = Bench { dir: tempfile::tempdir().unwrap(), db: Connection::open_in_memory().unwrap() };
    let db = Connection::open(b.dir.path().join("b.db")).unwrap();
    db.execute_batch(&format!("PRAGMA page_size={size}; PRAGMA journal_mode={mode}; PRAGMA wal_autocheckpoint=0;")).unwrap();
    for t in 0..tables {
        db.execute_batch(&format!("CREATE TABLE other{t}(a TEXT, b BLOB); CREATE INDEX oi{t} ON other{t}(a);")).unwrap();
    }
    Bench { dir: b.dir, db }
}

fn spread(db: &Connection, from: i64, to: i64) {
    db.execute_batch("BEGIN").unwrap();
    for i in from..to {
        db.execute("INSERT INTO other0 VALUES(?1, zeroblob(?2))", params![format!("value {i}"), 30 + i % 300]).unwrap();
    }
    db.execute_batch("COMMIT").unwrap();
}

#[test]
fn a_foreign_log_is_not_blended() {
    for size in [1024, 4096] {
        let (b, _) = wal_bench(size);
        let own = b.capture();
        for other_size in [size, 2048] {
            for tables in [1, 3] {
                let x = stranger(other_size, "WAL", tables);
                spread(&x.db, 0, 400);
                // With page 1 in the log.
                let mixed = Capture { main: own.main.clone(), wal: x.capture().wal, journal: None };
                mixed.view(|view, log| {
                    assert_eq!(view.wal_fit.as_ref().unwrap().verdict, Verdict::Foreign, "{size} {other_size} {tables} {:?}", view.wal_fit);
                    assert_eq!(log.count(Code::WalForeign), 1);
                    same_pages(view, &own.main, "foreign log");
                });
                // Without: only leaves change, the number of pages stays.
                x.db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
                x.db.execute_batch("UPDATE other0 SET b = CAST(substr(hex(zeroblob(400)), 1, length(b)) AS BLOB) WHERE rowid % 5 = 0")
                    .unwrap();
                let mixed = Capture { main: own.main.clone(), wal: x.capture().wal, journal: None };
                mixed.view(|view, _| {
                    assert_eq!(view.wal_fit.as_ref().unwrap().verdict, Verdict::Foreign, "{size} {other_size} {tables} {:?}", view.wal_fit);
                    same_pages(view, &own.main, "foreign log without page 1");
                });
            }
        }
    }
}

#[test]
fn a_foreign_journal_is_not_rolled_back() {
    let b = Bench::new(1024, "DELETE");
    b.commit(0, 400, "w");
    let own = b.capture();
    for size in [1024, 4096] {
        let x = stranger(size, "DELETE", 2);
        spread(&x.db, 0, 400);
        x.db.execute_batch("PRAGMA cache_size=5; BEGIN; UPDATE other0 SET a = 'x' || a;").unwrap();
        let mixed = Capture { main: own.main.clone(), wal: None, journal: x.capture().journal };
        mixed.view(|view, log| {
            assert_eq!(view.journal_fit.as_ref().unwrap().verdict, Verdict::Foreign, "{:?}", view.journal_fit);
            assert_eq!(log.count(Code::JournalForeign), 1);
            same_pages(view, &own.main, "foreign journal");
        });
    }
}

#[test]
fn a_log_without_its_main_file() {
    let b = Bench::new(1024, "WAL");
    b.commit(0, 300, "w");
    let whole = b.capture();
    let file = whole.by_sqlite();
    let empty = Capture { main: Vec::new(), wal: whole.wal.clone(), journal: None };
    empty.view(|view, log| {
        same_pages(view, &file, "empty main");
        assert_eq!(log.count(Code::WalWithoutMain), 1);
    });
    let zeros = Capture { main: vec![0; 4096], wal: whole.wal.clone(), journal: None };
    zeros.view(|view, _| same_pages(view, &file, "zeroed main"));
    let clobbered = Capture { main: b"garbage of some kind ".repeat(100), wal: whole.wal.clone(), journal: None };
    clobbered.view(|view, _| same_pages(view, &file, "clobbered main"));
    // The log alone.
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lone.db-wal");
    std::fs::write(&path, whole.wal.unwrap()).unwrap();
    let evidence = Evidence::open(&Sources { db: path, ..Sources::default() }, &Ctx::default(), &OpenOptions::new()).unwrap();
    let mut log = Findings::new(20);
    let view = evidence.view(&mut log).unwrap().unwrap();
    same_pages(&view, &file, "log alone");
}

#[test]
fn hostile_sidecars_never_panic() {
    let (b, _) = wal_bench(1024);
    let (_h, hot) = hot(1024);
    let whole = b.capture();
    let mut seed = 99_u64;
    let mut next = move || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize
    };
    for round in 0..150 {
        let noise: Vec<u8> = (0..next() % 9000).map(|_| next() as u8).collect();
        let mut wal = whole.wal.clone().unwrap();
        let mut journal = hot.journal.clone().unwrap();
        for _ in 0..1 + round % 7 {
            let (i, j) = (next() % wal.len(), next() % journal.len().min(4096));
            wal[i] = next() as u8;
            journal[j] = next() as u8;
            let k = 8 + next() % 24;
            wal[k] = next() as u8;
        }
        for c in [
            Capture { main: whole.main.clone(), wal: Some(noise.clone()), journal: Some(noise.clone()) },
            Capture { main: noise.clone(), wal: Some(wal.clone()), journal: Some(journal.clone()) },
            Capture { main: hot.main.clone(), wal: Some(wal), journal: Some(journal) },
        ] {
            let dir = tempfile::tempdir().unwrap();
            let evidence =
                Evidence::open(&Sources { db: c.put(dir.path()), ..Sources::default() }, &Ctx::default(), &OpenOptions::new()).unwrap();
            let mut log = Findings::new(20);
            if let Some(view) = evidence.view(&mut log).unwrap() {
                for n in 1..=view.snapshot.page_count() {
                    let _ = view.snapshot.page(PageNo::new(n).unwrap()).map(|p| p.bytes.len());
                }
            }
        }
    }
}
