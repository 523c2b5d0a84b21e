//! Several logs of one database: captures of one generation, generations that follow one another, resets that did not know of
//! each other.
//!
//! Tests:    salts (a reset counts the first up by one and draws the second anew), frames in common, and where the salts say
//!           nothing, whether the pages of one log have what the other wrote.
//! Collects: one index over all frames, and the branches of it.
//! Leaves:   whether the logs belong to the main file.

use std::collections::BTreeSet;

use super::branches::{Branch, BranchKind, branches, sight};
use super::shm::Shm;
use super::source::PageSource;
use super::wal::{FrameClass, Mended, WalIndex};
use crate::format::wal::Checksum;
use crate::ids::{idx, small};

/// What a log is to the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It is read; the n-th of those that follow one another, from 0.
    Read(u32),
    /// The same frames as another log, or the first of them.
    Contained,
    /// It leaves another log of the same generation behind frames that both have.
    Divergent,
    /// A log of its own on the same state as another.
    Independent,
    /// Of another page size, or no frame in it.
    Apart,
}

/// All logs as one history.
#[derive(Debug)]
pub struct Joined<'a> {
    /// All frames.
    pub index: WalIndex<'a>,
    /// The branches, the shown one first.
    pub branches: Vec<Branch>,
    /// What each log is, in the order given.
    pub standings: Vec<Standing>,
}

impl Joined<'_> {
    /// Adds the branch that has what a lost checkpoint did not bring into the main file.
    pub(super) fn add_lost_checkpoint(&mut self, main: &dyn PageSource) {
        let lost = lost_checkpoint(&self.index, main);
        let Some(shown) = self.branches.first().filter(|b| !lost.is_empty() && !b.path.is_empty()).map(|b| b.path.clone()) else { return };
        let mut branch = Branch::new(BranchKind::LostCheckpoint, lost.iter().copied().chain(shown).collect(), 0);
        for &position in &lost {
            let page = self.index.frames.get(idx(position)).map_or(0, |f| f.page);
            branch.mended.push(Mended { position, page, commit: 0, image: None });
            branch.overwritten_pages.push(page);
        }
        branch
            .witnesses
            .push("the frames of the generation before still stand, and the main file has other images of their pages".to_owned());
        branch.name = format!("b{}", self.branches.len());
        self.branches.push(branch);
    }
}

/// Generations that salts can tell to follow one another.
const NEAR: u32 = 1 << 16;

fn salts(wal: &WalIndex<'_>) -> Option<(u32, u32)> {
    wal.header.map(|h| (h.salt1, h.salt2))
}

/// How many frames two logs of one generation have in common from the start.
fn common(a: &WalIndex<'_>, b: &WalIndex<'_>) -> usize {
    let same = |i: &usize| match (a.frame_at(*i), b.frame_at(*i)) {
        (Some(x), Some(y)) => x.page_raw == y.page_raw && x.commit == y.commit && x.checksum == y.checksum,
        _ => false,
    };
    (0..idx(a.chained.min(b.chained))).take_while(same).count()
}

/// What the second of two logs is to the first.
enum Relation {
    Same(usize),
    After,
    Before,
    Beside,
}

fn relation(a: &WalIndex<'_>, b: &WalIndex<'_>, main: Option<&dyn PageSource>, usable: u32) -> Relation {
    let (Some(x), Some(y)) = (salts(a), salts(b)) else { return Relation::Beside };
    if x == y {
        return Relation::Same(common(a, b));
    }
    let step = y.0.wrapping_sub(x.0);
    match step {
        0 => return Relation::Beside,
        1..NEAR => return Relation::After,
        _ if step.wrapping_neg() < NEAR => return Relation::Before,
        _ => {}
    }
    // New logs with salts of their own, as after the last connection was closed: content decides.
    let files = [a.bytes(), b.bytes()];
    let saw = |first: usize, second: usize, x: &WalIndex<'_>, y: &WalIndex<'_>| {
        let both = WalIndex::joined(&files, &[(first, x), (second, y)])?;
        let split = x.last_commit().map_or(0, |c| c.frame.0);
        let end = split.saturating_add(y.last_commit().map_or(0, |c| c.frame.0));
        let (path, later): (Vec<u32>, Vec<u32>) = ((0..split).collect(), (split..end).collect());
        let sight = sight(&both, &path, &later, main, usable);
        (sight.seen > 0 && sight.first_unseen.is_none()).then_some(())
    };
    if a.page_size != b.page_size {
        return Relation::Beside;
    }
    if saw(0, 1, a, b).is_some() {
        Relation::After
    } else if saw(1, 0, b, a).is_some() {
        Relation::Before
    } else {
        Relation::Beside
    }
}

