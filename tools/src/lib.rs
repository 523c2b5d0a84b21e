//! Makers and judges that need real SQLite: healthy databases by recipe, damage by recipe, the corpus, benches.
//!
//! The integration tests of the product include some of these files by path, so that both make the same databases.

pub mod case;
pub mod corrupt;
pub mod dbgen;
pub mod histories;
pub mod judge;
pub mod pages;
pub mod rng;
pub mod sidecar;
