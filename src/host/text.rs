//! The diagnosis for a terminal.

use std::fmt::Write as _;

use crate::report::human::{bytes, count, counted, escape, wrap};
use crate::report::model::Class;
use crate::report::text::Style;

use super::diagnose::summary;
use super::doctor::{Diagnosis, Examined, JournalMode, Step, Urgency};
use super::journal_mode::Converted;

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
    steps(x.findings.iter().flat_map(|f| &f.steps), style, out);
}

/// Numbered steps with their commands.
fn steps<'s>(steps: impl Iterator<Item = &'s Step>, style: &Style, out: &mut String) {
    for (i, step) in steps.enumerate() {
        if i == 0 {
            out.push_str("  Next steps\n");
        }
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

/// What a conversion of the journal mode came to.
#[must_use]
pub fn converted(done: &Converted, style: &Style) -> String {
    let mut out = String::new();
    match (&done.out, &done.refused) {
        (Some(path), _) => {
            let log = if done.from_log > 0 { format!(", {} of them from the log", count(u64::from(done.from_log))) } else { String::new() };
            let rolled = if done.rolled_back { ", an unfinished transaction rolled back" } else { "" };
            let pages = counted(u64::from(done.pages), "page");
            paragraph("", "", &format!("{path}: a copy in {} mode, {pages}{log}{rolled}.", done.mode.word()), style, &mut out);
            if done.damage > Class::Healthy {
                paragraph("", "", &format!("It is damaged as before ({}); no row is at stake.", done.damage.word()), style, &mut out);
            }
        }
        (None, why) => {
            let why = why.as_deref().unwrap_or_default().trim_end_matches('.');
            paragraph("", "", &format!("{}: no copy was written. {why}.", done.path), style, &mut out);
        }
    }
    steps(done.steps.iter(), style, &mut out);
    out
}
