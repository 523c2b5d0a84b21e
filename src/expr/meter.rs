//! What the evaluation of an expression may cost.
//!
//! Expressions come from the evidence, and a short one can ask for hours or gigabytes. Every node that is evaluated and every
//! eight bytes that a function reads or makes are a step; an evaluation that has no step left ends as
//! [`Unknown::TooMuch`], whatever the machine, so that the same input gives the same output.

use std::cell::Cell;

use super::ast::Unknown;
use super::datum::Fault;

/// Bytes that count as one step.
const BYTES: usize = 8;

/// Steps of an expression without a row, such as a DEFAULT: values up to 8 MB.
const CONSTANT: u64 = 1 << 20;

/// The steps that are left to one evaluation and to all that is evaluated within it.
#[derive(Debug)]
pub struct Meter {
    left: Cell<u64>,
}

impl Default for Meter {
    /// The allowance of a constant.
    fn default() -> Meter {
        Meter::new(CONSTANT)
    }
}

impl Meter {
    /// A meter with so many steps.
    #[must_use]
    pub fn new(steps: u64) -> Meter {
        Meter { left: Cell::new(steps) }
    }

    /// The steps that are left.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.left.get()
    }

    /// Takes steps.
    ///
    /// # Errors
    /// [`Unknown::TooMuch`] when there are not so many left.
    pub fn steps(&self, n: u64) -> Result<(), Fault> {
        match self.left.get().checked_sub(n) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => {
                self.left.set(0);
                Err(Unknown::TooMuch.into())
            }
        }
    }

    /// Takes the steps of reading or making so many bytes; to be called before they are made.
    ///
    /// # Errors
    /// As [`Meter::steps`].
    pub fn bytes(&self, n: usize) -> Result<(), Fault> {
        self.steps(crate::ids::wide(n / BYTES).saturating_add(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spent_is_gone() {
        let meter = Meter::new(10);
        assert!(meter.steps(4).is_ok() && meter.bytes(39).is_ok());
        assert_eq!(meter.left(), 1);
        assert_eq!(meter.bytes(8), Err(Unknown::TooMuch.into()));
        assert_eq!((meter.left(), meter.steps(0)), (0, Ok(())));
    }
}
