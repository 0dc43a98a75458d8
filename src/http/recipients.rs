//! Stored recipients and their devices. Answers show no address and no token whole, whoever asks.

use axum::Json;
use axum::extract::{FromRequestParts, Path, Request, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use belfry_domain::ChannelKind;
use belfry_domain::device::{Standing, TokenFault};
use serde::Serialize;
use utoipa::ToSchema;

use super::api::Shared;
use super::auth::{Allowed, ToSee, ToSend};
use super::body::{MOST_BODY, json};
use super::closed_sets;
use super::openapi::{BodyProblems, DeviceProblems, NamedProblems, StoredProblems};
use super::problem::{Code, Problem};
use super::schema;
use crate::intake::address;
use crate::intake::fields::FieldProblem;
use crate::intake::instant::rfc3339;
use crate::intake::registrar::{read_device, read_profile};
use crate::ports::recipients::{Device, DeviceRef, MOST_DEVICES, NAME, Recipient, is_name};

/// What is kept of a recipient besides devices.
#[derive(ToSchema)]
pub struct Profile {
    /// `ann@example.com` or `Ann Lee <ann@example.com>`; international names are taken.
    #[schema(max_length = 512, examples("ann@example.com"), nullable = false, required = false)]
    pub email: Option<String>,
    /// E.164.
    #[schema(pattern = "^\\+[1-9][0-9]{6,14}$", nullable = false, required = false)]
    pub phone: Option<String>,
    /// A language tag.
    #[schema(
        pattern = "^[A-Za-z0-9]{1,8}([-_][A-Za-z0-9]{1,8})*$",
        max_length = 35,
        nullable = false,
        required = false
    )]
    pub locale: Option<String>,
    /// An IANA time zone.
    #[schema(max_length = 64, examples("Europe/Stockholm"), nullable = false, required = false)]
    pub time_zone: Option<String>,
}

/// A recipient as it is kept.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = StoredRecipient)]
pub struct RecipientView {
    pub id: String,
    /// Masked.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub email: Option<String>,
    /// Masked.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub phone: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub locale: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub time_zone: Option<String>,
    /// In the order of their ids.
    #[schema(max_items = 40)]
    pub devices: Vec<DeviceView>,
}

/// A device as it is kept.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = StoredDevice)]
pub struct DeviceView {
    pub id: String,
    #[schema(value_type = schema::DeviceKind)]
    pub kind: ChannelKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub app: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub environment: Option<String>,
    /// Masked: the end of a token, or the push service of a subscription.
    pub token: String,
    #[schema(value_type = DeviceStanding)]
    pub standing: &'static str,
    /// Why it is quarantined.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = closed_sets::TokenFault, required = false, nullable = false)]
    pub fault: Option<TokenFault>,
    /// Since when it is dead or quarantined.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, nullable = false)]
    pub since: Option<String>,
    /// The latest registration.
    #[schema(format = DateTime)]
    pub registered_at: String,
}

/// Whether messages go to a device.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub enum DeviceStanding {
    Live,
    /// Its provider said that the token is no longer in use.
    Dead,
    /// Its provider does not take the token, perhaps because of our own settings.
    Quarantined,
}

impl RecipientView {
    fn new(id: String, it: &Recipient) -> Self {
        let profile = &it.profile;
        Self {
            id,
            email: profile.email.as_ref().map(|mailbox| address::mask(ChannelKind::Email, &mailbox.email)),
            phone: profile.phone.as_ref().map(|phone| address::mask(ChannelKind::Sms, phone)),
            locale: profile.locale.clone(),
            time_zone: profile.time_zone.clone(),
            devices: it.devices.iter().map(DeviceView::new).collect(),
        }
    }
}

impl DeviceView {
    fn new(it: &Device) -> Self {
        let (standing, fault, since) = match it.standing {
            Standing::Live => ("live", None, None),
            Standing::Dead { at } => ("dead", None, Some(at)),
            Standing::Quarantined { fault, at } => ("quarantined", Some(fault), Some(at)),
        };
        Self {
            id: it.id.clone(),
            kind: it.kind,
            app: it.app.clone(),
            environment: it.environment.clone(),
            token: it.token.mask.clone(),
            standing,
            fault,
            since: since.map(rfc3339),
            registered_at: rfc3339(it.registered_at),
        }
    }
}

