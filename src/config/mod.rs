//! Configuration: TOML over embedded defaults, environment over both; checked whole before anything
//! starts. Nothing else in Belfry reads the environment or a secret file, and nothing after this
//! checks a setting again. Secrets are held as [`SecretString`] and are never printed.

use std::collections::BTreeMap;
use std::time::Duration;

use belfry_domain::admission::Rules;
use belfry_domain::caps::Cap;
use belfry_domain::{ChannelKind, Class, Pace};
use secrecy::SecretString;
use serde::Serialize;

use crate::ports::links::LinkPolicy;
use crate::ports::policy::{EnvironmentRule, OUTBOX, Route};

mod caps;
mod check;
mod class;
mod layers;
mod not_built;
mod notes;
mod paces;
mod problem;
mod reading;
mod secrets;
mod sections;
mod show;
mod variables;

pub use crate::ports::near::near_match;
pub use caps::{CapConfig, CountedBy};
pub use class::{ClassConfig, DefaultsConfig, QuietHoursConfig, RetryConfig};
pub use layers::{DEFAULTS, ENV_PREFIX, Sources};
pub use notes::Note;
pub use problem::{ConfigErrors, Origin, Problem};
pub use sections::{
    ChannelConfig, EngineConfig, EnvironmentConfig, HttpConfig, LimitConfig, LinksConfig, LogConfig, LogFormat,
    OutboxConfig, OutboxProvider, PaceConfig, ProviderConfig, ProviderKind, RedisConfig, RememberConfig, SqliteConfig,
    StoreConfig, StoreKind, TemplatesConfig, WarmUpConfig,
};
pub use show::Shown;

use reading::Reading;

/// The variable that gives a first admin key.
pub const BOOTSTRAP_KEY: &str = "BELFRY_BOOTSTRAP_KEY";

/// The kinds of providers that are built.
pub(crate) const KINDS: [&str; 5] = ["smtp", "apns", "fcm", "web_push", "outbox"];

const SECTIONS: [&str; 13] = [
    "http",
    "store",
    "engine",
    "remember",
    "templates",
    "links",
    "outbox",
    "log",
    "channels",
    "providers",
    "environments",
    "classes",
    "caps",
];

/// A configuration that holds together.
#[derive(Clone, Debug, Serialize)]
pub struct Config {
    pub http: HttpConfig,
    pub store: StoreConfig,
    pub engine: EngineConfig,
    pub remember: RememberConfig,
    pub templates: TemplatesConfig,
    pub links: LinksConfig,
    pub outbox: OutboxConfig,
    pub log: LogConfig,
    pub channels: BTreeMap<ChannelKind, ChannelConfig>,
    pub providers: BTreeMap<String, ProviderConfig>,
    pub environments: BTreeMap<String, EnvironmentConfig>,
    pub classes: BTreeMap<String, ClassConfig>,
    pub caps: BTreeMap<String, CapConfig>,
    /// From [`BOOTSTRAP_KEY`]: 32 to 128 visible ASCII characters.
    #[serde(skip)]
    pub bootstrap_key: Option<SecretString>,
    /// Environment variables that begin like ours and are none that is read.
    #[serde(skip)]
    pub unread: Vec<String>,
    /// Where each key's value came from, by dotted key.
    #[serde(skip)]
    origins: BTreeMap<String, Origin>,
}

/// What intake and engine need of a configuration, less the channels themselves, which only the
/// wiring can build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyParts {
    pub classes: BTreeMap<String, Class>,
    pub rules: BTreeMap<String, Rules>,
    /// The caps of each class that has any.
    pub caps: BTreeMap<String, Vec<Cap>>,
    /// The providers of each channel that has any.
    pub routes: BTreeMap<ChannelKind, Vec<Route>>,
    pub environments: BTreeMap<String, EnvironmentRule>,
    pub keep_record: Duration,
}

