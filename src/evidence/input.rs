//! The files of one incident, opened together, and the state of the database that they show.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::branches::{Branch, BranchKind};
use super::edges::checkpointed;
use super::fit::{self, Case, Fit, Verdict};
use super::generations::{self, Joined, Standing};
use super::journal::{JournalIndex, JournalState};
use super::open::{InputFile, OpenOptions, beside, sidecar};
use super::overlay::{Layers, Snapshot};
use super::page_fit;
use super::page_one::{Clues, Geometry, grade, reconcile};
use super::shm::Shm;
use super::source::PageSource;
use super::transfer;
use super::wal::{Commit, FrameClass, HiddenCommits, WalIndex};
use crate::ctx::Ctx;
use crate::error::{Error, Result};
use crate::finding::{Code, Defect, Findings, Origin, Site};
use crate::format::DatabaseHeader;
use crate::format::wal::WalHeader;
use crate::ids::{FrameNo, PageNo, PageSize, narrow, small, wide};

/// Which files are the evidence.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// The database file, or a WAL alone.
    pub db: PathBuf,
    /// Logs named by the caller; the first is the one that is blended. None: the one beside `db`.
    pub wal: Vec<PathBuf>,
    /// The rollback journal named by the caller; none: the one beside `db`.
    pub journal: Option<PathBuf>,
    /// The `-shm` named by the caller; none: the one beside `db`.
    pub shm: Option<PathBuf>,
    /// Read no WAL.
    pub no_wal: bool,
    /// Read no journal.
    pub no_journal: bool,
    /// Where the database begins in the file, in bytes.
    pub offset: u64,
    /// The state to show; none: the one that SQLite would show.
    pub at: Option<At>,
    /// Whether a super-journal that the journal names counts as present.
    pub super_journal: Option<bool>,
}

/// A state of the database.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum At {
    /// After this commit of the WAL, from 1; 0 is the main file alone.
    Commit(u32),
    /// After this frame.
    Frame(u32),
    /// At the head of a branch, by its name.
    Branch(String),
}

/// What a file is to the incident.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// The database file.
    Main,
    /// A write-ahead log.
    Wal,
    /// A rollback journal.
    Journal,
    /// The shared-memory index of the log.
    Shm,
}

/// The files of one incident, read through.
#[derive(Debug)]
pub struct Evidence {
    sources: Sources,
    main: Option<InputFile>,
    /// The main file as it was before a transfer changed all of it.
    undone: Option<transfer::Undone>,
    wals: Vec<InputFile>,
    journal: Option<InputFile>,
    shm: Option<InputFile>,
}

/// What the files show: the geometry, the indexes of the sidecars, their fit, and one state as pages.
#[derive(Debug)]
pub struct View<'a> {
    /// The geometry of the main file, and the header.
    pub geometry: Geometry,
    /// The pages.
    pub snapshot: Snapshot<'a>,
    /// The log that was looked at, whether it is blended or not.
    pub wal: Option<WalIndex<'a>>,
    /// How the log fits; `None` without a log.
    pub wal_fit: Option<Fit>,
    /// The journal that was looked at.
    pub journal: Option<JournalIndex<'a>>,
    /// How the journal fits; `None` without one.
    pub journal_fit: Option<Fit>,
    /// Whether the journal was rolled back.
    pub rolled_back: bool,
    /// The last frame that is blended.
    pub upto: Option<FrameNo>,
    /// The branches of the log, the shown one first; their positions count in [`View::logs`].
    pub branches: Vec<Branch>,
    /// All logs as one history, in the order of their frames; `None` without a log.
    pub logs: Option<WalIndex<'a>>,
    /// What each log is to the others, in the order given.
    pub standings: Vec<Standing>,
    /// Commits of the log that the snapshot does not show because SQLite would not.
    pub hidden: Option<HiddenCommits>,
    /// States that the files hold as well and that may be the right one, or a part of it.
    pub others: Vec<(OtherState, Snapshot<'a>)>,
}

