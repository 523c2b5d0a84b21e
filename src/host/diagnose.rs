//! What the facts about a database mean, and what to do first.

use std::path::Path;

use crate::error::{Error, Result};
use crate::report::human::{bytes, count, counted, shell};
use crate::report::model::{Class, Report};

use super::doctor::{Examined, Finding, JournalMode, Patient, Step, Urgency, Wanted, is_structural};
use super::holders::{Holder, Which};
use super::mounts::{Mount, MountClass, WalSafety};

fn step(words: impl Into<String>, commands: Vec<String>) -> Step {
    Step { words: words.into(), commands }
}

fn name(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into_owned())
}

/// Processes by name: `hermes (4711), sqlite3 (4800)`, each once.
fn processes<'h>(holders: impl Iterator<Item = &'h Holder>) -> String {
    let mut seen: Vec<u32> = Vec::new();
    let mut out = String::new();
    for h in holders {
        if seen.contains(&h.pid) {
            continue;
        }
        seen.push(h.pid);
        if !out.is_empty() {
            out.push_str(", ");
        }
        out.push_str(&format!("{} ({})", h.name, h.pid));
    }
    out
}

/// Files that were deleted or replaced while a process has them open.
pub(super) fn deleted(x: &Examined, real: &Path, wanted: &Wanted, out: &mut Vec<Finding>) {
    for file in Which::ALL {
        let gone: Vec<&Holder> = x.processes.holders.iter().filter(|h| h.gone && h.file == file).collect();
        let Some(largest) = gone.iter().max_by_key(|h| h.bytes) else { continue };
        let who = processes(gone.iter().copied());
        let there = file.of(real).exists();
        let state = if there { "another file has its name now" } else { "it has no name any more" };
        let size = bytes(largest.bytes);
        let (urgency, meaning) = match file {
            Which::Wal if largest.bytes > 0 => (
                Urgency::Danger,
                "What was committed to it is nowhere else, and is gone when the process ends. Do not stop the process, do not restart",
            ),
            Which::Main => (Urgency::Danger, "The process writes into a file that nobody else sees; what it writes is gone when it ends"),
            Which::Journal if largest.bytes > 0 => (Urgency::Danger, "Without it a transaction that breaks off cannot be rolled back"),
            _ => (Urgency::Warning, "The process and whoever opens the database now do not see each other's locks"),
        };
        let mut steps = Vec::new();
        if x.rescued.iter().any(|r| r.holder.file == file) {
            // The memory of a log says nothing without the log; it is kept for an examiner.
            for r in x.rescued.iter().filter(|r| r.holder.file == file && file != Which::Shm) {
                let copy = r.path.display().to_string();
                let how = if r.steady { "" } else { "; it was written to meanwhile, rescue it once more" };
                let words = format!("It was copied out ({}{how}). What the database holds with it:", bytes(r.bytes));
                let command = match file {
                    Which::Wal => format!("rootpage check {} --wal {}", shell(&x.shown.display().to_string()), shell(&copy)),
                    Which::Journal => format!("rootpage check {} --journal {}", shell(&x.shown.display().to_string()), shell(&copy)),
                    _ => format!("rootpage check {}", shell(&copy)),
                };
                steps.push(step(words, vec![command]));
            }
        } else if urgency == Urgency::Danger {
            let folder = wanted.rescue.as_ref().map_or_else(|| "rescued".to_owned(), |p| p.display().to_string());
            steps.push(step(
                "Copy it out first, while the process still runs:",
                vec![format!("rootpage doctor {} --rescue {}", shell(&x.shown.display().to_string()), shell(&folder))],
            ));
        }
        let sentence = format!("The {} was deleted or replaced while {who} has it open ({size}; {state}). {meaning}.", file.words());
        out.push(Finding { kind: "deleted-but-open", urgency, sentence, steps });
    }
}

