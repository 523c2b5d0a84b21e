//! The branches of a log: runs of commits that SQLite does not read, each with the frames that its writer believed to be there.
//!
//! Tests:    where the chain of checksums breaks: one damaged word (corrected where only one solution exists), a damaged stored
//!           checksum or salt, or another writer. Another writer is told by content: its pages lack what the commits in front of
//!           it wrote, so it never saw them.
//! Collects: a path of frames for each branch, where it leaves the shown one, how many frames were written over.
//! Leaves:   whether a suspected fork is one: a second witness says that (shared memory, another capture, page content).

use std::collections::{BTreeMap, BTreeSet};

use super::lineage::{Parent, chains};
use super::shm::Shm;
use super::source::PageSource;
use super::wal::{FrameClass, Mended, WalIndex};
use crate::format::cell::Split;
use crate::format::page::{Page, PageKind};
use crate::ids::{FrameNo, PageNo, idx, small};

/// What a branch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BranchKind {
    /// What SQLite reads.
    Shown,
    /// Commits behind damage of the log, or under a header that is damaged.
    BehindDamage,
    /// It may be another writer; nothing but the break says so.
    ForkSuspected,
    /// Another writer that did not see commits in front of it.
    Fork,
    /// Another log that begins at the same state: two resets that did not know of each other.
    IndependentReset,
    /// The generation before, where the main file lacks pages of it: a checkpoint was lost.
    LostCheckpoint,
}

impl BranchKind {
    /// In words.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            BranchKind::Shown => "shown",
            BranchKind::BehindDamage => "behind damage",
            BranchKind::ForkSuspected => "fork suspected",
            BranchKind::Fork => "fork",
            BranchKind::IndependentReset => "independent reset",
            BranchKind::LostCheckpoint => "lost checkpoint",
        }
    }
}

/// A branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branch {
    /// What `--at branch:` calls it.
    pub name: String,
    /// What it is.
    pub kind: BranchKind,
    /// The positions of its frames, oldest first, up to its last commit.
    pub path: Vec<u32>,
    /// How many of them the shown state has as well.
    pub shared: u32,
    /// Frames of it that another writer wrote over.
    pub overwritten: u32,
    /// The pages that they held, where the shared memory says it.
    pub overwritten_pages: Vec<u32>,
    /// Frames that were corrected, by position.
    pub mended: Vec<Mended>,
    /// What speaks for its kind, in words.
    pub witnesses: Vec<String>,
    /// Commits in front of it that it did not see.
    pub unseen: u32,
}

impl Branch {
    /// A branch along a path.
    #[must_use]
    pub fn new(kind: BranchKind, path: Vec<u32>, shared: u32) -> Branch {
        Branch {
            name: String::new(),
            kind,
            path,
            shared,
            overwritten: 0,
            overwritten_pages: Vec::new(),
            mended: Vec::new(),
            witnesses: Vec::new(),
            unseen: 0,
        }
    }

    /// Its history in the index that its positions count in.
    #[must_use]
    pub fn index<'a>(&self, wal: &WalIndex<'a>) -> WalIndex<'a> {
        wal.along(&self.path, &self.mended)
    }

    /// How many commits it has that the shown state has not.
    #[must_use]
    pub fn own_commits(&self, wal: &WalIndex<'_>) -> u32 {
        // What a checkpoint lost lies under commits that are shown.
        if self.kind == BranchKind::LostCheckpoint {
            return 0;
        }
        let own = self.path.get(idx(self.shared)..).unwrap_or_default();
        small(own.iter().filter(|i| self.commit_at(wal, **i) != 0).count())
    }

    /// How a frame is read, where that is otherwise than it stands.
    #[must_use]
    pub fn mended_at(&self, i: u32) -> Option<&Mended> {
        let at = self.mended.binary_search_by_key(&i, |m| m.position).ok()?;
        self.mended.get(at)
    }

    /// The commit word of a frame as this branch reads it; 0 for a frame that ends no transaction.
    #[must_use]
    pub fn commit_at(&self, wal: &WalIndex<'_>, i: u32) -> u32 {
        match self.mended_at(i) {
            Some(m) => m.commit,
            None => wal.frames.get(idx(i)).map_or(0, |f| f.commit),
        }
    }

    /// Cuts what follows the last commit; `false` when no commit of its own is left.
    fn close(&mut self, wal: &WalIndex<'_>) -> bool {
        while self.path.len() > idx(self.shared) && self.path.last().is_some_and(|i| self.commit_at(wal, *i) == 0) {
            self.path.pop();
        }
        if !self.mended.is_empty() {
            let path: BTreeSet<u32> = self.path.iter().copied().collect();
            self.mended.retain(|m| path.contains(&m.position));
        }
        self.path.len() > idx(self.shared)
    }
}

