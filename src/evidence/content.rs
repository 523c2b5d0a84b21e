//! What a file is that is no database: said in words, so that nobody repairs a pointer file or an encrypted one.
//!
//! A file with traces of database pages is never refused: ask [`looks_like_pages`] first.

use std::fmt;

use super::page_fit;
use super::page_one::grade;
use crate::format::header::MAGIC;
use crate::ids::wide;

/// What the bytes are.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Content {
    /// No byte.
    Empty,
    /// Nothing but NUL bytes.
    AllZero {
        /// How many.
        len: u64,
    },
    /// A git-lfs pointer: the database was never downloaded.
    LfsPointer {
        /// The object id that it names, with its hash kind.
        oid: String,
        /// The size that it names, in bytes.
        size: String,
    },
    /// SQL statements.
    SqlText,
    /// Other text, and how it begins.
    Text {
        /// Its first line, at most 60 characters.
        start: String,
    },
    /// Another known format.
    Format(&'static str),
    /// The magic string of SQLite and nothing behind it that a database has.
    MagicOnly,
    /// Bytes without structure, a whole number of pages long: an encrypted database looks like this.
    Encrypted {
        /// The first 16 bytes, which SQLCipher uses as salt.
        salt: [u8; 16],
    },
    /// Bytes without structure.
    Noise,
    /// Nothing that is known here.
    Unknown {
        /// The first bytes, at most 16.
        start: Vec<u8>,
    },
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hex = |f: &mut fmt::Formatter<'_>, bytes: &[u8]| bytes.iter().try_for_each(|b| write!(f, "{b:02x}"));
        match self {
            Content::Empty => f.write_str("the file is empty"),
            Content::AllZero { len } => write!(f, "zero-filled: all {len} bytes are NUL; nothing of a database is left in it"),
            Content::LfsPointer { oid, size } => {
                write!(f, "a git-lfs pointer, not the database: it stands for {size} bytes with {oid}; fetch them with `git lfs pull`")
            }
            Content::SqlText => f.write_str("SQL text, not a database: feed it to a new database with `sqlite3 NEW < FILE`"),
            Content::Text { start } => write!(f, "text, not a database; it begins with {start:?}"),
            Content::Format(name) => write!(f, "{name}, not a database"),
            Content::MagicOnly => {
                f.write_str("it begins with the magic string of SQLite, but neither the header behind it nor any page is a database's")
            }
            Content::Encrypted { salt } => {
                f.write_str("it looks encrypted: no structure, a whole number of pages; salt (first 16 bytes) ")?;
                hex(f, salt)?;
                f.write_str("; decrypt it first")
            }
            Content::Noise => f.write_str("bytes without structure: compressed, encrypted or random"),
            Content::Unknown { start } => {
                f.write_str("no database, and no format known here; it begins with ")?;
                hex(f, start)
            }
        }
    }
}

