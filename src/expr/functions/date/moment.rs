//! A point in time as the date functions of SQLite carry it from one modifier to the next.

use super::{quotient, remainder};
use crate::expr::number;

/// 1970-01-01 in milliseconds since noon of the first Julian day.
pub(super) const EPOCH: i64 = 210_866_760_000_000;

/// 9999-12-31 23:59:59.999.
const LAST: i64 = 464_269_060_799_999;

const DAY: i64 = 86_400_000;

/// Why there is no time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// The result is NULL.
    Null,
    /// It depends on the clock or the time zone.
    Clock,
}

type Step = Result<(), Stop>;

/// A point in time: a Julian day, a date, a time of day, or several of them.
#[derive(Debug, Clone, Default)]
pub(super) struct Moment {
    /// Milliseconds since noon of the first Julian day.
    pub jd: i64,
    pub year: i64,
    pub month: i64,
    pub day: i64,
    pub hour: i64,
    pub minute: i64,
    /// Seconds of the minute; before a modifier has said what it means, a number as it was given.
    pub second: f64,
    /// Minutes of the time zone.
    zone: i64,
    has_jd: bool,
    has_ymd: bool,
    has_hms: bool,
    /// How many days the day lies behind the end of its month.
    floor: i64,
    raw: bool,
    /// Whether milliseconds are shown.
    pub subsec: bool,
    utc: bool,
}

/// A number of so many digits in a range, and whether the wanted character follows.
fn digits(text: &[u8], at: usize, count: usize, range: std::ops::RangeInclusive<i64>) -> Option<i64> {
    let part = text.get(at..at.saturating_add(count))?;
    if !part.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let n = part.iter().fold(0_i64, |n, &b| n.wrapping_mul(10).wrapping_add(i64::from(b.wrapping_sub(b'0'))));
    range.contains(&n).then_some(n)
}

fn byte(text: &[u8], at: usize) -> u8 {
    text.get(at).copied().unwrap_or(0)
}

fn is_space(b: u8) -> bool {
    matches!(b, b' ' | b'\t'..=b'\r')
}

fn skip_spaces(text: &[u8]) -> &[u8] {
    let n = text.iter().take_while(|&&b| is_space(b)).count();
    text.get(n..).unwrap_or_default()
}

fn from(text: &[u8], at: usize) -> &[u8] {
    text.get(at..).unwrap_or_default()
}

fn whole_number(text: &[u8]) -> Option<f64> {
    let read = number::read(text);
    read.whole.then_some(read.real)
}

fn days_of_month(year: i64, month: i64) -> i64 {
    let leap = remainder(year, 4) == 0 && (remainder(year, 100) != 0 || remainder(year, 400) == 0);
    match month {
        // The month 0 that a modifier may leave behind has 30 days.
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        2 if leap => 29,
        2 => 28,
        _ => 30,
    }
}

/// Units of a modifier: the name, the largest number, seconds.
const UNITS: [(&[u8], f32, f64); 6] = [
    (b"second", 4.6427e+14, 1.0),
    (b"minute", 7.7379e+12, 60.0),
    (b"hour", 1.2897e+11, 3600.0),
    (b"day", 5_373_485.0, 86_400.0),
    (b"month", 176_546.0, 2_592_000.0),
    (b"year", 14_713.0, 31_536_000.0),
];

impl Moment {
    /// A number given as a time: a Julian day, unless a modifier says otherwise.
    pub fn raw_number(&mut self, x: f64) {
        self.second = x;
        self.raw = true;
        if (0.0..5_373_484.5).contains(&x) {
            self.jd = number::real_to_int(x * 86_400_000.0 + 0.5);
            self.has_jd = true;
        }
    }

    /// Reads a time value.
    pub fn parse(&mut self, text: &[u8]) -> Step {
        if self.parse_date(text)? || self.parse_time(text) {
            return Ok(());
        }
        if text.eq_ignore_ascii_case(b"now") || text.eq_ignore_ascii_case(b"subsec") || text.eq_ignore_ascii_case(b"subsecond") {
            return Err(Stop::Clock);
        }
        self.raw_number(whole_number(text).ok_or(Stop::Null)?);
        Ok(())
    }

