//! Operations: is it alive, is it ready, what does it count.

use std::borrow::Cow;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::api::Shared;
use super::openapi::OpsProblems;
use crate::intake::instant::rfc3339;
use crate::intake::pauses::in_words;
use crate::ports::circuits::OpenCircuit;
use crate::ports::pauses::KeptPause;

/// Pauses shown by themselves.
const PAUSES_SHOWN: usize = 8;

#[derive(Debug, Serialize, ToSchema)]
pub struct Alive {
    pub alive: bool,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct Readiness {
    pub ready: bool,
    /// With `?verbose`, and while a start waits for its store.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub checks: Option<Vec<Check>>,
    /// With `?verbose`: what a crash of the store can lose.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub durability: Option<String>,
    /// With `?verbose`: what this node does (`api`, `worker`, `scheduler`); others do the rest.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub roles: Option<Vec<&'static str>>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct Check {
    pub name: &'static str,
    pub ok: bool,
    #[schema(value_type = String)]
    pub detail: Cow<'static, str>,
    pub took_ms: u64,
}

/// Is the server alive
///
/// Checks nothing outside the process.
#[utoipa::path(get, path = "/livez", tag = "operations", operation_id = "livez",
    responses((status = 200, description = "It answers.", body = Alive), OpsProblems))]
pub async fn livez() -> Json<Alive> {
    Json(Alive { alive: true })
}

/// Is the server ready
///
/// Makes a real write and read of a probe in the store. Not ready while draining, and while a start waits for
/// its store: `checks` says what is waited for, and since when. Ready while some parts of the store are away and
/// others are not (`store_parts`), while circuits of this node's providers are open (`circuit`), and while something is
/// paused (`pause`).
#[utoipa::path(get, path = "/readyz", tag = "operations", operation_id = "readyz",
    params(("verbose" = Option<String>, Query, description = "Present: say what was checked.")),
    responses(
        (status = 200, description = "Send it requests.", body = Readiness),
        (status = 503, description = "Send it none.", body = Readiness),
        OpsProblems
    ))]
pub async fn readyz(State(api): State<Shared>, uri: Uri) -> Response {
    let draining = api.deps.drain.has_begun();
    let before = api.deps.clock.boot();
    let probed = if draining { Ok(Vec::new()) } else { api.asked("probe", api.deps.deliveries.probe()).await };
    let store = probed.is_ok();
    // The rest can be worked on: what belongs to a part that is away is answered 503, each request by itself.
    let away = probed.as_ref().ok().filter(|away| !away.is_empty()).map(|away| away.join("; "));
    let away = away.map(|detail| Check { name: "store_parts", ok: false, detail: detail.into(), took_ms: 0 });
    let took = api.deps.clock.boot().saturating_sub(before);
    let ready = store && !draining;
    let verbose =
        uri.query().is_some_and(|query| query.split('&').any(|pair| pair.split('=').next() == Some("verbose")));
    // What is held is no reason to send no requests; it is a note.
    let restored = if verbose && store { api.restored_at().await } else { None };
    let held = restored.map(|_| Check {
        name: "restore",
        ok: true,
        detail: "what was due before the store was restored is held: see belfry restored".into(),
        took_ms: 0,
    });
    let mut checks = vec![
        Check {
            name: "draining",
            ok: !draining,
            detail: if draining { "the server is stopping" } else { "the server takes requests" }.into(),
            took_ms: 0,
        },
        Check {
            name: "store",
            ok: store && !draining,
            detail: match probed {
                Ok(_) if draining => "not asked: the server is stopping".into(),
                Ok(_) => "a probe was written and read".into(),
                Err(why) => why.to_string().into(),
            },
            took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        },
    ];
    checks.extend(away);
    checks.extend(held);
    if verbose && store && !draining {
        checks.extend(workers(&api).await);
    }
    if verbose {
        checks.extend(pauses(&api));
        checks.extend((api.deps.circuits)().iter().map(circuit));
    }
    let readiness = Readiness {
        ready,
        checks: verbose.then_some(checks),
        durability: verbose.then(|| api.deps.durability.clone()),
        roles: verbose.then(|| api.deps.roles.clone()),
    };
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(readiness)).into_response()
}

/// Without one everything waits. No reason to send no requests: what is accepted meanwhile goes out later.
async fn workers(api: &Shared) -> Option<Check> {
    let found = api.stored("workers", (api.deps.workers)()).await.ok()??;
    let detail = match found {
        0 => "no worker is there: nothing is sent".into(),
        1 => "1 worker is there".into(),
        many => format!("{many} workers are there").into(),
    };
    Some(Check { name: "workers", ok: found > 0, detail, took_ms: 0 })
}

/// What is paused, as this node knows it; whose, and which group, is not for everybody. No reason to send no requests
/// either: what is accepted meanwhile waits.
fn pauses(api: &Shared) -> Vec<Check> {
    let (standing, now) = (api.deps.pausing.standing(), api.deps.clock.now());
    let mut all: Vec<&KeptPause> = standing.at(now).collect();
    all.sort_by_key(|one| one.pause.since);
    let check = |detail: String| Check { name: "pause", ok: true, detail: detail.into(), took_ms: 0 };
    let one = |KeptPause { pause, .. }: &KeptPause| {
        let whose = if pause.tenant.is_some() { " of one tenant" } else { "" };
        let until = pause.until.map(|until| format!(" until {}", rfc3339(until))).unwrap_or_default();
        let forced = if pause.forced { ", forced" } else { "" };
        let (what, since) = (in_words(&pause.paused, false), rfc3339(pause.since));
        check(format!("{what}{whose} is paused since {since}{until}{forced}"))
    };
    let left = all.len().saturating_sub(PAUSES_SHOWN);
    let rest = (left > 0).then(|| check(format!("{left} more pauses stand: see belfry pauses list")));
    all.into_iter().take(PAUSES_SHOWN).map(one).chain(rest).collect()
}

/// Messages through it wait. No reason to send no requests either.
fn circuit(open: &OpenCircuit) -> Check {
    let behind = open.service.map(|service| format!(" to {service}")).unwrap_or_default();
    let (provider, since, hint, cause) = (&open.provider, rfc3339(open.since), open.why.hint(), open.cause.name());
    let detail = format!("{provider}{behind}: messages wait since {since}: {hint} ({cause})");
    Check { name: "circuit", ok: false, detail: detail.into(), took_ms: 0 }
}

/// Metrics
///
/// In OpenMetrics text. Labels come from closed sets only.
#[utoipa::path(get, path = "/metrics", tag = "operations", operation_id = "metrics",
    responses((status = 200, description = "All of them.", body = String, content_type = "application/openmetrics-text"), OpsProblems))]
pub async fn metrics(State(api): State<Shared>) -> Response {
    exposed((api.deps.metrics)())
}

pub(super) fn exposed(text: String) -> Response {
    let kind = [(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")];
    (kind, text).into_response()
}
