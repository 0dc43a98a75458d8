//! DKIM signatures (RFC 6376, RFC 8463), relaxed/relaxed.
//!
//! Not lettre's: it takes `t=` from the wall clock, so that a repeat would be signed differently,
//! reads no PKCS#8, signs no header twice (which is what keeps a second From from being added),
//! and recurses once per octet of a header.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use belfry_domain::UnixMs;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, RSA_PKCS1_SHA256, RsaKeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;
use sha2::{Digest, Sha256};

/// Signed where present; those marked are named once more than they occur, so that adding another
/// breaks the signature (RFC 6376 8.15).
const SIGNED: [(&str, bool); 16] = [
    ("from", true),
    ("to", true),
    ("cc", true),
    ("subject", true),
    ("date", true),
    ("message-id", true),
    ("reply-to", true),
    ("mime-version", false),
    ("content-type", true),
    ("content-transfer-encoding", false),
    ("in-reply-to", false),
    ("references", false),
    ("list-id", false),
    ("list-unsubscribe", true),
    ("list-unsubscribe-post", true),
    ("feedback-id", false),
];

enum SigningKey {
    Rsa(Box<RsaKeyPair>),
    Ed25519(Box<Ed25519KeyPair>),
}

pub struct Signer {
    domain: String,
    selector: String,
    key: SigningKey,
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Signer({}._domainkey.{})", self.selector, self.domain)
    }
}

impl Signer {
    /// Reads a PEM key: PKCS#1 or PKCS#8 RSA of at least 2048 bits, or PKCS#8 Ed25519.
    ///
    /// # Errors
    /// What is wrong with the key, in words; never the key.
    pub fn new(domain: &str, selector: &str, pem: &str) -> Result<Self, String> {
        let der = PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|_| "is no PEM private key".to_owned())?;
        let too_odd = |_| "is no usable RSA (2048 to 8192 bits) or Ed25519 key".to_owned();
        let key = match &der {
            PrivateKeyDer::Pkcs1(rsa) => {
                SigningKey::Rsa(Box::new(RsaKeyPair::from_der(rsa.secret_pkcs1_der()).map_err(too_odd)?))
            }
            PrivateKeyDer::Pkcs8(any) => match RsaKeyPair::from_pkcs8(any.secret_pkcs8_der()) {
                Ok(rsa) => SigningKey::Rsa(Box::new(rsa)),
                Err(_) => SigningKey::Ed25519(Box::new(
                    Ed25519KeyPair::from_pkcs8_maybe_unchecked(any.secret_pkcs8_der()).map_err(too_odd)?,
                )),
            },
            _ => return Err("is neither PKCS#1 nor PKCS#8".to_owned()),
        };
        Ok(Self { domain: domain.to_owned(), selector: selector.to_owned(), key })
    }

    /// The `DKIM-Signature` header for `mail`, with its line end; to be put before the mail. The
    /// same for the same mail and instant.
    ///
    /// # Errors
    /// The key cannot sign.
    pub fn sign(&self, mail: &[u8], at: UnixMs) -> Result<String, ring::error::Unspecified> {
        let (head, body) = split(mail);
        let headers = header_fields(head);
        let names = signed_names(&headers);
        let algorithm = match self.key {
            SigningKey::Rsa(_) => "rsa-sha256",
            SigningKey::Ed25519(_) => "ed25519-sha256",
        };
        let unsigned = format!(
            "DKIM-Signature: v=1; a={algorithm}; c=relaxed/relaxed; d={};\r\n s={}; t={};\r\n h={};\r\n bh={};\r\n b=",
            self.domain,
            self.selector,
            at.0.max(0) / 1000,
            names.join(":\r\n  "),
            STANDARD.encode(Sha256::digest(relaxed_body(body))),
        );
        let mut covered = Vec::new();
        for (at, name) in names.iter().enumerate() {
            // The nth mention of a name covers its nth header from below; past the last, nothing.
            let earlier = names[..at].iter().filter(|one| *one == name).count();
            if let Some(field) = headers.iter().rev().filter(|field| field_name(field) == *name).nth(earlier) {
                relaxed_header(field, &mut covered);
                covered.extend_from_slice(b"\r\n");
            }
        }
        relaxed_header(unsigned.as_bytes(), &mut covered);
        let signature = STANDARD.encode(self.signature(&covered)?);
        Ok(format!("{unsigned}{}\r\n", folded(&signature)))
    }

    fn signature(&self, covered: &[u8]) -> Result<Vec<u8>, ring::error::Unspecified> {
        match &self.key {
            SigningKey::Rsa(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                // PKCS#1 v1.5 draws nothing from it: the signature is the same every time.
                key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), covered, &mut signature)?;
                Ok(signature)
            }
            SigningKey::Ed25519(key) => Ok(key.sign(&Sha256::digest(covered)).as_ref().to_vec()),
        }
    }
}

fn signed_names(headers: &[&[u8]]) -> Vec<&'static str> {
    let mut names = Vec::new();
    for (name, once_more) in SIGNED {
        let present = headers.iter().filter(|field| field_name(field) == name).count();
        let mentions = if present > 0 || name == "from" { present + usize::from(once_more) } else { 0 };
        names.extend(std::iter::repeat_n(name, mentions));
    }
    names
}

