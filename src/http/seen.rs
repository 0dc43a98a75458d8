//! What the recipient's own device says of a delivery.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use belfry_domain::DeliveryId;

use super::api::Shared;
use super::body::json;
use super::notifications::Id;
use super::openapi::SeenProblems;
use super::problem::{Code, Problem};
use super::schema::Seen;
use crate::intake::fields::{Object, Problems, line};
use crate::intake::seen::Saw;

/// A token and its braces.
const MOST_BODY: usize = 1024;

/// Tell that a delivery was seen
///
/// For the recipient's own device: it needs no API key, but the token from the payload (for the
/// outbox: `seen_token` of the message). Noted in the timeline; the state stays. Safe to repeat.
#[utoipa::path(
    post,
    path = "/v1/deliveries/{id}/seen",
    tag = "deliveries",
    operation_id = "seen",
    params(("id" = String, Path, description = "`dlv_…`")),
    request_body = Seen,
    responses((status = 204, description = "It is on record."), SeenProblems),
    security(())
)]
pub async fn seen(State(api): State<Shared>, Id(id): Id<DeliveryId>, request: Request) -> Result<StatusCode, Problem> {
    let read = api.json_body(request, MOST_BODY).await?;
    let node = json(&read.bytes)?;
    let mut problems = Problems::default();
    let token = Object::open(&node, "", &["token"], &mut problems)
        .and_then(|object| object.text("token", line(64), &mut problems));
    let Some(token) = token.filter(|_| problems.is_empty()) else {
        if problems.is_empty() {
            problems.add("/token", "is required: it stands in the payload");
        }
        return Err(Problem::invalid(problems.all()));
    };
    match api.stored("apply", api.deps.intake.seen(id, &token)).await? {
        Saw::Noted => Ok(StatusCode::NO_CONTENT),
        Saw::Absent => Err(Problem::not_found()),
        Saw::Early => {
            Err(Problem::new(Code::NotInThisState, "Its call is not on record yet. Tell it again in a moment."))
        }
        Saw::NotNow(state) => {
            Err(Problem::new(Code::NotInThisState, format!("It is {}: there was nothing to see.", state.name())))
        }
    }
}
