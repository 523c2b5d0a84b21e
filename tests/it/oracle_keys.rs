//! Index keys of `sort::key` against the order and the equality of real SQLite, and indexes built with them.

use std::fs::File;

use rootpage::format::record::encode_record;
use rootpage::format::{Encoding, Value};
use rootpage::ids::{PageNo, PageSize, RootPage};
use rootpage::schema::Collation;
use rootpage::schema::key_order::compare_values;
use rootpage::sort::Sorter;
use rootpage::sort::key::KeyOrder;
use rootpage::write::{DatabaseWriter, IndexTree, Settings, TableTree};
use rusqlite::Connection;
use rusqlite::types::ValueRef;

/// A value that owns its bytes.
#[derive(Debug, Clone, PartialEq)]
enum Owned {
    Null,
    Int(i64),
    Real(f64),
    Text(Vec<u8>),
    Blob(Vec<u8>),
}

impl Owned {
    fn value(&self) -> Value<'_> {
        match self {
            Owned::Null => Value::Null,
            Owned::Int(n) => Value::Int(*n),
            Owned::Real(r) => Value::Real(*r),
            Owned::Text(t) => Value::Text(t),
            Owned::Blob(b) => Value::Blob(b),
        }
    }
}

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides
    }
}

/// Values that lie close together: few letters, numbers near powers of two, strange text.
fn values(dice: &mut Dice, n: usize, encoding: Encoding) -> Vec<Owned> {
    let mut out = vec![Owned::Null, Owned::Int(0), Owned::Real(0.0), Owned::Real(-0.0), Owned::Real(f64::INFINITY)];
    while out.len() < n {
        let near = |dice: &mut Dice| {
            let n = (1_i64 << dice.roll(63)).wrapping_add(dice.roll(5) as i64 - 2);
            if dice.roll(2) == 0 { n } else { n.wrapping_neg() }
        };
        out.push(match dice.roll(10) {
            0 => Owned::Null,
            1 | 2 => Owned::Int(near(dice)),
            3 => Owned::Real(near(dice) as f64 * [1.0, 0.5, 2.0, 1e300, 1e-300][dice.roll(5) as usize]),
            4 => Owned::Blob((0..dice.roll(6)).map(|_| [0, 1, 0xff, b'a'][dice.roll(4) as usize]).collect()),
            5..=7 => {
                let letters = ['a', 'A', 'b', 'Z', ' ', '\0', 'é', '[', '\u{ffff}', '\u{10000}', '\u{10ffff}'];
                let text: String = (0..dice.roll(7)).map(|_| letters[dice.roll(11) as usize]).collect();
                Owned::Text(encoding.from_utf8(text.as_bytes()).into_owned())
            }
            _ => {
                // Bytes that need not be text: lone surrogates, cut sequences.
                let bytes = [0, 0x20, 0x41, 0x61, 0xd8, 0xdc, 0xdf, 0xff, 0xc3, 0x80];
                let pairs = dice.roll(5) * 2;
                Owned::Text((0..pairs).map(|_| bytes[dice.roll(10) as usize]).collect())
            }
        });
    }
    out
}

fn open(encoding: Encoding) -> Connection {
    let c = Connection::open_in_memory().unwrap();
    let name = match encoding {
        Encoding::Utf8 => "UTF-8",
        Encoding::Utf16Le => "UTF-16le",
        Encoding::Utf16Be => "UTF-16be",
    };
    c.execute_batch(&format!("PRAGMA encoding = '{name}'; CREATE TABLE s(id INTEGER PRIMARY KEY, v)")).unwrap();
    c
}

fn insert(c: &Connection, values: &[Owned]) {
    let mut plain = c.prepare("INSERT INTO s(v) VALUES(?)").unwrap();
    let mut text = c.prepare("INSERT INTO s(v) VALUES(CAST(? AS TEXT))").unwrap();
    for v in values {
        match v {
            Owned::Null => plain.execute([rusqlite::types::Null]),
            Owned::Int(n) => plain.execute([n]),
            Owned::Real(r) => plain.execute([r]),
            Owned::Blob(b) => plain.execute([b]),
            Owned::Text(t) => text.execute([t]),
        }
        .unwrap();
    }
}

