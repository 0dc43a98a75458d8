//! [`belfry::ports::holds::Holds`], and that every claim obeys.

use belfry::ports::deliveries::{ClaimAsk, NewNotification, Reclaim, Written};
use belfry_domain::class::Class;
use belfry_domain::outcome::RepeatGuard;
use belfry_domain::timeline::ClaimMark;
use belfry_domain::{Delivery, Env, Event, Lane, Priority, State, UnixMs, step};

use super::fixture::{LEASE, LEASE_MS, PARKED, ask, due_in, ended, in_lane, intent, intent_of, main_lane, queued};
use super::harness::{Harness, START};
use super::on_every_store;

on_every_store!(
    what_was_due_by_then_is_not_claimed_until_it_is_released,
    the_first_hold_stands_until_that_very_one_is_released,
    what_is_due_later_goes_out_beside_what_is_held,
    what_was_being_sent_stays_held_when_its_claim_is_reclaimed,
    what_a_person_puts_back_goes_out,
    what_is_held_is_read_in_pages_each_once,
    what_is_held_is_counted_apart,
    many_tenants_with_something_held_keep_nobody_else_waiting,
    a_reading_misses_nothing_while_it_is_cancelled,
);

/// All that is held, read by pages of `limit`.
pub(super) async fn all_held_back(h: &Harness, limit: u16) -> Vec<Delivery> {
    let (mut all, mut after) = (Vec::new(), None::<String>);
    loop {
        let page = h.store.held_back(after.as_deref(), limit).await.unwrap();
        assert!(page.deliveries.len() <= usize::from(limit));
        all.extend(page.deliveries);
        after = page.next;
        if after.is_none() {
            return all;
        }
    }
}

async fn claimed(h: &Harness, nonce: u64) -> Vec<Delivery> {
    h.claims(ask(nonce, 100)).await.claims.into_iter().map(|claim| claim.delivery).collect()
}

async fn what_was_due_by_then_is_not_claimed_until_it_is_released(h: Harness) {
    for key in ["a", "b"] {
        h.create(intent(&h, key)).await;
    }
    assert_eq!(h.store.standing().await.unwrap(), None);
    h.clock.step(1);
    let at = h.store.hold(h.now()).await.unwrap();
    assert_eq!((at, h.store.standing().await.unwrap()), (h.now(), Some(h.now())));
    let claims = h.claims(ask(1, 100)).await;
    assert!(claims.claims.is_empty());
    assert_eq!(claims.next_due, None, "nothing is left that comes due by itself");
    h.clock.step(86_400_000);
    assert!(claimed(&h, 2).await.is_empty(), "time does not free it");
    h.store.release(at).await.unwrap();
    assert_eq!(h.store.standing().await.unwrap(), None);
    assert_eq!(claimed(&h, 3).await.len(), 2);
}

async fn the_first_hold_stands_until_that_very_one_is_released(h: Harness) {
    h.create(intent(&h, "a")).await;
    let first = h.store.hold(h.now()).await.unwrap();
    h.clock.step(5_000);
    h.create(intent(&h, "b")).await;
    // A restart does not move it: what came in meanwhile goes out.
    assert_eq!(h.store.hold(h.now()).await.unwrap(), first);
    assert_eq!(claimed(&h, 1).await.len(), 1);
    h.store.release(h.now()).await.unwrap();
    assert_eq!(h.store.standing().await.unwrap(), Some(first));
    h.store.release(first).await.unwrap();
    // A late repeat of a release lets nothing go of a newer hold.
    let second = h.store.hold(h.now()).await.unwrap();
    assert_eq!(second, h.now());
    h.store.release(first).await.unwrap();
    assert!(claimed(&h, 2).await.is_empty());
}

