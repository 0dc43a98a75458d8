//! The semantics of the store in as few words as possible: lists and maps, no index, no counter.

use std::collections::BTreeMap;

use belfry::ports::deliveries::{
    Accepted, ClaimAsk, Claims, CollapseGroup, Depths, Held, LaneDepth, MOST_ITEMS, NewNotification, PurgeAsk, Purged,
    Reclaim, Settle, Spend, Token, Written,
};
use belfry_domain::delivery::StateName;
use belfry_domain::notification::{Record, Tombstone};
use belfry_domain::{Delivery, DeliveryId, Lane, NotificationId, State, UnixMs};

/// A notification that is kept.
pub struct Kept {
    pub record: Record,
    pub inputs: Option<String>,
    /// Whether a purge has seen its window closed since its last write.
    released: bool,
}

struct Claimed {
    token: Token,
    worker: String,
    lease_until: UnixMs,
    alone: bool,
}

struct Group {
    newest: i64,
    kept_until: UnixMs,
    members: Vec<DeliveryId>,
}

#[derive(Default)]
pub struct Model {
    /// In the order of their accepts.
    pub kept: Vec<Kept>,
    tombstones: BTreeMap<NotificationId, Tombstone>,
    claims: BTreeMap<DeliveryId, Claimed>,
    /// The latest claim's fence and the latest settle, by delivery.
    fences: BTreeMap<DeliveryId, u64>,
    settled: BTreeMap<DeliveryId, (Token, u64)>,
    groups: BTreeMap<String, Group>,
    hold: Option<UnixMs>,
    /// The moment that was released last.
    freed: Option<UnixMs>,
}

impl Model {
    pub fn hold(&mut self, at: UnixMs) -> UnixMs {
        let first = self.freed.map_or(at, |freed| at.max(UnixMs(freed.0 + 1)));
        *self.hold.get_or_insert(first)
    }

    pub fn release(&mut self, at: UnixMs) {
        self.freed = self.hold.take_if(|hold| *hold == at).or(self.freed);
    }

    pub const fn standing(&self) -> Option<UnixMs> {
        self.hold
    }

    pub fn accept(&mut self, intent: &NewNotification) -> Accepted {
        let id = intent.notification.id;
        if let Some(kept) = self.kept.iter_mut().find(|kept| kept.record.notification.id == id) {
            kept.record.repeats += 1;
            return Accepted::Repeat(Box::new(kept.record.clone()));
        }
        if let Some(tombstone) = self.tombstones.get(&id) {
            return Accepted::Remembered(tombstone.clone());
        }
        for (delivery, group) in intent.deliveries.iter().zip(&intent.collapse_groups) {
            if let Some(CollapseGroup { group, version }) = group {
                let until = intent.notification.remembered_until;
                let fresh = || Group { newest: *version, kept_until: until, members: Vec::new() };
                let group = self.groups.entry(group.clone()).or_insert_with(fresh);
                group.newest = group.newest.max(*version);
                group.kept_until = group.kept_until.max(until);
                group.members.push(delivery.id);
            }
        }
        let record =
            Record { notification: intent.notification.clone(), deliveries: intent.deliveries.clone(), repeats: 0 };
        self.kept.push(Kept { record, inputs: Some(intent.inputs.clone()), released: false });
        Accepted::Created
    }

    pub fn deliveries(&self) -> impl Iterator<Item = &Delivery> {
        self.kept.iter().flat_map(|kept| &kept.record.deliveries)
    }

    pub fn stored(&self, id: DeliveryId) -> Option<&Delivery> {
        self.deliveries().find(|one| one.id == id)
    }

    fn put(&mut self, next: &Delivery) {
        for kept in &mut self.kept {
            for delivery in &mut kept.record.deliveries {
                if delivery.id == next.id {
                    *delivery = next.clone();
                    kept.released = false;
                }
            }
        }
    }

    fn holds(&self, id: DeliveryId, token: Token) -> bool {
        self.claims.get(&id).is_some_and(|claim| claim.token == token)
    }