const COLLATIONS: [(&str, Collation); 3] = [("BINARY", Collation::Binary), ("NOCASE", Collation::NoCase), ("RTRIM", Collation::RTrim)];

#[test]
fn order_and_equality_are_those_of_sqlite() {
    let mut dice = Dice(0x1234_5678_9abc_def1);
    for encoding in [Encoding::Utf8, Encoding::Utf16Le, Encoding::Utf16Be] {
        for round in 0..6 {
            let values = values(&mut dice, 700, encoding);
            let c = open(encoding);
            insert(&c, &values);
            // The bytes arrived as they are.
            let stored: i64 = c.query_row("SELECT sum(length(CAST(v AS BLOB))) FROM s WHERE typeof(v) = 'text'", [], |r| r.get(0)).unwrap();
            let meant: usize = values.iter().map(|v| if let Owned::Text(t) = v { t.len() } else { 0 }).sum();
            assert_eq!(stored, meant as i64);
            for (name, collation) in &COLLATIONS {
                for desc in [false, true] {
                    let what = format!("{encoding:?} {name} desc {desc} round {round}");
                    let order = KeyOrder::new([(collation, desc)], encoding).unwrap();
                    let mut keys: Vec<(Vec<u8>, usize)> = values
                        .iter()
                        .enumerate()
                        .map(|(i, v)| {
                            let mut key = Vec::new();
                            order.push(&mut key, 0, v.value());
                            (key, i)
                        })
                        .collect();
                    keys.sort();
                    let sql = format!("SELECT id FROM s ORDER BY v COLLATE {name} {}, id", if desc { "DESC" } else { "" });
                    let mut st = c.prepare(&sql).unwrap();
                    let got: Vec<usize> = st.query_map([], |r| r.get::<_, i64>(0)).unwrap().map(|id| id.unwrap() as usize - 1).collect();
                    let ours: Vec<usize> = keys.iter().map(|k| k.1).collect();
                    if let Some(i) = (0..ours.len()).find(|&i| ours[i] != got[i]) {
                        panic!("{what}: {:?} against {:?}", values[ours[i]], values[got[i]]);
                    }
                    keys.dedup_by(|a, b| a.0 == b.0);
                    let distinct: i64 = c
                        .query_row(&format!("SELECT count(*) FROM (SELECT 1 FROM s GROUP BY v COLLATE {name})"), [], |r| r.get(0))
                        .unwrap();
                    assert_eq!(keys.len() as i64, distinct, "{what}");
                }
            }
        }
    }
}

#[test]
fn keys_and_comparison_agree() {
    let mut dice = Dice(0x0bad_5eed_0bad_5eed);
    for encoding in [Encoding::Utf8, Encoding::Utf16Le, Encoding::Utf16Be] {
        let values = values(&mut dice, 500, encoding);
        for (name, collation) in &COLLATIONS {
            let order = KeyOrder::new([(collation, false)], encoding).unwrap();
            let key = |v: &Owned| {
                let mut out = Vec::new();
                order.push(&mut out, 0, v.value());
                out
            };
            for a in &values {
                for b in &values {
                    let compared = compare_values(a.value(), b.value(), collation, encoding);
                    assert_eq!(compared, Some(key(a).cmp(&key(b))), "{encoding:?} {name} {a:?} {b:?}");
                }
            }
        }
    }
}

#[test]
fn unknown_collations_have_no_order() {
    let other = Collation::named(&rootpage::schema::Name::new(b"german"));
    assert_eq!(KeyOrder::new([(&Collation::Binary, false), (&other, true)], Encoding::Utf8), None);
}

