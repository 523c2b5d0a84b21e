//! The output file: written under a temporary name in the target's folder, then put in its place, or nothing left behind.

use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::error::{Error, Result};

/// What SQLite reads along with a database of some name.
const SIDECARS: [&str; 3] = ["-wal", "-shm", "-journal"];

/// A file that an earlier output left, and where it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedAside {
    /// Where it was.
    pub from: PathBuf,
    /// Where it is.
    pub to: PathBuf,
}

/// An output that appears under its name only when it is complete.
///
/// Dropped without [`OutputFile::commit`], on an error or when the run is cancelled, it leaves nothing.
#[derive(Debug)]
pub struct OutputFile {
    temp: NamedTempFile,
    out: PathBuf,
    folder: PathBuf,
    force: bool,
    permissions: Option<Permissions>,
    moves: Option<Vec<MovedAside>>,
}

impl OutputFile {
    /// Begins an output that shall become `out`. The file, and `out-wal`, `out-shm`, `out-journal` beside it (SQLite would
    /// show old data through them), must not exist, or `force` moves them aside at [`OutputFile::commit`]. `inputs` are
    /// the evidence: none of them is ever in the way, with or without `force`.
    ///
    /// # Errors
    /// `Exists` names the first file in the way; `Usage` for an output over an input or over a folder; I/O when the folder
    /// is missing or not writable.
    pub fn create(out: &Path, force: bool, inputs: &[&Path]) -> Result<OutputFile> {
        if out.file_name().is_none() {
            return Err(Error::Usage { what: format!("{}: not the name of a file", out.display()) });
        }
        let folder = match out.parent() {
            Some(p) if !p.as_os_str().is_empty() => p.to_path_buf(),
            _ => PathBuf::from("."),
        };
        for name in names(out) {
            let Some(meta) = present(&name)? else { continue };
            if inputs.iter().any(|input| is_same(&name, input)) {
                let what = format!("{}: is the input, or lies where the output's sidecar would; give another output path", name.display());
                return Err(Error::Usage { what });
            }
            if !force {
                return Err(Error::Exists { path: name });
            }
            if meta.is_dir() {
                return Err(Error::Usage { what: format!("{}: is a folder; give another output path", name.display()) });
            }
        }
        let temp = tempfile::Builder::new()
            .prefix(".rootpage-")
            .suffix(".tmp")
            .tempfile_in(&folder)
            .map_err(|e| Error::io(&folder, "create a file in", e))?;
        Ok(OutputFile { temp, out: out.to_path_buf(), folder, force, permissions: None, moves: None })
    }

    /// The file to write to. It can be written, read back and sought; it is empty at first.
    #[must_use]
    pub fn file(&self) -> &File {
        self.temp.as_file()
    }

    /// The temporary name, for reading the file back before it is put in its place.
    #[must_use]
    pub fn temp_path(&self) -> &Path {
        self.temp.path()
    }

    /// The name it shall have.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.out
    }

    /// The folder it is written in, where other temporary files of the run belong too.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Gives the output the permissions of this file as far as the umask lets them, and its owner the right to read and
    /// write. Without this call only the owner may read the output.
    ///
    /// # Errors
    /// I/O when the file cannot be asked.
    pub fn permissions_of(&mut self, like: &Path) -> Result<()> {
        let permissions = fs::metadata(like).map_err(|e| Error::io(like, "read the permissions of", e))?.permissions();
        self.permissions = Some(writable(permissions));
        Ok(())
    }

    /// What is in the way, and where [`OutputFile::commit`] will move it: `.moved-aside-N` with the first N that is free for
    /// all of it. Asked once; what comes in the way later is an error.
    ///
    /// # Errors
    /// `Exists` when something is in the way and may not be moved; I/O.
    pub fn moves(&mut self) -> Result<&[MovedAside]> {
        if self.moves.is_none() {
            self.moves = Some(plan_moves(&self.out, self.force)?);
        }
        Ok(self.moves.as_deref().unwrap_or_default())
    }

    /// Moves aside what is in the way and puts nothing in its place: this run has no such output.
    ///
    /// # Errors
    /// As [`OutputFile::commit`].
    pub fn clear(mut self) -> Result<()> {
        self.moves()?;
        move_aside(&self.moves.unwrap_or_default())
    }

    /// Syncs the file to the device, moves aside what is in the way if that was allowed, and puts the file in its place.
    /// It says what was moved; the names end in `.moved-aside-N` with the first N that is free for all of them.
    ///
    /// # Errors
    /// I/O; `Exists` when something came in the way since. Then nothing is left, and what was moved is moved back.
    pub fn commit(mut self) -> Result<Vec<MovedAside>> {
        self.moves()?;
        let OutputFile { temp, out, folder, permissions, moves, .. } = self;
        if let Some(permissions) = permissions {
            temp.as_file().set_permissions(permissions).map_err(|e| Error::io(&out, "set the permissions of", e))?;
        }
        temp.as_file().sync_all().map_err(|e| Error::io(&out, "write", e))?;
        let moved = moves.unwrap_or_default();
        move_aside(&moved)?;
        if let Err(e) = temp.persist_noclobber(&out) {
            move_back(&moved);
            return Err(match e.error.kind() {
                io::ErrorKind::AlreadyExists => Error::Exists { path: out },
                _ => Error::io(&out, "put the finished file at", e.error),
            });
        }
        sync_folder(&folder)?;
        Ok(moved)
    }
}

