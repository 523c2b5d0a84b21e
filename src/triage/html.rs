//! A triage as one self-contained page: no script, no network, everything from the evidence escaped.

use askama::Template;

use crate::error::{Error, Result};
use crate::host::doctor::Step;
use crate::report::human::{bytes, count, counted, escape};

use super::model::{Relation, Triage};

/// Rows of a table that the page shows.
const SHOWN: usize = 2_000;

#[derive(Template)]
#[template(path = "triage.html", escape = "html")]
struct Page {
    title: String,
    best: String,
    verdict: String,
    files: Vec<[String; 5]>,
    more_files: String,
    skipped: Vec<[String; 2]>,
    sources: Vec<SourceView>,
    missing: Vec<String>,
    steps: Vec<Step>,
    footer: String,
}

struct SourceView {
    head: String,
    relation: &'static str,
    verdict: String,
    facts: String,
    tables: Vec<[String; 2]>,
    only: Vec<[String; 3]>,
}

impl Triage {
    /// The page.
    ///
    /// # Errors
    /// I/O of the template engine, which writes to memory.
    pub fn html(&self) -> Result<String> {
        let with = |s: &super::model::SourceLine| {
            let sidecars = [&s.log, &s.journal].into_iter().flatten().map(|l| escape(l)).collect::<Vec<_>>().join(" and ");
            if sidecars.is_empty() { escape(&s.name) } else { format!("{} with {sidecars}", escape(&s.name)) }
        };
        let page = Page {
            title: escape(&self.path),
            best: match (self.sources.first(), &self.best) {
                (Some(s), Some(why)) => format!("Best source: {}: {}.", with(s), escape(why)),
                _ => "No database in this bundle.".to_owned(),
            },
            verdict: self.sources.first().map(|s| escape(&s.verdict)).unwrap_or_default(),
            files: self
                .files
                .iter()
                .take(SHOWN)
                .map(|f| {
                    let role = if f.role.is_empty() { escape(&f.what) } else { format!("{}; {}", escape(&f.what), escape(&f.role)) };
                    let rows = f.rows.map(count).unwrap_or_default();
                    let newest = f.newest.clone().unwrap_or_default();
                    let verdict = f.verdict.as_ref().map(|v| escape(v)).unwrap_or_default();
                    let held = if rows.is_empty() { String::new() } else { format!("{rows} rows, {newest}") };
                    [escape(&f.name), bytes(f.bytes), role, held, verdict]
                })
                .collect(),
            more_files: if self.files.len() > SHOWN { "The JSON lists all files.".to_owned() } else { String::new() },
            skipped: self.skipped.iter().take(SHOWN).map(|s| [escape(&s.name), escape(&s.why)]).collect(),
            sources: self
                .sources
                .iter()
                .take(SHOWN)
                .map(|s| SourceView {
                    head: with(s),
                    relation: match s.relation {
                        Relation::Best => "the best source",
                        Relation::SameStore => "the same store at another time",
                        Relation::OtherStore => "a store of the same application with other rows",
                        Relation::OtherDatabase => "another database",
                    },
                    verdict: escape(&s.verdict),
                    facts: {
                        let older = if s.older_versions > 0 {
                            format!(", {} in an older version", counted(s.older_versions, "row"))
                        } else {
                            String::new()
                        };
                        let change = count(u64::from(s.change_counter));
                        format!("{}, change counter {change}, {}{older}", counted(s.rows, "row"), counted(s.commits, "commit in the log"))
                    },
                    tables: s.tables.iter().filter(|(_, n)| **n > 0).map(|(t, n)| [escape(t), count(*n)]).collect(),
                    only: s
                        .only_here
                        .iter()
                        .map(|o| [escape(&o.table), count(o.rows), o.keys.iter().map(|k| escape(k)).collect::<Vec<_>>().join("; ")])
                        .collect(),
                })
                .collect(),
            missing: self.missing.iter().map(|m| escape(m)).collect(),
            steps: self.steps.clone(),
            footer: format!("rootpage {}", self.tool_version),
        };
        page.render().map_err(|e| Error::SelfCheck { what: format!("the page cannot be made: {e}") })
    }
}
