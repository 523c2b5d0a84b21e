//! What the findings come to, in words a person acts on.

use crate::finding::{Code, Findings};
use crate::ids::ObjectId;
use crate::schema::{Catalog, Family, FtsModule, FtsPart, ObjectKind};

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

/// What a finding on an object counts for.
#[must_use]
pub fn class_of(code: Code, object: Option<ObjectId>, catalog: &Catalog) -> Class {
    match code {
        // Notes about data and about files that are as their writers meant them.
        Code::TextNotDecodable
        | Code::VersionsSayWal
        | Code::CollationUnknown
        | Code::ExpressionUnknown
        | Code::ModuleUnknown
        | Code::FtsTokenizerUnknown
        | Code::FtsOlderNulRule
        | Code::ForeignKeyBroken
        // A limit of the tool says nothing about the file.
        | Code::LimitReached
        | Code::MoreValuesThanColumns
        | Code::DeletedRow => Class::Healthy,
        Code::PageCountStale
        | Code::SchemaFormatBad
        | Code::FileVersionUnknown
        | Code::PayloadFractionsBad
        | Code::FragmentsWrong
        | Code::TrunkOutside
        | Code::TrunkLoop
        | Code::TrunkCountTooBig
        | Code::TrunkForgotten
        | Code::FreelistCountWrong
        | Code::FreePageInUse
        | Code::FreeLeafOutside
        | Code::PtrmapWrong
        | Code::AutoVacuumLies
        | Code::TrailingBytes
        | Code::PageWithoutOwner
        | Code::InteriorEmpty
        | Code::LeafEmpty
        | Code::BodyLong
        | Code::OverflowTooLong => Class::Housekeeping,
        _ => match object {
            None => Class::Structural,
            Some(id) => of_object(id, catalog),
        },
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
        Family::OrphanShadow { .. } => Class::SearchIndexOnly,
        Family::Stat => Class::Housekeeping,
        _ if object.kind == ObjectKind::View || object.kind == ObjectKind::Trigger => Class::IndexOnly,
        _ => Class::Structural,
    }
}

fn is_search_index_of_other(object: &crate::schema::Object) -> bool {
    let content = object.virtual_def().filter(|d| d.module.same(b"fts5")).and_then(|d| crate::schema::families::option(d, "content"));
    content.is_some_and(|c| !c.is_empty())
}

fn is_contentless(of: ObjectId, catalog: &Catalog) -> bool {
    catalog.get(of).and_then(|o| o.virtual_def()).is_some_and(|v| {
        v.args.iter().any(|a| {
            let text: Vec<u8> = a.iter().filter(|b| !b.is_ascii_whitespace()).map(u8::to_ascii_lowercase).collect();
            text == b"content=''" || text == b"content=\"\""
        })
    })
}
