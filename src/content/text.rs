//! Plain text: folded into a subject, ended as a body, measured for SMS.

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

    proptest! {
        #[test]
        fn a_subject_never_has_a_control_character(text: String) {
            let line = one_line(&text);
            prop_assert!(!line.contains(char::is_control));
            prop_assert_eq!(one_line(&line), line);
        }
    }
}
