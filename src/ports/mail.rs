//! What a mail may be made of. One set of rules: the door refuses by them what a caller or a
//! template may not say, and the mail builder relies on them, so that nothing is accepted that can
//! never be sent. As generous as SMTP is; what is refused could leave its place in a message, or says
//! something that only Belfry or a relay can know.

use super::message::Attachment;

/// A header's name; with a value's longest word it fits one line of 998 octets (RFC 5322, 2.1.1).
const LONGEST_NAME: usize = 76;
/// Long enough for a List-Unsubscribe of several addresses; more would not be read by anybody.
pub const LONGEST_VALUE: usize = 2_000;
pub const MOST_HEADERS: usize = 50;
/// Beside them, of a mail to unsubscribe from: the two of RFC 8058.
pub const TO_UNSUBSCRIBE: usize = 2;
pub const MOST_ATTACHMENTS: usize = 50;
/// All attachments of one mail together, decoded.
pub const MOST_ATTACHED_BYTES: usize = 10 * 1024 * 1024;

/// What a mail has more of than it may, with all that its template and its request put into it.
#[must_use]
pub fn too_much(headers: &[(String, String)], attachments: &[Attachment]) -> Option<String> {
    if headers.len() > MOST_HEADERS {
        return Some(format!("a mail has at most {MOST_HEADERS} headers of one's own, those of its template included"));
    }
    if attachments.len() > MOST_ATTACHMENTS {
        return Some(format!("a mail has at most {MOST_ATTACHMENTS} attachments"));
    }
    let most = MOST_ATTACHED_BYTES >> 20;
    let fit = attached_bytes(attachments) <= MOST_ATTACHED_BYTES;
    (!fit).then(|| format!("attachments have at most {most} MiB together, those of the template included"))
}

/// What attachments have together, decoded: of base64 without line ends each four characters are three bytes.
#[must_use]
pub fn attached_bytes(attachments: &[Attachment]) -> usize {
    let of = |base64: &str| base64.len() / 4 * 3 - base64.bytes().rev().take_while(|byte| *byte == b'=').count();
    attachments.iter().map(|one| of(&one.base64)).sum()
}
/// In characters.
pub const LONGEST_FILENAME: usize = 255;
pub const LONGEST_CONTENT_TYPE: usize = 255;
pub const LONGEST_CID: usize = 128;

/// Headers that nobody else may write, and what says the same thing, or why it is not to be said.
const OURS: [(&str, &str); 26] = [
    ("from", "is set by Belfry: use `from`"),
    ("sender", "is set by Belfry: use `from`"),
    ("to", "is set by Belfry: use `to`"),
    ("cc", "is set by Belfry: use `cc`"),
    ("bcc", "is set by Belfry: use `bcc`"),
    ("reply-to", "is set by Belfry: use `reply_to`"),
    ("subject", "is set by Belfry: use `subject`"),
    ("date", "is set by Belfry: the time of acceptance, the same on every attempt"),
    ("message-id", "is set by Belfry: derived, the same on every attempt"),
    ("mime-version", FOLLOWS),
    ("content-type", FOLLOWS),
    ("content-transfer-encoding", FOLLOWS),
    ("content-disposition", FOLLOWS),
    ("content-id", FOLLOWS),
    ("content-length", FOLLOWS),
    ("content-md5", FOLLOWS),
    ("dkim-signature", "is set by Belfry, which signs"),
    ("domainkey-signature", "is set by Belfry, which signs"),
    ("errors-to", "is not to be set: bounces go to the envelope's sender"),
    ("authentication-results", RELAYS),
    ("received", RELAYS),
    ("received-spf", RELAYS),
    ("return-path", RELAYS),
    ("delivered-to", RELAYS),
    ("x-original-to", RELAYS),
    ("x-envelope-to", RELAYS),
];
const FOLLOWS: &str = "is set by Belfry: it follows from the content";
const RELAYS: &str = "is not to be set: it belongs to the relays";

