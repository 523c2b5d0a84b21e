//! L1: pure decode and encode of every on-disk structure; knows no file, tree or table.
//!
//! A database file is a sequence of pages of one size. Page 1 starts with the 100-byte [`header`]; every b-tree page
//! ([`page`]) holds [`cell`]s whose payloads are [`record`]s, with the part that does not fit in a chain of overflow pages.
//! Unused pages are on the [`freelist`]; auto-vacuum files note every page's parent in the [`ptrmap`].

pub mod cell;
pub mod freelist;
pub mod header;
pub mod journal;
pub mod page;
pub mod page_kind;
pub mod ptrmap;
pub mod record;
pub mod value;
pub mod wal;

pub use cell::{Cell, Split};
pub use header::DatabaseHeader;
pub use page::Page;
pub use page_kind::PageKind;
pub use record::{Field, Fields};
pub use value::{Encoding, Value};
