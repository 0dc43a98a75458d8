//! What recipients want to hear, and how. It is kept apart from their addresses: a recipient need not be stored, and
//! whoever is forgotten and stored again has still said what they said.

use async_trait::async_trait;
use belfry_domain::key::{KeyKind, child_key};
use belfry_domain::preferences::Preferences;
use belfry_domain::{Key, UnixMs};
use serde::{Deserialize, Serialize};

use super::StoreError;
use super::deliveries::Owner;

/// A recipient of one owner, by the caller's own name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    pub owner: Owner,
    pub recipient: String,
}

impl Person {
    #[must_use]
    pub fn key(&self) -> Key {
        let Owner { tenant, environment } = &self.owner;
        let parts = [tenant, environment, &self.recipient];
        child_key(KeyKind::Preferences, &parts.map(|part| part.as_bytes()))
    }
}

/// What one of them said last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wishes {
    pub preferences: Preferences,
    pub changed_at: UnixMs,
    /// Who wrote it down: the public name of a key, or [`ON_THE_PAGE`].
    pub by: String,
}

/// They did so themselves.
pub const ON_THE_PAGE: &str = "page";

/// What is kept of one.
pub type Kept = Result<Option<Wishes>, StoreError>;

#[async_trait]
pub trait PreferenceBook: Send + Sync + 'static {
    /// Keeps `next`, or nothing, in place of `before`; whether that was so. Where something else was kept, nothing
    /// changes. Durable before it returns; the same call again says the same as long as nobody else comes in between.
    async fn write(&self, whom: &Person, before: Option<&Wishes>, next: Option<&Wishes>) -> Result<bool, StoreError>;

    /// What is kept of each, in their order. Sees all that was acknowledged before the call. Each for itself: where a
    /// part of the store is away, the rest is told.
    async fn preferences(&self, whom: Vec<Person>) -> Vec<Kept>;
}
