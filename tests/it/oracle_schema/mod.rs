//! The schema layer against real SQLite: declarations, layouts, expressions.

mod ddl;
mod expr;
mod limits;
mod load;
mod row;
mod view;

/// A small generator of numbers that are the same in every run.
#[derive(Debug)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678_9abc_def1)
    }

    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % sides
    }

    pub fn pick<'a, T: ?Sized>(&mut self, list: &[&'a T]) -> &'a T {
        list[self.roll(list.len())]
    }

    pub fn chance(&mut self, percent: usize) -> bool {
        self.roll(100) < percent
    }
}
