//! Sentences that text and HTML share. Everything from the evidence in them is escaped for a terminal, which makes
//! control characters and direction marks visible in HTML, too.

use super::human::{count, counted, escape, ranges};
use super::model::{
    Breaker, FindingGroup, FindingItem, Fit, Gone, InputRole, LeftOut, OutputRole, Overruled, Recovery, Report, Sidecar, Status,
    TableRecovery, ViewCount,
};
use crate::ids::wide;

/// What a recovery found and wrote, in up to three sentences.
pub(super) fn ledger(recovery: &Recovery) -> String {
    let Some(copy) = recovery.output(OutputRole::Copy) else { return "No copy was written: nothing could be recovered.".to_owned() };
    let sum = |f: fn(&TableRecovery) -> u64| recovery.tables.iter().map(f).fold(0_u64, u64::saturating_add);
    let (found, written, aside) = (sum(|t| t.rows_found), sum(|t| t.rows_written), sum(TableRecovery::rows_set_aside));
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
    told
}

/// A row that its table's declaration forbids although other structures confirm it; `None` for what it is when redacted.
pub(super) fn breaker(b: &Breaker) -> String {
    let witnesses: Vec<String> = b.witnesses.iter().map(|w| escape(w)).collect();
    format!("{}, {}: {}. Confirmed by {}.", escape(&b.table), escape(&b.row), escape(&b.rule), witnesses.join(", "))
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

/// Whether the tree of a table is not whole.
fn is_damaged(report: &Report, t: &TableRecovery) -> bool {
    t.object.and_then(|id| report.object(id)).is_some_and(|o| o.status != Status::Whole)
}

/// The head of the table of losses.
pub(super) const LOSS_HEAD: [&str; 6] = ["table", "found", "in the copy", "set aside", "lost", "unaccounted"];

/// A line of the table of losses.
pub(super) fn loss_row(t: &TableRecovery) -> [String; 6] {
    let name = escape(&t.name);
    [name, count(t.rows_found), count(t.rows_written), count(t.rows_set_aside()), gone(&t.lost), gone(&t.unaccounted)]
}

/// What there is to say about a table that was touched, without its name; at most `items` of each list.
pub(super) fn loss_lines(report: &Report, t: &TableRecovery, items: usize) -> Vec<String> {
    let mut lines: Vec<String> = t.notes.iter().map(|n| escape(n)).collect();
    lines.extend(t.set_aside.iter().map(|(reason, n)| format!("{} set aside: {}", counted(*n, "row"), escape(reason))));
    lines.extend(t.values_changed.iter().map(|(reason, n)| format!("{} changed: {}", counted(*n, "value"), escape(reason))));
    if t.lost.is_empty() && t.set_aside.is_empty() && is_damaged(report, t) {
        lines.push("its tree is damaged; nothing names a row that is lost by it".to_owned());
    }
    for (list, word) in [(&t.lost, "lost"), (&t.unaccounted, "unaccounted for, perhaps deleted")] {
        lines.extend(list.iter().take(items).map(|g| gone_line(g, word)));
        if list.len() > items {
            let more = wide(list.len().saturating_sub(items));
            lines.push(format!("{} more of these in the JSON report", count(more)));
        }
    }
    lines
}

fn gone_line(g: &Gone, word: &str) -> String {
    let mut text = match g.count {
        Some(n) => format!("{} {word}", counted(n, "row")),
        None if g.rowids.is_empty() => format!("an unknown number of rows {word}"),
        None => format!("whatever rows there were {word}"),
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
    text
}

/// The sum of what is gone, "?" where a part cannot be counted.
fn gone(list: &[Gone]) -> String {
    let known = list.iter().filter_map(|g| g.count).fold(0_u64, u64::saturating_add);
    // A range that nobody counted adds nothing when another witness names every rowid in it.
    let named = |range: &[i64; 2]| {
        list.iter().filter(|g| g.count.is_some()).flat_map(|g| &g.rowids).any(|[first, last]| *first <= range[0] && range[1] <= *last)
    };
    let unknown = list.iter().any(|g| g.count.is_none() && (g.rowids.is_empty() || !g.rowids.iter().all(named)));
    match (known, unknown) {
        (0, true) => "?".to_owned(),
        (n, true) => format!("{}+?", count(n)),
        (n, false) => count(n),
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
    format!("{} {}{rows}: {}{finish}", escape(&l.kind), escape(&l.name), escape(&l.reason))
}

/// Pages that a given map overrules.
pub(super) fn overruled(o: &Overruled) -> String {
    let pages = match o.count {
        1 => format!("page {}", count(u64::from(o.first))),
        n => format!("pages {} to {}", count(u64::from(o.first)), count(u64::from(o.first).saturating_add(u64::from(n)).saturating_sub(1))),
    };
    let of = |owner: &Option<String>| owner.as_ref().map(|o| format!(" of {}", escape(o))).unwrap_or_default();
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
    format!("{used} {} ({fit}): {}", escape(&s.path), escape(&s.reason))
}

/// The rows of a table in both views.
pub(super) fn view(v: &ViewCount) -> String {
    let rows = |n: Option<u64>| n.map_or("no such table".to_owned(), |n| counted(n, "row"));
    format!("{}: {} with it, {} without", escape(&v.table), rows(v.with), rows(v.without))
}

/// Where a finding is and what it says.
pub(super) fn finding(item: &FindingItem) -> String {
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
    format!("{place}{}", escape(&item.sentence))
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
