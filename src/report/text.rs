//! The report for a terminal: verdict in one sentence, losses per table, what to do next, then findings by object.
#![expect(clippy::arithmetic_side_effects, reason = "widths and indents of text that this module made itself")]

use std::collections::BTreeMap;

use super::human::name as short_name;
use super::human::{bytes, columns, count, counted, escape, passage, wrap};
use super::model::{Access, Class, FindingGroup, OutputRole, Recovery, Report, Status};
use super::phrases::{LISTED, Losses};
use super::{next, phrases};
use crate::ids::wide;

/// Lines about single tables before what to do next.
const DETAILS: usize = 20;

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
}

impl Default for Style {
    fn default() -> Self {
        Style { width: 80, colour: false, items: 3, brief: false }
    }
}

/// The report as text, with a line feed at the end of every line.
#[must_use]
pub fn render(report: &Report, style: &Style) -> String {
    let mut page = Sheet::new(style);
    page.verdict(report);
    if let Some(recovery) = &report.recovery {
        page.recovery(report, recovery);
    }
    if !style.brief {
        page.next(report);
    }
    page.sidecars(report);
    if !style.brief {
        page.overruled(report);
        page.header(report);
        page.findings(report);
        page.summary(report);
    }
    page.finish()
}

/// Lines of a report under way.
pub(super) struct Sheet<'a> {
    style: &'a Style,
    out: String,
}

