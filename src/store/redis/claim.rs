//! Claims over all shards: which of them to ask, for how much, in which order.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use belfry_domain::{DeliveryId, Lane, Priority, State, UnixMs};

use super::answers;
use super::codec::{self, Result, corrupt};
use super::link::Need;
use super::shard::{Heard, Unanswered};
use super::store::{Ask, RedisStore, decimal, signed};
use crate::ports::StoreError;
use crate::ports::deliveries::{Claim, ClaimAsk, Claims, CollapseGroup, MOST_ITEMS, Token};

/// A claim takes no further delivery once what it has read is so large.
const MOST_BYTES: u64 = 256 << 10;

/// How often one call asks a shard that may have something, and is woken meanwhile.
const LOOKS: usize = 3;

/// What one call may still get.
struct Left {
    room: usize,
    lanes: Vec<(Lane, usize)>,
    providers: HashMap<String, usize>,
}

/// A part of what is left, for one shard.
struct Share {
    room: usize,
    /// The lane's place in the ask, its most, its provider's most.
    lanes: Vec<(usize, usize, usize)>,
}

type Claimed = (Claim, Option<CollapseGroup>);

/// What a call has got so far. A shard that cannot be asked must not cost what others have given: a
/// claim that its worker never hears of waits for its lapse.
#[derive(Default)]
struct Got {
    claims: Vec<Claimed>,
    /// A shard has answered.
    answered: bool,
    failed: Vec<(u16, StoreError)>,
}

impl Got {
    fn takes(&mut self, shard: u16, given: Result<Vec<Claimed>>, left: &mut Left) {
        match given {
            Ok(claims) => {
                self.answered = true;
                left.takes(&claims);
                self.claims.extend(claims);
            }
            Err(_) if self.has_failed(shard) => {}
            Err(error) => self.failed.push((shard, error)),
        }
    }

    fn has_failed(&self, shard: u16) -> bool {
        self.failed.iter().any(|(other, _)| *other == shard)
    }
}

impl Left {
    fn of(ask: &ClaimAsk) -> Self {
        let mut providers: HashMap<String, usize> = HashMap::new();
        for (lane, most) in &ask.lanes {
            let largest = providers.entry(lane.provider.clone()).or_default();
            *largest = (*largest).max(usize::from(*most));
        }
        Self {
            room: if ask.alone { 1 } else { MOST_ITEMS },
            lanes: ask.lanes.iter().map(|(lane, most)| (lane.clone(), usize::from(*most))).collect(),
            providers,
        }
    }

    fn of_lane(&self, place: usize) -> usize {
        let (lane, most) = &self.lanes[place];
        (*most).min(self.providers[&lane.provider]).min(self.room)
    }

    /// Nothing of anything.
    fn none(&self) -> Share {
        Share { room: 0, lanes: (0..self.lanes.len()).map(|place| (place, 0, 0)).collect() }
    }

    fn takes(&mut self, claims: &[Claimed]) {
        for (claim, _) in claims {
            let lane = &claim.delivery.lane;
            self.room = self.room.saturating_sub(1);
            if let Some((_, most)) = self.lanes.iter_mut().find(|(other, _)| other == lane) {
                *most = most.saturating_sub(1);
            }
            if let Some(most) = self.providers.get_mut(&lane.provider) {
                *most = most.saturating_sub(1);
            }
        }
    }

    /// Part `at` of `parts` of what is left in the lanes of `among`.
    fn share(&self, among: &[usize], at: usize, parts: usize) -> Share {
        let part = |whole: usize| whole / parts + usize::from(at < whole % parts);
        // The others are asked for nothing, only when they are due.
        let lanes = self.lanes.iter().enumerate().map(|(place, (lane, most))| {
            let most = if among.contains(&place) { part(*most) } else { 0 };
            (place, most, part(self.providers[&lane.provider]))
        });
        Share { room: part(self.room), lanes: lanes.collect() }
    }

    /// How many shards can be asked at once for at least one each.
    fn spread(&self, among: &[usize]) -> usize {
        among.iter().map(|place| self.of_lane(*place)).max().unwrap_or(0)
    }
}

