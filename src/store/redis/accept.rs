//! Accept: each item goes to its shard, and what several callers have for one shard shares a round
//! trip: while one is under way the next gathers.

use std::sync::Weak;

use belfry_domain::notification::Record;
use belfry_domain::{Lane, NotificationId, UnixMs};
use redis::Value;
use tokio::sync::{mpsc, oneshot};

use super::answers;
use super::codec::{self, NewValues, Result, corrupt};
use super::link::Need;
use super::store::{Ask, RedisStore, decimal, signed};
use crate::ports::StoreError;
use crate::ports::deliveries::{Accepted, CollapseGroup, MOST_ITEMS, NewNotification};

/// Parts of calls that wait for a shard's next round trip. More callers wait their turn.
const QUEUE: usize = 256;
/// Bytes in one round trip, unless a single item has more.
const MOST_BYTES: usize = 256 << 10;

/// One new notification on its way.
pub(super) struct Item {
    id: NotificationId,
    values: NewValues,
    position: u64,
    /// What of it waits to be claimed: its lane, whether alone, and when it is due.
    waiting: Vec<(Lane, bool, UnixMs)>,
}

/// What one call has for one shard.
pub(super) struct Part {
    items: Vec<Item>,
    answer: oneshot::Sender<Result<Vec<Known>>>,
}

/// What was found under an id.
pub(super) struct Known {
    accepted: Accepted,
    /// A repeat's groups, as they were accepted.
    groups: Vec<CollapseGroup>,
}

/// The senders' ends, one per shard.
pub(super) type Doors = Vec<mpsc::Sender<Part>>;

pub(super) fn doors(shards: u16) -> (Doors, Vec<mpsc::Receiver<Part>>) {
    (0..shards).map(|_| mpsc::channel(QUEUE)).unzip()
}

/// Takes what has gathered for a shard, for as long as the store is there.
pub(super) async fn gather(store: Weak<RedisStore>, shard: u16, mut parts: mpsc::Receiver<Part>) {
    let mut waiting = Vec::new();
    while parts.recv_many(&mut waiting, MOST_ITEMS).await > 0 {
        let Some(store) = store.upgrade() else { return };
        while !waiting.is_empty() {
            let batch: Vec<Part> = waiting.drain(..fitting(&waiting)).collect();
            store.accept_parts(shard, batch).await;
        }
    }
}

/// How many parts go into one round trip; one at the least.
fn fitting(parts: &[Part]) -> usize {
    let (mut items, mut bytes) = (0, 0);
    let fits = |part: &&Part| {
        items += part.items.len();
        bytes += part.items.iter().map(|item| item.values.bytes()).sum::<usize>();
        items <= MOST_ITEMS && bytes <= MOST_BYTES
    };
    parts.iter().take_while(fits).count().max(1)
}

impl RedisStore {
    /// # Errors
    /// [`StoreError`]; some of the batch may be kept all the same: the same call again finds it.
    pub(super) async fn accept_all(&self, batch: Vec<NewNotification>) -> Result<Vec<Accepted>> {
        let positions = self.positions(batch.len() as u64)..;
        let mut places: Vec<(u16, Vec<usize>, Vec<Item>)> = Vec::new();
        for (position, (place, new)) in positions.zip(batch.iter().enumerate()) {
            let id = new.notification.id;
            let waiting = new.deliveries.iter().filter(|one| one.state.waiting());
            let waiting = waiting.map(|one| (one.lane.clone(), one.claim_alone(), one.due_at)).collect();
            let item = Item { id, values: NewValues::of(new)?, position, waiting };
            let shard = self.names.shard_of(&id.0);
            match places.iter_mut().find(|(other, ..)| *other == shard) {
                Some((_, indexes, items)) => {
                    indexes.push(place);
                    items.push(item);
                }
                None => places.push((shard, vec![place], vec![item])),
            }
        }
        let mut order = Vec::with_capacity(batch.len());
        let mut calls = Vec::with_capacity(places.len());
        for (shard, indexes, items) in places {
            order.extend(indexes);
            calls.push(self.accept_in(shard, items));
        }
        let answers = futures::future::try_join_all(calls).await?;
        let mut found: Vec<(usize, Known)> = order.into_iter().zip(answers.into_iter().flatten()).collect();
        found.sort_by_key(|(place, _)| *place);
        let mut groups = Vec::new();
        for ((_, known), new) in found.iter().zip(&batch) {
            let until = new.notification.remembered_until;
            match &known.accepted {
                Accepted::Created => groups.extend(new.collapse_groups.iter().flatten().map(|it| (it.clone(), until))),
                Accepted::Repeat(record) => {
                    let until = record.notification.remembered_until;
                    groups.extend(known.groups.iter().map(|it| (it.clone(), until)));
                }
                Accepted::Remembered(_) => {}
            }
        }
        // After the records: whoever died in between repeats the accept, and a repeat comes by here.
        self.raise(groups).await?;
        Ok(found.into_iter().map(|(_, known)| known.accepted).collect())
    }