/// Branches of one log that are told apart; a log with more is damaged at every frame.
const BRANCHES: usize = 64;
/// Frames of a branch that are corrected.
const CORRECTED: usize = 1024;
/// Chains of a log of which it is asked what their writer saw.
const SIGHTS: u32 = 64;
/// Pages that are compared to see whether one writer saw what another wrote.
const COMPARED: u32 = 4096;

/// The branches of one log, the shown one first. `main` is the state under the log.
#[must_use]
pub fn branches(wal: &WalIndex<'_>, main: Option<&dyn PageSource>, usable: u32, shm: Option<&Shm<'_>>) -> Vec<Branch> {
    let last = wal.last_commit().map_or(0, |c| c.frame.0);
    let mut out = vec![Branch::new(BranchKind::Shown, (0..last).collect(), last)];
    let Some(first) = wal.frames.iter().position(|f| f.class == FrameClass::Detached) else { return out };
    // What the writer of the next chain may have had in front of it, in file order.
    let mut current = Branch::new(BranchKind::BehindDamage, (0..small(first)).collect(), last);
    let mut before: Option<u32> = None;
    let mut sights = 0_u32;
    for chain in chains(wal) {
        let (from, to) = (chain.first.0.saturating_sub(1), chain.last.0);
        if wal.frames.get(idx(from)).is_none_or(|f| f.class != FrameClass::Detached) {
            // A chain that begins in front of the break and goes on behind it is not one of SQLite's.
            before = Some(to);
            continue;
        }
        let own: Vec<u32> = (from..to).filter(|i| is_detached(wal, *i)).collect();
        let adjacent = before.is_none_or(|b| b == from) || current.path.last().is_some_and(|l| l.saturating_add(1) == from);
        before = Some(to);
        let mended = match chain.parent {
            Parent::Corrected { .. } if current.mended.len() < CORRECTED => {
                wal.corrected(idx(from)).map(|(page, commit, image)| Mended { position: from, page, commit, image: Some(image) })
            }
            // A frame that follows from nothing known is laid as it stands, but its word does not end a transaction.
            Parent::Unknown | Parent::Corrected { .. } if !(from == 0 && wal.begins()) => {
                wal.frames.get(idx(from)).map(|f| Mended { position: from, page: f.page, commit: 0, image: None })
            }
            _ => None,
        };
        let suspect = chain.parent == Parent::Unknown && chain.behind_commit && adjacent && wal.accepted;
        let sight = if suspect && sights < SIGHTS {
            sights = sights.saturating_add(1);
            sight(wal, &current.path, &own, main, usable)
        } else {
            Sight::default()
        };
        if suspect && sight.first_unseen.is_some() {
            if out.len() < BRANCHES && current.path.len() > idx(current.shared) && current.kind != BranchKind::Shown {
                out.push(current.clone());
            }
            let keep = sight.first_unseen.unwrap_or(0);
            let prefix: Vec<u32> = current.path.iter().copied().take(idx(keep)).collect();
            let shared = small(prefix.iter().zip(0..last).take_while(|(a, b)| **a == *b).count());
            let mut branch = Branch::new(BranchKind::Fork, prefix, shared);
            branch.overwritten = small(current.path.len()).saturating_sub(keep);
            branch.unseen = sight.unseen;
            branch.witnesses.push(format!(
                "{} of its pages lack what {} in front of them wrote",
                sight.pages,
                counted(sight.unseen, "commit")
            ));
            branch.path.extend(own);
            current = branch;
        } else {
            if suspect && current.kind == BranchKind::BehindDamage && sight.seen == 0 {
                current.kind = BranchKind::ForkSuspected;
            }
            current.mended.extend(mended);
            current.path.extend(own);
        }
    }
    if out.len() < BRANCHES {
        out.push(current);
    }
    out.retain_mut(|b| b.kind == BranchKind::Shown || b.close(wal));
    if let Some(shm) = shm {
        witness_by_shm(wal, shm, &mut out);
    }
    out
}

