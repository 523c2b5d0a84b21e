//! `hermes check`: what the state of a store means for the person whose sessions are in it.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use super::facts::{self, FORMAT, Facts};
use super::store::Store;
use crate::error::Result;
use crate::report::human::{count, counted, name, shell};
use crate::report::model::Class;

/// Damage of one object, its shadow tables folded into it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DamagedObject {
    /// Its name; of a search index all its tables.
    pub name: String,
    /// "table", "index", "search index", "file".
    pub kind: String,
    /// Its root pages.
    pub roots: Vec<u32>,
    /// How bad it is.
    pub class: Class,
    /// Findings by code, all of them.
    pub findings: BTreeMap<String, u64>,
}

/// What `hermes check` says of one store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StoreReport {
    /// The number of this format.
    pub format: u32,
    /// The profile.
    pub profile: String,
    /// The database.
    pub path: String,
    /// 0 healthy, 1 search, index or housekeeping with the transcript intact, 2 data damaged, 3 unreadable.
    pub exit_code: u8,
    /// The class of `rootpage check`.
    pub class: Class,
    /// What it means for the customer.
    pub sentence: String,
    /// Sessions that are readable.
    pub sessions: Option<u64>,
    /// Messages that are readable.
    pub messages: Option<u64>,
    /// Messages that an index still names and no page has.
    pub messages_lost: u64,
    /// Messages whose session has no row.
    pub messages_without_session: u64,
    /// Committed rows that SQLite would not show.
    pub hidden_rows: u64,
    /// Causes in the application's own words.
    pub causes: Vec<String>,
    /// Damaged objects, all of them, worst first.
    pub objects: Vec<DamagedObject>,
    /// What the store says of itself.
    pub facts: Facts,
    /// Files beside the store that the application left when it met damage.
    pub beside: Vec<String>,
    /// Commands to run next.
    pub next: Vec<String>,
}

impl StoreReport {
    /// The report of a path of which nothing could be read.
    #[must_use]
    pub fn unreadable(profile: &str, path: &Path, what: &str) -> StoreReport {
        StoreReport {
            format: FORMAT,
            profile: profile.to_owned(),
            path: path.display().to_string(),
            exit_code: 3,
            class: Class::NotADatabase,
            sentence: format!("Nothing can be read: {what}"),
            sessions: None,
            messages: None,
            messages_lost: 0,
            messages_without_session: 0,
            hidden_rows: 0,
            causes: vec!["corrupt".to_owned()],
            objects: Vec::new(),
            facts: Facts::default(),
            beside: beside(path),
            next: Vec::new(),
        }
    }

    /// The report as lines for people, the profile at the head of each.
    #[must_use]
    pub fn text(&self) -> String {
        let mut lines = vec![format!("{}: {}", name(&self.path), self.sentence)];
        for o in &self.objects {
            let roots: Vec<String> = o.roots.iter().map(u32::to_string).collect();
            let place = match roots.as_slice() {
                [] => String::new(),
                [one] => format!(" (root page {one})"),
                many => format!(" (root pages {})", many.join(", ")),
            };
            let codes: Vec<String> = o.findings.iter().map(|(code, n)| format!("{code} x{}", count(*n))).collect();
            lines.push(format!("  {} {}{place}: {}", o.kind, name(&o.name), codes.join(", ")));
        }
        if !self.causes.is_empty() {
            lines.push(format!("  cause: {}", self.causes.join(", ")));
        }
        if !self.facts.search_layout.is_empty() {
            let version = self.facts.schema_version.map_or_else(|| "not readable".to_owned(), |v| v.to_string());
            lines.push(format!("  schema version {version}; search: {}", self.facts.search_layout));
        }
        lines.extend(self.facts.notes.iter().map(|n| format!("  note: {}", crate::report::human::passage(n))));
        lines.extend(self.beside.iter().map(|b| format!("  beside it: {}", name(b))));
        lines.extend(self.next.iter().map(|n| format!("  next: {n}")));
        let profile = name(&self.profile);
        lines.iter().map(|l| format!("{profile}: {l}\n")).collect()
    }
}

