//! The report as one self-contained page: no network, no clock, everything from the evidence escaped.
#![expect(clippy::arithmetic_side_effects, reason = "counts of lines and palette entries that this module made itself")]

mod carved;
mod picture;
mod timeline;

use std::collections::BTreeMap;

use askama::Template;

use super::human::{bytes, count, counted, escape, name, passage};
use super::model::{Access, Class, OutputRole, Report, Status, Verb};
use super::next::{self, Step};
use super::phrases::{self, LISTED, Losses};
use crate::error::{Error, Result};
use crate::ids::wide;

/// Findings of one group that the page shows; all are counted.
const ITEMS: usize = 20;
/// Objects that a page lists one by one; a schema may have a hundred thousand, and a person reads the first.
const OBJECTS: usize = 2_000;
/// Objects with findings that stand open when the page is opened.
const OPEN: usize = 3;

#[derive(Template)]
#[template(path = "report.html", escape = "html")]
struct Page {
    title: String,
    kicker: &'static str,
    class: &'static str,
    class_words: &'static str,
    sentence: String,
    summary: Vec<String>,
    breakers: Vec<(String, String)>,
    more_breakers: String,
    has_carved: bool,
    carved_head: [&'static str; 7],
    carved: Vec<carved::CarvedView>,
    hints: Vec<String>,
    loss_head: [&'static str; 6],
    losses: Vec<[String; 6]>,
    loss_lines: Vec<Loss>,
    loss_sums: Vec<String>,
    fold_lines: bool,
    more_losses: Vec<[String; 6]>,
    more_losses_words: String,
    after_losses: Vec<String>,
    left_out: Vec<String>,
    steps: Vec<Step>,
    timeline: String,
    timeline_words: String,
    has_map: bool,
    map_words: String,
    roles: Vec<picture::RoleView>,
    damaged_pages: u64,
    damaged_words: String,
    page_count: u64,
    sidecars: Vec<SidecarView>,
    overruled: Vec<String>,
    findings_count: String,
    findings: Vec<ObjectView>,
    header: Vec<HeaderView>,
    objects: Vec<Row>,
    files: Vec<FileView>,
    moved: Vec<String>,
    command: String,
    footer: String,
    css: &'static str,
    palette_css: String,
    js: &'static str,
    data: String,
}

struct Loss {
    name: String,
    lines: Vec<String>,
}

struct SidecarView {
    head: String,
    lines: Vec<String>,
}

struct ObjectView {
    class: &'static str,
    class_words: &'static str,
    title: String,
    count: String,
    open: bool,
    groups: Vec<GroupView>,
}

struct GroupView {
    class: &'static str,
    code: String,
    name: String,
    times: String,
    items: Vec<String>,
    more: u64,
    more_words: String,
    action: String,
}

struct HeaderView {
    field: String,
    value: String,
    evidence: String,
    overruled: bool,
}

struct Row {
    name: String,
    status: &'static str,
    class: &'static str,
    root: String,
    pages: String,
    rows: String,
    findings: String,
}

struct FileView {
    path: String,
    role: &'static str,
    bytes: String,
    hash: String,
    lines: Vec<String>,
}

/// The whole report; of `map` the verdict, the map, findings and files.
///
/// # Errors
/// None in practice: the page is written to memory.
pub fn render(report: &Report) -> Result<String> {
    let recovery = report.recovery.as_ref();
    let losses = recovery.map(|r| Losses::new(report, r));
    let told = losses.as_ref().map(|l| l.told.as_slice()).unwrap_or_default();
    let folded = || losses.iter().flat_map(|l| l.rest.iter().chain(&l.nameless));
    let loss_lines: Vec<Loss> = told
        .iter()
        .map(|t| Loss { name: name(&t.name), lines: phrases::loss_lines(report, t, ITEMS) })
        .filter(|l| !l.lines.is_empty())
        .collect();
    let mut summary: Vec<String> = recovery.map(phrases::ledger).into_iter().collect();
    if let Some(snapshot) = &report.snapshot {
        summary.push(format!("Read as of: {}.", escape(snapshot)));
    }
    let breakers = recovery.map(|r| r.breakers.as_slice()).unwrap_or_default();
    let picture = picture::Picture::new(report);
    let all = report.findings.iter().fold(0_u64, |sum, g| sum.saturating_add(g.count));
    let page = Page {
        title: phrases::main_path(report).map_or_else(|| "no input".to_owned(), |p| escape(file_name(p))),
        kicker: match report.verb {
            Verb::Recover => "SQLite recovery report",
            Verb::Map => "SQLite page map",
            Verb::Carve => "SQLite carving report",
            _ => "SQLite damage report",
        },
        class: tone(report.verdict.class),
        class_words: class_words(report.verdict.class),
        sentence: escape(&report.verdict.sentence),
        summary,
        breakers: breakers.iter().take(ITEMS).map(|b| (phrases::breaker(b), escape(&b.restore))).collect(),
        more_breakers: match breakers.len().checked_sub(ITEMS) {
            Some(more) if more > 0 => format!("and {} more in the JSON report", count(wide(more))),
            _ => String::new(),
        },
        has_carved: report.carving.is_some(),
        carved_head: carved::HEAD,
        carved: carved::tables(report),
        hints: carved::hints(report),
        loss_head: phrases::LOSS_HEAD,
        losses: losses.iter().flat_map(Losses::rows).collect(),
        // What to do next must not drown in it.
        fold_lines: loss_lines.iter().map(|l| l.lines.len() + 1).sum::<usize>() > LISTED,
        loss_lines,
        loss_sums: losses.iter().flat_map(Losses::sums).collect(),
        more_losses: folded().take(OBJECTS).map(|t| phrases::loss_row(t)).collect(),
        more_losses_words: match folded().count() {
            n if n > OBJECTS => format!("The first {} of {} more tables", count(wide(OBJECTS)), count(wide(n))),
            n => counted(wide(n), "more table"),
        },
        after_losses: recovery
            .filter(|r| r.output(OutputRole::Copy).is_some())
            .and_then(|r| phrases::whole_tables(report, r))
            .into_iter()
            .chain(phrases::hidden(report))
            .collect(),
        left_out: recovery.iter().flat_map(|r| &r.left_out).take(OBJECTS).map(phrases::left_out).collect(),
        steps: next::steps(report),
        timeline: report.timeline.as_ref().map(timeline::svg).unwrap_or_default(),
        timeline_words: report.timeline.as_ref().map(timeline::words).unwrap_or_default(),
        has_map: !report.map.is_empty(),
        map_words: format!("{} of {}.", counted(report.page_count, "page"), bytes(u64::from(report.page_size))),
        damaged_pages: picture.damaged,
        damaged_words: count(picture.damaged),
        page_count: report.page_count,
        roles: picture.roles,
        sidecars: report
            .sidecars
            .iter()
            .map(|s| SidecarView { head: phrases::sidecar(s), lines: s.views.iter().take(OBJECTS).map(|v| phrases::view(s, v)).collect() })
            .collect(),
        overruled: report.overruled.iter().take(OBJECTS).map(phrases::overruled).collect(),
        findings_count: count(all),
        findings: findings(report),
        header: report
            .header
            .iter()
            .map(|h| HeaderView {
                field: escape(&h.field),
                value: passage(&h.value),
                evidence: passage(&h.evidence),
                overruled: h.overruled,
            })
            .collect(),
        objects: objects(report),
        files: files(report),
        moved: recovery.iter().flat_map(|r| &r.moved_aside).map(phrases::moved).collect(),
        // Ready for a shell as it is: words with anything odd in them are quoted.
        command: report.command.clone(),
        footer: format!(
            "rootpage {}, report format {}, exit code {}. The evidence was opened read-only.",
            report.tool_version, report.format, report.exit_code
        ),
        css: include_str!("html/report.css"),
        palette_css: picture.css,
        js: include_str!("html/report.js"),
        data: picture.data,
    };
    page.render().map_err(|e| Error::Limit { what: format!("the HTML report cannot be rendered: {e}") })
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().filter(|n| !n.is_empty()).unwrap_or(path)
}

const fn tone(class: Class) -> &'static str {
    match class {
        Class::Healthy => "good",
        Class::Housekeeping | Class::SearchIndexOnly | Class::IndexOnly => "warn",
        Class::Structural | Class::NotADatabase => "bad",
    }
}

const fn class_words(class: Class) -> &'static str {
    match class {
        Class::Healthy => "Healthy",
        Class::Housekeeping => "Housekeeping only",
        Class::SearchIndexOnly => "Search index only",
        Class::IndexOnly => "Index only",
        Class::Structural => "Data damaged",
        Class::NotADatabase => "Not a database",
    }
}

