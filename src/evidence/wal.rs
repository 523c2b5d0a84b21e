//! The frames of a write-ahead log by SQLite's own rule, and what lies beyond that rule.
//!
//! SQLite reads a log whose header checksum is right, frame by frame, while page number, salts and running checksum are
//! right, and uses it up to the last commit frame of that run. Everything else in the file is history.

use super::lineage;
use crate::finding::{Code, Defect, Findings, Origin, Site};
use crate::format::wal::{Checksum, FRAME_HEADER_LEN, Frame, WAL_HEADER_LEN, WAL_MAGIC, WalHeader, WordOrder};
use crate::ids::{FrameNo, PageNo, PageSize, idx, small, wide};

/// What a frame is, as far as the log itself says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FrameClass {
    /// Part of a committed transaction that SQLite reads.
    Committed,
    /// In the chain, behind the last commit; or a spill that its own transaction wrote over.
    Uncommitted,
    /// Salts of this generation, but the chain is broken before it: another writer, damage, or both.
    Detached,
    /// Salts of an earlier generation.
    Older,
    /// No frame.
    Junk,
}

/// One frame without its image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameInfo {
    /// Which page; 0 is none.
    pub page: u32,
    /// Pages of the database when the frame commits a transaction, else 0.
    pub commit: u32,
    /// What it is.
    pub class: FrameClass,
    /// Whether its checksum follows from the one stored in the frame (or header) before it.
    pub linked: bool,
}

/// A commit: its frame, and how many pages the database has after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Commit {
    /// The frame that commits.
    pub frame: FrameNo,
    /// Pages of the database.
    pub pages: u32,
}

/// Committed work that SQLite does not read: on branches of the log that it does not follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HiddenCommits {
    /// How many commits.
    pub commits: u32,
    /// Frames of them.
    pub frames: u32,
    /// The first of these frames, by its number.
    pub first: FrameNo,
}

/// A frame that is read otherwise than it stands: with its one damaged word put right, or without its commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mended {
    /// The position of the frame.
    pub position: u32,
    /// Its page.
    pub page: u32,
    /// Its commit word.
    pub commit: u32,
    /// Its image; `None`: as it stands, only that it commits is not believed.
    pub image: Option<Vec<u8>>,
}

/// The index of a log, of several logs joined into one history, or of one branch of either. Borrows the bytes.
///
/// A frame has a *position*, counted from 0 along the history, and a *number*, counted from 1 as it stands in the files, those
/// of a second log behind those of the first. In the index of one log both run side by side.
#[derive(Debug, Clone)]
pub struct WalIndex<'a> {
    /// The logs, and the number of frames in front of the first of each.
    logs: Vec<(&'a [u8], u32)>,
    /// Log and place in it of each frame; empty: the frames of the first log in their order.
    places: Vec<(u16, u32)>,
    /// The header, as it stands; `None` when fewer than 32 bytes are there.
    pub header: Option<WalHeader>,
    /// Whether SQLite accepts the header.
    pub accepted: bool,
    /// Page size: the header's, else the one that the frames fit.
    pub page_size: PageSize,
    /// Word order of the checksums.
    pub order: WordOrder,
    /// All frames, the first at position 0 being frame 1.
    pub frames: Vec<FrameInfo>,
    /// Commits that SQLite accepts, in order.
    pub commits: Vec<Commit>,
    /// Frames whose chain from the header is whole.
    pub chained: u32,
    /// Bytes behind the last whole frame.
    pub rest: u64,
}

