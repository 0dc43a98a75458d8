//! Schedules: what is sent again and again, with its next runs and what became of the last.

mod view;

use std::collections::BTreeSet;

use axum::Json;
use axum::extract::{FromRequestParts, Path, Request, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, Uri};

use super::api::{Api, Shared};
use super::auth::{Allowed, ToSee, ToSend};
use super::body::{MOST_BODY, json};
use super::openapi::{ListProblems, NamedProblems, ScheduleProblems, StoredProblems};
use super::problem::{Code, Problem};
use super::query::Params;
use crate::intake::caller::Caller;
use crate::intake::fields::FieldProblem;
use crate::intake::schedules::{SchedulePut, Wanted, too_many};
use crate::intake::stored::{Asker, Stored, named};
use crate::ports::schedules::{MOST_LISTED, NAME, Schedule, is_name};

pub use view::{NewSchedule, ScheduleList, ScheduleView};

/// Query parameters of the list,
pub const PAGES: &[&str] = &["cursor", "limit"];
/// and of a put.
pub const PUT: &[&str] = &["dry_run"];

/// A name from the path.
pub struct ScheduleName(String);

impl FromRequestParts<Shared> for ScheduleName {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Shared) -> Result<Self, Problem> {
        let name = Path::<String>::from_request_parts(parts, api).await.ok().map(|Path(name)| name);
        let name = name.filter(|name| is_name(name)).map(Self);
        name.ok_or_else(|| Problem::invalid(vec![FieldProblem::new("/path/name", NAME)]))
    }
}

async fn read_wanted(api: &Api, caller: &Caller, name: &str, request: Request) -> Result<Wanted, Problem> {
    let read = api.json_body(request, MOST_BODY).await?;
    let names = json(&read.bytes)?.member("notification").and_then(named).into_iter().collect::<BTreeSet<_>>();
    let stored = match names.is_empty() {
        true => Stored::default(),
        false => api.stored("recipient", api.deps.intake.stored(caller, names)).await?,
    };
    let asker = Asker { caller, stored: &stored };
    api.deps.schedules.read(asker, name, &json(&read.bytes)?).map_err(Problem::invalid)
}

/// Keep a schedule
///
/// In place of the one of that name; the same again changes nothing. From its next run on it sends the notification, each
/// time under an id of its own, however many nodes there are. The notification is checked as it would be when it is sent,
/// and refused now where it would be refused then. With `dry_run=true` it is checked and its next runs are told, and
/// nothing is kept.
#[utoipa::path(
    put,
    path = "/v1/schedules/{name}",
    tag = "schedules",
    operation_id = "put_schedule",
    params(
        ("name" = String, Path, pattern = "^[a-z0-9][a-z0-9._-]{0,63}$", description = "Your own. It is told in logs."),
        ("dry_run" = Option<bool>, Query, description = "Only check it, and tell its next runs.")
    ),
    request_body = NewSchedule,
    responses(
        (status = 200, description = "It is kept, in place of another or as it was; or, of a dry run, would be.", body = ScheduleView),
        (status = 201, description = "It is kept; there was none.", body = ScheduleView),
        ScheduleProblems
    ),
    security(("key" = []))
)]
pub async fn put(
    State(api): State<Shared>,
    allowed: Allowed<ToSend>,
    ScheduleName(name): ScheduleName,
    uri: Uri,
    request: Request,
) -> Result<(StatusCode, Json<ScheduleView>), Problem> {
    let mut params = Params::of(&uri, PUT);
    let dry_run = params.parsed("dry_run", "must be true or false", |text| text.parse().ok()).unwrap_or(false);
    params.end()?;
    let (desk, caller) = (&api.deps.schedules, &allowed.caller);
    let wanted = read_wanted(&api, caller, &name, request).await?;
    if dry_run {
        let tried = api.stored("schedule", desk.tried(caller, &name, &wanted)).await?;
        return Ok((StatusCode::OK, Json(ScheduleView::new(tried))));
    }
    match api.stored("write_schedule", desk.put(caller, &name, &wanted)).await? {
        SchedulePut::TooMany => Err(Problem::new(Code::TooManySchedules, too_many())),
        SchedulePut::Kept(put) => {
            let status = if put.is_new { StatusCode::CREATED } else { StatusCode::OK };
            Ok((status, Json(ScheduleView::new(put.now))))
        }
    }
}

