//! The report as one self-contained page.

use super::model::Report;
use crate::error::{Error, Result};

/// The page map alone.
///
/// # Errors
/// None in practice: writing to memory.
pub fn map(_report: &Report) -> Result<String> {
    Err(Error::Usage { what: "not built yet".to_owned() })
}
