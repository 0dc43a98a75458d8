//! Notifications: accept one, accept many, read, cancel.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Json;
use axum::extract::{FromRequestParts, Path, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use belfry_domain::timeline::Hop;
use belfry_domain::{DeliveryId, NotificationId};

use super::api::Shared;
use super::auth::{Allowed, ToRead, ToSend, ToSendMany};
use super::body::{LARGE, MOST_BATCH, MOST_BODY, MOST_WITH_ATTACHMENTS, ReadBody, check_size, json};
use super::headers::{REPLAYED, idempotency_key, traceparent};
use super::openapi::{BodyProblems, CancelProblems, ReadProblems, SendProblems};
use super::problem::{Code, Problem};
use super::schema::{Cancel, KeyHeader, NewBatch, NewNotification};
use super::view::{BatchResultView, BatchResults, Cancellation, Detail, NotificationView, Taken};
use crate::intake::accept::Candidate;
use crate::intake::answer::{Answer, Receipt};
use crate::intake::batch::{self, BatchItem};
use crate::intake::caller::Caller;
use crate::intake::fields::{FieldProblem, Object, Problems, line};
use crate::intake::json::Node;
use crate::intake::plan::Arrival;
use crate::intake::stored::{Asker, Stored, may_name, named};
use crate::ports::deliveries::MOST_ITEMS;

/// An id from the path. One that is no id is as absent as one that nobody has.
pub struct Id<T>(pub T);

impl<T: std::str::FromStr> FromRequestParts<Shared> for Id<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Shared) -> Result<Self, Problem> {
        let Path(text) = Path::<String>::from_request_parts(parts, api).await.map_err(|_| Problem::not_found())?;
        text.parse().map(Self).map_err(|_| Problem::not_found())
    }
}

/// Accept one notification
///
/// Durable before it is answered. The same request under the same key again gets the first answer's
/// bytes, with `Idempotency-Replayed: true`; another request under the same key is refused.
#[utoipa::path(
    post,
    path = "/v1/notifications",
    tag = "notifications",
    operation_id = "send",
    params(
        KeyHeader,
        ("traceparent" = Option<String>, Header, description = "W3C trace context: kept and carried to the provider call. A malformed one is ignored.")
    ),
    request_body(content = NewNotification, description = "At most 1 MiB, with attachments 15 MiB."),
    responses(
        (status = 202, description = "It is durable, or was before.", body = Taken, headers(
            ("Location" = String, description = "Where it can be read."),
            ("Idempotency-Replayed" = Option<String>, description = "`true` where this is a repeat.")
        )),
        SendProblems
    ),
    security(("key" = []))
)]
pub async fn send(State(api): State<Shared>, allowed: Allowed<ToSend>, request: Request) -> Result<Response, Problem> {
    let arrival = Arrival {
        key: idempotency_key(request.headers())?,
        via: Hop::Http,
        traceparent: traceparent(request.headers()),
    };
    let read = api.json_body(request, MOST_WITH_ATTACHMENTS).await?;
    let caller = allowed.caller;
    let stored = stored_of(&api, &caller, &read, |node| named(node).into_iter().collect()).await?;
    let candidate = prepare(&api, (&caller, stored), arrival, &read).await?;
    let answers = api.stored("accept", api.deps.intake.accept(&caller, vec![candidate])).await?;
    match answers.into_iter().next().map(told) {
        Some(Ok((taken, replayed))) => Ok(accepted(taken, replayed)),
        Some(Err(problem)) => Err(problem),
        None => Err(Problem::new(Code::Internal, "There was no answer.")),
    }
}

/// Reads and plans off the serving threads where it takes long.
async fn prepare(
    api: &Shared,
    (caller, stored): (&Caller, Stored),
    arrival: Arrival,
    read: &ReadBody,
) -> Result<Candidate, Problem> {
    let large = read.bytes.len() > LARGE;
    let (api, caller, bytes) = (Arc::clone(api), caller.clone(), Arc::clone(&read.bytes));
    let work = move || {
        let node = json(&bytes)?;
        check_size(&bytes, &node)?;
        Ok(api.deps.intake.prepare(Asker { caller: &caller, stored: &stored }, &arrival, &node, None))
    };
    if !large {
        return work();
    }
    off_thread(work).await
}

/// What is stored of the recipients that the request names.
async fn stored_of(
    api: &Shared,
    caller: &Caller,
    read: &ReadBody,
    named: fn(&Node<'_>) -> BTreeSet<String>,
) -> Result<Stored, Problem> {
    let bytes = Arc::clone(&read.bytes);
    // What is wrong with the request is told when it is read as a whole.
    let names = move || match may_name(&bytes) {
        true => Ok(json(&bytes).map(|node| named(&node)).unwrap_or_default()),
        false => Ok(BTreeSet::new()),
    };
    let names = if read.bytes.len() > LARGE { off_thread(names).await? } else { names()? };
    if names.is_empty() {
        return Ok(Stored::default());
    }
    api.stored("recipient", api.deps.intake.stored(caller, names)).await
}

async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|_| Err(Problem::new(Code::Internal, "Reading the request failed.")))
}

