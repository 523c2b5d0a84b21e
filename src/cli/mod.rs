//! L9: one file a verb. No decision about damage is made here.

mod carve;
mod check;
mod completions;
mod corpus;
mod diff;
mod doctor;
mod explain;
mod hermes;
mod history;
mod io;
mod journal_mode;
mod map;
mod options;
mod page;
mod recover;
mod restore;
mod rows;
mod scan;
mod triage;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use io::Fail;

/// Exit code of a wrong command line.
const USAGE: u8 = 64;

const AFTER_HELP: &str = "\
Work on a copy, or on the file of a stopped application. rootpage opens its inputs
read-only and creates nothing beside them. Take the -wal and -journal files along
when you copy a database: without them the newest data may be missing.

Examples:
  rootpage check state.db                      what is damaged, and what it means
  rootpage recover state.db -o state.clean.db  a clean copy, and a report of every loss
  rootpage rows state.db messages              the rows of a table as JSON lines
  rootpage carve state.db -o carved.db         deleted and older rows, with their places
  rootpage scan disk.img                       databases inside a disk image
  rootpage diff state.db state.clean.db        how two databases differ, row by row
  rootpage restore OUT --from OUT.salvage.db -o OUT2   set-aside rows into a new copy
  rootpage doctor state.db                     where it lives, who has it open
  rootpage history state.db                    commits and branches of the -wal
  rootpage triage incident.zip                 what a bundle holds, the best source
  rootpage explain P001                        what a finding means

Exit codes:
  check    0 healthy, 1 only an index, a search index or bookkeeping is damaged,
           2 data is damaged, 3 not a database; rows, map and page the same
  recover  0 nothing was wrong, 1 damage but every row is in the copy,
           2 rows were lost, hidden or set aside (a copy is written), 3 no copy
  diff     0 equal, 1 different
  history  0 SQLite shows all that is committed, 2 committed work is hidden from it
  all      64 wrong arguments, 74 a path cannot be read or written,
           75 the input changed while it was read, 130 cancelled";

/// Offline recovery for damaged SQLite databases.
///
/// Reads a damaged database, its -wal and its -journal page by page without SQLite,
/// says what is damaged and what that means for the data, and writes a clean copy.
#[derive(Debug, Parser)]
#[command(name = "rootpage", version = env!("ROOTPAGE_VERSION"), after_help = AFTER_HELP, max_term_width = 100, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Check(check::Args),
    Recover(recover::Args),
    Rows(rows::Args),
    Carve(carve::Args),
    Scan(scan::Args),
    Map(map::Args),
    Page(page::Args),
    Diff(diff::Args),
    Doctor(doctor::Args),
    JournalMode(journal_mode::Args),
    Restore(restore::Args),
    History(history::Args),
    Triage(triage::Args),
    Explain(explain::Args),
    #[command(subcommand)]
    Hermes(hermes::Args),
    #[command(subcommand)]
    Corpus(corpus::Args),
    #[command(hide = true)]
    Completions(completions::Completions),
    #[command(hide = true)]
    Man(completions::Man),
}

/// Parses the arguments, runs the verb, and turns what happened into an exit code.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are results, not errors; a closed pipe while printing them is none either.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { USAGE } else { 0 });
        }
    };
    let done = match cli.verb {
        Verb::Check(args) => args.run(),
        Verb::Recover(args) => args.run(),
        Verb::Rows(args) => args.run(),
        Verb::Carve(args) => args.run(),
        Verb::Scan(args) => args.run(),
        Verb::Map(args) => args.run(),
        Verb::Page(args) => args.run(),
        Verb::Diff(args) => args.run(),
        Verb::Doctor(args) => args.run(),
        Verb::JournalMode(args) => args.run(),
        Verb::Restore(args) => args.run(),
        Verb::History(args) => args.run(),
        Verb::Triage(args) => args.run(),
        Verb::Explain(args) => args.run(),
        Verb::Hermes(args) => args.run(),
        Verb::Corpus(args) => args.run(),
        Verb::Completions(args) => args.run(Cli::command()),
        Verb::Man(args) => args.run(Cli::command()),
    };
    ExitCode::from(match done {
        Ok(code) => code,
        Err(Fail::Pipe) => 0,
        Err(fail) => io::complain(&fail),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
}
