//! L8: the report and the ledger, and how they are shown: text, HTML, JSON, row exports.

pub mod collect;
pub mod export;
pub mod model;
pub mod page;
mod sentence;

pub use model::Report;
