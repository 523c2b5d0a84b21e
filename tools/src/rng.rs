//! Numbers that look random and are the same in every run.

/// A splitmix64 generator.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// A generator that depends on nothing but the text.
    pub fn new(seed: &str) -> Rng {
        // FNV-1a
        Rng(seed.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)))
    }

    /// 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`; `n` is at least 1.
    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() % n as u64) as usize
    }

    /// A number of the closed range.
    pub fn range(&mut self, from: i64, to: i64) -> i64 {
        from + (self.bits() % (to - from + 1) as u64) as i64
    }

    /// Whether one of `n` equal cases holds.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// An element of a list.
    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }

    /// `n` bytes.
    pub fn bytes(&mut self, n: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(n + 8);
        while out.len() < n {
            out.extend(self.bits().to_le_bytes());
        }
        out.truncate(n);
        out
    }

    /// `n` words of several scripts.
    pub fn words(&mut self, n: usize) -> String {
        const WORDS: &[&str] = &[
            "anchor",
            "birch",
            "copper",
            "drift",
            "ebb",
            "fern",
            "gravel",
            "hollow",
            "ink",
            "jetty",
            "knot",
            "lark",
            "moss",
            "north",
            "otter",
            "pine",
            "quay",
            "reed",
            "slate",
            "tide",
            "ulm",
            "vale",
            "wren",
            "yew",
            "zinc",
            "Straße",
            "élan",
            "Ελλάδα",
            "море",
            "港口",
            "🌊",
            "naïve",
            "O'Neil",
            "a\"b",
        ];
        let mut out = String::new();
        for i in 0..n {
            if i > 0 {
                out.push(' ');
            }
            let word: &'static str = WORDS[self.below(WORDS.len())];
            out.push_str(word);
        }
        out
    }
}
