//! API keys: `blf_<environment>_<48 hex digits><8 hex digits of checksum>`. The prefix lets scanners
//! find leaked ones, the checksum lets a mistyped one be refused without asking the store.

use sha2::{Digest, Sha256};

use crate::intake::canonical::hex;

/// Random bytes in a key.
pub const RANDOM_BYTES: usize = 24;
const CHECK_DIGITS: usize = 8;

/// Makes the key that belongs to `random`. It is shown once; what is stored is its [`hash`].
#[must_use]
pub fn mint(environment: &str, random: [u8; RANDOM_BYTES]) -> String {
    let key = format!("blf_{environment}_{}", hex(&random));
    let check = checksum(&key);
    format!("{key}{check}")
}

/// Whether `key` has the form and the checksum of a minted key.
#[must_use]
pub fn well_formed(key: &str) -> bool {
    let Some((environment, digits)) = key.strip_prefix("blf_").and_then(|rest| rest.rsplit_once('_')) else {
        return false;
    };
    let hex_only = digits.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    if environment.is_empty() || !hex_only || digits.len() != RANDOM_BYTES * 2 + CHECK_DIGITS {
        return false;
    }
    let (stem, check) = key.split_at(key.len() - CHECK_DIGITS);
    checksum(stem) == check
}

/// Hex SHA-256: the key is random, so a plain hash is enough.
#[must_use]
pub fn hash(key: &str) -> String {
    hex(&Sha256::digest(key.as_bytes()))
}

/// A key's public name.
#[must_use]
pub fn public_id(hash: &str) -> String {
    format!("key_{}", &hash[..hash.len().min(12)])
}

fn checksum(stem: &str) -> String {
    hex(&Sha256::digest(stem.as_bytes())[..CHECK_DIGITS / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_key() {
        let key = mint("live", [0xab; RANDOM_BYTES]);
        assert_eq!(key, "blf_live_ababababababababababababababababababababababababa1202f50");
        assert!(well_formed(&key));
    }

    #[test]
    fn one_wrong_letter_is_noticed() {
        let key = mint("my_env", [7; RANDOM_BYTES]);
        assert!(well_formed(&key));
        for at in 0..key.len() {
            let mut bytes = key.clone().into_bytes();
            bytes[at] = if bytes[at] == b'1' { b'2' } else { b'1' };
            assert!(!well_formed(&String::from_utf8(bytes).unwrap()), "{at}");
        }
        for bad in ["", "blf_", "blf_live_", "blf__00", "x", &key[..key.len() - 1], &format!("{key}0")] {
            assert!(!well_formed(bad), "{bad}");
        }
    }
}
