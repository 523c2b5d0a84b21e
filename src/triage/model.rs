//! What a bundle holds: plain data; text, JSON and the page are rendered from it.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use crate::host::doctor::Step;
use crate::report::model::Class;

use super::bundle::{Bundle, Skipped};

/// The result of a triage.
#[derive(Debug, Clone, Serialize)]
pub struct Triage {
    /// The number of this format; grows when a field changes its meaning.
    pub format: u32,
    /// The version of rootpage.
    pub tool_version: &'static str,
    /// The folder or archive.
    pub path: String,
    /// Every file, in the order of the names.
    pub files: Vec<FileLine>,
    /// What was not looked at, and why.
    pub skipped: Vec<Skipped>,
    /// Every database with the sidecars that fit it, the best first.
    pub sources: Vec<SourceLine>,
    /// Why the first source is the best; `None`: there is none.
    pub best: Option<String>,
    /// What should be in the bundle and is not.
    pub missing: Vec<String>,
    /// The commands that recover what the files hold together.
    pub steps: Vec<Step>,
    /// Why rows were not compared, if so.
    pub not_compared: Option<String>,
    /// 0 the best source is whole and holds everything, 1 others add to it or something is missing, 2 its data is damaged, 3
    /// no database.
    pub exit_code: u8,
}

/// A file.
#[derive(Debug, Clone, Serialize)]
pub struct FileLine {
    /// Its name in the bundle.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// Its SHA-256.
    pub sha256: Option<String>,
    /// What kind it is, a word for scripts.
    pub kind: &'static str,
    /// What it is, in words.
    pub what: String,
    /// The part that it plays: the best source, a log of another file, a backup.
    pub role: String,
    /// The verdict in one line.
    pub verdict: Option<String>,
    /// The file with the same bytes.
    pub same_as: Option<String>,
    /// Rows that it gives (with its sidecars).
    pub rows: Option<u64>,
    /// The change counter of its newest state.
    pub newest: Option<String>,
}

/// A database with the sidecars that are read with it.
#[derive(Debug, Clone, Serialize)]
pub struct SourceLine {
    /// The file that is named first: the database, or a log alone.
    pub name: String,
    /// Its log.
    pub log: Option<String>,
    /// Its rollback journal.
    pub journal: Option<String>,
    /// How the log fits, in words.
    pub fit: Option<String>,
    /// What it is to the others.
    pub relation: Relation,
    /// The class of its damage.
    pub class: Class,
    /// The verdict.
    pub verdict: String,
    /// The change counter of its newest page 1.
    pub change_counter: u32,
    /// Commits of the log that are read.
    pub commits: u64,
    /// Rows of each table that holds data.
    pub tables: BTreeMap<String, u64>,
    /// All of them.
    pub rows: u64,
    /// Rows that no other source has, by table.
    pub only_here: Vec<OnlyHere>,
    /// Rows that a newer source has with other values.
    pub older_versions: u64,
    /// The command that recovers it.
    pub command: String,
}

/// What a source is to the best one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// It is the best.
    Best,
    /// The same store at another time.
    SameStore,
    /// A store of the same application with other rows: another profile, or a fresh one.
    OtherStore,
    /// A database of something else.
    OtherDatabase,
}

/// Rows of one table that only one source has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OnlyHere {
    /// The table.
    pub table: String,
    /// How many.
    pub rows: u64,
    /// The keys of the first of them; empty when redacted.
    pub keys: Vec<String>,
}

impl FileLine {
    pub(super) fn new(name: &str, bytes: u64) -> FileLine {
        FileLine {
            name: name.to_owned(),
            bytes,
            sha256: None,
            kind: "other",
            what: String::new(),
            role: String::new(),
            verdict: None,
            same_as: None,
            rows: None,
            newest: None,
        }
    }
}

impl Triage {
    pub(super) fn new(path: &Path, bundle: &Bundle) -> Triage {
        Triage {
            format: 1,
            tool_version: env!("CARGO_PKG_VERSION"),
            path: path.display().to_string(),
            files: Vec::new(),
            skipped: bundle.skipped.clone(),
            sources: Vec::new(),
            best: None,
            missing: Vec::new(),
            steps: Vec::new(),
            not_compared: None,
            exit_code: 0,
        }
    }

    /// Takes values of the evidence out: keys of rows.
    pub(super) fn redact(&mut self) {
        for only in self.sources.iter_mut().flat_map(|s| &mut s.only_here) {
            only.keys.clear();
        }
    }

    /// As JSON, indented, with a line feed at the end.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Plain data with text keys: serialisation cannot fail.
        let mut json = serde_json::to_string_pretty(self).unwrap_or_default();
        json.push('\n');
        json
    }
}
