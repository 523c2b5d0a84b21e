//! L2: files to page images: the reading pass, fingerprints, sidecars, snapshots, and every version of a page.

mod extent;
pub mod open;
mod page_fit;
pub mod page_one;
mod reading;
pub mod source;

pub use open::{Fingerprint, Held, InputFile, OpenOptions};
pub use page_one::{Clues, Decision, Geometry, PageOne};
pub use source::{MainOnly, PageRef, PageSource};
