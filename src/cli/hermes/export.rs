//! `rootpage hermes export`: transcripts straight from the evidence.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use rootpage::error::Error;
use rootpage::hermes::{self, ExportFormat, ExportOptions, Exported, StorePath};
use rootpage::report::human::{count, name};

use super::super::io::{Fail, complain};
use super::super::options::{Evidence, Running};
use super::which::{Which, inputs};

/// Write the transcripts of each store straight from the evidence
///
/// One bad row never ends it: what a cell holds and should not is kept as text and labelled. Messages that a compaction
/// archived or that were rewound are there and marked, so are those of which only a search index still has the text.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rootpage hermes export state.db -o sessions.jsonl          Hermes imports it again
  rootpage hermes export state.db --format html -o sessions.html
  rootpage hermes export state.db --session 20260928_101500_ab12cd --format md
  rootpage hermes export --home ~/.hermes --format html -o FOLDER   one file a profile

Exit codes: 0 written, 2 the session is not there, 3 not a database, 64 wrong
arguments, 74 a path cannot be read or written, 75 the store changed, 130 cancelled.")]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    /// How transcripts are written
    #[arg(long, short, value_enum, default_value_t = Format::Jsonl)]
    format: Format,
    /// Only this session
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Where to write; must not exist, or be a folder. Without it standard output
    #[arg(long, short, value_name = "OUT")]
    out: Option<PathBuf>,
    /// Print what was written as JSON on standard output (with -o)
    #[arg(long, requires = "out")]
    json: bool,
    #[command(flatten)]
    evidence: Evidence,
    #[command(flatten)]
    running: Running,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// One JSON object for each session, as the application imports it
    Jsonl,
    /// Markdown
    Md,
    /// One self-contained page
    Html,
}

impl Format {
    fn ending(self) -> &'static str {
        match self {
            Format::Jsonl => ".jsonl",
            Format::Md => ".md",
            Format::Html => ".html",
        }
    }
}

impl Args {
    pub(super) fn run(self) -> Result<u8, Fail> {
        let ctx = self.running.ctx()?;
        let stores = self.which.stores(&self.evidence)?;
        let folder = self.out.as_deref().filter(|o| hermes::is_folder(o));
        if stores.len() > 1 && self.format == Format::Html && folder.is_none() {
            return Err(Fail::Usage("several stores make several pages: name an existing folder with -o".to_owned()));
        }
        if stores.len() > 1 && self.out.is_some() && folder.is_none() {
            return Err(Fail::Usage("several stores make several files: name an existing folder with -o".to_owned()));
        }
        let mut worst = 0;
        for (i, store) in stores.iter().enumerate() {
            let target = self.out.as_deref().map(|out| match folder {
                Some(folder) => {
                    let double = stores.iter().take(i).any(|s| s.profile == store.profile);
                    let tail = if double { format!(".{i}{}", self.format.ending()) } else { self.format.ending().to_owned() };
                    folder.join(hermes::file_name(&store.profile, &tail))
                }
                None => out.to_path_buf(),
            });
            let code = match self.one(store, target.as_deref(), &ctx) {
                Ok(code) => code,
                Err(fail @ (Fail::Tool(Error::Cancelled) | Fail::Pipe | Fail::Output(_))) => return Err(fail),
                Err(fail) => complain(&fail),
            };
            worst = worst.max(code);
        }
        Ok(worst)
    }

    fn one(&self, store: &StorePath, target: Option<&Path>, ctx: &rootpage::ctx::Ctx) -> Result<u8, Fail> {
        let wanted = ExportOptions {
            format: match self.format {
                Format::Jsonl => ExportFormat::Jsonl,
                Format::Md => ExportFormat::Markdown,
                Format::Html => ExportFormat::Html,
            },
            session: self.session.clone(),
            redact: self.running.redact,
        };
        let inputs = inputs(store, &self.evidence);
        let options = self.running.options();
        let done = match target {
            None => {
                let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
                hermes::export(&store.profile, &inputs, &options, &wanted, &mut out, ctx)?
            }
            Some(path) => hermes::export_to(&store.profile, &inputs, &options, &wanted, path, ctx)?,
        };
        self.tell(store, target, &done)?;
        let missing = self.session.is_some() && done.sessions == 0;
        if missing {
            let _ = writeln!(
                io::stderr(),
                "rootpage: {}: no session {}",
                name(&store.profile),
                name(self.session.as_deref().unwrap_or_default())
            );
        }
        Ok(if missing { 2 } else { 0 })
    }

    fn tell(&self, store: &StorePath, target: Option<&Path>, done: &Exported) -> Result<(), Fail> {
        let profile = name(&store.profile);
        let path = target.map(|t| t.display().to_string()).unwrap_or_default();
        if self.json {
            let object = serde_json::json!({ "format": hermes::FORMAT, "profile": store.profile, "output": path, "exported": done });
            return super::super::io::emit(&format!("{object}\n"));
        }
        let mut err = io::stderr();
        for w in &done.warnings {
            let _ = writeln!(err, "{profile}: {}", name(w));
        }
        if done.more_warnings > 0 {
            let _ = writeln!(err, "{profile}: {} more warnings", count(done.more_warnings));
        }
        if target.is_some() {
            let text =
                format!("{profile}: {} sessions with {} messages written to {}\n", count(done.sessions), count(done.messages), name(&path));
            return super::super::io::emit(&text);
        }
        Ok(())
    }
}