/// A recipient from the path.
pub struct Named(pub(super) String);

/// A device from the path.
pub struct NamedDevice(DeviceRef);

impl FromRequestParts<Shared> for Named {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Shared) -> Result<Self, Problem> {
        let Path(id) = Path::<String>::from_request_parts(parts, api).await.map_err(|_| misnamed(&["id"]))?;
        if is_name(&id) { Ok(Self(id)) } else { Err(misnamed(&["id"])) }
    }
}

impl FromRequestParts<Shared> for NamedDevice {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Shared) -> Result<Self, Problem> {
        let both = Path::<(String, String)>::from_request_parts(parts, api).await;
        let Path((recipient, device)) = both.map_err(|_| misnamed(&["id", "device"]))?;
        let wrong: Vec<&str> = [("id", &recipient), ("device", &device)]
            .into_iter()
            .filter(|(_, text)| !is_name(text))
            .map(|(name, _)| name)
            .collect();
        if wrong.is_empty() { Ok(Self(DeviceRef { recipient, device })) } else { Err(misnamed(&wrong)) }
    }
}

fn misnamed(parts: &[&str]) -> Problem {
    Problem::invalid(parts.iter().map(|part| FieldProblem::new(format!("/path/{part}"), NAME)).collect())
}

const fn created(is_new: bool) -> StatusCode {
    if is_new { StatusCode::CREATED } else { StatusCode::OK }
}

/// Keep a recipient
///
/// In place of what was kept; its devices stay. Safe to repeat.
#[utoipa::path(
    put,
    path = "/v1/recipients/{id}",
    tag = "recipients",
    operation_id = "put_recipient",
    params(("id" = String, Path, pattern = "^[A-Za-z0-9._~:@-]{1,255}$", description = "Your own name for the person.")),
    request_body = Profile,
    responses(
        (status = 200, description = "It is kept.", body = RecipientView),
        (status = 201, description = "It is kept, and is new.", body = RecipientView),
        BodyProblems
    ),
    security(("key" = []))
)]
pub async fn put(
    State(api): State<Shared>,
    allowed: Allowed<ToSend>,
    Named(id): Named,
    request: Request,
) -> Result<(StatusCode, Json<RecipientView>), Problem> {
    let read = api.json_body(request, MOST_BODY).await?;
    let profile = read_profile(&json(&read.bytes)?).map_err(Problem::invalid)?;
    let owner = allowed.caller.owner();
    let put = api.stored("put_profile", api.deps.registrar.put_profile(&owner, &id, profile)).await?;
    Ok((created(put.is_new), Json(RecipientView::new(id, &put.now))))
}

/// See a recipient
///
/// With its devices. Addresses and tokens are masked. Takes a key with `read` or with `send`.
#[utoipa::path(
    get,
    path = "/v1/recipients/{id}",
    tag = "recipients",
    operation_id = "recipient",
    params(("id" = String, Path, pattern = "^[A-Za-z0-9._~:@-]{1,255}$")),
    responses((status = 200, description = "As it is kept.", body = RecipientView), StoredProblems),
    security(("key" = []))
)]
pub async fn read(
    State(api): State<Shared>,
    allowed: Allowed<ToSee>,
    Named(id): Named,
) -> Result<Json<RecipientView>, Problem> {
    let found = api.stored("recipient", api.deps.registrar.recipient(&allowed.caller.owner(), &id)).await?;
    let found = found.ok_or_else(Problem::not_found)?;
    Ok(Json(RecipientView::new(id, &found)))
}

