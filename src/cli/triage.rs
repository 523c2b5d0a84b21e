//! `rootpage triage`: what an incident bundle holds.

use std::io::Write as _;
use std::path::PathBuf;

use rootpage::triage::{self, Wanted};
use rootpage::write::file::OutputFile;

use super::io::{Fail, emit, style};
use super::options::Running;

/// Say what every file of an incident bundle is, which is the best source, and what the others add
///
/// Takes a folder, a tar, tar.gz, gz or zip archive. Files are recognised by their bytes, logs and journals are matched with
/// their databases by fit and not by name. Archives are unpacked with bounds into a private temporary folder.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rootpage triage incident/
  rootpage triage incident.zip --html triage.html
  rootpage triage incident.tar.gz --extract bundle    unpacks it, for the commands that follow

Exit codes: 0 the best source is whole and holds everything, 1 others add to it or
something is missing, 2 its data is damaged, 3 no database, 64 wrong arguments,
74 cannot read or write, 130 cancelled.")]
pub(super) struct Args {
    /// The folder or archive
    #[arg(value_name = "BUNDLE")]
    path: PathBuf,
    /// Unpack an archive into this folder, which must be new or empty, and leave it there
    #[arg(long, value_name = "DIR")]
    extract: Option<PathBuf>,
    /// Bytes that an archive may unpack to, such as 8G [default: 64G]
    #[arg(long, value_name = "SIZE", value_parser = super::options::memory)]
    max_size: Option<usize>,
    /// Write the result as a page for a browser
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    running: Running,
}

impl Args {
    pub(super) fn run(self) -> Result<u8, Fail> {
        let ctx = self.running.ctx()?;
        let html = self.html.as_ref().map(|path| OutputFile::create(path, false, &[&self.path])).transpose()?;
        let mut wanted = Wanted::default();
        wanted.extract = self.extract;
        wanted.most = self.max_size.map_or(0, |n| u64::try_from(n).unwrap_or(u64::MAX));
        let found = triage::examine(&self.path, &wanted, &self.running.options(), &ctx)?;
        if let Some(file) = html {
            let mut to = file.file();
            to.write_all(found.html()?.as_bytes())?;
            file.commit()?;
        }
        emit(&if self.json { found.to_json() } else { found.text(&style()) })?;
        Ok(found.exit_code)
    }
}
