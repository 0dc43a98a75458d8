//! Requests as the OpenAPI document describes them. What reads them is `intake`, which names every
//! bad field at once; a test holds the two to the same members.

use std::collections::BTreeMap;

use super::push_schema::Push;
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use super::closed_sets::{ChannelAsked, ResolvedTo};

/// One intent to tell one recipient something. `template` or `content`, not both.
#[derive(ToSchema)]
pub struct NewNotification {
    /// A configured class: `code`, `security`, `receipt`, `transactional`, `digest`, `marketing`, or one of your own.
    #[schema(min_length = 1, max_length = 64, examples("receipt"))]
    pub class: String,
    pub to: Recipient,
    /// A template's name.
    #[schema(min_length = 1, max_length = 128, nullable = false, required = false)]
    pub template: Option<String>,
    /// What the template is filled with. Numbers keep every digit.
    #[schema(value_type = Object, required = false)]
    pub data: Option<()>,
    /// Beside a template only what goes around its mail: from, reply_to, cc, bcc, headers, attachments.
    #[schema(nullable = false, required = false)]
    pub content: Option<Content>,
    /// Absent: the first of the class's channels that there is an address for.
    #[schema(min_items = 1, max_items = 9, nullable = false, required = false)]
    pub channels: Option<Vec<ChannelAsked>>,
    /// What it is about, such as `order:42`; for caps.
    #[schema(
        min_length = 1,
        max_length = 255,
        pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]+$",
        nullable = false,
        required = false
    )]
    pub scope: Option<String>,
    /// Your own name for it, for searching.
    #[schema(
        min_length = 1,
        max_length = 255,
        pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]+$",
        nullable = false,
        required = false
    )]
    pub reference: Option<String>,
    /// What it belongs to, for searching and cancelling.
    #[schema(
        min_length = 1,
        max_length = 255,
        pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]+$",
        nullable = false,
        required = false
    )]
    pub group: Option<String>,
    /// A business key: the same one in the same class is the same intent, under whatever header key.
    #[schema(
        min_length = 1,
        max_length = 255,
        pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]+$",
        nullable = false,
        required = false
    )]
    pub unique: Option<String>,
    /// A later one takes an earlier one's place on the device. Alone it supersedes nothing: see `version`.
    #[schema(
        min_length = 1,
        max_length = 255,
        pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]+$",
        nullable = false,
        required = false
    )]
    pub collapse: Option<String>,
    /// With `collapse`: an unsent one with a lower version to the same address ends superseded.
    #[schema(nullable = false, required = false)]
    pub version: Option<i64>,
    /// In a class that gathers: what else its digest is made of has the same.
    #[schema(
        min_length = 1,
        max_length = 255,
        pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]+$",
        nullable = false,
        required = false
    )]
    pub digest: Option<String>,
    /// Not before; at most 90 days ahead. One that has passed means now.
    #[schema(inline, nullable = false, required = false)]
    pub send_at: Option<SendAt>,
    /// Not after; the class's own expiry where that comes first.
    #[schema(format = DateTime, nullable = false, required = false)]
    pub expires_at: Option<String>,
    /// When the intent came up. One older than repeats are remembered is not taken.
    #[schema(format = DateTime, nullable = false, required = false)]
    pub intent_at: Option<String>,
    /// Your own; at most 4 KiB of JSON.
    #[schema(value_type = Object, required = false)]
    pub metadata: Option<()>,
}

/// A moment, or a time of the recipient's own day.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub enum SendAt {
    #[schema(format = DateTime)]
    Moment(String),
    Local(LocalSendAt),
}

/// In the recipient's time zone: `to.time_zone`, or what is stored of them.
#[derive(Serialize, ToSchema)]
pub struct LocalSendAt {
    /// Without an offset. A time that the clocks there leave out is the moment of their jump, one that they show twice is
    /// the first of the two.
    #[schema(pattern = "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}$", examples("2026-12-24T09:00:00"))]
    pub local: String,
    /// The IANA time zone of recipients whose own is not known. Without it they are refused.
    #[schema(max_length = 64, examples("Europe/Stockholm"), nullable = false, required = false)]
    pub fallback_zone: Option<String>,
}

