//! What the application needs and the rows do not have: a session for each message, a time for each session, references that
//! lead somewhere, titles that stand once, no marker of a rebuild that is done.

use std::collections::{BTreeMap, BTreeSet};

use super::ledger::Recovered;
use crate::error::Result;
use crate::hermes::amend::{Changes, TableChange};
use crate::hermes::cells::{self, Epoch};
use crate::hermes::facts::REBUILD_MARKERS;
use crate::hermes::store::{Columns, Record, Store};
use crate::hermes::transcript::Transcript;
use crate::survey::plan::Constant;

/// The copy and what is to change in it.
pub(super) struct State {
    /// Columns of `sessions`.
    pub(super) sessions: Columns,
    /// Columns of `messages`.
    pub(super) messages: Columns,
    /// Session ids in the copy and those that are added.
    pub(super) known: BTreeSet<Vec<u8>>,
    titles: BTreeSet<Vec<u8>>,
    prompts: BTreeSet<Vec<u8>>,
    next_session: i64,
    /// The highest message id of the copy and of all that is added.
    pub(super) last_message: i64,
    sequence: Option<(i64, i64)>,
    /// What is known of sessions whose row is lost: from indexes.
    pub(super) gone: BTreeMap<Vec<u8>, Record>,
    session_change: TableChange,
    message_change: TableChange,
    meta_change: TableChange,
}

pub(super) fn bytes_of(value: &Constant) -> Vec<u8> {
    match value {
        Constant::Text(t) | Constant::Blob(t) => t.clone(),
        other => cells::text(other).unwrap_or_default().into_bytes(),
    }
}

fn set(columns: &Columns, values: &mut [Constant], name: &str, value: Constant) {
    if let Some(cell) = columns.at(name).and_then(|i| values.get_mut(i)) {
        *cell = value;
    }
}

fn text(s: &str) -> Constant {
    Constant::Text(s.as_bytes().to_vec())
}

impl State {
    pub(super) fn new(copy: &Store<'_>) -> Result<State> {
        let (sessions, messages) = (copy.columns("sessions"), copy.columns("messages"));
        let mut state = State {
            known: BTreeSet::new(),
            titles: BTreeSet::new(),
            prompts: BTreeSet::new(),
            next_session: 1,
            last_message: 0,
            sequence: None,
            gone: BTreeMap::new(),
            session_change: TableChange::default(),
            message_change: TableChange::default(),
            meta_change: TableChange::default(),
            sessions,
            messages,
        };
        let (id, title) = (state.sessions.at("id"), state.sessions.at("title"));
        copy.each("sessions", |seen| {
            state.next_session = state.next_session.max(seen.rowid.unwrap_or(0).saturating_add(1));
            state.known.insert(bytes_of(&seen.owned(id)));
            let title = seen.owned(title);
            if title != Constant::Null {
                state.titles.insert(bytes_of(&title));
            }
            Ok(())
        })?;
        copy.each("messages", |seen| {
            state.last_message = state.last_message.max(seen.rowid.unwrap_or(0));
            Ok(())
        })?;
        let hash = copy.columns("system_prompts").at("hash");
        copy.each("system_prompts", |seen| {
            state.prompts.insert(bytes_of(&seen.owned(hash)));
            Ok(())
        })?;
        let columns = copy.columns("sqlite_sequence");
        let (name, seq) = (columns.at("name"), columns.at("seq"));
        copy.each("sqlite_sequence", |seen| {
            if seen.owned(name) == text("messages") {
                state.sequence = seen.rowid.zip(cells::int(&seen.owned(seq)));
            }
            Ok(())
        })?;
        Ok(state)
    }

    /// Adds a session; a title that stands already is lost, never the session.
    pub(super) fn add_session(&mut self, mut values: Vec<Constant>, done: &mut Recovered) {
        let id = self.sessions.at("id").and_then(|i| values.get(i)).map(bytes_of).unwrap_or_default();
        if id.is_empty() || !self.known.insert(id.clone()) {
            return;
        }
        let title = self.sessions.at("title").and_then(|i| values.get(i)).cloned().unwrap_or_default();
        if title != Constant::Null && !self.titles.insert(bytes_of(&title)) {
            set(&self.sessions, &mut values, "title", Constant::Null);
            done.repair("title-stood-twice", &lossy(&id), &lossy(&bytes_of(&title)));
        }
        let rowid = self.next_session;
        self.next_session = rowid.saturating_add(1);
        self.session_change.rows.insert(rowid, values);
    }

