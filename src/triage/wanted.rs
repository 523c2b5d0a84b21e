//! What is asked of a triage.

use std::path::PathBuf;

/// How a bundle is looked at.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Wanted {
    /// Where an archive is unpacked and stays; none: into a temporary folder that goes away.
    pub extract: Option<PathBuf>,
    /// Bytes that an archive may unpack to; 0: 64 GiB.
    pub most: u64,
    /// Tables that the store in question has; none: it is the one that most files are states of.
    pub tables: Vec<String>,
}
