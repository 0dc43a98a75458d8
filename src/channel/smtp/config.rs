//! `[providers.<name>]` with `kind = "smtp"`.

use std::path::PathBuf;

use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use crate::ports::span::Span;

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SmtpConfig {
    /// `smtp://user@host:587` (requires STARTTLS except on loopback) or `smtps://user@host:465`.
    pub url: String,
    /// Filled from `password_file`, or given by environment; never printed.
    #[serde(default, skip_serializing)]
    pub password: Option<SecretString>,
    #[serde(default)]
    pub password_file: Option<PathBuf>,
    #[serde(default)]
    pub auth: AuthMechanism,
    /// `Name <address>`: the From where a message names none, and the envelope sender.
    pub from: String,
    /// The name given in EHLO; absent: the machine's own, else an address literal.
    #[serde(default)]
    pub helo: Option<String>,
    /// PEM file with further trusted roots. With it TLS is required on loopback too.
    #[serde(default)]
    pub ca_file: Option<PathBuf>,
    #[serde(default)]
    pub dkim: Option<DkimConfig>,
    /// Most connections at once.
    #[serde(default = "default_connections")]
    pub connections: u16,
    #[serde(default)]
    pub timeouts: SmtpTimeouts,
    #[serde(default)]
    pub reuse: SmtpReuse,
}

const fn default_connections() -> u16 {
    8
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum AuthMechanism {
    #[default]
    Plain,
    Login,
    Xoauth2,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DkimConfig {
    pub domain: String,
    pub selector: String,
    /// PEM: PKCS#1 or PKCS#8 RSA of at least 2048 bits, or PKCS#8 Ed25519.
    pub key_file: PathBuf,
    #[serde(default, skip_serializing)]
    pub key: Option<SecretString>,
}

/// One wait each; RFC 5321 4.5.3.2 gives the minimum for the last three.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct SmtpTimeouts {
    pub connect: Span,
    /// Greeting, EHLO, STARTTLS and AUTH, each.
    pub greeting: Span,
    /// MAIL and RCPT, each.
    pub command: Span,
    /// DATA until 354.
    pub data: Span,
    /// Writing the message, per block.
    pub block: Span,
    /// After the final dot. At least 600 s: giving up earlier makes duplicates.
    pub end_of_data: Span,
}

impl Default for SmtpTimeouts {
    fn default() -> Self {
        Self {
            connect: Span::secs(10),
            greeting: Span::secs(60),
            command: Span::secs(300),
            data: Span::secs(120),
            block: Span::secs(180),
            end_of_data: Span::secs(600),
        }
    }
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct SmtpReuse {
    /// A connection idle longer than this is closed.
    pub idle: Span,
    /// A connection older than this is closed after its message.
    pub age: Span,
    /// Messages on one connection.
    pub messages: u32,
}

impl Default for SmtpReuse {
    fn default() -> Self {
        Self { idle: Span::secs(30), age: Span::secs(600), messages: 500 }
    }
}