async fn what_is_due_later_goes_out_beside_what_is_held(h: Harness) {
    h.create(intent(&h, "held")).await;
    h.create(due_in(intent(&h, "scheduled"), 10_000)).await;
    h.store.hold(h.now()).await.unwrap();
    h.clock.step(1);
    h.create(intent(&h, "new")).await;
    let claims = h.claims(ask(1, 100)).await;
    assert_eq!(claims.claims.len(), 1);
    assert_eq!(claims.claims[0].notification.id, super::fixture::id_of("new"));
    // The wake of an accept may come in only now, and then nothing is said before the next look.
    let mut next_due = claims.next_due;
    for nonce in 100..400 {
        if next_due.is_some() {
            break;
        }
        let again = h.claims(ask(nonce, 100)).await;
        assert!(again.claims.is_empty());
        next_due = again.next_due;
    }
    assert_eq!(next_due, Some(UnixMs(START.0 + 10_000)));
    h.clock.step(10_000);
    assert_eq!(h.claim(2).await.notification.id, super::fixture::id_of("scheduled"));
}

/// What the sweeper writes of a claim that lapsed.
fn lapsed(h: &Harness, delivery: &Delivery) -> Delivery {
    let State::Sending { fence } = delivery.state else { panic!("{:?}", delivery.state) };
    let event = Event::Lapsed { claim: ClaimMark { worker: "w1".into(), fence }, alone: false };
    let env = Env { now: h.now(), jitter: 0, receipts: false, guard: RepeatGuard::None };
    step(delivery, &Class::unconfigured("receipt", LEASE), event, env).unwrap().next
}

async fn what_was_being_sent_stays_held_when_its_claim_is_reclaimed(h: Harness) {
    h.create(intent(&h, "k")).await;
    h.clock.step(1_000);
    let claim = h.claim(1).await;
    h.clock.step(1_000);
    let at = h.store.hold(h.now()).await.unwrap();
    h.clock.step(LEASE_MS);
    let seen = h.store.held(10).await.unwrap().remove(0);
    assert!(seen.lapsed);
    let next = lapsed(&h, &claim.delivery);
    assert_eq!(h.reclaim(Reclaim { next: next.clone(), seen }).await, Written::Done);
    assert_eq!((next.state, next.due_at), (State::Queued, START), "its place in the queue");
    assert!(claimed(&h, 2).await.is_empty());
    assert_eq!(all_held_back(&h, 10).await.iter().map(|one| one.id).collect::<Vec<_>>(), [next.id]);
    h.store.release(at).await.unwrap();
    assert_eq!(claimed(&h, 3).await.len(), 1);
}

async fn what_a_person_puts_back_goes_out(h: Harness) {
    h.create(intent(&h, "k")).await;
    let parked = h.finish(1, PARKED).await;
    h.store.hold(h.now()).await.unwrap();
    h.clock.step(1);
    assert_eq!(h.apply(&queued(&h, &parked)).await, Written::Done);
    assert_eq!(claimed(&h, 2).await.len(), 1);
}

fn lanes() -> [Lane; 3] {
    [main_lane(), Lane::new("other", Priority::High), Lane::new("other", Priority::Low)]
}

/// In several lanes, of several tenants, due at several moments, some that run alone.
async fn spread_out(h: &Harness) -> Vec<Delivery> {
    let mut all = Vec::new();
    for at in 0..24 {
        let tenant = ["acme", "other", "third"][at % 3];
        let plain = intent_of(h, &format!("k{at}"), tenant, 1 + at % 2);
        let mut intent: NewNotification = in_lane(plain, &lanes()[at / 2 % 3]);
        intent.deliveries.iter_mut().filter(|_| at % 5 == 0).for_each(|one| one.lapses = 1);
        all.extend(intent.deliveries.clone());
        h.create(intent).await;
        h.clock.step(i64::try_from(at % 4).unwrap());
    }
    all.sort_by_key(|one| one.id);
    all
}

