//! Date and time functions. What depends on the clock or the time zone of the machine is unknown.

mod moment;

use super::{Function, c_string, owned};
use crate::expr::ast::Unknown;
use crate::expr::datum::{Datum, Fault};
use crate::expr::number;
use moment::{EPOCH, Moment, Stop};

/// The value of a date function.
pub(super) fn apply<'r>(f: Function, args: &[Datum<'r>]) -> Result<Datum<'r>, Fault> {
    let (format, times) = match (f, args) {
        (Function::Strftime, [Datum::Null, ..]) => return Ok(Datum::Null),
        (Function::Strftime, [format, times @ ..]) => (Some(number::to_text(format)), times),
        _ => (None, args),
    };
    let mut moment = match read(times) {
        Ok(moment) => moment,
        Err(Stop::Null) => return Ok(Datum::Null),
        Err(Stop::Clock) => return Err(Unknown::Clock.into()),
    };
    let text = match f {
        Function::JulianDay => return Ok(Datum::real(number::int_to_real(moment.jd) / 86_400_000.0)),
        Function::UnixEpoch if moment.subsec => {
            return Ok(Datum::real(number::int_to_real(moment.jd.wrapping_sub(EPOCH)) / 1000.0));
        }
        Function::UnixEpoch => return Ok(Datum::Int(quotient(moment.jd, 1000).wrapping_sub(quotient(EPOCH, 1000)))),
        _ => {
            if moment.compute_ymd().and_then(|()| moment.compute_hms()).is_err() {
                return Ok(Datum::Null);
            }
            match (f, format) {
                (Function::Date, _) => Some(date(&moment)),
                (Function::Time, _) => Some(time(&moment)),
                (Function::DateTime, _) => Some(format!("{} {}", date(&moment), time(&moment))),
                (_, Some(format)) => return Ok(strftime(c_string(&format), &moment).map_or(Datum::Null, owned)),
                _ => None,
            }
        }
    };
    Ok(text.map_or(Datum::Null, |t| owned(t.into_bytes())))
}

/// The quotient of C, which cuts towards zero.
fn quotient(a: i64, b: i64) -> i64 {
    a.checked_div(b).unwrap_or(0)
}

/// The remainder of C.
fn remainder(a: i64, b: i64) -> i64 {
    a.checked_rem(b).unwrap_or(0)
}

fn read(args: &[Datum<'_>]) -> Result<Moment, Stop> {
    let Some((first, modifiers)) = args.split_first() else { return Err(Stop::Clock) };
    let mut moment = Moment::default();
    match first {
        Datum::Null => return Err(Stop::Null),
        Datum::Int(_) | Datum::Real(_) => moment.raw_number(number::to_real(first)),
        other => moment.parse(c_string(&number::to_text(other)))?,
    }
    for (i, modifier) in modifiers.iter().enumerate() {
        if modifier.is_null() {
            return Err(Stop::Null);
        }
        moment.modify(c_string(&number::to_text(modifier)), i == 0).map_err(|stop| {
            // SQLite forgets an overflow when it converts the time zone.
            let later = modifiers.get(i..).unwrap_or_default();
            if later.iter().any(converts_zone) { Stop::Clock } else { stop }
        })?;
    }
    moment.compute_jd()?;
    moment.check()?;
    if modifiers.is_empty() {
        moment.normalize();
    }
    Ok(moment)
}

fn converts_zone(modifier: &Datum<'_>) -> bool {
    let text = number::to_text(modifier);
    let text = c_string(&text);
    text.eq_ignore_ascii_case(b"utc") || text.eq_ignore_ascii_case(b"localtime")
}

fn date(m: &Moment) -> String {
    let sign = if m.year < 0 { "-" } else { "" };
    format!("{sign}{:04}-{:02}-{:02}", m.year.unsigned_abs(), m.month, m.day)
}

fn time(m: &Moment) -> String {
    if m.subsec {
        let ms = number::real_to_int(1000.0 * m.second + 0.5);
        return format!("{:02}:{:02}:{:02}.{:03}", m.hour, m.minute, quotient(ms, 1000), remainder(ms, 1000));
    }
    format!("{:02}:{:02}:{:02}", m.hour, m.minute, number::real_to_int(m.second))
}

/// `%04d` of C: the sign counts.
fn four(n: i64) -> String {
    format!("{n:04}")
}

fn strftime(format: &[u8], m: &Moment) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(format.len());
    let mut rest = format;
    while let Some((&first, tail)) = rest.split_first() {
        if first != b'%' {
            out.push(first);
            rest = tail;
            continue;
        }
        let (&conversion, tail) = tail.split_first()?;
        rest = tail;
        let second = number::real_to_int(m.second);
        let twelve = match m.hour {
            0 => 12,
            h if h > 12 => h.saturating_sub(12),
            h => h,
        };
        let text = match conversion {
            b'd' => format!("{:02}", m.day),
            b'e' => format!("{:2}", m.day),
            b'f' => format!("{:0>6}", super::format::fixed(m.second.min(59.999), 3)),
            b'F' => format!("{}-{:02}-{:02}", four(m.year), m.month, m.day),
            b'g' => format!("{:02}", remainder(m.thursday().year, 100)),
            b'G' => four(m.thursday().year),
            b'H' => format!("{:02}", m.hour),
            b'k' => format!("{:2}", m.hour),
            b'I' => format!("{twelve:02}"),
            b'l' => format!("{twelve:2}"),
            b'j' => format!("{:03}", m.days_after_new_year().saturating_add(1)),
            b'J' => super::format::general(number::int_to_real(m.jd) / 86_400_000.0, 16),
            b'm' => format!("{:02}", m.month),
            b'M' => format!("{:02}", m.minute),
            b'p' => if m.hour >= 12 { "PM" } else { "AM" }.to_owned(),
            b'P' => if m.hour >= 12 { "pm" } else { "am" }.to_owned(),
            b'R' => format!("{:02}:{:02}", m.hour, m.minute),
            b's' if m.subsec => super::format::fixed(number::int_to_real(m.jd.wrapping_sub(EPOCH)) / 1000.0, 3),
            b's' => quotient(m.jd, 1000).wrapping_sub(quotient(EPOCH, 1000)).to_string(),
            b'S' => format!("{second:02}"),
            b'T' => format!("{:02}:{:02}:{second:02}", m.hour, m.minute),
            b'u' => match m.days_after_sunday() {
                0 => 7,
                n => n,
            }
            .to_string(),
            b'w' => m.days_after_sunday().to_string(),
            b'U' => format!("{:02}", week(m.days_after_new_year(), m.days_after_sunday())),
            b'W' => format!("{:02}", week(m.days_after_new_year(), m.days_after_monday())),
            b'V' => format!("{:02}", quotient(m.thursday().days_after_new_year(), 7).saturating_add(1)),
            b'Y' => four(m.year),
            b'%' => "%".to_owned(),
            _ => return None,
        };
        out.extend_from_slice(text.as_bytes());
    }
    Some(out)
}

/// The number of the week that begins on the day counted from.
fn week(of_year: i64, of_week: i64) -> i64 {
    quotient(of_year.saturating_sub(of_week).saturating_add(7), 7)
}
