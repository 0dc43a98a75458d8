//! Values as they stand in Redis: a head of fixed length that scripts read and write, then texts that
//! only Belfry reads. The heads' layouts are those of `lua/common.lua` and `lua/record.lua`.

mod event;
mod head;
mod hex;
mod index;
mod intent;
mod stored;
mod text;

use std::time::Duration;

use belfry_domain::delivery::StateName;
use belfry_domain::{Delivery, DeliveryId, Key, Notification, NotificationId, State, UnixMs};

use crate::ports::StoreError;
use crate::ports::attachments::Attached;
use crate::ports::deliveries::{CollapseGroup, NewNotification, Token};

use head::Head;
pub use hex::all_digits;
use index::entries;
pub use index::{Kind, entry, index_hash, state_hash};
use stored::InHead;
use text::{pack_inputs, unpack_inputs};

pub type Result<T> = std::result::Result<T, StoreError>;

const ALONE: u8 = 1;
const SPENT: u8 = 2;
const HELD_ALONE: u8 = 4;
const RECEIPT: u8 = 8;

/// Bytes of a worker's name in a claim.
pub const WORKER: usize = 24;

const D_HEAD: usize = 113;
const N_HEAD: usize = 83;
/// What a script puts in front of a new notification: position and ordinal.
const N_GIVEN: usize = 12;
/// And of a new delivery: the position.
const D_GIVEN: usize = 7;

/// By how finished they are, so that the lowest of several is their notification's. Stored: a new state
/// gets a new number, and none ever changes.
const CODES: [StateName; 14] = [
    StateName::Scheduled,
    StateName::Deferred,
    StateName::Queued,
    StateName::Sending,
    StateName::Parked,
    StateName::Unknown,
    StateName::Failed,
    StateName::Bounced,
    StateName::Expired,
    StateName::Suppressed,
    StateName::Cancelled,
    StateName::Superseded,
    StateName::Accepted,
    StateName::Delivered,
];

#[must_use]
pub fn state_code(state: StateName) -> u8 {
    let at = CODES.iter().position(|one| *one == state).unwrap_or_default();
    u8::try_from(at).unwrap_or_default()
}

pub fn state_of(code: u8) -> Result<StateName> {
    CODES.get(usize::from(code)).copied().ok_or_else(|| corrupt("a state"))
}

pub fn corrupt(what: &str) -> StoreError {
    StoreError::Corrupt(format!("{what} in Redis is not as it was written"))
}

/// A number in six bytes.
pub fn six(value: u64) -> [u8; 6] {
    let [_, _, rest @ ..] = value.min((1 << 48) - 1).to_be_bytes();
    rest
}

fn at(time: Option<UnixMs>) -> [u8; 6] {
    six(time.map_or(0, |time| u64::try_from(time.0).unwrap_or(0)))
}

pub fn key_of(bytes: &[u8]) -> Result<Key> {
    Head(bytes).key()
}

/// A worker's name at its fixed length.
pub fn worker_name(name: &str) -> Result<[u8; WORKER]> {
    let mut bytes = [0; WORKER];
    let Some(room) = bytes.get_mut(..name.len()) else {
        return Err(StoreError::Unavailable(format!("a worker's name has at most {WORKER} bytes")));
    };
    room.copy_from_slice(name.as_bytes());
    Ok(bytes)
}

/// A delivery's state and times as its script needs them: `put.lua`.
pub fn fixed(delivery: &Delivery) -> Vec<u8> {
    let mut out = Vec::with_capacity(32);
    out.extend([state_code(delivery.state.name()), flags(delivery)]);
    out.extend(at(delivery.ended_at));
    out.extend(six(delivery.rev));
    out.extend(six(lease_ms(delivery)));
    out.extend(at(Some(delivery.due_at)));
    out.extend(at(receipt(delivery)));
    out
}

pub fn body(delivery: &Delivery) -> Vec<u8> {
    stored::write_delivery(delivery)
}

