//! Which log and journal fits which database, by trying it, and what each pair holds.
//!
//! Names only order the attempts. A log belongs to the database with which its pages agree; the same log may agree with several
//! copies of one store, then the one with the least damage and the nearest name has it.

use crate::ctx::Ctx;
use crate::error::{Error, Result};
use crate::format::DatabaseHeader;
use crate::report::Report;
use crate::report::model::{Class, Fit, InputRole};
use crate::verbs::{self, Inputs, Options};

use super::bundle::Bundle;
use super::kind::{Kind, Seen};

/// Databases that a sidecar is tried with: the nearest names first.
const TRIED: usize = 8;

/// Databases of a bundle that are checked; beyond that a bundle is a collection.
const CHECKED: usize = 500;

/// A database with the sidecars that are read with it.
#[derive(Debug)]
pub(super) struct Source {
    /// The database, or a log without one.
    pub(super) main: usize,
    pub(super) is_log: bool,
    pub(super) wal: Option<usize>,
    pub(super) journal: Option<usize>,
    pub(super) shm: Option<usize>,
    /// How the log fits.
    pub(super) fit: Option<String>,
    pub(super) report: Report,
    /// The header of the main file says WAL.
    pub(super) says_wal: bool,
    pub(super) change_counter: u32,
    pub(super) commits: u64,
    /// What grows from state to state of one store: the change counter, which WAL mode leaves as it is, then the sum of the
    /// highest rowids, then the commits of the log.
    pub(super) age: (u32, u64, u64),
}

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) sources: Vec<Source>,
    /// Databases that are none, with what they are.
    pub(super) refused: Vec<(usize, String)>,
    /// Sidecars that fit no database.
    pub(super) lonely: Vec<usize>,
    /// Sidecars with the database that they are read with, or that they are an ended journal of.
    pub(super) taken: Vec<(usize, usize, String)>,
}

/// The files that are read for a source.
pub(super) fn inputs(bundle: &Bundle, main: usize, wal: Option<usize>, journal: Option<usize>, shm: Option<usize>) -> Inputs {
    let path = |i: usize| bundle.members.get(i).map(|m| m.path.clone()).unwrap_or_default();
    Inputs {
        db: path(main),
        wal: wal.map(path).into_iter().collect(),
        journal: journal.map(path),
        shm: shm.filter(|_| wal.is_some()).map(path),
        no_wal: wal.is_none(),
        no_journal: journal.is_none(),
        ..Inputs::default()
    }
}

impl Source {
    pub(super) fn inputs(&self, bundle: &Bundle) -> Inputs {
        if self.is_log {
            let mut inputs = inputs(bundle, self.main, None, None, None);
            (inputs.no_wal, inputs.no_journal) = (false, true);
            return inputs;
        }
        inputs(bundle, self.main, self.wal, self.journal, self.shm)
    }
}

