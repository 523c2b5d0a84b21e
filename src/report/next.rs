//! What to do next: the exact commands, in the order they are to be run.

use super::human::shell;
use super::model::{Class, Input, InputRole, OutputRole, Report, Verb};

/// A step: a sentence, and commands ready for a POSIX shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// What and why. Made by this module alone, holds no text of the evidence.
    pub words: String,
    /// The commands, one a line.
    pub commands: Vec<String>,
}

/// The steps that follow a report.
#[must_use]
pub fn steps(report: &Report) -> Vec<Step> {
    let mut steps = match report.verb {
        Verb::Recover => after_recover(report),
        Verb::Check => after_check(report),
        _ => Vec::new(),
    };
    // A report is text, and so are the paths in it.
    if steps.iter().flat_map(|s| &s.commands).any(|c| c.contains(char::REPLACEMENT_CHARACTER)) {
        let words = "The name of a file is not UTF-8, and no command can be printed for it. Copy the file to a plain name first.";
        for step in &mut steps {
            step.commands.retain(|c| !c.contains(char::REPLACEMENT_CHARACTER));
        }
        steps.insert(0, step(words, vec![]));
    }
    steps
}

fn step(words: &str, commands: Vec<String>) -> Step {
    Step { words: words.to_owned(), commands }
}

fn main_input(report: &Report) -> Option<&Input> {
    report.inputs.iter().find(|i| i.role == InputRole::Main).or(report.inputs.first())
}

/// The options that name the evidence, with a blank in front.
fn again(report: &Report) -> String {
    if report.evidence_options.is_empty() { String::new() } else { format!(" {}", report.evidence_options) }
}

fn after_check(report: &Report) -> Vec<Step> {
    let Some(path) = main_input(report).map(|i| i.path.as_str()) else { return Vec::new() };
    let recover = format!("rootpage recover {}{} -o {}", shell(path), again(report), shell(&format!("{path}.recovered")));
    match report.verdict.class {
        Class::Healthy => Vec::new(),
        Class::NotADatabase => vec![step("Look for the real file: a backup, or a copy taken while the application was stopped.", vec![])],
        Class::Housekeeping | Class::SearchIndexOnly | Class::IndexOnly => {
            vec![step("No row is at stake. Write a clean copy, in which every index is built anew:", vec![recover])]
        }
        Class::Structural => vec![step(
            "Keep this file and its -wal and -journal as they are. Do not open them with SQLite, do not VACUUM. Write a clean copy:",
            vec![recover],
        )],
    }
}

fn after_recover(report: &Report) -> Vec<Step> {
    let Some(recovery) = &report.recovery else { return Vec::new() };
    let (Some(db), Some(out)) = (main_input(report), recovery.output(OutputRole::Copy)) else {
        return vec![step("No copy was written. Look for a backup, an older copy, or the -wal of the database.", vec![])];
    };
    let mut steps = Vec::new();
    if recovery.tables.iter().all(|t| t.rows_written == 0) && report.verdict.class > Class::Housekeeping {
        return vec![step(
            "The copy is empty: do not put it in place. If the schema is lost, give one from a healthy database of the same application:",
            vec![format!(
                "rootpage recover {}{} --schema HEALTHY.db -o {}",
                shell(&db.path),
                again(report),
                shell(&format!("{}.2", out.path))
            )],
        )];
    }
    if let Some(finish) = recovery.output(OutputRole::FinishSql) {
        steps.push(step(
            "Objects that could not be made here are in the finish script, each with the reason. Read it, then run it with a SQLite that has the collations and functions of the application loaded:",
            vec![format!("sqlite3 {} < {}", shell(&out.path), shell(&finish.path))],
        ));
    }
    let (db, out) = (db.path.as_str(), out.path.as_str());
    let old = format!("{db}.damaged");
    let mut commands: Vec<String> = ["-wal", "-shm", "-journal"]
        .iter()
        .map(|s| {
            let (from, to) = (shell(&format!("{db}{s}")), shell(&format!("{old}{s}")));
            format!("[ ! -e {from} ] || mv -n {from} {to}")
        })
        .collect();
    commands.push(format!("mv -n {} {}", shell(db), shell(&old)));
    commands.push(format!("mv -n {} {}", shell(out), shell(db)));
    steps.push(step(
        "Put the copy in place. Stop every program that uses the database first. The old -wal, -shm and -journal must go first: beside the copy SQLite would show old data through them.",
        commands,
    ));
    if let Some(salvage) = recovery.output(OutputRole::Salvage) {
        let aside = recovery.tables.iter().any(|t| t.rows_set_aside() > 0);
        let gone = recovery.tables.iter().any(|t| !t.lost.is_empty() || !t.unaccounted.is_empty());
        steps.push(step(
            match (aside, gone) {
                (true, false) => "Rows that were set aside, each with its place and the reason, can be looked at here:",
                (false, true) => "What is left of rows that are gone, such as the values that an index still has, can be looked at here:",
                _ => "Rows that were set aside, and what is left of rows that are gone, can be looked at here, each with its place and the reason:",
            },
            vec![format!("sqlite3 {} .tables", shell(&salvage.path))],
        ));
        if aside {
            steps.push(step(
                "Rows that were set aside come back into a new copy, with their indexes and search indexes; this says what would be restored and what conflicts:",
                vec![format!("rootpage restore {} --from {} --dry-run", shell(out), shell(&salvage.path))],
            ));
        }
    }
    steps
}
