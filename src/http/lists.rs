//! Lists and search: newest first, by opaque cursors.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::Uri;
use belfry_domain::notification::Record;

use super::api::{Api, Shared};
use super::auth::{Allowed, ToRead};
use super::body::{MOST_BODY, json};
use super::closed_sets;
use super::filters::{self, Search};
use super::openapi::{BodyProblems, ListProblems};
use super::problem::Problem;
use super::query::{Params, cursor, position};
use super::view::{Detail, NotificationList, NotificationView};
use crate::intake::caller::Caller;
use crate::intake::fields::{Object, Problems};
use crate::ports::search::Query;

/// Most notifications on one page.
const MOST_PAGE: u16 = 100;
const PAGE: u16 = 50;
pub const FILTERS: &[&str] = &[
    "reference",
    "state",
    "class",
    "channel",
    "group",
    "template",
    "template_version",
    "accepted_from",
    "accepted_until",
    "cursor",
    "limit",
];
pub const SEARCH: &[&str] = &[
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
    "cursor",
    "limit",
];

/// List notifications
///
/// Newest first. All filters must hold. Addresses, recipients and keys are searched by
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
        ("template" = Option<String>, Query, min_length = 1, max_length = 128),
        ("template_version" = Option<String>, Query, min_length = 1, max_length = 128),
        ("accepted_from" = Option<String>, Query, format = DateTime, description = "Accepted then or later."),
        ("accepted_until" = Option<String>, Query, format = DateTime, description = "Accepted before."),
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
        after: params.parsed("cursor", "must be a `next_cursor` of this list", position),
        limit: params
            .parsed("limit", "must be a number from 1 to 100", |text| {
                text.parse().ok().filter(|limit| (1..=MOST_PAGE).contains(limit))
            })
            .unwrap_or(PAGE),
        ..filters::of_params(&allowed.caller, &mut params)
    };
    params.end()?;
    page(&api, query).await
}

/// Search notifications
///
/// As the list, and by address, recipient (whose name may be an address) and keys.
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
    let query = object.map(|object| asked(&api, &allowed.caller, &object, &mut problems));
    match query {
        Some(query) if problems.is_empty() => page(&api, query).await,
        _ => Err(Problem::invalid(problems.all())),
    }
}

fn asked(api: &Api, caller: &Caller, object: &Object<'_, '_>, problems: &mut Problems) -> Query {
    let query = filters::read(api, caller, object, problems);
    let after = filters::after(object, &query, problems);
    let limit = object.integer("limit", problems);
    let fits = limit.and_then(|limit| u16::try_from(limit).ok()).filter(|limit| (1..=MOST_PAGE).contains(limit));
    if limit.is_some() && fits.is_none() {
        problems.add(object.at("limit"), "must be a number from 1 to 100");
    }
    Query { after, limit: fits.unwrap_or(PAGE), ..query }
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
