//! FTS5 as data against a real FTS5: what we tokenize, build and check is compared with what SQLite says.

mod check;
mod older;
mod real;
mod rebuild;
mod tokenizers;
mod witness;
