//! A rollback journal by SQLite's own rules: whether it is hot, and which page images it gives back.

use std::collections::BTreeSet;

use crate::finding::{Code, Defect, Findings, Origin, Site};
use crate::format::journal::{COUNT_FROM_SIZE, JournalHeader, JournalRecord, record_checksum, super_journal};
use crate::ids::{PageNo, PageSize, idx, small, wide};

/// What SQLite would do with the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JournalState {
    /// No byte in it.
    Empty,
    /// Its first byte is zero: the transaction was finished and the file kept.
    Finished,
    /// It has no header that counts: nothing is rolled back.
    HeaderBad,
    /// The main file is empty: SQLite would delete the journal.
    MainEmpty,
    /// It names a super-journal, and nothing says whether that is there.
    Undecided,
    /// It is rolled back.
    Hot,
}

/// A record of the journal without its image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordInfo {
    /// Which page.
    pub page: u32,
    /// Where the record starts in the file.
    pub at: usize,
    /// Whether SQLite's rollback writes this image: in order, checksum right, the first of its page, not above the old end.
    pub counts: bool,
}

/// The index of a journal. Borrows its bytes.
#[derive(Debug, Clone)]
pub struct JournalIndex<'a> {
    bytes: &'a [u8],
    /// The first header, as it stands.
    pub header: Option<JournalHeader>,
    /// What SQLite would do with it.
    pub state: JournalState,
    /// Page size of the images.
    pub page_size: PageSize,
    /// Pages of the database before the transaction; 0 when no header says it.
    pub pages_before: u32,
    /// All records, in file order, the first being record 1.
    pub records: Vec<RecordInfo>,
    /// Name of the super-journal, raw bytes.
    pub super_name: Option<&'a [u8]>,
}

