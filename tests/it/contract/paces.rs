//! [`belfry::ports::paces::Paces`].

use belfry::ports::paces::{SHARE_LEASE, ShareAsk};
use belfry_domain::share::Shares;

use super::harness::Harness;
use super::on_every_store;
use crate::peers::rng::Rng;

on_every_store!(
    one_node_has_it_all,
    several_split_it_as_evenly_as_can_be,
    what_is_to_be_given_up_is_held_until_the_node_says_so,
    a_node_that_is_gone_leaves_its_share_after_a_lease,
    a_question_that_comes_late_counts_for_nothing,
    who_leaves_gives_all_back,
    paces_are_shared_apart_and_answered_in_order,
    another_split_of_the_same_pace_is_reckoned_in,
    random_questions_are_answered_as_the_domain_answers_them,
);

fn lease_ms() -> i64 {
    i64::try_from(SHARE_LEASE.as_millis()).unwrap()
}

fn ask(pace: &str, parts: u32, using: u32) -> ShareAsk {
    ShareAsk { pace: pace.into(), parts, using }
}

async fn share(h: &Harness, node: &str, number: u64, asked: ShareAsk) -> u32 {
    let shares = h.store.shares(node, number, vec![asked]).await.unwrap();
    assert_eq!(shares.len(), 1);
    shares[0]
}

async fn one_node_has_it_all(h: Harness) {
    assert_eq!(share(&h, "a", 1, ask("main", 7, 0)).await, 7);
    assert_eq!(share(&h, "a", 2, ask("main", 7, 7)).await, 7);
    assert_eq!(h.store.shares("a", 3, Vec::new()).await.unwrap(), Vec::<u32>::new());
}

async fn several_split_it_as_evenly_as_can_be(h: Harness) {
    let nodes = ["a", "b", "c"];
    let mut using = [0; 3];
    for number in 1..=4 {
        for (node, used) in nodes.iter().zip(&mut using) {
            *used = share(&h, node, number, ask("main", 7, *used)).await;
        }
    }
    assert_eq!(using, [3, 2, 2]);
    // Fewer parts than nodes: some have none.
    for number in 1..=4 {
        for (node, used) in nodes.iter().zip(&mut using) {
            *used = share(&h, node, number, ask("slow", 2, if number == 1 { 0 } else { *used })).await;
        }
    }
    assert_eq!(using, [1, 1, 0]);
}

async fn what_is_to_be_given_up_is_held_until_the_node_says_so(h: Harness) {
    assert_eq!(share(&h, "a", 1, ask("main", 6, 0)).await, 6);
    assert_eq!(share(&h, "b", 1, ask("main", 6, 0)).await, 0);
    assert_eq!(share(&h, "a", 2, ask("main", 6, 6)).await, 3);
    // The answer may be lost: "a" may still go by six.
    assert_eq!(share(&h, "b", 2, ask("main", 6, 0)).await, 0);
    assert_eq!(share(&h, "a", 3, ask("main", 6, 3)).await, 3);
    assert_eq!(share(&h, "b", 3, ask("main", 6, 0)).await, 3);
}

async fn a_node_that_is_gone_leaves_its_share_after_a_lease(h: Harness) {
    assert_eq!(share(&h, "a", 1, ask("main", 6, 0)).await, 6);
    h.clock.step(lease_ms() - 1);
    assert_eq!(share(&h, "b", 1, ask("main", 6, 0)).await, 0);
    h.clock.step(1);
    assert_eq!(share(&h, "b", 2, ask("main", 6, 0)).await, 6);
    // It only slept, and knows that its lease is over.
    assert_eq!(share(&h, "a", 2, ask("main", 6, 0)).await, 0);
}

async fn a_question_that_comes_late_counts_for_nothing(h: Harness) {
    assert_eq!(share(&h, "a", 2, ask("main", 6, 0)).await, 6);
    assert_eq!(share(&h, "a", 3, ask("main", 6, 6)).await, 6);
    assert_eq!(share(&h, "a", 1, ask("main", 6, 0)).await, 0);
    assert_eq!(share(&h, "a", 2, ask("main", 0, 0)).await, 0);
    assert_eq!(share(&h, "b", 1, ask("main", 6, 0)).await, 0, "all of it is still held");
}

async fn who_leaves_gives_all_back(h: Harness) {
    assert_eq!(share(&h, "a", 1, ask("main", 6, 0)).await, 6);
    assert_eq!(share(&h, "a", 2, ask("main", 0, 0)).await, 0);
    assert_eq!(share(&h, "b", 1, ask("main", 6, 0)).await, 6);
}

async fn paces_are_shared_apart_and_answered_in_order(h: Harness) {
    let asks = vec![ask("main", 4, 0), ask("texts", 9, 0)];
    assert_eq!(h.store.shares("a", 1, asks.clone()).await.unwrap(), [4, 9]);
    assert_eq!(share(&h, "b", 1, ask("texts", 9, 0)).await, 0);
    assert_eq!(share(&h, "b", 2, ask("other", 5, 0)).await, 5);
    let many: Vec<ShareAsk> = (0..300).map(|at| ask(&format!("p{at}"), at + 1, 0)).collect();
    assert_eq!(h.store.shares("a", 2, many).await.unwrap(), (1..=300).collect::<Vec<u32>>());
}

async fn another_split_of_the_same_pace_is_reckoned_in(h: Harness) {
    assert_eq!(share(&h, "a", 1, ask("main", 3, 0)).await, 3);
    assert_eq!(share(&h, "b", 1, ask("main", 100, 0)).await, 0);
    assert_eq!(share(&h, "a", 2, ask("main", 3, 1)).await, 2);
    // Two thirds are held, rounded up.
    assert_eq!(share(&h, "b", 2, ask("main", 100, 0)).await, 33);
    assert_eq!(share(&h, "c", 1, ask("main", 100, 0)).await, 0);
}

async fn random_questions_are_answered_as_the_domain_answers_them(h: Harness) {
    let mut rng = Rng(0x5a4e);
    let mut model = Shares::default();
    for turn in 0..400 {
        h.clock.step(i64::try_from(rng.below(1_500)).unwrap());
        let node = ["a", "b", "c", "d"][usize::try_from(rng.below(4)).unwrap()];
        let small = |rng: &mut Rng, bound| u32::try_from(rng.below(bound)).unwrap();
        let parts = if rng.chance(80) { 10 } else { small(&mut rng, 25) };
        let asked = ask("main", parts, small(&mut rng, 12));
        let number = (10 + turn) - rng.below(4);
        let expected = model.ask(h.now(), node, number, &asked);
        assert_eq!(share(&h, node, number, asked.clone()).await, expected, "{turn}: {node} {number} {asked:?}");
    }
}
