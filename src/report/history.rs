//! The history of a database: what its sidecars know of other times. Plain data; `history --json` prints exactly this model.
//!
//! Names, paths and values come from the evidence and are kept as they are; whoever renders them escapes them.

use serde::{Deserialize, Serialize};

use super::diff::{Named, redact_value};
use super::human::counted;
use super::model::Input;

/// The number of this format.
pub const FORMAT: u32 = 1;

/// The timeline of one database.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// [`FORMAT`].
    pub format: u32,
    /// The version of rootpage that made it.
    pub tool_version: String,
    /// What there is, in one sentence.
    pub sentence: String,
    /// 0: SQLite shows all that is committed; 2: committed work is hidden from it, or the state of a sidecar is in doubt.
    pub exit_code: u8,
    /// Every file that was read.
    pub inputs: Vec<Input>,
    /// Size of a page in bytes.
    pub page_size: u32,
    /// The state under the log.
    pub base: Base,
    /// The logs in the order given.
    pub logs: Vec<Log>,
    /// The branches of the history; the first is what SQLite reads.
    pub branches: Vec<Line>,
    /// The rollback journal.
    pub journal: Option<JournalTold>,
    /// The shared memory.
    pub shm: Option<ShmTold>,
    /// What does not fit together, in sentences.
    pub notes: Vec<String>,
    /// The versions of the row that was asked for, oldest first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row: Option<RowTold>,
    /// Several main files of one store, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileTold>,
}

/// The main file without its log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Base {
    /// Its path; `None`: there is no main file, or it has no byte.
    pub path: Option<String>,
    /// Whole pages in it.
    pub pages: u32,
    /// Counted up by transactions that write page 1.
    pub change_counter: Option<u32>,
    /// Counted up with each change of the schema.
    pub schema_cookie: Option<u32>,
}

/// One log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Log {
    /// Its path.
    pub path: String,
    /// Whether SQLite accepts its header.
    pub accepted: bool,
    /// Page size.
    pub page_size: u32,
    /// Checkpoint sequence number of the header.
    pub checkpoint_sequence: u32,
    /// What it is to the others and to the main file.
    pub standing: String,
    /// Whether it belongs to the main file, in words.
    pub fit: String,
    /// Whole frames.
    pub frames: u32,
    /// Frames that SQLite reads.
    pub read: u32,
    /// Frames behind the last commit.
    pub uncommitted: u32,
    /// Frames of this generation that the chain does not reach.
    pub detached: u32,
    /// Frames of generations before.
    pub older: u32,
    /// Frames of zeros or junk.
    pub junk: u32,
    /// Bytes behind the last whole frame.
    pub cut_bytes: u64,
    /// Frames whose image is what the main file has.
    pub in_main: u32,
    /// The generations in it by their salts, in file order.
    pub generations: Vec<Generation>,
}

/// Frames with the same salts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generation {
    /// The salts, as eight and eight hex digits.
    pub salts: String,
    /// The first frame.
    pub first: u32,
    /// The last frame.
    pub last: u32,
    /// Frames with these salts.
    pub frames: u32,
    /// Commits among them.
    pub commits: u32,
    /// Whether they are the salts of the header.
    pub current: bool,
}

/// A branch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// What `--at branch:` takes.
    pub name: String,
    /// "shown", "fork", "fork suspected", "behind damage", "independent reset", "lost checkpoint".
    pub kind: String,
    /// Whether it is what SQLite reads.
    pub shown: bool,
    /// The commit of the shown branch that it leaves; 0: the main file.
    pub leaves_at: u32,
    /// Commits of the shown branch that its writer did not see.
    pub unseen: u32,
    /// Frames of it that another writer wrote over.
    pub overwritten: u32,
    /// The pages that they held, where the shared memory says it.
    pub overwritten_pages: Vec<u32>,
    /// Frames with one damaged word that was put right.
    pub corrected: Vec<u32>,
    /// What speaks for its kind.
    pub witnesses: Vec<String>,
    /// Its own commits.
    pub commits: Vec<CommitTold>,
    /// Frames behind its last commit, as one transaction.
    pub tail: Option<CommitTold>,
}