    fn parse_zone(&mut self, text: &[u8]) -> bool {
        let text = skip_spaces(text);
        self.zone = 0;
        let sign = match text.first() {
            None => return true,
            Some(b'-') => -1,
            Some(b'+') => 1,
            Some(b'Z' | b'z') => {
                self.utc = true;
                return skip_spaces(from(text, 1)).is_empty();
            }
            _ => return false,
        };
        let (Some(hours), b':', Some(minutes)) = (digits(text, 1, 2, 0..=14), byte(text, 3), digits(text, 4, 2, 0..=59)) else {
            return false;
        };
        self.zone = hours.saturating_mul(60).saturating_add(minutes).saturating_mul(sign);
        self.utc |= self.zone == 0;
        skip_spaces(from(text, 6)).is_empty()
    }

    /// Reads `HH:MM[:SS[.FFF]][zone]`.
    fn parse_time(&mut self, text: &[u8]) -> bool {
        let (Some(hour), b':', Some(minute)) = (digits(text, 0, 2, 0..=24), byte(text, 2), digits(text, 3, 2, 0..=59)) else {
            return false;
        };
        let mut at = 5_usize;
        let mut second = 0_i64;
        let mut part = 0.0_f64;
        if byte(text, at) == b':' {
            let Some(s) = digits(text, 6, 2, 0..=59) else { return false };
            second = s;
            at = 8;
            if byte(text, at) == b'.' && byte(text, 9).is_ascii_digit() {
                at = 9;
                let mut scale = 1.0_f64;
                while byte(text, at).is_ascii_digit() {
                    part = part * 10.0 + f64::from(byte(text, at).wrapping_sub(b'0'));
                    scale *= 10.0;
                    at = at.saturating_add(1);
                }
                part /= scale;
                if part > 0.999 {
                    part = 0.999;
                }
            }
        }
        if hour == 24 && (minute != 0 || second != 0 || part != 0.0) {
            return false;
        }
        self.has_jd = false;
        self.raw = false;
        self.has_hms = true;
        self.hour = hour;
        self.minute = minute;
        self.second = number::int_to_real(second) + part;
        self.parse_zone(from(text, at))
    }

    /// Reads `YYYY-MM-DD`, with a time behind it or not.
    fn parse_date(&mut self, text: &[u8]) -> Result<bool, Stop> {
        let negative = text.first() == Some(&b'-');
        let text = from(text, usize::from(negative));
        let (Some(mut year), Some(mut month), Some(mut day)) =
            (digits(text, 0, 4, 0..=14_712), digits(text, 5, 2, 1..=12), digits(text, 8, 2, 1..=31))
        else {
            return Ok(false);
        };
        if byte(text, 4) != b'-' || byte(text, 7) != b'-' {
            return Ok(false);
        }
        let tail = from(text, 10);
        let n = tail.iter().take_while(|&&b| is_space(b) || b == b'T').count();
        let tail = from(tail, n);
        if self.parse_time(tail) {
            if self.hour == 24 {
                let most = days_of_month(year, month);
                self.hour = 0;
                day = day.saturating_add(1);
                if day > most {
                    day = day.saturating_sub(most);
                    month = month.saturating_add(1);
                    if month > 12 {
                        month = 1;
                        year = year.saturating_add(1);
                    }
                }
            }
        } else if tail.is_empty() {
            self.has_hms = false;
        } else {
            return Ok(false);
        }
        self.has_jd = false;
        self.has_ymd = true;
        self.year = if negative { year.saturating_neg() } else { year };
        self.month = month;
        self.day = day;
        self.compute_floor();
        if self.zone != 0 {
            self.compute_jd()?;
        }
        Ok(true)
    }

    fn compute_floor(&mut self) {
        self.floor = self.day.saturating_sub(days_of_month(self.year, self.month)).max(0);
    }

