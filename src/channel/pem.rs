//! Private keys in PEM, and what people put in their place: each told apart, so that the error says what to do.

use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject as _;

const MAKE_PKCS8: &str = "openssl pkey -in OLD -out NEW makes the one that is needed";

/// A key for ES256 (RFC 7518 3.4), and the DER that it was read from.
///
/// # Errors
/// What is wrong, with what would be right; never any of the key's.
pub(super) fn p256(text: &str) -> Result<(EcdsaKeyPair, PrivatePkcs8KeyDer<'static>), String> {
    let der = pkcs8(text)?;
    match EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der.secret_pkcs8_der(), &SystemRandom::new()) {
        Ok(pair) => Ok((pair, der)),
        Err(_) => Err(match kind(der.secret_pkcs8_der()) {
            Some("P-256") => format!("holds a P-256 key without its public part; {MAKE_PKCS8}"),
            Some(kind) => format!("holds a key of another kind ({kind}); expected one of the curve P-256"),
            None => "holds a key of another kind; expected one of the curve P-256".to_owned(),
        }),
    }
}

/// # Errors
/// As for [`p256`].
pub(super) fn pkcs8(text: &str) -> Result<PrivatePkcs8KeyDer<'static>, String> {
    PrivatePkcs8KeyDer::from_pem_slice(text.as_bytes()).map_err(|_| no_key(text))
}

/// What stands where a private key should, as far as that can be told.
pub(super) fn no_key(text: &str) -> String {
    const EXPECTED: &str = "expected a private key in PEM, from BEGIN PRIVATE KEY to END PRIVATE KEY";
    let has = |what: &str| text.contains(what);
    if has("BEGIN ENCRYPTED PRIVATE KEY") || has("Proc-Type: 4,ENCRYPTED") {
        "is encrypted, and there is no setting for its passphrase; openssl pkey -in OLD -out NEW takes it off"
            .to_owned()
    } else if has("BEGIN EC PRIVATE KEY") || has("BEGIN RSA PRIVATE KEY") {
        format!("holds a key in an older form than PKCS#8 (BEGIN PRIVATE KEY); {MAKE_PKCS8}")
    } else if has("BEGIN PRIVATE KEY") && has("\\n") {
        format!("has \\n in place of line ends; {EXPECTED}, on lines of their own")
    } else if has("BEGIN PRIVATE KEY") {
        format!("holds a private key that is damaged or cut off; {EXPECTED}")
    } else if has("BEGIN PUBLIC KEY") {
        format!("holds a public key; {EXPECTED}")
    } else if has("BEGIN CERTIFICATE") {
        format!("holds a certificate without its key; {EXPECTED}")
    } else if has("BEGIN OPENSSH PRIVATE KEY") {
        format!("holds a key for ssh; {EXPECTED}")
    } else if text.trim_start().starts_with('/') && text.lines().count() == 1 {
        "is a path, not what the file holds; give it by the setting that ends with _file".to_owned()
    } else {
        format!("holds no private key; {EXPECTED}")
    }
}

/// By the object identifiers of algorithm and curve, which stand at a PKCS#8 key's beginning (RFC 5208 5).
fn kind(der: &[u8]) -> Option<&'static str> {
    const KINDS: [(&[u8], &str); 6] = [
        (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07], "P-256"),
        (&[0x2b, 0x81, 0x04, 0x00, 0x22], "P-384"),
        (&[0x2b, 0x81, 0x04, 0x00, 0x23], "P-521"),
        (&[0x2b, 0x81, 0x04, 0x00, 0x0a], "secp256k1"),
        (&[0x2b, 0x65, 0x70], "Ed25519"),
        (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01], "RSA"),
    ];
    let begins = &der[..der.len().min(40)];
    let has = |identifier: &[u8]| begins.windows(identifier.len()).any(|part| part == identifier);
    KINDS.iter().find(|(identifier, _)| has(identifier)).map(|(_, kind)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(alg: &'static rcgen::SignatureAlgorithm) -> String {
        rcgen::KeyPair::generate_for(alg).unwrap().serialize_pem()
    }

    fn said(text: &str) -> String {
        p256(text).map(drop).expect_err(text)
    }

    #[test]
    fn a_key_of_another_kind_is_named() {
        assert!(p256(&key(&rcgen::PKCS_ECDSA_P256_SHA256)).is_ok());
        for (alg, kind) in [(&rcgen::PKCS_ECDSA_P384_SHA384, "P-384"), (&rcgen::PKCS_ED25519, "Ed25519")] {
            let expected = format!("holds a key of another kind ({kind}); expected one of the curve P-256");
            assert_eq!(said(&key(alg)), expected);
        }
    }

    #[test]
    fn what_stands_in_place_of_a_key_is_told_apart_and_not_quoted() {
        let of = |label: &str| format!("-----BEGIN {label}-----\nc2VjcmV0\n-----END {label}-----\n");
        let whole = key(&rcgen::PKCS_ECDSA_P256_SHA256);
        for (text, expected) in [
            (of("ENCRYPTED PRIVATE KEY"), "is encrypted"),
            ("-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nc2Vj\n".to_owned(), "is encrypted"),
            (of("EC PRIVATE KEY"), "holds a key in an older form than PKCS#8"),
            (of("RSA PRIVATE KEY"), "holds a key in an older form than PKCS#8"),
            (of("PUBLIC KEY"), "holds a public key"),
            (of("CERTIFICATE"), "holds a certificate without its key"),
            (of("OPENSSH PRIVATE KEY"), "holds a key for ssh"),
            (whole.replace('\n', "\\n"), "has \\n in place of line ends"),
            (whole[..whole.len() / 2].to_owned(), "holds a private key that is damaged or cut off"),
            ("/run/secrets/AuthKey_secret.p8".to_owned(), "is a path"),
            ("secret".to_owned(), "holds no private key; expected a private key in PEM"),
            (String::new(), "holds no private key"),
        ] {
            let said = said(&text);
            assert!(said.starts_with(expected), "{text}: {said}");
            assert!(!said.contains("c2Vj") && !said.contains("secret"), "{said}");
        }
    }
}
