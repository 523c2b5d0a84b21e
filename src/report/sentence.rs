//! The verdict in one sentence.

use super::model::{Class, FindingGroup, Report};

/// What is wrong, in one sentence that a person acts on. Names are quoted as they are, not escaped.
pub(super) fn verdict(report: &Report) -> String {
    let class = report.verdict.class;
    let names = names(report.findings.iter().filter(|g| g.class == class));
    let of = |what: &str| if names.is_empty() { String::new() } else { format!("{what}{names}") };
    match class {
        Class::Healthy if report.findings.is_empty() => "The database is healthy: no finding.".to_owned(),
        Class::Healthy => "The database is healthy: its structure is whole; the notes below are about its content.".to_owned(),
        Class::Housekeeping => {
            "Every table and index is whole; only the bookkeeping of free pages and counters is wrong. No data is affected.".to_owned()
        }
        Class::SearchIndexOnly => format!("Search is degraded{}; the rows that it searches are intact.", of(": the full-text index of ")),
        Class::IndexOnly => {
            format!("The data is whole{}; queries that use a damaged index may give wrong answers.", of(", but not the index: "))
        }
        Class::Structural => format!("Data is damaged{}.", of(" in ")),
        Class::NotADatabase => "The file is not an SQLite database.".to_owned(),
    }
}

/// Up to three names, and how many more.
fn names<'a>(groups: impl Iterator<Item = &'a FindingGroup>) -> String {
    let mut all: Vec<&str> = Vec::new();
    for name in groups.filter_map(|g| g.object_name.as_deref()) {
        if !all.contains(&name) {
            all.push(name);
        }
    }
    let mut out = all.iter().take(3).copied().collect::<Vec<_>>().join(", ");
    if all.len() > 3 {
        out.push_str(&format!(" and {} more", all.len().saturating_sub(3)));
    }
    out
}
