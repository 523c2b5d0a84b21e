//! The postings of one chunk of rows in memory, and their sorted form, a *run*.
//!
//! A run is a list of records in order of terms: varint length and bytes of the term (with its index byte), varint first and
//! last rowid, varint length and bytes of the doclist without its first rowid. A doclist is written as it will stand in the
//! segment, so that later only the first rowids are written anew.

#![expect(clippy::arithmetic_side_effects, reason = "computes on lengths of its own buffers, one chunk of text is a few MiB")]

use crate::bytes::{put_varint, put_varint_i64, varint_len};
use crate::fts5::config::Detail;
use crate::ids::wide;

/// The doclist of one term, growing.
#[derive(Debug)]
struct List {
    hash: u64,
    term_at: usize,
    term_len: usize,
    first: i64,
    last: i64,
    column: u32,
    position: u32,
    /// Where the length of the last position list will stand.
    length_at: usize,
    doclist: Vec<u8>,
}

/// No column yet, under `detail=column`.
const NO_COLUMN: u32 = u32::MAX;

/// A hash table from terms to their doclists. Rows come in order of their rowids.
#[derive(Debug)]
pub struct Postings {
    detail: Detail,
    slots: Vec<u32>,
    lists: Vec<List>,
    terms: Vec<u8>,
}

impl Postings {
    pub fn new(detail: Detail) -> Postings {
        Postings { detail, slots: vec![0; 1 << 12], lists: Vec::new(), terms: Vec::new() }
    }

    /// Adds a token: index byte, token, row, column, position in the column.
    #[inline]
    pub fn add(&mut self, index: u8, token: &[u8], rowid: i64, column: u32, position: u32) {
        let hash = hash(index, token);
        let detail = self.detail;
        let list = match self.find(hash, index, token) {
            Ok(list) => list,
            Err(slot) => {
                self.insert(slot, hash, index, token, rowid);
                let Some(list) = self.lists.last_mut() else { return };
                list
            }
        };
        if list.last != rowid {
            list.close(detail);
            put_varint(&mut list.doclist, u64::from_ne_bytes(rowid.wrapping_sub(list.last).to_ne_bytes()));
            list.last = rowid;
            list.open(detail);
        }
        match detail {
            Detail::None => {}
            Detail::Columns => {
                if list.column != column {
                    put_varint(&mut list.doclist, u64::from(column - list.position) + 2);
                    list.column = column;
                    list.position = column;
                }
            }
            Detail::Full => {
                if list.column != column {
                    list.doclist.push(1);
                    put_varint(&mut list.doclist, column.into());
                    list.column = column;
                    list.position = 0;
                }
                let n = position - list.position + 2;
                match u8::try_from(n) {
                    Ok(byte) if byte < 0x80 => list.doclist.push(byte),
                    _ => put_varint(&mut list.doclist, n.into()),
                }
                list.position = position;
            }
        }
    }

    fn find(&mut self, hash: u64, index: u8, token: &[u8]) -> Result<&mut List, usize> {
        let mask = self.slots.len() - 1;
        let mut slot = crate::ids::narrow(hash) & mask;
        let place = loop {
            match self.slots.get(slot).copied() {
                None | Some(0) => return Err(slot),
                Some(n) => {
                    let place = crate::ids::idx(n) - 1;
                    let same = self.lists.get(place).is_some_and(|l| {
                        l.hash == hash
                            && l.term_len == token.len() + 1
                            && self.terms.get(l.term_at..l.term_at + l.term_len).is_some_and(|t| t.split_first() == Some((&index, token)))
                    });
                    if same {
                        break place;
                    }
                }
            }
            slot = (slot + 1) & mask;
        };
        self.lists.get_mut(place).ok_or(slot)
    }

    fn insert(&mut self, slot: usize, hash: u64, index: u8, token: &[u8], rowid: i64) {
        let term_at = self.terms.len();
        self.terms.push(index);
        self.terms.extend_from_slice(token);
        let mut list = List {
            hash,
            term_at,
            term_len: token.len() + 1,
            first: rowid,
            last: rowid,
            column: 0,
            position: 0,
            length_at: 0,
            doclist: Vec::new(),
        };
        list.open(self.detail);
        self.lists.push(list);
        if let (Some(place), Ok(n)) = (self.slots.get_mut(slot), u32::try_from(self.lists.len())) {
            *place = n;
        }
        if self.lists.len() * 2 > self.slots.len() {
            self.grow();
        }
    }

