//! Caps: what counts where, and that no window ever holds too many, whatever happens in whatever order.

use std::collections::BTreeMap;
use std::time::Duration;

use belfry_domain::caps::{Cap, Fate, Full, Ledger, Ledgers, Per, Take, Then, left_behind, reservation, takes};
use belfry_domain::key::KeyKind;
use belfry_domain::subject::Subject;
use belfry_domain::{ChannelKind, Delivery, Event, Key, Order, State, UnixMs, child_key, step};
use proptest::prelude::*;

use super::fixtures::{class, env, fresh, mark, notification, outcomes};

fn cap(name: &str, per: Per, limit: u32, window: Duration) -> Cap {
    let name = name.to_owned();
    Cap { name, per, limit, window, then: Then::Defer, classes: vec![], channels: vec![], templates: vec![] }
}

fn hourly(per: Per) -> Cap {
    cap("hourly", per, 3, Duration::from_secs(3_600))
}

fn call(number: u64) -> Key {
    child_key(KeyKind::Take, &[&number.to_be_bytes()])
}

#[test]
fn a_cap_counts_what_its_filters_name_by_what_it_is_per() {
    let class = class(Order::SendThenRecord);
    let (delivery, notification) = (fresh(&class), notification(&class));
    let mail =
        Subject { recipient: Some("ada"), scope: Some("order:42"), ..Subject::of(&delivery, &notification, &class) };
    let text = Subject { channel: ChannelKind::Sms, number: Some("+46701234567"), address_hash: "77", ..mail };
    let key = |per, subject: &Subject| hourly(per).key(subject);
    // One person on two channels; two addresses; one order; a range of numbers.
    assert_eq!(key(Per::Recipient, &mail), key(Per::Recipient, &text));
    assert_ne!(key(Per::Address, &mail), key(Per::Address, &text));
    assert_eq!(key(Per::Scope, &mail), key(Per::Scope, &text));
    let prefix = Per::Prefix { digits: 4 };
    let other = |number| Subject { number: Some(number), ..text };
    assert_eq!(key(prefix, &text), key(prefix, &other("+46709")));
    assert_ne!(key(prefix, &text), key(prefix, &other("+46731")));
    // What has none of that is not counted, but for a recipient who is only an address.
    assert_eq!(key(prefix, &mail), None);
    assert_eq!(key(prefix, &other("+467")), None);
    assert_eq!(key(Per::Scope, &Subject { scope: None, ..mail }), None);
    let nobody = Subject { recipient: None, ..mail };
    assert!(key(Per::Recipient, &nobody).is_some());
    assert_ne!(key(Per::Recipient, &nobody), key(Per::Recipient, &Subject { recipient: None, ..text }));
    // Tenants, environments and caps have books of their own.
    for apart in [Subject { tenant: "other", ..mail }, Subject { environment: "test", ..mail }] {
        assert_ne!(key(Per::Recipient, &mail), key(Per::Recipient, &apart));
    }
    assert_ne!(cap("daily", Per::Scope, 3, Duration::from_secs(60)).key(&mail), key(Per::Scope, &mail));
    // A changed limit goes on with the same books.
    assert_eq!(cap("hourly", Per::Scope, 9, Duration::from_secs(60)).key(&mail), key(Per::Scope, &mail));
    let filtered = |change: &dyn Fn(&mut Cap)| {
        let mut cap = hourly(Per::Recipient);
        change(&mut cap);
        cap.key(&mail).is_some()
    };
    assert!(filtered(&|cap| cap.classes = vec!["digest".into(), class.name.clone()]));
    assert!(!filtered(&|cap| cap.classes = vec!["digest".into()]));
    assert!(filtered(&|cap| cap.channels = vec![ChannelKind::Email]));
    assert!(!filtered(&|cap| cap.channels = vec![ChannelKind::Sms]));
    assert!(!filtered(&|cap| cap.templates = vec!["welcome".into()]));
}

