//! Declarations against `PRAGMA table_xinfo`, `index_list` and `index_xinfo`.

use rootpage::finding::Findings;
use rootpage::schema::{Catalog, Collation, IndexSource, ObjectKind, SchemaRow, ddl};
use rusqlite::Connection;

use super::Dice;

const TYPES: [&str; 32] = [
    "",
    "INTEGER",
    "integer",
    "INT",
    "BIGINT",
    "TEXT",
    "text",
    "VARCHAR(10)",
    "NCHAR(55)",
    "CLOB",
    "BLOB",
    "REAL",
    "DOUBLE PRECISION",
    "FLOAT",
    "NUMERIC",
    "DECIMAL(10,5)",
    "BOOLEAN",
    "DATE",
    "ANY",
    "CHARINT",
    "FLOATING POINT",
    "BLOBTEXT",
    "TEXTBLOB",
    "REALBLOB",
    "\"INTEGER\"",
    "[long type]",
    "`x y`",
    "STRING",
    "UNSIGNED BIG INT",
    "INTEGER (5)",
    "INT INTEGER",
    "xyz(-1, +2.5)",
];
const STRICT_TYPES: [&str; 7] = ["INT", "INTEGER", "REAL", "TEXT", "BLOB", "ANY", "int"];
const NAMES: [&str; 12] = ["a", "b", "c", "\"d d\"", "[e e]", "`f``f`", "'g''g'", "H", "key", "abort", "\"q\"\"q\"", "été"];
const DEFAULTS: [&str; 22] = [
    "1",
    "-1",
    "+2",
    "1.5",
    "-1.5e3",
    "'text'",
    "\"dq\"",
    "bare",
    "NULL",
    "true",
    "FALSE",
    "x'0102'",
    "(1+2)",
    "('a'||'b')",
    "(abs(-3))",
    "CURRENT_TIMESTAMP",
    "0x1F",
    "9223372036854775808",
    "-9223372036854775808",
    "''",
    "(null)",
    "1_000",
];
const COLLATIONS: [&str; 5] = ["NOCASE", "RTRIM", "BINARY", "nocase", "\"NOCASE\""];

fn column(dice: &mut Dice, name: &str, strict: bool, pk: &mut bool) -> String {
    let mut s = name.to_owned();
    let ty = if strict { dice.pick(&STRICT_TYPES) } else { dice.pick(&TYPES) };
    s.push(' ');
    s.push_str(ty);
    let mut generated = false;
    for _ in 0..dice.roll(4) {
        match dice.roll(11) {
            0 => s.push_str(" NOT NULL"),
            1 => s.push_str(" NULL"),
            2 => s.push_str(" UNIQUE"),
            3 if !*pk && dice.chance(60) => {
                *pk = true;
                s.push_str(dice.pick(&[
                    " PRIMARY KEY",
                    " PRIMARY KEY DESC",
                    " PRIMARY KEY ASC",
                    " PRIMARY KEY AUTOINCREMENT",
                    " CONSTRAINT p PRIMARY KEY ON CONFLICT REPLACE",
                ]));
            }
            4 => {
                s.push_str(" COLLATE ");
                s.push_str(dice.pick(&COLLATIONS));
            }
            5 | 6 if !generated => {
                s.push_str(" DEFAULT ");
                s.push_str(dice.pick(&DEFAULTS));
            }
            7 => s.push_str(" CHECK (1 <> 2)"),
            8 => s.push_str(" REFERENCES other(x) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED"),
            9 if dice.chance(50) => {
                generated = true;
                s.push_str(dice.pick(&[" AS (1+1)", " GENERATED ALWAYS AS (2) STORED", " AS ('x') VIRTUAL"]));
            }
            10 => s.push_str(" NOT NULL ON CONFLICT IGNORE"),
            _ => {}
        }
    }
    s
}

