//! The dated history of the tables whose columns moved, and the other tables of the newest schema: facts of the application.

use crate::survey::plan::Constant;

/// What the values of a column look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Shape {
    Any,
    /// Text without further rules.
    Text,
    Int,
    Real,
    Blob,
    /// A word: source, role, model, status.
    Token,
    /// JSON text.
    Json,
    /// 64 hex digits.
    Hash,
    /// A path.
    Path,
    /// An address.
    Url,
    /// A moment.
    Time,
    /// `agent:…:`
    SessionKey,
    /// NULL in every record: the alias of the rowid.
    Alias,
}

/// A column: its name, what stands behind it in a CREATE text, and what its values look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) decl: &'static str,
    shape: Shape,
}

impl Column {
    /// A position of which nothing is known.
    pub(super) const UNKNOWN: Column = Column { name: "", decl: "", shape: Shape::Any };

    /// Whether it is [`Column::UNKNOWN`].
    pub(super) fn is_unknown(&self) -> bool {
        self.name.is_empty()
    }

    /// Whether a record may hold this value here.
    pub(super) fn allows(&self, value: &Constant) -> bool {
        use Shape::*;
        match value {
            Constant::Null => !self.decl.contains("NOT NULL") || self.shape == Alias,
            _ if self.shape == Any => true,
            Constant::Int(_) => matches!(self.shape, Int | Real | Time),
            Constant::Real(_) => matches!(self.shape, Real | Time),
            Constant::Blob(_) => self.shape == Blob,
            Constant::Text(t) => {
                let begins = |c: &[u8]| t.first().is_none_or(|b| c.contains(b));
                match self.shape {
                    Text => true,
                    Token => t.len() <= 200 && !t.iter().any(u8::is_ascii_whitespace),
                    Json => begins(b"[{\""),
                    Hash => t.is_empty() || begins(b"[") || (t.len() == 64 && t.iter().all(u8::is_ascii_hexdigit)),
                    Path => begins(b"/~.\\") || t.get(1) == Some(&b':'),
                    Url => t.is_empty() || t.windows(3).any(|w| w == b"://"),
                    SessionKey => t.is_empty() || t.starts_with(b"agent:"),
                    _ => false,
                }
            }
        }
    }
}

/// A table and how it grew.
pub(super) struct History {
    pub(super) table: &'static str,
    /// What stands behind its columns.
    pub(super) tail: &'static str,
    /// Columns that the tail names.
    pub(super) key: &'static [&'static str],
    base: &'static str,
    /// Each event: `name after`, `-name` for one that goes; the columns of an event in its order.
    events: &'static [&'static str],
    decls: &'static [(&'static str, &'static str)],
}

impl History {
    fn column(&self, name: &str) -> Option<Column> {
        let (name, decl) = self.decls.iter().find(|(n, _)| *n == name)?;
        Some(Column { name, decl, shape: shape(name, decl) })
    }

    /// The declared order after each event, oldest first.
    pub(super) fn versions(&self) -> Vec<Vec<Column>> {
        let mut now: Vec<&str> = self.base.split_whitespace().collect();
        let of = |names: &[&str]| names.iter().filter_map(|n| self.column(n)).collect::<Vec<_>>();
        let mut out = vec![of(&now)];
        for event in self.events {
            for step in event.split(',') {
                if let Some(gone) = step.strip_prefix('-') {
                    now.retain(|n| *n != gone);
                } else if let Some((name, after)) = step.split_once('>') {
                    let at = now.iter().position(|n| *n == after).map_or(now.len(), |i| i.saturating_add(1));
                    now.insert(at, name);
                }
            }
            out.push(of(&now));
        }
        out
    }

    /// The newest declared order.
    pub(super) fn newest(&self) -> Vec<Option<Column>> {
        self.versions().pop().unwrap_or_default().into_iter().map(Some).collect()
    }
}

