//! The rollback journal: headers, page records, their sampled checksum, the name of a super-journal at the end
//! (file format document, section 3).

use crate::bytes::{slice, u32_at};
use crate::finding::{Code, Defect};
use crate::ids::{PageNo, PageSize, idx, small, wide};

/// The eight bytes that begin a header that counts.
pub const JOURNAL_MAGIC: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
/// Length of the header's fields; the header itself fills a sector.
pub const JOURNAL_FIELDS_LEN: usize = 28;
/// Record count of a journal that was never synced: as many as the file holds.
pub const COUNT_FROM_SIZE: u32 = u32::MAX;

/// A journal header, as it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalHeader {
    /// Offset 0: [`JOURNAL_MAGIC`]; zeroed when the journal has been finished and kept.
    pub magic: [u8; 8],
    /// Offset 8: records that follow, [`COUNT_FROM_SIZE`] for all.
    pub count: u32,
    /// Offset 12: where the checksums of the records start from.
    pub nonce: u32,
    /// Offset 16: pages of the database before the transaction.
    pub pages_before: u32,
    /// Offset 20: sector size of the disk; headers are padded to it.
    pub sector_size: u32,
    /// Offset 24: page size.
    pub page_size_raw: u32,
}

impl JournalHeader {
    /// Reads the fields at `at`; nothing is judged.
    ///
    /// # Errors
    /// `journal-cut` when there are fewer than 28 bytes.
    pub fn read(b: &[u8], at: usize) -> Result<JournalHeader, Defect> {
        Self::fields(b, at)
            .ok_or_else(|| Defect::new(Code::JournalCut, small(at), wide(b.len().saturating_sub(at)), wide(JOURNAL_FIELDS_LEN)))
    }

    fn fields(b: &[u8], at: usize) -> Option<JournalHeader> {
        let b = slice(b, at, JOURNAL_FIELDS_LEN)?;
        Some(JournalHeader {
            magic: slice(b, 0, 8)?.try_into().ok()?,
            count: u32_at(b, 8)?,
            nonce: u32_at(b, 12)?,
            pages_before: u32_at(b, 16)?,
            sector_size: u32_at(b, 20)?,
            page_size_raw: u32_at(b, 24)?,
        })
    }

    /// Whether the magic bytes are right.
    #[must_use]
    pub fn magic_ok(&self) -> bool {
        self.magic == JOURNAL_MAGIC
    }

    /// The page size; `None` when the format does not allow it.
    #[must_use]
    pub fn page_size(&self) -> Option<PageSize> {
        PageSize::new(self.page_size_raw)
    }

    /// The sector size; `None` when SQLite would not take it (a power of two from 32 to 65536).
    #[must_use]
    pub fn sector(&self) -> Option<usize> {
        (self.sector_size.is_power_of_two() && (32..=65536).contains(&self.sector_size)).then(|| idx(self.sector_size))
    }

    /// The header as bytes, padded to its sector.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = self.magic.to_vec();
        for word in [self.count, self.nonce, self.pages_before, self.sector_size, self.page_size_raw] {
            out.extend_from_slice(&word.to_be_bytes());
        }
        out.resize(self.sector().unwrap_or(512).max(JOURNAL_FIELDS_LEN), 0);
        out
    }
}

/// A page as it was before the transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalRecord<'a> {
    /// Which page; 0 is none.
    pub page_raw: u32,
    /// Its image before the transaction.
    pub image: &'a [u8],
    /// The stored checksum.
    pub checksum: u32,
}

impl<'a> JournalRecord<'a> {
    /// Bytes of a record for a page size.
    #[must_use]
    pub fn len_for(size: PageSize) -> usize {
        size.len().saturating_add(8)
    }