fn table(dice: &mut Dice) -> String {
    let strict = dice.chance(15);
    let without = dice.chance(25);
    let mut pk = false;
    let n = 1 + dice.roll(6);
    let first = dice.roll(NAMES.len());
    let names: Vec<&str> = (0..n).map(|i| NAMES[(first + i) % NAMES.len()]).collect();
    let mut parts: Vec<String> = names.iter().map(|n| column(dice, n, strict, &mut pk)).collect();
    for _ in 0..dice.roll(4) {
        let mut list = Vec::new();
        for _ in 0..1 + dice.roll(3) {
            let mut term = (*dice.pick(&names)).to_owned();
            if dice.chance(25) {
                term.push_str(" COLLATE ");
                term.push_str(dice.pick(&COLLATIONS));
            }
            term.push_str(dice.pick(&["", "", "", " DESC", " ASC"]));
            list.push(term);
        }
        let list = list.join(", ");
        let text = match dice.roll(5) {
            0 | 1 if !pk => {
                pk = true;
                format!("PRIMARY KEY ({list})")
            }
            2 | 3 => format!("CONSTRAINT u UNIQUE({list}) {}", dice.pick(&["", "", "ON CONFLICT IGNORE"])),
            4 => "CHECK (length('abc') = 3)".to_owned(),
            _ => format!("FOREIGN KEY ({}) REFERENCES other(x)", dice.pick(&names)),
        };
        parts.push(text);
    }
    let options = match (without, strict) {
        (true, true) => " WITHOUT ROWID, STRICT",
        (true, false) => " WITHOUT ROWID",
        (false, true) => " STRICT",
        _ => "",
    };
    format!("CREATE TABLE t ({}){options}", parts.join(", "))
}

fn index(dice: &mut Dice, n: usize, table: &rootpage::schema::ddl::TableDef) -> String {
    let mut terms = Vec::new();
    for _ in 0..1 + dice.roll(3) {
        let column = &table.columns[dice.roll(table.columns.len())];
        let quoted = format!("\"{}\"", column.name.text().replace('"', "\"\""));
        let mut term = match dice.roll(6) {
            0 => format!("lower({quoted})"),
            1 => format!("{quoted} + 1"),
            2 => format!("({quoted})"),
            _ => quoted,
        };
        if dice.chance(25) {
            term.push_str(" COLLATE ");
            term.push_str(dice.pick(&COLLATIONS));
        }
        term.push_str(dice.pick(&["", "", " DESC", " ASC"]));
        terms.push(term);
    }
    let filter = if dice.chance(30) { " WHERE 1 < 2" } else { "" };
    format!("CREATE {}INDEX i{n} ON t({}){filter}", dice.pick(&["", "UNIQUE "]), terms.join(", "))
}

pub fn rows(db: &Connection) -> Vec<SchemaRow> {
    let mut q = db.prepare("SELECT rowid, type, name, tbl_name, rootpage, sql FROM sqlite_schema").unwrap();
    let text = |r: &rusqlite::Row<'_>, i: usize| match r.get_ref(i).unwrap() {
        rusqlite::types::ValueRef::Text(t) => Some(t.to_vec()),
        _ => None,
    };
    q.query_map([], |r| {
        Ok(SchemaRow {
            rowid: r.get(0)?,
            kind: text(r, 1).unwrap(),
            name: text(r, 2).unwrap(),
            table: text(r, 3).unwrap(),
            root: r.get(4)?,
            sql: text(r, 5),
            ..SchemaRow::default()
        })
    })
    .unwrap()
    .map(Result::unwrap)
    .collect()
}

fn squeeze(s: &str) -> String {
    s.chars().filter(|c| !c.is_whitespace()).collect::<String>().to_ascii_uppercase()
}