impl RedisStore {
    pub(super) async fn claim_over_shards(&self, ask: &ClaimAsk) -> Result<Claims> {
        let mut left = Left::of(ask);
        let mut got = Got::default();
        let none = left.none();
        let all = 0..self.names.shards();
        if self.asked_before(&ask.worker, ask.nonce) {
            for (shard, given) in self.ask_shards(ask, all.clone().map(|shard| (shard, &none)), true).await {
                got.takes(shard, given, &mut left);
            }
        }
        self.hear_again(ask, &mut left, &mut got).await;
        if got.claims.is_empty() {
            let urgent = |place: &usize| ask.lanes[*place].0.priority == Priority::High;
            let (high, rest): (Vec<usize>, Vec<usize>) = (0..ask.lanes.len()).partition(urgent);
            let everything: Vec<usize> = (0..ask.lanes.len()).collect();
            if self.candidates(ask, &everything, |_| false).len() <= 1 {
                self.claim_among(ask, &everything, &mut left, &mut got).await;
            } else {
                // What is urgent in any shard comes before what is not in another.
                self.claim_among(ask, &high, &mut left, &mut got).await;
                self.claim_among(ask, &rest, &mut left, &mut got).await;
            }
        }
        let unheard = |shard: &u16| {
            let place = &self.shards[usize::from(*shard)];
            let unheard = |(lane, most): &(Lane, u16)| *most == 0 && place.heard(lane, ask.alone) == Heard::Nothing;
            !got.has_failed(*shard) && ask.lanes.iter().any(unheard)
        };
        let unheard: Vec<u16> = all.filter(unheard).collect();
        for (shard, given) in self.ask_shards(ask, unheard.into_iter().map(|shard| (shard, &none)), false).await {
            got.takes(shard, given, &mut left);
        }
        self.told(ask, got).await
    }

    /// What earlier claims took in a shard whose answer never came: its server was cut off or frozen, and may
    /// have done it since. Else it would wait for its lapse, and go out as what may have been sent already.
    async fn hear_again(&self, ask: &ClaimAsk, left: &mut Left, got: &mut Got) {
        let (boot, none) = (self.clock.boot(), left.none());
        let open = (0..self.names.shards()).zip(&self.shards).filter(|(_, shard)| !shard.paused(boot));
        let earlier = open.flat_map(|(at, shard)| {
            let claims = shard.to_be_heard(&ask.worker, ask.alone).into_iter();
            claims.filter(|claim| claim.nonce != ask.nonce).map(move |claim| (at, claim))
        });
        // Of what has to run alone one at a time, also here.
        let most = if ask.alone { 1 } else { usize::MAX };
        let calls = earlier.take(most).map(|(shard, Unanswered { nonce, .. })| {
            let (ask, none) = (ClaimAsk { nonce, ..ask.clone() }, &none);
            async move { (shard, self.ask_shard(&ask, shard, none, true).await) }
        });
        for (shard, given) in futures::future::join_all(calls).await {
            got.takes(shard, given, left);
        }
    }

    async fn told(&self, ask: &ClaimAsk, got: Got) -> Result<Claims> {
        let Got { mut claims, answered, failed } = got;
        for (shard, error) in failed {
            if !answered {
                return Err(error);
            }
            self.shards[usize::from(shard)].leave_alone(self.clock.boot());
        }
        let place = |claim: &Claim| ask.lanes.iter().position(|(lane, _)| *lane == claim.delivery.lane);
        claims.sort_by_key(|(claim, _)| place(claim));
        let claims = self.with_newest(claims).await;
        Ok(Claims { claims, next_due: self.next_due(ask) })
    }

