//! What people do to deliveries: redrive, send again, resolve.

use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use belfry_domain::delivery::StateName;
use belfry_domain::{Asked, DeliveryId};

use super::api::Shared;
use super::auth::{Allowed, ToAdmin};
use super::body::{MOST_BODY, json};
use super::headers::idempotency_key;
use super::notifications::{Id, mark_replayed};
use super::openapi::ActProblems;
use super::problem::{Code, Problem};
use super::schema::{AfterSend, KeyHeader, Resolve};
use super::view::{DeliveryView, Detail};
use crate::intake::actions::Acted;
use crate::intake::caller::Caller;
use crate::intake::fields::{FieldProblem, Object, Problems, line};

/// Redrive a delivery
///
/// Puts a failed or parked delivery back, under the same send: nothing was accepted. A repeat under
/// the same key does nothing and answers with the delivery as it stands then; another request under
/// the same key is refused.
#[utoipa::path(
    post,
    path = "/v1/deliveries/{id}/redrive",
    tag = "deliveries",
    operation_id = "redrive",
    params(
        ("id" = String, Path, description = "`dlv_…`"),
        KeyHeader
    ),
    request_body = AfterSend,
    responses((status = 200, description = "It waits for a worker again.", body = DeliveryView, headers(
        ("Idempotency-Replayed" = Option<String>, description = "`true` where this is a repeat; the body is the delivery as it stands now.")
    )), ActProblems),
    security(("key" = []))
)]
pub async fn redrive(
    State(api): State<Shared>,
    allowed: Allowed<ToAdmin>,
    Id(id): Id<DeliveryId>,
    request: Request,
) -> Result<Response, Problem> {
    let key = idempotency_key(request.headers())?;
    let after_send = after_send(&api, request).await?;
    act(&api, &allowed.caller, id, &key, Asked::Redrive { after_send }).await
}

/// Send a delivery again
///
/// Opens the next send: another message, under another key, whatever became of the one before.
/// Repeats are recognised as for a redrive.
#[utoipa::path(
    post,
    path = "/v1/deliveries/{id}/send-again",
    tag = "deliveries",
    operation_id = "send_again",
    params(
        ("id" = String, Path, description = "`dlv_…`"),
        KeyHeader
    ),
    request_body = AfterSend,
    responses((status = 200, description = "The next send waits for a worker.", body = DeliveryView, headers(
        ("Idempotency-Replayed" = Option<String>, description = "`true` where this is a repeat; the body is the delivery as it stands now.")
    )), ActProblems),
    security(("key" = []))
)]
pub async fn send_again(
    State(api): State<Shared>,
    allowed: Allowed<ToAdmin>,
    Id(id): Id<DeliveryId>,
    request: Request,
) -> Result<Response, Problem> {
    let key = idempotency_key(request.headers())?;
    let after_send = after_send(&api, request).await?;
    act(&api, &allowed.caller, id, &key, Asked::SendAgain { after_send }).await
}

/// Resolve a delivery
///
/// Says what became of one whose outcome is unknown, or that is parked. Repeats are recognised as for
/// a redrive.
#[utoipa::path(
    post,
    path = "/v1/deliveries/{id}/resolve",
    tag = "deliveries",
    operation_id = "resolve",
    params(
        ("id" = String, Path, description = "`dlv_…`"),
        KeyHeader
    ),
    request_body = Resolve,
    responses((status = 200, description = "It has ended as said.", body = DeliveryView, headers(
        ("Idempotency-Replayed" = Option<String>, description = "`true` where this is a repeat; the body is the delivery as it stands now.")
    )), ActProblems),
    security(("key" = []))
)]
pub async fn resolve(
    State(api): State<Shared>,
    allowed: Allowed<ToAdmin>,
    Id(id): Id<DeliveryId>,
    request: Request,
) -> Result<Response, Problem> {
    let key = idempotency_key(request.headers())?;
    let read = api.json_body(request, MOST_BODY).await?;
    let node = json(&read.bytes)?;
    let mut problems = Problems::default();
    let asked = Object::open(&node, "", &["to", "why"], &mut problems).and_then(|object| {
        let to = object.text("to", line(32), &mut problems).and_then(|to| to.parse().ok());
        if to.is_none() {
            problems.add("/to", "must be delivered or failed");
        }
        let why = object.text("why", line(200), &mut problems).unwrap_or_default();
        to.map(|to| Asked::Resolve { to, why })
    });
    match asked {
        Some(asked) if problems.is_empty() => act(&api, &allowed.caller, id, &key, asked).await,
        _ => Err(Problem::invalid(problems.all())),
    }
}

async fn after_send(api: &Shared, request: Request) -> Result<u32, Problem> {
    let read = api.json_body(request, MOST_BODY).await?;
    let node = json(&read.bytes)?;
    let mut problems = Problems::default();
    let number = Object::open(&node, "", &["after_send"], &mut problems)
        .and_then(|object| object.integer("after_send", &mut problems))
        .and_then(|number| u32::try_from(number).ok())
        .filter(|number| *number > 0);
    match number {
        Some(number) if problems.is_empty() => Ok(number),
        _ => {
            if problems.is_empty() {
                problems.add("/after_send", "is required: the delivery's `send` as you saw it, from 1");
            }
            Err(Problem::invalid(problems.all()))
        }
    }
}

async fn act(api: &Shared, caller: &Caller, id: DeliveryId, key: &str, asked: Asked) -> Result<Response, Problem> {
    let verb = asked.verb();
    match api.stored("apply", api.deps.intake.act(caller, id, key, asked)).await? {
        Acted::Done { delivery, replayed } => {
            let mut response = Json(DeliveryView::new(&delivery, Detail::Whole, &api.around().await)).into_response();
            if replayed {
                mark_replayed(&mut response);
            }
            Ok(response)
        }
        Acted::Reused { verb: before, differing } => Err(reused(before, verb, differing)),
        Acted::Absent => Err(Problem::not_found()),
        Acted::NotNow(state) => Err(Problem::new(Code::NotInThisState, not_now(state))),
        Acted::SendMoved { current } => Err(Problem::new(
            Code::SendMoved,
            format!("The delivery is at send {current} now. Look again before deciding."),
        )),
        Acted::ContentPurged => {
            Err(Problem::new(Code::ContentPurged, "The message is no longer kept. Send a new notification."))
        }
    }
}

/// Nothing was done: to answer it as the repeat of the other would swallow it.
fn reused(before: &str, now: &str, differing: &[&str]) -> Problem {
    let other = format!("the key was used for `{before}`, and this is `{now}`");
    let errors = differing.iter().map(|pointer| match *pointer {
        "" => FieldProblem::new("", other.clone()),
        part => FieldProblem::new(part, "differs from the first request"),
    });
    let detail = format!("Nothing was done: this key was used for another request, `{before}` of this delivery.");
    Problem::new(Code::KeyReused, detail).with(errors.collect())
}

fn not_now(state: StateName) -> String {
    match state {
        StateName::Scheduled | StateName::Queued | StateName::Deferred | StateName::Sending => {
            format!("It is already in flight: its state is `{state}`.")
        }
        _ => format!("Its state is `{state}`, which does not allow this."),
    }
}
