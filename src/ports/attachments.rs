//! What is attached to mails is kept once, however many mails it goes with: by a digest of its owner and its content,
//! beside the inputs that name it, for as long as one of them does.

use std::fmt;
use std::sync::Arc;

use belfry_domain::hex;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

use super::deliveries::Owner;

/// SHA-256, in bytes. All of it: who can have two files sent must not find two that share a place.
pub const DIGEST: usize = 32;

/// Under which one content of one owner is kept. Two owners have nothing in common: that a content is known already,
/// or goes, says nothing to another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttachedId([u8; DIGEST]);

impl AttachedId {
    #[must_use]
    pub fn of(owner: &Owner, content: &[u8]) -> Self {
        Self::over(&[b"attachment", owner.tenant.as_bytes(), owner.environment.as_bytes(), content])
    }

    /// Of a template's own file: it belongs to the installation.
    #[must_use]
    pub fn of_template(content: &[u8]) -> Self {
        Self::over(&[b"template", content])
    }

    #[must_use]
    pub const fn from_bytes(bytes: [u8; DIGEST]) -> Self {
        Self(bytes)
    }

    /// The length prefix (eight bytes, big endian) keeps `("ab", "c")` and `("a", "bc")` apart.
    fn over(parts: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        Self(hash.finalize().into())
    }

    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; DIGEST] {
        &self.0
    }
}

impl fmt::Debug for AttachedId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&hex(&self.0))
    }
}

/// 64 hex digits.
impl Serialize for AttachedId {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&hex(&self.0))
    }
}

impl<'de> Deserialize<'de> for AttachedId {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let mut bytes = [0; DIGEST];
        let fits = text.len() == 2 * DIGEST && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        for (place, byte) in bytes.iter_mut().enumerate().filter(|_| fits) {
            let pair = text.get(2 * place..2 * place + 2).unwrap_or_default();
            *byte = u8::from_str_radix(pair, 16).map_err(serde::de::Error::custom)?;
        }
        if fits { Ok(Self(bytes)) } else { Err(serde::de::Error::custom("64 hex digits are a digest")) }
    }
}

/// One content, on its way to the store.
#[derive(Clone, PartialEq, Eq)]
pub struct Attached {
    pub id: AttachedId,
    pub content: Arc<[u8]>,
}

impl Attached {
    #[must_use]
    pub fn of(owner: &Owner, content: Vec<u8>) -> Self {
        Self { id: AttachedId::of(owner, &content), content: content.into() }
    }

    #[must_use]
    pub fn of_template(content: Vec<u8>) -> Self {
        Self { id: AttachedId::of_template(&content), content: content.into() }
    }
}

impl fmt::Debug for Attached {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Attached({:?}, {} bytes)", self.id, self.content.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(tenant: &str, environment: &str, content: &str) -> AttachedId {
        let owner = Owner { tenant: tenant.into(), environment: environment.into() };
        AttachedId::of(&owner, content.as_bytes())
    }

    #[test]
    fn an_id_is_of_its_owner_and_its_content() {
        // Stored: never to change. Python: sha256(b"".join(len(p).to_bytes(8, "big") + p for p in parts)).
        let golden = "\"64c6a794e763bf2a0402da3a742ffec009d1b2c423719ce879a8d362dba86db7\"";
        assert_eq!(serde_json::to_string(&id("acme", "live", "hello")).unwrap(), golden);
        assert_eq!(serde_json::from_str::<AttachedId>(golden).unwrap(), id("acme", "live", "hello"));
        let others = [id("acm", "elive", "hello"), id("acme", "test", "hello"), id("acme", "live", "hello ")];
        assert!(others.iter().all(|other| *other != id("acme", "live", "hello")));
        for bad in ["\"\"", "\"ab\"", &golden.replace('0', "+"), &format!("\"{}\"", "é".repeat(32))] {
            assert!(serde_json::from_str::<AttachedId>(bad).is_err(), "{bad}");
        }
    }
}
