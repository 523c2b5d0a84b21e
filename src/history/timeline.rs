//! The timeline: what logs, journal and shared memory say of other times, as the report has it.
//!
//! Tests:    nothing that the evidence layer has not; counts frames by class and commits by branch.
//! Collects: each branch as its commits with what they did; the transaction of the journal; the versions of a row.
//! Leaves:   rows to `rows` and `recover`, at any `--at`.

use std::collections::{BTreeMap, HashMap};

use super::course::{Course, Image, Seen, Step, Target};
use crate::ctx::Ctx;
use crate::error::Result;
use crate::evidence::overlay::Layers;
use crate::evidence::shm::Shm;
use crate::evidence::{Branch, BranchKind, Evidence, FrameClass, JournalState, PageSource, Part, Snapshot, Standing, View, WalIndex};
use crate::finding::Origin;
use crate::format::{DatabaseHeader, Encoding};
use crate::ids::{PageNo, idx, small};
use crate::report::history::{Base, CommitTold, FORMAT, Generation, History, JournalTold, Line, Log, RowTold, ShmTold, VersionTold};
use crate::report::human::counted;

/// Generations of one log that are listed; a log of junk would have one for each frame.
const GENERATIONS: usize = 64;

/// What is told.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'w> {
    /// A row that is followed.
    pub row: Option<&'w Target>,
    /// Whether each commit is looked into; without it only its frame and size are told.
    pub rows: bool,
}

/// Tells the history of a view.
///
/// # Errors
/// Cancellation.
pub fn tell(evidence: &Evidence, view: &View<'_>, wanted: Wanted<'_>, ctx: &Ctx) -> Result<History> {
    let main = evidence.main_bytes();
    let header = DatabaseHeader::read(main).ok().filter(DatabaseHeader::magic_ok);
    let size = view.geometry.page_size;
    let path = |part: Part| evidence.inputs().filter(move |(p, _)| *p == part).map(|(_, f)| f.path().display().to_string());
    let mut out = History {
        format: FORMAT,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        page_size: size.get(),
        base: Base {
            path: path(Part::Main).next().filter(|_| !main.is_empty()),
            pages: size.whole_pages(crate::ids::wide(main.len())),
            change_counter: header.map(|h| h.change_counter),
            schema_cookie: header.map(|h| h.schema_cookie),
        },
        ..History::default()
    };
    let base =
        Snapshot::new(main, &view.geometry, &Layers { journal: view.journal.as_ref(), roll_back: view.rolled_back, ..Layers::default() });
    let fit = view
        .wal_fit
        .as_ref()
        .map_or_else(|| "nothing to compare it with".to_owned(), |f| format!("{:?}: {}", f.verdict, f.text()).to_lowercase());
    for (i, path) in path(Part::Wal).enumerate() {
        let bytes = evidence.logs().get(i).map_or(&[][..], |f| f.bytes());
        let mut quiet = crate::finding::Findings::new(0);
        let standing = view.standings.get(i).copied();
        let mut log = match WalIndex::read(bytes, Some(size), &mut quiet) {
            Some(wal) => told_log(&wal, &base),
            None => Log::default(),
        };
        (log.path, log.fit) = (path, if i == 0 { fit.clone() } else { String::new() });
        log.standing = standing_words(standing, bytes.is_empty(), evidence.logs().len());
        out.logs.push(log);
    }
    let mut versions = Vec::new();
    let settings = (view.geometry.reserved, view.geometry.encoding);
    if let Some(logs) = &view.logs {
        for branch in &view.branches {
            let line = line(logs, branch, &base, settings, wanted, &mut versions, ctx)?;
            out.branches.push(line);
        }
        if let Some(shm) = evidence.shm_bytes().and_then(Shm::read)
            && let Some(a) = shm.account(logs)
        {
            out.shm = Some(ShmTold {
                max_frame: a.max_frame,
                checkpointed: a.backfill,
                pages: a.page_count,
                copies_agree: a.copies_agree,
                same_generation: a.same_generation,
                reaches_head: a.reaches_head,
                other_pages: a.other_pages,
            });
        }
    }
    if let Some(path) = path(Part::Journal).next() {
        out.journal = Some(journal(view, main, path, settings, wanted, &mut versions, ctx)?);
    }
    if out.branches.is_empty() && out.journal.is_none() && wanted.row.is_some() {
        let count = base.page_count();
        let course = Course::begin(&base, HashMap::new(), count, settings, wanted.row, ctx)?;
        versions.extend(course.look(ctx)?.map(|seen| version(&seen, "main", "main file", None)));
    }
    if let Some(target) = wanted.row {
        out.row = Some(RowTold { table: target.table.clone(), key: target.key.join(" "), versions });
    }
    notes(&mut out, view, main.is_empty());
    Ok(out)
}

