//! What a listener answers while its node waits for the store: that it lives, what it waits for, what it
//! counts. All else is asked to come back. Whoever watches over the process must not take a wait for a
//! death: a restart in a loop brings no store back.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Json, Router};
use belfry_domain::UnixMs;

use super::observe::{method_name, written};
use super::ops::{self, Check, Readiness};
use super::problem::{Code, Problem};
use crate::facts::{Fact, FactSink};
use crate::intake::instant::rfc3339;
use crate::ports::clock::Clock;

/// What a start waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Awaited {
    /// What the store's servers say or do not.
    pub why: String,
    pub since: UnixMs,
}

/// What is known before there is a store.
pub struct Waits {
    /// `None`: it is being opened.
    pub awaited: Arc<dyn Fn() -> Option<Awaited> + Send + Sync>,
    pub metrics: Arc<dyn Fn() -> String + Send + Sync>,
    pub clock: Arc<dyn Clock>,
    pub facts: Arc<dyn FactSink>,
    /// Without a final slash; problems point below it.
    pub public_url: String,
    /// What this node will do.
    pub roles: Vec<&'static str>,
}

const PATHS: [&str; 3] = ["/livez", "/readyz", "/metrics"];

/// Until the store is there.
pub fn router(waits: Waits) -> Router {
    let waits = Arc::new(waits);
    Router::new()
        .route("/livez", get(ops::livez))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .fallback(away)
        .method_not_allowed_fallback(away)
        .layer(middleware::from_fn_with_state(Arc::clone(&waits), tell))
        .with_state(waits)
}

async fn readyz(State(waits): State<Arc<Waits>>) -> Response {
    let detail = match (waits.awaited)() {
        Some(it) => format!("waiting for the store since {}: {}", rfc3339(it.since), it.why),
        None => "the store is being opened".into(),
    };
    let check = Check { name: "store", ok: false, detail: detail.into(), took_ms: 0 };
    let roles = Some(waits.roles.clone());
    let readiness = Readiness { ready: false, checks: Some(vec![check]), durability: None, roles };
    (StatusCode::SERVICE_UNAVAILABLE, Json(readiness)).into_response()
}

async fn metrics(State(waits): State<Arc<Waits>>) -> Response {
    ops::exposed((waits.metrics)())
}

async fn away() -> Problem {
    let detail = "The server is starting and waits for its store. Send the same request again, with the same key.";
    Problem::new(Code::StoreUnavailable, detail)
}

/// As the outermost layer of the API does it.
async fn tell(State(waits): State<Arc<Waits>>, request: Request, next: Next) -> Response {
    let began = waits.clock.boot();
    let path = request.uri().path().to_owned();
    let route = PATHS.into_iter().find(|known| *known == path).unwrap_or("other");
    let method = method_name(request.method());
    let mut response = next.run(request).await;
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        response = written(&problem, &format!("{}/docs/problems", waits.public_url), &path, response);
    }
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let took = waits.clock.boot().saturating_sub(began);
    waits.facts.record(&Fact::HttpAnswered { route, method, status: response.status().as_u16(), took });
    response
}
