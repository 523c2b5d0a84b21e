//! Processes that have the files of a database open, from `/proc/*/fd`.
//!
//! A file is told by its device and inode. A sidecar that was deleted or replaced is told by a descriptor whose name was that
//! of the sidecar and whose device and inode are not those of the file that stands under this name now; the ending
//! ` (deleted)` of the name proves nothing, some file systems show it for files that are there.

use std::path::{Path, PathBuf};

/// Which file of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Which {
    /// The database file.
    Main,
    /// Its write-ahead log.
    Wal,
    /// The shared memory of the log.
    Shm,
    /// Its rollback journal.
    Journal,
}

impl Which {
    /// All of them.
    pub const ALL: [Which; 4] = [Which::Main, Which::Wal, Which::Shm, Which::Journal];

    /// What stands behind the name of the database.
    #[must_use]
    pub const fn ending(self) -> &'static str {
        match self {
            Which::Main => "",
            Which::Wal => "-wal",
            Which::Shm => "-shm",
            Which::Journal => "-journal",
        }
    }

    /// Its name for a sentence.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Which::Main => "database file",
            Which::Wal => "write-ahead log",
            Which::Shm => "shared memory of the log",
            Which::Journal => "rollback journal",
        }
    }

    /// The path of this file of a database.
    #[must_use]
    pub fn of(self, db: &Path) -> PathBuf {
        let mut name = db.as_os_str().to_owned();
        name.push(self.ending());
        PathBuf::from(name)
    }
}

/// A descriptor of a process on a file of the database.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Holder {
    /// The process.
    pub pid: u32,
    /// Its name, as the kernel has it (at most 15 bytes).
    pub name: String,
    /// The descriptor.
    pub fd: u32,
    /// Which file.
    pub file: Which,
    /// Whether it may write through it.
    pub writes: bool,
    /// Whether what it holds is no longer the file under this name: deleted, or replaced by another.
    pub gone: bool,
    /// Size of what it holds, in bytes.
    pub bytes: u64,
    /// Device and inode of what it holds.
    pub inode: (u64, u64),
}

/// What was seen of all processes.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Seen {
    /// Whether this system shows open files at all.
    pub supported: bool,
    /// The descriptors, by process and number.
    pub holders: Vec<Holder>,
    /// Processes whose descriptors this user may not see.
    pub unseen: u32,
}

/// Looks for processes that hold the files of a database. `db` is its real path.
#[cfg(target_os = "linux")]
#[must_use]
pub fn look(db: &Path) -> Seen {
    use std::os::unix::fs::MetadataExt as _;
    let files = Which::ALL.map(|which| {
        let path = which.of(db);
        let inode = std::fs::metadata(&path).ok().map(|m| (m.dev(), m.ino()));
        (which, path, inode)
    });
    let mut seen = Seen { supported: true, ..Seen::default() };
    let Ok(entries) = std::fs::read_dir("/proc") else { return Seen::default() };
    let me = std::process::id();
    for entry in entries.flatten() {
        let Some(pid) = number(&entry.file_name()).filter(|pid| *pid != me) else { continue };
        let folder = entry.path().join("fd");
        let descriptors = match std::fs::read_dir(&folder) {
            Ok(descriptors) => descriptors,
            // A process that ended meanwhile holds nothing.
            Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => {
                seen.unseen = seen.unseen.saturating_add(1);
                continue;
            }
            Err(_) => continue,
        };
        for descriptor in descriptors.flatten() {
            let Some(fd) = number(&descriptor.file_name()) else { continue };
            let path = descriptor.path();
            let (Ok(link), Ok(meta)) = (std::fs::read_link(&path), std::fs::metadata(&path)) else { continue };
            if !meta.is_file() {
                continue;
            }
            let inode = (meta.dev(), meta.ino());
            let same = files.iter().find(|(_, _, of)| *of == Some(inode)).map(|(which, _, _)| (*which, false));
            let found = same.or_else(|| {
                let name = without_suffix(&link);
                files.iter().find(|(_, path, _)| *path == name).map(|(which, _, _)| (*which, true))
            });
            let Some((file, gone)) = found else { continue };
            let (name, writes) = (name_of(&entry.path()), writes(&entry.path(), fd));
            seen.holders.push(Holder { pid, name, fd, file, writes, gone, bytes: meta.len(), inode });
        }
    }
    seen.holders.sort_by_key(|h| (h.pid, h.fd));
    seen
}

/// Where open files cannot be seen.
#[cfg(not(target_os = "linux"))]
#[must_use]
pub fn look(_: &Path) -> Seen {
    Seen::default()
}

#[cfg(target_os = "linux")]
fn number(name: &std::ffi::OsStr) -> Option<u32> {
    name.to_str()?.parse().ok()
}

/// The name of a descriptor's file without the mark that the kernel puts behind the name of a file that has none any more.
#[cfg(target_os = "linux")]
fn without_suffix(link: &Path) -> PathBuf {
    use std::os::unix::ffi::OsStrExt as _;
    let bytes = link.as_os_str().as_bytes();
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes.strip_suffix(b" (deleted)").unwrap_or(bytes)))
}

#[cfg(target_os = "linux")]
fn name_of(process: &Path) -> String {
    let name = std::fs::read(process.join("comm")).unwrap_or_default();
    String::from_utf8_lossy(&name).trim_end_matches('\n').to_owned()
}

/// Whether a descriptor was opened for writing, by the octal flags of its fdinfo.
#[cfg(target_os = "linux")]
fn writes(process: &Path, fd: u32) -> bool {
    let info = std::fs::read_to_string(process.join("fdinfo").join(fd.to_string())).unwrap_or_default();
    let flags = info.lines().find_map(|l| l.strip_prefix("flags:")).map(str::trim);
    let flags = flags.and_then(|f| u32::from_str_radix(f, 8).ok()).unwrap_or(0);
    flags & 3 != 0
}
