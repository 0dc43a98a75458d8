//! What is decided before a call, and in which order.

use std::time::Duration;

use belfry_domain::admission::{Known, Rules, Verdict, decide, refused};
use belfry_domain::caps::{Cap, Full, Per, Then};
use belfry_domain::delivery::{DeferWhy, State, Stop};
use belfry_domain::pause::{Pause, Paused};
use belfry_domain::preferences::{Preferences, Switches};
use belfry_domain::quiet::QuietHours;
use belfry_domain::subject::Subject;
use belfry_domain::suppression::{Suppression, SuppressionKind, blocking};
use belfry_domain::{ChannelKind, Class, Delivery, Event, Notification, Order, UnixMs, Why, WhyCode, step};

use super::fixtures::{NOW, cancel, class, env, fresh, notification};

/// A claimed delivery and all that is known about its call.
struct World {
    class: Class,
    delivery: Delivery,
    notification: Notification,
    rules: Rules,
    suppressions: Vec<Suppression>,
    preferences: Preferences,
    pauses: Vec<Pause>,
    newest: i64,
}

/// Over in five minutes by the clock of Nairobi, where it is 01:14:20.
const QUIET: (&str, &str) = ("22:00", "01:20");

impl World {
    /// Where everything stands against the call.
    fn against() -> Self {
        let class = class(Order::RecordThenSend);
        let mut delivery = fresh(&class);
        delivery.state = State::Sending { fence: 7 };
        delivery.expires_at = NOW;
        delivery.stop = Some(cancel());
        let off = Switches { all: Some(false), ..Switches::default() };
        Self {
            delivery,
            notification: notification(&class),
            rules: Rules { quiet_hours: Some(QuietHours::new(QUIET.0, QUIET.1, "UTC").unwrap()), ..Rules::default() },
            suppressions: vec![entry(SuppressionKind::Unsubscribe), entry(SuppressionKind::HardBounce)],
            preferences: Preferences { every: off, ..Preferences::default() },
            pauses: vec![pause(Paused::All)],
            newest: 3,
            class,
        }
    }

    fn decide(&self) -> Verdict {
        let known = Known {
            subject: Subject::of(&self.delivery, &self.notification, &self.class),
            rules: &self.rules,
            suppressions: &self.suppressions,
            preferences: &self.preferences,
            time_zone: Some("Africa/Nairobi"),
            pauses: &self.pauses,
        };
        decide(&self.delivery, (Some(2), Some(self.newest)), &known, NOW)
    }
}

fn entry(kind: SuppressionKind) -> Suppression {
    Suppression { kind, category: None, channel: None, sender: None, since: UnixMs(0), until: None }
}

fn pause(paused: Paused) -> Pause {
    Pause { paused, tenant: None, since: NOW, until: None, forced: false }
}

const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn suppress(code: WhyCode) -> Verdict {
    Verdict::Suppress(Why::new(code))
}

/// By one that stands for ever since then.
fn blocked(code: WhyCode) -> Verdict {
    Verdict::Suppress(Why::said(code, "since 1970-01-01T00:00:00Z"))
}

#[test]
fn an_entry_says_of_what_it_is_and_how_long_it_stands() {
    let entry = Suppression {
        category: Some("marketing".into()),
        until: Some(UnixMs(NOW.0 + 999)),
        since: NOW,
        ..entry(SuppressionKind::Manual)
    };
    assert_eq!(entry.words(), "messages of marketing, since 2023-11-14T22:14:20Z until 2023-11-14T22:14:20Z");
}

#[test]
fn each_reason_comes_in_its_order() {
    let mut world = World::against();
    assert_eq!(world.decide(), Verdict::Expire);
    world.delivery.expires_at = NOW.plus(seconds(3_600));
    assert_eq!(world.decide(), Verdict::Stop(cancel()));
    world.delivery.stop = None;
    assert_eq!(world.decide(), Verdict::Stop(Stop::Supersede { by_version: 3 }));
    world.newest = 2;
    assert_eq!(world.decide(), blocked(WhyCode::BouncedBefore));
    world.suppressions.pop();
    assert_eq!(world.decide(), blocked(WhyCode::Unsubscribed));
    world.suppressions.clear();
    assert_eq!(world.decide(), suppress(WhyCode::TurnedOff));
    world.preferences = Preferences::default();
    world.rules.defaults = Switches { all: Some(false), ..Switches::default() };
    assert_eq!(world.decide(), suppress(WhyCode::NotAskedFor));
    world.rules.defaults = Switches::default();
    assert_eq!(world.decide(), Verdict::Hold { until: NOW.plus(seconds(5)), why: DeferWhy::Paused });
    world.rules.pause_exempt = true;
    // 2023-11-14T22:14:20Z.
    assert_eq!(world.decide(), Verdict::Hold { until: NOW.plus(seconds(5 * 60 + 40)), why: DeferWhy::QuietHours });
    world.rules.quiet_hours = None;
    assert_eq!(world.decide(), Verdict::Call);
}

