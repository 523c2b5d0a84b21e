//! Options that several verbs share, and what they mean to the library.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::ValueEnum;
use rootpage::ctx::{Ctx, Limits, Silent};
use rootpage::verbs::{Inputs, Options, Snapshot, SuperJournal};

use super::io::{Bar, Fail, watch_signals};

/// Which files are the evidence, and which version of the database in them is read.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Evidence")]
pub(super) struct Evidence {
    /// Read this write-ahead log instead of DB-wal; give it several times for several captures of one log
    #[arg(long, value_name = "FILE", conflicts_with = "no_wal")]
    pub(super) wal: Vec<PathBuf>,
    /// Read this rollback journal instead of DB-journal
    #[arg(long, value_name = "FILE", conflicts_with = "no_journal")]
    pub(super) journal: Option<PathBuf>,
    /// Read this shared-memory file instead of DB-shm
    #[arg(long, value_name = "FILE")]
    pub(super) shm: Option<PathBuf>,
    /// Read no write-ahead log, even if one lies beside the database
    #[arg(long)]
    pub(super) no_wal: bool,
    /// Read no rollback journal, even if one lies beside the database
    #[arg(long)]
    pub(super) no_journal: bool,
    /// The version to read: commit:N, frame:N or branch:NAME (commits and frames of the log, from 1)
    #[arg(long, value_name = "SNAPSHOT", value_parser = snapshot)]
    pub(super) at: Option<Snapshot>,
    /// Where the database begins inside a larger file
    #[arg(long, value_name = "BYTES", default_value_t = 0, hide_default_value = true)]
    pub(super) offset: u64,
    /// A page map, edited by hand, that overrules what the survey says of pages
    #[arg(long, value_name = "FILE")]
    pub(super) map: Option<PathBuf>,
    /// Settle a rollback that depends on a super-journal: was it there (roll back) or not (keep)?
    #[arg(long, value_name = "STATE", value_enum)]
    pub(super) super_journal: Option<Super>,
}

/// The choice of `--super-journal`.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum Super {
    /// It was there: the transaction is rolled back
    Present,
    /// It was gone: the transaction is kept
    Absent,
}

/// How the run behaves.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Running")]
pub(super) struct Running {
    /// Show no progress
    #[arg(long, short)]
    pub(super) quiet: bool,
    /// Leave values of the evidence out of the report: only their class and length
    #[arg(long)]
    pub(super) redact: bool,
    /// Read by plain reads; map no file into memory
    #[arg(long)]
    pub(super) no_mmap: bool,
    /// Take no SHA-256 of the inputs (for measuring)
    #[arg(long, hide = true)]
    pub(super) no_hash: bool,
    /// Worker threads [default: one for each core]
    #[arg(long, value_name = "N")]
    pub(super) threads: Option<std::num::NonZeroUsize>,
    /// Memory for sorts and caches before they go to temporary files, such as 64M or 2G
    #[arg(long, value_name = "LIMIT", value_parser = memory)]
    pub(super) memory: Option<usize>,
}

impl Evidence {
    /// What the library reads for this database.
    pub(super) fn inputs(&self, db: &Path) -> Inputs {
        Inputs {
            db: db.to_path_buf(),
            wal: self.wal.clone(),
            journal: self.journal.clone(),
            shm: self.shm.clone(),
            no_wal: self.no_wal,
            no_journal: self.no_journal,
            offset: self.offset,
            at: self.at.clone(),
            super_journal: self.super_journal.map(|s| match s {
                Super::Present => SuperJournal::Present,
                Super::Absent => SuperJournal::Absent,
            }),
            schema: None,
            map: self.map.clone(),
        }
    }

    /// Whether an option names files of one database and can therefore not go with several.
    pub(super) fn names_files(&self) -> bool {
        !self.wal.is_empty() || self.journal.is_some() || self.shm.is_some() || self.map.is_some()
    }
}

impl Running {
    /// The library's options, those of `recover` at their defaults.
    pub(super) fn options(&self) -> Options {
        let mut options = Options::default();
        options.no_mmap = self.no_mmap;
        options.redact = self.redact;
        options.no_hash = self.no_hash;
        options
    }

    /// Limits, progress on stderr when that is a terminal, and the signal handler.
    pub(super) fn ctx(&self) -> Result<Ctx, Fail> {
        let mut limits = Limits::default();
        limits.threads = self.threads.map_or(0, std::num::NonZeroUsize::get);
        if let Some(memory) = self.memory {
            limits.memory = memory;
        }
        let ctx = if self.quiet { Ctx::new(limits, Arc::new(Silent)) } else { Ctx::new(limits, Arc::new(Bar::new())) };
        watch_signals(ctx.cancel_flag());
        Ok(ctx)
    }
}

pub(super) fn snapshot(text: &str) -> Result<Snapshot, String> {
    let number = |n: &str| n.parse::<u32>().map_err(|_| format!("{n:?} is no number"));
    match text.split_once(':') {
        Some(("commit", n)) => Ok(Snapshot::Commit(number(n)?)),
        Some(("frame", n)) => Ok(Snapshot::Frame(number(n)?)),
        Some(("branch", name)) if !name.is_empty() => Ok(Snapshot::Branch(name.to_owned())),
        _ => Err("expected commit:N, frame:N or branch:NAME".to_owned()),
    }
}

/// Bytes with an optional binary unit: 4096, 64K, 256M, 2GiB.
pub(super) fn memory(text: &str) -> Result<usize, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = text.get(digits.len()..).unwrap_or_default().trim().to_ascii_lowercase();
    let factor: usize = match unit.trim_end_matches("ib").trim_end_matches('b') {
        "" => 1,
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        _ => return Err("expected a number of bytes, such as 67108864, 64M or 2G".to_owned()),
    };
    let bytes = digits.parse::<usize>().ok().and_then(|n| n.checked_mul(factor)).ok_or("expected a number of bytes, such as 64M")?;
    if bytes < 1 << 20 { Err("at least 1M is needed".to_owned()) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_units_are_binary() {
        assert_eq!(memory("64M"), Ok(64 << 20));
        assert_eq!(memory("2GiB"), Ok(2 << 30));
        assert_eq!(memory("1048576"), Ok(1 << 20));
        for bad in ["", "M", "12", "64X", "-1", "99999999999999999999G"] {
            assert!(memory(bad).is_err(), "{bad}");
        }
    }
}
