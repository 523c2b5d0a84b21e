//! What stands in the copy: objects, and of each table the rows that may stand together.

pub(crate) mod objects;
mod rivals;
pub(crate) mod unique;

pub(crate) use objects::{Disposition, Refused};
pub(crate) use unique::settle;
