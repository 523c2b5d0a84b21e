//! The library calls behind the verbs, one file each.
//!
//! A verb is a short function over one `examination`: it is given what was opened and surveyed, and returns a report.

mod carve;
mod check;
pub mod corpus;
mod describe;
mod diff;
mod evidence;
pub(crate) mod examination;
pub(crate) mod hidden;
mod history;
mod include_deleted;
mod inputs;
mod inventory;
mod map;
mod page;
mod page_map;
mod recover;
pub mod restore;
mod rows;
mod scan;
mod schema_source;

pub use carve::{carve, carve_rows};
pub use check::check;
pub use diff::diff;
pub use history::{generations as history_of_files, history};
pub use include_deleted::recover_including;
pub use inputs::{Inputs, Options, Snapshot, SuperJournal};
pub use inventory::{Held, inventory};
pub use map::map;
pub use page::page;
pub use recover::recover;
pub use rows::rows;
pub use scan::{Scanned, scan};