    /// Shards that may have something due in these lanes; those that surely have it first, each group
    /// from where the last claim stopped.
    fn candidates(&self, ask: &ClaimAsk, among: &[usize], but: impl Fn(u16) -> bool) -> Vec<(u16, bool)> {
        let (now, boot) = (self.clock.now(), self.clock.boot());
        let start = self.turn.load(Ordering::Relaxed);
        let count = self.shards.len();
        let mut found = Vec::new();
        for step in 0..count {
            let at = (start + step) % count;
            let shard = u16::try_from(at).unwrap_or(u16::MAX);
            if but(shard) || self.shards[at].paused(boot) {
                continue;
            }
            self.shards[at].doubt_what_is_old(boot, now);
            let heard: Vec<Heard> =
                among.iter().map(|place| self.shards[at].expects(&ask.lanes[*place].0, ask.alone)).collect();
            if heard.iter().any(|heard| heard.may_be_due(now)) {
                found.push((shard, heard.iter().any(|heard| heard.is_due(now))));
            }
        }
        found.sort_by_key(|(_, sure)| !sure);
        found
    }

    async fn claim_among(&self, ask: &ClaimAsk, among: &[usize], left: &mut Left, got: &mut Got) {
        // Each shard is asked a few times for what it may have, and once for what it surely has: where accepts
        // keep waking a shard, what was got already must not wait for the end of that.
        let (mut looked, mut emptied) = (Vec::new(), Vec::new());
        loop {
            let open: Vec<usize> = among.iter().copied().filter(|place| left.of_lane(*place) > 0).collect();
            let spread = left.spread(&open);
            let mut candidates = self.candidates(ask, &open, |shard| emptied.contains(&shard) || got.has_failed(shard));
            candidates.retain(|(shard, sure)| *sure || looked.iter().filter(|one| *one == shard).count() < LOOKS);
            let Some((first, sure)) = candidates.first().copied().filter(|_| spread > 0) else { return };
            // A shard with much to do gives all that is wanted in one call. What may be anywhere is
            // asked for everywhere at once, so that no two can give more than is wanted together.
            let asked: Vec<u16> =
                if sure { vec![first] } else { candidates.iter().map(|(shard, _)| *shard).take(spread).collect() };
            let shares: Vec<Share> = (0..asked.len()).map(|at| left.share(&open, at, asked.len())).collect();
            for (shard, given) in self.ask_shards(ask, asked.iter().copied().zip(&shares), false).await {
                got.takes(shard, given, left);
                if sure {
                    // It gave what it has, or what it may in one call.
                    emptied.push(shard);
                    self.turn.store(usize::from(shard) + 1, Ordering::Relaxed);
                } else {
                    looked.push(shard);
                }
            }
        }
    }

    async fn ask_shards<'a>(
        &self,
        ask: &ClaimAsk,
        shares: impl Iterator<Item = (u16, &'a Share)>,
        again: bool,
    ) -> Vec<(u16, Result<Vec<Claimed>>)> {
        let calls = shares.map(|(shard, share)| async move { (shard, self.ask_shard(ask, shard, share, again).await) });
        futures::future::join_all(calls).await
    }

    async fn ask_shard(&self, ask: &ClaimAsk, shard: u16, share: &Share, again: bool) -> Result<Vec<Claimed>> {
        let place = &self.shards[usize::from(shard)];
        let mut args = vec![
            decimal(u64::from(again)),
            codec::worker_name(&ask.worker)?.to_vec(),
            ask.nonce.to_be_bytes().to_vec(),
            if ask.alone { b"a".to_vec() } else { b"n".to_vec() },
            decimal(share.room as u64),
            decimal(MOST_BYTES),
            signed(self.clock.now().minus(place.patience()).0),
        ];
        let now = self.clock.now();
        // What is known to be empty or not due costs no look.
        let worth_a_look = |lane: &Lane| again || place.expects(lane, ask.alone).may_be_due(now);
        let mut lanes = Vec::with_capacity(share.lanes.len());
        for (at, most, of_provider) in &share.lanes {
            let lane = &ask.lanes[*at].0;
            if worth_a_look(lane) {
                lanes.push(lane);
                args.extend([lane.to_string().into_bytes(), decimal(*most as u64)]);
                args.extend([lane.provider.clone().into_bytes(), decimal(*of_provider as u64)]);
            }
        }
        let woken = place.woken();
        let script = &self.scripts.claim;
        let this = Unanswered { worker: ask.worker.clone(), nonce: ask.nonce, alone: ask.alone };
        let answer = self.run(Ask { shard, script, keys: Vec::new(), args, need: Need::Done }).await;
        let answer = answer.inspect_err(|_| place.unanswered(this.clone()))?;
        let [now, claims, heads] = answer.try_into().map_err(|_| corrupt("an answer"))?;
        place.answered(&this);
        self.saw_time(UnixMs(answers::number(&now)?));
        place.hear(woken, self.clock.boot(), heard(&lanes, ask.alone, heads)?);
        let mut given = Vec::new();
        for one in answers::list(claims)? {
            let [id, fence, delivery, record] = answers::parts(one)?;
            let id = DeliveryId(codec::key_of(&answers::bytes(id)?)?);
            // Those that were claimed with one that cannot be read would wait for their lapse.
            given.extend(self.readable(id, claimed(id, [fence, delivery, record], ask.nonce)));
        }
        if !again {
            // Run again after a cut, it also answers what it has given since this call began.
            given.retain(|(claim, _)| !place.memory.holds(claim.delivery.id, claim.token));
        }
        let claims = given;
        let now = self.clock.now();
        for (claim, _) in &claims {
            place.memory.claimed(now, claim.delivery.id, claim.token, &ask.worker, claim.delivery.rev);
        }
        Ok(claims)
    }

