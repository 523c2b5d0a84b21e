//! `rootpage hermes list`: the sessions of a store.

use std::io::{self, BufWriter, Write};

use rootpage::error::Error;
use rootpage::hermes::{self, SessionLine, StorePath};
use rootpage::report::human::{count, name};

use super::super::io::{Fail, complain, emit};
use super::super::options::{Evidence, Running};
use super::which::{Which, inputs};

/// List the sessions of each store straight from the evidence, newest activity first
///
/// Shows every session that the evidence still holds: those whose row is lost and that only messages or an index name, and
/// those that only a hidden part of the log has. Times are UTC; `?` stands for one that cannot be.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rootpage hermes list state.db
  rootpage hermes list --home ~/.hermes --json | jq -r .session.id

Exit codes: as `rootpage hermes check`.")]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    /// Print one JSON object for each session (docs/hermes.md documents it)
    #[arg(long)]
    json: bool,
    /// Show sessions of the source `tool`, too
    #[arg(long)]
    all: bool,
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
            let code = match self.one(&store, &ctx) {
                Ok(code) => code,
                Err(fail @ (Fail::Tool(Error::Cancelled) | Fail::Pipe | Fail::Output(_))) => return Err(fail),
                Err(fail) => complain(&fail),
            };
            worst = worst.max(code);
        }
        Ok(worst)
    }

    fn one(&self, store: &StorePath, ctx: &rootpage::ctx::Ctx) -> Result<u8, Fail> {
        let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
        let profile = name(&store.profile);
        let (mut shown, mut held, mut messages) = (0_u64, 0_u64, 0_u64);
        let mut warnings = Vec::new();
        let io_error = |e: io::Error| Error::Io { path: "standard output".into(), action: "write", source: e };
        let code = hermes::list(&inputs(store, &self.evidence), &self.running.options(), ctx, |line| {
            if !self.all && line.source.as_deref() == Some("tool") {
                held = held.saturating_add(1);
                return Ok(());
            }
            shown = shown.saturating_add(1);
            messages = messages.saturating_add(line.messages);
            if self.json {
                let object = serde_json::json!({ "format": hermes::FORMAT, "profile": store.profile, "session": line });
                return writeln!(out, "{object}").map_err(io_error);
            }
            if shown == 1 {
                let head = ["Title", "Preview", "Workspace", "Last Active", "Src", "Messages", "ID"];
                writeln!(out, "{profile}: {}", columns(&head.map(str::to_owned))).map_err(io_error)?;
            }
            warnings.extend(line.warnings.iter().take(100_usize.saturating_sub(warnings.len())).cloned());
            writeln!(out, "{profile}: {}", row(&line)).map_err(io_error)
        })?;
        out.flush()?;
        drop(out);
        for w in warnings {
            // Warnings stand apart from the list, so that a script reads only sessions.
            let _ = writeln!(io::stderr(), "{profile}: {}", name(&w));
        }
        if !self.json {
            let more = if held > 0 { format!(", {} of the source tool not shown (--all)", count(held)) } else { String::new() };
            emit(&format!("{profile}: {} sessions, {} messages{more}\n", count(shown), count(messages)))?;
        }
        Ok(code)
    }
}

/// Widths of the columns but the last, in characters.
const WIDTHS: [usize; 6] = [32, 38, 16, 16, 14, 8];

fn columns(cells: &[String; 7]) -> String {
    let mut out = String::new();
    for (cell, width) in cells.iter().zip(WIDTHS) {
        let mut text: String = cell.chars().take(width).collect();
        if cell.chars().count() > width {
            text.pop();
            text.push('…');
        }
        let gap = width.saturating_sub(console::measure_text_width(&text)).saturating_add(2);
        out.push_str(&text);
        out.push_str(&" ".repeat(gap));
    }
    out.push_str(cells.last().map(String::as_str).unwrap_or_default());
    out
}

fn row(line: &SessionLine) -> String {
    let text = |v: &Option<String>, none: &str| v.as_deref().map_or_else(|| none.to_owned(), name);
    let at = line.last_active.map_or_else(|| "?".to_owned(), |t| hermes::utc(t).chars().take(16).collect());
    let labels = if line.labels.is_empty() { String::new() } else { format!("  [{}]", line.labels.join(", ")) };
    columns(&[
        text(&line.title, "-"),
        text(&line.preview, "-"),
        text(&line.workspace, "-"),
        at,
        text(&line.source, "-"),
        line.messages.to_string(),
        format!("{}{labels}", name(&line.id)),
    ])
}
