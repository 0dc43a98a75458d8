//! `[providers.<name>]` with `kind = "apns"`: one app of one developer team.

use std::path::PathBuf;

use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use crate::channel::https::Limits;
use crate::ports::span::Span;

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ApnsConfig {
    /// The app's bundle id. What a push type wants appended (`.voip`, …) is appended at the call.
    pub topic: String,
    /// Which of Apple's two services knows the app's tokens.
    #[serde(default)]
    pub environment: ApnsEnvironment,
    /// In place of the environment's own address: a gateway, a test. https only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Of token authentication: ten letters and digits, as Apple shows them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_id: Option<String>,
    /// The signing key (`.p8`), or with a certificate that certificate's key. PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_file: Option<PathBuf>,
    /// Filled from `key_file`, or given by environment; never printed.
    #[serde(default, skip_serializing)]
    pub key: Option<SecretString>,
    /// Of certificate authentication: the chain, PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate_file: Option<PathBuf>,
    /// Filled from `certificate_file`, or given itself.
    #[serde(default, skip_serializing)]
    pub certificate: Option<String>,
    /// PEM file with further trusted roots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// Filled from `ca_file`, or given itself.
    #[serde(default, skip_serializing)]
    pub ca: Option<String>,
    /// Most connections at once.
    #[serde(default = "default_connections")]
    pub connections: u16,
    /// Most calls at once on each. Apple's own limit counts too.
    #[serde(default = "default_streams")]
    pub streams: u16,
    #[serde(default)]
    pub timeouts: ApnsTimeouts,
    /// A connection that was silent for so long is asked whether it lives.
    #[serde(default = "default_keepalive")]
    pub keepalive: Span,
    /// How long it has for the answer.
    #[serde(default = "default_keepalive_wait")]
    pub keepalive_wait: Span,
    /// A connection unused for so long is closed.
    #[serde(default = "default_idle")]
    pub idle: Span,
}

impl ApnsConfig {
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
    100
}

const fn default_keepalive() -> Span {
    Span::secs(60)
}

const fn default_keepalive_wait() -> Span {
    Span::secs(10)
}

/// Apple wants connections kept, not opened and closed for each notification.
const fn default_idle() -> Span {
    Span::secs(30 * 60)
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum ApnsEnvironment {
    #[default]
    Production,
    /// Apps run from Xcode with a development profile.
    Sandbox,
}

impl ApnsEnvironment {
    /// As in the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Production => "production",
            Self::Sandbox => "sandbox",
        }
    }

    #[must_use]
    pub const fn url(self) -> &'static str {
        match self {
            Self::Production => "https://api.push.apple.com",
            Self::Sandbox => "https://api.sandbox.push.apple.com",
        }
    }
}

/// One wait each.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct ApnsTimeouts {
    pub connect: Span,
    /// From the request to the answer's headers; giving up here leaves the outcome unknown.
    pub answer: Span,
    /// From there to the answer's end.
    pub body: Span,
}

impl Default for ApnsTimeouts {
    fn default() -> Self {
        Self { connect: Span::secs(10), answer: Span::secs(30), body: Span::secs(5) }
    }
}
