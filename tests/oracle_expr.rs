//! Values of expressions against SQLite: generated expressions over generated rows, and hand-picked edges of functions.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::as_conversions)]
#![allow(clippy::arithmetic_side_effects, missing_docs)]

#[path = "oracle_expr/date.rs"]
mod date;
#[path = "oracle_expr/harness.rs"]
mod harness;
#[path = "oracle_expr/json.rs"]
mod json;
#[path = "oracle_expr/printf.rs"]
mod printf;