/// Forget a recipient
///
/// And its devices. What was accepted before is not touched. Safe to repeat.
#[utoipa::path(
    delete,
    path = "/v1/recipients/{id}",
    tag = "recipients",
    operation_id = "remove_recipient",
    params(("id" = String, Path, pattern = "^[A-Za-z0-9._~:@-]{1,255}$")),
    responses((status = 204, description = "There is none."), NamedProblems),
    security(("key" = []))
)]
pub async fn remove(
    State(api): State<Shared>,
    allowed: Allowed<ToSend>,
    Named(id): Named,
) -> Result<StatusCode, Problem> {
    let owner = allowed.caller.owner();
    api.stored("remove_recipient", api.deps.registrar.remove_recipient(&owner, &id)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Register a device
///
/// It is live from now on, whatever was said of it before, and the token is its own: another device that had it is
/// removed. Safe to repeat; best done whenever the app starts.
#[utoipa::path(
    put,
    path = "/v1/recipients/{id}/devices/{device}",
    tag = "recipients",
    operation_id = "register_device",
    params(
        ("id" = String, Path, pattern = "^[A-Za-z0-9._~:@-]{1,255}$", description = "The recipient; it need not be kept before."),
        ("device" = String, Path, pattern = "^[A-Za-z0-9._~:@-]{1,255}$", description = "Your own name for the device.")
    ),
    request_body = schema::Device,
    responses(
        (status = 200, description = "It is registered.", body = DeviceView),
        (status = 201, description = "It is registered, and is new.", body = DeviceView),
        DeviceProblems
    ),
    security(("key" = []))
)]
pub async fn register(
    State(api): State<Shared>,
    allowed: Allowed<ToSend>,
    NamedDevice(of): NamedDevice,
    request: Request,
) -> Result<(StatusCode, Json<DeviceView>), Problem> {
    let read = api.json_body(request, MOST_BODY).await?;
    let device = read_device(&json(&read.bytes)?).map_err(Problem::invalid)?;
    let owner = allowed.caller.owner();
    let Some(put) = api.stored("register", api.deps.registrar.register(&owner, &of, device)).await? else {
        let detail = format!("The recipient has {MOST_DEVICES} devices already. Remove one that is no longer in use.");
        return Err(Problem::new(Code::TooManyDevices, detail));
    };
    Ok((created(put.is_new), Json(DeviceView::new(&put.now))))
}

/// See a device
///
/// Takes a key with `read` or with `send`.
#[utoipa::path(
    get,
    path = "/v1/recipients/{id}/devices/{device}",
    tag = "recipients",
    operation_id = "device",
    params(
        ("id" = String, Path, pattern = "^[A-Za-z0-9._~:@-]{1,255}$"),
        ("device" = String, Path, pattern = "^[A-Za-z0-9._~:@-]{1,255}$")
    ),
    responses((status = 200, description = "As it is kept.", body = DeviceView), StoredProblems),
    security(("key" = []))
)]
pub async fn read_one(
    State(api): State<Shared>,
    allowed: Allowed<ToSee>,
    NamedDevice(of): NamedDevice,
) -> Result<Json<DeviceView>, Problem> {
    let found = api.stored("device", api.deps.registrar.device(&allowed.caller.owner(), &of)).await?;
    found.as_ref().map(|device| Json(DeviceView::new(device))).ok_or_else(Problem::not_found)
}

/// Remove a device
///
/// Nothing is sent to it any more. Safe to repeat.
#[utoipa::path(
    delete,
    path = "/v1/recipients/{id}/devices/{device}",
    tag = "recipients",
    operation_id = "remove_device",
    params(
        ("id" = String, Path, pattern = "^[A-Za-z0-9._~:@-]{1,255}$"),
        ("device" = String, Path, pattern = "^[A-Za-z0-9._~:@-]{1,255}$")
    ),
    responses((status = 204, description = "There is none."), NamedProblems),
    security(("key" = []))
)]
pub async fn remove_one(
    State(api): State<Shared>,
    allowed: Allowed<ToSend>,
    NamedDevice(of): NamedDevice,
) -> Result<StatusCode, Problem> {
    api.stored("remove_device", api.deps.registrar.remove_device(&allowed.caller.owner(), &of)).await?;
    Ok(StatusCode::NO_CONTENT)
}
