//! API keys over the API, so that they can be made and revoked while a server holds the store.
//!
//! What an `admin` key reaches: the operator's keys every tenant; one of `live` its whole tenant; any
//! other its own tenant and environment only, because from `test` nothing may lead to sending for
//! real. What is out of reach is as absent as what does not exist.

use std::str::FromStr;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::api::{Api, Shared};
use super::auth::{Allowed, ToAdmin};
use super::body::{MOST_BODY, json};
use super::keys::{LIVE, MOST_NAME, NewKey, RANDOM_BYTES, refused_environment, refused_name};
use super::notifications::{Id, mark_replayed};
use super::openapi::{BodyProblems, ListProblems, ReadProblems};
use super::problem::Problem;
use crate::intake::fields::{Object, Problems, line};
use crate::intake::instant::rfc3339;
use crate::intake::json::Node;
use crate::ports::admin::{ApiKey, Can};

const MEMBERS: &[&str] = &["name", "tenant", "environment", "namespace", "can"];

/// A key to be made. What is left out is as in the key that asks, but for `can`.
#[derive(ToSchema)]
#[schema(as = NewKey)]
pub struct KeyAsked {
    /// What you call it, for lists.
    #[schema(min_length = 1, max_length = 100, nullable = false, required = false)]
    pub name: Option<String>,
    #[schema(min_length = 1, max_length = 64, pattern = "^[a-z0-9_-]+$", nullable = false, required = false)]
    pub tenant: Option<String>,
    /// `live`, `test`, or one that is configured: messages of any other would really go out, so that
    /// a slip of the pen is refused.
    #[schema(min_length = 1, max_length = 64, pattern = "^[a-z0-9_-]+$", nullable = false, required = false)]
    pub environment: Option<String>,
    /// Keys with the same namespace share their Idempotency-Keys.
    #[schema(min_length = 1, max_length = 64, pattern = "^[a-z0-9_-]+$", nullable = false, required = false)]
    pub namespace: Option<String>,
    /// Absent: `send` and `read`.
    #[schema(min_items = 1, max_items = 3, nullable = false, required = false)]
    pub can: Option<Vec<Permission>>,
}

/// What a key may do.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub enum Permission {
    Send,
    Read,
    Admin,
}

/// A key, without the key itself.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = ApiKey)]
pub struct KeyView {
    #[schema(pattern = "^key_[0-9a-f]{12}$")]
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub name: Option<String>,
    pub tenant: String,
    pub environment: String,
    pub namespace: String,
    #[schema(value_type = Vec<Permission>)]
    pub can: Vec<Can>,
    /// It reaches the keys of every tenant: the first key, or the operator's from the environment.
    #[serde(default)]
    pub operator: bool,
    #[schema(format = DateTime)]
    pub created_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, nullable = false)]
    pub revoked_at: Option<String>,
}

/// A key that was just made.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = CreatedApiKey)]
pub struct CreatedKey {
    /// The key itself. It is shown this once.
    pub key: String,
    #[serde(flatten)]
    pub about: KeyView,
}

/// A key's public name, as it may stand in a path.
pub struct KeyId(String);

impl FromStr for KeyId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let hex = |digits: &str| digits.len() == 12 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        if text.strip_prefix("key_").is_some_and(hex) { Ok(Self(text.to_owned())) } else { Err(()) }
    }
}

/// Keys, oldest first.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = ApiKeyList)]
pub struct KeyList {
    pub data: Vec<KeyView>,
}

impl KeyList {
    #[must_use]
    pub fn of<'a>(keys: impl IntoIterator<Item = &'a ApiKey>) -> Self {
        Self { data: keys.into_iter().map(KeyView::new).collect() }
    }

    #[must_use]
    pub fn keys(&self) -> &[KeyView] {
        &self.data
    }
}

impl KeyView {
    #[must_use]
    pub fn new(key: &ApiKey) -> Self {
        Self {
            id: key.id.clone(),
            name: key.name.clone(),
            tenant: key.tenant.clone(),
            environment: key.environment.clone(),
            namespace: key.namespace.clone(),
            can: key.can.clone(),
            operator: key.operator,
            created_at: rfc3339(key.created_at),
            revoked_at: key.revoked_at.map(rfc3339),
        }
    }
}

/// List API keys
///
/// Those that the asking key reaches, revoked ones too, oldest first; at most 1,000 are kept track
/// of. Neither keys nor their hashes are shown.
#[utoipa::path(
    get,
    path = "/v1/keys",
    tag = "keys",
    operation_id = "list_keys",
    responses((status = 200, description = "All of them.", body = KeyList), ListProblems),
    security(("key" = []))
)]
pub async fn list(State(api): State<Shared>, allowed: Allowed<ToAdmin>) -> Result<Json<KeyList>, Problem> {
    let all = api.stored("list", api.deps.api_keys.list()).await?;
    let seen = all.iter().filter(|key| reaches(&allowed.key, &key.tenant, &key.environment));
    Ok(Json(KeyList::of(seen)))
}

