//! The history that the evidence tells against what the writers did: commit by commit, branch by branch, version by version.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rootpage::ctx::Ctx;
use rootpage::history::Target;
use rootpage::report::export::JsonLines;
use rootpage::report::history::{CommitTold, History};
use rootpage::verbs::{self, Inputs, Options, Snapshot};
use rusqlite::Connection;
use rusqlite::types::Value;

fn writer(path: &Path) -> Connection {
    let db = Connection::open(path).unwrap();
    db.execute_batch(
        "PRAGMA page_size=1024; PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0; PRAGMA synchronous=OFF;
         CREATE TABLE m(id INTEGER PRIMARY KEY, s TEXT, body TEXT); CREATE INDEX ms ON m(s);
         CREATE TABLE k(key TEXT PRIMARY KEY, n) WITHOUT ROWID; CREATE TABLE t(key TEXT PRIMARY KEY, v);",
    )
    .unwrap();
    db
}

/// Small numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, n: u64) -> i64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        i64::try_from((self.0 >> 33) % n).unwrap()
    }
}

fn transaction(db: &Connection, dice: &mut Dice, tag: &str) {
    db.execute_batch("BEGIN").unwrap();
    // One row of its own, so that no transaction is empty.
    db.execute("INSERT INTO m(s, body) VALUES(?1, ?1)", [tag]).unwrap();
    for _ in 0..=dice.roll(5) {
        let (id, n) = (dice.roll(200), dice.roll(90));
        match dice.roll(6) {
            0 | 1 => {
                let body = tag.repeat(usize::try_from(1 + dice.roll(400)).unwrap());
                db.execute("INSERT OR REPLACE INTO m VALUES(?1, ?2, ?3)", (id, format!("{tag}{}", id % 7), body)).unwrap();
            }
            2 => drop(db.execute("DELETE FROM m WHERE id = ?1", [id]).unwrap()),
            3 => drop(db.execute("INSERT OR REPLACE INTO k VALUES(?1, ?2)", (format!("k{n}"), id)).unwrap()),
            4 => drop(db.execute("INSERT OR REPLACE INTO t VALUES(?1, ?2)", (format!("t{n}"), id)).unwrap()),
            _ => drop(db.execute("UPDATE m SET s = ?2 WHERE id IN (7, ?1)", (id, format!("{tag}{id}"))).unwrap()),
        }
    }
    db.execute_batch("COMMIT").unwrap();
}

/// Rows of the three tables by their declared keys.
fn dump(db: &Connection) -> BTreeMap<&'static str, BTreeMap<String, String>> {
    let mut out = BTreeMap::new();
    for table in ["m", "k", "t"] {
        let mut rows = BTreeMap::new();
        let mut q = db.prepare(&format!("SELECT * FROM {table}")).unwrap();
        let n = q.column_count();
        let mut r = q.query([]).unwrap();
        while let Some(row) = r.next().unwrap() {
            let values: Vec<Value> = (0..n).map(|i| row.get(i).unwrap()).collect();
            rows.insert(format!("{:?}", values[0]), format!("{values:?}"));
        }
        out.insert(table, rows);
    }
    out
}