    fn grow(&mut self) {
        let mask = self.slots.len() * 2 - 1;
        let mut slots = vec![0_u32; mask + 1];
        for (n, list) in (1_u32..).zip(&self.lists) {
            let mut slot = crate::ids::narrow(list.hash) & mask;
            while slots.get(slot).is_some_and(|&s| s != 0) {
                slot = (slot + 1) & mask;
            }
            if let Some(place) = slots.get_mut(slot) {
                *place = n;
            }
        }
        self.slots = slots;
    }

    /// All doclists in order of their terms, as a run.
    pub fn into_run(mut self) -> Vec<u8> {
        let mut order: Vec<(u64, u32)> = Vec::with_capacity(self.lists.len());
        let mut size = 0;
        for (n, list) in (0_u32..).zip(&mut self.lists) {
            list.close(self.detail);
            let term = self.terms.get(list.term_at..list.term_at + list.term_len).unwrap_or_default();
            order.push((sort_key(term), n));
            size += list.term_len + list.doclist.len() + 24;
        }
        let term = |n: u32| {
            let list = self.lists.get(crate::ids::idx(n));
            list.and_then(|l| self.terms.get(l.term_at..l.term_at + l.term_len)).unwrap_or_default()
        };
        order.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| term(a.1).cmp(term(b.1))));
        let mut out = Vec::with_capacity(size);
        for (_, n) in order {
            if let Some(list) = self.lists.get(crate::ids::idx(n)) {
                put_record(&mut out, term(n), list.first, list.last, &list.doclist);
            }
        }
        out
    }
}

/// Appends a record of a run.
pub fn put_record(out: &mut Vec<u8>, term: &[u8], first: i64, last: i64, doclist: &[u8]) {
    put_varint(out, wide(term.len()));
    out.extend_from_slice(term);
    put_varint_i64(out, first);
    put_varint_i64(out, last);
    put_varint(out, wide(doclist.len()));
    out.extend_from_slice(doclist);
}

impl List {
    #[inline]
    fn open(&mut self, detail: Detail) {
        self.position = 0;
        match detail {
            Detail::None => {}
            Detail::Columns => self.column = NO_COLUMN,
            Detail::Full => self.column = 0,
        }
        if detail != Detail::None {
            self.length_at = self.doclist.len();
            self.doclist.push(0);
        }
    }

    /// Writes the length of the last position list into the place left for it, which may be too small.
    #[inline]
    fn close(&mut self, detail: Detail) {
        if detail == Detail::None {
            return;
        }
        let size = self.doclist.len() - self.length_at - 1;
        let twice = wide(size) * 2;
        let Some(place) = self.doclist.get_mut(self.length_at) else { return };
        match u8::try_from(twice) {
            Ok(byte) if byte < 0x80 => *place = byte,
            _ => {
                let mut length = Vec::with_capacity(varint_len(twice));
                put_varint(&mut length, twice);
                self.doclist.splice(self.length_at..=self.length_at, length);
            }
        }
    }
}

/// The first eight bytes of a term, so that most comparisons need no more.
pub fn sort_key(term: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let n = term.len().min(8);
    if let (Some(place), Some(from)) = (bytes.get_mut(..n), term.get(..n)) {
        place.copy_from_slice(from);
    }
    u64::from_be_bytes(bytes)
}

#[inline]
fn hash(index: u8, token: &[u8]) -> u64 {
    const K: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut h = u64::from(index).wrapping_mul(K);
    let (words, rest) = token.as_chunks::<8>();
    for w in words {
        h = (h.rotate_left(23) ^ u64::from_ne_bytes(*w)).wrapping_mul(K);
    }
    let mut last = [0; 8];
    for (place, b) in last.iter_mut().zip(rest) {
        *place = *b;
    }
    h = (h.rotate_left(23) ^ u64::from_ne_bytes(last) ^ wide(token.len()) << 56).wrapping_mul(K);
    h ^ h >> 29
}