impl<'a> WalIndex<'a> {
    /// Reads all frames. `hint` is the page size of the main file, for logs whose header is damaged. `None` when there is
    /// no header and no page size that any two frames fit.
    #[must_use]
    pub fn read(bytes: &'a [u8], hint: Option<PageSize>, log: &mut Findings) -> Option<WalIndex<'a>> {
        if bytes.is_empty() {
            return None;
        }
        let header = WalHeader::read(bytes).ok();
        let accepted = header.is_some_and(|h| h.is_accepted());
        note_header(bytes, header.as_ref(), accepted, log);
        let (page_size, order) = match header {
            Some(h) if accepted => (h.page_size()?, h.order()?),
            _ => guess(bytes, header.as_ref(), hint)?,
        };
        let mut index = WalIndex {
            logs: vec![(bytes, 0)],
            places: Vec::new(),
            header,
            accepted,
            page_size,
            order,
            frames: Vec::new(),
            commits: Vec::new(),
            chained: 0,
            rest: 0,
        };
        index.chain(log);
        index.classify(log);
        Some(index)
    }

    fn frame_len(&self) -> usize {
        FRAME_HEADER_LEN.saturating_add(self.page_size.len())
    }

    fn chain(&mut self, log: &mut Findings) {
        let len = self.frame_len();
        let mut before = self.header.map_or_else(Checksum::default, |h| h.checksum);
        let mut whole = self.accepted;
        let mut at = WAL_HEADER_LEN;
        let bytes = self.bytes();
        while at < bytes.len() {
            let frame = match Frame::read(bytes, at, self.page_size) {
                Ok(frame) => frame,
                Err(defect) => {
                    self.rest = wide(bytes.len().saturating_sub(at));
                    log.add(defect, site(self.frames.len(), None));
                    break;
                }
            };
            let linked = frame.checksum_after(before, self.order) == frame.checksum;
            let salts_fit = self.header.is_some_and(|h| (h.salt1, h.salt2) == (frame.salt1, frame.salt2));
            whole = whole && linked && salts_fit && frame.page_raw != 0;
            let no = self.frames.len();
            self.frames.push(FrameInfo { page: frame.page_raw, commit: frame.commit, class: FrameClass::Junk, linked });
            if whole {
                self.chained = small(self.frames.len());
                if frame.commit != 0 {
                    self.commits.push(Commit { frame: FrameNo(small(no).saturating_add(1)), pages: frame.commit });
                }
            }
            before = frame.checksum;
            at = at.saturating_add(len);
        }
    }

    fn classify(&mut self, log: &mut Findings) {
        let last = idx(self.last_commit().map_or(0, |c| c.frame.0));
        let chained = idx(self.chained);
        let salts = self.main_salts();
        let mut classes = Vec::with_capacity(self.frames.len());
        for (i, info) in self.frames.iter().enumerate() {
            let class = if i < last {
                FrameClass::Committed
            } else if i < chained {
                FrameClass::Uncommitted
            } else {
                self.class_beyond(i, info, salts)
            };
            classes.push(class);
        }
        for (info, class) in self.frames.iter_mut().zip(&classes) {
            info.class = *class;
        }
        // The first frame of an older generation cannot be linked: what preceded it was overwritten. It counts when the
        // frame behind it carries the same salts and links to it.
        for i in chained..self.frames.len() {
            let next_links = self.frames.get(i.saturating_add(1)).is_some_and(|n| n.linked && n.class == FrameClass::Older)
                && self.salts(i) == self.salts(i.saturating_add(1));
            if let Some(info) = self.frames.get_mut(i)
                && info.class == FrameClass::Junk
                && info.page != 0
                && next_links
            {
                info.class = FrameClass::Older;
            }
        }
        self.note_classes(last, chained, log);
    }

    /// The salts of the generation the log is in: the header's, or those of most frames when it is damaged.
    fn main_salts(&self) -> Option<(u32, u32)> {
        if self.accepted {
            return self.header.map(|h| (h.salt1, h.salt2));
        }
        let mut counts: std::collections::BTreeMap<(u32, u32), u32> = std::collections::BTreeMap::new();
        for i in 0..self.frames.len() {
            if self.frames.get(i).is_some_and(|f| f.linked)
                && let Some(salts) = self.salts(i)
            {
                let n = counts.entry(salts).or_insert(0);
                *n = n.saturating_add(1);
            }
        }
        counts.into_iter().max_by_key(|&(s, n)| (n, std::cmp::Reverse(s))).map(|(s, _)| s)
    }

    fn salts(&self, i: usize) -> Option<(u32, u32)> {
        self.frame_at(i).map(|f| (f.salt1, f.salt2))
    }

    fn class_beyond(&self, i: usize, info: &FrameInfo, salts: Option<(u32, u32)>) -> FrameClass {
        let Some(frame) = self.frame_at(i) else { return FrameClass::Junk };
        let own = (frame.salt1, frame.salt2);
        if info.page == 0 {
            return FrameClass::Junk;
        }
        if own == (0, 0) && frame.checksum == Checksum(0, 0) && frame.commit == 0 {
            return FrameClass::Uncommitted;
        }
        let Some((salt1, salt2)) = salts else { return FrameClass::Junk };
        // One salt of a frame that follows from the one before it may be what is damaged.
        let one_salt = (own.0 == salt1) != (own.1 == salt2);
        if own == (salt1, salt2) || one_salt && info.linked && self.salts(i.wrapping_sub(1)).is_none_or(|s| s == (salt1, salt2)) {
            return FrameClass::Detached;
        }
        // A reset counts the first salt up by one.
        let earlier = salt1.wrapping_sub(own.0);
        let linked_to_kin = info.linked && i > 0 && self.salts(i.saturating_sub(1)) == Some(own);
        if linked_to_kin || (1..=64).contains(&earlier) { FrameClass::Older } else { FrameClass::Junk }
    }

    fn note_classes(&self, last: usize, chained: usize, log: &mut Findings) {
        let count = |class: FrameClass| wide(self.frames.iter().filter(|f| f.class == class).count());
        let uncommitted = count(FrameClass::Uncommitted);
        if uncommitted > 0 {
            log.add(Defect::new(Code::FramesUncommitted, 0, uncommitted, wide(last)), site(last, None));
        }
        let older = count(FrameClass::Older);
        if older > 0 {
            let first = self.frames.iter().position(|f| f.class == FrameClass::Older).unwrap_or(0);
            log.add(Defect::new(Code::FrameOlder, 0, older, wide(first).saturating_add(1)), site(first, None));
        }
        let detached = self.frames.iter().position(|f| f.class == FrameClass::Detached);
        if let Some(first) = detached.filter(|_| self.accepted) {
            log.add(
                Defect::new(Code::FrameChecksum, 16, wide(first).saturating_add(1), wide(chained)),
                site(first, self.frames.get(first)),
            );
        }
        let junk = count(FrameClass::Junk);
        if junk > 0 {
            log.add(Defect::new(Code::WalJunk, 0, junk, 0), site(chained, None));
        }
        for commit in &self.commits {
            let at = idx(commit.frame.0.saturating_sub(1));
            if let Some(info) = self.frames.get(at).filter(|f| f.page > commit.pages) {
                log.add(Defect::new(Code::FramePageOutside, 0, u64::from(info.page), u64::from(commit.pages)), site(at, Some(info)));
            }
        }
    }

    /// Whether the first frame under a header that SQLite does not accept is one: it follows from the header's other bytes, or
    /// the next frame follows from it.
    #[must_use]
    pub fn begins(&self) -> bool {
        let sum = self.header.filter(|_| !self.accepted).and_then(|h| h.expected_checksum());
        let follows = |f: Frame<'_>| sum.is_some_and(|sum| f.checksum_after(sum, self.order) == f.checksum);
        !self.accepted && (self.frame_at(0).is_some_and(follows) || self.frames.get(1).is_some_and(|f| f.linked))
    }

    /// Page number, commit word and image of a frame with its one damaged word put right.
    #[must_use]
    pub fn corrected(&self, i: usize) -> Option<(u32, u32, Vec<u8>)> {
        let frame = self.frame_at(i)?;
        let before = match i.checked_sub(1) {
            Some(before) => self.frame_at(before)?.checksum,
            None => self.header?.checksum,
        };
        let (at, was) = lineage::correct_word(&frame, before, self.order)?;
        let mut image = frame.image.to_vec();
        let (mut page, mut commit) = (frame.page_raw, frame.commit);
        match at {
            0 => page = u32::from_be_bytes(was),
            4 => commit = u32::from_be_bytes(was),
            at => image.get_mut(idx(at.checked_sub(8)?)..)?.get_mut(..4)?.copy_from_slice(&was),
        }
        Some((page, commit, image))
    }

    /// The bytes of the log; of the first of several.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.logs.first().map_or(&[], |l| l.0)
    }

