//! The one door. A request is prepared (read, checked, planned: pure) and then accepted: durable
//! before it is answered, and a repeat recognised by the record itself.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use belfry_domain::notification::{Fingerprint, Record, Tombstone};
use belfry_domain::timeline::Hop;
use belfry_domain::{Notification, NotificationId, UnixMs};

use super::answer::{Answer, Receipt, Remembered};
use super::caller::Caller;
use super::canonical::{Secret, fingerprint};
use super::content_check::ContentCheck;
use super::fields::FieldProblem;
use super::json::Node;
use super::links::Linker;
use super::plan::{Arrival, Setting, identity, plan};
use super::stored::Asker;
use super::submission::{Against, Refusal, business_key, read};
use crate::facts::{Fact, FactSink};
use crate::ports::StoreError;
use crate::ports::clock::{Clock, Dice};
use crate::ports::deliveries::{Accepted, Deliveries, NewNotification};
use crate::ports::gatherings::Gatherings;
use crate::ports::policy::Policy;
use crate::ports::preferences::PreferenceBook;
use crate::ports::recipients::Recipients;
use crate::ports::suppressions::Suppressions;

/// The policy of this moment; a reload swaps it whole.
pub type PolicyNow = Arc<dyn Fn() -> Arc<Policy> + Send + Sync>;

/// What the door needs.
#[derive(Clone)]
pub struct IntakePorts {
    pub deliveries: Arc<dyn Deliveries>,
    pub content: Arc<dyn ContentCheck>,
    pub recipients: Arc<dyn Recipients>,
    pub suppressions: Arc<dyn Suppressions>,
    pub preferences: Arc<dyn PreferenceBook>,
    pub gatherings: Arc<dyn Gatherings>,
    pub clock: Arc<dyn Clock>,
    pub dice: Arc<dyn Dice>,
    pub facts: Arc<dyn FactSink>,
    pub policy: PolicyNow,
}

pub struct Intake {
    pub(super) ports: IntakePorts,
    secret: Secret,
    linker: Linker,
}

/// A request, read and planned.
#[derive(Debug)]
pub struct Candidate {
    id: NotificationId,
    /// Where a repeat of it is caught.
    hop: Hop,
    fingerprint: Fingerprint,
    /// Taken out when the store gets it.
    made: Result<Option<Box<NewNotification>>, Refusal>,
}

/// What the store has under an id.
enum Known {
    Created(Asked),
    Record(Box<Record>),
    /// With the window that its class has now.
    Tombstone(Tombstone, Duration),
}

/// What is kept of a new intent while the store has it.
struct Asked {
    id: NotificationId,
    receipt: Receipt,
    fingerprint: Fingerprint,
    created_at: UnixMs,
    remembered_until: UnixMs,
    /// What there is to tell of it besides, once it is kept.
    facts: Vec<Fact>,
}

impl Asked {
    fn of(new: &NewNotification, facts: Vec<Fact>) -> Self {
        let it = &new.notification;
        Self {
            id: it.id,
            receipt: Receipt::new(it, &new.deliveries),
            fingerprint: it.fingerprint.clone(),
            created_at: it.created_at,
            remembered_until: it.remembered_until,
            facts,
        }
    }

    fn fact(&self) -> Fact {
        Fact::IntentAccepted {
            notification: self.id,
            class: self.receipt.class.clone(),
            deliveries: self.receipt.deliveries.len(),
        }
    }
}

impl Candidate {
    /// Why it is not taken.
    #[must_use]
    pub fn refused(&self) -> &[FieldProblem] {
        self.made.as_ref().err().map_or(&[], |refusal| &refusal.errors)
    }

    /// Refuses it for one more reason, whatever the clock says.
    pub fn refuse(&mut self, problem: FieldProblem) {
        let mut errors = vec![problem];
        if let Err(refusal) = &mut self.made {
            errors.append(&mut refusal.errors);
        }
        self.made = Err(Refusal { too_old: false, passing: false, errors });
    }
}

impl Intake {
    #[must_use]
    pub fn new(ports: IntakePorts, secret: &[u8; 32]) -> Self {
        let linker = Linker::new(ports.policy.clone(), secret);
        Self { ports, secret: Secret::new(secret), linker }
    }

    /// Opens links.
    #[must_use]
    pub fn linker(&self) -> &Linker {
        &self.linker
    }

