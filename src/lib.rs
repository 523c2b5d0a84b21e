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
//! | L4 | [`schema`] | `sqlite_schema` to tables, indexes, expressions |
//! | L5 | [`survey`] | a role and an owner for every page, the verdict |
//! | L6 | [`recover`] | rows with provenance |
//! | -  | [`fts5`] | the FTS5 index as data |
//! | L7 | [`build`] | a whole database bottom-up from sorted streams |
//! | L8 | [`report`] | the report and the ledger |
//! | -  | [`pipeline`] | the library calls behind the verbs |

pub mod build;
pub mod bytes;
pub mod ctx;
pub mod error;
pub mod evidence;
pub mod finding;
pub mod format;
pub mod fts5;
pub mod ids;
pub mod pipeline;
pub mod recover;
pub mod report;
pub mod schema;
pub mod survey;
pub mod tree;
