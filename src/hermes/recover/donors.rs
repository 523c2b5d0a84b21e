//! What other places hold of the store: indexes and search indexes of lost rows, commits of the log that SQLite does not read,
//! logs that the application retired, its text fallbacks.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::ledger::Recovered;
use super::repairs::{State, bytes_of, lossy};
use crate::error::Result;
use crate::hermes::cells::{self, Epoch};
use crate::hermes::fallback::Fallback;
use crate::hermes::store::{Columns, Label, Record, Store};
use crate::hermes::transcript::lost_messages;
use crate::report::model::Class;
use crate::survey::plan::{Constant, real_of};
use crate::verbs::Inputs;

/// Messages of other places that are taken together; further ones stay where they are, and the ledger says so.
const MESSAGES: usize = 1_000_000;

/// A record in the columns of the copy.
fn fitted(record: &Record, from: &Columns, to: &Columns, base: Vec<Constant>) -> Vec<Constant> {
    let mut values = base;
    values.resize(to.names.len(), Constant::Null);
    for (name, cell) in to.names.iter().zip(&mut values) {
        if let Some(value) = from.at(name).and_then(|i| record.values.get(i)).filter(|v| **v != Constant::Null) {
            *cell = value.clone();
        }
    }
    values
}

/// Which ids of messages the copy has, of those that are asked for.
fn present(copy_ids: &BTreeSet<i64>, id: i64) -> bool {
    copy_ids.contains(&id)
}

/// Ids of the copy that also stand in `wanted`.
fn among(store: &Store<'_>, wanted: &BTreeSet<i64>) -> Result<BTreeSet<i64>> {
    let mut out = BTreeSet::new();
    store.each("messages", |seen| {
        out.extend(seen.rowid.filter(|r| wanted.contains(r)));
        Ok(())
    })?;
    Ok(out)
}

/// Takes what the evidence itself holds beyond the copy.
pub(super) fn evidence(store: &Store<'_>, state: &mut State, done: &mut Recovered) -> Result<()> {
    done.search_was_damaged = store.report.findings.iter().any(|g| g.class == Class::SearchIndexOnly);
    let (from_sessions, from_messages) = (store.columns("sessions"), store.columns("messages"));
    for record in store.gone("sessions").into_values() {
        let id = bytes_of(record.get(&from_sessions, "id"));
        let values = fitted(&record, &from_sessions, &state.sessions, Vec::new());
        if !id.is_empty() && !state.known.contains(&id) {
            state.gone.insert(id, Record { values, ..record });
        }
    }
    let mut sessions: Vec<Record> = Vec::new();
    store.each("sessions", |seen| {
        if matches!(seen.label, Label::Breaker | Label::HiddenCommit) {
            sessions.push(seen.record());
        }
        Ok(())
    })?;
    let mut fresh: BTreeSet<Vec<u8>> = BTreeSet::new();
    for record in sessions {
        let id = bytes_of(record.get(&from_sessions, "id"));
        if id.is_empty() || state.known.contains(&id) {
            continue;
        }
        let word = if record.label == Label::Breaker { "session-broke-its-declaration" } else { "session-of-hidden-commit" };
        done.repair(word, &lossy(&id), "");
        let values = fitted(&record, &from_sessions, &state.sessions, store.defaults("sessions"));
        state.add_session(values, done);
        fresh.insert(id);
    }
    let mut hidden: Vec<Record> = Vec::new();
    let mut ids: BTreeSet<i64> = BTreeSet::new();
    let mut live: BTreeSet<i64> = BTreeSet::new();
    store.each("messages", |seen| {
        if seen.label == Label::HiddenCommit && hidden.len() < MESSAGES {
            ids.extend(seen.rowid);
            hidden.push(seen.record());
        }
        Ok(())
    })?;
    if !ids.is_empty() {
        store.each("messages", |seen| {
            if matches!(seen.label, Label::Live | Label::Adopted) {
                live.extend(seen.rowid.filter(|r| ids.contains(r)));
            }
            Ok(())
        })?;
    }
    for record in hidden {
        merge(&record, &from_messages, store, &live, &fresh, "message-of-hidden-commit", state, done);
    }
    lost(store, &from_messages, state, done)
}

/// Takes a message of another state: under its own id where that is free; under a new one only where its session is new, too.
fn merge(
    record: &Record,
    from: &Columns,
    store: &Store<'_>,
    live: &BTreeSet<i64>,
    fresh: &BTreeSet<Vec<u8>>,
    word: &str,
    state: &mut State,
    done: &mut Recovered,
) {
    let Some(id) = record.rowid else { return };
    let session = bytes_of(record.get(from, "session_id"));
    let taken = present(live, id) || state.adds(id);
    if taken && !fresh.contains(&session) {
        return;
    }
    let values = fitted(record, from, &state.messages, store.defaults("messages"));
    let id = state.add_message((!taken).then_some(id), values);
    done.repair(word, &format!("message {id}"), &lossy(&session));
}

