//! Expressions: their data and their values.

mod ast;
mod functions;

pub use ast::*;
pub use functions::Function;
