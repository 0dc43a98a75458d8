//! Mail addresses: read once, strictly, and shown in the one form that may go on the wire.

use std::net::IpAddr;

use thiserror::Error;

use crate::ports::mail;

/// What is wrong with an address. Never holds the address itself: it ends in answers and logs.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum AddressProblem {
    #[error("must be a mail address such as \"ann@example.com\"")]
    NoAt,
    #[error("has an unusable part before the @")]
    Local,
    #[error("has an unusable domain")]
    Domain,
    #[error("is longer than 254 characters")]
    TooLong,
}

/// A checked address. With an ASCII local part the domain is punycoded; with a non-ASCII one the
/// whole address is UTF-8, never a mixture (RFC 6531 3.2): nobody can resolve a mixture back.
#[derive(Clone, PartialEq, Eq)]
pub struct EmailAddress {
    local: String,
    ascii_domain: String,
    shown: String,
}

impl EmailAddress {
    /// Reads `local@domain`.
    ///
    /// # Errors
    /// [`AddressProblem`]; anything with white space, control characters or angle brackets is one.
    pub fn parse(text: &str) -> Result<Self, AddressProblem> {
        let (local, domain) = text.rsplit_once('@').ok_or(AddressProblem::NoAt)?;
        if text.len() > 254 {
            return Err(AddressProblem::TooLong);
        }
        if !local_is_usable(local) {
            return Err(AddressProblem::Local);
        }
        let ascii_domain = ascii_domain(domain).ok_or(AddressProblem::Domain)?;
        let shown_domain = if local.is_ascii() { ascii_domain.clone() } else { unicode_domain(&ascii_domain) };
        Ok(Self { local: local.to_owned(), shown: format!("{local}@{shown_domain}"), ascii_domain })
    }

    /// As it stands in headers and commands.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.shown
    }

    #[must_use]
    pub fn local(&self) -> &str {
        &self.local
    }

    #[must_use]
    pub fn ascii_domain(&self) -> &str {
        &self.ascii_domain
    }

    #[must_use]
    pub fn needs_smtputf8(&self) -> bool {
        !self.local.is_ascii()
    }

    /// For lettre's commands.
    #[must_use]
    pub fn for_command(&self) -> lettre::Address {
        lettre::Address::new_dangerous(&self.local, &self.shown[self.local.len() + 1..])
    }
}

impl std::fmt::Debug for EmailAddress {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("EmailAddress(…)")
    }
}

/// As at the door; a configuration may also name a quoted one.
fn local_is_usable(local: &str) -> bool {
    match local.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(quoted) => {
            local.len() <= 64 && quoted.bytes().all(|byte| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e))
        }
        None => mail::is_local_part(local),
    }
}

/// The domain as it goes on the wire; an address literal stays as it is.
fn ascii_domain(domain: &str) -> Option<String> {
    if let Some(literal) = domain.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        let ip = literal.strip_prefix("IPv6:").unwrap_or(literal);
        return ip.parse::<IpAddr>().ok().map(|_| domain.to_owned());
    }
    mail::host(domain)
}

fn unicode_domain(ascii: &str) -> String {
    if ascii.starts_with('[') {
        return ascii.to_owned();
    }
    match idna::domain_to_unicode(ascii) {
        (unicode, Ok(())) => unicode,
        (_, Err(_)) => ascii.to_owned(),
    }
}

/// Splits `Name <address>`, `"Name" <address>` or a bare address.
#[must_use]
pub fn split_mailbox(text: &str) -> (Option<String>, &str) {
    let text = text.trim();
    let Some((name, address)) = text.strip_suffix('>').and_then(|rest| rest.rsplit_once('<')) else {
        return (None, text);
    };
    let name = name.trim();
    let name = match name.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(quoted) => quoted.replace("\\\"", "\"").replace("\\\\", "\\"),
        None => name.to_owned(),
    };
    ((!name.is_empty()).then_some(name), address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_form_per_address() {
        for (given, shown, utf8) in [
            ("ann@Example.COM", "ann@example.com", false),
            ("jose@exämple.test", "jose@xn--exmple-cua.test", false),
            ("josé@exämple.test", "josé@exämple.test", true),
            ("josé@xn--exmple-cua.test", "josé@exämple.test", true),
            ("ann+tag@[127.0.0.1]", "ann+tag@[127.0.0.1]", false),
            ("\"a..b\"@example.com", "\"a..b\"@example.com", false),
            ("用户@例子.测试", "用户@例子.测试", true),
        ] {
            let address = EmailAddress::parse(given).unwrap();
            assert_eq!((address.as_str(), address.needs_smtputf8()), (shown, utf8));
            assert_eq!(address.for_command().to_string(), shown);
        }
    }

    #[test]
    fn nothing_that_could_leave_its_place() {
        for bad in [
            "",
            "ann",
            "@example.com",
            "ann@",
            "ann@exa mple.com",
            "ann bob@example.com",
            "ann\r\nBcc: x@example.com",
            "ann@example.com\r\nRCPT TO:<eve@example.com>",
            "<ann@example.com>",
            "ann@example.com>",
            "a\0b@example.com",
            "ann@-example.com",
            "ann@example..com",
            ".ann@example.com",
            "an\u{202e}n@example.com",
            "\"a\r\nb\"@example.com",
            "\"a\" b\"@example.com",
            "ann@[127.0.0.1",
            "ann@[example.com]",
        ] {
            assert!(EmailAddress::parse(bad).is_err(), "{bad:?}");
        }
        assert_eq!(
            EmailAddress::parse(&format!("{}@{}.com", "a".repeat(64), "b".repeat(200))).err(),
            Some(AddressProblem::TooLong)
        );
    }

    #[test]
    fn mailbox_texts() {
        assert_eq!(split_mailbox("Shop <a@b.c>"), (Some("Shop".to_owned()), "a@b.c"));
        assert_eq!(split_mailbox("\"A \\\"B\\\"\" <a@b.c>"), (Some("A \"B\"".to_owned()), "a@b.c"));
        assert_eq!(split_mailbox("<a@b.c>"), (None, "a@b.c"));
        assert_eq!(split_mailbox(" a@b.c "), (None, "a@b.c"));
    }
}
