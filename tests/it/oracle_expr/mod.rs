//! Values of expressions against SQLite: generated expressions over generated rows, and hand-picked edges of functions.

mod date;
mod harness;
mod json;
mod printf;
