//! `doctor`: where a database lives, who has it open, in which mode it is, and what to do first.
//!
//! Tests:    the mount, the mode in the header, the sidecars, the processes and locks of this machine, every page.
//! Collects: findings, most urgent first, each with the steps that follow from it.
//! Leaves:   the files as they are; only what a process holds deleted is copied, and only when that is asked for.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::ctx::Ctx;
use crate::error::{Error, Result};
use crate::format::DatabaseHeader;
use crate::report::model::{Class, Report};
use crate::verbs::{self, Inputs, Options};

use super::holders::{self, Holder, Seen, Which};
use super::locks::{self, Lock};
use super::log_state::LogState;
use super::mounts::{self, Mount, MountClass, MountTable, WalSafety};
use super::rescue::{self, Rescued};

/// What is asked of the doctor.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Wanted {
    /// A mountinfo file of the machine that the incident is from, instead of this machine's.
    pub mountinfo: Option<PathBuf>,
    /// The path that the database had on that machine.
    pub was_at: Option<PathBuf>,
    /// Where files go that were deleted while a process holds them.
    pub rescue: Option<PathBuf>,
    /// Do not read the pages: place, mode and holders only.
    pub quick: bool,
}

/// A database to look at.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Patient {
    /// Its path.
    pub path: PathBuf,
    /// What the application calls it: the name of a profile.
    pub name: Option<String>,
    /// How its application is told to use rollback mode: a sentence and the lines to write.
    pub setting: Option<(String, Vec<String>)>,
}

impl Patient {
    /// The database at a path.
    #[must_use]
    pub fn at(path: &Path) -> Patient {
        Patient { path: path.to_path_buf(), ..Patient::default() }
    }
}

/// How much a finding matters. Most urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Urgency {
    /// Data is being lost, or will be with the next step.
    Danger,
    /// Something is wrong.
    Warning,
    /// Good to know.
    Note,
}

impl Urgency {
    /// The word of the text.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Urgency::Danger => "DANGER",
            Urgency::Warning => "warning",
            Urgency::Note => "note",
        }
    }
}

/// What to do: a sentence, and commands ready for a POSIX shell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// What and why. May hold names of the evidence, not escaped.
    pub words: String,
    /// The commands, one a line.
    pub commands: Vec<String>,
}

/// Something that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// A stable word for scripts.
    pub kind: &'static str,
    /// How much it matters.
    pub urgency: Urgency,
    /// What it is. May hold names of the evidence, not escaped.
    pub sentence: String,
    /// What follows from it.
    pub steps: Vec<Step>,
}

/// What is known of the mount.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Place {
    /// Where it is mounted.
    pub point: String,
    /// The type, as mountinfo has it.
    pub fstype: String,
    /// The device, share or tag.
    pub source: String,
    /// The folder of the file system that is shown, where that is not all of it.
    pub bind_of: Option<String>,
    /// What kind it is.
    pub class: MountClass,
    /// Whether a log works there.
    pub wal: WalSafety,
}

/// The journal mode, as the header has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum JournalMode {
    /// A write-ahead log.
    Wal,
    /// A rollback journal.
    Rollback,
    /// The two version bytes say neither.
    Unclear,
}

/// What was found about one database.
#[derive(Debug, Clone, Serialize)]
pub struct Examined {
    /// The path as it was given.
    pub path: String,
    /// The path without links.
    pub real_path: String,
    /// The path that commands name: as it was given, unless that is a link.
    #[serde(skip)]
    pub(super) shown: PathBuf,
    /// The name that the application has for it.
    pub name: Option<String>,
    /// Its size in bytes; `None`: it is not there.
    pub bytes: Option<u64>,
    /// The mode in the header; `None` without one.
    pub journal_mode: Option<JournalMode>,
    /// The version number of the SQLite that wrote the header last: a lower bound.
    pub sqlite_version: Option<u32>,
    /// The mount of its folder.
    pub place: Option<Place>,
    /// The state of the log.
    pub log: Option<LogState>,
    /// Processes with its files open.
    pub processes: Seen,
    /// Locks on its files.
    pub locks: Vec<Lock>,
    /// Files that were copied out of processes.
    pub rescued: Vec<Rescued>,
    /// The class of its damage; `None` when its pages were not read.
    pub damage: Option<Class>,
    /// What was found, most urgent first.
    pub findings: Vec<Finding>,
}