fn findings(report: &Report) -> Vec<ObjectView> {
    let mut by_object: BTreeMap<Option<u32>, Vec<&super::model::FindingGroup>> = BTreeMap::new();
    for group in &report.findings {
        by_object.entry(group.object).or_default().push(group);
    }
    let worst = |groups: &[&super::model::FindingGroup]| groups.iter().map(|g| g.class).max().unwrap_or_default();
    let mut order: Vec<_> = by_object.into_iter().collect();
    order.sort_by(|a, b| worst(&b.1).cmp(&worst(&a.1)).then(a.0.cmp(&b.0)));
    order
        .iter()
        .take(OBJECTS)
        .enumerate()
        .map(|(i, (object, groups))| {
            let class = worst(groups);
            ObjectView {
                class: if class == Class::Healthy { "dim" } else { tone(class) },
                class_words: if class == Class::Healthy { "note" } else { class.word() },
                title: phrases::object(report, *object, groups.first().copied()),
                count: count(groups.iter().fold(0_u64, |sum, g| sum.saturating_add(g.count))),
                open: i < OPEN && class > Class::Housekeeping,
                groups: groups
                    .iter()
                    .map(|g| {
                        let more = g.count.saturating_sub(wide(g.kept.len().min(ITEMS)));
                        GroupView {
                            class: if g.class == Class::Healthy { "dim" } else { tone(g.class) },
                            code: g.code.to_string(),
                            name: escape(&g.name),
                            times: phrases::times(g.count),
                            items: g.kept.iter().take(ITEMS).map(phrases::finding).collect(),
                            more,
                            more_words: count(more),
                            action: escape(&g.action),
                        }
                    })
                    .collect(),
            }
        })
        .collect()
}

