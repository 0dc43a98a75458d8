//! What is paused, as this node knows it: read every second, and at once after a change through this node's own API.
//! A lane in which all is held is not asked for, so that what waits there costs nothing; the rest is held after its
//! claim, and a last time right before the call.

use std::sync::Arc;
use std::time::Duration;

use belfry_domain::delivery::DeferWhy;
use belfry_domain::pause::{self, Pause};
use belfry_domain::subject::Subject;
use belfry_domain::{ChannelKind, Delivery, Event, Lane, UnixMs};

use super::Shared;
use super::attempt::Work;
use super::settle::SharedRef;
use crate::facts::{Fact, PauseNews};
use crate::ports::StoreError;
use crate::ports::pauses::Seen;
use crate::ports::policy::{OUTBOX, Policy};

/// How often the list is read.
const EVERY: Duration = Duration::from_secs(1);
/// A look that takes longer is given up: the store hangs, and the list that was read last stands.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) async fn run(shared: SharedRef) {
    let mut changes = shared.deps.pauses.changes();
    changes.mark_changed();
    let (mut told, mut away) = (None, false);
    loop {
        let was_away = std::mem::replace(&mut away, !look(&shared).await);
        if was_away && !away {
            // Where all is paused nobody else asks the store.
            shared.deps.facts.record(&Fact::StoreRecovered);
        }
        let again = shared.deps.clock.boot() + EVERY;
        loop {
            tokio::select! {
                biased;
                changed = changes.changed() => {
                    // The board outlives the engine.
                    if changed.is_err() {
                        return;
                    }
                }
                () = shared.deps.clock.sleep_until(again) => break,
            }
            let seen = changes.borrow_and_update().1.clone();
            if let Some(seen) = seen {
                tell(&shared, &seen, &mut told);
                shared.nudge.notify_one();
            }
        }
    }
}

/// Whether the store answered.
async fn look(shared: &SharedRef) -> bool {
    let (pauses, clock) = (&shared.deps.pauses, &shared.deps.clock);
    let looking = async {
        pauses.look().await?;
        let now = clock.now();
        let over = pauses.seen().is_some_and(|seen| seen.rules().iter().any(|pause| pause.is_over(now)));
        if over {
            for ended in pauses.store().drop_over(now).await? {
                shared.deps.facts.record(&Fact::Pause { pause: ended.into(), news: PauseNews::RanOut });
            }
            pauses.look().await?;
        }
        Ok(())
    };
    let looked = tokio::select! {
        biased;
        looked = looking => looked,
        () = clock.sleep_until(clock.boot() + PATIENCE) => Err(StoreError::Unavailable("no answer in time".into())),
    };
    let answered = looked.is_ok();
    if let Err(why) = looked {
        shared.deps.facts.record(&Fact::StoreUnavailable { verb: "pauses", why });
    }
    answered
}

/// How many stand, where that is news.
fn tell(shared: &Shared, seen: &Seen, told: &mut Option<usize>) {
    let count = seen.rules().len();
    if told.replace(count) != Some(count) {
        shared.deps.facts.record(&Fact::PausesStand { count });
    }
}

/// Whether nothing of what may be in a lane can go out: pauses hold each class of its priority on each channel that the
/// provider serves. What was accepted under another configuration, and is neither, waits with the rest until the pause
/// ends; the lane of a provider that no channel names may hold anything.
pub(super) fn nothing_goes(policy: &Policy, pauses: &[Pause], lane: &Lane, now: UnixMs) -> bool {
    // Of all tenants: a lane is everybody's.
    if !pauses.iter().any(|pause| pause.tenant.is_none() && !pause.is_over(now)) {
        return false;
    }
    let serves = |channel: &ChannelKind| {
        policy.routes.get(channel).is_some_and(|routes| routes.iter().any(|route| route.provider == lane.provider))
    };
    let served: Vec<ChannelKind> = ChannelKind::ALL.iter().copied().filter(serves).collect();
    // The outbox has whatever is not to go out, of any channel.
    let channels = if served.is_empty() || lane.provider == OUTBOX { ChannelKind::ALL } else { &served };
    let mut classes = policy.classes.values().filter(|class| class.priority == lane.priority).peekable();
    let held = |class: &str| {
        let exempt = policy.rules_of(class).pause_exempt;
        channels.iter().all(|channel| {
            let subject = Subject::of_any(class, *channel, &lane.provider);
            pauses.iter().any(|pause| pause.tenant.is_none() && pause.holds(&subject, exempt, now))
        })
    };
    if classes.peek().is_none() { held("") } else { classes.all(|class| held(&class.name)) }
}

/// When the next of them ends.
pub(super) fn next_end(pauses: &[Pause], now: UnixMs) -> Option<Duration> {
    pauses.iter().filter(|pause| !pause.is_over(now)).filter_map(|pause| pause.until).min().map(|at| at.since(now))
}

impl Shared {
    /// The pauses to go by. Nothing is claimed before they are known.
    pub(super) fn paused(&self) -> Arc<Seen> {
        self.deps.pauses.seen().unwrap_or_default()
    }
}

