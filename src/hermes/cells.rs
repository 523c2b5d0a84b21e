//! What single cells of a store mean: times, texts, JSON.

use serde_json::{Map, Number, Value as Json};

use crate::survey::plan::{Constant, real_of};

/// The last moment that the application takes for one, in seconds since 1970.
pub(crate) const LAST_EPOCH: f64 = 4_200_000_000.0;

/// A time as the application reads it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Epoch {
    /// NULL or empty.
    None,
    /// Seconds since 1970, 0 to [`LAST_EPOCH`].
    At(f64),
    /// Not a time.
    Corrupt,
}

impl Epoch {
    /// Reads a cell: numbers and numeric texts within the window are times.
    pub(crate) fn of(value: &Constant) -> Epoch {
        let number = match value {
            Constant::Null => return Epoch::None,
            Constant::Int(n) => real_of(*n),
            Constant::Real(r) => *r,
            Constant::Text(t) if t.is_empty() => return Epoch::None,
            Constant::Text(t) => match std::str::from_utf8(t).ok().and_then(|t| t.trim().parse::<f64>().ok()) {
                Some(n) => n,
                None => return Epoch::Corrupt,
            },
            Constant::Blob(_) => return Epoch::Corrupt,
        };
        if (0.0..=LAST_EPOCH).contains(&number) { Epoch::At(number) } else { Epoch::Corrupt }
    }

    /// The seconds, if it is a time.
    pub(crate) fn seconds(self) -> Option<f64> {
        match self {
            Epoch::At(s) => Some(s),
            Epoch::None | Epoch::Corrupt => None,
        }
    }
}

/// Whole seconds of a time.
fn whole(seconds: f64) -> i64 {
    #[expect(clippy::as_conversions, reason = "0 to 4.2e9, see Epoch::of")]
    {
        seconds.clamp(0.0, LAST_EPOCH) as i64
    }
}

/// A time in UTC: 2026-09-28 14:03:09.
pub(crate) fn utc(seconds: f64) -> String {
    let s = whole(seconds);
    let (days, rest) = (s.div_euclid(86_400), s.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    let part = |by: i64, of: i64| rest.checked_div(by).unwrap_or(0).rem_euclid(of);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}", part(3600, 24), part(60, 60), rest.rem_euclid(60))
}

/// Year, month and day of a day since 1970-01-01 (proleptic Gregorian).
fn civil(days: i64) -> (i64, i64, i64) {
    let z = days.saturating_add(719_468);
    let era = z.div_euclid(146_097);
    let of_era = z.rem_euclid(146_097);
    let d = |n: i64, by: i64| n.checked_div(by).unwrap_or(0);
    let leap = of_era.saturating_sub(d(of_era, 1460)).saturating_add(d(of_era, 36_524)).saturating_sub(d(of_era, 146_096));
    let year_of_era = d(leap, 365);
    let start = year_of_era.saturating_mul(365).saturating_add(d(year_of_era, 4)).saturating_sub(d(year_of_era, 100));
    let day_of_year = of_era.saturating_sub(start);
    let mp = d(day_of_year.saturating_mul(5).saturating_add(2), 153);
    let day = day_of_year.saturating_sub(d(mp.saturating_mul(153).saturating_add(2), 5)).saturating_add(1);
    let month = if mp < 10 { mp.saturating_add(3) } else { mp.saturating_sub(9) };
    let year = era.saturating_mul(400).saturating_add(year_of_era).saturating_add(i64::from(month <= 2));
    (year, month, day)
}

/// Days since 1970-01-01 of a date (proleptic Gregorian): the inverse of [`civil`].
pub(crate) fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year.saturating_sub(1) } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let shifted = month.saturating_add(9).rem_euclid(12);
    let d = |n: i64, by: i64| n.checked_div(by).unwrap_or(0);
    let of_year = d(shifted.saturating_mul(153).saturating_add(2), 5).saturating_add(day).saturating_sub(1);
    let of_era = of_era.saturating_mul(365).saturating_add(d(of_era, 4)).saturating_sub(d(of_era, 100)).saturating_add(of_year);
    era.saturating_mul(146_097).saturating_add(of_era).saturating_sub(719_468)
}

/// A cell as text; bytes that are no UTF-8 become U+FFFD. `None` for NULL.
pub(crate) fn text(value: &Constant) -> Option<String> {
    Some(match value {
        Constant::Null => return None,
        Constant::Int(n) => n.to_string(),
        Constant::Real(r) => r.to_string(),
        Constant::Text(t) | Constant::Blob(t) => String::from_utf8_lossy(t).into_owned(),
    })
}

/// Whether a text or BLOB cell holds bytes that are no UTF-8.
pub(crate) fn is_lossy(value: &Constant) -> bool {
    matches!(value, Constant::Text(t) | Constant::Blob(t) if std::str::from_utf8(t).is_err())
}

/// An integer cell; numeric texts count.
pub(crate) fn int(value: &Constant) -> Option<i64> {
    match value {
        Constant::Int(n) => Some(*n),
        Constant::Real(r) => crate::format::value::integral(*r),
        Constant::Text(t) => std::str::from_utf8(t).ok()?.trim().parse().ok(),
        Constant::Null | Constant::Blob(_) => None,
    }
}

/// A cell as JSON: reals that JSON does not have, as text.
pub(crate) fn json(value: &Constant) -> Json {
    match value {
        Constant::Null => Json::Null,
        Constant::Int(n) => Json::from(*n),
        Constant::Real(r) => Number::from_f64(*r).map_or_else(|| Json::from(r.to_string()), Json::Number),
        Constant::Text(t) => Json::from(String::from_utf8_lossy(t)),
        Constant::Blob(b) => match std::str::from_utf8(b) {
            Ok(t) => Json::from(t),
            Err(_) => Json::from(hex(b)),
        },
    }
}

