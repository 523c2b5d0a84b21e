//! What `hermes recover` did, for people and scripts, and what to tell the customer.

use std::collections::BTreeMap;
use std::path::Path;

use askama::Template;
use serde::Serialize;

use crate::error::{Error, Result};
use crate::hermes::cells;
use crate::hermes::facts::FORMAT;
use crate::report::Report;
use crate::report::human::{count, counted, name, passage, shell};
use crate::report::model::Class;

/// Repairs of one kind that are named one by one; all are counted.
const NAMED: usize = 200;

/// Repairs of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Repair {
    /// How many.
    pub count: u64,
    /// The first of them: what was repaired, and what stood there.
    pub items: Vec<[String; 2]>,
}

/// What `hermes recover` did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Recovered {
    /// The number of this format.
    pub format: u32,
    /// The profile.
    pub profile: String,
    /// The store.
    pub source: String,
    /// The copy.
    pub output: String,
    /// As of `rootpage recover`.
    pub exit_code: u8,
    /// "read", or "inferred" from the shapes of rows.
    pub schema: String,
    /// Where it was inferred: the columns of each table, in words.
    pub layouts: Vec<String>,
    /// Whether the times of an inferred schema can be; false: do not trust which column is which.
    pub verified: bool,
    /// Whether the copy has sessions and messages.
    pub has_transcript: bool,
    /// Sessions in the copy.
    pub sessions: u64,
    /// Messages in the copy.
    pub messages: u64,
    /// Messages that indexes or search indexes name and no page has.
    pub lost_messages: u64,
    /// Those of them whose text stands in the copy again.
    pub texts_back: u64,
    /// Whether the profile changed the copy.
    pub amended: bool,
    /// Whether the search index was damaged, and is built anew.
    pub search_was_damaged: bool,
    /// Never: a person installs the copy.
    pub installed: bool,
    /// Repairs by kind.
    pub repairs: BTreeMap<String, Repair>,
    /// What else is worth a word.
    pub notes: Vec<String>,
    /// Five lines for the customer.
    pub customer: Vec<String>,
    /// The steps that put the copy in place.
    pub install: Vec<String>,
}

impl Recovered {
    pub(super) fn new(profile: &str, source: &Path, out: &Path) -> Recovered {
        Recovered {
            format: FORMAT,
            profile: profile.to_owned(),
            source: source.display().to_string(),
            output: out.display().to_string(),
            exit_code: 0,
            schema: "read".to_owned(),
            layouts: Vec::new(),
            verified: true,
            has_transcript: false,
            sessions: 0,
            messages: 0,
            lost_messages: 0,
            texts_back: 0,
            amended: false,
            search_was_damaged: false,
            installed: false,
            repairs: BTreeMap::new(),
            notes: Vec::new(),
            customer: Vec::new(),
            install: Vec::new(),
        }
    }

    /// Enters a repair: its kind, what was repaired, what stood there.
    pub(super) fn repair(&mut self, kind: &str, what: &str, was: &str) {
        let repair = self.repairs.entry(kind.to_owned()).or_default();
        repair.count = repair.count.saturating_add(1);
        if repair.items.len() < NAMED {
            repair.items.push([cells::one_line(what, 200), cells::one_line(was, 400)]);
        }
    }

    fn number(&self, kinds: &[&str]) -> u64 {
        kinds.iter().filter_map(|k| self.repairs.get(*k)).map(|r| r.count).fold(0, u64::saturating_add)
    }

    /// Counts what stands in the copy.
    pub(super) fn count(&mut self, report: &Report) {
        let written = |table: &str| {
            let tables = report.recovery.iter().flat_map(|r| &r.tables).filter(|t| t.name.eq_ignore_ascii_case(table));
            tables.map(|t| t.rows_written).fold(0, u64::saturating_add)
        };
        let sessions = self.number(&[
            "placeholder-session",
            "session-broke-its-declaration",
            "session-of-hidden-commit",
            "session-of-retired-log",
            "session-of-fallback-file",
        ]);
        let messages =
            self.number(&["message-of-hidden-commit", "text-of-lost-message", "message-of-retired-log", "message-of-fallback-file"]);
        self.sessions = written("sessions").saturating_add(sessions);
        self.messages = written("messages").saturating_add(messages);
    }

    /// Takes the values of the evidence out.
    pub(super) fn redact(&mut self) {
        for repair in self.repairs.values_mut() {
            for item in &mut repair.items {
                for text in item.iter_mut().filter(|t| !t.is_empty()) {
                    *text = cells::redacted(text);
                }
            }
        }
        for note in &mut self.notes {
            *note = cells::redacted(note);
        }
    }

    /// As JSON, with a line break at the end.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// As lines for people, the profile at the head of each.
    #[must_use]
    pub fn text(&self) -> String {
        let mut lines = vec![format!(
            "{}: {} and {} in the copy {}",
            name(&self.source),
            counted(self.sessions, "session"),
            counted(self.messages, "message"),
            name(&self.output)
        )];
        if self.schema == "inferred" {
            lines.push("the schema was lost; columns were inferred from what the rows hold and from the application's history".to_owned());
            lines.extend(self.layouts.iter().map(|l| format!("  {}", passage(l))));
        }
        if !self.verified {
            lines.push("NOT VERIFIED: no time in the copy can be one; do not trust which column is which".to_owned());
        }
        for (kind, repair) in &self.repairs {
            lines.push(format!("repaired: {} {}", count(repair.count), words(kind)));
            for [what, was] in repair.items.iter().take(5) {
                let was = if was.is_empty() { String::new() } else { format!(" (was: {})", name(was)) };
                lines.push(format!("  {}{was}", name(what)));
            }
        }
        lines.extend(self.notes.iter().map(|n| format!("note: {}", passage(n))));
        lines.push("What to tell the customer:".to_owned());
        lines.extend(self.customer.iter().map(|l| format!("  {l}")));
        lines.push("To install it (nothing was installed):".to_owned());
        lines.extend(self.install.iter().enumerate().map(|(i, l)| format!("  {}. {l}", i.saturating_add(1))));
        let profile = name(&self.profile);
        lines.iter().map(|l| format!("{profile}: {l}\n")).collect()
    }
}

