//! What an installation keeps besides deliveries: its secret, its API keys, its frozen templates.

use async_trait::async_trait;
use belfry_domain::UnixMs;
use serde::{Deserialize, Serialize};

use super::StoreError;
use super::attachments::Attached;

/// What a key may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Can {
    Send,
    Read,
    Admin,
}

impl Can {
    pub const ALL: [Self; 3] = [Self::Send, Self::Read, Self::Admin];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Read => "read",
            Self::Admin => "admin",
        }
    }
}

/// An API key as stored: the key itself was shown once and is not here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiKey {
    /// Public name of the key: `key_` and 12 hex digits.
    pub id: String,
    /// What its maker called it, for lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub tenant: String,
    pub environment: String,
    /// Idempotency keys are scoped by it.
    pub namespace: String,
    pub can: Vec<Can>,
    /// Hex SHA-256 of the whole key (random, so a plain hash is enough).
    pub hash: String,
    /// It speaks for the installation: it makes, sees and revokes keys of every tenant. The first
    /// key and the operator's own from the environment; never one that was made over the API.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub operator: bool,
    pub created_at: UnixMs,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<UnixMs>,
}

#[async_trait]
pub trait ApiKeys: Send + Sync + 'static {
    /// Stores it; the same id again replaces nothing and succeeds.
    async fn create(&self, key: ApiKey) -> Result<(), StoreError>;
    /// The key with this hash, revoked or not.
    async fn by_hash(&self, hash: &str) -> Result<Option<ApiKey>, StoreError>;
    /// The key of this public name, revoked or not.
    async fn by_id(&self, id: &str) -> Result<Option<ApiKey>, StoreError>;
    /// Oldest first, at most 1,000.
    async fn list(&self) -> Result<Vec<ApiKey>, StoreError>;
    /// Whether there was such a key. A revoked key stays listed; revoking twice keeps the first time.
    async fn revoke(&self, id: &str, now: UnixMs) -> Result<bool, StoreError>;
}

/// A version of a template, as it is kept while messages are frozen on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptTemplate {
    /// Its files in one text, but for what of them is kept apart.
    pub files: String,
    /// Each once, for all versions that have it.
    pub attached: Vec<Attached>,
}

#[async_trait]
pub trait Installation: Send + Sync + 'static {
    /// The secret that keys fingerprints and address hashes. Whoever asks first stores `fresh`;
    /// everybody gets the stored one.
    async fn secret(&self, fresh: [u8; 32]) -> Result<[u8; 32], StoreError>;
    /// Keeps a template's files under their content-addressed version.
    async fn keep_template(&self, version: &str, kept: &KeptTemplate) -> Result<(), StoreError>;
    /// With what of its attachments is there, in no order.
    async fn template(&self, version: &str) -> Result<Option<KeptTemplate>, StoreError>;
}
