//! The history of a database: commits, branches and generations of its logs, the transaction of its journal, and the versions of
//! a row.
//!
//! A `course::Course` goes from one state to the next by the pages that a transaction wrote. What it costs is the pages written,
//! not the size of the database.

pub(crate) mod course;
mod outline;
mod schema;
pub mod timeline;

pub use course::Target;
pub use outline::outline;
pub use timeline::tell;