#[test]
fn takes_are_in_one_order_whatever_the_order_of_the_caps() {
    let class = class(Order::SendThenRecord);
    let (delivery, notification) = (fresh(&class), notification(&class));
    let subject = Subject { scope: Some("order:42"), ..Subject::of(&delivery, &notification, &class) };
    let mut caps: Vec<_> = ["a", "b", "c", "d"].map(|name| cap(name, Per::Scope, 1, Duration::from_secs(60))).into();
    let forth: Vec<_> = takes(&caps, &subject).iter().map(|take| take.key).collect();
    caps.reverse();
    let back: Vec<_> = takes(&caps, &subject).iter().map(|take| take.key).collect();
    assert!(forth.is_sorted() && forth.len() == 4);
    assert_eq!(forth, back);
}

#[test]
fn each_call_has_a_reservation_of_its_own() {
    let mut delivery = fresh(&class(Order::SendThenRecord));
    let first = reservation(&delivery, 7);
    assert_eq!(first.to_string(), "a8fa293403a0bdfc3a256655");
    assert_ne!(reservation(&delivery, 8), first);
    delivery.send = 2;
    assert_ne!(reservation(&delivery, 7), first);
}

#[test]
fn what_may_have_reached_somebody_counts() {
    let counting = |name| ["accepted", "unknown"].contains(&name);
    for (name, outcome) in outcomes() {
        assert_eq!(Fate::of(&outcome) == Fate::Counts, counting(name), "{name}");
    }
}

#[test]
fn what_a_worker_took_that_died_before_the_call_is_known_to_the_next_claim() {
    for (order, spent, known) in [
        (Order::RecordThenSend, false, true),
        (Order::RecordThenSend, true, false),
        (Order::SendThenRecord, false, false),
    ] {
        let class = class(order);
        let delivery = Delivery { state: State::Sending { fence: 7 }, spent, ..fresh(&class) };
        assert_eq!(left_behind(&delivery).count(), 0);
        let lapsed = step(&delivery, &class, Event::Lapsed { claim: mark(7), alone: false }, env(false)).unwrap().next;
        let expected = known.then(|| reservation(&delivery, 7));
        assert_eq!(left_behind(&lapsed).collect::<Vec<_>>(), expected.into_iter().collect::<Vec<_>>(), "{order:?}");
        // Of another send it is no business.
        assert_eq!(left_behind(&Delivery { send: 2, ..lapsed }).count(), 0);
    }
}

#[test]
fn what_cannot_be_kept_is_told_by_its_key() {
    let keys = |cap: Cap| cap.contradictions().iter().map(|one| one.key).collect::<Vec<_>>();
    assert!(keys(hourly(Per::Prefix { digits: 6 })).is_empty());
    assert_eq!(keys(cap("x", Per::Scope, 0, Duration::ZERO)), ["limit", "window"]);
    assert_eq!(keys(cap("x", Per::Scope, 10_001, Duration::from_secs(32 * 86_400))), ["limit", "window"]);
    for digits in [0, 7] {
        assert_eq!(keys(hourly(Per::Prefix { digits })), ["digits"]);
    }
}