fn accepted(taken: Taken, replayed: bool) -> Response {
    let id = match &taken {
        Taken::Receipt(Receipt { id, .. }) => id,
        Taken::Remembered(remembered) => &remembered.id,
    };
    let location = HeaderValue::try_from(format!("/v1/notifications/{id}"));
    let mut response = (StatusCode::ACCEPTED, Json(taken)).into_response();
    if let Ok(location) = location {
        response.headers_mut().insert(header::LOCATION, location);
    }
    if replayed {
        mark_replayed(&mut response);
    }
    response
}

/// Says that nothing new was done.
pub fn mark_replayed(response: &mut Response) {
    response.headers_mut().insert(HeaderName::from_static(REPLAYED), HeaderValue::from_static("true"));
}

/// What to tell, and whether it is a repeat.
fn told(answer: Answer) -> Result<(Taken, bool), Problem> {
    match answer {
        Answer::Created(receipt) => Ok((Taken::Receipt(receipt), false)),
        Answer::Replayed(receipt) => Ok((Taken::Receipt(receipt), true)),
        Answer::Remembered(remembered) => Ok((Taken::Remembered(remembered), true)),
        Answer::Mismatch { id, hop, pointers } => {
            let errors =
                pointers.into_iter().map(|pointer| FieldProblem::new(pointer, "differs from the first request"));
            let detail = match hop {
                Hop::Unique => format!(
                    "`unique` (with this class) names {id}, which was asked for by another request: the Idempotency-Key \
                     does not matter here."
                ),
                _ => format!("This key names {id}, which was asked for by another request."),
            };
            Err(Problem::new(Code::KeyReused, detail).with(errors.collect()))
        }
        Answer::Refused(refusal) if refusal.too_old => {
            Err(Problem::new(Code::TooOldToKnow, "The intent is older than repeats are remembered.")
                .with(refusal.errors))
        }
        // Nothing is wrong with it: a caller who drops what is refused must not drop this.
        Answer::Refused(refusal) if refusal.errors.iter().any(|one| one.late) => {
            Err(Problem::new(Code::Busy, "The template did not come to an end just now."))
        }
        Answer::Refused(refusal) => Err(Problem::invalid(refusal.errors)),
    }
}

/// Accept many notifications
///
/// Every item stands for itself, under its own `key`, exactly as if it had come alone; pointers in
/// its problem are relative to it. A batch that is sent again after anything went wrong half way
/// finishes what was left.
#[utoipa::path(
    post,
    path = "/v1/notifications/batch",
    tag = "notifications",
    operation_id = "send_batch",
    params(("traceparent" = Option<String>, Header, description = "W3C trace context, kept with every item.")),
    request_body(content = NewBatch, description = "At most 8 MiB."),
    responses((status = 200, description = "What became of every item, in their order.", body = BatchResults), BodyProblems),
    security(("key" = []))
)]
pub async fn send_batch(
    State(api): State<Shared>,
    allowed: Allowed<ToSendMany>,
    request: Request,
) -> Result<Response, Problem> {
    let instance = request.uri().path().to_owned();
    let trace = traceparent(request.headers());
    let read = api.json_body(request, MOST_BATCH).await?;
    api.count(&allowed.key, &allowed.slip, items_of(&read).await?)?;
    let caller = allowed.caller;
    let stored = stored_of(&api, &caller, &read, batch::all_named).await?;
    let items = {
        let (api, caller, bytes) = (Arc::clone(&api), caller.clone(), Arc::clone(&read.bytes));
        let work = move || {
            let node = json(&bytes)?;
            batch::prepare(&api.deps.intake, Asker { caller: &caller, stored: &stored }, &node, trace.as_deref())
                .map_err(Problem::invalid)
        };
        if read.bytes.len() > LARGE { off_thread(work).await? } else { work()? }
    };
    let docs = api.problem_docs();
    let mut results = BatchResults { data: Vec::with_capacity(items.len()) };
    let mut items = items.into_iter();
    loop {
        let (keys, candidates): (Vec<_>, Vec<_>) =
            items.by_ref().take(MOST_ITEMS).map(|BatchItem { key, candidate }| (key, candidate)).unzip();
        if keys.is_empty() {
            break;
        }
        let answers = api.stored("accept", api.deps.intake.accept(&caller, candidates)).await?;
        let each = keys.into_iter().zip(answers).map(|(key, answer)| result(key, answer, &docs, &instance));
        results.data.extend(each);
    }
    Ok(Json(results).into_response())
}