/// What is wrong with a header's name, if anything: it is none, or not a caller's to set.
#[must_use]
pub fn wrong_name(name: &str) -> Option<&'static str> {
    let fits = (1..=LONGEST_NAME).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    if !fits {
        return Some("must have a name of 1 to 76 letters, digits, - and _");
    }
    let lower = name.to_ascii_lowercase();
    if lower.starts_with("resent-") || lower.starts_with("arc-") {
        return Some(RELAYS);
    }
    OURS.iter().find(|(ours, _)| *ours == lower).map(|(_, why)| *why)
}

/// What is wrong with a header's value, if anything.
#[must_use]
pub fn wrong_value(value: &str) -> Option<&'static str> {
    // U+2028, U+2029 and U+0085 are line ends to some mail programs.
    let breaks = |c: char| (c.is_control() && c != '\t') || matches!(c, '\u{2028}' | '\u{2029}');
    if value.trim().is_empty() {
        Some("must not be empty: leave the header out")
    } else if value.len() > LONGEST_VALUE {
        Some("must have at most 2000 bytes")
    } else if value.contains(breaks) {
        Some("must be one line without control characters")
    } else {
        None
    }
}

/// What is wrong with a header beside those `before` it, if anything.
#[must_use]
pub fn wrong_header(name: &str, value: &str, before: &[(String, String)]) -> Option<&'static str> {
    let twice = || before.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
    wrong_name(name)
        .or_else(|| wrong_value(value))
        .or_else(|| twice().then_some("stands twice, but for upper and lower case"))
}

/// A media type in its one form, its parameters with it: `application/pdf; name="a b.pdf"`. `None`
/// for what is none (RFC 2045, 5.1).
#[must_use]
pub fn media_type(text: &str) -> Option<String> {
    let (essence, mut rest) = text.split_at(text.find(';').unwrap_or(text.len()));
    let (kind, subtype) = essence.trim_matches(BLANK).split_once('/')?;
    if text.chars().count() > LONGEST_CONTENT_TYPE || !is_token(kind) || !is_token(subtype) {
        return None;
    }
    let mut whole = format!("{kind}/{subtype}");
    while let Some(after) = rest.strip_prefix(';') {
        let after = after.trim_start_matches(BLANK);
        if after.is_empty() {
            break;
        }
        let (name, value) = after.split_once('=')?;
        let long = value_length(value)?;
        if !is_token(name) {
            return None;
        }
        whole += &format!("; {name}={}", &value[..long]);
        rest = value[long..].trim_start_matches(BLANK);
    }
    rest.trim_start_matches([';', ' ', '\t']).is_empty().then_some(whole)
}

const BLANK: [char; 2] = [' ', '\t'];

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic() && !b"()<>@,;:\\\"/[]?=".contains(&b))
}

/// How long the token or quoted text at the beginning is.
fn value_length(text: &str) -> Option<usize> {
    let Some(quoted) = text.strip_prefix('"') else {
        let long = text.find([';', ' ', '\t']).unwrap_or(text.len());
        return is_token(&text[..long]).then_some(long);
    };
    let mut escaped = false;
    for (at, byte) in quoted.bytes().enumerate() {
        match byte {
            b'"' if !escaped => return Some(at + 2),
            b' '..=b'~' | b'\t' => escaped = byte == b'\\' && !escaped,
            _ => return None,
        }
    }
    None
}

/// What is wrong with an attachment's fields, by field, its content left out of account.
#[must_use]
pub fn wrong_attachment(one: &Attachment, before: &[Attachment]) -> Vec<(&'static str, &'static str)> {
    let mut wrong = Vec::new();
    let fits = |text: &str, most| (1..=most).contains(&text.chars().count()) && !text.contains(char::is_control);
    if !fits(&one.filename, LONGEST_FILENAME) {
        wrong.push(("filename", "must have 1 to 255 characters, none of them a control character"));
    } else if one.filename.contains(|it| is_deceiving(it) || "/\\".contains(it))
        || one.filename.trim_matches('.').is_empty()
    {
        // `gpj.exe` that reads like `exe.jpg`, and names that lead out of a folder.
        wrong.push(("filename", "must be a file's name, without a folder and without characters that hide what it is"));
    }
    if let Some(why) = wrong_content_type(&one.content_type) {
        wrong.push(("content_type", why));
    }
    let Some(cid) = &one.cid else { return wrong };
    if !(1..=LONGEST_CID).contains(&cid.len())
        || !cid.bytes().all(|b| b.is_ascii_alphanumeric() || b".-_@+".contains(&b))
    {
        wrong.push(("cid", "must have 1 to 128 letters, digits and .-_@+"));
    } else if before.iter().any(|other| other.cid.as_ref() == Some(cid)) {
        wrong.push(("cid", "stands twice"));
    }
    wrong
}

