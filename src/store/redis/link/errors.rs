//! What a server's error means and what is done about it. Pure: from the error's text to a closed
//! set, whether it came bare or wrapped into a script's error. Nothing of a text goes further but
//! its code: texts hold hashes, keys and sometimes values.

use std::fmt;

use crate::ports::StoreError;

/// What went wrong with a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The script cache was emptied, or this server never had the script.
    NoScript,
    OutOfMemory,
    ReadOnly,
    Loading,
    Busy,
    Misconfigured,
    ClusterDown,
    /// The slot has another owner for good; nothing has run.
    Moved {
        slot: u16,
        /// `host:port`; the host is empty where it is the one that was asked.
        to: String,
    },
    /// The slot is on its way to another server, and so is this key.
    Ask,
    /// Some of the keys have moved, others not yet.
    TryAgain,
    CrossSlot,
    NoReplicas,
    PrimaryDown,
    NotLoggedIn,
    WrongPassword,
    NotPermitted,
    /// A wait was ended from outside: the primary was demoted, or somebody ran `CLIENT UNBLOCK`.
    Unblocked,
    /// The server takes no further connections.
    TooManyClients,
    /// Raised by one of our own scripts: `BELFRY…` and the script's own words.
    Ours(String),
    /// The connection was refused or closed.
    Cut,
    /// No answer in time.
    Late,
    /// The server that was reached is no primary.
    NotPrimary,
    /// No server is known to serve this.
    NoServer,
    /// It ran, but is not yet as durable as configured.
    NotDurable,
    /// The server cannot give the configured durability: why.
    Unfit(&'static str),
    /// Another code of the server's, or none of the form of a code.
    Other(String),
}

/// What is done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Load the script and run this one call again.
    LoadScript,
    /// Leave the connection and look which server is the primary now.
    FindPrimary,
    /// Ask the Cluster again who has which slot.
    RefreshSlots,
    /// The keys of one shard cannot be reached for now.
    ShardUnavailable,
    /// Nothing on this server can be reached for now.
    ServerUnavailable,
    /// It stays like this until somebody changes something.
    Operator,
}

/// The codes that a text may begin with, or hold behind a script's own words.
const CODES: [(&str, Trouble); 16] = [
    ("NOSCRIPT", Trouble::NoScript),
    ("OOM", Trouble::OutOfMemory),
    ("READONLY", Trouble::ReadOnly),
    ("LOADING", Trouble::Loading),
    ("BUSY", Trouble::Busy),
    ("MISCONF", Trouble::Misconfigured),
    ("CLUSTERDOWN", Trouble::ClusterDown),
    ("ASK", Trouble::Ask),
    ("TRYAGAIN", Trouble::TryAgain),
    ("CROSSSLOT", Trouble::CrossSlot),
    ("NOREPLICAS", Trouble::NoReplicas),
    ("MASTERDOWN", Trouble::PrimaryDown),
    ("NOAUTH", Trouble::NotLoggedIn),
    ("WRONGPASS", Trouble::WrongPassword),
    ("NOPERM", Trouble::NotPermitted),
    ("UNBLOCKED", Trouble::Unblocked),
];

/// What a script's error says in words instead of a code.
const PHRASES: [(&str, Trouble); 15] = [
    // A script that reaches for a key which has moved under it.
    ("non local key in a cluster node", Trouble::TryAgain),
    ("while the cluster is down", Trouble::ClusterDown),
    ("keys that don't hash to the same slot", Trouble::CrossSlot),
    ("access keys of different slots", Trouble::CrossSlot),
    ("The user executing the script can't", Trouble::NotPermitted),
    ("ACL failure in script", Trouble::NotPermitted),
    ("max number of clients reached", Trouble::TooManyClients),
    ("number of clients + cluster connections reached", Trouble::TooManyClients),
    ("Write commands are not allowed from read only scripts", Trouble::ReadOnly),
    ("can not run it when used memory", Trouble::OutOfMemory),
    ("DB index is out of range", Trouble::Unfit("it has no database of the number that store.redis.url names")),
    ("SELECT is not allowed in cluster mode", Trouble::Unfit("a Cluster has no database but 0: see store.redis.url")),
    (
        "This instance has cluster support disabled",
        Trouble::Unfit("it is no Cluster: write redis:// or redis+sentinel:// in store.redis.url"),
    ),
    (
        "unknown command 'EVALSHA'",
        Trouble::Unfit("it runs no scripts; where it is a sentinel, write redis+sentinel:// in store.redis.url"),
    ),
    ("AUTH <password> called without any password", Trouble::WrongPassword),
];

