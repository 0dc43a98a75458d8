//! Every sentence that a delivery can be shown with, by playing through all that can happen to one:
//! a text to be read, so that no state is explained by what contradicts it.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::time::Duration;

use belfry_domain::admission::Verdict;
use belfry_domain::delivery::{DeferWhy, State, Stop};
use belfry_domain::device::Undeliverable;
use belfry_domain::lane::OUTBOX;
use belfry_domain::outcome::{Looked, RepeatGuard, ThrottleScope};
use belfry_domain::suppression::SuppressionKind;
use belfry_domain::timeline::{ReceiptKind, Resolution};
use belfry_domain::{Asked, Class, Delivery, Env, Event, Lane, Order, Outcome, Why, WhyCode, step};

use super::fixtures::{ACCEPTED_AT, NOW, action, cancel, class, digest, env, fresh, mark, slot};
use super::golden;

/// How many claims, calls and wishes follow each other.
const DEEP: usize = 4;

/// Every outcome with every code that a channel can give for it.
fn outcomes() -> Vec<Outcome> {
    use WhyCode::{
        BadToken, ContentRefused, CredentialRefused, CutAfter, NoSuchRecipient, NotSupported, Panicked, PolicyRefused,
        RateLimited, RecipientRefused, SetupRefused, ShutDown, TimedOutAfter, TimedOutBefore, TlsFailed, TooLarge,
        TryLater, Unreachable, Unrecognised,
    };
    let throttled = |scope, code| Outcome::Throttled { after: Duration::from_secs(5), scope, why: Why::new(code) };
    let mut all = vec![
        Outcome::Accepted { provider_ref: None, why: Why::said(WhyCode::Ok, "250 OK") },
        Outcome::RecipientGone { since: None, why: Why::new(NoSuchRecipient) },
        throttled(ThrottleScope::Credential, CredentialRefused),
        throttled(ThrottleScope::Credential, SetupRefused),
        throttled(ThrottleScope::Recipient, RateLimited),
    ];
    all.extend([TryLater, RateLimited, TimedOutBefore].map(|code| throttled(ThrottleScope::Provider, code)));
    all.extend(
        [ContentRefused, PolicyRefused, NoSuchRecipient, RecipientRefused, NotSupported, TooLarge, BadToken]
            .map(|code| Outcome::Refused { why: Why::new(code) }),
    );
    all.extend(
        [TryLater, RateLimited, Unreachable, TlsFailed, TimedOutBefore, Unrecognised]
            .map(|code| Outcome::NotAccepted { retry_after: None, why: Why::new(code) }),
    );
    all.extend(
        [TimedOutAfter, CutAfter, ShutDown, Panicked, Unrecognised]
            .map(|code| Outcome::Unknown { retry_after: None, why: Why::new(code) }),
    );
    all
}

/// Every reason for which admission ends something.
fn suppressed() -> impl Iterator<Item = Why> {
    let kinds = SuppressionKind::ALL.iter().map(|kind| Why::said(kind.code(), "since 2026-12-01T10:00:00Z"));
    kinds.chain([WhyCode::TurnedOff, WhyCode::NotAskedFor].map(Why::new))
}

