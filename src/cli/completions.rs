//! Hidden verbs for packagers: shell completions and the manual pages.

use std::path::{Path, PathBuf};

use clap::Command;
use clap_complete::Shell;
use rootpage::error::Error;

use super::io::{Fail, emit};

/// Print a completion script
#[derive(Debug, clap::Args)]
pub(super) struct Completions {
    /// The shell
    shell: Shell,
}

/// Print a manual page, or write all of them into a folder
#[derive(Debug, clap::Args)]
pub(super) struct Man {
    /// The verb whose page is printed, as `check` or `hermes list`; the page of rootpage without it
    #[arg(value_name = "VERB")]
    verb: Vec<String>,
    /// Write every page into this folder, one file for each verb
    #[arg(long, value_name = "FOLDER", conflicts_with = "verb")]
    all: Option<PathBuf>,
}

impl Completions {
    pub(super) fn run(self, mut command: Command) -> Result<u8, Fail> {
        let mut out = Vec::new();
        clap_complete::generate(self.shell, &mut command, "rootpage", &mut out);
        emit(&String::from_utf8_lossy(&out))?;
        Ok(0)
    }
}

impl Man {
    pub(super) fn run(self, mut command: Command) -> Result<u8, Fail> {
        // Subcommands get their full names, as `rootpage-check`, from this.
        command.build();
        if let Some(folder) = &self.all {
            std::fs::create_dir_all(folder).map_err(|e| Fail::Tool(Error::io(folder, "create", e)))?;
            pages(&command, folder)?;
            return Ok(0);
        }
        let mut shown = &command;
        for verb in &self.verb {
            shown =
                shown.find_subcommand(verb).ok_or_else(|| Fail::Usage(format!("there is no verb {verb:?}; rootpage --help lists them")))?;
        }
        emit(&String::from_utf8_lossy(&page(shown)?))?;
        Ok(0)
    }
}

/// The page of one command and, below it, those of its verbs.
fn pages(command: &Command, folder: &Path) -> Result<(), Fail> {
    if command.is_hide_set() || command.get_name() == "help" {
        return Ok(());
    }
    let path = folder.join(clap_mangen::Man::new(command.clone()).get_filename());
    std::fs::write(&path, page(command)?).map_err(|e| Fail::Tool(Error::io(&path, "write", e)))?;
    command.get_subcommands().try_for_each(|verb| pages(verb, folder))
}

fn page(command: &Command) -> Result<Vec<u8>, Fail> {
    let mut out = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut out)?;
    Ok(out)
}
