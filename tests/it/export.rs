//! Exports lose nothing: what a sink writes reads back as the same values, judged by real SQLite and by parsers of others.

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, RowAccessor};
use rootpage::format::{Encoding, Value};
use rootpage::report::export::{ColumnInfo, Csv, Folder, JsonLines, Parquet, Place, RowSink, RowView, Sql, TableInfo, WithPlaces};
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
        sink.row(&RowView { rowid: Some(i64::try_from(i).unwrap() * 3 - 7), values: &[*v, Value::Int(1)], place: Place::default() })
            .unwrap();
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
    sink.row(&RowView { rowid: Some(1), values: &[Value::Text(b"t"), Value::Int(9)], place: Place::default() }).unwrap();
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
    sink.row(&RowView { rowid: Some(5), values: &[Value::Int(5), Value::Int(1), Value::Int(2)], place: Place::default() }).unwrap();
    sink.end_table().unwrap();
    sink.begin_table(&TableInfo {
        name: name("sqlite_stat1"),
        columns: vec![column("tbl"), column("idx"), column("stat")],
        has_rowid: true,
        encoding: e,
        sql: Some(name("CREATE TABLE sqlite_stat1(tbl,idx,stat)")),
    })
    .unwrap();
    sink.row(&RowView { rowid: Some(1), values: &[Value::Text(b"t"), Value::Text(b"i"), Value::Text(b"2 1")], place: Place::default() })
        .unwrap();
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

/// The value of a Parquet field, whatever its form, as the test compares it.
fn field_of(field: &Field, encoding: Encoding) -> Option<String> {
    match field {
        Field::Null => None,
        Field::Long(n) => Some(format!("integer {n}")),
        Field::Double(r) => Some(format!("real {:016x}", r.to_bits())),
        Field::Str(text) => Some(format!("text {}", hex(&encoding.from_utf8(text.as_bytes())))),
        Field::Bytes(bytes) => Some(format!("blob {}", hex(bytes.data()))),
        Field::Group(classes) => {
            let mut given = classes.get_column_iter().filter(|(_, f)| !matches!(f, Field::Null));
            let (name, field) = given.next()?;
            assert!(given.next().is_none(), "one class a value");
            let shown = field_of(field, encoding)?;
            Some(if name == "ill_formed_text" { shown.replace("blob", "text") } else { shown })
        }
        other => panic!("{other:?}"),
    }
}

fn expected(value: Value<'_>) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Int(n) => Some(format!("integer {n}")),
        Value::Real(r) => Some(format!("real {:016x}", r.to_bits())),
        Value::Text(stored) => Some(format!("text {}", hex(stored))),
        Value::Blob(bytes) => Some(format!("blob {}", hex(bytes))),
    }
}

#[test]
fn parquet_holds_every_value_in_its_class() {
    let folder = tempfile::tempdir().unwrap();
    for encoding in [Encoding::Utf8, Encoding::Utf16Le, Encoding::Utf16Be] {
        let all = values(encoding);
        let mut out = Vec::new();
        export(&mut Parquet::new(&mut out, folder.path()), &table(encoding), &all);
        let reader = SerializedFileReader::new(bytes::Bytes::from(out)).unwrap();
        let mut seen = 0;
        for (i, row) in reader.get_row_iter(None).unwrap().enumerate() {
            let row = row.unwrap();
            // The column that hides `rowid` gives the rowid another name.
            assert_eq!(row.get_column_iter().next().unwrap().0, "_rowid_");
            assert_eq!(row.get_long(0).unwrap(), i64::try_from(i).unwrap() * 3 - 7);
            let field = row.get_column_iter().nth(1).unwrap().1;
            assert_eq!(field_of(field, encoding), expected(all[i]), "row {i}");
            assert_eq!(row.get_long(2).unwrap(), 1);
            seen += 1;
        }
        assert_eq!(seen, all.len());
    }
}

#[test]
fn parquet_columns_of_one_class_are_plain() {
    let folder = tempfile::tempdir().unwrap();
    let columns = [
        ("integers", vec![Value::Int(i64::MIN), Value::Null, Value::Int(i64::MAX)]),
        ("reals", vec![Value::Real(-0.0), Value::Real(f64::INFINITY), Value::Null]),
        ("exact", vec![Value::Int(-(1 << 53)), Value::Real(0.5), Value::Int(3)]),
        ("nulls", vec![Value::Null; 3]),
        ("blobs", vec![Value::Blob(b""), Value::Blob(b"\x00"), Value::Null]),
    ];
    let info = TableInfo { columns: columns.iter().map(|(n, _)| column(n)).collect(), has_rowid: false, ..table(Encoding::Utf8) };
    let mut out = Vec::new();
    let mut sink = Parquet::new(&mut out, folder.path());
    sink.begin_table(&info).unwrap();
    for i in 0..3 {
        let row: Vec<Value<'_>> = columns.iter().map(|(_, values)| values[i]).collect();
        sink.row(&RowView { rowid: None, values: &row, place: Place::default() }).unwrap();
    }
    sink.end_table().unwrap();
    sink.finish().unwrap();
    drop(sink);
    let reader = SerializedFileReader::new(bytes::Bytes::from(out)).unwrap();
    let schema = reader.metadata().file_metadata().schema_descr();
    let types: Vec<String> = schema.columns().iter().map(|c| format!("{} {}", c.name(), c.physical_type())).collect();
    assert_eq!(types, ["integers INT64", "reals DOUBLE", "exact DOUBLE", "nulls BYTE_ARRAY", "blobs BYTE_ARRAY"]);
    for (i, row) in reader.get_row_iter(None).unwrap().enumerate() {
        for ((name, field), (_, values)) in row.unwrap().get_column_iter().zip(&columns) {
            let wanted = match values[i] {
                Value::Int(n) if name == "exact" => expected(Value::Real(n as f64)),
                other => expected(other),
            };
            assert_eq!(field_of(field, Encoding::Utf8), wanted, "{name} {i}");
        }
    }
}

#[test]
fn a_folder_has_a_file_for_each_table_and_overwrites_none() {
    let folder = tempfile::tempdir().unwrap();
    let fill = |folder: &std::path::Path| {
        let mut sink = Folder::new(folder, "csv", |out| Box::new(Csv::new(out)) as Box<dyn RowSink>)?;
        for name in ["t", "T", "../up"] {
            let info = TableInfo { name: name.to_owned(), columns: vec![column("a")], ..table(Encoding::Utf8) };
            let mut placed = WithPlaces::new(&mut sink);
            placed.begin_table(&info)?;
            let place = Place { how: "adopted", source: "wal frame 7", page: 3, cell: 2 };
            placed.row(&RowView { rowid: Some(1), values: &[Value::Text(name.as_bytes())], place })?;
            placed.end_table()?;
        }
        sink.finish()
    };
    fill(folder.path()).unwrap();
    let mut names: Vec<String> = std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["%2E%2E%2Fup.csv", "T~2.csv", "t.csv"]);
    let text = std::fs::read_to_string(folder.path().join("T~2.csv")).unwrap();
    let header = "\"rowid\",\"rp_how\",\"rp_source\",\"rp_page\",\"rp_cell\",\"a\"";
    assert_eq!(text, format!("{header}\n1,\"adopted\",\"wal frame 7\",3,2,\"T\"\n"));
    let again = fill(folder.path()).unwrap_err().to_string();
    assert!(again.contains("t.csv: already exists"), "{again}");
}
