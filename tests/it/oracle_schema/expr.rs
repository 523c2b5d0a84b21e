//! Expressions against the values that SQLite computes.

use super::row::StoredRow;
use rootpage::expr::{Datum, Fault, eval};
use rootpage::format::{Encoding, Value};
use rootpage::schema::{TableLayout, ddl};
use rusqlite::Connection;
use rusqlite::types::ValueRef;

use super::Dice;

const COLUMNS: &str = "i INTEGER, r REAL, x TEXT COLLATE NOCASE, n NUMERIC, b, v TEXT COLLATE RTRIM";

const LITERALS: [&str; 60] = [
    "0",
    "1",
    "-1",
    "2",
    "7",
    "100",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "1.5",
    "-2.5",
    "0.1",
    "1e3",
    "1e300",
    "-1e-5",
    "3.0",
    "123456789.125",
    "0.1+0.2",
    "1e15",
    "1e16",
    "1e17",
    "12345678901234567890",
    "NULL",
    "''",
    "'abc'",
    "'ABC'",
    "'abc  '",
    "'1'",
    "'1.0'",
    "' 12 '",
    "'1e2'",
    "'0x10'",
    "'12abc'",
    "'-5'",
    "'.5'",
    "'5.'",
    "'é'",
    "'日本語'",
    "'a%b_c'",
    "'[a-c]*'",
    "'9223372036854775808'",
    "x''",
    "x'616263'",
    "x'00ff'",
    "x'31'",
    "'{\"a\":1}'",
    "'2024-02-29'",
    "true",
    "false",
    "0x1F",
    "'a''b'",
    "'+7'",
    "'1.5e'",
    "'inf'",
    "'%'",
    "'A_C'",
    "'a b c'",
    "'1 2'",
    "2.0",
    "49.47",
];
const ROWS: [&str; 5] = [
    "5, 5, 'Abc', '5', '5', 'x '",
    "-3, 2.5, '12', 2.75, x'616263', 'abc'",
    "NULL, NULL, NULL, NULL, NULL, NULL",
    "9223372036854775807, 1e18, 'ABC', 'zz', 1.5, '1.50'",
    "0, 0.0, '', 1e20, 'Abc', ' '",
];

fn leaf(d: &mut Dice) -> String {
    if d.chance(40) { (*d.pick(&["i", "r", "x", "n", "b", "v", "rowid"])).to_owned() } else { (*d.pick(&LITERALS)).to_owned() }
}

fn expression(d: &mut Dice, depth: usize) -> String {
    if depth == 0 || d.chance(15) {
        return leaf(d);
    }
    let mut e = || expression(d, depth - 1);
    let (a, b, c) = (e(), e(), e());
    match d.roll(40) {
        0..=4 => format!("({a} {} {b})", d.pick(&["+", "-", "*", "/", "%"])),
        5 => format!("({a} {} {b})", d.pick(&["&", "|", "<<", ">>"])),
        6..=10 => format!("({a} {} {b})", d.pick(&["=", "<>", "<", "<=", ">", ">=", "IS", "IS NOT", "IS DISTINCT FROM", "=="])),
        11 => format!("({a} || {b})"),
        12 | 13 => format!("({a} {} {b})", d.pick(&["AND", "OR"])),
        14 => format!("({}({a}))", d.pick(&["NOT ", "-", "+", "~"])),
        15 => format!("({a} {})", d.pick(&["ISNULL", "NOTNULL", "IS TRUE", "IS NOT FALSE", "IS FALSE", "IS NOT TRUE"])),
        16 => format!("({a} {} {b} AND {c})", d.pick(&["BETWEEN", "NOT BETWEEN"])),
        17 => format!("({a} {} ({b}, {c}))", d.pick(&["IN", "NOT IN"])),
        18 => format!("({a} IN ({b}))"),
        19 => format!("({a} {} {b})", d.pick(&["LIKE", "GLOB", "NOT LIKE"])),
        20 => format!("({a} LIKE {b} ESCAPE {})", d.pick(&["'a'", "'_'", "'%'"])),
        21 => format!("CASE WHEN {a} THEN {b} ELSE {c} END"),
        22 => format!("CASE {a} WHEN {b} THEN {c} END"),
        23..=25 => format!("CAST({a} AS {})", d.pick(&["INTEGER", "TEXT", "REAL", "NUMERIC", "BLOB"])),
        26 => format!("({a} COLLATE {})", d.pick(&["NOCASE", "BINARY", "RTRIM"])),
        27 => format!(
            "{}({a})",
            d.pick(&["abs", "sign", "hex", "length", "lower", "upper", "typeof", "quote", "unicode", "octet_length", "unhex"])
        ),
        28 => format!("{}({a})", d.pick(&["trim", "ltrim", "rtrim", "round", "likely", "unlikely", "char"])),
        29 => format!("{}({a}, {b})", d.pick(&["ifnull", "nullif", "min", "max", "instr", "coalesce", "concat"])),
        30 => format!("{}({a}, {b})", d.pick(&["trim", "ltrim", "rtrim", "like", "glob"])),
        31 => format!("substr({a}, {}, {})", d.pick(&["1", "2", "-2", "0", "-5"]), d.pick(&["1", "2", "-1", "100", "0", "-3"])),
        32 => format!("substr({a}, {b})"),
        33 => format!("replace({a}, {b}, {c})"),
        34 => format!("round({a}, {})", d.pick(&["0", "1", "2", "5", "-1", "NULL"])),
        35 => format!("iif({a}, {b}, {c})"),
        36 => format!("concat_ws({a}, {b}, {c})"),
        37 => format!("max({a}, {b}, {c})"),
        _ => leaf(d),
    }
}