fn split(mail: &[u8]) -> (&[u8], &[u8]) {
    match mail.windows(4).position(|four| four == b"\r\n\r\n") {
        Some(at) => (&mail[..at + 2], &mail[at + 4..]),
        None => (mail, &[]),
    }
}

/// Header fields, unfolded only in the sense of standing together; without the last line end.
fn header_fields(head: &[u8]) -> Vec<&[u8]> {
    let mut fields = Vec::new();
    let mut start = 0;
    let mut at = 0;
    while at + 1 < head.len() {
        if &head[at..at + 2] == b"\r\n" && !matches!(head.get(at + 2), Some(b' ' | b'\t')) {
            fields.push(&head[start..at]);
            start = at + 2;
        }
        at += 1;
    }
    fields
}

fn field_name(field: &[u8]) -> String {
    let end = field.iter().position(|byte| *byte == b':').unwrap_or(field.len());
    String::from_utf8_lossy(&field[..end]).trim_end().to_ascii_lowercase()
}

/// RFC 6376 3.4.2, without the line end.
fn relaxed_header(field: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(field_name(field).as_bytes());
    out.push(b':');
    let value = field.iter().position(|byte| *byte == b':').map_or(&[][..], |at| &field[at + 1..]);
    let mut words = value.split(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')).filter(|word| !word.is_empty());
    if let Some(first) = words.next() {
        out.extend_from_slice(first);
    }
    for word in words {
        out.push(b' ');
        out.extend_from_slice(word);
    }
}

/// RFC 6376 3.4.4.
fn relaxed_body(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len());
    let mut line_start = 0;
    while line_start < body.len() {
        let line_end =
            body[line_start..].windows(2).position(|two| two == b"\r\n").map_or(body.len(), |at| line_start + at);
        let line = &body[line_start..line_end];
        let kept = line.len() - line.iter().rev().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let mut in_space = false;
        for &byte in &line[..kept] {
            let space = matches!(byte, b' ' | b'\t');
            if !(space && in_space) {
                out.push(if space { b' ' } else { byte });
            }
            in_space = space;
        }
        out.extend_from_slice(b"\r\n");
        line_start = line_end + 2;
    }
    while out.ends_with(b"\r\n\r\n") {
        out.truncate(out.len() - 2);
    }
    if out == b"\r\n" { Vec::new() } else { out }
}

fn folded(signature: &str) -> String {
    let mut out = String::with_capacity(signature.len() + signature.len() / 24);
    for (at, chunk) in signature.as_bytes().chunks(72).enumerate() {
        if at > 0 {
            out.push_str("\r\n ");
        }
        out.push_str(&String::from_utf8_lossy(chunk));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relaxed(field: &str) -> String {
        let mut out = Vec::new();
        relaxed_header(field.as_bytes(), &mut out);
        String::from_utf8(out).unwrap()
    }

    /// The examples of RFC 6376 3.4.5.
    #[test]
    fn canonical_forms_of_the_standard() {
        assert_eq!(relaxed("A: X"), "a:X");
        assert_eq!(relaxed("B : Y\t\r\n\tZ  "), "b:Y Z");
        assert_eq!(relaxed_body(b" C \r\nD \t E\r\n\r\n\r\n"), b" C\r\nD E\r\n");
        assert_eq!(relaxed_body(b"\r\n\r\n"), b"");
        assert_eq!(relaxed_body(b""), b"");
        assert_eq!(relaxed_body(b"a"), b"a\r\n");
    }

    #[test]
    fn names_are_signed_once_more_than_they_occur() {
        let head = b"From: a\r\nX-Other: b\r\nMIME-Version: 1.0\r\nSubject: c\r\n d\r\n";
        let fields = header_fields(head);
        assert_eq!(fields.len(), 4);
        assert_eq!(signed_names(&fields), ["from", "from", "subject", "subject", "mime-version"]);
    }

    #[test]
    fn keys_that_are_none() {
        for bad in ["", "hello", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"] {
            assert!(Signer::new("example.com", "s1", bad).is_err());
        }
    }

    /// Verified with the public key, over the canonical form, as a receiver would.
    #[test]
    fn an_ed25519_signature_verifies_and_is_the_same_twice() {
        use ring::signature::{ED25519, KeyPair as _, UnparsedPublicKey};
        let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let key = Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap();
        let pem =
            format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", STANDARD.encode(pkcs8.as_ref()));
        let signer = Signer::new("example.com", "s1", &pem).unwrap();
        let mail = b"From: a@example.com\r\nSubject: x\r\n\r\nhello\r\n";
        let header = signer.sign(mail, UnixMs(1_700_000_000_999)).unwrap();
        assert_eq!(header, signer.sign(mail, UnixMs(1_700_000_000_999)).unwrap());
        assert!(header.contains("t=1700000000;"));
        let (unsigned, signature) = header.rsplit_once("b=").unwrap();
        let signature = STANDARD.decode(signature.replace(['\r', '\n', ' '], "")).unwrap();
        let mut covered = b"from:a@example.com\r\nsubject:x\r\n".to_vec();
        relaxed_header(format!("{unsigned}b=").as_bytes(), &mut covered);
        let public = UnparsedPublicKey::new(&ED25519, key.public_key().as_ref());
        public.verify(&Sha256::digest(&covered), &signature).unwrap();
    }
}
