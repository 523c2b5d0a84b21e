//! The command-line front end.

fn main() {}