    pub fn renew(&mut self, now: UnixMs, id: DeliveryId, token: Token) -> bool {
        let holds = self.holds(id, token);
        if let (true, Some(lease)) = (holds, self.stored(id).map(|one| one.lease)) {
            let claim = self.claims.get_mut(&id).unwrap();
            let until = now.plus(lease);
            // Never the same as before: a renewal is to be seen.
            claim.lease_until = if claim.lease_until == until { UnixMs(until.0 + 1) } else { until };
        }
        holds
    }

    pub fn spend(&mut self, spend: &Spend) -> Written {
        let Some(stored) = self.stored(spend.id).cloned() else { return Written::Gone };
        if !self.holds(spend.id, spend.token) {
            return Written::Stale;
        }
        if stored.rev == spend.rev {
            self.put(&Delivery { spent: true, rev: stored.rev + 1, ..stored });
            return Written::Done;
        }
        let again = stored.spent && stored.rev == spend.rev + 1;
        if again { Written::Done } else { Written::Moved(Box::new(stored)) }
    }

    pub fn settle(&mut self, Settle { next, token }: &Settle) -> Written {
        let Some(stored) = self.stored(next.id).cloned() else { return Written::Gone };
        if self.settled.get(&next.id) == Some(&(*token, next.rev)) {
            return Written::Done;
        }
        if !self.holds(next.id, *token) {
            return Written::Stale;
        }
        if stored.rev + 1 != next.rev {
            return Written::Moved(Box::new(stored));
        }
        self.put(next);
        self.settled.insert(next.id, (*token, next.rev));
        if !matches!(next.state, State::Sending { .. }) {
            self.claims.remove(&next.id);
        }
        Written::Done
    }

    pub fn apply(&mut self, next: &Delivery) -> Written {
        let Some(stored) = self.stored(next.id).cloned() else { return Written::Gone };
        let held = self.claims.contains_key(&next.id);
        let keeps = if held { next.state == stored.state } else { !matches!(next.state, State::Sending { .. }) };
        if stored.rev + 1 == next.rev && keeps {
            self.put(next);
            return Written::Done;
        }
        if stored == *next { Written::Done } else { Written::Moved(Box::new(stored)) }
    }

    pub fn reclaim(&mut self, now: UnixMs, Reclaim { next, seen }: &Reclaim) -> Written {
        let Some(stored) = self.stored(next.id).cloned() else { return Written::Gone };
        let Some(claim) = self.claims.get(&next.id) else {
            return if stored == *next { Written::Done } else { Written::Stale };
        };
        if claim.token != seen.token || claim.lease_until != seen.lease_until || claim.lease_until > now {
            return Written::Stale;
        }
        if stored.rev + 1 != next.rev {
            return Written::Moved(Box::new(stored));
        }
        self.put(next);
        self.claims.remove(&next.id);
        Written::Done
    }

    /// Checks a claim's answer against the rules, and takes it over.
    pub fn claimed(&mut self, now: UnixMs, ask: &ClaimAsk, answer: &Claims) {
        let again: Vec<DeliveryId> = self
            .claims
            .iter()
            .filter(|(_, claim)| claim.token.nonce == ask.nonce && claim.worker == ask.worker)
            .map(|(id, _)| *id)
            .collect();
        if again.is_empty() {
            self.taken(now, ask, answer);
        } else {
            let mut got: Vec<DeliveryId> = answer.claims.iter().map(|claim| claim.delivery.id).collect();
            got.sort();
            assert_eq!(got, again, "the same nonce again");
            for claim in &answer.claims {
                assert!(self.renew(now, claim.delivery.id, claim.token));
            }
        }
        for claim in &answer.claims {
            let id = claim.delivery.id;
            let kept =
                self.kept.iter().find(|kept| kept.record.notification.id == claim.delivery.notification).unwrap();
            assert_eq!(Some(&claim.delivery), self.stored(id));
            assert_eq!((&claim.notification, &claim.inputs), (&kept.record.notification, &kept.inputs));
            let group = self.groups.values().find(|group| group.members.contains(&id));
            assert_eq!(claim.newest_version, group.map(|group| group.newest));
        }
        let next_due = ask.lanes.iter().filter_map(|(lane, _)| self.next_due(now, lane, ask.alone)).min();
        assert_eq!(answer.next_due, next_due);
    }