#[test]
fn case_80_a_class_without_quiet_hours_wakes_people() {
    let mut world = World::against();
    world.delivery.expires_at = NOW.plus(seconds(600));
    (world.delivery.stop, world.newest) = (None, 2);
    (world.suppressions, world.preferences, world.pauses) = (vec![], Preferences::default(), vec![]);
    assert!(matches!(world.decide(), Verdict::Hold { why: DeferWhy::QuietHours, .. }));
    world.rules = Rules::default();
    assert_eq!(world.decide(), Verdict::Call);
}

#[test]
fn a_verdict_is_carried_out_as_it_is() {
    let mut world = World::against();
    world.delivery.stop = None;
    world.delivery.expires_at = NOW.plus(seconds(60));
    let after =
        |verdict: Verdict| step(&world.delivery, &world.class, Event::Admitted(verdict), env(false)).unwrap().next;
    let ended = after(suppress(WhyCode::Complained));
    assert_eq!((ended.state, ended.ended_at), (State::Suppressed, Some(NOW)));
    assert_eq!(ended.reason(), "Suppressed: the recipient complained of an earlier message.");
    let hold = |wait| Verdict::Hold { until: NOW.plus(seconds(wait)), why: DeferWhy::QuietHours };
    let (held, why) = (after(hold(30)), DeferWhy::QuietHours);
    assert_eq!(
        (held.state, held.due_at),
        (State::Deferred { until: NOW.plus(seconds(30)), why }, NOW.plus(seconds(30)))
    );
    // It comes up once more at its expiry, to expire visibly.
    assert_eq!(after(hold(90)).due_at, NOW.plus(seconds(60)));
}

/// Every kind against a class that can be turned off and one that cannot.
#[test]
fn what_blocks_what() {
    let table = [
        (SuppressionKind::HardBounce, true, true),
        (SuppressionKind::Stop, true, true),
        (SuppressionKind::Manual, true, true),
        (SuppressionKind::Complaint, true, false),
        (SuppressionKind::Unsubscribe, true, false),
    ];
    assert_eq!(table.map(|(kind, ..)| kind), SuppressionKind::ALL);
    let world = World::against();
    let other = Subject::of(&world.delivery, &world.notification, &world.class);
    let required = Subject { required: true, ..other };
    for (kind, blocks, blocks_required) in table {
        let blocking = |subject| blocking(&[entry(kind)], &subject, NOW).map(|entry| entry.kind);
        assert_eq!((blocking(other), blocking(required)), (blocks.then_some(kind), blocks_required.then_some(kind)));
    }
    // The better reason, in whichever order they are found.
    let two = [entry(SuppressionKind::Complaint), entry(SuppressionKind::Manual)];
    for entries in [[two[0].clone(), two[1].clone()], [two[1].clone(), two[0].clone()]] {
        assert_eq!(blocking(&entries, &other, NOW).map(|entry| entry.kind), Some(SuppressionKind::Manual));
    }
}

#[test]
fn an_entry_covers_what_it_names_and_no_longer_than_it_lasts() {
    let world = World::against();
    let subject = Subject::of(&world.delivery, &world.notification, &world.class);
    let blocks = |change: &dyn Fn(&mut Suppression)| {
        let mut entry = entry(SuppressionKind::Unsubscribe);
        change(&mut entry);
        entry.blocks(&subject, NOW)
    };
    assert!(blocks(&|entry| entry.category = Some("marketing".into())));
    assert!(!blocks(&|entry| entry.category = Some("digest".into())));
    assert!(blocks(&|entry| entry.channel = Some(ChannelKind::Email)));
    assert!(!blocks(&|entry| entry.channel = Some(ChannelKind::Sms)));
    assert!(blocks(&|entry| entry.until = Some(UnixMs(NOW.0 + 1))));
    assert!(!blocks(&|entry| entry.until = Some(NOW)));
}

#[test]
fn case_85_stop_to_one_number_leaves_the_others_free() {
    let world = World::against();
    let sms = |sender| Subject {
        channel: ChannelKind::Sms,
        sender,
        ..Subject::of(&world.delivery, &world.notification, &world.class)
    };
    let mut entries = vec![Suppression { sender: Some("+15550001".into()), ..entry(SuppressionKind::Stop) }];
    assert_eq!(blocking(&entries, &sms(Some("+15550001")), NOW), Some(&entries[0]));
    assert_eq!(blocking(&entries, &sms(Some("+15550002")), NOW), None);
    assert_eq!(blocking(&entries, &sms(None), NOW), None);
    // START.
    entries.clear();
    assert_eq!(blocking(&entries, &sms(Some("+15550001")), NOW), None);
}