/// Bytes as lower-case hex digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(bytes.len().saturating_mul(2));
    for b in bytes {
        let _ = write!(out, "{b:02x}");
    }
    out
}

/// JSON text of a cell, decoded; `None` when it is none. serde_json bounds the nesting.
pub(crate) fn decoded(value: &Constant) -> Option<Json> {
    match value {
        Constant::Text(t) | Constant::Blob(t) => serde_json::from_slice(t).ok(),
        _ => None,
    }
}

/// The content of a message: JSON behind the application's prefix is decoded, everything else is text.
pub(crate) fn content(value: &Constant) -> Json {
    if let Constant::Text(t) | Constant::Blob(t) = value
        && let Some(rest) = t.strip_prefix(b"\0json:").or_else(|| t.strip_prefix(b"\x01json:"))
        && let Ok(decoded) = serde_json::from_slice::<Json>(rest)
    {
        return decoded;
    }
    json(value)
}

/// One part of a message for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// Text.
    Text(String),
    /// Something that is not text: what it is and how large.
    Other(String),
}

/// Parts of multimodal content that are shown; a message of more is none that people read.
const PARTS: usize = 1000;

/// The content of a message in parts for people.
pub(crate) fn parts(value: &Constant) -> Vec<Part> {
    match content(value) {
        Json::Null => Vec::new(),
        Json::String(s) => vec![Part::Text(s)],
        Json::Array(items) => items.iter().take(PARTS).map(part).collect(),
        other => vec![part(&other)],
    }
}

fn part(item: &Json) -> Part {
    let Json::Object(map) = item else {
        return Part::Text(item.as_str().map_or_else(|| item.to_string(), str::to_owned));
    };
    if let Some(text) = map.get("text").and_then(Json::as_str) {
        return Part::Text(text.to_owned());
    }
    let kind = map.get("type").and_then(Json::as_str).unwrap_or("part");
    Part::Other(format!("{kind}, {}", crate::report::human::bytes(crate::ids::wide(item.to_string().len()))))
}

/// Name and arguments of each tool call of a message.
pub(crate) fn calls(value: &Constant) -> Vec<(String, String)> {
    let text = |map: &Map<String, Json>, name: &str| match map.get(name) {
        Some(Json::String(s)) => s.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    };
    match decoded(value) {
        Some(Json::Array(items)) => items
            .iter()
            .take(PARTS)
            .map(|item| match item.get("function").and_then(Json::as_object).or_else(|| item.as_object()) {
                Some(f) => (text(f, "name"), text(f, "arguments")),
                None => (String::new(), item.to_string()),
            })
            .collect(),
        Some(other) => vec![(String::new(), other.to_string())],
        None => self::text(value).filter(|t| !t.is_empty()).map(|t| (String::new(), t)).into_iter().collect(),
    }
}

/// The beginning of a text in one line, at most `most` characters.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    let mut out = String::new();
    let mut shown = 0_usize;
    for word in text.split_whitespace() {
        if shown > 0 {
            out.push(' ');
            shown = shown.saturating_add(1);
        }
        for c in word.chars() {
            if shown >= most {
                out.push('…');
                return out;
            }
            out.push(c);
            shown = shown.saturating_add(1);
        }
    }
    out
}

/// What stands for a text with `--redact`.
pub(crate) fn redacted(text: &str) -> String {
    format!("({} characters)", text.chars().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_of_times_is_the_applications() {
        let t = |s: &str| Constant::Text(s.as_bytes().to_vec());
        for (value, want) in [
            (Constant::Null, Epoch::None),
            (t(""), Epoch::None),
            (Constant::Int(0), Epoch::At(0.0)),
            (Constant::Real(4_200_000_000.0), Epoch::At(4_200_000_000.0)),
            (Constant::Real(4_200_000_000.5), Epoch::Corrupt),
            (Constant::Real(8.4e252), Epoch::Corrupt),
            (Constant::Real(-1.0), Epoch::Corrupt),
            (Constant::Real(f64::NAN), Epoch::Corrupt),
            (t("1788000000.5"), Epoch::At(1_788_000_000.5)),
            (t("not-a-timestamp"), Epoch::Corrupt),
            (Constant::Blob(vec![1]), Epoch::Corrupt),
        ] {
            assert_eq!(Epoch::of(&value), want, "{value:?}");
        }
        assert_eq!(utc(1_790_605_389.7), "2026-09-28 14:23:09");
        assert_eq!(utc(951_782_400.0), "2000-02-29 00:00:00");
        assert_eq!(utc(LAST_EPOCH), "2103-02-04 02:40:00");
        for day in [0, 59, 60, 11_016, 20_000, 47_540] {
            let (y, m, d) = civil(day);
            assert_eq!(days(y, m, d), day);
        }
    }

    #[test]
    fn content_behind_the_prefix_is_json_and_broken_json_is_text() {
        let t = |s: &[u8]| Constant::Text(s.to_vec());
        assert_eq!(content(&t(b"\0json:[1]")), serde_json::json!([1]));
        assert_eq!(content(&t(b"\0json:[1")), serde_json::json!("\0json:[1"));
        assert_eq!(content(&t(b"a\0b")), serde_json::json!("a\0b"));
        assert_eq!(parts(&t(br#"x"#)), [Part::Text("x".to_owned())]);
        let image = t(b"\0json:[{\"type\":\"text\",\"text\":\"see\"},{\"type\":\"image_url\"}]");
        assert_eq!(parts(&image), [Part::Text("see".to_owned()), Part::Other("image_url, 20 bytes".to_owned())]);
    }
}
