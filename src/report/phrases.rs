//! Sentences that text and HTML share. Everything from the evidence in them is escaped for a terminal, which makes
//! control characters and direction marks visible in HTML, too.

use super::human::{count, counted, escape, name, passage, ranges};
use super::model::{
    Breaker, Class, FindingGroup, FindingItem, Fit, Gone, InputRole, LeftOut, OutputRole, Overruled, Recovery, Report, Sidecar, Status,
    TableRecovery, ViewCount,
};
use crate::finding::Subject;
use crate::ids::wide;

/// Tables, objects and other things that are named one by one before a list says how many more there are. A person reads
/// the first; the JSON report has all.
pub(super) const LISTED: usize = 20;

/// What a recovery found, wrote and lost, in up to three sentences.
pub(super) fn ledger(recovery: &Recovery) -> String {
    let Some(copy) = recovery.output(OutputRole::Copy) else { return "No copy was written: nothing could be recovered.".to_owned() };
    let sum = |f: fn(&TableRecovery) -> u64| recovery.tables.iter().map(f).fold(0_u64, u64::saturating_add);
    let (found, written, aside) = (sum(|t| t.rows_found), sum(|t| t.rows_written), sum(TableRecovery::rows_set_aside));
    let mut told = format!("{} found, {} written to {}", counted(found, "row"), count(written), escape(&copy.path));
    if aside > 0 {
        told.push_str(&format!(", {} set aside", count(aside)));
    }
    match sum_gone(recovery.tables.iter().map(|t| &t.lost)) {
        (0, false) => {}
        (0, true) => told.push_str("; an unknown number is lost"),
        (n, false) => told.push_str(&format!("; {} lost", count(n))),
        (n, true) => told.push_str(&format!("; {} lost, and an unknown number more", count(n))),
    }
    told.push('.');
    match &recovery.read_back {
        Some(r) if r.equal => {
            told.push_str(&format!(" The copy was read back and holds exactly the {} written.", counted(r.rows_compared, "row")))
        }
        Some(r) => told.push_str(&format!(" The copy was read back and DIFFERS ({}): do not use it.", counted(r.rows_compared, "row"))),
        None => {}
    }
    told
}

/// A row that its table's declaration forbids although other structures confirm it; `None` for what it is when redacted.
pub(super) fn breaker(b: &Breaker) -> String {
    let witnesses: Vec<String> = b.witnesses.iter().take(LISTED).map(|w| passage(w)).collect();
    format!("{}, {}: {}. Confirmed by {}.", name(&b.table), passage(&b.row), passage(&b.rule), witnesses.join(", "))
}

/// Whether a table differs in the copy from what the evidence proves, or a person should know something about it.
pub(super) fn is_touched(report: &Report, t: &TableRecovery) -> bool {
    is_damaged(report, t)
        || t.rows_written != t.rows_found
        || !t.lost.is_empty()
        || !t.unaccounted.is_empty()
        || !t.values_changed.is_empty()
        || !t.notes.is_empty()
}

/// Whether the tree of a table is not whole. What is wrong with its row of the schema or with a search index in it takes nothing
/// away from its tree.
fn is_damaged(report: &Report, t: &TableRecovery) -> bool {
    let Some(object) = t.object.and_then(|id| report.object(id)) else { return false };
    let of_tree = |g: &FindingGroup| {
        g.object == Some(object.id)
            && g.class > Class::Housekeeping
            && g.code.problem().subject != Subject::SearchIndex
            && !is_of_declaration(g)
    };
    match object.status {
        Status::Whole => false,
        Status::Damaged => report.findings.iter().any(of_tree),
        Status::Missing => true,
    }
}

/// Whether a finding is about the declaration of an object alone: it was found elsewhere, or put together.
pub(super) fn is_of_declaration(g: &FindingGroup) -> bool {
    g.code.problem().subject == Subject::Declaration
}

/// The head of the table of losses.
pub(super) const LOSS_HEAD: [&str; 6] = ["table", "found", "in the copy", "set aside", "lost", "unaccounted"];

/// A line of the table of losses.
pub(super) fn loss_row(t: &TableRecovery) -> [String; 6] {
    sum_row(name(&t.name), &[t])
}

/// A line of the table of losses that stands for several tables.
pub(super) fn sum_row(title: String, tables: &[&TableRecovery]) -> [String; 6] {
    let sum = |f: fn(&TableRecovery) -> u64| count(tables.iter().map(|t| f(t)).fold(0_u64, u64::saturating_add));
    let gone = |f: fn(&TableRecovery) -> &Vec<Gone>| match sum_gone(tables.iter().map(|t| f(t))) {
        (0, true) => "?".to_owned(),
        (n, true) => format!("{}+?", count(n)),
        (n, false) => count(n),
    };
    [title, sum(|t| t.rows_found), sum(|t| t.rows_written), sum(TableRecovery::rows_set_aside), gone(|t| &t.lost), gone(|t| &t.unaccounted)]
}