/// A state that the default view does not show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OtherState {
    /// The main file alone, where it is not certain that a sidecar belongs to it.
    MainAlone,
    /// With all images of the journal rolled back, where SQLite would roll back none or not all of them.
    RolledBack,
    /// Another branch of the log, by its place in [`View::branches`].
    Branch(u16),
}

/// Branches whose rows are looked at; each is a state of its own.
const STATES: usize = 8;

impl View<'_> {
    /// The number of the last frame that is blended.
    #[must_use]
    pub fn last_frame(&self) -> Option<FrameNo> {
        let upto = self.upto?;
        self.wal.as_ref().map_or(Some(upto), |w| Some(w.number(narrow(u64::from(upto.0)).checked_sub(1)?)))
    }
}

impl Evidence {
    /// Opens and reads through all files.
    ///
    /// # Errors
    /// [`Error::Io`] for a file that is named and cannot be read, [`Error::Unstable`], [`Error::Cancelled`].
    pub fn open(sources: &Sources, ctx: &Ctx, options: &OpenOptions) -> Result<Evidence> {
        let db = &sources.db;
        let first = InputFile::open(db, ctx, options)?;
        let is_wal = WalHeader::read(first.bytes()).is_ok_and(|h| h.order().is_some() && h.page_size().is_some());
        let named_wal = db.as_os_str().as_encoded_bytes().ends_with(b"-wal") && grade(first.bytes()) < 5 && !first.is_empty();
        if sources.wal.is_empty() && (is_wal || named_wal) && sources.offset == 0 {
            let journal = None;
            return Ok(Evidence { sources: sources.clone(), main: None, undone: None, wals: vec![first], journal, shm: None });
        }
        let mut wals = Vec::new();
        if !sources.no_wal {
            for path in &sources.wal {
                wals.push(InputFile::open(path, ctx, options)?);
            }
            if wals.is_empty() {
                wals.extend(sidecar(None, beside(db, "-wal"), ctx, options)?);
            }
        }
        let journal = if sources.no_journal { None } else { sidecar(sources.journal.as_ref(), beside(db, "-journal"), ctx, options)? };
        let shm = if sources.no_wal { None } else { sidecar(sources.shm.as_ref(), beside(db, "-shm"), ctx, options)? };
        let undone = if sources.offset == 0 { transfer::undo(&first, ctx, options)? } else { None };
        Ok(Evidence { sources: sources.clone(), main: Some(first), undone, wals, journal, shm })
    }

    /// Evidence from bytes that the caller holds: the main file, and a log and a journal where there are any.
    #[must_use]
    pub fn from_inputs(sources: Sources, main: Option<InputFile>, wals: Vec<InputFile>, journal: Option<InputFile>) -> Evidence {
        Evidence { sources, main, undone: None, wals, journal, shm: None }
    }

    /// All files with what they are.
    pub fn inputs(&self) -> impl Iterator<Item = (Part, &InputFile)> {
        let main = self.main.iter().map(|f| (Part::Main, f));
        let wals = self.wals.iter().map(|f| (Part::Wal, f));
        let journal = self.journal.iter().map(|f| (Part::Journal, f));
        main.chain(wals).chain(journal).chain(self.shm.iter().map(|f| (Part::Shm, f)))
    }

    /// The first file of which a part was gone when it was to be read.
    #[must_use]
    pub fn lost(&self) -> Option<&Path> {
        self.inputs().find(|(_, file)| file.is_lost()).map(|(_, file)| file.path())
    }

    /// Reads every file once more; the first that changed, and how.
    ///
    /// # Errors
    /// As [`InputFile::recheck`].
    pub fn recheck(&self, ctx: &Ctx) -> Result<Option<(PathBuf, String)>> {
        for (_, file) in self.inputs() {
            if let Some(what) = file.recheck(ctx)? {
                return Ok(Some((file.path().to_path_buf(), what)));
            }
        }
        Ok(None)
    }

    /// The bytes of the main file from `offset` on, as they were before a transfer that can be undone; empty when there is no main
    /// file.
    #[must_use]
    pub fn main_bytes(&self) -> &[u8] {
        if let Some(undone) = &self.undone {
            return undone.file.bytes();
        }
        let bytes = self.main.as_ref().map_or(&[][..], InputFile::bytes);
        bytes.get(narrow(self.sources.offset)..).unwrap_or_default()
    }

