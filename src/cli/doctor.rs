//! `rootpage doctor`: where a database lives, who has it open, what to do first.

use std::path::PathBuf;

use rootpage::host::doctor::{self, Patient, Wanted};
use rootpage::host::text;

use super::io::{Fail, emit, style};
use super::options::Running;

/// Say where a database lives, who has it open, in which mode it is, and what to do first
///
/// Looks at the mount (virtiofs and 9p break a write-ahead log), the journal mode in the header, the log and how much of it
/// is not in the file yet, the processes that have the files open, the locks, and the pages. Changes nothing.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rootpage doctor state.db
  rootpage doctor state.db --rescue saved       a log that was deleted while a process
                                                has it open is copied out first
  rootpage doctor state.db --mountinfo mountinfo.txt --was-at /opt/data/state.db
                                                the files of an incident elsewhere

Exit codes: 0 nothing to do, 1 a warning, 2 danger, 64 wrong arguments, 74 cannot
read, 130 cancelled.")]
pub(super) struct Args {
    /// Databases, or folders with databases in them
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// A copy of /proc/self/mountinfo from the machine of the incident, instead of this machine's
    #[arg(long, value_name = "FILE")]
    mountinfo: Option<PathBuf>,
    /// The path that the database had on that machine
    #[arg(long, value_name = "PATH", requires = "mountinfo")]
    was_at: Option<PathBuf>,
    /// Copy files that were deleted while a process has them open into this folder, before anything else
    #[arg(long, value_name = "DIR", conflicts_with = "mountinfo")]
    rescue: Option<PathBuf>,
    /// Do not read the pages: place, mode, log and holders only
    #[arg(long)]
    quick: bool,
    /// Print the diagnosis as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    running: Running,
}

impl Args {
    pub(super) fn run(self) -> Result<u8, Fail> {
        let ctx = self.running.ctx()?;
        let mut patients = Vec::new();
        for path in &self.paths {
            if path.is_dir() {
                let found = doctor::stores_in(path)?;
                if found.is_empty() {
                    return Err(Fail::Usage(format!("{}: no database lies in this folder; name the file", path.display())));
                }
                patients.extend(found.iter().map(|p| Patient::at(p)));
            } else {
                patients.push(Patient::at(path));
            }
        }
        if self.was_at.is_some() && patients.len() > 1 {
            return Err(Fail::Usage("--was-at goes with one database; look at them one by one".to_owned()));
        }
        let mut wanted = Wanted::default();
        (wanted.mountinfo, wanted.was_at) = (self.mountinfo, self.was_at);
        (wanted.rescue, wanted.quick) = (self.rescue, self.quick);
        let diagnosis = doctor::examine(&patients, &wanted, &self.running.options(), &ctx)?;
        if self.json {
            emit(&diagnosis.to_json())?;
        } else {
            emit(&text::render(&diagnosis, &style()))?;
        }
        Ok(diagnosis.exit_code)
    }
}
