//! Exports lose nothing: what a sink writes reads back as the same values, judged by real SQLite and by parsers of others.

use rootpage::format::{Encoding, Value};
use rootpage::report::export::{ColumnInfo, Csv, JsonLines, RowSink, RowView, Sql, TableInfo};
use rusqlite::Connection;
use rusqlite::types::ValueRef;

const REALS: [f64; 12] = [0.0, -0.0, 1.0, -1.5, 0.1, 1e16, 1e300, 5e-324, f64::MAX, f64::MIN_POSITIVE, f64::INFINITY, f64::NEG_INFINITY];

fn column(name: &str) -> ColumnInfo {
    ColumnInfo { name: name.to_owned(), ..ColumnInfo::default() }
}

fn table(encoding: Encoding) -> TableInfo {
    TableInfo {
        name: "odd \"name\"\n".to_owned(),
        columns: vec![column("rowid"), column("b\"\u{1b}")],
        has_rowid: true,
        encoding,
        sql: Some("CREATE TABLE \"odd \"\"name\"\"\n\"(\"rowid\", \"b\"\"\u{1b}\") -- comment".to_owned()),
    }
}

/// Values with text as this encoding stores it.
fn values(encoding: Encoding) -> Vec<Value<'static>> {
    let leak = |b: Vec<u8>| -> &'static [u8] { Box::leak(b.into_boxed_slice()) };
    let mut all = vec![Value::Null, Value::Int(0), Value::Int(i64::MIN), Value::Int(i64::MAX), Value::Int((1 << 53) + 1)];
    all.extend(REALS.map(Value::Real));
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..4_000 {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        let r = f64::from_bits(seed);
        if r.is_finite() {
            all.push(Value::Real(r));
        }
        // Doubles as people have them: money, sensor values, seconds.
        all.push(Value::Real(f64::from(u32::try_from(seed >> 32).unwrap()) / 1e3));
        all.push(Value::Real(f64::from(u32::try_from(seed >> 32).unwrap()) * 1e-9 + 1.7e9));
    }
    for text in [
        "",
        "a",
        "it's",
        "NULL",
        "12",
        "x'00'",
        "line\r\nbreak",
        "nul\0inside",
        "größe 日本 🦀",
        "\u{feff}bom",
        "\"quoted\",comma",
        " pad ",
    ] {
        all.push(Value::Text(leak(encoding.from_utf8(text.as_bytes()).into_owned())));
    }
    match encoding {
        Encoding::Utf8 => all.extend([&b"\xff"[..], b"a\xc3", b"\xed\xa0\x80", b"\xf5\x80\x80\x80"].map(Value::Text)),
        _ => all.extend([&b"\x00\xd8"[..], b"\xd8\x00\x41\x00"].map(Value::Text)),
    }
    all.extend([&b""[..], b"\x00", b"\xff\x00'"].map(Value::Blob));
    all
}

