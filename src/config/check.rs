//! What single values cannot show: that the whole holds together.

use std::time::Duration;

use belfry_domain::ChannelKind;
use hyper::Uri;
use hyper::http::uri::Authority;

use super::problem::{Origin, Problem};
use super::sections::{EnvironmentConfig, ProviderConfig, ProviderKind, RedisConfig};
use super::{Config, HttpConfig, caps, class, paces};
use crate::channel::apns::ApnsChannel;
use crate::channel::fcm::FcmChannel;
use crate::channel::setting::WrongSetting;
use crate::channel::smtp::SmtpChannel;
use crate::channel::smtp::config::SmtpConfig;
use crate::channel::web_push::WebPushChannel;
use crate::ports::near::near_match;
use crate::ports::policy::{OUTBOX, Route, UNSERVED};
use crate::ports::span::Span;
use crate::store::redis::link::{LinkSettings, check_roots};

/// RFC 5321 4.5.3.2.6.
const LEAST_END_OF_DATA: Duration = Duration::from_secs(600);

/// `before`: what is known to be wrong already, so that nothing is said twice.
pub(super) fn check(config: &Config, origin: &dyn Fn(&str) -> Origin, before: &[Problem]) -> Vec<Problem> {
    let mut checks = Checks { origin, before, found: Vec::new() };
    checks.listener(config);
    checks.http(&config.http);
    checks.numbers(config);
    checks.log(&config.log.level);
    checks.redis(&config.store.redis);
    for (kind, channel) in &config.channels {
        checks.channel(config, *kind, &channel.providers);
    }
    for (name, provider) in &config.providers {
        checks.provider(name, provider);
    }
    for (key, what) in paces::contradictions(config) {
        if !checks.knows(&key) {
            checks.refuse(&key, what);
        }
    }
    for (name, environment) in &config.environments {
        checks.environment(name, environment);
    }
    for (key, what) in
        class::contradictions(config).into_iter().chain(caps::contradictions(config, &|key| checks.knows(key)))
    {
        checks.refuse(&key, what);
    }
    checks.found
}

struct Checks<'a> {
    origin: &'a dyn Fn(&str) -> Origin,
    before: &'a [Problem],
    found: Vec<Problem>,
}