    /// A session with nothing but its id, source and start; other columns at their defaults.
    pub(super) fn bare_session(&self, copy: &Store<'_>, id: &[u8], source: Constant, started_at: Option<f64>) -> Vec<Constant> {
        let mut values = copy.defaults("sessions");
        values.resize(self.sessions.names.len(), Constant::Null);
        set(&self.sessions, &mut values, "id", Constant::Text(id.to_vec()));
        set(&self.sessions, &mut values, "source", source);
        set(&self.sessions, &mut values, "started_at", started_at.map_or(Constant::Null, Constant::Real));
        values
    }

    /// Adds a message under its own id where it is free, else under a new one. Returns the id.
    pub(super) fn add_message(&mut self, id: Option<i64>, values: Vec<Constant>) -> i64 {
        let id = id.unwrap_or_else(|| self.last_message.saturating_add(1));
        self.last_message = self.last_message.max(id);
        self.message_change.rows.insert(id, values);
        id
    }

    /// Whether a message is added under this id.
    pub(super) fn adds(&self, id: i64) -> bool {
        self.message_change.rows.contains_key(&id)
    }

    /// The latest time of the messages that are added, by session: nothing of the copy is in it.
    fn added_times(&self) -> BTreeMap<Vec<u8>, f64> {
        let (session, time) = (self.messages.at("session_id"), self.messages.at("timestamp"));
        let mut out: BTreeMap<Vec<u8>, f64> = BTreeMap::new();
        for values in self.message_change.rows.values() {
            let get = |i: Option<usize>| i.and_then(|i| values.get(i)).cloned().unwrap_or_default();
            let id = bytes_of(&get(session));
            if let Some(at) = Epoch::of(&get(time)).seconds() {
                out.entry(id).and_modify(|t| *t = t.min(at)).or_insert(at);
            }
        }
        out
    }

    /// The changes, by table.
    pub(super) fn changes(mut self, copy: &Store<'_>) -> Changes {
        let mut out = Changes::new();
        if let Some((rowid, seq)) = self.sequence.filter(|(_, seq)| *seq < self.last_message && copy.has("sqlite_sequence")) {
            let _ = seq;
            let mut change = TableChange::default();
            change.rows.insert(rowid, vec![text("messages"), Constant::Int(self.last_message)]);
            out.insert("sqlite_sequence".to_owned(), change);
        }
        out.insert("sessions".to_owned(), std::mem::take(&mut self.session_change));
        out.insert("messages".to_owned(), std::mem::take(&mut self.message_change));
        out.insert("state_meta".to_owned(), std::mem::take(&mut self.meta_change));
        out
    }
}

pub(super) fn lossy(b: &[u8]) -> String {
    String::from_utf8_lossy(b).into_owned()
}

/// The moment that a session id of the form `YYYYMMDD_HHMMSS_…` says, taken as UTC.
fn moment_of_id(id: &[u8]) -> Option<f64> {
    let digits = |from: usize, to: usize| -> Option<i64> {
        let part = id.get(from..to)?;
        part.iter().all(u8::is_ascii_digit).then(|| std::str::from_utf8(part).ok()?.parse().ok())?
    };
    if id.get(8) != Some(&b'_') || id.get(15) != Some(&b'_') {
        return None;
    }
    let (year, month, day) = (digits(0, 4)?, digits(4, 6)?, digits(6, 8)?);
    let (hour, minute, second) = (digits(9, 11)?, digits(11, 13)?, digits(13, 15)?);
    if !(2020..2100).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let seconds = cells::days(year, month, day)
        .checked_mul(86_400)?
        .checked_add(hour.checked_mul(3600)?)?
        .checked_add(minute.checked_mul(60)?)?
        .checked_add(second)?;
    Some(crate::survey::plan::real_of(seconds))
}

