//! Offline forensic recovery for SQLite databases.
//!
//! Reads a damaged database file, its `-wal` and its `-journal` page by page without libsqlite3, says which trees are
//! damaged and what that means for the data, recovers every row that the bytes can prove, and writes a clean copy with
//! a ledger of what was found, kept, set aside and lost.
//!
//! Data flows one way through the layers, and a module imports only from those above it in this list:
//!
//! | layer | module | owns |
//! |---|---|---|
//! | L0 | [`ids`] [`bytes`] [`finding`] [`error`] [`ctx`] | typed numbers, checked reads, the problem table, limits |
//! | L1 | [`mod@format`] | decode and encode of every on-disk structure |
//! | L2 | [`evidence`] | files to page images |
//! | L3 | [`tree`] | the b-tree walk that survives damage |
//! | L4 | [`expr`] | SQL expressions over values |
//! | L4 | [`schema`] | `sqlite_schema` to tables, indexes, record layouts |
//! | L4 | [`sort`] | keys as bytes, external merge sort |
//! | L5 | [`survey`] | a role and an owner for every page, the verdict |
//! | -  | [`fts5`] | the FTS5 index as data |
//! | L6 | [`recover`] | one decision for each row, with provenance |
//! | L7 | [`mod@write`] | a whole database bottom-up from sorted streams: copy, salvage, finish script |
//! | -  | [`carve`] | rows that are no longer live, with the places that hold them |
//! | -  | [`scan`] | databases, logs and journals inside a disk image |
//! | L8 | [`report`] | the report and the ledger |
//! | -  | [`history`] | commits, branches and generations of the sidecars; versions of a row |
//! | -  | [`verbs`] | the library calls behind the verbs |
//! | -  | [`host`] | where a file lives: mounts, processes that hold it, locks |
//! | -  | [`triage`] | what an incident bundle holds |
//! | -  | [`hermes`] | the profile of Hermes Agent: knows what its `state.db` means, nothing below knows it |

pub mod bytes;
pub mod carve;
pub mod ctx;
pub mod error;
pub mod evidence;
pub mod expr;
pub mod finding;
pub mod format;
pub mod fts5;
pub mod hermes;
pub mod history;
pub mod host;
pub mod ids;
pub mod recover;
pub mod report;
pub mod scan;
pub mod schema;
pub mod sort;
pub mod survey;
pub mod tree;
pub mod triage;
pub mod verbs;
pub mod write;