/// The name itself and those of its sidecars.
fn names(out: &Path) -> impl Iterator<Item = PathBuf> {
    std::iter::once("").chain(SIDECARS).map(|suffix| with_suffix(out, suffix))
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path.as_os_str());
    name.push(suffix);
    PathBuf::from(name)
}

/// What lies at a path, a dangling link included; `None` when nothing does.
fn present(path: &Path) -> Result<Option<fs::Metadata>> {
    match fs::symlink_metadata(path) {
        Ok(meta) => Ok(Some(meta)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::io(path, "look at", e)),
    }
}

/// Whether two paths lead to one file, by whatever names or links.
fn is_same(a: &Path, b: &Path) -> bool {
    if let (Ok(a), Ok(b)) = (fs::canonicalize(a), fs::canonicalize(b))
        && a == b
    {
        return true;
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        if let (Ok(a), Ok(b)) = (fs::metadata(a), fs::metadata(b)) {
            return (a.dev(), a.ino()) == (b.dev(), b.ino());
        }
    }
    false
}

fn plan_moves(out: &Path, force: bool) -> Result<Vec<MovedAside>> {
    let mut in_the_way = Vec::new();
    for name in names(out) {
        if present(&name)?.is_some() {
            if !force {
                return Err(Error::Exists { path: name });
            }
            in_the_way.push(name);
        }
    }
    let mut n = 1_u64;
    loop {
        let suffix = format!(".moved-aside-{n}");
        let moves: Vec<MovedAside> =
            in_the_way.iter().map(|from| MovedAside { from: from.clone(), to: with_suffix(from, &suffix) }).collect();
        let mut free = true;
        for m in &moves {
            free &= present(&m.to)?.is_none();
        }
        if free {
            return Ok(moves);
        }
        n = n.saturating_add(1);
    }
}

fn move_aside(moves: &[MovedAside]) -> Result<()> {
    for (i, MovedAside { from, to }) in moves.iter().enumerate() {
        let moved = match present(to)? {
            Some(_) => Err(Error::Exists { path: to.clone() }),
            None => fs::rename(from, to).map_err(|e| Error::io(from, "move aside", e)),
        };
        if let Err(e) = moved {
            move_back(moves.get(..i).unwrap_or_default());
            return Err(e);
        }
    }
    Ok(())
}

/// Undoes [`move_aside`] as far as it goes; the error that led here is the one to report.
fn move_back(moved: &[MovedAside]) {
    for MovedAside { from, to } in moved.iter().rev() {
        if fs::symlink_metadata(from).is_err() {
            drop(fs::rename(to, from));
        }
    }
}

/// Makes the new name durable, where folders can be synced.
fn sync_folder(folder: &Path) -> Result<()> {
    if cfg!(not(unix)) {
        return Ok(());
    }
    match File::open(folder).and_then(|f| f.sync_all()) {
        // Some network and FUSE file systems do not sync folders.
        Err(e) if matches!(e.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported | io::ErrorKind::PermissionDenied) => Ok(()),
        other => other.map_err(|e| Error::io(folder, "sync", e)),
    }
}

#[cfg(unix)]
fn writable(permissions: Permissions) -> Permissions {
    use std::os::unix::fs::PermissionsExt;
    Permissions::from_mode(permissions.mode() & 0o666 & !umask() | 0o600)
}

/// The rights that new files of this process do not get; where the system does not tell, those that are usual.
#[cfg(unix)]
fn umask() -> u32 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    mask.and_then(|m| u32::from_str_radix(m.trim(), 8).ok()).unwrap_or(0o022)
}

