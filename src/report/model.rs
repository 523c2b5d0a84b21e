//! The report: plain data, everything that text, HTML and JSON show is rendered from it.
//!
//! `--json` prints exactly this model. It is the interface that outsiders script against: [`FORMAT`] grows by one when a
//! field changes its meaning or goes away; new fields may come at any time. Every collection has a fixed order (no clock,
//! no hash order), so the same input gives the same bytes.
//!
//! Names and details come from the evidence and may hold anything. They are kept here as they are (invalid UTF-8 decoded
//! lossily) and escaped by whoever renders them.

mod carving;
mod recovery;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use self::carving::{CarvedCounts, CarvedSample, Carving};
pub use self::recovery::{Breaker, DISPUTED, FREE_PAGE, Gone, LeftOut, Output, OutputRole, ReadBack, Recovery, TableRecovery};
use crate::finding::{Code, RowEffect};
use crate::ids::wide;

/// The number of this report format.
pub const FORMAT: u32 = 1;

/// What a run read, decided, found and wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// [`FORMAT`].
    pub format: u32,
    /// The version of rootpage that made it.
    pub tool_version: String,
    /// The verb that was run: decides the meaning of the exit code.
    pub verb: Verb,
    /// The command that makes this report again, ready for a POSIX shell.
    pub command: String,
    /// The options of it that name the evidence (`--wal`, `--at`, ...), for the commands that follow; empty: none.
    pub evidence_options: String,
    /// What is wrong, most severe first, in one word and one sentence.
    pub verdict: Verdict,
    /// The exit code that goes with this report; set by [`Report::seal`].
    pub exit_code: u8,
    /// Every file that was read.
    pub inputs: Vec<Input>,
    /// Which version of the database was read.
    pub snapshot: Option<String>,
    /// How each field of the database header was settled.
    pub header: Vec<HeaderDecision>,
    /// What was decided about each sidecar.
    pub sidecars: Vec<Sidecar>,
    /// Size of a page in bytes, 0 when none could be settled.
    pub page_size: u32,
    /// Pages of the database that was read.
    pub page_count: u64,
    /// Pages by role. The counts add up to `page_count`.
    pub pages_by_role: BTreeMap<String, u64>,
    /// Pages that a map given with `--map` takes for something else than the survey did, in page order.
    pub overruled: Vec<Overruled>,
    /// The objects of the schema in the order of their ids.
    pub objects: Vec<Object>,
    /// Findings by code and object, most severe first.
    pub findings: Vec<FindingGroup>,
    /// Committed rows that the default view hides: behind a break of the log, under a rollback that SQLite does not finish,
    /// or, where it is undecided whether a sidecar belongs to the file, in the view without it.
    pub hidden_rows: u64,
    /// Why nothing can be said of the input; the rest of the report is then empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Branches and commits of the log, for the picture; `rootpage history` prints them.
    #[serde(skip)]
    pub timeline: Option<super::timeline::Timeline>,
    /// What `recover` wrote and what it could not.
    pub recovery: Option<Recovery>,
    /// What `carve` found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carving: Option<Carving>,
    /// Runs of pages with the same role, owner and origin, in page order. Not part of the JSON: `rootpage map` prints it.
    #[serde(skip)]
    pub map: Vec<PageRun>,
    /// The codes of all findings by page, in page order. Not part of the JSON: `rootpage map --json` prints it.
    #[serde(skip)]
    pub marks: Vec<PageMark>,
}

/// The verb a report belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Verb {
    /// `rootpage check`.
    #[default]
    Check,
    /// `rootpage recover`.
    Recover,
    /// `rootpage rows`.
    Rows,
    /// `rootpage map`.
    Map,
    /// `rootpage carve`.
    Carve,
}

impl Verb {
    /// The word of the command line.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Verb::Check => "check",
            Verb::Recover => "recover",
            Verb::Rows => "rows",
            Verb::Map => "map",
            Verb::Carve => "carve",
        }
    }
}

/// How bad it is. The order is the order of severity, worst last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// No finding that matters.
    #[default]
    Healthy,
    /// Freelist, pointer map, counters; no data and no index is touched.
    Housekeeping,
    /// A full-text index is damaged; the rows it indexes are whole.
    SearchIndexOnly,
    /// An index is damaged; the tables are whole.
    IndexOnly,
    /// A table that holds data is damaged.
    Structural,
    /// The input is no database.
    NotADatabase,
}