    #[must_use]
    pub fn secret(&self) -> &Secret {
        &self.secret
    }

    /// Reads, checks and plans one request. `but` names a member that is no part of it (a batch
    /// item's `key`). Does no I/O; for a large request it takes a while.
    #[must_use]
    pub fn prepare(&self, asker: Asker<'_>, arrival: &Arrival, node: &Node<'_>, but: Option<&str>) -> Candidate {
        let business_key = business_key(node);
        let id = identity(asker.caller, &arrival.key, business_key);
        let hop = if business_key.is_some() { Hop::Unique } else { arrival.via };
        self.prepare_under((id, hop), asker, arrival, node, but)
    }

    /// The same for what the schedule `name` sends at `slot`: its id comes from these alone. It is not taken for new where
    /// the slot is older than repeats are remembered.
    #[must_use]
    pub fn prepare_slot(&self, asker: Asker<'_>, name: &str, slot: UnixMs, node: &Node<'_>) -> Candidate {
        let Caller { tenant, environment, .. } = asker.caller;
        let id = NotificationId::slot(tenant, environment, name, slot);
        let arrival = Arrival { key: String::new(), via: Hop::Schedule, traceparent: None };
        let mut candidate = self.prepare_under((id, Hop::Schedule), asker, &arrival, node, None);
        let too_old = match &candidate.made {
            Ok(Some(new)) => slot < new.notification.created_at.minus(window_of(&new.notification)),
            Ok(None) | Err(_) => false,
        };
        if too_old {
            let detail = "was due longer ago than repeats are remembered: whether it was sent can no longer be known";
            let errors = vec![FieldProblem::new("", detail)];
            candidate.made = Err(Refusal { too_old: true, passing: true, errors });
        }
        candidate
    }

    fn prepare_under(
        &self,
        (id, hop): (NotificationId, Hop),
        asker: Asker<'_>,
        arrival: &Arrival,
        node: &Node<'_>,
        but: Option<&str>,
    ) -> Candidate {
        let caller = asker.caller;
        let policy = (self.ports.policy)();
        let now = self.ports.clock.now();
        let print = fingerprint(&self.secret, node, but);
        let against = Against { now, policy: &policy, content: &*self.ports.content, asker, linker: &self.linker };
        let setting = Setting { policy: &policy, secret: &self.secret, caller, now };
        let made = read(node, but, against)
            .map(|submission| Some(Box::new(plan(submission, id, arrival, print.clone(), setting))));
        Candidate { id, hop, fingerprint: print, made }
    }

    /// Accepts up to [`MOST_ITEMS`](crate::ports::deliveries::MOST_ITEMS) requests, each on its
    /// own; the answers are in their order.
    ///
    /// # Errors
    /// [`StoreError`]: nothing is known to have been accepted. The same call again finishes it.
    pub async fn accept(&self, caller: &Caller, mut candidates: Vec<Candidate>) -> Result<Vec<Answer>, StoreError> {
        let mut known = self.store_new(&mut candidates).await?;
        let mut created: HashMap<NotificationId, bool> =
            known.iter().map(|(id, found)| (*id, matches!(found, Known::Created(_)))).collect();
        let mut answers = Vec::with_capacity(candidates.len());
        for candidate in candidates {
            if let Err(refusal) = candidate.made {
                // What is only now wrong may have been right, and taken, before.
                if !known.contains_key(&candidate.id) && refusal.passing {
                    known.extend(self.known_before(caller, candidate.id).await?.map(|found| (candidate.id, found)));
                }
                let same = known.get(&candidate.id).is_some_and(|found| found.is_same(&candidate.fingerprint));
                if !same {
                    answers.push(Answer::Refused(refusal));
                    continue;
                }
            }
            let Some(found) = known.get(&candidate.id) else { return Err(short_answer()) };
            // The first of an id that was new is the intent itself; the rest are its repeats.
            let first = created.insert(candidate.id, false).unwrap_or(false);
            answers.push(self.answer(candidate.id, candidate.hop, &candidate.fingerprint, found, first));
        }
        Ok(answers)
    }