impl Config {
    /// Reads, merges and checks everything, secret files included.
    ///
    /// # Errors
    /// Every problem at once, by key, with what would be right.
    pub fn load(sources: &Sources) -> Result<Self, ConfigErrors> {
        let mut reading = Reading::new(sources);
        not_built::refuse(&mut reading);
        reading.refuse_unknown_sections(&SECTIONS);
        let config = Self::typed(&mut reading, sources);
        let Reading { layers, gone, mut problems, .. } = reading;
        if let Some(mut config) = config {
            let origin = |key: &str| layers.origin(key).unwrap_or(Origin::Default);
            // What stands in for a missing key is no second problem.
            let real = |problem: &Problem| !gone.contains(&problem.key);
            problems.extend(secrets::fill(&mut config, &origin).into_iter().filter(real));
            let found = check::check(&config, &origin, &problems);
            problems.extend(found.into_iter().filter(real));
            if problems.is_empty() {
                config.unread.clone_from(&layers.unread);
                config.origins = show::origins(&config, &origin);
                return Ok(config);
            }
        }
        problems.sort_by(|a, b| a.key.cmp(&b.key));
        problems.dedup();
        Err(ConfigErrors { problems })
    }

    /// `None` where a section could not be had; its problem is reported. Named entries that could
    /// not be had are left out.
    fn typed(reading: &mut Reading, sources: &Sources) -> Option<Self> {
        let http = reading.section("http");
        let store = reading.section("store");
        let engine = reading.section("engine");
        let remember = reading.section("remember");
        let templates = reading.section("templates");
        let links = reading.section("links");
        let outbox = reading.section("outbox");
        let log = reading.section("log");
        let channels = channels(reading);
        let providers = named(reading, "providers", provider);
        let environments = named(reading, "environments", |reading, key| reading.section(key));
        let classes = named(reading, "classes", |reading, key| reading.section(key));
        let caps = named(reading, "caps", |reading, key| reading.section(key));
        let bootstrap_key = secrets::bootstrap_key(sources, &mut reading.problems);
        Some(Self {
            http: http?,
            store: store?,
            engine: engine?,
            remember: remember?,
            templates: templates?,
            links: links?,
            outbox: outbox?,
            log: log?,
            channels,
            providers,
            environments,
            classes,
            caps,
            bootstrap_key,
            unread: Vec::new(),
            origins: BTreeMap::new(),
        })
    }

    #[must_use]
    pub fn policy_parts(&self) -> PolicyParts {
        let rule = |one: &EnvironmentConfig| match &one.allow {
            Some(patterns) => EnvironmentRule::Allow(patterns.clone()),
            None => EnvironmentRule::Outbox,
        };
        PolicyParts {
            classes: self.classes.iter().map(|(name, class)| (name.clone(), class.class(name))).collect(),
            rules: self.classes.iter().map(|(name, class)| (name.clone(), class.rules())).collect(),
            caps: caps::by_class(self),
            routes: self
                .channels
                .iter()
                .filter(|(_, channel)| !channel.providers.is_empty())
                .map(|(kind, channel)| (*kind, channel.providers.iter().map(|name| self.route(name)).collect()))
                .collect(),
            environments: self.environments.iter().map(|(name, one)| (name.clone(), rule(one))).collect(),
            keep_record: self.remember.record.0,
        }
    }

    /// Every class, and whether it is one to unsubscribe from.
    #[must_use]
    pub fn unsubscribing(&self) -> BTreeMap<String, bool> {
        self.classes.iter().map(|(name, class)| (name.clone(), class.unsubscribe)).collect()
    }

    /// What links are made of, where the server listens at `listening`.
    #[must_use]
    pub fn link_policy(&self, listening: std::net::SocketAddr) -> LinkPolicy {
        LinkPolicy {
            base: self.public_url(listening),
            sender: self.links.sender.clone(),
            keys: self.links.sealing_keys(),
            pages: self.classes.iter().map(|(name, class)| (name.clone(), class.page())).collect(),
        }
    }

    /// The provider of this name, and which devices it is for.
    pub(crate) fn route(&self, name: &str) -> Route {
        let (app, environment) = self.providers.get(name).map(ProviderConfig::serves_only).unwrap_or_default();
        Route { provider: name.to_owned(), app, environment }
    }

    /// The address for links, without a slash at its end. `listening`: where the server really
    /// listens, which differs from the configuration at port 0.
    #[must_use]
    pub fn public_url(&self, listening: std::net::SocketAddr) -> String {
        self.http
            .public_url
            .as_ref()
            .map_or_else(|| format!("http://{listening}"), |url| url.trim_end_matches('/').into())
    }

    /// How often each API key may call one node.
    #[must_use]
    pub fn limit(&self) -> Option<Pace> {
        // What makes no limit was refused when the configuration was read.
        self.http.limit.and_then(|limit| limit.limit().ok())
    }