/// Looks at every session of the copy and at every message's session.
pub(super) fn application(copy: &Store<'_>, state: &mut State, done: &mut Recovered) -> Result<()> {
    let added = state.added_times();
    let mut t = Transcript::new(copy)?;
    let (columns, mut placeholders) = (state.sessions.clone(), 0_u64);
    let mut null_active = 0_u64;
    let (mut timed, mut times, mut started, mut starts) = (0_u64, 0_u64, 0_u64, 0_u64);
    let active = state.messages.at("active");
    while let Some(session) = t.session()? {
        let mut first = added.get(&session.id).copied();
        let mut messages = 0_u64;
        while let Some(m) = t.message()? {
            messages = messages.saturating_add(1);
            times = times.saturating_add(1);
            if let Some(at) = m.outline.at {
                timed = timed.saturating_add(u64::from(at >= 1e9));
                first = Some(first.map_or(at, |f| f.min(at)));
            }
        }
        let Some(row) = session.row else {
            if state.known.contains(&session.id) {
                continue;
            }
            placeholders = placeholders.saturating_add(1);
            place(copy, state, &session.id, first, placeholders, messages, done);
            continue;
        };
        starts = starts.saturating_add(1);
        let start = Epoch::of(row.get(&columns, "started_at"));
        started = started.saturating_add(u64::from(start.seconds().is_some_and(|s| s >= 1e9)));
        let mut values = row.values.clone();
        let before = values.clone();
        if start.seconds().is_none() {
            begin(&columns, &mut values, &session.id, first, row.get(&columns, "started_at"), done);
        }
        refer(state, &columns, &mut values, &session.id, done);
        if values != before
            && let Some(rowid) = row.rowid
        {
            state.session_change.rows.insert(rowid, values);
        }
    }
    // Sessions whose row is lost and that have no message either.
    let lost: Vec<(Vec<u8>, Record)> = state.gone.iter().map(|(id, r)| (id.clone(), r.clone())).collect();
    for (id, _) in lost {
        if !state.known.contains(&id) {
            placeholders = placeholders.saturating_add(1);
            place(copy, state, &id, added.get(&id).copied(), placeholders, 0, done);
        }
    }
    // Sessions that messages name which were added.
    for (id, at) in &added {
        if !state.known.contains(id) {
            placeholders = placeholders.saturating_add(1);
            place(copy, state, id, Some(*at), placeholders, 0, done);
        }
    }
    added_references(state, &columns, done);
    copy.each("messages", |seen| {
        null_active = null_active.saturating_add(u64::from(active.is_some() && seen.value(active).is_null()));
        Ok(())
    })?;
    if null_active > 0 {
        state.message_change.fill.insert("active".to_owned(), Constant::Int(1));
        done.repair("active-was-null", &format!("{null_active} messages"), "NULL");
    }
    done.verified = !(done.schema == "inferred" && ((starts > 0 && started == 0) || (times > 0 && timed == 0)));
    Ok(())
}

/// A session for messages that have none.
fn place(copy: &Store<'_>, state: &mut State, id: &[u8], first: Option<f64>, number: u64, messages: u64, done: &mut Recovered) {
    let gone = state.gone.get(id).cloned();
    let get = |name: &str| gone.as_ref().map_or(Constant::Null, |r| r.get(&state.sessions, name).clone());
    let source = match get("source") {
        Constant::Null => text("recovered"),
        other => other,
    };
    let start = Epoch::of(&get("started_at")).seconds().or(first).or_else(|| moment_of_id(id));
    let mut values = state.bare_session(copy, id, source, start);
    if let Some(gone) = &gone {
        // Whatever an index still gives of the row.
        for (name, value) in state.sessions.names.iter().zip(&gone.values) {
            if *value != Constant::Null && name != "started_at" {
                set(&state.sessions, &mut values, name, value.clone());
            }
        }
    }
    let title = state.sessions.at("title").and_then(|i| values.get(i)).cloned().unwrap_or_default();
    if title == Constant::Null {
        set(&state.sessions, &mut values, "title", text(&format!("[recovered {number}] session metadata was unreadable")));
    }
    if state.sessions.at("message_count").is_some() && messages > 0 {
        set(&state.sessions, &mut values, "message_count", Constant::Int(i64::try_from(messages).unwrap_or(i64::MAX)));
    }
    let known = gone.map_or_else(String::new, |_| "what an index had of its row was kept".to_owned());
    done.repair("placeholder-session", &lossy(id), &known);
    state.add_session(values, done);
}

