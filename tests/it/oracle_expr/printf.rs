//! `printf()`, `round()` and the text of reals.

use super::harness::{Bench, Dice, quote};

const VALUES: &[&str] = &[
    "NULL",
    "0",
    "1",
    "-1",
    "12",
    "-123",
    "1234567",
    "9223372036854775807",
    "-9223372036854775808",
    "0.0",
    "-0.0",
    "1.0",
    "0.5",
    "-0.5",
    "1.5",
    "2.5",
    "123456.789",
    "-1e-5",
    "1e15",
    "1e16",
    "1e17",
    "123456789012345678.0",
    "1e100",
    "-1e300",
    "5e-324",
    "1.7976931348623157e308",
    "9e999",
    "-9e999",
    "0.1",
    "0.3",
    "99.95",
    "999999.5",
    "3.14159265358979",
    "2.2250738585072014e-308",
    "'text'",
    "''",
    "'it''s \"q\"'",
    "'äöü€😀'",
    "'12abc'",
    "'-7.25e1x'",
    "x'c3a4ff41'",
    "x'0041'",
    "'a' || char(0) || 'b'",
    "111",
    "112",
    "11",
    "3",
    "22",
];

#[test]
fn conversions() {
    let mut bench = Bench::new();
    let mut dice = Dice(5);
    for value in VALUES {
        bench.store(&[value, "NULL", "NULL", "NULL", "NULL", "NULL", "NULL"]);
        for kind in [
            "d", "i", "u", "x", "X", "o", "p", "r", "e", "E", "f", "g", "G", "s", "z", "q", "Q", "w", "c", "%", "n", "y", "ld", "lld", "lf",
        ] {
            bench.check(&format!("printf('<%{kind}>',a)"));
            for _ in 0..25 {
                let mut spec = String::new();
                for flag in ["-", "+", " ", "0", "!", ",", "#"] {
                    if dice.roll(4) == 0 && !(flag == "#" && matches!(kind, "q" | "Q")) {
                        spec.push_str(flag);
                    }
                }
                spec.push_str(dice.pick(&["", "", "1", "5", "12", "40"]));
                spec.push_str(dice.pick(&["", "", ".0", ".", ".1", ".3", ".10", ".17", ".25"]));
                bench.check(&format!("printf({},a)", quote(&format!("<%{spec}{kind}>"))));
            }
        }
        for text in [
            "format('%*d|%-*d|%.*f',8,a,8,a,2,a)",
            "printf('%*.*s|',-9,2,a)",
            "printf(a)",
            "printf(a,1,2)",
            "printf('%d %s %f')",
            "printf('%')",
            "printf('a%')",
            "printf('%5')",
        ] {
            bench.check(text);
        }
    }
    bench.check("printf()");
    bench.check("printf('%.1000f',1.5)");
    bench.check("printf('%-4000000000d|',1)");
    bench.finish(2);
}

#[test]
fn reals_as_text() {
    let mut bench = Bench::new();
    let mut dice = Dice(3);
    for value in VALUES {
        bench.store(&[value, "NULL", "NULL", "NULL", "NULL", "NULL", "NULL"]);
        for text in [
            "a||''",
            "CAST(a AS TEXT)",
            "quote(a)",
            "round(a)",
            "round(a,1)",
            "round(a,2)",
            "round(a,15)",
            "round(a,40)",
            "round(a,-1)",
            "length(a)",
            "hex(a)",
        ] {
            bench.check(text);
        }
    }
    for _ in 0..4000 {
        let digits: String = (0..1 + dice.roll(20)).map(|_| char::from(b'0' + dice.roll(10) as u8)).collect();
        let point = dice.roll(digits.len() + 1);
        let exponent = dice.pick(&["", "", "", "e5", "e-7", "e20", "e-20", "e300", "e-310", "e15", "e-1"]);
        let number = format!("{}.{}{exponent}", &digits[..point], &digits[point..]);
        let number = if number.starts_with('.') { format!("0{number}") } else { number };
        bench.store(&[&number, &quote(&number), &quote(&number), &quote(&number), &quote(&number), "NULL", "NULL"]);
        for text in [
            "a||''",
            "round(a,3)",
            "b+0",
            "c||d||e",
            "CAST(b AS REAL)",
            "CAST(b AS NUMERIC)",
            "CAST(b AS INTEGER)",
            "printf('%.15g %.17g %!.17g %f %e',a,a,a,a,a)",
            "b=a",
            "d=b",
        ] {
            bench.check(text);
        }
    }
    bench.finish(0);
}
