//! Header values as they go on the wire.
//!
//! lettre's own encoder mixes plain and encoded words within one value (readers that drop the
//! white space between them then lose a space), fills lines to 78 octets and lets control
//! characters through; so values are encoded here and given to lettre ready-made.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::ports::mail;

/// RFC 2047 2: an encoded word is at most this long, and so is a line with one on it.
const WORD: usize = 75;
const LINE: usize = 76;
const OPEN: &str = "=?utf-8?b?";
const CLOSE: &str = "?=";
const FOLD: &str = "\r\n ";
/// A plain word longer than this cannot stand on a line of 998 octets with a header's name.
const LONGEST_PLAIN: usize = 900;

/// Neutralises what could end a header: runs of control characters, line breaks among them, become
/// one space each.
#[must_use]
pub fn without_breaks(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut in_run = false;
    for c in text.chars() {
        let breaks = c.is_control() && c != '\t';
        if breaks && !in_run {
            out.push(' ');
        } else if !breaks {
            out.push(c);
        }
        in_run = breaks;
    }
    out
}

/// A free-text value (Subject, a caller's own header), folded; `name` is what stands before it.
#[must_use]
pub fn unstructured(name: &str, value: &str) -> String {
    let value = without_breaks(value);
    if reads_back_as_plain(&value) { fold_plain(name.len() + 2, &value) } else { encoded_words(name.len() + 2, &value) }
}

/// Whether a plain value survives folding, unfolding and every decoder unchanged.
fn reads_back_as_plain(value: &str) -> bool {
    value.bytes().all(|byte| (b' '..=b'~').contains(&byte))
        && !value.contains("=?")
        && !value.contains("  ")
        && !value.starts_with(' ')
        && !value.ends_with(' ')
        && value.split(' ').all(|word| word.len() <= LONGEST_PLAIN)
}

fn fold_plain(mut column: usize, value: &str) -> String {
    let mut out = String::with_capacity(value.len() + 16);
    for (at, word) in value.split(' ').enumerate() {
        if at > 0 && column + 1 + word.len() > LINE {
            out.push_str(FOLD);
            column = 1;
        } else if at > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += word.len();
    }
    out
}

/// The whole value as encoded words of whole characters, one to a line, so that no two ever touch.
fn encoded_words(mut column: usize, value: &str) -> String {
    let mut out = String::with_capacity(value.len() * 2);
    let mut rest = value;
    while !rest.is_empty() {
        let room = WORD.min(LINE.saturating_sub(column)).saturating_sub(OPEN.len() + CLOSE.len()) / 4 * 3;
        let taken = whole_characters(rest, room);
        if taken == 0 {
            out.push_str(FOLD);
            column = 1;
            continue;
        }
        let (word, after) = rest.split_at(taken);
        out.push_str(OPEN);
        STANDARD.encode_string(word, &mut out);
        out.push_str(CLOSE);
        rest = after;
        if !rest.is_empty() {
            out.push_str(FOLD);
            column = 1;
        }
    }
    out
}

/// How many bytes of `text`, at most `most`, end on a character.
fn whole_characters(text: &str, most: usize) -> usize {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    end
}

/// A display name and what follows it. `column` is where the name starts.
fn phrase(column: usize, name: &str) -> String {
    let name = without_breaks(name);
    let name = name.trim();
    let atoms = |text: &str| {
        text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b' ' || b"!#$%&'*+-/=?^_`{|}~".contains(&b))
            && !text.contains("  ")
    };
    let plain = name.bytes().all(|byte| (b' '..=b'~').contains(&byte)) && !name.contains("=?") && name.len() <= 60;
    if plain && atoms(name) {
        name.to_owned()
    } else if plain {
        format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""))
    } else {
        encoded_words(column, name)
    }
}

/// A list of mailboxes, one to a line. `shown` are names and addresses in wire form.
#[must_use]
pub fn mailboxes<'a>(header: &str, shown: impl IntoIterator<Item = (Option<&'a str>, &'a str)>) -> String {
    let mut out = String::new();
    for (at, (name, address)) in shown.into_iter().enumerate() {
        if at > 0 {
            out.push(',');
            out.push_str(FOLD);
        }
        let column = if at == 0 { header.len() + 2 } else { 1 };
        match name.map(|name| phrase(column, name)).filter(|phrase| !phrase.is_empty()) {
            Some(phrase) => {
                let last_line = phrase.rsplit("\r\n").next().unwrap_or_default().len();
                let fits = column + last_line + address.len() + 3 <= LINE;
                let gap = if fits { " " } else { FOLD };
                out.push_str(&phrase);
                out.push_str(gap);
                out.push('<');
                out.push_str(address);
                out.push('>');
            }
            None => out.push_str(address),
        }
    }
    out
}

