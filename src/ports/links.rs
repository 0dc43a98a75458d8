//! Links in messages that a recipient may act on without a login: what they say is sealed, so that nobody can read or
//! make one, and the same link always has the same text, as a repeat of its message has to.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use belfry_domain::{ChannelKind, UnixMs};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;
use serde::{Deserialize, Serialize};

use super::deliveries::Owner;

/// Longest token that is looked at, in bytes.
pub const LONGEST_TOKEN: usize = 2048;
/// Bytes at a token's beginning that tell which key sealed it.
const KEY_NAME: usize = 4;
const KEY_BYTES: usize = 32;

/// Whom a link speaks for, and about what.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    #[serde(rename = "t")]
    pub tenant: String,
    #[serde(rename = "e")]
    pub environment: String,
    /// Absent: whoever has the address.
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    pub recipient: Option<String>,
    #[serde(rename = "a", default, skip_serializing_if = "Option::is_none")]
    pub address: Option<LinkedAddress>,
    /// The class of the message that it stands in.
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    #[serde(rename = "l", default, skip_serializing_if = "Option::is_none")]
    pub locale: Option<String>,
    /// No longer good from then on, but to unsubscribe.
    #[serde(rename = "u")]
    pub until: UnixMs,
}

/// An address as the records have it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkedAddress {
    #[serde(rename = "k")]
    pub channel: ChannelKind,
    #[serde(rename = "h")]
    pub hash: String,
    #[serde(rename = "m")]
    pub mask: String,
}

impl Link {
    #[must_use]
    pub fn owner(&self) -> Owner {
        Owner { tenant: self.tenant.clone(), environment: self.environment.clone() }
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Link(…)")
    }
}

/// What seals and opens links. Printing it prints no key.
pub struct SealingKey {
    name: [u8; KEY_NAME],
    mac: hmac::Key,
    aead: LessSafeKey,
}

impl fmt::Debug for SealingKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("SealingKey(…)")
    }
}

impl SealingKey {
    /// From secret bytes, of which there should be at least 32 that nobody can guess.
    ///
    /// # Panics
    /// Never: the derived keys have the lengths that their uses ask for.
    #[must_use]
    #[expect(clippy::expect_used, reason = "HMAC-SHA256 has 32 bytes, and so has a key of ChaCha20-Poly1305")]
    pub fn new(secret: &[u8]) -> Self {
        let master = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let derived = |what: &str| hmac::sign(&master, what.as_bytes());
        let mut name = [0; KEY_NAME];
        name.copy_from_slice(&derived("belfry link name").as_ref()[..KEY_NAME]);
        let aead = UnboundKey::new(&CHACHA20_POLY1305, &derived("belfry link sealing").as_ref()[..KEY_BYTES]);
        Self {
            name,
            mac: hmac::Key::new(hmac::HMAC_SHA256, derived("belfry link nonce").as_ref()),
            aead: LessSafeKey::new(aead.expect("a key of 32 bytes")),
        }
    }

    /// The same text for the same link. The nonce is an HMAC of what is sealed: it comes a second time only with the
    /// same content (as in RFC 5297, without its cipher).
    ///
    /// # Panics
    /// Never: plain data can be written, and is short.
    #[must_use]
    #[expect(clippy::expect_used, reason = "strings and numbers: writing and sealing them cannot fail")]
    pub fn seal(&self, link: &Link) -> String {
        let mut sealed = serde_json::to_vec(link).expect("plain data");
        let nonce = self.nonce(&sealed);
        let aad = Aad::from(self.name);
        self.aead
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), aad, &mut sealed)
            .expect("a short message");
        URL_SAFE_NO_PAD.encode([&self.name[..], &nonce, &sealed].concat())
    }

    fn nonce(&self, text: &[u8]) -> [u8; NONCE_LEN] {
        let mut nonce = [0; NONCE_LEN];
        nonce.copy_from_slice(&hmac::sign(&self.mac, text).as_ref()[..NONCE_LEN]);
        nonce
    }

    fn open(&self, token: &[u8]) -> Option<Link> {
        let (name, rest) = token.split_at_checked(KEY_NAME)?;
        let (nonce, sealed) = rest.split_at_checked(NONCE_LEN)?;
        let nonce: [u8; NONCE_LEN] = nonce.try_into().ok()?;
        let mut sealed = sealed.to_vec();
        let aad = Aad::from(<[u8; KEY_NAME]>::try_from(name).ok()?);
        let text = self.aead.open_in_place(Nonce::assume_unique_for_key(nonce), aad, &mut sealed).ok()?;
        serde_json::from_slice(text).ok()
    }
}

