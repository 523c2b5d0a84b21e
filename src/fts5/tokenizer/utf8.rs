//! UTF-8 as FTS5's tokenizers read and write it: any bytes decode to something.

/// Reads the character at `at`, which must be inside the text, and moves behind it.
///
/// A lone continuation byte stands for its own value; a lead byte takes all continuation bytes that follow; overlong
/// forms of ASCII, surrogates, U+FFFE and U+FFFF become U+FFFD; numbers beyond Unicode are kept.
#[inline]
pub fn read(text: &[u8], at: &mut usize) -> u32 {
    let Some(&lead) = text.get(*at) else { return 0 };
    *at = at.saturating_add(1);
    if lead < 0xc0 {
        return u32::from(lead);
    }
    let mut c = u32::from(match lead {
        0xc0..=0xdf => lead & 0x1f,
        0xe0..=0xef => lead & 0x0f,
        0xf0..=0xf7 => lead & 0x07,
        0xf8..=0xfb => lead & 0x03,
        0xfc..=0xfd => lead & 0x01,
        _ => 0,
    });
    while let Some(&next) = text.get(*at) {
        if next & 0xc0 != 0x80 {
            break;
        }
        c = (c << 6).wrapping_add(u32::from(next & 0x3f));
        *at = at.saturating_add(1);
    }
    if c < 0x80 || c & 0xffff_f800 == 0xd800 || c & 0xffff_fffe == 0xfffe { 0xfffd } else { c }
}

/// The character in one to four bytes and how many; of larger numbers the low 21 bits.
#[inline]
pub fn encode(c: u32) -> ([u8; 4], usize) {
    let low = |c: u32| {
        let [.., b] = c.to_be_bytes();
        b
    };
    let tail = |shift: u32| 0x80 | (low(c >> shift) & 0x3f);
    match c {
        0..=0x7f => ([low(c), 0, 0, 0], 1),
        0x80..=0x7ff => ([0xc0 | (low(c >> 6) & 0x1f), tail(0), 0, 0], 2),
        0x800..=0xffff => ([0xe0 | (low(c >> 12) & 0x0f), tail(6), tail(0), 0], 3),
        _ => ([0xf0 | (low(c >> 18) & 0x07), tail(12), tail(6), tail(0)], 4),
    }
}

/// Appends the character as [`encode`] gives it.
#[inline]
pub fn write(out: &mut Vec<u8>, c: u32) {
    let (bytes, len) = encode(c);
    out.extend_from_slice(bytes.get(..len).unwrap_or_default());
}

/// The bytes of the first `count` characters of a token, `None` when it has fewer (FTS5's rule for prefix indexes).
#[inline]
pub fn prefix(token: &[u8], count: u32) -> Option<&[u8]> {
    let mut n = 0_usize;
    for i in 0..count {
        let lead = *token.get(n)?;
        n = n.checked_add(1)?;
        if lead >= 0xc0 {
            token.get(n)?;
            while token.get(n).is_some_and(|b| b & 0xc0 == 0x80) {
                n = n.checked_add(1)?;
                if n >= token.len() {
                    if i.checked_add(1) == Some(count) {
                        break;
                    }
                    return None;
                }
            }
        }
    }
    token.get(..n)
}
