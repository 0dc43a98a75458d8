//! Addresses that nothing of a kind may go to. An address stands in bodies only, and no answer shows one whole.

use axum::Json;
use axum::extract::{FromRequestParts, Path, Request, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, Uri};
use belfry_domain::ChannelKind;
use belfry_domain::suppression::SuppressionKind;
use serde::Serialize;
use utoipa::ToSchema;

use super::api::Shared;
use super::auth::{Allowed, ToSee, ToSend};
use super::body::{MOST_BODY, json};
use super::closed_sets;
use super::openapi::{BodyProblems, ListProblems, NamedProblems, SuppressionProblems};
use super::problem::{Code, Problem};
use super::query::Params;
use crate::intake::fields::FieldProblem;
use crate::intake::instant::rfc3339;
use crate::intake::suppressions::{read_whom, too_many};
use crate::ports::deliveries::Owner;
use crate::ports::suppressions::{MOST_LISTED, Suppressed, SuppressionId, is_place};

pub const FILTERS: &[&str] = &["cursor", "limit"];
/// Suppressions on a page where nothing is said.
const PAGE: u16 = 100;

/// An address that nothing, or nothing of a category, is to go to.
#[derive(ToSchema)]
pub struct NewSuppression {
    #[schema(value_type = closed_sets::SuppressedChannel)]
    pub channel: ChannelKind,
    /// An email address without a name, a number in E.164 form, a webhook's address, or what a chat goes by.
    #[schema(min_length = 1, max_length = 2048, examples("ann@example.com"))]
    pub address: String,
    /// `manual` where it is left out. `manual` and `hard_bounce` hold back everything; `complaint` and `unsubscribe` all
    /// but the classes that cannot be turned off.
    #[schema(value_type = closed_sets::SuppressionAsked, required = false, nullable = false)]
    pub kind: SuppressionKind,
    /// A class: only messages of that are held back. Not beside `hard_bounce`.
    #[schema(min_length = 1, max_length = 64, nullable = false, required = false, examples("marketing"))]
    pub category: Option<String>,
    /// Over by itself from then on.
    #[schema(format = DateTime, nullable = false, required = false)]
    pub until: Option<String>,
    /// For people.
    #[schema(min_length = 1, max_length = 255, nullable = false, required = false)]
    pub note: Option<String>,
}

/// Whom to look up.
#[derive(ToSchema)]
pub struct SuppressionQuery {
    #[schema(value_type = closed_sets::SuppressedChannel)]
    pub channel: ChannelKind,
    #[schema(min_length = 1, max_length = 2048, examples("ann@example.com"))]
    pub address: String,
}

/// A suppression as it is kept.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Suppression)]
pub struct SuppressionView {
    /// Made from the address, kind and category: the same again has the same.
    #[schema(pattern = "^sup_[0-9a-f]{48}$")]
    pub id: String,
    #[schema(value_type = closed_sets::Channel)]
    pub channel: ChannelKind,
    /// Masked.
    pub address: String,
    #[schema(value_type = closed_sets::SuppressionKind)]
    pub kind: SuppressionKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub category: Option<String>,
    /// Only from this sending number.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub sender: Option<String>,
    #[schema(format = DateTime)]
    pub since: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, nullable = false)]
    pub until: Option<String>,
    /// Who said so last: the public name of an API key, the id of the delivery that bounced, or `page`: the recipient.
    pub origin: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub note: Option<String>,
}

/// Suppressions, newest first.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Suppressions)]
pub struct SuppressionPage {
    pub data: Vec<SuppressionView>,
    pub has_more: bool,
    /// To be sent as `cursor`, to go on; there while `has_more`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub next_cursor: Option<String>,
}

/// What is in force about one address.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SuppressionsFound)]
pub struct SuppressionsOf {
    /// Oldest first; empty where nothing is held back.
    #[schema(max_items = 40)]
    pub data: Vec<SuppressionView>,
}

impl SuppressionView {
    fn new(owner: &Owner, it: Suppressed) -> Self {
        Self {
            id: it.id(owner).to_string(),
            channel: it.channel,
            address: it.address_mask,
            kind: it.kind,
            category: it.category,
            sender: it.sender,
            since: rfc3339(it.since),
            until: it.until.map(rfc3339),
            origin: it.origin,
            note: it.note,
        }
    }
}

/// A suppression from the path.
pub struct Named(SuppressionId);

impl FromRequestParts<Shared> for Named {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Shared) -> Result<Self, Problem> {
        let id = Path::<String>::from_request_parts(parts, api).await.ok().and_then(|Path(id)| id.parse().ok());
        let wrong = || FieldProblem::new("/path/id", "must be a suppression's id: sup_ and 48 hex digits");
        id.map(Self).ok_or_else(|| Problem::invalid(vec![wrong()]))
    }
}