/// Checks every database alone and with the sidecars that may be its own.
pub(super) fn find(bundle: &Bundle, seen: &[Seen], options: &Options, ctx: &Ctx) -> Result<Found> {
    let mut found = Found::default();
    let of = |kind: Kind| seen.iter().enumerate().filter(move |(_, s)| s.kind == kind && s.same_as.is_none()).map(|(i, _)| i);
    let mut quiet = options.clone();
    quiet.redact = true;
    let check = |inputs: &Inputs| -> Result<std::result::Result<Report, String>> {
        match verbs::check(inputs, &quiet, ctx) {
            Ok(report) => Ok(Ok(report)),
            Err(Error::Cancelled) => Err(Error::Cancelled),
            Err(Error::NotADatabase { what, .. }) => Ok(Err(what)),
            Err(error) => Ok(Err(error.to_string())),
        }
    };
    // Empty files that are named like a database may have lost everything to their log.
    let empty = of(Kind::Empty).filter(|i| bundle.members.get(*i).is_some_and(|m| !has_ending(&m.name)));
    let mut mains: Vec<(usize, Option<Report>)> = Vec::new();
    for i in of(Kind::Database).take(CHECKED) {
        match check(&inputs(bundle, i, None, None, None))? {
            Ok(report) => mains.push((i, Some(report))),
            Err(what) => found.refused.push((i, what)),
        }
    }
    mains.extend(empty.map(|i| (i, None)));
    let mut with_log: Vec<Source> = Vec::new();
    for wal in of(Kind::Wal).chain(of(Kind::Journal)).collect::<Vec<_>>() {
        let is_wal = seen.get(wal).is_some_and(|s| s.kind == Kind::Wal);
        let mut tries: Vec<usize> = mains.iter().map(|(i, _)| *i).collect();
        tries.sort_by_key(|i| std::cmp::Reverse(nearness(bundle, *i, wal)));
        let mut best: Option<(Rank, Source)> = None;
        for main in tries.into_iter().take(TRIED) {
            let (w, j) = if is_wal { (Some(wal), None) } else { (None, Some(wal)) };
            let shm = w.and_then(|w| shm_of(seen, w));
            let Ok(report) = check(&inputs(bundle, main, w, j, shm))? else { continue };
            let role = if is_wal { InputRole::Wal } else { InputRole::Journal };
            let Some(side) = report.sidecars.iter().find(|s| s.role == role) else { continue };
            if side.fit == Fit::Foreign {
                continue;
            }
            let alone = mains.iter().find(|(i, _)| *i == main).and_then(|(_, r)| r.as_ref());
            // A log that was not blended says nothing for this database but its name.
            let same = side.fit == Fit::Same;
            if !same && !side.blended && nearness(bundle, main, wal) < NEAR {
                continue;
            }
            if !same && alone.is_some_and(|a| rows(a) > 0 && report.verdict.class > a.verdict.class) && nearness(bundle, main, wal) < NEAR {
                continue;
            }
            let fit = format!("{}: {}", if same { "fits" } else { "undecided" }, side.reason);
            let agrees = if is_wal { agreement(bundle, main, wal) } else { 0 };
            let rank = Rank {
                same,
                agrees,
                whole: std::cmp::Reverse(report.verdict.class),
                has_main: alone.is_some(),
                near: nearness(bundle, main, wal),
                rows: rows(&report),
            };
            let source = source(bundle, main, w, j, shm, Some(fit), report);
            if best.as_ref().is_none_or(|(r, _)| rank > *r) {
                best = Some((rank, source));
            }
        }
        match best {
            Some((_, source)) => {
                found.taken.push((wal, source.main, source.fit.clone().unwrap_or_default()));
                with_log.push(source);
            }
            None => found.lonely.push(wal),
        }
    }
    for (main, report) in mains {
        let mine = with_log.iter().any(|s| s.main == main && (s.wal.is_some() || s.report.sidecars.iter().any(|c| c.blended)));
        match report {
            Some(report) if !mine => found.sources.push(source(bundle, main, None, None, None, None, report)),
            _ => {}
        }
    }
    // A journal and a log of one database are read together.
    for s in with_log {
        let both = found
            .sources
            .iter_mut()
            .find(|o| o.main == s.main && (o.wal.is_none() || s.wal.is_none()) && (o.wal.is_some() || o.journal.is_some()));
        match both {
            Some(other) => {
                other.wal = other.wal.or(s.wal);
                other.journal = other.journal.or(s.journal);
                other.shm = other.shm.or(s.shm);
                if let Ok(report) = check(&inputs(bundle, other.main, other.wal, other.journal, other.shm))? {
                    other.report = report;
                }
            }
            None if s.wal.is_some() || s.report.sidecars.iter().any(|c| c.blended) => found.sources.push(s),
            None => {}
        }
    }
    for shm in of(Kind::Shm) {
        let owner = found.sources.iter().find(|s| s.shm == Some(shm)).map(|s| s.main);
        match owner {
            Some(main) => found.taken.push((shm, main, "its salts are those of the log".to_owned())),
            None => found.lonely.push(shm),
        }
    }
    // A log without a database still holds pages.
    for wal in found.lonely.clone() {
        if seen.get(wal).is_none_or(|s| s.kind != Kind::Wal) {
            continue;
        }
        let mut alone = inputs(bundle, wal, None, None, None);
        (alone.no_wal, alone.no_journal) = (false, true);
        if let Ok(report) = check(&alone)? {
            found.sources.push(Source { is_log: true, ..source(bundle, wal, None, None, None, None, report) });
        }
    }
    Ok(found)
}

/// How well a sidecar goes with a database; greater is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    same: bool,
    /// Tenths of the bytes of the main file that the log began from.
    agrees: u64,
    has_main: bool,
    whole: std::cmp::Reverse<Class>,
    near: usize,
    rows: u64,
}

