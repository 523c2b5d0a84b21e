//! Where a row comes from and how far it can be trusted.

/// How a row was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum How {
    /// On a leaf that its table reaches.
    Live,
    /// On an orphaned leaf that a hole in its table took back.
    Adopted,
    /// An older image of the page.
    OldVersion,
    /// A frame of a transaction that never committed.
    Uncommitted,
    /// In a state of the evidence that SQLite would not show: commits behind a break of the log, a rollback that it skips.
    Hidden,
    /// In a freeblock.
    Freeblock,
    /// In the gap between the pointers and the cell content.
    Gap,
    /// On a page of the freelist.
    FreePage,
    /// On a page that nothing reaches.
    LostPage,
    /// Put together from index entries.
    IndexOnly,
    /// Read back out of a full-text index.
    FtsText,
}

impl How {
    /// The word that salvage databases and exports use.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            How::Live => "live",
            How::Adopted => "adopted",
            How::OldVersion => "old-version",
            How::Uncommitted => "uncommitted",
            How::Hidden => "hidden",
            How::Freeblock => "freeblock",
            How::Gap => "gap",
            How::FreePage => "free-page",
            How::LostPage => "lost-page",
            How::IndexOnly => "index-only",
            How::FtsText => "fts-text",
        }
    }
}

/// How far a row can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trust {
    /// It decodes and fits its table.
    Plausible,
    /// It is reachable and decodes.
    Linked,
    /// An independent structure agrees with it: an index entry, a text in a search index, a checksum chain.
    Witnessed,
}

impl Trust {
    /// The word that salvage databases and exports use.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Trust::Plausible => "plausible",
            Trust::Linked => "linked",
            Trust::Witnessed => "witnessed",
        }
    }
}
