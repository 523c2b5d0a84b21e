//! What a store says of itself: schema version, layout of its search indexes, a rebuild that is under way, its generation stamp.

use std::collections::BTreeMap;

use serde::Serialize;

use super::cells;
use super::store::Store;
use crate::error::Result;

/// The number of the format of all `--json` outputs of this profile.
pub const FORMAT: u32 = 1;

/// The newest schema version that is known here.
pub(crate) const NEWEST: i64 = 30;

/// Values of `state_meta` that are kept.
const KEYS: usize = 10_000;

/// Keys of `state_meta` that say a rebuild of a search index is under way or wanted.
pub(crate) const REBUILD_MARKERS: [&str; 7] = [
    "fts_stale",
    "fts_rebuild_high_water",
    "fts_rebuild_progress",
    "fts_rebuild_deferral",
    "fts_cjk_stale",
    "fts_cjk_rebuild_high_water",
    "fts_cjk_rebuild_progress",
];

/// What a store says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Facts {
    /// The number in `schema_version`.
    pub schema_version: Option<i64>,
    /// How its search indexes are laid out, in words.
    pub search_layout: String,
    /// Whether the generation stamp of `state_meta` is the one in the header; `None`: one of both is not there.
    pub generation_fits: Option<bool>,
    /// Rebuild markers that are set.
    pub rebuild_markers: BTreeMap<String, String>,
    /// What is worth a word and is no damage.
    pub notes: Vec<String>,
}

/// Reads the facts.
///
/// # Errors
/// Cancellation.
pub(crate) fn read(store: &Store<'_>) -> Result<Facts> {
    let mut facts = Facts::default();
    let meta = meta(store)?;
    let version = store.columns("schema_version").at("version");
    store.each("schema_version", |seen| {
        facts.schema_version = facts.schema_version.max(cells::int(&seen.owned(version)));
        Ok(())
    })?;
    let sql = store.sql("messages_fts").unwrap_or_default().to_ascii_lowercase();
    facts.search_layout = match meta.get("fts_storage_version").map(String::as_str) {
        Some("3") => "external content over a view (storage version 3)",
        Some("2") => "external content, trigram without tool calls (storage version 2)",
        Some("1") => "external content (storage version 1)",
        Some(_) => "a storage version that is not known here",
        None if sql.is_empty() => "no search index is declared",
        None if sql.contains("content=") && !sql.contains("tool_name") => "external content of one column (before v11)",
        None if sql.contains("content=") => "external content, without its version",
        None => "inline, with a full copy of every message (v11 to v22)",
    }
    .to_owned();
    for key in REBUILD_MARKERS {
        if let Some(value) = meta.get(key) {
            facts.rebuild_markers.insert(key.to_owned(), cells::one_line(value, 80));
        }
    }
    let mut note = |text: String| facts.notes.push(text);
    match facts.schema_version {
        Some(v) if v > NEWEST => note(format!("schema version {v} is newer than {NEWEST}, the newest known here")),
        Some(v) if v < NEWEST => note(format!("schema version {v}: the application migrates it to its own when it opens the store")),
        _ => {}
    }
    if let (Some(high), Some(done)) = (meta.get("fts_rebuild_high_water"), meta.get("fts_rebuild_progress")) {
        let (high, done) = (cells::one_line(high, 20), cells::one_line(done, 20));
        note(format!(
            "a rebuild of the search index is under way: up to message {done} of {high}; the application goes on with it, this is no damage"
        ));
    }
    let trash: Vec<String> = store.names().filter(|n| n.starts_with("fts_v22_trash_")).collect();
    if !trash.is_empty() {
        note(format!("{} tables fts_v22_trash_* wait to be removed by the application", trash.len()));
    }
    for left in ["gateway_routing_legacy_pk", "session_model_usage_legacy_pk", "session_model_usage_v21"] {
        if store.has(left) {
            note(format!("table {left} is left of a migration that did not end"));
        }
    }
    let orphans = store.orphan_shadows();
    if !orphans.is_empty() {
        note(format!(
            "{} shadow tables have no search index that declares them, as after .recover: {}",
            orphans.len(),
            cells::one_line(&orphans.join(", "), 300)
        ));
    }
    if let Some(active) = store.sql("messages").filter(|sql| null_active(sql)) {
        let _ = active;
        note("messages.active was added without its default: messages in which it is NULL do not show in the application".to_owned());
    }
    if let Some(stamp) = meta.get("db_file_generation") {
        let head = stamp.get(..8).and_then(|h| u32::from_str_radix(h, 16).ok());
        let want = head.map(|n| (n & 0x7fff_ffff).max(1));
        let id = store.application_id();
        facts.generation_fits = want.filter(|_| id != 0).map(|want| want == id);
        if facts.generation_fits == Some(false) {
            facts
                .notes
                .push("the generation stamp of state_meta is not that of the header: page 1 or its tables are of another file".to_owned());
        }
    }
    Ok(facts)
}

/// Whether the declaration of `active` lacks its default.
fn null_active(sql: &str) -> bool {
    let lower = sql.to_ascii_lowercase();
    lower.split(',').map(str::trim).any(|c| c.trim_matches('"').starts_with("active") && !c.contains("default"))
}

/// The values of `state_meta`.
///
/// # Errors
/// Cancellation.
pub(crate) fn meta(store: &Store<'_>) -> Result<BTreeMap<String, String>> {
    let mut meta = BTreeMap::new();
    let columns = store.columns("state_meta");
    let (key, value) = (columns.at("key"), columns.at("value"));
    store.each("state_meta", |seen| {
        if meta.len() < KEYS
            && let (Some(k), Some(v)) = (cells::text(&seen.owned(key)), cells::text(&seen.owned(value)))
        {
            meta.entry(k).or_insert(v);
        }
        Ok(())
    })?;
    Ok(meta)
}
