//! The `porter` tokenizer: English suffixes are taken from the tokens of another tokenizer.
//!
//! FTS5's rules differ from the published algorithm in a few places; these are FTS5's, compared with it word by word in
//! `tests/oracle_fts5.rs`.

/// Longer tokens are passed through.
const LONGEST: usize = 64;

/// A condition on what stands before a suffix.
#[derive(Clone, Copy)]
enum When {
    /// At least one vowel-consonant sequence.
    One,
    /// At least two.
    Two,
    /// At least two, and the last letter is s or t.
    TwoAfterSt,
    /// A vowel.
    Vowel,
    Always,
}

type Rule = (&'static [u8], &'static [u8], When);

const STEP_1B: &[Rule] = &[(b"eed", b"ee", When::One), (b"ed", b"", When::Vowel), (b"ing", b"", When::Vowel)];

const STEP_1B2: &[Rule] = &[(b"at", b"ate", When::Always), (b"bl", b"ble", When::Always), (b"iz", b"ize", When::Always)];

const STEP_2: &[Rule] = &[
    (b"ational", b"ate", When::One),
    (b"tional", b"tion", When::One),
    (b"enci", b"ence", When::One),
    (b"anci", b"ance", When::One),
    (b"izer", b"ize", When::One),
    (b"logi", b"log", When::One),
    (b"bli", b"ble", When::One),
    (b"alli", b"al", When::One),
    (b"entli", b"ent", When::One),
    (b"eli", b"e", When::One),
    (b"ousli", b"ous", When::One),
    (b"ization", b"ize", When::One),
    (b"ation", b"ate", When::One),
    (b"ator", b"ate", When::One),
    (b"alism", b"al", When::One),
    (b"iveness", b"ive", When::One),
    (b"fulness", b"ful", When::One),
    (b"ousness", b"ous", When::One),
    (b"aliti", b"al", When::One),
    (b"iviti", b"ive", When::One),
    (b"biliti", b"ble", When::One),
];

const STEP_3: &[Rule] = &[
    (b"ical", b"ic", When::One),
    (b"ness", b"", When::One),
    (b"icate", b"ic", When::One),
    (b"iciti", b"ic", When::One),
    (b"ful", b"", When::One),
    (b"ative", b"", When::One),
    (b"alize", b"al", When::One),
];

const STEP_4: &[Rule] = &[
    (b"al", b"", When::Two),
    (b"ance", b"", When::Two),
    (b"ence", b"", When::Two),
    (b"er", b"", When::Two),
    (b"ic", b"", When::Two),
    (b"able", b"", When::Two),
    (b"ible", b"", When::Two),
    (b"ant", b"", When::Two),
    (b"ement", b"", When::Two),
    (b"ment", b"", When::Two),
    (b"ent", b"", When::Two),
    (b"ion", b"", When::TwoAfterSt),
    (b"ou", b"", When::Two),
    (b"ism", b"", When::Two),
    (b"ate", b"", When::Two),
    (b"iti", b"", When::Two),
    (b"ous", b"", When::Two),
    (b"ive", b"", When::Two),
    (b"ize", b"", When::Two),
];

/// The stem of a token, or the token itself when it is shorter than 3 or longer than 64 bytes.
pub fn stem<'a>(token: &'a [u8], buffer: &'a mut Vec<u8>) -> &'a [u8] {
    if token.len() < 3 || token.len() > LONGEST {
        return token;
    }
    let word = buffer;
    word.clear();
    word.extend_from_slice(token);
    plural(word);
    if apply(word, STEP_1B) == Applied::Cut && apply(word, STEP_1B2) == Applied::No {
        undouble(word);
    }
    if let Some((b'y', before)) = word.split_last()
        && has_vowel(before)
        && let Some(last) = word.last_mut()
    {
        *last = b'i';
    }
    apply(word, STEP_2);
    apply(word, STEP_3);
    apply(word, STEP_4);
    if let Some((b'e', before)) = word.split_last()
        && (sequences(before) > 1 || sequences(before) == 1 && !ends_cvc(before))
    {
        word.pop();
    }
    if let [.., b'l', b'l'] = word.as_slice()
        && word.split_last().is_some_and(|(_, before)| sequences(before) > 1)
    {
        word.pop();
    }
    word
}