/// A kind of repair in words that follow a number.
fn words(kind: &str) -> &str {
    match kind {
        "placeholder-session" => "placeholder sessions: their own row is lost",
        "started-at-of-first-message" => "starts of sessions taken from the first message",
        "started-at-of-activity-or-id" => "starts of sessions taken from the last activity or the session id",
        "started-at-unknown" => "starts of sessions that nothing tells",
        "parent-is-gone" => "references to a parent session that is gone",
        "prompt-is-gone" => "references to a system prompt that is gone",
        "model-config-is-no-json" => "model_config cells that are no JSON, now {}",
        "title-stood-twice" => "titles that another session has; the sessions are kept",
        "active-was-null" => "runs of messages that did not show because active was NULL",
        "rebuild-marker-cleared" => "rebuild markers of the search index cleared: it is complete, the application must not index twice",
        "session-broke-its-declaration" => "sessions with a cell that their table forbids",
        "session-of-hidden-commit" => "sessions of commits that SQLite does not read",
        "message-of-hidden-commit" => "messages of commits that SQLite does not read",
        "session-of-retired-log" => "sessions of a retired log",
        "message-of-retired-log" => "messages of a retired log",
        "session-of-fallback-file" => "sessions of the application's fallback files",
        "message-of-fallback-file" => "messages of the application's fallback files",
        "text-of-lost-message" => "lost messages whose text a search index still had",
        other => other,
    }
}

/// Writes the lines for the customer and the steps of the installation.
pub(super) fn tell(done: &mut Recovered, report: &Report) {
    let lost = done.lost_messages.saturating_sub(done.texts_back);
    let damaged = match report.verdict.class {
        Class::Healthy | Class::Housekeeping => "Your session store had no damage to your data.",
        Class::SearchIndexOnly => "Only the search index of your session store was damaged; your conversations were not touched.",
        Class::IndexOnly => "Only lookup tables of your session store were damaged; your conversations were not touched.",
        _ => "A part of your session store was damaged.",
    };
    let back = format!("We have {} and {} back.", counted(done.sessions, "session"), counted(done.messages, "message"));
    let gone = match (lost, report.exit_code) {
        (0, 0 | 1) => "Nothing was lost.".to_owned(),
        (0, _) if done.texts_back > 0 => "Of some messages only the text could be brought back.".to_owned(),
        (0, _) => "No message is known to be lost; what is doubtful was set aside and can still be looked at.".to_owned(),
        (1, _) => "1 message is lost, and its text could not be brought back.".to_owned(),
        (n, _) => format!("{} messages are lost, and their text could not be brought back.", count(n)),
    };
    let placeholders = done.number(&["placeholder-session"]);
    let changed = match (placeholders, done.texts_back) {
        (0, 0) => "All sessions keep their names.".to_owned(),
        (p, 0) => format!("{} lost their name and are called \"[recovered N] …\".", counted(p, "session")),
        (0, t) => format!("{} are back as text only: capitals or punctuation may be missing.", counted(t, "message")),
        (p, t) => {
            format!("{} lost their name (\"[recovered N] …\"), {} are back as text only.", counted(p, "session"), counted(t, "message"))
        }
    };
    let last = if done.verified {
        "Please stop Hermes before the new store is put in place; your old file is kept, nothing was deleted.".to_owned()
    } else {
        "Times and names in the new store are not certain; please do not delete the old file.".to_owned()
    };
    done.customer = vec![damaged.to_owned(), back, gone, changed, last];
    let (old, new) = (shell(&done.source), shell(&done.output));
    let aside = |ending: &str| shell(&format!("{}{ending}", done.source));
    done.install = vec![
        "stop every Hermes process that uses the store".to_owned(),
        format!(
            "for f in {old} {} {} {}; do [ ! -e \"$f\" ] || mv -n \"$f\" \"$f.damaged\"; done",
            aside("-wal"),
            aside("-shm"),
            aside("-journal")
        ),
        format!("cp {new} {old}"),
        "start Hermes and look at the newest session; run hermes doctor".to_owned(),
    ];
    if report.recovery.as_ref().is_some_and(|r| r.outputs.iter().any(|o| o.role == crate::report::model::OutputRole::FinishSql)) {
        done.install.insert(2, format!("run {} on the copy (see RECOVERY.md)", shell(&format!("{}.finish.sql", done.output))));
    }
}

#[derive(Template)]
#[template(path = "recovered.html", escape = "html")]
struct Section<'d> {
    done: &'d Recovered,
    repairs: Vec<(String, Vec<String>)>,
}

/// The part of the HTML report.
pub(super) fn section(done: &Recovered) -> Result<String> {
    let repairs = done.repairs.iter().map(|(kind, r)| {
        let items = r.items.iter().take(20).map(|[what, was]| match was.is_empty() {
            true => name(what),
            false => format!("{} (was: {})", name(what), name(was)),
        });
        (format!("{} {}", count(r.count), words(kind)), items.collect())
    });
    Section { done, repairs: repairs.collect() }.render().map_err(|e| Error::SelfCheck { what: format!("the page does not render: {e}") })
}
