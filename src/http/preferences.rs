//! What recipients want to hear, and how.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use belfry_domain::ChannelKind;
use belfry_domain::preferences::Switches as Said;
use serde::Serialize;
use utoipa::ToSchema;

use super::api::{Api, Shared};
use super::auth::{Allowed, ToSee, ToSend};
use super::body::{MOST_BODY, json};
use super::openapi::{BodyProblems, NamedProblems};
use super::problem::Problem;
use super::recipients::Named;
use crate::intake::instant::rfc3339;
use crate::intake::preferences::{Effective, LINK_LASTS, read_link};
use crate::ports::links::Link;
use crate::ports::preferences::Wishes;

/// On or off by channel. The more exact word counts, and what is not said is left to others.
#[derive(Debug, Serialize, ToSchema)]
pub struct Switches {
    /// On every channel that is not named.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, required = false)]
    pub all: Option<bool>,
    /// On `apns`, `fcm` and `web_push`; comes back as those three.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, required = false)]
    pub push: Option<bool>,
    #[serde(flatten)]
    #[schema(inline)]
    pub channels: ChannelSwitches,
}

/// By channel.
#[derive(Debug, Default, Serialize, ToSchema)]
pub struct ChannelSwitches {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, required = false)]
    pub email: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, required = false)]
    pub apns: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, required = false)]
    pub fcm: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, required = false)]
    pub web_push: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, required = false)]
    pub sms: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, required = false)]
    pub webhook: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, required = false)]
    pub chat: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, required = false)]
    pub inbox: Option<bool>,
}

/// What a recipient wants.
#[derive(ToSchema)]
pub struct Preferences {
    /// About every category. What is said of a category and a channel together counts before it; where what is said of
    /// the category and what is said here of the channel differ, it is off.
    #[schema(required = false, nullable = false)]
    pub every: Option<Switches>,
    /// By class. Classes that are `required` cannot be turned off.
    #[schema(required = false, nullable = false)]
    pub categories: Option<BTreeMap<String, Switches>>,
}

/// What a recipient wants, and what that comes to.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = StoredPreferences)]
pub struct PreferencesView {
    pub recipient: String,
    pub every: Switches,
    pub categories: BTreeMap<String, Switches>,
    /// Absent: the recipient has said nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, nullable = false)]
    pub changed_at: Option<String>,
    /// The public name of an API key, or `page`: the recipient, on the page of preferences.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub changed_by: Option<String>,
    /// For every configured class, by what they said and the class's defaults. An address that is suppressed gets nothing
    /// all the same: whoever unsubscribed by a link comes back by it, or by lifting that suppression.
    pub effective: Vec<EffectiveView>,
}

/// What a recipient's wishes and the class's defaults come to.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EffectivePreference)]
pub struct EffectiveView {
    pub category: String,
    /// It cannot be turned off.
    pub required: bool,
    /// Of the class's own channels; whether its messages go out there as far as the recipient is concerned.
    #[schema(inline)]
    pub channels: ChannelSwitches,
}

impl ChannelSwitches {
    fn new(said: &BTreeMap<ChannelKind, bool>) -> Self {
        let of = |channel| said.get(&channel).copied();
        Self {
            email: of(ChannelKind::Email),
            apns: of(ChannelKind::Apns),
            fcm: of(ChannelKind::Fcm),
            web_push: of(ChannelKind::WebPush),
            sms: of(ChannelKind::Sms),
            webhook: of(ChannelKind::Webhook),
            chat: of(ChannelKind::Chat),
            inbox: of(ChannelKind::Inbox),
        }
    }
}

impl Switches {
    fn new(said: &Said) -> Self {
        Self { all: said.all, push: None, channels: ChannelSwitches::new(&said.channels) }
    }
}

impl EffectiveView {
    fn new(it: Effective) -> Self {
        Self { category: it.category, required: it.required, channels: ChannelSwitches::new(&it.channels) }
    }
}

impl PreferencesView {
    fn new(api: &Api, recipient: String, kept: Option<Wishes>) -> Self {
        let (changed_at, changed_by) = kept.as_ref().map(|kept| (rfc3339(kept.changed_at), kept.by.clone())).unzip();
        let said = kept.map(|kept| kept.preferences).unwrap_or_default();
        Self {
            recipient,
            every: Switches::new(&said.every),
            categories: said.categories.iter().map(|(name, said)| (name.clone(), Switches::new(said))).collect(),
            changed_at,
            changed_by,
            effective: api.deps.preferences.effective(&said).into_iter().map(EffectiveView::new).collect(),
        }
    }
}

