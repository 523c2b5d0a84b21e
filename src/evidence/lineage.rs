//! Which frame of a log was written after which, by the checksum that each frame's writer started from.
//!
//! The checksum of a log is an invertible recurrence. Run backwards over a frame it gives the running checksum before that
//! frame; the frame (or header) that stores this value is the one its writer believed to be the last. One chain is a healthy
//! log. A second chain whose parent is unknown is damage where a single word explains it, and a suspected fork otherwise.

use std::collections::HashMap;

use super::wal::{FrameClass, WalIndex};
use crate::format::wal::{Checksum, Frame, WordOrder};
use crate::ids::{FrameNo, small};

/// What a chain of frames continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parent {
    /// The header of the log.
    Header,
    /// A frame that is still in the log.
    Frame(FrameNo),
    /// The frame in front of it in the file, once one damaged word of its own first frame is put right.
    Corrected {
        /// Offset of the word within the page number, commit word and page image that the checksum covers.
        at: u32,
        /// The four bytes as they were written.
        was: [u8; 4],
    },
    /// A frame that was written over, or damage that no single word explains.
    Unknown,
}

/// A run of frames, each written after the one in front of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chain {
    /// Its first frame.
    pub first: FrameNo,
    /// Its last frame.
    pub last: FrameNo,
    /// What it continues.
    pub parent: Parent,
    /// The last commit in it, and pages of the database after that; `None` when it has none.
    pub commit: Option<(FrameNo, u32)>,
    /// Whether it starts right behind a commit, as a transaction of another writer would.
    pub behind_commit: bool,
}

/// The chains of a log in file order. Frames without a checksum of their own (spills, junk) belong to none.
#[must_use]
pub fn chains(wal: &WalIndex<'_>) -> Vec<Chain> {
    let mut stored: HashMap<Checksum, FrameNo> = HashMap::new();
    let real = |i: usize| wal.frames.get(i).is_some_and(|f| f.page != 0 && f.class != FrameClass::Junk);
    for i in 0..wal.frames.len() {
        if let Some(frame) = wal.frame_at(i).filter(|f| real(i) && f.checksum != Checksum(0, 0)) {
            stored.entry(frame.checksum).or_insert(FrameNo(small(i).saturating_add(1)));
        }
    }
    let mut out: Vec<Chain> = Vec::new();
    let mut before: Option<(Checksum, u32)> = wal.header.map(|h| (h.checksum, 1));
    for (i, info) in wal.frames.iter().enumerate() {
        let Some(frame) = wal.frame_at(i).filter(|f| real(i) && f.checksum != Checksum(0, 0)) else {
            before = None;
            continue;
        };
        let no = FrameNo(small(i).saturating_add(1));
        let goes_on = i > 0 && before.is_some() && info.linked && out.last().is_some_and(|c| c.last.0.saturating_add(1) == no.0);
        if !goes_on {
            let parent = parent(&frame, wal, &stored, before.map(|(sum, _)| sum), no);
            let behind_commit = before.is_some_and(|(_, commit)| commit != 0);
            out.push(Chain { first: no, last: no, parent, commit: None, behind_commit });
        }
        if let Some(chain) = out.last_mut() {
            chain.last = no;
            if info.commit != 0 {
                chain.commit = Some((no, info.commit));
            }
        }
        before = Some((frame.checksum, info.commit));
    }
    out
}

fn parent(frame: &Frame<'_>, wal: &WalIndex<'_>, stored: &HashMap<Checksum, FrameNo>, before: Option<Checksum>, no: FrameNo) -> Parent {
    let start = frame.checksum_before(wal.order);
    if wal.header.is_some_and(|h| h.checksum == start) {
        return Parent::Header;
    }
    match stored.get(&start) {
        // A frame never follows itself; a row of equal frames would say so.
        Some(&parent) if parent != no => return Parent::Frame(parent),
        _ => {}
    }
    match before.and_then(|b| correct_word(frame, b, wal.order)) {
        Some((at, was)) => Parent::Corrected { at, was },
        None => Parent::Unknown,
    }
}