impl Class {
    /// The word that JSON and text use.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Class::Healthy => "healthy",
            Class::Housekeeping => "housekeeping",
            Class::SearchIndexOnly => "search-index-only",
            Class::IndexOnly => "index-only",
            Class::Structural => "structural",
            Class::NotADatabase => "not-a-database",
        }
    }
}

/// What is wrong in one word and in one sentence.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Verdict {
    /// The most severe class found.
    pub class: Class,
    /// A sentence that a person acts on; [`Report::seal`] writes one when it is empty.
    pub sentence: String,
}

/// A file that was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// The path as it was given.
    pub path: String,
    /// What it was taken for.
    pub role: InputRole,
    /// Its size in bytes.
    pub bytes: u64,
    /// SHA-256 before the run, in hex; `None` when hashing was switched off.
    pub sha256_before: Option<String>,
    /// SHA-256 after the run; equal to the first, or the run ends with "unstable".
    pub sha256_after: Option<String>,
    /// How its bytes were reached.
    pub access: Access,
    /// Byte ranges `[start, end)` that the system could not read.
    pub unreadable: Vec<[u64; 2]>,
}

/// What an input was taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InputRole {
    /// The database file.
    Main,
    /// Its write-ahead log.
    Wal,
    /// Its rollback journal.
    Journal,
    /// The shared memory of the WAL.
    Shm,
    /// A schema given with `--schema`.
    Schema,
    /// A page map given with `--map`.
    Map,
}

/// How the bytes of an input were reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// Mapped into memory, read-only.
    Mapped,
    /// Copied by plain reads before it was looked at.
    Snapshot,
}

/// How a field of the database header was settled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeaderDecision {
    /// Name of the field, as in the file format document.
    pub field: String,
    /// The value that is used.
    pub value: String,
    /// Where it comes from: "header", "page headers of 40 sampled pages", "WAL header".
    pub evidence: String,
    /// Whether the header itself said something else.
    pub overruled: bool,
}

/// What was decided about a sidecar.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sidecar {
    /// Its path.
    pub path: String,
    /// What it is.
    pub role: InputRole,
    /// Whether it belongs to this database.
    pub fit: Fit,
    /// Whether its pages are part of what was read.
    pub blended: bool,
    /// Why, in a sentence.
    pub reason: String,
    /// What the two counts of `views` are of, where that is not "with it" and "without it".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compares: Option<[String; 2]>,
    /// Rows of both views per table, where they differ.
    pub views: Vec<ViewCount>,
}

/// Whether a sidecar belongs to the database beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fit {
    /// It does.
    Same,
    /// It positively does not.
    Foreign,
    /// The bytes do not decide it; SQLite's own rule is followed.
    Undecided,
}

/// Rows of a table with and without a sidecar.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewCount {
    /// The table.
    pub table: String,
    /// Rows when the sidecar is read; `None`: the table is not there.
    pub with: Option<u64>,
    /// Rows when it is left out.
    pub without: Option<u64>,
}

/// An object of the schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Object {
    /// Its id in this report; 0 is `sqlite_schema` itself.
    pub id: u32,
    /// "table", "index", "view", "trigger", "virtual-table".
    pub kind: String,
    /// Its name.
    pub name: String,
    /// The table it belongs to, for indexes, triggers and shadow tables.
    pub table: Option<String>,
    /// Its root page.
    pub root: Option<u32>,
    /// Damage to it is damage to: "table", "index", "fts-shadow", "virtual-table-shadow", "schema", "none".
    pub family: String,
    /// Whether it is whole.
    pub status: Status,
    /// Rows that were read, for tables.
    pub rows: Option<u64>,
    /// Pages it owns, overflow pages included.
    pub pages: u64,
    /// Findings on it.
    pub findings: u64,
}

/// The state of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Every page of it reads and agrees.
    Whole,
    /// A part of it does not.
    Damaged,
    /// Its tree cannot be found.
    Missing,
}