    /// Which log holds a frame, and its number there, from 1.
    #[must_use]
    pub fn place(&self, i: usize) -> (u16, u32) {
        let (log, at) = self.places.get(i).copied().unwrap_or((0, small(i)));
        (log, at.saturating_add(1))
    }

    /// The number of a frame by its position.
    #[must_use]
    pub fn number(&self, i: usize) -> FrameNo {
        let (log, no) = self.place(i);
        FrameNo(self.logs.get(usize::from(log)).map_or(0, |l| l.1).saturating_add(no))
    }

    /// The position of a frame by its number.
    #[must_use]
    pub fn position(&self, number: FrameNo) -> Option<usize> {
        if self.places.is_empty() {
            return idx(number.0).checked_sub(1).filter(|i| *i < self.frames.len());
        }
        (0..self.frames.len()).find(|i| self.number(*i) == number)
    }

    /// How many logs it is made of.
    #[must_use]
    pub fn logs(&self) -> usize {
        self.logs.len()
    }

    /// Several logs as one history: of each the frames up to its last commit, one after the other in the order given, and
    /// behind them what else the logs hold. The first of `parts` need not be the first of `files`, which gives the logs as they
    /// are numbered; each part names its file. Parts of another page size than the first are left out.
    #[must_use]
    pub fn joined(files: &[&'a [u8]], parts: &[(usize, &WalIndex<'a>)]) -> Option<WalIndex<'a>> {
        let (_, first) = parts.first()?;
        let (_, newest) = parts.last()?;
        let len = first.frame_len();
        let mut before = 0_u32;
        let mut logs = Vec::new();
        for bytes in files {
            logs.push((*bytes, before));
            before = before.saturating_add(small(bytes.len().saturating_sub(WAL_HEADER_LEN).checked_div(len).unwrap_or(0)));
        }
        let mut out =
            WalIndex { logs, places: Vec::new(), frames: Vec::new(), commits: Vec::new(), chained: 0, rest: 0, ..(*newest).clone() };
        let mut rest: Vec<((u16, u32), FrameInfo)> = Vec::new();
        for (at, (file, part)) in parts.iter().enumerate() {
            if part.page_size != first.page_size {
                continue;
            }
            let is_newest = at.saturating_add(1) == parts.len();
            let last = idx(part.last_commit().map_or(0, |c| c.frame.0));
            let base = small(out.frames.len());
            for (i, info) in part.frames.iter().enumerate() {
                let place = (u16::try_from(*file).unwrap_or(u16::MAX), small(i));
                if i < last || is_newest {
                    out.places.push(place);
                    out.frames.push(*info);
                } else if !matches!(info.class, FrameClass::Junk) {
                    rest.push((place, FrameInfo { class: FrameClass::Older, ..*info }));
                }
            }
            for commit in &part.commits {
                out.commits.push(Commit { frame: FrameNo(commit.frame.0.saturating_add(base)), pages: commit.pages });
            }
            if is_newest {
                out.chained = base.saturating_add(part.chained);
            }
        }
        for (place, info) in rest {
            out.places.push(place);
            out.frames.push(info);
        }
        Some(out)
    }

    /// Adds the frames of a log that goes another way: what SQLite would read of it counts as detached here.
    pub(super) fn append(&mut self, file: usize, wal: &WalIndex<'a>) {
        for (i, info) in wal.frames.iter().enumerate() {
            let class = if info.class == FrameClass::Committed { FrameClass::Detached } else { info.class };
            self.places.push((u16::try_from(file).unwrap_or(u16::MAX), small(i)));
            self.frames.push(FrameInfo { class, ..*info });
        }
    }

    /// For each log the position of each of its frames; `u32::MAX` where a frame is left out.
    pub(super) fn positions(&self, files: usize) -> Vec<Vec<u32>> {
        let mut out: Vec<Vec<u32>> = vec![Vec::new(); files];
        for (position, (log, at)) in self.places.iter().enumerate() {
            let Some(list) = out.get_mut(usize::from(*log)) else { continue };
            if list.len() <= idx(*at) {
                list.resize(idx(*at).saturating_add(1), u32::MAX);
            }
            if let Some(place) = list.get_mut(idx(*at)) {
                *place = small(position);
            }
        }
        out
    }

    /// The history along a path of this one: its frames, by their positions here, as if SQLite had read them all, and behind them
    /// the others. Page and commit of `mended` frames, which are in the order of their positions, are taken
    /// from there.
    #[must_use]
    pub fn along(&self, path: &[u32], mended: &[Mended]) -> WalIndex<'a> {
        let mut out = WalIndex { places: Vec::new(), frames: Vec::new(), commits: Vec::new(), chained: small(path.len()), ..self.clone() };
        let mut taken = vec![false; self.frames.len()];
        let put = |out: &mut WalIndex<'a>, i: usize, class: Option<FrameClass>| {
            let Some(mut info) = self.frames.get(i).copied() else { return };
            if let Some(m) = mended.binary_search_by_key(&small(i), |m| m.position).ok().and_then(|at| mended.get(at)) {
                (info.page, info.commit) = (m.page, m.commit);
            }
            let (log, no) = self.place(i);
            out.places.push((log, no.saturating_sub(1)));
            out.frames.push(FrameInfo { class: class.unwrap_or(info.class), ..info });
            if let (Some(FrameClass::Committed), 1..) = (class, info.commit) {
                out.commits.push(Commit { frame: FrameNo(small(out.frames.len())), pages: info.commit });
            }
        };
        for &i in path {
            put(&mut out, idx(i), Some(FrameClass::Committed));
            if let Some(seen) = taken.get_mut(idx(i)) {
                *seen = true;
            }
        }
        for (i, info) in self.frames.iter().enumerate() {
            if !taken.get(i).copied().unwrap_or(true) {
                let class = if info.class == FrameClass::Committed { FrameClass::Detached } else { info.class };
                put(&mut out, i, Some(class).filter(|c| *c != FrameClass::Committed));
            }
        }
        out
    }

    /// The last commit that SQLite accepts.
    #[must_use]
    pub fn last_commit(&self) -> Option<Commit> {
        self.commits.last().copied()
    }

    /// The frame at a position counted from 0.
    #[must_use]
    pub fn frame_at(&self, i: usize) -> Option<Frame<'a>> {
        let (log, at) = if self.places.is_empty() { (0, small(i)) } else { *self.places.get(i)? };
        let at = WAL_HEADER_LEN.checked_add(idx(at).checked_mul(self.frame_len())?)?;
        Frame::read(self.logs.get(usize::from(log))?.0, at, self.page_size).ok()
    }

    /// A frame by its place along the history, from 1.
    #[must_use]
    pub fn frame(&self, no: FrameNo) -> Option<Frame<'a>> {
        self.frame_at(idx(no.0.checked_sub(1)?))
    }

    /// The newest image of a page among the frames up to `last`, in whatever class they are.
    #[must_use]
    pub fn newest(&self, page: PageNo, last: FrameNo) -> Option<(FrameNo, &'a [u8])> {
        let upto = self.frames.get(..idx(last.0)).unwrap_or(&self.frames);
        let i = upto.iter().rposition(|f| f.page == page.get())?;
        Some((FrameNo(small(i).saturating_add(1)), self.frame_at(i)?.image))
    }
}