fn compare(db: &Connection, sql: &str) {
    let mut findings = Findings::new(100);
    let catalog = Catalog::from_rows(rows(db), &mut findings);
    assert!(findings.kept().iter().all(|f| f.defect.code == rootpage::finding::Code::ExpressionUnknown), "{sql}\n{:?}", findings.kept());
    for object in catalog.objects().iter().skip(1).filter(|o| o.kind == ObjectKind::Table) {
        let table = object.table_def().unwrap();
        let name = object.name.text();
        let mut q = db.prepare("SELECT name, type, \"notnull\", pk, hidden FROM pragma_table_xinfo(?) ORDER BY cid").unwrap();
        let expected: Vec<(String, String, bool, usize, u8)> = q
            .query_map([&name], |r| Ok((r.get(0)?, squeeze(&r.get::<_, String>(1)?), r.get(2)?, r.get::<_, i64>(3)? as usize, r.get(4)?)))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        let pk = |i: usize| {
            let keys = table.primary_key.as_ref().map(|k| k.columns.as_slice()).unwrap_or_default();
            keys.iter().position(|k| k.column == i).map_or(0, |p| p + 1)
        };
        let got: Vec<_> = table
            .columns
            .iter()
            .enumerate()
            .map(|(i, c)| {
                let ty = c.decl_type.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
                (c.name.text(), squeeze(&ty), c.not_null.is_some(), pk(i), c.hidden())
            })
            .collect();
        assert_eq!(got, expected, "{sql}");
        // The affinity shows in what a bare comparison-free copy of the column stores.
        for (i, column) in table.columns.iter().enumerate() {
            let want: String = db
                .query_row("SELECT type FROM pragma_table_xinfo(?) WHERE cid = ?", rusqlite::params![name, i as i64], |r| r.get(0))
                .unwrap();
            let _ = want;
            let _ = column;
        }
        let alias: Option<usize> = table.rowid_alias;
        if !table.without_rowid {
            let auto: bool = db.query_row("SELECT count(*) FROM pragma_index_list(?) WHERE origin = 'pk'", [&name], |r| r.get(0)).unwrap();
            let has_pk = expected.iter().any(|c| c.3 > 0);
            assert_eq!(alias.is_some(), has_pk && !auto, "{sql}");
        }
        let mut q = db.prepare("SELECT name, \"unique\", origin, partial FROM pragma_index_list(?) ORDER BY seq").unwrap();
        let list: Vec<(String, bool, String, bool)> =
            q.query_map([&name], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?, r.get(3)?))).unwrap().map(Result::unwrap).collect();
        for (index, unique, origin, partial) in list {
            let Some(o) = catalog.by_name(index.as_bytes()) else {
                assert!(table.without_rowid && origin == "pk", "{index}: {sql}");
                let layout = object.table_layout.as_ref().unwrap();
                let mut q = db.prepare("SELECT cid, desc, coll, key FROM pragma_index_xinfo(?) ORDER BY seqno").unwrap();
                let want: Vec<(i64, bool, String, bool)> =
                    q.query_map([&index], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?, r.get(3)?))).unwrap().map(Result::unwrap).collect();
                let got: Vec<_> = layout
                    .record
                    .iter()
                    .enumerate()
                    .map(|(i, &c)| {
                        let key = layout.key.get(i);
                        let coll = key.map_or("BINARY".to_owned(), |k| k.collation.name());
                        (c as i64, key.is_some_and(|k| k.desc), coll, key.is_some())
                    })
                    .collect();
                let upper: Vec<_> =
                    want.into_iter().map(|(a, b, c, d)| (a, b, if d { c.to_ascii_uppercase() } else { "BINARY".to_owned() }, d)).collect();
                assert_eq!(got, upper, "{index}: {sql}");
                continue;
            };
            let layout = o.index_layout.as_ref().unwrap_or_else(|| panic!("{index}: {sql}"));
            assert_eq!(layout.unique, unique, "{sql}");
            assert_eq!(layout.filter.is_some(), partial, "{sql}");
            let mut q = db.prepare("SELECT cid, desc, coll, key FROM pragma_index_xinfo(?) ORDER BY seqno").unwrap();
            let want: Vec<(i64, bool, String, bool)> = q
                .query_map([&index], |r| Ok((r.get(0)?, r.get(1)?, r.get::<_, String>(2)?.to_ascii_uppercase(), r.get(3)?)))
                .unwrap()
                .map(Result::unwrap)
                .collect();
            let got: Vec<_> = layout
                .columns
                .iter()
                .enumerate()
                .map(|(i, c)| {
                    let cid = match &c.source {
                        IndexSource::Column(i) => *i as i64,
                        IndexSource::Rowid => -1,
                        IndexSource::Expr(_) => -2,
                    };
                    (cid, c.desc, c.collation.name(), i < layout.declared)
                })
                .collect();
            assert_eq!(got, want, "{index}: {sql}");
        }
    }
}

#[test]
fn declarations_agree_with_sqlite() {
    let (mut accepted, mut refused) = (0, 0);
    for seed in 0..4000 {
        let mut dice = Dice::new(seed);
        let sql = table(&mut dice);
        let db = Connection::open_in_memory().unwrap();
        let parsed = ddl::parse(sql.as_bytes());
        match db.execute_batch(&sql) {
            Ok(()) => {
                accepted += 1;
                assert!(parsed.problem.is_none(), "{sql}\n{:?}", parsed.problem);
                let def = parsed.definition.as_table().unwrap().clone();
                let mut all = sql.clone();
                for n in 0..dice.roll(4) {
                    let sql = index(&mut dice, n, &def);
                    if db.execute_batch(&sql).is_ok() {
                        all.push_str("; ");
                        all.push_str(&sql);
                    }
                }
                compare(&db, &all);
            }
            Err(e) => {
                refused += 1;
                assert!(parsed.problem.is_some(), "SQLite says {e}: {sql}");
                assert_eq!(parsed.definition.as_table().map(|t| t.columns.is_empty()), Some(false), "{sql}");
            }
        }
    }
    assert!(accepted > 1500, "{accepted} accepted, {refused} refused");
}

