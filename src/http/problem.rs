//! Errors as RFC 9457 problems. Every code is a stable word with a documented meaning; nothing in a
//! problem ever quotes a value of the request.

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use crate::intake::fields::FieldProblem;

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal, $status:ident, $title:literal;)+) => {
        /// What went wrong, as a word that stays.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Code { $($(#[doc = $doc])+ $variant),+ }

        impl Code {
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            #[must_use]
            pub const fn name(self) -> &'static str { match self { $(Self::$variant => $name),+ } }

            #[must_use]
            pub const fn status(self) -> StatusCode { match self { $(Self::$variant => StatusCode::$status),+ } }

            #[must_use]
            pub const fn title(self) -> &'static str { match self { $(Self::$variant => $title),+ } }

            /// What it means and what to do, for the documentation.
            #[must_use]
            pub const fn about(self) -> &'static str { match self { $(Self::$variant => concat!($($doc),+)),+ } }
        }
    };
}

codes! {
    /// The body is not valid JSON (UTF-8), is nested deeper than 32 levels, or has a key twice in one object; duplicate keys are named in `errors`.
    InvalidJson = "invalid_json", BAD_REQUEST, "The body is not JSON that can be taken";
    /// The body could not be read: it broke off, or its Content-Encoding does not decode.
    BadBody = "bad_body", BAD_REQUEST, "The body could not be read";
    /// This call needs an Idempotency-Key header, so that its repeat can be recognised.
    MissingIdempotencyKey = "missing_idempotency_key", BAD_REQUEST, "Idempotency-Key is missing";
    /// The Idempotency-Key is not one: 1 to 255 visible ASCII characters, bare or as a quoted string, sent once.
    BadIdempotencyKey = "bad_idempotency_key", BAD_REQUEST, "Idempotency-Key cannot be taken";
    /// A query parameter is unknown, stands twice or has a value that it cannot have; `errors` names it.
    BadParameter = "bad_parameter", BAD_REQUEST, "A query parameter is wrong";
    /// There is no valid key in the Authorization header (`Authorization: Bearer blf_…`).
    Unauthenticated = "unauthenticated", UNAUTHORIZED, "A valid API key is needed";
    /// The key is valid but lacks the permission that `detail` names.
    Forbidden = "forbidden", FORBIDDEN, "The key may not do this";
    /// There is no such thing, or it belongs to another tenant or environment: the two are never told apart.
    NotFound = "not_found", NOT_FOUND, "Not found";
    /// The path exists, but not with this method; the Allow header names those it has.
    MethodNotAllowed = "method_not_allowed", METHOD_NOT_ALLOWED, "Method not allowed";
    /// The Accept header takes neither `application/json` nor `application/problem+json`.
    NotAcceptable = "not_acceptable", NOT_ACCEPTABLE, "Only JSON can be answered";
    /// The body did not arrive in time.
    RequestTimeout = "request_timeout", REQUEST_TIMEOUT, "The body took too long";
    /// The delivery's state does not allow it now; `detail` names the state. A delivery that waits or is being sent is in flight already.
    NotInThisState = "not_in_this_state", CONFLICT, "Not possible in this state";
    /// Another send was opened since; `detail` names the current number. Look again before deciding.
    SendMoved = "send_moved", CONFLICT, "The delivery has moved on";
    /// Another hold stands than the one that `restored_at` names; `detail` says which. Look again before deciding.
    HoldMoved = "hold_moved", CONFLICT, "Another hold stands";
    /// The message is no longer kept, so it cannot be sent again.
    ContentPurged = "content_purged", CONFLICT, "The content is gone";
    /// The recipient has as many devices as one may have; remove one that is no longer in use.
    TooManyDevices = "too_many_devices", CONFLICT, "Too many devices";
    /// There are as many suppressions of the address as there may be; remove some, or suppress all categories at once.
    TooManySuppressions = "too_many_suppressions", CONFLICT, "Too many suppressions";
    /// There are as many pauses as there may be; lift some, or pause something larger.
    TooManyPauses = "too_many_pauses", CONFLICT, "Too many pauses";
    /// There are as many schedules as there may be; remove some.
    TooManySchedules = "too_many_schedules", CONFLICT, "Too many schedules";
    /// The body is larger than allowed, counted after decompression.
    BodyTooLarge = "body_too_large", PAYLOAD_TOO_LARGE, "The body is too large";
    /// The Content-Type is not `application/json`.
    UnsupportedMediaType = "unsupported_media_type", UNSUPPORTED_MEDIA_TYPE, "The body must be JSON";
    /// The Content-Encoding is neither `gzip` nor `br`.
    UnsupportedEncoding = "unsupported_encoding", UNSUPPORTED_MEDIA_TYPE, "The body's encoding is not supported";
    /// One or more fields are wrong; `errors` names every one.
    Invalid = "invalid", UNPROCESSABLE_ENTITY, "The request is not valid";
    /// The key, or `unique`, was used before with another request; `detail` says which of the two, `errors` names the parts that differ while that is known. A new intent needs a new key. For an action on a delivery: the key was used for another action, or with another body; nothing was done.
    KeyReused = "key_reused", UNPROCESSABLE_ENTITY, "The key, or `unique`, was used for another request";
    /// `intent_at` is older than repeats are remembered, so whether this is a repeat can no longer be known. It is not taken.
    TooOldToKnow = "too_old_to_know", UNPROCESSABLE_ENTITY, "Too old to know";
    /// The key calls more often than `[http.limit]` lets it, counted by this node; a batch counts its items. Nothing was done; send the same request, with the same key, again after Retry-After.
    RateLimited = "rate_limited", TOO_MANY_REQUESTS, "Too many calls";
    /// Something failed that should not; it is logged.
    Internal = "internal", INTERNAL_SERVER_ERROR, "Internal error";
    /// The store is away or too slow. Nothing is known to have happened; send the same request, with the same key, again after Retry-After.
    StoreUnavailable = "store_unavailable", SERVICE_UNAVAILABLE, "The store is unavailable";
    /// Too many large bodies are being read at once; send it again after Retry-After.
    Busy = "busy", SERVICE_UNAVAILABLE, "Too much at once";
}

