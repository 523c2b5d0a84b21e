//! `rootpage map`: every page with its role and owner.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use rootpage::error::Error;
use rootpage::report::{html, page_map};
use rootpage::verbs;

use super::io::{Fail, emit};
use super::options::{Evidence, Running};

/// List every page with its role and owner, as text or as a picture
///
/// The text has one line for each run of equal pages: first page, count, role, owner, origin. A ! behind the role marks
/// damaged pages. The picture names owner and findings of each page.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rootpage map state.db                  text
  rootpage map state.db -o map.html      a picture: every page in the colour of its role
  rootpage map state.db | grep '!'       the damaged pages

The text can be edited and given back with --map: a line says that pages are
orphan, free, unreadable, or table-leaf, table-interior, index-leaf, index-interior
of an owner (root:N). Lines that are left out or not changed change nothing.")]
pub(super) struct Args {
    /// The database; a -wal alone is read as one, too
    #[arg(value_name = "DB")]
    db: PathBuf,
    /// Write to this file, which must not exist: a picture if its name ends in .html, else text
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print the runs as JSON
    #[arg(long, conflicts_with = "out")]
    json: bool,
    #[command(flatten)]
    evidence: Evidence,
    #[command(flatten)]
    running: Running,
}

impl Args {
    pub(super) fn run(self) -> Result<u8, Fail> {
        let ctx = self.running.ctx()?;
        let report = verbs::map(&self.evidence.inputs(&self.db), &self.running.options(), &ctx)?;
        if self.json {
            emit(&page_map::to_json(&report))?;
            return Ok(report.exit_code);
        }
        let Some(out) = &self.out else {
            emit(&page_map::to_text(&report))?;
            return Ok(report.exit_code);
        };
        let picture = out.extension().is_some_and(|e| e.eq_ignore_ascii_case("html") || e.eq_ignore_ascii_case("htm"));
        let text = if picture { html::render(&report)? } else { page_map::to_text(&report) };
        save(out, &text)?;
        Ok(report.exit_code)
    }
}

/// Writes a file that must not exist: complete under its name, or not at all.
fn save(out: &Path, text: &str) -> Result<(), Fail> {
    let io = |source| Fail::from(Error::io(out, "write", source));
    let folder = out.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(".rootpage-").tempfile_in(folder).map_err(io)?;
    file.write_all(text.as_bytes()).map_err(io)?;
    file.as_file().sync_all().map_err(io)?;
    file.persist_noclobber(out).map_err(|e| match e.error.kind() {
        ErrorKind::AlreadyExists => Fail::Tool(Error::Exists { path: out.to_path_buf() }),
        _ => io(e.error),
    })?;
    Ok(())
}
