//! Pages served from the binary: the outbox at `/admin`, the API's documentation at `/docs`. One
//! self-contained file each, under a policy that runs that file's own script and nothing else, and
//! reaches no other host.

use std::fmt::Write as _;

use axum::Json;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{Html, IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::problem::Code;

const OUTBOX: &str = include_str!("../../dashboard/outbox.html");
const DOCS: &str = include_str!("../../dashboard/docs.html");

/// What there is here, for whoever opens the address by itself.
pub async fn index() -> Json<Index> {
    Json(Index { name: "Belfry", outbox: "/admin", docs: "/docs", openapi: "/openapi.json", ready: "/readyz?verbose" })
}

/// Where to go on.
#[derive(Serialize)]
pub struct Index {
    name: &'static str,
    outbox: &'static str,
    docs: &'static str,
    openapi: &'static str,
    ready: &'static str,
}

/// The outbox page. It holds no messages itself: its script asks the API for them with the key that
/// the developer types in.
pub async fn admin() -> Response {
    page(OUTBOX.to_owned())
}

/// The API's documentation, drawn from `/openapi.json`.
pub async fn docs() -> Response {
    page(DOCS.to_owned())
}

/// Every problem's meaning; problems' `type` points here.
pub async fn problems() -> Response {
    let mut text = String::from(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>Belfry: problems</title><style>body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;\
         padding:0 1rem}code{background:#8882;padding:.1em .3em}</style><h1>Problems</h1><p>Every error of the API is \
         an <code>application/problem+json</code> whose <code>code</code> is one of these.</p>",
    );
    for code in Code::ALL {
        let (name, title, about) = (code.name(), with_code(code.title()), with_code(code.about()));
        let status = code.status().as_u16();
        // Writing to a String cannot fail.
        write!(text, "<h2 id=\"{name}\"><code>{name}</code> ({status})</h2><p>{title}.</p><p>{about}</p>")
            .unwrap_or_default();
    }
    page(text)
}

/// Text as HTML, what stands in backticks as code.
fn with_code(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let parts = text.split('`').enumerate();
    parts.map(|(at, part)| if at % 2 == 1 { format!("<code>{part}</code>") } else { part.to_owned() }).collect()
}

fn page(html: String) -> Response {
    let policy = format!(
        "default-src 'none'; script-src {}; style-src 'unsafe-inline'; img-src data:; connect-src 'self'; \
         frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        script_sources(&html)
    );
    let mut response = Html(html).into_response();
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, HeaderValue::try_from(policy).ok()),
        (header::REFERRER_POLICY, Some(HeaderValue::from_static("no-referrer"))),
        (HeaderName::from_static("cross-origin-opener-policy"), Some(HeaderValue::from_static("same-origin"))),
        (header::CACHE_CONTROL, Some(HeaderValue::from_static("no-store"))),
    ] {
        headers.extend(value.map(|value| (name, value)));
    }
    response
}

/// The hash of each script that stands in the file: whatever else gets into the page does not run.
fn script_sources(html: &str) -> String {
    let scripts = html.split("<script>").skip(1).filter_map(|rest| rest.split("</script>").next());
    let hashes: Vec<_> =
        scripts.map(|script| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(script.as_bytes())))).collect();
    if hashes.is_empty() { "'none'".into() } else { hashes.join(" ") }
}
