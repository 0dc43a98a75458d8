//! What holds for every delivery, whatever happens to it in whatever order.

use std::time::Duration;

use belfry_domain::admission::{Verdict, admit};
use belfry_domain::delivery::{DeferWhy, State, StateName, Stop};
use belfry_domain::outcome::{Looked, RepeatGuard};
use belfry_domain::step::StepFact;
use belfry_domain::timeline::{ReceiptKind, Resolution, Timeline};
use belfry_domain::{Asked, Class, Delivery, Env, Event, Order, Outcome, UnixMs, Why, WhyCode, step};
use proptest::prelude::*;

use super::fixtures::{ACCEPTED_AT, action, class, fresh, mark, outcomes};

/// What a world may bring next; carried out only where it is possible.
#[derive(Clone, Debug)]
enum Move {
    Claim,
    Call(usize),
    LookUp(u8),
    Hold,
    Suppress,
    Release,
    Uncallable,
    Lapse,
    StaleReport(usize),
    Stop(bool),
    Receipt(usize),
    CloseWindow,
    Redrive,
    SendAgain,
    Resolve(bool),
    Wait(u32),
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        12 => Just(Move::Claim),
        12 => (0..outcomes().len()).prop_map(Move::Call),
        2 => (0u8..3).prop_map(Move::LookUp),
        1 => Just(Move::Hold),
        1 => Just(Move::Suppress),
        1 => Just(Move::Release),
        1 => Just(Move::Uncallable),
        4 => Just(Move::Lapse),
        2 => (0..outcomes().len()).prop_map(Move::StaleReport),
        1 => any::<bool>().prop_map(Move::Stop),
        2 => (0..ReceiptKind::ALL.len()).prop_map(Move::Receipt),
        1 => Just(Move::CloseWindow),
        1 => Just(Move::Redrive),
        1 => Just(Move::SendAgain),
        1 => any::<bool>().prop_map(Move::Resolve),
        6 => (1u32..600_000).prop_map(Move::Wait),
    ];
    prop::collection::vec(one, 1..120)
}

/// One delivery as a store keeps it and a worker works on it, and what the provider saw.
struct World {
    class: Class,
    delivery: Delivery,
    now: UnixMs,
    jitter: u64,
    guard: RepeatGuard,
    receipts: bool,
    fence: u64,
    actions: u32,
    /// Calls that may have had an effect, since a person last acted.
    effects: u32,
    /// Calls that count, since a person last acted.
    calls: u32,
    /// Recorded reasons for another effect, since a person last acted.
    excuses: u32,
    /// Something was accepted, received or vouched for, or an earlier send left open.
    reached: bool,
    /// The outcome of a call of the current send is open.
    open: bool,
}

impl World {
    fn new(order: Order, jitter: u64, guard: RepeatGuard, receipts: bool) -> Self {
        let class = class(order);
        Self {
            delivery: fresh(&class),
            class,
            now: ACCEPTED_AT,
            jitter,
            guard,
            receipts,
            fence: 0,
            actions: 0,
            effects: 0,
            calls: 0,
            excuses: 0,
            reached: false,
            open: false,
        }
    }

    fn play(&mut self, one: &Move) {
        match one {
            Move::Wait(millis) => self.now = self.now.plus(Duration::from_millis(u64::from(*millis))),
            Move::Claim => self.claim(),
            Move::Call(at) => self.call(outcomes().remove(*at).1),
            Move::LookUp(found) => self.step(Event::LookedUp(match found {
                0 => Looked::Found { provider_ref: None },
                1 => Looked::NotYet,
                _ => Looked::Absent,
            })),
            Move::Hold => {
                let until = self.now.plus(Duration::from_secs(86_400));
                self.step(Event::Held { until, why: DeferWhy::Breaker });
            }
            Move::Suppress => {
                let why = Why::new(WhyCode::Unsubscribed);
                self.step(Event::Admitted(Verdict::Suppress(why)));
            }
            Move::Release => self.step(Event::Released),
            Move::Uncallable => self.step(Event::Uncallable(Why::new(WhyCode::RenderFailed))),
            Move::Lapse => {
                let alone = self.delivery.claim_alone();
                self.step(Event::Lapsed { claim: mark(self.fence), alone });
            }
            Move::StaleReport(at) => {
                self.step(Event::Stale {
                    send: self.delivery.send,
                    claim: mark(self.fence.saturating_sub(1)),
                    outcome: outcomes().remove(*at).1,
                });
            }
            Move::Stop(cancel) => self.step(Event::StopAsked(if *cancel {
                Stop::Cancel { by: "key_1".into(), why: "called off".into() }
            } else {
                Stop::Supersede { by_version: 2 }
            })),
            Move::Receipt(at) => self.step(Event::Receipt(ReceiptKind::ALL[*at])),
            Move::CloseWindow => self.step(Event::ReceiptWindowClosed),
            Move::Redrive | Move::SendAgain | Move::Resolve(_) => self.person(one),
        }
    }

