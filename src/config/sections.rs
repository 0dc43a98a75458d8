//! The typed tree, section by section. Every key of a section is required here unless it is
//! optional by nature: the embedded defaults give the rest, so that there is one place to read
//! what a default is.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use belfry_domain::pace::NoPace;
use belfry_domain::warm_up::WarmUp;
use belfry_domain::{Pace, PacePlan};
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};

use crate::channel::apns::config::ApnsConfig;
use crate::channel::fcm::config::FcmConfig;
use crate::channel::smtp::config::SmtpConfig;
use crate::channel::web_push::config::WebPushConfig;
use crate::ports::links::SealingKey;
use crate::ports::moment::Moment;
use crate::ports::span::Span;
pub use crate::store::redis::link::RedisConfig;

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct HttpConfig {
    pub listen: SocketAddr,
    /// Others may reach the listener.
    pub allow_remote: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_url: Option<String>,
    pub header_timeout: Span,
    pub body_timeout: Span,
    pub write_timeout: Span,
    pub idle_timeout: Span,
    pub max_connections: u32,
    /// How often each API key may call one node. Absent: as often as it likes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<LimitConfig>,
}

/// `[http.limit]`; [`Pace`] has the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LimitConfig {
    pub rate: u32,
    pub per: Span,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<u32>,
}

impl LimitConfig {
    /// Without `burst`: the calls of one `per`.
    ///
    /// # Errors
    /// Which number is at fault.
    pub fn limit(&self) -> Result<Pace, NoPace> {
        Pace::new(self.rate, self.per.0, self.burst.or(Some(self.rate)))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StoreKind {
    Sqlite,
    Redis,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct StoreConfig {
    pub kind: StoreKind,
    pub sqlite: SqliteConfig,
    pub redis: RedisConfig,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SqliteConfig {
    /// The database file; its folder is made with mode 0700.
    pub path: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct EngineConfig {
    pub poll: Span,
    pub purge: Span,
    pub shutdown_grace: Span,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RememberConfig {
    /// How long a record outlives its end.
    pub record: Span,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TemplatesConfig {
    pub path: PathBuf,
}

/// Links in messages to the recipients' own pages.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LinksConfig {
    /// Who sends, as the pages name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender: Option<String>,
    /// One key a line: the first seals, all open. Absent: the installation's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys_file: Option<PathBuf>,
    #[serde(default, skip_serializing)]
    pub keys: Option<SecretString>,
}

impl LinksConfig {
    /// The keys' lines; what is wrong with them was refused when the configuration was read.
    pub fn sealing_keys(&self) -> Vec<Arc<SealingKey>> {
        let text = self.keys.as_ref().map_or("", |keys| keys.expose_secret());
        text.lines().map(|key| Arc::new(SealingKey::new(key.as_bytes()))).collect()
    }

    /// What is wrong with the keys, if anything; never a key.
    #[must_use]
    pub fn wrong_keys(&self) -> Option<&'static str> {
        let text = self.keys.as_ref().map(|keys| keys.expose_secret())?;
        let fits = |key: &str| (32..=256).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic());
        let lines: Vec<&str> = text.lines().collect();
        let fine = (1..=8).contains(&lines.len()) && lines.iter().all(|key| fits(key));
        (!fine).then_some("must hold 1 to 8 lines of 32 to 256 visible ASCII characters, the newest key first")
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct OutboxConfig {
    /// Messages kept; beyond them the oldest goes.
    pub keep: u32,
    pub concurrency: u16,
    /// Absent: only while listening on loopback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub misbehave: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    Pretty,
    Json,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LogConfig {
    pub format: LogFormat,
    /// A level, or levels by target: `info,belfry::engine=debug`.
    pub level: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ChannelConfig {
    /// In order of preference. Empty: the outbox.
    pub providers: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct EnvironmentConfig {
    /// Address patterns that really go out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<String>>,
    /// Nothing really goes out.
    #[serde(default)]
    pub outbox: bool,
}

/// `[providers.<name>]`.
#[derive(Clone, Debug, Serialize)]
pub struct ProviderConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pace: Option<PaceConfig>,
    #[serde(flatten)]
    pub kind: ProviderKind,
}

/// How often a provider may be called by all nodes together; [`Pace`] has the rules.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PaceConfig {
    pub rate: u32,
    pub per: Span,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<u32>,
    /// Absent: it is called at the full pace from the first day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<WarmUpConfig>,
}

/// `warm_up` of a pace; [`WarmUp`] has the rules.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct WarmUpConfig {
    pub starts: Moment,
    /// The most calls of each day.
    pub days: Vec<u32>,
}

impl PaceConfig {
    /// # Errors
    /// Which number is at fault.
    pub fn plan(&self) -> Result<PacePlan, NoPace> {
        let full = Pace::new(self.rate, self.per.0, self.burst)?;
        let warm_up = self.warm_up.as_ref().map(|warm_up| WarmUp::new(warm_up.starts.0, warm_up.days.clone()));
        Ok(PacePlan::new(full, warm_up.transpose()?))
    }
}

/// What a kind of provider has of its own.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ProviderKind {
    Smtp(Box<SmtpConfig>),
    Apns(Box<ApnsConfig>),
    Fcm(Box<FcmConfig>),
    WebPush(Box<WebPushConfig>),
    Outbox(OutboxProvider),
}

/// A further outbox under a name of its own; it has no keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct OutboxProvider {}
