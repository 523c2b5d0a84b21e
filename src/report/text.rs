//! The report for a terminal: verdict in one sentence, losses per table, what to do next, then findings by object.
#![expect(clippy::arithmetic_side_effects, reason = "widths and indents of text that this module made itself")]

use std::collections::BTreeMap;

use super::human::{bytes, count, counted, escape, ranges, wrap};
use super::model::{Access, Class, FindingGroup, Fit, InputRole, OutputRole, Recovery, Report, Status, TableRecovery};
use super::next;
use crate::ids::wide;

/// How the text is laid out.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Style {
    /// Columns of the terminal.
    pub width: usize,
    /// Whether escape sequences for colours may be used.
    pub colour: bool,
    /// Findings of one group that are shown in full.
    pub items: usize,
    /// Only the verdict and the losses.
    pub brief: bool,
    /// Options that name the evidence, as they were typed and ready for a shell; repeated in the next command.
    pub again: String,
}

impl Default for Style {
    fn default() -> Self {
        Style { width: 80, colour: false, items: 3, brief: false, again: String::new() }
    }
}

/// The report as text, with a line feed at the end of every line.
#[must_use]
pub fn render(report: &Report, style: &Style) -> String {
    let mut page = Sheet { style, out: String::new() };
    page.verdict(report);
    if let Some(recovery) = &report.recovery {
        page.recovery(report, recovery);
    }
    page.sidecars(report);
    if !style.brief {
        page.next(report);
        page.header(report);
        page.findings(report);
        page.summary(report);
    }
    page.out
}

struct Sheet<'a> {
    style: &'a Style,
    out: String,
}

