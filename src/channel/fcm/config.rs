//! `[providers.<name>]` with `kind = "fcm"`.

use std::path::PathBuf;

use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use crate::channel::https::Limits;
use crate::ports::span::Span;

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FcmConfig {
    /// The JSON key of a service account that may send (role "Firebase Cloud Messaging API Admin").
    #[serde(default)]
    pub service_account_file: Option<PathBuf>,
    /// What stands in `service_account_file`, or given by environment; never printed.
    #[serde(default, skip_serializing)]
    pub service_account: Option<SecretString>,
    /// Firebase project; absent: the service account's own.
    #[serde(default)]
    pub project: Option<String>,
    /// The app whose devices it reaches, where there are several.
    #[serde(default)]
    pub app: Option<String>,
    /// Where FCM is.
    #[serde(default = "google")]
    pub url: String,
    /// PEM file with further trusted roots.
    #[serde(default)]
    pub ca_file: Option<PathBuf>,
    /// Filled from `ca_file`, or given itself.
    #[serde(default, skip_serializing)]
    pub ca: Option<String>,
    /// Most connections at once.
    #[serde(default = "default_connections")]
    pub connections: u16,
    /// Most calls at once on one connection.
    #[serde(default = "default_streams")]
    pub streams: u16,
    #[serde(default)]
    pub timeouts: FcmTimeouts,
}

impl FcmConfig {
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

fn google() -> String {
    "https://fcm.googleapis.com".to_owned()
}

const fn default_connections() -> u16 {
    4
}

const fn default_streams() -> u16 {
    100
}

/// One wait each.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct FcmTimeouts {
    /// Finding, reaching and greeting the server.
    pub connect: Span,
    /// From the request to the first word of the answer. Google asks for at least 10 s.
    pub answer: Span,
    /// From there to the answer's end.
    pub body: Span,
}

impl Default for FcmTimeouts {
    fn default() -> Self {
        Self { connect: Span::secs(10), answer: Span::secs(30), body: Span::secs(10) }
    }
}