/// The tables that were touched, as a person can read them.
pub(super) struct Losses<'r> {
    /// Those that are told one by one, in their order.
    pub(super) told: Vec<&'r TableRecovery>,
    /// The others with a name; they lost and set aside less.
    pub(super) rest: Vec<&'r TableRecovery>,
    /// Trees that no object of the schema names, where there are so many that only their sum says something.
    pub(super) nameless: Vec<&'r TableRecovery>,
}

/// What the salvage tables of trees without a name begin with; the number of the root page follows.
const NAMELESS: &str = "lost_and_found_";

impl<'r> Losses<'r> {
    pub(super) fn new(report: &'r Report, recovery: &'r Recovery) -> Losses<'r> {
        let touched = recovery.tables.iter().filter(|t| is_touched(report, t));
        let (mut nameless, mut told): (Vec<&TableRecovery>, Vec<&TableRecovery>) =
            touched.partition(|t| t.object.is_none() && t.name.starts_with(NAMELESS));
        if nameless.len() <= 3 {
            told.append(&mut nameless);
        }
        let mut rest = Vec::new();
        if told.len() > LISTED {
            let weight = |t: &TableRecovery| {
                let (lost, unknown) = sum_gone([&t.lost].into_iter());
                // What nobody could count may be more than all that was counted.
                (unknown, lost.saturating_add(t.rows_set_aside()))
            };
            let mut heaviest: Vec<usize> = (0..told.len()).collect();
            heaviest.sort_by_key(|&i| std::cmp::Reverse(told.get(i).map(|t| weight(t))));
            let chosen: std::collections::BTreeSet<usize> = heaviest.into_iter().take(LISTED).collect();
            let mut at = 0_usize..;
            (told, rest) = told.into_iter().partition(|_| at.next().is_some_and(|i| chosen.contains(&i)));
        }
        Losses { told, rest, nameless }
    }

    /// The lines of the table of losses, those that stand for many last.
    pub(super) fn rows(&self) -> Vec<[String; 6]> {
        let mut rows: Vec<[String; 6]> = self.told.iter().map(|t| loss_row(t)).collect();
        if !self.rest.is_empty() {
            rows.push(sum_row(counted(wide(self.rest.len()), "more table"), &self.rest));
        }
        if !self.nameless.is_empty() {
            rows.push(sum_row(format!("{} {NAMELESS}*", count(wide(self.nameless.len()))), &self.nameless));
        }
        rows
    }

    /// What there is to say about the lines that stand for many.
    pub(super) fn sums(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.rest.is_empty() {
            let words = counted(wide(self.rest.len()), "more table");
            lines.push(format!("{words}, with lighter losses as far as these can be counted: the JSON report has them all"));
        }
        let roots: Vec<u64> = self.nameless.iter().filter_map(|t| t.name.strip_prefix(NAMELESS)?.parse().ok()).collect();
        if let (Some(first), Some(last)) = (roots.iter().min(), roots.iter().max()) {
            let rows = self.nameless.iter().map(|t| t.rows_found).fold(0_u64, u64::saturating_add);
            lines.push(format!(
                "{NAMELESS}{first} to {NAMELESS}{last}: {} of {} that no object of the schema names. Each has a table in the salvage database, with the number of its root page; the JSON report lists all",
                counted(rows, "row"),
                counted(wide(self.nameless.len()), "tree")
            ));
        }
        lines
    }
}

/// What there is to say about a table that was touched, without its name; at most `items` of each list.
pub(super) fn loss_lines(report: &Report, t: &TableRecovery, items: usize) -> Vec<String> {
    let mut lines: Vec<String> = t.notes.iter().take(items).map(|n| passage(n)).collect();
    if t.notes.len() > items {
        lines.push(format!("{} in the JSON report", counted(wide(t.notes.len().saturating_sub(items)), "more note")));
    }
    lines.extend(t.set_aside.iter().map(|(reason, n)| format!("{} set aside: {}", counted(*n, "row"), passage(reason))));
    lines.extend(t.values_changed.iter().map(|(reason, n)| format!("{} changed: {}", counted(*n, "value"), escape(reason))));
    if t.lost.is_empty() && t.set_aside.is_empty() && is_damaged(report, t) {
        lines.push("its tree is damaged; nothing names a row that is lost by it".to_owned());
    }
    for (list, word) in [(&t.lost, "lost"), (&t.unaccounted, "unaccounted for, perhaps deleted")] {
        let named = Named::new(list);
        let list: Vec<&Gone> = list.iter().filter(|g| !named.has(g)).collect();
        lines.extend(list.iter().take(items).map(|g| gone_line(g, word)));
        if list.len() > items {
            let more = wide(list.len().saturating_sub(items));
            lines.push(format!("{} more of these in the JSON report", count(more)));
        }
    }
    lines
}