/// The mount, together with the mode.
pub(super) fn place(x: &Examined, patient: &Patient, of_folder: Option<&Mount>, of_file: Option<&Mount>, out: &mut Vec<Finding>) {
    let Some(place) = &x.place else { return };
    let db = x.shown.display().to_string();
    let wal = x.journal_mode == Some(JournalMode::Wal) || x.log.is_some_and(|l| l.frames > 0);
    let at = if place.point == "/" { String::new() } else { format!(" at {}", place.point) };
    let mount = format!("{}{at}, {}", place.fstype, place.class.words());
    match (place.wal, wal) {
        (WalSafety::Unsafe, true) => {
            let gvisor = if place.class == MountClass::HostShare && place.fstype.starts_with("9p") && place.point == "/" {
                " (A sandbox such as gVisor names every mount 9p; whether its processes share memory depends on how the host mounts the folder.)"
            } else {
                ""
            };
            let mut steps = vec![step(
                "Either move the database to a volume of this machine. Stop every program that uses it, then move it with its log:",
                vec![
                    "mkdir -p /NATIVE/VOLUME".to_owned(),
                    format!("for f in {0} {0}-wal {0}-journal; do [ ! -e \"$f\" ] || mv -n \"$f\" /NATIVE/VOLUME/; done", shell(&db)),
                ],
            )];
            let mut commands = vec![format!("rootpage journal-mode {} delete -o {}", shell(&db), shell(&format!("{db}.delete-mode")))];
            let mut words =
                "Or use rollback mode there, which needs no shared memory: write a copy in DELETE mode, and install it as the command says"
                    .to_owned();
            if let Some((sentence, lines)) = &patient.setting {
                words.push_str(&format!("; {sentence}"));
                commands.extend(lines.iter().map(|l| format!("# {l}")));
            } else {
                words.push_str("; then tell the application not to switch back (PRAGMA journal_mode=DELETE)");
            }
            words.push(':');
            steps.push(step(words, commands));
            let sentence = format!(
                "The database is in WAL mode on {mount}. Processes on both sides of it do not share the memory that coordinates the log: they overwrite each other's commits, and the file breaks in silence.{gvisor}"
            );
            out.push(Finding { kind: "wal-on-unsafe-mount", urgency: Urgency::Danger, sentence, steps });
        }
        (WalSafety::Unsafe, false) => {
            let mode = match x.journal_mode {
                Some(JournalMode::Rollback) => "It is in rollback mode, which is right there: never switch it to WAL",
                _ => "A database there must be in rollback mode (DELETE), never in WAL mode",
            };
            let sentence = format!("The folder is {mount}. {mode}.");
            let mut steps = Vec::new();
            if let Some((sentence, lines)) = &patient.setting {
                steps.push(step(format!("Keep it so: {sentence}:"), lines.iter().map(|l| format!("# {l}")).collect()));
            }
            out.push(Finding { kind: "unsafe-mount", urgency: Urgency::Note, sentence, steps });
        }
        (WalSafety::OneMachine, true) => {
            let sentence = format!(
                "The database is in WAL mode on {mount}. That works only while every process that opens it runs on one machine; a second machine breaks it in silence."
            );
            let steps = vec![step(
                "Make sure that one machine alone opens it, or use a local volume, or rollback mode:",
                vec![format!("rootpage journal-mode {} delete -o {}", shell(&db), shell(&format!("{db}.delete-mode")))],
            )];
            out.push(Finding { kind: "wal-on-network-mount", urgency: Urgency::Warning, sentence, steps });
        }
        (WalSafety::Unknown, true) => {
            let sentence = format!(
                "The database is in WAL mode on {mount}. Whether processes share memory and locks there depends on the program behind it."
            );
            out.push(Finding { kind: "wal-on-unclear-mount", urgency: Urgency::Warning, sentence, steps: Vec::new() });
        }
        _ => {
            out.push(Finding { kind: "mount", urgency: Urgency::Note, sentence: format!("It lives on {mount}."), steps: Vec::new() });
        }
    }
    if let (Some(folder), Some(file)) = (of_folder, of_file)
        && (folder.id, folder.line) != (file.id, file.line)
    {
        let sentence = format!(
            "The file itself is a mount ({} of {}) on a folder of another mount ({}). Its -wal and -journal are created in that folder, not beside the file that is shared: whoever opens the file elsewhere does not see them.",
            file.fstype, file.source, folder.fstype
        );
        let steps = vec![step("Mount the folder, not the single file.", Vec::new())];
        out.push(Finding { kind: "file-is-a-mount", urgency: Urgency::Danger, sentence, steps });
    }
    if of_folder.is_some_and(Mount::is_read_only) {
        let sentence = format!(
            "The mount at {} is read-only: nothing can be written, and a log there cannot be read by every version of SQLite.",
            place.point
        );
        out.push(Finding { kind: "read-only-mount", urgency: Urgency::Warning, sentence, steps: Vec::new() });
    }
}