/// At three an hour: the clock shows minutes.
#[test]
fn three_in_any_hour() {
    let (hourly, mut ledger, brief) = (hourly(Per::Scope), Ledger::default(), Duration::ZERO);
    let at = |minute: i64| UnixMs(minute * 60_000);
    for (number, minute) in [(1, 0), (2, 50), (3, 55)] {
        assert_eq!(ledger.take(at(minute), &hourly, call(number), brief), Ok(()));
    }
    // A new hour by the clock is none: those of :50 and :55 are within this one.
    let full = Full { until: at(60), open_until: None };
    assert_eq!(ledger.take(at(59), &hourly, call(4), brief), Err(full));
    assert_eq!(ledger.take(UnixMs(at(60).0 - 1), &hourly, call(4), brief), Err(full));
    assert_eq!(ledger.take(at(60), &hourly, call(4), brief), Ok(()));
    assert_eq!(ledger.take(at(61), &hourly, call(5), brief), Err(Full { until: at(110), open_until: None }));
    // The repeat of a take whose answer was lost is none; what is given back makes room at once.
    assert_eq!(ledger.take(at(61), &hourly, call(4), brief), Ok(()));
    ledger.give_back(call(3));
    ledger.give_back(call(3));
    assert_eq!(ledger.take(at(61), &hourly, call(5), brief), Ok(()));
    // Fewer are allowed from now on: the last of those that are too many decides.
    let one = Cap { limit: 1, ..hourly };
    assert_eq!(ledger.take(at(62), &one, call(6), brief), Err(Full { until: at(121), open_until: None }));
}

#[test]
fn a_call_that_is_under_way_keeps_its_place_and_is_told_of() {
    let (one, mut ledger) = (cap("x", Per::Scope, 1, Duration::from_secs(60)), Ledger::default());
    let (at, longest) = (|second: i64| UnixMs(second * 1_000), Duration::from_secs(10));
    assert_eq!(ledger.take(at(0), &one, call(1), longest), Ok(()));
    let open = Full { until: at(70), open_until: Some(at(10)) };
    assert_eq!(ledger.take(at(5), &one, call(2), longest), Err(open));
    // Heard of again and again, it ended once.
    ledger.count(at(6), call(1));
    ledger.count(at(8), call(1));
    assert_eq!(ledger.take(at(8), &one, call(2), longest), Err(Full { until: at(66), open_until: None }));
    // Nobody told of its end: by then it was over.
    assert_eq!(ledger.take(at(66), &one, call(2), longest), Ok(()));
    assert_eq!(ledger.take(at(76), &one, call(3), longest), Err(Full { until: at(136), open_until: None }));
}

#[test]
fn where_one_cap_refuses_the_others_are_given_back() {
    let (wide, narrow) = (cap("wide", Per::Scope, 2, MINUTE), cap("narrow", Per::Scope, 1, MINUTE));
    let takes = [Take { key: call(1), cap: &wide }, Take { key: call(2), cap: &narrow }];
    let mut ledgers = Ledgers::default();
    assert_eq!(ledgers.take(UnixMs(0), &takes, call(10), Duration::ZERO), Ok(()));
    let before = ledgers.clone();
    let full = Full { until: UnixMs(60_000), open_until: None };
    assert_eq!(ledgers.take(UnixMs(1), &takes, call(11), Duration::ZERO), Err((&narrow, full)));
    assert_eq!(ledgers, before);
    assert_eq!(ledgers.take(UnixMs(1), &takes[..1], call(12), Duration::ZERO), Ok(()));
}

const MINUTE: Duration = Duration::from_secs(60);

/// What happens in a world of caps; times are milliseconds.
#[derive(Clone, Debug)]
enum Move {
    Wait(i64),
    /// Which ledgers, and how long the call may take.
    Take(u8, u64),
    /// The answer to a call's take was lost.
    Repeat(usize),
    /// A call ends (again); true: its message may have arrived.
    End(usize, bool),
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        3 => (0i64..12).prop_map(Move::Wait),
        6 => (1u8..8, 0u64..9).prop_map(|(which, longest)| Move::Take(which, longest)),
        1 => (0usize..40).prop_map(Move::Repeat),
        3 => (0usize..40, any::<bool>()).prop_map(|(which, counts)| Move::End(which, counts)),
    ];
    prop::collection::vec(one, 1..60)
}

/// A call as the world knows it; nothing of it is forgotten.
#[derive(Debug)]
struct Made {
    which: u8,
    reservation: Key,
    longest: u64,
    /// Between these its effect was.
    began: i64,
    latest: i64,
    open: bool,
    reached: bool,
}