    /// The bytes of the log that is blended; empty without one.
    #[must_use]
    pub fn wal_bytes(&self) -> &[u8] {
        self.wals.first().map_or(&[][..], InputFile::bytes)
    }

    /// All logs, in the order given.
    #[must_use]
    pub fn logs(&self) -> &[InputFile] {
        &self.wals
    }

    /// The shared memory of the log, where it was captured.
    #[must_use]
    pub fn shm_bytes(&self) -> Option<&[u8]> {
        self.shm.as_ref().map(InputFile::bytes)
    }

    /// The state that [`Sources::at`] asks for, else the one that SQLite would show. `Ok(None)`: no page can be made out.
    ///
    /// # Errors
    /// [`Error::Usage`] for a commit or frame that the log does not have.
    pub fn view(&self, log: &mut Findings) -> Result<Option<View<'_>>> {
        let main = self.main_bytes();
        if let Some(undone) = &self.undone {
            log.add(Defect::new(Code::TextModeTransfer, 0, undone.taken, 0), Site::default());
        }
        let hint = header_size(main).or_else(|| self.voted_size());
        // What is wrong with a sidecar of another database says nothing about this one.
        let (mut of_wal, mut of_journal) = (Findings::new(log.cap()), Findings::new(log.cap()));
        let mut indexes: Vec<(usize, WalIndex<'_>)> = Vec::new();
        for (i, file) in self.wals.iter().enumerate() {
            indexes.extend(WalIndex::read(file.bytes(), hint, &mut of_wal).map(|index| (i, index)));
        }
        let mut quiet = Findings::new(0);
        let joined = self.joined(&indexes, &mut quiet);
        let (logs, branches, standings) = joined.map_or((None, Vec::new(), Vec::new()), |j| (Some(j.index), j.branches, j.standings));
        let wal = match &self.sources.at {
            Some(At::Branch(name)) => Some(branch_of(name, logs.as_ref(), &branches)?),
            _ => logs.clone(),
        };
        let journal_bytes = self.journal.as_ref().map_or(&[][..], InputFile::bytes);
        let journal_hint = hint.or_else(|| wal.as_ref().map(|w| w.page_size));
        let journal = JournalIndex::read(journal_bytes, journal_hint, main.is_empty(), self.sources.super_journal, &mut of_journal);
        let wants_rollback = journal.as_ref().is_some_and(|j| j.state == JournalState::Hot);

        let blend = wal.as_ref().is_some_and(|w| w.last_commit().is_some());
        let mut state = State { main, wal: wal.as_ref(), journal: journal.as_ref(), blend, roll_back: wants_rollback };
        // The sidecars are judged on the state they would give, one after the other, the journal first as SQLite does.
        let journal_fit = if wants_rollback { state.judge_journal(&mut quiet) } else { None };
        note_fit(journal_fit.as_ref(), Code::JournalForeign, Code::JournalUndecided, Origin::Journal { record: 0 }, log);
        let journal_is_own = journal_fit.as_ref().is_none_or(|f| f.verdict != Verdict::Foreign);
        state.roll_back = wants_rollback && journal_is_own;
        if journal_is_own {
            log.merge(of_journal);
        }
        // A log of which SQLite reads nothing is judged by the commits that it hides.
        let mut wal_fit = None;
        let last = |w: &WalIndex<'_>| w.last_commit();
        if let Some(commit) = wal.as_ref().and_then(last) {
            wal_fit = State { blend: true, ..state }.judge_wal(commit, &mut quiet, log);
        } else if let (Some(logs), Some(branch)) = (&logs, branches.get(1)) {
            let index = branch.index(logs);
            if let Some(commit) = index.last_commit() {
                wal_fit = State { blend: true, wal: Some(&index), ..state }.judge_wal(commit, &mut quiet, log);
            }
        }
        note_fit(wal_fit.as_ref(), Code::WalForeign, Code::WalUndecided, Origin::Wal { frame: FrameNo(0) }, log);
        let is_own = wal_fit.as_ref().is_none_or(|f| f.verdict != Verdict::Foreign);
        if is_own {
            log.merge(of_wal);
        }
        state.blend = blend && is_own;
        let hidden = logs.as_ref().filter(|_| is_own && self.sources.at.is_none()).and_then(|logs| hidden(logs, &branches));
        if let Some(h) = &hidden {
            let site = Site { origin: Origin::Wal { frame: h.first }, ..Site::default() };
            log.add(Defect::new(Code::CommitsHidden, 0, u64::from(h.commits), u64::from(h.frames)), site);
        }

        let (upto, pages) = self.target(state.wal.filter(|_| state.blend))?;
        state.blend = upto.is_some();
        let Some(geometry) = reconcile(&state.clues(upto), log) else { return Ok(None) };
        self.note_holes(&geometry, log);
        if let (Some(w), true) = (&wal, main.is_empty()) {
            log.add(Defect::new(Code::WalWithoutMain, 0, wide(w.frames.len()), 0), Site::default());
        }
        if !main.is_empty()
            && let Err(short) = DatabaseHeader::read(main)
        {
            log.add(short, Site::default());
        }
        let says_wal = DatabaseHeader::read(main).is_ok_and(|h| h.magic_ok() && h.read_version == 2);
        if says_wal && self.wals.is_empty() && !self.sources.no_wal {
            log.add(Defect::new(Code::VersionsSayWal, 18, 2, 1), Site::default());
        }
        let layers = Layers { journal: journal.as_ref(), roll_back: state.roll_back, roll_back_all: false, wal: wal.as_ref(), upto, pages };
        let snapshot = Snapshot::new(main, &geometry, &layers);
        if upto.is_some() {
            let held = geometry.page_size.whole_pages(wide(main.len()));
            // The log holds few pages; the number that its commit names may be anything.
            let in_log: BTreeSet<u32> = wal.iter().flat_map(|w| &w.frames).map(|f| f.page).filter(|&p| p > held && p <= pages).collect();
            let held_here = in_log.into_iter().filter_map(PageNo::new).filter(|&no| snapshot.page(no).is_some()).count();
            let missing = u64::from(pages.saturating_sub(held)).saturating_sub(wide(held_here));
            if missing > 0 {
                let have = u64::from(pages).saturating_sub(missing);
                log.add(Defect::new(Code::CommitPagesMissing, 4, u64::from(pages), have), Site::default());
            }
        }
        let rolled_back = state.roll_back;
        let mut others = Vec::new();
        let undecided = |f: &Option<Fit>| f.as_ref().is_some_and(|f| f.verdict == Verdict::Undecided);
        let blended = (upto.is_some() && undecided(&wal_fit)) || (rolled_back && undecided(&journal_fit));
        if self.sources.at.is_none() && blended && !main.is_empty() {
            others.push((OtherState::MainAlone, Snapshot::new(main, &geometry, &Layers::default())));
        }
        if journal.as_ref().is_some_and(|j| self.rolls_back_less(j, rolled_back)) {
            others.push((OtherState::RolledBack, Snapshot::new(main, &geometry, &Layers { roll_back_all: true, ..layers })));
        }
        if let (true, None, Some(logs)) = (is_own, &self.sources.at, &logs) {
            for (i, branch) in branches.iter().enumerate().skip(1).take(STATES) {
                let index = branch.index(logs);
                let Some(last) = index.last_commit() else { continue };
                let layers = Layers { wal: Some(&index), upto: Some(last.frame), pages: last.pages, ..layers };
                let mut with = Snapshot::new(main, &geometry, &layers);
                for m in &branch.mended {
                    let at = branch.path.iter().position(|p| *p == m.position).map(|i| FrameNo(small(i).saturating_add(1)));
                    if let (Some(at), Some(image)) = (at, &m.image) {
                        with.mend(&index, last.frame, at, m.page, image.clone());
                    }
                }
                others.push((OtherState::Branch(u16::try_from(i).unwrap_or(u16::MAX)), with));
            }
        }
        Ok(Some(View {
            geometry,
            snapshot,
            wal,
            wal_fit,
            journal,
            journal_fit,
            rolled_back,
            upto,
            branches,
            logs,
            standings,
            hidden,
            others,
        }))
    }