pub struct Stage {
    db: Connection,
    rows: Vec<(i64, Vec<rusqlite::types::Value>)>,
}

impl Stage {
    pub fn new() -> Stage {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(&format!("CREATE TABLE t({COLUMNS})")).unwrap();
        for row in ROWS {
            db.execute_batch(&format!("INSERT INTO t VALUES({row})")).unwrap();
        }
        let mut q = db.prepare("SELECT rowid, * FROM t").unwrap();
        let rows = q.query_map([], |r| Ok((r.get(0)?, (1..7).map(|i| r.get(i).unwrap()).collect()))).unwrap().map(Result::unwrap).collect();
        drop(q);
        Stage { db, rows }
    }

    /// Whether all rows give the same; panics where they differ. `false` when our side does not know the expression.
    pub fn check(&self, e: &str) -> bool {
        let sql = format!("CREATE TABLE t({COLUMNS}, CHECK({e}))");
        let Ok(mut q) = self.db.prepare(&format!("SELECT {e} FROM t")) else { return true };
        let parsed = ddl::parse(sql.as_bytes());
        let table = parsed.definition.as_table().unwrap();
        assert!(parsed.problem.is_none(), "{e}: {:?}", parsed.problem);
        let layout = TableLayout::new(table, 4);
        let mut got_rows = q.query([]).unwrap();
        for (rowid, row) in &self.rows {
            let values: Vec<Value<'_>> = row
                .iter()
                .map(|v| match v {
                    rusqlite::types::Value::Null => Value::Null,
                    rusqlite::types::Value::Integer(n) => Value::Int(*n),
                    rusqlite::types::Value::Real(x) => Value::Real(*x),
                    rusqlite::types::Value::Text(t) => Value::Text(t.as_bytes()),
                    rusqlite::types::Value::Blob(b) => Value::Blob(b),
                })
                .collect();
            let stored = StoredRow::new(table, &layout, &values, Some(*rowid), Encoding::Utf8);
            let ours = eval(&table.checks[0].expr, &stored);
            let theirs = got_rows.next();
            match (ours, theirs) {
                (Err(Fault::Unknown(_)), _) => return false,
                (Err(Fault::Raises(_)), Err(_)) => return true,
                (Ok(d), Ok(Some(r))) => {
                    let want = match r.get_ref(0).unwrap() {
                        ValueRef::Null => Datum::Null,
                        ValueRef::Integer(n) => Datum::Int(n),
                        ValueRef::Real(x) => Datum::Real(x),
                        ValueRef::Text(t) => Datum::Text(t.into()),
                        ValueRef::Blob(b) => Datum::Blob(b.into()),
                    };
                    assert_eq!(d, want, "row {rowid}: {e}");
                }
                (ours, theirs) => panic!("row {rowid}: {e}\nours {ours:?}\ntheirs {:?}", theirs.map(|r| r.is_some())),
            }
        }
        true
    }
}

#[test]
fn expressions_agree_with_sqlite() {
    let stage = Stage::new();
    let mut known = 0;
    for seed in 0..60_000 {
        let mut d = Dice::new(seed);
        let depth = 1 + d.roll(3);
        known += usize::from(stage.check(&expression(&mut d, depth)));
    }
    assert!(known > 55_000, "{known}");
}

#[test]
fn every_function_over_every_literal() {
    let stage = Stage::new();
    for f in ["abs", "sign", "hex", "length", "lower", "typeof", "quote", "unicode", "octet_length", "unhex", "trim", "round", "char"] {
        for a in LITERALS {
            stage.check(&format!("{f}({a})"));
        }
    }
    for ty in ["INTEGER", "TEXT", "REAL", "NUMERIC", "BLOB"] {
        for a in LITERALS {
            stage.check(&format!("CAST({a} AS {ty})"));
        }
    }
    for a in LITERALS {
        for b in LITERALS {
            for f in ["min", "max", "instr", "ifnull", "nullif", "trim", "round", "concat", "glob", "like"] {
                stage.check(&format!("{f}({a},{b})"));
            }
            for op in ["+", "*", "/", "%", "||", "<", "=", "IS", "LIKE", "<<", "->", "->>"] {
                stage.check(&format!("{a} {op} {b}"));
            }
        }
    }
}

