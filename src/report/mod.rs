//! L8: the report and the ledger, and how they are shown: text, HTML, JSON, row exports.

pub mod collect;
pub mod diff;
pub mod export;
pub mod history;
pub mod html;
pub mod human;
pub mod model;
pub mod next;
pub mod page;
pub mod page_map;
mod phrases;
mod sentence;
pub mod text;
pub mod text_diff;
pub mod text_history;
pub mod text_page;
pub mod timeline;

pub use model::Report;
