//! What the findings come to, in words a person acts on.

use crate::finding::{Code, Findings, Weight};
use crate::ids::ObjectId;
use crate::schema::{Catalog, Family, FtsModule, FtsPart, ObjectKind, families};

/// How bad it is. The order is the order of severity, worst last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Class {
    /// No finding that matters.
    #[default]
    Healthy,
    /// Freelist, pointer map, counters; no data and no index is touched.
    Housekeeping,
    /// A full-text index is damaged; the rows it indexes are whole.
    SearchIndexOnly,
    /// An index is damaged; the tables are whole.
    IndexOnly,
    /// A table that holds data is damaged.
    Structural,
}

/// The worst class of all findings.
#[must_use]
pub fn class(findings: &Findings, catalog: &Catalog) -> Class {
    findings.counts().keys().map(|(code, object)| class_of(*code, *object, catalog)).max().unwrap_or_default()
}

/// What a finding on an object counts for: a column of the problem table.
#[must_use]
pub fn class_of(code: Code, object: Option<ObjectId>, catalog: &Catalog) -> Class {
    match code.problem().weight {
        Weight::Note => Class::Healthy,
        Weight::Housekeeping => Class::Housekeeping,
        Weight::Object => object.map_or(Class::Structural, |id| of_object(id, catalog)),
        Weight::Data => Class::Structural,
        Weight::Shadow => object.map_or(Class::Structural, |id| of_missing_shadow(id, catalog)),
    }
}

/// What damage to an object is damage to.
#[must_use]
pub fn of_object(id: ObjectId, catalog: &Catalog) -> Class {
    let Some(object) = catalog.get(id) else { return Class::Structural };
    match object.family {
        Family::Index => match object.table.and_then(|t| catalog.get(t)).map(|t| t.family) {
            Some(Family::FtsShadow { part: FtsPart::Content, .. }) | Some(Family::Table) | None => Class::IndexOnly,
            Some(Family::FtsShadow { .. }) => Class::SearchIndexOnly,
            Some(_) => Class::IndexOnly,
        },
        Family::FtsShadow { module: FtsModule::Fts5 | FtsModule::Fts3, part, of } => match part {
            FtsPart::Content => Class::Structural,
            // Without content elsewhere the index is the only copy of the text.
            _ if is_contentless(of, catalog) => Class::Structural,
            _ => Class::SearchIndexOnly,
        },
        // Of a full-text index whose text is elsewhere the declaration says all there is to it.
        Family::None if is_search_index_of_other(object) => Class::SearchIndexOnly,
        Family::OrphanShadow { part: FtsPart::Content, .. } if object.kind == ObjectKind::Table => Class::Structural,
        Family::OrphanShadow { part: FtsPart::Content, .. } => Class::IndexOnly,
        Family::OrphanShadow { .. } => Class::SearchIndexOnly,
        Family::Stat => Class::Housekeeping,
        _ if object.kind == ObjectKind::View || object.kind == ObjectKind::Trigger => Class::IndexOnly,
        _ => Class::Structural,
    }
}

fn is_search_index_of_other(object: &crate::schema::Object) -> bool {
    let content = object.virtual_def().filter(|d| d.module.same(b"fts5")).and_then(|d| families::option(d, "content"));
    content.is_some_and(|c| !c.is_empty())
}

fn is_contentless(of: ObjectId, catalog: &Catalog) -> bool {
    catalog.get(of).and_then(|o| o.virtual_def()).is_some_and(families::is_contentless)
}

/// What it means that shadow tables of a virtual table are missing: only search suffers where the text is in another table.
fn of_missing_shadow(id: ObjectId, catalog: &Catalog) -> Class {
    let Some(def) = catalog.get(id).and_then(|o| o.virtual_def()) else { return Class::Structural };
    let full_text = [b"fts5", b"fts4", b"fts3"].iter().any(|m| def.module.same(*m));
    let has_text =
        || catalog.objects().iter().any(|o| matches!(o.family, Family::FtsShadow { of, part: FtsPart::Content, .. } if of == id));
    let elsewhere = families::option(def, "content").is_some_and(|c| !c.is_empty());
    if full_text && (elsewhere || (!families::is_contentless(def) && has_text())) { Class::SearchIndexOnly } else { Class::Structural }
}