fn lease_ms(delivery: &Delivery) -> u64 {
    u64::try_from(delivery.lease.as_millis()).unwrap_or(u64::MAX)
}

/// Until when a receipt is waited for.
fn receipt(delivery: &Delivery) -> Option<UnixMs> {
    delivery.receipt_until.filter(|_| delivery.ended_at.is_none() && delivery.state == State::Accepted)
}

fn flags(delivery: &Delivery) -> u8 {
    let mut flags = 0;
    for (set, flag) in
        [(delivery.claim_alone(), ALONE), (delivery.spent, SPENT), (receipt(delivery).is_some(), RECEIPT)]
    {
        flags |= if set { flag } else { 0 };
    }
    flags
}

/// A claim's token as scripts compare it.
pub fn token_bytes(token: Token) -> Vec<u8> {
    [&six(token.fence)[..], &token.nonce.to_be_bytes()].concat()
}

/// A new delivery's value, less the position in front.
fn new_delivery(delivery: &Delivery, place: u8, group: Option<&CollapseGroup>) -> Result<Vec<u8>> {
    let lane = delivery.lane.to_string();
    let collapse = group.map(collapse).unwrap_or_default();
    let body = body(delivery);
    let mut out = Vec::with_capacity(D_HEAD + delivery.tenant.len() + collapse.len() + lane.len() + body.len());
    out.push(place);
    out.extend(delivery.notification.0.as_bytes());
    for text in [delivery.tenant.as_bytes(), &collapse, lane.as_bytes()] {
        let length = u8::try_from(text.len());
        out.push(length.map_err(|_| StoreError::Unavailable("a tenant, lane or collapse group is too long".into()))?);
    }
    out.extend([state_code(delivery.state.name()), flags(delivery)]);
    out.extend(at(delivery.ended_at));
    out.extend(six(delivery.rev));
    // No claim yet: fence, nonce, lapse, worker.
    out.extend([0; 6 + 8 + 6 + WORKER]);
    out.extend(six(lease_ms(delivery)));
    out.extend(at(Some(delivery.due_at)));
    // No settle yet.
    out.extend([0; 6 + 8 + 6]);
    debug_assert_eq!(out.len() + D_GIVEN, D_HEAD);
    out.extend(delivery.tenant.as_bytes());
    out.extend(collapse);
    out.extend(lane.as_bytes());
    out.extend(body);
    Ok(out)
}

/// Version first, at a length of its own.
fn collapse(group: &CollapseGroup) -> Vec<u8> {
    [version_text(group.version).as_bytes(), group.group.as_bytes()].concat()
}

/// A version as a text that sorts like it.
pub fn version_text(version: i64) -> String {
    format!("{:016x}", version.cast_unsigned() ^ (1 << 63))
}

pub fn version_of(text: &[u8]) -> Result<i64> {
    let text = std::str::from_utf8(text).map_err(|_| corrupt("a version"))?;
    let bits = u64::from_str_radix(text, 16).map_err(|_| corrupt("a version"))?;
    Ok((bits ^ (1 << 63)).cast_signed())
}

/// A new notification, as `accept.lua` takes it.
pub struct NewValues {
    /// Less position and ordinal in front.
    pub notification: Vec<u8>,
    /// Index entries, one after the other.
    pub entries: Vec<u8>,
    pub deliveries: Vec<NewDelivery>,
    pub attached: Vec<Attached>,
}

/// A new delivery, as `accept.lua` takes it.
pub struct NewDelivery {
    pub id: DeliveryId,
    /// Less the position in front.
    pub value: Vec<u8>,
    /// With its side in front; nothing where it does not wait.
    pub lane: Vec<u8>,
    pub tenant: Vec<u8>,
    pub due: UnixMs,
}

impl NewDelivery {
    fn of(delivery: &Delivery, place: u8, group: Option<&CollapseGroup>) -> Result<Self> {
        let side = if delivery.claim_alone() { "a" } else { "n" };
        Ok(Self {
            id: delivery.id,
            value: new_delivery(delivery, place, group)?,
            lane: if delivery.state.waiting() { format!("{side}{}", delivery.lane).into_bytes() } else { Vec::new() },
            tenant: delivery.tenant.clone().into_bytes(),
            due: delivery.due_at,
        })
    }
}

