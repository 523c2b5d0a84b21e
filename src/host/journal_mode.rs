//! `journal-mode`: a copy of a database in another journal mode, its log folded in.
//!
//! Every page is copied as SQLite would read it: the journal rolled back, the committed frames of the log over the file. Only
//! the two version bytes of the header, the change counter and the page count are new. There is no form that changes a
//! database in its place.

use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::Path;

use serde::Serialize;

use crate::bytes::{put_u32, slice};
use crate::ctx::Ctx;
use crate::error::{Error, Result};
use crate::evidence::{Evidence, Fit, InputFile, OpenOptions, PageSource as _, Sources, Verdict, View};
use crate::finding::Findings;
use crate::format::DatabaseHeader;
use crate::format::header::HEADER_LEN;
use crate::ids::{PageNo, idx, wide};
use crate::report::human::shell;
use crate::report::model::Class;
use crate::verbs::{self, Inputs, Options};
use crate::write::file::OutputFile;
use crate::write::stamp;

use super::doctor::Step;
use super::holders::{self, Which};
use super::mounts;

/// The mode of the copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// A rollback journal (`PRAGMA journal_mode=DELETE`).
    Delete,
    /// A write-ahead log.
    Wal,
}

impl Mode {
    /// The version number at offsets 18 and 19.
    const fn version(self) -> u8 {
        match self {
            Mode::Delete => 1,
            Mode::Wal => 2,
        }
    }

    /// The word of SQLite.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Mode::Delete => "DELETE",
            Mode::Wal => "WAL",
        }
    }
}

/// What became of a conversion.
#[derive(Debug, Clone, Serialize)]
pub struct Converted {
    /// The number of this format; grows when a field changes its meaning.
    pub format: u32,
    /// The version of rootpage.
    pub tool_version: &'static str,
    /// The database.
    pub path: String,
    /// The copy; `None`: none was written.
    pub out: Option<String>,
    /// The mode of the copy.
    pub mode: Mode,
    /// Why no copy was written.
    pub refused: Option<String>,
    /// Pages of the copy.
    pub pages: u32,
    /// Pages that came from the log.
    pub from_log: u32,
    /// Whether a transaction that broke off was rolled back.
    pub rolled_back: bool,
    /// The class of the damage that the copy has, as the database has it.
    pub damage: Class,
    /// What to do next.
    pub steps: Vec<Step>,
    /// 0 written, 1 written and something but no data is damaged, 3 no copy.
    pub exit_code: u8,
}

impl Converted {
    /// As JSON, indented, with a line feed at the end.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Plain data: serialisation cannot fail.
        let mut json = serde_json::to_string_pretty(self).unwrap_or_default();
        json.push('\n');
        json
    }

    fn refuse(mut self, why: String, steps: Vec<Step>) -> Converted {
        (self.refused, self.steps, self.exit_code) = (Some(why), steps, 3);
        self
    }
}

