//! What can be said about a mail before it is accepted: pure checks, for the API's door. The mail
//! builder applies them once more, so that nothing depends on a caller having asked.

use thiserror::Error;

use super::address::{AddressProblem, EmailAddress};
use crate::ports::message::Attachment;

/// Of one mail: all attachments decoded.
pub const MAX_ATTACHMENT_BYTES: usize = 10 * 1024 * 1024;
pub const MAX_ATTACHMENTS: usize = 50;
/// A header's value; with its name it must fit one line of 998 octets (RFC 5322 2.1.1).
pub const MAX_HEADER_VALUE: usize = 900;
const MAX_HEADER_NAME: usize = 60;
pub const MAX_HEADERS: usize = 50;

/// Headers that are Belfry's to write, and where the caller says the same thing instead.
const OURS: [(&str, &str); 22] = [
    ("from", "use `from`"),
    ("sender", "use `from`"),
    ("to", "use `to`"),
    ("cc", "use `cc`"),
    ("bcc", "use `bcc`: a header would show it"),
    ("reply-to", "use `reply_to`"),
    ("subject", "use `subject`"),
    ("date", "it is the time of acceptance, the same on every attempt"),
    ("message-id", "it is derived, the same on every attempt"),
    ("mime-version", "it follows from the content"),
    ("dkim-signature", "Belfry signs"),
    ("domainkey-signature", "Belfry signs"),
    ("arc-seal", "it belongs to the relays"),
    ("arc-message-signature", "it belongs to the relays"),
    ("arc-authentication-results", "it belongs to the relays"),
    ("authentication-results", "it belongs to the relays"),
    ("received", "it belongs to the relays"),
    ("received-spf", "it belongs to the relays"),
    ("return-path", "it belongs to the relays"),
    ("delivered-to", "it belongs to the relays"),
    ("x-original-to", "it belongs to the relays"),
    ("errors-to", "bounces go to the envelope sender"),
];

/// Why a caller may not set the header `name`, if so: it is ours, or no header name at all.
/// Compared without regard to case.
#[must_use]
pub fn refused_header(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    if name.is_empty() || name.len() > MAX_HEADER_NAME {
        return Some("a header name has 1 to 60 characters");
    }
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_') {
        return Some("a header name consists of letters, digits, - and _");
    }
    if name.starts_with("content-") {
        return Some("it follows from the content");
    }
    if name.starts_with("resent-") {
        return Some("it belongs to the relays");
    }
    OURS.iter().find(|(ours, _)| *ours == name).map(|(_, why)| *why)
}

/// Why a header value cannot be sent, if so.
#[must_use]
pub fn refused_header_value(value: &str) -> Option<&'static str> {
    if value.chars().any(|c| c.is_control() && c != '\t') {
        return Some("must not contain line breaks or other control characters");
    }
    if value.trim().is_empty() {
        return Some("must not be empty");
    }
    (value.len() > MAX_HEADER_VALUE).then_some("is longer than 900 bytes")
}

