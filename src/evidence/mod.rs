//! L2: files to page images: the reading pass, fingerprints, sidecars, snapshots, and every version of a page.

pub mod source;

pub use source::{MainOnly, PageRef, PageSource};