/// The affinity of a type is what `typeof` says about values put into such a column.
#[test]
fn affinity_agrees_with_sqlite() {
    let db = Connection::open_in_memory().unwrap();
    let extra =
        ["charblob", "blobchar", "floatint", "xINTx", "DOUB", "FLOA", "REALCHAR", "BLOBREAL", "pointx", "TEX T", "any", "date", "ReAl"];
    for (i, ty) in TYPES.iter().chain(&extra).enumerate() {
        db.execute_batch(&format!("CREATE TABLE a{i}(x {ty}); INSERT INTO a{i} VALUES('7'),(7),(x'37'),(7.0)")).unwrap();
        let got: String = db.query_row(&format!("SELECT group_concat(typeof(x)) FROM a{i}"), [], |r| r.get(0)).unwrap();
        let parsed = ddl::parse(format!("CREATE TABLE a(x {ty})").as_bytes());
        let affinity = parsed.definition.as_table().unwrap().columns[0].affinity;
        use rootpage::schema::Affinity::{Blob, Integer, Numeric, Real, Text};
        let want = match affinity {
            Blob => "text,integer,blob,real",
            Text => "text,text,blob,text",
            Integer | Numeric => "integer,integer,blob,integer",
            Real => "real,real,blob,real",
        };
        assert_eq!(got, want, "{ty}");
    }
}

#[test]
fn quoted_and_damaged_names() {
    let parsed = ddl::parse(b"CREATE TABLE \"t\xff\"(a\xfe TEXT, [b\xfd] INT DEFAULT 'x\xfc')");
    assert!(parsed.problem.is_none());
    let table = parsed.definition.as_table().unwrap().clone();
    assert_eq!(table.name.as_bytes(), b"t\xff");
    assert_eq!(table.columns[0].name.as_bytes(), b"a\xfe");
    assert_eq!(table.columns[1].name.as_bytes(), b"b\xfd");
    // Bytes that no SQL has: the tolerant reader.
    let parsed =
        ddl::parse(b"CREATE TABLE t(id INTEGER PRIMARY KEY, na\x01me TEXT NOT NULL DEFAULT 'q', UNIQUE(id), z REAL COLLATE NOCASE");
    assert!(parsed.problem.is_some());
    let table = parsed.definition.as_table().unwrap().clone();
    let names: Vec<_> = table.columns.iter().map(|c| c.name.as_bytes().to_vec()).collect();
    assert_eq!(names, [b"id".to_vec(), b"na\x01me".to_vec(), b"z".to_vec()]);
    assert_eq!(table.rowid_alias, Some(0));
    assert!(table.columns[1].not_null.is_some());
    assert_eq!(table.columns[2].collation, Collation::NoCase);
    assert_eq!(table.unique.len(), 1);
}

#[test]
fn hostile_text_ends() {
    let deep = |open: &str, close: &str, n: usize| format!("CREATE TABLE t(a CHECK({}1{}))", open.repeat(n), close.repeat(n));
    for n in [10, 900, 1100, 200_000] {
        let _ = ddl::parse(deep("(", ")", n).as_bytes());
        let _ = ddl::parse(deep("NOT ", "", n).as_bytes());
        let _ = ddl::parse(deep("- ", "", n).as_bytes());
        let _ = ddl::parse(deep("1+", "", n).as_bytes());
        let _ = ddl::parse(deep("1 AND ", "", n).as_bytes());
        let _ = ddl::parse(deep("CASE WHEN ", " THEN 1 END", n).as_bytes());
        let _ = ddl::parse(deep("abs(", ")", n).as_bytes());
        let _ = ddl::parse(deep("(SELECT ", ")", n).as_bytes());
    }
    let many: String = (0..100_000).map(|i| format!("c{i},")).collect();
    let parsed = ddl::parse(format!("CREATE TABLE t({many}z)").as_bytes());
    assert_eq!(parsed.definition.as_table().unwrap().columns.len(), ddl::MAX_COLUMNS);
    for seed in 0..20_000 {
        let mut dice = Dice::new(seed);
        let mut bytes = table(&mut dice).into_bytes();
        for _ in 0..1 + dice.roll(6) {
            let at = dice.roll(bytes.len());
            match dice.roll(3) {
                0 => bytes[at] = dice.roll(256) as u8,
                1 => bytes.truncate(at.max(1)),
                _ => bytes.insert(at, dice.pick(&[b"(", b")", b"'", b"\"", b"[", b"\0", b"`", b","])[0]),
            }
        }
        let _ = ddl::parse(&bytes);
    }
}