/// The rows of a state as JSON lines, sorted.
fn lines(inputs: &Inputs) -> Vec<String> {
    let mut out = Vec::new();
    let mut sink = JsonLines::new(&mut out);
    verbs::rows(inputs, &Options::default(), None, &mut sink, &Ctx::default()).unwrap();
    rootpage::report::export::RowSink::finish(&mut sink).unwrap();
    drop(sink);
    let mut lines: Vec<String> = String::from_utf8(out).unwrap().lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// The rows of a state that SQLite itself wrote down as a file of its own.
fn state(db: &Connection, dir: &Path, name: &str) -> Vec<String> {
    let path = dir.join(name);
    db.execute("VACUUM INTO ?1", [path.to_str().unwrap()]).unwrap();
    lines(&Inputs::at_path(&path))
}

fn capture(path: &Path, to: &Path) {
    for ending in ["", "-wal", "-shm"] {
        let from = PathBuf::from(format!("{}{ending}", path.display()));
        if from.exists() {
            std::fs::copy(from, format!("{}{ending}", to.display())).unwrap();
        }
    }
}

fn told(inputs: &Inputs, row: Option<&Target>) -> History {
    verbs::history(inputs, &Options::default(), row, &Ctx::default()).unwrap()
}

fn counts(c: &CommitTold) -> BTreeMap<String, [u64; 3]> {
    c.objects
        .iter()
        .filter(|o| o.name.len() == 1 && o.added + o.removed + o.changed > 0)
        .map(|o| (o.name.clone(), [o.added, o.removed, o.changed]))
        .collect()
}

fn at(path: &Path, snapshot: Snapshot) -> Inputs {
    Inputs { at: Some(snapshot), ..Inputs::at_path(path) }
}

#[test]
fn every_commit_is_read_as_it_was_and_says_what_it_did() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let db = writer(&path);
    let mut dice = Dice(3);
    db.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let mut before = dump(&db);
    let mut want = Vec::new();
    let mut states = Vec::new();
    let seven = |db: &Connection| -> Option<(String, String)> {
        db.query_row("SELECT s, body FROM m WHERE id = 7", [], |r| Ok((r.get(0)?, r.get(1)?))).ok()
    };
    let mut versions = Vec::new();
    let mut row = seven(&db);
    for n in 0..200 {
        transaction(&db, &mut dice, &format!("w{n}"));
        let now = dump(&db);
        let mut did = BTreeMap::new();
        for (table, rows) in &now {
            let old = &before[table];
            let added = rows.keys().filter(|k| !old.contains_key(*k)).count() as u64;
            let removed = old.keys().filter(|k| !rows.contains_key(*k)).count() as u64;
            let changed = rows.iter().filter(|(k, v)| old.get(*k).is_some_and(|o| o != *v)).count() as u64;
            if added + removed + changed > 0 {
                did.insert((*table).to_owned(), [added, removed, changed]);
            }
        }
        want.push(did);
        if n % 10 == 9 {
            states.push((n + 1, state(&db, dir.path(), &format!("s{n}.db"))));
        }
        let then = seven(&db);
        if then != row {
            versions.push((n + 1, then.clone()));
            row = then;
        }
        before = now;
    }
    let copy = dir.path().join("copy.db");
    capture(&path, &copy);
    let history = told(&Inputs::at_path(&copy), None);
    assert_eq!(history.branches.len(), 1);
    let commits = &history.branches[0].commits;
    assert_eq!(commits.len(), 200);
    for (n, (c, want)) in commits.iter().zip(&want).enumerate() {
        assert_eq!(counts(c), *want, "commit {}", n + 1);
    }
    for (n, rows) in &states {
        assert_eq!(lines(&at(&copy, Snapshot::Commit(*n))), *rows, "commit {n}");
    }
    let shm = history.shm.unwrap();
    assert!(shm.reaches_head && shm.same_generation && shm.other_pages == 0, "{shm:?}");
    let target = Target { table: "m".to_owned(), key: vec!["7".to_owned()] };
    let row = told(&Inputs::at_path(&copy), Some(&target)).row.unwrap();
    let got: Vec<(u32, Option<(String, String)>)> = row
        .versions
        .iter()
        .map(|v| {
            let text = |i: usize| v.values[i].value.as_str().unwrap().to_owned();
            (v.commit.unwrap(), (!v.values.is_empty()).then(|| (text(1), text(2))))
        })
        .collect();
    assert_eq!(got, versions);
}