    fn waiting<'a>(&'a self, lane: &'a Lane, alone: bool) -> impl Iterator<Item = &'a Delivery> {
        self.deliveries()
            .filter(move |one| one.state.waiting() && one.lane == *lane && one.claim_alone() == alone)
            .filter(|one| !one.held_back(self.hold))
    }

    fn next_due(&self, now: UnixMs, lane: &Lane, alone: bool) -> Option<UnixMs> {
        self.waiting(lane, alone).map(|one| one.due_at).min().filter(|due| *due > now)
    }

    fn taken(&mut self, now: UnixMs, ask: &ClaimAsk, answer: &Claims) {
        let most = |lane: &Lane| {
            ask.lanes.iter().filter(|(other, _)| other.provider == lane.provider).map(|(_, most)| *most).max()
        };
        let mut of_provider: BTreeMap<String, usize> = BTreeMap::new();
        let mut room = if ask.alone { 1 } else { MOST_ITEMS };
        let mut rest = &answer.claims[..];
        for (lane, own) in &ask.lanes {
            let mut due: BTreeMap<&str, Vec<&Delivery>> = BTreeMap::new();
            self.waiting(lane, ask.alone)
                .filter(|one| one.due_at <= now)
                .for_each(|one| due.entry(&one.tenant).or_default().push(one));
            let used = of_provider.entry(lane.provider.clone()).or_default();
            let all: usize = due.values().map(Vec::len).sum();
            let left = usize::from(most(lane).unwrap_or(0)) - *used;
            let expected = all.min(usize::from(*own)).min(left).min(room);
            let (ours, others) = rest.split_at(expected.min(rest.len()));
            assert_eq!(ours.len(), expected, "{lane}");
            *used += expected;
            room -= expected;
            rest = others;
            check_turns(due, ours);
        }
        assert!(rest.is_empty(), "more than was asked: {rest:?}");
        for claim in &answer.claims {
            self.take(now, ask, claim.delivery.id, claim.token);
        }
    }

    fn take(&mut self, now: UnixMs, ask: &ClaimAsk, id: DeliveryId, token: Token) {
        let fence = self.fences.get(&id).copied().unwrap_or(0) + 1;
        assert_eq!(token, Token { fence, nonce: ask.nonce });
        self.fences.insert(id, fence);
        let stored = self.stored(id).unwrap().clone();
        let lease_until = now.plus(stored.lease);
        let claim = Claimed { token, worker: ask.worker.clone(), lease_until, alone: ask.alone };
        assert!(self.claims.insert(id, claim).is_none(), "claimed twice");
        self.put(&Delivery { state: State::Sending { fence }, rev: stored.rev + 1, ..stored });
    }

    pub fn held(&self, now: UnixMs) -> Vec<Held> {
        let mut held: Vec<Held> = self
            .claims
            .iter()
            .map(|(id, claim)| Held {
                id: *id,
                token: claim.token,
                worker: claim.worker.clone(),
                lease_until: claim.lease_until,
                lapsed: claim.lease_until <= now,
                lease: self.stored(*id).unwrap().lease,
                alone: claim.alone,
            })
            .collect();
        held.sort_by_key(|held| (held.lease_until, held.id));
        held
    }