/// Says what the state of a store means.
///
/// # Errors
/// Cancellation.
pub(crate) fn check(store: &Store<'_>, profile: &str, path: &Path, redact: bool) -> Result<StoreReport> {
    let report = store.report;
    let mut facts = facts::read(store)?;
    if redact {
        facts.rebuild_markers.values_mut().for_each(|v| *v = super::cells::redacted(v));
    }
    let (sessions, messages) = (store.count("sessions"), store.count("messages"));
    let objects = objects(store);
    let lost = crate::ids::wide(store.gone("messages").len());
    let mut out = StoreReport {
        format: FORMAT,
        profile: profile.to_owned(),
        path: path.display().to_string(),
        exit_code: report.exit_code,
        class: report.verdict.class,
        sentence: String::new(),
        sessions,
        messages,
        messages_lost: lost,
        messages_without_session: store.without_session()?,
        hidden_rows: report.hidden_rows,
        causes: Vec::new(),
        objects,
        facts,
        beside: beside(path),
        next: Vec::new(),
    };
    out.sentence = sentence(&out, store);
    if sessions.is_none() && messages.is_none() {
        out.exit_code = out.exit_code.max(2);
    }
    if out.messages_without_session > 0 {
        out.exit_code = out.exit_code.max(2);
    }
    out.causes = causes(&out, store);
    let quoted = shell(&path.to_string_lossy());
    out.next = match out.exit_code {
        0 => Vec::new(),
        code => {
            let mut steps =
                vec![format!("rootpage hermes recover {quoted} -o {}", shell(&format!("{}.recovered.db", path.to_string_lossy())))];
            if code >= 2 {
                steps.push(format!("rootpage hermes export {quoted} --format html -o sessions.html"));
            }
            steps
        }
    };
    Ok(out)
}

fn sentence(r: &StoreReport, store: &Store<'_>) -> String {
    let hidden = match r.hidden_rows {
        0 => String::new(),
        n => format!(" {} committed in the log do not show when the store is opened.", counted(n, "row")),
    };
    let (Some(messages), Some(sessions)) = (r.messages, r.sessions) else {
        let which = match (r.messages, r.sessions) {
            (None, None) => "no table of messages or sessions is declared",
            (None, _) => "no table of messages is declared",
            _ => "no table of sessions is declared",
        };
        return format!("The schema does not show the transcript: {which}; hermes recover looks for their rows by what they hold.{hidden}");
    };
    let hidden = match r.messages_without_session {
        0 => hidden,
        n => format!(" {} to sessions that have no row and do not show; hermes recover gives them one.{hidden}", belong(n)),
    };
    let intact = format!("all {} of {} are intact", counted(messages, "message"), counted(sessions, "session"));
    let whole = store.is_whole("messages") && store.is_whole("sessions");
    let text = match r.class {
        Class::Healthy if r.messages_without_session > 0 => format!("The file is sound, {}.", intact.replace("are intact", "are readable")),
        Class::Healthy => format!("Healthy, {intact}."),
        Class::Housekeeping => format!("Only bookkeeping of the file is off, {intact}, search works."),
        Class::SearchIndexOnly => format!("Search is degraded, {intact}."),
        Class::IndexOnly => format!("An index is damaged, {intact}."),
        _ if whole => {
            let names: Vec<String> = r.objects.iter().filter(|o| o.class == Class::Structural).take(4).map(|o| name(&o.name)).collect();
            let names = if names.is_empty() { "The file".to_owned() } else { names.join(", ") };
            format!("{names} is damaged, {intact}.")
        }
        _ => {
            let gone = if r.messages_lost > 0 { format!("; at least {} lost", are(r.messages_lost)) } else { String::new() };
            format!("Data is damaged: {} of {} are readable{gone}.", counted(messages, "message"), counted(sessions, "session"))
        }
    };
    format!("{text}{hidden}")
}