/// Who is told, and where. At least one address that a channel can use.
#[derive(ToSchema)]
pub struct Recipient {
    /// Your own name for the person; the address of the inbox channel.
    #[schema(min_length = 1, max_length = 255, nullable = false, required = false)]
    pub recipient: Option<String>,
    /// `ann@example.com` or `Ann Lee <ann@example.com>`; international names are taken.
    #[schema(max_length = 512, examples("ann@example.com"), nullable = false, required = false)]
    pub email: Option<String>,
    /// E.164.
    #[schema(pattern = "^\\+[1-9][0-9]{6,14}$", nullable = false, required = false)]
    pub phone: Option<String>,
    #[schema(max_items = 50, nullable = false, required = false)]
    pub devices: Option<Vec<Device>>,
    #[schema(pattern = "^https?://", max_length = 2048, nullable = false, required = false)]
    pub webhook: Option<String>,
    #[schema(min_length = 1, max_length = 2048, nullable = false, required = false)]
    pub chat: Option<String>,
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

/// `token`, or for `web_push` a `subscription` as the browser gives it.
#[derive(ToSchema)]
pub struct Device {
    pub kind: DeviceKind,
    #[schema(min_length = 1, max_length = 4096, nullable = false, required = false)]
    pub token: Option<String>,
    #[schema(value_type = Object, required = false)]
    pub subscription: Option<()>,
    #[schema(min_length = 1, max_length = 255, nullable = false, required = false)]
    pub app: Option<String>,
    #[schema(min_length = 1, max_length = 64, nullable = false, required = false)]
    pub environment: Option<String>,
}

#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub enum DeviceKind {
    Apns,
    Fcm,
    WebPush,
}

/// A message given in the request. Each channel needs its part: email `subject` and `text` or
/// `html`, sms `sms`, devices `push`, webhook `webhook`.
#[derive(ToSchema)]
pub struct Content {
    /// Absent: the provider's own sender.
    #[schema(max_length = 512, nullable = false, required = false)]
    pub from: Option<String>,
    #[schema(max_items = 10, nullable = false, required = false)]
    pub reply_to: Option<Vec<String>>,
    /// Each copy is a delivery of its own.
    #[schema(max_items = 50, nullable = false, required = false)]
    pub cc: Option<Vec<String>>,
    #[schema(max_items = 50, nullable = false, required = false)]
    pub bcc: Option<Vec<String>>,
    #[schema(min_length = 1, max_length = 998, nullable = false, required = false)]
    pub subject: Option<String>,
    #[schema(min_length = 1, max_length = 1048576, nullable = false, required = false)]
    pub text: Option<String>,
    #[schema(min_length = 1, max_length = 1048576, nullable = false, required = false)]
    pub html: Option<String>,
    /// At most 50 headers by name; none that Belfry sets itself (From, To, Subject, Date, Message-ID, Content-* and the like).
    #[schema(nullable = false, required = false)]
    pub headers: Option<BTreeMap<String, String>>,
    /// Together at most 10 MiB when decoded.
    #[schema(max_items = 50, nullable = false, required = false)]
    pub attachments: Option<Vec<Attachment>>,
    #[schema(min_length = 1, max_length = 1600, nullable = false, required = false)]
    pub sms: Option<String>,
    #[schema(nullable = false, required = false)]
    pub push: Option<Push>,
    /// Any JSON; sent byte for byte as written here.
    #[schema(value_type = Value, required = false)]
    pub webhook: Option<()>,
}