#[cfg(not(unix))]
fn writable(mut permissions: Permissions) -> Permissions {
    permissions.set_readonly(false);
    permissions
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn listing(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn it_appears_only_when_complete() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("copy.db");
        let half = OutputFile::create(&out, false, &[]).unwrap();
        half.file().write_all(b"half").unwrap();
        assert!(!out.exists());
        drop(half);
        assert_eq!(listing(dir.path()), [""; 0]);
        let whole = OutputFile::create(&out, false, &[]).unwrap();
        whole.file().write_all(b"whole").unwrap();
        assert_eq!(whole.commit().unwrap(), []);
        assert_eq!(listing(dir.path()), ["copy.db"]);
        assert_eq!(fs::read(&out).unwrap(), b"whole");
    }

    #[test]
    fn what_is_in_the_way_is_named_or_moved() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("copy.db");
        for suffix in ["", "-wal", "-shm", "-journal"] {
            let way = with_suffix(&out, suffix);
            fs::write(&way, b"old").unwrap();
            match OutputFile::create(&out, false, &[]).unwrap_err() {
                Error::Exists { path } => assert_eq!(path, way),
                other => panic!("{other}"),
            }
            fs::remove_file(&way).unwrap();
        }
        fs::write(&out, b"old").unwrap();
        fs::write(with_suffix(&out, "-wal"), b"old wal").unwrap();
        fs::write(with_suffix(&out, "-wal.moved-aside-1"), b"older wal").unwrap();
        let moved = OutputFile::create(&out, true, &[]).unwrap().commit().unwrap();
        assert_eq!(moved.len(), 2);
        assert_eq!(listing(dir.path()), ["copy.db", "copy.db-wal.moved-aside-1", "copy.db-wal.moved-aside-2", "copy.db.moved-aside-2"]);
        assert_eq!(fs::read(with_suffix(&out, "-wal.moved-aside-2")).unwrap(), b"old wal");
    }

    #[test]
    fn evidence_is_never_in_the_way() {
        let dir = tempfile::tempdir().unwrap();
        let input = dir.path().join("state.db");
        fs::write(&input, b"evidence").unwrap();
        let link = dir.path().join("link.db");
        fs::hard_link(&input, &link).unwrap();
        for out in [&input, &link] {
            assert!(matches!(OutputFile::create(out, true, &[&input]), Err(Error::Usage { .. })));
        }
        let wal = with_suffix(&dir.path().join("other"), "-wal");
        fs::write(&wal, b"evidence").unwrap();
        assert!(matches!(OutputFile::create(&dir.path().join("other"), true, &[&input, &wal]), Err(Error::Usage { .. })));
        assert_eq!(fs::read(&input).unwrap(), b"evidence");
    }

    #[test]
    fn a_name_taken_meanwhile_is_not_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("copy.db");
        let late = OutputFile::create(&out, false, &[]).unwrap();
        fs::write(&out, b"other").unwrap();
        assert!(matches!(late.commit(), Err(Error::Exists { .. })));
        assert_eq!(fs::read(&out).unwrap(), b"other");
        assert_eq!(listing(dir.path()), ["copy.db"]);
    }

    #[test]
    fn bad_folders_are_errors_that_name_them() {
        let dir = tempfile::tempdir().unwrap();
        let missing = dir.path().join("none").join("copy.db");
        let text = OutputFile::create(&missing, false, &[]).unwrap_err().to_string();
        assert!(text.contains("none"), "{text}");
        assert!(matches!(OutputFile::create(Path::new("/"), true, &[]), Err(Error::Usage { .. })));
        fs::create_dir(dir.path().join("folder")).unwrap();
        assert!(matches!(OutputFile::create(&dir.path().join("folder"), false, &[]), Err(Error::Exists { .. })));
        assert!(matches!(OutputFile::create(&dir.path().join("folder"), true, &[]), Err(Error::Usage { .. })));
        let file = dir.path().join("file");
        fs::write(&file, b"").unwrap();
        assert!(matches!(OutputFile::create(&file.join("copy.db"), false, &[]), Err(Error::Io { .. })));
    }

    #[cfg(unix)]
    #[test]
    fn permissions_are_private_or_those_of_the_input() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let input = dir.path().join("in.db");
        fs::write(&input, b"").unwrap();
        fs::set_permissions(&input, Permissions::from_mode(0o444)).unwrap();
        let mode = |p: &Path| fs::metadata(p).unwrap().permissions().mode() & 0o777;
        let a = dir.path().join("a.db");
        OutputFile::create(&a, false, &[&input]).unwrap().commit().unwrap();
        assert_eq!(mode(&a), 0o600);
        let b = dir.path().join("b.db");
        let mut out = OutputFile::create(&b, false, &[&input]).unwrap();
        out.permissions_of(&input).unwrap();
        out.commit().unwrap();
        assert_eq!(mode(&b), 0o644);
    }
}
