//! L1: pure decode and encode of every on-disk structure; knows no file, tree or table.

pub mod value;

pub use value::{Encoding, Value};
