//! JSON functions.

use super::harness::{Bench, Dice, quote};

const TEXTS: &[&str] = &[
    r#"{"a":1,"b":[1,2.5,"x",null,true,false],"c":{"d":{"e":"deep"}}}"#,
    r#" { "a" : 1 , "a" : 2 , "ä" : "ö" , "a b" : 3 , "" : 4 } "#,
    "[]",
    "{}",
    "[[],[[]],{}]",
    "[1,2,3,]",
    "{a:1,'b':'two',$c_1:+3,}",
    "[,]",
    "{,}",
    "[1 2]",
    "{\"a\" 1}",
    "{\"a\":1 \"b\":2}",
    "",
    " ",
    "nul",
    "null",
    "true",
    "false",
    "truex",
    "true_",
    "{true:1}",
    "{nullx:1}",
    "{inf:1}",
    "5",
    "-5",
    "+5",
    "-",
    "05",
    "-05",
    "5.",
    ".5",
    "-.5",
    "+.5",
    ".",
    "-.",
    "5.e3",
    "5e",
    "5e+",
    "5e+3",
    "5E-3",
    "1.5e400",
    "1..2",
    "1.2.3",
    "1e5e5",
    "1e5.5",
    "0x1F",
    "-0x1f",
    "+0xff",
    "0x",
    "0xFFFFFFFFFFFFFFFF",
    "0x8000000000000000",
    "-0x8000000000000000",
    "0x00000000000000000001",
    "0x1FFFFFFFFFFFFFFFFF",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "123456789012345678901234567890",
    "Infinity",
    "-Infinity",
    "+inf",
    "-infin",
    "infx",
    "NaN",
    "QNaN",
    "snan",
    "[NaN,Infinity,-Infinity]",
    r#""text""#,
    r#""tab\tquote\"back\\slash\/ \b\f\n\r""#,
    r#""\u0041\u00e4\u20ac\ud83d\ude00""#,
    r#""\ud83d""#,
    r#""\u0000x""#,
    r#""\u12""#,
    r#""\x41\v\0\'""#,
    r#""\01""#,
    r#""\q""#,
    r#"'single "quoted" it\'s'"#,
    "\"line\\\ncontinued\"",
    "\"line\\\r\ncontinued\"",
    "\"raw\ttab and \nline\"",
    "\"line\\\u{2028}sep\"",
    "\"open",
    "/* c */ [1, // x\n2 /**/ ] // end",
    "/*/ [1]",
    "[1] /* open",
    "\u{feff}[1]",
    "\u{a0}[1\u{2003}]\u{3000}",
    "[1]x",
    "[1]]",
    "[1",
    "{\"a\":",
    "{\"a\"}",
    "{1:2}",
    "{\"a\":1}}",
    r#"{"\u0061":1,"b\"c":2,"x.y":3,"z[0]":4}"#,
    r#"{"a":{"b":[{"c":[10,20,30]}]}}"#,
    r#"{\u0061b:5, é: 6, a\u0062 : 7}"#,
    r#"[1,[2,[3,[4,[5]]]]]"#,
    "[1,{\"a\":[1,{\"b\":2}],\"c\":[]},\"s\"]",
];

const PATHS: &[&str] = &[
    "$",
    "$.a",
    "$.b",
    "$.b[0]",
    "$.b[2]",
    "$.b[#]",
    "$.b[#-1]",
    "$.b[#-9]",
    "$.c.d.e",
    "$.c.d",
    "$.\"a b\"",
    "$.\"\"",
    "$.",
    "$[",
    "$[0]",
    "$[1]",
    "$[#-1]",
    "$[00]",
    "$[0",
    "$[x]",
    "$[-1]",
    "$[#-]",
    "$[#+1]",
    "$[99999999999999999999]",
    "$a",
    "",
    "a",
    "$.a.b",
    "$.a.b[0].c[1]",
    "$[1][1][0]",
    "$.\"x.y\"",
    "$.\"z[0]\"",
    "$.\"b\\\"c\"",
    "$.\"\\u0061\"",
    "$.ä",
    "$.é",
    "$.ab",
    "$.\"open",
    "$..a",
    "$[0][0]",
    "$[1].a[1].b",
    "$.$c_1",
    "x",
    "@",
    "$.a ",
    " $.a",
    "$.\"a\"x",
    "$.\"a\".b",
];