fn source(
    bundle: &Bundle,
    main: usize,
    wal: Option<usize>,
    journal: Option<usize>,
    shm: Option<usize>,
    fit: Option<String>,
    report: Report,
) -> Source {
    let read = |i: usize| bundle.members.get(i).and_then(|m| std::fs::read(&m.path).ok().filter(|_| m.bytes < 1 << 32));
    let head = bundle.members.get(main).and_then(|m| head(&m.path));
    let header = head.and_then(|b| DatabaseHeader::read(&b).ok()).filter(DatabaseHeader::magic_ok);
    let mut change_counter = header.map_or(0, |h| h.change_counter);
    let mut commits = 0;
    let blended = report.sidecars.iter().any(|s| s.role == InputRole::Wal && s.blended);
    if let Some(log) = wal.filter(|_| blended).and_then(read) {
        let (newest, n) = newest_of(&log);
        commits = n;
        change_counter = newest.map_or(change_counter, |c| c.max(change_counter));
    }
    let says_wal = header.is_some_and(|h| h.read_version == 2);
    Source { main, is_log: false, wal, journal, shm, fit, report, says_wal, change_counter, commits, age: (change_counter, 0, commits) }
}

/// How far the first image of each page in a log is the page that the main file has, in tenths of the bytes that are not
/// zero. A transaction changes a part of a page; the page of another store has all its rows at other places.
fn agreement(bundle: &Bundle, main: usize, log: usize) -> u64 {
    let read = |i: usize| bundle.members.get(i).and_then(|m| std::fs::read(&m.path).ok().filter(|_| m.bytes < 1 << 32));
    let (Some(main), Some(log)) = (read(main), read(log)) else { return 0 };
    let Some(index) = crate::evidence::WalIndex::read(&log, None, &mut crate::finding::Findings::new(0)) else { return 0 };
    let size = index.page_size.len();
    let mut seen = std::collections::BTreeSet::new();
    let (mut equal, mut all) = (0_u64, 0_u64);
    for (i, info) in index.frames.iter().enumerate() {
        let Some(page) = crate::ids::PageNo::new(info.page).filter(|_| seen.insert(info.page)) else { continue };
        let own = page.index().checked_mul(size).and_then(|at| crate::bytes::slice(&main, at, size));
        let (Some(own), Some(frame)) = (own, index.frame_at(i)) else { continue };
        for (a, b) in own.iter().zip(frame.image).filter(|(a, _)| **a != 0) {
            all = all.saturating_add(1);
            equal = equal.saturating_add(u64::from(a == b));
        }
    }
    equal.saturating_mul(10).checked_div(all).unwrap_or(0)
}

fn head(path: &std::path::Path) -> Option<Vec<u8>> {
    use std::io::Read as _;
    let mut out = Vec::new();
    std::fs::File::open(path).ok()?.take(100).read_to_end(&mut out).ok()?;
    Some(out)
}

/// The change counter of the newest committed page 1 of a log, and its commits.
fn newest_of(log: &[u8]) -> (Option<u32>, u64) {
    let Some(index) = crate::evidence::WalIndex::read(log, None, &mut crate::finding::Findings::new(0)) else { return (None, 0) };
    let commits = crate::ids::wide(index.commits.len());
    let newest = index.last_commit().and_then(|c| index.newest(crate::ids::PageNo::ONE, c.frame));
    (newest.and_then(|(_, image)| DatabaseHeader::read(image).ok()).map(|h| h.change_counter), commits)
}

/// The shared memory whose salts are those of a log.
fn shm_of(seen: &[Seen], wal: usize) -> Option<usize> {
    let salts = seen.get(wal)?.salts?;
    seen.iter().position(|s| s.kind == Kind::Shm && s.salts == Some(salts))
}

/// Rows of the tables that hold data.
pub(super) fn rows(report: &Report) -> u64 {
    report.objects.iter().filter(|o| is_data(o)).map(|o| o.rows.unwrap_or(0)).fold(0, u64::saturating_add)
}

/// Whether an object is a table of the application.
pub(super) fn is_data(o: &crate::report::model::Object) -> bool {
    o.kind == "table" && o.id != 0 && o.family == "table" && !o.name.to_ascii_lowercase().starts_with("sqlite_")
}

/// Names this near are those of one database and its sidecar.
const NEAR: usize = 1000;

/// How near the names of a database and a sidecar are.
fn nearness(bundle: &Bundle, main: usize, side: usize) -> usize {
    let name = |i: usize| bundle.members.get(i).map(|m| m.name.as_str()).unwrap_or_default();
    let (main, side) = (name(main), name(side));
    if side.strip_prefix(main).is_some_and(|rest| ["-wal", "-shm", "-journal"].contains(&rest)) {
        return NEAR;
    }
    main.bytes().zip(side.bytes()).take_while(|(a, b)| a == b).count().min(NEAR.saturating_sub(1))
}

fn has_ending(name: &str) -> bool {
    ["-wal", "-shm", "-journal"].iter().any(|e| name.contains(e))
}