    /// Brings the Julian day up to date.
    pub fn compute_jd(&mut self) -> Step {
        if self.has_jd {
            return Ok(());
        }
        let (mut y, mut m, mut d) = (2000, 1, 1);
        if self.has_ymd {
            (y, m, d) = (self.year, self.month, self.day);
        } else if self.has_hms && self.hour == 24 {
            self.hour = 0;
            d = 2;
        }
        if !(-4713..=9999).contains(&y) || self.raw {
            return Err(Stop::Null);
        }
        if m <= 2 {
            y = y.saturating_sub(1);
            m = m.saturating_add(12);
        }
        let a = quotient(y.saturating_add(4800), 100);
        let b = 38_i64.saturating_sub(a).saturating_add(quotient(a, 4));
        let x1 = quotient(y.saturating_add(4716).saturating_mul(36_525), 100);
        let x2 = quotient(m.saturating_add(1).saturating_mul(306_001), 10_000);
        let days = x1.saturating_add(x2).saturating_add(d).saturating_add(b);
        self.jd = number::real_to_int((number::int_to_real(days) - 1524.5) * 86_400_000.0);
        self.has_jd = true;
        if self.has_hms {
            let hm = self.hour.saturating_mul(3_600_000).saturating_add(self.minute.saturating_mul(60_000));
            self.jd = self.jd.saturating_add(hm).saturating_add(number::real_to_int(self.second * 1000.0 + 0.5));
            if self.zone != 0 {
                self.jd = self.jd.saturating_sub(self.zone.saturating_mul(60_000));
                self.has_ymd = false;
                self.has_hms = false;
                self.zone = 0;
                self.utc = true;
            }
        }
        Ok(())
    }

    /// Whether the Julian day is one that can be shown.
    pub fn check(&self) -> Step {
        if (0..=LAST).contains(&self.jd) { Ok(()) } else { Err(Stop::Null) }
    }

    /// Makes a date such as February 30 a date of March, when it is shown.
    pub fn normalize(&mut self) {
        if self.has_ymd && self.day > 28 {
            self.has_ymd = false;
        }
    }

    /// Brings year, month and day up to date.
    pub fn compute_ymd(&mut self) -> Step {
        if self.has_ymd {
            return Ok(());
        }
        if self.has_jd {
            self.check()?;
            let z = quotient(self.jd.saturating_add(43_200_000), DAY);
            let real = number::int_to_real;
            let alpha = number::real_to_int((real(z) + 32_044.75) / 36_524.25).saturating_sub(52);
            let a = z.saturating_add(1).saturating_add(alpha).saturating_sub(quotient(alpha.saturating_add(100), 4)).saturating_add(25);
            let b = a.saturating_add(1524);
            let c = number::real_to_int((real(b) - 122.1) / 365.25);
            let d = quotient((c & 32_767).saturating_mul(36_525), 100);
            let e = number::real_to_int(real(b.saturating_sub(d)) / 30.6001);
            let x1 = number::real_to_int(30.6001 * real(e));
            self.day = b.saturating_sub(d).saturating_sub(x1);
            self.month = e.saturating_sub(if e < 14 { 1 } else { 13 });
            self.year = c.saturating_sub(if self.month > 2 { 4716 } else { 4715 });
        } else {
            (self.year, self.month, self.day) = (2000, 1, 1);
        }
        self.has_ymd = true;
        Ok(())
    }

    /// Brings the time of day up to date.
    pub fn compute_hms(&mut self) -> Step {
        if self.has_hms {
            return Ok(());
        }
        self.compute_jd()?;
        let ms = remainder(self.jd.saturating_add(43_200_000), DAY);
        self.second = number::int_to_real(remainder(ms, 60_000)) / 1000.0;
        let minutes = quotient(ms, 60_000);
        self.minute = remainder(minutes, 60);
        self.hour = quotient(minutes, 60);
        self.raw = false;
        self.has_hms = true;
        Ok(())
    }

    fn compute_both(&mut self) -> Step {
        self.compute_ymd()?;
        self.compute_hms()
    }

    fn clear(&mut self) {
        self.has_ymd = false;
        self.has_hms = false;
        self.zone = 0;
    }

    fn set_jd(&mut self, ms: f64) {
        self.clear();
        self.jd = number::real_to_int(ms + 0.5);
        self.has_jd = true;
        self.raw = false;
    }

