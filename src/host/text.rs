//! The diagnosis for a terminal.

use std::fmt::Write as _;

use crate::report::human::{bytes, escape, wrap};
use crate::report::text::Style;

use super::diagnose::summary;
use super::doctor::{Diagnosis, Examined, JournalMode, Urgency};

/// The whole diagnosis.
#[must_use]
pub fn render(diagnosis: &Diagnosis, style: &Style) -> String {
    let mut out = String::new();
    for store in &diagnosis.stores {
        one(store, style, &mut out);
        out.push('\n');
    }
    for line in &diagnosis.blind {
        paragraph("", "", line, style, &mut out);
    }
    if diagnosis.stores.len() > 1 {
        let _ = writeln!(out, "{}", summary(&diagnosis.stores));
    }
    out
}

fn one(x: &Examined, style: &Style, out: &mut String) {
    let name = x.name.as_ref().map(|n| format!(" (profile {})", escape(n))).unwrap_or_default();
    let mode = match x.journal_mode {
        Some(JournalMode::Wal) => ", WAL mode",
        Some(JournalMode::Rollback) => ", rollback mode",
        Some(JournalMode::Unclear) => ", journal mode unclear",
        None => "",
    };
    let size = x.bytes.map(|n| format!(": {}{mode}", bytes(n))).unwrap_or_default();
    let _ = writeln!(out, "{}{name}{size}", escape(&x.path));
    if x.real_path != x.path && !x.real_path.ends_with(x.path.trim_start_matches("./")) {
        let _ = writeln!(out, "  is {}", escape(&x.real_path));
    }
    for finding in &x.findings {
        let word = finding.urgency.word();
        let tag = match (style.colour, finding.urgency) {
            (true, Urgency::Danger) => format!("\u{1b}[1;31m{word:8}\u{1b}[0m"),
            (true, Urgency::Warning) => format!("\u{1b}[33m{word:8}\u{1b}[0m"),
            _ => format!("{word:8}"),
        };
        paragraph(&format!("  {tag} "), "           ", &finding.sentence, style, out);
    }
    let steps: Vec<_> = x.findings.iter().flat_map(|f| &f.steps).collect();
    if steps.is_empty() {
        return;
    }
    out.push_str("  Next steps\n");
    for (i, step) in steps.iter().enumerate() {
        paragraph(&format!("  {}. ", i.saturating_add(1)), "     ", &step.words, style, out);
        for command in &step.commands {
            let _ = writeln!(out, "       {command}");
        }
    }
}

fn paragraph(first: &str, rest: &str, text: &str, style: &Style, out: &mut String) {
    let width = style.width.saturating_sub(rest.len()).max(20);
    for (i, line) in wrap(&escape(text), width).iter().enumerate() {
        let _ = writeln!(out, "{}{line}", if i == 0 { first } else { rest });
    }
}