/// Three caps, and every call that was ever made under them.
struct World {
    caps: [Cap; 3],
    ledgers: Ledgers,
    now: i64,
    made: Vec<Made>,
}

impl World {
    fn new(limits: [u32; 3], windows: [u64; 3]) -> Self {
        let cap = |at: usize| cap(["a", "b", "c"][at], Per::Scope, limits[at], Duration::from_millis(windows[at]));
        Self { caps: [0, 1, 2].map(cap), ledgers: Ledgers::default(), now: 1_000, made: Vec::new() }
    }

    fn takes(&self, which: u8) -> Vec<Take<'_>> {
        let named = (0..3u8).filter(|at| which & (1 << at) != 0);
        named.map(|at| Take { key: call(u64::from(at)), cap: &self.caps[usize::from(at)] }).collect()
    }

    /// How many calls under `cap` count at `at`, by looking at all that were ever made.
    fn counting(&self, cap: usize, at: i64) -> usize {
        let window = i64::try_from(self.caps[cap].window.as_millis()).unwrap();
        let under = |made: &&Made| made.which & (1 << cap) != 0 && made.reached && made.latest > at - window;
        self.made.iter().filter(under).count()
    }

    fn room(&self, cap: usize, at: i64) -> bool {
        self.counting(cap, at) < self.caps[cap].limit as usize
    }

    fn play(&mut self, one: &Move) {
        match one {
            Move::Wait(long) => self.now += long,
            Move::Take(which, longest) => self.take(*which, *longest),
            Move::Repeat(which) => self.repeat(*which),
            Move::End(which, counts) => self.end(*which, *counts),
        }
    }

    fn take(&mut self, which: u8, longest: u64) {
        let reservation = call(1_000 + self.made.len() as u64);
        let mut ledgers = std::mem::take(&mut self.ledgers);
        let took = ledgers.take(UnixMs(self.now), &self.takes(which), reservation, Duration::from_millis(longest));
        let refusing = (0..3).filter(|cap| which & (1 << cap) != 0).find(|cap| !self.room(*cap, self.now));
        match took {
            Ok(()) => assert_eq!(refusing, None, "one too many"),
            Err((cap, full)) => {
                let refusing = refusing.expect("there was room");
                assert_eq!(cap.name, self.caps[refusing].name);
                self.tells_the_first_moment(refusing, full, &ledgers);
            }
        }
        if took.is_ok() {
            let latest = self.now + i64::try_from(longest).unwrap();
            let began = self.now;
            self.made.push(Made { which, reservation, longest, began, latest, open: true, reached: true });
        }
        self.ledgers = ledgers;
    }

    fn tells_the_first_moment(&self, cap: usize, full: Full, ledgers: &Ledgers) {
        let first = (self.now..).find(|at| self.room(cap, *at)).unwrap();
        assert_eq!(full.until, UnixMs(first));
        let take = [Take { key: call(cap as u64), cap: &self.caps[cap] }];
        assert!(ledgers.clone().take(full.until, &take, call(999), Duration::ZERO).is_ok());
        // Only what has ended refuses for good.
        let under = |made: &&Made| made.which & (1 << cap) != 0 && made.reached;
        let open = self.made.iter().filter(under).map(|made| made.latest).filter(|latest| *latest > self.now);
        let ended = self.counting(cap, self.now) - open.clone().count();
        let expected = if ended < self.caps[cap].limit as usize { open.min() } else { None };
        assert_eq!(full.open_until, expected.map(UnixMs));
    }

    fn repeat(&mut self, which: usize) {
        let now = self.now;
        let Some(made) = self.made.get_mut(which).filter(|made| made.open && made.latest >= now) else { return };
        made.latest = made.latest.max(now + i64::try_from(made.longest).unwrap());
        let (which, reservation, longest) = (made.which, made.reservation, Duration::from_millis(made.longest));
        let mut ledgers = std::mem::take(&mut self.ledgers);
        assert_eq!(ledgers.take(UnixMs(now), &self.takes(which), reservation, longest), Ok(()));
        self.ledgers = ledgers;
    }

    /// Also what has ended before, and what everybody took for lost.
    fn end(&mut self, which: usize, counts: bool) {
        let now = self.now;
        let Some(made) = self.made.get_mut(which) else { return };
        let counts = if made.open { counts } else { made.reached };
        made.open = false;
        made.reached = counts;
        made.latest = made.latest.min(now);
        let (which, reservation) = (made.which, made.reservation);
        let mut ledgers = std::mem::take(&mut self.ledgers);
        match counts {
            true => ledgers.count(UnixMs(now), &self.takes(which), reservation),
            false => ledgers.give_back(&self.takes(which), reservation),
        }
        self.ledgers = ledgers;
    }

    /// With every effect anywhere within its call: no window has more than the limit.
    fn no_window_has_too_many(&self, share: u64) {
        for (at, cap) in self.caps.iter().enumerate() {
            let within = |made: &Made| {
                let long = u64::try_from(made.latest - made.began).unwrap();
                made.began + i64::try_from(long * (share.rotate_left(made.began as u32) % 256) / 255).unwrap()
            };
            let reached = self.made.iter().filter(|made| made.which & (1 << at) != 0 && made.reached);
            let moments: Vec<i64> = reached.map(within).collect();
            let window = i64::try_from(cap.window.as_millis()).unwrap();
            for first in &moments {
                let inside = moments.iter().filter(|moment| (*first..first + window).contains(*moment)).count();
                assert!(
                    inside <= cap.limit as usize,
                    "{inside} within {window} ms, {} allowed: {moments:?}",
                    cap.limit
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_window_ever_has_too_many_and_nothing_that_fits_is_refused(
        moves in moves(), limits in prop::array::uniform3(1u32..4), windows in prop::array::uniform3(1u64..30), share: u64,
    ) {
        let mut world = World::new(limits, windows);
        for one in &moves {
            world.play(one);
        }
        world.no_window_has_too_many(share);
    }

    /// Of calls that take no time: taken exactly where no window would have too many with it.
    #[test]
    fn a_take_is_refused_only_where_a_window_would_have_too_many(
        waits in prop::collection::vec(0i64..20, 1..80), limit in 1u32..5, window in 1i64..60,
    ) {
        let cap = cap("x", Per::Scope, limit, Duration::from_millis(window as u64));
        let (mut ledger, mut taken, mut now) = (Ledger::default(), Vec::new(), 0i64);
        for (number, wait) in waits.into_iter().enumerate() {
            now += wait;
            let with: Vec<i64> = taken.iter().copied().chain([now]).collect();
            let busiest = with.iter().map(|first| {
                with.iter().filter(|moment| (*first..first + window).contains(*moment)).count()
            }).max().unwrap();
            let took = ledger.take(UnixMs(now), &cap, call(number as u64), Duration::ZERO);
            prop_assert_eq!(took.is_ok(), busiest <= limit as usize);
            if took.is_ok() {
                taken.push(now);
            }
        }
    }
}

#[test]
fn ledgers_of_another_cap_are_not_touched() {
    let (mut ledgers, one) = (Ledgers::default(), cap("x", Per::Scope, 1, MINUTE));
    let takes: BTreeMap<_, _> = [1, 2].map(|n| (n, [Take { key: call(n), cap: &one }])).into();
    assert_eq!(ledgers.take(UnixMs(0), &takes[&1], call(10), Duration::ZERO), Ok(()));
    assert_eq!(ledgers.take(UnixMs(0), &takes[&2], call(11), Duration::ZERO), Ok(()));
    ledgers.give_back(&takes[&2], call(10));
    assert!(ledgers.take(UnixMs(0), &takes[&1], call(12), Duration::ZERO).is_err());
}