impl Sheet<'_> {
    fn line(&mut self, text: &str) {
        self.out.push_str(text.trim_end());
        self.out.push('\n');
    }

    /// A paragraph behind `lead`, its further lines indented by `indent`.
    fn paragraph(&mut self, lead: &str, indent: usize, text: &str) {
        let width = self.style.width.max(indent + 20);
        let first = lead.chars().count();
        let pad = " ".repeat(indent);
        // The lead takes room on the first line only: a run of one long word stands for it.
        let lines = wrap(&format!("{}{text}", "\u{1}".repeat(first.saturating_sub(indent))), width - indent);
        for (i, line) in lines.iter().enumerate() {
            let line = line.trim_start_matches('\u{1}');
            if i == 0 { self.line(&format!("{lead}{line}")) } else { self.line(&format!("{pad}{line}")) }
        }
    }

    fn heading(&mut self, text: &str) {
        self.out.push('\n');
        let text = self.paint(text, "1");
        self.line(&text);
    }

    fn paint(&self, text: &str, sgr: &str) -> String {
        if self.style.colour { format!("\u{1b}[{sgr}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    fn verdict(&mut self, report: &Report) {
        let class = report.verdict.class;
        let sgr = match class {
            Class::Healthy => "1;32",
            Class::Housekeeping | Class::SearchIndexOnly | Class::IndexOnly => "1;33",
            Class::Structural | Class::NotADatabase => "1;31",
        };
        let name = main_path(report).map(|p| format!("{}: ", escape(p))).unwrap_or_default();
        let width = self.style.width.max(20);
        for (i, line) in wrap(&format!("{name}{}", escape(&report.verdict.sentence)), width).iter().enumerate() {
            // Only the sentence is coloured, and only where it begins: the path keeps the terminal's own colour.
            let painted = match line.strip_prefix(name.as_str()) {
                Some(rest) if i == 0 => format!("{name}{}", self.paint(rest, sgr)),
                _ => self.paint(line, sgr),
            };
            self.line(&painted);
        }
        if let Some(snapshot) = &report.snapshot {
            self.paragraph("", 0, &format!("Read as of: {}.", escape(snapshot)));
        }
    }

    fn recovery(&mut self, report: &Report, recovery: &Recovery) {
        let Some(copy) = recovery.output(OutputRole::Copy) else {
            self.paragraph("", 0, "No copy was written: nothing could be recovered.");
            return;
        };
        let (found, written) = recovery.tables.iter().fold((0_u64, 0_u64), |(f, w), t| (f + t.rows_found, w + t.rows_written));
        let aside: u64 = recovery.tables.iter().map(TableRecovery::rows_set_aside).sum();
        let mut told = format!("{} found, {} written to {}", counted(found, "row"), count(written), escape(&copy.path));
        if aside > 0 {
            told.push_str(&format!(", {} set aside", count(aside)));
        }
        told.push('.');
        match &recovery.read_back {
            Some(r) if r.equal => told.push_str(&format!(" The copy was read back: all {} are equal.", counted(r.rows_compared, "row"))),
            Some(r) => told.push_str(&format!(" The copy was read back and DIFFERS ({}): do not use it.", counted(r.rows_compared, "row"))),
            None => {}
        }
        self.paragraph("", 0, &told);
        self.losses(report, recovery);
    }

    fn losses(&mut self, report: &Report, recovery: &Recovery) {
        let touched: Vec<&TableRecovery> = recovery.tables.iter().filter(|t| is_touched(t)).collect();
        if !touched.is_empty() {
            self.heading("Losses by table");
            let head = ["table", "found", "in the copy", "set aside", "lost", "unaccounted"].map(str::to_owned);
            let mut rows = vec![head];
            for t in &touched {
                rows.push([
                    escape(&t.name),
                    count(t.rows_found),
                    count(t.rows_written),
                    count(t.rows_set_aside()),
                    gone(&t.lost),
                    gone(&t.unaccounted),
                ]);
            }
            self.columns(&rows);
            for t in &touched {
                self.loss_details(t);
            }
        }
        let whole: Vec<&TableRecovery> = recovery.tables.iter().filter(|t| !is_touched(t)).collect();
        if !whole.is_empty() {
            let rows: u64 = whole.iter().map(|t| t.rows_written).sum();
            let others = if touched.is_empty() { "" } else { "other " };
            let verb = if whole.len() == 1 { "has" } else { "have" };
            let text =
                format!("{} {verb} all {} in the copy.", counted(wide(whole.len()), &format!("{others}table")), counted(rows, "row"));
            self.paragraph("", 0, &text);
        }
        if report.hidden_rows > 0 {
            self.paragraph(
                "",
                0,
                &format!("{} hidden from the default view; see the sidecars below.", be(report.hidden_rows, "committed row")),
            );
        }
        if !recovery.left_out.is_empty() {
            self.heading("Not in the copy");
            for l in &recovery.left_out {
                let rows = if l.rows > 0 { format!(" ({})", counted(l.rows, "row")) } else { String::new() };
                let finish = if l.in_finish_sql { "; its statement is in finish.sql" } else { "" };
                self.paragraph("  ", 4, &format!("{} {}{rows}: {}{finish}", escape(&l.kind), escape(&l.name), escape(&l.reason)));
            }
        }
        for [from, to] in &recovery.moved_aside {
            self.paragraph("", 0, &format!("Moved aside: {} is now {}.", escape(from), escape(to)));
        }
    }

    fn loss_details(&mut self, t: &TableRecovery) {
        let name = escape(&t.name);
        for note in &t.notes {
            self.paragraph("  ", 4, &format!("{name}: {}", escape(note)));
        }
        for (reason, n) in &t.set_aside {
            self.paragraph("  ", 4, &format!("{name}: {} set aside: {}", counted(*n, "row"), escape(reason)));
        }
        for (reason, n) in &t.values_changed {
            self.paragraph("  ", 4, &format!("{name}: {} changed: {}", counted(*n, "value"), escape(reason)));
        }
        for (list, word) in [(&t.lost, "lost"), (&t.unaccounted, "unaccounted for")] {
            for g in list.iter().take(self.style.items.max(1)) {
                let mut text = match g.count {
                    Some(n) => format!("{name}: {} {word}", counted(n, "row")),
                    None => format!("{name}: an unknown number of rows {word}"),
                };
                if !g.rowids.is_empty() {
                    text.push_str(&format!(", rowid {}", ranges(&g.rowids, 8)));
                }
                if let Some(page) = g.page {
                    text.push_str(&format!(", on page {page}"));
                }
                if !g.witness.is_empty() {
                    text.push_str(&format!(" (known from {})", escape(&g.witness)));
                }
                self.paragraph("  ", 4, &text);
            }
            if list.len() > self.style.items.max(1) {
                let more = wide(list.len() - self.style.items.max(1));
                self.paragraph("  ", 4, &format!("{name}: {} more of these in the JSON report", count(more)));
            }
        }
    }

    /// Columns: the first is text and gives way, all others are right-aligned numbers.
    fn columns<const N: usize>(&mut self, rows: &[[String; N]]) {
        let mut widths = [0_usize; N];
        for row in rows {
            for (w, cell) in widths.iter_mut().zip(row) {
                *w = (*w).max(cell.chars().count());
            }
        }
        let numbers: usize = widths.iter().skip(1).map(|w| w + 2).sum();
        let first = widths.first().copied().unwrap_or(0).min(self.style.width.saturating_sub(numbers + 2).max(12));
        for row in rows {
            let mut line = "  ".to_owned();
            for (i, (cell, width)) in row.iter().zip(widths).enumerate() {
                if i == 0 {
                    let cut = shorten(cell, first);
                    line.push_str(&format!("{cut:<first$}"));
                } else {
                    line.push_str(&format!("  {cell:>width$}"));
                }
            }
            self.line(&line);
        }
    }

    fn sidecars(&mut self, report: &Report) {
        if report.sidecars.is_empty() {
            return;
        }
        self.heading("Sidecars");
        for s in &report.sidecars {
            let used = if s.blended { "read" } else { "left out" };
            let fit = match s.fit {
                Fit::Same => "belongs to this database",
                Fit::Foreign => "is of another database",
                Fit::Undecided => "undecided, SQLite's rule is followed",
            };
            self.paragraph("  ", 4, &format!("{} {} ({fit}): {}", used, escape(&s.path), escape(&s.reason)));
            for v in &s.views {
                let rows = |n: Option<u64>| n.map_or("no such table".to_owned(), |n| counted(n, "row"));
                self.paragraph("    ", 6, &format!("{}: {} with it, {} without", escape(&v.table), rows(v.with), rows(v.without)));
            }
        }
    }

    fn next(&mut self, report: &Report) {
        let steps = next::steps(report, &self.style.again);
        if steps.is_empty() {
            return;
        }
        self.heading("What to do next");
        for step in steps {
            self.paragraph("  ", 2, &step.words);
            for command in &step.commands {
                // A command is never wrapped: it must survive copy and paste.
                self.line(&format!("    {command}"));
            }
        }
    }

    fn header(&mut self, report: &Report) {
        let overruled: Vec<_> = report.header.iter().filter(|h| h.overruled).collect();
        if overruled.is_empty() {
            return;
        }
        self.heading("Header fields that were not taken as they stand");
        for h in overruled {
            self.paragraph("  ", 4, &format!("{}: {} (from {})", escape(&h.field), escape(&h.value), escape(&h.evidence)));
        }
    }

    fn findings(&mut self, report: &Report) {
        let mut by_object: BTreeMap<Option<u32>, Vec<&FindingGroup>> = BTreeMap::new();
        for group in &report.findings {
            by_object.entry(group.object).or_default().push(group);
        }
        let mut order: Vec<(Class, Option<u32>)> =
            by_object.iter().map(|(object, groups)| (groups.iter().map(|g| g.class).max().unwrap_or_default(), *object)).collect();
        order.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        if order.is_empty() {
            return;
        }
        let all: u64 = report.findings.iter().fold(0, |sum, g| sum.saturating_add(g.count));
        self.heading(&format!("Findings ({})", count(all)));
        for (_, object) in order {
            let title = object_title(report, object, by_object.get(&object).and_then(|g| g.first()).copied());
            let title = self.paint(&title, "1");
            self.line(&format!("  {title}"));
            for group in by_object.get(&object).into_iter().flatten() {
                self.group(group);
            }
        }
        self.paragraph("", 0, "`rootpage explain CODE` says what a code means; --json lists more of each.");
    }

    fn group(&mut self, group: &FindingGroup) {
        let sgr = match group.class {
            Class::Healthy => "2",
            Class::Structural | Class::NotADatabase => "31",
            _ => "33",
        };
        let title = format!("{} {}", group.code, group.name);
        let class = if group.class == Class::Healthy { "note" } else { group.class.word() };
        let title = format!("    {}  {} ({class})", self.paint(&title, sgr), times(group.count));
        self.line(&title);
        for item in group.kept.iter().take(self.style.items) {
            let mut place = Vec::new();
            if let Some(page) = item.page {
                place.push(format!("page {page}"));
            }
            if let Some(cell) = item.cell {
                place.push(format!("cell {cell}"));
            }
            if item.origin != "main" && !item.origin.is_empty() {
                place.push(escape(&item.origin));
            }
            let place = if place.is_empty() { String::new() } else { format!("{}: ", place.join(", ")) };
            self.paragraph("      ", 8, &format!("{place}{}", escape(&item.sentence)));
        }
        let shown = wide(group.kept.len().min(self.style.items));
        if group.count > shown && shown > 0 {
            self.line(&format!("      and {} more", count(group.count - shown)));
        }
        self.paragraph("      -> ", 9, &group.action);
    }

    fn summary(&mut self, report: &Report) {
        self.heading("Evidence");
        for i in &report.inputs {
            let role = match i.role {
                InputRole::Main => "database",
                InputRole::Wal => "WAL",
                InputRole::Journal => "journal",
                InputRole::Shm => "shm",
                InputRole::Schema => "schema",
                InputRole::Map => "page map",
            };
            let access = if i.access == Access::Snapshot { ", read as a snapshot" } else { "" };
            self.paragraph("  ", 4, &format!("{role} {}, {}{access}", escape(&i.path), bytes(i.bytes)));
            if let Some(hash) = &i.sha256_before {
                let same = match &i.sha256_after {
                    Some(after) if after == hash => ", unchanged",
                    Some(_) => ", CHANGED while it was read",
                    None => "",
                };
                self.line(&format!("    SHA-256 {hash}{same}"));
            }
            for [start, end] in i.unreadable.iter().take(self.style.items.max(1)) {
                self.line(&format!("    not readable: bytes {} to {}", count(*start), count(*end)));
            }
        }
        if report.page_count > 0 {
            let roles: Vec<String> = report.pages_by_role.iter().map(|(role, n)| format!("{} {}", count(*n), escape(role))).collect();
            let text = format!("{} of {}: {}", counted(report.page_count, "page"), bytes(u64::from(report.page_size)), roles.join(", "));
            self.paragraph("  ", 4, &text);
        }
        let damaged = report.objects.iter().filter(|o| o.status != Status::Whole).count();
        if !report.objects.is_empty() {
            let damaged = if damaged == 0 { "all whole".to_owned() } else { format!("{} not whole", count(wide(damaged))) };
            self.paragraph("  ", 4, &format!("{}: {damaged}", counted(wide(report.objects.len()), "object")));
        }
    }
}

fn is_touched(t: &TableRecovery) -> bool {
    t.rows_written != t.rows_found || !t.lost.is_empty() || !t.unaccounted.is_empty() || !t.values_changed.is_empty() || !t.notes.is_empty()
}

/// The sum of what is gone, "?" where a part cannot be counted.
fn gone(list: &[super::model::Gone]) -> String {
    let known = list.iter().filter_map(|g| g.count).fold(0_u64, u64::saturating_add);
    let unknown = list.iter().any(|g| g.count.is_none());
    match (known, unknown) {
        (0, true) => "?".to_owned(),
        (n, true) => format!("{}+?", count(n)),
        (n, false) => count(n),
    }
}

fn times(n: u64) -> String {
    if n == 1 { "once".to_owned() } else { format!("{} times", count(n)) }
}

fn be(n: u64, noun: &str) -> String {
    format!("{} {}", counted(n, noun), if n == 1 { "is" } else { "are" })
}

fn main_path(report: &Report) -> Option<&str> {
    report.inputs.iter().find(|i| i.role == InputRole::Main).or(report.inputs.first()).map(|i| i.path.as_str())
}

fn object_title(report: &Report, object: Option<u32>, group: Option<&FindingGroup>) -> String {
    let Some(id) = object else { return "the file as a whole".to_owned() };
    let Some(o) = report.object(id) else {
        return group.and_then(|g| g.object_name.as_deref()).map_or(format!("object {id}"), escape);
    };
    let mut parts = Vec::new();
    if let Some(table) = o.table.as_deref().filter(|t| *t != o.name) {
        parts.push(format!("on {}", escape(table)));
    }
    if let Some(root) = o.root {
        parts.push(format!("root page {root}"));
    }
    if o.pages > 0 {
        parts.push(counted(o.pages, "page"));
    }
    if let Some(rows) = o.rows {
        parts.push(counted(rows, "row"));
    }
    let details = if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
    format!("{} {}{details}", escape(&o.kind), escape(&o.name))
}

fn shorten(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(width.saturating_sub(1)).collect();
    cut.push('…');
    cut
}
