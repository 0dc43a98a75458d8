//! The OpenAPI document: generated from the handlers, completed with what they share.

use std::borrow::Cow;
use std::collections::BTreeMap;

use utoipa::openapi::path::Operation;
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, Schema, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{ContentBuilder, Header, OpenApi, Ref, RefOr, Response, ResponseBuilder};
use utoipa::{IntoResponses, OpenApi as _, PartialSchema, ToSchema};

use super::problem::{Code, ErrorBody, ProblemBody};
use super::schema::NewNotification;
use crate::intake::schedules::NOT_SCHEDULED;

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Belfry",
        description = "Notification delivery: one intent, one effect, whatever is repeated on the way.\n\n\
            Send every request with a key that stays the same for every repeat of one intent: repeats are \
            recognised and answered as success, with the first answer's bytes and `Idempotency-Replayed: true`. \
            Keys are remembered as long as their notification: `remembered_until` says how long. \
            Tenant, environment and permissions come from the API key alone.\n\n\
            A revoked API key stops working within 3 seconds. Bodies may be compressed (`gzip`, `br`); limits count \
            decompressed bytes: 1 MiB, a batch 8 MiB, a notification with attachments 15 MiB of which at most 1 MiB \
            is not attachments. JSON is taken with at most 32 levels, without duplicate keys, in UTF-8.\n\n\
            Where calls are limited (`[http.limit]`), every answer to a call that was counted has `RateLimit-Policy` and \
            `RateLimit`: what its key may still call on this node. A batch counts its items.",
        license(name = "Apache-2.0", identifier = "Apache-2.0")
    ),
    components(schemas(ProblemBody, ErrorBody)),
    tags(
        (name = "notifications", description = "Ask for notifications and see what became of them"),
        (name = "deliveries", description = "What people do to deliveries"),
        (name = "recipients", description = "Recipients and their devices, where they are kept here; and tokens that died"),
        (name = "suppressions", description = "Addresses that nothing, or nothing of a category, may go to"),
        (name = "pauses", description = "What waits until it is resumed, and how much"),
        (name = "schedules", description = "What is sent again and again, at times of a zone"),
        (name = "keys", description = "API keys: who may call, and for which tenant and environment"),
        (name = "pages", description = "What recipients open from links in their mail: HTML, and no API key"),
        (name = "restore", description = "What is held since the store was restored from a backup; for the operator's keys"),
        (name = "outbox", description = "What would have been sent: for development and for callers' own tests"),
        (name = "operations", description = "Health, metrics and this document")
    )
)]
struct Document;

/// The frame that the routes are collected into.
#[must_use]
pub fn frame() -> OpenApi {
    let mut document = Document::openapi();
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("An API key, `blf_<environment>_…`, made by `belfry keys create`."))
        .build();
    if let Some(components) = &mut document.components {
        components.add_security_scheme("key", SecurityScheme::Http(bearer));
    }
    document
}

/// Requests take known members only; the derive cannot say so.
const CLOSED: &[&str] = &[
    "AfterSend",
    "Attachment",
    "Cancel",
    "CancelHeld",
    "Content",
    "Device",
    "Filter",
    "LocalSendAt",
    "Misbehave",
    "MissedRuns",
    "NewBatch",
    "NewCancellation",
    "NewKey",
    "NewNotification",
    "NewPause",
    "NewPreferencesLink",
    "NewSchedule",
    "NewSuppression",
    "Preferences",
    "Profile",
    "Push",
    "PushAction",
    "Recipient",
    "ReleaseHeld",
    "Resolve",
    "Search",
    "Seen",
    "SuppressionQuery",
    "Switches",
];

/// Completes what was collected.
pub fn close(document: &mut OpenApi) {
    for item in document.paths.paths.values_mut() {
        let all = [&mut item.get, &mut item.put, &mut item.post, &mut item.delete];
        all.into_iter().flatten().for_each(counted);
    }
    let Some(components) = &mut document.components else { return };
    for (name, about) in RATE {
        components.headers.insert(name.to_owned(), RefOr::T(text_header(about)));
    }
    for name in CLOSED {
        let Some(RefOr::T(schema)) = components.schemas.get_mut(*name) else { continue };
        flatten(schema);
        if let Schema::Object(object) = schema {
            object.additional_properties = Some(Box::new(AdditionalProperties::FreeForm(false)));
        }
    }
}

