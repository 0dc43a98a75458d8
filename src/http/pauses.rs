//! Pausing and resuming: what waits because somebody said so, with the number of deliveries behind it.

use axum::Json;
use axum::extract::{FromRequestParts, Path, Request, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use belfry_domain::pause::Pause;
use serde::Serialize;
use utoipa::ToSchema;

use super::api::{Api, Shared};
use super::auth::{Allowed, ToAdmin};
use super::body::{MOST_BODY, json};
use super::closed_sets;
use super::keys::LIVE;
use super::openapi::{ListProblems, NamedProblems, PauseProblems};
use super::problem::{Code, Problem};
use crate::intake::fields::FieldProblem;
use crate::intake::instant::rfc3339;
use crate::intake::pauses::{Counted, too_many};
use crate::ports::admin::ApiKey;
use crate::ports::pauses::{KeptPause, PauseId};

/// What is to wait.
#[derive(ToSchema)]
pub struct NewPause {
    #[schema(value_type = closed_sets::PausedWhat)]
    pub what: String,
    /// Which of them: a channel, a configured provider or class, a template, a group. Left out where `what` is `all`.
    #[schema(min_length = 1, max_length = 255, nullable = false, required = false, examples("marketing"))]
    pub name: Option<String>,
    /// Only of this tenant. A key that is not an operator's pauses only its own tenant's, whether it says so or not.
    #[schema(min_length = 1, max_length = 64, pattern = "^[a-z0-9_-]+$", nullable = false, required = false)]
    pub tenant: Option<String>,
    /// Over by itself from then on; within a year. Left out: it stands until it is lifted.
    #[schema(format = DateTime, nullable = false, required = false)]
    pub until: Option<String>,
    /// Holds the classes as well that pauses let through (`pause_exempt`: login codes, security alerts).
    #[schema(nullable = false, required = false)]
    pub forced: Option<bool>,
    /// For people.
    #[schema(min_length = 1, max_length = 200, nullable = false, required = false)]
    pub why: Option<String>,
}

/// A pause as it is kept.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Pause)]
pub struct PauseView {
    /// Made from what is paused and the tenant: the same again has the same.
    #[schema(pattern = "^pau_[0-9a-f]{24}$")]
    pub id: String,
    #[schema(value_type = closed_sets::PausedWhat)]
    pub what: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub name: Option<String>,
    /// Only what is of this tenant is held; left out: everybody's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub tenant: Option<String>,
    #[schema(format = DateTime)]
    pub since: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, nullable = false)]
    pub until: Option<String>,
    pub forced: bool,
    /// Classes that go out all the same, because it is not forced.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub lets_through: Vec<String>,
    /// Public name of the key that said so last.
    pub by: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub why: Option<String>,
}

/// A pause and what waits behind it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = HoldingPause)]
pub struct HoldingView {
    #[serde(flatten)]
    pub pause: PauseView,
    /// Deliveries that are due and that it holds. One that several pauses hold is counted with each.
    pub held: u64,
    /// Only the first 10,000 of all waiting deliveries were looked at, or those that could be within a second: there may
    /// be more.
    pub held_at_least: bool,
}

/// All pauses that the key reaches, the oldest first.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Pauses)]
pub struct PauseList {
    #[schema(max_items = 256)]
    pub data: Vec<HoldingView>,
}

impl PauseView {
    fn new(api: &Api, it: KeptPause) -> Self {
        let (id, lets_through) = (it.id(), api.deps.pausing.lets_through(&it.pause));
        let Pause { paused, tenant, since, until, forced } = it.pause;
        Self {
            id: id.to_string(),
            what: paused.what(),
            name: paused.name().map(str::to_owned),
            tenant,
            since: rfc3339(since),
            until: until.map(rfc3339),
            forced,
            lets_through,
            by: it.by,
            why: it.why,
        }
    }
}

/// A pause from the path.
pub struct Named(PauseId);

