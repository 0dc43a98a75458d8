//! The outbox: what would have been sent, for developers and for callers' own tests.

use std::time::Duration;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::Uri;
use belfry_domain::{ChannelKind, DeliveryId};
use serde::Serialize;
use utoipa::ToSchema;

use super::api::{Api, Shared};
use super::auth::{Allowed, ToAdmin, ToRead, ToSend};
use super::body::{MOST_BODY, json};
use super::closed_sets;
use super::openapi::{BodyProblems, ListProblems};
use super::problem::{Code, Problem};
use super::query::Params;
use super::schema::Misbehave;
use crate::intake::fields::{Object, Problems};
use crate::intake::instant::rfc3339;
use crate::ports::admin::{ApiKey, Can};
use crate::ports::deliveries::Owner;
use crate::ports::message::{Attachment, EmailMessage, Mailbox, Rendered};
use crate::ports::outbox::{Misbehaviour, OutboxMessage};

/// Longest wait for a message.
const MOST_WAIT: u64 = 30;
/// How often a waiting request looks.
const LOOK_EVERY: Duration = Duration::from_millis(50);
const MOST_PAGE: u16 = 100;
pub const LOOK: &[&str] = &["to", "after", "wait", "limit"];
pub const CLEAR: &[&str] = &["to"];

/// What would have been sent.
#[derive(Debug, Serialize, ToSchema)]
pub struct OutboxMessages {
    /// Newest first.
    pub messages: Vec<OutboxMessageView>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OutboxMessage)]
pub struct OutboxMessageView {
    /// Grows with every message; for `after`.
    pub seq: u64,
    #[schema(format = DateTime)]
    pub at: String,
    #[schema(value_type = closed_sets::Channel)]
    pub channel: ChannelKind,
    pub notification: String,
    pub delivery: String,
    /// The same on every copy of one send.
    pub send_key: String,
    pub to: String,
    /// What the payload of a real channel carries: it lets a device tell that the message was seen.
    pub seen_token: String,
    pub message: MessageView,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub collapse: Option<String>,
}

/// A message as rendered.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Message)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum MessageView {
    Email(Box<EmailView>),
    Sms { text: String },
    Push { payload: String },
    Webhook { body: String },
    Chat { text: String },
    Inbox { payload: String },
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Email)]
pub struct EmailView {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub from: Option<MailboxView>,
    pub reply_to: Vec<MailboxView>,
    pub to: Vec<MailboxView>,
    pub cc: Vec<MailboxView>,
    pub subject: String,
    pub text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub html: Option<String>,
    /// Names and values, in their order.
    pub headers: Vec<Vec<String>>,
    pub attachments: Vec<AttachmentView>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Mailbox)]
pub struct MailboxView {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub name: Option<String>,
    pub email: String,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SentAttachment)]
pub struct AttachmentView {
    pub filename: String,
    pub content_type: String,
    pub base64: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub cid: Option<String>,
}

/// How many messages went.
#[derive(Debug, Serialize, ToSchema)]
pub struct Cleared {
    pub deleted: u64,
}

/// How many more calls each misbehaviour takes.
#[derive(Debug, Serialize, ToSchema)]
pub struct Misbehaving {
    /// Refused for now, before anything is kept.
    pub fail_next: u32,
    /// Kept, then the answer is lost.
    pub time_out_after_accept: u32,
    /// Kept, then the worker dies before it can record that.
    pub crash_mid_send: u32,
    /// Whether the configuration lets it be told to misbehave.
    pub misbehave_allowed: bool,
    /// What the key that asks may do.
    #[schema(value_type = Vec<closed_sets::Permission>)]
    pub may: Vec<Can>,
}

