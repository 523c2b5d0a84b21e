//! L2: files to page images: the reading pass, fingerprints, sidecars, snapshots, and every version of a page.
//!
//! [`Evidence::open`] reads the files of one incident through, [`Evidence::view`] decides geometry and fit and gives the
//! state that SQLite itself would show as a [`Snapshot`]. What the view hides stays reachable with [`Snapshot::versions`].

pub mod branches;
pub mod content;
mod displaced;
mod edges;
mod extent;
pub mod fit;
pub mod generations;
mod geometry;
pub mod input;
pub mod journal;
pub mod lineage;
mod mapping;
pub mod open;
pub mod overlay;
mod page_fit;
pub mod page_one;
mod reading;
pub mod shm;
pub mod source;
mod text_encoding;
mod transfer;
pub mod wal;

pub use branches::{Branch, BranchKind};
pub use content::{Content, identify, looks_like_pages};
pub use fit::{Fit, Verdict};
pub use generations::Standing;
pub use input::{At, Evidence, OtherState, Part, Sources, View};
pub use journal::{JournalIndex, JournalState};
pub use lineage::{Chain, Parent};
pub use open::{Fingerprint, Held, InputFile, OpenOptions};
pub use overlay::{Snapshot, Version, VersionClass};
pub use page_one::{Clues, Decision, Geometry, PageOne};
pub use source::{MainOnly, PageRef, PageSource};
pub use wal::{Commit, FrameClass, HiddenCommits, Mended, WalIndex};
