//! How far a file reaches, by its header.

use crate::bytes::u32_at;
use crate::error::Result;
use crate::format::DatabaseHeader;
use crate::format::journal::{COUNT_FROM_SIZE, JournalHeader, JournalRecord, record_checksum};
use crate::format::wal::{FRAME_HEADER_LEN, WAL_HEADER_LEN, WalHeader};
use crate::ids::{idx, wide};
use crate::scan::finds::{Find, Kind};
use crate::scan::image::Image;

/// Generations of a log that stand behind each other in one file.
const GENERATIONS: u32 = 10_000;
/// Frames or records that are followed.
const FOLLOWED: u64 = 1 << 22;

/// A database, if the header is one: the name alone stands in every program that links SQLite.
pub(super) fn database(bytes: &[u8], offset: u64, len: u64) -> Option<Find> {
    let header = DatabaseHeader::read(bytes).ok()?;
    let size = header.page_size()?;
    let sane = header.fractions == [64, 32, 32]
        && (1..=4).contains(&header.read_version)
        && (1..=4).contains(&header.write_version)
        && header.schema_format <= 4
        && header.encoding_raw <= 3
        && matches!(bytes.get(100), Some(5 | 13));
    if !sane {
        return None;
    }
    let declared = u64::from(header.page_count.max(1)).saturating_mul(u64::from(size.get()));
    let there = declared.min(len.saturating_sub(offset));
    let words = match header.write_version {
        2 => format!("{} pages, log mode", header.page_count),
        _ => format!("{} pages", header.page_count),
    };
    Some(Find { kind: Kind::Database, offset, bytes: there, declared, page_size: size.get(), words })
}

/// A log whose header sum is right, with all frames of its generation and of earlier ones behind it.
pub(super) fn log(image: &mut Image, bytes: &[u8], offset: u64) -> Result<Option<Find>> {
    let Some(header) = WalHeader::read(bytes).ok().filter(WalHeader::is_accepted) else { return Ok(None) };
    let Some(size) = header.page_size() else { return Ok(None) };
    let step = wide(FRAME_HEADER_LEN).saturating_add(u64::from(size.get()));
    let mut at = offset.saturating_add(wide(WAL_HEADER_LEN));
    let (mut frames, mut current, mut commits) = (0_u64, 0_u64, 0_u64);
    let mut head = Vec::new();
    while at.saturating_add(step) <= image.len && frames < FOLLOWED {
        image.read(at, FRAME_HEADER_LEN, &mut head)?;
        let (Some(page), Some(commit), Some(salt1), Some(salt2)) =
            (u32_at(&head, 0), u32_at(&head, 4), u32_at(&head, 8), u32_at(&head, 12))
        else {
            break;
        };
        let own = (salt1, salt2) == (header.salt1, header.salt2);
        let older = header.salt1.wrapping_sub(salt1) <= GENERATIONS && salt1 != header.salt1;
        if page == 0 || !(own || older) {
            break;
        }
        frames += 1;
        current += u64::from(own);
        commits += u64::from(own && commit != 0);
        at = at.saturating_add(step);
    }
    let total = at.saturating_sub(offset);
    let words = format!("{frames} frames, {current} of the last generation, {commits} commits");
    Ok(Some(Find { kind: Kind::Log, offset, bytes: total, declared: total, page_size: size.get(), words }))
}

/// A journal with all records whose sums are right.
pub(super) fn journal(image: &mut Image, bytes: &[u8], offset: u64) -> Result<Option<Find>> {
    let Ok(first) = JournalHeader::read(bytes, 0) else { return Ok(None) };
    let (Some(sector), Some(size)) = (first.sector(), first.page_size()) else { return Ok(None) };
    if !first.magic_ok() || first.pages_before == 0 {
        return Ok(None);
    }
    let step = wide(JournalRecord::len_for(size));
    let mut at = offset;
    let (mut records, mut declared) = (0_u64, 0_u64);
    let mut buffer = Vec::new();
    // Segments, each with a header of its own on the next sector.
    'segments: while at.saturating_add(wide(sector)) <= image.len && records < FOLLOWED {
        image.read(at, sector, &mut buffer)?;
        let Some(header) = JournalHeader::read(&buffer, 0).ok().filter(JournalHeader::magic_ok) else { break };
        at = at.saturating_add(wide(sector));
        let open = header.count == COUNT_FROM_SIZE || header.count == 0;
        if !open {
            declared = declared.saturating_add(u64::from(header.count));
        }
        let mut left = if open { u64::MAX } else { u64::from(header.count) };
        while left > 0 && at.saturating_add(step) <= image.len && records < FOLLOWED {
            image.read(at, idx(size.get()).saturating_add(8), &mut buffer)?;
            let Ok(record) = JournalRecord::read(&buffer, 0, size) else { break 'segments };
            if record.page_raw == 0 || record.checksum != record_checksum(header.nonce, record.image) {
                break 'segments;
            }
            records += 1;
            left = left.saturating_sub(1);
            at = at.saturating_add(step);
        }
        let over = at.saturating_sub(offset).checked_rem(wide(sector)).unwrap_or(0);
        if over > 0 {
            at = at.saturating_add(wide(sector).saturating_sub(over));
        }
    }
    let there = at.saturating_sub(offset).min(image.len.saturating_sub(offset));
    let missing = declared.saturating_sub(records).saturating_mul(step);
    let words = format!("{records} page images, the database had {} pages", first.pages_before);
    Ok(Some(Find { kind: Kind::Journal, offset, bytes: there, declared: there.saturating_add(missing), page_size: size.get(), words }))
}