    /// The logs as one history.
    fn joined<'a>(&'a self, indexes: &[(usize, WalIndex<'a>)], quiet: &mut Findings) -> Option<Joined<'a>> {
        let (_, first) = indexes.first()?;
        let files: Vec<&[u8]> = self.wals.iter().map(InputFile::bytes).collect();
        let shm = self.shm_bytes().and_then(Shm::read);
        // A log that is whole has one branch, whatever the main file says.
        let plain = indexes.len() == 1 && first.frames.iter().all(|f| !matches!(f.class, FrameClass::Detached | FrameClass::Older));
        let geometry = if plain { None } else { reconcile(&Clues { main: self.main_bytes(), ..Clues::default() }, quiet) };
        let alone = geometry.as_ref().map(|g| Snapshot::new(self.main_bytes(), g, &Layers::default()));
        let usable = geometry.as_ref().map_or(first.page_size.get(), Geometry::usable);
        let main: Option<&dyn PageSource> = alone.as_ref().map(|a| -> &dyn PageSource { a });
        let mut joined = generations::join(indexes, &files, main, usable, shm.as_ref())?;
        if let (1, Some(main)) = (indexes.len(), main) {
            joined.add_lost_checkpoint(main);
        }
        Some(joined)
    }

    /// Whether the journal holds images that may be those of the last whole state and that the view does not show: SQLite
    /// ends the rollback before them, or begins none.
    fn rolls_back_less(&self, journal: &JournalIndex<'_>, rolled_back: bool) -> bool {
        let pages: BTreeSet<u32> = journal.records.iter().map(|r| r.page).collect();
        let counted: BTreeSet<u32> = journal.records.iter().filter(|r| r.counts).map(|r| r.page).collect();
        match journal.state {
            JournalState::Hot => rolled_back && counted.len() < pages.len(),
            JournalState::HeaderBad | JournalState::MainEmpty => !pages.is_empty(),
            JournalState::Undecided => self.sources.super_journal.is_none(),
            JournalState::Empty | JournalState::Finished => false,
        }
    }

    /// A page size that the main file's pages vote for when its header names none.
    fn voted_size(&self) -> Option<PageSize> {
        let main = self.main_bytes();
        reconcile(&Clues { main, ..Clues::default() }, &mut Findings::new(0)).map(|g| g.page_size)
    }

    /// The last frame of the state asked for, and the pages of the database after it.
    fn target(&self, wal: Option<&WalIndex<'_>>) -> Result<(Option<FrameNo>, u32)> {
        let last = wal.and_then(WalIndex::last_commit);
        let usage = |what: String| Err(Error::Usage { what });
        match (&self.sources.at, wal) {
            (None, _) => Ok(last.map_or((None, 0), |c| (Some(c.frame), c.pages))),
            (Some(At::Commit(0) | At::Frame(0)), _) => Ok((None, 0)),
            (Some(_), None) => usage("there is no log with commits to choose a state from".to_owned()),
            (Some(At::Branch(_)), Some(w)) => match w.last_commit() {
                Some(c) => Ok((Some(c.frame), c.pages)),
                None => usage("there is no commit on this branch".to_owned()),
            },
            (Some(At::Commit(n)), Some(w)) => match w.commits.get(narrow(u64::from(n.saturating_sub(1)))) {
                Some(c) => Ok((Some(c.frame), c.pages)),
                None => usage(format!("the log has {} commits, there is no commit {n}", w.commits.len())),
            },
            (Some(At::Frame(n)), Some(w)) => {
                let Some(i) = w.position(FrameNo(*n)) else {
                    return usage(format!("the log has {} frames, there is no frame {n}", w.frames.len()));
                };
                // Within a transaction its commit gives the number of pages, behind the last commit the highest page does.
                let next = w.frames.get(i..).unwrap_or_default().iter().find(|f| f.commit != 0).map(|f| f.commit);
                let highest = w.frames.iter().take(i.saturating_add(1)).map(|f| f.page).max().unwrap_or(0);
                Ok((Some(FrameNo(small(i).saturating_add(1))), next.unwrap_or(highest.max(last.map_or(0, |c| c.pages)))))
            }
        }
    }

    fn note_holes(&self, geometry: &Geometry, log: &mut Findings) {
        let Some(main) = &self.main else { return };
        for hole in main.holes() {
            let start = hole.start.saturating_sub(self.sources.offset);
            let len = hole.end.saturating_sub(hole.start);
            let page = PageNo::new(page_fit::page_at(narrow(start), geometry.page_size));
            log.add(Defect::new(Code::PageUnreadable, small(narrow(start)), len, 0), Site { page, ..Site::default() });
        }
    }
}

/// The history along a branch.
fn branch_of<'a>(name: &str, logs: Option<&WalIndex<'a>>, branches: &[Branch]) -> Result<WalIndex<'a>> {
    let found = logs.and_then(|logs| Some((logs, branches.iter().find(|b| b.name == name)?)));
    if let Some((logs, branch)) = found {
        return Ok(branch.index(logs));
    }
    let names: Vec<&str> = branches.iter().map(|b| b.name.as_str()).collect();
    let what = if names.is_empty() {
        format!("there is no log, and so no branch {name:?}")
    } else {
        format!("there is no branch {name:?}; there are: {}", names.join(", "))
    };
    Err(Error::Usage { what })
}

