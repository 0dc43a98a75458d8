//! Plain text: made from HTML, folded into a subject, measured for SMS.

use html2text::config;
use html2text::render::{TaggedLine, TextDecorator};

/// Width of text made from HTML, as mail text is commonly wrapped.
const WIDTH: usize = 76;

/// A subject is one line: line ends and tabs fold into one space with the white space around
/// them, other control characters go, and so does white space at both ends.
#[must_use]
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    let mut rest = text.trim();
    let breaks = |c: char| matches!(c, '\r' | '\n' | '\t' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}');
    while let Some(at) = rest.find(breaks) {
        line.push_str(rest[..at].trim_end());
        line.push(' ');
        rest = rest[at..].trim_start();
    }
    line.push_str(rest);
    line.retain(|c| !c.is_control());
    line
}

/// A body part ends in exactly one line end, however many its template leaves.
#[must_use]
pub fn one_final_newline(mut text: String) -> String {
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

/// The text of an HTML mail, for those who read no HTML. `None` where the HTML has no end to its
/// nesting or cannot be laid out.
#[must_use]
pub fn from_html(html: &str) -> Option<String> {
    let layout = config::with_decorator(Plain::default()).no_table_borders().no_link_wrapping().allow_width_overflow();
    let made = layout.string_from_read(html.as_bytes(), WIDTH).ok()?;
    let mut text = String::with_capacity(made.len());
    let mut blank = 0;
    for line in made.lines().map(str::trim_end) {
        blank = if line.is_empty() { blank + 1 } else { 0 };
        if blank < 2 && !(text.is_empty() && line.is_empty()) {
            text.push_str(line);
            text.push('\n');
        }
    }
    Some(one_final_newline(text))
}

/// Links as `words <address>`; no markdown signs, as this is not for a markdown reader.
#[derive(Clone, Debug, Default)]
struct Plain {
    /// Addresses of the links that are open.
    open: Vec<String>,
}

const fn nothing() -> (String, ()) {
    (String::new(), ())
}

impl TextDecorator for Plain {
    type Annotation = ();

    fn decorate_link_start(&mut self, url: &str) -> (String, ()) {
        self.open.push(url.to_owned());
        nothing()
    }
    fn decorate_link_end(&mut self) -> String {
        match self.open.pop() {
            Some(url) if !url.is_empty() && !url.starts_with('#') => format!(" <{url}>"),
            _ => String::new(),
        }
    }
    fn decorate_em_start(&self) -> (String, ()) {
        nothing()
    }
    fn decorate_em_end(&self) -> String {
        String::new()
    }
    fn decorate_strong_start(&self) -> (String, ()) {
        nothing()
    }
    fn decorate_strong_end(&self) -> String {
        String::new()
    }
    fn decorate_strikeout_start(&self) -> (String, ()) {
        nothing()
    }
    fn decorate_strikeout_end(&self) -> String {
        String::new()
    }
    fn decorate_code_start(&self) -> (String, ()) {
        nothing()
    }
    fn decorate_code_end(&self) -> String {
        String::new()
    }
    fn decorate_preformat_first(&self) {}
    fn decorate_preformat_cont(&self) {}
    fn decorate_image(&mut self, _src: &str, words: &str) -> (String, ()) {
        (words.to_owned(), ())
    }
    fn header_prefix(&self, _level: usize) -> String {
        String::new()
    }
    fn quote_prefix(&self) -> String {
        "> ".to_owned()
    }
    fn unordered_item_prefix(&self) -> String {
        "- ".to_owned()
    }
    fn ordered_item_prefix(&self, number: i64) -> String {
        format!("{number}. ")
    }
    fn decorate_superscript_start(&self) -> (String, ()) {
        nothing()
    }
    fn decorate_superscript_end(&self) -> String {
        String::new()
    }
    fn make_subblock_decorator(&self) -> Self {
        Self::default()
    }
    fn finalise(&mut self, _urls: Vec<String>) -> Vec<TaggedLine<()>> {
        Vec::new()
    }
}

/// How many SMS a text takes: 160 and 153 characters where all are of the GSM alphabet (some count
/// twice), else 70 and 67 UTF-16 units, no character split between two.
#[must_use]
pub fn sms_segments(text: &str) -> usize {
    let widths: Option<Vec<usize>> = text.chars().map(gsm_width).collect();
    let (widths, single, each) = match widths {
        Some(widths) => (widths, 160, 153),
        None => (text.chars().map(char::len_utf16).collect(), 70, 67),
    };
    if widths.iter().sum::<usize>() <= single {
        return 1;
    }
    let mut segments = 1;
    let mut used = 0;
    for width in widths {
        if used + width > each {
            segments += 1;
            used = 0;
        }
        used += width;
    }
    segments
}

/// GSM 03.38: its alphabet counts one, its extension two; anything else is not in it.
fn gsm_width(c: char) -> Option<usize> {
    const BASIC: &str = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?\
                         ¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà";
    const EXTENSION: &str = "\u{c}^{}\\[~]|€";
    if BASIC.contains(c) { Some(1) } else { EXTENSION.contains(c).then_some(2) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn subjects_are_one_line() {
        for (written, read) in [
            ("Your order\n has\r\n\tshipped \n", "Your order has shipped"),
            ("  two  spaces stay ", "two  spaces stay"),
            ("bell\u{7}", "bell"),
            ("a\u{2028}b", "a b"),
            ("\n", ""),
        ] {
            assert_eq!(one_line(written), read);
        }
    }

    #[test]
    fn segments() {
        for (text, segments) in [
            ("".to_owned(), 1),
            ("æøå".repeat(53), 1),
            ("a".repeat(160), 1),
            ("a".repeat(161), 2),
            ("a".repeat(306), 2),
            ("€".repeat(80), 1),
            ("€".repeat(81), 2),
            // 153 is odd, and an escape pair is not split.
            ("€".repeat(153), 3),
            ("ж".repeat(70), 1),
            ("ж".repeat(71), 2),
            ("😀".repeat(35), 1),
            ("😀".repeat(67), 3),
        ] {
            assert_eq!(sms_segments(&text), segments, "{text}");
        }
    }

    #[test]
    fn deep_nesting_is_survived() {
        let deep = "<div>".repeat(20_000) + "end";
        assert!(from_html(&deep).is_none_or(|text| text.contains("end")));
    }

    proptest! {
        #[test]
        fn a_subject_never_has_a_control_character(text: String) {
            let line = one_line(&text);
            prop_assert!(!line.contains(char::is_control));
            prop_assert_eq!(one_line(&line), line);
        }
    }
}
