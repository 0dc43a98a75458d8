//! What is held since the store was restored from a backup: seen, let go, cancelled. It is the
//! installation's, whoever's tenants it holds, so that it takes an operator's key.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::Uri;
use axum::response::{IntoResponse as _, Response};
use belfry_domain::{Delivery, UnixMs};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::api::{Api, Shared};
use super::auth::{Allowed, ToAdmin};
use super::body::{MOST_BODY, json};
use super::closed_sets;
use super::notifications::mark_replayed;
use super::openapi::{HeldProblems, ListProblems};
use super::problem::{Code, Problem};
use super::query::Params;
use super::schema::{CancelHeld, ReleaseHeld};
use super::view::Around;
use crate::intake::fields::{Object, Problems, line, text};
use crate::intake::instant::rfc3339;
use crate::intake::json::Node;
use crate::intake::restored::{HeldCancelled, Preview, Released, Wish};
use crate::ports::clock::Boot;

/// So long a look at whether there is a hold is believed.
const BELIEVED: Duration = Duration::from_secs(1);
const MOST_CLASSES: usize = 100;
const MOST_CURSOR: usize = 512;

/// What is held: all of it, and what this call has looked at.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Held)]
pub struct HeldView {
    /// What was due by then is held. Left out: nothing is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, nullable = false)]
    pub restored_at: Option<String>,
    /// Deliveries held, all of them; where they are very many, at least so many.
    pub held: u64,
    /// Deliveries that this call has counted, by class and channel; go on with `next_cursor` for the rest.
    pub counted: Vec<HeldCount>,
    /// Of those counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, nullable = false)]
    pub oldest_due: Option<String>,
    /// Of those counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, nullable = false)]
    pub newest_due: Option<String>,
    /// Some of those counted, at most 20.
    #[schema(max_items = 20)]
    pub sample: Vec<HeldDelivery>,
    pub has_more: bool,
    /// To be sent as `cursor`, to go on; there while `has_more`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub next_cursor: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct HeldCount {
    pub class: String,
    #[schema(value_type = closed_sets::Channel)]
    pub channel: String,
    pub held: u64,
    /// Of these, past their expiry: released, they end `expired`.
    pub expired: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct HeldDelivery {
    #[schema(pattern = "^dlv_[0-9a-f]{24}$")]
    pub id: String,
    pub class: String,
    #[schema(value_type = closed_sets::Channel)]
    pub channel: String,
    #[schema(value_type = closed_sets::State)]
    pub state: String,
    #[schema(format = DateTime)]
    pub due_at: String,
}

/// What was held goes out.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = HeldReleased)]
pub struct ReleasedView {
    #[schema(format = DateTime)]
    pub restored_at: String,
    /// Nothing is held any more.
    pub released: bool,
}

/// What this call cancelled, in deliveries.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = HeldCancelled)]
pub struct CancelledView {
    /// Nothing will go out.
    pub cancelled: u64,
    /// Of other classes than those named: still held.
    pub left: u64,
    pub has_more: bool,
    /// To be sent as `cursor`, to go on; there while `has_more`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub next_cursor: Option<String>,
}

impl HeldView {
    #[must_use]
    pub fn new(it: Preview) -> Self {
        let count = |((class, channel), of): ((String, belfry_domain::ChannelKind), crate::intake::restored::Held)| {
            HeldCount { class, channel: channel.name().into(), held: of.held, expired: of.expired }
        };
        let one = |it: &Delivery| HeldDelivery {
            id: it.id.to_string(),
            class: it.class.clone(),
            channel: it.channel.name().into(),
            state: it.state.name().to_string(),
            due_at: rfc3339(it.due_at),
        };
        Self {
            restored_at: it.restored_at.map(rfc3339),
            held: it.held,
            counted: it.by.into_iter().map(count).collect(),
            oldest_due: it.oldest_due.map(rfc3339),
            newest_due: it.newest_due.map(rfc3339),
            sample: it.sample.iter().map(one).collect(),
            has_more: it.next.is_some(),
            next_cursor: it.next,
        }
    }
}

impl ReleasedView {
    /// # Errors
    /// Another hold stands: 409.
    pub fn new(at: UnixMs, released: Released) -> Result<Self, Problem> {
        match released {
            Released::Another(stands) => Err(moved(stands)),
            Released::Done | Released::Before => Ok(Self { restored_at: rfc3339(at), released: true }),
        }
    }
}

impl CancelledView {
    /// # Errors
    /// Another hold stands: 409.
    pub fn new(told: HeldCancelled) -> Result<Self, Problem> {
        match told.another {
            Some(stands) => Err(moved(stands)),
            None => Ok(Self {
                cancelled: told.cancelled,
                left: told.left,
                has_more: told.next.is_some(),
                next_cursor: told.next,
            }),
        }
    }
}

fn moved(stands: UnixMs) -> Problem {
    let detail = format!("The hold of {} stands. Look again before deciding.", rfc3339(stands));
    Problem::new(Code::HoldMoved, detail)
}

/// The hold as it was last seen, and when.
#[derive(Default)]
pub struct HoldSeen(Mutex<Option<(Boot, Option<UnixMs>)>>);

impl HoldSeen {
    fn get(&self) -> Option<(Boot, Option<UnixMs>)> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, seen: Option<(Boot, Option<UnixMs>)>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = seen;
    }
}

impl Api {
    /// What stands around the records at the moment.
    pub async fn around(&self) -> Around {
        let now = self.deps.clock.now();
        let (circuits, pauses) = ((self.deps.circuits)(), self.deps.pausing.standing());
        let policy = (self.deps.policy)();
        let paced = policy.providers.iter().filter_map(|(name, it)| Some((name.clone(), it.pace.as_ref()?.at(now))));
        Around { restored: self.restored_at().await, circuits, pauses, paces: paced.collect(), now }
    }