fn site(i: usize, info: Option<&FrameInfo>) -> Site {
    let frame = FrameNo(small(i).saturating_add(1));
    Site { origin: Origin::Wal { frame }, page: info.and_then(|f| PageNo::new(f.page)), ..Site::default() }
}

fn note_header(bytes: &[u8], header: Option<&WalHeader>, accepted: bool, log: &mut Findings) {
    if accepted {
        return;
    }
    let place = Site { origin: Origin::Wal { frame: FrameNo(0) }, ..Site::default() };
    let got = header.map_or(0, |h| u64::from(h.magic));
    match header.and_then(|h| Some((h, h.expected_checksum()?))) {
        Some((h, want)) if h.page_size().is_some() && want != h.checksum => {
            log.add(Defect::new(Code::WalHeaderChecksum, 24, u64::from(h.checksum.0), u64::from(want.0)), place);
        }
        _ => {
            let text = bytes.iter().take(64).all(|b| b.is_ascii_graphic() || b.is_ascii_whitespace());
            let detail = if text { "the file begins with text" } else { "" };
            let defect = Defect::new(Code::WalHeaderBad, 0, got, u64::from(WAL_MAGIC));
            if detail.is_empty() { log.add(defect, place) } else { log.add_with(defect, place, detail) }
        }
    }
}

