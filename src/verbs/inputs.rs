//! What a run is given: the files, the version of the database in them, and how it behaves.

use std::path::{Path, PathBuf};

use crate::report::human::{shell, shell_word};
use crate::report::model::Verb;

/// Which files are the evidence and which version of them is read.
#[derive(Debug, Clone, Default)]
pub struct Inputs {
    /// The database file, or a WAL alone.
    pub db: PathBuf,
    /// Write-ahead logs named by the caller, several captures of one log in the order given; none: the one beside `db`.
    pub wal: Vec<PathBuf>,
    /// The rollback journal named by the caller; none: the one beside `db`.
    pub journal: Option<PathBuf>,
    /// The shared memory of the WAL named by the caller; none: the one beside `db`.
    pub shm: Option<PathBuf>,
    /// Read no WAL.
    pub no_wal: bool,
    /// Read no journal.
    pub no_journal: bool,
    /// Where the database begins in the file, in bytes.
    pub offset: u64,
    /// The snapshot to read; none: the one that SQLite would show.
    pub at: Option<Snapshot>,
    /// Settles a rollback that depends on a super-journal.
    pub super_journal: Option<SuperJournal>,
    /// A healthy database or SQL text that gives the schema when it is lost.
    pub schema: Option<PathBuf>,
    /// A page map that overrules the survey.
    pub map: Option<PathBuf>,
}

impl Inputs {
    /// The options that name this evidence, ready for a POSIX shell, so that the next command reads the same.
    #[must_use]
    pub fn again(&self) -> String {
        let mut words = Vec::new();
        let mut path = |name: &str, value: &Path| words.push(format!("{name} {}", shell(&value.to_string_lossy())));
        for wal in &self.wal {
            path("--wal", wal);
        }
        for (name, value) in [("--journal", &self.journal), ("--shm", &self.shm), ("--schema", &self.schema), ("--map", &self.map)] {
            if let Some(value) = value {
                path(name, value);
            }
        }
        if self.no_wal {
            words.push("--no-wal".to_owned());
        }
        if self.no_journal {
            words.push("--no-journal".to_owned());
        }
        match &self.at {
            Some(Snapshot::Commit(n)) => words.push(format!("--at commit:{n}")),
            Some(Snapshot::Frame(n)) => words.push(format!("--at frame:{n}")),
            Some(Snapshot::Branch(name)) => words.push(shell_word(&format!("--at=branch:{name}"))),
            None => {}
        }
        if self.offset > 0 {
            words.push(format!("--offset {}", self.offset));
        }
        match self.super_journal {
            Some(SuperJournal::Present) => words.push("--super-journal present".to_owned()),
            Some(SuperJournal::Absent) => words.push("--super-journal absent".to_owned()),
            None => {}
        }
        words.join(" ")
    }

    /// The command that makes the report of a verb again. `recover` finds its outputs there, so it is told to move them.
    pub(crate) fn command(&self, verb: Verb, options: &Options, out: Option<&Path>) -> String {
        let mut words = vec!["rootpage".to_owned(), verb.word().to_owned(), shell(&self.db.to_string_lossy()), self.again()];
        if let Some(out) = out {
            words.push(format!("-o {} --force", shell(&out.to_string_lossy())));
        }
        for (name, is_set) in [
            ("--keep-violations", options.keep_violations),
            ("--keep-wal", options.keep_wal),
            ("--redact", options.redact),
            ("--no-mmap", options.no_mmap),
        ] {
            if is_set {
                words.push(name.to_owned());
            }
        }
        words.retain(|w| !w.is_empty());
        words.join(" ")
    }

    /// The evidence at a path, sidecars as they lie beside it.
    #[must_use]
    pub fn at_path(db: &Path) -> Inputs {
        Inputs { db: db.to_path_buf(), ..Inputs::default() }
    }
}

/// A version of the database.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Snapshot {
    /// After this commit of the WAL, from 1; 0 is the main file alone.
    Commit(u32),
    /// After this frame, which should end a transaction.
    Frame(u32),
    /// At the head of a branch that `history` names.
    Branch(String),
}

/// Whether the super-journal that a rollback journal names is taken as there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SuperJournal {
    /// It is there: the transaction is rolled back.
    Present,
    /// It is gone: the transaction was committed.
    Absent,
}

/// How a run behaves.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Options {
    /// Keep rows live that break their table's declaration.
    pub keep_violations: bool,
    /// Leave the copy in WAL mode when the evidence was.
    pub keep_wal: bool,
    /// Give the place of each row with it.
    pub provenance: bool,
    /// Move existing outputs aside.
    pub force: bool,
    /// Read by plain reads, map nothing.
    pub no_mmap: bool,
    /// Replace values of the evidence in reports by their class and length.
    pub redact: bool,
    /// Take no SHA-256 of the inputs (for measuring).
    pub no_hash: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_reads_the_same_evidence_again() {
        let inputs = Inputs {
            wal: vec!["my wal".into()],
            no_journal: true,
            at: Some(Snapshot::Branch("a b".to_owned())),
            offset: 512,
            map: Some("x.map".into()),
            ..Inputs::at_path(Path::new("it's.db"))
        };
        let evidence = "--wal 'my wal' --map x.map --no-journal '--at=branch:a b' --offset 512";
        assert_eq!(inputs.again(), evidence);
        let options = Options { keep_wal: true, ..Options::default() };
        let command = inputs.command(Verb::Recover, &options, Some(Path::new("out.db")));
        assert_eq!(command, format!(r"rootpage recover 'it'\''s.db' {evidence} -o out.db --force --keep-wal"));
    }
}
