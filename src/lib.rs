//! Offline forensic recovery for SQLite databases.
//!
//! Reads a damaged database file, its `-wal` and its `-journal` page by page without libsqlite3, says which trees are
//! damaged and what that means for the data, recovers every row that the bytes can prove, and writes a clean copy with
//! a ledger of what was found, kept, set aside and lost.
//!
//! ```
//! use rootpage::SqlValue;
//!
//! let database = rootpage::open("corpus/leaf-zero/db.sqlite");
//! println!("{}", database.check()?.verdict.sentence);
//! for row in database.rows(Some("orders")) {
//!     let row = row?;
//!     if let Some(SqlValue::Text(note)) = row.get("note") {
//!         println!("{:?}: {note}", row.rowid);
//!     }
//! }
//! # Ok::<(), rootpage::error::Error>(())
//! ```
//!
//! [`open`] gives a [`Database`]; [`Database::check`], [`Database::recover`], [`Database::rows`], [`Database::diff`],
//! [`Database::map`] and [`Database::page`] are the verbs of the program. They return a [`Report`], which is what the program
//! prints as JSON (`docs/report.md` documents it). The library never prints, never exits, and takes limits, progress and
//! cancellation through [`ctx::Ctx`].
//!
//! # Features and versions
//!
//! - `cli` (on by default) is what the program needs; a library leaves it out: `default-features = false`.
//! - `parquet` (on by default) writes Apache Parquet.
//! - `internals` opens the rooms below to the project's own tests and tools. Nothing in them is covered by semantic versioning.
//!
//! What this page lists without `internals` is covered. Structs and enums that will grow are `#[non_exhaustive]`.
//!
//! # How it is built
//!
//! Data flows one way through the layers, and a module imports only from those above it in this list:
//!
//! | layer | module | owns |
//! |---|---|---|
//! | L0 | `ids` `bytes` `finding` `error` `ctx` | typed numbers, checked reads, the problem table, limits |
//! | L1 | `format` | decode and encode of every on-disk structure |
//! | L2 | `evidence` | files to page images |
//! | L3 | `tree` | the b-tree walk that survives damage |
//! | L4 | `expr` | SQL expressions over values |
//! | L4 | `schema` | `sqlite_schema` to tables, indexes, record layouts |
//! | L4 | `sort` | keys as bytes, external merge sort |
//! | L5 | `survey` | a role and an owner for every page, the verdict |
//! | -  | `fts5` | the FTS5 index as data |
//! | -  | `rtree` | the R-tree as data |
//! | L6 | `recover` | one decision for each row, with provenance |
//! | L7 | `write` | a whole database bottom-up from sorted streams: copy, salvage, finish script |
//! | -  | `carve` | rows that are no longer live, with the places that hold them |
//! | -  | `scan` | databases, logs and journals inside a disk image |
//! | L8 | `report` | the report and the ledger |
//! | -  | `history` | commits, branches and generations of the sidecars; versions of a row |
//! | -  | `verbs` | the library calls behind the verbs |
//! | -  | `database` | the face of the library: one database, and what can be asked of it |
//! | -  | `host` | where a file lives: mounts, processes that hold it, locks |
//! | -  | `triage` | what an incident bundle holds |
//! | -  | `hermes` | the profile of Hermes Agent: knows what its `state.db` means, nothing below knows it |

// Without `internals` some rooms have doors that only the program and the tests use.
#![cfg_attr(not(feature = "internals"), allow(dead_code, unused_imports, unreachable_pub))]

/// The rooms: open to the project's own program, tests and tools, closed to everybody else.
macro_rules! rooms {
    ($($room:ident)*) => {
        $(
            #[cfg(feature = "internals")]
            #[doc(hidden)]
            pub mod $room;
            #[cfg(not(feature = "internals"))]
            mod $room;
        )*
    };
}

rooms! {
    bytes carve evidence expr finding format fts5 hermes history
    host ids recover rtree scan schema sort survey tree triage verbs write
}

pub mod ctx;
mod database;
pub mod error;
pub mod report;

pub use database::{Database, Row, Rows, SqlValue, Table, open};
pub use finding::Code;
pub use report::Report;
pub use verbs::{Inputs, Options, Snapshot, SuperJournal};
