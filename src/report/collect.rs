//! From findings of the layers to the groups of the report.

use std::collections::BTreeMap;

use super::model::{Class, FindingGroup, FindingItem};
use crate::finding::{Code, Finding, Findings, Origin};
use crate::ids::ObjectId;

/// The findings as groups of the report, in the order of code and object; [`super::Report::seal`] puts the most severe first.
///
/// `class` tells for which verdict a code on an object counts ([`Class::Healthy`]: a note), `name` names an object.
#[must_use]
pub fn groups(
    log: &Findings,
    class: impl Fn(Code, Option<ObjectId>) -> Class,
    name: impl Fn(ObjectId) -> Option<String>,
) -> Vec<FindingGroup> {
    let mut kept: BTreeMap<(Code, Option<ObjectId>), Vec<FindingItem>> = BTreeMap::new();
    for finding in log.kept() {
        kept.entry((finding.defect.code, finding.site.object)).or_default().push(item(finding));
    }
    log.counts()
        .iter()
        .map(|(&(code, object), &count)| {
            let problem = code.problem();
            FindingGroup {
                code,
                name: problem.name.to_owned(),
                class: class(code, object),
                object: object.map(|o| o.0),
                object_name: object.and_then(&name),
                count,
                action: problem.action.to_owned(),
                kept: kept.remove(&(code, object)).unwrap_or_default(),
            }
        })
        .collect()
}

/// A finding as the report shows it.
#[must_use]
pub fn item(finding: &Finding) -> FindingItem {
    FindingItem {
        page: finding.site.page.map(|p| p.get()),
        cell: finding.site.cell.map(|c| c.0),
        origin: origin(finding.site.origin),
        at: finding.defect.at,
        got: finding.defect.got,
        want: finding.defect.want,
        sentence: finding.sentence(),
        detail: finding.detail.as_deref().map(str::to_owned),
    }
}

/// An origin in words: "main", "wal frame 7", "journal record 3"; "wal" for the log as a whole.
#[must_use]
pub fn origin(origin: Origin) -> String {
    match origin {
        Origin::Main => "main".to_owned(),
        Origin::Wal { frame } if frame.0 == 0 => "wal".to_owned(),
        Origin::Wal { frame } => format!("wal frame {}", frame.0),
        Origin::Journal { record: 0 } => "journal".to_owned(),
        Origin::Journal { record } => format!("journal record {record}"),
    }
}
