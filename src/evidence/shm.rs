//! The shared memory of a log (`-shm`): how far SQLite had read the log, how far it was checkpointed, and which page each frame
//! holds (write-ahead log format document, section 2).

use super::wal::WalIndex;
use crate::bytes::u32_le_at;
use crate::format::wal::ShmHeader;
use crate::ids::{FrameNo, idx};

/// Bytes of a block of the index.
const BLOCK: usize = 32_768;
/// Frames that the first block names, which begins with the headers.
const FIRST: u32 = 4062;
/// Frames that every other block names.
const OTHERS: u32 = 4096;
/// Where the headers end and the page numbers of the first block begin.
const HEADERS: usize = 136;

/// The shared memory. Borrows its bytes; they are those of a little-endian machine.
#[derive(Debug, Clone, Copy)]
pub struct Shm<'a> {
    bytes: &'a [u8],
}

/// What the shared memory says of a log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Account {
    /// The last frame that SQLite had.
    pub max_frame: u32,
    /// Pages of the database at that frame.
    pub page_count: u32,
    /// Frames that a checkpoint had brought into the main file.
    pub backfill: u32,
    /// Whether both copies of the header are the same.
    pub copies_agree: bool,
    /// Whether its salts are those of the log.
    pub same_generation: bool,
    /// Whether the log holds its last frame, with the checksum it names.
    pub reaches_head: bool,
    /// Frames whose page is another than the log says.
    pub other_pages: u32,
    /// The first of them.
    pub first_other: Option<u32>,
}

impl<'a> Shm<'a> {
    /// The shared memory in these bytes; `None` when they hold no header of it.
    #[must_use]
    pub fn read(bytes: &'a [u8]) -> Option<Shm<'a>> {
        let shm = Shm { bytes };
        shm.header().map(|_| shm)
    }

    /// The first copy of the header, or the second where the first is none.
    #[must_use]
    pub fn header(&self) -> Option<ShmHeader> {
        ShmHeader::read(self.bytes, 0).or_else(|| ShmHeader::read(self.bytes, 48))
    }

    /// Frames that a checkpoint had brought into the main file.
    #[must_use]
    pub fn backfill(&self) -> u32 {
        u32_le_at(self.bytes, 96).unwrap_or(0)
    }

    /// The page that a frame held when the shared memory was captured; `None` when it does not know the frame.
    #[must_use]
    pub fn page_of(&self, frame: FrameNo) -> Option<u32> {
        if frame.0 > self.header()?.max_frame {
            return None;
        }
        let i = frame.0.checked_sub(1)?;
        let at = match i.checked_sub(FIRST) {
            None => HEADERS.checked_add(idx(i).checked_mul(4)?)?,
            Some(rest) => {
                let block = idx(rest.checked_div(OTHERS)?).checked_add(1)?;
                let place = idx(rest.checked_rem(OTHERS)?);
                block.checked_mul(BLOCK)?.checked_add(place.checked_mul(4)?)?
            }
        };
        u32_le_at(self.bytes, at).filter(|page| *page != 0)
    }

    /// What it says of a log, compared with the log.
    #[must_use]
    pub fn account(&self, wal: &WalIndex<'_>) -> Option<Account> {
        let header = self.header()?;
        let salts: Option<[u8; 8]> = wal.bytes().get(16..24).and_then(|s| s.try_into().ok());
        let head = wal.frame(FrameNo(header.max_frame));
        let mut out = Account {
            max_frame: header.max_frame,
            page_count: header.page_count,
            backfill: self.backfill(),
            copies_agree: ShmHeader::read(self.bytes, 0) == ShmHeader::read(self.bytes, 48),
            same_generation: salts == Some(header.salts),
            reaches_head: header.max_frame == 0 || head.is_some_and(|f| f.checksum == header.frame_checksum),
            ..Account::default()
        };
        for i in 0..wal.frames.len() {
            let frame = FrameNo(crate::ids::small(i).saturating_add(1));
            let Some(theirs) = self.page_of(frame) else { break };
            if wal.frames.get(i).is_some_and(|f| f.page != theirs) {
                out.other_pages = out.other_pages.saturating_add(1);
                out.first_other = out.first_other.or(Some(frame.0));
            }
        }
        Some(out)
    }
}
