//! `hermes list`: the sessions of a store, newest first.

use serde::Serialize;

use super::cells::{self, Epoch};
use super::store::{Label, Store};
use super::transcript::{Role, Session, Transcript};
use crate::error::Result;
use crate::survey::plan::Constant;

/// A session as the list has it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SessionLine {
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: Option<String>,
    /// The beginning of its first user message.
    pub preview: Option<String>,
    /// The last part of its working folder.
    pub workspace: Option<String>,
    /// The latest time of its activity and messages, in seconds; none of them within the window: `None`.
    pub last_active: Option<f64>,
    /// When it began; where its own cell does not say it the time of its earliest message.
    pub started_at: Option<f64>,
    /// Source, "created→current" where they differ.
    pub source: Option<String>,
    /// Messages that the evidence still holds.
    pub messages: u64,
    /// Messages of the live transcript.
    pub active: u64,
    /// Messages that a compaction archived.
    pub compacted: u64,
    /// Messages that were rewound.
    pub rewound: u64,
    /// The session that started it.
    pub parent: Option<String>,
    /// Whether it is archived or hidden in the application.
    pub archived: bool,
    /// What is special: "adopted", "recovered", "partial", "hidden-commit", "no-session-row", "double-row", ...
    pub labels: Vec<String>,
    /// What could not be read as it should, one sentence each.
    pub warnings: Vec<String>,
}

fn text_of(session: &Session, t: &Transcript<'_, '_>, name: &str) -> Option<String> {
    session.row.as_ref().and_then(|r| cells::text(r.get(&t.session_columns, name))).filter(|s| !s.is_empty())
}

/// What a session row says, before its messages are read.
pub(crate) fn head(session: &Session, t: &Transcript<'_, '_>) -> SessionLine {
    let id = session.id_text();
    let text = |name| text_of(session, t, name);
    let cell = |name: &str| session.row.as_ref().map_or(Constant::Null, |r| r.get(&t.session_columns, name).clone());
    let mut warnings = Vec::new();
    let mut time = |name: &str| {
        let value = cell(name);
        let epoch = Epoch::of(&value);
        if epoch == Epoch::Corrupt {
            let shown = cells::one_line(&cells::text(&value).unwrap_or_default(), 40);
            warnings.push(format!("Ignoring corrupt {name} {shown} on session {id}"));
        }
        epoch.seconds()
    };
    let (started_at, last_active) = (time("started_at"), time("last_activity_at"));
    let source = match (text("created_source"), text("source")) {
        (Some(created), Some(current)) if created != current => Some(format!("{created}→{current}")),
        (created, current) => current.or(created),
    };
    let mut labels: Vec<String> = Vec::new();
    match &session.row {
        None => labels.push("no-session-row".to_owned()),
        Some(row) => labels.extend(row.label.word().map(str::to_owned)),
    }
    if !session.doubles.is_empty() {
        labels.push("double-row".to_owned());
    }
    let flag = |name| cells::int(&cell(name)).is_some_and(|n| n != 0);
    SessionLine {
        title: text("title"),
        preview: None,
        workspace: text("cwd").map(|p| p.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next().unwrap_or_default().to_owned()),
        last_active,
        started_at,
        source,
        messages: 0,
        active: 0,
        compacted: 0,
        rewound: 0,
        parent: text("parent_session_id"),
        archived: flag("archived") || flag("hidden"),
        labels,
        warnings,
        id,
    }
}

