//! Ledgers of caps: each a sorted set, its members reservations (12 bytes), their scores the latest moments. Spread
//! over the shards, beside what is counted and mended there, and gone by Redis' own expiry once nothing in them
//! counts.
//!
//! Where slots do not matter one script takes what many calls need. On a Cluster each place is a call of its own, in
//! order, and where one is refused those before it are given back.

use std::collections::BTreeMap;

use async_trait::async_trait;
use belfry_domain::caps::{Fate, Full};
use belfry_domain::{Key, UnixMs};
use futures::future::join_all;
use redis::Value;

use super::answers;
use super::codec::{Result, corrupt};
use super::link::{Call, Need};
use super::store::{RedisStore, decimal, signed};
use crate::ports::caps::{Caps, Ended, Room, TakeAsk, TakeEnd, Taken};
use crate::ports::deliveries::MOST_ITEMS;

/// Most ledgers in one call of a script; those of one ask stay together.
const MOST_LEDGERS: usize = MOST_ITEMS;

fn millis(span: std::time::Duration) -> Vec<u8> {
    signed(i64::try_from(span.as_millis()).unwrap_or(i64::MAX))
}

/// One place to be ended.
struct Place {
    /// Of the batch.
    item: usize,
    ledger: Key,
    reservation: Key,
    fate: Fate,
}

#[async_trait]
impl Caps for RedisStore {
    async fn take(&self, batch: Vec<TakeAsk>) -> Result<Vec<Taken>> {
        self.same_installation()?;
        let apart = self.link.has_slots();
        let parts = if apart { batch.chunks(1).collect() } else { in_parts(&batch) };
        let answers = join_all(parts.iter().map(async |asks| match asks {
            [ask] if apart => self.take_apart(ask).await.map(|taken| vec![taken]),
            asks => self.take_together(asks).await,
        }))
        .await;
        let mut trouble = None;
        let mut taken = Vec::with_capacity(batch.len());
        for (answer, asks) in answers.into_iter().zip(&parts) {
            match answer {
                Ok(answer) => taken.extend(answer),
                Err(why) => {
                    trouble = Some(why);
                    taken.extend(std::iter::repeat_n(Taken::Away, asks.len()));
                }
            }
        }
        match trouble {
            Some(why) if taken.iter().all(|one| *one == Taken::Away) => Err(why),
            _ => Ok(taken),
        }
    }

    async fn end(&self, batch: Vec<TakeEnd>) -> Result<Vec<Ended>> {
        self.same_installation()?;
        let mut calls: BTreeMap<u16, Vec<Place>> = BTreeMap::new();
        for (item, end) in batch.iter().enumerate() {
            for ledger in &end.ledgers {
                let shard = if self.link.has_slots() { self.names.shard_of(ledger) } else { 0 };
                let place = Place { item, ledger: *ledger, reservation: end.reservation, fate: end.fate };
                calls.entry(shard).or_default().push(place);
            }
        }
        let parts = calls.values().flat_map(|places| places.chunks(MOST_LEDGERS));
        let answers = join_all(parts.map(async |places| (places, self.end_places(places).await))).await;
        let mut ended = vec![Ended::Done; batch.len()];
        let mut trouble = None;
        for (places, answer) in answers {
            if let Err(why) = answer {
                trouble = Some(why);
                places.iter().for_each(|place| ended[place.item] = Ended::Away);
            }
        }
        match trouble {
            Some(why) if ended.iter().all(|one| *one == Ended::Away) => Err(why),
            _ => Ok(ended),
        }
    }
}

/// As many asks together as one script takes.
fn in_parts(batch: &[TakeAsk]) -> Vec<&[TakeAsk]> {
    let mut parts = Vec::new();
    let (mut from, mut ledgers) = (0, 0);
    for (at, ask) in batch.iter().enumerate() {
        ledgers += ask.rooms.len();
        if ledgers > MOST_LEDGERS && at > from {
            parts.push(&batch[from..at]);
            (from, ledgers) = (at, ask.rooms.len());
        }
    }
    if from < batch.len() {
        parts.push(&batch[from..]);
    }
    parts
}

impl RedisStore {
    /// One call of the script: each ask has all of its places, or none.
    async fn take_together(&self, asks: &[TakeAsk]) -> Result<Vec<Taken>> {
        let mut args = vec![self.time_arg()];
        let mut keys = Vec::new();
        for ask in asks {
            args.extend([decimal(ask.rooms.len() as u64), ask.reservation.as_bytes().to_vec(), millis(ask.longest)]);
            args.extend(ask.rooms.iter().flat_map(|room| [decimal(room.limit), millis(room.window)]));
            keys.extend(ask.rooms.iter().map(|room| self.names.ledger(&room.ledger)));
        }
        if keys.is_empty() {
            return Ok(vec![Taken::All; asks.len()]);
        }
        // A place that a failover takes away lets one too many through.
        let call = Call { script: &self.scripts.take, keys, args, need: Need::Durable, generation: None };
        let mut answer = answers::list(self.link.run(call).await?)?.into_iter();
        let now = UnixMs(answers::number(&answer.next().ok_or_else(|| corrupt("the places"))?)?);
        let taken = answer.map(|one| taken(one, now)).collect::<Result<Vec<_>>>()?;
        if taken.len() == asks.len() { Ok(taken) } else { Err(corrupt("the places")) }
    }

    /// Each ledger lies where it lies.
    async fn take_apart(&self, ask: &TakeAsk) -> Result<Taken> {
        for (at, room) in ask.rooms.iter().enumerate() {
            let one = TakeAsk { rooms: vec![*room], ..ask.clone() };
            match self.take_together(std::slice::from_ref(&one)).await?.first() {
                Some(Taken::Full { full, now, .. }) => {
                    self.give_back_before(ask, at).await;
                    return Ok(Taken::Full { at, full: *full, now: *now });
                }
                Some(Taken::All) => {}
                Some(Taken::Away) | None => return Ok(Taken::Away),
            }
        }
        Ok(Taken::All)
    }

    /// Where it does not come through those places count for nothing until they are over: room is lost, no cap broken.
    async fn give_back_before(&self, ask: &TakeAsk, full: usize) {
        let place =
            |room: &Room| Place { item: 0, ledger: room.ledger, reservation: ask.reservation, fate: Fate::GivenBack };
        let places: Vec<Place> = ask.rooms[..full].iter().map(place).collect();
        join_all(places.chunks(1).map(async |one| self.end_places(one).await.ok())).await;
    }

    async fn end_places(&self, places: &[Place]) -> Result<()> {
        let keys = places.iter().map(|place| self.names.ledger(&place.ledger)).collect();
        let mut args = vec![self.time_arg()];
        for place in places {
            let fate = match place.fate {
                Fate::Counts => b"count".to_vec(),
                Fate::GivenBack => b"back".to_vec(),
            };
            args.extend([place.reservation.as_bytes().to_vec(), fate]);
        }
        let call = Call { script: &self.scripts.taken, keys, args, need: Need::Done, generation: None };
        self.link.run(call).await.map(drop)
    }
}

fn taken(answer: Value, now: UnixMs) -> Result<Taken> {
    if matches!(answer, Value::Int(1)) {
        return Ok(Taken::All);
    }
    let [at, until, open] = answers::parts(answer)?;
    let at = usize::try_from(answers::number(&at)?).map_err(|_| corrupt("a full ledger"))?;
    let full = Full { until: UnixMs(answers::number(&until)?), open_until: answers::score(&open)?.map(UnixMs) };
    Ok(Taken::Full { at, full, now })
}