fn shape(name: &str, decl: &str) -> Shape {
    match name {
        "id" if decl.starts_with("INTEGER") => Shape::Alias,
        "source" | "created_source" | "role" | "end_reason" | "chat_type" | "billing_mode" | "cost_status" | "cost_source"
        | "title_source" | "handoff_state" | "finish_reason" | "tool_name" => Shape::Token,
        "model_config" | "origin_json" => Shape::Json,
        "system_prompt_hash" | "tool_names" => Shape::Hash,
        "cwd" | "git_repo_root" => Shape::Path,
        "billing_base_url" => Shape::Url,
        "session_key" if decl == "TEXT" => Shape::SessionKey,
        "started_at" | "ended_at" | "timestamp" | "last_activity_at" | "last_read_at" | "first_seen" | "last_seen" => Shape::Time,
        _ if decl.starts_with("INTEGER") => Shape::Int,
        _ if decl.starts_with("REAL") => Shape::Real,
        _ if decl.starts_with("BLOB") => Shape::Blob,
        _ if decl.starts_with("TEXT") => Shape::Text,
        _ => Shape::Any,
    }
}

/// The histories.
pub(super) fn all() -> [History; 3] {
    [
        History { table: "sessions", tail: "", key: &[], base: SESSIONS, events: SESSION_EVENTS, decls: SESSION_DECLS },
        History { table: "messages", tail: "", key: &[], base: MESSAGES, events: MESSAGE_EVENTS, decls: MESSAGE_DECLS },
        History {
            table: "session_model_usage",
            tail: ", PRIMARY KEY(session_id, model, billing_provider, billing_base_url, billing_mode, task)",
            key: &["session_id", "model", "billing_provider", "billing_base_url", "billing_mode", "task"],
            base: USAGE,
            events: USAGE_EVENTS,
            decls: USAGE_DECLS,
        },
    ]
}

/// The table that a record is of, by the cells that every layout has in front.
pub(super) fn table_of(row: &[Constant]) -> Option<&'static str> {
    let text = |i: usize| match row.get(i) {
        Some(Constant::Text(t)) => Some(t.as_slice()),
        _ => None,
    };
    let role = |t: &[u8]| matches!(t, b"user" | b"assistant" | b"tool" | b"system" | b"session_meta");
    let word = |t: &[u8]| !t.is_empty() && t.len() <= 64 && t.iter().all(|b| b.is_ascii_alphanumeric() || b"_.:-".contains(b));
    if row.len() >= 9 && row.first() == Some(&Constant::Null) && text(1).is_some() && text(2).is_some_and(role) {
        return Some("messages");
    }
    let id = text(0).filter(|t| is_session_id(t))?;
    let _ = id;
    let numbers = |from: usize, to: usize| (from..to).all(|i| matches!(row.get(i), Some(Constant::Int(_))));
    if (13..=18).contains(&row.len()) && text(1).is_some() && text(2).is_some() && text(3).is_some() && (numbers(4, 10) || numbers(6, 12)) {
        return Some("session_model_usage");
    }
    (row.len() >= 14 && text(1).is_some_and(word)).then_some("sessions")
}

/// Whether a text has one of the forms of session ids.
fn is_session_id(t: &[u8]) -> bool {
    let hex = |b: &[u8]| !b.is_empty() && b.iter().all(u8::is_ascii_hexdigit);
    let digits = |b: Option<&[u8]>| b.is_some_and(|b| b.iter().all(u8::is_ascii_digit));
    let stamp = t.len() >= 22 && digits(t.get(..8)) && t.get(8) == Some(&b'_') && digits(t.get(9..15)) && t.get(15) == Some(&b'_');
    let prefixed = ["cron_", "bg_", "room_", "run_", "api_", "api-"].iter().any(|p| t.starts_with(p.as_bytes()));
    let uuid = t.len() == 36 && t.split(|b| *b == b'-').map(<[u8]>::len).eq([8, 4, 4, 4, 12]) && t.split(|b| *b == b'-').all(hex);
    stamp || (prefixed && t.len() <= 200) || uuid
}

const SESSIONS: &str = "id source user_id model model_config system_prompt parent_session_id started_at ended_at end_reason message_count tool_call_count input_tokens output_tokens";