/// What the doctor says.
#[derive(Debug, Clone, Serialize)]
pub struct Diagnosis {
    /// The number of this format; grows when a field changes its meaning.
    pub format: u32,
    /// The version of rootpage.
    pub tool_version: &'static str,
    /// What this system cannot show.
    pub blind: Vec<String>,
    /// The databases, each once.
    pub stores: Vec<Examined>,
    /// 0 nothing to do, 1 a warning, 2 danger.
    pub exit_code: u8,
}

/// Looks at databases, each real path once.
///
/// # Errors
/// I/O of the mountinfo file and of a rescue; cancellation. That a database cannot be read is a finding.
pub fn examine(patients: &[Patient], wanted: &Wanted, options: &Options, ctx: &Ctx) -> Result<Diagnosis> {
    let live = wanted.mountinfo.is_none();
    let table = match &wanted.mountinfo {
        Some(path) => Some(MountTable::read(path)?),
        None => MountTable::live(),
    };
    let mut stores: Vec<Examined> = Vec::new();
    for patient in patients {
        ctx.check()?;
        let real = mounts::real(&patient.path);
        if stores.iter().any(|s| Path::new(&s.real_path) == real) {
            continue;
        }
        stores.push(one(patient, &real, table.as_ref(), wanted, options, ctx)?);
    }
    let mut blind = Vec::new();
    match (live, cfg!(target_os = "linux")) {
        (false, _) => blind.push("Processes and locks were not looked for: the mountinfo file is that of another machine.".to_owned()),
        (true, false) => blind.push(
            "This system does not show mounts, open files and locks to rootpage: it cannot say where the database lives and who has it open. Take a mountinfo file from a Linux host with --mountinfo."
                .to_owned(),
        ),
        (true, true) => {
            let unseen = stores.iter().map(|s| s.processes.unseen).max().unwrap_or(0);
            if unseen > 0 {
                blind.push(format!("{unseen} processes of other users could not be looked into; run as root to see what they hold."));
            }
            blind.push("Only processes of this machine and PID namespace are seen: not those in other virtual machines, hosts or containers.".to_owned());
        }
    }
    let worst = stores.iter().flat_map(|s| &s.findings).map(|f| f.urgency).min();
    let exit_code = match worst {
        Some(Urgency::Danger) => 2,
        Some(Urgency::Warning) => 1,
        Some(Urgency::Note) | None => 0,
    };
    Ok(Diagnosis { format: 1, tool_version: env!("CARGO_PKG_VERSION"), blind, stores, exit_code })
}

