//! The recipients' own pages, behind the links in their mail: unsubscribe (RFC 8058) and preferences. The link is the
//! only key. Mail gateways fetch every link that they see: GET and HEAD change nothing.

mod form;
mod html;
mod visit;
mod words;

use axum::extract::{Path, Request, State};
use axum::http::HeaderMap;
use axum::response::Response;
use utoipa::ToSchema;

use super::api::Shared;
use super::openapi::PageProblems;
use crate::intake::pages::Standing;
use form::Wish;
use visit::{Place, Visit};

/// The token in the path, which no log and no error may show.
pub type Token = Path<String>;

/// What a page's form, or one click of a mail program, sends.
#[derive(ToSchema)]
pub struct LinkForm {
    /// `unsubscribe` or `resubscribe`: the buttons of the page.
    #[schema(nullable = false, required = false)]
    pub action: Option<String>,
    /// `One-Click` (RFC 8058): unsubscribes. So does an empty body.
    #[schema(rename = "List-Unsubscribe", nullable = false, required = false)]
    pub one_click: Option<String>,
}

/// What the page of preferences sends.
#[derive(ToSchema)]
pub struct PreferencesForm {
    /// Each that was shown, such as `marketing/email`.
    pub shown: Vec<String>,
    /// Of these, those that are to come.
    #[schema(nullable = false, required = false)]
    pub on: Option<Vec<String>>,
}

/// A recipient's link
///
/// The question whether to unsubscribe, or how it stands; of a link to preferences their page. Changes nothing, however
/// often it is fetched.
#[utoipa::path(
    get,
    path = "/u/{token}",
    tag = "pages",
    operation_id = "open_link",
    params(("token" = String, Path, description = "As it stands in the mail.")),
    responses(
        (status = 200, description = "The page.", body = String, content_type = "text/html"),
        (status = 404, description = "A page that says that the link is not valid.", body = String, content_type = "text/html"),
        (status = 410, description = "A page that says so of a link to preferences.", body = String, content_type = "text/html"),
        (status = 503, description = "A page that asks to try again.", body = String, content_type = "text/html"),
        PageProblems
    ),
    security(())
)]
pub async fn look(State(api): State<Shared>, Path(token): Token, headers: HeaderMap) -> Response {
    let visit = match Visit::begin(&api, &token, &headers, Place::Link) {
        Ok(visit) => visit,
        Err(gone) => return *gone,
    };
    if visit.link.category.is_none() {
        return visit.choices(None).await;
    }
    match api.asked("suppressions", api.deps.pages.standing(&visit.link)).await {
        Ok(standing) => visit.standing(standing, standing == Standing::On),
        Err(_) => visit.failed(),
    }
}

/// Unsubscribe, or take it back
///
/// As RFC 8058 has it: no cookie, no redirect, safe to repeat. What is not understood changes nothing.
#[utoipa::path(
    post,
    path = "/u/{token}",
    tag = "pages",
    operation_id = "unsubscribe",
    params(("token" = String, Path, description = "As it stands in the mail.")),
    request_body(
        content((LinkForm = "application/x-www-form-urlencoded"), (LinkForm = "multipart/form-data"), (LinkForm = "application/json")),
        description = "An empty body unsubscribes."
    ),
    responses(
        (status = 200, description = "A page that says how it stands now.", body = String, content_type = "text/html"),
        (status = 400, description = "A page that says that nothing has changed: the form is none of these, or says two things.", body = String, content_type = "text/html"),
        (status = 404, description = "A page that says that the link is not valid.", body = String, content_type = "text/html"),
        (status = 410, description = "A page that says so of a link to preferences.", body = String, content_type = "text/html"),
        (status = 503, description = "A page that asks to try again.", body = String, content_type = "text/html"),
        PageProblems
    ),
    security(())
)]
pub async fn act(State(api): State<Shared>, Path(token): Token, headers: HeaderMap, request: Request) -> Response {
    let visit = match Visit::begin(&api, &token, &headers, Place::Link) {
        Ok(visit) => visit,
        Err(gone) => return *gone,
    };
    let wish = match visit.posted(&headers, request).await {
        Ok(fields) => form::wish(&fields),
        Err(failed) => return failed,
    };
    let Some(wish) = wish else { return visit.not_understood() };
    if visit.link.category.is_none() {
        return visit.choices(None).await;
    }
    let desk = &api.deps.pages;
    let done = match wish {
        Wish::Unsubscribe => api.asked("suppress", desk.unsubscribe(&visit.link)).await,
        Wish::Resubscribe => api.asked("suppress", desk.resubscribe(&visit.link)).await,
    };
    let standing = async {
        done?;
        api.asked("suppressions", desk.standing(&visit.link)).await
    };
    match standing.await {
        Ok(standing) => visit.standing(standing, false),
        Err(_) => visit.failed(),
    }
}

/// A recipient's preferences
///
/// What can be chosen, by class and means.
#[utoipa::path(
    get,
    path = "/u/{token}/preferences",
    tag = "pages",
    operation_id = "open_preferences",
    params(("token" = String, Path, description = "As it stands in the mail.")),
    responses(
        (status = 200, description = "The page.", body = String, content_type = "text/html"),
        (status = 404, description = "A page that says that the link is not valid.", body = String, content_type = "text/html"),
        (status = 410, description = "A page that says that the link is over.", body = String, content_type = "text/html"),
        (status = 503, description = "A page that asks to try again.", body = String, content_type = "text/html"),
        PageProblems
    ),
    security(())
)]
pub async fn choose(State(api): State<Shared>, Path(token): Token, headers: HeaderMap) -> Response {
    match Visit::begin(&api, &token, &headers, Place::Preferences) {
        Ok(visit) => visit.choices(None).await,
        Err(gone) => *gone,
    }
}

/// Choose
///
/// Keeps what was chosen, of what the form showed.
#[utoipa::path(
    post,
    path = "/u/{token}/preferences",
    tag = "pages",
    operation_id = "choose_preferences",
    params(("token" = String, Path, description = "As it stands in the mail.")),
    request_body(content((PreferencesForm = "application/x-www-form-urlencoded"), (PreferencesForm = "multipart/form-data"))),
    responses(
        (status = 200, description = "The page, with what counts now.", body = String, content_type = "text/html"),
        (status = 400, description = "A page that says that nothing has changed.", body = String, content_type = "text/html"),
        (status = 404, description = "A page that says that the link is not valid.", body = String, content_type = "text/html"),
        (status = 410, description = "A page that says that the link is over.", body = String, content_type = "text/html"),
        (status = 503, description = "A page that asks to try again.", body = String, content_type = "text/html"),
        PageProblems
    ),
    security(())
)]
pub async fn chosen(State(api): State<Shared>, Path(token): Token, headers: HeaderMap, request: Request) -> Response {
    let visit = match Visit::begin(&api, &token, &headers, Place::Preferences) {
        Ok(visit) => visit,
        Err(gone) => return *gone,
    };
    if visit.is_over() {
        return visit.gone();
    }
    let chosen = match visit.posted(&headers, request).await {
        Ok(fields) => form::chosen(&fields),
        Err(failed) => return failed,
    };
    let Some(chosen) = chosen else { return visit.not_understood() };
    match api.asked("preferences", api.deps.pages.choose(&visit.link, &chosen)).await {
        Ok(()) => visit.choices(Some(&chosen)).await,
        Err(_) => visit.failed(),
    }
}
