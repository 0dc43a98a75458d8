//! A device whose token changes while a message to it is under way.

use belfry_domain::timeline::Happened;
use belfry_domain::{Event, Order, State, step};

use super::fixtures::{class, env, fresh};

#[test]
fn what_goes_to_another_token_says_so_and_keeps_the_first_one_s_hash() {
    let class = class(Order::SendThenRecord);
    let mut delivery = fresh(&class);
    delivery.state = State::Sending { fence: 1 };
    let first = delivery.address_hash.clone();
    for (hash, mask) in [("e1e1e1", "…1111"), ("e2e2e2", "…2222")] {
        let event = Event::Readdressed { hash: hash.into(), mask: mask.into() };
        delivery = step(&delivery, &class, event, env(false)).unwrap().next;
        assert_eq!((delivery.address_hash.as_str(), delivery.address_mask.as_str()), (hash, mask));
        assert_eq!(delivery.first_hash.as_ref(), Some(&first));
        assert_eq!(delivery.timeline.entries.last().unwrap().happened, Happened::Readdressed);
    }
    let told = format!("{:?}", delivery.timeline);
    assert!(!told.contains("e1e1e1") && !told.contains("…1111"), "{told}");
    delivery.maybe_sent = true;
    let event = Event::Readdressed { hash: "cc".into(), mask: "…3333".into() };
    assert!(step(&delivery, &class, event, env(false)).is_err(), "never after what may have arrived");
}