/// Two writers that go on from the same commit without seeing each other: `b` stands at the front of the mixed log, the end of
/// `a` behind it. Gives the path of the mixed capture, and the rows after each commit of both.
fn two_writers(dir: &Path, seed: u64) -> (PathBuf, Vec<Vec<String>>, Vec<Vec<String>>) {
    let path = dir.join("a.db");
    let db = writer(&path);
    let mut dice = Dice(seed);
    for n in 0..30 {
        transaction(&db, &mut dice, &format!("base{n}"));
    }
    db.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    transaction(&db, &mut dice, "shared");
    let other = dir.join("b.db");
    capture(&path, &other);
    let _ = std::fs::remove_file(dir.join("b.db-shm"));
    let (mut a_states, mut b_states) = (Vec::new(), Vec::new());
    for n in 0..8 {
        transaction(&db, &mut dice, &format!("a{n}"));
        a_states.push(state(&db, dir, &format!("a{n}.db")));
    }
    let mixed = dir.join("mixed.db");
    capture(&path, &mixed);
    let b = Connection::open(&other).unwrap();
    b.execute_batch("PRAGMA wal_autocheckpoint=0").unwrap();
    b.execute_batch("BEGIN; INSERT INTO m(s, body) VALUES('b', 'first'), ('b', 'second'), ('b', 'third'); COMMIT").unwrap();
    b_states.push(state(&b, dir, "b0.db"));
    let ours = std::fs::read(dir.join("b.db-wal")).unwrap();
    let theirs = std::fs::read(dir.join("mixed.db-wal")).unwrap();
    assert!(ours.len() < theirs.len());
    std::fs::copy(dir.join("mixed.db-wal"), dir.join("a-whole-wal")).unwrap();
    std::fs::write(dir.join("mixed.db-wal"), [&ours[..], &theirs[ours.len()..]].concat()).unwrap();
    (mixed, a_states, b_states)
}

#[test]
fn two_writers_in_one_log_are_told_apart_and_both_are_read() {
    for seed in [11, 12, 13, 14] {
        let dir = tempfile::tempdir().unwrap();
        let (mixed, a, b) = two_writers(dir.path(), seed);
        let history = told(&Inputs::at_path(&mixed), None);
        assert_eq!(history.branches.len(), 2, "{seed}: {:?}", history.notes);
        let fork = &history.branches[1];
        assert_eq!((fork.kind.as_str(), fork.leaves_at, fork.unseen), ("fork", 1, 1), "{seed}");
        assert!(fork.overwritten > 0 && fork.overwritten_pages.len() == fork.overwritten as usize, "{seed}: the -shm is the writer's");
        assert_eq!(history.exit_code, 2);
        assert_eq!(lines(&Inputs::at_path(&mixed)), b[0], "{seed}: what SQLite shows");
        // With the capture of the other writer's log its branch is whole at every commit.
        let mut both = at(&mixed, Snapshot::Branch("b1".to_owned()));
        both.wal = vec![dir.path().join("mixed.db-wal"), dir.path().join("a-whole-wal")];
        let history = told(&Inputs { at: None, ..both.clone() }, None);
        assert_eq!(history.branches.len(), 2, "{seed}: the fragment is the end of the whole branch");
        assert_eq!((history.branches[1].commits.len(), history.branches[1].leaves_at), (8, 1), "{seed}");
        assert_eq!(lines(&both), a[7], "{seed}: the whole branch");
        for (n, state) in a.iter().enumerate() {
            let frame = history.branches[1].commits[n].frame;
            let mut one = both.clone();
            one.wal = vec![dir.path().join("a-whole-wal")];
            one.at = Some(Snapshot::Commit(u32::try_from(n).unwrap() + 2));
            assert_eq!(lines(&one), *state, "{seed}: commit {n}, frame {frame}");
        }
    }
}

#[test]
fn logs_that_follow_one_another_are_read_as_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let db = writer(&path);
    db.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let base = dir.path().join("base.db");
    std::fs::copy(&path, &base).unwrap();
    let mut wals = Vec::new();
    for n in 0..4 {
        db.execute("INSERT INTO m(s, body) VALUES('s', ?1)", [n]).unwrap();
        let wal = dir.path().join(format!("gen{n}-wal"));
        std::fs::copy(dir.path().join("a.db-wal"), &wal).unwrap();
        wals.push(wal);
        db.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    }
    let want = state(&db, dir.path(), "s.db");
    // In whatever order they are given.
    for order in [[0, 1, 2, 3], [2, 0, 3, 1]] {
        let inputs = Inputs { wal: order.iter().map(|i| wals[*i].clone()).collect(), ..Inputs::at_path(&base) };
        assert_eq!(lines(&inputs), want);
        let history = told(&inputs, None);
        assert_eq!((history.branches.len(), history.branches[0].commits.len(), history.exit_code), (1, 4, 0), "{:?}", history.notes);
        let second = Inputs { at: Some(Snapshot::Commit(2)), ..inputs };
        assert_eq!(lines(&second).iter().filter(|l| l.contains("\"m\"")).count(), 2);
    }
}

