//! The verdict in one sentence.

use super::human::{count, counted, short_name};
use super::model::{Class, FindingGroup, Report};
use super::phrases::is_of_declaration;
use crate::finding::{Code, Subject};
use crate::ids::wide;

/// What is wrong, in one sentence that a person acts on. Names are cut where they are long, not escaped.
pub(super) fn verdict(report: &Report) -> String {
    let class = report.verdict.class;
    // A table whose declaration was found elsewhere has lost nothing by it: others are what a person asks about.
    let mut worst: Vec<&FindingGroup> = report.findings.iter().filter(|g| g.class == class).collect();
    if worst.iter().any(|g| g.object_name.is_some() && !is_of_declaration(g)) {
        worst.retain(|g| !is_of_declaration(g));
    }
    let names = names(report, worst.into_iter());
    let of = |what: &str| if names.is_empty() { String::new() } else { format!("{what}{names}") };
    let all_are = |what: &dyn Fn(&FindingGroup) -> bool| {
        let mut all = report.findings.iter().filter(|g| g.class == class).peekable();
        all.peek().is_some() && all.all(what)
    };
    let only_sidecars = all_are(&is_of_sidecar);
    match class {
        Class::Healthy if report.findings.is_empty() => "The database is healthy: no finding.".to_owned(),
        Class::Healthy if only_sidecars => {
            "The database is healthy: its structure is whole; the notes below are about the files beside it.".to_owned()
        }
        Class::Healthy => "The database is healthy: its structure is whole; the notes below are about its content.".to_owned(),
        Class::Housekeeping if only_sidecars => {
            "Every table and index is whole; a file beside the database is not what SQLite would take it for. No data is affected."
                .to_owned()
        }
        Class::Structural if only_sidecars => in_doubt(report),
        // Pages that nobody owns may be all that is left of a table whose schema row is gone.
        Class::Housekeeping if report.findings.iter().any(|g| g.code == Code::PageWithoutOwner) => {
            "Every table and index that the schema names is whole; pages that belong to none of them hold deleted rows, or a table that the schema lost.".to_owned()
        }
        Class::Housekeeping => {
            "Every table and index is whole; only the bookkeeping of free pages and counters is wrong. No data is affected.".to_owned()
        }
        Class::SearchIndexOnly => format!("Search is degraded{}; the rows that it searches are intact.", of(": the full-text index of ")),
        Class::IndexOnly if all_are(&|g| is_program(report, g)) => {
            format!("The data is whole{}; statements that need them fail.", of(", but not the views and triggers: "))
        }
        Class::IndexOnly => {
            format!("The data is whole{}; queries that use a damaged index may give wrong answers.", of(", but not the index: "))
        }
        Class::Structural if names.is_empty() => format!("The file as a whole is damaged{}.", what(report)),
        Class::Structural => format!("Data is damaged{}.", of(" in ")),
        Class::NotADatabase => "The file is not an SQLite database.".to_owned(),
    }
}

/// Up to three findings of the file as a whole.
fn what(report: &Report) -> String {
    let all: Vec<&FindingGroup> = report.findings.iter().filter(|g| g.class == Class::Structural).collect();
    let first: Vec<String> = all.iter().take(3).map(|g| format!("{} ({})", g.name, g.code)).collect();
    match all.len().saturating_sub(first.len()) {
        _ if first.is_empty() => String::new(),
        0 => format!(": {}", first.join(", ")),
        more => format!(": {} and {} more", first.join(", "), count(wide(more))),
    }
}

/// Whether a finding is about a view or a trigger.
fn is_program(report: &Report, group: &FindingGroup) -> bool {
    group.object.and_then(|id| report.object(id)).is_some_and(|o| o.kind == "view" || o.kind == "trigger")
}

/// Whether a finding is about a file beside the database.
fn is_of_sidecar(group: &FindingGroup) -> bool {
    group.code.problem().subject == Subject::Sidecar
}

/// Every page that is shown is whole; whether it is the right state is the question.
fn in_doubt(report: &Report) -> String {
    let rows = match report.hidden_rows {
        0 => String::new(),
        n => format!(": {} only in a state that is not shown", counted(n, "row")),
    };
    if report.findings.iter().any(|g| g.code == Code::CommitsHidden) {
        format!("The log holds commits that SQLite does not read{rows}.")
    } else if report.findings.iter().any(|g| g.code == Code::WalWithoutMain || g.code == Code::JournalWithoutMain) {
        "Data is damaged: the main file is empty, and SQLite would delete the file beside it.".to_owned()
    } else if report.findings.iter().any(|g| g.code == Code::FramePageOutside || g.code == Code::CommitPagesMissing) {
        "Data is damaged: pages of the last commit are missing.".to_owned()
    } else {
        format!("It is not certain that the state which SQLite would show is the right one{rows}.")
    }
}

/// Up to three names, and how many more. Tables in which a full-text index keeps its parts go by the name of the index.
fn names<'a>(report: &'a Report, groups: impl Iterator<Item = &'a FindingGroup>) -> String {
    let family = |g: &FindingGroup| {
        let shadow = report.objects.iter().find(|o| Some(o.id) == g.object && o.kind == "table" && o.family == "fts-shadow")?;
        shadow.table.as_deref()
    };
    let mut all: Vec<&str> = Vec::new();
    for name in groups.filter_map(|g| family(g).or(g.object_name.as_deref())) {
        if !all.contains(&name) {
            all.push(name);
        }
    }
    let mut out = all.iter().take(3).map(|n| short_name(n)).collect::<Vec<_>>().join(", ");
    if all.len() > 3 {
        out.push_str(&format!(" and {} more", count(wide(all.len().saturating_sub(3)))));
    }
    out
}