impl NewValues {
    /// # Errors
    /// [`StoreError`] where something is longer than a value can say.
    pub fn of(item: &NewNotification) -> Result<Self> {
        let count = u8::try_from(item.deliveries.len())
            .map_err(|_| StoreError::Unavailable(format!("{} deliveries are too many", item.deliveries.len())))?;
        let deliveries = (0..count)
            .zip(&item.deliveries)
            .map(|(place, delivery)| {
                let group = item.collapse_groups.get(usize::from(place)).and_then(Option::as_ref);
                NewDelivery::of(delivery, place, group)
            })
            .collect::<Result<_>>()?;
        let (owner, entries) = entries(item);
        let notification = new_notification(item, count, owner)?;
        Ok(Self { notification, entries, deliveries, attached: item.attached.clone() })
    }

    #[must_use]
    pub fn bytes(&self) -> usize {
        let attached = self.attached.iter().map(|one| one.content.len()).sum::<usize>();
        self.notification.len() + self.deliveries.iter().map(|one| one.value.len() + 24).sum::<usize>() + attached
    }
}

fn new_notification(item: &NewNotification, count: u8, owner: u64) -> Result<Vec<u8>> {
    let notification = &item.notification;
    let ends: Option<Vec<UnixMs>> = item.deliveries.iter().map(|one| one.ended_at).collect();
    let states = item.deliveries.iter().map(|one| one.state.name());
    let held = states.clone().any(|state| matches!(state, StateName::Failed | StateName::Parked));
    let record = intent::write_notification(notification);
    let inputs = pack_inputs(item.inputs.as_bytes(), &item.attached)?;
    let mut out = Vec::with_capacity(N_HEAD + usize::from(count) * 12 + record.len() + inputs.len());
    out.extend([states.map(state_code).min().unwrap_or_default(), u8::from(held)]);
    out.extend(at(ends.and_then(|ends| ends.into_iter().max())));
    out.push(count);
    out.extend([0; 4]);
    out.extend(at(Some(notification.remembered_until)));
    out.extend(six(notification.keep_content_ms));
    out.extend(six(owner));
    for text in [&record, &inputs] {
        let length = u32::try_from(text.len());
        out.extend(length.map_err(|_| StoreError::Unavailable("a text is too long".into()))?.to_be_bytes());
    }
    out.extend(print(&notification.fingerprint.whole)?);
    debug_assert_eq!(out.len() + N_GIVEN, N_HEAD);
    item.deliveries.iter().for_each(|one| out.extend(one.id.0.as_bytes()));
    out.extend(record);
    out.extend(inputs);
    Ok(out)
}

/// A fingerprint's 32 bytes.
fn print(text: &str) -> Result<[u8; 32]> {
    let mut print = [0; 32];
    match hex::digits(text, &mut print).map(<[u8]>::len) {
        Some(32) => Ok(print),
        _ => Err(StoreError::Unavailable("a fingerprint has 64 hex digits".into())),
    }
}

/// A moment as people read it, to the second.
pub fn moment(at: UnixMs) -> String {
    jiff::Timestamp::from_millisecond(at.0).map_or_else(|_| at.0.to_string(), |at| at.strftime("%F %T UTC").to_string())
}

/// A notification's value, read.
pub struct NotificationValue {
    pub repeats: u32,
    pub notification: Notification,
    /// `None` once purged, or where the script left them out.
    pub inputs: Option<String>,
}

