//! Numbers and names for people: grouped digits, sizes, escapes, shell words.
#![expect(clippy::arithmetic_side_effects, reason = "lengths of text that this module made itself")]

use std::borrow::Cow;
use std::fmt::Write as _;

/// A count with its thousands grouped: 1,234,567.
#[must_use]
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// A count with its noun: "1 row", "1,234 rows". The plural is the noun and "s".
#[must_use]
pub fn counted(n: u64, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{} {noun}s", count(n)) }
}

/// A size: exact below 10 KiB, else with one decimal in binary units.
#[must_use]
pub fn bytes(n: u64) -> String {
    if n < 10_240 {
        return counted(n, "byte");
    }
    let (mut whole, mut rest, mut unit) = (n, 0, "bytes");
    for next in ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"] {
        if whole < 1024 {
            break;
        }
        (rest, whole, unit) = (whole % 1024, whole / 1024, next);
    }
    format!("{}.{} {unit}", count(whole), rest * 10 / 1024)
}

/// Text of the evidence made harmless for a terminal: control characters, line and direction marks and everything
/// invisible that changes how a line reads become escapes; a backslash is doubled, so that nothing is ambiguous.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    text.chars().for_each(|c| escape_one(&mut out, c));
    out
}

fn escape_one(out: &mut String, c: char) {
    match c {
        '\\' => out.push_str("\\\\"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        c if c.is_control() || is_treacherous(c) => {
            let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
        }
        c => out.push(c),
    }
}

/// Characters of a name that are shown. A damaged name may be thousands long, and then says nothing by its length.
const NAME: usize = 60;

/// Characters of a sentence with text of the evidence in it that are shown.
const PASSAGE: usize = 400;

/// A name of the evidence for people: escaped, and cut where it is long. The JSON has all of it.
#[must_use]
pub fn name(text: &str) -> String {
    escape(&clip(text, NAME))
}

/// A sentence that may quote the evidence, for people: escaped, and cut where it is long.
#[must_use]
pub fn passage(text: &str) -> String {
    escape(&clip(text, PASSAGE))
}

/// Text as it is, cut so that it takes at most `most` characters once it is escaped; an ellipsis stands for the rest.
#[must_use]
pub fn clip(text: &str, most: usize) -> Cow<'_, str> {
    let mut one = String::new();
    let (mut used, mut fits) = (0, 0);
    for (at, c) in text.char_indices() {
        one.clear();
        escape_one(&mut one, c);
        used += one.chars().count();
        if used < most {
            fits = at + c.len_utf8();
        }
        if used > most {
            return Cow::Owned(format!("{}…", text.get(..fits).unwrap_or_default()));
        }
    }
    Cow::Borrowed(text)
}

/// A name of the [`clip`]ped length, not escaped: for sentences that are escaped as a whole.
#[must_use]
pub fn short_name(text: &str) -> Cow<'_, str> {
    clip(text, NAME)
}

/// "a" or "an", as the word asks for.
#[must_use]
pub fn article(word: &str) -> &'static str {
    if word.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }
}

