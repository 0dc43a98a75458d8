//! One key, one wish: its repeat is a success that changes nothing, and whatever else comes under
//! it is refused, never swallowed.

use belfry_domain::delivery::{ParkWhy, State, Stop};
use belfry_domain::step::Rejected;
use belfry_domain::timeline::Resolution;
use belfry_domain::{Asked, Class, Delivery, Event, Order, Outcome, Why, WhyCode, step};

use super::fixtures::{FENCE, action, class, env, fresh, mark};

fn act(number: u32, asked: Asked) -> Event {
    Event::Act { by: "key_1".into(), action: action(number, asked) }
}

fn resolve(to: Resolution, why: &str) -> Asked {
    Asked::Resolve { to, why: why.into() }
}

fn parked(class: &Class) -> Delivery {
    let mut delivery = fresh(class);
    delivery.state = State::Parked { why: ParkWhy::MayHaveArrived };
    delivery.ended_at = Some(delivery.created_at);
    delivery
}

fn all() -> [Asked; 7] {
    [
        Asked::Redrive { after_send: 1 },
        Asked::Redrive { after_send: 2 },
        Asked::SendAgain { after_send: 1 },
        Asked::SendAgain { after_send: 2 },
        resolve(Resolution::Delivered, ""),
        resolve(Resolution::Delivered, "She called."),
        resolve(Resolution::Failed, ""),
    ]
}

#[test]
fn another_wish_under_a_used_key_is_refused_whatever_the_state() {
    let class = class(Order::SendThenRecord);
    for first in all().into_iter().filter(|asked| asked.verb() == "resolve" || format!("{asked:?}").contains('1')) {
        let after = step(&parked(&class), &class, act(1, first.clone()), env(false)).unwrap().next;
        for second in all() {
            let told = step(&after, &class, act(1, second.clone()), env(false));
            if first == second {
                assert_eq!(told, Err(Rejected::Repeat), "{first:?}");
                continue;
            }
            let Err(Rejected::Reused { verb, differing }) = told else { panic!("{first:?} {second:?}: {told:?}") };
            assert_eq!(verb, first.verb());
            assert!(!differing.is_empty());
        }
    }
}

#[test]
fn what_differs_is_named() {
    for (one, other, differing) in [
        (Asked::Redrive { after_send: 1 }, Asked::Redrive { after_send: 1 }, &[][..]),
        (Asked::Redrive { after_send: 1 }, Asked::Redrive { after_send: 2 }, &["/after_send"]),
        (Asked::SendAgain { after_send: 1 }, Asked::SendAgain { after_send: 2 }, &["/after_send"]),
        (Asked::Redrive { after_send: 1 }, Asked::SendAgain { after_send: 1 }, &[""]),
        (resolve(Resolution::Failed, ""), Asked::SendAgain { after_send: 1 }, &[""]),
        (resolve(Resolution::Failed, "a"), resolve(Resolution::Failed, ""), &["/why"]),
        (resolve(Resolution::Failed, "a"), resolve(Resolution::Delivered, "a"), &["/to"]),
        (resolve(Resolution::Failed, "a"), resolve(Resolution::Delivered, "b"), &["/to", "/why"]),
    ] {
        assert_eq!(one.differing(&other), differing);
        assert_eq!(other.differing(&one), differing);
    }
}

/// What was refused was not done: the same key may ask again, once it is possible.
#[test]
fn a_refused_action_leaves_its_key_free() {
    let class = class(Order::SendThenRecord);
    let queued = fresh(&class);
    let asked = act(1, Asked::Redrive { after_send: 1 });
    assert!(matches!(step(&queued, &class, asked.clone(), env(false)), Err(Rejected::NotNow(_))));
    let redriven = step(&parked(&class), &class, asked, env(false)).unwrap().next;
    assert_eq!((redriven.state, redriven.actions.len()), (State::Queued, 1));
}

#[test]
fn so_many_actions_are_kept_and_no_more() {
    let class = class(Order::SendThenRecord);
    let mut delivery = parked(&class);
    for number in 1..=12 {
        delivery = step(&delivery, &class, act(number, Asked::Redrive { after_send: 1 }), env(false)).unwrap().next;
        delivery.state = State::Parked { why: ParkWhy::MayHaveArrived };
    }
    let kept: Vec<_> = (5..=12).map(|number| action(number, Asked::Redrive { after_send: 1 })).collect();
    assert_eq!(delivery.actions, kept);
}

#[test]
fn only_what_failed_for_its_token_is_spared_and_no_later_than_it_would_have_gone_out() {
    let class = &class(Order::SendThenRecord);
    let env = env(false);
    let failed = |code| {
        let sending = Delivery { state: State::Sending { fence: FENCE }, ..fresh(class) };
        let outcome = Outcome::Refused { why: Why::new(code) };
        let event = Event::Called { claim: mark(FENCE), outcome, took: std::time::Duration::ZERO };
        step(&sending, class, event, env).unwrap().next
    };
    for code in [WhyCode::BadToken, WhyCode::WrongApp] {
        let before = failed(code);
        assert_eq!(before.state, State::Failed);
        let next = step(&before, class, Event::Spared, env).unwrap().next;
        assert_eq!((next.state, next.send, next.expires_at), (State::Queued, before.send, before.expires_at));
        assert_eq!((next.attempts, next.last.as_ref(), next.ended_at), (0, None, None));
        assert!(step(&next, class, Event::Spared, env).is_err(), "twice");
        // Once in each send: refused again, it is the token.
        let outcome = Outcome::Refused { why: Why::new(code) };
        let called = Event::Called { claim: mark(FENCE), outcome, took: std::time::Duration::ZERO };
        let again = Delivery { state: State::Sending { fence: FENCE }, ..next };
        let again = step(&again, class, called, env).unwrap().next;
        assert!(again.state == State::Failed && step(&again, class, Event::Spared, env).is_err());
        // Whoever asked to stop it, in the call or after it had failed, meant this call too.
        let cancel = Event::StopAsked(Stop::Cancel { by: "key_1".into(), why: "wrong list".into() });
        let stopped = step(&before, class, cancel, env).unwrap().next;
        assert_eq!(stopped.state, State::Failed);
        assert!(step(&stopped, class, Event::Spared, env).is_err());
    }
    for code in [WhyCode::TokenMalformed, WhyCode::TooLarge] {
        assert!(step(&failed(code), class, Event::Spared, env).is_err(), "{code}");
    }
}