impl FromRequestParts<Shared> for Named {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Shared) -> Result<Self, Problem> {
        let id = Path::<String>::from_request_parts(parts, api).await.ok().and_then(|Path(id)| id.parse().ok());
        let wrong = || FieldProblem::new("/path/id", "must be a pause's id: pau_ and 24 hex digits");
        id.map(Self).ok_or_else(|| Problem::invalid(vec![wrong()]))
    }
}

/// Whose messages a key may pause: its tenant's, or, an operator's, everybody's.
fn own(key: &ApiKey) -> Result<Option<&str>, Problem> {
    if key.operator {
        return Ok(None);
    }
    if key.environment == LIVE {
        return Ok(Some(&key.tenant));
    }
    let detail = "A pause is of all environments: it takes a `live` key of the tenant, or an operator's key.";
    Err(Problem::new(Code::Forbidden, detail))
}

/// Pause
///
/// What it names is accepted as before and waits, from the answer on at this node and within a second or two at others;
/// calls that are under way are not broken off. Safe to repeat: of the same `what`, `name` and `tenant` there is one
/// pause, and the rest is as the latest request says. Classes that are `pause_exempt` go out all the same unless it is
/// `forced`; to pause one of them by name without is refused. Takes a `live` key of the tenant, whose messages alone it
/// holds, or an operator's key.
#[utoipa::path(
    post,
    path = "/v1/pauses",
    tag = "pauses",
    operation_id = "pause",
    request_body = NewPause,
    responses(
        (status = 200, description = "It was paused before.", body = PauseView),
        (status = 201, description = "It is paused.", body = PauseView),
        PauseProblems
    ),
    security(("key" = []))
)]
pub async fn put(
    State(api): State<Shared>,
    allowed: Allowed<ToAdmin>,
    request: Request,
) -> Result<(StatusCode, Json<PauseView>), Problem> {
    let own = own(&allowed.key)?;
    let read = api.json_body(request, MOST_BODY).await?;
    let new = api.deps.pausing.read(&json(&read.bytes)?, own, &allowed.key.id).map_err(Problem::invalid)?;
    let put = api.stored("pause", api.deps.pausing.put(new, own)).await?;
    let put = put.ok_or_else(|| Problem::new(Code::TooManyPauses, too_many()))?;
    let status = if put.is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(PauseView::new(&api, put.now))))
}

/// List pauses
///
/// Those that the key reaches and that stand now, with the number of deliveries behind each.
#[utoipa::path(
    get,
    path = "/v1/pauses",
    tag = "pauses",
    operation_id = "pauses",
    responses((status = 200, description = "All of them.", body = PauseList), ListProblems),
    security(("key" = []))
)]
pub async fn list(State(api): State<Shared>, allowed: Allowed<ToAdmin>) -> Result<Json<PauseList>, Problem> {
    let found = api.stored("pauses", api.deps.pausing.listed(own(&allowed.key)?)).await?;
    let one = |Counted { kept, held, at_least }| HoldingView {
        pause: PauseView::new(&api, kept),
        held,
        held_at_least: at_least,
    };
    Ok(Json(PauseList { data: found.into_iter().map(one).collect() }))
}

/// Resume
///
/// What waits in a queue that nobody was asked for goes on at once; what had been looked at and put off goes on when it
/// asks again, within 5 minutes, or within as long as the pause had lasted where that is shorter. Safe to repeat.
#[utoipa::path(
    delete,
    path = "/v1/pauses/{id}",
    tag = "pauses",
    operation_id = "resume",
    params(("id" = String, Path, pattern = "^pau_[0-9a-f]{24}$")),
    responses((status = 204, description = "There is none."), NamedProblems),
    security(("key" = []))
)]
pub async fn remove(
    State(api): State<Shared>,
    allowed: Allowed<ToAdmin>,
    Named(id): Named,
) -> Result<StatusCode, Problem> {
    let own = own(&allowed.key)?;
    api.stored("resume", api.deps.pausing.lift(id, own, &allowed.key.id)).await?;
    Ok(StatusCode::NO_CONTENT)
}