/// What the pages say.
pub(super) fn damage(x: &Examined, report: Option<&Result<Report>>, out: &mut Vec<Finding>) {
    let db = shell(&x.shown.display().to_string());
    match report {
        None => {}
        Some(Ok(report)) if report.verdict.class == Class::Healthy => {
            let sentence = "Every page of it reads, and its indexes agree with its tables.".to_owned();
            out.push(Finding { kind: "healthy", urgency: Urgency::Note, sentence, steps: Vec::new() });
        }
        Some(Ok(report)) => {
            let urgency = if is_structural(report) { Urgency::Danger } else { Urgency::Warning };
            let steps = vec![step(
                "Look closer, and write a clean copy:",
                vec![
                    format!("rootpage check {db}"),
                    format!("rootpage recover {db} -o {}", shell(&format!("{}.recovered", x.shown.display()))),
                ],
            )];
            out.push(Finding { kind: "damage", urgency, sentence: report.verdict.sentence.clone(), steps });
        }
        Some(Err(Error::Unstable { what, .. })) => {
            let sentence = format!("The database is written to at this moment ({what}): its pages were not judged.");
            let steps =
                vec![step("Stop the writer, or copy the file with its -wal, and look at the copy:", vec![format!("rootpage check {db}")])];
            out.push(Finding { kind: "being-written", urgency: Urgency::Warning, sentence, steps });
        }
        Some(Err(error)) => {
            let sentence = format!("The pages could not be read: {error}.");
            out.push(Finding { kind: "unreadable", urgency: Urgency::Danger, sentence, steps: Vec::new() });
        }
    }
}