/// Characters that are no control characters, yet reorder, break or hide what follows.
fn is_treacherous(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// A path or argument as one word of a POSIX shell.
#[must_use]
pub fn shell(path: &str) -> String {
    // Programs take a leading dash for an option, and the shell of SQLite takes these for something else than a file.
    if path.starts_with(['-', ':']) || path.starts_with("file:") { shell_word(&format!("./{path}")) } else { shell_word(path) }
}

/// A word for a POSIX shell that is no path: an option with its value.
#[must_use]
pub fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./,:=@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    if word.chars().any(|c| c.is_control() || is_treacherous(c)) {
        let mut out = "$'".to_owned();
        for c in word.chars() {
            match c {
                '\\' | '\'' => out.extend(['\\', c]),
                c if c.is_control() || is_treacherous(c) => {
                    for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                        let _ = write!(out, "\\x{byte:02x}");
                    }
                }
                c => out.push(c),
            }
        }
        out.push('\'');
        return out;
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Ranges of rowids: "3, 7-12 and 40 more ranges".
#[must_use]
pub fn ranges(ranges: &[[i64; 2]], most: usize) -> String {
    let mut out = String::new();
    for [first, last] in ranges.iter().take(most) {
        if !out.is_empty() {
            out.push_str(", ");
        }
        let _ = if first == last { write!(out, "{first}") } else { write!(out, "{first} to {last}") };
    }
    if ranges.len() > most {
        let _ = write!(out, " and {} more ranges", count(crate::ids::wide(ranges.len() - most)));
    }
    out
}

/// The columns that a text takes on a terminal; colours take none.
#[must_use]
pub fn columns(text: &str) -> usize {
    use unicode_width::UnicodeWidthStr;
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().width();
    parts.fold(first, |sum, part| sum + part.split_once('m').map_or(part, |(_, rest)| rest).width())
}

/// Breaks text into lines of at most `width` characters at spaces; a word that is longer stays whole.
#[must_use]
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut used = 0;
    for word in text.split(' ').filter(|w| !w.is_empty()) {
        let len = columns(word);
        if used > 0 && used + 1 + len > width {
            lines.push(std::mem::take(&mut line));
            used = 0;
        }
        if used > 0 {
            line.push(' ');
            used += 1;
        }
        line.push_str(word);
        used += len;
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([0, 12, 999, 1000, 1_234_567].map(count), ["0", "12", "999", "1,000", "1,234,567"]);
        assert_eq!(count(u64::MAX), "18,446,744,073,709,551,615");
        assert_eq!([1, 4096, 10_240, 1 << 30, 3 << 29].map(bytes), ["1 byte", "4,096 bytes", "10.0 KiB", "1.0 GiB", "1.5 GiB"]);
        assert_eq!(bytes(u64::MAX), "15.9 EiB");
    }

    #[test]
    fn hostile_text_stays_on_its_line() {
        assert_eq!(escape("a\u{1b}[2J\n\u{202e}b\\"), "a\\u{1b}[2J\\n\\u{202e}b\\\\");
        assert_eq!(escape("größe 日本"), "größe 日本");
    }

    #[test]
    fn long_names_are_cut_and_the_cut_shows() {
        assert_eq!(name("orders"), "orders");
        assert_eq!(name(&"x".repeat(60)), "x".repeat(60));
        assert_eq!(name(&"x".repeat(61)), format!("{}…", "x".repeat(59)));
        // A control character takes five characters on the screen: what is shown is what counts.
        for text in ["\u{1}".repeat(7000), "日".repeat(7000), "\\".repeat(61)] {
            let cut = name(&text);
            assert!(cut.chars().count() <= 60 && cut.chars().count() > 50 && cut.ends_with('…'), "{cut}");
        }
        assert_eq!(passage(&"a ".repeat(1000)).chars().count(), 400);
        assert_eq!(["index-leaf", "table-leaf", "orphan"].map(article), ["an", "a", "an"]);
    }

    #[test]
    fn shell_words_survive_a_shell() {
        assert_eq!(shell("a/b.db"), "a/b.db");
        assert_eq!(["-x", ":memory:", "file:a b"].map(shell), ["./-x", "./:memory:", "'./file:a b'"]);
        for word in ["", "it's $HOME `x`", "new\nline", "-dash'\u{1b}", "\\x\t'"] {
            let out = std::process::Command::new("bash").arg("-c").arg(format!("printf %s {}", shell_word(word))).output().unwrap();
            assert_eq!(String::from_utf8(out.stdout).unwrap(), word);
        }
    }

    #[test]
    fn lines_are_broken_at_spaces() {
        assert_eq!(wrap("aa bb cc", 5), ["aa bb", "cc"]);
        assert_eq!(wrap("loooong a", 3), ["loooong", "a"]);
        assert_eq!(wrap("", 3), [""]);
    }
}
