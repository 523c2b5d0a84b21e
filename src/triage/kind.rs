//! What each file of a bundle is, by its bytes.

use std::collections::BTreeMap;

use crate::bytes::u32_at;
use crate::ctx::Ctx;
use crate::error::{Error, Result};
use crate::evidence::{Content, InputFile, OpenOptions, identify, looks_like_pages};
use crate::format::journal::JOURNAL_MAGIC;
use crate::format::wal::{ShmHeader, WAL_MAGIC, WalHeader};
use crate::host::mounts::MountTable;
use crate::report::human::{bytes, counted};

use super::bundle::Bundle;
use super::model::{FileLine, Triage};

/// Bytes of a text that are searched for what SQLite complains about.
const TEXT: usize = 64 << 20;

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// A database, or what looks like pages of one.
    Database,
    /// A write-ahead log.
    Wal,
    /// A rollback journal.
    Journal,
    /// The shared memory of a log.
    Shm,
    /// Mounts of a machine.
    MountInfo,
    /// One JSON object a line.
    JsonLines,
    /// Another JSON text.
    Json,
    /// Other text.
    Text,
    /// No byte.
    Empty,
    /// Anything else.
    Other,
}

/// A file as it was recognised.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) kind: Kind,
    /// The file with the same bytes that counts.
    pub(super) same_as: Option<usize>,
    /// The salts of a log or of its shared memory, as a log stores them.
    pub(super) salts: Option<[u8; 8]>,
}

/// What SQLite and its callers write when something is wrong.
const COMPLAINTS: [&str; 8] = [
    "database is locked",
    "database disk image is malformed",
    "file is not a database",
    "malformed database schema",
    "disk I/O error",
    "database or disk is full",
    "attempt to write a readonly database",
    "SQLITE_CORRUPT",
];

/// Recognises every file and enters it into the result.
pub(super) fn recognise(bundle: &Bundle, triage: &mut Triage, ctx: &Ctx) -> Result<Vec<Seen>> {
    let mut out: Vec<Seen> = Vec::new();
    let mut prints: BTreeMap<(u64, Option<[u8; 32]>), Vec<usize>> = BTreeMap::new();
    let open = OpenOptions::new();
    for (i, member) in bundle.members.iter().enumerate() {
        ctx.check()?;
        let mut line = FileLine::new(&member.name, member.bytes);
        let seen = match InputFile::open(&member.path, ctx, &open) {
            Ok(file) => {
                let print = file.fingerprint();
                if print.len > 0 {
                    prints.entry((print.len, print.sha256)).or_default().push(i);
                }
                line.sha256 = print.sha256_hex();
                let (kind, words) = kind_of(&member.name, file.bytes());
                line.what = words;
                let salts = match kind {
                    Kind::Wal => file.bytes().get(16..24).and_then(|b| b.try_into().ok()),
                    Kind::Shm => ShmHeader::read(file.bytes(), 0).map(|h| h.salts),
                    _ => None,
                };
                Seen { kind, same_as: None, salts }
            }
            Err(Error::Cancelled) => return Err(Error::Cancelled),
            Err(error) => {
                line.what = "cannot be read".to_owned();
                line.verdict = Some(error.to_string());
                Seen { kind: Kind::Other, same_as: None, salts: None }
            }
        };
        line.kind = seen.kind.word();
        triage.files.push(line);
        out.push(seen);
    }
    // Of equal files the one with the plainest name is the original.
    let name = |i: usize| bundle.members.get(i).map(|m| m.name.as_str()).unwrap_or_default();
    for equal in prints.values().filter(|e| e.len() > 1) {
        let first = equal.iter().copied().min_by_key(|i| (name(*i).matches(['/', '!']).count(), name(*i).len(), *i));
        for i in equal.iter().copied().filter(|i| Some(*i) != first) {
            if let (Some(seen), Some(line)) = (out.get_mut(i), triage.files.get_mut(i)) {
                seen.same_as = first;
                line.same_as = first.map(|f| name(f).to_owned());
            }
        }
    }
    Ok(out)
}

impl Kind {
    /// The word for scripts.
    const fn word(self) -> &'static str {
        match self {
            Kind::Database => "database",
            Kind::Wal => "wal",
            Kind::Journal => "journal",
            Kind::Shm => "shm",
            Kind::MountInfo => "mountinfo",
            Kind::JsonLines => "json-lines",
            Kind::Json => "json",
            Kind::Text => "text",
            Kind::Empty => "empty",
            Kind::Other => "other",
        }
    }
}

