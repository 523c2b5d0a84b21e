//! L2: files to page images: the reading pass, fingerprints, sidecars, snapshots, and every version of a page.

pub mod open;
mod reading;
pub mod source;

pub use open::{Fingerprint, Held, InputFile, OpenOptions};
pub use source::{MainOnly, PageRef, PageSource};
