//! The files of a bundle, and those that are not looked at.

use std::path::PathBuf;

use tempfile::TempDir;

/// Files that are looked at: a bundle is sent by a person.
pub(super) const FILES: usize = 20_000;

/// A file of the bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its name in the bundle, `/` between folders; behind `!` what lies in an archive within it. Not escaped.
    pub name: String,
    /// Where its bytes are.
    pub path: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
}

/// A file that is not looked at.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Skipped {
    /// Its name. Not escaped.
    pub name: String,
    /// Why.
    pub why: String,
}

/// A folder or archive with its files.
#[derive(Debug)]
pub struct Bundle {
    /// The files, in the order of their names.
    pub members: Vec<Member>,
    /// What is not looked at.
    pub skipped: Vec<Skipped>,
    /// Whether the files were unpacked from an archive.
    pub is_archive: bool,
    /// Where they were unpacked and stay.
    pub extracted: Option<PathBuf>,
    /// Goes away with the bundle.
    pub(super) temp: Option<TempDir>,
}

impl Bundle {
    /// Notes a file that is not looked at.
    pub(super) fn skip(&mut self, name: String, why: &str) {
        if self.skipped.len() < FILES {
            self.skipped.push(Skipped { name, why: why.to_owned() });
        }
    }
}