/// One thing wrong with a mail. `Display` never shows a value.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum MailProblem {
    #[error("header {at}: {why}")]
    Header { at: usize, why: &'static str },
    #[error("header {at}: the same name is given twice")]
    HeaderTwice { at: usize },
    #[error("there are more than 50 headers")]
    TooManyHeaders,
    #[error("attachment {at}: {why}")]
    Attachment { at: usize, why: &'static str },
    #[error("there are more than 50 attachments")]
    TooManyAttachments,
    #[error("the attachments are larger than 10 MiB together")]
    AttachmentsTooLarge,
    #[error("{field}: the address {why}")]
    Address { field: &'static str, why: AddressProblem },
    #[error("the message has no recipient to show in To")]
    NoTo,
}

/// Why `text` is no mail address, if so.
#[must_use]
pub fn refused_address(text: &str) -> Option<AddressProblem> {
    EmailAddress::parse(text).err()
}

/// Everything wrong with a mail's extra headers.
#[must_use]
pub fn header_problems(headers: &[(String, String)]) -> Vec<MailProblem> {
    let mut found = Vec::new();
    if headers.len() > MAX_HEADERS {
        found.push(MailProblem::TooManyHeaders);
    }
    for (at, (name, value)) in headers.iter().enumerate() {
        if let Some(why) = refused_header(name).or_else(|| refused_header_value(value)) {
            found.push(MailProblem::Header { at, why });
        }
        if headers[..at].iter().any(|(earlier, _)| earlier.eq_ignore_ascii_case(name)) {
            found.push(MailProblem::HeaderTwice { at });
        }
    }
    found
}

/// Everything wrong with a mail's attachments, as far as it shows without decoding them.
#[must_use]
pub fn attachment_problems(attachments: &[Attachment]) -> Vec<MailProblem> {
    let mut found = Vec::new();
    if attachments.len() > MAX_ATTACHMENTS {
        found.push(MailProblem::TooManyAttachments);
    }
    let bytes: usize = attachments.iter().map(|one| one.base64.len() / 4 * 3).sum();
    if bytes > MAX_ATTACHMENT_BYTES {
        found.push(MailProblem::AttachmentsTooLarge);
    }
    for (at, one) in attachments.iter().enumerate() {
        let mut refuse = |why| found.push(MailProblem::Attachment { at, why });
        if one.filename.is_empty() || one.filename.len() > 255 || one.filename.chars().any(char::is_control) {
            refuse("the file name must have 1 to 255 bytes and no control characters");
        }
        if !content_type_is_usable(&one.content_type) {
            refuse("the content type must be one such as \"application/pdf\"; multipart and message are not possible");
        }
        if one.cid.as_deref().is_some_and(|cid| !cid_is_usable(cid)) {
            refuse("the cid must have 1 to 120 letters, digits, or . _ - + @");
        }
        let inline_twice = one.cid.is_some() && attachments[..at].iter().any(|earlier| earlier.cid == one.cid);
        if inline_twice {
            refuse("the same cid is given twice");
        }
    }
    found
}

pub(super) fn cid_is_usable(cid: &str) -> bool {
    (1..=120).contains(&cid.len()) && cid.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-+@".contains(&b))
}

/// `type/subtype`, optionally with parameters of plain tokens (`; charset=utf-8`).
pub(super) fn content_type_is_usable(text: &str) -> bool {
    fn token(text: &str) -> bool {
        !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&b))
    }
    let mut parts = text.split(';');
    let Some((kind, subtype)) = parts.next().and_then(|essence| essence.split_once('/')) else { return false };
    let composite = kind.eq_ignore_ascii_case("multipart") || kind.eq_ignore_ascii_case("message");
    let parameter = |part: &str| {
        part.trim_matches(' ').split_once('=').is_some_and(|(name, value)| {
            token(name) && token(value) && !name.eq_ignore_ascii_case("name") && !name.eq_ignore_ascii_case("boundary")
        })
    };
    text.len() <= 200 && token(kind) && token(subtype) && !composite && parts.all(parameter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_ours_are_refused() {
        for ours in [
            "From",
            "TO",
            "date",
            "Message-ID",
            "DKIM-Signature",
            "bcc",
            "Content-Type",
            "Content-Transfer-Encoding",
            "MIME-Version",
            "Return-Path",
            "Received",
            "Resent-To",
            "Subject",
            "",
            "a b",
            "a:b",
            "X\r\nBcc",
            "é",
        ] {
            assert!(refused_header(ours).is_some(), "{ours:?}");
        }
        for theirs in ["List-Unsubscribe", "List-Unsubscribe-Post", "X-Order", "In-Reply-To", "Feedback-ID"] {
            assert_eq!(refused_header(theirs), None, "{theirs}");
        }
    }

    #[test]
    fn header_lists() {
        let headers = |list: &[(&str, &str)]| -> Vec<(String, String)> {
            list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        assert_eq!(header_problems(&headers(&[("X-A", "1"), ("X-B", "ü\tü")])), []);
        assert_eq!(header_problems(&headers(&[("X-A", "1"), ("x-a", "2")])), [MailProblem::HeaderTwice { at: 1 }]);
        for bad in ["a\r\nBcc: eve@example.com", "a\nb", "a\0b", "", " ", &"x".repeat(901)] {
            assert!(matches!(header_problems(&headers(&[("X-A", bad)]))[..], [MailProblem::Header { at: 0, .. }]));
        }
    }

    #[test]
    fn content_types() {
        for good in ["application/pdf", "text/plain; charset=utf-8", "image/svg+xml", "application/vnd.ms-excel"] {
            assert!(content_type_is_usable(good), "{good}");
        }
        for bad in [
            "",
            "pdf",
            "application/",
            "message/rfc822",
            "multipart/mixed",
            "text/plain\r\nX: y",
            "text/plain; charset=\"x\"",
            "text/plain; name=x",
            "text/pl ain",
            "text/plain;",
        ] {
            assert!(!content_type_is_usable(bad), "{bad:?}");
        }
    }
}
