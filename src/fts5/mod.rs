//! The FTS5 index as data: parse its declaration, read it, check it, build it anew, read text back out of it.
//!
//! Knows no file and no tree: shadow-table rows come in, shadow-table rows go out. The layout of the rows is described in
//! [`segment`].

pub mod check;
pub mod config;
pub mod rebuild;
pub mod segment;
pub mod tokenizer;
mod unicode61_table;
pub mod witness;

pub use config::{Config, Content, Detail, Settings};
pub use rebuild::Rebuilder;
pub use tokenizer::Tokenizer;