    /// The claims are made: what cannot be asked for now must not cost those that it is not about.
    async fn with_newest(&self, claims: Vec<Claimed>) -> Vec<Claim> {
        let groups: Vec<String> = claims.iter().filter_map(|(_, group)| Some(group.as_ref()?.group.clone())).collect();
        let newest = if groups.is_empty() { HashMap::new() } else { self.newest(groups).await };
        let with = |(mut claim, group): Claimed| {
            claim.unconfirmed = self.link.waits_for_replicas();
            match group.map(|group| newest.get(&group.group).copied()) {
                Some(None) => claim.newest_away = true,
                version => claim.newest_version = version.flatten().flatten(),
            }
            claim
        };
        claims.into_iter().map(with).collect()
    }

    /// Of the lanes in which no shard has something due already.
    fn next_due(&self, ask: &ClaimAsk) -> Option<UnixMs> {
        let now = self.clock.now();
        let of_lane = |lane: &Lane| {
            let heard: Vec<Heard> = self.shards.iter().map(|shard| shard.expects(lane, ask.alone)).collect();
            if heard.iter().any(|heard| heard.may_be_due(now)) {
                return None;
            }
            let due = |heard: &Heard| if let Heard::DueAt(at) = heard { Some(*at) } else { None };
            heard.iter().filter_map(due).min()
        };
        ask.lanes.iter().filter_map(|(lane, _)| of_lane(lane)).min()
    }
}

/// When the longest due of each lane is due.
fn heard(lanes: &[&Lane], alone: bool, heads: redis::Value) -> Result<Vec<((Lane, bool), Heard)>> {
    let of_lane = |(lane, head): (&&Lane, redis::Value)| {
        let head = answers::score(&head)?.map_or(Heard::Empty, |due| Heard::DueAt(UnixMs(due)));
        Ok((((*lane).clone(), alone), head))
    };
    lanes.iter().zip(answers::list(heads)?).map(of_lane).collect()
}

fn claimed(id: DeliveryId, [fence, delivery, record]: [redis::Value; 3], nonce: u64) -> Result<Claimed> {
    let fence = u64::try_from(answers::number(&fence)?).map_err(|_| corrupt("a fence"))?;
    let mut value = codec::read_delivery(&answers::bytes(delivery)?)?;
    let record = codec::read_notification(&answers::bytes(record)?)?;
    if value.delivery.state.waiting() {
        // As it was read; the script has claimed it since.
        value.delivery.rev += 1;
    }
    value.delivery.state = State::Sending { fence };
    if value.delivery.id != id {
        return Err(corrupt("a delivery's id"));
    }
    let claim = Claim {
        delivery: value.delivery,
        notification: record.notification,
        inputs: record.inputs,
        token: Token { fence, nonce },
        newest_version: None,
        newest_away: false,
        unconfirmed: false,
    };
    Ok((claim, value.collapse))
}