/// Takes the rowids of what is gone out, an INTEGER PRIMARY KEY makes them values. What adds nothing to the others goes with them, or
/// it would count as unknown.
pub(super) fn redact_gone(t: &mut TableRecovery) {
    for list in [&mut t.lost, &mut t.unaccounted] {
        let named = Named::new(list);
        list.retain(|g| !named.has(g));
        list.iter_mut().for_each(|g| g.rowids.clear());
    }
}

fn gone_line(g: &Gone, word: &str) -> String {
    let mut text = match g.count {
        Some(n) => format!("{} {word}", counted(n, "row")),
        None if g.rowids.is_empty() => format!("an unknown number of rows {word}"),
        None => match most(&g.rowids) {
            Some(n) => format!("up to {} {word}", counted(n, "row")),
            None => format!("an unknown number of rows {word}"),
        },
    };
    if !g.rowids.is_empty() {
        text.push_str(&format!(", rowid {}", ranges(&g.rowids, 8)));
    }
    if let Some(page) = g.page {
        text.push_str(&format!(", on page {page}"));
    }
    if !g.witness.is_empty() {
        text.push_str(&format!(" (known from {})", passage(&g.witness)));
    }
    text
}

/// How many rows these ranges can have held; `None` when the number says nothing.
fn most(ranges: &[[i64; 2]]) -> Option<u64> {
    let size = |[first, last]: &[i64; 2]| u64::try_from(last.checked_sub(*first)?).ok()?.checked_add(1);
    ranges.iter().try_fold(0_u64, |sum, range| sum.checked_add(size(range)?)).filter(|n| *n < 1_000_000_000)
}

/// The sum of what is gone, and whether a part of it cannot be counted.
fn sum_gone<'g>(lists: impl Iterator<Item = &'g Vec<Gone>>) -> (u64, bool) {
    lists.fold((0, false), |(sum, unknown), list| {
        let (more, open) = gone(list);
        (sum.saturating_add(more), unknown || open)
    })
}

fn gone(list: &[Gone]) -> (u64, bool) {
    let known = list.iter().filter_map(|g| g.count).fold(0_u64, u64::saturating_add);
    let named = Named::new(list);
    (known, list.iter().any(|g| g.count.is_none() && !named.has(g)))
}

/// Rowids that some witness counts, as ranges in order that do not touch.
struct Named(Vec<[i64; 2]>);

impl Named {
    fn new(list: &[Gone]) -> Named {
        let mut all: Vec<[i64; 2]> = list.iter().filter(|g| g.count.is_some()).flat_map(|g| g.rowids.iter().copied()).collect();
        all.sort_unstable();
        let mut ranges: Vec<[i64; 2]> = Vec::new();
        for [first, last] in all {
            match ranges.last_mut() {
                Some([_, end]) if first <= end.saturating_add(1) => *end = last.max(*end),
                _ => ranges.push([first, last]),
            }
        }
        Named(ranges)
    }

    /// Whether nobody counted these and another witness names every rowid of their range: they add nothing.
    fn has(&self, g: &Gone) -> bool {
        let named = |[first, last]: &[i64; 2]| {
            let behind = self.0.partition_point(|[start, _]| start <= first);
            behind.checked_sub(1).and_then(|i| self.0.get(i)).is_some_and(|[_, end]| last <= end)
        };
        g.count.is_none() && !g.rowids.is_empty() && g.rowids.iter().all(named)
    }
}

/// The tables that were not touched, in one sentence; `None` when there are none.
pub(super) fn whole_tables(report: &Report, recovery: &Recovery) -> Option<String> {
    let whole: Vec<&TableRecovery> = recovery.tables.iter().filter(|t| !is_touched(report, t)).collect();
    if whole.is_empty() {
        return None;
    }
    let rows = whole.iter().map(|t| t.rows_written).fold(0_u64, u64::saturating_add);
    let noun = if whole.len() == recovery.tables.len() { "table" } else { "other table" };
    let verb = if whole.len() == 1 { "has" } else { "have" };
    Some(format!("{} {verb} every row in the copy: {}.", counted(wide(whole.len()), noun), counted(rows, "row")))
}

