//! Bearer keys. Tenant, environment, namespace and permissions come from the key alone.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::Mutex;
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::{header, request::Parts};

use super::api::{Api, Shared};
use super::keys;
use super::limit::Slip;
use super::problem::{Code, Problem};
use crate::intake::caller::Caller;
use crate::ports::admin::{ApiKey, Can};
use crate::ports::clock::Boot;

/// Most keys remembered at once.
const MOST_CACHED: usize = 1024;
/// Bootstrap keys have 32 to 128 visible characters; minted ones are shorter than that.
const MOST_KEY_BYTES: usize = 256;

/// Valid keys, believed for a short while so that not every request costs a look-up.
pub struct KeyCache {
    keys: Mutex<HashMap<String, (ApiKey, Boot)>>,
    for_: Duration,
}

impl KeyCache {
    #[must_use]
    pub fn new(for_: Duration) -> Self {
        Self { keys: Mutex::new(HashMap::new()), for_ }
    }

    fn get(&self, hash: &str, now: Boot) -> Option<ApiKey> {
        let keys = self.keys.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        keys.get(hash).filter(|(_, since)| now.saturating_sub(*since) < self.for_).map(|(key, _)| key.clone())
    }

    /// From now on it is asked for anew: it was revoked here.
    pub fn forget(&self, hash: &str) {
        self.keys.lock().unwrap_or_else(std::sync::PoisonError::into_inner).remove(hash);
    }

    fn put(&self, key: &ApiKey, now: Boot) {
        let mut keys = self.keys.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if keys.len() >= MOST_CACHED {
            keys.retain(|_, (_, since)| now.saturating_sub(*since) < self.for_);
        }
        // Still full: more keys are in use than are worth remembering.
        if keys.len() < MOST_CACHED {
            keys.insert(key.hash.clone(), (key.clone(), now));
        }
    }
}

impl Api {
    async fn key(&self, parts: &Parts) -> Result<ApiKey, Problem> {
        let token = bearer(parts).ok_or_else(|| unauthenticated("Send `Authorization: Bearer <key>`."))?;
        let hash = keys::hash(token);
        if let Some(bootstrap) = self.deps.bootstrap.as_ref().filter(|key| key.hash == hash) {
            return Ok(bootstrap.clone());
        }
        if !keys::well_formed(token) {
            return Err(unauthenticated("The key has not the form of one, or a letter of it is wrong."));
        }
        let now = self.deps.clock.boot();
        if let Some(key) = self.key_cache.get(&hash, now) {
            return Ok(key);
        }
        let found = self.stored("by_hash", self.deps.api_keys.by_hash(&hash)).await?;
        let key = found.filter(|key| key.revoked_at.is_none());
        let key = key.ok_or_else(|| unauthenticated("The key is unknown or revoked."))?;
        self.key_cache.put(&key, now);
        Ok(key)
    }
}

fn bearer(parts: &Parts) -> Option<&str> {
    let mut values = parts.headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    let fits = scheme.eq_ignore_ascii_case("bearer") && !token.is_empty() && token.len() <= MOST_KEY_BYTES;
    fits.then_some(token)
}

fn unauthenticated(detail: &str) -> Problem {
    Problem::new(Code::Unauthenticated, detail)
}

/// A permission as a type, so that a handler's signature says what it takes.
pub trait Permission: Send + Sync + 'static {
    /// Any of these will do.
    const CAN: &'static [Can];
    const NAME: &'static str;
    /// As how many calls it counts; 0 where the handler counts, because it has to look.
    const COST: u32 = 1;
}

pub struct ToSend;
/// Each of what is sent counts as a call.
pub struct ToSendMany;
pub struct ToRead;
pub struct ToAdmin;
/// To see what is kept of recipients: whoever keeps it, and whoever looks into what became of a message to them.
pub struct ToSee;

impl Permission for ToSend {
    const CAN: &'static [Can] = &[Can::Send];
    const NAME: &'static str = "`send`";
}

impl Permission for ToSendMany {
    const CAN: &'static [Can] = ToSend::CAN;
    const NAME: &'static str = ToSend::NAME;
    const COST: u32 = 0;
}

impl Permission for ToRead {
    const CAN: &'static [Can] = &[Can::Read];
    const NAME: &'static str = "`read`";
}

impl Permission for ToAdmin {
    const CAN: &'static [Can] = &[Can::Admin];
    const NAME: &'static str = "`admin`";
}

impl Permission for ToSee {
    const CAN: &'static [Can] = &[Can::Read, Can::Send];
    const NAME: &'static str = "`read` or `send`";
}

/// A caller whose key grants the permission.
pub struct Allowed<P> {
    pub caller: Caller,
    /// The key itself, for what keys may do about keys.
    pub key: ApiKey,
    /// For what the handler itself counts.
    pub slip: Slip,
    permission: PhantomData<P>,
}

impl<P: Permission> FromRequestParts<Shared> for Allowed<P> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Shared) -> Result<Self, Problem> {
        let key = api.key(parts).await?;
        let slip = parts.extensions.get::<Slip>().cloned().unwrap_or_default();
        if P::COST > 0 {
            api.count(&key, &slip, P::COST)?;
        }
        if !P::CAN.iter().any(|one| key.can.contains(one)) {
            return Err(Problem::new(Code::Forbidden, format!("The key lacks the permission {}.", P::NAME)));
        }
        Ok(Self { caller: Caller::of(&key), key, slip, permission: PhantomData })
    }
}
