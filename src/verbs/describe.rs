//! From a survey to the report model.

use std::collections::{BTreeMap, BTreeSet};

use crate::finding::{Bytes, Code};
use crate::ids::{ObjectId, PageNo, wide};
use crate::report::collect;
use crate::report::model::{Class, Object, PageMark, PageRun, Report, Status};
use crate::schema::{Family, FtsPart};
use crate::survey::{Content, Survey, verdict};
use crate::tree::{Owner, Role};

/// The class of the survey as the report says it.
pub(crate) fn class(class: verdict::Class) -> Class {
    match class {
        verdict::Class::Healthy => Class::Healthy,
        verdict::Class::Housekeeping => Class::Housekeeping,
        verdict::Class::SearchIndexOnly => Class::SearchIndexOnly,
        verdict::Class::IndexOnly => Class::IndexOnly,
        verdict::Class::Structural => Class::Structural,
    }
}

/// Enters everything that the survey says.
pub(crate) fn survey(s: &Survey<'_>, report: &mut Report) {
    report.page_count = u64::from(s.pages.count());
    report.verdict.class = class(s.class());
    report.findings = collect::groups(
        &s.findings,
        |code, object| class(verdict::class_of(code, object, &s.catalog)),
        |id| s.catalog.get(id).map(|o| o.name.text()),
    );
    let mut findings: BTreeMap<ObjectId, u64> = BTreeMap::new();
    for ((_, object), n) in s.findings.counts() {
        if let Some(id) = object {
            let sum = findings.entry(*id).or_insert(0);
            *sum = sum.saturating_add(*n);
        }
    }
    let mut pages: BTreeMap<Owner, u64> = BTreeMap::new();
    let damaged: BTreeSet<PageNo> = s.findings.pages().filter(|(_, code)| code.problem().bytes == Bytes::Here).map(|(no, _)| no).collect();
    report.marks = marks(s);
    let mut at = Some(PageNo::ONE);
    while let Some(no) = at {
        if no.get() > s.pages.count() {
            break;
        }
        let role = s.claims.role(no);
        let owner = s.claims.owner(no);
        let sum = report.pages_by_role.entry(role.word().to_owned()).or_insert(0);
        *sum = sum.saturating_add(1);
        if let Some(owner) = owner {
            let sum = pages.entry(owner).or_insert(0);
            *sum = sum.saturating_add(1);
        }
        let run = PageRun {
            first: no.get(),
            count: 1,
            role: role.word().to_owned(),
            owner: owner.and_then(|o| s.trees.get(crate::ids::idx(o.0))).map(|t| t.object.0),
            origin: collect::origin(s.pages.origin(no)).split(' ').next().unwrap_or_default().to_owned(),
            damaged: damaged.contains(&no) || role == Role::Unreadable,
            overruled: s.claims.ruling(no).is_some(),
        };
        match report.map.last_mut() {
            Some(last) if same_run(last, &run) => last.count = last.count.saturating_add(1),
            _ => report.map.push(run),
        }
        at = no.next();
    }
    for object in s.catalog.objects() {
        let place = s.trees.iter().position(|t| t.object == object.id);
        let tree = place.and_then(|i| s.trees.get(i));
        let count = findings.get(&object.id).copied().unwrap_or(0);
        let bad = s.findings.counts().keys().any(|(code, o)| {
            *o == Some(object.id) && *code != Code::OrphanContent && verdict::class_of(*code, *o, &s.catalog) > verdict::Class::Housekeeping
        });
        let missing = object.kind.has_tree() && tree.is_none_or(|t| t.tree.slots.is_empty() || t.tree.leaves().next().is_none());
        report.objects.push(Object {
            id: object.id.0,
            kind: object.kind.label().to_owned(),
            name: object.name.text(),
            table: object
                .table
                .filter(|t| *t != object.id)
                .or(object.family.virtual_table())
                .and_then(|t| s.catalog.get(t))
                .map(|t| t.name.text()),
            root: object.root.map(|r| r.0.get()),
            family: family(object.family).to_owned(),
            status: if missing {
                Status::Missing
            } else if bad {
                Status::Damaged
            } else {
                Status::Whole
            },
            rows: tree.and_then(|t| match &t.content {
                Some(Content::Table { scan, .. }) => Some(scan.cells),
                _ => None,
            }),
            pages: place.and_then(|i| u32::try_from(i).ok()).and_then(|i| pages.get(&Owner(i))).copied().unwrap_or(0),
            findings: count,
        });
    }
    debug_assert_eq!(wide(report.objects.len()), wide(s.catalog.objects().len()));
}

/// The codes of each page that a finding names, neighbours with the same ones as one.
fn marks(s: &Survey<'_>) -> Vec<PageMark> {
    let mut marks: Vec<PageMark> = Vec::new();
    let mut close = |page: PageNo, codes: Vec<String>| match marks.last_mut() {
        Some(last) if last.codes == codes && last.first.checked_add(last.count) == Some(page.get()) => {
            last.count = last.count.saturating_add(1);
        }
        _ => marks.push(PageMark { first: page.get(), count: 1, codes }),
    };
    let mut open: Option<(PageNo, Vec<String>)> = None;
    for (page, code) in s.findings.pages().filter(|(page, _)| page.get() <= s.pages.count()) {
        match &mut open {
            Some((at, codes)) if *at == page => codes.push(code.problem().id.to_owned()),
            _ => {
                if let Some((at, codes)) = open.replace((page, vec![code.problem().id.to_owned()])) {
                    close(at, codes);
                }
            }
        }
    }
    if let Some((at, codes)) = open {
        close(at, codes);
    }
    marks
}

fn same_run(a: &PageRun, b: &PageRun) -> bool {
    a.role == b.role && a.owner == b.owner && a.origin == b.origin && (a.damaged, a.overruled) == (b.damaged, b.overruled)
}

fn family(family: Family) -> &'static str {
    match family {
        Family::Table | Family::Sequence | Family::Stat | Family::OrphanShadow { part: FtsPart::Content, .. } => "table",
        Family::Index => "index",
        Family::FtsShadow { .. } => "fts-shadow",
        Family::VirtualShadow { .. } | Family::OrphanShadow { .. } => "virtual-table-shadow",
        Family::Schema => "schema",
        Family::None => "none",
    }
}