    /// Applies a modifier; `first` says that it stands right behind the time value.
    pub fn modify(&mut self, text: &[u8], first: bool) -> Step {
        let lower = text.to_ascii_lowercase();
        match lower.as_slice() {
            b"auto" if first => self.auto(),
            b"ceiling" => {
                self.compute_jd()?;
                self.clear();
                self.floor = 0;
            }
            b"floor" => {
                self.compute_jd()?;
                self.jd = self.jd.saturating_sub(self.floor.saturating_mul(DAY));
                self.clear();
            }
            b"julianday" if first && self.has_jd && self.raw => self.raw = false,
            b"unixepoch" if first && self.raw => {
                let ms = self.second * 1000.0 + number::int_to_real(EPOCH);
                if !(0.0..464_269_060_800_000.0).contains(&ms) {
                    return Err(Stop::Null);
                }
                self.set_jd(ms);
            }
            b"localtime" => return Err(Stop::Clock),
            b"utc" if self.utc => {}
            b"utc" => return Err(Stop::Clock),
            b"subsec" | b"subsecond" => self.subsec = true,
            [b's', b't', b'a', b'r', b't', b' ', b'o', b'f', b' ', unit @ ..] => self.start_of(unit)?,
            [b'e', b'n', b'd', b' ', b'o', b'f', b' ', unit @ ..] => self.end_of(unit)?,
            [b'w', b'e', b'e', b'k', b'd', b'a', b'y', b' ', day @ ..] => self.weekday(day)?,
            [b'+' | b'-' | b'0'..=b'9', ..] => return self.shift(&lower),
            _ => return Err(Stop::Null),
        }
        Ok(())
    }

    fn auto(&mut self) {
        if !self.raw || self.has_jd {
            self.raw = false;
        } else if (-210_866_760_000.0..=253_402_300_799.0).contains(&self.second) {
            self.set_jd(self.second * 1000.0 + number::int_to_real(EPOCH));
        }
    }

    fn whole_day(&mut self) -> Step {
        if !self.has_jd && !self.has_ymd && !self.has_hms {
            return Err(Stop::Null);
        }
        self.compute_ymd()?;
        self.has_hms = true;
        self.raw = false;
        self.zone = 0;
        self.has_jd = false;
        Ok(())
    }

    fn start_of(&mut self, unit: &[u8]) -> Step {
        self.whole_day()?;
        (self.hour, self.minute, self.second) = (0, 0, 0.0);
        match unit {
            b"month" => self.day = 1,
            b"year" => (self.month, self.day) = (1, 1),
            b"day" => {}
            _ => return Err(Stop::Null),
        }
        Ok(())
    }

    fn end_of(&mut self, unit: &[u8]) -> Step {
        self.whole_day()?;
        (self.hour, self.minute, self.second) = (23, 59, 59.999);
        match unit {
            b"month" => {
                self.day = 1;
                self.month = self.month.saturating_add(1);
                if self.month > 12 {
                    self.year = self.year.saturating_add(1);
                    self.month = 1;
                }
                self.compute_floor();
                self.compute_jd()?;
                self.jd = self.jd.saturating_sub(self.floor.saturating_add(1).saturating_mul(DAY));
                self.clear();
            }
            b"year" => (self.month, self.day) = (12, 31),
            b"day" => {}
            _ => return Err(Stop::Null),
        }
        Ok(())
    }

    fn weekday(&mut self, text: &[u8]) -> Step {
        let x = whole_number(text).filter(|x| (-6.0..=6.0).contains(x)).ok_or(Stop::Null)?;
        if x.fract() != 0.0 {
            return Err(Stop::Null);
        }
        let n = number::real_to_int(x).saturating_abs();
        self.compute_both()?;
        self.zone = 0;
        self.has_jd = false;
        self.compute_jd()?;
        let mut z = remainder(quotient(self.jd.saturating_add(129_600_000), DAY), 7);
        if z != n {
            if z > n {
                z = z.saturating_sub(7);
            }
            self.jd = self.jd.saturating_add(n.saturating_sub(z).saturating_mul(DAY));
            if text.contains(&b'-') {
                self.jd = self.jd.saturating_sub(DAY.saturating_mul(7));
            }
        }
        self.clear();
        Ok(())
    }