/// What the branches hold that SQLite does not read.
fn hidden(logs: &WalIndex<'_>, branches: &[Branch]) -> Option<HiddenCommits> {
    let is_own = |b: &&Branch| b.kind != BranchKind::LostCheckpoint;
    let own = |b: &Branch| b.path.get(narrow(u64::from(b.shared))..).unwrap_or_default().to_vec();
    let commits = branches.iter().skip(1).filter(is_own).map(|b| b.own_commits(logs)).fold(0, u32::saturating_add);
    let frames: BTreeSet<u32> = branches.iter().skip(1).filter(is_own).flat_map(own).collect();
    let first = frames.first().map(|i| logs.number(narrow(u64::from(*i))))?;
    (commits > 0).then(|| HiddenCommits { commits, frames: small(frames.len()), first })
}

fn header_size(main: &[u8]) -> Option<PageSize> {
    (grade(main) >= 5).then(|| DatabaseHeader::read(main).ok()?.page_size()).flatten()
}

fn note_fit(fit: Option<&Fit>, foreign: Code, undecided: Code, origin: Origin, log: &mut Findings) {
    let Some(fit) = fit else { return };
    let code = match fit.verdict {
        Verdict::Same => return,
        Verdict::Foreign => foreign,
        Verdict::Undecided => undecided,
    };
    log.add_with(Defect::new(code, 0, 0, 0), Site { origin, ..Site::default() }, fit.text());
}

