//! Sessions with their messages, one session at a time, in the order of their ids: two sorts by session id, read side by side.
//!
//! Collects: sessions of all labels; messages of all labels; messages that only indexes and search indexes still have.
//! Leaves:   repairs, for `hermes recover`. Nothing here holds more than one session row and one message in memory.

use std::collections::{BTreeMap, BTreeSet};

use super::cells::{self, Epoch};
use super::store::{Columns, Label, Place, Record, Seen, Store};
use crate::error::Result;
use crate::format::Fields;
use crate::format::record::encode_record;
use crate::ids::{PageNo, wide};
use crate::sort::{Sorted, Sorter};
use crate::survey::plan::Constant;

/// Bytes of a message that the list shows as its preview.
const PREVIEW: usize = 240;

/// The role of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The person.
    User,
    /// Another known one.
    Known,
    /// None of the application's.
    Odd,
}

/// What a list needs of a message, without its texts.
#[derive(Debug, Clone)]
pub(crate) struct Outline {
    /// The time, if it is one.
    pub(crate) at: Option<f64>,
    /// Whether the cell of the time holds something that is none.
    pub(crate) bad_time: bool,
    /// `active`: 1, also where the column is missing or NULL.
    pub(crate) active: bool,
    /// `compacted`.
    pub(crate) compacted: bool,
    /// Who speaks.
    pub(crate) role: Role,
    /// Where it is from.
    pub(crate) label: Label,
    /// The beginning of a user's message.
    pub(crate) preview: String,
}

/// One message.
pub(crate) struct Message {
    /// Its id.
    pub(crate) id: i64,
    /// What a list needs.
    pub(crate) outline: Outline,
    place: Option<Place>,
    record: Option<Vec<u8>>,
}

/// One session: its row, where one is there.
pub(crate) struct Session {
    /// Its id, in UTF-8 as far as the evidence is.
    pub(crate) id: Vec<u8>,
    /// Its row, in the columns of the table; `None`: only messages name it.
    pub(crate) row: Option<Record>,
    /// Further rows under the same id, as labels.
    pub(crate) doubles: Vec<Label>,
}

impl Session {
    /// The id as text.
    pub(crate) fn id_text(&self) -> String {
        String::from_utf8_lossy(&self.id).into_owned()
    }
}

/// The sessions of a store.
pub(crate) struct Transcript<'s, 'e> {
    store: &'s Store<'e>,
    /// Columns of `sessions`.
    pub(crate) session_columns: Columns,
    /// Columns of `messages`.
    pub(crate) message_columns: Columns,
    sessions: Stream,
    messages: Stream,
    /// The key of the session whose messages are read.
    open: Option<Vec<u8>>,
}

/// A sorted stream with its head.
struct Stream {
    sorted: Sorted,
    head: Option<(Vec<u8>, Vec<u8>)>,
}

impl Stream {
    fn new(sorter: Sorter) -> Result<Stream> {
        let mut s = Stream { sorted: sorter.finish()?, head: None };
        s.advance()?;
        Ok(s)
    }

    fn advance(&mut self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        let next = self.sorted.next()?.map(|(k, p)| (k.to_vec(), p.to_vec()));
        Ok(std::mem::replace(&mut self.head, next))
    }

    /// The key of the session that the head belongs to.
    fn session(&self) -> Option<&[u8]> {
        self.head.as_ref().map(|(k, _)| k.get(..k.len().saturating_sub(9)).unwrap_or_default())
    }
}

/// A session id as a key that orders as the id and ends before what follows.
fn key_of(id: &[u8], out: &mut Vec<u8>) {
    out.clear();
    for b in id {
        out.push(*b);
        if *b == 0 {
            out.push(0xff);
        }
    }
    out.extend_from_slice(&[0, 0]);
}

fn id_of(key: &[u8]) -> Vec<u8> {
    let body = key.strip_suffix(&[0, 0]).unwrap_or(key);
    let mut out = Vec::with_capacity(body.len());
    let mut after_zero = false;
    for b in body {
        if !(after_zero && *b == 0xff) {
            out.push(*b);
        }
        after_zero = *b == 0;
    }
    out
}

fn bytes_of(value: &Constant) -> Vec<u8> {
    match value {
        Constant::Text(t) | Constant::Blob(t) => t.clone(),
        other => cells::text(other).unwrap_or_default().into_bytes(),
    }
}