fn belong(n: u64) -> String {
    if n == 1 { "1 message belongs".to_owned() } else { format!("{} messages belong", count(n)) }
}

fn are(n: u64) -> String {
    if n == 1 { "1 message is".to_owned() } else { format!("{} messages are", count(n)) }
}

fn objects(store: &Store<'_>) -> Vec<DamagedObject> {
    let report = store.report;
    let mut out: Vec<DamagedObject> = Vec::new();
    for group in report.findings.iter().filter(|g| g.class > Class::Healthy) {
        let object = group.object.and_then(|id| report.objects.iter().find(|o| o.id == id));
        let folded = group.object.and_then(|id| store.index_of_shadow(id));
        let (kind, label) = match (&folded, object) {
            (Some(index), _) => ("search index", index.clone()),
            (None, Some(o)) => (o.kind.as_str(), o.name.clone()),
            (None, None) => ("file", "as a whole".to_owned()),
        };
        let place = out.iter().position(|o| o.name == label && o.kind == kind).unwrap_or_else(|| {
            let fresh =
                DamagedObject { name: label, kind: kind.to_owned(), roots: Vec::new(), class: group.class, findings: BTreeMap::new() };
            out.push(fresh);
            out.len().saturating_sub(1)
        });
        let Some(entry) = out.get_mut(place) else { continue };
        entry.class = entry.class.max(group.class);
        if let Some(root) = object.and_then(|o| o.root).filter(|r| !entry.roots.contains(r)) {
            entry.roots.push(root);
        }
        let sum = entry.findings.entry(format!("{} {}", group.code, group.name)).or_insert(0);
        *sum = sum.saturating_add(group.count);
    }
    out.sort_by(|a, b| b.class.cmp(&a.class).then_with(|| a.name.cmp(&b.name)));
    out
}

/// Causes in the words of the application's own persistence errors.
fn causes(r: &StoreReport, store: &Store<'_>) -> Vec<String> {
    let mut out = Vec::new();
    let any = |class: Class| r.objects.iter().any(|o| o.class == class);
    if any(Class::Structural) || any(Class::IndexOnly) {
        out.push("corrupt");
    }
    if any(Class::SearchIndexOnly) {
        out.push("fts_index");
    }
    if r.hidden_rows > 0 || r.beside.iter().any(|b| b.contains(".retired-wal-")) {
        out.push("deleted_wal");
    }
    if r.facts.generation_fits == Some(false) {
        out.push("replaced");
    }
    if r.messages_without_session > 0 {
        out.push("session_row_missing");
    }
    if store.report.inputs.iter().any(|i| !i.unreadable.is_empty()) {
        out.push("disk");
    }
    if out.is_empty() && r.exit_code > 0 && r.class > Class::Housekeeping {
        out.push("unknown");
    }
    out.into_iter().map(str::to_owned).collect()
}

/// Entries of a folder that are looked at.
const ENTRIES: usize = 100_000;

/// Files beside a store that the application leaves when it meets damage.
fn beside(path: &Path) -> Vec<String> {
    let Some(file) = path.file_name().map(|n| n.to_string_lossy().into_owned()) else { return Vec::new() };
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let tails = [
        ".zeroed-",
        ".notadb-",
        ".corrupt.",
        ".malformed-backup-",
        ".backup-before-fts-rebuild-",
        ".pre-update-emergency-",
        ".retired-wal-",
        ".repair-attempts.json",
    ];
    let mut out: Vec<String> = entries
        .take(ENTRIES)
        .filter_map(|e| Some(e.ok()?.file_name().to_string_lossy().into_owned()))
        .filter(|n| n.strip_prefix(&file).is_some_and(|rest| tails.iter().any(|t| rest.starts_with(t))) || n == "state-snapshots")
        .collect();
    out.sort();
    out
}