impl Checks<'_> {
    fn refuse(&mut self, key: &str, what: impl Into<String>) {
        self.found.push(Problem { key: key.to_owned(), origin: (self.origin)(key), what: what.into() });
    }

    /// Whether something is known to be wrong at `key` or below it.
    fn knows(&self, key: &str) -> bool {
        let below = |one: &str| one == key || one.strip_prefix(key).is_some_and(|rest| rest.starts_with('.'));
        self.before.iter().chain(&self.found).any(|problem| below(&problem.key))
    }

    /// On the defaults nobody has thought about who may reach this: the first key is printed, and
    /// the outbox shows every message to who has it.
    fn listener(&mut self, config: &Config) {
        let operators_word = config.http.allow_remote || config.bootstrap_key.is_some();
        if !config.http.listen.ip().is_loopback() && !operators_word {
            self.refuse(
                "http.listen",
                "lies beyond loopback, which needs BELFRY_BOOTSTRAP_KEY or http.allow_remote = true \
                 (and a proxy with TLS before it)",
            );
        }
    }

    fn http(&mut self, http: &HttpConfig) {
        if http.public_url.as_deref().is_some_and(|url| !is_base_url(url)) {
            self.refuse("http.public_url", "expected an address such as \"https://notify.example.com\"");
        }
    }

    fn numbers(&mut self, config: &Config) {
        let engine = &config.engine;
        for (key, span) in [
            ("http.header_timeout", config.http.header_timeout),
            ("http.body_timeout", config.http.body_timeout),
            ("http.write_timeout", config.http.write_timeout),
            ("http.idle_timeout", config.http.idle_timeout),
            ("engine.poll", engine.poll),
            ("engine.purge", engine.purge),
            ("engine.shutdown_grace", engine.shutdown_grace),
            ("remember.record", config.remember.record),
        ] {
            if span == Span::secs(0) {
                self.refuse(key, "must be longer than zero");
            }
        }
        for (key, number) in [
            ("http.max_connections", config.http.max_connections),
            ("outbox.keep", config.outbox.keep),
            ("outbox.concurrency", config.outbox.concurrency.into()),
        ] {
            if number == 0 {
                self.refuse(key, "must be at least 1");
            }
        }
        for (key, path) in
            [("store.sqlite.path", &config.store.sqlite.path), ("templates.path", &config.templates.path)]
        {
            if path.as_os_str().is_empty() {
                self.refuse(key, "expected a path");
            }
        }
    }

    fn log(&mut self, level: &str) {
        if !is_filter(level) {
            self.refuse(
                "log.level",
                "expected error, warn, info, debug or trace, or levels by target such as \"info,belfry::engine=debug\"",
            );
        }
    }

    /// Whatever kind of store is used: a key that would be refused is no key.
    fn redis(&mut self, redis: &RedisConfig) {
        let settings = LinkSettings::of(redis);
        // Of the machine's own roots nothing is known until they are needed.
        if let (Ok(settings), Some(_)) = (&settings, &redis.ca_file)
            && !self.knows("store.redis.ca_file")
            && let Err(why) = check_roots(settings)
        {
            self.refuse("store.redis.ca_file", why);
        }
        for problem in settings.err().into_iter().flatten() {
            let key = format!("store.redis.{}", problem.key);
            // A password file that cannot be read has been named already.
            let named = problem.key == "user" && self.knows("store.redis.password_file");
            if !self.knows(&key) && !named {
                self.refuse(&key, problem.problem);
            }
        }
    }

    fn channel(&mut self, config: &Config, kind: ChannelKind, providers: &[String]) {
        let key = format!("channels.{kind}.providers");
        self.several(config, kind, providers);
        for name in providers {
            match config.providers.get(name) {
                Some(provider) if provider.serves(kind) => {}
                Some(_) => {
                    let own = own_kind(kind).map(|own| format!("; name one of kind \"{own}\" or \"outbox\""));
                    let hint = own.unwrap_or("; only the outbox can as yet".into());
                    self.refuse(&key, format!("\"{name}\" cannot send {kind}{hint}"));
                }
                None if name == OUTBOX => {}
                None => {
                    let near = near_match(name, config.provider_names());
                    let hint = near.map_or_else(
                        || format!("; define [providers.{name}]"),
                        |near| format!("; did you mean \"{near}\"?"),
                    );
                    self.refuse(&key, format!("there is no provider \"{name}\"{hint}"));
                }
            }
        }
    }

    /// Several providers of a channel are for devices of different apps; one in place of another is not built.
    fn several(&mut self, config: &Config, kind: ChannelKind, providers: &[String]) {
        let key = format!("channels.{kind}.providers");
        let devices = matches!(kind, ChannelKind::Apns | ChannelKind::Fcm | ChannelKind::WebPush);
        if !devices && providers.len() > 1 {
            return self.refuse(&key, "names several; failover between providers is not built yet, name one");
        }
        let routes: Vec<Route> = providers.iter().map(|name| config.route(name)).collect();
        for (at, later) in routes.iter().enumerate() {
            if let Some(earlier) = routes[..at].iter().find(|earlier| earlier.overlaps(later)) {
                let (one, other) = (&earlier.provider, &later.provider);
                let what = format!(
                    "\"{one}\" and \"{other}\" would serve the same devices, and failover between providers is not \
                     built yet; tell them apart by app (APNs: topic or environment), or name one"
                );
                self.refuse(&key, what);
            }
        }
    }

    fn provider(&mut self, name: &str, provider: &ProviderConfig) {
        let at = format!("providers.{name}");
        if name == UNSERVED {
            self.refuse(&at, "the name \"unserved\" stands for devices that no provider serves; take another");
        }
        match &provider.kind {
            // The built-in one under its own name; its settings are [outbox]'s.
            ProviderKind::Outbox(_) if name == OUTBOX && provider.pace.is_some() => {
                self.refuse(&format!("{at}.pace"), "the built-in outbox has no pace; give it to one of another name");
            }
            ProviderKind::Outbox(_) => {}
            ProviderKind::Smtp(_) | ProviderKind::Apns(_) | ProviderKind::Fcm(_) | ProviderKind::WebPush(_)
                if name == OUTBOX =>
            {
                self.refuse(&at, "the name \"outbox\" is the built-in outbox's; take another");
            }
            ProviderKind::Smtp(smtp) => self.smtp(&at, smtp),
            ProviderKind::Apns(apns) => self.channels_own(&at, ApnsChannel::problems(apns)),
            ProviderKind::Fcm(fcm) => self.channels_own(&at, FcmChannel::problems(fcm)),
            ProviderKind::WebPush(web) => self.channels_own(&at, WebPushChannel::problems(web)),
        }
    }

    /// What the channel itself would stop at: `serve` must not meet it after this said yes.
    fn channels_own(&mut self, at: &str, problems: Vec<WrongSetting>) {
        for WrongSetting { key, problem } in problems {
            let key = format!("{at}.{key}");
            if !self.knows(&key) {
                self.refuse(&key, problem);
            }
        }
    }

    fn smtp(&mut self, at: &str, smtp: &SmtpConfig) {
        match SmtpAddress::parse(&smtp.url) {
            Err(what) => self.refuse(&format!("{at}.url"), what),
            Ok(address) => {
                // A password file that cannot be read has been named already.
                if address.user && smtp.password.is_none() && smtp.password_file.is_none() {
                    self.refuse(&format!("{at}.url"), "names a user; give the password by password_file");
                }
                if !address.user && smtp.password.is_some() {
                    self.refuse(&format!("{at}.url"), "there is a password but no user; write smtp://user@host:587");
                }
                // Test peers on this machine may be impatient; the world is not.
                if smtp.timeouts.end_of_data.0 < LEAST_END_OF_DATA && !address.loopback {
                    self.refuse(
                        &format!("{at}.timeouts.end_of_data"),
                        "must be at least 600s (RFC 5321): giving up earlier makes duplicates",
                    );
                }
            }
        }
        if !holds_mailbox(&smtp.from) {
            self.refuse(&format!("{at}.from"), "expected \"Name <address@example.com>\" or an address");
        }
        if smtp.connections == 0 {
            self.refuse(&format!("{at}.connections"), "must be at least 1");
        }
        if smtp.reuse.messages == 0 {
            self.refuse(&format!("{at}.reuse.messages"), "must be at least 1");
        }
        self.dkim(at, smtp);
        // What the channel itself would stop at: `serve` must not meet it after this said yes.
        for problem in SmtpChannel::problems(smtp) {
            let key = format!("{at}.{}", problem.key);
            if !self.knows(&key) && !self.knows_of_the_login(at, problem.key) {
                self.refuse(&key, problem.problem);
            }
        }
    }

    /// A user without a password shows at either key.
    fn knows_of_the_login(&self, at: &str, key: &str) -> bool {
        key == "password_file" && self.knows(&format!("{at}.url"))
    }

    fn dkim(&mut self, at: &str, smtp: &SmtpConfig) {
        if let Some(dkim) = &smtp.dkim {
            for (key, value) in [("domain", &dkim.domain), ("selector", &dkim.selector)] {
                if value.is_empty() || !value.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b)) {
                    self.refuse(&format!("{at}.dkim.{key}"), "expected a DNS name");
                }
            }
        }
    }

    fn environment(&mut self, name: &str, environment: &EnvironmentConfig) {
        let key = format!("environments.{name}");
        match (&environment.allow, environment.outbox) {
            (Some(_), true) => self.refuse(&key, "has both allow and outbox = true; give one"),
            (None, false) if self.knows(&key) => {}
            (None, false) => self.refuse(&key, "says nothing; give allow = [...] or outbox = true"),
            (Some(_), false) if name == "test" => {
                self.refuse(&format!("{key}.allow"), "\"test\" always goes to the outbox");
            }
            (Some(patterns), false) if patterns.iter().any(|pattern| pattern.trim().is_empty()) => {
                self.refuse(&format!("{key}.allow"), "holds an empty pattern; leave it out, or let all out by \"*\"");
            }
            (Some(_), false) | (None, true) => {}
        }
    }
}