fn kind_of(name: &str, b: &[u8]) -> (Kind, String) {
    let last = name.rsplit(['/', '!']).next().unwrap_or(name).to_ascii_lowercase();
    if b.is_empty() {
        let what = if last.contains("-wal") || last.contains("-shm") || last.contains("-journal") {
            "an empty sidecar: SQLite leaves it so, it says nothing"
        } else {
            "no byte"
        };
        return (Kind::Empty, what.to_owned());
    }
    let magic = u32_at(b, 0).unwrap_or(0);
    let is_wal = magic & !1 == WAL_MAGIC || (last.contains("-wal") && WalHeader::read(b).is_ok_and(|h| h.page_size().is_some()));
    if is_wal {
        return (Kind::Wal, "a write-ahead log".to_owned());
    }
    if b.starts_with(&JOURNAL_MAGIC) {
        return (Kind::Journal, "a rollback journal".to_owned());
    }
    if ShmHeader::read(b, 0).is_some() && b.len().is_multiple_of(32768) {
        return (Kind::Shm, "the shared memory of a log".to_owned());
    }
    if last.contains("-journal") && b.len() >= 512 && b.iter().take(28).all(|b| *b == 0) {
        return (Kind::Journal, "a rollback journal that was ended (its header is zero)".to_owned());
    }
    if b.starts_with(crate::format::header::MAGIC) && looks_like_pages(b) {
        return (Kind::Database, "a database".to_owned());
    }
    if last.contains("-wal") && b.len() > 4096 && !is_text(b) {
        return (Kind::Wal, "a write-ahead log whose header is damaged".to_owned());
    }
    if MountTable::recognises(b) {
        return (Kind::MountInfo, format!("the mounts of a machine ({})", counted(lines(b), "line")));
    }
    if is_text(b) {
        return text(b);
    }
    if looks_like_pages(b) {
        return (Kind::Database, "pages of a database".to_owned());
    }
    match identify(b) {
        Content::Empty => (Kind::Empty, "no byte".to_owned()),
        content => (Kind::Other, content.to_string()),
    }
}

fn lines(b: &[u8]) -> u64 {
    crate::ids::wide(memchr::memchr_iter(b'\n', b).count().saturating_add(usize::from(!b.ends_with(b"\n"))))
}

/// Whether a file is text: its first and last parts are UTF-8 without control characters.
fn is_text(b: &[u8]) -> bool {
    let part = |b: &[u8]| {
        let valid = match std::str::from_utf8(b) {
            Ok(text) => text,
            // The cut may go through a character.
            Err(e) if e.valid_up_to().saturating_add(4) > b.len() => {
                std::str::from_utf8(b.get(..e.valid_up_to()).unwrap_or_default()).unwrap_or("")
            }
            Err(_) => return false,
        };
        !valid.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t' | '\u{1b}'))
    };
    let tail = b.len().saturating_sub(4096);
    let mut end = b.get(tail..).unwrap_or(b);
    while let Some((first, rest)) = end.split_first() {
        if *first & 0xc0 != 0x80 {
            break;
        }
        end = rest;
    }
    part(b.get(..64 << 10).unwrap_or(b)) && part(end)
}

fn text(b: &[u8]) -> (Kind, String) {
    let part = b.get(..TEXT).unwrap_or(b);
    let first: Vec<&[u8]> = part.split(|b| *b == b'\n').map(<[u8]>::trim_ascii).filter(|l| !l.is_empty()).take(3).collect();
    let is_object = |l: &&[u8]| serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(l).is_ok();
    if !first.is_empty() && first.iter().all(is_object) {
        return (Kind::JsonLines, format!("JSON lines ({})", counted(lines(b), "line")));
    }
    if part.trim_ascii_start().starts_with(b"{") && serde_json::from_slice::<serde::de::IgnoredAny>(part).is_ok() {
        return (Kind::Json, "a JSON text".to_owned());
    }
    let mut said: Vec<String> = Vec::new();
    for complaint in COMPLAINTS {
        let n = memchr::memmem::find_iter(part, complaint.as_bytes()).count();
        if n > 0 {
            said.push(format!("\"{complaint}\" {n} times"));
        }
    }
    let what = format!("text, {}", bytes(crate::ids::wide(b.len())));
    (Kind::Text, if said.is_empty() { what } else { format!("{what}; says {}", said.join(", ")) })
}
