//! Addresses: syntax, normal form, keyed hash for searching, mask for people. Simple and strict; an
//! address that passes here is safe in a header and in an SMTP command.

use belfry_domain::{ChannelKind, hex};
use icu_normalizer::ComposingNormalizerBorrowed;

use super::canonical::Secret;
use crate::ports::deliveries::Owner;
use crate::ports::mail;
use crate::ports::message::{Address, Mailbox};

/// Longest display name, in characters.
const MOST_NAME: usize = 255;

/// Reads `ann@example.com` or `Ann Lee <ann@example.com>`.
///
/// # Errors
/// What is wrong with it, without quoting it.
pub fn mailbox(text: &str) -> Result<Mailbox, &'static str> {
    let Some((name, rest)) = text.split_once('<') else {
        return email(text).map(|email| Mailbox { name: None, email });
    };
    let address = rest.strip_suffix('>').ok_or("must end with > where the address is written in <>")?;
    if name.contains(|c: char| c.is_control() || mail::is_deceiving(c)) {
        return Err("must not contain control characters in the name, nor any that turn or hide the text");
    }
    let name = name.trim();
    let name = name.strip_prefix('"').and_then(|inner| inner.strip_suffix('"')).unwrap_or(name);
    if name.chars().count() > MOST_NAME {
        return Err("must have a name of at most 255 characters");
    }
    if name.contains(['"', '\\', '<', '>']) {
        return Err("must not contain quotes, backslashes or angle brackets in the name");
    }
    let name = (!name.is_empty()).then(|| name.to_owned());
    email(address).map(|email| Mailbox { name, email })
}

/// Reads a bare address: dot-atom (UTF-8 allowed) at a host name (IDN allowed).
///
/// # Errors
/// What is wrong with it, without quoting it.
pub fn email(text: &str) -> Result<Address, &'static str> {
    let (local, domain) = text.rsplit_once('@').ok_or("must be an email address such as ann@example.com")?;
    if text.len() > 254 {
        return Err("must have at most 254 bytes");
    }
    if !mail::is_local_part(local) {
        return Err(
            "must have 1 to 64 bytes before the @: letters, digits, single dots and !#$%&'*+-/=?^_`{|}~, nothing that \
             does not show; quoted parts are not taken",
        );
    }
    if mail::host(domain).is_none() {
        return Err("must have a host name after the @, no number and no final dot");
    }
    Ok(Address(text.to_owned()))
}

/// Reads an E.164 number.
///
/// # Errors
/// What is wrong with it.
pub fn phone(text: &str) -> Result<Address, &'static str> {
    let digits = text.strip_prefix('+').unwrap_or_default().as_bytes();
    let fits = (7..=15).contains(&digits.len()) && digits[0] != b'0' && digits.iter().all(u8::is_ascii_digit);
    if fits { Ok(Address(text.to_owned())) } else { Err("must be a number in E.164 form: + and 7 to 15 digits") }
}

/// Reads a webhook's address.
///
/// # Errors
/// What is wrong with it, without quoting it: it may hold a secret.
pub fn webhook(text: &str) -> Result<Address, &'static str> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let authority = rest.map(|rest| rest.split(['/', '?', '#']).next().unwrap_or_default());
    match authority {
        None => Err("must be an address that begins with https:// or http://"),
        Some("") => Err("must name a host"),
        Some(host) if host.contains('@') => Err("must not carry a user name or password"),
        Some(_) if text.len() > 2048 => Err("must have at most 2048 bytes"),
        Some(_) if !text.bytes().all(|byte| byte.is_ascii_graphic()) => Err("must be visible ASCII; escape the rest"),
        Some(_) => Ok(Address(text.to_owned())),
    }
}

/// The form in which two spellings of one address are equal. All but mail is compared as it is written: what stands
/// around an `@` in a webhook's path is as much part of it as the rest.
#[must_use]
pub fn normal(channel: ChannelKind, address: &str) -> String {
    match address.rsplit_once('@') {
        Some((local, domain)) if channel == ChannelKind::Email => {
            let domain = idna::domain_to_ascii(domain).unwrap_or_else(|_| domain.to_lowercase());
            // As domains are by IDNA: "é" as one character or as two is typed and shown alike.
            // Which small sigma stands for a capital depends on where it stands.
            let lower = local.to_lowercase().replace('ς', "σ");
            let local = ComposingNormalizerBorrowed::new_nfc().normalize(&lower).into_owned();
            format!("{local}@{domain}")
        }
        _ => address.to_owned(),
    }
}