/// Writes a copy of a database in a journal mode. Refused while a process has it open for writing, and where the copy would
/// not be the database that SQLite sees: its pages are damaged, or its log is in doubt.
///
/// # Errors
/// What the tool cannot do; [`Error::Unstable`] when an input changed meanwhile.
pub fn convert(db: &Path, mode: Mode, out: &Path, options: &Options, ctx: &Ctx) -> Result<Converted> {
    let (path, out_path) = (db.display().to_string(), out.display().to_string());
    let done = Converted {
        format: 1,
        tool_version: env!("CARGO_PKG_VERSION"),
        path: path.clone(),
        out: None,
        mode,
        refused: None,
        pages: 0,
        from_log: 0,
        rolled_back: false,
        damage: Class::Healthy,
        steps: Vec::new(),
        exit_code: 0,
    };
    let mut target = OutputFile::create(out, options.force, &[db])?;
    if let Some(why) = held(db) {
        return Ok(done.refuse(why, Vec::new()));
    }
    let recover = || Step {
        words: "Write a clean copy first, and convert that one if its mode is not the right one:".to_owned(),
        commands: vec![format!("rootpage recover {} -o {}", shell(&path), shell(&format!("{path}.recovered")))],
    };
    let report = verbs::check(&Inputs::at_path(db), options, ctx)?;
    if report.verdict.class > Class::IndexOnly {
        return Ok(done.refuse(report.verdict.sentence, vec![recover()]));
    }
    let mut open = OpenOptions::new();
    (open.no_mmap, open.hash, open.temp_dir) = (options.no_mmap, !options.no_hash, Some(target.folder().to_path_buf()));
    let evidence = Evidence::open(&Sources { db: db.to_path_buf(), ..Sources::default() }, ctx, &open)?;
    let Some(view) = evidence.view(&mut Findings::new(0))? else {
        return Ok(done.refuse("No page can be made out.".to_owned(), Vec::new()));
    };
    if let Some(why) = doubt(&evidence, &view) {
        return Ok(done.refuse(why, vec![recover()]));
    }
    target.permissions_of(db)?;
    let (pages, from_log) = write(&view, mode, &target, ctx)?;
    read_back(&view, mode, &target, ctx)?;
    if let Some((path, what)) = evidence.recheck(ctx)? {
        return Err(Error::Unstable { path, what });
    }
    if let Some(why) = held(db) {
        return Ok(done.refuse(why, Vec::new()));
    }
    target.commit()?;
    let steps = vec![install(&path, &out_path)];
    let damage = report.verdict.class;
    let exit_code = u8::from(damage > Class::Healthy);
    Ok(Converted { out: Some(out_path), pages, from_log, rolled_back: view.rolled_back, damage, steps, exit_code, ..done })
}

/// Why nothing may be copied now: a process may write at any moment.
fn held(db: &Path) -> Option<String> {
    let seen = holders::look(&mounts::real(db));
    let writer = seen.holders.iter().find(|h| h.writes && h.file != Which::Shm)?;
    let (name, pid) = (&writer.name, writer.pid);
    Some(if writer.gone {
        format!(
            "{name} ({pid}) has a {} of this name open that was deleted. Rescue it first: rootpage doctor --rescue",
            writer.file.words()
        )
    } else {
        format!("{name} ({pid}) has the {} open for writing. Stop it first", writer.file.words())
    })
}

/// What makes the view doubtful.
fn doubt(evidence: &Evidence, view: &View<'_>) -> Option<String> {
    let foreign = |fit: &Option<Fit>| fit.as_ref().is_some_and(|f| f.verdict != Verdict::Same);
    if foreign(&view.wal_fit) || foreign(&view.journal_fit) {
        return Some("A log or journal lies beside the database that may not be its own".to_owned());
    }
    if view.hidden.is_some() || !view.others.is_empty() {
        return Some("The log or journal holds work that SQLite would not show".to_owned());
    }
    if evidence.inputs().any(|(_, file)| !file.holes().is_empty()) {
        return Some("A part of the file cannot be read".to_owned());
    }
    let g = &view.geometry;
    if g.header.is_none() || g.byte_shift != 0 || g.page_shift != 0 || g.spliced.is_some() || evidence.main_bytes().is_empty() {
        return Some("The first page is not where it should be".to_owned());
    }
    None
}

fn write(view: &View<'_>, mode: Mode, target: &OutputFile, ctx: &Ctx) -> Result<(u32, u32)> {
    let snapshot = &view.snapshot;
    let count = snapshot.page_count();
    let mut from_log = 0_u32;
    let mut out = std::io::BufWriter::with_capacity(1 << 20, target.file());
    ctx.progress.phase("copy pages", u64::from(count));
    let mut at = Some(PageNo::ONE);
    while let Some(no) = at.filter(|no| no.get() <= count) {
        ctx.check()?;
        let image = page_of(view, no, mode)?;
        from_log =
            from_log.saturating_add(u32::from(matches!(snapshot.page(no).map(|p| p.origin), Some(crate::finding::Origin::Wal { .. }))));
        out.write_all(&image).map_err(|e| Error::io(target.path(), "write", e))?;
        ctx.progress.advance(1);
        at = no.next();
    }
    out.flush().map_err(|e| Error::io(target.path(), "write", e))?;
    ctx.progress.finish();
    Ok((count, from_log))
}