/// Look into the outbox
///
/// With `wait` it answers as soon as there is a message that fits, else after so many seconds with
/// none.
#[utoipa::path(
    get,
    path = "/v1/outbox",
    tag = "outbox",
    operation_id = "outbox",
    params(
        ("to" = Option<String>, Query, min_length = 1, max_length = 1024, description = "Only what went to this address; upper and lower case are one."),
        ("after" = Option<u64>, Query, description = "Only what came after this `seq`."),
        ("wait" = Option<u64>, Query, minimum = 0, maximum = 30, description = "Seconds."),
        ("limit" = Option<u16>, Query, minimum = 1, maximum = 100, description = "100 where it is left out.")
    ),
    responses((status = 200, description = "Newest first.", body = OutboxMessages), ListProblems),
    security(("key" = []))
)]
pub async fn look(
    State(api): State<Shared>,
    allowed: Allowed<ToRead>,
    uri: Uri,
) -> Result<Json<OutboxMessages>, Problem> {
    let mut params = Params::of(&uri, LOOK);
    let asked = Asked {
        owner: allowed.caller.owner(),
        to: params.bounded("to", 1024),
        // Stores count in signed numbers.
        after: params.parsed("after", "must be a `seq`", |text| {
            text.parse::<u64>().ok().filter(|seq| i64::try_from(*seq).is_ok())
        }),
        limit: params
            .parsed("limit", "must be a number from 1 to 100", |text| {
                text.parse().ok().filter(|limit| (1..=MOST_PAGE).contains(limit))
            })
            .unwrap_or(MOST_PAGE),
    };
    let wait = params.parsed("wait", "must be a number of seconds from 0 to 30", |text| {
        text.parse().ok().filter(|wait| *wait <= MOST_WAIT)
    });
    params.end()?;
    let until = api.deps.clock.boot() + Duration::from_secs(wait.unwrap_or(0));
    loop {
        let found = api.kept(&asked).await?;
        let now = api.deps.clock.boot();
        if !found.is_empty() || now >= until || api.deps.drain.has_begun() {
            let seen = |id| api.deps.intake.seen_token(id);
            let messages = found.into_iter().map(|one| OutboxMessageView::new(one, seen)).collect();
            return Ok(Json(OutboxMessages { messages }));
        }
        tokio::select! {
            biased;
            () = api.deps.drain.begun() => {}
            () = api.deps.clock.sleep_until(until.min(now + LOOK_EVERY)) => {}
        }
    }
}

struct Asked {
    owner: Owner,
    to: Option<String>,
    after: Option<u64>,
    limit: u16,
}

impl Api {
    async fn kept(&self, asked: &Asked) -> Result<Vec<OutboxMessage>, Problem> {
        let list = self.deps.outbox.list(&asked.owner, asked.to.as_deref(), asked.after, asked.limit);
        self.stored("outbox.list", list).await
    }
}

/// Empty the outbox
///
/// Of what went to one address, or of everything in the key's environment.
#[utoipa::path(
    delete,
    path = "/v1/outbox",
    tag = "outbox",
    operation_id = "clear_outbox",
    params(("to" = Option<String>, Query, min_length = 1, max_length = 1024, description = "Only what went to this address.")),
    responses((status = 200, description = "It is gone.", body = Cleared), ListProblems),
    security(("key" = []))
)]
pub async fn clear(State(api): State<Shared>, allowed: Allowed<ToSend>, uri: Uri) -> Result<Json<Cleared>, Problem> {
    let mut params = Params::of(&uri, CLEAR);
    let to = params.bounded("to", 1024);
    params.end()?;
    let owner = allowed.caller.owner();
    let deleted = api.stored("outbox.clear", api.deps.outbox.clear(&owner, to.as_deref())).await?;
    Ok(Json(Cleared { deleted }))
}

/// See the outbox's misbehaviour
#[utoipa::path(
    get,
    path = "/v1/outbox/misbehaviour",
    tag = "outbox",
    operation_id = "misbehaviour",
    responses((status = 200, description = "How many more calls each takes.", body = Misbehaving), ListProblems),
    security(("key" = []))
)]
pub async fn misbehaviour(State(api): State<Shared>, allowed: Allowed<ToRead>) -> Json<Misbehaving> {
    Json(api.misbehaving(&allowed.key))
}

