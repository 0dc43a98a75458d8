//! The first key: printed once, so that a fresh installation can be used at all.

use anyhow::Context;
use secrecy::ExposeSecret;

use super::Stores;
use crate::config::Config;
use crate::http::keys;
use crate::machine::MachineDice;
use crate::ports::admin::{ApiKey, Can};
use crate::ports::clock::{Clock, Dice};

/// Of the key that a first start makes.
const TENANT: &str = "default";
const ENVIRONMENT: &str = "live";
const NAMESPACE: &str = "main";

/// Makes a key where there is none and the operator gave none. Returns it in the clear, once.
pub async fn first(config: &Config, stores: &Stores, clock: &dyn Clock) -> anyhow::Result<Option<String>> {
    if config.bootstrap_key.is_some() || !stores.api_keys.list().await?.is_empty() {
        return Ok(None);
    }
    let mut random = [0; keys::RANDOM_BYTES];
    for part in random.chunks_mut(8) {
        let roll = MachineDice.roll().to_be_bytes();
        part.copy_from_slice(&roll[..part.len()]);
    }
    let key = keys::mint(ENVIRONMENT, random);
    let name = Some("the first key".to_owned());
    let stored = ApiKey { name, created_at: clock.now(), ..described(keys::hash(&key)) };
    stores.api_keys.create(stored).await.context("storing the first API key")?;
    Ok(Some(key))
}

/// The operator's own first key, from the environment; stored nowhere.
pub fn bootstrap(config: &Config) -> Option<ApiKey> {
    let key = config.bootstrap_key.as_ref()?;
    Some(described(keys::hash(key.expose_secret())))
}

fn described(hash: String) -> ApiKey {
    ApiKey {
        id: keys::public_id(&hash),
        name: None,
        tenant: TENANT.into(),
        environment: ENVIRONMENT.into(),
        namespace: NAMESPACE.into(),
        can: vec![Can::Send, Can::Read, Can::Admin],
        hash,
        operator: true,
        created_at: belfry_domain::UnixMs(0),
        revoked_at: None,
    }
}
