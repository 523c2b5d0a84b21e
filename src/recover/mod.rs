//! L6: one decision for each row, with provenance: which rows of the evidence enter the copy, in which form, and what
//! becomes of the others.

pub(crate) mod breakers;
pub(crate) mod entries;
pub mod foreign;
pub(crate) mod ledger;
pub mod live;
pub(crate) mod nameless;
pub mod provenance;
pub(crate) mod rtree;
pub(crate) mod search_index;
pub(crate) mod select;
pub(crate) mod stream;
pub(crate) mod text_back;
pub(crate) mod witnesses;

pub use live::{LiveRow, Rows, Selection, rows};
pub use provenance::{How, Trust};