/// Formats by their first bytes.
const FORMATS: &[(&[u8], &str)] = &[
    (b"\x1f\x8b", "gzip-compressed data"),
    (b"PK\x03\x04", "a zip archive"),
    (b"PK\x05\x06", "an empty zip archive"),
    (b"\x28\xb5\x2f\xfd", "zstd-compressed data"),
    (b"\xfd7zXZ\0", "xz-compressed data"),
    (b"BZh", "bzip2-compressed data"),
    (b"\x04\x22\x4d\x18", "lz4-compressed data"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a rar archive"),
    (b"%PDF-", "a PDF document"),
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"\x7fELF", "an ELF binary"),
    (b"MZ", "a Windows program"),
    (b"\xca\xfe\xba\xbe", "a Java class or a Mach-O binary"),
    (b"\xcf\xfa\xed\xfe", "a Mach-O binary"),
    (b"PAR1", "a Parquet file"),
    (b"** This file contains an SQLite 2", "a database of SQLite 2"),
    (b"SQLite format 3\0\0\0\0\0\0\0\0\0", "a header of SQLite with nothing behind it"),
    (b"\x37\x7f\x06\x82", "a WAL (write-ahead log) of SQLite"),
    (b"\x37\x7f\x06\x83", "a WAL (write-ahead log) of SQLite"),
    (b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7", "a rollback journal of SQLite"),
    (b"\0\x01\0\0Standard Jet DB", "a Microsoft Access database"),
    (b"\0\x01\0\0Standard ACE DB", "a Microsoft Access database"),
    (b"LEVELDB", "a LevelDB file"),
    (b"DUCK", "a file of DuckDB"),
];

/// What the bytes are, supposing that they are no database.
#[must_use]
pub fn identify(bytes: &[u8]) -> Content {
    if bytes.is_empty() {
        return Content::Empty;
    }
    if bytes.iter().all(|&b| b == 0) {
        return Content::AllZero { len: wide(bytes.len()) };
    }
    if let Some(pointer) = lfs_pointer(bytes) {
        return pointer;
    }
    if let Some((_, name)) = FORMATS.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        return Content::Format(name);
    }
    if bytes.get(8..12) == Some(b"DUCK") {
        return Content::Format("a file of DuckDB");
    }
    if bytes.get(257..262) == Some(b"ustar") {
        return Content::Format("a tar archive");
    }
    if bytes.starts_with(MAGIC) {
        return Content::MagicOnly;
    }
    if let Some(text) = text_of(bytes) {
        return text;
    }
    if is_noise(bytes) {
        let whole = bytes.len().checked_rem(512) == Some(0);
        return match bytes.first_chunk::<16>() {
            Some(salt) if whole => Content::Encrypted { salt: *salt },
            _ => Content::Noise,
        };
    }
    Content::Unknown { start: bytes.get(..16).unwrap_or(bytes).to_vec() }
}

/// Whether the bytes hold traces of a database: a header, pages that close, or rows of a schema.
#[must_use]
pub fn looks_like_pages(bytes: &[u8]) -> bool {
    if grade(bytes) >= 5 || page_fit::any_page(bytes) {
        return true;
    }
    // Schema rows stand between bytes that no text has.
    text_of(bytes).is_none() && super::extent::encoding_votes(bytes.get(..16 << 20).unwrap_or(bytes)).iter().any(|&(_, n)| n > 0)
}

fn lfs_pointer(bytes: &[u8]) -> Option<Content> {
    let text = std::str::from_utf8(bytes.get(..1024).unwrap_or(bytes)).ok()?;
    if !text.starts_with("version https://git-lfs.github.com/spec/") && !text.starts_with("version https://hawser.github.com/spec/") {
        return None;
    }
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map_or("unknown", str::trim).to_owned();
    Some(Content::LfsPointer { oid: field("oid "), size: field("size ") })
}

/// Text of any usual encoding. The first 64 KiB decide.
fn text_of(bytes: &[u8]) -> Option<Content> {
    let part = bytes.get(..64 << 10).unwrap_or(bytes);
    let text = match part {
        [0xff, 0xfe, rest @ ..] => {
            let (pairs, _) = rest.as_chunks::<2>();
            String::from_utf16(&pairs.iter().map(|&p| u16::from_le_bytes(p)).collect::<Vec<_>>()).ok()?
        }
        [0xfe, 0xff, rest @ ..] => {
            let (pairs, _) = rest.as_chunks::<2>();
            String::from_utf16(&pairs.iter().map(|&p| u16::from_be_bytes(p)).collect::<Vec<_>>()).ok()?
        }
        _ => match std::str::from_utf8(part) {
            Ok(text) => text.to_owned(),
            // A character may be cut at the end of the part.
            Err(e) if e.error_len().is_none() && part.len() < bytes.len() => {
                String::from_utf8_lossy(part.get(..e.valid_up_to()).unwrap_or_default()).into_owned()
            }
            Err(_) => return None,
        },
    };
    let control = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t' | '\u{c}' | '\u{1b}');
    if text.chars().any(control) {
        return None;
    }
    let trimmed = text.trim_start_matches('\u{feff}').trim_start();
    let upper: String = trimmed.chars().take(4000).collect::<String>().to_uppercase();
    let starts = ["PRAGMA ", "BEGIN", "CREATE ", "INSERT ", "--", "/*", "DROP ", "SELECT ", "/****** CORRUPTION ERROR"];
    let holds = ["CREATE TABLE", "INSERT INTO", "INSERT OR"];
    if starts.iter().any(|s| upper.starts_with(s)) && holds.iter().any(|h| upper.contains(h)) {
        return Some(Content::SqlText);
    }
    let start: String = trimmed.lines().next().unwrap_or_default().chars().take(60).collect();
    Some(Content::Text { start })
}

