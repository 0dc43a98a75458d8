//! How an outbound client connects and how long it waits; and as much of it as every provider has in its
//! configuration.

use std::time::Duration;

use crate::channel::setting::{Given, WrongSetting, zeros};
use crate::ports::span::Span;

/// How an outbound client connects and how long it waits. Nothing here reads a file.
#[derive(Clone, Debug)]
pub struct HttpsSettings {
    /// PEM text with further trusted roots (tests, private gateways); the machine's own count always.
    pub roots: Option<Given>,
    /// For certificate authentication.
    pub identity: Option<Identity>,
    pub protocol: Protocol,
    pub addresses: Addresses,
    /// Most connections per origin.
    pub connections: u16,
    /// Most streams at once per connection; the other side's own limit counts too.
    pub streams: u16,
    /// Most origins kept connected; the longest unused goes.
    pub origins: usize,
    /// Resolving, TCP, TLS and the first frames together.
    pub connect: Duration,
    /// From the request's first byte to the answer's headers; also how long a request waits for a free stream.
    pub answer: Duration,
    /// From the headers to the end of the body.
    pub body: Duration,
    /// Bytes of an answer's body.
    pub most_body: usize,
    /// A connection that was silent for so long is asked whether it lives: while a request is open, and
    /// before it is used again.
    pub keepalive: Duration,
    /// Silence for so long after that question: it is dead.
    pub keepalive_wait: Duration,
    /// A connection unused for so long is closed and not used again.
    pub idle: Duration,
}

/// A PEM certificate chain and its PEM key.
#[derive(Clone, Debug)]
pub struct Identity {
    pub chain: Given,
    pub key: Given,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Nothing else; over plain text (loopback only) without asking first.
    Http2,
    /// What ALPN says, HTTP/1.1 if it says nothing.
    Any,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addresses {
    Any,
    /// The resolved address must be one of the open internet, and it is the one that is dialled: a name in
    /// somebody else's hands must not lead into our own network.
    PublicOnly,
}

/// What every provider over HTTPS has in its configuration.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub connections: u16,
    pub streams: u16,
    pub connect: Span,
    pub answer: Span,
    pub body: Span,
}

impl Limits {
    /// Those that are zero, by their keys in the configuration.
    pub(in crate::channel) fn zeros(&self) -> Vec<WrongSetting> {
        let Self { connections, streams, connect, answer, body } = *self;
        let waits = [("timeouts.connect", connect), ("timeouts.answer", answer), ("timeouts.body", body)];
        zeros(&[("connections", connections), ("streams", streams)], &waits)
    }
}

/// Bytes of an answer: one short JSON object.
const MOST_BODY: usize = 16 * 1024;
const KEEPALIVE: Duration = Duration::from_secs(60);
const KEEPALIVE_WAIT: Duration = Duration::from_secs(10);
/// Shorter than the four minutes after which Google's front ends close what is idle.
const IDLE: Duration = Duration::from_secs(180);

impl HttpsSettings {
    /// For one server of the operator's own choice, who may have a gateway inside.
    #[must_use]
    pub fn of(limits: Limits, roots: Option<Given>) -> Self {
        Self {
            roots,
            identity: None,
            protocol: Protocol::Any,
            addresses: Addresses::Any,
            connections: limits.connections,
            streams: limits.streams,
            origins: 1,
            connect: limits.connect.0,
            answer: limits.answer.0,
            body: limits.body.0,
            most_body: MOST_BODY,
            keepalive: KEEPALIVE,
            keepalive_wait: KEEPALIVE_WAIT,
            idle: IDLE,
        }
    }
}
