//! Hidden verbs for packagers: shell completions and the manual page.

use clap::Command;
use clap_complete::Shell;

use super::io::{Fail, emit};

/// Print a completion script
#[derive(Debug, clap::Args)]
pub(super) struct Completions {
    /// The shell
    shell: Shell,
}

/// Print the manual page
#[derive(Debug, clap::Args)]
pub(super) struct Man {}

impl Completions {
    pub(super) fn run(self, mut command: Command) -> Result<u8, Fail> {
        let mut out = Vec::new();
        clap_complete::generate(self.shell, &mut command, "rootpage", &mut out);
        emit(&String::from_utf8_lossy(&out))?;
        Ok(0)
    }
}

impl Man {
    pub(super) fn run(self, command: Command) -> Result<u8, Fail> {
        let mut out = Vec::new();
        clap_mangen::Man::new(command).render(&mut out)?;
        emit(&String::from_utf8_lossy(&out))?;
        Ok(0)
    }
}
