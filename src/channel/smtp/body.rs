//! Text bodies: line endings made one kind, and encoded so that no line is longer than 76 octets
//! and no relay has a reason to touch them.

use lettre::message::header::ContentTransferEncoding;
use lettre::message::{Body, IntoBody as _};

/// CRLF, bare LF and bare CR all become CRLF, and the text ends with one: SMTP has no text without
/// a last line end, so the reader would see one that the sender did not write.
#[must_use]
pub fn normalised(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\r' => {
                chars.next_if_eq(&'\n');
                out.push_str("\r\n");
            }
            '\n' => out.push_str("\r\n"),
            c => out.push(c),
        }
    }
    if !out.ends_with("\r\n") {
        out.push_str("\r\n");
    }
    out
}

/// The last line end of a part is written by lettre; the encoded body leaves it out.
#[must_use]
pub fn encoded(text: &str) -> Body {
    let text = normalised(text);
    if passes_as_is(&text) {
        let body = text.as_bytes()[..text.len() - 2].to_vec();
        return Body::dangerous_pre_encoded(body, ContentTransferEncoding::SevenBit);
    }
    let costly = text.bytes().filter(|byte| needs_escape(*byte)).count();
    if costly * 6 > text.len() {
        return binary(text.into_bytes());
    }
    Body::dangerous_pre_encoded(quoted_printable(&text), ContentTransferEncoding::QuotedPrintable)
}

/// Short ASCII lines that end visibly and that no relay rewrites (`From `) or takes for a boundary.
fn passes_as_is(text: &str) -> bool {
    text.split("\r\n").all(|line| {
        line.len() <= 76
            && line.bytes().all(|byte| (b' '..=b'~').contains(&byte))
            && !line.ends_with(' ')
            && !line.starts_with("From ")
            && !line.starts_with("--")
            && !line.starts_with('.')
    })
}

fn needs_escape(byte: u8) -> bool {
    byte == b'=' || !(b' '..=b'~').contains(&byte) && byte != b'\r' && byte != b'\n'
}

/// RFC 2045 6.7. Besides what must be, escapes a leading dot and the F of a leading `From `.
fn quoted_printable(text: &str) -> Vec<u8> {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let mut out = Vec::with_capacity(text.len() + text.len() / 8);
    for (at, line) in text[..text.len() - 2].split("\r\n").enumerate() {
        if at > 0 {
            out.extend_from_slice(b"\r\n");
        }
        let mut column = 0;
        let bytes = line.as_bytes();
        for (at, &byte) in bytes.iter().enumerate() {
            let last = at + 1 == bytes.len();
            let forced = needs_escape(byte) || last && byte == b' ';
            // One column is kept for the soft break's `=`, unless the line ends here.
            if column + if forced { 3 } else { 1 } > if last { 76 } else { 75 } {
                out.extend_from_slice(b"=\r\n");
                column = 0;
            }
            if forced || column == 0 && matches!(byte, b'.' | b'-' | b'F') {
                out.extend_from_slice(&[b'=', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
                column += 3;
            } else {
                out.push(byte);
                column += 1;
            }
        }
    }
    out
}

/// Binary parts: base64 in lines of 76.
#[must_use]
pub fn binary(bytes: Vec<u8>) -> Body {
    bytes.into_body(Some(ContentTransferEncoding::Base64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_kind_of_line_end() {
        assert_eq!(normalised("a\nb\rc\r\nd"), "a\r\nb\r\nc\r\nd\r\n");
        assert_eq!(normalised(""), "\r\n");
        assert_eq!(normalised("a\n\n"), "a\r\n\r\n");
        assert_eq!(normalised("a\r\r\nb"), "a\r\n\r\nb\r\n");
    }

    #[test]
    fn the_cheapest_encoding_that_is_safe() {
        for (text, encoding) in [
            ("hello", ContentTransferEncoding::SevenBit),
            ("trailing \nx", ContentTransferEncoding::QuotedPrintable),
            ("From me", ContentTransferEncoding::QuotedPrintable),
            (".\n", ContentTransferEncoding::QuotedPrintable),
            ("déjà vu, naturally with mostly plain letters", ContentTransferEncoding::QuotedPrintable),
            ("你好，世界", ContentTransferEncoding::Base64),
        ] {
            let body = encoded(text);
            assert_eq!(body.encoding(), encoding, "{text}");
            assert!(body.as_ref().split(|b| *b == b'\n').all(|line| line.len() <= 77));
        }
    }

    #[test]
    fn quoted_printable_lines_fit_and_read_back() {
        let text = format!("{}\n.\n..\nFrom x\n-- \ntrailing \t\n{}é", "x=".repeat(2_500), ".".repeat(500));
        let wire = quoted_printable(&normalised(&text));
        let lines: Vec<&[u8]> = wire.split(|b| *b == b'\n').collect();
        assert!(lines.iter().all(|line| line.len() <= 77 && !line.starts_with(b".")));
        let decoded = decode(&wire);
        assert_eq!(decoded, normalised(&text).strip_suffix("\r\n").unwrap());
    }

    fn decode(wire: &[u8]) -> String {
        let joined = String::from_utf8(wire.to_vec()).unwrap().replace("=\r\n", "");
        let mut out = Vec::new();
        let mut bytes = joined.bytes();
        while let Some(byte) = bytes.next() {
            if byte == b'=' {
                let pair = [bytes.next().unwrap(), bytes.next().unwrap()];
                out.push(u8::from_str_radix(std::str::from_utf8(&pair).unwrap(), 16).unwrap());
            } else {
                out.push(byte);
            }
        }
        String::from_utf8(out).unwrap()
    }
}