/// A media type in its one form, each parameter on a line of its own.
#[must_use]
pub fn media_type(text: &str) -> String {
    let whole = mail::media_type(text).unwrap_or_else(|| "application/octet-stream".to_owned());
    let mut out = String::with_capacity(whole.len() + 16);
    let mut quoted = false;
    let mut letters = whole.chars().peekable();
    while let Some(c) = letters.next() {
        out.push(c);
        match c {
            '\\' if quoted => out.extend(letters.next()),
            '"' => quoted = !quoted,
            ';' if !quoted && letters.next_if_eq(&' ').is_some() => out.push_str(FOLD),
            _ => {}
        }
    }
    out
}

/// `Content-Disposition` with a file name: quoted where that is possible, else RFC 2231.
#[must_use]
pub fn disposition(kind: &str, filename: &str) -> String {
    let filename = without_breaks(filename);
    let quotable = filename.bytes().all(|b| (b' '..=b'~').contains(&b) && b != b'"' && b != b'\\');
    if quotable && filename.len() <= 50 && !filename.contains("=?") {
        return format!("{kind};{FOLD}filename=\"{filename}\"");
    }
    let mut out = kind.to_owned();
    let mut piece = String::new();
    let mut number = 0;
    for c in filename.chars() {
        let mut encoded = String::new();
        let mut bytes = [0; 4];
        for byte in c.encode_utf8(&mut bytes).bytes() {
            if byte.is_ascii_alphanumeric() || b"-._".contains(&byte) {
                encoded.push(char::from(byte));
            } else {
                write_hex(&mut encoded, byte);
            }
        }
        if piece.len() + encoded.len() > 50 {
            push_piece(&mut out, number, &piece);
            number += 1;
            piece.clear();
        }
        piece.push_str(&encoded);
    }
    push_piece(&mut out, number, &piece);
    if number == 0 {
        // A name that needs no continuation is written as one parameter, which more readers know.
        return out.replacen("filename*0*=", "filename*=", 1);
    }
    out
}

fn write_hex(out: &mut String, byte: u8) {
    // Writing to a String cannot fail.
    write!(out, "%{byte:02X}").unwrap_or_default();
}

fn push_piece(out: &mut String, number: usize, piece: &str) {
    let charset = if number == 0 { "utf-8''" } else { "" };
    write!(out, ";{FOLD}filename*{number}*={charset}{piece}").unwrap_or_default();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_values_stay_plain() {
        assert_eq!(unstructured("Subject", "Your order 42"), "Your order 42");
        assert_eq!(unstructured("Subject", ""), "");
        let long = "word ".repeat(40);
        let folded = unstructured("Subject", long.trim_end());
        assert!(folded.split("\r\n").all(|line| line.len() <= 76), "{folded}");
        assert_eq!(folded.replace("\r\n ", " "), long.trim_end());
    }

    #[test]
    fn what_would_not_read_back_is_encoded() {
        for value in ["a  b", " a", "a ", "=?utf-8?q?x?=", "tab\there", "é", &"x".repeat(901)] {
            assert!(unstructured("Subject", value).starts_with(OPEN), "{value}");
        }
    }

    #[test]
    fn line_breaks_cannot_leave_the_value() {
        assert_eq!(unstructured("Subject", "a\r\nBcc: eve@example.com"), "a Bcc: eve@example.com");
        assert_eq!(unstructured("Subject", "a\0b"), "a b");
        assert_eq!(mailboxes("To", [(Some("A\r\nBcc: x"), "a@b.c")]), "\"A Bcc: x\" <a@b.c>");
        assert!(!disposition("attachment", "a\"\r\nX: y").contains("\r\nX"));
    }

    #[test]
    fn names() {
        assert_eq!(mailboxes("To", [(Some("Ann"), "a@b.c"), (None, "d@e.f")]), "Ann <a@b.c>,\r\n d@e.f");
        assert_eq!(mailboxes("To", [(Some("O'Hara, \"Ann\""), "a@b.c")]), "\"O'Hara, \\\"Ann\\\"\" <a@b.c>");
        assert_eq!(mailboxes("To", [(Some("José"), "a@b.c")]), "=?utf-8?b?Sm9zw6k=?= <a@b.c>");
        assert_eq!(mailboxes("To", [(Some(" \r\n "), "a@b.c")]), "a@b.c");
    }

    #[test]
    fn file_names() {
        assert_eq!(disposition("attachment", "a b.pdf"), "attachment;\r\n filename=\"a b.pdf\"");
        assert_eq!(disposition("attachment", "ä.pdf"), "attachment;\r\n filename*=utf-8''%C3%A4.pdf");
        let long = disposition("inline", &"ä".repeat(40));
        assert!(long.contains("filename*0*=utf-8''") && long.contains("filename*4*=%"), "{long}");
        assert!(long.split("\r\n").all(|line| line.len() <= 78), "{long}");
    }
}