const OURS: &str = "BELFRY";

/// `text` as the server sent it, with or without the leading `-`.
#[must_use]
pub fn classify(text: &str) -> Trouble {
    let text = text.strip_prefix('-').unwrap_or(text);
    let (code, rest) = text.split_once(' ').unwrap_or((text, ""));
    if code.starts_with(OURS) {
        return ours(text);
    }
    if code == "MOVED" {
        return moved(rest);
    }
    if let Some(trouble) = known(code) {
        return trouble;
    }
    if code != "ERR" {
        return Trouble::Other(if is_code(code) { code.to_owned() } else { "ERR".to_owned() });
    }
    wrapped(rest)
}

/// What stands inside `ERR …`: Redis 6 puts a command's own error behind the script's place
/// (`… @user_script: 1: -READONLY …`), a raised text stands behind `user_script:1:`.
fn wrapped(rest: &str) -> Trouble {
    if let Some((_, trouble)) = PHRASES.iter().find(|(phrase, _)| rest.contains(phrase)) {
        return trouble.clone();
    }
    let words = || rest.split(' ').map(|word| word.trim_start_matches('-'));
    if let Some(trouble) = rest.split(' ').filter(|word| word.starts_with('-')).find_map(|word| known(&word[1..])) {
        return trouble;
    }
    match words().find(|word| word.starts_with(OURS)) {
        Some(word) => rest.find(word).map_or_else(|| ours(word), |at| ours(&rest[at..])),
        None => Trouble::Other("ERR".to_owned()),
    }
}

fn known(code: &str) -> Option<Trouble> {
    CODES.iter().find(|(name, _)| *name == code).map(|(_, trouble)| trouble.clone())
}

/// Without the place that the server adds behind it.
fn ours(text: &str) -> Trouble {
    let end = text.find(" script: ").unwrap_or(text.len());
    Trouble::Ours(text[..end].to_owned())
}

/// `3999 127.0.0.1:6381`
fn moved(rest: &str) -> Trouble {
    let mut words = rest.split(' ');
    match (words.next().and_then(|slot| slot.parse().ok()), words.next()) {
        (Some(slot), Some(to)) => Trouble::Moved { slot, to: to.to_owned() },
        _ => Trouble::Other("MOVED".to_owned()),
    }
}

fn is_code(word: &str) -> bool {
    word.len() <= 24 && !word.is_empty() && word.bytes().all(|b| b.is_ascii_uppercase() || b == b'_')
}