/// A problem on its way out; the outermost layer writes its body, where the path is known.
#[derive(Clone, Debug)]
pub struct Problem {
    pub code: Code,
    pub detail: String,
    pub errors: Vec<FieldProblem>,
    /// Seconds, where the same request may work later.
    pub retry_after: u64,
}

impl Problem {
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into(), errors: Vec::new(), retry_after: 1 }
    }

    #[must_use]
    pub fn with(mut self, errors: Vec<FieldProblem>) -> Self {
        self.errors = errors;
        self
    }

    /// The fields of a request that are wrong.
    #[must_use]
    pub fn invalid(errors: Vec<FieldProblem>) -> Self {
        let many = errors.len();
        let detail = if many == 1 { "1 field is wrong.".into() } else { format!("{many} fields are wrong.") };
        Self::new(Code::Invalid, detail).with(errors)
    }

    #[must_use]
    pub fn not_found() -> Self {
        Self::new(Code::NotFound, "There is nothing here that this key can see.")
    }

    /// The body, with `docs` the address of the problems' documentation.
    #[must_use]
    pub fn body(&self, docs: &str, instance: &str) -> ProblemBody {
        ProblemBody {
            r#type: format!("{docs}#{}", self.code.name()),
            title: self.code.title().into(),
            status: self.code.status().as_u16(),
            detail: self.detail.clone(),
            instance: instance.into(),
            code: self.code.name().into(),
            errors: self
                .errors
                .iter()
                .map(|one| ErrorBody { pointer: one.pointer.clone(), detail: one.detail.clone() })
                .collect(),
        }
    }

    fn header(&self) -> Option<(HeaderName, HeaderValue)> {
        match self.code {
            Code::StoreUnavailable | Code::Busy | Code::RateLimited => {
                Some((header::RETRY_AFTER, HeaderValue::from(self.retry_after)))
            }
            Code::Unauthenticated => {
                Some((header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"belfry\"")))
            }
            Code::UnsupportedMediaType => Some((header::ACCEPT, HeaderValue::from_static("application/json"))),
            Code::UnsupportedEncoding => Some((header::ACCEPT_ENCODING, HeaderValue::from_static("gzip, br"))),
            _ => None,
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.code.status().into_response();
        if let Some((name, value)) = self.header() {
            response.headers_mut().insert(name, value);
        }
        response.extensions_mut().insert(self);
        response
    }
}

/// RFC 9457.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Problem)]
pub struct ProblemBody {
    /// Where this kind of problem is documented.
    pub r#type: String,
    pub title: String,
    #[schema(minimum = 400, maximum = 599)]
    pub status: u16,
    pub detail: String,
    /// The request's path.
    pub instance: String,
    /// The kind of problem as a word that stays.
    pub code: String,
    /// Every bad field at once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub errors: Vec<ErrorBody>,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = FieldProblem)]
pub struct ErrorBody {
    /// JSON pointer into the request; `/query/<name>` for a query parameter, `/path/<name>` for a part of the path.
    pub pointer: String,
    pub detail: String,
}
