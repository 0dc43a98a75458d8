//! Filters of a search, a list and a cancellation: the same wherever they stand. Addresses, recipients and keys do not
//! belong in URLs, so a list has none of those.

use belfry_domain::delivery::StateName;
use belfry_domain::{ChannelKind, NotificationId};
use utoipa::ToSchema;

use super::api::Api;
use super::closed_sets;
use super::query::{Params, position};
use crate::intake::address;
use crate::intake::caller::Caller;
use crate::intake::fields::{Object, Problems, line, text};
use crate::intake::instant;
use crate::intake::plan::{identity, wrong_key};
use crate::ports::search::{MOST_IDS, NamedRecipient, Query};

/// Those of a body.
pub const FILTERS: &[&str] = &[
    "address",
    "recipient",
    "reference",
    "group",
    "class",
    "template",
    "template_version",
    "accepted_from",
    "accepted_until",
    "keys",
    "unique",
    "state",
    "channel",
];

/// Filters; all that are there must hold.
#[derive(ToSchema)]
pub struct Search {
    /// An email address, phone number, token or other address, whole.
    #[schema(min_length = 1, max_length = 4096, nullable = false, required = false)]
    pub address: Option<String>,
    /// The recipient that the request named, by your own name for it; stored or not.
    #[schema(min_length = 1, max_length = 255, nullable = false, required = false)]
    pub recipient: Option<String>,
    #[schema(min_length = 1, max_length = 255, nullable = false, required = false)]
    pub reference: Option<String>,
    #[schema(min_length = 1, max_length = 255, nullable = false, required = false)]
    pub group: Option<String>,
    #[schema(min_length = 1, max_length = 64, nullable = false, required = false)]
    pub class: Option<String>,
    /// A template's name.
    #[schema(min_length = 1, max_length = 128, nullable = false, required = false)]
    pub template: Option<String>,
    /// Of a template, as answers have it.
    #[schema(min_length = 1, max_length = 128, nullable = false, required = false)]
    pub template_version: Option<String>,
    /// Accepted then or later.
    #[schema(format = DateTime, nullable = false, required = false)]
    pub accepted_from: Option<String>,
    /// Accepted before.
    #[schema(format = DateTime, nullable = false, required = false)]
    pub accepted_until: Option<String>,
    /// Idempotency-Keys, or keys of batch items, of your own API key's namespace: found in this order.
    #[schema(min_items = 1, max_items = 1000, nullable = false, required = false)]
    pub keys: Option<Vec<String>>,
    /// Business keys, with their `class`: found in this order. Not beside `keys`.
    #[schema(min_items = 1, max_items = 1000, nullable = false, required = false)]
    pub unique: Option<Vec<String>>,
    /// The notification's state.
    #[schema(nullable = false, required = false)]
    pub state: Option<closed_sets::State>,
    /// It has a delivery on this channel.
    #[schema(nullable = false, required = false)]
    pub channel: Option<closed_sets::Channel>,
    #[schema(min_length = 1, max_length = 64, nullable = false, required = false)]
    pub cursor: Option<String>,
    #[schema(minimum = 1, maximum = 100, nullable = false, required = false)]
    pub limit: Option<i64>,
}

/// What to cancel: at least one filter; all must hold.
#[derive(ToSchema)]
#[schema(min_properties = 1)]
pub struct Filter {
    /// An email address, phone number, token or other address, whole.
    #[schema(min_length = 1, max_length = 4096, nullable = false, required = false)]
    pub address: Option<String>,
    /// The recipient that the request named, by your own name for it; stored or not.
    #[schema(min_length = 1, max_length = 255, nullable = false, required = false)]
    pub recipient: Option<String>,
    #[schema(min_length = 1, max_length = 255, nullable = false, required = false)]
    pub reference: Option<String>,
    #[schema(min_length = 1, max_length = 255, nullable = false, required = false)]
    pub group: Option<String>,
    #[schema(min_length = 1, max_length = 64, nullable = false, required = false)]
    pub class: Option<String>,
    /// A template's name.
    #[schema(min_length = 1, max_length = 128, nullable = false, required = false)]
    pub template: Option<String>,
    /// Of a template, as answers have it.
    #[schema(min_length = 1, max_length = 128, nullable = false, required = false)]
    pub template_version: Option<String>,
    /// Accepted then or later.
    #[schema(format = DateTime, nullable = false, required = false)]
    pub accepted_from: Option<String>,
    /// Accepted before.
    #[schema(format = DateTime, nullable = false, required = false)]
    pub accepted_until: Option<String>,
    /// Idempotency-Keys, or keys of batch items, of your own API key's namespace: found in this order.
    #[schema(min_items = 1, max_items = 1000, nullable = false, required = false)]
    pub keys: Option<Vec<String>>,
    /// Business keys, with their `class`: found in this order. Not beside `keys`.
    #[schema(min_items = 1, max_items = 1000, nullable = false, required = false)]
    pub unique: Option<Vec<String>>,
    /// The notification's state.
    #[schema(nullable = false, required = false)]
    pub state: Option<closed_sets::State>,
    /// It has a delivery on this channel.
    #[schema(nullable = false, required = false)]
    pub channel: Option<closed_sets::Channel>,
}