#[test]
fn preferences_by_the_more_exact_word() {
    let world = World::against();
    let subject = Subject::of(&world.delivery, &world.notification, &world.class);
    let (on, off) = (Some(true), Some(false));
    // Class default, everything, channel, category, category on channel; wanted.
    let table = [
        (None, None, None, None, None, true),
        (off, None, None, None, None, false),
        (off, on, None, None, None, true),
        (None, off, None, None, None, false),
        (None, off, on, None, None, true),
        (None, off, None, on, None, true),
        (None, on, off, on, None, false),
        (None, on, on, off, None, false),
        (None, off, off, off, on, true),
        (None, on, on, on, off, false),
    ];
    let switches = |all, one: Option<bool>| Switches {
        all,
        channels: one.map(|on| (ChannelKind::Email, on)).into_iter().chain([(ChannelKind::Chat, false)]).collect(),
    };
    for (default, every, channel, category, exact, wanted) in table {
        let preferences = Preferences {
            every: switches(every, channel),
            categories: [("marketing".into(), switches(category, exact)), ("digest".into(), switches(off, off))].into(),
        };
        let defaults = switches(None, default);
        assert_eq!(preferences.allow(&subject, &defaults), wanted, "{preferences:?} {defaults:?}");
        assert!(preferences.allow(&Subject { required: true, ..subject }, &defaults));
    }
}

#[test]
fn what_is_required_cannot_be_turned_off_and_whoever_tries_is_told() {
    let required = |name: &str| Class { name: name.into(), required: true, ..class(Order::SendThenRecord) };
    let classes = [required("code"), required("security"), required("receipt"), class(Order::RecordThenSend)];
    let by_channel = Switches { all: Some(true), channels: [(ChannelKind::Sms, false)].into() };
    let off = Switches { all: Some(false), ..Switches::default() };
    let on = Switches { all: Some(true), ..Switches::default() };
    let categories = [("code", off.clone()), ("security", by_channel), ("receipt", on), ("marketing", off.clone())];
    let categories = categories.map(|(name, switches)| (name.into(), switches)).into();
    let preferences = Preferences { every: off, categories };
    assert_eq!(preferences.refused(&classes), ["code", "security"]);
}

#[test]
fn a_pause_holds_what_it_names() {
    let mut world = World::against();
    world.notification.group = Some("launch-mail".into());
    let subject =
        Subject { template: Some("welcome"), ..Subject::of(&world.delivery, &world.notification, &world.class) };
    let table = [
        (Paused::All, true),
        (Paused::Channel(ChannelKind::Email), true),
        (Paused::Channel(ChannelKind::Sms), false),
        (Paused::Provider("main".into()), true),
        (Paused::Provider("other".into()), false),
        (Paused::Class("marketing".into()), true),
        (Paused::Class("digest".into()), false),
        (Paused::Template("welcome".into()), true),
        (Paused::Template("bye".into()), false),
        (Paused::Group("launch-mail".into()), true),
        (Paused::Group("other".into()), false),
    ];
    for (paused, holds) in table {
        let pause = pause(paused);
        assert_eq!(pause.holds(&subject, false, NOW), holds, "{pause:?}");
        assert!(!pause.holds(&subject, true, NOW), "{pause:?}");
        let forced = Pause { forced: true, ..pause.clone() };
        assert_eq!(forced.holds(&subject, true, NOW), holds, "{forced:?}");
        let theirs = Pause { tenant: Some("default".into()), ..pause.clone() };
        assert_eq!(theirs.holds(&subject, false, NOW), holds, "{theirs:?}");
        let others = Pause { tenant: Some("other".into()), ..pause.clone() };
        assert!(!others.holds(&subject, false, NOW), "{others:?}");
        let over = Pause { until: Some(NOW), ..pause };
        assert!(!over.holds(&subject, false, NOW), "{over:?}");
    }
}

