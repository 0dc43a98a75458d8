//! Digests: what is made of a slot's items. In this order, so that a crash between any two steps loses and repeats
//! nothing: each item is marked as about to be part of the digest (a wish to cancel it comes too late from then on); the
//! digest is accepted, under an id that its slot gives, with the list of those that are in it; then the items end.
//! Whoever comes after a crash, or at the same time, finds the digest by that id, and goes by its list.

use std::collections::{BTreeMap, BTreeSet};

use belfry_domain::gather::Slot as GatherSlot;
use belfry_domain::notification::{Fingerprint, Record};
use belfry_domain::outcome::RepeatGuard;
use belfry_domain::step::Rejected;
use belfry_domain::timeline::Hop;
use belfry_domain::{Class, Delivery, DeliveryId, Env, Event, NotificationId, UnixMs, hex, step};
use futures::StreamExt as _;
use futures::stream;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::accept::Intake;
use super::actions::stepped;
use super::caller::Caller;
use super::gathering::of_items;
use super::links::Linked;
use super::plan::{Arrival, Setting, plan};
use super::slot::Slot;
use super::submission::Submission;
use crate::content::inputs::{Inputs, Source, To};
use crate::facts::Fact;
use crate::ports::StoreError;
use crate::ports::deliveries::{Accepted, NewNotification, Owner, Written};
use crate::ports::gatherings::DueSlot;
use crate::ports::policy::Policy;

/// Records read at once.
const AT_ONCE: usize = 16;

/// Most bytes of a digest's frozen items: it is accepted in one step, and sent as one message.
const MOST_BYTES: usize = 192 * 1024;

/// Parts that one look makes; the next look goes on.
const MOST_PARTS: u32 = 64;

/// What became of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Folded {
    /// Nobody waits in it any more.
    All,
    /// Some items are busy elsewhere, or their class is not configured now: to be looked at again.
    Later,
}

/// An item as it waits.
struct Item {
    record: Record,
    /// Its place among the record's.
    delivery: usize,
    inputs: String,
}

/// What a look at a slot's items found.
#[derive(Default)]
struct Looked {
    /// The oldest first.
    items: Vec<Item>,
    /// Those that were never accepted, or have ended, or gather elsewhere.
    gone: Vec<DeliveryId>,
    busy: bool,
}

/// Of an item's data.
#[derive(Deserialize)]
struct Wrapped<'a> {
    #[serde(borrow)]
    items: Vec<&'a RawValue>,
}

impl Item {
    fn delivery(&self) -> &Delivery {
        &self.record.deliveries[self.delivery]
    }

    fn id(&self) -> NotificationId {
        self.record.notification.id
    }
}

impl Intake {
    /// Makes the digests of a slot that is due and ends their items. Safe to repeat, and by several at once.
    ///
    /// # Errors
    /// [`StoreError`]: the same again goes on.
    pub async fn fold(&self, due: &DueSlot) -> Result<Folded, StoreError> {
        let slot = due.slot;
        let mut part = 0;
        while part < MOST_PARTS {
            let looked = self.look_at(due).await?;
            self.ports.gatherings.leave(slot, looked.gone).await?;
            if looked.items.is_empty() {
                return Ok(if looked.busy { Folded::Later } else { Folded::All });
            }
            let policy = (self.ports.policy)();
            let Some(class) = policy.classes.get(&looked.items[0].record.notification.class) else {
                return Ok(Folded::Later);
            };
            let id = slot.digest(part);
            let members = match self.members(&due.owner, id).await? {
                Some(members) => members,
                None => match self.make(due, (part, id), looked.items, (&policy, class)).await? {
                    Some(members) => members,
                    None => return Ok(Folded::Later),
                },
            };
            self.end_items(slot, id, &members, due).await?;
            part += 1;
        }
        Ok(Folded::Later)
    }

    /// Those that a digest was made of, where it is kept.
    async fn members(&self, owner: &Owner, id: NotificationId) -> Result<Option<BTreeSet<NotificationId>>, StoreError> {
        if let Some(record) = self.ports.deliveries.read(owner, id).await? {
            return Ok(Some(record.notification.gathered.into_iter().collect()));
        }
        // What is left of it does not say who was in it: nobody who waits still.
        Ok(self.ports.deliveries.remembered(id).await?.map(|_| BTreeSet::new()))
    }

    async fn look_at(&self, due: &DueSlot) -> Result<Looked, StoreError> {
        let ids = self.ports.gatherings.items(due.slot).await?;
        let read = |id: DeliveryId| async move {
            let Some(record) = self.ports.deliveries.read_by_delivery(&due.owner, id).await? else {
                return Ok::<_, StoreError>((id, None));
            };
            let inputs = self.ports.deliveries.inputs(record.notification.id).await?;
            Ok((id, Some((record, inputs))))
        };
        let mut reads = stream::iter(ids).map(read).buffer_unordered(AT_ONCE);
        let mut looked = Looked::default();
        let now = self.ports.clock.now();
        while let Some(found) = reads.next().await {
            let (id, found) = found?;
            looked.sort(due.slot, id, found, now);
        }
        looked.items.sort_by_key(|item| (item.record.notification.created_at, item.id()));
        Ok(looked)
    }

