//! Stored recipients and their devices. A recipient belongs to one tenant and environment. A token
//! belongs to one device: whoever registers it last has it, for a phone that changes hands must not go
//! on showing its first owner's messages.

use async_trait::async_trait;
use belfry_domain::device::{Standing, TokenFault};
use belfry_domain::{ChannelKind, DeliveryId, NotificationId, UnixMs};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::StoreError;
use super::deliveries::Owner;
use super::message::{Address, Mailbox};

/// Most devices of one recipient: all of them and the recipient's other addresses fit into one notification, which
/// has at most 50 deliveries.
pub const MOST_DEVICES: usize = 40;
/// Tokens that a device had before the current one and that are kept, for calls that may have arrived.
pub const MOST_EARLIER: usize = 3;
/// Most of the dead in one page.
pub const MOST_DEAD: u16 = 500;
/// How long a dead token stays on the list, in milliseconds.
pub const DEAD_KEPT_MS: i64 = 30 * 24 * 60 * 60 * 1000;

/// What a name of a recipient or a device may be, which stands in paths.
pub const NAME: &str = "must have 1 to 255 characters of A-Z a-z 0-9 . _ ~ : @ -";

/// Whether a recipient or a device may be called so.
#[must_use]
pub fn is_name(text: &str) -> bool {
    let may_stand = |byte: u8| byte.is_ascii_alphanumeric() || b"._~:@-".contains(&byte);
    (1..=255).contains(&text.len()) && text.bytes().all(may_stand)
}

/// What is known of a recipient besides devices. Printing it prints no address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<Mailbox>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phone: Option<Address>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locale: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
}

/// A device token, or a web-push subscription's JSON text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    pub token: Address,
    /// Keyed hash, hex; the same as in a delivery's `address_hash`.
    pub hash: String,
    /// For people to recognise.
    pub mask: String,
}

/// A device as a caller registers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDevice {
    /// The caller's own name for it, unique within the recipient.
    pub id: String,
    /// `apns`, `fcm` or `web_push`.
    pub kind: ChannelKind,
    pub app: Option<String>,
    pub environment: Option<String>,
    pub token: Token,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    pub id: String,
    pub kind: ChannelKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    pub token: Token,
    /// The latest registration, of the same token or of another; never earlier than one before it.
    pub registered_at: UnixMs,
    #[serde(flatten)]
    pub standing: Standing,
    /// Tokens of before, the newest first, at most [`MOST_EARLIER`], none twice and none the current one: those that
    /// it had under the same kind, app and environment, since with other credentials they could not be called.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<Token>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recipient {
    pub profile: Profile,
    /// In the order of their ids.
    pub devices: Vec<Device>,
}

/// What became of a registration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Registered {
    Kept(Box<Device>),
    /// The recipient has [`MOST_DEVICES`] others already.
    TooMany,
}

/// Which device a delivery goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceRef {
    pub recipient: String,
    pub device: String,
}

/// A stored device as a delivery was planned to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSlot {
    pub device: DeviceRef,
    pub app: Option<String>,
    pub environment: Option<String>,
}

/// What a caller who keeps tokens finds its own by: SHA-256 of the token, of a subscription that of its
/// endpoint, hex. Tokens are long and random, so that it can be told to whoever may read.
#[must_use]
pub fn token_sha256(kind: ChannelKind, token: &Address) -> String {
    let text = match kind {
        ChannelKind::WebPush => endpoint(&token.0).unwrap_or_else(|| token.0.clone()),
        _ => token.0.clone(),
    };
    belfry_domain::hex(&Sha256::digest(text))
}

/// Where a subscription's messages are sent to; `None` of what is no subscription.
pub(super) fn endpoint(subscription: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Endpoint {
        endpoint: String,
    }
    serde_json::from_str::<Endpoint>(subscription).ok().map(|found| found.endpoint)
}

/// A provider's word about one token, of a stored device or of a request's own. `app` and `environment` are those
/// that the device or the request names; a word without one is about whatever the device has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadToken {
    pub kind: ChannelKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    /// Recipient and device, where it was a stored one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipient: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// [`Token::hash`].
    pub hash: String,
    /// Plain SHA-256 of the token (of a subscription: of its endpoint), hex: by it a caller who keeps tokens finds its own.
    pub token_sha256: String,
    pub fault: TokenFault,
    /// Since when, where the provider said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<UnixMs>,
    pub heard_at: UnixMs,
    pub notification: NotificationId,
    pub delivery: DeliveryId,
}

/// Some of the dead, the oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeadPage {
    pub tokens: Vec<DeadToken>,
    /// The store's own place after which to go on; opaque. Nothing: these were the last.
    pub next: Option<String>,
}

#[async_trait]
pub trait Recipients: Send + Sync + 'static {
    /// Keeps `profile` whole, in place of what was kept. Devices stay. Durable before it returns.
    async fn put_profile(&self, owner: &Owner, recipient: &str, profile: &Profile) -> Result<(), StoreError>;

    /// The profile and all devices. Nothing where there is neither.
    async fn recipient(&self, owner: &Owner, recipient: &str) -> Result<Option<Recipient>, StoreError>;

    /// Forgets profile and devices. Whether there was anything. Durable before it returns; the same call again
    /// after an error finishes it.
    async fn remove_recipient(&self, owner: &Owner, recipient: &str) -> Result<bool, StoreError>;

    /// Registers a device: from now on it is live, under this token, whatever was said of it before, and
    /// no other device of the same owner (tenant, environment), `kind` and `app` has the token any more: who had it
    /// is removed. The token that it had until now, if another, becomes the newest of the earlier ones. Durable
    /// before it returns; the same call again after an error finishes it, and after a success only moves
    /// `registered_at`, never backwards. Of two calls at once for one token one is the later, and has it.
    async fn register(
        &self,
        owner: &Owner,
        recipient: &str,
        device: &NewDevice,
        now: UnixMs,
    ) -> Result<Registered, StoreError>;

    /// Whether there was such a device. Durable before it returns.
    async fn remove_device(&self, owner: &Owner, of: &DeviceRef) -> Result<bool, StoreError>;

    /// One device, as it stands now; right before a call.
    async fn device(&self, owner: &Owner, of: &DeviceRef) -> Result<Option<Device>, StoreError>;

    /// Puts a token on the list of the dead, once per kind, app, token and fault (a later word takes the place of an
    /// earlier), and changes the standing of the stored device that the word names, if that has it as its current
    /// token and the word is about that registration ([`belfry_domain::device::is_about`]). A live one dies or is
    /// quarantined, a quarantined one may still die, a dead one stays as it is until it is registered again; the
    /// standing's time is `since`, or else `heard_at`, of one that is quarantined for the same fault again the later. Whether a device's standing changed by this call or had by an
    /// earlier one of the same word. The same call again changes nothing. Durable before it returns.
    async fn bury(&self, owner: &Owner, word: &DeadToken) -> Result<bool, StoreError>;

    /// Takes back what [`Self::bury`] did for `word`: the device is live again where it still stands as that word left
    /// it, and the token leaves the list, unless another word has taken this one's place there.
    async fn exhume(&self, owner: &Owner, word: &DeadToken) -> Result<(), StoreError>;

    /// Up to `limit` (at most [`MOST_DEAD`]) tokens of this owner heard of at or after `since`, each once where
    /// nothing moves meanwhile; older than [`DEAD_KEPT_MS`] ones may be gone. A place that the store did not give out
    /// is the beginning.
    async fn dead(&self, owner: &Owner, since: UnixMs, after: Option<&str>, limit: u16)
    -> Result<DeadPage, StoreError>;
}