    /// What a store does: never before it is due.
    fn claim(&mut self) {
        if !self.delivery.state.waiting() || self.delivery.due_at > self.now {
            return;
        }
        self.fence += 1;
        self.delivery.state = State::Sending { fence: self.fence };
        self.delivery.rev += 1;
        match admit(&self.delivery, None, None, self.now) {
            Verdict::Call => {}
            refused => self.step(Event::Admitted(refused)),
        }
    }

    /// What an attempt does: spend where the class wants it, call, settle.
    fn call(&mut self, outcome: Outcome) {
        if !matches!(self.delivery.state, State::Sending { .. }) {
            return;
        }
        if self.class.at_most_once() {
            self.delivery.spent = true;
            self.delivery.rev += 1;
        }
        if matches!(outcome, Outcome::Accepted { .. } | Outcome::Unknown { .. }) {
            assert!(self.effects <= self.excuses, "an effect beyond the first follows a recorded unknown");
            self.effects += 1;
        }
        self.calls += u32::from(!matches!(outcome, Outcome::Throttled { .. }));
        self.step(Event::Called { claim: mark(self.fence), outcome, took: Duration::from_millis(3) });
    }

    fn person(&mut self, one: &Move) {
        let before = self.delivery.rev;
        self.actions += 1;
        let after_send = self.delivery.send;
        let asked = match one {
            Move::Redrive => Asked::Redrive { after_send },
            Move::SendAgain => Asked::SendAgain { after_send },
            _ => {
                let to = if matches!(one, Move::Resolve(true)) { Resolution::Delivered } else { Resolution::Failed };
                Asked::Resolve { to, why: "asked".into() }
            }
        };
        self.step(Event::Act { by: "key_1".to_owned(), action: action(self.actions, asked) });
        if self.delivery.rev > before && self.delivery.state == State::Queued {
            (self.effects, self.calls, self.excuses) = (0, 0, 0);
        }
    }

    fn step(&mut self, event: Event) {
        let env = Env { now: self.now, jitter: self.jitter, receipts: self.receipts, guard: self.guard };
        let Ok(transition) = step(&self.delivery, &self.class, event.clone(), env) else { return };
        let unknown = |fact: &&StepFact| matches!(fact, StepFact::UnknownOutcome { .. });
        self.excuses += u32::try_from(transition.facts.iter().filter(unknown).count()).unwrap();
        self.remember(&event, &transition.facts);
        let before = std::mem::replace(&mut self.delivery, transition.next);
        self.unchanged(&before);
        self.directed(&before, &event);
        self.bounded();
    }

    /// Keeps account, by what is told and not by the record, of whether a copy may have arrived.
    fn remember(&mut self, event: &Event, facts: &[StepFact]) {
        let unknown = |fact: &StepFact| matches!(fact, StepFact::UnknownOutcome { .. });
        match event {
            Event::Called { outcome: Outcome::Accepted { .. }, .. }
            | Event::Stale { outcome: Outcome::Accepted { .. } | Outcome::Unknown { .. }, .. }
            | Event::LookedUp(Looked::Found { .. })
            | Event::Receipt(_) => self.reached = true,
            Event::LookedUp(Looked::Absent) => self.open = false,
            Event::Act { action, .. } => match action.asked {
                Asked::SendAgain { .. } => self.reached |= std::mem::take(&mut self.open),
                Asked::Resolve { to, .. } => self.reached |= to == Resolution::Delivered,
                Asked::Redrive { .. } => {}
            },
            _ => self.open |= facts.iter().any(unknown),
        }
    }

    /// What no event ever changes, and what every event does.
    fn unchanged(&self, before: &Delivery) {
        let now = &self.delivery;
        assert_eq!(now.rev, before.rev + 1);
        assert_eq!(
            (now.id, now.notification, &now.slot, now.channel),
            (before.id, before.notification, &before.slot, before.channel)
        );
        assert_eq!((&now.class, &now.lane, &now.tenant), (&before.class, &before.lane, &before.tenant));
        assert_eq!((now.created_at, now.lease), (before.created_at, before.lease));
        assert_eq!(now.content_hash, before.content_hash);
        assert!(now.expires_at >= before.expires_at);
    }

    /// Which ways a state may change.
    fn directed(&self, before: &Delivery, event: &Event) {
        let now = &self.delivery;
        let asked = if let Event::Act { action, .. } = event { Some(&action.asked) } else { None };
        let by_person = matches!(asked, Some(Asked::Redrive { .. } | Asked::SendAgain { .. }));
        assert_eq!(now.send, before.send + u32::from(matches!(asked, Some(Asked::SendAgain { .. }))));
        if now.state.waiting() && before.ended() {
            assert!(by_person, "only a person puts an ended delivery back: {event:?}");
        }
        if matches!(event, Event::Receipt(_) | Event::ReceiptWindowClosed) {
            assert!(rank(now.state.name()) >= rank(before.state.name()), "receipts never lower a state");
        }
        if self.class.at_most_once() && before.may_have_arrived() && before.state.name() == StateName::Unknown {
            assert!(by_person || !now.state.waiting(), "at most once: unknown is never sent again by itself");
        }
    }

