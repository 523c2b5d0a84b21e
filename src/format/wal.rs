//! The write-ahead log: header, frames, and the checksum that chains them (file format document, section 4).
//!
//! The checksum is a recurrence over pairs of 32-bit words. It is invertible: from a stored checksum and the bytes before it,
//! [`Checksum::backward`] gives the checksum that the writer started from.

use crate::bytes::{slice, u32_at, u32_le_at};
use crate::finding::{Code, Defect};
use crate::ids::{PageNo, PageSize, small, wide};

/// Length of the header in bytes.
pub const WAL_HEADER_LEN: usize = 32;
/// Length of a frame header in bytes; the page image follows it.
pub const FRAME_HEADER_LEN: usize = 24;
/// Magic number of logs whose checksums read words as little-endian numbers; plus one for big-endian.
pub const WAL_MAGIC: u32 = 0x377f_0682;
/// The one format version there is.
pub const WAL_VERSION: u32 = 3_007_000;

/// In which byte order the checksum reads words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WordOrder {
    /// Magic 0x377f0682.
    Little,
    /// Magic 0x377f0683.
    Big,
}

impl WordOrder {
    #[inline]
    fn word(self, b: &[u8; 4]) -> u32 {
        match self {
            WordOrder::Little => u32::from_le_bytes(*b),
            WordOrder::Big => u32::from_be_bytes(*b),
        }
    }
}

/// The two running sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Checksum(pub u32, pub u32);

impl Checksum {
    /// The two sums as they are stored at `at`, always big-endian.
    #[must_use]
    pub fn stored(b: &[u8], at: usize) -> Option<Checksum> {
        Some(Checksum(u32_at(b, at)?, u32_at(b, at.checked_add(4)?)?))
    }

    /// The sums after `bytes`. A rest of fewer than eight bytes is not looked at; the format has none.
    #[must_use]
    pub fn forward(self, order: WordOrder, bytes: &[u8]) -> Checksum {
        let Checksum(mut a, mut b) = self;
        let (pairs, _) = bytes.as_chunks::<8>();
        for pair in pairs {
            let &[x0, x1, x2, x3, y0, y1, y2, y3] = pair;
            a = a.wrapping_add(order.word(&[x0, x1, x2, x3])).wrapping_add(b);
            b = b.wrapping_add(order.word(&[y0, y1, y2, y3])).wrapping_add(a);
        }
        Checksum(a, b)
    }

    /// The sums before `bytes`, given those after them.
    #[must_use]
    pub fn backward(self, order: WordOrder, bytes: &[u8]) -> Checksum {
        let Checksum(mut a, mut b) = self;
        let (pairs, _) = bytes.as_chunks::<8>();
        for pair in pairs.iter().rev() {
            let &[x0, x1, x2, x3, y0, y1, y2, y3] = pair;
            b = b.wrapping_sub(order.word(&[y0, y1, y2, y3])).wrapping_sub(a);
            a = a.wrapping_sub(order.word(&[x0, x1, x2, x3])).wrapping_sub(b);
        }
        Checksum(a, b)
    }
}

/// The header, as it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WalHeader {
    /// Offset 0: [`WAL_MAGIC`], or plus one.
    pub magic: u32,
    /// Offset 4: format version.
    pub version: u32,
    /// Offset 8: page size in bytes.
    pub page_size_raw: u32,
    /// Offset 12: checkpoint sequence number.
    pub checkpoint: u32,
    /// Offset 16: counted up with each reset of the log.
    pub salt1: u32,
    /// Offset 20: chosen anew with each reset.
    pub salt2: u32,
    /// Offset 24: checksum of the 24 bytes before it.
    pub checksum: Checksum,
}

impl WalHeader {
    /// Reads the fields; nothing is judged.
    ///
    /// # Errors
    /// `wal-header-bad` when there are fewer than 32 bytes.
    pub fn read(b: &[u8]) -> Result<WalHeader, Defect> {
        Self::fields(b).ok_or(Defect::new(Code::WalHeaderBad, small(b.len()), wide(b.len()), wide(WAL_HEADER_LEN)))
    }

