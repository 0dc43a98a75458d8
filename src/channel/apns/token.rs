//! Provider tokens: who we are, signed (JWT, ES256), good for an hour by Apple's clock.
//!
//! Apple refuses a second one within 20 minutes (429 TooManyProviderTokenUpdates) and one older than an hour
//! (403 ExpiredProviderToken). So all tasks, channels and reloads of the configuration share one per key, and
//! its age is counted on a clock that nobody steps.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderValue;
use ring::rand::SystemRandom;
use ring::signature::EcdsaKeyPair;
use sha2::{Digest as _, Sha256};

use crate::channel::pem::p256;
use crate::ports::clock::{Boot, Clock};

/// A token older than this is renewed. Apple's bounds are 20 and 60 minutes.
pub const RENEWED_AT: Duration = Duration::from_secs(40 * 60);
/// No second token before the first is so old.
pub const NOT_BEFORE: Duration = Duration::from_secs(20 * 60);
/// A token older than this is of no use to anybody.
const DEAD_AT: Duration = Duration::from_secs(60 * 60);
/// Most keys remembered that no channel uses any more.
const MOST_UNUSED: usize = 64;

/// What one token is shared by.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct SignerId {
    pub team: String,
    pub key_id: String,
    /// [`Signer::print`].
    pub key: [u8; 32],
}

pub(super) struct Signer {
    pair: EcdsaKeyPair,
    print: [u8; 32],
}

impl Signer {
    /// From PEM, PKCS#8: Apple's `.p8`.
    ///
    /// # Errors
    /// What is wrong, with what would be right; never any of the key's.
    pub fn read(pem: &str) -> Result<Self, String> {
        let (pair, der) = p256(pem)?;
        Ok(Self { pair, print: Sha256::digest(der.secret_pkcs8_der()).into() })
    }

    /// Tells keys apart without being one.
    pub const fn print(&self) -> [u8; 32] {
        self.print
    }
}

/// One token.
pub(super) struct Minted {
    /// `bearer …`
    pub authorization: HeaderValue,
    at: Boot,
}

/// The system has no random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CannotSign;

/// What to do about a token that Apple called expired.
pub(super) enum Renewal {
    /// Another one, to be tried once.
    Token(Arc<Minted>),
    /// It was made a moment ago: it is our clock, or Apple's.
    TooYoung,
}

/// Makes the tokens of one key, one at a time.
pub(super) struct Mint {
    id: SignerId,
    signer: Signer,
    current: Mutex<Option<Arc<Minted>>>,
}

