//! The 100-byte database header (file format document, section 1.3).

use crate::bytes::{put_u16, put_u32, slice, u8_at, u16_at, u32_at};
use crate::finding::{Code, Defect};
use crate::format::Encoding;
use crate::ids::{PageSize, small, wide};

/// Length of the header in bytes.
pub const HEADER_LEN: usize = 100;

/// The magic string at offset 0.
pub const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// All fields of the header as they stand in the file, not judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatabaseHeader {
    /// Offset 0: the magic string.
    pub magic: [u8; 16],
    /// Offset 16: page size in bytes, 1 for 65536.
    pub page_size_raw: u16,
    /// Offset 18: file format write version, 1 rollback journal, 2 WAL.
    pub write_version: u8,
    /// Offset 19: file format read version.
    pub read_version: u8,
    /// Offset 20: reserved bytes at the end of each page.
    pub reserved: u8,
    /// Offsets 21 to 23: payload fractions, always 64, 32, 32.
    pub fractions: [u8; 3],
    /// Offset 24: file change counter.
    pub change_counter: u32,
    /// Offset 28: pages in the database, valid when `version_valid_for` equals `change_counter`.
    pub page_count: u32,
    /// Offset 32: first freelist trunk page.
    pub freelist_trunk: u32,
    /// Offset 36: pages on the freelist.
    pub freelist_count: u32,
    /// Offset 40: schema cookie.
    pub schema_cookie: u32,
    /// Offset 44: schema format, 1 to 4.
    pub schema_format: u32,
    /// Offset 48: suggested cache size in pages.
    pub default_cache_size: u32,
    /// Offset 52: largest root page in auto-vacuum databases, else 0.
    pub largest_root: u32,
    /// Offset 56: text encoding.
    pub encoding_raw: u32,
    /// Offset 60: user version.
    pub user_version: u32,
    /// Offset 64: not zero for incremental vacuum.
    pub incremental_vacuum: u32,
    /// Offset 68: application id.
    pub application_id: u32,
    /// Offset 72: 20 bytes reserved for expansion, zero.
    pub expansion: [u8; 20],
    /// Offset 92: change counter when `page_count` and `sqlite_version` were written.
    pub version_valid_for: u32,
    /// Offset 96: version number of the library that wrote last.
    pub sqlite_version: u32,
}

impl Default for DatabaseHeader {
    fn default() -> Self {
        DatabaseHeader {
            magic: *MAGIC,
            page_size_raw: 4096,
            write_version: 1,
            read_version: 1,
            reserved: 0,
            fractions: [64, 32, 32],
            change_counter: 1,
            page_count: 0,
            freelist_trunk: 0,
            freelist_count: 0,
            schema_cookie: 0,
            schema_format: 4,
            default_cache_size: 0,
            largest_root: 0,
            encoding_raw: 1,
            user_version: 0,
            incremental_vacuum: 0,
            application_id: 0,
            expansion: [0; 20],
            version_valid_for: 1,
            sqlite_version: 0,
        }
    }
}

impl DatabaseHeader {
    /// Reads the fields as they stand.
    ///
    /// # Errors
    /// `header-short` when there are fewer than 100 bytes.
    pub fn read(b: &[u8]) -> Result<DatabaseHeader, Defect> {
        Self::fields(b).ok_or(Defect::new(Code::HeaderShort, small(b.len()), wide(b.len()), wide(HEADER_LEN)))
    }

    fn fields(b: &[u8]) -> Option<DatabaseHeader> {
        Some(DatabaseHeader {
            magic: slice(b, 0, 16)?.try_into().ok()?,
            page_size_raw: u16_at(b, 16)?,
            write_version: u8_at(b, 18)?,
            read_version: u8_at(b, 19)?,
            reserved: u8_at(b, 20)?,
            fractions: slice(b, 21, 3)?.try_into().ok()?,
            change_counter: u32_at(b, 24)?,
            page_count: u32_at(b, 28)?,
            freelist_trunk: u32_at(b, 32)?,
            freelist_count: u32_at(b, 36)?,
            schema_cookie: u32_at(b, 40)?,
            schema_format: u32_at(b, 44)?,
            default_cache_size: u32_at(b, 48)?,
            largest_root: u32_at(b, 52)?,
            encoding_raw: u32_at(b, 56)?,
            user_version: u32_at(b, 60)?,
            incremental_vacuum: u32_at(b, 64)?,
            application_id: u32_at(b, 68)?,
            expansion: slice(b, 72, 20)?.try_into().ok()?,
            version_valid_for: u32_at(b, 92)?,
            sqlite_version: u32_at(b, 96)?,
        })
    }

    /// The header as bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; HEADER_LEN] {
        let mut out = [0_u8; HEADER_LEN];
        let b = &mut out[..];
        for (place, byte) in b.iter_mut().zip(self.magic) {
            *place = byte;
        }
        put_u16(b, 16, self.page_size_raw);
        let [f0, f1, f2] = self.fractions;
        for (place, byte) in b.iter_mut().skip(18).zip([self.write_version, self.read_version, self.reserved, f0, f1, f2]) {
            *place = byte;
        }
        let words = [
            (24, self.change_counter),
            (28, self.page_count),
            (32, self.freelist_trunk),
            (36, self.freelist_count),
            (40, self.schema_cookie),
            (44, self.schema_format),
            (48, self.default_cache_size),
            (52, self.largest_root),
            (56, self.encoding_raw),
            (60, self.user_version),
            (64, self.incremental_vacuum),
            (68, self.application_id),
            (92, self.version_valid_for),
            (96, self.sqlite_version),
        ];
        for (at, word) in words {
            put_u32(b, at, word);
        }
        for (place, byte) in b.iter_mut().skip(72).zip(self.expansion) {
            *place = byte;
        }
        out
    }

    /// The page size, `None` when the field holds none that the format allows.
    #[must_use]
    pub fn page_size(&self) -> Option<PageSize> {
        match self.page_size_raw {
            1 => PageSize::new(65536),
            n => PageSize::new(u32::from(n)),
        }
    }

    /// How the field at offset 16 says `size`.
    #[must_use]
    pub fn page_size_field(size: PageSize) -> u16 {
        u16::try_from(size.get()).unwrap_or(1)
    }

    /// The text encoding, `None` when the field holds none. An empty database may hold 0, which means UTF-8.
    #[must_use]
    pub fn encoding(&self) -> Option<Encoding> {
        if self.encoding_raw == 0 && self.schema_cookie == 0 { Some(Encoding::Utf8) } else { Encoding::from_number(self.encoding_raw) }
    }

    /// Whether the magic string is right.
    #[must_use]
    pub fn magic_ok(&self) -> bool {
        &self.magic == MAGIC
    }

    /// Whether the page count of the header is current (section 1.3.8).
    #[must_use]
    pub fn page_count_is_current(&self) -> bool {
        self.page_count != 0 && self.change_counter == self.version_valid_for
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_round_trips() {
        let mut bytes = [0_u8; 100];
        for (i, b) in bytes.iter_mut().enumerate() {
            *b = u8::try_from(i * 7 % 251).unwrap();
        }
        let header = DatabaseHeader::read(&bytes).unwrap();
        assert_eq!(header.encode(), bytes);
        assert_eq!(DatabaseHeader::read(&bytes[..99]).unwrap_err().code, Code::HeaderShort);
    }
}