/// The files, and what is laid over what, while it is being decided.
#[derive(Debug, Clone, Copy)]
struct State<'x, 'a> {
    main: &'a [u8],
    wal: Option<&'x WalIndex<'a>>,
    journal: Option<&'x JournalIndex<'a>>,
    blend: bool,
    roll_back: bool,
}

impl<'a> State<'_, 'a> {
    fn clues(&self, upto: Option<FrameNo>) -> Clues<'a> {
        let wal = self.wal.filter(|_| self.blend);
        Clues {
            main: self.main,
            wal_page_size: wal.map(|w| w.page_size).or_else(|| self.wal.filter(|_| self.main.is_empty()).map(|w| w.page_size)),
            wal_page_one: wal.and_then(|w| w.newest(PageNo::ONE, upto?)).map(|(_, image)| image),
            journal_page_size: self.journal.map(|j| j.page_size),
            journal_page_one: self.journal.and_then(|j| j.any_image(PageNo::ONE)).map(|(_, image)| image),
            journal_is_hot: self.roll_back,
        }
    }

    fn main_page_one(&self, size: PageSize) -> Option<&'a [u8]> {
        self.main.get(..size.len())
    }

    /// The main file without any sidecar.
    fn alone(&self, quiet: &mut Findings) -> Option<Snapshot<'a>> {
        let geometry = reconcile(&Clues { main: self.main, ..Clues::default() }, quiet)?;
        Some(Snapshot::new(self.main, &geometry, &Layers::default()))
    }

    fn judge_journal(&self, quiet: &mut Findings) -> Option<Fit> {
        let journal = self.journal?;
        let alone = Clues { wal_page_one: None, wal_page_size: None, ..self.clues(None) };
        let geometry = reconcile(&alone, quiet)?;
        if let Some(fit) = self.size_contradicts(journal.page_size, "journal", quiet) {
            return Some(fit);
        }
        let layers = Layers { journal: Some(journal), roll_back: true, ..Layers::default() };
        let blended = Snapshot::new(self.main, &geometry, &layers);
        let alone = self.alone(quiet);
        Some(fit::journal(&Case {
            blended: &blended,
            alone: alone.as_ref().map(|a| -> &dyn PageSource { a }),
            newest_page_one: None,
            in_transaction: true,
            checkpointed: 0,
            main_page_one: self.main_page_one(geometry.page_size),
            other_page_one: journal.before_image(PageNo::ONE).map(|(_, image)| image),
            usable: geometry.usable(),
            other_pages: journal.pages_before,
            main_pages: geometry.page_size.whole_pages(wide(self.main.len())),
        }))
    }

    /// Pages of the main file that clearly are of another size than the sidecar's.
    fn size_contradicts(&self, size: PageSize, what: &str, quiet: &mut Findings) -> Option<Fit> {
        let own = reconcile(&Clues { main: self.main, ..Clues::default() }, quiet)?;
        if own.page_size == size {
            return None;
        }
        let vote = page_fit::vote(self.main, 0, own.page_size, own.reserved, grade(self.main) >= 5);
        let theirs = page_fit::vote(self.main, 0, size, own.reserved, grade(self.main) >= 5);
        // One page that closes exactly is proof enough of its size, as long as none closes at the other.
        (vote.full > 0 && vote.full > theirs.full).then(|| Fit {
            verdict: Verdict::Foreign,
            reasons: vec![format!(
                "the {what} has pages of {} bytes, {} pages of the main file close at {}",
                size.get(),
                vote.full,
                own.page_size.get()
            )],
        })
    }

    /// Judges the log by its state after a commit.
    fn judge_wal(&self, commit: Commit, quiet: &mut Findings, log: &mut Findings) -> Option<Fit> {
        let wal = self.wal?;
        if self.main.is_empty() {
            return None;
        }
        if let Some(fit) = self.size_contradicts(wal.page_size, "WAL", quiet) {
            let own = header_size(self.main).map_or(0, PageSize::get);
            log.add(Defect::new(Code::WalPageSizeDiffers, 8, u64::from(wal.page_size.get()), u64::from(own)), Site::default());
            return Some(fit);
        }
        let geometry = reconcile(&self.clues(Some(commit.frame)), quiet)?;
        let layers = Layers {
            journal: self.journal,
            roll_back: self.roll_back,
            wal: Some(wal),
            upto: Some(commit.frame),
            pages: commit.pages,
            ..Layers::default()
        };
        let blended = Snapshot::new(self.main, &geometry, &layers);
        let oldest = wal.frames.iter().take(narrow(u64::from(commit.frame.0))).position(|f| f.page == 1);
        let alone = self.alone(quiet);
        Some(fit::wal(&Case {
            blended: &blended,
            alone: alone.as_ref().map(|a| -> &dyn PageSource { a }),
            newest_page_one: wal.newest(PageNo::ONE, commit.frame).map(|(_, image)| image),
            in_transaction: false,
            checkpointed: alone.as_ref().map_or(0, |a| checkpointed(wal, a)),
            main_page_one: self.main_page_one(geometry.page_size),
            other_page_one: oldest.and_then(|i| wal.frame_at(i)).map(|f| f.image),
            usable: geometry.usable(),
            other_pages: commit.pages,
            main_pages: geometry.page_size.whole_pages(wide(self.main.len())),
        }))
    }
}
