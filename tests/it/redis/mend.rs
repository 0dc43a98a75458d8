//! A server that has lost what it acknowledged: its last save stands, and what came after is gone.

use std::sync::{Arc, Mutex};

use belfry::ports::deliveries::{Accepted, Claim, Written};
use belfry::ports::store_news::{StoreNews, StoreWatch};
use belfry::store::redis::keys::Names;
use belfry::store::redis::link::Link;
use belfry::store::redis::{Clocks, RedisStore, StoreClock};
use belfry_domain::State;
use belfry_domain::delivery::StateName;

use super::Server;
use crate::contract::fixture::{LEASE_MS, ask, ended, id_of, intent, queued};
use crate::contract::harness::{Harness, ManualClock};

#[derive(Default)]
struct Told(Mutex<Vec<StoreNews>>);

impl StoreWatch for Told {
    fn tell(&self, news: StoreNews) {
        self.0.lock().unwrap().push(news);
    }
}

struct Site {
    server: Server,
    clock: Arc<ManualClock>,
}

impl Site {
    fn new() -> Self {
        Self { server: Server::plain(), clock: ManualClock::new() }
    }

    /// With a node that has taken in one intent, which is saved.
    async fn saved(key: &str) -> (Self, Harness, Arc<Told>) {
        let site = Self::new();
        let (node, told) = site.node();
        node.create(intent(&node, key)).await;
        site.save();
        (site, node, told)
    }

    /// With a node that has recorded a call, of which the server knows nothing any more.
    async fn lost_spend() -> (Self, Harness, Claim) {
        let (mut site, node, _) = Self::saved("k").await;
        let claim = node.claim(1).await;
        assert_eq!(node.spend(&claim, claim.delivery.rev).await, Written::Done);
        site.go_back();
        (site, node, claim)
    }

    /// One more node.
    fn node(&self) -> (Harness, Arc<Told>) {
        let told = Arc::new(Told::default());
        let link = Link::to(&self.server.url()).unwrap();
        let clocks = Clocks { node: self.clock.clone(), store: StoreClock::Own(self.clock.clone()) };
        let store = RedisStore::new(link, Names::new("belfry".into(), 1), clocks, told.clone(), crate::redis::mark());
        (Harness::over(store, &self.clock), told)
    }

    fn save(&self) {
        let saved: String = self.server.ask(&["SAVE"]);
        assert_eq!(saved, "OK");
    }

    /// What came after the save is gone.
    fn go_back(&mut self) {
        self.server.kill();
        self.server.start_again();
    }
}

#[tokio::test]
async fn a_claim_that_was_lost_stands_again_under_its_token() {
    let mut site = Site::new();
    let (node, _) = site.node();
    let (other, _) = site.node();
    node.create(intent(&node, "k")).await;
    site.save();
    let claim = node.claim(1).await;
    site.go_back();
    assert!(node.renew(&claim).await);
    assert!(other.claims(ask(2, 10)).await.claims.is_empty());
    let next = ended(&node, &claim.delivery, State::Accepted);
    assert_eq!(node.settle(&claim, &next).await, Written::Done);
    assert_eq!(other.stored(&next).await, next);
}