/// The places of the columns of a message that an outline needs.
struct Needed {
    session: Option<usize>,
    time: Option<usize>,
    active: Option<usize>,
    compacted: Option<usize>,
    role: Option<usize>,
    content: Option<usize>,
}

impl Needed {
    fn of(columns: &Columns) -> Needed {
        let at = |n| columns.at(n);
        Needed {
            session: at("session_id"),
            time: at("timestamp"),
            active: at("active"),
            compacted: at("compacted"),
            role: at("role"),
            content: at("content"),
        }
    }

    fn outline(&self, get: &dyn Fn(Option<usize>) -> Constant, label: Label) -> Outline {
        let time = Epoch::of(&get(self.time));
        let role = match cells::text(&get(self.role)).as_deref() {
            Some("user") => Role::User,
            Some("assistant" | "tool" | "system" | "session_meta") => Role::Known,
            _ => Role::Odd,
        };
        let content = if role == Role::User { get(self.content) } else { Constant::Null };
        Outline {
            at: time.seconds(),
            bad_time: time == Epoch::Corrupt,
            active: cells::int(&get(self.active)) != Some(0),
            compacted: cells::int(&get(self.compacted)).is_some_and(|n| n != 0),
            role,
            label,
            preview: preview(&content),
        }
    }
}

/// The beginning of a text, or of the texts of multimodal content.
fn preview(content: &Constant) -> String {
    match content {
        Constant::Text(t) if !t.starts_with(b"\0json:") && !t.starts_with(b"\x01json:") => {
            String::from_utf8_lossy(t.get(..PREVIEW).unwrap_or(t)).into_owned()
        }
        other => {
            let texts = cells::parts(other).into_iter().filter_map(|p| match p {
                cells::Part::Text(t) => Some(t),
                cells::Part::Other(_) => None,
            });
            texts.take(3).collect::<Vec<_>>().join(" ").chars().take(PREVIEW).collect()
        }
    }
}

const EMBEDDED: u8 = 1;

fn pack(outline: &Outline, place: Option<Place>, record: Option<&[u8]>, out: &mut Vec<u8>) {
    out.clear();
    out.push(if record.is_some() { EMBEDDED } else { 0 });
    let place = place.unwrap_or(Place { state: 0, page: PageNo::ONE, cell: 0 });
    out.push(place.state);
    out.extend_from_slice(&place.page.get().to_be_bytes());
    out.extend_from_slice(&place.cell.to_be_bytes());
    out.push(outline.label.number());
    let flags =
        [outline.at.is_some(), outline.bad_time, outline.active, outline.compacted, outline.role == Role::User, outline.role == Role::Odd];
    out.extend(flags.map(u8::from));
    out.extend_from_slice(&outline.at.unwrap_or(0.0).to_bits().to_be_bytes());
    let preview = outline.preview.as_bytes();
    out.extend_from_slice(&u16::try_from(preview.len()).unwrap_or(0).to_be_bytes());
    out.extend_from_slice(preview);
    out.extend_from_slice(record.unwrap_or_default());
}

fn unpack(id: i64, b: &[u8]) -> Option<Message> {
    use crate::bytes::{u16_at, u32_at, u64_at};
    let place = Place { state: *b.get(1)?, page: PageNo::new(u32_at(b, 2)?)?, cell: u16_at(b, 6)? };
    let label = Label::of_number(*b.get(8)?)?;
    let flag = |i: usize| b.get(i.saturating_add(9)) == Some(&1);
    let len = usize::from(u16_at(b, 23)?);
    let end = len.saturating_add(25);
    let outline = Outline {
        at: flag(0).then_some(f64::from_bits(u64_at(b, 15)?)),
        bad_time: flag(1),
        active: flag(2),
        compacted: flag(3),
        role: if flag(4) {
            Role::User
        } else if flag(5) {
            Role::Odd
        } else {
            Role::Known
        },
        label,
        preview: String::from_utf8_lossy(b.get(25..end)?).into_owned(),
    };
    let embedded = *b.first()? == EMBEDDED;
    let record = embedded.then(|| b.get(end..).unwrap_or_default().to_vec());
    Some(Message { id, outline, place: (!embedded).then_some(place), record })
}