fn standing_words(standing: Option<Standing>, empty: bool, logs: usize) -> String {
    match standing {
        _ if empty => "empty".to_owned(),
        Some(Standing::Read(_)) if logs == 1 => "read".to_owned(),
        Some(Standing::Read(n)) => format!("read, generation {} of those that follow one another", n.saturating_add(1)),
        Some(Standing::Contained) => "an earlier capture of another of these logs: all its frames are in that one".to_owned(),
        Some(Standing::Divergent) => "the same generation as another log, and goes on differently: two writers".to_owned(),
        Some(Standing::Independent) => "a log of its own on the same main file: two resets that did not know of each other".to_owned(),
        Some(Standing::Apart) | None => "no log that can be read with the others".to_owned(),
    }
}

fn told_log(wal: &WalIndex<'_>, base: &dyn PageSource) -> Log {
    let mut log = Log {
        accepted: wal.accepted,
        page_size: wal.page_size.get(),
        checkpoint_sequence: wal.header.map_or(0, |h| h.checkpoint),
        frames: small(wal.frames.len()),
        cut_bytes: wal.rest,
        ..Log::default()
    };
    let current = wal.header.map(|h| (h.salt1, h.salt2));
    let mut generations: Vec<((u32, u32), Generation)> = Vec::new();
    for (i, info) in wal.frames.iter().enumerate() {
        let place = match info.class {
            FrameClass::Committed => &mut log.read,
            FrameClass::Uncommitted => &mut log.uncommitted,
            FrameClass::Detached => &mut log.detached,
            FrameClass::Older => &mut log.older,
            FrameClass::Junk => &mut log.junk,
        };
        *place = place.saturating_add(1);
        let Some(frame) = wal.frame_at(i) else { continue };
        if info.class == FrameClass::Junk {
            continue;
        }
        if PageNo::new(info.page).and_then(|no| base.page(no)).is_some_and(|p| p.bytes == frame.image) {
            log.in_main = log.in_main.saturating_add(1);
        }
        let salts = (frame.salt1, frame.salt2);
        let no = small(i).saturating_add(1);
        let at = generations.iter().rposition(|(s, _)| *s == salts);
        let at = match at {
            Some(at) => at,
            None if generations.len() < GENERATIONS => {
                let told = Generation {
                    salts: format!("{:08x} {:08x}", salts.0, salts.1),
                    first: no,
                    current: current == Some(salts),
                    ..Generation::default()
                };
                generations.push((salts, told));
                generations.len().saturating_sub(1)
            }
            None => continue,
        };
        if let Some((_, g)) = generations.get_mut(at) {
            g.last = no;
            g.frames = g.frames.saturating_add(1);
            g.commits = g.commits.saturating_add(u32::from(info.commit != 0));
        }
    }
    log.generations = generations.into_iter().map(|(_, g)| g).collect();
    log
}

/// The frames of a branch with the images that are read for them.
fn image_at<'v>(wal: &WalIndex<'v>, branch: &'v Branch, i: u32) -> Option<(u32, Image<'v>)> {
    let info = wal.frames.get(idx(i))?;
    let origin = Origin::Wal { frame: wal.number(idx(i)) };
    match branch.mended_at(i) {
        Some(m) => Some((m.page, (origin, m.image.as_deref().or_else(|| wal.frame_at(idx(i)).map(|f| f.image))?))),
        None => Some((info.page, (origin, wal.frame_at(idx(i))?.image))),
    }
}

