//! A notification's body, as [`super::stored`] has a delivery's.

use std::borrow::Cow;

use belfry_domain::device::LeftOut;
use belfry_domain::notification::{Collapse, Fingerprint, Notification, TemplateRef};
use belfry_domain::{Key, NotificationId, UnixMs};
use minicbor::bytes::ByteArray;
use minicbor::{Decode, Encode};

use super::hex::Hex;
use super::stored::{bytes, id, ms, named, read_id};
use super::{Result, corrupt};

#[derive(Encode, Decode)]
#[cbor(map)]
struct StoredNotification<'a> {
    #[n(0)]
    id: ByteArray<12>,
    #[b(1)]
    tenant: &'a str,
    #[b(2)]
    environment: &'a str,
    #[b(3)]
    class: &'a str,
    #[n(4)]
    created_at: i64,
    #[n(5)]
    remembered_until: i64,
    #[b(6)]
    via: &'a str,
    #[b(7)]
    template: Option<StoredTemplate<'a>>,
    #[b(8)]
    scope: Option<&'a str>,
    #[b(9)]
    reference: Option<&'a str>,
    #[b(10)]
    group: Option<&'a str>,
    #[b(11)]
    collapse: Option<&'a str>,
    #[n(12)]
    collapse_version: Option<i64>,
    #[n(13)]
    send_at: Option<i64>,
    #[n(14)]
    expires_at: i64,
    #[b(15)]
    traceparent: Option<&'a str>,
    #[b(16)]
    metadata: Option<&'a str>,
    #[b(17)]
    parts: Vec<StoredPart<'a>>,
    #[n(18)]
    keep_content_ms: u64,
    #[b(19)]
    recipient: Option<&'a str>,
    #[b(20)]
    left_out: Option<Vec<StoredLeftOut<'a>>>,
    #[b(21)]
    digest: Option<&'a str>,
    #[n(22)]
    gathered: Option<Vec<ByteArray<12>>>,
}

#[derive(Encode, Decode)]
#[cbor(map)]
struct StoredTemplate<'a> {
    #[b(0)]
    name: &'a str,
    #[b(1)]
    version: &'a str,
    #[b(2)]
    locale: &'a str,
}

/// A device that nothing was allowed to go to.
#[derive(Encode, Decode)]
#[cbor(map)]
struct StoredLeftOut<'a> {
    #[b(0)]
    device: &'a str,
    #[b(1)]
    kind: &'a str,
    #[b(2)]
    why: &'a str,
    #[n(3)]
    since: i64,
}

/// Of a fingerprint.
#[derive(Encode, Decode)]
#[cbor(array)]
struct StoredPart<'a> {
    #[b(0)]
    pointer: &'a str,
    #[b(1)]
    print: Hex<'a>,
}

pub fn write_notification(it: &Notification) -> Vec<u8> {
    bytes(&StoredNotification {
        id: (*it.id.0.as_bytes()).into(),
        tenant: &it.tenant,
        environment: &it.environment,
        class: &it.class,
        created_at: it.created_at.0,
        remembered_until: it.remembered_until.0,
        via: it.via.name(),
        template: it.template.as_ref().map(|template| StoredTemplate {
            name: &template.name,
            version: &template.version,
            locale: &template.locale,
        }),
        scope: it.scope.as_deref(),
        reference: it.reference.as_deref(),
        group: it.group.as_deref(),
        collapse: it.collapse.as_ref().map(|collapse| collapse.key.as_str()),
        collapse_version: it.collapse.as_ref().and_then(|collapse| collapse.version),
        send_at: ms(it.send_at),
        expires_at: it.expires_at.0,
        traceparent: it.traceparent.as_deref(),
        metadata: it.metadata.as_deref(),
        parts: it.fingerprint.parts.iter().map(StoredPart::of).collect(),
        keep_content_ms: it.keep_content_ms,
        recipient: it.recipient.as_deref(),
        left_out: Some(it.left_out.iter().map(StoredLeftOut::of).collect()).filter(|all: &Vec<_>| !all.is_empty()),
        digest: it.digest.as_deref(),
        gathered: Some(it.gathered.iter().copied().map(id).collect()).filter(|all: &Vec<_>| !all.is_empty()),
    })
}

/// `whole`: the fingerprint, which stands in the head.
pub fn read_notification(body: &[u8], whole: String) -> Result<Notification> {
    let it: StoredNotification<'_> = minicbor::decode(body).map_err(|_| corrupt("a notification"))?;
    let part = |part: StoredPart<'_>| (part.pointer.to_owned(), part.print.0.into_owned());
    let owned = |text: Option<&str>| text.map(str::to_owned);
    Ok(Notification {
        id: NotificationId(Key::from_bytes(it.id.into())),
        tenant: it.tenant.to_owned(),
        environment: it.environment.to_owned(),
        class: it.class.to_owned(),
        created_at: UnixMs(it.created_at),
        remembered_until: UnixMs(it.remembered_until),
        via: named(it.via)?,
        template: it.template.map(|template| TemplateRef {
            name: template.name.to_owned(),
            version: template.version.to_owned(),
            locale: template.locale.to_owned(),
        }),
        scope: owned(it.scope),
        reference: owned(it.reference),
        group: owned(it.group),
        collapse: it.collapse.map(|key| Collapse { key: key.to_owned(), version: it.collapse_version }),
        send_at: it.send_at.map(UnixMs),
        expires_at: UnixMs(it.expires_at),
        traceparent: owned(it.traceparent),
        metadata: owned(it.metadata),
        fingerprint: Fingerprint { whole, parts: it.parts.into_iter().map(part).collect() },
        keep_content_ms: it.keep_content_ms,
        recipient: owned(it.recipient),
        left_out: it.left_out.unwrap_or_default().into_iter().filter_map(StoredLeftOut::read).collect(),
        digest: owned(it.digest),
        gathered: it.gathered.unwrap_or_default().into_iter().map(read_id).collect(),
    })
}

impl<'a> StoredLeftOut<'a> {
    fn of(it: &'a LeftOut) -> Self {
        Self { device: &it.device, kind: it.kind.name(), why: it.why.name(), since: it.since.0 }
    }

    /// `None`: for a reason of a newer version's.
    fn read(self) -> Option<LeftOut> {
        let Self { device, kind, why, since } = self;
        Some(LeftOut {
            device: device.to_owned(),
            kind: kind.parse().ok()?,
            why: why.parse().ok()?,
            since: UnixMs(since),
        })
    }
}

impl<'a> StoredPart<'a> {
    fn of((pointer, print): (&'a String, &'a String)) -> Self {
        Self { pointer, print: Hex(Cow::Borrowed(print)) }
    }
}
