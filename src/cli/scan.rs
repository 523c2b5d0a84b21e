//! `rootpage scan`: what a disk image holds.

use std::path::PathBuf;

use rootpage::report::human::{bytes, escape};
use rootpage::verbs;

use super::io::{Fail, emit};
use super::options::Running;

/// Find every database, log and journal inside a disk image, memory dump or backup file
///
/// The image is read once, front to back. Each find comes with its offset, page size, size, whether it lies there whole,
/// and one line of verdict. Databases in fragments are found by their first page; leaf pages that belong to none as well.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rootpage scan disk.img
  rootpage scan disk.img --extract found
  rootpage check disk.img --offset 1048576     one of them in its place

Exit codes: 0 something was found, 1 nothing; 64, 74 and 130 as all verbs.")]
pub(super) struct Args {
    /// The image
    #[arg(value_name = "IMAGE")]
    image: PathBuf,
    /// Copy each find into this new folder
    #[arg(long, value_name = "DIR")]
    extract: Option<PathBuf>,
    /// Print one JSON object a find
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    running: Running,
}

impl Args {
    pub(super) fn run(self) -> Result<u8, Fail> {
        let ctx = self.running.ctx()?;
        let found = verbs::scan(&self.image, self.extract.as_deref(), &self.running.options(), &ctx)?;
        let mut out = String::new();
        for f in &found {
            if self.json {
                out.push_str(&serde_json::to_string(f).unwrap_or_default());
                out.push('\n');
                continue;
            }
            out.push_str(&format!(
                "{:>14}  {:11} {:>6}  {:>10}  {:5}  {}\n",
                f.offset,
                f.kind,
                f.page_size,
                bytes(f.bytes),
                if f.whole { "whole" } else { "parts" },
                escape(&f.verdict)
            ));
            if let Some(file) = &f.file {
                out.push_str(&format!("{:16}{}\n", "", escape(file)));
            }
        }
        if !self.json {
            let head = format!("{:>14}  {:11} {:>6}  {:>10}  {:5}  verdict\n", "offset", "what", "page", "size", "there");
            out = if found.is_empty() { "nothing found\n".to_owned() } else { head + &out };
        }
        emit(&out)?;
        Ok(u8::from(found.is_empty()))
    }
}
