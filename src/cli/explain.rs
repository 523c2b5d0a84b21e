//! `rootpage explain`: an entry of the problem table.

use std::fmt::Write as _;

use rootpage::finding::{Code, Effect};
use rootpage::report::human::wrap;

use super::io::{Fail, emit, style};

/// Say what a finding means and what rootpage does about it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rootpage explain P001
  rootpage explain page-kind-bad
  rootpage explain --all")]
pub(super) struct Args {
    /// The code or the name that a report shows
    #[arg(value_name = "CODE", required_unless_present = "all")]
    code: Option<String>,
    /// List all codes, one a line
    #[arg(long)]
    all: bool,
}

/// A sentence of the table with letters for the values of a finding.
fn words(sentence: &str) -> String {
    sentence.replace("{got}", "N").replace("{rowid}", "N").replace("{want}", "M")
}

impl Args {
    pub(super) fn run(self) -> Result<u8, Fail> {
        let mut out = String::new();
        if self.all {
            for code in Code::ALL {
                let p = code.problem();
                let _ = writeln!(out, "{}  {:30}  {}", p.id, p.name, words(p.sentence));
            }
            emit(&out)?;
            return Ok(0);
        }
        let text = self.code.unwrap_or_default();
        let Some(code) = Code::find(&text) else {
            return Err(Fail::Usage(format!("no finding has the code {text:?}; `rootpage explain --all` lists them")));
        };
        let p = code.problem();
        let width = style().width;
        let effect = match p.effect {
            Effect::Note => "Reading goes on as if all were right.",
            Effect::SkipItem => "This item is lost, its neighbours are not.",
            Effect::StopHere => "Nothing is read behind this point of the structure.",
        };
        let _ = writeln!(out, "{} {}\n", p.id, p.name);
        let meaning = p.meaning.split_whitespace().collect::<Vec<_>>().join(" ");
        let sentence = words(p.sentence);
        for (lead, text) in [("Found:   ", sentence.as_str()), ("Meaning: ", &meaning), ("Spread:  ", effect), ("Action:  ", p.action)] {
            for (i, line) in wrap(text, width.saturating_sub(9)).iter().enumerate() {
                let _ = writeln!(out, "{}{line}", if i == 0 { lead } else { "         " });
            }
        }
        emit(&out)?;
        Ok(0)
    }
}