/// Suppress an address
///
/// What is accepted for it from now on ends `suppressed` at once, what was accepted before at its next turn. Safe to
/// repeat: of the same address, kind and category there is one suppression, and `until` and `note` are those of the
/// latest request.
#[utoipa::path(
    post,
    path = "/v1/suppressions",
    tag = "suppressions",
    operation_id = "suppress",
    request_body = NewSuppression,
    responses(
        (status = 200, description = "It was suppressed before.", body = SuppressionView),
        (status = 201, description = "It is suppressed.", body = SuppressionView),
        SuppressionProblems
    ),
    security(("key" = []))
)]
pub async fn put(
    State(api): State<Shared>,
    allowed: Allowed<ToSend>,
    request: Request,
) -> Result<(StatusCode, Json<SuppressionView>), Problem> {
    let read = api.json_body(request, MOST_BODY).await?;
    let new = api.deps.blocklist.read(&json(&read.bytes)?).map_err(Problem::invalid)?;
    let owner = allowed.caller.owner();
    let put = api.stored("suppress", api.deps.blocklist.put(&owner, &allowed.key.id, new)).await?;
    let put = put.ok_or_else(|| Problem::new(Code::TooManySuppressions, too_many()))?;
    let status = if put.is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(SuppressionView::new(&owner, put.now))))
}

/// Check an address
///
/// What holds back messages to it now. Takes a key with `read` or with `send`.
#[utoipa::path(
    post,
    path = "/v1/suppressions/check",
    tag = "suppressions",
    operation_id = "check_suppressions",
    request_body = SuppressionQuery,
    responses((status = 200, description = "What is in force.", body = SuppressionsOf), BodyProblems),
    security(("key" = []))
)]
pub async fn check(
    State(api): State<Shared>,
    allowed: Allowed<ToSee>,
    request: Request,
) -> Result<Json<SuppressionsOf>, Problem> {
    let read = api.json_body(request, MOST_BODY).await?;
    let whom = read_whom(&json(&read.bytes)?).map_err(Problem::invalid)?;
    let owner = allowed.caller.owner();
    let found = api.stored("suppressions", api.deps.blocklist.about(&owner, &whom)).await?;
    Ok(Json(SuppressionsOf { data: found.into_iter().map(|one| SuppressionView::new(&owner, one)).collect() }))
}

/// List suppressions
///
/// Newest first, with those that are over. Takes a key with `read` or with `send`.
#[utoipa::path(
    get,
    path = "/v1/suppressions",
    tag = "suppressions",
    operation_id = "suppressions",
    params(
        ("cursor" = Option<String>, Query, min_length = 1, max_length = 128, description = "`next_cursor` of the page before."),
        ("limit" = Option<u16>, Query, minimum = 1, maximum = 500, description = "100 where it is left out.")
    ),
    responses((status = 200, description = "One page.", body = SuppressionPage), ListProblems),
    security(("key" = []))
)]
pub async fn list(
    State(api): State<Shared>,
    allowed: Allowed<ToSee>,
    uri: Uri,
) -> Result<Json<SuppressionPage>, Problem> {
    let mut params = Params::of(&uri, FILTERS);
    let right = "must be a `next_cursor` of this list";
    let after = params.parsed("cursor", right, |text| is_place(text).then(|| text.to_owned()));
    let limit = params
        .parsed("limit", "must be a number from 1 to 500", |text| {
            text.parse().ok().filter(|limit| (1..=MOST_LISTED).contains(limit))
        })
        .unwrap_or(PAGE);
    params.end()?;
    let owner = allowed.caller.owner();
    let page = api.stored("suppressions", api.deps.blocklist.listed(&owner, after.as_deref(), limit)).await?;
    Ok(Json(SuppressionPage {
        data: page.entries.into_iter().map(|one| SuppressionView::new(&owner, one)).collect(),
        has_more: page.next.is_some(),
        next_cursor: page.next,
    }))
}

/// Lift a suppression
///
/// Of whatever kind. What it ended stays ended. Safe to repeat.
#[utoipa::path(
    delete,
    path = "/v1/suppressions/{id}",
    tag = "suppressions",
    operation_id = "lift_suppression",
    params(("id" = String, Path, pattern = "^sup_[0-9a-f]{48}$")),
    responses((status = 204, description = "There is none."), NamedProblems),
    security(("key" = []))
)]
pub async fn remove(
    State(api): State<Shared>,
    allowed: Allowed<ToSend>,
    Named(id): Named,
) -> Result<StatusCode, Problem> {
    api.stored("lift", api.deps.blocklist.lift(&allowed.caller.owner(), id)).await?;
    Ok(StatusCode::NO_CONTENT)
}
