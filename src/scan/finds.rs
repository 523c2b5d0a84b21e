//! What is found in an image.

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A database file.
    Database,
    /// A write-ahead log.
    Log,
    /// A rollback journal.
    Journal,
    /// Leaf pages that no database around them claims.
    LoosePages,
}

impl Kind {
    /// The word that outputs use.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Kind::Database => "database",
            Kind::Log => "log",
            Kind::Journal => "journal",
            Kind::LoosePages => "loose pages",
        }
    }

    /// The ending of files that are extracted.
    #[must_use]
    pub const fn ending(self) -> &'static str {
        match self {
            Kind::Database => "db",
            Kind::Log => "wal",
            Kind::Journal => "journal",
            Kind::LoosePages => "pages",
        }
    }
}

/// A find.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Find {
    /// What.
    pub kind: Kind,
    /// Its first byte in the image.
    pub offset: u64,
    /// How many of its bytes lie there in one piece.
    pub bytes: u64,
    /// How many its header asks for, where it says so.
    pub declared: u64,
    /// Page size.
    pub page_size: u32,
    /// What its header and its own sums say.
    pub words: String,
}

impl Find {
    /// Whether all that its header asks for is there in one piece.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.bytes >= self.declared && self.kind != Kind::LoosePages
    }
}