    /// Makes one part of at most as many items as its class allows. `None`: not now.
    async fn make(
        &self,
        due: &DueSlot,
        (part, id): (u32, NotificationId),
        mut items: Vec<Item>,
        (policy, class): (&Policy, &Class),
    ) -> Result<Option<BTreeSet<NotificationId>>, StoreError> {
        // Marked for another it may be in that.
        items.retain(|item| item.delivery().folding().is_none_or(|into| into == id));
        let most = policy.rules_of(&class.name).gather.map_or(usize::MAX, |gather| gather.most.into());
        items.truncate(most.min(fitting(&items)));
        let items = self.mark(items, id, class).await?;
        let mut count = items.len();
        while count > 0 {
            // What is too long for one message goes into several.
            let Some(new) = self.digest(due, id, &items[..count], (policy, class)) else {
                count /= 2;
                continue;
            };
            let members = self.accept_digest(new, part).await?;
            return Ok(Some(members));
        }
        Ok(None)
    }

    async fn accept_digest(&self, new: NewNotification, part: u32) -> Result<BTreeSet<NotificationId>, StoreError> {
        let mut batch = vec![new];
        let facts = self.end_unwanted(&mut batch).await.pop().unwrap_or_default();
        let it = batch[0].notification.clone();
        let items = it.gathered.len();
        match self.ports.deliveries.accept(batch).await?.pop() {
            Some(Accepted::Created) => {
                let made = Fact::DigestMade { notification: it.id, class: it.class, items, part };
                std::iter::once(&made).chain(&facts).for_each(|fact| self.ports.facts.record(fact));
                Ok(it.gathered.into_iter().collect())
            }
            // Another was first: its list counts.
            Some(Accepted::Repeat(record)) => Ok(record.notification.gathered.into_iter().collect()),
            Some(Accepted::Remembered(_)) => Ok(BTreeSet::new()),
            None => Err(StoreError::Corrupt("the store answered fewer items than it was given".into())),
        }
    }

    /// Marks the items as about to be part of `id`, and answers those that are.
    async fn mark(&self, items: Vec<Item>, id: NotificationId, class: &Class) -> Result<Vec<Item>, StoreError> {
        let mut marked = Vec::with_capacity(items.len());
        let (mut asked, mut writes) = (Vec::new(), Vec::new());
        for item in items {
            match step(item.delivery(), class, Event::Folding { into: id }, self.env()) {
                Ok(transition) => {
                    writes.push(transition.next.clone());
                    asked.push((item, transition));
                }
                // A node that died had marked it before.
                Err(Rejected::Repeat) => marked.push(item),
                Err(_) => {}
            }
        }
        if !writes.is_empty() {
            let written = self.ports.deliveries.apply(writes).await?;
            for ((item, transition), written) in asked.into_iter().zip(written) {
                if written == Written::Done {
                    transition
                        .facts
                        .into_iter()
                        .for_each(|fact| self.ports.facts.record(&stepped(&transition.next, fact)));
                    marked.push(item);
                }
            }
        }
        marked.sort_by_key(|item| (item.record.notification.created_at, item.id()));
        Ok(marked)
    }

    /// Ends those items of the slot that are in the digest, and lets go of those that were to be in it and are not.
    async fn end_items(
        &self,
        slot: GatherSlot,
        id: NotificationId,
        members: &BTreeSet<NotificationId>,
        due: &DueSlot,
    ) -> Result<(), StoreError> {
        // As they stand now, with what was marked.
        let looked = self.look_at(due).await?;
        let mut left = looked.gone;
        for item in &looked.items {
            let delivery = item.delivery().clone();
            if members.contains(&item.id()) {
                left.push(delivery.id);
                self.carry_out(delivery, &Event::Folded { into: id }).await?;
            } else if delivery.folding() == Some(id) {
                self.carry_out(delivery, &Event::Unfolded { from: id }).await?;
            }
        }
        self.ports.gatherings.leave(slot, left).await
    }

    fn env(&self) -> Env {
        let now = self.ports.clock.now();
        Env { now, jitter: self.ports.dice.roll(), receipts: false, guard: RepeatGuard::None }
    }

