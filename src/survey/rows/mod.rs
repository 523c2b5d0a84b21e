//! How a record is read: the plans of tables and indexes, computed values, keys, fingerprints, and the judge.

pub mod compute;
pub mod constant;
pub mod entry;
pub mod judge;
pub mod key;
pub mod plan;
pub(super) mod profile;
pub(super) mod reader;
