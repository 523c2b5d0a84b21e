//! The carve section: per table what is live, older, deleted, partial, with the first rows and their places.

use crate::report::human::{count, escape};
use crate::report::model::{Carving, Report};

/// Tables that the page lists.
const TABLES: usize = 500;

/// A table as the page shows it.
pub(super) struct CarvedView {
    pub(super) name: String,
    pub(super) counts: [String; 6],
    pub(super) lines: Vec<String>,
    pub(super) rows: Vec<SampleView>,
}

/// A row of the preview.
pub(super) struct SampleView {
    pub(super) page: u32,
    pub(super) place: String,
    pub(super) relation: String,
    pub(super) rowid: String,
    pub(super) values: String,
}

/// The headings of the counts.
pub(super) const HEAD: [&str; 7] = ["table", "live", "older version", "deleted", "key gone", "partial", "index only"];

/// The tables with something to tell.
pub(super) fn tables(report: &Report) -> Vec<CarvedView> {
    let Some(Carving { tables, .. }) = &report.carving else { return Vec::new() };
    let told = tables.iter().filter(|t| t.declaration.is_some() || t.older + t.deleted + t.key_gone + t.partial + t.index_only > 0);
    told.take(TABLES)
        .map(|t| {
            let mut lines = Vec::new();
            if let (Some(sql), Some(place)) = (&t.declaration, &t.declared_at) {
                lines.push(format!("Dropped; its declaration stands at {}: {}", escape(place), escape(sql)));
            }
            if t.live_copies > 0 {
                lines.push(format!("{} places hold copies of live rows and are left out.", count(t.live_copies)));
            }
            CarvedView {
                name: escape(&t.name),
                counts: [t.live, t.older, t.deleted, t.key_gone, t.partial, t.index_only].map(count),
                lines,
                rows: t
                    .preview
                    .iter()
                    .map(|s| SampleView {
                        page: s.page,
                        place: escape(&s.place),
                        relation: escape(&s.relation),
                        rowid: s.rowid.map(|r| r.to_string()).unwrap_or_default(),
                        values: escape(&s.values.join(", ")),
                    })
                    .collect(),
            }
        })
        .collect()
}

/// The hints.
pub(super) fn hints(report: &Report) -> Vec<String> {
    report.carving.iter().flat_map(|c| &c.hints).map(|h| escape(h)).collect()
}