fn export(sink: &mut dyn RowSink, table: &TableInfo, values: &[Value<'_>]) {
    sink.begin_table(table).unwrap();
    for (i, v) in values.iter().enumerate() {
        sink.row(&RowView { rowid: Some(i64::try_from(i).unwrap() * 3 - 7), values: &[*v, Value::Int(1)] }).unwrap();
    }
    sink.end_table().unwrap();
    sink.finish().unwrap();
}

#[test]
fn sql_gives_sqlite_the_same_values() {
    for encoding in [Encoding::Utf8, Encoding::Utf16Le, Encoding::Utf16Be] {
        let (table, values) = (table(encoding), values(encoding));
        let mut out = Vec::new();
        export(&mut Sql::new(&mut out), &table, &values);
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(std::str::from_utf8(&out).unwrap()).unwrap();
        // CAST to BLOB shows the bytes of text as they are stored.
        let mut q = db
            .prepare("SELECT _rowid_, typeof(\"rowid\"), \"rowid\", CAST(\"rowid\" AS BLOB) FROM \"odd \"\"name\"\"\n\" ORDER BY _rowid_")
            .unwrap();
        let mut rows = q.query([]).unwrap();
        for (i, v) in values.iter().enumerate() {
            let row = rows.next().unwrap().unwrap();
            assert_eq!(row.get::<_, i64>(0).unwrap(), i64::try_from(i).unwrap() * 3 - 7);
            let kind: String = row.get(1).unwrap();
            match (*v, kind.as_str()) {
                (Value::Null, "null") => {}
                (Value::Int(n), "integer") => assert_eq!(row.get::<_, i64>(2).unwrap(), n),
                (Value::Real(r), "real") => assert_eq!(row.get::<_, f64>(2).unwrap().to_bits(), r.to_bits(), "{r:?}"),
                (Value::Text(t), "text") | (Value::Blob(t), "blob") => match row.get_ref(3).unwrap() {
                    ValueRef::Blob(b) => assert_eq!(b, t, "{encoding:?} {v:?}"),
                    other => panic!("{other:?}"),
                },
                (v, kind) => panic!("{v:?} came back as {kind}"),
            }
        }
        assert!(rows.next().unwrap().is_none());
    }
}

#[test]
fn sequence_and_statistics_come_back() {
    let source = Connection::open_in_memory().unwrap();
    source
        .execute_batch(
            "CREATE TABLE t(id INTEGER PRIMARY KEY AUTOINCREMENT, a, g AS (a*2)); CREATE INDEX i ON t(a);
             INSERT INTO t(id,a) VALUES(5,1),(9,2); DELETE FROM t WHERE id=9; ANALYZE;",
        )
        .unwrap();
    let mut out = Vec::new();
    let mut sink = Sql::new(&mut out);
    let (e, name) = (Encoding::Utf8, |n: &str| n.to_owned());
    sink.begin_table(&TableInfo {
        name: name("sqlite_sequence"),
        columns: vec![column("name"), column("seq")],
        has_rowid: true,
        encoding: e,
        sql: Some(name("CREATE TABLE sqlite_sequence(name,seq)")),
    })
    .unwrap();
    sink.row(&RowView { rowid: Some(1), values: &[Value::Text(b"t"), Value::Int(9)] }).unwrap();
    sink.end_table().unwrap();
    sink.begin_table(&TableInfo {
        name: name("t"),
        columns: vec![
            ColumnInfo { name: name("id"), rowid_alias: true, generated: false },
            column("a"),
            ColumnInfo { name: name("g"), generated: true, rowid_alias: false },
        ],
        has_rowid: true,
        encoding: e,
        sql: Some(name("CREATE TABLE t(id INTEGER PRIMARY KEY AUTOINCREMENT, a, g AS (a*2))")),
    })
    .unwrap();
    sink.row(&RowView { rowid: Some(5), values: &[Value::Int(5), Value::Int(1), Value::Int(2)] }).unwrap();
    sink.end_table().unwrap();
    sink.begin_table(&TableInfo {
        name: name("sqlite_stat1"),
        columns: vec![column("tbl"), column("idx"), column("stat")],
        has_rowid: true,
        encoding: e,
        sql: Some(name("CREATE TABLE sqlite_stat1(tbl,idx,stat)")),
    })
    .unwrap();
    sink.row(&RowView { rowid: Some(1), values: &[Value::Text(b"t"), Value::Text(b"i"), Value::Text(b"2 1")] }).unwrap();
    sink.end_table().unwrap();
    sink.finish().unwrap();
    let db = Connection::open_in_memory().unwrap();
    db.execute_batch(std::str::from_utf8(&out).unwrap()).unwrap();
    assert_eq!(db.query_row("SELECT seq FROM sqlite_sequence WHERE name='t'", [], |r| r.get::<_, i64>(0)).unwrap(), 9);
    assert_eq!(db.query_row("SELECT g FROM t WHERE id=5", [], |r| r.get::<_, i64>(0)).unwrap(), 2);
    assert_eq!(db.query_row("SELECT stat FROM sqlite_stat1", [], |r| r.get::<_, String>(0)).unwrap(), "2 1");
}

#[test]
fn json_lines_are_exact() {
    for encoding in [Encoding::Utf8, Encoding::Utf16Le] {
        let (table, values) = (table(encoding), values(encoding));
        let mut out = Vec::new();
        export(&mut JsonLines::new(&mut out), &table, &values);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.lines().count(), values.len());
        for (line, v) in text.lines().zip(&values) {
            let json: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!(json["table"], table.name);
            assert!(json["rowid"].is_i64());
            let got = &json["values"]["rowid"];
            match *v {
                Value::Null => assert!(got.is_null()),
                Value::Int(n) => assert_eq!(got.as_i64(), Some(n)),
                Value::Real(r) if r.is_finite() => {
                    assert!(got.is_f64(), "{line}");
                    // The exact digits are checked with a parser that rounds correctly.
                    let digits = line.split("\"values\":{\"rowid\":").nth(1).unwrap().split(',').next().unwrap();
                    assert_eq!(digits.parse::<f64>().unwrap().to_bits(), r.to_bits());
                }
                Value::Real(r) => assert_eq!(got["real"], if r > 0.0 { "inf" } else { "-inf" }),
                Value::Text(t) if encoding.is_valid(t) => assert_eq!(got.as_str().unwrap().as_bytes(), &*encoding.to_utf8(t)),
                Value::Text(t) => {
                    assert_eq!(got["text"], hex(t));
                    assert_eq!(got["encoding"].as_str(), (encoding != Encoding::Utf8).then_some("utf-16le"));
                }
                Value::Blob(b) => assert_eq!(got["blob"], hex(b)),
            }
        }
    }
}

#[test]
fn csv_tells_null_from_empty_and_text_from_numbers() {
    let (table, values) = (table(Encoding::Utf8), values(Encoding::Utf8));
    let mut out = Vec::new();
    export(&mut Csv::new(&mut out), &table, &values);
    // Another's parser sees the same fields.
    let mut reader = csv::ReaderBuilder::new().from_reader(&out[..]);
    assert_eq!(reader.headers().unwrap(), vec!["_rowid_", "rowid", "b\"\u{1b}"]);
    let records: Vec<_> = reader.byte_records().map(|r| r.unwrap()).collect();
    assert_eq!(records.len(), values.len());
    for (record, v) in records.iter().zip(&values) {
        let field = &record[1];
        match *v {
            Value::Null => assert_eq!(field, b""),
            Value::Int(n) => assert_eq!(field, n.to_string().as_bytes()),
            Value::Real(r) => assert_eq!(std::str::from_utf8(field).unwrap().parse::<f64>().unwrap().to_bits(), r.to_bits()),
            Value::Text(t) if std::str::from_utf8(t).is_ok() => assert_eq!(field, t),
            Value::Text(t) => assert_eq!(field, format!("t'{}'", hex(t)).as_bytes()),
            Value::Blob(b) => assert_eq!(field, format!("x'{}'", hex(b)).as_bytes()),
        }
    }
    // Only quotes tell these apart.
    let text = String::from_utf8_lossy(&out);
    assert!(text.contains("\n-7,,1\n") && text.contains(",\"\",1\n") && text.contains(",\"12\",1\n") && text.contains(",\"NULL\",1\n"));
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
