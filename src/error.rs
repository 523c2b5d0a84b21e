//! What the *tool* cannot do. What the *evidence* is guilty of is a `Finding`.

use std::io;
use std::path::{Path, PathBuf};

/// Result of an operation of the tool.
pub type Result<T> = std::result::Result<T, Error>;

/// Reasons for which a run ends without its result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A path could not be opened, read, written or moved.
    #[error("{}: cannot {action}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What was tried, as a verb: "open", "read", "write".
        action: &'static str,
        /// The system's answer.
        #[source]
        source: io::Error,
    },
    /// The input is not a database, nor anything that was one.
    #[error("{}: {what}", path.display())]
    NotADatabase {
        /// The file.
        path: PathBuf,
        /// What it is, in words.
        what: String,
    },
    /// The target, or a sidecar that SQLite would read with it, is already there.
    #[error("{}: already exists; give another output path, or --force to move it aside", path.display())]
    Exists {
        /// The file in the way.
        path: PathBuf,
    },
    /// The input changed while it was read, also on the second try.
    #[error("{}: changed while it was read ({what}); copy it first, or stop its writer, then try again", path.display())]
    Unstable {
        /// The file.
        path: PathBuf,
        /// What changed.
        what: String,
    },
    /// A bound of [`crate::ctx::Limits`] or of the format would be passed.
    #[error("limit reached: {what}")]
    Limit {
        /// Which one.
        what: String,
    },
    /// The caller asked for something that does not exist or does not go together.
    #[error("{what}")]
    Usage {
        /// What is wrong and what to do.
        what: String,
    },
    /// The run was asked to end.
    #[error("cancelled")]
    Cancelled,
    /// The finished output does not read back as it was meant; nothing was left in place.
    #[error("self-check of the copy failed: {what}")]
    SelfCheck {
        /// The first disagreement.
        what: String,
    },
}

impl Error {
    /// A plan that the survey should have made and did not: an inconsistency of the tool, not of the evidence.
    pub(crate) fn inconsistent(what: &str) -> Error {
        Error::SelfCheck { what: what.to_owned() }
    }

    /// An I/O error with its path and what was tried.
    pub fn io(path: &Path, action: &'static str, source: io::Error) -> Error {
        Error::Io { path: path.to_path_buf(), action, source }
    }
}