/// Whether byte values are spread as evenly as by chance: at least 4 KiB, and no value three times as frequent as it should be.
fn is_noise(bytes: &[u8]) -> bool {
    let part = bytes.get(..1 << 20).unwrap_or(bytes);
    if part.len() < 4096 {
        return false;
    }
    let mut counts = [0_u64; 256];
    for &b in part {
        if let Some(n) = counts.get_mut(usize::from(b)) {
            *n = n.saturating_add(1);
        }
    }
    // Chi-square against an even spread: 255 expected for noise, many thousands for anything with structure.
    let n = wide(part.len());
    let squares = counts.iter().fold(0_u64, |sum, &c| sum.saturating_add(c.saturating_mul(c)));
    let chi = squares.saturating_mul(256).checked_div(n).unwrap_or(u64::MAX).saturating_sub(n);
    chi < 600
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(len: usize) -> Vec<u8> {
        let mut x = 1_u64;
        std::iter::repeat_with(|| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            x.to_be_bytes()[0]
        })
        .take(len)
        .collect()
    }

    #[test]
    fn files_are_named() {
        assert_eq!(identify(b""), Content::Empty);
        assert_eq!(identify(&[0; 4096]), Content::AllZero { len: 4096 });
        let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
        assert_eq!(identify(pointer), Content::LfsPointer { oid: "sha256:4d7a".into(), size: "12345".into() });
        assert!(identify(pointer).to_string().contains("12345 bytes with sha256:4d7a"));
        assert_eq!(identify(b"PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\nCREATE TABLE t(a);\n"), Content::SqlText);
        assert!(matches!(identify("caf\u{e9} and more\nx".as_bytes()), Content::Text { start } if start.starts_with("caf")));
        assert_eq!(identify(b"\x1f\x8b\x08abc"), Content::Format("gzip-compressed data"));
        assert!(matches!(identify(&noise(65536)), Content::Encrypted { .. }));
        assert_eq!(identify(&noise(65537)), Content::Noise);
        let mut magic = MAGIC.to_vec();
        magic.extend([0xde, 0xad, 0xbe, 0xef].repeat(200));
        assert_eq!(identify(&magic), Content::MagicOnly);
        assert!(matches!(identify(&[1, 0, 3]), Content::Unknown { .. }));
    }

    #[test]
    fn traces_of_pages_are_seen() {
        assert!(!looks_like_pages(&noise(200_000)));
        assert!(!looks_like_pages(b"CREATE TABLE t(a);\n"));
        assert!(!looks_like_pages(&[0; 8192]));
        let mut leaf = vec![0_u8; 4096];
        leaf[1024..1032].copy_from_slice(&[13, 0, 0, 0, 1, 1, 0xfc, 0]);
        leaf[1032..1034].copy_from_slice(&[1, 0xfc]);
        leaf[1024 + 508..1536].copy_from_slice(&[2, 1, 1, 0]);
        assert!(looks_like_pages(&leaf));
    }
}
