//! `rootpage page`: one page explained.

use std::path::PathBuf;

use rootpage::ids::PageNo;
use rootpage::report::text_page;
use rootpage::verbs;

use super::io::{Fail, emit, style};
use super::options::{Evidence, Running};

/// Explain one page: what it is, who owns it, every cell on it, its bytes in hex
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rootpage page state.db 17
  rootpage page state.db 17 --no-wal    the page as the main file holds it

Exit codes: those of `rootpage check` on the whole database.")]
pub(super) struct Args {
    /// The database; a -wal alone is read as one, too
    #[arg(value_name = "DB")]
    db: PathBuf,
    /// The page, counted from 1
    #[arg(value_name = "N")]
    page: u32,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
    /// Leave the hex dump out
    #[arg(long)]
    no_hex: bool,
    #[command(flatten)]
    evidence: Evidence,
    #[command(flatten)]
    running: Running,
}

impl Args {
    pub(super) fn run(self) -> Result<u8, Fail> {
        let Some(page) = PageNo::new(self.page) else {
            return Err(Fail::Usage("pages are counted from 1; there is no page 0".to_owned()));
        };
        let ctx = self.running.ctx()?;
        let view = verbs::page(&self.evidence.inputs(&self.db), &self.running.options(), page, &ctx)?;
        emit(&if self.json { view.to_json() } else { text_page::render(&view, &style(), !self.no_hex) })?;
        Ok(view.exit_code)
    }
}