const SESSION_EVENTS: &[&str] = &[
    "title>output_tokens",
    "cache_read_tokens>output_tokens,cache_write_tokens>cache_read_tokens,reasoning_tokens>cache_write_tokens,billing_provider>reasoning_tokens,billing_base_url>billing_provider,billing_mode>billing_base_url,estimated_cost_usd>billing_mode,actual_cost_usd>estimated_cost_usd,cost_status>actual_cost_usd,cost_source>cost_status,pricing_version>cost_source",
    "api_call_count>title",
    "handoff_pending>api_call_count,handoff_platform>handoff_pending",
    "-handoff_pending,handoff_state>api_call_count,handoff_error>handoff_platform",
    "cwd>reasoning_tokens",
    "rewind_count>handoff_error",
    "archived>rewind_count",
    "git_branch>cwd,git_repo_root>git_branch",
    "session_key>user_id,chat_id>session_key,chat_type>chat_id,thread_id>chat_type",
    "compression_failure_cooldown_until>handoff_error,compression_failure_error>compression_failure_cooldown_until",
    "display_name>thread_id,origin_json>display_name,expiry_finalized>origin_json",
    "compression_fallback_streak>compression_failure_error",
    "profile_name>compression_fallback_streak",
    "compression_ineffective_count>compression_fallback_streak",
    "pinned>archived",
    "last_activity_at>title,last_activity_description>last_activity_at,last_activity_provenance>last_activity_description",
    "-last_activity_at,-last_activity_description,-last_activity_provenance",
    "last_activity_at>title,last_activity_description>last_activity_at,last_activity_provenance>last_activity_description",
    "system_prompt_hash>system_prompt",
    "last_read_at>pinned",
    "title_source>title",
    "hidden>pinned",
    "git_metadata_generation>git_repo_root",
    "compression_recovery_deadline>compression_ineffective_count",
    "tool_names>last_read_at",
    "transport_profile>profile_name",
    "compression_overload_streak>compression_recovery_deadline",
    "created_source>source",
];

const SESSION_DECLS: &[(&str, &str)] = &[
    ("id", "TEXT PRIMARY KEY"),
    ("source", "TEXT NOT NULL"),
    ("created_source", "TEXT"),
    ("user_id", "TEXT"),
    ("session_key", "TEXT"),
    ("chat_id", "TEXT"),
    ("chat_type", "TEXT"),
    ("thread_id", "TEXT"),
    ("display_name", "TEXT"),
    ("origin_json", "TEXT"),
    ("expiry_finalized", "INTEGER DEFAULT 0"),
    ("model", "TEXT"),
    ("model_config", "TEXT"),
    ("system_prompt", "TEXT"),
    ("system_prompt_hash", "TEXT"),
    ("parent_session_id", "TEXT"),
    ("started_at", "REAL NOT NULL"),
    ("ended_at", "REAL"),
    ("end_reason", "TEXT"),
    ("message_count", "INTEGER DEFAULT 0"),
    ("tool_call_count", "INTEGER DEFAULT 0"),
    ("input_tokens", "INTEGER DEFAULT 0"),
    ("output_tokens", "INTEGER DEFAULT 0"),
    ("cache_read_tokens", "INTEGER DEFAULT 0"),
    ("cache_write_tokens", "INTEGER DEFAULT 0"),
    ("reasoning_tokens", "INTEGER DEFAULT 0"),
    ("cwd", "TEXT"),
    ("git_branch", "TEXT"),
    ("git_repo_root", "TEXT"),
    ("git_metadata_generation", "INTEGER NOT NULL DEFAULT 0"),
    ("billing_provider", "TEXT"),
    ("billing_base_url", "TEXT"),
    ("billing_mode", "TEXT"),
    ("estimated_cost_usd", "REAL"),
    ("actual_cost_usd", "REAL"),
    ("cost_status", "TEXT"),
    ("cost_source", "TEXT"),
    ("pricing_version", "TEXT"),
    ("title", "TEXT"),
    ("title_source", "TEXT"),
    ("last_activity_at", "REAL"),
    ("last_activity_description", "TEXT"),
    ("last_activity_provenance", "TEXT"),
    ("api_call_count", "INTEGER DEFAULT 0"),
    ("handoff_pending", "INTEGER DEFAULT 0"),
    ("handoff_state", "TEXT"),
    ("handoff_platform", "TEXT"),
    ("handoff_error", "TEXT"),
    ("compression_failure_cooldown_until", "REAL"),
    ("compression_failure_error", "TEXT"),
    ("compression_fallback_streak", "INTEGER NOT NULL DEFAULT 0"),
    ("compression_ineffective_count", "INTEGER NOT NULL DEFAULT 0"),
    ("compression_recovery_deadline", "REAL"),
    ("compression_overload_streak", "INTEGER NOT NULL DEFAULT 0"),
    ("profile_name", "TEXT"),
    ("transport_profile", "TEXT"),
    ("rewind_count", "INTEGER NOT NULL DEFAULT 0"),
    ("archived", "INTEGER NOT NULL DEFAULT 0"),
    ("pinned", "INTEGER NOT NULL DEFAULT 0"),
    ("hidden", "INTEGER NOT NULL DEFAULT 0"),
    ("last_read_at", "REAL"),
    ("tool_names", "TEXT"),
];

