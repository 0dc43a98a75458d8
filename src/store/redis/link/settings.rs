//! `[store.redis]` and what becomes of it: which servers, how durable, under which names.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use secrecy::SecretString;
use serde::{Deserialize, Serialize};

const URL_SHAPE: &str = "expected redis://host:6379, rediss://host:6379 (TLS), \
                         redis+sentinel://host:26379,host:26379/name or redis+cluster://host:6379,host:6379 \
                         (both also with rediss+ in front)";
const DURABILITY_SHAPE: &str = "expected \"ack\", \"fsync\" or \"replicas:N\" with N from 1 to 9";
const MOST_SERVERS: usize = 64;

/// The section as it is written. Every key is required or optional by nature: the embedded defaults
/// give the rest.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RedisConfig {
    pub url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    #[serde(default, skip_serializing)]
    pub password: Option<SecretString>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_file: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    pub durability: String,
    /// Fixed at the first start. `None`: as the installation has it, see [`Self::first_shards`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shards: Option<u16>,
    /// Before every key and channel.
    pub prefix: String,
    /// The operator's word that lost keys are accepted.
    pub allow_eviction: bool,
}

/// Two are the same where nothing that a restart would need differs; passwords count as the same
/// only where neither has one.
impl PartialEq for RedisConfig {
    fn eq(&self, other: &Self) -> bool {
        use secrecy::ExposeSecret as _;
        let secret = |one: &Self| one.password.as_ref().map(|password| password.expose_secret().to_owned());
        self.url == other.url
            && self.user == other.user
            && secret(self) == secret(other)
            && self.password_file == other.password_file
            && self.ca_file == other.ca_file
            && self.durability == other.durability
            && self.shards == other.shards
            && self.prefix == other.prefix
            && self.allow_eviction == other.allow_eviction
    }
}

impl Eq for RedisConfig {}

impl RedisConfig {
    /// How many shards a new installation gets. What is done in one shard shares a round trip, so that few
    /// cost less than many; a Cluster needs some for each of its servers.
    #[must_use]
    pub fn first_shards(&self) -> u16 {
        let of_topology = match self.url.parse::<Target>().map(|target| target.topology) {
            Ok(Topology::Cluster(_)) => 16,
            _ => 4,
        };
        self.shards.unwrap_or(of_topology)
    }
}

/// One key of the section and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingProblem {
    /// Within `store.redis`.
    pub key: &'static str,
    pub problem: String,
}

impl fmt::Display for SettingProblem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "store.redis.{}: {}", self.key, self.problem)
    }
}

/// What to wait for before something counts as kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The primary has it in memory.
    Ack,
    /// The primary has it on its disk.
    Fsync,
    /// So many replicas have it in memory.
    Replicas(u8),
}

impl FromStr for Durability {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "ack" => Ok(Self::Ack),
            "fsync" => Ok(Self::Fsync),
            _ => match text.strip_prefix("replicas:").map(str::parse) {
                Some(Ok(number @ 1..=9)) => Ok(Self::Replicas(number)),
                _ => Err(DURABILITY_SHAPE),
            },
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address {
    pub host: String,
    pub port: u16,
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            return write!(out, "[{}]:{}", self.host, self.port);
        }
        write!(out, "{}:{}", self.host, self.port)
    }
}

impl Address {
    /// `host`, `host:port`, `[::1]:port`.
    pub(super) fn parse(text: &str, port: u16) -> Option<Self> {
        let (host, rest) = match text.strip_prefix('[') {
            Some(inner) => inner.split_once(']')?,
            None => text.find(':').map_or((text, ""), |at| text.split_at(at)),
        };
        let port = match rest.strip_prefix(':') {
            Some(number) => number.parse().ok().filter(|port| *port != 0)?,
            None if rest.is_empty() => port,
            None => return None,
        };
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:%".contains(&byte);
        (!host.is_empty() && host.bytes().all(fits)).then(|| Self { host: host.to_owned(), port })
    }
}

/// How the primaries are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topology {
    Single(Address),
    Sentinel {
        sentinels: Vec<Address>,
        /// The name under which the sentinels watch the primary.
        primary: String,
    },
    Cluster(Vec<Address>),
}