/// See a schedule
///
/// With its next runs and what became of the last. Takes a key with `read` or with `send`.
#[utoipa::path(
    get,
    path = "/v1/schedules/{name}",
    tag = "schedules",
    operation_id = "schedule",
    params(("name" = String, Path, pattern = "^[a-z0-9][a-z0-9._-]{0,63}$")),
    responses((status = 200, description = "As it stands.", body = ScheduleView), StoredProblems),
    security(("key" = []))
)]
pub async fn read(
    State(api): State<Shared>,
    allowed: Allowed<ToSee>,
    ScheduleName(name): ScheduleName,
) -> Result<Json<ScheduleView>, Problem> {
    shown(api.stored("schedule", api.deps.schedules.of(&allowed.caller.owner(), &name)).await?)
}

fn shown(found: Option<Schedule>) -> Result<Json<ScheduleView>, Problem> {
    found.map(|it| Json(ScheduleView::new(it))).ok_or_else(Problem::not_found)
}

/// List schedules
///
/// In the order of their names. Takes a key with `read` or with `send`.
#[utoipa::path(
    get,
    path = "/v1/schedules",
    tag = "schedules",
    operation_id = "schedules",
    params(
        ("cursor" = Option<String>, Query, min_length = 1, max_length = 64, description = "`next_cursor` of the page before."),
        ("limit" = Option<u16>, Query, minimum = 1, maximum = 100, description = "100 where it is left out.")
    ),
    responses((status = 200, description = "One page.", body = ScheduleList), ListProblems),
    security(("key" = []))
)]
pub async fn list(State(api): State<Shared>, allowed: Allowed<ToSee>, uri: Uri) -> Result<Json<ScheduleList>, Problem> {
    let mut params = Params::of(&uri, PAGES);
    let right = "must be a `next_cursor` of this list";
    let after = params.parsed("cursor", right, |text| is_name(text).then(|| text.to_owned()));
    let fits = |text: &str| text.parse().ok().filter(|limit| (1..=MOST_LISTED).contains(limit));
    let limit = params.parsed("limit", "must be a number from 1 to 100", fits).unwrap_or(MOST_LISTED);
    params.end()?;
    let owner = allowed.caller.owner();
    let page = api.stored("schedules", api.deps.schedules.listed(&owner, after.as_deref(), limit)).await?;
    Ok(Json(ScheduleList {
        data: page.schedules.into_iter().map(ScheduleView::new).collect(),
        has_more: page.next.is_some(),
        next_cursor: page.next,
    }))
}

/// Pause a schedule
///
/// From the answer on no run of it is sent. What was accepted before goes on; a run whose time had come in that moment may
/// have been accepted, and is cancelled where it has not gone out. Safe to repeat.
#[utoipa::path(
    post,
    path = "/v1/schedules/{name}/pause",
    tag = "schedules",
    operation_id = "pause_schedule",
    params(("name" = String, Path, pattern = "^[a-z0-9][a-z0-9._-]{0,63}$")),
    responses((status = 200, description = "It is paused.", body = ScheduleView), StoredProblems),
    security(("key" = []))
)]
pub async fn pause(
    State(api): State<Shared>,
    allowed: Allowed<ToSend>,
    ScheduleName(name): ScheduleName,
) -> Result<Json<ScheduleView>, Problem> {
    shown(api.stored("write_schedule", api.deps.schedules.pause(&allowed.caller, &name)).await?)
}

/// Resume a schedule
///
/// It goes on with its next run: what fell into the pause was not missed. Safe to repeat.
#[utoipa::path(
    post,
    path = "/v1/schedules/{name}/resume",
    tag = "schedules",
    operation_id = "resume_schedule",
    params(("name" = String, Path, pattern = "^[a-z0-9][a-z0-9._-]{0,63}$")),
    responses((status = 200, description = "It is not paused.", body = ScheduleView), StoredProblems),
    security(("key" = []))
)]
pub async fn resume(
    State(api): State<Shared>,
    allowed: Allowed<ToSend>,
    ScheduleName(name): ScheduleName,
) -> Result<Json<ScheduleView>, Problem> {
    shown(api.stored("write_schedule", api.deps.schedules.resume(&allowed.caller, &name)).await?)
}

/// Remove a schedule
///
/// From the answer on no run of it is sent; what was accepted before goes on, as after a pause. Safe to repeat.
#[utoipa::path(
    delete,
    path = "/v1/schedules/{name}",
    tag = "schedules",
    operation_id = "remove_schedule",
    params(("name" = String, Path, pattern = "^[a-z0-9][a-z0-9._-]{0,63}$")),
    responses((status = 204, description = "There is none."), NamedProblems),
    security(("key" = []))
)]
pub async fn remove(
    State(api): State<Shared>,
    allowed: Allowed<ToSend>,
    ScheduleName(name): ScheduleName,
) -> Result<StatusCode, Problem> {
    api.stored("write_schedule", api.deps.schedules.remove(&allowed.caller, &name)).await?;
    Ok(StatusCode::NO_CONTENT)
}