/// Logs that are not there, large, or not in the file yet.
pub(super) fn sidecars(x: &Examined, real: &Path, out: &mut Vec<Finding>) {
    let wal = Which::Wal.of(real);
    let held = x.processes.holders.iter().any(|h| h.file == Which::Wal && !h.gone);
    match (&x.log, x.journal_mode) {
        (None, Some(JournalMode::Wal)) => {
            let shm = Which::Shm.of(real).is_file();
            let deleted = x.processes.holders.iter().any(|h| h.file == Which::Wal && h.gone);
            let (urgency, why) = match (shm, deleted) {
                (_, true) => (Urgency::Warning, "a process still has the deleted one open"),
                (true, _) => {
                    (Urgency::Danger, "its -shm is there, which SQLite removes together with the log: the log was left behind or lost")
                }
                _ => (
                    Urgency::Warning,
                    "SQLite removes it when the last program closes the database in order; after a crash or in an incident copy it holds the newest data",
                ),
            };
            let sentence = format!("The header says WAL, and there is no {}: {why}.", name(&wal));
            let steps = vec![step(
                format!(
                    "Ask the customer for {} (and {}), from the same moment as this file. Until then the newest rows may be missing.",
                    name(&wal),
                    name(&Which::Shm.of(real))
                ),
                Vec::new(),
            )];
            out.push(Finding { kind: "log-missing", urgency, sentence, steps });
        }
        (Some(log), mode) => {
            if log.pages_waiting > 0 {
                let sentence = format!(
                    "{} holds {} in {} that the database file does not have yet ({} not checkpointed; the log is {}). Whoever copies the file without its log loses them.",
                    name(&wal),
                    counted(log.commits, "commit"),
                    counted(log.frames, "frame"),
                    counted(log.pages_waiting, "page"),
                    bytes(log.bytes)
                );
                let urgency = if mode == Some(JournalMode::Wal) || held { Urgency::Note } else { Urgency::Warning };
                out.push(Finding { kind: "log-not-checkpointed", urgency, sentence, steps: Vec::new() });
            } else {
                let rest = if log.has_rest { "; it has frames behind its last commit" } else { "" };
                let sentence = format!("{} ({}) holds nothing that the database file does not have{rest}.", name(&wal), bytes(log.bytes));
                out.push(Finding { kind: "log-checkpointed", urgency: Urgency::Note, sentence, steps: Vec::new() });
            }
            if log.bytes > 64 << 20 {
                let sentence = format!(
                    "The log is large ({}). A reader that never ends keeps it from being reset; its size alone is no damage.",
                    bytes(log.bytes)
                );
                out.push(Finding { kind: "log-large", urgency: Urgency::Note, sentence, steps: Vec::new() });
            }
        }
        _ => {}
    }
    let journal = Which::Journal.of(real);
    if let Ok(meta) = std::fs::metadata(&journal)
        && meta.len() > 0
    {
        let sentence = format!(
            "{} is there ({}): a transaction did not end. SQLite rolls it back when it next opens the database.",
            name(&journal),
            bytes(meta.len())
        );
        out.push(Finding { kind: "journal-there", urgency: Urgency::Note, sentence, steps: Vec::new() });
    }
}

/// A store that has nothing in it, or is not there.
pub(super) fn emptiness(x: &Examined, report: Option<&Report>, out: &mut Vec<Finding>) {
    let mut say = |kind, urgency, sentence: &str| out.push(Finding { kind, urgency, sentence: sentence.to_owned(), steps: Vec::new() });
    match x.bytes {
        None => say("missing", Urgency::Danger, "There is no file at this path."),
        Some(0) if x.log.is_some_and(|l| l.frames > 0) => {
            say(
                "empty-with-log",
                Urgency::Danger,
                "The file has no byte, and its log has commits. Do not open it with SQLite: it would delete the log.",
            );
        }
        Some(0) => say("empty", Urgency::Warning, "The file has no byte: the database was never written, or was truncated."),
        Some(_) => {
            let Some(report) = report else { return };
            let tables = report.objects.iter().filter(|o| o.kind == "table" && o.id != 0);
            let (tables, rows) =
                tables.fold((0_u64, 0_u64), |(n, rows), o| (n.saturating_add(1), rows.saturating_add(o.rows.unwrap_or(0))));
            if report.verdict.class > Class::Housekeeping {
                return;
            }
            if tables == 0 {
                say(
                    "fresh",
                    Urgency::Warning,
                    "The database is empty: it has no table. A fresh one stands where the old one was, or this is not the right file.",
                );
            } else if rows == 0 {
                say(
                    "fresh",
                    Urgency::Warning,
                    "Every table is empty: a fresh database. If data was here, look for the old file, its backups and its log.",
                );
            }
        }
    }
}