/// Keyed, so that nobody who reads the store can try out addresses.
#[must_use]
pub fn hash(secret: &Secret, channel: ChannelKind, address: &str) -> String {
    hex(&secret.hash(&[b"address", normal(channel, address).as_bytes()])[..16])
}

/// Of an address that came without its channel: mail where it can be an email address.
#[must_use]
pub fn hash_by_form(secret: &Secret, address: &str) -> String {
    let channel = if email(address).is_ok() { ChannelKind::Email } else { ChannelKind::Chat };
    hash(secret, channel, address)
}

/// What the notifications of one owner to one recipient are found by. Keyed, for a name may be an address.
#[must_use]
pub fn recipient_hash(secret: &Secret, owner: &Owner, name: &str) -> String {
    let parts = ["recipient", &owner.tenant, &owner.environment, name].map(str::as_bytes);
    hex(&secret.hash(&parts)[..16])
}

/// Enough for a person who knows the address to recognise it; never a usable token.
#[must_use]
pub fn mask(channel: ChannelKind, address: &Address) -> String {
    let text = &address.0;
    let tail = |many: usize| text.char_indices().rev().nth(many - 1).map_or("", |(at, _)| &text[at..]);
    let first = text.chars().next().map(String::from).unwrap_or_default();
    match channel {
        ChannelKind::Email => match text.rsplit_once('@') {
            Some((_, domain)) => format!("{first}…@{domain}"),
            None => "…".into(),
        },
        ChannelKind::Sms => format!("{}…{}", text.get(..3).unwrap_or_default(), tail(2)),
        ChannelKind::Webhook => format!("{}/…", host(text)),
        // A subscription: which push service it is of; all else is a secret between that and the browser.
        ChannelKind::WebPush if text.starts_with('{') => match endpoint(text).as_deref().map(host) {
            Some(host) if !host.is_empty() => format!("{host}/…"),
            _ => "…".into(),
        },
        ChannelKind::Apns | ChannelKind::Fcm | ChannelKind::WebPush if text.len() >= 32 => format!("…{}", tail(4)),
        ChannelKind::Apns | ChannelKind::Fcm | ChannelKind::WebPush | ChannelKind::Chat => "…".into(),
        ChannelKind::Inbox => format!("{first}…"),
    }
}

/// Of a URL, whatever else it holds; nothing where it has none.
fn host(url: &str) -> &str {
    let authority = url.split('/').nth(2).unwrap_or_default().split(['?', '#']).next().unwrap_or_default();
    authority.rsplit('@').next().unwrap_or_default()
}