    /// The record at `at`.
    ///
    /// # Errors
    /// `journal-cut` when its bytes are not all there.
    pub fn read(b: &'a [u8], at: usize, size: PageSize) -> Result<JournalRecord<'a>, Defect> {
        Self::fields(b, at, size)
            .ok_or_else(|| Defect::new(Code::JournalCut, small(at), wide(b.len().saturating_sub(at)), wide(Self::len_for(size))))
    }

    fn fields(b: &'a [u8], at: usize, size: PageSize) -> Option<JournalRecord<'a>> {
        let image_at = at.checked_add(4)?;
        Some(JournalRecord {
            page_raw: u32_at(b, at)?,
            image: slice(b, image_at, size.len())?,
            checksum: u32_at(b, image_at.checked_add(size.len())?)?,
        })
    }

    /// The page it holds; `None` for 0.
    #[must_use]
    pub fn page(&self) -> Option<PageNo> {
        PageNo::new(self.page_raw)
    }
}

/// The checksum of a record: the nonce and one byte of the image in two hundred. It proves little.
#[must_use]
pub fn record_checksum(nonce: u32, image: &[u8]) -> u32 {
    let mut sum = nonce;
    let mut at = image.len().saturating_sub(200);
    while at > 0 {
        sum = sum.wrapping_add(image.get(at).copied().map_or(0, u32::from));
        at = at.saturating_sub(200);
    }
    sum
}

/// Appends a record.
pub fn encode_record(out: &mut Vec<u8>, nonce: u32, page: PageNo, image: &[u8]) {
    out.extend_from_slice(&page.get().to_be_bytes());
    out.extend_from_slice(image);
    out.extend_from_slice(&record_checksum(nonce, image).to_be_bytes());
}

/// The name of the super-journal at the end of a journal, as raw bytes: a transaction over several attached databases.
#[must_use]
pub fn super_journal(b: &[u8]) -> Option<&[u8]> {
    let end = b.len();
    let tail = end.checked_sub(16)?;
    if slice(b, tail.checked_add(8)?, 8)? != JOURNAL_MAGIC {
        return None;
    }
    let len = idx(u32_at(b, tail)?);
    let name = slice(b, tail.checked_sub(len)?, len)?;
    let sum = name.iter().fold(0_u32, |s, &c| s.wrapping_add(u32::from(c)));
    // SQLite adds the bytes as signed characters; names outside ASCII make both sums differ.
    let signed = name.iter().fold(0_u32, |s, &c| s.wrapping_add(i32::from(i8::from_ne_bytes([c])).cast_unsigned()));
    let stored = u32_at(b, tail.checked_add(4)?)?;
    (len > 0 && (stored == sum || stored == signed)).then_some(name)
}

/// Appends the name of a super-journal, as SQLite writes it before the commit of an attached database.
pub fn encode_super_journal(out: &mut Vec<u8>, name: &[u8], lock_byte_page: PageNo) {
    out.extend_from_slice(&lock_byte_page.get().to_be_bytes());
    out.extend_from_slice(name);
    out.extend_from_slice(&small(name.len()).to_be_bytes());
    let sum = name.iter().fold(0_u32, |s, &c| s.wrapping_add(i32::from(i8::from_ne_bytes([c])).cast_unsigned()));
    out.extend_from_slice(&sum.to_be_bytes());
    out.extend_from_slice(&JOURNAL_MAGIC);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn journals_round_trip() {
        let size = PageSize::new(1024).unwrap();
        let header = JournalHeader { magic: JOURNAL_MAGIC, count: 1, nonce: 4711, pages_before: 9, sector_size: 512, page_size_raw: 1024 };
        let mut b = header.encode();
        assert_eq!(b.len(), 512);
        let image: Vec<u8> = (0..1024_u32).map(|i| u8::try_from(i % 251).unwrap()).collect();
        encode_record(&mut b, header.nonce, PageNo::new(3).unwrap(), &image);
        let record_at = 512;
        assert_eq!(JournalHeader::read(&b, 0).unwrap(), header);
        let record = JournalRecord::read(&b, record_at, size).unwrap();
        assert_eq!((record.page_raw, record.image), (3, &image[..]));
        assert_eq!(record.checksum, record_checksum(4711, &image));
        assert_eq!(JournalRecord::read(&b[..b.len() - 1], record_at, size).unwrap_err().code, Code::JournalCut);
        assert_eq!(super_journal(&b), None);
        encode_super_journal(&mut b, "/tmp/ä-mj12".as_bytes(), size.lock_byte_page());
        assert_eq!(super_journal(&b), Some("/tmp/ä-mj12".as_bytes()));
    }
}