/// What `token` says, by whichever of `keys` sealed it. `None`: none of them did.
#[must_use]
pub fn open<'a>(keys: impl IntoIterator<Item = &'a SealingKey>, token: &str) -> Option<Link> {
    if token.len() > LONGEST_TOKEN {
        return None;
    }
    let token = URL_SAFE_NO_PAD.decode(token).ok()?;
    keys.into_iter().filter(|key| token.starts_with(&key.name)).find_map(|key| key.open(&token))
}

/// What links are made of, and what the pages behind them say.
#[derive(Clone, Debug, Default)]
pub struct LinkPolicy {
    /// Where this installation is reached, without a final slash.
    pub base: String,
    /// Who sends, as the pages name it.
    pub sender: Option<String>,
    /// The first seals, all open; the installation's own key opens as well, and seals where there is none.
    pub keys: Vec<Arc<SealingKey>>,
    /// By class.
    pub pages: BTreeMap<String, ClassPage>,
}

/// What recipients see of a class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassPage {
    /// Its mail says how to unsubscribe.
    pub unsubscribe: bool,
    /// What it is called, by language.
    pub titles: BTreeMap<String, String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link() -> Link {
        Link {
            tenant: "acme".into(),
            environment: "live".into(),
            recipient: Some("ann".into()),
            address: Some(LinkedAddress {
                channel: ChannelKind::Email,
                hash: "ab".repeat(16),
                mask: "a…@example.com".into(),
            }),
            category: Some("marketing".into()),
            locale: Some("de-AT".into()),
            until: UnixMs(1_800_000_000_000),
        }
    }

    #[test]
    fn a_link_is_sealed_the_same_each_time_and_opened_by_its_key() {
        let (one, other) = (SealingKey::new(&[1; 32]), SealingKey::new(&[2; 32]));
        let token = one.seal(&link());
        assert_eq!(token, SealingKey::new(&[1; 32]).seal(&link()));
        assert!(open([&other, &one], &token).is_some_and(|opened| opened == link()));
        assert_eq!(open([&other], &token), None);
        assert_ne!(token, other.seal(&link()));
        // Golden: another form orphans every link in every mailbox.
        assert_eq!(token.len(), 255);
        assert_eq!(&token[..22], GOLDEN);
    }

    const GOLDEN: &str = "8v9mCBSlLtonFzkW93GYC0";

    #[test]
    fn case_26_no_other_text_opens() {
        let key = SealingKey::new(&[1; 32]);
        let token = key.seal(&link());
        let bytes = URL_SAFE_NO_PAD.decode(&token).unwrap();
        for at in 0..bytes.len() {
            let mut bent = bytes.clone();
            bent[at] ^= 1;
            assert_eq!(open([&key], &URL_SAFE_NO_PAD.encode(&bent)), None, "byte {at}");
            assert_eq!(open([&key], &URL_SAFE_NO_PAD.encode(&bytes[..at])), None, "the first {at}");
        }
        for text in ["", "a", "æ", "%00", &token[1..], &format!("{token}A"), &"A".repeat(LONGEST_TOKEN + 1)] {
            assert_eq!(open([&key], text), None);
        }
    }

    #[test]
    fn nothing_of_it_can_be_read() {
        let token = SealingKey::new(&[1; 32]).seal(&link());
        let bytes = URL_SAFE_NO_PAD.decode(token).unwrap();
        for word in ["acme", "ann", "marketing", "example"] {
            assert!(!bytes.windows(word.len()).any(|window| window == word.as_bytes()), "{word}");
        }
        assert_eq!(format!("{:?} {:?}", link(), SealingKey::new(&[1; 32])), "Link(…) SealingKey(…)");
    }
}