fn endpoint(subscription: &str) -> Option<String> {
    let read: serde_json::Value = serde_json::from_str(subscription).ok()?;
    Some(read.get("endpoint")?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A capital sigma has two small ones, by where it stands.
    #[test]
    fn greek_letters_have_no_case_either() {
        let normal = |text| normal(ChannelKind::Email, text);
        assert_eq!(normal("ΑΣ@example.com"), normal("ασ@example.com"));
        assert_eq!(normal("ΑΣ@example.com"), normal("ας@example.com"));
        assert_ne!(normal("ασ@example.com"), normal("αο@example.com"));
    }

    #[test]
    fn mailboxes() {
        for (text, name, address) in [
            ("ann@example.com", None, "ann@example.com"),
            ("ann+sim-bounced@example.com", None, "ann+sim-bounced@example.com"),
            ("Ann Lee <ann@example.com>", Some("Ann Lee"), "ann@example.com"),
            ("\"Lee, Ann\" <ann@example.com>", Some("Lee, Ann"), "ann@example.com"),
            ("<ann@localhost>", None, "ann@localhost"),
            ("josé@exämple.test", None, "josé@exämple.test"),
            ("用户@例子.公司", None, "用户@例子.公司"),
        ] {
            let read = mailbox(text).unwrap();
            assert_eq!((read.name.as_deref(), read.email.0.as_str()), (name, address), "{text}");
        }
        let long = format!("{}@example.com", "a".repeat(65));
        for bad in [
            "",
            "ann",
            "@example.com",
            "ann@",
            "ann@example.com.",
            "ann@-bad.example",
            "ann@exa mple.com",
            "ann@1.2.3.4",
            "ann@[1.2.3.4]",
            "a..b@example.com",
            ".a@example.com",
            "a.@example.com",
            "a b@example.com",
            "\"a b\"@example.com",
            "a@b@example.com",
            "ann@example.com\r\nBcc: x@example.com",
            "Ann\r\nBcc: x <ann@example.com>",
            "Ann\n <ann@example.com>",
            "Ann <ann@example.com",
            "Ann <ann@example.com> x",
            "A \"B\" <ann@example.com>",
            "ann@example.com,bob@example.com",
            "ann\u{200b}@example.com",
            "ann\u{61c}@example.com",
            "ann\u{fe0f}@example.com",
            "ann\u{fffd}@example.com",
            "ann\u{e0001}@example.com",
            "Ann\u{202e}eeL <ann@example.com>",
            "Ann\u{2028}Lee <ann@example.com>",
            "ann@example\0.com",
            &long,
        ] {
            assert!(mailbox(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn phones_and_webhooks() {
        assert!(phone("+46701234567").is_ok());
        for bad in
            ["", "+", "46701234567", "+0701234567", "+46 70 123 45 67", "+1234567890123456", "+123456", "+٤٦٧٠١٢٣٤٥٦٧"]
        {
            assert!(phone(bad).is_err(), "{bad}");
        }
        assert!(webhook("https://hooks.example.com/a?b=c").is_ok());
        for bad in ["", "ftp://x", "https://", "https:///x", "https://u:p@host/", "https://host/ä", "https://host/\r\n"]
        {
            assert!(webhook(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn spellings_of_one_address_are_one() {
        let secret = Secret::new(&[1; 32]);
        let mail = |address| hash(&secret, ChannelKind::Email, address);
        assert_eq!(mail("Ann@EXÄMPLE.test"), mail("ann@xn--exmple-cua.test"));
        // "é" and "e" with a combining accent; a letter in upper case whose lower case is two characters.
        assert_eq!(mail("jos\u{e9}@example.com"), mail("JOSE\u{301}@example.com"));
        assert_eq!(mail("\u{130}@example.com"), mail("i\u{307}@example.com"));
        assert_ne!(mail("jos\u{e9}@example.com"), mail("jose@example.com"));
        assert_ne!(mail("ann@example.com"), mail("bob@example.com"));
        assert_ne!(mail("a@b.c"), hash(&Secret::new(&[2; 32]), ChannelKind::Email, "a@b.c"));
        assert_eq!(mail("Ann@example.com"), hash_by_form(&secret, "ann@EXAMPLE.com"));
    }

    /// Two webhooks whose secrets differ in upper and lower case are two.
    #[test]
    fn only_spellings_of_mail_addresses_are_folded() {
        let secret = Secret::new(&[1; 32]);
        for (channel, one, other) in [
            (ChannelKind::Webhook, "https://hooks.example.com/T@Kx", "https://hooks.example.com/t@kx"),
            (ChannelKind::Chat, "Ann@Team", "ann@team"),
        ] {
            assert_ne!(hash(&secret, channel, one), hash(&secret, channel, other));
            assert_eq!(normal(channel, one), one);
        }
        assert_ne!(hash_by_form(&secret, "https://x.test/A@B"), hash_by_form(&secret, "https://x.test/a@b"));
    }

    #[test]
    fn masks_keep_secrets() {
        let masked = |channel, text: &str| mask(channel, &Address(text.into()));
        assert_eq!(masked(ChannelKind::Email, "ann@example.com"), "a…@example.com");
        assert_eq!(masked(ChannelKind::Sms, "+46701234567"), "+46…67");
        assert_eq!(masked(ChannelKind::Webhook, "https://hooks.example.com/secret?x"), "hooks.example.com/…");
        assert_eq!(masked(ChannelKind::Apns, "short"), "…");
        assert_eq!(masked(ChannelKind::Fcm, &"ab".repeat(32)), "…abab");
        assert_eq!(masked(ChannelKind::Chat, "https://hooks.slack.com/T/B/x"), "…");
        assert_eq!(masked(ChannelKind::Inbox, "user-7"), "u…");
        for (subscription, mask) in [
            (r#"{"endpoint":"https://push.example/v1/secret?x","keys":{"auth":"secret"}}"#, "push.example/…"),
            (r#"{"endpoint":"https://user:secret@push.example/secret"}"#, "push.example/…"),
            (r#"{"endpoint":"secret","keys":{"auth":"secret-that-is-longer-than-a-mask"}}"#, "…"),
            (r#"{"endpoint":{"x":"https://push.example/"},"expirationTime":null}"#, "…"),
            ("{secret secret secret secret secret secret", "…"),
        ] {
            assert_eq!(masked(ChannelKind::WebPush, subscription), mask);
        }
    }
}
