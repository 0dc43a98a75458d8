//! What has to be known of the certificate that we log in with: until when it is good, and for which apps.
//!
//! Read by hand from its DER (X.690; RFC 5280 4.1): no more than is asked for, nothing is copied that is not kept,
//! and whatever is not as expected means that it is not known. Nothing is verified: that is Apple's part.

use belfry_domain::UnixMs;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OID: u8 = 0x06;
const OCTETS: u8 = 0x04;
const UTF8: u8 = 0x0c;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;
/// `userId` of the subject (RFC 4519 2.39): the app's bundle id.
const USER_ID: &[u8] = &[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 0x01, 0x01];
/// Apple's extension with all topics, 1.2.840.113635.100.6.3.6.
const TOPICS: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x63, 0x64, 0x06, 0x03, 0x06];

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Certificate {
    /// `None`: never, or at no time that can be told.
    pub ends: Option<UnixMs>,
    /// The apps, with what Apple appends to them (`.voip`); empty where it names none.
    topics: Vec<String>,
}

impl Certificate {
    /// `None`: the bytes are no certificate.
    pub fn read(der: &[u8]) -> Option<Self> {
        let signed = element(inside(SEQUENCE, der)?)?;
        let mut parts = elements(signed.is(SEQUENCE)?).peekable();
        parts.next_if(|part| part.tag == VERSION);
        // Serial number, algorithm and issuer stand before the two times.
        let validity = parts.nth(3)?.is(SEQUENCE)?;
        let subject = parts.next()?.is(SEQUENCE)?;
        let ends = elements(validity).nth(1)?.time();
        let mut topics: Vec<String> = elements(subject).filter_map(|set| user_id(set.is(SET)?)).collect();
        topics.extend(
            parts.find(|part| part.tag == EXTENSIONS).and_then(|part| listed(part.content)).unwrap_or_default(),
        );
        Some(Self { ends, topics })
    }

    /// The app that it is for, where that is another than `topic`.
    pub fn other_app(&self, topic: &str) -> Option<&str> {
        let fits = |own: &String| own.strip_prefix(topic).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        if self.topics.iter().any(fits) { None } else { self.topics.first().map(String::as_str) }
    }
}

fn user_id(attributes: &[u8]) -> Option<String> {
    elements(attributes).find_map(|attribute| {
        let mut parts = elements(attribute.is(SEQUENCE)?);
        let named = parts.next()?.is(OID)? == USER_ID;
        parts.next().filter(|_| named).and_then(|value| text(value.content))
    })
}

fn listed(extensions: &[u8]) -> Option<Vec<String>> {
    let topics = elements(inside(SEQUENCE, extensions)?).find_map(|extension| {
        let mut parts = elements(extension.is(SEQUENCE)?);
        let named = parts.next()?.is(OID)? == TOPICS;
        // A mark that it is critical may stand between.
        parts.find(|part| part.tag == OCTETS).filter(|_| named)
    })?;
    // Each name is followed by a list of what it is.
    let names = elements(inside(SEQUENCE, topics.content)?).filter(|part| part.tag == UTF8);
    Some(names.filter_map(|name| text(name.content)).collect())
}

/// As an app's name may be: what else stands there is shown to nobody.
fn text(bytes: &[u8]) -> Option<String> {
    let plain = bytes.len() <= 255 && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(byte));
    (plain && !bytes.is_empty()).then(|| String::from_utf8_lossy(bytes).into_owned())
}

/// One element: a tag, a length, and so many bytes.
struct Element<'a> {
    tag: u8,
    content: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Element<'a> {
    fn is(&self, tag: u8) -> Option<&'a [u8]> {
        (self.tag == tag).then_some(self.content)
    }

    /// UTC, to the second (RFC 5280 4.1.2.5). In two digits a year is of 1950 to 2049.
    fn time(&self) -> Option<UnixMs> {
        let digits = self.content.strip_suffix(b"Z")?;
        if !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let number = |digits: &[u8]| digits.iter().fold(0_i16, |sum, digit| sum * 10 + i16::from(digit - b'0'));
        let (year, rest) = match (self.tag, digits.len()) {
            (UTC_TIME, 12) => {
                let year = number(&digits[..2]);
                (if year < 50 { 2000 + year } else { 1900 + year }, &digits[2..])
            }
            (GENERALIZED_TIME, 14) => (number(&digits[..4]), &digits[4..]),
            _ => return None,
        };
        let part = |at: usize| i8::try_from(number(&rest[at..at + 2])).ok();
        let at = DateTime::new(year, part(0)?, part(2)?, part(4)?, part(6)?, part(8)?, 0).ok()?;
        TimeZone::UTC.to_timestamp(at).ok().map(|at| UnixMs(at.as_millisecond()))
    }
}