fn counted(n: u32, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

fn is_detached(wal: &WalIndex<'_>, i: u32) -> bool {
    wal.frames.get(idx(i)).is_some_and(|f| f.class == FrameClass::Detached)
}

/// What one writer saw of another's commits.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Sight {
    /// Place in the path of the first frame of the first commit that it did not see.
    pub(super) first_unseen: Option<u32>,
    /// Commits not seen.
    pub(super) unseen: u32,
    /// Commits that left a trace in its pages.
    pub(super) seen: u32,
    /// Pages that say so.
    pub(super) pages: u32,
}

/// Which commits of a path the writer of other frames did not see.
///
/// Seen: a cell that a commit added stands in the first images that the writer left. Not seen: the page is among them, and none
/// of the commit's new rows is on it, though no later row took their keys; or its page 1 counts no further than the commit's.
pub(super) fn sight(wal: &WalIndex<'_>, path: &[u32], later: &[u32], main: Option<&dyn PageSource>, usable: u32) -> Sight {
    let image = |i: u32| wal.frame_at(idx(i)).map(|f| f.image);
    let mut first: BTreeMap<u32, u32> = BTreeMap::new();
    for &i in later {
        if let Some(info) = wal.frames.get(idx(i)) {
            first.entry(info.page).or_insert(i);
        }
    }
    let theirs: BTreeMap<u32, Leaf<'_>> = first
        .iter()
        .take(idx(COMPARED))
        .filter_map(|(page, i)| Some((*page, Leaf::read(image(*i), PageNo::new(*page)?, usable))))
        .collect();
    let all: BTreeSet<&[u8]> = theirs.values().flat_map(|l| l.cells.values().copied()).collect();
    let counter = |i: u32| image(i).and_then(|b| crate::bytes::u32_at(b, 24));
    let their_counter = first.get(&1).and_then(|i| counter(*i));
    let mut newest: BTreeMap<u32, u32> = BTreeMap::new();
    let mut changed: BTreeMap<u32, u32> = BTreeMap::new();
    let mut budget = COMPARED;
    let mut from = 0_u32;
    let mut commits: Vec<Trace> = Vec::new();
    for (at, &i) in path.iter().enumerate() {
        let Some(info) = wal.frames.get(idx(i)) else { continue };
        changed.insert(info.page, i);
        if info.commit == 0 {
            continue;
        }
        let mut trace = Trace { from, ..Trace::default() };
        for (&page, &frame) in changed.iter().filter(|(page, _)| theirs.contains_key(page)) {
            let (Some(left), Some(no), Some(other)) = (budget.checked_sub(1), PageNo::new(page), theirs.get(&page)) else { continue };
            budget = left;
            let old = match newest.get(&page) {
                Some(&i) => Leaf::read(image(i), no, usable),
                None => Leaf::read(main.and_then(|m| m.page(no)).map(|p| p.bytes), no, usable),
            };
            trace.compare(&old, &Leaf::read(image(frame), no, usable), other, &all);
        }
        if let (Some(ours), Some(theirs)) = (changed.get(&1).and_then(|i| counter(*i)), their_counter)
            && ours.wrapping_sub(theirs) < 1 << 16
        {
            trace.unseen = trace.unseen.saturating_add(4);
        }
        commits.push(trace);
        from = small(at).saturating_add(1);
        newest.append(&mut changed);
    }
    // Whoever saw a commit saw those in front of it.
    let behind = commits.iter().rposition(|c| c.seen > 0 && c.seen.saturating_mul(2) >= c.unseen).map_or(0, |i| i.saturating_add(1));
    let mut out = Sight { seen: small(behind), ..Sight::default() };
    if let Some(at) = commits.iter().enumerate().skip(behind).find(|(_, c)| c.unseen > 0 && c.seen == 0).map(|(i, _)| i) {
        out.first_unseen = commits.get(at).map(|c| c.from);
        out.unseen = small(commits.len().saturating_sub(at));
        out.pages = commits.iter().skip(at).map(|c| c.pages).fold(0, u32::saturating_add);
    }
    out
}