    async fn accept_in(&self, shard: u16, items: Vec<Item>) -> Result<Vec<Known>> {
        let gone = || StoreError::Unavailable("the store is closing".into());
        let (answer, answered) = oneshot::channel();
        let door = self.doors.get(usize::from(shard)).ok_or_else(gone)?;
        door.send(Part { items, answer }).await.map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }

    async fn accept_parts(&self, shard: u16, parts: Vec<Part>) {
        let result = self.accept_items(shard, &parts).await;
        let mut answers = match result {
            Ok(answers) => answers.into_iter(),
            Err(error) => {
                for part in parts {
                    // Whoever no longer waits will ask again.
                    drop(part.answer.send(Err(error.clone())));
                }
                return;
            }
        };
        for part in parts {
            // Where one of its records cannot be read it fails, and those of others do not.
            let own: Result<Vec<Known>> = answers.by_ref().take(part.items.len()).collect();
            drop(part.answer.send(own));
        }
    }

    async fn accept_items(&self, shard: u16, parts: &[Part]) -> Result<Vec<Result<Known>>> {
        let items: Vec<&Item> = parts.iter().flat_map(|part| &part.items).collect();
        let mut args = Vec::with_capacity(items.len() * 10 + 1);
        args.push(decimal(0_u32));
        for item in &items {
            let NewValues { notification, entries, deliveries, attached } = &item.values;
            args.extend([decimal(item.position), item.id.0.as_bytes().to_vec(), notification.clone()]);
            args.extend([entries.clone(), decimal(deliveries.len() as u64)]);
            for one in deliveries {
                args.extend([one.id.0.as_bytes().to_vec(), one.value.clone(), one.lane.clone(), one.tenant.clone()]);
                args.push(signed(one.due.0));
            }
            args.extend(attached.iter().map(|one| one.content.to_vec()));
        }
        let keys = items.iter().map(|item| self.names.notification(item.id)).collect();
        let ask = Ask { shard, script: &self.scripts.accept, keys, args, need: Need::Durable };
        let answer = self.run(ask).await;
        if answer.is_err() && items.iter().any(|item| !item.waiting.is_empty()) {
            // Its answer was lost: it may be there.
            self.woken(shard);
        }
        let answer = answer?;
        let memory = &self.shards[usize::from(shard)].memory;
        memory.accepted(self.clock.now(), items.iter().map(|item| item.id));
        let [position, answers] = answer.try_into().map_err(|_| corrupt("an answer"))?;
        self.saw_position(u64::try_from(answers::number(&position)?).unwrap_or(0));
        let answers = answers::list(answers)?;
        if answers.len() != items.len() {
            return Err(corrupt("an answer"));
        }
        let found: Vec<Result<Known>> =
            items.iter().zip(answers).map(|(item, answer)| found(item.id, answer)).collect();
        let is_new = |known: &Result<Known>| matches!(known, Ok(Known { accepted: Accepted::Created, .. }));
        let new = items.iter().zip(&found).filter(|(_, known)| is_new(known)).flat_map(|(item, _)| &item.waiting);
        self.coming(shard, new.map(|(lane, alone, due)| (lane, *alone, *due)));
        Ok(found)
    }
}

fn found(id: NotificationId, answer: Value) -> Result<Known> {
    let known = |accepted| Known { accepted, groups: Vec::new() };
    match answer {
        Value::Int(_) => Ok(known(Accepted::Created)),
        Value::BulkString(tombstone) => Ok(known(Accepted::Remembered(codec::read_tombstone(id, &tombstone)?))),
        Value::Array(values) => {
            let (record, groups) = read_record(values)?.ok_or_else(|| corrupt("a record"))?;
            Ok(Known { accepted: Accepted::Repeat(Box::new(record)), groups })
        }
        _ => Err(corrupt("an answer")),
    }
}

/// A record with its deliveries, and their collapse groups; `None` for no values.
pub(super) fn read_record(values: Vec<Value>) -> Result<Option<(Record, Vec<CollapseGroup>)>> {
    let mut values = values.into_iter();
    let Some(first) = values.next() else { return Ok(None) };
    let first = codec::read_notification(&answers::bytes(first)?)?;
    let mut record = Record { notification: first.notification, deliveries: Vec::new(), repeats: first.repeats };
    let mut groups = Vec::new();
    for value in values {
        let value = codec::read_delivery(&answers::bytes(value)?)?;
        record.deliveries.push(value.delivery);
        groups.extend(value.collapse);
    }
    Ok(Some((record, groups)))
}