/// One branch.
fn line<'v>(
    wal: &WalIndex<'v>,
    branch: &'v Branch,
    base: &dyn PageSource,
    settings: (u8, Encoding),
    wanted: Wanted<'_>,
    versions: &mut Vec<VersionTold>,
    ctx: &Ctx,
) -> Result<Line> {
    let shown = branch.kind == BranchKind::Shown;
    let from = if shown { 0 } else { branch.shared };
    let mut line = Line {
        name: branch.name.clone(),
        kind: branch.kind.word().to_owned(),
        shown,
        unseen: branch.unseen,
        overwritten: branch.overwritten,
        overwritten_pages: branch.overwritten_pages.clone(),
        corrected: branch.mended.iter().filter(|m| m.image.is_some()).map(|m| wal.number(idx(m.position)).0).collect(),
        witnesses: branch.witnesses.clone(),
        ..Line::default()
    };
    if branch.kind == BranchKind::LostCheckpoint {
        return Ok(line);
    }
    // No more pages than the files may hold: the number that a commit names may be anything.
    let most = base.page_count().saturating_add(small(wal.frames.len()).saturating_mul(16)).saturating_add(4096);
    let mut images: HashMap<u32, Image<'v>> = HashMap::new();
    let mut count = base.page_count();
    let (shared, own) = branch.path.split_at_checked(idx(from)).unwrap_or((&[], &branch.path));
    for &i in shared {
        if let Some((page, image)) = image_at(wal, branch, i) {
            images.insert(page, image);
        }
        let commit = branch.commit_at(wal, i);
        if commit != 0 {
            line.leaves_at = line.leaves_at.saturating_add(1);
            count = commit.min(most);
        }
    }
    let look_in = wanted.rows || wanted.row.is_some();
    let mut course = if look_in { Some(Course::begin(base, images, count, settings, wanted.row, ctx)?) } else { None };
    if let (true, Some(course)) = (shown, &course) {
        versions.extend(course.look(ctx)?.map(|seen| version(&seen, "main", "main file", None)));
    }
    let mut number = line.leaves_at;
    let mut touched: BTreeMap<u32, Image<'v>> = BTreeMap::new();
    let mut frames = 0_u32;
    let tail: Vec<u32> = if shown {
        let is_tail = |i: &u32| wal.frames.get(idx(*i)).is_some_and(|f| f.class == FrameClass::Uncommitted && f.page != 0);
        let behind = own.last().map_or(0, |l| l.saturating_add(1))..small(wal.frames.len());
        behind.take_while(|i| wal.frames.get(idx(*i)).is_some_and(|f| f.class != FrameClass::Older)).filter(is_tail).collect()
    } else {
        Vec::new()
    };
    let commits = own.iter().copied().filter(|i| branch.commit_at(wal, *i) != 0).count();
    ctx.progress.phase("read commits", crate::ids::wide(commits));
    for (at, &i) in own.iter().chain(&tail).enumerate() {
        let Some((page, image)) = image_at(wal, branch, i) else { continue };
        touched.insert(page, image);
        frames = frames.saturating_add(1);
        let last = at.saturating_add(1) == own.len().saturating_add(tail.len());
        let in_tail = at >= own.len();
        let commit = if in_tail { 0 } else { branch.commit_at(wal, i) };
        if commit == 0 && !(last && in_tail) {
            continue;
        }
        number = number.saturating_add(u32::from(commit != 0));
        let highest = touched.keys().next_back().copied().unwrap_or(0);
        let pages = if commit == 0 { count.max(highest) } else { commit };
        count = pages.min(most);
        let step = match &mut course {
            Some(course) => course.step(&touched, count, ctx)?,
            None => Step::default(),
        };
        let when = if commit == 0 { "uncommitted".to_owned() } else { format!("commit {number}") };
        if let Some(seen) = &step.row {
            versions.push(version(seen, &branch.name, &when, (commit != 0).then_some(number)));
        }
        let told = CommitTold {
            number: if commit == 0 { 0 } else { number },
            frame: wal.number(idx(i)).0,
            frames,
            pages,
            log: u32::from(wal.place(idx(i)).0),
            objects: step.objects,
            schema: step.schema,
            other_pages: step.other_pages,
        };
        if commit == 0 {
            line.tail = Some(told);
        } else {
            line.commits.push(told);
        }
        touched.clear();
        frames = 0;
        ctx.progress.advance(1);
    }
    ctx.progress.finish();
    if let (true, Some(course), Some(_)) = (shown, &course, wanted.row) {
        let mut old = Vec::new();
        for (i, _) in wal.frames.iter().enumerate().filter(|(_, f)| f.class == FrameClass::Older) {
            let (Some(no), Some(frame)) = (wal.frames.get(i).and_then(|f| PageNo::new(f.page)), wal.frame_at(i)) else { continue };
            let image = (Origin::Wal { frame: wal.number(i) }, frame.image);
            if let Some(seen) = course.glance(no, image, ctx)? {
                old.push(version(&seen, &branch.name, "older generation", None));
            }
        }
        old.dedup_by(|a, b| a.values == b.values);
        versions.splice(0..0, old);
    }
    Ok(line)
}

