//! What was accepted against what the mail server saw: nothing lost, nothing doubled without a
//! recorded reason.

use std::time::Duration;

use serde_json::Value;

use super::http::Client;
use super::load::{Ledger, at_most_once, intent};
use super::sink::Sink;
use crate::peers::until::until;

const SETTLES: Duration = Duration::from_secs(30);

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub accepted: usize,
    pub unknown: usize,
    pub parked: usize,
    /// Effects beyond each intent's first.
    pub extra: usize,
    /// Gone, and named as such by a node.
    pub lost: usize,
    /// Looked at: each was acknowledged, or is there though its caller got no answer.
    pub known: usize,
    /// Of `extra`: of intents that go at most once, and those that no recorded outcome allows for or that are
    /// not the same message.
    pub doubled: usize,
    pub unexplained: usize,
}

/// The delivery of an intent, once it has ended.
pub(crate) fn ended(client: &mut Client, id: &str) -> Value {
    until(&format!("{id} ends"), SETTLES, || {
        let answer = client.get(&format!("/v1/notifications/{id}")).ok()?;
        assert_eq!(answer.status, 200, "accepted, then forgotten: {id}: {answer:?}");
        let delivery = answer.json()["deliveries"][0].clone();
        let state = delivery["state"].as_str().unwrap_or_default().to_owned();
        ["accepted", "unknown", "parked", "failed", "expired"].contains(&state.as_str()).then_some(delivery)
    })
}

/// Recorded reasons why a call may have had an effect that nobody heard of.
fn excuses(delivery: &Value) -> usize {
    let timeline = delivery["timeline"].as_array().expect("a timeline");
    timeline
        .iter()
        .filter(|entry| {
            let lapsed = entry["what"] == "lapsed" && entry["may_have_sent"] == true;
            let unknown = entry["what"] == "attempt" && entry["outcome"] == "unknown";
            lapsed || unknown
        })
        .count()
}

/// Checks every intent of the ledger.
pub(crate) fn reconcile(client: &mut Client, ledger: &Ledger, sink: &Sink, total: usize) -> Tally {
    let accepted = ledger.accepted();
    assert_eq!(accepted.len(), total, "every intent was accepted once");
    let mut tally = Tally::default();
    for number in 0..total {
        let delivery = ended(client, &accepted[&intent(number)]);
        tally.check(number, &delivery, sink);
    }
    tally
}

impl Tally {
    pub(crate) fn add(&mut self, other: &Self) {
        self.accepted += other.accepted;
        self.unknown += other.unknown;
        self.parked += other.parked;
        self.extra += other.extra;
        self.lost += other.lost;
        self.known += other.known;
        self.doubled += other.doubled;
        self.unexplained += other.unexplained;
    }

    /// Known, and neither ended nor named as lost.
    pub(crate) fn missing(&self) -> usize {
        self.known - self.accepted - self.unknown - self.parked - self.lost
    }

    /// One that is gone from the store: what kind of repeat it may have had still holds.
    pub(crate) fn check_lost(&mut self, number: usize, sink: &Sink) {
        self.known += 1;
        self.lost += 1;
        let effects = sink.effects(&intent(number));
        let alike = effects.iter().all(|copy| *copy == effects[0]);
        assert!(alike && (effects.len() <= 1 || !at_most_once(number)), "{}: {effects:?}", intent(number));
    }

    /// Checks one intent by its ended delivery.
    pub(crate) fn check(&mut self, number: usize, delivery: &Value, sink: &Sink) {
        let name = intent(number);
        let effects = sink.effects(&name);
        let state = delivery["state"].as_str().unwrap_or_default();
        let extra = effects.len().saturating_sub(1);
        self.known += 1;
        self.extra += extra;
        self.doubled += if at_most_once(number) { extra } else { 0 };
        let alike = effects.iter().filter(|copy| **copy == effects[0]).count();
        self.unexplained += extra.saturating_sub(excuses(delivery)).max(effects.len() - alike);
        assert!(extra <= excuses(delivery), "{name}: {} effects, but {delivery}", effects.len());
        for copy in &effects {
            assert_eq!((&copy.message_id, &copy.text), (&effects[0].message_id, &effects[0].text), "{name}");
        }
        match (at_most_once(number), state) {
            (_, "accepted") => {
                self.accepted += 1;
                assert!(!effects.is_empty(), "{name} is called accepted, but nothing arrived: {delivery}");
            }
            (true, "unknown") => self.unknown += 1,
            (false, "parked") => self.parked += 1,
            _ => panic!("{name} ended {state}: {delivery}"),
        }
        if at_most_once(number) {
            assert!(effects.len() <= 1, "{name}: at most once, and {} effects", effects.len());
        } else {
            assert!(!effects.is_empty() || state == "parked", "{name} is lost: {delivery}");
        }
    }
}