/// A page as the copy has it.
fn page_of(view: &View<'_>, no: PageNo, mode: Mode) -> Result<Vec<u8>> {
    let snapshot = &view.snapshot;
    let size = snapshot.page_size().len();
    let page = snapshot.page(no).filter(|p| p.bytes.len() == size);
    let Some(page) = page else {
        return Err(Error::SelfCheck { what: format!("page {no} is not there, although the database is whole") });
    };
    let mut image = page.bytes.to_vec();
    if no == PageNo::ONE {
        let sums = view.geometry.reserved == 8 && has_checksum(&image);
        let counter = DatabaseHeader::read(&image).map_or(1, |h| h.change_counter).wrapping_add(1);
        for place in image.iter_mut().skip(18).take(2) {
            *place = mode.version();
        }
        put_u32(&mut image, 24, counter);
        put_u32(&mut image, 28, snapshot.page_count());
        put_u32(&mut image, 92, counter);
        if sums {
            stamp(&mut image);
        }
    }
    Ok(image)
}

/// Whether a page ends in its checksum, as SQLite's checksum VFS writes it.
fn has_checksum(image: &[u8]) -> bool {
    let mut stamped = image.to_vec();
    stamp(&mut stamped);
    stamped == image
}

/// Reads the copy and compares every page with what was meant.
fn read_back(view: &View<'_>, mode: Mode, target: &OutputFile, ctx: &Ctx) -> Result<()> {
    target.file().sync_data().map_err(|e| Error::io(target.path(), "write", e))?;
    let mut file = target.file();
    file.seek(SeekFrom::Start(0)).map_err(|e| Error::io(target.path(), "read", e))?;
    let mut open = OpenOptions::new();
    (open.own, open.hash) = (true, false);
    let copy = InputFile::open(target.temp_path(), ctx, &open)?;
    let size = view.snapshot.page_size().len();
    let whole = idx(view.snapshot.page_count()).checked_mul(size).map(wide);
    if whole != Some(copy.len()) {
        return Err(Error::SelfCheck { what: format!("the copy has {} bytes", copy.len()) });
    }
    let mut at = Some(PageNo::ONE);
    while let Some(no) = at.filter(|no| no.get() <= view.snapshot.page_count()) {
        ctx.check()?;
        let stored = no.index().checked_mul(size).and_then(|start| slice(copy.bytes(), start, size));
        if stored != Some(page_of(view, no, mode)?.as_slice()) {
            return Err(Error::SelfCheck { what: format!("page {no} of the copy reads back differently") });
        }
        at = no.next();
    }
    let header = slice(copy.bytes(), 0, HEADER_LEN).and_then(|b| DatabaseHeader::read(b).ok());
    match header {
        Some(h) if h.write_version == mode.version() && h.read_version == mode.version() => Ok(()),
        _ => Err(Error::SelfCheck { what: "the header of the copy has another mode".to_owned() }),
    }
}

/// How the copy takes the place of the database: the old sidecars first.
pub(super) fn install(db: &str, out: &str) -> Step {
    let old = format!("{db}.before");
    let mut commands: Vec<String> = ["-wal", "-shm", "-journal"]
        .iter()
        .map(|s| {
            let (from, to) = (shell(&format!("{db}{s}")), shell(&format!("{old}{s}")));
            format!("[ ! -e {from} ] || mv -n {from} {to}")
        })
        .collect();
    commands.push(format!("mv -n {} {}", shell(db), shell(&old)));
    commands.push(format!("mv -n {} {}", shell(out), shell(db)));
    let words = "Put the copy in place. Stop every program that uses the database first. The old -wal, -shm and -journal must go first: beside the copy SQLite would show old data through them.";
    Step { words: words.to_owned(), commands }
}