    pub fn purge(&mut self, ask: PurgeAsk) -> Purged {
        let mut purged = Purged::default();
        for kept in &mut self.kept {
            let age = std::time::Duration::from_millis(kept.record.notification.keep_content_ms);
            if !kept.held() && kept.ended().is_some_and(|at| at.plus(age) <= ask.now) {
                purged.contents += u32::from(kept.inputs.take().is_some());
            }
            kept.released |= kept.record.notification.remembered_until <= ask.now;
        }
        let over = |kept: &mut Kept| {
            let old = kept.ended().is_some_and(|at| at.plus(ask.keep_record) <= ask.now);
            old && (kept.released || !kept.held())
        };
        for kept in self.kept.extract_if(.., over) {
            purged.records += 1;
            let notification = &kept.record.notification;
            if notification.remembered_until > ask.now {
                let tombstone = Tombstone {
                    id: notification.id,
                    fingerprint: notification.fingerprint.short().to_owned(),
                    state: kept.record.state(),
                    remembered_until: notification.remembered_until,
                };
                self.tombstones.insert(notification.id, tombstone);
            }
            for delivery in &kept.record.deliveries {
                self.fences.remove(&delivery.id);
                self.settled.remove(&delivery.id);
                self.groups.values_mut().for_each(|group| group.members.retain(|id| *id != delivery.id));
            }
        }
        let before = self.tombstones.len();
        self.tombstones.retain(|_, tombstone| tombstone.remembered_until > ask.now);
        purged.tombstones = (before - self.tombstones.len()) as u32;
        self.groups.retain(|_, group| group.kept_until > ask.now);
        purged
    }

    /// By id.
    pub fn held_back(&self) -> Vec<&Delivery> {
        let mut held: Vec<_> = self.deliveries().filter(|one| one.held_back(self.hold)).collect();
        held.sort_by_key(|one| one.id);
        held
    }

    pub fn depths(&self, now: UnixMs) -> Depths {
        let mut lanes: BTreeMap<Lane, LaneDepth> = BTreeMap::new();
        for one in self.deliveries() {
            let sending = matches!(one.state, State::Sending { .. });
            if !sending && !one.state.waiting() {
                continue;
            }
            let empty = LaneDepth { lane: one.lane.clone(), due: 0, waiting: 0, sending: 0, oldest_due: None };
            let depth = lanes.entry(one.lane.clone()).or_insert(empty);
            if sending {
                depth.sending += 1;
                continue;
            }
            depth.waiting += 1;
            if one.due_at <= now && !one.held_back(self.hold) {
                depth.due += 1;
                depth.oldest_due = Some(depth.oldest_due.map_or(one.due_at, |oldest| oldest.min(one.due_at)));
            }
        }
        let of = |name| self.deliveries().filter(move |one| one.state.name() == name);
        Depths {
            lanes: lanes.into_values().collect(),
            unknown: of(StateName::Unknown).count() as u64,
            oldest_unknown: of(StateName::Unknown).filter_map(|one| one.ended_at).min(),
            parked: of(StateName::Parked).count() as u64,
            restored_at: self.hold,
            held_back: self.held_back().len() as u64,
        }
    }
}

impl Kept {
    fn ended(&self) -> Option<UnixMs> {
        let ends: Option<Vec<UnixMs>> = self.record.deliveries.iter().map(|one| one.ended_at).collect();
        ends.and_then(|ends| ends.into_iter().max())
    }

    fn held(&self) -> bool {
        let held = |one: &Delivery| matches!(one.state.name(), StateName::Failed | StateName::Parked);
        self.record.deliveries.iter().any(held)
    }
}

/// The longest due of each tenant, and nobody more than one ahead of a tenant that has more.
fn check_turns(mut due: BTreeMap<&str, Vec<&Delivery>>, claims: &[belfry::ports::deliveries::Claim]) {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (tenant, due) in &mut due {
        // Stable: of two due at one moment, the one accepted first.
        due.sort_by_key(|one| one.due_at);
        let ours: Vec<_> =
            claims.iter().filter(|claim| claim.delivery.tenant == *tenant).map(|claim| claim.delivery.id).collect();
        let longest: Vec<_> = due.iter().take(ours.len()).map(|one| one.id).collect();
        assert_eq!(ours, longest, "{tenant}");
        counts.insert(tenant, ours.len());
    }
    let most = counts.values().copied().max().unwrap_or(0);
    for (tenant, due) in &due {
        assert!(counts[tenant] == due.len() || counts[tenant] + 1 >= most, "{tenant} was passed over: {counts:?}");
    }
}