/// Joins the logs. `None` when there is none with a frame.
pub(super) fn join<'a>(
    logs: &[(usize, WalIndex<'a>)],
    files: &[&'a [u8]],
    main: Option<&dyn PageSource>,
    usable: u32,
    shm: Option<&Shm<'_>>,
) -> Option<Joined<'a>> {
    let mut standings = vec![Standing::Apart; files.len()];
    let (_, first) = logs.first()?;
    // Places in `logs` of those that follow one another, oldest first.
    let mut sequence: Vec<usize> = Vec::new();
    // Logs beside: their place, and the place and frames of the log that they share the start with.
    let mut beside: Vec<(usize, Option<(usize, usize)>)> = Vec::new();
    for (i, (file, log)) in logs.iter().enumerate() {
        if log.page_size != first.page_size {
            continue;
        }
        let mut at = Some(sequence.len());
        for (n, &other) in sequence.iter().enumerate() {
            let Some((other_file, wal)) = logs.get(other) else { continue };
            match relation(wal, log, main, usable) {
                Relation::After => {}
                Relation::Before => {
                    at = Some(n);
                    break;
                }
                Relation::Same(shared) => {
                    let (theirs, own) = (idx(wal.chained), idx(log.chained));
                    if shared == own {
                        set(&mut standings, *file, Standing::Contained);
                    } else if shared == theirs {
                        // The later capture of the same log takes the place of the earlier one.
                        set(&mut standings, *other_file, Standing::Contained);
                        if let Some(place) = sequence.get_mut(n) {
                            *place = i;
                        }
                    } else {
                        beside.push((i, Some((other, shared))));
                        set(&mut standings, *file, Standing::Divergent);
                    }
                    at = None;
                    break;
                }
                Relation::Beside => {
                    beside.push((i, None));
                    set(&mut standings, *file, Standing::Independent);
                    at = None;
                    break;
                }
            }
        }
        if let Some(at) = at {
            sequence.insert(at.min(sequence.len()), i);
        }
    }
    for (n, &i) in sequence.iter().enumerate() {
        if let Some((file, _)) = logs.get(i) {
            set(&mut standings, *file, Standing::Read(small(n)));
        }
    }
    if logs.len() == 1 {
        let branches = named(branches(first, main, usable, shm));
        return Some(Joined { index: first.clone(), branches, standings });
    }
    let parts: Vec<(usize, &WalIndex<'a>)> = sequence.iter().filter_map(|i| logs.get(*i)).map(|(f, w)| (*f, w)).collect();
    let mut index = WalIndex::joined(files, &parts)?;
    for (i, _) in &beside {
        if let Some((file, wal)) = logs.get(*i) {
            index.append(*file, wal);
        }
    }
    let positions = index.positions(files.len());
    let translate = |file: usize, path: &[u32]| -> Vec<u32> {
        path.iter().filter_map(|i| positions.get(file)?.get(idx(*i)).copied().filter(|p| *p != u32::MAX)).collect()
    };
    let mut out: Vec<Branch> = Vec::new();
    let mut shown: Vec<u32> = Vec::new();
    let mut prefixes: Vec<(usize, Vec<u32>)> = Vec::new();
    for (n, &i) in sequence.iter().enumerate() {
        let Some((file, wal)) = logs.get(i) else { continue };
        prefixes.push((i, shown.clone()));
        let below = index.along(&shown, &[]);
        let _ = below;
        let is_newest = n.saturating_add(1) == sequence.len();
        for branch in branches(wal, main, usable, shm.filter(|_| is_newest)) {
            let path = translate(*file, &branch.path);
            if branch.kind == BranchKind::Shown {
                shown.extend(path);
                continue;
            }
            let before = prefixes.last().map(|p| p.1.clone()).unwrap_or_default();
            out.push(moved(branch, before, path, |i| translate(*file, &[i]).first().copied()));
        }
    }
    for (i, base) in &beside {
        let Some((file, wal)) = logs.get(*i) else { continue };
        let root = base.map_or_else(|| sequence.first().copied(), |b| Some(b.0));
        let mut before = prefixes.iter().find(|p| Some(p.0) == root).map(|p| p.1.clone()).unwrap_or_default();
        let shared = base.map_or(0, |b| b.1);
        if let Some((_, (other, _))) = base.and_then(|b| Some((b, logs.get(b.0)?))) {
            before.extend(translate(*other, &(0..small(shared)).collect::<Vec<_>>()));
        }
        for (n, mut branch) in branches(wal, main, usable, None).into_iter().enumerate() {
            let path = translate(*file, branch.path.get(shared..).unwrap_or_default());
            if n == 0 {
                branch.kind = if base.is_some() { BranchKind::Fork } else { BranchKind::IndependentReset };
                branch.witnesses.push(match base {
                    Some((_, shared)) => format!("two captures of one log have {shared} frames in common and then go on differently"),
                    None => "its pages lack what the log that is read wrote".to_owned(),
                });
            }
            out.push(moved(branch, before.clone(), path, |i| translate(*file, &[i]).first().copied()));
        }
    }
    let last = small(shown.len());
    for branch in &mut out {
        branch.shared = small(branch.path.iter().zip(&shown).take_while(|(a, b)| a == b).count());
    }
    drop_fragments(&index, &mut out);
    out.retain(|b| b.path.len() > idx(b.shared));
    out.insert(0, Branch::new(BranchKind::Shown, shown, last));
    Some(Joined { index, branches: named(out), standings })
}

fn set(standings: &mut [Standing], file: usize, to: Standing) {
    if let Some(place) = standings.get_mut(file) {
        *place = to;
    }
}

fn moved(mut branch: Branch, mut before: Vec<u32>, path: Vec<u32>, at: impl Fn(u32) -> Option<u32>) -> Branch {
    before.extend(path);
    branch.path = before;
    branch.mended.retain_mut(|m| match at(m.position) {
        Some(position) => {
            m.position = position;
            true
        }
        None => false,
    });
    branch.mended.sort_by_key(|m| m.position);
    branch
}

/// A branch whose own frames all stand in a longer one is the end of it, seen in another capture.
fn drop_fragments(index: &WalIndex<'_>, branches: &mut Vec<Branch>) {
    let sums = |b: &Branch| -> BTreeSet<Checksum> {
        let own = b.path.get(idx(b.shared)..).unwrap_or_default();
        own.iter().filter_map(|i| index.frame_at(idx(*i))).map(|f| f.checksum).collect()
    };
    let all: Vec<BTreeSet<Checksum>> = branches.iter().map(sums).collect();
    let mut dropped: Vec<(usize, usize)> = Vec::new();
    for (i, own) in all.iter().enumerate() {
        let holder = all.iter().enumerate().position(|(j, other)| j != i && own.is_subset(other) && (own.len() < other.len() || j < i));
        if let Some(j) = holder {
            dropped.push((i, j));
        }
    }
    for (_, j) in &dropped {
        if let Some(b) = branches.get_mut(*j) {
            b.witnesses.push("the end of it stands in another capture, behind the frames that wrote over the rest".to_owned());
        }
    }
    let mut places = 0_usize..;
    branches.retain(|_| places.next().is_none_or(|i| !dropped.iter().any(|(d, _)| *d == i)));
}

fn named(mut branches: Vec<Branch>) -> Vec<Branch> {
    for (i, branch) in branches.iter_mut().enumerate() {
        branch.name = if i == 0 { "main".to_owned() } else { format!("b{i}") };
    }
    branches
}

/// Frames of the generation before that the main file lacks: the last images that the log still holds of pages which no later
/// frame holds, where the main file has another.
#[must_use]
pub fn lost_checkpoint(wal: &WalIndex<'_>, main: &dyn PageSource) -> Vec<u32> {
    let Some(header) = wal.header.filter(|_| wal.accepted) else { return Vec::new() };
    let before = header.salt1.wrapping_sub(1);
    let of_before =
        |i: usize| wal.frames.get(i).is_some_and(|f| f.class == FrameClass::Older) && wal.frame_at(i).is_some_and(|f| f.salt1 == before);
    let Some(last) = (0..wal.frames.len()).rev().find(|i| of_before(*i) && wal.frames.get(*i).is_some_and(|f| f.commit != 0)) else {
        return Vec::new();
    };
    let live: BTreeSet<u32> = wal.frames.iter().filter(|f| f.class == FrameClass::Committed).map(|f| f.page).collect();
    let size = wal.frames.get(last).map_or(0, |f| f.commit);
    let shown = wal.last_commit().map_or(size, |c| c.pages);
    let mut seen = BTreeSet::new();
    let mut out = Vec::new();
    for i in (0..=last).rev().filter(|i| of_before(*i)) {
        let Some(frame) = wal.frame_at(i) else { continue };
        let Some(no) = frame.page().filter(|no| no.get() <= size) else { continue };
        if !seen.insert(no) || live.contains(&no.get()) || no.get() > shown {
            continue;
        }
        if main.page(no).is_none_or(|p| p.bytes != frame.image) {
            out.push(small(i));
        }
    }
    out.reverse();
    out
}