    /// The hold that stands, as of the latest second; as last known where the store is away.
    pub async fn restored_at(&self) -> Option<UnixMs> {
        let now = self.deps.clock.boot();
        let known = self.hold.get();
        if let Some((at, hold)) = known
            && now.saturating_sub(at) < BELIEVED
        {
            return hold;
        }
        match self.stored("standing", self.deps.restored.standing()).await {
            Ok(hold) => {
                self.hold.put(Some((now, hold)));
                hold
            }
            Err(_) => known.and_then(|(_, hold)| hold),
        }
    }
}

/// See what is held after a restore
///
/// What was due before the store was restored from a backup (`belfry serve --after-restore`): it may
/// have been sent between the backup and the loss. Each call counts up to about 1,000 deliveries; go on
/// with `next_cursor` while there are more. Takes an operator's key.
#[utoipa::path(
    get,
    path = "/v1/restore",
    tag = "restore",
    operation_id = "see_held",
    params(("cursor" = Option<String>, Query, min_length = 1, max_length = 512, description = "`next_cursor` of the call before.")),
    responses((status = 200, description = "What is held.", body = HeldView), ListProblems),
    security(("key" = []))
)]
pub async fn preview(
    State(api): State<Shared>,
    allowed: Allowed<ToAdmin>,
    uri: Uri,
) -> Result<Json<HeldView>, Problem> {
    operators(&allowed)?;
    let mut params = Params::of(&uri, &["cursor"]);
    let after = params.bounded("cursor", MOST_CURSOR);
    params.end()?;
    Ok(Json(HeldView::new(api.stored("held_back", api.deps.restored.preview(after)).await?)))
}

/// Release what is held after a restore
///
/// Everything that is still held goes out now. Safe to repeat. Takes an operator's key.
#[utoipa::path(
    post,
    path = "/v1/restore/release",
    tag = "restore",
    operation_id = "release_held",
    request_body = ReleaseHeld,
    responses((status = 200, description = "Nothing is held any more.", body = ReleasedView, headers(
        ("Idempotency-Replayed" = Option<String>, description = "`true` where nothing was held.")
    )), HeldProblems),
    security(("key" = []))
)]
pub async fn release(
    State(api): State<Shared>,
    allowed: Allowed<ToAdmin>,
    request: Request,
) -> Result<Response, Problem> {
    operators(&allowed)?;
    let read = api.json_body(request, MOST_BODY).await?;
    let (wish, _, _) = asked(allowed.caller.key, &json(&read.bytes)?, &["restored_at"])?;
    let released = api.stored("release", api.deps.restored.release(&wish)).await?;
    api.hold.put(None);
    let mut response = Json(ReleasedView::new(wish.restored_at, released)?).into_response();
    if released == Released::Before {
        mark_replayed(&mut response);
    }
    Ok(response)
}

/// Cancel what is held after a restore
///
/// All of it, or that of the named classes; what is left stays held until it is released. Each call
/// looks at up to about 500 deliveries; go on with `next_cursor` while there are more. Safe to repeat.
/// Takes an operator's key.
#[utoipa::path(
    post,
    path = "/v1/restore/cancel",
    tag = "restore",
    operation_id = "cancel_held",
    request_body = CancelHeld,
    responses((status = 200, description = "What was cancelled.", body = CancelledView), HeldProblems),
    security(("key" = []))
)]
pub async fn cancel(
    State(api): State<Shared>,
    allowed: Allowed<ToAdmin>,
    request: Request,
) -> Result<Json<CancelledView>, Problem> {
    operators(&allowed)?;
    let read = api.json_body(request, MOST_BODY).await?;
    let known = ["restored_at", "classes", "why", "cursor"];
    let (wish, classes, after) = asked(allowed.caller.key, &json(&read.bytes)?, &known)?;
    let told = api.stored("apply", api.deps.restored.cancel(&wish, &classes, after)).await?;
    Ok(Json(CancelledView::new(told)?))
}

fn operators(allowed: &Allowed<ToAdmin>) -> Result<(), Problem> {
    if allowed.key.operator {
        return Ok(());
    }
    let detail = "What is held after a restore is the whole installation's: it takes an operator's key, the first one \
                  or that of BELFRY_BOOTSTRAP_KEY.";
    Err(Problem::new(Code::Forbidden, detail))
}

fn asked(by: String, node: &Node<'_>, known: &[&str]) -> Result<(Wish, Vec<String>, Option<String>), Problem> {
    let mut problems = Problems::default();
    let Some(object) = Object::open(node, "", known, &mut problems) else {
        return Err(Problem::invalid(problems.all()));
    };
    let restored_at = object.instant("restored_at", &mut problems);
    if restored_at.is_none() && !object.has("restored_at") {
        problems.add("/restored_at", "is required: the hold as you saw it");
    }
    let named = object.list("classes", MOST_CLASSES, &mut problems);
    if object.has("classes") && named.is_empty() {
        problems.add("/classes", "must name at least one class; left out, it means all");
    }
    let classes = named.into_iter().filter_map(|(at, one)| text(one, &at, line(64), &mut problems)).collect();
    let why = object.text("why", line(200), &mut problems).unwrap_or_default();
    let after = object.text("cursor", line(MOST_CURSOR), &mut problems);
    match restored_at {
        Some(restored_at) if problems.is_empty() => Ok((Wish { by, restored_at, why }, classes, after)),
        _ => Err(Problem::invalid(problems.all())),
    }
}