    async fn known_before(&self, caller: &Caller, id: NotificationId) -> Result<Option<Known>, StoreError> {
        if let Some(record) = self.ports.deliveries.read(&caller.owner(), id).await? {
            self.ports.deliveries.durable().await?;
            return Ok(Some(Known::Record(Box::new(record))));
        }
        // Its class may be gone, and its window with it: the longest is the nearest that is known.
        let window = (self.ports.policy)().classes.values().map(|class| class.window).max().unwrap_or_default();
        Ok(self.ports.deliveries.remembered(id).await?.map(|left| Known::Tombstone(left, window)))
    }

    /// Hands the new ones to the store, which counts what it knows already, and returns what it had
    /// under each id before the first of them.
    async fn store_new(&self, candidates: &mut [Candidate]) -> Result<HashMap<NotificationId, Known>, StoreError> {
        let made = candidates.iter_mut().filter_map(|candidate| candidate.made.as_mut().ok()?.take());
        let mut batch: Vec<NewNotification> = made.map(|new| *new).collect();
        if batch.is_empty() {
            return Ok(HashMap::new());
        }
        let facts = self.end_unwanted(&mut batch).await;
        self.gather(&mut batch).await?;
        let asked: Vec<Asked> = batch.iter().zip(facts).map(|(new, facts)| Asked::of(new, facts)).collect();
        let accepted = self.ports.deliveries.accept(batch).await?;
        if accepted.len() != asked.len() {
            return Err(short_answer());
        }
        let found = asked.into_iter().zip(accepted).map(|(asked, accepted)| {
            let id = asked.id;
            let known = match accepted {
                Accepted::Created => {
                    std::iter::once(&asked.fact()).chain(&asked.facts).for_each(|fact| self.ports.facts.record(fact));
                    Known::Created(asked)
                }
                Accepted::Repeat(record) => Known::Record(record),
                Accepted::Remembered(tombstone) => {
                    Known::Tombstone(tombstone, asked.remembered_until.since(asked.created_at))
                }
            };
            (id, known)
        });
        let mut first = HashMap::new();
        for (id, known) in found {
            first.entry(id).or_insert(known);
        }
        Ok(first)
    }

    fn answer(&self, id: NotificationId, hop: Hop, print: &Fingerprint, found: &Known, first: bool) -> Answer {
        if let (true, Known::Created(asked)) = (first, found) {
            return Answer::Created(asked.receipt.clone());
        }
        if !found.is_same(print) {
            self.ports.facts.record(&Fact::FingerprintMismatch { notification: id, hop });
            return Answer::Mismatch { id, hop, pointers: found.differing(print) };
        }
        let (age, window) = found.age(self.ports.clock.now());
        self.ports.facts.record(&Fact::RepeatCaught { notification: id, hop, age, window });
        match found {
            Known::Created(asked) => Answer::Replayed(asked.receipt.clone()),
            Known::Record(record) => Answer::Replayed(Receipt::again(record)),
            Known::Tombstone(tombstone, _) => Answer::Remembered(Remembered::from(tombstone)),
        }
    }
}

impl Known {
    fn is_same(&self, print: &Fingerprint) -> bool {
        match self {
            Self::Created(asked) => asked.fingerprint.whole == print.whole,
            Self::Record(record) => record.notification.fingerprint.whole == print.whole,
            // Older files kept all of it.
            Self::Tombstone(tombstone, _) => tombstone.fingerprint.starts_with(print.short()),
        }
    }

    fn differing(&self, print: &Fingerprint) -> Vec<String> {
        match self {
            Self::Created(asked) => asked.fingerprint.differing(print),
            Self::Record(record) => record.notification.fingerprint.differing(print),
            Self::Tombstone(..) => Vec::new(),
        }
    }

    /// Since the first copy, and for how long a copy is recognised.
    fn age(&self, now: UnixMs) -> (Duration, Duration) {
        let (created_at, remembered_until) = match self {
            Self::Created(asked) => (asked.created_at, asked.remembered_until),
            Self::Record(record) => (record.notification.created_at, record.notification.remembered_until),
            Self::Tombstone(tombstone, window) => {
                (tombstone.remembered_until.minus(*window), tombstone.remembered_until)
            }
        };
        (now.since(created_at), remembered_until.since(created_at))
    }
}

fn window_of(notification: &Notification) -> Duration {
    notification.remembered_until.since(notification.created_at)
}

fn short_answer() -> StoreError {
    StoreError::Corrupt("the store answered fewer items than it was given".into())
}
