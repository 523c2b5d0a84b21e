//! Databases in folders, and which files are sidecars of a database beside them.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::ctx::Ctx;
use crate::error::{Error, Result};
use crate::format::header::MAGIC;
use crate::format::journal::JOURNAL_MAGIC;

/// Folders within folders that are walked.
const DEPTH: usize = 64;

/// Endings of the files that SQLite keeps beside a database.
const ENDINGS: [&str; 3] = ["-wal", "-shm", "-journal"];

/// What was found below some paths.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// Databases, and logs without one, in the order of their names.
    pub stores: Vec<PathBuf>,
    /// Folders that cannot be read.
    pub unread: Vec<PathBuf>,
}

/// The database that a path would be a sidecar of by its name.
#[must_use]
pub fn database_of(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let stem = ENDINGS.iter().find_map(|e| name.strip_suffix(e)).filter(|s| !s.is_empty())?;
    Some(path.with_file_name(stem))
}

/// The paths without those that are sidecars of a database which lies beside them. A sidecar whose database is there but was
/// not named stands for it, once.
#[must_use]
pub fn without_sidecars(paths: &[PathBuf]) -> Vec<PathBuf> {
    let mut out: Vec<PathBuf> = Vec::new();
    for path in paths {
        let own = match database_of(path) {
            Some(db) if db.is_file() => db,
            _ => path.clone(),
        };
        if !out.contains(&own) && (own == *path || !paths.contains(&own)) {
            out.push(own);
        }
    }
    out
}

/// Every database below folders: files that begin with the magic string, files beside which a log lies, and logs without a
/// database. Files that are named themselves are taken as they are. Links are not followed.
///
/// # Errors
/// I/O of a path that was given; cancellation.
pub fn stores(paths: &[PathBuf], ctx: &Ctx) -> Result<Found> {
    let mut found = Found::default();
    let mut seen: BTreeSet<PathBuf> = BTreeSet::new();
    for path in paths {
        let meta = std::fs::metadata(path).map_err(|e| Error::io(path, "open", e))?;
        let mut folders = vec![(path.clone(), 0_usize)];
        if !meta.is_dir() {
            folders.clear();
            seen.insert(path.clone());
        }
        while let Some((folder, depth)) = folders.pop() {
            ctx.check()?;
            let Ok(entries) = std::fs::read_dir(&folder) else {
                found.unread.push(folder);
                continue;
            };
            for entry in entries.flatten() {
                let Ok(kind) = entry.file_type() else { continue };
                let path = entry.path();
                if kind.is_dir() && depth < DEPTH {
                    folders.push((path, depth.saturating_add(1)));
                } else if kind.is_file() && is_store(&path) {
                    seen.insert(path);
                }
            }
        }
    }
    found.stores = seen.into_iter().collect();
    found.unread.sort();
    Ok(found)
}

fn is_store(path: &Path) -> bool {
    if database_of(path).is_some_and(|db| db.is_file()) {
        return false;
    }
    let mut head = Vec::new();
    let read = std::fs::File::open(path).and_then(|f| f.take(16).read_to_end(&mut head));
    if read.is_err() {
        return false;
    }
    let is_log = head.starts_with(&[0x37, 0x7f, 0x06, 0x82]) || head.starts_with(&[0x37, 0x7f, 0x06, 0x83]);
    let beside = |ending: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        Path::new(&name).is_file()
    };
    head.starts_with(MAGIC) || is_log || (!head.starts_with(&JOURNAL_MAGIC) && (beside("-wal") || beside("-journal")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sidecars_are_no_second_database() {
        let dir = tempfile::tempdir().unwrap();
        let p = |name: &str| dir.path().join(name);
        for name in ["a.db", "a.db-wal", "a.db-shm", "b.db-wal", "c.db", "c.db-journal"] {
            std::fs::write(p(name), b"x").unwrap();
        }
        let all = ["a.db", "a.db-shm", "a.db-wal", "b.db-wal", "c.db", "c.db-journal"].map(p);
        assert_eq!(without_sidecars(&all), ["a.db", "b.db-wal", "c.db"].map(p));
        // Only the sidecar was named: its database is what is meant.
        assert_eq!(without_sidecars(&[p("c.db-journal"), p("b.db-wal")]), ["c.db", "b.db-wal"].map(p));
        assert_eq!(database_of(Path::new("-wal")), None);
        std::fs::write(p("d.db"), MAGIC).unwrap();
        std::fs::create_dir(p("sub")).unwrap();
        std::fs::write(p("sub/e.sqlite"), MAGIC).unwrap();
        let found = stores(&[dir.path().to_path_buf()], &Ctx::default()).unwrap();
        assert_eq!(found.stores, ["a.db", "c.db", "d.db", "sub/e.sqlite"].map(p));
    }
}