fn events(depth: usize) -> Vec<Event> {
    let mut all: Vec<Event> =
        outcomes().into_iter().map(|outcome| Event::Called { claim: mark(1), outcome, took: Duration::ZERO }).collect();
    all.extend(
        [DeferWhy::Budget, DeferWhy::Breaker, DeferWhy::Unconfigured].map(|why| Event::Held { until: NOW, why }),
    );
    all.push(Event::Undeliverable(Undeliverable::Dead));
    all.extend([DeferWhy::QuietHours, DeferWhy::Paused].map(|why| Event::Admitted(Verdict::Hold { until: NOW, why })));
    all.push(Event::Admitted(Verdict::Capped { until: NOW, cap: "receipts_per_order".into() }));
    all.push(Event::Admitted(Verdict::OverCap { cap: "receipts_per_order".into(), opens: NOW }));
    all.extend(suppressed().map(|why| Event::Admitted(Verdict::Suppress(why))));
    all.extend([ReceiptKind::Delivered, ReceiptKind::Bounced].map(Event::Receipt));
    all.extend([Looked::Found { provider_ref: None }, Looked::NotYet, Looked::Absent].map(Event::LookedUp));
    all.extend([
        Event::Gathered(slot()),
        Event::Folding { into: digest() },
        Event::Unfolded { from: digest() },
        Event::Folded { into: digest() },
        Event::Admitted(Verdict::Expire),
        Event::Admitted(Verdict::Stop(Stop::Supersede { by_version: 3 })),
        Event::StopAsked(cancel()),
        Event::Uncallable(Why::new(WhyCode::RenderFailed)),
        Event::Drifted,
        Event::Lapsed { claim: mark(1), alone: true },
        Event::ReceiptWindowClosed,
    ]);
    let number = u32::try_from(depth).unwrap();
    let act = |asked| Event::Act { by: "key_1".into(), action: action(number, asked) };
    all.push(act(Asked::Resolve { to: Resolution::Delivered, why: "She called.".into() }));
    all.push(act(Asked::Resolve { to: Resolution::Failed, why: String::new() }));
    for send in 1..=2 {
        all.push(act(Asked::Redrive { after_send: send }));
        all.push(act(Asked::SendAgain { after_send: send }));
    }
    all
}

/// What tells two deliveries apart, as far as what follows and what is said are concerned.
fn essence(it: &Delivery) -> String {
    format!(
        "{:?} {:?} {:?} {} {} {} {} {} {} {} {} {:?} {:?} {:?}",
        it.state,
        it.last.as_ref().map(|why| why.code),
        it.gathering,
        it.send,
        it.attempts,
        it.unknowns,
        it.lapses_alone,
        it.maybe_sent,
        it.reached,
        it.twice,
        it.ended(),
        it.stop,
        it.resolved,
        it.receipt_until.is_some(),
    )
}

/// A small class, so that its ends are soon reached.
fn short(order: Order) -> Class {
    let mut class = class(order);
    class.retry.max_attempts = 2;
    class.receipt_window = Duration::ZERO;
    class
}

fn reached(order: Order, receipts: bool, provider: &str) -> Vec<Delivery> {
    let class = short(order);
    let mut start = fresh(&class);
    start.lane = Lane::new(provider, class.priority);
    let mut seen: BTreeMap<String, Delivery> = BTreeMap::from([(essence(&start), start)]);
    let mut edge: Vec<Delivery> = seen.values().cloned().collect();
    for depth in 0..DEEP {
        let mut next = Vec::new();
        for delivery in edge {
            let mut claimed = delivery.clone();
            if claimed.state.waiting() {
                claimed.state = State::Sending { fence: 1 };
                claimed.spent = class.at_most_once();
            }
            for event in events(depth) {
                for from in [&delivery, &claimed] {
                    let env = Env { now: NOW, ..env(receipts) };
                    let Ok(transition) = step(from, &class, event.clone(), env) else { continue };
                    if let Entry::Vacant(place) = seen.entry(essence(&transition.next)) {
                        place.insert(transition.next.clone());
                        next.push(transition.next);
                    }
                }
            }
        }
        edge = next;
    }
    seen.into_values().collect()
}

fn all_reached(provider: &str) -> Vec<Delivery> {
    let worlds = Order::ALL.iter().flat_map(|order| [(*order, false), (*order, true)]);
    worlds.flat_map(|(order, receipts)| reached(order, receipts, provider)).collect()
}