/// Messages whose row is lost and of which an index knows session and time, with the text that search indexes have.
fn lost(store: &Store<'_>, from: &Columns, state: &mut State, done: &mut Recovered) -> Result<()> {
    let found = lost_messages(store, from)?;
    let wanted: BTreeSet<i64> = found.keys().copied().collect();
    let here = among(store, &wanted)?;
    for (id, record) in found.into_iter().filter(|(id, _)| !here.contains(id)) {
        let with_text = matches!(record.label, Label::SearchContent | Label::SearchText);
        done.lost_messages = done.lost_messages.saturating_add(1);
        let session = bytes_of(record.get(from, "session_id"));
        let time = Epoch::of(record.get(from, "timestamp")).seconds();
        let (Some(_), false, true) = (time, session.is_empty(), with_text) else {
            continue;
        };
        if state.adds(id) {
            continue;
        }
        let mut values = fitted(&record, from, &state.messages, store.defaults("messages"));
        let word = if record.label == Label::SearchContent {
            "rootpage: exact copy of a search index"
        } else {
            "rootpage: folded text of a search index"
        };
        let role = role(&record, from);
        for (name, value) in [
            ("role", Constant::Text(role.as_bytes().to_vec())),
            ("finish_reason", Constant::Text(word.as_bytes().to_vec())),
            // History that people see and that no model is sent.
            ("active", Constant::Int(0)),
            ("compacted", Constant::Int(1)),
        ] {
            if let Some(cell) = state.messages.at(name).and_then(|i| values.get_mut(i)) {
                *cell = value;
            }
        }
        // Words of an index are no JSON: the application could not read them as calls.
        if record.label == Label::SearchText
            && let Some(cell) = state.messages.at("tool_calls").and_then(|i| values.get_mut(i))
        {
            *cell = Constant::Null;
        }
        state.add_message(Some(id), values);
        done.texts_back = done.texts_back.saturating_add(1);
        done.repair("text-of-lost-message", &format!("message {id}"), &lossy(&session));
    }
    Ok(())
}

/// The role that the parts of a lost message say; "system" where none does, which no part of the application takes for speech.
fn role(record: &Record, columns: &Columns) -> &'static str {
    let some = |name| matches!(record.get(columns, name), Constant::Text(t) if !t.is_empty());
    if some("tool_calls") {
        "assistant"
    } else if some("tool_name") {
        "tool"
    } else {
        "system"
    }
}

/// Logs that the application retired beside a store: each with the main file of its time, or with the one that is there.
pub(super) fn retired(db: &Path) -> Vec<Inputs> {
    let Some(name) = db.file_name().map(|n| n.to_string_lossy().into_owned()) else { return Vec::new() };
    let folder = db.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut folders: Vec<_> = entries.take(100_000).filter_map(|e| Some(e.ok()?.path())).collect();
    folders.retain(|p| {
        let n = p.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        n.starts_with(&format!("{name}.retired-wal-")) && p.is_dir()
    });
    folders.sort();
    let inputs = folders.into_iter().take(100).filter_map(|f| {
        let (main, wal) = (f.join(&name), f.join(format!("{name}-wal")));
        if !wal.is_file() {
            return None;
        }
        let main = if main.is_file() { main } else { db.to_path_buf() };
        Some(Inputs { wal: vec![wal], no_journal: true, ..Inputs::at_path(&main) })
    });
    inputs.collect()
}

/// Takes sessions that only another state of the store has, with all their messages.
pub(super) fn other_store(donor: &Store<'_>, name: &str, state: &mut State, done: &mut Recovered) -> Result<()> {
    let (from_sessions, from_messages) = (donor.columns("sessions"), donor.columns("messages"));
    let mut fresh: BTreeSet<Vec<u8>> = BTreeSet::new();
    let mut found: Vec<Record> = Vec::new();
    let id = from_sessions.at("id");
    donor.each("sessions", |seen| {
        if !state.known.contains(&bytes_of(&seen.owned(id))) {
            found.push(seen.record());
        }
        Ok(())
    })?;
    for record in found {
        let id = bytes_of(record.get(&from_sessions, "id"));
        if state.known.contains(&id) || id.is_empty() {
            continue;
        }
        done.repair("session-of-retired-log", &lossy(&id), name);
        let values = fitted(&record, &from_sessions, &state.sessions, donor.defaults("sessions"));
        state.add_session(values, done);
        fresh.insert(id);
    }
    if fresh.is_empty() {
        return Ok(());
    }
    let session = from_messages.at("session_id");
    let mut messages: Vec<Record> = Vec::new();
    donor.each("messages", |seen| {
        if messages.len() < MESSAGES && fresh.contains(&bytes_of(&seen.owned(session))) {
            messages.push(seen.record());
        }
        Ok(())
    })?;
    let last = state.last_message;
    for record in messages {
        let Some(id) = record.rowid else { continue };
        let values = fitted(&record, &from_messages, &state.messages, donor.defaults("messages"));
        // Ids beyond those of the copy are free in it; others may be taken by now.
        let own = (id > last && !state.adds(id)).then_some(id);
        let id = state.add_message(own, values);
        done.repair("message-of-retired-log", &format!("message {id}"), name);
    }
    Ok(())
}

