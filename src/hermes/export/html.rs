//! One page that needs nothing else: a list of sessions that can be searched, and transcripts that read like a chat.
//!
//! Everything of the evidence goes through the template's escaping; the page's own policy lets nothing load and no script run
//! but the one that stands in it.

use std::io::Write;

use askama::Template;
use sha2::{Digest, Sha256};

use super::{Message, Record, SessionLine, Writer, cell, cells, marks, role, stdout, time};
use crate::error::{Error, Result};
use crate::hermes::store::{Columns, Label};
use crate::ids::wide;
use crate::sort::Sorter;

/// Characters of one text that the page shows; the rest is in the JSON.
const SHOWN: usize = 200_000;

const SCRIPT: &str = include_str!("../html/search.js");
const STYLE: &str = include_str!("../html/transcript.css");

#[derive(Template)]
#[template(path = "transcript_head.html", escape = "html")]
struct Head<'t> {
    profile: &'t str,
    policy: String,
    style: &'static str,
}

#[derive(Template)]
#[template(path = "transcript_session.html", escape = "html")]
struct SessionPart {
    anchor: u64,
    title: String,
    id: String,
    facts: Vec<(&'static str, String)>,
    labels: Vec<String>,
    warnings: Vec<String>,
    prompt: Option<String>,
}

#[derive(Template)]
#[template(path = "transcript_message.html", escape = "html")]
struct MessagePart {
    class: &'static str,
    role: String,
    time: String,
    id: i64,
    tool: Option<String>,
    marks: Vec<&'static str>,
    note: Option<&'static str>,
    reasoning: Option<String>,
    parts: Vec<(bool, String)>,
    fold: bool,
    calls: Vec<(String, String)>,
}

#[derive(Template)]
#[template(path = "transcript_entry.html", escape = "html")]
struct Entry {
    anchor: u64,
    title: String,
    at: String,
    source: String,
    messages: u64,
    labels: String,
    id: String,
}

pub(super) struct HtmlWriter {
    sessions: Columns,
    messages: Columns,
    redact: bool,
    list: Sorter,
    open: Option<SessionLine>,
    anchor: u64,
    count: u64,
}

fn rendered(template: &impl Template) -> Result<String> {
    template.render().map_err(|e| Error::SelfCheck { what: format!("the page does not render: {e}") })
}

/// Bytes as base64.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let n = chunk.iter().chain(std::iter::repeat(&0)).take(3).fold(0_u32, |n, b| n << 8 | u32::from(*b));
        for i in 0..4_u32 {
            let digit = crate::ids::idx(n >> (18_u32.saturating_sub(i.saturating_mul(6))) & 63);
            let kept = crate::ids::idx(i) <= chunk.len();
            out.push(if kept { DIGITS.get(digit).map_or('=', |d| char::from(*d)) } else { '=' });
        }
    }
    out
}

/// Text for the page: control characters and marks that turn the reading direction become visible, the rest stays; long texts
/// are cut.
fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (i, c) in text.chars().enumerate() {
        if i >= SHOWN {
            out.push_str("\n… (cut here; the JSONL export has all of it)");
            break;
        }
        let turns = matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
        match c {
            '\n' | '\t' => out.push(c),
            // The joiner of emoji and scripts stands between letters and hides nothing.
            '\u{200d}' => out.push(c),
            '\r' => {}
            c if c.is_control() || turns => out.push_str(&format!("⟨{:x}⟩", u32::from(c))),
            c => out.push(c),
        }
    }
    out
}

impl HtmlWriter {
    pub(super) fn new(
        sessions: &Columns,
        messages: &Columns,
        profile: &str,
        redact: bool,
        list: Sorter,
        out: &mut dyn Write,
    ) -> Result<HtmlWriter> {
        let hash = base64(&Sha256::digest(SCRIPT.as_bytes()));
        let policy =
            format!("default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'");
        let head = rendered(&Head { profile: &visible(profile), policy, style: STYLE })?;
        out.write_all(head.as_bytes()).map_err(stdout)?;
        Ok(HtmlWriter { sessions: sessions.clone(), messages: messages.clone(), redact, list, open: None, anchor: 0, count: 0 })
    }

    fn shown(&self, text: &str) -> String {
        if self.redact { cells::redacted(text) } else { visible(text) }
    }
}

impl Writer for HtmlWriter {
    fn session(&mut self, head: &SessionLine, row: Option<&Record>, out: &mut dyn Write) -> Result<()> {
        self.anchor = self.anchor.saturating_add(1);
        self.count = 0;
        let get = |name| cell(row, &self.sessions, name).map(|t| self.shown(&cells::one_line(&t, 200)));
        let at = |t: Option<f64>| t.map_or_else(|| "N/A".to_owned(), cells::utc);
        let mut facts = vec![("Started", at(head.started_at))];
        for (word, value) in [
            ("Source", head.source.as_deref().map(visible)),
            ("Model", get("model")),
            ("Folder", get("cwd")),
            ("Started by", get("parent_session_id")),
        ] {
            facts.extend(value.map(|v| (word, v)));
        }
        let part = SessionPart {
            anchor: self.anchor,
            title: visible(&cells::one_line(head.title.as_deref().unwrap_or("Untitled session"), 200)),
            id: visible(&cells::one_line(&head.id, 200)),
            facts,
            labels: head.labels.clone(),
            warnings: head.warnings.iter().map(|w| visible(w)).collect(),
            prompt: cell(row, &self.sessions, "system_prompt").map(|t| self.shown(&t)),
        };
        self.open = Some(head.clone());
        out.write_all(rendered(&part)?.as_bytes()).map_err(stdout)
    }