impl fmt::Display for Topology {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = |addresses: &[Address]| addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        match self {
            Self::Single(address) => address.fmt(out),
            Self::Sentinel { sentinels, primary } => write!(out, "{primary} (sentinels {})", all(sentinels)),
            Self::Cluster(seeds) => write!(out, "the Cluster of {}", all(seeds)),
        }
    }
}

#[derive(Clone, Default)]
pub struct Login {
    pub user: Option<String>,
    pub password: Option<SecretString>,
}

/// What a URL says.
#[derive(Clone)]
pub struct Target {
    pub topology: Topology,
    pub tls: bool,
    pub database: i64,
    pub login: Login,
}

impl FromStr for Target {
    type Err = &'static str;

    fn from_str(url: &str) -> Result<Self, Self::Err> {
        let (scheme, rest) = url.split_once("://").ok_or(URL_SHAPE)?;
        let (tls, kind) = match scheme.split_once('+').unwrap_or((scheme, "")) {
            ("redis", kind) => (false, kind),
            ("rediss", kind) => (true, kind),
            _ => return Err(URL_SHAPE),
        };
        let (login, rest) = match rest.rsplit_once('@') {
            Some((login, rest)) => (parse_login(login), rest),
            None => (Login::default(), rest),
        };
        let (hosts, path) = rest.split_once('/').unwrap_or((rest, ""));
        let port = if kind == "sentinel" { 26_379 } else { 6_379 };
        let parsed: Option<Vec<_>> = hosts.split(',').map(|host| Address::parse(host, port)).collect();
        let mut hosts = parsed.filter(|hosts| hosts.len() <= MOST_SERVERS).ok_or(URL_SHAPE)?;
        let mut database = 0;
        let topology = match kind {
            "" if hosts.len() == 1 => {
                if !path.is_empty() {
                    database = path.parse().ok().filter(|number| (0..=1023).contains(number)).ok_or(URL_SHAPE)?;
                }
                Topology::Single(hosts.remove(0))
            }
            "sentinel" if is_name(path) => Topology::Sentinel { sentinels: hosts, primary: path.to_owned() },
            "sentinel" if path.split_once('/').is_some_and(|(name, _)| is_name(name)) => {
                return Err("names a database, which cannot be chosen with Sentinel: redis+sentinel://host:26379/name");
            }
            "sentinel" => return Err("lacks the primary's name: redis+sentinel://host:26379/name"),
            "cluster" if path.is_empty() => Topology::Cluster(hosts),
            "cluster" => return Err("names a database; a Cluster has only one"),
            _ => return Err(URL_SHAPE),
        };
        Ok(Self { topology, tls, database, login })
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
}

fn parse_login(text: &str) -> Login {
    let (user, password) = text.split_once(':').map_or((text, None), |(user, password)| (user, Some(password)));
    Login { user: (!user.is_empty()).then(|| user.to_owned()), password: password.map(SecretString::from) }
}

/// Everything a link needs to know.
#[derive(Clone)]
pub struct LinkSettings {
    pub target: Target,
    pub durability: Durability,
    pub prefix: String,
    pub allow_eviction: bool,
    /// PEM file with the only roots that count under TLS; absent: the machine's.
    pub ca_file: Option<PathBuf>,
}

impl LinkSettings {
    /// `ack`, keys under `belfry`, everything else as the URL says.
    ///
    /// # Errors
    /// It is no URL of a Redis.
    pub fn for_url(url: &str) -> Result<Self, SettingProblem> {
        let target = url.parse().map_err(|problem: &str| SettingProblem { key: "url", problem: problem.into() })?;
        Ok(Self { target, durability: Durability::Ack, prefix: "belfry".into(), allow_eviction: false, ca_file: None })
    }