fn version(seen: &Seen, branch: &str, when: &str, commit: Option<u32>) -> VersionTold {
    let frame = match seen.origin {
        Origin::Wal { frame } => Some(frame.0),
        _ => None,
    };
    let trust = match (seen.complete, when, frame) {
        (false, ..) | (_, "older generation", _) => "plausible",
        (true, w, Some(_)) if w != "uncommitted" => "witnessed",
        _ => "linked",
    };
    VersionTold {
        change: seen.change.to_owned(),
        branch: branch.to_owned(),
        when: when.to_owned(),
        commit,
        frame,
        page: seen.page.get(),
        cell: seen.cell,
        trust: trust.to_owned(),
        values: seen.values.clone(),
    }
}

/// The journal: its images are the state before a transaction, the main file is the one after it, or in the middle of it.
fn journal(
    view: &View<'_>,
    main: &[u8],
    path: String,
    settings: (u8, Encoding),
    wanted: Wanted<'_>,
    versions: &mut Vec<VersionTold>,
    ctx: &Ctx,
) -> Result<JournalTold> {
    let mut told = JournalTold { path, state: "empty, or no journal".to_owned(), ..JournalTold::default() };
    let Some(journal) = &view.journal else { return Ok(told) };
    told.state = match journal.state {
        JournalState::Empty => "empty",
        JournalState::Finished => "finished: its transaction was committed and the file kept",
        JournalState::HeaderBad => "its header does not count: SQLite rolls nothing back",
        JournalState::MainEmpty => "beside an empty main file: SQLite would delete it",
        JournalState::Undecided => "undecided: it names a super-journal",
        JournalState::Hot => "hot: SQLite rolls it back",
    }
    .to_owned();
    told.fit = view.journal_fit.as_ref().map(|f| format!("{:?}: {}", f.verdict, f.text()).to_lowercase()).unwrap_or_default();
    told.images = small(journal.records.len());
    told.counting = small(journal.records.iter().filter(|r| r.counts).count());
    told.pages_before = journal.pages_before;
    told.super_journal = journal.super_name.map(|n| String::from_utf8_lossy(n).into_owned());
    if journal.page_size != view.geometry.page_size
        || !(wanted.rows || wanted.row.is_some())
        || journal.records.is_empty()
        || main.is_empty()
    {
        return Ok(told);
    }
    let before =
        Snapshot::new(main, &view.geometry, &Layers { journal: Some(journal), roll_back: true, roll_back_all: true, ..Layers::default() });
    let after = Snapshot::new(main, &view.geometry, &Layers::default());
    let mut course = Course::begin(&before, HashMap::new(), before.page_count(), settings, wanted.row, ctx)?;
    let first = course.look(ctx)?;
    let mut touched: BTreeMap<u32, Image<'_>> = BTreeMap::new();
    let grown = before.page_count().saturating_add(1)..=after.page_count();
    for page in journal.records.iter().map(|r| r.page).chain(grown) {
        if let Some(image) = PageNo::new(page).and_then(|no| after.page(no)) {
            touched.insert(page, (image.origin, image.bytes));
        }
    }
    let step = course.step(&touched, after.page_count(), ctx)?;
    if wanted.row.is_some() {
        let alone = versions.is_empty();
        let mut own: Vec<VersionTold> = first.iter().map(|s| version(s, "main", "before the journal's transaction", None)).collect();
        if alone {
            own.extend(step.row.iter().map(|seen| version(seen, "main", "main file", None)));
        }
        versions.splice(0..0, own);
    }
    told.transaction = Some(CommitTold {
        frames: small(touched.len()),
        pages: after.page_count(),
        objects: step.objects,
        schema: step.schema,
        other_pages: step.other_pages,
        ..CommitTold::default()
    });
    Ok(told)
}