    fn fields(b: &[u8]) -> Option<WalHeader> {
        Some(WalHeader {
            magic: u32_at(b, 0)?,
            version: u32_at(b, 4)?,
            page_size_raw: u32_at(b, 8)?,
            checkpoint: u32_at(b, 12)?,
            salt1: u32_at(b, 16)?,
            salt2: u32_at(b, 20)?,
            checksum: Checksum::stored(b, 24)?,
        })
    }

    /// The word order of the checksums; `None` when the magic number is none.
    #[must_use]
    pub fn order(&self) -> Option<WordOrder> {
        match self.magic {
            WAL_MAGIC => Some(WordOrder::Little),
            0x377f_0683 => Some(WordOrder::Big),
            _ => None,
        }
    }

    /// The page size; `None` when the format does not allow it.
    #[must_use]
    pub fn page_size(&self) -> Option<PageSize> {
        PageSize::new(self.page_size_raw)
    }

    /// The checksum that belongs at offset 24; `None` without a magic number.
    #[must_use]
    pub fn expected_checksum(&self) -> Option<Checksum> {
        Some(Checksum::default().forward(self.order()?, &self.words()))
    }

    fn words(&self) -> [u8; 24] {
        let mut out = [0_u8; 24];
        let words = [self.magic, self.version, self.page_size_raw, self.checkpoint, self.salt1, self.salt2];
        for (place, word) in out.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_be_bytes());
        }
        out
    }

    /// The header as bytes, with the checksum field as it is.
    #[must_use]
    pub fn encode(&self) -> [u8; WAL_HEADER_LEN] {
        let mut out = [0_u8; WAL_HEADER_LEN];
        let tail = [self.checksum.0.to_be_bytes(), self.checksum.1.to_be_bytes()];
        let all = self.words().into_iter().chain(tail.into_iter().flatten());
        for (place, byte) in out.iter_mut().zip(all) {
            *place = byte;
        }
        out
    }

    /// Whether SQLite would read frames behind this header.
    #[must_use]
    pub fn is_accepted(&self) -> bool {
        self.page_size().is_some() && self.version == WAL_VERSION && self.expected_checksum() == Some(self.checksum)
    }
}

/// A frame: header fields as they stand, and the page image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Offset 0: which page; 0 is none.
    pub page_raw: u32,
    /// Offset 4: pages of the database after the transaction that this frame commits; 0 for the other frames.
    pub commit: u32,
    /// Offset 8: salt of the log's header when the frame was written.
    pub salt1: u32,
    /// Offset 12: the other salt.
    pub salt2: u32,
    /// Offset 16: running checksum over the frames up to this one.
    pub checksum: Checksum,
    /// The first eight bytes of the frame header, which the checksum covers.
    pub head: &'a [u8],
    /// The page image.
    pub image: &'a [u8],
}

