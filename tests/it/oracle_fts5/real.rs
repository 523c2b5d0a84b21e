//! A real FTS5 and what it says.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, params};

/// A token in the index: term, rowid, column, position.
pub type Instance = (Vec<u8>, i64, usize, i64);

pub fn bytes(value: ValueRef<'_>) -> Vec<u8> {
    match value {
        ValueRef::Text(b) | ValueRef::Blob(b) => b.to_vec(),
        _ => Vec::new(),
    }
}

/// Everything in the main index of a table, sorted, as fts5vocab tells it.
pub fn instances(db: &Connection, table: &str, columns: &[&str]) -> Vec<Instance> {
    db.execute_batch(&format!("DROP TABLE IF EXISTS temp.vocab; CREATE VIRTUAL TABLE temp.vocab USING fts5vocab(main, {table}, instance)"))
        .unwrap();
    let mut select = db.prepare("SELECT term, doc, col, offset FROM temp.vocab").unwrap();
    let mut rows = select.query([]).unwrap();
    let mut out = Vec::new();
    while let Some(r) = rows.next().unwrap() {
        let column: Option<String> = r.get(2).unwrap();
        let column = column.map_or(0, |c| columns.iter().position(|name| *name == c).unwrap());
        let offset: Option<i64> = r.get(3).unwrap();
        out.push((bytes(r.get_ref(0).unwrap()), r.get(1).unwrap(), column, offset.unwrap_or(0)));
    }
    out.sort();
    out
}

/// The tokens that a real FTS5 makes of texts, one row each from rowid 1 on.
pub fn tokens(tokenize: &str, texts: &[Vec<u8>]) -> Vec<Instance> {
    let db = Connection::open_in_memory().unwrap();
    db.execute_batch(&format!("CREATE VIRTUAL TABLE t USING fts5(x, content='', tokenize=\"{tokenize}\"); BEGIN")).unwrap();
    {
        let mut insert = db.prepare("INSERT INTO t(rowid, x) VALUES(?, CAST(? AS TEXT))").unwrap();
        for (i, text) in texts.iter().enumerate() {
            insert.execute(params![i as i64 + 1, text]).unwrap();
        }
    }
    db.execute_batch("COMMIT").unwrap();
    instances(&db, "t", &["x"])
}

/// A small deterministic generator of numbers.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

const SCRIPTS: &[&str] = &[
    "the",
    "quick",
    "Brown",
    "FOX",
    "running",
    "jumps",
    "over",
    "lazy",
    "database",
    "recovery",
    "pages",
    "naïve",
    "café",
    "Ærøskøbing",
    "Åse",
    "ﬁn",
    "İstanbul",
    "straße",
    "Ελλάδα",
    "ΑΘΗΝΑ",
    "ώρα",
    "привет",
    "МИР",
    "ёлка",
    "日本語",
    "検索",
    "中文文本",
    "한국어",
    "עברית",
    "العربية",
    "हिन्दी",
    "😀",
    "👩‍👩‍👧",
    "e\u{301}",
    "A\u{30a}\u{301}",
    "x_y",
    "foo-bar",
    "3.14",
    "2026-11-29",
    "{\"json\":true}",
    "tool_call",
    "ǆ",
    "ẞ",
];

/// Text in many scripts, with now and then a NUL or bytes that are no UTF-8.
pub fn text(n: &mut Numbers, words: usize, dirty: bool) -> Vec<u8> {
    let mut out = Vec::new();
    for _ in 0..words {
        out.extend_from_slice(n.pick(SCRIPTS).as_bytes());
        if n.below(3) == 0 {
            out.extend_from_slice(format!("{}", n.below(5000)).as_bytes());
        }
        match n.below(if dirty { 40 } else { 30 }) {
            0 => out.push(b'\n'),
            1 => out.extend_from_slice(b", "),
            2 => {}
            30 => out.push(0),
            31 => out.extend_from_slice(&[0xff, 0xfe]),
            32 => out.extend_from_slice(&[0xe2, 0x9c]),
            33 => out.extend_from_slice(&[0x80, 0xbf, 0xbf]),
            34 => out.extend_from_slice(&[0xed, 0xa0, 0x80]),
            35 => out.extend_from_slice(&[0xc1, 0x81, 0xf8, 0x88, 0x80, 0x80, 0x80, 0xfc]),
            _ => out.push(b' '),
        }
    }
    out
}