impl<'s, 'e> Transcript<'s, 'e> {
    /// Reads the store once and sorts its sessions and messages by session.
    ///
    /// # Errors
    /// Temporary files, cancellation.
    pub(crate) fn new(store: &'s Store<'e>) -> Result<Transcript<'s, 'e>> {
        let (session_columns, message_columns) = (store.columns("sessions"), store.columns("messages"));
        let sessions = Stream::new(sessions(store, &session_columns)?)?;
        let messages = Stream::new(messages(store, &message_columns)?)?;
        Ok(Transcript { store, session_columns, message_columns, sessions, messages, open: None })
    }

    /// The next session, in the order of ids; its messages come from [`Transcript::message`].
    ///
    /// # Errors
    /// Temporary files, cancellation.
    pub(crate) fn session(&mut self) -> Result<Option<Session>> {
        while self.message()?.is_some() {}
        self.store.ctx.check()?;
        let key = match (self.sessions.session(), self.messages.session()) {
            (None, None) => return Ok(None),
            (Some(a), Some(b)) => a.min(b).to_vec(),
            (Some(a), None) | (None, Some(a)) => a.to_vec(),
        };
        let (mut row, mut doubles) = (None, Vec::new());
        while self.sessions.session() == Some(key.as_slice()) {
            let Some((_, payload)) = self.sessions.advance()? else { break };
            let Some(m) = unpack(0, &payload) else { continue };
            if row.is_some() {
                doubles.push(m.outline.label);
                continue;
            }
            row = self.load("sessions", &m, &self.session_columns);
        }
        self.open = Some(key.clone());
        Ok(Some(Session { id: id_of(&key), row, doubles }))
    }

    /// The next message of the session, in the order of ids.
    ///
    /// # Errors
    /// Temporary files.
    pub(crate) fn message(&mut self) -> Result<Option<Message>> {
        let (Some(open), Some(head)) = (&self.open, self.messages.session()) else { return Ok(None) };
        if open != head {
            return Ok(None);
        }
        let Some((key, payload)) = self.messages.advance()? else { return Ok(None) };
        let id = crate::bytes::u64_at(&key, key.len().saturating_sub(8)).map_or(0, |n| i64::from_ne_bytes((n ^ (1 << 63)).to_ne_bytes()));
        match unpack(id, &payload) {
            Some(m) => Ok(Some(m)),
            None => self.message(),
        }
    }

    /// All values of a message.
    pub(crate) fn record(&self, m: &Message) -> Option<Record> {
        self.load("messages", m, &self.message_columns)
    }

    fn load(&self, table: &str, m: &Message, columns: &Columns) -> Option<Record> {
        if let Some(place) = m.place {
            return self.store.at(table, place, m.outline.label);
        }
        let record = m.record.as_ref()?;
        let mut fields = Fields::new();
        fields.read(record, wide(record.len())).ok()?;
        let mut values: Vec<Constant> = fields.values(record).map(Constant::from).collect();
        values.resize(columns.names.len(), Constant::Null);
        Some(Record { rowid: Some(m.id), values, label: m.outline.label })
    }
}

fn sessions(store: &Store<'_>, columns: &Columns) -> Result<Sorter> {
    let mut sorter = store.sorter();
    let id = columns.at("id");
    let (mut key, mut payload) = (Vec::new(), Vec::new());
    let outline =
        |label| Outline { at: None, bad_time: false, active: true, compacted: false, role: Role::Known, label, preview: String::new() };
    let mut known: BTreeSet<i64> = BTreeSet::new();
    let gone = store.gone("sessions");
    store.each("sessions", |seen: &Seen<'_>| {
        if let Some(rowid) = seen.rowid.filter(|r| gone.contains_key(r)) {
            known.insert(rowid);
        }
        key_of(&bytes_of(&seen.owned(id)), &mut key);
        // Rows that are shown come first: a further one under the same id is a double.
        key.push(seen.label.number());
        key.extend_from_slice(&[0; 8]);
        pack(&outline(seen.label), Some(seen.place), None, &mut payload);
        sorter.push(&key, &payload)
    })?;
    for (rowid, record) in gone.iter().filter(|(rowid, _)| !known.contains(rowid)) {
        let value = record.get(columns, "id");
        if *value == Constant::Null {
            continue;
        }
        key_of(&bytes_of(value), &mut key);
        key.push(record.label.number());
        key.extend_from_slice(&rowid.to_be_bytes());
        pack(&outline(record.label), None, Some(&encoded(record)), &mut payload);
        sorter.push(&key, &payload)?;
    }
    Ok(sorter)
}