/// SQLite computes 18 digits with a power of ten that is cut to 64 bits: in the last of 17 digits it can be one off the exact
/// value, where ours is exact. Numbers of up to 15 digits always agree.
#[test]
fn reals_print_as_sqlite_prints_them() {
    let db = Connection::open_in_memory().unwrap();
    let mut q = db.prepare("SELECT CAST(? AS TEXT)").unwrap();
    let (mut same, mut all) = (0, 0);
    for seed in 0..20_000 {
        let mut d = Dice::new(seed);
        let (x, short) = match d.roll(4) {
            0 => (d.roll(1 << 50) as f64 / 1e7 / 3.0, false),
            1 => (d.roll(1 << 40) as f64 / 1000.0, true),
            2 => (d.roll(1 << 20) as f64 / 1024.0, true),
            _ => (format!("{}e{}", d.roll(1_000_000), d.roll(40) as i32 - 20).parse().unwrap(), true),
        };
        let want: String = q.query_row([x], |r| r.get(0)).unwrap();
        let got = rootpage::expr::real_text(x);
        all += 1;
        same += usize::from(got == want);
        assert!(got == want || !short, "{got} {want}");
    }
    assert!(same * 100 > all * 98, "{same} of {all}");
}

#[test]
fn json_agrees_with_sqlite() {
    let stage = Stage::new();
    let docs = [
        "{}",
        "[]",
        "{\"a\":1,\"b\":[1,2.5,{\"c\":null}],\"d\":\"x\\ny\\u00e9\"}",
        "[1,[2,[3]],true,false,null,\"s\"]",
        "5",
        "-5",
        "1.5e3",
        "\"text\"",
        "null",
        "true",
        " { \"a\" : 1 , \"a\" : 2 } ",
        "{a:1}",
        "{'a':'it\\'s \"q\"',}",
        "[1,2,]",
        "[+1,.5,5.,0x1F,Infinity,NaN,-Infinity]",
        "{\"a b\":1,\"c.d\":2,\"_x\":3}",
        "{\"_delegate_from\":\"s1\"}",
        "{\"a\":",
        "[1 2]",
        "{\"a\" 1}",
        "01",
        "\"open",
        "\"\\x41\\v\\0\"",
        "// c\n[1]",
        "/*x*/1",
        "\"\\ud83d\\ude00\"",
        "\"\\q\"",
        "{\"a\":{\"b\":{\"c\":[10,20,30]}}}",
        "12345678901234567890",
        "[1,2",
        "abc",
        "",
        "  ",
        "-",
        "[-0, -0.0, 1E5, 1e-2]",
        "{\"\":5}",
        "\"tab\there\"",
        "nul",
        "trueX",
        "{\"a\":1}x",
    ];
    let paths = [
        "$",
        "$.a",
        "$.b[0]",
        "$.b[2].c",
        "$[0]",
        "$[1][1][0]",
        "$[#-1]",
        "$[#]",
        "$.\"a b\"",
        "$.a.b.c[1]",
        "$.",
        "a",
        "$[",
        "$[x]",
        "$x",
        "$.c.d",
        "$.\"c.d\"",
        "$._delegate_from",
        "$[99]",
        "",
        "$.\"",
        "$[#-9]",
    ];
    let mut known = 0;
    for doc in docs {
        let j = format!("'{}'", doc.replace('\'', "''"));
        for f in ["json", "json_valid", "json_type", "json_array_length"] {
            known += usize::from(stage.check(&format!("{f}({j})")));
        }
        known += usize::from(stage.check(&format!("json_valid({j}, 2)")));
        for p in paths {
            for f in ["json_extract", "json_type", "json_array_length"] {
                known += usize::from(stage.check(&format!("{f}({j}, '{p}')")));
            }
            known += usize::from(stage.check(&format!("json_extract({j}, '{p}', '$.a')")));
            known += usize::from(stage.check(&format!("{j} -> '{p}'")));
            known += usize::from(stage.check(&format!("{j} ->> '{p}'")));
        }
        for p in ["0", "-1", "1", "'a b'", "'[0]'", "'a'", "'_x'", "NULL", "'c.d'"] {
            known += usize::from(stage.check(&format!("{j} -> {p}")));
            known += usize::from(stage.check(&format!("{j} ->> {p}")));
        }
    }
    assert!(known > 5000, "{known}");
}
