//! Makers and judges that need real SQLite.

fn main() {}
