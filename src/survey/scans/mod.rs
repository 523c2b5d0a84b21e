//! How one tree is read from its first leaf to its last.

pub mod index;
pub mod table;
