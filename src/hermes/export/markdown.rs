//! Sessions as Markdown: a front matter, the messages, and a trailer with their number and the SHA-256 of the body.

use std::io::Write;

use sha2::{Digest, Sha256};

use super::{Message, Record, SessionLine, Writer, cell, cells, marks, role, stdout, time};
use crate::error::Result;
use crate::hermes::store::Columns;
use crate::report::human::escape;

pub(super) struct MarkdownWriter {
    sessions: Columns,
    messages: Columns,
    profile: String,
    redact: bool,
    body: Sha256,
    count: u64,
}

impl MarkdownWriter {
    pub(super) fn new(sessions: &Columns, messages: &Columns, profile: &str, redact: bool) -> MarkdownWriter {
        MarkdownWriter {
            sessions: sessions.clone(),
            messages: messages.clone(),
            profile: profile.to_owned(),
            redact,
            body: Sha256::new(),
            count: 0,
        }
    }

    fn put(&mut self, text: &str, out: &mut dyn Write) -> Result<()> {
        self.body.update(text.as_bytes());
        out.write_all(text.as_bytes()).map_err(stdout)
    }

    fn shown(&self, text: String) -> String {
        if self.redact { cells::redacted(&text) } else { text }
    }
}

/// A text of the evidence as a value of the front matter: a JSON string is a YAML string, and no markup.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('<', "\\u003c")
}

/// A text in a fence that it cannot close.
fn fenced(text: &str, word: &str) -> String {
    let mut longest = 2_usize;
    let mut run = 0_usize;
    for c in text.chars() {
        run = if c == '`' { run.saturating_add(1) } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(longest.saturating_add(1));
    format!("{fence}{word}\n{}\n{fence}\n", harmless(text))
}

/// Control characters but line breaks and tabs, made visible.
fn harmless(text: &str) -> String {
    text.lines()
        .map(|l| l.split('\t').map(|p| escape(p).replace("\\\\", "\\")).collect::<Vec<_>>().join("\t"))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Text as Markdown that stays text: markup of HTML does not take effect, a heading or front matter does not begin.
fn prose(text: &str) -> String {
    let mut out = String::new();
    for line in harmless(text).lines() {
        let line = line.replace('&', "&amp;").replace('<', "&lt;");
        if line.starts_with(['#', '=', '-']) {
            out.push('\\');
        }
        out.push_str(&line);
        out.push('\n');
    }
    out
}

impl Writer for MarkdownWriter {
    fn session(&mut self, head: &SessionLine, row: Option<&Record>, out: &mut dyn Write) -> Result<()> {
        let get = |name| cell(row, &self.sessions, name).map(|t| self.shown(t));
        let at = |t: Option<f64>| t.map_or_else(|| "N/A".to_owned(), cells::utc);
        let mut front = String::from("---\n");
        let mut line = |name: &str, value: &str| front.push_str(&format!("{name}: {}\n", quoted(value)));
        line("session_id", &head.id);
        line("profile", &self.profile);
        line("title", head.title.as_deref().unwrap_or_default());
        line("source", head.source.as_deref().unwrap_or("recovered"));
        line("created_at", &at(head.started_at));
        line("updated_at", &at(head.last_active));
        let ended = row.map(|r| cells::Epoch::of(r.get(&self.sessions, "ended_at"))).and_then(cells::Epoch::seconds);
        line("ended_at", &if self.redact { "N/A".to_owned() } else { at(ended) });
        line("model", &get("model").unwrap_or_default());
        line("provider", &get("billing_provider").unwrap_or_default());
        line("cwd", &get("cwd").unwrap_or_default());
        line("archived", if head.archived { "true" } else { "false" });
        if !head.labels.is_empty() {
            line("rootpage_labels", &head.labels.join(", "));
        }
        line("format", "md");
        line("exporter", "rootpage");
        front.push_str("---\n\n");
        out.write_all(front.as_bytes()).map_err(stdout)?;
        (self.body, self.count) = (Sha256::new(), 0);
        let title = cells::one_line(head.title.as_deref().unwrap_or(&head.id), 200);
        let title = format!("# {}\n\n", prose(&title).trim_end());
        self.put(&title, out)
    }

    fn message(&mut self, m: &Message, record: &Record, out: &mut dyn Write) -> Result<()> {
        self.count = self.count.saturating_add(1);
        let (role, at) = (role(record, &self.messages), if self.redact { String::new() } else { time(m, "?") });
        let marks = marks(m);
        let marks = if marks.is_empty() { String::new() } else { format!(" [{}]", marks.join(", ")) };
        let mut text = format!("## {} · {at} · #{}{marks}\n\n", prose(&role).trim_end(), m.id);
        if let Some(reasoning) = cell(Some(record), &self.messages, "reasoning").map(|t| self.shown(t)) {
            text.push_str("Reasoning:\n\n");
            text.push_str(&fenced(&reasoning, ""));
            text.push('\n');
        }
        for part in cells::parts(record.get(&self.messages, "content")) {
            match part {
                cells::Part::Text(t) if role == "tool" => text.push_str(&fenced(&self.shown(t), "")),
                cells::Part::Text(t) => text.push_str(&prose(&self.shown(t))),
                cells::Part::Other(what) => text.push_str(&format!("[{}]\n", prose(&what).trim_end())),
            }
            text.push('\n');
        }
        for (name, arguments) in cells::calls(record.get(&self.messages, "tool_calls")) {
            text.push_str(&format!("Calls {}:\n\n", prose(&self.shown(name)).trim_end()));
            text.push_str(&fenced(&self.shown(arguments), "json"));
            text.push('\n');
        }
        self.put(&text, out)
    }

    fn end_session(&mut self, out: &mut dyn Write) -> Result<()> {
        let sum = cells::hex(&std::mem::replace(&mut self.body, Sha256::new()).finalize());
        write!(out, "---\n{} messages, SHA256 of the text above: {sum}\n\n", self.count).map_err(stdout)
    }

    fn finish(&mut self, _: &mut dyn Write) -> Result<()> {
        Ok(())
    }
}