fn wrong_content_type(text: &str) -> Option<&'static str> {
    let Some(kind) = media_type(text).map(|kind| kind.to_ascii_lowercase()) else {
        return Some(
            "must be a media type of at most 255 characters, such as application/pdf or text/plain; charset=utf-8",
        );
    };
    if kind.starts_with("multipart/") || kind.contains("; boundary=") {
        Some("must be none of multipart/*, whose parts would have to be mail parts: say application/octet-stream")
    } else if kind.starts_with("message/") {
        Some("must be none of message/*, which no encoding may protect on its way: say application/octet-stream")
    } else {
        None
    }
}

/// Whether an address may have this before its @: a dot-atom, UTF-8 allowed (RFC 6531), of 1 to 64
/// bytes, in which nothing is hidden.
#[must_use]
pub fn is_local_part(text: &str) -> bool {
    let is_atext = |c: char| {
        c.is_ascii_alphanumeric()
            || "!#$%&'*+-/=?^_`{|}~".contains(c)
            || (!c.is_ascii() && !c.is_control() && !c.is_whitespace() && !is_hidden(c))
    };
    (1..=64).contains(&text.len()) && text.split('.').all(|atom| !atom.is_empty() && atom.chars().all(is_atext))
}

/// The host name after an address's @ as it goes on the wire, punycoded; `None` for what is none.
#[must_use]
pub fn host(text: &str) -> Option<String> {
    let ascii = idna::domain_to_ascii_strict(text).ok()?;
    let last_label = ascii.rsplit('.').next().unwrap_or_default();
    // A number is an address, and a final dot another spelling of the same name.
    let fits = !ascii.is_empty() && !ascii.ends_with('.') && !last_label.bytes().all(|byte| byte.is_ascii_digit());
    fits.then_some(ascii)
}