impl Mint {
    fn new(id: SignerId, signer: Signer) -> Self {
        Self { id, signer, current: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Minted>>> {
        // Nothing that holds the lock can panic half-way through a change.
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The token that everybody uses now.
    pub fn current(&self, clock: &dyn Clock) -> Result<Arc<Minted>, CannotSign> {
        let mut current = self.lock();
        match &*current {
            Some(minted) if age(minted, clock) < RENEWED_AT => Ok(minted.clone()),
            Some(_) | None => self.renew(&mut current, clock),
        }
    }

    /// After Apple called `refused` expired. Of all who were told so at once, one renews it.
    pub fn after_expiry(&self, refused: &Arc<Minted>, clock: &dyn Clock) -> Result<Renewal, CannotSign> {
        let mut current = self.lock();
        match &*current {
            Some(minted) if !Arc::ptr_eq(minted, refused) => Ok(Renewal::Token(minted.clone())),
            Some(minted) if age(minted, clock) < NOT_BEFORE => Ok(Renewal::TooYoung),
            Some(_) | None => self.renew(&mut current, clock).map(Renewal::Token),
        }
    }

    fn renew(&self, current: &mut Option<Arc<Minted>>, clock: &dyn Clock) -> Result<Arc<Minted>, CannotSign> {
        let minted = Arc::new(self.sign(clock)?);
        *current = Some(minted.clone());
        Ok(minted)
    }

    fn sign(&self, clock: &dyn Clock) -> Result<Minted, CannotSign> {
        let SignerId { team, key_id, .. } = &self.id;
        let issued = clock.now().0.div_euclid(1000);
        let at = clock.boot();
        // Ids are letters and digits, so nothing needs escaping.
        let head = URL_SAFE_NO_PAD.encode(format!(r#"{{"alg":"ES256","kid":"{key_id}"}}"#));
        let claims = URL_SAFE_NO_PAD.encode(format!(r#"{{"iss":"{team}","iat":{issued}}}"#));
        let signed = format!("{head}.{claims}");
        let signature = self.signer.pair.sign(&SystemRandom::new(), signed.as_bytes()).map_err(|_| CannotSign)?;
        let token = format!("bearer {signed}.{}", URL_SAFE_NO_PAD.encode(signature));
        let mut authorization = HeaderValue::try_from(token).map_err(|_| CannotSign)?;
        authorization.set_sensitive(true);
        Ok(Minted { authorization, at })
    }

    fn is_dead(&self, clock: &dyn Clock) -> bool {
        self.lock().as_ref().is_none_or(|minted| age(minted, clock) >= DEAD_AT)
    }

    fn minted_at(&self) -> Boot {
        self.lock().as_ref().map_or(Duration::ZERO, |minted| minted.at)
    }
}

fn age(minted: &Minted, clock: &dyn Clock) -> Duration {
    clock.boot().saturating_sub(minted.at)
}

/// All mints of this instance: they outlive channels, so that a reload of the configuration, which makes new
/// ones, makes no second token.
#[derive(Default)]
pub struct Mints {
    kept: Mutex<HashMap<SignerId, Arc<Mint>>>,
}

impl Mints {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    pub(super) fn of(&self, id: SignerId, signer: Signer, clock: &dyn Clock) -> Arc<Mint> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mint) = kept.get(&id) {
            return mint.clone();
        }
        // A channel holds its own.
        kept.retain(|_, mint| Arc::strong_count(mint) > 1 || !mint.is_dead(clock));
        let mut unused: Vec<(Boot, SignerId)> = kept
            .iter()
            .filter(|(_, mint)| Arc::strong_count(mint) == 1)
            .map(|(id, mint)| (mint.minted_at(), id.clone()))
            .collect();
        unused.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
        for (_, id) in unused.iter().skip(MOST_UNUSED) {
            kept.remove(id);
        }
        let mint = Arc::new(Mint::new(id.clone(), signer));
        kept.insert(id, mint.clone());
        mint
    }
}

impl std::fmt::Debug for Mints {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Mints(…)")
    }
}

#[cfg(test)]
mod tests {
    use belfry_domain::UnixMs;

    use super::*;

    /// Seconds since boot; the wall clock goes along.
    struct At(Mutex<u64>);

    impl At {
        fn set(&self, seconds: u64) {
            *self.0.lock().unwrap() = seconds;
        }
    }

    #[async_trait::async_trait]
    impl Clock for At {
        fn now(&self) -> UnixMs {
            UnixMs(1_700_000_000_999).plus(self.boot())
        }

        fn boot(&self) -> Boot {
            Duration::from_secs(*self.0.lock().unwrap())
        }

        async fn sleep_until(&self, _until: Boot) {}
    }

    fn key() -> (SignerId, String) {
        let pem = rcgen::KeyPair::generate().unwrap().serialize_pem();
        let id = SignerId { team: "TEAM000001".into(), key_id: "KEY0000001".into(), key: read(&pem).print() };
        (id, pem)
    }

    fn read(pem: &str) -> Signer {
        Signer::read(pem).unwrap()
    }

    #[test]
    fn a_token_is_made_as_apple_reads_it() {
        let clock = At(Mutex::new(5));
        let (id, pem) = key();
        let minted = Mints::new().of(id, read(&pem), &clock).current(&clock).unwrap();
        assert!(minted.authorization.is_sensitive());
        let token = minted.authorization.to_str().unwrap().strip_prefix("bearer ").unwrap().to_owned();
        let parts: Vec<Vec<u8>> = token.split('.').map(|part| URL_SAFE_NO_PAD.decode(part).unwrap()).collect();
        assert_eq!(parts[0], br#"{"alg":"ES256","kid":"KEY0000001"}"#);
        assert_eq!(parts[1], br#"{"iss":"TEAM000001","iat":1700000005}"#);
        assert_eq!(parts[2].len(), 64, "two numbers, not DER");
    }

    #[test]
    fn a_token_lives_forty_minutes_and_is_never_renewed_before_twenty() {
        let clock = At(Mutex::new(100));
        let (id, pem) = key();
        let mint = Mints::new().of(id, read(&pem), &clock);
        let first = mint.current(&clock).unwrap();
        clock.set(100 + 2399);
        assert!(Arc::ptr_eq(&first, &mint.current(&clock).unwrap()));
        clock.set(100 + 1199);
        assert!(matches!(mint.after_expiry(&first, &clock), Ok(Renewal::TooYoung)));
        clock.set(100 + 1200);
        let Ok(Renewal::Token(second)) = mint.after_expiry(&first, &clock) else { panic!("it may be renewed") };
        assert!(!Arc::ptr_eq(&first, &second));
        let Ok(Renewal::Token(again)) = mint.after_expiry(&first, &clock) else { panic!("another task made it") };
        assert!(Arc::ptr_eq(&second, &again) && Arc::ptr_eq(&second, &mint.current(&clock).unwrap()));
        clock.set(100 + 1200 + 2400);
        assert!(!Arc::ptr_eq(&second, &mint.current(&clock).unwrap()));
    }

    #[test]
    fn mints_outlive_channels_while_their_token_does() {
        let clock = At(Mutex::new(0));
        let mints = Mints::new();
        let (id, pem) = key();
        let first = mints.of(id.clone(), read(&pem), &clock).current(&clock).unwrap();
        let second = mints.of(id.clone(), read(&pem), &clock).current(&clock).unwrap();
        assert!(Arc::ptr_eq(&first, &second));
        let (other, other_pem) = key();
        let held = mints.of(other.clone(), read(&other_pem), &clock);
        assert!(!Arc::ptr_eq(&first, &held.current(&clock).unwrap()), "the same ids, another key");
        clock.set(3600);
        let (third, third_pem) = key();
        drop(mints.of(third, read(&third_pem), &clock));
        let kept = mints.kept.lock().unwrap();
        assert!(!kept.contains_key(&id) && kept.contains_key(&other) && kept.len() == 2, "dead and unused ones go");
    }

    #[test]
    fn unused_mints_are_bounded() {
        let clock = At(Mutex::new(0));
        let mints = Mints::new();
        let mut newest = None;
        for number in 0..100 {
            clock.set(number);
            let (id, pem) = key();
            mints.of(id.clone(), read(&pem), &clock).current(&clock).unwrap();
            newest = Some(id);
        }
        let kept = mints.kept.lock().unwrap();
        assert_eq!(kept.len(), MOST_UNUSED + 1);
        assert!(kept.contains_key(&newest.unwrap()));
    }
}
