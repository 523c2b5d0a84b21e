//! Which stores a command line means.

use std::path::PathBuf;

use rootpage::hermes::{StorePath, stores};
use rootpage::verbs::Inputs;

use super::super::io::Fail;
use super::super::options::Evidence;

/// Which stores are meant.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Which {
    /// Stores: a state.db, a -wal alone, or a folder with a state.db
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// A data directory of Hermes: its state.db and those of profiles/*
    #[arg(long, value_name = "DIR")]
    home: Option<PathBuf>,
    /// One profile of the data directory (--home, else $HERMES_HOME, else ~/.hermes)
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
}

impl Which {
    pub(super) fn stores(&self, evidence: &Evidence) -> Result<Vec<StorePath>, Fail> {
        let stores = stores(&self.paths, self.home.as_deref(), self.profile.as_deref())?;
        if stores.len() > 1 && evidence.names_files() {
            return Err(Fail::Usage("--wal, --journal, --shm and --map go with one store; take them one by one".to_owned()));
        }
        Ok(stores)
    }
}

/// What the library reads for a store.
pub(super) fn inputs(store: &StorePath, evidence: &Evidence) -> Inputs {
    evidence.inputs(&store.path)
}