/// Keep what a recipient wants
///
/// In place of what was kept. What is accepted from now on and turned off ends `suppressed` at once, what was accepted
/// before at its next turn. The recipient need not be stored. Safe to repeat.
#[utoipa::path(
    put,
    path = "/v1/preferences/{id}",
    tag = "preferences",
    operation_id = "put_preferences",
    params(("id" = String, Path, pattern = "^[A-Za-z0-9._~:@-]{1,255}$", description = "Your own name for the recipient.")),
    request_body = Preferences,
    responses(
        (status = 200, description = "They are kept.", body = PreferencesView),
        (status = 201, description = "They are kept; none were before.", body = PreferencesView),
        BodyProblems
    ),
    security(("key" = []))
)]
pub async fn put(
    State(api): State<Shared>,
    allowed: Allowed<ToSend>,
    Named(id): Named,
    request: Request,
) -> Result<(StatusCode, Json<PreferencesView>), Problem> {
    let read = api.json_body(request, MOST_BODY).await?;
    let desk = &api.deps.preferences;
    let wanted = desk.read(&json(&read.bytes)?).map_err(Problem::invalid)?;
    let owner = allowed.caller.owner();
    let change = desk.change((&owner, &id), &allowed.key.id, |_| wanted.clone());
    let put = api.stored("preferences", change).await?;
    let status = if put.is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(PreferencesView::new(&api, id, Some(put.now)))))
}

/// See what a recipient wants
///
/// Of one who said nothing, what everybody gets. Takes a key with `read` or with `send`.
#[utoipa::path(
    get,
    path = "/v1/preferences/{id}",
    tag = "preferences",
    operation_id = "preferences",
    params(("id" = String, Path, pattern = "^[A-Za-z0-9._~:@-]{1,255}$")),
    responses((status = 200, description = "As they are kept.", body = PreferencesView), NamedProblems),
    security(("key" = []))
)]
pub async fn read(
    State(api): State<Shared>,
    allowed: Allowed<ToSee>,
    Named(id): Named,
) -> Result<Json<PreferencesView>, Problem> {
    let owner = allowed.caller.owner();
    let kept = api.stored("preferences", api.deps.preferences.of(&owner, &id)).await?;
    Ok(Json(PreferencesView::new(&api, id, kept)))
}

/// A page of the recipient's own.
#[derive(Debug, Serialize, ToSchema)]
pub struct PreferencesLink {
    /// Whoever has it can change what the recipient gets, without a login: give it to nobody else.
    pub url: String,
    /// No longer good from then on.
    #[schema(format = DateTime)]
    pub until: String,
}

/// What such a link is to be like.
#[derive(ToSchema)]
pub struct NewPreferencesLink {
    /// The language of the page, a language tag; where it is left out, that which the browser asks for.
    #[schema(max_length = 35, required = false, nullable = false, examples("de-AT"))]
    pub locale: Option<String>,
    /// At most 180 days from now; a day from now where it is left out.
    #[schema(format = DateTime, required = false, nullable = false)]
    pub until: Option<String>,
}

/// Link to a recipient's page
///
/// A page on which the recipient chooses what they get, as from the link in a mail. Nothing is kept: every call makes
/// a link of its own, and none can be taken back but by its end.
#[utoipa::path(
    post,
    path = "/v1/preferences/{id}/link",
    tag = "preferences",
    operation_id = "preferences_link",
    params(("id" = String, Path, pattern = "^[A-Za-z0-9._~:@-]{1,255}$")),
    request_body = Option<NewPreferencesLink>,
    responses((status = 200, description = "The link.", body = PreferencesLink), BodyProblems),
    security(("key" = []))
)]
pub async fn link(
    State(api): State<Shared>,
    allowed: Allowed<ToSend>,
    Named(id): Named,
    request: Request,
) -> Result<Json<PreferencesLink>, Problem> {
    let read = api.optional_json_body(request, MOST_BODY).await?;
    let now = api.deps.clock.now();
    let owner = allowed.caller.owner();
    let wanted = match &read {
        Some(read) => read_link(&json(&read.bytes)?, now).map_err(Problem::invalid)?,
        None => (None, None),
    };
    let until = wanted.1.unwrap_or_else(|| now.plus(LINK_LASTS));
    let link = Link {
        tenant: owner.tenant,
        environment: owner.environment,
        recipient: Some(id),
        address: None,
        category: None,
        locale: wanted.0,
        until,
    };
    Ok(Json(PreferencesLink { url: api.deps.intake.linker().url(&link), until: rfc3339(until) }))
}

/// Forget what a recipient wants
///
/// From now on they get what everybody gets who said nothing. Suppressions of addresses stay. Safe to repeat.
#[utoipa::path(
    delete,
    path = "/v1/preferences/{id}",
    tag = "preferences",
    operation_id = "forget_preferences",
    params(("id" = String, Path, pattern = "^[A-Za-z0-9._~:@-]{1,255}$")),
    responses((status = 204, description = "There are none."), NamedProblems),
    security(("key" = []))
)]
pub async fn remove(
    State(api): State<Shared>,
    allowed: Allowed<ToSend>,
    Named(id): Named,
) -> Result<StatusCode, Problem> {
    let owner = allowed.caller.owner();
    api.stored("preferences", api.deps.preferences.forget(&owner, &id)).await?;
    Ok(StatusCode::NO_CONTENT)
}