/// What a commit left, or did not leave, in the pages of another writer.
#[derive(Debug, Default, Clone, Copy)]
struct Trace {
    from: u32,
    seen: u32,
    unseen: u32,
    pages: u32,
}

impl Trace {
    fn compare(&mut self, old: &Leaf<'_>, new: &Leaf<'_>, theirs: &Leaf<'_>, all: &BTreeSet<&[u8]>) {
        let Some(kind) = new.kind else { return };
        let added = || new.cells.iter().filter(|(key, cell)| old.cells.get(*key) != Some(*cell));
        let kept = added().filter(|(_, cell)| all.contains(*cell)).count();
        self.seen = self.seen.saturating_add(small(kept));
        if kept > 0 {
            return;
        }
        let missing = if theirs.kind != Some(kind) {
            added().count()
        } else {
            // A row that was changed once more has its key there.
            added().filter(|(key, _)| !old.cells.contains_key(*key) && !theirs.cells.contains_key(*key)).count()
        };
        // An entry of an index goes away when its row is changed: one alone says nothing.
        if missing > usize::from(kind == PageKind::IndexLeaf) {
            self.unseen = self.unseen.saturating_add(small(missing));
            self.pages = self.pages.saturating_add(1);
        }
    }
}

/// The cells of a leaf: by rowid in a table, by their bytes in an index.
#[derive(Debug, Default)]
struct Leaf<'a> {
    kind: Option<PageKind>,
    cells: BTreeMap<(i64, &'a [u8]), &'a [u8]>,
}

impl<'a> Leaf<'a> {
    fn read(image: Option<&'a [u8]>, no: PageNo, usable: u32) -> Leaf<'a> {
        let Some(bytes) = image else { return Leaf::default() };
        let Ok(page) = Page::read(bytes, no, usable) else { return Leaf::default() };
        if page.kind.is_interior() {
            return Leaf::default();
        }
        let mut cells = BTreeMap::new();
        for cell in page.cells(Split::new(usable)).filter_map(|(_, c)| c.ok()) {
            let Some(body) = bytes.get(idx(cell.at)..idx(cell.at.saturating_add(cell.len))) else { continue };
            let key: (i64, &[u8]) = cell.rowid.map_or((0, body), |rowid| (rowid, &[][..]));
            cells.insert(key, body);
        }
        Leaf { kind: Some(page.kind), cells }
    }
}

/// What the shared memory of the log says of its branches: which frames its writer had, and which pages they held.
fn witness_by_shm(wal: &WalIndex<'_>, shm: &Shm<'_>, branches: &mut [Branch]) {
    let Some(header) = shm.header() else { return };
    for branch in branches.iter_mut().filter(|b| b.kind != BranchKind::Shown) {
        let own = branch.path.get(idx(branch.shared)..).unwrap_or_default();
        let head = FrameNo(header.max_frame);
        let ends_here =
            own.iter().any(|i| wal.number(idx(*i)) == head && wal.frame_at(idx(*i)).is_some_and(|f| f.checksum == header.frame_checksum));
        if !ends_here {
            continue;
        }
        branch.witnesses.push(format!("the shared memory ends at frame {} with its checksum", head.0));
        let Some(first) = own.first().copied() else { continue };
        // The frames in front of it as its writer had them.
        let differs = (0..first).find(|i| {
            let page = wal.frames.get(idx(*i)).map(|f| f.page);
            shm.page_of(FrameNo(i.saturating_add(1))).is_some_and(|p| Some(p) != page)
        });
        if let Some(from) = differs.filter(|_| matches!(branch.kind, BranchKind::ForkSuspected | BranchKind::Fork)) {
            branch.kind = BranchKind::Fork;
            branch.overwritten_pages = (from..first).filter_map(|i| shm.page_of(FrameNo(i.saturating_add(1)))).collect();
        }
    }
}
