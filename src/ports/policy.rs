//! What intake and engine need of the configuration, as one value that a reload swaps whole.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use belfry_domain::admission::Rules;
use belfry_domain::caps::Cap;
use belfry_domain::{ChannelKind, Class, PacePlan};
use http::Uri;

use super::channel::Channel;
use super::links::LinkPolicy;
use super::recipients::endpoint;

pub use belfry_domain::lane::{OUTBOX, UNSERVED};

#[derive(Clone)]
pub struct Provider {
    pub channel: Arc<dyn Channel>,
    /// Most calls under way at once.
    pub concurrency: u16,
    /// How often it may be called by all nodes together.
    pub pace: Option<PacePlan>,
}

#[derive(Clone)]
pub struct Policy {
    pub classes: BTreeMap<String, Class>,
    /// Their rules of admission, by the same names; of a class without an entry there are none.
    pub rules: BTreeMap<String, Rules>,
    /// What the messages of a class come under, where it names any.
    pub caps: BTreeMap<String, Vec<Cap>>,
    /// By name; [`OUTBOX`] is always among them.
    pub providers: BTreeMap<String, Provider>,
    /// Which providers a channel's messages go to; a channel without any goes to [`OUTBOX`].
    pub routes: BTreeMap<ChannelKind, Vec<Route>>,
    pub environments: BTreeMap<String, EnvironmentRule>,
    pub links: LinkPolicy,
    /// How long a record outlives its end.
    pub keep_record: Duration,
}

/// A provider of a channel, and which devices it is for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Route {
    pub provider: String,
    /// Absent: of any app.
    pub app: Option<String>,
    /// `production` or `sandbox`, where the provider serves one of them; absent: any.
    pub environment: Option<String>,
}

impl Route {
    /// A channel's only provider.
    #[must_use]
    pub fn any(provider: impl Into<String>) -> Self {
        Self { provider: provider.into(), ..Self::default() }
    }

    /// Whether a device could be served by either.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let meet = |one: &Option<String>, two: &Option<String>| one.is_none() || two.is_none() || one == two;
        meet(&self.app, &other.app) && meet(&self.environment, &other.environment)
    }

    fn serves(&self, device: DeviceOf<'_>) -> bool {
        let fits = |own: &Option<String>, asked: Option<&str>| match (own.as_deref(), asked) {
            (Some(own), Some(asked)) => own == asked,
            (None, _) | (_, None) => true,
        };
        fits(&self.app, device.app) && fits(&self.environment, device.environment)
    }
}

/// Of which app and environment a device is, where it says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceOf<'a> {
    pub app: Option<&'a str>,
    pub environment: Option<&'a str>,
}

/// The channel has providers, and none of them serves such a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unserved;

/// Where an environment's messages may really go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnvironmentRule {
    /// To the outbox, always.
    Outbox,
    /// To the outbox but for addresses that match one of these patterns (`*@ours.example`). Of a browser's
    /// subscription the host of its endpoint counts (`*.push.apple.com`).
    Allow(Vec<String>),
}

/// Those of a class that has none.
static NO_RULES: LazyLock<Rules> = LazyLock::new(Rules::default);

impl Policy {
    /// What the messages of a class are admitted by.
    #[must_use]
    pub fn rules_of(&self, class: &str) -> &Rules {
        self.rules.get(class).unwrap_or(&NO_RULES)
    }

    /// The provider for a message to `address` on `channel` from `environment`: the first that serves the
    /// device, where it is one.
    ///
    /// `test` always goes to the outbox.
    ///
    /// # Errors
    /// [`Unserved`]: never the outbox, where a real message would end unseen.
    pub fn route(
        &self,
        channel: ChannelKind,
        environment: &str,
        address: &str,
        device: DeviceOf<'_>,
    ) -> Result<&str, Unserved> {
        match self.environments.get(environment) {
            _ if environment == "test" => Ok(OUTBOX),
            Some(EnvironmentRule::Outbox) => Ok(OUTBOX),
            Some(EnvironmentRule::Allow(patterns)) if !lets_out(patterns, channel, address) => Ok(OUTBOX),
            Some(EnvironmentRule::Allow(_)) | None => match self.routes.get(&channel) {
                None => Ok(OUTBOX),
                Some(routes) => {
                    let route = routes.iter().find(|route| route.serves(device)).ok_or(Unserved)?;
                    Ok(&route.provider)
                }
            },
        }
    }

    /// Where a message goes whose provider is gone from the configuration; never to the outbox.
    #[must_use]
    pub fn reroute(&self, channel: ChannelKind, device: DeviceOf<'_>) -> Option<&str> {
        let route = self.routes.get(&channel)?.iter().find(|route| route.serves(device))?;
        Some(&route.provider)
    }
}

fn lets_out(patterns: &[String], channel: ChannelKind, address: &str) -> bool {
    let known_by = match channel {
        ChannelKind::WebPush => Cow::from(push_service(address)),
        ChannelKind::Email
        | ChannelKind::Apns
        | ChannelKind::Fcm
        | ChannelKind::Sms
        | ChannelKind::Webhook
        | ChannelKind::Chat
        | ChannelKind::Inbox => Cow::from(address),
    };
    patterns.iter().any(|one| matches(one, &known_by))
}