#[test]
fn two_logs_on_one_state_are_two_branches() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let db = writer(&path);
    for n in 0..20 {
        db.execute("INSERT INTO m(s, body) VALUES('s', ?1)", [n]).unwrap();
    }
    db.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    drop(db);
    let mut states = Vec::new();
    for name in ["x", "y"] {
        let copy = dir.path().join(format!("{name}.db"));
        std::fs::copy(&path, &copy).unwrap();
        let db = Connection::open(&copy).unwrap();
        db.execute_batch("PRAGMA wal_autocheckpoint=0").unwrap();
        for n in 0..3 {
            db.execute("INSERT INTO m(s, body) VALUES(?1, ?2)", (name, n)).unwrap();
        }
        std::fs::copy(dir.path().join(format!("{name}.db-wal")), dir.path().join(format!("{name}-wal"))).unwrap();
        states.push(state(&db, dir.path(), &format!("{name}-s.db")));
    }
    let wal = vec![dir.path().join("x-wal"), dir.path().join("y-wal")];
    let inputs = Inputs { wal, ..Inputs::at_path(&path) };
    assert_eq!(lines(&inputs), states[0]);
    let history = told(&inputs, None);
    assert_eq!((history.branches[1].kind.as_str(), history.exit_code), ("independent reset", 2));
    assert_eq!(lines(&Inputs { at: Some(Snapshot::Branch("b1".to_owned())), ..inputs }), states[1]);
}

#[test]
fn a_lost_checkpoint_is_named_and_its_branch_has_the_rows() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let db = writer(&path);
    for n in 0..60 {
        db.execute("INSERT INTO m(s, body) VALUES('s', ?1)", ["x".repeat(100 + n)]).unwrap();
    }
    db.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let stale = std::fs::read(&path).unwrap();
    for n in 0..40 {
        db.execute("INSERT INTO m(s, body) VALUES('t', ?1)", ["y".repeat(100 + n)]).unwrap();
    }
    db.execute_batch("PRAGMA wal_checkpoint(RESTART)").unwrap();
    let copy = dir.path().join("copy.db");
    db.execute("INSERT INTO k VALUES('after', 1)", []).unwrap();
    capture(&path, &copy);
    assert_eq!(told(&Inputs::at_path(&copy), None).branches.len(), 1, "a whole checkpoint is none that was lost");
    let want = state(&db, dir.path(), "s.db");
    std::fs::write(&copy, stale).unwrap();
    let history = told(&Inputs::at_path(&copy), None);
    let lost = history.branches.iter().find(|b| b.kind == "lost checkpoint").unwrap();
    assert!(!lost.overwritten_pages.is_empty());
    assert_eq!(lines(&at(&copy, Snapshot::Branch(lost.name.clone()))), want);
}

#[test]
fn several_files_of_one_store_are_put_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("now.db");
    let db = Connection::open(&path).unwrap();
    db.execute_batch("CREATE TABLE m(id INTEGER PRIMARY KEY, s)").unwrap();
    let mut files = Vec::new();
    for n in 0..3 {
        db.execute("INSERT INTO m(s) VALUES(?1)", [n]).unwrap();
        let copy = dir.path().join(format!("backup{}.db", 9 - n));
        std::fs::copy(&path, &copy).unwrap();
        files.push(copy);
    }
    let inputs: Vec<Inputs> = [&files[1], &files[2], &files[0]].iter().map(|p| Inputs::at_path(p)).collect();
    let history = verbs::history_of_files(&inputs, &Options::default(), &Ctx::default()).unwrap();
    let order: Vec<&str> = history.files.iter().map(|f| f.path.as_str()).collect();
    assert_eq!(order, files.iter().map(|f| f.to_str().unwrap()).collect::<Vec<_>>());
    assert_eq!(history.files[2].objects[0].added, 1);
}