/// The one word of a frame that, changed, makes its checksum follow from `before`: where it is, and the bytes that belong
/// there. `None` when no word does, or more than one would: an error in the high bits of a word repeats in others.
#[must_use]
pub fn correct_word(frame: &Frame<'_>, before: Checksum, order: WordOrder) -> Option<(u32, [u8; 4])> {
    let bytes: Vec<u8> = frame.head.iter().chain(frame.image).copied().collect();
    let (pairs, _) = bytes.as_chunks::<8>();
    let word = |w: &[u8]| -> u32 {
        let bytes = w.first_chunk::<4>().copied().unwrap_or_default();
        match order {
            WordOrder::Little => u32::from_le_bytes(bytes),
            WordOrder::Big => u32::from_be_bytes(bytes),
        }
    };
    let put = |n: u32| match order {
        WordOrder::Little => n.to_le_bytes(),
        WordOrder::Big => n.to_be_bytes(),
    };
    let mut ahead = Vec::with_capacity(pairs.len());
    let mut sum = before;
    for pair in pairs {
        ahead.push(sum);
        sum = sum.forward(order, pair);
    }
    let mut after = frame.checksum;
    let mut found: Option<(u32, [u8; 4])> = None;
    for (i, (pair, start)) in pairs.iter().zip(&ahead).enumerate().rev() {
        let (x, y) = (word(pair.get(..4)?), word(pair.get(4..)?));
        let want_x = after.0.wrapping_sub(start.0).wrapping_sub(start.1);
        let want_y = after.1.wrapping_sub(start.1).wrapping_sub(after.0);
        let at = small(i.saturating_mul(8));
        let candidate = match (want_x == x, want_y == y) {
            (true, true) => return None,
            (false, true) => Some((at, put(want_x))),
            (true, false) => Some((at.saturating_add(4), put(want_y))),
            (false, false) => None,
        };
        if candidate.is_some() {
            if found.is_some() {
                return None;
            }
            found = candidate;
        }
        after = after.backward(order, pair);
    }
    found
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects)]
mod tests {
    use super::*;
    use crate::finding::Findings;
    use crate::format::wal::{WAL_MAGIC, WAL_VERSION, WalHeader, encode_frame};
    use crate::ids::PageNo;

    fn image(seed: u32) -> Vec<u8> {
        (0..512_u32).map(|i| u8::try_from(i.wrapping_mul(31).wrapping_add(seed * 77) % 251).unwrap()).collect()
    }

    fn log(frames: u32) -> (WalHeader, Vec<u8>, Vec<Checksum>) {
        let mut h = WalHeader {
            magic: WAL_MAGIC,
            version: WAL_VERSION,
            page_size_raw: 512,
            checkpoint: 0,
            salt1: 5,
            salt2: 6,
            checksum: Checksum::default(),
        };
        h.checksum = h.expected_checksum().unwrap();
        let mut wal = h.encode().to_vec();
        let mut sums = vec![h.checksum];
        for i in 1..=frames {
            let page = PageNo::new(1 + i % 4).unwrap();
            let sum = encode_frame(&mut wal, &h, WordOrder::Little, sums[sums.len() - 1], page, u32::from(i % 2 == 0) * 4, &image(i));
            sums.push(sum);
        }
        (h, wal, sums)
    }

    fn of(wal: &[u8]) -> Vec<Chain> {
        chains(&WalIndex::read(wal, None, &mut Findings::new(5)).unwrap())
    }

    #[test]
    fn a_healthy_log_is_one_chain() {
        let (_, wal, _) = log(6);
        let all = of(&wal);
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].first, all[0].last, all[0].parent), (FrameNo(1), FrameNo(6), Parent::Header));
        assert_eq!(all[0].commit, Some((FrameNo(6), 4)));
    }

    #[test]
    fn two_writers_make_a_second_chain() {
        let (h, wal, sums) = log(8);
        // Another writer saw two frames only and wrote two more over frames 3 and 4.
        let mut mixed = wal[..32 + 2 * 536].to_vec();
        let mut sum = sums[2];
        for i in 20..22_u32 {
            sum = encode_frame(&mut mixed, &h, WordOrder::Little, sum, PageNo::new(2).unwrap(), u32::from(i == 21) * 4, &image(i));
        }
        mixed.extend_from_slice(&wal[mixed.len()..]);
        let all = of(&mixed);
        assert_eq!(all.len(), 2, "{all:?}");
        assert_eq!((all[0].last, all[1].first, all[1].last), (FrameNo(4), FrameNo(5), FrameNo(8)));
        assert_eq!((all[1].parent, all[1].behind_commit), (Parent::Unknown, true));
    }

    #[test]
    fn a_damaged_word_is_found_and_known() {
        let (_, wal, _) = log(6);
        for at in [0_usize, 5, 24 + 17, 24 + 200, 24 + 508] {
            let mut bad = wal.clone();
            let place = 32 + 2 * 536 + at;
            bad[place] ^= 0x10;
            let all = of(&bad);
            assert_eq!((all.len(), all[1].first), (2, FrameNo(3)), "{at} {all:?}");
            let covered = if at < 8 { at } else { at - 16 };
            let word = covered / 4 * 4;
            let origin = 32 + 2 * 536 + if word < 8 { word } else { word + 16 };
            let was: [u8; 4] = wal[origin..origin + 4].try_into().unwrap();
            assert_eq!(all[1].parent, Parent::Corrected { at: u32::try_from(word).unwrap(), was }, "{at}");
        }
    }
}