const MESSAGES: &str = "id session_id role content tool_call_id tool_calls tool_name timestamp token_count";

const MESSAGE_EVENTS: &[&str] = &[
    "finish_reason>token_count",
    "reasoning>finish_reason,reasoning_details>reasoning,codex_reasoning_items>reasoning_details",
    "reasoning_content>reasoning",
    "codex_message_items>codex_reasoning_items",
    "platform_message_id>codex_message_items",
    "observed>platform_message_id",
    "active>observed",
    "anthropic_content_blocks>active",
    "-anthropic_content_blocks",
    "compacted>active",
    "effect_disposition>tool_name",
    "api_content>compacted",
    "display_kind>api_content,display_metadata>display_kind",
    "_compressed_summary>observed",
    "display_identity>display_metadata,display_order>display_identity",
    "message_uid>display_order,absorbed_message_uids>message_uid,tool_call_uids>absorbed_message_uids,tool_call_uid>tool_call_uids",
];

const MESSAGE_DECLS: &[(&str, &str)] = &[
    ("id", "INTEGER PRIMARY KEY AUTOINCREMENT"),
    ("session_id", "TEXT NOT NULL"),
    ("role", "TEXT NOT NULL"),
    ("content", "TEXT"),
    ("tool_call_id", "TEXT"),
    ("tool_calls", "TEXT"),
    ("tool_name", "TEXT"),
    ("effect_disposition", "TEXT"),
    ("timestamp", "REAL NOT NULL"),
    ("token_count", "INTEGER"),
    ("finish_reason", "TEXT"),
    ("reasoning", "TEXT"),
    ("reasoning_content", "TEXT"),
    ("reasoning_details", "TEXT"),
    ("codex_reasoning_items", "TEXT"),
    ("codex_message_items", "TEXT"),
    ("platform_message_id", "TEXT"),
    ("observed", "INTEGER DEFAULT 0"),
    ("_compressed_summary", "INTEGER NOT NULL DEFAULT 0"),
    ("active", "INTEGER NOT NULL DEFAULT 1"),
    ("anthropic_content_blocks", "TEXT"),
    ("compacted", "INTEGER NOT NULL DEFAULT 0"),
    ("api_content", "TEXT"),
    ("display_kind", "TEXT"),
    ("display_metadata", "TEXT"),
    ("display_identity", "BLOB"),
    ("display_order", "INTEGER"),
    ("message_uid", ""),
    ("absorbed_message_uids", ""),
    ("tool_call_uids", ""),
    ("tool_call_uid", ""),
];

const USAGE: &str = "session_id model billing_provider billing_base_url api_call_count input_tokens output_tokens cache_read_tokens cache_write_tokens reasoning_tokens estimated_cost_usd first_seen last_seen";

const USAGE_EVENTS: &[&str] = &[
    "billing_mode>billing_base_url,actual_cost_usd>estimated_cost_usd,cost_status>actual_cost_usd,cost_source>cost_status",
    "task>billing_mode",
];