/// A start for a session that has none.
fn begin(columns: &Columns, values: &mut [Constant], id: &[u8], first: Option<f64>, was: &Constant, done: &mut Recovered) {
    let active = columns.at("last_activity_at").and_then(|i| values.get(i)).map(Epoch::of).and_then(Epoch::seconds);
    let (start, from) = match (first, active.or_else(|| moment_of_id(id))) {
        (Some(at), _) => (Some(at), "started-at-of-first-message"),
        (None, at) => (at, "started-at-of-activity-or-id"),
    };
    let was = cells::text(was).map_or_else(|| "NULL".to_owned(), |t| cells::one_line(&t, 60));
    match start {
        Some(at) => {
            set(columns, values, "started_at", Constant::Real(at));
            done.repair(from, &lossy(id), &was);
        }
        None => done.repair("started-at-unknown", &lossy(id), &was),
    }
}

/// References that lead nowhere, and JSON that the application's search view cannot read.
fn refer(state: &State, columns: &Columns, values: &mut [Constant], id: &[u8], done: &mut Recovered) {
    let get = |values: &[Constant], name: &str| columns.at(name).and_then(|i| values.get(i)).cloned().unwrap_or_default();
    let parent = get(values, "parent_session_id");
    if parent != Constant::Null && !state.known.contains(&bytes_of(&parent)) && !state.gone.contains_key(&bytes_of(&parent)) {
        set(columns, values, "parent_session_id", Constant::Null);
        done.repair("parent-is-gone", &lossy(id), &lossy(&bytes_of(&parent)));
    }
    let hash = get(values, "system_prompt_hash");
    if hash != Constant::Null && !state.prompts.contains(&bytes_of(&hash)) {
        set(columns, values, "system_prompt_hash", Constant::Null);
        done.repair("prompt-is-gone", &lossy(id), &lossy(&bytes_of(&hash)));
    }
    let config = get(values, "model_config");
    if config != Constant::Null && config != Constant::Text(Vec::new()) && cells::decoded(&config).is_none() {
        set(columns, values, "model_config", text("{}"));
        done.repair("model-config-is-no-json", &lossy(id), &lossy(&bytes_of(&config)));
    }
}

/// The same for sessions that are added: their parents may come later than they do.
fn added_references(state: &mut State, columns: &Columns, done: &mut Recovered) {
    let mut rows = std::mem::take(&mut state.session_change.rows);
    for values in rows.values_mut() {
        let id = columns.at("id").and_then(|i| values.get(i)).map(bytes_of).unwrap_or_default();
        refer(state, columns, values, &id, done);
        if columns.at("started_at").and_then(|i| values.get(i)).map(Epoch::of).and_then(Epoch::seconds).is_none() {
            let was = columns.at("started_at").and_then(|i| values.get(i)).cloned().unwrap_or_default();
            begin(columns, values, &id, None, &was, done);
        }
    }
    state.session_change.rows = rows;
}

/// After a full rebuild of the search index its markers would make the application index twice.
pub(super) fn markers(
    copy: &Store<'_>,
    meta: &BTreeMap<String, String>,
    damaged: bool,
    state: &mut State,
    done: &mut Recovered,
) -> Result<()> {
    let set: Vec<&str> = REBUILD_MARKERS.into_iter().filter(|k| meta.contains_key(*k)).collect();
    let rebuilt = damaged || !state.message_change.is_empty();
    if set.is_empty() || !rebuilt {
        return Ok(());
    }
    // The table with a tokenizer of its own is never rebuilt here: its markers stay.
    let cleared: Vec<&str> = set.into_iter().filter(|k| !k.starts_with("fts_cjk")).collect();
    let columns = copy.columns("state_meta");
    let key = columns.at("key");
    copy.each("state_meta", |seen| {
        if let (Some(rowid), Some(k)) = (seen.rowid, cells::text(&seen.owned(key)))
            && cleared.contains(&k.as_str())
        {
            state.meta_change.drop.insert(rowid);
            done.repair("rebuild-marker-cleared", &k, meta.get(&k).map_or("", String::as_str));
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_says_its_moment() {
        assert_eq!(moment_of_id(b"20260928_142309_ab12cd"), Some(1_790_605_389.0));
        for other in [&b"cron_a_20260928_142309"[..], b"20261328_142309_x", b"2026", b"bg_032237_0e4ce7"] {
            assert_eq!(moment_of_id(other), None);
        }
    }
}
