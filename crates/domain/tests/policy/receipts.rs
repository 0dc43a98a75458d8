//! Receipts come in any order, more than once, and before our own record of the call.

use std::time::Duration;

use belfry_domain::delivery::{State, StateName};
use belfry_domain::step::Rejected;
use belfry_domain::timeline::ReceiptKind;
use belfry_domain::{Asked, Delivery, Event, Order, Outcome, Why, WhyCode, step};

use super::fixtures::{FENCE, action, class, env, fresh, mark};

fn called() -> Event {
    let outcome = Outcome::Accepted { provider_ref: None, why: Why::new(WhyCode::Ok) };
    Event::Called { claim: mark(FENCE), outcome, took: Duration::ZERO }
}

const fn rank(state: StateName) -> u8 {
    match state {
        StateName::Accepted => 1,
        StateName::Delivered => 2,
        StateName::Bounced => 3,
        _ => 0,
    }
}

/// Brings `event` and, like whoever holds early receipts, brings the held ones again after it.
fn bring(delivery: &mut Delivery, event: Event, held: &mut Vec<Event>) {
    let before = rank(delivery.state.name());
    match step(delivery, &class(Order::SendThenRecord), event.clone(), env(true)) {
        Ok(transition) => {
            *delivery = transition.next;
            assert!(rank(delivery.state.name()) >= before, "never backwards: {:?}", delivery.state);
            for early in std::mem::take(held) {
                bring(delivery, early, held);
            }
        }
        Err(Rejected::Early) => held.push(event),
        Err(Rejected::Repeat) => {}
        Err(other) => panic!("{event:?}: {other:?}"),
    }
}

#[test]
fn all_120_orders_end_the_same_and_never_go_backwards() {
    let events = [
        called(),
        Event::Receipt(ReceiptKind::Delivered),
        Event::Receipt(ReceiptKind::Bounced),
        Event::Receipt(ReceiptKind::Delivered),
        Event::Receipt(ReceiptKind::Seen),
    ];
    let mut orders = 0;
    permute(&mut [0, 1, 2, 3, 4], 0, &mut |order| {
        orders += 1;
        let mut delivery = fresh(&class(Order::SendThenRecord));
        delivery.state = State::Sending { fence: FENCE };
        let mut held = Vec::new();
        for at in order {
            bring(&mut delivery, events[*at].clone(), &mut held);
        }
        assert_eq!(held, [], "nothing is left held in {order:?}");
        assert_eq!(delivery.state, State::Bounced, "{order:?}");
        assert!(delivery.ended());
    });
    assert_eq!(orders, 120);
}

fn permute(order: &mut [usize; 5], from: usize, visit: &mut impl FnMut(&[usize; 5])) {
    if from == order.len() {
        visit(order);
        return;
    }
    for at in from..order.len() {
        order.swap(from, at);
        permute(order, from + 1, visit);
        order.swap(from, at);
    }
}

/// The receipt of the second sending is no repeat of the first's.
#[test]
fn each_send_has_receipts_of_its_own() {
    let class = class(Order::SendThenRecord);
    let mut delivery = fresh(&class);
    let mut held = Vec::new();
    for send in 1..=3 {
        delivery.state = State::Sending { fence: FENCE };
        bring(&mut delivery, called(), &mut held);
        assert_eq!(delivery.state, State::Accepted);
        bring(&mut delivery, Event::Receipt(ReceiptKind::Delivered), &mut held);
        assert_eq!(delivery.state, State::Delivered, "send {send}");
        let again = Event::Receipt(ReceiptKind::Delivered);
        assert_eq!(step(&delivery, &class, again, env(true)), Err(Rejected::Repeat));
        let again = Event::Act { by: "key_1".into(), action: action(send, Asked::SendAgain { after_send: send }) };
        delivery = step(&delivery, &class, again, env(true)).unwrap().next;
        assert_eq!(delivery.state, State::Queued);
    }
}