impl Work<'_> {
    /// Decided once more right before the call: it may have been paused while the message was made and recorded.
    pub(super) fn paused_meanwhile(&self, delivery: &Delivery) -> Option<Event> {
        let seen = self.shared.paused();
        if seen.rules().is_empty() {
            return None;
        }
        let policy = self.shared.policy();
        let exempt = policy.rules_of(&delivery.class).pause_exempt;
        let subject = Subject::of(delivery, &self.claim.notification, self.class);
        let until = pause::held_until(seen.rules(), &subject, exempt, self.shared.deps.clock.now())?;
        Some(Event::Held { until, why: DeferWhy::Paused })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use belfry_domain::admission::Rules;
    use belfry_domain::class::RetryPolicy;
    use belfry_domain::pause::Paused;
    use belfry_domain::{Class, Order, Priority};

    use super::*;
    use crate::ports::links::LinkPolicy;
    use crate::ports::policy::Route;

    const NOW: UnixMs = UnixMs(1_000_000);

    fn class(name: &str, priority: Priority) -> (String, Class) {
        let wait = Duration::from_secs(60);
        let class = Class {
            name: name.into(),
            order: Order::SendThenRecord,
            priority,
            expiry: wait,
            retry: RetryPolicy { base: wait, cap: wait, max_attempts: 1 },
            resend_limit: 0,
            lease: wait,
            window: wait,
            receipt_window: wait,
            keep_content: wait,
            channels: Vec::new(),
            required: false,
            budget_exempt: false,
        };
        (name.to_owned(), class)
    }

    /// `code` is exempt and urgent; `receipt` alone is normal; `digest` and `marketing` are low.
    fn policy() -> Policy {
        let exempt = Rules { pause_exempt: true, ..Rules::default() };
        Policy {
            classes: [
                class("code", Priority::High),
                class("receipt", Priority::Normal),
                class("digest", Priority::Low),
                class("marketing", Priority::Low),
            ]
            .into(),
            rules: [("code".to_owned(), exempt)].into(),
            caps: BTreeMap::new(),
            providers: BTreeMap::new(),
            routes: [(ChannelKind::Email, "main"), (ChannelKind::Sms, "both"), (ChannelKind::Chat, "both")]
                .map(|(channel, provider)| (channel, vec![Route::any(provider)]))
                .into(),
            environments: BTreeMap::new(),
            links: LinkPolicy::default(),
            keep_record: Duration::ZERO,
        }
    }

    fn pause(paused: Paused) -> Pause {
        Pause { paused, tenant: None, since: NOW, until: None, forced: false }
    }

    fn shut(pauses: &[Pause]) -> Vec<String> {
        let policy = policy();
        let lanes = ["main", "both", "unrouted", OUTBOX].into_iter().flat_map(super::super::lanes_of);
        lanes.filter(|lane| nothing_goes(&policy, pauses, lane, NOW)).map(|lane| lane.to_string()).collect()
    }

    const BUT_CODES: [&str; 8] = [
        "main/normal",
        "main/low",
        "both/normal",
        "both/low",
        "unrouted/normal",
        "unrouted/low",
        "outbox/normal",
        "outbox/low",
    ];

    #[test]
    fn a_lane_is_shut_where_all_that_can_be_in_it_is_held() {
        let channel = |kind| pause(Paused::Channel(kind));
        let class = |name: &str| pause(Paused::Class(name.into()));
        let forced = |pause: Pause| Pause { forced: true, ..pause };
        let nothing: &[&str] = &[];
        assert_eq!(shut(&[]), nothing);
        assert_eq!(shut(&[pause(Paused::All)]), BUT_CODES);
        assert_eq!(shut(&[forced(pause(Paused::All))]).len(), 12);
        assert_eq!(shut(&[pause(Paused::Provider("main".into()))]), ["main/normal", "main/low"]);
        assert_eq!(shut(&[forced(pause(Paused::Provider("main".into())))]), ["main/high", "main/normal", "main/low"]);
        assert_eq!(shut(&[channel(ChannelKind::Email)]), ["main/normal", "main/low"]);
        // The provider's other channel flows.
        assert_eq!(shut(&[channel(ChannelKind::Sms)]), nothing);
        assert_eq!(shut(&[channel(ChannelKind::Sms), channel(ChannelKind::Chat)]), ["both/normal", "both/low"]);
        // Other classes of the priority flow.
        assert_eq!(shut(&[class("marketing")]), nothing);
        assert_eq!(
            shut(&[class("marketing"), class("digest")]),
            ["main/low", "both/low", "unrouted/low", "outbox/low"]
        );
        assert_eq!(shut(&[class("code")]), nothing);
        assert_eq!(shut(&[forced(class("code"))]).len(), 4);
        // Between them they hold everything, though none of them does.
        assert_eq!(shut(&[class("marketing"), forced(channel(ChannelKind::Email))]).len(), 3);
        assert_eq!(shut(&[pause(Paused::Template("welcome".into())), pause(Paused::Group("x".into()))]), nothing);
    }

    #[test]
    fn a_pause_that_is_a_tenants_or_over_shuts_no_lane() {
        let theirs = Pause { tenant: Some("acme".into()), forced: true, ..pause(Paused::All) };
        let over = Pause { until: Some(NOW), ..pause(Paused::All) };
        assert_eq!(shut(&[theirs.clone(), over.clone()]), Vec::<String>::new());
        let stands = Pause { until: Some(NOW.plus(Duration::from_millis(7))), ..pause(Paused::All) };
        assert_eq!(shut(&[theirs.clone(), stands.clone()]), BUT_CODES);
        assert_eq!(next_end(&[theirs, over.clone()], NOW), None);
        assert_eq!(next_end(&[over, stands], NOW), Some(Duration::from_millis(7)));
    }
}