/// A commit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitTold {
    /// Its number on its branch, from 1: what `--at commit:` takes on the shown one.
    pub number: u32,
    /// The frame that commits, as `--at frame:` takes it.
    pub frame: u32,
    /// Frames of the transaction.
    pub frames: u32,
    /// Pages of the database after it.
    pub pages: u32,
    /// The log that holds it, by its place in `logs`.
    pub log: u32,
    /// What it did, by object.
    pub objects: Vec<Touched>,
    /// Objects that it created or dropped.
    pub schema: Vec<String>,
    /// Pages of overflow, freelist and pointer map.
    pub other_pages: u32,
}

/// What a commit did to an object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Touched {
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Pages of it that were written.
    pub pages: u32,
    /// Rows added.
    pub added: u64,
    /// Rows removed.
    pub removed: u64,
    /// Rows changed.
    pub changed: u64,
}

/// The rollback journal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalTold {
    /// Its path.
    pub path: String,
    /// "hot", "finished", "header bad", "undecided", "beside an empty main file", "empty".
    pub state: String,
    /// Whether it belongs to the main file, in words.
    pub fit: String,
    /// Page images in it.
    pub images: u32,
    /// Those that a rollback writes.
    pub counting: u32,
    /// Pages of the database before the transaction; 0: unknown.
    pub pages_before: u32,
    /// The super-journal that it names.
    pub super_journal: Option<String>,
    /// What the transaction did: from the images to the main file.
    pub transaction: Option<CommitTold>,
}

/// The shared memory of the log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShmTold {
    /// The last frame that SQLite had.
    pub max_frame: u32,
    /// Frames that a checkpoint had copied to the main file.
    pub checkpointed: u32,
    /// Pages of the database.
    pub pages: u32,
    /// Whether both copies of its header are the same.
    pub copies_agree: bool,
    /// Whether it is of the generation of the log.
    pub same_generation: bool,
    /// Whether the log holds the frame that it ends with.
    pub reaches_head: bool,
    /// Frames that hold another page in the log.
    pub other_pages: u32,
}

/// The versions of a row.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RowTold {
    /// The table.
    pub table: String,
    /// The key that was asked for.
    pub key: String,
    /// The versions, oldest first.
    pub versions: Vec<VersionTold>,
}

/// A version of a row.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct VersionTold {
    /// "present", "added", "changed", "removed".
    pub change: String,
    /// The branch.
    pub branch: String,
    /// When: "main file", "commit 3", "uncommitted", "older generation", "journal".
    pub when: String,
    /// The commit of the branch, where there is one.
    pub commit: Option<u32>,
    /// The frame, where there is one.
    pub frame: Option<u32>,
    /// The page of the cell.
    pub page: u32,
    /// The cell.
    pub cell: u16,
    /// "witnessed": under a checksum chain; "linked": reachable; "plausible": neither.
    pub trust: String,
    /// Its values; empty where it was removed.
    pub values: Vec<Named>,
}

/// One of several main files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileTold {
    /// Its path.
    pub path: String,
    /// Why nothing can be said of it.
    pub error: Option<String>,
    /// Counted up by transactions.
    pub change_counter: u32,
    /// Counted up with each change of the schema.
    pub schema_cookie: u32,
    /// Pages.
    pub pages: u32,
    /// Rows of all tables.
    pub rows: u64,
    /// The verdict.
    pub verdict: String,
    /// What differs from the file before it.
    pub objects: Vec<Touched>,
    /// What stands between the two in words: the same content, another store.
    pub note: String,
}

impl History {
    /// As JSON, indented, with a line feed at the end.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut json = serde_json::to_string_pretty(self).unwrap_or_default();
        json.push('\n');
        json
    }

    /// Takes the values of the evidence out: what is left is their class and length.
    pub fn redact(&mut self) {
        let Some(row) = &mut self.row else { return };
        row.key = format!("({} redacted)", counted(crate::ids::wide(row.key.chars().count()), "character"));
        for value in row.versions.iter_mut().flat_map(|v| &mut v.values) {
            redact_value(&mut value.value);
        }
    }

    /// Commits that SQLite does not show.
    #[must_use]
    pub fn hidden(&self) -> usize {
        self.branches.iter().filter(|b| !b.shown).map(|b| b.commits.len()).sum()
    }
}
