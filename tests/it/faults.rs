//! Faults on the output side: a full disk, a kill at any moment, Ctrl-C, outputs in the way. No half copy is ever in place.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::dbgen;
use crate::judge;
use rusqlite::Connection;

const BIN: &str = env!("CARGO_BIN_EXE_rootpage");

/// A folder with a database that is big enough to be caught in the middle.
fn evidence() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("in.db");
    let mut recipe = dbgen::recipes().into_iter().find(|r| r.name.starts_with("all-1024-UTF-8")).unwrap();
    recipe.parts.retain(|p| p.name != "virtual");
    dbgen::build(&db, &recipe).unwrap();
    (dir, db)
}

fn names(dir: &Path) -> Vec<String> {
    let mut out: Vec<String> = fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    out.sort();
    out
}

fn valid(copy: &Path) {
    let con = Connection::open(copy).unwrap();
    assert_eq!(judge::complaints(&con), Vec::<String>::new());
}

#[test]
fn a_full_disk_leaves_nothing_behind() {
    let (dir, db) = evidence();
    let size = fs::metadata(&db).unwrap().len() / 512;
    // In blocks of 512 bytes; the signal is ignored so that the write fails instead.
    for limit in [0, 1, 4, 50, size / 4, size / 2, size - size / 10] {
        let out = Command::new("sh")
            .args(["-c", "trap '' XFSZ; ulimit -f \"$1\"; shift; exec \"$@\"", "sh", &limit.to_string(), BIN, "recover"])
            .arg(&db)
            .arg("-o")
            .arg(dir.path().join("out.db"))
            .output()
            .unwrap();
        assert_eq!(out.status.code(), Some(74), "limit {limit}: {}", String::from_utf8_lossy(&out.stderr));
        assert_eq!(names(dir.path()), ["in.db"], "limit {limit}");
    }
}

#[test]
fn a_kill_at_any_moment_leaves_no_half_copy() {
    let (dir, db) = evidence();
    let before = fs::read(&db).unwrap();
    let out = dir.path().join("out.db");
    let mut killed = 0;
    for wait in 0..40 {
        let mut child =
            Command::new(BIN).arg("recover").arg(&db).arg("-o").arg(&out).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(wait * 5));
        child.kill().unwrap();
        killed += u32::from(child.wait().unwrap().signal() == Some(9));
        if out.exists() {
            valid(&out);
        }
        for name in names(dir.path()).iter().filter(|n| *n != "in.db") {
            fs::remove_file(dir.path().join(name)).unwrap();
        }
    }
    assert!(killed > 3, "the run was caught {killed} times");
    assert_eq!(fs::read(&db).unwrap(), before);
}

#[test]
fn an_interrupt_leaves_nothing_behind() {
    let (dir, db) = evidence();
    let mut caught = 0;
    for wait in 1..25 {
        let child = Command::new(BIN)
            .arg("recover")
            .arg(&db)
            .arg("-o")
            .arg(dir.path().join("out.db"))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(wait * 8));
        let _ = Command::new("kill").args(["-INT", &child.id().to_string()]).output().unwrap();
        let ended = child.wait_with_output().unwrap();
        match ended.status.code() {
            // The signal came before the handler was there, or after the work was done.
            None => assert_eq!(names(dir.path()), ["in.db"]),
            Some(130) => {
                caught += 1;
                assert_eq!(names(dir.path()), ["in.db"], "{}", String::from_utf8_lossy(&ended.stderr));
            }
            Some(0) => valid(&dir.path().join("out.db")),
            other => panic!("exit {other:?}: {}", String::from_utf8_lossy(&ended.stderr)),
        }
        for name in names(dir.path()).iter().filter(|n| *n != "in.db") {
            fs::remove_file(dir.path().join(name)).unwrap();
        }
    }
    assert!(caught > 0, "no run was caught");
}

#[test]
fn outputs_in_the_way_are_refused_or_moved_aside() {
    for side in ["", "-wal", "-shm", "-journal"] {
        let (dir, db) = evidence();
        let out = dir.path().join("out.db");
        let old = dir.path().join(format!("out.db{side}"));
        fs::write(&old, b"old").unwrap();
        let run = |force: bool| {
            let mut c = Command::new(BIN);
            c.arg("recover").arg(&db).arg("-o").arg(&out);
            if force {
                c.arg("--force");
            }
            c.output().unwrap()
        };
        let refused = run(false);
        assert_eq!(refused.status.code(), Some(74), "{side}: {}", String::from_utf8_lossy(&refused.stderr));
        assert_eq!(fs::read(&old).unwrap(), b"old");
        let done = run(true);
        assert_eq!(done.status.code(), Some(0), "{side}: {}", String::from_utf8_lossy(&done.stderr));
        valid(&out);
        let aside = names(dir.path()).into_iter().filter(|n| fs::read(dir.path().join(n)).unwrap() == b"old").count();
        assert_eq!(aside, 1, "{side}: the old file is kept somewhere: {:?}", names(dir.path()));
        assert!(side.is_empty() || !old.exists(), "{side} would show old data through the copy");
    }
    // A folder that is not there, and one that cannot be written.
    let (dir, db) = evidence();
    for out in [dir.path().join("no/out.db"), PathBuf::from("/proc/out.db")] {
        let ran = Command::new(BIN).arg("recover").arg(&db).arg("-o").arg(out).output().unwrap();
        assert_eq!(ran.status.code(), Some(74), "{}", String::from_utf8_lossy(&ran.stderr));
        assert_eq!(String::from_utf8_lossy(&ran.stderr).trim().lines().count(), 1, "one clear line");
    }
}