/// Takes sessions and messages that only the application's text fallbacks hold.
pub(super) fn fallback(db: &Path, copy: &Store<'_>, state: &mut State, done: &mut Recovered) -> Result<()> {
    let found = Fallback::beside(db);
    if found.files.is_empty() {
        return Ok(());
    }
    if found.passed_over > 0 {
        done.notes.push(format!("{} entries of fallback files are no messages", found.passed_over));
    }
    // Role and text of the messages that sessions of the files have already.
    let named: BTreeSet<Vec<u8>> = found.messages.iter().map(|m| m.session.clone().into_bytes()).collect();
    let mut have: BTreeSet<(Vec<u8>, Vec<u8>, u32)> = BTreeSet::new();
    let at = |name| state.messages.at(name);
    let (session, role, content) = (at("session_id"), at("role"), at("content"));
    copy.each("messages", |seen| {
        let id = bytes_of(&seen.owned(session));
        if named.contains(&id) {
            have.insert((id, bytes_of(&seen.owned(role)), crc32fast::hash(&bytes_of(&seen.owned(content)))));
        }
        Ok(())
    })?;
    let mut starts: BTreeMap<Vec<u8>, (f64, String)> = BTreeMap::new();
    for m in found.messages.iter().take(MESSAGES) {
        let id = m.session.clone().into_bytes();
        let text = |name: &str| m.fields.get(name).map(as_cell).unwrap_or_default();
        let role = text("role");
        if role == Constant::Text(b"session_meta".to_vec()) {
            continue;
        }
        let key = (id.clone(), bytes_of(&role), crc32fast::hash(&bytes_of(&text("content"))));
        if !have.insert(key) {
            continue;
        }
        let time = ["timestamp", "created_at", "time"].iter().map(|n| text(n)).find_map(|v| Epoch::of(&v).seconds());
        let Some(at) = time.or_else(|| starts.get(&id).map(|(at, _)| *at)) else {
            done.notes
                .push(format!("a message of the fallback file of session {} has no time and stays there", cells::one_line(&m.session, 60)));
            continue;
        };
        starts.entry(id.clone()).or_insert_with(|| (at, m.fields.get("source").and_then(|s| s.as_str()).unwrap_or("recovered").to_owned()));
        let mut values = copy.defaults("messages");
        values.resize(state.messages.names.len(), Constant::Null);
        for (name, cell) in state.messages.names.iter().zip(&mut values) {
            match name.as_str() {
                "id" => {}
                "session_id" => *cell = Constant::Text(id.clone()),
                "timestamp" => *cell = Constant::Real(at),
                name => {
                    if let Some(value) = m.fields.get(name).filter(|v| !v.is_null()) {
                        *cell = as_cell(value);
                    }
                }
            }
        }
        let number = state.add_message(None, values);
        done.repair("message-of-fallback-file", &format!("message {number}"), &m.session);
    }
    for (id, (at, source)) in starts {
        if !state.known.contains(&id) {
            done.repair("session-of-fallback-file", &lossy(&id), "");
            let values = state.bare_session(copy, &id, Constant::Text(source.into_bytes()), Some(at));
            state.add_session(values, done);
        }
    }
    Ok(())
}

/// A JSON value as the application stores it: lists and objects as JSON text, as content behind its prefix.
fn as_cell(value: &serde_json::Value) -> Constant {
    use serde_json::Value as Json;
    match value {
        Json::Null => Constant::Null,
        Json::Bool(b) => Constant::Int(i64::from(*b)),
        Json::Number(n) => {
            n.as_i64().map(Constant::Int).or_else(|| n.as_f64().map(Constant::Real)).unwrap_or_else(|| Constant::Real(real_of(0)))
        }
        Json::String(s) => Constant::Text(s.as_bytes().to_vec()),
        other => Constant::Text(other.to_string().into_bytes()),
    }
}