/// The first element, as far as its length is less than 16 MiB.
fn element(der: &[u8]) -> Option<Element<'_>> {
    let (&[tag, length], rest) = der.split_first_chunk()?;
    let (length, rest) = match length {
        0..=0x7f => (usize::from(length), rest),
        0x81..=0x83 => {
            let (digits, rest) = rest.split_at_checked(usize::from(length & 0x7f))?;
            (digits.iter().fold(0, |sum, digit| sum << 8 | usize::from(*digit)), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some(Element { tag, content, rest })
}

/// All that follow each other, up to the first that is none.
fn elements(der: &[u8]) -> impl Iterator<Item = Element<'_>> {
    let mut rest = der;
    std::iter::from_fn(move || {
        let next = element(rest)?;
        rest = next.rest;
        Some(next)
    })
}

fn inside(tag: u8, der: &[u8]) -> Option<&[u8]> {
    element(der)?.is(tag)
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, CustomExtension, DnType, KeyPair, date_time_ymd};

    use super::*;

    const AT_2031: UnixMs = UnixMs(1_924_992_000_000);

    fn made(change: impl FnOnce(&mut CertificateParams)) -> Vec<u8> {
        let mut params = CertificateParams::new(["client.test".to_owned()]).unwrap();
        params.not_after = date_time_ymd(2031, 1, 1);
        change(&mut params);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    fn of_app(params: &mut CertificateParams, app: &str) {
        let user_id = DnType::CustomDnType(vec![0, 9, 2342, 19_200_300, 100, 1, 1]);
        params.distinguished_name.push(user_id, app);
    }

    #[test]
    fn its_end_and_its_apps_are_read() {
        let plain = Certificate::read(&made(|_| {})).unwrap();
        assert_eq!(plain, Certificate { ends: Some(AT_2031), topics: Vec::new() });
        // After 2049 it is written with four digits (RFC 5280 4.1.2.5).
        let long = made(|params| params.not_after = date_time_ymd(2050, 1, 1));
        assert_eq!(Certificate::read(&long).unwrap().ends, Some(UnixMs(2_524_608_000_000)));
        let of_one = Certificate::read(&made(|params| of_app(params, "com.example.shop"))).unwrap();
        assert_eq!(of_one.topics, ["com.example.shop"]);
        let name = |name: &str| [&[UTF8, u8::try_from(name.len()).unwrap()], name.as_bytes()].concat();
        let kind = |kind: &str| [&[SEQUENCE, u8::try_from(kind.len() + 2).unwrap()][..], &name(kind)].concat();
        let list = [name("com.a"), kind("app"), name("com.a.voip"), kind("voip")].concat();
        let list = [&[SEQUENCE, u8::try_from(list.len()).unwrap()][..], &list].concat();
        let extension = CustomExtension::from_oid_content(&[1, 2, 840, 113_635, 100, 6, 3, 6], list);
        let of_several = Certificate::read(&made(|params| params.custom_extensions.push(extension))).unwrap();
        assert_eq!(of_several.topics, ["com.a", "com.a.voip"]);
    }

    #[test]
    fn an_app_that_it_is_not_for_is_told() {
        let of = |topics: &[&str]| Certificate { ends: None, topics: topics.iter().map(|one| (*one).into()).collect() };
        for (topics, topic, other) in [
            (&[][..], "com.example.shop", None),
            (&["com.example.shop"], "com.example.shop", None),
            (&["com.example.shop.voip"], "com.example.shop", None),
            (&["com.example.shop"], "com.example.sho", Some("com.example.shop")),
            (&["com.example.shop"], "com.example.shop.voip", Some("com.example.shop")),
            (&["com.example.shop", "com.example.shop.voip"], "com.other", Some("com.example.shop")),
        ] {
            assert_eq!(of(topics).other_app(topic), other, "{topics:?} {topic}");
        }
    }

    #[test]
    fn times() {
        for (tag, text, expected) in [
            (UTC_TIME, "310101000000Z", Some(AT_2031)),
            (UTC_TIME, "500101000000Z", Some(UnixMs(-631_152_000_000))),
            (GENERALIZED_TIME, "20310101000000Z", Some(AT_2031)),
            (GENERALIZED_TIME, "20310101000001Z", Some(UnixMs(AT_2031.0 + 1000))),
            // What has no end (RFC 5280 4.1.2.5).
            (GENERALIZED_TIME, "99991231235959Z", None),
            (UTC_TIME, "20310101000000Z", None),
            (UTC_TIME, "311301000000Z", None),
            (UTC_TIME, "310101000000", None),
            (UTC_TIME, "3101010000+1Z", None),
            (UTC_TIME, "Z", None),
            (UTF8, "310101000000Z", None),
        ] {
            assert_eq!(Element { tag, content: text.as_bytes(), rest: &[] }.time(), expected, "{text}");
        }
    }

    #[test]
    fn whatever_is_cut_off_or_damaged_is_not_known_and_does_no_harm() {
        let whole = made(|params| of_app(params, "com.example.shop"));
        for end in 0..whole.len() {
            assert_eq!(Certificate::read(&whole[..end]), None, "{end}");
        }
        for at in 0..whole.len() {
            for with in [0x00, 0x7f, 0x80, 0x81, 0x84, 0xff] {
                let mut damaged = whole.clone();
                damaged[at] = with;
                // What comes of it is anything but a panic.
                drop(Certificate::read(&damaged));
            }
        }
    }
}
