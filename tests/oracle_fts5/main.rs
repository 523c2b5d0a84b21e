//! FTS5 as data against a real FTS5: what we tokenize, build and check is compared with what SQLite says.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::as_conversions,
    clippy::arithmetic_side_effects,
    clippy::print_stderr
)]

mod check;
mod older;
mod real;
mod rebuild;
mod tokenizers;
mod witness;