#[test]
fn indexes_built_from_sorted_keys_are_whole() {
    let mut dice = Dice(0xfeed_beef_cafe_f00d);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    for encoding in [Encoding::Utf8, Encoding::Utf16Le, Encoding::Utf16Be] {
        let a = values(&mut dice, 4000, encoding);
        let mut b = values(&mut dice, 4000, encoding);
        b.reverse();
        let file = File::create(&path).unwrap();
        let settings = Settings { encoding, ..Settings::new(PageSize::new(1024).unwrap()) };
        let mut db = DatabaseWriter::new(&file, &path, settings).unwrap();
        let mut plans = Vec::new();
        for (i, (na, ca)) in COLLATIONS.iter().enumerate() {
            for (j, (nb, cb)) in COLLATIONS.iter().enumerate() {
                for (da, db) in [(false, false), (true, false), (false, true), (true, true)] {
                    let dir = |d| if d { "DESC" } else { "" };
                    let name = format!("i{i}{j}{}{}", u8::from(da), u8::from(db));
                    let sql = format!("CREATE INDEX {name} ON s(a COLLATE {na} {}, b COLLATE {nb} {})", dir(da), dir(db));
                    plans.push((name, sql, KeyOrder::new([(ca, da), (cb, db)], encoding).unwrap()));
                }
            }
        }
        let roots = db.reserve_roots(plans.len() + 1).unwrap();
        let mut table = TableTree::new(&db, roots[0]);
        let mut payload = Vec::new();
        for (i, (a, b)) in a.iter().zip(&b).enumerate() {
            payload.clear();
            encode_record(&mut payload, [a.value(), b.value()].into_iter());
            table.push(&mut db, i as i64 + 1, &[&payload]).unwrap();
        }
        table.finish(&mut db).unwrap();
        for (n, (_, _, order)) in plans.iter().enumerate() {
            let mut sorter = Sorter::new(if n % 2 == 0 { 50_000 } else { 10 << 20 }, dir.path());
            let mut key = Vec::new();
            for (i, (a, b)) in a.iter().zip(&b).enumerate() {
                let entry = [a.value(), b.value(), Value::Int(i as i64 + 1)];
                payload.clear();
                encode_record(&mut payload, entry.into_iter());
                key.clear();
                order.encode(&mut key, entry);
                sorter.push(&key, &payload).unwrap();
            }
            let mut tree = IndexTree::new(&db, roots[n + 1]);
            let mut sorted = sorter.finish().unwrap();
            while let Some((_, payload)) = sorted.next().unwrap() {
                tree.push(&mut db, &[payload]).unwrap();
            }
            tree.finish(&mut db).unwrap();
        }
        let mut schema = TableTree::new(&db, RootPage(PageNo::ONE));
        let mut row = |db: &mut DatabaseWriter<&File>, n: usize, kind: &str, name: &str, sql: &str| {
            let text: Vec<_> = [kind, name, "s", sql].iter().map(|t| encoding.from_utf8(t.as_bytes()).into_owned()).collect();
            let mut payload = Vec::new();
            let root = Value::Int(i64::from(roots[n].0.get()));
            let values = [Value::Text(&text[0]), Value::Text(&text[1]), Value::Text(&text[2]), root, Value::Text(&text[3])];
            encode_record(&mut payload, values.into_iter());
            schema.push(db, n as i64 + 1, &[&payload]).unwrap();
        };
        row(&mut db, 0, "table", "s", "CREATE TABLE s(a, b)");
        for (n, (name, sql, _)) in plans.iter().enumerate() {
            row(&mut db, n + 1, "index", name, sql);
        }
        schema.finish(&mut db).unwrap();
        db.finish().unwrap();
        let c = Connection::open(&path).unwrap();
        let text: String = c.query_row("PRAGMA integrity_check(5)", [], |r| r.get(0)).unwrap();
        assert_eq!(text, "ok", "{encoding:?}");
    }
}

/// The values that the other tests order arrive as they are.
#[test]
fn values_read_back_with_their_class() {
    let mut dice = Dice(77);
    let values = values(&mut dice, 300, Encoding::Utf8);
    let c = open(Encoding::Utf8);
    insert(&c, &values);
    let mut st = c.prepare("SELECT v FROM s ORDER BY id").unwrap();
    let mut rows = st.query([]).unwrap();
    for v in &values {
        let row = rows.next().unwrap().unwrap();
        let same = match (row.get_ref(0).unwrap(), v) {
            (ValueRef::Null, Owned::Null) => true,
            (ValueRef::Integer(a), Owned::Int(b)) => a == *b,
            (ValueRef::Real(a), Owned::Real(b)) => a == *b,
            (ValueRef::Text(a), Owned::Text(b)) | (ValueRef::Blob(a), Owned::Blob(b)) => a == &b[..],
            _ => false,
        };
        assert!(same, "{v:?}");
    }
}