    /// Whether the outbox may be told to misbehave.
    #[must_use]
    pub fn misbehave_allowed(&self) -> bool {
        self.outbox.misbehave.unwrap_or_else(|| self.http.listen.ip().is_loopback())
    }

    /// Provider names that facts may carry as labels, the outbox among them.
    pub fn provider_names(&self) -> impl Iterator<Item = &str> {
        let named = self.providers.keys().map(String::as_str);
        named.filter(|name| *name != OUTBOX).chain(std::iter::once(OUTBOX))
    }

    /// Where the value of `key` came from.
    #[must_use]
    pub fn origin(&self, key: &str) -> Origin {
        self.origins.get(key).cloned().unwrap_or(Origin::Default)
    }

    /// Keys whose change a reload cannot carry out: they need a restart.
    #[must_use]
    pub fn needs_restart(&self, next: &Self) -> Vec<&'static str> {
        let fixed = [
            ("http.listen", self.http.listen != next.http.listen),
            ("http.header_timeout", self.http.header_timeout != next.http.header_timeout),
            ("http.write_timeout", self.http.write_timeout != next.http.write_timeout),
            ("http.idle_timeout", self.http.idle_timeout != next.http.idle_timeout),
            ("http.max_connections", self.http.max_connections != next.http.max_connections),
            ("store", self.store != next.store),
            ("engine", self.engine != next.engine),
            ("log", self.log != next.log),
        ];
        fixed.into_iter().filter(|(_, changed)| *changed).map(|(key, _)| key).collect()
    }
}

fn channels(reading: &mut Reading) -> BTreeMap<ChannelKind, ChannelConfig> {
    let mut channels = BTreeMap::new();
    for name in reading.names("channels") {
        let key = format!("channels.{name}");
        let Ok(kind) = name.parse::<ChannelKind>() else {
            let known: Vec<&str> = ChannelKind::ALL.iter().map(|kind| kind.name()).collect();
            let what = match near_match(&name, known.iter().copied()) {
                Some(near) => format!("no such channel; did you mean \"{near}\"?"),
                None => format!("no such channel; there are {}", known.join(", ")),
            };
            reading.report(&key, what);
            continue;
        };
        channels.extend(reading.section(&key).map(|channel| (kind, channel)));
    }
    channels
}

fn named<T>(
    reading: &mut Reading,
    section: &str,
    mut read: impl FnMut(&mut Reading, &str) -> Option<T>,
) -> BTreeMap<String, T> {
    let names = reading.names(section);
    names.into_iter().filter_map(|name| Some((name.clone(), read(reading, &format!("{section}.{name}"))?))).collect()
}

/// `kind` is read by itself: a tagged enum would lose the keys in its errors.
fn provider(reading: &mut Reading, key: &str) -> Option<ProviderConfig> {
    let kind_key = format!("{key}.kind");
    let kind = layers::find(&reading.tree, &kind_key).and_then(|value| value.as_str().map(str::to_owned));
    layers::remove(&mut reading.tree, &kind_key);
    let pace_key = format!("{key}.pace");
    let pace = layers::find(&reading.tree, &pace_key).is_some().then(|| reading.section(&pace_key)).flatten();
    layers::remove(&mut reading.tree, &pace_key);
    let kind = match kind.as_deref() {
        Some("smtp") => reading.section(key).map(Box::new).map(ProviderKind::Smtp),
        Some("apns") => reading.section(key).map(Box::new).map(ProviderKind::Apns),
        Some("fcm") => reading.section(key).map(Box::new).map(ProviderKind::Fcm),
        Some("web_push") => reading.section(key).map(Box::new).map(ProviderKind::WebPush),
        Some("outbox") => reading.section(key).map(ProviderKind::Outbox),
        Some(other) => {
            let near = near_match(other, KINDS);
            let hint = near.map(|near| format!("; did you mean \"{near}\"?")).unwrap_or_default();
            reading.report(&kind_key, format!("expected one of {}{hint}", KINDS.join(", ")));
            None
        }
        None => {
            reading.report(key, format!("lacks the key \"kind\": one of {}", KINDS.join(", ")));
            None
        }
    };
    Some(ProviderConfig { pace, kind: kind? })
}

#[cfg(test)]
mod tests;