#[test]
fn texts_and_paths() {
    let mut bench = Bench::new();
    for text in TEXTS {
        bench.store(&[&quote(text), "NULL", "NULL", "NULL", "NULL", "NULL", "NULL"]);
        for f in
            ["json_valid(a)", "json(a)", "json_type(a)", "json_array_length(a)", "json_valid(a,2)", "json_valid(a,4)", "json_valid(a,0)"]
        {
            bench.check(f);
        }
        for path in PATHS {
            let p = quote(path);
            for f in ["json_extract(a,P)", "json_type(a,P)", "json_array_length(a,P)", "a->P", "a->>P"] {
                bench.check(&f.replace('P', &p));
            }
        }
        for n in ["0", "1", "-1", "-2", "7", "1.5", "NULL", "'[1]'", "'[#-1]'", "'[]'", "x'61'"] {
            bench.check(&format!("a->{n}"));
            bench.check(&format!("a->>{n}"));
        }
        bench.check("json_extract(a,'$.a','$.b')");
        bench.check("json_extract(a,'$','$[0]','$.nothing')");
        bench.check("json_extract(a,'$.a',NULL)");
        bench.check("json_extract(a)");
        bench.check("typeof(json_extract(a,'$.a')) || coalesce(json_extract(a,'$.a'),'-')");
    }
    bench.finish(0);
}

#[test]
fn arguments_that_are_no_text() {
    let mut bench = Bench::new();
    for value in ["NULL", "5", "-2.5", "1e300", "x'5b315d'", "x'7b7d'", "x''", "x'ff'", "9e999"] {
        bench.store(&[value, "NULL", "NULL", "NULL", "NULL", "NULL", "NULL"]);
        for f in [
            "json_valid(a)",
            "json(a)",
            "json_type(a)",
            "json_type(a,'$')",
            "json_array_length(a)",
            "a->'$'",
            "a->>0",
            "json_valid(a,NULL)",
        ] {
            bench.check(f);
        }
    }
    bench.finish(24);
}

#[test]
fn broken_texts() {
    let mut bench = Bench::new();
    let mut dice = Dice(7);
    let pieces = [
        "{", "}", "[", "]", ",", ":", "\"a\"", "'b'", "1", "-2", ".5", "3.", "1e3", "true", "null", "inf", "nan", " ", "\n", "/*x*/",
        "//y\n", "a", "$", "\\", "\\u0041", "+", "0x1f", "\"\\n\"", "é", "\u{a0}", "\"", "'",
    ];
    for _ in 0..3000 {
        let text: String = (0..1 + dice.roll(9)).map(|_| pieces[dice.roll(pieces.len())]).collect();
        bench.store(&[&quote(&text), "NULL", "NULL", "NULL", "NULL", "NULL", "NULL"]);
        bench.check("json_valid(a)");
        bench.check("json_valid(a,2)");
        bench.check("json(a)");
        bench.check("a->>'$.a'");
        bench.check("a->>'$[0]'");
    }
    bench.finish(0);
}

#[test]
fn deep_texts() {
    let mut bench = Bench::new();
    for depth in [10, 999, 1000, 1001, 5000] {
        let text = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        bench.store(&[&quote(&text), "NULL", "NULL", "NULL", "NULL", "NULL", "NULL"]);
        bench.check("json_valid(a)");
        bench.check("json(a)");
        for steps in [5, 998, 999, 1000] {
            bench.check(&format!("json_type(a,'${}')", "[0]".repeat(steps)));
        }
    }
    bench.finish(0);
}
