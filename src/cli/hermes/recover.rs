//! `rootpage hermes recover`: a copy that the application opens.

use std::path::{Path, PathBuf};

use rootpage::error::Error;
use rootpage::hermes::{self, StorePath};

use super::super::io::{Fail, complain, emit};
use super::super::options::{Evidence, Running};
use super::which::{Which, inputs};

/// Write a clean copy of a store, made so that Hermes can open it, and what to tell the customer
///
/// As `rootpage recover`, and more: columns of a store without a readable schema from the application's history, placeholder
/// sessions for messages whose session is lost, starts of sessions that are none, references that lead nowhere, text of lost
/// messages from the search indexes, sessions that only a hidden or retired log or a fallback file holds. Nothing is installed.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rootpage hermes recover ~/.hermes/state.db -o state.recovered.db
  rootpage hermes recover --home ~/.hermes -o FOLDER     one copy a profile

Writes OUT, OUT.hermes.json (docs/hermes.md), OUT.report.json and OUT.report.html;
OUT.salvage.db and OUT.finish.sql when there is something to put into them.

Exit codes: as `rootpage recover`.")]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    /// Where to write the copy; must not exist. An existing folder with several stores
    #[arg(long, short, value_name = "OUT")]
    out: PathBuf,
    /// Move existing outputs aside instead of refusing to start
    #[arg(long)]
    force: bool,
    /// Print what was done as JSON (the same as OUT.hermes.json)
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
        let stores = self.which.stores(&self.evidence)?;
        let folder = hermes::is_folder(&self.out);
        if stores.len() > 1 && !folder {
            return Err(Fail::Usage("several stores make several copies: name an existing folder with -o".to_owned()));
        }
        let mut worst = 0;
        for (i, store) in stores.iter().enumerate() {
            let double = stores.iter().take(i).any(|s| s.profile == store.profile);
            let ending = if double { format!(".{i}.db") } else { ".db".to_owned() };
            let out = if folder { self.out.join(hermes::file_name(&store.profile, &ending)) } else { self.out.clone() };
            let code = match self.one(store, &out, &ctx) {
                Ok(code) => code,
                Err(fail @ (Fail::Tool(Error::Cancelled) | Fail::Pipe | Fail::Output(_))) => return Err(fail),
                Err(fail) => complain(&fail),
            };
            worst = worst.max(code);
        }
        Ok(worst)
    }

    fn one(&self, store: &StorePath, out: &Path, ctx: &rootpage::ctx::Ctx) -> Result<u8, Fail> {
        let mut options = self.running.options();
        options.force = self.force;
        let done = hermes::recover(&store.profile, &inputs(store, &self.evidence), &options, out, ctx)?;
        emit(&if self.json { done.to_json() } else { done.text() })?;
        Ok(done.exit_code)
    }
}