/// Make the outbox misbehave
///
/// To see what comes of it. What is left out stays as it is.
#[utoipa::path(
    put,
    path = "/v1/outbox/misbehaviour",
    tag = "outbox",
    operation_id = "misbehave",
    request_body = Misbehave,
    responses((status = 200, description = "How many more calls each takes.", body = Misbehaving), BodyProblems),
    security(("key" = []))
)]
pub async fn misbehave(
    State(api): State<Shared>,
    allowed: Allowed<ToAdmin>,
    request: Request,
) -> Result<Json<Misbehaving>, Problem> {
    if !api.deps.misbehave_allowed {
        let detail = "Here the outbox may not be told to misbehave: outbox.misbehave is off in the configuration.";
        return Err(Problem::new(Code::Forbidden, detail));
    }
    let read = api.json_body(request, MOST_BODY).await?;
    let node = json(&read.bytes)?;
    let mut problems = Problems::default();
    let mut wanted = Vec::new();
    let names = Misbehaviour::ALL.map(name);
    if let Some(object) = Object::open(&node, "", &names, &mut problems) {
        for what in Misbehaviour::ALL {
            let Some(times) = object.integer(name(what), &mut problems) else { continue };
            match u32::try_from(times).ok().filter(|times| *times <= 1000) {
                Some(times) => wanted.push((what, times)),
                None => problems.add(object.at(name(what)), "must be a number from 0 to 1000"),
            }
        }
    }
    if !problems.is_empty() {
        return Err(Problem::invalid(problems.all()));
    }
    for (what, times) in wanted {
        api.deps.misbehaviours.arm(what, times);
    }
    Ok(Json(api.misbehaving(&allowed.key)))
}

impl Api {
    fn misbehaving(&self, key: &ApiKey) -> Misbehaving {
        let left = |what| self.deps.misbehaviours.left(what);
        Misbehaving {
            fail_next: left(Misbehaviour::FailNext),
            time_out_after_accept: left(Misbehaviour::TimeOutAfterAccept),
            crash_mid_send: left(Misbehaviour::CrashMidSend),
            misbehave_allowed: self.deps.misbehave_allowed,
            may: key.can.clone(),
        }
    }
}

const fn name(what: Misbehaviour) -> &'static str {
    match what {
        Misbehaviour::FailNext => "fail_next",
        Misbehaviour::TimeOutAfterAccept => "time_out_after_accept",
        Misbehaviour::CrashMidSend => "crash_mid_send",
    }
}

impl OutboxMessageView {
    fn new(it: OutboxMessage, seen_token: impl Fn(DeliveryId) -> String) -> Self {
        Self {
            seen_token: seen_token(it.delivery),
            seq: it.seq,
            at: rfc3339(it.at),
            channel: it.channel,
            notification: it.notification.to_string(),
            delivery: it.delivery.to_string(),
            send_key: it.send_key,
            to: it.to,
            message: it.message.into(),
            collapse: it.collapse,
        }
    }
}

impl From<Rendered> for MessageView {
    fn from(message: Rendered) -> Self {
        match message {
            Rendered::Email(email) => Self::Email(Box::new((*email).into())),
            Rendered::Sms { text } => Self::Sms { text },
            Rendered::Push { payload, .. } => Self::Push { payload },
            Rendered::Webhook { body } => Self::Webhook { body },
            Rendered::Chat { text } => Self::Chat { text },
            Rendered::Inbox { payload } => Self::Inbox { payload },
        }
    }
}

impl From<EmailMessage> for EmailView {
    fn from(it: EmailMessage) -> Self {
        let boxes = |boxes: Vec<Mailbox>| boxes.into_iter().map(MailboxView::from).collect();
        Self {
            from: it.from.map(MailboxView::from),
            reply_to: boxes(it.reply_to),
            to: boxes(it.to),
            cc: boxes(it.cc),
            subject: it.subject,
            text: it.text,
            html: it.html,
            headers: it.headers.into_iter().map(|(name, value)| vec![name, value]).collect(),
            attachments: it.attachments.into_iter().map(AttachmentView::from).collect(),
        }
    }
}

impl From<Mailbox> for MailboxView {
    fn from(it: Mailbox) -> Self {
        Self { name: it.name, email: it.email.0 }
    }
}

impl From<Attachment> for AttachmentView {
    fn from(it: Attachment) -> Self {
        Self { filename: it.filename, content_type: it.content_type, base64: it.base64, cid: it.cid }
    }
}
