//! The outermost layer: what every answer has in common.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderValue, Method, Response as HttpResponse, header};
use axum::middleware::Next;
use axum::response::Response;
use futures::FutureExt as _;

use super::api::Shared;
use super::headers::takes_json;
use super::limit::Slip;
use super::problem::{Code, Problem};
use super::query::Params;
use super::{dead_tokens, lists, outbox, schedules, suppressions};
use crate::facts::Fact;

/// Route templates, for metrics: a label is one of these or `other`, never a path as asked for.
pub const ROUTES: &[&str] = &[
    "/v1/notifications",
    "/v1/notifications/batch",
    "/v1/notifications/search",
    "/v1/notifications/{id}",
    "/v1/notifications/{id}/cancel",
    "/v1/cancellations",
    "/v1/deliveries/{id}",
    "/v1/deliveries/{id}/redrive",
    "/v1/deliveries/{id}/send-again",
    "/v1/deliveries/{id}/resolve",
    "/v1/deliveries/{id}/seen",
    "/v1/recipients/{id}",
    "/v1/recipients/{id}/devices/{device}",
    "/v1/devices/dead",
    "/v1/preferences/{id}",
    "/v1/preferences/{id}/link",
    "/v1/suppressions",
    "/v1/suppressions/check",
    "/v1/suppressions/{id}",
    "/v1/pauses",
    "/v1/pauses/{id}",
    "/v1/schedules",
    "/v1/schedules/{name}",
    "/v1/schedules/{name}/pause",
    "/v1/schedules/{name}/resume",
    "/v1/keys",
    "/v1/keys/{id}",
    "/v1/restore",
    "/v1/restore/release",
    "/v1/restore/cancel",
    "/v1/outbox",
    "/v1/outbox/misbehaviour",
    "/livez",
    "/readyz",
    "/metrics",
    "/",
    "/openapi.json",
    "/docs",
    "/docs/problems",
    "/admin",
    "/u/{token}",
    "/u/{token}/preferences",
];

/// Runs the request, turns problems and panics into their bodies, and tells what was answered.
pub async fn observe(State(api): State<Shared>, mut request: Request, next: Next) -> Response {
    let began = api.deps.clock.boot();
    let matched = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let route = ROUTES.iter().find(|route| Some(**route) == matched.as_deref()).copied().unwrap_or("other");
    let method = method_name(request.method());
    let path = request.uri().path().to_owned();
    let is_api = path.starts_with("/v1/");
    let slip = Slip::default();
    request.extensions_mut().insert(slip.clone());
    let mut response = match refused(&request, is_api).or_else(|| unknown_parameter(&request, route)) {
        Some(problem) => axum::response::IntoResponse::into_response(problem),
        None => run(&api, with_plain_encoding(request), next).await,
    };
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        response = written(&problem, &api.problem_docs(), shown(&path, matched.as_deref()), response);
    }
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Some(standing) = slip.noted() {
        standing.write(headers);
    }
    if is_api {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    let took = api.deps.clock.boot().saturating_sub(began);
    api.deps.facts.record(&Fact::HttpAnswered { route, method, status: response.status().as_u16(), took });
    response
}

/// Below these stands a caller's own name for a recipient.
const RECIPIENTS: [&str; 2] = ["/v1/recipients/", "/v1/preferences/"];

/// The path as a problem shows it. Whoever has the link of a recipient's page can act with it, and callers have names for
/// their recipients that may be addresses.
fn shown<'a>(path: &'a str, route: Option<&'a str>) -> &'a str {
    match route {
        Some(route) if route.contains("{token}") || RECIPIENTS.iter().any(|of| route.starts_with(of)) => route,
        _ if path.starts_with("/u/") => "/u/",
        _ => path,
    }
}

async fn run(api: &Shared, request: Request, next: Next) -> Response {
    match AssertUnwindSafe(next.run(request)).catch_unwind().await {
        Ok(response) => response,
        Err(_) => {
            api.deps.facts.record(&Fact::TaskPanicked { task: "http" });
            axum::response::IntoResponse::into_response(Problem::new(
                Code::Internal,
                "The request could not be finished.",
            ))
        }
    }
}