fn encoded(record: &Record) -> Vec<u8> {
    let mut out = Vec::new();
    encode_record(&mut out, record.values.iter().map(Constant::value));
    out
}

fn messages(store: &Store<'_>, columns: &Columns) -> Result<Sorter> {
    let mut sorter = store.sorter();
    let needed = Needed::of(columns);
    let (mut key, mut payload) = (Vec::new(), Vec::new());
    store.each("messages", |seen: &Seen<'_>| {
        key_of(&bytes_of(&seen.owned(needed.session)), &mut key);
        key.push(0);
        key.extend_from_slice(&crate::recover::stream::rowid_key(seen.rowid.unwrap_or(0)));
        pack(&needed.outline(&|c| seen.owned(c), seen.label), Some(seen.place), None, &mut payload);
        sorter.push(&key, &payload)
    })?;
    for (rowid, record) in lost_messages(store, columns)? {
        key_of(&bytes_of(record.get(columns, "session_id")), &mut key);
        key.push(0);
        key.extend_from_slice(&crate::recover::stream::rowid_key(rowid));
        let outline = needed.outline(&|c| c.and_then(|c| record.values.get(c)).cloned().unwrap_or_default(), record.label);
        pack(&outline, None, Some(&encoded(&record)), &mut payload);
        sorter.push(&key, &payload)?;
    }
    Ok(sorter)
}

/// Texts of lost messages that are kept together, in bytes; more are left to the salvage database.
const TEXTS: usize = 256 << 20;

/// Messages that no page has: what indexes, content tables and search indexes still hold of them.
///
/// # Errors
/// Temporary files, cancellation.
pub(crate) fn lost_messages(store: &Store<'_>, columns: &Columns) -> Result<BTreeMap<i64, Record>> {
    let mut lost = store.gone("messages");
    let fresh = |rowid: i64, label| {
        let mut values = vec![Constant::Null; columns.names.len()];
        if let Some(id) = columns.at("id").and_then(|i| values.get_mut(i)) {
            *id = Constant::Int(rowid);
        }
        Record { rowid: Some(rowid), values, label }
    };
    let set = |record: &mut Record, name: &str, value: Constant| {
        if let Some(cell) = columns.at(name).and_then(|i| record.values.get_mut(i)) {
            *cell = value;
        }
    };
    let mut used = 0_usize;
    // The exact copies first.
    let tables = if store.is_whole("messages") { Vec::new() } else { store.content_tables() };
    if !tables.is_empty() {
        let mut present = BTreeSet::new();
        store.each("messages", |seen| {
            present.extend(seen.rowid);
            Ok(())
        })?;
        for table in tables {
            let c0 = store.columns(&table).at("c0");
            store.each(&table, |seen| {
                let Some(rowid) = seen.rowid.filter(|r| !present.contains(r)) else { return Ok(()) };
                let Constant::Text(text) = seen.owned(c0) else { return Ok(()) };
                used = used.saturating_add(text.len());
                if used > TEXTS || lost.get(&rowid).is_some_and(|r| r.label == Label::SearchContent) {
                    return Ok(());
                }
                let record = lost.entry(rowid).or_insert_with(|| fresh(rowid, Label::SearchContent));
                record.label = Label::SearchContent;
                let (content, tool, calls) = super::content::split(&text);
                set(record, "content", Constant::Text(content));
                set(record, "tool_name", tool.map_or(Constant::Null, Constant::Text));
                set(record, "tool_calls", calls.map_or(Constant::Null, Constant::Text));
                Ok(())
            })?;
        }
    }
    store.texts(|rowid, column, text| {
        used = used.saturating_add(text.len());
        if used > TEXTS || lost.get(&rowid).is_some_and(|r| r.label == Label::SearchContent) {
            return Ok(());
        }
        let record = lost.entry(rowid).or_insert_with(|| fresh(rowid, Label::SearchText));
        record.label = Label::SearchText;
        set(record, column, Constant::Text(text.to_vec()));
        Ok(())
    })?;
    Ok(lost)
}