/// All findings of one code on one object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindingGroup {
    /// The problem; JSON has its stable id.
    pub code: Code,
    /// Its name in words.
    pub name: String,
    /// The verdict class it counts for; [`Class::Healthy`] is a note.
    pub class: Class,
    /// The object, `None` when it is of the file as a whole.
    pub object: Option<u32>,
    /// Name of that object.
    pub object_name: Option<String>,
    /// How many there are; counted without a cap.
    pub count: u64,
    /// What the tool does about it.
    pub action: String,
    /// The first of them in full.
    pub kept: Vec<FindingItem>,
}

/// One finding with its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindingItem {
    /// The page.
    pub page: Option<u32>,
    /// The cell on it, from 0.
    pub cell: Option<u16>,
    /// "main", "wal frame 7", "journal record 3".
    pub origin: String,
    /// The byte within the decoded structure.
    pub at: u32,
    /// The value found.
    pub got: u64,
    /// The bound it broke.
    pub want: u64,
    /// The sentence of the problem table with these values.
    pub sentence: String,
    /// A name, a rowid, a value.
    pub detail: Option<String>,
}

impl FindingItem {
    /// Takes out what may be a value: the detail, and a rowid, which an INTEGER PRIMARY KEY makes one. `code` is its problem where
    /// that is known; what stands behind "rowid" or "row" in the sentence goes in any case.
    pub(crate) fn redact(&mut self, code: Option<Code>) {
        if let Some(detail) = self.detail.take() {
            if let Some(sentence) = self.sentence.strip_suffix(detail.as_str()) {
                self.sentence = sentence.trim_end_matches([' ', ':']).to_owned();
            }
            self.detail = Some(format!("({} redacted)", super::human::counted(wide(detail.chars().count()), "character")));
        }
        let names_row = code.is_none_or(|c| c.problem().sentence.contains("{rowid}"));
        let rowid = i64::from_ne_bytes(self.got.to_ne_bytes()).to_string();
        let told = ["rowid ", "row "].map(|word| format!("{word}{rowid}"));
        if names_row && told.iter().any(|t| self.sentence.contains(t.as_str())) {
            for (told, word) in told.iter().zip(["rowid", "row"]) {
                self.sentence = self.sentence.replace(told.as_str(), &format!("{word} (redacted)"));
            }
            self.got = 0;
        }
    }
}

/// A run of pages with the same role, owner and origin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageRun {
    /// The first page.
    pub first: u32,
    /// How many.
    pub count: u32,
    /// What they are: "table-leaf", "index-interior", "overflow", "freelist-leaf", "orphan", ...
    pub role: String,
    /// The object that owns them.
    pub owner: Option<u32>,
    /// "main", "wal", "journal".
    pub origin: String,
    /// Whether a finding says that the bytes of these pages are not what was written.
    pub damaged: bool,
    /// Whether a map given with `--map` says what they are.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overruled: bool,
}

/// Neighbouring pages that findings of the same codes name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageMark {
    /// The first page.
    pub first: u32,
    /// How many.
    pub count: u32,
    /// The ids of the codes, in their order.
    pub codes: Vec<String>,
}

/// A run of pages that a given map overrules.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Overruled {
    /// The first page.
    pub first: u32,
    /// How many.
    pub count: u32,
    /// What the survey took them for.
    pub was_role: String,
    /// Kind and name of the object that had them.
    pub was_owner: Option<String>,
    /// What the map says.
    pub role: String,
    /// Kind and name of the object that has them now.
    pub owner: Option<String>,
    /// The line of the map.
    pub line: u32,
}

impl Report {
    /// An empty report of a verb.
    #[must_use]
    pub fn new(verb: Verb) -> Report {
        Report {
            format: FORMAT,
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            verb,
            command: String::new(),
            evidence_options: String::new(),
            verdict: Verdict::default(),
            exit_code: 0,
            inputs: Vec::new(),
            snapshot: None,
            header: Vec::new(),
            sidecars: Vec::new(),
            page_size: 0,
            page_count: 0,
            pages_by_role: BTreeMap::new(),
            overruled: Vec::new(),
            objects: Vec::new(),
            findings: Vec::new(),
            hidden_rows: 0,
            error: None,
            timeline: None,
            recovery: None,
            carving: None,
            map: Vec::new(),
            marks: Vec::new(),
        }
    }