fn one(patient: &Patient, real: &Path, table: Option<&MountTable>, wanted: &Wanted, options: &Options, ctx: &Ctx) -> Result<Examined> {
    let mut x = Examined {
        path: patient.path.display().to_string(),
        real_path: real.display().to_string(),
        shown: match std::fs::symlink_metadata(&patient.path) {
            Ok(meta) if meta.is_symlink() => real.to_path_buf(),
            _ => patient.path.clone(),
        },
        name: patient.name.clone(),
        bytes: std::fs::metadata(real).ok().filter(std::fs::Metadata::is_file).map(|m| m.len()),
        journal_mode: None,
        sqlite_version: None,
        place: None,
        log: None,
        processes: Seen::default(),
        locks: Vec::new(),
        rescued: Vec::new(),
        damage: None,
        findings: Vec::new(),
    };
    if wanted.mountinfo.is_none() {
        // Before anything else: what is deleted goes away with the last process that holds it.
        x.processes = holders::look(real);
        let gone: Vec<&Holder> = x.processes.holders.iter().filter(|h| h.gone && h.bytes > 0).collect();
        if let Some(folder) = wanted.rescue.as_ref().filter(|_| !gone.is_empty()) {
            x.rescued = rescue::copy(real, &gone, folder, ctx)?;
        }
        x.locks = locks::live().map(|text| locks::on(&text, &x.processes)).unwrap_or_default();
    }
    let header = first_bytes(real).and_then(|b| DatabaseHeader::read(&b).ok()).filter(DatabaseHeader::magic_ok);
    if let Some(h) = &header {
        x.sqlite_version = Some(h.sqlite_version);
        x.journal_mode = Some(match (h.write_version, h.read_version) {
            (2, 2) => JournalMode::Wal,
            (1, 1) => JournalMode::Rollback,
            _ => JournalMode::Unclear,
        });
    }
    let at = wanted.was_at.clone().unwrap_or_else(|| real.to_path_buf());
    let folder = at.parent().unwrap_or(&at);
    let (of_folder, of_file) = (table.and_then(|t| t.covering(folder)), table.and_then(|t| t.covering(&at)));
    x.place = of_folder.map(place);
    x.log = LogState::read(real, ctx)?;
    let report =
        if wanted.quick || x.bytes.is_none_or(|n| n == 0) { None } else { Some(verbs::check(&Inputs::at_path(real), options, ctx)) };
    if let Some(Err(Error::Cancelled)) = &report {
        return Err(Error::Cancelled);
    }
    if let Some(Ok(report)) = &report {
        x.damage = Some(report.verdict.class);
    }
    let mut findings = Vec::new();
    super::diagnose::deleted(&x, real, wanted, &mut findings);
    super::diagnose::place(&x, patient, of_folder, of_file, &mut findings);
    super::diagnose::damage(&x, report.as_ref(), &mut findings);
    super::diagnose::sidecars(&x, real, &mut findings);
    super::diagnose::emptiness(&x, report.as_ref().and_then(|r| r.as_ref().ok()), &mut findings);
    super::diagnose::waiting(&x, &mut findings);
    super::diagnose::version(&x, &mut findings);
    // Stable: of equal urgency the order above is that of what to do first.
    findings.sort_by_key(|f| f.urgency);
    findings.dedup();
    x.findings = findings;
    Ok(x)
}

fn place(m: &Mount) -> Place {
    let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
    let class = m.class();
    Place {
        point: text(&m.point),
        fstype: m.fstype.clone(),
        source: m.source.clone(),
        bind_of: m.is_part().then(|| text(&m.root)),
        class,
        wal: class.wal(),
    }
}

/// The first bytes of a file, at most 100.
fn first_bytes(path: &Path) -> Option<Vec<u8>> {
    use std::io::Read as _;
    if !std::fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut out = Vec::new();
    std::fs::File::open(path).ok()?.take(100).read_to_end(&mut out).ok()?;
    Some(out)
}

/// The databases in a folder, by their first bytes, in the order of their names: those that lie in it, not below it. Empty
/// files that have a sidecar count.
///
/// # Errors
/// I/O.
pub fn stores_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).map_err(|e| Error::io(folder, "read", e))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|e| e.path()).filter(|p| p.is_file()).collect();
    paths.sort();
    paths.retain(|p| {
        let magic = first_bytes(p).is_some_and(|b| b.starts_with(crate::format::header::MAGIC));
        magic || (Which::Wal.of(p).is_file() && !p.as_os_str().as_encoded_bytes().ends_with(b"-wal"))
    });
    Ok(paths)
}

/// Whether a report says that rows are at stake.
pub(super) fn is_structural(report: &Report) -> bool {
    report.verdict.class == Class::Structural
}

impl Diagnosis {
    /// The diagnosis as JSON, indented, with a line feed at the end.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Plain data: serialisation cannot fail.
        let mut json = serde_json::to_string_pretty(self).unwrap_or_default();
        json.push('\n');
        json
    }
}