#[derive(ToSchema)]
pub struct Attachment {
    #[schema(min_length = 1, max_length = 255)]
    pub filename: String,
    #[schema(min_length = 3, max_length = 255, examples("application/pdf"))]
    pub content_type: String,
    /// Standard base64 with padding.
    #[schema(min_length = 1, content_encoding = "base64")]
    pub base64: String,
    /// Content-ID of an inline image.
    #[schema(min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9._@+-]+$", nullable = false, required = false)]
    pub cid: Option<String>,
}

/// Up to 1,000 items, each a notification with its own `key`.
#[derive(ToSchema)]
pub struct NewBatch {
    #[schema(min_items = 1, max_items = 1000)]
    pub items: Vec<super::openapi::BatchItem>,
}

#[derive(ToSchema)]
pub struct NewCancellation {
    pub filter: super::filters::Filter,
    /// Only count what would be cancelled.
    #[schema(nullable = false, required = false)]
    pub dry_run: Option<bool>,
    /// For the timelines. Needed unless it is a `dry_run`.
    #[schema(min_length = 1, max_length = 200, nullable = false, required = false)]
    pub why: Option<String>,
    /// `next_cursor` of an answer to the same filter.
    #[schema(min_length = 1, max_length = 64, nullable = false, required = false)]
    pub cursor: Option<String>,
}

#[derive(ToSchema)]
pub struct Cancel {
    /// For the timeline.
    #[schema(min_length = 1, max_length = 200, nullable = false, required = false)]
    pub why: Option<String>,
}

#[derive(ToSchema)]
pub struct ReleaseHeld {
    /// The hold as you saw it: 409 if another one stands.
    #[schema(format = DateTime)]
    pub restored_at: String,
}

#[derive(ToSchema)]
pub struct CancelHeld {
    /// The hold as you saw it: 409 if another one stands.
    #[schema(format = DateTime)]
    pub restored_at: String,
    /// Absent: of every class.
    #[schema(min_items = 1, max_items = 100, nullable = false, required = false)]
    pub classes: Option<Vec<String>>,
    /// For the timelines.
    #[schema(min_length = 1, max_length = 200, nullable = false, required = false)]
    pub why: Option<String>,
    /// `next_cursor` of the answer before.
    #[schema(min_length = 1, max_length = 512, nullable = false, required = false)]
    pub cursor: Option<String>,
}

#[derive(ToSchema)]
pub struct AfterSend {
    /// The delivery's `send` as you saw it: 409 if it has moved on.
    #[schema(minimum = 1, maximum = 4294967295_i64)]
    pub after_send: i64,
}

#[derive(ToSchema)]
pub struct Seen {
    /// As it stood in the payload.
    #[schema(min_length = 1, max_length = 64)]
    pub token: String,
}

#[derive(ToSchema)]
pub struct Resolve {
    pub to: ResolvedTo,
    /// For the timeline.
    #[schema(min_length = 1, max_length = 200, nullable = false, required = false)]
    pub why: Option<String>,
}

/// How many of the outbox's next calls misbehave; 0 ends it.
#[derive(ToSchema)]
pub struct Misbehave {
    #[schema(minimum = 0, maximum = 1000, nullable = false, required = false)]
    pub fail_next: Option<i64>,
    #[schema(minimum = 0, maximum = 1000, nullable = false, required = false)]
    pub time_out_after_accept: Option<i64>,
    #[schema(minimum = 0, maximum = 1000, nullable = false, required = false)]
    pub crash_mid_send: Option<i64>,
}

/// The header that makes a repeat recognisable.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
pub struct KeyHeader {
    /// The same for every repeat of one intent or wish. 1 to 255 visible ASCII characters, bare or
    /// as a quoted string (RFC 8941).
    #[param(
        rename = "Idempotency-Key",
        min_length = 1,
        max_length = 512,
        pattern = r#"^([!#-~][!-~]{0,254}|"([!#-\[\]-~]|\\["\\]){1,255}")$"#
    )]
    pub idempotency_key: String,
}
