//! Speed and memory, side by side with SQLite in one run: `check` with `PRAGMA integrity_check`, `recover` with `VACUUM INTO` and,
//! where a shell that has it is named, with `.recover | sqlite3`.
//!
//! Databases are made once and kept in the folder. Files are read once before each run, so that all start with a warm cache. The
//! best of several runs counts; memory is the peak of anonymous memory (`RssAnon`) of the process, polled.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;
use rootpage_tools::rng::Rng;
use rusqlite::{Connection, params};

/// Measures check and recover against SQLite
#[derive(Parser)]
struct Args {
    /// Where the databases are kept and the copies are written (three times the size of the largest is needed)
    #[arg(long, default_value = "/tmp/rootpage-bench")]
    dir: PathBuf,
    /// The binary to measure
    #[arg(long, default_value = "target/release/rootpage")]
    bin: PathBuf,
    /// Sizes in MB
    #[arg(long, value_delimiter = ',', default_values_t = [100, 1000])]
    size: Vec<u64>,
    /// Kinds of database
    #[arg(long, value_delimiter = ',', default_values_t = ["plain".to_owned(), "agent".to_owned()])]
    kind: Vec<String>,
    /// A sqlite3 shell with a working .recover
    #[arg(long)]
    shell: Option<PathBuf>,
    /// Runs of each; the best counts
    #[arg(long, default_value_t = 3)]
    runs: u32,
    /// Let rootpage hash its inputs
    #[arg(long)]
    hash: bool,
    /// Only make the databases
    #[arg(long)]
    make: bool,
    /// Used by the program itself: what SQLite shall do in a process of its own
    #[arg(long, hide = true, num_args = 2.., value_names = ["WHAT", "DB"])]
    sqlite: Vec<String>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    if let [what, db, rest @ ..] = args.sqlite.as_slice() {
        return sqlite(what, db, rest);
    }
    fs::create_dir_all(&args.dir)?;
    if args.make {
        for kind in &args.kind {
            for &size in &args.size {
                database(&args.dir, kind, size)?;
            }
        }
        return Ok(());
    }
    ensure!(args.bin.exists(), "{} is not there: cargo build --release", args.bin.display());
    println!("{:<18}{:<34}{:>9}{:>12}{:>10}", "database", "command", "seconds", "memory MiB", "ratio");
    for kind in &args.kind {
        for &size in &args.size {
            let db = database(&args.dir, kind, size)?;
            measure(&args, &format!("{kind} {size} MB"), &db)?;
        }
    }
    Ok(())
}

/// What SQLite does in a process of its own.
fn sqlite(what: &str, db: &str, rest: &[String]) -> Result<()> {
    let con = Connection::open(db)?;
    match what {
        "integrity" => {
            let said: String = con.query_row("PRAGMA integrity_check", [], |r| r.get(0))?;
            ensure!(said == "ok", "{said}");
        }
        "vacuum" => drop(con.execute("VACUUM INTO ?", [rest.first().context("needs a target")?])?),
        _ => bail!("unknown: {what}"),
    }
    Ok(())
}