/// Make an API key
///
/// The answer holds the key, this once. A call whose answer was lost has left a key that nobody
/// knows: it stands in the list and can be revoked.
#[utoipa::path(
    post,
    path = "/v1/keys",
    tag = "keys",
    operation_id = "create_key",
    request_body = KeyAsked,
    responses((status = 201, description = "It works from now on.", body = CreatedKey), BodyProblems),
    security(("key" = []))
)]
pub async fn create(
    State(api): State<Shared>,
    allowed: Allowed<ToAdmin>,
    request: Request,
) -> Result<Response, Problem> {
    let read = api.json_body(request, MOST_BODY).await?;
    let wanted = asked(&api, &allowed.key, &json(&read.bytes)?)?;
    let (secret, key) = wanted.made(random(&api), api.deps.clock.now());
    let about = KeyView::new(&key);
    api.stored("create", api.deps.api_keys.create(key)).await?;
    Ok((StatusCode::CREATED, Json(CreatedKey { key: secret, about })).into_response())
}

/// Revoke an API key
///
/// At once on this node, within 3 seconds on others. Safe to repeat: the answer keeps the first
/// time.
#[utoipa::path(
    delete,
    path = "/v1/keys/{id}",
    tag = "keys",
    operation_id = "revoke_key",
    params(("id" = String, Path, description = "`key_…`")),
    responses((status = 200, description = "It lets nobody in any more.", body = KeyView, headers(
        ("Idempotency-Replayed" = Option<String>, description = "`true` where it was revoked before.")
    )), ReadProblems),
    security(("key" = []))
)]
pub async fn revoke(
    State(api): State<Shared>,
    allowed: Allowed<ToAdmin>,
    Id(KeyId(id)): Id<KeyId>,
) -> Result<Response, Problem> {
    let found = api.stored("by_id", api.deps.api_keys.by_id(&id)).await?;
    let found = found.filter(|key| reaches(&allowed.key, &key.tenant, &key.environment));
    let before = found.ok_or_else(Problem::not_found)?;
    if !api.stored("revoke", api.deps.api_keys.revoke(&id, api.deps.clock.now())).await? {
        return Err(Problem::not_found());
    }
    api.key_cache.forget(&before.hash);
    let now = api.stored("by_id", api.deps.api_keys.by_id(&id)).await?.ok_or_else(Problem::not_found)?;
    let mut response = Json(KeyView::new(&now)).into_response();
    if before.revoked_at.is_some() {
        mark_replayed(&mut response);
    }
    Ok(response)
}

fn reaches(own: &ApiKey, tenant: &str, environment: &str) -> bool {
    let same_tenant = own.tenant == tenant;
    own.operator || same_tenant && (own.environment == LIVE || own.environment == environment)
}

fn random(api: &Api) -> [u8; RANDOM_BYTES] {
    let mut random = [0; RANDOM_BYTES];
    for part in random.chunks_mut(8) {
        let roll = api.deps.dice.roll().to_be_bytes();
        part.copy_from_slice(&roll[..part.len()]);
    }
    random
}

fn asked(api: &Api, own: &ApiKey, node: &Node<'_>) -> Result<NewKey, Problem> {
    let mut problems = Problems::default();
    let Some(object) = Object::open(node, "", MEMBERS, &mut problems) else {
        return Err(Problem::invalid(problems.all()));
    };
    let mut name_of = |member: &str, default: &str| {
        if !object.has(member) {
            return default.to_owned();
        }
        let name = object.text(member, line(4096), &mut problems).unwrap_or_else(|| default.to_owned());
        if let Some(why) = refused_name(&name) {
            problems.add(object.at(member), why);
        }
        name
    };
    let tenant = name_of("tenant", &own.tenant);
    let environment = name_of("environment", &own.environment);
    let namespace = name_of("namespace", &own.namespace);
    let can = permissions(&object, &mut problems);
    let name = object.text("name", line(MOST_NAME), &mut problems);
    if tenant != own.tenant && !own.operator {
        problems.add("/tenant", "must be the tenant of the key that asks: another one takes the operator's key");
    } else if !reaches(own, &tenant, &environment) {
        problems.add("/environment", "must be the environment of the key that asks: another one takes a `live` key");
    } else if let Some(why) = refused_environment(&environment, &(api.deps.environments)()) {
        problems.add("/environment", why);
    }
    if !problems.is_empty() {
        return Err(Problem::invalid(problems.all()));
    }
    Ok(NewKey { name, tenant, environment, namespace, can })
}

fn permissions(object: &Object<'_, '_>, problems: &mut Problems) -> Vec<Can> {
    if !object.has("can") {
        return vec![Can::Send, Can::Read];
    }
    let items = object.list("can", Can::ALL.len(), problems);
    if items.is_empty() {
        problems.add("/can", "must name at least one permission");
    }
    let mut can = Vec::new();
    for (pointer, item) in items {
        match item.text().and_then(|text| Can::ALL.into_iter().find(|one| one.name() == text)) {
            Some(one) => can.push(one),
            None => problems.add(pointer, "must be send, read or admin"),
        }
    }
    can
}