/// One object of those that a flattened member made of it: of several none could say that there is no more.
fn flatten(schema: &mut Schema) {
    let Schema::AllOf(all) = schema else { return };
    let mut whole = ObjectBuilder::new().schema_type(Type::Object).description(all.description.take()).build();
    for item in &all.items {
        if let RefOr::T(Schema::Object(part)) = item {
            whole.properties.extend(part.properties.clone());
            whole.required.extend(part.required.clone());
        }
    }
    *schema = Schema::Object(whole);
}

/// The headers of what is counted, on calls that may be refused for too many. What is refused before its key is looked
/// at has none.
fn counted(operation: &mut Operation) {
    let limited = Code::RateLimited.status().as_u16().to_string();
    if !operation.responses.responses.contains_key(&limited) {
        return;
    }
    let before_the_key = [Code::Unauthenticated, Code::MethodNotAllowed, Code::NotAcceptable];
    let uncounted = before_the_key.map(|code| code.status().as_u16().to_string());
    for (status, response) in &mut operation.responses.responses {
        let RefOr::T(response) = response else { continue };
        if uncounted.contains(status) {
            continue;
        }
        for (name, _) in RATE {
            response.headers.insert(name.to_owned(), RefOr::Ref(Ref::new(format!("#/components/headers/{name}"))));
        }
    }
}

/// draft-ietf-httpapi-ratelimit-headers.
const RATE: [(&str, &str); 2] = [
    (
        "RateLimit",
        "What the key may still call on this node. Where calls are limited and this one was counted, or is one too many.",
    ),
    ("RateLimit-Policy", "The limit of the key. Where there is `RateLimit`."),
];

/// A batch item: a notification with a key of its own.
pub struct BatchItem;

impl PartialSchema for BatchItem {
    fn schema() -> RefOr<Schema> {
        let key = ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some("^[!-~]+$"))
            .min_length(Some(1))
            .max_length(Some(255))
            .description(Some("The item's idempotency key: the same as the header of a single request."));
        match NewNotification::schema() {
            RefOr::T(Schema::Object(mut object)) => {
                object.properties.insert("key".into(), RefOr::T(key.into()));
                object.required.push("key".into());
                object.additional_properties = Some(Box::new(AdditionalProperties::FreeForm(false)));
                RefOr::T(Schema::Object(object))
            }
            other => other,
        }
    }
}

impl ToSchema for BatchItem {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("BatchItem")
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        NewNotification::schemas(schemas);
    }
}

/// What a schedule sends: a notification without what says when, or which.
pub struct ScheduledNotification;

impl PartialSchema for ScheduledNotification {
    fn schema() -> RefOr<Schema> {
        match NewNotification::schema() {
            RefOr::T(Schema::Object(mut object)) => {
                object.properties.retain(|name, _| !NOT_SCHEDULED.contains(&name.as_str()));
                object.description = Some(SCHEDULED.into());
                object.additional_properties = Some(Box::new(AdditionalProperties::FreeForm(false)));
                RefOr::T(Schema::Object(object))
            }
            other => other,
        }
    }
}

const SCHEDULED: &str = "What is sent at each run, as `POST /v1/notifications` takes it but for what says when, or which \
                         intent it is. At most 32 KiB.";

impl ToSchema for ScheduledNotification {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("ScheduledNotification")
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        NewNotification::schemas(schemas);
    }
}

