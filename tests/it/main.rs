//! All integration tests in one binary: it is linked once, and what they share stands once.
#![allow(
    missing_docs,
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::print_stderr,
    clippy::wildcard_imports,
    clippy::field_reassign_with_default,
    clippy::collapsible_if
)]

#[path = "../../tools/src/dbgen.rs"]
mod dbgen;
#[path = "../../tools/src/histories.rs"]
mod histories;
#[path = "../../tools/src/judge.rs"]
mod judge;
#[path = "../../tools/src/pages.rs"]
mod pages;
#[path = "../../tools/src/rng.rs"]
mod rng;

mod carve;
mod cli;
mod corpus;
mod damaged_text;
mod deleted;
mod diff;
mod documents;
mod export;
#[cfg(unix)]
mod faults;
mod fts4;
mod given_schema;
mod headers;
mod hermes;
mod history;
mod host;
mod hostile;
mod html_report;
mod journal_mode;
#[cfg(unix)]
mod large;
mod layers;
mod mutate;
mod one_run;
mod oracle;
mod oracle_build;
mod oracle_expr;
mod oracle_fts5;
mod oracle_keys;
mod oracle_schema;
mod page_map;
mod page_one;
mod public;
mod redact;
mod report_samples;
mod restore;
mod rtree;
mod search_index;
mod shell;
mod sidecars;
mod structure;
mod terminal;
mod text_back;
mod text_report;
mod transfer;
mod triage;
mod unstable;
