//! Date and time functions.

use super::harness::{Bench, Dice, quote};

const TIMES: &[&str] = &[
    "'2024-02-29'",
    "'2023-12-31 23:59:59.999'",
    "'2000-01-01T12:34'",
    "'1970-01-01 00:00:00'",
    "'0000-01-01'",
    "'-4713-11-24 12:00'",
    "'-4714-01-01'",
    "'9999-12-31 23:59:59'",
    "'2024-02-30'",
    "'2024-04-31 10:00'",
    "'2024-13-01'",
    "'2024-1-1'",
    "'24:00'",
    "'24:00:00.000'",
    "'2024-12-31 24:00'",
    "'12:34:56.789'",
    "'12:34:56.9999'",
    "'12:60'",
    "'2024-05-05 12:00+02:00'",
    "'2024-05-05 12:00:00 -05:30'",
    "'2024-05-05T12:00Z'",
    "'2024-05-05 12:00z  '",
    "'2024-05-05 12:00+15:00'",
    "'2024-05-05x'",
    "'  2024-05-05'",
    "''",
    "'x'",
    "NULL",
    "x'323032342d30312d3031'",
    "2460000.5",
    "0",
    "-1",
    "5373484.4999999",
    "5373484.5",
    "1700000000",
    "-62135596800",
    "253402300799",
    "253402300800",
    "1e15",
    "'2460000.75'",
    "' 2460000 '",
    "'1700000000'",
    "'1e3'",
    "'2024-02-29 23:30:30.5'",
    "'2021-01-03'",
    "'2020-12-28'",
    "'2016-01-01'",
    "1705314600.25",
    "'2024-05-05 12:00:00.5+00:00'",
];

const MODIFIERS: &[&str] = &[
    "+1 day",
    "-1 days",
    "+1.5 days",
    "1 month",
    "+13 months",
    "-14 months",
    "+1 year",
    "-1.5 years",
    "+90 minutes",
    "-3600 seconds",
    "+1 hour",
    "+12:30",
    "-00:00:01.5",
    "12:30:15",
    "+0001-02-03",
    "-0001-02-03",
    "+0000-11-30",
    "+0000-12-00",
    "+0001-02-03 04:05",
    "-0001-02-03 04:05:06.7",
    "+0001-02-03x",
    "+10000-00-00",
    "start of day",
    "start of month",
    "start of year",
    "start of week",
    "end of month",
    "end of year",
    "end of day",
    "weekday 0",
    "weekday 3",
    "weekday -2",
    "weekday 7",
    "weekday 1.5",
    "unixepoch",
    "julianday",
    "auto",
    "subsec",
    "subsecond",
    "floor",
    "ceiling",
    "utc",
    "START OF MONTH",
    "+1 fortnight",
    "+1",
    "+ 1 day",
    "++1 day",
    "1e2 days",
    "+1day",
    "+400000 days",
    "-9999999999999 seconds",
    "",
    "x",
    "+1 month ",
    "+999999 months",
    "+14712 years",
    "+14713 years",
    "+5 dayss",
    "-0.1 seconds",
];

const FUNCTIONS: &[&str] = &["date(*)", "time(*)", "datetime(*)", "julianday(*)", "unixepoch(*)"];

const FORMATS: &[&str] =
    &["%d|%e|%f|%F|%g|%G|%H|%k|%I|%l|%j|%J|%m|%M|%p|%P|%R|%s|%S|%T|%u|%w|%U|%V|%W|%Y|%%", "%Y-%m", "plain", "", "%", "%x", "a%", "é %d"];

#[test]
fn times_and_modifiers() {
    let mut bench = Bench::new();
    bench.store(&["NULL"; 7]);
    let mut dice = Dice(11);
    for time in TIMES {
        for f in FUNCTIONS {
            bench.check(&f.replace('*', time));
            for m in MODIFIERS {
                bench.check(&f.replace('*', &format!("{time},{}", quote(m))));
            }
        }
        for format in FORMATS {
            bench.check(&format!("strftime({},{time})", quote(format)));
            for m in MODIFIERS {
                bench.check(&format!("strftime({},{time},{})", quote(format), quote(m)));
            }
        }
        for _ in 0..150 {
            let list: Vec<String> = (0..2 + dice.roll(3)).map(|_| quote(dice.pick(MODIFIERS))).collect();
            let f = dice.pick(FUNCTIONS);
            bench.check(&f.replace('*', &format!("{time},{}", list.join(","))));
        }
    }
    // 'utc' is unknown unless the time is known to be in it.
    bench.finish(3000);
}

#[test]
fn every_day_of_some_years() {
    let mut bench = Bench::new();
    for year in [-4712, -1, 0, 1, 1582, 1899, 1900, 1999, 2000, 2020, 2021, 9998] {
        for day in (0..366).step_by(3) {
            let base = if year < 0 { format!("-{:04}", -year) } else { format!("{year:04}") };
            bench.store(&[&quote(&format!("{base}-01-01 06:07:08.25")), &day.to_string(), "NULL", "NULL", "NULL", "NULL", "NULL"]);
            bench.check("strftime('%Y %m %d %j %u %w %U %V %W %G %g %J %s', a, '+'||b||' days')");
            bench.check("julianday(a, b||' days', 'floor')");
        }
    }
    bench.finish(0);
}

#[test]
fn the_clock_is_unknown() {
    for text in [
        "date()",
        "date('now')",
        "datetime('NOW','+1 day')",
        "strftime('%Y')",
        "time('subsec')",
        "date('2020-01-01','localtime')",
        "datetime(1e6,'utc')",
    ] {
        let expr = Bench::expr(text).unwrap();
        let value = rootpage::expr::constant(&expr);
        assert!(matches!(value, Err(rootpage::expr::Fault::Unknown(_))), "{text}: {value:?}");
    }
}