/// Reads the sessions, newest activity first, and hands each on. Sorting goes through temporary files where there are many.
///
/// # Errors
/// Temporary files, cancellation, and what `f` returns.
pub(crate) fn each(store: &Store<'_>, mut f: impl FnMut(SessionLine) -> Result<()>) -> Result<()> {
    let mut t = Transcript::new(store)?;
    let mut sorter = store.sorter();
    while let Some(session) = t.session()? {
        let mut line = head(&session, &t);
        let (mut first, mut last, mut bad) = (None::<f64>, line.last_active, 0_u64);
        let mut seen: Vec<Label> = Vec::new();
        while let Some(m) = t.message()? {
            let o = m.outline;
            line.messages = line.messages.saturating_add(1);
            let sum = match (o.active, o.compacted) {
                (true, _) => &mut line.active,
                (false, true) => &mut line.compacted,
                (false, false) => &mut line.rewound,
            };
            *sum = sum.saturating_add(1);
            if let Some(at) = o.at {
                first = Some(first.map_or(at, |f| f.min(at)));
                last = Some(last.map_or(at, |l| l.max(at)));
            }
            bad = bad.saturating_add(u64::from(o.bad_time));
            if line.preview.is_none() && o.role == Role::User && !o.preview.is_empty() {
                line.preview = Some(cells::one_line(&o.preview, 100));
            }
            if o.label != Label::Live && !seen.contains(&o.label) {
                seen.push(o.label);
            }
        }
        if bad > 0 {
            line.warnings.push(format!("Ignoring corrupt timestamp of {bad} messages on session {}", line.id));
        }
        seen.sort();
        line.labels.extend(seen.into_iter().filter_map(Label::word).map(|w| format!("messages-{w}")));
        if line.started_at.is_none() && first.is_some() {
            line.started_at = first;
            line.labels.push("started-at-of-first-message".to_owned());
        }
        line.last_active = last.or(line.started_at);
        sorter.push(&newest_first(line.last_active), serde_json::to_string(&Stored::of(&line)).unwrap_or_default().as_bytes())?;
    }
    let mut sorted = sorter.finish()?;
    while let Some((_, line)) = sorted.next()? {
        if let Ok(stored) = serde_json::from_slice::<Stored>(line) {
            f(stored.line())?;
        }
    }
    Ok(())
}

/// A key by which the newest time comes first and none last.
pub(crate) fn newest_first(at: Option<f64>) -> [u8; 8] {
    at.map_or([0xff; 8], |t| (u64::MAX ^ t.max(0.0).to_bits()).to_be_bytes())
}

/// The form in which a line goes through the sort.
#[derive(Serialize, serde::Deserialize)]
struct Stored(String, [Option<String>; 5], [Option<u64>; 2], [u64; 4], bool, Vec<String>, Vec<String>);

impl Stored {
    fn of(l: &SessionLine) -> Stored {
        Stored(
            l.id.clone(),
            [l.title.clone(), l.preview.clone(), l.workspace.clone(), l.source.clone(), l.parent.clone()],
            [l.last_active.map(f64::to_bits), l.started_at.map(f64::to_bits)],
            [l.messages, l.active, l.compacted, l.rewound],
            l.archived,
            l.labels.clone(),
            l.warnings.clone(),
        )
    }

    fn line(self) -> SessionLine {
        let [title, preview, workspace, source, parent] = self.1;
        let [last_active, started_at] = self.2.map(|t| t.map(f64::from_bits));
        let [messages, active, compacted, rewound] = self.3;
        SessionLine {
            id: self.0,
            title,
            preview,
            workspace,
            last_active,
            started_at,
            source,
            messages,
            active,
            compacted,
            rewound,
            parent,
            archived: self.4,
            labels: self.5,
            warnings: self.6,
        }
    }
}

impl SessionLine {
    /// Takes the values of the evidence out: the session is its number in the list.
    pub fn redact(&mut self, number: u64) {
        let hide = |v: &mut Option<String>| {
            if let Some(text) = v {
                *text = cells::redacted(text);
            }
        };
        self.id = format!("session {number}");
        for v in [&mut self.title, &mut self.preview, &mut self.workspace, &mut self.source, &mut self.parent] {
            hide(v);
        }
        self.last_active = None;
        self.started_at = None;
        for w in &mut self.warnings {
            let word = w.split(' ').nth(2).unwrap_or_default().to_owned();
            *w = format!("Ignoring corrupt {word} on session {number}");
        }
    }
}