/// The host of a subscription's endpoint. The text of the whole also holds keys and members of anybody's own, which
/// would let an endpoint out that no pattern was meant for. Empty where there is none: only `*` lets that out.
fn push_service(subscription: &str) -> String {
    let uri = endpoint(subscription).and_then(|endpoint| endpoint.parse::<Uri>().ok());
    uri.as_ref().and_then(Uri::host).unwrap_or_default().to_owned()
}

/// `*` stands for any run of characters; case does not count.
fn matches(pattern: &str, address: &str) -> bool {
    let (pattern, address) = (pattern.to_lowercase(), address.to_lowercase());
    let mut parts = pattern.split('*');
    let Some(mut rest) = address.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut last = None;
    for part in parts {
        last = Some(part);
        match rest.find(part) {
            Some(found) => rest = &rest[found + part.len()..],
            None => return false,
        }
    }
    match last {
        None => rest.is_empty(),
        Some(last) => last.is_empty() || address.ends_with(last),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_goes_to_the_provider_of_its_app_and_environment() {
        let route = |provider: &str, app: &str, environment: &str| Route {
            provider: provider.into(),
            app: Some(app.into()),
            environment: Some(environment.into()),
        };
        let routes = vec![
            route("shop", "com.shop", "production"),
            route("shop-dev", "com.shop", "sandbox"),
            route("driver", "com.driver", "production"),
        ];
        let policy = Policy {
            rules: BTreeMap::new(),
            classes: BTreeMap::new(),
            caps: BTreeMap::new(),
            providers: BTreeMap::new(),
            routes: [(ChannelKind::Apns, routes), (ChannelKind::Fcm, vec![Route::any("google")])].into(),
            environments: BTreeMap::new(),
            links: LinkPolicy::default(),
            keep_record: Duration::ZERO,
        };
        let to = |channel, app, environment| policy.route(channel, "live", "t", DeviceOf { app, environment });
        assert_eq!(to(ChannelKind::Apns, None, None), Ok("shop"));
        assert_eq!(to(ChannelKind::Apns, Some("com.shop"), Some("sandbox")), Ok("shop-dev"));
        assert_eq!(to(ChannelKind::Apns, None, Some("sandbox")), Ok("shop-dev"));
        assert_eq!(to(ChannelKind::Apns, Some("com.driver"), None), Ok("driver"));
        assert_eq!(to(ChannelKind::Apns, Some("com.driver"), Some("sandbox")), Err(Unserved));
        assert_eq!(to(ChannelKind::Apns, Some("com.gone"), None), Err(Unserved));
        assert_eq!(to(ChannelKind::Fcm, Some("any"), Some("production")), Ok("google"));
        assert_eq!(to(ChannelKind::WebPush, Some("any"), None), Ok(OUTBOX));
        let gone = DeviceOf { app: Some("com.gone"), environment: None };
        assert_eq!(policy.route(ChannelKind::Apns, "test", "t", gone), Ok(OUTBOX));
        assert_eq!(policy.reroute(ChannelKind::WebPush, gone), None);
        assert_eq!(policy.reroute(ChannelKind::Apns, gone), None);
        assert_eq!(policy.reroute(ChannelKind::Apns, DeviceOf::default()), Some("shop"));
    }

    #[test]
    fn a_subscription_is_let_out_by_the_host_of_its_endpoint() {
        let of = |endpoint: &str| {
            format!(r#"{{"endpoint":"{endpoint}","keys":{{"auth":"fcm.googleapis.com"}},"note":".push.apple.com"}}"#)
        };
        for (pattern, endpoint, expected) in [
            ("*.push.apple.com", "https://web.push.apple.com/QGuQy", true),
            ("*.push.apple.com", "https://Web.Push.Apple.com:443/QGuQy", true),
            ("*.push.apple.com", "https://evil.example/.push.apple.com", false),
            ("*.push.apple.com", "https://web.push.apple.com@evil.example/", false),
            ("*.push.apple.com", "https://web.push.apple.com.evil.example/", false),
            ("fcm.googleapis.com", "https://fcm.googleapis.com/fcm/send/x", true),
            ("*fcm.googleapis.com*", "https://updates.push.services.mozilla.com/wpush/v2/x", false),
            ("*", "https://anything.example/", true),
            ("*", "no address", true),
            ("*.*", "no address", false),
        ] {
            assert_eq!(
                lets_out(&[pattern.into()], ChannelKind::WebPush, &of(endpoint)),
                expected,
                "{pattern} {endpoint}"
            );
        }
        assert!(!lets_out(&["*@ours.example*".into()], ChannelKind::WebPush, &of("https://a@ours.example/")));
        assert!(lets_out(&["*@ours.example".into()], ChannelKind::Email, "ann@ours.example"));
        assert!(lets_out(&["abc*".into()], ChannelKind::Fcm, "abcdef"));
    }

    #[test]
    fn patterns() {
        for (pattern, address, expected) in [
            ("*@ours.example", "Ann@Ours.example", true),
            ("*@ours.example", "ann@ours.example.evil", false),
            ("*@ours.example", "ann@notours.example", false),
            ("ann@ours.example", "ann@ours.example", true),
            ("ann@ours.example", "joann@ours.example", false),
            ("+4670*", "+46701234567", true),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "acb", false),
            ("*", "anything", true),
        ] {
            assert_eq!(matches(pattern, address), expected, "{pattern} {address}");
        }
    }
}