    fn message(&mut self, m: &Message, record: &Record, out: &mut dyn Write) -> Result<()> {
        self.count = self.count.saturating_add(1);
        if let (Some(open), Some(at)) = (&mut self.open, m.outline.at.filter(|_| !self.redact)) {
            open.last_active = Some(open.last_active.map_or(at, |l| l.max(at)));
        }
        let role = role(record, &self.messages);
        let get = |name| cell(Some(record), &self.messages, name).map(|t| self.shown(&t));
        let parts: Vec<(bool, String)> = cells::parts(record.get(&self.messages, "content"))
            .into_iter()
            .map(|p| match p {
                cells::Part::Text(t) => (true, self.shown(&t)),
                cells::Part::Other(what) => (false, visible(&what)),
            })
            .collect();
        let long = parts.iter().map(|(_, t)| wide(t.len())).fold(0, u64::saturating_add) > 1500;
        let part = MessagePart {
            class: match role.as_str() {
                "user" => "user",
                "assistant" => "assistant",
                "tool" => "tool",
                _ => "other",
            },
            time: if self.redact { String::new() } else { time(m, "N/A") },
            id: m.id,
            tool: get("tool_name").map(|t| cells::one_line(&t, 80)),
            marks: marks(m),
            note: match record.label {
                Label::SearchText => Some(
                    "The message is lost. This is what the search index still has of it: letters are folded, marks between words may be missing.",
                ),
                Label::SearchContent => {
                    Some("The message is lost. This is the exact copy that the search index kept; role and time may be unknown.")
                }
                Label::Index => Some("The message is lost. Only an index still names it."),
                Label::HiddenCommit | Label::HiddenState => {
                    Some("Not in the store as it opens: from a part of its log or journal that SQLite does not read.")
                }
                _ => None,
            },
            reasoning: get("reasoning").or_else(|| get("reasoning_content")),
            fold: role == "tool" && long,
            parts,
            calls: cells::calls(record.get(&self.messages, "tool_calls"))
                .into_iter()
                .map(|(n, a)| (self.shown(&n), self.shown(&a)))
                .collect(),
            role: visible(&role),
        };
        out.write_all(rendered(&part)?.as_bytes()).map_err(stdout)
    }

    fn end_session(&mut self, out: &mut dyn Write) -> Result<()> {
        out.write_all(b"</section>\n").map_err(stdout)?;
        let Some(head) = self.open.take() else { return Ok(()) };
        let at = head.last_active.or(head.started_at);
        let entry = Entry {
            anchor: self.anchor,
            title: visible(&cells::one_line(head.title.as_deref().unwrap_or("Untitled session"), 120)),
            at: at.map_or_else(|| "?".to_owned(), |t| cells::utc(t).chars().take(16).collect()),
            source: visible(&head.source.unwrap_or_default()),
            messages: self.count,
            labels: head.labels.join(" · "),
            id: visible(&cells::one_line(&head.id, 120)),
        };
        self.list.push(&super::list::newest_first(at), rendered(&entry)?.as_bytes())
    }

    fn finish(&mut self, out: &mut dyn Write) -> Result<()> {
        let none = if self.anchor == 0 { "<p class=\"none\">No session.</p>" } else { "" };
        write!(
            out,
            "{none}</main>\n<nav aria-label=\"Sessions\"><h2>{} sessions</h2><input id=\"q\" type=\"search\" placeholder=\"Search sessions and messages\" aria-label=\"Search\"><p id=\"n\" role=\"status\"></p><ol id=\"list\">\n",
            crate::report::human::count(self.anchor)
        )
        .map_err(stdout)?;
        let list = std::mem::replace(&mut self.list, Sorter::new(1 << 20, std::path::Path::new(".")));
        let mut sorted = list.finish()?;
        while let Some((_, entry)) = sorted.next()? {
            out.write_all(entry).map_err(stdout)?;
        }
        write!(out, "</ol></nav></div>\n<script>{SCRIPT}</script>\n</body>\n</html>\n").map_err(stdout)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn base64_has_its_padding() {
        for (bytes, text) in [(&b""[..], ""), (b"f", "Zg=="), (b"fo", "Zm8="), (b"foo", "Zm9v"), (b"foob", "Zm9vYg==")] {
            assert_eq!(super::base64(bytes), text);
        }
    }
}