/// What does not fit together, the sentence and the exit code.
fn notes(out: &mut History, view: &View<'_>, no_main: bool) {
    let mut notes = Vec::new();
    let commits = out.branches.first().map_or(0, |b| b.commits.len());
    if no_main && !out.logs.is_empty() {
        let pages: usize = view.logs.iter().flat_map(|w| &w.frames).map(|f| f.page).collect::<std::collections::BTreeSet<_>>().len();
        notes.push(format!(
            "The main file is missing or empty: the log alone is read, it holds {} of {}. SQLite would delete it",
            counted(crate::ids::wide(commits), "commit"),
            counted(crate::ids::wide(pages), "page")
        ));
    }
    for line in out.branches.iter().filter(|b| !b.shown) {
        let own = counted(crate::ids::wide(line.commits.len()), "commit");
        let lost = match (line.overwritten, line.overwritten_pages.is_empty()) {
            (0, _) => String::new(),
            (n, true) => format!("; {} of its writer were written over, their pages are not known", counted(u64::from(n), "frame")),
            (n, false) => {
                format!("; {} of its writer were written over, the shared memory names their pages", counted(u64::from(n), "frame"))
            }
        };
        notes.push(match line.kind.as_str() {
            "fork" => format!(
                "Two writers wrote into one log without seeing each other: SQLite hides {own} of branch {}, which leaves commit {}{lost}",
                line.name, line.leaves_at
            ),
            "fork suspected" => format!("Another writer may have written branch {}: SQLite hides {own} of it{lost}", line.name),
            "independent reset" => {
                format!("Branch {} is a log of its own on the same main file: {own} that the log which is read does not have", line.name)
            }
            "lost checkpoint" => format!(
                "A checkpoint was lost: {} of the generation before are not in the main file; branch {} has them",
                counted(u64::from(small(line.overwritten_pages.len())), "page"),
                line.name
            ),
            _ => format!("The log is damaged in front of {own}, which SQLite does not read: branch {}", line.name),
        });
    }
    if let Some(shm) = &out.shm {
        if !shm.same_generation {
            notes.push("The shared memory is of another generation than the log".to_owned());
        } else if !shm.reaches_head {
            notes.push(format!("The shared memory ends at frame {}, which the log does not hold as it names it", shm.max_frame));
        }
        if shm.other_pages > 0 && shm.same_generation {
            notes.push(format!(
                "{} hold another page in the log than in the shared memory: another writer wrote over them",
                counted(u64::from(shm.other_pages), "frame")
            ));
        }
    }
    let stale = view.geometry.header.is_some_and(|h| h.page_count != 0 && out.base.pages > h.page_count);
    if out.logs.is_empty() && out.journal.is_none() && stale {
        let pages = counted(u64::from(view.geometry.header.map_or(0, |h| h.page_count)), "page");
        notes.push(format!(
            "The header counts {pages}, the file has {}: a journal or a log may be missing, and rows of two states may be mixed",
            out.base.pages
        ));
    }
    out.notes = notes;
    let hidden = out.hidden();
    let doubt = matches!(
        view.journal.as_ref().map(|j| j.state),
        Some(JournalState::Hot | JournalState::HeaderBad | JournalState::Undecided | JournalState::MainEmpty)
    ) && view.journal.as_ref().is_some_and(|j| !j.records.is_empty());
    let lost = view.branches.iter().any(|b| b.kind == BranchKind::LostCheckpoint);
    out.exit_code = if hidden > 0 || lost || doubt || (no_main && commits > 0) { 2 } else { 0 };
    let logs = counted(crate::ids::wide(out.logs.len()), "log");
    out.sentence = match (out.logs.is_empty(), &out.journal) {
        (false, _) if hidden > 0 => format!(
            "{logs}: SQLite reads {}; {} more are hidden from it.",
            counted(crate::ids::wide(commits), "commit"),
            counted(crate::ids::wide(hidden), "commit")
        ),
        (false, _) => format!("{logs} with {}; SQLite reads all that is committed.", counted(crate::ids::wide(commits), "commit")),
        (true, Some(j)) => format!("A rollback journal with {}; {}.", counted(u64::from(j.images), "page image"), j.state),
        (true, None) => "No log and no journal: there is one state, the main file.".to_owned(),
    };
}