    /// Puts the findings in order, writes the verdict's sentence where there is none and sets the exit code. The last
    /// thing a pipeline does.
    pub fn seal(&mut self) {
        self.findings.sort_by(|a, b| {
            b.class.cmp(&a.class).then_with(|| a.object.cmp(&b.object)).then_with(|| a.code.problem().id.cmp(b.code.problem().id))
        });
        if self.verdict.sentence.is_empty() {
            self.verdict.sentence = super::sentence::verdict(self);
        }
        self.exit_code = self.code();
    }

    /// Takes the values of the evidence out of the findings: what is left is their length. Names of objects and columns stay.
    pub fn redact(&mut self) {
        for group in &mut self.findings {
            let code = group.code;
            group.kept.iter_mut().for_each(|item| item.redact(Some(code)));
        }
        let Some(recovery) = &mut self.recovery else { return };
        recovery.breakers.iter_mut().for_each(Breaker::redact);
        recovery.tables.iter_mut().for_each(super::phrases::redact_gone);
    }

    /// The exit code: for `recover` 0 nothing was wrong, 1 damage but every row is live, 2 rows lost, hidden or set
    /// aside, 3 no copy; for all other verbs 0 healthy, 1 index, search index or housekeeping only, 2 data damaged, 3 no
    /// database.
    #[must_use]
    pub fn code(&self) -> u8 {
        let by_class = match self.verdict.class {
            Class::Healthy => 0,
            Class::Housekeeping | Class::SearchIndexOnly | Class::IndexOnly => 1,
            Class::Structural => 2,
            Class::NotADatabase => 3,
        };
        if self.verb != Verb::Recover || by_class == 3 {
            return by_class;
        }
        let Some(recovery) = self.recovery.as_ref().filter(|r| r.outputs.iter().any(|o| o.role == OutputRole::Copy)) else { return 3 };
        let in_doubt = self.findings.iter().any(|g| g.code.problem().row == RowEffect::InDoubt);
        if self.hidden_rows > 0 || in_doubt || recovery.loses_rows() {
            2
        } else if by_class > 0 || !recovery.left_out.is_empty() {
            1
        } else {
            0
        }
    }

    /// Whether the ledger balances: pages = sum over roles (and over the map), and for each table rows found = rows
    /// written + rows set aside.
    ///
    /// # Errors
    /// The first equation that does not hold, in words.
    pub fn balance(&self) -> Result<(), String> {
        let by_role = self.pages_by_role.values().fold(0_u64, |sum, n| sum.saturating_add(*n));
        if by_role != self.page_count {
            return Err(format!("{} pages were read, {by_role} have a role", self.page_count));
        }
        if !self.map.is_empty() {
            let mut next = 1_u64;
            for run in &self.map {
                if u64::from(run.first) != next || run.count == 0 {
                    return Err(format!("the page map has a run at page {}, {next} would be next", run.first));
                }
                next = next.saturating_add(u64::from(run.count));
            }
            if next.saturating_sub(1) != self.page_count {
                return Err(format!("the page map covers {} of {} pages", next.saturating_sub(1), self.page_count));
            }
        }
        for group in &self.findings {
            if wide(group.kept.len()) > group.count {
                return Err(format!("{} findings {} are kept, {} counted", group.kept.len(), group.code, group.count));
            }
        }
        for table in self.recovery.iter().flat_map(|r| &r.tables) {
            let aside = table.rows_set_aside();
            if table.rows_found != table.rows_written.saturating_add(aside) {
                return Err(format!(
                    "table {:?}: {} rows found, {} written and {aside} set aside",
                    table.name, table.rows_found, table.rows_written
                ));
            }
        }
        Ok(())
    }

    /// The object with this id.
    #[must_use]
    pub fn object(&self, id: u32) -> Option<&Object> {
        self.objects.iter().find(|o| o.id == id)
    }

    /// The report as JSON, indented, with a line feed at the end.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Plain data without maps that have non-text keys: serialisation cannot fail.
        let mut json = serde_json::to_string_pretty(self).unwrap_or_default();
        json.push('\n');
        json
    }
}