async fn what_is_held_is_read_in_pages_each_once(h: Harness) {
    let all = spread_out(&h).await;
    assert!(all_held_back(&h, 5).await.is_empty(), "nothing is held");
    h.store.hold(h.now()).await.unwrap();
    h.clock.step(1);
    h.create(intent(&h, "new")).await;
    for limit in [1, 5, 36, 100] {
        let mut found = all_held_back(&h, limit).await;
        found.sort_by_key(|one| one.id);
        assert_eq!(found, all, "by {limit}");
    }
    // A place that nobody gave out is the beginning.
    assert!(!h.store.held_back(Some("nonsense"), 5).await.unwrap().deliveries.is_empty());
}

async fn what_is_held_is_counted_apart(h: Harness) {
    let all = spread_out(&h).await;
    let at = h.store.hold(h.now()).await.unwrap();
    h.clock.step(1);
    h.create(intent(&h, "new")).await;
    let depths = h.store.depths().await.unwrap();
    assert_eq!((depths.restored_at, depths.held_back), (Some(at), all.len() as u64));
    assert_eq!(depths.lanes.iter().map(|lane| lane.due).sum::<u64>(), 1);
    assert_eq!(depths.lanes.iter().map(|lane| lane.waiting).sum::<u64>(), all.len() as u64 + 1);
    assert_eq!(depths.lanes.iter().filter_map(|lane| lane.oldest_due).min(), Some(h.now()));
    h.store.release(at).await.unwrap();
    let depths = h.store.depths().await.unwrap();
    assert_eq!((depths.restored_at, depths.held_back), (None, 0));
    assert_eq!(depths.lanes.iter().map(|lane| lane.due).sum::<u64>(), all.len() as u64 + 1);
}

async fn many_tenants_with_something_held_keep_nobody_else_waiting(h: Harness) {
    // More than one claim looks at.
    const TENANTS: usize = 600;
    let names: Vec<String> = (0..TENANTS).map(|at| format!("tenant{at:03}")).collect();
    let held: Vec<NewNotification> = names.iter().map(|tenant| intent_of(&h, "k", tenant, 1)).collect();
    for batch in held.chunks(100) {
        h.store.accept(batch.to_vec()).await.unwrap();
    }
    h.store.hold(h.now()).await.unwrap();
    h.clock.step(1);
    // Of one of them, and of one of whom nothing is held.
    h.create(intent_of(&h, "new", &names[TENANTS - 1], 1)).await;
    h.create(intent_of(&h, "new", "zealous", 1)).await;
    let mut found = Vec::new();
    for nonce in 0..10 {
        found.extend(h.claims(ask(nonce, 100)).await.claims.into_iter().map(|claim| claim.delivery.tenant));
        // What a node has heard is asked again once something has come in.
        h.create(intent_of(&h, &format!("more{nonce}"), "zealous", 1)).await;
    }
    assert!(found.contains(&names[TENANTS - 1]), "{found:?}");
    assert!(found.iter().all(|tenant| *tenant == names[TENANTS - 1] || tenant == "zealous"));
}

async fn a_reading_misses_nothing_while_it_is_cancelled(h: Harness) {
    let all = spread_out(&h).await;
    h.store.hold(h.now()).await.unwrap();
    // Of some tenants everything goes, of others nothing, as the reading comes along.
    let goes = |one: &Delivery| one.tenant != "other" && one.slot == "to";
    let mut after = None::<String>;
    for _ in 0..1_000 {
        let page = h.store.held_back(after.as_deref(), 2).await.unwrap();
        for one in page.deliveries.iter().filter(|one| goes(one)) {
            assert_eq!(h.apply(&ended(&h, one, State::Cancelled)).await, Written::Done);
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(after, None, "it comes to an end");
    let mut left = all_held_back(&h, 100).await;
    left.sort_by_key(|one| one.id);
    assert_eq!(left, all.into_iter().filter(|one| !goes(one)).collect::<Vec<_>>());
    let everything = ClaimAsk { lanes: lanes().map(|lane| (lane, 100)).to_vec(), ..ask(9, 0) };
    assert!(h.claims(everything).await.claims.is_empty());
}