impl ProviderConfig {
    /// Of which app and environment the devices are that it serves; absent: of any.
    #[must_use]
    pub fn serves_only(&self) -> (Option<String>, Option<String>) {
        match &self.kind {
            ProviderKind::Apns(apns) => (Some(apns.topic.clone()), Some(apns.environment.name().to_owned())),
            ProviderKind::Fcm(fcm) => (fcm.app.clone(), None),
            ProviderKind::WebPush(web) => (web.app.clone(), None),
            ProviderKind::Smtp(_) | ProviderKind::Outbox(_) => (None, None),
        }
    }

    #[must_use]
    pub fn serves(&self, kind: ChannelKind) -> bool {
        match self.kind {
            ProviderKind::Smtp(_) => kind == ChannelKind::Email,
            ProviderKind::Apns(_) => kind == ChannelKind::Apns,
            ProviderKind::Fcm(_) => kind == ChannelKind::Fcm,
            ProviderKind::WebPush(_) => kind == ChannelKind::WebPush,
            ProviderKind::Outbox(_) => true,
        }
    }
}

/// The kind of provider that a channel has for its own.
const fn own_kind(kind: ChannelKind) -> Option<&'static str> {
    match kind {
        ChannelKind::Email => Some("smtp"),
        ChannelKind::Apns => Some("apns"),
        ChannelKind::Fcm => Some("fcm"),
        ChannelKind::WebPush => Some("web_push"),
        ChannelKind::Sms | ChannelKind::Webhook | ChannelKind::Chat | ChannelKind::Inbox => None,
    }
}