impl<'a> Sheet<'a> {
    pub(super) fn new(style: &'a Style) -> Sheet<'a> {
        Sheet { style, out: String::new() }
    }

    pub(super) fn finish(self) -> String {
        self.out
    }

    /// A sentence in a colour.
    pub(super) fn coloured(&mut self, text: &str, sgr: &str) {
        for line in wrap(text, self.style.width.max(20)) {
            let line = self.paint(&line, sgr);
            self.line(&line);
        }
    }

    pub(super) fn line(&mut self, text: &str) {
        self.out.push_str(text.trim_end());
        self.out.push('\n');
    }

    /// A paragraph behind `lead`, its further lines indented by `indent`.
    pub(super) fn paragraph(&mut self, lead: &str, indent: usize, text: &str) {
        let width = self.style.width.max(indent + 20);
        let first = columns(lead);
        let pad = " ".repeat(indent);
        // The lead takes room on the first line only: a run of one long word stands for it.
        let lines = wrap(&format!("{}{text}", "\u{1}".repeat(first.saturating_sub(indent))), width - indent);
        for (i, line) in lines.iter().enumerate() {
            let line = line.trim_start_matches('\u{1}');
            if i == 0 { self.line(&format!("{lead}{line}")) } else { self.line(&format!("{pad}{line}")) }
        }
    }

    /// Items behind `lead`, apart by commas. Lines break between items only: an item keeps every blank it has.
    pub(super) fn items(&mut self, lead: &str, indent: usize, items: &[String]) {
        let mut line = lead.to_owned();
        let mut used = columns(lead);
        for (i, item) in items.iter().enumerate() {
            let comma = if i + 1 < items.len() { "," } else { "" };
            let more = columns(item) + comma.len();
            if i > 0 && used + 1 + more > self.style.width {
                self.line(&line);
                line = " ".repeat(indent);
                used = indent;
            } else if i > 0 {
                line.push(' ');
                used += 1;
            }
            line.push_str(item);
            line.push_str(comma);
            used += more;
        }
        self.line(&line);
    }

    /// How many of a list are not shown, and where they are.
    pub(super) fn more(&mut self, all: usize, shown: usize, place: &str) {
        if all > shown {
            self.line(&format!("  and {} more {place}", count(wide(all - shown))));
        }
    }

    pub(super) fn heading(&mut self, text: &str) {
        self.out.push('\n');
        let text = self.paint(text, "1");
        self.line(&text);
    }

    pub(super) fn paint(&self, text: &str, sgr: &str) -> String {
        if self.style.colour { format!("\u{1b}[{sgr}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    fn verdict(&mut self, report: &Report) {
        let class = report.verdict.class;
        let sgr = match class {
            Class::Healthy => "1;32",
            Class::Housekeeping | Class::SearchIndexOnly | Class::IndexOnly => "1;33",
            Class::Structural | Class::NotADatabase => "1;31",
        };
        let name = phrases::main_path(report).map(|p| format!("{}: ", escape(p))).unwrap_or_default();
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
        self.paragraph("", 0, &phrases::ledger(recovery));
        if !recovery.breakers.is_empty() {
            self.breakers(recovery);
        }
        if recovery.output(OutputRole::Copy).is_some() {
            self.losses(report, recovery);
        }
    }

    /// Rows that are data although they may not stand in the copy: above everything that is merely lost.
    fn breakers(&mut self, recovery: &Recovery) {
        self.heading("Set aside, and confirmed: these rows are data that the declaration of their table forbids");
        for b in recovery.breakers.iter().take(self.style.items.max(1)) {
            self.paragraph("  ", 4, &phrases::breaker(b));
            self.line(&format!("    {}", escape(&b.restore)));
        }
        self.more(recovery.breakers.len(), self.style.items.max(1), "in the JSON report");
        if let (Some(copy), Some(salvage)) = (recovery.output(OutputRole::Copy), recovery.output(OutputRole::Salvage)) {
            let text = format!(
                "A statement is run in {} behind: ATTACH '{}' AS salvage;",
                escape(&copy.path),
                escape(&salvage.path).replace('\'', "''")
            );
            self.paragraph("  ", 2, &text);
        }
    }

    fn losses(&mut self, report: &Report, recovery: &Recovery) {
        let losses = Losses::new(report, recovery);
        let mut rows = vec![phrases::LOSS_HEAD.map(str::to_owned)];
        rows.extend(losses.rows());
        if rows.len() > 1 {
            self.heading("Losses by table");
            self.columns(&rows);
            // What to do next must not drown in it: beyond some lines the JSON report is the place to look.
            let lines: Vec<String> = losses
                .told
                .iter()
                .flat_map(|t| {
                    let name = short_name(&t.name);
                    phrases::loss_lines(report, t, self.style.items.max(1)).into_iter().map(move |line| format!("{name}: {line}"))
                })
                .collect();
            for line in lines.iter().take(DETAILS) {
                self.paragraph("  ", 4, line);
            }
            if lines.len() > DETAILS {
                self.line(&format!("  and {} more of these in the JSON report", count(wide(lines.len() - DETAILS))));
            }
            for line in losses.sums() {
                self.paragraph("  ", 4, &line);
            }
        }
        for text in phrases::whole_tables(report, recovery).into_iter().chain(phrases::hidden(report)) {
            self.paragraph("", 0, &text);
        }
        if !recovery.left_out.is_empty() {
            self.heading("Not in the copy");
            for l in recovery.left_out.iter().take(LISTED) {
                self.paragraph("  ", 4, &phrases::left_out(l));
            }
            self.more(recovery.left_out.len(), LISTED, "in the JSON report");
        }
        for moved in &recovery.moved_aside {
            self.paragraph("", 0, &format!("Moved aside: {}.", phrases::moved(moved)));
        }
    }

    /// Columns: the first is text and gives way, all others are right-aligned numbers.
    pub(super) fn columns<const N: usize>(&mut self, rows: &[[String; N]]) {
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
            self.paragraph("  ", 4, &phrases::sidecar(s));
            for v in s.views.iter().take(LISTED) {
                self.paragraph("    ", 6, &phrases::view(s, v));
            }
            self.more(s.views.len(), LISTED, "in the JSON report");
        }
    }

    fn next(&mut self, report: &Report) {
        let steps = next::steps(report);
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

    fn overruled(&mut self, report: &Report) {
        if report.overruled.is_empty() {
            return;
        }
        self.heading("Pages that the given map overrules");
        let most = self.style.items.max(1) * 4;
        for o in report.overruled.iter().take(most) {
            self.paragraph("  ", 4, &phrases::overruled(o));
        }
        self.more(report.overruled.len(), most, "in the JSON report");
    }

    fn header(&mut self, report: &Report) {
        let overruled: Vec<_> = report.header.iter().filter(|h| h.overruled).collect();
        if overruled.is_empty() {
            return;
        }
        self.heading("Header fields that were not taken as they stand");
        for h in overruled {
            self.paragraph("  ", 4, &format!("{}: {}; {}", escape(&h.field), passage(&h.value), passage(&h.evidence)));
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
        let objects = order.len();
        for (_, object) in order.into_iter().take(LISTED) {
            let title = phrases::object(report, object, by_object.get(&object).and_then(|g| g.first()).copied());
            let title = self.paint(&title, "1");
            self.line(&format!("  {title}"));
            for group in by_object.get(&object).into_iter().flatten() {
                self.group(group);
            }
        }
        self.more(objects, LISTED, "objects with findings in the JSON report");
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
        let title = format!("    {}  {} ({class})", self.paint(&title, sgr), phrases::times(group.count));
        self.line(&title);
        for item in group.kept.iter().take(self.style.items) {
            self.paragraph("      ", 8, &phrases::finding(item));
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
            let role = phrases::input_role(i.role);
            let access = if i.access == Access::Snapshot { ", read as a snapshot" } else { "" };
            self.paragraph("  ", 4, &format!("{role} {}, {}{access}", escape(&i.path), bytes(i.bytes)));
            if let Some(hash) = &i.sha256_before {
                let same = match &i.sha256_after {
                    Some(after) if after == hash => ", unchanged",
                    Some(_) => ", CHANGED while it was read",
                    None => "",
                };
                // A hash is never broken: what there is to say of it goes on the next line where it does not fit behind it.
                if hash.len() + same.len() + 12 <= self.style.width || same.is_empty() {
                    self.line(&format!("    SHA-256 {hash}{same}"));
                } else {
                    self.line(&format!("    SHA-256 {hash}"));
                    self.line(&format!("    {} after the run", same.trim_start_matches(", ").trim_end_matches(" while it was read")));
                }
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

fn shorten(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(width.saturating_sub(1)).collect();
    cut.push('…');
    cut
}