#[tokio::test]
async fn a_lost_spent_mark_is_put_back_so_that_its_lapse_is_unknown_and_not_another_call() {
    let (site, node, claim) = Site::lost_spend().await;
    let stored = node.stored(&claim.delivery).await;
    assert!(stored.spent);
    assert_eq!((stored.rev, stored.state), (claim.delivery.rev + 1, claim.delivery.state));
    node.clock.step(LEASE_MS);
    let (other, _) = site.node();
    assert_eq!(other.store.held(10).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_lost_settle_is_put_back() {
    let (mut site, node, told) = Site::saved("k").await;
    let done = node.finish(1, State::Accepted).await;
    site.go_back();
    assert_eq!(node.stored(&done).await, done);
    assert_eq!(node.record("k").await.unwrap().state(), StateName::Accepted);
    assert!(node.claims(ask(2, 10)).await.claims.is_empty());
    // Nothing of it was lost for good, and it was told once.
    let told = told.0.lock().unwrap().clone();
    assert!(matches!(&told[..], [StoreNews::WentBack { lost, .. }] if lost.is_empty()), "{told:?}");
}

#[tokio::test]
async fn an_accept_that_was_lost_is_named() {
    let (mut site, node, told_of) = Site::saved("kept").await;
    node.create(intent(&node, "lost")).await;
    site.go_back();
    assert!(node.record("kept").await.is_some());
    let told = told_of.0.lock().unwrap().clone();
    let [StoreNews::WentBack { lost, .. }] = &told[..] else { panic!("{told:?}") };
    assert_eq!(lost[..], [id_of("lost")]);
    // Not once more when it goes back again.
    site.go_back();
    assert!(node.record("kept").await.is_some());
    let again = told_of.0.lock().unwrap().clone();
    assert!(matches!(&again[..], [_, StoreNews::WentBack { lost, .. }] if lost.is_empty()), "{again:?}");
    // Whoever repeats it brings it back.
    assert!(matches!(node.accept(intent(&node, "lost")).await, Accepted::Created));
}

#[tokio::test]
async fn fences_go_above_all_that_were_seen() {
    let mut site = Site::new();
    let (node, _) = site.node();
    node.create(intent(&node, "k")).await;
    node.create(intent(&node, "l")).await;
    site.save();
    let mut highest = 0;
    for nonce in 0..4 {
        for claim in node.claims(ask(nonce, 10)).await.claims {
            highest = highest.max(claim.token.fence);
            assert_eq!(node.settle(&claim, &queued(&node, &claim.delivery)).await, Written::Done);
        }
    }
    site.go_back();
    assert!(node.record("k").await.is_some());
    node.clock.step(QUIET_MS);
    let (other, _) = site.node();
    let claims = other.claims(ask(9, 10)).await.claims;
    assert_eq!(claims.len(), 2);
    assert!(claims.iter().all(|claim| claim.token.fence > highest), "{claims:?}");
}

#[tokio::test]
async fn whoever_saw_more_mends_again() {
    let mut site = Site::new();
    let (first, _) = site.node();
    let (second, told) = site.node();
    first.create(intent(&first, "k")).await;
    site.save();
    first.create(intent(&first, "a")).await;
    for key in ["b", "c", "d"] {
        second.create(intent(&second, key)).await;
    }
    site.go_back();
    assert!(first.record("a").await.is_none());
    assert!(second.record("b").await.is_none());
    let told = told.0.lock().unwrap().clone();
    let [StoreNews::WentBack { lost, .. }] = &told[..] else { panic!("{told:?}") };
    assert_eq!(lost[..], ["b", "c", "d"].map(id_of));
}

/// Long enough for every node to find out that a server was started anew.
const QUIET_MS: i64 = 3_000;

/// Whoever starts together with the server knows nothing of what the others are at.
#[tokio::test]
async fn a_node_that_is_new_takes_nothing_before_the_others_can_have_said_what_they_are_at() {
    let (site, node, claim) = Site::lost_spend().await;
    let (new, _) = site.node();
    let asked = new.claims(ask(2, 10)).await;
    assert!(asked.claims.is_empty());
    assert_eq!(asked.next_due, Some(belfry_domain::UnixMs(new.now().0 + QUIET_MS)));
    assert!(node.renew(&claim).await);
    node.clock.step(QUIET_MS);
    assert!(new.claims(ask(3, 10)).await.claims.is_empty(), "it stands again");
    assert!(node.stored(&claim.delivery).await.spent);
}

#[tokio::test]
async fn what_nobody_was_at_goes_on_after_a_while() {
    let (mut site, _, _) = Site::saved("k").await;
    site.go_back();
    let (new, told) = site.node();
    assert!(new.claims(ask(1, 10)).await.claims.is_empty());
    new.clock.step(QUIET_MS);
    assert_eq!(new.claims(ask(2, 10)).await.claims.len(), 1);
    assert_eq!(told.0.lock().unwrap()[..], [], "a restart that lost nothing is no news");
}

/// Somebody who knows nothing of it has written on: by its height alone the sequence says nothing.
#[tokio::test]
async fn a_loss_is_found_although_the_server_has_been_written_to_since() {
    let (mut site, node, told) = Site::saved("kept").await;
    node.create(intent(&node, "lost")).await;
    site.go_back();
    let (new, _) = site.node();
    for number in 0..20 {
        new.create(intent(&new, &format!("new-{number}"))).await;
    }
    assert!(node.record("lost").await.is_none());
    let told = told.0.lock().unwrap().clone();
    let [StoreNews::WentBack { lost, .. }] = &told[..] else { panic!("{told:?}") };
    assert_eq!(lost[..], [id_of("lost")]);
}

/// It was too late to say so, and its call may have been made: another one must not be.
#[tokio::test]
async fn a_claim_whose_call_may_have_been_made_stands_over_one_that_was_given_since() {
    let (site, node, claim) = Site::lost_spend().await;
    let (new, _) = site.node();
    assert!(new.claims(ask(2, 10)).await.claims.is_empty());
    new.clock.step(QUIET_MS);
    let second = new.claim(3).await;
    assert!(node.renew(&claim).await);
    assert_eq!(new.spend(&second, second.delivery.rev).await, Written::Stale);
    let done = ended(&node, &node.stored(&claim.delivery).await, State::Accepted);
    assert_eq!(node.settle(&claim, &done).await, Written::Done);
    let depths = node.store.depths().await.unwrap();
    assert!(depths.lanes.iter().all(|lane| (lane.due, lane.sending) == (0, 0)), "{depths:?}");
}

/// While nobody may claim, the server's clock is set back: what waits does not wait for as long as the step.
#[tokio::test]
async fn a_clock_that_steps_back_meanwhile_does_not_prolong_the_wait() {
    let (mut site, _, _) = Site::saved("k").await;
    site.go_back();
    let of_server = ManualClock::new();
    let clocks = Clocks { node: site.clock.clone(), store: StoreClock::Own(of_server.clone()) };
    let link = Link::to(&site.server.url()).unwrap();
    let names = Names::new("belfry".into(), 1);
    let new = Harness::over(
        RedisStore::new(link, names, clocks, Arc::new(Told::default()), crate::redis::mark()),
        &site.clock,
    );
    assert!(new.claims(ask(1, 10)).await.claims.is_empty());
    of_server.step(-3_600_000);
    site.clock.step(QUIET_MS);
    assert_eq!(new.claims(ask(2, 10)).await.claims.len(), 1);
}
