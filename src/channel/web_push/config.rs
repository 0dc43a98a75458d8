//! `[providers.<name>]` with `kind = "web_push"`.

use std::path::PathBuf;

use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use crate::channel::https::Limits;
use crate::ports::span::Span;

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct WebPushConfig {
    /// PEM file with a PKCS#8 P-256 key, as `belfry vapid generate` makes it. Every subscription is
    /// bound to the key that it was made with: with another one they are all refused for ever.
    #[serde(default)]
    pub vapid_key_file: Option<PathBuf>,
    /// Filled from `vapid_key_file`, or given by environment; never printed.
    #[serde(default, skip_serializing)]
    pub vapid_key: Option<SecretString>,
    /// Whom a push service may write to about our traffic: `mailto:…` or `https://…`.
    pub subject: String,
    /// The site whose subscriptions it serves, where there are several.
    #[serde(default)]
    pub app: Option<String>,
    /// PEM file with further trusted roots.
    #[serde(default)]
    pub ca_file: Option<PathBuf>,
    /// Filled from `ca_file`, or given itself.
    #[serde(default, skip_serializing)]
    pub ca: Option<String>,
    /// Whether endpoints may lie on internal addresses. Whoever registers a subscription chooses its
    /// endpoint, so this lets them have requests sent into this network.
    #[serde(default)]
    pub allow_internal: bool,
    /// Most connections at once, per push service.
    #[serde(default = "default_connections")]
    pub connections: u16,
    /// Most calls at once on one connection.
    #[serde(default = "default_streams")]
    pub streams: u16,
    #[serde(default)]
    pub timeouts: WebPushTimeouts,
}

impl WebPushConfig {
    #[must_use]
    pub fn limits(&self) -> Limits {
        let timeouts = &self.timeouts;
        Limits {
            connections: self.connections,
            streams: self.streams,
            connect: timeouts.connect,
            answer: timeouts.answer,
            body: timeouts.body,
        }
    }
}

const fn default_connections() -> u16 {
    2
}

const fn default_streams() -> u16 {
    50
}

/// One wait each.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct WebPushTimeouts {
    /// Name, connection and TLS together.
    pub connect: Span,
    /// From the request's first byte to the answer's headers.
    pub answer: Span,
    /// From there to the answer's end.
    pub body: Span,
}

impl Default for WebPushTimeouts {
    fn default() -> Self {
        Self { connect: Span::secs(10), answer: Span::secs(30), body: Span::secs(5) }
    }
}