/// Levels, plain or by target, between commas. Stricter than the subscriber's own parser, to which
/// every unknown level is a target's name.
fn is_filter(text: &str) -> bool {
    const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
    let is_target = |name: &str| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b':' || b == b'-')
    };
    text.split(',').all(|part| match part.split_once('=') {
        None => LEVELS.contains(&part),
        Some((target, level)) => is_target(target) && LEVELS.contains(&level),
    })
}

fn is_base_url(url: &str) -> bool {
    let Ok(uri) = url.parse::<Uri>() else { return false };
    let plain =
        uri.authority().is_some_and(|authority| !authority.as_str().contains('@') && !authority.host().is_empty());
    matches!(uri.scheme_str(), Some("http" | "https")) && plain && uri.query().is_none() && !url.contains('#')
}

/// `Name <address>` or a bare address, without line ends. How the name is written is the channel's.
fn holds_mailbox(text: &str) -> bool {
    let address = match text.rsplit_once('<') {
        Some((_, rest)) => match rest.trim_end().strip_suffix('>') {
            Some(address) => address,
            None => return false,
        },
        None => text,
    };
    let parts = address.trim().rsplit_once('@');
    parts.is_some_and(|(local, domain)| !local.is_empty() && !domain.is_empty())
        && !address.trim().contains(char::is_whitespace)
        && !text.contains(char::is_control)
}

/// What has to be right about an SMTP url before anything starts.
struct SmtpAddress {
    user: bool,
    loopback: bool,
}

impl SmtpAddress {
    fn parse(url: &str) -> Result<Self, &'static str> {
        const SHAPE: &str = "expected smtp://user@host:587 or smtps://user@host:465";
        let rest = url.strip_prefix("smtp://").or_else(|| url.strip_prefix("smtps://")).ok_or(SHAPE)?;
        let (user, host) = match rest.rsplit_once('@') {
            Some((user, _)) if user.contains(':') => return Err("holds a password; give it by password_file"),
            Some(("", _)) => return Err(SHAPE),
            Some((_, host)) => (true, host),
            None => (false, rest),
        };
        let authority: Authority = host.trim_end_matches('/').parse().map_err(|_| SHAPE)?;
        if authority.host().is_empty()
            || (authority.port().is_some() && authority.port_u16().is_none_or(|port| port == 0))
        {
            return Err(SHAPE);
        }
        let name = authority.host().trim_matches(['[', ']']);
        let loopback = name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
        Ok(Self { user, loopback })
    }
}
