//! Cancelling by filter: a campaign that must not go on.

use axum::Json;
use axum::extract::{Request, State};
use serde::Serialize;
use utoipa::ToSchema;

use super::api::{Api, Shared};
use super::auth::{Allowed, ToSend};
use super::body::{MOST_BODY, json};
use super::filters::{self, FILTERS};
use super::openapi::BodyProblems;
use super::problem::Problem;
use super::query::cursor;
use super::schema::NewCancellation;
use crate::intake::caller::Caller;
use crate::intake::fields::{Object, Problems, line};
use crate::intake::json::{Node, Value};
use crate::ports::search::Query;

/// Notifications looked at in one call; more follow by cursor.
const PAGE: u16 = 100;
const MEMBERS: &[&str] = &["filter", "dry_run", "why", "cursor"];
/// For people; programs go by its code.
const NEEDS_NEW_KEYS: &str = "What is cancelled stays remembered: a request with the same Idempotency-Key, or the same \
                              class and unique, gets the first answer and sends nothing. A corrected run needs new keys.";

/// What was cancelled, in deliveries.
#[derive(Debug, Serialize, ToSchema)]
pub struct CancellationPage {
    /// As asked: where it is true nothing was done.
    pub dry_run: bool,
    /// Notifications that the filter found, on this page.
    pub notifications: usize,
    /// Their ids.
    #[schema(max_items = 100)]
    pub ids: Vec<String>,
    /// Nothing (more) will go out.
    pub cancelled: u32,
    /// Of `cancelled`, those that had been before this call.
    pub cancelled_before: u32,
    /// Being sent at this moment; no further attempt follows.
    pub in_flight: u32,
    /// Had ended before otherwise.
    pub ended: u32,
    /// Of `cancelled` and `ended`, those that may have reached somebody: a provider took a call, or nobody knows what
    /// became of one.
    pub out: u32,
    /// What to know before it is sent again as it should have been.
    pub corrected_run: CorrectedRun,
    pub has_more: bool,
    /// To be sent as `cursor`, to go on; there while `has_more`. A page may have found nothing and still go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub next_cursor: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct CorrectedRun {
    pub code: CorrectedRunCode,
    /// For people.
    pub text: &'static str,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CorrectedRunCode {
    NeedsNewKeys,
}

struct Asked {
    query: Query,
    dry_run: bool,
    why: String,
}

/// Cancel many notifications
///
/// Up to 100 of those that the filter finds, newest first; go on with `next_cursor` while there are
/// more. Safe to repeat: nothing is cancelled twice, and whoever was cut off goes on from any cursor, or from the
/// beginning.
#[utoipa::path(
    post,
    path = "/v1/cancellations",
    tag = "notifications",
    operation_id = "cancel_many",
    request_body = NewCancellation,
    responses((status = 200, description = "What was, or with `dry_run` would be, cancelled.", body = CancellationPage), BodyProblems),
    security(("key" = []))
)]
pub async fn cancel_many(
    State(api): State<Shared>,
    allowed: Allowed<ToSend>,
    request: Request,
) -> Result<Json<CancellationPage>, Problem> {
    let read = api.json_body(request, MOST_BODY).await?;
    let asked = read_asked(&api, &allowed.caller, &json(&read.bytes)?)?;
    let page = api.deps.intake.cancel_page(&allowed.caller, asked.query, &asked.why, asked.dry_run);
    let tally = api.stored("apply", page).await?;
    Ok(Json(CancellationPage {
        dry_run: asked.dry_run,
        notifications: tally.notifications.len(),
        ids: tally.notifications.iter().map(ToString::to_string).collect(),
        cancelled: tally.cancelled,
        cancelled_before: tally.cancelled_before,
        in_flight: tally.in_flight,
        ended: tally.ended,
        out: tally.out,
        corrected_run: CorrectedRun { code: CorrectedRunCode::NeedsNewKeys, text: NEEDS_NEW_KEYS },
        has_more: tally.next.is_some(),
        next_cursor: tally.next.map(cursor),
    }))
}

fn read_asked(api: &Api, caller: &Caller, node: &Node<'_>) -> Result<Asked, Problem> {
    let mut problems = Problems::default();
    let Some(object) = Object::open(node, "", MEMBERS, &mut problems) else {
        return Err(Problem::invalid(problems.all()));
    };
    let filter = object.get("filter").and_then(|node| Object::open(node, "/filter", FILTERS, &mut problems));
    // Without a filter a slip of the pen would cancel everything.
    if filter.as_ref().is_none_or(|filter| filter.members().next().is_none()) {
        problems.add("/filter", "must hold at least one filter");
    }
    let query = filter.map(|filter| filters::read(api, caller, &filter, &mut problems));
    let dry_run = match object.get("dry_run").map(|node| &node.value) {
        None => false,
        Some(Value::Bool(dry_run)) => *dry_run,
        Some(_) => {
            problems.add("/dry_run", "must be true or false");
            true
        }
    };
    if !dry_run && !object.has("why") {
        problems.add("/why", "must say why: it stands in the timelines, and nobody else can tell later");
    }
    let why = object.text("why", line(200), &mut problems).unwrap_or_default();
    let after = query.as_ref().and_then(|query| filters::after(&object, query, &mut problems));
    match query {
        Some(query) if problems.is_empty() => Ok(Asked { query: Query { after, limit: PAGE, ..query }, dry_run, why }),
        _ => Err(Problem::invalid(problems.all())),
    }
}
