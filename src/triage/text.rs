//! A triage for a terminal.

use std::fmt::Write as _;

use crate::ids::wide;
use crate::report::human::{bytes, clip, count, counted, escape, name, wrap};
use crate::report::text::Style;

use super::model::{Relation, Triage};

/// Files, and lines of other lists, that are shown; all are in the JSON.
const SHOWN: usize = 200;

impl Triage {
    /// The text of it.
    #[must_use]
    pub fn text(&self, style: &Style) -> String {
        let mut out = String::new();
        match (self.sources.first(), &self.best) {
            (Some(best), Some(why)) => {
                let log = best.log.as_ref().map(|l| format!(" with {l}")).unwrap_or_default();
                let journal = best.journal.as_ref().map(|l| format!(" and {l}")).unwrap_or_default();
                paragraph("", "", &format!("Best source: {}{log}{journal}: {why}.", best.name), style, &mut out);
                paragraph("", "", &best.verdict, style, &mut out);
            }
            _ => {
                let _ = writeln!(out, "No database in {}.", escape(&self.path));
            }
        }
        let _ = writeln!(out, "\nFiles ({})", count(wide(self.files.len())));
        let longest = self.files.iter().map(|f| f.name.chars().count()).max().unwrap_or(0);
        let width = longest.clamp(8, 36);
        for f in self.files.iter().take(SHOWN) {
            let mut words = f.what.clone();
            if !f.role.is_empty() {
                let _ = write!(words, "; {}", f.role);
            }
            if let Some(rows) = f.rows {
                let _ = write!(words, "; {}", counted(rows, "row"));
            }
            if let Some(newest) = &f.newest {
                let _ = write!(words, ", {newest}");
            }
            if let Some(verdict) = &f.verdict {
                let _ = write!(words, ". {verdict}");
            }
            let label = escape(&clip(&f.name, width));
            let first = format!("  {label}{} {:>10}  ", " ".repeat(width.saturating_sub(label.chars().count())), short(f.bytes));
            let rest = " ".repeat(width.saturating_add(15));
            paragraph(&first, &rest, &words, style, &mut out);
        }
        more(self.files.len(), &mut out);
        if !self.skipped.is_empty() {
            let _ = writeln!(out, "\nNot looked at ({})", count(wide(self.skipped.len())));
            for s in self.skipped.iter().take(SHOWN) {
                paragraph("  ", "    ", &format!("{}: {}", if s.name.is_empty() { &self.path } else { &s.name }, s.why), style, &mut out);
            }
            more(self.skipped.len(), &mut out);
        }
        let more_rows: Vec<_> = self.sources.iter().filter(|s| !s.only_here.is_empty()).collect();
        if !more_rows.is_empty() {
            let _ = writeln!(out, "\nRows that only one source has");
            for s in more_rows {
                let _ = writeln!(out, "  {}{}", escape(&s.name), if s.relation == Relation::Best { " (the best source)" } else { "" });
                for only in &s.only_here {
                    let keys: Vec<String> = only.keys.iter().take(5).map(|k| name(k)).collect();
                    let dots = if wide(keys.len()) < only.rows && !keys.is_empty() { ", …" } else { "" };
                    let keys = if keys.is_empty() { String::new() } else { format!(": {}{dots}", keys.join("; ")) };
                    let line = format!("{}, {}{keys}", name(&only.table), counted(only.rows, "row"));
                    for (i, l) in wrap(&line, style.width.saturating_sub(6).max(20)).iter().enumerate() {
                        let _ = writeln!(out, "{}{l}", if i == 0 { "    " } else { "      " });
                    }
                }
            }
        }
        if let Some(why) = &self.not_compared {
            paragraph("\n", "", why, style, &mut out);
        }
        if !self.missing.is_empty() {
            let _ = writeln!(out, "\nMissing from the bundle");
            for m in self.missing.iter().take(SHOWN) {
                paragraph("  ", "    ", m, style, &mut out);
            }
        }
        if !self.steps.is_empty() {
            let _ = writeln!(out, "\nNext steps");
        }
        for (i, step) in self.steps.iter().enumerate() {
            paragraph(&format!("  {}. ", i.saturating_add(1)), "     ", &step.words, style, &mut out);
            for command in &step.commands {
                let _ = writeln!(out, "       {command}");
            }
        }
        out
    }
}

fn more(n: usize, out: &mut String) {
    if n > SHOWN {
        let _ = writeln!(out, "  and {} more; --json lists them", count(wide(n.saturating_sub(SHOWN))));
    }
}

fn short(n: u64) -> String {
    bytes(n).replace(" bytes", " B").replace(" byte", " B")
}

fn paragraph(first: &str, rest: &str, text: &str, style: &Style, out: &mut String) {
    let width = style.width.saturating_sub(rest.len()).max(24);
    for (i, line) in wrap(&escape(text), width).iter().enumerate() {
        let _ = writeln!(out, "{}{line}", if i == 0 { first } else { rest });
    }
}