fn objects(report: &Report) -> Vec<Row> {
    report
        .objects
        .iter()
        .take(OBJECTS)
        .map(|o| Row {
            name: format!("{} {}", escape(&o.kind), name(&o.name)),
            status: match o.status {
                Status::Whole => "whole",
                Status::Damaged => "damaged",
                Status::Missing => "missing",
            },
            class: if o.status == Status::Whole { "dim" } else { "bad" },
            root: o.root.map(|n| n.to_string()).unwrap_or_default(),
            pages: count(o.pages),
            rows: o.rows.map(count).unwrap_or_default(),
            findings: count(o.findings),
        })
        .collect()
}

fn files(report: &Report) -> Vec<FileView> {
    let inputs = report.inputs.iter().map(|i| {
        let mut lines = Vec::new();
        match &i.sha256_after {
            Some(after) if Some(after) == i.sha256_before.as_ref() => lines.push("unchanged after the run".to_owned()),
            Some(_) => lines.push("CHANGED while it was read".to_owned()),
            None => {}
        }
        if i.access == Access::Snapshot {
            lines.push("read as a snapshot".to_owned());
        }
        lines.extend(i.unreadable.iter().take(ITEMS).map(|[a, b]| format!("not readable: bytes {} to {}", count(*a), count(*b))));
        let hash = i.sha256_before.clone().unwrap_or_else(|| "not taken".to_owned());
        FileView { path: escape(&i.path), role: phrases::input_role(i.role), bytes: bytes(i.bytes), hash, lines }
    });
    let outputs = report.recovery.iter().flat_map(|r| &r.outputs).map(|o| FileView {
        path: escape(&o.path),
        role: match o.role {
            OutputRole::Copy => "clean copy",
            OutputRole::Salvage => "salvage database",
            OutputRole::FinishSql => "statements to finish with",
            OutputRole::ReportJson => "report, JSON",
            OutputRole::ReportHtml => "report, HTML",
        },
        bytes: if o.bytes > 0 { bytes(o.bytes) } else { String::new() },
        hash: o.sha256.clone().unwrap_or_default(),
        lines: Vec::new(),
    });
    inputs.chain(outputs).collect()
}
