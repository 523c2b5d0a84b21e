//! What a BLOB is, by its first bytes.

/// Magic numbers of formats that databases hold, longest reach first where one begins another.
const MAGIC: [(&[u8], usize, &str); 31] = [
    (b"\x89PNG\r\n\x1a\n", 0, "image/png"),
    (b"\xff\xd8\xff", 0, "image/jpeg"),
    (b"GIF87a", 0, "image/gif"),
    (b"GIF89a", 0, "image/gif"),
    (b"WEBP", 8, "image/webp"),
    (b"II*\0", 0, "image/tiff"),
    (b"MM\0*", 0, "image/tiff"),
    (b"BM", 0, "image/bmp"),
    (b"ftypheic", 4, "image/heic"),
    (b"ftypmif1", 4, "image/heif"),
    (b"ftypavif", 4, "image/avif"),
    (b"ftyp", 4, "video/mp4"),
    (b"WAVE", 8, "audio/wav"),
    (b"OggS", 0, "audio/ogg"),
    (b"ID3", 0, "audio/mpeg"),
    (b"#!AMR", 0, "audio/amr"),
    (b"%PDF-", 0, "application/pdf"),
    (b"bplist", 0, "binary property list"),
    (b"<?xml", 0, "xml"),
    (b"SQLite format 3\0", 0, "SQLite database"),
    (b"\x1f\x8b", 0, "gzip"),
    (b"PK\x03\x04", 0, "zip"),
    (b"\x28\xb5\x2f\xfd", 0, "zstd"),
    (b"\xfd7zXZ\0", 0, "xz"),
    (b"BZh", 0, "bzip2"),
    (b"\x04\x22\x4d\x18", 0, "lz4"),
    (b"7z\xbc\xaf\x27\x1c", 0, "7z"),
    (b"Obj\x01", 0, "avro"),
    (b"PAR1", 0, "parquet"),
    (b"\xac\xed\x00\x05", 0, "java serialized object"),
    (b"\x78\x9c", 0, "zlib"),
];

/// Fields of a protobuf message that are followed to tell it.
const PROTOBUF_FIELDS: usize = 64;

/// The name of what a BLOB is, as far as its bytes say it.
#[must_use]
pub fn kind(bytes: &[u8]) -> &'static str {
    for (magic, at, name) in MAGIC {
        if bytes.get(at..at.saturating_add(magic.len())) == Some(magic) && (name != "image/bmp" || bytes.len() > 54) {
            return name;
        }
    }
    match bytes.first() {
        None => "empty",
        Some(b'{' | b'[') if serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok() => "json",
        _ if bytes.iter().all(|b| *b == 0) => "zeros",
        _ if is_protobuf(bytes) => "protobuf-like",
        _ if bytes.iter().all(|b| (0x20..0x7f).contains(b) || matches!(b, 9 | 10 | 13)) => "text",
        _ => "unknown",
    }
}

/// Whether the bytes are fields of a protobuf message from the first to the last.
fn is_protobuf(bytes: &[u8]) -> bool {
    let number = |mut at: usize| -> Option<(u64, usize)> {
        let (mut value, mut shift) = (0_u64, 0_u32);
        loop {
            let byte = *bytes.get(at)?;
            at = at.saturating_add(1);
            value |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if byte < 0x80 {
                return Some((value, at));
            }
            shift = shift.saturating_add(7);
            if shift > 63 {
                return None;
            }
        }
    };
    let mut at = 0;
    let mut fields = 0_usize;
    while at < bytes.len() {
        let Some((tag, next)) = number(at) else { return false };
        if tag >> 3 == 0 || tag >> 3 > 1 << 20 {
            return false;
        }
        at = match tag & 7 {
            0 => match number(next) {
                Some((_, next)) => next,
                None => return false,
            },
            1 => next.saturating_add(8),
            5 => next.saturating_add(4),
            2 => match number(next) {
                Some((len, next)) => next.saturating_add(usize::try_from(len).unwrap_or(usize::MAX)),
                None => return false,
            },
            _ => return false,
        };
        fields = fields.saturating_add(1);
        if fields >= PROTOBUF_FIELDS {
            return at <= bytes.len();
        }
    }
    at == bytes.len() && fields >= 2
}

/// SHA-256 in hex.
#[must_use]
pub fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest as _;
    sha2::Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blobs_are_told_by_their_bytes() {
        assert_eq!(kind(b"\x89PNG\r\n\x1a\nrest"), "image/png");
        assert_eq!(kind(b"bplist00"), "binary property list");
        assert_eq!(kind(b"\x08\x96\x01\x12\x02hi"), "protobuf-like");
        assert_eq!(kind(b"{\"a\":1}"), "json");
        assert_eq!(kind(b""), "empty");
        assert_eq!(kind(&[0xff; 8]), "unknown");
        assert_eq!(sha256(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
