//! `rootpage corpus run`: the regression corpus.

use std::path::PathBuf;

use rootpage::error::Error;
use rootpage::verbs::corpus;

use super::io::{Fail, emit};
use super::options::Running;

/// Run the regression corpus
///
/// Runs check and recover on every case of a folder and compares exit codes, verdicts, findings and the rows of the copies
/// with what each case expects.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Args {
    /// Run all cases; exit 0 when all expectations are met, 1 when one is not
    Run {
        /// The folder that holds one folder a case
        #[arg(value_name = "DIR")]
        dir: PathBuf,
        /// Only cases whose name contains this
        #[arg(long, value_name = "TEXT", default_value = "")]
        only: String,
        #[command(flatten)]
        running: Running,
    },
}

impl Args {
    pub(super) fn run(self) -> Result<u8, Fail> {
        let Args::Run { dir, only, running } = self;
        let ctx = running.ctx()?;
        let (mut met, mut known, mut failed) = (0_u32, 0_u32, 0_u32);
        for case in corpus::cases(&dir)? {
            if !case.file_name().is_some_and(|n| n.to_string_lossy().contains(&only)) {
                continue;
            }
            let outcome = match corpus::run(&case, &ctx) {
                Ok(outcome) => outcome,
                Err(Error::Cancelled) => return Err(Fail::Tool(Error::Cancelled)),
                // A case on which the tool itself fails is a failed case; the others still run.
                Err(error) => {
                    failed = failed.saturating_add(1);
                    emit(&format!("{}: {}\n", case.file_name().unwrap_or_default().to_string_lossy(), Fail::Tool(error)))?;
                    continue;
                }
            };
            let (count, mark) = match (outcome.differences.is_empty(), &outcome.open) {
                (true, None) => (&mut met, String::new()),
                (true, Some(_)) => (&mut met, format!("{}: is met; \"open\" must go from case.toml", outcome.name)),
                (false, Some(why)) => (&mut known, format!("{}: open ({why})", outcome.name)),
                (false, None) => (&mut failed, format!("{}: differs", outcome.name)),
            };
            *count = count.saturating_add(1);
            if !mark.is_empty() {
                emit(&format!("{mark}\n{}", outcome.differences.iter().map(|d| format!("  {d}\n")).collect::<String>()))?;
            }
        }
        emit(&format!("corpus: {met} cases as expected, {known} open, {failed} failed\n"))?;
        Ok(u8::from(failed > 0))
    }
}