#[test]
fn what_is_paused_asks_again_at_the_end_or_once_it_has_lasted_twice_as_long() {
    let world = World::against();
    let subject = Subject::of(&world.delivery, &world.notification, &world.class);
    let asks =
        |pauses: &[Pause]| belfry_domain::pause::held_until(pauses, &subject, false, NOW).map(|at| at.since(NOW));
    let since = |ago| Pause { since: NOW.minus(seconds(ago)), ..pause(Paused::All) };
    let table = [(0, 5), (4, 5), (60, 60), (299, 299), (86_400, 300)];
    for (ago, wait) in table {
        assert_eq!(asks(&[since(ago)]), Some(seconds(wait)));
    }
    let ends = |ago, left| Pause { until: Some(NOW.plus(seconds(left))), ..since(ago) };
    assert_eq!(asks(&[ends(60, 59)]), Some(seconds(59)));
    assert_eq!(asks(&[ends(0, 1)]), Some(seconds(1)));
    // It may be lifted long before.
    assert_eq!(asks(&[ends(60, 3_600)]), Some(seconds(60)));
    assert_eq!(asks(&[since(10), ends(60, 3_600), since(20)]), Some(seconds(60)));
    assert_eq!(asks(&[]), None);
}

#[test]
fn a_full_cap_suppresses_only_for_what_has_ended_and_never_what_may_have_arrived() {
    let (until, soon, late) = (NOW.plus(seconds(900)), NOW.plus(seconds(4)), NOW.plus(seconds(60)));
    let cap = |then| Cap {
        name: "receipts_per_order".into(),
        per: Per::Scope,
        limit: 3,
        window: seconds(3_600),
        then,
        classes: vec![],
        channels: vec![],
        templates: vec![],
    };
    let hold = |until| Verdict::Capped { until, cap: "receipts_per_order".into() };
    let gone = |opens| Verdict::OverCap { cap: "receipts_per_order".into(), opens };
    // By when the window has passed since the latest end of a call that is under way.
    let open = NOW.plus(seconds(3_604));
    let table = [
        (Then::Defer, until, None, false, hold(until)),
        (Then::Defer, until, Some(soon), false, hold(soon)),
        (Then::Defer, until, Some(late), false, hold(NOW.plus(seconds(30)))),
        (Then::Defer, until, None, true, hold(until)),
        (Then::Defer, open, Some(late), false, hold(NOW.plus(seconds(30)))),
        (Then::Suppress, until, None, false, gone(until)),
        (Then::Suppress, until, Some(soon), false, hold(soon)),
        (Then::Suppress, until, Some(late), false, hold(NOW.plus(seconds(30)))),
        (Then::Suppress, until, Some(soon), true, hold(soon)),
        (Then::Suppress, until, None, true, hold(until)),
    ];
    for (then, until, open_until, maybe_sent, expected) in table {
        let mut delivery = fresh(&class(Order::SendThenRecord));
        delivery.maybe_sent = maybe_sent;
        assert_eq!(refused(&delivery, &cap(then), Full { until, open_until }, NOW), expected, "{then} {open_until:?}");
    }
}

#[test]
fn what_waits_for_calls_under_way_waits_no_longer_than_a_short_window() {
    let window = seconds(2);
    let cap = Cap {
        name: "short".into(),
        per: Per::Address,
        limit: 1,
        window,
        then: Then::Defer,
        classes: vec![],
        channels: vec![],
        templates: vec![],
    };
    let full = Full { until: NOW.plus(seconds(1_202)), open_until: Some(NOW.plus(seconds(1_200))) };
    let capped = Verdict::Capped { until: NOW.plus(window), cap: "short".into() };
    assert_eq!(refused(&fresh(&class(Order::SendThenRecord)), &cap, full, NOW), capped);
}

#[test]
fn what_waits_for_room_names_the_cap_and_when_it_opens() {
    let class = class(Order::SendThenRecord);
    let delivery = Delivery { state: State::Sending { fence: 1 }, ..fresh(&class) };
    let until = NOW.plus(seconds(900));
    let capped = Event::Admitted(Verdict::Capped { until, cap: "receipts_per_order".into() });
    let next = step(&delivery, &class, capped.clone(), env(false)).unwrap().next;
    assert_eq!(next.state, State::Deferred { until, why: DeferWhy::Cap });
    assert_eq!(next.reason(), "Waiting because as many as the cap \"receipts_per_order\" allows are counted.");
    let full = Event::Admitted(Verdict::OverCap { cap: "receipts_per_order".into(), opens: UnixMs(1_796_083_200_001) });
    let gone = step(&delivery, &class, full.clone(), env(false)).unwrap().next;
    assert_eq!(gone.state, State::Suppressed);
    assert_eq!(
        gone.reason(),
        "Suppressed: as many as the cap \"receipts_per_order\" allows were counted, and there is no room before \
         2026-12-01T00:00:01Z."
    );
    for event in [capped, full] {
        let asked = Delivery { stop: Some(cancel()), ..delivery.clone() };
        assert_eq!(step(&asked, &class, event, env(false)).unwrap().next.state, State::Cancelled);
    }
}
