//! Every state × every event, for both orders and with and without receipts: what follows, as a
//! text that a change of the policy shows in its diff.

use std::fmt::Write;

use belfry_domain::step::{Rejected, StepFact};
use belfry_domain::timeline::Happened;
use belfry_domain::{Delivery, Order, State, Transition, step};

use super::fixtures::{ACCEPTED_AT, NOW, class, env, events, states};
use super::golden;

#[test]
fn every_state_and_every_event() {
    let mut table = String::from("What follows, by order, state and event. Made from the code.\n");
    for order in Order::ALL {
        for receipts in [false, true] {
            let receipts_come = if receipts { "receipts come" } else { "no receipts" };
            writeln!(table, "\n## {order}, {receipts_come}").unwrap();
            for (name, delivery) in states(&class(*order)) {
                rows(&mut table, *order, receipts, name, &delivery);
            }
        }
    }
    golden::assert_file("crates/domain/tests/policy/step_table.txt", &table);
}

fn rows(table: &mut String, order: Order, receipts: bool, name: &str, delivery: &Delivery) {
    writeln!(table, "\n{name}").unwrap();
    let mut refused: Vec<(String, Vec<String>)> = Vec::new();
    for (event_name, event) in events() {
        match step(delivery, &class(order), event, env(receipts)) {
            Ok(transition) => writeln!(table, "  {event_name} → {}", told(delivery, &transition)).unwrap(),
            Err(rejected) => {
                let why = refusal(rejected);
                match refused.iter_mut().find(|(one, _)| *one == why) {
                    Some((_, names)) => names.push(event_name),
                    None => refused.push((why, vec![event_name])),
                }
            }
        }
    }
    for (why, names) in refused {
        writeln!(table, "  {why}: {}", names.join(" · ")).unwrap();
    }
}

fn refusal(rejected: Rejected) -> String {
    match rejected {
        Rejected::Repeat => "a repeat".into(),
        Rejected::NotNow(state) => format!("not while {state}"),
        Rejected::Reused { verb, .. } => format!("the key was used to {verb}"),
        Rejected::SendMoved { current } => format!("the send moved to {current}"),
        Rejected::Early => "too early, to be held".into(),
    }
}

/// The next state and all else that changed.
fn told(before: &Delivery, transition: &Transition) -> String {
    let next = &transition.next;
    let mut text = shown(&next.state);
    let mut note = |changed: bool, words: String| {
        if changed {
            text.push_str(", ");
            text.push_str(&words);
        }
    };
    note(next.send != before.send, format!("send {}", next.send));
    note(next.attempts != before.attempts, format!("attempts {}", next.attempts));
    note(next.unknowns != before.unknowns, format!("unknowns {}", next.unknowns));
    note(next.maybe_sent != before.maybe_sent, format!("maybe_sent {}", next.maybe_sent));
    note(next.reached != before.reached, "reached".into());
    note(next.twice != before.twice, "twice".into());
    note(next.address_hash != before.address_hash, format!("to {}", next.address_mask));
    note(next.resolved != before.resolved, "by hand".into());
    note(next.spent != before.spent, format!("spent {}", next.spent));
    note(next.lapses != before.lapses, format!("lapses {} alone {}", next.lapses, next.lapses_alone));
    note(next.gathering != before.gathering, gathering(next));
    note(next.stop != before.stop, format!("stop {}", if next.stop.is_some() { "asked" } else { "forgotten" }));
    note(next.receipt_until != before.receipt_until, "receipt window ".to_owned() + opened(next));
    note(next.ended() && !before.ended(), "ended".into());
    note(!next.ended() && before.ended(), "open again".into());
    note(next.expires_at != before.expires_at, "expiry renewed".into());
    let entries = next.timeline.entries[before.timeline.entries.len()..].iter();
    let entries: Vec<String> = entries.map(|entry| what(&entry.happened)).collect();
    let facts: Vec<String> = transition.facts.iter().map(fact).collect();
    format!("{text} | {} | {}", entries.join(", "), facts.join(", "))
}

fn gathering(next: &Delivery) -> String {
    match next.gathering {
        None => "gathers no more".into(),
        Some(it) if it.into.is_some() => "put into a digest".into(),
        Some(_) => "gathers".into(),
    }
}

const fn opened(next: &Delivery) -> &'static str {
    if next.receipt_until.is_some() { "open" } else { "closed" }
}

fn shown(state: &State) -> String {
    match state {
        State::Scheduled { .. } => "scheduled".into(),
        State::Deferred { until, why } => format!("deferred {} s ({why})", until.since(NOW).as_secs()),
        State::Parked { why } => format!("parked ({why})"),
        State::Queued
        | State::Sending { .. }
        | State::Accepted
        | State::Delivered
        | State::Bounced
        | State::Failed
        | State::Expired
        | State::Suppressed
        | State::Cancelled
        | State::Superseded
        | State::Unknown => state.name().to_string(),
    }
}

fn what(happened: &Happened) -> String {
    let text = serde_name(happened);
    match happened {
        Happened::Attempt { attempt, outcome, .. } => format!("{text} {attempt} {outcome}"),
        Happened::Lapsed { may_have_sent, .. } => {
            format!("{text}{}", if *may_have_sent { " maybe sent" } else { " unsent" })
        }
        Happened::Ended { state } => format!("{text} {state}"),
        Happened::Receipt { kind } => format!("{text} {kind}"),
        Happened::Received { .. }
        | Happened::StaleReport { .. }
        | Happened::Deferred { .. }
        | Happened::CapFull { .. }
        | Happened::Folded { .. }
        | Happened::LookedUp { .. }
        | Happened::Readdressed
        | Happened::StopAsked { .. }
        | Happened::Redriven { .. }
        | Happened::SentAgain { .. }
        | Happened::Resolved { .. } => text.into(),
    }
}

const fn serde_name(happened: &Happened) -> &'static str {
    match happened {
        Happened::Received { .. } => "received",
        Happened::Attempt { .. } => "attempt",
        Happened::Lapsed { .. } => "lapsed",
        Happened::StaleReport { .. } => "stale report",
        Happened::Deferred { .. } => "deferred",
        Happened::CapFull { .. } => "cap full",
        Happened::Folded { .. } => "folded",
        Happened::LookedUp { .. } => "looked up",
        Happened::Readdressed => "readdressed",
        Happened::StopAsked { .. } => "stop asked",
        Happened::Receipt { .. } => "receipt",
        Happened::Redriven { .. } => "redriven",
        Happened::SentAgain { .. } => "sent again",
        Happened::Resolved { .. } => "resolved",
        Happened::Ended { .. } => "ended",
    }
}

fn fact(fact: &StepFact) -> String {
    match fact {
        StepFact::Attempted { outcome, why, .. } => format!("attempted {outcome} {why}"),
        StepFact::Resent => "resent".into(),
        StepFact::UnknownOutcome { why } => format!("unknown outcome {why}"),
        StepFact::Ended { state, for_ } => {
            assert_eq!(*for_, NOW.since(ACCEPTED_AT));
            format!("ended {state}")
        }
        StepFact::Lapsed { .. } => "lapsed".into(),
        StepFact::StaleReport { outcome } => format!("stale report {outcome}"),
        StepFact::ReceiptApplied { kind } => format!("receipt {kind}"),
    }
}