#[derive(PartialEq, Eq)]
enum Applied {
    No,
    /// A suffix was taken off or put in place of another.
    Cut,
    /// `eed` became `ee`, which starts no further step.
    Shortened,
}

/// Applies the first rule whose suffix fits a longer word, if its condition holds.
fn apply(word: &mut Vec<u8>, rules: &[Rule]) -> Applied {
    for (suffix, replacement, when) in rules {
        let Some(stem) = word.strip_suffix(*suffix) else { continue };
        if stem.is_empty() {
            continue;
        }
        let holds = match when {
            When::One => sequences(stem) > 0,
            When::Two => sequences(stem) > 1,
            When::TwoAfterSt => matches!(stem.last(), Some(b's' | b't')) && sequences(stem) > 1,
            When::Vowel => has_vowel(stem),
            When::Always => true,
        };
        if !holds {
            return Applied::No;
        }
        let len = stem.len();
        word.truncate(len);
        word.extend_from_slice(replacement);
        return if *replacement == b"ee" { Applied::Shortened } else { Applied::Cut };
    }
    Applied::No
}

/// Step 1a.
fn plural(word: &mut Vec<u8>) {
    let cut = match word.as_slice() {
        [.., _, b's', b's', b'e', b's'] => 2,
        [_, .., b'i', b'e', b's'] => 2,
        [.., b'e', b's'] => 1,
        [.., b's', b's'] => 0,
        [.., b's'] => 1,
        _ => 0,
    };
    word.truncate(word.len().saturating_sub(cut));
}

/// What follows when `ed` or `ing` went: a doubled consonant is halved, a short stem gets its e back.
fn undouble(word: &mut Vec<u8>) {
    let Some(&last) = word.last() else { return };
    let doubled = matches!(word.as_slice(), [.., a, b] if a == b);
    if doubled && !is_vowel(last, false) && !matches!(last, b'l' | b's' | b'z') {
        word.pop();
    } else if sequences(word) == 1 && ends_cvc(word) {
        word.push(b'e');
    }
}

/// A vowel; y counts as one after a consonant.
fn is_vowel(c: u8, after_consonant: bool) -> bool {
    matches!(c, b'a' | b'e' | b'i' | b'o' | b'u') || after_consonant && c == b'y'
}

/// How many vowel-consonant sequences the stem has, counted to 2.
fn sequences(stem: &[u8]) -> u32 {
    let mut count = 0_u32;
    let mut consonant = false;
    let mut seen_vowel = false;
    for &c in stem {
        consonant = !is_vowel(c, consonant);
        if !consonant {
            seen_vowel = true;
        } else if seen_vowel {
            count = count.saturating_add(1);
            if count > 1 {
                break;
            }
            seen_vowel = false;
        }
    }
    count
}

fn has_vowel(stem: &[u8]) -> bool {
    stem.iter().enumerate().any(|(i, &c)| is_vowel(c, i > 0))
}

/// Whether the stem ends consonant, vowel, consonant, the last not w, x or y.
fn ends_cvc(stem: &[u8]) -> bool {
    if matches!(stem.last(), Some(b'w' | b'x' | b'y') | None) {
        return false;
    }
    let mut consonant = false;
    let mut shape = 0_u8;
    for &c in stem {
        consonant = !is_vowel(c, consonant);
        shape = ((shape << 1) | u8::from(consonant)) & 7;
    }
    shape == 5
}

#[cfg(test)]
mod tests {
    #[test]
    fn well_known_words() {
        let mut b = Vec::new();
        for (word, stem) in
            [("relational", "relat"), ("hopping", "hop"), ("filing", "file"), ("ponies", "poni"), ("ies", "ie"), ("aing", "a")]
        {
            assert_eq!(super::stem(word.as_bytes(), &mut b), stem.as_bytes(), "{word}");
        }
    }
}