const USAGE_DECLS: &[(&str, &str)] = &[
    ("session_id", "TEXT NOT NULL"),
    ("model", "TEXT NOT NULL"),
    ("billing_provider", "TEXT NOT NULL DEFAULT ''"),
    ("billing_base_url", "TEXT NOT NULL DEFAULT ''"),
    ("billing_mode", "TEXT NOT NULL DEFAULT ''"),
    ("task", "TEXT NOT NULL DEFAULT ''"),
    ("api_call_count", "INTEGER NOT NULL DEFAULT 0"),
    ("input_tokens", "INTEGER NOT NULL DEFAULT 0"),
    ("output_tokens", "INTEGER NOT NULL DEFAULT 0"),
    ("cache_read_tokens", "INTEGER NOT NULL DEFAULT 0"),
    ("cache_write_tokens", "INTEGER NOT NULL DEFAULT 0"),
    ("reasoning_tokens", "INTEGER NOT NULL DEFAULT 0"),
    ("estimated_cost_usd", "REAL NOT NULL DEFAULT 0"),
    ("actual_cost_usd", "REAL NOT NULL DEFAULT 0"),
    ("cost_status", "TEXT"),
    ("cost_source", "TEXT"),
    ("first_seen", "REAL"),
    ("last_seen", "REAL"),
];

/// The other tables that hold a person's data.
pub(super) const OTHERS: &str = "\
CREATE TABLE schema_version (version INTEGER NOT NULL);
CREATE TABLE system_prompts (hash TEXT PRIMARY KEY, prompt TEXT NOT NULL);
CREATE TABLE state_meta (key TEXT PRIMARY KEY, value TEXT);
CREATE TABLE gateway_routing (scope TEXT NOT NULL DEFAULT '', session_key TEXT NOT NULL, entry_json TEXT NOT NULL, updated_at REAL NOT NULL, PRIMARY KEY(scope, session_key));
";

/// Indexes of the newest schema: table, columns that must be known, text.
pub(super) const INDEXES: [(&str, &[&str], &str); 5] = [
    ("sessions", &["source"], "CREATE INDEX idx_sessions_source ON sessions(source)"),
    ("sessions", &["parent_session_id"], "CREATE INDEX idx_sessions_parent ON sessions(parent_session_id)"),
    ("sessions", &["started_at"], "CREATE INDEX idx_sessions_started ON sessions(started_at DESC)"),
    ("messages", &["session_id", "timestamp"], "CREATE INDEX idx_messages_session ON messages(session_id, timestamp)"),
    ("sessions", &["title"], "CREATE UNIQUE INDEX idx_sessions_title_unique ON sessions(title) WHERE title IS NOT NULL"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_history_ends_in_the_declared_columns_and_passes_through_the_known_widths() {
        let [sessions, messages, usage] = all();
        let widths = |h: &History| h.versions().iter().map(Vec::len).collect::<Vec<_>>();
        let declared = "id source created_source user_id session_key chat_id chat_type thread_id display_name origin_json expiry_finalized model model_config system_prompt system_prompt_hash parent_session_id started_at ended_at end_reason message_count tool_call_count input_tokens output_tokens cache_read_tokens cache_write_tokens reasoning_tokens cwd git_branch git_repo_root git_metadata_generation billing_provider billing_base_url billing_mode estimated_cost_usd actual_cost_usd cost_status cost_source pricing_version title title_source last_activity_at last_activity_description last_activity_provenance api_call_count handoff_state handoff_platform handoff_error compression_failure_cooldown_until compression_failure_error compression_fallback_streak compression_ineffective_count compression_recovery_deadline compression_overload_streak profile_name transport_profile rewind_count archived pinned hidden last_read_at tool_names";
        let names: Vec<&str> = sessions.newest().into_iter().flatten().map(|c| c.name).collect();
        assert_eq!(names.join(" "), declared);
        assert_eq!(
            widths(&sessions),
            [14, 15, 26, 27, 29, 30, 31, 32, 33, 35, 39, 41, 44, 45, 46, 47, 48, 51, 48, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61]
        );
        assert_eq!(widths(&messages), [9, 10, 13, 14, 15, 16, 17, 18, 19, 18, 19, 20, 21, 23, 24, 26, 30]);
        assert_eq!(widths(&usage), [13, 17, 18]);
    }
}