/// A character that shows nothing, and so makes two different addresses look the same: Unicode's
/// default ignorable ones, blanks that are no white space, marks of direction, and what stands for a
/// character that could not be read. One that Unicode has not assigned yet stays allowed: a later
/// version may have given it a shape, and an address that somebody has must not be refused for it.
#[must_use]
pub const fn is_hidden(c: char) -> bool {
    is_deceiving(c)
        || matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{ffff}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// One that turns the text around it, ends its line, or says something that nobody sees. No name
/// needs one; the joiners and variants of [`is_hidden`] are part of many.
#[must_use]
pub const fn is_deceiving(c: char) -> bool {
    matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn attachments_weigh_what_they_have_decoded() {
        let of = |base64: &str| Attachment {
            filename: "a".into(),
            content_type: "text/plain".into(),
            base64: base64.into(),
            cid: None,
        };
        assert_eq!(attached_bytes(&["YQ==", "YWI=", "YWJj", "YWJjZA==", ""].map(of)), 1 + 2 + 3 + 4);
    }

    #[test]
    fn case_109_names_and_values_that_would_inject_are_refused() {
        for bad in ["", "X:Y", "X Y", "X\r\nBcc", "X\n", "Xé", "X\0", &"X".repeat(77)] {
            assert!(wrong_name(bad).is_some(), "{bad:?}");
        }
        for ours in
            ["From", "BCC", "message-id", "Resent-To", "DKIM-Signature", "ARC-Seal", "Content-Type", "Errors-To"]
        {
            assert!(wrong_name(ours).is_some(), "{ours}");
        }
        for good in ["X-Order", "List-Unsubscribe", "List-Id", "Auto-Submitted", "X_Legacy", "Content-Language"] {
            assert_eq!(wrong_name(good), None);
        }
        for bad in ["a\r\nBcc: x@y", "a\n b", "a\rb", "\0", "a\u{2028}b", "a\u{85}b", "", " ", &"é".repeat(1_001)] {
            assert!(wrong_value(bad).is_some(), "{bad:?}");
        }
        assert_eq!(wrong_value("<https://x.example/u/1>, <mailto:u@x.example>"), None);
        let before = [("X-A".to_owned(), "1".to_owned())];
        assert!(wrong_header("x-a", "2", &before).is_some() && wrong_header("X-B", "2", &before).is_none());
    }

    #[test]
    fn media_types_have_one_form() {
        for (text, form) in [
            ("application/pdf", "application/pdf"),
            ("text/plain ;charset=utf-8", "text/plain; charset=utf-8"),
            ("text/plain; charset=\"x\" ; a=b;", "text/plain; charset=\"x\"; a=b"),
            ("application/pdf; name=x.pdf", "application/pdf; name=x.pdf"),
            ("a/b; name=\"a; \\\"b\\\".pdf\"", "a/b; name=\"a; \\\"b\\\".pdf\""),
            ("image/svg+xml", "image/svg+xml"),
        ] {
            assert_eq!(media_type(text).as_deref(), Some(form), "{text}");
            assert_eq!(media_type(form).as_deref(), Some(form), "{text}");
        }
        let long = format!("text/{}", "a".repeat(251));
        for bad in [
            "",
            "pdf",
            "application/",
            "a/b c",
            "a/b; =;",
            "a/b; c",
            "a/b; c=",
            "a/b; c=\"x",
            "a/b; c=x y",
            "a/b; c=\u{7f}",
            "a/b; c=é",
            "a/b\r\nX: y",
            "a/b; c=\"\r\n\"",
            &long,
        ] {
            assert_eq!(media_type(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn attachments() {
        let one = |content_type: &str, cid: Option<&str>| Attachment {
            filename: "é".repeat(255),
            content_type: content_type.to_owned(),
            base64: String::new(),
            cid: cid.map(str::to_owned),
        };
        assert_eq!(wrong_attachment(&one("text/plain", Some(&"a".repeat(128))), &[]), []);
        for bad in ["message/rfc822", "multipart/mixed", "text/plain; boundary=x"] {
            assert_eq!(wrong_attachment(&one(bad, None), &[])[0].0, "content_type", "{bad}");
        }
        let before = [one("text/plain", Some("logo"))];
        for bad in ["logo", "", "a b", &"a".repeat(129)] {
            assert_eq!(wrong_attachment(&one("text/plain", Some(bad)), &before)[0].0, "cid", "{bad}");
        }
        for name in ["a\n", "\u{202e}gpj.exe", "../../etc/passwd", "..", "c:\\a.txt", ""] {
            let named = Attachment { filename: name.into(), ..one("a/b", None) };
            assert_eq!(wrong_attachment(&named, &[])[0].0, "filename", "{name:?}");
        }
    }

    #[test]
    fn nothing_hides_before_the_at() {
        for c in
            ['\u{ad}', '\u{61c}', '\u{115f}', '\u{200d}', '\u{202e}', '\u{2028}', '\u{fe0f}', '\u{fffd}', '\u{e0001}']
        {
            assert!(!is_local_part(&format!("a{c}b")), "{c:?}");
        }
        for good in ["josé", "用户", "a+b", "o'hara", "\u{378}"] {
            assert!(is_local_part(good), "{good}");
        }
        assert!(is_deceiving('\u{202e}') && is_deceiving('\u{2028}') && !is_deceiving('\u{200d}'));
    }

    proptest! {
        #[test]
        fn case_109_no_accepted_header_has_a_line_end(name: String, value: String) {
            prop_assert!(wrong_name(&name).is_some() || !name.contains([':', ' ', '\r', '\n']));
            prop_assert!(wrong_value(&value).is_some() || !value.contains(['\r', '\n', '\0']));
        }

        #[test]
        fn a_media_type_is_one_line(text in "[a-z/;= \"\\\\\r\n]{0,40}") {
            prop_assert!(media_type(&text).is_none_or(|form| !form.contains(char::is_control)));
        }
    }
}