macro_rules! problem_set {
    ($(#[$doc:meta])* $name:ident = $($set:expr),+) => {
        $(#[$doc])*
        pub struct $name;

        impl IntoResponses for $name {
            fn responses() -> BTreeMap<String, RefOr<Response>> {
                problem_responses(&[$(&$set[..]),+].concat())
            }
        }
    };
}

const ALWAYS: [Code; 8] = [
    Code::BadParameter,
    Code::Unauthenticated,
    Code::Forbidden,
    Code::MethodNotAllowed,
    Code::NotAcceptable,
    Code::RateLimited,
    Code::Internal,
    Code::StoreUnavailable,
];
const BODY: [Code; 8] = [
    Code::InvalidJson,
    Code::BadBody,
    Code::RequestTimeout,
    Code::BodyTooLarge,
    Code::UnsupportedMediaType,
    Code::UnsupportedEncoding,
    Code::Invalid,
    Code::Busy,
];
const KEYED: [Code; 2] = [Code::MissingIdempotencyKey, Code::BadIdempotencyKey];

problem_set!(
    /// Of `POST /v1/notifications`.
    SendProblems = ALWAYS, BODY, KEYED, [Code::KeyReused, Code::TooOldToKnow]
);
problem_set!(
    /// Of calls that take a body.
    BodyProblems = ALWAYS, BODY
);
problem_set!(
    /// Of calls that name a notification.
    ReadProblems = ALWAYS, [Code::NotFound, Code::UnsupportedEncoding]
);
problem_set!(
    /// Of calls that filter by query parameters.
    ListProblems = ALWAYS, [Code::UnsupportedEncoding]
);
problem_set!(
    /// Of calls that name a recipient or a device, whether there is one or not.
    NamedProblems = ALWAYS, [Code::Invalid, Code::UnsupportedEncoding]
);
problem_set!(
    /// Of calls that read one.
    StoredProblems = ALWAYS, [Code::NotFound, Code::Invalid, Code::UnsupportedEncoding]
);
problem_set!(
    /// Of a registration.
    DeviceProblems = ALWAYS, BODY, [Code::TooManyDevices]
);
problem_set!(
    /// Of a suppression.
    SuppressionProblems = ALWAYS, BODY, [Code::TooManySuppressions]
);
problem_set!(
    /// Of a pause.
    PauseProblems = ALWAYS, BODY, [Code::TooManyPauses]
);
problem_set!(
    /// Of a schedule.
    ScheduleProblems = ALWAYS, BODY, [Code::TooManySchedules]
);
problem_set!(
    /// Of what is done about what is held after a restore.
    HeldProblems = ALWAYS, BODY, [Code::HoldMoved]
);
problem_set!(
    /// Of health and metrics.
    OpsProblems = [Code::BadParameter]
);
problem_set!(
    /// Of a cancellation.
    CancelProblems = ALWAYS, BODY, [Code::NotFound]
);
problem_set!(
    /// Of redrive, send-again and resolve.
    ActProblems =
        ALWAYS,
        BODY,
        KEYED,
        [Code::NotFound, Code::NotInThisState, Code::SendMoved, Code::ContentPurged, Code::KeyReused]
);

problem_set!(
    /// Of what a recipient's device tells.
    SeenProblems =
        [
            Code::BadParameter,
            Code::MethodNotAllowed,
            Code::NotAcceptable,
            Code::Internal,
            Code::StoreUnavailable,
            Code::NotFound,
            Code::NotInThisState
        ],
        BODY
);

problem_set!(
    /// Of recipients' pages, beside the pages themselves.
    PageProblems = [Code::MethodNotAllowed, Code::UnsupportedEncoding, Code::Internal]
);

/// One response per status, which names the codes that come with it.
fn problem_responses(codes: &[Code]) -> BTreeMap<String, RefOr<Response>> {
    let mut by_status: BTreeMap<u16, Vec<Code>> = BTreeMap::new();
    for code in codes {
        by_status.entry(code.status().as_u16()).or_default().push(*code);
    }
    let schema = Ref::from_schema_name("Problem");
    let one = |codes: &[Code]| {
        let words: Vec<_> = codes.iter().map(|code| format!("`{}`: {}.", code.name(), code.title())).collect();
        let content = ContentBuilder::new().schema(Some(RefOr::Ref(schema.clone()))).build();
        let mut response =
            ResponseBuilder::new().description(words.join(" ")).content("application/problem+json", content);
        if codes.iter().any(|code| matches!(code, Code::StoreUnavailable | Code::Busy | Code::RateLimited)) {
            response = response.header("Retry-After", text_header("Seconds to wait before the same request again."));
        }
        if codes.contains(&Code::Unauthenticated) {
            response = response.header("WWW-Authenticate", text_header("`Bearer`"));
        }
        RefOr::T(response.build())
    };
    by_status.into_iter().map(|(status, codes)| (status.to_string(), one(&codes))).collect()
}

fn text_header(description: &str) -> Header {
    let mut header = Header::new(ObjectBuilder::new().schema_type(Type::String));
    header.description = Some(description.into());
    header
}