impl<'a> Frame<'a> {
    /// The frame that starts at `at`.
    ///
    /// # Errors
    /// `frame-cut` when its bytes are not all there.
    pub fn read(b: &'a [u8], at: usize, size: PageSize) -> Result<Frame<'a>, Defect> {
        Self::fields(b, at, size).ok_or_else(|| {
            let want = wide(FRAME_HEADER_LEN).saturating_add(wide(size.len()));
            Defect::new(Code::FrameCut, small(at), wide(b.len().saturating_sub(at)), want)
        })
    }

    fn fields(b: &'a [u8], at: usize, size: PageSize) -> Option<Frame<'a>> {
        let bytes = slice(b, at, FRAME_HEADER_LEN.checked_add(size.len())?)?;
        Some(Frame {
            page_raw: u32_at(bytes, 0)?,
            commit: u32_at(bytes, 4)?,
            salt1: u32_at(bytes, 8)?,
            salt2: u32_at(bytes, 12)?,
            checksum: Checksum::stored(bytes, 16)?,
            head: bytes.get(..8)?,
            image: bytes.get(FRAME_HEADER_LEN..)?,
        })
    }

    /// The page it holds; `None` for 0.
    #[must_use]
    pub fn page(&self) -> Option<PageNo> {
        PageNo::new(self.page_raw)
    }

    /// The running checksum after this frame, given the one before it.
    #[must_use]
    pub fn checksum_after(&self, before: Checksum, order: WordOrder) -> Checksum {
        before.forward(order, self.head).forward(order, self.image)
    }

    /// The running checksum that the writer of this frame had before it, if the bytes are as it wrote them.
    #[must_use]
    pub fn checksum_before(&self, order: WordOrder) -> Checksum {
        self.checksum.backward(order, self.image).backward(order, self.head)
    }
}

/// Appends a frame and gives the running checksum after it.
pub fn encode_frame(
    out: &mut Vec<u8>,
    header: &WalHeader,
    order: WordOrder,
    before: Checksum,
    page: PageNo,
    commit: u32,
    image: &[u8],
) -> Checksum {
    let mut head = [0_u8; 8];
    for (place, byte) in head.iter_mut().zip(page.get().to_be_bytes().into_iter().chain(commit.to_be_bytes())) {
        *place = byte;
    }
    let sum = before.forward(order, &head).forward(order, image);
    out.extend_from_slice(&head);
    for word in [header.salt1, header.salt2, sum.0, sum.1] {
        out.extend_from_slice(&word.to_be_bytes());
    }
    out.extend_from_slice(image);
    sum
}

/// One of the two copies of the index header at the front of a `-shm` file, in the byte order of its writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShmHeader {
    /// Offset 0: 3007000.
    pub version: u32,
    /// Offset 8: counted up with each transaction.
    pub change: u32,
    /// Offset 12: whether the structure is initialised.
    pub is_init: bool,
    /// Offset 14: page size, 1 for 65536.
    pub page_size_raw: u16,
    /// Offset 16: last valid frame.
    pub max_frame: u32,
    /// Offset 20: pages of the database.
    pub page_count: u32,
    /// Offset 24: checksum of the last frame.
    pub frame_checksum: Checksum,
    /// Offset 32: the salts of the log, as its header stores them.
    pub salts: [u8; 8],
}

impl ShmHeader {
    /// Reads the copy at `at` (0 or 48) on a little-endian machine's file; `None` when it is cut or another machine's.
    #[must_use]
    pub fn read(b: &[u8], at: usize) -> Option<ShmHeader> {
        let o = |n: usize| at.saturating_add(n);
        let version = u32_le_at(b, o(0))?;
        (version == WAL_VERSION).then_some(())?;
        Some(ShmHeader {
            version,
            change: u32_le_at(b, o(8))?,
            is_init: *b.get(o(12))? != 0,
            page_size_raw: crate::bytes::u16_le_at(b, o(14))?,
            max_frame: u32_le_at(b, o(16))?,
            page_count: u32_le_at(b, o(20))?,
            frame_checksum: Checksum(u32_le_at(b, o(24))?, u32_le_at(b, o(28))?),
            salts: slice(b, o(32), 8)?.try_into().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_runs_both_ways() {
        let bytes: Vec<u8> = (0..4096_u32).map(|i| u8::try_from(i * i % 251).unwrap()).collect();
        for order in [WordOrder::Little, WordOrder::Big] {
            let start = Checksum(0x1234_5678, 0x9abc_def0);
            let end = start.forward(order, &bytes);
            assert_ne!(start, end);
            assert_eq!(end.backward(order, &bytes), start);
        }
    }

    #[test]
    fn frames_round_trip() {
        let size = PageSize::new(512).unwrap();
        let mut header = WalHeader {
            magic: WAL_MAGIC,
            version: WAL_VERSION,
            page_size_raw: 512,
            checkpoint: 3,
            salt1: 9,
            salt2: 77,
            checksum: Checksum::default(),
        };
        header.checksum = header.expected_checksum().unwrap();
        assert!(header.is_accepted());
        assert_eq!(WalHeader::read(&header.encode()).unwrap(), header);
        let mut wal = header.encode().to_vec();
        let image = vec![5; 512];
        let sum = encode_frame(&mut wal, &header, WordOrder::Little, header.checksum, PageNo::ONE, 7, &image);
        let frame = Frame::read(&wal, WAL_HEADER_LEN, size).unwrap();
        assert_eq!((frame.page(), frame.commit, frame.image), (Some(PageNo::ONE), 7, &image[..]));
        assert_eq!(frame.checksum, sum);
        assert_eq!(frame.checksum_after(header.checksum, WordOrder::Little), sum);
        assert_eq!(frame.checksum_before(WordOrder::Little), header.checksum);
        assert_eq!(Frame::read(&wal[..wal.len() - 1], WAL_HEADER_LEN, size).unwrap_err().code, Code::FrameCut);
    }
}
