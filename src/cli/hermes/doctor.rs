//! `rootpage hermes doctor`: where the stores of Hermes live, by profile.

use std::path::PathBuf;

use rootpage::host::doctor::{self, Patient, Wanted};
use rootpage::host::text;

use super::super::io::{Fail, emit, style};
use super::super::options::{Evidence, Running};
use super::which::Which;

/// Say of each profile where its store lives, who has it open, in which mode it is, and what to do first
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rootpage hermes doctor --home ~/.hermes
  rootpage hermes doctor state.db --mountinfo mountinfo.txt --was-at /opt/data/state.db

Exit codes: 0 nothing to do, 1 a warning, 2 danger, 64 wrong arguments, 74 cannot
read, 130 cancelled.")]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    /// A copy of /proc/self/mountinfo from the machine of the incident, instead of this machine's
    #[arg(long, value_name = "FILE")]
    mountinfo: Option<PathBuf>,
    /// The path that the store had on that machine
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
        let stores = self.which.stores(&Evidence::default())?;
        if self.was_at.is_some() && stores.len() > 1 {
            return Err(Fail::Usage("--was-at goes with one store; look at them one by one".to_owned()));
        }
        let patients: Vec<Patient> = stores
            .iter()
            .map(|store| {
                let mut patient = Patient::at(&store.path);
                patient.name = Some(store.profile.clone());
                let words = "then write these lines into the config.yaml of the profile, so that Hermes does not switch back";
                patient.setting = Some((words.to_owned(), vec!["database:".to_owned(), "  journal_mode: delete".to_owned()]));
                patient
            })
            .collect();
        let mut wanted = Wanted::default();
        (wanted.mountinfo, wanted.was_at) = (self.mountinfo, self.was_at);
        (wanted.rescue, wanted.quick) = (self.rescue, self.quick);
        let diagnosis = doctor::examine(&patients, &wanted, &self.running.options(), &ctx)?;
        emit(&if self.json { diagnosis.to_json() } else { text::render(&diagnosis, &style()) })?;
        Ok(diagnosis.exit_code)
    }
}