    /// # Errors
    /// Everything that is wrong or contradicts itself, by key.
    pub fn of(config: &RedisConfig) -> Result<Self, Vec<SettingProblem>> {
        let mut problems = Vec::new();
        let mut refuse = |key, problem: &str| problems.push(SettingProblem { key, problem: problem.to_owned() });
        let target = config.url.parse::<Target>().map_err(|problem| refuse("url", problem)).ok();
        let durability = config.durability.parse().map_err(|problem| refuse("durability", problem)).ok();
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
        if config.prefix.is_empty() || config.prefix.len() > 32 || !config.prefix.bytes().all(plain) {
            refuse("prefix", "expected 1 to 32 lower-case letters, digits, \"-\" and \"_\"");
        }
        if config.shards.is_some_and(|shards| !(1..=256).contains(&shards)) {
            refuse("shards", "expected a whole number from 1 to 256");
        }
        if let Some(target) = &target {
            if target.login.password.is_some() {
                refuse("url", "holds a password; give it by password_file");
            }
            if target.login.user.is_some() && config.user.is_some() {
                refuse("user", "is given twice: here and in url");
            }
            if config.ca_file.is_some() && !target.tls {
                refuse("ca_file", "has no effect without TLS; write rediss:// in url");
            }
            let named = config.user.is_some() || target.login.user.is_some();
            if named && config.password.is_none() && config.password_file.is_none() {
                refuse("user", "has no password; give it by password_file");
            }
        }
        let (Some(mut target), Some(durability), true) = (target, durability, problems.is_empty()) else {
            return Err(problems);
        };
        target.login.user = config.user.clone().or(target.login.user);
        target.login.password.clone_from(&config.password);
        Ok(Self {
            target,
            durability,
            prefix: config.prefix.clone(),
            allow_eviction: config.allow_eviction,
            ca_file: config.ca_file.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topology(url: &str) -> Result<Topology, &'static str> {
        url.parse::<Target>().map(|target| target.topology)
    }

    fn address(host: &str, port: u16) -> Address {
        Address { host: host.into(), port }
    }

    #[test]
    fn one_setting_names_the_servers_and_how_to_find_the_primary() {
        assert_eq!(topology("redis://h"), Ok(Topology::Single(address("h", 6379))));
        assert_eq!(topology("rediss://[::1]:7000/3"), Ok(Topology::Single(address("::1", 7000))));
        assert_eq!(
            topology("redis+sentinel://u:p@a:1,b/shop"),
            Ok(Topology::Sentinel { sentinels: vec![address("a", 1), address("b", 26_379)], primary: "shop".into() })
        );
        assert_eq!(topology("rediss+cluster://a:1,b:2"), Ok(Topology::Cluster(vec![address("a", 1), address("b", 2)])));
        assert!("rediss+cluster://a".parse::<Target>().unwrap().tls);
        assert_eq!("redis://a/7".parse::<Target>().unwrap().database, 7);
    }

    #[test]
    fn what_is_no_url_is_refused() {
        for url in [
            "",
            "h:1",
            "http://h",
            "redis://",
            "redis://a,b",
            "redis://h:0",
            "redis://h:x",
            "redis://h/x",
            "redis://h h",
            "redis+sentinel://h",
            "redis+cluster://h/1",
            "redis+what://h",
            "redis://[::1",
            "redis://h:1:2",
        ] {
            assert!(topology(url).is_err(), "{url}");
        }
    }

    #[test]
    fn a_sentinel_s_url_is_told_what_is_wrong_with_it() {
        let wrong = |url: &str| topology(url).unwrap_err();
        assert!(wrong("redis+sentinel://h/mymaster/1").starts_with("names a database"));
        assert!(wrong("redis+sentinel://h/").starts_with("lacks the primary's name"));
        assert!(wrong("redis+sentinel://h//1").starts_with("lacks the primary's name"));
    }

    #[test]
    fn durability_has_three_forms() {
        assert_eq!("ack".parse(), Ok(Durability::Ack));
        assert_eq!("fsync".parse(), Ok(Durability::Fsync));
        assert_eq!("replicas:2".parse(), Ok(Durability::Replicas(2)));
        for text in ["", "Ack", "replicas", "replicas:0", "replicas:10", "replicas:-1", "disk"] {
            assert_eq!(text.parse::<Durability>(), Err(DURABILITY_SHAPE), "{text}");
        }
    }
}