/// Page size and word order of a log with a damaged header: those under which most of the first frames link to one another.
fn guess(bytes: &[u8], header: Option<&WalHeader>, hint: Option<PageSize>) -> Option<(PageSize, WordOrder)> {
    let named = hint.into_iter().chain(header.and_then(WalHeader::page_size));
    let sizes: Vec<PageSize> = named.chain(PageSize::ALL.into_iter().filter_map(PageSize::new)).collect();
    let mut best: Option<(u32, PageSize, WordOrder)> = None;
    for size in sizes {
        let len = FRAME_HEADER_LEN.saturating_add(size.len());
        let frames = bytes.len().saturating_sub(WAL_HEADER_LEN).checked_div(len)?;
        for order in [WordOrder::Little, WordOrder::Big] {
            let mut links = 0_u32;
            let mut before = None;
            for i in 0..frames.min(64) {
                let at = WAL_HEADER_LEN.saturating_add(i.saturating_mul(len));
                let Ok(frame) = Frame::read(bytes, at, size) else { break };
                // A row of zeros links to itself at every size.
                let real = frame.page_raw != 0 && frame.checksum != Checksum(0, 0);
                if real && before.is_some_and(|b| frame.checksum_after(b, order) == frame.checksum) {
                    links = links.saturating_add(1);
                }
                before = Some(frame.checksum);
            }
            if links > 0 && best.as_ref().is_none_or(|b| links > b.0) {
                best = Some((links, size, order));
            }
        }
    }
    if let Some((_, size, order)) = best {
        return Some((size, order));
    }
    // A single frame links to nothing: take what is named, if a frame of it is there and holds a page that closes.
    let size = hint.or_else(|| header.and_then(WalHeader::page_size))?;
    let frame = Frame::read(bytes, WAL_HEADER_LEN, size).ok()?;
    let header_at = if frame.page_raw == 1 { 100 } else { 0 };
    super::page_fit::closes(frame.image, header_at, size.get()).then_some((size, WordOrder::Little))
}
