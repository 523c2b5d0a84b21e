//! The postings of one chunk of rows in memory, and their sorted form, a *run*.
//!
//! A run is a list of records in order of terms: varint length and bytes of the term (with its index byte), varint first and
//! last rowid, varint length and bytes of the doclist without its first rowid. A doclist is written as it will stand in the
//! segment, so that later only the first rowids are written anew.

#![expect(clippy::arithmetic_side_effects, reason = "computes on lengths of its own buffers, one chunk of text is a few MiB")]

use crate::bytes::{put_varint, put_varint_i64, varint_len};
use crate::fts5::config::Detail;
use crate::ids::{idx, narrow, wide};

/// The doclist of one term, growing.
#[derive(Debug)]
struct List {
    hash: u64,
    /// The first bytes of the term, so that most terms are told apart without another look.
    head: Head,
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

/// The first 16 bytes of a term with its index byte, zeros behind a shorter one.
type Head = [u8; 16];

/// A slot of the hash table: high bits of the hash and the number of the list from 1, 0 for none.
type Slot = (u32, u32);

/// No column yet, under `detail=column`.
const NO_COLUMN: u32 = u32::MAX;

/// A hash table from terms to their doclists. Rows come in order of their rowids.
#[derive(Debug)]
pub struct Postings {
    detail: Detail,
    slots: Vec<Slot>,
    lists: Vec<List>,
    terms: Vec<u8>,
}

impl Postings {
    pub fn new(detail: Detail) -> Postings {
        Postings { detail, slots: vec![(0, 0); 1 << 12], lists: Vec::new(), terms: Vec::new() }
    }

    /// Adds a token: index byte, token, row, column, position in the column.
    #[inline]
    pub fn add(&mut self, index: u8, token: &[u8], rowid: i64, column: u32, position: u32) {
        let head = head(index, token);
        let hash = hash(&head, token);
        let detail = self.detail;
        let list = match self.find(hash, &head, token) {
            Ok(list) => list,
            Err(slot) => {
                self.insert(slot, hash, head, index, token, rowid);
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

    #[inline]
    fn find(&mut self, hash: u64, head: &Head, token: &[u8]) -> Result<&mut List, usize> {
        let mask = self.slots.len() - 1;
        let tag = tag(hash);
        let mut slot = narrow(hash) & mask;
        let place = loop {
            match self.slots.get(slot).copied() {
                None | Some((_, 0)) => return Err(slot),
                Some((t, n)) if t == tag => {
                    let place = idx(n) - 1;
                    let same = self.lists.get(place).is_some_and(|l| {
                        l.head == *head
                            && l.term_len == token.len() + 1
                            && (l.term_len <= head.len()
                                || self.terms.get(l.term_at + 1..l.term_at + l.term_len).is_some_and(|t| t == token))
                    });
                    if same {
                        break place;
                    }
                }
                Some(_) => {}
            }
            slot = (slot + 1) & mask;
        };
        self.lists.get_mut(place).ok_or(slot)
    }

    fn insert(&mut self, slot: usize, hash: u64, head: Head, index: u8, token: &[u8], rowid: i64) {
        let term_at = self.terms.len();
        self.terms.push(index);
        self.terms.extend_from_slice(token);
        let mut list = List {
            hash,
            head,
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
            *place = (tag(hash), n);
        }
        if self.lists.len() * 2 > self.slots.len() {
            self.grow();
        }
    }

    fn grow(&mut self) {
        let mask = self.slots.len() * 2 - 1;
        let mut slots = vec![(0_u32, 0_u32); mask + 1];
        for (n, list) in (1_u32..).zip(&self.lists) {
            let mut slot = narrow(list.hash) & mask;
            while slots.get(slot).is_some_and(|s| s.1 != 0) {
                slot = (slot + 1) & mask;
            }
            if let Some(place) = slots.get_mut(slot) {
                *place = (tag(list.hash), n);
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
            let list = self.lists.get(idx(n));
            list.and_then(|l| self.terms.get(l.term_at..l.term_at + l.term_len)).unwrap_or_default()
        };
        order.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| term(a.1).cmp(term(b.1))));
        let mut out = Vec::with_capacity(size);
        for (_, n) in order {
            if let Some(list) = self.lists.get(idx(n)) {
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
fn head(index: u8, token: &[u8]) -> Head {
    let mut head = [0; 16];
    let (first, rest) = head.split_at_mut(1);
    if let Some(place) = first.first_mut() {
        *place = index;
    }
    let n = token.len().min(rest.len());
    if let (Some(place), Some(from)) = (rest.get_mut(..n), token.get(..n)) {
        place.copy_from_slice(from);
    }
    head
}

#[inline]
fn tag(hash: u64) -> u32 {
    u32::try_from(hash >> 32).unwrap_or(0)
}

#[inline]
fn hash(head: &Head, token: &[u8]) -> u64 {
    const K: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut h = wide(token.len()).wrapping_mul(K);
    let mut mix = |word: &[u8; 8]| h = (h.rotate_left(23) ^ u64::from_ne_bytes(*word)).wrapping_mul(K);
    head.as_chunks::<8>().0.iter().for_each(&mut mix);
    if let Some(rest) = token.get(head.len() - 1..) {
        let (words, last) = rest.as_chunks::<8>();
        words.iter().for_each(&mut mix);
        let mut tail = [0; 8];
        for (place, b) in tail.iter_mut().zip(last) {
            *place = *b;
        }
        mix(&tail);
    }
    h ^ h >> 29
}
