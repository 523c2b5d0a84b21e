//! `rootpage hermes`: what a support engineer does with a `state.db` of Hermes Agent. One file a verb.

mod check;
mod doctor;
mod export;
mod list;
mod recover;
mod triage;
mod which;

use super::io::Fail;
use clap::Subcommand;

/// Check, list, export, recover, examine and triage the state.db of Hermes Agent
#[derive(Debug, Subcommand)]
pub(super) enum Args {
    Check(check::Args),
    List(list::Args),
    Export(export::Args),
    Recover(recover::Args),
    Doctor(doctor::Args),
    Triage(triage::Args),
}

impl Args {
    pub(super) fn run(self) -> Result<u8, Fail> {
        match self {
            Args::Check(args) => args.run(),
            Args::List(args) => args.run(),
            Args::Export(args) => args.run(),
            Args::Recover(args) => args.run(),
            Args::Doctor(args) => args.run(),
            Args::Triage(args) => args.run(),
        }
    }
}