/// Who has the database open, and who waits on whom.
pub(super) fn waiting(x: &Examined, out: &mut Vec<Finding>) {
    let here: Vec<&Holder> = x.processes.holders.iter().filter(|h| !h.gone).collect();
    if !here.is_empty() {
        let writers = processes(here.iter().copied().filter(|h| h.writes));
        let readers = processes(here.iter().copied().filter(|h| !here.iter().any(|w| w.pid == h.pid && w.writes)));
        let mut sentence = String::new();
        if !writers.is_empty() {
            sentence.push_str(&format!("Open for writing in {writers}."));
        }
        if !readers.is_empty() {
            sentence.push_str(&format!("{}Open for reading in {readers}.", if sentence.is_empty() { "" } else { " " }));
        }
        out.push(Finding { kind: "held", urgency: Urgency::Note, sentence, steps: Vec::new() });
    }
    let said = |pids: &[u32]| {
        let known = x.processes.holders.iter().filter(|h| pids.contains(&h.pid));
        let text = processes(known);
        if text.is_empty() { pids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ") } else { text }
    };
    for lock in x.locks.iter().filter(|l| l.blocks_writers) {
        let sentence = format!(
            "{} holds a lock that lets nobody else write: {}. Others get \"database is locked\" until it ends.",
            said(&lock.pids),
            lock.meaning
        );
        let steps = vec![step(
            format!(
                "If it holds the lock for long, it is in a transaction that does not end: look at process {} before you end it.",
                lock.pids.first().copied().unwrap_or(0)
            ),
            Vec::new(),
        )];
        out.push(Finding { kind: "write-lock", urgency: Urgency::Warning, sentence, steps });
    }
    for lock in x.locks.iter().filter(|l| l.waits) {
        let by = said(&lock.waits_for);
        let sentence = format!("{} waits for {} on the {} ({}).", said(&lock.pids), by, lock.file.words(), lock.meaning);
        out.push(Finding { kind: "lock-wait", urgency: Urgency::Warning, sentence, steps: Vec::new() });
    }
}

/// Whether a version of SQLite has the bug that a reset of the log may lose a checkpoint: 3.7.0 up to the releases that
/// mended it, 3.44.6, 3.50.7 and 3.51.3.
pub(super) fn has_reset_bug(version: u32) -> bool {
    (3_007_000..3_051_003).contains(&version) && !(3_050_007..3_051_000).contains(&version) && !(3_044_006..3_045_000).contains(&version)
}

/// The version in the header.
pub(super) fn version(x: &Examined, out: &mut Vec<Finding>) {
    let Some(version) = x.sqlite_version.filter(|v| has_reset_bug(*v)) else { return };
    if x.journal_mode != Some(JournalMode::Wal) {
        return;
    }
    let (major, minor, patch) = (version / 1_000_000, version / 1000 % 1000, version % 1000);
    let sentence = format!(
        "The header was last written by SQLite {major}.{minor}.{patch}, which may lose a checkpoint when the log is reset while two connections write (mended in 3.44.6, 3.50.7 and 3.51.3). The number is a lower bound: the program may have a newer one."
    );
    let steps = vec![step("Ask which SQLite the application has, and update it to 3.51.3 or later.", Vec::new())];
    out.push(Finding { kind: "wal-reset-bug", urgency: Urgency::Note, sentence, steps });
}

/// How many stores have something urgent, for the last line.
pub(super) fn summary(stores: &[Examined]) -> String {
    let urgent = |u: Urgency| stores.iter().filter(|s| s.findings.first().is_some_and(|f| f.urgency == u)).count();
    let n = |n: usize| count(crate::ids::wide(n));
    match (urgent(Urgency::Danger), urgent(Urgency::Warning)) {
        (0, 0) => format!("{}: nothing to do.", counted(crate::ids::wide(stores.len()), "database")),
        (danger, warned) => {
            format!("{}: {} in danger, {} with warnings.", counted(crate::ids::wide(stores.len()), "database"), n(danger), n(warned))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_with_the_reset_bug() {
        for bad in [3_007_000, 3_044_005, 3_045_000, 3_045_001, 3_050_006, 3_051_000, 3_051_002] {
            assert!(has_reset_bug(bad), "{bad}");
        }
        for good in [0, 3_006_999, 3_044_006, 3_044_999, 3_050_007, 3_051_003, 3_053_001] {
            assert!(!has_reset_bug(good), "{good}");
        }
    }
}
