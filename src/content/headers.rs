//! Mail headers that a caller or a template may set. One header must stay one header, whatever its
//! value is made of, and those that Belfry derives are not to be set.

use thiserror::Error;

/// Long enough for a List-Unsubscribe of several addresses; more would not be read by anybody.
pub const LONGEST_VALUE: usize = 2_000;
const LONGEST_NAME: usize = 76;

/// Set by Belfry itself, from the record or from fields of their own.
const DERIVED: [&str; 19] = [
    "bcc",
    "cc",
    "content-disposition",
    "content-id",
    "content-transfer-encoding",
    "content-type",
    "date",
    "delivered-to",
    "dkim-signature",
    "from",
    "message-id",
    "mime-version",
    "received",
    "reply-to",
    "return-path",
    "sender",
    "subject",
    "to",
    "x-original-to",
];

#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum HeaderFault {
    #[error("a header's name is 1 to 76 letters, digits and hyphens")]
    Name,
    #[error("this header is set by Belfry")]
    Derived,
    #[error("a header's value is one line without control characters")]
    Value,
    #[error("a header's value has at most 2000 bytes")]
    TooLong,
}

/// # Errors
/// Where the name is none, or one of those that Belfry sets.
pub fn check_name(name: &str) -> Result<(), HeaderFault> {
    let fits = (1..=LONGEST_NAME).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    if !fits {
        return Err(HeaderFault::Name);
    }
    let lower = name.to_ascii_lowercase();
    let derived = DERIVED.contains(&lower.as_str()) || lower.starts_with("resent-") || lower.starts_with("arc-");
    if derived { Err(HeaderFault::Derived) } else { Ok(()) }
}

/// # Errors
/// Where the value could begin another header, or is too long.
pub fn check_value(value: &str) -> Result<(), HeaderFault> {
    if value.len() > LONGEST_VALUE {
        return Err(HeaderFault::TooLong);
    }
    // U+2028, U+2029 and U+0085 are line ends to some mail programs.
    let breaks = |c: char| (c.is_control() && c != '\t') || matches!(c, '\u{2028}' | '\u{2029}');
    if value.contains(breaks) { Err(HeaderFault::Value) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn case_109_names_and_values_that_would_inject_are_refused() {
        for bad in ["", "X:Y", "X Y", "X\r\nBcc", "X\n", "Xé", "X\0", &"X".repeat(77)] {
            assert_eq!(check_name(bad), Err(HeaderFault::Name), "{bad:?}");
        }
        for derived in ["From", "BCC", "message-id", "Resent-To", "DKIM-Signature", "ARC-Seal"] {
            assert_eq!(check_name(derived), Err(HeaderFault::Derived), "{derived}");
        }
        for good in ["X-Order", "List-Unsubscribe", "List-Id", "Auto-Submitted", "X_Legacy"] {
            assert_eq!(check_name(good), Ok(()));
        }
        for bad in ["a\r\nBcc: x@y", "a\n b", "a\rb", "\0", "a\u{2028}b", "a\u{85}b"] {
            assert_eq!(check_value(bad), Err(HeaderFault::Value), "{bad:?}");
        }
        assert_eq!(check_value("<https://x.example/u/1>, <mailto:u@x.example>"), Ok(()));
        assert_eq!(check_value(&"é".repeat(1_001)), Err(HeaderFault::TooLong));
    }

    proptest! {
        #[test]
        fn case_109_no_accepted_header_has_a_line_end(name: String, value: String) {
            let line_end = ['\r', '\n', '\0'];
            prop_assert!(check_name(&name).is_err() || !name.contains([':', ' ', '\r', '\n']));
            prop_assert!(check_value(&value).is_err() || !value.contains(line_end));
        }
    }
}
