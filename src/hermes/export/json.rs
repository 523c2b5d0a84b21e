//! One JSON object for each session: every column of `sessions`, and `messages` with every column of `messages`, decoded as the
//! application's own export has it. `_rootpage` says what is special; the application's import passes over it.

use std::collections::BTreeMap;
use std::io::Write;

use serde_json::{Map, Value as Json, json};

use super::{Message, Record, SessionLine, Store, Writer, cells, hidden, marks, stdout};
use crate::error::Result;
use crate::hermes::store::Columns;
use crate::survey::plan::Constant;

/// Columns of messages whose text is JSON that the application decodes.
const DECODED: [&str; 6] =
    ["tool_calls", "reasoning_details", "codex_reasoning_items", "codex_message_items", "display_metadata", "anthropic_content_blocks"];

/// System prompts that are kept together, in bytes; further ones stay hashes.
const PROMPTS: usize = 64 << 20;

pub(super) struct JsonWriter {
    sessions: Columns,
    messages: Columns,
    prompts: BTreeMap<Vec<u8>, String>,
    profile: String,
    redact: bool,
    any: bool,
}

impl JsonWriter {
    pub(super) fn new(sessions: &Columns, messages: &Columns, store: Option<&Store<'_>>, profile: &str, redact: bool) -> JsonWriter {
        let mut prompts = BTreeMap::new();
        if let Some(store) = store {
            let columns = store.columns("system_prompts");
            let (hash, prompt) = (columns.at("hash"), columns.at("prompt"));
            let mut used = 0_usize;
            // What cannot be read leaves a hash without its text.
            let _ = store.each("system_prompts", |seen| {
                if let (Constant::Text(hash), Some(text)) = (seen.owned(hash), cells::text(&seen.owned(prompt))) {
                    used = used.saturating_add(text.len());
                    if used <= PROMPTS {
                        prompts.insert(hash, text);
                    }
                }
                Ok(())
            });
        }
        JsonWriter { sessions: sessions.clone(), messages: messages.clone(), prompts, profile: profile.to_owned(), redact, any: false }
    }

    fn value(&self, value: &Constant) -> Json {
        match value {
            v if self.redact && hidden(v) => Json::from(cells::redacted(&cells::text(v).unwrap_or_default())),
            Constant::Real(_) if self.redact => Json::Null,
            v => cells::json(v),
        }
    }
}

impl Writer for JsonWriter {
    fn session(&mut self, head: &SessionLine, row: Option<&Record>, out: &mut dyn Write) -> Result<()> {
        let mut map = Map::new();
        let mut lossy: Vec<&str> = Vec::new();
        let mut raw = Map::new();
        for (name, value) in self.sessions.names.iter().zip(row.map(|r| r.values.as_slice()).unwrap_or_default()) {
            if cells::is_lossy(value) {
                lossy.push(name);
            }
            let is_time = name.ends_with("_at") || name.ends_with("_until") || name.ends_with("_deadline");
            if is_time && cells::Epoch::of(value) == cells::Epoch::Corrupt {
                if !self.redact {
                    raw.insert(name.clone(), cells::json(value));
                }
                map.insert(name.clone(), Json::Null);
                continue;
            }
            map.insert(name.clone(), self.value(value));
        }
        map.insert("id".to_owned(), Json::from(head.id.clone()));
        map.insert("started_at".to_owned(), head.started_at.map_or(Json::Null, Json::from));
        if row.is_none() {
            map.insert("source".to_owned(), Json::from("recovered"));
        }
        if map.get("system_prompt").is_none_or(Json::is_null)
            && let Some(Constant::Text(hash)) = row.map(|r| r.get(&self.sessions, "system_prompt_hash"))
            && let Some(prompt) = self.prompts.get(hash)
        {
            map.insert("system_prompt".to_owned(), Json::from(if self.redact { cells::redacted(prompt) } else { prompt.clone() }));
        }
        let mut own = json!({ "profile": self.profile, "labels": head.labels });
        if let Some(own) = own.as_object_mut() {
            if !lossy.is_empty() {
                own.insert("not_utf8".to_owned(), json!(lossy));
            }
            if !raw.is_empty() {
                own.insert("raw".to_owned(), Json::Object(raw));
            }
        }
        map.insert("_rootpage".to_owned(), own);
        let text = Json::Object(map).to_string();
        let open = text.strip_suffix('}').unwrap_or(&text);
        self.any = false;
        write!(out, "{open},\"messages\":[").map_err(stdout)
    }

    fn message(&mut self, m: &Message, record: &Record, out: &mut dyn Write) -> Result<()> {
        let mut map = Map::new();
        let mut lossy: Vec<&str> = Vec::new();
        let mut raw = Map::new();
        for (name, value) in self.messages.names.iter().zip(&record.values) {
            if cells::is_lossy(value) {
                lossy.push(name);
            }
            let decoded = match name.as_str() {
                _ if self.redact => self.value(value),
                "content" => cells::content(value),
                "timestamp" if m.outline.bad_time => {
                    raw.insert(name.clone(), cells::json(value));
                    Json::Null
                }
                name if DECODED.contains(&name) => cells::decoded(value).unwrap_or_else(|| cells::json(value)),
                _ => cells::json(value),
            };
            map.insert(name.clone(), decoded);
        }
        map.insert("id".to_owned(), Json::from(m.id));
        let marks = marks(m);
        if !(marks.is_empty() && lossy.is_empty() && raw.is_empty()) {
            let mut own = json!({ "labels": marks });
            if let Some(own) = own.as_object_mut() {
                if !lossy.is_empty() {
                    own.insert("not_utf8".to_owned(), json!(lossy));
                }
                if !raw.is_empty() {
                    own.insert("raw".to_owned(), Json::Object(raw));
                }
            }
            map.insert("_rootpage".to_owned(), own);
        }
        let comma = if self.any { "," } else { "" };
        self.any = true;
        write!(out, "{comma}{}", Json::Object(map)).map_err(stdout)
    }

    fn end_session(&mut self, out: &mut dyn Write) -> Result<()> {
        out.write_all(b"]}\n").map_err(stdout)
    }

    fn finish(&mut self, _: &mut dyn Write) -> Result<()> {
        Ok(())
    }
}
