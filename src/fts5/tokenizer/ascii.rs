//! The `ascii` tokenizer: ASCII letters and digits and every byte from 0x80 on make tokens; only A to Z fold.

use super::Token;

#[derive(Debug, Clone)]
pub struct Ascii {
    token: Box<[bool; 256]>,
}

impl Ascii {
    pub fn new(arguments: &[(&str, &str)]) -> Option<Ascii> {
        let mut token = Box::new([false; 256]);
        for (b, is) in (0_u8..=255).zip(token.iter_mut()) {
            *is = b >= 0x80 || b.is_ascii_alphanumeric();
        }
        for (name, value) in arguments {
            let is = match () {
                () if name.eq_ignore_ascii_case("tokenchars") => true,
                () if name.eq_ignore_ascii_case("separators") => false,
                () => return None,
            };
            for b in value.bytes().filter(u8::is_ascii) {
                if let Some(place) = token.get_mut(usize::from(b)) {
                    *place = is;
                }
            }
        }
        Some(Ascii { token })
    }

    fn is_token(&self, b: u8) -> bool {
        self.token.get(usize::from(b)).copied().unwrap_or(false)
    }

    pub fn tokenize(&self, text: &[u8], buffer: &mut Vec<u8>, each: &mut impl FnMut(Token<'_>)) {
        let mut at = 0_usize;
        loop {
            let rest = text.get(at..).unwrap_or_default();
            let Some(skip) = rest.iter().position(|&b| self.is_token(b)) else { return };
            let start = at.saturating_add(skip);
            let rest = text.get(start..).unwrap_or_default();
            let len = rest.iter().position(|&b| !self.is_token(b)).unwrap_or(rest.len());
            let end = start.saturating_add(len);
            buffer.clear();
            buffer.extend(rest.get(..len).unwrap_or_default().iter().map(u8::to_ascii_lowercase));
            each(Token { text: buffer, start, end });
            at = end.saturating_add(1);
        }
    }
}
