//! Our tokenizers against FTS5's: every code point, any bytes, a hundred thousand words.

use std::collections::BTreeSet;

use rootpage::fts5::config::Config;
use rootpage::fts5::tokenizer::{Found, Scratch, Tokenizer};

use super::real::{self, Instance, Numbers};

fn ours(tokenize: &str, texts: &[Vec<u8>]) -> Vec<Instance> {
    let config = Config::parse(&["x".to_owned(), format!("tokenize=\"{tokenize}\"")]).unwrap();
    let Found::BuiltIn(tokenizer) = Tokenizer::find(&config.tokenizer).unwrap() else { panic!("{tokenize}") };
    let mut scratch = Scratch::default();
    let mut out = Vec::new();
    for (i, text) in texts.iter().enumerate() {
        let mut position = 0;
        tokenizer.tokenize(text, &mut scratch, |t| {
            out.push((t.text[..t.text.len().min(32768)].to_vec(), i as i64 + 1, 0, position));
            position += 1;
        });
    }
    out.sort();
    out
}

fn agree(tokenize: &str, texts: &[Vec<u8>]) {
    let (a, b) = (ours(tokenize, texts), real::tokens(tokenize, texts));
    if a != b {
        let i = a.iter().zip(&b).position(|(a, b)| a != b).unwrap_or(a.len().min(b.len()));
        let text = |x: Option<&Instance>| x.map(|x| (String::from_utf8_lossy(&x.0).into_owned(), x.1, x.3));
        panic!("{tokenize}: {} and {} tokens; ours {:?}, FTS5 {:?}", a.len(), b.len(), text(a.get(i)), text(b.get(i)));
    }
}

#[test]
fn every_code_point() {
    let every: Vec<char> = (1..=0x10_ffff).filter_map(char::from_u32).collect();
    // Alone, within a word, at its end: tokens of up to 3 places a code point; several code points a row.
    let texts: Vec<Vec<u8>> =
        every.chunks(64).map(|chunk| chunk.iter().flat_map(|c| format!("{c} a{c}b x{c} ").into_bytes()).collect()).collect();
    agree("unicode61", &texts);
    // Where something folds or has a category of note; beyond, the planes are alike.
    let few: Vec<Vec<u8>> = texts.iter().take(0x1_2000 / 64).cloned().collect();
    for tokenize in [
        "unicode61 remove_diacritics 2",
        "unicode61 remove_diacritics 0 categories 'L* M* N* S* Zs Cn'",
        "unicode61 categories 'Lu Mn P* Cf'",
        "trigram",
        "trigram remove_diacritics 1",
        "trigram case_sensitive 1",
        "ascii",
    ] {
        agree(tokenize, &few);
    }
}

#[test]
fn options_and_any_bytes() {
    let mut n = Numbers(7);
    let mut texts: Vec<Vec<u8>> = (0..400).map(|i| real::text(&mut n, i % 40, true)).collect();
    texts.extend((0..300).map(|i| (0..i % 97).map(|_| n.next() as u8).collect()));
    texts.extend((0..200).map(|i| (0..i % 50).map(|_| n.pick(&[0, b'a', b'B', 0x80, 0xbf, 0xc3, 0xe2, 0xf0, 0xf4, 0xff, b' '])).collect()));
    texts.push(vec![b'q'; 70_000]);
    texts.push("żółw".repeat(9000).into_bytes());
    for tokenize in [
        "unicode61",
        "unicode61 remove_diacritics 0",
        "unicode61 remove_diacritics 2",
        "unicode61 tokenchars '-_.' separators 'aé日'",
        "unicode61 separators 'éü' tokenchars 'éü😀{' categories 'L* N* Co Mn'",
        "unicode61 categories 'N*'",
        "unicode61 categories ''",
        "unicode61 categories 'L* LC' separators 'x' tokenchars 'x'",
        "ascii",
        "ascii tokenchars '@.' separators 'xyz'",
        "porter",
        "porter ascii",
        "porter porter unicode61 remove_diacritics 2",
        "trigram",
        "trigram case_sensitive 1",
        "trigram remove_diacritics 1",
        "porter trigram",
    ] {
        agree(tokenize, &texts);
    }
}

#[test]
fn porter_on_a_hundred_thousand_words() {
    const SUFFIXES: &[&str] = &[
        "", "s", "es", "sses", "ies", "ss", "eed", "ed", "ing", "at", "bl", "iz", "y", "ational", "tional", "enci", "anci", "izer", "logi",
        "bli", "alli", "entli", "eli", "ousli", "ization", "ation", "ator", "alism", "iveness", "fulness", "ousness", "aliti", "iviti",
        "biliti", "icate", "ative", "alize", "iciti", "ical", "ful", "ness", "al", "ance", "ence", "er", "ic", "able", "ible", "ant",
        "ement", "ment", "ent", "ion", "ou", "ism", "ate", "iti", "ous", "ive", "ize", "e", "l", "ll", "tt", "ion", "sion", "tion", "ying",
        "yed",
    ];
    let mut n = Numbers(99);
    let mut words = BTreeSet::new();
    while words.len() < 120_000 {
        let mut word = String::new();
        for _ in 0..n.below(4) {
            word.push_str(
                n.pick(&["", "b", "c", "d", "f", "g", "l", "m", "n", "p", "r", "s", "t", "st", "tr", "w", "x", "y", "z", "qu", "é"]),
            );
            word.push_str(n.pick(&["a", "e", "i", "o", "u", "y", "ea", "ou"]));
            word.push_str(n.pick(&["", "b", "d", "g", "k", "l", "ll", "m", "n", "p", "r", "s", "ss", "t", "tt", "w", "x", "y", "z", "zz"]));
        }
        word.push_str(n.pick(SUFFIXES));
        if n.below(3) == 0 {
            word.push_str(n.pick(SUFFIXES));
        }
        if !word.is_empty() {
            words.insert(word);
        }
    }
    let texts: Vec<Vec<u8>> =
        words.iter().collect::<Vec<_>>().chunks(200).map(|c| c.iter().flat_map(|w| format!("{w} ").into_bytes()).collect()).collect();
    agree("porter", &texts);
    // The machine's own word list, when it has one.
    if let Ok(list) = std::fs::read("/usr/share/dict/words") {
        agree("porter", &list.chunks(4000).map(<[u8]>::to_vec).collect::<Vec<_>>());
    }
}
