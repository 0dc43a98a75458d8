//! A push message's encryption (RFC 8291, over the content coding aes128gcm of RFC 8188): one record,
//! without padding, under a key that only the browser and this one call know.

use std::fmt;

use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::agreement::{ECDH_P256, EphemeralPrivateKey, UnparsedPublicKey, agree_ephemeral};
use ring::error::Unspecified;
use ring::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};
use ring::rand::{SecureRandom as _, SystemRandom};

use super::subscription::Receiver;

/// An uncompressed P-256 point: 0x04, x, y.
pub(super) const POINT: usize = 65;
const SALT: usize = 16;
/// Push services need to take no more than 4096 bytes of body (RFC 8030 7.2), so the record is no longer.
const RECORD: u32 = 4096;
/// 4096 bytes less salt, record size, key length, key, delimiter and tag.
pub const MOST_PLAINTEXT: usize = 3993;
/// Stands after the plaintext of the last record (RFC 8188 2).
const LAST_RECORD: u8 = 2;

/// The receiver's key is no point of the curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotOnCurve;

/// The request's body: `plaintext` for `receiver`. At most [`MOST_PLAINTEXT`] bytes.
///
/// # Panics
/// Where the system has no random numbers: no message may go out under a key that can be guessed.
pub(super) fn encrypt(plaintext: &[u8], receiver: &Receiver) -> Result<Vec<u8>, NotOnCurve> {
    const RANDOM: &str = "the system has no random numbers";
    let rng = SystemRandom::new();
    let mut salt = [0; SALT];
    rng.fill(&mut salt).expect(RANDOM);
    let own = EphemeralPrivateKey::generate(&ECDH_P256, &rng).expect(RANDOM);
    let public = own.compute_public_key().expect("a fresh key has its public half");
    let mut sender = [0; POINT];
    sender.copy_from_slice(public.as_ref());
    let theirs = UnparsedPublicKey::new(&ECDH_P256, &receiver.p256dh);
    let sealed = agree_ephemeral(own, &theirs, |secret| seal(plaintext, &Exchange { secret, receiver, sender, salt }));
    sealed.map_err(|Unspecified| NotOnCurve)?.map_err(|Unspecified| NotOnCurve)
}

/// What both sides derive their keys from.
struct Exchange<'a> {
    /// The shared x coordinate.
    secret: &'a [u8],
    receiver: &'a Receiver,
    sender: [u8; POINT],
    salt: [u8; SALT],
}

#[derive(PartialEq, Eq)]
struct Keys {
    content: [u8; 16],
    nonce: [u8; 12],
}

impl fmt::Debug for Keys {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Keys(…)")
    }
}

impl Exchange<'_> {
    /// RFC 8291 3.3: the receiver's authentication secret goes in, so that a push service that
    /// replaces the public key still cannot read.
    fn keying_material(&self) -> Result<[u8; 32], Unspecified> {
        let extracted = Salt::new(HKDF_SHA256, &self.receiver.auth).extract(self.secret);
        expand(&extracted, &[b"WebPush: info\0", &self.receiver.p256dh, &self.sender])
    }

    /// RFC 8188 2.2 and 2.3.
    fn keys(&self) -> Result<Keys, Unspecified> {
        let extracted = Salt::new(HKDF_SHA256, &self.salt).extract(&self.keying_material()?);
        Ok(Keys {
            content: expand(&extracted, &[b"Content-Encoding: aes128gcm\0"])?,
            nonce: expand(&extracted, &[b"Content-Encoding: nonce\0"])?,
        })
    }
}

fn seal(plaintext: &[u8], exchange: &Exchange<'_>) -> Result<Vec<u8>, Unspecified> {
    let keys = exchange.keys()?;
    let mut record = Vec::with_capacity(plaintext.len() + 1 + AES_128_GCM.tag_len());
    record.extend_from_slice(plaintext);
    record.push(LAST_RECORD);
    let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &keys.content)?);
    // The key is of this one record, so its nonce (number 0) never comes twice.
    key.seal_in_place_append_tag(Nonce::assume_unique_for_key(keys.nonce), Aad::empty(), &mut record)?;
    let mut body = Vec::with_capacity(SALT + 4 + 1 + POINT + record.len());
    body.extend_from_slice(&exchange.salt);
    body.extend_from_slice(&RECORD.to_be_bytes());
    body.push(POINT as u8);
    body.extend_from_slice(&exchange.sender);
    body.append(&mut record);
    Ok(body)
}

struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

fn expand<const N: usize>(extracted: &Prk, info: &[&[u8]]) -> Result<[u8; N], Unspecified> {
    let mut out = [0; N];
    extracted.expand(info, Length(N))?.fill(&mut out)?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use super::*;

    fn bytes<const N: usize>(text: &str) -> [u8; N] {
        URL_SAFE_NO_PAD.decode(text).unwrap().try_into().unwrap()
    }

    fn receiver() -> Receiver {
        Receiver {
            p256dh: bytes("BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"),
            auth: bytes("BTBZMqHH6r4Tts7J_aSIgg"),
        }
    }

    /// RFC 8291, appendix A.
    #[test]
    fn the_example_of_the_rfc() {
        let secret: [u8; 32] = bytes("kyrL1jIIOHEzg3sM2ZWRHDRB62YACZhhSlknJ672kSs");
        let exchange = Exchange {
            secret: &secret,
            receiver: &receiver(),
            sender: bytes("BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8"),
            salt: bytes("DGv6ra1nlYgDCS1FRnbzlw"),
        };
        let material: [u8; 32] = bytes("S4lYMb_L0FxCeq0WhDx813KgSYqU26kOyzWUdsXYyrg");
        assert_eq!(exchange.keying_material().unwrap(), material);
        let keys = Keys { content: bytes("oIhVW04MRdy2XN9CiKLxTg"), nonce: bytes("4h_95klXJ5E_qnoN") };
        assert!(exchange.keys().unwrap() == keys);
        let body = seal(b"When I grow up, I want to be a watermelon", &exchange).unwrap();
        assert_eq!(
            URL_SAFE_NO_PAD.encode(body),
            "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6Tlz\
             AC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
        );
    }

    #[test]
    fn the_longest_plaintext_fills_the_record() {
        let body = encrypt(&[b' '; MOST_PLAINTEXT], &receiver()).unwrap();
        assert_eq!(body.len(), RECORD as usize);
        assert_eq!(encrypt(b"", &receiver()).unwrap().len(), 16 + 4 + 1 + POINT + 1 + 16);
    }

    #[test]
    fn no_two_calls_share_a_key() {
        let [one, other] = [(), ()].map(|()| encrypt(b"{}", &receiver()).unwrap());
        assert_ne!(one[..SALT], other[..SALT]);
        assert_ne!(one[SALT + 5..SALT + 5 + POINT], other[SALT + 5..SALT + 5 + POINT]);
    }

    #[test]
    fn a_key_off_the_curve_is_refused() {
        let mut off = receiver();
        off.p256dh[64] ^= 1;
        assert_eq!(encrypt(b"{}", &off), Err(NotOnCurve));
        assert_eq!(encrypt(b"{}", &Receiver { p256dh: [4; POINT], ..off }), Err(NotOnCurve));
    }
}
