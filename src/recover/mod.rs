//! L6: rows with provenance: which rows of the evidence enter the copy, in which form, and what becomes of the others.

pub mod foreign;
pub mod live;
pub mod provenance;

pub use live::{LiveRow, Rows, Selection, rows};
pub use provenance::{How, Trust};
