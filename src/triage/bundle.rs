//! The files of a bundle: of a folder as they lie there, of an archive unpacked under names that lead nowhere else.

use std::path::{Path, PathBuf};

use crate::ctx::Ctx;
use crate::error::{Error, Result};

use super::member::FILES;
use super::unpack::{self, Budget};
use super::wanted::Wanted;

pub use super::member::{Bundle, Member, Skipped};

/// Folders within folders.
const DEPTH: usize = 32;

impl Bundle {
    /// Opens a folder or an archive.
    ///
    /// # Errors
    /// I/O; `Usage` for a path that is neither; cancellation.
    pub fn open(path: &Path, wanted: &Wanted, ctx: &Ctx) -> Result<Bundle> {
        let meta = std::fs::metadata(path).map_err(|e| Error::io(path, "open", e))?;
        let mut bundle = Bundle { members: Vec::new(), skipped: Vec::new(), is_archive: !meta.is_dir(), extracted: None, temp: None };
        let mut budget = Budget::new(wanted.most);
        if meta.is_dir() {
            bundle.walk(path, ctx)?;
        } else {
            let Some(kind) = unpack::kind_of(path)? else {
                let what = format!(
                    "{}: neither a folder nor a tar, tar.gz, gz or zip archive; rootpage check looks at a single file",
                    path.display()
                );
                return Err(Error::Usage { what });
            };
            let folder = bundle.folder(wanted)?;
            unpack::unpack(path, "", kind, &folder, 0, &mut budget, &mut bundle, ctx)?;
        }
        bundle.nested(wanted, &mut budget, ctx)?;
        bundle.members.sort_by(|a, b| a.name.cmp(&b.name));
        bundle.skipped.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(bundle)
    }

    /// Where archives are unpacked.
    fn folder(&mut self, wanted: &Wanted) -> Result<PathBuf> {
        if let Some(folder) = &wanted.extract {
            std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, "create", e))?;
            let mut entries = std::fs::read_dir(folder).map_err(|e| Error::io(folder, "read", e))?;
            if self.extracted.is_none() && entries.next().is_some() {
                return Err(Error::Exists { path: folder.clone() });
            }
            self.extracted = Some(folder.clone());
            return Ok(folder.clone());
        }
        if self.temp.is_none() {
            let temp = tempfile::Builder::new().prefix("rootpage-triage-").tempdir();
            self.temp = Some(temp.map_err(|e| Error::io(&std::env::temp_dir(), "create a folder in", e))?);
        }
        Ok(self.temp.as_ref().map(|t| t.path().to_path_buf()).unwrap_or_default())
    }

    /// All files of a folder; links are named and not followed.
    fn walk(&mut self, root: &Path, ctx: &Ctx) -> Result<()> {
        let mut folders = vec![(root.to_path_buf(), String::new(), 0_usize)];
        while let Some((folder, prefix, depth)) = folders.pop() {
            ctx.check()?;
            let entries = match std::fs::read_dir(&folder) {
                Ok(entries) => entries,
                Err(e) if depth == 0 => return Err(Error::io(&folder, "read", e)),
                Err(e) => {
                    self.skip(prefix, &format!("the folder cannot be read: {e}"));
                    continue;
                }
            };
            let mut entries: Vec<_> = entries.flatten().collect();
            entries.sort_by_key(std::fs::DirEntry::file_name);
            for entry in entries {
                let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
                let Ok(kind) = entry.file_type() else { continue };
                if kind.is_symlink() {
                    self.skip(name, "a symbolic link, not followed");
                } else if kind.is_dir() {
                    if depth >= DEPTH {
                        self.skip(name, "folders within folders end here");
                    } else {
                        folders.push((entry.path(), format!("{name}/"), depth.saturating_add(1)));
                    }
                } else if !kind.is_file() {
                    self.skip(name, "no regular file");
                } else if self.members.len() >= FILES {
                    self.skip(name, "more files than are looked at");
                    return Ok(());
                } else {
                    let bytes = entry.metadata().map_or(0, |m| m.len());
                    self.members.push(Member { name, path: entry.path(), bytes });
                }
            }
        }
        Ok(())
    }

    /// Opens archives within the bundle, down to a depth.
    fn nested(&mut self, wanted: &Wanted, budget: &mut Budget, ctx: &Ctx) -> Result<()> {
        for depth in 1..=unpack::DEPTH {
            let mut archives = Vec::new();
            let mut kept = Vec::new();
            for member in std::mem::take(&mut self.members) {
                // Everything of an outer round was looked at then.
                match unpack::kind_of(&member.path) {
                    Ok(Some(kind)) => archives.push((member, kind)),
                    _ => kept.push(member),
                }
            }
            self.members = kept;
            if archives.is_empty() {
                return Ok(());
            }
            for (member, kind) in archives {
                if depth == unpack::DEPTH {
                    self.skip(member.name, "an archive within archives within archives; unpack it by hand");
                    continue;
                }
                let folder = self.folder(wanted)?;
                let prefix = format!("{}!", member.name);
                unpack::unpack(&member.path, &prefix, kind, &folder, depth, budget, self, ctx)?;
            }
        }
        Ok(())
    }
}