/// Committed rows that the default view hides; `None` when there are none.
pub(super) fn hidden(report: &Report) -> Option<String> {
    let verb = if report.hidden_rows == 1 { "is" } else { "are" };
    (report.hidden_rows > 0)
        .then(|| format!("{} {verb} hidden from the default view; see the sidecars.", counted(report.hidden_rows, "committed row")))
}

/// An object that is not in the copy.
pub(super) fn left_out(l: &LeftOut) -> String {
    let rows = if l.rows > 0 { format!(" ({})", counted(l.rows, "row")) } else { String::new() };
    let finish = if l.in_finish_sql { "; its statement is in finish.sql" } else { "" };
    format!("{} {}{rows}: {}{finish}", escape(&l.kind), name(&l.name), passage(&l.reason))
}

/// Pages that a given map overrules.
pub(super) fn overruled(o: &Overruled) -> String {
    let pages = match o.count {
        1 => format!("page {}", count(u64::from(o.first))),
        n => format!("pages {} to {}", count(u64::from(o.first)), count(u64::from(o.first).saturating_add(u64::from(n)).saturating_sub(1))),
    };
    let of = |owner: &Option<String>| owner.as_ref().map(|o| format!(" of {}", name(o))).unwrap_or_default();
    format!("{pages}: {}{}, not {}{} (line {})", o.role, of(&o.owner), o.was_role, of(&o.was_owner), count(u64::from(o.line)))
}

/// A file that `--force` moved.
pub(super) fn moved([from, to]: &[String; 2]) -> String {
    format!("{} is now {}", escape(from), escape(to))
}

/// What was decided about a sidecar.
pub(super) fn sidecar(s: &Sidecar) -> String {
    let used = if s.blended { "read" } else { "left out" };
    let fit = match s.fit {
        Fit::Same => "belongs to this database",
        Fit::Foreign => "is of another database",
        Fit::Undecided => "undecided, SQLite's rule is followed",
    };
    format!("{used} {} ({fit}): {}", escape(&s.path), passage(&s.reason))
}

/// The rows of a table in both views.
pub(super) fn view(s: &Sidecar, v: &ViewCount) -> String {
    let rows = |n: Option<u64>| n.map_or("no such table".to_owned(), |n| counted(n, "row"));
    match &s.compares {
        Some([with, without]) => format!("{}: {} {}, {} {}", name(&v.table), rows(v.with), escape(with), rows(v.without), escape(without)),
        None => format!("{}: {} with it, {} without", name(&v.table), rows(v.with), rows(v.without)),
    }
}

/// Where a finding is and what it says.
pub(super) fn finding(item: &FindingItem) -> String {
    let mut place = Vec::new();
    // Many a sentence begins with its page.
    if let Some(page) = item.page.filter(|page| item.cell.is_some() || !item.sentence.starts_with(&format!("page {page} "))) {
        place.push(format!("page {page}"));
    }
    if let Some(cell) = item.cell {
        place.push(format!("cell {cell}"));
    }
    if item.origin != "main" && !item.origin.is_empty() {
        place.push(escape(&item.origin));
    }
    let place = if place.is_empty() { String::new() } else { format!("{}: ", place.join(", ")) };
    format!("{place}{}", passage(&item.sentence))
}

/// How often.
pub(super) fn times(n: u64) -> String {
    if n == 1 { "once".to_owned() } else { format!("{} times", count(n)) }
}

/// The path of the main input.
pub(super) fn main_path(report: &Report) -> Option<&str> {
    report.inputs.iter().find(|i| i.role == InputRole::Main).or(report.inputs.first()).map(|i| i.path.as_str())
}

/// What an input is, in words.
pub(super) const fn input_role(role: InputRole) -> &'static str {
    match role {
        InputRole::Main => "database",
        InputRole::Wal => "WAL",
        InputRole::Journal => "journal",
        InputRole::Shm => "shm",
        InputRole::Schema => "schema",
        InputRole::Map => "page map",
    }
}

/// Kind and name of an object, with what is known of it in brackets.
pub(super) fn object(report: &Report, object: Option<u32>, group: Option<&FindingGroup>) -> String {
    let Some(id) = object else { return "the file as a whole".to_owned() };
    let Some(o) = report.object(id) else {
        return group.and_then(|g| g.object_name.as_deref()).map_or(format!("object {id}"), name);
    };
    let mut parts = Vec::new();
    if let Some(table) = o.table.as_deref().filter(|t| *t != o.name) {
        parts.push(format!("on {}", name(table)));
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
    format!("{} {}{details}", escape(&o.kind), name(&o.name))
}