/// As how many calls a batch counts. One that nothing can be read of is refused later, as a call.
async fn items_of(read: &ReadBody) -> Result<u32, Problem> {
    let bytes = Arc::clone(&read.bytes);
    let work = move || Ok(json(&bytes).map_or(0, |node| batch::count(&node)));
    let many = if read.bytes.len() > LARGE { off_thread(work).await? } else { work()? };
    Ok(u32::try_from(many).unwrap_or(u32::MAX).max(1))
}

fn result(key: String, answer: Answer, docs: &str, instance: &str) -> BatchResultView {
    match told(answer) {
        Ok((taken, replayed)) => BatchResultView {
            key,
            status: StatusCode::ACCEPTED.as_u16(),
            replayed,
            notification: Some(taken),
            problem: None,
        },
        Err(problem) => BatchResultView {
            key,
            status: problem.code.status().as_u16(),
            replayed: false,
            notification: None,
            problem: Some(problem.body(docs, instance)),
        },
    }
}

/// Read one notification
///
/// With its deliveries, their reasons and timelines.
#[utoipa::path(
    get,
    path = "/v1/notifications/{id}",
    tag = "notifications",
    operation_id = "read",
    params(("id" = String, Path, description = "`ntf_…`")),
    responses((status = 200, description = "As it stands.", body = NotificationView), ReadProblems),
    security(("key" = []))
)]
pub async fn read(
    State(api): State<Shared>,
    allowed: Allowed<ToRead>,
    Id(id): Id<NotificationId>,
) -> Result<Json<NotificationView>, Problem> {
    let owner = allowed.caller.owner();
    let record = api.stored("read", api.deps.deliveries.read(&owner, id)).await?.ok_or_else(Problem::not_found)?;
    Ok(Json(NotificationView::new(&record, Detail::Whole, &api.around().await)))
}

/// Read the notification of a delivery
///
/// As `GET /v1/notifications/{id}` of the notification that the delivery belongs to.
#[utoipa::path(
    get,
    path = "/v1/deliveries/{id}",
    tag = "deliveries",
    operation_id = "read_by_delivery",
    params(("id" = String, Path, description = "`dlv_…`")),
    responses((status = 200, description = "As it stands.", body = NotificationView), ReadProblems),
    security(("key" = []))
)]
pub async fn read_by_delivery(
    State(api): State<Shared>,
    allowed: Allowed<ToRead>,
    Id(id): Id<DeliveryId>,
) -> Result<Json<NotificationView>, Problem> {
    let owner = allowed.caller.owner();
    let found = api.stored("read", api.deps.deliveries.read_by_delivery(&owner, id)).await?;
    let found = found.ok_or_else(Problem::not_found)?;
    Ok(Json(NotificationView::new(&found, Detail::Whole, &api.around().await)))
}

/// Cancel one notification
///
/// Stops every further attempt, of what is being sent at this moment too. Safe to repeat.
#[utoipa::path(
    post,
    path = "/v1/notifications/{id}/cancel",
    tag = "notifications",
    operation_id = "cancel",
    params(("id" = String, Path, description = "`ntf_…`")),
    request_body(content = Option<Cancel>, description = "May be left out."),
    responses((status = 200, description = "What is cancelled, in flight and over.", body = Cancellation), CancelProblems),
    security(("key" = []))
)]
pub async fn cancel(
    State(api): State<Shared>,
    allowed: Allowed<ToSend>,
    Id(id): Id<NotificationId>,
    request: Request,
) -> Result<Json<Cancellation>, Problem> {
    let why = match api.optional_json_body(request, MOST_BODY).await? {
        None => String::new(),
        Some(read) => {
            let node = json(&read.bytes)?;
            let mut problems = Problems::default();
            let object = Object::open(&node, "", &["why"], &mut problems);
            let why = object.and_then(|object| object.text("why", line(200), &mut problems));
            if !problems.is_empty() {
                return Err(Problem::invalid(problems.all()));
            }
            why.unwrap_or_default()
        }
    };
    let done = api.stored("apply", api.deps.intake.cancel(&allowed.caller, id, &why)).await?;
    let (told, record) = done.ok_or_else(Problem::not_found)?;
    let ids = |of: &[DeliveryId]| of.iter().map(ToString::to_string).collect();
    Ok(Json(Cancellation {
        notification: NotificationView::new(&record, Detail::Whole, &api.around().await),
        cancelled: ids(&told.cancelled),
        in_flight: ids(&told.in_flight),
        ended: ids(&told.ended),
    }))
}