#[test]
fn every_state_is_explained_by_what_fits_it() {
    let mut text = String::from("Every sentence by state, as the policy can come to it. Made from the code.\n");
    for (title, provider) in [("a provider", "main"), ("the outbox", OUTBOX)] {
        let mut said: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for delivery in all_reached(provider) {
            agrees_about_copies(&delivery);
            said.entry(delivery.state.name().to_string()).or_default().insert(delivery.reason());
        }
        writeln!(text, "\n## Through {title}").unwrap();
        for (state, sentences) in said {
            writeln!(text, "\n{state}").unwrap();
            sentences.iter().for_each(|sentence| writeln!(text, "  {sentence}").unwrap());
        }
    }
    golden::assert_file("crates/domain/tests/policy/reasons.txt", &text);
}

/// The sentence says the same about copies as `may_have_arrived` does.
#[track_caller]
fn agrees_about_copies(delivery: &Delivery) {
    let reason = delivery.reason();
    let says = reason.to_lowercase().contains("may have arrived");
    if says {
        assert!(delivery.may_have_arrived(), "{:?}: {reason}", delivery.state);
    }
    let says_itself = matches!(delivery.state, State::Accepted | State::Delivered | State::Bounced)
        || delivery.resolved.is_some()
        || delivery.spent;
    if delivery.may_have_arrived() && !says_itself {
        assert!(says, "{:?}: {reason}", delivery.state);
    }
}

fn played(guard: RepeatGuard, outcomes: &[Outcome]) -> Delivery {
    let class = class(Order::SendThenRecord);
    let mut delivery = fresh(&class);
    for outcome in outcomes {
        delivery.state = State::Sending { fence: 1 };
        let event = Event::Called { claim: mark(1), outcome: outcome.clone(), took: Duration::ZERO };
        delivery = step(&delivery, &class, event, Env { guard, ..env(false) }).unwrap().next;
    }
    delivery
}

#[test]
fn two_copies_are_said_to_be_possible_where_they_are() {
    let cut = Outcome::Unknown { retry_after: None, why: Why::new(WhyCode::CutAfter) };
    let later = Outcome::NotAccepted { retry_after: None, why: Why::new(WhyCode::TryLater) };
    let accepted = Outcome::Accepted { provider_ref: None, why: Why::new(WhyCode::Ok) };
    let keyed = RepeatGuard::Key(Duration::from_secs(600));
    for (guard, outcomes, twice) in [
        (RepeatGuard::None, vec![&accepted], false),
        (RepeatGuard::None, vec![&later, &accepted], false),
        (RepeatGuard::None, vec![&cut, &accepted], true),
        (RepeatGuard::None, vec![&cut, &later, &accepted], true),
        (keyed, vec![&cut, &accepted], false),
        (RepeatGuard::Collapse, vec![&cut, &accepted], false),
    ] {
        let outcomes: Vec<_> = outcomes.into_iter().cloned().collect();
        let delivery = played(guard, &outcomes);
        assert_eq!((delivery.state, delivery.twice), (State::Accepted, twice), "{guard:?} {outcomes:?}");
        // Never called delivered.
        assert!(delivery.reason().starts_with("The provider accepted it; whether it arrived is not known."));
        assert_eq!(delivery.reason().contains("there may be two copies"), twice);
    }
}

#[test]
fn a_resolution_says_by_whom_and_ends_it_at_its_own_time() {
    let class = class(Order::RecordThenSend);
    let mut delivery = fresh(&class);
    delivery.state = State::Unknown;
    delivery.ended_at = Some(ACCEPTED_AT);
    let asked = Asked::Resolve { to: Resolution::Delivered, why: "She called.".into() };
    let event = Event::Act { by: "key_1".into(), action: action(1, asked) };
    let resolved = step(&delivery, &class, event, env(false)).unwrap().next;
    assert_eq!(resolved.reason(), "Delivered, as resolved by hand by key_1: She called.");
    assert_eq!(resolved.ended_at, Some(NOW));
    // The provider's own word replaces a person's.
    let bounced = step(&resolved, &class, Event::Receipt(ReceiptKind::Bounced), env(false)).unwrap().next;
    assert_eq!((bounced.state, bounced.resolved.is_some()), (State::Bounced, false));
}
