//! The API over HTTP: bearer keys in, one JSON answer or one problem out. Decides nothing about
//! deliveries; that is `intake`'s and the domain's.

pub mod admin_page;
pub mod api;
pub mod auth;
pub mod body;
pub mod cancellations;
pub mod closed_sets;
pub mod dead_tokens;
pub mod deliveries;
pub mod drain;
pub mod filters;
pub mod guarded_io;
pub mod headers;
pub mod keys;
pub mod keys_api;
pub mod limit;
pub mod lists;
pub mod notifications;
pub mod observe;
pub mod openapi;
pub mod ops;
pub mod outbox;
pub mod pages;
pub mod pauses;
pub mod preferences;
pub mod problem;
pub mod push_schema;
pub mod query;
pub mod recipients;
pub mod restored;
pub mod schedules;
pub mod schema;
mod seen;
pub mod server;
pub mod suppressions;
pub mod timeline;
pub mod view;
pub mod waiting;

use std::sync::Arc;

use axum::http::header;
use axum::response::IntoResponse as _;
use axum::routing::get;
use axum::{Router, middleware};
use tower_http::decompression::RequestDecompressionLayer;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::api::{Api, Shared};
pub use self::api::{ApiLimits, Deps, Workers};
pub use self::drain::Drain;
use self::problem::{Code, Problem};

/// The whole API.
pub fn router(deps: Deps) -> Router {
    let (routes, mut document) = collected().split_for_parts();
    openapi::close(&mut document);
    let document: Arc<str> = document.to_json().unwrap_or_default().into();
    let openapi = move || {
        let document = Arc::clone(&document);
        async move { ([(header::CONTENT_TYPE, "application/json")], document.to_string()).into_response() }
    };
    let routes = routes
        .route("/", get(admin_page::index))
        .route("/openapi.json", get(openapi))
        .route("/docs", get(admin_page::docs))
        .route("/docs/problems", get(admin_page::problems))
        .route("/admin", get(admin_page::admin));
    answered(routes, deps)
}

/// What a node without the API answers: whether it lives, is ready, and what it counts.
pub fn operations(deps: Deps) -> Router {
    let routes =
        OpenApiRouter::new().routes(routes!(ops::livez)).routes(routes!(ops::readyz)).routes(routes!(ops::metrics));
    answered(routes.split_for_parts().0, deps)
}

fn answered(routes: Router<Shared>, deps: Deps) -> Router {
    let api: Shared = Arc::new(Api::new(deps));
    routes
        .fallback(|| async { Problem::new(Code::NotFound, "There is nothing at this path.") })
        .method_not_allowed_fallback(|| async {
            Problem::new(Code::MethodNotAllowed, "The path exists, but not with this method.")
        })
        .layer(RequestDecompressionLayer::new())
        .layer(middleware::from_fn_with_state(Arc::clone(&api), observe::observe))
        .with_state(api)
}

/// The OpenAPI document, as served at `/openapi.json`.
#[must_use]
pub fn document() -> utoipa::openapi::OpenApi {
    let (_, mut document) = collected().split_for_parts();
    openapi::close(&mut document);
    document
}

fn collected() -> OpenApiRouter<Shared> {
    OpenApiRouter::with_openapi(openapi::frame())
        .routes(routes!(notifications::send, lists::list))
        .routes(routes!(notifications::send_batch))
        .routes(routes!(lists::search))
        .routes(routes!(notifications::read))
        .routes(routes!(notifications::cancel))
        .routes(routes!(cancellations::cancel_many))
        .routes(routes!(notifications::read_by_delivery))
        .routes(routes!(deliveries::redrive))
        .routes(routes!(deliveries::send_again))
        .routes(routes!(deliveries::resolve))
        .routes(routes!(seen::seen))
        .routes(routes!(recipients::put, recipients::read, recipients::remove))
        .routes(routes!(recipients::register, recipients::read_one, recipients::remove_one))
        .routes(routes!(dead_tokens::list))
        .routes(routes!(suppressions::put, suppressions::list))
        .routes(routes!(suppressions::check))
        .routes(routes!(suppressions::remove))
        .routes(routes!(preferences::put, preferences::read, preferences::remove))
        .routes(routes!(preferences::link))
        .routes(routes!(pauses::put, pauses::list))
        .routes(routes!(pauses::remove))
        .routes(routes!(schedules::list))
        .routes(routes!(schedules::put, schedules::read, schedules::remove))
        .routes(routes!(schedules::pause))
        .routes(routes!(schedules::resume))
        .routes(routes!(keys_api::list, keys_api::create))
        .routes(routes!(keys_api::revoke))
        .routes(routes!(restored::preview))
        .routes(routes!(restored::release))
        .routes(routes!(restored::cancel))
        .routes(routes!(outbox::look, outbox::clear))
        .routes(routes!(outbox::misbehaviour, outbox::misbehave))
        .routes(routes!(pages::look, pages::act))
        .routes(routes!(pages::choose, pages::chosen))
        .routes(routes!(ops::livez))
        .routes(routes!(ops::readyz))
        .routes(routes!(ops::metrics))
}