    /// The digest of these items; `None` where no message can be made of so many.
    fn digest(
        &self,
        due: &DueSlot,
        id: NotificationId,
        items: &[Item],
        (policy, class): (&Policy, &Class),
    ) -> Option<NewNotification> {
        let (first, last) = (items.first()?, items.last()?);
        let texts: Vec<&str> = items.iter().filter_map(|item| data(&item.inputs)).collect();
        let (inputs, slot) = inputs(last, of_items(&texts))?;
        let caller = Caller {
            tenant: due.owner.tenant.clone(),
            environment: due.owner.environment.clone(),
            namespace: String::new(),
            key: String::new(),
        };
        let now = self.ports.clock.now();
        let slots = vec![slot];
        let spoken_of = self.ports.content.speaks_of(&inputs);
        let linked = Linked { caller: &caller, class, inputs: &inputs, slots: &slots, spoken_of, now };
        let links = self.linker().freeze(policy, linked);
        let inputs = Inputs { links, ..inputs };
        let wanted = [(slots[0].channel, slots[0].name.clone())];
        let content_hashes = self.ports.content.render_hash(&inputs, &wanted).ok()?;
        let same = |of: fn(&Record) -> &Option<String>| {
            let one = of(&first.record);
            items.iter().all(|item| of(&item.record) == one).then(|| one.clone()).flatten()
        };
        let submission = Submission {
            class: class.clone(),
            inputs,
            slots,
            left_out: Vec::new(),
            content_hashes,
            scope: same(|record| &record.notification.scope),
            reference: None,
            group: same(|record| &record.notification.group),
            collapse: None,
            digest: last.record.notification.digest.clone(),
            send_at: None,
            expires_at: None,
            metadata: None,
        };
        let gathered: Vec<NotificationId> = items.iter().map(Item::id).collect();
        let ids: Vec<&[u8]> = gathered.iter().map(|id| id.0.as_bytes().as_slice()).collect();
        let print = Fingerprint { whole: hex(&self.secret().hash(&ids)), parts: BTreeMap::new() };
        let arrival = Arrival { key: String::new(), via: Hop::Digest, traceparent: None };
        let setting = Setting { policy, secret: self.secret(), caller: &caller, now };
        let mut new = plan(submission, id, &arrival, print, setting);
        new.notification.gathered = gathered;
        Some(new)
    }
}

impl Looked {
    fn sort(&mut self, slot: GatherSlot, id: DeliveryId, found: Option<(Record, Option<String>)>, now: UnixMs) {
        let Some((record, inputs)) = found else { return self.gone.push(id) };
        let Some(delivery) = record.deliveries.iter().position(|one| one.id == id) else { return self.gone.push(id) };
        let one = &record.deliveries[delivery];
        let gathers = one.gathers().is_some_and(|gathering| gathering.slot == slot);
        match inputs {
            Some(inputs) if gathers && one.state.waiting() && (now < one.expires_at || one.folding().is_some()) => {
                self.items.push(Item { record, delivery, inputs });
            }
            // Claimed, to expire or because nobody made its digest in time.
            _ if gathers && !one.state.waiting() => self.busy = true,
            _ => self.gone.push(id),
        }
    }
}

/// So many of them that their data fit, and at least one.
fn fitting(items: &[Item]) -> usize {
    let mut bytes = 0;
    let fit = items.iter().take_while(|item| {
        bytes += data(&item.inputs).map_or(0, str::len);
        bytes <= MOST_BYTES
    });
    fit.count().max(1)
}

/// Borrowed, so that numbers keep every digit.
fn data(inputs: &str) -> Option<&str> {
    #[derive(Deserialize)]
    struct Frozen<'a> {
        #[serde(borrow)]
        source: FrozenSource<'a>,
    }
    #[derive(Deserialize)]
    struct FrozenSource<'a> {
        #[serde(borrow)]
        template: FrozenTemplate<'a>,
    }
    #[derive(Deserialize)]
    struct FrozenTemplate<'a> {
        #[serde(borrow)]
        data: &'a RawValue,
    }
    let frozen: Frozen<'_> = serde_json::from_str(inputs).ok()?;
    let wrapped: Wrapped<'_> = serde_json::from_str(frozen.source.template.data.get()).ok()?;
    wrapped.items.first().map(|item| item.get())
}

/// What the digest is made from: the newest item's own, with the data of all, to the one address.
fn inputs(of: &Item, data: String) -> Option<(Inputs, Slot)> {
    let delivery = of.delivery();
    let mut inputs: Inputs = serde_json::from_str(&of.inputs).ok()?;
    let template = inputs.source.frozen()?.clone();
    inputs.source = Source::template(template, RawValue::from_string(data).ok()?);
    let to = inputs.to;
    let device = to.device(&delivery.slot).cloned();
    let (name, _) = to.slots(delivery.channel).into_iter().find(|(name, _)| *name == delivery.slot)?;
    inputs.to = To { cc: Vec::new(), bcc: Vec::new(), devices: device.into_iter().collect(), ..to };
    let mut slots = inputs.to.slots(delivery.channel).into_iter();
    // A device that was given with the request is numbered by its place there.
    let (name, address) = slots.find(|(one, _)| *one == name || one.starts_with("device/"))?;
    Some((inputs, Slot { channel: delivery.channel, name, address }))
}
