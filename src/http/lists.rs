//! Lists and search: newest first, by opaque cursors.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::Uri;
use belfry_domain::ChannelKind;
use belfry_domain::delivery::StateName;
use belfry_domain::notification::Record;

use super::api::{Api, Shared};
use super::auth::{Allowed, ToRead};
use super::body::{MOST_BODY, json};
use super::closed_sets;
use super::openapi::{BodyProblems, ListProblems};
use super::problem::Problem;
use super::query::{Params, cursor, position};
use super::schema::Search;
use super::view::{Detail, NotificationList, NotificationView};
use crate::intake::address;
use crate::intake::fields::{Object, Problems, line};
use crate::ports::deliveries::{NamedRecipient, Owner, Query};

/// Most notifications on one page.
const MOST_PAGE: u16 = 100;
const PAGE: u16 = 50;
pub const FILTERS: &[&str] = &["reference", "state", "class", "channel", "group", "cursor", "limit"];
pub const SEARCH: &[&str] =
    &["address", "recipient", "reference", "state", "class", "channel", "group", "cursor", "limit"];

/// List notifications
///
/// Newest first. All filters must hold. Addresses and recipients are searched by
/// `POST /v1/notifications/search`: they do not belong in URLs.
#[utoipa::path(
    get,
    path = "/v1/notifications",
    tag = "notifications",
    operation_id = "list",
    params(
        ("reference" = Option<String>, Query, min_length = 1, max_length = 255),
        ("state" = Option<closed_sets::State>, Query, description = "The notification's state."),
        ("class" = Option<String>, Query, min_length = 1, max_length = 64),
        ("channel" = Option<closed_sets::Channel>, Query, description = "It has a delivery on this channel."),
        ("group" = Option<String>, Query, min_length = 1, max_length = 255),
        ("cursor" = Option<String>, Query, min_length = 1, max_length = 64, description = "`next_cursor` of the page before."),
        ("limit" = Option<u16>, Query, minimum = 1, maximum = 100, description = "50 where it is left out.")
    ),
    responses((status = 200, description = "One page.", body = NotificationList), ListProblems),
    security(("key" = []))
)]
pub async fn list(
    State(api): State<Shared>,
    allowed: Allowed<ToRead>,
    uri: Uri,
) -> Result<Json<NotificationList>, Problem> {
    let mut params = Params::of(&uri, FILTERS);
    let query = Query {
        owner: allowed.caller.owner(),
        reference: params.bounded("reference", 255),
        state: params.parsed("state", &states(), |text| text.parse::<StateName>().ok()),
        class: params.bounded("class", 64),
        channel: params.parsed("channel", &channels(), |text| text.parse::<ChannelKind>().ok()),
        group: params.bounded("group", 255),
        address_hash: None,
        recipient: None,
        after: params.parsed("cursor", "must be a `next_cursor` of this list", position),
        limit: params
            .parsed("limit", "must be a number from 1 to 100", |text| {
                text.parse().ok().filter(|limit| (1..=MOST_PAGE).contains(limit))
            })
            .unwrap_or(PAGE),
    };
    params.end()?;
    page(&api, query).await
}

/// Search notifications
///
/// As the list, and by address and recipient, whose name may be an address.
#[utoipa::path(
    post,
    path = "/v1/notifications/search",
    tag = "notifications",
    operation_id = "search",
    request_body = Search,
    responses((status = 200, description = "One page.", body = NotificationList), BodyProblems),
    security(("key" = []))
)]
pub async fn search(
    State(api): State<Shared>,
    allowed: Allowed<ToRead>,
    request: Request,
) -> Result<Json<NotificationList>, Problem> {
    let read = api.json_body(request, MOST_BODY).await?;
    let node = json(&read.bytes)?;
    let mut problems = Problems::default();
    let object = Object::open(&node, "", SEARCH, &mut problems);
    let query = object.map(|object| asked(&api, allowed.caller.owner(), &object, &mut problems));
    match query {
        Some(query) if problems.is_empty() => page(&api, query).await,
        _ => Err(Problem::invalid(problems.all())),
    }
}

/// Reads the filters of a body.
pub(super) fn asked(api: &Api, owner: Owner, object: &Object<'_, '_>, problems: &mut Problems) -> Query {
    let mut word = |name: &str, most: usize| object.text(name, line(most), problems);
    let (reference, class, group) = (word("reference", 255), word("class", 64), word("group", 255));
    let address = word("address", 4096).map(|address| address::hash_by_form(api.deps.intake.secret(), &address));
    let named = word("recipient", 255)
        .map(|name| NamedRecipient { hash: address::recipient_hash(api.deps.intake.secret(), &owner, &name), name });
    let (state, channel, after) = (word("state", 32), word("channel", 32), word("cursor", 64));
    let mut parse = |name: &str, right: &str, found: Option<bool>| {
        if found == Some(false) {
            problems.add(object.at(name), right);
        }
    };
    let state = state.map(|text| text.parse::<StateName>().ok());
    let channel = channel.map(|text| text.parse::<ChannelKind>().ok());
    let after = after.map(|text| position(&text));
    parse("state", &states(), state.map(|it| it.is_some()));
    parse("channel", &channels(), channel.map(|it| it.is_some()));
    parse("cursor", "must be a `next_cursor` of this list", after.map(|it| it.is_some()));
    let limit = object.integer("limit", problems);
    let fits = limit.and_then(|limit| u16::try_from(limit).ok()).filter(|limit| (1..=MOST_PAGE).contains(limit));
    if limit.is_some() && fits.is_none() {
        problems.add(object.at("limit"), "must be a number from 1 to 100");
    }
    Query {
        owner,
        reference,
        state: state.flatten(),
        class,
        channel: channel.flatten(),
        group,
        address_hash: address,
        recipient: named,
        after: after.flatten(),
        limit: fits.unwrap_or(PAGE),
    }
}

fn states() -> String {
    format!("must be one of {}", StateName::ALL.iter().map(|one| one.name()).collect::<Vec<_>>().join(", "))
}

fn channels() -> String {
    format!("must be one of {}", ChannelKind::ALL.iter().map(|one| one.name()).collect::<Vec<_>>().join(", "))
}

async fn page(api: &Api, query: Query) -> Result<Json<NotificationList>, Problem> {
    let searched = query.address_hash.clone();
    let page = api.stored("search", api.deps.deliveries.search(query)).await?;
    let around = api.around().await;
    let shown = |record: &Record| {
        let mut view = NotificationView::new(record, Detail::List, &around);
        if let Some(hash) = &searched {
            for (shown, delivery) in view.deliveries.iter_mut().zip(&record.deliveries) {
                shown.matches = Some(delivery.address_hash == *hash);
            }
        }
        view
    };
    Ok(Json(NotificationList {
        data: page.records.iter().map(shown).collect(),
        has_more: page.next.is_some(),
        next_cursor: page.next.map(cursor),
    }))
}