/// What is refused whatever the route.
fn refused(request: &Request, is_api: bool) -> Option<Problem> {
    if is_api && !takes_json(request.headers()) {
        return Some(Problem::new(Code::NotAcceptable, "Send `Accept: application/json`, or no Accept header."));
    }
    let mut encodings = request.headers().get_all(header::CONTENT_ENCODING).iter();
    let known = match (encodings.next(), encodings.next()) {
        (None, _) => true,
        (Some(one), None) => one
            .to_str()
            .is_ok_and(|one| ["gzip", "br", "identity"].iter().any(|known| one.trim().eq_ignore_ascii_case(known))),
        (Some(_), Some(_)) => false,
    };
    (!known)
        .then(|| Problem::new(Code::UnsupportedEncoding, "Send the body with `Content-Encoding: gzip`, `br`, or none."))
}

/// The coding's name as the decompression knows it: names are to be compared without regard to case
/// (RFC 9110, section 8.4.1).
fn with_plain_encoding(mut request: Request) -> Request {
    if let Some(coding) = request.headers_mut().get_mut(header::CONTENT_ENCODING) {
        let plain = coding.to_str().map(|name| name.trim().to_ascii_lowercase()).unwrap_or_default();
        if let Ok(plain) = HeaderValue::from_str(&plain) {
            *coding = plain;
        }
    }
    request
}

/// The query parameters that there are, by route; what is not listed takes none. A test holds it to
/// the OpenAPI document.
pub const QUERIES: &[(Method, &str, &[&str])] = &[
    (Method::GET, "/v1/notifications", lists::FILTERS),
    (Method::GET, "/v1/devices/dead", dead_tokens::FILTERS),
    (Method::GET, "/v1/suppressions", suppressions::FILTERS),
    (Method::GET, "/v1/outbox", outbox::LOOK),
    (Method::DELETE, "/v1/outbox", outbox::CLEAR),
    (Method::GET, "/readyz", &["verbose"]),
    (Method::GET, "/v1/restore", &["cursor"]),
    (Method::GET, "/v1/schedules", schedules::PAGES),
    (Method::PUT, "/v1/schedules/{name}", schedules::PUT),
];

/// Pages and documents for people: nothing there is filtered by a parameter.
const PAGES: &[&str] =
    &["/", "/openapi.json", "/docs", "/docs/problems", "/admin", "/u/{token}", "/u/{token}/preferences", "other"];

/// Refused wherever they come: a mistyped parameter must not be answered as if it were none.
fn unknown_parameter(request: &Request, route: &str) -> Option<Problem> {
    if PAGES.contains(&route) || request.uri().query().is_none_or(str::is_empty) {
        return None;
    }
    let method = if request.method() == Method::HEAD { &Method::GET } else { request.method() };
    let known = QUERIES.iter().find(|(of, path, _)| of == method && *path == route);
    Params::of(request.uri(), known.map_or(&[], |(.., known)| *known)).end().err()
}

pub(super) fn written(problem: &Problem, docs: &str, path: &str, response: Response) -> Response {
    let (mut parts, _) = response.into_parts();
    let body = serde_json::to_vec(&problem.body(docs, path)).unwrap_or_default();
    parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    parts.headers.remove(header::CONTENT_LENGTH);
    HttpResponse::from_parts(parts, Body::from(body))
}

pub(super) const fn method_name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        Method::PATCH => "PATCH",
        _ => "other",
    }
}

impl super::api::Api {
    /// Where problems are documented.
    #[must_use]
    pub fn problem_docs(self: &Arc<Self>) -> String {
        format!("{}/docs/problems", self.deps.public_url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_names_no_link_and_no_recipient() {
        let token = Some("/u/{token}");
        assert_eq!(shown("/u/secret", token), "/u/{token}");
        assert_eq!(shown("/u/secret/", None), "/u/");
        assert_eq!(shown("/u/secret/x", None), "/u/");
        let recipient = Some("/v1/recipients/{id}");
        assert_eq!(shown("/v1/recipients/ann@example.com", recipient), "/v1/recipients/{id}");
        assert_eq!(shown("/v1/notifications/ntf_1", Some("/v1/notifications/{id}")), "/v1/notifications/ntf_1");
        assert_eq!(shown("/v2", None), "/v2");
    }
}