/// # Errors
/// [`StoreError::Corrupt`].
pub fn read_notification(value: &[u8]) -> Result<NotificationValue> {
    let mut head = Head(value);
    head.bytes(7 + 5 + 1 + 1 + 6)?;
    let count = usize::from(head.byte()?);
    let repeats = u32::try_from(head.number(4)?).unwrap_or(u32::MAX);
    head.bytes(6 + 6 + 6)?;
    let (record, inputs) = (head.length()?, head.length()?);
    let whole = belfry_domain::hex(head.bytes(32)?);
    head.bytes(count * 12)?;
    let notification = intent::read_notification(head.bytes(record)?, whole)?;
    let inputs = match (inputs, head.0) {
        (0, _) | (_, []) => None,
        (_, packed) => Some(String::from_utf8(unpack_inputs(packed)?).map_err(|_| corrupt("inputs"))?),
    };
    Ok(NotificationValue { repeats, notification, inputs })
}

/// A delivery's value, read.
pub struct DeliveryValue {
    pub delivery: Delivery,
    pub collapse: Option<CollapseGroup>,
}

/// # Errors
/// [`StoreError::Corrupt`].
pub fn read_delivery(value: &[u8]) -> Result<DeliveryValue> {
    let mut head = Head(value);
    head.bytes(7 + 1)?;
    let notification = NotificationId(head.key()?);
    let (tenant, collapse, lane) = (usize::from(head.byte()?), usize::from(head.byte()?), usize::from(head.byte()?));
    let state = state_of(head.byte()?)?;
    let flags = head.byte()?;
    let ended = head.time()?;
    let rev = head.number(6)?;
    let fence = head.number(6)?;
    head.bytes(8 + 6 + WORKER)?;
    let (lease, due_at) = (head.number(6)?, head.time()?);
    head.bytes(6 + 8 + 6)?;
    let tenant = head.text(tenant)?.to_owned();
    let collapse = read_collapse(head.bytes(collapse)?)?;
    let head_says = InHead {
        notification,
        tenant,
        lane: stored::named(head.text(lane)?)?,
        state,
        fence,
        rev,
        spent: flags & SPENT != 0,
        due_at,
        lease: Duration::from_millis(lease),
        ended_at: Some(ended).filter(|ended| ended.0 != 0),
    };
    Ok(DeliveryValue { delivery: stored::read_delivery(head.0, head_says)?, collapse })
}

fn read_collapse(bytes: &[u8]) -> Result<Option<CollapseGroup>> {
    let Some((version, group)) = bytes.split_first_chunk::<16>() else { return Ok(None) };
    let group = String::from_utf8(group.to_vec()).map_err(|_| corrupt("a collapse group"))?;
    Ok(Some(CollapseGroup { group, version: version_of(version)? }))
}

/// A claim as a delivery's head has it.
pub struct ClaimHead {
    pub token: Token,
    pub worker: String,
    pub lapse: UnixMs,
    pub lease_ms: u64,
    pub alone: bool,
}

/// # Errors
/// [`StoreError::Corrupt`].
pub fn read_claim(value: &[u8]) -> Result<ClaimHead> {
    let mut head = Head(value);
    head.bytes(7 + 1 + 12 + 3 + 1)?;
    let flags = head.byte()?;
    head.bytes(6 + 6)?;
    let token = Token { fence: head.number(6)?, nonce: head.number(8)? };
    let lapse = head.time()?;
    let worker: Vec<u8> = head.bytes(WORKER)?.iter().copied().take_while(|byte| *byte != 0).collect();
    let worker = String::from_utf8(worker).map_err(|_| corrupt("a worker"))?;
    Ok(ClaimHead { token, worker, lapse, lease_ms: head.number(6)?, alone: flags & HELD_ALONE != 0 })
}

/// A tombstone's value: 16 bytes of the fingerprint, the state, until when.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn read_tombstone(id: NotificationId, value: &[u8]) -> Result<belfry_domain::notification::Tombstone> {
    let mut head = Head(value);
    let fingerprint = belfry_domain::hex(head.bytes(16)?);
    Ok(belfry_domain::notification::Tombstone {
        id,
        fingerprint,
        state: state_of(head.byte()?)?,
        remembered_until: head.time()?,
    })
}

#[cfg(test)]
mod tests;
