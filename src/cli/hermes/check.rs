//! `rootpage hermes check`: what the state of a store means for the customer.

use rootpage::error::Error;
use rootpage::hermes::{self, StoreReport};

use super::super::io::{Fail, complain, emit};
use super::super::options::{Evidence, Running};
use super::which::{Which, inputs};

/// Say of each store what its state means for the customer, what is damaged, and what to do next
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rootpage hermes check ~/.hermes/state.db
  rootpage hermes check --home ~/.hermes          the default profile and profiles/*
  rootpage hermes check --json a/state.db b/state.db

Exit codes: 0 healthy, 1 search, an index or bookkeeping is damaged and the
transcript intact, 2 data is damaged, 3 unreadable; the worst of all stores.
64 wrong arguments, 74 cannot read, 75 a store changed while it was read.")]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    /// Print the answer as JSON (docs/hermes.md documents it)
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    evidence: Evidence,
    #[command(flatten)]
    running: Running,
}

impl Args {
    pub(super) fn run(self) -> Result<u8, Fail> {
        let ctx = self.running.ctx()?;
        let mut worst = 0;
        for store in self.which.stores(&self.evidence)? {
            let code = match hermes::check(&store.profile, &inputs(&store, &self.evidence), &self.running.options(), &ctx) {
                Ok(report) => {
                    self.tell(&report)?;
                    report.exit_code
                }
                Err(Error::Cancelled) => return Err(Fail::Tool(Error::Cancelled)),
                Err(error) => {
                    let fail = Fail::from(error);
                    if self.json {
                        self.tell(&StoreReport::unreadable(&store.profile, &store.path, &fail.to_string()))?;
                    }
                    complain(&fail)
                }
            };
            worst = worst.max(code);
        }
        Ok(worst)
    }

    fn tell(&self, report: &StoreReport) -> Result<(), Fail> {
        if !self.json {
            return emit(&report.text());
        }
        let text = serde_json::to_string(report).map_err(|e| Fail::Output(e.into()))?;
        emit(&format!("{text}\n"))
    }
}
