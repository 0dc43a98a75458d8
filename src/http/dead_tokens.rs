//! What providers said of device tokens.

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use belfry_domain::device::TokenFault;
use belfry_domain::{ChannelKind, UnixMs};
use serde::Serialize;
use utoipa::ToSchema;

use super::api::Shared;
use super::auth::{Allowed, ToRead};
use super::closed_sets;
use super::openapi::ListProblems;
use super::problem::Problem;
use super::query::Params;
use super::schema;
use crate::intake::instant::{self, rfc3339};
use crate::ports::recipients::{DeadToken, MOST_DEAD};

pub const FILTERS: &[&str] = &["since", "cursor", "limit"];
/// Dead tokens on a page where nothing is said.
const PAGE: u16 = 100;
const MOST_CURSOR: usize = 128;

/// Tokens that providers refused, oldest first.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DeadTokens)]
pub struct DeadView {
    pub data: Vec<DeadTokenView>,
    pub has_more: bool,
    /// To be sent as `cursor`, to go on; there while `has_more`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub next_cursor: Option<String>,
}

/// What a provider said of a token.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DeadToken)]
pub struct DeadTokenView {
    #[schema(value_type = schema::DeviceKind)]
    pub kind: ChannelKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub app: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub environment: Option<String>,
    /// Where it was a stored device.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub recipient: Option<String>,
    /// Where it was a stored device.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub device: Option<String>,
    /// SHA-256 of the token, of a subscription that of its `endpoint`: to find it among your own.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    pub token_sha256: String,
    #[schema(value_type = closed_sets::TokenFault)]
    pub fault: TokenFault,
    /// Since when, where the provider said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, nullable = false)]
    pub since: Option<String>,
    #[schema(format = DateTime)]
    pub heard_at: String,
    /// The one that was being sent.
    #[schema(pattern = "^ntf_[0-9a-f]{24}$")]
    pub notification: String,
    #[schema(pattern = "^dlv_[0-9a-f]{24}$")]
    pub delivery: String,
}

impl DeadTokenView {
    fn new(it: DeadToken) -> Self {
        Self {
            kind: it.kind,
            app: it.app,
            environment: it.environment,
            recipient: it.recipient,
            device: it.device,
            token_sha256: it.token_sha256,
            fault: it.fault,
            since: it.since.map(rfc3339),
            heard_at: rfc3339(it.heard_at),
            notification: it.notification.to_string(),
            delivery: it.delivery.to_string(),
        }
    }
}

/// List dead tokens
///
/// What providers said of device tokens, whether they were stored here or stood in a request, oldest first; each
/// stays for 30 days. For whoever keeps tokens elsewhere: read it now and then, from the latest `heard_at` on.
#[utoipa::path(
    get,
    path = "/v1/devices/dead",
    tag = "recipients",
    operation_id = "dead_tokens",
    params(
        ("since" = Option<String>, Query, format = DateTime, description = "Only what was heard at or after this time."),
        ("cursor" = Option<String>, Query, min_length = 1, max_length = 128, description = "`next_cursor` of the page before."),
        ("limit" = Option<u16>, Query, minimum = 1, maximum = 500, description = "100 where it is left out.")
    ),
    responses((status = 200, description = "One page.", body = DeadView), ListProblems),
    security(("key" = []))
)]
pub async fn list(State(api): State<Shared>, allowed: Allowed<ToRead>, uri: Uri) -> Result<Json<DeadView>, Problem> {
    let mut params = Params::of(&uri, FILTERS);
    let right = "must be an RFC 3339 date-time with its offset, such as 2026-12-24T18:00:00Z";
    let since = params.parsed("since", right, instant::read).unwrap_or(UnixMs(0));
    let after = params.bounded("cursor", MOST_CURSOR);
    let limit = params
        .parsed("limit", "must be a number from 1 to 500", |text| {
            text.parse().ok().filter(|limit| (1..=MOST_DEAD).contains(limit))
        })
        .unwrap_or(PAGE);
    params.end()?;
    let owner = allowed.caller.owner();
    let page = api.stored("dead", api.deps.registrar.dead(&owner, since, after.as_deref(), limit)).await?;
    Ok(Json(DeadView {
        data: page.tokens.into_iter().map(DeadTokenView::new).collect(),
        has_more: page.next.is_some(),
        next_cursor: page.next,
    }))
}
