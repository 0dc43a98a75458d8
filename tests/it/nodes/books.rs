//! The reckoning: what was acknowledged, what the store says, what the mail server saw.

use std::collections::BTreeSet;
use std::ops::Range;
use std::thread;

use serde_json::Value;

use super::fleet::{Fleet, LONG};
use super::report::Row;
use crate::kill::http::Client;
use crate::kill::load::{Ledger, intent};
use crate::kill::reconcile::{Tally, ended};
use crate::kill::sink::Sink;
use crate::peers::until::until;

/// What a test has run.
pub struct Books<'a> {
    pub fleet: &'a Fleet,
    pub ledger: &'a Ledger,
    pub sink: &'a Sink,
}

impl Books<'_> {
    /// Checks every intent of `numbers`, all of which were acknowledged.
    pub fn reconcile(&self, numbers: Range<usize>) -> Tally {
        self.reconcile_but(numbers, &BTreeSet::new())
    }

    /// The same where a server has lost what is in `named`: ids of which a node has said so.
    pub fn reconcile_but(&self, numbers: Range<usize>, named: &BTreeSet<String>) -> Tally {
        let accepted = self.ledger.accepted();
        let mut tally = Tally::default();
        let up = self.fleet.up();
        let workers = up.len();
        thread::scope(|scope| {
            let parts: Vec<_> = up
                .iter()
                .enumerate()
                .map(|(worker, node)| {
                    let (accepted, numbers) = (&accepted, numbers.clone());
                    let mut client = self.fleet.client(*node);
                    scope.spawn(move || {
                        let mut tally = Tally::default();
                        for number in numbers.skip(worker).step_by(workers) {
                            let id = accepted.get(&intent(number)).expect("acknowledged");
                            if named.contains(id) && gone(&mut client, id) {
                                tally.check_lost(number, self.sink);
                                continue;
                            }
                            tally.check(number, &ended(&mut client, id), self.sink);
                        }
                        tally
                    })
                })
                .collect();
            for part in parts {
                tally.add(&part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            }
        });
        tally
    }

    /// Checks intents whose callers asked once and may not know what became of it.
    pub fn reconcile_unsure(&self, numbers: Range<usize>) -> Tally {
        let accepted = self.ledger.accepted();
        let mut client = self.fleet.client(0);
        let mut tally = Tally::default();
        for number in numbers {
            let name = intent(number);
            match accepted.get(&name).cloned().or_else(|| found(&mut client, &name)) {
                Some(id) => tally.check(number, &ended(&mut client, &id), self.sink),
                None => assert!(self.sink.effects(&name).is_empty(), "{name} is unknown here, and had an effect"),
            }
        }
        tally
    }

    /// Prints what was found, and makes a row of it once nothing is under way any more.
    pub fn report(&self, what: &str, tally: &Tally) -> Row {
        println!(
            "{what}: {}; {} acknowledged, {} effects, {} repeats, {} accepted, {} unknown, {} parked, {} lost and \
             named; callers met {} refusals and {} cuts",
            self.fleet.story(),
            self.ledger.accepted().len(),
            self.sink.total(),
            tally.extra,
            tally.accepted,
            tally.unknown,
            tally.parked,
            tally.lost,
            self.ledger.refused(),
            self.ledger.cut(),
        );
        let lost = match (tally.missing(), tally.lost) {
            (0, 0) => "0".to_owned(),
            (0, _) => "some, each named".to_owned(),
            (missing, _) => missing.to_string(),
        };
        Row {
            done: self.fleet.story(),
            intents: tally.known,
            once: 0,
            lost,
            doubled: tally.doubled,
            unexplained: tally.unexplained,
            endless: self.endless(),
        }
    }

    /// Those that have not ended, also of such as nobody was told about. An intent that was accepted although
    /// its caller got no answer may take a moment.
    fn endless(&self) -> usize {
        let mut client = self.fleet.client(self.fleet.up()[0]);
        until("all have ended", LONG, || {
            let mut under_way = 0;
            for state in ["scheduled", "queued", "deferred", "sending"] {
                let answer = client.get(&format!("/v1/notifications?state={state}&limit=100")).ok()?;
                (answer.status == 200).then_some(())?;
                under_way += answer.json()["data"].as_array().expect("a list").len();
            }
            (under_way == 0).then_some(under_way)
        })
    }
}

fn gone(client: &mut Client, id: &str) -> bool {
    until("a node says whether it is there", LONG, || {
        match client.get(&format!("/v1/notifications/{id}")).ok()?.status {
            200 => Some(false),
            404 => Some(true),
            _ => None,
        }
    })
}

/// The id of what was accepted for `name`, if anything was.
fn found(client: &mut Client, name: &str) -> Option<String> {
    let page = until("a node lists it", LONG, || {
        let answer = client.get(&format!("/v1/notifications?reference={name}")).ok()?;
        (answer.status == 200).then(|| answer.json())
    });
    page["data"].as_array().expect("a list").first().and_then(|one| one["id"].as_str()).map(str::to_owned)
}

/// All ids that nodes have named as lost.
pub fn named_lost(log: &str) -> BTreeSet<String> {
    log.lines()
        .filter(|line| line.contains("notification_lost"))
        .filter_map(|line| {
            let at = line.find("ntf_")?;
            let end = line[at..].find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
            Some(line[at..at + end.unwrap_or(line.len() - at)].to_owned())
        })
        .collect()
}

/// The entries of a delivery's timeline that say `what`.
pub fn entries<'a>(delivery: &'a Value, what: &'a str) -> impl Iterator<Item = &'a Value> {
    delivery["timeline"].as_array().expect("a timeline").iter().filter(move |entry| entry["what"] == what)
}

/// The states of all that was acknowledged.
pub fn states(client: &mut Client, ledger: &Ledger) -> Vec<String> {
    let state = |id: String| {
        let answer = client.get(&format!("/v1/notifications/{id}")).unwrap();
        answer.json()["deliveries"][0]["state"].as_str().unwrap_or_default().to_owned()
    };
    ledger.accepted().into_values().map(state).collect()
}
