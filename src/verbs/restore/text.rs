//! A restore for a terminal.

use std::fmt::Write as _;

use crate::report::human::{count, counted, escape, name, shell, wrap};
use crate::report::text::Style;

use super::model::{Restored, RestoredTable};

/// Conflicts shown of each table.
const SHOWN: usize = 5;

impl Restored {
    /// The text of it.
    #[must_use]
    pub fn text(&self, style: &Style) -> String {
        let mut out = String::new();
        let sum = |f: fn(&RestoredTable) -> u64| self.tables.iter().map(f).fold(0_u64, u64::saturating_add);
        let (restored, there) = (sum(|t| t.restored), sum(|t| t.already_there));
        let refused = sum(|t| t.refused.values().fold(0, |s, n| s.saturating_add(*n)));
        let verb = if self.out.is_some() { "restored" } else { "would be restored" };
        let mut first = format!("{} {verb}", counted(restored, "row"));
        if there > 0 {
            let _ = write!(first, ", {} there already", count(there));
        }
        if refused > 0 {
            let _ = write!(first, ", {} not", count(refused));
        }
        if let Some(path) = &self.out {
            let _ = write!(first, ": {}", escape(path));
        }
        let _ = writeln!(out, "{first}");
        for t in &self.tables {
            let mut line = format!("  {}: {} of {} chosen", name(&t.table), count(t.restored), count(t.chosen));
            let mut part = |n: u64, words: &str| {
                if n > 0 {
                    let _ = write!(line, ", {} {words}", count(n));
                }
            };
            part(t.replaced, "in the place of another");
            part(t.renumbered, "under a new rowid");
            part(t.already_there, "there already");
            for (how, n) in t.how.iter().filter(|(how, _)| how.as_str() == "index-only") {
                part(*n, &format!("put together from an index ({how}): unknown columns are NULL"));
            }
            for (kind, n) in &t.refused {
                part(*n, &format!("not: {kind}"));
            }
            paragraph("", &line, style, &mut out);
            for c in self.conflicts.iter().filter(|c| c.table == t.table).take(SHOWN) {
                let detail = c.detail.as_ref().map(|d| format!(": {}", name(d))).unwrap_or_default();
                paragraph("    ", &format!("row {} of {}, {}{detail}", c.salvage_row, name(&c.salvage_table), c.kind), style, &mut out);
            }
            let refused = t.refused.values().fold(0_u64, |s, n| s.saturating_add(*n));
            if refused > crate::ids::wide(SHOWN) {
                let _ = writeln!(out, "    and {} more; --json lists them", count(refused.saturating_sub(crate::ids::wide(SHOWN))));
            }
        }
        for t in self.not_rows.iter().filter(|t| t.rows > 0) {
            paragraph("  ", &format!("{}: {}, {}", name(&t.salvage_table), counted(t.rows, "row"), t.why), style, &mut out);
        }
        if self.tables.iter().any(|t| t.refused.contains_key("key-taken")) && !self.replace {
            paragraph("  ", "--replace lets a chosen row take the place of the one that is there.", style, &mut out);
        }
        for left in &self.left_out {
            paragraph("  ", &format!("{} could not be built over the new rows and is left out", name(left)), style, &mut out);
        }
        if let (Some(finish), Some(path)) = (&self.finish, &self.out) {
            let _ = writeln!(out, "  Read the finish script, then run it:\n    sqlite3 {} < {}", shell(path), shell(finish));
        }
        if self.out.is_none() {
            let _ = writeln!(out, "  Nothing was written.");
        }
        out
    }
}

fn paragraph(indent: &str, text: &str, style: &Style, out: &mut String) {
    let lead = text.len().saturating_sub(text.trim_start().len());
    let rest = format!("{indent}{}", " ".repeat(lead.saturating_add(2)));
    for (i, line) in wrap(text.trim_start(), style.width.saturating_sub(rest.len()).max(20)).iter().enumerate() {
        let _ = if i == 0 { writeln!(out, "{indent}{}{line}", " ".repeat(lead)) } else { writeln!(out, "{rest}{line}") };
    }
}