impl<'a> JournalIndex<'a> {
    /// Reads all records. `hint` is the page size of the main file, for journals whose header is gone; `super_present` settles
    /// a rollback that depends on a super-journal. `None` when the journal is empty or no page size can be made out.
    #[must_use]
    pub fn read(
        bytes: &'a [u8],
        hint: Option<PageSize>,
        main_is_empty: bool,
        super_present: Option<bool>,
        log: &mut Findings,
    ) -> Option<JournalIndex<'a>> {
        let first = *bytes.first()?;
        let header = JournalHeader::read(bytes, 0).ok();
        let good = header.filter(|h| h.magic_ok() && h.sector().is_some() && (h.page_size().is_some() || h.page_size_raw == 0));
        let super_name = super_journal(bytes);
        let state = match (first, good) {
            (0, _) => JournalState::Finished,
            (_, None) => JournalState::HeaderBad,
            _ if main_is_empty => JournalState::MainEmpty,
            _ if super_name.is_some() && super_present.is_none() => JournalState::Undecided,
            _ if super_name.is_some() && super_present == Some(false) => JournalState::Undecided,
            _ => JournalState::Hot,
        };
        let named = good.and_then(|h| h.page_size()).or(hint);
        let mut index = JournalIndex {
            bytes,
            header,
            state,
            page_size: named.or(PageSize::new(4096))?,
            pages_before: good.map_or(0, |h| h.pages_before),
            records: Vec::new(),
            super_name,
        };
        match good {
            Some(h) => index.playback(h, log),
            None => index.search(named)?,
        }
        index.note(first, super_present, log);
        Some(index)
    }

    /// Goes over headers and records exactly as SQLite's rollback does.
    fn playback(&mut self, first: JournalHeader, log: &mut Findings) {
        let sector = first.sector().unwrap_or(512);
        let record_len = JournalRecord::len_for(self.page_size);
        let end = self.bytes.len();
        let lock_page = self.page_size.lock_byte_page().get();
        let mut done = BTreeSet::new();
        let mut header_at = 0_usize;
        let mut still_counts = true;
        while header_at.saturating_add(sector) <= end {
            let Ok(header) = JournalHeader::read(self.bytes, header_at) else { break };
            if !header.magic_ok() {
                if !is_unsynced(&header, self.page_size, sector) {
                    break;
                }
                // SQLite ends here; the images behind it are history.
                still_counts = false;
            }
            let mut at = header_at.saturating_add(sector);
            let room = end.saturating_sub(at).checked_div(record_len).unwrap_or(0);
            let declared = if header.count == COUNT_FROM_SIZE { room } else { idx(header.count) };
            if declared > room {
                log.add(
                    Defect::new(Code::JournalCountDiffers, small(header_at.saturating_add(8)), wide(declared), wide(room)),
                    site(self.records.len()),
                );
                let rest = end.saturating_sub(at).checked_rem(record_len).unwrap_or(0);
                if rest > 0 {
                    let cut = small(end.saturating_sub(rest));
                    log.add(
                        Defect::new(Code::JournalCut, cut, wide(rest), wide(record_len)),
                        site(self.records.len().saturating_add(room)),
                    );
                }
            }
            // A count of zero: the records were written but never synced. SQLite ends here; what follows is history.
            still_counts = still_counts && declared > 0;
            let read = if declared == 0 { room } else { declared.min(room) };
            for i in 0..read {
                let Ok(record) = JournalRecord::read(self.bytes, at, self.page_size) else { break };
                let counted = i < declared;
                let sum_ok = record.checksum == record_checksum(header.nonce, record.image);
                let ends = record.page_raw == 0 || record.page_raw == lock_page;
                if (ends || !sum_ok) && !counted {
                    break;
                }
                if ends || !sum_ok {
                    if still_counts && !ends {
                        log.add(
                            Defect::new(Code::JournalChecksum, 0, wide(self.records.len()).saturating_add(1), wide(self.records.len())),
                            site(self.records.len()),
                        );
                    }
                    still_counts = false;
                    if ends {
                        break;
                    }
                }
                let counts = still_counts && counted && record.page_raw <= self.pages_before && done.insert(record.page_raw);
                self.records.push(RecordInfo { page: record.page_raw, at, counts });
                at = at.saturating_add(record_len);
            }
            if declared > room && still_counts {
                break;
            }
            let next = at.checked_next_multiple_of(sector).unwrap_or(end);
            if next <= header_at {
                break;
            }
            header_at = next;
        }
    }

    /// Searches a journal without a header for its records: sector size and page size are those under which the records
    /// agree on one nonce, for the checksum less the sampled bytes is the same number for all records of a run.
    fn search(&mut self, named: Option<PageSize>) -> Option<()> {
        let sizes: Vec<PageSize> = named.into_iter().chain(PageSize::ALL.into_iter().filter_map(PageSize::new)).collect();
        let mut best: Vec<RecordInfo> = Vec::new();
        let mut best_size = self.page_size;
        for size in sizes {
            for sector in [512_usize, 4096, 1024, 2048, 8192, 16384, 32768, 65536, 256, 128, 64, 32] {
                let found = self.runs(size, sector);
                if found.len() > best.len() {
                    (best, best_size) = (found, size);
                }
            }
        }
        self.page_size = best_size;
        self.records = best;
        (!self.records.is_empty()).then_some(())
    }

    fn runs(&self, size: PageSize, sector: usize) -> Vec<RecordInfo> {
        let len = JournalRecord::len_for(size);
        let nonce = |r: &JournalRecord<'_>| r.checksum.wrapping_sub(record_checksum(0, r.image));
        let mut out = Vec::new();
        let mut at = sector;
        let mut expected: Option<u32> = None;
        while let Ok(record) = JournalRecord::read(self.bytes, at, size) {
            let header_at = record.page_raw == 0xd9d5_05f9;
            let n = nonce(&record);
            let kin = expected.is_none_or(|e| e == n);
            if record.page_raw == 0 || header_at || !kin || !plausible(&record, size) {
                // A later header, sector-aligned, begins a new run with a nonce of its own.
                let next = at.checked_next_multiple_of(sector).unwrap_or(at);
                match JournalHeader::read(self.bytes, next) {
                    Ok(h) if expected.is_some() && (h.magic_ok() || is_unsynced(&h, size, sector)) => {
                        at = next.saturating_add(sector);
                        expected = Some(h.nonce);
                        continue;
                    }
                    _ => break,
                }
            }
            expected = Some(n);
            out.push(RecordInfo { page: record.page_raw, at, counts: false });
            at = at.saturating_add(len);
        }
        out
    }

    fn note(&self, first: u8, super_present: Option<bool>, log: &mut Findings) {
        let place = site(0);
        let images = wide(self.records.len());
        let counting = wide(self.records.iter().filter(|r| r.counts).count());
        match self.state {
            JournalState::Empty | JournalState::Finished => {}
            JournalState::HeaderBad => log.add(Defect::new(Code::JournalHeaderBad, 0, u64::from(first), 0), place),
            // The journal of the first transaction of a new database holds nothing.
            JournalState::MainEmpty if images == 0 => {}
            JournalState::MainEmpty => log.add(Defect::new(Code::JournalWithoutMain, 0, images, 0), place),
            JournalState::Undecided if super_present.is_some() => {}
            JournalState::Undecided => {
                let name = String::from_utf8_lossy(self.super_name.unwrap_or_default()).into_owned();
                log.add_with(Defect::new(Code::SuperJournalAbsent, 0, counting, 0), place, name);
            }
            JournalState::Hot => log.add(Defect::new(Code::JournalHot, 0, counting, u64::from(self.pages_before)), place),
        }
    }

    /// The image of a record.
    #[must_use]
    pub fn image(&self, record: &RecordInfo) -> Option<&'a [u8]> {
        JournalRecord::read(self.bytes, record.at, self.page_size).ok().map(|r| r.image)
    }

    /// The image of a page that a rollback would write, with its record number from 1.
    #[must_use]
    pub fn before_image(&self, page: PageNo) -> Option<(u32, &'a [u8])> {
        let i = self.records.iter().position(|r| r.counts && r.page == page.get())?;
        Some((small(i).saturating_add(1), self.image(self.records.get(i)?)?))
    }

    /// The first image of a page in the journal, whether a rollback would write it or not.
    #[must_use]
    pub fn any_image(&self, page: PageNo) -> Option<(u32, &'a [u8])> {
        let i = self.records.iter().position(|r| r.page == page.get())?;
        Some((small(i).saturating_add(1), self.image(self.records.get(i)?)?))
    }
}

/// A header whose records were not synced yet: magic and count are still zero, the other fields stand.
fn is_unsynced(h: &JournalHeader, size: PageSize, sector: usize) -> bool {
    h.magic == [0; 8] && h.count == 0 && h.page_size() == Some(size) && h.sector() == Some(sector)
}

/// Whether a record without a header to prove it looks like one: its image is a b-tree page, or its page number is small.
fn plausible(record: &JournalRecord<'_>, size: PageSize) -> bool {
    let header_at = if record.page_raw == 1 { 100 } else { 0 };
    super::page_fit::shape(record.image, header_at, size.get()).is_some() || record.page_raw < 1 << 24
}

fn site(record: usize) -> Site {
    Site { origin: Origin::Journal { record: small(record).saturating_add(1) }, ..Site::default() }
}