impl Trouble {
    /// The server's code where it has one, for logs and metrics.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            Self::Moved { .. } => "MOVED",
            Self::TooManyClients => "MAXCLIENTS",
            Self::Ours(text) => text.split(' ').next().unwrap_or(OURS),
            Self::Cut => "CUT",
            Self::Late => "LATE",
            Self::NotPrimary => "NOTPRIMARY",
            Self::NoServer => "NOSERVER",
            Self::NotDurable => "NOTDURABLE",
            Self::Unfit(_) => "UNFIT",
            Self::Other(code) => code,
            known => CODES.iter().find(|(_, trouble)| trouble == known).map_or("ERR", |(name, _)| name),
        }
    }

    #[must_use]
    pub const fn remedy(&self) -> Remedy {
        match self {
            Self::NoScript => Remedy::LoadScript,
            Self::ReadOnly | Self::PrimaryDown | Self::Unblocked | Self::NotPrimary | Self::Cut | Self::Late => {
                Remedy::FindPrimary
            }
            Self::Moved { .. } | Self::ClusterDown | Self::NoServer => Remedy::RefreshSlots,
            Self::Ask | Self::TryAgain | Self::Ours(_) => Remedy::ShardUnavailable,
            Self::Loading | Self::Busy | Self::NoReplicas | Self::NotDurable | Self::TooManyClients => {
                Remedy::ServerUnavailable
            }
            Self::OutOfMemory
            | Self::Misconfigured
            | Self::CrossSlot
            | Self::NotLoggedIn
            | Self::WrongPassword
            | Self::NotPermitted
            | Self::Unfit(_)
            | Self::Other(_) => Remedy::Operator,
        }
    }

    /// Says what somebody who looks after the server needs to know.
    #[must_use]
    pub fn wording(&self) -> &str {
        match self {
            Self::NoScript => "the server has lost a script that it was just told",
            Self::OutOfMemory => {
                "Redis is out of memory (maxmemory reached): give it more, or let finished work age out"
            }
            Self::ReadOnly => "the server is a read-only replica; looking for the primary",
            Self::Loading => "Redis is loading its data from disk",
            Self::Busy => "Redis is busy with a script that does not end; see SCRIPT KILL",
            Self::Misconfigured => {
                "Redis refuses writes because it cannot write to its disk (MISCONF): look at its log and its disk"
            }
            Self::ClusterDown => "the Redis Cluster is down: it lacks servers for some slots",
            Self::Moved { .. } => "the slot has moved to another server and has not been found again yet",
            Self::Ask | Self::TryAgain => {
                "the shard's slot is being moved to another server; the shard is unavailable until it has arrived"
            }
            Self::CrossSlot => "a call's keys lie in different slots, which is a bug of Belfry's",
            Self::NoReplicas => "Redis has fewer replicas than its min-replicas-to-write asks for",
            Self::PrimaryDown => "the server is a replica that has lost its primary",
            Self::NotLoggedIn => "Redis wants a password: set store.redis.password_file",
            Self::WrongPassword => "Redis refuses the user or the password of store.redis",
            Self::NotPermitted => {
                "the Redis user lacks a permission that Belfry needs (see the store's ACL in the docs)"
            }
            Self::Unblocked => "the server was demoted while a write waited for its replicas",
            Self::TooManyClients => "Redis takes no further connections (maxclients reached)",
            Self::Ours(text) => text,
            Self::Cut => "the connection was refused or closed",
            Self::Late => "no answer in time; it may have run all the same",
            Self::NotPrimary => "the server is no primary; looking for it",
            Self::NoServer => "no server is known to serve this",
            Self::NotDurable => "the record stays, but is not yet as durable as store.redis.durability asks for",
            Self::Unfit(why) => why,
            Self::Other(_) => "Redis refused the call with an error that Belfry does not know",
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ours(text) => out.write_str(text),
            other => write!(out, "{} ({})", other.wording(), other.code()),
        }
    }
}

impl From<Trouble> for StoreError {
    fn from(trouble: Trouble) -> Self {
        Self::Unavailable(trouble.to_string())
    }
}

impl From<&redis::ServerError> for Trouble {
    fn from(error: &redis::ServerError) -> Self {
        classify(&format!("{} {}", error.code(), error.details().unwrap_or_default()))
    }
}

/// What the library could not do. Its own words may hold addresses and are dropped.
impl From<redis::RedisError> for Trouble {
    fn from(error: redis::RedisError) -> Self {
        if error.kind() == redis::ErrorKind::AuthenticationFailed {
            return match error.detail() {
                Some(text) if text.contains("NOAUTH") => Self::NotLoggedIn,
                Some(_) | None => Self::WrongPassword,
            };
        }
        match error.code() {
            Some(code) => classify(&format!("{code} {}", error.detail().unwrap_or_default())),
            None if error.is_timeout() => Self::Late,
            None if error.is_io_error() => Self::Cut,
            None => Self::Other("CLIENT".to_owned()),
        }
    }
}
