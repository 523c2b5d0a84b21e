//! L5: a role and an owner for every page, the rows and entries of every tree judged once, and the verdict.
//!
//! The passes in their order; each says what it tests, collects and leaves. What they hand on are the types of `stages`.
//!
//! 1. `pass1_schema`: the rows of `sqlite_schema`, from wherever they stand.
//! 2. `pass2_trees`: which pages every tree has.
//! 3. `pass3_scan`: what every tree holds, and what no tree has.
//! 4. `pass4_compare`: every index against its table.
//! 5. `pass5_restore`: what damage cut off comes back; its trees go through pass 3 again.
//! 6. `pass6_settle`: the last word on every row, page and index.
//! 7. `pass7_declare`: what the records say about the schema; what it changes goes through passes 2 to 6 again.
//!
//! `rows` is how a record is read and judged, `scans` how one tree is read from end to end.
//!
//! Leaves:   rows to recovery, words to the report.

pub mod freelist;
mod index_fit;
#[doc(hidden)]
pub mod pass1_schema;
mod pass2_trees;
mod pass3_scan;
#[doc(hidden)]
pub mod pass4_compare;
mod pass5_restore;
mod pass6_settle;
mod pass7_declare;
pub mod pointer_map;
mod rows;
mod run;
mod scans;
mod stages;
pub mod verdict;

// Names that other rooms use say what a thing is, not which pass makes it.
pub use index_fit::{Absent, Dispute, GoneEntry, GoneKey, IndexFit, NAMED};
pub use pass1_schema as schema_rows;
pub use pass4_compare::compare;
pub use rows::{compute, constant, entry, judge, key, plan};
pub use scans::{index, table};
pub use stages::{Content, Known, Scanned, Survey, SurveyedTree};

/// What a page is: the words and colours of reports follow it.
pub use crate::tree::Role;
pub use freelist::Freelist;
pub use index::IndexScan;
pub use plan::{IndexPlan, TablePlan};
pub use table::{Excluded, TableScan};
pub use verdict::Class;
