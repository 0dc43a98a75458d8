//! API keys: `blf_<environment>_<48 hex digits><8 hex digits of checksum>`. The prefix lets scanners
//! find leaked ones, the checksum lets a mistyped one be refused without asking the store.

use belfry_domain::UnixMs;
use sha2::{Digest, Sha256};

use crate::ports::admin::{ApiKey, Can};
use belfry_domain::hex;

/// Messages of this environment really go out, unless it is configured otherwise.
pub const LIVE: &str = "live";
/// Messages of this environment always go to the outbox.
pub const TEST: &str = "test";
/// Characters in what its maker calls a key.
pub const MOST_NAME: usize = 100;

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

/// A key that is asked for, every name in it checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewKey {
    pub name: Option<String>,
    pub tenant: String,
    pub environment: String,
    pub namespace: String,
    pub can: Vec<Can>,
}

impl NewKey {
    /// The key itself, to be shown once, and what is stored of it.
    #[must_use]
    pub fn made(self, random: [u8; RANDOM_BYTES], now: UnixMs) -> (String, ApiKey) {
        let secret = mint(&self.environment, random);
        let hash = hash(&secret);
        let mut can = self.can;
        can.sort_unstable();
        can.dedup();
        let key = ApiKey {
            id: public_id(&hash),
            name: self.name,
            tenant: self.tenant,
            environment: self.environment,
            namespace: self.namespace,
            can,
            hash,
            operator: false,
            created_at: now,
            revoked_at: None,
        };
        (secret, key)
    }
}

/// Why `name` is no tenant, environment or namespace, if so: it becomes part of keys and of derived
/// ids.
#[must_use]
pub fn refused_name(name: &str) -> Option<&'static str> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_';
    let fits = (1..=64).contains(&name.len()) && name.bytes().all(plain);
    (!fits).then_some("must be 1 to 64 lower-case letters, digits, \"-\" and \"_\"")
}

/// Why no key is made for this environment, if so. A mistyped one would not be held back by anything:
/// its messages would really go out.
#[must_use]
pub fn refused_environment(environment: &str, configured: &[String]) -> Option<String> {
    let known = [LIVE, TEST].contains(&environment) || configured.iter().any(|name| name == environment);
    let all: Vec<&str> = [LIVE, TEST].into_iter().chain(configured.iter().map(String::as_str)).collect();
    (!known).then(|| {
        format!(
            "is not configured, so its messages would really go out; there are {}. Another one begins with \
             [environments.<name>] in the configuration; allow = [\"*\"] there sends for real",
            all.join(", ")
        )
    })
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
    fn an_environment_that_is_not_configured_is_refused() {
        let configured = ["staging".to_owned()];
        for known in ["live", "test", "staging"] {
            assert_eq!(refused_environment(known, &configured), None, "{known}");
        }
        let told = refused_environment("stagging", &configured).unwrap();
        assert!(told.contains("live, test, staging"), "{told}");
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
