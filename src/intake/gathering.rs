//! Items: what a class that gathers is asked to tell. Each is put into its slot before it is accepted, so that no crash
//! between leaves one out.

use std::collections::{BTreeMap, BTreeSet};

use belfry_domain::device::STORED;
use belfry_domain::gather::{self, Gather, Slot};
use belfry_domain::outcome::RepeatGuard;
use belfry_domain::{Class, Delivery, DeliveryId, Env, Event, Key, Notification, UnixMs, step};

use super::accept::Intake;
use super::fields::{FieldProblem, Object, Problems, line};
use super::instant::rfc3339;
use super::submission::MOST_NAME;
use crate::ports::StoreError;
use crate::ports::deliveries::{MOST_ITEMS, NewNotification, Owner};
use crate::ports::gatherings::Join;

/// Most bytes of an item's data: a digest holds those of many.
pub const MOST_ITEM_BYTES: usize = 64 * 1024;

/// The digest key, and what else stands otherwise in a class that gathers.
pub(super) fn read(
    request: &Object<'_, '_>,
    class: Option<&Class>,
    gathers: bool,
    problems: &mut Problems,
) -> Option<String> {
    let key = request.text("digest", line(MOST_NAME), problems);
    let Some(class) = class else { return key };
    if !gathers {
        if request.has("digest") {
            problems.add("/digest", format!("stands only in a class that gathers; {} does not", class.name));
        }
        return None;
    }
    let name = &class.name;
    if request.has("content") {
        problems.add("/content", format!("must not be here: {name} gathers, and a digest is made by a template alone"));
    }
    if request.has("collapse") {
        problems.add("/collapse", format!("must not be here: {name} gathers, and none of its items replaces another"));
    }
    let bytes = request.get("data").map_or(0, |node| node.raw.len());
    if bytes > MOST_ITEM_BYTES {
        let detail = format!("must have at most {MOST_ITEM_BYTES} bytes in a class that gathers, has {bytes}");
        problems.add("/data", detail);
    }
    key
}

/// What a template gets of one item that came in `at` that moment: the data of a digest of one.
pub(super) fn item(data: &str, at: UnixMs) -> String {
    of_items(&[format!("{{\"at\":\"{}\",\"data\":{data}}}", rfc3339(at))])
}

/// The data of a digest: JSON texts of its items, each as [`item`] made it.
pub(super) fn of_items<T: AsRef<str>>(items: &[T]) -> String {
    let texts: Vec<&str> = items.iter().map(AsRef::as_ref).collect();
    format!("{{\"items\":[{}],\"count\":{}}}", texts.join(","), items.len())
}

/// A problem of the digest of one, at the item's own place in the request.
pub(super) fn own(problem: FieldProblem) -> FieldProblem {
    let pointer = match problem.pointer.strip_prefix("/data/items/0/data") {
        Some(rest) => format!("/data{rest}"),
        None if problem.pointer.starts_with("/data/") => "/data".to_owned(),
        None => problem.pointer,
    };
    FieldProblem { pointer, ..problem }
}

/// Whose items go out together. A stored device stays the same whatever its token is.
fn group(of: &Notification, delivery: &Delivery) -> Key {
    let text = |name: &Option<String>| name.clone().unwrap_or_default();
    let template = of.template.as_ref();
    let [name, version, locale] =
        [template.map(|it| &it.name), template.map(|it| &it.version), template.map(|it| &it.locale)]
            .map(|part| part.map_or("", String::as_str));
    let device = format!("{}/{}", text(&of.recipient), delivery.slot);
    let address = if delivery.slot.starts_with(STORED) { device.as_str() } else { delivery.address_hash.as_str() };
    let key = text(&of.digest);
    let channel = delivery.channel.name();
    gather::group([&of.tenant, &of.environment, &of.class, &key, name, version, locale, channel, address])
}

impl Intake {
    /// Puts the items among `batch` into their slots.
    ///
    /// # Errors
    /// [`StoreError`]: nothing is accepted; the same again finishes it.
    pub(super) async fn gather(&self, batch: &mut [NewNotification]) -> Result<(), StoreError> {
        let policy = (self.ports.policy)();
        let mut places = Vec::new();
        let mut joins = Vec::new();
        for (item, new) in batch.iter().enumerate() {
            let it = &new.notification;
            let (Some(gather), Some(class)) = (policy.rules_of(&it.class).gather, policy.classes.get(&it.class)) else {
                continue;
            };
            for (slot, delivery) in new.deliveries.iter().enumerate().filter(|(_, one)| one.state.waiting()) {
                places.push((item, slot, class));
                joins.push(join(it, delivery, gather));
            }
        }
        let slots = self.join_new(joins).await?;
        for (item, slot, class) in places {
            let delivery = &mut batch[item].deliveries[slot];
            let env = Env { now: delivery.created_at, jitter: 0, receipts: false, guard: RepeatGuard::None };
            let Some(into) = slots.get(&delivery.id) else { continue };
            if let Ok(gathered) = step(delivery, class, Event::Gathered(*into), env) {
                *delivery = gathered.next;
            }
        }
        Ok(())
    }

    /// A repeat of what is kept joins nothing: it would take another item's room in the slot that is open now.
    async fn join_new(&self, joins: Vec<Join>) -> Result<BTreeMap<DeliveryId, Slot>, StoreError> {
        let mut slots = BTreeMap::new();
        for part in joins.chunks(MOST_ITEMS) {
            let ids: Vec<DeliveryId> = part.iter().map(|one| one.item).collect();
            let kept = self.ports.deliveries.load(ids).await?;
            let known: BTreeSet<DeliveryId> = kept.into_iter().map(|one| one.id).collect();
            let new: Vec<Join> = part.iter().filter(|one| !known.contains(&one.item)).cloned().collect();
            if new.is_empty() {
                continue;
            }
            let ids: Vec<DeliveryId> = new.iter().map(|one| one.item).collect();
            slots.extend(ids.into_iter().zip(self.ports.gatherings.join(new).await?));
        }
        Ok(slots)
    }
}

fn join(of: &Notification, delivery: &Delivery, gather: Gather) -> Join {
    Join {
        group: group(of, delivery),
        item: delivery.id,
        owner: Owner::of(of),
        at: delivery.due_at.max(delivery.created_at),
        gather,
    }
}