    fn bounded(&self) {
        let now = &self.delivery;
        assert!(now.timeline.entries.len() <= Timeline::LIMIT);
        assert!(now.actions.len() <= 8);
        assert!(self.calls <= self.class.retry.max_attempts, "attempts stay within their limit");
        assert!(now.lapses <= 5, "a delivery that kills workers is parked");
        assert!(!now.reason().contains('@') && !now.reason().is_empty());
        assert_eq!(now.may_have_arrived(), self.reached || self.open, "{:?}: {}", now.state, now.reason());
        if matches!(now.state, State::Accepted | State::Delivered | State::Unknown) {
            assert!(now.may_have_arrived(), "{:?}", now.state);
        }
        if now.state.waiting() {
            assert!(now.due_at <= now.expires_at.max(self.now), "never put off past its expiry");
            assert_eq!(now.stop, None, "what somebody stopped does not wait for another attempt");
            assert!(!now.ended() && !now.spent);
        }
        let open = now.state == State::Accepted && now.receipt_until.is_some();
        let finished = !now.state.waiting() && !matches!(now.state, State::Sending { .. }) && !open;
        assert_eq!(now.ended(), finished, "an end has its time and nothing else has: {:?}", now.state);
        assert_eq!(now.receipt_until.is_some(), open);
    }
}

const fn rank(state: StateName) -> u8 {
    match state {
        StateName::Accepted => 1,
        StateName::Delivered => 2,
        StateName::Bounced => 3,
        _ => 0,
    }
}

fn guards() -> impl Strategy<Value = RepeatGuard> {
    prop_oneof![
        Just(RepeatGuard::None),
        Just(RepeatGuard::Collapse),
        Just(RepeatGuard::Lookup),
        Just(RepeatGuard::Key(Duration::from_secs(600))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn at_least_once_keeps_its_rules(moves in moves(), jitter: u64, guard in guards(), receipts: bool) {
        let mut world = World::new(Order::SendThenRecord, jitter, guard, receipts);
        for one in &moves {
            world.play(one);
        }
    }

    #[test]
    fn at_most_once_has_at_most_one_effect(moves in moves(), jitter: u64, receipts: bool) {
        let mut world = World::new(Order::RecordThenSend, jitter, RepeatGuard::None, receipts);
        for one in &moves {
            world.play(one);
            prop_assert!(world.effects <= 1, "two effects");
        }
    }

    /// Whatever happens, a delivery that is worked on comes to an end; nothing is lost or stuck.
    #[test]
    fn every_delivery_comes_to_an_end(moves in moves(), jitter: u64, amo: bool, bad in 0usize..10) {
        let order = if amo { Order::RecordThenSend } else { Order::SendThenRecord };
        let mut world = World::new(order, jitter, RepeatGuard::None, false);
        for one in &moves {
            world.play(one);
        }
        for _ in 0..2_000 {
            if world.delivery.ended() {
                break;
            }
            // Behind a shut circuit nothing is claimed for a while, due or not.
            world.now = world.now.max(world.delivery.due_at).plus(Duration::from_secs(120));
            world.claim();
            world.call(outcomes().remove(bad).1);
            world.now = world.now.max(world.delivery.receipt_until.unwrap_or(world.now));
            world.play(&Move::CloseWindow);
        }
        prop_assert!(world.delivery.ended(), "still {:?}", world.delivery.state);
    }
}

/// A provider that always cuts the connection after the body: as many calls as the class allows,
/// then an end.
#[test]
fn case_104_attempts_stay_within_their_limit() {
    for order in Order::ALL {
        for guard in [RepeatGuard::None, RepeatGuard::Key(Duration::from_secs(365 * 86_400))] {
            let mut world = World::new(*order, u64::MAX / 2, guard, false);
            let cut = Outcome::Unknown { retry_after: None, why: Why::new(WhyCode::CutAfter) };
            let mut calls = 0;
            while !world.delivery.ended() {
                world.now = world.now.max(world.delivery.due_at);
                world.claim();
                world.call(cut.clone());
                calls += 1;
                assert!(calls <= world.class.retry.max_attempts);
            }
            let expected = match (order, guard) {
                (Order::RecordThenSend, _) => (1, StateName::Unknown),
                (Order::SendThenRecord, RepeatGuard::Key(_)) => (3, StateName::Parked),
                (Order::SendThenRecord, _) => (2, StateName::Parked),
            };
            assert_eq!((calls, world.delivery.state.name()), expected);
            assert!(world.delivery.reason().starts_with("May have arrived"));
        }
    }
}
