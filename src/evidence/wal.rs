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

/// Committed work that SQLite does not read: behind a break of the chain, or under a header that it does not accept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HiddenCommits {
    /// How many commits.
    pub commits: u32,
    /// Frames up to the last of them that SQLite does not read.
    pub frames: u32,
    /// The first of these frames.
    pub first: FrameNo,
    /// The last commit.
    pub last: Commit,
    /// The frame at the break with the one word put right that explains it, and its image.
    pub mended: Option<(FrameNo, u32, Vec<u8>)>,
}

/// The index of a log. Borrows the log's bytes.
#[derive(Debug, Clone)]
pub struct WalIndex<'a> {
    bytes: &'a [u8],
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
        let mut index =
            WalIndex { bytes, header, accepted, page_size, order, frames: Vec::new(), commits: Vec::new(), chained: 0, rest: 0 };
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
        while at < self.bytes.len() {
            let frame = match Frame::read(self.bytes, at, self.page_size) {
                Ok(frame) => frame,
                Err(defect) => {
                    self.rest = wide(self.bytes.len().saturating_sub(at));
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
        if own == (salt1, salt2) {
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

    /// The commits that SQLite does not read although the log holds them.
    ///
    /// A commit counts whose frame follows from the one before it. The frame at the break itself may be one that was being
    /// written: it counts when a single damaged word explains the break. Under a bad header the first frame counts when
    /// something follows from it, or it from the header.
    #[must_use]
    pub fn hidden(&self) -> Option<HiddenCommits> {
        let first = self.frames.iter().position(|f| f.class == FrameClass::Detached)?;
        let mut mended = None;
        let mut commits = 0_u32;
        let mut last = None;
        for (i, info) in self.frames.iter().enumerate().skip(first) {
            if info.class != FrameClass::Detached {
                continue;
            }
            let mut commit = info.commit;
            let mut counts = info.linked || (i == 0 && self.begins());
            if !info.linked
                && i == first
                && self.accepted
                && let Some((page, word, image)) = self.corrected(i)
            {
                (counts, commit) = (true, word);
                mended = Some((FrameNo(small(i).saturating_add(1)), page, image));
            }
            if counts && commit != 0 {
                commits = commits.saturating_add(1);
                last = Some(Commit { frame: FrameNo(small(i).saturating_add(1)), pages: commit });
            }
        }
        let last = last?;
        // Frames of the chain that only a commit behind the break completes are hidden with it.
        let from = self.last_commit().map_or(0, |c| c.frame.0);
        let frames = self.frames.iter().take(idx(last.frame.0)).skip(idx(from)).filter(|f| f.class != FrameClass::Junk).count();
        Some(HiddenCommits { commits, frames: small(frames), first: FrameNo(from.saturating_add(1)), last, mended })
    }

    /// Whether the first frame under a header that SQLite does not accept is one: it follows from the header's other bytes, or
    /// the next frame follows from it.
    fn begins(&self) -> bool {
        let sum = self.header.filter(|_| !self.accepted).and_then(|h| h.expected_checksum());
        let follows = |f: Frame<'_>| sum.is_some_and(|sum| f.checksum_after(sum, self.order) == f.checksum);
        !self.accepted && (self.frame_at(0).is_some_and(follows) || self.frames.get(1).is_some_and(|f| f.linked))
    }

    /// Page number, commit word and image of a frame with its one damaged word put right.
    fn corrected(&self, i: usize) -> Option<(u32, u32, Vec<u8>)> {
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

    /// The bytes of the log.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The last commit that SQLite accepts.
    #[must_use]
    pub fn last_commit(&self) -> Option<Commit> {
        self.commits.last().copied()
    }

    /// The frame at a position counted from 0.
    #[must_use]
    pub fn frame_at(&self, i: usize) -> Option<Frame<'a>> {
        let at = WAL_HEADER_LEN.checked_add(i.checked_mul(self.frame_len())?)?;
        Frame::read(self.bytes, at, self.page_size).ok()
    }

    /// A frame by its number, from 1.
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
