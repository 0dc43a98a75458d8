//! What this node has been told is kept, for as long as a server may still turn out to have lost it:
//! the claims that it holds, and its latest settles and accepts.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use belfry_domain::{DeliveryId, NotificationId, UnixMs};

use crate::ports::deliveries::Token;

/// How far back. What is older has reached a replica or the disk, or the operator knows.
pub const KEPT_MS: i64 = 60_000;
/// Bytes of settles per shard; beyond them the oldest go sooner.
const MOST_BYTES: usize = 2 << 20;
const MOST_ACCEPTS: usize = 16_384;
/// A claim that nobody has renewed for so long is nobody's.
const FORGOTTEN_MS: i64 = 600_000;
const MANY_CLAIMS: usize = 4_096;

/// A claim that this node holds.
#[derive(Clone, Debug)]
pub struct Claimed {
    pub token: Token,
    pub worker: String,
    pub rev: u64,
    pub spent: bool,
    heard: UnixMs,
}

/// A settle as its script was told it.
#[derive(Clone, Debug)]
pub struct Settled {
    pub id: DeliveryId,
    pub token: Token,
    pub rev: u64,
    pub fixed: Vec<u8>,
    pub lane: Vec<u8>,
    pub body: Vec<u8>,
}

impl Settled {
    fn bytes(&self) -> usize {
        64 + self.fixed.len() + self.lane.len() + self.body.len()
    }
}

struct Marked<T> {
    at: UnixMs,
    what: T,
}

#[derive(Default)]
struct Kept {
    claims: HashMap<DeliveryId, Claimed>,
    settles: VecDeque<Marked<Settled>>,
    bytes: usize,
    accepts: VecDeque<Marked<NotificationId>>,
    highest_fence: u64,
}

/// One shard's.
#[derive(Default)]
pub struct Memory(Mutex<Kept>);

/// What a server should have.
#[derive(Debug, Default)]
pub struct Remembered {
    pub claims: Vec<(DeliveryId, Claimed)>,
    /// In the order in which they were made.
    pub settles: Vec<Settled>,
    pub accepts: Vec<(UnixMs, NotificationId)>,
    pub highest_fence: u64,
}

impl Memory {
    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn claimed(&self, now: UnixMs, id: DeliveryId, token: Token, worker: &str, rev: u64) {
        let mut kept = self.kept();
        kept.highest_fence = kept.highest_fence.max(token.fence);
        if kept.claims.len() >= MANY_CLAIMS {
            kept.claims.retain(|_, claim| now.0 - claim.heard.0 < FORGOTTEN_MS);
        }
        let claim = Claimed { token, worker: worker.to_owned(), rev, spent: false, heard: now };
        kept.claims.insert(id, claim);
    }

    pub fn renewed(&self, now: UnixMs, id: DeliveryId, token: Token, held: bool) {
        let mut kept = self.kept();
        let Some(claim) = kept.claims.get_mut(&id).filter(|claim| claim.token == token) else { return };
        if held {
            claim.heard = now;
        } else {
            kept.claims.remove(&id);
        }
    }

    pub fn spent(&self, id: DeliveryId, token: Token, rev: u64) {
        let mut kept = self.kept();
        if let Some(claim) = kept.claims.get_mut(&id).filter(|claim| claim.token == token) {
            claim.spent = true;
            claim.rev = rev;
        }
    }

    /// `holds`: the claim goes on under the new rev.
    pub fn settled(&self, now: UnixMs, settled: Settled, holds: bool) {
        let mut kept = self.kept();
        match kept.claims.get_mut(&settled.id).filter(|claim| claim.token == settled.token) {
            Some(claim) if holds => claim.rev = settled.rev,
            Some(_) => drop(kept.claims.remove(&settled.id)),
            None => {}
        }
        kept.bytes += settled.bytes();
        kept.settles.push_back(Marked { at: now, what: settled });
        while kept.settles.front().is_some_and(|oldest| now.0 - oldest.at.0 > KEPT_MS) || kept.bytes > MOST_BYTES {
            let Some(oldest) = kept.settles.pop_front() else { break };
            kept.bytes -= oldest.what.bytes();
        }
    }

    /// The claim is no longer this token's.
    pub fn lost(&self, id: DeliveryId, token: Token) {
        let mut kept = self.kept();
        if kept.claims.get(&id).is_some_and(|claim| claim.token == token) {
            kept.claims.remove(&id);
        }
    }

    pub fn accepted(&self, now: UnixMs, ids: impl Iterator<Item = NotificationId>) {
        let mut kept = self.kept();
        kept.accepts.extend(ids.map(|what| Marked { at: now, what }));
        while kept.accepts.len() > MOST_ACCEPTS
            || kept.accepts.front().is_some_and(|oldest| now.0 - oldest.at.0 > KEPT_MS)
        {
            kept.accepts.pop_front();
        }
    }

    #[must_use]
    pub fn holds(&self, id: DeliveryId, token: Token) -> bool {
        self.kept().claims.get(&id).is_some_and(|claim| claim.token == token)
    }

    /// These are lost and have been named: a second loss is another one.
    pub fn named(&self, lost: &[NotificationId]) {
        self.kept().accepts.retain(|one| !lost.contains(&one.what));
    }

    #[must_use]
    pub fn has_claims(&self) -> bool {
        !self.kept().claims.is_empty()
    }

    #[must_use]
    pub fn all(&self) -> Remembered {
        let kept = self.kept();
        Remembered {
            claims: kept.claims.iter().map(|(id, claim)| (*id, claim.clone())).collect(),
            settles: kept.settles.iter().map(|one| one.what.clone()).collect(),
            accepts: kept.accepts.iter().map(|one| (one.at, one.what)).collect(),
            highest_fence: kept.highest_fence,
        }
    }
}