    /// Modifiers that add: `±N unit`, `±HH:MM:SS`, `±YYYY-MM-DD [HH:MM[:SS]]`.
    fn shift(&mut self, text: &[u8]) -> Step {
        let minus = text.first() == Some(&b'-');
        let mut n = 1_usize;
        while n < text.len() {
            let c = byte(text, n);
            let date =
                c == b'-' && ((n == 5 && digits(text, 1, 4, 0..=14_712).is_some()) || (n == 6 && digits(text, 1, 5, 0..=14_712).is_some()));
            if c == b':' || is_space(c) || date {
                break;
            }
            n = n.saturating_add(1);
        }
        let mut x = whole_number(text.get(..n).unwrap_or(text)).ok_or(Stop::Null)?;
        if byte(text, n) == b'-' {
            let signed = matches!(text.first(), Some(b'+' | b'-'));
            let (Some(years), Some(months), b'-', Some(days)) = (
                digits(text, 1, n.saturating_sub(1), 0..=14_712),
                digits(text, n.saturating_add(1), 2, 0..=11),
                byte(text, n.saturating_add(3)),
                digits(text, n.saturating_add(4), 2, 0..=30),
            ) else {
                return Err(Stop::Null);
            };
            if !signed {
                return Err(Stop::Null);
            }
            self.compute_both()?;
            self.has_jd = false;
            let way = if minus { -1_i64 } else { 1 };
            self.year = self.year.saturating_add(years.saturating_mul(way));
            self.month = self.month.saturating_add(months.saturating_mul(way));
            self.carry_months();
            self.compute_floor();
            self.compute_jd()?;
            self.has_hms = false;
            self.has_ymd = false;
            self.jd = self.jd.saturating_add(days.saturating_mul(way).saturating_mul(DAY));
            let tail = from(text, n.saturating_add(6));
            return match tail {
                [] => Ok(()),
                [space, time @ ..] if is_space(*space) && byte(time, 2) == b':' => self.add_time(time, minus),
                _ => Err(Stop::Null),
            };
        }
        if byte(text, n) == b':' {
            let unsigned = text.first().is_some_and(u8::is_ascii_digit);
            return self.add_time(from(text, usize::from(!unsigned)), minus);
        }
        let unit = skip_spaces(from(text, n));
        if !(3..=10).contains(&unit.len()) {
            return Err(Stop::Null);
        }
        let unit = unit.strip_suffix(b"s").unwrap_or(unit);
        self.compute_jd()?;
        let rounder = if x < 0.0 { -0.5 } else { 0.5 };
        self.floor = 0;
        let found = UNITS.iter().find(|(name, most, _)| *name == unit && x.abs() < f64::from(*most));
        let Some((name, _, seconds)) = found else { return Err(Stop::Null) };
        match *name {
            b"month" => {
                self.compute_both()?;
                self.month = self.month.saturating_add(number::real_to_int(x));
                self.carry_months();
                self.compute_floor();
                self.has_jd = false;
                x -= x.trunc();
            }
            b"year" => {
                self.compute_both()?;
                self.year = self.year.saturating_add(number::real_to_int(x));
                self.compute_floor();
                self.has_jd = false;
                x -= x.trunc();
            }
            _ => {}
        }
        self.compute_jd()?;
        self.jd = self.jd.saturating_add(number::real_to_int(x * 1000.0 * seconds + rounder));
        self.clear();
        Ok(())
    }

    fn carry_months(&mut self) {
        let m = self.month;
        let years = quotient(m.saturating_sub(if m > 0 { 1 } else { 12 }), 12);
        self.year = self.year.saturating_add(years);
        self.month = m.saturating_sub(years.saturating_mul(12));
    }

    fn add_time(&mut self, text: &[u8], minus: bool) -> Step {
        let mut time = Moment::default();
        if !time.parse_time(text) {
            return Err(Stop::Null);
        }
        time.compute_jd()?;
        let ms = remainder(time.jd.saturating_sub(43_200_000), DAY);
        self.compute_jd()?;
        self.clear();
        self.jd = if minus { self.jd.saturating_sub(ms) } else { self.jd.saturating_add(ms) };
        Ok(())
    }

    /// The Thursday of the same week, to which the ISO year belongs.
    pub fn thursday(&self) -> Moment {
        let mut m = self.clone();
        m.jd = m.jd.saturating_add(3_i64.saturating_sub(self.days_after_monday()).saturating_mul(DAY));
        m.has_ymd = false;
        if m.compute_ymd().is_err() {
            (m.year, m.month, m.day) = (0, 0, 0);
        }
        m
    }

    pub fn days_after_new_year(&self) -> i64 {
        let mut first = self.clone();
        first.has_jd = false;
        (first.month, first.day) = (1, 1);
        if first.compute_jd().is_err() {
            return 0;
        }
        quotient(self.jd.saturating_sub(first.jd).saturating_add(43_200_000), DAY)
    }

    pub fn days_after_monday(&self) -> i64 {
        remainder(quotient(self.jd.saturating_add(43_200_000), DAY), 7)
    }

    pub fn days_after_sunday(&self) -> i64 {
        remainder(quotient(self.jd.saturating_add(129_600_000), DAY), 7)
    }
}
