//! Standard streams, progress, signals, and what a failure looks like.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rootpage::ctx::Progress;
use rootpage::error::Error;
use rootpage::report::human::escape;
use rootpage::report::text::Style;

/// Why a verb ends without its result.
#[derive(Debug)]
pub(super) enum Fail {
    /// The library says so.
    Tool(Error),
    /// The command line asks for what does not go together.
    Usage(String),
    /// Whoever read our output went away: a quiet end.
    Pipe,
    /// The output cannot be written.
    Output(io::Error),
}

impl From<Error> for Fail {
    fn from(error: Error) -> Fail {
        match error {
            Error::Io { source, .. } if source.kind() == io::ErrorKind::BrokenPipe => Fail::Pipe,
            error => Fail::Tool(error),
        }
    }
}

impl From<io::Error> for Fail {
    fn from(error: io::Error) -> Fail {
        if error.kind() == io::ErrorKind::BrokenPipe { Fail::Pipe } else { Fail::Output(error) }
    }
}

impl fmt::Display for Fail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fail::Tool(Error::Io { path, action, source }) => {
                write!(f, "{}: cannot {action}: {}", escape(&path.to_string_lossy()), words(source))?;
                match source.kind() {
                    io::ErrorKind::NotFound if *action == "open" || *action == "read" => f.write_str("; check the path"),
                    io::ErrorKind::NotFound => f.write_str("; the folder must exist"),
                    io::ErrorKind::PermissionDenied => f.write_str("; run as a user who may, or copy the files first"),
                    io::ErrorKind::IsADirectory => f.write_str("; name the database file in it"),
                    io::ErrorKind::StorageFull => f.write_str("; nothing was left behind, free some space or write elsewhere"),
                    _ => Ok(()),
                }
            }
            Fail::Tool(error) => f.write_str(&escape(&error.to_string())),
            Fail::Usage(what) => f.write_str(what),
            Fail::Pipe => f.write_str("output closed"),
            Fail::Output(source) => write!(f, "standard output: cannot write: {}", words(source)),
        }
    }
}

impl Fail {
    /// The exit code that goes with it.
    pub(super) fn code(&self) -> u8 {
        match self {
            Fail::Usage(_) | Fail::Tool(Error::Usage { .. }) => 64,
            Fail::Tool(Error::NotADatabase { .. } | Error::SelfCheck { .. }) => 3,
            Fail::Tool(Error::Unstable { .. }) => 75,
            Fail::Tool(Error::Cancelled) => 130,
            Fail::Pipe => 0,
            Fail::Tool(_) | Fail::Output(_) => 74,
        }
    }
}

/// The system's answer without its number.
fn words(source: &io::Error) -> String {
    let text = source.to_string();
    match text.find(" (os error") {
        Some(at) => text.get(..at).unwrap_or(&text).to_owned(),
        None => text,
    }
}

/// Says on stderr why a verb ended, in one line, and returns the exit code.
pub(super) fn complain(fail: &Fail) -> u8 {
    // A closed stderr leaves only the exit code to tell it.
    let _ = writeln!(io::stderr(), "rootpage: {fail}");
    fail.code()
}

/// Writes a result to standard output.
pub(super) fn emit(text: &str) -> Result<(), Fail> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// The layout for what standard output is: the terminal's width and colours, or 80 columns and none.
pub(super) fn style() -> Style {
    let terminal = io::stdout().is_terminal();
    let dumb = std::env::var_os("TERM").is_some_and(|t| t == "dumb");
    let mut style = Style::default();
    style.colour = terminal && !dumb && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
    let columns = std::env::var("COLUMNS").ok().and_then(|c| c.parse::<usize>().ok());
    let width = if terminal { indicatif_width().or(columns) } else { columns };
    if let Some(width) = width {
        style.width = width.clamp(40, 200);
    }
    style
}

/// Columns of the terminal on standard output.
fn indicatif_width() -> Option<usize> {
    let (_, columns) = console::Term::stdout().size_checked()?;
    Some(usize::from(columns))
}

/// First signal: the run ends at the next page. Second: at once.
pub(super) fn watch_signals(flag: Arc<AtomicBool>) {
    // Where no handler can be set the default action stays: the process ends at once, outputs are temporary files until then.
    let _ = ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
        let _ = writeln!(io::stderr(), "rootpage: stopping, nothing half-written stays (once more to end at once)");
    });
}

/// Progress on stderr: the phase, how far it is, and how fast. Draws nothing unless stderr is a terminal.
pub(super) struct Bar {
    current: Mutex<Option<ProgressBar>>,
}

impl Bar {
    /// A bar that shows nothing until a phase begins.
    pub(super) fn new() -> Bar {
        Bar { current: Mutex::new(None) }
    }

    fn with(&self, f: impl FnOnce(&mut Option<ProgressBar>)) {
        if let Ok(mut current) = self.current.lock() {
            f(&mut current);
        }
    }
}

impl Progress for Bar {
    fn phase(&self, name: &'static str, total: u64) {
        self.with(|current| {
            if let Some(old) = current.take() {
                old.finish_and_clear();
            }
            let bar = ProgressBar::with_draw_target((total > 0).then_some(total), ProgressDrawTarget::stderr());
            bar.set_style(bar_style(name, total > 0));
            bar.set_message(name);
            bar.enable_steady_tick(Duration::from_millis(200));
            *current = Some(bar);
        });
    }

    fn advance(&self, done: u64) {
        self.with(|current| {
            if let Some(bar) = current {
                bar.inc(done);
            }
        });
    }

    fn finish(&self) {
        self.with(|current| {
            if let Some(bar) = current.take() {
                bar.finish_and_clear();
            }
        });
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.finish();
    }
}

/// Phases that read files count bytes; of the others the last word says what they count.
fn bar_style(name: &str, bounded: bool) -> ProgressStyle {
    let in_bytes = ["reading", "checking the input"].iter().any(|p| name.starts_with(p));
    let unit = name.rsplit(' ').next().filter(|u| ["rows", "pages"].contains(u)).unwrap_or_default();
    let template = match (bounded, in_bytes) {
        (true, true) => "{msg:28} [{bar:30}] {bytes}/{total_bytes} {binary_bytes_per_sec} {eta}".to_owned(),
        (true, false) => format!("{{msg:28}} [{{bar:30}}] {{human_pos}}/{{human_len}} {unit} {{eta}}"),
        (false, true) => "{msg:28} {spinner} {bytes} {binary_bytes_per_sec}".to_owned(),
        (false, false) => "{msg:28} {spinner}".to_owned(),
    };
    ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_that_keeps_changing_is_a_case_for_trying_again() {
        let fail = Fail::from(Error::Unstable { path: "in.db".into(), what: "change counter".to_owned() });
        assert_eq!(fail.code(), 75);
        let said = fail.to_string();
        assert!(said.starts_with("in.db: ") && said.contains("change counter") && said.contains("try again"), "{said}");
    }
}
