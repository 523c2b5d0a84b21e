//! `hermes export`: transcripts straight from the evidence, one session after the other.

mod html;
mod json;
mod markdown;

use std::io::Write;

use super::cells;
use super::list::{self, SessionLine};
use super::store::{Label, Record, Store};
use super::transcript::{Message, Session, Transcript};
use crate::error::Result;
use crate::survey::plan::Constant;

/// The form of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// One JSON object a session, as the application's own import takes it.
    Jsonl,
    /// Markdown with a front matter for each session.
    Markdown,
    /// One page that needs nothing else.
    Html,
}

/// What is exported, and how.
#[derive(Debug, Clone)]
pub struct ExportOptions {
    /// The form.
    pub format: ExportFormat,
    /// Only this session.
    pub session: Option<String>,
    /// Leave the values of the evidence out.
    pub redact: bool,
}

/// What an export came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Exported {
    /// Sessions written.
    pub sessions: u64,
    /// Messages written.
    pub messages: u64,
    /// Warnings in the application's words, each naming its session.
    pub warnings: Vec<String>,
    /// Warnings beyond those that are kept.
    pub more_warnings: u64,
}

/// Warnings that are kept.
const WARNINGS: usize = 1000;

/// Receives sessions and messages in order.
trait Writer {
    fn session(&mut self, head: &SessionLine, row: Option<&Record>, out: &mut dyn Write) -> Result<()>;
    fn message(&mut self, m: &Message, record: &Record, out: &mut dyn Write) -> Result<()>;
    fn end_session(&mut self, out: &mut dyn Write) -> Result<()>;
    fn finish(&mut self, out: &mut dyn Write) -> Result<()>;
}

/// Writes the sessions of a store to `out`. Memory holds one session row and one message at a time.
///
/// # Errors
/// Writing, temporary files, cancellation.
pub(crate) fn write(store: &Store<'_>, profile: &str, options: &ExportOptions, out: &mut dyn Write) -> Result<Exported> {
    let mut t = Transcript::new(store)?;
    let mut done = Exported::default();
    let prompts = if options.session.is_none() && t.session_columns.at("system_prompt_hash").is_none() { None } else { Some(()) };
    let mut writer: Box<dyn Writer + '_> = match options.format {
        ExportFormat::Jsonl => {
            Box::new(json::JsonWriter::new(&t.session_columns, &t.message_columns, prompts.map(|()| store), profile, options.redact))
        }
        ExportFormat::Markdown => Box::new(markdown::MarkdownWriter::new(&t.session_columns, &t.message_columns, profile, options.redact)),
        ExportFormat::Html => {
            Box::new(html::HtmlWriter::new(&t.session_columns, &t.message_columns, profile, options.redact, store.sorter(), out)?)
        }
    };
    while let Some(session) = t.session()? {
        if options.session.as_ref().is_some_and(|id| id.as_bytes() != session.id.as_slice()) {
            continue;
        }
        done.sessions = done.sessions.saturating_add(1);
        one(&mut t, &session, done.sessions, options.redact, &mut *writer, &mut done, out)?;
    }
    writer.finish(out)?;
    out.flush().map_err(stdout)?;
    Ok(done)
}

fn one(
    t: &mut Transcript<'_, '_>,
    session: &Session,
    number: u64,
    redact: bool,
    writer: &mut dyn Writer,
    done: &mut Exported,
    out: &mut dyn Write,
) -> Result<()> {
    let mut head = list::head(session, t);
    // The time of the first message stands for a start that is none.
    let mut first = match (head.started_at, t.message()?) {
        (None, Some(m)) => {
            head.started_at = m.outline.at;
            if head.started_at.is_some() {
                head.labels.push("started-at-of-first-message".to_owned());
            }
            Some(m)
        }
        (_, m) => m,
    };
    for w in &head.warnings {
        if done.warnings.len() < WARNINGS {
            done.warnings.push(if redact { "Ignoring corrupt value (redacted)".to_owned() } else { w.clone() });
        } else {
            done.more_warnings = done.more_warnings.saturating_add(1);
        }
    }
    if redact {
        head.redact(number);
    }
    writer.session(&head, session.row.as_ref(), out)?;
    let mut odd = 0_u64;
    while let Some(m) = first.take().map_or_else(|| t.message(), |m| Ok(Some(m)))? {
        let Some(record) = t.record(&m) else { continue };
        odd = odd.saturating_add(u64::from(m.outline.bad_time));
        writer.message(&m, &record, out)?;
        done.messages = done.messages.saturating_add(1);
    }
    if odd > 0 && done.warnings.len() < WARNINGS {
        done.warnings.push(format!("Ignoring corrupt timestamp of {odd} messages on session {}", head.id));
    }
    writer.end_session(out)
}

/// A failure to write the export.
fn stdout(e: std::io::Error) -> crate::error::Error {
    crate::error::Error::io(std::path::Path::new("the export"), "write", e)
}

/// What a message is marked with.
fn marks(m: &Message) -> Vec<&'static str> {
    let mut out = Vec::new();
    match (m.outline.active, m.outline.compacted) {
        (true, _) => {}
        (false, true) => out.push("compacted"),
        (false, false) => out.push("rewound"),
    }
    out.extend(m.outline.label.word());
    out
}

/// The role of a message for people.
fn role(record: &Record, columns: &super::store::Columns) -> String {
    match cells::text(record.get(columns, "role")) {
        Some(role) if !role.is_empty() => cells::one_line(&role, 40),
        _ if matches!(record.label, Label::SearchContent | Label::SearchText | Label::Index) => "role unknown".to_owned(),
        _ => "?".to_owned(),
    }
}

/// The time of a message for people.
fn time(m: &Message, none: &str) -> String {
    m.outline.at.map_or_else(|| none.to_owned(), cells::utc)
}

/// The columns that a row of the session has, for front matters.
fn cell(row: Option<&Record>, columns: &super::store::Columns, name: &str) -> Option<String> {
    row.and_then(|r| cells::text(r.get(columns, name))).filter(|s| !s.is_empty())
}

/// Whether a value is one to hide.
fn hidden(value: &Constant) -> bool {
    matches!(value, Constant::Text(_) | Constant::Blob(_))
}