/// Seconds and peak anonymous memory in MiB of a command; the exit code must be 0.
fn once(command: &mut Command) -> Result<(f64, f64)> {
    let start = Instant::now();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
    let status_file = format!("/proc/{}/status", child.id());
    let mut peak = 0_u64;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if let Ok(text) = fs::read_to_string(&status_file) {
            let kib = text.lines().find_map(|l| l.strip_prefix("RssAnon:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
            peak = peak.max(kib.unwrap_or(0));
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let seconds = start.elapsed().as_secs_f64();
    ensure!(status.success(), "{command:?}: {status}");
    Ok((seconds, peak as f64 / 1024.0))
}

fn best(args: &Args, db: &Path, mut make: impl FnMut() -> Command) -> Result<(f64, f64)> {
    let mut out = (f64::MAX, 0.0_f64);
    for _ in 0..args.runs {
        for entry in fs::read_dir(&args.dir)? {
            let path = entry?.path();
            if path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("out.")) {
                fs::remove_file(path)?;
            }
        }
        std::io::copy(&mut fs::File::open(db)?, &mut std::io::sink())?;
        let (seconds, memory) = once(&mut make())?;
        out = (out.0.min(seconds), out.1.max(memory));
    }
    Ok(out)
}

fn measure(args: &Args, label: &str, db: &Path) -> Result<()> {
    let out = args.dir.join("out.db");
    let own = std::env::current_exe()?;
    let line = |what: &str, (seconds, memory): (f64, f64), against: Option<f64>| {
        let ratio = against.map(|a| format!("{:.3}x", seconds / a)).unwrap_or_default();
        println!("{label:<18}{what:<34}{seconds:>9.3}{memory:>12.1}{ratio:>10}");
    };
    let sqlite = |rest: &[&Path]| {
        let mut c = Command::new(&own);
        c.arg("--sqlite").args(rest);
        c
    };
    let rootpage = |verb: &str, rest: &[&Path]| {
        let mut c = Command::new(&args.bin);
        c.arg(verb).args(rest).arg("--quiet");
        if !args.hash {
            c.arg("--no-hash");
        }
        c
    };
    let integrity = best(args, db, || sqlite(&[Path::new("integrity"), db]))?;
    line("PRAGMA integrity_check", integrity, None);
    line("rootpage check", best(args, db, || rootpage("check", &[db]))?, Some(integrity.0));
    let vacuum = best(args, db, || sqlite(&[Path::new("vacuum"), db, &out]))?;
    line("VACUUM INTO", vacuum, None);
    let recover = best(args, db, || rootpage("recover", &[db, Path::new("-o"), &out]))?;
    line("rootpage recover (to VACUUM INTO)", recover, Some(vacuum.0));
    if let Some(shell) = &args.shell {
        let pipe = format!("'{0}' '{1}' .recover | '{0}' '{2}'", shell.display(), db.display(), out.display());
        let theirs = best(args, db, || {
            let mut c = Command::new("sh");
            c.arg("-c").arg(&pipe);
            c
        })?;
        // The memory of a pipeline is not that of the shell that starts it.
        line(".recover | sqlite3", (theirs.0, 0.0), None);
        line("rootpage recover (to .recover)", recover, Some(theirs.0));
    }
    Ok(())
}

/// The database of a kind and a size; made when it is not there yet.
fn database(dir: &Path, kind: &str, size: u64) -> Result<PathBuf> {
    let path = dir.join(format!("{kind}-{size}.db"));
    if path.exists() {
        return Ok(path);
    }
    let unfinished = dir.join(format!("{kind}-{size}.making"));
    let _ = fs::remove_file(&unfinished);
    let start = Instant::now();
    let con = Connection::open(&unfinished)?;
    con.execute_batch("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-400000;")?;
    let mut rng = Rng::new(kind);
    match kind {
        "plain" => con.execute_batch(
            "CREATE TABLE events(id INTEGER PRIMARY KEY, at REAL NOT NULL, kind TEXT NOT NULL, source TEXT, user TEXT, amount REAL, flags INTEGER, body TEXT, extra BLOB, note TEXT);
             CREATE INDEX events_at ON events(at); CREATE INDEX events_user ON events(user, kind);
             CREATE TABLE kv(ns TEXT, k TEXT, v BLOB, PRIMARY KEY(ns, k)) WITHOUT ROWID;
             CREATE TABLE narrow(a INTEGER, b INTEGER);",
        )?,
        "agent" => con.execute_batch(
            "CREATE TABLE sessions(id TEXT PRIMARY KEY, source TEXT NOT NULL, model TEXT, started_at REAL NOT NULL, title TEXT);
             CREATE TABLE messages(id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL REFERENCES sessions(id), role TEXT NOT NULL, content TEXT, tool_calls TEXT, timestamp REAL NOT NULL);
             CREATE INDEX idx_messages_session ON messages(session_id, timestamp);
             CREATE VIRTUAL TABLE messages_fts USING fts5(content, content=messages, content_rowid=id);
             CREATE VIRTUAL TABLE messages_fts_trigram USING fts5(content, content=messages, content_rowid=id, tokenize='trigram');
             CREATE TRIGGER mi AFTER INSERT ON messages BEGIN INSERT INTO messages_fts(rowid, content) VALUES(new.id, new.content);
               INSERT INTO messages_fts_trigram(rowid, content) VALUES(new.id, new.content); END;
             CREATE TRIGGER md AFTER DELETE ON messages BEGIN INSERT INTO messages_fts(messages_fts, rowid, content) VALUES('delete', old.id, old.content);
               INSERT INTO messages_fts_trigram(messages_fts_trigram, rowid, content) VALUES('delete', old.id, old.content); END;",
        )?,
        other => bail!("unknown kind {other}"),
    }
    let mut done = 0_i64;
    loop {
        con.execute_batch("BEGIN")?;
        if kind == "plain" {
            plain(&con, &mut rng, done)?
        } else {
            agent(&con, &mut rng, done)?
        }
        con.execute_batch("COMMIT")?;
        done += 1;
        let bytes: i64 = con.query_row("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size", [], |r| r.get(0))?;
        if bytes.unsigned_abs() >= size * 1_000_000 {
            break;
        }
    }
    con.close().map_err(|(_, e)| e)?;
    fs::rename(&unfinished, &path)?;
    eprintln!("made {} in {:.0} s", path.display(), start.elapsed().as_secs_f64());
    Ok(path)
}

fn plain(con: &Connection, rng: &mut Rng, batch: i64) -> Result<()> {
    let mut event = con.prepare_cached("INSERT INTO events VALUES(?,?,?,?,?,?,?,?,?,?)")?;
    let mut kv = con.prepare_cached("INSERT OR REPLACE INTO kv VALUES(?,?,?)")?;
    let mut narrow = con.prepare_cached("INSERT INTO narrow VALUES(?,?)")?;
    for n in 0..2000_i64 {
        let id = batch * 2000 + n + 1;
        let (words, blob) = (10 + rng.below(40), rng.below(60));
        event.execute(params![
            id,
            1.7e9 + id as f64 * 0.37,
            *rng.pick(&["click", "view", "buy", "error"]),
            format!("host-{}", rng.below(40)),
            format!("user-{:05}", rng.below(20_000)),
            rng.range(0, 100_000) as f64 / 100.0,
            rng.range(0, 255),
            rng.words(words),
            rng.bytes(blob),
            (n % 3 == 0).then(|| rng.words(3))
        ])?;
        if n % 10 == 0 {
            kv.execute(params![format!("ns{}", rng.below(9)), format!("{:016x}", rng.bits()), rng.bytes(40)])?;
        }
        if n % 4 == 0 {
            narrow.execute(params![id, rng.range(0, 1000)])?;
        }
    }
    Ok(())
}

fn agent(con: &Connection, rng: &mut Rng, batch: i64) -> Result<()> {
    let mut session = con.prepare_cached("INSERT INTO sessions VALUES(?,?,?,?,?)")?;
    let mut message = con.prepare_cached("INSERT INTO messages(session_id, role, content, tool_calls, timestamp) VALUES(?,?,?,?,?)")?;
    for s in 0..10_i64 {
        let id = format!("{:08x}-{batch}-{s}", rng.bits() as u32);
        session.execute(params![
            id,
            *rng.pick(&["cli", "cron", "telegram"]),
            "m-1",
            1.76e9 + (batch * 10 + s) as f64 * 60.0,
            format!("talk {batch} {s}")
        ])?;
        for m in 0..30_i64 {
            let words = *rng.pick(&[5, 20, 60, 200, 900]);
            // Numbers between the words: a text of a few words alone would give an index that is smaller than life.
            let text = (0..words / 4).map(|_| format!("{} {:x} ", rng.words(3), rng.below(1 << 24))).collect::<String>();
            message.execute(params![
                id,
                *rng.pick(&["user", "assistant", "tool"]),
                (m % 12 > 0).then_some(text),
                (m % 3 == 0).then(|| format!("[{{\"id\": {}}}]", rng.below(1 << 30))),
                1.76e9 + (batch * 300 + s * 30 + m) as f64
            ])?;
        }
    }
    Ok(())
}