/// Reads the filters of a body into a query for the first page.
pub(super) fn read(api: &Api, caller: &Caller, object: &Object<'_, '_>, problems: &mut Problems) -> Query {
    let (owner, secret) = (caller.owner(), api.deps.intake.secret());
    let mut word = |name: &str, most: usize| object.text(name, line(most), problems);
    let (reference, class, group) = (word("reference", 255), word("class", 64), word("group", 255));
    let (template, template_version) = (word("template", 128), word("template_version", 128));
    let address_hash = word("address", 4096).map(|address| address::hash_by_form(secret, &address));
    let recipient = word("recipient", 255)
        .map(|name| NamedRecipient { hash: address::recipient_hash(secret, &owner, &name), name });
    let state = word("state", 32).map(|text| text.parse::<StateName>().ok());
    let channel = word("channel", 32).map(|text| text.parse::<ChannelKind>().ok());
    for (name, right, read) in
        [("state", states(), state.map(|it| it.is_some())), ("channel", channels(), channel.map(|it| it.is_some()))]
    {
        if read == Some(false) {
            problems.add(object.at(name), right);
        }
    }
    let ids = ids(caller, class.as_deref(), object, problems);
    let accepted = ["accepted_from", "accepted_until"].map(|name| object.instant(name, problems));
    if let [Some(from), Some(until)] = accepted
        && from >= until
    {
        problems.add(object.at("accepted_until"), TURNED);
    }
    Query {
        reference,
        state: state.flatten(),
        class,
        channel: channel.flatten(),
        group,
        address_hash,
        recipient,
        template,
        template_version,
        accepted_from: accepted[0],
        accepted_until: accepted[1],
        ids,
        ..Query::of(owner)
    }
}

/// The notifications that `keys` or `unique` name, each once.
fn ids(
    caller: &Caller,
    class: Option<&str>,
    object: &Object<'_, '_>,
    problems: &mut Problems,
) -> Option<Vec<NotificationId>> {
    if object.has("keys") && object.has("unique") {
        problems.add(object.at("unique"), "must not stand beside `keys`: one intent has the one or the other");
        return None;
    }
    if object.has("unique") && class.is_none() {
        problems.add(object.at("unique"), "needs its `class` beside it: with another class it is another intent");
    }
    let name = ["keys", "unique"].into_iter().find(|name| object.has(name))?;
    let items = object.list(name, MOST_IDS, problems);
    if items.is_empty() {
        problems.add(object.at(name), format!("must hold 1 to {MOST_IDS} of them"));
    }
    let mut ids = Vec::with_capacity(items.len());
    let mut seen = std::collections::HashSet::new();
    for (pointer, node) in items {
        let Some(key) = text(node, &pointer, line(255), problems) else { continue };
        if let Some(wrong) = wrong_key(&key).filter(|_| name == "keys") {
            problems.add(pointer, wrong);
            continue;
        }
        let business_key = class.filter(|_| name == "unique").map(|class| (class, key.as_str()));
        let id = identity(caller, &key, business_key);
        if seen.insert(id) {
            ids.push(id);
        }
    }
    Some(ids)
}

/// Where a body says to go on after.
pub(super) fn after(object: &Object<'_, '_>, query: &Query, problems: &mut Problems) -> Option<u64> {
    let after = position(&object.text("cursor", line(64), problems)?);
    let all = query.ids.as_ref().map_or(u64::MAX, |ids| ids.len() as u64);
    if after.is_none_or(|after| after > all) {
        problems.add(object.at("cursor"), "must be a `next_cursor` of this call with the same filters");
    }
    after
}

/// Reads those of a list's parameters.
pub(super) fn of_params(caller: &Caller, params: &mut Params) -> Query {
    let mut moment = |name: &str| {
        let wrong = instant::wrong(params.text(name).unwrap_or_default());
        params.parsed(name, wrong, instant::read)
    };
    let accepted = [moment("accepted_from"), moment("accepted_until")];
    if let [Some(from), Some(until)] = accepted {
        params.parsed("accepted_until", TURNED, |_| (from < until).then_some(()));
    }
    Query {
        reference: params.bounded("reference", 255),
        state: params.parsed("state", &states(), |text| text.parse::<StateName>().ok()),
        class: params.bounded("class", 64),
        channel: params.parsed("channel", &channels(), |text| text.parse::<ChannelKind>().ok()),
        group: params.bounded("group", 255),
        template: params.bounded("template", 128),
        template_version: params.bounded("template_version", 128),
        accepted_from: accepted[0],
        accepted_until: accepted[1],
        ..Query::of(caller.owner())
    }
}

const TURNED: &str = "must lie behind `accepted_from`";

fn states() -> String {
    format!("must be one of {}", StateName::ALL.iter().map(|one| one.name()).collect::<Vec<_>>().join(", "))
}

fn channels() -> String {
    format!("must be one of {}", ChannelKind::ALL.iter().map(|one| one.name()).collect::<Vec<_>>().join(", "))
}
